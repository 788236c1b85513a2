//===- LinalgFuseRows.cpp - linalg-fuse-rows ------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Analysis/Loops.h"
#include "fovea/Dialect/Machine/IR/Machine.h"
#include "fovea/Support/DebugLog.h"
#include "fovea/Transforms/Passes.h"

#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#define DEBUG_TYPE "linalg-fuse-rows"

using namespace mlir;

namespace fovea {
#define GEN_PASS_DEF_LINALGFUSEROWS
#include "fovea/Transforms/Passes.h.inc"

/// The attribute with the number of the graph op that an op was made from.
/// Elements of the largest row.
static constexpr int64_t kLargestRow = 65536;

//===----------------------------------------------------------------------===//
// Ops that work by rows
//===----------------------------------------------------------------------===//

static unsigned countLeadingParallel(linalg::LinalgOp op) {
  unsigned count = 0;
  for (utils::IteratorType type : op.getIteratorTypesArray()) {
    if (!linalg::isParallelIterator(type))
      break;
    ++count;
  }
  return count;
}

/// Returns true for an op that reads or writes every element of an operand
/// once: elementwise, a broadcast or a reduction, but no contraction.
static bool isRowOp(linalg::LinalgOp op) {
  if (!op.hasPureTensorSemantics() || op.getNumLoops() == 0)
    return false;
  bool coversAll = false;
  for (AffineMap map : op.getIndexingMapsArray())
    coversAll |=
        map.isProjectedPermutation() && map.getNumResults() == op.getNumLoops();
  if (!coversAll)
    return false;
  return writesApart(op);
}

/// Returns true if `map` begins with the loops 0 to `rows` - 1.
static bool beginsWithRows(AffineMap map, unsigned rows) {
  if (map.getNumResults() < rows)
    return false;
  for (unsigned dim = 0; dim < rows; ++dim)
    if (map.getResult(dim) != getAffineDimExpr(dim, map.getContext()))
      return false;
  return true;
}

/// Returns true if `map` begins with the loops 0 to `rows` - 1, in any order.
static bool beginsWithPermutedRows(AffineMap map, unsigned rows) {
  if (!map.isProjectedPermutation() || map.getNumResults() < rows)
    return false;
  return llvm::all_of(map.getResults().take_front(rows), [&](AffineExpr expr) {
    return cast<AffineDimExpr>(expr).getPosition() < rows;
  });
}

/// Returns true if the part of an operand that one row reads is a slice: each
/// dimension is indexed by one row loop or by no row loop.
static bool isSliceByRows(AffineMap map, unsigned rows) {
  return llvm::all_of(map.getResults(), [&](AffineExpr expr) {
    if (isa<AffineDimExpr>(expr))
      return true;
    for (unsigned dim = 0; dim < rows; ++dim)
      if (expr.isFunctionOfDim(dim))
        return false;
    return true;
  });
}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

namespace {
/// For each op of a complete group, the ops of its group.
using GroupMembers = DenseMap<Operation *, ArrayRef<Operation *>>;

/// Ops of one block that become one loop over rows.
class Group {
public:
  explicit Group(linalg::LinalgOp root) { members.insert(root); }

  llvm::SmallSetVector<Operation *, 8> members;
  /// The number of loops that are rows.
  unsigned rows = 0;

  bool contains(Value value) const {
    return members.contains(value.getDefiningOp());
  }

  /// Adds `op` if the group remains a group, beside the `others`.
  bool tryAdd(linalg::LinalgOp op, const GroupMembers &others) {
    members.insert(op);
    if (std::optional<unsigned> count = getRows();
        count && fits(*count) && isConvex(others))
      return true;
    members.remove(op);
    return false;
  }

  /// Determines the number of rows; false if there are none.
  bool finish() {
    std::optional<unsigned> count = getRows();
    if (!count || !fits(*count))
      return false;
    rows = *count;
    return true;
  }

  SmallVector<linalg::LinalgOp> sorted() const {
    SmallVector<Operation *> ops(members.begin(), members.end());
    llvm::sort(
        ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    return llvm::map_to_vector(
        ops, [](Operation *op) { return cast<linalg::LinalgOp>(op); });
  }

private:
  /// Returns the largest number of loops that all members share as rows such
  /// that a row has loops left.
  std::optional<unsigned> getRows() const {
    unsigned leading = ~0u, loops = 0;
    for (Operation *op : members) {
      auto member = cast<linalg::LinalgOp>(op);
      leading = std::min(leading, countLeadingParallel(member));
      loops = std::max(loops, member.getNumLoops());
    }
    unsigned count = std::min(leading, loops - 1);
    if (count == 0)
      return std::nullopt;
    return count;
  }

  /// Returns true if `count` loops are rows in all maps, and rows are small.
  bool fits(unsigned count) const {
    for (Operation *op : members) {
      auto member = cast<linalg::LinalgOp>(op);
      int64_t elements = 1;
      unsigned dynamic = 0;
      SmallVector<int64_t> sizes = member.getStaticLoopRanges();
      for (int64_t size : ArrayRef(sizes).drop_front(count)) {
        if (ShapedType::isDynamic(size))
          ++dynamic;
        else
          elements *= std::max<int64_t>(size, 1);
      }
      if (dynamic > 1 || elements > kLargestRow)
        return false;
      for (OpOperand &operand : op->getOpOperands()) {
        AffineMap map = member.getMatchingIndexingMap(&operand);
        if (contains(operand.get()) ? !beginsWithRows(map, count)
            : member.isDpsInit(&operand)
                ? !isRowOfResult(member.getTiedOpResult(&operand), map, count)
                : !isSliceByRows(map, count))
          return false;
      }
    }
    return true;
  }

  /// Returns true if `map` gives each of `count` rows a row of a result, which
  /// may be elsewhere in it than the rows are if no member reads it.
  bool isRowOfResult(OpResult result, AffineMap map, unsigned count) const {
    bool isRead = llvm::any_of(result.getUsers(), [&](Operation *user) {
      return members.contains(user);
    });
    return isRead ? beginsWithRows(map, count)
                  : beginsWithPermutedRows(map, count);
  }

  /// Returns true if no op outside lies on a path from member to member. Each
  /// of the `others` becomes one op: a path that enters one may leave it from
  /// any of its members.
  bool isConvex(const GroupMembers &others) const {
    Block *block = members.front()->getBlock();
    SmallVector<Operation *> worklist(members.begin(), members.end());
    DenseSet<Operation *> outside;
    while (!worklist.empty()) {
      Operation *op = worklist.pop_back_val();
      for (Operation *user : op->getUsers()) {
        Operation *top = block->findAncestorOpInBlock(*user);
        if (!top)
          continue;
        if (members.contains(top)) {
          if (outside.contains(op))
            return false;
          // The elements that a region of a member reads are no slice.
          if (top != user)
            return false;
          continue;
        }
        auto other = others.find(top);
        for (Operation *next :
             other == others.end() ? ArrayRef(top) : other->second)
          if (outside.insert(next).second)
            worklist.push_back(next);
      }
    }
    return true;
  }
};

//===----------------------------------------------------------------------===//
// The loop over rows
//===----------------------------------------------------------------------===//

class RowLoopEmitter {
public:
  RowLoopEmitter(RewriterBase &rewriter, const Group &group)
      : rewriter(rewriter), group(group), ops(group.sorted()),
        loc(ops.back().getLoc()) {}

  scf::ForallOp emit() {
    rewriter.setInsertionPoint(ops.back());
    SmallVector<OpFoldResult> bounds;
    for (unsigned dim = 0; dim < group.rows; ++dim)
      bounds.push_back(getRowCount(dim));
    findResults();

    auto forall =
        scf::ForallOp::create(rewriter, loc, bounds, inits, std::nullopt);
    forall->setAttr(machine::kGrainAttrName,
                    rewriter.getI64IntegerAttr(getGrain()));
    rewriter.setInsertionPointToStart(forall.getBody());
    llvm::append_range(ivs, forall.getInductionVars());
    for (auto [operand, output] :
         llvm::zip_equal(destinations, forall.getRegionIterArgs()))
      if (operand)
        outputs[operand] = output;
    for (linalg::LinalgOp op : ops)
      emitRow(op);

    rewriter.setInsertionPointToStart(forall.getTerminator().getBody());
    for (auto [result, output] :
         llvm::zip_equal(results, forall.getRegionIterArgs())) {
      auto op = cast<linalg::LinalgOp>(result.getOwner());
      AffineMap map = op.getIndexingMapMatchingResult(result);
      rewriter.setInsertionPoint(forall.getTerminator());
      Slice slice = getSlice(output, map);
      rewriter.setInsertionPointToEnd(forall.getTerminator().getBody());
      tensor::ParallelInsertSliceOp::create(rewriter, loc, rowValues[result],
                                            output, slice.offsets, slice.sizes,
                                            slice.strides);
    }
    for (auto [result, value] : llvm::zip_equal(results, forall.getResults()))
      rewriter.replaceAllUsesWith(result, value);
    for (linalg::LinalgOp op : llvm::reverse(ops))
      rewriter.eraseOp(op);
    return forall;
  }

private:
  struct Slice {
    SmallVector<OpFoldResult> offsets, sizes, strides;
    bool isWhole = true;
  };

  /// Returns the size of row loop `dim`, from a tensor from outside of the
  /// group.
  OpFoldResult getRowCount(unsigned dim) {
    AffineExpr loop = rewriter.getAffineDimExpr(dim);
    OpFoldResult size;
    for (linalg::LinalgOp op : ops)
      for (OpOperand &operand : op->getOpOperands()) {
        if (group.contains(operand.get()))
          continue;
        AffineMap map = op.getMatchingIndexingMap(&operand);
        std::optional<unsigned> place = map.getResultPosition(loop);
        if (!place)
          continue;
        auto type = cast<RankedTensorType>(operand.get().getType());
        if (!type.isDynamicDim(*place))
          return rewriter.getIndexAttr(type.getDimSize(*place));
        if (!size)
          size = tensor::getMixedSize(rewriter, loc, operand.get(), *place);
      }
    return size;
  }

  /// Finds the results that are used outside, and the place where each is to be
  /// written.
  void findResults() {
    DenseSet<OpOperand *> taken;
    for (linalg::LinalgOp op : ops)
      for (OpResult result : op->getResults()) {
        bool isUsed = llvm::any_of(result.getUsers(), [&](Operation *user) {
          return !group.members.contains(user);
        });
        if (!isUsed)
          continue;
        // The tensor that the result is written into, before any member writes
        // it.
        OpOperand *init = op.getTiedOpOperand(result);
        while (group.contains(init->get())) {
          auto written = cast<OpResult>(init->get());
          init = cast<linalg::LinalgOp>(written.getOwner())
                     .getTiedOpOperand(written);
        }
        results.push_back(result);
        inits.push_back(init->get());
        destinations.push_back(taken.insert(init).second ? init : nullptr);
      }
  }

  int64_t getGrain() {
    int64_t largest = 1;
    for (linalg::LinalgOp op : ops) {
      int64_t elements = 1;
      SmallVector<int64_t> sizes = op.getStaticLoopRanges();
      for (int64_t size : ArrayRef(sizes).drop_front(group.rows))
        elements *= ShapedType::isDynamic(size) ? kAssumedSize
                                                : std::max<int64_t>(size, 1);
      largest = std::max(largest, elements);
    }
    return std::max<int64_t>(1, kWorkPerCall / largest);
  }

  /// Returns one row of `value`, which is indexed by `map`.
  Slice getSlice(Value value, AffineMap map) {
    Slice slice;
    SmallVector<OpFoldResult> sizes =
        tensor::getMixedSizes(rewriter, loc, value);
    for (auto [expr, size] : llvm::zip_equal(map.getResults(), sizes)) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      bool isRow = dim && dim.getPosition() < group.rows;
      slice.isWhole &= !isRow;
      slice.offsets.push_back(isRow ? OpFoldResult(ivs[dim.getPosition()])
                                    : rewriter.getIndexAttr(0));
      slice.sizes.push_back(isRow ? OpFoldResult(rewriter.getIndexAttr(1))
                                  : size);
      slice.strides.push_back(rewriter.getIndexAttr(1));
    }
    return slice;
  }

  void emitRow(linalg::LinalgOp op) {
    SmallVector<Value> operands;
    for (OpOperand &operand : op->getOpOperands()) {
      Value value = operand.get();
      if (Value row = rowValues.lookup(value)) {
        operands.push_back(row);
        continue;
      }
      if (Value output = outputs.lookup(&operand))
        value = output;
      if (!isa<RankedTensorType>(value.getType())) {
        operands.push_back(value);
        continue;
      }
      Slice slice = getSlice(value, op.getMatchingIndexingMap(&operand));
      if (!slice.isWhole)
        value = tensor::ExtractSliceOp::create(
            rewriter, loc, value, slice.offsets, slice.sizes, slice.strides);
      operands.push_back(value);
    }
    SmallVector<Type> types;
    for (OpOperand &init : op.getDpsInitsMutable())
      types.push_back(operands[init.getOperandNumber()].getType());
    Operation *row = mlir::clone(rewriter, op, types, operands);
    SmallVector<OpFoldResult> offsets(ivs.begin(), ivs.end());
    offsets.append(op.getNumLoops() - group.rows, rewriter.getIndexAttr(0));
    linalg::offsetIndices(rewriter, cast<linalg::LinalgOp>(row), offsets);
    rewriter.setInsertionPointAfter(row);
    for (auto [from, to] : llvm::zip_equal(op->getResults(), row->getResults()))
      rowValues[from] = to;
  }

  RewriterBase &rewriter;
  const Group &group;
  SmallVector<linalg::LinalgOp> ops;
  Location loc;
  SmallVector<Value> ivs;
  /// Results that are used outside, their initial values, and the operand that
  /// reads each initial value (none, if another result takes it).
  SmallVector<OpResult> results;
  SmallVector<Value> inits;
  SmallVector<OpOperand *> destinations;
  DenseMap<OpOperand *, Value> outputs;
  /// The row of a member's result.
  DenseMap<Value, Value> rowValues;
};

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

struct LinalgFuseRows final : impl::LinalgFuseRowsBase<LinalgFuseRows> {
  using LinalgFuseRowsBase::LinalgFuseRowsBase;

  void runOnOperation() override {
    if (scope != "graph" && scope != "op") {
      getOperation()->emitError("linalg-fuse-rows: scope is `")
          << scope << "`, expected `graph` or `op`";
      return signalPassFailure();
    }
    if (failed(moveReshapes()))
      return signalPassFailure();
    SmallVector<Block *> blocks;
    SmallVector<scf::ForallOp> loops;
    getOperation()->walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (auto forall = dyn_cast<scf::ForallOp>(op))
        loops.push_back(forall);
      if (isa<scf::ForallOp, linalg::LinalgOp>(op))
        return WalkResult::skip();
      if (isa<FunctionOpInterface, scf::ForOp, scf::IfOp, scf::WhileOp>(op))
        for (Region &region : op->getRegions())
          for (Block &block : region)
            blocks.push_back(&block);
      return WalkResult::advance();
    });
    for (Block *block : blocks)
      if (failed(fuse(*block)))
        return signalPassFailure();
    // Loops over tiles, such as those of attention, have elementwise ops on
    // tiles.
    for (scf::ForallOp loop : loops)
      if (scope == "graph" && failed(fuseElementwise(loop)))
        return signalPassFailure();
  }

  /// Replaces an expansion by an earlier one of the same tensor to the same
  /// type, so that a tensor whose readers all expand it has one reader.
  static LogicalResult shareExpansion(tensor::ExpandShapeOp op,
                                      PatternRewriter &rewriter) {
    // The sizes of a group with one that is not static follow from the tensor.
    ArrayRef<int64_t> shape = op.getResultType().getShape();
    for (const ReassociationIndices &group : op.getReassociationIndices())
      if (llvm::count_if(group, [&](int64_t dim) {
            return ShapedType::isDynamic(shape[dim]);
          }) > 1)
        return failure();
    for (Operation *user : op.getSrc().getUsers()) {
      auto other = dyn_cast<tensor::ExpandShapeOp>(user);
      if (!other || other == op || other->getBlock() != op->getBlock() ||
          other.getType() != op.getType() ||
          other.getReassociation() != op.getReassociation() ||
          !other->isBeforeInBlock(op))
        continue;
      rewriter.replaceOp(op, other);
      return success();
    }
    return failure();
  }

  /// Moves reshapes out from between row ops, and replaces sizes of their
  /// results by sizes of operands.
  LogicalResult moveReshapes() {
    RewritePatternSet patterns(&getContext());
    linalg::ControlFusionFn control = [&](OpOperand *operand) {
      auto reshape = operand->get().getDefiningOp();
      auto consumer = dyn_cast<linalg::LinalgOp>(operand->getOwner());
      if (isa<tensor::CollapseShapeOp>(reshape))
        return consumer && isRowOp(consumer);
      auto producer = dyn_cast<linalg::LinalgOp>(reshape);
      return producer && isRowOp(producer) && reshape->hasOneUse();
    };
    if (scope == "graph") {
      linalg::populateFoldReshapeOpsByExpansionPatterns(patterns, control);
      patterns.add(shareExpansion);
    }
    memref::populateResolveRankedShapedTypeResultDimsPatterns(patterns);
    // A reshape passes one op after another, each perhaps in an iteration of
    // its own.
    GreedyRewriteConfig config;
    config.setMaxIterations(GreedyRewriteConfig::kNoLimit);
    return applyPatternsGreedily(getOperation(), std::move(patterns), config);
  }

  /// Gives every op its own fill, which belongs to the op's kernel.
  static void separateFills(Block &block) {
    for (auto fill : llvm::to_vector(block.getOps<linalg::GenericOp>())) {
      if (fill.getNumDpsInputs() != 0 || fill->getNumResults() != 1 ||
          !isRowOp(fill))
        continue;
      OpBuilder builder(fill);
      SmallVector<OpOperand *> uses;
      for (OpOperand &use : fill->getUses())
        if (isa<linalg::LinalgOp>(use.getOwner()) &&
            use.getOwner()->getBlock() == &block)
          uses.push_back(&use);
      for (OpOperand *use : uses) {
        Operation *own = fill;
        if (!fill->hasOneUse()) {
          own = builder.clone(*fill);
          use->set(own->getResult(0));
        }
        if (Attribute kernel =
                use->getOwner()->getAttr(machine::kKernelAttrName))
          own->setAttr(machine::kKernelAttrName, kernel);
      }
    }
  }

  /// Gives transpositions of elementwise results the loops of these, so that a
  /// row is written where the transposition wants it. Neighbours stay so.
  static void orderTranspositions(Block &block) {
    IRRewriter rewriter(block.getParentOp()->getContext());
    for (auto op : llvm::to_vector(block.getOps<linalg::GenericOp>())) {
      if (!op.hasPureTensorSemantics() || !linalg::isaTransposeOpInterface(op))
        continue;
      AffineMap map = op.getIndexingMapsArray().front();
      unsigned last = map.getNumDims() - 1;
      auto producer =
          op.getDpsInputs().front().getDefiningOp<linalg::LinalgOp>();
      if (map.getDimPosition(last) != last || !producer ||
          producer->getBlock() != &block || !linalg::isElementwise(producer))
        continue;
      SmallVector<unsigned> order;
      for (unsigned dim = 0; dim <= last; ++dim)
        order.push_back(map.getDimPosition(dim));
      rewriter.setInsertionPoint(op);
      (void)linalg::interchangeGenericOp(rewriter, op, order);
    }
  }

  bool mayJoin(linalg::LinalgOp op, linalg::LinalgOp root) {
    if (scope == "graph")
      return true;
    Attribute kernel = root->getAttr(machine::kKernelAttrName);
    return kernel && op->getAttr(machine::kKernelAttrName) == kernel;
  }

  LogicalResult fuse(Block &block) {
    separateFills(block);
    if (scope == "graph")
      orderTranspositions(block);
    SmallVector<linalg::LinalgOp> candidates;
    for (Operation &op : block)
      if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
        if (isRowOp(linalgOp))
          candidates.push_back(linalgOp);

    GroupMembers assigned;
    SmallVector<std::unique_ptr<Group>> groups;
    for (linalg::LinalgOp root : llvm::reverse(candidates)) {
      if (assigned.contains(root))
        continue;
      auto group = std::make_unique<Group>(root);
      bool grew = true;
      while (grew) {
        grew = false;
        for (linalg::LinalgOp op : llvm::reverse(candidates)) {
          if (assigned.contains(op) || group->members.contains(op) ||
              !mayJoin(op, root) || !isConnected(op, *group))
            continue;
          grew |= group->tryAdd(op, assigned);
        }
      }
      bool isGroup = group->members.size() > 1 && group->finish();
      LDBG() << root->getName() << " at " << root->getLoc() << ": "
             << (isGroup
                     ? "the end of a kernel of " +
                           std::to_string(group->members.size()) + " ops, " +
                           std::to_string(group->rows) + " dimensions of rows"
                     : "a kernel of its own");
      if (!isGroup)
        continue;
      for (Operation *op : group->members)
        assigned[op] = group->members.getArrayRef();
      groups.push_back(std::move(group));
    }

    IRRewriter rewriter(&getContext());
    for (const std::unique_ptr<Group> &group : groups) {
      ++numGroups;
      numFused += group->members.size();
      scf::ForallOp forall = RowLoopEmitter(rewriter, *group).emit();
      // Users of results that stood before the last member are moved behind it.
      sortTopologically(&block);
      if (failed(fuseElementwise(forall)))
        return failure();
    }
    return success();
  }

  static bool isConnected(linalg::LinalgOp op, const Group &group) {
    return llvm::any_of(op->getOperands(),
                        [&](Value value) { return group.contains(value); }) ||
           llvm::any_of(op->getUsers(), [&](Operation *user) {
             return group.members.contains(user);
           });
  }

  /// Marks, during fusion, the rounding that a body asks for itself.
  static constexpr llvm::StringLiteral kRoundsAttrName = "machine.rounds";

  /// Returns the op that rounds what `op` widens again, if there is one.
  static arith::TruncFOp getRounding(arith::ExtFOp op) {
    auto narrow = op.getIn().getDefiningOp<arith::TruncFOp>();
    return narrow && narrow.getIn().getType() == op.getType() ? narrow
                                                              : nullptr;
  }

  /// Removes the rounding of values that one op hands to the next, once both
  /// have one body.
  static LogicalResult keepWide(arith::ExtFOp op, PatternRewriter &rewriter) {
    arith::TruncFOp narrow = getRounding(op);
    if (!narrow || op->hasAttr(kRoundsAttrName))
      return failure();
    rewriter.replaceOp(op, narrow.getIn());
    return success();
  }

  /// Fuses elementwise ops on rows into their one consumer.
  static LogicalResult fuseElementwise(scf::ForallOp forall) {
    RewritePatternSet patterns(forall.getContext());
    linalg::ControlFusionFn control = [](OpOperand *operand) {
      auto producer = operand->get().getDefiningOp<linalg::LinalgOp>();
      auto consumer = dyn_cast<linalg::LinalgOp>(operand->getOwner());
      // An op on one value a row is not fused: it would be repeated for every
      // element.
      return producer && consumer && producer->hasOneUse() &&
             producer->getBlock() == consumer->getBlock() &&
             producer.getNumLoops() == consumer.getNumLoops();
    };
    linalg::populateElementwiseOpsFusionPatterns(patterns, control);
    linalg::populateEraseUnusedOperandsAndResultsPatterns(patterns);
    patterns.add(keepWide);
    tensor::populateFoldTensorEmptyPatterns(patterns);
    forall.walk([](arith::ExtFOp op) {
      if (getRounding(op))
        op->setAttr(kRoundsAttrName, UnitAttr::get(op.getContext()));
    });
    LogicalResult result =
        applyPatternsGreedily(forall.getRegion(), std::move(patterns));
    forall.walk([](arith::ExtFOp op) { op->removeAttr(kRoundsAttrName); });
    return result;
  }
};
} // namespace
} // namespace fovea
