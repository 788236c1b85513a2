//===- MaskAnalysis.h - Tiles that a mask keeps -----------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Decides from a mask region which tiles of the score matrix the mask keeps:
// EMPTY tiles need not be visited, FULL tiles need no mask code, PARTIAL ones
// are masked element by element. The region is evaluated over a box of
// coordinates instead of a point: integers become intervals (Moore, "Interval
// Analysis", 1966) and conditions become three-valued (Kleene, "Introduction to
// Metamathematics", 1952, section 64). The result is IR, a few integer
// operations for each block of rows or tile, or a constant where the box is
// constant; nothing has to be known at compile time.
//
// R1  A value that depends only on coordinates which are one point in the box
//     (usually batch and head) is *uniform*: it is computed unchanged,
//     whatever ops define it. So lengths and offsets that are read from
//     captured tensors are exact.
// R2  An integer or condition that reads captured tensors, and depends on the
//     row or on the key but not on both, is looked up in a *table* of its
//     minimum and maximum in each block, made once before the loops. So
//     documents and padding masks need no block mask.
// R3  An integer is an interval. Add, subtract, multiply, divisions,
//     remainders, minimum, maximum, absolute value, shifts, bitwise and/or,
//     selections, extensions and affine maps have interval rules; anything
//     else has the range of its type.
// R4  Intervals hold ideal integers, not wrapping ones. Where the ranges of
//     the types do not prove that an operation cannot wrap, its interval is
//     *sound* only under a condition that is computed with it, once for each
//     block of rows over all its keys. A comparison of values that are not
//     sound is undecided.
// R5  A condition is a pair: `any` (it may hold somewhere in the box) and
//     `all` (it holds everywhere). A comparison is decided on the ends of its
//     sides, or on the linear form of their difference where a value occurs in
//     it twice and may cancel; an unsigned comparison is reduced to signed
//     ones; and, or, not, select follow Kleene.
// R6  The keys of a block of rows, and the rows of a block of keys, are bounded
//     by solving each comparison for the key or the row, through linear forms,
//     divisions, minima, maxima and absolute values: `and` intersects the
//     solutions, `or` takes their hull, `not` is pushed inwards. Where the
//     solutions are intervals joined by `and`, or half-lines of one direction
//     joined by `or`, asking every tile for `any` would exclude no more tiles,
//     and the bounds are called exact. Where also all other sides are points,
//     as a length is, all that is between the bounds is kept: they are
//     complete.
// R7  Keys outside of bounds that come from lengths, paddings and positions
//     hold nothing yet: they are *absent* for every row, and code that
//     multiplies their values by zero must read zeros there. These bounds are
//     those of R6 without comparisons of the row that involve no captured
//     value.
//
// The answers are conservative: EMPTY and FULL are always proven.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_ANALYSIS_MASKANALYSIS_H
#define FOVEA_ANALYSIS_MASKANALYSIS_H

#include "fovea/Analysis/IndexMath.h"
#include "fovea/Dialect/Attn/IR/Coordinates.h"
#include "fovea/Support/MaxPosition.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Region.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <functional>
#include <memory>

namespace fovea {

using attn::Coordinate;

/// Returns the bit of `coordinate` in a set of coordinates.
constexpr unsigned bitOf(Coordinate coordinate) {
  return 1u << attn::getScoreDim(coordinate);
}

/// Values from `first` to `last`, both included.
struct Span {
  mlir::OpFoldResult first, last;
};

/// A box of scores; never empty.
using MaskBox = attn::PerCoordinate<Span>;

/// A condition over a box.
struct Truth {
  mlir::OpFoldResult any; ///< It may hold somewhere.
  mlir::OpFoldResult all; ///< It holds everywhere.
};

enum class TileKind { Empty, Full, Partial };

/// The bounds [lower, upper) outside of which a block of rows (or keys) keeps
/// no keys (or rows). If it keeps none at all, `upper` is the box's first one.
/// `exact` means that `Truth::any` holds for every tile that touches the
/// bounds, and `complete` that `Truth::all` holds between them (rule R6).
struct MaskBounds {
  mlir::OpFoldResult lower, upper;
  bool exact, complete;
};

/// The keys from `first` (if set) to below `end` (if set). Keys outside are
/// absent: their contents must not matter (see the description of
/// `attn.attention`).
struct PresentKeys {
  std::optional<mlir::OpFoldResult> first, end;
  /// More keys are absent: values that are read at the row bound them, too, and
  /// were not looked up.
  bool missesTables = false;
};

/// Returns the coordinates of the mask region that `value` depends on, as bits.
unsigned coordinatesOf(mlir::Region &mask, mlir::Value value);

/// A value of the mask region that rule R2 looks up in a table: it reads
/// tensors at the row or at the key, does not depend on both, and is part of no
/// larger value of that kind.
struct TabledValue {
  mlir::Value value;
  unsigned coordinates; ///< Those it depends on, as bits.
};
llvm::SmallVector<TabledValue> tabledValues(mlir::Region &mask);

/// Returns true if the mask region reads tensors at the row, whatever the batch
/// and the head, and none at the key: the keys that a row sees may be those of
/// a sequence that it belongs to.
bool mayHaveSequences(mlir::Region &mask);

/// Computes `value` of the mask region unchanged at a point, whose coordinates
/// `coordinate` returns when they are needed. Values in `computed` are not
/// computed again.
mlir::Value computeAt(mlir::OpBuilder &builder, mlir::Region &mask,
                      mlir::Value value,
                      llvm::function_ref<mlir::Value(Coordinate)> coordinate,
                      mlir::IRMapping &computed);

/// Evaluates a mask region over one box.
///
/// Over constant boxes the evaluator needs no builder and makes no IR;
/// conditions on captured values are then undecided. With a builder the ends of
/// the box may be values, and ops are inserted at the builder's insertion
/// point.
class MaskEvaluator {
public:
  struct Impl;

  /// Evaluates over a box of constants.
  MaskEvaluator(mlir::Region &mask, const MaskBox &box);
  MaskEvaluator(mlir::Region &mask, const MaskBox &box, mlir::OpBuilder builder,
                mlir::Location loc);
  /// Evaluates over the tile `part` of `whole`, cut along the coordinate for
  /// which `whole` has computed `bounds`. Values that do not depend on that
  /// coordinate, and the conditions of soundness, were computed there.
  MaskEvaluator(MaskEvaluator &whole, Span part, mlir::OpBuilder builder);
  ~MaskEvaluator();

  /// Looks up a tabled value. Returns its minimum and maximum over the box (for
  /// booleans `all` and `any`), or nullopt, which leaves the value undecided.
  using Lookup = std::function<std::optional<Span>(mlir::Value, IndexMath &)>;
  void setLookup(Lookup lookup);

  /// Evaluates the condition that the region yields.
  Truth evaluate();
  /// Evaluates the region over a box of constants. An undecided condition is
  /// `Partial`.
  TileKind classify();
  /// Returns bounds of the keys that the box's rows keep, or of the rows that
  /// keep any of the box's keys, within the box.
  MaskBounds bounds(Coordinate along);
  /// Returns bounds of the keys that the box's rows keep, from only those
  /// comparisons that do not depend on the row or that depend on captured
  /// values: so lengths, paddings and positions bound the keys, but a diagonal
  /// that follows from sizes does not.
  PresentKeys presentKeys();

private:
  std::unique_ptr<Impl> impl;
};

} // namespace fovea

#endif // FOVEA_ANALYSIS_MASKANALYSIS_H
