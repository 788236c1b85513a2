//===- Rings.cpp - Rings as slots and barriers in shared memory -----------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A ring of n slots has n barriers that say when a slot is full, then n that
// say when it is empty: mbarrier objects of 8 bytes (PTX ISA 9.7.13.15). Each
// use completes one phase of both. The phase of use u of slot u mod n has the
// parity of u / n; a thread that waits for the other parity waits for the phase
// before, which for the first uses of empty slots is always complete.
//
// A parity says nothing of which phase it is, so no thread may be a phase late:
// warps that wait until a slot is empty all arrive at its full barrier, and
// those that wait until it is full at its empty one. A warp that only waited
// could come when the slot was emptied again, and then wait for a use that
// never follows.
//
// Bulk copies write through the async proxy, and an arrival does not order
// them behind a thread's reads: those may still wait in a queue when the slot
// is written (PTX ISA, "Proxies"). So threads that read a slot themselves fence
// before they arrive.
//
// Rings whose copies leave out rows have one barrier more: a thread waits for
// the copy of a tile with such rows there, before zeros are written. A thread
// that acquires a slot which another ring shares waits until it is empty in
// both.
//
// On Ampere, where all threads of the block copy and read, rings have no
// barriers: a thread that waits for a slot waits for its own copies
// (cp.async.wait_group) and then for the other threads, and so does a thread
// that acquires a slot, unless all threads have met since the last release. A
// loop whose copies run ahead then has one barrier in a step
// (`--tile-prefetch`).
//
//===----------------------------------------------------------------------===//

#include "Rings.h"

#include "InlinePtx.h"
#include "Patterns.h"
#include "Roles.h"

#include "fovea/Dialect/Tile/IR/Proxies.h"
#include "fovea/Dialect/Tile/IR/SharedMemory.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace fovea::tile;

static Value constant(ImplicitLocOpBuilder &builder, int64_t value) {
  return getI32(builder, builder.getLoc(), value);
}

/// Returns `base + index * stride`.
static Value getAddress(ImplicitLocOpBuilder &builder, Value base, Value index,
                        int64_t stride) {
  Value offset =
      arith::MulIOp::create(builder, index, constant(builder, stride));
  return arith::AddIOp::create(builder, base, offset);
}

RingUse::RingUse(ImplicitLocOpBuilder &builder, Value ring,
                 ValueRange addresses, Value use) {
  int64_t stages = cast<RingType>(ring.getType()).getStages();
  Value number = arith::IndexCastOp::create(builder, builder.getI32Type(), use);
  Value round = number;
  index = constant(builder, 0);
  if (stages > 1) {
    Value divisor = constant(builder, stages);
    index = arith::RemUIOp::create(builder, number, divisor);
    round = arith::DivUIOp::create(builder, number, divisor);
  }
  slot = getAddress(builder, addresses[0], index,
                    getSlotStride(ring.getDefiningOp<RingOp>()));
  full = getAddress(builder, addresses[1], index, kBarrierBytes);
  empty = arith::AddIOp::create(builder, full,
                                constant(builder, stages * kBarrierBytes));
  parity = arith::AndIOp::create(builder, round, constant(builder, 1));
}

Value fovea::tile::getCutBarrier(ImplicitLocOpBuilder &builder, RingType ring,
                                 ValueRange addresses) {
  return arith::AddIOp::create(
      builder, addresses[1],
      constant(builder, 2 * ring.getStages() * kBarrierBytes));
}

/// Returns true if the threads that run `op` have met since the last op of kind
/// `Since`: every path from such an op to `op` passes a wait that is not in
/// `met`.
template <typename Since>
static bool haveMetSince(Operation *op,
                         const llvm::SmallPtrSetImpl<Operation *> &met) {
  auto contains = [](Operation *other) {
    return other->walk([](Since) { return WalkResult::interrupt(); })
        .wasInterrupted();
  };
  for (Operation *at = op; !isa<FunctionOpInterface>(at);
       at = at->getParentOp()) {
    for (Operation *before = at->getPrevNode(); before;
         before = before->getPrevNode()) {
      if (isa<WaitOp>(before) && !met.contains(before))
        return true;
      if (contains(before))
        return false;
    }
    // The op before may be in an earlier iteration.
    if (isa<LoopLikeOpInterface>(at->getParentOp()) &&
        contains(at->getParentOp()))
      return false;
  }
  return std::is_same_v<Since, ReleaseOp>;
}

/// Returns true if nothing reads a slot between its wait and its release.
static bool isUnread(ReleaseOp op) {
  auto wait = dyn_cast_or_null<WaitOp>(op->getPrevNode());
  return wait && wait.getRing() == op.getRing();
}

/// Returns true if only products of warp groups read a tile, or views of it.
static bool isReadByWgmma(Value tile) {
  return llvm::all_of(tile.getUsers(), [](Operation *use) {
    if (auto view = dyn_cast<ShiftRowsOp>(use))
      return isReadByWgmma(view.getResult());
    return readsByWgmma(use);
  });
}

/// Returns true if there may be one of `reads` in front of `op` with no proxy
/// fence behind it; `fences` has the releases with one.
static bool isReadSinceFence(ReleaseOp op,
                             const llvm::SmallPtrSetImpl<Operation *> &reads,
                             const llvm::SmallPtrSetImpl<Operation *> &fences) {
  for (Operation *before = op->getPrevNode(); before;
       before = before->getPrevNode()) {
    if (fences.contains(before) || endsWithProxyFence(before))
      return false;
    auto walked = before->walk([&](Operation *nested) {
      return reads.contains(nested) ? WalkResult::interrupt()
                                    : WalkResult::advance();
    });
    if (walked.wasInterrupted())
      return true;
  }
  return true;
}

/// Returns the number of warps that run `op`, each of which arrives once, or 1
/// for one thread.
static int64_t getNumWarps(Operation *op) {
  return isOneThread(op) ? 1 : getNumThreads(op) / kWarpSize;
}

/// Returns the number of those of them that have a use of the ring.
static int64_t getNumUsers(RingOp ring, Operation *op) {
  int64_t warps = getNumWarps(op);
  return isOneThread(op) ? warps : warps / ring.getNumGroups();
}

/// Returns the same as `getNumWarps` for a copy by TMA. A kernel without roles
/// reads what it loads, so that its warps wait for each other anyway.
static int64_t getNumLoadingWarps(Operation *op) {
  return op->getParentOfType<RoleOp>() ? getNumWarps(op) : 1;
}

RingReaders::RingReaders(Operation *root) {
  root->walk([&](FunctionOpInterface function) {
    bool hasRoles =
        function->walk([](RoleOp) { return WalkResult::interrupt(); })
            .wasInterrupted();
    if (hasRoles || getGpuArch(function).hasBulkCopies)
      return;
    function->walk([&](Operation *op) {
      if (auto ring = dyn_cast<RingOp>(op))
        readers[ring.getRing()].isOfBlock = true;
      if ((isa<AcquireOp>(op) && haveMetSince<ReleaseOp>(op, met)) ||
          (isa<WaitOp>(op) && haveMetSince<LoadAsyncOp>(op, met)))
        met.insert(op);
    });
  });
  root->walk([&](LoadAsyncOp load) {
    auto acquire = load.getSlot().getDefiningOp<AcquireOp>();
    if (load.getRuns() && acquire && acquire->getNextNode() == load &&
        !readers[load.getRing()].isOfBlock)
      late.insert_range(ArrayRef<Operation *>{acquire, load});
  });
  llvm::DenseMap<Value, llvm::SmallPtrSet<Operation *, 4>> readsByThreads;
  root->walk([&](RingOp op) {
    Reader &reader = readers[op.getRing()];
    reader.hasRows = hasRows(op);
    llvm::SmallPtrSet<Operation *, 4> programs;
    SmallVector<ReleaseOp> releases;
    bool isCopiedByTma = false;
    for (Operation *user : op.getRing().getUsers()) {
      if (auto release = dyn_cast<ReleaseOp>(user))
        releases.push_back(release);
      if (auto sharer = dyn_cast<RingOp>(user))
        reader.sharers.push_back(sharer);
      auto role = user->getParentOfType<RoleOp>();
      if (isa<ReleaseOp>(user) && programs.insert(role).second)
        reader.arrivals += getNumUsers(op, user);
      if (auto load = dyn_cast<LoadAsyncOp>(user)) {
        reader.isCopiedByThreads = isa<MemRefType>(load.getSource().getType());
        isCopiedByTma |= !reader.isCopiedByThreads;
        reader.copiers = reader.isCopiedByThreads ? getNumThreads(user)
                                                  : getNumLoadingWarps(user);
      }
      auto widen = dyn_cast<WidenIntoOp>(user);
      if (isa<WriteOp>(user))
        reader.copiers = getNumUsers(op, user) * kWarpSize;
      if (widen && widen.getRing() == op.getRing())
        reader.copiers = getNumUsers(op, user);
      if (isa<PublishOp>(user))
        reader.copiers = 1;
      auto wait = dyn_cast<WaitOp>(user);
      if (!wait)
        continue;
      reader.isWgmma &= isReadByWgmma(wait.getResult());
    }
    // A slot is full of copies by all blocks of a cluster, which wait until it
    // is empty in all of them.
    reader.blocks = op.getBlocksOfCluster();
    reader.arrivals *= reader.blocks;
    // The waits of WGMMA are for whole warps.
    for (ReleaseOp release : releases)
      if (reader.isWgmma && !isUnread(release))
        met.insert(release);
    if (isCopiedByTma)
      findReadsByThreads(op.getRing(), readsByThreads[op.getRing()]);
  });
  root->walk([&](ReleaseOp release) {
    auto reads = readsByThreads.find(release.getRing());
    if (reads != readsByThreads.end() && !reads->second.empty() &&
        !isUnread(release) && isReadSinceFence(release, reads->second, fences))
      fences.insert(release);
  });
}

void fovea::tile::emitArrive(OpBuilder &builder, Location loc, Value barrier) {
  emitPtx(builder, loc, "mbarrier.arrive.shared::cta.b64 _, [$0];", barrier);
}

void fovea::tile::emitWarpArrive(OpBuilder &builder, Operation *op,
                                 Value barrier, bool haveMet) {
  Location loc = op->getLoc();
  if (!haveMet)
    NVVM::SyncWarpOp::create(builder, loc, getI32(builder, loc, -1));
  emitPtx(builder, loc,
          "{\n.reg .pred first;\n"
          "setp.eq.u32 first, $1, 0;\n"
          "@first mbarrier.arrive.shared::cta.b64 _, [$0];\n}",
          {barrier, getLane(builder, op)});
}

void fovea::tile::emitArriveInCluster(OpBuilder &builder, Operation *op,
                                      Value barrier, int64_t blocks,
                                      bool haveMet) {
  Location loc = op->getLoc();
  auto arrive = [&](Value block) {
    emitPtx(builder, loc,
            "{\n.reg .b32 there;\n.reg .pred member;\n"
            "setp.lt.u32 member, $1, " +
                Twine(blocks) +
                ";\n"
                "@member mapa.shared::cluster.u32 there, $0, $1;\n"
                "@member mbarrier.arrive.shared::cluster.b64 _, [there];\n}",
            {barrier, block});
  };
  if (isOneThread(op)) {
    for (int64_t block = 0; block < blocks; ++block)
      arrive(getI32(builder, loc, block));
    return;
  }
  // Each of the first lanes arrives in a block.
  if (!haveMet)
    NVVM::SyncWarpOp::create(builder, loc, getI32(builder, loc, -1));
  arrive(getLane(builder, op));
}

void fovea::tile::emitArriveBeside(OpBuilder &builder, Operation *op,
                                   Value barrier) {
  if (getNumLoadingWarps(op) == 1)
    return;
  Location loc = op->getLoc();
  NVVM::SyncWarpOp::create(builder, loc, getI32(builder, loc, -1));
  emitPtx(builder, loc,
          "{\n.reg .pred first, beside;\n"
          "setp.eq.u32 first, $1, 0;\n"
          "setp.ne.and.u32 beside, $2, 0, first;\n"
          "@beside mbarrier.arrive.shared::cta.b64 _, [$0];\n}",
          {barrier, getLane(builder, op), getThread(builder, op)});
}

/// Waits until the phase of `parity` of a barrier is complete.
static void emitWait(ImplicitLocOpBuilder &builder, Operation *op,
                     Value barrier, Value parity) {
  // `try_wait` puts the thread to sleep.
  StringRef test = getGpuArch(op).hasBulkCopies ? "try_wait" : "test_wait";
  emitPtx(builder, builder.getLoc(),
          "{\n.reg .pred done;\n"
          "WAIT:\n"
          "mbarrier." +
              test +
              ".parity.shared::cta.b64 done, [$0], $1;\n"
              "@done bra DONE;\n"
              "bra WAIT;\n"
              "DONE:\n}",
          {barrier, parity});
}

/// Returns the descriptors by which the kernel of `op` loads tiles.
static SmallVector<Value> findTensorMaps(RingOp op) {
  llvm::SetVector<Value> maps;
  op->getParentOfType<FunctionOpInterface>()->walk([&](LoadAsyncOp load) {
    if (isa<TensorMapType>(load.getSource().getType()))
      maps.insert(load.getSource());
  });
  return maps.takeVector();
}

void RingReaders::acquire(ImplicitLocOpBuilder &builder, Operation *op,
                          Value ring, const RingUse &use) const {
  Value parity =
      arith::XOrIOp::create(builder, use.parity, constant(builder, 1));
  emitWait(builder, op, use.empty, parity);
  for (RingOp sharer : get(ring).sharers) {
    int64_t first = getBarrierOffset(sharer) +
                    sharer.getRing().getType().getStages() * kBarrierBytes;
    Value empty = getAddress(builder, getSharedAddress(builder, op, first),
                             use.index, kBarrierBytes);
    emitWait(builder, op, empty, parity);
  }
}

void RingReaders::acquireLate(ImplicitLocOpBuilder &builder, LoadAsyncOp load,
                              const RingUse &use) const {
  if (late.contains(load))
    acquire(builder, load, load.getRing(), use);
}

/// Lets the threads of the block meet, or those of its cluster, whose blocks
/// then have barriers that others arrive at; such a block does not end before
/// the others have arrived.
static void emitMeeting(ImplicitLocOpBuilder &builder, RingOp op) {
  if (!isInCluster(op))
    return emitBarrier(builder, op);
  auto meet = [&] {
    NVVM::ClusterArriveOp::create(builder, UnitAttr());
    NVVM::ClusterWaitOp::create(builder, UnitAttr());
  };
  meet();
  OpBuilder::InsertionGuard guard(builder);
  auto kernel = op->getParentOfType<gpu::GPUFuncOp>();
  builder.setInsertionPoint(kernel.getBody().back().getTerminator());
  meet();
}

namespace {

template <typename Op>
class RingPattern : public OpConversionPattern<Op> {
public:
  RingPattern(const TileTypeConverter &converter, MLIRContext *context,
              const RingReaders &readers)
      : OpConversionPattern<Op>(converter, context), readers(readers) {}

protected:
  const RingReaders &readers;
};

struct RingLowering : RingPattern<RingOp> {
  using RingPattern::RingPattern;
  LogicalResult
  matchAndRewrite(RingOp op, OneToNOpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder builder(op.getLoc(), rewriter);
    const RingReaders::Reader &reader = readers.get(op.getRing());
    // Where a mask keeps no key, a ring of keys only lends its memory.
    bool isMemory = llvm::all_of(op.getRing().getUsers(),
                                 llvm::IsaPred<ToSharedOp, RingOp>);
    if (!reader.arrivals && !isMemory)
      return op.emitOpError("expected a role that releases its slots");
    Value slots = getSharedAddress(builder, op, getSharedOffset(op));
    Value barriers = getSharedAddress(builder, op, getBarrierOffset(op));
    if (reader.isOfBlock) {
      rewriter.replaceOpWithMultiple(op, {ValueRange{slots, barriers}});
      return success();
    }
    // One fence and one barrier of the block make all rings visible.
    bool isLast = true;
    for (Operation *next = op->getNextNode(); next; next = next->getNextNode())
      isLast &= !isa<RingOp>(next);
    emitInOneThread(builder, op, [&](OpBuilder &nested) {
      ImplicitLocOpBuilder one(op.getLoc(), nested);
      int64_t stages = op.getRing().getType().getStages();
      SmallVector<int64_t> arrivals(stages, reader.copiers);
      arrivals.append(stages, std::max<int64_t>(reader.arrivals, 1));
      if (reader.hasRows)
        arrivals.push_back(1);
      for (auto [index, count] : llvm::enumerate(arrivals)) {
        Value barrier = arith::AddIOp::create(
            one, barriers, constant(one, int64_t(index) * kBarrierBytes));
        emitPtx(one, op.getLoc(), "mbarrier.init.shared::cta.b64 [$0], $1;",
                {barrier, constant(one, count)});
      }
      if (!isLast || !getGpuArch(op).hasBulkCopies)
        return;
      emitPtx(one, op.getLoc(), "fence.mbarrier_init.release.cluster;");
      // The first copies need not wait for their descriptors.
      for (Value map : findTensorMaps(op))
        emitPtx(one, op.getLoc(), "prefetch.tensormap [$0];",
                rewriter.getRemappedValue(map));
    });
    if (isLast)
      emitMeeting(builder, op);
    rewriter.replaceOpWithMultiple(op, {ValueRange{slots, barriers}});
    return success();
  }
};

/// An op on one use of a ring, whose result, if any, is the use's slot.
template <typename Op>
class UsePattern : public RingPattern<Op> {
public:
  using RingPattern<Op>::RingPattern;

  LogicalResult matchAndRewrite(
      Op op, typename Op::template GenericAdaptor<ArrayRef<ValueRange>> adaptor,
      ConversionPatternRewriter &rewriter) const final {
    ImplicitLocOpBuilder builder(op.getLoc(), rewriter);
    RingUse use(builder, op.getRing(), adaptor.getRing(),
                adaptor.getUse().front());
    emit(builder, op, use, this->readers.get(op.getRing()));
    if (op->getNumResults())
      rewriter.replaceOp(op, use.slot);
    else
      rewriter.eraseOp(op);
    return success();
  }

private:
  virtual void emit(ImplicitLocOpBuilder &builder, Op op, const RingUse &use,
                    const RingReaders::Reader &reader) const = 0;
};

struct AcquireLowering final : UsePattern<AcquireOp> {
  using UsePattern::UsePattern;

  void emit(ImplicitLocOpBuilder &builder, AcquireOp op, const RingUse &use,
            const RingReaders::Reader &reader) const override {
    if (reader.isOfBlock) {
      if (readers.mustMeet(op))
        emitBarrier(builder, op);
      return;
    }
    if (!readers.isLate(op))
      readers.acquire(builder, op, op.getRing(), use);
  }
};

struct WaitLowering final : UsePattern<WaitOp> {
  using UsePattern::UsePattern;

  void emit(ImplicitLocOpBuilder &builder, WaitOp op, const RingUse &use,
            const RingReaders::Reader &reader) const override {
    if (!reader.isOfBlock) {
      emitWait(builder, op, use.full, use.parity);
      if (reader.isCopiedByThreads && getGpuArch(op).hasBulkCopies)
        emitProxyFence(builder, op.getLoc());
    } else if (readers.mustMeet(op)) {
      NVVM::CpAsyncCommitGroupOp::create(builder);
      NVVM::CpAsyncWaitGroupOp::create(builder, 0);
      emitBarrier(builder, op);
    }
  }
};

struct ReleaseLowering final : UsePattern<ReleaseOp> {
  using UsePattern::UsePattern;

  void emit(ImplicitLocOpBuilder &builder, ReleaseOp op, const RingUse &use,
            const RingReaders::Reader &reader) const override {
    // A thread that acquires a slot of a block's ring meets the others.
    if (reader.isOfBlock)
      return;
    if (readers.mustFence(op))
      emitProxyFence(builder, op.getLoc());
    if (reader.blocks > 1)
      return emitArriveInCluster(builder, op, use.empty, reader.blocks,
                                 /*haveMet=*/!readers.mustMeet(op));
    if (isOneThread(op))
      return emitArrive(builder, op.getLoc(), use.empty);
    emitWarpArrive(builder, op, use.empty, /*haveMet=*/!readers.mustMeet(op));
  }
};

struct PublishLowering final : UsePattern<PublishOp> {
  using UsePattern::UsePattern;

  void emit(ImplicitLocOpBuilder &builder, PublishOp op, const RingUse &use,
            const RingReaders::Reader &reader) const override {
    auto offsets = getNumberOffsets(op.getNumbers().getTypes());
    for (auto [number, offset] : llvm::zip_equal(op.getNumbers(), offsets))
      emitPtx(builder, op.getLoc(),
              "st.shared.b" + Twine(number.getType().getIntOrFloatBitWidth()) +
                  " [$0 + " + Twine(offset) + "], $1;",
              {use.slot, number});
    emitArrive(builder, op.getLoc(), use.full);
  }
};

struct ReadNumbersLowering final : OpConversionPattern<ReadNumbersOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ReadNumbersOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    TypeRange types = op.getNumbers().getTypes();
    SmallVector<Value> numbers;
    for (auto [number, offset] :
         llvm::zip_equal(op.getNumbers(), getNumberOffsets(types)))
      numbers.push_back(number.use_empty()
                            ? Value()
                            : read(rewriter, op, adaptor.getSource().front(),
                                   number.getType(), offset));
    rewriter.replaceOp(op, numbers);
    return success();
  }

private:
  /// Lets the thread read that will arrive, and others ask it, for racecheck
  /// does not see that threads of a warp meet where ptxas knows that they do.
  static Value read(OpBuilder &builder, ReadNumbersOp op, Value address,
                    Type type, int64_t offset) {
    Location loc = op.getLoc();
    std::string bits = std::to_string(type.getIntOrFloatBitWidth()),
                place = std::to_string(offset);
    if (isOneThread(op))
      return emitPtx(builder, loc,
                     "ld.shared.b" + bits + " $0, [$1 + " + place + "];",
                     address, type)
          .front();
    Value number = emitPtx(builder, loc,
                           "{\n.reg .pred first;\n.reg .b" + bits +
                               " number;\n"
                               "setp.eq.u32 first, $2, 0;\n"
                               "mov.b" +
                               bits +
                               " number, 0;\n"
                               "@first ld.shared.b" +
                               bits + " number, [$1 + " + place +
                               "];\n"
                               "mov.b" +
                               bits + " $0, number;\n}",
                           {address, getLane(builder, op)}, type)
                       .front();
    return shuffle(builder, loc, number, NVVM::ShflKind::idx,
                   getI32(builder, loc, 0));
  }
};

} // namespace

void fovea::tile::populateRingPatterns(const TileTypeConverter &converter,
                                       RewritePatternSet &patterns,
                                       const RingReaders &readers) {
  patterns.add<RingLowering, AcquireLowering, WaitLowering, ReleaseLowering,
               PublishLowering>(converter, patterns.getContext(), readers);
  patterns.add<ReadNumbersLowering>(converter, patterns.getContext());
}
