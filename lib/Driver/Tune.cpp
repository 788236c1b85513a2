//===- Tune.cpp - Schedules tried and measured ----------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Driver/Tune.h"

#include "CompiledCode.h"

#include "fovea/Driver/Check.h"
#include "fovea/Driver/Report.h"
#include "fovea/Runtime/HostRuntime.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/ThreadPool.h"
#include "llvm/Support/raw_ostream.h"

using namespace fovea;

using Tensors = llvm::SmallVector<Tensor, 0>;

namespace {
/// A schedule that is compiled.
struct Candidate {
  TunedSchedule &tuned;
  std::unique_ptr<Executable> executable;
  /// The times of its turns.
  std::vector<double> seconds;

  bool isValid() const { return tuned.problem.empty(); }
};

/// Tunes one function.
class Tuner {
public:
  Tuner(const Program &program, size_t function,
        llvm::ArrayRef<TensorView> operands, const CompileOptions &options)
      : program(program), function(function), operands(operands),
        options(options) {}

  /// Tries the schedules of attention `number`; those of the others are in
  /// `chosen`.
  llvm::Error tune(TunedAttention &attention, size_t number,
                   const ScheduleList &chosen);

private:
  /// Compiles all candidates, side by side.
  void compile(llvm::MutableArrayRef<Candidate> candidates, size_t number,
               const ScheduleList &chosen);
  /// Calls a function on operands of its own.
  llvm::Expected<Tensors> call(const Executable &executable);
  /// Finds candidates whose results are not those of the first.
  llvm::Error check(llvm::MutableArrayRef<Candidate> candidates);
  /// Measures all candidates, in turns.
  llvm::Error measure(llvm::MutableArrayRef<Candidate> candidates);

  const Program &program;
  size_t function;
  llvm::ArrayRef<TensorView> operands;
  const CompileOptions &options;
  llvm::DefaultThreadPool pool{
      llvm::hardware_concurrency(runtime::getNumThreads())};
};
} // namespace

/// Returns the first line of a message.
static std::string takeLine(llvm::Error error) {
  return llvm::StringRef(llvm::toString(std::move(error)))
      .split('\n')
      .first.str();
}

void Tuner::compile(llvm::MutableArrayRef<Candidate> candidates, size_t number,
                    const ScheduleList &chosen) {
  for (Candidate &candidate : candidates)
    pool.async([&] {
      CompileOptions own = options;
      own.schedules = chosen;
      (*own.schedules)[number] = candidate.tuned.schedule;
      // Not the program, which compiles once at a time.
      auto compiled = Executable::compile(program.getText(), "<tune>", own);
      if (compiled)
        candidate.executable = std::move(*compiled);
      else
        candidate.tuned.problem =
            "is not compiled: " + takeLine(compiled.takeError());
    });
  pool.wait();
}

llvm::Expected<Tensors> Tuner::call(const Executable &executable) {
  auto own = copyWritable(program.getFunctions()[function], operands);
  if (!own)
    return own.takeError();
  Tensors results;
  if (llvm::Error error = executable.call(function, own->views, results))
    return std::move(error);
  return results;
}

llvm::Error Tuner::check(llvm::MutableArrayRef<Candidate> candidates) {
  auto expected = call(*candidates.front().executable);
  if (!expected)
    return expected.takeError();
  auto bounds = program.getErrorBounds(function);
  if (!bounds)
    return bounds.takeError();
  // Calls have the machine to themselves, and comparisons share it.
  unsigned waiting = 0;
  for (Candidate &candidate : candidates.drop_front()) {
    if (!candidate.isValid())
      continue;
    auto results = call(*candidate.executable);
    if (!results) {
      candidate.tuned.problem = "fails: " + takeLine(results.takeError());
      continue;
    }
    pool.async([&, results = std::make_shared<Tensors>(std::move(*results))] {
      // Both may be as far from the reference as the bound allows.
      for (auto [result, wanted, bound] :
           llvm::zip_equal(*results, *expected, *bounds))
        if (result.getShape() != wanted.getShape() ||
            !compare(result, wanted, 2 * bound).passes())
          candidate.tuned.problem = "has other results";
    });
    if (++waiting % pool.getMaxConcurrency() == 0)
      pool.wait();
  }
  pool.wait();
  return llvm::Error::success();
}

llvm::Error Tuner::measure(llvm::MutableArrayRef<Candidate> candidates) {
  // Those that are far behind in the first turns have no more.
  constexpr int kTurns = 7, kTurnsOfAll = 2;
  constexpr double kFarBehind = 1.2;
  auto own = copyWritable(program.getFunctions()[function], operands);
  if (!own)
    return own.takeError();
  const Executable &first = *candidates.front().executable;
  std::shared_ptr<const DeviceOperands> onDevice;
  if (first.getDevice()) {
    auto uploaded = first.upload(function, own->views);
    if (!uploaded)
      return uploaded.takeError();
    onDevice = std::move(*uploaded);
  }
  double least = 0;
  for (int turn = 0; turn < kTurns; ++turn)
    for (Candidate &candidate : candidates) {
      bool isBehind = turn >= kTurnsOfAll && &candidate != candidates.begin() &&
                      candidate.tuned.seconds > kFarBehind * least;
      if (!candidate.isValid() || isBehind)
        continue;
      auto seconds = measureTurn(*candidate.executable, function, own->views,
                                 onDevice.get());
      if (!seconds)
        return seconds.takeError();
      candidate.seconds.push_back(*seconds);
      llvm::sort(candidate.seconds);
      candidate.tuned.seconds = candidate.seconds[candidate.seconds.size() / 2];
      if (least == 0 || candidate.tuned.seconds < least)
        least = candidate.tuned.seconds;
    }
  return llvm::Error::success();
}

llvm::Error Tuner::tune(TunedAttention &attention, size_t number,
                        const ScheduleList &chosen) {
  std::vector<Candidate> candidates;
  candidates.reserve(attention.tried.size());
  for (TunedSchedule &tuned : attention.tried)
    candidates.push_back({tuned, nullptr, {}});
  compile(candidates, number, chosen);
  if (!candidates.front().isValid())
    return llvm::createStringError("the model's choice " +
                                   candidates.front().tuned.problem);
  if (llvm::Error error = check(candidates))
    return error;
  if (llvm::Error error = measure(candidates))
    return error;
  for (auto [index, tuned] : llvm::enumerate(attention.tried))
    if (tuned.problem.empty() &&
        tuned.seconds < attention.tried[attention.best].seconds)
      attention.best = index;
  return llvm::Error::success();
}

llvm::Expected<Tuning> fovea::tune(const Program &program, size_t function,
                                   llvm::ArrayRef<TensorView> operands,
                                   CompileOptions options, size_t limit) {
  options.schedules.reset();
  auto listed = program.listSchedules(options);
  if (!listed)
    return listed.takeError();
  const std::string &name = program.getFunctions()[function].name;
  // What was kept for other functions of the module stays.
  ScheduleList chosen = lookUpSchedules(program.getText(), options)
                            .value_or(ScheduleList(listed->size()));
  chosen.resize(listed->size());
  Tuning tuning;
  Tuner tuner(program, function, operands, options);
  for (auto [number, valid] : llvm::enumerate(*listed))
    if (valid.function == name)
      chosen[number].clear();
  for (auto [number, valid] : llvm::enumerate(*listed)) {
    if (valid.function != name || valid.choices.empty())
      continue;
    TunedAttention &attention = tuning.attentions.emplace_back();
    attention.line = valid.line;
    attention.isBackward = valid.isBackward;
    attention.numValid = valid.choices.size();
    for (const auto &[schedule, seconds] :
         llvm::ArrayRef(valid.choices).take_front(limit))
      attention.tried.push_back({schedule, seconds, 0, ""});
    if (llvm::Error error = tuner.tune(attention, number, chosen))
      return std::move(error);
    chosen[number] = attention.tried[attention.best].schedule;
  }
  if (tuning.attentions.empty())
    return tuning;
  keepSchedules(program.getText(), options, chosen);
  if (lookUpSchedules(program.getText(), options) == chosen)
    tuning.folder = DiskCache::get().getFolder();
  return tuning;
}

bool fovea::untune(const Program &program, const CompileOptions &options) {
  return forgetSchedules(program.getText(), options);
}

static void print(const TunedAttention &attention, llvm::raw_ostream &stream) {
  stream << (attention.isBackward ? "backward pass of attention" : "attention");
  if (attention.line)
    stream << " of line " << attention.line;
  stream << ": " << attention.tried.size() << " of " << attention.numValid
         << " schedules\n"
         << "predicted, us  measured, us  to the model's  schedule\n";
  double model = attention.tried.front().seconds;
  for (auto [index, tuned] : llvm::enumerate(attention.tried)) {
    if (tuned.predictedSeconds)
      stream << llvm::format("%13.1f", *tuned.predictedSeconds * 1e6);
    else
      stream << llvm::right_justify("-", 13);
    if (tuned.problem.empty())
      stream << llvm::format("%14.1f%16.3f", tuned.seconds * 1e6,
                             tuned.seconds / model);
    else
      stream << llvm::right_justify("-", 14) << llvm::right_justify("-", 16);
    stream << "  " << tuned.schedule;
    if (!tuned.problem.empty())
      stream << ' ' << tuned.problem;
    stream << (index == 0 ? ", the model's choice" : "")
           << (index == attention.best ? ", the best" : "") << '\n';
  }
}

std::string Tuning::formatText() const {
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (attentions.empty())
    return "tune: the function has no attention whose schedule is to choose\n";
  for (const TunedAttention &attention : attentions)
    print(attention, stream);
  stream << "tune: ";
  if (folder.empty())
    stream << "nothing is kept, for there is no folder of compiled code "
              "(FOVEA_CACHE_DIR)\n";
  else
    stream << "later compilations of this text take the best; kept in '"
           << folder << "'\n";
  return text;
}

std::string Tuning::formatJSON() const {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::json::OStream json(stream, 2);
  json.object([&] {
    json.attribute("text", formatText());
    json.attribute("folder", folder);
    json.attributeArray("attentions", [&] {
      for (const TunedAttention &attention : attentions)
        json.object([&] {
          json.attribute("line", attention.line);
          json.attribute("backward", attention.isBackward);
          json.attribute("valid", int64_t(attention.numValid));
          json.attribute("best", int64_t(attention.best));
          json.attributeArray("schedules", [&] {
            for (const TunedSchedule &tuned : attention.tried)
              json.object([&] {
                json.attribute("schedule", tuned.schedule);
                if (tuned.predictedSeconds)
                  json.attribute("predicted_seconds", *tuned.predictedSeconds);
                if (tuned.problem.empty())
                  json.attribute("measured_seconds", tuned.seconds);
                else
                  json.attribute("problem", tuned.problem);
              });
          });
        });
    });
  });
  return text;
}
