//===- BackwardCaptures.cpp - Gradients of captured tensors ---------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BackwardBuilder.h"

#include "fovea/Analysis/CaptureReads.h"
#include "fovea/Analysis/Formula.h"
#include "fovea/Analysis/IndexMath.h"
#include "fovea/Dialect/Attn/Differentiate/LoopNest.h"
#include "fovea/Dialect/Attn/Differentiate/ScalarTape.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;
using namespace fovea::attn::differentiate;
using namespace fovea::tile;

/// Returns the sizes of the whole scores, where they are static.
static SmallVector<int64_t> getStaticSizes(ArrayRef<OpFoldResult> sizes) {
  return llvm::map_to_vector(sizes, [](OpFoldResult size) {
    return IndexMath::constantOf(size).value_or(ShapedType::kDynamic);
  });
}

/// Returns true if scores of `sizes` write to all elements of a tensor, whose
/// dimensions are those of the scores.
static bool writesAll(ArrayRef<int64_t> sizes, tensor::ExtractOp read) {
  std::optional<SmallVector<Coordinate>> coordinates =
      getIndexingCoordinates(read);
  if (!coordinates)
    return false;
  ArrayRef<int64_t> shape = read.getTensor().getType().getShape();
  return llvm::all_of(llvm::zip_equal(*coordinates, shape), [&](auto pair) {
    auto [coordinate, size] = pair;
    return ShapedType::isStatic(size) && size == sizes[getScoreDim(coordinate)];
  });
}

/// Returns true if no mask leaves out a tile.
bool BackwardBuilder::visitsAll() {
  if (!op.getMask().empty() || op->getParentOfType<scf::IfOp>())
    return false;
  auto loop = op->getParentOfType<scf::ForOp>();
  auto end = loop ? getConstantIntValue(loop.getUpperBound()) : std::nullopt;
  return end && isZeroInteger(OpFoldResult(loop.getLowerBound())) &&
         end == IndexMath::constantOf(scoreSizes[2]);
}

LogicalResult BackwardBuilder::findReads() {
  std::optional<SmallVector<CaptureRead>> found = findCaptureReads(
      op.getCaptures(), op.getScore(), getStaticSizes(scoreSizes));
  ArrayRef<CaptureSum> sums = op.getScheduleAttr().getGradients().getCaptures();
  if (!found || found->size() != sums.size())
    return fail("its schedule does not say how the gradients of each read of a "
                "captured tensor are added up");
  for (auto [number, capture] : llvm::enumerate(op.getCaptures()))
    for (auto [read, sum] : llvm::zip_equal(*found, sums)) {
      // A gradient that nothing reads may be no result of the loop.
      if (read.op.getTensor() != capture || !outputs[3 + number])
        continue;
      bool isShared = sum != CaptureSum::Own;
      if (sum == CaptureSum::OverQueries)
        reads.push_back(read.op);
      else
        scattered.push_back(
            {read.op, isShared,
             /*addsDiagonals=*/sumsDiagonals(sum),
             /*isZeroed=*/isShared || !visitsAll() ||
                 !writesAll(getStaticSizes(scoreSizes), read.op)});
      if (sumsIntegers(sum))
        integerCaptures.insert(capture);
    }
  return success();
}

/// Returns the elements of `reads` that read `capture`.
static auto getReadsOf(Value capture, MutableArrayRef<ScatteredRead> reads) {
  return llvm::make_filter_range(reads, [capture](ScatteredRead &read) {
    return read.op.getTensor() == capture;
  });
}

//===----------------------------------------------------------------------===//
// Sums in integers
//===----------------------------------------------------------------------===//

/// Returns the largest number of scores that may add to one element of
/// `capture`.
OpFoldResult BackwardBuilder::getNumTerms(Value capture) {
  IndexMath index(rewriter, loc);
  OpFoldResult terms = index.constant(0);
  for (ScatteredRead &read : getReadsOf(capture, scattered)) {
    OpFoldResult ofRead = index.constant(1);
    for (Coordinate coordinate :
         getSharingCoordinates(read.op, getStaticSizes(scoreSizes)))
      ofRead = index.mul(ofRead, scoreSizes[getScoreDim(coordinate)]);
    terms = index.add(terms, ofRead);
  }
  return terms;
}

/// Finds the representations of sums in integers.
void BackwardBuilder::planIntegers() {
  for (Value capture : integerCaptures) {
    ReproducibleSum integers(rewriter, loc, sizes.accumulation,
                             getNumTerms(capture));
    for (ScatteredRead &read : getReadsOf(capture, scattered))
      if (read.isShared)
        read.integers = integers;
  }
}

//===----------------------------------------------------------------------===//
// In memory
//===----------------------------------------------------------------------===//

/// Returns the type in which scores that share elements of `capture` are
/// summed. The sum over a matrix of scores has terms of both signs, of which
/// little may be left: it is in f64, unless the rounding of the operands
/// outweighs that of the sum.
FloatType BackwardBuilder::getSumType(Value capture) {
  auto isLong = [](ScatteredRead &read) { return !isIndexedByPair(read.op); };
  bool isExact = sizes.element.getWidth() >= 32;
  return isExact && llvm::any_of(getReadsOf(capture, scattered), isLong)
             ? rewriter.getF64Type()
             : sizes.accumulation;
}

/// Appends a tensor for each captured tensor whose gradient goes to memory.
void BackwardBuilder::createScatteredSums(
    Values &outputs, llvm::function_ref<Value(size_t)> getInit) {
  for (auto [number, capture] : llvm::enumerate(op.getCaptures())) {
    auto captureReads = getReadsOf(capture, scattered);
    if (captureReads.empty())
      continue;
    ScatteredRead *read = &*captureReads.begin();
    SmallVector<OpFoldResult> shape =
        tensor::getMixedSizes(rewriter, loc, capture);
    if (read->integers) {
      shape.insert(shape.begin(), read->integers->getSize());
      Value zero = arith::ConstantIntOp::create(rewriter, loc, 0, /*width=*/64);
      Value empty =
          tensor::EmptyOp::create(rewriter, loc, shape, zero.getType());
      outputs.push_back(
          linalg::FillOp::create(rewriter, loc, zero, empty).getResult(0));
      continue;
    }
    // The loop's result begins as zeros.
    Value init = getInit(number);
    FloatType element = read->isShared
                            ? getSumType(capture)
                            : cast<FloatType>(getElementTypeOrSelf(init));
    if (!read->isZeroed)
      init = tensor::EmptyOp::create(rewriter, loc, shape, element);
    else if (element != getElementTypeOrSelf(init))
      init = buildZeros(rewriter, loc, capture, element);
    outputs.push_back(init);
  }
}

/// Gives the reads their memrefs in the launch.
void BackwardBuilder::tieScatteredSums() {
  auto outputs = launch.getOutputsMutable();
  unsigned next = outputs.size();
  Value last;
  for (ScatteredRead &read : llvm::reverse(scattered)) {
    if (read.op.getTensor() != last)
      --next;
    last = read.op.getTensor();
    read.target = launch.getTiedArgument(outputs[next]);
  }
}

//===----------------------------------------------------------------------===//
// Behind the launch
//===----------------------------------------------------------------------===//

/// Inserts `part` into zeros of the shape of `whole`.
static Value pad(OpBuilder &builder, Location loc, Value part, Value whole) {
  auto type = cast<RankedTensorType>(part.getType());
  if (type.getShape() == cast<RankedTensorType>(whole.getType()).getShape() &&
      type.hasStaticShape())
    return part;
  Value zeros =
      buildZeros(builder, loc, whole, cast<FloatType>(type.getElementType()));
  SmallVector<OpFoldResult> offsets(type.getRank(), builder.getIndexAttr(0)),
      strides(type.getRank(), builder.getIndexAttr(1));
  return tensor::InsertSliceOp::create(
      builder, loc, part, zeros, offsets,
      tensor::getMixedSizes(builder, loc, part), strides);
}

/// Returns the gradient of the tensor that `read` reads, in f64, from the sums
/// of blocks for each batch, head and key, padded to whole tiles.
Value BackwardBuilder::sumKeys(tensor::ExtractOp read, Value sums) {
  FloatType exact = rewriter.getF64Type();
  Value capture = read.getTensor();
  auto widen = [&](OpBuilder &b, Location l, IndexFn, ValueRange in) -> Value {
    return convertFloats(b, l, in[0], exact);
  };
  // The dimensions of `sums` that index the tensor, if coordinates alone do. No
  // query reads these keys.
  std::optional<SmallVector<unsigned>> dims;
  if (std::optional<SmallVector<Coordinate>> coordinates =
          getIndexingCoordinates(read))
    dims = llvm::map_to_vector(*coordinates, [](Coordinate coordinate) {
      return coordinate == Coordinate::Key ? 2u : getScoreDim(coordinate);
    });
  LoopNest nest;
  if (dims && llvm::is_contained(*dims, 2u)) {
    nest.sizes = {scoreSizes[0], scoreSizes[1], scoreSizes[3]};
    SmallVector<OpFoldResult> offsets(3, rewriter.getIndexAttr(0)),
        strides(3, rewriter.getIndexAttr(1));
    nest.addInput(tensor::ExtractSliceOp::create(rewriter, loc, sums, offsets,
                                                 nest.sizes, strides),
                  mapAll(rewriter, 3));
    return pad(rewriter, loc,
               buildSum(rewriter, loc, nest, *dims, exact, widen), capture);
  }
  nest.sizes = tensor::getMixedSizes(rewriter, loc, sums);
  nest.addInput(sums, mapAll(rewriter, 3));
  Value ofHeads = buildSum(rewriter, loc, nest, {0, 1}, exact, widen);
  LoopNest heads;
  heads.sizes = {nest.sizes[0], nest.sizes[1]};
  heads.addInput(ofHeads, mapAll(rewriter, 2));
  if (dims)
    return pad(rewriter, loc,
               buildSum(rewriter, loc, heads, *dims, exact, widen), capture);
  auto term = [&](OpBuilder &b, Location l, IndexFn index, ValueRange in,
                  SmallVectorImpl<Value> &place) {
    mlir::Block &body = op.getScore().front();
    IRMapping mapping;
    for (unsigned dim : {0, 1})
      if (!body.getArgument(1 + dim).use_empty())
        mapping.map(body.getArgument(1 + dim), index(dim));
    ScalarTape tape(b, l);
    for (Value at : read.getIndices())
      place.push_back(tape.replay(body, at, mapping));
    return in[0];
  };
  return buildScatter(rewriter, loc, heads, capture, exact, term);
}

/// Returns the gradient of `capture` in f64 that the integers in `sums`
/// represent.
Value BackwardBuilder::roundSums(Value capture, Value sums,
                                 const ReproducibleSum &integers) {
  LoopNest nest;
  nest.sizes = tensor::getMixedSizes(rewriter, loc, capture);
  auto element = [&](OpBuilder &body, Location l, IndexFn index,
                     ValueRange) -> Value {
    SmallVector<Value> place{Value()};
    for (unsigned dim = 0; dim < nest.getNumLoops(); ++dim)
      place.push_back(index(dim));
    return integers.round(body, l,
                          [&](OpBuilder &b, Location l, Value number) -> Value {
                            place.front() = number;
                            return tensor::ExtractOp::create(b, l, sums, place);
                          });
  };
  SmallVector<unsigned> all =
      llvm::to_vector(llvm::seq<unsigned>(0, nest.getNumLoops()));
  return buildSum(rewriter, loc, nest, all, rewriter.getF64Type(), element);
}

/// Returns the gradient of a captured tensor from what the launch returns for
/// each read that blocks sum, and for each captured tensor whose gradient goes
/// to memory. Several parts are added in f64, for they may be of both signs.
Value BackwardBuilder::sumReads(Value capture, ValueRange sums, Type type) {
  FloatType exact = rewriter.getF64Type();
  Values parts;
  for (auto [read, sum] : llvm::zip(reads, sums))
    if (read.getTensor() == capture)
      parts.push_back(sumKeys(read, sum));
  sums = sums.drop_front(reads.size());
  Value last;
  for (ScatteredRead read : scattered) {
    if (read.op.getTensor() == last)
      continue;
    last = read.op.getTensor();
    if (last == capture)
      parts.push_back(read.integers
                          ? roundSums(capture, sums.front(), *read.integers)
                          : sums.front());
    sums = sums.drop_front();
  }
  if (parts.empty())
    parts.push_back(buildZeros(rewriter, loc, capture, exact));
  Value result = parts.front();
  for (Value part : ArrayRef(parts).drop_front())
    result = arith::AddFOp::create(rewriter, loc,
                                   convertFloats(rewriter, loc, result, exact),
                                   convertFloats(rewriter, loc, part, exact));
  return castTensor(rewriter, loc, result, type);
}
