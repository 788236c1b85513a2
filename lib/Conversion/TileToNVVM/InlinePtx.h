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

/// Emits inline PTX with constraints that follow from the types of its
/// operands: i32, f32, i64 and pointers. For instructions whose NVVM op does
/// not exist, or does not say that it touches memory.
///
/// In `text`, `$0` and up are the registers that the PTX writes: first `tied`,
/// which it also reads, then `outputs`. `inputs` follow, from the number that
/// `getFirstInput` returns. Returns the values written, in that order.
llvm::SmallVector<mlir::Value>
emitPtx(mlir::OpBuilder &builder, mlir::Location loc, const llvm::Twine &text,
        mlir::ValueRange inputs = {}, mlir::TypeRange outputs = {},
        mlir::ValueRange tied = {});

/// Orders what the thread has written to shared memory, and read there, before
/// what WGMMA and bulk copies read and write behind a barrier, through the async
/// proxy (PTX ISA, "Proxies").
inline void emitProxyFence(mlir::OpBuilder &builder, mlir::Location loc) {
  emitPtx(builder, loc, "fence.proxy.async.shared::cta;");
}

/// Returns the number of the first of `inputs` of `emitPtx`.
inline unsigned getFirstInput(unsigned numOutputs, unsigned numTied) {
  return numOutputs + 2 * numTied;
}

} // namespace fovea::tile

#endif // FOVEA_LIB_CONVERSION_TILETONVVM_INLINEPTX_H
