//===- FuseState.h - Sinks behind attention ---------------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_FUSE_FUSESTATE_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_FUSE_FUSESTATE_H

#include "fovea/Dialect/Attn/IR/Attn.h"

namespace fovea::attn::fuse {

/// Moves sinks that are columns of a softmax's input behind the values: where
/// `attn.values` reads all columns but the last of the softmax of scores and
/// one more column, the softmax becomes one of the scores, and the output is
/// multiplied by the share of the probabilities that they have.
void moveSinksBehindValues(mlir::Operation *root);

/// Makes the sinks of `attention` its `init`, if the output is only read as
/// `output / (1 + exp(sink - lse))`, and the log-sum-exp only there. Returns
/// true if that was done; `attention` is then erased.
bool raiseSinks(AttentionOp attention);

} // namespace fovea::attn::fuse

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_FUSE_FUSESTATE_H
