//===- Tune.h - The fastest schedule by measurement -------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The model chooses a schedule without running it. The autotuner runs those
// that the model considers valid, on the user's operands, and keeps what was
// fastest in the disk cache, where compilations of the same text for the same
// machine find it.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DRIVER_TUNE_H
#define FOVEA_DRIVER_TUNE_H

#include "fovea/Driver/Program.h"

namespace fovea {

/// A schedule that was tried.
struct TunedSchedule {
  std::string schedule;
  /// By the model, if it has a time for it.
  std::optional<double> predictedSeconds;
  /// Of the whole function; 0 if there is a problem.
  double seconds = 0;
  /// What is wrong with it; empty if nothing is.
  std::string problem;
};

/// The schedules of one attention; the first is the model's choice.
struct TunedAttention {
  unsigned line = 0;
  bool isBackward = false;
  /// The number of valid schedules, of which some were tried.
  size_t numValid = 0;
  std::vector<TunedSchedule> tried;
  size_t best = 0;
};

struct Tuning {
  std::vector<TunedAttention> attentions;
  /// The folder of the disk cache that keeps the best; empty if none does.
  std::string folder;

  /// Formats a table for people.
  std::string formatText() const;
  /// Formats the same numbers for programs.
  std::string formatJSON() const;
};

/// Measures the schedules of each attention of a function, or those `limit`
/// with the least predicted times, one attention after another, in turns. A
/// schedule whose results are not those of the model's choice is not taken.
/// Keeps the best. `options.schedules` are not read.
llvm::Expected<Tuning> tune(const Program &program, size_t function,
                            llvm::ArrayRef<TensorView> operands,
                            CompileOptions options, size_t limit);

/// Removes what `tune` has kept. Returns true if there was something.
bool untune(const Program &program, const CompileOptions &options);

} // namespace fovea

#endif // FOVEA_DRIVER_TUNE_H
