//===- ScoreGrowth.h - How scores change along the keys ---------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_ANALYSIS_SCOREGROWTH_H
#define FOVEA_LIB_ANALYSIS_SCOREGROWTH_H

#include "mlir/IR/Region.h"

namespace fovea {

/// How scores change from key to key, beside what products of queries and keys
/// add.
enum class Growth { None, Up, Down, Unknown };

/// Returns how scores change along the keys, if the score region turns their
/// positions into floats, as ALiBi does; else none.
Growth getGrowth(mlir::Region &score);

/// Returns by how much scores change from one key to the next, without what
/// products and tensors have to do with it, if that is a constant; else 0.
double getSlope(mlir::Region &score);

} // namespace fovea

#endif // FOVEA_LIB_ANALYSIS_SCOREGROWTH_H
