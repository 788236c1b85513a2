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

/// Puts what `values` has of the second dimension that the rows of the tile of
/// `op` run along, if there is one, behind the columns: `values` are those of a
/// tensor's dimensions, the last one first. Memory has a box in that order.
template <typename T>
void moveInnerRows(mlir::Operation *op, llvm::ArrayRef<int64_t> dims,
                   llvm::SmallVectorImpl<T> &values) {
  if (!getInnerRows(op))
    return;
  auto from = values.end() - 1 - dims[1];
  std::rotate(values.begin() + 1, from, from + 1);
}

} // namespace fovea::tile

#endif // FOVEA_LIB_CONVERSION_TILETONVVM_TENSORMAPS_H
