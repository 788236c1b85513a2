//===- LinalgToVector.cpp - convert-linalg-to-vector ----------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Analysis/Loops.h"
#include "fovea/Analysis/VectorPlan.h"
#include "fovea/Conversion/Passes.h"
#include "fovea/Dialect/Attn/IR/Attn.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace fovea {
#define GEN_PASS_DEF_LINALGTOVECTOR
#include "fovea/Conversion/Passes.h.inc"

/// Returns `x` where `value` is `x` expanded and collapsed again, else `value`.
static Value withoutReshapes(Value value) {
  auto collapse = value.getDefiningOp<memref::CollapseShapeOp>();
  auto expand = collapse
                    ? collapse.getSrc().getDefiningOp<memref::ExpandShapeOp>()
                    : nullptr;
  bool cancel = expand && expand.getReassociationIndices() ==
                              collapse.getReassociationIndices();
  return cancel ? expand.getSrc() : value;
}

//===----------------------------------------------------------------------===//
// The loops
//===----------------------------------------------------------------------===//

namespace {
/// Emits the loops of one generic.
class LoopEmitter {
public:
  LoopEmitter(linalg::GenericOp op, VectorLoop vector)
      : op(op), vector(vector), builder(op), loc(op.getLoc()),
        iterators(op.getIteratorTypesArray()) {
    for (Range range : cast<linalg::LinalgOp>(op.getOperation())
                           .createLoopRanges(builder, loc))
      sizes.push_back(range.size);
    ivs.resize(sizes.size());
    for (unsigned dim = 0; dim < sizes.size(); ++dim) {
      if (dim == vector.dim && isVector())
        continue;
      (isReduction(dim) ? reductions : outer).push_back(dim);
    }
  }

  void emit() {
    if (op->getParentOfType<scf::ForallOp>() || !isWorthThreads())
      emitSequential();
    else
      emitParallel();
  }

private:
  bool isVector() const { return vector.lanes > 1; }
  bool isReduction(unsigned dim) const {
    return linalg::isReductionIterator(iterators[dim]);
  }
  bool isVectorReduction() const {
    return isVector() && isReduction(vector.dim);
  }
  bool hasReductions() const {
    return !reductions.empty() || isVectorReduction();
  }

  Value index(OpFoldResult value) {
    return getValueOrCreateConstantIndexOp(builder, loc, value);
  }
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }

  /// The static size of a loop, or a guess.
  int64_t estimate(unsigned dim) {
    return getConstantIntValue(sizes[dim]).value_or(kAssumedSize);
  }

  bool isWorthThreads() {
    if (outer.empty() && (!isVector() || isVectorReduction()))
      return false;
    int64_t work = 1;
    for (unsigned dim = 0; dim < sizes.size(); ++dim) {
      if (!getConstantIntValue(sizes[dim]))
        return true;
      work *= estimate(dim);
      if (work > kWorkPerCall)
        return true;
    }
    return false;
  }

  /// Emits the parallel loops as one scf.forall; a vector loop that is parallel
  /// is its last dimension, in long blocks.
  void emitParallel() {
    SmallVector<OpFoldResult> lower, upper, step;
    for (unsigned dim : outer) {
      lower.push_back(builder.getIndexAttr(0));
      upper.push_back(sizes[dim]);
      step.push_back(builder.getIndexAttr(1));
    }
    bool inBlocks = isVector() && !isVectorReduction();
    int64_t inner = 1;
    for (unsigned dim : reductions)
      inner *= std::max<int64_t>(1, estimate(dim));
    if (isVector())
      inner *= std::max<int64_t>(1, estimate(vector.dim));
    if (inBlocks) {
      lower.push_back(builder.getIndexAttr(0));
      upper.push_back(sizes[vector.dim]);
      step.push_back(builder.getIndexAttr(kWorkPerCall));
    }
    auto forall = scf::ForallOp::create(builder, loc, lower, upper, step,
                                        ValueRange(), std::nullopt);
    forall->setAttr(
        machine::kGrainAttrName,
        builder.getI64IntegerAttr(std::max<int64_t>(1, kWorkPerCall / inner)));
    builder.setInsertionPoint(forall.getBody()->getTerminator());
    for (auto [i, dim] : llvm::enumerate(outer))
      ivs[dim] = forall.getInductionVar(i);
    if (!inBlocks) {
      emitItem();
      return;
    }
    Value begin = forall.getInductionVars().back();
    if (auto size = getConstantIntValue(sizes[vector.dim]);
        size && *size <= kWorkPerCall) {
      emitItem();
      return;
    }
    Value end =
        arith::AddIOp::create(builder, loc, begin, constant(kWorkPerCall));
    end = arith::MinSIOp::create(builder, loc, end, index(sizes[vector.dim]));
    emitVectorSpan(begin, end);
  }

  void emitSequential(unsigned position = 0) {
    if (position == outer.size()) {
      emitItem();
      return;
    }
    unsigned dim = outer[position];
    inLoop(sizes[dim], {}, [&](Value iv, ValueRange) -> SmallVector<Value> {
      ivs[dim] = iv;
      if (position + 1 == outer.size())
        prefetchScattered(dim);
      emitSequential(position + 1);
      return {};
    });
  }

  /// Prefetches rows that lie where a table says, some iterations of loop `dim`
  /// ahead: near enough to be in the nearest cache still.
  void prefetchScattered(unsigned dim) {
    constexpr int64_t kBytesAhead = 8192, kLineBytes = 64;
    if (vector.scattered.empty() || isConstantIntValue(sizes[dim], 1))
      return;
    int64_t columns = *getConstantIntValue(sizes[vector.dim]), rowBytes = 0;
    auto getBytes = [](memref::LoadOp load) {
      return static_cast<int64_t>(load.getType().getIntOrFloatBitWidth() / 8);
    };
    for (memref::LoadOp load : vector.scattered)
      rowBytes += columns * getBytes(load);
    Value here = ivs[dim];
    Value last =
        arith::SubIOp::create(builder, loc, index(sizes[dim]), constant(1));
    Value ahead = arith::AddIOp::create(
        builder, loc, here,
        constant(std::max<int64_t>(1, kBytesAhead / rowBytes)));
    ivs[dim] = arith::MinSIOp::create(builder, loc, ahead, last);
    DenseMap<Value, Value> values = emitSame();
    for (memref::LoadOp load : vector.scattered) {
      SmallVector<Value> place;
      for (Value value : load.getIndices().drop_back())
        place.push_back(values.lookup_or(value, value));
      place.push_back({});
      int64_t step = kLineBytes / getBytes(load);
      for (int64_t column = 0; column < columns; column += step) {
        place.back() = constant(column);
        memref::PrefetchOp::create(builder, loc, load.getMemRef(), place,
                                   /*isWrite=*/false, /*localityHint=*/3,
                                   /*isDataCache=*/true);
      }
    }
    ivs[dim] = here;
  }

  /// Copies the ops of the body that are the same along the vector loop;
  /// returns their results.
  DenseMap<Value, Value> emitSame() {
    DenseMap<Value, Value> values;
    for (Operation &nested : op.getBody()->without_terminator()) {
      if (!isSameAlong(&nested, vector.dim))
        continue;
      if (auto indexOp = dyn_cast<linalg::IndexOp>(nested)) {
        values[indexOp] = ivs[indexOp.getDim()];
        continue;
      }
      cloneScalar(nested,
                  llvm::map_to_vector(nested.getOperands(),
                                      [&](Value value) {
                                        return values.lookup_or(value, value);
                                      }),
                  values);
    }
    return values;
  }

  using LoopBody = llvm::function_ref<SmallVector<Value>(Value, ValueRange)>;

  /// Emits a loop from 0 to `size`, or just its body if `size` is 1.
  SmallVector<Value> inLoop(OpFoldResult size, ValueRange inits,
                            LoopBody body) {
    if (isConstantIntValue(size, 1))
      return body(constant(0), inits);
    return inLoop(constant(0), index(size), 1, inits, body);
  }

  SmallVector<Value> inLoop(Value lower, Value upper, int64_t step,
                            ValueRange inits, LoopBody body) {
    auto loop =
        scf::ForOp::create(builder, loc, lower, upper, constant(step), inits);
    OpBuilder::InsertionGuard guard(builder);
    // Without results, the loop already has its terminator.
    if (inits.empty())
      builder.setInsertionPoint(loop.getBody()->getTerminator());
    else
      builder.setInsertionPointToEnd(loop.getBody());
    SmallVector<Value> results =
        body(loop.getInductionVar(), loop.getRegionIterArgs());
    if (!inits.empty())
      scf::YieldOp::create(builder, loc, results);
    return SmallVector<Value>(loop.getResults());
  }

  /// Emits one iteration of the outer loops.
  void emitItem() {
    if (isVectorReduction())
      emitVectorReduction();
    else if (isVector())
      emitVectorSpan(constant(0), index(sizes[vector.dim]));
    else
      emitElement(1);
  }

  /// Returns the end of the part of [begin, end) that is whole vectors.
  Value getVectorEnd(Value begin, Value end) {
    Value span = end;
    if (!matchPattern(begin, m_Zero()))
      span = arith::SubIOp::create(builder, loc, end, begin);
    if (auto size = getConstantIntValue(span))
      return constant(*size - *size % vector.lanes);
    Value rest =
        arith::RemUIOp::create(builder, loc, span, constant(vector.lanes));
    return arith::SubIOp::create(builder, loc, end, rest);
  }

  /// Emits the parallel vector loop over [begin, end).
  void emitVectorSpan(Value begin, Value end) {
    // What is loaded is loaded again behind each store otherwise.
    if (reductions.empty() &&
        getConstantIntValue(sizes[vector.dim]).value_or(0) > 0)
      same = emitSame();
    Value middle = getVectorEnd(begin, end);
    inLoop(begin, middle, vector.lanes, {},
           [&](Value iv, ValueRange) -> SmallVector<Value> {
             ivs[vector.dim] = iv;
             emitElement(vector.lanes);
             return {};
           });
    auto staticMiddle = getConstantIntValue(middle);
    if (staticMiddle && staticMiddle == getConstantIntValue(end))
      return;
    inLoop(middle, end, 1, {}, [&](Value iv, ValueRange) -> SmallVector<Value> {
      ivs[vector.dim] = iv;
      emitElement(1);
      return {};
    });
  }

  /// Emits one element, or one vector of them, of every output.
  void emitElement(int64_t lanes) {
    SmallVector<Value> results;
    if (hasReductions()) {
      SmallVector<Value> running;
      for (OpOperand &init : op.getDpsInitsMutable())
        running.push_back(load(init, lanes));
      results = emitReductions(0, running, [&](ValueRange values) {
        return emitBody(lanes, values);
      });
    } else {
      results = emitBody(lanes, {});
    }
    for (auto [init, result] :
         llvm::zip_equal(op.getDpsInitsMutable(), results))
      store(init, result, lanes);
  }

  using Step = llvm::function_ref<SmallVector<Value>(ValueRange)>;

  /// Emits `step` in the loops of `reductions` from `position` on.
  SmallVector<Value> emitReductions(unsigned position, ValueRange running,
                                    Step step) {
    if (position == reductions.size())
      return step(running);
    unsigned dim = reductions[position];
    return inLoop(sizes[dim], running, [&](Value iv, ValueRange values) {
      ivs[dim] = iv;
      return emitReductions(position + 1, values, step);
    });
  }

  /// Emits the reduction along vectors: running vectors and, for the remainder,
  /// running scalars, which start as the outputs and end in them.
  void emitVectorReduction() {
    SmallVector<Value> running;
    unsigned outputs = op.getNumDpsInits();
    SmallVector<vector::CombiningKind> kinds;
    for (unsigned i = 0; i < outputs; ++i) {
      Operation *combiner = getCombiner(op, i);
      kinds.push_back(*getCombiningKind(combiner));
      TypedAttr neutral = *arith::getNeutralElement(combiner);
      auto type = VectorType::get(vector.lanes, neutral.getType());
      running.push_back(arith::ConstantOp::create(
          builder, loc, DenseElementsAttr::get(type, Attribute(neutral))));
    }
    for (OpOperand &init : op.getDpsInitsMutable())
      running.push_back(load(init, 1));
    Value end = index(sizes[vector.dim]);
    Value middle = getVectorEnd(constant(0), end);
    bool hasRest = !getConstantIntValue(end) ||
                   getConstantIntValue(end) != getConstantIntValue(middle);

    running = emitReductions(0, running, [&](ValueRange values) {
      SmallVector<Value> next =
          inLoop(constant(0), middle, vector.lanes, values.take_front(outputs),
                 [&](Value iv, ValueRange vectors) {
                   ivs[vector.dim] = iv;
                   return emitBody(vector.lanes, vectors);
                 });
      SmallVector<Value> scalars(values.drop_front(outputs));
      if (hasRest)
        scalars =
            inLoop(middle, end, 1, scalars, [&](Value iv, ValueRange rest) {
              ivs[vector.dim] = iv;
              return emitBody(1, rest);
            });
      next.append(scalars);
      return next;
    });
    for (auto [i, init] : llvm::enumerate(op.getDpsInitsMutable())) {
      Value result = vector::ReductionOp::create(
          builder, loc, kinds[i], running[i], running[outputs + i],
          arith::FastMathFlags::reassoc);
      store(init, result, 1);
    }
  }

  //===--------------------------------------------------------------------===//
  // Memory
  //===--------------------------------------------------------------------===//

  /// Returns the indices of an access by `map`, `lane` elements further on.
  SmallVector<Value> getIndices(AffineMap map, int64_t lane = 0) {
    SmallVector<OpFoldResult> operands(ivs.begin(), ivs.end());
    SmallVector<Value> indices;
    AffineExpr step = builder.getAffineDimExpr(vector.dim);
    for (AffineExpr expr : map.getResults()) {
      if (lane != 0)
        expr = expr.replace(step, step + lane);
      OpFoldResult value = affine::makeComposedFoldedAffineApply(
          builder, loc, AffineMap::get(map.getNumDims(), 0, expr), operands);
      indices.push_back(index(value));
    }
    return indices;
  }

  Value load(OpOperand &operand, int64_t lanes) {
    auto type = dyn_cast<MemRefType>(operand.get().getType());
    if (!type)
      return operand.get();
    AffineMap map = op.getMatchingIndexingMap(&operand);
    Access access =
        lanes == 1 ? Access::Uniform : classifyAccess(type, map, vector.dim);
    if (access == Access::Uniform)
      return memref::LoadOp::create(builder, loc, operand.get(),
                                    getIndices(map));
    auto vectorType = VectorType::get(lanes, type.getElementType());
    if (access == Access::Contiguous && hasVectorMemory(type.getElementType()))
      return vector::LoadOp::create(builder, loc, vectorType, operand.get(),
                                    getIndices(map));
    SmallVector<Value> elements;
    for (int64_t lane = 0; lane < lanes; ++lane)
      elements.push_back(memref::LoadOp::create(builder, loc, operand.get(),
                                                getIndices(map, lane)));
    return vector::FromElementsOp::create(builder, loc, vectorType, elements);
  }

  void store(OpOperand &operand, Value value, int64_t lanes) {
    SmallVector<Value> indices =
        getIndices(op.getMatchingIndexingMap(&operand));
    if (lanes == 1)
      memref::StoreOp::create(builder, loc, value, operand.get(), indices);
    else
      vector::StoreOp::create(builder, loc, widen(value, lanes), operand.get(),
                              indices);
  }

  //===--------------------------------------------------------------------===//
  // The body
  //===--------------------------------------------------------------------===//

  /// Returns `value` for `lanes` lanes: a scalar is the same in all, each
  /// element of a shorter vector is the same in four neighbours.
  Value widen(Value value, int64_t lanes) {
    int64_t width = getWidth(value);
    if (width == lanes)
      return value;
    if (width == 1) {
      auto type = VectorType::get(lanes, value.getType());
      return vector::BroadcastOp::create(builder, loc, type, value);
    }
    SmallVector<int64_t> places;
    for (int64_t lane = 0; lane < lanes; ++lane)
      places.push_back(lane * width / lanes);
    return vector::ShuffleOp::create(builder, loc, value, value, places);
  }

  static int64_t getWidth(Value value) {
    auto type = dyn_cast<VectorType>(value.getType());
    return type ? type.getNumElements() : 1;
  }

  /// Returns `first`, `first + 1`, ... in `lanes` lanes.
  Value countFrom(Value first, int64_t lanes) {
    auto type = VectorType::get(lanes, first.getType());
    SmallVector<Attribute> steps;
    for (int64_t lane = 0; lane < lanes; ++lane)
      steps.push_back(builder.getIntegerAttr(first.getType(), lane));
    Value count = arith::ConstantOp::create(
        builder, loc, DenseElementsAttr::get(type, steps));
    return arith::AddIOp::create(builder, loc, widen(first, lanes), count);
  }

  /// Returns the place along the vector loop as an integer of `type`, divided
  /// by `divisor`, which divides the place of the first lane.
  Value countPlaces(Type type, int64_t divisor, int64_t lanes) {
    Value first = ivs[vector.dim];
    if (divisor > 1)
      first = arith::DivUIOp::create(builder, loc, first, constant(divisor));
    if (!type.isIndex())
      first = arith::IndexCastOp::create(builder, loc, type, first);
    return countFrom(first, lanes / divisor);
  }

  /// Copies the body for `lanes` elements; `running` are the outputs' values.
  /// If it is empty, these are loaded where the body uses them. A value that is
  /// the same in all lanes stays a scalar.
  SmallVector<Value> emitBody(int64_t lanes, ValueRange running) {
    DenseMap<Value, Value> values = same;
    Block *body = op.getBody();
    for (auto [operand, argument] :
         llvm::zip_equal(op->getOpOperands(), body->getArguments())) {
      if (argument.use_empty())
        continue;
      if (op.isDpsInit(&operand) && !running.empty())
        values[argument] =
            running[operand.getOperandNumber() - op.getNumDpsInputs()];
      else
        values[argument] = load(operand, lanes);
    }
    auto lookup = [&](Value value) {
      auto found = values.find(value);
      return found == values.end() ? value : found->second;
    };
    for (Operation &nested : body->without_terminator()) {
      if (nested.getNumResults() == 1 && same.contains(nested.getResult(0)))
        continue;
      if (auto indexOp = dyn_cast<linalg::IndexOp>(nested))
        if (lanes == 1 || indexOp.getDim() != vector.dim) {
          values[indexOp] = ivs[indexOp.getDim()];
          continue;
        }
      if (lanes > 1 && isPlace(&nested, vector.dim)) {
        Value result = nested.getResult(0);
        values[result] = countPlaces(result.getType(), 1, lanes);
        continue;
      }
      // The first lane is at a multiple of the number of lanes.
      if (lanes >= 8 && isPlaceByFours(&nested, vector.dim)) {
        Value result = nested.getResult(0);
        values[result] = countPlaces(result.getType(), 4, lanes);
        continue;
      }
      SmallVector<Value> operands =
          llvm::map_to_vector(nested.getOperands(), lookup);
      int64_t width = 1;
      for (Value operand : operands)
        width = std::max(width, getWidth(operand));
      if (width == 1) {
        cloneScalar(nested, operands, values);
        continue;
      }
      if (auto loadOp = dyn_cast<memref::LoadOp>(nested)) {
        for (Value &operand : operands)
          if (getWidth(operand) > 1)
            operand = widen(operand, lanes);
        values[loadOp] = emitLoad(loadOp, operands, lanes);
        continue;
      }
      // A select by a scalar condition is one branch for all lanes.
      bool keepCondition =
          isa<arith::SelectOp>(nested) && getWidth(operands.front()) == 1;
      for (Value &operand : MutableArrayRef(operands).drop_front(keepCondition))
        operand = widen(operand, width);
      SmallVector<Type> types;
      for (Type type : nested.getResultTypes())
        types.push_back(VectorType::get(width, type));
      Operation *copy = builder.create(loc, nested.getName().getIdentifier(),
                                       operands, types, nested.getAttrs());
      for (auto [from, to] :
           llvm::zip_equal(nested.getResults(), copy->getResults()))
        values[from] = to;
    }
    SmallVector<Value> results;
    for (Value value : body->getTerminator()->getOperands()) {
      Value result = lookup(value);
      // A running vector must remain a vector.
      results.push_back(lanes > 1 && !running.empty() ? widen(result, lanes)
                                                      : result);
    }
    return results;
  }

  /// Copies an op of the body that is the same in all lanes.
  void cloneScalar(Operation &nested, ArrayRef<Value> operands,
                   DenseMap<Value, Value> &values) {
    IRMapping mapping;
    mapping.map(nested.getOperands(), operands);
    for (Region &region : nested.getRegions())
      region.walk([&](Operation *inner) {
        for (Value value : inner->getOperands())
          if (Value known = values.lookup(value))
            mapping.map(value, known);
      });
    Operation *copy = builder.clone(nested, mapping);
    for (auto [from, to] :
         llvm::zip_equal(nested.getResults(), copy->getResults()))
      values[from] = to;
  }

  /// Returns the first lane's value if the lanes of `value` minus that are 0,
  /// 1, 2, ...; else null.
  Value getConsecutiveStart(Value value) {
    if (auto add = value.getDefiningOp<arith::AddIOp>()) {
      auto broadcast = add.getLhs().getDefiningOp<vector::BroadcastOp>();
      Value other = add.getRhs();
      if (!broadcast) {
        broadcast = add.getRhs().getDefiningOp<vector::BroadcastOp>();
        other = add.getLhs();
      }
      if (!broadcast || isa<VectorType>(broadcast.getSource().getType()))
        return nullptr;
      if (isCount(other))
        return broadcast.getSource();
      if (Value start = getConsecutiveStart(other))
        return arith::AddIOp::create(builder, loc, start,
                                     broadcast.getSource());
    }
    if (auto sub = value.getDefiningOp<arith::SubIOp>()) {
      auto broadcast = sub.getRhs().getDefiningOp<vector::BroadcastOp>();
      if (!broadcast || isa<VectorType>(broadcast.getSource().getType()))
        return nullptr;
      if (Value start = getConsecutiveStart(sub.getLhs()))
        return arith::SubIOp::create(builder, loc, start,
                                     broadcast.getSource());
    }
    return nullptr;
  }

  /// Returns true if `value` is the constant 0, 1, 2, ...
  static bool isCount(Value value) {
    DenseIntElementsAttr elements;
    if (!matchPattern(value, m_Constant(&elements)))
      return false;
    for (auto [i, element] : llvm::enumerate(elements.getValues<APInt>()))
      if (element != i)
        return false;
    return true;
  }

  /// Emits a load of the body, some of whose indices are vectors.
  Value emitLoad(memref::LoadOp loadOp, ArrayRef<Value> operands,
                 int64_t lanes) {
    Value source = operands.front();
    MemRefType type = loadOp.getMemRefType();
    auto vectorType = VectorType::get(lanes, type.getElementType());
    SmallVector<Value> indices(operands.drop_front());
    bool onlyLast = llvm::none_of(ArrayRef(indices).drop_back(), [](Value v) {
      return isa<VectorType>(v.getType());
    });
    int64_t offset;
    SmallVector<int64_t> strides;
    bool isUnit = succeeded(type.getStridesAndOffset(strides, offset)) &&
                  strides.back() == 1;
    if (onlyLast && isUnit && hasVectorMemory(type.getElementType()))
      if (Value start = getConsecutiveStart(indices.back())) {
        indices.back() = start;
        return vector::LoadOp::create(builder, loc, vectorType, source,
                                      indices);
      }
    SmallVector<Value> elements;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      SmallVector<Value> place;
      for (Value value : indices)
        place.push_back(
            isa<VectorType>(value.getType())
                ? vector::ExtractOp::create(builder, loc, value, lane)
                      .getResult()
                : value);
      elements.push_back(memref::LoadOp::create(builder, loc, source, place));
    }
    return vector::FromElementsOp::create(builder, loc, vectorType, elements);
  }

  linalg::GenericOp op;
  VectorLoop vector;
  OpBuilder builder;
  Location loc;
  SmallVector<utils::IteratorType> iterators;
  SmallVector<OpFoldResult> sizes;
  /// The parallel and the reduction loops, without the vector loop.
  SmallVector<unsigned> outer, reductions;
  /// The index of every loop, at the place where code is emitted.
  SmallVector<Value> ivs;
  /// Results of the body that are the same along the vector loop, in it.
  DenseMap<Value, Value> same;
};

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//
} // namespace

/// Replaces affine.apply in the body by arithmetic, which has vector forms, and
/// moves loop indices out of the body's regions.
static void prepareBody(linalg::GenericOp op) {
  op.getBody()->walk([&](linalg::IndexOp index) {
    if (index->getBlock() != op.getBody())
      index->moveBefore(&op.getBody()->front());
  });
  op.getBody()->walk([](affine::AffineApplyOp apply) {
    OpBuilder builder(apply);
    if (auto values = affine::expandAffineMap(
            builder, apply.getLoc(), apply.getAffineMap(),
            llvm::to_vector<8>(apply.getMapOperands()))) {
      apply.getResult().replaceAllUsesWith(values->front());
      apply.erase();
    }
  });
}

namespace {
struct LinalgToVector final : impl::LinalgToVectorBase<LinalgToVector> {
  using LinalgToVectorBase::LinalgToVectorBase;

  void runOnOperation() override {
    int64_t bytes = vectorBytes;
    if (bytes == 0) {
      machine::TargetAttr target = machine::getTarget(getOperation());
      bytes = target ? target.getVectorBytes() : 64;
    }
    IRRewriter rewriter(&getContext());
    getOperation()->walk([&](memref::CopyOp copy) {
      rewriter.setInsertionPoint(copy);
      if (withoutReshapes(copy.getSource()) != copy.getTarget())
        linalg::makeMemRefCopyOp(rewriter, copy.getLoc(), copy.getSource(),
                                 copy.getTarget());
      copy.erase();
    });
    SmallVector<linalg::LinalgOp> ops;
    getOperation()->walk([&](linalg::LinalgOp op) {
      if (op.hasPureBufferSemantics())
        ops.push_back(op);
    });
    for (linalg::LinalgOp op : ops) {
      auto generic = dyn_cast<linalg::GenericOp>(op.getOperation());
      rewriter.setInsertionPoint(op);
      if (!generic) {
        FailureOr<linalg::GenericOp> generalised =
            linalg::generalizeNamedOp(rewriter, op);
        if (failed(generalised)) {
          op.emitOpError("has no loops to be converted to");
          return signalPassFailure();
        }
        generic = *generalised;
      }
      convert(rewriter, generic, bytes);
    }
  }

  void convert(IRRewriter &rewriter, linalg::GenericOp op, int64_t bytes) {
    if (!writesApart(op)) {
      rewriter.setInsertionPoint(op);
      (void)linalg::linalgOpToLoops(rewriter, op);
      rewriter.eraseOp(op);
      ++numScalar;
      return;
    }
    prepareBody(op);
    VectorLoop vector = planVectorLoop(op, bytes);
    LoopEmitter(op, vector).emit();
    ++(vector.lanes > 1 ? numVector : numScalar);
    rewriter.eraseOp(op);
  }
};
} // namespace
} // namespace fovea
