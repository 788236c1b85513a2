//===- Program.h - Compile a text, print its levels, run it -----*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The classes that the tools, the C API and Python are built on. Errors are
// values whose message is fit for the user. All functions may be called from
// several threads at once, on the same object also.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DRIVER_PROGRAM_H
#define FOVEA_DRIVER_PROGRAM_H

#include "fovea/Analysis/CostModel.h"
#include "fovea/Analysis/ScheduleModel.h"
#include "fovea/Driver/Tensor.h"
#include "fovea/Pipelines/Pipelines.h"
#include "fovea/Runtime/GpuRuntime.h"
#include "fovea/Target/HostCodegen.h"
#include "fovea/Target/Ptxas.h"

namespace mlir {
class TimingScope;
} // namespace mlir

namespace fovea {

/// One operand or result of a function.
struct ValueType {
  /// The name in the text, without the `%`; empty for a result.
  std::string name;
  DType type;
  /// Sizes; negative where dynamic.
  llvm::SmallVector<int64_t, 4> shape;
  /// True for a number instead of a tensor; its shape is empty.
  bool scalar = false;
  /// True for an operand that calls update in its memory.
  bool writable = false;
};

struct Signature {
  std::string name;
  llvm::SmallVector<ValueType, 4> operands;
  llvm::SmallVector<ValueType, 2> results;
  /// The reason why the function cannot be called; empty if it can.
  std::string obstacle;
};

/// Formats a type: `f32 tensor of shape 2x16x?x64`, `i64 number`.
std::string formatType(const ValueType &type);

/// Formats an operand: `operand 1 (%k) of @attend`.
std::string formatOperand(const Signature &function, size_t index);

/// The operands of a call with copies of those that it updates.
struct OwnOperands {
  std::vector<Tensor> copies;
  llvm::SmallVector<TensorView> views;
};

/// Copies the operands that `function` updates.
llvm::Expected<OwnOperands> copyWritable(const Signature &function,
                                         llvm::ArrayRef<TensorView> operands);

/// Returns the index of the function `name` or, if the name is empty, of the
/// only one. An error if there is no such function or it cannot be called.
llvm::Expected<size_t> findFunction(llvm::ArrayRef<Signature> functions,
                                    llvm::StringRef name);

/// Returns the GPU that a target names, such as `sm_80`; null for `host`; for
/// `gpu` the best one for this machine's GPU, or an error if it has none.
llvm::Expected<const machine::GpuArch *> parseTarget(llvm::StringRef name);

using ScheduleList = llvm::SmallVector<std::string, 0>;

struct CompileOptions {
  Strategy strategy = Strategy::Fused;
  /// The GPU to compile for; the host if there is none.
  const machine::GpuArch *gpu = nullptr;
  HostArch arch = HostArch::Native;
  /// A processor by LLVM's name, instead of the one that `arch` implies.
  std::string cpu;
  /// As in `CodegenOptions`.
  int optLevel = 1;
  /// True if results must have the same bits in every run, at a cost: blocks of
  /// a GPU take turns to add to sums that others add to, or add in integers. A
  /// host's results always have the same bits.
  bool deterministic = false;
  /// True if score regions never use a GPU's approximate functions
  /// (`attn-approximate`), tensor cores never multiply parts of f32, and a
  /// host's powers of two for 16-bit types are those for f32.
  bool exactFunctions = false;
  /// The lengths that a GPU's dynamic ones are taken for where schedules are
  /// chosen. 0: those that are usual, and code for short lengths beside it,
  /// which is compiled by the first call that it serves.
  int64_t typicalLength = 0;
  /// The rows of a head of all sequences that a GPU's dynamic batch is taken to
  /// have where schedules are chosen: queries, or those of a group's heads. 0:
  /// not few, and code for few beside it, which is compiled by the first call
  /// that it serves, unless there is a typical length.
  int64_t typicalRows = 0;
  /// The rows of a tile of queries in code for calls that have few tiles. 0:
  /// what is usual, and code for few beside it, as for few rows.
  int64_t tileRows = 0;
  /// True if code for calls has kernels that copy operands which a GPU's TMA
  /// cannot address. Else only a call that needs them compiles them.
  bool copiesOperands = false;
  /// The schedules of the module's attentions that have none, in their order,
  /// as text; the model's where one is empty, or all if the list is. Without a
  /// list, those that `tune` has kept, if any.
  std::optional<ScheduleList> schedules;
  /// The shapes of the operands of a call of the only function, which will
  /// follow: what serves such calls is compiled at the same time. None: the
  /// first call that needs it compiles it.
  llvm::SmallVector<llvm::SmallVector<int64_t>> callShapes;
  /// The timer that the times of the phases are parts of, if any.
  mlir::TimingScope *timing = nullptr;

  /// Returns what compiles for `gpu` up to a level.
  GpuOptions getGpuOptions(Level level) const {
    bool isForShort = typicalLength && typicalLength < kUsualLength;
    return {strategy,      level,          gpu,
            deterministic, exactFunctions, typicalLength,
            typicalRows,   tileRows,       typicalRows || isForShort};
  }

  /// Returns what schedules of attention are chosen by.
  ScheduleOptions getScheduleOptions() const {
    return {getPasses(strategy), exactFunctions, typicalLength, typicalRows,
            tileRows};
  }
};

/// The free choices of a simulation.
struct SimulateOptions {
  /// Selects an order of operations that may happen in any order, see
  /// `SimulationOptions`.
  uint64_t seed = 0;
  /// The number of seeds to run, one after another; the results must be the
  /// same.
  uint64_t seeds = 1;
};

/// Returns the level named `name`; none for code: `asm` and `obj` of a host,
/// `ptx` and `cubin` of a GPU. An error if the target has no such level.
llvm::Expected<std::optional<Level>> parseLevel(llvm::StringRef name,
                                                const CompileOptions &options);

/// Code for a GPU.
struct DeviceCode {
  std::string ptx;
  /// The kernels, in the order in which the host's code numbers them.
  std::vector<std::string> kernels;
};

/// A place where the host's code starts a kernel.
struct KernelLaunch {
  std::string kernel;
  /// The place in the graph of the op whose work, or a part of whose work, the
  /// kernel does: the line, 0 if there is none, and the op's name, if there is
  /// one.
  unsigned line = 0;
  std::string op;
  /// Sizes of the grid and of a block, and dynamic shared memory; none where
  /// they are known at run time only.
  std::optional<int64_t> blocks, threads, dynamicSharedBytes;
  /// True if a condition decides at run time whether the kernel is started;
  /// true if it may be started more than once.
  bool isConditional = false, isInLoop = false;
  /// True if the kernel only moves elements, or only sets them.
  bool isCopy = false, isFill = false;
};

class CacheKey;
struct CompiledCode;
struct DeviceOperands;

/// The schedules of one attention.
struct ScheduleChoices {
  /// The function that computes it, and its place in the text: the line, 0 if
  /// there is none.
  std::string function;
  unsigned line = 0;
  bool isBackward = false;
  struct Choice {
    std::string schedule;
    /// As in `ScheduleChoice`.
    std::optional<double> seconds;
  };
  /// As of `listSchedules`: the first is the model's choice.
  std::vector<Choice> choices;
};

/// Compiled functions in memory, ready to run on this machine.
class Executable {
public:
  /// The parts that it consists of, for the driver's own files.
  struct State;

  /// Compiles the functions of a text, as `Program` does; `name` is for error
  /// messages. If the disk cache has code for the same text and options, it is
  /// loaded without parsing the text.
  static llvm::Expected<std::unique_ptr<Executable>>
  compile(llvm::StringRef text, llvm::StringRef name,
          const CompileOptions &options);

  /// Returns an error if this machine cannot run code compiled with these
  /// options.
  static llvm::Error checkMachine(const CompileOptions &options);

  /// Links code, and loads its kernels on this machine's GPU if it is for one.
  static llvm::Expected<std::unique_ptr<Executable>>
  load(CompiledCode code, const machine::GpuArch *gpu,
       mlir::TimingScope *timing = nullptr);

  ~Executable();

  llvm::ArrayRef<Signature> getFunctions() const;

  /// Makes every call run `checker`, which has the same functions, first, and
  /// fail where `checker` fails. From then on, launches on operands in the
  /// device's memory, which cannot be checked, are an error.
  void setChecker(std::unique_ptr<Executable> checker);

  /// Returns remarks on what could be better, a line each: optimisations that
  /// the compiler gave up, and problems of this machine.
  llvm::ArrayRef<std::string> getRemarks() const;

  /// Returns what serves calls of a function with operands of these sizes:
  /// this, or on a GPU code for few rows, or for short lengths, if that is
  /// faster by the model, which is compiled now if it was not before. All kinds
  /// of calls go there by themselves, and from there, where TMA cannot address
  /// an operand, to code that copies it; PTX and assembly are those of this.
  const Executable &getVersion(size_t function,
                               llvm::ArrayRef<TensorView> operands) const;

  /// Returns the kernels as PTX; empty on the host.
  llvm::StringRef getPTX() const;

  /// Returns the kernels as they were loaded, with the resources that each
  /// needs. Without an assembler there is no machine code, only the driver's
  /// word on its own code.
  const Assembly &getAssembly() const;

  /// Memory that a call allocated.
  struct Usage {
    /// The most that was live at one time, in bytes, without the results; on a
    /// GPU, of its memory.
    int64_t temporaryBytes = 0;
  };

  /// Calls a function. Operands are only read. An operand whose elements do not
  /// lie next to each other along the last dimension is copied first; any other
  /// is used where it is. A number is given as a tensor of rank 0. The error
  /// has the code `invalid_argument` where the operands are to blame.
  llvm::Error call(size_t function, llvm::ArrayRef<TensorView> operands,
                   llvm::SmallVectorImpl<Tensor> &results,
                   Usage *usage = nullptr) const;

  /// Returns the GPU that functions run on; null on the host, where the
  /// functions below must not be called.
  cuda::Device *getDevice() const;

  /// Calls a function on operands in the device's memory, in stream order and
  /// without waiting. Elements must lie next to each other along the last
  /// dimension and be aligned to their size. Results go to the memory that
  /// `results` names, or to new memory, in row-major order; their shapes are
  /// appended to `shapes` one after another. The driver is asked whether memory
  /// and stream are the device's, unless the caller knows that they `areOwn`. A
  /// graph that captures the call may outlive this object.
  llvm::Error launch(size_t function, llvm::ArrayRef<TensorView> operands,
                     cuda::StreamHandle stream,
                     llvm::MutableArrayRef<cuda::ResultBuffer> results,
                     llvm::SmallVectorImpl<int64_t> &shapes,
                     bool areOwn = false) const;

  /// Copies operands to the device, for `measureLaunch` of any module with the
  /// same functions.
  llvm::Expected<std::shared_ptr<const DeviceOperands>>
  upload(size_t function, llvm::ArrayRef<TensorView> operands) const;

  /// Returns the time of one launch by the device's clock in seconds: the
  /// median of warm launches of some `milliseconds` in all.
  llvm::Expected<double> measureLaunch(size_t function,
                                       const DeviceOperands &operands,
                                       int &launches,
                                       double milliseconds = 50) const;

private:
  explicit Executable(std::unique_ptr<State> state);

  /// Loads what the disk cache has for `key`, the code of a text with these
  /// options; null if it has nothing.
  static llvm::Expected<std::unique_ptr<Executable>>
  loadKept(const CacheKey &key, llvm::StringRef text,
           const CompileOptions &options);

  /// Links the host's code, for kernels that `state` has loaded if there are
  /// any.
  static llvm::Expected<std::unique_ptr<Executable>>
  link(std::unique_ptr<State> state, CompiledCode code,
       mlir::TimingScope *timing);

  friend class Program;
  std::unique_ptr<State> state;
};

/// A module of functions on tensors.
class Program {
public:
  /// Parses and verifies a text; `name` is for its error messages.
  static llvm::Expected<std::unique_ptr<Program>> parse(llvm::StringRef text,
                                                        llvm::StringRef name);
  ~Program();

  /// Returns the text that was parsed.
  llvm::StringRef getText() const;

  /// Returns the public functions that have a body.
  llvm::ArrayRef<Signature> getFunctions() const;

  /// Returns the schedules that each attention without one may have, in their
  /// order; none for the strategy `Unfused`. The options' own are not read.
  llvm::Expected<std::vector<ScheduleChoices>>
  listSchedules(const CompileOptions &options) const;

  /// Returns the text of a module with the gradients of a function in the place
  /// of its functions, see `buildGradientPipeline`. The function's name in the
  /// options is not read. With locations, code compiled from the text refers to
  /// lines of this program's text.
  llvm::Expected<std::string> differentiate(size_t function,
                                            GradientOptions options,
                                            bool locations = false) const;

  /// Returns the shapes of a function's results for operands of these shapes;
  /// none for a result with a size that depends on data.
  llvm::SmallVector<std::optional<llvm::SmallVector<int64_t>>>
  inferResultShapes(size_t function,
                    llvm::ArrayRef<llvm::SmallVector<int64_t>> shapes) const;

  /// Returns the optimisations that the last call of a function below gave up,
  /// a line each, once.
  llvm::SmallVector<std::string, 0> takeRemarks() const;

  /// Returns the module at a level, as text.
  llvm::Expected<std::string> print(Level level,
                                    const CompileOptions &options) const;

  /// Returns the kernels for a GPU, as PTX.
  llvm::Expected<DeviceCode> emitPTX(const CompileOptions &options) const;

  /// Returns the kernels for a GPU, assembled for the device that is there, or
  /// else for the arch of the options, with the resources that they need.
  /// Messages that our kernels must not cause in the assembler are errors.
  llvm::Expected<Assembly> assemble(const CompileOptions &options) const;

  /// Returns the places where the host's code starts those kernels, in order.
  llvm::Expected<llvm::SmallVector<KernelLaunch>>
  findLaunches(const CompileOptions &options) const;

  /// Returns machine code for the host.
  llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
  emit(CodeKind kind, const CompileOptions &options) const;

  /// Returns machine code, loaded; taken from the disk cache where it has the
  /// same text with the same options.
  llvm::Expected<std::unique_ptr<Executable>>
  compile(const CompileOptions &options) const;

  /// Calls a function, compiled for a GPU or with the programs of thread blocks
  /// that it already has, on the tile interpreter: slow, but it needs no GPU
  /// and finds errors that would be silent on a GPU. Operands are as those of
  /// `Executable::call`.
  llvm::Error simulate(size_t function, llvm::ArrayRef<TensorView> operands,
                       const CompileOptions &options,
                       const SimulateOptions &choices,
                       llvm::SmallVectorImpl<Tensor> &results) const;

  /// Returns the operations and memory traffic of a call of a function with
  /// operands of these shapes, kernel by kernel, and its time by the model of
  /// this machine, or of the options' GPU, with these rates.
  llvm::Expected<Cost>
  estimate(size_t function, llvm::ArrayRef<llvm::SmallVector<int64_t>> shapes,
           const CompileOptions &options, const MachineRates &rates) const;

  /// Compiles the reference: the graph as written, evaluated by scalar loops.
  /// Results that are floating-point tensors have the type f64 unless the
  /// options say otherwise; floating-point operands have it if they are `wide`,
  /// which a caller needs that moves them by small steps.
  llvm::Expected<std::unique_ptr<Executable>>
  compileReference(const ReferenceOptions &options = {},
                   bool wideOperands = false) const;

  /// Returns the distance from its reference that each result of a function may
  /// have, relative to its largest magnitude, see `deriveErrorBounds`.
  llvm::Expected<llvm::SmallVector<double>> getErrorBounds(size_t index) const;

  /// Returns, for each operand of a function, true if it is summed over, see
  /// `findSummedOperands`.
  llvm::Expected<llvm::SmallVector<bool>> getSummedOperands(size_t index) const;

  /// Compiles the graph as written, in its own types, with a check of every
  /// index and divisor that it computes: calls fail where an index is out of
  /// bounds or a divisor is 0.
  llvm::Expected<std::unique_ptr<Executable>> compileChecked() const;

private:
  struct State;
  explicit Program(std::unique_ptr<State> state);
  std::unique_ptr<State> state;
};

} // namespace fovea

#endif // FOVEA_DRIVER_PROGRAM_H
