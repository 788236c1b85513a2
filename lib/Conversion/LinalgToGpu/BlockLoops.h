//===- BlockLoops.h - linalg by the threads of one block --------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_LINALGTOGPU_BLOCKLOOPS_H
#define FOVEA_LIB_CONVERSION_LINALGTOGPU_BLOCKLOOPS_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace fovea {

/// A thread among the threads that work together (a block of whole warps or one
/// warp of it) in the body of a launch with one-dimensional blocks.
struct BlockThread {
  mlir::gpu::LaunchOp launch;
  /// The thread's number among these threads, and their number, as indices.
  mlir::Value id, count;

  explicit BlockThread(mlir::gpu::LaunchOp launch)
      : launch(launch), id(launch.getThreadIds().x),
        count(launch.getBlockSize().x) {}
};

/// Applies the op `combiner` to `a` and `b`.
mlir::Value combine(mlir::OpBuilder &builder, mlir::Operation *combiner,
                    mlir::Value a, mlir::Value b);

/// Combines each of the values `partials` of all threads by a binary op, whose
/// neutral element is known, in an order that depends on the number of threads
/// only. Every thread gets the results. All threads of the block must come
/// here; before they come here again there must be a barrier. If `thread.count`
/// is known to be a warp's or a smaller power of two, all threads of the warp
/// must, and there need be none.
llvm::SmallVector<mlir::Value>
reduceBlock(mlir::OpBuilder &builder, const BlockThread &thread,
            llvm::ArrayRef<mlir::Operation *> combiners,
            mlir::ValueRange partials);

/// Emits `op` as loops that the threads of a block share: over points of the
/// parallel loops, or, where there is one point, over the terms of its sum.
/// Its results can be read behind a barrier.
void emitBlockLoops(mlir::OpBuilder &builder, const BlockThread &thread,
                    mlir::linalg::LinalgOp op);

} // namespace fovea

#endif // FOVEA_LIB_CONVERSION_LINALGTOGPU_BLOCKLOOPS_H
