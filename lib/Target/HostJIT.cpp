//===- HostJIT.cpp - Object code, loaded and linked in memory -------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Target/HostJIT.h"
#include "fovea/Runtime/GpuRuntime.h"
#include "fovea/Runtime/HostRuntime.h"
#include "fovea/Runtime/SmallFloats.h"
#include "fovea/Target/HostCodegen.h"

#include "llvm/ExecutionEngine/Orc/AbsoluteSymbols.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

#include <cmath>
#include <cstring>

using namespace fovea;

#ifdef __x86_64__
// Code calls these functions where the processor cannot convert, with small
// floats in vector registers.
static float halfToFloat(_Float16 value) {
  return float(halfToDouble(std::bit_cast<uint16_t>(value)));
}
static _Float16 floatToHalf(float value) {
  return std::bit_cast<_Float16>(doubleToHalf(value));
}
static _Float16 doubleToHalfRegister(double value) {
  return std::bit_cast<_Float16>(doubleToHalf(value));
}
static __bf16 floatToBfloat(float value) {
  return std::bit_cast<__bf16>(doubleToBfloat(value));
}
static __bf16 doubleToBfloatRegister(double value) {
  return std::bit_cast<__bf16>(doubleToBfloat(value));
}
#endif

/// Returns the power by squaring, as compiler runtimes compute it.
template <typename Number>
static Number raise(Number base, int exponent) {
  Number power = 1;
  for (unsigned rest = exponent < 0 ? 0U - unsigned(exponent) : exponent; rest;
       rest >>= 1) {
    if (rest & 1)
      power *= base;
    base *= base;
  }
  return exponent < 0 ? 1 / power : power;
}

namespace {
using Symbol = std::pair<const char *, llvm::orc::ExecutorAddr>;
} // namespace

template <typename Function>
static Symbol symbol(const char *name, Function *function) {
  return {name, llvm::orc::ExecutorAddr::fromPtr(function)};
}

/// Returns all symbols that compiled code may refer to.
static std::vector<Symbol> getRuntimeSymbols() {
  using Unary = double(double);
  using UnaryF = float(float);
  using Binary = double(double, double);
  using BinaryF = float(float, float);
  return {
      symbol("fovea_parallel_for", &fovea_parallel_for),
      symbol("_mlir_memref_to_llvm_alloc", &_mlir_memref_to_llvm_alloc),
      symbol("_mlir_memref_to_llvm_aligned_alloc",
             &_mlir_memref_to_llvm_aligned_alloc),
      symbol("_mlir_memref_to_llvm_free", &_mlir_memref_to_llvm_free),
      symbol("fovea_check_index", &fovea_check_index),
      symbol("fovea_check_divisor", &fovea_check_divisor),
      symbol("fovea_use_matrix_tiles", &fovea_use_matrix_tiles),
      symbol("fovea_gpu_launch", &fovea_gpu_launch),
      symbol("fovea_gpu_launch_early", &fovea_gpu_launch_early),
      symbol("fovea_gpu_allocate", &fovea_gpu_allocate),
      symbol("fovea_gpu_free", &fovea_gpu_free),
      symbol("fovea_gpu_result", &fovea_gpu_result),
      symbol("fovea_gpu_tensor_map", &fovea_gpu_tensor_map),
      symbol("fovea_gpu_zero", &fovea_gpu_zero),
      symbol("fovea_gpu_read", &fovea_gpu_read),
      symbol<void *(void *, const void *, size_t)>("memcpy", &std::memcpy),
      symbol<void *(void *, const void *, size_t)>("memmove", &std::memmove),
      symbol<void *(void *, int, size_t)>("memset", &std::memset),
#define UNARY(name)                                                            \
  symbol<Unary>(#name, &::name), symbol<UnaryF>(#name "f", &::name##f)
      UNARY(acos),
      UNARY(acosh),
      UNARY(asin),
      UNARY(asinh),
      UNARY(atan),
      UNARY(atanh),
      UNARY(cbrt),
      UNARY(ceil),
      UNARY(cos),
      UNARY(cosh),
      UNARY(erf),
      UNARY(erfc),
      UNARY(exp),
      UNARY(exp2),
      UNARY(expm1),
      UNARY(fabs),
      UNARY(floor),
      UNARY(log),
      UNARY(log10),
      UNARY(log1p),
      UNARY(log2),
      UNARY(nearbyint),
      UNARY(rint),
      UNARY(round),
      UNARY(sin),
      UNARY(sinh),
      UNARY(sqrt),
      UNARY(tan),
      UNARY(tanh),
      UNARY(trunc),
#ifdef __GLIBC__
      UNARY(roundeven),
      symbol<void(double, double *, double *)>("sincos", &::sincos),
      symbol<void(float, float *, float *)>("sincosf", &::sincosf),
#endif
#undef UNARY
#define BINARY(name)                                                           \
  symbol<Binary>(#name, &::name), symbol<BinaryF>(#name "f", &::name##f)
      BINARY(atan2),
      BINARY(copysign),
      BINARY(fmax),
      BINARY(fmin),
      BINARY(fmod),
      BINARY(pow),
      BINARY(remainder),
#undef BINARY
      symbol<double(double, double, double)>("fma", &::fma),
      symbol<float(float, float, float)>("fmaf", &::fmaf),
      symbol("__powidf2", &raise<double>),
      symbol("__powisf2", &raise<float>),
      symbol<double(double, int)>("ldexp", &::ldexp),
      symbol<float(float, int)>("ldexpf", &::ldexpf),
#ifdef __x86_64__
      symbol("__extendhfsf2", &halfToFloat),
      symbol("__truncsfhf2", &floatToHalf),
      symbol("__truncdfhf2", &doubleToHalfRegister),
      symbol("__truncsfbf2", &floatToBfloat),
      symbol("__truncdfbf2", &doubleToBfloatRegister),
#endif
  };
}

struct HostJIT::State {
  /// The functions that were called but not found, as LLVM prints them.
  std::string missing;
  std::unique_ptr<llvm::orc::LLJIT> jit;
};

HostJIT::HostJIT(std::unique_ptr<State> state) : state(std::move(state)) {}
HostJIT::~HostJIT() = default;

llvm::Expected<std::unique_ptr<HostJIT>>
HostJIT::create(std::unique_ptr<llvm::MemoryBuffer> object) {
  initializeHostCodegen();
  llvm::orc::JITTargetMachineBuilder machine(
      (llvm::Triple(llvm::sys::getProcessTriple())));
  auto jit = llvm::orc::LLJITBuilder()
                 .setJITTargetMachineBuilder(std::move(machine))
                 .setPlatformSetUp(llvm::orc::setUpInactivePlatform)
                 .setLinkProcessSymbolsByDefault(false)
                 .create();
  if (!jit)
    return jit.takeError();
  llvm::orc::SymbolMap symbols;
  for (auto &[name, address] : getRuntimeSymbols())
    symbols[(*jit)->mangleAndIntern(name)] = {
        address,
        llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
  // The code is in a library of its own: symbols that the module defines itself
  // come first.
  llvm::orc::JITDylib &runtime =
      (*jit)->getExecutionSession().createBareJITDylib("runtime");
  if (llvm::Error error = runtime.define(absoluteSymbols(std::move(symbols))))
    return error;
  llvm::orc::JITDylib &library = (*jit)->getMainJITDylib();
  library.addToLinkOrder(runtime);
  if (llvm::Error error = (*jit)->addObjectFile(library, std::move(object)))
    return error;
  auto state = std::make_unique<State>();
  (*jit)->getExecutionSession().setErrorReporter([&missing = state->missing](
                                                     llvm::Error error) {
    llvm::handleAllErrors(
        std::move(error),
        [&](const llvm::orc::SymbolsNotFound &found) {
          for (const llvm::orc::SymbolStringPtr &name : found.getSymbols())
            missing += (missing.empty() ? "'" : ", '") + (*name).str() + "'";
        },
        [](const llvm::ErrorInfoBase &) {});
  });
  state->jit = std::move(*jit);
  return std::unique_ptr<HostJIT>(new HostJIT(std::move(state)));
}

llvm::Expected<HostJIT::PackedFunction>
HostJIT::lookup(llvm::StringRef function) const {
  auto address = state->jit->lookup(getPackedName(function));
  if (!address && !state->missing.empty()) {
    llvm::consumeError(address.takeError());
    return llvm::createStringError(
        "compiled code calls " + state->missing +
        ", which the module does not define and Fovea's runtime has not");
  }
  if (!address)
    return address.takeError();
  return address->toPtr<PackedFunction>();
}
