//===- Scalars.cpp - Arithmetic of the interpreter ------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Machine.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

#include <cmath>

using namespace mlir;
using namespace fovea;
using namespace fovea::interpreter;

/// Returns the value of an affine expression at the operands of an op,
/// dimensions first.
static int64_t evaluate(AffineExpr expr, unsigned numDims,
                        llvm::function_ref<int64_t(unsigned)> getOperand) {
  auto get = [&](AffineExpr nested) {
    return evaluate(nested, numDims, getOperand);
  };
  switch (expr.getKind()) {
  case AffineExprKind::Constant:
    return cast<AffineConstantExpr>(expr).getValue();
  case AffineExprKind::DimId:
    return getOperand(cast<AffineDimExpr>(expr).getPosition());
  case AffineExprKind::SymbolId:
    return getOperand(numDims + cast<AffineSymbolExpr>(expr).getPosition());
  default:
    break;
  }
  auto binary = cast<AffineBinaryOpExpr>(expr);
  int64_t left = get(binary.getLHS()), right = get(binary.getRHS());
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return left + right;
  case AffineExprKind::Mul:
    return left * right;
  case AffineExprKind::Mod:
    return llvm::mod(left, right);
  case AffineExprKind::FloorDiv:
    return llvm::divideFloorSigned(left, right);
  default:
    return llvm::divideCeilSigned(left, right);
  }
}

Scalar interpreter::getDetail(Operation *op) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    if (auto value = dyn_cast<FloatAttr>(constant.getValue()))
      return {.f = value.getValueAsDouble()};
    if (auto value = dyn_cast<IntegerAttr>(constant.getValue()))
      return {.i = value.getValue().getSExtValue()};
  }
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    return {.i = static_cast<int64_t>(compare.getPredicate())};
  if (auto compare = dyn_cast<arith::CmpFOp>(op))
    return {.i = static_cast<int64_t>(compare.getPredicate())};
  return {.i = 0};
}

template <double (*compute)(double)>
static Status unary(Fiber &fiber, const Instruction &op) {
  return fiber.setFloat(op, compute(fiber.getFloat(op, 0)));
}

template <double (*compute)(double, double)>
static Status binary(Fiber &fiber, const Instruction &op) {
  return fiber.setFloat(op,
                        compute(fiber.getFloat(op, 0), fiber.getFloat(op, 1)));
}

template <int64_t (*compute)(int64_t, int64_t)>
static Status signedInts(Fiber &fiber, const Instruction &op) {
  return fiber.setInt(
      op, op.format.wrap(compute(fiber.getInt(op, 0), fiber.getInt(op, 1))));
}

template <uint64_t (*compute)(uint64_t, uint64_t)>
static Status unsignedInts(Fiber &fiber, const Instruction &op) {
  uint64_t left = op.format.getUnsigned(fiber.getInt(op, 0));
  uint64_t right = op.format.getUnsigned(fiber.getInt(op, 1));
  return fiber.setInt(op, op.format.wrap(compute(left, right)));
}

/// Divides: the divisor must not be 0, and the quotient not too large.
template <Status (*compute)(Fiber &, const Instruction &)>
static Status division(Fiber &fiber, const Instruction &op) {
  if (fiber.getInt(op, 1) == 0)
    return fiber.setPoison(op, "divides by 0");
  int64_t least = llvm::minIntN(op.format.width);
  if (fiber.getInt(op, 1) == -1 && fiber.getInt(op, 0) == least &&
      op.format.width > 1 && !op.op->getName().getStringRef().ends_with("ui"))
    return fiber.setPoison(op, "divides " + Twine(least) +
                                   " by -1, which overflows");
  return compute(fiber, op);
}

/// Shifts; a shift by the width or more has no value.
template <int64_t (*compute)(int64_t value, uint64_t bits, int64_t by)>
static Status shift(Fiber &fiber, const Instruction &op) {
  int64_t value = fiber.getInt(op, 0);
  uint64_t by = op.format.getUnsigned(fiber.getInt(op, 1));
  if (by >= op.format.width)
    return fiber.setPoison(op, "shifts " + Twine(op.format.width) +
                                   " bits by " + Twine(by));
  return fiber.setInt(
      op, op.format.wrap(compute(value, op.format.getUnsigned(value), by)));
}

static Status compareInts(Fiber &fiber, const Instruction &op) {
  int64_t left = fiber.getInt(op, 0), right = fiber.getInt(op, 1);
  return fiber.setInt(op, -int64_t(arith::applyCmpPredicate(
                              static_cast<arith::CmpIPredicate>(op.detail.i),
                              APInt(64, left, /*isSigned=*/true),
                              APInt(64, right, /*isSigned=*/true))));
}

static Status compareFloats(Fiber &fiber, const Instruction &op) {
  return fiber.setInt(
      op, -int64_t(arith::applyCmpPredicate(
              static_cast<arith::CmpFPredicate>(op.detail.i),
              APFloat(fiber.getFloat(op, 0)), APFloat(fiber.getFloat(op, 1)))));
}

static Status constant(Fiber &fiber, const Instruction &op) {
  if (op.format.kind == Format::None ||
      isa<ShapedType>(op.op->getResult(0).getType())) {
    fiber.emitError(op.op) << "is not a number";
    return Status::Failed;
  }
  fiber.result(op).scalar = op.detail;
  return Status::Next;
}

static Status poison(Fiber &fiber, const Instruction &op) {
  return fiber.setPoison(op, "has no value");
}

static Status select(Fiber &fiber, const Instruction &op) {
  fiber.result(op) = fiber.operand(op, fiber.getInt(op, 0) ? 1 : 2);
  return Status::Next;
}

/// Returns the same number in another type.
static Status resizeSigned(Fiber &fiber, const Instruction &op) {
  return fiber.setInt(op, op.format.wrap(fiber.getInt(op, 0)));
}
static Status resizeUnsigned(Fiber &fiber, const Instruction &op) {
  return fiber.setInt(
      op, op.format.wrap(op.input.getUnsigned(fiber.getInt(op, 0))));
}
static Status resizeFloat(Fiber &fiber, const Instruction &op) {
  return fiber.setFloat(op, fiber.getFloat(op, 0));
}
static Status signedToFloat(Fiber &fiber, const Instruction &op) {
  return fiber.setFloat(op, static_cast<double>(fiber.getInt(op, 0)));
}
static Status unsignedToFloat(Fiber &fiber, const Instruction &op) {
  return fiber.setFloat(
      op, static_cast<double>(op.input.getUnsigned(fiber.getInt(op, 0))));
}

/// Converts a float; one beyond the integer's range has no value.
template <bool isSigned>
static Status floatToInt(Fiber &fiber, const Instruction &op) {
  double value = std::trunc(fiber.getFloat(op, 0));
  int magnitude = static_cast<int>(op.format.width) - isSigned;
  double low = isSigned ? -std::ldexp(1.0, magnitude) : 0;
  if (!(value >= low && value < std::ldexp(1.0, magnitude))) {
    std::string reason;
    llvm::raw_string_ostream(reason)
        << "converts " << fiber.getFloat(op, 0) << ", which '"
        << op.op->getResult(0).getType() << "' does not hold";
    return fiber.setPoison(op, reason);
  }
  return fiber.setInt(op,
                      op.format.wrap(isSigned ? static_cast<int64_t>(value)
                                              : static_cast<uint64_t>(value)));
}

static Status bitcast(Fiber &fiber, const Instruction &op) {
  char bits[8] = {};
  op.input.write(bits, fiber.operand(op, 0).scalar);
  fiber.result(op).scalar = op.format.read(bits);
  return Status::Next;
}

/// Computes a product of twice the width, in two results.
template <bool isSigned>
static Status extendedProduct(Fiber &fiber, const Instruction &op) {
  unsigned width = op.format.width;
  auto extend = [&](size_t index) {
    APInt value(64, fiber.getInt(op, index), /*isSigned=*/true);
    return isSigned ? value.trunc(width).sext(2 * width)
                    : value.trunc(width).zext(2 * width);
  };
  APInt product = extend(0) * extend(1);
  fiber.setInt(op, product.trunc(width).getSExtValue(), 0);
  return fiber.setInt(op, product.lshr(width).trunc(width).getSExtValue(), 1);
}

static Status extendedSum(Fiber &fiber, const Instruction &op) {
  uint64_t left = op.format.getUnsigned(fiber.getInt(op, 0));
  int64_t sum = op.format.wrap(left + fiber.getInt(op, 1));
  fiber.setInt(op, sum, 0);
  return fiber.setInt(op, -int64_t(op.format.getUnsigned(sum) < left), 1);
}

/// `affine.apply`, `affine.min`, `affine.max`.
template <typename Op>
static Status affineOp(Fiber &fiber, const Instruction &op) {
  AffineMap map = cast<Op>(op.op).getAffineMap();
  auto get = [&](AffineExpr expr) {
    return evaluate(expr, map.getNumDims(),
                    [&](unsigned index) { return fiber.getInt(op, index); });
  };
  int64_t value = get(map.getResult(0));
  for (AffineExpr expr : map.getResults().drop_front())
    value = std::is_same_v<Op, affine::AffineMinOp>
                ? std::min(value, get(expr))
                : std::max(value, get(expr));
  return fiber.setInt(op, value);
}

static double getMaximum(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? a + b : std::fmax(a, b);
}
static double getMinimum(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? a + b : std::fmin(a, b);
}

void interpreter::addScalarHandlers(llvm::StringMap<Handler> &handlers) {
  using S = int64_t;
  using U = uint64_t;
  using F = double;
  handlers["arith.constant"] = constant;
  handlers["arith.select"] = select;
  handlers["ub.poison"] = poison;
  handlers["arith.cmpi"] = compareInts;
  handlers["arith.cmpf"] = compareFloats;

  handlers["arith.addi"] = unsignedInts<[](U a, U b) { return a + b; }>;
  handlers["arith.subi"] = unsignedInts<[](U a, U b) { return a - b; }>;
  handlers["arith.muli"] = unsignedInts<[](U a, U b) { return a * b; }>;
  handlers["arith.andi"] = signedInts<[](S a, S b) { return a & b; }>;
  handlers["arith.ori"] = signedInts<[](S a, S b) { return a | b; }>;
  handlers["arith.xori"] = signedInts<[](S a, S b) { return a ^ b; }>;
  handlers["arith.maxsi"] = signedInts<[](S a, S b) { return std::max(a, b); }>;
  handlers["arith.minsi"] = signedInts<[](S a, S b) { return std::min(a, b); }>;
  handlers["arith.maxui"] =
      unsignedInts<[](U a, U b) { return std::max(a, b); }>;
  handlers["arith.minui"] =
      unsignedInts<[](U a, U b) { return std::min(a, b); }>;
  handlers["arith.divsi"] =
      division<signedInts<[](S a, S b) { return a / b; }>>;
  handlers["arith.remsi"] =
      division<signedInts<[](S a, S b) { return a % b; }>>;
  handlers["arith.ceildivsi"] = division<
      signedInts<[](S a, S b) { return llvm::divideCeilSigned(a, b); }>>;
  handlers["arith.floordivsi"] = division<
      signedInts<[](S a, S b) { return llvm::divideFloorSigned(a, b); }>>;
  handlers["arith.divui"] =
      division<unsignedInts<[](U a, U b) { return a / b; }>>;
  handlers["arith.remui"] =
      division<unsignedInts<[](U a, U b) { return a % b; }>>;
  handlers["arith.ceildivui"] =
      division<unsignedInts<[](U a, U b) { return a / b + (a % b != 0); }>>;
  handlers["arith.shli"] = shift<[](S, U bits, S by) { return S(bits << by); }>;
  handlers["arith.shrui"] =
      shift<[](S, U bits, S by) { return S(bits >> by); }>;
  handlers["arith.shrsi"] = shift<[](S value, U, S by) { return value >> by; }>;
  handlers["arith.mului_extended"] = extendedProduct<false>;
  handlers["arith.mulsi_extended"] = extendedProduct<true>;
  handlers["arith.addui_extended"] = extendedSum;

  handlers["arith.addf"] = binary<[](F a, F b) { return a + b; }>;
  handlers["arith.subf"] = binary<[](F a, F b) { return a - b; }>;
  handlers["arith.mulf"] = binary<[](F a, F b) { return a * b; }>;
  handlers["arith.divf"] = binary<[](F a, F b) { return a / b; }>;
  handlers["arith.remf"] = binary<[](F a, F b) { return std::fmod(a, b); }>;
  handlers["arith.negf"] = unary<[](F a) { return -a; }>;
  handlers["arith.maximumf"] = binary<getMaximum>;
  handlers["arith.minimumf"] = binary<getMinimum>;
  handlers["arith.maxnumf"] = binary<[](F a, F b) { return std::fmax(a, b); }>;
  handlers["arith.minnumf"] = binary<[](F a, F b) { return std::fmin(a, b); }>;

  handlers["arith.extsi"] = resizeSigned;
  handlers["arith.trunci"] = resizeSigned;
  handlers["arith.index_cast"] = resizeSigned;
  handlers["arith.extui"] = resizeUnsigned;
  handlers["arith.index_castui"] = resizeUnsigned;
  handlers["arith.extf"] = resizeFloat;
  handlers["arith.truncf"] = resizeFloat;
  handlers["arith.sitofp"] = signedToFloat;
  handlers["arith.uitofp"] = unsignedToFloat;
  handlers["arith.fptosi"] = floatToInt<true>;
  handlers["arith.fptoui"] = floatToInt<false>;
  handlers["arith.bitcast"] = bitcast;

  handlers["affine.apply"] = affineOp<affine::AffineApplyOp>;
  handlers["affine.min"] = affineOp<affine::AffineMinOp>;
  handlers["affine.max"] = affineOp<affine::AffineMaxOp>;
}
