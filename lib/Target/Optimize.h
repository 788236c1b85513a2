//===- Optimize.h - Passes on LLVM IR ---------------------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_TARGET_OPTIMIZE_H
#define FOVEA_LIB_TARGET_OPTIMIZE_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/IR/PassManager.h"

namespace llvm {
class PassBuilder;
class TargetMachine;
} // namespace llvm

namespace fovea {

/// Runs the passes that `build` adds on `module`, with all analyses available
/// for `machine`.
void optimize(
    llvm::Module &module, llvm::TargetMachine &machine,
    llvm::function_ref<llvm::ModulePassManager(llvm::PassBuilder &)> build);

/// Returns LLVM's own passes of level 2 or, otherwise, 3.
llvm::ModulePassManager buildDefaultPasses(llvm::PassBuilder &builder,
                                           int level);

} // namespace fovea

#endif // FOVEA_LIB_TARGET_OPTIMIZE_H
