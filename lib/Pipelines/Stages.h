//===- Stages.h - Parts that the pipelines share ----------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_PIPELINES_STAGES_H
#define FOVEA_LIB_PIPELINES_STAGES_H

#include "fovea/Pipelines/Pipelines.h"

namespace fovea {

/// How often fused attention passes over the keys.
int getPasses(Strategy strategy);

void addCleanup(mlir::OpPassManager &manager);

/// What every pipeline begins with: no recursion, and few scalar ops.
void addImport(mlir::OpPassManager &manager);

/// One function for each that can be called, so that fusion sees all of it.
void addInlining(mlir::OpPassManager &manager);

/// Leaves nothing that is computed on tensors of a static size of 0.
void addFoldingOfEmpty(mlir::OpPassManager &manager);

/// From fused attention to loops over its tiles, for the host.
void addTiling(mlir::OpPassManager &manager, Strategy strategy);

/// What is left of fused backward passes, as a graph; all of them, or those
/// that have no schedule.
void addBackward(mlir::OpPassManager &manager, bool unscheduledOnly = false);

/// Numbers of types that hosts do not compute with, as of types that they do.
void addFloatEmulation(mlir::OpPassManager &manager);

/// What is left of `math` on a host, as LLVM's intrinsics and calls of its
/// library.
void addMathLowering(mlir::OpPassManager &manager);

/// What is left of the graph as linalg on tensors.
void addLinalg(mlir::OpPassManager &manager);

/// From linalg on tensors to linalg on memrefs, buffers placed, small ones on
/// the stack if `useStack` is set; if not, there is a runtime that frees what
/// leaves its block.
void addBufferization(mlir::OpPassManager &manager, bool useStack = true);

} // namespace fovea

#endif // FOVEA_LIB_PIPELINES_STAGES_H
