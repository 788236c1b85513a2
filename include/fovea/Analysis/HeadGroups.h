//===- HeadGroups.h - Query heads that share keys and values ----*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_ANALYSIS_HEADGROUPS_H
#define FOVEA_ANALYSIS_HEADGROUPS_H

#include "fovea/Analysis/IndexMath.h"

namespace fovea {

/// Returns the number of query heads that read one KV head; 1 if there are no
/// heads.
inline mlir::OpFoldResult getHeadsPerKVHead(IndexMath &index,
                                            mlir::OpFoldResult heads,
                                            mlir::OpFoldResult kvHeads) {
  if (IndexMath::constantOf(kvHeads) == 0)
    return index.constant(1);
  return index.truncDiv(heads, index.max(kvHeads, index.constant(1)));
}

} // namespace fovea

#endif // FOVEA_ANALYSIS_HEADGROUPS_H
