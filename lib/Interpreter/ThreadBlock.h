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

/// A role, or the launch, and the number of the warp group that runs it apart
/// from others (`tile.group`), or 0.
using Runner = std::pair<mlir::Operation *, int64_t>;

/// The facts about a launch that are known before it runs.
struct LaunchPlan {
  tile::SharedMemoryPlan memory;
  /// The runners that wait on a ring, for each group that has slots of its own.
  using Waiters = llvm::SmallVector<llvm::SmallVector<Runner, 2>, 1>;
  llvm::DenseMap<mlir::Operation *, Waiters> waiters;
  /// The numbers of warp groups of roles whose groups run apart.
  llvm::DenseMap<mlir::Operation *, int64_t> groups;
  int64_t getNumGroups(mlir::Operation *role) const {
    return std::max<int64_t>(groups.lookup(role), 1);
  }
  /// True if blocks take turns, which decides the order in which they add.
  bool hasTurns = false;
};

/// Places shared memory and checks layouts and budgets. Emits errors.
llvm::FailureOr<LaunchPlan> planLaunch(tile::LaunchOp launch,
                                       const SimulationOptions &options);

/// Returns the role that contains an op, or the launch.
mlir::Operation *getRoleOp(mlir::Operation *op);

//===----------------------------------------------------------------------===//
// Objects
//===----------------------------------------------------------------------===//

/// Every `blocks`th panel of a tile, from `rank` on, which one block of a
/// cluster copies to all of them.
struct Panels {
  int64_t rank = 0, blocks = 1;

  bool contains(tile::SharedType type, int64_t column) const {
    return column / type.getPanelColumns() % blocks == rank;
  }
};

struct Slot {
  enum State { Free, Acquired, Filling, Full };

  State state = Free;
  /// The last use, or -1, and the op that acquired or fills it.
  int64_t use = -1;
  mlir::Operation *op = nullptr;
  /// The last use that each runner has released.
  llvm::DenseMap<Runner, int64_t> released;
  /// The warp groups that have written their rows, as bits.
  uint64_t written = 0;
  /// In a ring that a cluster fills: the last use to which blocks have copied
  /// their panels, or -1, these blocks as bits, and what they have copied.
  int64_t arrivedUse = -1;
  uint64_t arrived = 0;
  llvm::SmallVector<int64_t, 5> arrivedIndices;
  const char *arrivedSource = nullptr;

  bool hasReleased(const Runner &runner, int64_t ofUse) const {
    return released.lookup_or(runner, -1) >= ofUse;
  }
};

struct Ring : Object {
  tile::RingOp op;
  int64_t offset;
  /// The number of the ring in its block.
  size_t number;
  /// The warp groups that have slots of their own, or 1.
  int64_t numGroups = 1;
  LaunchPlan::Waiters waiters{1};
  /// The role that fills the slot, or the first of its groups.
  Role *producer = nullptr;
  /// The op that took the ring's memory, after which there is no use.
  mlir::Operation *reuser = nullptr;
  /// The ring whose slots these are, if another's, and the rings that share
  /// those of this one.
  std::shared_ptr<Ring> base;
  llvm::SmallVector<Ring *, 1> sharers;
  llvm::SmallVector<Slot, 4> slots;

  Slot &getSlot(int64_t use) { return slots[use % slots.size()]; }
  /// Returns the group whose slots those of a use are, or 0.
  int64_t getGroup(int64_t use) const {
    return std::max<int64_t>(use, 0) % numGroups;
  }
  /// Returns the runners that wait for a use.
  llvm::ArrayRef<Runner> getWaiters(int64_t use) const {
    return waiters[getGroup(use)];
  }
  /// Returns the offset of the slot of a use.
  int64_t getOffset(int64_t use) const;
};

/// A tile in shared memory, as the result of one op.
struct SharedTile : Object {
  tile::SharedType type;
  int64_t offset;
  /// The tile's row that is the first one of this view of it.
  int64_t firstRow = 0;
  /// For the tile of a slot: the use, and whether the tile was waited for, so
  /// that it may be read, or acquired, so that it may be written.
  std::shared_ptr<Ring> ring;
  int64_t use = 0;
  bool isWaited = false;
  /// For any other tile: the execution of the load or write that made it.
  mlir::Operation *writer = nullptr;
  int64_t execution = 0;
};

struct Token : Object {
  std::shared_ptr<Fragment> fragment;
  /// The product's number in its role.
  int64_t number;
};

struct TensorMap : Object {
  std::shared_ptr<MemRef> source;
  llvm::SmallVector<int64_t> dims;
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
  /// The rows that are written, if not all are.
  std::optional<int64_t> valid;
  bool isDone = false;
};

/// The progress of a role with a ring.
struct RingUses {
  int64_t nextAcquire, nextWait;
  /// Uses that were waited for and not released, and the ops that waited.
  std::map<int64_t, mlir::Operation *> held;
};

/// Rows from `first` to before `end`.
struct RowRange {
  int64_t first = 0;
  int64_t end = std::numeric_limits<int64_t>::max();

  bool contains(int64_t row) const { return row >= first && row < end; }
};

struct Role {
  /// `tile.role`, or `tile.launch` for ops before and after roles.
  mlir::Operation *op;
  /// The warp group that this is, of so many that run apart.
  int64_t group = 0, numGroups = 1;
  std::unique_ptr<Fiber> fiber;
  bool isBlocked = false, isFinished = false;
  /// True if the role waits for another block's turn to be over.
  bool isOutOfTurn = false;
  /// True if the group before has passed a turn that this one has not taken.
  bool hasTurn = false;
  /// The reason that a blocked op waits.
  std::string obstacle;
  std::deque<Product> products;
  std::deque<Store> stores;
  int64_t numIssued = 0;
  /// By ring, and by the group whose slots they are.
  std::map<std::pair<Ring *, int64_t>, RingUses> rings;

  Runner getRunner() const { return {op, group}; }
  /// Returns the role's progress with the slots of a use of a ring.
  RingUses &getUses(Ring &ring, int64_t use);
  /// Returns the rows, of `count`, that the group owns.
  RowRange getOwnRows(int64_t count) const {
    return {group * count / numGroups, (group + 1) * count / numGroups};
  }
  /// Returns the number of the oldest of `products`.
  int64_t getFirstNumber() const { return numIssued - products.size(); }
};

//===----------------------------------------------------------------------===//
// Block
//===----------------------------------------------------------------------===//

/// The places of the runs of rows of a load.
struct Runs {
  /// The rows of a run.
  int64_t length;
  /// The indices of the first element of each run; none where no row is left.
  std::vector<std::optional<llvm::SmallVector<int64_t, 5>>> places;
  bool areWhole;
};

class Cluster;

class ThreadBlock {
public:
  /// The block of a number in a cluster, whose place in the grid is `index`.
  ThreadBlock(Machine &machine, tile::LaunchOp launch, const LaunchPlan &plan,
              llvm::ArrayRef<int64_t> grid, llvm::ArrayRef<int64_t> index,
              Cluster &cluster, int64_t rank);

  /// Starts the program with these values.
  void start(const Code *program, std::vector<Datum> values);
  /// Runs the program to its end, or until all that is left waits for other
  /// blocks.
  Status run();
  bool hasEnded() const { return isEnded; }
  /// Reports the roles that wait forever.
  Status reportDeadlock();

  tile::LaunchOp getLaunch() const { return launch; }
  const LaunchPlan &getPlan() const { return plan; }
  /// Returns the block's number among all, those of a cluster first, then x.
  int64_t getNumber() const { return number; }
  /// Returns the block's number in its cluster.
  int64_t getRank() const { return rank; }
  /// Returns `(x, y, z)` of a block's number, and its number in its cluster.
  std::string formatIndex(int64_t number) const;
  /// Names this block and the role in a note.
  void describe(mlir::Diagnostic &note, const Role *role) const;

  /// Starts the roles inside an op; returns true if they have all finished.
  bool runRoles(Fiber &fiber, const Instruction &roles);

  /// Starts a copy of `source` at `indices` into the slot of a use.
  void startCopy(tile::LoadAsyncOp op, Fiber &fiber,
                 std::shared_ptr<MemRef> source,
                 llvm::ArrayRef<int64_t> indices, std::shared_ptr<Ring> ring,
                 int64_t use, RowRange rows, std::optional<Runs> runs);

  /// Returns the warp group of the same role that comes behind this one, for
  /// the last one the first.
  Role &getNextGroup(const Role &role);

  /// Records an event that a blocked role may wait for, of the block or of its
  /// cluster.
  void wake();
  void wakeCluster();

  /// Returns what a ring is in each block that fills it, null where a block has
  /// not made it yet.
  llvm::SmallVector<Ring *, 4> getRings(Ring &ring);

  /// Returns how often the block has signalled other blocks.
  int32_t getSignals() const { return signals; }
  int32_t countSignal() { return ++signals; }
  /// Records that the block has seen a signal of another.
  void see(int32_t other, int32_t signal) {
    int32_t &last = seen[other];
    last = std::max(last, signal);
  }
  /// Returns true if the block sees what another has written after so many
  /// signals.
  bool sees(int32_t other, int32_t after) const {
    return seen.lookup(other) > after;
  }

  /// Counts an execution of an op that writes a tile in shared memory; returns
  /// its number.
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
    std::optional<Runs> runs;
  };

  Role *pickRole();
  Status completeCopy(size_t index);
  Status arrive(const Copy &copy, llvm::ArrayRef<Scalar> elements);
  Status completeEarly();
  Status finishRole(Role &role);
  Status finish();
  int64_t draw(int64_t count);

  Machine &machine;
  tile::LaunchOp launch;
  const LaunchPlan &plan;
  llvm::SmallVector<int64_t, 3> grid;
  Cluster &cluster;
  int64_t rank, number;
  bool isEnded = false;
  std::vector<char> memory;
  std::vector<std::unique_ptr<Role>> roles;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<Role *, 4>> started;
  llvm::DenseMap<mlir::Operation *, int64_t> executions;
  std::vector<std::shared_ptr<Ring>> rings;
  std::vector<Copy> copies;
  /// The signals that the block has given, and by block, those that it has
  /// seen.
  int32_t signals = 0;
  llvm::DenseMap<int32_t, int32_t> seen;

  /// The choices of the seed: in so many of 64 steps a copy or a product
  /// completes before it must; the longest turn of a role; whether turns are
  /// drawn at random, or go to the first role by `priority` that can proceed.
  std::mt19937_64 random;
  int64_t eagerness, turn;
  bool isFair;
  std::vector<uint64_t> priority;

  friend Status makeRing(Fiber &fiber, const Instruction &op);
};

/// Blocks that run at the same time, and fill rings together.
class Cluster {
public:
  /// Makes the blocks, of place `index` in the grid.
  Cluster(Machine &machine, tile::LaunchOp launch, const LaunchPlan &plan,
          llvm::ArrayRef<int64_t> grid, llvm::ArrayRef<int64_t> index);

  /// Starts all programs with these values.
  void start(const Code *program, const std::vector<Datum> &values);
  /// Runs all programs to their end, or until all that is left waits for other
  /// clusters.
  Status run();
  /// Reports the roles that wait forever.
  Status reportDeadlock();

  llvm::ArrayRef<std::unique_ptr<ThreadBlock>> getBlocks() const {
    return blocks;
  }
  /// Records an event that roles of other blocks may wait for.
  void wake() { ++events; }

private:
  std::vector<std::unique_ptr<ThreadBlock>> blocks;
  int64_t events = 0;
};

/// Handles an op that is allowed only in a launch.
template <Handler handler>
Status inLaunch(Fiber &fiber, const Instruction &op) {
  if (fiber.block)
    return handler(fiber, op);
  fiber.emitError(op.op) << "must stand in a tile.launch";
  return Status::Failed;
}

std::shared_ptr<Fragment> makeFragment(tile::FragmentType type);

/// Returns an operand that no product in flight adds to; null after an error.
std::shared_ptr<Fragment> readFragment(Fiber &fiber, const Instruction &op,
                                       size_t index);

/// Checks that a tile may be read.
Status checkTile(Fiber &fiber, mlir::Operation *op, const SharedTile &tile);

/// Checks that a tile may be read, and reads it, row-major: its rows, or so
/// many of a view of it, of which the role's group reads its own.
Status readTile(Fiber &fiber, mlir::Operation *op, const SharedTile &tile,
                std::vector<Scalar> &elements,
                std::optional<int64_t> rowsOfView = std::nullopt);

/// Checks that the rows that the role's group owns, of `count` rows of a view,
/// are rows of the tile.
Status checkOwnRows(Fiber &fiber, mlir::Operation *op, const SharedTile &tile,
                    int64_t count);

/// Returns the rows that a load's operands from `index` on bound; without
/// `bounds` all rows.
RowRange getRows(Fiber &fiber, const Instruction &op, size_t index,
                 size_t bounds);

/// Reads a tile of global memory, its rows `own` alone, with zeros beyond its
/// end and outside of `rows`.
Status readGlobal(Fiber &fiber, mlir::Operation *op, const MemRef &source,
                  llvm::ArrayRef<int64_t> indices, llvm::ArrayRef<int64_t> dims,
                  llvm::ArrayRef<int64_t> shape, std::vector<Scalar> &elements,
                  RowRange rows = {}, RowRange own = {});

/// Computes the places of the runs of `load`, a `tile.load` or
/// `tile.load_async` with a region, of a tile of `count` rows of which `rows`
/// are left.
template <typename OpTy>
llvm::FailureOr<Runs> findRuns(Fiber &fiber, const Instruction &op, OpTy load,
                               int64_t count, RowRange rows);

/// Reads a tile of global memory by runs of rows.
Status readRuns(Fiber &fiber, mlir::Operation *op, const MemRef &source,
                const Runs &runs, llvm::ArrayRef<int64_t> dims,
                llvm::ArrayRef<int64_t> shape, std::vector<Scalar> &elements,
                RowRange rows);

/// Replaces bytes, the bits of `f8E4M3FN`, by the numbers that they are.
void widenBytes(llvm::MutableArrayRef<Scalar> elements);

/// Reads a tile of bytes, operand 0 of a `tile.widen` or `tile.widen_into`, as
/// the numbers that they are; empty after an error.
std::vector<Scalar> readWidened(Fiber &fiber, const Instruction &op);

void writeTile(ThreadBlock &block, tile::SharedType type, int64_t offset,
               llvm::ArrayRef<Scalar> elements, RowRange rows = {},
               Panels panels = {});

/// Computes a product that was issued.
Status compute(Fiber &fiber, Product &product);

/// Reads the tile of a store that was started, and writes it.
Status complete(Fiber &fiber, Store &store);

/// Returns the product or store, not covered by a wait, that reads a matching
/// tile; null if there is none.
mlir::Operation *findReader(const Role &role,
                            llvm::function_ref<bool(const SharedTile &)> match);

} // namespace fovea::interpreter

#endif // FOVEA_LIB_INTERPRETER_THREADBLOCK_H
