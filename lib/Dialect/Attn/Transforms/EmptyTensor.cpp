//===- EmptyTensor.cpp - Uninitialised tensors of a type ------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EmptyTensor.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

Value fovea::attn::emptyOf(OpBuilder &builder, Location loc,
                           RankedTensorType type,
                           ArrayRef<OpFoldResult> sizes) {
  SmallVector<Value> dynamic;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (type.isDynamicDim(dim))
      dynamic.push_back(
          getValueOrCreateConstantIndexOp(builder, loc, sizes[dim]));
  return tensor::EmptyOp::create(builder, loc, type, dynamic);
}
