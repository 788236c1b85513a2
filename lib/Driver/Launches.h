//===- Launches.h - Launches of the kernels of a module ---------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DRIVER_LAUNCHES_H
#define FOVEA_LIB_DRIVER_LAUNCHES_H

#include "fovea/Driver/Program.h"

namespace mlir {
class ModuleOp;
} // namespace mlir

namespace fovea {

/// Returns the launches in `lowered`, a module of level `gpu` that was made
/// from `graph`, in order.
llvm::SmallVector<KernelLaunch> findLaunches(mlir::ModuleOp lowered,
                                             mlir::ModuleOp graph);

} // namespace fovea

#endif // FOVEA_LIB_DRIVER_LAUNCHES_H
