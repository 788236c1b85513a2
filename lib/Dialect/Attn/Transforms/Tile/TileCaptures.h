//===- TileCaptures.h - Gradients of captured tensors by tiles --*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A score region reads captured tensors at indices that it computes from the
// coordinates of a score. A dimension that one coordinate always indexes
// unchanged, such as the heads of a table of slopes, is cut as the scores are:
// other tiles then add to another part of the gradient.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILECAPTURES_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILECAPTURES_H

#include "fovea/Dialect/Attn/IR/Attn.h"

namespace fovea::attn {

/// The coordinates of a score, in the order of a region's arguments.
enum class Axis { Batch, Head, Row, Key };

/// A captured tensor whose gradient is requested.
struct TiledCapture {
  mlir::Value tensor;
  /// For each dimension, the coordinate that indexes it, or nullopt where the
  /// index is computed.
  llvm::SmallVector<std::optional<Axis>> axes;
  /// The type of sums. Sums over many scores are in f64: they have terms of
  /// both signs, which may nearly cancel.
  mlir::FloatType sumType;

  bool has(Axis axis) const { return llvm::is_contained(axes, axis); }
  /// Returns true if the tensor may be as large as the scores of a head.
  bool isLarge() const { return has(Axis::Row) && has(Axis::Key); }
};

/// Returns the captures of `op`; nullopt if a region nested in the score region
/// reads one.
std::optional<llvm::SmallVector<TiledCapture>>
findTiledCaptures(AttentionBackwardOp op);

/// Returns the gradients that a tile of scores at `at` sends to `slices` of
/// captures, as the tile cuts them. They have the shapes of the slices and the
/// types of sums; null where the region does not read a capture. `scores`, of
/// shape `[1, 1, Sq, Sk]`, are the arguments of the score region; `gradients`,
/// of the same shape, are the gradients of its results. Fails with an error
/// where an op has no derivative.
mlir::FailureOr<llvm::SmallVector<mlir::Value>>
buildCaptureGradients(mlir::OpBuilder &builder, AttentionBackwardOp op,
                      llvm::ArrayRef<TiledCapture> captures,
                      mlir::ValueRange slices, mlir::Value scores,
                      mlir::Value gradients, mlir::ValueRange at);

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILECAPTURES_H
