//===- Program.h - Compile a text, look at its levels, run it ---*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the tools, the C API and Python are made of. Errors are values whose
// message is fit for the user. All functions may be called from several
// threads at once, on the same object too.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DRIVER_PROGRAM_H
#define FOVEA_DRIVER_PROGRAM_H

#include "fovea/Analysis/CostModel.h"
#include "fovea/Driver/Tensor.h"
#include "fovea/Pipelines/Pipelines.h"
#include "fovea/Runtime/GpuRuntime.h"
#include "fovea/Target/HostCodegen.h"
#include "fovea/Target/Ptxas.h"

namespace fovea {

/// One operand or result of a function.
struct ValueType {
  /// As the text names it, without the `%`; empty for a result.
  std::string name;
  DType type;
  /// Negative where dynamic.
  llvm::SmallVector<int64_t, 4> shape;
  /// A number instead of a tensor; its shape is empty.
  bool scalar = false;
};

struct Signature {
  std::string name;
  llvm::SmallVector<ValueType, 4> operands;
  llvm::SmallVector<ValueType, 2> results;
  /// Why the function cannot be called; empty if it can.
  std::string obstacle;
};

/// `f32 tensor of shape 2x16x?x64`, `i64 number`.
std::string formatType(const ValueType &type);

/// `operand 1 (%k) of @attend`.
std::string formatOperand(const Signature &function, size_t index);

/// The index of the function `name`; if the name is empty, of the only one. An
/// error if there is no such function or it cannot be called.
llvm::Expected<size_t> findFunction(llvm::ArrayRef<Signature> functions,
                                    llvm::StringRef name);

/// The strategy named `unfused`, `three-pass`, `two-pass` or `fused`, or none.
std::optional<Strategy> parseStrategy(llvm::StringRef name);
llvm::StringRef getName(Strategy strategy);

/// The policy named `auto`, `always` or `never`, or none.
std::optional<attn::Recomputation> parseRecomputation(llvm::StringRef name);

/// The GPU that a target names, such as `sm_80`; null for `host`; for `gpu` the
/// best for this machine's GPU, an error if there is none.
llvm::Expected<const machine::GpuArch *> parseTarget(llvm::StringRef name);

struct CompileOptions {
  Strategy strategy = Strategy::Fused;
  /// The GPU to compile for; the host if there is none.
  const machine::GpuArch *gpu = nullptr;
  HostArch arch = HostArch::Native;
  /// A processor by LLVM's name, instead of the one that `arch` implies.
  std::string cpu;
  /// See `CodegenOptions`.
  int optLevel = 1;
  /// Results are the same bits in every run, at a cost: blocks of a GPU take
  /// turns to add to what others add to, or add in integers. A host's are the
  /// same always.
  bool deterministic = false;
};

/// What a simulation chooses freely.
struct SimulateOptions {
  /// The order of what may happen in any order, see `SimulationOptions`.
  uint64_t seed = 0;
  /// How many seeds to run, one after another; the results must be the same.
  uint64_t seeds = 1;
};

/// The level of the text named `attn`, `fused`, `tiled`, `tile`, `gpu`, `nvvm`
/// or `llvm`; an error if the target has no such level. None for other names.
llvm::Expected<std::optional<Level>> parseLevel(llvm::StringRef name,
                                                const CompileOptions &options);

/// Code for a GPU.
struct DeviceCode {
  std::string ptx;
  /// The kernels, in the order that the host's code numbers them in.
  std::vector<std::string> kernels;
};

/// Where the host's code starts a kernel.
struct KernelLaunch {
  std::string kernel;
  /// Of the graph, what the kernel does the work of, or a part of it: the line,
  /// 0 if there is none, and the name of the op there, if there is one.
  unsigned line = 0;
  std::string op;
  /// Of the grid, and of a block; none where they are known at run time only.
  std::optional<int64_t> blocks, threads, dynamicSharedBytes;
  /// Whether a condition decides, at run time, if it is started, and whether it
  /// may be more than once.
  bool isConditional = false, isInLoop = false;
  /// Whether the kernel moves elements, or sets them, and computes nothing.
  bool isCopy = false, isFill = false;
};

struct CompiledCode;

/// Compiled functions in memory, ready to run on this machine.
class Executable {
public:
  /// What it consists of, for the driver's own files.
  struct State;

  /// Compiles the functions of a text, as `Program` does; `name` is for error
  /// messages. What the disk cache has of the same text and options is loaded
  /// without the text being parsed.
  static llvm::Expected<std::unique_ptr<Executable>>
  compile(llvm::StringRef text, llvm::StringRef name,
          const CompileOptions &options);

  /// An error if this machine cannot run what is compiled with these options.
  static llvm::Error checkMachine(const CompileOptions &options);

  /// Links code, and loads its kernels on this machine's GPU if it is for one.
  static llvm::Expected<std::unique_ptr<Executable>>
  load(CompiledCode code, const machine::GpuArch *gpu);

  ~Executable();

  llvm::ArrayRef<Signature> getFunctions() const;

  /// Lets every call run `checker` first, of the same functions, and fail where
  /// that fails. What is launched on operands in the device's memory cannot be
  /// checked, and is an error from then on.
  void setChecker(std::unique_ptr<Executable> checker);

  /// What is not as good as it could be, a line each: what the compiler gave
  /// up, and what is amiss on this machine.
  llvm::ArrayRef<std::string> getRemarks() const;

  /// The kernels as PTX; empty on the host.
  llvm::StringRef getPTX() const;

  /// The kernels as they were loaded, with what each needs. Without an
  /// assembler there is no machine code, but what the driver says of its own.
  const Assembly &getAssembly() const;

  /// Memory that a call allocated.
  struct Usage {
    /// The most that was live at one time, in bytes, without the results; on a
    /// GPU of its memory.
    int64_t temporaryBytes = 0;
  };

  /// Calls a function. Operands are only read. One whose elements do not lie
  /// next to each other along the last dimension is copied first, any other is
  /// used where it is. A number is given as a tensor of rank 0. The error has
  /// the code `invalid_argument` where the operands are to blame.
  llvm::Error call(size_t function, llvm::ArrayRef<TensorView> operands,
                   llvm::SmallVectorImpl<Tensor> &results,
                   Usage *usage = nullptr) const;

  /// The GPU that functions run on; null on the host, where the functions below
  /// must not be called.
  cuda::Device *getDevice() const;

  /// Calls a function on operands in the device's memory, in stream order and
  /// without waiting. Elements must lie next to each other along the last
  /// dimension and be aligned to their size. Results go to the memory that
  /// `results` names, or to new memory, in row-major order; their shapes are
  /// appended to `shapes` one after another.
  llvm::Error launch(size_t function, llvm::ArrayRef<TensorView> operands,
                     cuda::StreamHandle stream,
                     llvm::MutableArrayRef<cuda::ResultBuffer> results,
                     llvm::SmallVectorImpl<int64_t> &shapes) const;

  /// The time of one launch by the device's clock in seconds: the median of
  /// warm launches of some 50 ms in all. Operands are in host memory.
  llvm::Expected<double> measureLaunch(size_t function,
                                       llvm::ArrayRef<TensorView> operands,
                                       int &launches) const;

private:
  explicit Executable(std::unique_ptr<State> state);
  std::unique_ptr<State> state;
};

/// A module of functions on tensors.
class Program {
public:
  /// Parses and verifies a text; `name` is for its error messages.
  static llvm::Expected<std::unique_ptr<Program>> parse(llvm::StringRef text,
                                                        llvm::StringRef name);
  ~Program();

  /// The public functions that have a body.
  llvm::ArrayRef<Signature> getFunctions() const;

  /// The text of a module with the gradients of a function in the place of its
  /// functions, see `buildGradientPipeline`. Which function is not read of the
  /// options. With locations, what is compiled from the text refers to lines of
  /// this program's.
  llvm::Expected<std::string> differentiate(size_t function,
                                            GradientOptions options,
                                            bool locations = false) const;

  /// The shapes of a function's results for operands of these shapes; none for
  /// a result of which a size depends on data.
  llvm::SmallVector<std::optional<llvm::SmallVector<int64_t>>>
  inferResultShapes(size_t function,
                    llvm::ArrayRef<llvm::SmallVector<int64_t>> shapes) const;

  /// What the last of the functions below gave up, a line each, once.
  llvm::SmallVector<std::string, 0> takeRemarks() const;

  /// The module at a level, as text.
  llvm::Expected<std::string> print(Level level,
                                    const CompileOptions &options) const;

  /// The kernels for a GPU, as PTX.
  llvm::Expected<DeviceCode> emitPTX(const CompileOptions &options) const;

  /// The kernels for a GPU, assembled for the device that is there, or else for
  /// the arch of the options, with the resources that they need. What a kernel
  /// of ours must not make the assembler say is an error.
  llvm::Expected<Assembly> assemble(const CompileOptions &options) const;

  /// Where the host's code starts those kernels, in order.
  llvm::Expected<llvm::SmallVector<KernelLaunch>>
  findLaunches(const CompileOptions &options) const;

  /// Machine code for the host.
  llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
  emit(CodeKind kind, const CompileOptions &options) const;

  /// Machine code, loaded; taken from the disk cache where it has the same
  /// text with the same options.
  llvm::Expected<std::unique_ptr<Executable>>
  compile(const CompileOptions &options) const;

  /// Calls a function as compiled for a GPU, or with the programs of thread
  /// blocks that it has already, on the tile interpreter: slow, but it needs no
  /// GPU and finds what a GPU would do wrong silently. Operands are as those of
  /// `Executable::call`.
  llvm::Error simulate(size_t function, llvm::ArrayRef<TensorView> operands,
                       const CompileOptions &options,
                       const SimulateOptions &choices,
                       llvm::SmallVectorImpl<Tensor> &results) const;

  /// What a call of a function with operands of these shapes computes and
  /// moves, kernel by kernel, and how long that takes by the model of this
  /// machine, or of the options' GPU, with these rates.
  llvm::Expected<Cost>
  estimate(size_t function, llvm::ArrayRef<llvm::SmallVector<int64_t>> shapes,
           const CompileOptions &options, const MachineRates &rates) const;

  /// The reference: the graph as written, evaluated by scalar loops. Results
  /// that are floating-point tensors have the type f64 unless the options say
  /// otherwise; floating-point operands have it if they are `wide`, as one who
  /// moves them by small steps wants.
  llvm::Expected<std::unique_ptr<Executable>>
  compileReference(const ReferenceOptions &options = {},
                   bool wideOperands = false) const;

  /// How far from its reference each result of a function may be, relative to
  /// its largest magnitude, see `deriveErrorBounds`.
  llvm::Expected<llvm::SmallVector<double>> getErrorBounds(size_t index) const;

  /// Which operands of a function are summed over, see `findSummedOperands`.
  llvm::Expected<llvm::SmallVector<bool>> getSummedOperands(size_t index) const;

  /// The graph as written, in its own types, with a check of every index and
  /// divisor that it computes: calls fail where one is out of bounds or 0.
  llvm::Expected<std::unique_ptr<Executable>> compileChecked() const;

private:
  struct State;
  explicit Program(std::unique_ptr<State> state);
  std::unique_ptr<State> state;
};

} // namespace fovea

#endif // FOVEA_DRIVER_PROGRAM_H
