//===- Inputs.h - Sizes and random data for a function's operands *- C++
//-*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DRIVER_INPUTS_H
#define FOVEA_DRIVER_INPUTS_H

#include "fovea/Driver/Program.h"

namespace fovea {

/// Returns the shapes of a function's operands, where requests give dynamic
/// sizes: `N` sets every dynamic size that no other request sets, and
/// `OPERAND:AxBxC` all sizes of one operand, by number or by name. A size of a
/// request may be `?` or `_` where the type already gives it. Sizes of operands
/// from number `leading` on that no request gives follow from the others, by
/// `infer`.
using InferShapes = llvm::function_ref<
    llvm::SmallVector<std::optional<llvm::SmallVector<int64_t>>>(
        llvm::ArrayRef<llvm::SmallVector<int64_t, 4>>)>;
llvm::Expected<llvm::SmallVector<llvm::SmallVector<int64_t, 4>>>
resolveShapes(const Signature &function, llvm::ArrayRef<std::string> requests,
              size_t leading = SIZE_MAX, InferShapes infer = {});

/// Integers in [low, high].
struct IntegerRange {
  int64_t low = 0;
  int64_t high = 7;
};

/// A tensor of random elements: numbers from the standard normal distribution,
/// rounded to the type; integers from `range`; booleans. The same seed and
/// stream give the same elements on every machine.
llvm::Expected<Tensor> makeRandom(DType type, llvm::ArrayRef<int64_t> shape,
                                  uint64_t seed, uint64_t stream,
                                  IntegerRange range);

/// Parses a number given as text.
llvm::Expected<Tensor> parseNumber(DType type, llvm::StringRef text);

} // namespace fovea

#endif // FOVEA_DRIVER_INPUTS_H
