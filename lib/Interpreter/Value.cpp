//===- Value.cpp - Values of the interpreter ------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Value.h"

#include "fovea/Dialect/Tile/IR/Tile.h"
#include "fovea/Runtime/SmallFloats.h"

#include "llvm/Support/MathExtras.h"

#include <cstring>
#include <numeric>

using namespace mlir;
using namespace fovea;
using namespace fovea::interpreter;

//===----------------------------------------------------------------------===//
// Format
//===----------------------------------------------------------------------===//

Format Format::get(Type type) {
  if (auto shaped = dyn_cast<ShapedType>(type))
    type = shaped.getElementType();
  else if (auto fragment = dyn_cast<tile::FragmentType>(type))
    type = fragment.getElementType();
  else if (auto shared = dyn_cast<tile::SharedType>(type))
    type = shared.getElementType();
  if (type.isF16())
    return {F16, 16};
  if (type.isBF16())
    return {BF16, 16};
  if (type.isF32())
    return {F32, 32};
  if (type.isF64())
    return {F64, 64};
  if (type.isIndex())
    return {Integer, 64};
  if (type.isSignlessInteger() && type.getIntOrFloatBitWidth() <= 64)
    return {Integer, type.getIntOrFloatBitWidth()};
  return {};
}

double Format::round(double value) const {
  switch (kind) {
  case F16:
    return halfToDouble(doubleToHalf(value));
  case BF16:
    return bfloatToDouble(doubleToBfloat(value));
  case F32:
    return static_cast<float>(value);
  default:
    return value;
  }
}

int64_t Format::wrap(int64_t value) const {
  return llvm::SignExtend64(value, width);
}

uint64_t Format::getUnsigned(int64_t value) const {
  return value & llvm::maskTrailingOnes<uint64_t>(width);
}

Scalar Format::read(const char *data) const {
  uint64_t bits = 0;
  std::memcpy(&bits, data, getBytes());
  switch (kind) {
  case F16:
    return {.f = halfToDouble(bits)};
  case BF16:
    return {.f = bfloatToDouble(bits)};
  case F32:
    return {.f = std::bit_cast<float>(static_cast<uint32_t>(bits))};
  case F64:
    return {.f = std::bit_cast<double>(bits)};
  default:
    return {.i = wrap(bits)};
  }
}

void Format::write(char *data, Scalar value) const {
  uint64_t bits;
  switch (kind) {
  case F16:
    bits = doubleToHalf(value.f);
    break;
  case BF16:
    bits = doubleToBfloat(value.f);
    break;
  case F32:
    bits = std::bit_cast<uint32_t>(static_cast<float>(value.f));
    break;
  case F64:
    bits = std::bit_cast<uint64_t>(value.f);
    break;
  default:
    bits = getUnsigned(value.i);
  }
  std::memcpy(data, &bits, getBytes());
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// The alignment that GPU allocators provide.
static constexpr int64_t kAlignment = 256;

Storage::Storage(int64_t size)
    : bytes(size + kAlignment, static_cast<char>(0xff)), numBytes(size) {
  auto address = reinterpret_cast<uintptr_t>(bytes.data());
  start = llvm::alignTo(address, kAlignment) - address;
}

int64_t MemRef::getIndex(ArrayRef<int64_t> indices) const {
  return std::inner_product(indices.begin(), indices.end(), strides.begin(),
                            offset);
}

int64_t MemRef::getNumElements() const {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t(1),
                         std::multiplies<>());
}

std::shared_ptr<MemRef> interpreter::allocate(Format format,
                                              ArrayRef<int64_t> sizes) {
  auto memref = std::make_shared<MemRef>();
  memref->format = format;
  memref->sizes.assign(sizes.begin(), sizes.end());
  memref->strides.resize(sizes.size());
  int64_t stride = 1;
  for (int64_t dim = sizes.size() - 1; dim >= 0; --dim) {
    memref->strides[dim] = stride;
    stride *= sizes[dim];
  }
  memref->storage = std::make_shared<Storage>(stride * format.getBytes());
  return memref;
}

bool interpreter::forEachIndex(
    ArrayRef<int64_t> sizes,
    llvm::function_ref<bool(ArrayRef<int64_t>)> visit) {
  if (llvm::is_contained(sizes, 0))
    return true;
  SmallVector<int64_t> index(sizes.size(), 0);
  while (true) {
    if (!visit(index))
      return false;
    int64_t dim = sizes.size() - 1;
    while (dim >= 0 && ++index[dim] == sizes[dim])
      index[dim--] = 0;
    if (dim < 0)
      return true;
  }
}

Fragment::Fragment(ArrayRef<int64_t> shape, Format format)
    : shape(shape), format(format) {
  elements.resize(std::accumulate(shape.begin(), shape.end(), int64_t(1),
                                  std::multiplies<>()));
}
