//===- LoopNest.cpp - Sums over nests of loops ----------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Attn/Differentiate/LoopNest.h"

#include "fovea/Analysis/Formula.h"
#include "fovea/Dialect/Attn/IR/Attn.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;
using namespace fovea::attn::differentiate;

static Value constant(OpBuilder &builder, Location loc, Type type,
                      double value) {
  return arith::ConstantOp::create(builder, loc,
                                   builder.getFloatAttr(type, value));
}

Value differentiate::castTensor(OpBuilder &builder, Location loc, Value tensor,
                                Type type) {
  tensor = convertFloats(builder, loc, tensor,
                         cast<FloatType>(getElementTypeOrSelf(type)));
  return tensor.getType() == type
             ? tensor
             : tensor::CastOp::create(builder, loc, type, tensor);
}

AffineMap differentiate::mapAll(OpBuilder &builder, unsigned rank) {
  return builder.getMultiDimIdentityMap(rank);
}

AffineMap differentiate::mapTo(OpBuilder &builder, unsigned rank,
                               ArrayRef<unsigned> loops) {
  return AffineMap::getMultiDimMapWithTargets(rank, loops,
                                              builder.getContext());
}

static Value buildFilled(OpBuilder &builder, Location loc,
                         ArrayRef<OpFoldResult> sizes, FloatType element) {
  Value empty = tensor::EmptyOp::create(builder, loc, sizes, element);
  return linalg::FillOp::create(builder, loc,
                                constant(builder, loc, element, 0.0), empty)
      .getResult(0);
}

Value differentiate::buildZeros(OpBuilder &builder, Location loc, Value like,
                                FloatType element) {
  return buildFilled(builder, loc, tensor::getMixedSizes(builder, loc, like),
                     element);
}

/// Marks the loops whose size the access of an operand determines.
static void addKnownLoops(AffineMap map, llvm::SmallBitVector &known) {
  for (AffineExpr expr : map.getResults())
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      known.set(dim.getPosition());
}

/// Returns true if an input has an element for every iteration, and the sum is
/// over more than one loop, or over one that is not the last. Memory is then
/// the bound, not arithmetic as in a product of matrices; and the sum has many
/// terms, such as all rows for a weight.
static bool isLongSum(const LoopNest &nest, ArrayRef<unsigned> outer) {
  unsigned rank = nest.getNumLoops();
  bool sumsRows = false;
  for (unsigned loop = 0; loop + 1 < rank; ++loop)
    sumsRows |= !llvm::is_contained(outer, loop);
  return sumsRows && llvm::any_of(nest.maps, [&](AffineMap map) {
           return map.isProjectedPermutation() && map.getNumResults() == rank;
         });
}

/// Returns the accumulation type of the inputs of `nest` and of `element`.
static FloatType getTypeOfSum(const LoopNest &nest, FloatType element) {
  FloatType type = getAccumulationType(element);
  for (Value input : nest.inputs)
    if (auto read = dyn_cast<FloatType>(getElementTypeOrSelf(input)))
      if (FloatType wide = getAccumulationType(read);
          wide.getWidth() > type.getWidth())
        type = wide;
  return type;
}

Value differentiate::buildSum(OpBuilder &builder, Location loc,
                              const LoopNest &nest, ArrayRef<unsigned> outer,
                              FloatType element, TermFn term) {
  unsigned rank = nest.getNumLoops();
  // Outer loops first, then the loops that are summed over, in their order.
  SmallVector<unsigned> order(outer);
  for (unsigned loop = 0; loop < rank; ++loop)
    if (!llvm::is_contained(outer, loop))
      order.push_back(loop);
  SmallVector<unsigned> position(rank);
  SmallVector<AffineExpr> replacements(rank);
  for (auto [place, loop] : llvm::enumerate(order)) {
    position[loop] = place;
    replacements[loop] = builder.getAffineDimExpr(place);
  }

  SmallVector<Value> inputs(nest.inputs);
  SmallVector<AffineMap> maps;
  llvm::SmallBitVector known(rank);
  for (AffineMap map : nest.maps) {
    maps.push_back(map.replaceDimsAndSymbols(replacements, {}, rank, 0));
    addKnownLoops(maps.back(), known);
  }
  known.set(0, outer.size());
  for (auto [place, loop] : llvm::enumerate(order)) {
    if (known.test(place))
      continue;
    // No input has this size.
    inputs.push_back(tensor::EmptyOp::create(builder, loc, nest.sizes[loop],
                                             builder.getF32Type()));
    maps.push_back(mapTo(builder, rank, {unsigned(place)}));
  }

  bool sums = outer.size() < rank;
  FloatType type = element;
  if (sums)
    type = isLongSum(nest, outer) ? builder.getF64Type()
                                  : getTypeOfSum(nest, element);
  SmallVector<OpFoldResult> shape;
  for (unsigned loop : outer)
    shape.push_back(nest.sizes[loop]);
  Value init = sums ? buildFilled(builder, loc, shape, type)
                    : tensor::EmptyOp::create(builder, loc, shape, type);
  maps.push_back(mapTo(builder, rank,
                       llvm::to_vector(llvm::seq<unsigned>(0, outer.size()))));
  SmallVector<utils::IteratorType> iterators(outer.size(),
                                             utils::IteratorType::parallel);
  iterators.append(rank - outer.size(), utils::IteratorType::reduction);
  bool isKnown = true;
  auto generic = linalg::GenericOp::create(
      builder, loc, init.getType(), inputs, init, maps, iterators,
      [&](OpBuilder &b, Location l, ValueRange elements) {
        auto index = [&](unsigned loop) -> Value {
          return linalg::IndexOp::create(b, l, position[loop]);
        };
        Value value =
            term(b, l, index, elements.take_front(nest.inputs.size()));
        isKnown = bool(value);
        value = value ? convertFloats(b, l, value, type) : elements.back();
        if (sums)
          value = arith::AddFOp::create(b, l, elements.back(), value);
        linalg::YieldOp::create(b, l, value);
      });
  if (!isKnown)
    return Value();
  return convertFloats(builder, loc, generic.getResult(0), element);
}

Value differentiate::buildScatter(OpBuilder &builder, Location loc,
                                  const LoopNest &nest, Value like,
                                  FloatType element, PlacedTermFn term) {
  FloatType type = getTypeOfSum(nest, element);
  auto index = [&](OpFoldResult size) {
    return getValueOrCreateConstantIndexOp(builder, loc, size);
  };
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  SmallVector<Value> lower(nest.getNumLoops(), zero);
  SmallVector<Value> step(nest.getNumLoops(), one);
  SmallVector<Value> upper = llvm::map_to_vector(nest.sizes, index);
  bool isKnown = true;
  scf::LoopNest loops = scf::buildLoopNest(
      builder, loc, lower, upper, step, buildZeros(builder, loc, like, type),
      [&](OpBuilder &b, Location l, ValueRange indices,
          ValueRange sums) -> scf::ValueVector {
        SmallVector<Value> elements;
        for (auto [input, map] : llvm::zip_equal(nest.inputs, nest.maps)) {
          if (!isa<TensorType>(input.getType())) {
            elements.push_back(input);
            continue;
          }
          SmallVector<Value> at;
          for (unsigned result = 0; result < map.getNumResults(); ++result)
            at.push_back(affine::makeComposedAffineApply(
                b, l, map.getSubMap({result}), getAsOpFoldResult(indices)));
          elements.push_back(tensor::ExtractOp::create(b, l, input, at));
        }
        SmallVector<Value> place;
        Value value = term(
            b, l, [&](unsigned loop) { return indices[loop]; }, elements,
            place);
        if (!value) {
          isKnown = false;
          return {sums.front()};
        }
        Value old = tensor::ExtractOp::create(b, l, sums.front(), place);
        Value sum =
            arith::AddFOp::create(b, l, old, convertFloats(b, l, value, type));
        return {tensor::InsertOp::create(b, l, sum, sums.front(), place)};
      });
  if (!isKnown)
    return Value();
  return convertFloats(builder, loc, loops.results.front(), element);
}

Value differentiate::buildDelta(OpBuilder &builder, Location loc,
                                Value gradient, Value output, Value lseGradient,
                                RankedTensorType type) {
  LoopNest nest;
  nest.sizes = tensor::getMixedSizes(builder, loc, gradient);
  nest.addInput(gradient, mapAll(builder, 4));
  nest.addInput(output, mapAll(builder, 4));
  auto element = cast<FloatType>(type.getElementType());
  Value delta =
      buildSum(builder, loc, nest, {0, 1, 2}, element,
               [&](OpBuilder &b, Location l, IndexFn, ValueRange in) -> Value {
                 Formula f = {b, l, element};
                 return f.mul(f.convert(in[0]), f.convert(in[1]));
               });
  delta = castTensor(builder, loc, delta, type);
  if (lseGradient)
    delta = arith::SubFOp::create(builder, loc, delta,
                                  castTensor(builder, loc, lseGradient, type));
  return delta;
}
