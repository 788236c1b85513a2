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

/// The largest number of parts that keys are split into.
static constexpr int64_t kMostParts = 128;

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

#include "fovea/Dialect/Attn/IR/AttnEnums.cpp.inc"

/// Parses `[name, name, ...]`.
template <typename EnumT>
static ParseResult parseEnumList(AsmParser &parser,
                                 SmallVectorImpl<EnumT> &list) {
  return parser.parseCommaSeparatedList(
      AsmParser::Delimiter::Square, [&]() -> ParseResult {
        FailureOr<EnumT> value = FieldParser<EnumT>::parse(parser);
        if (failed(value))
          return failure();
        list.push_back(*value);
        return success();
      });
}

template <typename EnumT>
static void printEnumList(AsmPrinter &printer, ArrayRef<EnumT> list) {
  printer << '[';
  llvm::interleaveComma(list, printer,
                        [&](EnumT value) { printer << stringifyEnum(value); });
  printer << ']';
}

/// Parses the value of one of several optional `, name = value`, in any order.
using ParseFn = llvm::function_ref<ParseResult(StringRef name)>;
static ParseResult parseOptional(AsmParser &parser, ArrayRef<StringRef> names,
                                 ParseFn parse) {
  llvm::SmallDenseSet<StringRef> seen;
  while (succeeded(parser.parseOptionalComma())) {
    SMLoc loc = parser.getCurrentLocation();
    StringRef name;
    if (failed(parser.parseOptionalKeyword(&name, names)) ||
        !seen.insert(name).second) {
      InFlightDiagnostic error = parser.emitError(loc, "expected ");
      llvm::interleave(
          names, [&](StringRef each) { error << "'" << each << "'"; },
          [&] { error << " or "; });
      return error << ", each once";
    }
    if (parser.parseEqual() || parse(name))
      return failure();
  }
  return success();
}

template <typename T>
static ParseResult parseField(AsmParser &parser, T &field) {
  FailureOr<T> value = FieldParser<T>::parse(parser);
  if (failed(value))
    return failure();
  field = *value;
  return success();
}

/// Parses the name of one of an enum.
template <typename EnumT>
static ParseResult parseChoice(AsmParser &parser, StringRef choice,
                               ArrayRef<StringRef> names, EnumT &value) {
  StringRef name;
  SMLoc loc = parser.getCurrentLocation();
  if (failed(parser.parseOptionalKeyword(&name, names)))
    return parser.emitError(loc, "expected ")
           << choice << " to be one of: " << llvm::join(names, ", ");
  value = *symbolizeEnum<EnumT>(name);
  return success();
}

/// Where products widen what they multiply.
static constexpr llvm::StringLiteral kProducts = "products";

static std::string formatWiden(int64_t widen) {
  return widen == ScheduleAttr::kInProducts ? kProducts.str()
                                            : std::to_string(widen);
}

/// Parses the parts of a schedule that not every one has.
static ParseResult
parseParts(AsmParser &parser, int64_t &warps, int64_t &stages, Maximum &maximum,
           KeyOrder &keys, QueryTiles &queries, Blocks &blocks,
           Products &products, WarpGroups &groups, Captures &captures,
           int64_t &split, int64_t &splitSize, int64_t &widen, int64_t &parts,
           int64_t &cluster, GradientsAttr &gradients) {
  split = cluster = 1;
  return parseOptional(
      parser,
      {"warps", "stages", "maximum", "keys", "queries", "blocks", "products",
       "groups", "captures", "split", "widen", "parts", "cluster", "gradients"},
      [&](StringRef name) {
        if (name == "warps")
          return parseField(parser, warps);
        if (name == "stages")
          return parseField(parser, stages);
        if (name == "maximum")
          return parseChoice(parser, name, {"exact", "stale"}, maximum);
        if (name == "keys")
          return parseChoice(parser, name, {"ascending", "descending"}, keys);
        if (name == "queries")
          return parseChoice(parser, name, {"aligned", "sequences"}, queries);
        if (name == "blocks")
          return parseChoice(
              parser, name, {"tiles", "persistent", "shared", "dealt"}, blocks);
        if (name == "products")
          return parseChoice(parser, name, {"overlapped", "alternating"},
                             products);
        if (name == "groups")
          return parseChoice(parser, name, {"free", "in_turn"}, groups);
        if (name == "captures")
          return parseChoice(parser, name, {"gathered", "tiled"}, captures);
        if (name == "split" && succeeded(parser.parseOptionalKeyword("fixed")))
          return ParseResult(failure(failed(parser.parseLParen()) ||
                                     failed(parseField(parser, splitSize)) ||
                                     failed(parser.parseRParen())));
        if (name == "split")
          return parseField(parser, split);
        if (name == "widen" &&
            succeeded(parser.parseOptionalKeyword(kProducts))) {
          widen = ScheduleAttr::kInProducts;
          return ParseResult(success());
        }
        if (name == "widen")
          return parseField(parser, widen);
        if (name == "parts")
          return parseField(parser, parts);
        if (name == "cluster")
          return parseField(parser, cluster);
        return parseField(parser, gradients);
      });
}

static void printParts(AsmPrinter &printer, int64_t warps, int64_t stages,
                       Maximum maximum, KeyOrder keys, QueryTiles queries,
                       Blocks blocks, Products products, WarpGroups groups,
                       Captures captures, int64_t split, int64_t splitSize,
                       int64_t widen, int64_t parts, int64_t cluster,
                       GradientsAttr gradients) {
  if (warps || stages)
    printer << ", warps = " << warps << ", stages = " << stages;
  if (maximum != Maximum::Exact)
    printer << ", maximum = " << stringifyEnum(maximum);
  if (keys != KeyOrder::Ascending)
    printer << ", keys = " << stringifyEnum(keys);
  if (queries != QueryTiles::Aligned)
    printer << ", queries = " << stringifyEnum(queries);
  if (blocks != Blocks::Tiles)
    printer << ", blocks = " << stringifyEnum(blocks);
  if (products != Products::Overlapped)
    printer << ", products = " << stringifyEnum(products);
  if (groups != WarpGroups::Free)
    printer << ", groups = " << stringifyEnum(groups);
  if (captures != Captures::Gathered)
    printer << ", captures = " << stringifyEnum(captures);
  if (split != 1)
    printer << ", split = " << split;
  if (splitSize)
    printer << ", split = fixed(" << splitSize << ")";
  if (widen)
    printer << ", widen = " << formatWiden(widen);
  if (parts)
    printer << ", parts = " << parts;
  if (cluster != 1)
    printer << ", cluster = " << cluster;
  if (gradients) {
    printer << ", gradients = ";
    printer.printStrippedAttrOrType(gradients);
  }
}

/// Parses how items divide sums.
static ParseResult parseSums(AsmParser &parser, int64_t &items, int64_t &shares,
                             SmallVectorImpl<CaptureSum> &captures) {
  items = shares = 1;
  return parseOptional(
      parser, {"items", "shares", "captures"}, [&](StringRef name) {
        return name == "items"    ? parseField(parser, items)
               : name == "shares" ? parseField(parser, shares)
                                  : parseEnumList(parser, captures);
      });
}

static void printSums(AsmPrinter &printer, int64_t items, int64_t shares,
                      ArrayRef<CaptureSum> captures) {
  if (items != 1)
    printer << ", items = " << items;
  if (shares != 1)
    printer << ", shares = " << shares;
  if (captures.empty())
    return;
  printer << ", captures = ";
  printEnumList(printer, captures);
}

#define GET_ATTRDEF_CLASSES
#include "fovea/Dialect/Attn/IR/AttnAttrs.cpp.inc"

void AttnDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "fovea/Dialect/Attn/IR/AttnAttrs.cpp.inc"
      >();
}

int64_t ScheduleAttr::countParts(int64_t keys) const {
  if (!getSplitSize())
    return isSplit() ? getSplit() : 1;
  return std::max<int64_t>(llvm::divideCeil(keys, getSplitSize()), 1);
}

ScheduleAttr ScheduleAttr::with(const Changes &changes) const {
  return get(getContext(), getQueryTile(), getKeyTile(),
             changes.order.value_or(getOrder()), getWarps(), getStages(),
             changes.maximum.value_or(getMaximum()),
             changes.keys.value_or(getKeys()),
             changes.queries.value_or(getQueries()),
             changes.blocks.value_or(getBlocks()),
             changes.products.value_or(getProducts()),
             changes.groups.value_or(getGroups()),
             changes.captures.value_or(getCaptures()),
             changes.split.value_or(getSplit()),
             changes.splitSize.value_or(getSplitSize()),
             changes.widen.value_or(getWiden()), getParts(),
             changes.cluster.value_or(getCluster()),
             changes.gradients ? changes.gradients : getGradients());
}

LogicalResult ScheduleAttr::verify(
    function_ref<InFlightDiagnostic()> emitError, int64_t queryTile,
    int64_t keyTile, WorkOrder order, int64_t warps, int64_t stages,
    Maximum maximum, KeyOrder keys, QueryTiles queries, Blocks blocks,
    Products /*products*/, WarpGroups groups, Captures captures, int64_t split,
    int64_t splitSize, int64_t widen, int64_t parts, int64_t cluster,
    GradientsAttr gradients) {
  if (queryTile < 1 || keyTile < 1)
    return emitError() << "tile must have at least 1 query and 1 key, but is "
                       << queryTile << "x" << keyTile;
  if (split < 1 || split > kMostParts)
    return emitError() << "split must be 1 to " << kMostParts << ", but is "
                       << split;
  if (split > 1 && blocks != Blocks::Tiles && blocks != Blocks::Dealt)
    return emitError() << "split must be 1 where blocks are "
                       << stringifyEnum(blocks) << ", but is " << split;
  if (splitSize < 0 || splitSize % keyTile)
    return emitError() << "split must be fixed to a multiple of the " << keyTile
                       << " keys of a tile, but is to " << splitSize;
  // A step with an earlier maximum starts again for other rows, too.
  if (splitSize && (split > 1 || blocks != Blocks::Tiles ||
                    maximum != Maximum::Exact || cluster > 1 || gradients))
    return emitError() << "split must not be fixed with a number of parts, "
                          "blocks that are not of tiles, a stale maximum, a "
                          "cluster or gradients, but is to "
                       << splitSize;
  if (blocks == Blocks::Shared && order != WorkOrder::Linear)
    return emitError()
           << "order must be linear where blocks share tiles, which "
              "take the same time, but is "
           << stringifyEnum(order);
  if (blocks != Blocks::Tiles && warps == 0)
    return emitError() << "blocks must be of tiles on a host, but are "
                       << stringifyEnum(blocks);
  if ((blocks == Blocks::Shared || blocks == Blocks::Dealt) && gradients)
    return emitError() << "blocks must not be " << stringifyEnum(blocks)
                       << " in a schedule of gradients";
  if (split > 1 && gradients)
    return emitError() << "split must be 1 in a schedule of gradients, but is "
                       << split;
  if (queries == QueryTiles::Sequences && blocks != Blocks::Dealt)
    return emitError() << "queries must be aligned where blocks are not dealt "
                          "tiles, but are of sequences";
  if (groups == WarpGroups::InTurn && (gradients || warps < 8))
    return emitError() << "groups must be free in a schedule of gradients and "
                          "of less than 8 warps, but are in_turn";
  if (captures == Captures::Tiled && warps == 0)
    return emitError() << "captures must be gathered on a host, but are tiled";
  if (keys == KeyOrder::Descending && (gradients || warps == 0))
    return emitError()
           << "keys must be ascending in a schedule of gradients and on a "
              "host, but are descending";
  if (gradients && gradients.isParallel(Coordinate::Key) != (warps > 0))
    return emitError() << "gradients must have `key` parallel on a GPU, and "
                          "only there, but have "
                       << gradients << " for " << warps << " warps";
  if (widen != 0 && widen != 4 && widen != 8 && widen != kInProducts)
    return emitError() << "widen must be 4 or 8 warps, products, or 0, but is "
                       << formatWiden(widen);
  if (widen && gradients)
    return emitError() << "widen must be 0 in a schedule of gradients, but is "
                       << formatWiden(widen);
  if (widen && warps == 0)
    return emitError() << "widen must be 0 without warps that compute, but is "
                       << formatWiden(widen);
  if (parts != 0 && parts != 3)
    return emitError() << "parts must be 3, or 0, but are " << parts;
  if (parts && gradients)
    return emitError() << "parts must be 0 in a schedule of gradients, but are "
                       << parts;
  if (parts && warps == 0)
    return emitError() << "parts must be 0 without warps that compute, but are "
                       << parts;
  if (parts && widen)
    return emitError() << "parts must be 0 where bytes are widened, but are "
                       << parts;
  if (cluster != 1 && cluster != 2 && cluster != 4)
    return emitError() << "cluster must be 1, 2 or 4 blocks, but is "
                       << cluster;
  if (cluster > 1 && (gradients || warps == 0))
    return emitError()
           << "cluster must be 1 in a schedule of gradients and on a "
              "host, but is "
           << cluster;
  if (cluster > 1 && split > 1)
    return emitError() << "cluster must be 1 where keys are split, but is "
                       << cluster;
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

LogicalResult
GradientsAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                      ArrayRef<Coordinate> parallel, int64_t items,
                      int64_t shares, ArrayRef<CaptureSum> captures) {
  for (Coordinate coordinate : parallel) {
    if (coordinate == Coordinate::Row)
      return emitError() << "parallel must be of batch, head and key, but has "
                            "row: items cut the queries of a head";
    if (llvm::count(parallel, coordinate) > 1)
      return emitError() << "parallel has " << stringifyEnum(coordinate)
                         << " twice";
  }
  bool isGpu = llvm::is_contained(parallel, Coordinate::Key);
  if (items < 1)
    return emitError() << "items must be at least 1, but are " << items;
  if (isGpu && items != 1)
    return emitError() << "items are of a host, which has no parallel `key`, "
                          "but are "
                       << items;
  if (shares < 1)
    return emitError() << "shares must be at least 1, but are " << shares;
  if (shares != 1 && !(isGpu && llvm::is_contained(parallel, Coordinate::Head)))
    return emitError() << "shares are of a GPU and of parallel heads, but are "
                       << shares;
  for (CaptureSum sum : captures)
    if ((sum == CaptureSum::ByTile) == isGpu)
      return emitError() << "captures are added up "
                         << (isGpu ? "otherwise than by_tile on a GPU"
                                   : "by_tile on a host")
                         << ", but one is " << stringifyEnum(sum);
  return success();
}
