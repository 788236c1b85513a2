//===- RunCopy.h - Copies of rows that a region places ----------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_TILETONVVM_RUNCOPY_H
#define FOVEA_LIB_CONVERSION_TILETONVVM_RUNCOPY_H

#include "fovea/Dialect/Tile/IR/Tile.h"
#include "mlir/IR/PatternMatch.h"

namespace fovea::tile {

/// Emits the region that gives the place of a row, an index: the index in each
/// dimension of the source but the last.
llvm::SmallVector<mlir::Value> emitPlace(mlir::OpBuilder &builder,
                                         mlir::Region &place, mlir::Value row);

/// The rows of a tile that a load does not leave out, i32s from 0 to their
/// number: all of them if `bounds` is empty.
struct KeptRows {
  KeptRows(mlir::OpBuilder &builder, mlir::Location loc, SharedType tile,
           mlir::ValueRange bounds);

  mlir::Value first, end, count;
  /// Conditions: the load leaves out all rows; it leaves out some but not all.
  mlir::Value isEmpty, isCut;
};

/// Copies a tile whose rows a region places into shared memory at `address`, by
/// all threads that run `op`, a load or load_async from a memref. With `full`,
/// each thread arrives at that mbarrier when its part of the copy is complete;
/// otherwise `cp.async.wait_group` waits for the copy. `acquire` emits what has
/// to come before the first write; places of rows are known before.
template <typename OpTy>
void emitRunCopy(
    mlir::RewriterBase &rewriter, OpTy op, SharedType type, mlir::Value address,
    mlir::Value full = {}, llvm::function_ref<void()> acquire = [] {});

} // namespace fovea::tile

#endif // FOVEA_LIB_CONVERSION_TILETONVVM_RUNCOPY_H
