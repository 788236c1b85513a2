//===- ThreadBlock.h - One block of a launch --------------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_INTERPRETER_THREADBLOCK_H
#define FOVEA_LIB_INTERPRETER_THREADBLOCK_H

#include "Machine.h"

#include "fovea/Dialect/Tile/IR/SharedMemory.h"

#include <deque>
#include <limits>
#include <map>
#include <random>
#include <string>

namespace fovea::interpreter {

/// What is known of a launch before it runs.
struct LaunchPlan {
  tile::SharedMemoryPlan memory;
  /// The roles, or the launch, that wait on a ring.
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Operation *, 2>>
      waiters;
  /// Whether blocks take turns, so that the order in which they add is theirs.
  bool hasTurns = false;
};

/// Places shared memory and checks layouts and budgets. Emits errors.
llvm::FailureOr<LaunchPlan> planLaunch(tile::LaunchOp launch,
                                       const SimulationOptions &options);

/// The role that an op is in, or the launch.
mlir::Operation *getRoleOp(mlir::Operation *op);

//===----------------------------------------------------------------------===//
// Objects
//===----------------------------------------------------------------------===//

struct Slot {
  enum State { Free, Acquired, Filling, Full };

  State state = Free;
  /// The last use, or -1, and what acquired or fills it.
  int64_t use = -1;
  mlir::Operation *op = nullptr;
  /// The last use that each role has released.
  llvm::DenseMap<mlir::Operation *, int64_t> released;
};

struct Ring : Object {
  tile::RingOp op;
  int64_t offset;
  llvm::ArrayRef<mlir::Operation *> waiters;
  /// The role that fills it.
  Role *producer = nullptr;
  /// What took its memory, after which there is no use.
  mlir::Operation *reuser = nullptr;
  llvm::SmallVector<Slot, 4> slots;

  Slot &getSlot(int64_t use) { return slots[use % slots.size()]; }
  /// Where the slot of a use lies.
  int64_t getOffset(int64_t use) const;
};

/// A tile in shared memory, as one op gave it.
struct SharedTile : Object {
  tile::SharedType type;
  int64_t offset;
  /// Of a slot: the use, and whether it was waited for, so may be read, or
  /// acquired, so may be written.
  std::shared_ptr<Ring> ring;
  int64_t use = 0;
  bool isWaited = false;
  /// Otherwise: which execution of a load or a write it is of.
  mlir::Operation *writer = nullptr;
  int64_t execution = 0;
};

struct Token : Object {
  std::shared_ptr<Fragment> fragment;
  /// Counts the role's products.
  int64_t number;
};

struct TensorMap : Object {
  std::shared_ptr<MemRef> source;
  llvm::ArrayRef<int64_t> dims;
};

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

/// A product that no wait covers yet.
struct Product {
  mlir::Operation *op;
  std::shared_ptr<Object> a;
  std::shared_ptr<SharedTile> b;
  std::shared_ptr<Fragment> accumulator, result;
  /// The inner indices that are multiplied.
  std::pair<int64_t, int64_t> inner;
  bool isDone = false;
};

/// A store that no wait covers yet.
struct Store {
  mlir::Operation *op;
  std::shared_ptr<SharedTile> source;
  std::shared_ptr<MemRef> target;
  llvm::SmallVector<int64_t, 5> indices;
  bool isDone = false;
};

/// How far a role has come with a ring.
struct RingUses {
  int64_t nextAcquire = 0, nextWait = 0;
  /// Uses that were waited for and not released, and where.
  std::map<int64_t, mlir::Operation *> held;
};

struct Role {
  /// `tile.role`, or `tile.launch` for what stands before and after roles.
  mlir::Operation *op;
  std::unique_ptr<Fiber> fiber;
  bool isBlocked = false, isFinished = false;
  /// It waits for another block's turn to be over.
  bool isOutOfTurn = false;
  /// What a blocked op waits for.
  std::string obstacle;
  std::deque<Product> products;
  std::deque<Store> stores;
  int64_t numIssued = 0;
  std::map<Ring *, RingUses> rings;

  /// Of the oldest of `products`.
  int64_t getFirstNumber() const { return numIssued - products.size(); }
};

//===----------------------------------------------------------------------===//
// Block
//===----------------------------------------------------------------------===//

/// Rows from `first` to below `end`.
struct RowRange {
  int64_t first = 0;
  int64_t end = std::numeric_limits<int64_t>::max();
};

class ThreadBlock {
public:
  ThreadBlock(Machine &machine, tile::LaunchOp launch, const LaunchPlan &plan,
              llvm::ArrayRef<int64_t> grid, llvm::ArrayRef<int64_t> index);

  /// Starts the program with these values.
  void start(const Code *program, std::vector<Datum> values);
  /// Runs it to its end, or until all that is left waits for other blocks.
  Status run();
  /// Reports what waits for ever.
  Status reportDeadlock();

  tile::LaunchOp getLaunch() const { return launch; }
  const LaunchPlan &getPlan() const { return plan; }
  /// The block's number in the grid, x fastest.
  int64_t getNumber() const { return number; }
  /// `(x, y, z)` of a block's number.
  std::string formatIndex(int64_t number) const;
  /// Says which block and role it is about.
  void describe(mlir::Diagnostic &note, const Role *role) const;

  /// Starts the roles inside an op; says whether they have all finished.
  bool runRoles(Fiber &fiber, const Instruction &roles);

  /// Starts a copy of `source` at `indices` into the slot of a use.
  void startCopy(tile::LoadAsyncOp op, Fiber &fiber,
                 std::shared_ptr<MemRef> source,
                 llvm::ArrayRef<int64_t> indices, std::shared_ptr<Ring> ring,
                 int64_t use, RowRange rows);

  /// Something happened that a blocked role may wait for.
  void wake();

  /// The next execution of what writes a tile in shared memory.
  int64_t countExecution(mlir::Operation *op) { return ++executions[op]; }
  int64_t getExecution(mlir::Operation *op) { return executions[op]; }

  llvm::MutableArrayRef<char> getMemory() { return memory; }

private:
  struct Copy {
    tile::LoadAsyncOp op;
    Fiber *fiber;
    std::shared_ptr<MemRef> source;
    llvm::SmallVector<int64_t, 5> indices;
    std::shared_ptr<Ring> ring;
    int64_t use;
    RowRange rows;
  };

  Role *pickRole();
  Status completeCopy(size_t index);
  Status completeEarly();
  Status finishRole(Role &role);
  Status finish();
  int64_t draw(int64_t count);

  Machine &machine;
  tile::LaunchOp launch;
  const LaunchPlan &plan;
  llvm::SmallVector<int64_t, 3> grid;
  int64_t number;
  std::vector<char> memory;
  std::vector<std::unique_ptr<Role>> roles;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<Role *, 4>> started;
  llvm::DenseMap<mlir::Operation *, int64_t> executions;
  std::vector<std::shared_ptr<Ring>> rings;
  std::vector<Copy> copies;

  /// What the seed chooses: in so many of 64 steps a copy or a product
  /// completes before it must; the longest turn of a role; whether turns are
  /// drawn, or go to the first role by `priority` that can go on.
  std::mt19937_64 random;
  int64_t eagerness, turn;
  bool isFair;
  std::vector<uint64_t> priority;

  friend Status makeRing(Fiber &fiber, const Instruction &op);
};

/// An operand that no product in flight adds to; null after an error.
std::shared_ptr<Fragment> readFragment(Fiber &fiber, const Instruction &op,
                                       size_t index);

/// Checks that a tile may be read.
Status checkTile(Fiber &fiber, mlir::Operation *op, const SharedTile &tile);

/// Does so, and reads it, row-major.
Status readTile(Fiber &fiber, mlir::Operation *op, const SharedTile &tile,
                std::vector<Scalar> &elements);

/// The rows that a load's operands from `index` on bound; without `bounds` all.
RowRange getRows(Fiber &fiber, const Instruction &op, size_t index,
                 size_t bounds);

/// Reads a tile of global memory, zeros beyond its end and outside of `rows`.
Status readGlobal(Fiber &fiber, mlir::Operation *op, const MemRef &source,
                  llvm::ArrayRef<int64_t> indices, llvm::ArrayRef<int64_t> dims,
                  llvm::ArrayRef<int64_t> shape, std::vector<Scalar> &elements,
                  RowRange rows = {});

void writeTile(ThreadBlock &block, tile::SharedType type, int64_t offset,
               llvm::ArrayRef<Scalar> elements);

/// Computes a product that was issued.
Status compute(Fiber &fiber, Product &product);

/// Reads the tile of a store that was started, and writes it.
Status complete(Fiber &fiber, Store &store);

/// The product or store, not covered by a wait, that reads a tile; null: none.
mlir::Operation *findReader(const Role &role,
                            llvm::function_ref<bool(const SharedTile &)> match);

} // namespace fovea::interpreter

#endif // FOVEA_LIB_INTERPRETER_THREADBLOCK_H
