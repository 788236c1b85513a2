//===- ChainComparisons.h - Conjunctions in comparisons ---------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_TARGET_CHAINCOMPARISONS_H
#define FOVEA_LIB_TARGET_CHAINCOMPARISONS_H

namespace llvm {
class Module;
} // namespace llvm

namespace fovea {

/// Writes `a < b && c`, of integers, and the same with `||`, as PTX's one
/// instruction for it, `setp.lt.and`. LLVM has no pattern for it, and makes
/// `select(p && q, x, y)` two selects; ptxas finds it in neither form. A mask
/// of four comparisons takes five instructions an element instead of eight.
/// Comparisons that ptxas may fold stay apart: it loses some (ptxas 13.0).
void chainComparisons(llvm::Module &module);

} // namespace fovea

#endif // FOVEA_LIB_TARGET_CHAINCOMPARISONS_H
