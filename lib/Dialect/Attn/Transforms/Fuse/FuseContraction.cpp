//===- FuseContraction.cpp - Products of two tensors ----------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FuseContraction.h"

#include "fovea/Dialect/Attn/IR/Attn.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using linalg::LinalgOp;

namespace fovea::attn::fuse {

static bool isFloatTensor(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && isa<FloatType>(type.getElementType());
}

/// Returns the op of a payload that combines the running value `out` with
/// another value to yield `yielded`, and that value; null for any other
/// payload.
static std::pair<Operation *, Value> getCombiner(Value yielded,
                                                 BlockArgument out) {
  Operation *op = stripCasts(yielded).getDefiningOp();
  if (!op || op->getNumOperands() != 2 || op->getNumResults() != 1)
    return {nullptr, nullptr};
  for (unsigned side : {0, 1})
    if (stripCasts(op->getOperand(side)) == out)
      return {op, op->getOperand(1 - side)};
  return {nullptr, nullptr};
}

bool isContractionLike(Operation *op) {
  if (isa<ScoresOp, ValuesOp>(op))
    return true;
  auto linalg = dyn_cast<LinalgOp>(op);
  if (!linalg || !linalg.hasPureTensorSemantics() ||
      linalg.getNumDpsInputs() != 2 || linalg.getNumDpsInits() != 1 ||
      linalg.getNumReductionLoops() == 0 || op->getNumResults() != 1)
    return false;
  if (!llvm::all_of(op->getOperands(), isFloatTensor))
    return false;
  Block *body = linalg.getBlock();
  auto [combiner, addend] =
      getCombiner(body->getTerminator()->getOperand(0),
                  linalg.getMatchingBlockArgument(linalg.getDpsInitOperand(0)));
  auto product = isa_and_nonnull<arith::AddFOp>(combiner)
                     ? stripCasts(addend).getDefiningOp<arith::MulFOp>()
                     : nullptr;
  if (!product)
    return false;
  Value lhs = stripCasts(product.getLhs()), rhs = stripCasts(product.getRhs());
  Value first = body->getArgument(0), second = body->getArgument(1);
  return (lhs == first && rhs == second) || (lhs == second && rhs == first);
}

/// Returns the heads of keys or values that query heads `head` read, in a graph
/// op with `queryHeads` and `kvHeads` heads.
static std::optional<Axes> getKVHead(AxisTable &axes, const Axes &head,
                                     int64_t queryHeads, int64_t kvHeads) {
  if (kvHeads == 1)
    return Axes();
  if (!ShapedType::isDynamic(queryHeads) && !ShapedType::isDynamic(kvHeads)) {
    if (kvHeads == 0 || queryHeads % kvHeads != 0)
      return std::nullopt;
    auto parts = axes.cut(head, {kvHeads, queryHeads / kvHeads});
    if (!parts)
      return std::nullopt;
    return parts->front();
  }
  Axes flat = axes.flatten(head);
  if (flat.size() != 1)
    return std::nullopt;
  return Axes{axes.getKVHead(flat.front())};
}

/// Matches attn.scores (`[b, h, i, d] x [b, kv, j, d] -> [b, h, i, j]`) or
/// attn.values (`[b, h, i, j] x [b, kv, j, d] -> [b, h, i, d]`).
static std::optional<Contraction>
matchGraphOp(ScalarGraph &graph, Operation *op, const Access &access) {
  AxisTable &axes = graph.getAxes();
  Value lhs = op->getOperand(0), rhs = op->getOperand(1);
  auto lhsType = cast<RankedTensorType>(lhs.getType());
  auto rhsType = cast<RankedTensorType>(rhs.getType());
  bool isScores = isa<ScoresOp>(op);
  int64_t size = lhsType.getDimSize(3);
  if (ShapedType::isDynamic(size))
    size = rhsType.getDimSize(isScores ? 3 : 2);
  Axes reduced = {axes.getLoop(op, 0, size)};
  std::optional<Axes> head =
      getKVHead(axes, access[1], lhsType.getDimSize(1), rhsType.getDimSize(1));
  if (!head)
    return std::nullopt;
  Access right = isScores ? Access{access[0], *head, access[3], reduced}
                          : Access{access[0], *head, reduced, access[3]};
  Contraction result = {
      op,
      {lhs, rhs},
      {Access{access[0], access[1], access[2], reduced}, right},
      access,
      reduced,
      /*init=*/nullptr,
      /*initAccess=*/{},
      /*startsAtZero=*/true};
  for (auto [input, place] : llvm::zip_equal(result.inputs, result.accesses))
    axes.learn(cast<RankedTensorType>(input.getType()), place);
  return result;
}

std::optional<Contraction> matchContraction(ScalarGraph &graph, Value value,
                                            const Access &access) {
  Operation *op = value.getDefiningOp();
  if (!op || !isContractionLike(op))
    return std::nullopt;
  auto linalg = dyn_cast<LinalgOp>(op);
  if (!linalg)
    return matchGraphOp(graph, op, access);

  AxisTable &axes = graph.getAxes();
  OpOperand *init = linalg.getDpsInitOperand(0);
  AffineMap initMap = linalg.getMatchingIndexingMap(init);
  std::optional<Loops> loops = bindLoops(axes, linalg, initMap, access);
  if (!loops)
    return std::nullopt;
  Contraction result = {op, {}, {}, access, {}, init->get(), access, false};
  SmallVector<int64_t> ranges = linalg.getStaticLoopRanges();
  AffineMap maps[] = {
      linalg.getMatchingIndexingMap(linalg.getDpsInputOperand(0)),
      linalg.getMatchingIndexingMap(linalg.getDpsInputOperand(1))};
  for (auto [index, loop] : llvm::enumerate(*loops)) {
    if (loop)
      continue;
    // A summed loop must index both inputs: otherwise the op sums one of them.
    if (!maps[0].isFunctionOfDim(index) || !maps[1].isFunctionOfDim(index))
      return std::nullopt;
    loop = Axes{axes.getLoop(op, index, ranges[index])};
    result.reduced.append(*loop);
  }
  for (unsigned input : {0, 1}) {
    std::optional<Access> place = axes.apply(maps[input], *loops);
    if (!place)
      return std::nullopt;
    result.inputs[input] = linalg.getDpsInputOperand(input)->get();
    result.accesses[input] = *place;
    axes.learn(cast<RankedTensorType>(result.inputs[input].getType()), *place);
  }
  std::optional<double> start =
      getConstantFloat(graph.read(result.init, result.initAccess));
  result.startsAtZero = start && *start == 0.0;
  return result;
}

std::optional<Reduction> matchReduction(ScalarGraph &graph, Value value,
                                        const Access &access,
                                        ArrayRef<Axis> along) {
  auto result = dyn_cast<OpResult>(value);
  auto op = result ? dyn_cast<LinalgOp>(result.getOwner()) : LinalgOp();
  if (!op || !op.hasPureTensorSemantics())
    return std::nullopt;
  OpOperand *init = op.getDpsInitOperand(result.getResultNumber());
  std::optional<Loops> loops =
      bindLoops(graph.getAxes(), op, op.getMatchingIndexingMap(init), access);
  if (!loops || llvm::count(*loops, std::nullopt) != 1)
    return std::nullopt;
  *llvm::find(*loops, std::nullopt) = Axes(along);
  auto [combiner, element] = getCombiner(
      op.getBlock()->getTerminator()->getOperand(result.getResultNumber()),
      op.getMatchingBlockArgument(init));
  if (!combiner)
    return std::nullopt;
  Value scalar =
      graph.readPayload(op, element, *loops, [&](BlockArgument argument) {
        return graph.readArgument(op, argument, *loops);
      });
  if (!scalar)
    return std::nullopt;
  return Reduction{combiner, graph.read(init->get(), access), scalar};
}

bool isReduction(Operation *op) {
  auto linalg = dyn_cast_or_null<LinalgOp>(op);
  return linalg && linalg.getNumReductionLoops() > 0 && !isContractionLike(op);
}

} // namespace fovea::attn::fuse
