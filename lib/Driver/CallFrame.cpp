//===- CallFrame.cpp - The arguments of a compiled function ---------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CallFrame.h"

#include "llvm/Support/FormatVariadic.h"

using namespace fovea;

llvm::Error fovea::rejectOperands(const llvm::Twine &message) {
  return llvm::createStringError(
      std::make_error_code(std::errc::invalid_argument), message);
}

/// Formats a message of `outline-shape-checks` with its sizes and operands.
static std::string formatMessage(const Signature &function,
                                 llvm::StringRef message, int64_t left,
                                 int64_t right) {
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

CallFrame::CallFrame(const Signature &function) : function(function) {
  size_t numWords = 0;
  auto count = [&](llvm::ArrayRef<ValueType> types) {
    for (const ValueType &type : types)
      numWords += 3 + 2 * type.shape.size();
  };
  count(function.results);
  size_t resultWords = numWords;
  count(function.operands);
  words.resize(numWords);
  // Holds descriptors of all results, in a row, then those of operands.
  next = words.data() + resultWords;
  if (!function.results.empty())
    slots.push_back(words.data());
}

/// Returns what compiled code expects of memory that it updates, if this is not
/// so; else an empty text.
static llvm::StringRef findObstacle(const TensorView &view) {
  if (llvm::is_contained(view.shape, 0))
    return "";
  if (reinterpret_cast<uintptr_t>(view.data) % getSize(view.type))
    return "memory aligned to its elements";
  for (auto [size, stride] : llvm::zip_equal(view.shape, view.strides))
    if (size > 1 && stride == 0)
      return "elements that share no memory";
  if (!view.shape.empty() && view.shape.back() > 1 && view.strides.back() != 1)
    return "elements next to each other along the last dimension";
  return "";
}

llvm::Error CallFrame::check(size_t index, const TensorView &view) const {
  const ValueType &expected = function.operands[index];
  bool matches =
      view.type == expected.type && view.shape.size() == expected.shape.size();
  if (matches)
    for (auto [size, wanted] : llvm::zip_equal(view.shape, expected.shape))
      matches &= size >= 0 && (wanted < 0 || wanted == size);
  if (matches && expected.writable)
    if (llvm::StringRef wanted = findObstacle(view); !wanted.empty())
      return rejectOperands(formatOperand(function, index) +
                            ": it is updated in place; expected " + wanted);
  if (matches)
    return llvm::Error::success();
  ValueType actual = {"", view.type, llvm::SmallVector<int64_t, 4>(view.shape),
                      /*scalar=*/false};
  return rejectOperands(formatOperand(function, index) + ": expected " +
                        formatType(expected) + ", got " +
                        (expected.scalar && view.shape.empty()
                             ? (getName(view.type) + " number").str()
                             : formatType(actual)));
}

void CallFrame::add(const TensorView &view) {
  size_t index = slots.size() - !function.results.empty();
  if (function.operands[index].scalar) {
    slots.push_back(view.data);
    return;
  }
  slots.push_back(next);
  *next++ = reinterpret_cast<intptr_t>(view.data);
  *next++ = reinterpret_cast<intptr_t>(view.data);
  *next++ = 0;
  next = llvm::copy(view.shape, next);
  next = llvm::copy(view.strides, next);
  if (!view.shape.empty())
    next[-1] = 1;
}

void CallFrame::callCheck(HostJIT::PackedFunction check, int64_t *outcome) {
  llvm::SmallVector<void *, 12> checkSlots = {outcome};
  llvm::append_range(checkSlots,
                     llvm::ArrayRef(slots).take_back(function.operands.size()));
  check(checkSlots.data());
}

bool CallFrame::areAligned(const Executable::State::Entry &entry) {
  int64_t outcome = 1;
  if (entry.areAligned)
    callCheck(entry.areAligned, &outcome);
  return outcome;
}

llvm::Error CallFrame::checkShapes(const Executable::State::Entry &entry) {
  if (!entry.checkShapes)
    return llvm::Error::success();
  int64_t outcome[3];
  callCheck(entry.checkShapes, outcome);
  if (outcome[0] < 0)
    return llvm::Error::success();
  return rejectOperands(formatMessage(function, entry.messages[outcome[0]],
                                      outcome[1], outcome[2]));
}

void CallFrame::visitResults(
    llvm::function_ref<void(size_t, const Result &)> visit) const {
  const int64_t *descriptor = words.data();
  for (auto [index, type] : llvm::enumerate(function.results)) {
    size_t rank = type.shape.size();
    visit(index, {reinterpret_cast<void *>(descriptor[0]),
                  reinterpret_cast<char *>(descriptor[1]) +
                      descriptor[2] * getSize(type.type),
                  llvm::ArrayRef(descriptor + 3, rank)});
    descriptor += 3 + 2 * rank;
  }
}
