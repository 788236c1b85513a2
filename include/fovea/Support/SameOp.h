//===- SameOp.h - Ops that compute the same ---------------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_SUPPORT_SAMEOP_H
#define FOVEA_SUPPORT_SAMEOP_H

#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"

namespace fovea {

/// Returns an op of `block` in front of `end` that computes from the same
/// operands what `op` does, which has no effect and no region; null if there is
/// none.
mlir::Operation *findSame(mlir::Operation &op, mlir::Block &block,
                          mlir::Block::iterator end);

} // namespace fovea

#endif // FOVEA_SUPPORT_SAMEOP_H
