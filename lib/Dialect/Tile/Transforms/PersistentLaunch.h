//===- PersistentLaunch.h - Blocks that run programs in turn ----*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_TILE_TRANSFORMS_PERSISTENTLAUNCH_H
#define FOVEA_LIB_DIALECT_TILE_TRANSFORMS_PERSISTENTLAUNCH_H

#include "fovea/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace fovea::tile {

/// A launch whose blocks each run several programs of another launch, in a loop
/// around its program.
class PersistentLaunch {
public:
  using Value = mlir::Value;

  /// Takes the program of `launch` over by a launch of so many blocks, or
  /// clusters; the builder then inserts in front of the program. `added` are
  /// further outputs.
  PersistentLaunch(mlir::OpBuilder &builder, LaunchOp launch, Value blocks,
                   mlir::ValueRange added = {});

  /// The number of the block, or of its cluster, in the program.
  Value getBlock() const { return block; }
  /// The memrefs of the further outputs, in the program.
  mlir::ValueRange getAdded() {
    return result.getBody().getArguments().take_back(numAdded);
  }

  /// Moves the program into `loop`, where its block had the numbers `ids`, and
  /// erases the former launch.
  void wrap(mlir::scf::ForOp loop, mlir::ArrayRef<Value> ids);

private:
  LaunchOp launch, result;
  Value block;
  size_t numAdded;
  llvm::SmallVector<mlir::Operation *> ops;
};

/// Returns the product of sizes, an index.
mlir::Value getNumPrograms(mlir::OpBuilder &builder, mlir::Location loc,
                           mlir::ValueRange sizes);

/// Returns the place of program `number` in a grid of these sizes, the first of
/// which is the fastest.
llvm::SmallVector<mlir::Value> getIds(mlir::OpBuilder &builder,
                                      mlir::Location loc, mlir::Value number,
                                      mlir::ArrayRef<mlir::Value> sizes);

/// Returns the most blocks, or clusters, of a launch that run at a time.
int64_t getNumResident(LaunchOp launch);

/// Removes the ops of a launch that say how parts of its programs combine.
void removeCombineParts(LaunchOp launch);

} // namespace fovea::tile

#endif // FOVEA_LIB_DIALECT_TILE_TRANSFORMS_PERSISTENTLAUNCH_H
