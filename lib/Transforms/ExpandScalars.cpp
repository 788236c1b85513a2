//===- ExpandScalars.cpp - expand-scalars ---------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/Index/IR/IndexOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

namespace fovea {
#define GEN_PASS_DEF_EXPANDSCALARS
#include "fovea/Transforms/Passes.h.inc"
} // namespace fovea

using namespace mlir;

namespace {
/// Builds the ops that replace one op, in front of it.
class ScalarExpander {
public:
  explicit ScalarExpander(Operation *op) : b(op->getLoc(), op), op(op) {}

  /// Returns the values that replace the op's results; none where the op stays.
  SmallVector<Value, 2> expand() {
    if (auto cast = dyn_cast<arith::IndexCastOp>(op))
      return narrow(cast);
    if (auto cast = dyn_cast<arith::IndexCastUIOp>(op))
      return narrow(cast);
    if (auto extension = dyn_cast<arith::ExtFOp>(op))
      return extendSmall(extension);
    if (isa<index::IndexDialect>(op->getDialect()))
      return expandIndex();
    bool isKnown = isa<math::MathDialect>(op->getDialect()) ||
                   isa<arith::AddUIExtendedOp, arith::MulSIExtendedOp,
                       arith::MulUIExtendedOp>(op);
    if (!isKnown || isa<ShapedType>(op->getOperand(0).getType()))
      return {};
    return isa<math::MathDialect>(op->getDialect()) ? expandMath()
                                                    : expandExtended();
  }

private:
  //===--------------------------------------------------------------------===//
  // index
  //===--------------------------------------------------------------------===//

  /// Expands a cast that loses bits, by way of 64 bits.
  template <typename Cast>
  SmallVector<Value, 2> narrow(Cast cast) {
    Type from = cast.getIn().getType(), to = cast.getType();
    auto width = [](Type type) -> unsigned {
      Type element = getElementTypeOrSelf(type);
      return element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
    };
    if (width(from) <= width(to))
      return {};
    bool isFromIndex = getElementTypeOrSelf(from).isIndex();
    Type middle = b.getI64Type();
    if (auto shaped = dyn_cast<ShapedType>(from))
      middle = shaped.clone(middle);
    if (isFromIndex)
      return {arith::TruncIOp::create(b, to,
                                      Cast::create(b, middle, cast.getIn()))};
    return {
        Cast::create(b, to, arith::TruncIOp::create(b, middle, cast.getIn()))};
  }

  template <typename Op>
  SmallVector<Value, 2> binary() {
    return {Op::create(b, op->getOperand(0), op->getOperand(1))};
  }

  template <typename Cast>
  SmallVector<Value, 2> castIndex() {
    auto made = Cast::create(b, op->getResult(0).getType(), op->getOperand(0));
    SmallVector<Value, 2> narrowed = narrow(made);
    if (narrowed.empty())
      return {made};
    made->erase();
    return narrowed;
  }

  SmallVector<Value, 2> expandIndex() {
    using Results = SmallVector<Value, 2>;
    return llvm::TypeSwitch<Operation *, Results>(op)
        .Case([&](index::AddOp) { return binary<arith::AddIOp>(); })
        .Case([&](index::SubOp) { return binary<arith::SubIOp>(); })
        .Case([&](index::MulOp) { return binary<arith::MulIOp>(); })
        .Case([&](index::DivSOp) { return binary<arith::DivSIOp>(); })
        .Case([&](index::DivUOp) { return binary<arith::DivUIOp>(); })
        .Case([&](index::CeilDivSOp) { return binary<arith::CeilDivSIOp>(); })
        .Case([&](index::CeilDivUOp) { return binary<arith::CeilDivUIOp>(); })
        .Case([&](index::FloorDivSOp) { return binary<arith::FloorDivSIOp>(); })
        .Case([&](index::RemSOp) { return binary<arith::RemSIOp>(); })
        .Case([&](index::RemUOp) { return binary<arith::RemUIOp>(); })
        .Case([&](index::MaxSOp) { return binary<arith::MaxSIOp>(); })
        .Case([&](index::MaxUOp) { return binary<arith::MaxUIOp>(); })
        .Case([&](index::MinSOp) { return binary<arith::MinSIOp>(); })
        .Case([&](index::MinUOp) { return binary<arith::MinUIOp>(); })
        .Case([&](index::ShlOp) { return binary<arith::ShLIOp>(); })
        .Case([&](index::ShrSOp) { return binary<arith::ShRSIOp>(); })
        .Case([&](index::ShrUOp) { return binary<arith::ShRUIOp>(); })
        .Case([&](index::AndOp) { return binary<arith::AndIOp>(); })
        .Case([&](index::OrOp) { return binary<arith::OrIOp>(); })
        .Case([&](index::XOrOp) { return binary<arith::XOrIOp>(); })
        .Case([&](index::CastSOp) { return castIndex<arith::IndexCastOp>(); })
        .Case([&](index::CastUOp) { return castIndex<arith::IndexCastUIOp>(); })
        .Case([&](index::CmpOp cmp) -> Results {
          // The predicates have the same names in both dialects.
          auto predicate = arith::symbolizeCmpIPredicate(
              index::stringifyIndexCmpPredicate(cmp.getPred()));
          return {
              arith::CmpIOp::create(b, *predicate, cmp.getLhs(), cmp.getRhs())};
        })
        .Case([&](index::SizeOfOp) -> Results {
          return {arith::ConstantIndexOp::create(b, 64)};
        })
        .Case<index::ConstantOp, index::BoolConstantOp>(
            [&](auto constant) -> Results {
              return {arith::ConstantOp::create(
                  b, cast<TypedAttr>(constant.getValueAttr()))};
            })
        .Default([](Operation *) { return Results(); });
  }

  //===--------------------------------------------------------------------===//
  // Floats of 8 bits
  //===--------------------------------------------------------------------===//

  /// Writes the value of an `f8E4M3FN` as a multiple of the smallest one, 2^-9:
  /// all are integers below 2^18, and exact in every other type.
  SmallVector<Value, 2> extendSmall(arith::ExtFOp extension) {
    Type from = extension.getIn().getType(), to = extension.getType();
    if (!isa<Float8E4M3FNType>(getElementTypeOrSelf(from)))
      return {};
    auto like = [&](Type element) -> Type {
      if (auto shaped = dyn_cast<ShapedType>(from))
        return shaped.clone(element);
      return element;
    };
    // The bits are those of an integer where the graph has read them as such.
    auto cast = extension.getIn().getDefiningOp<arith::BitcastOp>();
    Type byte = like(b.getI8Type());
    Value bits = cast && cast.getIn().getType() == byte
                     ? cast.getIn()
                     : arith::BitcastOp::create(b, byte, extension.getIn());
    Value source = bits;
    auto splat = [&](TypedAttr value) -> Value {
      if (auto shaped = dyn_cast<ShapedType>(like(value.getType())))
        return constantLike(shaped, value, source);
      return arith::ConstantOp::create(b, value);
    };
    auto number = [&](int64_t value) {
      return splat(b.getI32IntegerAttr(value));
    };
    auto real = [&](float value) { return splat(b.getF32FloatAttr(value)); };
    using Predicate = arith::CmpIPredicate;
    bits = arith::ExtUIOp::create(b, like(b.getI32Type()), bits);
    Value exponent = arith::AndIOp::create(
        b, arith::ShRUIOp::create(b, bits, number(3)), number(15));
    Value mantissa = arith::AndIOp::create(b, bits, number(7));
    Value isNormal =
        arith::CmpIOp::create(b, Predicate::ne, exponent, number(0));
    Value leading = arith::OrIOp::create(b, mantissa, number(8));
    Value shift = arith::SubIOp::create(
        b, arith::MaxSIOp::create(b, exponent, number(1)), number(1));
    Value count =
        arith::ShLIOp::create(b, select(isNormal, leading, mantissa), shift);
    Value value = arith::MulFOp::create(
        b, arith::SIToFPOp::create(b, like(b.getF32Type()), count),
        real(0x1p-9F));
    Value isNegative = arith::CmpIOp::create(
        b, Predicate::ne, arith::AndIOp::create(b, bits, number(128)),
        number(0));
    value = select(isNegative, arith::NegFOp::create(b, value), value);
    Value isNaN = arith::CmpIOp::create(
        b, Predicate::eq, arith::AndIOp::create(b, bits, number(127)),
        number(127));
    value = select(isNaN, real(std::numeric_limits<float>::quiet_NaN()), value);
    unsigned width = getElementTypeOrSelf(to).getIntOrFloatBitWidth();
    if (width < 32)
      value = arith::TruncFOp::create(b, to, value);
    else if (width > 32)
      value = arith::ExtFOp::create(b, to, value);
    return {value};
  }

  /// Returns a constant of a shape, which may be that of `source`, with one
  /// value.
  Value constantLike(ShapedType type, TypedAttr value, Value source) {
    if (type.hasStaticShape())
      return arith::ConstantOp::create(b, DenseElementsAttr::get(type, value));
    SmallVector<Value> sizes;
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      if (type.isDynamicDim(dim))
        sizes.push_back(tensor::DimOp::create(b, source, dim));
    return tensor::SplatOp::create(b, arith::ConstantOp::create(b, value), type,
                                   sizes);
  }

  //===--------------------------------------------------------------------===//
  // Results of twice the width
  //===--------------------------------------------------------------------===//

  /// Expands into ops with one result each, the only ops that fusion looks
  /// into.
  SmallVector<Value, 2> expandExtended() {
    Value x = op->getOperand(0), y = op->getOperand(1);
    Type type = x.getType();
    if (isa<arith::AddUIExtendedOp>(op)) {
      Value sum = arith::AddIOp::create(b, x, y);
      return {sum, arith::CmpIOp::create(b, arith::CmpIPredicate::ult, sum, x)};
    }
    bool isSigned = isa<arith::MulSIExtendedOp>(op);
    unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
    if (width > 32 && width != 64)
      return {};
    if (width == 64)
      return {arith::MulIOp::create(b, x, y), multiplyHigh(x, y, isSigned)};
    Type wide = b.getIntegerType(2 * width);
    auto extend = [&](Value value) -> Value {
      if (isSigned)
        return arith::ExtSIOp::create(b, wide, value);
      return arith::ExtUIOp::create(b, wide, value);
    };
    Value left = extend(x), right = extend(y);
    Value product = arith::MulIOp::create(b, left, right);
    Value shift = arith::ConstantOp::create(b, b.getIntegerAttr(wide, width));
    Value high = arith::ShRUIOp::create(b, product, shift);
    return {arith::TruncIOp::create(b, type, product),
            arith::TruncIOp::create(b, type, high)};
  }

  /// Returns the upper 64 bits of a product, computed from its four parts.
  Value multiplyHigh(Value x, Value y, bool isSigned) {
    Value mask = integer((int64_t(1) << 32) - 1), half = integer(32);
    auto low = [&](Value v) { return arith::AndIOp::create(b, v, mask); };
    auto high = [&](Value v) { return arith::ShRUIOp::create(b, v, half); };
    auto add = [&](Value u, Value v) -> Value {
      return arith::AddIOp::create(b, u, v);
    };
    auto mul = [&](Value u, Value v) -> Value {
      return arith::MulIOp::create(b, u, v);
    };
    Value cross = mul(low(x), high(y)), other = mul(high(x), low(y));
    Value middle = add(add(high(mul(low(x), low(y))), low(cross)), low(other));
    Value result = add(add(mul(high(x), high(y)), high(middle)),
                       add(high(cross), high(other)));
    if (!isSigned)
      return result;
    // A negative factor, read as unsigned, is larger by 2^64.
    auto correct = [&](Value factor, Value by) {
      Value zero = integer(0);
      Value isNegative =
          arith::CmpIOp::create(b, arith::CmpIPredicate::slt, factor, zero);
      result = arith::SubIOp::create(b, result, select(isNegative, by, zero));
    };
    correct(x, y);
    correct(y, x);
    return result;
  }

  //===--------------------------------------------------------------------===//
  // math
  //===--------------------------------------------------------------------===//

  Value constant(const APFloat &value) {
    Type type = op->getOperand(0).getType();
    return arith::ConstantOp::create(b, FloatAttr::get(type, value));
  }
  Value compare(arith::CmpFPredicate predicate, Value left, Value right) {
    return arith::CmpFOp::create(b, predicate, left, right);
  }
  Value compare(arith::CmpIPredicate predicate, Value left, int64_t right) {
    return arith::CmpIOp::create(b, predicate, left, integer(right));
  }
  Value integer(int64_t value) {
    return arith::ConstantOp::create(
        b, b.getIntegerAttr(op->getResult(0).getType(), value));
  }
  Value select(Value condition, Value yes, Value no) {
    return arith::SelectOp::create(b, condition, yes, no);
  }

  SmallVector<Value, 2> expandMath() {
    using Results = SmallVector<Value, 2>;
    using Predicate = arith::CmpFPredicate;
    Value x = op->getOperand(0);
    auto magnitude = [&]() -> Value { return math::AbsFOp::create(b, x); };
    auto infinity = [&] {
      return constant(
          APFloat::getInf(cast<FloatType>(x.getType()).getFloatSemantics()));
    };
    return llvm::TypeSwitch<Operation *, Results>(op)
        .Case([&](math::IsNaNOp) -> Results {
          return {compare(Predicate::UNO, x, x)};
        })
        .Case([&](math::IsInfOp) -> Results {
          return {compare(Predicate::OEQ, magnitude(), infinity())};
        })
        .Case([&](math::IsFiniteOp) -> Results {
          return {compare(Predicate::OLT, magnitude(), infinity())};
        })
        .Case([&](math::IsNormalOp) -> Results {
          Value least = constant(APFloat::getSmallestNormalized(
              cast<FloatType>(x.getType()).getFloatSemantics()));
          Value size = magnitude();
          return {
              arith::AndIOp::create(b, compare(Predicate::OGE, size, least),
                                    compare(Predicate::OLT, size, infinity()))};
        })
        .Case([&](math::ClampFOp clamp) -> Results {
          Value low = select(compare(Predicate::OLT, x, clamp.getMin()),
                             clamp.getMin(), x);
          return {select(compare(Predicate::OGT, low, clamp.getMax()),
                         clamp.getMax(), low)};
        })
        .Case([&](math::SincosOp) -> Results {
          return {math::SinOp::create(b, x), math::CosOp::create(b, x)};
        })
        .Case([&](math::IPowIOp power) -> Results {
          return {raise(x, power.getRhs())};
        })
        .Default([](Operation *) { return Results(); });
  }

  /// Returns `base` to the power of `exponent`, both signed and of one type.
  Value raise(Value base, Value exponent) {
    unsigned width =
        base.getType().isIndex() ? 64 : base.getType().getIntOrFloatBitWidth();
    APInt known;
    bool isConstant = matchPattern(exponent, m_ConstantInt(&known));
    Value power = integer(1);
    if (!isConstant || known.isNonNegative()) {
      unsigned bits = isConstant ? known.getActiveBits() : width - 1;
      Value square = base;
      for (unsigned bit = 0; bit < bits; ++bit) {
        if (bit)
          square = arith::MulIOp::create(b, square, square);
        if (isConstant && !known[bit])
          continue;
        Value next = arith::MulIOp::create(b, power, square);
        if (!isConstant)
          next = select(isSet(exponent, bit), next, power);
        power = next;
      }
      if (isConstant)
        return power;
    }
    // The power is an inverse, which is an integer for 1 and -1 only.
    using Predicate = arith::CmpIPredicate;
    Value sign = select(isSet(exponent, 0), integer(-1), integer(1));
    Value inverse = select(compare(Predicate::eq, base, -1), sign, integer(0));
    inverse = select(compare(Predicate::eq, base, 1), integer(1), inverse);
    return select(compare(Predicate::slt, exponent, 0), inverse, power);
  }

  Value isSet(Value number, unsigned bit) {
    Value mask = integer(int64_t(uint64_t(1) << bit));
    return compare(arith::CmpIPredicate::ne,
                   arith::AndIOp::create(b, number, mask), 0);
  }

  ImplicitLocOpBuilder b;
  Operation *op;
};

struct ExpandScalars final : fovea::impl::ExpandScalarsBase<ExpandScalars> {
  void runOnOperation() override {
    getOperation()->walk([&](Operation *op) {
      if (!op->getDialect() || op->getNumResults() == 0)
        return;
      SmallVector<Value, 2> results = ScalarExpander(op).expand();
      if (results.empty())
        return;
      Operation *source = op->getNumOperands() == 1
                              ? op->getOperand(0).getDefiningOp()
                              : nullptr;
      op->replaceAllUsesWith(results);
      op->erase();
      // The float whose bits were all that was needed.
      if (isa_and_nonnull<arith::BitcastOp>(source) && source->use_empty())
        source->erase();
      ++numExpanded;
    });
  }
};
} // namespace
