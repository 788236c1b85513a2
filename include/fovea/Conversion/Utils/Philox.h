//===- Philox.h - Philox-4x32-10 as arith operations ------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The counter-based generator behind attn.dropout, emitted as arith ops on i32,
// or on vectors of i32, one counter a lane. The dialect's description says how
// an element's place becomes a counter.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_CONVERSION_UTILS_PHILOX_H
#define FOVEA_CONVERSION_UTILS_PHILOX_H

#include "mlir/IR/Builders.h"
#include <array>
#include <cstdint>

namespace fovea {

/// Emits the four words of Philox-4x32-10 of `counter` under `key`, least
/// significant word first. All values have one type: i32, or a vector of i32.
std::array<mlir::Value, 4> emitPhilox(mlir::OpBuilder &builder,
                                      mlir::Location loc,
                                      const std::array<mlir::Value, 4> &counter,
                                      const std::array<mlir::Value, 2> &key);

/// Returns the smallest random word that keeps an element: floor(probability *
/// 2^32). `probability` is in [0, 1).
uint32_t getDropoutThreshold(double probability);

/// Emits, for scalars of type index (`column`, `row`) and i64 (`seed`,
/// `offset`), the i1 that is true if dropout keeps the element at `column` of
/// `row`.
mlir::Value emitDropoutKeep(mlir::OpBuilder &builder, mlir::Location loc,
                            mlir::Value column, mlir::Value row,
                            mlir::Value seed, mlir::Value offset,
                            double probability);

} // namespace fovea

#endif // FOVEA_CONVERSION_UTILS_PHILOX_H
