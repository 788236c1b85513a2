//===- TorchKernels.cpp - Kernels of PyTorch's operators ------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What PyTorch's dispatcher calls, without Python in between.
//
//===----------------------------------------------------------------------===//

#include "Torch.h"

#include <dlfcn.h>

#include <iterator>

using namespace fovea::torch;

/// The version of the interface that is used here, 2.11, as PyTorch writes it.
static constexpr uint64_t kInterface = uint64_t(2) << 56 | uint64_t(11) << 48;

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

namespace {
/// A list or a string that this side owns.
template <typename HandleTy, int32_t (*Api::*Delete)(HandleTy)>
struct Owned {
  explicit Owned(StableValue value)
      : handle(reinterpret_cast<HandleTy>(value)) {}
  Owned(const Owned &) = delete;
  Owned &operator=(const Owned &) = delete;
  ~Owned() { (api.*Delete)(handle); }

  HandleTy handle;
};
using List = Owned<ListHandle, &Api::deleteList>;
using String = Owned<StringHandle, &Api::deleteString>;
} // namespace

/// Reads the tensors or integers of a list; returns false where PyTorch fails.
template <typename T>
static bool readList(ListHandle list, llvm::SmallVectorImpl<T> &elements) {
  size_t size;
  if (api.getListSize(list, &size))
    return false;
  for (size_t i = 0; i < size; ++i) {
    StableValue item;
    if (api.getListItem(list, i, &item))
      return false;
    elements.emplace_back(item);
  }
  return true;
}

/// Returns Fovea's number of one of PyTorch's element types, -1 if there is
/// none.
static int32_t findType(int32_t number) {
  if (number == api.uint8)
    return FOVEA_I8;
  const int32_t *found = llvm::find(api.numbers, number);
  return found == std::end(api.numbers) ? -1 : int32_t(found - api.numbers);
}

/// Reads a tensor. One that is not dense has a rank that no function expects.
static Operand readTensor(const Tensor &tensor) {
  Operand operand;
  TensorHandle handle = operand.handle = tensor.get();
  fovea_tensor &view = operand.view;
  int32_t number, layout;
  int64_t rank, *sizes, *strides;
  if (api.getType(handle, &number) || api.getLayout(handle, &layout) ||
      api.getDeviceType(handle, &operand.deviceType) ||
      api.getDevice(handle, &operand.device) || layout != api.strided ||
      api.getRank(handle, &rank) || rank > FOVEA_MAX_RANK ||
      api.getSizes(handle, &sizes) || api.getStrides(handle, &strides) ||
      api.getData(handle, &view.data)) {
    view.rank = -1;
    return operand;
  }
  view.dtype = findType(number);
  view.rank = int32_t(rank);
  std::copy_n(sizes, rank, view.shape);
  std::copy_n(strides, rank, view.strides);
  return operand;
}

/// The message of an exception, where the last frames of a kernel, which have
/// nothing to destroy, can find it.
static thread_local std::string lastMessage;

/// fovea::call(Tensor[] operands, int[] numbers, int function) -> Tensor[]
static bool call(StableValue *stack) {
  List tensors(stack[0]), integers(stack[1]);
  auto *function = reinterpret_cast<fovea_torch_function *>(stack[2]);
  llvm::SmallVector<Tensor, 8> owned;
  llvm::SmallVector<int64_t, 8> numbers;
  Results results;
  ListHandle list;
  if (!readList(tensors.handle, owned) || !readList(integers.handle, numbers)) {
    lastMessage = "cannot read the operands";
    return false;
  }
  llvm::SmallVector<Operand, 8> operands(llvm::map_range(owned, readTensor));
  if (!fovea::torch::call(*function, operands, numbers, results, lastMessage))
    return false;
  if (api.createList(results.size(), &list)) {
    lastMessage = "cannot make the list of results";
    return false;
  }
  for (Tensor &result : results)
    api.appendToList(list, reinterpret_cast<StableValue>(result.release()));
  stack[0] = reinterpret_cast<StableValue>(list);
  return true;
}

/// fovea::attention(Tensor query, Tensor key, Tensor value, Tensor[] captures,
///                  SymInt[] numbers, str text, bool deterministic)
///     -> (Tensor output, Tensor lse)
static bool attend(StableValue *stack) {
  llvm::SmallVector<Tensor, 8> owned;
  for (size_t i = 0; i < 3; ++i)
    owned.emplace_back(stack[i]);
  List captures(stack[3]), integers(stack[4]);
  String string(stack[5]);
  bool isDeterministic = stack[6] & 1;
  llvm::SmallVector<int64_t, 8> numbers;
  Results results;
  const char *text;
  size_t length;
  if (!readList(captures.handle, owned) ||
      !readList(integers.handle, numbers) ||
      api.getStringData(string.handle, &text) ||
      api.getStringLength(string.handle, &length)) {
    lastMessage = "cannot read the operands";
    return false;
  }
  llvm::SmallVector<Operand, 8> operands(llvm::map_range(owned, readTensor));
  if (!fovea::torch::attend(operands, numbers, {text, length}, isDeterministic,
                            results, lastMessage))
    return false;
  stack[0] = reinterpret_cast<StableValue>(results[0].release());
  stack[1] = reinterpret_cast<StableValue>(results[1].release());
  return true;
}

/// fovea::accepts(Tensor x, SymInt[] numbers, str text) -> Tensor[]
///
/// Returns no tensors if it gets 1 and 2, and "text": PyTorch then gives
/// operators lists of integers that may be symbols.
static bool accept(StableValue *stack) {
  Tensor tensor(stack[0]);
  List integers(stack[1]);
  String string(stack[2]);
  llvm::SmallVector<int64_t, 8> numbers;
  const char *text;
  ListHandle list;
  if (!readList(integers.handle, numbers) ||
      api.getStringData(string.handle, &text) ||
      llvm::ArrayRef(numbers) != llvm::ArrayRef<int64_t>({1, 2}) ||
      llvm::StringRef(text) != "text" || api.createList(0, &list)) {
    lastMessage = "other operands than expected";
    return false;
  }
  stack[0] = reinterpret_cast<StableValue>(list);
  return true;
}

// Nothing that would have to be destroyed lives in these functions, which
// exceptions pass.

static void acceptKernel(StableValue *stack, uint64_t, uint64_t) {
  if (!accept(stack))
    api.raise(lastMessage.c_str());
}

static void callKernel(StableValue *stack, uint64_t, uint64_t) {
  if (!call(stack))
    api.raise(lastMessage.c_str());
}

/// By its name Python tells the error of this operator from PyTorch's own.
static void nameError() { lastMessage.insert(0, "fovea::attention: "); }

static void attendKernel(StableValue *stack, uint64_t, uint64_t) {
  if (attend(stack))
    return;
  nameError();
  api.raise(lastMessage.c_str());
}

//===----------------------------------------------------------------------===//
// The C API
//===----------------------------------------------------------------------===//

template <typename FunctionTy>
static bool lookUp(void *library, const char *name, FunctionTy &function) {
  function = reinterpret_cast<FunctionTy>(dlsym(library, name));
  return function != nullptr;
}

/// Looks up PyTorch's functions; returns the name of one that is missing, or
/// null.
static const char *load(const char *cpuLibrary, const char *cudaLibrary) {
  // It is loaded already: the process has imported PyTorch.
  void *library = dlopen(cpuLibrary, RTLD_LAZY | RTLD_NOLOAD);
  if (!library)
    return cpuLibrary;
#define LOOK_UP(name, symbol, parameters)                                      \
  if (!lookUp(library, #symbol, api.name))                                     \
    return #symbol;
  FOVEA_TORCH_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
  int32_t (*constant)();
#define LOOK_UP(name, symbol)                                                  \
  if (!lookUp(library, #symbol, constant))                                     \
    return #symbol;                                                            \
  api.name = constant();
  FOVEA_TORCH_CONSTANTS(LOOK_UP)
#undef LOOK_UP
  if (!lookUp(library, "aoti_torch_grad_mode_is_enabled", api.isGradEnabled))
    return "aoti_torch_grad_mode_is_enabled";
  const char *types[] = {
      "aoti_torch_dtype_float16", "aoti_torch_dtype_bfloat16",
      "aoti_torch_dtype_float32", "aoti_torch_dtype_float64",
      "aoti_torch_dtype_bool",    "aoti_torch_dtype_int8",
      "aoti_torch_dtype_int16",   "aoti_torch_dtype_int32",
      "aoti_torch_dtype_int64"};
  for (auto [index, name] : llvm::enumerate(types)) {
    if (!lookUp(library, name, constant))
      return name;
    api.numbers[index] = constant();
  }
  if (!lookUp(library, "aoti_torch_dtype_uint8", constant))
    return "aoti_torch_dtype_uint8";
  api.uint8 = constant();
  // A library's names include those of the libraries that it is linked with.
  if (!lookUp(library, "_ZSt21__throw_runtime_errorPKc", api.raise))
    return "std::__throw_runtime_error";
  if (cudaLibrary) {
    void *cuda = dlopen(cudaLibrary, RTLD_LAZY | RTLD_NOLOAD);
    if (!cuda ||
        !lookUp(cuda, "aoti_torch_get_current_cuda_stream", api.getStream))
      return cudaLibrary;
  }
  return nullptr;
}

const char *fovea_torch_register(const char *cpuLibrary,
                                 const char *cudaLibrary,
                                 fovea_torch_find find) {
  if (const char *missing = load(cpuLibrary, cudaLibrary))
    return missing;
  api.find = find;
  LibraryHandle host, gpu;
  // Both stay registered for the life of the process.
  if (api.createLibrary("fovea", "CPU", __FILE__, __LINE__, &host) ||
      api.registerKernel(host, "attention", attendKernel, kInterface) ||
      api.registerKernel(host, "call", callKernel, kInterface) ||
      api.registerKernel(host, "accepts", acceptKernel, kInterface))
    return "torch_library_impl";
  if (!cudaLibrary)
    return nullptr;
  if (api.createLibrary("fovea", "CUDA", __FILE__, __LINE__, &gpu) ||
      api.registerKernel(gpu, "attention", attendKernel, kInterface) ||
      api.registerKernel(gpu, "call", callKernel, kInterface))
    return "torch_library_impl";
  return nullptr;
}
