//===- Dependence.h - What is computed from what ----------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_TILE_TRANSFORMS_DEPENDENCE_H
#define FOVEA_LIB_DIALECT_TILE_TRANSFORMS_DEPENDENCE_H

#include "mlir/IR/Value.h"

namespace fovea::tile {

/// Returns true if `value` is computed from `argument`, of a launch or of a
/// region in it, by operands of ops.
bool dependsOn(mlir::Value value, mlir::BlockArgument argument);

} // namespace fovea::tile

#endif // FOVEA_LIB_DIALECT_TILE_TRANSFORMS_DEPENDENCE_H
