//===- Program.cpp - Compile a text, look at its levels -------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CallFrame.h"
#include "CompiledCode.h"
#include "ErrorBounds.h"
#include "Launches.h"
#include "Signature.h"
#include "TextChecks.h"

#include "fovea/Analysis/ScheduleModel.h"
#include "fovea/Conversion/Passes.h"
#include "fovea/Dialect/Attn/Differentiate/Passes.h"
#include "fovea/Dialect/Attn/Transforms/Passes.h"
#include "fovea/Dialect/Machine/IR/Machine.h"
#include "fovea/Dialect/Tile/IR/Tile.h"
#include "fovea/Interpreter/Interpreter.h"
#include "fovea/Support/OutlinedChecks.h"
#include "fovea/Support/PhaseTiming.h"
#include "fovea/Target/NVPTX.h"
#include "fovea/Transforms/GpuKernels.h"
#include "fovea/Transforms/Passes.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Remarks.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

#include <cstring>
#include <future>
#include <mutex>

using namespace fovea;

namespace {
/// Collects the errors of a context, with their notes, as text.
class ErrorCollector {
public:
  explicit ErrorCollector(mlir::MLIRContext *context)
      : handler(context, [this](mlir::Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error)
            append(diagnostic);
          return mlir::success();
        }) {}

  /// Returns the errors so far, or `otherwise`.
  llvm::Error take(const llvm::Twine &otherwise) {
    if (text.empty())
      return llvm::createStringError(otherwise);
    return llvm::createStringError(llvm::StringRef(text).rtrim());
  }

private:
  void append(mlir::Diagnostic &diagnostic) {
    llvm::raw_string_ostream stream(text);
    appendLine(stream, diagnostic, "error: ");
    // The dump of a whole operation, which MLIR adds as a note, is no help.
    for (mlir::Diagnostic &note : diagnostic.getNotes())
      if (!llvm::StringRef(note.str()).starts_with("see current operation"))
        appendLine(stream, note, "note: ");
  }

  static void appendLine(llvm::raw_ostream &stream,
                         mlir::Diagnostic &diagnostic, llvm::StringRef kind) {
    if (auto location =
            diagnostic.getLocation()->findInstanceOf<mlir::FileLineColLoc>())
      stream << location.getFilename().getValue() << ':' << location.getLine()
             << ':' << location.getColumn() << ": ";
    // MLIR's advice concerns its own tools, and names a flag that no tool here
    // has.
    std::string message = diagnostic.str();
    stream << kind
           << llvm::StringRef(message).split(". If this is intended, ").first
           << '\n';
  }

  std::string text;
  mlir::ScopedDiagnosticHandler handler;
};
} // namespace

/// The missed optimisations, as passes report them, that make code slower.
static constexpr llvm::StringLiteral kRemarks =
    "attn-fuse|attn-insert-recomputation|attn-select-schedule|"
    "convert-attn-to-tile";

namespace {
/// Keeps remarks, without file names: code may be kept for another file.
class RemarkCollector : public mlir::remark::detail::MLIRRemarkStreamerBase {
public:
  explicit RemarkCollector(llvm::SmallVectorImpl<std::string> &remarks)
      : remarks(remarks) {}

  void streamOptimizationRemark(
      const mlir::remark::detail::Remark &remark) override {
    std::string text;
    if (auto place =
            remark.getLocation()->findInstanceOf<mlir::FileLineColLoc>())
      text = "line " + std::to_string(place.getLine()) + ": ";
    for (const mlir::remark::detail::Remark::Arg &part : remark.getArgs())
      text += part.val;
    remarks.push_back(std::move(text));
  }

private:
  llvm::SmallVectorImpl<std::string> &remarks;
};
} // namespace

/// Returns true for names of functions that compiled code calls in the C
/// library, above all its mathematics, and in Fovea's runtime; a function of
/// the same name would take their place.
static bool isReserved(llvm::StringRef name) {
  static const llvm::TargetLibraryInfoImpl library(
      (llvm::Triple(llvm::sys::getProcessTriple())));
  llvm::LibFunc function;
  return library.getLibFunc(name, function) || name.starts_with("fovea_") ||
         name.starts_with("_mlir_");
}

//===----------------------------------------------------------------------===//
// Targets and levels
//===----------------------------------------------------------------------===//

llvm::Expected<const machine::GpuArch *>
fovea::parseTarget(llvm::StringRef name) {
  if (name == "host")
    return nullptr;
  if (const machine::GpuArch *arch = machine::GpuArch::find(name))
    return arch;
  if (name != "gpu")
    return llvm::createStringError(
        "unknown target '" + name + "'; expected " +
        machine::GpuArch::listNames({"host", "gpu"}));
  auto driver = cuda::Driver::get();
  if (!driver)
    return driver.takeError();
  const cuda::DeviceInfo &device = driver->getDevices().front();
  return machine::GpuArch::select(device.major, device.minor);
}

llvm::Expected<std::optional<Level>>
fovea::parseLevel(llvm::StringRef name, const CompileOptions &options) {
  Choices<Level> levels = getLevelChoices(/*isGpu=*/options.gpu);
  if (std::optional<Level> level = levels.find(name))
    return level;
  llvm::SmallVector<llvm::StringRef> codes = {"asm", "obj"};
  if (options.gpu)
    codes = {"ptx", "cubin"};
  if (llvm::is_contained(codes, name))
    return std::nullopt;
  return llvm::createStringError("unknown level '" + name + "' of " +
                                 (options.gpu ? "a GPU" : "a host") +
                                 "; expected " + levels.listNames(codes));
}

//===----------------------------------------------------------------------===//
// Program
//===----------------------------------------------------------------------===//

/// Each program has a context of its own, so that programs do not wait for each
/// other; `mutex` keeps two users of one program apart.
struct Program::State {
  std::mutex mutex;
  std::string text;
  /// The remarks of the last lowering; the context refers to them.
  llvm::SmallVector<std::string, 0> remarks;
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  llvm::SmallVector<Signature, 1> signatures;

  State(const mlir::DialectRegistry &registry, llvm::StringRef text)
      : text(text), context(registry, mlir::MLIRContext::Threading::DISABLED) {
    mlir::remark::RemarkCategories categories;
    categories.missed = kRemarks.str();
    mlir::LogicalResult enabled = mlir::remark::enableOptimizationRemarks(
        context, std::make_unique<RemarkCollector>(remarks),
        std::make_unique<mlir::remark::RemarkEmittingPolicyAll>(), categories);
    assert(mlir::succeeded(enabled));
    (void)enabled;
  }

  /// Returns a copy of the module after some passes, on this machine unless the
  /// module names a target. Passes that choose schedules know those of the
  /// options.
  llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
  lower(const CompileOptions &options,
        llvm::function_ref<void(mlir::OpPassManager &)> build,
        const MachineRates *rates = nullptr, bool choosesSchedules = false);

  /// Runs passes on a copy of the module.
  llvm::Error run(mlir::ModuleOp copy, const CompileOptions &options,
                  llvm::function_ref<void(mlir::OpPassManager &)> build);

  /// Gives a module the schedules of the options, or those that were kept, for
  /// passes that choose schedules.
  void attachSchedules(mlir::ModuleOp copy, const CompileOptions &options);

  /// Returns the same by the passes of the options' target.
  llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
  lower(const CompileOptions &options, Level level, bool checksShapes = false);

  /// Returns a copy with kernels in the LLVM dialect for the options' GPU. If
  /// it is for calls, these check sizes and test operands first.
  llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
  lowerKernels(const CompileOptions &options, bool isForCalls = false);

  /// Takes the code for the device out of a module with such kernels.
  llvm::Expected<DeviceCode> takeDeviceCode(mlir::ModuleOp lowered,
                                            const CompileOptions &options);

  /// Returns machine code of a module in the LLVM dialect.
  llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
  generate(mlir::ModuleOp lowered, const CompileOptions &options,
           CodeKind kind);

  /// Returns the host's code, of a module in the LLVM dialect.
  llvm::Expected<CompiledCode> finish(mlir::ModuleOp lowered,
                                      const CompileOptions &options,
                                      llvm::ArrayRef<Signature> signatures);

  /// Returns a copy at level `Fused` whose attentions have no schedules yet.
  llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
  lowerWithoutSchedules(const CompileOptions &options);

  /// Returns the calls of each function that code for other sizes is to serve:
  /// none if the options say which schedules, or which sizes, code is for.
  llvm::Expected<llvm::SmallVector<OtherSizes, 1>>
  findOtherSizes(const CompileOptions &options);

  /// Returns all code for the options' GPU, of a module whose kernels are in
  /// the LLVM dialect, and loads the kernels.
  llvm::Expected<CompiledCode> finishForGpu(mlir::ModuleOp lowered,
                                            const CompileOptions &options,
                                            Executable::State &executable);
};

/// Returns the model of a GPU with measured rates.
static machine::TargetAttr withRates(machine::TargetAttr model,
                                     const MachineRates &rates) {
  auto round = [](double rate) { return std::max<int64_t>(int64_t(rate), 1); };
  return machine::TargetAttr::get(
      model.getContext(), model.getName(), model.getArch(), model.getCores(),
      model.getVectorBytes(), model.getVectorRegisters(), model.getFastMemory(),
      model.getNearMemory(), round(rates.bandwidth * 1e3), round(rates.peakF32),
      model.getSharedMemory(), round(rates.peakMatrix));
}

/// Returns an error if code for `arch`, of which `cpu` may be the processor,
/// lacks instructions that passes use for the host `target`.
static llvm::Error checkTarget(machine::TargetAttr target, HostArch arch,
                               llvm::StringRef cpu) {
  auto refuse = [](const char *what, const char *archs) {
    return llvm::createStringError("the module's machine.target has %s, but "
                                   "the code is not for arch %s",
                                   what, archs);
  };
  if (target.hasMatrixTiles() && arch != HostArch::AMX)
    return refuse("AMX tiles", "amx");
  if (target.hasDotProducts() && arch != HostArch::AVX512BF16)
    return refuse("dot products of bf16", "avx512_bf16");
  // What vectors a processor has that is named, LLVM knows.
  if (!cpu.empty())
    return llvm::Error::success();
  bool hasAVX2 = arch != HostArch::Generic;
  if (target.getArch() == "avx512" && (!hasAVX2 || arch == HostArch::AVX2))
    return refuse("vectors of AVX-512", "avx512, avx512_bf16 or amx");
  if (target.getArch() == "avx2" && !hasAVX2)
    return refuse("vectors of AVX2", "avx2 or above");
  return llvm::Error::success();
}

llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
Program::State::lower(const CompileOptions &options,
                      llvm::function_ref<void(mlir::OpPassManager &)> build,
                      const MachineRates *rates, bool choosesSchedules) {
  ErrorCollector errors(&context);
  remarks.clear();
  mlir::OwningOpRef<mlir::ModuleOp> copy(module->clone());
  HostArch arch = resolveArch(options.arch, options.cpu);
  if (options.gpu) {
    if (rates)
      (*copy)->setAttr(
          machine::kTargetAttrName,
          withRates(machine::getTypicalGpu(&context, *options.gpu), *rates));
  } else if (rates || !(*copy)->hasAttr(machine::kTargetAttrName)) {
    (*copy)->setAttr(machine::kTargetAttrName,
                     detectHost(&context, arch, rates));
  }
  machine::TargetAttr target = machine::getTarget(*copy);
  if (!options.gpu)
    if (llvm::Error error = checkTarget(target, arch, options.cpu))
      return std::move(error);
  if (choosesSchedules)
    attachSchedules(*copy, options);
  if (llvm::Error error = run(*copy, options, build))
    return std::move(error);
  return copy;
}

llvm::Error
Program::State::run(mlir::ModuleOp copy, const CompileOptions &options,
                    llvm::function_ref<void(mlir::OpPassManager &)> build) {
  ErrorCollector errors(&context);
  mlir::PassManager manager(&context);
  mlir::TimingScope timing = timePhase(options.timing, "Passes of MLIR");
  manager.enableTiming(timing);
  // After each pass, as in `fovea-opt`, this would take a third of the time.
  manager.enableVerifier(false);
  build(manager);
  if (mlir::failed(manager.run(copy)) || mlir::failed(mlir::verify(copy)))
    return errors.take("a pass failed without saying why");
  return llvm::Error::success();
}

void Program::State::attachSchedules(mlir::ModuleOp copy,
                                     const CompileOptions &options) {
  std::optional<ScheduleList> schedules = lookUpSchedules(text, options);
  if (!schedules || schedules->empty())
    return;
  llvm::SmallVector<mlir::Attribute> attributes;
  for (const std::string &schedule : *schedules)
    attributes.push_back(schedule.empty()
                             ? mlir::UnitAttr::get(&context)
                             : mlir::parseAttribute(schedule, &context));
  if (llvm::all_of(attributes, [](mlir::Attribute a) { return bool(a); }))
    copy->setAttr(attn::kSchedulesAttrName,
                  mlir::ArrayAttr::get(&context, attributes));
}

llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
Program::State::lower(const CompileOptions &options, Level level,
                      bool checksShapes) {
  bool choosesSchedules =
      level != Level::Attn && options.strategy != Strategy::Unfused;
  return lower(
      options,
      [&](mlir::OpPassManager &manager) {
        if (checksShapes)
          manager.addPass(createOutlineShapeChecks());
        if (options.gpu)
          buildGpuPipeline(manager, options.getGpuOptions(level));
        else
          buildHostPipeline(manager,
                            {options.strategy, level, options.exactFunctions});
      },
      /*rates=*/nullptr, choosesSchedules);
}

llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
Program::State::lowerKernels(const CompileOptions &options, bool isForCalls) {
  return lower(
      options,
      [&](mlir::OpPassManager &manager) {
        GpuOptions gpu = options.getGpuOptions(Level::LLVM);
        if (isForCalls) {
          manager.addPass(createOutlineShapeChecks());
          gpu.outlinesTests = !options.copiesOperands;
        }
        buildGpuKernelPipeline(manager, gpu);
      },
      /*rates=*/nullptr,
      /*choosesSchedules=*/options.strategy != Strategy::Unfused);
}

llvm::Expected<DeviceCode>
Program::State::takeDeviceCode(mlir::ModuleOp lowered,
                               const CompileOptions &options) {
  DeviceCode code;
  mlir::gpu::GPUModuleOp kernels = getKernelModule(lowered);
  if (!kernels)
    return code;
  for (llvm::StringRef name : getKernelNames(kernels))
    code.kernels.push_back(name.str());
  ErrorCollector errors(&context);
  mlir::TimingScope timing =
      timePhase(options.timing, "Translation to LLVM IR");
  llvm::LLVMContext llvmContext;
  // Generation of PTX verifies the module.
  std::unique_ptr<llvm::Module> module = mlir::translateModuleToLLVMIR(
      kernels, llvmContext, "fovea", /*disableVerification=*/true);
  if (!module)
    return errors.take("cannot translate the kernels to LLVM IR");
  timing.stop();
  PTXOptions ptxOptions;
  ptxOptions.arch = options.gpu;
  ptxOptions.optLevel = options.optLevel;
  ptxOptions.timing = options.timing;
  auto ptx = compileToPTX(*module, ptxOptions);
  if (!ptx)
    return ptx.takeError();
  code.ptx = std::move(*ptx);
  kernels.erase();
  return code;
}

llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
Program::State::generate(mlir::ModuleOp lowered, const CompileOptions &options,
                         CodeKind kind) {
  ErrorCollector errors(&context);
  mlir::TimingScope timing =
      timePhase(options.timing, "Generation of the host's code");
  auto code = emitHostCode(
      lowered, {getHostProcessor(options.arch, options.cpu), options.optLevel},
      kind);
  if (!code)
    return errors.take(llvm::toString(code.takeError()));
  return code;
}

llvm::Expected<CompiledCode>
Program::State::finish(mlir::ModuleOp lowered, const CompileOptions &options,
                       llvm::ArrayRef<Signature> signatures) {
  CompiledCode code;
  code.remarks = remarks;
  auto object = generate(lowered, options, CodeKind::Object);
  if (!object)
    return object.takeError();
  code.object = std::move(*object);
  for (const Signature &signature : signatures) {
    CompiledCode::Function &function = code.functions.emplace_back();
    function.signature = signature;
    function.testsOperands =
        lowered.lookupSymbol(getAlignmentCheckName(signature.name));
    mlir::Operation *check =
        lowered.lookupSymbol(getShapeCheckName(signature.name));
    if (!check || !check->hasAttr(machine::kMessagesAttrName))
      continue;
    for (mlir::Attribute message :
         check->getAttrOfType<mlir::ArrayAttr>(machine::kMessagesAttrName))
      function.messages.push_back(
          mlir::cast<mlir::StringAttr>(message).getValue().str());
  }
  return code;
}

llvm::Expected<CompiledCode>
Program::State::finishForGpu(mlir::ModuleOp lowered,
                             const CompileOptions &options,
                             Executable::State &executable) {
  auto device = takeDeviceCode(lowered, options);
  if (!device)
    return device.takeError();
  executable.remarks = remarks;
  // The assembler is another process: the host's code is made meanwhile.
  std::future<llvm::Error> loading = std::async(std::launch::async, [&] {
    return executable.loadKernels(*device, *options.gpu, options.timing);
  });
  auto makeHostCode = [&]() -> llvm::Expected<CompiledCode> {
    if (llvm::Error error = run(lowered, options, buildGpuHostPipeline))
      return error;
    return finish(lowered, options, signatures);
  };
  auto code = makeHostCode();
  if (llvm::Error error = loading.get()) {
    if (!code)
      error = llvm::joinErrors(code.takeError(), std::move(error));
    return error;
  }
  if (code)
    code->device = std::move(*device);
  return code;
}

llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
Program::State::lowerWithoutSchedules(const CompileOptions &options) {
  return lower(options, [&](mlir::OpPassManager &manager) {
    if (options.gpu) {
      GpuOptions gpu = options.getGpuOptions(Level::Fused);
      gpu.selectsSchedules = false;
      return buildGpuPipeline(manager, gpu);
    }
    HostOptions host = {options.strategy, Level::Fused, options.exactFunctions};
    host.selectsSchedules = false;
    buildHostPipeline(manager, host);
  });
}

llvm::Expected<llvm::SmallVector<OtherSizes, 1>>
Program::State::findOtherSizes(const CompileOptions &options) {
  llvm::SmallVector<OtherSizes, 1> found(signatures.size());
  bool isDynamic = llvm::any_of(signatures, [](const Signature &signature) {
    return llvm::any_of(signature.operands, [](const ValueType &operand) {
      return llvm::any_of(operand.shape, [](int64_t size) { return size < 0; });
    });
  });
  if (!isDynamic || !options.gpu || !options.gpu->hasWarpGroups ||
      options.typicalLength || options.typicalRows || options.tileRows ||
      options.schedules || options.strategy == Strategy::Unfused)
    return found;
  auto usual = lowerWithoutSchedules(options);
  if (!usual)
    return usual.takeError();
  CompileOptions forShort = OtherSizes::getOptions(OtherSizes::kShort, options);
  auto other = lowerWithoutSchedules(forShort);
  if (!other) {
    // The usual code serves all calls then.
    llvm::consumeError(other.takeError());
    return found;
  }
  machine::TargetAttr target = machine::getTarget(**usual);
  ScheduleOptions schedules = options.getScheduleOptions();
  for (auto [signature, sizes] : llvm::zip_equal(signatures, found)) {
    auto function = (*usual)->lookupSymbol<mlir::func::FuncOp>(signature.name);
    auto shorter = (*other)->lookupSymbol<mlir::func::FuncOp>(signature.name);
    if (function && shorter)
      sizes = {fovea::findFewRows(shorter, target, schedules),
               fovea::findFewTiles(function, target, schedules),
               fovea::findShortLengths(function, shorter, target, schedules)};
  }
  return found;
}

Program::Program(std::unique_ptr<State> state) : state(std::move(state)) {}
Program::~Program() = default;

llvm::StringRef Program::getText() const { return state->text; }

llvm::ArrayRef<Signature> Program::getFunctions() const {
  return state->signatures;
}

llvm::Expected<std::unique_ptr<Program>> Program::parse(llvm::StringRef text,
                                                        llvm::StringRef name) {
  if (llvm::Error error = checkNesting(text, name))
    return error;
  static const mlir::DialectRegistry *registry = [] {
    auto *registry = new mlir::DialectRegistry;
    registerAllDialects(*registry);
    return registry;
  }();
  auto state = std::make_unique<State>(*registry, text);
  ErrorCollector errors(&state->context);
  state->module = mlir::parseSourceString<mlir::ModuleOp>(
      text, mlir::ParserConfig(&state->context), name);
  if (!state->module)
    return errors.take(name + ": cannot be parsed");
  if (mlir::failed(checkDivisions(*state->module)))
    return errors.take("");
  for (auto function : state->module->getOps<mlir::func::FuncOp>()) {
    if (isReserved(function.getName()) && !function.isExternal()) {
      function.emitError() << "the name @" << function.getName()
                           << " is that of a function which compiled code "
                              "calls; expected another name";
      return errors.take("");
    }
    if (function.isPublic() && !function.isExternal())
      state->signatures.push_back(describe(function, text));
  }
  return std::unique_ptr<Program>(new Program(std::move(state)));
}

llvm::SmallVector<std::string, 0> Program::takeRemarks() const {
  std::lock_guard<std::mutex> lock(state->mutex);
  return std::exchange(state->remarks, {});
}

llvm::Expected<std::string> Program::differentiate(size_t index,
                                                   GradientOptions options,
                                                   bool locations) const {
  const Signature &signature = state->signatures[index];
  if (!signature.obstacle.empty())
    return llvm::createStringError(signature.obstacle);
  std::lock_guard<std::mutex> lock(state->mutex);
  ErrorCollector errors(&state->context);
  state->remarks.clear();
  mlir::OwningOpRef<mlir::ModuleOp> copy(state->module->clone());
  if (!options.gpu && !(*copy)->hasAttr(machine::kTargetAttrName))
    (*copy)->setAttr(machine::kTargetAttrName,
                     detectHost(&state->context, HostArch::Native));
  // Operands keep their names.
  auto function = copy->lookupSymbol<mlir::func::FuncOp>(signature.name);
  for (auto [argument, type] :
       llvm::zip_equal(function.getArguments(), signature.operands))
    if (!type.name.empty())
      argument.setLoc(
          mlir::NameLoc::get(mlir::StringAttr::get(&state->context, type.name),
                             argument.getLoc()));
  mlir::PassManager manager(&state->context);
  options.function = signature.name;
  buildGradientPipeline(manager, options);
  if (mlir::failed(manager.run(*copy)))
    return errors.take("a pass failed without saying why");
  for (auto other :
       llvm::make_early_inc_range(copy->getOps<mlir::func::FuncOp>()))
    if (!llvm::is_contained({attn::getGradientName(signature.name),
                             attn::getForwardName(signature.name),
                             attn::getBackwardName(signature.name)},
                            other.getName()))
      other.erase();
  // The text is for any machine.
  mlir::Attribute target =
      state->module->getOperation()->getAttr(machine::kTargetAttrName);
  if (target)
    (*copy)->setAttr(machine::kTargetAttrName, target);
  else
    (*copy)->removeAttr(machine::kTargetAttrName);
  std::string text;
  llvm::raw_string_ostream stream(text);
  mlir::OpPrintingFlags flags;
  if (locations)
    flags.enableDebugInfo();
  else
    flags.printNameLocAsPrefix();
  copy->print(stream, flags);
  stream << '\n';
  return text;
}

llvm::SmallVector<std::optional<llvm::SmallVector<int64_t>>>
Program::inferResultShapes(
    size_t index, llvm::ArrayRef<llvm::SmallVector<int64_t>> shapes) const {
  std::lock_guard<std::mutex> lock(state->mutex);
  return evaluateResultShapes(state->module->lookupSymbol<mlir::func::FuncOp>(
                                  state->signatures[index].name),
                              shapes);
}

llvm::Expected<std::string>
Program::print(Level level, const CompileOptions &options) const {
  std::lock_guard<std::mutex> lock(state->mutex);
  auto module = state->lower(options, level);
  if (!module)
    return module.takeError();
  std::string text;
  llvm::raw_string_ostream stream(text);
  (*module)->print(stream);
  stream << '\n';
  return text;
}

llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
Program::emit(CodeKind kind, const CompileOptions &options) const {
  std::lock_guard<std::mutex> lock(state->mutex);
  auto module = state->lower(options, Level::LLVM);
  if (!module)
    return module.takeError();
  return state->generate(**module, options, kind);
}

llvm::Expected<DeviceCode>
Program::emitPTX(const CompileOptions &options) const {
  std::lock_guard<std::mutex> lock(state->mutex);
  auto module = state->lowerKernels(options);
  if (!module)
    return module.takeError();
  return state->takeDeviceCode(**module, options);
}

llvm::Expected<Assembly>
Program::assemble(const CompileOptions &options) const {
  auto code = emitPTX(options);
  if (!code)
    return code.takeError();
  if (code->kernels.empty())
    return llvm::createStringError("the module has no kernels");
  return assembleKernels(*code, options.gpu->name, options.timing);
}

llvm::Expected<llvm::SmallVector<KernelLaunch>>
Program::findLaunches(const CompileOptions &options) const {
  std::lock_guard<std::mutex> lock(state->mutex);
  auto module = state->lower(options, Level::Gpu);
  if (!module)
    return module.takeError();
  return fovea::findLaunches(**module, *state->module);
}

llvm::Expected<std::unique_ptr<Executable>>
Program::compile(const CompileOptions &options) const {
  if (llvm::Error error = Executable::checkMachine(options))
    return error;
  CompileOptions found = options;
  found.schedules = lookUpSchedules(state->text, options);
  CacheKey key = getCodeKey(state->text, found);
  auto kept = Executable::loadKept(key, state->text, options);
  if (!kept || *kept)
    return kept;
  std::lock_guard<std::mutex> lock(state->mutex);
  auto executable = std::make_unique<Executable::State>();
  auto otherSizes = state->findOtherSizes(found);
  if (!otherSizes)
    return otherSizes.takeError();
  executable->keepVersions(state->text, options, *otherSizes);
  auto module = options.gpu
                    ? state->lowerKernels(found, /*isForCalls=*/true)
                    : state->lower(found, Level::LLVM, /*checksShapes=*/true);
  if (!module)
    return module.takeError();
  auto code = options.gpu ? state->finishForGpu(**module, found, *executable)
                          : state->finish(**module, options, state->signatures);
  if (!code)
    return code.takeError();
  for (auto [function, sizes] : llvm::zip_equal(code->functions, *otherSizes))
    function.otherSizes = std::move(sizes);
  DiskCache::get().store(key, serialize(*code));
  if (!options.gpu)
    executable->remarks = code->remarks;
  auto linked =
      Executable::link(std::move(executable), std::move(*code), options.timing);
  if (linked)
    (*linked)->state->finishVersions(state->text, options);
  return linked;
}

llvm::Error Program::simulate(size_t index, llvm::ArrayRef<TensorView> operands,
                              const CompileOptions &options,
                              const SimulateOptions &choices,
                              llvm::SmallVectorImpl<Tensor> &results) const {
  const Signature &signature = state->signatures[index];
  if (operands.size() != signature.operands.size())
    return rejectOperands(
        llvm::formatv("@{0}: expected {1} operands, got {2}", signature.name,
                      signature.operands.size(), operands.size()));
  llvm::SmallVector<SimulationOperand> views;
  for (auto [number, view] : llvm::enumerate(operands)) {
    if (llvm::Error error = CallFrame(signature).check(number, view))
      return error;
    views.push_back({view.data, view.shape, view.strides});
  }
  std::lock_guard<std::mutex> lock(state->mutex);
  ErrorCollector errors(&state->context);
  bool hasPrograms =
      state->module
          ->walk([](tile::LaunchOp) { return mlir::WalkResult::interrupt(); })
          .wasInterrupted();
  auto module = state->lower(
      options,
      [&](mlir::OpPassManager &manager) {
        buildSimulationPipeline(manager, options.getGpuOptions(Level::Tile),
                                hasPrograms);
      },
      /*rates=*/nullptr,
      /*choosesSchedules=*/!hasPrograms &&
          options.strategy != Strategy::Unfused);
  if (!module)
    return module.takeError();
  auto function = (*module)->lookupSymbol<mlir::func::FuncOp>(signature.name);
  SimulationOptions simulation;
  simulation.gpu = *options.gpu;
  results.clear();
  for (uint64_t number = 0; number < choices.seeds; ++number) {
    simulation.seed = choices.seed + number;
    auto buffers = fovea::simulate(function, views, simulation);
    if (mlir::failed(buffers))
      return errors.take("@" + signature.name + ": failed without saying why");
    for (auto [position, type, buffer] :
         llvm::enumerate(signature.results, *buffers)) {
      if (number) {
        const Tensor &first = results[position];
        if (first.getShape() == llvm::ArrayRef(buffer.shape) &&
            !std::memcmp(first.getData(), buffer.data.data(),
                         buffer.data.size()))
          continue;
        return llvm::createStringError(llvm::formatv(
            "@{0}: result {1} is not the same with seeds {2} and {3}",
            signature.name, position, choices.seed, simulation.seed));
      }
      results.emplace_back(type.type, buffer.shape,
                           countElements(buffer.shape, type.type).value_or(0));
      if (!results.back().getData())
        return llvm::createStringError("@" + signature.name +
                                       ": out of memory for a result");
      llvm::copy(buffer.data, static_cast<char *>(results.back().getData()));
    }
  }
  return llvm::Error::success();
}

llvm::Expected<std::vector<ScheduleChoices>>
Program::listSchedules(const CompileOptions &options) const {
  std::vector<ScheduleChoices> attentions;
  if (options.strategy == Strategy::Unfused)
    return attentions;
  std::lock_guard<std::mutex> lock(state->mutex);
  auto module = state->lowerWithoutSchedules(options);
  if (!module)
    return module.takeError();
  machine::TargetAttr target = machine::getTarget(**module);
  for (mlir::Operation *op : findUnscheduled(**module)) {
    ScheduleChoices &attention = attentions.emplace_back();
    if (auto function = op->getParentOfType<mlir::func::FuncOp>())
      attention.function = function.getName().str();
    if (auto place = op->getLoc()->findInstanceOf<mlir::FileLineColLoc>())
      attention.line = place.getLine();
    auto backward = mlir::dyn_cast<attn::AttentionBackwardOp>(op);
    attention.isBackward = bool(backward);
    for (const ScheduleChoice &choice :
         backward
             ? fovea::listSchedules(backward, target)
             : fovea::listSchedules(mlir::cast<attn::AttentionOp>(op), target,
                                    options.getScheduleOptions())) {
      auto &[schedule, seconds] = attention.choices.emplace_back();
      llvm::raw_string_ostream stream(schedule);
      mlir::Attribute(choice.schedule).print(stream);
      seconds = choice.seconds;
    }
  }
  return attentions;
}

llvm::Expected<Cost> Program::estimate(
    size_t function, llvm::ArrayRef<llvm::SmallVector<int64_t>> shapes,
    const CompileOptions &options, const MachineRates &rates) const {
  std::lock_guard<std::mutex> lock(state->mutex);
  ErrorCollector errors(&state->context);
  // At this level attention is one op, or the graph is as it was written.
  auto module = state->lower(
      options,
      [&](mlir::OpPassManager &manager) {
        if (options.gpu)
          buildGpuPipeline(manager, options.getGpuOptions(Level::Fused));
        else
          buildHostPipeline(manager, {options.strategy, Level::Fused});
        // Attention that reads stored probabilities is not one kernel.
        attn::AttnDecomposeBackwardOptions stored;
        stored.storedOnly = true;
        manager.addPass(attn::createAttnDecomposeBackward(stored));
        manager.addPass(mlir::createCSEPass());
      },
      &rates, /*choosesSchedules=*/options.strategy != Strategy::Unfused);
  if (!module)
    return module.takeError();
  auto op = (*module)->lookupSymbol<mlir::func::FuncOp>(
      state->signatures[function].name);
  bool unfused = options.strategy == Strategy::Unfused;
  llvm::DenseSet<mlir::Operation *> tiled;
  if (!unfused && !options.gpu)
    tiled = findTiledOps(**module, options.strategy);
  auto cost = estimateCost(op, shapes, machine::getTarget(op),
                           unfused ? KernelForm::Unfused : KernelForm::Fused,
                           getPasses(options.strategy), tiled);
  if (mlir::failed(cost))
    return errors.take("the cost of the function cannot be estimated");
  return *cost;
}

/// Returns true if a module is no longer a graph, but attention that was tiled
/// or rewritten online.
static bool isLowered(mlir::ModuleOp module) {
  return module
      .walk([](mlir::Operation *op) {
        return mlir::isa<attn::OnlineAttentionOp, attn::FinalizeOp,
                         attn::PackQueryOp, tile::LaunchOp>(op)
                   ? mlir::WalkResult::interrupt()
                   : mlir::WalkResult::advance();
      })
      .wasInterrupted();
}

llvm::Expected<std::unique_ptr<Executable>> Program::compileChecked() const {
  std::lock_guard<std::mutex> lock(state->mutex);
  if (isLowered(*state->module))
    return llvm::createStringError(
        "indices and divisors cannot be checked: the module is no longer a "
        "graph, but attention that was tiled or rewritten online");
  CompileOptions options;
  auto module = state->lower(options, [](mlir::OpPassManager &manager) {
    manager.addPass(createOutlineShapeChecks());
    buildCheckedPipeline(manager);
  });
  if (!module)
    return module.takeError();
  auto code = state->finish(**module, options, state->signatures);
  if (!code)
    return code.takeError();
  return Executable::load(std::move(*code), options.gpu);
}

llvm::Expected<std::unique_ptr<Executable>>
Program::compileReference(const ReferenceOptions &reference,
                          bool wideOperands) const {
  std::lock_guard<std::mutex> lock(state->mutex);
  if (isLowered(*state->module))
    return llvm::createStringError(
        "there is no reference to check against: the module is no longer a "
        "graph, but attention that was tiled or rewritten online");
  CompileOptions options;
  llvm::SmallVector<Signature, 1> signatures(state->signatures);
  auto widen = [](llvm::MutableArrayRef<ValueType> types) {
    for (ValueType &type : types)
      if (isFloat(type.type))
        type.type = DType::F64;
  };
  for (Signature &function : signatures) {
    if (!reference.ownTypes)
      widen(function.results);
    if (wideOperands)
      widen(function.operands);
  }
  // Calls are changed first, for operands change their types.
  auto module = state->lower(options, [](mlir::OpPassManager &manager) {
    manager.addPass(mlir::createInlinerPass({}, [](mlir::OpPassManager &) {}));
  });
  if (!module)
    return module.takeError();
  if (wideOperands)
    for (auto function : (*module)->getOps<mlir::func::FuncOp>())
      if (function.isPublic() && !function.isExternal())
        fovea::widenOperands(function);
  ErrorCollector errors(&state->context);
  mlir::PassManager manager(&state->context);
  buildReferencePipeline(manager, reference);
  if (mlir::failed(manager.run(**module)))
    return errors.take("a pass failed without saying why");
  auto code = state->finish(**module, options, signatures);
  if (!code)
    return code.takeError();
  return Executable::load(std::move(*code), options.gpu);
}

llvm::Expected<llvm::SmallVector<double>>
Program::getErrorBounds(size_t index) const {
  std::lock_guard<std::mutex> lock(state->mutex);
  auto module = state->lower(CompileOptions(), Level::Attn);
  if (!module)
    return module.takeError();
  return deriveErrorBounds((*module)->lookupSymbol<mlir::func::FuncOp>(
      state->signatures[index].name));
}

llvm::Expected<llvm::SmallVector<bool>>
Program::getSummedOperands(size_t index) const {
  std::lock_guard<std::mutex> lock(state->mutex);
  auto module = state->lower(CompileOptions(), Level::Attn);
  if (!module)
    return module.takeError();
  return findSummedOperands((*module)->lookupSymbol<mlir::func::FuncOp>(
      state->signatures[index].name));
}
