//===- MaskIntervals.h - Intervals of a mask region's values ----*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements rules R1 to R5 of MaskAnalysis.h.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_ANALYSIS_MASKINTERVALS_H
#define FOVEA_LIB_ANALYSIS_MASKINTERVALS_H

#include "fovea/Analysis/MaskAnalysis.h"

#include "mlir/IR/AffineMap.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace fovea {

/// Magnitudes up to this can be added without a wrap of 64 bits.
inline constexpr int64_t kSafe = int64_t(1) << 61;

/// An integer over a box: ends that are computed, and bounds of the ends that
/// are known now. It has a meaning only where `sound` holds.
struct Interval {
  mlir::OpFoldResult lo, hi;
  int64_t min, max;
  mlir::OpFoldResult sound;
};

/// A sum of values times constants, and a constant.
struct LinearForm {
  llvm::SmallMapVector<mlir::Value, int64_t, 4> terms;
  int64_t constant = 0;
  /// True if a value occurs twice, so that the form may be narrower than its
  /// parts.
  bool repeats = false;

  LinearForm negated() const;
};

struct MaskEvaluator::Impl {
  using Fold = mlir::OpFoldResult;
  struct Ends {
    Fold lo, hi;
  };
  using Rule = llvm::function_ref<Ends(IndexMath &, Ends, Ends)>;
  enum class Arithmetic { Add, Sub, Mul };

  Impl(mlir::Region &mask, const MaskBox &box, IndexMath math, Impl *whole);

  Interval integer(mlir::Value value);
  Truth condition(mlir::Value value);
  Truth compareSigned(mlir::arith::CmpIPredicate predicate, mlir::Value lhs,
                      mlir::Value rhs);

  /// Returns `lhs - rhs`, or `lhs` if `rhs` is null, if all constants are
  /// within `kSafe`.
  std::optional<LinearForm> linearize(mlir::Value lhs, mlir::Value rhs);
  /// Returns the interval of a form, unless its bounds exceed `kSafe`.
  std::optional<Interval> evaluate(const LinearForm &form);

  mlir::Value yieldedValue() const {
    return mask.front().getTerminator()->getOperand(0);
  }
  /// Returns the coordinates that `value` depends on, as bits.
  unsigned coordinatesOf(mlir::Value value);
  bool dependsOn(mlir::Value value, Coordinate coordinate) {
    return coordinatesOf(value) & bitOf(coordinate);
  }
  Fold bothSound(const Interval &a, const Interval &b) {
    return math.logicalAnd(a.sound, b.sound);
  }
  Interval point(int64_t value) const;

  mlir::Region &mask;
  MaskBox box;
  IndexMath math;
  /// The box that contains this tile, or null, and the coordinate along which
  /// it is cut: key or row.
  Impl *whole;
  Coordinate along = Coordinate::Key;
  Lookup lookup;
  llvm::SetVector<mlir::Value> tabled;

private:
  void findTabled(mlir::Value value);
  bool readsTensorAt(mlir::Value value, unsigned varying);
  Interval computeInteger(mlir::Value value);
  Interval computeOp(mlir::Operation *op);
  Interval extension(mlir::Value operand, mlir::Type type, bool isSigned);
  Interval remainder(mlir::Operation *op);
  Interval bitwise(mlir::Operation *op);
  Interval affineExpr(mlir::AffineExpr expr, unsigned numDims,
                      mlir::ValueRange operands, mlir::Value value);
  Interval affineExtremum(mlir::AffineMap map, mlir::ValueRange operands,
                          mlir::Value value, bool isMin);
  Truth computeCondition(mlir::Value value);
  Truth compare(mlir::arith::CmpIOp op);

  /// Applies `rule` to the ends of `a` and `b`; its result fits wherever they
  /// do.
  Interval apply(Rule rule, const Interval &a, const Interval &b);
  /// Returns a sum, difference or product that wraps in `value`'s type.
  Interval arithmetic(Arithmetic kind, const Interval &a, const Interval &b,
                      mlir::Value value);
  /// Applies `rule` for a divisor of at least 1.
  Interval divide(Rule rule, const Interval &a, Interval divisor,
                  mlir::Value value);
  /// Returns an ideal result as a value of `value`'s type: where it may not
  /// fit, it is sound only within the type's range, or unknown without a
  /// builder.
  Interval fit(Interval ideal, mlir::Value value);
  /// Makes `interval` sound only where it lies in [low, high].
  void require(Interval &result, const Interval &interval, int64_t low,
               int64_t high);
  Interval choose(const Truth &choice, const Interval &a, const Interval &b);
  /// Returns the interval of all values of the type.
  Interval unknown(mlir::Type type) const;

  bool isUniform(mlir::Value value);
  /// Computes a uniform value unchanged.
  mlir::Value compute(mlir::Value value);
  /// Adds `value * factor`; returns false where a constant overflows.
  bool addTerms(LinearForm &form, mlir::Value value, int64_t factor);

  llvm::DenseMap<mlir::Value, unsigned> coordinates;
  /// Values whose operation may wrap, so that they are not linear forms.
  llvm::DenseSet<mlir::Value> opaque;
  llvm::DenseMap<mlir::Value, Interval> integers;
  llvm::DenseMap<mlir::Value, Truth> conditions;
  mlir::IRMapping computed;
  /// The evaluator over the constants that bound the box, with the facts known
  /// now.
  std::unique_ptr<Impl> statics;
};

Truth truthNot(IndexMath &math, const Truth &a);
Truth truthAnd(IndexMath &math, const Truth &a, const Truth &b);
Truth truthOr(IndexMath &math, const Truth &a, const Truth &b);
Truth truthSelect(IndexMath &math, const Truth &choice, const Truth &a,
                  const Truth &b);

} // namespace fovea

#endif // FOVEA_LIB_ANALYSIS_MASKINTERVALS_H
