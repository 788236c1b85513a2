//===- Proxies.h - Ways to shared memory that need a fence ------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Threads load and store through the generic proxy, WGMMA and bulk copies read
// and write through the async proxy. What goes through one is ordered before
// what goes through the other by a fence only (PTX ISA, "Proxies"), whether it
// is a read or a write.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DIALECT_TILE_IR_PROXIES_H
#define FOVEA_DIALECT_TILE_IR_PROXIES_H

#include "fovea/Dialect/Tile/IR/Tile.h"

#include "llvm/ADT/SmallPtrSet.h"

namespace fovea::tile {

/// Returns true if `op` reads its tiles in shared memory by WGMMA.
bool readsByWgmma(mlir::Operation *op);

/// Returns true if something may read a tile through another proxy than that of
/// threads' writes: threads must fence after they have written it.
bool mayBeReadByProxy(mlir::Value tile);

/// Adds the ops by which threads read slots of a ring, or views of them,
/// themselves.
void findReadsByThreads(mlir::Value ring,
                        llvm::SmallPtrSetImpl<mlir::Operation *> &reads);

/// Returns true if all threads that run `op` fence at its end.
bool endsWithProxyFence(mlir::Operation *op);

} // namespace fovea::tile

#endif // FOVEA_DIALECT_TILE_IR_PROXIES_H
