//===- ProgramState.h - State of Program and Executable ---------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DRIVER_PROGRAMSTATE_H
#define FOVEA_LIB_DRIVER_PROGRAMSTATE_H

#include "CompiledCode.h"

#include "fovea/Runtime/GpuDevice.h"
#include "fovea/Target/HostJIT.h"

#include <future>
#include <mutex>

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
    /// Returns 1 if `function` can use the operands where they are, see
    /// `tile-pack-operands`; null if it can use any.
    HostJIT::PackedFunction areAligned = nullptr;
    OtherSizes otherSizes;
  };

  /// Other code of the same text, which the first call that it is to serve
  /// compiles, unless it was begun before.
  class Version {
  public:
    Version(llvm::StringRef text, const CompileOptions &options)
        : text(text), options(options) {
      this->options.timing = nullptr;
    }

    /// Compiles it in a thread of its own.
    void begin();
    void waitIfBegun() const;

    /// Returns null where it cannot be compiled: see `getError`.
    const Executable *get();

    llvm::StringRef getError() const { return error; }

  private:
    std::string text, error;
    CompileOptions options;
    std::once_flag once;
    std::unique_ptr<Executable> executable;
    /// Is waited for before all else is destroyed.
    std::future<void> ahead;
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
  /// Code for other sizes; null if there is none. Where it cannot be compiled,
  /// this code serves all calls.
  std::array<std::unique_ptr<Version>, OtherSizes::kCodes> versions;
  /// Code that copies operands which this code cannot use; null if there are
  /// none.
  std::unique_ptr<Version> copyingVersion;

  /// Keeps what code for other sizes is compiled from, if it is to serve any
  /// call of functions, and begins to compile what serves that of the options.
  void keepVersions(llvm::StringRef text, const CompileOptions &options,
                    llvm::ArrayRef<OtherSizes> functions);

  /// The same for code that copies operands, once this code is linked. Waits
  /// for what was begun.
  void finishVersions(llvm::StringRef text, const CompileOptions &options);

  /// Returns the code for a call whose operands this code cannot use where they
  /// are.
  llvm::Expected<const Executable &> getCopying(size_t function) const;

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
