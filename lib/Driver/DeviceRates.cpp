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

/// In rows, which threads read and write 16 bytes at a time.
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

static constexpr int kChain = 256;

/// A chain of multiply-adds for each element, whose start and step are it.
static std::string makeChain(llvm::StringRef type) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << "!t = tensor<?x" << type
         << ">\n"
            "func.func @rate(%x: !t) -> !t {\n"
            "  %y = attn.elementwise %x {\n"
            "  ^bb0(%a0: "
         << type << "):\n";
  for (int i = 0; i < kChain; ++i)
    stream << "    %a" << i + 1 << " = math.fma %a" << i
           << ", %a0, %a0 : " << type << "\n";
  stream << "    attn.yield %a" << kChain << " : " << type
         << "\n"
            "  } : (!t) -> !t\n"
            "  return %y : !t\n"
            "}\n";
  return text;
}

/// Seconds of a launch of the function of a text.
static llvm::Expected<double> measure(llvm::StringRef text, GpuArch arch,
                                      llvm::ArrayRef<TensorView> operands) {
  CompileOptions options;
  options.gpu = arch;
  auto executable = Executable::compile(text, "<rate>", options);
  if (!executable)
    return executable.takeError();
  int launches = 0;
  return (*executable)->measureLaunch(0, operands, launches);
}

/// The rate of `work` a launch on an array of zeros.
static llvm::Expected<double> measureOnZeros(llvm::StringRef text, GpuArch arch,
                                             DType type,
                                             llvm::ArrayRef<int64_t> shape,
                                             double work) {
  Tensor array(type, shape, countElements(shape, type).value_or(0));
  if (!array.getData())
    return llvm::createStringError("out of memory to measure the GPU");
  std::memset(array.getData(), 0, array.getNumBytes());
  auto seconds = measure(text, arch, array.getView());
  if (!seconds)
    return seconds.takeError();
  return work / *seconds / 1e9;
}

static llvm::Expected<double> measureProducts(GpuArch arch, int64_t blocks) {
  constexpr int64_t kSize = 128, kTimes = 2048;
  // What is multiplied decides how much power it takes, and so the clock.
  auto a = makeRandom(DType::BF16, {kSize, kSize}, 1, 0, {});
  if (!a)
    return a.takeError();
  auto b = makeRandom(DType::BF16, {kSize, kSize}, 1, 1, {});
  if (!b)
    return b.takeError();
  int64_t times = kTimes;
  TensorView operands[] = {a->getView(),
                           b->getView(),
                           {DType::I64, &blocks, {}, {}},
                           {DType::I64, &times, {}, {}}};
  auto seconds = measure(kProducts, arch, operands);
  if (!seconds)
    return seconds.takeError();
  return 2.0 * double(kSize * kSize * kSize * kTimes * blocks) / *seconds / 1e9;
}

static llvm::Expected<MachineRates> measureRates(GpuArch arch,
                                                 const cuda::DeviceInfo &info) {
  // Far more than the L2 cache, far less than there is.
  int64_t bytes = std::min<int64_t>(
      std::max<int64_t>(256 << 20, 8 * info.level2Bytes), info.memoryBytes / 8);
  int64_t rows = bytes / (2 * kRow);
  int64_t threads = int64_t(info.numMultiprocessors) * 2048;
  int64_t singles = 16 * threads, doubles = 4 * threads;
  auto bandwidth = measureOnZeros(kCopy, arch, DType::BF16, {rows, kRow},
                                  2.0 * double(2 * rows * kRow));
  if (!bandwidth)
    return bandwidth.takeError();
  auto peakF32 = measureOnZeros(makeChain("f32"), arch, DType::F32, singles,
                                2.0 * kChain * double(singles));
  if (!peakF32)
    return peakF32.takeError();
  auto peakF64 = measureOnZeros(makeChain("f64"), arch, DType::F64, doubles,
                                2.0 * kChain * double(doubles));
  if (!peakF64)
    return peakF64.takeError();
  auto peakMatrix = measureProducts(arch, 2 * info.numMultiprocessors);
  if (!peakMatrix)
    return peakMatrix.takeError();
  return MachineRates{*bandwidth, *peakF32, *peakF64, *peakMatrix};
}

llvm::Expected<MachineRates> fovea::measureDevice(GpuArch arch) {
  auto driver = cuda::Driver::get();
  if (!driver)
    return driver.takeError();
  auto device = driver->open();
  if (!device)
    return device.takeError();
  const cuda::DeviceInfo &info = device->getInfo();

  static std::mutex mutex;
  static std::map<GpuArch, MachineRates> known;
  std::lock_guard<std::mutex> lock(mutex);
  auto [found, isNew] = known.try_emplace(arch);
  MachineRates &rates = found->second;
  if (!isNew)
    return rates;
  CacheKey key("device-rates");
  key.add(getBuildIdentity()).add(getName(arch)).add(info.name);
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
