//===- Patterns.h - Tile ops as NVVM and LLVM ops ---------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Values of the tile dialect are these in a kernel:
//
//   fragment    one scalar for each register of its layout, in their order
//   token       the same
//   shared      an i32, the address of its first byte in the shared window
//   ring        two i32: the address of its slots, which follow one another in
//               steps of `getSlotStride`, and the address of its mbarriers
//   tensor_map  a !llvm.ptr to the descriptor
//
// Conversion has two phases. The first keeps `tile.roles` and `tile.role`; ops
// in a role are converted for its warps (`getThread`, `getNumThreads`,
// `emitBarrier`). In the second, roles become branches.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_TILETONVVM_PATTERNS_H
#define FOVEA_LIB_CONVERSION_TILETONVVM_PATTERNS_H

#include "fovea/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Transforms/DialectConversion.h"

namespace fovea::tile {

/// Address spaces of NVPTX.
inline constexpr unsigned kGlobalSpace = 1;
inline constexpr unsigned kSharedSpace = 3;

/// Converts types as above; fragments must have layouts.
class TileTypeConverter : public mlir::TypeConverter {
public:
  TileTypeConverter();
};

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

/// Adds patterns for fill, map, reduce, and arith.select of values of the tile
/// dialect.
void populateFragmentPatterns(const TileTypeConverter &converter,
                              mlir::RewritePatternSet &patterns);

class RingReaders;

/// Adds patterns for load, store, and load_async without a tensor map.
void populateMemoryPatterns(const TileTypeConverter &converter,
                            mlir::RewritePatternSet &patterns,
                            const RingReaders &readers);

/// Adds patterns for to_shared, from_shared, shift_rows and write.
void populateSharedFragmentPatterns(const TileTypeConverter &converter,
                                    mlir::RewritePatternSet &patterns);

/// Adds patterns for mma by mma_sync and by fma.
void populateProductPatterns(const TileTypeConverter &converter,
                             mlir::RewritePatternSet &patterns);

/// Prepares the scalar regions of maps: products and sums may become one
/// operation; 2^x, tanh and quotients become those of the machine, one or two
/// roundings off.
void prepareMaps(mlir::Operation *root);

class WarpNumbers;

/// Adds patterns for ring, acquire, wait and release.
void populateRingPatterns(const TileTypeConverter &converter,
                          mlir::RewritePatternSet &patterns,
                          const RingReaders &readers);

/// Adds patterns for group and of_rows.
void populateRolePatterns(const TileTypeConverter &converter,
                          mlir::RewritePatternSet &patterns,
                          const WarpNumbers &warps);

/// Adds patterns for load_async and store_async by tensor maps, and
/// wait_stores.
void populateTensorMemoryAcceleratorPatterns(const TileTypeConverter &converter,
                                             mlir::RewritePatternSet &patterns,
                                             const RingReaders &readers);

/// Adds the pattern for sum_diagonals.
void populateDiagonalPatterns(const TileTypeConverter &converter,
                              mlir::RewritePatternSet &patterns);

/// Adds patterns for turns of blocks, and of warp groups.
void populateTurnPatterns(const TileTypeConverter &converter,
                          mlir::RewritePatternSet &patterns,
                          const WarpNumbers &warps);

/// Adds patterns for signal and await.
void populateSignalPatterns(const TileTypeConverter &converter,
                            mlir::RewritePatternSet &patterns);

/// Adds patterns for widen and widen_into.
void populateWidenPatterns(const TileTypeConverter &converter,
                           mlir::RewritePatternSet &patterns);

/// Adds patterns for mma by wgmma, mma_async and wait_mma.
void populateWgmmaPatterns(const TileTypeConverter &converter,
                           mlir::RewritePatternSet &patterns,
                           const WarpNumbers &warps);

/// Returns the GPU that `op` is for.
const machine::GpuArch &getGpuArch(mlir::Operation *op);

//===----------------------------------------------------------------------===//
// The threads that run an op
//===----------------------------------------------------------------------===//

/// Returns the number of threads that run `op`: those of its role, else those
/// of the block.
int64_t getNumThreads(mlir::Operation *op);

/// Returns the number, an i32, of the executing thread among those that run
/// `op`.
mlir::Value getThread(mlir::OpBuilder &builder, mlir::Operation *op);

/// Returns the thread's place in its warp, an i32.
mlir::Value getLane(mlir::OpBuilder &builder, mlir::Operation *op);

/// Returns the number that the executing thread adds to coordinate `dim` of its
/// elements in `layout`, an i32.
mlir::Value getThreadCoordinate(mlir::OpBuilder &builder, mlir::Operation *op,
                                LayoutAttr layout, int64_t dim);

/// Makes all threads that run `op` wait for each other, and see each other's
/// previous writes to memory.
void emitBarrier(mlir::OpBuilder &builder, mlir::Operation *op);

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

/// Returns the address of byte `offset` of the block's dynamic shared memory,
/// an i32.
mlir::Value getSharedAddress(mlir::OpBuilder &builder, mlir::Operation *op,
                             int64_t offset);

/// Returns a pointer to as many zeros in global memory.
mlir::Value getZeros(mlir::OpBuilder &builder, mlir::Operation *op,
                     int64_t bytes);

/// Returns a pointer to `offset` bytes after an address in shared memory.
mlir::Value toSharedPointer(mlir::OpBuilder &builder, mlir::Location loc,
                            mlir::Value address, int64_t offset = 0);

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

mlir::Value getI32(mlir::OpBuilder &builder, mlir::Location loc, int64_t value);

/// Returns `values` as one vector; a single value is returned as is. Values
/// that were rounded from f32 one by one are rounded in pairs, by one
/// instruction.
mlir::Value packVector(mlir::OpBuilder &builder, mlir::Location loc,
                       mlir::ValueRange values);

/// Returns `value`, of up to 64 bits, of another lane of the warp: the lane
/// whose number differs in the bits of `place` (`bfly`), or is `place` (`idx`).
mlir::Value shuffle(mlir::OpBuilder &builder, mlir::Location loc,
                    mlir::Value value, mlir::NVVM::ShflKind kind,
                    mlir::Value place);

/// Emits `text` as inline assembly that has side effects, touches memory and is
/// convergent. `constraints` are those of LLVM without the clobbers. Returns
/// the results, of types `results`.
llvm::SmallVector<mlir::Value>
emitAsm(mlir::OpBuilder &builder, mlir::Location loc, mlir::TypeRange results,
        llvm::StringRef text, llvm::StringRef constraints,
        mlir::ValueRange operands);

} // namespace fovea::tile

#endif // FOVEA_LIB_CONVERSION_TILETONVVM_PATTERNS_H
