//===- ProgramState.h - State of Program and Executable ---------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DRIVER_PROGRAMSTATE_H
#define FOVEA_LIB_DRIVER_PROGRAMSTATE_H

#include "fovea/Driver/Program.h"
#include "fovea/Runtime/GpuDevice.h"
#include "fovea/Target/HostJIT.h"

namespace fovea {

class CallFrame;

struct Executable::State {
  /// The code behind a signature.
  struct Entry {
    /// Null where the signature has an obstacle.
    HostJIT::PackedFunction function = nullptr;
    /// Returns the number of a message and two sizes, see
    /// `outline-shape-checks`; null where there is nothing to check.
    HostJIT::PackedFunction checkShapes = nullptr;
    llvm::SmallVector<std::string, 0> messages;
  };

  llvm::SmallVector<Signature, 1> signatures;
  llvm::SmallVector<Entry, 1> entries;
  std::unique_ptr<HostJIT> jit;
  /// The kernels; null on the host.
  std::unique_ptr<cuda::Module> gpu;
  std::string ptx;
  Assembly assembly;
  llvm::SmallVector<std::string, 0> remarks;
  /// As in `setChecker`; null if there is none.
  std::unique_ptr<Executable> checker;

  /// Loads the kernels on this machine's GPU. Without an assembler the driver
  /// compiles them.
  llvm::Error loadKernels(const DeviceCode &code, const machine::GpuArch &arch,
                          mlir::TimingScope *timing);

  /// Adds operands in host memory, as copies if compiled code cannot read them
  /// where they are; the copies are returned and must outlive the frame.
  llvm::Expected<llvm::SmallVector<Tensor, 0>>
  addOperands(CallFrame &frame, size_t function,
              llvm::ArrayRef<TensorView> operands) const;

  /// Copies operands to the device, launches, and copies results back.
  llvm::Error callOnGpu(size_t function, llvm::ArrayRef<TensorView> operands,
                        llvm::SmallVectorImpl<Tensor> &results,
                        Usage *usage) const;
};

} // namespace fovea

#endif // FOVEA_LIB_DRIVER_PROGRAMSTATE_H
