//===- Collector.h - Demands of ops on sizes of operands --------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_TRANSFORMS_OUTLINESHAPECHECKS_COLLECTOR_H
#define FOVEA_LIB_TRANSFORMS_OUTLINESHAPECHECKS_COLLECTOR_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <string>
#include <vector>

namespace fovea {

/// The required relation of two sizes.
enum class Relation {
  Equal,
  /// The left one is a multiple of the right one.
  Multiple,
  /// The left one is at least the right one.
  AtLeast,
  /// The left one is at most the right one.
  AtMost,
  /// The left one is 0, which means that a size does not overflow.
  Fits,
};

/// One side of a check: an index and its name.
struct CheckSide {
  mlir::Value value;
  std::string text;
};

/// A demand that an op makes.
struct ShapeCheck {
  mlir::Operation *op;
  Relation relation;
  CheckSide left, right;
};

/// The demands of all ops in a function's body (not of ops nested in control
/// flow), with the index arithmetic for both sides inserted before each op.
std::vector<ShapeCheck> collectShapeChecks(mlir::func::FuncOp function);

} // namespace fovea

#endif // FOVEA_LIB_TRANSFORMS_OUTLINESHAPECHECKS_COLLECTOR_H
