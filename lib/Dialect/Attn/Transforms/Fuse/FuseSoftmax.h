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
  /// The exponent without the row's maximum, in any float type.
  mlir::Value score;
  /// The dropout after the softmax, if any, and where it is read.
  DropoutOp dropout;
  Access dropoutAccess;
  /// The input of the softmax, if that is one op along the last dimension, and
  /// where it is read.
  mlir::Value input;
  Access inputAccess;
};

/// Matches probability `p`, read for the values that are contracted along
/// `keys`, as a softmax along `keys`: attn.softmax, linalg.softmax, or
/// exponentials divided by their sum, without any term that is the same for a
/// whole row. Otherwise `why` gives the reason.
std::optional<Softmax> matchSoftmax(ScalarGraph &graph, mlir::Value p,
                                    llvm::ArrayRef<Axis> keys,
                                    std::string &why);

/// Matches the same where the contraction with values comes before the division
/// by the sum: `p` is an exponential, and `denominator` divides its row's
/// result.
std::optional<Softmax> matchSoftmax(ScalarGraph &graph, mlir::Value p,
                                    mlir::Value denominator,
                                    llvm::ArrayRef<Axis> keys,
                                    std::string &why);

/// Returns both scalars if `quotient` divides one by the other, or multiplies
/// one by the reciprocal of the other; else two nulls.
std::pair<mlir::Value, mlir::Value> matchQuotient(mlir::Value quotient);

/// Returns true if `op` is a softmax, or sums exponentials along a row.
bool isSoftmaxLike(mlir::Operation *op);

} // namespace fovea::attn::fuse

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_FUSE_FUSESOFTMAX_H
