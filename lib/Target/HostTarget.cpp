//===- HostTarget.cpp - Detection of the host's machine -------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Target/HostTarget.h"
#include "fovea/Runtime/HostRuntime.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

using namespace fovea;

/// Returns the features of code for `arch`, beside those of AVX-512.
static llvm::StringRef getPairFeatures(HostArch arch) {
  if (arch == HostArch::AMX)
    return "+amx-bf16,+amx-tile";
  return arch == HostArch::AVX512BF16 ? "+avx512bf16" : "";
}

namespace {
/// Properties of this machine; detected once.
struct Host {
  llvm::StringMap<bool> features;
  HostArch best = HostArch::Generic;
  bool hasDotProducts = false;
  int64_t level1 = 32 << 10;
  int64_t level2 = 1 << 20;
  double gigahertz = 2.5;

  static const Host &get() {
    static const Host host;
    return host;
  }

private:
  Host();
  bool has(llvm::ArrayRef<llvm::StringRef> names) const {
    return llvm::all_of(names, [&](llvm::StringRef name) {
      auto found = features.find(name);
      return found != features.end() && found->second;
    });
  }
};
} // namespace

/// Returns the contents of a one-line file of the system, without the newline;
/// empty if there is none.
static std::string readLine(const llvm::Twine &path) {
  auto buffer = llvm::MemoryBuffer::getFileAsStream(path);
  return buffer ? (*buffer)->getBuffer().split('\n').first.trim().str() : "";
}

/// Returns the number of processors in a list such as `0-3,8-11`.
static int64_t countProcessors(llvm::StringRef list) {
  int64_t count = 0;
  llvm::SmallVector<llvm::StringRef> ranges;
  list.split(ranges, ',', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef range : ranges) {
    auto [first, last] = range.split('-');
    int64_t low, high;
    if (first.getAsInteger(10, low))
      continue;
    count += last.getAsInteger(10, high) ? 1 : high - low + 1;
  }
  return std::max<int64_t>(count, 1);
}

Host::Host() {
  for (auto &feature : llvm::sys::getHostCPUFeatures())
    features[feature.getKey()] = feature.getValue();
  if (has({"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx2", "fma"}))
    best = HostArch::AVX512;
  else if (has({"avx2", "fma", "f16c"}))
    best = HostArch::AVX2;
  hasDotProducts = best == HostArch::AVX512 && has({"avx512bf16"});
  if (best == HostArch::AVX512 && runtime::requestMatrixTiles())
    best = HostArch::AMX;
  else if (hasDotProducts && areDotProductsFaster())
    best = HostArch::AVX512BF16;

  // Hardware threads of one core share both caches; this makes no core's share
  // smaller.
  const std::string cpu = "/sys/devices/system/cpu/cpu0/";
  int64_t threadsPerCore =
      countProcessors(readLine(cpu + "topology/thread_siblings_list"));
  for (int index = 0; index < 8; ++index) {
    std::string cache = cpu + "cache/index" + std::to_string(index);
    std::string size = readLine(cache + "/size");
    std::string level = readLine(cache + "/level");
    int64_t kilobytes;
    llvm::StringRef digits(size);
    if (!digits.consume_back("K") || digits.getAsInteger(10, kilobytes) ||
        kilobytes <= 0)
      continue;
    int64_t cores = std::max<int64_t>(
        countProcessors(readLine(cache + "/shared_cpu_list")) / threadsPerCore,
        1);
    if (level == "1" && readLine(cache + "/type") == "Data")
      level1 = (kilobytes << 10) / cores;
    if (level == "2")
      level2 = (kilobytes << 10) / cores;
  }

  if (auto info = llvm::MemoryBuffer::getFileAsStream("/proc/cpuinfo")) {
    llvm::StringRef text = (*info)->getBuffer();
    size_t at = text.find("cpu MHz");
    double megahertz;
    if (at != llvm::StringRef::npos &&
        !text.substr(at).split('\n').first.split(':').second.trim().getAsDouble(
            megahertz) &&
        megahertz > 0)
      gigahertz = megahertz / 1000;
  }
}

HostArch fovea::resolveArch(HostArch arch, llvm::StringRef cpu) {
  if (arch != HostArch::Native)
    return arch;
  HostArch best = Host::get().best;
  return cpu.empty() || getPairFeatures(best).empty() ? best : HostArch::AVX512;
}

Choices<HostArch> fovea::getHostArchChoices() {
  static const Choice<HostArch> all[] = {
      {HostArch::Native, "native", "the best of the others that runs here"},
      {HostArch::AMX, "amx", "vectors of 64 bytes, and AMX tiles of bf16"},
      {HostArch::AVX512BF16, "avx512_bf16",
       "vectors of 64 bytes, and dot products of bf16"},
      {HostArch::AVX512, "avx512", "vectors of 64 bytes"},
      {HostArch::AVX2, "avx2", "vectors of 32 bytes"},
      {HostArch::Generic, "generic", "what every x86-64 processor has"}};
  return {"arch", all};
}

bool fovea::isSupportedHere(HostArch arch) {
  const Host &host = Host::get();
  switch (resolveArch(arch)) {
  case HostArch::AMX:
    return host.best == HostArch::AMX;
  case HostArch::AVX512BF16:
    return host.hasDotProducts;
  case HostArch::AVX512:
    return host.best != HostArch::AVX2 && host.best != HostArch::Generic;
  case HostArch::AVX2:
    return host.best != HostArch::Generic;
  case HostArch::Native:
  case HostArch::Generic:
    return true;
  }
  llvm_unreachable("unknown arch");
}

HostProcessor fovea::getHostProcessor(HostArch arch, llvm::StringRef cpu) {
  HostProcessor processor;
  processor.triple = llvm::sys::getProcessTriple();
  if (!cpu.empty()) {
    processor.cpu = cpu.str();
    processor.features = getPairFeatures(arch).str();
    return processor;
  }
  if (arch == HostArch::Native) {
    processor.cpu = llvm::sys::getHostCPUName().str();
    llvm::SmallVector<std::string> names;
    bool hasTiles = resolveArch(arch) == HostArch::AMX;
    for (auto &feature : Host::get().features)
      // The kernel permits the tiles, whatever a list of features says.
      if (!hasTiles || !feature.getKey().starts_with("amx-"))
        names.push_back((feature.getValue() ? "+" : "-") +
                        feature.getKey().str());
    if (hasTiles)
      names.push_back(getPairFeatures(HostArch::AMX).str());
    llvm::sort(names);
    processor.features = llvm::join(names, ",");
    return processor;
  }
  bool x86 = llvm::Triple(processor.triple).isX86();
  switch (arch) {
  case HostArch::AMX:
  case HostArch::AVX512BF16:
  case HostArch::AVX512:
    processor.cpu = "x86-64-v4";
    processor.features = getPairFeatures(arch).str();
    break;
  case HostArch::AVX2:
    processor.cpu = "x86-64-v3";
    break;
  case HostArch::Native:
  case HostArch::Generic:
    processor.cpu = x86 ? "x86-64" : "generic";
    break;
  }
  return processor;
}

machine::TargetAttr fovea::detectHost(mlir::MLIRContext *context, HostArch arch,
                                      const MachineRates *rates) {
  context->loadDialect<machine::MachineDialect>();
  const Host &host = Host::get();
  llvm::StringRef name;
  int64_t vectorBytes, registers;
  // The number of multiply-add units: two on the servers and desktops of the
  // last decade.
  int64_t units = 2;
  switch (resolveArch(arch)) {
  case HostArch::AMX:
    name = "amx", vectorBytes = 64, registers = 32;
    break;
  case HostArch::AVX512BF16:
    name = "avx512_bf16", vectorBytes = 64, registers = 32;
    break;
  case HostArch::AVX512:
    name = "avx512", vectorBytes = 64, registers = 32;
    break;
  case HostArch::AVX2:
    name = "avx2", vectorBytes = 32, registers = 16;
    break;
  case HostArch::Native:
  case HostArch::Generic:
    name = "generic", vectorBytes = 16, registers = 16;
    break;
  }
  int64_t cores = runtime::getNumThreads();
  // A core draws some 8 GB/s; a socket's channels limit the total to a few
  // hundred.
  MachineRates guess;
  guess.bandwidth = std::min(8.0 * double(cores), 300.0);
  guess.peakF32 = host.gigahertz * double(cores * units * 2 * vectorBytes / 4);
  // A product of two tiles, 16 x 16 x 32, takes 16 cycles, and a vector's dot
  // products take one.
  bool hasTiles = resolveArch(arch) == HostArch::AMX;
  guess.peakMatrix =
      host.gigahertz * double(cores * 2 * (hasTiles ? 16 : 1) * 32);
  if (!rates)
    rates = &guess;
  int64_t matrixPeak = 0;
  if (!getPairFeatures(resolveArch(arch)).empty())
    matrixPeak = std::max(int64_t(rates->peakMatrix), int64_t(1));
  return machine::TargetAttr::get(
      context, "host", name, cores, vectorBytes, registers, host.level1,
      host.level2, std::max(int64_t(rates->bandwidth * 1e3), int64_t(1)),
      std::max(int64_t(rates->peakF32), int64_t(1)), /*sharedMemory=*/0,
      matrixPeak);
}

std::string fovea::identifyHost(HostArch arch) {
  const Host &host = Host::get();
  return llvm::join_items(" ", "host", std::to_string(int(resolveArch(arch))),
                          std::to_string(runtime::getNumThreads()),
                          std::to_string(host.level1),
                          std::to_string(host.level2));
}
