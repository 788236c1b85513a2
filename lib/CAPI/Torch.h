//===- Torch.h - Calls of compiled functions on PyTorch's tensors -*- C++ -*-=//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PyTorch is reached through its stable C interface (2.11 and later), whose
// functions are looked up by name: no header of PyTorch is needed to build
// this, nothing is linked, and one library serves all versions.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CAPI_TORCH_H
#define FOVEA_LIB_CAPI_TORCH_H

#include "fovea-c/fovea.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"

#include <mutex>
#include <string>
#include <utility>

namespace fovea::torch {

//===----------------------------------------------------------------------===//
// PyTorch's functions
//===----------------------------------------------------------------------===//

struct OpaqueTensor;
struct OpaqueList;
struct OpaqueString;
struct OpaqueLibrary;
using TensorHandle = OpaqueTensor *;
using ListHandle = OpaqueList *;
using StringHandle = OpaqueString *;
using LibraryHandle = OpaqueLibrary *;

/// An argument or a result of an operator: an integer, a boolean, or a handle.
using StableValue = uint64_t;
using Kernel = void (*)(StableValue *stack, uint64_t numArguments,
                        uint64_t numResults);

/// Functions of PyTorch that return 0, or not 0 where they fail.
#define FOVEA_TORCH_FUNCTIONS(X)                                               \
  X(createLibrary, aoti_torch_library_init_impl,                               \
    (const char *, const char *, const char *, uint32_t, LibraryHandle *))     \
  X(registerKernel, torch_library_impl,                                        \
    (LibraryHandle, const char *, Kernel, uint64_t))                           \
  X(getData, aoti_torch_get_data_ptr, (TensorHandle, void **))                 \
  X(getRank, aoti_torch_get_dim, (TensorHandle, int64_t *))                    \
  X(getSizes, aoti_torch_get_sizes, (TensorHandle, int64_t **))                \
  X(getStrides, aoti_torch_get_strides, (TensorHandle, int64_t **))            \
  X(getType, aoti_torch_get_dtype, (TensorHandle, int32_t *))                  \
  X(getLayout, aoti_torch_get_layout, (TensorHandle, int32_t *))               \
  X(getDeviceType, aoti_torch_get_device_type, (TensorHandle, int32_t *))      \
  X(getDevice, aoti_torch_get_device_index, (TensorHandle, int32_t *))         \
  X(createEmpty, aoti_torch_empty_strided,                                     \
    (int64_t, const int64_t *, const int64_t *, int32_t, int32_t, int32_t,     \
     TensorHandle *))                                                          \
  X(createView, aoti_torch__reinterpret_tensor,                                \
    (TensorHandle, int64_t, const int64_t *, const int64_t *, int64_t,         \
     TensorHandle *))                                                          \
  X(copy, aoti_torch_copy_, (TensorHandle, TensorHandle, int32_t))             \
  X(deleteTensor, aoti_torch_delete_tensor_object, (TensorHandle))             \
  X(createFromMemory, torch_from_blob,                                         \
    (void *, int64_t, const int64_t *, const int64_t *, int64_t, int32_t,      \
     int32_t, int32_t, TensorHandle *, int32_t, const uint8_t *, int64_t,      \
     void (*)(void *, void *), void *))                                        \
  X(getListSize, torch_list_size, (ListHandle, size_t *))                      \
  X(getListItem, torch_list_get_item, (ListHandle, size_t, StableValue *))     \
  X(createList, torch_new_list_reserve_size, (size_t, ListHandle *))           \
  X(appendToList, torch_list_push_back, (ListHandle, StableValue))             \
  X(deleteList, torch_delete_list, (ListHandle))                               \
  X(getStringLength, torch_string_length, (StringHandle, size_t *))            \
  X(getStringData, torch_string_c_str, (StringHandle, const char **))          \
  X(deleteString, torch_delete_string, (StringHandle))

/// Functions of PyTorch that return a constant.
#define FOVEA_TORCH_CONSTANTS(X)                                               \
  X(cpu, aoti_torch_device_type_cpu)                                           \
  X(cuda, aoti_torch_device_type_cuda)                                         \
  X(strided, aoti_torch_layout_strided)

struct Api {
#define DECLARE(name, symbol, parameters) int32_t(*name) parameters;
  FOVEA_TORCH_FUNCTIONS(DECLARE)
#undef DECLARE
#define DECLARE(name, symbol) int32_t name;
  FOVEA_TORCH_CONSTANTS(DECLARE)
#undef DECLARE
  bool (*isGradEnabled)();
  /// Null where PyTorch has no CUDA.
  int32_t (*getStream)(int32_t device, void **stream);
  /// Throws the exception that PyTorch turns into Python's RuntimeError. It is
  /// that of PyTorch's C++ library, as this one may have its own linked in.
  void (*raise)(const char *message);
  /// PyTorch's numbers of element types, by Fovea's.
  int32_t numbers[FOVEA_I64 + 1];
  int32_t uint8;
  fovea_torch_find find;
};

/// Set once, before anything is called.
extern Api api;

//===----------------------------------------------------------------------===//
// What belongs to a call
//===----------------------------------------------------------------------===//

/// A tensor that this side owns.
class Tensor {
public:
  explicit Tensor(TensorHandle handle = nullptr) : handle(handle) {}
  explicit Tensor(StableValue value)
      : handle(reinterpret_cast<TensorHandle>(value)) {}
  Tensor(Tensor &&other) : handle(other.handle) { other.handle = nullptr; }
  Tensor &operator=(Tensor &&other) {
    std::swap(handle, other.handle);
    return *this;
  }
  ~Tensor() {
    if (handle)
      api.deleteTensor(handle);
  }

  TensorHandle get() const { return handle; }
  TensorHandle *receive() { return &handle; }
  /// Hands the tensor over to PyTorch.
  TensorHandle release() { return std::exchange(handle, nullptr); }

private:
  TensorHandle handle;
};

using Sizes = llvm::SmallVector<int64_t, FOVEA_MAX_RANK>;

/// A tensor as a call reads it.
struct Operand {
  /// An unsigned integer counts as a signed one.
  fovea_tensor view;
  int32_t deviceType;
  int32_t device;
  /// Null where the tensor cannot be copied.
  TensorHandle handle;
};

/// Results of a call.
using Results = llvm::SmallVector<Tensor, 2>;

/// Calls a function with all operands that are tensors, and those that are
/// integers, in the order of the function. Returns false where that fails, with
/// the reason in `message`.
bool call(fovea_torch_function &function, llvm::ArrayRef<Operand> tensors,
          llvm::ArrayRef<int64_t> numbers, Results &results,
          std::string &message);

/// Computes fovea::attention, of which the first three operands are query, key
/// and value, and returns its output and its log-sum-exp. The function of a
/// text is compiled in Python at the first call with it, and kept for the life
/// of the process.
bool attend(llvm::ArrayRef<Operand> tensors, llvm::ArrayRef<int64_t> numbers,
            llvm::StringRef text, bool isDeterministic, Results &results,
            std::string &message);

} // namespace fovea::torch

/// A compiled function for PyTorch's tensors.
struct fovea_torch_function {
  const fovea_module *module;
  size_t number;
  bool isGpu;
  llvm::SmallVector<fovea_type, 8> operands;
  llvm::SmallVector<fovea_type, 2> results;
  /// The sizes of results by the sizes of operands, as launches found them.
  /// They are a guess: integers and elements of operands may decide sizes as
  /// well.
  std::mutex mutex;
  llvm::StringMap<llvm::SmallVector<fovea::torch::Sizes, 2>> known;
};

#endif // FOVEA_LIB_CAPI_TORCH_H
