//===- FuseRegions.h - Score and mask regions of a fusion -------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_FUSE_FUSEREGIONS_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_FUSE_FUSEREGIONS_H

#include "FuseOperands.h"

namespace fovea::attn::fuse {

/// A score, taken apart.
struct Score {
  /// The constant that products are multiplied by before all else.
  double scale = 1.0;
  /// The scalar that is the scaled product.
  mlir::Value base;
  /// The score as a function of `base`, without masks.
  mlir::Value value;
  /// The condition under which the key is kept; null where all keys are.
  mlir::Value keep;
  /// True if a selection of a large negative constant stayed in `value`, as no
  /// key is proven to be kept in every row.
  bool hasFiniteMask = false;
};

/// Takes apart `score`, which depends on `product`, in the coordinates `layout`
/// (batch, head, row, key).
Score takeApart(ScalarGraph &graph, mlir::Value score, mlir::Value product,
                const Layout &layout);

/// Returns true if every row is proven to have a key for which `keep` holds.
bool keepsSomeKey(ScalarGraph &graph, mlir::Value keep, const Layout &layout);

/// Returns true if every index of `list` can be computed from coordinates
/// `layout` without sizes that are known only at run time.
bool canIndex(AxisTable &axes, const Axes &list, const Layout &layout);

/// Returns all values that `roots` are made of, up to and without `base`:
/// leaves, indices and values from outside of the graph.
llvm::SmallVector<mlir::Value>
getIngredients(ScalarGraph &graph, mlir::ValueRange roots, mlir::Value base);

/// Build the region of `score`'s value or of its keep condition, with
/// coordinates `layout` and accumulation type `type`.
void buildScoreRegion(ScalarGraph &graph, const Score &score,
                      const Layout &layout, mlir::FloatType type,
                      mlir::Location loc, mlir::Region &region);
void buildMaskRegion(ScalarGraph &graph, const Score &score,
                     const Layout &layout, mlir::Location loc,
                     mlir::Region &region);

} // namespace fovea::attn::fuse

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_FUSE_FUSEREGIONS_H
