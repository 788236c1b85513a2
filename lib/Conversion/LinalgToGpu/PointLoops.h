//===- PointLoops.h - linalg on memrefs as scalar loops ---------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_LINALGTOGPU_POINTLOOPS_H
#define FOVEA_LIB_CONVERSION_LINALGTOGPU_POINTLOOPS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace fovea {

/// The sizes of the loops of `op`, outermost first.
llvm::SmallVector<mlir::Value> getLoopSizes(mlir::OpBuilder &builder,
                                            mlir::linalg::LinalgOp op);

/// The product of `sizes`; 1 for none.
mlir::Value getProduct(mlir::OpBuilder &builder, mlir::Location loc,
                       mlir::ValueRange sizes);

/// Splits `number`, in [0, product of sizes), into indices, the last of which
/// runs fastest.
llvm::SmallVector<mlir::Value> delinearize(mlir::OpBuilder &builder,
                                           mlir::Location loc,
                                           mlir::Value number,
                                           mlir::ValueRange sizes);

/// Returns the copy as the `linalg.generic` that it is, in front of it.
mlir::linalg::GenericOp createCopy(mlir::OpBuilder &builder,
                                   mlir::memref::CopyOp op);

/// Returns the parallel loops of `op`, which writes apart (`Analysis/Loops.h`),
/// in an order in which neighbouring points write neighbouring elements.
llvm::SmallVector<unsigned> getPointDims(mlir::linalg::LinalgOp op);

/// Emits the body of `op` at the indices `ivs`. `outputs` are the old values of
/// its outputs (null for those that it does not read); returns the new ones.
llvm::SmallVector<mlir::Value> emitTerm(mlir::OpBuilder &builder,
                                        mlir::linalg::LinalgOp op,
                                        mlir::ValueRange ivs,
                                        mlir::ValueRange outputs);

/// Replaces the value `old` of each output at `ivs` by `update(index, old)`.
void updateOutputs(
    mlir::OpBuilder &builder, mlir::linalg::LinalgOp op, mlir::ValueRange ivs,
    llvm::function_ref<mlir::Value(size_t index, mlir::Value old)> update);

/// Emits one point of the parallel loops of `op`, whose indices are `ivs` (null
/// for reductions, which become loops here). `op` writes apart.
void emitPoint(mlir::OpBuilder &builder, mlir::linalg::LinalgOp op,
               mlir::ValueRange sizes, llvm::ArrayRef<mlir::Value> ivs);

/// Emits all of `op` as sequential loops.
void emitLoops(mlir::OpBuilder &builder, mlir::linalg::LinalgOp op);

} // namespace fovea

#endif // FOVEA_LIB_CONVERSION_LINALGTOGPU_POINTLOOPS_H
