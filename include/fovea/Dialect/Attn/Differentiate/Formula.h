//===- Formula.h - Formulas as ops ------------------------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DIALECT_ATTN_DIFFERENTIATE_FORMULA_H
#define FOVEA_DIALECT_ATTN_DIFFERENTIATE_FORMULA_H

#include "fovea/Analysis/Formula.h"

namespace fovea::attn::differentiate {
using fovea::convertFloats;
using fovea::Formula;
} // namespace fovea::attn::differentiate

#endif // FOVEA_DIALECT_ATTN_DIFFERENTIATE_FORMULA_H
