//===- fovea-run.cpp - Runs, checks and measures a graph ------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Driver/Check.h"
#include "fovea/Driver/Inputs.h"
#include "fovea/Driver/Npy.h"
#include "fovea/Driver/Output.h"
#include "fovea/Driver/Report.h"
#include "fovea/Driver/Tool.h"
#include "fovea/Driver/Tune.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/raw_ostream.h"

using namespace fovea;
namespace cl = llvm::cl;

static cl::OptionCategory category("fovea-run options");
static CompileFlags flags(category);
static cl::opt<std::string>
    entry("entry", cl::desc("Function to run (default: the only one)"),
          cl::value_desc("name"), cl::cat(category));
static cl::list<std::string> inputs(
    "input",
    cl::desc("Operand, once for each in order: an .npy file, or a number "
             "where the operand is one"),
    cl::value_desc("file"), cl::cat(category));
static cl::list<std::string>
    outputs("output", cl::desc("File for a result, once for each in order"),
            cl::value_desc("file.npy"), cl::cat(category));
static cl::opt<bool>
    bf16Bits("bf16-bits",
             cl::desc("Read and write bf16 as its bits in unsigned 16-bit "
                      "integers, for .npy has no bf16"),
             cl::cat(category));
static cl::opt<std::string>
    randomSeed("random",
               cl::desc("Random operands where no --input is given: normally "
                        "distributed numbers, integers from --integers"),
               cl::value_desc("seed"), cl::cat(category));
static cl::opt<std::string>
    integers("integers", cl::desc("Range of random integers (default: 0:7)"),
             cl::value_desc("low:high"), cl::init("0:7"), cl::cat(category));
static cl::list<std::string>
    dims("dims",
         cl::desc("Sizes of random operands: OPERAND:AxBxC by name or number, "
                  "such as q:2x16x1024x64; or N for every dynamic size not "
                  "given otherwise"),
         cl::value_desc("sizes"), cl::CommaSeparated, cl::cat(category));
static cl::opt<bool> check(
    "check",
    cl::desc("Compare with the unfused graph evaluated in f64; fail "
             "beyond the bound of the result's type (f64 1e-11, f32 "
             "2e-5, f16 4e-3, bf16 3.2e-2, relative to the largest "
             "magnitude of the result; of the narrowest type that it is "
             "computed in), unless the unfused graph in its own types is as "
             "far off and the result is near that. With --grad gradients are "
             "also compared with differences of the function in f64"),
    cl::cat(category));
static cl::opt<std::string> referenceFile(
    "reference",
    cl::desc("Graph to compare with instead, for an input that is no longer "
             "one"),
    cl::value_desc("file.mlir"), cl::cat(category));
static cl::opt<bool> checkBounds(
    "check-bounds",
    cl::desc("Run the unfused graph first, with --grad its gradients too, with "
             "a check of every index into a tensor and every divisor of "
             "integers that it computes; fail at the first that is out of "
             "bounds or 0"),
    cl::cat(category));
static cl::opt<bool> gradients(
    "grad",
    cl::desc("Run the function's forward and backward pass: operands are "
             "followed by a cotangent for each result of floating-point "
             "numbers, results by a gradient for each such operand"),
    cl::cat(category));

/// The text lives as long as the flag that refers to it.
static llvm::StringRef getRecomputeHelp() {
  static const std::string text =
      "With --grad, where the backward pass recomputes probabilities (default: "
      "auto): " +
      attn::getRecomputationChoices().describe() +
      "; the strategy unfused reads what the graph saved, op by op";
  return text;
}

static cl::opt<std::string> recompute("recompute", cl::desc(getRecomputeHelp()),
                                      cl::value_desc("policy"),
                                      cl::init("auto"), cl::cat(category));
static cl::opt<bool> simulate(
    "simulate",
    cl::desc("Run the programs of a GPU's thread blocks (--target) in the tile "
             "interpreter, which reports what they must not do: for small "
             "sizes, with no GPU"),
    cl::cat(category));
static cl::opt<uint64_t> firstSeed(
    "seed",
    cl::desc("Order in which roles run and copies and products complete in a "
             "simulation (default: 0, as late as they may)"),
    cl::value_desc("number"), cl::cat(category));
static cl::opt<uint64_t>
    seeds("seeds",
          cl::desc("Number of simulations, with seeds from --seed on, whose "
                   "results must be the same (default: 1)"),
          cl::value_desc("number"), cl::init(1), cl::cat(category));
static cl::opt<bool> timeRuns("time",
                              cl::desc("Print the median time of warm runs, "
                                       "the rate, and the share of what the "
                                       "measured roofline allows"),
                              cl::cat(category));
static cl::opt<bool>
    report("report",
           cl::desc("Compare all strategies: FLOPs, bytes moved, intensity, "
                    "temporary memory, the roofline's bound, predicted and "
                    "measured time; with --grad, probabilities stored and "
                    "recomputed"),
           cl::cat(category));

static cl::opt<bool>
    tuneSchedules("tune",
                  cl::desc("Compile and measure the schedules that the model "
                           "considers valid, on these operands, and keep the "
                           "fastest for later compilations of the same text"),
                  cl::cat(category));
static cl::opt<unsigned> candidates(
    "candidates",
    cl::desc("With --tune, the number of schedules to try for each attention, "
             "those with the least predicted times first (default: all)"),
    cl::value_desc("number"), cl::init(~0u), cl::cat(category));
static cl::opt<bool>
    untuneSchedules("untune",
                    cl::desc("Forget what --tune has kept for this text"),
                    cl::cat(category));

namespace {

/// The operands of a call.
struct Operands {
  std::vector<Tensor> tensors;
  llvm::SmallVector<TensorView> views;
};

} // namespace

/// Formats a count: `1 result`, `2 results`.
static std::string formatCount(size_t count, llvm::StringRef what) {
  return llvm::formatv("{0} {1}{2}", count, what, count == 1 ? "" : "s");
}

/// Reads the operand `index` from the text of its `--input`.
static llvm::Expected<Tensor> readOperand(const Signature &function,
                                          size_t index) {
  const ValueType &type = function.operands[index];
  auto tensor = [&]() -> llvm::Expected<Tensor> {
    if (type.scalar)
      return parseNumber(type.type, inputs[index]);
    if (type.type == DType::BF16 && !bf16Bits)
      return llvm::createStringError(
          "it is bf16, which an .npy file cannot hold; with --bf16-bits an "
          "unsigned 16-bit integer is read as the bits of one");
    return readNpy(inputs[index], type.type == DType::BF16);
  }();
  if (!tensor)
    return llvm::createStringError(formatOperand(function, index) + ": " +
                                   llvm::toString(tensor.takeError()));
  return tensor;
}

/// Returns the shapes of the cotangents of `function`, for operands of these
/// shapes.
static llvm::SmallVector<std::optional<llvm::SmallVector<int64_t>>>
inferCotangents(const Program &program, size_t function,
                llvm::ArrayRef<llvm::SmallVector<int64_t, 4>> shapes) {
  llvm::SmallVector<llvm::SmallVector<int64_t>> operands;
  for (llvm::ArrayRef<int64_t> shape : shapes)
    operands.emplace_back(shape);
  llvm::SmallVector<std::optional<llvm::SmallVector<int64_t>>> cotangents;
  const Signature &signature = program.getFunctions()[function];
  for (auto [type, shape] : llvm::zip_equal(
           signature.results, program.inferResultShapes(function, operands)))
    if (isFloat(type.type))
      cotangents.push_back(shape);
  return cotangents;
}

/// Returns the operands of `function`, which is the function of `graph` with
/// that number, or has its operands first and cotangents after them.
static llvm::Expected<Operands>
makeOperands(const Signature &function, const Program &graph, size_t number) {
  size_t count = function.operands.size();
  if (inputs.size() > count)
    return llvm::createStringError(llvm::formatv(
        "@{0} has {1}, got {2}", function.name, formatCount(count, "operand"),
        formatCount(inputs.size(), "--input flag")));
  uint64_t seed = 0;
  bool random = randomSeed.getNumOccurrences();
  if (random && llvm::StringRef(randomSeed).getAsInteger(0, seed))
    return llvm::createStringError("--random=" + randomSeed +
                                   ": expected a whole number of at least 0");
  if (inputs.size() < count && !random)
    return llvm::createStringError(llvm::formatv(
        "{0} has no data: give --input={1} for each of the {2} "
        "operands, or --random=SEED",
        formatOperand(function, inputs.size()),
        function.operands[inputs.size()].scalar ? "NUMBER" : "FILE.npy",
        count));
  IntegerRange range;
  auto [low, high] = llvm::StringRef(integers).split(':');
  if (low.getAsInteger(0, range.low) || high.getAsInteger(0, range.high) ||
      range.low > range.high)
    return llvm::createStringError("--integers=" + integers +
                                   ": expected LOW:HIGH, such as 0:7");

  Operands operands;
  Signature rest = function;
  for (size_t index = 0; index < inputs.size(); ++index) {
    auto tensor = readOperand(function, index);
    if (!tensor)
      return tensor.takeError();
    rest.operands[index].shape.assign(tensor->getShape().begin(),
                                      tensor->getShape().end());
    operands.tensors.push_back(std::move(*tensor));
  }
  if (inputs.size() < count) {
    auto shapes = resolveShapes(
        rest, dims, graph.getFunctions()[number].operands.size(),
        [&](llvm::ArrayRef<llvm::SmallVector<int64_t, 4>> leading) {
          return inferCotangents(graph, number, leading);
        });
    if (!shapes)
      return shapes.takeError();
    for (size_t index = inputs.size(); index < count; ++index) {
      auto tensor = makeRandom(function.operands[index].type, (*shapes)[index],
                               seed, index, range);
      if (!tensor)
        return llvm::createStringError(formatOperand(function, index) + ": " +
                                       llvm::toString(tensor.takeError()));
      operands.tensors.push_back(std::move(*tensor));
    }
  } else if (!dims.empty()) {
    return llvm::createStringError(
        "--dims gives sizes of random operands, and every operand has an "
        "--input");
  }
  for (const Tensor &tensor : operands.tensors)
    operands.views.push_back(tensor.getView());
  return operands;
}

/// Returns the joint function of `function` and its gradients, as a program of
/// its own.
static llvm::Expected<std::unique_ptr<Program>>
differentiate(const Program &program, size_t function,
              const GradientOptions &options) {
  auto text = program.differentiate(function, options, /*locations=*/true);
  reportRemarks("fovea-run", program.takeRemarks());
  if (!text)
    return text.takeError();
  return Program::parse(*text, "<gradient>");
}

/// Returns the flags' options for gradients; the textbook's are op by op.
static llvm::Expected<GradientOptions>
getGradientOptions(bool textbook, const machine::GpuArch *gpu) {
  GradientOptions options;
  options.textbook = textbook;
  options.gpu = gpu;
  auto policy = attn::getRecomputationChoices().parse(recompute);
  if (!policy)
    return llvm::createStringError("--recompute=" + recompute + ": " +
                                   llvm::toString(policy.takeError()));
  options.recomputation = *policy;
  return options;
}

/// Returns descriptions of the results of a joint function: results of the
/// function, then gradients of its operands.
static llvm::SmallVector<std::string>
describeResults(const Signature &function) {
  llvm::SmallVector<std::string> descriptions(function.results.size());
  for (const ValueType &operand : function.operands)
    if (!operand.scalar && isFloat(operand.type))
      descriptions.push_back(operand.name.empty()
                                 ? " (gradient)"
                                 : " (gradient of %" + operand.name + ")");
  return descriptions;
}

static void printResults(llvm::ArrayRef<Tensor> results,
                         llvm::ArrayRef<std::string> descriptions) {
  for (auto [index, result] : llvm::enumerate(results)) {
    double sum = 0, low = 0, high = 0;
    int64_t elements = result.getNumElements();
    for (int64_t i = 0; i < elements; ++i) {
      double value = result.read(i);
      sum += value;
      low = i ? std::min(low, value) : value;
      high = i ? std::max(high, value) : value;
    }
    llvm::outs() << "result " << index << descriptions[index] << ": "
                 << getName(result.getType());
    if (!result.getShape().empty())
      llvm::outs() << ' ' << formatShape(result.getShape());
    if (elements)
      llvm::outs() << llvm::format(", mean %.6g, min %.6g, max %.6g",
                                   sum / double(elements), low, high);
    llvm::outs() << '\n';
  }
}

/// Fails where the graph's indices leave their tensors or its divisors are 0:
/// in the graph, whose lines the user knows, and then in its gradients.
static llvm::Error checkAccesses(const Program &graph, size_t function,
                                 llvm::ArrayRef<TensorView> operands) {
  auto run = [&](const Program &program, size_t number) -> llvm::Error {
    auto checked = program.compileChecked();
    if (!checked)
      return checked.takeError();
    llvm::SmallVector<Tensor, 0> unread;
    size_t count = program.getFunctions()[number].operands.size();
    CompiledCodeScope scope;
    return (*checked)->call(number, operands.take_front(count), unread);
  };
  if (llvm::Error error = run(graph, function))
    return error;
  if (!gradients)
    return llvm::Error::success();
  GradientOptions textbook;
  textbook.textbook = true;
  auto joint = differentiate(graph, function, textbook);
  if (!joint)
    return joint.takeError();
  return run(**joint, 0);
}

/// Compares with the reference of `graph` or of the given file; an error says
/// which result is beyond its bound.
static llvm::Error checkAgainstGraph(const Program &graph, size_t function,
                                     llvm::ArrayRef<TensorView> operands,
                                     llvm::ArrayRef<Tensor> results) {
  if (!referenceFile.getNumOccurrences())
    return checkResults(graph, function, gradients, operands, results,
                        llvm::outs());
  auto other = parseFile(referenceFile);
  if (!other)
    return other.takeError();
  auto found = findFunction((*other)->getFunctions(),
                            graph.getFunctions()[function].name);
  if (!found)
    return found.takeError();
  return checkResults(**other, *found, gradients, operands, results,
                      llvm::outs());
}

/// Prints the time, the rate and the share of the machine's roofline.
static llvm::Error printTime(const Program &program,
                             const Executable &executable, size_t function,
                             llvm::ArrayRef<TensorView> operands,
                             const CompileOptions &options) {
  auto timing = measure(executable, function, operands);
  if (!timing)
    return timing.takeError();
  auto rates = measureMachine(options);
  if (!rates)
    return rates.takeError();
  const Signature &signature = program.getFunctions()[function];
  llvm::SmallVector<llvm::SmallVector<int64_t>> shapes;
  for (const TensorView &operand : operands)
    shapes.emplace_back(operand.shape);
  auto cost = program.estimate(function, shapes, options, *rates);
  llvm::outs() << llvm::format("time: median %.3f ms of %d runs",
                               timing->seconds * 1e3, timing->runs);
  if (executable.getDevice())
    llvm::outs() << " by the GPU's clock";
  if (!cost) {
    llvm::outs() << '\n';
    return cost.takeError();
  }
  double bound = getRoofline(*cost, signature, *rates);
  llvm::outs() << llvm::format(
      "; %.3f GFLOP, %.1f GFLOP/s, %.0f%% of the measured roofline\n",
      cost->flops() / 1e9, cost->flops() / timing->seconds / 1e9,
      100 * bound / timing->seconds);
  return llvm::Error::success();
}

/// Reports on both passes, for each source of the backward pass' probabilities:
/// stored by the forward pass, or recomputed.
static llvm::Expected<Report>
reportGradients(const Program &program, size_t function,
                llvm::ArrayRef<TensorView> operands,
                const CompileOptions &options) {
  GradientOptions unfused, stored, recomputed;
  unfused.textbook = true;
  stored.recomputation = attn::Recomputation::Never;
  recomputed.recomputation = attn::Recomputation::Always;
  std::vector<std::unique_ptr<Program>> programs;
  llvm::SmallVector<ReportVariant> variants;
  for (auto &[name, gradients, strategy] :
       {std::tuple("unfused", unfused, Strategy::Unfused),
        std::tuple("stored", stored, Strategy::Fused),
        std::tuple("recomputed", recomputed, Strategy::Fused)}) {
    auto made = differentiate(program, function, gradients);
    if (!made)
      return made.takeError();
    variants.push_back({name, made->get(), /*function=*/0, strategy});
    programs.push_back(std::move(*made));
  }
  return makeReport(variants, /*baseline=*/1, operands, options);
}

/// Returns an error if a flag is given without the flag that it needs.
static llvm::Error checkFlags() {
  struct Need {
    const cl::Option &flag;
    bool isMet;
    llvm::StringRef wanted;
  };
  bool isRandom = randomSeed.getNumOccurrences();
  for (const Need &need :
       {Need{recompute, gradients, "--grad"},
        Need{referenceFile, check, "--check"},
        Need{firstSeed, simulate, "--simulate"},
        Need{seeds, simulate, "--simulate"},
        Need{candidates, tuneSchedules, "--tune"},
        Need{dims, isRandom, "--random"}, Need{integers, isRandom, "--random"}})
    if (need.flag.getNumOccurrences() && !need.isMet)
      return llvm::createStringError("--" + need.flag.ArgStr +
                                     " means nothing without " + need.wanted);
  if (!seeds)
    return llvm::createStringError("--seeds=0: expected at least 1");
  if (!candidates)
    return llvm::createStringError("--candidates=0: expected at least 1");
  if (tuneSchedules && untuneSchedules)
    return llvm::createStringError(
        "--untune forgets what --tune finds; expected one of them");
  return llvm::Error::success();
}

static llvm::Error run() {
  auto options = flags.getOptions();
  if (!options)
    return options.takeError();
  if (simulate && !options->gpu)
    return llvm::createStringError(
        "--simulate is of a GPU; expected --target=" +
        machine::GpuArch::listNames());
  if (simulate && (timeRuns || report || tuneSchedules))
    return llvm::createStringError(
        "--simulate has no time to measure; expected no --time, no --report "
        "and no --tune");
  if (llvm::Error error = checkFlags())
    return error;
  auto program = flags.parseInput();
  if (!program)
    return program.takeError();
  auto function = findFunction((*program)->getFunctions(), entry);
  if (!function)
    return function.takeError();
  // The program that is run: the input, or the one with its gradients.
  const Program *runs = program->get();
  size_t number = *function;
  llvm::SmallVector<std::string> descriptions =
      describeResults((*program)->getFunctions()[*function]);
  std::unique_ptr<Program> joint;
  if (gradients) {
    auto wanted = getGradientOptions(options->strategy == Strategy::Unfused,
                                     options->gpu);
    if (!wanted)
      return wanted.takeError();
    auto made = differentiate(**program, *function, *wanted);
    if (!made)
      return made.takeError();
    joint = std::move(*made);
    runs = joint.get();
    number = 0;
  }
  const Signature &signature = runs->getFunctions()[number];
  if (outputs.size() > signature.results.size())
    return llvm::createStringError(
        llvm::formatv("@{0} has {1}, got {2}", signature.name,
                      formatCount(signature.results.size(), "result"),
                      formatCount(outputs.size(), "--output flag")));
  for (auto [index, path] : llvm::enumerate(outputs))
    if (signature.results[index].type == DType::BF16 && !bf16Bits)
      return llvm::createStringError(
          llvm::formatv("result {0} is bf16, which an .npy file cannot hold; "
                        "--bf16-bits writes its bits as unsigned 16-bit "
                        "integers",
                        index));
  if (llvm::Error error = checkOutputs(outputs))
    return error;
  auto operands = makeOperands(signature, **program, *function);
  if (!operands)
    return operands.takeError();

  if (checkBounds)
    if (llvm::Error error =
            checkAccesses(**program, *function, operands->views))
      return error;
  if (untuneSchedules)
    llvm::outs() << (untune(*runs, *options)
                         ? "untune: the model chooses schedules again\n"
                         : "untune: nothing was kept for this text\n");
  if (tuneSchedules) {
    CompiledCodeScope scope;
    auto tuning = tune(*runs, number, operands->views, *options, candidates);
    if (!tuning)
      return tuning.takeError();
    llvm::outs() << tuning->formatText();
  }
  llvm::SmallVector<Tensor, 0> results;
  std::unique_ptr<Executable> executable;
  // The reference gets operands as they were.
  OwnOperands own;
  if (simulate) {
    if (llvm::Error error = runs->simulate(number, operands->views, *options,
                                           {firstSeed, seeds}, results))
      return error;
  } else {
    auto compiled = runs->compile(*options);
    if (!compiled)
      return compiled.takeError();
    executable = std::move(*compiled);
    reportRemarks("fovea-run", executable->getRemarks());
    if (cuda::Device *device = executable->getDevice())
      llvm::outs() << "device: " << cuda::formatDevice(device->getInfo())
                   << ", driver for CUDA "
                   << cuda::formatCudaVersion(device->getDriver().getVersion())
                   << '\n';
    CompiledCodeScope scope;
    auto copied = copyWritable(signature, operands->views);
    if (!copied)
      return copied.takeError();
    own = std::move(*copied);
    if (llvm::Error error = executable->call(number, own.views, results))
      return error;
  }
  printResults(results, descriptions);
  for (auto [index, path] : llvm::enumerate(outputs))
    if (llvm::Error error = writeNpy(path, results[index]))
      return error;
  if (check) {
    // The reference can take far longer than the program that it checks.
    llvm::errs() << "fovea-run: checking: evaluating the graph unfused, op by "
                    "op, in float64\n";
    CompiledCodeScope scope;
    if (llvm::Error error =
            checkAgainstGraph(**program, *function, operands->views, results))
      return error;
  }
  if (timeRuns)
    if (llvm::Error error =
            printTime(*runs, *executable, number, own.views, *options))
      return error;
  if (report) {
    auto made =
        gradients
            ? reportGradients(**program, *function, operands->views, *options)
            : makeReport(getStrategies(**program, *function), /*baseline=*/0,
                         operands->views, *options);
    if (!made)
      return made.takeError();
    llvm::outs() << made->formatText();
  }
  return llvm::Error::success();
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  parseCommandLine(argc, argv, category,
                   "Runs a graph of attention on this machine, checks and "
                   "measures it\n");
  if (llvm::Error error = run())
    return reportError("fovea-run", std::move(error));
  return 0;
}
