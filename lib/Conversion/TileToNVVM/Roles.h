//===- Roles.h - Roles as branches on the warp ------------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_TILETONVVM_ROLES_H
#define FOVEA_LIB_CONVERSION_TILETONVVM_ROLES_H

#include "fovea/Dialect/Tile/IR/Tile.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Transforms/DialectConversion.h"

namespace fovea::tile {

/// The number of each kernel's executing warp, an i32 that ptxas knows to be
/// the same in all of its threads; computed once at the kernel's entry, where
/// roles or products by warp groups need it.
class WarpNumbers {
public:
  explicit WarpNumbers(mlir::gpu::GPUModuleOp module);

  /// Returns the warp's number in the block that runs `op`.
  mlir::Value getInBlock(mlir::Operation *op) const;
  /// Returns the warp's number counted from the first warp of the role that
  /// `op` is in.
  mlir::Value getInRole(mlir::OpBuilder &builder, mlir::Operation *op) const;
  /// Returns the number of its warp group, counted from the role's first.
  mlir::Value getGroup(mlir::OpBuilder &builder, mlir::Operation *op) const;

private:
  llvm::DenseMap<mlir::Operation *, mlir::Value> warps;
};

/// A pattern that depends on the number of the warp that runs an op.
template <typename OpTy>
class WarpPattern : public mlir::OpConversionPattern<OpTy> {
public:
  WarpPattern(const mlir::TypeConverter &converter, mlir::MLIRContext *context,
              const WarpNumbers &warps)
      : mlir::OpConversionPattern<OpTy>(converter, context), warps(warps) {}

protected:
  const WarpNumbers &warps;
};

/// Returns true if one thread runs `op`: in a role that is `single`.
bool isOneThread(mlir::Operation *op);

/// Emits `body` for one of the threads that run `op`: under a condition, unless
/// there is only one.
void emitInOneThread(mlir::OpBuilder &builder, mlir::Operation *op,
                     llvm::function_ref<void(mlir::OpBuilder &)> body);

/// Emits `body` for the first thread of each warp that runs `op`.
void emitInFirstLane(mlir::OpBuilder &builder, mlir::Operation *op,
                     llvm::function_ref<void(mlir::OpBuilder &)> body);

/// Returns true if the kernel of `op` runs in clusters of blocks.
bool isInCluster(mlir::Operation *op);

/// Returns the role that `op` is in, or its kernel.
mlir::Operation *getProgram(mlir::Operation *op);

/// Turns every `tile.roles` in `module` into branches on the warp, each with
/// the role's register budget. Roles that share a warp group set its budget
/// once. Emits an error where the budgets exceed the registers of a
/// multiprocessor.
llvm::LogicalResult lowerRoles(mlir::gpu::GPUModuleOp module,
                               const WarpNumbers &warps);

} // namespace fovea::tile

#endif // FOVEA_LIB_CONVERSION_TILETONVVM_ROLES_H
