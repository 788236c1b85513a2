//===- Memory.cpp - Loads and stores of tiles -----------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Access.h"
#include "InlinePtx.h"
#include "Rings.h"
#include "Roles.h"
#include "RunCopy.h"
#include "TransposedWrite.h"
#include "WarpMatrices.h"

#include "fovea/Dialect/Tile/IR/SharedMemory.h"
#include "fovea/Dialect/Tile/IR/TensorMaps.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::tile;

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

/// Bytes that one instruction copies at most.
static constexpr int64_t kCopyBytes = 16;

/// Returns the number of elements that one instruction takes from neighbouring
/// registers, where neighbours along the last dimension are neighbours in
/// memory.
static int64_t getVectorWidth(LayoutAttr layout, int64_t elementBytes) {
  ArrayRef<Digit> registers = layout.getRegisters();
  int64_t last = layout.getShape().size() - 1;
  if (registers.empty() || registers[0].dim != last || registers[0].stride != 1)
    return 1;
  return std::gcd(registers[0].size, kCopyBytes / elementBytes);
}

namespace {

/// Reads or writes the registers of a fragment, in vectors of neighbours where
/// memory allows, else one by one and only within the memref.
class FragmentAccess {
public:
  FragmentAccess(ConversionPatternRewriter &rewriter, Operation *op,
                 FragmentType type, GlobalAccess &memory);

  SmallVector<Value> load();
  void store(ValueRange registers);

private:
  /// Calls `body` for the first register of each `width` neighbours with a
  /// pointer to its element.
  void forEach(int64_t width,
               function_ref<void(int64_t index, Value pointer)> body);

  /// Returns true, as an i1, if vectors can be used everywhere in the tile.
  Value canUseVectors();

  /// Returns true if the thread may access its element in register `index`;
  /// null: it always may.
  Value mayAccess(int64_t index);

  SmallVector<Value> loadVectors();
  /// Returns the elements, or vectors of so many of them.
  SmallVector<Value> loadScalars(int64_t together);
  Value loadScalar(int64_t index, Value pointer);
  SmallVector<Value> unpack(ValueRange vectors);
  void storeVectors(ValueRange registers);
  void storeScalars(ValueRange registers);

  Value both(Value a, Value b) {
    return a && b ? arith::AndIOp::create(rewriter, loc, a, b).getResult()
                  : (a ? a : b);
  }

  ConversionPatternRewriter &rewriter;
  Location loc;
  LayoutAttr layout;
  Type elementType;
  GlobalAccess &memory;
  /// Neighbours in registers that are neighbours in memory.
  int64_t vector = 1;
  SmallVector<Value> coordinates;
  /// Selects one writer among threads that hold the same element; null: all
  /// write.
  Value isWriter;
  bool isAdd = false, isAligned = false;
};

} // namespace

FragmentAccess::FragmentAccess(ConversionPatternRewriter &rewriter,
                               Operation *op, FragmentType type,
                               GlobalAccess &memory)
    : rewriter(rewriter), loc(op->getLoc()), layout(type.getLayout()),
      elementType(type.getElementType()), memory(memory) {
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    coordinates.push_back(getThreadCoordinate(rewriter, op, layout, dim));
  if (memory.isContiguous())
    vector = getVectorWidth(layout, memory.getElementBytes());

  if (auto load = dyn_cast<LoadOp>(op))
    isAligned = load.getAligned();
  auto store = dyn_cast<StoreOp>(op);
  if (!store)
    return;
  isAligned = store.getAligned();
  isAdd = store.getAdd();
  if (isAdd)
    vector = 1;
  int64_t weight = 1;
  Value thread = getThread(rewriter, op), zero = getI32(rewriter, loc, 0);
  for (const Digit &digit : layout.getThreads()) {
    if (digit.dim == Digit::kReplicated) {
      Value place = arith::DivUIOp::create(rewriter, loc, thread,
                                           getI32(rewriter, loc, weight));
      place = arith::RemUIOp::create(rewriter, loc, place,
                                     getI32(rewriter, loc, digit.size));
      isWriter = both(isWriter, arith::CmpIOp::create(rewriter, loc,
                                                      arith::CmpIPredicate::eq,
                                                      place, zero));
    }
    weight *= digit.size;
  }
}

void FragmentAccess::forEach(int64_t width,
                             function_ref<void(int64_t, Value)> body) {
  Value first = memory.getPointer(coordinates);
  for (int64_t index = 0, e = layout.getNumRegisters(); index < e;
       index += width)
    body(index, memory.move(first, layout.getRegisterOffset(index)));
}

Value FragmentAccess::canUseVectors() {
  Value can = isAligned
                  ? arith::ConstantIntOp::create(rewriter, loc, 1, /*width=*/1)
                        .getResult()
                  : memory.isAligned(vector * memory.getElementBytes());
  for (auto [dim, size] : llvm::enumerate(layout.getShape()))
    if (!memory.isWhole(dim))
      can = both(can, arith::CmpIOp::create(
                          rewriter, loc, arith::CmpIPredicate::eq,
                          memory.getLeft(dim), getI32(rewriter, loc, size)));
  return can;
}

Value FragmentAccess::mayAccess(int64_t index) {
  Value may;
  for (auto [dim, offset] : llvm::enumerate(layout.getRegisterOffset(index))) {
    if (memory.isWhole(dim))
      continue;
    Value place = coordinates[dim];
    if (offset)
      place = arith::AddIOp::create(rewriter, loc, place,
                                    getI32(rewriter, loc, offset));
    may = both(may, memory.isWithin(dim, place));
  }
  return both(isWriter, may);
}

SmallVector<Value> FragmentAccess::load() {
  if (vector == 1)
    return loadScalars(/*together=*/1);
  // Numbers of 16 bits leave the branches in vectors: one by one they would
  // take twice the registers.
  int64_t together = memory.getElementBytes() == 2 ? vector : 1;
  SmallVector<Type> types(
      layout.getNumRegisters() / together,
      together == 1 ? elementType : VectorType::get(together, elementType));
  auto branch = scf::IfOp::create(rewriter, loc, types, canUseVectors(),
                                  /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToStart(branch.thenBlock());
    SmallVector<Value> vectors = loadVectors();
    scf::YieldOp::create(rewriter, loc,
                         together == 1 ? unpack(vectors) : vectors);
    rewriter.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(rewriter, loc, loadScalars(together));
  }
  return together == 1 ? SmallVector<Value>(branch.getResults())
                       : unpack(branch.getResults());
}

SmallVector<Value> FragmentAccess::unpack(ValueRange vectors) {
  SmallVector<Value> registers;
  for (Value values : vectors)
    for (int64_t index = 0; index < vector; ++index)
      registers.push_back(LLVM::ExtractElementOp::create(
          rewriter, loc, values, getI32(rewriter, loc, index)));
  return registers;
}

SmallVector<Value> FragmentAccess::loadVectors() {
  SmallVector<Value> vectors;
  auto type = VectorType::get(vector, elementType);
  forEach(vector, [&](int64_t, Value pointer) {
    vectors.push_back(LLVM::LoadOp::create(rewriter, loc, type, pointer,
                                           vector * memory.getElementBytes()));
  });
  return vectors;
}

SmallVector<Value> FragmentAccess::loadScalars(int64_t together) {
  SmallVector<Value> results, elements;
  forEach(1, [&](int64_t index, Value pointer) {
    elements.push_back(loadScalar(index, pointer));
    if (static_cast<int64_t>(elements.size()) < together)
      return;
    results.push_back(packVector(rewriter, loc, elements));
    elements.clear();
  });
  return results;
}

Value FragmentAccess::loadScalar(int64_t index, Value pointer) {
  Value may = mayAccess(index);
  if (!may)
    return LLVM::LoadOp::create(rewriter, loc, elementType, pointer);
  auto branch = scf::IfOp::create(rewriter, loc, elementType, may,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(
      rewriter, loc,
      LLVM::LoadOp::create(rewriter, loc, elementType, pointer).getResult());
  rewriter.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(rewriter, loc,
                       arith::ConstantOp::create(
                           rewriter, loc, rewriter.getZeroAttr(elementType))
                           .getResult());
  return branch.getResult(0);
}

void FragmentAccess::store(ValueRange registers) {
  if (vector == 1)
    return storeScalars(registers);
  auto branch = scf::IfOp::create(rewriter, loc, canUseVectors(),
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToStart(branch.thenBlock());
  storeVectors(registers);
  rewriter.setInsertionPointToStart(branch.elseBlock());
  storeScalars(registers);
}

void FragmentAccess::storeVectors(ValueRange registers) {
  OpBuilder::InsertionGuard guard(rewriter);
  if (isWriter) {
    auto branch = scf::IfOp::create(rewriter, loc, isWriter,
                                    /*withElseRegion=*/false);
    rewriter.setInsertionPointToStart(branch.thenBlock());
  }
  forEach(vector, [&](int64_t index, Value pointer) {
    Value values = packVector(rewriter, loc, registers.slice(index, vector));
    LLVM::StoreOp::create(rewriter, loc, values, pointer,
                          vector * memory.getElementBytes());
  });
}

void FragmentAccess::storeScalars(ValueRange registers) {
  forEach(1, [&](int64_t index, Value pointer) {
    OpBuilder::InsertionGuard guard(rewriter);
    if (Value may = mayAccess(index)) {
      auto branch =
          scf::IfOp::create(rewriter, loc, may, /*withElseRegion=*/false);
      rewriter.setInsertionPointToStart(branch.thenBlock());
    }
    if (isAdd)
      LLVM::AtomicRMWOp::create(rewriter, loc, LLVM::AtomicBinOp::fadd, pointer,
                                registers[index],
                                LLVM::AtomicOrdering::monotonic, "device");
    else
      LLVM::StoreOp::create(rewriter, loc, registers[index], pointer);
  });
}

namespace {
struct ConvertStore final : OpConversionPattern<StoreOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(StoreOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    FragmentType type = op.getValue().getType();
    GlobalAccess memory(rewriter, op.getLoc(), op.getTarget(), op.getIndices(),
                        op.getDims(), type.getShape());
    if (op.getValid())
      memory.limit(0, op.getValid());
    FragmentAccess(rewriter, op, type, memory).store(adaptor.getValue());
    rewriter.eraseOp(op);
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

/// Copies from a memref into a tile in shared memory, by all threads that run
/// an op.
class SharedCopy {
public:
  /// With `full`, each thread arrives at that mbarrier when its part of the
  /// copy is complete; otherwise `cp.async.wait_group` waits for the copy.
  SharedCopy(ConversionPatternRewriter &rewriter, Operation *op,
             SharedType type, Value address, GlobalAccess &memory,
             Value full = {})
      : rewriter(rewriter), loc(op->getLoc()), type(type), address(address),
        memory(memory), full(full), threads(getNumThreads(op)),
        thread(getThread(rewriter, op)) {}

  void start();

private:
  bool canUseUnits();
  void copyUnits();
  void copyElements();

  Value divide(Value a, int64_t b) {
    return arith::DivUIOp::create(rewriter, loc, a, getI32(rewriter, loc, b));
  }
  Value remainder(Value a, int64_t b) {
    return arith::RemUIOp::create(rewriter, loc, a, getI32(rewriter, loc, b));
  }

  /// Returns the bytes of the unit of elements from (row, column) that lie
  /// within the memref; null: all.
  Value getValidBytes(Value row, Value column);

  ConversionPatternRewriter &rewriter;
  Location loc;
  SharedType type;
  Value address;
  GlobalAccess &memory;
  Value full;
  int64_t threads;
  Value thread;
};

} // namespace

void SharedCopy::start() {
  if (!canUseUnits())
    return copyElements();
  auto branch = scf::IfOp::create(rewriter, loc, memory.isAligned(kCopyBytes),
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToStart(branch.thenBlock());
  copyUnits();
  rewriter.setInsertionPointToStart(branch.elseBlock());
  copyElements();
}

bool SharedCopy::canUseUnits() {
  return memory.isContiguous() &&
         type.getShape().back() * type.getElementBytes() % kCopyBytes == 0;
}

Value SharedCopy::getValidBytes(Value row, Value column) {
  Value bytes;
  if (!memory.isWhole(1)) {
    Value left =
        arith::SubIOp::create(rewriter, loc, memory.getLeft(1), column);
    left = arith::MulIOp::create(rewriter, loc, left,
                                 getI32(rewriter, loc, type.getElementBytes()));
    left =
        arith::MaxSIOp::create(rewriter, loc, left, getI32(rewriter, loc, 0));
    bytes = arith::MinSIOp::create(rewriter, loc, left,
                                   getI32(rewriter, loc, kCopyBytes));
  }
  if (Value isWithin = memory.isWithin(0, row))
    bytes = arith::SelectOp::create(rewriter, loc, isWithin,
                                    bytes ? bytes
                                          : getI32(rewriter, loc, kCopyBytes),
                                    getI32(rewriter, loc, 0));
  return bytes;
}

void SharedCopy::copyUnits() {
  int64_t unitColumns = kCopyBytes / type.getElementBytes();
  int64_t rowUnits = type.getShape().back() / unitColumns;
  int64_t units = type.getShape().front() * rowUnits;
  // A thread copies units of one column if a step of all threads is whole rows.
  bool isStraight = threads % rowUnits == 0;
  auto createAccess = [&](Value row, Value column) {
    return SharedAccess(rewriter, loc, type, address, row,
                        {column, ~uint64_t(0)});
  };
  Value column, row, source;
  auto locate = [&](Value unit) {
    row = divide(unit, rowUnits);
    column = arith::MulIOp::create(rewriter, loc, remainder(unit, rowUnits),
                                   getI32(rewriter, loc, unitColumns));
    source = memory.getPointer({row, column});
  };
  locate(thread);
  std::optional<SharedAccess> target = createAccess(row, column);
  Value firstRow = row, firstSource = source;
  for (int64_t first = 0; first < units; first += threads) {
    Value unit = arith::AddIOp::create(rewriter, loc, thread,
                                       getI32(rewriter, loc, first));
    int64_t rowOffset = 0;
    if (isStraight) {
      rowOffset = first / rowUnits;
      row = arith::AddIOp::create(rewriter, loc, firstRow,
                                  getI32(rewriter, loc, rowOffset));
      source = memory.move(firstSource, {rowOffset, 0});
    } else if (first) {
      locate(unit);
      target.emplace(createAccess(row, column));
    }
    OpBuilder::InsertionGuard guard(rewriter);
    if (first + threads > units) {
      Value isUnit =
          arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::ult, unit,
                                getI32(rewriter, loc, units));
      auto branch =
          scf::IfOp::create(rewriter, loc, isUnit, /*withElseRegion=*/false);
      rewriter.setInsertionPointToStart(branch.thenBlock());
    }
    Value pointer = target->getPointer(rowOffset, 0);
    Value bytes = getValidBytes(row, column);
    NVVM::CpAsyncOp::create(rewriter, loc, pointer, source, kCopyBytes,
                            NVVM::LoadCacheModifierKind::CG, bytes);
  }
  if (full)
    NVVM::CpAsyncMBarrierArriveOp::create(
        rewriter, loc, toSharedPointer(rewriter, loc, full), /*noinc=*/true);
}

void SharedCopy::copyElements() {
  auto [rows, columns] = std::pair(type.getShape()[0], type.getShape()[1]);
  auto loop = scf::ForOp::create(rewriter, loc, thread,
                                 getI32(rewriter, loc, rows * columns),
                                 getI32(rewriter, loc, threads));
  if (full)
    emitArrive(rewriter, loc, full);
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToStart(loop.getBody());
  Value row = divide(loop.getInductionVar(), columns);
  Value column = remainder(loop.getInductionVar(), columns);
  Value within;
  for (auto [dim, place] : {std::pair(0, row), std::pair(1, column)})
    if (Value inDim = memory.isWithin(dim, place))
      within =
          within
              ? arith::AndIOp::create(rewriter, loc, within, inDim).getResult()
              : inDim;
  Type elementType = type.getElementType();
  Value value;
  auto load = [&] {
    return LLVM::LoadOp::create(rewriter, loc, elementType,
                                memory.getPointer({row, column}))
        .getResult();
  };
  if (within) {
    auto branch = scf::IfOp::create(rewriter, loc, elementType, within,
                                    /*withElseRegion=*/true);
    OpBuilder::InsertionGuard inner(rewriter);
    rewriter.setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(rewriter, loc, load());
    rewriter.setInsertionPointToStart(branch.elseBlock());
    Value zero = arith::ConstantOp::create(rewriter, loc,
                                           rewriter.getZeroAttr(elementType));
    scf::YieldOp::create(rewriter, loc, zero);
    value = branch.getResult(0);
  } else {
    value = load();
  }
  SharedAccess target(rewriter, loc, type, address, row,
                      {column, ~uint64_t(0)});
  LLVM::StoreOp::create(rewriter, loc, value, target.getPointer(0, 0));
}

/// WGMMA and TMA read shared memory through a proxy other than that of threads'
/// writes, so that threads must fence after they have written.
static bool mayBeReadByProxy(Value tile) {
  return !llvm::all_of(tile.getUsers(), [](Operation *user) {
    auto product = dyn_cast<MmaOp>(user);
    return product && product.getKind() != MmaKind::Wgmma;
  });
}

namespace {

struct ConvertLoad final : OpConversionPattern<LoadOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(LoadOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto shared = dyn_cast<SharedType>(op.getResult().getType());
    if (!shared) {
      auto type = cast<FragmentType>(op.getResult().getType());
      GlobalAccess memory(rewriter, loc, op.getSource(), op.getIndices(),
                          op.getDims(), type.getShape());
      rewriter.replaceOpWithMultiple(
          op, {FragmentAccess(rewriter, op, type, memory).load()});
      return success();
    }
    std::optional<GlobalAccess> memory;
    if (!op.getRuns()) {
      memory.emplace(rewriter, loc, op.getSource(), op.getIndices(),
                     op.getDims(), shared.getShape());
      memory->limitRows(op.getRows());
    }
    // Threads that are behind may still read the slot's previous contents.
    if (op->getParentOfType<LoopLikeOpInterface>())
      emitBarrier(rewriter, op);
    Value address = getSharedAddress(rewriter, op, getSharedOffset(op));
    if (memory)
      SharedCopy(rewriter, op, shared, address, *memory).start();
    else
      emitRunCopy(rewriter, op, shared, address);
    NVVM::CpAsyncCommitGroupOp::create(rewriter, loc);
    NVVM::CpAsyncWaitGroupOp::create(rewriter, loc, 0);
    if (mayBeReadByProxy(op.getResult()))
      emitPtx(rewriter, loc, "fence.proxy.async.shared::cta;");
    emitBarrier(rewriter, op);
    rewriter.replaceOp(op, address);
    return success();
  }
};

} // namespace

/// Returns true if pairs of 32 bits of an accumulator would meet in a bank: of
/// the four rows that half a warp accesses, an even row and the odd one after
/// it have the same 32 bytes of a row of 128, where the swizzle only exchanges
/// the halves of 32 bytes for them.
static bool hasConflicts(LayoutAttr layout, SharedType type) {
  SmallVector<int64_t> permutation;
  return type.getElementBytes() == 4 && type.getSwizzle() == 128 &&
         layout.getColumnWarps(permutation) &&
         layout.getRegisterOffset(layout.getNumRegisters() - 1)[1] % 32 == 25;
}

namespace {

/// Access to pairs of an accumulator by two instructions for those of columns
/// `c` and `c + kDistance`, which threads of odd rows execute in the opposite
/// order.
class CrossedPairs {
public:
  static constexpr int64_t kDistance = 16;

  CrossedPairs(OpBuilder &builder, Operation *op, LayoutAttr layout,
               SharedType type, Value address);

  /// A pointer to the pair that the thread accesses first, or second, of the
  /// two at these coordinates.
  Value getPointer(bool isSecond, int64_t row, int64_t column) {
    return accesses[isSecond].getPointer(row, column);
  }
  /// Returns `odd` in threads of odd rows, else `even`.
  Value choose(Value odd, Value even) {
    return arith::SelectOp::create(builder, loc, isOdd, odd, even);
  }

private:
  OpBuilder &builder;
  Location loc;
  Value isOdd;
  SmallVector<SharedAccess, 2> accesses;
};

} // namespace

CrossedPairs::CrossedPairs(OpBuilder &builder, Operation *op, LayoutAttr layout,
                           SharedType type, Value address)
    : builder(builder), loc(op->getLoc()) {
  Value row = getThreadCoordinate(builder, op, layout, 0);
  ThreadPart column = getThreadPart(builder, op, layout, 1);
  Value parity =
      arith::AndIOp::create(builder, loc, row, getI32(builder, loc, 1));
  isOdd = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, parity,
                                getI32(builder, loc, 0));
  Value first = arith::MulIOp::create(builder, loc, parity,
                                      getI32(builder, loc, kDistance));
  Value second = arith::SubIOp::create(builder, loc,
                                       getI32(builder, loc, kDistance), first);
  for (Value offset : {first, second}) {
    Value sum = arith::AddIOp::create(builder, loc, column.value, offset);
    accesses.emplace_back(builder, loc, type, address, row,
                          ThreadPart{sum, column.bits | kDistance});
  }
}

namespace {

/// Writes a fragment's registers to a tile in shared memory, or those of its
/// columns from `column` on, as many as the tile has.
class FragmentWrite {
public:
  FragmentWrite(OpBuilder &builder, Operation *op, FragmentType value,
                SharedType type, Value address, int64_t column = 0)
      : builder(builder), op(op), loc(op->getLoc()), layout(value.getLayout()),
        type(type), address(address), column(column) {}

  void store(ValueRange registers);

private:
  /// Returns the place of a register's element in the tile, without the
  /// thread's part; nullopt if the tile does not take it.
  std::optional<std::pair<int64_t, int64_t>> getPlace(int64_t index) const {
    SmallVector<int64_t> place = layout.getRegisterOffset(index);
    int64_t inTile = place[1] - column;
    if (inTile < 0 || inTile >= type.getShape()[1])
      return std::nullopt;
    return std::pair(place[0], inTile);
  }

  void storePairs(ValueRange registers);

  OpBuilder &builder;
  Operation *op;
  Location loc;
  LayoutAttr layout;
  SharedType type;
  Value address;
  int64_t column;
};

} // namespace

void FragmentWrite::store(ValueRange registers) {
  WarpMatrices matrices(builder, op, layout, type);
  if (matrices && getGpuArch(op).hasMatrixStores() &&
      column % WarpMatrices::kSize == 0)
    return matrices.store(registers, address, /*transposed=*/false, column);
  if (hasConflicts(layout, type))
    return storePairs(registers);
  int64_t width = getVectorWidth(layout, type.getElementBytes());
  SharedAccess access(builder, loc, type, address,
                      getThreadCoordinate(builder, op, layout, 0),
                      getThreadPart(builder, op, layout, 1));
  for (int64_t index = 0, e = layout.getNumRegisters(); index < e;
       index += width) {
    auto place = getPlace(index);
    if (!place)
      continue;
    LLVM::StoreOp::create(
        builder, loc, packVector(builder, loc, registers.slice(index, width)),
        access.getPointer(place->first, place->second),
        width * type.getElementBytes());
  }
}

void FragmentWrite::storePairs(ValueRange registers) {
  CrossedPairs pairs(builder, op, layout, type, address);
  DenseMap<std::pair<int64_t, int64_t>, int64_t> places;
  for (int64_t index = 0, e = layout.getNumRegisters(); index < e; ++index)
    if (auto place = getPlace(index))
      places[*place] = index;
  for (int64_t index = 0, e = layout.getNumRegisters(); index < e; index += 2) {
    auto place = getPlace(index);
    if (!place || place->second & CrossedPairs::kDistance)
      continue;
    auto [row, column] = *place;
    int64_t partner = places.at({row, column + CrossedPairs::kDistance});
    for (bool isSecond : {false, true}) {
      SmallVector<Value> pair;
      for (int64_t part : {0, 1}) {
        Value own = registers[index + part], other = registers[partner + part];
        pair.push_back(pairs.choose(/*odd=*/isSecond ? own : other,
                                    /*even=*/isSecond ? other : own));
      }
      LLVM::StoreOp::create(builder, loc, packVector(builder, loc, pair),
                            pairs.getPointer(isSecond, row, column),
                            2 * type.getElementBytes());
    }
  }
}

namespace {

struct ConvertToShared final : OpConversionPattern<ToSharedOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ToSharedOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value address = op.getRing()
                        ? adaptor.getRing().front()
                        : getSharedAddress(rewriter, op, getSharedOffset(op));
    if (op.getSlots()) {
      Value use = arith::IndexCastOp::create(
          rewriter, loc, rewriter.getI32Type(), op.getUse());
      Value slot = arith::RemUIOp::create(
          rewriter, loc, use, getI32(rewriter, loc, *op.getSlots()));
      Value offset = arith::MulIOp::create(
          rewriter, loc, slot,
          getI32(rewriter, loc, getSlotBytes(op.getResult().getType())));
      address = arith::AddIOp::create(rewriter, loc, address, offset);
    }
    // Threads that are behind may still read the slot's previous contents;
    // contents of two slots ago are not read: the threads have met since.
    if (op.getRing() ||
        (!op.getSlots() && op->getParentOfType<LoopLikeOpInterface>()))
      emitBarrier(rewriter, op);
    if (op.getTransposed())
      TransposedWrite(rewriter, op, address).store(adaptor.getValue());
    else
      FragmentWrite(rewriter, op, op.getValue().getType(),
                    op.getResult().getType(), address)
          .store(adaptor.getValue());
    if (mayBeReadByProxy(op.getResult()))
      emitPtx(rewriter, loc, "fence.proxy.async.shared::cta;");
    emitBarrier(rewriter, op);
    rewriter.replaceOp(op, address);
    return success();
  }
};

/// Writes to a slot. Each thread signals what it has written: another warp may
/// be the next one that writes there.
struct ConvertWrite final : OpConversionPattern<WriteOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(WriteOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    const machine::GpuArch &arch = getGpuArch(op);
    if (!arch.hasBulkCopies)
      return op.emitOpError("expected a ring with barriers, which ")
             << arch.name << " has not";
    FragmentType value = op.getValue().getType();
    if (op.getColumn() && !value.getLayout().hasWholeRows())
      return op.emitOpError("expected warps that own whole rows, got ")
             << value;
    ImplicitLocOpBuilder builder(op.getLoc(), rewriter);
    RingUse use(builder, op.getRing().getType(), adaptor.getRing(),
                adaptor.getUse().front());
    FragmentWrite(rewriter, op, value, op.getSlot().getType(),
                  adaptor.getSlot().front(),
                  static_cast<int64_t>(op.getColumn().value_or(0)))
        .store(adaptor.getValue());
    emitPtx(rewriter, op.getLoc(), "fence.proxy.async.shared::cta;");
    emitArrive(rewriter, op.getLoc(), use.full);
    rewriter.eraseOp(op);
    return success();
  }
};

struct ConvertShiftRows final : OpConversionPattern<ShiftRowsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ShiftRowsOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    SharedType type = op.getTile().getType();
    // Rows of a panel follow one another.
    Value rowBytes =
        getI32(rewriter, loc, type.getPanelColumns() * type.getElementBytes());
    Value by = arith::IndexCastOp::create(rewriter, loc, rewriter.getI32Type(),
                                          adaptor.getBy().front());
    Value bytes = arith::MulIOp::create(rewriter, loc, by, rowBytes);
    rewriter.replaceOpWithNewOp<arith::AddIOp>(op, adaptor.getTile().front(),
                                               bytes);
    return success();
  }
};

/// Reads the registers of a fragment from a tile in shared memory.
class FragmentRead {
public:
  FragmentRead(OpBuilder &builder, FromSharedOp op, Value address)
      : builder(builder), op(op), loc(op.getLoc()),
        layout(op.getResult().getType().getLayout()),
        type(op.getSource().getType()), address(address) {}

  SmallVector<Value> load();

private:
  SmallVector<Value> loadPairs();
  /// Returns `width` neighbours.
  SmallVector<Value> loadVector(Value pointer, int64_t width);
  SmallVector<Value> loadBooleans(Value pointer, int64_t width);

  OpBuilder &builder;
  FromSharedOp op;
  Location loc;
  LayoutAttr layout;
  SharedType type;
  Value address;
};

} // namespace

SmallVector<Value> FragmentRead::loadBooleans(Value pointer, int64_t width) {
  // In a vector they would be bits.
  constexpr int64_t kByte = 8, kBits = (1 << kByte) - 1;
  auto integer = builder.getIntegerType(width * kByte);
  Value bytes = LLVM::LoadOp::create(builder, loc, integer, pointer, width);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(builder, loc,
                                     builder.getIntegerAttr(integer, value));
  };
  SmallVector<Value> elements;
  for (int64_t part = 0; part < width; ++part) {
    Value byte = arith::AndIOp::create(builder, loc, bytes,
                                       constant(kBits << (part * kByte)));
    elements.push_back(arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::ne, byte, constant(0)));
  }
  return elements;
}

SmallVector<Value> FragmentRead::loadVector(Value pointer, int64_t width) {
  Type element = type.getElementType();
  if (element.isInteger(1))
    return loadBooleans(pointer, width);
  if (width == 1)
    return {LLVM::LoadOp::create(builder, loc, element, pointer)};
  Value vector =
      LLVM::LoadOp::create(builder, loc, VectorType::get(width, element),
                           pointer, width * type.getElementBytes());
  SmallVector<Value> elements;
  for (int64_t part = 0; part < width; ++part)
    elements.push_back(LLVM::ExtractElementOp::create(
        builder, loc, vector, getI32(builder, loc, part)));
  return elements;
}

SmallVector<Value> FragmentRead::load() {
  if (hasConflicts(layout, type))
    return loadPairs();
  int64_t last = layout.getShape().size() - 1;
  int64_t width = getVectorWidth(layout, type.getElementBytes());
  Value row = last ? getThreadCoordinate(builder, op, layout, 0)
                   : getI32(builder, loc, 0);
  SharedAccess access(builder, loc, type, address, row,
                      getThreadPart(builder, op, layout, last));
  SmallVector<Value> registers;
  for (int64_t index = 0, e = layout.getNumRegisters(); index < e;
       index += width) {
    SmallVector<int64_t> place = layout.getRegisterOffset(index);
    Value pointer = access.getPointer(last ? place[0] : 0, place[last]);
    llvm::append_range(registers, loadVector(pointer, width));
  }
  return registers;
}

SmallVector<Value> FragmentRead::loadPairs() {
  CrossedPairs pairs(builder, op, layout, type, address);
  DenseMap<std::pair<int64_t, int64_t>, int64_t> places;
  SmallVector<Value> registers(layout.getNumRegisters());
  for (int64_t index = 0, e = layout.getNumRegisters(); index < e; ++index) {
    SmallVector<int64_t> place = layout.getRegisterOffset(index);
    places[{place[0], place[1]}] = index;
  }
  for (int64_t index = 0, e = layout.getNumRegisters(); index < e; index += 2) {
    SmallVector<int64_t> place = layout.getRegisterOffset(index);
    if (place[1] & CrossedPairs::kDistance)
      continue;
    int64_t partner = places.at({place[0], place[1] + CrossedPairs::kDistance});
    SmallVector<Value> loaded[2];
    for (bool isSecond : {false, true})
      loaded[isSecond] =
          loadVector(pairs.getPointer(isSecond, place[0], place[1]), 2);
    for (int64_t part : {0, 1}) {
      Value first = loaded[0][part], second = loaded[1][part];
      registers[index + part] = pairs.choose(/*odd=*/second, /*even=*/first);
      registers[partner + part] = pairs.choose(/*odd=*/first, /*even=*/second);
    }
  }
  return registers;
}

namespace {

struct ConvertFromShared final : OpConversionPattern<FromSharedOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(FromSharedOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    FragmentRead read(rewriter, op, adaptor.getSource().front());
    rewriter.replaceOpWithMultiple(op, {read.load()});
    return success();
  }
};

/// Copies by all threads where there is no tensor map.
class ConvertLoadAsync final : public OpConversionPattern<LoadAsyncOp> {
public:
  ConvertLoadAsync(const TileTypeConverter &converter, MLIRContext *context,
                   const RingReaders &readers)
      : OpConversionPattern(converter, context), readers(readers) {}

  LogicalResult
  matchAndRewrite(LoadAsyncOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (isa<TensorMapType>(op.getSource().getType()))
      return failure();
    if (isOneThread(op))
      return op.emitOpError("by one thread expected a tensor map to copy by, "
                            "got ")
             << op.getSource().getType();
    Location loc = op.getLoc();
    SharedType type = op.getSlot().getType();
    ImplicitLocOpBuilder builder(loc, rewriter);
    RingUse use(builder, op.getRing().getType(), adaptor.getRing(),
                adaptor.getUse().front());
    Value full = readers.get(op.getRing()).isOfBlock ? Value() : use.full;
    if (op.getRuns()) {
      emitRunCopy(rewriter, op, type, adaptor.getSlot().front(), full, [&] {
        ImplicitLocOpBuilder here(loc, rewriter);
        readers.acquireLate(here, op, use);
      });
    } else {
      GlobalAccess memory(rewriter, loc, op.getSource(), op.getIndices(),
                          op.getDims(), type.getShape());
      memory.limitRows(op.getRows());
      SharedCopy(rewriter, op, type, adaptor.getSlot().front(), memory, full)
          .start();
    }
    rewriter.eraseOp(op);
    return success();
  }

private:
  const RingReaders &readers;
};

} // namespace

void fovea::tile::populateMemoryPatterns(const TileTypeConverter &converter,
                                         RewritePatternSet &patterns,
                                         const RingReaders &readers) {
  patterns.add<ConvertLoad, ConvertStore, ConvertToShared, ConvertFromShared,
               ConvertShiftRows, ConvertWrite>(converter,
                                               patterns.getContext());
  patterns.add<ConvertLoadAsync>(converter, patterns.getContext(), readers);
}
