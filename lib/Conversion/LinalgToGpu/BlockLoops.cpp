//===- BlockLoops.cpp - linalg by the threads of one block ----------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockLoops.h"

#include "PointLoops.h"
#include "fovea/Analysis/Loops.h"
#include "fovea/Analysis/VectorPlan.h"

#include "fovea/Dialect/Machine/IR/Machine.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace fovea;

/// The number of warps up to which every thread reads their values sooner than
/// it shuffles them.
static constexpr int64_t kFewWarps = 16;

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// Returns `value` of the lane whose number differs in the bits `mask`.
static Value shuffle(ImplicitLocOpBuilder &builder, Value value, int64_t mask) {
  Type type = value.getType();
  Type word = builder.getI32Type();
  if (type == word) {
    Value lanes =
        arith::ConstantIntOp::create(builder, word, machine::kWarpSize);
    Value offset = arith::ConstantIntOp::create(builder, word, mask);
    return gpu::ShuffleOp::create(builder, value, offset, lanes,
                                  gpu::ShuffleMode::XOR)
        .getShuffleResult();
  }
  if (type.isIndex()) {
    value = arith::IndexCastOp::create(builder, builder.getI64Type(), value);
    return arith::IndexCastOp::create(builder, type,
                                      shuffle(builder, value, mask));
  }
  unsigned width = type.getIntOrFloatBitWidth();
  Type bits = builder.getIntegerType(width);
  if (isa<FloatType>(type)) {
    value = arith::BitcastOp::create(builder, bits, value);
    return arith::BitcastOp::create(builder, type,
                                    shuffle(builder, value, mask));
  }
  if (width < 32) {
    value = arith::ExtUIOp::create(builder, word, value);
    return arith::TruncIOp::create(builder, bits,
                                   shuffle(builder, value, mask));
  }
  Value half = arith::ConstantIntOp::create(builder, bits, 32);
  Value low = arith::TruncIOp::create(builder, word, value);
  Value high = arith::TruncIOp::create(
      builder, word, arith::ShRUIOp::create(builder, value, half));
  low = arith::ExtUIOp::create(builder, bits, shuffle(builder, low, mask));
  high = arith::ExtUIOp::create(builder, bits, shuffle(builder, high, mask));
  return arith::OrIOp::create(builder, low,
                              arith::ShLIOp::create(builder, high, half));
}

Value fovea::combine(OpBuilder &builder, Operation *combiner, Value a,
                     Value b) {
  Operation *op = builder.clone(*combiner);
  op->setOperands({a, b});
  return op->getResult(0);
}

/// Returns the reduction by `combiner` that warps have an instruction for, of
/// integers of 32 bits.
static std::optional<gpu::AllReduceOperation>
getWarpReduction(Operation *combiner) {
  using Kind = std::optional<gpu::AllReduceOperation>;
  if (!combiner->getResult(0).getType().isInteger(32))
    return std::nullopt;
  return llvm::TypeSwitch<Operation *, Kind>(combiner)
      .Case([](arith::AddIOp) { return gpu::AllReduceOperation::ADD; })
      .Case([](arith::MinSIOp) { return gpu::AllReduceOperation::MINSI; })
      .Case([](arith::MaxSIOp) { return gpu::AllReduceOperation::MAXSI; })
      .Default(std::nullopt);
}

/// Combines the values of `lanes` neighbours of a warp, a power of two.
static Value reduceLanes(ImplicitLocOpBuilder &builder, Operation *combiner,
                         Value value, int64_t lanes = machine::kWarpSize) {
  if (auto kind = getWarpReduction(combiner);
      kind && lanes == machine::kWarpSize)
    return gpu::SubgroupReduceOp::create(builder, value, *kind,
                                         /*uniform=*/true);
  for (int64_t mask = lanes / 2; mask > 0; mask /= 2)
    value = combine(builder, combiner, value, shuffle(builder, value, mask));
  return value;
}

/// Combines the first `count` elements of `values`, each with its neighbour,
/// then pairs, and so on.
static Value combineAll(ImplicitLocOpBuilder &builder, Operation *combiner,
                        Value values, int64_t count) {
  SmallVector<Value> parts;
  for (int64_t index = 0; index < count; ++index)
    parts.push_back(memref::LoadOp::create(
        builder, values,
        Value(arith::ConstantIndexOp::create(builder, index))));
  while (parts.size() > 1) {
    SmallVector<Value> pairs;
    for (size_t first = 0; first + 1 < parts.size(); first += 2)
      pairs.push_back(
          combine(builder, combiner, parts[first], parts[first + 1]));
    if (parts.size() % 2 != 0)
      pairs.push_back(parts.back());
    parts = std::move(pairs);
  }
  return parts.front();
}

SmallVector<Value> fovea::reduceBlock(OpBuilder &outer,
                                      const BlockThread &thread,
                                      ArrayRef<Operation *> combiners,
                                      ValueRange partials) {
  gpu::LaunchOp launch = thread.launch;
  ImplicitLocOpBuilder builder(launch.getLoc(), outer);
  std::optional<int64_t> count = getConstantIntValue(thread.count);
  bool isInWarp = count && *count <= machine::kWarpSize;
  int64_t together = isInWarp ? *count : machine::kWarpSize;
  SmallVector<Value> ofWarp;
  for (auto [combiner, partial] : llvm::zip_equal(combiners, partials))
    ofWarp.push_back(reduceLanes(builder, combiner, partial, together));
  if (isInWarp)
    return ofWarp;

  // Each warp leaves its values in shared memory, and each combines all of
  // them.
  auto space = gpu::AddressSpaceAttr::get(builder.getContext(),
                                          gpu::AddressSpace::Workgroup);
  SmallVector<Value> memory;
  for (Value value : ofWarp)
    memory.push_back(launch.addWorkgroupAttribution(
        MemRefType::get(machine::kLargestBlock / machine::kWarpSize,
                        value.getType(), MemRefLayoutAttrInterface(), space),
        builder.getLoc()));
  Value lanes = arith::ConstantIndexOp::create(builder, machine::kWarpSize);
  Value zero = arith::ConstantIndexOp::create(builder, 0);
  Value warp = arith::DivUIOp::create(builder, thread.id, lanes);
  Value lane = arith::RemUIOp::create(builder, thread.id, lanes);
  Value warps = arith::DivUIOp::create(builder, thread.count, lanes);
  Value isFirst =
      arith::CmpIOp::create(builder, arith::CmpIPredicate::eq, lane, zero);
  scf::IfOp::create(builder, isFirst, [&](OpBuilder &inner, Location loc) {
    for (auto [value, values] : llvm::zip_equal(ofWarp, memory))
      memref::StoreOp::create(inner, loc, value, values, warp);
    scf::YieldOp::create(inner, loc);
  });
  gpu::BarrierOp::create(builder);
  bool areFew = count && *count <= kFewWarps * machine::kWarpSize;
  SmallVector<Value> results;
  for (auto [combiner, values] : llvm::zip_equal(combiners, memory)) {
    if (areFew) {
      results.push_back(
          combineAll(builder, combiner, values, *count / machine::kWarpSize));
      continue;
    }
    Value isWarp =
        arith::CmpIOp::create(builder, arith::CmpIPredicate::ult, lane, warps);
    auto branch = scf::IfOp::create(
        builder, isWarp,
        [&](OpBuilder &inner, Location loc) {
          Value other = memref::LoadOp::create(inner, loc, values, lane);
          scf::YieldOp::create(inner, loc, other);
        },
        [&](OpBuilder &inner, Location loc) {
          Value neutral = arith::ConstantOp::create(
              inner, loc, *arith::getNeutralElement(combiner));
          scf::YieldOp::create(inner, loc, neutral);
        });
    results.push_back(reduceLanes(builder, combiner, branch.getResult(0)));
  }
  return results;
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

/// Returns the op that combines the terms of each output, or none if one is
/// unknown.
static SmallVector<Operation *> getCombiners(linalg::LinalgOp op) {
  SmallVector<Operation *> combiners;
  auto generic = dyn_cast<linalg::GenericOp>(op.getOperation());
  if (!generic)
    return {};
  for (unsigned index = 0; index < op.getNumDpsInits(); ++index) {
    Operation *combiner = getCombiner(generic, index);
    if (!combiner)
      return {};
    combiners.push_back(combiner);
  }
  return combiners;
}

/// Emits an op that has one point, the threads sharing its terms.
static void emitBlockSum(OpBuilder &builder, const BlockThread &thread,
                         linalg::LinalgOp op, ValueRange sizes,
                         ArrayRef<Operation *> combiners) {
  Location loc = op.getLoc();
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  SmallVector<Value> partials =
      llvm::map_to_vector(combiners, [&](Operation *combiner) -> Value {
        return arith::ConstantOp::create(builder, loc,
                                         *arith::getNeutralElement(combiner));
      });
  // Threads take terms in the order of the loops: neighbouring threads,
  // neighbouring terms.
  Value terms = getProduct(builder, loc, sizes);
  auto loop = scf::ForOp::create(
      builder, loc, thread.id, terms, thread.count, partials,
      [&](OpBuilder &inner, Location, Value term, ValueRange carried) {
        SmallVector<Value> ivs = delinearize(inner, loc, term, sizes);
        scf::YieldOp::create(inner, loc, emitTerm(inner, op, ivs, carried));
      });
  SmallVector<Value> totals =
      reduceBlock(builder, thread, combiners, loop.getResults());
  Value isFirst = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                        thread.id, zero);
  scf::IfOp::create(builder, loc, isFirst, [&](OpBuilder &inner, Location) {
    SmallVector<Value> origin(sizes.size(), zero);
    updateOutputs(inner, op, origin, [&](size_t index, Value old) {
      return combine(inner, combiners[index], old, totals[index]);
    });
    scf::YieldOp::create(inner, loc);
  });
}

void fovea::emitBlockLoops(OpBuilder &builder, const BlockThread &thread,
                           linalg::LinalgOp op) {
  Location loc = op.getLoc();
  if (!writesApart(op)) {
    Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
    Value isFirst = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::eq, thread.id, zero);
    scf::IfOp::create(builder, loc, isFirst, [&](OpBuilder &inner, Location) {
      emitLoops(inner, op);
      scf::YieldOp::create(inner, loc);
    });
    return;
  }
  SmallVector<Value> sizes = getLoopSizes(builder, op);
  SmallVector<unsigned> dims = getPointDims(op);
  SmallVector<Value> parallel =
      llvm::map_to_vector(dims, [&](unsigned dim) { return sizes[dim]; });
  Value points = getProduct(builder, loc, parallel);
  if (matchPattern(points, m_One()) && dims.size() < sizes.size())
    if (SmallVector<Operation *> combiners = getCombiners(op);
        !combiners.empty())
      return emitBlockSum(builder, thread, op, sizes, combiners);
  auto emit = [&](OpBuilder &inner, Value point) {
    SmallVector<Value> ivs(sizes.size());
    for (auto [dim, iv] :
         llvm::zip_equal(dims, delinearize(inner, loc, point, parallel)))
      ivs[dim] = iv;
    emitPoint(inner, op, sizes, ivs);
  };
  // Where each thread has one point or none there is no loop.
  std::optional<int64_t> all = getConstantIntValue(points),
                         threads = getConstantIntValue(thread.count);
  if (all && threads && *all == *threads)
    return emit(builder, thread.id);
  if (all && threads && *all < *threads) {
    Value hasPoint = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::ult, thread.id, points);
    scf::IfOp::create(builder, loc, hasPoint, [&](OpBuilder &inner, Location) {
      emit(inner, thread.id);
      scf::YieldOp::create(inner, loc);
    });
    return;
  }
  scf::ForOp::create(builder, loc, thread.id, points, thread.count,
                     ValueRange(),
                     [&](OpBuilder &inner, Location, Value point, ValueRange) {
                       emit(inner, point);
                       scf::YieldOp::create(inner, loc);
                     });
}
