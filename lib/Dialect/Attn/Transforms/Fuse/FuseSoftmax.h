//===- FuseSoftmax.h - Softmax as one op or as its steps --------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_FUSE_FUSESOFTMAX_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_FUSE_FUSESOFTMAX_H

#include "FuseContraction.h"
#include "fovea/Dialect/Attn/IR/Attn.h"

#include <string>

namespace fovea::attn::fuse {

struct Softmax {
  /// What is exponentiated, less the row's maximum, in any float type.
  mlir::Value score;
  /// The dropout after it, if any, and where that is read.
  DropoutOp dropout;
  Access dropoutAccess;
  /// What the softmax is of, if that is one op along the last dimension, and
  /// where it is read.
  mlir::Value input;
  Access inputAccess;
};

/// Explains probability `p`, read for the values that are contracted along
/// `keys`, as a softmax along `keys`: attn.softmax, linalg.softmax, or
/// exponentials divided by their sum, less any term that is the same for a
/// whole row. `why` says what is in the way otherwise.
std::optional<Softmax> matchSoftmax(ScalarGraph &graph, mlir::Value p,
                                    llvm::ArrayRef<Axis> keys,
                                    std::string &why);

/// The same where the contraction with values comes before the division by the
/// sum: `p` is an exponential, and `denominator` what its row's result is
/// divided by.
std::optional<Softmax> matchSoftmax(ScalarGraph &graph, mlir::Value p,
                                    mlir::Value denominator,
                                    llvm::ArrayRef<Axis> keys,
                                    std::string &why);

/// If `quotient` divides a scalar by another, or multiplies it with the
/// reciprocal of another, those two; both null otherwise.
std::pair<mlir::Value, mlir::Value> matchQuotient(mlir::Value quotient);

/// Whether `op` is a softmax, or sums exponentials along a row.
bool isSoftmaxLike(mlir::Operation *op);

} // namespace fovea::attn::fuse

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_FUSE_FUSESOFTMAX_H
