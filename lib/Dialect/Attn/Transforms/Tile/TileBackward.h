//===- TileBackward.h - Tiles of the backward pass --------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILEBACKWARD_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILEBACKWARD_H

#include "TileByMask.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace fovea::attn {

/// The loops that a backward pass became.
struct TiledBackward {
  /// The loop over work items.
  mlir::scf::ForallOp items;
  MaskedLoopInfo info;
  size_t numTables;
};

/// Cuts `op`, which has a schedule with `gradients`, into a parallel loop over
/// work items and loops over tiles in it:
///
/// - on a host, the items are batches, heads of keys and shares of queries. An
///   item loops over the query heads of its group, tiles of queries, and the
///   tiles of keys that the mask keeps. Where several items add to a sum, each
///   has its own, and these are added up in order afterwards;
/// - on a GPU, the items are batches, heads of keys and tiles of keys. An item
///   loops over the query heads of its group and the tiles of queries that the
///   mask keeps. Where several items add to a sum, they add in parallel.
mlir::FailureOr<TiledBackward> tileBackward(mlir::RewriterBase &rewriter,
                                            OnlineBackwardOp op);

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILEBACKWARD_H
