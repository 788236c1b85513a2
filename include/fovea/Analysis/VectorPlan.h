//===- VectorPlan.h - Which loop is cut into vectors ------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_ANALYSIS_VECTORPLAN_H
#define FOVEA_ANALYSIS_VECTORPLAN_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace fovea {

/// How an access moves along the vector loop.
enum class Access { Uniform, Contiguous, Gather };

/// How a memref accessed by `map` moves along loop `dim`.
Access classifyAccess(mlir::MemRefType type, mlir::AffineMap map, unsigned dim);

/// Whether a vector of such elements is in memory what it is in a register.
bool hasVectorMemory(mlir::Type element);

/// The vector reduction that does what the scalar op `combiner` does.
std::optional<mlir::vector::CombiningKind>
getCombiningKind(mlir::Operation *combiner);

/// The one op that combines the running value of output `index`, or null.
mlir::Operation *getCombiner(mlir::linalg::GenericOp op, unsigned index);

/// Whether `op` is the place along loop `dim` of a body, as any integer.
bool isPlace(mlir::Operation *op, unsigned dim);

/// Whether `op` is the place along loop `dim` divided by four, as the counter
/// of a random number is: the same in four neighbouring lanes.
bool isPlaceByFours(mlir::Operation *op, unsigned dim);

/// The loop that is cut into vectors of `lanes`, a power of two; one lane: none
/// is.
struct VectorLoop {
  unsigned dim = 0;
  int64_t lanes = 1;
};

/// Chooses the loop of `op`, on memrefs, for vectors of `vectorBytes`.
VectorLoop planVectorLoop(mlir::linalg::GenericOp op, int64_t vectorBytes);

} // namespace fovea

#endif // FOVEA_ANALYSIS_VECTORPLAN_H
