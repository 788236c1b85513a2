//===- MaxPosition.h - A bound on sizes -------------------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_SUPPORT_MAXPOSITION_H
#define FOVEA_SUPPORT_MAXPOSITION_H

#include <cstdint>

namespace fovea {

/// A bound on positions, and on the sizes of what attention reads: no position
/// exceeds it, and a coordinate of an element is less. So sums of a few of them
/// fit in 32 bits.
inline constexpr int64_t kMaxPosition = int64_t(1) << 30;

} // namespace fovea

#endif // FOVEA_SUPPORT_MAXPOSITION_H
