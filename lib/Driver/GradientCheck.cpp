//===- GradientCheck.cpp - Checks of gradients by differences -------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// With L the sum of all results times their cotangents, and d a step along a
// few elements of an operand, (L(x + d) - L(x - d)) / 2 is <dL/dx, d> up to
// terms of the third order. A step of the cube root of f64's rounding unit
// balances those terms with the rounding of L, at some 1e-10 of the gradient.
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

/// The largest distance of a difference from the gradient, relative to the sum
/// of the magnitudes: far above actual differences, far below the error of a
/// wrong rule.
static constexpr double kBound = 1e-5;

/// The rounding error that a sum of results may have, relative to its terms.
static constexpr double kRounding = 16 * 0x1p-53;

namespace {
/// L at x + t d minus L at x - u d.
struct Difference {
  double value = 0;
  /// The error that rounding may have caused in it.
  double noise = 0;
};

/// The function in f64, with operands that can be moved.
class Function {
public:
  static llvm::Expected<Function> create(const Program &program,
                                         size_t function,
                                         llvm::ArrayRef<TensorView> operands,
                                         llvm::ArrayRef<TensorView> cotangents);

  const Signature &getSignature() const {
    return executable->getFunctions()[index];
  }
  Tensor &getOperand(size_t number) { return operands[number]; }
  llvm::Expected<Tensors> evaluate() const;
  Difference subtract(const Tensors &a, const Tensors &b) const;

private:
  std::unique_ptr<Executable> executable;
  size_t index;
  Tensors operands;
  llvm::SmallVector<TensorView> views;
  Tensors cotangents;
};

/// A step along a few elements of an operand.
struct Direction {
  size_t operand;
  llvm::SmallVector<std::pair<int64_t, double>> steps;
  /// The gradient's prediction for the direction: its part in L, and that of
  /// magnitudes.
  double expected = 0;
  double magnitude = 0;
};

enum class Verdict { Agrees, Differs, NotSmooth };

struct Outcome {
  Verdict verdict;
  double measured = 0;
  double relativeError = 0;
};
} // namespace

llvm::Expected<Function>
Function::create(const Program &program, size_t index,
                 llvm::ArrayRef<TensorView> operands,
                 llvm::ArrayRef<TensorView> cotangents) {
  Function function;
  auto executable =
      program.compileReference(ReferenceOptions(), /*wideOperands=*/true);
  if (!executable)
    return executable.takeError();
  function.executable = std::move(*executable);
  function.index = index;
  auto copy = [](const TensorView &view) -> llvm::Expected<Tensor> {
    auto packed = pack(view);
    if (!packed || !isFloat(view.type))
      return packed;
    int64_t elements = packed->getNumElements();
    Tensor wide(DType::F64, view.shape, elements);
    if (!wide.getData())
      return llvm::createStringError("check: out of memory for an operand");
    for (int64_t i = 0; i < elements; ++i)
      writeElement(wide.getData(), DType::F64, i, packed->read(i));
    return wide;
  };
  for (auto [views, tensors] : {std::pair(operands, &function.operands),
                                std::pair(cotangents, &function.cotangents)})
    for (const TensorView &view : views) {
      auto tensor = copy(view);
      if (!tensor)
        return tensor.takeError();
      tensors->push_back(std::move(*tensor));
    }
  for (const Tensor &operand : function.operands)
    function.views.push_back(operand.getView());
  return function;
}

llvm::Expected<Tensors> Function::evaluate() const {
  Tensors results;
  if (llvm::Error error = executable->call(index, views, results))
    return error;
  return results;
}

Difference Function::subtract(const Tensors &a, const Tensors &b) const {
  Difference difference;
  size_t next = 0;
  for (auto [left, right] : llvm::zip_equal(a, b)) {
    if (!isFloat(left.getType()))
      continue;
    const Tensor &cotangent = cotangents[next++];
    for (int64_t i = 0, e = left.getNumElements(); i < e; ++i) {
      double change = left.read(i) - right.read(i);
      if (change == 0)
        continue;
      double weight = cotangent.read(i);
      difference.value += weight * change;
      difference.noise += kRounding * std::abs(weight * left.read(i));
    }
  }
  return difference;
}

/// Returns the results where the operand is moved by `share` of a step.
static llvm::Expected<Tensors>
evaluateAt(Function &function, const Direction &direction, double share) {
  Tensor &operand = function.getOperand(direction.operand);
  llvm::SmallVector<double> saved;
  for (auto [element, step] : direction.steps) {
    saved.push_back(operand.read(element));
    writeElement(operand.getData(), DType::F64, element,
                 saved.back() + share * step);
  }
  auto results = function.evaluate();
  for (auto [place, value] : llvm::zip_equal(direction.steps, saved))
    writeElement(operand.getData(), DType::F64, place.first, value);
  return results;
}

/// Compares at one step and, where the two disagree, at half of it, from both
/// sides: the function is smooth only if all of these agree with each other.
static llvm::Expected<Outcome> compareAlong(Function &function,
                                            const Direction &direction) {
  auto measure = [&](double share, Tensors &above,
                     Tensors &below) -> llvm::Error {
    auto plus = evaluateAt(function, direction, share);
    if (!plus)
      return plus.takeError();
    auto minus = evaluateAt(function, direction, -share);
    if (!minus)
      return minus.takeError();
    above = std::move(*plus);
    below = std::move(*minus);
    return llvm::Error::success();
  };
  Tensors above, below;
  if (llvm::Error error = measure(1, above, below))
    return error;
  Difference whole = function.subtract(above, below);
  Outcome outcome = {Verdict::Differs};
  outcome.measured = whole.value / 2;
  double error = std::abs(outcome.measured - direction.expected);
  double scale = std::max(direction.magnitude, std::abs(outcome.measured));
  double allowed = kBound * scale + whole.noise;
  outcome.relativeError = scale > 0 ? error / scale : error;
  if (error <= allowed) {
    outcome.verdict = Verdict::Agrees;
    return outcome;
  }
  Tensors halfAbove, halfBelow;
  if (llvm::Error error = measure(0.5, halfAbove, halfBelow))
    return error;
  auto middle = evaluateAt(function, direction, 0);
  if (!middle)
    return middle.takeError();
  double half = function.subtract(halfAbove, halfBelow).value;
  auto bend = [&](const Tensors &up, const Tensors &down) {
    return std::abs(function.subtract(up, *middle).value -
                    function.subtract(*middle, down).value);
  };
  // With half the step, the effect of a curve is a quarter, and that of a kink
  // is half. A value that is not finite is neither.
  bool isSmooth =
      std::abs(half - outcome.measured) <= allowed &&
      bend(halfAbove, halfBelow) <= 0.375 * bend(above, below) + allowed / 4;
  if (!isSmooth)
    outcome.verdict = Verdict::NotSmooth;
  return outcome;
}

/// Chooses a direction along `count` random elements at which the gradient is
/// finite.
static Direction choose(size_t operand, const Tensor &values,
                        const Tensor &gradient, int64_t count,
                        std::mt19937_64 &random) {
  Direction direction = {operand, {}};
  int64_t elements = values.getNumElements();
  double sum = 0;
  for (int64_t i = 0; i < elements; ++i)
    sum += std::isfinite(values.read(i)) ? values.read(i) * values.read(i) : 0;
  double usual = std::sqrt(sum / double(elements));
  llvm::SmallDenseSet<int64_t> chosen;
  for (int64_t tries = 0; tries < 4 * count; ++tries) {
    auto element = int64_t(random() % uint64_t(elements));
    bool isUp = random() >> 63;
    double value = values.read(element), slope = gradient.read(element);
    if (int64_t(chosen.size()) == std::min(count, elements) ||
        !std::isfinite(value) || !std::isfinite(slope) ||
        !chosen.insert(element).second)
      continue;
    double size = std::max(std::abs(value), usual > 0 ? usual : 1);
    double step = (isUp ? 1 : -1) * std::cbrt(0x1p-52) * size;
    direction.steps.push_back({element, step});
    direction.expected += slope * step;
    direction.magnitude += std::abs(slope * step);
  }
  return direction;
}

llvm::Error fovea::checkGradients(const Program &program, size_t number,
                                  llvm::ArrayRef<TensorView> operands,
                                  llvm::ArrayRef<TensorView> cotangents,
                                  llvm::ArrayRef<Tensor> gradients,
                                  llvm::raw_ostream &stream) {
  // All elements are moved at once; where the function is not smooth, one after
  // the other.
  constexpr std::array<int64_t, 4> kCounts = {8, 1, 1, 1};
  auto function = Function::create(program, number, operands, cotangents);
  if (!function)
    return function.takeError();
  const Signature &signature = program.getFunctions()[number];
  std::mt19937_64 random(0);
  llvm::Error failure = llvm::Error::success();
  size_t next = 0;
  for (auto [index, type] : llvm::enumerate(signature.operands)) {
    if (type.scalar || !isFloat(type.type))
      continue;
    const Tensor &gradient = gradients[next++];
    int64_t elements = gradient.getNumElements();
    if (!elements)
      continue;
    std::string name = llvm::formatv("check: gradient of {0}",
                                     formatOperand(signature, index));
    Outcome outcome = {Verdict::NotSmooth};
    size_t checked = 0, skipped = 0;
    for (int64_t count : kCounts) {
      Direction direction =
          choose(index, function->getOperand(index), gradient, count, random);
      checked = direction.steps.size();
      if (!checked)
        continue;
      auto compared = compareAlong(*function, direction);
      if (!compared)
        return llvm::joinErrors(std::move(failure), compared.takeError());
      outcome = *compared;
      if (outcome.verdict != Verdict::NotSmooth) {
        if (outcome.verdict == Verdict::Differs)
          failure = llvm::joinErrors(
              std::move(failure),
              llvm::createStringError(
                  name + llvm::formatv(
                             ": a step along {0} elements changes the sum "
                             "of results times cotangents by {1:e}, and "
                             "by {2:e} as the derivative rules have it",
                             checked, outcome.measured, direction.expected)));
        break;
      }
      skipped += checked;
    }
    stream << name << ": ";
    if (outcome.verdict == Verdict::NotSmooth) {
      stream << "not compared with differences: the function is not smooth, or "
                "not finite, at "
             << skipped << " sampled elements\n";
      continue;
    }
    stream << checked << " of " << elements << " elements by differences in "
           << llvm::format("f64, relative %.3g (bound %.3g)",
                           outcome.relativeError, kBound);
    if (skipped)
      stream << ", " << skipped << " passed over where it is not smooth";
    stream << (outcome.verdict == Verdict::Agrees ? "\n" : ": FAILED\n");
  }
  return failure;
}
