//===- OtherSizes.cpp - Calls that other code of a text serves ------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OtherSizes.h"

#include "fovea/Driver/Program.h"

using namespace fovea;

/// Returns a size of an operand; -1 for wrong operands.
using GetSize = llvm::function_ref<int64_t(SizePlace)>;

/// Returns true if `calls`, of few rows or of few tiles, have one of such
/// sizes.
template <typename CallsTy>
static bool areFew(const CallsTy &calls, GetSize getSize) {
  if (!calls.mostTiles)
    return false;
  std::optional<int64_t> keys;
  if (calls.keys)
    keys = getSize(*calls.keys);
  return calls.contain(calls.batch ? getSize(*calls.batch) : 1,
                       getSize(calls.queries), keys);
}

static bool areShort(const ShortLengths &lengths, GetSize getSize) {
  int64_t length = 0;
  for (SizePlace place : lengths.places) {
    int64_t size = getSize(place);
    if (size < 0)
      return false;
    length = std::max(length, size);
  }
  if (lengths.sequences)
    length = llvm::divideCeil(
        length, std::max<int64_t>(getSize(*lengths.sequences), 1));
  return lengths.contain(length);
}

bool OtherSizes::isNeeded(size_t code) const {
  if (code == kShort)
    return shortLengths.steps != 0;
  return code < kTiles ? fewRows[code].mostTiles != 0
                       : fewTiles[code - kTiles].mostTiles != 0;
}

std::optional<size_t> OtherSizes::choose(
    size_t numOperands,
    llvm::function_ref<llvm::ArrayRef<int64_t>(size_t)> getShape) const {
  auto getSize = [&](SizePlace place) -> int64_t {
    if (place.operand >= numOperands)
      return -1;
    llvm::ArrayRef<int64_t> shape = getShape(place.operand);
    return place.dim < shape.size() ? shape[place.dim] + place.more : -1;
  };
  for (auto [code, rows] : llvm::enumerate(fewRows))
    if (areFew(rows, getSize))
      return code;
  for (auto [code, tiles] : llvm::enumerate(fewTiles))
    if (areFew(tiles, getSize))
      return kTiles + code;
  if (areShort(shortLengths, getSize))
    return kShort;
  return std::nullopt;
}

CompileOptions OtherSizes::getOptions(size_t code,
                                      const CompileOptions &usual) {
  CompileOptions options = usual;
  options.callShapes.clear();
  if (code == kShort)
    options.typicalLength = kShortLength;
  else if (code < kTiles)
    options.typicalRows = FewRows::kTypical[code];
  else
    options.tileRows = FewTiles::kRows[code - kTiles];
  return options;
}
