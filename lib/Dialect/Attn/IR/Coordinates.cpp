//===- Coordinates.cpp - The coordinates of a score -----------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Attn/IR/Coordinates.h"

using namespace mlir;
using namespace fovea::attn;

SmallVector<std::optional<Coordinate>>
fovea::attn::getIndexCoordinates(tensor::ExtractOp read, Region &score) {
  return llvm::map_to_vector(
      read.getIndices(), [&](Value index) -> std::optional<Coordinate> {
        auto argument = dyn_cast<BlockArgument>(index);
        // The coordinates follow the score.
        if (!argument || argument.getOwner() != &score.front() ||
            !argument.getArgNumber())
          return std::nullopt;
        return getCoordinate(argument.getArgNumber() - 1);
      });
}

SmallVector<std::optional<Coordinate>>
fovea::attn::getCaptureAxes(Value tensor, Region &score) {
  int64_t rank = cast<RankedTensorType>(tensor.getType()).getRank();
  SmallVector<std::optional<Coordinate>> axes(rank);
  bool isRead = false;
  score.walk([&](tensor::ExtractOp read) {
    if (read.getTensor() != tensor)
      return;
    for (auto [axis, coordinate] :
         llvm::zip_equal(axes, getIndexCoordinates(read, score)))
      if (!isRead)
        axis = coordinate;
      else if (axis != coordinate)
        axis = std::nullopt;
    isRead = true;
  });
  for (std::optional<Coordinate> axis : llvm::to_vector(axes))
    if (axis && llvm::count(axes, axis) > 1)
      llvm::replace(axes, axis, std::optional<Coordinate>());
  return axes;
}
