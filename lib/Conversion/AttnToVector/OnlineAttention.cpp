//===- OnlineAttention.cpp - attn.online_attention as loops over vectors --===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GatheredRows.h"

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

/// Keys of a block where nothing else determines their number.
static constexpr int64_t kDefaultBlockKeys = 64;
/// A block's scratch stays in cache: more keys are taken in several blocks.
static constexpr int64_t kMaxBlockKeys = 256;
/// Keys for which the mask of a block is asked whether it keeps them all, where
/// products are so fast that the mask takes time beside them.
static constexpr int64_t kMaskKeys = 32;
/// Scratch larger than this is not put on a stack.
static constexpr int64_t kMaxStackBytes = 128 * 1024;

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

static int64_t getBlockKeys(OnlineAttentionOp op) {
  int64_t keys = cast<MemRefType>(op.getKey().getType()).getDimSize(2);
  if (!ShapedType::isDynamic(keys) && keys > 0 && keys <= kMaxBlockKeys)
    return keys;
  if (ScheduleAttr schedule = op.getScheduleAttr())
    return std::min(schedule.getKeyTile(), kMaxBlockKeys);
  return kDefaultBlockKeys;
}

TileShape TileShape::get(OnlineAttentionOp op, const VectorUnit &unit) {
  Type type = op.getAccumulationType();
  TileShape shape;
  shape.queries = cast<MemRefType>(op.getAcc().getType()).getDimSize(2);
  shape.lanes = unit.lanesDividing(type, shape.queries);

  // Score tile: each broadcast of a key's feature serves `groupVectors`
  // products.
  int64_t vectors = shape.queries / shape.lanes;
  int64_t budget = unit.accumulators();
  shape.fewQueries = getFewQueries(op, shape.lanes);
  // Squares of four tiles read the fewest operands.
  SmallVector<int64_t> candidates = {3, 4, 2, 1};
  if (op.hasQueryPairs())
    candidates = {2, 3, 1};
  for (int64_t candidate : candidates)
    if (vectors % candidate == 0) {
      shape.groupVectors = candidate;
      break;
    }
  shape.groups = vectors / shape.groupVectors;
  shape.blockKeys = getBlockKeys(op);
  shape.tileKeys = shape.fewQueries
                       ? shape.lanes / shape.fewStride()
                       : std::max<int64_t>(1, budget / shape.groupVectors);
  // A tile that divides the block computes no key twice.
  for (int64_t keys = shape.tileKeys;
       !shape.fewQueries && 2 * keys > shape.tileKeys; --keys)
    if (shape.blockKeys % keys == 0) {
      shape.tileKeys = keys;
      break;
    }

  if (op.hasQueryPairs()) {
    shape.tileKeys = shape.tileRows = 16;
    return shape;
  }

  // The rows of the value tile divide the tile's. A dynamic number of features
  // is taken to be a multiple of four vectors.
  int64_t features = cast<MemRefType>(op.getValue().getType()).getDimSize(3);
  int64_t needed = ShapedType::isDynamic(features)
                       ? 4
                       : llvm::divideCeil(features, shape.lanes);
  auto best = std::make_pair(std::numeric_limits<double>::infinity(), 0.0);
  for (int64_t width = 1; width <= std::clamp<int64_t>(needed, 1, budget);
       ++width)
    for (int64_t rows = 1; rows * width <= budget; ++rows) {
      auto cost = getProductCost(rows, width, needed);
      if (shape.queries % rows != 0 || cost >= best ||
          (shape.fewQueries && rows > shape.fewQueries))
        continue;
      best = cost;
      shape.tileRows = rows;
      shape.valueVectors = width;
    }
  return shape;
}

//===----------------------------------------------------------------------===//
// Scratch and copies
//===----------------------------------------------------------------------===//

Value fovea::attn::allocateScratch(KernelBuilder &b, Operation *op,
                                   ArrayRef<int64_t> shape, Type element,
                                   ValueRange dynamicSizes) {
  auto type = MemRefType::get(shape, element);
  IntegerAttr alignment = b.getI64IntegerAttr(64);
  OpBuilder::InsertionGuard guard(b);
  if (type.hasStaticShape() &&
      type.getNumElements() * element.getIntOrFloatBitWidth() / 8 <=
          kMaxStackBytes) {
    // The allocation is not in a loop: the stack is given back only when the
    // function returns.
    Operation *scope = op->getParentOp();
    while (!isa<scf::ForallOp, scf::ParallelOp, FunctionOpInterface>(scope))
      scope = scope->getParentOp();
    b.setInsertionPointToStart(&scope->getRegion(0).front());
    return memref::AllocaOp::create(b, type, alignment);
  }
  Value memory = memref::AllocOp::create(b, type, dynamicSizes, alignment);
  b.setInsertionPointAfter(op);
  memref::DeallocOp::create(b, memory);
  return memory;
}

bool fovea::attn::isReadableAs(Value operand, Type type) {
  auto memref = cast<MemRefType>(operand.getType());
  return memref.getElementType() == type && memref.isLastDimUnitStride();
}

void fovea::attn::emitCopyRow(KernelBuilder &b, int64_t lanes, Value source,
                              ValueRange row, Value first, Value count,
                              Value target, Value targetRow) {
  auto type = cast<MemRefType>(source.getType());
  Type element = cast<MemRefType>(target.getType()).getElementType();
  auto copy = [&](Value feature, Type loaded) {
    SmallVector<Value> from(row);
    from.push_back(b.add(first, feature));
    Value value;
    if (auto vector = dyn_cast<VectorType>(loaded))
      value = b.loadVector(vector, source, from);
    else
      value = b.load(source, from);
    b.store(b.convert(value, element), target, {targetRow, feature});
  };

  Value done = b.index(0);
  if (type.isLastDimUnitStride() && lanes > 1) {
    auto vector = VectorType::get({lanes}, type.getElementType());
    // Copies up to four vectors a step where the row is known to be a multiple
    // of that.
    std::optional<int64_t> size = getConstantIntValue(count);
    int64_t vectors = 4;
    while (vectors > 1 && (!size || *size % (vectors * lanes) != 0))
      --vectors;
    done = b.roundDown(count, lanes);
    b.loop(b.index(0), done, vectors * lanes, [&](Value feature) {
      for (int64_t v = 0; v < vectors; ++v)
        copy(b.add(feature, v * lanes), vector);
    });
  }
  b.loop(done, count, 1,
         [&](Value feature) { copy(feature, type.getElementType()); });
}

//===----------------------------------------------------------------------===//
// The op
//===----------------------------------------------------------------------===//

/// Emits the work on the block of keys, and on the queries, that `kernel` is
/// set to.
static void emitBlock(OnlineKernel &kernel) {
  KernelBuilder &b = kernel.b;
  OnlineAttentionOp op = kernel.op;
  if (op.hasQueryPairs())
    emitMatrixScoreProduct(kernel);
  else
    emitScoreProduct(kernel);
  if (!op.getScore().empty())
    emitScoreRegion(kernel, op.getScore());
  if (!op.getMask().empty()) {
    if (Value partial = op.getPartial())
      b.when(partial, [&] { emitMaskRegion(kernel); });
    else
      emitMaskRegion(kernel);
  }
  if (op.hasQueryPairs())
    emitMatrixSoftmax(kernel);
  else if (kernel.hasFlatScores)
    emitFlatSoftmax(kernel);
  else
    emitSoftmax(kernel);
  if (!op.updatesAcc())
    return;
  if (op.getDropout()) {
    SmallVector<Value> whole(op.getWhole());
    if (whole.empty())
      whole = {b.dim(op.getQuery(), 1), op.getRows()};
    emitDropout(kernel, {op.getDropout()->convertToDouble(), op.getSeed(),
                         op.getOffset(), whole[0], whole[1]});
  }
  if (op.hasQueryPairs())
    emitMatrixValueProduct(kernel);
  else
    emitValueProduct(kernel);
}

void fovea::attn::emitOnlineAttention(KernelBuilder &b, OnlineAttentionOp op,
                                      const VectorUnit &unit) {
  TileShape shape = TileShape::get(op, unit);
  FloatType type = op.getAccumulationType();
  // Rows of one value tile must be of one group: values that a group does not
  // keep are not computed.
  bool boundsKeys = shape.groupQueries() % shape.tileRows == 0 &&
                    hasCheapBounds(op.getMask());
  OnlineKernel kernel{{b, op.getMask(), VectorType::get({shape.lanes}, type),
                       shape.groupVectors, boundsKeys,
                       op.hasQueryPairs() && boundsKeys ? kMaskKeys : 0},
                      op,
                      shape};
  kernel.rows = op.getRows();
  kernel.usedGroups = shape.groups == 1
                          ? b.index(1)
                          : b.ceilDiv(kernel.rows, shape.groupQueries());

  int64_t scoreRows =
      llvm::alignTo(shape.blockKeys, op.hasQueryPairs() ? 32 : shape.tileKeys);
  int64_t queries = op.hasQueryPairs() ? shape.groupQueries() : shape.queries;
  kernel.hasFlatScores = hasFlatScores(op, shape);
  kernel.scores = allocateScratch(
      b, op,
      kernel.hasFlatScores
          ? SmallVector<int64_t>{1, scoreRows * shape.fewStride()}
          : SmallVector<int64_t>{scoreRows, queries},
      type);
  if (op.updatesMax())
    kernel.blockMax = allocateScratch(b, op, {queries}, type);
  if (op.updatesMax() && op.updatesAcc())
    kernel.alpha = allocateScratch(b, op, {queries}, type);
  if (op.hasQueryPairs()) {
    allocateMatrixScratch(kernel);
  } else if (shape.fewQueries) {
    kernel.queryRows =
        allocateScratch(b, op,
                        {shape.fewQueries,
                         cast<MemRefType>(op.getKey().getType()).getDimSize(3)},
                        type);
  } else if (!isReadableAs(op.getKey(), type)) {
    int64_t features = cast<MemRefType>(op.getKey().getType()).getDimSize(3);
    SmallVector<Value> size;
    if (ShapedType::isDynamic(features))
      size.push_back(b.dim(op.getKey(), 3));
    kernel.keyBlock =
        allocateScratch(b, op, {shape.blockKeys, features}, type, size);
  }
  // Few queries read each value as often as a copy would.
  bool isReadOnce =
      shape.fewQueries &&
      cast<MemRefType>(op.getValue().getType()).isLastDimUnitStride();
  if (op.updatesAcc() && !op.hasQueryPairs() && !isReadOnce &&
      !isReadableAs(op.getValue(), type))
    kernel.valueBlock = allocateScratch(
        b, op, {shape.blockKeys, shape.valueVectors * shape.lanes}, type);

  std::optional<GatheredRows> keyRows, valueRows;
  if (shape.fewQueries) {
    keyRows = GatheredRows::find(op, op.getKey());
    if (op.getValue() != op.getKey())
      valueRows = GatheredRows::find(op, op.getValue());
  }
  kernel.key = keyRows ? keyRows->emit(b, op) : OperandRows{op.getKey()};
  if (op.getValue() == op.getKey())
    kernel.value = kernel.key;
  else
    kernel.value =
        valueRows ? valueRows->emit(b, op) : OperandRows{op.getValue()};

  Value zero = b.index(0);
  kernel.firstQuery = zero;
  SmallVector<Value, 4> at(op.getAt());
  if (at.empty())
    at.assign(4, zero);
  Value heads = b.dim(op.getQuery(), 1);
  Value headsPerKVHead = getValueOrCreateConstantIndexOp(
      b, b.getLoc(),
      getHeadsPerKVHead(b, b.getLoc(), heads, b.dim(kernel.key.memory, 1)));
  Value keys = b.dim(kernel.key.memory, 2);
  b.loop(zero, b.dim(op.getQuery(), 0), 1, [&](Value batch) {
    b.loop(zero, heads, 1, [&](Value head) {
      kernel.batch = batch;
      kernel.head = head;
      kernel.kvHead = b.fold<arith::DivUIOp>(head, headsPerKVHead);
      b.loop(zero, keys, shape.blockKeys, [&](Value firstKey) {
        kernel.firstKey = firstKey;
        kernel.keys = b.min(b.index(shape.blockKeys), b.sub(keys, firstKey));
        kernel.at = {b.add(at[0], batch), b.add(at[1], head), at[2],
                     b.add(at[3], firstKey)};
        if (op.hasQueryPairs())
          emitMatrixBlock(kernel, [&] { emitBlock(kernel); });
        else
          emitBlock(kernel);
      });
    });
  });
  op.erase();
  if (keyRows)
    keyRows->erase();
  if (valueRows)
    valueRows->erase();
}
