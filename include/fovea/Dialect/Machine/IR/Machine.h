//===- Machine.h - The machine that code is for -----------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DIALECT_MACHINE_IR_MACHINE_H
#define FOVEA_DIALECT_MACHINE_IR_MACHINE_H

#include "fovea/Dialect/Machine/IR/GpuArch.h"

#include "mlir/IR/Attributes.h"
#include "mlir/IR/Dialect.h"

#include "fovea/Dialect/Machine/IR/MachineDialect.h.inc"
#define GET_ATTRDEF_CLASSES
#include "fovea/Dialect/Machine/IR/MachineAttrs.h.inc"

namespace fovea::machine {

/// The names of the dialect's attributes of ops, which its description lists.
inline constexpr llvm::StringLiteral kTargetAttrName = "machine.target";
inline constexpr llvm::StringLiteral kKernelAttrName = "machine.kernel";
inline constexpr llvm::StringLiteral kGrainAttrName = "machine.grain";
inline constexpr llvm::StringLiteral kDistinctMemoryAttrName =
    "machine.distinct_memory";
inline constexpr llvm::StringLiteral kStartsEarlyAttrName =
    "machine.starts_early";
inline constexpr llvm::StringLiteral kMessagesAttrName = "machine.messages";

/// Returns the target of the module around `op`, or null.
TargetAttr getTarget(mlir::Operation *op);

/// Returns the same, or a model of a common machine (AVX-512, 2 cores).
TargetAttr getTargetOrDefault(mlir::Operation *op);

/// Returns the model of the typical GPU of `arch`.
TargetAttr getTypicalGpu(mlir::MLIRContext *context, const GpuArch &arch);

/// Returns the GPU that `op`, part of a GPU's program, is for; a Hopper if its
/// module does not name one.
TargetAttr getGpuOrDefault(mlir::Operation *op);

} // namespace fovea::machine

#endif // FOVEA_DIALECT_MACHINE_IR_MACHINE_H
