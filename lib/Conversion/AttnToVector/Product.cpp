//===- Product.cpp - Products of matrices in register tiles ---------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Product.h"

#include "OnlineKernel.h"

#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;
using namespace fovea::attn;

/// Products in a step of the inner loop. They cost as many instructions as they
/// have multiply-adds and loads: the loop's own are few beside these.
static constexpr int64_t kUnroll = 4;

//===----------------------------------------------------------------------===//
// Columns
//===----------------------------------------------------------------------===//

void fovea::attn::forColumns(KernelBuilder &b, int64_t lanes, Value count,
                             int64_t vectors,
                             llvm::function_ref<void(Columns)> body) {
  int64_t width = vectors * lanes;
  Value whole = b.roundDown(count, width);
  b.loop(b.index(0), whole, width,
         [&](Value column) { body({column, vectors, Value()}); });

  auto maskType = VectorType::get({lanes}, b.getI1Type());
  std::optional<int64_t> size = getConstantIntValue(count);
  if (!size) {
    b.loop(whole, count, lanes, [&](Value column) {
      Value mask = vector::CreateMaskOp::create(
          b, maskType, ValueRange{b.sub(count, column)});
      body({column, 1, mask});
    });
    return;
  }
  int64_t rest = *size % width;
  if (rest == 0)
    return;
  Value mask;
  if (int64_t odd = rest % lanes)
    mask = vector::ConstantMaskOp::create(b, maskType, ArrayRef<int64_t>{odd});
  body({whole, (rest + lanes - 1) / lanes, mask});
}

std::pair<double, double>
fovea::attn::getProductCost(int64_t rows, int64_t width, int64_t vectors) {
  double cycles = 0, loads = 0;
  auto add = [&](int64_t tiles, int64_t tileWidth) {
    double tileLoads = double(rows + tileWidth);
    cycles += double(tiles) *
              std::max({double(rows * tileWidth) / 2, tileLoads / 2, 4.0});
    loads += double(tiles) * tileLoads;
  };
  add(vectors / width, width);
  if (vectors % width)
    add(1, vectors % width);
  return {cycles / double(rows), loads / double(rows)};
}

Value fovea::attn::loadColumns(KernelBuilder &b, VectorType type, Value memref,
                               ValueRange indices, Value mask) {
  if (!mask)
    return b.loadVector(type, memref, indices);
  return vector::MaskedLoadOp::create(b, type, memref, indices, mask,
                                      b.constant(type, 0.0));
}

void fovea::attn::storeColumns(KernelBuilder &b, Value vector, Value memref,
                               ValueRange indices, Value mask) {
  if (mask)
    vector::MaskedStoreOp::create(b, memref, indices, mask, vector);
  else
    b.store(vector, memref, indices);
}

//===----------------------------------------------------------------------===//
// The left operand
//===----------------------------------------------------------------------===//

namespace {
/// Reads single elements of a product's left operand, in one tile of rows.
class LeftReader {
public:
  LeftReader(KernelBuilder &b, const Product &product)
      : b(b), product(product) {
    if (!product.transposed)
      metadata = memref::ExtractStridedMetadataOp::create(b, product.left);
  }

  void open(Value firstRow);
  Value read(int64_t row, Value k);

private:
  KernelBuilder &b;
  const Product &product;
  memref::ExtractStridedMetadataOp metadata;
  /// For each row of the tile, its index or the row itself as a memref.
  SmallVector<Value> rows;
};
} // namespace

/// Returns row `first + offset` of the product, or its last row where that is
/// in front.
static Value clampRow(KernelBuilder &b, const Product &product, Value first,
                      int64_t offset, bool isPadded) {
  Value row = b.add(first, offset);
  return isPadded ? row : b.min(row, b.sub(product.rows.end, b.index(1)));
}

/// Makes each row a memref of its own, so that only an element's index is left
/// to add in the inner loop.
void LeftReader::open(Value firstRow) {
  rows.clear();
  for (int64_t r = 0; r < product.tileRows; ++r) {
    Value row = clampRow(b, product, firstRow, r, product.paddedLeft);
    if (product.transposed) {
      rows.push_back(row);
      continue;
    }
    ValueRange strides = metadata.getStrides();
    auto type = MemRefType::get(
        {ShapedType::kDynamic}, getElementTypeOrSelf(product.left.getType()),
        StridedLayoutAttr::get(
            b.getContext(), ShapedType::kDynamic,
            cast<MemRefType>(product.left.getType()).isLastDimUnitStride()
                ? 1
                : ShapedType::kDynamic));
    Value offset = b.add(metadata.getOffset(), b.mul(row, strides.front()));
    OpFoldResult stride = strides.back();
    if (type.isLastDimUnitStride())
      stride = b.getIndexAttr(1);
    rows.push_back(memref::ReinterpretCastOp::create(
        b, type, metadata.getBaseBuffer(), OpFoldResult(offset),
        ArrayRef<OpFoldResult>{getAsOpFoldResult(product.depth)},
        ArrayRef<OpFoldResult>{stride}));
  }
}

Value LeftReader::read(int64_t row, Value k) {
  if (product.transposed)
    return b.load(product.left, {k, rows[row]});
  return b.load(rows[row], k);
}

//===----------------------------------------------------------------------===//
// The product
//===----------------------------------------------------------------------===//

/// Rows beyond the last one repeat the last one. Sums are loaded before any is
/// stored, and stored from the last to the first, so that the value that stays
/// is the sum of the row itself.
///
/// Sums a tile's products separately: the sum that they are added to may be
/// larger, and each addition to it would round in proportion to its size.
static void emitTile(KernelBuilder &b, VectorType vector,
                     const Product &product, LeftReader &left, Value firstRow,
                     const Columns &columns, IndexRange depth) {
  int64_t size = product.tileRows * columns.vectors;
  auto columnOf = [&](int64_t v) {
    return b.add(columns.column, v * vector.getNumElements());
  };
  SmallVector<SmallVector<Value>> places;
  for (int64_t i = 0; i < size; ++i)
    places.push_back(
        {clampRow(b, product, firstRow, i / columns.vectors, product.paddedSum),
         columnOf(i % columns.vectors)});
  auto maskOf = [&](int64_t i) { return columns.maskOf(i % columns.vectors); };

  SmallVector<Value> sums(size, b.constant(vector, 0.0));
  // These elements may come from far: they are prefetched.
  if (product.accumulates)
    for (ValueRange place : places)
      memref::PrefetchOp::create(b, product.sum, place, /*isWrite=*/true,
                                 /*localityHint=*/3, /*isDataCache=*/true);
  left.open(firstRow);
  auto addProducts = [&](Value k, SmallVector<Value> sums) {
    SmallVector<Value> right;
    for (int64_t v = 0; v < columns.vectors; ++v)
      right.push_back(loadColumns(b, vector, product.right, {k, columnOf(v)},
                                  columns.maskOf(v)));
    for (int64_t r = 0; r < product.tileRows; ++r) {
      Value splat = b.splat(vector, left.read(r, k));
      for (int64_t v = 0; v < columns.vectors; ++v) {
        Value &sum = sums[r * columns.vectors + v];
        sum = vector::FMAOp::create(b, splat, right[v], sum);
      }
    }
    return sums;
  };
  auto addSeveral = [&](Value first, Value end, int64_t step) {
    sums = b.loop(first, end, step, sums, [&](Value k, ValueRange carried) {
      SmallVector<Value> next(carried);
      for (int64_t s = 0; s < step; ++s)
        next = addProducts(b.add(k, s), std::move(next));
      return next;
    });
  };
  Value whole =
      b.add(depth.first, b.roundDown(b.sub(depth.end, depth.first), kUnroll));
  addSeveral(depth.first, whole, kUnroll);
  addSeveral(whole, depth.end, 1);
  if (product.accumulates)
    for (int64_t i = 0; i < size; ++i)
      sums[i] = arith::AddFOp::create(
          b, sums[i],
          loadColumns(b, vector, product.sum, places[i], maskOf(i)));
  for (int64_t i = size - 1; i >= 0; --i)
    storeColumns(b, sums[i], product.sum, places[i], maskOf(i));
}

void Product::chooseTile(const VectorUnit &unit, int64_t rows,
                         int64_t vectors) {
  int64_t budget = unit.accumulators();
  auto best = std::make_pair(std::numeric_limits<double>::infinity(), 0.0);
  for (int64_t width = 1; width <= std::clamp<int64_t>(vectors, 1, budget);
       ++width)
    for (int64_t height = 1; height * width <= budget; ++height) {
      auto [cycles, loads] = getProductCost(height, width, vectors);
      double computed = double(llvm::alignTo(rows, height));
      auto cost = std::make_pair(cycles * computed, loads * computed);
      if (cost >= best)
        continue;
      best = cost;
      tileRows = height;
      tileVectors = width;
    }
}

void fovea::attn::emitProduct(KernelBuilder &b, VectorType vector,
                              const Product &product) {
  LeftReader left(b, product);
  Value first = b.roundDown(product.rows.first, product.tileRows);
  forColumns(
      b, vector.getNumElements(), product.columns, product.tileVectors,
      [&](const Columns &columns) {
        b.loop(first, product.rows.end, product.tileRows, [&](Value row) {
          if (!product.depthOf)
            return emitTile(b, vector, product, left, row, columns,
                            {b.index(0), product.depth});
          IndexRange depth = product.depthOf(row);
          Value isAny = arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                              depth.first, depth.end);
          b.when(isAny, [&] {
            emitTile(b, vector, product, left, row, columns, depth);
          });
        });
      });
}
