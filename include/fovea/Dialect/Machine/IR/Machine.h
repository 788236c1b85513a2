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

/// Name of the module attribute that holds the `#machine.target`.
inline constexpr llvm::StringLiteral kTargetAttrName = "machine.target";

/// The target of the module around `op`, or null.
TargetAttr getTarget(mlir::Operation *op);

/// The same, or a model of a common machine (AVX-512, 2 cores).
TargetAttr getTargetOrDefault(mlir::Operation *op);

/// The model of the GPU that is typical of `arch`.
TargetAttr getTypicalGpu(mlir::MLIRContext *context, const GpuArch &arch);

/// The GPU that `op`, of a GPU's program, is for; a Hopper where its module
/// does not say.
TargetAttr getGpuOrDefault(mlir::Operation *op);

} // namespace fovea::machine

#endif // FOVEA_DIALECT_MACHINE_IR_MACHINE_H
