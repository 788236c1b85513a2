//===- ShareItems.cpp - Blocks that share the last programs ---------------===//
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
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <climits>

#define DEBUG_TYPE "tile-share-items"

namespace fovea::tile {
#define GEN_PASS_DEF_TILESHAREITEMS
#include "fovea/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace fovea::tile

using namespace mlir;
using namespace fovea;
using namespace fovea::tile;

namespace {

struct ShareItems : fovea::tile::impl::TileShareItemsBase<ShareItems> {
  void runOnOperation() override;
};

/// What blocks do: whole rounds of programs, of which each block runs one in
/// each; then an equal share each of the rest, whose steps lie end to end.
/// Shares begin anywhere in a program, but near its ends.
///
/// The rest are the programs of the last round, which not all blocks would run
/// one of, and of the round before: so a share has the steps of at least one
/// program, and no program is in more than two shares. The block that runs the
/// later steps of a program comes to them first, and gives what it finds to the
/// block that runs the earlier ones, which comes to these last: it hardly ever
/// waits.
///
/// Numbers are of 32 bits, for some are in registers throughout.
class Shares {
public:
  /// Emits in front of a launch of `items` programs by `blocks` blocks, each of
  /// so many `steps`, what does not depend on the block.
  Shares(OpBuilder &builder, Location loc, Value items, Value blocks,
         Value steps);

  /// Returns whether programs are shared, an i1.
  Value areShared() const { return isShared; }

  /// Emits what a block does beside whole rounds.
  void emitShare(OpBuilder &builder, Value block);

  /// Returns the number of programs of which the block runs steps.
  Value getCount() const { return count; }

  struct Item {
    Value program;
    /// The first step, and the number of them.
    Value first, count;
    /// Whether other steps of the program are another block's, and whether
    /// these are the earlier ones.
    Value isPart, isLate;
  };
  /// Returns the item that is the block's in its turn.
  Item getItem(OpBuilder &builder, Value turn) const;

private:
  struct Cut {
    Value program, step;
  };
  Cut getCut(OpBuilder &builder, Value place) const;
  Indices getNumbers(OpBuilder &builder) const {
    return {builder, loc, builder.getI32Type()};
  }

  Value select(OpBuilder &builder, Value condition, Value a, Value b) const {
    return builder.createOrFold<arith::SelectOp>(loc, condition, a, b);
  }
  Value compare(OpBuilder &builder, arith::CmpIPredicate predicate, Value a,
                Value b) const {
    return builder.createOrFold<arith::CmpIOp>(loc, predicate, a, b);
  }

  Location loc;
  Value blocks, steps;
  /// Whether the rest is shared, step by step; the whole rounds, the programs
  /// in them, and the others.
  Value isShared, rounds, inRounds, rest;
  /// Of a block: its number, where its share begins, the number of its items,
  /// and the steps of the first one in its share and of the last.
  Value block, count, ofFirst, ofLast;
  Cut begin;
};

/// A launch whose programs have a loop that two blocks may run a part of each.
class SharedLaunch {
public:
  explicit SharedLaunch(LaunchOp launch) : launch(launch) {}

  /// Finds the loop; returns the reason for which there is none, or nullopt.
  std::optional<StringRef> analyze();

  /// Returns true if blocks may share programs; else the launch stays as it is.
  bool rewrite();

private:
  std::optional<StringRef> analyzeWrites();
  void cutSteps(const Shares::Item &item);

  LaunchOp launch;
  CombinePartsOp combine;
  scf::ForOp steps;
  SmallVector<StoreOp> stores;
};

} // namespace

//===----------------------------------------------------------------------===//
// Shares
//===----------------------------------------------------------------------===//

Shares::Shares(OpBuilder &builder, Location loc, Value items, Value blocks,
               Value steps)
    : loc(loc), blocks(getNumbers(builder).cast(blocks)),
      steps(getNumbers(builder).cast(steps)) {
  // A part costs about as much as a few steps: it is written, read, and added
  // by blocks that meanwhile multiply nothing. Numbers of steps of all blocks
  // need 32 bits.
  constexpr int64_t kMostSteps = 1 << 15;
  // The tenths of a round that blocks may have in the last one as it is.
  constexpr int64_t kFullTenths = 9;
  using Predicate = arith::CmpIPredicate;
  Indices index = getNumbers(builder);
  Value one = index.constant(1);
  Value some = index.create<arith::MaxUIOp>(this->blocks, one);
  auto [full, last] = index.divide(index.cast(items), some);
  auto both = [&](Value a, Value b) {
    return index.create<arith::AndIOp>(a, b);
  };
  Value isPartial =
      both(compare(builder, Predicate::ne, last, index.constant(0)),
           compare(builder, Predicate::ule,
                   index.create<arith::MulIOp>(last, index.constant(10)),
                   index.create<arith::MulIOp>(this->blocks,
                                               index.constant(kFullTenths))));
  Value isLong = both(compare(builder, Predicate::uge, this->steps,
                              index.constant(kFewestSharedSteps)),
                      compare(builder, Predicate::ule, this->steps,
                              index.constant(kMostSteps)));
  isShared = both(isPartial, isLong);
  rounds =
      select(builder, isShared, index.create<arith::SubIOp>(full, one), full);
  inRounds = index.create<arith::MulIOp>(rounds, this->blocks);
  rest = index.create<arith::SubIOp>(index.cast(items), inRounds);
}

/// Returns where the share of a block begins that is in `place` among all: in a
/// program of the rest, and before a step of it.
Shares::Cut Shares::getCut(OpBuilder &builder, Value place) const {
  // A part is more steps than its own costs take.
  constexpr int64_t kShortest = 4;
  using Predicate = arith::CmpIPredicate;
  Indices index = getNumbers(builder);
  Value zero = index.constant(0), one = index.constant(1);
  Value all = index.create<arith::MulIOp>(
      rest, index.create<arith::MaxUIOp>(steps, one));
  Value before = index
                     .divide(index.create<arith::MulIOp>(place, all),
                             index.create<arith::MaxUIOp>(blocks, one))
                     .first;
  auto [program, step] =
      index.divide(before, index.create<arith::MaxUIOp>(steps, one));
  Value isFirst =
      compare(builder, Predicate::ult, step, index.constant(kShortest));
  Value isLast =
      compare(builder, Predicate::ult, index.create<arith::SubIOp>(steps, step),
              index.constant(kShortest));
  Value isWhole = index.create<arith::OrIOp>(isFirst, isLast);
  program = select(builder, isLast, index.create<arith::AddIOp>(program, one),
                   program);
  step = select(builder, isWhole, zero, step);
  // What is not shared is dealt to the first blocks in line.
  return {select(builder, isShared, program,
                 index.create<arith::MinUIOp>(place, rest)),
          select(builder, isShared, step, zero)};
}

void Shares::emitShare(OpBuilder &builder, Value number) {
  Indices index = getNumbers(builder);
  block = index.cast(number);
  Value one = index.constant(1);
  // A block waits for the one in the next place, which is launched earlier.
  Value place = index.create<arith::SubIOp>(
      index.create<arith::SubIOp>(blocks, one), block);
  begin = getCut(builder, place);
  Cut end = getCut(builder, index.create<arith::AddIOp>(place, one));
  Value isCut =
      compare(builder, arith::CmpIPredicate::ne, end.step, index.constant(0));
  Value whole = index.create<arith::SubIOp>(end.program, begin.program);
  count = index.create<arith::AddIOp>(
      index.create<arith::AddIOp>(rounds, whole),
      select(builder, isCut, one, index.constant(0)));
  ofFirst = index.create<arith::SubIOp>(steps, begin.step);
  ofLast = select(builder, isCut, end.step, steps);
}

/// What is the same in all turns is little, for it takes registers: a block
/// that begins within a program does so in the first turn behind the rounds,
/// and one that ends within a program in the last.
Shares::Item Shares::getItem(OpBuilder &builder, Value turn) const {
  using Predicate = arith::CmpIPredicate;
  Indices index = getNumbers(builder);
  Value inRound = index.create<arith::AddIOp>(
      index.create<arith::MulIOp>(turn, blocks), block);
  Value inRest = index.create<arith::AddIOp>(
      index.create<arith::AddIOp>(inRounds, begin.program),
      index.create<arith::SubIOp>(turn, rounds));
  Value isOfRound = compare(builder, Predicate::ult, turn, rounds);
  Value isFirst = compare(builder, Predicate::eq, turn, rounds);
  Value next = index.create<arith::AddIOp>(turn, index.constant(1));
  Value isLast = compare(builder, Predicate::eq, next, count);
  Item item;
  item.program = select(builder, isOfRound, inRound, inRest);
  item.first = select(builder, isFirst, begin.step, index.constant(0));
  item.count =
      select(builder, isFirst, ofFirst, select(builder, isLast, ofLast, steps));
  item.isPart = compare(builder, Predicate::ne, item.count, steps);
  item.isLate = index.create<arith::AndIOp>(item.isPart, isFirst);
  return item;
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

std::optional<StringRef> SharedLaunch::analyze() {
  if (launch.getNumResults() == 0)
    return "is on memrefs";
  auto combines = launch.getBody().getOps<CombinePartsOp>();
  if (!llvm::hasSingleElement(combines))
    return "does not say how parts combine";
  combine = *combines.begin();
  for (Value value : combine.getValues()) {
    auto loop = value.getDefiningOp<scf::ForOp>();
    if (!loop || (steps && loop != steps))
      return "combines other values than those of one loop";
    steps = loop;
  }
  if (!steps || steps->getBlock() != combine->getBlock())
    return "combines other values than those of one loop";
  for (Value result : steps.getResults())
    if (llvm::any_of(result.getUsers(),
                     [&](Operation *user) { return user != combine; }))
      return "uses what a part of its loop gives";
  for (Value bound :
       {steps.getLowerBound(), steps.getUpperBound(), steps.getStep()})
    if (launch.getBody().isAncestor(bound.getParentRegion()))
      return "has programs of different lengths";
  return analyzeWrites();
}

/// Finds the stores, which a block leaves out that gives its values away.
std::optional<StringRef> SharedLaunch::analyzeWrites() {
  bool hasOthers = false;
  launch.getBody().walk([&](MemoryEffectOpInterface op) {
    if (auto store = dyn_cast<StoreOp>(op.getOperation());
        store && store->getBlock() == combine->getBlock() && !store.getAdd()) {
      stores.push_back(store);
      return;
    }
    SmallVector<MemoryEffects::EffectInstance> effects;
    op.getEffects(effects);
    hasOthers |= llvm::any_of(effects, [](const auto &effect) {
      return isa<MemoryEffects::Write>(effect.getEffect()) &&
             !isa<SharedMemory>(effect.getResource());
    });
  });
  if (hasOthers)
    return "writes memory elsewhere than at its end";
  return std::nullopt;
}

/// Returns the number of iterations of a loop.
static Value countSteps(OpBuilder &builder, scf::ForOp loop) {
  Indices index(builder, loop.getLoc());
  Value all = index.create<arith::SubIOp>(
      index.create<arith::MaxSIOp>(loop.getUpperBound(), loop.getLowerBound()),
      loop.getLowerBound());
  return index.create<arith::CeilDivUIOp>(all, loop.getStep());
}

/// Returns the place of a block's part among those of all blocks, of which each
/// number stands for a cluster.
static Value getPlaceOfPart(CombinePartsOp combine, Value number,
                            int64_t blocksOfCluster) {
  if (blocksOfCluster == 1)
    return number;
  OpBuilder builder(combine);
  Indices index(builder, combine.getLoc());
  Value rank = ClusterRankOp::create(builder, combine.getLoc());
  return index.create<arith::AddIOp>(
      index.create<arith::MulIOp>(number, index.constant(blocksOfCluster)),
      rank);
}

/// Replaces `combine` by what a block does with the values of an item: it gives
/// those of later steps away, and combines those of earlier steps with what the
/// block of its rank in the cluster before has given, whose part is `distance`
/// places before its own.
static void emitParts(CombinePartsOp combine, const Shares::Item &item,
                      Value block, int64_t distance, ValueRange memory) {
  OpBuilder builder(combine);
  Location loc = combine.getLoc();
  Indices index(builder, loc);
  ValueRange parts = memory.drop_back();
  Value flags = memory.back(), zero = index.constant(0);
  // A tile of the memory of a block.
  auto getPlace = [&](Value value, Value ofBlock) {
    int64_t rank = cast<FragmentType>(value.getType()).getRank();
    SmallVector<Value> indices(rank + 1, zero);
    indices.front() = ofBlock;
    return indices;
  };
  auto getDims = [](Value value) {
    int64_t rank = cast<FragmentType>(value.getType()).getRank();
    return llvm::to_vector(llvm::seq<int64_t>(1, rank + 1));
  };
  // The rows of a part are, in memory of its own.
  auto isAligned = [](Value value) {
    constexpr int64_t kAlignment = 16;
    auto type = cast<FragmentType>(value.getType());
    int64_t bits = type.getElementType().getIntOrFloatBitWidth();
    return type.getShape().back() * bits / CHAR_BIT % kAlignment == 0;
  };
  ValueRange values = combine.getValues();

  Value before = index.create<arith::SubIOp>(block, index.constant(distance));
  auto branch = scf::IfOp::create(builder, loc, values.getTypes(), item.isPart,
                                  /*withElseRegion=*/true);
  builder.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(builder, loc, values);
  builder.setInsertionPointToStart(branch.thenBlock());
  auto give = scf::IfOp::create(builder, loc, values.getTypes(), item.isLate,
                                /*withElseRegion=*/true);
  scf::YieldOp::create(builder, loc, give.getResults());

  builder.setInsertionPointToStart(give.thenBlock());
  for (auto [value, part] : llvm::zip_equal(values, parts))
    StoreOp::create(builder, loc, value, part, getPlace(value, block),
                    /*valid=*/Value(), getDims(value))
        .setAligned(isAligned(value));
  SignalOp::create(builder, loc, flags, block);
  scf::YieldOp::create(builder, loc, values);

  builder.setInsertionPointToStart(give.elseBlock());
  AwaitOp::create(builder, loc, flags, before);
  IRMapping mapping;
  auto arguments = combine.getBody().getArguments();
  mapping.map(arguments.take_front(values.size()), values);
  for (auto [argument, value, part] :
       llvm::zip_equal(arguments.drop_front(values.size()), values, parts)) {
    auto load = LoadOp::create(builder, loc, value.getType(), part,
                               getPlace(value, before), getDims(value));
    load.setAligned(isAligned(value));
    mapping.map(argument, load.getResult());
  }
  Block &body = combine.getBody().front();
  for (Operation &op : body.without_terminator())
    builder.clone(op, mapping);
  SmallVector<Value> whole;
  for (Value yielded : cast<YieldOp>(body.getTerminator()).getValues())
    whole.push_back(mapping.lookupOrDefault(yielded));
  scf::YieldOp::create(builder, loc, whole);
  combine.replaceAllUsesWith(branch.getResults());
  combine.erase();
}

/// Lets the loop count the item's steps.
void SharedLaunch::cutSteps(const Shares::Item &item) {
  OpBuilder builder(steps);
  Location loc = steps.getLoc();
  Indices number(builder, loc, builder.getI32Type());
  auto loop = scf::ForOp::create(builder, loc, number.constant(0), item.count,
                                 number.constant(1), steps.getInitArgs());
  loop.getBody()->erase();
  loop.getRegion().takeBody(steps.getRegion());
  Block &body = *loop.getBody();
  BlockArgument place = body.getArgument(0);
  BlockArgument step = body.insertArgument(0u, builder.getI32Type(), loc);
  builder.setInsertionPointToStart(&body);
  Indices index(builder, loc);
  Value ofItem = number.create<arith::AddIOp>(item.first, step);
  Value offset =
      index.create<arith::MulIOp>(index.cast(ofItem), steps.getStep());
  place.replaceAllUsesWith(
      index.create<arith::AddIOp>(offset, steps.getLowerBound()));
  body.eraseArgument(1);
  steps.replaceAllUsesWith(loop.getResults());
  steps.erase();
  steps = loop;
}

bool SharedLaunch::rewrite() {
  OpBuilder builder(launch);
  Location loc = launch.getLoc();
  Indices host(builder, loc);
  int64_t cores = getNumResident(launch);
  int64_t blocksOfCluster = launch.getBlocksOfCluster();
  SmallVector<Value> sizes(launch.getGrid());
  Value items = getNumPrograms(builder, loc, sizes);
  Value blocks = host.create<arith::MinUIOp>(items, host.constant(cores));
  Value numSteps = countSteps(builder, steps);
  Shares shares(builder, loc, items, blocks, numSteps);
  std::optional<int64_t> known = getConstantIntValue(shares.areShared());
  if (known == 0)
    return false;

  // Memory for a part of each block, and a flag for each of its warps, none
  // where nothing is shared. Tensors of the same type must not become one.
  SmallVector<Value> memory;
  int64_t parts = cores * blocksOfCluster;
  Value count =
      known ? Value()
            : arith::SelectOp::create(builder, loc, shares.areShared(),
                                      host.constant(parts), host.constant(0))
                  .getResult();
  auto allocate = [&](ArrayRef<int64_t> ofBlock, Type element) -> Value {
    SmallVector<int64_t> shape{known ? parts : ShapedType::kDynamic};
    llvm::append_range(shape, ofBlock);
    return bufferization::AllocTensorOp::create(
        builder, loc, RankedTensorType::get(shape, element),
        known ? ValueRange() : ValueRange(count));
  };
  for (Value value : combine.getValues()) {
    auto type = cast<FragmentType>(value.getType());
    memory.push_back(allocate(type.getShape(), type.getElementType()));
  }
  Value flags =
      allocate(static_cast<int64_t>(launch.getWarps()), builder.getI32Type());
  Value unset = arith::ConstantIntOp::create(builder, loc, 0, 32);
  memory.push_back(
      linalg::FillOp::create(builder, loc, unset, flags).getResult(0));

  PersistentLaunch result(builder, launch, blocks, memory);
  Value block = result.getBlock();
  shares.emitShare(builder, block);
  Indices number(builder, loc, builder.getI32Type());
  auto loop = scf::ForOp::create(builder, loc, number.constant(0),
                                 shares.getCount(), number.constant(1));
  builder.setInsertionPointToStart(loop.getBody());
  Shares::Item item = shares.getItem(builder, loop.getInductionVar());
  Indices index(builder, loc);
  SmallVector<Value> ids =
      getIds(builder, loc, index.cast(item.program), sizes);
  SmallVector<Value> added(result.getAdded());
  result.wrap(loop, ids);
  cutSteps(item);

  // A tile behind the last row of a tensor is not written.
  for (StoreOp store : stores) {
    builder.setInsertionPoint(store);
    int64_t dim = store.getDims().front();
    Value behind = memref::DimOp::create(builder, loc, store.getTarget(), dim);
    Value row = arith::SelectOp::create(builder, loc, item.isLate, behind,
                                        store.getIndices()[dim]);
    store.getIndicesMutable()[dim].set(row);
  }
  emitParts(combine, item, getPlaceOfPart(combine, block, blocksOfCluster),
            blocksOfCluster, added);
  return true;
}

void ShareItems::runOnOperation() {
  SmallVector<LaunchOp> launches;
  getOperation()->walk([&](LaunchOp launch) {
    if (launch.getPersistent() == ItemOrder::Shared)
      launches.push_back(launch);
  });
  for (LaunchOp launch : launches) {
    Location loc = launch.getLoc();
    SharedLaunch shared(launch);
    if (std::optional<StringRef> reason = shared.analyze()) {
      LDBG() << "launch at " << loc
             << ": its last programs are not shared, for it " << *reason;
      continue;
    }
    bool isShared = shared.rewrite();
    LDBG() << "launch at " << loc
           << (isShared ? ": blocks share its last programs"
                        : ": its last programs are few, or short, or fill a "
                          "round");
    numShared += isShared;
  }
}
