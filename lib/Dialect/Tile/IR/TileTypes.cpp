//===- TileTypes.cpp - Types of the tile dialect --------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Tile/IR/TensorMaps.h"
#include "fovea/Support/Multiples.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/InterleavedRange.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::tile;

#define GET_TYPEDEF_CLASSES
#include "fovea/Dialect/Tile/IR/TileTypes.cpp.inc"

void TileDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "fovea/Dialect/Tile/IR/TileTypes.cpp.inc"
      >();
}

/// `128x64xf32`.
static ParseResult parseShape(AsmParser &parser,
                              SmallVectorImpl<int64_t> &shape,
                              Type &elementType) {
  return failure(parser.parseLess() ||
                 parser.parseDimensionList(shape, /*allowDynamic=*/false) ||
                 parser.parseType(elementType));
}

static void printShape(AsmPrinter &printer, ArrayRef<int64_t> shape,
                       Type elementType) {
  printer << "<";
  printer.printDimensionList(shape);
  printer << "x" << elementType;
}

static LogicalResult verifyShape(function_ref<InFlightDiagnostic()> emitError,
                                 ArrayRef<int64_t> shape, Type elementType) {
  if (shape.empty() || shape.size() > 2 ||
      llvm::any_of(shape, [](int64_t size) { return size < 1; }))
    return emitError() << "expected one or two positive sizes";
  if (!elementType.isIntOrFloat())
    return emitError() << "expected integers or floats, got " << elementType;
  return success();
}

//===----------------------------------------------------------------------===//
// Fragment
//===----------------------------------------------------------------------===//

FragmentType FragmentType::cloneWith(LayoutAttr layout) const {
  return get(getContext(), getShape(), getElementType(), layout);
}

FragmentType FragmentType::cloneWith(Type elementType) const {
  return get(getContext(), getShape(), elementType, getLayout());
}

Type FragmentType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  Type elementType;
  LayoutAttr layout;
  llvm::SMLoc loc = parser.getCurrentLocation();
  if (parseShape(parser, shape, elementType) ||
      (succeeded(parser.parseOptionalComma()) &&
       parser.parseAttribute(layout)) ||
      parser.parseGreater())
    return {};
  return parser.getChecked<FragmentType>(loc, parser.getContext(), shape,
                                         elementType, layout);
}

void FragmentType::print(AsmPrinter &printer) const {
  printShape(printer, getShape(), getElementType());
  if (getLayout())
    printer << ", " << getLayout();
  printer << ">";
}

LogicalResult FragmentType::verify(function_ref<InFlightDiagnostic()> emitError,
                                   ArrayRef<int64_t> shape, Type elementType,
                                   LayoutAttr layout) {
  if (failed(verifyShape(emitError, shape, elementType)))
    return failure();
  if (layout && layout.getShape() != shape)
    return emitError() << "the layout is of "
                       << llvm::interleaved(layout.getShape(), "x")
                       << " elements, the fragment of "
                       << llvm::interleaved(shape, "x");
  return success();
}

//===----------------------------------------------------------------------===//
// Shared
//===----------------------------------------------------------------------===//

int64_t SharedType::getWidestSwizzle() const {
  constexpr int64_t kGroup = 8;
  if (getShape().front() % kGroup)
    return 0;
  int64_t rowBytes = getShape().back() * getElementBytes();
  for (int64_t swizzle : {128, 64, 32})
    if (rowBytes % swizzle == 0)
      return swizzle;
  return 0;
}

SharedType SharedType::cloneWith(int64_t swizzle) const {
  return get(getContext(), getShape(), getElementType(), swizzle, getRuns());
}

SharedType SharedType::cloneWithRuns(int64_t runs) const {
  return get(getContext(), getShape(), getElementType(), getSwizzle(), runs);
}

int64_t SharedType::getElementBytes() const {
  return llvm::divideCeil(getElementType().getIntOrFloatBitWidth(), 8);
}

int64_t SharedType::getPanelColumns() const {
  if (getSwizzle())
    return getSwizzle() / getElementBytes();
  int64_t columns = getShape().back();
  int64_t panels = llvm::divideCeil(columns, kLargestBox);
  return getShape().front() == 1 && columns % panels == 0 ? columns / panels
                                                          : columns;
}

int64_t SharedType::getNumPanels() const {
  return llvm::divideCeil(getShape().back(), getPanelColumns());
}

int64_t SharedType::getSizeInBytes() const {
  return getShape().front() * getNumPanels() * getRowBytes();
}

int64_t SharedType::getByteOffset(int64_t row, int64_t column) const {
  int64_t rowBytes = getRowBytes();
  int64_t inRow = column % getPanelColumns() * getElementBytes();
  // A view of a tile by other rows has rows beyond its own.
  int64_t run = isOneRun() ? 0 : row / getRunRows();
  int64_t offset = run * getRunBytes() +
                   column / getPanelColumns() * getPanelBytes() +
                   (row - run * getRunRows()) * rowBytes;
  if (!getSwizzle())
    return offset + inRow;
  int64_t unit = inRow / 16 ^ row * rowBytes / 128 % (getSwizzle() / 16);
  return offset + unit * 16 + inRow % 16;
}

Type SharedType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  Type elementType;
  int64_t swizzle = 0, runs = 0;
  llvm::SMLoc loc = parser.getCurrentLocation();
  auto parseNext = [&](StringRef name, int64_t &number) -> ParseResult {
    return failure(succeeded(parser.parseOptionalComma()) &&
                   (parser.parseKeyword(name) || parser.parseEqual() ||
                    parser.parseInteger(number)));
  };
  if (parseShape(parser, shape, elementType) || parseNext("swizzle", swizzle) ||
      parseNext("runs", runs) || parser.parseGreater())
    return {};
  return parser.getChecked<SharedType>(loc, parser.getContext(), shape,
                                       elementType, swizzle, runs);
}

void SharedType::print(AsmPrinter &printer) const {
  printShape(printer, getShape(), getElementType());
  if (getSwizzle())
    printer << ", swizzle = " << getSwizzle();
  if (getRuns())
    printer << ", runs = " << getRuns();
  printer << ">";
}

LogicalResult SharedType::verify(function_ref<InFlightDiagnostic()> emitError,
                                 ArrayRef<int64_t> shape, Type elementType,
                                 int64_t swizzle, int64_t runs) {
  if (failed(verifyShape(emitError, shape, elementType)))
    return failure();
  if (shape.size() != 2)
    return emitError() << "expected rows and columns";
  if (!llvm::is_contained({0, 32, 64, 128}, swizzle))
    return emitError() << "expected a swizzle of 32, 64 or 128 bytes, got "
                       << swizzle;
  if (swizzle && shape.front() % 8)
    return emitError() << "with a swizzle expected rows in groups of 8, got "
                       << shape.front();
  if (runs && (runs < 0 || runs % 8 || shape.front() % runs))
    return emitError() << "expected runs of a multiple of 8 rows that divides "
                       << shape.front() << ", got " << runs;
  if (runs && !swizzle)
    return emitError() << "expected a swizzle beside runs";
  return success();
}

//===----------------------------------------------------------------------===//
// Ring and tensor map
//===----------------------------------------------------------------------===//

LogicalResult RingType::verify(function_ref<InFlightDiagnostic()> emitError,
                               int64_t stages, SharedType) {
  if (stages < 1)
    return emitError() << "expected at least one stage, got " << stages;
  return success();
}

LogicalResult
TensorMapType::verify(function_ref<InFlightDiagnostic()> emitError,
                      int64_t rank, SharedType tile) {
  if (rank < 2 || rank > 5)
    return emitError() << "expected a tensor of rank 2 to 5, got " << rank;
  if (tile.getShape().front() > 256 || tile.getPanelColumns() > 256)
    return emitError() << "expected at most 256 rows and 256 columns a copy, "
                          "got "
                       << tile.getShape().front() << " and "
                       << tile.getPanelColumns();
  if (!tile.isOneRun())
    return emitError() << "expected a tile that is one run, got " << tile;
  return success();
}

int64_t fovea::tile::getTensorMapRank(int64_t dims, SharedType tile) {
  return tile.getRuns() ? dims + 1 : dims;
}

bool fovea::tile::hasWholePanels(MemRefType source, SharedType tile) {
  int64_t columns = source.getShape().back();
  return !tile.getRuns() || (!ShapedType::isDynamic(columns) &&
                             columns % tile.getPanelColumns() == 0);
}

bool fovea::tile::suitsTensorMap(MemRefType source, ArrayRef<int64_t> dims,
                                 SharedType tile) {
  constexpr int64_t kLargestRank = 5;
  if (!tile)
    return false;
  int64_t rowBytes = tile.getShape().back() * tile.getElementBytes();
  bool isRow =
      tile.getShape().front() == 1 && rowBytes % kTensorMapAlignment == 0;
  return dims.back() == source.getRank() - 1 && source.getRank() >= 2 &&
         getTensorMapRank(source.getRank(), tile) <= kLargestRank &&
         hasWholePanels(source, tile) &&
         tile.getShape().front() <= kLargestBox &&
         tile.getPanelColumns() <= kLargestBox &&
         (tile.getSwizzle() != 0 || isRow);
}

bool fovea::tile::suitsTensorMap(Value column, Type element) {
  int64_t bytes = llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
  // Where a loop begins for some rows is a multiple of its step behind where it
  // begins for all.
  auto getChoices = [](Operation *op) -> ValueRange {
    if (isa<OfRowsOp>(op))
      return op->getOperands();
    return {};
  };
  return Multiples(kTensorMapAlignment / bytes, getChoices).contains(column);
}
