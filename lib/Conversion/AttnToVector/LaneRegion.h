//===- LaneRegion.h - A scalar region applied to vector lanes ---*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_ATTNTOVECTOR_LANEREGION_H
#define FOVEA_LIB_CONVERSION_ATTNTOVECTOR_LANEREGION_H

#include "KernelBuilder.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace fovea::attn {

/// Builds a score or mask region for several vectors at once. Values that are
/// the same in all lanes stay scalars. An op is built as soon as its operands
/// are bound: ops that do not depend on the key can stand in front of the loop
/// over keys.
class LaneRegion {
public:
  using Value = mlir::Value;

  /// The query coordinates of one vector.
  struct Queries {
    Value coordinates; ///< of each lane; those of the last query beyond it
    Value first, last; ///< scalars: of the first and of the last lane
    Value mask;        ///< lanes whose query exists
  };

  LaneRegion(KernelBuilder &b, mlir::Region &region, int64_t lanes,
             int64_t vectors);

  /// Returns true if the lanes of `varying` arguments can be computed together:
  /// each op that depends on these arguments is elementwise, or a load.
  static bool isVectorizable(mlir::Region &region,
                             llvm::ArrayRef<Value> varying);

  void bindUniform(Value argument, Value scalar);
  void bindLanes(Value argument, mlir::ValueRange vectors);
  void bindQueries(Value argument, llvm::ArrayRef<Queries> queries);

  /// Builds all ops whose operands are bound and that are not built yet.
  void emitBound();

  /// Returns the values that the region yields, as vectors. All arguments must
  /// be bound.
  llvm::SmallVector<Value> getYielded();

private:
  struct Lanes {
    /// One scalar, or a vector for each of `vectors`.
    llvm::SmallVector<Value, 4> values;
    bool isUniform;
    /// The scalar of an index that is the query's coordinate plus a scalar.
    Value queryOffset;
  };

  bool isBound(Value value);
  Lanes get(Value value);
  Value getVector(Value value, int64_t v);
  void define(Value value, Lanes lanes);

  void emit(mlir::Operation *op);
  Lanes emitLoad(mlir::memref::LoadOp load);
  Value emitContiguousLoad(mlir::memref::LoadOp load, int64_t v);
  Value emitGather(mlir::memref::LoadOp load, int64_t v);
  Value emitLaneLoads(mlir::memref::LoadOp load, int64_t v);

  KernelBuilder &b;
  mlir::Block &body;
  int64_t lanes, vectors;
  llvm::DenseMap<Value, Lanes> bound;
  llvm::SmallVector<Queries, 4> queries;
};

} // namespace fovea::attn

#endif // FOVEA_LIB_CONVERSION_ATTNTOVECTOR_LANEREGION_H
