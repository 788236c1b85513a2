//===- Inputs.cpp - Sizes and random data for a function's operands -------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Driver/Inputs.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <cstring>
#include <numbers>

using namespace fovea;

namespace {
/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators", OOPSLA 2014).
class Generator {
public:
  Generator(uint64_t seed, uint64_t stream) : state(seed) {
    state = next() + stream * 0x9e3779b97f4a7c15;
  }

  uint64_t next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  /// Returns a number in (0, 1].
  double uniform() { return double((next() >> 11) + 1) * 0x1p-53; }

private:
  uint64_t state;
};
} // namespace

/// Finds the operand that a request names by number or by name.
static std::optional<size_t> findOperand(const Signature &function,
                                         llvm::StringRef key) {
  size_t number;
  if (!key.getAsInteger(10, number))
    return number < function.operands.size() ? std::optional(number)
                                             : std::nullopt;
  key.consume_front("%");
  for (auto [index, operand] : llvm::enumerate(function.operands))
    if (operand.name == key)
      return index;
  return std::nullopt;
}

static llvm::Error
applyRequest(const Signature &function, llvm::StringRef request,
             llvm::MutableArrayRef<llvm::SmallVector<int64_t, 4>> shapes) {
  auto fail = [&](const llvm::Twine &message) {
    return llvm::createStringError("--dims=" + request + ": " + message);
  };
  auto [key, text] = request.split(':');
  std::optional<size_t> index = findOperand(function, key);
  if (!index)
    return fail(llvm::formatv("@{0} has no operand '{1}'; expected a name or a "
                              "number below {2}",
                              function.name, key, function.operands.size()));
  llvm::SmallVector<llvm::StringRef> parts;
  if (!text.empty())
    text.split(parts, 'x');
  const ValueType &type = function.operands[*index];
  if (parts.size() != type.shape.size())
    return fail(llvm::formatv("{0} is {1}, got {2} sizes",
                              formatOperand(function, *index), formatType(type),
                              parts.size()));
  for (auto [dim, part] : llvm::enumerate(parts)) {
    int64_t size = type.shape[dim];
    bool omitted = part == "?" || part == "_";
    if (omitted ? size < 0 : (part.getAsInteger(10, size) || size < 0))
      return fail("expected a size of at least 0, got '" + part + "'");
    if (type.shape[dim] >= 0 && size != type.shape[dim])
      return fail(llvm::formatv("{0} is {1}, got size {2} for dimension {3}",
                                formatOperand(function, *index),
                                formatType(type), size, dim));
    shapes[*index][dim] = size;
  }
  return llvm::Error::success();
}

/// Returns the error that `function`'s operand `index` has a size that is not
/// given.
static llvm::Error askForSizes(const Signature &function, size_t index) {
  llvm::SmallVector<int64_t, 4> example(function.operands[index].shape);
  for (int64_t &size : example)
    size = size < 0 ? 128 : size;
  std::string key = function.operands[index].name;
  return llvm::createStringError(llvm::formatv(
      "{0} is {1}: give its sizes, such as --dims={2}:{3}, or "
      "--dims=128 for every dynamic size",
      formatOperand(function, index), formatType(function.operands[index]),
      key.empty() ? std::to_string(index) : key, formatShape(example)));
}

llvm::Expected<llvm::SmallVector<llvm::SmallVector<int64_t, 4>>>
fovea::resolveShapes(const Signature &function,
                     llvm::ArrayRef<std::string> requests, size_t leading,
                     InferShapes infer) {
  llvm::SmallVector<llvm::SmallVector<int64_t, 4>> shapes;
  for (const ValueType &operand : function.operands)
    shapes.push_back(operand.shape);
  std::optional<int64_t> all;
  for (llvm::StringRef request : requests) {
    int64_t size;
    if (!request.contains(':')) {
      if (request.getAsInteger(10, size) || size < 0)
        return llvm::createStringError(
            "--dims=" + request +
            ": expected a size, or OPERAND:SIZES such as 0:2x16x1024x64");
      all = size;
      continue;
    }
    if (llvm::Error error = applyRequest(function, request, shapes))
      return error;
  }
  bool isUsed = false;
  for (auto [index, shape] : llvm::enumerate(shapes)) {
    if (index == leading) {
      auto inferred = infer(llvm::ArrayRef(shapes).take_front(leading));
      for (auto [other, sizes] :
           llvm::zip(llvm::drop_begin(shapes, leading), inferred))
        for (size_t dim = 0; sizes && dim < other.size(); ++dim)
          if (other[dim] < 0)
            other[dim] = (*sizes)[dim];
    }
    for (int64_t &size : shape) {
      if (size >= 0)
        continue;
      if (!all)
        return askForSizes(function, index);
      size = *all;
      isUsed = true;
    }
  }
  if (all && !isUsed)
    return llvm::createStringError(llvm::formatv(
        "--dims={0}: no random operand of @{1} has a dynamic size that is not "
        "given otherwise",
        *all, function.name));
  return shapes;
}

llvm::Expected<Tensor> fovea::makeRandom(DType type,
                                         llvm::ArrayRef<int64_t> shape,
                                         uint64_t seed, uint64_t stream,
                                         IntegerRange range) {
  std::optional<int64_t> elements = countElements(shape, type);
  if (!elements)
    return llvm::createStringError("the shape " + formatShape(shape) +
                                   " overflows");
  Tensor tensor(type, shape, *elements);
  if (!tensor.getData())
    return llvm::createStringError(llvm::formatv(
        "out of memory: cannot allocate {0} bytes", *elements * getSize(type)));
  Generator generator(seed, stream);
  void *data = tensor.getData();
  if (isFloat(type)) {
    // Numbers are made by Box and Muller's method, two at a time.
    for (int64_t i = 0; i < *elements; i += 2) {
      double radius = std::sqrt(-2 * std::log(generator.uniform()));
      double angle = 2 * std::numbers::pi * generator.uniform();
      writeElement(data, type, i, radius * std::cos(angle));
      if (i + 1 < *elements)
        writeElement(data, type, i + 1, radius * std::sin(angle));
    }
    return tensor;
  }
  uint64_t count = uint64_t(range.high) - uint64_t(range.low) + 1;
  for (int64_t i = 0; i < *elements; ++i) {
    uint64_t random = generator.next() >> 1;
    int64_t value =
        type == DType::Bool
            ? int64_t(random >> 62)
            : int64_t(range.low + (count ? random % count : random));
    writeElement(data, type, i, double(value));
  }
  return tensor;
}

llvm::Expected<Tensor> fovea::parseNumber(DType type, llvm::StringRef text) {
  Tensor tensor(type, {}, 1);
  int64_t integer;
  double real;
  if (type == DType::Bool && (text == "true" || text == "false")) {
    writeElement(tensor.getData(), type, 0, text == "true");
    return tensor;
  }
  if (isFloat(type) ? text.getAsDouble(real) : text.getAsInteger(0, integer))
    return llvm::createStringError("expected a number of type " +
                                   getName(type) + ", got '" + text + "'");
  if (isFloat(type)) {
    writeElement(tensor.getData(), type, 0, real);
    return tensor;
  }
  int64_t bits = type == DType::Bool ? 1 : 8 * getSize(type);
  if (bits < 64 &&
      (integer < (type == DType::Bool ? 0 : -(int64_t(1) << (bits - 1))) ||
       integer >= int64_t(1) << bits))
    return llvm::createStringError("the number " + text + " does not fit " +
                                   getName(type));
  std::memcpy(tensor.getData(), &integer, getSize(type));
  return tensor;
}
