//===- RowLoops.h - One op as a loop over rows ------------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_LINALGTOGPU_ROWLOOPS_H
#define FOVEA_LIB_CONVERSION_LINALGTOGPU_ROWLOOPS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace fovea {

/// Replaces an op on memrefs by a loop over rows, each of which a block is to
/// compute: the op must be elementwise or sum along rows, some operand must
/// have an element for each of its points, and the elements of a row must be
/// neighbours. Null if not.
mlir::scf::ForallOp createRowLoop(mlir::OpBuilder &builder,
                                  mlir::linalg::LinalgOp op);

} // namespace fovea

#endif // FOVEA_LIB_CONVERSION_LINALGTOGPU_ROWLOOPS_H
