//===- CarryUses.h - Places in rings, computed a step ahead -----*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_TILETONVVM_CARRYUSES_H
#define FOVEA_LIB_CONVERSION_TILETONVVM_CARRYUSES_H

#include "mlir/IR/Operation.h"

namespace fovea::tile {

/// Rewrites loops within `root` whose products are of warp groups, after tile
/// ops are gone: what they compute of the numbers of uses that they carry
/// (slots, barriers, parities) they carry, too, computed in the iteration
/// before. Behind all products, and in front of the branch that follows them
/// where it does not depend on that, it runs while they are waited for; behind
/// the branch everything would wait for it. Where products are waited for
/// behind a branch it runs at the iteration's end, beside what is rounded.
void carryUses(mlir::Operation *root);

} // namespace fovea::tile

#endif // FOVEA_LIB_CONVERSION_TILETONVVM_CARRYUSES_H
