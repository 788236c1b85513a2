//===- TileWork.h - Parts of the keys of sequences of any length *- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
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
// are merged by a loop behind them.
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

/// Returns the number of parts of `size` that so many keys have, at least one.
mlir::OpFoldResult countParts(IndexMath &math, mlir::OpFoldResult keys,
                              int64_t size);

/// The items of work of a head: parts of the keys of its batches.
class WorkList {
public:
  /// Emits the loop that computes the list for `pass`, which is not yet tiled,
  /// at the insertion point; none if its mask keeps as many keys of each batch,
  /// or if the number of batches is static. `schedule` splits the keys: into as
  /// many items as keep a machine busy at once, or into parts of a size.
  static std::optional<WorkList> create(mlir::RewriterBase &rewriter,
                                        OnlineAttentionOp pass, int64_t keyTile,
                                        ScheduleAttr schedule);

  /// The number of items that there can be.
  mlir::Value getSize() const { return size; }

  /// The batch of an item, and its part of the keys. Items that there are not
  /// have an empty part of the first batch.
  struct Item {
    mlir::Value batch;
    KeyPart part;
  };
  Item getItem(mlir::OpBuilder &builder, mlir::Location loc,
               mlir::Value number) const;

  /// Emits whether a batch of so many parts has one, which is all of its keys:
  /// the result of such an item is the batch's, and merged with no other.
  static mlir::Value isWhole(mlir::OpBuilder &builder, mlir::Location loc,
                             mlir::OpFoldResult parts);

  /// Replaces `root` by `wholes`, which have the results of batches of one part
  /// already, and get the sums of those of others: of the outputs [W, H, Sq,
  /// Dv], the log-sum-exps [W, H, Sq] and what these are rounded by, of their
  /// items, `parts`, in a fixed order.
  void merge(mlir::RewriterBase &rewriter, FinalizeOp root,
             mlir::ValueRange parts, mlir::ValueRange wholes) const;

private:
  /// Returns the first item of a batch, and their number.
  std::pair<mlir::Value, mlir::Value> getItems(mlir::OpBuilder &builder,
                                               mlir::Location loc,
                                               mlir::Value batch) const;

  mlir::Value size;
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
