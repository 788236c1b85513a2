//===- Load.cpp - Linking and loading of compiled code --------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CompiledCode.h"
#include "ProgramState.h"

#include "fovea/Runtime/HostRuntime.h"
#include "fovea/Support/OutlinedChecks.h"
#include "fovea/Support/PhaseTiming.h"

#include "llvm/ADT/StringExtras.h"

using namespace fovea;

Executable::Executable(std::unique_ptr<State> state)
    : state(std::move(state)) {}
Executable::~Executable() = default;

llvm::ArrayRef<Signature> Executable::getFunctions() const {
  return state->signatures;
}

void Executable::setChecker(std::unique_ptr<Executable> checker) {
  state->checker = std::move(checker);
}

llvm::ArrayRef<std::string> Executable::getRemarks() const {
  return state->remarks;
}

void Executable::State::keepVersions(llvm::StringRef text,
                                     const CompileOptions &options,
                                     llvm::ArrayRef<OtherSizes> functions) {
  for (auto [code, version] : llvm::enumerate(versions))
    if (llvm::any_of(functions, [code](const OtherSizes &sizes) {
          return sizes.isNeeded(code);
        }))
      version = std::make_unique<Version>(
          text, OtherSizes::getOptions(code, options));
  if (options.callShapes.empty() || functions.size() != 1)
    return;
  auto getShape = [&](size_t operand) {
    return llvm::ArrayRef(options.callShapes[operand]);
  };
  if (auto code = functions.front().choose(options.callShapes.size(), getShape))
    versions[*code]->begin();
}

void Executable::State::finishVersions(llvm::StringRef text,
                                       const CompileOptions &options) {
  for (const std::unique_ptr<Version> &version : versions)
    if (version)
      version->waitIfBegun();
  if (llvm::none_of(entries,
                    [](const Entry &entry) { return entry.areAligned; }))
    return;
  CompileOptions copying = options;
  copying.callShapes.clear();
  copying.copiesOperands = true;
  copyingVersion = std::make_unique<Version>(text, copying);
}

void Executable::State::Version::begin() {
  ahead = std::async(std::launch::async, [this] { get(); });
}

void Executable::State::Version::waitIfBegun() const {
  if (ahead.valid())
    ahead.wait();
}

const Executable *Executable::State::Version::get() {
  std::call_once(once, [&] {
    auto compiled = compile(text, "text", options);
    if (compiled)
      executable = std::move(*compiled);
    else
      error = llvm::toString(compiled.takeError());
  });
  return executable.get();
}

llvm::Expected<const Executable &>
Executable::State::getCopying(size_t function) const {
  if (const Executable *version = copyingVersion->get())
    return *version;
  return llvm::createStringError(
      "@" + signatures[function].name +
      ": the code that copies misaligned operands cannot be compiled: " +
      copyingVersion->getError());
}

const Executable &
Executable::getVersion(size_t index,
                       llvm::ArrayRef<TensorView> operands) const {
  auto getShape = [&](size_t operand) {
    return llvm::ArrayRef(operands[operand].shape);
  };
  auto code =
      state->entries[index].otherSizes.choose(operands.size(), getShape);
  const Executable *compiled = code ? state->versions[*code]->get() : nullptr;
  return compiled ? *compiled : *this;
}

llvm::StringRef Executable::getPTX() const { return state->ptx; }

const Assembly &Executable::getAssembly() const { return state->assembly; }

/// Opens this machine's GPU.
static llvm::Expected<cuda::Device &> openDevice() {
  auto driver = cuda::Driver::get();
  if (!driver)
    return driver.takeError();
  return driver->open();
}

/// Returns the chip to assemble code of `arch` for, to run it on a device.
static llvm::Expected<std::string> getChip(const machine::GpuArch &arch,
                                           const cuda::Device &device) {
  return arch.getAssemblyChip(device.getInfo().major, device.getInfo().minor);
}

llvm::Error Executable::checkMachine(const CompileOptions &options) {
  if (const char *text = runtime::getThreadsError())
    return llvm::createStringError("FOVEA_NUM_THREADS=" + llvm::Twine(text) +
                                   ": expected a number of threads from 1 on");
  if (!options.gpu) {
    if (!isSupportedHere(options.arch))
      return llvm::createStringError(
          "this machine cannot run code for the chosen arch");
    return llvm::Error::success();
  }
  auto device = openDevice();
  if (!device)
    return device.takeError();
  return getChip(*options.gpu, *device).takeError();
}

llvm::Error Executable::State::loadKernels(const DeviceCode &code,
                                           const machine::GpuArch &arch,
                                           mlir::TimingScope *timing) {
  auto device = openDevice();
  if (!device)
    return device.takeError();
  auto chip = getChip(arch, *device);
  if (!chip)
    return chip.takeError();
  if (!code.kernels.empty()) {
    auto assembled = assembleKernels(code, *chip, timing);
    if (assembled) {
      assembly = std::move(*assembled);
    } else {
      std::error_code kind;
      std::string message;
      llvm::handleAllErrors(assembled.takeError(),
                            [&](const llvm::ErrorInfoBase &info) {
                              kind = info.convertToErrorCode();
                              message = info.message();
                            });
      if (kind != std::errc::no_such_file_or_directory)
        return llvm::createStringError(kind, message);
      llvm::SmallVector<llvm::StringRef> lines;
      llvm::SplitString(message, lines, "\n");
      remarks.push_back(
          "the driver compiles the kernels: " +
          llvm::join(llvm::map_range(
                         lines, [](llvm::StringRef s) { return s.trim(); }),
                     " "));
    }
  }
  mlir::TimingScope phase = timePhase(timing, "Loading of the kernels");
  auto loaded =
      cuda::Module::load(*device, {assembly.cubin, code.ptx}, code.kernels);
  if (!loaded)
    return loaded.takeError();
  if ((*loaded)->isCompiledByDriver())
    assembly = {/*cubin=*/"", parsePtxasLog((*loaded)->getCompileLog()),
                "the driver", /*fromCache=*/false};
  for (std::string &remark : getSlowdowns(assembly))
    remarks.push_back(std::move(remark));
  gpu = std::move(*loaded);
  return llvm::Error::success();
}

llvm::Expected<std::unique_ptr<Executable>>
Executable::load(CompiledCode code, const machine::GpuArch *gpu,
                 mlir::TimingScope *timing) {
  auto state = std::make_unique<State>();
  state->remarks = std::move(code.remarks);
  if (gpu)
    if (llvm::Error error = state->loadKernels(code.device, *gpu, timing))
      return std::move(error);
  return link(std::move(state), std::move(code), timing);
}

llvm::Expected<std::unique_ptr<Executable>>
Executable::link(std::unique_ptr<State> state, CompiledCode code,
                 mlir::TimingScope *timing) {
  state->ptx = std::move(code.device.ptx);
  mlir::TimingScope phase = timePhase(timing, "Loading of the host's code");
  auto jit = HostJIT::create(std::move(code.object));
  if (!jit)
    return jit.takeError();
  state->jit = std::move(*jit);
  for (CompiledCode::Function &function : code.functions) {
    State::Entry &entry = state->entries.emplace_back();
    Signature &signature =
        state->signatures.emplace_back(std::move(function.signature));
    if (!signature.obstacle.empty())
      continue;
    auto found = state->jit->lookup(signature.name);
    if (!found)
      return found.takeError();
    entry.function = *found;
    entry.otherSizes = std::move(function.otherSizes);
    if (function.testsOperands) {
      auto test = state->jit->lookup(getAlignmentCheckName(signature.name));
      if (!test)
        return test.takeError();
      entry.areAligned = *test;
    }
    if (function.messages.empty())
      continue;
    auto check = state->jit->lookup(getShapeCheckName(signature.name));
    if (!check)
      return check.takeError();
    entry.checkShapes = *check;
    entry.messages = std::move(function.messages);
  }
  for (std::string &remark : DiskCache::get().takeRemarks())
    state->remarks.push_back(std::move(remark));
  return std::unique_ptr<Executable>(new Executable(std::move(state)));
}

llvm::Expected<std::unique_ptr<Executable>>
Executable::loadKept(const CacheKey &key, llvm::StringRef text,
                     const CompileOptions &options) {
  auto kept = lookUpCode(key);
  if (!kept)
    return nullptr;
  auto loaded = load(std::move(*kept), options.gpu, options.timing);
  if (loaded) {
    auto sizes = llvm::map_to_vector<1>(
        (*loaded)->state->entries,
        [](const auto &entry) { return entry.otherSizes; });
    (*loaded)->state->keepVersions(text, options, sizes);
    (*loaded)->state->finishVersions(text, options);
  }
  return loaded;
}

llvm::Expected<std::unique_ptr<Executable>>
Executable::compile(llvm::StringRef text, llvm::StringRef name,
                    const CompileOptions &options) {
  if (llvm::Error error = checkMachine(options))
    return std::move(error);
  CompileOptions found = options;
  found.schedules = lookUpSchedules(text, options);
  auto kept = loadKept(getCodeKey(text, found), text, options);
  if (!kept || *kept)
    return kept;
  mlir::TimingScope phase = timePhase(options.timing, "Parsing");
  auto program = Program::parse(text, name);
  phase.stop();
  if (!program)
    return program.takeError();
  return (*program)->compile(found);
}
