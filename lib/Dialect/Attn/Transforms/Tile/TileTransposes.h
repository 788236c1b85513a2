//===- TileTransposes.h - Transposed operands as views of tiles -*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tile of one batch and one head of a tensor [B, S, H, D], seen as [B, H, S,
// D], has the same elements in the same order: no data has to move for it. So
// `transpose` followed by `slice` becomes a slice that drops the dimensions of
// size one, and a reshape that puts them elsewhere.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILETRANSPOSES_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILETRANSPOSES_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

namespace fovea::attn {

/// A transposition, by any op: `op`'s result is `input` with dimension `r`
/// taken from `permutation[r]`.
struct Transposition {
  mlir::Operation *op;
  mlir::Value input;
  mlir::SmallVector<int64_t> permutation;

  /// Returns that of an op, which may be null; none if it is something else.
  static std::optional<Transposition> get(mlir::Operation *op);
};

/// Returns true if `slice` reads a transposed tensor, and views a tile of the
/// tensor itself.
bool isViewOfTranspose(mlir::tensor::ExtractSliceOp slice);

/// Adds patterns for slice(transpose(x)) -> expand_shape(slice(x)), where the
/// dimensions whose size is not one keep their order.
void populateSliceOfTransposePatterns(mlir::RewritePatternSet &patterns);

/// Returns the tile that `insertion` inserts, in the shape of the part that it
/// is inserted into; null if it drops dimensions other than all of size one.
/// Built at the rewriter's insertion point.
mlir::Value getWholeTile(mlir::RewriterBase &rewriter,
                         mlir::tensor::ParallelInsertSliceOp insertion);

/// If the only reader of result `number` of `loop` transposes it, and a tile's
/// dimensions whose size is not one keep their order, lets the loop write the
/// transposed tensor, and so the loops that have written it before, if these
/// can. The body must slice its output at most once, and insert once. Returns
/// true if the loop was changed.
bool fuseTransposeOfResult(mlir::RewriterBase &rewriter,
                           mlir::scf::ForallOp loop, unsigned number);

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILETRANSPOSES_H
