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
    // The inner parser's message does not say what is expected.
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

/// Parses `= name`, one of an enum.
template <typename EnumT>
static ParseResult parseChoice(AsmParser &parser, StringRef choice,
                               ArrayRef<StringRef> names, EnumT &value) {
  StringRef name;
  if (parser.parseEqual())
    return failure();
  SMLoc loc = parser.getCurrentLocation();
  if (failed(parser.parseOptionalKeyword(&name, names)))
    return parser.emitError(loc, "expected ")
           << choice << " to be one of: " << llvm::join(names, ", ");
  value = *symbolizeEnum<EnumT>(name);
  return success();
}

/// Parses choices that are not the default.
static ParseResult parseChoices(AsmParser &parser, Maximum &maximum,
                                Blocks &blocks) {
  while (succeeded(parser.parseOptionalComma())) {
    if (succeeded(parser.parseOptionalKeyword("maximum"))) {
      if (parseChoice(parser, "maximum", {"exact", "stale"}, maximum))
        return failure();
    } else if (succeeded(parser.parseOptionalKeyword("blocks"))) {
      if (parseChoice(parser, "blocks", {"tiles", "persistent"}, blocks))
        return failure();
    } else {
      return parser.emitError(parser.getCurrentLocation(),
                              "expected 'maximum' or 'blocks'");
    }
  }
  return success();
}

static void printChoices(AsmPrinter &printer, Maximum maximum, Blocks blocks) {
  if (maximum != Maximum::Exact)
    printer << ", maximum = " << stringifyMaximum(maximum);
  if (blocks != Blocks::Tiles)
    printer << ", blocks = " << stringifyBlocks(blocks);
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
                                   int64_t stages, Maximum maximum,
                                   Blocks blocks) {
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
