//===- fovea-opt.cpp - Runs Fovea's and MLIR's passes on a file -----------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Pipelines/Pipelines.h"
#include "fovea/Support/DebugLog.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  fovea::registerAllDialects(registry);
  mlir::registerAllPasses();
  fovea::registerFoveaPasses();
  fovea::registerDebugOptions();
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "Fovea's modular optimizer driver\n", registry));
}
