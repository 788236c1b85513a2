//===- PackQueries.cpp - attn-pack-queries --------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PackQueries.h"

#include "fovea/Analysis/ScheduleModel.h"
#include "fovea/Dialect/Attn/Transforms/Passes.h"
#include "fovea/Support/DebugLog.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

#include <limits>

#define DEBUG_TYPE "attn-pack-queries"

namespace fovea::attn {
#define GEN_PASS_DEF_ATTNPACKQUERIES
#include "fovea/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace fovea::attn

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

/// A larger number of queries is not one tile.
static constexpr int64_t kMaxQueries = 1024;

namespace {

enum class Role { Acc, Max, Sum };

/// The running values of one attention, from where they are created to where
/// they are used for another purpose: through passes over the keys, and through
/// the loops and branches around those.
class RunningValues {
public:
  explicit RunningValues(OnlineAttentionOp op) { add(op); }

  ArrayRef<OnlineAttentionOp> getOps() const { return ops; }

  /// Gives all values `queries` rows, of which the first `rows` are used. The
  /// object must not be used afterwards.
  void resize(int64_t queries, Value rows);

private:
  void add(OnlineAttentionOp op);
  void add(Value value, Role role);
  void addUse(OpOperand &use, Role role);
  Value getResized(Value entry, Role role, int64_t queries);

  SmallVector<OnlineAttentionOp> ops;
  /// Values that change their type.
  llvm::MapVector<Value, Role> values;
  /// Operands that take a running value from outside, and uses of one that stay
  /// unchanged.
  llvm::MapVector<OpOperand *, Role> entries;
  SmallVector<OpOperand *> exits;
};

struct AttnPackQueries
    : public fovea::attn::impl::AttnPackQueriesBase<AttnPackQueries> {
  using AttnPackQueriesBase::AttnPackQueriesBase;
  void runOnOperation() override;
};

} // namespace

//===----------------------------------------------------------------------===//
// Running values
//===----------------------------------------------------------------------===//

void RunningValues::add(OnlineAttentionOp op) {
  if (llvm::is_contained(ops, op))
    return;
  ops.push_back(op);
  for (auto [index, operand] : llvm::enumerate(op.getDpsInitsMutable())) {
    Role role = static_cast<Role>(index);
    add(op.getResult(index), role);
    entries.insert({&operand, role});
    add(operand.get(), role);
  }
}

/// Returns the values that are the same running value one step earlier, if a
/// loop, a branch or a pass over keys makes `value`.
static SmallVector<OpOperand *> getSources(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    if (!loop || argument == loop.getInductionVar())
      return {};
    return {loop.getTiedLoopInit(argument),
            loop.getTiedLoopYieldedValue(argument)};
  }
  auto result = cast<OpResult>(value);
  if (auto loop = dyn_cast<scf::ForOp>(result.getOwner())) {
    BlockArgument argument = loop.getTiedLoopRegionIterArg(result);
    return {loop.getTiedLoopInit(argument),
            loop.getTiedLoopYieldedValue(argument)};
  }
  if (auto branch = dyn_cast<scf::IfOp>(result.getOwner())) {
    unsigned index = result.getResultNumber();
    return {&branch.thenYield()->getOpOperand(index),
            &branch.elseYield()->getOpOperand(index)};
  }
  if (auto online = dyn_cast<OnlineAttentionOp>(result.getOwner()))
    return {online.getTiedOpOperand(result)};
  return {};
}

void RunningValues::add(Value value, Role role) {
  SmallVector<OpOperand *> sources = getSources(value);
  if (sources.empty() || !values.insert({value, role}).second)
    return;
  if (auto online = value.getDefiningOp<OnlineAttentionOp>())
    add(online);
  // A loop's argument and its result are one running value.
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = cast<scf::ForOp>(argument.getOwner()->getParentOp());
    add(loop.getTiedLoopResult(argument), role);
  } else if (auto loop = value.getDefiningOp<scf::ForOp>()) {
    add(loop.getTiedLoopRegionIterArg(cast<OpResult>(value)), role);
  }
  for (OpOperand *source : sources) {
    entries.insert({source, role});
    add(source->get(), role);
  }
  for (OpOperand &use : value.getUses())
    addUse(use, role);
}

void RunningValues::addUse(OpOperand &use, Role role) {
  Operation *user = use.getOwner();
  if (auto online = dyn_cast<OnlineAttentionOp>(user)) {
    if (online.isDpsInit(&use))
      return add(online);
  } else if (auto loop = dyn_cast<scf::ForOp>(user)) {
    if (OpResult result = loop.getTiedLoopResult(&use))
      return add(result, role);
  } else if (isa<scf::YieldOp>(user)) {
    Operation *parent = user->getParentOp();
    if (isa<scf::ForOp, scf::IfOp>(parent))
      return add(parent->getResult(use.getOperandNumber()), role);
  }
  exits.push_back(&use);
}

static RankedTensorType withRows(Type type, int64_t rows) {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape(tensor.getShape());
  shape[2] = rows;
  return tensor.clone(shape);
}

static Value createFilled(OpBuilder &builder, Location loc,
                          ArrayRef<OpFoldResult> sizes, Value scalar) {
  Value empty = tensor::EmptyOp::create(builder, loc, sizes, scalar.getType());
  return linalg::FillOp::create(builder, loc, scalar, empty).getResult(0);
}

/// Returns the scalar that fills all of `value`, where an op says so.
static Value getFilledWith(Value value) {
  if (auto fill = value.getDefiningOp<linalg::FillOp>())
    return fill.getInputs().front();
  // The form that linalg-prepare gives to a fill.
  auto generic = value.getDefiningOp<linalg::GenericOp>();
  if (!generic || generic.getNumDpsInputs() != 0 || generic.hasIndexSemantics())
    return nullptr;
  Value scalar = cast<linalg::YieldOp>(generic.getBody()->getTerminator())
                     .getValues()[cast<OpResult>(value).getResultNumber()];
  return scalar.getParentBlock() == generic.getBody() ? nullptr : scalar;
}

/// Returns `entry`, padded to `queries` rows with the initial value of the
/// running value.
Value RunningValues::getResized(Value entry, Role role, int64_t queries) {
  OpBuilder builder(entry.getContext());
  builder.setInsertionPointAfterValue(entry);
  Location loc = entry.getLoc();
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, entry);
  SmallVector<OpFoldResult> newSizes = sizes;
  newSizes[2] = builder.getIndexAttr(queries);
  if (Value scalar = getFilledWith(entry))
    return createFilled(builder, loc, newSizes, scalar);
  auto type = cast<FloatType>(getElementTypeOrSelf(entry.getType()));
  double initial =
      role == Role::Max ? -std::numeric_limits<double>::infinity() : 0.0;
  Value scalar = arith::ConstantOp::create(builder, loc,
                                           builder.getFloatAttr(type, initial));
  Value filled = createFilled(builder, loc, newSizes, scalar);
  SmallVector<OpFoldResult> zeros(sizes.size(), builder.getIndexAttr(0));
  SmallVector<OpFoldResult> ones(sizes.size(), builder.getIndexAttr(1));
  return tensor::InsertSliceOp::create(builder, loc, entry, filled, zeros,
                                       sizes, ones);
}

void RunningValues::resize(int64_t queries, Value rows) {
  llvm::DenseMap<Value, Value> resized;
  for (auto [operand, role] : entries) {
    Value entry = operand->get();
    if (values.contains(entry))
      continue;
    Value &replacement = resized[entry];
    if (!replacement)
      replacement = getResized(entry, role, queries);
    operand->set(replacement);
  }
  for (auto [value, role] : values)
    value.setType(withRows(value.getType(), queries));
  for (OpOperand *use : exits) {
    OpBuilder builder(use->getOwner());
    Location loc = use->getOwner()->getLoc();
    Value value = use->get();
    SmallVector<OpFoldResult> sizes =
        tensor::getMixedSizes(builder, loc, value);
    sizes[2] = getAsOpFoldResult(rows);
    SmallVector<OpFoldResult> zeros(sizes.size(), builder.getIndexAttr(0));
    SmallVector<OpFoldResult> ones(sizes.size(), builder.getIndexAttr(1));
    use->set(tensor::ExtractSliceOp::create(builder, loc, value, zeros, sizes,
                                            ones));
  }
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

std::optional<int64_t> fovea::attn::getTileBound(Value tensor) {
  FailureOr<int64_t> bound = ValueBoundsConstraintSet::computeConstantBound(
      presburger::BoundType::UB, {tensor, /*dim=*/2},
      /*stopCondition=*/nullptr, /*closedUB=*/true);
  if (failed(bound) || *bound > kMaxQueries)
    return std::nullopt;
  return *bound;
}

Operation *fovea::attn::getPackingPlace(Operation *op, Value query) {
  Operation *place = op;
  for (Operation *parent = op->getParentOp();
       isa<scf::IfOp, scf::ForOp>(parent); parent = parent->getParentOp()) {
    auto loop = dyn_cast<scf::ForOp>(parent);
    if (loop && !loop.isDefinedOutsideOfLoop(query))
      break;
    // The query is packed outside of a branch only if that is also outside of a
    // loop around the branch.
    if (loop)
      place = loop;
  }
  return place;
}

/// Returns true if products of `op` are to be those of pairs in bf16.
static bool multipliesPairs(OnlineAttentionOp op, machine::TargetAttr target) {
  return target && op.getAccumulationType().isF32() &&
         countPairProducts(countPairParts(op.getQuery().getType(),
                                          op.getKey().getType(),
                                          op.getValue().getType()),
                           target);
}

static bool multipliesPairs(OnlineBackwardOp op, machine::TargetAttr target) {
  Type query = op.getQuery().getType(), gradient = op.getGradient().getType(),
       key = op.getKey().getType(), value = op.getValue().getType();
  return target && op.getAccumulationType().isF32() &&
         getElementTypeOrSelf(gradient) == getElementTypeOrSelf(query) &&
         countPairParts(gradient, value, key) &&
         countPairProducts(countPairParts(query, key, value), target);
}

/// Packs the query of `op`, outside of all loops that do not change it; in
/// pairs if `makesPairs`.
static Value createPackedQuery(OnlineAttentionOp op, int64_t queries,
                               bool makesPairs) {
  Value query = op.getQuery();
  OpBuilder builder(getPackingPlace(op, query));
  Location loc = op.getLoc();
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, query);
  Type element = op.getAccumulationType();
  double factor = getPackingFactor(op.getScaleAttr(), op.getScore());
  sizes = {sizes[0], sizes[1], sizes[3], builder.getIndexAttr(queries)};
  if (makesPairs) {
    int64_t parts = countPairParts(getElementTypeOrSelf(query));
    sizes[2] = builder.getIndexAttr(*getConstantIntValue(sizes[2]) / 2 * parts);
    sizes[3] = builder.getIndexAttr(2 * queries);
    element = builder.getBF16Type();
    // The queries stay exact; the products take the factor.
    factor = 1.0;
  }
  Value empty = tensor::EmptyOp::create(builder, loc, sizes, element);
  return PackQueryOp::create(builder, loc, empty.getType(), query, empty,
                             builder.getF64FloatAttr(factor))
      .getResult(0);
}

void AttnPackQueries::runOnOperation() {
  int64_t bytes = 64;
  machine::TargetAttr target = machine::getTarget(getOperation());
  if (target)
    bytes = target.getVectorBytes();
  if (vectorBytes)
    bytes = vectorBytes;

  SmallVector<OnlineAttentionOp> ops;
  getOperation()->walk([&](OnlineAttentionOp op) {
    if (!op.getRows() && op.hasPureTensorSemantics())
      ops.push_back(op);
  });
  for (OnlineAttentionOp first : ops) {
    if (first.getRows())
      continue; // A pass of an attention that has been packed already.
    RunningValues values(first);
    int64_t lanes = std::max<int64_t>(
        1, bytes * 8 / first.getAccumulationType().getWidth());
    std::optional<int64_t> bound = getTileBound(first.getQuery());
    if (!bound || llvm::any_of(values.getOps(), [&](OnlineAttentionOp op) {
          return op.getQuery() != first.getQuery();
        })) {
      ++numUnbounded;
      LDBG() << "attention at " << first.getLoc()
             << " is not packed: no bound of its queries up to " << kMaxQueries
             << " is known, or its passes read several";
      continue;
    }
    int64_t queries = llvm::alignTo(std::max<int64_t>(*bound, 1), lanes);
    OpBuilder builder(&getContext());
    builder.setInsertionPointAfterValue(first.getQuery());
    Value rows = builder.createOrFold<tensor::DimOp>(first.getLoc(),
                                                     first.getQuery(), 2);
    LDBG() << "attention at " << first.getLoc() << ": " << queries
           << " rows in vectors of " << lanes;
    values.resize(queries, rows);
    // A few queries leave most of a tile empty; their products have features in
    // lanes.
    bool isFew = 2 * *bound <= lanes;
    bool makesPairs =
        !isFew && llvm::all_of(values.getOps(), [&](OnlineAttentionOp op) {
          return multipliesPairs(op, target);
        });
    for (OnlineAttentionOp op : values.getOps()) {
      Value packed = createPackedQuery(op, queries, makesPairs);
      op.getQueryMutable().assign(packed);
      op.getRowsMutable().assign(rows);
      ++numPacked;
    }
  }

  SmallVector<OnlineBackwardOp> gradients;
  getOperation()->walk([&](OnlineBackwardOp op) {
    if (!op.getPackedQuery() && op.hasPureTensorSemantics())
      gradients.push_back(op);
  });
  for (OnlineBackwardOp op : gradients) {
    if (!getTileBound(op.getQuery()) || !getTileBound(op.getKey())) {
      ++numUnbounded;
      LDBG() << "the backward pass at " << op.getLoc()
             << " is not packed: no bound of its queries and keys up to "
             << kMaxQueries << " is known";
      continue;
    }
    int64_t lanes =
        std::max<int64_t>(1, bytes * 8 / op.getAccumulationType().getWidth());
    if (failed(packBackward(op, lanes, multipliesPairs(op, target))))
      return signalPassFailure();
    ++numPacked;
  }
}
