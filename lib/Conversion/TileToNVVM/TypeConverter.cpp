//===- TypeConverter.cpp - Types of the tile dialect in a kernel ----------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace fovea::tile;

static std::optional<LogicalResult>
convertFragment(FragmentType type, SmallVectorImpl<Type> &results) {
  if (!type.getLayout())
    return failure();
  results.append(type.getLayout().getNumRegisters(), type.getElementType());
  return success();
}

TileTypeConverter::TileTypeConverter() {
  addConversion([](Type type) { return type; });
  addConversion(convertFragment);
  addConversion([](TokenType type, SmallVectorImpl<Type> &results) {
    return convertFragment(type.getFragment(), results);
  });
  addConversion(
      [](SharedType type) { return IntegerType::get(type.getContext(), 32); });
  addConversion([](RingType type, SmallVectorImpl<Type> &results) {
    results.append(2, IntegerType::get(type.getContext(), 32));
    return std::optional<LogicalResult>(success());
  });
  addConversion([](TensorMapType type) {
    return LLVM::LLVMPointerType::get(type.getContext());
  });
}
