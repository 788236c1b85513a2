//===- KernelBuilder.h - Builder of loops, indices and vectors --*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_ATTNTOVECTOR_KERNELBUILDER_H
#define FOVEA_LIB_CONVERSION_ATTNTOVECTOR_KERNELBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace fovea::attn {

/// The indices from `first` to below `end`.
struct IndexRange {
  mlir::Value first, end;
};

/// The degree of polynomials for powers of two whose error is that of f32.
inline constexpr int64_t kFullPowerDegree = 5;

/// A builder for kernels: index arithmetic that does not wrap and that folds,
/// counted loops, element conversion, vectors. All indices are in elements.
class KernelBuilder : public mlir::ImplicitLocOpBuilder {
public:
  using Value = mlir::Value;
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;

  /// True if the target has AVX-512's instructions on fractions and powers.
  bool hasPowers = false;
  /// The degree of polynomials for powers of two in f32 by those instructions.
  int64_t powerDegree = kFullPowerDegree;
  /// True if vectors multiply pairs in bf16, not AMX tiles.
  bool hasDotProducts = false;

  /// Creates an op, or returns the value that it folds to.
  template <typename OpTy, typename... Args>
  Value fold(Args &&...args) {
    return createOrFold<OpTy>(std::forward<Args>(args)...);
  }

  //===--------------------------------------------------------------------===//
  // Indices
  //===--------------------------------------------------------------------===//

  Value index(int64_t value);
  Value add(Value a, Value b);
  Value add(Value a, int64_t b) { return add(a, index(b)); }
  Value sub(Value a, Value b);
  Value mul(Value a, Value b);
  Value mul(Value a, int64_t b) { return mul(a, index(b)); }
  Value min(Value a, Value b);
  Value max(Value a, Value b);
  /// Returns `a / b` rounded down or up, for `a >= 0` and `b > 0`.
  Value floorDiv(Value a, int64_t b);
  Value ceilDiv(Value a, int64_t b);
  /// Returns the largest multiple of `b` that is not above `a`.
  Value roundDown(Value a, int64_t b) { return mul(floorDiv(a, b), b); }
  /// Returns size `dim` of a memref, a constant where it is static.
  Value dim(Value memref, int64_t dim);

  //===--------------------------------------------------------------------===//
  // Control
  //===--------------------------------------------------------------------===//

  using LoopBody = llvm::function_ref<llvm::SmallVector<Value>(
      Value iv, mlir::ValueRange carried)>;

  /// Builds `for iv = lower to upper step step`, carrying `inits`; the body
  /// returns the values of the next iteration. No loop is created if it is
  /// known to run once or never: the body, if it runs, is built in place.
  llvm::SmallVector<Value> loop(Value lower, Value upper, int64_t step,
                                mlir::ValueRange inits, LoopBody body);
  void loop(Value lower, Value upper, int64_t step,
            llvm::function_ref<void(Value iv)> body);

  /// Runs `body` where `condition` holds.
  void when(Value condition, llvm::function_ref<void()> body);

  //===--------------------------------------------------------------------===//
  // Values
  //===--------------------------------------------------------------------===//

  /// Returns a floating-point constant of a scalar type, or of a vector type's
  /// lanes.
  Value constant(mlir::Type type, double value);
  /// Returns an integer constant of a scalar type, or of a vector type's lanes.
  Value constantInt(mlir::Type type, int64_t value);
  /// Returns `scalar` in all lanes of `type`; a value of that type is returned
  /// as is.
  Value splat(mlir::VectorType type, Value scalar);
  /// Converts a float, or a vector of floats, to the element type `element`.
  Value convert(Value value, mlir::Type element);
  /// Returns the greater of the two; `b` where either is NaN. One instruction
  /// where `arith.maximumf` is several.
  Value maxOrSecond(Value a, Value b);

  Value load(Value memref, mlir::ValueRange indices);
  Value loadVector(mlir::VectorType type, Value memref,
                   mlir::ValueRange indices);
  void store(Value value, Value memref, mlir::ValueRange indices);
};

/// A constant as the sum of two numbers of a float type, so that a product with
/// the constant, by two multiply-adds, is rounded as if the constant were
/// exact.
struct SplitConstant {
  double high, low;

  /// `type` is f32 or f64; `rest` is the exact number minus `value`.
  static SplitConstant get(mlir::Type type, double value, double rest) {
    if (type.isF64())
      return {value, rest};
    return {static_cast<float>(value), value - static_cast<float>(value)};
  }
  static SplitConstant log2e(mlir::Type type) {
    return get(type, 0x1.71547652b82fep0, 0x1.777d0ffda0d24p-56);
  }
  static SplitConstant ln2(mlir::Type type) {
    return get(type, 0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56);
  }
};

} // namespace fovea::attn

#endif // FOVEA_LIB_CONVERSION_ATTNTOVECTOR_KERNELBUILDER_H
