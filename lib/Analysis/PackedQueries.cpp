//===- PackedQueries.cpp - Queries of sequences that lie packed -----------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Analysis/PackedQueries.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace fovea::attn;

/// Returns true if `op` makes rows of the queries of a group's heads, of which
/// some may have no head.
static bool makesRows(Operation *op) {
  if (auto insertion = dyn_cast_if_present<tensor::InsertSliceOp>(op))
    return insertion.getDest().getDefiningOp<tensor::EmptyOp>() != nullptr;
  return isa_and_nonnull<tensor::CollapseShapeOp, linalg::TransposeOp>(op);
}

int64_t fovea::countRowsOfQuery(AttentionOp op) {
  constexpr int64_t kRows = 2;
  auto rows = op.getQuery().getDefiningOp<tensor::CollapseShapeOp>();
  if (!rows || !rows.getResultType().isDynamicDim(kRows))
    return 1;
  ReassociationIndices dims = rows.getReassociationIndices()[kRows];
  int64_t inner = rows.getSrcType().getDimSize(dims.back());
  return dims.size() > 1 && !ShapedType::isDynamic(inner) ? inner : 1;
}

Value fovea::getQueriesOfHeads(AttentionOp op) {
  if (countRowsOfQuery(op) == 1)
    return op.getQuery();
  Value heads = op.getQuery();
  while (makesRows(heads.getDefiningOp()))
    heads = heads.getDefiningOp()->getOperand(0);
  auto groups = heads.getDefiningOp<tensor::ExpandShapeOp>();
  return groups ? groups.getSrc() : op.getQuery();
}

Value fovea::getPackedQueries(AttentionOp op) {
  Operation *producer = op.getQuery().getDefiningOp();
  while (makesRows(producer) ||
         isa_and_nonnull<tensor::ExpandShapeOp>(producer))
    producer = producer->getOperand(0).getDefiningOp();
  auto copies = dyn_cast_if_present<scf::ForallOp>(producer);
  if (!copies || copies.getRank() != 1 || copies.getNumResults() != 1)
    return {};
  for (Operation &op : copies.getTerminator().getYieldingOps()) {
    auto insertion = dyn_cast<tensor::ParallelInsertSliceOp>(op);
    auto slice =
        insertion
            ? insertion.getSource().getDefiningOp<tensor::ExtractSliceOp>()
            : tensor::ExtractSliceOp();
    if (slice)
      return slice.getSource();
  }
  return {};
}
