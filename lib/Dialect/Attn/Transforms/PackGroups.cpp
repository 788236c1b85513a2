//===- PackGroups.cpp - attn-pack-groups ----------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The queries of a group's heads lie one head after another, so that they are
// the rows of one head in the same memory, and dropout, which numbers rows,
// draws the same numbers.
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Attn/Transforms/Passes.h"

#include "fovea/Analysis/IndexMath.h"
#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Support/DebugLog.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

#define DEBUG_TYPE "attn-pack-groups"

namespace fovea::attn {
#define GEN_PASS_DEF_ATTNPACKGROUPS
#include "fovea/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace fovea::attn

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

/// The rows of the smallest tile of queries on a GPU.
static constexpr int64_t kGpuRows = 64;

namespace {
/// Heads that share keys, and the queries of each.
struct Group {
  int64_t kvHeads, heads, queries;

  /// Returns the group of an op all of whose sizes are static; nullopt if they
  /// are not, or if heads share nothing.
  static std::optional<Group> get(AttentionOp op) {
    ArrayRef<int64_t> query = op.getQuery().getType().getShape();
    int64_t kvHeads = op.getKey().getType().getDimSize(1);
    for (int64_t size : {kvHeads, query[1], query[2]})
      if (ShapedType::isDynamic(size) || size < 1)
        return std::nullopt;
    if (query[1] == kvHeads)
      return std::nullopt;
    return Group{kvHeads, query[1] / kvHeads, query[2]};
  }

  int64_t getRows() const { return heads * queries; }
};

struct PackGroups : fovea::attn::impl::AttnPackGroupsBase<PackGroups> {
  using AttnPackGroupsBase::AttnPackGroupsBase;

  void runOnOperation() override {
    if (rows < 0) {
      getOperation()->emitError()
          << "attn-pack-groups: rows must be at least 1, or 0 for the "
             "target's, but are "
          << rows.getValue();
      return signalPassFailure();
    }
    machine::TargetAttr target = machine::getTargetOrDefault(getOperation());
    IRRewriter rewriter(&getContext());
    getOperation()->walk([&](AttentionOp op) {
      std::optional<Group> group = Group::get(op);
      int64_t bytes = op.getAccumulationType().getWidth() / 8;
      int64_t limit = rows             ? rows.getValue()
                      : target.isGpu() ? kGpuRows
                                       : target.getVectorBytes() / bytes;
      if (op.getSchedule() || !group || 2 * group->queries > limit)
        return;
      LDBG() << "attention at " << op.getLoc() << ": " << group->queries
             << " queries of " << group->heads << " heads in one";
      pack(rewriter, op, *group);
      ++numPacked;
    });
  }

private:
  static void pack(RewriterBase &rewriter, AttentionOp op, const Group &group);
};
} // namespace

/// Returns `tensor`, [B, Hkv * G, 1, ...], as [B, Hkv, G, ...]: a view,
/// whatever the strides of its heads, as a slice without the dimension of the
/// one query joins none that may lie apart.
static Value packHeads(OpBuilder &builder, Location loc, Value tensor,
                       SmallVector<OpFoldResult> sizes, const Group &group) {
  int64_t rank = cast<RankedTensorType>(tensor.getType()).getRank();
  SmallVector<OpFoldResult> expanded(sizes);
  expanded[1] = builder.getIndexAttr(group.kvHeads);
  expanded[2] = builder.getIndexAttr(group.heads);
  SmallVector<ReassociationIndices> split = {{0}, {1, 2}, {3}};
  split.resize(rank - 1);
  int64_t query = 2;
  // Among several dimensions of size one, memrefs with dynamic strides do not
  // say which one a slice drops: the only sequence is one with its heads first.
  if (isOneInteger(sizes[0])) {
    SmallVector<ReassociationIndices> join = {{0, 1}, {2}, {3}};
    join.resize(rank - 1);
    tensor = tensor::CollapseShapeOp::create(builder, loc, tensor, join);
    sizes.erase(sizes.begin());
    split = {{0, 1, 2}, {3}};
    split.resize(rank - 2);
    --query;
  }
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape.erase(shape.begin() + query);
  SmallVector<OpFoldResult> zeros(type.getRank(), builder.getIndexAttr(0)),
      ones(type.getRank(), builder.getIndexAttr(1));
  Value heads = tensor::ExtractSliceOp::create(builder, loc, type.clone(shape),
                                               tensor, zeros, sizes, ones);
  return expandShape(builder, loc, heads, split, expanded);
}

/// Returns `tensor`, [B, Hkv * G, Sq, ...], as [B, Hkv, G * Sq, ...].
static Value packRows(OpBuilder &builder, Location loc, Value tensor,
                      const Group &group) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, tensor);
  bool hasOneFeature = type.getRank() == 4 && type.getDimSize(3) == 1;
  if (group.queries == 1 && !hasOneFeature)
    return packHeads(builder, loc, tensor, std::move(sizes), group);
  sizes[1] = builder.getIndexAttr(group.kvHeads);
  sizes.insert(sizes.begin() + 2, builder.getIndexAttr(group.heads));
  SmallVector<ReassociationIndices> split = {{0}, {1, 2}, {3}, {4}},
                                    join = {{0}, {1}, {2, 3}, {4}};
  split.resize(type.getRank());
  join.resize(type.getRank());
  Value expanded = expandShape(builder, loc, tensor, split, sizes);
  return tensor::CollapseShapeOp::create(builder, loc, expanded, join);
}

/// Returns `tensor`, [B, Hkv, G * Sq, ...], as `type`, [B, Hkv * G, Sq, ...].
static Value unpackRows(OpBuilder &builder, Location loc, Value tensor,
                        RankedTensorType type, const Group &group) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, tensor);
  sizes[2] = builder.getIndexAttr(group.heads);
  sizes.insert(sizes.begin() + 3, builder.getIndexAttr(group.queries));
  SmallVector<ReassociationIndices> split = {{0}, {1}, {2, 3}, {4}},
                                    join = {{0}, {1, 2}, {3}, {4}};
  split.resize(type.getRank());
  join.resize(type.getRank());
  Value expanded = expandShape(builder, loc, tensor, split, sizes);
  Value result = tensor::CollapseShapeOp::create(builder, loc, expanded, join);
  return builder.createOrFold<tensor::CastOp>(loc, type, result);
}

/// Moves `from`, whose last arguments are the coordinates of a score, to `to`,
/// where scores have packed coordinates.
static void packRegion(RewriterBase &rewriter, Region &from, Region &to,
                       const Group &group) {
  if (from.empty())
    return;
  Location loc = from.getLoc();
  Block &old = from.front();
  SmallVector<Location> locs(old.getNumArguments(), loc);
  Block *block =
      rewriter.createBlock(&to, to.end(), old.getArgumentTypes(), locs);
  SmallVector<Value> arguments(block->getArguments());
  Value &head = arguments[arguments.size() - 3],
        &row = arguments[arguments.size() - 2];
  // The analysis of masks knows these quotients.
  IndexMath index(rewriter, loc);
  Value queries = index.materialize(index.constant(group.queries));
  Value member = rewriter.createOrFold<arith::DivUIOp>(loc, row, queries);
  row = rewriter.createOrFold<arith::RemUIOp>(loc, row, queries);
  OpFoldResult first = index.mul(head, index.constant(group.heads));
  head = index.materialize(index.add(first, member));
  rewriter.mergeBlocks(&old, block, arguments);
}

/// Returns an initial log-sum-exp of all heads as one of packed rows.
static Value packInit(OpBuilder &builder, Location loc, Value lse,
                      const Group &group) {
  auto type = cast<RankedTensorType>(lse.getType());
  if (type.getRank() == 3)
    return packRows(builder, loc, lse, group);
  if (type.getRank() == 1 && group.queries > 1) {
    // Each query has a row of its own.
    auto wide = RankedTensorType::get(
        {group.kvHeads * group.heads, group.queries}, type.getElementType());
    Value empty = tensor::EmptyOp::create(builder, loc, wide.getShape(),
                                          type.getElementType());
    lse = linalg::BroadcastOp::create(builder, loc, lse, empty,
                                      builder.getDenseI64ArrayAttr({1}))
              ->getResult(0);
    type = wide;
  }
  SmallVector<OpFoldResult> sizes = {builder.getIndexAttr(group.kvHeads),
                                     builder.getIndexAttr(group.heads)};
  SmallVector<ReassociationIndices> split = {{0, 1}};
  if (type.getRank() == 2) {
    split.push_back({2});
    sizes.push_back(builder.getIndexAttr(group.queries));
  }
  lse = expandShape(builder, loc, lse, split, sizes);
  if (type.getRank() == 1)
    return lse;
  SmallVector<ReassociationIndices> join = {{0}, {1, 2}};
  return tensor::CollapseShapeOp::create(builder, loc, lse, join);
}

void PackGroups::pack(RewriterBase &rewriter, AttentionOp op,
                      const Group &group) {
  Location loc = op.getLoc();
  rewriter.setInsertionPoint(op);
  Value query = packRows(rewriter, loc, op.getQuery(), group);
  SmallVector<Type> types;
  for (Value result : op->getResults()) {
    auto type = cast<RankedTensorType>(result.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape[1] = group.kvHeads;
    shape[2] = group.getRows();
    types.push_back(type.clone(shape));
  }
  auto packed = AttentionOp::create(
      rewriter, loc, types[0], types.size() > 1 ? types[1] : Type(), query,
      op.getKey(), op.getValue(), op.getScaleAttr(), op.getDropoutAttr(),
      op.getSeed(), op.getOffset(),
      op.getInitOutput() ? packRows(rewriter, loc, op.getInitOutput(), group)
                         : Value(),
      op.getInitLse() ? packInit(rewriter, loc, op.getInitLse(), group)
                      : Value(),
      op.getSplitSizeAttr(), op.getScheduleAttr());
  packRegion(rewriter, op.getScore(), packed.getScore(), group);
  packRegion(rewriter, op.getMask(), packed.getMask(), group);
  rewriter.setInsertionPointAfter(packed);
  SmallVector<Value> results;
  for (auto [result, whole] :
       llvm::zip_equal(packed->getResults(), op->getResults()))
    results.push_back(unpackRows(
        rewriter, loc, result, cast<RankedTensorType>(whole.getType()), group));
  rewriter.replaceOp(op, results);
}
