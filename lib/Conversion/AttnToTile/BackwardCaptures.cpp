//===- BackwardCaptures.cpp - Gradients of captured tensors ---------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BackwardBuilder.h"

#include "fovea/Analysis/CaptureReads.h"
#include "fovea/Analysis/IndexMath.h"
#include "fovea/Dialect/Attn/Differentiate/Formula.h"
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

/// Returns true if scores write to all elements of a tensor: no mask leaves out
/// a tile, and the tensor's dimensions are those of the scores.
static bool writesAll(AttentionBackwardOp op, tensor::ExtractOp read) {
  std::optional<SmallVector<unsigned>> coordinates =
      getIndexingCoordinates(read);
  if (!op.getMask().empty() || !coordinates)
    return false;
  auto query = cast<RankedTensorType>(op.getQuery().getType());
  auto key = cast<RankedTensorType>(op.getKey().getType());
  int64_t sizes[] = {query.getDimSize(0), query.getDimSize(1),
                     query.getDimSize(2), key.getDimSize(2)};
  ArrayRef<int64_t> shape = read.getTensor().getType().getShape();
  return llvm::all_of(llvm::zip_equal(*coordinates, shape), [&](auto pair) {
    auto [coordinate, size] = pair;
    return ShapedType::isStatic(size) && size == sizes[coordinate];
  });
}

LogicalResult BackwardBuilder::findReads() {
  std::optional<SmallVector<CaptureRead>> found = findCaptureReads(op);
  if (!found)
    return fail("a captured tensor with a gradient is read in a region within "
                "the score region");
  if (!canSumCaptures(op, op.getScheduleAttr()))
    return fail(
        "warps share the queries that gradients of captured tensors are "
        "summed over");
  // f32 sums of few terms are as exact as 16-bit operands are.
  bool isRounded = sizes.element.getWidth() == 16;
  for (Value capture : op.getCaptures())
    for (CaptureRead &read : *found) {
      if (read.op.getTensor() != capture)
        continue;
      bool isShared = read.sum == CaptureSum::InMemory;
      if (read.sum == CaptureSum::OverQueries)
        reads.push_back(read.op);
      else
        scattered.push_back(
            {read.op, isShared,
             /*addsDiagonals=*/isShared && read.isByDistance && isRounded,
             /*isZeroed=*/isShared || !writesAll(op, read.op)});
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
// The same bits in every run
//===----------------------------------------------------------------------===//

/// Returns true if scores of one batch and head share no elements of `capture`.
/// Then successive launches, for the scores that do share elements, add in a
/// fixed order: a launch adds to an element once, or in the thread that has the
/// same score of other heads.
bool BackwardBuilder::canTakeTurns(Value capture) {
  unsigned numReads = 0;
  bool isOfHeads = true;
  for (ScatteredRead &read : getReadsOf(capture, scattered)) {
    ++numReads;
    isOfHeads &=
        llvm::all_of(getSharingCoordinates(op, read.op),
                     [](unsigned coordinate) { return coordinate < 2; });
  }
  return numReads == 1 && isOfHeads;
}

/// Returns the largest number of scores that may add to one element of
/// `capture`.
OpFoldResult BackwardBuilder::getNumTerms(Value capture) {
  IndexMath index(rewriter, loc);
  OpFoldResult scores[] = {querySizes[0], querySizes[1], querySizes[2],
                           keySizes[2]};
  OpFoldResult terms = index.constant(0);
  for (ScatteredRead &read : getReadsOf(capture, scattered)) {
    OpFoldResult ofRead = index.constant(1);
    for (unsigned coordinate : getSharingCoordinates(op, read.op))
      ofRead = index.mul(ofRead, scores[coordinate]);
    terms = index.add(terms, ofRead);
  }
  return terms;
}

/// The number of a type's elements, if it is static.
static std::optional<int64_t> getNumElements(Type type) {
  auto shaped = cast<ShapedType>(type);
  return shaped.hasStaticShape() ? std::optional(shaped.getNumElements())
                                 : std::nullopt;
}

/// Chooses how to sum elements that scores share in the same way in every run:
/// in integers where these take no more memory than the sums of the queries'
/// gradients do, or where there is no other way.
void BackwardBuilder::planSharedSums() {
  if (!deterministic)
    return;
  for (auto [number, capture] : llvm::enumerate(op.getCaptures())) {
    auto captureReads = getReadsOf(capture, scattered);
    if (llvm::none_of(captureReads,
                      [](ScatteredRead &read) { return read.isShared; }))
      continue;
    auto elements = getNumElements(capture.getType());
    auto ofQueries = getNumElements(op.getQuery().getType());
    ReproducibleSum integers(rewriter, loc, sizes.accumulation,
                             getNumTerms(capture));
    auto size = IndexMath::constantOf(integers.getSize());
    std::string text = llvm::formatv("captured tensor {0}: ", number);
    auto tellMemory = [&] {
      if (elements && size)
        text += llvm::formatv("{0} MiB",
                              llvm::divideCeil(*elements * *size * 8, 1 << 20));
      else
        text += "memory of unknown size";
    };
    int64_t bytes = sizes.accumulation.getWidth() / 8;
    bool isSmall = elements && ofQueries && size &&
                   *elements * *size * 8 <= *ofQueries * bytes;
    if (canTakeTurns(capture) && !isSmall) {
      ScatteredRead &read = *captureReads.begin();
      for (unsigned coordinate : getSharingCoordinates(op, read.op))
        takesTurns[coordinate] = true;
      text += "launches in turn add to its gradient, for integers would take ";
      tellMemory();
    } else {
      for (ScatteredRead &read : captureReads)
        read.integers = integers;
      text += "its gradient is added up in integers, which take ";
      tellMemory();
    }
    remarks.push_back(text);
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
  mlir::Block &body = op.getScore().front();
  auto isLong = [&](ScatteredRead &read) {
    auto indices = read.op.getIndices();
    return !llvm::is_contained(indices, body.getArgument(3)) ||
           !llvm::is_contained(indices, body.getArgument(4));
  };
  bool isExact = sizes.element.getWidth() >= 32;
  return isExact && llvm::any_of(getReadsOf(capture, scattered), isLong)
             ? rewriter.getF64Type()
             : sizes.accumulation;
}

/// Appends a tensor for each captured tensor whose gradient goes to memory.
void BackwardBuilder::createScatteredSums(Values &outputs) {
  for (auto [capture, gradient] :
       llvm::zip_equal(op.getCaptures(), op.getCaptureGradients())) {
    auto captureReads = getReadsOf(capture, scattered);
    if (captureReads.empty())
      continue;
    ScatteredRead *read = &*captureReads.begin();
    if (read->integers) {
      SmallVector<OpFoldResult> shape{read->integers->getSize()};
      llvm::append_range(shape, tensor::getMixedSizes(rewriter, loc, capture));
      Value zero = arith::ConstantIntOp::create(rewriter, loc, 0, /*width=*/64);
      Value empty =
          tensor::EmptyOp::create(rewriter, loc, shape, zero.getType());
      outputs.push_back(
          linalg::FillOp::create(rewriter, loc, zero, empty).getResult(0));
      continue;
    }
    FloatType element = read->isShared
                            ? getSumType(capture)
                            : cast<FloatType>(getElementTypeOrSelf(gradient));
    outputs.push_back(read->isZeroed
                          ? buildZeros(rewriter, loc, capture, element)
                          : createResult(capture, capture, element));
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
  std::optional<SmallVector<unsigned>> coordinates =
      getIndexingCoordinates(read);
  LoopNest nest;
  if (coordinates && llvm::is_contained(*coordinates, 3u)) {
    nest.sizes = {querySizes[0], querySizes[1], keySizes[2]};
    SmallVector<OpFoldResult> offsets(3, rewriter.getIndexAttr(0)),
        strides(3, rewriter.getIndexAttr(1));
    nest.addInput(tensor::ExtractSliceOp::create(rewriter, loc, sums, offsets,
                                                 nest.sizes, strides),
                  mapAll(rewriter, 3));
    // No query reads these keys.
    for (unsigned &coordinate : *coordinates)
      coordinate = std::min(coordinate, 2u);
    return pad(rewriter, loc,
               buildSum(rewriter, loc, nest, *coordinates, exact, widen),
               capture);
  }
  nest.sizes = tensor::getMixedSizes(rewriter, loc, sums);
  nest.addInput(sums, mapAll(rewriter, 3));
  Value ofHeads = buildSum(rewriter, loc, nest, {0, 1}, exact, widen);
  LoopNest heads;
  heads.sizes = {nest.sizes[0], nest.sizes[1]};
  heads.addInput(ofHeads, mapAll(rewriter, 2));
  if (coordinates)
    return pad(rewriter, loc,
               buildSum(rewriter, loc, heads, *coordinates, exact, widen),
               capture);
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
