//===- GpuArch.h - The GPUs that code can be made for -----------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DIALECT_MACHINE_IR_GPUARCH_H
#define FOVEA_DIALECT_MACHINE_IR_GPUARCH_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <string>

namespace fovea::machine {

/// The number of threads in a warp.
inline constexpr int64_t kWarpSize = 32;
/// The number of warps in a warp group, which share a `wgmma` and a
/// `setmaxnreg`.
inline constexpr int64_t kGroupWarps = 4;
/// The largest number of threads in a block.
inline constexpr int64_t kLargestBlock = 1024;
/// The largest number of 32-bit registers of a thread.
inline constexpr int64_t kLargestThread = 255;
/// The largest number of blocks along a grid's first dimension.
inline constexpr int64_t kLargestGrid = (int64_t(1) << 31) - 1;
/// Bytes of shared memory that a block can have without opting in to more.
inline constexpr int64_t kDefaultSharedMemory = 48 << 10;
/// Bytes of shared memory that a block takes beyond what it asks for.
inline constexpr int64_t kReservedSharedMemory = 1024;

/// Returns the registers of each of `threads` threads that share `registers`
/// equally, as ptxas assigns them: in multiples of 8, but at most `most`.
int64_t getEqualShare(int64_t registers, int64_t threads,
                      int64_t most = kLargestThread);

/// The least and the most that `setmaxnreg` gives a thread.
inline constexpr int64_t kFewestRoleRegisters = 24;
inline constexpr int64_t kMostRoleRegisters = 240;

/// Registers of each thread after roles have redistributed them; `widen` is 0
/// where no role widens.
struct RoleRegisters {
  int64_t compute;
  int64_t service;
  int64_t widen;
};

/// Returns how a block that occupies a multiprocessor alone divides its
/// `registers` among `warps` warps that compute, one warp group that serves
/// them, and `wideners` warps that widen tiles, by `setmaxnreg` (PTX ISA
/// 9.7.19.5). Returns nullopt if it does not: a single warp group beside the
/// one that serves it has enough from the start, and warps that do not form
/// whole groups cannot use `setmaxnreg`.
std::optional<RoleRegisters> dealRegisters(int64_t registers, int64_t warps,
                                           int64_t wideners = 0);

/// A kind of GPU that code can be made for: the features of its instruction
/// set, and the size and speed of a typical device. The table in GpuArch.cpp
/// has an entry for each.
struct GpuArch {
  /// The name in NVIDIA's tools and LLVM, such as `sm_90a`, and its family.
  llvm::StringLiteral name;
  llvm::StringLiteral family;

  /// The compute capability that code is for. Later devices also run the code,
  /// unless it `isExclusive` (the `a` in NVIDIA's names).
  int major;
  int minor;
  bool isExclusive = false;
  /// The version of PTX that kernels are written in, such as 80 for 8.0: the
  /// oldest that knows this GPU, and no older than the version that the oldest
  /// driver which the runtime accepts understands.
  int ptxVersion = 80;

  /// Products by warp groups, and redistribution of registers among roles
  /// (`wgmma`, PTX ISA 9.7.15; `setmaxnreg`, 9.7.19.5).
  bool hasWarpGroups = false;
  /// Copies of whole tiles that count bytes at barriers (the tensor memory
  /// accelerator: `cp.async.bulk.tensor`, PTX ISA 9.7.9.27.1; `mbarrier`).
  bool hasBulkCopies = false;

  /// The number of threads that a multiprocessor can run at once.
  int64_t threadsPerCore;
  int64_t registersPerCore = 65536;
  /// The most bytes of shared memory of a block, and of a multiprocessor.
  int64_t sharedPerBlock;
  int64_t sharedPerCore;
  /// The typical device: multiprocessors, bytes of L2 cache, main memory in
  /// MB/s, f32 multiply-adds and tensor core products in GFLOP/s.
  int64_t cores;
  int64_t level2;
  int64_t bandwidth;
  int64_t peak;
  int64_t matrixPeak;

  /// Stores of 8x8 matrices (`stmatrix`, PTX ISA 9.7.14.5.16), prefetches of
  /// lines by LLVM's instruction, and kernels that start before the previous
  /// one ends (`griddepcontrol`, PTX ISA 9.7.13.13).
  bool hasMatrixStores() const { return major >= 9; }
  bool hasPrefetch() const { return major >= 9; }
  bool hasDependentLaunch() const { return major >= 9; }
  /// Clusters of blocks that reach each other's shared memory (PTX ISA 2.2.1).
  bool hasClusters() const { return major >= 9; }

  static llvm::ArrayRef<GpuArch> getAll();

  /// Returns the arch with this name, or null.
  static const GpuArch *find(llvm::StringRef name);

  /// Returns the best arch for a device of this compute capability; an error if
  /// there is none.
  static llvm::Expected<const GpuArch *> select(int major, int minor);

  /// Returns the names of all archs, as a list for people:
  /// `sm_80, sm_89 or sm_90a`. The list starts with `first`.
  static std::string listNames(llvm::ArrayRef<llvm::StringRef> first = {});

  /// Returns the chip to assemble PTX of this arch for, so that a device of
  /// this compute capability runs it: machine code of sm_80 does not run on
  /// later devices, but its PTX does. Returns an error if the device cannot run
  /// code of this arch.
  llvm::Expected<std::string> getAssemblyChip(int deviceMajor,
                                              int deviceMinor) const;
};

} // namespace fovea::machine

#endif // FOVEA_DIALECT_MACHINE_IR_GPUARCH_H
