//===- TabulateDistances.cpp - attn-tabulate-distances --------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Attn/Transforms/Passes.h"

#include "fovea/Analysis/CaptureReads.h"
#include "fovea/Analysis/ElementCost.h"
#include "fovea/Analysis/IndexMath.h"
#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Support/DebugLog.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#define DEBUG_TYPE "attn-tabulate-distances"

namespace fovea::attn {
#define GEN_PASS_DEF_ATTNTABULATEDISTANCES
#include "fovea/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace fovea::attn

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

/// Queries from which on scores are many more than distances.
static constexpr int64_t kFewestQueries = 64;

namespace {
struct TabulateDistances
    : fovea::attn::impl::AttnTabulateDistancesBase<TabulateDistances> {
  void runOnOperation() override {
    if (!machine::getGpuOrDefault(getOperation()).getGpuArch().hasBulkCopies)
      return;
    getOperation()->walk([&](AttentionOp op) { tabulate(op); });
  }

private:
  void tabulate(AttentionOp op);
};

/// The values of a score region that distances determine.
class Distances {
public:
  explicit Distances(AttentionOp op);

  /// Returns those that are worth a table: what other ops use of them.
  SmallVector<Value> findTabulated() const;

  /// Computes `value` for all distances, and reads it where it is used.
  void replace(Value value);

private:
  bool isElsewhere(Operation *user) const;
  bool isWorthIt(Value value) const;
  /// Returns the ops of the region that compute `value`, operands first.
  SetVector<Operation *> getSlice(Value value) const;

  AttentionOp op;
  Block &body;
  /// Those that can be numbers of a table, and that such are computed of.
  llvm::SmallDenseSet<Value> values;
  /// Reads that need no table.
  llvm::SmallDenseSet<Operation *> tileReads;
};
} // namespace

/// Returns true if tables can have numbers of `type`.
static bool isOfTable(Type type) {
  return type.isIntOrFloat() && type.getIntOrFloatBitWidth() <= 32;
}

Distances::Distances(AttentionOp op)
    : op(op), body(op.getScore().front()),
      values(getValuesOfDistance(op.getScore())) {
  // Other rows would be copied in front.
  for (const TileRead &read : findTileReads(op.getScore()))
    if (read.mayHaveWholeUnits())
      tileReads.insert(read.op);
  for (Operation &each : llvm::reverse(body.without_terminator()))
    for (Value result : each.getResults())
      if (!isOfTable(result.getType()) &&
          llvm::all_of(result.getUsers(),
                       [&](Operation *user) { return isElsewhere(user); }))
        values.erase(result);
}

SetVector<Operation *> Distances::getSlice(Value value) const {
  BackwardSliceOptions options;
  options.inclusive = true;
  options.filter = [&](Operation *each) { return each->getBlock() == &body; };
  SetVector<Operation *> slice;
  (void)getBackwardSlice(value, &slice, options);
  return slice;
}

/// Returns true if `user` computes none of the values.
bool Distances::isElsewhere(Operation *user) const {
  return llvm::none_of(user->getResults(),
                       [&](Value result) { return values.contains(result); });
}

bool Distances::isWorthIt(Value value) const {
  if (!isOfTable(value.getType()))
    return false;
  return llvm::any_of(getSlice(value), [&](Operation *each) {
    bool depends = llvm::any_of(each->getResults(), [&](Value result) {
      return values.contains(result);
    });
    bool isGathered = isa<tensor::ExtractOp>(each) && !tileReads.contains(each);
    return depends && (isGathered || isFunction(*each));
  });
}

SmallVector<Value> Distances::findTabulated() const {
  SmallVector<Value> tabulated;
  for (Operation &each : body.without_terminator())
    for (Value result : each.getResults())
      if (values.contains(result) && isWorthIt(result) &&
          llvm::any_of(result.getUsers(),
                       [&](Operation *user) { return isElsewhere(user); }))
        tabulated.push_back(result);
  return tabulated;
}

void Distances::replace(Value value) {
  Location loc = value.getLoc();
  OpBuilder builder(op);
  IndexMath index(builder, loc);
  SmallVector<OpFoldResult> queries =
      tensor::getMixedSizes(builder, loc, op.getQuery());
  OpFoldResult keys =
      tensor::getMixedSize(builder, loc, op.getKey(), /*dim=*/2);
  OpFoldResult before = index.sub(keys, index.constant(1));
  // Without scores there are no distances.
  OpFoldResult count =
      index.min(index.add(queries[2], before), index.mul(queries[2], keys));
  // Rows of whole units of 16 bytes, of any type, need no copy for TMA. Numbers
  // behind that of the last distance repeat it.
  OpFoldResult unit = index.constant(16);
  OpFoldResult padded = index.mul(index.ceilDiv(count, unit), unit);
  OpFoldResult last = index.sub(queries[2], index.constant(1));
  SmallVector<OpFoldResult> sizes = {index.constant(1), index.constant(1),
                                     padded};
  SetVector<Operation *> slice = getSlice(value);
  // The score comes first, then batch and head.
  auto depends = [&](unsigned argument) {
    return llvm::any_of(slice, [&](Operation *each) {
      return llvm::is_contained(each->getOperands(),
                                body.getArgument(argument));
    });
  };
  bool isOfHead[] = {depends(1), depends(2)};
  for (auto [dim, isOf] : llvm::enumerate(isOfHead))
    if (isOf)
      sizes[dim] = queries[dim];

  Value empty = tensor::EmptyOp::create(builder, loc, sizes, value.getType());
  SmallVector<AffineMap> maps = {builder.getMultiDimIdentityMap(3)};
  SmallVector<utils::IteratorType> iterators(3, utils::IteratorType::parallel);
  auto table = linalg::GenericOp::create(
      builder, loc, empty.getType(), ValueRange(), empty, maps, iterators,
      [&](OpBuilder &nested, Location, ValueRange) {
        IndexMath inner(nested, loc);
        // A query and a key of that distance, one of which is the first.
        auto place = [&](int64_t dim) -> Value {
          return linalg::IndexOp::create(nested, loc, dim);
        };
        OpFoldResult distance = inner.min(inner.sub(place(2), before), last);
        OpFoldResult query = inner.max(distance, inner.constant(0));
        IRMapping mapping;
        mapping.map(body.getArgument(1), place(0));
        mapping.map(body.getArgument(2), place(1));
        mapping.map(body.getArgument(3), inner.materialize(query));
        mapping.map(body.getArgument(4),
                    inner.materialize(inner.sub(query, distance)));
        for (Operation *each : slice)
          nested.clone(*each, mapping);
        linalg::YieldOp::create(nested, loc, mapping.lookup(value));
      });

  Value first = index.materialize(before);
  builder.setInsertionPointAfterValue(value);
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value distance = arith::SubIOp::create(builder, loc, body.getArgument(3),
                                         body.getArgument(4));
  Value at = arith::AddIOp::create(builder, loc, distance, first);
  SmallVector<Value> indices = {isOfHead[0] ? body.getArgument(1) : zero,
                                isOfHead[1] ? body.getArgument(2) : zero, at};
  Value read =
      tensor::ExtractOp::create(builder, loc, table.getResult(0), indices);
  value.replaceAllUsesExcept(read, read.getDefiningOp());
}

void TabulateDistances::tabulate(AttentionOp op) {
  auto query = cast<RankedTensorType>(op.getQuery().getType());
  int64_t queries = query.getDimSize(2);
  if (op.getScore().empty() ||
      (!ShapedType::isDynamic(queries) && queries < kFewestQueries))
    return;
  Distances distances(op);
  for (Value value : distances.findTabulated()) {
    distances.replace(value);
    LDBG() << "attention at " << op.getLoc() << ": a table has " << value;
    ++numTables;
  }
  for (Operation &each :
       llvm::make_early_inc_range(llvm::reverse(op.getScore().front())))
    if (isOpTriviallyDead(&each))
      each.erase();
}
