//===- ShapeChecks.h - Names of outlined shape checks -----------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TRANSFORMS_SHAPECHECKS_H
#define FOVEA_TRANSFORMS_SHAPECHECKS_H

#include "llvm/ADT/StringRef.h"

#include <string>

namespace fovea {

/// Returns the name of the function that checks the sizes of a function's
/// operands.
inline std::string getShapeCheckName(llvm::StringRef function) {
  return (function + ".shapes").str();
}

} // namespace fovea

#endif // FOVEA_TRANSFORMS_SHAPECHECKS_H
