//===- Products.cpp - Products, whatever computes them --------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Products.h"

using namespace mlir;
using namespace fovea::tile;

ProductShape fovea::tile::getProductShape(MmaOp op) {
  ArrayRef<int64_t> result = op.getResult().getType().getShape();
  ArrayRef<int64_t> b = op.getB().getType().getShape();
  return {result[0], result[1], op.getTransposeB() ? b[1] : b[0]};
}

FailureOr<SmallVector<Value>>
fovea::tile::reorderRegisters(MmaOp op, FragmentType type, ValueRange registers,
                              LayoutAttr layout) {
  std::optional<SmallVector<int64_t>> permutation =
      layout.getPermutationFrom(type.getLayout());
  if (!permutation)
    return op.emitOpError("expected a fragment that lies as in ")
           << layout << ", got " << type;
  SmallVector<Value> result;
  for (int64_t source : *permutation)
    result.push_back(registers[source]);
  return result;
}

FailureOr<SmallVector<Value>> fovea::tile::getAccumulator(OpBuilder &builder,
                                                          MmaOp op,
                                                          ValueRange registers,
                                                          LayoutAttr layout) {
  FragmentType type = op.getResult().getType();
  if (op.getAcc())
    return reorderRegisters(op, type, registers, layout);
  if (!layout.getPermutationFrom(type.getLayout()))
    return op.emitOpError("expected a result that lies as in ")
           << layout << ", got " << type;
  Value zero = arith::ConstantOp::create(
      builder, op.getLoc(), builder.getZeroAttr(type.getElementType()));
  return SmallVector<Value>(layout.getNumRegisters(), zero);
}

void fovea::tile::replaceProduct(ConversionPatternRewriter &rewriter, MmaOp op,
                                 ArrayRef<Value> registers, LayoutAttr layout) {
  SmallVector<int64_t> permutation =
      *op.getResult().getType().getLayout().getPermutationFrom(layout);
  SmallVector<Value> results;
  for (int64_t source : permutation)
    results.push_back(registers[source]);
  rewriter.replaceOpWithMultiple(op, {results});
}

namespace {
struct ConvertMma final : OpConversionPattern<MmaOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(MmaOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!op.getKind())
      return op.emitOpError("has no kind; assign layouts first");
    switch (*op.getKind()) {
    case MmaKind::MmaSync:
      return emitMmaSync(rewriter, op, adaptor);
    case MmaKind::Fma:
      return emitFma(rewriter, op, adaptor);
    case MmaKind::Wgmma:
      return failure();
    }
    llvm_unreachable("a kind of product");
  }
};

} // namespace

void fovea::tile::populateProductPatterns(const TileTypeConverter &converter,
                                          RewritePatternSet &patterns) {
  patterns.add<ConvertMma>(converter, patterns.getContext());
}
