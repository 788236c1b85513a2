//===- VectorPlan.cpp - Choice of the loop to cut into vectors ------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Analysis/VectorPlan.h"

#include "fovea/Support/DebugLog.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/TypeSwitch.h"

#define DEBUG_TYPE "convert-linalg-to-vector"

using namespace mlir;
using namespace fovea;

Access fovea::classifyAccess(MemRefType type, AffineMap map, unsigned dim) {
  if (!map.isFunctionOfDim(dim))
    return Access::Uniform;
  for (AffineExpr expr : map.getResults().drop_back())
    if (expr.isFunctionOfDim(dim))
      return Access::Gather;
  AffineExpr step = getAffineDimExpr(dim, map.getContext());
  AffineExpr rest = simplifyAffineExpr(map.getResults().back() - step,
                                       map.getNumDims(), map.getNumSymbols());
  if (rest.isFunctionOfDim(dim))
    return Access::Gather;
  int64_t offset;
  SmallVector<int64_t> strides;
  if (failed(type.getStridesAndOffset(strides, offset)) || strides.back() != 1)
    return Access::Gather;
  return Access::Contiguous;
}

bool fovea::hasVectorMemory(Type type) {
  return isa<FloatType, IndexType>(type) ||
         (isa<IntegerType>(type) && type.getIntOrFloatBitWidth() % 8 == 0);
}

std::optional<vector::CombiningKind>
fovea::getCombiningKind(Operation *combiner) {
  using vector::CombiningKind;
  return llvm::TypeSwitch<Operation *, std::optional<CombiningKind>>(combiner)
      .Case<arith::AddFOp, arith::AddIOp>(
          [](Operation *) { return CombiningKind::ADD; })
      .Case<arith::MulFOp, arith::MulIOp>(
          [](Operation *) { return CombiningKind::MUL; })
      .Case([](arith::MaximumFOp) { return CombiningKind::MAXIMUMF; })
      .Case([](arith::MinimumFOp) { return CombiningKind::MINIMUMF; })
      .Case([](arith::MaxNumFOp) { return CombiningKind::MAXNUMF; })
      .Case([](arith::MinNumFOp) { return CombiningKind::MINNUMF; })
      .Case([](arith::MaxSIOp) { return CombiningKind::MAXSI; })
      .Case([](arith::MinSIOp) { return CombiningKind::MINSI; })
      .Case([](arith::MaxUIOp) { return CombiningKind::MAXUI; })
      .Case([](arith::MinUIOp) { return CombiningKind::MINUI; })
      .Case([](arith::AndIOp) { return CombiningKind::AND; })
      .Case([](arith::OrIOp) { return CombiningKind::OR; })
      .Case([](arith::XOrIOp) { return CombiningKind::XOR; })
      .Default([](Operation *) { return std::nullopt; });
}

Operation *fovea::getCombiner(linalg::GenericOp op, unsigned index) {
  SmallVector<Operation *> combiners;
  if (!matchReduction(op.getRegionOutputArgs(), index, combiners) ||
      combiners.size() != 1 || !getCombiningKind(combiners.front()) ||
      !arith::getNeutralElement(combiners.front()))
    return nullptr;
  return combiners.front();
}

bool fovea::isPlace(Operation *op, unsigned dim) {
  if (auto cast = dyn_cast<arith::IndexCastOp>(op)) {
    auto type = dyn_cast<IntegerType>(cast.getType());
    if (!type || type.getWidth() < 16)
      return false;
    op = cast.getIn().getDefiningOp();
  }
  auto index = dyn_cast_or_null<linalg::IndexOp>(op);
  return index && index.getDim() == dim;
}

bool fovea::isPlaceByFours(Operation *op, unsigned dim) {
  auto shift = dyn_cast<arith::ShRUIOp>(op);
  if (!shift || getConstantIntValue(shift.getRhs()) != 2)
    return false;
  Operation *place = shift.getLhs().getDefiningOp();
  return place && isPlace(place, dim);
}

/// Returns true if `value` is the same along loop `dim` of the body of `op`.
static bool isSameAlong(linalg::GenericOp op, Value value, unsigned dim) {
  if (auto argument = dyn_cast<BlockArgument>(value);
      argument && argument.getOwner() == op.getBody())
    return false;
  Operation *definition = value.getDefiningOp();
  return !definition || definition->getBlock() != op.getBody() ||
         fovea::isSameAlong(definition, dim);
}

bool fovea::isSameAlong(Operation *op, unsigned dim) {
  if (auto index = dyn_cast<linalg::IndexOp>(op))
    return index.getDim() != dim;
  auto generic = cast<linalg::GenericOp>(op->getParentOp());
  return op->getNumRegions() == 0 &&
         (isMemoryEffectFree(op) || isa<memref::LoadOp>(op)) &&
         llvm::all_of(op->getOperands(), [&](Value operand) {
           return ::isSameAlong(generic, operand, dim);
         });
}

/// Returns true if an index of `load` follows from what another op loads.
static bool isScattered(memref::LoadOp load) {
  BackwardSliceOptions options;
  options.omitBlockArguments = true;
  options.filter = [&](Operation *op) {
    return op->getBlock() == load->getBlock();
  };
  SetVector<Operation *> slice;
  (void)getBackwardSlice(load.getOperation(), &slice, options);
  return llvm::any_of(slice, llvm::IsaPred<memref::LoadOp>);
}

/// Returns the loads of rows along loop `dim` that lie where others say. Of
/// long rows the processor itself finds all lines but the first.
static SmallVector<memref::LoadOp> findScattered(linalg::GenericOp op,
                                                 unsigned dim) {
  constexpr int64_t kLongestRow = 2048;
  int64_t columns = op.getStaticLoopRanges()[dim];
  SmallVector<memref::LoadOp> loads;
  for (auto load : op.getBody()->getOps<memref::LoadOp>()) {
    auto indices = load.getIndices();
    Type element = load.getType();
    if (!element.isIntOrFloat() || element.getIntOrFloatBitWidth() % 8 != 0 ||
        columns * element.getIntOrFloatBitWidth() > 8 * kLongestRow)
      continue;
    int64_t offset;
    SmallVector<int64_t> strides;
    if (!indices.empty() && indices.back().getDefiningOp<linalg::IndexOp>() &&
        isPlace(indices.back().getDefiningOp(), dim) &&
        llvm::all_of(
            indices.drop_back(),
            [&](Value index) { return isSameAlong(op, index, dim); }) &&
        succeeded(load.getMemRefType().getStridesAndOffset(strides, offset)) &&
        strides.back() == 1 && isScattered(load))
      loads.push_back(load);
  }
  return loads;
}

/// Returns true if the ops of the body have vector forms.
static bool hasVectorBody(linalg::GenericOp op) {
  for (Operation &nested : op.getBody()->without_terminator()) {
    if (isa<linalg::IndexOp, arith::ConstantOp>(nested))
      continue;
    bool isVectorElement = llvm::all_of(nested.getResultTypes(), [](Type type) {
      return VectorType::isValidElementType(type);
    });
    if (!isVectorElement)
      return false;
    if (isa<memref::LoadOp>(nested) ||
        OpTrait::hasElementwiseMappableTraits(&nested))
      continue;
    return false;
  }
  return true;
}

namespace {
class Planner {
public:
  Planner(linalg::GenericOp op, int64_t vectorBytes)
      : op(op), vectorBytes(vectorBytes), iterators(op.getIteratorTypesArray()),
        sizes(op.getStaticLoopRanges()) {}

  VectorLoop plan() {
    VectorLoop best;
    if (vectorBytes < 2 || !hasVectorBody(op)) {
      LDBG() << "op at " << op.getLoc()
             << ": scalar, for an op of its body has no vector form";
      return best;
    }
    std::optional<int64_t> bestCost;
    for (unsigned dim = 0, e = sizes.size(); dim < e; ++dim) {
      std::optional<int64_t> cost = getCost(dim);
      LDBG() << "op at " << op.getLoc() << ", loop " << dim << ": "
             << (cost ? "costs " + std::to_string(*cost) : "cannot be cut");
      if (!cost || (bestCost && *bestCost < *cost))
        continue;
      int64_t fitting = std::max<int64_t>(2, vectorBytes / getWidestBytes(dim));
      if (llvm::any_of(*op.getBody(), [&](Operation &nested) {
            return isPlaceByFours(&nested, dim);
          }))
        fitting *= 4;
      if (!ShapedType::isDynamic(sizes[dim]))
        fitting =
            std::min<int64_t>(fitting, llvm::bit_floor<uint64_t>(sizes[dim]));
      if (fitting < 2)
        continue;
      bestCost = cost;
      best = {dim, fitting, {}};
    }
    if (bestCost && !linalg::isReductionIterator(iterators[best.dim]) &&
        !ShapedType::isDynamic(sizes[best.dim]))
      best.scattered = findScattered(op, best.dim);
    LDBG() << "op at " << op.getLoc() << ": "
           << (bestCost ? "vectors of " + std::to_string(best.lanes) +
                              " along loop " + std::to_string(best.dim)
                        : "scalar");
    return best;
  }

private:
  /// Returns the bytes of the widest element that differs from lane to lane, at
  /// least 4.
  int64_t getWidestBytes(unsigned dim) {
    int64_t widest = 4;
    DenseSet<Value> varying;
    auto add = [&](Value value, Type type) {
      varying.insert(value);
      if (type.isIntOrFloat())
        widest = std::max<int64_t>(widest, type.getIntOrFloatBitWidth() / 8);
    };
    for (auto [operand, argument] :
         llvm::zip_equal(op->getOpOperands(), op.getBody()->getArguments())) {
      AffineMap map = op.getMatchingIndexingMap(&operand);
      if (map.isFunctionOfDim(dim) || op.isDpsInit(&operand))
        add(argument, argument.getType());
    }
    for (Operation &nested : op.getBody()->without_terminator()) {
      auto index = dyn_cast<linalg::IndexOp>(nested);
      bool varies = index ? index.getDim() == dim
                          : llvm::any_of(nested.getOperands(), [&](Value v) {
                              return varying.contains(v);
                            });
      // A cast of an index counts as an index until something is computed from
      // it.
      bool isCast = isa<arith::IndexCastOp, arith::IndexCastUIOp>(nested);
      if (varies)
        for (Value result : nested.getResults())
          add(result,
              isCast ? nested.getOperand(0).getType() : result.getType());
    }
    return widest;
  }

  /// Returns the cost of cutting loop `dim`, or nullopt if it cannot be cut.
  std::optional<int64_t> getCost(unsigned dim) {
    bool isReduction = linalg::isReductionIterator(iterators[dim]);
    int64_t gathers = 0;
    for (OpOperand &operand : op->getOpOperands()) {
      auto type = dyn_cast<MemRefType>(operand.get().getType());
      if (!type)
        continue;
      Access access =
          classifyAccess(type, op.getMatchingIndexingMap(&operand), dim);
      if (op.isDpsInit(&operand)) {
        if (access != (isReduction ? Access::Uniform : Access::Contiguous))
          return std::nullopt;
        if (!hasVectorMemory(type.getElementType()))
          return std::nullopt;
      }
      gathers +=
          access == Access::Gather || (access == Access::Contiguous &&
                                       !hasVectorMemory(type.getElementType()));
    }
    if (isReduction)
      for (unsigned i = 0, e = op.getNumDpsInits(); i < e; ++i)
        if (!getCombiner(op, i))
          return std::nullopt;
    return 2 * gathers + isReduction;
  }

  linalg::GenericOp op;
  int64_t vectorBytes;
  SmallVector<utils::IteratorType> iterators;
  SmallVector<int64_t> sizes;
};
} // namespace

VectorLoop fovea::planVectorLoop(linalg::GenericOp op, int64_t vectorBytes) {
  return Planner(op, vectorBytes).plan();
}
