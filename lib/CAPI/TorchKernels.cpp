//===- TorchKernels.cpp - Kernels of PyTorch's operators ------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Calls of compiled functions on PyTorch's tensors, without Python in between.
// PyTorch is reached through its stable C interface (2.11 and later), whose
// functions are looked up by name: no header of PyTorch is needed to build
// this, nothing is linked, and one library serves all versions.
//
//===----------------------------------------------------------------------===//

#include "fovea-c/fovea.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"

#include <dlfcn.h>

#include <array>
#include <mutex>
#include <utility>

//===----------------------------------------------------------------------===//
// PyTorch's functions
//===----------------------------------------------------------------------===//

namespace {
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

/// The version of the interface that is used here, 2.11, as PyTorch writes it.
constexpr uint64_t kInterface = uint64_t(2) << 56 | uint64_t(11) << 48;

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

struct Torch {
#define DECLARE(name, symbol, parameters) int32_t(*name) parameters;
  FOVEA_TORCH_FUNCTIONS(DECLARE)
#undef DECLARE
#define DECLARE(name, symbol) int32_t name;
  FOVEA_TORCH_CONSTANTS(DECLARE)
#undef DECLARE
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
} // namespace

/// Set once, before the kernels are registered.
static Torch torch;

//===----------------------------------------------------------------------===//
// What belongs to a call
//===----------------------------------------------------------------------===//

namespace {
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
      torch.deleteTensor(handle);
  }

  TensorHandle get() const { return handle; }
  TensorHandle *receive() { return &handle; }
  /// Hands the tensor over to PyTorch.
  StableValue release() {
    return reinterpret_cast<StableValue>(std::exchange(handle, nullptr));
  }

private:
  TensorHandle handle;
};

/// A list or a string that this side owns.
template <typename HandleTy, int32_t (*Torch::*Delete)(HandleTy)>
struct Owned {
  explicit Owned(StableValue value)
      : handle(reinterpret_cast<HandleTy>(value)) {}
  Owned(const Owned &) = delete;
  Owned &operator=(const Owned &) = delete;
  ~Owned() { (torch.*Delete)(handle); }

  HandleTy handle;
};
using List = Owned<ListHandle, &Torch::deleteList>;
using String = Owned<StringHandle, &Torch::deleteString>;

using Sizes = llvm::SmallVector<int64_t, FOVEA_MAX_RANK>;
} // namespace

/// A compiled function for PyTorch's tensors.
struct fovea_torch_function {
  const fovea_module *module;
  size_t number;
  bool isGpu;
  llvm::SmallVector<fovea_type, 8> operands;
  llvm::SmallVector<fovea_type, 2> results;
  /// The sizes of results by the sizes of operands, as launches found them.
  std::mutex mutex;
  llvm::StringMap<llvm::SmallVector<Sizes, 2>> known;
};

namespace {
/// A call of a compiled function. Functions return false where they fail, with
/// the reason in `message`.
class Call {
public:
  Call(fovea_torch_function &function) : function(function) {}

  /// Adds all operands that are tensors, and those that are integers, in the
  /// order of the function.
  bool addOperands(llvm::ArrayRef<Tensor> tensors,
                   llvm::ArrayRef<int64_t> numbers);

  /// Runs the function. The sizes of its results are `shapes`, if these are
  /// known. Of the first result, dimensions 1 and 2 change places if it
  /// `isSwapped`.
  bool run(llvm::ArrayRef<Sizes> shapes, bool isSwapped,
           llvm::SmallVectorImpl<Tensor> &results);

  std::string message;

private:
  bool fail(const llvm::Twine &reason) {
    message = reason.str();
    return false;
  }
  bool fail(fovea_status *status) {
    message = fovea_status_get_message(status);
    fovea_status_destroy(status);
    return false;
  }
  bool addTensor(TensorHandle tensor, const fovea_type &type);
  bool pack(fovea_tensor &operand, TensorHandle tensor);
  bool runOnHost(bool isSwapped, llvm::SmallVectorImpl<Tensor> &results);
  bool launch(llvm::ArrayRef<Sizes> shapes, bool isSwapped,
              llvm::SmallVectorImpl<Tensor> &results);
  bool allocate(fovea_tensor &result, const fovea_type &type,
                llvm::ArrayRef<int64_t> shape, bool isSwapped, Tensor &tensor);
  bool adopt(const fovea_tensor &result, bool isSwapped, Tensor &tensor);

  int32_t getDeviceType() const {
    return function.isGpu ? torch.cuda : torch.cpu;
  }

  fovea_torch_function &function;
  llvm::SmallVector<fovea_tensor, 8> operands;
  /// The numbers, where the operands refer to them.
  llvm::SmallVector<int64_t, 8> numbers;
  /// Copies of operands.
  llvm::SmallVector<Tensor, 0> copies;
  int32_t device = -1;
};
} // namespace

/// Returns the row-major strides of a tensor.
static Sizes getStrides(llvm::ArrayRef<int64_t> shape) {
  Sizes strides(shape.size());
  int64_t stride = 1;
  for (size_t dim = shape.size(); dim-- > 0; stride *= shape[dim])
    strides[dim] = stride;
  return strides;
}

/// Creates a tensor without elements' values; null where that fails.
static Tensor createEmpty(llvm::ArrayRef<int64_t> shape,
                          llvm::ArrayRef<int64_t> strides, int32_t number,
                          int32_t deviceType, int32_t device) {
  Tensor tensor;
  if (torch.createEmpty(int64_t(shape.size()), shape.data(), strides.data(),
                        number, deviceType, device, tensor.receive()))
    return Tensor();
  return tensor;
}

bool Call::addOperands(llvm::ArrayRef<Tensor> tensors,
                       llvm::ArrayRef<int64_t> integers) {
  size_t numScalars = llvm::count_if(
      function.operands, [](const fovea_type &type) { return type.is_scalar; });
  if (integers.size() != numScalars ||
      tensors.size() != function.operands.size() - numScalars)
    return fail(llvm::formatv("expected {0} tensors and {1} numbers, got {2} "
                              "and {3}",
                              function.operands.size() - numScalars, numScalars,
                              tensors.size(), integers.size())
                    .str());
  numbers.assign(integers.begin(), integers.end());
  const Tensor *tensor = tensors.begin();
  int64_t *number = numbers.begin();
  for (const fovea_type &type : function.operands) {
    if (!type.is_scalar) {
      if (!addTensor((tensor++)->get(), type))
        return false;
      continue;
    }
    if (type.dtype != FOVEA_I64)
      return fail(llvm::Twine("%") + type.name + ": expected an integer");
    fovea_tensor &operand = operands.emplace_back();
    operand.data = number++;
    operand.dtype = type.dtype;
    operand.rank = 0;
  }
  return true;
}

bool Call::addTensor(TensorHandle tensor, const fovea_type &type) {
  int32_t number, layout, deviceType, index;
  int64_t rank, *sizes, *strides;
  fovea_tensor &operand = operands.emplace_back();
  if (torch.getType(tensor, &number) || torch.getLayout(tensor, &layout) ||
      torch.getDeviceType(tensor, &deviceType) ||
      torch.getDevice(tensor, &index) || layout != torch.strided ||
      torch.getRank(tensor, &rank) || rank != type.rank ||
      torch.getSizes(tensor, &sizes) || torch.getStrides(tensor, &strides) ||
      torch.getData(tensor, &operand.data))
    return fail(llvm::formatv("%{0}: expected a dense tensor of rank {1}",
                              type.name, type.rank)
                    .str());
  if (device < 0)
    device = index;
  if (deviceType != getDeviceType() || index != device)
    return fail(llvm::formatv("%{0}: expected all tensors on one device, the "
                              "{1}",
                              type.name, function.isGpu ? "GPU" : "CPU")
                    .str());
  if (number != torch.numbers[type.dtype] &&
      (type.dtype != FOVEA_I8 || number != torch.uint8))
    return fail(
        llvm::formatv("%{0}: expected another type of elements", type.name)
            .str());
  operand.dtype = type.dtype;
  operand.rank = type.rank;
  std::copy_n(sizes, rank, operand.shape);
  std::copy_n(strides, rank, operand.strides);
  // The library copies the operands of a host itself, and refuses others that
  // are writable.
  if (function.isGpu && !type.is_writable && rank && sizes[rank - 1] > 1 &&
      strides[rank - 1] != 1)
    return pack(operand, tensor);
  return true;
}

/// Replaces an operand by a row-major copy.
bool Call::pack(fovea_tensor &operand, TensorHandle tensor) {
  llvm::ArrayRef<int64_t> shape(operand.shape, size_t(operand.rank));
  Sizes strides = getStrides(shape);
  Tensor copy = createEmpty(shape, strides, torch.numbers[operand.dtype],
                            getDeviceType(), device);
  if (!copy.get() || torch.copy(copy.get(), tensor, /*non_blocking=*/1) ||
      torch.getData(copy.get(), &operand.data))
    return fail("cannot copy an operand");
  llvm::copy(strides, operand.strides);
  copies.push_back(std::move(copy));
  return true;
}

bool Call::run(llvm::ArrayRef<Sizes> shapes, bool isSwapped,
               llvm::SmallVectorImpl<Tensor> &results) {
  return function.isGpu ? launch(shapes, isSwapped, results)
                        : runOnHost(isSwapped, results);
}

/// Makes a tensor of a result whose memory the library allocated.
bool Call::adopt(const fovea_tensor &result, bool isSwapped, Tensor &tensor) {
  Sizes shape(result.shape, result.shape + result.rank);
  Sizes strides(result.strides, result.strides + result.rank);
  if (isSwapped) {
    std::swap(shape[1], shape[2]);
    std::swap(strides[1], strides[2]);
  }
  int32_t number = torch.numbers[result.dtype];
  if (llvm::is_contained(shape, 0)) {
    fovea_owner_release(result.owner);
    tensor = createEmpty(shape, strides, number, getDeviceType(), device);
  } else if (torch.createFromMemory(
                 result.data, result.rank, shape.data(), strides.data(),
                 /*storage_offset=*/0, number, getDeviceType(), device,
                 tensor.receive(), torch.strided, nullptr, 0,
                 [](void *, void *owner) { fovea_owner_release(owner); },
                 result.owner)) {
    fovea_owner_release(result.owner);
  }
  return tensor.get() || fail("cannot make a tensor of a result");
}

bool Call::runOnHost(bool isSwapped, llvm::SmallVectorImpl<Tensor> &results) {
  llvm::SmallVector<fovea_tensor, 2> raw(function.results.size());
  if (fovea_status *status =
          fovea_module_call(function.module, function.number, operands.data(),
                            operands.size(), raw.data(), raw.size()))
    return fail(status);
  bool isWhole = true;
  for (auto [index, result] : llvm::enumerate(raw))
    isWhole &= adopt(result, isSwapped && index == 0, results.emplace_back());
  return isWhole;
}

bool Call::allocate(fovea_tensor &result, const fovea_type &type,
                    llvm::ArrayRef<int64_t> shape, bool isSwapped,
                    Tensor &tensor) {
  Sizes sizes(shape), strides = getStrides(shape);
  result.dtype = type.dtype;
  result.rank = type.rank;
  llvm::copy(sizes, result.shape);
  llvm::copy(strides, result.strides);
  if (isSwapped) {
    std::swap(sizes[1], sizes[2]);
    std::swap(strides[1], strides[2]);
  }
  tensor = createEmpty(sizes, strides, torch.numbers[type.dtype],
                       getDeviceType(), device);
  if (!tensor.get() || torch.getData(tensor.get(), &result.data))
    return fail("cannot allocate a result");
  return true;
}

bool Call::launch(llvm::ArrayRef<Sizes> shapes, bool isSwapped,
                  llvm::SmallVectorImpl<Tensor> &results) {
  void *stream;
  if (!torch.getStream || torch.getStream(device, &stream))
    return fail("PyTorch has no CUDA stream");
  llvm::SmallString<256> key;
  llvm::SmallVector<Sizes, 2> known(shapes);
  bool isGiven = known.size() == function.results.size();
  if (!isGiven) {
    for (const fovea_tensor &operand : operands)
      key.append(reinterpret_cast<const char *>(operand.shape),
                 reinterpret_cast<const char *>(operand.shape + operand.rank));
    std::lock_guard<std::mutex> lock(function.mutex);
    known = function.known.lookup(key);
  }
  llvm::SmallVector<fovea_tensor, 2> raw(function.results.size());
  results.resize(raw.size());
  bool isNew = known.size() != raw.size();
  // PyTorch's own memory, which its allocator reuses. Null for what has no
  // elements, too: the library writes nothing then.
  for (size_t i = 0; i < raw.size() && !isNew; ++i)
    if (!allocate(raw[i], function.results[i], known[i], isSwapped && i == 0,
                  results[i]))
      return false;
  if (fovea_status *status =
          fovea_module_launch(function.module, function.number, operands.data(),
                              operands.size(), stream, raw.data(), raw.size()))
    return fail(status);
  if (!isNew)
    return true;
  bool isWhole = true;
  known.clear();
  for (auto [index, result] : llvm::enumerate(raw)) {
    isWhole &= adopt(result, isSwapped && index == 0, results[index]);
    known.emplace_back(result.shape, result.shape + result.rank);
  }
  std::lock_guard<std::mutex> lock(function.mutex);
  // As many as a cache that grows by a step at a time has in a while.
  if (function.known.size() >= 4096)
    function.known.clear();
  function.known[key] = std::move(known);
  return isWhole;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// Reads the tensors or integers of a list; returns false where PyTorch fails.
template <typename T>
static bool readList(ListHandle list, llvm::SmallVectorImpl<T> &elements) {
  size_t size;
  if (torch.getListSize(list, &size))
    return false;
  for (size_t i = 0; i < size; ++i) {
    StableValue item;
    if (torch.getListItem(list, i, &item))
      return false;
    elements.emplace_back(item);
  }
  return true;
}

/// The message of an exception, where the last frames of a kernel, which have
/// nothing to destroy, can find it.
static thread_local std::string lastMessage;

/// fovea::call(Tensor[] operands, int[] numbers, int function) -> Tensor[]
static bool call(StableValue *stack) {
  List tensors(stack[0]), integers(stack[1]);
  auto *function = reinterpret_cast<fovea_torch_function *>(stack[2]);
  llvm::SmallVector<Tensor, 8> operands;
  llvm::SmallVector<int64_t, 8> numbers;
  llvm::SmallVector<Tensor, 2> results;
  Call call(*function);
  ListHandle list;
  if (!readList(tensors.handle, operands) ||
      !readList(integers.handle, numbers)) {
    lastMessage = "cannot read the operands";
    return false;
  }
  if (!call.addOperands(operands, numbers) ||
      !call.run({}, /*isSwapped=*/false, results)) {
    lastMessage = std::move(call.message);
    return false;
  }
  if (torch.createList(results.size(), &list)) {
    lastMessage = "cannot make the list of results";
    return false;
  }
  for (Tensor &result : results)
    torch.appendToList(list, result.release());
  stack[0] = reinterpret_cast<StableValue>(list);
  return true;
}

namespace {
/// The order of a query's dimensions in memory, which its attention has as
/// well.
struct Order {
  explicit Order(TensorHandle query);

  /// Dimensions from the one with the largest stride on.
  std::array<size_t, 4> dims = {0, 1, 2, 3};
  bool isRowMajor() const { return llvm::is_sorted(dims); }
  bool isSwapped() const { return dims == std::array<size_t, 4>{0, 2, 1, 3}; }
};
} // namespace

Order::Order(TensorHandle query) {
  int64_t *sizes, *strides, rank;
  if (torch.getRank(query, &rank) || rank != 4 ||
      torch.getSizes(query, &sizes) || torch.getStrides(query, &strides))
    return;
  // Elements of an expanded tensor are in no order. The stride of a dimension
  // of one element says nothing.
  bool isContiguous = true;
  int64_t stride = 1;
  for (size_t dim = 4; dim-- > 0; stride *= sizes[dim]) {
    isContiguous &= sizes[dim] == 1 || strides[dim] == stride;
    if (!sizes[dim] || !strides[dim])
      return;
  }
  if (!isContiguous)
    llvm::sort(dims, [&](size_t left, size_t right) {
      return std::pair(-strides[left], left) <
             std::pair(-strides[right], right);
    });
}

/// Returns a row-major tensor in another order of dimensions, as a copy.
static Tensor copyInOrder(const Tensor &tensor, const Order &order) {
  int64_t *sizes, shape[4], strides[4], stride = 1;
  int32_t number, deviceType, device;
  if (torch.getSizes(tensor.get(), &sizes) ||
      torch.getType(tensor.get(), &number) ||
      torch.getDeviceType(tensor.get(), &deviceType) ||
      torch.getDevice(tensor.get(), &device))
    return Tensor();
  std::copy_n(sizes, 4, shape);
  for (size_t dim : llvm::reverse(order.dims)) {
    strides[dim] = stride;
    stride *= shape[dim];
  }
  Tensor copy = createEmpty(shape, strides, number, deviceType, device);
  if (copy.get() && torch.copy(copy.get(), tensor.get(), 1))
    return Tensor();
  return copy;
}

/// Finds the function of a text, which Python compiles at the first call with
/// it. Functions are kept for the life of the process.
static fovea_torch_function *find(llvm::StringRef text, bool isGpu,
                                  bool isDeterministic, bool isSwapped) {
  static std::mutex mutex;
  static llvm::StringMap<fovea_torch_function *> functions[8];
  auto &known = functions[isGpu + 2 * isDeterministic + 4 * isSwapped];
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (fovea_torch_function *function = known.lookup(text))
      return function;
  }
  char message[1024] = "";
  fovea_torch_function *function =
      torch.find(text.data(), text.size(), isGpu, isDeterministic, isSwapped,
                 message, sizeof(message));
  if (!function) {
    lastMessage = message;
    return nullptr;
  }
  std::lock_guard<std::mutex> lock(mutex);
  return known[text] = function;
}

/// fovea::attention(Tensor query, Tensor key, Tensor value, Tensor[] captures,
///                  SymInt[] numbers, str text, bool deterministic)
///     -> (Tensor output, Tensor lse)
static bool attend(StableValue *stack, bool isGpu) {
  llvm::SmallVector<Tensor, 8> operands;
  for (size_t i = 0; i < 3; ++i)
    operands.emplace_back(stack[i]);
  List captures(stack[3]), integers(stack[4]);
  String string(stack[5]);
  bool isDeterministic = stack[6] & 1;
  llvm::SmallVector<int64_t, 8> numbers;
  const char *text;
  size_t length;
  if (!readList(captures.handle, operands) ||
      !readList(integers.handle, numbers) ||
      torch.getStringData(string.handle, &text) ||
      torch.getStringLength(string.handle, &length)) {
    lastMessage = "cannot read the operands";
    return false;
  }
  Order order(operands[0].get());
  bool isSwapped = order.isSwapped();
  fovea_torch_function *function =
      find({text, length}, isGpu, isDeterministic, isSwapped);
  if (!function)
    return false;
  Call call(*function);
  llvm::SmallVector<Tensor, 2> results;
  llvm::SmallVector<Sizes, 2> shapes;
  int64_t *query, *value;
  bool isRead = call.addOperands(operands, numbers);
  if (isRead && !torch.getSizes(operands[0].get(), &query) &&
      !torch.getSizes(operands[2].get(), &value)) {
    shapes.push_back({query[0], query[1], query[2], value[3]});
    if (isSwapped)
      std::swap(shapes[0][1], shapes[0][2]);
    if (function->results.size() > 1)
      shapes.push_back({query[0], query[1], query[2]});
  }
  if (!isRead || !call.run(shapes, isSwapped, results)) {
    lastMessage = std::move(call.message);
    return false;
  }
  if (!order.isRowMajor() && !isSwapped)
    results[0] = copyInOrder(results[0], order);
  if (results.size() == 1) {
    int64_t none = 0, stride = 1;
    int32_t number = torch.numbers[function->results[0].dtype];
    int32_t device = 0;
    torch.getDevice(operands[0].get(), &device);
    results.push_back(createEmpty(none, stride, number,
                                  isGpu ? torch.cuda : torch.cpu, device));
  }
  if (!results[0].get() || !results[1].get()) {
    lastMessage = "cannot allocate a result";
    return false;
  }
  stack[0] = results[0].release();
  stack[1] = results[1].release();
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
      torch.getStringData(string.handle, &text) ||
      llvm::ArrayRef(numbers) != llvm::ArrayRef<int64_t>({1, 2}) ||
      llvm::StringRef(text) != "text" || torch.createList(0, &list)) {
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
    torch.raise(lastMessage.c_str());
}

static void callKernel(StableValue *stack, uint64_t, uint64_t) {
  if (!call(stack))
    torch.raise(lastMessage.c_str());
}

/// By its name Python tells the error of this operator from PyTorch's own.
static void nameError() { lastMessage.insert(0, "fovea::attention: "); }

static void attendOnHost(StableValue *stack, uint64_t, uint64_t) {
  if (attend(stack, /*isGpu=*/false))
    return;
  nameError();
  torch.raise(lastMessage.c_str());
}

static void attendOnGpu(StableValue *stack, uint64_t, uint64_t) {
  if (attend(stack, /*isGpu=*/true))
    return;
  nameError();
  torch.raise(lastMessage.c_str());
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
  if (!lookUp(library, #symbol, torch.name))                                   \
    return #symbol;
  FOVEA_TORCH_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
  int32_t (*constant)();
#define LOOK_UP(name, symbol)                                                  \
  if (!lookUp(library, #symbol, constant))                                     \
    return #symbol;                                                            \
  torch.name = constant();
  FOVEA_TORCH_CONSTANTS(LOOK_UP)
#undef LOOK_UP
  const char *types[] = {
      "aoti_torch_dtype_float16", "aoti_torch_dtype_bfloat16",
      "aoti_torch_dtype_float32", "aoti_torch_dtype_float64",
      "aoti_torch_dtype_bool",    "aoti_torch_dtype_int8",
      "aoti_torch_dtype_int16",   "aoti_torch_dtype_int32",
      "aoti_torch_dtype_int64"};
  for (auto [index, name] : llvm::enumerate(types)) {
    if (!lookUp(library, name, constant))
      return name;
    torch.numbers[index] = constant();
  }
  if (!lookUp(library, "aoti_torch_dtype_uint8", constant))
    return "aoti_torch_dtype_uint8";
  torch.uint8 = constant();
  // A library's names include those of the libraries that it is linked with.
  if (!lookUp(library, "_ZSt21__throw_runtime_errorPKc", torch.raise))
    return "std::__throw_runtime_error";
  if (cudaLibrary) {
    void *cuda = dlopen(cudaLibrary, RTLD_LAZY | RTLD_NOLOAD);
    if (!cuda ||
        !lookUp(cuda, "aoti_torch_get_current_cuda_stream", torch.getStream))
      return cudaLibrary;
  }
  return nullptr;
}

const char *fovea_torch_register(const char *cpuLibrary,
                                 const char *cudaLibrary,
                                 fovea_torch_find find) {
  if (const char *missing = load(cpuLibrary, cudaLibrary))
    return missing;
  torch.find = find;
  LibraryHandle host, gpu;
  // Both stay registered for the life of the process.
  if (torch.createLibrary("fovea", "CPU", __FILE__, __LINE__, &host) ||
      torch.registerKernel(host, "attention", attendOnHost, kInterface) ||
      torch.registerKernel(host, "call", callKernel, kInterface) ||
      torch.registerKernel(host, "accepts", acceptKernel, kInterface))
    return "torch_library_impl";
  if (!cudaLibrary)
    return nullptr;
  if (torch.createLibrary("fovea", "CUDA", __FILE__, __LINE__, &gpu) ||
      torch.registerKernel(gpu, "attention", attendOnGpu, kInterface) ||
      torch.registerKernel(gpu, "call", callKernel, kInterface))
    return "torch_library_impl";
  return nullptr;
}

fovea_torch_function *fovea_torch_function_create(const fovea_module *module,
                                                  size_t function, int isGpu) {
  auto *result = new fovea_torch_function();
  result->module = module;
  result->number = function;
  result->isGpu = isGpu;
  result->operands.resize(fovea_module_get_num_operands(module, function));
  for (auto [index, type] : llvm::enumerate(result->operands))
    fovea_status_destroy(
        fovea_module_get_operand_type(module, function, index, &type));
  result->results.resize(fovea_module_get_num_results(module, function));
  for (auto [index, type] : llvm::enumerate(result->results))
    fovea_status_destroy(
        fovea_module_get_result_type(module, function, index, &type));
  return result;
}

void fovea_torch_function_destroy(fovea_torch_function *function) {
  delete function;
}
