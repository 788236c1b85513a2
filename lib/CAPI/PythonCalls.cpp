//===- PythonCalls.cpp - Calls from Python without a dispatcher -----------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PyTorch's dispatcher takes longer to bring a call from Python to a kernel
// than this library to launch it. Functions of Python that are made here read
// tensors by DLPack's exchange of C functions and launch at once. They do so
// for plain tensors that nothing else looks at, and return None in all other
// cases, also where a call fails: their callers then take the road through the
// dispatcher, which does what is right or says what is wrong.
//
// Of Python, functions of its stable ABI are looked up in the process.
//
//===----------------------------------------------------------------------===//

#include "Torch.h"

#include <dlfcn.h>

using namespace fovea::torch;

//===----------------------------------------------------------------------===//
// Functions of Python and of DLPack
//===----------------------------------------------------------------------===//

namespace {
/// PyObject.
struct Object;

/// PyMethodDef.
struct Method {
  const char *name;
  Object *(*function)(Object *self, Object *const *arguments, intptr_t count);
  int flags;
  const char *description;
};
/// METH_FASTCALL.
constexpr int kFastCall = 0x80;

#define FOVEA_PYTHON_FUNCTIONS(X)                                              \
  X(makeFunction, Object *, PyCFunction_NewEx, (Method *, Object *, Object *)) \
  X(makeCapsule, Object *, PyCapsule_New,                                      \
    (void *, const char *, void (*)(Object *)))                                \
  X(getPointer, void *, PyCapsule_GetPointer, (Object *, const char *))        \
  X(clearError, void, PyErr_Clear, ())                                         \
  X(getError, Object *, PyErr_Occurred, ())                                    \
  X(restoreThread, void, PyEval_RestoreThread, (void *))                       \
  X(saveThread, void *, PyEval_SaveThread, ())                                 \
  X(getInteger, long long, PyLong_AsLongLong, (Object *))                      \
  X(call, Object *, PyObject_CallFunctionObjArgs, (Object *, ...))             \
  X(getAttribute, Object *, PyObject_GetAttr, (Object *, Object *))            \
  X(isTrue, int, PyObject_IsTrue, (Object *))                                  \
  X(getType, Object *, PyObject_Type, (Object *))                              \
  X(getElement, Object *, PySequence_GetItem, (Object *, intptr_t))            \
  X(getSize, intptr_t, PySequence_Size, (Object *))                            \
  X(makeTuple, Object *, PyTuple_New, (intptr_t))                              \
  X(copyAsTuple, Object *, PySequence_Tuple, (Object *))                       \
  X(setElement, int, PyTuple_SetItem, (Object *, intptr_t, Object *))          \
  X(getText, const char *, PyUnicode_AsUTF8AndSize, (Object *, intptr_t *))    \
  X(makeName, Object *, PyUnicode_InternFromString, (const char *))            \
  X(release, void, Py_DecRef, (Object *))                                      \
  X(retain, void, Py_IncRef, (Object *))

struct Python {
#define DECLARE(name, result, symbol, parameters) result(*name) parameters;
  FOVEA_PYTHON_FUNCTIONS(DECLARE)
#undef DECLARE
  /// None, and the type of integers.
  Object *none, *integer;
  /// The name of an attribute of tensors.
  Object *requiresGrad;
};

/// DLTensor and DLPackExchangeAPI of DLPack 1, whose layouts are its interface.
struct DLTensor {
  void *data;
  struct {
    int32_t type;
    int32_t id;
  } device;
  int32_t rank;
  struct {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
  } dtype;
  int64_t *shape;
  int64_t *strides;
  uint64_t byteOffset;
};
struct Exchange {
  uint32_t major, minor;
  void *previous;
  void *allocate, *read, *write;
  /// Fills in what a tensor is; returns 0, or -1 and raises an exception.
  int (*view)(Object *tensor, DLTensor *view);
  void *getStream;
};
constexpr uint32_t kDLPackMajor = 1;
constexpr int32_t kDLPackCPU = 1;
constexpr int32_t kDLPackCUDA = 2;
} // namespace

/// Set once, before anything is called.
static Python python;
static fovea_torch_python torch;
static const Exchange *exchange;

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

namespace {
/// A reference to an object; null where Python failed to make it.
class Reference {
public:
  explicit Reference(Object *object) : object(object) {}
  Reference(const Reference &) = delete;
  Reference &operator=(const Reference &) = delete;
  ~Reference() {
    if (object)
      python.release(object);
  }

  Object *get() const { return object; }

private:
  Object *object;
};

/// Lets other threads run Python.
class WithoutPython {
public:
  WithoutPython() : thread(python.saveThread()) {}
  WithoutPython(const WithoutPython &) = delete;
  WithoutPython &operator=(const WithoutPython &) = delete;
  ~WithoutPython() { python.restoreThread(thread); }

private:
  void *thread;
};

using Operands = llvm::SmallVector<Operand, 8>;
using Numbers = llvm::SmallVector<int64_t, 8>;
} // namespace

static bool isOfType(Object *object, const void *type) {
  // The object keeps its type alive.
  Reference own(python.getType(object));
  return own.get() == type;
}

/// Returns true if modes, transforms, tracing or a profiler of PyTorch look at
/// what is called.
static bool isWatched() {
  return llvm::any_of(torch.watchers, [](void *watcher) {
    Reference answer(python.call(static_cast<Object *>(watcher), nullptr));
    return !answer.get() || python.isTrue(answer.get()) != 0;
  });
}

/// Returns Fovea's number of an element type, -1 if there is none.
static int32_t findType(const DLTensor &tensor) {
  struct {
    uint8_t code, bits;
  } static constexpr types[] = {{2, 16}, {4, 16}, {2, 32}, {2, 64}, {6, 8},
                                {0, 8},  {0, 16}, {0, 32}, {0, 64}};
  static_assert(std::size(types) == FOVEA_I64 + 1);
  uint8_t code = tensor.dtype.code, bits = tensor.dtype.bits;
  if (code == 1 && bits == 8)
    return FOVEA_I8;
  for (auto [index, type] : llvm::enumerate(types))
    if (type.code == code && type.bits == bits)
      return int32_t(index);
  return -1;
}

/// Returns true if elements may count as the negative of what is in memory.
/// PyTorch makes such tensors of imaginary parts, which are two elements of
/// memory apart.
static bool mayBeNegated(const DLTensor &tensor) {
  if (tensor.dtype.code != 2)
    return false;
  for (int32_t dim = 0; dim < tensor.rank; ++dim)
    if (tensor.shape[dim] > 1 && tensor.strides[dim] % 2)
      return false;
  return true;
}

/// Reads a tensor; returns false if it is for another road.
static bool readTensor(Object *object, bool isGradEnabled, Operands &operands) {
  if (!isOfType(object, torch.tensor) && !isOfType(object, torch.parameter))
    return false;
  if (isGradEnabled) {
    Reference requiresGrad(python.getAttribute(object, python.requiresGrad));
    if (!requiresGrad.get() || python.isTrue(requiresGrad.get()))
      return false;
  }
  DLTensor tensor;
  if (exchange->view(object, &tensor) || tensor.rank > FOVEA_MAX_RANK ||
      !tensor.strides || mayBeNegated(tensor))
    return false;
  Operand &operand = operands.emplace_back();
  operand.handle = nullptr;
  operand.device = tensor.device.id;
  if (tensor.device.type == kDLPackCPU) {
    // PyTorch has no number for it.
    operand.deviceType = api.cpu;
    operand.device = -1;
  } else if (tensor.device.type == kDLPackCUDA) {
    operand.deviceType = api.cuda;
  } else {
    return false;
  }
  fovea_tensor &view = operand.view;
  view.data = static_cast<char *>(tensor.data) + tensor.byteOffset;
  view.dtype = findType(tensor);
  view.rank = tensor.rank;
  std::copy_n(tensor.shape, tensor.rank, view.shape);
  std::copy_n(tensor.strides, tensor.rank, view.strides);
  return true;
}

/// Reads an integer; returns false if it is for another road.
static bool readNumber(Object *object, Numbers &numbers) {
  if (!isOfType(object, python.integer))
    return false;
  numbers.push_back(python.getInteger(object));
  return numbers.back() != -1 || !python.getError();
}

/// Calls `read` for each element of a list or a tuple; returns false where that
/// does.
static bool forEach(Object *list, llvm::function_ref<bool(Object *)> read) {
  intptr_t size = python.getSize(list);
  for (intptr_t i = 0; i < size; ++i) {
    Reference element(python.getElement(list, i));
    if (!element.get() || !read(element.get()))
      return false;
  }
  return size >= 0;
}

//===----------------------------------------------------------------------===//
// Calling
//===----------------------------------------------------------------------===//

/// Returns None, as the answer that another road is to be taken.
static Object *decline() {
  python.clearError();
  python.retain(python.none);
  return python.none;
}

/// Hands results over to Python: the only one, or a tuple of all.
static Object *wrap(Results &results) {
  Reference handles(python.makeTuple(intptr_t(results.size())));
  if (!handles.get())
    return nullptr;
  for (auto [index, result] : llvm::enumerate(results)) {
    Object *handle = python.makeCapsule(result.get(), nullptr, nullptr);
    if (!handle || python.setElement(handles.get(), intptr_t(index), handle))
      return nullptr;
  }
  for (Tensor &result : results)
    result.release();
  Reference list(python.call(static_cast<Object *>(torch.take_tensors),
                             handles.get(), nullptr));
  if (!list.get())
    return nullptr;
  return results.size() == 1 ? python.getElement(list.get(), 0)
                             : python.copyAsTuple(list.get());
}

/// Calls the function that a capsule holds.
static Object *callFunction(Object *self, Object *const *arguments,
                            intptr_t count) {
  auto *function =
      static_cast<fovea_torch_function *>(python.getPointer(self, nullptr));
  if (size_t(count) != function->operands.size())
    return decline();
  bool isGradEnabled = api.isGradEnabled();
  Operands operands;
  Numbers numbers;
  for (const fovea_type &type : function->operands) {
    Object *argument = *arguments++;
    if (type.is_scalar ? !readNumber(argument, numbers)
                       : !readTensor(argument, isGradEnabled, operands))
      return decline();
  }
  if (isWatched())
    return decline();
  Results results;
  bool isDone;
  {
    WithoutPython others;
    std::string message;
    isDone = call(*function, operands, numbers, results, message);
  }
  return isDone ? wrap(results) : decline();
}

/// Computes fovea::attention of its arguments.
static Object *attend(Object *, Object *const *arguments, intptr_t count) {
  if (count != 7)
    return decline();
  bool isGradEnabled = api.isGradEnabled();
  Operands operands;
  Numbers numbers;
  auto read = [&](Object *object) {
    return readTensor(object, isGradEnabled, operands);
  };
  intptr_t length;
  if (!llvm::all_of(llvm::ArrayRef(arguments, 3), read) ||
      !forEach(arguments[3], read) ||
      !forEach(arguments[4],
               [&](Object *object) { return readNumber(object, numbers); }))
    return decline();
  const char *text = python.getText(arguments[5], &length);
  int isDeterministic = python.isTrue(arguments[6]);
  if (!text || isDeterministic < 0 || isWatched())
    return decline();
  Results results;
  bool isDone;
  {
    WithoutPython others;
    std::string message;
    isDone = fovea::torch::attend(operands, numbers, {text, size_t(length)},
                                  isDeterministic, results, message);
  }
  return isDone ? wrap(results) : decline();
}

//===----------------------------------------------------------------------===//
// The C API
//===----------------------------------------------------------------------===//

int fovea_torch_register_python(const void *dlpack,
                                const fovea_torch_python *objects) {
  exchange = static_cast<const Exchange *>(dlpack);
  if (!api.isGradEnabled || exchange->major != kDLPackMajor || !exchange->view)
    return 0;
#define LOOK_UP(name, result, symbol, parameters)                              \
  python.name =                                                                \
      reinterpret_cast<decltype(python.name)>(dlsym(RTLD_DEFAULT, #symbol));   \
  if (!python.name)                                                            \
    return 0;
  FOVEA_PYTHON_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
  python.none = static_cast<Object *>(dlsym(RTLD_DEFAULT, "_Py_NoneStruct"));
  python.integer = static_cast<Object *>(dlsym(RTLD_DEFAULT, "PyLong_Type"));
  if (!python.none || !python.integer)
    return 0;
  python.requiresGrad = python.makeName("requires_grad");
  torch = *objects;
  for (void *object : {torch.tensor, torch.parameter, torch.take_tensors})
    python.retain(static_cast<Object *>(object));
  for (void *watcher : torch.watchers)
    python.retain(static_cast<Object *>(watcher));
  return python.requiresGrad != nullptr;
}

void *fovea_torch_function_get_python(fovea_torch_function *function) {
  static Method call = {"call", callFunction, kFastCall, nullptr};
  static Method attention = {"attention", attend, kFastCall, nullptr};
  if (!function)
    return python.makeFunction(&attention, nullptr, nullptr);
  Reference self(python.makeCapsule(function, nullptr, nullptr));
  return self.get() ? python.makeFunction(&call, self.get(), nullptr) : nullptr;
}
