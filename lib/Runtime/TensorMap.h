//===- TensorMap.h - TMA descriptors ----------------------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_RUNTIME_TENSORMAP_H
#define FOVEA_LIB_RUNTIME_TENSORMAP_H

#include "fovea/Runtime/GpuDevice.h"

namespace fovea::cuda {

/// The arguments of `fovea_gpu_tensor_map`.
struct TensorMapShape {
  void *base;
  int64_t elementKind;
  int64_t rank;
  const int64_t *sizes;
  const int64_t *byteStrides;
  const int64_t *box;
  int64_t swizzleBytes;
};

/// Writes a descriptor; the device's context is current. A thread remembers the
/// last ones.
llvm::Error encodeTensorMap(const Device &device, void *map,
                            TensorMapShape shape);

} // namespace fovea::cuda

#endif // FOVEA_LIB_RUNTIME_TENSORMAP_H
