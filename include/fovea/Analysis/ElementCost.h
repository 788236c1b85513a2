//===- ElementCost.h - What an element of an op costs -----------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How exactly a GPU has to compute the elements of elementwise ops, and how
// many instructions an element takes.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_ANALYSIS_ELEMENTCOST_H
#define FOVEA_ANALYSIS_ELEMENTCOST_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace fovea {

/// More significant bits than any float has: functions are to be exact.
inline constexpr unsigned kAllBits = 64;

/// Returns true if `op` is one of the ops of `math` that are functions, which
/// take many instructions or those of a slower unit, and not a multiply-add,
/// nor one on signs.
bool isFunction(mlir::Operation &op);

/// Returns how many significant bits of the floats that `op` makes are wanted:
/// those of the types that they have where they are stored, or are rounded to
/// by elementwise ops that alone read them.
unsigned countWantedBits(mlir::linalg::LinalgOp op);

/// Returns true if `op`, of the region of an op of which `wantedBits` are
/// wanted, may be a GPU's approximate function of f32: its error, relative to
/// its result, is at most an eighth of the last bit, and it has no other
/// special cases than the exact one.
bool mayApproximate(mlir::Operation &op, unsigned wantedBits);

/// Returns how much an element of `op` costs on a GPU, in instructions that all
/// lanes can begin in each cycle.
unsigned countInstructions(mlir::linalg::LinalgOp op, unsigned wantedBits);

} // namespace fovea

#endif // FOVEA_ANALYSIS_ELEMENTCOST_H
