//===- WidenBytes.h - Bytes in registers as numbers of 16 bits --*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An f8E4M3FN becomes a pair of f16 by one instruction (`cvt`, PTX ISA
// 9.7.9.21); an f16 becomes a bf16 through f32. All of these are exact, and
// keep NaN.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_TILETONVVM_WIDENBYTES_H
#define FOVEA_LIB_CONVERSION_TILETONVVM_WIDENBYTES_H

#include "mlir/IR/Builders.h"

namespace fovea::tile {

/// Widens four floats of 8 bits, an i32, to two pairs of `type`, f16 or bf16,
/// i32s: of the first two and of the last two, or, `everyOther`, of the first
/// and the third, and of the second and the fourth.
std::pair<mlir::Value, mlir::Value>
widenBytes(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value bytes,
           mlir::Type type, bool everyOther = false);

} // namespace fovea::tile

#endif // FOVEA_LIB_CONVERSION_TILETONVVM_WIDENBYTES_H
