//===- JoinTables.cpp - attn-join-tables ----------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Attn/Transforms/Passes.h"

#include "fovea/Support/DebugLog.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"

#define DEBUG_TYPE "attn-join-tables"

namespace fovea::attn {
#define GEN_PASS_DEF_ATTNJOINTABLES
#include "fovea/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace fovea::attn

using namespace mlir;
using namespace fovea::attn;

/// Returns the number that each iteration of `loop` writes to its own place of
/// each result; none if it does something else.
static SmallVector<Value> getOwnNumbers(scf::ForallOp loop) {
  SmallVector<OpFoldResult> place = getAsOpFoldResult(loop.getInductionVars());
  SmallVector<Value> numbers(loop.getNumResults());
  for (Operation &op : loop.getTerminator().getYieldingOps()) {
    auto store = cast<tensor::ParallelInsertSliceOp>(op);
    auto insert = store.getSource().getDefiningOp<tensor::InsertOp>();
    auto out = dyn_cast<BlockArgument>(store.getDest());
    if (!insert || !out || store.getMixedOffsets() != place ||
        !llvm::all_of(store.getMixedSizes(), isOneInteger))
      return {};
    numbers[out.getArgNumber() - place.size()] = insert.getScalar();
  }
  return llvm::is_contained(numbers, Value()) ? SmallVector<Value>() : numbers;
}

namespace {
/// A loop that fills tables, and one behind it that reads them.
struct TableLoops {
  scf::ForallOp filler, reader;

  /// Returns the reason for which they stay apart, or nullopt.
  std::optional<StringRef> findObjection() const;
  /// Replaces both by one loop, in the place of the reader.
  scf::ForallOp join(RewriterBase &rewriter);
};
} // namespace

std::optional<StringRef> TableLoops::findObjection() const {
  scf::ForallOp from = filler, to = reader;
  if (from.getMixedLowerBound() != to.getMixedLowerBound() ||
      from.getMixedUpperBound() != to.getMixedUpperBound() ||
      from.getMixedStep() != to.getMixedStep())
    return "have other bounds";
  if (getOwnNumbers(from).empty())
    return "fill more than a place each";
  for (OpOperand &use : from->getUses()) {
    Operation *user = use.getOwner();
    if (!to->isProperAncestor(user)) {
      Operation *other = from->getBlock()->findAncestorOpInBlock(*user);
      if (!other || !to->isBeforeInBlock(other))
        return "have others that read the tables";
      continue;
    }
    auto extract = dyn_cast<tensor::ExtractOp>(user);
    if (!extract || extract.getIndices() != ValueRange(to.getInductionVars()))
      return "read more than a place each";
  }
  return std::nullopt;
}

scf::ForallOp TableLoops::join(RewriterBase &rewriter) {
  rewriter.setInsertionPoint(reader);
  SmallVector<Value> outs(filler.getOutputs());
  llvm::append_range(outs, reader.getOutputs());
  auto joined = scf::ForallOp::create(
      rewriter, reader.getLoc(), reader.getMixedLowerBound(),
      reader.getMixedUpperBound(), reader.getMixedStep(), outs,
      reader.getMapping());
  size_t count = filler.getNumResults();
  SmallVector<Value> numbers = getOwnNumbers(filler);
  for (auto [result, number] : llvm::zip_equal(filler.getResults(), numbers))
    for (Operation *user : llvm::make_early_inc_range(result.getUsers()))
      if (reader->isProperAncestor(user))
        rewriter.replaceOp(user, number);

  SmallVector<Value> ivs = joined.getInductionVars();
  ValueRange args = joined.getRegionIterArgs();
  Block *body = joined.getBody();
  Block *parallel = joined.getTerminator().getBody();
  for (auto [loop, own] : {std::pair(filler, args.take_front(count)),
                           std::pair(reader, args.drop_front(count))}) {
    SmallVector<Value> values = ivs;
    llvm::append_range(values, own);
    parallel->getOperations().splice(
        parallel->end(), loop.getTerminator().getBody()->getOperations());
    rewriter.eraseOp(loop.getTerminator());
    rewriter.inlineBlockBefore(loop.getBody(), body->getTerminator(), values);
  }
  rewriter.replaceOp(filler, joined.getResults().take_front(count));
  rewriter.replaceOp(reader, joined.getResults().drop_front(count));
  return joined;
}

namespace {
struct JoinTables : fovea::attn::impl::AttnJoinTablesBase<JoinTables> {
  void runOnOperation() override {
    SmallVector<scf::ForallOp> loops;
    getOperation()->walk([&](scf::ForallOp loop) { loops.push_back(loop); });
    IRRewriter rewriter(&getContext());
    for (scf::ForallOp &loop : loops)
      while (scf::ForallOp filler = findFiller(loop)) {
        TableLoops both{filler, loop};
        llvm::replace(loops, filler, scf::ForallOp());
        loop = both.join(rewriter);
        ++numJoined;
      }
  }

  /// Returns a loop that `reader` can be joined with, if there is one.
  static scf::ForallOp findFiller(scf::ForallOp reader) {
    scf::ForallOp found;
    if (!reader || getOwnNumbers(reader).empty())
      return found;
    reader->walk([&](tensor::ExtractOp extract) {
      auto filler = extract.getTensor().getDefiningOp<scf::ForallOp>();
      if (!filler || filler->getBlock() != reader->getBlock())
        return WalkResult::advance();
      std::optional<StringRef> objection =
          TableLoops{filler, reader}.findObjection();
      if (objection) {
        LDBG() << "loop at " << reader->getLoc() << " stays: iterations "
               << *objection;
        return WalkResult::advance();
      }
      found = filler;
      return WalkResult::interrupt();
    });
    return found;
  }
};
} // namespace
