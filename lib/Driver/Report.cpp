//===- Report.cpp - Comparison of ways to compute a function --------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Driver/Report.h"
#include "fovea/Driver/DeviceRates.h"
#include "fovea/Runtime/HostRuntime.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>

using namespace fovea;

/// Calls a function on the host for some seconds, after a call that warms
/// caches and threads.
static llvm::Expected<Timing> measureCalls(const Executable &executable,
                                           size_t function,
                                           llvm::ArrayRef<TensorView> operands,
                                           size_t fewest, double seconds) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> times;
  double total = 0;
  llvm::SmallVector<Tensor, 0> results;
  if (llvm::Error error = executable.call(function, operands, results))
    return std::move(error);
  do {
    results.clear();
    auto start = Clock::now();
    if (llvm::Error error = executable.call(function, operands, results))
      return std::move(error);
    times.push_back(
        std::chrono::duration<double>(Clock::now() - start).count());
    total += times.back();
  } while (times.size() < fewest || (total < seconds && times.size() < 10000));
  llvm::sort(times);
  return Timing{times[times.size() / 2], int(times.size())};
}

llvm::Expected<Timing> fovea::measure(const Executable &executable,
                                      size_t function,
                                      llvm::ArrayRef<TensorView> operands) {
  if (!executable.getDevice())
    return measureCalls(executable, function, operands, /*fewest=*/5,
                        /*seconds=*/0.5);
  Timing timing;
  auto onDevice = executable.upload(function, operands);
  if (!onDevice)
    return onDevice.takeError();
  auto seconds = executable.measureLaunch(function, **onDevice, timing.runs);
  if (!seconds)
    return seconds.takeError();
  timing.seconds = *seconds;
  return timing;
}

llvm::Expected<double> fovea::measureTurn(const Executable &executable,
                                          size_t function,
                                          llvm::ArrayRef<TensorView> operands,
                                          const DeviceOperands *onDevice) {
  if (onDevice) {
    int launches = 0;
    return executable.measureLaunch(function, *onDevice, launches,
                                    /*milliseconds=*/10);
  }
  auto timing = measureCalls(executable, function, operands, /*fewest=*/3,
                             /*seconds=*/0.01);
  if (!timing)
    return timing.takeError();
  return timing->seconds;
}

llvm::Expected<MachineRates>
fovea::measureMachine(const CompileOptions &options) {
  if (options.gpu)
    return measureDevice(*options.gpu);
  return measureHost();
}

double fovea::getPeak(const Signature &function, const MachineRates &rates) {
  bool isWide = llvm::any_of(function.operands, [](const ValueType &type) {
    return !type.scalar && type.type == DType::F64;
  });
  return isWide ? rates.peakF64 : rates.peakF32;
}

double fovea::getRoofline(const Cost &cost, const Signature &function,
                          const MachineRates &rates) {
  double seconds = 0;
  for (const KernelCost &kernel : cost.kernels) {
    // Units for matrices work at the same time as the others.
    double matrixFlops = rates.peakMatrix ? kernel.matrixFlops : 0;
    double bound = std::max((kernel.flops - matrixFlops) /
                                (getPeak(function, rates) * 1e9),
                            kernel.bytes / (rates.bandwidth * 1e9));
    if (matrixFlops)
      bound = std::max(bound, matrixFlops * kernel.matrixProducts /
                                  (rates.peakMatrix * 1e9));
    seconds += bound;
  }
  return seconds;
}

llvm::SmallVector<ReportVariant> fovea::getStrategies(const Program &program,
                                                      size_t function) {
  llvm::SmallVector<ReportVariant> variants;
  for (const Choice<Strategy> &choice : getStrategyChoices())
    variants.push_back({choice.name.str(), &program, function, choice.value});
  return variants;
}

/// Compiles, runs and models one variant.
static llvm::Expected<VariantReport>
makeEntry(const ReportVariant &variant, llvm::ArrayRef<TensorView> operands,
          const CompileOptions &options, Report &report) {
  VariantReport entry;
  entry.name = variant.name;
  const Signature &signature =
      variant.program->getFunctions()[variant.function];
  auto executable = variant.program->compile(options);
  if (!executable)
    return executable.takeError();
  if (cuda::Device *device = (*executable)->getDevice())
    report.machine = cuda::formatDevice(device->getInfo());
  auto own = copyWritable(signature, operands);
  if (!own)
    return own.takeError();
  operands = own->views;
  llvm::SmallVector<Tensor, 0> results;
  Executable::Usage usage;
  if (llvm::Error error =
          (*executable)->call(variant.function, operands, results, &usage))
    return std::move(error);
  // The call has checked the operands, so that their shapes can be used.
  llvm::SmallVector<llvm::SmallVector<int64_t>> shapes;
  for (const TensorView &operand : operands)
    shapes.emplace_back(operand.shape);
  // The model uses one peak.
  MachineRates rates = report.rates;
  rates.peakF32 = getPeak(signature, rates);
  auto cost =
      variant.program->estimate(variant.function, shapes, options, rates);
  if (!cost)
    return cost.takeError();
  entry.cost = std::move(*cost);
  entry.rooflineSeconds = getRoofline(entry.cost, signature, report.rates);
  entry.temporaryBytes = usage.temporaryBytes;
  auto timing = measure(**executable, variant.function, operands);
  if (!timing)
    return timing.takeError();
  entry.timing = *timing;
  return entry;
}

llvm::Expected<Report> fovea::makeReport(llvm::ArrayRef<ReportVariant> variants,
                                         size_t baseline,
                                         llvm::ArrayRef<TensorView> operands,
                                         CompileOptions options) {
  Report report;
  auto measured = measureMachine(options);
  if (!measured)
    return measured.takeError();
  report.rates = *measured;
  report.machine = std::to_string(runtime::getNumThreads()) + " threads";
  report.baseline = baseline;
  for (const ReportVariant &variant : variants) {
    options.strategy = variant.strategy;
    auto entry = makeEntry(variant, operands, options, report);
    if (!entry)
      return entry.takeError();
    report.variants.push_back(std::move(*entry));
  }
  return report;
}

std::string Report::formatText() const {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << "machine: " << machine
         << llvm::format(", %.1f GB/s and %.1f GFLOP/s (f32; f64 %.1f",
                         rates.bandwidth, rates.peakF32, rates.peakF64);
  if (rates.peakMatrix)
    stream << "; products of " << rates.matrixTypes
           << llvm::format(" %.1f", rates.peakMatrix);
  stream << "), measured\n\n";
  auto row = [&](const char *name, const char *format, auto get) {
    stream << llvm::format("%-24s", name);
    for (const VariantReport &entry : variants)
      stream << llvm::format(format, get(entry));
    stream << '\n';
  };
  using Entry = const VariantReport &;
  row("", "%12s", [](Entry entry) { return entry.name.c_str(); });
  row("kernels", "%12d",
      [](Entry entry) { return int(entry.cost.kernels.size()); });
  row("GFLOP", "%12.4g", [](Entry entry) { return entry.cost.flops() / 1e9; });
  row("MB moved", "%12.4g",
      [](Entry entry) { return entry.cost.bytes() / 1e6; });
  row("FLOP per byte", "%12.4g",
      [](Entry entry) { return entry.cost.intensity(); });
  row("temporary memory, MB", "%12.4g",
      [](Entry entry) { return double(entry.temporaryBytes) / 1e6; });
  row("roofline bound, ms", "%12.4g",
      [](Entry entry) { return entry.rooflineSeconds * 1e3; });
  row("predicted, ms", "%12.4g",
      [](Entry entry) { return entry.cost.seconds() * 1e3; });
  row("measured, ms", "%12.4g",
      [](Entry entry) { return entry.timing.seconds * 1e3; });
  row("measured, GFLOP/s", "%12.4g", [](Entry entry) {
    return entry.cost.flops() / entry.timing.seconds / 1e9;
  });

  const VariantReport &first = variants[baseline];
  const VariantReport &last = variants.back();
  auto ratio = [](double a, double b) { return b > 0 ? a / b : 0; };
  // Returns one of two texts for the ratio of two numbers, with a factor of at
  // least 1.
  auto compare = [&](double larger, double smaller, const char *more,
                     const char *less) {
    bool isLess = larger < smaller;
    stream << llvm::format(", %.1f times ", isLess ? ratio(smaller, larger)
                                                   : ratio(larger, smaller))
           << (isLess ? less : more);
  };
  stream << '\n' << last.name << " against " << first.name << ": ";
  if (first.cost.flops() > 0)
    stream << llvm::format("%.3g x the FLOPs",
                           ratio(last.cost.flops(), first.cost.flops()));
  else
    stream << "no FLOPs to compare";
  compare(first.cost.bytes(), last.cost.bytes(), "less traffic",
          "more traffic");
  compare(first.timing.seconds, last.timing.seconds, "faster", "slower");
  stream << '\n';
  return text;
}

std::string Report::formatJSON() const {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::json::OStream json(stream, 2);
  json.object([&] {
    json.attribute("text", formatText());
    json.attribute("machine", machine);
    json.attribute("bandwidth", rates.bandwidth * 1e9);
    json.attribute("peak_f32", rates.peakF32 * 1e9);
    json.attribute("peak_f64", rates.peakF64 * 1e9);
    json.attribute("peak_matrix", rates.peakMatrix * 1e9);
    json.attributeObject("strategies", [&] {
      for (const VariantReport &entry : variants)
        json.attributeObject(entry.name, [&] {
          json.attribute("flops", entry.cost.flops());
          json.attribute("bytes", entry.cost.bytes());
          json.attribute("intensity", entry.cost.intensity());
          json.attribute("temporary_bytes", entry.temporaryBytes);
          json.attribute("roofline_seconds", entry.rooflineSeconds);
          json.attribute("predicted_seconds", entry.cost.seconds());
          json.attribute("measured_seconds", entry.timing.seconds);
          json.attributeArray("kernels", [&] {
            for (const KernelCost &kernel : entry.cost.kernels)
              json.object([&] {
                json.attribute("name", kernel.name);
                json.attribute("flops", kernel.flops);
                json.attribute("matrix_flops", kernel.matrixFlops);
                json.attribute("bytes", kernel.bytes);
                json.attribute("seconds", kernel.seconds);
              });
          });
        });
    });
  });
  return text;
}
