//===- ReferenceCheck.cpp - Checks of results by the graph ----------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CallFrame.h"

#include "fovea/Driver/Check.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <array>
#include <cmath>
#include <random>

using namespace fovea;

using Tensors = llvm::SmallVector<Tensor, 0>;

namespace {
/// Evaluates a function, or its forward and backward pass, as a reference.
class Evaluator {
public:
  Evaluator(const Program &program, size_t function, bool gradients,
            llvm::ArrayRef<TensorView> operands)
      : program(program), function(function), gradients(gradients),
        operands(operands) {}

  llvm::Expected<Tensors> evaluate(const ReferenceOptions &options) const;

  /// Returns the results of the graph in its own types, one each.
  llvm::Expected<std::vector<Rounded>> evaluateRounded() const;

private:
  llvm::Expected<std::unique_ptr<Executable>>
  compile(const ReferenceOptions &options, size_t &entry) const;

  const Program &program;
  size_t function;
  bool gradients;
  llvm::ArrayRef<TensorView> operands;
};
} // namespace

llvm::Expected<std::unique_ptr<Executable>>
Evaluator::compile(const ReferenceOptions &options, size_t &entry) const {
  entry = function;
  if (!gradients)
    return program.compileReference(options);
  GradientOptions textbook;
  textbook.textbook = !options.fused;
  textbook.recomputation = attn::Recomputation::Never;
  auto text = program.differentiate(function, textbook);
  if (!text)
    return text.takeError();
  auto joint = Program::parse(*text, "<gradient>");
  if (!joint)
    return joint.takeError();
  entry = 0;
  return (*joint)->compileReference(options);
}

llvm::Expected<Tensors>
Evaluator::evaluate(const ReferenceOptions &options) const {
  size_t entry;
  auto executable = compile(options, entry);
  if (!executable)
    return executable.takeError();
  Tensors results;
  if (llvm::Error error = (*executable)->call(entry, operands, results))
    return error;
  return results;
}

namespace {
/// A way of moving operands.
struct Move {
  /// True if only operands that are summed over are moved.
  bool summed;
  /// The number of units in the last place, up or down.
  double units;
};
} // namespace

/// Returns a copy of an operand with its elements moved at random up or down,
/// or all of them the other way. Operands of 16 bits are not moved: a unit is
/// much more than rounding changes in values that are computed from them.
static llvm::Expected<Tensor> move(const TensorView &operand, uint64_t seed,
                                   double units) {
  auto copy = pack(operand);
  if (!copy || (operand.type != DType::F32 && operand.type != DType::F64))
    return copy;
  double change = units * (operand.type == DType::F32 ? 0x1p-24 : 0x1p-53);
  std::mt19937_64 random(seed);
  for (int64_t i = 0, e = copy->getNumElements(); i < e; ++i)
    writeElement(copy->getData(), operand.type, i,
                 copy->read(i) * (random() >> 63 ? 1 + change : 1 - change));
  return copy;
}

llvm::Expected<std::vector<Rounded>> Evaluator::evaluateRounded() const {
  ReferenceOptions options;
  options.ownTypes = true;
  size_t entry;
  auto executable = compile(options, entry);
  if (!executable)
    return executable.takeError();
  auto summed = program.getSummedOperands(function);
  if (!summed)
    return summed.takeError();
  // Cotangents are summed over.
  summed->resize(operands.size(), true);
  constexpr std::array<Move, 5> kMoves = {
      {{true, 0}, {true, 8}, {true, -8}, {false, 1.5}, {false, -1.5}}};
  std::vector<Rounded> rounded;
  for (const Move &way : kMoves) {
    // Views refer to shapes that must not move.
    Tensors copies, results;
    copies.reserve(operands.size());
    llvm::SmallVector<TensorView> views(operands);
    for (auto [index, view] : llvm::enumerate(views)) {
      if (way.units == 0 || (way.summed && !(*summed)[index]))
        continue;
      auto copy = move(operands[index], index, way.units);
      if (!copy)
        return copy.takeError();
      copies.push_back(std::move(*copy));
      view = copies.back().getView();
    }
    if (llvm::Error error = (*executable)->call(entry, views, results))
      return error;
    rounded.resize(results.size());
    for (auto [result, evaluated] : llvm::zip_equal(rounded, results)) {
      if (way.units == 0)
        result.graph = std::move(evaluated);
      else
        (way.summed ? result.summed : result.all)
            .push_back(std::move(evaluated));
    }
  }
  return rounded;
}

/// Copies elements of `defined` to where `expected` is NaN and `result` is not.
/// Returns the number of these elements.
static int64_t takeDefined(const Tensor &result, const Tensor &defined,
                           Tensor &expected) {
  int64_t count = 0;
  for (int64_t i = 0, e = expected.getNumElements(); i < e; ++i) {
    if (!std::isnan(expected.read(i)) || std::isnan(result.read(i)) ||
        std::isnan(defined.read(i)))
      continue;
    writeElement(expected.getData(), expected.getType(), i, defined.read(i));
    ++count;
  }
  return count;
}

static bool isUndefined(const Tensor &result, const Tensor &expected) {
  for (int64_t i = 0, e = expected.getNumElements(); i < e; ++i)
    if (std::isnan(expected.read(i)) && !std::isnan(result.read(i)))
      return true;
  return false;
}

static std::string describe(const Comparison &comparison, int64_t elements) {
  if (comparison.mismatches)
    return llvm::formatv("{0} of {1} elements differ in infinity, NaN or "
                         "integer value",
                         comparison.mismatches, elements);
  return llvm::formatv("its relative error {0:e} is above {1:e}",
                       comparison.relativeError, comparison.bound);
}

/// Returns true if a result that is not near the f64 values is near the graph
/// in its own types, within that graph's distance from the f64 values.
static bool passesRounded(const Tensor &result, const Tensor &expected,
                          const Rounded &rounded, double bound, size_t index,
                          llvm::raw_ostream &stream) {
  Comparison own = compare(rounded.graph, expected, bound);
  Comparison comparison = compareRounded(result, rounded, bound);
  stream << "check: result " << index << ": the unfused graph in its own types "
         << (own.passes() ? "is not far off" : "is as far off")
         << llvm::format(" (relative %.3g", own.relativeError);
  if (own.mismatches)
    stream << ", " << own.mismatches << " elements not finite alike";
  stream << llvm::format("); the result is within relative %.3g of it (bound "
                         "%.3g)",
                         comparison.relativeError, comparison.bound);
  bool passes = !own.passes() && comparison.passes();
  stream << (passes ? ": the graph is ill-conditioned in its types\n" : "\n");
  return passes;
}

llvm::Error fovea::checkResults(const Program &program, size_t function,
                                bool gradients,
                                llvm::ArrayRef<TensorView> operands,
                                llvm::ArrayRef<Tensor> results,
                                llvm::raw_ostream &stream) {
  Evaluator evaluator(program, function, gradients, operands);
  auto expected = evaluator.evaluate({});
  if (!expected)
    return expected.takeError();
  if (expected->size() != results.size())
    return llvm::createStringError(
        llvm::formatv("check: there are {0} results, the reference has {1}",
                      results.size(), expected->size()));
  for (auto [index, result] : llvm::enumerate(results))
    if (result.getShape() != (*expected)[index].getShape())
      return llvm::createStringError(
          llvm::formatv("check: result {0} has shape {1}, its reference {2}",
                        index, formatShape(result.getShape()),
                        formatShape((*expected)[index].getShape())));
  auto bounds = program.getErrorBounds(function);
  if (!bounds)
    return bounds.takeError();
  // Gradients are computed from values rounded to any of the types.
  if (gradients) {
    double widest = *llvm::max_element(*bounds);
    for (const Tensor &result : results)
      widest = std::max(widest, getErrorBound(result.getType()));
    bounds->assign(results.size(), widest);
  }

  // Rows without a key are 0 by definition, and NaN in steps of a softmax.
  std::optional<Tensors> defined;
  for (auto [result, wanted] : llvm::zip_equal(results, *expected)) {
    if (defined || !isUndefined(result, wanted))
      continue;
    ReferenceOptions options;
    options.fused = true;
    auto evaluated = evaluator.evaluate(options);
    if (!evaluated)
      return evaluated.takeError();
    defined = std::move(*evaluated);
  }

  std::optional<std::vector<Rounded>> rounded;
  llvm::Error failure = llvm::Error::success();
  for (auto [index, result] : llvm::enumerate(results)) {
    Tensor &wanted = (*expected)[index];
    int64_t count =
        defined ? takeDefined(result, (*defined)[index], wanted) : 0;
    Comparison comparison = compare(result, wanted, (*bounds)[index]);
    stream << "check: result " << index
           << llvm::format(": max error %.3g, relative %.3g (bound %.3g)",
                           comparison.maxError, comparison.relativeError,
                           comparison.bound);
    if (count)
      stream << "; " << count
             << " elements by rows without a key, which are 0 and not NaN";
    stream << '\n';
    if (comparison.passes())
      continue;
    if (!rounded) {
      auto evaluated = evaluator.evaluateRounded();
      if (!evaluated)
        return llvm::joinErrors(std::move(failure), evaluated.takeError());
      rounded = std::move(*evaluated);
      for (size_t number = 0; defined && number < results.size(); ++number)
        takeDefined(results[number], (*defined)[number],
                    (*rounded)[number].graph);
    }
    if (passesRounded(result, wanted, (*rounded)[index], comparison.bound,
                      index, stream))
      continue;
    stream << "check: result " << index << ": FAILED\n";
    failure =
        llvm::joinErrors(std::move(failure),
                         llvm::createStringError(llvm::formatv(
                             "check: result {0}: {1}", index,
                             describe(comparison, result.getNumElements()))));
  }
  if (!gradients)
    return failure;
  const Signature &signature = program.getFunctions()[function];
  size_t forward = signature.results.size();
  return llvm::joinErrors(
      std::move(failure),
      checkGradients(program, function,
                     operands.take_front(signature.operands.size()),
                     operands.drop_front(signature.operands.size()),
                     llvm::ArrayRef(*expected).drop_front(forward), stream));
}
