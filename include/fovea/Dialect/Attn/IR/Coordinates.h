//===- Coordinates.h - The coordinates of a score ---------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DIALECT_ATTN_IR_COORDINATES_H
#define FOVEA_DIALECT_ATTN_IR_COORDINATES_H

#include "fovea/Dialect/Attn/IR/Attn.h"

namespace fovea::attn {

/// All coordinates, in the order of a region's arguments.
inline constexpr Coordinate kCoordinates[] = {
    Coordinate::Batch, Coordinate::Head, Coordinate::Row, Coordinate::Key};

/// Returns the dimension of the scores that `coordinate` indexes.
constexpr unsigned getScoreDim(Coordinate coordinate) {
  return static_cast<unsigned>(coordinate);
}

/// Returns the coordinate that indexes dimension `dim` of the scores.
constexpr Coordinate getCoordinate(unsigned dim) { return kCoordinates[dim]; }

/// Returns the coordinate of each index of `read` that is a coordinate of the
/// score region `score` unchanged; nullopt for other indices.
llvm::SmallVector<std::optional<Coordinate>>
getIndexCoordinates(mlir::tensor::ExtractOp read, mlir::Region &score);

/// Returns, for each dimension of `tensor`, the coordinate of the score that
/// indexes it unchanged in all reads of `tensor` in the region `score`, and
/// that indexes no other dimension of it; nullopt for other dimensions. (A
/// coordinate that indexes two dimensions cuts out a diagonal.)
llvm::SmallVector<std::optional<Coordinate>>
getCaptureAxes(mlir::Value tensor, mlir::Region &score);

/// A `T` for each coordinate of a score.
template <typename T>
struct PerCoordinate {
  T batch = {}, head = {}, row = {}, key = {};

  const T &operator[](Coordinate coordinate) const {
    switch (coordinate) {
    case Coordinate::Batch:
      return batch;
    case Coordinate::Head:
      return head;
    case Coordinate::Row:
      return row;
    case Coordinate::Key:
      return key;
    }
    llvm_unreachable("four coordinates");
  }
};

} // namespace fovea::attn

#endif // FOVEA_DIALECT_ATTN_IR_COORDINATES_H
