//===- FormBoxes.cpp - Runs among the rows of loads -----------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Tile/Transforms/Passes.h"

#include "fovea/Dialect/Tile/IR/TensorMaps.h"
#include "fovea/Support/DebugLog.h"
#include "fovea/Support/Multiples.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Remarks.h"

#define DEBUG_TYPE "tile-form-boxes"

namespace fovea::tile {
#define GEN_PASS_DEF_TILEFORMBOXES
#include "fovea/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace fovea::tile

using namespace mlir;
using namespace fovea;
using namespace fovea::tile;

/// The values that an index has at the rows of a run.
enum class InRun {
  Same,    ///< The same at all rows.
  Steps,   ///< One more at each row.
  Unknown, ///< Anything.
};

namespace {
/// Follows the number of a row through the region of a load, for runs of a
/// given length.
class RunAnalysis {
public:
  RunAnalysis(Region &region, int64_t length)
      : region(region), length(length), multiples(length, region) {}

  /// Returns the dimension along which the place of a row steps within runs,
  /// while all other indices stay the same; -1: there is none.
  int64_t findDimension();

private:
  InRun classify(Value value);
  InRun classifyQuotient(Value dividend, const APInt &divisor);
  InRun classifyRemainder(Value dividend, const APInt &divisor);
  InRun classifyExpr(AffineExpr expr, AffineMap map, ValueRange operands);
  InRun add(InRun a, InRun b) {
    if (a == InRun::Same)
      return b;
    return b == InRun::Same ? a : InRun::Unknown;
  }

  Region &region;
  int64_t length;
  /// Multiples of the length are values at the first row of a run, or at all
  /// rows if they are the same there.
  Multiples multiples;
  DenseMap<Value, InRun> known;
};

struct FormBoxes : fovea::tile::impl::TileFormBoxesBase<FormBoxes> {
  void runOnOperation() override {
    getOperation()->walk([&](LoadOp load) {
      if (load.getRuns().value_or(0) == 1)
        formRuns(load);
    });
  }

private:
  void formRuns(LoadOp load);
};
} // namespace

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

/// A run that begins at a multiple of its length, which divides the divisor,
/// does not cross a multiple of the divisor.
InRun RunAnalysis::classifyQuotient(Value dividend, const APInt &divisor) {
  bool isWithin = divisor.isStrictlyPositive() && multiples.contains(divisor) &&
                  multiples.contains(dividend);
  return classify(dividend) == InRun::Steps && isWithin ? InRun::Same
                                                        : InRun::Unknown;
}

InRun RunAnalysis::classifyRemainder(Value dividend, const APInt &divisor) {
  return classifyQuotient(dividend, divisor) == InRun::Same ? InRun::Steps
                                                            : InRun::Unknown;
}

InRun RunAnalysis::classifyExpr(AffineExpr expr, AffineMap map,
                                ValueRange operands) {
  if (isa<AffineConstantExpr>(expr))
    return InRun::Same;
  if (Value operand = getOperand(expr, map, operands))
    return classify(operand);
  auto binary = cast<AffineBinaryOpExpr>(expr);
  InRun left = classifyExpr(binary.getLHS(), map, operands),
        right = classifyExpr(binary.getRHS(), map, operands);
  if (left == InRun::Same && right == InRun::Same)
    return InRun::Same;
  if (expr.getKind() == AffineExprKind::Add)
    return add(left, right);
  auto divisor = dyn_cast<AffineConstantExpr>(binary.getRHS());
  bool isWithin = divisor && divisor.getValue() > 0 &&
                  divisor.getValue() % length == 0 && left == InRun::Steps &&
                  multiples.contains(binary.getLHS(), map, operands);
  if (!isWithin)
    return InRun::Unknown;
  if (expr.getKind() == AffineExprKind::FloorDiv)
    return InRun::Same;
  return expr.getKind() == AffineExprKind::Mod ? InRun::Steps : InRun::Unknown;
}

InRun RunAnalysis::classify(Value value) {
  if (!region.isAncestor(value.getParentRegion()))
    return InRun::Same;
  if (isa<BlockArgument>(value))
    return value == region.getArgument(0) ? InRun::Steps : InRun::Unknown;
  if (auto entry = known.find(value); entry != known.end())
    return entry->second;
  Operation *op = value.getDefiningOp();
  auto compute = [&] {
    // Memory does not change while a load runs.
    bool isSame = op->getNumRegions() == 0 &&
                  llvm::all_of(op->getOperands(), [&](Value operand) {
                    return classify(operand) == InRun::Same;
                  });
    if (isSame)
      return InRun::Same;
    if (isa<arith::AddIOp>(op))
      return add(classify(op->getOperand(0)), classify(op->getOperand(1)));
    if (isa<arith::SubIOp>(op))
      return classify(op->getOperand(1)) == InRun::Same
                 ? classify(op->getOperand(0))
                 : InRun::Unknown;
    // A run that begins at a multiple of its length does not wrap either.
    if (isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::TruncIOp,
            arith::ExtSIOp, arith::ExtUIOp>(op))
      return multiples.contains(op->getOperand(0)) ? classify(op->getOperand(0))
                                                   : InRun::Unknown;
    if (auto apply = dyn_cast<affine::AffineApplyOp>(op))
      return classifyExpr(apply.getAffineMap().getResult(0),
                          apply.getAffineMap(), apply.getOperands());
    APInt divisor;
    if (op->getNumOperands() != 2 ||
        !matchPattern(op->getOperand(1), m_ConstantInt(&divisor)))
      return InRun::Unknown;
    if (isa<arith::DivUIOp, arith::FloorDivSIOp>(op))
      return classifyQuotient(op->getOperand(0), divisor);
    if (isa<arith::RemUIOp>(op))
      return classifyRemainder(op->getOperand(0), divisor);
    unsigned width = divisor.getBitWidth();
    if (isa<arith::ShRUIOp, arith::ShRSIOp>(op) && divisor.ult(width - 1))
      return classifyQuotient(
          op->getOperand(0),
          APInt::getOneBitSet(width, divisor.getZExtValue()));
    if (isa<arith::AndIOp>(op) && (divisor + 1).isPowerOf2())
      return classifyRemainder(op->getOperand(0), divisor + 1);
    return InRun::Unknown;
  };
  return known[value] = compute();
}

int64_t RunAnalysis::findDimension() {
  int64_t found = -1;
  auto yield = cast<YieldOp>(region.front().getTerminator());
  for (auto [dim, index] : llvm::enumerate(yield.getValues())) {
    InRun inRun = classify(index);
    if (inRun == InRun::Same)
      continue;
    if (inRun == InRun::Unknown || found >= 0)
      return -1;
    found = dim;
  }
  return found;
}

void FormBoxes::formRuns(LoadOp load) {
  int64_t rows =
      cast<SharedType>(load.getResult().getType()).getShape().front();
  for (int64_t length =
           std::min(rows, kLargestBox) / kSwizzledRows * kSwizzledRows;
       length > 0; length -= kSwizzledRows) {
    if (rows % length)
      continue;
    int64_t dim = RunAnalysis(load.getPlace(), length).findDimension();
    if (dim < 0)
      continue;
    LDBG() << "load at " << load.getLoc() << ": runs of " << length
           << " rows along dimension " << dim;
    load.setRuns(length);
    load.setDims({dim, load.getDims().back()});
    ++numRuns;
    return;
  }
  remark::missed(load.getLoc(),
                 remark::RemarkOpts::name("rows-apart").category(DEBUG_TYPE))
      << "rows are copied one by one: no 8 rows are known to follow one "
         "another in memory";
}
