//===- Persist.cpp - Several programs in one block ------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Tile/Transforms/Passes.h"

#include "Indices.h"
#include "PersistentLaunch.h"

#include "fovea/Dialect/Machine/IR/Machine.h"
#include "fovea/Dialect/Tile/IR/Tile.h"
#include "fovea/Support/DebugLog.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/Support/MathExtras.h"

#include <climits>

#define DEBUG_TYPE "tile-persist"

namespace fovea::tile {
#define GEN_PASS_DEF_TILEPERSIST
#include "fovea/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace fovea::tile

using namespace mlir;
using namespace fovea;
using namespace fovea::tile;

/// The programs of a row that shall run at a time, so that they share what they
/// read.
static constexpr int64_t kSharing = 4;

/// The most groups of rows. Their number times that of rows has 32 bits.
static constexpr int64_t kMostGroups = 1 << 10;

namespace {

struct Persist : fovea::tile::impl::TilePersistBase<Persist> {
  void runOnOperation() override {
    SmallVector<LaunchOp> launches;
    getOperation()->walk([&](LaunchOp launch) {
      if (launch.getPersistent())
        launches.push_back(launch);
    });
    for (LaunchOp launch : launches) {
      if (*launch.getPersistent() == ItemOrder::Dealt)
        deal(launch);
      else
        persist(launch);
      ++numPersistent;
    }
  }

private:
  void persist(LaunchOp launch);
  void deal(LaunchOp launch);
};

} // namespace

//===----------------------------------------------------------------------===//
// Rows that share the L2 cache
//===----------------------------------------------------------------------===//

/// Returns the bytes of the inputs that a row of programs reads: its share of
/// them.
static Value getBytesOfRow(OpBuilder &builder, LaunchOp launch, Value rows) {
  Location loc = launch.getLoc();
  Indices index(builder, loc);
  Value all = index.constant(0);
  for (Value input : launch.getInputs()) {
    auto type = cast<ShapedType>(input.getType());
    if (!type.getElementType().isIntOrFloat())
      continue;
    Value bytes = index.constant(
        llvm::divideCeil(type.getElementTypeBitWidth(), CHAR_BIT));
    SmallVector<OpFoldResult> sizes =
        isa<TensorType>(type) ? tensor::getMixedSizes(builder, loc, input)
                              : memref::getMixedSizes(builder, loc, input);
    for (OpFoldResult size : sizes)
      bytes = index.create<arith::MulIOp>(
          bytes, getValueOrCreateConstantIndexOp(builder, loc, size));
    all = index.create<arith::AddIOp>(all, bytes);
  }
  return index.create<arith::DivUIOp>(
      all, index.create<arith::MaxUIOp>(rows, index.constant(1)));
}

namespace {
/// A group of rows: its number, its first row, and how many it has.
struct Rows {
  Value group, first, members;
};
} // namespace

/// Returns the one of `groups` groups, equal but for a row, that has a program,
/// of which a row has `length`: group `n` begins at row `n * rows / groups`.
static Rows getGroup(OpBuilder &builder, Location loc, Value item, Value length,
                     Value rows, Value groups) {
  Indices index(builder, loc);
  Value row = index.divide(item, length).first;
  Value one = index.constant(1);
  Value before = index.create<arith::MulIOp>(
      index.create<arith::AddIOp>(row, one), groups);
  Value group =
      index.divide(index.create<arith::SubIOp>(before, one), rows).first;
  auto getFirst = [&](Value group) {
    return index.divide(index.create<arith::MulIOp>(group, rows), groups).first;
  };
  Value first = getFirst(group);
  Value next = getFirst(index.create<arith::AddIOp>(group, one));
  return {group, first, index.create<arith::SubIOp>(next, first)};
}

/// Returns the number in its row of a program, and that of the row in its
/// group: the first programs of all rows of a group come first.
static std::pair<Value, Value> locateInGroup(OpBuilder &builder, Location loc,
                                             Value item, Value length,
                                             Value first, Value members) {
  Indices index(builder, loc);
  Value inGroup = index.create<arith::SubIOp>(
      item, index.create<arith::MulIOp>(first, length));
  return index.divide(inGroup, members);
}

//===----------------------------------------------------------------------===//
// Programs that take ever less time
//===----------------------------------------------------------------------===//

namespace {

/// How blocks take the programs of a launch, of which those of a row take ever
/// less time: group by group of rows, of each first the first programs of all
/// its rows. There are two ways to give all blocks as much to do:
///
///  - *There and back*: in every other round blocks take programs in the
///  opposite
///    order. The rounds of a group are even in number.
///  - *Turns*: every other group begins with the last programs, which take the
///    least time. Such groups may be smaller.
///
/// Blocks that run programs of a row at the same time share what they read.
/// There and back, so few do that the cache must hold what a group reads, or
/// memory is read several times as fast as it could be: then groups take turns.
class Order {
public:
  /// Emits in front of the launch what depends on its sizes alone.
  Order(OpBuilder &builder, LaunchOp launch, ArrayRef<Value> sizes);

  /// Returns the number of programs.
  Value getItems() const { return items; }
  /// Returns the most blocks that run at a time.
  int64_t getCores() const { return cores; }
  /// Returns the place that a block has in a round.
  Value getPlace(OpBuilder &builder, Value round, Value block,
                 Value blocks) const;
  /// Returns the number of a program in its row, and the row.
  std::pair<Value, Value> locate(OpBuilder &builder, Value item) const;

private:
  void planRounds(Indices &index);
  void planTurns(Indices &index, Value bytes, int64_t nearMemory);

  Location loc;
  int64_t cores;
  /// Programs of a row, rows, and programs.
  Value length, rows, items;
  /// There and back: rows of a group, and the number of the last one, which has
  /// what is left.
  Value group, lastGroup;
  /// The number of groups that take turns, and whether they do.
  Value turns, takesTurns;
};

} // namespace

static Value isEven(OpBuilder &builder, Location loc, Value number) {
  Indices index(builder, loc);
  Value odd = index.create<arith::AndIOp>(number, index.constant(1));
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, odd,
                               index.constant(0));
}

Order::Order(OpBuilder &builder, LaunchOp launch, ArrayRef<Value> sizes)
    : loc(launch.getLoc()) {
  auto target = machine::getGpuOrDefault(launch);
  cores = getNumResident(launch);
  Indices index(builder, loc);
  length = sizes.front();
  rows = getNumPrograms(builder, loc, sizes.drop_front());
  items = index.create<arith::MulIOp>(length, rows);
  planRounds(index);
  Value bytes = getBytesOfRow(builder, launch, rows);
  planTurns(index, bytes, target.getNearMemory());
  // A part of what a group reads, its queries, it reads once.
  Value read = index.create<arith::MulIOp>(
      index.create<arith::MinUIOp>(group, rows), bytes);
  takesTurns = builder.createOrFold<arith::CmpIOp>(
      loc, arith::CmpIPredicate::ugt, read,
      index.constant(target.getNearMemory() / 4 * 5));
}

/// A round of the blocks takes about `kSharing` programs of each row of a
/// group; the rounds of a group have to be even in number, for only two rounds,
/// there and back, give all blocks as much to do. The last group has what is
/// left, from half to one and a half of the others: rounds of fewer rows would
/// be too few to make up for what differs in a part of a round.
void Order::planRounds(Indices &index) {
  if (cores > kSharing)
    cores = cores / kSharing * kSharing;
  Value least = index.create<arith::DivUIOp>(
      index.constant(2 * cores), index.getCommonDivisor(length, 2 * cores));
  Value wanted = index.constant(std::max<int64_t>(cores / kSharing, 1));
  Value half = index.create<arith::DivUIOp>(least, index.constant(2));
  Value times = index.create<arith::DivUIOp>(
      index.create<arith::AddIOp>(wanted, half), least);
  group = index.create<arith::MulIOp>(
      least, index.create<arith::MaxUIOp>(times, index.constant(1)));
  Value groups = index.create<arith::DivUIOp>(
      index.create<arith::AddIOp>(
          rows, index.create<arith::DivUIOp>(group, index.constant(2))),
      group);
  lastGroup = index.create<arith::SubIOp>(
      index.create<arith::MaxUIOp>(groups, index.constant(1)),
      index.constant(1));
}

/// There are as many turns as let half of the cache hold what a group reads,
/// for each of its two parts keeps copies of what multiprocessors beside it
/// read; an even number of them, so that blocks have as much to do; but each
/// has one and a half rounds of blocks, and a row.
void Order::planTurns(Indices &index, Value bytes, int64_t nearMemory) {
  Value all = index.create<arith::MulIOp>(rows, bytes);
  Value pairs = index.create<arith::DivUIOp>(
      index.create<arith::AddIOp>(all, index.constant(nearMemory - 1)),
      index.constant(nearMemory));
  pairs = index.create<arith::MinUIOp>(
      pairs, index.create<arith::DivUIOp>(items, index.constant(3 * cores)));
  pairs = index.create<arith::MinUIOp>(
      pairs, index.create<arith::DivUIOp>(rows, index.constant(2)));
  pairs = index.create<arith::MinUIOp>(pairs, index.constant(kMostGroups / 2));
  turns = index.create<arith::MulIOp>(
      index.create<arith::MaxUIOp>(pairs, index.constant(1)),
      index.constant(2));
}

Value Order::getPlace(OpBuilder &builder, Value round, Value block,
                      Value blocks) const {
  Indices index(builder, loc);
  Value back = index.create<arith::SubIOp>(
      index.create<arith::SubIOp>(blocks, index.constant(1)), block);
  Value isForth =
      index.create<arith::OrIOp>(isEven(builder, loc, round), takesTurns);
  return arith::SelectOp::create(builder, loc, isForth, block, back);
}

std::pair<Value, Value> Order::locate(OpBuilder &builder, Value item) const {
  Indices index(builder, loc);
  auto choose = [&](Value ofTurn, Value other) -> Value {
    return arith::SelectOp::create(builder, loc, takesTurns, ofTurn, other);
  };
  Value one = index.constant(1);
  Value ofGroup = index.create<arith::MulIOp>(group, length);
  Value number = index.create<arith::MinUIOp>(index.divide(item, ofGroup).first,
                                              lastGroup);
  Value first = index.create<arith::MulIOp>(number, group);
  Value isLast = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                       number, lastGroup);
  Value members = arith::SelectOp::create(
      builder, loc, isLast, index.create<arith::SubIOp>(rows, first), group);

  Rows turn = getGroup(builder, loc, item, length, rows, turns);
  first = choose(turn.first, first);
  members = choose(turn.members, members);

  auto [x, member] = locateInGroup(builder, loc, item, length, first, members);
  // The last turn ends with the programs that take the least time.
  Value isReverse =
      index.create<arith::AndIOp>(isEven(builder, loc, turn.group), takesTurns);
  Value fromEnd =
      index.create<arith::SubIOp>(index.create<arith::SubIOp>(length, one), x);
  return {arith::SelectOp::create(builder, loc, isReverse, fromEnd, x),
          index.create<arith::AddIOp>(first, member)};
}

//===----------------------------------------------------------------------===//
// Programs for blocks that are free
//===----------------------------------------------------------------------===//

/// Returns true if an element of a tensor decides `value`.
static bool isRead(Value value) {
  Operation *op = value.getDefiningOp();
  return op && (isa<tensor::ExtractOp>(op) ||
                (isPure(op) && llvm::any_of(op->getOperands(), isRead)));
}

/// Returns a bound of a size that the host knows without waiting for the GPU,
/// if there is one; else the size.
static Value getKnownBound(Value size) {
  auto least = size.getDefiningOp<arith::MinSIOp>();
  if (!least || isRead(least.getLhs()) == isRead(least.getRhs()))
    return size;
  return isRead(least.getLhs()) ? least.getRhs() : least.getLhs();
}

/// Makes the tensors whose elements decide `value` inputs of the launch. Maps
/// them to the program's memrefs.
static void addReadTensors(LaunchOp launch, Value value, IRMapping &memrefs) {
  if (!isRead(value))
    return;
  Operation *op = value.getDefiningOp();
  auto extract = dyn_cast<tensor::ExtractOp>(op);
  if (!extract) {
    for (Value operand : op->getOperands())
      addReadTensors(launch, operand, memrefs);
    return;
  }
  Value tensor = extract.getTensor();
  if (memrefs.contains(tensor))
    return;
  size_t place = launch.getGrid().size() + launch.getInputs().size();
  Type type = LaunchOp::getArgumentType(cast<ShapedType>(tensor.getType()));
  launch.getInputsMutable().append(tensor);
  memrefs.map(tensor,
              launch.getBody().insertArgument(place, type, launch.getLoc()));
}

/// Emits `value` in a program, from the memrefs of the tensors that decide it.
static Value emitRead(OpBuilder &builder, Value value, IRMapping &mapping) {
  if (!isRead(value) || mapping.contains(value))
    return mapping.lookupOrDefault(value);
  Operation *op = value.getDefiningOp();
  for (Value operand : op->getOperands())
    if (!isa<TensorType>(operand.getType()))
      emitRead(builder, operand, mapping);
  if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
    SmallVector<Value> indices =
        llvm::map_to_vector(extract.getIndices(), [&](Value index) {
          return mapping.lookupOrDefault(index);
        });
    mapping.map(value, memref::LoadOp::create(
                           builder, op->getLoc(),
                           mapping.lookup(extract.getTensor()), indices)
                           .getResult());
  } else {
    builder.clone(*op, mapping);
  }
  return mapping.lookup(value);
}

/// Emits a tensor of one number, 0. Where the host finds that blocks have at
/// most two of the `items` programs each, it has none, and no kernel writes it.
/// Where a tensor has their number, that is in front of all kernels, one of
/// which may write it, too.
static Value createCounter(OpBuilder &builder, LaunchOp launch, Value items,
                           Value blocks) {
  Location loc = launch.getLoc();
  auto emit = [&](OpBuilder &builder, Value size) {
    Value zero = arith::ConstantIntOp::create(builder, loc, 0, 32);
    auto type = RankedTensorType::get(size ? ShapedType::kDynamic : 1,
                                      builder.getI32Type());
    Value memory = bufferization::AllocTensorOp::create(
        builder, loc, type, size ? ValueRange(size) : ValueRange());
    return linalg::FillOp::create(builder, loc, zero, memory).getResult(0);
  };
  if (isRead(launch.getGrid().front())) {
    auto front = OpBuilder::atBlockBegin(launch->getBlock());
    return emit(front, {});
  }
  Indices index(builder, loc);
  Value isNeeded = builder.createOrFold<arith::CmpIOp>(
      loc, arith::CmpIPredicate::ugt, items,
      index.create<arith::MulIOp>(blocks, index.constant(2)));
  if (getConstantIntValue(isNeeded))
    return emit(builder, {});
  return emit(builder,
              arith::SelectOp::create(builder, loc, isNeeded, index.constant(1),
                                      index.constant(0)));
}

namespace {
/// The order in which programs are dealt: group by group of rows, of each first
/// the first programs of all its rows, but the last programs of all rows, which
/// take the least time, in the end. Blocks have a program ahead, so they end as
/// far apart as such programs take.
class DealtOrder {
public:
  /// Emits in front of the launch what depends on its sizes alone.
  DealtOrder(OpBuilder &builder, LaunchOp launch, Value rows);

  /// Returns the number of a program in its row, and the row.
  std::pair<Value, Value> locate(OpBuilder &builder, Value item,
                                 Value length) const;

private:
  void planGroups(Indices &index, LaunchOp launch, Value bytes);

  Location loc;
  Value rows, groups;
  /// The most programs of each row in the end.
  Value ofEnd;
};
} // namespace

DealtOrder::DealtOrder(OpBuilder &builder, LaunchOp launch, Value rows)
    : loc(launch.getLoc()), rows(rows) {
  Indices index(builder, loc);
  planGroups(index, launch, getBytesOfRow(builder, launch, rows));
  // Those in the end read the inputs of their rows again.
  constexpr int64_t kRoundsOfEnd = 3;
  ofEnd = index.create<arith::CeilDivUIOp>(
      index.constant(kRoundsOfEnd * getNumResident(launch)),
      index.create<arith::MaxUIOp>(rows, index.constant(1)));
}

/// There are as many groups as let half of the L2 cache hold what each reads,
/// but so many rows in each that not all blocks read the same (d = 64, causal,
/// 16k, H200: 1676 us with 8 rows, and 1702 with 4). Programs of a list differ
/// more, and read other parts of a row's inputs: their groups have rounds of
/// blocks in which the longest ones are made up for. At least half of a list's
/// places have a program.
void DealtOrder::planGroups(Indices &index, LaunchOp launch, Value bytes) {
  constexpr int64_t kMostSharing = 24, kRoundsOfGroup = 5;
  int64_t cores = getNumResident(launch);
  int64_t nearMemory = machine::getGpuOrDefault(launch).getNearMemory();
  groups = index.create<arith::CeilDivUIOp>(
      index.create<arith::MulIOp>(rows, bytes), index.constant(nearMemory / 2));
  Value length = launch.getGrid().front(), most;
  if (isRead(length))
    most = index.create<arith::DivUIOp>(
        index.create<arith::MulIOp>(rows, getKnownBound(length)),
        index.constant(2 * kRoundsOfGroup * cores));
  else
    most = index.create<arith::DivUIOp>(
        index.create<arith::MulIOp>(rows, index.constant(kMostSharing)),
        index.constant(cores));
  groups = index.create<arith::MinUIOp>(
      groups, index.create<arith::MinUIOp>(most, index.constant(kMostGroups)));
  groups = index.create<arith::MaxUIOp>(groups, index.constant(1));
}

std::pair<Value, Value> DealtOrder::locate(OpBuilder &builder, Value item,
                                           Value length) const {
  Indices index(builder, loc);
  // The end is one group, of other programs of each row, no more than a third.
  constexpr int64_t kPartOfEnd = 3;
  Value some = index.create<arith::MinUIOp>(
      ofEnd, index.divide(length, index.constant(kPartOfEnd)).first);
  Value ofFront = index.create<arith::SubIOp>(length, some);
  Value front = index.create<arith::MulIOp>(ofFront, rows);
  Value isEnd = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::uge,
                                      item, front);
  auto choose = [&](Value atEnd, Value other) -> Value {
    return arith::SelectOp::create(builder, loc, isEnd, atEnd, other);
  };
  Value zero = index.constant(0);
  item = index.create<arith::SubIOp>(item, choose(front, zero));
  Value ofRow = choose(some, ofFront);
  Rows group = getGroup(builder, loc, item, ofRow, rows,
                        choose(index.constant(1), groups));
  auto [x, member] =
      locateInGroup(builder, loc, item, ofRow, group.first, group.members);
  x = index.create<arith::AddIOp>(choose(ofFront, zero), x);
  return {x, index.create<arith::AddIOp>(group.first, member)};
}

void Persist::deal(LaunchOp launch) {
  OpBuilder builder(launch);
  Location loc = launch.getLoc();
  Indices host(builder, loc);
  SmallVector<Value> sizes(launch.getGrid());
  int64_t cores = getNumResident(launch);
  // Where tensors decide how many programs a row has, blocks read that, and the
  // host takes a bound.
  Value length = sizes.front();
  sizes.front() = getKnownBound(length);
  Value most = getNumPrograms(builder, loc, sizes);
  Value blocks = host.create<arith::MinUIOp>(most, host.constant(cores));
  Value rows = getNumPrograms(builder, loc, ArrayRef(sizes).drop_front());
  Value zeros = createCounter(builder, launch, most, blocks);
  DealtOrder order(builder, launch, rows);
  LDBG() << "launch at " << loc << ": at most " << cores << " blocks, dealt";

  removeCombineParts(launch);
  IRMapping mapping;
  addReadTensors(launch, length, mapping);
  PersistentLaunch result(builder, launch, blocks, zeros);
  length = emitRead(builder, length, mapping);
  Indices device(builder, loc);
  Value items = device.create<arith::MulIOp>(length, rows);
  Value counter = result.getAdded().front();
  Value rounds = DealtCountOp::create(builder, loc, counter, items);
  auto loop = scf::ForOp::create(builder, loc, device.constant(0), rounds,
                                 device.constant(1));
  builder.setInsertionPointToStart(loop.getBody());
  Value item =
      DealtOp::create(builder, loc, counter, loop.getInductionVar(), items);
  auto [x, row] = order.locate(builder, item, length);
  SmallVector<Value> ids =
      getIds(builder, loc, row, ArrayRef(sizes).drop_front());
  ids.insert(ids.begin(), x);
  result.wrap(loop, ids);
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

void Persist::persist(LaunchOp launch) {
  OpBuilder builder(launch);
  Location loc = launch.getLoc();
  Indices host(builder, loc);
  SmallVector<Value> sizes(launch.getGrid());
  std::optional<Order> order;
  int64_t cores = getNumResident(launch);
  if (*launch.getPersistent() == ItemOrder::Snaked) {
    order.emplace(builder, launch, sizes);
    cores = order->getCores();
  }
  Value items = order ? order->getItems() : getNumPrograms(builder, loc, sizes);
  Value blocks = host.create<arith::MinUIOp>(items, host.constant(cores));
  LDBG() << "launch at " << loc << ": at most " << cores << " blocks, "
         << (order ? "there and back" : "in linear order");

  removeCombineParts(launch);
  PersistentLaunch result(builder, launch, blocks);
  Value block = result.getBlock();
  Indices device(builder, loc);
  scf::ForOp loop;
  SmallVector<Value> ids;
  if (order) {
    auto getPlace = [&](Value round) {
      return order->getPlace(builder, round, block, blocks);
    };
    auto [full, rest] = device.divide(items, blocks);
    Value isInLast = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::ult, getPlace(full), rest);
    Value rounds = device.create<arith::AddIOp>(
        full, arith::SelectOp::create(builder, loc, isInLast,
                                      device.constant(1), device.constant(0)));
    loop = scf::ForOp::create(builder, loc, device.constant(0), rounds,
                              device.constant(1));
    builder.setInsertionPointToStart(loop.getBody());
    Value item = device.create<arith::AddIOp>(
        device.create<arith::MulIOp>(loop.getInductionVar(), blocks),
        getPlace(loop.getInductionVar()));
    auto [x, row] = order->locate(builder, item);
    ids = getIds(builder, loc, row, ArrayRef(sizes).drop_front());
    ids.insert(ids.begin(), x);
  } else {
    loop = scf::ForOp::create(builder, loc, block, items, blocks);
    builder.setInsertionPointToStart(loop.getBody());
    ids = getIds(builder, loc, loop.getInductionVar(), sizes);
  }
  result.wrap(loop, ids);
}
