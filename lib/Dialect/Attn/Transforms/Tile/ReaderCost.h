//===- ReaderCost.h - Whether readers pay in registers ----------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A GPU's block computes elementwise readers of its output while no product
// runs. They are worth it if that is sooner than a kernel that reads the output
// and what else they need, and writes what they make.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_READERCOST_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_READERCOST_H

#include "TileConsumers.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace fovea::attn {

/// Returns true if `op` visits each element of an operand once (a contraction
/// does not), and its parallel loops alone give the positions in its results.
bool isElementwiseOrRowSum(mlir::linalg::LinalgOp op);

/// Returns the op that inserts result `number` of `loop`; null if there is not
/// exactly one.
mlir::tensor::ParallelInsertSliceOp insertionOf(mlir::scf::ForallOp loop,
                                                unsigned number);

/// Returns the reason for which the elements of `reader`, a reader of results
/// of `loop` without a register objection, and of its readers in turn, cost
/// more in the loop, where a thread has `tile` of the output, than in a kernel
/// of their own, or nullopt if they do not.
std::optional<llvm::StringRef> findCostObjection(mlir::scf::ForallOp loop,
                                                 mlir::linalg::LinalgOp reader,
                                                 const ThreadTile &tile,
                                                 bool exactFunctions);

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_READERCOST_H
