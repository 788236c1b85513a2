//===- Tensor.cpp - Tensors in host memory --------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Driver/Tensor.h"
#include "fovea/Runtime/SmallFloats.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <cstring>

using namespace fovea;

int64_t fovea::getSize(DType type) {
  switch (type) {
  case DType::Bool:
  case DType::I8:
    return 1;
  case DType::F16:
  case DType::BF16:
  case DType::I16:
    return 2;
  case DType::F32:
  case DType::I32:
    return 4;
  case DType::F64:
  case DType::I64:
    return 8;
  }
  llvm_unreachable("unknown type");
}

llvm::StringRef fovea::getName(DType type) {
  switch (type) {
  case DType::F16:
    return "f16";
  case DType::BF16:
    return "bf16";
  case DType::F32:
    return "f32";
  case DType::F64:
    return "f64";
  case DType::Bool:
    return "i1";
  case DType::I8:
    return "i8";
  case DType::I16:
    return "i16";
  case DType::I32:
    return "i32";
  case DType::I64:
    return "i64";
  }
  llvm_unreachable("unknown type");
}

bool fovea::isFloat(DType type) {
  return type == DType::F16 || type == DType::BF16 || type == DType::F32 ||
         type == DType::F64;
}

std::optional<DType> fovea::getDType(mlir::Type type) {
  if (auto tensor = mlir::dyn_cast<mlir::RankedTensorType>(type)) {
    if (tensor.getEncoding())
      return std::nullopt;
    type = tensor.getElementType();
  }
  if (type.isF16())
    return DType::F16;
  if (type.isBF16())
    return DType::BF16;
  if (type.isF32())
    return DType::F32;
  if (type.isF64())
    return DType::F64;
  if (type.isIndex() || type.isSignlessInteger(64))
    return DType::I64;
  if (type.isSignlessInteger(32))
    return DType::I32;
  if (type.isSignlessInteger(16))
    return DType::I16;
  if (type.isSignlessInteger(8))
    return DType::I8;
  if (type.isSignlessInteger(1))
    return DType::Bool;
  return std::nullopt;
}

std::string fovea::formatShape(llvm::ArrayRef<int64_t> shape) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::interleave(
      shape, stream,
      [&](int64_t size) {
        if (size < 0)
          stream << '?';
        else
          stream << size;
      },
      "x");
  return text;
}

std::optional<int64_t> fovea::countElements(llvm::ArrayRef<int64_t> shape,
                                            DType type) {
  // A size of zero does not excuse the others: strides are products of sizes.
  int64_t bytes = getSize(type), elements = 1;
  for (int64_t size : shape) {
    if (llvm::MulOverflow(bytes, std::max<int64_t>(size, 1), bytes))
      return std::nullopt;
    elements *= size;
  }
  return elements;
}

template <typename Element>
static Element load(const void *data, int64_t index) {
  Element element;
  std::memcpy(&element, static_cast<const Element *>(data) + index,
              sizeof(Element));
  return element;
}

template <typename Element>
static void store(void *data, int64_t index, Element element) {
  std::memcpy(static_cast<Element *>(data) + index, &element, sizeof(Element));
}

double fovea::readElement(const void *data, DType type, int64_t index) {
  switch (type) {
  case DType::F16:
    return halfToDouble(load<uint16_t>(data, index));
  case DType::BF16:
    return bfloatToDouble(load<uint16_t>(data, index));
  case DType::F32:
    return load<float>(data, index);
  case DType::F64:
    return load<double>(data, index);
  case DType::Bool:
  case DType::I8:
    return load<int8_t>(data, index);
  case DType::I16:
    return load<int16_t>(data, index);
  case DType::I32:
    return load<int32_t>(data, index);
  case DType::I64:
    return static_cast<double>(load<int64_t>(data, index));
  }
  llvm_unreachable("unknown type");
}

void fovea::writeElement(void *data, DType type, int64_t index, double value) {
  switch (type) {
  case DType::F16:
    return store(data, index, doubleToHalf(value));
  case DType::BF16:
    return store(data, index, doubleToBfloat(value));
  case DType::F32:
    return store(data, index, static_cast<float>(value));
  case DType::F64:
    return store(data, index, value);
  case DType::Bool:
    return store<int8_t>(data, index, value != 0);
  case DType::I8:
    return store(data, index, static_cast<int8_t>(value));
  case DType::I16:
    return store(data, index, static_cast<int16_t>(value));
  case DType::I32:
    return store(data, index, static_cast<int32_t>(value));
  case DType::I64:
    return store(data, index, static_cast<int64_t>(value));
  }
  llvm_unreachable("unknown type");
}

Tensor::Tensor(DType type, llvm::ArrayRef<int64_t> shape, int64_t elements)
    : Tensor(type, shape, nullptr, nullptr, std::free) {
  // 64-byte alignment suits any vector load; the size must be a multiple of it.
  size_t bytes = std::max<int64_t>(elements * getSize(type), 1);
  data = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  buffer.reset(data);
}

Tensor::Tensor(DType type, llvm::ArrayRef<int64_t> shape, void *data,
               void *buffer, void (*release)(void *))
    : type(type), shape(shape), strides(shape.size()), data(data),
      buffer(buffer, release) {
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape[i];
  }
}

int64_t Tensor::getNumElements() const {
  int64_t elements = 1;
  for (int64_t size : shape)
    elements *= size;
  return elements;
}
