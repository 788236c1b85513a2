//===- KeyBounds.h - The keys that a mask keeps of a query ------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_ATTNTOTILE_KEYBOUNDS_H
#define FOVEA_LIB_CONVERSION_ATTNTOTILE_KEYBOUNDS_H

#include "fovea/Analysis/IndexMath.h"

#include "mlir/IR/Region.h"

namespace fovea {

/// Conditions of a mask that compare the key with what a query, or all of
/// them, have: together they keep the keys from one on and below another. A row
/// of a tile so has two numbers, and an element a comparison with each, however
/// many conditions there are.
class KeyBounds {
public:
  /// Returns the bounds in `mask`; nullopt if there are none that are joined,
  /// of conditions that must hold.
  static std::optional<KeyBounds> get(mlir::Region &mask);

  /// Emits a value of the mask's region for a query, and the key 0.
  using Emitter = llvm::function_ref<mlir::Value(mlir::Value)>;

  /// Returns true if there are keys in front of the first one that is kept.
  bool hasFirst() const { return !firsts.empty(); }
  /// Emits the first key that is kept; there is a bound on it.
  mlir::OpFoldResult emitFirst(IndexMath &math, Emitter emit) const;
  /// Emits the key behind the last one that is kept.
  mlir::OpFoldResult emitEnd(IndexMath &math, Emitter emit) const;

  /// The conditions on a key that must hold, too.
  llvm::ArrayRef<mlir::Value> getRest() const { return rest; }

private:
  class KeyTerms;

  /// `keys < other`, or the same with another predicate, where `keys` is the
  /// key, times 1 or -1, and what does not depend on it.
  struct Bound {
    mlir::Value keys, other;
    bool isNegated;
    /// True if `keys` is nothing but the key.
    bool isAlone;
    /// True if `other` may be so large that sums with it wrap.
    bool isWide;
    /// True if the limit is behind the number where both sides are equal.
    bool isBehind;
  };

  bool add(mlir::Value condition, const KeyTerms &terms);
  static mlir::OpFoldResult emitLimit(IndexMath &math, const Bound &bound,
                                      Emitter emit);

  /// Bounds on the last key that is kept, and on the first one.
  llvm::SmallVector<Bound> ends, firsts;
  /// Conditions that do not depend on the key.
  llvm::SmallVector<mlir::Value> conditions;
  llvm::SmallVector<mlir::Value> rest;
};

} // namespace fovea

#endif // FOVEA_LIB_CONVERSION_ATTNTOTILE_KEYBOUNDS_H
