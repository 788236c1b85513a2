//===- ItemSlice.cpp - What items of a parallel loop compute --------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ItemSlice.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

bool ItemSlice::collect(Value value, Value given) {
  if (!loop.getRegion().isAncestor(value.getParentRegion()) || value == given)
    return true;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    bool isIndex = argument.getOwner() == loop.getBody() &&
                   argument.getArgNumber() < loop.getRank();
    if (isIndex)
      dims.insert(argument.getArgNumber());
    return isIndex;
  }
  Operation *op = value.getDefiningOp();
  if (ops.contains(op))
    return true;
  if (op->getNumRegions() != 0 || !isPure(op) ||
      !llvm::all_of(op->getOperands(),
                    [&](Value operand) { return collect(operand, given); }))
    return false;
  ops.insert(op);
  return true;
}

Operation *ItemSlice::getRoot() const {
  Operation *root = loop;
  while (isa<scf::ForOp>(root->getParentOp()))
    root = root->getParentOp();
  return root;
}

bool ItemSlice::areRepeated(ArrayRef<Value> others) const {
  scf::ForallOp forall = loop;
  Region &region = forall.getRegion(), &root = getRoot()->getRegion(0);
  SmallVector<Value> needed(others);
  for (ValueRange bounds :
       {forall.getDynamicLowerBound(), forall.getDynamicUpperBound(),
        forall.getDynamicStep()})
    llvm::append_range(needed, bounds);
  for (Operation *op : ops)
    llvm::append_range(needed, op->getOperands());
  return llvm::all_of(needed, [&](Value value) {
    Region *parent = value.getParentRegion();
    return region.isAncestor(parent) || !root.isAncestor(parent);
  });
}

/// Returns the number of items along a dimension of `loop`.
static OpFoldResult getSize(IndexMath &math, scf::ForallOp loop, int64_t dim) {
  return math.ceilDiv(
      math.sub(loop.getMixedUpperBound()[dim], loop.getMixedLowerBound()[dim]),
      loop.getMixedStep()[dim]);
}

SmallVector<OpFoldResult> ItemSlice::getShape(IndexMath &math) const {
  SmallVector<OpFoldResult> shape;
  for (int64_t dim : dims)
    shape.push_back(getSize(math, loop, dim));
  return shape;
}

OpFoldResult ItemSlice::countItems(IndexMath &math) const {
  scf::ForallOp forall = loop;
  OpFoldResult count = math.constant(1);
  for (int64_t dim : llvm::seq(forall.getRank()))
    count = math.mul(count, getSize(math, loop, dim));
  return count;
}

void ItemSlice::mapItem(IndexMath &math, ValueRange number,
                        IRMapping &mapping) const {
  scf::ForallOp forall = loop;
  for (auto [index, dim] : llvm::zip_equal(number, dims))
    mapping.map(
        forall.getInductionVar(dim),
        math.materialize(math.add(
            forall.getMixedLowerBound()[dim],
            math.mul(index, OpFoldResult(forall.getMixedStep()[dim])))));
}

SmallVector<Value> ItemSlice::getNumber(IndexMath &math) const {
  scf::ForallOp forall = loop;
  SmallVector<Value> number;
  for (int64_t dim : dims)
    number.push_back(math.materialize(math.truncDiv(
        math.sub(forall.getInductionVar(dim), forall.getMixedLowerBound()[dim]),
        forall.getMixedStep()[dim])));
  return number;
}
