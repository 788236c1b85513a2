//===- TensorMaps.h - TMA descriptors on the host ---------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_TILETONVVM_TENSORMAPS_H
#define FOVEA_LIB_CONVERSION_TILETONVVM_TENSORMAPS_H

#include "fovea/Dialect/Tile/IR/Tile.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace fovea::tile {

/// Turns every `tile.tensor_map` in the functions of `module` into a call of
/// the runtime that writes the descriptor to a slot of the host's stack. Users
/// of the map get the slot's address, an `!llvm.ptr`.
llvm::LogicalResult lowerTensorMaps(mlir::ModuleOp module);

/// Marks every tensor map among the arguments of kernels in `module` as 128
/// bytes that are passed by value.
void describeTensorMaps(mlir::gpu::GPUModuleOp module);

} // namespace fovea::tile

#endif // FOVEA_LIB_CONVERSION_TILETONVVM_TENSORMAPS_H
