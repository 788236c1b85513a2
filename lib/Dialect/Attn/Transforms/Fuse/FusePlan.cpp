//===- FusePlan.cpp - One attention to be fused ---------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FusePlan.h"
#include "fovea/Analysis/Formula.h"

#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using linalg::LinalgOp;

namespace fovea::attn::fuse {

static bool reject(std::string &why, StringRef reason) {
  if (why.empty())
    why = reason.str();
  return false;
}

static bool contains(ArrayRef<Axis> list, Axis axis) {
  return llvm::is_contained(list, axis);
}

static Axes flattenAccess(const Access &access) {
  Axes result;
  for (const Axes &list : access)
    result.append(list);
  return result;
}

std::unique_ptr<Plan> Plan::create(Operation *op, unsigned probabilities,
                                   std::string &why) {
  std::unique_ptr<Plan> plan(new Plan(op, probabilities));
  // Each round may learn more about the axes; earlier findings are then
  // restated in the axes that have been split since.
  constexpr unsigned kMaxRounds = 32;
  for (unsigned round = 0; round < kMaxRounds; ++round) {
    why.clear();
    bool isAttention = plan->analyse(why);
    if (plan->axes.takeChanged())
      continue;
    return isAttention ? std::move(plan) : nullptr;
  }
  why = "its reshapes do not settle";
  return nullptr;
}

bool Plan::analyse(std::string &why) {
  graph = std::make_unique<ScalarGraph>(axes, valuesOp->getContext());
  return matchValues(why) && matchProduct(why) && assignRoles(why) &&
         chooseSources(why) && checkScore(why) && checkDropout(why) &&
         checkDependences(why) && (findLogSums(), checkUses(why));
}

//===----------------------------------------------------------------------===//
// The contractions and the softmax
//===----------------------------------------------------------------------===//

bool Plan::matchValues(std::string &why) {
  Access access;
  auto type = cast<RankedTensorType>(valuesOp->getResult(0).getType());
  if (auto linalg = dyn_cast<LinalgOp>(valuesOp)) {
    SmallVector<int64_t> ranges = linalg.getStaticLoopRanges();
    AffineMap map = linalg.getMatchingIndexingMap(linalg.getDpsInitOperand(0));
    for (AffineExpr expr : map.getResults()) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      if (!dim)
        return reject(why, "the contraction with values is not a projected "
                           "permutation of its loops");
      access.push_back({axes.getLoop(valuesOp, dim.getPosition(),
                                     ranges[dim.getPosition()])});
    }
  } else {
    for (auto [dim, size] : llvm::enumerate(type.getShape()))
      access.push_back({axes.getLoop(valuesOp, dim + 1, size)});
  }
  std::optional<Contraction> match =
      matchContraction(*graph, valuesOp->getResult(0), access);
  if (!match)
    return reject(why, "the op that reads the probabilities does not contract "
                       "them with values");
  values = *match;
  if (!values.startsAtZero)
    return reject(why, "the contraction with values does not start from zero");
  axes.keep(values.reduced);
  keys = axes.flatten(values.reduced);
  Value p =
      graph->read(values.inputs[probabilities], values.accesses[probabilities]);
  findResult();
  std::optional<Softmax> found = matchSoftmax(*graph, p, keys, why);
  if (!found)
    return matchDivisionAfter(p, why);
  softmax = *found;
  return true;
}

/// If only one view or elementwise op uses `tensor`, read at `access`, returns
/// that op's result, and where it is read.
static std::optional<std::pair<Value, Access>>
getOnlyUse(AxisTable &axes, Value tensor, const Access &access) {
  Operation *user = nullptr;
  for (Operation *candidate : tensor.getUsers()) {
    if (user && candidate != user)
      return std::nullopt;
    user = candidate;
  }
  if (!user || user->getNumResults() != 1 ||
      user->getBlock() != tensor.getParentBlock())
    return std::nullopt;
  Value result = user->getResult(0);
  auto type = dyn_cast<RankedTensorType>(result.getType());
  if (!type)
    return std::nullopt;
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(user)) {
    Access place;
    for (const ReassociationIndices &group : collapse.getReassociationIndices())
      for (Axes &list = place.emplace_back(); int64_t dim : group)
        list.append(access[dim]);
    return std::pair(result, place);
  }
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(user)) {
    Access place;
    for (auto [group, list] :
         llvm::zip_equal(expand.getReassociationIndices(), access)) {
      auto pieces =
          axes.cut(list, type.getShape().slice(group.front(), group.size()));
      if (!pieces)
        return std::nullopt;
      place.append(pieces->begin(), pieces->end());
    }
    place.resize(type.getRank());
    return std::pair(result, place);
  }
  if (isa<tensor::CastOp>(user) ||
      (OpTrait::hasElementwiseMappableTraits(user) &&
       user->getNumRegions() == 0))
    return std::pair(result, access);
  auto linalg = dyn_cast<LinalgOp>(user);
  if (!linalg || !linalg.hasPureTensorSemantics() ||
      linalg.getNumDpsInits() != 1 || linalg.getNumReductionLoops() != 0)
    return std::nullopt;
  Loops loops(linalg.getNumLoops());
  for (OpOperand *operand : linalg.getDpsInputOperands()) {
    AffineMap map = linalg.getMatchingIndexingMap(operand);
    if (operand->get() != tensor || !map.isProjectedPermutation())
      continue;
    for (auto [expr, list] : llvm::zip_equal(map.getResults(), access))
      loops[cast<AffineDimExpr>(expr).getPosition()] = list;
  }
  std::optional<Access> place = axes.apply(
      linalg.getMatchingIndexingMap(linalg.getDpsInitOperand(0)), loops);
  if (!place)
    return std::nullopt;
  return std::pair(result, *place);
}

/// Returns true if `scalar` is the result of the contraction with values, or a
/// cast of it.
bool Plan::passesOn(Value scalar) const {
  const Leaf *leaf = graph->lookupLeaf(stripCasts(scalar));
  return leaf && leaf->tensor == valuesOp->getResult(0) &&
         leaf->access == axes.flatten(values.resultAccess);
}

/// Includes a narrowing in the attention if it is the only use of the
/// contraction with values, except for views.
void Plan::findResult() {
  result = valuesOp->getResult(0);
  resultAccess = axes.flatten(values.resultAccess);
  Value current = result;
  Access access = resultAccess;
  while (auto next = getOnlyUse(axes, current, access)) {
    std::tie(current, access) = *next;
    access = axes.flatten(access);
    Value scalar = graph->read(current, access);
    if (!passesOn(scalar))
      return;
    if (scalar.getDefiningOp<arith::TruncFOp>()) {
      result = current;
      resultAccess = access;
      return;
    }
  }
}

/// Matches `(exp(z) * values) / sum exp(z)`, where the division comes after the
/// contraction.
bool Plan::matchDivisionAfter(Value p, std::string &why) {
  Value current = valuesOp->getResult(0);
  Access access = axes.flatten(values.resultAccess);
  while (auto next = getOnlyUse(axes, current, access)) {
    std::tie(current, access) = *next;
    access = axes.flatten(access);
    Value scalar = graph->read(current, access);
    if (passesOn(scalar))
      continue;
    auto [numerator, denominator] = matchQuotient(stripCasts(scalar));
    if (!numerator || !passesOn(numerator))
      return false;
    std::string whyNot;
    std::optional<Softmax> found =
        matchSoftmax(*graph, p, denominator, keys, whyNot);
    if (!found)
      return false;
    softmax = *found;
    result = current;
    resultAccess = access;
    return true;
  }
  return false;
}

/// Finds the contraction of queries with keys among the operands of the score.
bool Plan::matchProduct(std::string &why) {
  Operation *obstacle = nullptr;
  for (Value scalar : getIngredients(*graph, softmax.score, nullptr)) {
    const Leaf *leaf = graph->lookupLeaf(scalar);
    if (!leaf)
      continue;
    if (Operation *found = graph->lookupObstacle(leaf->tensor))
      obstacle = found;
    std::optional<Contraction> match =
        matchContraction(*graph, leaf->tensor, Access(leaf->access));
    if (!match || match->op->getBlock() != valuesOp->getBlock())
      continue;
    auto countKeys = [&](unsigned input) {
      Axes present = flattenAccess(axes.flatten(match->accesses[input]));
      return llvm::count_if(keys,
                            [&](Axis axis) { return contains(present, axis); });
    };
    unsigned counts[] = {static_cast<unsigned>(countKeys(0)),
                         static_cast<unsigned>(countKeys(1))};
    for (unsigned input : {0, 1}) {
      if (counts[input] != keys.size() || counts[1 - input] != 0)
        continue;
      product = *match;
      productScalar = scalar;
      keyInput = input;
      return true;
    }
  }
  if (obstacle)
    return reject(why, ("the softmax's input depends on '" +
                        obstacle->getName().getStringRef() + "' in '" +
                        obstacle->getParentOp()->getName().getStringRef() +
                        "', and only regions of straight-line scalar ops are "
                        "fused; attn.attention itself takes control flow")
                           .str());
  return reject(why, "the softmax's input is not an elementwise function of a "
                     "contraction of queries with keys");
}

//===----------------------------------------------------------------------===//
// Roles of axes
//===----------------------------------------------------------------------===//

bool Plan::assignRoles(std::string &why) {
  querySources = getSources(*graph, product.inputs[1 - keyInput],
                            product.accesses[1 - keyInput], true);
  keySources = getSources(*graph, product.inputs[keyInput],
                          product.accesses[keyInput], true);
  valueSources = getSources(*graph, values.inputs[1 - probabilities],
                            values.accesses[1 - probabilities], false);
  const Access keyRoot = axes.flatten(keySources.back().access);
  const Access valueRoot = axes.flatten(valueSources.back().access);
  const Access queryRoot = axes.flatten(querySources.back().access);
  features = axes.flatten(product.reduced);

  // An axis that keys or values have, directly or as the group of heads that
  // share one, is a batch or a head; an axis that neither has belongs to
  // queries.
  auto isShared = [&](Axis axis) {
    std::optional<Axis> kvHead = axes.lookupKVHead(axis);
    return hasAxis(keyRoot, axis) || hasAxis(valueRoot, axis) ||
           (kvHead &&
            (hasAxis(keyRoot, *kvHead) || hasAxis(valueRoot, *kvHead)));
  };
  Access dims;
  for (const Axes &list : axes.flatten(values.accesses[probabilities]))
    if (!llvm::any_of(list, [&](Axis axis) { return contains(keys, axis); }))
      dims.push_back(list);
    else if (list != keys)
      return reject(why, "keys are mixed with other dimensions");

  // The last dimension with an axis that only queries have holds the rows.
  std::optional<size_t> rowDim;
  Axes own;
  for (auto [index, list] : llvm::enumerate(dims))
    for (Axis axis : list)
      if (!isShared(axis)) {
        rowDim = index;
        own.push_back(axis);
      }
  rows.clear();
  if (rowDim) {
    // Heads of a group that are folded into the rows are in another dimension
    // of the query.
    const Axes *home = llvm::find_if(queryRoot, [&](const Axes &list) {
      return contains(list, own.back());
    });
    for (Axis axis : llvm::reverse(dims[*rowDim])) {
      bool isNeighbour = home == queryRoot.end() || axis == own.back() ||
                         contains(*home, axis);
      if (isShared(axis) || !isNeighbour)
        break;
      rows.insert(rows.begin(), axis);
    }
  }

  Axes shared, groups;
  SmallVector<size_t> batchDims;
  for (auto [index, list] : llvm::enumerate(dims)) {
    for (Axis axis : list)
      if (!contains(rows, axis))
        (isShared(axis) ? shared : groups).push_back(axis);
    if (index != rowDim)
      batchDims.push_back(index);
  }
  batch.clear();
  if (batchDims.size() >= 2) {
    for (Axis axis : dims[batchDims.front()])
      if (contains(shared, axis))
        batch.push_back(axis);
  } else if (!shared.empty()) {
    // One dimension of heads, unless it was collapsed with a batch of one.
    bool isHeads = llvm::any_of(querySources, [&](const Source &source) {
      Access place = axes.flatten(source.access);
      return shared.size() == 1 && place.size() == 4 && place[0].empty() &&
             place[1] == shared;
    });
    if (!isHeads)
      batch = {shared.front()};
  }
  kvHeads.clear();
  for (Axis axis : shared)
    if (!contains(batch, axis))
      kvHeads.push_back(axis);
  heads = kvHeads;
  heads.append(groups);

  // Where the number of heads per KV head is known only at run time, the heads
  // are one axis.
  for (Axis &axis : kvHeads)
    if (std::optional<Axis> kvHead = axes.lookupKVHead(axis)) {
      if (heads.size() != 1)
        return reject(why, "the number of query heads per KV head is not "
                           "known and heads are made of several dimensions");
      axis = *kvHead;
    }
  for (Axis axis : batch)
    if (axes.lookupKVHead(axis))
      return reject(why, "the batch dimension holds grouped heads");

  valueFeatures.clear();
  for (Axis axis :
       flattenAccess(axes.flatten(values.accesses[1 - probabilities])))
    if (!contains(keys, axis) && !contains(shared, axis) &&
        !llvm::is_contained(kvHeads, axis) && !contains(own, axis))
      valueFeatures.push_back(axis);
  return true;
}

Layout Plan::scoreLayout() const { return {batch, heads, rows, keys}; }

bool Plan::chooseSources(std::string &why) {
  SmallVector<Source> sizes(querySources);
  llvm::append_range(sizes, keySources);
  llvm::append_range(sizes, valueSources);
  for (Source &source : sizes)
    source.access = axes.flatten(source.access);
  struct {
    StringRef name;
    ArrayRef<Source> sources;
    Layout layout;
    Source &chosen;
    // A whole batch may share queries, as it does learnt ones. Keys or values
    // without a counterpart among the others belong to another contraction,
    // such as one of scores over heads.
    bool mayBroadcast;
  } operands[] = {
      {"queries", querySources, {batch, heads, rows, features}, query, true},
      {"keys", keySources, {batch, kvHeads, keys, features}, key, false},
      {"values",
       valueSources,
       {batch, kvHeads, keys, valueFeatures},
       value,
       false}};
  for (auto &[name, sources, layout, chosen, mayBroadcast] : operands) {
    SmallVector<Source> flat(sources);
    for (Source &source : flat)
      source.access = axes.flatten(source.access);
    std::optional<Source> best =
        attn::fuse::chooseSource(axes, flat, layout, sizes, mayBroadcast);
    if (!best)
      return reject(why, ("the " + name +
                          " are not of the dimensions batch, head, position "
                          "and feature that the others are of")
                             .str());
    chosen = *best;
  }
  auto isSupported = [](Value tensor) {
    Type type = getElementTypeOrSelf(tensor.getType());
    return type.isF16() || type.isBF16() || type.isF32() || type.isF64();
  };
  Value tensors[] = {query.tensor, key.tensor, value.tensor, result};
  if (!llvm::all_of(tensors, isSupported))
    return reject(why, "an operand or the result has an element type other "
                       "than f16, bf16, f32 and f64");
  auto isWide = [](Value tensor) {
    return getElementTypeOrSelf(tensor.getType()).isF64();
  };
  if ((isWide(product.op->getResult(0)) || isWide(valuesOp->getResult(0))) &&
      !llvm::any_of(ArrayRef(tensors).drop_back(), isWide))
    return reject(why, "it sums in f64 what is narrower");
  if (!canBuildResult(axes, {batch, heads, rows, valueFeatures}, resultAccess))
    return reject(why, "the result's dimensions are not those of queries and "
                       "values");
  return true;
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

bool Plan::checkScore(std::string &why) {
  score = takeApart(*graph, softmax.score, productScalar, scoreLayout());
  SmallVector<Value> roots = {score.value};
  if (score.keep)
    roots.push_back(score.keep);
  for (Value scalar : getIngredients(*graph, roots, score.base)) {
    Access places;
    if (const Leaf *leaf = graph->lookupLeaf(scalar)) {
      if (leaf->productOnly)
        return reject(why, "the softmax's input is a function of several "
                           "contractions that start from a tensor");
      places = leaf->access;
    } else if (const Axes *list = graph->lookupIndex(scalar)) {
      places = {*list};
    }
    for (const Axes &list : places)
      if (!canIndex(axes, list, scoreLayout()))
        return reject(why, "a tensor that the scores are combined with cannot "
                           "be indexed by batch, head, query and key, as "
                           "sizes are not known or dimensions differ");
  }
  double scale = score.scale * query.factor * key.factor;
  if (!std::isfinite(scale))
    return reject(why, "the scale is not finite");
  score.scale = scale;
  return true;
}

bool Plan::checkDropout(std::string &why) {
  if (!softmax.dropout)
    return true;
  Access access = axes.flatten(softmax.dropoutAccess);
  Axes columns = access.pop_back_val();
  Axes expected = batch;
  expected.append(heads);
  expected.append(rows);
  if (columns != keys || flattenAccess(access) != expected)
    return reject(why, "the dropout's rows are not the rows of the scores in "
                       "order of batch, head and query");
  return true;
}

/// Checks that the operands of the attention are not computed from its own
/// product.
bool Plan::checkDependences(std::string &why) {
  SmallVector<Value> roots = {score.value};
  if (score.keep)
    roots.push_back(score.keep);
  SmallVector<Value> worklist = {query.tensor, key.tensor, value.tensor};
  for (Value scalar : getIngredients(*graph, roots, score.base)) {
    const Leaf *leaf = graph->lookupLeaf(scalar);
    worklist.push_back(leaf ? leaf->tensor : scalar);
  }
  if (softmax.dropout) {
    worklist.push_back(softmax.dropout.getSeed());
    worklist.push_back(softmax.dropout.getOffset());
  }
  Block *block = product.op->getBlock();
  DenseSet<Operation *> visited;
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val().getDefiningOp();
    if (!op || op->getBlock() == &graph->getBlock())
      continue;
    op = block->findAncestorOpInBlock(*op);
    if (!op || !visited.insert(op).second || op->isBeforeInBlock(product.op))
      continue;
    if (op == product.op)
      return reject(why, "the softmax's input depends on the product of "
                         "queries and keys in a way that is not elementwise");
    llvm::append_range(worklist, op->getOperands());
    SetVector<Value> captures;
    getUsedValuesDefinedAbove(op->getRegions(), captures);
    worklist.append(captures.begin(), captures.end());
  }
  return true;
}

/// Finds the ops that attention's second result replaces.
void Plan::findLogSums() {
  logSums.clear();
  if (!softmax.input)
    return;
  logSumAccess = axes.flatten(softmax.inputAccess);
  logSumAccess.pop_back();
  Axes layout[] = {batch, heads, rows};
  if (!canBuildResult(axes, layout, logSumAccess))
    return;
  bool isWide = llvm::any_of(
      ArrayRef{query.tensor, key.tensor, value.tensor},
      [](Value tensor) { return getElementTypeOrSelf(tensor).isF64(); });
  for (Operation *user : softmax.input.getUsers())
    if (auto op = dyn_cast<LogSumExpOp>(user);
        op && op->getBlock() == valuesOp->getBlock() &&
        (isWide || !getElementTypeOrSelf(op.getResult()).isF64()))
      logSums.push_back(op);
}

/// Checks that no score-sized tensor remains: only then does fusion pay.
bool Plan::checkUses(std::string &why) {
  Block *block = valuesOp->getBlock();
  dead.clear();
  // The ops that attention's results replace.
  SmallPtrSet<Operation *, 4> replaced(logSums.begin(), logSums.end());
  replaced.insert(result.getDefiningOp());
  auto isDead = [&](Operation *op) {
    return llvm::all_of(op->getUsers(), [&](Operation *user) {
      if (user->getBlock() == &graph->getBlock())
        return true;
      Operation *ancestor = block->findAncestorOpInBlock(*user);
      return ancestor && dead.contains(ancestor);
    });
  };
  SmallVector<Operation *> worklist(replaced.begin(), replaced.end());
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val();
    if (op->getBlock() != block || dead.contains(op) ||
        (!replaced.contains(op) &&
         (!wouldOpBeTriviallyDead(op) || !isDead(op))))
      continue;
    dead.insert(op);
    op->walk([&](Operation *nested) {
      for (Value operand : nested->getOperands())
        if (Operation *def = operand.getDefiningOp())
          if (Operation *ancestor = block->findAncestorOpInBlock(*def))
            if (ancestor != op)
              worklist.push_back(ancestor);
    });
  }
  if (dead.contains(product.op))
    return true;
  // An op that reads scores or probabilities, and on which the attention's
  // result does not depend, keeps them alive.
  DenseSet<Operation *> needed;
  worklist.assign(replaced.begin(), replaced.end());
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val();
    if (op->getBlock() != block || !needed.insert(op).second)
      continue;
    op->walk([&](Operation *nested) {
      for (Value operand : nested->getOperands())
        if (Operation *def = operand.getDefiningOp())
          if (Operation *ancestor = block->findAncestorOpInBlock(*def))
            worklist.push_back(ancestor);
    });
  }
  DenseSet<Operation *> visited;
  worklist = {product.op};
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val();
    if (replaced.contains(op) || !visited.insert(op).second)
      continue;
    for (Operation *user : op->getUsers()) {
      Operation *ancestor = block->findAncestorOpInBlock(*user);
      if (!ancestor)
        continue;
      if (!needed.contains(ancestor))
        return reject(why,
                      ("the scores or probabilities have another use, by '" +
                       ancestor->getName().getStringRef() + "'")
                          .str());
      worklist.push_back(ancestor);
    }
  }
  return reject(why, "the scores or probabilities have another use");
}

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

void Plan::build(SmallVectorImpl<Operation *> &erased,
                 SmallVectorImpl<Operation *> &created) {
  Location loc = valuesOp->getLoc();
  Operation *last = result.getDefiningOp();
  OpBuilder builder(last);
  Block *block = last->getBlock();
  Operation *before = last->getPrevNode();

  SmallVector<Source> sizes(querySources);
  llvm::append_range(sizes, keySources);
  llvm::append_range(sizes, valueSources);
  for (Source &source : sizes)
    source.access = axes.flatten(source.access);
  Value q = buildOperand(builder, loc, axes, query,
                         {batch, heads, rows, features}, sizes);
  Value k = buildOperand(builder, loc, axes, key,
                         {batch, kvHeads, keys, features}, sizes);
  Value v = buildOperand(builder, loc, axes, value,
                         {batch, kvHeads, keys, valueFeatures}, sizes);

  auto resultType = cast<RankedTensorType>(result.getType());
  auto sizeOf = [](Value tensor, int64_t dim) {
    return cast<RankedTensorType>(tensor.getType()).getDimSize(dim);
  };
  auto outputType = RankedTensorType::get(
      {sizeOf(q, 0), sizeOf(q, 1), sizeOf(q, 2), sizeOf(v, 3)},
      resultType.getElementType());
  FloatAttr dropout;
  Value seed, offset;
  if (softmax.dropout && !softmax.dropout.getProbability().isZero()) {
    dropout = softmax.dropout.getProbabilityAttr();
    seed = softmax.dropout.getSeed();
    offset = softmax.dropout.getOffset();
  }
  bool isWide = llvm::any_of(ArrayRef{q, k, v}, [](Value tensor) {
    return getElementTypeOrSelf(tensor).isF64();
  });
  RankedTensorType lseType;
  if (!logSums.empty())
    lseType = RankedTensorType::get(outputType.getShape().drop_back(),
                                    isWide ? builder.getF64Type()
                                           : builder.getF32Type());
  auto attention = AttentionOp::create(builder, loc, outputType, lseType, q, k,
                                       v, builder.getF64FloatAttr(score.scale),
                                       dropout, seed, offset,
                                       /*initOutput=*/Value(),
                                       /*initLse=*/Value(),
                                       /*split_size=*/IntegerAttr(),
                                       /*schedule=*/ScheduleAttr());
  if (score.value != score.base)
    buildScoreRegion(*graph, score, scoreLayout(),
                     attention.getAccumulationType(), loc,
                     attention.getScore());
  if (score.keep)
    buildMaskRegion(*graph, score, scoreLayout(), loc, attention.getMask());
  Value replacement = buildResult(builder, loc, axes, attention.getOutput(),
                                  {batch, heads, rows, valueFeatures},
                                  resultAccess, resultType);
  SmallVector<Value> logSumReplacements;
  for (LogSumExpOp op : logSums) {
    auto type = cast<RankedTensorType>(op.getResult().getType());
    Axes layout[] = {batch, heads, rows};
    Value sum = buildResult(builder, loc, axes, attention.getLse(), layout,
                            logSumAccess, type.clone(lseType.getElementType()));
    logSumReplacements.push_back(convertFloats(
        builder, loc, sum, cast<FloatType>(type.getElementType())));
  }
  for (Operation &op : llvm::make_range(
           before ? std::next(before->getIterator()) : block->begin(),
           last->getIterator()))
    created.push_back(&op);

  // The scratch graph must not count as a user of erased ops.
  graph.reset();
  llvm::append_range(created, result.getUsers());
  result.replaceAllUsesWith(replacement);
  // Readers of the logarithms may come before the values.
  bool isInOrder = true;
  for (auto [op, sum] : llvm::zip_equal(logSums, logSumReplacements)) {
    for (Operation *user : op->getUsers()) {
      Operation *ancestor = block->findAncestorOpInBlock(*user);
      isInOrder &= !ancestor || !ancestor->isBeforeInBlock(last);
      created.push_back(user);
    }
    op.getResult().replaceAllUsesWith(sum);
  }
  if (!isInOrder)
    sortTopologically(block);
  // An op is listed before those that it uses, except for detours.
  SetVector<Operation *> rest = std::move(dead);
  for (bool changed = true; changed;) {
    changed = rest.remove_if([&](Operation *op) {
      if (!op->use_empty())
        return false;
      erased.push_back(op);
      op->erase();
      return true;
    });
  }
}

} // namespace fovea::attn::fuse
