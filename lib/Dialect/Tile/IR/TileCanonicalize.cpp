//===- TileCanonicalize.cpp - Canonicalization of tile ops ----------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Tile/IR/Tile.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace fovea::tile;

namespace {

/// Drops operands of a map that it does not use, that it already has, or that
/// have the same value everywhere, which the map can use directly.
struct DropMapOperands : OpRewritePattern<MapOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(MapOp op,
                                PatternRewriter &rewriter) const final {
    Block &body = op.getBody().front();
    int64_t numInputs = op.getInputs().size(), numRows = op.getRows().size();
    // An operand of another segment is indexed differently.
    auto getSegment = [&](int64_t index) {
      return index < numInputs ? 0 : index < numInputs + numRows ? 1 : 2;
    };
    SmallVector<Value> segments[3];
    BitVector dropped(body.getNumArguments());
    DenseMap<std::pair<Value, int64_t>, Value> kept;
    SmallVector<std::pair<Value, Value>> replacements;
    for (auto [index, operand] : llvm::enumerate(op.getOperands())) {
      Value argument = body.getArgument(index);
      int64_t segment = getSegment(index);
      if (argument.use_empty()) {
        dropped.set(index);
        continue;
      }
      if (auto fill = operand.getDefiningOp<FillOp>()) {
        replacements.emplace_back(argument, fill.getValue());
        dropped.set(index);
        continue;
      }
      auto [entry, isNew] = kept.try_emplace({operand, segment}, argument);
      if (!isNew) {
        replacements.emplace_back(argument, entry->second);
        dropped.set(index);
        continue;
      }
      segments[segment].push_back(operand);
    }
    if (dropped.none())
      return failure();
    rewriter.modifyOpInPlace(op, [&] {
      for (auto [argument, value] : replacements)
        rewriter.replaceAllUsesWith(argument, value);
      body.eraseArguments(dropped);
      op.getInputsMutable().assign(segments[0]);
      op.getRowsMutable().assign(segments[1]);
      op.getColumnsMutable().assign(segments[2]);
    });
    return success();
  }
};

/// Replaces a map that computes nothing with its operand, or with a fill.
struct FoldTrivialMap : OpRewritePattern<MapOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(MapOp op,
                                PatternRewriter &rewriter) const final {
    if (!isMemoryEffectFree(op))
      return failure();
    Value element =
        cast<YieldOp>(op.getBody().front().getTerminator()).getValue();
    if (element.getParentRegion()->isProperAncestor(&op.getBody())) {
      rewriter.replaceOpWithNewOp<FillOp>(op, op.getResult().getType(),
                                          element);
      return success();
    }
    auto argument = dyn_cast<BlockArgument>(element);
    if (!argument || argument.getOwner() != &op.getBody().front() ||
        argument.getArgNumber() >= op.getInputs().size())
      return failure();
    Value input = op.getInputs()[argument.getArgNumber()];
    if (input.getType() != op.getResult().getType())
      return failure();
    rewriter.replaceOp(op, input);
    return success();
  }
};

} // namespace

OpFoldResult AnyOp::fold(FoldAdaptor) {
  auto fill = getInput().getDefiningOp<FillOp>();
  return fill ? fill.getValue() : Value();
}

LogicalResult ExtremesOp::fold(FoldAdaptor,
                               SmallVectorImpl<OpFoldResult> &results) {
  auto fill = getInput().getDefiningOp<FillOp>();
  if (!fill)
    return failure();
  results.assign(2, fill.getValue());
  return success();
}

OpFoldResult FirstOnlyOp::fold(FoldAdaptor adaptor) {
  return adaptor.getCondition() ? getCondition() : Value();
}

OpFoldResult OfRowsOp::fold(FoldAdaptor) {
  Value yielded = cast<YieldOp>(getBody().front().getTerminator()).getValue();
  return yielded == getWhole() ? yielded : Value();
}

namespace {
/// The number of a cluster: of `(x * n + rank) / n`, with `rank` below `n`, the
/// number `x`.
struct FoldClusterNumber final : OpRewritePattern<arith::DivSIOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::DivSIOp op,
                                PatternRewriter &rewriter) const override {
    auto sum = op.getLhs().getDefiningOp<arith::AddIOp>();
    auto rank = sum ? sum.getRhs().getDefiningOp<ClusterRankOp>() : nullptr;
    auto product = rank ? sum.getLhs().getDefiningOp<arith::MulIOp>() : nullptr;
    auto launch = op->getParentOfType<LaunchOp>();
    std::optional<int64_t> blocks = getConstantIntValue(op.getRhs());
    if (!product || !launch || blocks != launch.getBlocksOfCluster() ||
        getConstantIntValue(product.getRhs()) != blocks)
      return failure();
    rewriter.replaceOp(op, product.getLhs());
    return success();
  }
};
} // namespace

void ClusterRankOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                                MLIRContext *context) {
  patterns.add<FoldClusterNumber>(context);
}

/// Drops inputs that the program does not use: what nothing else uses either
/// need not be computed.
LogicalResult LaunchOp::canonicalize(LaunchOp op, PatternRewriter &rewriter) {
  llvm::BitVector unused(op.getBody().getNumArguments());
  for (OpOperand &input : op.getInputsMutable())
    if (op.getTiedArgument(input).use_empty())
      unused.set(input.getOperandNumber());
  if (unused.none())
    return failure();
  rewriter.modifyOpInPlace(op, [&] {
    size_t first = op.getGrid().size();
    for (int64_t place = op.getInputs().size() - 1; place >= 0; --place)
      if (unused[first + place])
        op.getInputsMutable().erase(place);
    op.getBody().front().eraseArguments(unused);
  });
  return success();
}

void MapOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                        MLIRContext *context) {
  patterns.add<DropMapOperands, FoldTrivialMap>(context);
}

/// Drops a number of rows that the tile, or the memref from its place on, has
/// not more of.
LogicalResult StoreOp::canonicalize(StoreOp op, PatternRewriter &rewriter) {
  std::optional<int64_t> valid;
  if (op.getValid())
    valid = getConstantIntValue(op.getValid());
  if (!valid)
    return failure();
  int64_t dim = op.getDims().front(),
          size = op.getTarget().getType().getDimSize(dim);
  std::optional<int64_t> first = getConstantIntValue(op.getIndices()[dim]);
  bool isWhole = *valid >= op.getValue().getType().getShape().front();
  bool isRest = first && !ShapedType::isDynamic(size) &&
                *first + countPlaces(op, *valid) >= size;
  if (!isWhole && !isRest)
    return failure();
  rewriter.modifyOpInPlace(op, [&] { op.getValidMutable().clear(); });
  return success();
}
