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

/// Threads of a warp.
inline constexpr int64_t kWarpSize = 32;
/// Warps of a warp group, which share a `wgmma` and a `setmaxnreg`.
inline constexpr int64_t kGroupWarps = 4;
/// Threads that a block can have.
inline constexpr int64_t kLargestBlock = 1024;
/// Registers, of 32 bits, that a thread can have.
inline constexpr int64_t kLargestThread = 255;
/// Blocks that a grid can have along its first dimension.
inline constexpr int64_t kLargestGrid = (int64_t(1) << 31) - 1;
/// Shared memory that a block can have without asking for more, in bytes.
inline constexpr int64_t kDefaultSharedMemory = 48 << 10;
/// Shared memory that a block takes beyond what it asks for, in bytes.
inline constexpr int64_t kReservedSharedMemory = 1024;

/// Registers of each of `threads` threads that share `registers` equally, as
/// ptxas deals them out, in multiples of 8, but at most `most`.
int64_t getEqualShare(int64_t registers, int64_t threads,
                      int64_t most = kLargestThread);

/// The least and the most that `setmaxnreg` gives a thread.
inline constexpr int64_t kFewestRoleRegisters = 24;
inline constexpr int64_t kMostRoleRegisters = 240;

/// Registers of each thread after roles have dealt them out anew.
struct RoleRegisters {
  int64_t compute;
  int64_t service;
};

/// How a block that has a multiprocessor to itself deals out its `registers` to
/// `warps` warps that compute and a warp group that serves them, by
/// `setmaxnreg` (PTX ISA 9.7.19.5); nullopt: a lone group has enough from the
/// start, and warps that are no whole groups cannot.
std::optional<RoleRegisters> dealRegisters(int64_t registers, int64_t warps);

/// A kind of GPU that code can be made for: what its instruction set has, and
/// how large and fast the device is that is typical of it. The table in
/// GpuArch.cpp has an entry for each.
struct GpuArch {
  /// As NVIDIA's tools and LLVM call it, such as `sm_90a`, and its family.
  llvm::StringLiteral name;
  llvm::StringLiteral family;

  /// The compute capability that code is for. Later devices run the code, too,
  /// unless it `isExclusive`: NVIDIA's `a`.
  int major;
  int minor;
  bool isExclusive;
  /// The version of PTX that kernels are written in, such as 80 for 8.0: the
  /// oldest that knows this GPU, and at least what the oldest driver that the
  /// runtime accepts understands.
  int ptxVersion;

  /// Products by warp groups, and registers dealt out anew to roles (`wgmma`,
  /// PTX ISA 9.7.15; `setmaxnreg`, 9.7.19.5).
  bool hasWarpGroups;
  /// Copies of whole tiles that count bytes at barriers (the tensor memory
  /// accelerator: `cp.async.bulk.tensor`, PTX ISA 9.7.9.27.1; `mbarrier`).
  bool hasBulkCopies;

  /// Threads that a multiprocessor can run at once.
  int64_t threadsPerCore;
  int64_t registersPerCore;
  /// Shared memory of a block at most, and of a multiprocessor, in bytes.
  int64_t sharedPerBlock;
  int64_t sharedPerCore;
  /// The typical device: multiprocessors, bytes of L2 cache, main memory in
  /// MB/s, multiply-adds in f32 and tensor cores' products in GFLOP/s.
  int64_t cores;
  int64_t level2;
  int64_t bandwidth;
  int64_t peak;
  int64_t matrixPeak;

  /// Stores of 8x8 matrices (`stmatrix`, PTX ISA 9.7.14.5.16), prefetches of
  /// lines as LLVM has them, and kernels that start before the one in front of
  /// them ends (`griddepcontrol`, PTX ISA 9.7.13.13).
  bool hasMatrixStores() const { return major >= 9; }
  bool hasPrefetch() const { return major >= 9; }
  bool hasDependentLaunch() const { return major >= 9; }

  static llvm::ArrayRef<GpuArch> getAll();

  /// The arch with this name, or null.
  static const GpuArch *find(llvm::StringRef name);

  /// The best arch for a device of this compute capability; an error if there
  /// is none.
  static llvm::Expected<const GpuArch *> select(int major, int minor);

  /// The names of all, as a list for people: `sm_80, sm_89 or sm_90a`. `first`
  /// go in front of them.
  static std::string listNames(llvm::ArrayRef<llvm::StringRef> first = {});

  /// What to assemble PTX of this arch for, so that a device of this compute
  /// capability runs it: machine code of sm_80 is no code for later devices,
  /// but its PTX is. An error if the device cannot run code of this arch.
  llvm::Expected<std::string> getAssemblyChip(int deviceMajor,
                                              int deviceMinor) const;
};

} // namespace fovea::machine

#endif // FOVEA_DIALECT_MACHINE_IR_GPUARCH_H
