//===- GpuKernelsToNVVM.cpp - convert-gpu-kernels-to-nvvm -----------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Upstream's convert-gpu-to-nvvm replaces mathematics by calls of libdevice,
// even square roots that are one instruction; so this pass combines upstream's
// patterns anew, without those calls.
//
//===----------------------------------------------------------------------===//

#include "fovea/Conversion/Passes.h"
#include "fovea/Dialect/Machine/IR/Machine.h"
#include "fovea/Transforms/GpuKernels.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

/// Returns true if LLVM has instructions of the GPU for `op`.
static bool isInstruction(Operation *op) {
  if (fovea::hasExp2Instruction(op))
    return true;
  return isa<math::AbsFOp, math::AbsIOp, math::CeilOp, math::CopySignOp,
             math::CountLeadingZerosOp, math::CountTrailingZerosOp,
             math::CtPopOp, math::FloorOp, math::FmaOp, math::IsFiniteOp,
             math::IsInfOp, math::IsNaNOp, math::IsNormalOp, math::RoundOp,
             math::RoundEvenOp, math::RsqrtOp, math::SqrtOp, math::TruncOp>(op);
}

static LogicalResult checkMath(gpu::GPUModuleOp module) {
  WalkResult result = module.walk([](Operation *op) {
    bool isMath = isa<math::MathDialect>(op->getDialect());
    if ((!isMath || isInstruction(op)) && !isa<arith::RemFOp>(op))
      return WalkResult::advance();
    op->emitOpError() << "on " << op->getResult(0).getType()
                      << " is not available on a GPU";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

namespace {
/// An argument that a kernel takes by value, by its index after conversion.
struct ByValueArgument {
  StringAttr kernel;
  unsigned index;
  Attribute type;
};
} // namespace

/// The arguments with `llvm.byval`, which the conversion drops.
static SmallVector<ByValueArgument>
findByValueArguments(gpu::GPUModuleOp module,
                     const LLVMTypeConverter &converter) {
  SmallVector<ByValueArgument> found;
  for (auto kernel : module.getOps<gpu::GPUFuncOp>()) {
    TypeConverter::SignatureConversion signature(kernel.getNumArguments());
    converter.convertFunctionSignature(kernel.getFunctionType(),
                                       /*isVariadic=*/false,
                                       /*useBarePtrCallConv=*/false, signature);
    for (unsigned index = 0; index < kernel.getNumArguments(); ++index)
      if (Attribute type =
              kernel.getArgAttr(index, LLVM::LLVMDialect::getByValAttrName()))
        found.push_back({kernel.getNameAttr(),
                         unsigned(signature.getInputMapping(index)->inputNo),
                         type});
  }
  return found;
}

/// Declares that the memory behind each pointer is accessed through that
/// pointer only, so that loads may go past stores.
static void setNoAlias(LLVM::LLVMFuncOp kernel) {
  for (unsigned index = 0; index < kernel.getNumArguments(); ++index)
    if (isa<LLVM::LLVMPointerType>(kernel.getArgument(index).getType()))
      kernel.setArgAttr(index, LLVM::LLVMDialect::getNoAliasAttrName(),
                        UnitAttr::get(kernel.getContext()));
}

/// An address as one of global memory.
static Value castToGlobal(OpBuilder &builder, Location loc, Value address) {
  auto global = LLVM::LLVMPointerType::get(
      builder.getContext(), unsigned(NVVM::NVVMMemorySpace::Global));
  return LLVM::AddrSpaceCastOp::create(builder, loc, global, address);
}

namespace {
/// A prefetch from the GPU's memory to its L2 cache, which LLVM would drop.
struct PrefetchLowering : ConvertOpToLLVMPattern<memref::PrefetchOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(memref::PrefetchOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value address = castToGlobal(
        rewriter, loc,
        getStridedElementPtr(rewriter, loc, op.getMemRefType(),
                             adaptor.getMemref(), adaptor.getIndices()));
    auto level = NVVM::PrefetchCacheLevelAttr::get(
        rewriter.getContext(), NVVM::PrefetchCacheLevel::L2);
    rewriter.replaceOpWithNewOp<NVVM::PrefetchOp>(
        op, level, /*evictPriority=*/nullptr, address, /*predicate=*/nullptr,
        /*tensormap=*/nullptr, /*uniform=*/nullptr, /*in_param_space=*/nullptr);
    return success();
  }
};

/// An atomic addition in global memory that orders no other access of the
/// kernel. Upstream's orders all memory of the system.
struct AtomicAddLowering : ConvertOpToLLVMPattern<memref::AtomicRMWOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(memref::AtomicRMWOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    bool isInteger = op.getKind() == arith::AtomicRMWKind::addi;
    if ((!isInteger && op.getKind() != arith::AtomicRMWKind::addf) ||
        op.getMemRefType().getMemorySpace())
      return failure();
    Location loc = op.getLoc();
    Value address = castToGlobal(
        rewriter, loc,
        getStridedElementPtr(rewriter, loc, op.getMemRefType(),
                             adaptor.getMemref(), adaptor.getIndices()));
    rewriter.replaceOpWithNewOp<LLVM::AtomicRMWOp>(
        op, isInteger ? LLVM::AtomicBinOp::add : LLVM::AtomicBinOp::fadd,
        address, adaptor.getValue(), LLVM::AtomicOrdering::monotonic, "device");
    return success();
  }
};

/// bf16 is the upper half of f32. PTX's conversion that flushes denormals goes
/// through the unit of transcendental functions, at an eighth of the rate; a
/// pair of halves becomes one byte permutation.
struct WidenLowering : ConvertOpToLLVMPattern<arith::ExtFOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(arith::ExtFOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Type narrow = op.getIn().getType();
    if (!narrow.isBF16() || !op.getType().isF32())
      return failure();
    Location loc = op.getLoc();
    auto pair = VectorType::get(2, narrow);
    Value halves = LLVM::ZeroOp::create(rewriter, loc, pair);
    Value upper =
        createScalarOrSplatConstant(rewriter, loc, rewriter.getI32Type(), 1);
    halves = LLVM::InsertElementOp::create(rewriter, loc, halves,
                                           adaptor.getIn(), upper);
    rewriter.replaceOpWithNewOp<LLVM::BitcastOp>(op, op.getType(), halves);
    return success();
  }
};
} // namespace

/// Returns true if a kernel computes with f16 numbers. Where the PTX back end
/// makes zeros of denormal f32 numbers, it does so with those of f16 also.
/// Denormals of f32 matter little; those of f16 begin at 6e-5.
static bool computesInHalves(gpu::GPUFuncOp kernel) {
  return kernel
      .walk([](Operation *op) {
        bool isArithmetic =
            isa_and_present<arith::ArithDialect, math::MathDialect>(
                op->getDialect()) &&
            !isa<arith::ExtFOp, arith::TruncFOp, arith::BitcastOp,
                 arith::SelectOp>(op);
        bool isHalf = llvm::any_of(op->getOperandTypes(), [](Type type) {
          return getElementTypeOrSelf(type).isF16();
        });
        return isArithmetic && isHalf ? WalkResult::interrupt()
                                      : WalkResult::advance();
      })
      .wasInterrupted();
}

namespace fovea {
#define GEN_PASS_DEF_GPUKERNELSTONVVM
#include "fovea/Conversion/Passes.h.inc"

namespace {

struct GpuKernelsToNVVM final : impl::GpuKernelsToNVVMBase<GpuKernelsToNVVM> {
  void runOnOperation() override {
    gpu::GPUModuleOp module = getOperation();
    MLIRContext *context = &getContext();
    if (failed(checkMath(module)))
      return signalPassFailure();
    // Names of the kernels that compute with f16, found while ops are still
    // those of the program.
    llvm::StringSet<> halfKernels;
    for (auto kernel : module.getOps<gpu::GPUFuncOp>())
      if (computesInHalves(kernel))
        halfKernels.insert(kernel.getName());
    LowerToLLVMOptions options(context);
    options.overrideIndexBitwidth(64);
    LLVMTypeConverter converter(context, options);
    configureGpuToNVVMTypeConverter(converter);
    SmallVector<ByValueArgument> byValue =
        findByValueArguments(module, converter);
    SymbolTableCollection symbols;
    RewritePatternSet patterns(context);
    populateGpuToNVVMConversionPatterns(converter, patterns);
    populateGpuSubgroupReduceOpLoweringPattern(converter, patterns);
    populateFuncToLLVMConversionPatterns(converter, patterns, &symbols);
    populateFinalizeMemRefToLLVMConversionPatterns(converter, patterns,
                                                   &symbols);
    arith::populateArithToLLVMConversionPatterns(converter, patterns);
    cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
    index::populateIndexToLLVMConversionPatterns(converter, patterns);
    populateMathToLLVMConversionPatterns(converter, patterns,
                                         /*approximateLog1p=*/false,
                                         /*benefit=*/2);
    populateVectorToLLVMConversionPatterns(converter, patterns);
    patterns.add<AtomicAddLowering, PrefetchLowering, WidenLowering>(
        converter, /*benefit=*/2);
    ub::populateUBToLLVMConversionPatterns(converter, patterns);

    LLVMConversionTarget target(*context);
    target.addLegalDialect<NVVM::NVVMDialect>();
    target.addIllegalDialect<gpu::GPUDialect>();
    target.addLegalOp<gpu::GPUModuleOp>();
    ConversionConfig config;
    // Canonical kernels have nothing to fold.
    config.foldingMode = DialectConversionFoldingMode::Never;
    if (failed(applyPartialConversion(module, target, std::move(patterns),
                                      config)))
      return signalPassFailure();

    for (auto function : module.getOps<LLVM::LLVMFuncOp>()) {
      // Blocks always have the known size, which ptxas makes use of.
      if (Attribute size =
              function->removeAttr(NVVM::NVVMDialect::getMaxntidAttrName()))
        function->setAttr(NVVM::NVVMDialect::getReqntidAttrName(), size);
      if (!halfKernels.contains(function.getName()))
        function.setDenormalFpMathF32("preserve-sign,preserve-sign");
      if (function->removeAttr(machine::kDistinctMemoryAttrName))
        setNoAlias(function);
    }
    // These arguments are not written, so that no thread needs a copy.
    for (const ByValueArgument &argument : byValue) {
      auto kernel = module.lookupSymbol<LLVM::LLVMFuncOp>(argument.kernel);
      kernel.setArgAttr(argument.index, LLVM::LLVMDialect::getByValAttrName(),
                        argument.type);
      kernel.setArgAttr(argument.index,
                        NVVM::NVVMDialect::getGridConstantAttrName(),
                        UnitAttr::get(context));
    }
  }
};

} // namespace
} // namespace fovea
