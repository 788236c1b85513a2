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

#include "fovea/Dialect/Tile/IR/Proxies.h"
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
  /// Stores vectors that begin at multiples of their size, as far as rows are
  /// within the tensor, or all.
  void storeVectors(ValueRange registers);
  void storeWholeVectors(ValueRange registers);
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
  // Neighbours are in one row: each vector is stored or not.
  bool hasWholeRows = memory.isWhole(layout.getShape().size() - 1);
  if (isAligned && hasWholeRows)
    return storeVectors(registers);
  // Whether all of it can be stored in vectors is not asked: it never can.
  if (memory.hasUnusedRows())
    return storeScalars(registers);
  auto branch = scf::IfOp::create(rewriter, loc, canUseVectors(),
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToStart(branch.thenBlock());
  storeWholeVectors(registers);
  rewriter.setInsertionPointToStart(branch.elseBlock());
  storeScalars(registers);
}

void FragmentAccess::storeVectors(ValueRange registers) {
  forEach(vector, [&](int64_t index, Value pointer) {
    OpBuilder::InsertionGuard guard(rewriter);
    Value values = packVector(rewriter, loc, registers.slice(index, vector));
    if (Value may = mayAccess(index)) {
      auto branch =
          scf::IfOp::create(rewriter, loc, may, /*withElseRegion=*/false);
      rewriter.setInsertionPointToStart(branch.thenBlock());
    }
    LLVM::StoreOp::create(rewriter, loc, values, pointer,
                          vector * memory.getElementBytes());
  });
}

void FragmentAccess::storeWholeVectors(ValueRange registers) {
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
                        op.getDims(), type.getShape(), getInnerRows(op),
                        getUsedRows(op));
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
  bool isStraight =
      threads % rowUnits == 0 && memory.isEven(threads / rowUnits);
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
                     op.getDims(), shared.getShape(), getInnerRows(op),
                     getUsedRows(op));
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
      emitProxyFence(rewriter, loc);
    emitBarrier(rewriter, op);
    rewriter.replaceOp(op, address);
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
    RingUse use(builder, op.getRing(), adaptor.getRing(),
                adaptor.getUse().front());
    Value full = readers.get(op.getRing()).isOfBlock ? Value() : use.full;
    if (op.getRuns()) {
      emitRunCopy(rewriter, op, type, adaptor.getSlot().front(), full, [&] {
        ImplicitLocOpBuilder here(loc, rewriter);
        readers.acquireLate(here, op, use);
      });
    } else {
      GlobalAccess memory(rewriter, loc, op.getSource(), op.getIndices(),
                          op.getDims(), type.getShape(), getInnerRows(op),
                          getUsedRows(op));
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

struct ConvertPrefetch final : OpConversionPattern<PrefetchOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(PrefetchOp op, OneToNOpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    constexpr int64_t kLineBytes = 128;
    Location loc = op.getLoc();
    Value zero = arith::ConstantIndexOp::create(rewriter, loc, 0);
    SmallVector<Value> indices(op.getIndices());
    indices.push_back(zero);
    MemRefType source = op.getSource().getType();
    int64_t elements = kLineBytes / getElementBytes(source);
    GlobalAccess memory(rewriter, loc, op.getSource(), indices,
                        {source.getRank() - 1}, {elements * getNumThreads(op)});
    Value place = arith::MulIOp::create(rewriter, loc, getThread(rewriter, op),
                                        getI32(rewriter, loc, elements));
    Value isThere = memory.isWithin(0, place);
    for (auto [dim, index] : llvm::enumerate(op.getIndices())) {
      Value size = memref::DimOp::create(rewriter, loc, op.getSource(), dim);
      Value isWithin = arith::CmpIOp::create(
          rewriter, loc, arith::CmpIPredicate::ult, index, size);
      isThere = isThere
                    ? arith::AndIOp::create(rewriter, loc, isThere, isWithin)
                    : isWithin;
    }
    OpBuilder::InsertionGuard guard(rewriter);
    if (isThere) {
      auto branch =
          scf::IfOp::create(rewriter, loc, isThere, /*withElseRegion=*/false);
      rewriter.setInsertionPointToStart(branch.thenBlock());
    }
    // LLVM's intrinsic is for sm_90 and later.
    emitPtx(rewriter, loc, "prefetch.global.L2 [$0];",
            LLVM::PtrToIntOp::create(rewriter, loc, rewriter.getI64Type(),
                                     memory.getPointer(place))
                .getResult());
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void fovea::tile::populateMemoryPatterns(const TileTypeConverter &converter,
                                         RewritePatternSet &patterns,
                                         const RingReaders &readers) {
  patterns.add<ConvertLoad, ConvertPrefetch, ConvertStore>(
      converter, patterns.getContext());
  patterns.add<ConvertLoadAsync>(converter, patterns.getContext(), readers);
}
