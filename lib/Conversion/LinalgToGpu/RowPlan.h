//===- RowPlan.h - Choice of loops over rows and of their plans -*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_LINALGTOGPU_ROWPLAN_H
#define FOVEA_LIB_CONVERSION_LINALGTOGPU_ROWPLAN_H

#include "fovea/Dialect/Machine/IR/Machine.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace fovea {

/// Bytes of the widest access to memory.
inline constexpr int64_t kAccessBytes = 16;

/// An op's access along a row: a memref, and its indices as a function of the
/// place in the row. Ops may read one memref in several ways.
using RowAccess = std::pair<mlir::Value, mlir::AffineMap>;

/// Returns the access of `operand` of `op`, whose loop `loop` is along the row.
RowAccess getRowAccess(mlir::linalg::GenericOp op, mlir::OpOperand &operand,
                       std::optional<unsigned> loop);

/// The work of a block on one row, whose elements its threads share in vectors
/// of neighbours: thread t has the vectors t, t + threads, ... of the row, the
/// same in every op, so that the next op finds the results of this one in
/// registers.
struct RowPlan {
  /// The ops, in order.
  llvm::SmallVector<mlir::linalg::GenericOp> ops;
  /// The loop of each op that runs along the row, if it has one; all others
  /// have one iteration.
  llvm::SmallVector<std::optional<unsigned>> rowLoops;
  /// Elements of a row, if that is known.
  std::optional<int64_t> length;
  /// A memref and its dimension that is along the row.
  mlir::Value lengthSource;
  int64_t lengthDim = 0;
  /// Elements of a vector, vectors of a thread, threads of a row and of a
  /// block.
  int64_t vectorLength = 1;
  int64_t vectorsPerThread = 1;
  int64_t threads = 0;
  int64_t blockThreads = 0;
  /// Whether an op is a sum along the row.
  bool hasSum = false;
  /// Blocks that a multiprocessor should have room for, however few registers
  /// each gets.
  int64_t residentBlocks = 1;
  /// The number of rows that the GPU works on at a time.
  int64_t rowsAhead = 0;
  /// Memory that is read and written by vectors.
  llvm::DenseSet<RowAccess> vectorMemory;
  /// Accesses in `vectorMemory` that read rows, not data that is the same for
  /// all rows; and those of them that are loaded before the first op.
  llvm::DenseSet<RowAccess> streams, preloaded;
  /// Memrefs from outside of the loop, each with the bytes that its vectors of
  /// a row start at multiples of.
  llvm::SmallMapVector<mlir::Value, int64_t, 4> alignments;

  /// Returns the number of elements that a block has room for.
  int64_t getCapacity() const {
    return vectorLength * vectorsPerThread * threads;
  }
  /// Returns the number of rows that a warp must compute together: lanes of
  /// all of them exchange the terms of sums at once.
  int64_t getRowsTogether() const {
    return hasSum ? std::max<int64_t>(1, machine::kWarpSize / threads) : 1;
  }
  /// Returns true if all threads have all their vectors.
  bool isFull() const { return length == getCapacity(); }
};

/// Returns the plan for a bufferised loop over rows, or none if its body is
/// unsuitable: rows of more than one dimension, elements of other threads,
/// memory that is written and read in different ways, or rows that are known to
/// be too long.
std::optional<RowPlan> planRows(mlir::scf::ForallOp forall);

} // namespace fovea

#endif // FOVEA_LIB_CONVERSION_LINALGTOGPU_ROWPLAN_H
