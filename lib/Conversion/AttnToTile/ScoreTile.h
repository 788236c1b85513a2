//===- ScoreTile.h - A tile of scores in the whole attention ----*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_ATTNTOTILE_SCORETILE_H
#define FOVEA_LIB_CONVERSION_ATTNTOTILE_SCORETILE_H

#include "fovea/Analysis/CaptureReads.h"
#include "fovea/Analysis/MaskAnalysis.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

#include <functional>

namespace fovea {

/// What a step reads of a captured tensor, in shared memory: a tile of the
/// shape of scores or, by `steps`, from column `first` on, a row.
struct CapturedTile {
  mlir::Value tile, first;
  mlir::DenseI64ArrayAttr steps;
};

/// The scores of a tile of queries and a tile of keys: their place, and the
/// results of regions and a dropout for one of them. Elements are named by
/// their query and key in the tile, whichever of the two a fragment has for its
/// rows.
struct ScoreTile {
  /// The place of the first element in the whole attention.
  attn::PerCoordinate<mlir::Value> at;
  int64_t queryTile, keyTile;
  /// Queries and keys that exist, counted from the first on.
  mlir::OpFoldResult queries, keys;
  /// True if the mask region must be applied.
  mlir::OpFoldResult partial;
  /// Reads of captured tensors that are made for the whole tile.
  llvm::SmallVector<TileRead> tileReads;
  /// Operands of the dropout: heads and queries of the whole, the seed and the
  /// offset.
  mlir::Value wholeHeads, wholeQueries, seed, offset;
  /// Emits a region on scalars and returns what it yields, or, if that is
  /// given, one of its values. If `existing` is not empty, ops whose result
  /// exists for some operands only are emitted for these arguments. Values that
  /// `known` maps are not computed.
  std::function<mlir::Value(mlir::OpBuilder &, mlir::Region &region,
                            mlir::ValueRange arguments,
                            mlir::ValueRange existing, mlir::Value value,
                            const mlir::IRMapping &known)>
      emitRegion;

  bool mayLackQueries() const;
  bool mayLackKeys() const;

  /// Returns the same tile with all of its keys, if it may lack some that
  /// `region`, a mask that is there, would have to be told of.
  std::optional<ScoreTile> getWhole(mlir::Region &region) const;

  /// Returns the tile of the same queries whose keys are the first ones, and
  /// all there: for what does not depend on the key.
  ScoreTile getFirst(mlir::OpBuilder &builder, mlir::Location loc) const;

  /// Returns batch, head, query and key of an element.
  llvm::SmallVector<mlir::Value> getPlace(mlir::OpBuilder &builder,
                                          mlir::Location loc,
                                          mlir::OpFoldResult query,
                                          mlir::OpFoldResult key) const;
  /// Returns the same for the ops of `region` whose result exists for some
  /// operands only: coordinates beyond the last query or key are clamped to it.
  /// Returns nothing where no coordinate is, or `region` has no such op.
  llvm::SmallVector<mlir::Value> getExisting(mlir::OpBuilder &builder,
                                             mlir::Location loc,
                                             mlir::OpFoldResult query,
                                             mlir::OpFoldResult key,
                                             mlir::Region &region) const;

  /// Returns the reads of `region` that are made for the whole tile.
  llvm::SmallVector<TileRead> getTileReads(mlir::Region &region) const;

  /// Returns true if an element's key exists and `mask`, which may be empty,
  /// keeps the element. `read` are the elements of the mask's `getTileReads`.
  mlir::OpFoldResult isKept(mlir::OpBuilder &builder, mlir::Location loc,
                            mlir::OpFoldResult query, mlir::OpFoldResult key,
                            mlir::Region &mask,
                            mlir::ValueRange read = {}) const;

  /// Returns a value of the mask, or where that is null whether it keeps the
  /// element.
  mlir::Value emit(mlir::OpBuilder &builder, mlir::Location loc,
                   mlir::OpFoldResult query, mlir::OpFoldResult key,
                   mlir::Region &mask, mlir::ValueRange read,
                   mlir::Value value) const;

  /// Returns true if the dropout keeps an element.
  mlir::Value isUndropped(mlir::OpBuilder &builder, mlir::Location loc,
                          mlir::OpFoldResult query, mlir::OpFoldResult key,
                          double probability) const;
};

/// Returns true if the result of `op` exists for some operands only.
bool isPartial(mlir::Operation &op);

/// Returns `present` without its end if the end leaves out none of the `keys`
/// that exist: a load knows where memory ends.
PresentKeys dropWholeEnd(IndexMath &index, PresentKeys present,
                         mlir::OpFoldResult keys);

/// Returns the first row and the end of the rows that a load of a tile of
/// `size` keys from `first` on does not leave out; nothing if it leaves out
/// none.
llvm::SmallVector<mlir::Value> getPresentRows(IndexMath &index,
                                              const PresentKeys &present,
                                              mlir::OpFoldResult first,
                                              int64_t size);

} // namespace fovea

#endif // FOVEA_LIB_CONVERSION_ATTNTOTILE_SCORETILE_H
