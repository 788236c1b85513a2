//===- ApartOps.cpp - Ops between which threads need not meet -------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ApartOps.h"

#include "PointLoops.h"
#include "fovea/Analysis/Loops.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace fovea;

std::optional<ApartOps::Access> ApartOps::getAccess(linalg::LinalgOp op) {
  Access access;
  if (!access.use.add(op))
    return std::nullopt;
  if (!writesApart(op))
    return access;
  SmallVector<unsigned> dims = getPointDims(op);
  SmallVector<AffineExpr> place;
  for (unsigned dim : dims) {
    access.points.push_back(op.getStaticLoopRanges()[dim]);
    place.push_back(getAffineDimExpr(dim, op.getContext()));
  }
  // Threads share the terms of a single point.
  if (llvm::is_contained(access.points, ShapedType::kDynamic) ||
      llvm::all_of(access.points, [](int64_t size) { return size == 1; }))
    return access;
  SmallVector<Value> others;
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    bool isOwn =
        op.getMatchingIndexingMap(&operand).getResults() == ArrayRef(place);
    (isOwn ? access.owned : others).push_back(operand.get());
  }
  // Other elements may be accessed by the body, or by way of a view.
  op->walk([&](memref::LoadOp load) { others.push_back(load.getMemRef()); });
  SmallVector<Value> owned(access.owned);
  llvm::erase_if(access.owned, [&](Value own) {
    auto isSame = [&](Value other) { return getBase(other) == getBase(own); };
    return llvm::any_of(others, isSame) ||
           llvm::any_of(owned, [&](Value other) {
             return other != own && isSame(other);
           });
  });
  return access;
}

bool ApartOps::areApart(const Access &a, const Access &b) {
  MemoryUse others[] = {a.use, b.use};
  if (a.points == b.points)
    for (Value own : a.owned)
      if (llvm::is_contained(b.owned, own))
        for (MemoryUse &use : others) {
          use.reads.remove(getBase(own));
          use.writes.remove(getBase(own));
        }
  return !others[0].conflictsWith(others[1]);
}

bool ApartOps::allow(linalg::LinalgOp next) const {
  std::optional<Access> access = getAccess(next);
  return access && llvm::all_of(accesses, [&](const Access &before) {
           return areApart(before, *access);
         });
}

bool ApartOps::add(linalg::LinalgOp op) {
  std::optional<Access> access = getAccess(op);
  if (access)
    accesses.push_back(std::move(*access));
  return access.has_value();
}
