//===- PromoteToF64.cpp - promote-to-f64 ----------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/DialectResourceBlobManager.h"

using namespace mlir;

namespace fovea {
#define GEN_PASS_DEF_PROMOTETOF64
#include "fovea/Transforms/Passes.h.inc"

static bool isNarrowFloat(Type type) {
  return isa<FloatType>(type) && !type.isF64();
}

static APFloat toDouble(APFloat value) {
  bool lossy;
  value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lossy);
  return value;
}

/// Returns the elements of a resource, whose bytes are in the order of the
/// host.
static std::optional<DenseElementsAttr>
promoteResource(DenseResourceElementsAttr attr, ShapedType type) {
  auto element = cast<FloatType>(attr.getType().getElementType());
  AsmResourceBlob *blob = attr.getRawHandle().getBlob();
  unsigned bytes = element.getWidth() / 8;
  if (!blob || bytes == 0 || element.getWidth() % 8 != 0 || bytes > 8 ||
      blob->getData().size() != size_t(attr.getNumElements()) * bytes)
    return std::nullopt;
  SmallVector<APFloat> values;
  for (int64_t i = 0, e = attr.getNumElements(); i < e; ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, blob->getData().data() + i * bytes, bytes);
    values.push_back(
        toDouble(APFloat(element.getFloatSemantics(), APInt(bytes * 8, bits))));
  }
  return DenseElementsAttr::get(type, values);
}

namespace {
struct PromoteToF64 final : impl::PromoteToF64Base<PromoteToF64> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(checkPromotable(module)))
      return signalPassFailure();

    Type f64 = Float64Type::get(&getContext());
    AttrTypeReplacer replacer;
    replacer.addReplacement([=](FloatType) { return f64; });
    replacer.addReplacement(
        [=](FloatAttr attr) -> std::pair<Attribute, WalkResult> {
          return {FloatAttr::get(f64, toDouble(attr.getValue())),
                  WalkResult::skip()};
        });
    replacer.addReplacement(
        [=](DenseElementsAttr attr) -> std::pair<Attribute, WalkResult> {
          if (!isNarrowFloat(attr.getElementType()))
            return {attr, WalkResult::skip()};
          auto promoted = cast<DenseFPElementsAttr>(attr).mapValues(
              f64, [](const APFloat &value) {
                return toDouble(value).bitcastToAPInt();
              });
          return {promoted, WalkResult::skip()};
        });
    replacer.addReplacement([=](DenseResourceElementsAttr attr)
                                -> std::pair<Attribute, WalkResult> {
      if (!isNarrowFloat(attr.getElementType()))
        return {attr, WalkResult::skip()};
      if (auto promoted = promoteResource(attr, attr.getType().clone(f64)))
        return {*promoted, WalkResult::skip()};
      return {attr, WalkResult::skip()};
    });

    for (auto function : module.getOps<func::FuncOp>())
      promote(function, replacer);
    // Conversions whose two types are now the same.
    module.walk([&](Operation *op) {
      if (!isa<arith::ExtFOp, arith::TruncFOp>(op) || entries.contains(op))
        return;
      op->getResult(0).replaceAllUsesWith(op->getOperand(0));
      op->erase();
    });
    entries.clear();
  }

private:
  static LogicalResult checkPromotable(ModuleOp module) {
    for (auto function : module.getOps<func::FuncOp>())
      if (function.isDeclaration())
        return function.emitOpError(
            "is declared but not defined; a reference can only be computed of "
            "functions with a body");
    WalkResult result = module.walk([](Operation *op) -> WalkResult {
      if (isa<arith::BitcastOp, tensor::BitcastOp>(op)) {
        Type from = getElementTypeOrSelf(op->getOperand(0));
        Type to = getElementTypeOrSelf(op->getResult(0));
        if (isNarrowFloat(from) || isNarrowFloat(to))
          return op->emitOpError("has no counterpart in f64: it reads the bits "
                                 "of ")
                 << from << " as " << to;
      }
      if (isa<arith::ScalingExtFOp, arith::ScalingTruncFOp>(op))
        return op->emitOpError("has no counterpart in f64: it scales by blocks "
                               "of narrow floats");
      for (Type type :
           llvm::concat<const Type>(llvm::to_vector(op->getOperandTypes()),
                                    llvm::to_vector(op->getResultTypes())))
        if (isa<BaseMemRefType>(type))
          return op->emitOpError("works on ")
                 << type
                 << "; a reference can only be computed of functions "
                    "on tensors and scalars";
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }

  /// Returns `argument` extended to f64 at the start of its function.
  Value extend(OpBuilder &builder, BlockArgument argument) {
    Location loc = argument.getLoc();
    Type f64 = builder.getF64Type();
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type) {
      auto op = arith::ExtFOp::create(builder, loc, f64, argument);
      entries.insert(op);
      return op;
    }
    Value init = tensor::EmptyOp::create(
        builder, loc, tensor::getMixedSizes(builder, loc, argument), f64);
    AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
    SmallVector<utils::IteratorType> iterators(type.getRank(),
                                               utils::IteratorType::parallel);
    return linalg::GenericOp::create(
               builder, loc, init.getType(), argument, init,
               ArrayRef{identity, identity}, iterators,
               [&](OpBuilder &b, Location l, ValueRange in) {
                 auto op = arith::ExtFOp::create(b, l, f64, in[0]);
                 entries.insert(op);
                 linalg::YieldOp::create(b, l, op.getResult());
               })
        .getResult(0);
  }

  void promote(func::FuncOp function, AttrTypeReplacer &replacer) {
    Block &entry = function.getBody().front();
    SmallVector<Type> argumentTypes(function.getArgumentTypes());
    // Ops of the body are converted first, so that ops added at the entry stay.
    SmallVector<Operation *> ops;
    for (Block &block : function.getBody())
      for (Operation &op : block)
        ops.push_back(&op);
    for (Operation *op : ops)
      replacer.recursivelyReplaceElementsIn(op, /*replaceAttrs=*/true,
                                            /*replaceLocs=*/false,
                                            /*replaceTypes=*/true);
    for (Block &block : llvm::drop_begin(function.getBody()))
      for (BlockArgument argument : block.getArguments())
        argument.setType(replacer.replace(argument.getType()));

    OpBuilder builder = OpBuilder::atBlockBegin(&entry);
    for (auto [i, argument] : llvm::enumerate(entry.getArguments())) {
      Type type = replacer.replace(argument.getType());
      if (type == argument.getType())
        continue;
      if (function.isPublic()) {
        SmallVector<OpOperand *> uses;
        for (OpOperand &use : argument.getUses())
          uses.push_back(&use);
        Value extended = extend(builder, argument);
        for (OpOperand *use : uses)
          use->set(extended);
      } else {
        argument.setType(type);
        argumentTypes[i] = type;
      }
    }
    SmallVector<Type> resultTypes;
    for (Type type : function.getResultTypes())
      resultTypes.push_back(replacer.replace(type));
    function.setType(builder.getFunctionType(argumentTypes, resultTypes));
  }

  /// The conversions of arguments to f64.
  DenseSet<Operation *> entries;
};
} // namespace
} // namespace fovea
