//===- Rings.cpp - Rings of the interpreter -------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ThreadBlock.h"

#include "fovea/Dialect/Tile/IR/TensorMaps.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

#include <cstring>

using namespace mlir;
using namespace fovea;
using namespace fovea::interpreter;

namespace fovea::interpreter {

Status makeRing(Fiber &fiber, const Instruction &op) {
  auto ringOp = cast<tile::RingOp>(op.op);
  if (!fiber.block) {
    fiber.emitError(op.op) << "must stand in a tile.launch";
    return Status::Failed;
  }
  auto ring = std::make_shared<Ring>();
  const LaunchPlan &plan = fiber.block->getPlan();
  ring->op = ringOp;
  ring->offset = plan.memory.offsets.lookup(op.op);
  ring->numGroups = ringOp.getNumGroups();
  ring->waiters.resize(ring->numGroups);
  auto waiters = plan.waiters.find(op.op);
  if (waiters != plan.waiters.end())
    ring->waiters = waiters->second;
  ring->slots.resize(ringOp.getRing().getType().getStages());
  if (ringOp.getBase()) {
    ring->base = fiber.share<Ring>(op, 0);
    ring->base->sharers.push_back(ring.get());
  }
  ring->number = fiber.block->rings.size();
  fiber.block->rings.push_back(ring);
  return fiber.setObject(op, ring);
}

} // namespace fovea::interpreter

/// Emits an error at an op on a ring, with a note at the ring.
static InFlightDiagnostic emitRingError(Fiber &fiber, Operation *op,
                                        const Ring &ring) {
  InFlightDiagnostic diagnostic = fiber.emitError(op);
  diagnostic.attachNote(ring.op->getLoc()) << "this ring";
  return diagnostic;
}

/// Returns the tile of a slot.
static std::shared_ptr<SharedTile> makeTile(const std::shared_ptr<Ring> &ring,
                                            int64_t use, bool isWaited) {
  auto tile = std::make_shared<SharedTile>();
  tile->type = tile::RingOp(ring->op).getRing().getType().getTile();
  tile->offset = ring->getOffset(use);
  tile->ring = ring;
  tile->use = use;
  tile->isWaited = isWaited;
  return tile;
}

/// Returns true if the use is one that the role's group may have.
static bool isOwnUse(const Fiber &fiber, const Ring &ring, int64_t use) {
  return fiber.role->numGroups == 1 || ring.numGroups == 1 ||
         ring.getGroup(use) == fiber.role->group;
}

static Status block(Fiber &fiber, std::string obstacle) {
  fiber.role->obstacle = std::move(obstacle);
  return Status::Blocked;
}

/// Returns true if every role that waits on the ring, or on one that shares its
/// slots, has released the previous use.
static bool isFree(Ring &ring, int64_t use) {
  int64_t previous = use - int64_t(ring.slots.size());
  if (previous < 0)
    return true;
  Slot &slot = ring.getSlot(use);
  auto hasReleased = [&](const Runner &waiter) {
    return slot.hasReleased(waiter, previous);
  };
  ArrayRef<Runner> waiters = ring.getWaiters(use);
  return !waiters.empty() && llvm::all_of(waiters, hasReleased) &&
         llvm::all_of(ring.sharers,
                      [&](Ring *sharer) { return isFree(*sharer, use); });
}

/// Checks that the role, and no other, has read the tile in whose place it is
/// about to write: that of the same use of the ring whose slots these are.
static Status checkShared(Fiber &fiber, const Instruction &op, const Ring &ring,
                          int64_t use) {
  const std::shared_ptr<Ring> &base = ring.base;
  if (!base)
    return Status::Next;
  bool isOnlyReader =
      llvm::all_of(base->getWaiters(use), [&](const Runner &waiter) {
        return waiter.first == fiber.role->op;
      });
  if (!isOnlyReader || use >= fiber.role->getUses(*base, use).nextWait) {
    emitRingError(fiber, op.op, ring)
        << "acquires use " << use << " of a ring that shares slots, "
        << (isOnlyReader ? "before the role has waited for that use of the "
                           "other ring"
                         : "which another role reads in the other ring");
    return Status::Failed;
  }
  Operation *reader = findReader(*fiber.role, [&](const SharedTile &tile) {
    return tile.ring == base && tile.use == use;
  });
  if (reader) {
    fiber.emitError(op.op)
            .append("acquires use ", use,
                    " of a ring that shares slots, while the other ring's is "
                    "read")
            .attachNote(reader->getLoc())
        << "by this, which no wait covers yet";
    return Status::Failed;
  }
  return Status::Next;
}

/// Makes a tile NaN, so that it shows if it is read before it is written; but
/// for the panels that the blocks `arrived` of a cluster have copied already.
static void clearTile(ThreadBlock &block, tile::SharedType type, int64_t offset,
                      int64_t blocks, uint64_t arrived) {
  char *base = block.getMemory().data() + offset;
  int64_t bytes = Format::get(type).getBytes();
  for (int64_t row = 0; row < type.getShape()[0]; ++row)
    for (int64_t column = 0; column < type.getShape()[1]; ++column)
      if (!(arrived >> (column / type.getPanelColumns() % blocks) & 1))
        std::memset(base + type.getByteOffset(row, column), 0xff, bytes);
}

static Status acquire(Fiber &fiber, const Instruction &op) {
  auto ring = fiber.share<Ring>(op, 0);
  int64_t use = fiber.getInt(op, 1);
  if (!ring->producer)
    ring->producer = fiber.role;
  if (ring->producer->op != fiber.role->op) {
    emitRingError(fiber, op.op, *ring)
        << "acquires a slot of a ring that another role fills";
    return Status::Failed;
  }
  if (ring->reuser) {
    emitRingError(fiber, op.op, *ring)
            .append(
                "acquires a slot of a ring whose memory is in use otherwise")
            .attachNote(ring->reuser->getLoc())
        << "reused here";
    return Status::Failed;
  }
  RingUses &uses = fiber.role->getUses(*ring, use);
  if (use != uses.nextAcquire || !isOwnUse(fiber, *ring, use)) {
    emitRingError(fiber, op.op, *ring)
        << "acquires use " << use << " of the ring, expected "
        << uses.nextAcquire << ": uses count from 0";
    return Status::Failed;
  }
  if (checkShared(fiber, op, *ring, use) != Status::Next)
    return Status::Failed;
  Slot &slot = ring->getSlot(use);
  bool isFreeInAll =
      llvm::all_of(fiber.block->getRings(*ring),
                   [&](Ring *each) { return each && isFree(*each, use); });
  if (!isFreeInAll)
    return block(
        fiber, llvm::formatv("for use {0} of its ring to be released, so that "
                             "use {1} may begin",
                             use - int64_t(ring->slots.size()), use));
  uses.nextAcquire += ring->numGroups;
  // Another warp group may have acquired the slot before.
  if (slot.use != use) {
    slot.state = Slot::Acquired;
    slot.use = use;
    slot.op = op.op;
    slot.written = 0;
  }
  std::shared_ptr<SharedTile> tile = makeTile(ring, use, /*isWaited=*/false);
  // Groups that run apart write all rows, each when it is its turn.
  if (fiber.role->numGroups == 1 || ring->numGroups > 1)
    clearTile(*fiber.block, tile->type, tile->offset,
              ring->op.getBlocksOfCluster(),
              slot.arrivedUse == use ? slot.arrived : 0);
  return fiber.setObject(op, tile);
}

/// Returns the memref that a copy along `dims` reads or writes, through a
/// tensor map or not; null after an error.
static std::shared_ptr<MemRef> readGlobalOperand(Fiber &fiber,
                                                 const Instruction &op,
                                                 size_t index,
                                                 ArrayRef<int64_t> dims) {
  if (!isa<tile::TensorMapType>(op.op->getOperand(index).getType()))
    return fiber.share<MemRef>(op, index);
  auto &map = fiber.get<TensorMap>(op, index);
  if (map.dims == dims)
    return map.source;
  fiber.emitError(op.op) << "copies along dimensions " << dims
                         << " by a tensor map of " << map.dims;
  return nullptr;
}

/// Returns the acquired slot that an op fills: its operand `index`, which is
/// followed by the ring and the use; null after an error.
static Slot *getSlotToFill(Fiber &fiber, const Instruction &op, size_t index) {
  auto &tile = fiber.get<SharedTile>(op, index);
  auto ring = fiber.share<Ring>(op, index + 1);
  int64_t use = fiber.getInt(op, index + 2);
  if (tile.ring != ring || tile.use != use || tile.isWaited) {
    InFlightDiagnostic diagnostic = emitRingError(fiber, op.op, *ring);
    diagnostic << "signals use " << use << " of the ring, but its slot is ";
    if (!tile.ring)
      diagnostic << "no ring's";
    else if (tile.ring != ring)
      diagnostic << "another ring's";
    else
      diagnostic << "that of use " << tile.use
                 << (tile.isWaited ? ", which was waited for" : "");
    return nullptr;
  }
  Slot &slot = ring->getSlot(use);
  if (slot.state != Slot::Acquired || slot.use != use) {
    emitRingError(fiber, op.op, *ring)
        << "fills use " << use << " of the ring, which "
        << (slot.use == use ? "is filled already" : "is over");
    return nullptr;
  }
  return &slot;
}

/// Checks that a copy begins at a multiple of 16 bytes of a tensor's rows.
static Status checkColumn(Fiber &fiber, const Instruction &op, int64_t column,
                          int64_t elementBytes) {
  if (column * elementBytes % tile::kTensorMapAlignment == 0)
    return Status::Next;
  fiber.emitError(op.op) << "copies from column " << column
                         << " of elements of " << elementBytes
                         << " bytes on, but expected a multiple of "
                         << tile::kTensorMapAlignment << " bytes";
  return Status::Failed;
}

static Status loadAsync(Fiber &fiber, const Instruction &op) {
  auto load = cast<tile::LoadAsyncOp>(op.op);
  size_t rank = load.getIndices().size();
  Slot *slot = getSlotToFill(fiber, op, 1 + rank);
  if (!slot)
    return Status::Failed;
  std::shared_ptr<MemRef> source =
      readGlobalOperand(fiber, op, 0, load.getDims());
  if (!source)
    return Status::Failed;
  slot->state = Slot::Filling;
  slot->op = op.op;
  SmallVector<int64_t, 5> indices;
  for (size_t index = 0; index < rank; ++index)
    indices.push_back(fiber.getInt(op, 1 + index));
  // Rows that lie apart have all columns.
  if (!load.getRuns() &&
      checkColumn(fiber, op, indices.back(),
                  load.getSlot().getType().getElementBytes()) != Status::Next)
    return Status::Failed;
  RowRange rows = getRows(fiber, op, 4 + rank, load.getRows().size());
  std::optional<Runs> runs;
  if (load.getRuns()) {
    FailureOr<Runs> found = findRuns(
        fiber, op, load, load.getSlot().getType().getShape().front(), rows);
    if (failed(found))
      return Status::Failed;
    runs = std::move(*found);
  }
  fiber.block->startCopy(load, fiber, source, indices,
                         fiber.share<Ring>(op, 2 + rank),
                         fiber.getInt(op, 3 + rank), rows, std::move(runs));
  return Status::Next;
}

static Status write(Fiber &fiber, const Instruction &op) {
  std::shared_ptr<Fragment> fragment = readFragment(fiber, op, 0);
  Slot *slot = fragment ? getSlotToFill(fiber, op, 1) : nullptr;
  if (!slot)
    return Status::Failed;
  auto &tile = fiber.get<SharedTile>(op, 1);
  if (checkOwnRows(fiber, op.op, tile, fragment->shape[0]) != Status::Next)
    return Status::Failed;
  auto column =
      static_cast<int64_t>(cast<tile::WriteOp>(op.op).getColumn().value_or(0));
  int64_t rows = tile.type.getShape()[0], columns = tile.type.getShape()[1];
  const Role &role = *fiber.role;
  RowRange own = role.getOwnRows(fragment->shape[0]);
  std::vector<Scalar> elements(rows * columns);
  for (int64_t row = own.first; row < own.end; ++row)
    for (int64_t at = 0; at < columns; ++at)
      elements[(row + tile.firstRow) * columns + at] =
          fragment->elements[row * fragment->shape[1] + column + at];
  uint64_t group = uint64_t(1) << role.group;
  if (slot->written & group) {
    emitRingError(fiber, op.op, *fiber.share<Ring>(op, 2))
        << "fills use " << slot->use
        << " of the ring, which its warp group has filled already";
    return Status::Failed;
  }
  writeTile(*fiber.block, tile.type, tile.offset, elements,
            {own.first + tile.firstRow, own.end + tile.firstRow});
  slot->written |= group;
  if (fiber.share<Ring>(op, 2)->numGroups == 1 &&
      slot->written != llvm::maskTrailingOnes<uint64_t>(role.numGroups))
    return Status::Next;
  slot->state = Slot::Full;
  slot->op = op.op;
  fiber.block->wake();
  return Status::Next;
}

static Status publish(Fiber &fiber, const Instruction &op) {
  auto numbers = cast<tile::PublishOp>(op.op).getNumbers();
  Slot *slot = getSlotToFill(fiber, op, numbers.size());
  if (!slot)
    return Status::Failed;
  auto &tile = fiber.get<SharedTile>(op, numbers.size());
  char *memory = fiber.block->getMemory().data() + tile.offset;
  for (auto [index, offset] :
       llvm::enumerate(tile::getNumberOffsets(numbers.getTypes())))
    Format::get(numbers[index].getType())
        .write(memory + offset, {.i = fiber.getInt(op, index)});
  slot->state = Slot::Full;
  slot->op = op.op;
  fiber.block->wake();
  return Status::Next;
}

static Status readNumbers(Fiber &fiber, const Instruction &op) {
  auto &tile = fiber.get<SharedTile>(op, 0);
  if (checkTile(fiber, op.op, tile) != Status::Next)
    return Status::Failed;
  TypeRange types = op.op->getResultTypes();
  const char *memory = fiber.block->getMemory().data() + tile.offset;
  for (auto [index, offset] : llvm::enumerate(tile::getNumberOffsets(types)))
    fiber.result(op, index).scalar =
        Format::get(types[index]).read(memory + offset);
  return Status::Next;
}

static Status widenInto(Fiber &fiber, const Instruction &op) {
  Slot *slot = getSlotToFill(fiber, op, 1);
  if (!slot)
    return Status::Failed;
  std::vector<Scalar> elements = readWidened(fiber, op);
  if (elements.empty())
    return Status::Failed;
  auto &tile = fiber.get<SharedTile>(op, 1);
  writeTile(*fiber.block, tile.type, tile.offset, elements);
  slot->state = Slot::Full;
  slot->op = op.op;
  fiber.block->wake();
  return Status::Next;
}

static Status wait(Fiber &fiber, const Instruction &op) {
  auto ring = fiber.share<Ring>(op, 0);
  int64_t use = fiber.getInt(op, 1);
  RingUses &uses = fiber.role->getUses(*ring, use);
  if (use != uses.nextWait || !isOwnUse(fiber, *ring, use)) {
    emitRingError(fiber, op.op, *ring)
        << "waits for use " << use << " of the ring, expected " << uses.nextWait
        << ": uses count from 0";
    return Status::Failed;
  }
  Slot &slot = ring->getSlot(use);
  if (slot.use != use || slot.state != Slot::Full)
    return block(fiber,
                 llvm::formatv("for use {0} of its ring to be full", use));
  uses.nextWait += ring->numGroups;
  uses.held[use] = op.op;
  return fiber.setObject(op, makeTile(ring, use, /*isWaited=*/true));
}

static Status release(Fiber &fiber, const Instruction &op) {
  auto ring = fiber.share<Ring>(op, 0);
  int64_t use = fiber.getInt(op, 1);
  RingUses &uses = fiber.role->getUses(*ring, use);
  auto held = uses.held.find(use);
  if (held == uses.held.end()) {
    emitRingError(fiber, op.op, *ring)
        << "releases use " << use << " of the ring, which this role "
        << (use >= 0 && use < uses.nextWait ? "has released already"
                                            : "has not waited for");
    return Status::Failed;
  }
  Operation *reader = findReader(*fiber.role, [&](const SharedTile &tile) {
    return tile.ring == ring && tile.use == use;
  });
  if (reader) {
    fiber.emitError(op.op)
            .append("releases use ", use, " of the ring while it is read")
            .attachNote(reader->getLoc())
        << "by this, which no wait covers yet";
    return Status::Failed;
  }
  uses.held.erase(held);
  ring->getSlot(use).released[fiber.role->getRunner()] = use;
  fiber.block->wakeCluster();
  return Status::Next;
}

static Status storeAsync(Fiber &fiber, const Instruction &op) {
  auto storeOp = cast<tile::StoreAsyncOp>(op.op);
  Store store;
  store.op = op.op;
  store.source = fiber.share<SharedTile>(op, 0);
  store.target = readGlobalOperand(fiber, op, 1, storeOp.getDims());
  if (!store.target || checkTile(fiber, op.op, *store.source) != Status::Next)
    return Status::Failed;
  for (size_t index = 0; index < storeOp.getIndices().size(); ++index)
    store.indices.push_back(fiber.getInt(op, 2 + index));
  if (checkColumn(fiber, op, store.indices.back(),
                  store.source->type.getElementBytes()) != Status::Next)
    return Status::Failed;
  if (storeOp.getValid()) {
    store.valid = fiber.getInt(op, 2 + storeOp.getIndices().size());
    int64_t dim = storeOp.getDims().front();
    int64_t row = store.indices[dim], size = store.target->sizes[dim];
    if (*store.valid > 0 &&
        row + tile::countPlaces(op.op, *store.valid) > size) {
      fiber.emitError(op.op)
          << "has " << *store.valid << " valid rows from row " << row
          << " on, beyond the memref's " << size;
      return Status::Failed;
    }
  }
  fiber.role->stores.push_back(std::move(store));
  return Status::Next;
}

static Status waitStores(Fiber &fiber, const Instruction &op) {
  int64_t pending = cast<tile::WaitStoresOp>(op.op).getPending();
  std::deque<Store> &stores = fiber.role->stores;
  while (int64_t(stores.size()) > pending) {
    if (!stores.front().isDone &&
        complete(fiber, stores.front()) != Status::Next)
      return Status::Failed;
    stores.pop_front();
  }
  return Status::Next;
}

/// Checks the driver's requirements of a tensor map.
static Status tensorMap(Fiber &fiber, const Instruction &op) {
  constexpr int64_t kAlignment = 16;
  auto map = std::make_shared<TensorMap>();
  auto mapOp = cast<tile::TensorMapOp>(op.op);
  map->source = fiber.share<MemRef>(op, 0);
  SmallVector<int64_t> dims(mapOp.getDims());
  if (mapOp.getClipped()) {
    auto clipped = std::make_shared<MemRef>(*map->source);
    int64_t row = dims.front(),
            rows = tile::countPlaces(
                op.op,
                mapOp.getResult().getType().getTile().getShape().front());
    int64_t stride = clipped->strides[row];
    clipped->offset -= rows * stride;
    clipped->sizes[row] += rows;
    clipped->sizes.insert(clipped->sizes.begin() + row + 1, rows);
    clipped->strides.insert(clipped->strides.begin() + row + 1, stride);
    for (int64_t &dim : dims)
      dim += dim >= row;
    map->source = clipped;
  }
  map->dims = dims;
  int64_t bytes = map->source->format.getBytes();
  if (map->source->offset * bytes % kAlignment) {
    fiber.emitError(op.op) << "expected a tensor that starts at a multiple of "
                           << kAlignment << " bytes, got "
                           << map->source->offset * bytes;
    return Status::Failed;
  }
  ArrayRef<int64_t> strides = map->source->strides;
  for (auto [dim, stride] : llvm::enumerate(strides.drop_back()))
    if (map->source->sizes[dim] > 1 && stride * bytes % kAlignment) {
      fiber.emitError(op.op)
          << "expected a stride of dimension " << dim << " that is a multiple "
          << "of " << kAlignment << " bytes, got " << stride * bytes;
      return Status::Failed;
    }
  return fiber.setObject(op, map);
}

void interpreter::addRingHandlers(llvm::StringMap<Handler> &handlers) {
  handlers["tile.ring"] = inLaunch<makeRing>;
  handlers["tile.acquire"] = inLaunch<acquire>;
  handlers["tile.load_async"] = inLaunch<loadAsync>;
  handlers["tile.write"] = inLaunch<write>;
  handlers["tile.widen_into"] = inLaunch<widenInto>;
  handlers["tile.publish"] = inLaunch<publish>;
  handlers["tile.read_numbers"] = inLaunch<readNumbers>;
  handlers["tile.wait"] = inLaunch<wait>;
  handlers["tile.release"] = inLaunch<release>;
  handlers["tile.store_async"] = inLaunch<storeAsync>;
  handlers["tile.wait_stores"] = inLaunch<waitStores>;
  handlers["tile.tensor_map"] = tensorMap;
}
