//===- GpuExecutable.cpp - Call compiled functions on a GPU ---------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CallFrame.h"

#include "llvm/Support/FormatVariadic.h"

using namespace fovea;

/// Operands in the device's memory.
struct fovea::DeviceOperands {
  llvm::SmallVector<Tensor, 0> packed;
  llvm::SmallVector<cuda::Buffer, 0> buffers;
  llvm::SmallVector<TensorView, 0> views;
};

namespace {

/// Memory that launches allocate for results, freed with this object.
struct NewResults {
  NewResults(cuda::Device &device, size_t count)
      : device(device), buffers(count) {}
  NewResults(const NewResults &) = delete;
  NewResults &operator=(const NewResults &) = delete;
  ~NewResults() {
    for (const cuda::ResultBuffer &buffer : buffers)
      if (buffer.allocated)
        device.free(buffer.data);
  }

  cuda::Device &device;
  llvm::SmallVector<cuda::ResultBuffer, 2> buffers;
};

} // namespace

/// Copies operands to the device, in row-major order.
static llvm::Expected<DeviceOperands>
copyOperands(cuda::Device &device, const Signature &function,
             llvm::ArrayRef<TensorView> operands) {
  DeviceOperands result;
  CallFrame frame(function);
  if (operands.size() != function.operands.size())
    return rejectOperands(llvm::formatv("@{0}: expected {1} operands, got {2}",
                                        function.name, function.operands.size(),
                                        operands.size()));
  auto locate = [&](size_t index, llvm::Error error) {
    auto code = std::make_error_code(std::errc::not_enough_memory);
    return llvm::createStringError(code, formatOperand(function, index) + ": " +
                                             llvm::toString(std::move(error)));
  };
  // Views refer to the packed tensors, which must not move.
  result.packed.reserve(operands.size());
  for (auto [index, view] : llvm::enumerate(operands)) {
    if (llvm::Error error = frame.check(index, view))
      return std::move(error);
    if (function.operands[index].scalar) {
      result.views.push_back(view);
      continue;
    }
    auto packed = pack(view);
    if (!packed)
      return locate(index, packed.takeError());
    auto buffer = device.allocate(packed->getNumBytes());
    if (!buffer)
      return locate(index, buffer.takeError());
    if (llvm::Error error = device.copyToDevice(
            buffer->getData(), packed->getData(), packed->getNumBytes()))
      return locate(index, std::move(error));
    result.packed.push_back(std::move(*packed));
    TensorView onDevice = result.packed.back().getView();
    onDevice.data = buffer->getData();
    result.views.push_back(onDevice);
    result.buffers.push_back(std::move(*buffer));
  }
  return result;
}

cuda::Device *Executable::getDevice() const {
  return state->gpu ? &state->gpu->getDevice() : nullptr;
}

/// Checks memory that the caller gave, on every launch: `what` of `function`,
/// of which `index` is called `name` if it has a name; whether it is memory of
/// `device`, unless that is null. Nothing is formatted, and therefore nothing
/// allocated, unless there is an error.
static llvm::Error checkMemory(cuda::Device *device, const void *data,
                               DType type, const Signature &function,
                               const char *what, size_t index,
                               llvm::StringRef name) {
  if (!data)
    return llvm::Error::success();
  if (device)
    if (llvm::Error error = device->checkPointer(
            data, llvm::Twine(what) + llvm::Twine(index) +
                      (name.empty() ? "" : " (%") + name +
                      (name.empty() ? "" : ")") + " of @" + function.name))
      return error;
  if (reinterpret_cast<uintptr_t>(data) % getSize(type))
    return rejectOperands(llvm::formatv(
        "{0}{1}{2} of @{3}: expected memory aligned to elements of {4} bytes",
        what, index, name.empty() ? "" : " (%" + name.str() + ")",
        function.name, getSize(type)));
  return llvm::Error::success();
}

llvm::Error
Executable::launch(size_t index, llvm::ArrayRef<TensorView> operands,
                   cuda::StreamHandle stream,
                   llvm::MutableArrayRef<cuda::ResultBuffer> results,
                   llvm::SmallVectorImpl<int64_t> &shapes, bool areOwn) const {
  const Signature &function = state->signatures[index];
  if (operands.size() != function.operands.size() ||
      results.size() != function.results.size())
    return rejectOperands(llvm::formatv(
        "@{0}: expected {1} operands and {2} results, got {3} and {4}",
        function.name, function.operands.size(), function.results.size(),
        operands.size(), results.size()));
  if (state->checker)
    return rejectOperands("@" + function.name +
                          ": bounds are checked on the host; expected operands "
                          "in host memory");
  if (const Executable &version = getVersion(index, operands); &version != this)
    return version.launch(index, operands, stream, results, shapes, areOwn);
  cuda::Device *device = areOwn ? nullptr : &state->gpu->getDevice();
  if (device)
    if (llvm::Error error = device->checkStream(stream))
      return error;
  CallFrame frame(function);
  for (auto [number, view] : llvm::enumerate(operands)) {
    if (llvm::Error error = frame.check(number, view))
      return error;
    const ValueType &type = function.operands[number];
    if (!type.scalar) {
      if (llvm::Error error =
              checkMemory(device, view.data, view.type, function, "operand ",
                          number, type.name))
        return error;
      bool hasElements = !llvm::is_contained(view.shape, 0);
      if (hasElements && !view.shape.empty() && view.shape.back() > 1 &&
          view.strides.back() != 1)
        return rejectOperands(
            formatOperand(function, number) +
            ": expected elements next to each other along the last dimension, "
            "got a stride of " +
            llvm::Twine(view.strides.back()));
    }
    frame.add(view);
  }
  for (auto [number, buffer] : llvm::enumerate(results))
    if (llvm::Error error =
            checkMemory(device, buffer.data, function.results[number].type,
                        function, "result ", number, /*name=*/""))
      return error;
  const State::Entry &entry = state->entries[index];
  if (llvm::Error error = frame.checkShapes(entry))
    return error;
  if (!frame.areAligned(entry)) {
    auto version = state->getCopying(index);
    if (!version)
      return version.takeError();
    return version->launch(index, operands, stream, results, shapes, areOwn);
  }
  cuda::LaunchContext context(*state->gpu, stream, results);
  if (llvm::Error error =
          context.run([&] { entry.function(frame.getSlots()); }))
    return error;
  frame.visitResults([&](size_t, const CallFrame::Result &result) {
    shapes.append(result.shape.begin(), result.shape.end());
  });
  return llvm::Error::success();
}

llvm::Error Executable::State::callOnGpu(size_t index,
                                         llvm::ArrayRef<TensorView> operands,
                                         llvm::SmallVectorImpl<Tensor> &results,
                                         Usage *usage) const {
  const Signature &function = signatures[index];
  cuda::Device &device = gpu->getDevice();
  auto onDevice = copyOperands(device, function, operands);
  if (!onDevice)
    return onDevice.takeError();
  auto stream = device.createStream();
  if (!stream)
    return stream.takeError();

  CallFrame frame(function);
  for (const TensorView &view : onDevice->views)
    frame.add(view);
  if (llvm::Error error = frame.checkShapes(entries[index]))
    return error;
  if (!frame.areAligned(entries[index])) {
    auto version = getCopying(index);
    if (!version)
      return version.takeError();
    return version->state->callOnGpu(index, operands, results, usage);
  }
  NewResults onDeviceResults(device, function.results.size());
  {
    cuda::LaunchContext context(*gpu, stream->get(), onDeviceResults.buffers);
    if (llvm::Error error =
            context.run([&] { entries[index].function(frame.getSlots()); }))
      return error;
    if (usage)
      usage->temporaryBytes = context.getTemporaryBytes();
  }
  if (llvm::Error error = stream->synchronize())
    return error;
  const Tensor *host = onDevice->packed.begin();
  for (auto [type, view, uploaded] :
       llvm::zip_equal(function.operands, operands, onDevice->views)) {
    if (type.scalar)
      continue;
    const Tensor &packed = *host++;
    if (!type.writable)
      continue;
    if (llvm::Error error = device.copyToHost(packed.getData(), uploaded.data,
                                              packed.getNumBytes()))
      return error;
    unpack(packed, view);
  }

  results.clear();
  llvm::Error failure = llvm::Error::success();
  frame.visitResults([&](size_t number, const CallFrame::Result &result) {
    if (failure)
      return;
    DType type = function.results[number].type;
    Tensor copy(type, result.shape,
                countElements(result.shape, type).value_or(0));
    if (!copy.getData()) {
      failure = llvm::createStringError("@" + function.name +
                                        ": out of memory for a result");
      return;
    }
    failure =
        device.copyToHost(copy.getData(), result.data, copy.getNumBytes());
    results.push_back(std::move(copy));
  });
  return failure;
}

llvm::Expected<std::shared_ptr<const DeviceOperands>>
Executable::upload(size_t index, llvm::ArrayRef<TensorView> operands) const {
  auto onDevice =
      copyOperands(state->gpu->getDevice(), state->signatures[index], operands);
  if (!onDevice)
    return onDevice.takeError();
  return std::make_shared<const DeviceOperands>(std::move(*onDevice));
}

llvm::Expected<double> Executable::measureLaunch(size_t index,
                                                 const DeviceOperands &operands,
                                                 int &launches,
                                                 double milliseconds) const {
  constexpr int kWarmups = 3, kFewest = 5, kMost = 10000;
  const Signature &function = state->signatures[index];
  cuda::Device &device = state->gpu->getDevice();
  auto stream = device.createStream();
  if (!stream)
    return stream.takeError();
  NewResults results(device, function.results.size());
  llvm::SmallVector<int64_t> shapes;
  auto launchOnce = [&]() -> llvm::Error {
    shapes.clear();
    return launch(index, operands.views, stream->get(), results.buffers,
                  shapes);
  };
  for (int i = 0; i < kWarmups; ++i)
    if (llvm::Error error = launchOnce())
      return std::move(error);
  auto start = device.createEvent();
  if (!start)
    return start.takeError();
  auto end = device.createEvent();
  if (!end)
    return end.takeError();
  std::vector<double> times;
  double total = 0;
  do {
    if (llvm::Error error = start->record(stream->get()))
      return std::move(error);
    if (llvm::Error error = launchOnce())
      return std::move(error);
    if (llvm::Error error = end->record(stream->get()))
      return std::move(error);
    if (llvm::Error error = end->synchronize())
      return std::move(error);
    auto elapsed = end->getMillisecondsSince(*start);
    if (!elapsed)
      return elapsed.takeError();
    times.push_back(*elapsed / 1e3);
    total += *elapsed;
  } while (times.size() < kFewest ||
           (total < milliseconds && times.size() < kMost));
  llvm::sort(times);
  launches = int(times.size());
  return times[times.size() / 2];
}
