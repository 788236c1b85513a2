//===- ApartOps.h - Ops between which threads need not meet ---------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_LINALGTOGPU_APARTOPS_H
#define FOVEA_LIB_CONVERSION_LINALGTOGPU_APARTOPS_H

#include "fovea/Analysis/Memory.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <optional>
#include <vector>

namespace fovea {

/// What the threads of a block do without meeting in between: ops that
/// `emitBlockLoops` shares among them.
class ApartOps {
public:
  /// Returns true if threads may begin with `next` while others still do what
  /// was added.
  bool allow(mlir::linalg::LinalgOp next) const;

  /// Adds an op; returns false if it is not known what it does.
  bool add(mlir::linalg::LinalgOp op);

private:
  struct Access {
    MemoryUse use;
    /// The numbers of points along the loops, of which each thread does the
    /// same in every op that has as many; the memrefs of which each point
    /// accesses an element of its own, and nothing else of their memory.
    llvm::SmallVector<int64_t> points;
    llvm::SmallVector<mlir::Value> owned;
  };
  static std::optional<Access> getAccess(mlir::linalg::LinalgOp op);
  static bool areApart(const Access &a, const Access &b);

  std::vector<Access> accesses;
};

} // namespace fovea

#endif // FOVEA_LIB_CONVERSION_LINALGTOGPU_APARTOPS_H
