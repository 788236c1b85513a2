//===- TileParts.h - Parts of the keys of listed tiles ----------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tile of a sequence that lies packed may see far more keys than others, or
// there may be few tiles: its keys are several items of the list (TileList.h)
// then. Each writes its sums to a workspace, and a loop behind merges them,
// where the rows lie. An item that is all of a tile writes these itself.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILEPARTS_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILEPARTS_H

#include "../ItemSlice.h"
#include "TileByMask.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace fovea::attn {

/// Emits the sums of the elements of `tiles`, of one shape, in elements of type
/// `element`.
mlir::Value addTiles(mlir::OpBuilder &builder, mlir::Location loc,
                     mlir::ValueRange tiles, mlir::FloatType element);

/// The tiles of a loop over batches, heads and tiles of rows, of sequences that
/// lie packed, of which items may be parts.
class PartedTiles {
public:
  /// Returns none where results are other than attention's own, so that parts
  /// could not be merged.
  static std::optional<PartedTiles> get(mlir::scf::ForallOp loop,
                                        int64_t queryTile);

  /// The queries of a tile: a group's heads are rows of one, if it has several,
  /// and there may be rows without a head.
  int64_t getQueries() const { return queryTile / group; }

  /// Creates the workspace of so many parts of each head: outputs [parts *
  /// heads, rows, features], log-sum-exps and what these are rounded by,
  /// [parts * heads, rows].
  llvm::SmallVector<mlir::Value> createRooms(mlir::OpBuilder &builder,
                                             int64_t parts) const;

  /// A tile whose parts are merged: whether there is one, its first item, their
  /// number, and its batch and first row.
  struct Merged {
    mlir::Value exists;
    mlir::OpFoldResult first, count, batch, row;
  };
  /// Emits the loop that merges at most so many tiles, of `rooms`, into
  /// `results`, as the iterations of the loop would write them. `getTile`
  /// returns a tile by its number; `usual` is the number of parts that one may
  /// well have.
  llvm::SmallVector<mlir::Value>
  merge(mlir::OpBuilder &builder, mlir::OpFoldResult most,
        mlir::ValueRange rooms, mlir::ValueRange results, int64_t usual,
        llvm::function_ref<Merged(IndexMath &, mlir::Value number)> getTile);

  /// Lets `listed`, which has got the body of the loop, compute `part` in an
  /// iteration: item `item`, if the part is not all. `listed` has the workspace
  /// as its last results.
  void compute(mlir::RewriterBase &rewriter, mlir::scf::ForallOp listed,
               const KeyPart &part, mlir::Value item) const;

private:
  explicit PartedTiles(mlir::scf::ForallOp loop) : loop(loop), places(loop) {}

  bool analyze();

  /// The first item of a tile whose parts are merged, their number, and its
  /// head.
  struct Item {
    mlir::OpFoldResult first, head;
    mlir::Value count;
  };
  /// A slice of a result, without strides.
  struct Slice {
    llvm::SmallVector<mlir::OpFoldResult> offsets, sizes;
  };
  /// Emits how many rows that of a query of a tile, and of a member of its
  /// group of heads, is: one, or none where the tile has fewer queries; and
  /// where it is in each of the results.
  llvm::SmallVector<mlir::Value> emitPlace(mlir::OpBuilder &builder,
                                           mlir::Location loc, const Merged &of,
                                           mlir::Value head, mlir::Value query,
                                           mlir::Value member);
  /// Emits the slices of the results that are this row.
  llvm::SmallVector<Slice> emitSlices(mlir::OpBuilder &builder,
                                      mlir::Location loc, const Merged &of,
                                      mlir::Value head, mlir::Value query,
                                      mlir::Value member);
  /// Emits row `inTile` of a tile, of the parts in `rooms`, into `outs`, of
  /// which it is row `number`: [rows, features], or [rows].
  llvm::SmallVector<mlir::Value>
  emitRow(mlir::OpBuilder &builder, mlir::Location loc, mlir::ValueRange rooms,
          const Item &item, mlir::Value number, mlir::OpFoldResult inTile,
          int64_t usual, mlir::ValueRange outs);

  mlir::scf::ForallOp loop;
  int64_t queryTile = 0;
  /// The rows of a query, and how many of them have a head.
  int64_t group = 1, heads = 1;
  FinalizeOp tile;
  /// The rows of a tile.
  mlir::Value rows;
  /// What says where these are.
  ItemSlice places;

  /// Where a result of the tile is written.
  struct Written {
    mlir::tensor::ParallelInsertSliceOp insertion;
    unsigned number;
    int64_t rowDim;
  };
  llvm::SmallVector<Written> written;
};

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILEPARTS_H
