//===- Report.h - Strategies side by side -----------------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The textbook's comparison on one's own graph and machine: what each strategy
// computes, moves and allocates, what the roofline allows, and what it takes.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DRIVER_REPORT_H
#define FOVEA_DRIVER_REPORT_H

#include "fovea/Driver/Program.h"

namespace fovea {

/// The median of several warm calls.
struct Timing {
  double seconds = 0;
  int runs = 0;
};

/// Calls a function for about half a second, at least five times.
llvm::Expected<Timing> measure(const Executable &executable, size_t function,
                               llvm::ArrayRef<TensorView> operands);

/// One way to compute a function: a strategy, or what the backward pass does
/// about the probabilities of the forward pass.
struct ReportVariant {
  std::string name;
  const Program *program;
  size_t function;
  Strategy strategy;
};

/// What a variant takes.
struct VariantReport {
  std::string name;
  Cost cost;
  /// No kernel can be faster than its FLOPs at the machine's peak or its bytes
  /// at the machine's bandwidth, in seconds.
  double rooflineSeconds = 0;
  int64_t temporaryBytes = 0;
  Timing timing;
};

struct Report {
  /// The threads or the GPU that it is of.
  std::string machine;
  MachineRates rates;
  std::vector<VariantReport> variants;
  /// The variant that the last one is compared with.
  size_t baseline = 0;

  /// A table for people.
  std::string formatText() const;
  /// The same numbers for programs: bytes, seconds, FLOPs.
  std::string formatJSON() const;
};

/// What this machine, or its GPU if the options are of one, is called and does.
/// Takes a second or so the first time.
llvm::Expected<MachineRates> measureMachine(const CompileOptions &options);

/// The rate that bounds what a function computes outside of tensor cores.
double getPeak(const Signature &function, const MachineRates &rates);

/// The least time that the kernels of a function can take, each at the
/// machine's peaks and bandwidth, in seconds.
double getRoofline(const Cost &cost, const Signature &function,
                   const MachineRates &rates);

/// A function by every strategy.
llvm::SmallVector<ReportVariant> getStrategies(const Program &program,
                                               size_t function);

/// Compiles, runs and models each variant on the same operands, and compares
/// the last with that of number `baseline`. `options.strategy` is not read.
llvm::Expected<Report> makeReport(llvm::ArrayRef<ReportVariant> variants,
                                  size_t baseline,
                                  llvm::ArrayRef<TensorView> operands,
                                  CompileOptions options);

} // namespace fovea

#endif // FOVEA_DRIVER_REPORT_H
