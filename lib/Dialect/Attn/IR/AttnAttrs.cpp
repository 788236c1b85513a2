//===- AttnAttrs.cpp - Attributes of the attn dialect ---------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Attn/IR/Attn.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace fovea::attn;

/// Parses `QxK`.
static ParseResult parseTileShape(AsmParser &parser, int64_t &queryTile,
                                  int64_t &keyTile) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<int64_t, 2> shape;
  auto parse = [&]() -> ParseResult {
    // What it says does not tell what is expected.
    ScopedDiagnosticHandler quiet(parser.getContext(),
                                  [](Diagnostic &) { return success(); });
    return parser.parseDimensionList(shape, /*allowDynamic=*/false,
                                     /*withTrailingX=*/false);
  };
  if (parse())
    return parser.emitError(loc, "expected a tile of queries x keys, such as "
                                 "64x128");
  if (shape.size() != 2)
    return parser.emitError(loc, "expected a tile of 2 dimensions, queries x "
                                 "keys, but got ")
           << shape.size();
  queryTile = shape[0];
  keyTile = shape[1];
  return success();
}

static void printTileShape(AsmPrinter &printer, int64_t queryTile,
                           int64_t keyTile) {
  printer << queryTile << "x" << keyTile;
}

#include "fovea/Dialect/Attn/IR/AttnEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "fovea/Dialect/Attn/IR/AttnAttrs.cpp.inc"

void AttnDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "fovea/Dialect/Attn/IR/AttnAttrs.cpp.inc"
      >();
}

LogicalResult ScheduleAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   int64_t queryTile, int64_t keyTile,
                                   WorkOrder order, int64_t warps,
                                   int64_t stages) {
  if (queryTile < 1 || keyTile < 1)
    return emitError() << "tile must have at least 1 query and 1 key, but is "
                       << queryTile << "x" << keyTile;
  if (warps == 0 && stages == 0)
    return success();
  if (warps < 1 || warps > 32)
    return emitError() << "warps must be 1 to 32, but are " << warps;
  if (stages < 1 || stages > 8)
    return emitError() << "stages must be 1 to 8, but are " << stages;
  for (auto [name, size] :
       {std::pair("queries", queryTile), std::pair("keys", keyTile)})
    if (size % 16)
      return emitError() << "tile must have a multiple of 16 " << name
                         << ", but has " << size;
  return success();
}

LogicalResult TargetAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 StringRef name, StringRef arch, int64_t cores,
                                 int64_t vectorBytes, int64_t vectorRegisters,
                                 int64_t fastMemory, int64_t nearMemory,
                                 int64_t bandwidth, int64_t peak,
                                 int64_t sharedMemory, int64_t matrixPeak) {
  bool isHost = name == "host";
  StringRef family = name == "sm_80"    ? "ampere"
                     : name == "sm_90a" ? "hopper"
                                        : "";
  if (!isHost && family.empty())
    return emitError() << "unknown target \"" << name
                       << "\"; expected \"host\", \"sm_80\" or \"sm_90a\"";
  if (isHost && arch != "avx512" && arch != "avx2" && arch != "generic")
    return emitError() << "unknown arch \"" << arch
                       << "\"; expected avx512, avx2 or generic";
  if (!isHost && arch != family)
    return emitError() << "arch of \"" << name << "\" must be " << family
                       << ", but is " << arch;
  SmallVector<std::pair<StringRef, int64_t>> counts = {
      {"cores", cores},
      {"vector_bytes", vectorBytes},
      {"vector_registers", vectorRegisters},
      {"fast_memory", fastMemory},
      {"near_memory", nearMemory},
      {"bandwidth", bandwidth},
      {"peak", peak}};
  if (!isHost) {
    counts.push_back({"shared_memory", sharedMemory});
    counts.push_back({"matrix_peak", matrixPeak});
  }
  for (auto [key, value] : counts)
    if (value < 1)
      return emitError() << key << " must be at least 1, but is " << value;
  if (isHost && (sharedMemory != 0 || matrixPeak != 0))
    return emitError()
           << "shared_memory and matrix_peak are of GPUs, but the target is "
              "\"host\"";
  if (isHost && vectorBytes != 16 && vectorBytes != 32 && vectorBytes != 64)
    return emitError() << "vector_bytes must be 16, 32 or 64, but is "
                       << vectorBytes;
  if (!isHost && vectorBytes != 128)
    return emitError() << "vector_bytes of a GPU must be 128, but is "
                       << vectorBytes;
  return success();
}

TargetAttr fovea::attn::getTarget(Operation *op) {
  for (; op; op = op->getParentOp())
    if (auto target = op->getAttrOfType<TargetAttr>(kTargetAttrName))
      return target;
  return {};
}

TargetAttr fovea::attn::getTargetOrDefault(Operation *op) {
  if (TargetAttr target = getTarget(op))
    return target;
  return TargetAttr::get(op->getContext(), "host", "avx512", /*cores=*/2,
                         /*vectorBytes=*/64, /*vectorRegisters=*/32,
                         /*fastMemory=*/32 << 10, /*nearMemory=*/1 << 20,
                         /*bandwidth=*/12000, /*peak=*/300, /*sharedMemory=*/0,
                         /*matrixPeak=*/0);
}
