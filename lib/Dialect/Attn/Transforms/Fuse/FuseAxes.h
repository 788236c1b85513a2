//===- FuseAxes.h - Iteration spaces as products of axes --------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// attn-fuse sees through reshapes, transposes and broadcasts by giving every
// dimension of every tensor a list of axes. An axis is one factor of the
// iteration space of the last contraction; a dimension's index is the mixed
// radix number of its axes, the outermost first; a dimension without axes is
// read at 0. Collapsing concatenates lists; expanding cuts them, where needed
// by splitting an axis into factors.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_FUSE_FUSEAXES_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_FUSE_FUSEAXES_H

#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace fovea::attn::fuse {

using Axis = unsigned;
/// The axes of one dimension, outermost first.
using Axes = llvm::SmallVector<Axis, 2>;
/// The axes of every dimension of a tensor, which say where the tensor is read.
using Access = llvm::SmallVector<Axes, 4>;
/// The axes of the loops of a structured op, as far as they are known.
using Loops = llvm::SmallVector<std::optional<Axes>, 6>;

class AxisTable {
public:
  /// Returns the axis of a loop of `op`; the same one at every call.
  Axis getLoop(mlir::Operation *op, unsigned loop, int64_t size);

  /// Returns the KV head that query head `head` reads where the number of query
  /// heads per KV head is known only at run time; the same one at every call.
  Axis getKVHead(Axis head);
  /// Returns the axis that getKVHead made for `head`, if any.
  std::optional<Axis> lookupKVHead(Axis head) const;

  /// Returns the number of values of `axis`, or ShapedType::kDynamic.
  int64_t size(Axis axis) const { return entries[axis].size; }
  /// Returns the product of the sizes of `axes`, or ShapedType::kDynamic.
  int64_t size(llvm::ArrayRef<Axis> axes) const;

  /// States that the product of the sizes of `axes` is `size`.
  void learn(llvm::ArrayRef<Axis> axes, int64_t size);
  /// States that a tensor of type `type` is read at `access`.
  void learn(mlir::RankedTensorType type, const Access &access);

  /// Keeps `axes` in lists even if they turn out to have size one.
  void keep(llvm::ArrayRef<Axis> axes);

  /// Returns `axes` in terms of unsplit axes, without those of size one unless
  /// kept.
  Axes flatten(llvm::ArrayRef<Axis> axes) const;
  Access flatten(const Access &access) const;

  /// Cuts `axes` into consecutive lists whose sizes have the products `sizes`,
  /// splitting axes where needed. Returns nullopt where sizes that are not
  /// known statically allow more than one way, or where factors do not nest.
  std::optional<llvm::SmallVector<Axes>> cut(llvm::ArrayRef<Axis> axes,
                                             llvm::ArrayRef<int64_t> sizes);

  /// Returns the axes of an indexing expression of the loops `loops`: a loop,
  /// zero, or a factor or product of loops (`d0 floordiv 4`, `d0 * 4 + d1`).
  std::optional<Axes> apply(mlir::AffineExpr expr, const Loops &loops);
  std::optional<Access> apply(mlir::AffineMap map, const Loops &loops);

  /// Returns true if an axis was split or learnt a size since the last call.
  /// Results from before that name axes in more than one way.
  bool takeChanged() { return std::exchange(changed, false); }

private:
  struct Entry {
    int64_t size;
    std::optional<std::pair<Axis, Axis>> parts = std::nullopt;
    bool isKept = false;
  };

  Axis create(int64_t size);
  std::pair<Axis, Axis> split(Axis axis, int64_t outer, int64_t inner);
  std::optional<Axes> applySum(mlir::AffineBinaryOpExpr sum,
                               const Loops &loops);
  void flattenInto(Axis axis, Axes &result) const;

  llvm::SmallVector<Entry> entries;
  llvm::DenseMap<std::pair<mlir::Operation *, unsigned>, Axis> loopAxes;
  llvm::DenseMap<Axis, Axis> kvHeads;
  bool changed = false;
};

} // namespace fovea::attn::fuse

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_FUSE_FUSEAXES_H
