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

/// Replaces an op on memrefs by a loop over rows, if it has rows that a block
/// is for: the op is elementwise or sums along rows, some operand has an
/// element for each of its points, and the elements of a row are neighbours.
/// Null if not.
mlir::scf::ForallOp createRowLoop(mlir::OpBuilder &builder,
                                  mlir::linalg::LinalgOp op);

} // namespace fovea

#endif // FOVEA_LIB_CONVERSION_LINALGTOGPU_ROWLOOPS_H
