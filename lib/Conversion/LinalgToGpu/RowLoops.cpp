//===- RowLoops.cpp - One op as a loop over rows --------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RowLoops.h"

#include "PointLoops.h"
#include "fovea/Analysis/Loops.h"
#include "fovea/Analysis/VectorPlan.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace fovea;

/// Elements of the shortest row for which a warp pays.
static constexpr int64_t kShortestRow = 64;

/// Returns true if `operand` has an element of its own for each point, and the
/// elements along loop `dim` are neighbours.
static bool hasRows(linalg::GenericOp op, OpOperand &operand, unsigned dim) {
  AffineMap map = op.getMatchingIndexingMap(&operand);
  auto type = dyn_cast<MemRefType>(operand.get().getType());
  return type && map.isProjectedPermutation() &&
         map.getNumResults() == op.getNumLoops() &&
         classifyAccess(type, map, dim) == Access::Contiguous;
}

/// Returns the loop along the rows of `op`, or none.
static std::optional<unsigned> findRowLoop(linalg::GenericOp op) {
  if (!writesApart(op) || op.getNumLoops() < 2)
    return std::nullopt;
  SmallVector<unsigned> reductions;
  op.getReductionDims(reductions);
  if (reductions.size() > 1)
    return std::nullopt;
  unsigned dim =
      reductions.empty() ? getPointDims(op).back() : reductions.front();
  int64_t size = op.getStaticLoopRanges()[dim];
  bool isRow = llvm::any_of(op->getOpOperands(), [&](OpOperand &operand) {
    return hasRows(op, operand, dim);
  });
  if (!isRow || (!ShapedType::isDynamic(size) && size < kShortestRow))
    return std::nullopt;
  // A row's part of an operand must be a slice.
  for (OpOperand &operand : op->getOpOperands())
    for (AffineExpr expr : op.getMatchingIndexingMap(&operand).getResults())
      for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
        if (loop != dim && expr.isFunctionOfDim(loop) &&
            expr.isFunctionOfDim(dim))
          return std::nullopt;
  return dim;
}

scf::ForallOp fovea::createRowLoop(OpBuilder &builder, linalg::LinalgOp op) {
  auto generic = dyn_cast<linalg::GenericOp>(op.getOperation());
  if (!generic)
    return {};
  std::optional<unsigned> row = findRowLoop(generic);
  if (!row)
    return {};
  Location loc = op.getLoc();
  IRRewriter rewriter(builder.getContext());
  rewriter.setInsertionPoint(op);
  SmallVector<Value> sizes = getLoopSizes(rewriter, op);
  SmallVector<OpFoldResult> bounds;
  SmallVector<unsigned> loops;
  for (unsigned loop = 0; loop < sizes.size(); ++loop)
    if (loop != *row) {
      bounds.push_back(getAsOpFoldResult(sizes[loop]));
      loops.push_back(loop);
    }
  auto forall =
      scf::ForallOp::create(rewriter, loc, bounds, ValueRange(), std::nullopt);
  rewriter.setInsertionPointToStart(forall.getBody());
  SmallVector<OpFoldResult> offsets(sizes.size(), rewriter.getIndexAttr(0));
  for (auto [loop, iv] : llvm::zip_equal(loops, forall.getInductionVars()))
    offsets[loop] = iv;
  SmallVector<Value> operands;
  SmallVector<AffineMap> maps;
  for (OpOperand &operand : op->getOpOperands()) {
    Value memref = operand.get();
    auto type = dyn_cast<MemRefType>(memref.getType());
    AffineMap map = op.getMatchingIndexingMap(&operand);
    SmallVector<OpFoldResult> starts, lengths, strides;
    SmallVector<AffineExpr> exprs;
    bool isWhole = true;
    for (auto [place, expr] : llvm::enumerate(map.getResults())) {
      bool isRow =
          !expr.isFunctionOfDim(*row) && !isa<AffineConstantExpr>(expr);
      isWhole &= !isRow;
      starts.push_back(isRow ? affine::makeComposedFoldedAffineApply(
                                   rewriter, loc,
                                   AffineMap::get(map.getNumDims(), 0, expr),
                                   offsets)
                             : rewriter.getIndexAttr(0));
      lengths.push_back(
          isRow ? OpFoldResult(rewriter.getIndexAttr(1))
                : memref::getMixedSize(rewriter, loc, memref, place));
      strides.push_back(rewriter.getIndexAttr(1));
      // There is only one element; a loop's own dimension gives it its size.
      exprs.push_back(isRow && !isa<AffineDimExpr>(expr)
                          ? rewriter.getAffineConstantExpr(0)
                          : expr);
    }
    if (type && !isWhole)
      memref = memref::SubViewOp::create(rewriter, loc, memref, starts, lengths,
                                         strides);
    operands.push_back(memref);
    maps.push_back(
        AffineMap::get(map.getNumDims(), 0, exprs, rewriter.getContext()));
  }
  Operation *clone = mlir::clone(rewriter, op, TypeRange(), operands);
  cast<linalg::GenericOp>(clone).setIndexingMapsAttr(
      rewriter.getAffineMapArrayAttr(maps));
  linalg::offsetIndices(rewriter, cast<linalg::LinalgOp>(clone), offsets);
  op.erase();
  return forall;
}
