//===- TileWork.h - Parts of the keys of batches ----------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Batches whose masks keep as many keys have as many parts each, a number that
// is known in front. An item is a part of a batch: part p of b is item b *
// parts + p.
//
// Batches whose masks keep different numbers of keys, as sequences of different
// lengths, have different numbers of parts, of about as many tiles each. These
// follow from captured tensors, so that the list of all parts is computed by
// a loop in front, where the tensors are. Only its size, the number of parts
// that there can be, is known when it starts:
//
//   tiles[b]   the tiles of keys that the mask keeps of batch b
//   parts[b]   1 + tiles[b] * extra / sum of tiles, at most tiles[b] if not 0
//   first[b]   the first item of b: batches with more tiles come first
//   batch[w], number[w]   the batch of item w, and which of its parts it is
//
// The only part of a batch writes the batch's results; those of several parts
// are merged by a loop behind them, which has no row if no batch has several.
//
// There are less than B + extra items. One batch has extra items of about as
// many tiles, and no list. Where parts have a given size, instead,
//
//   parts[b]   those between multiples of the size that have a tile, at least 1
//
// and there are at most B times as many as a batch's keys may have.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILEWORK_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILEWORK_H

#include "TileByMask.h"

namespace fovea::attn {

/// Emits `count` sums of the terms that `getTerms` returns for each batch, as a
/// loop that the threads of a block can share.
llvm::SmallVector<mlir::Value> sumOverBatches(
    mlir::OpBuilder &builder, mlir::Location loc, mlir::OpFoldResult batches,
    unsigned count,
    llvm::function_ref<llvm::SmallVector<mlir::OpFoldResult>(IndexMath &,
                                                             mlir::Value batch)>
        getTerms);

/// The items of work of a head: parts of the keys of its batches.
class WorkList {
public:
  /// Returns the items of `pass`, which is not yet tiled; emits the loop that
  /// lists them, if there must be one, in front of it: where its mask keeps as
  /// many keys of each batch, or the number of batches is static, these have as
  /// many parts. `schedule` splits the keys: into as many items as keep a
  /// machine busy at once, or into parts of a size. Returns none if each batch
  /// is known to have one.
  static std::optional<WorkList> create(mlir::RewriterBase &rewriter,
                                        OnlineAttentionOp pass, int64_t keyTile,
                                        ScheduleAttr schedule);

  /// The number of items that there can be.
  mlir::OpFoldResult getSize() const { return size; }

  /// Adds the loops over items to those over batches, heads and tiles of
  /// queries with these upper bounds: the first one becomes that over items, or
  /// the last one is that over the parts of a batch.
  void addLoops(llvm::SmallVectorImpl<mlir::OpFoldResult> &upper) const;

  /// An item, by its number, its batch, and its part of the keys. Items that
  /// there are not have an empty part of the first batch.
  struct Item {
    mlir::OpFoldResult number, batch;
    KeyPart part;
  };
  /// Returns the item of an iteration of these loops.
  Item getItem(mlir::OpBuilder &builder, mlir::Location loc,
               mlir::ValueRange iteration) const;

  /// Returns true if batches may have one part, which is all of their keys: the
  /// result of such an item is the batch's, and merged with no other.
  bool mayBeWhole() const;
  /// Emits whether a batch of so many parts has one.
  static mlir::Value isWhole(mlir::OpBuilder &builder, mlir::Location loc,
                             mlir::OpFoldResult parts);

  /// Replaces `root` by `wholes`, which have the results of batches of one part
  /// already, and get the sums of those of others: of the outputs [W, H, Sq,
  /// Dv], the log-sum-exps [W, H, Sq] and what these are rounded by, of their
  /// items, `parts`, in a fixed order. Returns the loop that does so.
  mlir::scf::ForallOp merge(mlir::RewriterBase &rewriter, FinalizeOp root,
                            mlir::ValueRange parts,
                            mlir::ValueRange wholes) const;

private:
  /// Returns the first item of a batch, and their number.
  std::pair<mlir::Value, mlir::Value> getItems(mlir::OpBuilder &builder,
                                               mlir::Location loc,
                                               mlir::Value batch) const;

  mlir::OpFoldResult size;
  /// The number of parts of each batch; null if there is a list.
  mlir::OpFoldResult each;
  /// The size of a part, if that is given, and the number of one without a key.
  int64_t partSize = 0;
  mlir::Value noPart;
  /// The usual number of parts of a batch, where threads can share them; else
  /// 0.
  int64_t usualParts = 0;
  /// True if there is one batch.
  mlir::Value isOne;
  /// By batch.
  mlir::Value first, parts;
  /// The number of items, once for each batch, so that a loop can write it.
  mlir::Value used;
  /// By item.
  mlir::Value batches, numbers;
};

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILEWORK_H
