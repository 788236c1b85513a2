//===- InstrumentAccesses.cpp - instrument-accesses -----------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace fovea {
#define GEN_PASS_DEF_INSTRUMENTACCESSES
#include "fovea/Transforms/Passes.h.inc"

static bool isSignedDivision(Operation *op) {
  return isa<arith::DivSIOp, arith::RemSIOp, arith::CeilDivSIOp,
             arith::FloorDivSIOp>(op);
}

static bool isDivision(Operation *op) {
  return isSignedDivision(op) ||
         isa<arith::DivUIOp, arith::RemUIOp, arith::CeilDivUIOp>(op);
}

namespace {
struct InstrumentAccesses final
    : impl::InstrumentAccessesBase<InstrumentAccesses> {
  void runOnOperation() override {
    SmallVector<Operation *> work;
    getOperation().walk([&](Operation *op) {
      if (isDivision(op) || isa<memref::LoadOp, memref::StoreOp>(op))
        work.push_back(op);
    });
    for (Operation *op : work) {
      if (auto load = dyn_cast<memref::LoadOp>(op))
        checkIndices(op, "tensor.extract", load.getMemRef(), load.getIndices());
      else if (auto store = dyn_cast<memref::StoreOp>(op))
        checkIndices(op, "tensor.insert", store.getMemRef(),
                     store.getIndices());
      else
        checkDivision(op);
    }
    sites.clear();
  }

private:
  void checkIndices(Operation *op, StringRef name, Value memref,
                    ValueRange indices) {
    ImplicitLocOpBuilder b(op->getLoc(), op);
    auto type = cast<MemRefType>(memref.getType());
    for (auto [dim, index] : llvm::enumerate(indices)) {
      APInt known;
      if (!type.isDynamicDim(dim) &&
          matchPattern(index, m_ConstantInt(&known)) &&
          known.ult(type.getDimSize(dim)))
        continue;
      Value size = b.createOrFold<memref::DimOp>(memref, int64_t(dim));
      call(b, "fovea_check_index",
           {getSite(b, name), toI64(b, index), toI64(b, size),
            constant(b, int64_t(dim))});
    }
  }

  void checkDivision(Operation *op) {
    Type type = op->getResult(0).getType();
    APInt known;
    // A vector's divisor comes from a pass, and needs no check.
    if (isa<ShapedType>(type) ||
        (matchPattern(op->getOperand(1), m_ConstantInt(&known)) &&
         !known.isZero() && !known.isAllOnes()))
      return;
    ImplicitLocOpBuilder b(op->getLoc(), op);
    bool isSigned = isSignedDivision(op);
    int64_t width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
    call(b, "fovea_check_divisor",
         {getSite(b, op->getName().getStringRef()), toI64(b, op->getOperand(0)),
          toI64(b, op->getOperand(1)), constant(b, isSigned ? width : 0)});
  }

  static Value constant(ImplicitLocOpBuilder &b, int64_t value) {
    return arith::ConstantOp::create(b, b.getI64IntegerAttr(value));
  }

  static Value toI64(ImplicitLocOpBuilder &b, Value value) {
    Type i64 = b.getI64Type();
    if (value.getType().isIndex())
      return arith::IndexCastOp::create(b, i64, value);
    unsigned width = value.getType().getIntOrFloatBitWidth();
    if (width == 64)
      return value;
    if (width > 64)
      return arith::TruncIOp::create(b, i64, value);
    return arith::ExtSIOp::create(b, i64, value);
  }

  void call(ImplicitLocOpBuilder &b, StringRef name, ValueRange operands) {
    ModuleOp module = getOperation();
    if (!module.lookupSymbol(name)) {
      auto callee = func::FuncOp::create(
          b.getLoc(), name,
          b.getFunctionType(ValueRange(operands).getTypes(), {}));
      callee.setPrivate();
      module.push_back(callee);
    }
    func::CallOp::create(b, name, TypeRange(), operands);
    ++numChecks;
  }

  /// Returns the address of a text that names `name` and its location.
  Value getSite(ImplicitLocOpBuilder &b, StringRef name) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    if (auto place = b.getLoc()->findInstanceOf<FileLineColLoc>())
      stream << place.getFilename().getValue() << ':' << place.getLine() << ':'
             << place.getColumn() << ": ";
    stream << '\'' << name << '\'';
    LLVM::GlobalOp &site = sites[text];
    if (!site) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(getOperation().getBody());
      std::string symbol = "fovea_site_" + std::to_string(sites.size());
      auto type = LLVM::LLVMArrayType::get(b.getI8Type(), text.size() + 1);
      site = LLVM::GlobalOp::create(
          b, type, /*isConstant=*/true, LLVM::Linkage::Private, symbol,
          b.getStringAttr(StringRef(text.c_str(), text.size() + 1)));
    }
    return LLVM::AddressOfOp::create(b, site);
  }

  llvm::StringMap<LLVM::GlobalOp> sites;
};
} // namespace
} // namespace fovea
