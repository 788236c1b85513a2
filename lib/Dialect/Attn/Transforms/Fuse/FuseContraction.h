//===- FuseContraction.h - Products of two tensors --------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_FUSE_FUSECONTRACTION_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_FUSE_FUSECONTRACTION_H

#include "FuseScalars.h"

namespace fovea::attn::fuse {

/// An op that sums products of elements of two tensors: attn.scores,
/// attn.values, or a structured op of linalg, named or not.
struct Contraction {
  mlir::Operation *op;
  /// The two tensors, and where they are read for the result's element.
  std::array<mlir::Value, 2> inputs;
  std::array<Access, 2> accesses;
  /// The access at which the result is read.
  Access resultAccess;
  /// The axes that are summed over.
  Axes reduced;
  /// The value that the sum starts from; null in attn ops.
  mlir::Value init;
  Access initAccess;
  bool startsAtZero;
};

/// Returns true if `op` could be a contraction, without a closer look.
bool isContractionLike(mlir::Operation *op);

/// Returns the contraction whose result is `result`, read at `access`.
std::optional<Contraction>
matchContraction(ScalarGraph &graph, mlir::Value result, const Access &access);

/// A reduction over one loop.
struct Reduction {
  /// The op of the payload that combines, such as arith.addf.
  mlir::Operation *combiner;
  /// The value that the reduction starts from, and the element that is
  /// combined.
  mlir::Value init, element;
};

/// Returns the reduction whose result is `result`, read at `access`, with
/// `along` in place of the loop that is reduced over.
std::optional<Reduction> matchReduction(ScalarGraph &graph, mlir::Value result,
                                        const Access &access,
                                        llvm::ArrayRef<Axis> along);

/// Returns true if `op` is a structured op with a loop that is not parallel,
/// other than a contraction.
bool isReduction(mlir::Operation *op);

} // namespace fovea::attn::fuse

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_FUSE_FUSECONTRACTION_H
