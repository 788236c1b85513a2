//===- PartitionGradient.cpp - attn-partition-gradient --------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Attn/Differentiate/Passes.h"
#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Support/DebugLog.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/IRMapping.h"

#define DEBUG_TYPE "attn-partition-gradient"

namespace fovea::attn {
#define GEN_PASS_DEF_ATTNPARTITIONGRADIENT
#include "fovea/Dialect/Attn/Differentiate/Passes.h.inc"
} // namespace fovea::attn

using namespace mlir;
using namespace fovea::attn;

/// Returns the values that `op` and its regions read from outside.
static SmallVector<Value> getReads(Operation *op) {
  SmallVector<Value> reads(op->getOperands());
  llvm::append_range(reads, getCaptures(op));
  return reads;
}

/// Returns true if the backward pass computes `op` again instead of having its
/// result saved: numbers, values made only of numbers, and views.
static bool isCheap(Operation *op) {
  if (!isMemoryEffectFree(op))
    return false;
  if (isa<tensor::EmptyOp, tensor::CastOp, tensor::ExpandShapeOp,
          tensor::CollapseShapeOp>(op) ||
      op->hasTrait<OpTrait::ConstantLike>())
    return true;
  if (auto fill = dyn_cast<linalg::FillOp>(op))
    return fill.getOutputs().front().getDefiningOp<tensor::EmptyOp>() !=
           nullptr;
  return llvm::none_of(op->getResultTypes(), llvm::IsaPred<ShapedType>);
}

static Location nameLoc(Location loc, const Twine &name) {
  return NameLoc::get(StringAttr::get(loc.getContext(), name), loc);
}

namespace {
/// Splits one joint function.
class Partition {
public:
  Partition(func::FuncOp joint, ArrayRef<int64_t> counts)
      : joint(joint), body(joint.getBody().front()), end(body.getTerminator()) {
    inputs = body.getArguments().take_front(counts[0]);
    cotangents = body.getArguments().drop_front(counts[0]);
    results = end->getOperands().take_front(counts[1]);
    gradients = end->getOperands().drop_front(counts[1]);
    // The backward pass consists of the ops that depend on a cotangent.
    DenseSet<Value> late(cotangents.begin(), cotangents.end());
    for (Operation &op : body.without_terminator())
      if (llvm::any_of(getReads(&op),
                       [&](Value value) { return late.contains(value); })) {
        lateOps.insert(&op);
        late.insert(op.result_begin(), op.result_end());
      }
  }

  /// Adds the functions and returns the number of tensors that are saved
  /// between them.
  unsigned run(StringRef name) {
    for (Value gradient : gradients)
      need(gradient);
    // In order of execution, so that the text of the functions is stable.
    SmallVector<Value> saved;
    for (Operation &op : body.without_terminator())
      for (Value result : op.getResults())
        if (read.contains(result) && !llvm::is_contained(results, result)) {
          LDBG() << "@" << name << ": saved, " << result.getType() << " of "
                 << op.getName() << " at " << op.getLoc();
          saved.push_back(result);
        }
    buildForward(getForwardName(name), saved);
    buildBackward(getBackwardName(name), saved);
    joint.erase();
    return saved.size();
  }

private:
  /// Records that the backward pass computes or reads `value`.
  void need(Value value) {
    SmallVector<Value> worklist = {value};
    while (!worklist.empty()) {
      Value next = worklist.pop_back_val();
      Operation *op = next.getDefiningOp();
      if (op && (lateOps.contains(op) || isCheap(op))) {
        if (computed.insert(op).second)
          llvm::append_range(worklist, getReads(op));
      } else {
        read.insert(next);
      }
    }
  }

  func::FuncOp create(const Twine &name, ArrayRef<Value> arguments,
                      ValueRange returned) {
    OpBuilder builder(joint);
    auto type = builder.getFunctionType(ValueRange(arguments).getTypes(),
                                        returned.getTypes());
    SmallString<32> text;
    auto function = func::FuncOp::create(builder, joint.getLoc(),
                                         name.toStringRef(text), type);
    function.addEntryBlock();
    return function;
  }

  /// Copies the ops of the joint function for which `isWanted` holds.
  void fill(func::FuncOp function, IRMapping &mapping,
            llvm::function_ref<bool(Operation *)> isWanted,
            ValueRange returned) {
    OpBuilder builder = OpBuilder::atBlockEnd(&function.getBody().front());
    for (Operation &op : body.without_terminator())
      if (isWanted(&op))
        builder.clone(op, mapping);
    SmallVector<Value> values;
    for (Value value : returned)
      values.push_back(mapping.lookup(value));
    func::ReturnOp::create(builder, end->getLoc(), values);
  }

  void buildForward(const Twine &name, ArrayRef<Value> saved) {
    SmallVector<Value> returned(results);
    llvm::append_range(returned, saved);
    func::FuncOp function = create(name, SmallVector<Value>(inputs), returned);
    IRMapping mapping;
    for (auto [argument, input] :
         llvm::zip_equal(function.getArguments(), inputs)) {
      argument.setLoc(input.getLoc());
      mapping.map(input, argument);
    }
    fill(
        function, mapping, [&](Operation *op) { return !lateOps.contains(op); },
        returned);
  }

  void buildBackward(const Twine &name, ArrayRef<Value> saved) {
    SmallVector<Value> arguments;
    SmallVector<Location> locations;
    auto add = [&](Value value, Location loc) {
      arguments.push_back(value);
      locations.push_back(loc);
    };
    for (auto [number, input] : llvm::enumerate(inputs))
      if (read.contains(input))
        add(input, isa<NameLoc>(input.getLoc())
                       ? input.getLoc()
                       : nameLoc(input.getLoc(), "arg" + Twine(number)));
    for (auto [number, result] : llvm::enumerate(results))
      if (read.contains(result) && !llvm::is_contained(arguments, result))
        add(result, nameLoc(result.getLoc(), "result" + Twine(number)));
    for (auto [number, value] : llvm::enumerate(saved))
      add(value, nameLoc(value.getLoc(), "saved" + Twine(number)));
    for (Value cotangent : cotangents)
      add(cotangent, cotangent.getLoc());
    func::FuncOp function = create(name, arguments, gradients);
    IRMapping mapping;
    for (auto [argument, value, loc] :
         llvm::zip_equal(function.getArguments(), arguments, locations)) {
      argument.setLoc(loc);
      mapping.map(value, argument);
    }
    fill(
        function, mapping, [&](Operation *op) { return computed.contains(op); },
        gradients);
  }

  func::FuncOp joint;
  Block &body;
  Operation *end;
  ValueRange inputs, cotangents, results, gradients;
  DenseSet<Operation *> lateOps, computed;
  DenseSet<Value> read;
};

struct PartitionGradient final
    : fovea::attn::impl::AttnPartitionGradientBase<PartitionGradient> {
  void runOnOperation() override {
    for (auto joint :
         llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>())) {
      auto counts = joint->getAttrOfType<DenseI64ArrayAttr>(kJointAttrName);
      if (!counts)
        continue;
      StringRef name = joint.getName();
      name.consume_back("_gradient");
      for (const std::string &taken :
           {getForwardName(name), getBackwardName(name)})
        if (getOperation().lookupSymbol(taken)) {
          joint.emitOpError()
              << "cannot be split: the name @" << taken << " is taken";
          return signalPassFailure();
        }
      numTensorsSaved += Partition(joint, counts).run(name.str());
      ++numPartitioned;
    }
  }
};
} // namespace
