//===- WgmmaOperand.cpp - WGMMA's view of a tile in shared memory ---------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WgmmaOperand.h"

using namespace mlir;
using namespace fovea::tile;

FailureOr<WgmmaOperand>
WgmmaOperand::get(SharedType tile, bool isKMajor,
                  function_ref<InFlightDiagnostic()> emitError) {
  WgmmaOperand operand(tile, isKMajor);
  if (tile.getElementBytes() != 2)
    return emitError() << "expected an operand of 16-bit elements, got "
                       << tile;
  int64_t inner = tile.getShape()[isKMajor ? 1 : 0];
  if (inner % kStep || operand.getOuterSize() % 8)
    return emitError() << "expected an inner size that is a multiple of "
                       << kStep << " and an outer one that is of 8, got "
                       << inner << " and " << operand.getOuterSize() << " in "
                       << tile;
  if (!tile.getSwizzle() && (isKMajor || tile.getShape()[1] != 8))
    return emitError() << "expected an operand with a swizzle, got " << tile;
  return operand;
}

int64_t WgmmaOperand::getOuterSize() const {
  return tile.getShape()[kMajor ? 0 : 1];
}

int64_t WgmmaOperand::getNumSteps() const {
  return tile.getShape()[kMajor ? 1 : 0] / kStep;
}

/// Bytes from one row of a panel to the next.
static int64_t getRowBytes(SharedType tile) {
  return tile.getPanelColumns() * tile.getElementBytes();
}

int64_t WgmmaOperand::getLeadingBytes() const {
  if (kMajor)
    return 16; // Not read.
  // One panel of 8 columns: groups of 8 rows take the place of panels.
  return tile.getSwizzle() ? tile.getPanelBytes() : 8 * getRowBytes(tile);
}

int64_t WgmmaOperand::getStrideBytes() const { return 8 * getRowBytes(tile); }

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
  if (!kMajor) {
    assert(outer % tile.getPanelColumns() == 0 && "within a panel");
    return outer / tile.getPanelColumns() * tile.getPanelBytes() +
           step * kStep * getRowBytes(tile);
  }
  int64_t column = step * kStep;
  return column / tile.getPanelColumns() * tile.getPanelBytes() +
         outer * getRowBytes(tile) +
         column % tile.getPanelColumns() * tile.getElementBytes();
}
