//===- HeadGroups.h - Reshapes of the heads of a group ----------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Queries of the heads of a group become rows of one head by reshapes that
// divide a dimension in two and join two others, with a transposition in
// between: whole tensors (attn-pack-groups), and then their tiles (attn-tile).
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_HEADGROUPS_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_HEADGROUPS_H

#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"

namespace fovea::attn {

/// Returns a group of dimensions for each dimension of a tensor of `rank`, two
/// in the place of dimension `pair`.
inline llvm::SmallVector<mlir::ReassociationIndices>
getGroupsWithPair(int64_t rank, int64_t pair) {
  llvm::SmallVector<mlir::ReassociationIndices> groups(rank);
  int64_t next = 0;
  for (auto [dim, group] : llvm::enumerate(groups)) {
    group.push_back(next++);
    if (static_cast<int64_t>(dim) == pair)
      group.push_back(next++);
  }
  return groups;
}

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_HEADGROUPS_H
