//===- RowMap.h - Places of the rows of a gathered tensor -------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_ATTNTOTILE_ROWMAP_H
#define FOVEA_LIB_CONVERSION_ATTNTOTILE_ROWMAP_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <memory>

namespace fovea {

/// Says where the rows of a tensor, its elements along the last dimension, lie
/// in the tensor that they are gathered from.
struct RowMap {
  /// Returns the map of the rows of `tensor`, if ops that only `loop` reads
  /// gather them from another tensor, or, where `widens` allows it, widen them
  /// from bytes; none otherwise.
  static std::optional<RowMap> get(mlir::Value tensor, mlir::scf::ForallOp loop,
                                   bool widens);

  /// The tensor that has the rows.
  mlir::Value source;
  /// Ops on scalars, which may read other tensors. The arguments are the index
  /// of a row in each dimension of the gathered tensor but the last.
  std::unique_ptr<mlir::Block> body;
  /// The index of that row in each dimension of `source` but the last: values
  /// in `body` or from outside of it.
  mlir::SmallVector<mlir::Value> place;
  /// The type of the numbers whose bits the elements of `source` are; null if
  /// these are numbers of the type of the gathered tensor.
  mlir::FloatType from;
};

} // namespace fovea

#endif // FOVEA_LIB_CONVERSION_ATTNTOTILE_ROWMAP_H
