//===- TileProducers.cpp - Producers of attention's operands, per tile ----===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileProducers.h"
#include "TileTransposes.h"

#include "fovea/Analysis/ScheduleModel.h"
#include "fovea/Support/DebugLog.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/Transforms/TileUsingInterface.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FormatVariadic.h"

#define DEBUG_TYPE "attn-tile"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

/// Returns true if a tile of `op`'s only result depends on a tile of its
/// operands.
static bool isTileable(Operation *op) {
  auto tileable = dyn_cast<TilingInterface>(op);
  return tileable && op->getNumResults() == 1 &&
         !llvm::is_contained(tileable.getLoopIteratorTypes(),
                             utils::IteratorType::reduction);
}

//===----------------------------------------------------------------------===//
// Operands that each tile reads its own part of
//===----------------------------------------------------------------------===//

/// Returns true if `producer` is computed per tile rather than before the
/// loops. Tiles do not overlap, so an op whose only reader is the slice,
/// besides those in `fused`, is not computed twice.
static bool isFusableProducer(Operation *producer,
                              const DenseSet<Operation *> &fused) {
  if (!isTileable(producer))
    return false;
  int64_t readers = llvm::count_if(producer->getUsers(), [&](Operation *user) {
    return !isa<tensor::DimOp>(user) && !fused.contains(user);
  });
  return isa<linalg::FillOp>(producer) || readers == 1;
}

void fovea::attn::fuseProducersOf(RewriterBase &rewriter,
                                  ArrayRef<tensor::ExtractSliceOp> slices,
                                  scf::ForallOp loop,
                                  function_ref<bool(Operation *)> isWanted) {
  SmallVector<Operation *> work(slices.begin(), slices.end());
  LoopLikeOpInterface loops[] = {loop};
  DenseSet<Operation *> fused;
  while (!work.empty()) {
    auto slice = dyn_cast<tensor::ExtractSliceOp>(work.pop_back_val());
    Operation *producer = slice ? slice.getSource().getDefiningOp() : nullptr;
    if (!producer)
      continue;
    rewriter.setInsertionPoint(slice);
    if (isa<tensor::EmptyOp>(producer)) {
      rewriter.replaceOpWithNewOp<tensor::EmptyOp>(
          slice, slice.getMixedSizes(), slice.getType().getElementType());
    } else if ((isa<linalg::FillOp>(producer) || isWanted(producer)) &&
               isFusableProducer(producer, fused) &&
               !isViewOfTranspose(slice)) {
      std::optional<scf::SCFFuseProducerOfSliceResult> tile =
          scf::tileAndFuseProducerOfSlice(rewriter, slice, loops);
      if (!tile)
        continue;
      fused.insert(producer);
      llvm::append_range(work, tile->generatedSlices);
    }
  }
}

//===----------------------------------------------------------------------===//
// Keys and values
//===----------------------------------------------------------------------===//

double fovea::attn::countKeyReads(OnlineAttentionOp pass, int64_t queryTile) {
  AttentionShape shape = AttentionShape::get(pass);
  double tiles = double(llvm::divideCeil(shape.queries, queryTile));
  return tiles * shape.visible * double(shape.heads) /
         double(std::max<int64_t>(shape.kvHeads, 1));
}

namespace {
using Slice = tensor::ExtractSliceOp;

/// The tiles of one tensor of keys or values in a loop.
struct KeyTiles {
  SetVector<Operation *> read;
  /// The values of passes that do not read values.
  SetVector<Operation *> unread;
};

/// The ops that make the keys, or the values, of one attention.
class KeyChain {
public:
  KeyChain(Value source, const KeyTiles &tiles) : tiles(tiles) {
    auto isView = [](Operation *slice) {
      return isViewOfTranspose(cast<Slice>(slice));
    };
    if (llvm::none_of(tiles.read, isView))
      collect(source);
  }

  ArrayRef<Operation *> getOps() const { return ops.getArrayRef(); }
  /// Returns an op that would belong to the chain but whose result other ops
  /// also read.
  Operation *getShared() const { return shared; }
  /// Returns the work of the chain, for `reads` of each key by each tile.
  KeyProducer getWork(double reads) const;
  /// Computes the chain for each tile that is read.
  void fuse(RewriterBase &rewriter, scf::ForallOp loop);

private:
  void collect(Value value);

  const KeyTiles &tiles;
  SetVector<Operation *> ops;
  Operation *shared = nullptr;
};
} // namespace

void KeyChain::collect(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || !isTileable(op) || isa<linalg::FillOp>(op) || ops.contains(op))
    return;
  bool isOwn = llvm::all_of(op->getUsers(), [&](Operation *user) {
    return ops.contains(user) || tiles.read.contains(user) ||
           tiles.unread.contains(user);
  });
  if (!isOwn) {
    shared = op;
    return;
  }
  ops.insert(op);
  auto rankOf = [](Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return type ? type.getRank() : 0;
  };
  // Several tiles may read an operand with fewer dimensions.
  for (Value operand : op->getOperands())
    if (rankOf(operand) == rankOf(op->getResult(0)))
      collect(operand);
}

KeyProducer KeyChain::getWork(double reads) const {
  KeyProducer work;
  for (Operation *op : ops)
    work.add(op);
  work.reads = reads * double(tiles.read.size());
  return work;
}

void KeyChain::fuse(RewriterBase &rewriter, scf::ForallOp loop) {
  for (Operation *op : tiles.unread) {
    auto slice = cast<Slice>(op);
    rewriter.setInsertionPoint(slice);
    rewriter.replaceOpWithNewOp<tensor::EmptyOp>(
        slice, slice.getMixedSizes(), slice.getType().getElementType());
  }
  LoopLikeOpInterface loops[] = {loop};
  SmallVector<Operation *> work(tiles.read.begin(), tiles.read.end());
  while (!work.empty()) {
    auto slice = dyn_cast<Slice>(work.pop_back_val());
    if (!slice || !ops.contains(slice.getSource().getDefiningOp()) ||
        isViewOfTranspose(slice))
      continue;
    if (auto tile = scf::tileAndFuseProducerOfSlice(rewriter, slice, loops))
      llvm::append_range(work, tile->generatedSlices);
  }
}

/// Returns the tiles of keys and values in `loop`, by the tensor that they
/// belong to.
static llvm::MapVector<Value, KeyTiles> findKeyTiles(scf::ForallOp loop) {
  llvm::MapVector<Value, KeyTiles> found;
  loop.walk([&](OnlineAttentionOp pass) {
    if (auto slice = pass.getKey().getDefiningOp<Slice>())
      found[slice.getSource()].read.insert(slice);
    if (auto slice = pass.getValue().getDefiningOp<Slice>())
      (pass.updatesAcc() ? found[slice.getSource()].read
                         : found[slice.getSource()].unread)
          .insert(slice);
  });
  for (auto &entry : found)
    entry.second.unread.remove_if(
        [&](Operation *slice) { return entry.second.read.contains(slice); });
  return found;
}

static std::string namesOf(ArrayRef<Operation *> ops) {
  return llvm::join(llvm::map_range(llvm::reverse(ops),
                                    [](Operation *op) {
                                      return op->getName().getStringRef();
                                    }),
                    ", ");
}

unsigned fovea::attn::fuseKeyProducers(RewriterBase &rewriter,
                                       scf::ForallOp loop, double reads,
                                       KeyFusion fusion,
                                       machine::TargetAttr target) {
  auto options = [&](StringRef name) {
    auto function = loop->getParentOfType<FunctionOpInterface>();
    return remark::RemarkOpts::name(name)
        .category("attn-tile")
        .function(function ? function.getName() : "");
  };
  unsigned count = 0;
  for (const auto &[source, tiles] : findKeyTiles(loop)) {
    KeyChain chain(source, tiles);
    if (Operation *shared = chain.getShared())
      remark::missed(shared->getLoc(), options("key-producer"))
          << (shared->getName().getStringRef() +
              " is not computed where attention loads it: others read its "
              "result too")
                 .str();
    if (chain.getOps().empty())
      continue;
    KeyProducer work = chain.getWork(reads);
    double gain = predictGainInLoads(work, target);
    bool wanted =
        fusion == KeyFusion::Always || (fusion == KeyFusion::Auto && gain >= 0);
    std::string text = llvm::formatv(
        "{0} {1}: each key is read {2:f1} times, which by the model takes "
        "{3:f1} us {4} than a kernel of its own",
        namesOf(chain.getOps()),
        wanted ? "is computed where attention loads it"
               : "stays before the loops of attention",
        work.reads, std::abs(gain) * 1e6, gain >= 0 ? "less" : "more");
    Location loc = chain.getOps().front()->getLoc();
    LDBG() << "producer at " << loc << ": " << text;
    if (!wanted) {
      remark::missed(loc, options("key-producer")) << text;
      continue;
    }
    remark::passed(loc, options("key-producer")) << text;
    count += chain.getOps().size();
    chain.fuse(rewriter, loop);
  }
  return count;
}
