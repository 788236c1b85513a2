//===- TorchCalls.cpp - Calls of compiled functions on PyTorch's tensors --===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Launch.h"
#include "Torch.h"

#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <array>

using namespace fovea::torch;

Api fovea::torch::api;

namespace {
/// A call of a compiled function. Functions return false where they fail, with
/// the reason in `message`.
class Call {
public:
  Call(fovea_torch_function &function, std::string &message)
      : function(function), message(message) {}

  /// Adds all operands that are tensors, and those that are integers, in the
  /// order of the function.
  bool addOperands(llvm::ArrayRef<Operand> tensors,
                   llvm::ArrayRef<int64_t> numbers);

  /// Runs the function. The sizes of its results are `shapes`, if these are
  /// known. Of the first result, dimensions 1 and 2 change places if it
  /// `isSwapped`.
  bool run(llvm::ArrayRef<Sizes> shapes, bool isSwapped, Results &results);

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
  bool addTensor(const Operand &tensor, const fovea_type &type);
  bool pack(fovea_tensor &operand, TensorHandle tensor);
  bool runOnHost(bool isSwapped, Results &results);
  bool launch(llvm::ArrayRef<Sizes> shapes, bool isSwapped, Results &results);
  bool allocate(fovea_tensor &result, const fovea_type &type,
                llvm::ArrayRef<int64_t> shape, bool isSwapped, Tensor &tensor);
  bool adopt(const fovea_tensor &result, bool isSwapped, Tensor &tensor);

  int32_t getDeviceType() const { return function.isGpu ? api.cuda : api.cpu; }

  fovea_torch_function &function;
  std::string &message;
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
  if (api.createEmpty(int64_t(shape.size()), shape.data(), strides.data(),
                      number, deviceType, device, tensor.receive()))
    return Tensor();
  return tensor;
}

bool Call::addOperands(llvm::ArrayRef<Operand> tensors,
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
  const Operand *tensor = tensors.begin();
  int64_t *number = numbers.begin();
  for (const fovea_type &type : function.operands) {
    if (!type.is_scalar) {
      if (!addTensor(*tensor++, type))
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

bool Call::addTensor(const Operand &tensor, const fovea_type &type) {
  const fovea_tensor &view = tensor.view;
  if (view.rank != type.rank)
    return fail(llvm::formatv("%{0}: expected a dense tensor of rank {1}",
                              type.name, type.rank)
                    .str());
  if (device < 0)
    device = tensor.device;
  if (tensor.deviceType != getDeviceType() || tensor.device != device)
    return fail(llvm::formatv("%{0}: expected all tensors on one device, the "
                              "{1}",
                              type.name, function.isGpu ? "GPU" : "CPU")
                    .str());
  if (view.dtype != type.dtype)
    return fail(
        llvm::formatv("%{0}: expected another type of elements", type.name)
            .str());
  fovea_tensor &operand = operands.emplace_back(view);
  // The library copies the operands of a host itself, and refuses others that
  // are writable.
  int32_t rank = view.rank;
  if (function.isGpu && !type.is_writable && rank && view.shape[rank - 1] > 1 &&
      view.strides[rank - 1] != 1)
    return pack(operand, tensor.handle);
  return true;
}

/// Replaces an operand by a row-major copy.
bool Call::pack(fovea_tensor &operand, TensorHandle tensor) {
  llvm::ArrayRef<int64_t> shape(operand.shape, size_t(operand.rank));
  Sizes strides = getStrides(shape);
  Tensor copy;
  if (tensor)
    copy = createEmpty(shape, strides, api.numbers[operand.dtype],
                       getDeviceType(), device);
  if (!copy.get() || api.copy(copy.get(), tensor, /*non_blocking=*/1) ||
      api.getData(copy.get(), &operand.data))
    return fail("cannot copy an operand");
  llvm::copy(strides, operand.strides);
  copies.push_back(std::move(copy));
  return true;
}

bool Call::run(llvm::ArrayRef<Sizes> shapes, bool isSwapped, Results &results) {
  return function.isGpu ? launch(shapes, isSwapped, results)
                        : runOnHost(isSwapped, results);
}

/// Makes a tensor of a result whose memory the library allocated, or is that of
/// `tensor`, which has other sizes.
bool Call::adopt(const fovea_tensor &result, bool isSwapped, Tensor &tensor) {
  Sizes shape(result.shape, result.shape + result.rank);
  Sizes strides(result.strides, result.strides + result.rank);
  if (isSwapped) {
    std::swap(shape[1], shape[2]);
    std::swap(strides[1], strides[2]);
  }
  int32_t number = api.numbers[result.dtype];
  Tensor adopted;
  if (llvm::is_contained(shape, 0)) {
    fovea_owner_release(result.owner);
    adopted = createEmpty(shape, strides, number, getDeviceType(), device);
  } else if (!result.owner) {
    api.createView(tensor.get(), result.rank, shape.data(), strides.data(),
                   /*storage_offset=*/0, adopted.receive());
  } else if (api.createFromMemory(
                 result.data, result.rank, shape.data(), strides.data(),
                 /*storage_offset=*/0, number, getDeviceType(), device,
                 adopted.receive(), api.strided, nullptr, 0,
                 [](void *, void *owner) { fovea_owner_release(owner); },
                 result.owner)) {
    fovea_owner_release(result.owner);
  }
  tensor = std::move(adopted);
  return tensor.get() || fail("cannot make a tensor of a result");
}

bool Call::runOnHost(bool isSwapped, Results &results) {
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
  tensor = createEmpty(sizes, strides, api.numbers[type.dtype], getDeviceType(),
                       device);
  if (!tensor.get() || api.getData(tensor.get(), &result.data))
    return fail("cannot allocate a result");
  return true;
}

bool Call::launch(llvm::ArrayRef<Sizes> shapes, bool isSwapped,
                  Results &results) {
  void *stream;
  if (!api.getStream || api.getStream(device, &stream))
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
  // PyTorch's own memory, which its allocator reuses. Null for what has no
  // elements, too: the library writes nothing then.
  for (size_t i = 0; i < known.size(); ++i)
    if (!allocate(raw[i], function.results[i], known[i], isSwapped && i == 0,
                  results[i]))
      return false;
  if (fovea_status *status = fovea::launchOn(
          device, function.module, function.number, operands, stream, raw))
    return fail(status);
  llvm::SmallVector<Sizes, 2> found;
  for (const fovea_tensor &result : raw)
    found.emplace_back(result.shape, result.shape + result.rank);
  if (found == known)
    return true;
  bool isWhole = true;
  for (auto [index, result] : llvm::enumerate(raw))
    if (known.empty() || found[index] != known[index])
      isWhole &= adopt(result, isSwapped && index == 0, results[index]);
  std::lock_guard<std::mutex> lock(function.mutex);
  // As many as a cache that grows by a step at a time has in a while.
  if (function.known.size() >= 4096)
    function.known.clear();
  function.known[key] = std::move(found);
  return isWhole;
}

bool fovea::torch::call(fovea_torch_function &function,
                        llvm::ArrayRef<Operand> tensors,
                        llvm::ArrayRef<int64_t> numbers, Results &results,
                        std::string &message) {
  Call call(function, message);
  return call.addOperands(tensors, numbers) &&
         call.run({}, /*isSwapped=*/false, results);
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

namespace {
/// The order of a query's dimensions in memory, which its attention has as
/// well.
struct Order {
  explicit Order(const fovea_tensor &query);

  /// Dimensions from the one with the largest stride on.
  std::array<size_t, 4> dims = {0, 1, 2, 3};
  bool isRowMajor() const { return llvm::is_sorted(dims); }
  bool isSwapped() const { return dims == std::array<size_t, 4>{0, 2, 1, 3}; }
};
} // namespace

Order::Order(const fovea_tensor &query) {
  if (query.rank != 4)
    return;
  const int64_t *sizes = query.shape, *strides = query.strides;
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
  if (api.getSizes(tensor.get(), &sizes) ||
      api.getType(tensor.get(), &number) ||
      api.getDeviceType(tensor.get(), &deviceType) ||
      api.getDevice(tensor.get(), &device))
    return Tensor();
  std::copy_n(sizes, 4, shape);
  for (size_t dim : llvm::reverse(order.dims)) {
    strides[dim] = stride;
    stride *= shape[dim];
  }
  Tensor copy = createEmpty(shape, strides, number, deviceType, device);
  if (copy.get() && api.copy(copy.get(), tensor.get(), 1))
    return Tensor();
  return copy;
}

/// Finds the function of a text, for a call with these tensors, behind which
/// there may be numbers.
static fovea_torch_function *find(llvm::StringRef text, bool isGpu,
                                  bool isDeterministic, bool isSwapped,
                                  llvm::ArrayRef<Operand> tensors,
                                  std::string &message) {
  static std::mutex mutex;
  static llvm::StringMap<fovea_torch_function *> functions[8];
  auto &known = functions[isGpu + 2 * isDeterministic + 4 * isSwapped];
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (fovea_torch_function *function = known.lookup(text))
      return function;
  }
  auto operands = llvm::map_to_vector(
      tensors, [](const Operand &tensor) { return tensor.view; });
  char reason[1024] = "";
  fovea_torch_function *function =
      api.find(text.data(), text.size(), isGpu, isDeterministic, isSwapped,
               operands.data(), operands.size(), reason, sizeof(reason));
  if (!function) {
    message = reason;
    return nullptr;
  }
  std::lock_guard<std::mutex> lock(mutex);
  return known[text] = function;
}

bool fovea::torch::attend(llvm::ArrayRef<Operand> tensors,
                          llvm::ArrayRef<int64_t> numbers, llvm::StringRef text,
                          bool isDeterministic, Results &results,
                          std::string &message) {
  const fovea_tensor &query = tensors[0].view, &value = tensors[2].view;
  Order order(query);
  bool isSwapped = order.isSwapped();
  bool isGpu = tensors[0].deviceType == api.cuda;
  fovea_torch_function *function =
      find(text, isGpu, isDeterministic, isSwapped, tensors, message);
  if (!function)
    return false;
  Call call(*function, message);
  if (!call.addOperands(tensors, numbers))
    return false;
  llvm::SmallVector<Sizes, 2> shapes;
  shapes.push_back(
      {query.shape[0], query.shape[1], query.shape[2], value.shape[3]});
  if (isSwapped)
    std::swap(shapes[0][1], shapes[0][2]);
  if (function->results.size() > 1)
    shapes.push_back({query.shape[0], query.shape[1], query.shape[2]});
  if (!call.run(shapes, isSwapped, results))
    return false;
  if (!order.isRowMajor() && !isSwapped)
    results[0] = copyInOrder(results[0], order);
  if (results.size() == 1)
    results.push_back(createEmpty(int64_t(0), int64_t(1),
                                  api.numbers[function->results[0].dtype],
                                  tensors[0].deviceType, tensors[0].device));
  if (results[0].get() && results[1].get())
    return true;
  message = "cannot allocate a result";
  return false;
}

//===----------------------------------------------------------------------===//
// The C API
//===----------------------------------------------------------------------===//

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
