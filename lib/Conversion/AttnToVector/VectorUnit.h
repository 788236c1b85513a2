//===- VectorUnit.h - Vector unit that kernels are shaped for ---*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_ATTNTOVECTOR_VECTORUNIT_H
#define FOVEA_LIB_CONVERSION_ATTNTOVECTOR_VECTORUNIT_H

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/bit.h"

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace fovea::attn {

struct VectorUnit {
  int64_t bytes = 64;
  int64_t registers = 32;
  /// True if the instructions are those of AVX-512.
  bool isAVX512 = false;
  /// True if vectors multiply pairs in bf16 (AVX512-BF16).
  bool hasDotProducts = false;

  /// Returns the number of elements of a vector of `type`, a power of two.
  int64_t lanes(mlir::Type type) const {
    int64_t elements = bytes * 8 / type.getIntOrFloatBitWidth();
    return std::max<int64_t>(1, llvm::bit_floor(uint64_t(elements)));
  }

  /// Returns the largest number of lanes that also divides `count`.
  int64_t lanesDividing(mlir::Type type, int64_t count) const {
    return std::gcd(lanes(type), count);
  }

  /// Returns the number of accumulators that a register tile may have: more
  /// would leave too few registers for its operands.
  int64_t accumulators() const {
    return std::max<int64_t>(1, registers * 3 / 4);
  }
};

} // namespace fovea::attn

#endif // FOVEA_LIB_CONVERSION_ATTNTOVECTOR_VECTORUNIT_H
