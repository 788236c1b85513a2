//===- PackPairs.cpp - Pairs of 16-bit numbers in one register ------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PackPairs.h"

#include "InlinePtx.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Iterators.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;

Value fovea::tile::packPair(OpBuilder &builder, Location loc, Value low,
                            Value high) {
  Value pair = vector::FromElementsOp::create(
      builder, loc, VectorType::get(2, low.getType()), ValueRange{low, high});
  return LLVM::BitcastOp::create(builder, loc, builder.getI32Type(), pair);
}

static bool isPair(vector::FromElementsOp op) {
  VectorType type = op.getDest().getType();
  return type.getShape() == ArrayRef<int64_t>(2) &&
         type.getElementTypeBitWidth() == 16;
}

namespace {
/// The places of a pair's two numbers among the values that an op has.
using Places = std::pair<unsigned, unsigned>;
/// Pairs in the order of their places, for a stable result.
using Pairs = std::map<Places, SmallVector<vector::FromElementsOp>>;
} // namespace

/// Returns the pairs of two of `values`.
static Pairs findPairs(ValueRange values) {
  DenseMap<Value, unsigned> places;
  for (auto [place, value] : llvm::enumerate(values))
    places[value] = place;
  Pairs pairs;
  for (auto [place, value] : llvm::enumerate(values))
    for (OpOperand &use : value.getUses()) {
      auto op = dyn_cast<vector::FromElementsOp>(use.getOwner());
      if (!op || !isPair(op) || use.getOperandNumber() != 0)
        continue;
      auto high = places.find(op.getElements()[1]);
      if (high != places.end())
        pairs[{place, high->second}].push_back(op);
    }
  return pairs;
}

/// Makes `loop` carry the pairs of the values that it carries.
static void carryPairs(scf::ForOp loop, IRRewriter &rewriter) {
  Pairs inside = findPairs(loop.getRegionIterArgs()),
        outside = findPairs(loop.getResults());
  if (inside.empty())
    return;

  Location loc = loop.getLoc();
  auto pack = [&](OpBuilder &builder, ValueRange values, Places places) {
    Value low = values[places.first], high = values[places.second];
    return vector::FromElementsOp::create(
        builder, loc, VectorType::get(2, low.getType()), ValueRange{low, high});
  };
  rewriter.setInsertionPoint(loop);
  SmallVector<Value> inits;
  for (auto &[places, ops] : inside)
    inits.push_back(pack(rewriter, loop.getInitArgs(), places));
  unsigned carried = loop.getNumRegionIterArgs();
  ValueRange yielded = loop.getYieldedValues();
  auto replaced = cast<LoopLikeOpInterface>(loop.getOperation())
                      .replaceWithAdditionalYields(
                          rewriter, inits,
                          /*replaceInitOperandUsesInLoop=*/false,
                          [&](OpBuilder &builder, Location,
                              ArrayRef<BlockArgument>) -> SmallVector<Value> {
                            SmallVector<Value> packed;
                            for (auto &[places, ops] : inside)
                              packed.push_back(pack(builder, yielded, places));
                            return packed;
                          });
  assert(succeeded(replaced) && "every scf.for can carry more");
  auto result = cast<scf::ForOp>(replaced->getOperation());
  for (auto [index, entry] : llvm::enumerate(inside)) {
    for (vector::FromElementsOp op : entry.second)
      rewriter.replaceOp(op, result.getRegionIterArg(carried + index));
    for (vector::FromElementsOp op : outside[entry.first])
      rewriter.replaceOp(op, result.getResult(carried + index));
  }
}

/// Makes `branch` yield the pairs of the values that it yields.
static void yieldPairs(scf::IfOp branch, IRRewriter &rewriter) {
  Pairs pairs = findPairs(branch.getResults());
  if (pairs.empty())
    return;

  unsigned numResults = branch.getNumResults();
  SmallVector<Type> types(branch.getResultTypes());
  for (auto &[places, ops] : pairs)
    types.push_back(ops.front().getType());
  rewriter.setInsertionPoint(branch);
  auto replaced =
      scf::IfOp::create(rewriter, branch.getLoc(), types, branch.getCondition(),
                        /*addThenBlock=*/false, /*addElseBlock=*/false);
  for (auto [from, to] :
       llvm::zip_equal(branch->getRegions(), replaced->getRegions())) {
    to.takeBody(from);
    Operation *yield = to.front().getTerminator();
    rewriter.setInsertionPoint(yield);
    for (auto &[places, ops] : pairs)
      yield->insertOperands(yield->getNumOperands(),
                            vector::FromElementsOp::create(
                                rewriter, branch.getLoc(),
                                ops.front().getType(),
                                ValueRange{yield->getOperand(places.first),
                                           yield->getOperand(places.second)})
                                .getResult());
  }
  for (auto [index, entry] : llvm::enumerate(pairs))
    for (vector::FromElementsOp op : entry.second)
      rewriter.replaceOp(op, replaced.getResult(numResults + index));
  rewriter.replaceOp(branch, replaced.getResults().take_front(numResults));
}

/// Rounds two numbers by one instruction (PTX ISA, cvt), which stays where it
/// is: LLVM would move it into the branch that uses it, behind what it is to
/// run beside.
static Value roundHere(OpBuilder &builder, Location loc, VectorType type,
                       Value low, Value high) {
  StringRef text = type.getElementType().isF16()
                       ? "cvt.rn.f16x2.f32 $0, $1, $2;"
                       : "cvt.rn.bf16x2.f32 $0, $1, $2;";
  Value word = fovea::tile::emitPtx(builder, loc, text, {high, low},
                                    builder.getI32Type())
                   .front();
  return LLVM::BitcastOp::create(builder, loc, type, word);
}

/// The pairs that were rounded before branches, by their two numbers.
using RoundedPairs = DenseMap<std::pair<Value, Value>, Value>;

/// Rounds two numbers by one instruction, before a branch that uses the pair if
/// the program rounds them there: once for all branches.
static void roundPair(vector::FromElementsOp op, IRRewriter &rewriter,
                      RoundedPairs &rounded) {
  auto low = op.getElements()[0].getDefiningOp<arith::TruncFOp>();
  auto high = op.getElements()[1].getDefiningOp<arith::TruncFOp>();
  if (!low || !high || !low.getIn().getType().isF32() ||
      !high.getIn().getType().isF32())
    return;
  if (low->getBlock() == high->getBlock() &&
      low->getBlock() != op->getBlock()) {
    Value &pair = rounded[{low, high}];
    if (!pair) {
      rewriter.setInsertionPointAfter(low->isBeforeInBlock(high) ? high : low);
      pair = roundHere(rewriter, op.getLoc(), op.getType(), low.getIn(),
                       high.getIn());
    }
    rewriter.replaceOp(op, pair);
    return;
  }
  rewriter.setInsertionPoint(op);
  Value pair = vector::FromElementsOp::create(
      rewriter, op.getLoc(), VectorType::get(2, rewriter.getF32Type()),
      ValueRange{low.getIn(), high.getIn()});
  rewriter.replaceOpWithNewOp<arith::TruncFOp>(op, op.getDest().getType(),
                                               pair);
}

void fovea::tile::packPairs(Operation *root) {
  IRRewriter rewriter(root->getContext());
  // The last come first, and outer ones before inner ones: what an op yields or
  // begins with, ops after it in this order may give.
  SmallVector<Operation *> ops;
  root->walk<WalkOrder::PreOrder, ReverseIterator>([&](Operation *op) {
    if (isa<scf::ForOp, scf::IfOp>(op))
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    if (auto loop = dyn_cast<scf::ForOp>(op))
      carryPairs(loop, rewriter);
    else
      yieldPairs(cast<scf::IfOp>(op), rewriter);
  }
  SmallVector<vector::FromElementsOp> pairs;
  root->walk([&](vector::FromElementsOp op) {
    if (isPair(op))
      pairs.push_back(op);
  });
  RoundedPairs rounded;
  for (vector::FromElementsOp op : pairs)
    roundPair(op, rewriter, rounded);
}
