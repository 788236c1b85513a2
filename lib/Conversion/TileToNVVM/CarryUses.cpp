//===- CarryUses.cpp - Places in rings, computed a step ahead -------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CarryUses.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

/// Returns true if `op` is arithmetic on numbers of uses that cannot fail.
static bool isUseArithmetic(Operation &op) {
  return isa<arith::ConstantOp, arith::IndexCastOp, arith::AddIOp,
             arith::MulIOp, arith::AndIOp, arith::SubIOp, arith::XOrIOp,
             arith::RemUIOp, arith::DivUIOp, arith::ShLIOp, arith::ShRUIOp>(
             op) &&
         op.getResult(0).getType().isInteger(32);
}

namespace {
/// What a loop computes of the numbers that it carries.
struct UseArithmetic {
  /// In order.
  SmallVector<Operation *> ops;
  /// The results that other ops of the loop need.
  SmallVector<Value> results;
};
} // namespace

static UseArithmetic findUseArithmetic(scf::ForOp loop) {
  UseArithmetic found;
  DenseSet<Operation *> known;
  for (Operation &op : loop.getBody()->without_terminator()) {
    if (!isUseArithmetic(op))
      continue;
    bool isOfUse = false, isComplete = true;
    for (Value operand : op.getOperands()) {
      bool isCarried = llvm::is_contained(loop.getRegionIterArgs(), operand) &&
                       operand.getType().isIndex();
      Operation *source = operand.getDefiningOp();
      bool isFound = source && known.contains(source);
      isOfUse |= isCarried || (isFound && !isa<arith::ConstantOp>(source));
      isComplete &=
          isCarried || isFound || loop.isDefinedOutsideOfLoop(operand);
    }
    if (!isa<arith::ConstantOp>(op) && (!isOfUse || !isComplete))
      continue;
    known.insert(&op);
    found.ops.push_back(&op);
  }
  for (Operation *op : found.ops)
    if (!isa<arith::ConstantOp>(op) &&
        llvm::any_of(op->getUsers(),
                     [&](Operation *user) { return !known.contains(user); }))
      found.results.push_back(op->getResult(0));
  return found;
}

/// Returns the same number from an instruction that LLVM does not know. It
/// moves those that all values of a phi have in common behind it.
static Value hide(OpBuilder &builder, Location loc, Value number) {
  return LLVM::InlineAsmOp::create(
             builder, loc, number.getType(), number, "mov.b32 $0, $1;", "=r,r",
             /*has_side_effects=*/false, /*is_align_stack=*/false,
             LLVM::TailCallKind::None, LLVM::AsmDialectAttr{},
             /*operand_attrs=*/ArrayAttr{})
      .getRes();
}

/// Returns true if `op` is assembly with an instruction.
static bool hasInstruction(Operation &op, StringRef instruction) {
  auto assembly = dyn_cast<LLVM::InlineAsmOp>(op);
  return assembly && assembly.getAsmString().contains(instruction);
}

static bool isProduct(Operation &op) {
  return hasInstruction(op, "wgmma.mma_async");
}

/// Returns the first branch of a loop's body behind its products and their
/// waits. Where products are waited for behind a branch there is other work
/// as well; then it returns the body's end.
static Operation *findBranchBehindProducts(scf::ForOp loop) {
  Operation *end = loop.getBody()->getTerminator(), *branch = end;
  bool isBehind = false;
  for (Operation &op : loop.getBody()->without_terminator()) {
    isBehind |= isProduct(op);
    if (branch != end && hasInstruction(op, "wgmma.wait_group"))
      return end;
    if (isBehind && branch == end && isa<scf::IfOp>(op))
      branch = &op;
  }
  return branch;
}

/// Moves the numbers of uses that `loop` yields, and what they are computed
/// from, in front of the branch behind its products where they can be known
/// there. Returns where they are all known.
static Operation *knowEarly(scf::ForOp loop, IRRewriter &rewriter) {
  Operation *branch = findBranchBehindProducts(loop);
  SmallVector<Value> numbers =
      llvm::filter_to_vector(loop.getYieldedValues(), [](Value value) {
        return value.getType().isIndex();
      });
  if (failed(moveValueDefinitions(rewriter, numbers, branch)))
    return loop.getBody()->getTerminator();
  return branch;
}

static void carryUses(scf::ForOp loop, IRRewriter &rewriter) {
  UseArithmetic uses = findUseArithmetic(loop);
  if (uses.results.empty())
    return;
  // Emits the arithmetic of `numbers` in place of those that the loop carries.
  auto emit = [&](OpBuilder &builder, ValueRange numbers) {
    IRMapping mapping;
    mapping.map(loop.getRegionIterArgs(), numbers);
    for (Operation *op : uses.ops)
      builder.clone(*op, mapping);
    return llvm::map_to_vector(
        uses.results, [&](Value result) { return mapping.lookup(result); });
  };
  rewriter.setInsertionPoint(loop);
  SmallVector<Value> inits = emit(rewriter, loop.getInitArgs());
  unsigned carried = loop.getNumRegionIterArgs();
  rewriter.setInsertionPoint(knowEarly(loop, rewriter));
  SmallVector<Value> next = llvm::map_to_vector(
      emit(rewriter, loop.getYieldedValues()),
      [&](Value value) { return hide(rewriter, loop.getLoc(), value); });
  auto replaced =
      cast<LoopLikeOpInterface>(loop.getOperation())
          .replaceWithAdditionalYields(
              rewriter, inits, /*replaceInitOperandUsesInLoop=*/false,
              [&](OpBuilder &, Location, ArrayRef<BlockArgument>) {
                return next;
              });
  assert(succeeded(replaced) && "every scf.for can carry more");
  auto result = cast<scf::ForOp>(replaced->getOperation());
  for (auto [index, value] : llvm::enumerate(uses.results))
    rewriter.replaceAllUsesWith(value,
                                result.getRegionIterArg(carried + index));
  for (Operation *op : llvm::reverse(uses.ops))
    if (op->use_empty())
      rewriter.eraseOp(op);
}

void fovea::tile::carryUses(Operation *root) {
  SmallVector<scf::ForOp> loops;
  root->walk([&](scf::ForOp loop) {
    if (llvm::any_of(loop.getBody()->without_terminator(), isProduct))
      loops.push_back(loop);
  });
  IRRewriter rewriter(root->getContext());
  for (scf::ForOp loop : loops) {
    DominanceInfo dominance(loop);
    eliminateCommonSubExpressions(rewriter, dominance, loop);
    ::carryUses(loop, rewriter);
  }
}
