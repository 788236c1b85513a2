//===- GatheredRows.h - Rows that are read where they lie -------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Keys and values of a paged cache come through a buffer: a linalg.generic in
// front of the op copies the rows that a table names. A few queries read each
// row about once, so the copy costs as much as they do. They read the rows
// where these lie instead: a list of places takes the place of the copy.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_ATTNTOVECTOR_GATHEREDROWS_H
#define FOVEA_LIB_CONVERSION_ATTNTOVECTOR_GATHEREDROWS_H

#include "OnlineKernel.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include <optional>

namespace fovea::attn {

/// A copy of rows of one tensor to the keys or values of an op.
class GatheredRows {
public:
  /// Returns the copy that makes `operand` of `op`, if nothing else reads
  /// `operand`, the rows have contiguous features of its element type, and
  /// nothing from the copy to the op's end writes what the copy reads.
  static std::optional<GatheredRows> find(OnlineAttentionOp op,
                                          mlir::Value operand);

  /// Emits the list of the rows' places, in front of `op`.
  OperandRows emit(KernelBuilder &b, OnlineAttentionOp op);
  /// Erases the copy and its buffer, which `op` no longer uses.
  void erase();

private:
  GatheredRows(mlir::linalg::GenericOp copy, mlir::memref::LoadOp load)
      : copy(copy), load(load) {}

  mlir::linalg::GenericOp copy;
  mlir::memref::LoadOp load;
};

} // namespace fovea::attn

#endif // FOVEA_LIB_CONVERSION_ATTNTOVECTOR_GATHEREDROWS_H
