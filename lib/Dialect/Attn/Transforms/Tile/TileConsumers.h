//===- TileConsumers.h - Consumers of attention, per tile -------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A residual, an output gate, a bias, a cast or dropout on the output of
// attention is computed on each tile of the output while it is in the core's
// memory. The same goes for norms and sums over the features, since a tile has
// all features. An op that reads several tiles, such as a projection, which
// sums over heads, reads the whole output after the loop.
//
// In a GPU's block the tile is in registers, where each thread has some
// elements of it: what is computed there is computed element by element.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILECONSUMERS_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILECONSUMERS_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

namespace fovea::attn {

/// Adds patterns that move collapse_shape of attention's output behind the
/// elementwise ops that read it, so that these are computed on its tiles.
void populateCollapseOfOutputPatterns(mlir::RewritePatternSet &patterns);

/// The loop over tiles, and the ops that were moved into it.
struct FusedConsumers {
  mlir::scf::ForallOp loop;
  unsigned count;
  /// Tiles of the other operands of the moved ops: each is read once.
  mlir::SmallVector<mlir::tensor::ExtractSliceOp> slices;
};

/// Returns the reason for which `op` is not computed on elements in registers,
/// or nullopt if it can be. Tensors that `isReplaced` accepts will not be those
/// that it writes to.
std::optional<llvm::StringRef> findRegisterObjection(
    mlir::Operation *op,
    llvm::function_ref<bool(mlir::Value)> isReplaced = nullptr);

/// The part of a tile of the output that a thread has in registers.
struct ThreadTile {
  int64_t elements;
  /// The bits of an element while it is accumulated.
  unsigned bits;
};

/// What readers are moved into a loop.
struct ConsumerFilter {
  /// Null: all.
  llvm::function_ref<bool(mlir::Operation *)> isWanted = nullptr;
  /// The features of a tile that is in registers, of which a thread has some
  /// elements; nullopt: tiles are in memory.
  std::optional<int64_t> registerFeatures = std::nullopt;
  /// With tiles in registers: what of one a thread has.
  ThreadTile threadTile = {0, 0};
  /// With tiles in registers: also readers that take longer there than in a
  /// kernel of their own.
  bool all = false;
  /// With tiles in registers: functions are exact for floats of 16 bits, too.
  bool exactFunctions = false;
};

/// Moves the readers of the results of `loop` into it and computes them per
/// tile, where a tile of a reader needs only one tile of the result; then does
/// the same for their readers. A transposition becomes a change of where a tile
/// is written. Results that no other op reads are no longer written. Replaces
/// `loop`. Moves only readers that `filter` accepts.
FusedConsumers fuseConsumers(mlir::RewriterBase &rewriter,
                             mlir::scf::ForallOp loop,
                             const ConsumerFilter &filter);

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILECONSUMERS_H
