//===- Machine.h - Execution of functions step by step ----------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A function is translated once: values get numbers, ops get handlers. A fiber
// then steps through it with its own stack, so that it can stop at any op and
// continue later.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_INTERPRETER_MACHINE_H
#define FOVEA_LIB_INTERPRETER_MACHINE_H

#include "Value.h"

#include "fovea/Interpreter/Interpreter.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

#include <map>

namespace fovea::interpreter {

class Fiber;
class Machine;
class ThreadBlock;
struct Code;
struct Role;

enum class Status {
  /// Go on with the next op.
  Next,
  /// The op waits for something; try again later.
  Blocked,
  /// An error was emitted.
  Failed,
};

struct Instruction;
using Handler = Status (*)(Fiber &, const Instruction &);

struct Instruction {
  mlir::Operation *op;
  Handler handler;
  llvm::SmallVector<unsigned, 4> operands;
  /// The number of the first result; others follow.
  unsigned result;
  llvm::SmallVector<const Code *, 2> regions;
  /// The formats of the first result and of the first operand.
  Format format, input;
  /// The treatment of operands without a value (see `Poison`). The first
  /// `numUsed` are used, which is a fault. From the others, an op that
  /// `computes` makes results without a value; any other op passes them on.
  unsigned numUsed;
  bool computes;
  /// Data about the op for its handler: a constant's value, a predicate.
  Scalar detail;
};

/// One block.
struct Code {
  llvm::SmallVector<unsigned, 4> arguments;
  std::vector<Instruction> instructions;
};

struct Function {
  const Code *entry;
  unsigned numValues;
};

/// State shared by all fibers.
class Machine {
public:
  explicit Machine(const SimulationOptions &options);

  /// Returns the translation of a function; null after an error.
  const Function *translate(mlir::func::FuncOp function);

  /// Runs a function to its end.
  llvm::FailureOr<std::vector<Datum>> call(mlir::func::FuncOp function,
                                           llvm::ArrayRef<Datum> operands,
                                           ThreadBlock *block, Role *role);

  const SimulationOptions options;
  /// The number of launches, and of turns that blocks have taken.
  int64_t launch = 0, turns = 0;
  /// By the first of a block's flags: the block that has set them, and its
  /// number of signals then.
  llvm::DenseMap<const char *, std::pair<int32_t, int32_t>> signals;

  /// An addition by a block of the running launch to memory; a GPU adds in any
  /// order. The end of the launch makes the additions in the order of the
  /// blocks, whatever order they ran in, so that results do not depend on the
  /// seed; or, where blocks take turns, in the order in which they did.
  struct Addition {
    MemRef target;
    int64_t index;
    Scalar value;
  };
  /// By block number; stores of blocks that take turns are all under 0.
  std::map<int64_t, std::vector<Addition>> additions;
  /// The missing values, by the op that failed to compute them.
  std::map<mlir::Operation *, Poison> poisons;
  /// Constants of the module.
  llvm::DenseMap<mlir::Operation *, std::shared_ptr<MemRef>> globals;

private:
  const Code *translate(mlir::Region &region,
                        llvm::DenseMap<mlir::Value, unsigned> &numbers);

  llvm::StringMap<Handler> handlers;
  llvm::DenseMap<mlir::Operation *, Function> functions;
  std::vector<std::unique_ptr<Code>> codes;
};

/// A position in a block.
struct Frame {
  const Code *code;
  /// The op that owns the block; null for a function's body.
  const Instruction *owner;
  size_t next = 0;
  /// The induction variable, if the frame belongs to a loop.
  int64_t induction = 0;
};

class Fiber {
public:
  Fiber(Machine &machine, std::vector<Datum> values, ThreadBlock *block,
        Role *role)
      : machine(machine), block(block), role(role), values(std::move(values)) {}

  /// Enters a block.
  void push(const Code *code, const Instruction *owner) {
    stack.push_back({code, owner});
  }

  /// Steps until the stack has `depth` frames, an op is blocked or fails, or
  /// `limit` ops were run.
  Status run(size_t depth, int64_t limit);

  /// Runs a block to its end at once: no op in it may wait. Its terminator must
  /// pop the frame.
  Status runBlock(const Code *code, const Instruction *owner);

  Datum &operand(const Instruction &instruction, size_t index) {
    return values[instruction.operands[index]];
  }
  int64_t getInt(const Instruction &instruction, size_t index) {
    return operand(instruction, index).scalar.i;
  }
  double getFloat(const Instruction &instruction, size_t index) {
    return operand(instruction, index).scalar.f;
  }
  template <typename T>
  T &get(const Instruction &instruction, size_t index) {
    return static_cast<T &>(*operand(instruction, index).object);
  }
  template <typename T>
  std::shared_ptr<T> share(const Instruction &instruction, size_t index) {
    return std::static_pointer_cast<T>(operand(instruction, index).object);
  }
  Datum &result(const Instruction &instruction, size_t index = 0) {
    return values[instruction.result + index];
  }
  Status setInt(const Instruction &instruction, int64_t value,
                size_t index = 0) {
    result(instruction, index).scalar.i = value;
    return Status::Next;
  }
  Status setFloat(const Instruction &instruction, double value) {
    result(instruction).scalar.f = instruction.format.round(value);
    return Status::Next;
  }
  Status setObject(const Instruction &instruction,
                   std::shared_ptr<Object> object, size_t index = 0) {
    result(instruction, index).object = std::move(object);
    return Status::Next;
  }

  /// Leaves the result without a value, and records `reason` as what the op
  /// did.
  Status setPoison(const Instruction &instruction, const llvm::Twine &reason);

  /// Emits an error at the op that failed to compute a value, with a note at
  /// the op that uses it.
  Status reportPoison(const Poison &poison, mlir::Operation *user) const;

  /// Emits an error at an op, with a note that says where this fiber is.
  mlir::InFlightDiagnostic emitError(mlir::Operation *op) const;

  Machine &machine;
  /// The fiber's block; null on the host.
  ThreadBlock *block;
  Role *role;
  std::vector<Datum> values;
  std::vector<Frame> stack;
  /// The values that the last terminator of a function or a map yielded.
  std::vector<Datum> yielded;

private:
  /// Runs one op where values may be missing.
  Status stepWithPoison(const Instruction &instruction);
};

void addScalarHandlers(llvm::StringMap<Handler> &handlers);
void addMathHandlers(llvm::StringMap<Handler> &handlers);
void addControlHandlers(llvm::StringMap<Handler> &handlers);
void addMemoryHandlers(llvm::StringMap<Handler> &handlers);
void addTileHandlers(llvm::StringMap<Handler> &handlers);
void addProductHandlers(llvm::StringMap<Handler> &handlers);
void addRingHandlers(llvm::StringMap<Handler> &handlers);

/// Returns the detail of a scalar op, see `Instruction`.
Scalar getDetail(mlir::Operation *op);

enum class AccessKind { Read, Write, Add };

/// Checks that an element of global memory may be accessed, and records the
/// block that does.
Status checkGlobalAccess(Fiber &fiber, mlir::Operation *op,
                         const MemRef &memref, int64_t index, AccessKind kind);

} // namespace fovea::interpreter

#endif // FOVEA_LIB_INTERPRETER_MACHINE_H
