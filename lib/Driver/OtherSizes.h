//===- OtherSizes.h - Calls that other code of a text serves ----*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DRIVER_OTHERSIZES_H
#define FOVEA_LIB_DRIVER_OTHERSIZES_H

#include "fovea/Analysis/FewRows.h"
#include "fovea/Analysis/FewTiles.h"
#include "fovea/Analysis/ShortLengths.h"

namespace fovea {

struct CompileOptions;

/// The calls of a function that codes for other sizes than the usual ones are
/// to serve, by the numbers of the codes.
struct OtherSizes {
  /// The numbers of the first code for few tiles, behind those for few rows,
  /// and of that for short lengths.
  static constexpr size_t kTiles = FewRows::kTypical.size(),
                          kShort = kTiles + FewTiles::kRows.size();
  static constexpr size_t kCodes = kShort + 1;

  FewRowsOfCodes fewRows;
  FewTilesOfCodes fewTiles;
  ShortLengths shortLengths;

  /// Returns true if a code serves any call.
  bool isNeeded(size_t code) const;

  /// Returns the code for a call with operands of these shapes; none if that is
  /// the usual one, as for wrong operands, with which it fails in any code.
  std::optional<size_t>
  choose(size_t numOperands,
         llvm::function_ref<llvm::ArrayRef<int64_t>(size_t)> getShape) const;

  /// Returns the options that a code is compiled with.
  static CompileOptions getOptions(size_t code, const CompileOptions &usual);
};

} // namespace fovea

#endif // FOVEA_LIB_DRIVER_OTHERSIZES_H
