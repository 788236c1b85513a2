//===- PointLoops.cpp - linalg on memrefs as scalar loops -----------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PointLoops.h"

#include "fovea/Analysis/Loops.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace fovea;

SmallVector<Value> fovea::getLoopSizes(OpBuilder &builder,
                                       linalg::LinalgOp op) {
  return llvm::map_to_vector(op.createLoopRanges(builder, op.getLoc()),
                             [&](Range range) {
                               return getValueOrCreateConstantIndexOp(
                                   builder, op.getLoc(), range.size);
                             });
}

Value fovea::getProduct(OpBuilder &builder, Location loc, ValueRange sizes) {
  Value product;
  for (Value size : sizes) {
    if (matchPattern(size, m_One()))
      continue;
    product = product ? builder.createOrFold<arith::MulIOp>(loc, product, size)
                      : size;
  }
  return product ? product : arith::ConstantIndexOp::create(builder, loc, 1);
}

SmallVector<Value> fovea::delinearize(OpBuilder &builder, Location loc,
                                      Value number, ValueRange sizes) {
  SmallVector<Value> indices(sizes.size());
  Value zero;
  // The outermost loop that is not of size 1 needs no remainder.
  size_t first = 0;
  while (first < sizes.size() && matchPattern(sizes[first], m_One()))
    ++first;
  for (size_t dim = sizes.size(); dim-- > 0;) {
    Value size = sizes[dim];
    if (matchPattern(size, m_One())) {
      if (!zero)
        zero = arith::ConstantIndexOp::create(builder, loc, 0);
      indices[dim] = zero;
    } else if (dim == first) {
      indices[dim] = number;
    } else {
      indices[dim] = arith::RemUIOp::create(builder, loc, number, size);
      number = arith::DivUIOp::create(builder, loc, number, size);
    }
  }
  return indices;
}

linalg::GenericOp fovea::createCopy(OpBuilder &builder, memref::CopyOp op) {
  unsigned rank = cast<MemRefType>(op.getTarget().getType()).getRank();
  AffineMap identity = builder.getMultiDimIdentityMap(rank);
  SmallVector<utils::IteratorType> loops(rank, utils::IteratorType::parallel);
  return linalg::GenericOp::create(
      builder, op.getLoc(), op.getSource(), op.getTarget(),
      ArrayRef<AffineMap>{identity, identity}, loops,
      [](OpBuilder &nested, Location loc, ValueRange arguments) {
        linalg::YieldOp::create(nested, loc, arguments.front());
      });
}

SmallVector<unsigned> fovea::getPointDims(linalg::LinalgOp op) {
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  return llvm::map_to_vector(
      llvm::seq<unsigned>(map.getNumResults()),
      [&](unsigned result) { return map.getDimPosition(result); });
}

/// Returns the place of `operand`'s element at a point.
static SmallVector<Value> getIndices(OpBuilder &builder, linalg::LinalgOp op,
                                     OpOperand &operand, ValueRange ivs) {
  AffineMap map = op.getMatchingIndexingMap(&operand);
  SmallVector<OpFoldResult> coordinates(ivs.begin(), ivs.end());
  SmallVector<Value> indices;
  for (AffineExpr expr : map.getResults()) {
    OpFoldResult index = affine::makeComposedFoldedAffineApply(
        builder, op.getLoc(), AffineMap::get(map.getNumDims(), 0, expr),
        coordinates);
    indices.push_back(
        getValueOrCreateConstantIndexOp(builder, op.getLoc(), index));
  }
  return indices;
}

static Value loadElement(OpBuilder &builder, linalg::LinalgOp op,
                         OpOperand &operand, ValueRange ivs) {
  if (!isa<MemRefType>(operand.get().getType()))
    return operand.get();
  return memref::LoadOp::create(builder, op.getLoc(), operand.get(),
                                getIndices(builder, op, operand, ivs));
}

static void storeElement(OpBuilder &builder, linalg::LinalgOp op,
                         OpOperand &operand, ValueRange ivs, Value value) {
  memref::StoreOp::create(builder, op.getLoc(), value, operand.get(),
                          getIndices(builder, op, operand, ivs));
}

/// Returns the elements of the inputs that the body of `op` uses at `ivs`; null
/// for others.
static SmallVector<Value> loadInputs(OpBuilder &builder, linalg::LinalgOp op,
                                     ValueRange ivs) {
  return llvm::map_to_vector(
      op.getDpsInputOperands(), [&](OpOperand *input) -> Value {
        return op.payloadUsesValueFromOperand(input)
                   ? loadElement(builder, op, *input, ivs)
                   : Value();
      });
}

/// Emits the body of `op` on these elements of its inputs.
static SmallVector<Value> emitTerm(OpBuilder &builder, linalg::LinalgOp op,
                                   ValueRange ivs, ArrayRef<Value> inputs,
                                   ValueRange outputs) {
  IRMapping mapping;
  Block *body = op.getBlock();
  for (auto [input, element] :
       llvm::zip_equal(op.getDpsInputOperands(), inputs))
    if (element)
      mapping.map(op.getMatchingBlockArgument(input), element);
  for (auto [argument, value] :
       llvm::zip_equal(body->getArguments().take_back(outputs.size()), outputs))
    if (value)
      mapping.map(argument, value);
  for (Operation &inner : body->without_terminator()) {
    if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
      mapping.map(index.getResult(), ivs[index.getDim()]);
      continue;
    }
    Operation *clone = builder.clone(inner, mapping);
    clone->walk([&](linalg::IndexOp index) {
      index.replaceAllUsesWith(ivs[index.getDim()]);
      index.erase();
    });
  }
  return llvm::map_to_vector(
      body->getTerminator()->getOperands(),
      [&](Value value) { return mapping.lookupOrDefault(value); });
}

SmallVector<Value> fovea::emitTerm(OpBuilder &builder, linalg::LinalgOp op,
                                   ValueRange ivs, ValueRange outputs) {
  return ::emitTerm(builder, op, ivs, loadInputs(builder, op, ivs), outputs);
}

/// Emits `count` terms, the first at `point` and the others behind it along
/// `dim`; returns the outputs. Their elements are read before the first is
/// computed, so that reads take their time together.
static SmallVector<Value> emitTerms(OpBuilder &builder, linalg::LinalgOp op,
                                    ArrayRef<Value> point, unsigned dim,
                                    int64_t count, ValueRange outputs) {
  SmallVector<SmallVector<Value>> points, inputs;
  for (int64_t term = 0; term < count; ++term) {
    SmallVector<Value> &at = points.emplace_back(point);
    if (term)
      at[dim] = arith::AddIOp::create(
          builder, op.getLoc(), point[dim],
          arith::ConstantIndexOp::create(builder, op.getLoc(), term));
    inputs.push_back(loadInputs(builder, op, at));
  }
  SmallVector<Value> carried(outputs);
  for (auto [at, elements] : llvm::zip_equal(points, inputs))
    carried = ::emitTerm(builder, op, at, elements, carried);
  return carried;
}

/// Returns how many terms of a reduction are computed at once: in loops one
/// behind the other, each of which takes what is left of the one before. Where
/// little is done with elements, reading them is what a term takes.
static ArrayRef<int64_t> getTermsAtOnce(linalg::LinalgOp op) {
  constexpr int64_t kFewOps = 8;
  static constexpr int64_t kCheap[] = {8, 2, 1}, kOthers[] = {4, 1};
  auto ops = op.getBlock()->without_terminator();
  bool isCheap = llvm::all_of(ops, [](Operation &inner) {
    return isa<arith::ArithDialect>(inner.getDialect());
  });
  if (isCheap && std::distance(ops.begin(), ops.end()) <= kFewOps)
    return kCheap;
  return kOthers;
}

/// Emits a reduction over `dim`, of `size`, at `point`; returns the outputs.
static SmallVector<Value> emitReduction(OpBuilder &builder, linalg::LinalgOp op,
                                        ArrayRef<Value> point, unsigned dim,
                                        Value size, ValueRange outputs) {
  Location loc = op.getLoc();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  auto emit = [&](Value first, Value end, int64_t terms, ValueRange inits) {
    return scf::ForOp::create(
               builder, loc, first, end, constant(terms), inits,
               [&](OpBuilder &inner, Location, Value iv, ValueRange carried) {
                 SmallVector<Value> at(point);
                 at[dim] = iv;
                 scf::YieldOp::create(
                     inner, loc, emitTerms(inner, op, at, dim, terms, carried));
               })
        .getResults();
  };
  // Loops of a size that is known are unrolled later.
  if (getConstantIntValue(size))
    return emit(constant(0), size, 1, outputs);
  SmallVector<Value> carried(outputs);
  Value first = constant(0);
  for (int64_t terms : getTermsAtOnce(op)) {
    Value end = size;
    if (terms > 1) {
      Value rest = arith::RemUIOp::create(builder, loc, size, constant(terms));
      end = arith::SubIOp::create(builder, loc, size, rest);
    }
    ValueRange results = emit(first, end, terms, carried);
    carried.assign(results.begin(), results.end());
    first = end;
  }
  return carried;
}

void fovea::updateOutputs(OpBuilder &builder, linalg::LinalgOp op,
                          ValueRange ivs,
                          function_ref<Value(size_t, Value)> update) {
  for (auto [index, output] : llvm::enumerate(op.getDpsInitsMutable())) {
    Value old = loadElement(builder, op, output, ivs);
    storeElement(builder, op, output, ivs, update(index, old));
  }
}

void fovea::emitPoint(OpBuilder &builder, linalg::LinalgOp op, ValueRange sizes,
                      ArrayRef<Value> ivs) {
  OpBuilder::InsertionGuard guard(builder);
  Location loc = op.getLoc();
  MutableArrayRef<OpOperand> outputs = op.getDpsInitsMutable();
  SmallVector<Value> point(ivs);
  SmallVector<unsigned> loops;
  for (auto [dim, iv] : llvm::enumerate(ivs))
    if (!iv)
      loops.push_back(dim);

  if (loops.empty()) {
    SmallVector<Value> before;
    for (OpOperand &output : outputs)
      before.push_back(op.payloadUsesValueFromOperand(&output)
                           ? loadElement(builder, op, output, point)
                           : Value());
    SmallVector<Value> after = emitTerm(builder, op, point, before);
    for (auto [output, value] : llvm::zip_equal(outputs, after))
      storeElement(builder, op, output, point, value);
    return;
  }

  // An output's place does not depend on the loops, whose indices are null yet.
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  for (unsigned dim : loops)
    point[dim] = zero;
  SmallVector<Value> carried;
  for (OpOperand &output : outputs)
    carried.push_back(loadElement(builder, op, output, point));
  unsigned innermost = loops.pop_back_val();
  scf::ForOp outermost;
  for (unsigned dim : loops) {
    auto loop =
        scf::ForOp::create(builder, loc, zero, sizes[dim], one, carried);
    if (outermost)
      scf::YieldOp::create(builder, loc, loop.getResults());
    else
      outermost = loop;
    point[dim] = loop.getInductionVar();
    carried.assign(loop.getRegionIterArgs().begin(),
                   loop.getRegionIterArgs().end());
    builder.setInsertionPointToStart(loop.getBody());
  }
  carried =
      emitReduction(builder, op, point, innermost, sizes[innermost], carried);
  if (outermost) {
    scf::YieldOp::create(builder, loc, carried);
    builder.setInsertionPointAfter(outermost);
    carried.assign(outermost->result_begin(), outermost->result_end());
  }
  for (unsigned dim : loops)
    point[dim] = zero;
  point[innermost] = zero;
  for (auto [output, value] : llvm::zip_equal(outputs, carried))
    storeElement(builder, op, output, point, value);
}

void fovea::emitLoops(OpBuilder &builder, linalg::LinalgOp op) {
  OpBuilder::InsertionGuard guard(builder);
  Location loc = op.getLoc();
  SmallVector<Value> sizes = getLoopSizes(builder, op);
  bool isApart = writesApart(op);
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  SmallVector<Value> ivs(sizes.size());
  for (auto [dim, type] : llvm::enumerate(op.getIteratorTypesArray())) {
    // Elements that are written more than once go to memory each time.
    if (isApart && !linalg::isParallelIterator(type))
      continue;
    auto loop = scf::ForOp::create(builder, loc, zero, sizes[dim], one);
    ivs[dim] = loop.getInductionVar();
    builder.setInsertionPointToStart(loop.getBody());
  }
  emitPoint(builder, op, sizes, ivs);
}
