//===- RegionVerify.cpp - Ops allowed in regions of attn ------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A region is run once for each element, vectorised, tiled, evaluated on
// intervals and differentiated. All of these need functions of numbers; a
// tensor op would be computed once for each element, instead of captured once.
//
//===----------------------------------------------------------------------===//

#include "Verify.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace fovea::attn;

/// Returns true if `op` reads an element or a size of a tensor, or of the
/// buffer that it becomes.
static bool isRead(Operation *op) {
  return llvm::StringSwitch<bool>(op->getName().getStringRef())
      .Cases({"tensor.extract", "tensor.dim", "memref.load", "memref.dim"},
             true)
      .Default(false);
}

/// Returns true if `op` computes numbers from numbers, of any types, without a
/// side effect. Canonicalization makes `ub.poison` of ops without a value.
static bool isComputation(Operation *op) {
  bool isOfNumbers =
      llvm::StringSwitch<bool>(op->getName().getDialectNamespace())
          .Cases({"arith", "math", "index"}, true)
          .Default(false);
  return isOfNumbers ||
         llvm::StringSwitch<bool>(op->getName().getStringRef())
             .Cases({"affine.apply", "affine.min", "affine.max"}, true)
             .Cases({"scf.if", "scf.for", "scf.while"}, true)
             .Cases({"scf.yield", "scf.condition", "ub.poison"}, true)
             .Default(false);
}

static bool isNumber(Type type) {
  if (auto integer = dyn_cast<IntegerType>(type))
    return integer.isSignless() && integer.getWidth() <= 64;
  return type.isIndex() || type.isF16() || type.isBF16() || type.isF32() ||
         type.isF64();
}

/// Checks one op of a region.
static LogicalResult verifyNested(Operation *op, StringRef name,
                                  Operation *nested) {
  bool reads = isRead(nested);
  if (!reads && !isComputation(nested))
    return nested->emitOpError()
           << "is not allowed in the " << name << " region of '"
           << op->getName()
           << "': expected operations on numbers (arith, math, index, "
              "affine.apply, scf.if, scf.for, scf.while), tensor.extract or "
              "tensor.dim; what is computed on tensors or has side effects "
              "belongs in front of '"
           << op->getName() << "'";
  auto check = [&](TypeRange types, StringRef verb) -> LogicalResult {
    for (Type type : types)
      if (!isNumber(type))
        return nested->emitOpError()
               << verb << ' ' << type << " in the " << name << " region of '"
               << op->getName()
               << "', where numbers are f16, bf16, f32, f64, index or a "
                  "signless integer of at most 64 bits";
    return success();
  };
  if (failed(check(nested->getResultTypes(), "makes")))
    return failure();
  return reads ? success() : check(nested->getOperandTypes(), "takes");
}

LogicalResult fovea::attn::verifyRegion(Operation *op, StringRef name,
                                        Region &region,
                                        ArrayRef<Type> arguments, Type result) {
  Block &block = region.front();
  if (block.getNumArguments() != arguments.size())
    return op->emitOpError()
           << "expects the " << name << " region to have " << arguments.size()
           << " arguments, but it has " << block.getNumArguments();
  for (auto [index, argument, expected] :
       llvm::enumerate(block.getArgumentTypes(), arguments))
    if (argument != expected)
      return op->emitOpError()
             << "expects argument " << index << " of the " << name
             << " region to be " << expected << ", but it is " << argument;
  auto yield = dyn_cast_or_null<YieldOp>(
      block.mightHaveTerminator() ? block.getTerminator() : nullptr);
  if (!yield)
    return op->emitOpError()
           << "expects the " << name << " region to end with attn.yield";
  if (yield.getValue().getType() != result)
    return yield.emitOpError()
           << "expects to yield " << result << " from the " << name
           << " region, but yields " << yield.getValue().getType();
  auto walked = block.walk<WalkOrder::PreOrder>([&](Operation *nested) {
    if (nested == yield)
      return WalkResult::advance();
    return WalkResult(verifyNested(op, name, nested));
  });
  return failure(walked.wasInterrupted());
}
