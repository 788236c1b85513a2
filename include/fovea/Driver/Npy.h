//===- Npy.h - Tensors in .npy files ----------------------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// NumPy's file format, versions 1 to 3: bool, f16, f32, f64 and integers of 1,
// 2, 4 and 8 bytes, in C or Fortran order, of either byte order. The header is
// data from outside: all that it claims is checked against the file's size
// before anything is allocated.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DRIVER_NPY_H
#define FOVEA_DRIVER_NPY_H

#include "fovea/Driver/Tensor.h"
#include "llvm/Support/Error.h"

namespace fovea {

/// Parses the contents of an .npy file. Unsigned integers become signless ones
/// of the same size. bf16 does not exist in the format: where `bf16Bits` is
/// given, elements of two opaque or unsigned bytes are taken as bf16.
llvm::Expected<Tensor> parseNpy(llvm::StringRef contents, bool bf16Bits);

/// Reads a file; errors name it.
llvm::Expected<Tensor> readNpy(llvm::StringRef path, bool bf16Bits);

/// Writes a file in one step: it appears whole or not at all. bf16 is written
/// as its bits, in u16.
llvm::Error writeNpy(llvm::StringRef path, const Tensor &tensor);

} // namespace fovea

#endif // FOVEA_DRIVER_NPY_H
