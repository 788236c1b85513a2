//===- ItemSlice.h - What items of a parallel loop compute ------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tables in front of a parallel loop hold what its items would compute, for
// each item that the values tell apart.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_ITEMSLICE_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_ITEMSLICE_H

#include "fovea/Analysis/IndexMath.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

namespace fovea::attn {

/// The ops of a parallel loop that some values are computed by.
class ItemSlice {
public:
  explicit ItemSlice(mlir::scf::ForallOp loop) : loop(loop) {}

  /// Adds the ops that `value` is computed by from `given`, if that is there.
  /// Returns false if some cannot be computed before the loop.
  bool collect(mlir::Value value, mlir::Value given = {});

  /// Returns true if the ops and the loop's bounds, and `others`, are the same
  /// whenever the loop is repeated.
  bool areRepeated(llvm::ArrayRef<mlir::Value> others) const;

  /// Returns the outermost of the loops that repeat the parallel loop, or
  /// itself: tables stand in front of it.
  mlir::Operation *getRoot() const;

  /// Returns the numbers of items along the dimensions that the ops depend on.
  llvm::SmallVector<mlir::OpFoldResult> getShape(IndexMath &math) const;
  /// Returns the number of items along all dimensions of the loop.
  mlir::OpFoldResult countItems(IndexMath &math) const;
  /// Maps the loop's induction variables to those of an item of this number.
  void mapItem(IndexMath &math, mlir::ValueRange number,
               mlir::IRMapping &mapping) const;
  /// Returns the number of the loop's own item.
  llvm::SmallVector<mlir::Value> getNumber(IndexMath &math) const;

  /// Each op comes after those that it needs.
  llvm::ArrayRef<mlir::Operation *> getOps() const { return ops.getArrayRef(); }
  /// The dimensions of the loop that the ops depend on.
  llvm::ArrayRef<int64_t> getDims() const { return dims.getArrayRef(); }

private:
  mlir::scf::ForallOp loop;
  llvm::SetVector<mlir::Operation *> ops;
  llvm::SetVector<int64_t> dims;
};

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_ITEMSLICE_H
