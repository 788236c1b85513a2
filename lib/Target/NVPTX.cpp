//===- NVPTX.cpp - From LLVM IR to PTX ------------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Target/NVPTX.h"

#include "ChainComparisons.h"
#include "Optimize.h"
#include "fovea/Support/PhaseTiming.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"
#include "llvm/Transforms/IPO/FunctionAttrs.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/InstSimplifyPass.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"

#include <mutex>

using namespace fovea;

static constexpr llvm::StringLiteral kTriple = "nvptx64-nvidia-cuda";

static llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createTargetMachine(const PTXOptions &options) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  llvm::Triple triple(kTriple);
  std::string message;
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, message);
  if (!target)
    return llvm::createStringError(message);
  llvm::TargetOptions targetOptions;
  // Products and sums are contracted, as CUDA compilers do: both are rounded
  // once.
  targetOptions.AllowFPOpFusion = llvm::FPOpFusion::Fast;
  std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(
      triple, options.arch->name,
      "+ptx" + std::to_string(options.arch->ptxVersion), targetOptions,
      std::nullopt, std::nullopt,
      options.optLevel == 0 ? llvm::CodeGenOptLevel::None
                            : llvm::CodeGenOptLevel::Default));
  if (!machine)
    return llvm::createStringError("LLVM has no code generator for '" +
                                   kTriple + "'");
  return machine;
}

namespace {
/// Keeps LLVM's errors, which would otherwise end the process.
class ErrorCollector : public llvm::DiagnosticHandler {
public:
  explicit ErrorCollector(std::string &messages) : messages(messages) {}

  bool handleDiagnostics(const llvm::DiagnosticInfo &info) override {
    if (info.getSeverity() != llvm::DS_Error)
      return true;
    llvm::raw_string_ostream stream(messages);
    if (!messages.empty())
      stream << "\n";
    llvm::DiagnosticPrinterRawOStream printer(stream);
    info.print(printer);
    return true;
  }

private:
  std::string &messages;
};
} // namespace

/// Returns an error for a function that a kernel calls but nobody defines;
/// ptxas or the driver would report it less clearly.
static llvm::Error checkDefinitions(const llvm::Module &module) {
  for (const llvm::Function &function : module) {
    // The driver defines these two.
    if (!function.isDeclaration() || function.isIntrinsic() ||
        function.use_empty() || function.getName() == "vprintf" ||
        function.getName() == "__assertfail")
      continue;
    return llvm::createStringError("kernels call '" + function.getName() +
                                   "', which is defined nowhere");
  }
  return llvm::Error::success();
}

/// Marks inline assembly as convergent: it may be an instruction of a whole
/// warp, which must not move into a branch. MLIR's op for it has no such mark.
static void markConvergent(llvm::Module &module) {
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction : llvm::instructions(function))
      if (auto *call = llvm::dyn_cast<llvm::CallInst>(&instruction))
        if (call->isInlineAsm())
          call->setConvergent();
}

/// Makes comparisons of bf16 comparisons of f32: where f32 is flushed to zero,
/// LLVM also flushes in the comparison of bf16, for which PTX has no
/// instruction.
static void widenComparisons(llvm::Module &module) {
  llvm::Type *wide = llvm::Type::getFloatTy(module.getContext());
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction : llvm::instructions(function)) {
      auto *compare = llvm::dyn_cast<llvm::FCmpInst>(&instruction);
      if (!compare || !compare->getOperand(0)->getType()->isBFloatTy())
        continue;
      llvm::IRBuilder<> builder(compare);
      for (llvm::Use &operand : compare->operands())
        operand.set(builder.CreateFPExt(operand, wide));
    }
}

/// Returns true if `instruction` computes or compares elements of f16 by an
/// operation that gives the same result in f32, rounded to f16.
static bool isHalfArithmetic(const llvm::Instruction &instruction) {
  if (instruction.getNumOperands() == 0 ||
      !instruction.getOperand(0)->getType()->getScalarType()->isHalfTy())
    return false;
  if (const auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction)) {
    switch (call->getIntrinsicID()) {
    case llvm::Intrinsic::fabs:
    case llvm::Intrinsic::sqrt:
    case llvm::Intrinsic::floor:
    case llvm::Intrinsic::ceil:
    case llvm::Intrinsic::trunc:
    case llvm::Intrinsic::rint:
    case llvm::Intrinsic::nearbyint:
    case llvm::Intrinsic::roundeven:
    case llvm::Intrinsic::minnum:
    case llvm::Intrinsic::maxnum:
    case llvm::Intrinsic::minimum:
    case llvm::Intrinsic::maximum:
    case llvm::Intrinsic::copysign:
      return true;
    default:
      return false;
    }
  }
  return llvm::isa<llvm::BinaryOperator, llvm::UnaryOperator, llvm::FCmpInst>(
      instruction);
}

/// Computes in f32 where LLVM would compute in f16, which it does where a
/// program rounds the f32 result of two f16 numbers to f16. Where f32 is
/// flushed to zero, LLVM also flushes in f16, but the denormal numbers of f16
/// begin at 6e-5; in f32 they are normal. f32 has twice the digits of f16 and
/// two more, so that rounding twice gives the result of rounding once.
static void widenHalves(llvm::Module &module) {
  llvm::SmallVector<llvm::Instruction *> narrow;
  for (llvm::Function &function : module) {
    if (function.getDenormalMode(llvm::APFloat::IEEEsingle()) ==
        llvm::DenormalMode::getIEEE())
      continue;
    for (llvm::Instruction &instruction : llvm::instructions(function))
      if (isHalfArithmetic(instruction))
        narrow.push_back(&instruction);
  }
  for (llvm::Instruction *instruction : narrow) {
    llvm::IRBuilder<> builder(instruction);
    llvm::Type *type = instruction->getOperand(0)->getType();
    llvm::Type *wide = type->getWithNewType(builder.getFloatTy());
    auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(instruction);
    llvm::SmallVector<llvm::Value *, 2> operands;
    for (llvm::Value *operand :
         call ? llvm::iterator_range<llvm::User::op_iterator>(call->args())
              : instruction->operands())
      operands.push_back(builder.CreateFPExt(operand, wide));
    llvm::Value *result;
    if (call) {
      result =
          builder.CreateIntrinsic(call->getIntrinsicID(), {wide}, operands);
    } else {
      llvm::Instruction *copy = instruction->clone();
      for (auto [use, operand] : llvm::zip_equal(copy->operands(), operands))
        use.set(operand);
      if (!llvm::isa<llvm::FCmpInst>(copy))
        copy->mutateType(wide);
      result = builder.Insert(copy);
    }
    if (result->getType() == wide)
      result = builder.CreateFPTrunc(result, type);
    instruction->replaceAllUsesWith(result);
    instruction->eraseFromParent();
  }
}

/// Returns true if the threads of a kernel's block, all at once, have fewer
/// registers than most.
static bool hasManyThreads(const llvm::Function &kernel) {
  constexpr int64_t kMany = 512;
  llvm::StringRef shape =
      kernel.getFnAttribute("nvvm.reqntid").getValueAsString();
  int64_t threads = 1;
  for (llvm::StringRef size : llvm::split(shape, ',')) {
    int64_t number = 1;
    if (!size.getAsInteger(10, number))
      threads *= number;
  }
  return threads > kMany;
}

namespace {
/// Simplifies instructions. The forms that LLVM combines them to take more
/// registers: those of four warp groups (head dim 64, causal) would spill 40
/// bytes.
struct SimplifyPass : llvm::PassInfoMixin<SimplifyPass> {
  llvm::PreservedAnalyses run(llvm::Function &function,
                              llvm::FunctionAnalysisManager &analyses) {
    if (hasManyThreads(function))
      return llvm::InstSimplifyPass().run(function, analyses);
    return llvm::InstCombinePass().run(function, analyses);
  }
};
} // namespace

/// Returns the passes of a level from 1 to 3.
static llvm::ModulePassManager buildPasses(llvm::PassBuilder &builder,
                                           int level) {
  if (level > 1)
    return buildDefaultPasses(builder, level);
  llvm::FunctionPassManager simple;
  simple.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  simple.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  simple.addPass(SimplifyPass());
  simple.addPass(llvm::SimplifyCFGPass());
  llvm::ModulePassManager passes;
  passes.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(simple)));
  // Finds pointers that are only read, whose loads may go past stores.
  passes.addPass(llvm::createModuleToPostOrderCGSCCPassAdaptor(
      llvm::PostOrderFunctionAttrsPass()));
  return passes;
}

/// Adds 0 to each high half of a product of 32-bit numbers. ptxas, up to 13.5
/// at least, computes a 64-bit difference whose low half begins with such a
/// product, as `x / 6 - y` does, as that product plus the negated low half of
/// `y`, and takes the carry from this sum. There is no carry where that half is
/// 0, so that the difference is 2^32 too small. A product that already has an
/// addend is left alone; the added 0 gives the same instruction.
static std::string addToHighProducts(llvm::StringRef ptx) {
  std::string result;
  result.reserve(ptx.size() + ptx.size() / 64);
  while (!ptx.empty()) {
    auto [line, rest] = ptx.split('\n');
    ptx = rest;
    llvm::StringRef operands = line;
    if (operands.consume_front("\tmul.hi.") &&
        (operands.starts_with("u32") || operands.starts_with("s32")) &&
        operands.consume_back(";"))
      result += ("\tmad.hi." + operands + ", 0;").str();
    else
      result += line;
    result += '\n';
  }
  return result;
}

llvm::Expected<std::string> fovea::compileToPTX(llvm::Module &module,
                                                const PTXOptions &options) {
  mlir::TimingScope timing =
      timePhase(options.timing, "Optimisation of LLVM IR");
  auto machine = createTargetMachine(options);
  if (!machine)
    return machine.takeError();
  module.setTargetTriple((*machine)->getTargetTriple());
  module.setDataLayout((*machine)->createDataLayout());
  std::string broken;
  llvm::raw_string_ostream brokenStream(broken);
  if (llvm::verifyModule(module, &brokenStream))
    return llvm::createStringError("the kernels' LLVM IR is broken: " + broken);
  if (llvm::Error error = checkDefinitions(module))
    return error;
  markConvergent(module);
  if (options.optLevel > 0)
    optimize(module, **machine, [&](llvm::PassBuilder &builder) {
      return buildPasses(builder, options.optLevel);
    });
  widenComparisons(module);
  widenHalves(module);
  if (options.optLevel > 0)
    chainComparisons(module);

  timing = timePhase(options.timing, "Generation of PTX");
  std::string errors;
  llvm::LLVMContext &context = module.getContext();
  std::unique_ptr<llvm::DiagnosticHandler> handler =
      context.getDiagnosticHandler();
  context.setDiagnosticHandler(std::make_unique<ErrorCollector>(errors));
  llvm::scope_exit restore(
      [&] { context.setDiagnosticHandler(std::move(handler)); });
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  if ((*machine)->addPassesToEmitFile(passes, stream, nullptr,
                                      llvm::CodeGenFileType::AssemblyFile,
                                      /*DisableVerify=*/true))
    return llvm::createStringError("LLVM cannot write PTX");
  passes.run(module);
  if (!errors.empty())
    return llvm::createStringError(
        "LLVM cannot translate the kernels to PTX: " + errors);
  return addToHighProducts(text);
}
