//===- ErrorBounds.cpp - Rounding of a function's results -----------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ErrorBounds.h"

#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Driver/Check.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/SetVector.h"

using namespace fovea;

static double getTypeBound(mlir::Type type) {
  std::optional<DType> element = getDType(mlir::getElementTypeOrSelf(type));
  return element && isFloat(*element) ? getErrorBound(*element) : 0;
}

/// Returns true if `op` sums products of its two inputs. Maps of heads may
/// divide, which those of upstream's contractions do not.
static bool sumsProducts(mlir::Operation *op) {
  auto sum = mlir::dyn_cast<mlir::linalg::LinalgOp>(op);
  if (!sum || sum.getNumReductionLoops() == 0 || sum.getNumDpsInputs() != 2)
    return false;
  auto widened = [](mlir::Value value) {
    auto wide = value.getDefiningOp<mlir::arith::ExtFOp>();
    return wide ? wide.getIn() : value;
  };
  mlir::Block *body = sum.getBlock();
  return llvm::any_of(
      body->getOps<mlir::arith::MulFOp>(), [&](mlir::arith::MulFOp product) {
        mlir::Value left = widened(product.getLhs()),
                    right = widened(product.getRhs());
        return left != right &&
               llvm::all_of(llvm::ArrayRef{left, right}, [&](mlir::Value x) {
                 return x == body->getArgument(0) || x == body->getArgument(1);
               });
      });
}

/// Returns the error of weights, which are rounded to the type of the values
/// that they multiply, for instructions on pairs of 16 bits.
static double getWeightRounding(mlir::Operation *op) {
  if (auto attention = mlir::dyn_cast<attn::AttentionOp>(op))
    return getTypeBound(attention.getValue().getType());
  if (!mlir::isa<attn::ValuesOp>(op) && !sumsProducts(op))
    return 0;
  double weights = getTypeBound(op->getOperand(0).getType());
  double values = getTypeBound(op->getOperand(1).getType());
  return weights == values ? 0 : std::max(weights, values);
}

/// Returns the error that `op` itself may have, without the ops in it.
static double getRounding(mlir::Operation *op) {
  double bound = getWeightRounding(op);
  for (mlir::Type type : op->getResultTypes())
    bound = std::max(bound, getTypeBound(type));
  if (mlir::isa<attn::AttnDialect>(op->getDialect())) {
    // The accumulation type is f32 unless an operand is f64.
    bool isWide = false, isFloatingPoint = bound > 0;
    for (mlir::Type type : op->getOperandTypes())
      isWide |= mlir::getElementTypeOrSelf(type).isF64();
    if (isFloatingPoint && !isWide)
      bound = std::max(bound, getErrorBound(DType::F32));
    return bound;
  }
  if (!mlir::isa<mlir::arith::ArithDialect, mlir::math::MathDialect>(
          op->getDialect()))
    return getWeightRounding(op);
  // Constants have the same values in the reference; the others round nothing.
  if (mlir::isa<mlir::arith::ConstantOp, mlir::arith::SelectOp,
                mlir::arith::ExtFOp, mlir::arith::NegFOp,
                mlir::arith::MaximumFOp, mlir::arith::MinimumFOp,
                mlir::arith::MaxNumFOp, mlir::arith::MinNumFOp,
                mlir::math::AbsFOp, mlir::math::CopySignOp>(op))
    return 0;
  return bound;
}

/// Returns the ops of a block that `value` is computed by, or all ops of the
/// function if it has several blocks.
static llvm::SetVector<mlir::Operation *> getSlice(mlir::func::FuncOp function,
                                                   mlir::Value value) {
  llvm::SetVector<mlir::Operation *> slice;
  if (!function.getBody().hasOneBlock()) {
    for (mlir::Operation &op : function.getBody().getOps())
      slice.insert(&op);
    return slice;
  }
  mlir::Block &block = function.getBody().front();
  auto add = [&](mlir::Value used) {
    mlir::Operation *owner = used.getDefiningOp();
    if (!owner)
      owner = used.getParentBlock()->getParentOp();
    if (owner == function)
      return;
    if (mlir::Operation *op = block.findAncestorOpInBlock(*owner))
      slice.insert(op);
  };
  add(value);
  for (size_t next = 0; next < slice.size(); ++next)
    slice[next]->walk([&](mlir::Operation *inner) {
      for (mlir::Value operand : inner->getOperands())
        add(operand);
    });
  return slice;
}

llvm::SmallVector<double>
fovea::deriveErrorBounds(mlir::func::FuncOp function) {
  llvm::SmallVector<double> bounds;
  for (mlir::Value result :
       function.getBody().back().getTerminator()->getOperands()) {
    double bound = getTypeBound(result.getType());
    if (bound == 0) {
      // Integers are exact.
      bounds.push_back(0);
      continue;
    }
    for (mlir::Operation *op : getSlice(function, result))
      op->walk([&](mlir::Operation *inner) {
        bound = std::max(bound, getRounding(inner));
      });
    bounds.push_back(bound);
  }
  return bounds;
}

static bool isProduct(mlir::Operation *op) {
  auto linalgOp = mlir::dyn_cast<mlir::linalg::LinalgOp>(op);
  return mlir::isa<attn::ScoresOp, attn::ValuesOp, attn::AttentionOp>(op) ||
         (linalgOp && mlir::linalg::isaContractionOpInterface(linalgOp));
}

llvm::SmallVector<bool> fovea::findSummedOperands(mlir::func::FuncOp function) {
  llvm::SmallVector<bool> summed(function.getNumArguments(), false);
  function.walk([&](mlir::Operation *op) {
    if (!isProduct(op))
      return;
    for (mlir::Value operand : op->getOperands()) {
      llvm::SetVector<mlir::Operation *> slice = getSlice(function, operand);
      if (llvm::any_of(slice, isProduct))
        continue;
      auto mark = [&](mlir::Value value) {
        auto argument = mlir::dyn_cast<mlir::BlockArgument>(value);
        if (argument && argument.getOwner()->getParentOp() == function)
          summed[argument.getArgNumber()] = true;
      };
      mark(operand);
      for (mlir::Operation *inner : slice)
        llvm::for_each(inner->getOperands(), mark);
    }
  });
  return summed;
}

void fovea::widenOperands(mlir::func::FuncOp function) {
  mlir::OpBuilder builder =
      mlir::OpBuilder::atBlockBegin(&function.getBody().front());
  llvm::SmallVector<mlir::Type> types;
  for (mlir::BlockArgument argument : function.getArguments()) {
    mlir::Type type = argument.getType(), wide = builder.getF64Type();
    std::optional<DType> element = getDType(type);
    bool isNarrow = element && isFloat(*element) && *element != DType::F64;
    if (isNarrow) {
      if (auto tensor = mlir::dyn_cast<mlir::RankedTensorType>(type))
        wide = tensor.clone(wide);
      argument.setType(wide);
      auto rounded = mlir::arith::TruncFOp::create(builder, argument.getLoc(),
                                                   type, argument);
      argument.replaceAllUsesExcept(rounded, rounded);
    }
    types.push_back(argument.getType());
  }
  function.setType(
      builder.getFunctionType(types, function.getFunctionType().getResults()));
}
