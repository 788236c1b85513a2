//===- TileCaptures.h - Gradients of captured tensors by tiles --*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A score region reads captured tensors at places that it computes from the
// coordinates of a score. A dimension that is always indexed by one coordinate
// as it is, such as the heads of a table of slopes, is cut as the scores are:
// what other tiles add to is then another part of the gradient.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILECAPTURES_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILECAPTURES_H

#include "fovea/Dialect/Attn/IR/Attn.h"

namespace fovea::attn {

/// Coordinates of a score, in the order of a region's arguments.
enum class Axis { Batch, Head, Row, Key };

/// A captured tensor whose gradient is asked for.
struct TiledCapture {
  mlir::Value tensor;
  /// For each dimension the coordinate that indexes it, or nothing where it is
  /// computed.
  llvm::SmallVector<std::optional<Axis>> axes;
  /// What sums are in. Those of many scores are in f64: they have terms of both
  /// signs, of which little may be left.
  mlir::FloatType sumType;

  bool has(Axis axis) const { return llvm::is_contained(axes, axis); }
  /// Whether it may be as large as the scores of a head.
  bool isLarge() const { return has(Axis::Row) && has(Axis::Key); }
};

/// The captures of `op`; nothing if one is read in a region within the score
/// region.
std::optional<llvm::SmallVector<TiledCapture>>
findTiledCaptures(AttentionBackwardOp op);

/// The gradients that a tile of scores at `at` sends to `slices` of captures,
/// as the tile cuts them: of their shapes and types of sums, null where the
/// region does not read one. `scores` and `gradients`, `[1, 1, Sq, Sk]`, are
/// what the score region is given, and the gradients of what it yields. Fails
/// with an error where an op has no derivative.
mlir::FailureOr<llvm::SmallVector<mlir::Value>>
buildCaptureGradients(mlir::OpBuilder &builder, AttentionBackwardOp op,
                      llvm::ArrayRef<TiledCapture> captures,
                      mlir::ValueRange slices, mlir::Value scores,
                      mlir::Value gradients, mlir::ValueRange at);

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILECAPTURES_H
