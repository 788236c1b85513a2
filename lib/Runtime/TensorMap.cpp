//===- TensorMap.cpp - TMA descriptors ------------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorMap.h"
#include "CudaContext.h"
#include "fovea/Runtime/GpuRuntime.h"

#include "llvm/ADT/Twine.h"

#include <cstring>

using namespace fovea::cuda;

namespace {

constexpr int64_t kMaxRank = 5;
constexpr int64_t kMaxSize = int64_t(1) << 32;
constexpr int64_t kMaxStride = int64_t(1) << 40;
constexpr int64_t kMaxBox = 256;

/// A descriptor's arguments, one word each, zeros after the last one.
struct Key {
  static constexpr int kWords = 4 + 3 * kMaxRank;
  int64_t words[kWords] = {};

  bool operator==(const Key &other) const {
    return !std::memcmp(words, other.words, sizeof(words));
  }
};

/// The descriptors that this thread made last, each in any place: those of one
/// launch must not push each other out.
struct Memo {
  static constexpr size_t kEntries = 32;
  struct Entry {
    Key key;
    CUtensorMap map;
  };
  /// The first word of each key, zero where there is no entry.
  int64_t bases[kEntries] = {};
  Entry entries[kEntries];
  size_t next = 0;
};

struct ElementType {
  int type;
  int64_t bytes;
};

} // namespace

static ElementType getElementType(int64_t kind) {
  switch (ElementKind(kind)) {
  case ElementKind::F16:
    return {CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2};
  case ElementKind::BF16:
    return {CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2};
  case ElementKind::F32:
    return {CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4};
  case ElementKind::F64:
    return {CU_TENSOR_MAP_DATA_TYPE_FLOAT64, 8};
  case ElementKind::Bool:
  case ElementKind::I8:
    return {CU_TENSOR_MAP_DATA_TYPE_UINT8, 1};
  case ElementKind::I16:
    return {CU_TENSOR_MAP_DATA_TYPE_UINT16, 2};
  case ElementKind::I32:
    return {CU_TENSOR_MAP_DATA_TYPE_INT32, 4};
  case ElementKind::I64:
    return {CU_TENSOR_MAP_DATA_TYPE_INT64, 8};
  }
  return {0, 0};
}

static llvm::Error reject(const llvm::Twine &message) {
  return makeInvalid("tensor map: " + message);
}

/// Returns an error for arguments that violate T2 to T6.
static llvm::Error validate(const TensorMapShape &shape, int64_t elementBytes,
                            bool empty) {
  if (reinterpret_cast<uintptr_t>(shape.base) % 16)
    return reject(
        "the address 0x" +
        llvm::Twine::utohexstr(reinterpret_cast<uintptr_t>(shape.base)) +
        " is not a multiple of 16");
  for (int64_t i = 0; i < shape.rank; ++i) {
    if (shape.sizes[i] < 0 || shape.sizes[i] > kMaxSize)
      return reject("dimension " + llvm::Twine(i) + ": the size " +
                    llvm::Twine(shape.sizes[i]) + " is not one of 0 to 2^32");
    if (i > 0 && shape.sizes[i] > 1 && !empty) {
      int64_t stride = shape.byteStrides[i - 1];
      if (stride < 0 || stride >= kMaxStride || stride % 16)
        return reject("dimension " + llvm::Twine(i) + ": the stride of " +
                      llvm::Twine(stride) +
                      " bytes is not a multiple of 16 below 2^40");
    }
    if (shape.box[i] < 1 || shape.box[i] > kMaxBox)
      return reject("dimension " + llvm::Twine(i) + ": the box size " +
                    llvm::Twine(shape.box[i]) + " is not one of 1 to 256");
  }
  int64_t inner = shape.box[0] * elementBytes;
  if (inner % 16)
    return reject("the box's rows of " + llvm::Twine(inner) +
                  " bytes are not a multiple of 16");
  if (shape.swizzleBytes && inner > shape.swizzleBytes)
    return reject("the box's rows of " + llvm::Twine(inner) +
                  " bytes are longer than the swizzle of " +
                  llvm::Twine(shape.swizzleBytes) + " bytes");
  return llvm::Error::success();
}

/// Makes a descriptor. An empty one does not exist: one element of memory
/// without data stands for it.
static llvm::Error encode(const Device &device, const TensorMapShape &shape,
                          bool empty, CUtensorMap &map) {
  ElementType element = getElementType(shape.elementKind);
  if (!element.bytes)
    return reject("no element kind " + llvm::Twine(shape.elementKind));
  if (llvm::Error error = validate(shape, element.bytes, empty))
    return error;
  int swizzle;
  switch (shape.swizzleBytes) {
  case 0:
    swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
    break;
  case 32:
    swizzle = CU_TENSOR_MAP_SWIZZLE_32B;
    break;
  case 64:
    swizzle = CU_TENSOR_MAP_SWIZZLE_64B;
    break;
  case 128:
    swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
    break;
  default:
    return reject("the swizzle of " + llvm::Twine(shape.swizzleBytes) +
                  " bytes is not 0, 32, 64 or 128");
  }

  uint64_t sizes[kMaxRank], strides[kMaxRank];
  uint32_t box[kMaxRank], steps[kMaxRank];
  for (int64_t i = 0; i < shape.rank; ++i) {
    sizes[i] = empty ? 1 : shape.sizes[i];
    if (i > 0)
      strides[i - 1] = sizes[i] > 1 ? shape.byteStrides[i - 1] : 16;
    box[i] = uint32_t(shape.box[i]);
    steps[i] = 1;
  }
  const Api &api = device.getDriver().getApi();
  return check(api,
               api.cuTensorMapEncodeTiled(
                   &map, element.type, uint32_t(shape.rank), shape.base, sizes,
                   strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                   CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                   CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
               "cuTensorMapEncodeTiled");
}

llvm::Error fovea::cuda::encodeTensorMap(const Device &device, void *map,
                                         TensorMapShape shape) {
  if (shape.rank < 1 || shape.rank > kMaxRank)
    return reject("the rank " + llvm::Twine(shape.rank) +
                  " is not one of 1 to 5");
  // The address says nothing of it: that of a map with rows in front of its
  // tensor may be any.
  bool empty = llvm::is_contained(llvm::ArrayRef(shape.sizes, shape.rank), 0);
  if (empty)
    shape.base = device.getScratch();
  Key key;
  int64_t *word = key.words;
  *word++ = reinterpret_cast<intptr_t>(shape.base);
  *word++ = shape.elementKind;
  *word++ = shape.rank;
  *word++ = shape.swizzleBytes;
  word = std::copy_n(shape.sizes, shape.rank, word);
  word = std::copy_n(shape.byteStrides, shape.rank - 1, word);
  std::copy_n(shape.box, shape.rank, word);

  static thread_local Memo memo;
  for (size_t i = 0; i < Memo::kEntries; ++i) {
    if (memo.bases[i] != key.words[0] || !(memo.entries[i].key == key))
      continue;
    std::memcpy(map, &memo.entries[i].map, sizeof(CUtensorMap));
    return llvm::Error::success();
  }
  size_t place = memo.next++ % Memo::kEntries;
  Memo::Entry &entry = memo.entries[place];
  memo.bases[place] = 0;
  if (llvm::Error error = encode(device, shape, empty, entry.map))
    return error;
  entry.key = key;
  memo.bases[place] = key.words[0];
  std::memcpy(map, &entry.map, sizeof(CUtensorMap));
  return llvm::Error::success();
}
