//===- MatrixTiles.cpp - Products of a block by pairs in bf16 -------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Products, and conversions of rows and of scores to what these read.
//
//===----------------------------------------------------------------------===//

#include "MatrixTiles.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"

#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

static constexpr int64_t kSide = Tiles::kSide;
/// Vectors of a row of values that are packed by one piece of code.
static constexpr int64_t kMaxVectors = 8;

//===----------------------------------------------------------------------===//
// Pairs
//===----------------------------------------------------------------------===//

static VectorType getWords(KernelBuilder &b) {
  return VectorType::get({kSide}, b.getI32Type());
}

/// Joins vectors in bf16 to words.
static Value interleave(KernelBuilder &b, Value low, Value high) {
  VectorType words = getWords(b);
  auto widen = [&](Value vector) -> Value {
    auto bits = VectorType::get({kSide}, b.getI16Type());
    return arith::ExtUIOp::create(b, words,
                                  arith::BitcastOp::create(b, bits, vector));
  };
  Value shifted =
      arith::ShLIOp::create(b, widen(high), b.constantInt(words, 16));
  return arith::OrIOp::create(b, widen(low), shifted);
}

/// Returns the bits of a vector in f32, of which the upper halves are rounded
/// to bf16: half of the last place is added before the lower half is cut off.
/// Numbers are far from overflow, but NaNs of many bits would become zeros: a
/// NaN among weights is in the sum, too.
static Value getRounded(KernelBuilder &b, Value vector) {
  VectorType words = getWords(b);
  return arith::AddIOp::create(b, arith::BitcastOp::create(b, words, vector),
                               b.constantInt(words, 0x8000));
}

Value fovea::attn::emitNarrowPairs(KernelBuilder &b, Value low, Value high) {
  // The processor's own conversion takes two cycles of the unit that permutes.
  VectorType words = getWords(b);
  Value shifted =
      arith::ShRUIOp::create(b, getRounded(b, low), b.constantInt(words, 16));
  // shifted | (high & upper) by VPTERNLOGD: from ops on bits LLVM would make
  // permutations of halves, which are three operations.
  Value upper = b.constantInt(words, -0x10000);
  Value table = LLVM::ConstantOp::create(b, b.getI32Type(), 0xF8);
  return LLVM::CallIntrinsicOp::create(
             b, words, b.getStringAttr("llvm.x86.avx512.pternlog.d.512"),
             ValueRange{shifted, getRounded(b, high), upper, table})
      .getResult(0);
}

/// Returns numbers of f16 in f32, with NaNs that can be rounded: of NaNs of one
/// sign those of few bits are the least.
static Value widenNumbers(KernelBuilder &b, Value vector) {
  constexpr int64_t kQuiet = 0x7e00, kNegativeQuiet = -0x200;
  auto type = cast<VectorType>(vector.getType());
  if (type.getElementType().isF16()) {
    auto bits = type.clone(b.getI16Type());
    Value number = arith::BitcastOp::create(b, bits, vector);
    number = arith::MinSIOp::create(b, number, b.constantInt(bits, kQuiet));
    number =
        arith::MinUIOp::create(b, number, b.constantInt(bits, kNegativeQuiet));
    vector = arith::BitcastOp::create(b, type, number);
  }
  return b.convert(vector, b.getF32Type());
}

SmallVector<Value> fovea::attn::emitPairParts(KernelBuilder &b, Value low,
                                              Value high, int64_t parts) {
  if (getElementTypeOrSelf(low).isBF16())
    return {interleave(b, low, high)};
  low = widenNumbers(b, low);
  high = widenNumbers(b, high);
  SmallVector<Value> pairs = {emitNarrowPairs(b, low, high)};
  if (parts == 1)
    return pairs;
  // The difference of a number and itself rounded is exact.
  auto getRest = [&](Value vector) -> Value {
    Value upper = arith::AndIOp::create(b, getRounded(b, vector),
                                        b.constantInt(getWords(b), -0x10000));
    return arith::SubFOp::create(
        b, vector, arith::BitcastOp::create(b, vector.getType(), upper));
  };
  pairs.push_back(emitNarrowPairs(b, getRest(low), getRest(high)));
  return pairs;
}

Value fovea::attn::emitLoadNumbers(KernelBuilder &b, Value operand,
                                   ValueRange indices) {
  auto type = cast<MemRefType>(operand.getType());
  auto vector = VectorType::get({kSide}, type.getElementType());
  if (type.isLastDimUnitStride())
    return b.loadVector(vector, operand, indices);
  SmallVector<Value> elements, from(indices);
  for (int64_t lane = 0; lane < kSide; ++lane) {
    from.back() = b.add(indices.back(), lane);
    elements.push_back(b.load(operand, from));
  }
  return vector::FromElementsOp::create(b, vector, elements);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Returns the parts, of a left and a right operand, that are multiplied.
static SmallVector<std::pair<int64_t, int64_t>> getFactors(const Tiles &tiles) {
  SmallVector<std::pair<int64_t, int64_t>> factors = {{0, 0}};
  if (tiles.parts == 1)
    return factors;
  factors.append({{0, 1}, {1, 0}});
  if (tiles.isExact)
    factors.push_back({1, 1});
  return factors;
}

void Tiles::multiply(const Product &product) const {
  if (b.hasDotProducts)
    multiplyVectors(product);
  else
    multiplyTiles(product);
}

void Tiles::multiplyTiles(const Product &product) const {
  auto sumType = amx::TileType::get({kSide, kSide}, b.getF32Type()),
       operandType = amx::TileType::get({kSide, kDepth}, narrow);
  auto load = [&](amx::TileType type, const Place &place) -> Value {
    return amx::TileLoadOp::create(b, type, place.matrix, place.indices);
  };
  int64_t columns = product.columns, count = product.rows * columns;
  SmallVector<Value> sums;
  for (int64_t sum = 0; sum < count; ++sum)
    sums.push_back(
        product.isAdded
            ? load(sumType, product.getSums(sum / columns, sum % columns))
            : amx::TileZeroOp::create(b, sumType));

  auto addStep = [&](Value depth, SmallVector<Value> sums) {
    for (auto [leftPart, rightPart] : getFactors(*this)) {
      // Operands on the right stay in tiles for all rows.
      SmallVector<Value> right(columns);
      for (int64_t row = 0; row < product.rows; ++row) {
        Value left = load(operandType, product.getLeft(row, depth, leftPart));
        for (int64_t column = 0; column < columns; ++column) {
          if (!right[column])
            right[column] =
                load(operandType, product.getRight(column, depth, rightPart));
          Value &sum = sums[row * columns + column];
          sum = amx::TileMulFOp::create(b, sumType, left, right[column], sum);
        }
      }
    }
    return sums;
  };
  auto first = getConstantIntValue(product.depth.first),
       end = getConstantIntValue(product.depth.end);
  if (first && end && hasFewSteps(*end - *first)) {
    int64_t steps = (*end - *first) / kDepth;
    for (int64_t step = 0; step < steps; ++step) {
      sums = addStep(b.index(*first + step * kDepth), std::move(sums));
      if (product.fillStep)
        product.fillStep(step, steps);
    }
  } else {
    sums = b.loop(product.depth.first, product.depth.end, kDepth, sums,
                  [&](Value depth, ValueRange carried) {
                    return addStep(depth, SmallVector<Value>(carried));
                  });
  }
  for (auto [sum, tile] : llvm::enumerate(sums)) {
    auto place =
        product.getSums(int64_t(sum) / columns, int64_t(sum) % columns);
    amx::TileStoreOp::create(b, place.matrix, place.indices, tile);
  }
}

void Tiles::multiplyVectors(const Product &product) const {
  auto sumType = VectorType::get({kSide}, b.getF32Type());
  // Row `row` of the tile at `place`, from column `column` on.
  auto getIndices = [&](const Place &place, Value row, Value column) {
    SmallVector<Value> indices(place.indices);
    indices[indices.size() - 2] = b.add(indices[indices.size() - 2], row);
    indices.back() = b.add(indices.back(), column);
    return indices;
  };
  Value zero = b.index(0);
  for (int64_t row = 0; row < product.rows; ++row)
    for (int64_t column = 0; column < product.columns; ++column) {
      Place target = product.getSums(row, column);
      auto getTarget = [&](int64_t r) {
        return getIndices(target, b.index(r), zero);
      };
      SmallVector<Value> sums;
      for (int64_t r = 0; r < kSide; ++r)
        sums.push_back(product.isAdded
                           ? b.loadVector(sumType, target.matrix, getTarget(r))
                           : b.constant(sumType, 0.0));
      sums =
          b.loop(product.depth.first, product.depth.end, kDepth, sums,
                 [&](Value depth, ValueRange outer) {
                   SmallVector<Value> next(outer);
                   for (auto [leftPart, rightPart] : getFactors(*this)) {
                     Place left = product.getLeft(row, depth, leftPart),
                           right = product.getRight(column, depth, rightPart);
                     next = b.loop(
                         zero, b.index(kSide), 1, next,
                         [&](Value pair, ValueRange inner) {
                           SmallVector<Value> added(inner);
                           Value pairs =
                               b.loadVector(line, right.matrix,
                                            getIndices(right, pair, zero));
                           for (auto [r, sum] : llvm::enumerate(added))
                             sum = x86vector::DotBF16Op::create(
                                 b, sumType, sum,
                                 loadPair(left.matrix,
                                          getIndices(left, b.index(int64_t(r)),
                                                     b.mul(pair, 2))),
                                 pairs);
                           return added;
                         });
                   }
                   return next;
                 });
      for (auto [r, sum] : llvm::enumerate(sums))
        b.store(sum, target.matrix, getTarget(int64_t(r)));
    }
}

Value Tiles::loadPair(Value matrix, ValueRange indices) const {
  Value pair = b.loadVector(VectorType::get({2}, narrow), matrix, indices);
  Value word = vector::ExtractOp::create(
      b,
      vector::BitCastOp::create(b, VectorType::get({1}, b.getI32Type()), pair));
  return vector::BitCastOp::create(b, line, b.splat(words, word));
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

/// Returns true if products can read rows of an operand where they lie. Vectors
/// would compute the address of each pair, where rows have no constant
/// distance.
static bool isReadInPlace(KernelBuilder &b, Value operand) {
  return isReadableAs(operand, b.getBF16Type()) && !b.hasDotProducts;
}

int64_t Tiles::getScratchRows(KernelBuilder &b, Value operand, int64_t count) {
  return isReadInPlace(b, operand) ? kSide : count;
}

Value Tiles::getRows(Value operand, ValueRange place, Value rows,
                     Value scratch) const {
  auto type = cast<MemRefType>(operand.getType());
  int64_t features = type.getDimSize(3);
  auto getPlace = [&](Value row, Value feature) {
    return SmallVector<Value>{place[0], place[1], b.add(place[2], row),
                              feature};
  };
  if (parts > 1) {
    b.loop(b.index(0), rows, 1, [&](Value row) {
      b.loop(b.index(0), b.index(features), kDepth, [&](Value feature) {
        Value low = emitLoadNumbers(b, operand, getPlace(row, feature)),
              high = emitLoadNumbers(b, operand,
                                     getPlace(row, b.add(feature, kSide)));
        for (auto [part, pairs] :
             llvm::enumerate(emitPairParts(b, low, high, parts)))
          b.store(vector::BitCastOp::create(b, line, pairs), scratch,
                  {row, b.add(feature, int64_t(part) * features)});
      });
    });
    return scratch;
  }
  auto copy = [&] {
    b.loop(b.index(0), rows, 1, [&](Value row) {
      SmallVector<Value> from = getPlace(row, b.index(0));
      from.pop_back();
      emitCopyRow(b, kDepth, operand, from, b.index(0), b.index(features),
                  scratch, row);
    });
  };
  if (!isReadInPlace(b, operand)) {
    copy();
    return scratch;
  }

  Value isShort =
      arith::CmpIOp::create(b, arith::CmpIPredicate::slt, rows, b.index(kSide));
  b.when(isShort, copy);
  return selectRows(isShort, scratch, operand, place, rows);
}

Value Tiles::selectRows(Value isScratch, Value scratch, Value operand,
                        ValueRange place, Value rows) const {
  auto type = cast<MemRefType>(operand.getType());
  int64_t features = type.getDimSize(3);
  Builder attributes(b.getContext());
  auto getIndex = [&](int64_t value) -> OpFoldResult {
    return attributes.getIndexAttr(value);
  };
  SmallVector<OpFoldResult> offsets = {place[0], place[1], place[2],
                                       getIndex(0)},
                            sizes = {getIndex(1), getIndex(1), rows,
                                     getIndex(features)},
                            strides(4, getIndex(1));
  auto matrix = MemRefType::get(
      {ShapedType::kDynamic, features}, type.getElementType(),
      StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic,
                             {ShapedType::kDynamic, 1}));
  auto view = cast<MemRefType>(memref::SubViewOp::inferRankReducedResultType(
      {ShapedType::kDynamic, features}, type, offsets, sizes, strides));
  Value own =
      memref::SubViewOp::create(b, view, operand, offsets, sizes, strides);
  return arith::SelectOp::create(b, isScratch,
                                 b.fold<memref::CastOp>(matrix, scratch),
                                 b.fold<memref::CastOp>(matrix, own));
}

void Tiles::multiplyStep(
    Value left, int64_t features, GetOperand getRight, Value result,
    Value column, Value begin, int64_t rows,
    llvm::function_ref<void(int64_t step, int64_t steps)> fillStep) const {
  // The last tiles of many end with the block's last key, and compute results
  // of tiles before again. Of fewer keys than a tile has, rows beyond the last
  // are whatever the scratch holds: their results are not read.
  Value last = b.max(b.sub(block.keys, b.index(kSide)), b.index(0));
  auto getKey = [&](int64_t row) {
    return b.min(b.add(begin, row * kSide), last);
  };
  auto getLeft = [&](int64_t row, Value feature, int64_t part) -> Place {
    return {left, {getKey(row), b.add(feature, part * features)}};
  };
  auto getResult = [&](int64_t row, int64_t v) -> Place {
    return {result, {getKey(row), b.add(column, v * kSide)}};
  };
  multiply({rows,
            block.groupVectors,
            {b.index(0), b.index(features)},
            getLeft,
            getRight,
            getResult,
            /*isAdded=*/false,
            fillStep});
}

SmallVector<Value> Tiles::multiplyKeys(Value left, int64_t features,
                                       GetOperand getRight, Value result,
                                       Value column, IndexRange keys,
                                       ValueRange inits,
                                       KernelBuilder::LoopBody readRows) const {
  int64_t rows = getStepRows();
  Value first = b.roundDown(keys.first, kSide);
  // Rows are read behind the next products, which the processor begins
  // meanwhile.
  auto readBefore = [&](Value end, ValueRange carried) {
    Value begin = b.max(b.sub(end, b.index(rows * kSide)), keys.first);
    return b.loop(begin, b.min(end, keys.end), 1, carried, readRows);
  };
  SmallVector<Value> results = b.loop(
      first, keys.end, rows * kSide, inits,
      [&](Value begin, ValueRange carried) {
        multiplyStep(left, features, getRight, result, column, begin, rows);
        return readRows ? readBefore(begin, carried)
                        : SmallVector<Value>(carried);
      });
  if (!readRows)
    return results;
  // The last step's rows.
  Value steps =
      b.ceilDiv(b.max(b.sub(keys.end, first), b.index(0)), rows * kSide);
  return readBefore(b.add(first, b.mul(steps, rows * kSide)), results);
}

void Tiles::packPairs(Value operand, ValueRange place, IndexRange rows,
                      Value count, Pairing pairing, Value target) const {
  auto type = cast<MemRefType>(operand.getType());
  int64_t features = type.getDimSize(3);
  int64_t partRows = cast<MemRefType>(target.getType()).getDimSize(0) / parts;
  auto loadRow = [&](Value row, Value feature) -> Value {
    return emitLoadNumbers(b, operand,
                           {place[0], place[1], b.add(place[2], row), feature});
  };
  // Rows that are joined lie in units of their own.
  int64_t unit = pairing == Pairing::Neighbours ? 2 : kDepth;
  auto emitPairs = [&](Value first, Value end, int64_t vectors,
                       llvm::function_ref<Value(Value, Value)> getRow) {
    b.loop(first, end, unit, [&](Value begin) {
      b.loop(b.index(0), b.index(unit / 2), 1, [&](Value pair) {
        Value row = b.add(begin, pair);
        Value targetRow = b.add(b.floorDiv(begin, 2), pair);
        b.loop(b.index(0), b.index(features), vectors * kSide,
               [&](Value start) {
                 for (int64_t v = 0; v < vectors; ++v) {
                   Value feature = b.add(start, v * kSide);
                   for (auto [part, pairs] : llvm::enumerate(emitPairParts(
                            b, getRow(row, feature),
                            getRow(b.add(row, unit / 2), feature), parts)))
                     b.store(vector::BitCastOp::create(b, line, pairs), target,
                             {b.add(targetRow, int64_t(part) * partRows),
                              b.mul(feature, 2)});
                 }
               });
      });
    });
  };

  IndexRange whole = getWhole(rows);
  // The units of which all rows are wanted.
  IndexRange inner = {b.mul(b.ceilDiv(rows.first, unit), unit), Value()};
  inner.end = b.max(b.roundDown(rows.end, unit), inner.first);
  Value zero = b.constant(VectorType::get({kSide}, type.getElementType()), 0.0);
  auto loadWanted = [&](Value row, Value feature) -> Value {
    Value isWanted = arith::AndIOp::create(
        b, arith::CmpIOp::create(b, arith::CmpIPredicate::sge, row, rows.first),
        arith::CmpIOp::create(b, arith::CmpIPredicate::slt, row, rows.end));
    Value existing = b.min(b.max(row, rows.first), b.sub(count, b.index(1)));
    return arith::SelectOp::create(b, isWanted, loadRow(existing, feature),
                                   zero);
  };
  int64_t vectors = features / kSide;
  bool isWritten = type.isLastDimUnitStride() && vectors <= kMaxVectors;
  emitPairs(whole.first, b.min(inner.first, whole.end), 1, loadWanted);
  emitPairs(inner.first, inner.end, isWritten ? vectors : 1, loadRow);
  emitPairs(inner.end, whole.end, 1, loadWanted);
}

void Tiles::transpose(Value source, Value column, int64_t columns,
                      IndexRange keys, Value target, Value row) const {
  int64_t partKeys = cast<MemRefType>(target.getType()).getDimSize(1) / parts;
  b.loop(keys.first, keys.end, kDepth, [&](Value key) {
    b.loop(b.index(0), b.index(columns), kSide, [&](Value query) {
      SmallVector<SmallVector<Value>> squares(parts);
      for (int64_t pair = 0; pair < kSide; ++pair) {
        SmallVector<Value> rows;
        for (int64_t odd : {0, 1})
          rows.push_back(
              b.loadVector(block.vector, source,
                           {b.add(key, 2 * pair + odd), b.add(column, query)}));
        for (auto [square, pairs] :
             llvm::zip(squares, emitPairParts(b, rows[0], rows[1], parts)))
          square.push_back(pairs);
      }
      Value first = b.add(row, query);
      for (auto [part, square] : llvm::enumerate(squares))
        for (auto [r, pairs] :
             llvm::enumerate(emitTranspose(b, std::move(square))))
          b.store(vector::BitCastOp::create(b, line, pairs), target,
                  {b.add(first, r), b.add(key, int64_t(part) * partKeys)});
    });
  });
}

void Tiles::addProducts(Value left, Value row, int64_t rows, Value right,
                        IndexRange depth, Value target, ValueRange place,
                        int64_t features) const {
  int64_t partDepth = cast<MemRefType>(left.getType()).getDimSize(1) / parts,
          partPairs = cast<MemRefType>(right.getType()).getDimSize(0) / parts;
  int64_t columns = std::max<int64_t>(kSums / rows, 1);
  for (int64_t first = 0; first < features; first += columns * kSide) {
    auto getLeft = [&](int64_t tile, Value k, int64_t part) -> Place {
      return {left, {b.add(row, tile * kSide), b.add(k, part * partDepth)}};
    };
    auto getRight = [&](int64_t tile, Value k, int64_t part) -> Place {
      return {right,
              {b.add(b.floorDiv(k, 2), part * partPairs),
               b.index(2 * (first + tile * kSide))}};
    };
    auto getSums = [&](int64_t rowTile, int64_t column) -> Place {
      SmallVector<Value> indices(place);
      indices.back() = b.add(indices.back(), rowTile * kSide);
      indices.push_back(b.index(first + column * kSide));
      return {target, indices};
    };
    multiply({rows, std::min(columns, (features - first) / kSide), depth,
              getLeft, getRight, getSums, /*isAdded=*/true});
  }
}
