//===- Launch.h - Launches within the library -------------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CAPI_LAUNCH_H
#define FOVEA_LIB_CAPI_LAUNCH_H

#include "fovea-c/fovea.h"

#include "llvm/ADT/ArrayRef.h"

#include <optional>

namespace fovea {

/// fovea_module_launch. A caller who knows which GPU the memory and the stream
/// are of, as PyTorch does of its own, gives its number, and the driver is not
/// asked. Results of such a caller may have other sizes than it has memory for:
/// then they are in new memory, which has an owner.
fovea_status *launchOn(std::optional<int32_t> ordinal,
                       const fovea_module *module, size_t function,
                       llvm::ArrayRef<fovea_tensor> operands, void *stream,
                       llvm::MutableArrayRef<fovea_tensor> results);

} // namespace fovea

#endif // FOVEA_LIB_CAPI_LAUNCH_H
