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
