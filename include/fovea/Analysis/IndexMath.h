//===- IndexMath.h - Index arithmetic on constants or IR --------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_ANALYSIS_INDEXMATH_H
#define FOVEA_ANALYSIS_INDEXMATH_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

namespace fovea {

/// Arithmetic on `index` and `i1` values that may be constants (attributes).
/// Constants are computed at once and never become IR; identities such as
/// `x + 0`, `min(x, x)` and `c and true` are folded; everything else becomes
/// `arith` ops at the builder's insertion point. Arithmetic wraps as in
/// `arith`.
///
/// Without a builder, all operands must be constants, and so are all results.
class IndexMath {
public:
  using Fold = mlir::OpFoldResult;

  explicit IndexMath(mlir::MLIRContext *context) : context(context) {}
  IndexMath(mlir::OpBuilder builder, mlir::Location loc)
      : context(builder.getContext()), builder(builder), loc(loc) {}

  bool emits() const { return builder.has_value(); }
  mlir::OpBuilder &getBuilder() { return *builder; }
  mlir::Location getLoc() const { return *loc; }

  Fold constant(int64_t value) const;
  Fold boolean(bool value) const;
  /// Returns the value of a constant; booleans are 0 and 1.
  static std::optional<int64_t> constantOf(Fold value);
  static bool isTrue(Fold value) { return constantOf(value) == 1; }
  static bool isFalse(Fold value) { return constantOf(value) == 0; }
  mlir::Value materialize(Fold value, bool isBoolean = false);

  Fold add(Fold a, Fold b);
  Fold sub(Fold a, Fold b);
  Fold mul(Fold a, Fold b);
  /// Quotients by a divisor of at least 1, rounded down, up and to zero.
  Fold floorDiv(Fold a, Fold b);
  Fold ceilDiv(Fold a, Fold b);
  Fold truncDiv(Fold a, Fold b);
  /// The quotient, rounded down, of numbers that are not negative and fit in 32
  /// bits, as those of tiles and keys do: on GPUs a division of 64 bits is a
  /// branch, behind which what a kernel reads first would wait.
  Fold narrowDiv(Fold a, Fold b);
  Fold min(Fold a, Fold b);
  Fold max(Fold a, Fold b);

  Fold less(Fold a, Fold b);      ///< a < b, signed.
  Fold lessEqual(Fold a, Fold b); ///< a <= b, signed.
  Fold equal(Fold a, Fold b);
  Fold logicalAnd(Fold a, Fold b);
  Fold logicalOr(Fold a, Fold b);
  Fold logicalNot(Fold a);
  Fold select(Fold condition, Fold a, Fold b);
  /// `condition ? value : otherwise` on booleans; `value` may be poison where
  /// the condition does not hold.
  Fold guard(Fold condition, Fold value, bool otherwise);

private:
  Fold compare(mlir::arith::CmpIPredicate predicate, Fold a, Fold b);
  template <typename OpTy>
  Fold emit(Fold a, Fold b, bool isBoolean = false);

  mlir::MLIRContext *context;
  std::optional<mlir::OpBuilder> builder;
  std::optional<mlir::Location> loc;
};

} // namespace fovea

#endif // FOVEA_ANALYSIS_INDEXMATH_H
