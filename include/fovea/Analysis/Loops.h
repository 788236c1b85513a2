//===- Loops.h - Helpers shared by passes for the host ----------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_ANALYSIS_LOOPS_H
#define FOVEA_ANALYSIS_LOOPS_H

#include <cstdint>

namespace mlir {
class Block;
class Operation;
namespace linalg {
class LinalgOp;
} // namespace linalg
} // namespace mlir

namespace fovea {

/// The amount of work, in elements, that is worth a call of the thread pool.
inline constexpr int64_t kWorkPerCall = 16384;

/// The value assumed for a size that is not known.
inline constexpr int64_t kAssumedSize = 256;

/// Returns the block that stack buffers for `op` belong to, at its start: the
/// block of the enclosing outermost parallel loop, or the function's first.
mlir::Block *getStackBlock(mlir::Operation *op);

/// Returns true if every iteration of the parallel loops writes its own
/// elements, and no reduction loop affects which ones.
bool writesApart(mlir::linalg::LinalgOp op);

} // namespace fovea

#endif // FOVEA_ANALYSIS_LOOPS_H
