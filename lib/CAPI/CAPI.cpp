//===- CAPI.cpp - Fovea's C API -------------------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Launch.h"

#include "fovea/Driver/Inputs.h"
#include "fovea/Driver/Report.h"
#include "fovea/Driver/Tune.h"
#include "fovea/Runtime/HostRuntime.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

#include <limits>
#include <mutex>

using namespace fovea;

struct fovea_status {
  fovea_code code;
  std::string message;
};

struct fovea_buffer {
  std::string text;
};

namespace {
/// A result's memory, and its address.
struct Owner {
  Tensor tensor;
  /// The number of a GPU; negative for host memory.
  int32_t device = -1;
};

/// The code that modules of equal text and options share.
struct Compiled {
  std::string text;
  CompileOptions options;
  std::unique_ptr<Executable> executable;

  /// The text as a program. Parsed when it is first asked for, since code that
  /// comes from the disk cache does not need it.
  llvm::Expected<const Program &> getProgram() {
    std::lock_guard<std::mutex> lock(mutex);
    if (!program) {
      auto parsed = Program::parse(text, kTextName);
      if (!parsed)
        return parsed.takeError();
      program = std::move(*parsed);
    }
    return *program;
  }

  /// The name of the text in errors.
  static constexpr llvm::StringLiteral kTextName = "<text>";

private:
  std::mutex mutex;
  std::unique_ptr<Program> program;
};
} // namespace

static_assert(int(DType::F16) == FOVEA_F16 && int(DType::BF16) == FOVEA_BF16 &&
              int(DType::F32) == FOVEA_F32 && int(DType::F64) == FOVEA_F64 &&
              int(DType::Bool) == FOVEA_BOOL && int(DType::I8) == FOVEA_I8 &&
              int(DType::I16) == FOVEA_I16 && int(DType::I32) == FOVEA_I32 &&
              int(DType::I64) == FOVEA_I64);

struct fovea_context {
  std::mutex mutex;
  llvm::StringMap<std::weak_ptr<Compiled>> compiled;
};

struct fovea_module {
  std::shared_ptr<Compiled> compiled;

  llvm::ArrayRef<Signature> getFunctions() const {
    return compiled->executable->getFunctions();
  }
};

static fovea_status *fail(fovea_code code, const llvm::Twine &message) {
  return new fovea_status{code, message.str()};
}

static fovea_status *fail(fovea_code code, llvm::Error error) {
  return new fovea_status{code, llvm::toString(std::move(error))};
}

/// An error's code and message.
static std::pair<std::error_code, std::string> split(llvm::Error error) {
  std::pair<std::error_code, std::string> result;
  llvm::handleAllErrors(std::move(error), [&](const llvm::ErrorInfoBase &info) {
    result = {info.convertToErrorCode(), info.message()};
  });
  return result;
}

//===----------------------------------------------------------------------===//
// Errors, the library, buffers
//===----------------------------------------------------------------------===//

fovea_code fovea_status_get_code(const fovea_status *status) {
  return status->code;
}
const char *fovea_status_get_message(const fovea_status *status) {
  return status->message.c_str();
}
void fovea_status_destroy(fovea_status *status) { delete status; }

const char *fovea_get_version(void) { return FOVEA_VERSION; }
int fovea_get_num_threads(void) { return runtime::getNumThreads(); }
void fovea_set_num_threads(int threads) { runtime::setNumThreads(threads); }

const char *fovea_buffer_get_data(const fovea_buffer *buffer) {
  return buffer->text.c_str();
}
size_t fovea_buffer_get_size(const fovea_buffer *buffer) {
  return buffer->text.size();
}
void fovea_buffer_destroy(fovea_buffer *buffer) { delete buffer; }

//===----------------------------------------------------------------------===//
// Contexts and modules
//===----------------------------------------------------------------------===//

fovea_status *fovea_context_create(fovea_context **context) {
  *context = new fovea_context;
  return nullptr;
}
void fovea_context_destroy(fovea_context *context) { delete context; }

/// Reads the options and adds to `key`, so that it differs for different
/// options.
static llvm::Expected<CompileOptions> readOptions(const fovea_options *given,
                                                  std::string &key) {
  fovea_options options = given ? *given : fovea_options();
  auto get = [&](const char *value, const char *otherwise) {
    llvm::StringRef result = value && *value ? value : otherwise;
    key += (llvm::Twine(result.size()) + ":" + result + ";").str();
    return result;
  };
  llvm::StringRef target = get(options.target, "host");
  llvm::StringRef strategy = get(options.strategy, "fused");
  llvm::StringRef arch = get(options.arch, "native");
  CompileOptions result;
  result.cpu = get(options.cpu, "").str();
  result.optLevel = options.opt_level ? options.opt_level - 1 : 1;
  key += llvm::utostr(unsigned(result.optLevel)) + ";";
  result.deterministic = options.deterministic;
  key += result.deterministic ? "deterministic;" : "";
  result.exactFunctions = options.exact_functions;
  key += result.exactFunctions ? "exact-functions;" : "";
  key += options.check_bounds ? "check-bounds;" : "";
  result.typicalLength = options.typical_length;
  key += llvm::itostr(result.typicalLength) + ";";
  auto gpu = parseTarget(target);
  if (!gpu)
    return gpu.takeError();
  result.gpu = *gpu;
  auto parsedStrategy = getStrategyChoices().parse(strategy);
  if (!parsedStrategy)
    return parsedStrategy.takeError();
  result.strategy = *parsedStrategy;
  auto parsedArch = getHostArchChoices().parse(arch);
  if (!parsedArch)
    return parsedArch.takeError();
  result.arch = *parsedArch;
  if (result.typicalLength < 0)
    return llvm::createStringError("typical_length is " +
                                   llvm::Twine(result.typicalLength) +
                                   "; expected 1 or more, or 0 for any");
  if (result.optLevel < 0 || result.optLevel > 3)
    return llvm::createStringError("opt_level is " +
                                   llvm::Twine(options.opt_level) +
                                   "; expected 0 for the default, or 1 to 4");
  if (options.num_operands && !options.operands)
    return llvm::createStringError("num_operands is " +
                                   llvm::Twine(options.num_operands) +
                                   "; expected 0 where operands is null");
  for (const fovea_tensor &operand :
       llvm::ArrayRef(options.operands, options.num_operands)) {
    if (operand.rank < 0 || operand.rank > FOVEA_MAX_RANK)
      return llvm::createStringError(
          "an operand has the rank " + llvm::Twine(operand.rank) +
          "; expected 0 to " + llvm::Twine(FOVEA_MAX_RANK));
    result.callShapes.emplace_back(operand.shape, operand.shape + operand.rank);
  }
  return result;
}

/// All ranks must fit the structures of this interface.
static llvm::Error checkRanks(llvm::ArrayRef<Signature> functions) {
  auto check = [](const Signature &function,
                  llvm::ArrayRef<ValueType> types) -> llvm::Error {
    for (const ValueType &type : types)
      if (type.shape.size() > FOVEA_MAX_RANK)
        return llvm::createStringError(
            llvm::formatv("@{0} has a tensor of rank {1}; expected at most {2}",
                          function.name, type.shape.size(), FOVEA_MAX_RANK));
    return llvm::Error::success();
  };
  for (const Signature &function : functions) {
    if (llvm::Error error = check(function, function.operands))
      return error;
    if (llvm::Error error = check(function, function.results))
      return error;
  }
  return llvm::Error::success();
}

fovea_status *fovea_compile(fovea_context *context, const char *text,
                            size_t length, const fovea_options *options,
                            fovea_module **module) {
  *module = nullptr;
  std::string key;
  auto parsed = readOptions(options, key);
  if (!parsed)
    return fail(FOVEA_INVALID_ARGUMENT, parsed.takeError());
  key.append(text, length);
  {
    std::lock_guard<std::mutex> lock(context->mutex);
    if (auto known = context->compiled.lookup(key).lock()) {
      *module = new fovea_module{std::move(known)};
      return nullptr;
    }
  }
  // Without the lock: two threads that compile the same text at the same time
  // both do the work, and threads with different texts do not wait.
  auto compiled = std::make_shared<Compiled>();
  compiled->text.assign(text, length);
  compiled->options = *parsed;
  auto executable =
      Executable::compile(compiled->text, Compiled::kTextName, *parsed);
  if (!executable)
    return fail(FOVEA_COMPILE_ERROR, executable.takeError());
  if (llvm::Error error = checkRanks((*executable)->getFunctions()))
    return fail(FOVEA_COMPILE_ERROR, std::move(error));
  compiled->executable = std::move(*executable);
  if (options && options->check_bounds) {
    auto program = compiled->getProgram();
    if (!program)
      return fail(FOVEA_COMPILE_ERROR, program.takeError());
    auto checker = program->compileChecked();
    if (!checker)
      return fail(FOVEA_COMPILE_ERROR, checker.takeError());
    compiled->executable->setChecker(std::move(*checker));
  }
  {
    std::lock_guard<std::mutex> lock(context->mutex);
    // Forget what nobody holds any more.
    llvm::SmallVector<std::string> expired;
    for (auto &entry : context->compiled)
      if (entry.getValue().expired())
        expired.push_back(entry.getKey().str());
    for (const std::string &old : expired)
      context->compiled.erase(old);
    context->compiled[key] = compiled;
  }
  *module = new fovea_module{std::move(compiled)};
  return nullptr;
}

fovea_status *fovea_differentiate(const char *text, size_t length,
                                  const fovea_gradient_options *options,
                                  fovea_buffer **buffer) {
  *buffer = nullptr;
  fovea_gradient_options given = options ? *options : fovea_gradient_options();
  GradientOptions gradient;
  auto recomputation = attn::getRecomputationChoices().parse(
      given.recompute ? given.recompute : "auto");
  if (!recomputation)
    return fail(FOVEA_INVALID_ARGUMENT, recomputation.takeError());
  gradient.recomputation = *recomputation;
  gradient.textbook = given.textbook;
  gradient.partition = given.partition;
  auto gpu = parseTarget(given.target ? given.target : "host");
  if (!gpu)
    return fail(FOVEA_INVALID_ARGUMENT, gpu.takeError());
  gradient.gpu = *gpu;
  auto program =
      Program::parse(llvm::StringRef(text, length), Compiled::kTextName);
  if (!program)
    return fail(FOVEA_COMPILE_ERROR, program.takeError());
  auto function = findFunction((*program)->getFunctions(),
                               given.function ? given.function : "");
  if (!function)
    return fail(FOVEA_INVALID_ARGUMENT, function.takeError());
  auto result = (*program)->differentiate(*function, gradient);
  if (!result)
    return fail(FOVEA_COMPILE_ERROR, result.takeError());
  *buffer = new fovea_buffer{std::move(*result)};
  return nullptr;
}

void fovea_module_destroy(fovea_module *module) { delete module; }

/// Returns the module at the level that `name` names.
static llvm::Expected<std::string>
emit(Compiled &compiled, llvm::StringRef name, std::optional<Level> level) {
  const Executable &executable = *compiled.executable;
  if (name == "ptx")
    return executable.getPTX().str();
  if (name == "cubin" && !executable.getAssembly().cubin.empty())
    return executable.getAssembly().cubin;
  auto program = compiled.getProgram();
  if (!program)
    return program.takeError();
  if (level)
    return program->print(*level, compiled.options);
  if (name == "cubin") {
    auto assembly = program->assemble(compiled.options);
    if (!assembly)
      return assembly.takeError();
    return std::move(assembly->cubin);
  }
  auto code = program->emit(
      name == "asm" ? CodeKind::Assembly : CodeKind::Object, compiled.options);
  if (!code)
    return code.takeError();
  return (*code)->getBuffer().str();
}

fovea_status *fovea_module_emit(const fovea_module *module, const char *level,
                                fovea_buffer **buffer) {
  *buffer = nullptr;
  llvm::StringRef name(level);
  Compiled &compiled = *module->compiled;
  auto parsed = parseLevel(name, compiled.options);
  if (!parsed)
    return fail(FOVEA_INVALID_ARGUMENT, parsed.takeError());
  auto text = emit(compiled, name, *parsed);
  if (!text)
    return fail(FOVEA_COMPILE_ERROR, text.takeError());
  *buffer = new fovea_buffer{std::move(*text)};
  return nullptr;
}

fovea_status *fovea_module_get_remarks(const fovea_module *module,
                                       fovea_buffer **buffer) {
  std::string text;
  for (const std::string &remark : module->compiled->executable->getRemarks())
    text += remark + '\n';
  *buffer = new fovea_buffer{std::move(text)};
  return nullptr;
}

fovea_status *fovea_module_get_resources(const fovea_module *module,
                                         fovea_buffer **buffer) {
  *buffer = nullptr;
  const Compiled &compiled = *module->compiled;
  if (!compiled.options.gpu)
    return fail(FOVEA_INVALID_ARGUMENT,
                "the module is for the host; expected one for a GPU");
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::json::OStream json(stream);
  json.array([&] {
    for (const KernelResources &kernel :
         compiled.executable->getAssembly().report.kernels)
      json.object([&] {
        json.attribute("name", kernel.name);
        json.attribute("registers", kernel.registers);
        json.attribute("stack_bytes", kernel.stackBytes);
        json.attribute("spill_store_bytes", kernel.spillStoreBytes);
        json.attribute("spill_load_bytes", kernel.spillLoadBytes);
        json.attribute("static_shared_bytes", kernel.staticSharedBytes);
        json.attribute("barriers", kernel.barriers);
      });
  });
  *buffer = new fovea_buffer{std::move(text)};
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

size_t fovea_module_get_num_functions(const fovea_module *module) {
  return module->getFunctions().size();
}

const char *fovea_module_get_function_name(const fovea_module *module,
                                           size_t function) {
  if (function >= module->getFunctions().size())
    return nullptr;
  return module->getFunctions()[function].name.c_str();
}

fovea_status *fovea_module_find_function(const fovea_module *module,
                                         const char *name, size_t *function) {
  auto found = findFunction(module->getFunctions(), name ? name : "");
  if (!found)
    return fail(FOVEA_INVALID_ARGUMENT, found.takeError());
  *function = *found;
  return nullptr;
}

size_t fovea_module_get_num_operands(const fovea_module *module,
                                     size_t function) {
  auto functions = module->getFunctions();
  return function < functions.size() ? functions[function].operands.size() : 0;
}

size_t fovea_module_get_num_results(const fovea_module *module,
                                    size_t function) {
  auto functions = module->getFunctions();
  return function < functions.size() ? functions[function].results.size() : 0;
}

static fovea_status *getType(llvm::ArrayRef<ValueType> types, size_t index,
                             fovea_type *result) {
  if (index >= types.size())
    return fail(
        FOVEA_INVALID_ARGUMENT,
        llvm::formatv("index {0} is not below {1}", index, types.size()).str());
  const ValueType &type = types[index];
  *result = {};
  result->dtype = int32_t(type.type);
  result->rank = int32_t(type.shape.size());
  result->is_scalar = type.scalar;
  result->is_writable = type.writable;
  llvm::copy(type.shape, result->shape);
  result->name = type.name.c_str();
  return nullptr;
}

fovea_status *fovea_module_get_operand_type(const fovea_module *module,
                                            size_t function, size_t index,
                                            fovea_type *type) {
  if (function >= module->getFunctions().size())
    return fail(FOVEA_INVALID_ARGUMENT, "there is no such function");
  return getType(module->getFunctions()[function].operands, index, type);
}

fovea_status *fovea_module_get_result_type(const fovea_module *module,
                                           size_t function, size_t index,
                                           fovea_type *type) {
  if (function >= module->getFunctions().size())
    return fail(FOVEA_INVALID_ARGUMENT, "there is no such function");
  return getType(module->getFunctions()[function].results, index, type);
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// Reads the operands of a call in the form that the driver takes.
static llvm::Error readOperands(const Signature &function,
                                const fovea_tensor *operands,
                                size_t numOperands,
                                llvm::SmallVectorImpl<TensorView> &views) {
  for (size_t i = 0; i < numOperands; ++i) {
    const fovea_tensor &operand = operands[i];
    if (operand.dtype < 0 || operand.dtype > FOVEA_I64 || operand.rank < 0 ||
        operand.rank > FOVEA_MAX_RANK)
      return llvm::createStringError(llvm::formatv(
          "operand {0} of @{1}: no such dtype ({2}) or rank ({3})", i,
          function.name, operand.dtype, operand.rank));
    views.push_back({DType(operand.dtype),
                     operand.data,
                     {operand.shape, size_t(operand.rank)},
                     {operand.strides, size_t(operand.rank)}});
  }
  return llvm::Error::success();
}

/// Returns the status for a call that failed, by whether its operands are to
/// blame.
static fovea_status *failCall(llvm::Error error) {
  auto [code, message] = split(std::move(error));
  return fail(code == std::errc::invalid_argument ? FOVEA_INVALID_ARGUMENT
                                                  : FOVEA_RUNTIME_ERROR,
              message);
}

/// Checks that a function can be called with room for these results.
static fovea_status *checkCall(const fovea_module *module, size_t function,
                               size_t numResults) {
  auto functions = module->getFunctions();
  if (function >= functions.size() || !functions[function].obstacle.empty())
    return fail(FOVEA_INVALID_ARGUMENT,
                function < functions.size()
                    ? llvm::Twine(functions[function].obstacle)
                    : "there is no such function");
  if (numResults != functions[function].results.size())
    return fail(FOVEA_INVALID_ARGUMENT,
                llvm::formatv("@{0}: expected room for {1} results, got {2}",
                              functions[function].name,
                              functions[function].results.size(), numResults)
                    .str());
  return nullptr;
}

fovea_status *fovea_module_call(const fovea_module *module, size_t function,
                                const fovea_tensor *operands,
                                size_t numOperands, fovea_tensor *results,
                                size_t numResults) {
  if (fovea_status *status = checkCall(module, function, numResults))
    return status;
  auto functions = module->getFunctions();
  llvm::SmallVector<TensorView, 8> views;
  if (llvm::Error error =
          readOperands(functions[function], operands, numOperands, views))
    return fail(FOVEA_INVALID_ARGUMENT, std::move(error));
  llvm::SmallVector<Tensor, 2> tensors;
  if (llvm::Error error =
          module->compiled->executable->call(function, views, tensors))
    return failCall(std::move(error));
  for (auto [index, tensor] : llvm::enumerate(tensors)) {
    fovea_tensor &result = results[index];
    TensorView view = tensor.getView();
    result.data = view.data;
    result.dtype = int32_t(view.type);
    result.rank = int32_t(view.shape.size());
    llvm::copy(view.shape, result.shape);
    llvm::copy(view.strides, result.strides);
    result.owner = new Owner{std::move(tensor)};
  }
  return nullptr;
}

/// Returns the memory of new results to the GPU.
static void freeOnDevice(void *data) {
  if (auto driver = cuda::Driver::get()) {
    if (auto device = driver->open())
      return device->free(data);
    else
      llvm::consumeError(device.takeError());
  } else {
    llvm::consumeError(driver.takeError());
  }
}

fovea_status *fovea_module_launch(const fovea_module *module, size_t function,
                                  const fovea_tensor *operands,
                                  size_t numOperands, void *stream,
                                  fovea_tensor *results, size_t numResults) {
  return launchOn(std::nullopt, module, function, {operands, numOperands},
                  stream, {results, numResults});
}

fovea_status *fovea::launchOn(std::optional<int32_t> ordinal,
                              const fovea_module *module, size_t function,
                              llvm::ArrayRef<fovea_tensor> operands,
                              void *stream,
                              llvm::MutableArrayRef<fovea_tensor> results) {
  const Executable &executable = *module->compiled->executable;
  if (!executable.getDevice())
    return fail(FOVEA_INVALID_ARGUMENT,
                "the module is for the host; fovea_module_launch expects one "
                "for a GPU");
  const cuda::DeviceInfo &device = executable.getDevice()->getInfo();
  if (ordinal && *ordinal != device.ordinal)
    return fail(FOVEA_INVALID_ARGUMENT,
                "expected memory of " + cuda::formatDevice(device) +
                    ", got memory of device " + llvm::Twine(*ordinal));
  if (fovea_status *status = checkCall(module, function, results.size()))
    return status;
  const Signature &signature = module->getFunctions()[function];
  llvm::SmallVector<TensorView, 8> views;
  if (llvm::Error error =
          readOperands(signature, operands.data(), operands.size(), views))
    return fail(FOVEA_INVALID_ARGUMENT, std::move(error));
  llvm::SmallVector<cuda::ResultBuffer, 4> buffers(results.size());
  for (auto [index, buffer] : llvm::enumerate(buffers)) {
    const ValueType &type = signature.results[index];
    if (!results[index].data)
      continue;
    llvm::ArrayRef<int64_t> shape(results[index].shape, type.shape.size());
    auto elements = countElements(shape, type.type);
    if (results[index].dtype != int32_t(type.type) ||
        results[index].rank != int32_t(type.shape.size()) || !elements)
      return fail(FOVEA_INVALID_ARGUMENT,
                  llvm::formatv("result {0} of @{1}: expected memory for a {2}",
                                index, signature.name, formatType(type))
                      .str());
    buffer.data = results[index].data;
    buffer.bytes = *elements * getSize(type.type);
    buffer.isGuess = ordinal.has_value();
  }
  llvm::SmallVector<int64_t, 32> shapes;
  if (llvm::Error error =
          executable.launch(function, views, stream, buffers, shapes,
                            /*areOwn=*/ordinal.has_value()))
    return failCall(std::move(error));
  llvm::ArrayRef<int64_t> rest = shapes;
  for (auto [index, buffer] : llvm::enumerate(buffers)) {
    const ValueType &type = signature.results[index];
    fovea_tensor &result = results[index];
    llvm::ArrayRef<int64_t> shape = rest.take_front(type.shape.size());
    rest = rest.drop_front(type.shape.size());
    result.data = buffer.data;
    result.dtype = int32_t(type.type);
    result.rank = int32_t(shape.size());
    llvm::copy(shape, result.shape);
    int64_t stride = 1;
    for (size_t dim = shape.size(); dim-- > 0; stride *= shape[dim])
      result.strides[dim] = stride;
    result.owner = nullptr;
    if (buffer.allocated)
      result.owner = new Owner{
          Tensor(type.type, shape, buffer.data, buffer.data, freeOnDevice),
          device.ordinal};
  }
  return nullptr;
}

namespace {
/// The operands of a measurement.
struct MeasuredOperands {
  llvm::SmallVector<Tensor, 0> random;
  llvm::SmallVector<TensorView, 8> views;
};
} // namespace

/// Reads operands, or makes random ones where there are none.
static fovea_status *readMeasured(const fovea_module *module, size_t function,
                                  const fovea_tensor *operands,
                                  size_t numOperands,
                                  MeasuredOperands &measured) {
  auto functions = module->getFunctions();
  if (function >= functions.size() || !functions[function].obstacle.empty())
    return fail(FOVEA_INVALID_ARGUMENT, "there is no such function to call");
  const Signature &signature = functions[function];
  if (numOperands != 0 || signature.operands.empty()) {
    if (llvm::Error error =
            readOperands(signature, operands, numOperands, measured.views))
      return fail(FOVEA_INVALID_ARGUMENT, std::move(error));
    return nullptr;
  }
  auto shapes = resolveShapes(signature, {});
  if (!shapes)
    return fail(FOVEA_INVALID_ARGUMENT,
                "@" + signature.name +
                    " has dynamic sizes; give it operands to measure");
  for (auto [index, operand] : llvm::enumerate(signature.operands)) {
    auto tensor = makeRandom(operand.type, (*shapes)[index], 1, index, {});
    if (!tensor)
      return fail(FOVEA_RUNTIME_ERROR, tensor.takeError());
    measured.random.push_back(std::move(*tensor));
  }
  for (const Tensor &tensor : measured.random)
    measured.views.push_back(tensor.getView());
  return nullptr;
}

fovea_status *fovea_module_report(const fovea_module *module, size_t function,
                                  const fovea_tensor *operands,
                                  size_t numOperands, fovea_buffer **buffer) {
  *buffer = nullptr;
  MeasuredOperands measured;
  if (fovea_status *status =
          readMeasured(module, function, operands, numOperands, measured))
    return status;
  auto program = module->compiled->getProgram();
  if (!program)
    return fail(FOVEA_COMPILE_ERROR, program.takeError());
  auto report = makeReport(getStrategies(*program, function), /*baseline=*/0,
                           measured.views, module->compiled->options);
  if (!report)
    return failCall(report.takeError());
  *buffer = new fovea_buffer{report->formatJSON()};
  return nullptr;
}

fovea_status *fovea_module_tune(const fovea_module *module, size_t function,
                                const fovea_tensor *operands,
                                size_t numOperands, size_t candidates,
                                fovea_buffer **buffer) {
  *buffer = nullptr;
  MeasuredOperands measured;
  if (fovea_status *status =
          readMeasured(module, function, operands, numOperands, measured))
    return status;
  auto program = module->compiled->getProgram();
  if (!program)
    return fail(FOVEA_COMPILE_ERROR, program.takeError());
  auto tuning =
      tune(*program, function, measured.views, module->compiled->options,
           candidates ? candidates : std::numeric_limits<size_t>::max());
  if (!tuning)
    return failCall(tuning.takeError());
  *buffer = new fovea_buffer{tuning->formatJSON()};
  return nullptr;
}

void fovea_tensor_release(fovea_tensor *tensor) {
  fovea_owner_release(tensor->owner);
  tensor->owner = nullptr;
}

void fovea_owner_release(void *owner) { delete static_cast<Owner *>(owner); }

//===----------------------------------------------------------------------===//
// DLPack
//===----------------------------------------------------------------------===//

namespace {
/// DLManagedTensor of DLPack 0.8, whose layout is its interface, followed by
/// the data that it refers to.
struct ManagedTensor {
  struct {
    void *data;
    struct {
      int32_t type;
      int32_t id;
    } device;
    int32_t rank;
    struct {
      uint8_t code;
      uint8_t bits;
      uint16_t lanes;
    } dtype;
    int64_t *shape;
    int64_t *strides;
    uint64_t byteOffset;
  } tensor;
  void *context;
  void (*deleter)(ManagedTensor *);

  std::unique_ptr<Owner> owner;
};
} // namespace

static constexpr int32_t kDLPackCPU = 1;
static constexpr int32_t kDLPackCUDA = 2;

/// Returns the codes of integers, floats, bf16 and bool.
static uint8_t getDLPackCode(DType type) {
  if (type == DType::BF16)
    return 4;
  if (type == DType::Bool)
    return 6;
  return isFloat(type) ? 2 : 0;
}

void *fovea_owner_to_dlpack(void *owner) {
  auto *managed = new ManagedTensor{};
  managed->owner.reset(static_cast<Owner *>(owner));
  TensorView view = managed->owner->tensor.getView();
  int32_t device = managed->owner->device;
  managed->tensor.data = view.data;
  managed->tensor.device = {device < 0 ? kDLPackCPU : kDLPackCUDA,
                            std::max(device, 0)};
  managed->tensor.rank = int32_t(view.shape.size());
  managed->tensor.dtype = {getDLPackCode(view.type),
                           uint8_t(8 * getSize(view.type)), 1};
  // DLPack's pointers are not const, and nobody writes through them.
  managed->tensor.shape = const_cast<int64_t *>(view.shape.data());
  managed->tensor.strides = const_cast<int64_t *>(view.strides.data());
  managed->deleter = [](ManagedTensor *self) { delete self; };
  return managed;
}
