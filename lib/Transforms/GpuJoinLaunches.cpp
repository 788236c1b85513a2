//===- GpuJoinLaunches.cpp - gpu-join-launches ----------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Analysis/Memory.h"
#include "fovea/Dialect/Machine/IR/Machine.h"
#include "fovea/Dialect/Tile/IR/Tile.h"
#include "fovea/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace fovea {
#define GEN_PASS_DEF_GPUJOINLAUNCHES
#include "fovea/Transforms/Passes.h.inc"

namespace {

/// A launch of blocks along x.
struct Candidate {
  gpu::LaunchOp launch;
  /// The launch or the condition around it.
  Operation *root;
  MemoryUse use;
  /// The threads of a block, those that a multiprocessor shall have room for,
  /// and whether the ones of a block wait for each other.
  int64_t threads;
  int64_t residentThreads;
  bool hasBarriers;
};

struct GpuJoinLaunches final : impl::GpuJoinLaunchesBase<GpuJoinLaunches> {
  void runOnOperation() override {
    getOperation()->walk([&](Block *block) {
      if (!isa<gpu::LaunchOp>(block->getParentOp()))
        joinIn(*block);
    });
  }

private:
  void joinIn(Block &block);
  Candidate join(Candidate &first, Candidate &second);
};

} // namespace

/// The most bytes of shared memory of a launch that is joined: no fewer blocks
/// fit into a multiprocessor.
static constexpr int64_t kMostShared = 4096;

/// Returns true if a launch has so little shared memory.
static bool isSmall(gpu::LaunchOp launch) {
  DataLayout layout = DataLayout::closest(launch);
  int64_t bytes = 0;
  for (BlockArgument buffer : launch.getWorkgroupAttributions()) {
    auto type = cast<MemRefType>(buffer.getType());
    bytes += type.getNumElements() *
             int64_t(layout.getTypeSize(type.getElementType()).getFixedValue());
  }
  return bytes <= kMostShared;
}

/// Returns the threads that a multiprocessor shall have room for, 0 if that is
/// not said; none if other attributes say how the kernel is to be compiled.
/// That memory is distinct says something about each of the joined parts only.
static std::optional<int64_t> getResidentThreads(gpu::LaunchOp launch,
                                                 int64_t threads) {
  int64_t resident = 0;
  for (NamedAttribute attr : launch->getDiscardableAttrs()) {
    if (attr.getName() == NVVM::NVVMDialect::getMinctasmAttrName())
      resident = cast<IntegerAttr>(attr.getValue()).getInt() * threads;
    else if (attr.getName() != machine::kDistinctMemoryAttrName &&
             attr.getName() !=
                 gpu::LaunchOp::getNumWorkgroupAttributionsAttrName())
      return std::nullopt;
  }
  return resident;
}

/// Returns true for a program of a block, whose ops have a layout over its
/// threads.
static bool isProgram(gpu::LaunchOp launch) {
  return launch
      .walk([](Operation *op) {
        return isa_and_nonnull<tile::TileDialect>(op->getDialect())
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Returns the launch that `op` is, or is the condition of; null if it is
/// neither.
static gpu::LaunchOp getLaunch(Operation &op) {
  if (auto launch = dyn_cast<gpu::LaunchOp>(op))
    return launch;
  auto branch = dyn_cast<scf::IfOp>(op);
  if (!branch || branch.elseBlock() || branch.getNumResults())
    return {};
  gpu::LaunchOp found;
  for (Operation &inner : branch.thenBlock()->without_terminator()) {
    if (auto launch = dyn_cast<gpu::LaunchOp>(inner); launch && !found)
      found = launch;
    else if (inner.getNumRegions() || !isPure(&inner))
      return {};
  }
  return found;
}

static std::optional<Candidate> getCandidate(Operation &op) {
  gpu::LaunchOp launch = getLaunch(op);
  if (!launch || launch.getAsyncToken() || launch.hasClusterSize() ||
      launch.getDynamicSharedMemorySize() ||
      launch.getNumPrivateAttributions() || !launch.getBody().hasOneBlock() ||
      !isSmall(launch) || isProgram(launch))
    return std::nullopt;
  for (Value size : {launch.getGridSizeY(), launch.getGridSizeZ(),
                     launch.getBlockSizeY(), launch.getBlockSizeZ()})
    if (getConstantIntValue(size) != 1)
      return std::nullopt;
  std::optional<int64_t> threads = getConstantIntValue(launch.getBlockSizeX());
  if (!threads)
    return std::nullopt;
  std::optional<int64_t> resident = getResidentThreads(launch, *threads);
  if (!resident)
    return std::nullopt;
  Candidate candidate = {launch, &op, {}, *threads, *resident, false};
  if (!candidate.use.add(launch))
    return std::nullopt;
  candidate.hasBarriers =
      launch.walk([](gpu::BarrierOp) { return WalkResult::interrupt(); })
          .wasInterrupted();
  return candidate;
}

/// Returns true if the kernel of two launches together accesses what they write
/// by one memref only.
static bool haveDistinctMemory(const Candidate &first,
                               const Candidate &second) {
  llvm::SmallSetVector<Value, 8> memrefs;
  for (const Candidate *candidate : {&first, &second})
    visitUsedValuesDefinedAbove(candidate->launch->getRegions(),
                                [&](OpOperand *use) {
                                  if (isa<MemRefType>(use->get().getType()))
                                    memrefs.insert(use->get());
                                });
  DenseSet<Value> bases;
  return llvm::all_of(memrefs, [&](Value memref) {
    Value base = getBase(memref);
    return bases.insert(base).second || !(first.use.writes.contains(base) ||
                                          second.use.writes.contains(base));
  });
}

static bool saysDistinct(const Candidate &candidate) {
  return candidate.launch->hasAttr(machine::kDistinctMemoryAttrName);
}

/// Returns true if all threads of a block that meet at a barrier have the
/// joined block to themselves, and memory is as distinct as it was.
static bool canJoin(const Candidate &first, const Candidate &second) {
  int64_t threads = std::max(first.threads, second.threads);
  if ((first.hasBarriers && first.threads != threads) ||
      (second.hasBarriers && second.threads != threads))
    return false;
  return (!saysDistinct(first) && !saysDistinct(second)) ||
         haveDistinctMemory(first, second);
}

void GpuJoinLaunches::joinIn(Block &block) {
  // A launch that could as well come behind all ops so far.
  std::optional<Candidate> last;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (isa<memref::AllocOp>(op) || (op.getNumRegions() == 0 && isPure(&op)))
      continue;
    MemoryUse use;
    if (last && (!use.add(&op) || last->use.conflictsWith(use)))
      last.reset();
    if (std::optional<Candidate> candidate = getCandidate(op))
      last = last && canJoin(*last, *candidate) ? join(*last, *candidate)
                                                : std::move(candidate);
  }
}

/// Moves the ops of a condition in front of it, and returns the number of
/// blocks, 0 if the condition is not met.
static Value takeBlocks(ImplicitLocOpBuilder &builder, Candidate &candidate) {
  gpu::LaunchOp launch = candidate.launch;
  if (candidate.root == launch)
    return launch.getGridSizeX();
  auto branch = cast<scf::IfOp>(candidate.root);
  Operation *before = &*builder.getInsertionPoint();
  for (Operation &op :
       llvm::make_early_inc_range(branch.thenBlock()->without_terminator()))
    if (&op != launch)
      op.moveBefore(before);
  Value none = arith::ConstantIndexOp::create(builder, 0);
  return arith::SelectOp::create(builder, branch.getCondition(),
                                 launch.getGridSizeX(), none);
}

/// Clones a launch's body for the block with this number, of so many, in which
/// it has the first threads.
static void cloneBody(ImplicitLocOpBuilder &builder, gpu::LaunchOp from,
                      gpu::LaunchOp to, Value block, Value blocks) {
  IRMapping mapping;
  auto map = [&](const gpu::KernelDim3 &source, Value x,
                 const gpu::KernelDim3 &target) {
    mapping.map(source.x, x);
    mapping.map(source.y, target.y);
    mapping.map(source.z, target.z);
  };
  map(from.getBlockIds(), block, to.getBlockIds());
  map(from.getGridSize(), blocks, to.getGridSize());
  map(from.getThreadIds(), to.getThreadIds().x, to.getThreadIds());
  map(from.getBlockSize(), from.getBlockSizeX(), to.getBlockSize());
  for (BlockArgument buffer : from.getWorkgroupAttributions())
    mapping.map(buffer,
                to.addWorkgroupAttribution(buffer.getType(), buffer.getLoc()));
  for (Operation &op : from.getBody().front().without_terminator())
    builder.clone(op, mapping);
}

Candidate GpuJoinLaunches::join(Candidate &first, Candidate &second) {
  ImplicitLocOpBuilder builder(
      FusedLoc::get(&getContext(),
                    {first.launch.getLoc(), second.launch.getLoc()}),
      second.root);
  Value one = arith::ConstantIndexOp::create(builder, 1);
  Value none = arith::ConstantIndexOp::create(builder, 0);
  Value firstBlocks = takeBlocks(builder, first);
  Value secondBlocks = takeBlocks(builder, second);
  Value blocks = arith::AddIOp::create(builder, firstBlocks, secondBlocks);
  int64_t threads = std::max(first.threads, second.threads);
  Value size = arith::ConstantIndexOp::create(builder, threads);

  Operation *root = nullptr;
  bool isConditional =
      first.root != first.launch && second.root != second.launch;
  if (isConditional) {
    Value isAny =
        arith::CmpIOp::create(builder, arith::CmpIPredicate::ne, blocks, none);
    auto branch = scf::IfOp::create(builder, isAny, /*withElseRegion=*/false);
    builder.setInsertionPoint(branch.thenBlock()->getTerminator());
    root = branch;
  }
  auto launch =
      gpu::LaunchOp::create(builder, blocks, one, one, size, one, one);
  if (!root)
    root = launch;
  builder.setInsertionPointToStart(&launch.getBody().front());
  Value block = launch.getBlockIds().x;
  Value isFirst = arith::CmpIOp::create(builder, arith::CmpIPredicate::ult,
                                        block, firstBlocks);
  auto emit = [&](OpBuilder &nested, Location loc, Candidate &from,
                  Value number, Value count) {
    ImplicitLocOpBuilder inner(loc, nested);
    if (from.threads < threads) {
      Value limit = arith::ConstantIndexOp::create(inner, from.threads);
      Value isThread = arith::CmpIOp::create(inner, arith::CmpIPredicate::ult,
                                             launch.getThreadIds().x, limit);
      auto branch =
          scf::IfOp::create(inner, isThread, /*withElseRegion=*/false);
      nested.setInsertionPointAfter(branch);
      inner.setInsertionPoint(branch.thenBlock()->getTerminator());
      cloneBody(inner, from.launch, launch, number, count);
    } else {
      cloneBody(inner, from.launch, launch, number, count);
      nested.setInsertionPointToEnd(inner.getInsertionBlock());
    }
    scf::YieldOp::create(nested, loc);
  };
  scf::IfOp::create(
      builder, isFirst,
      [&](OpBuilder &nested, Location loc) {
        emit(nested, loc, first, block, firstBlocks);
      },
      [&](OpBuilder &nested, Location loc) {
        Value number = arith::SubIOp::create(nested, loc, block, firstBlocks);
        emit(nested, loc, second, number, secondBlocks);
      });
  gpu::TerminatorOp::create(builder);
  Candidate joined = {launch,
                      root,
                      std::move(first.use),
                      threads,
                      std::max(first.residentThreads, second.residentThreads),
                      first.hasBarriers || second.hasBarriers};
  if (saysDistinct(first) || saysDistinct(second))
    launch->setAttr(machine::kDistinctMemoryAttrName, builder.getUnitAttr());
  if (int64_t resident = joined.residentThreads / threads; resident > 1)
    launch->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                    builder.getI32IntegerAttr(resident));
  joined.use.reads.insert_range(second.use.reads);
  joined.use.writes.insert_range(second.use.writes);
  first.root->erase();
  second.root->erase();
  ++numJoined;
  return joined;
}

} // namespace fovea
