//===- HostCodegen.cpp - From the LLVM dialect to machine code ------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Target/HostCodegen.h"

#include "Optimize.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"

#include <mutex>

using namespace fovea;

static constexpr llvm::StringLiteral kInterfacePrefix = "_mlir_ciface_";

void fovea::initializeHostCodegen() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
}

static llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createTargetMachine(const CodegenOptions &options) {
  initializeHostCodegen();
  const HostProcessor &processor = options.processor;
  llvm::Triple triple(processor.triple);
  std::string message;
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, message);
  if (!target)
    return llvm::createStringError(message);
  // Checked before code is generated for the processor; otherwise LLVM would
  // print that it is unknown.
  std::unique_ptr<llvm::MCSubtargetInfo> processors(
      target->createMCSubtargetInfo(triple, /*CPU=*/"", /*Features=*/""));
  if (!processors || !processors->isCPUStringValid(processor.cpu))
    return llvm::createStringError("unknown processor '" + processor.cpu +
                                   "' for '" + processor.triple + "'");
  static constexpr llvm::CodeGenOptLevel levels[] = {
      llvm::CodeGenOptLevel::None, llvm::CodeGenOptLevel::Default,
      llvm::CodeGenOptLevel::Default, llvm::CodeGenOptLevel::Aggressive};
  llvm::CodeGenOptLevel level = levels[options.optLevel];
  // LLVM's fast code generation does not know AMX tiles.
  if (options.optLevel == 0 &&
      llvm::StringRef(processor.features).contains("+amx-tile"))
    level = llvm::CodeGenOptLevel::Less;
  std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(
      triple, processor.cpu, processor.features, llvm::TargetOptions(),
      llvm::Reloc::PIC_, std::nullopt, level));
  if (!machine)
    return llvm::createStringError("no code generator for '" +
                                   processor.triple + "'");
  return machine;
}

/// Adds the entry that takes all of a function's arguments in one array.
static void addPackedEntry(llvm::Function &interface) {
  llvm::LLVMContext &context = interface.getContext();
  llvm::StringRef name =
      interface.getName().drop_front(kInterfacePrefix.size());
  llvm::Type *pointer = llvm::PointerType::getUnqual(context);
  auto *type = llvm::FunctionType::get(llvm::Type::getVoidTy(context),
                                       {pointer}, /*isVarArg=*/false);
  auto *packed =
      llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage,
                             getPackedName(name), interface.getParent());
  llvm::IRBuilder<> builder(llvm::BasicBlock::Create(context, "", packed));
  unsigned next = 0;
  auto loadNext = [&]() -> llvm::Value * {
    llvm::Value *slot =
        builder.CreateConstGEP1_64(pointer, packed->getArg(0), next++);
    return builder.CreateLoad(pointer, slot);
  };
  // One number is returned; other results have an argument.
  llvm::Value *result =
      interface.getReturnType()->isVoidTy() ? nullptr : loadNext();
  llvm::SmallVector<llvm::Value *> arguments;
  for (llvm::Argument &argument : interface.args()) {
    llvm::Value *value = loadNext();
    if (!argument.getType()->isPointerTy())
      value = builder.CreateLoad(argument.getType(), value);
    arguments.push_back(value);
  }
  llvm::Value *returned = builder.CreateCall(&interface, arguments);
  if (result)
    builder.CreateStore(returned, result);
  builder.CreateRetVoid();
}

std::string fovea::getPackedName(llvm::StringRef function) {
  return ("_fovea_packed_" + function).str();
}

llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
fovea::emitHostCode(mlir::ModuleOp op, const CodegenOptions &options,
                    CodeKind kind) {
  auto machine = createTargetMachine(options);
  if (!machine)
    return machine.takeError();
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module =
      mlir::translateModuleToLLVMIR(op, context, "fovea");
  if (!module)
    return llvm::createStringError("cannot translate the module to LLVM IR");
  module->setTargetTriple((*machine)->getTargetTriple());
  module->setDataLayout((*machine)->createDataLayout());

  llvm::SmallVector<llvm::Function *> interfaces;
  for (llvm::Function &function : *module) {
    // Failures jump, nothing unwinds; and LLVM must not fall back to 256-bit
    // vectors where 512-bit vectors were requested.
    function.setDoesNotThrow();
    if (function.isDeclaration())
      continue;
    function.addFnAttr("prefer-vector-width", "512");
    if (function.getName().starts_with(kInterfacePrefix))
      interfaces.push_back(&function);
  }
  for (llvm::Function *interface : interfaces) {
    addPackedEntry(*interface);
    module
        ->getFunction(getPackedName(
            interface->getName().drop_front(kInterfacePrefix.size())))
        ->setDoesNotThrow();
  }

  if (options.optLevel >= 2)
    optimize(*module, **machine, [&](llvm::PassBuilder &builder) {
      return buildDefaultPasses(builder, options.optLevel);
    });

  llvm::SmallVector<char, 0> code;
  llvm::raw_svector_ostream stream(code);
  llvm::legacy::PassManager passes;
  if ((*machine)->addPassesToEmitFile(passes, stream, nullptr,
                                      kind == CodeKind::Assembly
                                          ? llvm::CodeGenFileType::AssemblyFile
                                          : llvm::CodeGenFileType::ObjectFile,
                                      /*DisableVerify=*/true))
    return llvm::createStringError("the code generator cannot write this kind "
                                   "of file");
  passes.run(*module);
  return std::make_unique<llvm::SmallVectorMemoryBuffer>(
      std::move(code), "fovea", /*RequiresNullTerminator=*/false);
}
