//===- TileLaunchToGpu.cpp - convert-tile-launch-to-gpu -------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Conversion/Passes.h"
#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Dialect/Tile/IR/SharedMemory.h"
#include "fovea/Dialect/Tile/IR/TensorMaps.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace fovea {
#define GEN_PASS_DEF_TILELAUNCHTOGPU
#include "fovea/Conversion/Passes.h.inc"

using namespace tile;

/// Returns the threads of a block that runs `launch`: those of its roles, if it
/// has any.
static int64_t getNumThreads(LaunchOp launch) {
  int64_t warps = 0;
  launch.walk([&](RoleOp role) { warps += role.getWarps(); });
  return kWarpSize * (warps ? warps : launch.getWarps());
}

namespace {
struct TileLaunchToGpu final : impl::TileLaunchToGpuBase<TileLaunchToGpu> {
  void runOnOperation() override {
    SmallVector<LaunchOp> launches;
    getOperation()->walk([&](LaunchOp launch) { launches.push_back(launch); });
    for (LaunchOp launch : launches) {
      if (failed(convert(launch)))
        return signalPassFailure();
      ++numLaunches;
    }
  }

private:
  LogicalResult convert(LaunchOp launch);
  LogicalResult takeOperands(LaunchOp launch, OpBuilder &builder);
  void useTensorMaps(LaunchOp launch, OpBuilder &builder);
  static void useClusterIds(gpu::LaunchOp launch);
  gpu::LaunchOp createLaunch(LaunchOp launch, OpBuilder &builder, Value blocks,
                             int64_t sharedBytes);
};

} // namespace

/// Makes the body use the launch's operands themselves, cast to the types of
/// the body's arguments.
LogicalResult TileLaunchToGpu::takeOperands(LaunchOp launch,
                                            OpBuilder &builder) {
  for (OpOperand &operand : launch->getOpOperands()) {
    if (operand.getOperandNumber() < launch.getGrid().size())
      continue;
    BlockArgument argument = launch.getTiedArgument(operand);
    Type from = operand.get().getType(), to = argument.getType();
    if (!isa<MemRefType>(from))
      return launch.emitOpError("expected memrefs, got ")
             << from << "; bufferize first";
    Value memref = operand.get();
    if (from != to) {
      if (!memref::CastOp::areCastCompatible(from, to))
        return launch.emitOpError("expected an operand of innermost stride 1, "
                                  "got ")
               << from;
      memref = memref::CastOp::create(builder, launch.getLoc(), to, memref);
    }
    argument.replaceAllUsesWith(memref);
  }
  return success();
}

/// Lets a store to a tensor map write those rows of its tile that are in front
/// of the map's bounds.
static void clipRows(StoreAsyncOp store) {
  Location loc = store.getLoc();
  OpBuilder builder(store);
  // Rows along two dimensions are clipped along the first one.
  int64_t rowDim = store.getDims().front(), inner = getInnerRows(store),
          size = countPlaces(store,
                             store.getSource().getType().getShape().front());
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0),
        extent = arith::ConstantIndexOp::create(builder, loc, size);
  Value valid = arith::MaxSIOp::create(builder, loc, store.getValid(), zero);
  if (inner > 1)
    valid = arith::DivUIOp::create(
        builder, loc, valid,
        arith::ConstantIndexOp::create(builder, loc, inner));
  valid = arith::MinSIOp::create(builder, loc, valid, extent);
  SmallVector<Value> indices(store.getIndices());
  Value &row = indices[rowDim];
  row = arith::AddIOp::create(builder, loc, row, valid);
  indices.insert(indices.begin() + rowDim + 1,
                 arith::SubIOp::create(builder, loc, extent, valid));
  SmallVector<int64_t> dims = llvm::map_to_vector(
      store.getDims(), [&](int64_t dim) { return dim + (dim >= rowDim); });
  StoreAsyncOp::create(builder, loc, store.getSource(), store.getTarget(),
                       indices, /*valid=*/Value(), dims, store.getAdd(),
                       store.getInnerAttr(), /*used=*/IntegerAttr());
  store.erase();
}

/// Makes copies that only TMA executes use descriptors instead of the memref.
void TileLaunchToGpu::useTensorMaps(LaunchOp launch, OpBuilder &builder) {
  DenseMap<std::tuple<Value, Type, Attribute, Attribute, Attribute, int>, Value>
      maps;
  auto describe = [&](OpOperand &memref, SharedType tile,
                      DenseI64ArrayAttr dims, IntegerAttr inner,
                      IntegerAttr used = {}, bool isClipped = false) {
    auto source = dyn_cast<MemRefType>(memref.get().getType());
    if (!source || !suitsTensorMap(source, dims, tile))
      return;
    Value &map = maps[{memref.get(), tile, dims, inner, used, int(isClipped)}];
    if (!map) {
      auto type = TensorMapType::get(
          &getContext(), getTensorMapRank(source.getRank() + isClipped, tile),
          tile);
      map = TensorMapOp::create(builder, memref.getOwner()->getLoc(), type,
                                memref.get(), isClipped, dims, inner, used);
      ++numTensorMaps;
    }
    memref.set(map);
  };
  launch.walk([&](Operation *op) {
    if (auto load = dyn_cast<LoadAsyncOp>(op))
      describe(load.getSourceMutable(), load.getCopiedTile(),
               load.getDimsAttr(), load.getInnerAttr());
    else if (auto store = dyn_cast<StoreAsyncOp>(op))
      describe(store.getTargetMutable(), store.getSource().getType(),
               store.getDimsAttr(), store.getInnerAttr(), store.getUsedAttr(),
               store.needsClippedMap());
  });
  launch.walk([](StoreAsyncOp store) {
    if (store.needsClippedMap() &&
        isa<TensorMapType>(store.getTarget().getType()))
      clipRows(store);
  });
}

/// Creates the launch of `blocks` blocks, or clusters, whose body begins with
/// the grid's indices.
gpu::LaunchOp TileLaunchToGpu::createLaunch(LaunchOp launch, OpBuilder &builder,
                                            Value blocks, int64_t sharedBytes) {
  Location loc = launch.getLoc();
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  Value threads =
      arith::ConstantIndexOp::create(builder, loc, getNumThreads(launch));
  Value shared;
  if (sharedBytes)
    shared = arith::ConstantIntOp::create(builder, loc, sharedBytes, 32);
  auto cluster = static_cast<int32_t>(launch.getBlocksOfCluster());
  if (cluster > 1)
    blocks = builder.createOrFold<arith::MulIOp>(
        loc, blocks, arith::ConstantIndexOp::create(builder, loc, cluster));
  auto result = gpu::LaunchOp::create(builder, loc, blocks, one, one, threads,
                                      one, one, shared);
  if (cluster > 1)
    result->setAttr(NVVM::NVVMDialect::getClusterDimAttrName(),
                    builder.getDenseI32ArrayAttr({cluster, 1, 1}));
  if (std::optional<StringRef> name = launch.getKernel())
    result.setFunctionAttr(FlatSymbolRefAttr::get(&getContext(), *name));

  // A grid has up to 2^31 - 1 blocks along x, but few along y and z.
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&result.getBody().front());
  gpu::TerminatorOp::create(builder, loc);
  builder.setInsertionPointToStart(&result.getBody().front());
  Type i32 = builder.getI32Type(), index = builder.getIndexType();
  auto toI32 = [&](Value value) -> Value {
    return arith::IndexCastUIOp::create(builder, loc, i32, value);
  };
  Value block = result.getBlockIds().x, rest;
  if (cluster > 1)
    block = gpu::ClusterIdOp::create(builder, loc, gpu::Dimension::x);
  for (auto [dim, size] : llvm::enumerate(launch.getGrid())) {
    BlockArgument argument = launch.getBody().getArgument(dim);
    bool isLast = dim + 1 == launch.getGrid().size();
    if (isLast && dim == 0) {
      argument.replaceAllUsesWith(block);
      break;
    }
    if (!rest)
      rest = toI32(block);
    Value place = rest;
    if (!isLast) {
      Value narrow = toI32(size);
      place = arith::RemUIOp::create(builder, loc, rest, narrow);
      rest = arith::DivUIOp::create(builder, loc, rest, narrow);
    }
    argument.replaceAllUsesWith(
        arith::IndexCastUIOp::create(builder, loc, index, place));
  }
  return result;
}

LogicalResult TileLaunchToGpu::convert(LaunchOp launch) {
  int64_t threads = getNumThreads(launch);
  if (threads > machine::kLargestBlock)
    return launch.emitOpError("has ")
           << threads / kWarpSize << " warps in all, but a block has at "
           << "most " << machine::kLargestBlock / kWarpSize;
  machine::TargetAttr target = machine::getTarget(launch);
  FailureOr<int64_t> sharedBytes =
      placeSharedMemory(launch, getSharedMemoryLimit(launch));
  if (failed(sharedBytes))
    return failure();

  OpBuilder builder(launch);
  Location loc = launch.getLoc();
  Value blocks = launch.getGrid().front();
  for (Value size : launch.getGrid().drop_front())
    blocks = builder.createOrFold<arith::MulIOp>(loc, blocks, size);
  // The driver rejects a launch without blocks.
  APInt count;
  if (!matchPattern(blocks, m_ConstantInt(&count))) {
    Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
    Value any = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne,
                                      blocks, zero);
    auto branch =
        scf::IfOp::create(builder, loc, any, /*withElseRegion=*/false);
    builder.setInsertionPoint(branch.thenBlock()->getTerminator());
  } else if (count.isZero()) {
    launch.erase();
    return success();
  }
  if (failed(takeOperands(launch, builder)))
    return failure();
  if (target && target.isGpu() && target.getGpuArch().hasBulkCopies)
    useTensorMaps(launch, builder);
  gpu::LaunchOp result = createLaunch(launch, builder, blocks, *sharedBytes);
  Block &body = launch.getBody().front();
  body.getTerminator()->erase();
  Block &inside = result.getBody().front();
  inside.getOperations().splice(inside.getTerminator()->getIterator(),
                                body.getOperations());
  launch.erase();
  useClusterIds(result);
  return success();
}

/// Replaces the numbers of blocks in their clusters, which lie along x.
void TileLaunchToGpu::useClusterIds(gpu::LaunchOp launch) {
  SmallVector<ClusterRankOp> ranks;
  launch.walk([&](ClusterRankOp op) { ranks.push_back(op); });
  for (ClusterRankOp op : ranks) {
    OpBuilder builder(op);
    op.replaceAllUsesWith(
        gpu::ClusterBlockIdOp::create(builder, op.getLoc(), gpu::Dimension::x)
            .getResult());
    op.erase();
  }
}

} // namespace fovea
