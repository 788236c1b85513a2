//===- DeviceRates.cpp - Measured rates of this machine's GPU -------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Driver/DeviceRates.h"

#include "fovea/Driver/Inputs.h"
#include "fovea/Driver/Program.h"
#include "fovea/Runtime/GpuDevice.h"
#include "fovea/Target/DiskCache.h"

#include <cstring>
#include <map>
#include <mutex>

using namespace fovea;

/// The array has rows, which threads read and write 16 bytes at a time.
static constexpr int64_t kRow = 8192;
static constexpr llvm::StringLiteral kCopy = R"(
func.func @rate(%x: tensor<?x8192xbf16>) -> tensor<?x8192xbf16> {
  %y = arith.negf %x : tensor<?x8192xbf16>
  return %y : tensor<?x8192xbf16>
})";

/// A block has 128 x 128 sums and adds the same product to them `times` times;
/// its operands stay in shared memory, where tensor cores read them at their
/// full rate.
static constexpr llvm::StringLiteral kProducts = R"(
!g = memref<128x128xbf16, strided<[?, 1], offset: ?>>
!o = memref<?x128xf32, strided<[?, 1], offset: ?>>
!t = !tile.shared<128x128xbf16, swizzle = 128>
!f = !tile.fragment<128x128xf32>
func.func @rate(%a: tensor<128x128xbf16>, %b: tensor<128x128xbf16>, %blocks: index, %times: index) -> tensor<?x128xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %rows = arith.muli %blocks, %c128 : index
  %empty = tensor.empty(%rows) : tensor<?x128xf32>
  %r = tile.launch kernel "products" grid(%blocks) warps 8 stages 1 ins(%a, %b : tensor<128x128xbf16>, tensor<128x128xbf16>) outs(%empty : tensor<?x128xf32>) {
  ^bb0(%i: index, %A: !g, %B: !g, %O: !o):
    %zero = arith.constant 0.0 : f32
    %x = tile.load %A[%c0, %c0] dims [0, 1] : !g -> !t
    %y = tile.load %B[%c0, %c0] dims [0, 1] : !g -> !t
    %start = tile.fill %zero : !f
    %sum = scf.for %n = %c0 to %times step %c1 iter_args(%c = %start) -> (!f) {
      %d = tile.mma %x, %y into %c transpose_b : !t, !t, !f -> !f
      scf.yield %d : !f
    }
    %row = arith.muli %i, %c128 : index
    tile.store %sum, %O[%row, %c0] dims [0, 1] : !f, !o
  } -> tensor<?x128xf32>
  return %r : tensor<?x128xf32>
})";

/// A thread has 32 numbers, which it replaces by the next ones `times` times.
/// `TYPE` stands for their type.
static constexpr llvm::StringLiteral kChains = R"(
!g = memref<128x64xTYPE, strided<[?, 1], offset: ?>>
!o = memref<?x64xTYPE, strided<[?, 1], offset: ?>>
!f = !tile.fragment<128x64xTYPE>
func.func @rate(%a: tensor<128x64xTYPE>, %blocks: index, %times: index) -> tensor<?x64xTYPE> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %rows = arith.muli %blocks, %c128 : index
  %empty = tensor.empty(%rows) : tensor<?x64xTYPE>
  %r = tile.launch kernel "chains" grid(%blocks) warps 8 ins(%a : tensor<128x64xTYPE>) outs(%empty : tensor<?x64xTYPE>) {
  ^bb0(%i: index, %A: !g, %O: !o):
    %factor = arith.constant 0.5 : TYPE
    %addend = arith.constant 1.0 : TYPE
    %start = tile.load %A[%c0, %c0] dims [0, 1] : !g -> !f
    %end = scf.for %n = %c0 to %times step %c1 iter_args(%c = %start) -> (!f) {
      %d = tile.map ins(%c : !f) {
      ^bb0(%x: TYPE, %row: index, %column: index):
        %y = math.fma %x, %factor, %addend : TYPE
        tile.yield %y : TYPE
      } -> !f
      scf.yield %d : !f
    }
    %place = arith.muli %i, %c128 : index
    tile.store %end, %O[%place, %c0] dims [0, 1] : !f, !o
  } -> tensor<?x64xTYPE>
  return %r : tensor<?x64xTYPE>
})";

/// Returns the seconds of a launch of the function of a text.
static llvm::Expected<double> measure(llvm::StringRef text,
                                      const machine::GpuArch &arch,
                                      llvm::ArrayRef<TensorView> operands) {
  CompileOptions options;
  options.gpu = &arch;
  auto executable = Executable::compile(text, "<rate>", options);
  if (!executable)
    return executable.takeError();
  auto onDevice = (*executable)->upload(0, operands);
  if (!onDevice)
    return onDevice.takeError();
  int launches = 0;
  return (*executable)->measureLaunch(0, **onDevice, launches);
}

/// Returns the GB/s of a copy of an array of about `bytes`.
static llvm::Expected<double> measureCopy(const machine::GpuArch &arch,
                                          int64_t bytes) {
  int64_t rows = bytes / (2 * kRow);
  Tensor array(DType::BF16, {rows, kRow}, rows * kRow);
  if (!array.getData())
    return llvm::createStringError("out of memory to measure the GPU");
  std::memset(array.getData(), 0, array.getNumBytes());
  auto seconds = measure(kCopy, arch, array.getView());
  if (!seconds)
    return seconds.takeError();
  return 2.0 * double(array.getNumBytes()) / *seconds / 1e9;
}

/// Returns the GFLOP/s of programs that compute from random matrices of this
/// shape; their arguments are the number of blocks and how often each repeats
/// `work`.
static llvm::Expected<double>
measureCompute(llvm::StringRef text, const machine::GpuArch &arch, DType type,
               llvm::ArrayRef<int64_t> shape, size_t matrices, int64_t blocks,
               int64_t times, double work) {
  // The numbers that are multiplied decide the power, and so the clock.
  llvm::SmallVector<Tensor, 2> operands;
  llvm::SmallVector<TensorView> views;
  for (size_t index = 0; index < matrices; ++index) {
    auto matrix = makeRandom(type, shape, 1, index, {});
    if (!matrix)
      return matrix.takeError();
    operands.push_back(std::move(*matrix));
  }
  for (const Tensor &operand : operands)
    views.push_back(operand.getView());
  views.push_back({DType::I64, &blocks, {}, {}});
  views.push_back({DType::I64, &times, {}, {}});
  auto seconds = measure(text, arch, views);
  if (!seconds)
    return seconds.takeError();
  return work * double(blocks) * double(times) / *seconds / 1e9;
}

static llvm::Expected<double> measureChains(const machine::GpuArch &arch,
                                            DType type, int64_t blocks,
                                            int64_t times) {
  std::string text = kChains.str();
  const llvm::StringRef kPlace = "TYPE";
  for (size_t at; (at = text.find(kPlace)) != std::string::npos;)
    text.replace(at, kPlace.size(), getName(type).str());
  return measureCompute(text, arch, type, {128, 64}, 1, blocks, times,
                        2.0 * 128 * 64);
}

static llvm::Expected<MachineRates> measureRates(const machine::GpuArch &arch,
                                                 const cuda::DeviceInfo &info) {
  // The array is far larger than the L2 cache, and far smaller than memory.
  auto bandwidth = measureCopy(
      arch,
      std::min<int64_t>(std::max<int64_t>(256 << 20, 8 * info.level2Bytes),
                        info.memoryBytes / 8));
  if (!bandwidth)
    return bandwidth.takeError();
  // There are blocks for every multiprocessor, some at a time, for some tenths
  // of a millisecond.
  int64_t cores = info.numMultiprocessors;
  auto peakF32 = measureChains(arch, DType::F32, 4 * cores, 4096);
  if (!peakF32)
    return peakF32.takeError();
  auto peakF64 = measureChains(arch, DType::F64, 4 * cores, 1024);
  if (!peakF64)
    return peakF64.takeError();
  auto peakMatrix = measureCompute(kProducts, arch, DType::BF16, {128, 128}, 2,
                                   2 * cores, 2048, 2.0 * 128 * 128 * 128);
  if (!peakMatrix)
    return peakMatrix.takeError();
  return MachineRates{*bandwidth, *peakF32, *peakF64, *peakMatrix};
}

llvm::Expected<MachineRates>
fovea::measureDevice(const machine::GpuArch &arch) {
  auto driver = cuda::Driver::get();
  if (!driver)
    return driver.takeError();
  auto device = driver->open();
  if (!device)
    return device.takeError();
  const cuda::DeviceInfo &info = device->getInfo();

  static std::mutex mutex;
  static std::map<const machine::GpuArch *, MachineRates> known;
  std::lock_guard<std::mutex> lock(mutex);
  auto [found, isNew] = known.try_emplace(&arch);
  MachineRates &rates = found->second;
  if (!isNew)
    return rates;
  CacheKey key("device-rates");
  key.add(getBuildIdentity()).add(arch.name).add(info.name);
  key.add(driver->getVersion()).add(info.numMultiprocessors);
  key.add(info.clockKHz).add(info.memoryBytes);
  DiskCache &cache = DiskCache::get();
  if (auto entry = cache.lookup(key);
      entry && entry->getBufferSize() == sizeof(rates)) {
    std::memcpy(&rates, entry->getBufferStart(), sizeof(rates));
    return rates;
  }
  auto measured = measureRates(arch, info);
  if (!measured) {
    known.erase(found);
    return measured.takeError();
  }
  rates = *measured;
  cache.store(key, llvm::StringRef(reinterpret_cast<const char *>(&rates),
                                   sizeof(rates)));
  return rates;
}
