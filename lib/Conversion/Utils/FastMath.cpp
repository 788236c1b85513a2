//===- FastMath.cpp - What may be inexact in computing floats -------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Conversion/Utils/FastMath.h"

using namespace mlir;

void fovea::addFastMath(Operation *op, arith::FastMathFlags flags) {
  auto math = cast<arith::ArithFastMathInterface>(op);
  flags = flags | math.getFastMathFlagsAttr().getValue();
  op->setAttr(math.getFastMathAttrName(),
              arith::FastMathFlagsAttr::get(op->getContext(), flags));
}
