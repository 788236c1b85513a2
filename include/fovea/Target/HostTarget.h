//===- HostTarget.h - The machine that compiled code runs on ----*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TARGET_HOSTTARGET_H
#define FOVEA_TARGET_HOSTTARGET_H

#include "fovea/Dialect/Machine/IR/Machine.h"
#include "fovea/Support/Choices.h"

#include <optional>
#include <string>

namespace fovea {

/// The instructions that code for the host may use.
enum class HostArch {
  /// The best of the other values that this machine supports.
  Native,
  /// 64-byte vectors as AVX512, and AMX tiles of bf16.
  AMX,
  /// 64-byte vectors as AVX512, and dot products of bf16 (AVX512-BF16).
  AVX512BF16,
  /// 64-byte vectors: AVX-512 F, BW, DQ, VL (x86-64-v4).
  AVX512,
  /// 32-byte vectors: AVX2, FMA, F16C (x86-64-v3).
  AVX2,
  /// The instructions of every processor of the family.
  Generic,
};

Choices<HostArch> getHostArchChoices();

/// Returns `arch`, or the one that Native stands for. Code for another
/// processor `cpu`, unless it is empty, uses no products of bf16 unless `arch`
/// says so.
HostArch resolveArch(HostArch arch, llvm::StringRef cpu = "");

/// LLVM's name of a processor, and the features that code may use beside its
/// own (or may not use).
struct HostProcessor {
  std::string triple;
  std::string cpu;
  std::string features;
};

/// Returns the processor to generate code for. `cpu`, one of LLVM's names,
/// overrides the one that `arch` implies.
HostProcessor getHostProcessor(HostArch arch, llvm::StringRef cpu = "");

/// Returns true if code for `arch` runs on this machine.
bool isSupportedHere(HostArch arch);

/// Rates of the host, with the threads that kernels use, or of a GPU.
struct MachineRates {
  /// Main memory, read and written, in GB/s.
  double bandwidth;
  /// Multiply-adds in f32 and f64, in GFLOP/s.
  double peakF32;
  double peakF64;
  /// Products of f16 and bf16 by tensor cores, or of bf16 by AMX tiles or dot
  /// products, in GFLOP/s; 0 where there are none.
  double peakMatrix = 0;
  /// The types of those products, for a reader.
  const char *matrixTypes = "f16 and bf16";
};

/// Returns the model of this machine, with code limited to `arch`. Without
/// `rates` they are guesses from clock, cores and vector width.
machine::TargetAttr detectHost(mlir::MLIRContext *context,
                               HostArch arch = HostArch::Native,
                               const MachineRates *rates = nullptr);

/// Returns a text that names everything that `detectHost` without rates follows
/// from, except the clock, which changes from moment to moment.
std::string identifyHost(HostArch arch);

/// Returns true if dot products of bf16, which the processor has, multiply at
/// least half as fast again as vectors of f32: on some processors they are
/// slower. Takes about a millisecond.
bool areDotProductsFaster();

/// Measures the rates, in about half a second; later calls with the same
/// number of threads return the same numbers.
MachineRates measureHost();

} // namespace fovea

#endif // FOVEA_TARGET_HOSTTARGET_H
