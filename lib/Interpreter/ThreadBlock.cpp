//===- ThreadBlock.cpp - One block of a launch ----------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ThreadBlock.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InterleavedRange.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::interpreter;

int64_t Ring::getOffset(int64_t use) const {
  return offset + use % int64_t(slots.size()) * getSlotStride(tile::RingOp(op));
}

RingUses &Role::getUses(Ring &ring, int64_t use) {
  int64_t group = ring.getGroup(use);
  return rings.try_emplace({&ring, group}, RingUses{group, group, {}})
      .first->second;
}

ThreadBlock::ThreadBlock(Machine &machine, tile::LaunchOp launch,
                         const LaunchPlan &plan, ArrayRef<int64_t> grid,
                         ArrayRef<int64_t> index, Cluster &cluster,
                         int64_t rank)
    : machine(machine), launch(launch), plan(plan), grid(grid),
      cluster(cluster), rank(rank), number(0), memory(plan.memory.bytes) {
  for (int64_t dim = grid.size() - 1; dim >= 0; --dim)
    number = number * grid[dim] + index[dim];
  number = number * launch.getBlocksOfCluster() + rank;
  uint64_t seed = machine.options.seed;
  std::seed_seq mixed = {seed, seed >> 32, uint64_t(number),
                         uint64_t(machine.launch)};
  random.seed(mixed);
  const int64_t rates[] = {0, 2, 32};
  eagerness = seed ? rates[draw(3)] : 0;
  turn = seed ? int64_t(1) << draw(8) : std::numeric_limits<int64_t>::max();
  isFair = seed && draw(2);
}

int64_t ThreadBlock::draw(int64_t count) { return random() % count; }

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

std::string ThreadBlock::formatIndex(int64_t number) const {
  int64_t blocks = tile::LaunchOp(launch).getBlocksOfCluster();
  std::string suffix =
      blocks > 1 ? llvm::formatv(" rank {0}", number % blocks).str() : "";
  number /= blocks;
  SmallVector<int64_t> index;
  for (int64_t size : grid) {
    index.push_back(number % size);
    number /= size;
  }
  return llvm::formatv("({0})", llvm::interleaved(index)).str() + suffix;
}

void ThreadBlock::describe(Diagnostic &note, const Role *role) const {
  note << "in block " << formatIndex(number) << " of this launch";
  if (auto op = dyn_cast_or_null<tile::RoleOp>(role ? role->op : nullptr))
    note << ", role \"" << op.getName() << "\"";
  if (role && role->numGroups > 1)
    note << ", warp group " << role->group;
  if (machine.options.seed)
    note << ", seed " << machine.options.seed;
}

Status ThreadBlock::reportDeadlock() {
  SmallVector<Role *> blocked;
  for (const std::unique_ptr<Role> &role : roles)
    if (!role->isFinished && !role->obstacle.empty())
      blocked.push_back(role.get());
  auto getOp = [](Role *role) {
    const Frame &frame = role->fiber->stack.back();
    return frame.code->instructions[frame.next].op;
  };
  InFlightDiagnostic diagnostic =
      blocked.front()->fiber->emitError(getOp(blocked.front()));
  diagnostic << "waits for ever: " << blocked.front()->obstacle;
  for (Role *role : ArrayRef(blocked).drop_front()) {
    Diagnostic &note = diagnostic.attachNote(getOp(role)->getLoc());
    if (auto op = dyn_cast<tile::RoleOp>(role->op))
      note << "role \"" << op.getName() << "\" ";
    if (role->numGroups > 1)
      note << "warp group " << role->group << " ";
    note << "waits here: " << role->obstacle;
  }
  return Status::Failed;
}

//===----------------------------------------------------------------------===//
// Schedule
//===----------------------------------------------------------------------===//

void ThreadBlock::wake() {
  for (const std::unique_ptr<Role> &role : roles)
    role->isBlocked = false;
}

bool ThreadBlock::runRoles(Fiber &fiber, const Instruction &op) {
  auto [entry, isNew] = started.try_emplace(op.op);
  if (isNew)
    for (const Instruction &roleOp : op.regions[0]->instructions) {
      int64_t numGroups = plan.getNumGroups(roleOp.op);
      for (int64_t group = 0; group < numGroups; ++group) {
        Role *role = roles.emplace_back(std::make_unique<Role>()).get();
        role->op = roleOp.op;
        role->group = group;
        role->numGroups = numGroups;
        role->fiber =
            std::make_unique<Fiber>(machine, fiber.values, this, role);
        role->fiber->push(roleOp.regions[0], nullptr);
        priority.push_back(random());
        entry->second.push_back(role);
      }
    }
  if (!llvm::all_of(entry->second,
                    [](const Role *role) { return role->isFinished; }))
    return false;
  started.erase(op.op);
  return true;
}

Role &ThreadBlock::getNextGroup(const Role &role) {
  // The groups of a role stand one behind the other.
  auto place = llvm::find_if(
      roles, [&](const auto &each) { return each.get() == &role; });
  size_t first = place - roles.begin() - role.group;
  return *roles[first + (role.group + 1) % role.numGroups];
}

Role *ThreadBlock::pickRole() {
  SmallVector<size_t> ready;
  for (auto [index, role] : llvm::enumerate(roles))
    if (!role->isFinished && !role->isBlocked)
      ready.push_back(index);
  if (ready.empty())
    return nullptr;
  if (isFair)
    return roles[ready[draw(ready.size())]].get();
  if (machine.options.seed)
    return roles[*llvm::max_element(ready,
                                    [&](size_t a, size_t b) {
                                      return priority[a] < priority[b];
                                    })]
        .get();
  return roles[ready.front()].get();
}

void ThreadBlock::start(const Code *program, std::vector<Datum> values) {
  Role *main = roles.emplace_back(std::make_unique<Role>()).get();
  main->op = launch;
  main->fiber = std::make_unique<Fiber>(machine, std::move(values), this, main);
  main->fiber->push(program, nullptr);
  priority.push_back(0);
}

Status ThreadBlock::run() {
  Role *main = roles.front().get();
  wake();
  for (const std::unique_ptr<Role> &role : roles)
    role->isOutOfTurn = false;
  while (true) {
    if (draw(64) < eagerness) {
      if (!copies.empty() && draw(2)) {
        if (completeCopy(draw(copies.size())) != Status::Next)
          return Status::Failed;
      } else if (completeEarly() != Status::Next) {
        return Status::Failed;
      }
    }
    Role *role = pickRole();
    if (!role) {
      if (main->isFinished)
        return finish();
      bool mayGoOn = cluster.getBlocks().size() > 1 ||
                     llvm::any_of(roles, [](const auto &role) {
                       return role->isOutOfTurn;
                     });
      if (copies.empty())
        return mayGoOn ? Status::Blocked : reportDeadlock();
      size_t late = machine.options.seed ? draw(copies.size()) : 0;
      if (completeCopy(late) != Status::Next)
        return Status::Failed;
      continue;
    }
    role->obstacle.clear();
    Status status = role->fiber->run(0, isFair ? 1 + draw(turn) : turn);
    if (status == Status::Failed)
      return status;
    role->isBlocked = status == Status::Blocked;
    if (role->fiber->stack.empty() && finishRole(*role) != Status::Next)
      return Status::Failed;
  }
}

//===----------------------------------------------------------------------===//
// Asynchronous work
//===----------------------------------------------------------------------===//

void ThreadBlock::startCopy(tile::LoadAsyncOp op, Fiber &fiber,
                            std::shared_ptr<MemRef> source,
                            ArrayRef<int64_t> indices,
                            std::shared_ptr<Ring> ring, int64_t use,
                            RowRange rows, std::optional<Runs> runs) {
  Copy &copy = copies.emplace_back();
  copy.op = op;
  copy.fiber = &fiber;
  copy.source = std::move(source);
  copy.indices.assign(indices.begin(), indices.end());
  copy.ring = std::move(ring);
  copy.use = use;
  copy.rows = rows;
  copy.runs = std::move(runs);
}

Status ThreadBlock::completeCopy(size_t index) {
  Copy copy = std::move(copies[index]);
  copies.erase(copies.begin() + index);
  tile::SharedType type = copy.op.getSlot().getType();
  std::vector<Scalar> elements;
  Status status =
      copy.runs
          ? readRuns(*copy.fiber, copy.op, *copy.source, *copy.runs,
                     copy.op.getDims(), type.getShape(), elements, copy.rows)
          : readGlobal(*copy.fiber, copy.op, *copy.source, copy.indices,
                       copy.op.getDims(), type.getShape(), elements, copy.rows);
  if (status != Status::Next)
    return Status::Failed;
  return arrive(copy, elements);
}

/// Writes what was copied to the slots that it is for.
Status ThreadBlock::arrive(const Copy &copy, ArrayRef<Scalar> elements) {
  tile::LoadAsyncOp op = copy.op;
  tile::SharedType type = op.getSlot().getType();
  SmallVector<Ring *, 4> rings = getRings(*copy.ring);
  Panels panels = {rings.size() > 1 ? rank : 0,
                   static_cast<int64_t>(rings.size())};
  for (auto [number, ring] : llvm::enumerate(rings)) {
    ThreadBlock &block =
        rings.size() > 1 ? *cluster.getBlocks()[number] : *this;
    if (block.isEnded) {
      copy.fiber->emitError(op)
          << "copies to block " << formatIndex(block.number)
          << " of its cluster, which has ended";
      return Status::Failed;
    }
    Slot &slot = ring->getSlot(copy.use);
    if (slot.arrivedUse != copy.use) {
      slot.arrivedUse = copy.use;
      slot.arrived = 0;
      slot.arrivedIndices = copy.indices;
      slot.arrivedSource = copy.source->getElement(copy.source->offset);
    }
    if (slot.arrivedIndices != copy.indices ||
        slot.arrivedSource != copy.source->getElement(copy.source->offset)) {
      copy.fiber->emitError(op)
          << "copies from [" << llvm::interleaved(copy.indices) << "] to use "
          << copy.use
          << " of the ring, to which another block of the cluster has copied "
             "from ["
          << llvm::interleaved(slot.arrivedIndices) << "]";
      return Status::Failed;
    }
    slot.arrived |= uint64_t(1) << panels.rank;
    writeTile(block, type, ring->getOffset(copy.use), elements, {}, panels);
    // The block itself waits for what it has started to copy as well.
    if (slot.arrived == llvm::maskTrailingOnes<uint64_t>(panels.blocks))
      slot.state = Slot::Full;
    block.wake();
  }
  cluster.wake();
  return Status::Next;
}

void ThreadBlock::wakeCluster() {
  wake();
  cluster.wake();
}

SmallVector<Ring *, 4> ThreadBlock::getRings(Ring &ring) {
  if (ring.op.getBlocksOfCluster() == 1)
    return {&ring};
  SmallVector<Ring *, 4> found;
  for (const std::unique_ptr<ThreadBlock> &block : cluster.getBlocks())
    found.push_back(ring.number < block->rings.size()
                        ? block->rings[ring.number].get()
                        : nullptr);
  return found;
}

Status ThreadBlock::completeEarly() {
  Role &role = *roles[draw(roles.size())];
  for (Store &store : role.stores)
    if (!store.isDone && draw(2))
      return complete(*role.fiber, store);
  for (Product &product : role.products)
    if (!product.isDone)
      return compute(*role.fiber, product);
  return Status::Next;
}

//===----------------------------------------------------------------------===//
// Ends
//===----------------------------------------------------------------------===//

Status ThreadBlock::finishRole(Role &role) {
  role.isFinished = true;
  if (!role.products.empty() || !role.stores.empty()) {
    role.fiber->emitError(role.products.empty() ? role.stores.front().op
                                                : role.products.front().op)
        << "is never waited for";
    return Status::Failed;
  }
  for (const auto &[ofRing, uses] : role.rings)
    if (!uses.held.empty()) {
      auto [use, op] = *uses.held.begin();
      role.fiber->emitError(op)
          << "gives use " << use << " of the ring, which is never released";
      return Status::Failed;
    }
  wake();
  return Status::Next;
}

Status ThreadBlock::finish() {
  isEnded = true;
  cluster.wake();
  for (const std::shared_ptr<Ring> &ring : rings)
    for (const Slot &slot : ring->slots) {
      if (slot.arrivedUse > slot.use) {
        roles.front()->fiber->emitError(ring->op)
            << "is filled by the cluster for use " << slot.arrivedUse
            << ", which this block does not begin";
        return Status::Failed;
      }
      if (slot.state == Slot::Acquired) {
        ring->producer->fiber->emitError(slot.op)
            << "gives use " << slot.use
            << " of the ring, which nothing is copied to";
        return Status::Failed;
      }
      for (const Runner &waiter : ring->getWaiters(slot.use)) {
        if (slot.hasReleased(waiter, slot.use))
          continue;
        ring->producer->fiber->emitError(slot.op)
            << "fills use " << slot.use << " of the ring, which "
            << (isa<tile::RoleOp>(waiter.first)
                    ? "role \"" +
                          cast<tile::RoleOp>(waiter.first).getName().str() +
                          "\""
                    : "the program")
            << " never waits for";
        return Status::Failed;
      }
    }
  return Status::Next;
}

//===----------------------------------------------------------------------===//
// Clusters
//===----------------------------------------------------------------------===//

Cluster::Cluster(Machine &machine, tile::LaunchOp launch,
                 const LaunchPlan &plan, ArrayRef<int64_t> grid,
                 ArrayRef<int64_t> index) {
  for (int64_t rank = 0; rank < launch.getBlocksOfCluster(); ++rank)
    blocks.push_back(std::make_unique<ThreadBlock>(machine, launch, plan, grid,
                                                   index, *this, rank));
}

void Cluster::start(const Code *program, const std::vector<Datum> &values) {
  for (const std::unique_ptr<ThreadBlock> &block : blocks)
    block->start(program, values);
}

Status Cluster::run() {
  int64_t before;
  do {
    before = events;
    for (const std::unique_ptr<ThreadBlock> &block : blocks)
      if (!block->hasEnded() && block->run() == Status::Failed)
        return Status::Failed;
  } while (events != before);
  bool haveEnded =
      llvm::all_of(blocks, [](const auto &block) { return block->hasEnded(); });
  return haveEnded ? Status::Next : Status::Blocked;
}

Status Cluster::reportDeadlock() {
  return (*llvm::find_if(blocks,
                         [](const auto &block) { return !block->hasEnded(); }))
      ->reportDeadlock();
}
