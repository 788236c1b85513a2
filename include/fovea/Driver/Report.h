//===- Report.h - Strategies side by side -----------------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The textbook's comparison on the user's own graph and machine: the
// operations, traffic and memory of each strategy, the bound of the roofline,
// and the time that it takes.
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

/// Returns the median of a few warm calls, which is comparable with that of
/// others that are measured in turns with it. On a GPU operands are also in
/// `onDevice`.
llvm::Expected<double> measureTurn(const Executable &executable,
                                   size_t function,
                                   llvm::ArrayRef<TensorView> operands,
                                   const DeviceOperands *onDevice);

/// One way to compute a function: a strategy, or a treatment in the backward
/// pass of the probabilities of the forward pass.
struct ReportVariant {
  std::string name;
  const Program *program;
  size_t function;
  Strategy strategy;
};

/// The measured costs of a variant.
struct VariantReport {
  std::string name;
  Cost cost;
  /// The bound of the roofline in seconds: no kernel can be faster than its
  /// FLOPs at the machine's peak or its bytes at the machine's bandwidth.
  double rooflineSeconds = 0;
  int64_t temporaryBytes = 0;
  Timing timing;
};

struct Report {
  /// The threads or the GPU that were measured.
  std::string machine;
  MachineRates rates;
  std::vector<VariantReport> variants;
  /// The variant that the last one is compared with.
  size_t baseline = 0;

  /// Formats a table for people.
  std::string formatText() const;
  /// Formats the same numbers for programs: bytes, seconds, FLOPs.
  std::string formatJSON() const;
};

/// Returns name and rates of this machine, or of its GPU if the options are for
/// one. Takes a second or so the first time.
llvm::Expected<MachineRates> measureMachine(const CompileOptions &options);

/// Returns the rate that bounds a function's computations outside of tensor
/// cores.
double getPeak(const Signature &function, const MachineRates &rates);

/// Returns the least time that the kernels of a function can take, each at the
/// machine's peaks and bandwidth, in seconds.
double getRoofline(const Cost &cost, const Signature &function,
                   const MachineRates &rates);

/// Returns the variants of a function, one for every strategy.
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
