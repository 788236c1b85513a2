//===- InlinePtx.h - Blocks of inline PTX -----------------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_TILETONVVM_INLINEPTX_H
#define FOVEA_LIB_CONVERSION_TILETONVVM_INLINEPTX_H

#include "mlir/IR/Builders.h"

namespace fovea::tile {

/// `emitAsm` with constraints that follow from the types of its operands: i32,
/// f32, i64 and pointers. For instructions whose NVVM op does not exist, or
/// does not say that it touches memory.
///
/// In `text`, `$0` and up are the registers that it writes: first `tied`, which
/// it reads too, then `outputs`. `inputs` follow at the number that
/// `getFirstInput` gives. Returns what was written, in that order.
llvm::SmallVector<mlir::Value>
emitPtx(mlir::OpBuilder &builder, mlir::Location loc, const llvm::Twine &text,
        mlir::ValueRange inputs = {}, mlir::TypeRange outputs = {},
        mlir::ValueRange tied = {});

/// The number of the first of `inputs` of `emitPtx`.
inline unsigned getFirstInput(unsigned numOutputs, unsigned numTied) {
  return numOutputs + 2 * numTied;
}

} // namespace fovea::tile

#endif // FOVEA_LIB_CONVERSION_TILETONVVM_INLINEPTX_H
