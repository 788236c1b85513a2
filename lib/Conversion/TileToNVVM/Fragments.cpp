//===- Fragments.cpp - Work on fragments as work on registers -------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Comparisons.h"
#include "CoordinateFloats.h"
#include "PackPairs.h"
#include "Patterns.h"

#include "fovea/Conversion/Utils/FastMath.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace fovea::tile;

namespace {

struct ConvertFill final : OpConversionPattern<FillOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(FillOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    LayoutAttr layout = op.getResult().getType().getLayout();
    SmallVector<Value> registers(layout.getNumRegisters(), op.getValue());
    rewriter.replaceOpWithMultiple(op, {registers});
    return success();
  }
};

/// Canonicalisation turns ifs that only choose a value into selects.
struct ConvertSelect final : OpConversionPattern<arith::SelectOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(arith::SelectOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    SmallVector<Value> results;
    for (auto [a, b] :
         llvm::zip_equal(adaptor.getTrueValue(), adaptor.getFalseValue()))
      results.push_back(arith::SelectOp::create(rewriter, op.getLoc(),
                                                op.getCondition(), a, b));
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Map
//===----------------------------------------------------------------------===//

struct ConvertMap final : OpConversionPattern<MapOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(MapOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    LayoutAttr layout = op.getResult().getType().getLayout();
    // For each operand, the registers of each element of the result.
    SmallVector<SmallVector<Value>> operands;
    auto addOperands = [&](ValueRange fragments, ArrayRef<ValueRange> registers,
                           int64_t dropped) {
      if (fragments.empty())
        return;
      SmallVector<int64_t> places =
          dropped < 0 ? llvm::to_vector(llvm::seq(layout.getNumRegisters()))
                      : layout.getReducedRegisters(dropped);
      LayoutAttr expected = dropped < 0 ? layout : layout.dropDim(dropped);
      for (auto [fragment, values] : llvm::zip_equal(fragments, registers)) {
        SmallVector<int64_t> permutation = *expected.getPermutationFrom(
            cast<FragmentType>(fragment.getType()).getLayout());
        SmallVector<Value> &operand = operands.emplace_back();
        for (int64_t place : places)
          operand.push_back(values[permutation[place]]);
      }
    };
    addOperands(op.getInputs(), adaptor.getInputs(), -1);
    addOperands(op.getRows(), adaptor.getRows(), 1);
    addOperands(op.getColumns(), adaptor.getColumns(), 0);

    Block &body = op.getBody().front();
    ArrayRef<BlockArgument> arguments = body.getArguments();
    auto coordinates = arguments.drop_front(operands.size());
    SmallVector<Value> bases(coordinates.size());
    for (auto [dim, coordinate] : llvm::enumerate(coordinates))
      if (!coordinate.use_empty())
        bases[dim] = arith::IndexCastUIOp::create(
            rewriter, op.getLoc(), rewriter.getIndexType(),
            getThreadCoordinate(rewriter, op, layout, dim));

    CoordinateComparisons comparisons(rewriter, op, coordinates);
    CoordinateFloats floats(rewriter, op, coordinates);
    SmallVector<Value> results;
    for (int64_t index = 0, e = layout.getNumRegisters(); index < e; ++index) {
      IRMapping mapping;
      for (auto [argument, operand] : llvm::zip(arguments, operands))
        mapping.map(argument, operand[index]);
      SmallVector<int64_t> offset = layout.getRegisterOffset(index);
      for (auto [dim, coordinate] : llvm::enumerate(coordinates))
        if (bases[dim])
          mapping.map(coordinate, addConstant(rewriter, op.getLoc(), bases[dim],
                                              offset[dim]));
      for (Operation &inner : body.without_terminator()) {
        Value result = comparisons.create(rewriter, inner, offset, mapping);
        if (!result)
          result = floats.create(rewriter, inner, offset);
        if (!result)
          result = floats.createProductSum(rewriter, inner, offset, mapping);
        if (result)
          mapping.map(inner.getResult(0), result);
        else
          rewriter.clone(inner, mapping);
      }
      results.push_back(mapping.lookupOrDefault(
          cast<YieldOp>(body.getTerminator()).getValue()));
    }
    // What only reads a tile's memory is there to be early: ptxas would let some
    // loads sink to where they are used, behind waits, to save registers.
    if (operands.empty() && coordinates.size() == 2 && !isMemoryEffectFree(op))
      NVVM::SyncWarpOp::create(rewriter, op.getLoc(),
                               getI32(rewriter, op.getLoc(), -1));
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }

private:
  static Value addConstant(OpBuilder &builder, Location loc, Value base,
                           int64_t offset) {
    if (!offset)
      return base;
    return arith::AddIOp::create(
        builder, loc, base,
        arith::ConstantIndexOp::create(builder, loc, offset));
  }
};

//===----------------------------------------------------------------------===//
// Reduce
//===----------------------------------------------------------------------===//

struct ConvertReduce final : OpConversionPattern<ReduceOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ReduceOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    LayoutAttr layout = op.getInput().getType().getLayout();
    if (op.getResult().getType().getRank() == 2)
      return reduceInPart(op, adaptor, rewriter);
    int64_t dim = op.getDim();
    LayoutAttr reduced = layout.dropDim(dim);
    FailureOr<SmallVector<int64_t>> distances =
        getDistances(op, layout.getShape()[dim]);
    if (failed(distances))
      return failure();

    // Registers in ascending order, then threads.
    SmallVector<Value> partial(reduced.getNumRegisters());
    for (auto [value, target] :
         llvm::zip_equal(adaptor.getInput(), layout.getReducedRegisters(dim)))
      partial[target] = partial[target]
                            ? combine(rewriter, op, partial[target], value)
                            : Value(value);
    for (Value &value : partial)
      value = combineThreads(rewriter, op, value, *distances);

    SmallVector<int64_t> permutation =
        *op.getResult().getType().getLayout().getPermutationFrom(reduced);
    SmallVector<Value> results;
    for (auto [init, source] : llvm::zip_equal(adaptor.getInit(), permutation))
      results.push_back(combine(rewriter, op, init, partial[source]));
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }

private:
  /// Returns how far apart threads are that have elements along the dimension,
  /// less than `reach` apart, for a butterfly.
  static FailureOr<SmallVector<int64_t>> getDistances(ReduceOp op,
                                                      int64_t reach) {
    int64_t dim = op.getDim(), weight = 1;
    LayoutAttr layout = op.getInput().getType().getLayout();
    SmallVector<int64_t> distances;
    for (const Digit &digit : layout.getThreads()) {
      if (digit.dim == dim && digit.stride < reach) {
        if (!llvm::isPowerOf2_64(digit.size) || !llvm::isPowerOf2_64(weight))
          return op.emitOpError("expected the threads along dimension ")
                 << dim << " to differ in bits of their number, got " << layout;
        for (int64_t distance = 1; distance < digit.size; distance *= 2)
          distances.push_back(weight * distance);
      }
      weight *= digit.size;
    }
    return distances;
  }

  static Value combineThreads(OpBuilder &builder, ReduceOp op, Value value,
                              ArrayRef<int64_t> distances) {
    for (int64_t distance : distances)
      value = combine(builder, op, value,
                      exchange(builder, op.getLoc(), value, distance));
    return value;
  }

  /// Combines elements in part: those of each register of the result, and of
  /// the threads that have as many neighbours.
  static LogicalResult reduceInPart(ReduceOp op, OneToNOpAdaptor adaptor,
                                    ConversionPatternRewriter &rewriter) {
    SmallVector<int64_t> targets = *op.getCombinedRegisters();
    SmallVector<Value> results(adaptor.getInit().size());
    for (auto [value, target] : llvm::zip_equal(adaptor.getInput(), targets))
      results[target] = results[target]
                            ? combine(rewriter, op, results[target], value)
                            : Value(value);
    SmallVector<int64_t> distances;
    if (op.getNeighbors()) {
      int64_t dim = op.getDim();
      FailureOr<SmallVector<int64_t>> found =
          getDistances(op, op.getInput().getType().getShape()[dim] /
                               op.getResult().getType().getShape()[dim]);
      if (failed(found))
        return failure();
      distances = std::move(*found);
    }
    for (auto [init, result] : llvm::zip_equal(adaptor.getInit(), results))
      result = combine(rewriter, op, init,
                       combineThreads(rewriter, op, result, distances));
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }

  static Value combine(OpBuilder &builder, ReduceOp op, Value a, Value b) {
    Location loc = op.getLoc();
    bool isFloat = isa<FloatType>(a.getType());
    if (op.getKind() == Reduction::Add)
      return isFloat ? arith::AddFOp::create(builder, loc, a, b).getResult()
                     : arith::AddIOp::create(builder, loc, a, b).getResult();
    return isFloat ? LLVM::MaxNumOp::create(builder, loc, a, b).getResult()
                   : arith::MaxSIOp::create(builder, loc, a, b).getResult();
  }

  /// Returns the value of the lane whose number differs in the bit `distance`.
  static Value exchange(OpBuilder &builder, Location loc, Value value,
                        int64_t distance) {
    return shuffle(builder, loc, value, NVVM::ShflKind::bfly,
                   getI32(builder, loc, distance));
  }
};

/// Combines the elements of a thread, then those of the warp.
struct ConvertAny final : OpConversionPattern<AnyOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(AnyOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value any;
    for (Value element : adaptor.getInput())
      any = any ? arith::OrIOp::create(rewriter, loc, any, element).getResult()
                : element;
    rewriter.replaceOpWithNewOp<NVVM::VoteSyncOp>(op, op.getType(),
                                                  getI32(rewriter, loc, -1),
                                                  any, NVVM::VoteSyncKind::any);
    return success();
  }
};

/// Compares the elements of a thread, then those of the warp.
struct ConvertExtremes final : OpConversionPattern<ExtremesOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ExtremesOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ValueRange elements = adaptor.getInput();
    rewriter.replaceOp(
        op, {reduce<arith::MinSIOp>(rewriter, op.getLeast(), elements,
                                    NVVM::ReduxKind::MIN),
             reduce<arith::MaxSIOp>(rewriter, op.getGreatest(), elements,
                                    NVVM::ReduxKind::MAX)});
    return success();
  }

private:
  /// Returns what replaces `result`; LLVM would keep what threads do together
  /// even if nothing read it.
  template <typename Extreme>
  static Value reduce(OpBuilder &builder, Value result, ValueRange elements,
                      NVVM::ReduxKind kind) {
    Location loc = result.getLoc();
    if (result.use_empty())
      return getI32(builder, loc, 0);
    Value own = elements.front();
    for (Value element : elements.drop_front())
      own = Extreme::create(builder, loc, own, element);
    return NVVM::ReduxOp::create(builder, loc, own.getType(), own, kind,
                                 getI32(builder, loc, -1));
  }
};

struct ConvertFirstOnly final : OpConversionPattern<FirstOnlyOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(FirstOnlyOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOp(op, adaptor.getCondition());
    return success();
  }
};

} // namespace

/// Calls one of the machine's approximate functions of an f32.
static Value callApproximate(OpBuilder &builder, Location loc, StringRef name,
                             Value operand) {
  return LLVM::CallIntrinsicOp::create(
             builder, loc, operand.getType(),
             builder.getStringAttr("llvm.nvvm." + name.str() + ".approx.ftz.f"),
             ValueRange{operand})
      .getResult(0);
}

/// Computes tanh(x) as 1 - 2 / (e^2x + 1). The error is two roundings of 1: as
/// exact as a score that is added to others, but not relative to a result near
/// zero.
static Value createTanh(OpBuilder &builder, Location loc, Value x) {
  Type type = x.getType();
  auto constant = [&](double value) -> Value {
    return arith::ConstantOp::create(builder, loc,
                                     builder.getFloatAttr(type, value));
  };
  Value exponent =
      arith::MulFOp::create(builder, loc, x, constant(2 * llvm::numbers::log2e),
                            arith::FastMathFlags::reassoc);
  Value sum = arith::AddFOp::create(
      builder, loc, callApproximate(builder, loc, "ex2", exponent),
      constant(1));
  return math::FmaOp::create(builder, loc,
                             callApproximate(builder, loc, "rcp", sum),
                             constant(-2), constant(1));
}

/// Computes tanh(x) by the machine's instruction (PTX ISA, tanh), with a
/// largest relative error of 2^-11.
static Value createApproximateTanh(OpBuilder &builder, Location loc, Value x) {
  return LLVM::InlineAsmOp::create(
             builder, loc, x.getType(), ValueRange{x},
             "tanh.approx.f32 $0, $1;", "=f,f", /*has_side_effects=*/false,
             /*is_align_stack=*/false, LLVM::TailCallKind::None,
             LLVM::AsmDialectAttr{},
             /*operand_attrs=*/ArrayAttr{})
      .getRes();
}

/// Returns true if `op` is `fma(x, 1, y)` or `fma(x, -1, y)`, of f32 or f64.
static bool isUnitProductSum(Operation *op) {
  auto fma = dyn_cast<math::FmaOp>(op);
  llvm::APFloat factor(0.0);
  return fma && (fma.getType().isF32() || fma.getType().isF64()) &&
         matchPattern(fma.getB(), m_ConstantFloat(&factor)) &&
         llvm::abs(factor).isExactlyValue(1.0);
}

/// Creates a sum of the operands into which nothing is contracted, neither by
/// LLVM, which makes a sum of the multiply-add, nor by ptxas.
static Value createPlainSum(OpBuilder &builder, math::FmaOp op) {
  llvm::APFloat factor(0.0);
  matchPattern(op.getB(), m_ConstantFloat(&factor));
  Type type = op.getType();
  std::string text = factor.isNegative() ? "sub.rn" : "add.rn";
  text += type.isF32() ? ".ftz.f32 $0, $1, $2;" : ".f64 $0, $1, $2;";
  return LLVM::InlineAsmOp::create(
             builder, op.getLoc(), type, ValueRange{op.getC(), op.getA()}, text,
             type.isF32() ? "=f,f,f" : "=d,d,d", /*has_side_effects=*/false,
             /*is_align_stack=*/false, LLVM::TailCallKind::None,
             LLVM::AsmDialectAttr{}, /*operand_attrs=*/ArrayAttr{})
      .getRes();
}

/// Computes x / y by the machine's approximation. With scaled operands it also
/// holds for large y, for which it would be 0: nothing is lost where x is 1.
static Value createQuotient(OpBuilder &builder, Location loc, Value x,
                            Value y) {
  if (matchPattern(x, m_OneFloat()))
    return callApproximate(builder, loc, "rcp", y);
  return LLVM::CallIntrinsicOp::create(
             builder, loc, x.getType(),
             builder.getStringAttr("llvm.nvvm.div.full.ftz"), ValueRange{x, y})
      .getResult(0);
}

/// Replaces functions of an exact map that may be approximate.
static void approximate(IRRewriter &rewriter, MapOp map) {
  map.getBody().walk([&](Operation *op) {
    auto flags = dyn_cast<arith::ArithFastMathInterface>(op);
    if (!isa<math::ExpOp, math::Exp2Op, math::TanhOp, arith::DivFOp>(op) ||
        !bitEnumContainsAll(flags.getFastMathFlagsAttr().getValue(),
                            arith::FastMathFlags::afn))
      return;
    auto type = cast<FloatType>(op->getResult(0).getType());
    if (type.getWidth() > 32)
      return;
    Location loc = op->getLoc();
    rewriter.setInsertionPoint(op);
    Type single = rewriter.getF32Type();
    SmallVector<Value> operands =
        llvm::map_to_vector(op->getOperands(), [&](Value operand) -> Value {
          if (type == single)
            return operand;
          FloatAttr constant;
          if (matchPattern(operand, m_Constant(&constant)))
            return arith::ConstantOp::create(
                rewriter, loc,
                rewriter.getFloatAttr(single, constant.getValueAsDouble()));
          return arith::ExtFOp::create(rewriter, loc, single, operand);
        });
    if (isa<math::ExpOp>(op)) {
      Value log2e = arith::ConstantOp::create(
          rewriter, loc, rewriter.getF32FloatAttr(llvm::numbers::log2e));
      operands[0] = arith::MulFOp::create(rewriter, loc, operands[0], log2e);
    }
    Value result = isa<arith::DivFOp>(op)
                       ? createQuotient(rewriter, loc, operands[0], operands[1])
                   : isa<math::TanhOp>(op)
                       ? createApproximateTanh(rewriter, loc, operands[0])
                       : callApproximate(rewriter, loc, "ex2", operands[0]);
    if (type != single)
      result = arith::TruncFOp::create(rewriter, loc, type, result);
    rewriter.replaceOp(op, result);
  });
}

void fovea::tile::prepareMaps(Operation *root) {
  using arith::FastMathFlags;
  root->walk([](MapOp map) {
    IRRewriter rewriter(map.getContext());
    if (map.getExact())
      return approximate(rewriter, map);
    map.getBody().walk([&](Operation *op) {
      Location loc = op->getLoc();
      rewriter.setInsertionPoint(op);
      bool isSingle = op->getNumResults() && op->getResult(0).getType().isF32();
      if (isa<math::Exp2Op>(op) && isSingle)
        rewriter.replaceOp(
            op, callApproximate(rewriter, loc, "ex2", op->getOperand(0)));
      else if (auto tanh = dyn_cast<math::TanhOp>(op); tanh && isSingle)
        rewriter.replaceOp(
            op, bitEnumContainsAll(tanh.getFastmath(), FastMathFlags::afn)
                    ? createApproximateTanh(rewriter, loc, tanh.getOperand())
                    : createTanh(rewriter, loc, tanh.getOperand()));
      else if (isUnitProductSum(op))
        rewriter.replaceOp(op, createPlainSum(rewriter, cast<math::FmaOp>(op)));
      // It becomes a quotient.
      else if (isa<math::ErfOp>(op) && isSingle)
        addFastMath(op, FastMathFlags::afn);
      // Its expansion uses comparisons and selects.
      else if (auto max = dyn_cast<arith::MaxNumFOp>(op))
        rewriter.replaceOpWithNewOp<LLVM::MaxNumOp>(op, max.getLhs(),
                                                    max.getRhs());
      else if (isa<arith::AddFOp, arith::SubFOp>(op))
        addFastMath(op, FastMathFlags::contract);
      // Multiplies constant factors into one.
      else if (isa<arith::MulFOp>(op))
        addFastMath(op, FastMathFlags::contract | FastMathFlags::reassoc);
      else if (isa<arith::DivFOp>(op) && isSingle)
        addFastMath(op, FastMathFlags::arcp | FastMathFlags::afn |
                            FastMathFlags::reassoc);
    });
  });
}

void fovea::tile::populateFragmentPatterns(const TileTypeConverter &converter,
                                           RewritePatternSet &patterns) {
  patterns.add<ConvertFill, ConvertSelect, ConvertMap, ConvertReduce,
               ConvertAny, ConvertExtremes, ConvertFirstOnly>(
      converter, patterns.getContext());
}
