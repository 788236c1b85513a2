//===- Collector.cpp - Demands of ops on sizes of operands ----------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Collector.h"
#include "IndexRange.h"

#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Support/MaxPosition.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace fovea;

namespace {

/// Collects the demands of one op.
class OpCollector {
public:
  OpCollector(Operation *op, std::vector<ShapeCheck> &checks)
      : op(op), loc(op->getLoc()), builder(op), checks(checks) {}

  void run();

private:
  void collect(attn::ScoresOp op);
  void collect(attn::ValuesOp op);
  void collect(attn::AttentionOp op);
  void collect(attn::RopeOp op);
  void collect(attn::ModifyOp op);
  void collect(attn::MaskOp op);
  void collectNorm(Value input, Value weight, Value bias);
  void collectSameShape();
  void collectResults();
  void collectTotal();
  void collect(linalg::LinalgOp op);
  void collect(tensor::CastOp op);
  void collect(tensor::ExtractOp op);
  void collect(tensor::ExtractSliceOp op);
  void collect(tensor::ExpandShapeOp op);

  /// Collects the demands of a score or mask region, whose coordinates have
  /// these extents.
  void collectRegion(Region &region, ArrayRef<Value> extents);
  void collectExtracts(Region &region, IndexRanges &ranges,
                       ArrayRef<Value> extents);

  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }
  Value makeDim(Value tensor, int64_t dim) {
    return builder.createOrFold<tensor::DimOp>(loc, tensor, dim);
  }
  /// Returns a dimension of a tensor, by the name of the function's operand or
  /// as an operand of the op.
  CheckSide size(Value tensor, int64_t dim);

  void add(Relation relation, CheckSide left, CheckSide right) {
    checks.push_back({op, relation, std::move(left), std::move(right)});
  }
  void addEqual(Value a, int64_t aDim, Value b, int64_t bDim) {
    add(Relation::Equal, size(a, aDim), size(b, bDim));
  }

  Operation *op;
  Location loc;
  OpBuilder builder;
  std::vector<ShapeCheck> &checks;
};

} // namespace

CheckSide OpCollector::size(Value tensor, int64_t dim) {
  std::string what;
  auto argument = dyn_cast<BlockArgument>(tensor);
  if (argument && isa<func::FuncOp>(argument.getOwner()->getParentOp())) {
    what = "$" + std::to_string(argument.getArgNumber());
  } else {
    for (OpOperand &operand : op->getOpOperands())
      if (operand.get() == tensor)
        what = "its operand " + std::to_string(operand.getOperandNumber());
    if (what.empty())
      what = "a captured tensor";
  }
  return {makeDim(tensor, dim),
          "dimension " + std::to_string(dim) + " of " + what};
}

//===----------------------------------------------------------------------===//
// The attn dialect
//===----------------------------------------------------------------------===//

void OpCollector::collect(attn::ScoresOp scores) {
  Value q = scores.getQuery(), k = scores.getKey();
  addEqual(q, 0, k, 0);
  add(Relation::Multiple, size(q, 1), size(k, 1));
  addEqual(q, 3, k, 3);
}

void OpCollector::collect(attn::ValuesOp values) {
  Value p = values.getProbabilities(), v = values.getValue();
  addEqual(p, 0, v, 0);
  add(Relation::Multiple, size(p, 1), size(v, 1));
  addEqual(p, 3, v, 2);
}

void OpCollector::collect(attn::AttentionOp attention) {
  Value q = attention.getQuery(), k = attention.getKey(),
        v = attention.getValue();
  addEqual(q, 0, k, 0);
  addEqual(q, 0, v, 0);
  add(Relation::Multiple, size(q, 1), size(k, 1));
  addEqual(k, 1, v, 1);
  addEqual(q, 3, k, 3);
  addEqual(k, 2, v, 2);
  if (Value output = attention.getInitOutput()) {
    for (int64_t dim = 0; dim < 3; ++dim)
      addEqual(q, dim, output, dim);
    addEqual(v, 3, output, 3);
  }
  if (Value lse = attention.getInitLse()) {
    int64_t rank = cast<RankedTensorType>(lse.getType()).getRank();
    for (auto [dim, row] : llvm::enumerate(attn::getInitDims(rank)))
      addEqual(q, row, lse, dim);
  }
  // Masks and loops compute coordinates in 32 bits.
  CheckSide most = {constant(kMaxPosition), "the largest size of attention"};
  for (auto [tensor, dim] :
       {std::pair(q, 0), std::pair(q, 1), std::pair(q, 2), std::pair(k, 2)})
    add(Relation::AtMost, size(tensor, dim), most);
  Value extents[] = {makeDim(q, 0), makeDim(q, 1), makeDim(q, 2),
                     makeDim(k, 2)};
  collectRegion(attention.getScore(), extents);
  collectRegion(attention.getMask(), extents);
}

void OpCollector::collect(attn::RopeOp rope) {
  for (Value table : {rope.getCos(), rope.getSin()}) {
    addEqual(rope.getInput(), 2, table, 0);
    CheckSide half = size(rope.getInput(), 3);
    half.value =
        builder.createOrFold<arith::DivUIOp>(loc, half.value, constant(2));
    half.text = "half of " + half.text;
    add(Relation::Equal, half, size(table, 1));
  }
}

void OpCollector::collect(attn::ModifyOp modify) {
  Value extents[4];
  for (int64_t dim = 0; dim < 4; ++dim)
    extents[dim] = makeDim(modify.getInput(), dim);
  collectRegion(modify.getBody(), extents);
}

void OpCollector::collect(attn::MaskOp mask) {
  Value extents[4];
  for (int64_t dim = 0; dim < 4; ++dim)
    extents[dim] = makeDim(mask.getInput(), dim);
  collectRegion(mask.getBody(), extents);
}

void OpCollector::collectNorm(Value input, Value weight, Value bias) {
  int64_t last = cast<RankedTensorType>(input.getType()).getRank() - 1;
  if (weight)
    addEqual(input, last, weight, 0);
  if (bias)
    addEqual(input, last, bias, 0);
}

void OpCollector::collectSameShape() {
  Value first = op->getOperand(0);
  int64_t rank = cast<RankedTensorType>(first.getType()).getRank();
  for (Value other : llvm::drop_begin(op->getOperands()))
    for (int64_t dim = 0; dim < rank; ++dim)
      addEqual(first, dim, other, dim);
}

//===----------------------------------------------------------------------===//
// Reads at computed places
//===----------------------------------------------------------------------===//

void OpCollector::collectRegion(Region &region, ArrayRef<Value> extents) {
  if (region.empty())
    return;
  IndexRanges ranges(builder, region);
  // A score comes before the coordinates.
  for (auto [coordinate, extent] :
       llvm::zip_equal(region.getArguments().take_back(4), extents))
    ranges.setExtent(coordinate, extent);
  collectExtracts(region, ranges, extents);
}

void OpCollector::collectExtracts(Region &region, IndexRanges &ranges,
                                  ArrayRef<Value> extents) {
  Value nothing;
  for (tensor::ExtractOp extract :
       llvm::to_vector(region.front().getOps<tensor::ExtractOp>())) {
    Value tensor = extract.getTensor();
    if (region.isAncestor(tensor.getParentRegion()))
      continue;
    for (auto [dim, index] : llvm::enumerate(extract.getIndices())) {
      std::optional<IndexRange> range = ranges.get(index);
      if (!range)
        continue;
      if (!nothing) {
        // The region never runs: nothing is read.
        nothing = arith::ConstantIntOp::create(builder, loc, 0, 1);
        for (Value extent : extents)
          nothing = builder.createOrFold<arith::OrIOp>(
              loc, nothing,
              builder.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::eq,
                                                  extent, constant(0)));
      }
      Value zero = constant(0);
      auto unlessNothing = [&](Value value) {
        return builder.createOrFold<arith::SelectOp>(loc, nothing, zero, value);
      };
      CheckSide table = size(tensor, dim);
      Value end =
          builder.createOrFold<arith::AddIOp>(loc, range->high, constant(1));
      // Constants are compared here: behind the guard they would not be known.
      std::optional<int64_t> knownEnd = getConstantIntValue(end);
      std::optional<int64_t> knownSize = getConstantIntValue(table.value);
      if (!knownEnd || !knownSize || *knownEnd > *knownSize)
        add(Relation::AtLeast, table,
            {unlessNothing(end), "what its indices in 'tensor.extract' need"});
      std::optional<int64_t> knownLow = getConstantIntValue(range->low);
      if (!knownLow || *knownLow < 0)
        add(Relation::AtLeast,
            {unlessNothing(range->low), "the least index into " + table.text},
            {zero, "the first"});
    }
  }
}

void OpCollector::collect(tensor::ExtractOp extract) {
  for (auto [dim, index] : llvm::enumerate(extract.getIndices())) {
    Value needed = builder.createOrFold<arith::AddIOp>(loc, index, constant(1));
    add(Relation::AtLeast, size(extract.getTensor(), dim),
        {needed, "what its index needs"});
    add(Relation::AtLeast, {index, "its index " + std::to_string(dim)},
        {constant(0), "the first"});
  }
}

//===----------------------------------------------------------------------===//
// linalg and tensor
//===----------------------------------------------------------------------===//

void OpCollector::collect(linalg::LinalgOp linalg) {
  if (!linalg.hasPureTensorSemantics())
    return;
  // The first size that is found for a loop must equal all others.
  SmallVector<std::optional<CheckSide>> loops(linalg.getNumLoops());
  for (OpOperand &operand : linalg->getOpOperands()) {
    if (!isa<RankedTensorType>(operand.get().getType()))
      continue;
    AffineMap map = linalg.getMatchingIndexingMap(&operand);
    for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
      auto loop = dyn_cast<AffineDimExpr>(expr);
      if (!loop)
        continue;
      CheckSide side = size(operand.get(), dim);
      std::optional<CheckSide> &first = loops[loop.getPosition()];
      if (first)
        add(Relation::Equal, *first, side);
      else
        first = side;
    }
  }
  if (linalg->getNumRegions() != 1 || !linalg.hasIndexSemantics())
    return;
  Region &region = linalg->getRegion(0);
  IndexRanges ranges(builder, region);
  SmallVector<Value> extents;
  for (const std::optional<CheckSide> &loop : loops)
    if (loop)
      extents.push_back(loop->value);
  for (auto index : region.front().getOps<linalg::IndexOp>())
    if (loops[index.getDim()])
      ranges.setExtent(index, loops[index.getDim()]->value);
  collectExtracts(region, ranges, extents);
}

void OpCollector::collect(tensor::CastOp cast) {
  auto type = dyn_cast<RankedTensorType>(cast.getType());
  if (!type || !isa<RankedTensorType>(cast.getSource().getType()))
    return;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (!type.isDynamicDim(dim))
      add(Relation::Equal, size(cast.getSource(), dim),
          {constant(type.getDimSize(dim)), "its type"});
}

void OpCollector::collect(tensor::ExtractSliceOp slice) {
  for (int64_t dim = 0; dim < slice.getSourceType().getRank(); ++dim) {
    auto get = [&](OpFoldResult value) {
      return getValueOrCreateConstantIndexOp(builder, loc, value);
    };
    // The last element that is read: offset + (size - 1) * stride.
    Value offset = get(slice.getMixedOffsets()[dim]);
    Value sizeValue = get(slice.getMixedSizes()[dim]);
    Value last =
        builder.createOrFold<arith::SubIOp>(loc, sizeValue, constant(1));
    last = builder.createOrFold<arith::MulIOp>(
        loc, last, get(slice.getMixedStrides()[dim]));
    last = builder.createOrFold<arith::AddIOp>(loc, last, offset);
    Value end = builder.createOrFold<arith::AddIOp>(loc, last, constant(1));
    add(Relation::AtLeast, size(slice.getSource(), dim),
        {end, "the end of the slice"});
    add(Relation::AtLeast, {offset, "the slice's offset"},
        {constant(0), "the first"});
    add(Relation::AtLeast, {sizeValue, "the slice's size"},
        {constant(0), "the least size"});
  }
}

void OpCollector::collect(tensor::ExpandShapeOp expand) {
  SmallVector<OpFoldResult> sizes = expand.getMixedOutputShape();
  for (auto [dim, group] : llvm::enumerate(expand.getReassociationIndices())) {
    Value product = constant(1);
    for (int64_t index : group)
      product = builder.createOrFold<arith::MulIOp>(
          loc, product,
          getValueOrCreateConstantIndexOp(builder, loc, sizes[index]));
    add(Relation::Equal, size(expand.getSrc(), dim),
        {product, "the product of the sizes it becomes"});
  }
}

//===----------------------------------------------------------------------===//
// Any op
//===----------------------------------------------------------------------===//

/// Collects the sizes that the type of a result states and operands determine.
void OpCollector::collectResults() {
  auto reify = dyn_cast<ReifyRankedShapedTypeOpInterface>(op);
  if (!reify || !isa<attn::AttnDialect>(op->getDialect()))
    return;
  ReifiedRankedShapedTypeDims shapes;
  if (failed(reify.reifyResultShapes(builder, shapes)))
    return;
  for (auto [number, result] : llvm::enumerate(op->getResults())) {
    auto type = cast<RankedTensorType>(result.getType());
    for (auto [dim, size] : llvm::enumerate(shapes[number]))
      if (!type.isDynamicDim(dim) && isa<Value>(size))
        add(Relation::Equal,
            {cast<Value>(size), "dimension " + std::to_string(dim) +
                                    " of its result " + std::to_string(number)},
            {constant(type.getDimSize(dim)), "its type"});
  }
}

/// Collects results too large for 64-bit sizes, by a product in f64.
void OpCollector::collectTotal() {
  for (auto [number, result] : llvm::enumerate(op->getResults())) {
    auto type = dyn_cast<RankedTensorType>(result.getType());
    if (!type || type.hasStaticShape())
      continue;
    // Most ops whose result has the type of an operand have its sizes also.
    if (!isa<attn::ScoresOp, attn::ValuesOp, attn::AttentionOp>(op) &&
        llvm::is_contained(op->getOperandTypes(), type))
      continue;
    auto reify = dyn_cast<ReifyRankedShapedTypeOpInterface>(op);
    ReifiedRankedShapedTypeDims shapes;
    if (!reify || failed(reify.reifyResultShapes(builder, shapes)))
      continue;
    Type f64 = builder.getF64Type();
    Value total =
        arith::ConstantOp::create(builder, loc, builder.getF64FloatAttr(1));
    for (OpFoldResult size : shapes[number]) {
      Value value = getValueOrCreateConstantIndexOp(builder, loc, size);
      value = builder.createOrFold<arith::MaxSIOp>(loc, value, constant(1));
      value = builder.createOrFold<arith::IndexCastOp>(
          loc, builder.getI64Type(), value);
      value = builder.createOrFold<arith::SIToFPOp>(loc, f64, value);
      total = builder.createOrFold<arith::MulFOp>(loc, total, value);
    }
    // 2^59 elements of 8 bytes: half of the address space.
    Value limit = arith::ConstantOp::create(builder, loc,
                                            builder.getF64FloatAttr(0x1p59));
    Value fits = builder.createOrFold<arith::CmpFOp>(
        loc, arith::CmpFPredicate::OLE, total, limit);
    Value excess = builder.createOrFold<arith::SelectOp>(loc, fits, constant(0),
                                                         constant(1));
    add(Relation::Fits,
        {excess, "the size of its result " + std::to_string(number)},
        {constant(0), ""});
  }
}

void OpCollector::run() {
  llvm::TypeSwitch<Operation *>(op)
      .Case<attn::ScoresOp, attn::ValuesOp, attn::AttentionOp, attn::RopeOp,
            attn::ModifyOp, attn::MaskOp, linalg::LinalgOp, tensor::CastOp,
            tensor::ExtractOp, tensor::ExtractSliceOp, tensor::ExpandShapeOp>(
          [&](auto concrete) { collect(concrete); })
      .Case([&](attn::LayerNormOp norm) {
        collectNorm(norm.getInput(), norm.getWeight(), norm.getBias());
      })
      .Case([&](attn::RMSNormOp norm) {
        collectNorm(norm.getInput(), norm.getWeight(), nullptr);
      })
      .Case<attn::ElementwiseOp, attn::ResidualAddOp>(
          [&](Operation *) { collectSameShape(); });
  collectResults();
  collectTotal();
}

std::vector<ShapeCheck> fovea::collectShapeChecks(func::FuncOp function) {
  std::vector<ShapeCheck> checks;
  for (Operation &op : llvm::make_early_inc_range(function.front()))
    OpCollector(&op, checks).run();
  return checks;
}
