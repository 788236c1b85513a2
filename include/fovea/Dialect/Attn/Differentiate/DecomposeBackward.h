//===- DecomposeBackward.h - The textbook's backward pass -------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DIALECT_ATTN_DIFFERENTIATE_DECOMPOSEBACKWARD_H
#define FOVEA_DIALECT_ATTN_DIFFERENTIATE_DECOMPOSEBACKWARD_H

#include "fovea/Dialect/Attn/IR/Attn.h"

namespace fovea::attn {

/// Replaces `op` with ops of the graph. Fails with an error if its score region
/// has no derivative.
mlir::LogicalResult decomposeBackward(AttentionBackwardOp op);

} // namespace fovea::attn

#endif // FOVEA_DIALECT_ATTN_DIFFERENTIATE_DECOMPOSEBACKWARD_H
