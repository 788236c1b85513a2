//===- Diagonals.cpp - Sums along diagonals in a warp ---------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In 8 x 8 elements of an accumulator, lane 4r + c has those of row r and
// columns 2c and 2c + 1, in two registers:
//
//   columns  0  1   2  3   4  5   6  7
//   row 0    lane 0 lane 1 lane 2 lane 3
//   row 1    lane 4 lane 5 ...
//   row 2    lane 8 lane 9 ...
//
// Registers whose rows and columns have the same difference are added first.
// Then the values of odd columns are sent to even columns: from lane 4(r + 1) +
// c to lane 4r + c; those of row 0 to row 1, one lane on, and from the last
// lane to the first, in the register whose distance is 8 less.
//
// In the register that is left, lane 9 is on the diagonal of lane 0, as lanes
// 18 and 27 are: a step along the diagonal is two rows and one lane of a row.
// Chains of up to four lanes begin in the first column, at distances 0 to 7
// from lane 0, and in rows 0 and 1, at -6 to -1. Two exchanges sum each chain
// where it begins. The distances -6 to -1 are 2 to 7 of the register whose
// distance is 8 less: another exchange adds them there, to the sums of the
// first column. So each diagonal of a warp has one sum.
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <map>

using namespace mlir;
using namespace fovea::tile;

namespace {
/// Sums of a register's values over lanes of a warp.
class LaneSums {
public:
  LaneSums(OpBuilder &builder, Operation *op);

  /// Adds to `even` a diagonal's values in odd columns: those of `odd`, whose
  /// distance is 1 less, and of `next`, whose distance is 7 more, and which may
  /// be null.
  Value addOdd(Value even, Value odd, Value next);
  /// Returns `value` summed along chains, in the lanes where these begin.
  Value alongChains(Value value) {
    for (const Exchange &exchange : links)
      value = add(value, value, exchange);
    return value;
  }
  /// Adds to the first column of `value` the chains of `next`, whose distance
  /// is 8 more, that begin elsewhere.
  Value addNext(Value value, Value next) { return add(value, next, fromNext); }

  /// Returns `value` in the lanes of the first column, in all lanes where
  /// chains begin, or in the last lane of row 0; and 0 in other lanes.
  Value keepFirstColumn(Value value) { return keep(inFirstColumn, value); }
  Value keepBegins(Value value) { return keep(begins, value); }
  Value keepLastOfRow(Value value) { return keep(isLastOfRow, value); }

private:
  /// The lane that is read, and the condition that it is read.
  struct Exchange {
    Value lane, condition;
  };

  Value constant(int64_t value) { return getI32(builder, loc, value); }
  Value zero(Value like) {
    return arith::ConstantOp::create(builder, loc,
                                     builder.getFloatAttr(like.getType(), 0.0));
  }
  template <typename Op>
  Value make(Value a, Value b) {
    return Op::create(builder, loc, a, b);
  }
  Value less(Value a, int64_t b) {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, a,
                                 constant(b));
  }
  Value equal(Value a, int64_t b) {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, a,
                                 constant(b));
  }
  Value select(Value condition, Value a, Value b) {
    return arith::SelectOp::create(builder, loc, condition, a, b);
  }
  Value keep(Value condition, Value value) {
    return select(condition, value, zero(value));
  }
  Value add(Value value, Value other, const Exchange &exchange) {
    Value read =
        shuffle(builder, loc, other, NVVM::ShflKind::idx, exchange.lane);
    return make<arith::AddFOp>(value, keep(exchange.condition, read));
  }

  OpBuilder &builder;
  Location loc;
  Value inFirstColumn, begins, isLastOfRow;
  std::array<Exchange, 2> links;
  Exchange fromRowBelow, fromRowZero, fromNext;
};

struct ConvertSumDiagonals final : OpConversionPattern<SumDiagonalsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(SumDiagonalsOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override;
};
} // namespace

LaneSums::LaneSums(OpBuilder &builder, Operation *op)
    : builder(builder), loc(op->getLoc()) {
  Value lane = getLane(builder, op);
  Value row = make<arith::DivUIOp>(lane, constant(4));
  Value column = make<arith::RemUIOp>(lane, constant(4));
  inFirstColumn = less(column, 1);
  begins = make<arith::OrIOp>(inFirstColumn, less(row, 2));
  isLastOfRow = equal(lane, 3);
  fromRowBelow = {make<arith::AddIOp>(lane, constant(4)), less(row, 7)};
  fromRowZero = {select(inFirstColumn, constant(3),
                        make<arith::SubIOp>(column, constant(1))),
                 equal(row, 1)};
  for (auto [step, exchange] : llvm::enumerate(links)) {
    int64_t distance = 1 << step;
    exchange = {make<arith::AddIOp>(lane, constant(9 * distance)),
                make<arith::AndIOp>(less(row, 8 - 2 * distance),
                                    less(column, 4 - distance))};
  }
  // Row r of the first column gets the distance r - 8, from row 0 or 1, by the
  // parity of r.
  Value parity = make<arith::RemUIOp>(row, constant(2));
  Value columns = make<arith::DivUIOp>(
      make<arith::SubIOp>(make<arith::AddIOp>(parity, constant(8)), row),
      constant(2));
  Value exists = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::uge,
                                       row, constant(2));
  fromNext = {
      make<arith::AddIOp>(make<arith::MulIOp>(parity, constant(4)), columns),
      make<arith::AndIOp>(inFirstColumn, exists)};
}

Value LaneSums::addOdd(Value even, Value odd, Value next) {
  even = add(even, odd, fromRowBelow);
  Value last = next ? next : zero(odd);
  return add(even, select(isLastOfRow, last, odd), fromRowZero);
}

/// Returns true if the lanes of a warp hold 8 x 8 elements as those of an
/// accumulator do.
static bool isAccumulator(LayoutAttr layout) {
  ArrayRef<Digit> threads = layout.getThreads();
  return threads.size() >= 2 && threads[0] == Digit{4, 2, 1} &&
         threads[1] == Digit{8, 1, 0} &&
         llvm::is_contained(layout.getRegisters(), Digit{2, 1, 1});
}

LogicalResult ConvertSumDiagonals::matchAndRewrite(
    SumDiagonalsOp op, OneToNOpAdaptor adaptor,
    ConversionPatternRewriter &rewriter) const {
  Location loc = op.getLoc();
  LayoutAttr layout = op.getInput().getType().getLayout();
  if (!isAccumulator(layout))
    return op.emitOpError("expected the layout of an accumulator, got ")
           << layout;
  // For each distance of registers, the first of these and their sum: of even
  // columns and of odd ones.
  using Sums = std::map<int64_t, std::pair<size_t, Value>>;
  Sums evenSums, oddSums;
  for (auto [index, value] : llvm::enumerate(adaptor.getInput())) {
    SmallVector<int64_t> offset = layout.getRegisterOffset(index);
    bool isOdd = offset[1] % 2;
    auto [entry, isFirst] =
        (isOdd ? oddSums : evenSums)
            .try_emplace(offset[0] - offset[1] + isOdd, index, value);
    Value &sum = entry->second.second;
    if (!isFirst)
      sum = arith::AddFOp::create(rewriter, loc, sum, value);
  }
  auto lookUp = [](const Sums &sums, int64_t distance) {
    auto found = sums.find(distance);
    return found == sums.end() ? Value() : found->second.second;
  };
  LaneSums lanes(rewriter, op);
  for (auto &[distance, entry] : evenSums)
    entry.second =
        lanes.alongChains(lanes.addOdd(entry.second, lookUp(oddSums, distance),
                                       lookUp(oddSums, distance + 8)));
  // The order is ascending, so that the next sum has only its own chains.
  for (auto &[distance, entry] : evenSums)
    if (Value next = lookUp(evenSums, distance + 8))
      entry.second = lanes.addNext(entry.second, next);
  Value zero = arith::ConstantOp::create(
      rewriter, loc,
      rewriter.getZeroAttr(op.getInput().getType().getElementType()));
  SmallVector<Value> results(adaptor.getInput().size(), zero);
  for (auto &[distance, entry] : evenSums) {
    // Otherwise the register whose distance is 8 less has them.
    bool isLast = !evenSums.count(distance - 8);
    results[entry.first] = isLast ? lanes.keepBegins(entry.second)
                                  : lanes.keepFirstColumn(entry.second);
    auto [number, odd] = oddSums.at(distance);
    if (isLast)
      results[number] = lanes.keepLastOfRow(odd);
  }
  rewriter.replaceOpWithMultiple(op, {results});
  return success();
}

void fovea::tile::populateDiagonalPatterns(const TileTypeConverter &converter,
                                           RewritePatternSet &patterns) {
  patterns.add<ConvertSumDiagonals>(converter, patterns.getContext());
}
