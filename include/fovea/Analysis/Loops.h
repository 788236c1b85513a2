//===- HostUtils.h - What the host's passes share ---------------*- C++ -*-===//
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

/// Work, in elements, that is worth a call of the thread pool.
inline constexpr int64_t kWorkPerCall = 16384;

/// What a size is taken for that is not known.
inline constexpr int64_t kAssumedSize = 256;

/// The block at whose start stack buffers for `op` belong: that of the
/// enclosing outermost parallel loop, or the function's first.
mlir::Block *getStackBlock(mlir::Operation *op);

/// Whether every iteration of the parallel loops writes its own elements, which
/// do not depend on a reduction loop.
bool writesApart(mlir::linalg::LinalgOp op);

} // namespace fovea

#endif // FOVEA_ANALYSIS_LOOPS_H
