//===- Machine.cpp - Execution of functions step by step ------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Machine.h"

#include "ThreadBlock.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::interpreter;

static Status handleUnknown(Fiber &fiber, const Instruction &instruction) {
  fiber.emitError(instruction.op) << "is not known to the interpreter";
  return Status::Failed;
}

Machine::Machine(const SimulationOptions &options) : options(options) {
  addScalarHandlers(handlers);
  addMathHandlers(handlers);
  addControlHandlers(handlers);
  addMemoryHandlers(handlers);
  addTileHandlers(handlers);
  addProductHandlers(handlers);
  addRingHandlers(handlers);
}

/// Returns true if an op computes numbers from numbers.
static bool isComputation(Operation *op) {
  StringRef dialect = op->getName().getDialectNamespace();
  return dialect == "arith" || dialect == "math" || dialect == "affine";
}

/// Returns the number of operands of an op, from the first on, that must have a
/// value.
static unsigned countUsed(Operation *op) {
  if (isComputation(op) ||
      isa<scf::YieldOp, scf::WhileOp, func::ReturnOp, func::CallOp>(op) ||
      (isa<tile::YieldOp>(op) && isa<tile::MapOp>(op->getParentOp())))
    return 0;
  if (isa<scf::ConditionOp>(op))
    return 1;
  // The operands are bounds and step.
  return isa<scf::ForOp>(op) ? 3 : op->getNumOperands();
}

const Code *Machine::translate(Region &region,
                               DenseMap<mlir::Value, unsigned> &numbers) {
  if (region.empty())
    return nullptr;
  if (!region.hasOneBlock()) {
    region.getParentOp()->emitOpError(
        "has branches, which the interpreter does not know; expected "
        "structured control flow");
    return nullptr;
  }
  auto number = [&](mlir::Value value) {
    return numbers.try_emplace(value, numbers.size()).first->second;
  };
  auto *code = codes.emplace_back(std::make_unique<Code>()).get();
  for (BlockArgument argument : region.getArguments())
    code->arguments.push_back(number(argument));
  for (Operation &op : region.front()) {
    Instruction instruction;
    instruction.op = &op;
    Handler handler = handlers.lookup(op.getName().getStringRef());
    instruction.handler = handler ? handler : handleUnknown;
    for (mlir::Value operand : op.getOperands())
      instruction.operands.push_back(number(operand));
    instruction.result = numbers.size();
    for (mlir::Value result : op.getResults())
      number(result);
    if (op.getNumResults())
      instruction.format = Format::get(op.getResult(0).getType());
    if (op.getNumOperands())
      instruction.input = Format::get(op.getOperand(0).getType());
    instruction.computes = isComputation(&op);
    instruction.numUsed = countUsed(&op);
    instruction.detail = getDetail(&op);
    for (Region &nested : op.getRegions()) {
      const Code *body = translate(nested, numbers);
      if (!body && !nested.empty())
        return nullptr;
      instruction.regions.push_back(body);
    }
    code->instructions.push_back(std::move(instruction));
  }
  return code;
}

const Function *Machine::translate(func::FuncOp function) {
  auto [entry, isNew] = functions.try_emplace(function);
  if (isNew) {
    if (function.isExternal()) {
      function.emitOpError("has no body to run");
      return nullptr;
    }
    DenseMap<mlir::Value, unsigned> numbers;
    const Code *code = translate(function.getBody(), numbers);
    if (!code)
      return nullptr;
    entry->second = {code, static_cast<unsigned>(numbers.size())};
  }
  return &entry->second;
}

FailureOr<std::vector<Datum>> Machine::call(func::FuncOp function,
                                            ArrayRef<Datum> operands,
                                            ThreadBlock *block, Role *role) {
  const Function *body = translate(function);
  if (!body)
    return failure();
  Fiber fiber(*this, std::vector<Datum>(body->numValues), block, role);
  for (auto [argument, value] :
       llvm::zip_equal(body->entry->arguments, operands))
    fiber.values[argument] = value;
  if (fiber.runBlock(body->entry, nullptr) != Status::Next)
    return failure();
  return std::move(fiber.yielded);
}

Status Fiber::run(size_t depth, int64_t limit) {
  for (; stack.size() > depth && limit > 0; --limit) {
    Frame &frame = stack.back();
    const Instruction &instruction = frame.code->instructions[frame.next];
    ++frame.next;
    Status status = machine.poisons.empty()
                        ? instruction.handler(*this, instruction)
                        : stepWithPoison(instruction);
    if (status == Status::Next)
      continue;
    if (status == Status::Blocked)
      --stack.back().next;
    return status;
  }
  return Status::Next;
}

Status Fiber::runBlock(const Code *code, const Instruction *owner) {
  size_t depth = stack.size();
  push(code, owner);
  Status status = run(depth, std::numeric_limits<int64_t>::max());
  if (status != Status::Blocked)
    return status;
  const Frame &frame = stack.back();
  emitError(frame.code->instructions[frame.next].op)
      << "waits " << role->obstacle
      << "; expected no such wait in a function, a map or scf.forall";
  return Status::Failed;
}

Status Fiber::stepWithPoison(const Instruction &instruction) {
  bool isSelect = isa<arith::SelectOp>(instruction.op);
  const Poison *poison = nullptr;
  for (size_t index = 0; index < instruction.operands.size(); ++index) {
    const Poison *found = operand(instruction, index).poison;
    if (found && index < instruction.numUsed)
      return reportPoison(*found, instruction.op);
    // The value that a select does not choose does not matter.
    if (found && instruction.computes && (!isSelect || index == 0))
      poison = found;
  }
  for (size_t index = 0; index < instruction.op->getNumResults(); ++index)
    result(instruction, index).poison = poison;
  return poison ? Status::Next : instruction.handler(*this, instruction);
}

Status Fiber::setPoison(const Instruction &instruction, const Twine &reason) {
  auto [entry, isNew] = machine.poisons.try_emplace(instruction.op);
  if (isNew)
    entry->second = {instruction.op, reason.str()};
  result(instruction).poison = &entry->second;
  return Status::Next;
}

Status Fiber::reportPoison(const Poison &poison, Operation *user) const {
  emitError(poison.op).append(poison.reason).attachNote(user->getLoc())
      << "used here";
  return Status::Failed;
}

InFlightDiagnostic Fiber::emitError(Operation *op) const {
  InFlightDiagnostic diagnostic = op->emitOpError();
  if (block)
    block->describe(diagnostic.attachNote(block->getLaunch().getLoc()), role);
  return diagnostic;
}

//===----------------------------------------------------------------------===//
// Entry
//===----------------------------------------------------------------------===//

/// Copies a tensor of any strides.
static std::shared_ptr<MemRef> copyIn(Format format,
                                      const SimulationOperand &operand) {
  std::shared_ptr<MemRef> copy = allocate(format, operand.shape);
  int64_t bytes = format.getBytes();
  forEachIndex(operand.shape, [&](ArrayRef<int64_t> index) {
    int64_t source = 0;
    for (auto [i, stride] : llvm::zip_equal(index, operand.strides))
      source += i * stride;
    std::memcpy(copy->getElement(copy->getIndex(index)),
                static_cast<const char *>(operand.data) + source * bytes,
                bytes);
    return true;
  });
  return copy;
}

static SimulationResult copyOut(const MemRef &memref) {
  SimulationResult result;
  result.shape.assign(memref.sizes.begin(), memref.sizes.end());
  int64_t bytes = memref.format.getBytes();
  result.data.resize(memref.getNumElements() * bytes);
  char *next = result.data.data();
  forEachIndex(memref.sizes, [&](ArrayRef<int64_t> index) {
    std::memcpy(next, memref.getElement(memref.getIndex(index)), bytes);
    next += bytes;
    return true;
  });
  return result;
}

FailureOr<SmallVector<SimulationResult>>
fovea::simulate(func::FuncOp function, ArrayRef<SimulationOperand> operands,
                const SimulationOptions &options) {
  if (operands.size() != function.getNumArguments())
    return function.emitOpError("has ") << function.getNumArguments()
                                        << " operands, got " << operands.size();
  for (Type type : llvm::concat<const Type>(function.getArgumentTypes(),
                                            function.getResultTypes()))
    if (isa<TensorType>(type))
      return function.emitOpError("has tensors; expected memrefs, got ")
             << type;
  std::vector<Datum> values;
  for (auto [index, type, operand] :
       llvm::enumerate(function.getArgumentTypes(), operands)) {
    Format format = Format::get(type);
    auto memref = dyn_cast<MemRefType>(type);
    if (format.kind == Format::None || (!memref && isa<ShapedType>(type)))
      return function.emitOpError("operand ")
             << index << " has type " << type
             << "; expected a memref or a number";
    Datum &value = values.emplace_back();
    if (!memref) {
      value.scalar = format.read(static_cast<const char *>(operand.data));
      continue;
    }
    bool matches = memref.getRank() == int64_t(operand.shape.size());
    if (matches)
      for (auto [size, expected] :
           llvm::zip_equal(operand.shape, memref.getShape()))
        matches &= ShapedType::isDynamic(expected) || expected == size;
    if (!matches)
      return function.emitOpError("operand ")
             << index << " has type " << type << ", got a tensor of shape "
             << operand.shape;
    value.object = copyIn(format, operand);
  }
  Machine machine(options);
  FailureOr<std::vector<Datum>> results =
      machine.call(function, values, nullptr, nullptr);
  if (failed(results))
    return failure();
  SmallVector<SimulationResult> copies;
  for (auto [index, value, type] :
       llvm::enumerate(*results, function.getResultTypes())) {
    if (!isa<MemRefType>(type))
      return function.emitOpError("result ")
             << index << " has type " << type << "; expected a memref";
    copies.push_back(copyOut(static_cast<const MemRef &>(*value.object)));
  }
  return copies;
}
