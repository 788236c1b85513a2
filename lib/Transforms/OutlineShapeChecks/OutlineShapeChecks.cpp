//===- OutlineShapeChecks.cpp - outline-shape-checks ----------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The demands are collected on a copy of the function, whose sizes are then
// traced back to the function's operands by the usual patterns. Demands that
// are then index arithmetic on the operands' sizes become the body of a
// function of its own; demands that still need data are dropped.
//
//===----------------------------------------------------------------------===//

#include "Collector.h"
#include "fovea/Support/OutlinedChecks.h"
#include "fovea/Transforms/Passes.h"

#include "fovea/Dialect/Attn/IR/Attn.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace fovea {
#define GEN_PASS_DEF_OUTLINESHAPECHECKS
#include "fovea/Transforms/Passes.h.inc"

/// Returns true if `value` is arithmetic on sizes and numbers that the function
/// is given.
static bool isComputable(Value value, DenseMap<Value, bool> &known) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return !isa<ShapedType>(value.getType());
  auto found = known.find(value);
  if (found != known.end())
    return found->second;
  Operation *op = value.getDefiningOp();
  bool result = false;
  if (auto dim = dyn_cast<tensor::DimOp>(op))
    result = isa<BlockArgument>(dim.getSource()) &&
             isComputable(dim.getIndex(), known);
  else if (isa<arith::ArithDialect, affine::AffineDialect>(op->getDialect()) &&
           op->getNumRegions() == 0)
    result = llvm::all_of(op->getOperands(), [&](Value operand) {
      return isComputable(operand, known);
    });
  known[value] = result;
  return result;
}

/// Returns true if a check holds, false if it fails; none if that is not known
/// yet.
static std::optional<bool> fold(Relation relation, Value left, Value right) {
  if (left == right && relation != Relation::Multiple)
    return true;
  APInt a, b;
  if (!matchPattern(left, m_ConstantInt(&a)) ||
      !matchPattern(right, m_ConstantInt(&b)))
    return std::nullopt;
  switch (relation) {
  case Relation::Equal:
  case Relation::Fits:
    return a == b;
  case Relation::Multiple:
    return b.isZero() ? a.isZero() : a.srem(b).isZero();
  case Relation::AtLeast:
    return a.sge(b);
  case Relation::AtMost:
    return a.sle(b);
  }
  llvm_unreachable("unknown relation");
}

/// Returns the place of an op, in words.
static std::string describe(Operation *op) {
  std::string text = "'" + op->getName().getStringRef().str() + "'";
  if (auto place = op->getLoc()->findInstanceOf<FileLineColLoc>())
    text += " at line " + std::to_string(place.getLine());
  return text;
}

/// Returns the name of a side: a size that turned out to be that of an operand
/// of the function is named after it.
static std::string describe(const CheckSide &side, Value value) {
  auto dim = value.getDefiningOp<tensor::DimOp>();
  auto argument = dim ? dyn_cast<BlockArgument>(dim.getSource()) : nullptr;
  if (!argument || !dim.getConstantIndex() ||
      !StringRef(side.text).starts_with("dimension"))
    return side.text;
  return "dimension " + std::to_string(*dim.getConstantIndex()) + " of $" +
         std::to_string(argument.getArgNumber());
}

/// Returns the message to the user; see the pass's description.
static std::string makeMessage(const ShapeCheck &check, StringRef op,
                               Value left, Value right) {
  if (check.relation == Relation::Fits)
    return check.left.text + " does not fit 64 bits, for " + op.str();
  std::string text = describe(check.left, left) + " is {0}, expected ";
  switch (check.relation) {
  case Relation::Equal:
  case Relation::Fits:
    break;
  case Relation::Multiple:
    text += "a multiple of ";
    break;
  case Relation::AtLeast:
    text += "at least ";
    break;
  case Relation::AtMost:
    text += "at most ";
    break;
  }
  return text + "{1}, which is " + describe(check.right, right) + ", for " +
         op.str();
}

static Value emitCondition(OpBuilder &builder, Location loc, Relation relation,
                           Value left, Value right) {
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  auto compare = [&](arith::CmpIPredicate predicate, Value a, Value b) {
    return arith::CmpIOp::create(builder, loc, predicate, a, b);
  };
  switch (relation) {
  case Relation::Equal:
  case Relation::Fits:
    return compare(arith::CmpIPredicate::eq, left, right);
  case Relation::AtLeast:
    return compare(arith::CmpIPredicate::sge, left, right);
  case Relation::AtMost:
    return compare(arith::CmpIPredicate::sle, left, right);
  case Relation::Multiple: {
    // The only multiple of 0 is 0.
    Value one = arith::ConstantIndexOp::create(builder, loc, 1);
    Value none = compare(arith::CmpIPredicate::eq, right, zero);
    Value divisor = arith::SelectOp::create(builder, loc, none, one, right);
    Value rest = arith::SelectOp::create(
        builder, loc, none, left,
        arith::RemUIOp::create(builder, loc, left, divisor));
    return compare(arith::CmpIPredicate::eq, rest, zero);
  }
  }
  llvm_unreachable("unknown relation");
}

namespace {
struct OutlineShapeChecks final
    : impl::OutlineShapeChecksBase<OutlineShapeChecks> {
  LogicalResult initialize(MLIRContext *context) override {
    RewritePatternSet set(context);
    memref::populateResolveRankedShapedTypeResultDimsPatterns(set);
    memref::populateResolveShapedTypeResultDimsPatterns(set);
    tensor::DimOp::getCanonicalizationPatterns(set, context);
    affine::AffineApplyOp::getCanonicalizationPatterns(set, context);
    patterns = std::move(set);
    return success();
  }

  void runOnOperation() override {
    for (auto function : llvm::to_vector(getOperation().getOps<func::FuncOp>()))
      if (function.isPublic() && !function.isExternal() &&
          function.getBody().hasOneBlock())
        if (failed(outline(function)))
          return signalPassFailure();
  }

private:
  LogicalResult outline(func::FuncOp function);

  FrozenRewritePatternSet patterns;
};
} // namespace

/// Rejects tensors of static size whose bytes do not fit 64 bits.
static LogicalResult checkStaticSizes(func::FuncOp function) {
  WalkResult result = function.walk([](Operation *op) {
    for (OpResult value : op->getResults()) {
      auto type = dyn_cast<RankedTensorType>(value.getType());
      int64_t bytes = 8;
      bool overflows =
          type && type.hasStaticShape() &&
          llvm::any_of(type.getShape(), [&](int64_t size) {
            return llvm::MulOverflow(bytes, std::max<int64_t>(size, 1), bytes);
          });
      if (overflows) {
        op->emitOpError() << "has a result " << value.getResultNumber()
                          << " whose size does not fit 64 bits: " << type;
        return WalkResult::interrupt();
      }
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

LogicalResult OutlineShapeChecks::outline(func::FuncOp function) {
  if (failed(checkStaticSizes(function)))
    return failure();
  OwningOpRef<func::FuncOp> copy(function.clone());
  std::vector<ShapeCheck> checks = collectShapeChecks(*copy);
  if (checks.empty())
    return success();
  // The ops are erased together with their results' uses.
  SmallVector<std::string> ops;
  SmallVector<Location> locations;
  SmallVector<Value> sides;
  for (const ShapeCheck &check : checks) {
    ops.push_back(describe(check.op));
    locations.push_back(check.op->getLoc());
    sides.push_back(check.left.value);
    sides.push_back(check.right.value);
  }
  Operation *terminator = copy->front().getTerminator();
  terminator->setOperands(sides);
  GreedyRewriteConfig config;
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  (void)applyPatternsGreedily(*copy, patterns, config);

  OpBuilder builder(&getContext());
  SmallVector<size_t> kept;
  DenseMap<Value, bool> known;
  terminator = copy->front().getTerminator();
  for (size_t index = 0; index < checks.size(); ++index) {
    Value left = terminator->getOperand(2 * index);
    Value right = terminator->getOperand(2 * index + 1);
    std::optional<bool> holds = fold(checks[index].relation, left, right);
    if (holds && !*holds) {
      APInt a, b;
      matchPattern(left, m_ConstantInt(&a));
      matchPattern(right, m_ConstantInt(&b));
      std::string message = makeMessage(checks[index], ops[index], left, right);
      auto replace = [&](StringRef pattern, const Twine &text) {
        for (size_t at; (at = message.find(pattern)) != std::string::npos;)
          message.replace(at, pattern.size(), text.str());
      };
      replace("{0}", Twine(a.getSExtValue()));
      replace("{1}", Twine(b.getSExtValue()));
      replace("$", "operand ");
      return emitError(locations[index])
             << "in @" << function.getName() << ": " << message;
    }
    if (!holds && isComputable(left, known) && isComputable(right, known))
      kept.push_back(index);
  }
  if (kept.empty())
    return success();

  Location loc = function.getLoc();
  builder.setInsertionPointAfter(function);
  Type index = builder.getIndexType();
  auto checker =
      func::FuncOp::create(builder, loc, getShapeCheckName(function.getName()),
                           builder.getFunctionType(function.getArgumentTypes(),
                                                   {index, index, index}));
  SmallVector<Attribute> messages;
  for (size_t number : kept)
    messages.push_back(builder.getStringAttr(makeMessage(
        checks[number], ops[number], terminator->getOperand(2 * number),
        terminator->getOperand(2 * number + 1))));
  checker->setAttr(machine::kMessagesAttrName, builder.getArrayAttr(messages));
  Block *body = checker.addEntryBlock();
  builder.setInsertionPointToStart(body);
  IRMapping mapping;
  mapping.map(copy->getArguments(), body->getArguments());
  SmallVector<Value> result = {arith::ConstantIndexOp::create(builder, loc, -1),
                               arith::ConstantIndexOp::create(builder, loc, 0),
                               arith::ConstantIndexOp::create(builder, loc, 0)};
  // Checks are emitted from the last to the first, so that the first one that
  // fails wins.
  for (size_t position = kept.size(); position-- > 0;) {
    size_t number = kept[position];
    Value left =
        cloneSlice(builder, terminator->getOperand(2 * number), mapping);
    Value right =
        cloneSlice(builder, terminator->getOperand(2 * number + 1), mapping);
    Value holds =
        emitCondition(builder, loc, checks[number].relation, left, right);
    Value failed[] = {arith::ConstantIndexOp::create(builder, loc, position),
                      left, right};
    for (auto [value, instead] : llvm::zip_equal(result, failed))
      value = arith::SelectOp::create(builder, loc, holds, value, instead);
  }
  func::ReturnOp::create(builder, loc, result);
  numChecks += kept.size();
  return success();
}
} // namespace fovea
