//===- TileLayout.cpp - The algebra of register layouts -------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Tile/IR/Tile.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#include <map>

using namespace mlir;
using namespace fovea::tile;

llvm::hash_code fovea::tile::hash_value(const Digit &digit) {
  return llvm::hash_combine(digit.size, digit.stride, digit.dim);
}

#define GET_ATTRDEF_CLASSES
#include "fovea/Dialect/Tile/IR/TileAttrs.cpp.inc"

void TileDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "fovea/Dialect/Tile/IR/TileAttrs.cpp.inc"
      >();
}

static int64_t getProduct(ArrayRef<Digit> digits) {
  int64_t product = 1;
  for (const Digit &digit : digits)
    product *= digit.size;
  return product;
}

/// Returns the contribution of a number written in `digits` to the coordinates.
static SmallVector<int64_t> getOffset(ArrayRef<Digit> digits, int64_t number,
                                      int64_t rank) {
  SmallVector<int64_t> offset(rank, 0);
  for (const Digit &digit : digits) {
    if (digit.dim != Digit::kReplicated)
      offset[digit.dim] += number % digit.size * digit.stride;
    number /= digit.size;
  }
  return offset;
}

int64_t LayoutAttr::getNumRegisters() const {
  return getProduct(getRegisters());
}

int64_t LayoutAttr::getNumThreads() const { return getProduct(getThreads()); }

SmallVector<int64_t> LayoutAttr::getRegisterOffset(int64_t index) const {
  return getOffset(getRegisters(), index, getShape().size());
}

SmallVector<int64_t> LayoutAttr::getThreadOffset(int64_t index) const {
  return getOffset(getThreads(), index, getShape().size());
}

/// Returns the digits without those along `dim`; dimensions after it move down.
static SmallVector<Digit> dropDimOf(ArrayRef<Digit> digits, int64_t dim,
                                    bool replicate) {
  SmallVector<Digit> kept;
  for (Digit digit : digits) {
    if (digit.dim == dim) {
      if (!replicate)
        continue;
      digit = {digit.size, 0, Digit::kReplicated};
    } else if (digit.dim > dim) {
      --digit.dim;
    }
    kept.push_back(digit);
  }
  return kept;
}

LayoutAttr LayoutAttr::dropDim(int64_t dim) const {
  SmallVector<int64_t> shape(getShape());
  shape.erase(shape.begin() + dim);
  return get(getContext(), shape,
             dropDimOf(getRegisters(), dim, /*replicate=*/false),
             dropDimOf(getThreads(), dim, /*replicate=*/true));
}

SmallVector<int64_t> LayoutAttr::getReducedRegisters(int64_t dim) const {
  SmallVector<int64_t> reduced;
  for (int64_t index = 0, e = getNumRegisters(); index < e; ++index) {
    int64_t rest = index, target = 0, weight = 1;
    for (const Digit &digit : getRegisters()) {
      if (digit.dim != dim) {
        target += rest % digit.size * weight;
        weight *= digit.size;
      }
      rest /= digit.size;
    }
    reduced.push_back(target);
  }
  return reduced;
}

/// Returns the digits as one list of binary digits where sizes are powers of
/// two, so that equal layouts that are written differently compare equal.
static SmallVector<Digit> splitDigits(ArrayRef<Digit> digits) {
  SmallVector<Digit> split;
  for (Digit digit : digits) {
    while (digit.size % 2 == 0) {
      split.push_back({2, digit.stride, digit.dim});
      digit.size /= 2;
      digit.stride *= 2;
    }
    if (digit.size > 1)
      split.push_back(digit);
  }
  for (Digit &digit : split)
    if (digit.dim == Digit::kReplicated)
      digit.stride = 0;
  return split;
}

/// Returns, for each register of `from`, the register of `to` at the place that
/// `move` makes of its own along each dimension; nullopt if there is none.
static std::optional<SmallVector<int64_t>>
moveRegisters(LayoutAttr from, LayoutAttr to,
              function_ref<int64_t(int64_t place, int64_t dim)> move) {
  std::map<SmallVector<int64_t>, int64_t> places;
  for (int64_t index = 0, e = to.getNumRegisters(); index < e; ++index)
    places.emplace(to.getRegisterOffset(index), index);
  SmallVector<int64_t> moved;
  for (int64_t index = 0, e = from.getNumRegisters(); index < e; ++index) {
    SmallVector<int64_t> offset = from.getRegisterOffset(index);
    for (auto [dim, place] : llvm::enumerate(offset))
      place = move(place, dim);
    auto found = places.find(offset);
    if (found == places.end())
      return std::nullopt;
    moved.push_back(found->second);
  }
  return moved;
}

std::optional<SmallVector<int64_t>>
LayoutAttr::getWrappedRegisters(LayoutAttr to) const {
  if (splitDigits(getThreads()) != splitDigits(to.getThreads()))
    return std::nullopt;
  return moveRegisters(*this, to, [&](int64_t place, int64_t dim) {
    return place % to.getShape()[dim];
  });
}

std::optional<SmallVector<int64_t>>
LayoutAttr::getJoinedRegisters(LayoutAttr to) const {
  SmallVector<int64_t> factors;
  for (auto [size, joined] : llvm::zip_equal(getShape(), to.getShape()))
    factors.push_back(size / joined);
  // A thread whose elements are all multiples of the factor apart from another
  // one's shares no result with it. Those within a factor, which exchange what
  // they have, all have the result.
  SmallVector<Digit> threads(getThreads());
  for (Digit &digit : threads) {
    if (digit.dim == Digit::kReplicated)
      continue;
    int64_t factor = factors[digit.dim];
    if (factor % (digit.stride * digit.size) == 0 && factor > 1)
      digit = {digit.size, 0, Digit::kReplicated};
    else if (digit.stride % factor)
      return std::nullopt;
    else
      digit.stride /= factor;
  }
  if (splitDigits(threads) != splitDigits(to.getThreads()))
    return std::nullopt;
  return moveRegisters(*this, to, [&](int64_t place, int64_t dim) {
    return place / factors[dim];
  });
}

std::optional<SmallVector<int64_t>>
LayoutAttr::getPermutationFrom(LayoutAttr from) const {
  if (getShape() != from.getShape() ||
      splitDigits(getThreads()) != splitDigits(from.getThreads()))
    return std::nullopt;
  // Threads contribute the same in both layouts, so only registers must agree.
  DenseMap<SmallVector<int64_t>, int64_t> sources;
  for (int64_t index = 0, e = from.getNumRegisters(); index < e; ++index)
    sources.try_emplace(from.getRegisterOffset(index), index);
  SmallVector<int64_t> permutation;
  for (int64_t index = 0, e = getNumRegisters(); index < e; ++index) {
    auto source = sources.find(getRegisterOffset(index));
    if (source == sources.end())
      return std::nullopt;
    permutation.push_back(source->second);
  }
  return permutation;
}

/// Appends a digit unless it is trivial.
static void addDigit(SmallVectorImpl<Digit> &digits, int64_t size,
                     int64_t stride, int64_t dim) {
  if (size > 1)
    digits.push_back({size, stride, dim});
}

/// Returns the layout of `rowWarps` warps with 16 rows each, in which a thread
/// has `count` neighbours of every `4 * count` columns of a row, of those that
/// `columnWarps` divide, or, if each `isWhole`, of all.
static LayoutAttr getNeighbours(MLIRContext *context, int64_t rows,
                                int64_t columns, int64_t rowWarps,
                                int64_t columnWarps, int64_t count,
                                bool isWhole) {
  int64_t warpColumns = isWhole ? columns : columns / columnWarps;
  int64_t group = kRowThreads * count;
  assert(rows % (16 * rowWarps) == 0 && warpColumns % group == 0 &&
         "partial fragments");
  SmallVector<Digit> registers, threads;
  addDigit(registers, count, 1, 1);
  addDigit(registers, 2, 8, 0);
  addDigit(registers, warpColumns / group, group, 1);
  addDigit(registers, rows / (16 * rowWarps), 16 * rowWarps, 0);
  addDigit(threads, kRowThreads, count, 1);
  addDigit(threads, 8, 1, 0);
  addDigit(threads, rowWarps, 16, 0);
  addDigit(threads, columnWarps, isWhole ? 0 : warpColumns,
           isWhole ? Digit::kReplicated : 1);
  return LayoutAttr::get(context, {rows, columns}, registers, threads);
}

LayoutAttr LayoutAttr::getRowOwned(MLIRContext *context, int64_t rows,
                                   int64_t columns, int64_t warps) {
  return getAccumulator(context, rows, columns, warps, /*columnWarps=*/1);
}

LayoutAttr LayoutAttr::getAccumulator(MLIRContext *context, int64_t rows,
                                      int64_t columns, int64_t rowWarps,
                                      int64_t columnWarps) {
  return getNeighbours(context, rows, columns, rowWarps, columnWarps,
                       /*count=*/2, /*isWhole=*/false);
}

LayoutAttr LayoutAttr::getRowThreads(MLIRContext *context, int64_t rows,
                                     int64_t warps) {
  assert(rows % (16 * warps) == 0 && "partial fragments");
  SmallVector<Digit> registers, threads;
  addDigit(registers, 2, 8, 0);
  addDigit(registers, rows / (16 * warps), 16 * warps, 0);
  addDigit(threads, kRowThreads, 1, 1);
  addDigit(threads, 8, 1, 0);
  addDigit(threads, warps, 16, 0);
  return get(context, {rows, kRowThreads}, registers, threads);
}

LayoutAttr LayoutAttr::getQuads(MLIRContext *context, int64_t rows,
                                int64_t columns, int64_t rowWarps,
                                int64_t columnWarps, bool isWhole) {
  return getNeighbours(context, rows, columns, rowWarps, columnWarps,
                       /*count=*/4, isWhole);
}

LayoutAttr LayoutAttr::getWarpColumns(MLIRContext *context, int64_t rows,
                                      int64_t rowWarps, int64_t columnWarps,
                                      bool isWhole) {
  assert(rows % (16 * rowWarps) == 0 && "partial fragments");
  SmallVector<Digit> registers, threads;
  if (isWhole)
    addDigit(registers, columnWarps, 1, 1);
  addDigit(registers, 2, 8, 0);
  addDigit(registers, rows / (16 * rowWarps), 16 * rowWarps, 0);
  addDigit(threads, kRowThreads, 0, Digit::kReplicated);
  addDigit(threads, 8, 1, 0);
  addDigit(threads, rowWarps, 16, 0);
  addDigit(threads, columnWarps, isWhole ? 0 : 1,
           isWhole ? Digit::kReplicated : 1);
  return get(context, {rows, columnWarps}, registers, threads);
}

std::optional<int64_t>
LayoutAttr::getColumnWarps(SmallVectorImpl<int64_t> &permutation) const {
  int64_t threads = getNumThreads();
  if (getShape().size() != 2 || threads % kWarpSize)
    return std::nullopt;
  auto [rows, columns] = std::pair(getShape()[0], getShape()[1]);
  int64_t warps = threads / kWarpSize;
  for (int64_t columnWarps = 1; columnWarps <= warps; ++columnWarps) {
    if (warps % columnWarps || rows % (16 * (warps / columnWarps)) ||
        columns % (8 * columnWarps))
      continue;
    auto registers = getAccumulator(getContext(), rows, columns,
                                    warps / columnWarps, columnWarps)
                         .getPermutationFrom(*this);
    if (!registers)
      continue;
    permutation.assign(registers->begin(), registers->end());
    return columnWarps;
  }
  return std::nullopt;
}

bool LayoutAttr::hasWholeRows() const {
  SmallVector<int64_t> permutation;
  return getColumnWarps(permutation) == int64_t(1);
}

LayoutAttr LayoutAttr::getBlocked(MLIRContext *context, ArrayRef<int64_t> shape,
                                  int64_t threads, int64_t vector) {
  SmallVector<Digit> registerDigits, threadDigits;
  // The part of each dimension that is dealt out so far.
  SmallVector<int64_t> taken(shape.size(), 1);
  int64_t last = shape.size() - 1;
  assert(shape[last] % vector == 0 && "a vector crosses rows");
  addDigit(registerDigits, vector, 1, last);
  taken[last] = vector;
  int64_t left = threads;
  for (int64_t dim = last; dim >= 0; --dim) {
    int64_t size = std::gcd(left, shape[dim] / taken[dim]);
    addDigit(threadDigits, size, taken[dim], dim);
    taken[dim] *= size;
    left /= size;
  }
  addDigit(threadDigits, left, 0, Digit::kReplicated);
  for (int64_t dim = last; dim >= 0; --dim)
    addDigit(registerDigits, shape[dim] / taken[dim], taken[dim], dim);
  return get(context, shape, registerDigits, threadDigits);
}

LogicalResult LayoutAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 ArrayRef<int64_t> shape,
                                 ArrayRef<Digit> registers,
                                 ArrayRef<Digit> threads) {
  if (shape.empty() || llvm::any_of(shape, [](int64_t n) { return n < 1; }))
    return emitError() << "expected a shape of positive sizes";
  int64_t rank = shape.size();
  for (const Digit &digit : llvm::concat<const Digit>(registers, threads))
    if (digit.size < 2 || digit.dim >= rank)
      return emitError() << "expected digits of at least 2 values along one of "
                         << rank << " dimensions, got " << digit.size
                         << " along dimension " << digit.dim;
  for (const Digit &digit : registers)
    if (digit.dim == Digit::kReplicated)
      return emitError() << "a register digit must not replicate";
  // Along each dimension the digits, by stride, must make a mixed radix number
  // that counts the dimension: then every element has exactly one position.
  for (int64_t dim = 0; dim < rank; ++dim) {
    SmallVector<Digit> digits;
    for (const Digit &digit : llvm::concat<const Digit>(registers, threads))
      if (digit.dim == dim)
        digits.push_back(digit);
    llvm::sort(digits, [](const Digit &a, const Digit &b) {
      return a.stride < b.stride;
    });
    int64_t covered = 1;
    for (const Digit &digit : digits) {
      if (digit.stride != covered)
        return emitError() << "digits along dimension " << dim
                           << " must count it: expected one of stride "
                           << covered << ", got " << digit.stride;
      covered *= digit.size;
    }
    if (covered != shape[dim])
      return emitError() << "digits along dimension " << dim << " count "
                         << covered << " elements, expected " << shape[dim];
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Assembly
//===----------------------------------------------------------------------===//

/// `4:2d1` or `4:r`.
static ParseResult parseDigit(AsmParser &parser, Digit &digit) {
  if (parser.parseInteger(digit.size) || parser.parseColon())
    return failure();
  if (succeeded(parser.parseOptionalKeyword("r"))) {
    digit.stride = 0;
    digit.dim = Digit::kReplicated;
    return success();
  }
  StringRef dim;
  llvm::SMLoc loc = parser.getCurrentLocation();
  if (parser.parseInteger(digit.stride) || parser.parseKeyword(&dim))
    return failure();
  if (!dim.consume_front("d") || dim.getAsInteger(10, digit.dim))
    return parser.emitError(loc, "expected a dimension as in `4:2d1`");
  return success();
}

static ParseResult parseDigits(AsmParser &parser, StringRef name,
                               SmallVectorImpl<Digit> &digits) {
  return failure(
      parser.parseComma() || parser.parseKeyword(name) || parser.parseEqual() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
        return parseDigit(parser, digits.emplace_back());
      }));
}

Attribute LayoutAttr::parse(AsmParser &parser, Type) {
  SmallVector<int64_t> shape;
  SmallVector<Digit> registers, threads;
  llvm::SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() ||
      parser.parseDimensionList(shape, /*allowDynamic=*/false,
                                /*withTrailingX=*/false) ||
      parseDigits(parser, "registers", registers) ||
      parseDigits(parser, "threads", threads) || parser.parseGreater())
    return {};
  return parser.getChecked<LayoutAttr>(loc, parser.getContext(), shape,
                                       registers, threads);
}

static void printDigits(AsmPrinter &printer, ArrayRef<Digit> digits) {
  printer << "[";
  llvm::interleaveComma(digits, printer, [&](const Digit &digit) {
    printer << digit.size << ":";
    if (digit.dim == Digit::kReplicated)
      printer << "r";
    else
      printer << digit.stride << "d" << digit.dim;
  });
  printer << "]";
}

void LayoutAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printer.printDimensionList(getShape());
  printer << ", registers = ";
  printDigits(printer, getRegisters());
  printer << ", threads = ";
  printDigits(printer, getThreads());
  printer << ">";
}
