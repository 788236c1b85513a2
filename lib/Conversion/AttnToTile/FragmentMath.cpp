//===- FragmentMath.cpp - Arithmetic on fragments -------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FragmentMath.h"

#include "fovea/Analysis/IndexMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::tile;

Value FragmentMath::map(FragmentType type, ValueRange ins, ValueRange rows,
                        ValueRange columns, Body body) {
  auto op = MapOp::create(builder, loc, type, ins, rows, columns);
  OpBuilder::InsertionGuard guard(builder);
  Block *block = builder.createBlock(&op.getBody());
  for (Value operand : op->getOperands())
    block->addArgument(cast<FragmentType>(operand.getType()).getElementType(),
                       loc);
  size_t elements = block->getNumArguments();
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    block->addArgument(builder.getIndexType(), loc);
  ValueRange arguments = block->getArguments();
  YieldOp::create(builder, loc,
                  body(builder, arguments.take_front(elements),
                       arguments.drop_front(elements)));
  return op.getResult();
}

Value FragmentMath::choose(OpFoldResult condition, FragmentType type,
                           Emitter then, Emitter otherwise) {
  if (IndexMath::isFalse(condition))
    return otherwise();
  if (IndexMath::isTrue(condition))
    return then();
  IndexMath index(builder, loc);
  auto branch =
      scf::IfOp::create(builder, loc, TypeRange(type),
                        index.materialize(condition, /*isBoolean=*/true),
                        /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  for (auto [block, emit] : {std::pair(branch.elseBlock(), otherwise),
                             std::pair(branch.thenBlock(), then)}) {
    builder.setInsertionPointToStart(block);
    Value result = emit();
    scf::YieldOp::create(builder, loc, result);
  }
  return branch.getResult(0);
}

Value FragmentMath::any(FragmentType type, ValueRange ins, Body body) {
  Type isTrue = builder.getI1Type();
  Value tests = map(type.cloneWith(isTrue), ins, {}, body);
  return AnyOp::create(builder, loc, isTrue, tests);
}

Value FragmentMath::fill(FragmentType type, double value) {
  Value scalar = arith::ConstantOp::create(
      builder, loc, builder.getFloatAttr(type.getElementType(), value));
  return FillOp::create(builder, loc, type, scalar);
}

Value FragmentMath::reduce(Reduction kind, Value input, Value init) {
  return ReduceOp::create(builder, loc, init.getType(), kind, input, init,
                          /*dim=*/1);
}
