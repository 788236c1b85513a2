//===- Control.cpp - Control flow of the interpreter ----------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Machine.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::interpreter;

/// Copies the operands of an op from `first` on.
static SmallVector<Datum, 4> getOperands(Fiber &fiber, const Instruction &op,
                                         size_t first = 0) {
  SmallVector<Datum, 4> copies;
  for (size_t index = first; index < op.operands.size(); ++index)
    copies.push_back(fiber.operand(op, index));
  return copies;
}

static void setResults(Fiber &fiber, const Instruction &op,
                       ArrayRef<Datum> copies) {
  for (auto [index, copy] : llvm::enumerate(copies))
    fiber.result(op, index) = copy;
}

static void setArguments(Fiber &fiber, const Code *code, ArrayRef<Datum> copies,
                         size_t first = 0) {
  for (auto [index, copy] : llvm::enumerate(copies))
    fiber.values[code->arguments[first + index]] = copy;
}

//===----------------------------------------------------------------------===//
// func, cf
//===----------------------------------------------------------------------===//

/// The terminator of a function: hands over its operands.
static Status leave(Fiber &fiber, const Instruction &op) {
  SmallVector<Datum, 4> operands = getOperands(fiber, op);
  fiber.yielded.assign(operands.begin(), operands.end());
  fiber.stack.pop_back();
  return Status::Next;
}

static Status call(Fiber &fiber, const Instruction &op) {
  auto callOp = cast<func::CallOp>(op.op);
  auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
      callOp, callOp.getCalleeAttr());
  FailureOr<std::vector<Datum>> results = fiber.machine.call(
      callee, getOperands(fiber, op), fiber.block, fiber.role);
  if (failed(results))
    return Status::Failed;
  setResults(fiber, op, *results);
  return Status::Next;
}

static Status assertTrue(Fiber &fiber, const Instruction &op) {
  if (fiber.getInt(op, 0))
    return Status::Next;
  fiber.emitError(op.op) << "fails: " << cast<cf::AssertOp>(op.op).getMsg();
  return Status::Failed;
}

//===----------------------------------------------------------------------===//
// scf
//===----------------------------------------------------------------------===//

static Status forLoop(Fiber &fiber, const Instruction &op) {
  int64_t low = fiber.getInt(op, 0), high = fiber.getInt(op, 1);
  if (fiber.getInt(op, 2) < 1) {
    fiber.emitError(op.op) << "has a step of " << fiber.getInt(op, 2);
    return Status::Failed;
  }
  SmallVector<Datum, 4> carried = getOperands(fiber, op, 3);
  if (low >= high) {
    setResults(fiber, op, carried);
    return Status::Next;
  }
  const Code *body = op.regions[0];
  fiber.values[body->arguments[0]].scalar.i = low;
  setArguments(fiber, body, carried, 1);
  fiber.push(body, &op);
  fiber.stack.back().induction = low;
  return Status::Next;
}

static Status ifElse(Fiber &fiber, const Instruction &op) {
  if (const Code *body = op.regions[fiber.getInt(op, 0) ? 0 : 1])
    fiber.push(body, &op);
  return Status::Next;
}

static Status whileLoop(Fiber &fiber, const Instruction &op) {
  setArguments(fiber, op.regions[0], getOperands(fiber, op));
  fiber.push(op.regions[0], &op);
  return Status::Next;
}

static Status condition(Fiber &fiber, const Instruction &op) {
  SmallVector<Datum, 4> carried = getOperands(fiber, op, 1);
  Frame &frame = fiber.stack.back();
  const Instruction &loop = *frame.owner;
  if (fiber.getInt(op, 0)) {
    frame.code = loop.regions[1];
    frame.next = 0;
    setArguments(fiber, frame.code, carried);
    return Status::Next;
  }
  setResults(fiber, loop, carried);
  fiber.stack.pop_back();
  return Status::Next;
}

/// The end of a body of `for`, `while`, `if` or `execute_region`.
static Status yield(Fiber &fiber, const Instruction &op) {
  SmallVector<Datum, 4> carried = getOperands(fiber, op);
  Frame &frame = fiber.stack.back();
  const Instruction &owner = *frame.owner;
  if (isa<scf::ForOp>(owner.op)) {
    int64_t next;
    bool overflows =
        llvm::AddOverflow(frame.induction, fiber.getInt(owner, 2), next);
    if (!overflows && next < fiber.getInt(owner, 1)) {
      frame.induction = next;
      frame.next = 0;
      fiber.values[frame.code->arguments[0]].scalar.i = next;
      setArguments(fiber, frame.code, carried, 1);
      return Status::Next;
    }
  } else if (isa<scf::WhileOp>(owner.op)) {
    frame.code = owner.regions[0];
    frame.next = 0;
    setArguments(fiber, frame.code, carried);
    return Status::Next;
  }
  setResults(fiber, owner, carried);
  fiber.stack.pop_back();
  return Status::Next;
}

static Status executeRegion(Fiber &fiber, const Instruction &op) {
  fiber.push(op.regions[0], &op);
  return Status::Next;
}

/// Runs the body for every index of a box, one after another.
static Status forEach(Fiber &fiber, const Instruction &op,
                      ArrayRef<int64_t> lows, ArrayRef<int64_t> highs,
                      ArrayRef<int64_t> steps) {
  SmallVector<int64_t> counts;
  for (auto [low, high, step] : llvm::zip_equal(lows, highs, steps)) {
    if (step < 1) {
      fiber.emitError(op.op) << "has a step of " << step;
      return Status::Failed;
    }
    counts.push_back(
        std::max<int64_t>(0, llvm::divideCeilSigned(high - low, step)));
  }
  const Code *body = op.regions[0];
  Status status = Status::Next;
  forEachIndex(counts, [&](ArrayRef<int64_t> index) {
    for (auto [dim, i] : llvm::enumerate(index))
      fiber.values[body->arguments[dim]].scalar.i = lows[dim] + i * steps[dim];
    status = fiber.runBlock(body, &op);
    return status == Status::Next;
  });
  return status;
}

static Status forall(Fiber &fiber, const Instruction &op) {
  auto loop = cast<scf::ForallOp>(op.op);
  if (loop->getNumResults()) {
    fiber.emitError(op.op) << "has tensors; expected memrefs";
    return Status::Failed;
  }
  size_t next = 0;
  auto resolve = [&](ArrayRef<int64_t> statics) {
    SmallVector<int64_t> values;
    for (int64_t value : statics)
      values.push_back(ShapedType::isDynamic(value) ? fiber.getInt(op, next++)
                                                    : value);
    return values;
  };
  SmallVector<int64_t> lows = resolve(loop.getStaticLowerBound());
  SmallVector<int64_t> highs = resolve(loop.getStaticUpperBound());
  return forEach(fiber, op, lows, highs, resolve(loop.getStaticStep()));
}

static Status parallel(Fiber &fiber, const Instruction &op) {
  auto loop = cast<scf::ParallelOp>(op.op);
  if (loop->getNumResults()) {
    fiber.emitError(op.op) << "reduces, which the interpreter does not know";
    return Status::Failed;
  }
  size_t rank = loop.getNumLoops();
  auto take = [&](size_t first) {
    SmallVector<int64_t> values;
    for (size_t index = 0; index < rank; ++index)
      values.push_back(fiber.getInt(op, first + index));
    return values;
  };
  return forEach(fiber, op, take(0), take(rank), take(2 * rank));
}

static Status endIteration(Fiber &fiber, const Instruction &op) {
  fiber.stack.pop_back();
  return Status::Next;
}

void interpreter::addControlHandlers(llvm::StringMap<Handler> &handlers) {
  handlers["func.return"] = leave;
  handlers["func.call"] = call;
  handlers["cf.assert"] = assertTrue;
  handlers["scf.for"] = forLoop;
  handlers["scf.if"] = ifElse;
  handlers["scf.while"] = whileLoop;
  handlers["scf.condition"] = condition;
  handlers["scf.yield"] = yield;
  handlers["scf.execute_region"] = executeRegion;
  handlers["scf.forall"] = forall;
  handlers["scf.forall.in_parallel"] = endIteration;
  handlers["scf.parallel"] = parallel;
  handlers["scf.reduce"] = endIteration;
}
