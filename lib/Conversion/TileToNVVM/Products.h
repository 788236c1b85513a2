//===- Products.h - Code common to all products -----------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_TILETONVVM_PRODUCTS_H
#define FOVEA_LIB_CONVERSION_TILETONVVM_PRODUCTS_H

#include "Patterns.h"

namespace fovea::tile {

using MmaAdaptor = mlir::OpConversionPattern<MmaOp>::OneToNOpAdaptor;

/// Sizes of a product over the warps that share it.
struct ProductShape {
  int64_t rows, columns, inner;
};

ProductShape getProductShape(MmaOp op);

/// Returns the registers of a fragment in the order of `layout`, or failure,
/// with an error, if its threads hold other elements than those of `layout`.
mlir::FailureOr<llvm::SmallVector<mlir::Value>>
reorderRegisters(MmaOp op, FragmentType type, mlir::ValueRange registers,
                 LayoutAttr layout);

/// Returns the accumulator's registers in the order of `layout`: zeros if there
/// is no accumulator. Fails, with an error, if its threads hold other elements
/// than those of `layout`.
mlir::FailureOr<llvm::SmallVector<mlir::Value>>
getAccumulator(mlir::OpBuilder &builder, MmaOp op, mlir::ValueRange registers,
               LayoutAttr layout);

/// Replaces a product by the result's registers, in the order of `layout`.
void replaceProduct(mlir::ConversionPatternRewriter &rewriter, MmaOp op,
                    llvm::ArrayRef<mlir::Value> registers, LayoutAttr layout);

/// Lowers a product by mma.sync or by fma.
mlir::LogicalResult emitMmaSync(mlir::ConversionPatternRewriter &rewriter,
                                MmaOp op, MmaAdaptor adaptor);
mlir::LogicalResult emitFma(mlir::ConversionPatternRewriter &rewriter, MmaOp op,
                            MmaAdaptor adaptor);

} // namespace fovea::tile

#endif // FOVEA_LIB_CONVERSION_TILETONVVM_PRODUCTS_H
