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
  /// Lengths are served in steps, which are smaller where tiles have few
  /// queries of each sequence: up to `kFine` by `kFineStep`, then by `kStep`.
  static constexpr int64_t kFineStep = 8, kFine = 256, kStep = 64,
                           kLongest = 2048;
  /// Bit `i` is set if the lengths of step `i` are served.
  uint64_t steps = 0;

  /// Returns the number of lengths in the step of `length`.
  static int64_t getStep(int64_t length) {
    return length <= kFine ? kFineStep : kStep;
  }
  bool contain(int64_t length) const {
    return length > 0 && length <= kLongest && (steps & getBit(length));
  }
  void add(int64_t length) { steps |= getBit(length); }

private:
  static uint64_t getBit(int64_t length) {
    int64_t step = length <= kFine
                       ? (length - 1) / kFineStep
                       : kFine / kFineStep + (length - kFine - 1) / kStep;
    return uint64_t(1) << step;
  }
};

/// Returns the calls of a function, whose attentions have no schedules yet,
/// that schedules for `kShortLength` serve faster than those for
/// `kUsualLength`, by the model; none where that cannot be told from sizes of
/// operands. The function is `usual`, and `forShort` as code for short lengths
/// has it: queries of a group's heads may be rows of one (`attn-pack-groups`).
ShortLengths findShortLengths(mlir::func::FuncOp usual,
                              mlir::func::FuncOp forShort,
                              machine::TargetAttr target,
                              const ScheduleOptions &options);

} // namespace fovea

#endif // FOVEA_ANALYSIS_SHORTLENGTHS_H
