//===- VectorPlan.h - Choice of the loop to cut into vectors ----*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_ANALYSIS_VECTORPLAN_H
#define FOVEA_ANALYSIS_VECTORPLAN_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace fovea {

/// The way an access moves along the vector loop.
enum class Access { Uniform, Contiguous, Gather };

/// Returns the way a memref accessed by `map` moves along loop `dim`.
Access classifyAccess(mlir::MemRefType type, mlir::AffineMap map, unsigned dim);

/// Returns true if a vector of such elements has the same layout in memory as
/// in a register.
bool hasVectorMemory(mlir::Type element);

/// Returns the vector reduction that matches the scalar op `combiner`.
std::optional<mlir::vector::CombiningKind>
getCombiningKind(mlir::Operation *combiner);

/// Returns the only op that combines the running value of output `index`, or
/// null.
mlir::Operation *getCombiner(mlir::linalg::GenericOp op, unsigned index);

/// Returns true if `op` is the position along loop `dim` of a body, in any
/// integer type.
bool isPlace(mlir::Operation *op, unsigned dim);

/// Returns true if `op` is the position along loop `dim` divided by four, as in
/// the counter of a random number: four neighbouring lanes share it.
bool isPlaceByFours(mlir::Operation *op, unsigned dim);

/// The loop that is cut into vectors of `lanes`, a power of two; with one lane
/// no loop is cut.
struct VectorLoop {
  unsigned dim = 0;
  int64_t lanes = 1;
  /// Loads of rows along the loop, which lie where other loads say. Neither
  /// reads of one row nor the processor tell where the next one is.
  llvm::SmallVector<mlir::memref::LoadOp> scattered;
};

/// Returns true if `op` of the body of a generic is the same along loop `dim`:
/// its operands are, and it computes or loads.
bool isSameAlong(mlir::Operation *op, unsigned dim);

/// Chooses the loop of `op`, on memrefs, for vectors of `vectorBytes`.
VectorLoop planVectorLoop(mlir::linalg::GenericOp op, int64_t vectorBytes);

} // namespace fovea

#endif // FOVEA_ANALYSIS_VECTORPLAN_H
