//===- Verify.h - Checks that verifiers of attn share ----------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_IR_VERIFY_H
#define FOVEA_LIB_DIALECT_ATTN_IR_VERIFY_H

#include "fovea/Dialect/Attn/IR/Attn.h"

namespace fovea::attn {

/// One dimension of an operand or result, for messages.
struct NamedSize {
  llvm::StringRef name;
  int64_t size;
};

inline int64_t sizeOf(mlir::Value value, int64_t dim) {
  return mlir::cast<mlir::ShapedType>(value.getType()).getDimSize(dim);
}

/// Checks that static sizes among `sizes` are equal; `what` names the
/// dimension.
llvm::LogicalResult verifySame(mlir::Operation *op, llvm::StringRef what,
                               llvm::ArrayRef<NamedSize> sizes);
llvm::LogicalResult verifySameShape(mlir::Operation *op, llvm::StringRef name0,
                                    mlir::Value value0, llvm::StringRef name1,
                                    mlir::Value value1);
llvm::LogicalResult verifyRank(mlir::Operation *op, llvm::StringRef name,
                               mlir::Value value, int64_t rank);
llvm::LogicalResult verifyElementType(mlir::Operation *op, llvm::StringRef name,
                                      mlir::Value value, mlir::Type expected);

/// Checks that a log-sum-exp has the type of sums, or one that represents large
/// maxima exactly.
llvm::LogicalResult verifyLogSumExp(mlir::Operation *op, mlir::Value lse,
                                    mlir::Type accumulation);

/// Checks the requirements of `attn.attention` and `attn.online_attention` on
/// query, key and value; `headDim` is the query's number of features.
llvm::LogicalResult verifyAttentionOperands(mlir::Operation *op,
                                            mlir::Value query, int64_t headDim,
                                            mlir::Value key, mlir::Value value);

/// Returns `extra` arguments followed by the coordinates `(b, h, i, j)`.
llvm::SmallVector<mlir::Type> withCoordinates(mlir::MLIRContext *context,
                                              llvm::ArrayRef<mlir::Type> extra);

llvm::LogicalResult verifyScoreAndMask(mlir::Operation *op, mlir::Region &score,
                                       mlir::Region &mask,
                                       mlir::Type accumulation);

/// Checks that a dropout is complete or absent, and its probability.
llvm::LogicalResult verifyDropout(mlir::Operation *op,
                                  std::optional<llvm::APFloat> probability,
                                  mlir::Value seed, mlir::Value offset);

llvm::LogicalResult verifyFinite(mlir::Operation *op, llvm::StringRef name,
                                 const llvm::APFloat &value);

/// Checks that the region has arguments of types `arguments`, yields `result`
/// and holds only operations on numbers. `name` is the region's name in the
/// op's syntax.
llvm::LogicalResult verifyRegion(mlir::Operation *op, llvm::StringRef name,
                                 mlir::Region &region,
                                 llvm::ArrayRef<mlir::Type> arguments,
                                 mlir::Type result);

/// Checks the log-sum-exp of a state that rows begin from; `rows` is a tensor
/// [B, H, Sq, ...].
llvm::LogicalResult verifyInitLse(mlir::Operation *op, mlir::Value rows,
                                  mlir::Value lse, mlir::Type accumulation);

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_IR_VERIFY_H
