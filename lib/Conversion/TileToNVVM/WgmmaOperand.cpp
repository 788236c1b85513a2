//===- WgmmaOperand.cpp - WGMMA's view of a tile in shared memory ---------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WgmmaOperand.h"

using namespace mlir;
using namespace fovea::tile;

/// Rows of a core matrix.
static constexpr int64_t kGroup = 8;

FailureOr<WgmmaOperand>
WgmmaOperand::get(SharedType tile, bool isKMajor,
                  function_ref<InFlightDiagnostic()> emitError) {
  WgmmaOperand operand(tile, isKMajor);
  if (tile.getElementBytes() != 2)
    return emitError() << "expected an operand of 16-bit elements, got "
                       << tile;
  int64_t inner = tile.getShape()[isKMajor ? 1 : 0];
  if (inner % kStep || operand.getOuterSize() % kGroup)
    return emitError() << "expected an inner size that is a multiple of "
                       << kStep << " and an outer one that is of 8, got "
                       << inner << " and " << operand.getOuterSize() << " in "
                       << tile;
  if (!tile.getSwizzle() && (isKMajor || tile.getShape()[1] != 8))
    return emitError() << "expected an operand with a swizzle, got " << tile;
  if (!isKMajor && tile.getRunRows() % kStep && tile.getRunRows() != kGroup)
    return emitError() << "expected runs of " << kGroup
                       << " rows or of a multiple of " << kStep << ", got "
                       << tile;
  return operand;
}

int64_t WgmmaOperand::getOuterSize() const {
  return tile.getShape()[kMajor ? 0 : 1];
}

int64_t WgmmaOperand::getNumSteps() const {
  return tile.getShape()[kMajor ? 1 : 0] / kStep;
}

int64_t WgmmaOperand::getNumInterleaved() const {
  return kMajor && !tile.isOneRun() ? tile.getRunRows() / kGroup : 1;
}

int64_t WgmmaOperand::getLeadingBytes() const {
  if (kMajor)
    return 16; // Not read.
  // One panel of 8 columns: groups of 8 rows take the place of panels.
  return tile.getSwizzle() ? tile.getPanelBytes() : kGroup * tile.getRowBytes();
}

int64_t WgmmaOperand::getStrideBytes() const {
  int64_t next = kGroup * getNumInterleaved();
  return next < tile.getShape().front() ? tile.getByteOffset(next, 0)
                                        : next * tile.getRowBytes();
}

uint64_t WgmmaOperand::getDescriptor() const {
  uint64_t mode = 0;
  switch (tile.getSwizzle()) {
  case 128:
    mode = 1;
    break;
  case 64:
    mode = 2;
    break;
  case 32:
    mode = 3;
    break;
  }
  return mode << 62 | uint64_t(getStrideBytes()) >> 4 << 32 |
         uint64_t(getLeadingBytes()) >> 4 << 16;
}

int64_t WgmmaOperand::getStart(int64_t outer, int64_t step) const {
  // Whole groups of 8 rows and whole panels: the swizzle begins anew, so the
  // hardware adds the plain distance.
  int64_t inner = step * kStep;
  int64_t row = kMajor ? outer : inner, column = kMajor ? inner : outer;
  assert((kMajor || outer % tile.getPanelColumns() == 0) && "within a panel");
  return tile.getByteOffset(row / kGroup * kGroup, column);
}
