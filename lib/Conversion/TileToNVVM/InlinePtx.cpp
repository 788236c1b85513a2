//===- InlinePtx.cpp - Blocks of inline PTX -------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "InlinePtx.h"

#include "Patterns.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

static char getConstraint(Type type) {
  if (type.isF32())
    return 'f';
  return type.isInteger(32) ? 'r' : 'l';
}

SmallVector<Value> fovea::tile::emitPtx(OpBuilder &builder, Location loc,
                                        const Twine &text, ValueRange inputs,
                                        TypeRange outputs, ValueRange tied) {
  SmallVector<Type> written(tied.getTypes());
  llvm::append_range(written, outputs);
  SmallVector<Value> operands(tied);
  llvm::append_range(operands, inputs);

  SmallVector<std::string> constraints;
  for (Type type : written)
    constraints.push_back(std::string("=") + getConstraint(type));
  for (size_t index = 0; index < tied.size(); ++index)
    constraints.push_back(std::to_string(index));
  for (Value input : inputs)
    constraints.push_back(std::string(1, getConstraint(input.getType())));
  return emitAsm(builder, loc, written, text.str(),
                 llvm::join(constraints, ","), operands);
}
