//===- TileConsumers.h - What follows attention, per tile -------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A residual, an output gate, a bias, a cast or dropout on the output of
// attention is computed on each tile of the output while it is in the core's
// memory. The same goes for norms and sums over the features, which a tile has
// all of. What reads several tiles, such as a projection, which sums over
// heads, reads the whole output after the loop.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILECONSUMERS_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILECONSUMERS_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

namespace fovea::attn {

/// Patterns that move collapse_shape of attention's output behind the
/// elementwise ops that read it, so that these are computed on its tiles.
void populateCollapseOfOutputPatterns(mlir::RewritePatternSet &patterns);

/// The loop over tiles, and what was moved into it.
struct FusedConsumers {
  mlir::scf::ForallOp loop;
  unsigned count;
  /// Tiles of the other operands of what was moved: each is read once.
  mlir::SmallVector<mlir::tensor::ExtractSliceOp> slices;
};

/// Computes the readers of the results of `loop` per tile in it, where a tile
/// of a result is all that a tile of theirs reads of it, and their readers in
/// turn; transpositions become where a tile is written. Results that nobody
/// else reads are no longer written. Replaces `loop`.
FusedConsumers fuseConsumers(mlir::RewriterBase &rewriter,
                             mlir::scf::ForallOp loop);

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILECONSUMERS_H
