//===- Executable.cpp - Call compiled functions on tensors ----------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProgramState.h"

#include "fovea/Runtime/HostRuntime.h"

#include "llvm/Support/FormatVariadic.h"

#include <cstring>

using namespace fovea;

namespace {

/// Whether compiled code can read the tensor where it is: elements of a row are
/// neighbours, and everything is aligned as the element type wants.
bool isUsableInPlace(const TensorView &view) {
  if (reinterpret_cast<uintptr_t>(view.data) % getSize(view.type))
    return false;
  return view.shape.empty() || view.shape.back() <= 1 ||
         view.strides.back() == 1;
}

/// Copies a tensor of any strides to row-major order.
void copyElements(const TensorView &view, size_t dim, const char *source,
                  char *&target) {
  int64_t size = getSize(view.type);
  if (dim == view.shape.size()) {
    std::memcpy(target, source, size);
    target += size;
    return;
  }
  for (int64_t i = 0; i < view.shape[dim]; ++i)
    copyElements(view, dim + 1, source + i * view.strides[dim] * size, target);
}

llvm::Error reject(const llvm::Twine &message) {
  return llvm::createStringError(
      std::make_error_code(std::errc::invalid_argument), message);
}

llvm::Error checkOperand(const Signature &function, size_t index,
                         const TensorView &view) {
  const ValueType &expected = function.operands[index];
  bool matches =
      view.type == expected.type && view.shape.size() == expected.shape.size();
  if (matches)
    for (auto [size, wanted] : llvm::zip_equal(view.shape, expected.shape))
      matches &= size >= 0 && (wanted < 0 || wanted == size);
  if (matches)
    return llvm::Error::success();
  ValueType actual = {"", view.type, llvm::SmallVector<int64_t, 4>(view.shape),
                      /*scalar=*/false};
  return reject(formatOperand(function, index) + ": expected " +
                formatType(expected) + ", got " +
                (expected.scalar && view.shape.empty()
                     ? (getName(view.type) + " number").str()
                     : formatType(actual)));
}

/// Fills a memref descriptor. Returns the words it took.
int64_t *writeDescriptor(int64_t *words, void *data,
                         llvm::ArrayRef<int64_t> shape,
                         llvm::ArrayRef<int64_t> strides) {
  *words++ = reinterpret_cast<intptr_t>(data);
  *words++ = reinterpret_cast<intptr_t>(data);
  *words++ = 0;
  words = llvm::copy(shape, words);
  words = llvm::copy(strides, words);
  if (!shape.empty())
    words[-1] = 1;
  return words;
}

/// A message of `outline-shape-checks` with its sizes and operands filled in.
std::string formatMessage(const Signature &function, llvm::StringRef message,
                          int64_t left, int64_t right) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  while (!message.empty()) {
    size_t operand;
    if (message.consume_front("{0}"))
      stream << left;
    else if (message.consume_front("{1}"))
      stream << right;
    else if (message.consume_front("$") && !message.consumeInteger(10, operand))
      stream << formatOperand(function, operand);
    else {
      stream << message.front();
      message = message.drop_front();
    }
  }
  return text;
}

struct Call {
  HostJIT::PackedFunction function;
  void **slots;
};

} // namespace

Executable::Executable(std::unique_ptr<State> state)
    : state(std::move(state)) {}
Executable::~Executable() = default;

llvm::ArrayRef<Signature> Executable::getFunctions() const {
  return state->signatures;
}

llvm::Error Executable::call(size_t index, llvm::ArrayRef<TensorView> operands,
                             llvm::SmallVectorImpl<Tensor> &results,
                             Usage *usage) const {
  const Signature &function = state->signatures[index];
  if (operands.size() != function.operands.size())
    return reject(llvm::formatv("@{0}: expected {1} operands, got {2}",
                                function.name, function.operands.size(),
                                operands.size()));

  // Descriptors: of the results in a row, then of each operand.
  size_t numWords = 0;
  for (const ValueType &result : function.results)
    numWords += 3 + 2 * result.shape.size();
  for (const ValueType &operand : function.operands)
    numWords += 3 + 2 * operand.shape.size();
  llvm::SmallVector<int64_t, 96> words(numWords);
  llvm::SmallVector<void *, 12> slots;
  llvm::SmallVector<Tensor, 0> copies;
  int64_t *next = words.data();
  if (!function.results.empty())
    slots.push_back(next);
  for (const ValueType &result : function.results)
    next += 3 + 2 * result.shape.size();

  for (auto [number, view] : llvm::enumerate(operands)) {
    if (llvm::Error error = checkOperand(function, number, view))
      return error;
    if (function.operands[number].scalar) {
      slots.push_back(view.data);
      continue;
    }
    slots.push_back(next);
    if (isUsableInPlace(view)) {
      next = writeDescriptor(next, view.data, view.shape, view.strides);
      continue;
    }
    std::optional<int64_t> elements = countElements(view.shape, view.type);
    Tensor copy(view.type, view.shape, elements.value_or(0));
    if (!elements || !copy.getData())
      return llvm::createStringError(
          formatOperand(function, number) +
          ": out of memory for a copy with neighbouring elements");
    char *target = static_cast<char *>(copy.getData());
    if (*elements)
      copyElements(view, 0, static_cast<const char *>(view.data), target);
    next = writeDescriptor(next, copy.getData(), copy.getView().shape,
                           copy.getView().strides);
    copies.push_back(std::move(copy));
  }

  const State::Entry &entry = state->entries[index];
  if (entry.checkShapes) {
    int64_t outcome[3];
    llvm::SmallVector<void *, 12> checkSlots = {outcome};
    llvm::append_range(
        checkSlots, llvm::ArrayRef(slots).take_back(function.operands.size()));
    entry.checkShapes(checkSlots.data());
    if (outcome[0] >= 0)
      return reject(formatMessage(function, entry.messages[outcome[0]],
                                  outcome[1], outcome[2]));
  }

  runtime::Invocation invocation;
  Call call = {entry.function, slots.data()};
  if (!invocation.run(
          [](void *argument) {
            Call *call = static_cast<Call *>(argument);
            call->function(call->slots);
          },
          &call))
    return llvm::createStringError("@" + function.name + ": " +
                                   invocation.getMessage());

  results.clear();
  next = words.data();
  int64_t resultBytes = 0;
  for (const ValueType &type : function.results) {
    auto *buffer = reinterpret_cast<void *>(next[0]);
    char *data =
        reinterpret_cast<char *>(next[1]) + next[2] * getSize(type.type);
    llvm::ArrayRef<int64_t> shape(next + 3, type.shape.size());
    next += 3 + 2 * type.shape.size();
    if (invocation.release(buffer)) {
      results.emplace_back(type.type, shape, data, buffer,
                           _mlir_memref_to_llvm_free);
      resultBytes += results.back().getNumBytes();
      continue;
    }
    // A constant of the module, or the same tensor as an earlier result.
    Tensor copy(type.type, shape, countElements(shape, type.type).value_or(0));
    if (!copy.getData())
      return llvm::createStringError("@" + function.name +
                                     ": out of memory for a result");
    std::memcpy(copy.getData(), data, copy.getNumBytes());
    results.push_back(std::move(copy));
  }
  if (usage)
    usage->temporaryBytes =
        std::max<int64_t>(int64_t(invocation.getPeakBytes()) - resultBytes, 0);
  return llvm::Error::success();
}
