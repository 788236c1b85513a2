//===- LinalgSplitSums.cpp - linalg-split-sums ----------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Analysis/IndexMath.h"
#include "fovea/Analysis/Loops.h"
#include "fovea/Analysis/VectorPlan.h"
#include "fovea/Dialect/Machine/IR/Machine.h"
#include "fovea/Support/DebugLog.h"
#include "fovea/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/TilingInterface.h"
#include "llvm/Support/MathExtras.h"

#define DEBUG_TYPE "linalg-split-sums"

using namespace mlir;

namespace fovea {
#define GEN_PASS_DEF_LINALGSPLITSUMS
#include "fovea/Transforms/Passes.h.inc"

/// The threads that a multiprocessor has room for, all of which read.
static constexpr int64_t kThreads = 2048;
/// The threads of a block, which read neighbours.
static constexpr int64_t kBlockThreads = 256;
/// The fewest terms that a thread should add up.
static constexpr int64_t kFewestTerms = 32;
/// The share of the threads that results have to leave idle.
static constexpr int64_t kIdleShare = 4;

namespace {
/// How one op is split.
struct Split {
  unsigned loop;       ///< The reduction.
  int64_t parts;       ///< Its parts.
  unsigned neighbours; ///< The parallel loop along neighbours in memory.
};
} // namespace

/// Returns the loops of `op` in the order of the dimensions of an operand that
/// has an element for each iteration; none if there is no such operand.
static SmallVector<unsigned> getMemoryOrder(linalg::GenericOp op) {
  for (AffineMap map : op.getIndexingMapsArray())
    if (map.isPermutation())
      return llvm::map_to_vector(map.getResults(), [](AffineExpr dim) {
        return cast<AffineDimExpr>(dim).getPosition();
      });
  return {};
}

/// Returns how to split `op`; nullopt if it has enough results for all threads,
/// or terms that are neighbours in memory.
static std::optional<Split> findSplit(linalg::GenericOp op, int64_t threads) {
  // Tiles of operands that are read otherwise, as backwards, are no slices.
  bool areSlices = llvm::all_of(op.getIndexingMapsArray(), [](AffineMap map) {
    return map.isProjectedPermutation();
  });
  if (!op.hasPureTensorSemantics() || op.getNumReductionLoops() == 0 ||
      !areSlices || !writesApart(op))
    return std::nullopt;
  for (unsigned output = 0; output < op.getNumDpsInits(); ++output)
    if (!getCombiner(op, output))
      return std::nullopt;
  SmallVector<unsigned> order = getMemoryOrder(op);
  SmallVector<utils::IteratorType> kinds = op.getIteratorTypesArray();
  if (order.empty() || !linalg::isParallelIterator(kinds[order.back()]))
    return std::nullopt;
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  int64_t results = 1;
  std::optional<unsigned> loop;
  for (unsigned dim : order) {
    bool isDynamic = ShapedType::isDynamic(sizes[dim]);
    if (linalg::isReductionIterator(kinds[dim])) {
      if (isDynamic || sizes[dim] >= 2 * kFewestTerms)
        loop = dim;
      continue;
    }
    if (isDynamic || sizes[dim] == 0)
      return std::nullopt;
    results *= sizes[dim];
  }
  if (!loop || results > threads / kIdleShare)
    return std::nullopt;
  int64_t parts = llvm::PowerOf2Ceil(llvm::divideCeil(threads, results));
  if (int64_t terms = sizes[*loop]; !ShapedType::isDynamic(terms))
    parts = std::min<int64_t>(parts,
                              llvm::bit_floor(uint64_t(terms) / kFewestTerms));
  return Split{*loop, parts, order.back()};
}

namespace {
/// Replaces one op by a parallel loop over the parts of its reduction, and of
/// its results, and the sum of the parts.
class Splitter {
public:
  Splitter(RewriterBase &rewriter, linalg::GenericOp op, const Split &split)
      : rewriter(rewriter), op(op), loc(op.getLoc()), split(split) {}

  LogicalResult run();

private:
  void addItems();
  FailureOr<SmallVector<Value>> emitParts();
  LogicalResult emitItem(scf::ForallOp items);
  Value addParts(Value parts, unsigned output);

  RewriterBase &rewriter;
  linalg::GenericOp op;
  Location loc;
  const Split &split;
  /// The sizes of the op's loops.
  SmallVector<OpFoldResult> domain;
  /// The loops that items are parts of, those of results in front, and the
  /// number of items along each.
  SmallVector<unsigned> loops;
  SmallVector<OpFoldResult> counts;
};
} // namespace

void Splitter::addItems() {
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  for (auto [dim, kind] : llvm::enumerate(op.getIteratorTypesArray())) {
    if (!linalg::isParallelIterator(kind))
      continue;
    loops.push_back(dim);
    counts.push_back(rewriter.getIndexAttr(
        dim == split.neighbours
            ? int64_t(llvm::divideCeil(sizes[dim], kBlockThreads))
            : sizes[dim]));
  }
  loops.push_back(split.loop);
  counts.push_back(rewriter.getIndexAttr(split.parts));
}

/// Emits an item: the sum of its terms, which is one of its results' parts.
LogicalResult Splitter::emitItem(scf::ForallOp items) {
  IndexMath math(rewriter, loc);
  auto tiling = cast<TilingInterface>(op.getOperation());
  SmallVector<OpFoldResult> offsets(domain.size(), rewriter.getIndexAttr(0)),
      sizes = domain;
  for (auto [dim, count, item] :
       llvm::zip_equal(loops, counts, items.getInductionVars())) {
    OpFoldResult size = sizes[dim], share = math.ceilDiv(size, count);
    offsets[dim] = math.mul(OpFoldResult(item), share);
    sizes[dim] = share;
    std::optional<int64_t> known = IndexMath::constantOf(size);
    if (known && *known % *IndexMath::constantOf(count) == 0)
      continue;
    offsets[dim] = math.min(offsets[dim], size);
    sizes[dim] = math.min(share, math.sub(size, offsets[dim]));
  }
  FailureOr<TilingResult> tiled =
      tiling.getTiledImplementation(rewriter, offsets, sizes);
  if (failed(tiled))
    return op.emitOpError("cannot be cut into tiles");
  auto part = cast<linalg::GenericOp>(tiled->tiledOps.front());
  OpFoldResult one = rewriter.getIndexAttr(1),
               number = items.getInductionVars().back();
  for (auto [output, init] : llvm::enumerate(part.getDpsInitsMutable())) {
    rewriter.setInsertionPoint(part);
    Value neutral = arith::ConstantOp::create(
        rewriter, loc, *arith::getNeutralElement(getCombiner(op, output)));
    Value empty = tensor::EmptyOp::create(
        rewriter, loc, tensor::getMixedSizes(rewriter, loc, init.get()),
        neutral.getType());
    init.set(
        linalg::FillOp::create(rewriter, loc, neutral, empty).getResult(0));
    SmallVector<OpFoldResult> place, extent;
    if (failed(tiling.getResultTilePosition(rewriter, output, offsets, sizes,
                                            place, extent)))
      return op.emitOpError("has results without tiles");
    place.push_back(number);
    extent.push_back(one);
    SmallVector<OpFoldResult> strides(place.size(), one);
    rewriter.setInsertionPointToEnd(items.getTerminator().getBody());
    tensor::ParallelInsertSliceOp::create(
        rewriter, loc, part->getResult(output),
        items.getRegionIterArgs()[output], place, extent, strides);
  }
  return success();
}

/// Emits the loop over items, whose results have the parts of each result of
/// the op along a last dimension.
FailureOr<SmallVector<Value>> Splitter::emitParts() {
  SmallVector<Value> outputs;
  for (Value init : op.getDpsInits()) {
    auto type = cast<RankedTensorType>(init.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape.push_back(split.parts);
    outputs.push_back(
        tensor::EmptyOp::create(rewriter, loc, shape, type.getElementType()));
  }
  auto items = scf::ForallOp::create(rewriter, loc, counts, outputs,
                                     /*mapping=*/std::nullopt);
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(items.getTerminator());
  if (failed(emitItem(items)))
    return failure();
  return SmallVector<Value>(items.getResults());
}

/// Returns an initial value plus the parts.
Value Splitter::addParts(Value parts, unsigned output) {
  Value init = op.getDpsInits()[output];
  unsigned rank = cast<RankedTensorType>(init.getType()).getRank();
  AffineMap all = rewriter.getMultiDimIdentityMap(rank + 1);
  SmallVector<utils::IteratorType> kinds(rank, utils::IteratorType::parallel);
  kinds.push_back(utils::IteratorType::reduction);
  Operation *combiner = getCombiner(op, output);
  return linalg::GenericOp::create(
             rewriter, loc, init.getType(), parts, init,
             ArrayRef<AffineMap>{all, all.getMajorSubMap(rank)}, kinds,
             [&](OpBuilder &body, Location loc, ValueRange in) {
               Operation *combined = body.clone(*combiner);
               combined->setOperands({in[1], in[0]});
               linalg::YieldOp::create(body, loc, combined->getResults());
             })
      .getResult(0);
}

LogicalResult Splitter::run() {
  rewriter.setInsertionPoint(op);
  domain = llvm::map_to_vector(
      cast<TilingInterface>(op.getOperation()).getIterationDomain(rewriter),
      [](Range range) { return range.size; });
  addItems();
  FailureOr<SmallVector<Value>> parts = emitParts();
  if (failed(parts))
    return failure();
  SmallVector<Value> results;
  for (auto [output, part] : llvm::enumerate(*parts))
    results.push_back(addParts(part, output));
  rewriter.replaceOp(op, results);
  return success();
}

namespace {
struct LinalgSplitSums final : impl::LinalgSplitSumsBase<LinalgSplitSums> {
  using LinalgSplitSumsBase::LinalgSplitSumsBase;

  void runOnOperation() override {
    machine::TargetAttr target = machine::getTargetOrDefault(getOperation());
    if (!target.isGpu())
      return;
    SmallVector<std::pair<linalg::GenericOp, Split>> sums;
    getOperation()->walk([&](linalg::GenericOp op) {
      if (op->getParentOfType<scf::ForallOp>())
        return;
      if (std::optional<Split> found =
              findSplit(op, target.getCores() * kThreads))
        sums.emplace_back(op, *found);
    });
    IRRewriter rewriter(&getContext());
    for (auto [op, parts] : sums) {
      LDBG() << "the sum at " << op.getLoc() << " is split into " << parts.parts
             << " parts";
      if (failed(Splitter(rewriter, op, parts).run()))
        return signalPassFailure();
      ++numSplit;
    }
  }
};
} // namespace
} // namespace fovea
