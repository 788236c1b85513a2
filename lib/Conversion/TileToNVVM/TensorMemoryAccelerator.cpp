//===- TensorMemoryAccelerator.cpp - Copies by TMA ------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "InlinePtx.h"
#include "Patterns.h"
#include "Rings.h"
#include "Roles.h"
#include "RunCopy.h"
#include "TensorMaps.h"

#include "fovea/Dialect/Tile/IR/TensorMaps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace fovea::tile;

/// Returns the place of a tile that `op` copies along `dims` in TMA's order:
/// the innermost dimension first.
static SmallVector<Value> getCoordinates(ImplicitLocOpBuilder &builder,
                                         Operation *op, ArrayRef<int64_t> dims,
                                         ArrayRef<ValueRange> indices) {
  SmallVector<Value> coordinates;
  for (ValueRange index : llvm::reverse(indices))
    coordinates.push_back(arith::IndexCastOp::create(
        builder, builder.getI32Type(), index.front()));
  moveInnerRows(op, dims, coordinates);
  return coordinates;
}

/// The number of panel copies beyond which they are a loop: ptxas readies the
/// operands of all copies in uniform registers, and beyond these in the few
/// registers of a role that copies (head dim 240, of 15 panels: 4 bytes
/// spilled).
static constexpr int64_t kMostCopies = 8;

/// Emits `text` for each panel of `tile`, or for all of them, if the map copies
/// these: with the panel's address as $0, the descriptor as $1, `others`, and
/// then the panel's coordinates, whose names replace `@` in the text. Of
/// `blocks` blocks of a cluster each has every `blocks`th panel.
static void emitPanels(ImplicitLocOpBuilder &builder, TensorMapType map,
                       SharedType tile, StringRef text, Value address,
                       Value descriptor, ValueRange others,
                       ArrayRef<Value> coordinates, int64_t blocks = 1) {
  Value firstColumn = coordinates.front();
  if (blocks > 1) {
    Value rank =
        NVVM::BlockInClusterIdXOp::create(builder, builder.getI32Type());
    auto moveToOwn = [&](Value value, int64_t by) {
      Value distance = arith::MulIOp::create(
          builder, rank, getI32(builder, builder.getLoc(), by));
      return arith::AddIOp::create(builder, value, distance);
    };
    address = moveToOwn(address, tile.getPanelBytes());
    firstColumn = moveToOwn(firstColumn, tile.getPanelColumns());
  }
  auto [before, after] = text.split('@');
  std::string whole = before.str();
  llvm::raw_string_ostream os(whole);
  unsigned column = 2 + others.size();
  llvm::interleaveComma(llvm::seq<int64_t>(0, map.getRank()), os,
                        [&](int64_t dim) { os << "$" << column + dim; });
  os << after;
  auto emit = [&](int64_t byte, int64_t distance, StringRef text) {
    auto move = [&](Value value, int64_t by) -> Value {
      return arith::AddIOp::create(
          builder, value, arith::ConstantIntOp::create(builder, by, 32));
    };
    SmallVector<Value> operands = {move(address, byte), descriptor};
    llvm::append_range(operands, others);
    operands.push_back(move(firstColumn, distance));
    llvm::append_range(operands, coordinates.drop_front());
    emitPtx(builder, builder.getLoc(), text, operands);
  };
  int64_t panels = map.getTile().getRuns() ? 1 : tile.getNumPanels();
  if (panels <= kMostCopies) {
    for (int64_t panel = 0; panel < panels; panel += blocks)
      emit(panel * tile.getPanelBytes(), panel * tile.getPanelColumns(), whole);
    return;
  }
  // The loop is written in PTX, where ptxas can be kept from unrolling it.
  std::string copy = StringRef(whole).str();
  auto rename = [&](const std::string &operand, StringRef name) {
    copy.replace(copy.find(operand), operand.size(), name);
  };
  rename("$0", "address");
  rename("$" + std::to_string(column), "column");
  emit(0, 0,
       llvm::formatv("{{\n.reg .pred more;\n.reg .b32 address, column, end;\n"
                     "mov.b32 address, $0;\nmov.b32 column, ${0};\n"
                     "add.s32 end, column, {1};\n"
                     "COPY:\n.pragma \"nounroll\";\n{2}\n"
                     "add.s32 address, address, {3};\n"
                     "add.s32 column, column, {4};\n"
                     "setp.lt.s32 more, column, end;\n"
                     "@more bra COPY;\n}",
                     column, panels * tile.getPanelColumns(), copy,
                     blocks * tile.getPanelBytes(),
                     blocks * tile.getPanelColumns())
           .str());
}

/// Returns the instruction that copies a panel, for `emitPanels`, with the
/// barrier as $2; to all of `blocks` blocks of a cluster, at whose barriers the
/// copy counts.
static std::string getCopyText(TensorMapType map, int64_t blocks = 1) {
  std::string copy =
      llvm::formatv("cp.async.bulk.tensor.{0}d.shared::cluster.global."
                    "mbarrier::complete_tx::bytes",
                    map.getRank());
  if (blocks == 1)
    return copy + " [$0], [$1, {@}], [$2];";
  return llvm::formatv("{{\n.reg .b16 all;\nmov.b16 all, {0};\n"
                       "{1}.multicast::cluster [$0], [$1, {{@}], [$2], all;\n}",
                       llvm::maskTrailingOnes<uint16_t>(blocks), copy);
}

/// Arrives at a barrier, which then waits for `bytes` more; returns the state
/// of its phase.
static Value emitExpect(ImplicitLocOpBuilder &builder, Value barrier,
                        Value bytes) {
  return emitPtx(builder, builder.getLoc(),
                 "mbarrier.arrive.expect_tx.shared::cta.b64 $0, [$1], $2;",
                 {barrier, bytes}, builder.getI64Type())
      .front();
}

/// Waits for the phase of `barrier` that `state` belongs to.
static void emitWaitForState(ImplicitLocOpBuilder &builder, Location loc,
                             Value barrier, Value state) {
  emitPtx(builder, loc,
          "{\n.reg .pred done;\n"
          "WAIT:\n"
          "mbarrier.try_wait.shared::cta.b64 done, [$0], $1;\n"
          "@done bra DONE;\n"
          "bra WAIT;\n"
          "DONE:\n}",
          {barrier, state});
}

/// Returns the place of the first unit of a row's first panel, in bytes.
static Value getRowOffset(ImplicitLocOpBuilder &builder, SharedType tile,
                          Value row) {
  Location loc = builder.getLoc();
  auto constant = [&](int64_t value) { return getI32(builder, loc, value); };
  Value rowBytes = constant(tile.getRowBytes());
  if (tile.isOneRun())
    return arith::MulIOp::create(builder, row, rowBytes);
  Value rows = constant(tile.getRunRows());
  Value run = arith::DivUIOp::create(builder, row, rows);
  Value inRun = arith::RemUIOp::create(builder, row, rows);
  return arith::AddIOp::create(
      builder,
      arith::MulIOp::create(builder, run, constant(tile.getRunBytes())),
      arith::MulIOp::create(builder, inRun, rowBytes));
}

/// Writes zeros to rows `first` to below `end` of the tile at `address`, every
/// `step`th. A swizzle only permutes the bytes of a row.
static void emitZeroRows(ImplicitLocOpBuilder &builder, SharedType tile,
                         Value address, Value first, Value end, int64_t step) {
  constexpr int64_t kUnitBytes = 16;
  Location loc = builder.getLoc();
  int64_t rowBytes = tile.getRowBytes();
  auto loop =
      scf::ForOp::create(builder, first, end, getI32(builder, loc, step));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  Value row = arith::AddIOp::create(
      builder, address, getRowOffset(builder, tile, loop.getInductionVar()));
  auto unit = VectorType::get(kUnitBytes / 4, builder.getI32Type());
  Value zeros = arith::ConstantOp::create(builder, builder.getZeroAttr(unit));
  for (int64_t panel = 0; panel < tile.getNumPanels(); ++panel)
    for (int64_t byte = 0; byte < rowBytes; byte += kUnitBytes)
      LLVM::StoreOp::create(
          builder, zeros,
          toSharedPointer(builder, loc, row,
                          panel * tile.getPanelBytes() + byte),
          kUnitBytes);
}

namespace {

/// Copies runs of rows as boxes: each thread that runs the op starts the copies
/// of a run, and the first one arrives at the slot's barrier. All boxes count
/// their bytes, those outside of the tensor too, which are zero. The runs are
/// dealt to warps, since the threads of one warp start copies one after
/// another, each after it has brought its operands to uniform registers.
///
/// Where the op leaves out some rows of a run, all threads wait for the copy,
/// which counts at another barrier, write the zeros, and then the first thread
/// arrives at the slot's. No thread starts a copy of another tile meanwhile.
class RunBoxes {
public:
  RunBoxes(ImplicitLocOpBuilder &builder, LoadAsyncOp op,
           LoadAsyncOp::GenericAdaptor<ArrayRef<ValueRange>> adaptor,
           const RingUse &use, const RingReaders &readers)
      : builder(builder), op(op),
        map(cast<TensorMapType>(op.getSource().getType())),
        tile(op.getSlot().getType()),
        length(static_cast<int64_t>(*op.getRuns())),
        threads(isOneThread(op) ? 1 : getNumThreads(op)),
        thread(isOneThread(op) ? constant(0) : getThread(builder, op)),
        slot(adaptor.getSlot().front()),
        descriptor(adaptor.getSource().front()),
        rows(builder, op.getLoc(), tile, op.getRows()), use(use),
        readers(readers) {
    barrier = use.full;
    if (!mayBeCut())
      return;
    // Bounds between runs cut none.
    Value bounds =
        arith::OrIOp::create(builder, fromRun(rows.first), fromRun(rows.end));
    Value isWithin = arith::CmpIOp::create(builder, arith::CmpIPredicate::ne,
                                           bounds, constant(0));
    isCut = arith::AndIOp::create(builder, rows.isCut, isWithin);
    barrier = arith::SelectOp::create(
        builder, isCut,
        getCutBarrier(builder, op.getRing().getType(), adaptor.getRing()),
        use.full);
  }

  void emit();

private:
  bool mayBeCut() { return !op.getRows().empty() && !op.getWholeRuns(); }
  Value constant(int64_t value) { return getI32(builder, op.getLoc(), value); }
  /// Returns the distance of a row from the first of its run.
  Value fromRun(Value row) {
    return arith::RemUIOp::create(builder, row, constant(length));
  }
  Value getRow(Value run) {
    return arith::MulIOp::create(builder, run, constant(length));
  }
  /// Returns the place of a run in all dimensions but the last, outside of the
  /// tensor if none of its rows is left.
  SmallVector<Value> getPlace(Value run);
  void emitBox(Value run, ArrayRef<Value> place);

  ImplicitLocOpBuilder &builder;
  LoadAsyncOp op;
  TensorMapType map;
  SharedType tile;
  int64_t length, threads;
  Value thread, slot, descriptor;
  KeptRows rows;
  const RingUse &use;
  const RingReaders &readers;
  /// The barrier at which boxes count, and whether it is not the slot's.
  Value barrier, isCut;
};

} // namespace

SmallVector<Value> RunBoxes::getPlace(Value run) {
  Value row = getRow(run);
  auto compute = [&] {
    Value index =
        arith::IndexCastUIOp::create(builder, builder.getIndexType(), row);
    SmallVector<Value> place;
    for (Value each : emitPlace(builder, op.getPlace(), index))
      place.push_back(
          arith::IndexCastOp::create(builder, builder.getI32Type(), each));
    return place;
  };
  if (op.getRows().empty())
    return compute();
  Value end = arith::AddIOp::create(builder, row, constant(length));
  Value low = arith::MaxSIOp::create(builder, row, rows.first);
  Value high = arith::MinSIOp::create(builder, end, rows.end);
  Value isLeft =
      arith::CmpIOp::create(builder, arith::CmpIPredicate::slt, low, high);
  SmallVector<Type> types(map.getNumIndices() - 1, builder.getI32Type());
  auto branch =
      scf::IfOp::create(builder, types, isLeft, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(builder, compute());
  builder.setInsertionPointToStart(branch.elseBlock());
  SmallVector<Value> outside(types.size(), constant(0));
  outside[op.getDims().front()] = constant(-length);
  scf::YieldOp::create(builder, outside);
  return llvm::to_vector(ValueRange(branch.getResults()));
}

void RunBoxes::emitBox(Value run, ArrayRef<Value> place) {
  // The innermost dimension comes first.
  SmallVector<Value> coordinates = {constant(0)};
  llvm::append_range(coordinates, llvm::reverse(place));
  if (map.getTile().getRuns())
    coordinates.push_back(constant(0));
  Value address = arith::AddIOp::create(
      builder, slot, getRowOffset(builder, tile, getRow(run)));
  emitPanels(builder, map, tile, getCopyText(map), address, descriptor, barrier,
             coordinates);
}

void RunBoxes::emit() {
  int64_t count = tile.getShape().front() / length;
  Value first = thread;
  if (int64_t warps = threads / kWarpSize; warps > 1) {
    Value lanes = constant(kWarpSize);
    Value lane = arith::RemUIOp::create(builder, thread, lanes);
    Value warp = arith::DivUIOp::create(builder, thread, lanes);
    first = arith::AddIOp::create(
        builder, arith::MulIOp::create(builder, lane, constant(warps)), warp);
  }
  if (count > threads) {
    readers.acquireLate(builder, op, use);
    auto loop =
        scf::ForOp::create(builder, first, constant(count), constant(threads));
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    emitBox(loop.getInductionVar(), getPlace(loop.getInductionVar()));
  } else {
    Value hasRun = arith::CmpIOp::create(builder, arith::CmpIPredicate::ult,
                                         first, constant(count));
    SmallVector<Type> types(map.getNumIndices() - 1, builder.getI32Type());
    auto find =
        scf::IfOp::create(builder, types, hasRun, /*withElseRegion=*/true);
    {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(find.thenBlock());
      scf::YieldOp::create(builder, getPlace(first));
      builder.setInsertionPointToStart(find.elseBlock());
      scf::YieldOp::create(builder,
                           SmallVector<Value>(types.size(), constant(0)));
    }
    readers.acquireLate(builder, op, use);
    auto copy = scf::IfOp::create(builder, hasRun, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(copy.thenBlock());
    emitBox(first, llvm::to_vector(ValueRange(find.getResults())));
  }
  emitInOneThread(builder, op, [&](OpBuilder &nested) {
    ImplicitLocOpBuilder one(op.getLoc(), nested);
    Value state = emitExpect(one, barrier,
                             getI32(one, op.getLoc(), tile.getSizeInBytes()));
    if (!mayBeCut())
      return;
    auto branch = scf::IfOp::create(one, isCut, /*withElseRegion=*/false);
    one.setInsertionPointToStart(branch.thenBlock());
    emitWaitForState(one, op.getLoc(), barrier, state);
  });
  emitArriveBeside(builder, op, use.full);
  if (!mayBeCut())
    return;
  auto branch = scf::IfOp::create(builder, isCut, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  auto meet = [&] {
    if (threads == 1)
      return;
    // Threads of a warp come from different branches, which a barrier does not
    // expect.
    NVVM::SyncWarpOp::create(builder, constant(-1));
    emitBarrier(builder, op);
  };
  auto zero = [&](Value first, Value end) {
    emitZeroRows(builder, tile, slot,
                 arith::AddIOp::create(builder, first, thread), end, threads);
  };
  meet();
  zero(arith::SubIOp::create(builder, rows.first, fromRun(rows.first)),
       rows.first);
  Value rest =
      arith::SubIOp::create(builder, constant(length), fromRun(rows.end));
  zero(rows.end, arith::AddIOp::create(builder, rows.end, fromRun(rest)));
  emitProxyFence(builder, op.getLoc());
  meet();
  emitInOneThread(builder, op, [&](OpBuilder &one) {
    emitArrive(one, op.getLoc(), use.full);
  });
}

namespace {

/// Starts the copy of each panel of the tile by one thread. Where the op leaves
/// out some rows of the tile, the thread waits for the copy at a barrier of its
/// own, and then starts copies of zeros, for which the slot's waits.
class LoadAsyncLowering : public OpConversionPattern<LoadAsyncOp> {
public:
  LoadAsyncLowering(const TileTypeConverter &converter, MLIRContext *context,
                    const RingReaders &readers)
      : OpConversionPattern(converter, context), readers(readers) {}

  LogicalResult
  matchAndRewrite(LoadAsyncOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto map = dyn_cast<TensorMapType>(op.getSource().getType());
    if (!map)
      return failure();
    ImplicitLocOpBuilder builder(op.getLoc(), rewriter);
    RingUse use(builder, op.getRing(), adaptor.getRing(),
                adaptor.getUse().front());
    if (op.getRuns()) {
      RunBoxes(builder, op, adaptor, use, readers).emit();
      rewriter.eraseOp(op);
      return success();
    }
    SmallVector<Value> coordinates =
        getCoordinates(builder, op, op.getDims(), adaptor.getIndices());
    emitInOneThread(rewriter, op, [&](OpBuilder &nested) {
      ImplicitLocOpBuilder one(op.getLoc(), nested);
      SharedType tile = map.getTile();
      std::optional<KeptRows> rows;
      Value barrier = use.full, state;
      Value bytes = getI32(one, op.getLoc(), tile.getSizeInBytes());
      if (op.getRows().empty()) {
        emitPtx(one, op.getLoc(),
                "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;",
                {barrier, bytes});
      } else {
        rows.emplace(one, op.getLoc(), tile, op.getRows());
        // The coordinates of an empty tile are put before the tensor: TMA gives
        // zeros.
        Value &row = coordinates[map.getRank() - 1 - op.getDims().front()];
        row = arith::SelectOp::create(
            one, rows->isEmpty,
            getI32(one, op.getLoc(), -tile.getShape().front()), row);
        barrier = arith::SelectOp::create(
            one, rows->isCut,
            getCutBarrier(one, op.getRing().getType(), adaptor.getRing()),
            barrier);
        state = emitExpect(one, barrier, bytes);
      }
      int64_t blocks = readers.get(op.getRing()).blocks;
      emitPanels(one, map, tile, getCopyText(map, blocks),
                 adaptor.getSlot().front(), adaptor.getSource().front(),
                 barrier, coordinates, blocks);
      if (rows)
        emitZeros(one, op, *rows, adaptor.getSlot().front(), barrier, state,
                  use.full);
    });
    emitArriveBeside(rewriter, op, use.full);
    rewriter.eraseOp(op);
    return success();
  }

private:
  static void emitZeros(ImplicitLocOpBuilder &builder, LoadAsyncOp op,
                        const KeptRows &rows, Value slot, Value barrier,
                        Value state, Value full);

  const RingReaders &readers;
};

} // namespace

/// Completes the copy of a tile that is cut: waits for the phase of `barrier`
/// that `state` belongs to, then lets zeros be copied to the other rows. A
/// thread would take microseconds to write so many, and a bulk copy of as many
/// rows is one instruction, since a panel has them side by side.
void LoadAsyncLowering::emitZeros(ImplicitLocOpBuilder &builder, LoadAsyncOp op,
                                  const KeptRows &rows, Value slot,
                                  Value barrier, Value state, Value full) {
  SharedType tile = op.getSlot().getType();
  Location loc = op.getLoc();
  auto constant = [&](int64_t value) { return getI32(builder, loc, value); };
  auto branch =
      scf::IfOp::create(builder, rows.isCut, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  emitWaitForState(builder, loc, barrier, state);
  Value kept = arith::SubIOp::create(builder, rows.end, rows.first);
  Value others = arith::SubIOp::create(builder, rows.count, kept);
  int64_t panels = tile.getNumPanels(), rowBytes = tile.getRowBytes();
  emitExpect(
      builder, full,
      arith::MulIOp::create(builder, others, constant(panels * rowBytes)));
  Value zeros = getZeros(builder, op, tile.getPanelBytes());
  std::pair<Value, Value> ranges[] = {{constant(0), rows.first},
                                      {rows.end, rows.count}};
  for (auto [first, end] : ranges) {
    Value count = arith::SubIOp::create(builder, end, first);
    Value bytes = arith::MulIOp::create(builder, count, constant(rowBytes));
    Value place = arith::AddIOp::create(
        builder, slot,
        arith::MulIOp::create(builder, first, constant(rowBytes)));
    for (int64_t panel = 0; panel < panels; ++panel) {
      emitPtx(builder, loc,
              "{\n.reg .pred any;\n"
              "setp.ne.u32 any, $2, 0;\n"
              "@any cp.async.bulk.shared::cluster.global.mbarrier::"
              "complete_tx::bytes [$0], [$1], $2, [$3];\n}",
              {place, zeros, bytes, full});
      place =
          arith::AddIOp::create(builder, place, constant(tile.getPanelBytes()));
    }
  }
}

namespace {

/// Starts the copy of each panel by the first thread, which also waits; of each
/// place along the first dimension of rows, where some places along the second
/// one are not used.
struct StoreAsyncLowering : OpConversionPattern<StoreAsyncOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(StoreAsyncOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto map = dyn_cast<TensorMapType>(op.getTarget().getType());
    if (!map)
      return op.emitOpError("expected a tensor map to copy by, got ")
             << op.getTarget().getType();
    ImplicitLocOpBuilder builder(op.getLoc(), rewriter);
    SmallVector<Value> coordinates =
        getCoordinates(builder, op, op.getDims(), adaptor.getIndices());
    SharedType tile = op.getSource().getType();
    emitInOneThread(rewriter, op, [&](OpBuilder &nested) {
      ImplicitLocOpBuilder one(op.getLoc(), nested);
      std::string text = llvm::formatv(
          "cp{0}.async.bulk.tensor.{1}d.global.shared::cta{2}.bulk_group "
          "[$1, {{@}], [$0];",
          op.getAdd() ? ".reduce" : "", map.getRank(),
          op.getAdd() ? ".add.tile" : "");
      Value address = adaptor.getSource().front(),
            descriptor = adaptor.getTarget().front();
      if (op.getUsed())
        emitPlaces(one, op, text, address, descriptor, coordinates);
      else
        emitPanels(one, map, tile, text, address, descriptor, {}, coordinates);
      emitPtx(one, op.getLoc(), "cp.async.bulk.commit_group;");
    });
    rewriter.eraseOp(op);
    return success();
  }

private:
  static void emitPlaces(ImplicitLocOpBuilder &builder, StoreAsyncOp op,
                         StringRef text, Value address, Value descriptor,
                         SmallVector<Value> coordinates);
};

struct WaitStoresLowering : OpConversionPattern<WaitStoresOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(WaitStoresOp op, OneToNOpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    emitInOneThread(rewriter, op, [&](OpBuilder &nested) {
      emitPtx(nested, op.getLoc(),
              "cp.async.bulk.wait_group.read " + Twine(op.getPending()) + ";");
    });
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

/// Emits `text`, for `emitPanels`, for the rows of each place.
void StoreAsyncLowering::emitPlaces(ImplicitLocOpBuilder &builder,
                                    StoreAsyncOp op, StringRef text,
                                    Value address, Value descriptor,
                                    SmallVector<Value> coordinates) {
  auto map = cast<TensorMapType>(op.getTarget().getType());
  SharedType tile = op.getSource().getType();
  auto constant = [&](int64_t value) {
    return getI32(builder, op.getLoc(), value);
  };
  int64_t inner = getInnerRows(op);
  Value end = constant(countPlaces(op, tile.getShape().front()));
  if (Value valid = op.getValid()) {
    valid = arith::IndexCastOp::create(builder, builder.getI32Type(), valid);
    valid = arith::DivSIOp::create(builder, valid, constant(inner));
    end = arith::MinSIOp::create(builder, valid, end);
  }
  auto loop = scf::ForOp::create(builder, constant(0), end, constant(1));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  Value place = loop.getInductionVar();
  Value distance = arith::MulIOp::create(builder, place,
                                         constant(inner * tile.getRowBytes()));
  // TMA's first dimension is the memref's last one; columns and places along
  // the second dimension of rows come first.
  SmallVector<Value> order;
  for (int64_t dim = map.getRank() - 1; dim >= 0; --dim)
    order.push_back(dim == op.getDims().front() ? place : Value());
  moveInnerRows(op, op.getDims(), order);
  for (auto [coordinate, moved] : llvm::zip_equal(coordinates, order))
    if (moved)
      coordinate = arith::AddIOp::create(builder, coordinate, moved);
  emitPanels(builder, map, tile, text,
             arith::AddIOp::create(builder, address, distance), descriptor, {},
             coordinates);
}

void fovea::tile::populateTensorMemoryAcceleratorPatterns(
    const TileTypeConverter &converter, RewritePatternSet &patterns,
    const RingReaders &readers) {
  patterns.add<LoadAsyncLowering>(converter, patterns.getContext(), readers);
  patterns.add<StoreAsyncLowering, WaitStoresLowering>(converter,
                                                       patterns.getContext());
}
