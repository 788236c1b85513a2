//===- TileTransposes.cpp - Transposed operands as views of tiles ---------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileTransposes.h"

#include "../EmptyTensor.h"

#include "fovea/Dialect/Attn/IR/Attn.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using Fold = OpFoldResult;

using fovea::attn::Transposition;

std::optional<Transposition> Transposition::get(Operation *op) {
  if (auto transpose = dyn_cast_or_null<linalg::TransposeOp>(op))
    return Transposition{op, transpose.getInput(),
                         llvm::to_vector(transpose.getPermutation())};
  auto generic = dyn_cast_or_null<linalg::GenericOp>(op);
  if (!generic || generic.getNumDpsInputs() != 1 ||
      generic.getNumDpsInits() != 1 || generic.getNumReductionLoops() != 0 ||
      !generic.hasPureTensorSemantics())
    return std::nullopt;
  Block &body = *generic.getBody();
  AffineMap input = generic.getIndexingMapsArray()[0];
  AffineMap output = generic.getIndexingMapsArray()[1];
  if (body.getTerminator()->getOperand(0) != body.getArgument(0) ||
      !input.isPermutation() || !output.isPermutation())
    return std::nullopt;
  AffineMap loopToInput = inversePermutation(input);
  SmallVector<int64_t> permutation;
  for (AffineExpr loop : output.getResults())
    permutation.push_back(
        loopToInput.getDimPosition(cast<AffineDimExpr>(loop).getPosition()));
  return Transposition{op, generic.getInputs()[0], permutation};
}

/// Returns the dimensions of `type` whose size is not one.
static SmallVector<int64_t> longDimensions(RankedTensorType type) {
  SmallVector<int64_t> dimensions;
  for (auto [dim, size] : llvm::enumerate(type.getShape()))
    if (size != 1)
      dimensions.push_back(dim);
  return dimensions;
}

/// Returns true if the long dimensions of a tile keep their order under
/// `permutation`.
static bool keepsOrder(RankedTensorType tile, ArrayRef<int64_t> permutation) {
  return llvm::is_sorted(llvm::map_to_vector(
      longDimensions(tile), [&](int64_t dim) { return permutation[dim]; }));
}

/// Returns `tile` without the dimensions of size one.
static RankedTensorType shortened(RankedTensorType tile) {
  return RankedTensorType::get(
      llvm::map_to_vector(longDimensions(tile),
                          [&](int64_t dim) { return tile.getDimSize(dim); }),
      tile.getElementType());
}

/// Returns groups of the dimensions of `tile`, each with one whose size is not
/// one.
static SmallVector<ReassociationIndices> groupsOf(RankedTensorType tile) {
  SmallVector<int64_t> dimensions = longDimensions(tile);
  SmallVector<ReassociationIndices> groups(dimensions.size());
  for (int64_t dim = 0, group = 0; dim < tile.getRank() && !groups.empty();
       ++dim) {
    groups[group].push_back(dim);
    bool isLast = group + 1 == int64_t(groups.size());
    if (dim == dimensions[group] && !isLast)
      ++group;
  }
  return groups;
}

static SmallVector<Fold> permuted(ArrayRef<Fold> values,
                                  ArrayRef<int64_t> permutation) {
  SmallVector<Fold> result(values.size());
  for (auto [dim, source] : llvm::enumerate(permutation))
    result[source] = values[dim];
  return result;
}

/// Returns a tile of a transposed tensor, with or without its dimensions of
/// size one, as a view of that tile of `source`.
static Value viewOf(OpBuilder &builder, Location loc, Value source,
                    RankedTensorType tile, ArrayRef<Fold> offsets,
                    ArrayRef<Fold> sizes, ArrayRef<int64_t> permutation) {
  SmallVector<Fold> ones(offsets.size(), builder.getIndexAttr(1));
  Value slice = tensor::ExtractSliceOp::create(
      builder, loc, shortened(tile), source, permuted(offsets, permutation),
      permuted(sizes, permutation), ones);
  if (slice.getType() == tile)
    return slice;
  return tensor::ExpandShapeOp::create(builder, loc, tile, slice,
                                       groupsOf(tile), sizes);
}

/// Returns the transposition of which `slice` views a tile, if there is one.
static std::optional<Transposition>
viewedTransposition(tensor::ExtractSliceOp slice) {
  std::optional<Transposition> transposition =
      Transposition::get(slice.getSource().getDefiningOp());
  RankedTensorType tile = slice.getType();
  if (!transposition || tile.getRank() != slice.getSourceType().getRank() ||
      !slice.hasUnitStride() || !keepsOrder(tile, transposition->permutation))
    return std::nullopt;
  return transposition;
}

bool fovea::attn::isViewOfTranspose(tensor::ExtractSliceOp slice) {
  return viewedTransposition(slice).has_value();
}

/// Returns true if `use` reads a statistic of rows. On a GPU a kernel prepares
/// the statistics of all rows, as they are.
static bool isStatistic(OpOperand &use) {
  auto backward = dyn_cast<fovea::attn::OnlineBackwardOp>(use.getOwner());
  return backward && llvm::is_contained(
                         {backward.getLse(), backward.getDelta()}, use.get());
}

namespace {
struct SliceOfTranspose : OpRewritePattern<tensor::ExtractSliceOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(tensor::ExtractSliceOp slice,
                                PatternRewriter &rewriter) const override {
    std::optional<Transposition> transposition = viewedTransposition(slice);
    if (!transposition || llvm::any_of(slice->getUses(), isStatistic))
      return failure();
    Value view = viewOf(rewriter, slice.getLoc(), transposition->input,
                        slice.getType(), slice.getMixedOffsets(),
                        slice.getMixedSizes(), transposition->permutation);
    rewriter.replaceOp(slice, view);
    return success();
  }
};
} // namespace

void fovea::attn::populateSliceOfTransposePatterns(
    RewritePatternSet &patterns) {
  patterns.add<SliceOfTranspose>(patterns.getContext());
}

Value fovea::attn::getWholeTile(RewriterBase &rewriter,
                                tensor::ParallelInsertSliceOp insertion) {
  Value source = insertion.getSource();
  RankedTensorType type = insertion.getSourceType();
  auto tile =
      RankedTensorType::get(insertion.getStaticSizes(), type.getElementType());
  if (type.getRank() == tile.getRank())
    return source;
  if (type != shortened(tile))
    return nullptr;
  return tensor::ExpandShapeOp::create(rewriter, insertion.getLoc(), tile,
                                       source, groupsOf(tile),
                                       insertion.getMixedSizes());
}

/// Replaces what `loop` writes a result to, of which `permutation` are the
/// dimensions, by a tensor of `type`: what other loops have written before, as
/// they then write it, or an empty one.
static void transposeInit(RewriterBase &rewriter, scf::ForallOp loop,
                          unsigned number, RankedTensorType type,
                          ArrayRef<int64_t> permutation) {
  Location loc = loop.getLoc();
  rewriter.setInsertionPoint(loop);
  OpOperand &out = loop.getOutputsMutable()[number];
  Value old = out.get(), first = old;
  // No other reader of what a loop has written says how large it is.
  while (auto before = first.getDefiningOp<scf::ForallOp>())
    first = before.getTiedOpOperand(cast<OpResult>(first))->get();
  SmallVector<Fold> sizes = tensor::getMixedSizes(rewriter, loc, first);
  applyPermutationToVector(sizes, permutation);
  Value init = fovea::attn::emptyOf(rewriter, loc, type, sizes);
  auto before = old.getDefiningOp<scf::ForallOp>();
  if (before)
    init = linalg::TransposeOp::create(rewriter, loc, old, init, permutation)
               ->getResult(0);
  rewriter.modifyOpInPlace(loop, [&] {
    out.assign(init);
    loop.getRegionIterArgs()[number].setType(type);
    loop.getResult(number).setType(type);
  });
  if (before)
    fovea::attn::fuseTransposeOfResult(rewriter, before,
                                       cast<OpResult>(old).getResultNumber());
}

bool fovea::attn::fuseTransposeOfResult(RewriterBase &rewriter,
                                        scf::ForallOp loop, unsigned number) {
  Value result = loop.getResult(number);
  if (!result.hasOneUse())
    return false;
  Operation *user = *result.user_begin();
  std::optional<Transposition> transposition = Transposition::get(user);
  if (!transposition || transposition->input != result)
    return false;

  // inverse[d] is the position of dimension d of the loop's result.
  SmallVector<int64_t> inverse =
      invertPermutationVector(transposition->permutation);
  // The slice of the destination, and its insertion.
  BlockArgument output = loop.getRegionIterArgs()[number];
  tensor::ExtractSliceOp slice;
  tensor::ParallelInsertSliceOp insertion;
  for (Operation *use : output.getUsers()) {
    if (auto extract = dyn_cast<tensor::ExtractSliceOp>(use); extract && !slice)
      slice = extract;
    else if (auto insert = dyn_cast<tensor::ParallelInsertSliceOp>(use);
             insert && !insertion)
      insertion = insert;
    else
      return false;
  }
  if (!insertion || (slice && slice.getType() != insertion.getSourceType()))
    return false;
  auto tile = RankedTensorType::get(insertion.getStaticSizes(),
                                    insertion.getSourceType().getElementType());
  bool isShort = insertion.getSourceType() != tile;
  if (isShort && insertion.getSourceType() != shortened(tile))
    return false;
  // The tile may be transposed already, so that it is written as it was.
  std::optional<Transposition> ofTile =
      Transposition::get(insertion.getSource().getDefiningOp());
  bool undoes = ofTile && !slice && !isShort && ofTile->permutation == inverse;
  if (!undoes && !keepsOrder(tile, inverse))
    return false;

  transposeInit(rewriter, loop, number,
                cast<RankedTensorType>(user->getResult(0).getType()),
                transposition->permutation);
  Location loc = loop.getLoc();
  if (slice) {
    rewriter.setInsertionPoint(slice);
    rewriter.replaceOp(slice, viewOf(rewriter, loc, output, slice.getType(),
                                     slice.getMixedOffsets(),
                                     slice.getMixedSizes(), inverse));
  }
  SmallVector<Fold> offsets = permuted(insertion.getMixedOffsets(), inverse);
  SmallVector<Fold> tileSizes = permuted(insertion.getMixedSizes(), inverse);
  SmallVector<Fold> ones(tile.getRank(), rewriter.getIndexAttr(1));
  rewriter.setInsertionPoint(insertion->getParentOp());
  Value source = undoes ? ofTile->input : insertion.getSource();
  if (!undoes && !isShort && shortened(tile) != tile)
    source = tensor::CollapseShapeOp::create(rewriter, loc, shortened(tile),
                                             source, groupsOf(tile));
  rewriter.setInsertionPoint(insertion);
  tensor::ParallelInsertSliceOp::create(rewriter, loc, source, output, offsets,
                                        tileSizes, ones);
  rewriter.eraseOp(insertion);
  if (undoes && ofTile->op->use_empty())
    rewriter.eraseOp(ofTile->op);
  rewriter.replaceAllUsesWith(user->getResult(0), result);
  rewriter.eraseOp(user);
  return true;
}
