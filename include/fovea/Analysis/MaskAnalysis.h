//===- MaskAnalysis.h - Which tiles a mask keeps ----------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Decides from a mask region which tiles of the score matrix it leaves: EMPTY
// tiles need not be visited, FULL tiles need no mask code, PARTIAL ones are
// masked element by element. The region is evaluated over a box of coordinates
// instead of a point: integers become intervals (Moore, "Interval Analysis",
// 1966) and conditions become three-valued (Kleene, "Introduction to
// Metamathematics", 1952, section 64). The result is IR, a few integer
// operations for each block of rows or tile, or a constant where the box is
// constant; nothing has to be known when compiling.
//
// R1  A value that depends only on coordinates which are one point in the box
//     (usually batch and head) is *uniform*: it is computed as it stands,
//     whatever it is made of. So lengths and offsets that are read from
//     captured tensors are exact.
// R2  An integer or condition that reads captured tensors, and depends on the
//     row or on the key but not on both, is looked up in a *table* of its
//     minimum and maximum in each block, made once before the loops. So
//     documents and padding masks need no block mask.
// R3  An integer is an interval. Add, subtract, multiply, divisions,
//     remainders, minimum, maximum, absolute value, shifts, bitwise and/or,
//     selections, extensions and affine maps have interval rules; anything
//     else has the range of its type.
// R4  Intervals are of ideal integers, not of wrapping ones. Where the ranges
// of
//     the types do not prove that an operation cannot wrap, its interval is
//     *sound* only under a condition that is computed with it, once for each
//     block of rows over all its keys. A comparison of values that are not
//     sound is undecided.
// R5  A condition is the pair `any` (it may hold somewhere in the box) and
// `all`
//     (it holds everywhere). A comparison is decided on the ends of its sides,
//     or on the linear form of their difference where something occurs in it
//     twice and may cancel; an unsigned one is reduced to signed ones; and, or,
//     not, select follow Kleene.
// R6  The keys of a block of rows, and the rows of a block of keys, are bounded
//     by solving each comparison for the key or the row, through linear forms,
//     divisions, minima, maxima and absolute values: `and` intersects the
//     solutions, `or` takes their hull, `not` is pushed inwards. Where the
//     solutions are intervals joined by `and`, or half-lines of one direction
//     joined by `or`, asking every tile for `any` would leave out no more, and
//     the bounds are called exact.
//
// R7  Keys outside of bounds that come from lengths, paddings and positions
//     hold nothing yet: they are *absent* for every row, and who multiplies
//     their values by zero must read zeros there. These bounds are those of R6
//     without comparisons of the row that no captured value takes part in.
//
// The answers are conservative: EMPTY and FULL are proofs.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_ANALYSIS_MASKANALYSIS_H
#define FOVEA_ANALYSIS_MASKANALYSIS_H

#include "fovea/Analysis/IndexMath.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Region.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <functional>
#include <memory>

namespace fovea {

/// The coordinates of a score, in the order of a mask region's arguments.
enum class Coordinate { Batch, Head, Row, Key };

/// The bit of `coordinate` in a set of coordinates.
constexpr unsigned bitOf(Coordinate coordinate) {
  return 1u << static_cast<unsigned>(coordinate);
}

/// Positions beyond this are not reached: a bound for sizes that are dynamic.
inline constexpr int64_t kMaxPosition = int64_t(1) << 48;

/// Values from `first` to `last`, both included.
struct Span {
  mlir::OpFoldResult first, last;
};

/// A box of scores, not empty.
struct MaskBox {
  Span batch, head, row, key;

  const Span &operator[](Coordinate coordinate) const;
};

/// A condition over a box.
struct Truth {
  mlir::OpFoldResult any; ///< It may hold somewhere.
  mlir::OpFoldResult all; ///< It holds everywhere.
};

enum class TileKind { Empty, Full, Partial };

/// The keys (or rows) from `lower` to below `upper`, outside of which a block
/// of rows (or keys) keeps none; `upper` is the box's first one if there are
/// none. `exact`: among the tiles that touch them there is none for which
/// `Truth::any` is false (rule R6).
struct MaskBounds {
  mlir::OpFoldResult lower, upper;
  bool exact;
};

/// The keys from `first`, if there is one, to below `end`, if there is one:
/// those outside are absent, and what they hold must not matter (the
/// description of `attn.attention`).
struct PresentKeys {
  std::optional<mlir::OpFoldResult> first, end;
};

/// The coordinates of the mask region that `value` depends on, as bits.
unsigned coordinatesOf(mlir::Region &mask, mlir::Value value);

/// A value of the mask region that rule R2 looks up: one of the largest that
/// read tensors at the row, or at the key, and do not depend on both.
struct TabledValue {
  mlir::Value value;
  unsigned coordinates; ///< What it depends on, as bits.
};
llvm::SmallVector<TabledValue> tabledValues(mlir::Region &mask);

/// Computes `value` of the mask region as it stands at a point, whose
/// coordinates `coordinate` gives as they are needed. Values that are in
/// `computed` are not computed again.
mlir::Value computeAt(mlir::OpBuilder &builder, mlir::Region &mask,
                      mlir::Value value,
                      llvm::function_ref<mlir::Value(Coordinate)> coordinate,
                      mlir::IRMapping &computed);

/// Evaluates a mask region over one box.
///
/// Over constant boxes it needs no builder and makes no IR; what captured
/// values decide is then undecided. With a builder the ends of the box may be
/// values, and what has to be computed is inserted there.
class MaskEvaluator {
public:
  struct Impl;

  /// Over a box of constants.
  MaskEvaluator(mlir::Region &mask, const MaskBox &box);
  MaskEvaluator(mlir::Region &mask, const MaskBox &box, mlir::OpBuilder builder,
                mlir::Location loc);
  /// The tile `part` of `whole` along the coordinate whose `bounds` have been
  /// asked for there. What does not depend on that coordinate has been computed
  /// there, and so have the conditions of soundness.
  MaskEvaluator(MaskEvaluator &whole, Span part, mlir::OpBuilder builder);
  ~MaskEvaluator();

  /// How a tabled value is looked up: its minimum and maximum over the box
  /// (booleans: `all` and `any`), or nothing, which leaves it undecided.
  using Lookup = std::function<std::optional<Span>(mlir::Value, IndexMath &)>;
  void setLookup(Lookup lookup);

  /// The value that the region yields.
  Truth evaluate();
  /// The same over a box of constants. Undecided is `Partial`.
  TileKind classify();
  /// Bounds of the keys that the box's rows keep, or of the rows that keep any
  /// of the box's keys, within the box.
  MaskBounds bounds(Coordinate along);
  /// Bounds of the keys that the box's rows keep by those comparisons alone
  /// that do not depend on the row, or that depend on captured values, too: so
  /// lengths, paddings and positions bound them, but no diagonal does that
  /// follows from sizes.
  PresentKeys presentKeys();

private:
  std::unique_ptr<Impl> impl;
};

} // namespace fovea

#endif // FOVEA_ANALYSIS_MASKANALYSIS_H
