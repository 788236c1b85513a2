//===- ShortLengths.h - Lengths that have code of their own -----*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One kernel that serves all lengths has tiles of queries that are best for
// long sequences, and that short ones may fill badly: of 1024 queries tiles of
// 192 leave an eighth idle, and of 512 a ninth. So a module may have code for
// short lengths as well, and this says which calls it serves.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_ANALYSIS_SHORTLENGTHS_H
#define FOVEA_ANALYSIS_SHORTLENGTHS_H

#include "fovea/Analysis/ScheduleModel.h"
#include "fovea/Analysis/SizePlace.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace fovea {

/// The length that code for short lengths is made for.
inline constexpr int64_t kShortLength = 1024;

/// The calls of a function that code for short lengths serves.
struct ShortLengths {
  /// The places of the lengths of queries; the greatest of these decides. Where
  /// these are of all sequences that lie packed, so many `sequences`, their
  /// mean does.
  llvm::SmallVector<SizePlace, 2> places;
  std::optional<SizePlace> sequences;
  static constexpr int64_t kStep = 32, kLongest = 64 * kStep;
  /// Bit `i` is set if lengths from `i * kStep + 1` to `(i + 1) * kStep` are
  /// served.
  uint64_t steps = 0;

  bool contain(int64_t length) const {
    return length > 0 && length <= kLongest &&
           (steps >> ((length - 1) / kStep) & 1);
  }
  void add(int64_t length) { steps |= uint64_t(1) << ((length - 1) / kStep); }
};

/// Returns the calls of a function, whose attentions have no schedules yet,
/// that schedules for `kShortLength` serve faster than those for
/// `kUsualLength`, by the model; none where that cannot be told from sizes of
/// operands. The function is `usual`, and `forShort` as code for short lengths
/// has it: queries of a group's heads may be rows of one (`attn-pack-groups`).
/// Those that lie packed have other code only if a query has more rows there.
ShortLengths findShortLengths(mlir::func::FuncOp usual,
                              mlir::func::FuncOp forShort,
                              machine::TargetAttr target,
                              const ScheduleOptions &options);

} // namespace fovea

#endif // FOVEA_ANALYSIS_SHORTLENGTHS_H
