//===- ChainComparisons.cpp - Conjunctions in comparisons -----------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ChainComparisons.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;
using namespace llvm::PatternMatch;

/// Matches a conjunction of two conditions, or a disjunction.
static bool match(Value *value, bool isAnd, Value *&left, Value *&right) {
  if (!value->getType()->isIntegerTy(1))
    return false;
  return isAnd
             ? PatternMatch::match(value,
                                   m_LogicalAnd(m_Value(left), m_Value(right)))
             : PatternMatch::match(value,
                                   m_LogicalOr(m_Value(left), m_Value(right)));
}

using ValueSet = SmallPtrSet<Value *, 16>;

/// Returns what follows from the counters of loops of so many iterations that
/// are known, which ptxas knows when it has unrolled such a loop. Where it
/// folds a comparison that is joined with a condition then, its result may be
/// wrong (ptxas 13.0, `-O2` and above: of conditions that a loop joins both by
/// `and` and by `or`, the first was lost).
static ValueSet findCounted(Function &function) {
  AssumptionCache cache(function);
  TargetLibraryInfoImpl libraryImpl(function.getParent()->getTargetTriple());
  TargetLibraryInfo library(libraryImpl);
  DominatorTree dominators(function);
  LoopInfo loops(dominators);
  ScalarEvolution evolution(function, library, cache, dominators, loops);
  ValueSet counted;
  SmallVector<Value *> pending;
  auto add = [&](Instruction &instruction) {
    if (counted.insert(&instruction).second)
      pending.push_back(&instruction);
  };
  for (Loop *loop : loops.getLoopsInPreorder())
    if (evolution.getSmallConstantTripCount(loop))
      for (PHINode &phi : loop->getHeader()->phis())
        add(phi);
  while (!pending.empty())
    for (User *user : pending.pop_back_val()->users()) {
      // What is in memory, or an instruction's own, stays unknown.
      auto *instruction = cast<Instruction>(user);
      if (!instruction->mayReadOrWriteMemory())
        add(*instruction);
    }
  return counted;
}

/// Returns true if `value` is a comparison that PTX joins with a condition.
static bool isComparison(Value *value) {
  auto *compare = dyn_cast<ICmpInst>(value);
  if (!compare)
    return false;
  Type *type = compare->getOperand(0)->getType();
  return type->isIntegerTy(32) || type->isIntegerTy(64);
}

static StringRef getName(ICmpInst::Predicate predicate) {
  switch (predicate) {
  case ICmpInst::ICMP_EQ:
    return "eq";
  case ICmpInst::ICMP_NE:
    return "ne";
  case ICmpInst::ICMP_SLT:
  case ICmpInst::ICMP_ULT:
    return "lt";
  case ICmpInst::ICMP_SLE:
  case ICmpInst::ICMP_ULE:
    return "le";
  case ICmpInst::ICMP_SGT:
  case ICmpInst::ICMP_UGT:
    return "gt";
  default:
    return "ge";
  }
}

/// Creates the comparison joined with `condition`.
static Value *createJoined(IRBuilder<> &builder, ICmpInst *compare,
                           Value *condition, bool isAnd) {
  Type *type = compare->getOperand(0)->getType();
  unsigned width = type->getIntegerBitWidth();
  std::string text =
      ("setp." + getName(compare->getPredicate()) + (isAnd ? ".and." : ".or.") +
       Twine(compare->isUnsigned() ? 'u' : 's') + Twine(width) + " $0, $1, ")
          .str();
  std::string kind(1, width == 32 ? 'r' : 'l');
  std::string constraints = "=b," + kind;
  SmallVector<Value *> operands = {compare->getOperand(0)};
  // A constant is part of the instruction.
  auto *constant = dyn_cast<ConstantInt>(compare->getOperand(1));
  if (constant && constant->getValue().isSignedIntN(32)) {
    text += itostr(constant->getSExtValue()) + ", $2;";
  } else {
    text += "$2, $3;";
    constraints += "," + kind;
    operands.push_back(compare->getOperand(1));
  }
  constraints += ",b";
  operands.push_back(condition);
  SmallVector<Type *> types =
      map_to_vector(operands, [](Value *value) { return value->getType(); });
  auto *function = FunctionType::get(builder.getInt1Ty(), types, false);
  CallInst *call = builder.CreateCall(
      InlineAsm::get(function, text, constraints, /*hasSideEffects=*/false),
      operands);
  call->setDoesNotAccessMemory();
  call->setDoesNotThrow();
  return call;
}

/// Rewrites `root`, a conjunction or a disjunction that is part of no larger
/// one.
static void rewrite(Instruction *root, bool isAnd, const ValueSet &counted) {
  auto mayJoin = [&](Value *value) {
    return isComparison(value) && !counted.contains(value);
  };
  // Comparisons come last, those that others do not use at the end.
  std::array<SmallVector<Value *>, 3> ranks;
  SmallVector<Value *> pending = {root};
  while (!pending.empty()) {
    Value *value = pending.pop_back_val(), *left, *right;
    if ((value == root || value->hasOneUse()) &&
        match(value, isAnd, left, right))
      pending.append({right, left});
    else
      ranks[!mayJoin(value) ? 0 : value->hasOneUse() ? 2 : 1].push_back(value);
  }
  SmallVector<Value *> conditions;
  for (ArrayRef<Value *> rank : ranks)
    append_range(conditions, rank);
  if (none_of(drop_begin(conditions), mayJoin))
    return;
  // A condition that others share may be needed for long: ptxas then takes
  // fewer registers where it joins a pair by itself.
  if (conditions.size() == 2 && !conditions.front()->hasOneUse())
    return;
  IRBuilder<> builder(root);
  Value *joined = conditions.front();
  for (Value *condition : drop_begin(conditions))
    if (mayJoin(condition))
      joined = createJoined(builder, cast<ICmpInst>(condition), joined, isAnd);
    else
      joined = isAnd ? builder.CreateAnd(joined, condition)
                     : builder.CreateOr(joined, condition);
  root->replaceAllUsesWith(joined);
  RecursivelyDeleteTriviallyDeadInstructions(root);
}

void fovea::chainComparisons(Module &module) {
  for (Function &function : module) {
    if (function.isDeclaration())
      continue;
    ValueSet counted = findCounted(function);
    for (bool isAnd : {true, false}) {
      SmallVector<Instruction *> roots;
      for (Instruction &instruction : instructions(function)) {
        Value *left, *right;
        if (!match(&instruction, isAnd, left, right))
          continue;
        bool isPart = instruction.hasOneUse() &&
                      match(instruction.user_back(), isAnd, left, right);
        if (!isPart)
          roots.push_back(&instruction);
      }
      for (Instruction *root : roots)
        rewrite(root, isAnd, counted);
    }
  }
}
