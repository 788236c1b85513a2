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

void addCleanup(mlir::OpPassManager &manager);

/// Appends the passes that every pipeline begins with: no recursion, and few
/// scalar ops.
void addImport(mlir::OpPassManager &manager);

/// Appends passes that leave one function for each that can be called, so that
/// fusion sees all of it.
void addInlining(mlir::OpPassManager &manager);

/// Appends passes that remove all computations on tensors of a static size of
/// 0.
void addFoldingOfEmpty(mlir::OpPassManager &manager);

/// Appends passes from fused attention to loops over its tiles, for the host.
void addTiling(mlir::OpPassManager &manager, Strategy strategy);

/// Appends passes that write the remaining fused backward passes as a graph.
void addBackward(mlir::OpPassManager &manager);

/// Appends passes that compute numbers of types that hosts do not compute with
/// in types that they do.
void addFloatEmulation(mlir::OpPassManager &manager);

/// Appends passes that write the remaining `math` ops on a host as LLVM's
/// intrinsics and calls of its library.
void addMathLowering(mlir::OpPassManager &manager);

/// Appends passes that write the remaining graph as linalg on tensors.
void addLinalg(mlir::OpPassManager &manager);

/// Appends passes from linalg on tensors to linalg on memrefs, with buffers
/// placed, small ones on the stack if `useStack` is set; if not, a runtime
/// frees buffers that leave their block. Writable arguments are updated if this
/// is `inPlace`; if not, no argument is written.
void addBufferization(mlir::OpPassManager &manager, bool useStack = true,
                      bool inPlace = true);

} // namespace fovea

#endif // FOVEA_LIB_PIPELINES_STAGES_H
