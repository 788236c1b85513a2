//===- Tensor.h - Tensors in host memory ------------------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DRIVER_TENSOR_H
#define FOVEA_DRIVER_TENSOR_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

namespace mlir {
class Type;
} // namespace mlir

namespace fovea {

/// The element types that cross the boundary of compiled code. `Bool` is one
/// byte, 0 or 1; integers are signless, as in MLIR; an `index` is an `I64`.
enum class DType { F16, BF16, F32, F64, Bool, I8, I16, I32, I64 };

/// Returns the bytes of one element.
int64_t getSize(DType type);

/// Returns the name as MLIR writes it: `f32`, `i1`, ...
llvm::StringRef getName(DType type);

bool isFloat(DType type);

/// Returns the element type of a tensor or scalar, or none if it cannot cross.
std::optional<DType> getDType(mlir::Type type);

/// Formats `2x16x?x64`, with `?` for a negative size; empty for rank 0.
std::string formatShape(llvm::ArrayRef<int64_t> shape);

/// Returns the number of elements, or none if the bytes of that many elements
/// of `type` do not fit a signed 64-bit number. Sizes must not be negative.
std::optional<int64_t> countElements(llvm::ArrayRef<int64_t> shape, DType type);

/// Returns the element at an index, widened.
double readElement(const void *data, DType type, int64_t index);

/// Stores a value, rounded to the type.
void writeElement(void *data, DType type, int64_t index, double value);

/// A tensor that somebody else owns. Strides count elements.
struct TensorView {
  DType type;
  void *data;
  llvm::ArrayRef<int64_t> shape;
  llvm::ArrayRef<int64_t> strides;
};

/// A tensor that owns its elements, in row-major order.
class Tensor {
public:
  Tensor() = default;

  /// Elements are not initialised; `data` is null if memory is short.
  Tensor(DType type, llvm::ArrayRef<int64_t> shape, int64_t elements);

  /// Takes memory over; `buffer` is freed by `release`.
  Tensor(DType type, llvm::ArrayRef<int64_t> shape, void *data, void *buffer,
         void (*release)(void *));

  DType getType() const { return type; }
  llvm::ArrayRef<int64_t> getShape() const { return shape; }
  int64_t getNumElements() const;
  int64_t getNumBytes() const { return getNumElements() * getSize(type); }
  void *getData() const { return data; }
  TensorView getView() const { return {type, data, shape, strides}; }
  double read(int64_t index) const { return readElement(data, type, index); }

private:
  DType type = DType::F32;
  llvm::SmallVector<int64_t, 4> shape;
  llvm::SmallVector<int64_t, 4> strides;
  void *data = nullptr;
  std::unique_ptr<void, void (*)(void *)> buffer{nullptr, std::free};
};

} // namespace fovea

#endif // FOVEA_DRIVER_TENSOR_H
