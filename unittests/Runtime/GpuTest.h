//===- GpuTest.h - Tests on a fake GPU --------------------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_UNITTESTS_RUNTIME_GPUTEST_H
#define FOVEA_UNITTESTS_RUNTIME_GPUTEST_H

#include "FakeCuda.h"
#include "fovea/Runtime/GpuRuntime.h"

#include "gtest/gtest.h"

namespace fovea::cuda {

/// Returns the message of an error, or `success`.
inline std::string getMessage(llvm::Error error) {
  return error ? llvm::toString(std::move(error)) : "success";
}
template <typename T>
std::string getMessage(llvm::Expected<T> value) {
  return value ? "success" : llvm::toString(value.takeError());
}

template <typename T>
T take(llvm::Expected<T> value) {
  if (value)
    return std::move(*value);
  std::fprintf(stderr, "%s\n", llvm::toString(value.takeError()).c_str());
  std::abort();
}

/// A new fake driver for each test.
class GpuTest : public testing::Test {
protected:
  void SetUp() override { resetFakeCuda(); }

  /// Graphs must not outlive the driver.
  void TearDown() override {
    while (!getFakeCuda().graphs.empty())
      destroyFakeGraph(getFakeCuda().graphs.begin()->first);
  }

  Device &open(int ordinal = 0) {
    if (!driver)
      driver = take(Driver::load(FAKE_CUDA_FILE));
    auto device = driver->open(ordinal);
    EXPECT_TRUE(bool(device));
    return *device;
  }

  std::unique_ptr<Module> load(std::vector<std::string> kernels) {
    return take(Module::load(open(), {"cubin", "PTX"}, kernels));
  }

  std::unique_ptr<Driver> driver;
};

} // namespace fovea::cuda

#endif // FOVEA_UNITTESTS_RUNTIME_GPUTEST_H
