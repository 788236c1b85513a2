//===- WgmmaOperand.h - WGMMA's view of a tile in shared memory -*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An operand of `wgmma.mma_async` in shared memory is a matrix of *outer* (M of
// A, N of B) times K elements, stored as core matrices of 8 times 16 bytes. A
// matrix descriptor (PTX ISA 9.7.15.5.1) gives the address of the first core
// matrix and the distances of the next ones:
//
//  - K-major, the tile's rows along the outer dimension: the stride is between
//    groups of 8 rows. 16 of K are 32 bytes of a panel's row, so that the
//    leading distance does not matter;
//  - outer-major, the tile's rows along K: the stride is between groups of 8
//    rows, the leading distance between panels of columns.
//
// Groups of 8 rows of a tile in runs are not equally far apart, but those at
// one place of each run are. So a K-major tile is as many operands,
// interleaved, as a run has groups; steps along K do not cross runs.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_TILETONVVM_WGMMAOPERAND_H
#define FOVEA_LIB_CONVERSION_TILETONVVM_WGMMAOPERAND_H

#include "fovea/Dialect/Tile/IR/Tile.h"

namespace fovea::tile {

/// A tile of 16-bit elements in shared memory as an operand of WGMMA.
class WgmmaOperand {
public:
  /// K of one instruction, in 16-bit elements.
  static constexpr int64_t kStep = 16;

  /// `isKMajor`: the tile's columns run along K. Emits an error if WGMMA cannot
  /// read the tile:
  ///
  /// W1. elements have 16 bits;
  /// W2. K is a multiple of 16, the outer size a multiple of 8;
  /// W3. the tile is swizzled, or outer-major with 8 columns;
  /// W4. runs of an outer-major tile have 8 rows, or a multiple of 16.
  static mlir::FailureOr<WgmmaOperand>
  get(SharedType tile, bool isKMajor,
      llvm::function_ref<mlir::InFlightDiagnostic()> emitError);

  bool isKMajor() const { return kMajor; }
  int64_t getOuterSize() const;
  int64_t getNumSteps() const;
  /// Returns the number of operands of which the tile's groups of 8 along the
  /// outer dimension are those of each in turn; else 1.
  int64_t getNumInterleaved() const;

  /// The distances in the descriptor, in bytes.
  int64_t getLeadingBytes() const;
  int64_t getStrideBytes() const;
  /// The descriptor of a tile at address 0.
  uint64_t getDescriptor() const;
  /// Returns the place of the matrix that starts at `outer`, a multiple of 8,
  /// and step `step` of K, in bytes from the tile's start; a multiple of 16.
  int64_t getStart(int64_t outer, int64_t step) const;

private:
  WgmmaOperand(SharedType tile, bool kMajor) : tile(tile), kMajor(kMajor) {}

  SharedType tile;
  bool kMajor;
};

} // namespace fovea::tile

#endif // FOVEA_LIB_CONVERSION_TILETONVVM_WGMMAOPERAND_H
