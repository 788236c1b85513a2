//===- MachineDialect.cpp - The machine that code is for ------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Machine/IR/Machine.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace fovea::machine;

#include "fovea/Dialect/Machine/IR/MachineDialect.cpp.inc"

/// Parses the numbers that not every machine has, each behind a comma.
static ParseResult parseUnits(AsmParser &parser, int64_t &sharedMemory,
                              int64_t &matrixPeak) {
  sharedMemory = matrixPeak = 0;
  if (failed(parser.parseOptionalComma()))
    return success();
  if (succeeded(parser.parseOptionalKeyword("shared_memory"))) {
    if (parser.parseEqual() || parser.parseInteger(sharedMemory))
      return failure();
    if (failed(parser.parseOptionalComma()))
      return success();
  }
  return failure(parser.parseKeyword("matrix_peak") || parser.parseEqual() ||
                 parser.parseInteger(matrixPeak));
}

static void printUnits(AsmPrinter &printer, int64_t sharedMemory,
                       int64_t matrixPeak) {
  if (sharedMemory)
    printer << ", shared_memory = " << sharedMemory;
  if (matrixPeak)
    printer << ", matrix_peak = " << matrixPeak;
}

#define GET_ATTRDEF_CLASSES
#include "fovea/Dialect/Machine/IR/MachineAttrs.cpp.inc"

void MachineDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "fovea/Dialect/Machine/IR/MachineAttrs.cpp.inc"
      >();
}

/// Returns true if `attribute` is an i64 of at least `least`.
static bool isInteger(Attribute attribute, int64_t least) {
  auto integer = dyn_cast<IntegerAttr>(attribute);
  return integer && integer.getType().isSignlessInteger(64) &&
         integer.getInt() >= least;
}

template <typename T>
static bool isAttribute(Attribute attribute) {
  return isa<T>(attribute);
}

template <typename... T>
static bool isOp(Operation *op) {
  return isa<T...>(op);
}

static bool isStrings(Attribute attribute) {
  auto array = dyn_cast<ArrayAttr>(attribute);
  return array && llvm::all_of(array, llvm::IsaPred<StringAttr>);
}

namespace {
/// The rules of one of the dialect's attributes of ops.
struct OpAttribute {
  StringRef name;
  StringRef value;
  bool (*hasValue)(Attribute);
  StringRef place;
  bool (*hasPlace)(Operation *);
};
} // namespace

static const OpAttribute kOpAttributes[] = {
    {kTargetAttrName, "a #machine.target", isAttribute<TargetAttr>, "a module",
     isOp<ModuleOp>},
    {kKernelAttrName, "an i64 of at least 0",
     [](Attribute attribute) { return isInteger(attribute, 0); },
     "an op with destinations", isOp<DestinationStyleOpInterface>},
    {kGrainAttrName, "an i64 of at least 1",
     [](Attribute attribute) { return isInteger(attribute, 1); }, "a loop",
     isOp<LoopLikeOpInterface>},
    {kDistinctMemoryAttrName, "a unit", isAttribute<UnitAttr>,
     "a launch or a function", isOp<gpu::LaunchOp, FunctionOpInterface>},
    {kStartsEarlyAttrName, "a unit", isAttribute<UnitAttr>, "a function",
     isOp<FunctionOpInterface>},
    {kMessagesAttrName, "an array of strings", isStrings, "a function",
     isOp<FunctionOpInterface>},
};

LogicalResult
MachineDialect::verifyOperationAttribute(Operation *op,
                                         NamedAttribute attribute) {
  const auto *rules =
      llvm::find_if(kOpAttributes, [&](const OpAttribute &known) {
        return known.name == attribute.getName().getValue();
      });
  if (rules == std::end(kOpAttributes))
    return op->emitOpError() << "has the attribute " << attribute.getName()
                             << ", which the machine dialect does not know";
  if (!rules->hasValue(attribute.getValue()))
    return op->emitOpError()
           << "expects '" << rules->name << "' to be " << rules->value
           << ", but it is " << attribute.getValue();
  if (!rules->hasPlace(op))
    return op->emitOpError()
           << "expects '" << rules->name << "' only on " << rules->place;
  return success();
}

LogicalResult TargetAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 StringRef name, StringRef arch, int64_t cores,
                                 int64_t vectorBytes, int64_t vectorRegisters,
                                 int64_t fastMemory, int64_t nearMemory,
                                 int64_t bandwidth, int64_t peak,
                                 int64_t sharedMemory, int64_t matrixPeak) {
  bool isHost = name == "host";
  const GpuArch *gpu = GpuArch::find(name);
  if (!isHost && !gpu)
    return emitError() << "unknown target \"" << name << "\"; expected "
                       << GpuArch::listNames({"host"});
  bool multipliesPairs = isHost && (arch == "amx" || arch == "avx512_bf16");
  if (isHost && !multipliesPairs && arch != "avx512" && arch != "avx2" &&
      arch != "generic")
    return emitError() << "unknown arch \"" << arch
                       << "\"; expected amx, avx512_bf16, avx512, avx2 or "
                          "generic";
  if (gpu && arch != gpu->family)
    return emitError() << "arch of \"" << name << "\" must be " << gpu->family
                       << ", but is " << arch;
  SmallVector<std::pair<StringRef, int64_t>> counts = {
      {"cores", cores},
      {"vector_bytes", vectorBytes},
      {"vector_registers", vectorRegisters},
      {"fast_memory", fastMemory},
      {"near_memory", nearMemory},
      {"bandwidth", bandwidth},
      {"peak", peak}};
  if (!isHost)
    counts.push_back({"shared_memory", sharedMemory});
  if (!isHost || multipliesPairs)
    counts.push_back({"matrix_peak", matrixPeak});
  for (auto [key, value] : counts)
    if (value < 1)
      return emitError() << key << " must be at least 1, but is " << value;
  if (isHost && sharedMemory != 0)
    return emitError()
           << "shared_memory is of GPUs, but the target is \"host\"";
  if (isHost && !multipliesPairs && matrixPeak != 0)
    return emitError()
           << "matrix_peak is of GPUs, amx and avx512_bf16, but the "
              "arch is "
           << arch;
  if (multipliesPairs && vectorBytes != 64)
    return emitError() << "vector_bytes of " << arch << " must be 64, but is "
                       << vectorBytes;
  if (isHost && vectorBytes != 16 && vectorBytes != 32 && vectorBytes != 64)
    return emitError() << "vector_bytes must be 16, 32 or 64, but is "
                       << vectorBytes;
  if (!isHost && vectorBytes != 4 * kWarpSize)
    return emitError() << "vector_bytes of a GPU must be " << 4 * kWarpSize
                       << ", but is " << vectorBytes;
  return success();
}

const GpuArch &TargetAttr::getGpuArch() const {
  assert(isGpu() && "a host has no GpuArch");
  return *GpuArch::find(getName());
}

TargetAttr fovea::machine::getTarget(Operation *op) {
  for (; op; op = op->getParentOp())
    if (auto target = op->getAttrOfType<TargetAttr>(kTargetAttrName))
      return target;
  return {};
}

TargetAttr fovea::machine::getTargetOrDefault(Operation *op) {
  if (TargetAttr target = getTarget(op))
    return target;
  return TargetAttr::get(op->getContext(), "host", "avx512", /*cores=*/2,
                         /*vectorBytes=*/64, /*vectorRegisters=*/32,
                         /*fastMemory=*/32 << 10, /*nearMemory=*/1 << 20,
                         /*bandwidth=*/12000, /*peak=*/300, /*sharedMemory=*/0,
                         /*matrixPeak=*/0);
}

TargetAttr fovea::machine::getTypicalGpu(MLIRContext *context,
                                         const GpuArch &arch) {
  context->loadDialect<MachineDialect>();
  return TargetAttr::get(context, arch.name, arch.family, arch.cores,
                         /*vectorBytes=*/4 * kWarpSize,
                         /*vectorRegisters=*/arch.registersPerCore / kWarpSize,
                         /*fastMemory=*/arch.sharedPerBlock,
                         /*nearMemory=*/arch.level2, arch.bandwidth, arch.peak,
                         arch.sharedPerCore, arch.matrixPeak);
}

TargetAttr fovea::machine::getGpuOrDefault(Operation *op) {
  TargetAttr target = getTarget(op);
  return target && target.isGpu()
             ? target
             : getTypicalGpu(op->getContext(), *GpuArch::find("sm_90a"));
}
