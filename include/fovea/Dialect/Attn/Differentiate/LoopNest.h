//===- LoopNest.h - Sums over nests of loops --------------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Gradients are sums: an element that several iterations of a loop read gets
// the contributions of all of them. This file builds such a sum as a
// linalg.generic or, where indices of the element are computed, as loops that
// add contributions one by one.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DIALECT_ATTN_DIFFERENTIATE_LOOPNEST_H
#define FOVEA_DIALECT_ATTN_DIFFERENTIATE_LOOPNEST_H

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/IR/Builders.h"

namespace fovea::attn::differentiate {

/// Loops, and tensors (or scalars, by a map without results) that they read.
struct LoopNest {
  llvm::SmallVector<mlir::OpFoldResult> sizes;
  llvm::SmallVector<mlir::Value> inputs;
  llvm::SmallVector<mlir::AffineMap> maps;

  unsigned getNumLoops() const { return sizes.size(); }
  void addInput(mlir::Value input, mlir::AffineMap map) {
    inputs.push_back(input);
    maps.push_back(map);
  }
};

/// Returns the index of a loop, emitted where it is requested.
using IndexFn = llvm::function_ref<mlir::Value(unsigned)>;

/// Emits a float from the inputs' elements; null after an error was reported.
using TermFn = llvm::function_ref<mlir::Value(
    mlir::OpBuilder &, mlir::Location, IndexFn, mlir::ValueRange elements)>;

/// Emits the same, and the position that it is added at.
using PlacedTermFn = llvm::function_ref<mlir::Value(
    mlir::OpBuilder &, mlir::Location, IndexFn, mlir::ValueRange elements,
    llvm::SmallVectorImpl<mlir::Value> &place)>;

/// Returns a tensor with dimensions `outer` of the loops and elements of type
/// `element`: `term` summed over all other loops, in the accumulation type, or
/// in f64 where memory rather than arithmetic bounds a sum of more than a row.
/// Null after an error.
mlir::Value buildSum(mlir::OpBuilder &builder, mlir::Location loc,
                     const LoopNest &nest, llvm::ArrayRef<unsigned> outer,
                     mlir::FloatType element, TermFn term);

/// Returns a tensor of the shape of `like` and elements of type `element`:
/// every iteration's `term` added at its position, in the accumulation type of
/// the inputs and of `element`. Null after an error.
mlir::Value buildScatter(mlir::OpBuilder &builder, mlir::Location loc,
                         const LoopNest &nest, mlir::Value like,
                         mlir::FloatType element, PlacedTermFn term);

/// Returns zeros of the shape of `like`.
mlir::Value buildZeros(mlir::OpBuilder &builder, mlir::Location loc,
                       mlir::Value like, mlir::FloatType element);

/// Returns, of type `type`, the sum over the features of `gradient * output`,
/// less the gradient of the log-sum-exp if it is given.
mlir::Value buildDelta(mlir::OpBuilder &builder, mlir::Location loc,
                       mlir::Value gradient, mlir::Value output,
                       mlir::Value lseGradient, mlir::RankedTensorType type);

/// Returns `tensor` with the element type and the static sizes of `type`.
mlir::Value castTensor(mlir::OpBuilder &builder, mlir::Location loc,
                       mlir::Value tensor, mlir::Type type);

/// Return the identity map of `rank` loops, and the map to some of them.
mlir::AffineMap mapAll(mlir::OpBuilder &builder, unsigned rank);
mlir::AffineMap mapTo(mlir::OpBuilder &builder, unsigned rank,
                      llvm::ArrayRef<unsigned> loops);

} // namespace fovea::attn::differentiate

#endif // FOVEA_DIALECT_ATTN_DIFFERENTIATE_LOOPNEST_H
