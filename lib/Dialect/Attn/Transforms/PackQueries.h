//===- PackQueries.h - Queries of tiles in vector lanes ---------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_PACKQUERIES_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_PACKQUERIES_H

#include "fovea/Dialect/Attn/IR/Attn.h"

namespace fovea::attn {

/// Returns a bound of dimension 2 of `tensor`; nullopt if none up to 1024 is
/// known.
std::optional<int64_t> getTileBound(mlir::Value tensor);

/// Returns the op in front of which queries of `op` are packed: outside of all
/// loops that do not change `query`.
mlir::Operation *getPackingPlace(mlir::Operation *op, mlir::Value query);

/// Gives `op`, a tile of a bounded number of queries and keys, packed queries
/// of whole vectors of `lanes`, the derivative of its score region, and, where
/// tensors that this region captures have gradients, blocks of scores from
/// which these are computed behind it. With `makesPairs` queries are packed in
/// pairs of features. Fails with an error where the score region has no
/// derivative.
mlir::LogicalResult packBackward(OnlineBackwardOp op, int64_t lanes,
                                 bool makesPairs);

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_PACKQUERIES_H
