//===- Executable.cpp - Call compiled functions on tensors ----------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CallFrame.h"

#include "fovea/Runtime/HostRuntime.h"

#include "llvm/Support/FormatVariadic.h"

#include <cstring>

using namespace fovea;

/// Returns true if compiled code can read the tensor where it is: elements of a
/// row are neighbours, and everything is aligned as the element type requires.
static bool isUsableInPlace(const TensorView &view) {
  if (reinterpret_cast<uintptr_t>(view.data) % getSize(view.type))
    return false;
  return view.shape.empty() || view.shape.back() <= 1 ||
         view.strides.back() == 1;
}

/// Copies elements from `view` to row-major memory or, if `isBack`, from there,
/// and advances `packed`.
static void copyElements(const TensorView &view, size_t dim, char *element,
                         char *&packed, bool isBack) {
  int64_t size = getSize(view.type);
  // A row whose elements are neighbours is copied at once.
  bool isRow = dim + 1 == view.shape.size() && view.strides[dim] == 1;
  if (dim == view.shape.size() || isRow) {
    int64_t bytes = isRow ? view.shape[dim] * size : size;
    std::memcpy(isBack ? element : packed, isBack ? packed : element, bytes);
    packed += bytes;
    return;
  }
  for (int64_t i = 0; i < view.shape[dim]; ++i)
    copyElements(view, dim + 1, element + i * view.strides[dim] * size, packed,
                 isBack);
}

namespace {
struct Call {
  HostJIT::PackedFunction function;
  void **slots;
};
} // namespace

llvm::Expected<Tensor> fovea::pack(const TensorView &view) {
  std::optional<int64_t> elements = countElements(view.shape, view.type);
  Tensor copy(view.type, view.shape, elements.value_or(0));
  if (!elements || !copy.getData())
    return llvm::createStringError(
        "out of memory for a copy with neighbouring elements");
  char *target = static_cast<char *>(copy.getData());
  if (*elements)
    copyElements(view, 0, static_cast<char *>(view.data), target,
                 /*isBack=*/false);
  return copy;
}

void fovea::unpack(const Tensor &tensor, const TensorView &view) {
  char *source = static_cast<char *>(tensor.getData());
  if (tensor.getNumElements())
    copyElements(view, 0, static_cast<char *>(view.data), source,
                 /*isBack=*/true);
}

llvm::Expected<OwnOperands>
fovea::copyWritable(const Signature &function,
                    llvm::ArrayRef<TensorView> operands) {
  OwnOperands own;
  own.views.assign(operands.begin(), operands.end());
  // Views refer to the copies, which must not move.
  own.copies.reserve(operands.size());
  for (auto [type, view] : llvm::zip(function.operands, own.views)) {
    if (!type.writable)
      continue;
    auto copy = pack(view);
    if (!copy)
      return copy.takeError();
    own.copies.push_back(std::move(*copy));
    view = own.copies.back().getView();
  }
  return own;
}

llvm::Expected<llvm::SmallVector<Tensor, 0>>
Executable::State::addOperands(CallFrame &frame, size_t index,
                               llvm::ArrayRef<TensorView> operands) const {
  const Signature &function = signatures[index];
  if (operands.size() != function.operands.size())
    return rejectOperands(llvm::formatv("@{0}: expected {1} operands, got {2}",
                                        function.name, function.operands.size(),
                                        operands.size()));
  llvm::SmallVector<Tensor, 0> copies;
  for (auto [number, view] : llvm::enumerate(operands)) {
    if (llvm::Error error = frame.check(number, view))
      return std::move(error);
    if (function.operands[number].scalar || isUsableInPlace(view)) {
      frame.add(view);
      continue;
    }
    auto copy = pack(view);
    if (!copy)
      return llvm::createStringError(formatOperand(function, number) + ": " +
                                     llvm::toString(copy.takeError()));
    frame.add(copy->getView());
    copies.push_back(std::move(*copy));
  }
  return copies;
}

llvm::Error Executable::call(size_t index, llvm::ArrayRef<TensorView> operands,
                             llvm::SmallVectorImpl<Tensor> &results,
                             Usage *usage) const {
  if (state->checker) {
    llvm::SmallVector<Tensor, 0> unread;
    if (llvm::Error error = state->checker->call(index, operands, unread))
      return error;
  }
  if (state->gpu)
    return getVersion(index, operands)
        .state->callOnGpu(index, operands, results, usage);
  const Signature &function = state->signatures[index];
  CallFrame frame(function);
  auto copies = state->addOperands(frame, index, operands);
  if (!copies)
    return copies.takeError();
  const State::Entry &entry = state->entries[index];
  if (llvm::Error error = frame.checkShapes(entry))
    return error;

  runtime::Invocation invocation;
  Call call = {entry.function, frame.getSlots()};
  if (!invocation.run(
          [](void *argument) {
            Call *call = static_cast<Call *>(argument);
            call->function(call->slots);
          },
          &call))
    return llvm::createStringError("@" + function.name + ": " +
                                   invocation.getMessage());

  results.clear();
  int64_t resultBytes = 0;
  bool isShort = false;
  frame.visitResults([&](size_t number, const CallFrame::Result &result) {
    DType type = function.results[number].type;
    if (invocation.release(result.buffer)) {
      results.emplace_back(type, result.shape, result.data, result.buffer,
                           _mlir_memref_to_llvm_free);
      resultBytes += results.back().getNumBytes();
      return;
    }
    // The buffer is a constant of the module, or the same tensor as an earlier
    // result.
    Tensor copy(type, result.shape,
                countElements(result.shape, type).value_or(0));
    isShort |= !copy.getData();
    if (!isShort)
      std::memcpy(copy.getData(), result.data, copy.getNumBytes());
    results.push_back(std::move(copy));
  });
  if (isShort)
    return llvm::createStringError("@" + function.name +
                                   ": out of memory for a result");
  if (usage)
    usage->temporaryBytes =
        std::max<int64_t>(int64_t(invocation.getPeakBytes()) - resultBytes, 0);
  return llvm::Error::success();
}
