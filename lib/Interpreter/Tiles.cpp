//===- Tiles.cpp - Tiles and fragments of the interpreter -----------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ThreadBlock.h"

#include <cmath>
#include <map>

using namespace mlir;
using namespace fovea;
using namespace fovea::interpreter;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Visits the elements of rows of a tile that lie in a memref, with their
/// numbers in the tile and in the memref.
static Status
visitGlobal(Fiber &fiber, Operation *op, const MemRef &memref,
            ArrayRef<int64_t> indices, ArrayRef<int64_t> dims,
            ArrayRef<int64_t> shape, RowRange rows, AccessKind kind,
            llvm::function_ref<void(int64_t number, int64_t index)> visit) {
  // TMA gives zeros in front of a row, which may be all of a tile.
  bool mayBeBefore =
      kind == AccessKind::Read && shape.size() == 2 && shape.front() == 1;
  int64_t ownFirst = tile::countPlaces(op, rows.first);
  for (auto [dim, index] : llvm::enumerate(indices)) {
    if (mayBeBefore && int64_t(dim) == dims.back())
      continue;
    if (index + (int64_t(dim) == dims.front() ? ownFirst : 0) < 0) {
      fiber.emitError(op) << "starts at index " << index << " of dimension "
                          << dim << "; indices must not be negative";
      return Status::Failed;
    }
  }
  SmallVector<int64_t, 5> place(indices);
  int64_t number = 0, inner = tile::getInnerRows(op),
          used = tile::getUsedRows(op);
  bool done = forEachIndex(shape, [&](ArrayRef<int64_t> element) {
    SmallVector<int64_t, 3> coordinates(element);
    if (inner) {
      coordinates.insert(coordinates.begin() + 1, element.front() % inner);
      coordinates.front() /= inner;
    }
    for (auto [dim, coordinate] : llvm::zip_equal(dims, coordinates))
      place[dim] = indices[dim] + coordinate;
    int64_t current = number++;
    if (!rows.contains(element.front()) ||
        (inner && element.front() % inner >= used))
      return true;
    for (auto [coordinate, size] : llvm::zip_equal(place, memref.sizes))
      if (coordinate < 0 || coordinate >= size)
        return true;
    int64_t index = memref.getIndex(place);
    if (checkGlobalAccess(fiber, op, memref, index, kind) != Status::Next)
      return false;
    visit(current, index);
    return true;
  });
  return done ? Status::Next : Status::Failed;
}

Status interpreter::readGlobal(Fiber &fiber, Operation *op,
                               const MemRef &source, ArrayRef<int64_t> indices,
                               ArrayRef<int64_t> dims, ArrayRef<int64_t> shape,
                               std::vector<Scalar> &elements, RowRange rows,
                               RowRange own) {
  Fragment zeros(shape, source.format);
  elements = std::move(zeros.elements);
  int64_t rowElements = ShapedType::getNumElements(shape.drop_front());
  // What rows at places that are not used hold nothing may depend on.
  int64_t inner = tile::getInnerRows(op), used = tile::getUsedRows(op);
  if (used < inner && source.format.isFloat())
    for (auto [number, element] : llvm::enumerate(elements))
      if (static_cast<int64_t>(number) / rowElements % inner >= used)
        element.f = std::numeric_limits<double>::quiet_NaN();
  return visitGlobal(fiber, op, source, indices, dims, shape, own,
                     AccessKind::Read, [&](int64_t number, int64_t index) {
                       int64_t row = number / rowElements;
                       if (rows.contains(row))
                         elements[number] =
                             source.format.read(source.getElement(index));
                     });
}

RowRange interpreter::getRows(Fiber &fiber, const Instruction &op, size_t index,
                              size_t bounds) {
  if (!bounds)
    return {};
  return {fiber.getInt(op, index), fiber.getInt(op, index + 1)};
}

template <typename OpTy>
FailureOr<Runs> interpreter::findRuns(Fiber &fiber, const Instruction &op,
                                      OpTy load, int64_t count, RowRange rows) {
  Runs runs = {static_cast<int64_t>(*load.getRuns()), {}, load.getWholeRuns()};
  const Code *body = op.regions[0];
  for (int64_t row = 0; row < count; row += runs.length) {
    std::optional<SmallVector<int64_t, 5>> &place = runs.places.emplace_back();
    if (std::max(row, rows.first) >= std::min(row + runs.length, rows.end))
      continue;
    fiber.values[body->arguments[0]].scalar.i = row;
    if (fiber.runBlock(body, &op) != Status::Next)
      return failure();
    place.emplace();
    for (const Datum &index : fiber.yielded)
      place->push_back(index.scalar.i);
    place->push_back(0);
  }
  return runs;
}

template FailureOr<Runs> interpreter::findRuns(Fiber &, const Instruction &,
                                               tile::LoadOp, int64_t, RowRange);
template FailureOr<Runs> interpreter::findRuns(Fiber &, const Instruction &,
                                               tile::LoadAsyncOp, int64_t,
                                               RowRange);

Status interpreter::readRuns(Fiber &fiber, Operation *op, const MemRef &source,
                             const Runs &runs, ArrayRef<int64_t> dims,
                             ArrayRef<int64_t> shape,
                             std::vector<Scalar> &elements, RowRange rows) {
  Fragment zeros(shape, source.format);
  elements = std::move(zeros.elements);
  for (auto [number, place] : llvm::enumerate(runs.places)) {
    for (int64_t step = 0; place && step < runs.length; ++step) {
      int64_t row = number * runs.length + step;
      SmallVector<int64_t, 5> indices = *place;
      indices[dims.front()] += step;
      bool exists =
          llvm::all_of(llvm::zip(indices, source.sizes), [](auto index) {
            return std::get<0>(index) >= 0 &&
                   std::get<0>(index) < std::get<1>(index);
          });
      bool isLeft = rows.contains(row);
      if (isLeft && !exists) {
        fiber.emitError(op)
            << "places row " << row << " of its tile at [" << indices
            << "] of a tensor of sizes [" << ArrayRef(source.sizes) << "]";
        return Status::Failed;
      }
      if (!exists || !(isLeft || runs.areWhole))
        continue;
      std::vector<Scalar> read;
      if (readGlobal(fiber, op, source, indices, dims, {1, shape[1]}, read) !=
          Status::Next)
        return Status::Failed;
      llvm::copy(read, elements.begin() + row * shape[1]);
    }
  }
  return Status::Next;
}

/// Writes a tile, or adds it to the elements in memory.
static Status writeGlobal(Fiber &fiber, Operation *op, const MemRef &target,
                          ArrayRef<int64_t> indices, ArrayRef<int64_t> dims,
                          ArrayRef<int64_t> shape, ArrayRef<Scalar> elements,
                          bool add, RowRange rows = {}) {
  const ThreadBlock &block = *fiber.block;
  int64_t adder = block.getPlan().hasTurns ? 0 : block.getNumber();
  auto visit = [&](int64_t number, int64_t index) {
    if (add)
      fiber.machine.additions[adder].push_back(
          {target, index, elements[number]});
    else
      target.format.write(target.getElement(index), elements[number]);
  };
  return visitGlobal(fiber, op, target, indices, dims, shape, rows,
                     add ? AccessKind::Add : AccessKind::Write, visit);
}

void interpreter::writeTile(ThreadBlock &block, tile::SharedType type,
                            int64_t offset, ArrayRef<Scalar> elements,
                            RowRange rows, Panels panels) {
  Format format = Format::get(type);
  char *base = block.getMemory().data() + offset;
  int64_t columns = type.getShape()[1];
  for (auto [number, element] : llvm::enumerate(elements)) {
    int64_t row = number / columns, column = number % columns;
    if (rows.contains(row) && panels.contains(type, column))
      format.write(base + type.getByteOffset(row, column), element);
  }
}

Status interpreter::checkTile(Fiber &fiber, Operation *op,
                              const SharedTile &tile) {
  if (tile.ring) {
    const char *fault = nullptr;
    if (!tile.isWaited)
      fault = "before it was waited for";
    else if (!fiber.role->getUses(*tile.ring, tile.use).held.contains(tile.use))
      fault = "after its release";
    if (fault) {
      fiber.emitError(op)
              .append("reads use ", tile.use, " of a ring ", fault)
              .attachNote(tile.ring->op.getLoc())
          << "this ring";
      return Status::Failed;
    }
  } else if (fiber.block->getExecution(tile.writer) != tile.execution) {
    fiber.emitError(op)
            .append("reads a tile in shared memory that was written anew since")
            .attachNote(tile.writer->getLoc())
        << "written here";
    return Status::Failed;
  }
  return Status::Next;
}

Status interpreter::checkOwnRows(Fiber &fiber, Operation *op,
                                 const SharedTile &tile, int64_t count) {
  RowRange own = fiber.role->getOwnRows(count);
  int64_t rows = tile.type.getShape().front();
  if (own.first + tile.firstRow >= 0 && own.end + tile.firstRow <= rows)
    return Status::Next;
  fiber.emitError(op) << "has rows " << own.first << " to " << own.end - 1
                      << " of " << count << ", which are rows "
                      << own.first + tile.firstRow << " to "
                      << own.end + tile.firstRow - 1 << " of a tile of "
                      << rows;
  return Status::Failed;
}

Status interpreter::readTile(Fiber &fiber, Operation *op,
                             const SharedTile &tile,
                             std::vector<Scalar> &elements,
                             std::optional<int64_t> rowsOfView) {
  if (checkTile(fiber, op, tile) != Status::Next ||
      (rowsOfView &&
       checkOwnRows(fiber, op, tile, *rowsOfView) != Status::Next))
    return Status::Failed;
  Format format = Format::get(tile.type);
  int64_t rows = tile.type.getShape()[0], columns = tile.type.getShape()[1];
  int64_t count = rowsOfView.value_or(rows);
  const char *base = fiber.block->getMemory().data() + tile.offset;
  elements.clear();
  elements.reserve(count * columns);
  // Of a view, a group reads rows of the tile only.
  for (int64_t row = 0; row < count; ++row) {
    int64_t inTile = row + tile.firstRow;
    bool isInTile = inTile >= 0 && inTile < rows;
    for (int64_t column = 0; column < columns; ++column)
      elements.push_back(
          isInTile ? format.read(base + tile.type.getByteOffset(inTile, column))
                   : Scalar());
  }
  return Status::Next;
}

Operation *
interpreter::findReader(const Role &role,
                        llvm::function_ref<bool(const SharedTile &)> match) {
  for (const Product &product : role.products) {
    auto *a = dynamic_cast<const SharedTile *>(product.a.get());
    if ((a && match(*a)) || match(*product.b))
      return product.op;
  }
  for (const Store &store : role.stores)
    if (match(*store.source))
      return store.op;
  return nullptr;
}

Status interpreter::complete(Fiber &fiber, Store &store) {
  store.isDone = true;
  auto op = cast<tile::StoreAsyncOp>(store.op);
  const MemRef &target = *store.target;
  std::vector<Scalar> elements;
  if (readTile(fiber, op, *store.source, elements) != Status::Next)
    return Status::Failed;
  SmallVector<int64_t> shape(store.source->type.getShape());
  if (store.valid)
    shape[0] = std::clamp<int64_t>(*store.valid, 0, shape[0]);
  return writeGlobal(fiber, op, target, store.indices, op.getDims(), shape,
                     elements, op.getAdd());
}

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

static SmallVector<int64_t, 5> getIndices(Fiber &fiber, const Instruction &op,
                                          size_t first, size_t count) {
  SmallVector<int64_t, 5> indices;
  for (size_t index = 0; index < count; ++index)
    indices.push_back(fiber.getInt(op, first + index));
  return indices;
}

/// Checks that nothing reads the tile of `writer`, which `op` overwrites.
static Status checkReaders(Fiber &fiber, Operation *op, Operation *writer) {
  Operation *reader = findReader(*fiber.role, [&](const SharedTile &tile) {
    return tile.writer == writer;
  });
  if (!reader)
    return Status::Next;
  fiber.emitError(op)
          .append("overwrites a tile while it is read")
          .attachNote(reader->getLoc())
      << "by this, which no wait covers yet";
  return Status::Failed;
}

/// Returns the tile that an op writes to shared memory; null after an error.
static std::shared_ptr<SharedTile>
makeTile(Fiber &fiber, Operation *op, tile::SharedType type, int64_t offset) {
  if (checkReaders(fiber, op, op) != Status::Next)
    return nullptr;
  auto tile = std::make_shared<SharedTile>();
  tile->type = type;
  tile->offset = offset;
  tile->writer = op;
  tile->execution = fiber.block->countExecution(op);
  return tile;
}

/// Checks that no use of a ring is left, and records that there will be none.
static Status takeMemory(Fiber &fiber, Operation *op, Ring &ring) {
  for (const Slot &slot : ring.slots) {
    bool isOver =
        llvm::all_of(ring.getWaiters(slot.use), [&](const Runner &waiter) {
          return slot.hasReleased(waiter, slot.use);
        });
    if (isOver)
      continue;
    fiber.emitError(op)
            .append("reuses the memory of a ring of which use ", slot.use,
                    " is not over")
            .attachNote(ring.op->getLoc())
        << "this ring";
    return Status::Failed;
  }
  // The tile of the op that last had the memory is gone.
  if (ring.reuser && ring.reuser != op) {
    if (checkReaders(fiber, op, ring.reuser) != Status::Next)
      return Status::Failed;
    fiber.block->countExecution(ring.reuser);
  }
  ring.reuser = op;
  return Status::Next;
}

static Status toShared(Fiber &fiber, const Instruction &op) {
  auto write = cast<tile::ToSharedOp>(op.op);
  auto fragment = readFragment(fiber, op, 0);
  if (!fragment)
    return Status::Failed;
  int64_t offset = fiber.block->getPlan().memory.offsets.lookup(op.op);
  if (write.getRing()) {
    auto &ring = fiber.get<Ring>(op, 1);
    if (takeMemory(fiber, op.op, ring) != Status::Next)
      return Status::Failed;
    offset = ring.offset;
  }
  if (write.getSlots()) {
    int64_t use = fiber.getInt(op, op.operands.size() - 1);
    int64_t expected = fiber.block->getExecution(op.op);
    if (use != expected) {
      fiber.emitError(op.op)
          << "writes to the slot of use " << use << ", expected " << expected
          << ": uses count from 0";
      return Status::Failed;
    }
    offset += use % *write.getSlots() *
              tile::getSlotBytes(write.getResult().getType());
  }
  auto tile = makeTile(fiber, op.op, write.getResult().getType(), offset);
  if (!tile)
    return Status::Failed;
  if (!write.getTransposed()) {
    writeTile(*fiber.block, tile->type, tile->offset, fragment->elements);
    return fiber.setObject(op, tile);
  }
  std::vector<Scalar> elements(fragment->elements.size());
  int64_t rows = fragment->shape[0], columns = fragment->shape[1];
  for (auto [number, element] : llvm::enumerate(fragment->elements))
    elements[number % columns * rows + number / columns] = element;
  writeTile(*fiber.block, tile->type, tile->offset, elements);
  return fiber.setObject(op, tile);
}

void interpreter::widenBytes(MutableArrayRef<Scalar> elements) {
  const llvm::fltSemantics &format = APFloat::Float8E4M3FN();
  for (Scalar &element : elements) {
    APFloat number(format, APInt(8, static_cast<uint8_t>(element.i)));
    element = {.f = number.convertToDouble()};
  }
}

std::vector<Scalar> interpreter::readWidened(Fiber &fiber,
                                             const Instruction &op) {
  std::vector<Scalar> elements;
  if (readTile(fiber, op.op, fiber.get<SharedTile>(op, 0), elements) !=
      Status::Next)
    return {};
  widenBytes(elements);
  return elements;
}

static Status widen(Fiber &fiber, const Instruction &op) {
  std::vector<Scalar> elements = readWidened(fiber, op);
  if (elements.empty())
    return Status::Failed;
  int64_t offset = fiber.block->getPlan().memory.offsets.lookup(op.op);
  auto tile = makeTile(
      fiber, op.op, cast<tile::WidenOp>(op.op).getResult().getType(), offset);
  if (!tile)
    return Status::Failed;
  writeTile(*fiber.block, tile->type, tile->offset, elements);
  return fiber.setObject(op, tile);
}

static Status fromShared(Fiber &fiber, const Instruction &op) {
  auto read = cast<tile::FromSharedOp>(op.op);
  auto fragment = makeFragment(read.getResult().getType());
  std::vector<Scalar> elements;
  if (readTile(fiber, op.op, fiber.get<SharedTile>(op, 0), elements) !=
      Status::Next)
    return Status::Failed;
  std::optional<ArrayRef<int64_t>> steps = read.getSteps();
  if (!steps && !read.getTransposed()) {
    fragment->elements = std::move(elements);
    return fiber.setObject(op, fragment);
  }
  ArrayRef<int64_t> shape = read.getResult().getType().getShape();
  if (!steps) {
    for (int64_t row = 0; row < shape[0]; ++row)
      for (int64_t column = 0; column < shape[1]; ++column)
        fragment->elements[row * shape[1] + column] =
            elements[column * shape[0] + row];
    return fiber.setObject(op, fragment);
  }
  // The numbers of other groups' rows may be elsewhere.
  RowRange own = fiber.role->getOwnRows(shape[0]);
  fragment->elements.assign(shape[0] * shape[1], Scalar());
  for (int64_t row = own.first; row < own.end; ++row)
    for (int64_t column = 0; column < shape[1]; ++column) {
      int64_t place =
          fiber.getInt(op, 1) + (*steps)[0] * row + (*steps)[1] * column;
      if (place < 0 || place >= static_cast<int64_t>(elements.size())) {
        fiber.emitError(op.op)
            << "reads column " << place << " of a row of " << elements.size();
        return Status::Failed;
      }
      fragment->elements[row * shape[1] + column] = elements[place];
    }
  return fiber.setObject(op, fragment);
}

static Status shiftRows(Fiber &fiber, const Instruction &op) {
  auto view = std::make_shared<SharedTile>(fiber.get<SharedTile>(op, 0));
  view->firstRow += fiber.getInt(op, 1);
  int64_t by = view->firstRow, count = view->type.getShape().front();
  const Role &role = *fiber.role;
  // The rows of a group that has a tile of its own, or of one for all.
  RowRange own = role.getOwnRows(
      view->ring && view->ring->numGroups > 1 ? count * role.numGroups : count);
  if (by % tile::kGroupRows || own.first + by < 0 || own.end + by > count) {
    fiber.emitError(op.op) << "shifts rows " << own.first << " to "
                           << own.end - 1 << " of " << count << " by " << by
                           << "; expected rows of the tile, and a multiple of "
                           << tile::kGroupRows;
    return Status::Failed;
  }
  return fiber.setObject(op, view);
}

static Status load(Fiber &fiber, const Instruction &op) {
  auto loadOp = cast<tile::LoadOp>(op.op);
  auto indices = getIndices(fiber, op, 1, loadOp.getIndices().size());
  auto &source = fiber.get<MemRef>(op, 0);
  if (auto type = dyn_cast<tile::FragmentType>(loadOp.getResult().getType())) {
    auto fragment = makeFragment(type);
    // The rows of other groups may be nowhere.
    RowRange own;
    if (type.getRank() == 2)
      own = fiber.role->getOwnRows(type.getShape().front());
    if (readGlobal(fiber, op.op, source, indices, loadOp.getDims(),
                   type.getShape(), fragment->elements, /*rows=*/{},
                   own) != Status::Next)
      return Status::Failed;
    return fiber.setObject(op, fragment);
  }
  auto tile = makeTile(fiber, op.op,
                       cast<tile::SharedType>(loadOp.getResult().getType()),
                       fiber.block->getPlan().memory.offsets.lookup(op.op));
  if (!tile)
    return Status::Failed;
  RowRange rows = getRows(fiber, op, 1 + loadOp.getIndices().size(),
                          loadOp.getRows().size());
  std::vector<Scalar> elements;
  Status status = Status::Failed;
  if (loadOp.getRuns()) {
    FailureOr<Runs> runs =
        findRuns(fiber, op, loadOp, tile->type.getShape().front(), rows);
    if (succeeded(runs))
      status = readRuns(fiber, op.op, source, *runs, loadOp.getDims(),
                        tile->type.getShape(), elements, rows);
  } else {
    status = readGlobal(fiber, op.op, source, indices, loadOp.getDims(),
                        tile->type.getShape(), elements, rows);
  }
  if (status != Status::Next)
    return Status::Failed;
  writeTile(*fiber.block, tile->type, tile->offset, elements);
  return fiber.setObject(op, tile);
}

/// Memory has no caches here.
static Status prefetch(Fiber &, const Instruction &) { return Status::Next; }

static Status store(Fiber &fiber, const Instruction &op) {
  auto storeOp = cast<tile::StoreOp>(op.op);
  auto fragment = readFragment(fiber, op, 0);
  if (!fragment)
    return Status::Failed;
  size_t rank = storeOp.getIndices().size();
  auto indices = getIndices(fiber, op, 2, rank);
  auto &target = fiber.get<MemRef>(op, 1);
  SmallVector<int64_t, 2> shape = fragment->shape;
  RowRange rows = fiber.role->getOwnRows(shape[0]);
  if (storeOp.getValid())
    shape[0] = std::clamp<int64_t>(fiber.getInt(op, 2 + rank), 0, shape[0]);
  return writeGlobal(fiber, op.op, target, indices, storeOp.getDims(), shape,
                     fragment->elements, storeOp.getAdd(), rows);
}

static Status fill(Fiber &fiber, const Instruction &op) {
  auto fragment = makeFragment(cast<tile::FillOp>(op.op).getResult().getType());
  fragment->isFill = true;
  llvm::fill(fragment->elements, fiber.operand(op, 0).scalar);
  return fiber.setObject(op, fragment);
}

static Status map(Fiber &fiber, const Instruction &op) {
  auto mapOp = cast<tile::MapOp>(op.op);
  auto result = makeFragment(mapOp.getResult().getType());
  SmallVector<std::shared_ptr<Fragment>, 4> operands;
  for (size_t index = 0; index < op.operands.size(); ++index) {
    operands.push_back(readFragment(fiber, op, index));
    if (!operands.back())
      return Status::Failed;
  }
  size_t numInputs = mapOp.getInputs().size();
  size_t numRows = numInputs + mapOp.getRows().size();
  const Code *body = op.regions[0];
  int64_t number = 0;
  RowRange rows =
      fiber.role ? fiber.role->getOwnRows(result->shape[0]) : RowRange();
  bool done = forEachIndex(result->shape, [&](ArrayRef<int64_t> element) {
    if (!rows.contains(element[0])) {
      ++number;
      return true;
    }
    for (auto [index, operand] : llvm::enumerate(operands)) {
      int64_t source = index < numInputs ? number
                       : index < numRows ? element.front()
                                         : element.back();
      Datum &argument = fiber.values[body->arguments[index]];
      argument.scalar = operand->elements[source];
      argument.poison =
          operand->poison.empty() ? nullptr : operand->poison[source];
    }
    for (auto [dim, coordinate] : llvm::enumerate(element))
      fiber.values[body->arguments[operands.size() + dim]].scalar.i =
          coordinate;
    if (fiber.runBlock(body, &op) != Status::Next)
      return false;
    const Datum &yielded = fiber.yielded.front();
    result->elements[number] = yielded.scalar;
    if (yielded.poison) {
      result->poison.resize(result->elements.size());
      result->poison[number] = yielded.poison;
    }
    ++number;
    return true;
  });
  return done ? fiber.setObject(op, result) : Status::Failed;
}

/// Returns the elements of the rows that the fiber's role has.
static ArrayRef<Scalar> getOwnElements(Fiber &fiber, const Fragment &fragment) {
  int64_t count = fragment.shape[0];
  RowRange rows =
      fiber.role ? fiber.role->getOwnRows(count) : RowRange{0, count};
  int64_t columns = fragment.elements.size() / count;
  return ArrayRef(fragment.elements)
      .slice(rows.first * columns, (rows.end - rows.first) * columns);
}

/// Returns whether an element of the fragment is true. Each warp may answer
/// differently, and both branches compute the same result: here all warps have
/// the same answer.
static Status any(Fiber &fiber, const Instruction &op) {
  auto input = readFragment(fiber, op, 0);
  if (!input)
    return Status::Failed;
  fiber.result(op, 0).scalar.i =
      llvm::any_of(getOwnElements(fiber, *input),
                   [](const Scalar &element) { return element.i != 0; });
  return Status::Next;
}

/// Returns the extremes of the fragment, the same ones to all warps.
static Status extremes(Fiber &fiber, const Instruction &op) {
  auto input = readFragment(fiber, op, 0);
  if (!input)
    return Status::Failed;
  int64_t least = std::numeric_limits<int32_t>::max(),
          greatest = std::numeric_limits<int32_t>::min();
  for (const Scalar &element : getOwnElements(fiber, *input)) {
    least = std::min(least, element.i);
    greatest = std::max(greatest, element.i);
  }
  fiber.result(op, 0).scalar.i = least;
  fiber.result(op, 1).scalar.i = greatest;
  return Status::Next;
}

/// The elements of a diagonal in one warp are summed into one of them; without
/// a layout, every element is its own sum.
static Status sumDiagonals(Fiber &fiber, const Instruction &op) {
  auto input = readFragment(fiber, op, 0);
  if (!input)
    return Status::Failed;
  auto type = cast<tile::SumDiagonalsOp>(op.op).getResult().getType();
  auto result = makeFragment(type);
  result->elements = input->elements;
  tile::LayoutAttr layout = type.getLayout();
  if (!layout)
    return fiber.setObject(op, result);
  // Sums by warp and distance.
  std::map<std::pair<int64_t, int64_t>, Scalar *> sums;
  for (int64_t thread = 0; thread < layout.getNumThreads(); ++thread) {
    SmallVector<int64_t> base = layout.getThreadOffset(thread);
    for (int64_t index = 0; index < layout.getNumRegisters(); ++index) {
      SmallVector<int64_t> offset = layout.getRegisterOffset(index);
      int64_t row = base[0] + offset[0], column = base[1] + offset[1];
      Scalar &element = result->elements[row * result->shape[1] + column];
      auto [entry, isFirst] =
          sums.try_emplace({thread / tile::kWarpSize, row - column}, &element);
      if (isFirst)
        continue;
      Scalar &sum = *entry->second;
      sum.f = result->format.round(sum.f + element.f);
      element.f = 0;
    }
  }
  return fiber.setObject(op, result);
}

static Status yield(Fiber &fiber, const Instruction &op) {
  fiber.yielded.clear();
  for (size_t index = 0; index < op.operands.size(); ++index)
    fiber.yielded.push_back(fiber.operand(op, index));
  fiber.stack.pop_back();
  return Status::Next;
}

static Status reduce(Fiber &fiber, const Instruction &op) {
  auto reduceOp = cast<tile::ReduceOp>(op.op);
  auto input = readFragment(fiber, op, 0), init = readFragment(fiber, op, 1);
  if (!input || !init)
    return Status::Failed;
  auto result = makeFragment(reduceOp.getResult().getType());
  result->elements = init->elements;
  bool isMax = reduceOp.getKind() == tile::Reduction::Max;
  bool isFloat = result->format.isFloat();
  int64_t dim = reduceOp.getDim(), columns = input->shape[1];
  bool isPart = result->shape.size() == 2;
  for (auto [number, element] : llvm::enumerate(input->elements)) {
    std::array<int64_t, 2> place = {int64_t(number) / columns,
                                    int64_t(number) % columns};
    int64_t target = place[1 - dim];
    if (isPart) {
      int64_t size = result->shape[dim];
      place[dim] = reduceOp.getNeighbors()
                       ? place[dim] / (input->shape[dim] / size)
                       : place[dim] % size;
      target = place[0] * result->shape[1] + place[1];
    }
    Scalar &sum = result->elements[target];
    if (isFloat)
      sum.f = isMax ? std::fmax(sum.f, element.f) : sum.f + element.f;
    else
      sum.i = isMax ? std::max(sum.i, element.i)
                    : result->format.wrap(uint64_t(sum.i) + element.i);
  }
  if (isFloat)
    for (Scalar &sum : result->elements)
      sum.f = result->format.round(sum.f);
  return fiber.setObject(op, result);
}

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

/// Makes the additions of a launch.
static void addUp(Machine &machine) {
  for (const auto &[block, additions] : machine.additions)
    for (const Machine::Addition &addition : additions) {
      const Format &format = addition.target.format;
      char *element = addition.target.getElement(addition.index);
      Scalar sum = format.read(element);
      if (format.isFloat())
        sum.f = format.round(sum.f + addition.value.f);
      else
        sum.i = format.wrap(uint64_t(sum.i) + uint64_t(addition.value.i));
      format.write(element, sum);
    }
  machine.additions.clear();
}

/// Runs clusters as long as one of them proceeds; those that end are removed.
static Status runWaiting(Machine &machine,
                         std::vector<std::unique_ptr<Cluster>> &clusters) {
  int64_t turns;
  do {
    turns = machine.turns;
    for (auto cluster = clusters.begin(); cluster != clusters.end();) {
      Status status = (*cluster)->run();
      if (status == Status::Failed)
        return status;
      if (status == Status::Next)
        cluster = clusters.erase(cluster);
      else
        ++cluster;
    }
  } while (turns != machine.turns);
  return Status::Next;
}

/// Returns the number of the block at `place`. Several blocks read and write
/// the numbers of turns.
static int64_t readTurn(const MemRef &turns, ArrayRef<int64_t> place) {
  return turns.format.read(turns.getElement(turns.getIndex(place))).i;
}

/// Returns the number of the previous block; nullopt for the first.
static std::optional<int64_t> readTurnBefore(const MemRef &turns,
                                             SmallVector<int64_t, 5> place) {
  if (--place.back() < 0)
    return std::nullopt;
  return readTurn(turns, place);
}

static Status takeTurn(Fiber &fiber, const Instruction &op) {
  auto turn = cast<tile::TakeTurnOp>(op.op);
  auto &turns = fiber.get<MemRef>(op, 0);
  auto place = getIndices(fiber, op, 1, turn.getIndices().size());
  int64_t next = fiber.getInt(op, 1 + place.size()) + 1;
  if (int64_t number = readTurn(turns, place); number > next) {
    fiber.emitError(op.op) << "is at position " << next - 1
                           << ", but its block has come to " << number;
    return Status::Failed;
  }
  fiber.role->isOutOfTurn = readTurnBefore(turns, place).value_or(next) < next;
  if (!fiber.role->isOutOfTurn)
    return Status::Next;
  fiber.role->obstacle =
      "for the block of the index before to be past its position";
  return Status::Blocked;
}

static Status passTurn(Fiber &fiber, const Instruction &op) {
  auto turn = cast<tile::PassTurnOp>(op.op);
  auto &turns = fiber.get<MemRef>(op, 0);
  auto place = getIndices(fiber, op, 1, turn.getIndices().size());
  int64_t position = fiber.getInt(op, 1 + place.size());
  for (Store &store : fiber.role->stores)
    if (!store.isDone && complete(fiber, store) != Status::Next)
      return Status::Failed;
  if (int64_t last = readTurn(turns, place); position < last) {
    fiber.emitError(op.op) << "comes to position " << position
                           << ", but its block has come to " << last;
    return Status::Failed;
  }
  if (int64_t before = readTurnBefore(turns, place).value_or(position);
      before < position) {
    fiber.emitError(op.op) << "comes to position " << position
                           << ", but the block before only to " << before;
    return Status::Failed;
  }
  turns.format.write(turns.getElement(turns.getIndex(place)), {.i = position});
  ++fiber.machine.turns;
  return Status::Next;
}

static Status takeGroupTurn(Fiber &fiber, const Instruction &) {
  if (!fiber.role->hasTurn) {
    fiber.role->obstacle = "for the warp group before to pass its turn";
    return Status::Blocked;
  }
  fiber.role->hasTurn = false;
  return Status::Next;
}

static Status passGroupTurn(Fiber &fiber, const Instruction &op) {
  Role &next = fiber.block->getNextGroup(*fiber.role);
  if (next.hasTurn) {
    fiber.emitError(op.op) << "passes a turn to warp group " << next.group
                           << ", which has not taken the one before";
    return Status::Failed;
  }
  next.hasTurn = true;
  fiber.block->wake();
  return Status::Next;
}

static Status claim(Fiber &fiber, const Instruction &op) {
  auto &counter = fiber.get<MemRef>(op, 0);
  if (counter.sizes.front() < 1) {
    fiber.emitError(op.op) << "takes a number of a counter without elements";
    return Status::Failed;
  }
  int64_t first = 0;
  char *number = counter.getElement(counter.getIndex(first));
  Scalar taken = counter.format.read(number);
  counter.format.write(number, {.i = taken.i + 1});
  fiber.result(op).scalar = taken;
  return Status::Next;
}

/// Sets the numbers of the warps of a block.
static Status signal(Fiber &fiber, const Instruction &op) {
  auto signalOp = cast<tile::SignalOp>(op.op);
  auto &flags = fiber.get<MemRef>(op, 0);
  auto place = getIndices(fiber, op, 1, signalOp.getIndices().size());
  place.push_back(0);
  fiber.machine.signals[flags.getElement(flags.getIndex(place))] = {
      fiber.block->getNumber(), fiber.block->countSignal()};
  for (int64_t &warp = place.back(); warp < flags.sizes.back(); ++warp)
    flags.format.write(flags.getElement(flags.getIndex(place)), {.i = 1});
  ++fiber.machine.turns;
  return Status::Next;
}

static Status await(Fiber &fiber, const Instruction &op) {
  auto awaitOp = cast<tile::AwaitOp>(op.op);
  auto &flags = fiber.get<MemRef>(op, 0);
  auto place = getIndices(fiber, op, 1, awaitOp.getIndices().size());
  place.push_back(0);
  fiber.role->isOutOfTurn = readTurn(flags, place) == 0;
  if (fiber.role->isOutOfTurn) {
    fiber.role->obstacle = "for the warps of another block to signal";
    return Status::Blocked;
  }
  auto [block, signal] =
      fiber.machine.signals.lookup(flags.getElement(flags.getIndex(place)));
  fiber.block->see(block, signal);
  return Status::Next;
}

/// The interpreter runs whole programs as they are: all iterations of a loop.
static Status combineParts(Fiber &fiber, const Instruction &op) {
  for (unsigned number = 0; number < op.op->getNumResults(); ++number)
    fiber.result(op, number) = fiber.operand(op, number);
  return Status::Next;
}

static Status launch(Fiber &fiber, const Instruction &op) {
  auto launchOp = cast<tile::LaunchOp>(op.op);
  if (fiber.block) {
    fiber.emitError(op.op) << "stands in another launch";
    return Status::Failed;
  }
  for (OpOperand &operand : launchOp->getOpOperands())
    if (isa<TensorType>(operand.get().getType())) {
      fiber.emitError(op.op)
          << "has tensors; expected memrefs, got " << operand.get().getType()
          << " for operand " << operand.getOperandNumber();
      return Status::Failed;
    }
  FailureOr<LaunchPlan> plan = planLaunch(launchOp, fiber.machine.options);
  if (failed(plan))
    return Status::Failed;
  SmallVector<int64_t, 3> grid;
  for (size_t dim = 0; dim < launchOp.getGrid().size(); ++dim) {
    grid.push_back(fiber.getInt(op, dim));
    if (grid.back() < 0) {
      fiber.emitError(op.op) << "has a grid of size " << grid.back();
      return Status::Failed;
    }
  }
  std::vector<SmallVector<int64_t, 3>> places;
  SmallVector<int64_t, 3> slowestFirst(llvm::reverse(grid));
  forEachIndex(slowestFirst, [&](ArrayRef<int64_t> index) {
    places.emplace_back(llvm::reverse(index));
    return true;
  });
  ++fiber.machine.launch;
  fiber.machine.signals.clear();
  if (uint64_t seed = fiber.machine.options.seed)
    std::shuffle(places.begin(), places.end(), std::mt19937_64(seed));
  const Code *program = op.regions[0];
  // The clusters, most of them of one block, that wait for other blocks' turns.
  std::vector<std::unique_ptr<Cluster>> waiting;
  for (ArrayRef<int64_t> index : places) {
    std::vector<Datum> values = fiber.values;
    for (auto [number, argument] : llvm::enumerate(program->arguments)) {
      values[argument] = fiber.operand(op, number);
      if (number < index.size())
        values[argument].scalar.i = index[number];
    }
    waiting.push_back(
        std::make_unique<Cluster>(fiber.machine, launchOp, *plan, grid, index));
    waiting.back()->start(program, values);
    if (runWaiting(fiber.machine, waiting) != Status::Next)
      return Status::Failed;
  }
  if (!waiting.empty())
    return waiting.front()->reportDeadlock();
  addUp(fiber.machine);
  return Status::Next;
}

static Status runRoles(Fiber &fiber, const Instruction &op) {
  return fiber.block->runRoles(fiber, op) ? Status::Next : Status::Blocked;
}

static Status group(Fiber &fiber, const Instruction &op) {
  fiber.result(op, 0).scalar.i = fiber.role->group;
  return Status::Next;
}

static Status clusterRank(Fiber &fiber, const Instruction &op) {
  return fiber.setInt(op, fiber.block->getRank());
}

/// For all rows: only a pass tells them apart.
static Status ofRows(Fiber &fiber, const Instruction &op) {
  fiber.result(op, 0) = fiber.operand(op, 0);
  return Status::Next;
}

/// A pass may take the condition for false in other iterations.
static Status firstOnly(Fiber &fiber, const Instruction &op) {
  fiber.result(op, 0) = fiber.operand(op, 0);
  return Status::Next;
}

static Status endProgram(Fiber &fiber, const Instruction &op) {
  fiber.stack.pop_back();
  return Status::Next;
}

void interpreter::addTileHandlers(llvm::StringMap<Handler> &handlers) {
  handlers["tile.launch"] = launch;
  handlers["tile.roles"] = inLaunch<runRoles>;
  handlers["tile.return"] = endProgram;
  handlers["tile.load"] = inLaunch<load>;
  handlers["tile.to_shared"] = inLaunch<toShared>;
  handlers["tile.widen"] = inLaunch<widen>;
  handlers["tile.from_shared"] = inLaunch<fromShared>;
  handlers["tile.shift_rows"] = inLaunch<shiftRows>;
  handlers["tile.prefetch"] = inLaunch<prefetch>;
  handlers["tile.store"] = inLaunch<store>;
  handlers["tile.group"] = inLaunch<group>;
  handlers["tile.cluster_rank"] = inLaunch<clusterRank>;
  handlers["tile.of_rows"] = ofRows;
  handlers["tile.first_only"] = firstOnly;
  handlers["tile.claim"] = inLaunch<claim>;
  handlers["tile.signal"] = inLaunch<signal>;
  handlers["tile.await"] = inLaunch<await>;
  handlers["tile.combine_parts"] = combineParts;
  handlers["tile.take_turn"] = inLaunch<takeTurn>;
  handlers["tile.pass_turn"] = inLaunch<passTurn>;
  handlers["tile.take_group_turn"] = inLaunch<takeGroupTurn>;
  handlers["tile.pass_group_turn"] = inLaunch<passGroupTurn>;
  handlers["tile.fill"] = fill;
  handlers["tile.map"] = map;
  handlers["tile.any"] = any;
  handlers["tile.extremes"] = extremes;
  handlers["tile.sum_diagonals"] = sumDiagonals;
  handlers["tile.yield"] = yield;
  handlers["tile.reduce"] = reduce;
}
