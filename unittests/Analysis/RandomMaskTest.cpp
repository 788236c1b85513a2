//===- RandomMaskTest.cpp - Tiles of random masks, against brute force ----===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MaskTest.h"

#include <random>

using namespace mlir;
using namespace fovea;

namespace {

/// Builds random mask regions of the ops that the analysis knows, and some that
/// it does not.
class RandomMask {
public:
  RandomMask(Region &mask, func::FuncOp function, unsigned seed)
      : random(seed), mask(mask), function(function),
        builder(OpBuilder::atBlockBegin(&mask.front())),
        loc(builder.getUnknownLoc()) {}

  Value condition(int depth) {
    if (depth == 0 || pick(5) == 0)
      return leaf();
    switch (pick(8)) {
    case 0:
    case 1:
      return arith::AndIOp::create(builder, loc, condition(depth - 1),
                                   condition(depth - 1));
    case 2:
    case 3:
      return arith::OrIOp::create(builder, loc, condition(depth - 1),
                                  condition(depth - 1));
    case 4: {
      Value truth =
          arith::ConstantOp::create(builder, loc, builder.getBoolAttr(true));
      return arith::XOrIOp::create(builder, loc, condition(depth - 1), truth);
    }
    case 5:
      return arith::XOrIOp::create(builder, loc, condition(depth - 1),
                                   condition(depth - 1));
    case 6:
      return arith::SelectOp::create(builder, loc, condition(depth - 1),
                                     condition(depth - 1),
                                     condition(depth - 1));
    default:
      return compare(condition(depth - 1), condition(depth - 1), 2);
    }
  }

private:
  unsigned pick(unsigned count) { return random() % count; }

  Type type() {
    Type types[] = {builder.getIndexType(), builder.getIndexType(),
                    builder.getI64Type(), builder.getI32Type(),
                    builder.getIntegerType(8)};
    return types[pick(5)];
  }

  Value compare(Value a, Value b, unsigned predicates = 10) {
    auto predicate = static_cast<arith::CmpIPredicate>(pick(predicates));
    return arith::CmpIOp::create(builder, loc, predicate, a, b);
  }

  Value leaf() {
    if (pick(12) == 0)
      return tensor::ExtractOp::create(
          builder, loc, function.getArgument(4),
          ValueRange{mask.getArgument(0), mask.getArgument(2 + pick(2))});
    Type kind = type();
    return compare(integer(kind, pick(4)), integer(kind, pick(3)));
  }

  Value constant(Type kind) {
    int64_t choices[] = {0,  1,  2,         3,         4,       7,  -1,
                         12, -5, INT64_MAX, INT64_MIN, 1 << 20, 100};
    unsigned width = kind.isIndex() ? 64 : kind.getIntOrFloatBitWidth();
    llvm::APInt value(width, uint64_t(choices[pick(13)]), /*isSigned=*/true,
                      /*implicitTrunc=*/true);
    return arith::ConstantOp::create(builder, loc,
                                     builder.getIntegerAttr(kind, value));
  }

  Value divisor(Type kind) {
    int64_t choices[] = {1, 2, 3, 4, 7, -2};
    Value value = arith::ConstantOp::create(
        builder, loc, builder.getIntegerAttr(kind, choices[pick(6)]));
    if (pick(4) != 0)
      return value;
    Value one = arith::ConstantOp::create(builder, loc,
                                          builder.getIntegerAttr(kind, 1));
    return arith::MaxSIOp::create(builder, loc, cast(captured(), kind), one);
  }

  Value captured() { return function.getArgument(1 + pick(2)); }

  Value cast(Value value, Type kind) {
    Type from = value.getType();
    if (from == kind)
      return value;
    if (from.isIndex() || kind.isIndex()) {
      if (pick(4) == 0)
        return arith::IndexCastUIOp::create(builder, loc, kind, value);
      return arith::IndexCastOp::create(builder, loc, kind, value);
    }
    if (from.getIntOrFloatBitWidth() > kind.getIntOrFloatBitWidth())
      return arith::TruncIOp::create(builder, loc, kind, value);
    if (pick(3) == 0)
      return arith::ExtUIOp::create(builder, loc, kind, value);
    return arith::ExtSIOp::create(builder, loc, kind, value);
  }

  Value atom(Type kind) {
    switch (pick(12)) {
    case 0:
    case 1:
      return constant(kind);
    case 2:
      return cast(captured(), kind);
    case 3: {
      Value id = tensor::ExtractOp::create(
          builder, loc, function.getArgument(3),
          ValueRange{mask.getArgument(0), mask.getArgument(2 + pick(2))});
      return cast(id, kind);
    }
    case 4:
      return cast(mask.getArgument(pick(2)), kind);
    case 5:
      if (!kind.isInteger(1))
        return cast(toInteger(leaf()), kind);
      [[fallthrough]];
    default:
      return cast(mask.getArgument(2 + pick(2)), kind);
    }
  }

  Value toInteger(Value boolean) {
    if (pick(2))
      return arith::ExtUIOp::create(builder, loc, builder.getI32Type(),
                                    boolean);
    return arith::ExtSIOp::create(builder, loc, builder.getI32Type(), boolean);
  }

  Value integer(Type kind, int depth) {
    if (depth == 0)
      return atom(kind);
    auto a = [&] { return integer(kind, depth - 1); };
    switch (pick(25)) {
    case 0:
    case 1:
    case 2:
      return arith::AddIOp::create(builder, loc, a(), a());
    case 3:
    case 4:
    case 5:
      return arith::SubIOp::create(builder, loc, a(), a());
    case 6:
    case 7:
      return arith::MulIOp::create(builder, loc, a(), a());
    case 8:
      return arith::FloorDivSIOp::create(builder, loc, a(), divisor(kind));
    case 9:
      return arith::CeilDivSIOp::create(builder, loc, a(), divisor(kind));
    case 10:
      return arith::DivSIOp::create(builder, loc, a(), divisor(kind));
    case 11:
      return arith::DivUIOp::create(builder, loc, a(), divisor(kind));
    case 12:
      return arith::RemSIOp::create(builder, loc, a(), divisor(kind));
    case 13:
      return arith::RemUIOp::create(builder, loc, a(), divisor(kind));
    case 14:
      return arith::MinSIOp::create(builder, loc, a(), a());
    case 15:
      return arith::MaxSIOp::create(builder, loc, a(), a());
    case 16:
      return arith::MinUIOp::create(builder, loc, a(), a());
    case 17:
      return arith::AndIOp::create(builder, loc, a(), a());
    case 18:
      return arith::OrIOp::create(builder, loc, a(), a());
    case 19:
      return arith::XOrIOp::create(builder, loc, a(), a());
    case 20: {
      Value shift = arith::ConstantOp::create(
          builder, loc, builder.getIntegerAttr(kind, pick(5)));
      if (pick(2))
        return arith::ShRSIOp::create(builder, loc, a(), shift);
      return arith::ShLIOp::create(builder, loc, a(), shift);
    }
    case 21:
      return math::AbsIOp::create(builder, loc, a());
    case 22: {
      Value x = a(), y = a();
      return arith::SelectOp::create(builder, loc, compare(x, y), x, y);
    }
    case 23: {
      if (!kind.isIndex())
        return arith::CeilDivUIOp::create(builder, loc, a(), divisor(kind));
      AffineExpr d0 = builder.getAffineDimExpr(0),
                 d1 = builder.getAffineDimExpr(1);
      AffineExpr exprs[] = {d0 - d1 * 2, (d0 + 3).floorDiv(4) + d1, d0 % 5 - d1,
                            (d0 - d1).ceilDiv(3)};
      // Affine arithmetic does not wrap: small operands only.
      Value operands[] = {mask.getArgument(2 + pick(2)),
                          mask.getArgument(2 + pick(2))};
      if (pick(2))
        return affine::AffineApplyOp::create(
            builder, loc, AffineMap::get(2, 0, exprs[pick(4)]), operands);
      AffineMap map = AffineMap::get(2, 0, {exprs[pick(4)], exprs[pick(4)]},
                                     builder.getContext());
      return affine::AffineMinOp::create(builder, loc, map, operands);
    }
    default:
      return arith::SelectOp::create(builder, loc, leaf(), a(), a());
    }
  }

  std::mt19937 random;
  Region &mask;
  func::FuncOp function;
  OpBuilder builder;
  Location loc;
};

class RandomMasks : public MaskAnalysisTest,
                    public ::testing::WithParamInterface<unsigned> {};

TEST_P(RandomMasks, AgreeWithBruteForce) {
  int64_t tiles = 0, decided = 0;
  for (unsigned round = 0; round < 15; ++round) {
    unsigned seed = GetParam() * 100 + round;
    Region &mask = parse(
        ", %s: index, %t: i64, %ids: tensor<2x20xi16>, %pad: tensor<2x20xi1>",
        "%keep = arith.constant true\nattn.yield %keep : i1\n");
    Value keep = RandomMask(mask, function, seed).condition(3);
    mask.front().getTerminator()->setOperand(0, keep);

    std::mt19937 random(seed);
    auto pick = [&](int64_t low, int64_t high) {
      return std::uniform_int_distribution<int64_t>(low, high)(random);
    };
    MaskInterpreter::Tensor ids{{2, 20}, {}}, pad{{2, 20}, {}};
    int64_t id = pick(-2, 3);
    for (int64_t i = 0; i < 40; ++i) {
      id = pick(0, 3) ? id : pick(-2, 3);
      ids.data.push_back(id);
      pad.data.push_back(i % 20 < 8 || pick(0, 1));
    }
    int64_t scalars[] = {pick(-3, 30), 7, INT64_MAX, INT64_MIN, -1};
    machine = MaskInterpreter();
    machine.set(argument(0), scalars[pick(0, 4)]);
    machine.set(argument(1), scalars[pick(0, 4)]);
    machine.set(argument(2), ids);
    machine.set(argument(3), pad);

    for (Coordinate along : {Coordinate::Key, Coordinate::Row}) {
      MaskUnderTest test(mask, machine, along);
      Sizes sizes{2, 1, pick(1, 20), pick(1, 20), pick(1, 9), pick(1, 9)};
      Visits visits = test.check(sizes);
      if (HasFatalFailure()) {
        ADD_FAILURE() << "seed " << seed;
        return;
      }
      tiles += sizes.batches * llvm::divideCeil(sizes.rows, sizes.rowTile) *
               llvm::divideCeil(sizes.keys, sizes.keyTile);
      decided -= visits.masked;
      // Of one row more can be said.
      MaskUnderTest(mask, machine, along, /*isPoint=*/true).check(sizes);
      if (HasFatalFailure()) {
        ADD_FAILURE() << "seed " << seed;
        return;
      }
    }
  }
  decided += tiles;
  // The analysis must also decide something.
  EXPECT_GT(decided, tiles / 20);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomMasks, ::testing::Range(0u, 20u));

} // namespace
