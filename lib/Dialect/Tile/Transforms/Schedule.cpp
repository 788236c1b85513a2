//===- Schedule.cpp - Order of a loop's ops for overlap -------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Schedule.h"
#include "UnwrittenMemory.h"

#include "fovea/Dialect/Tile/IR/Tile.h"
#include "fovea/Dialect/Tile/Transforms/Passes.h"
#include "fovea/Support/DebugLog.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/TypeSwitch.h"

#define DEBUG_TYPE "tile-schedule"

namespace fovea::tile {
#define GEN_PASS_DEF_TILESCHEDULE
#include "fovea/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace fovea::tile

using namespace mlir;
using namespace fovea::tile;

SmallVector<Value> fovea::tile::getUsedValues(Operation *op) {
  SetVector<Value> used(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), used);
  return used.takeVector();
}

namespace {

struct Schedule : fovea::tile::impl::TileScheduleBase<Schedule> {
  void runOnOperation() override;
};

/// The ops of a loop's body and how they depend on one another.
class BodyGraph {
public:
  explicit BodyGraph(scf::ForOp loop);

  /// Returns the products that depend on another product of the same iteration.
  SmallVector<Operation *> getDependentProducts() const;

  /// Adds all ops that `seeds` depend on in an iteration, or that depend on
  /// them.
  void addDependences(DenseSet<Operation *> &ops) const;
  void addDependents(DenseSet<Operation *> &ops) const;

  ArrayRef<Operation *> getOps() const { return ops; }
  ArrayRef<Operation *> getPredecessors(Operation *op) const {
    return predecessors.find(op)->second;
  }

private:
  SmallVector<Operation *> ops;
  DenseMap<Operation *, SmallVector<Operation *>> predecessors;
};

} // namespace

/// Returns true if `release` ends the use of the slot that `wait` waits for.
static bool endsUse(ReleaseOp release, WaitOp wait) {
  return release.getRing() == wait.getRing() &&
         release.getUse() == wait.getUse();
}

/// Returns true if a product adds to one in flight, which nothing else waits
/// for.
static bool isInChain(Operation *op) {
  auto product = dyn_cast<MmaAsyncOp>(op);
  return product && product.getAcc() &&
         isa<TokenType>(product.getAcc().getType());
}

/// Returns what waits for a product, or for those that add to it.
static SmallVector<Operation *> getWaits(MmaAsyncOp product) {
  SmallVector<Operation *> waits;
  for (Operation *user : product->getUsers())
    if (auto next = dyn_cast<MmaAsyncOp>(user))
      llvm::append_range(waits, getWaits(next));
    else
      waits.push_back(user);
  return waits;
}

/// Returns true if `op` writes memory in a way that rings and products do not
/// order.
static bool isWrite(Operation *op) {
  return !isa<AcquireOp, LoadAsyncOp, WriteOp, WidenIntoOp, WaitOp, ReleaseOp,
              MmaAsyncOp, WaitMmaOp>(op) &&
         !isMemoryEffectFree(op) && !onlyReads(op);
}

BodyGraph::BodyGraph(scf::ForOp loop) {
  Block *body = loop.getBody();
  Operation *lastWrite = nullptr;
  for (Operation &op : body->without_terminator()) {
    SmallVector<Operation *> &before = predecessors[&op];
    for (Value value : getUsedValues(&op))
      if (Operation *producer = value.getDefiningOp())
        if (producer->getBlock() == body)
          before.push_back(producer);
    // A wait follows what fills the slot where one role does both.
    if (auto wait = dyn_cast<WaitOp>(op))
      for (Operation *earlier : ops) {
        auto fills = [&](auto fill) {
          return fill && fill.getRing() == wait.getRing() &&
                 fill.getUse() == wait.getUse();
        };
        if (fills(dyn_cast<LoadAsyncOp>(earlier)) ||
            fills(dyn_cast<WidenIntoOp>(earlier)))
          before.push_back(earlier);
      }
    // A release follows the wait for every product that reads the slot.
    if (auto release = dyn_cast<ReleaseOp>(op))
      for (Operation *earlier : ops) {
        auto wait = dyn_cast<WaitOp>(earlier);
        if (!wait || !endsUse(release, wait))
          continue;
        before.push_back(wait);
        for (Operation *reader : wait->getUsers())
          if (auto product = dyn_cast<MmaAsyncOp>(reader))
            llvm::append_range(before, getWaits(product));
          else
            before.push_back(body->findAncestorOpInBlock(*reader));
      }
    // Ops that write memory, and the waits for these writes, keep their order.
    if (isWrite(&op)) {
      if (lastWrite)
        before.push_back(lastWrite);
      lastWrite = &op;
    }
    ops.push_back(&op);
  }
}

void BodyGraph::addDependences(DenseSet<Operation *> &set) const {
  for (Operation *op : llvm::reverse(ops))
    if (set.contains(op))
      set.insert_range(getPredecessors(op));
}

void BodyGraph::addDependents(DenseSet<Operation *> &set) const {
  for (Operation *op : ops)
    if (llvm::any_of(getPredecessors(op),
                     [&](Operation *before) { return set.contains(before); }))
      set.insert(op);
}

SmallVector<Operation *> BodyGraph::getDependentProducts() const {
  return llvm::filter_to_vector(ops, [&](Operation *op) {
    if (!isa<MmaAsyncOp>(op))
      return false;
    DenseSet<Operation *> before = {op};
    addDependences(before);
    return llvm::any_of(before, llvm::IsaPred<WaitMmaOp>);
  });
}

/// Splits synchronous WGMMA products into issue and wait. A product that adds
/// to another, which nothing else reads, need not wait for it.
static void splitProducts(LaunchOp launch) {
  launch->walk([](MmaOp product) {
    if (product.getKind() != MmaKind::Wgmma)
      return;
    OpBuilder builder(product);
    auto type =
        TokenType::get(product.getContext(), product.getResult().getType());
    Value sum = product.getAcc();
    auto before = sum ? sum.getDefiningOp<WaitMmaOp>() : nullptr;
    if (before && sum.hasOneUse() && before->getBlock() == product->getBlock())
      sum = before.getToken();
    else
      before = nullptr;
    Value token = MmaAsyncOp::create(
        builder, product.getLoc(), type, product.getA(), product.getB(), sum,
        product.getTransposeBAttr(), product.getKindAttr(),
        product.getInnerAttr(), product.getRowsAttr(), product.getFromAttr());
    product.getResult().replaceAllUsesWith(
        WaitMmaOp::create(builder, product.getLoc(), token));
    product.erase();
    if (before)
      before.erase();
  });
}

/// Moves releases of slots that products read behind the waits for these: a
/// product that others add to is over when they are.
static void moveReleases(LaunchOp launch) {
  SmallVector<ReleaseOp> releases;
  launch->walk([&](ReleaseOp release) { releases.push_back(release); });
  for (ReleaseOp release : releases)
    for (WaitOp wait : release->getBlock()->getOps<WaitOp>()) {
      if (!endsUse(release, wait))
        continue;
      for (Operation *reader : wait->getUsers())
        if (auto product = dyn_cast<MmaAsyncOp>(reader))
          for (Operation *end : getWaits(product))
            if (end->getBlock() == release->getBlock() &&
                release->isBeforeInBlock(end))
              release->moveAfter(end);
    }
}

/// Sets the stage and the position of an op.
static void setPlace(Operation *op, int64_t stage, int64_t order) {
  Builder builder(op->getContext());
  op->setAttr(kStageAttrName, builder.getI64IntegerAttr(stage));
  op->setAttr(kOrderAttrName, builder.getI64IntegerAttr(order));
}

namespace {

/// Orders a loop's step within itself.
class StepOrder {
public:
  StepOrder(scf::ForOp loop, const BodyGraph &graph);

  void assign();

private:
  /// Places the most urgent op that can be placed; returns false if all are
  /// placed.
  bool placeNext();
  /// Places an op after all ops that it needs.
  void place(Operation *op);
  /// Places the other operands of ops that wait only for `op`, as far as there
  /// are registers beside `more`, and waits for the rest.
  void placeNeeds(Operation *op, function_ref<bool(Operation *)> isLike,
                  int64_t more);
  void placeProduct(MmaAsyncOp product);

  /// Returns true if all unplaced ops that `op` needs take no time.
  bool isReady(Operation *op) const;
  /// Returns true if an op is placed when another op needs it, not by itself.
  static bool isLight(Operation *op);
  /// Returns true if the step itself uses the product's result.
  bool isUsedInStep(MmaAsyncOp product) const;
  /// Returns the registers of a thread that hold values still in use.
  int64_t countRegisters();
  /// Returns true if products other than `except` are left to place.
  bool hasProductsLeft(Operation *except) const;
  bool isPlaced(Operation *op) const { return placed.contains(op); }
  /// Returns the first op in program order that is not placed, is ready and is
  /// of this kind; null if there is none.
  Operation *findReady(function_ref<bool(Operation *)> isOfKind) const;
  /// Returns true if an op is a product that is urgent and can be issued.
  bool isUrgent(Operation *op) const;
  /// Returns the unplaced waits for placed products, the oldest first.
  SmallVector<WaitMmaOp> getPending() const;

  scf::ForOp loop;
  const BodyGraph &graph;
  /// The registers that fragments may have.
  int64_t budget;
  SmallVector<Operation *> order;
  DenseSet<Operation *> placed;
  /// The second parts of products whose first part is placed.
  SmallVector<Operation *> rest;
};

} // namespace

StepOrder::StepOrder(scf::ForOp loop, const BodyGraph &graph)
    : loop(loop), graph(graph) {
  // The registers for addresses and the like, and the most that a thread can
  // have.
  constexpr int64_t kOthers = 28, kMost = 255;
  auto role = loop->getParentOfType<RoleOp>();
  budget = (role ? role.getRegisters().value_or(kMost) : kMost) - kOthers;
}

/// Returns the registers that a value takes in a thread.
static int64_t getRegisters(Value value) {
  auto fragment = dyn_cast<FragmentType>(value.getType());
  if (auto token = dyn_cast<TokenType>(value.getType()))
    fragment = token.getFragment();
  if (!fragment || !fragment.getLayout())
    return 0;
  int64_t bits = fragment.getElementType().getIntOrFloatBitWidth();
  return llvm::divideCeil(fragment.getLayout().getNumRegisters() * bits, 32);
}

static int64_t getResultRegisters(Operation *op) {
  int64_t sum = 0;
  for (Value result : op->getResults())
    sum += getRegisters(result);
  return sum;
}

int64_t StepOrder::countRegisters() {
  auto isNeeded = [&](Operation *op) {
    return !isPlaced(op) && !op->hasTrait<OpTrait::IsTerminator>();
  };
  auto isLive = [&](Value value) {
    return llvm::any_of(value.getUsers(), [&](Operation *user) {
      Operation *here = loop.getBody()->findAncestorOpInBlock(*user);
      if (isNeeded(here))
        return true;
      // Products in flight still read the value.
      return isa<MmaAsyncOp>(here) &&
             llvm::any_of(here->getUsers(), isNeeded) &&
             cast<MmaAsyncOp>(here).getA() == value;
    });
  };
  int64_t sum = 0;
  for (Value argument : loop.getRegionIterArgs())
    if (isLive(argument))
      sum += getRegisters(argument);
  for (Operation *op : order)
    for (Value result : op->getResults())
      if (isLive(result))
        sum += getRegisters(result);
  return sum;
}

bool StepOrder::isLight(Operation *op) {
  auto isFragment = [](Type type) { return isa<FragmentType>(type); };
  if (isa<WaitOp, FromSharedOp, AcquireOp, LoadAsyncOp, FillOp>(op))
    return true;
  return isMemoryEffectFree(op) &&
         llvm::none_of(op->getResultTypes(), isFragment) &&
         op->getNumResults() && !isa<MmaAsyncOp>(op);
}

bool StepOrder::isReady(Operation *op) const {
  // A slot is not read only to be released.
  bool canPull = !isa<ReleaseOp>(op);
  return llvm::all_of(graph.getPredecessors(op), [&](Operation *before) {
    return isPlaced(before) || (canPull && isLight(before) && isReady(before));
  });
}

bool StepOrder::isUsedInStep(MmaAsyncOp product) const {
  return llvm::any_of(product->getUsers(), [&](Operation *user) {
    return llvm::any_of(user->getUsers(), [&](Operation *reader) {
      return !reader->hasTrait<OpTrait::IsTerminator>();
    });
  });
}

bool StepOrder::hasProductsLeft(Operation *except) const {
  return llvm::any_of(graph.getOps(), [&](Operation *op) {
    return isa<MmaAsyncOp>(op) && op != except && !isPlaced(op) &&
           !llvm::is_contained(rest, op);
  });
}

Operation *
StepOrder::findReady(function_ref<bool(Operation *)> isOfKind) const {
  for (Operation *op : graph.getOps())
    if (!isPlaced(op) && !llvm::is_contained(rest, op) && isOfKind(op) &&
        isReady(op))
      return op;
  return nullptr;
}

void StepOrder::place(Operation *op) {
  if (!placed.insert(op).second)
    return;
  for (Operation *before : graph.getPredecessors(op))
    place(before);
  order.push_back(op);
}

/// Places a product. One whose result the loop carries, and that no other op
/// waits for, can give the tensor cores work twice: now, and when the next wait
/// is over.
void StepOrder::placeProduct(MmaAsyncOp product) {
  auto [low, high] = product.getInnerRange();
  // The first part is a quarter, of whole instructions: a shorter one is over
  // too soon, and what a longer one reads has to be computed first.
  constexpr int64_t kParts = 4, kInstruction = 16;
  int64_t quarter = llvm::alignTo((high - low) / kParts, kInstruction);
  bool isInRegisters = isa<FragmentType>(product.getA().getType());
  if (!isInRegisters || high - low < kParts * kInstruction ||
      !hasProductsLeft(product))
    return place(product);
  OpBuilder builder(product);
  auto first = cast<MmaAsyncOp>(builder.clone(*product));
  first.setInner(ArrayRef<int64_t>{low, low + quarter});
  for (Operation *before : graph.getPredecessors(product))
    place(before);
  order.push_back(first);
  product.getAccMutable().assign(first.getToken());
  product.setInner(ArrayRef<int64_t>{low + quarter, high});
  rest.push_back(product);
}

void StepOrder::placeNeeds(Operation *op,
                           function_ref<bool(Operation *)> isLike,
                           int64_t more) {
  DenseSet<Operation *> allowed = {op}, others;
  graph.addDependents(allowed);
  for (Operation *other : graph.getOps())
    if (isLike(other) && other != op && !isPlaced(other))
      others.insert(other);
  graph.addDependents(others);
  for (Operation *user : graph.getOps())
    if (allowed.contains(user) && !others.contains(user))
      for (Operation *before : graph.getPredecessors(user)) {
        // A product's issue need not wait until another role has given back
        // the slot that its result will go to.
        if (!isLight(before) || !isReady(before) || allowed.contains(before) ||
            (isa<MmaAsyncOp>(op) && isa<AcquireOp>(before)))
          continue;
        if (countRegisters() + getResultRegisters(before) + more <= budget) {
          place(before);
          continue;
        }
        // The wait for what has no registers yet takes none.
        for (Operation *wait : graph.getPredecessors(before))
          if (isa<WaitOp>(wait))
            place(wait);
      }
}

bool StepOrder::isUrgent(Operation *op) const {
  auto product = dyn_cast<MmaAsyncOp>(op);
  return product && isUsedInStep(product) && !isPlaced(op) && isReady(op);
}

SmallVector<WaitMmaOp> StepOrder::getPending() const {
  SmallVector<WaitMmaOp> waits;
  for (Operation *op : order)
    if (isa<MmaAsyncOp>(op))
      for (Operation *user : op->getUsers())
        if (auto wait = dyn_cast<WaitMmaOp>(user); wait && !isPlaced(wait))
          waits.push_back(wait);
  return waits;
}

bool StepOrder::placeNext() {
  // At most this many results that only the next step reads are waited for at
  // the same time: the operands of the products are then released sooner.
  constexpr size_t kMostPending = 2;
  auto placeRest = [&] {
    for (Operation *product : rest)
      place(product);
    rest.clear();
  };
  auto placeWait = [&](WaitMmaOp wait) {
    placeNeeds(wait, llvm::IsaPred<WaitMmaOp>, /*more=*/0);
    place(wait);
  };
  if (Operation *op = findReady([&](Operation *op) { return isUrgent(op); })) {
    // Reads of shared memory after the issue of products are slow.
    int64_t results = 0;
    for (Operation *product : graph.getOps())
      if (isUrgent(product))
        results += getResultRegisters(product);
    placeNeeds(op, llvm::IsaPred<MmaAsyncOp>, results);
    place(op);
    return true;
  }
  if (Operation *op = findReady([](Operation *op) {
        return !isa<MmaAsyncOp, WaitMmaOp>(op) && !isLight(op);
      })) {
    // Warps wait for each other here; the rest of the products runs meanwhile.
    if (isa<ToSharedOp>(op))
      placeRest();
    place(op);
    return true;
  }
  SmallVector<WaitMmaOp> pending = getPending();
  if (Operation *op = findReady(llvm::IsaPred<MmaAsyncOp>);
      op && pending.size() < kMostPending) {
    placeProduct(cast<MmaAsyncOp>(op));
    return true;
  }
  if (!pending.empty()) {
    if (!hasProductsLeft(/*except=*/nullptr))
      placeRest();
    placeWait(pending.front());
    return true;
  }
  placeRest();
  for (Operation *op : graph.getOps())
    if (!isPlaced(op)) {
      place(op);
      return true;
    }
  return false;
}

void StepOrder::assign() {
  while (placeNext())
    LDBG() << "  placed " << order.back()->getName() << ": " << countRegisters()
           << " of " << budget << " registers live, " << getPending().size()
           << " products in flight, " << rest.size() << " second parts";
  for (auto [index, op] : llvm::enumerate(order))
    setPlace(op, /*stage=*/0, index);
}

/// Returns true if a step writes tiles to memory that its ops have of their
/// own. The next step overwrites that memory, so the tiles cannot cross to its
/// second stage; and the ops that two stages put in front of the loop would
/// need such memory once more.
static bool writesTiles(scf::ForOp loop) {
  return loop
      ->walk([](Operation *op) {
        bool isTile =
            isa<ToSharedOp>(op) ||
            (isa<LoadOp>(op) && isa<SharedType>(op->getResult(0).getType()));
        return isTile ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Schedules a loop with products. Adds to `late` the rings whose slots the
/// step takes from the iteration before, behind those of its own iteration.
static void schedule(scf::ForOp loop, SetVector<Value> &late) {
  BodyGraph graph(loop);
  SmallVector<Operation *> later = graph.getDependentProducts();
  auto isFirst = [](Operation *op) {
    return isa<MmaAsyncOp>(op) && !isInChain(op);
  };
  int64_t products = llvm::count_if(graph.getOps(), isFirst);
  LDBG() << "loop at " << loop.getLoc() << ": " << products
         << " asynchronous products, " << later.size()
         << " need another of the same step";
  if (later.empty()) {
    LDBG() << "  its order stays: nothing could run beside a product";
    return;
  }
  if (products - llvm::count_if(later, isFirst) > 1) {
    LDBG() << "  one stage, its ops in another order: several products need "
              "none of the step";
    return StepOrder(loop, graph).assign();
  }
  if (writesTiles(loop)) {
    LDBG() << "  one stage, its ops in another order: the tiles that a step "
              "writes are gone in the next";
    return StepOrder(loop, graph).assign();
  }

  // Stage 1: those products, what depends on them, and the slots they read or
  // write: a slot that is taken a step ahead may be the one still to be
  // written.
  DenseSet<Operation *> second(later.begin(), later.end());
  graph.addDependents(second);
  for (Operation *op : graph.getOps())
    if (isa<WaitOp, AcquireOp>(op) &&
        llvm::all_of(op->getUsers(),
                     [&](Operation *user) { return second.contains(user); }))
      second.insert(op);

  DenseSet<Operation *> ordered;
  int64_t order = 0;
  auto place = [&](auto &&isNext) {
    for (Operation *op : graph.getOps()) {
      if (ordered.contains(op) || !isNext(op))
        continue;
      ordered.insert(op);
      setPlace(op, second.contains(op), order++);
    }
  };

  // The issues of both stages, with the ops they need at once.
  DenseSet<Operation *> issues;
  for (Operation *op : graph.getOps())
    if (isa<MmaAsyncOp>(op) && !second.contains(op))
      issues.insert(op);
  graph.addDependences(issues);
  // Of several products of stage 1 only the first is among them: others have
  // results of their own, for which there are registers when it is over.
  auto end = std::find_if(later.begin() + 1, later.end(), isFirst);
  DenseSet<Operation *> laterIssues(later.begin(), end);
  graph.addDependences(laterIssues);
  auto placeIssues = [&] {
    place([&](Operation *op) { return issues.contains(op); });
  };
  auto placeLaterIssues = [&] {
    place([&](Operation *op) {
      return second.contains(op) && laterIssues.contains(op);
    });
  };
  if (loop->getParentOfType<LaunchOp>().getAlternating()) {
    // Whoever waits for both anyway gives back first what was there first.
    placeLaterIssues();
    placeIssues();
    place([&](Operation *op) { return second.contains(op); });
    place([](Operation *) { return true; });
    LDBG() << "  two stages whose products a warp waits for at once";
    return;
  }
  placeIssues();
  placeLaterIssues();
  for (Operation *op : graph.getOps())
    if (auto wait = dyn_cast<WaitOp>(op); wait && second.contains(op))
      late.insert(wait.getRing());
  // Ops that do not need the later products of the iteration before come next.
  DenseSet<Operation *> carried;
  for (auto [argument, yielded] :
       llvm::zip_equal(loop.getRegionIterArgs(), loop.getYieldedValues()))
    if (Operation *producer = yielded.getDefiningOp();
        producer && second.contains(producer))
      for (Operation *user : argument.getUsers())
        carried.insert(loop.getBody()->findAncestorOpInBlock(*user));
  graph.addDependents(carried);
  place([&](Operation *op) {
    return !second.contains(op) && !carried.contains(op);
  });
  place([&](Operation *op) { return second.contains(op); });
  place([](Operation *) { return true; });
  LDBG() << "  two stages: " << order - int64_t(second.size())
         << " ops of a step run beside " << second.size()
         << " of the step before";
}

/// Returns the ring whose slots `op` fills or empties; null: none.
static Value getRing(Operation *op) {
  return TypeSwitch<Operation *, Value>(op)
      .Case<AcquireOp, LoadAsyncOp, WaitOp, ReleaseOp, WidenIntoOp>(
          [](auto op) { return op.getRing(); })
      .Default(Value());
}

/// Schedules a loop that fills rings for the loops with products, in the order
/// in which these take the slots: those of `late` rings an iteration later. A
/// slot that is empty then does not wait for one that is needed after it.
static void scheduleFilling(scf::ForOp loop, const SetVector<Value> &late) {
  DenseSet<Operation *> second;
  bool hasFirst = false;
  for (Operation &op : loop.getBody()->without_terminator()) {
    Value ring = getRing(&op);
    bool hasNested = !ring && op.walk([](Operation *nested) {
                                  return getRing(nested)
                                             ? WalkResult::interrupt()
                                             : WalkResult::advance();
                                }).wasInterrupted();
    if (hasNested)
      return;
    if (ring && late.contains(ring))
      second.insert(&op);
    else
      hasFirst |= isa<AcquireOp>(op);
  }
  if (!hasFirst || second.empty())
    return;
  // What only the second stage needs is computed there.
  for (Operation &op : llvm::reverse(loop.getBody()->without_terminator()))
    if (isMemoryEffectFree(&op) && !op.use_empty() &&
        llvm::all_of(op.getUsers(), [&](Operation *user) {
          return second.contains(loop.getBody()->findAncestorOpInBlock(*user));
        }))
      second.insert(&op);
  int64_t order = 0;
  for (bool isSecond : {false, true})
    for (Operation &op : loop.getBody()->without_terminator())
      if (second.contains(&op) == isSecond)
        setPlace(&op, isSecond, order++);
  LDBG() << "loop at " << loop.getLoc() << ": fills " << late.size()
         << " rings an iteration later";
}

void Schedule::runOnOperation() {
  getOperation()->walk([](LaunchOp launch) {
    // If products are already asynchronous, their author chose the waits.
    if (launch->walk([](MmaAsyncOp) { return WalkResult::interrupt(); })
            .wasInterrupted()) {
      LDBG() << "launch at " << launch.getLoc()
             << ": its products are asynchronous already";
      return;
    }
    splitProducts(launch);
    moveReleases(launch);
    SmallVector<scf::ForOp> filling;
    SetVector<Value> late;
    launch->walk([&](scf::ForOp loop) {
      if (!loop.getBody()->getOps<scf::ForOp>().empty())
        return;
      schedule(loop, late);
      if (loop.getBody()->getOps<MmaAsyncOp>().empty())
        filling.push_back(loop);
    });
    // Bytes that become numbers of a late ring are late, too.
    launch->walk([&](WidenIntoOp widen) {
      auto wait = widen.getSource().getDefiningOp<WaitOp>();
      if (wait && late.contains(widen.getRing()))
        late.insert(wait.getRing());
    });
    for (scf::ForOp loop : filling)
      scheduleFilling(loop, late);
  });
}
