//===- Rings.h - Slots and barriers of rings --------------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_TILETONVVM_RINGS_H
#define FOVEA_LIB_CONVERSION_TILETONVVM_RINGS_H

#include "fovea/Dialect/Tile/IR/Tile.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace fovea::tile {

/// One use of a ring: addresses in shared memory of its slot and the slot's
/// barriers, and the parity of the phases that the use completes; i32.
struct RingUse {
  /// `addresses` are those of the slots and of the barriers, `use` an index.
  RingUse(mlir::ImplicitLocOpBuilder &builder, mlir::Value ring,
          mlir::ValueRange addresses, mlir::Value use);

  /// The number of the slot, and its place; its barriers; the phase's parity.
  mlir::Value index, slot, full, empty, parity;
};

/// Returns the barrier, an i32, at which a thread waits for a copy that leaves
/// out rows, in a ring with `hasRows`.
mlir::Value getCutBarrier(mlir::ImplicitLocOpBuilder &builder, RingType ring,
                          mlir::ValueRange addresses);

/// Arrives at a barrier, after everything that the thread has written.
void emitArrive(mlir::OpBuilder &builder, mlir::Location loc,
                mlir::Value barrier);

/// Arrives at a barrier once for the executing warp, of those that run `op`,
/// after everything that its threads have written and read; the threads meet
/// first, unless they have met already.
void emitWarpArrive(mlir::OpBuilder &builder, mlir::Operation *op,
                    mlir::Value barrier, bool haveMet = false);

/// Arrives at a barrier of each of the `blocks` blocks of a cluster, once for
/// the executing warp, or the thread where one runs `op`.
void emitArriveInCluster(mlir::OpBuilder &builder, mlir::Operation *op,
                         mlir::Value barrier, int64_t blocks, bool haveMet);

/// Arrives at a barrier once for each warp that runs `op` in its role, but for
/// the first warp, whose first thread arrives by itself.
void emitArriveBeside(mlir::OpBuilder &builder, mlir::Operation *op,
                      mlir::Value barrier);

/// The ops that read and fill the rings within an op, found in the programs
/// before conversion.
class RingReaders {
public:
  struct Reader {
    /// Arrivals that make a slot empty: one from each warp that releases it.
    int64_t arrivals = 0;
    /// Arrivals that make a slot full: one from each thread that copies, or
    /// from each warp of a role that writes or lets TMA copy.
    int64_t copiers = 1;
    /// True if threads copy, to memory that products and TMA read through
    /// another proxy.
    bool isCopiedByThreads = false;
    /// True if only WGMMA reads slots.
    bool isWgmma = true;
    /// True if the ring has no mbarriers: on Ampere, where all threads copy and
    /// read. They wait for their own copies and then for each other.
    bool isOfBlock = false;
    /// True if the ring has one barrier more, see `getCutBarrier`.
    bool hasRows = false;
    /// The blocks that fill slots together, each in all of them.
    int64_t blocks = 1;
    /// The rings that share the slots, which are also to be empty.
    llvm::SmallVector<RingOp, 1> sharers;
  };

  explicit RingReaders(mlir::Operation *root);

  const Reader &get(mlir::Value ring) const {
    return readers.find(ring)->second;
  }

  /// Returns true if threads must meet that acquire or wait, in a ring of the
  /// block, or threads of a warp that release a slot. They need not if they
  /// have met since the last release, or copy, or since they waited for the
  /// slot.
  bool mustMeet(mlir::Operation *op) const { return !met.contains(op); }

  /// Returns true if threads have read a slot themselves that a bulk copy will
  /// write, so that they fence before they release it.
  bool mustFence(ReleaseOp op) const { return fences.contains(op); }

  /// Returns true if the load behind `op` waits for the slot, when it knows
  /// where its rows are: finding these takes reads of tables, which so are over
  /// when the slot is empty.
  bool isLate(AcquireOp op) const { return late.contains(op); }
  /// Emits the wait of a late acquire in its load.
  void acquireLate(mlir::ImplicitLocOpBuilder &builder, LoadAsyncOp load,
                   const RingUse &use) const;
  /// Emits the wait until a slot is empty.
  void acquire(mlir::ImplicitLocOpBuilder &builder, mlir::Operation *op,
               mlir::Value ring, const RingUse &use) const;

private:
  llvm::DenseMap<mlir::Value, Reader> readers;
  llvm::SmallPtrSet<mlir::Operation *, 8> met;
  llvm::SmallPtrSet<mlir::Operation *, 8> fences;
  /// Acquires whose load waits, and these loads.
  llvm::SmallPtrSet<mlir::Operation *, 8> late;
};

} // namespace fovea::tile

#endif // FOVEA_LIB_CONVERSION_TILETONVVM_RINGS_H
