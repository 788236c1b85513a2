//===- DealItems.cpp - Programs for blocks that are free ------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All roles of a block run the same programs. One role takes their numbers, and
// computes what follows from these; the others read both from a ring: use `n`
// is the block's `n`th program, and the last use, of a number behind all
// programs, ends the loops.
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Tile/Transforms/Passes.h"

#include "Indices.h"

#include "fovea/Dialect/Tile/IR/SharedMemory.h"
#include "fovea/Dialect/Tile/IR/Tile.h"
#include "fovea/Support/DebugLog.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

#include <vector>

#define DEBUG_TYPE "tile-deal-items"

namespace fovea::tile {
#define GEN_PASS_DEF_TILEDEALITEMS
#include "fovea/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace fovea::tile

using namespace mlir;
using namespace fovea::tile;

namespace {

struct DealItems : fovea::tile::impl::TileDealItemsBase<DealItems> {
  void runOnOperation() override;
};

/// The slots of the ring: how many programs a block has ahead. With two, blocks
/// end further apart (packed sequences of 4k, d = 64, H200: 278 and 287 us).
constexpr int64_t kSlots = 1;

/// A loop of a role over the programs that the block is dealt.
struct ItemLoop {
  scf::ForOp loop;
  /// Comparisons of a round with the number of rounds, in front of the loop and
  /// in it, and programs of the first round, of the loop's and of the next.
  SmallVector<arith::CmpIOp> isEntered, hasNext;
  SmallVector<DealtOp> first, own, next;
};

/// A program as the role that deals publishes it: its number, and those of its
/// numbers (`tile.of_item`) that others need.
struct Program {
  Value number;
  SmallVector<Value> others;
};

/// A launch whose programs are dealt.
class DealtLaunch {
public:
  DealtLaunch(LaunchOp launch, DealtCountOp count)
      : launch(launch), count(count) {}

  /// Finds the loops; returns the reason for which no role can deal, or
  /// nullopt.
  std::optional<StringRef> analyze();

  /// Lets a role deal.
  void rewrite();
  /// Deals every so manieth program to a block.
  void rewriteStatically();

private:
  std::optional<StringRef> analyzeLoop(ItemLoop &items);
  std::optional<StringRef> analyzeUses();
  void analyzeNumbers();
  SmallVector<Type> getPublished();
  SharedType getSlot();
  void createDealer();
  Value publish(OpBuilder &builder, Location loc, Value use, Value tile,
                Value number);
  Program receive(OpBuilder &builder, Location loc, Value use);
  Value isProgram(OpBuilder &builder, Location loc, Value number);
  void replaceNumbers(ArrayRef<DealtOp> items, ArrayRef<Value> values);
  SmallVector<size_t> getCarried(const ItemLoop &items);
  void rewriteLoop(ItemLoop &items);

  LaunchOp launch;
  DealtCountOp count;
  std::vector<ItemLoop> loops;
  /// A role whose last warp has nothing to do.
  RoleOp neighbour;
  Value ring;
  /// What computes other numbers from that of a program, in one of its places,
  /// if the role that deals can; which of its results are needed, and their
  /// types.
  OfItemOp numbers;
  SmallVector<size_t> needed;
  SmallVector<Type> neededTypes;
};

} // namespace

/// Returns true if `value` is the round behind that of `loop`, or that one's
/// own where there is none behind.
static bool isNextRound(Value value, scf::ForOp loop) {
  if (auto select = value.getDefiningOp<arith::SelectOp>())
    return isNextRound(select.getTrueValue(), loop) &&
           select.getFalseValue() == loop.getInductionVar();
  auto sum = value.getDefiningOp<arith::AddIOp>();
  return sum && sum.getLhs() == loop.getInductionVar() &&
         matchPattern(sum.getRhs(), m_One());
}

std::optional<StringRef> DealtLaunch::analyzeLoop(ItemLoop &items) {
  scf::ForOp loop = items.loop;
  if (!matchPattern(loop.getLowerBound(), m_Zero()) ||
      !matchPattern(loop.getStep(), m_One()))
    return "has a loop that does not count rounds";
  RoleOp role = loop->getParentOfType<RoleOp>();
  WalkResult result = role.walk([&](Operation *op) {
    auto program = dyn_cast<DealtOp>(op);
    auto compare = dyn_cast<arith::CmpIOp>(op);
    if (!program && !(compare && compare.getRhs() == count))
      return WalkResult::advance();
    Value round = program ? program.getRound() : compare.getLhs();
    bool isInside = loop->isProperAncestor(op);
    if (isInside && isNextRound(round, loop)) {
      if (program)
        items.next.push_back(program);
      else
        items.hasNext.push_back(compare);
    } else if (!isInside && matchPattern(round, m_Zero())) {
      if (program)
        items.first.push_back(program);
      else
        items.isEntered.push_back(compare);
    } else if (isInside && program && round == loop.getInductionVar()) {
      items.own.push_back(program);
    } else {
      return WalkResult::interrupt();
    }
    return compare && compare.getPredicate() != arith::CmpIPredicate::slt
               ? WalkResult::interrupt()
               : WalkResult::advance();
  });
  if (result.wasInterrupted())
    return "asks for other programs than a loop's and the next";
  return std::nullopt;
}

std::optional<StringRef> DealtLaunch::analyzeUses() {
  SmallPtrSet<Operation *, 4> roles;
  for (OpOperand &use : count->getUses()) {
    if (isa<arith::CmpIOp>(use.getOwner()) && use.getOperandNumber() == 1)
      continue;
    auto loop = dyn_cast<scf::ForOp>(use.getOwner());
    auto role = loop ? loop->getParentOfType<RoleOp>() : RoleOp();
    if (!role || loop.getUpperBound() != count || !roles.insert(role).second)
      return "has no loop of a role over its programs, or several";
    ItemLoop items;
    items.loop = loop;
    if (std::optional<StringRef> reason = analyzeLoop(items))
      return reason;
    loops.push_back(std::move(items));
  }
  // All others would not know when to end.
  bool areAll = true;
  launch.walk([&](RoleOp role) { areAll &= roles.contains(role); });
  return areAll && !loops.empty()
             ? std::nullopt
             : std::optional<StringRef>("has a role without programs");
}

std::optional<StringRef> DealtLaunch::analyze() {
  auto roles = launch.getBody().front().getOps<RolesOp>();
  if (roles.empty() || launch.getBlocksOfCluster() > 1)
    return "has no roles, or clusters";
  if (std::optional<StringRef> reason = analyzeUses())
    return reason;
  launch.walk([&](RoleOp role) {
    if (role.getSingle() && role.getWarps() > 1)
      neighbour = role;
  });
  if (!neighbour)
    return "has no warp that is free";
  analyzeNumbers();
  int64_t bytes = planSharedMemory(launch).bytes +
                  kSlots * (getSlotBytes(getSlot()) + 2 * kBarrierBytes);
  if (bytes > getSharedMemoryLimit(launch))
    return "has no shared memory left";
  return std::nullopt;
}

/// Replaces an op that computes a program's numbers by what it computes.
static void inlineNumbers(OfItemOp op) {
  IRRewriter rewriter(op);
  Block &body = op.getBody().front();
  SmallVector<Value> yielded(cast<YieldOp>(body.getTerminator()).getValues());
  rewriter.eraseOp(body.getTerminator());
  Value item = op.getItem();
  for (Value &value : yielded)
    if (value == body.getArgument(0))
      value = item;
  rewriter.inlineBlockBefore(&body, op, item);
  rewriter.replaceOp(op, yielded);
}

/// Finds what the role that deals computes. Where that is not the same for all
/// roles, each of them computes its own.
void DealtLaunch::analyzeNumbers() {
  SmallVector<OfItemOp> all;
  launch.walk([&](OfItemOp op) { all.push_back(op); });
  if (all.empty())
    return;
  auto isKnown = [](Value value) {
    return !value.getParentRegion()->getParentOfType<RolesOp>();
  };
  OfItemOp first = all.front();
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(first.getBody(), captured);
  bool areSame = llvm::all_of(captured, isKnown);
  for (OfItemOp op : all)
    areSame &= op.getItem().getDefiningOp<DealtOp>() &&
               OperationEquivalence::isRegionEquivalentTo(
                   &op.getBody(), &first.getBody(),
                   OperationEquivalence::IgnoreLocations);
  if (!areSame) {
    llvm::for_each(all, inlineNumbers);
    return;
  }
  numbers = first;
  for (size_t index = 0; index < first.getNumbers().size(); ++index)
    if (llvm::any_of(all, [&](OfItemOp op) {
          return !op.getNumbers()[index].use_empty();
        })) {
      needed.push_back(index);
      neededTypes.push_back(first.getNumbers()[index].getType());
    }
}

/// Returns the types in which a program is published.
SmallVector<Type> DealtLaunch::getPublished() {
  MLIRContext *context = launch.getContext();
  SmallVector<Type> types = {IntegerType::get(context, 32)};
  for (Type type : neededTypes) {
    auto integer = dyn_cast<IntegerType>(type);
    types.push_back(IntegerType::get(
        context, integer && integer.getWidth() <= 32 ? 32 : 64));
  }
  return types;
}

/// Returns a row of whole units of 16 bytes that has room for a program.
SharedType DealtLaunch::getSlot() {
  constexpr int64_t kWord = 4, kUnit = 16;
  int64_t bytes = getNumberBytes(getPublished());
  return SharedType::get(
      launch.getContext(),
      {1, static_cast<int64_t>(llvm::alignTo(bytes, kUnit)) / kWord},
      IntegerType::get(launch.getContext(), 32), /*swizzle=*/0);
}

/// Converts a number between its type and that in which it is published.
static Value convert(OpBuilder &builder, Location loc, Value number,
                     Type type) {
  Type from = number.getType();
  if (from == type)
    return number;
  if (from.isIndex() || type.isIndex())
    return arith::IndexCastUIOp::create(builder, loc, type, number);
  if (from.getIntOrFloatBitWidth() < type.getIntOrFloatBitWidth())
    return arith::ExtUIOp::create(builder, loc, type, number);
  return arith::TruncIOp::create(builder, loc, type, number);
}

/// Publishes a program, and returns whether there is one of that number.
Value DealtLaunch::publish(OpBuilder &builder, Location loc, Value use,
                           Value tile, Value number) {
  SmallVector<Type> types = getPublished();
  SmallVector<Value> values = {convert(builder, loc, number, types.front())};
  Value isThere = isProgram(builder, loc, number);
  if (!needed.empty()) {
    // There are no tables of what is behind the last program.
    auto others = scf::IfOp::create(
        builder, loc, isThere,
        [&](OpBuilder &nested, Location loc) {
          IRMapping mapping;
          Block &body = numbers.getBody().front();
          mapping.map(body.getArgument(0), number);
          for (Operation &op : body.without_terminator())
            nested.clone(op, mapping);
          ValueRange yielded = cast<YieldOp>(body.getTerminator()).getValues();
          SmallVector<Value> found;
          for (auto [index, type] :
               llvm::zip_equal(needed, ArrayRef(types).drop_front()))
            found.push_back(convert(
                nested, loc, mapping.lookupOrDefault(yielded[index]), type));
          scf::YieldOp::create(nested, loc, found);
        },
        [&](OpBuilder &nested, Location loc) {
          SmallVector<Value> zeros;
          for (Type type : ArrayRef(types).drop_front())
            zeros.push_back(arith::ConstantOp::create(
                nested, loc, nested.getZeroAttr(type)));
          scf::YieldOp::create(nested, loc, zeros);
        });
    llvm::append_range(values, others.getResults());
  }
  PublishOp::create(builder, loc, values, tile, ring, use);
  return isThere;
}

/// Returns the program that is published by a use of the ring.
Program DealtLaunch::receive(OpBuilder &builder, Location loc, Value use) {
  Value tile = WaitOp::create(builder, loc, getSlot(), ring, use);
  auto published =
      ReadNumbersOp::create(builder, loc, getPublished(), tile).getNumbers();
  ReleaseOp::create(builder, loc, ring, use);
  Program program;
  program.number =
      convert(builder, loc, published.front(), builder.getIndexType());
  for (auto [type, number] :
       llvm::zip_equal(neededTypes, published.drop_front()))
    program.others.push_back(convert(builder, loc, number, type));
  return program;
}

Value DealtLaunch::isProgram(OpBuilder &builder, Location loc, Value number) {
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, number,
                               count.getItems());
}

/// Adds the role that takes numbers, which has the last warp of another.
void DealtLaunch::createDealer() {
  Location loc = launch.getLoc();
  OpBuilder builder(launch.getContext());
  builder.setInsertionPointAfter(neighbour);
  neighbour.setWarps(neighbour.getWarps() - 1);
  auto role = RoleOp::create(
      builder, loc, builder.getStringAttr("deal"), builder.getI64IntegerAttr(1),
      neighbour.getRegistersAttr(), builder.getUnitAttr());
  builder.setInsertionPointToStart(&role.getBody().emplaceBlock());
  // The first program is that of the block's own number. The second one is
  // known as well, for all blocks would ask for it at once.
  Value first = launch.getBlockIds().front(), blocks = launch.getGrid().front();
  SharedType slot = getSlot();
  Indices index(builder, loc);
  Value zero = index.constant(0), one = index.constant(1);
  Value tile = AcquireOp::create(builder, loc, slot, ring, zero);
  Value isFirst = publish(builder, loc, zero, tile, first);
  Value inTwoRounds = index.create<arith::MulIOp>(blocks, index.constant(2));
  Value second = index.create<arith::SubIOp>(
      index.create<arith::SubIOp>(inTwoRounds, one), first);
  Value areMore = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt,
                                        inTwoRounds, count.getItems());
  // Another number is taken when there is a slot for it, which is when others
  // need it.
  auto check = [&](OpBuilder &nested, Location loc, ValueRange carried) {
    scf::ConditionOp::create(nested, loc, carried[1], carried[0]);
  };
  auto deal = [&](OpBuilder &nested, Location loc, ValueRange carried) {
    Indices index(nested, loc);
    Value use = carried[0];
    Value isSecond =
        arith::CmpIOp::create(nested, loc, arith::CmpIPredicate::eq, use, one);
    Value isTaken = arith::SelectOp::create(
        nested, loc, isSecond, arith::ConstantIntOp::create(nested, loc, 0, 1),
        areMore);
    Value tile = AcquireOp::create(nested, loc, slot, ring, use);
    auto number = scf::IfOp::create(
        nested, loc, isTaken,
        [&](OpBuilder &inner, Location loc) {
          Value taken = ClaimOp::create(inner, loc, inner.getIndexType(),
                                        count.getCounter());
          Indices index(inner, loc);
          Value other = index.create<arith::AddIOp>(taken, inTwoRounds);
          scf::YieldOp::create(inner, loc, other);
        },
        [&](OpBuilder &inner, Location loc) {
          Value known = arith::SelectOp::create(inner, loc, isSecond, second,
                                                inTwoRounds);
          scf::YieldOp::create(inner, loc, known);
        });
    Value isMore = publish(nested, loc, use, tile, number.getResult(0));
    Value next = index.create<arith::AddIOp>(use, one);
    scf::YieldOp::create(nested, loc, ValueRange{next, isMore});
  };
  Value inits[] = {one, isFirst};
  scf::WhileOp::create(builder, loc, one.getType(), inits, check, deal);
  ReturnOp::create(builder, loc);
}

/// Replaces numbers of the programs `items` by those that are published, of
/// which those that no one needs may be null.
void DealtLaunch::replaceNumbers(ArrayRef<DealtOp> items,
                                 ArrayRef<Value> values) {
  for (DealtOp item : items)
    for (Operation *user : llvm::make_early_inc_range(item->getUsers())) {
      auto op = dyn_cast<OfItemOp>(user);
      if (!op)
        continue;
      for (auto [index, value] : llvm::zip_equal(needed, values))
        if (value)
          op.getNumbers()[index].replaceAllUsesWith(value);
      op.erase();
    }
}

/// Returns which of the published numbers a loop needs of its own program.
SmallVector<size_t> DealtLaunch::getCarried(const ItemLoop &items) {
  SmallVector<size_t> carried;
  for (auto [place, index] : llvm::enumerate(needed))
    if (llvm::any_of(items.own, [&](DealtOp item) {
          return llvm::any_of(item->getUsers(), [&](Operation *user) {
            auto op = dyn_cast<OfItemOp>(user);
            return op && !op.getNumbers()[index].use_empty();
          });
        }))
      carried.push_back(place);
  return carried;
}

void DealtLaunch::rewriteLoop(ItemLoop &items) {
  scf::ForOp loop = items.loop;
  Location loc = loop.getLoc();
  auto role = loop->getParentOfType<RoleOp>();
  auto builder = OpBuilder::atBlockBegin(&role.getBody().front());
  Indices index(builder, loc);
  Value zero = index.constant(0);
  Program first = receive(builder, loc, zero);
  Value isFirst = isProgram(builder, loc, first.number);
  replaceNumbers(items.first, first.others);
  for (DealtOp op : items.first)
    op.replaceAllUsesWith(first.number);
  for (arith::CmpIOp op : items.isEntered)
    op.replaceAllUsesWith(isFirst);

  // The next number is read where it is needed, or behind all else; but at once
  // by a role that fills no slots, so that it is not the last.
  Block *body = loop.getBody();
  bool runsAhead = role.walk([](AcquireOp) { return WalkResult::interrupt(); })
                       .wasInterrupted();
  Operation *place = runsAhead ? body->getTerminator() : &body->front();
  auto note = [&](Operation *op) {
    Operation *inBody = body->findAncestorOpInBlock(*op);
    if (inBody->isBeforeInBlock(place))
      place = inBody;
  };
  llvm::for_each(items.next, note);
  for (arith::CmpIOp op : items.hasNext)
    for (Operation *user : llvm::make_early_inc_range(op->getUsers())) {
      auto round = dyn_cast<arith::SelectOp>(user);
      if (!round || !isNextRound(round, loop)) {
        note(user);
        continue;
      }
      // Where there is no next round its number may be any.
      round.replaceAllUsesWith(round.getTrueValue());
      round.erase();
    }
  builder.setInsertionPoint(place);
  Value nextUse =
      index.create<arith::AddIOp>(loop.getInductionVar(), index.constant(1));
  Program next = receive(builder, loc, nextUse);
  Value isNext = isProgram(builder, loc, next.number);
  replaceNumbers(items.next, next.others);
  for (arith::CmpIOp op : items.hasNext)
    op.replaceAllUsesWith(isNext);

  builder.setInsertionPoint(loop);
  SmallVector<size_t> carried = getCarried(items);
  auto append = [&](SmallVector<Value> &values, const Program &program) {
    values.push_back(program.number);
    for (size_t index : carried)
      values.push_back(program.others[index]);
  };
  SmallVector<Value> inits = {zero};
  append(inits, first);
  size_t numOwn = inits.size();
  llvm::append_range(inits, loop.getInitArgs());
  auto check = [&](OpBuilder &nested, Location loc, ValueRange carried) {
    scf::ConditionOp::create(nested, loc, isProgram(nested, loc, carried[1]),
                             carried);
  };
  auto dealt = scf::WhileOp::create(
      builder, loc, ValueRange(inits).getTypes(), inits, check,
      [&](OpBuilder &nested, Location loc, ValueRange arguments) {
        Value own = arguments[1];
        SmallVector<Value> others(needed.size());
        for (auto [index, value] :
             llvm::zip_equal(carried, arguments.slice(2, carried.size())))
          others[index] = value;
        replaceNumbers(items.own, others);
        for (DealtOp op : items.own)
          op.replaceAllUsesWith(own);
        // Without a next program all is as for the loop's own.
        nested.setInsertionPoint(place);
        Value known;
        for (DealtOp op : items.next) {
          if (op.use_empty())
            continue;
          if (!known)
            known =
                arith::SelectOp::create(nested, loc, isNext, next.number, own);
          op.replaceAllUsesWith(known);
        }
      });
  Block *after = dealt.getAfterBody();
  auto yield = cast<scf::YieldOp>(body->getTerminator());
  SmallVector<Value> yielded = {nextUse};
  append(yielded, next);
  llvm::append_range(yielded, yield.getResults());
  SmallVector<Value> arguments = {after->getArgument(0)};
  llvm::append_range(arguments, after->getArguments().drop_front(numOwn));
  for (auto [argument, value] :
       llvm::zip_equal(body->getArguments(), arguments))
    argument.replaceAllUsesWith(value);
  after->getOperations().splice(after->end(), body->getOperations());
  builder.setInsertionPoint(yield);
  scf::YieldOp::create(builder, loc, yielded);
  yield.erase();
  loop.replaceAllUsesWith(dealt.getResults().drop_front(numOwn));
  loop.erase();
}

void DealtLaunch::rewrite() {
  OpBuilder builder(count);
  ring = RingOp::create(builder, count.getLoc(),
                        RingType::get(launch.getContext(), kSlots, getSlot()));
  createDealer();
  for (ItemLoop &items : loops) {
    rewriteLoop(items);
    for (auto *ops : {&items.first, &items.own, &items.next})
      for (DealtOp op : *ops)
        op.erase();
    for (auto *ops : {&items.isEntered, &items.hasNext})
      for (arith::CmpIOp op : *ops)
        op.erase();
  }
  count.erase();
}

void DealtLaunch::rewriteStatically() {
  SmallVector<OfItemOp> all;
  launch.walk([&](OfItemOp op) { all.push_back(op); });
  llvm::for_each(all, inlineNumbers);
  OpBuilder builder(count);
  Location loc = count.getLoc();
  Indices index(builder, loc);
  Value block = launch.getBlockIds().front(), blocks = launch.getGrid().front();
  // Blocks of a number from that of the items on have none.
  Value behind = index.create<arith::SubIOp>(
      index.create<arith::AddIOp>(count.getItems(), blocks),
      index.create<arith::AddIOp>(block, index.constant(1)));
  count.replaceAllUsesWith(index.create<arith::DivUIOp>(behind, blocks));
  launch.walk([&](DealtOp op) {
    builder.setInsertionPoint(op);
    Indices inside(builder, op.getLoc());
    Value before = inside.create<arith::MulIOp>(op.getRound(), blocks);
    op.replaceAllUsesWith(inside.create<arith::AddIOp>(before, block));
    op.erase();
  });
  count.erase();
}

void DealItems::runOnOperation() {
  SmallVector<std::pair<LaunchOp, DealtCountOp>> launches;
  getOperation()->walk([&](DealtCountOp count) {
    launches.emplace_back(count->getParentOfType<LaunchOp>(), count);
  });
  for (auto [launch, count] : launches) {
    DealtLaunch dealt(launch, count);
    std::optional<StringRef> reason = dealt.analyze();
    LDBG() << "launch at " << launch.getLoc() << ": "
           << (reason ? "every block has as many programs, for it "
                      : "a role deals programs")
           << reason.value_or("");
    if (reason) {
      dealt.rewriteStatically();
      continue;
    }
    dealt.rewrite();
    ++numDealt;
  }
}
