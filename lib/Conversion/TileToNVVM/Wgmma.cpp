//===- Wgmma.cpp - Products by warp groups --------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "InlinePtx.h"
#include "PackPairs.h"
#include "Patterns.h"
#include "Roles.h"
#include "WgmmaOperand.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;
using namespace fovea::tile;

namespace {

constexpr int64_t kMostColumns = 256;

/// Columns of a result that are neighbours in a thread's registers, and these
/// registers.
constexpr int64_t kGroupColumns = 8, kGroupRegisters = 4;

/// One product as the instructions see it.
struct Product {
  /// Columns of a warp group's part of the result; warp groups that share its
  /// rows, and its columns; sequences of instructions of one warp group, each
  /// of 64 rows that are `groups` * 64 apart.
  int64_t columns, groups, columnGroups, sequences;
  /// The result's register for each register of the instructions.
  SmallVector<int64_t> registers;
  StringRef elementType;
  /// Operand `a`, if it is in shared memory.
  std::optional<WgmmaOperand> a;
  /// Otherwise the register of `a` for each register of the instructions.
  SmallVector<int64_t> aRegisters;
  std::optional<WgmmaOperand> b;
  /// The steps along the inner dimension.
  int64_t firstStep, endStep;

  int64_t getSequenceRegisters() const { return columns / 2; }
};

} // namespace

/// Returns the register of `type` for each register of WGMMA's layout, and the
/// number of warp groups that share its columns.
static FailureOr<SmallVector<int64_t>> getRegisters(Operation *op,
                                                    FragmentType type,
                                                    StringRef role,
                                                    int64_t &columnGroups) {
  SmallVector<int64_t> registers;
  std::optional<int64_t> columnWarps;
  if (type.getLayout())
    columnWarps = type.getLayout().getColumnWarps(registers);
  if (!columnWarps || type.getLayout().getNumThreads() / *columnWarps %
                          (kGroupWarps * kWarpSize))
    return op->emitOpError("by wgmma expected ")
           << role << " of warp groups that own 64 rows each, got " << type;
  columnGroups = *columnWarps;
  return registers;
}

template <typename ProductOp>
static FailureOr<Product> getProduct(ProductOp op, FragmentType result) {
  Product product;
  auto registers = getRegisters(op, result, "a result", product.columnGroups);
  if (failed(registers))
    return failure();
  product.registers = *registers;
  product.columns = result.getShape()[1] / product.columnGroups;
  product.groups = result.getLayout().getNumThreads() /
                   (kGroupWarps * kWarpSize) / product.columnGroups;
  product.sequences = result.getShape()[0] / (product.groups * kGroupRows);
  if (product.columns > kMostColumns) {
    op.emitOpError("by wgmma expected at most ")
        << kMostColumns << " columns, got " << product.columns;
    return failure();
  }
  SharedType b = op.getB().getType();
  product.elementType = b.getElementType().isF16() ? "f16" : "bf16";
  auto emitError = [&]() { return op.emitOpError("by wgmma "); };
  auto operand = WgmmaOperand::get(b, op.getTransposeB(), emitError);
  if (failed(operand))
    return failure();
  product.b = *operand;
  auto [low, high] = op.getInnerRange();
  product.firstStep = low / WgmmaOperand::kStep;
  product.endStep = high / WgmmaOperand::kStep;
  if (product.columnGroups > 1 && !op.getTransposeB() &&
      product.columns % b.getPanelColumns()) {
    op.emitOpError("by wgmma expected warp groups to share whole panels of the "
                   "right operand's columns, got ")
        << product.columns << " of " << result << " each";
    return failure();
  }
  if (product.b->getNumInterleaved() > 1 && product.columns % b.getRunRows()) {
    op.emitOpError("by wgmma expected warp groups to share whole runs of the "
                   "right operand's rows, got ")
        << product.columns << " of " << b << " each";
    return failure();
  }
  if (auto a = dyn_cast<SharedType>(op.getA().getType())) {
    auto operand = WgmmaOperand::get(a, /*isKMajor=*/true, emitError);
    if (failed(operand))
      return failure();
    if (operand->getNumInterleaved() > 1) {
      op.emitOpError(
          "by wgmma expected a left operand that is not in runs, got ")
          << a;
      return failure();
    }
    product.a = *operand;
  } else {
    int64_t columnGroups;
    auto registers = getRegisters(op, cast<FragmentType>(op.getA().getType()),
                                  "a left operand", columnGroups);
    if (failed(registers))
      return failure();
    if (columnGroups > 1 || product.columnGroups > 1) {
      op.emitOpError("by wgmma expected a left operand in registers of warp "
                     "groups that share no columns, got ")
          << op.getA().getType();
      return failure();
    }
    product.aRegisters = *registers;
  }
  return product;
}

/// Prints `{$first, $first+1, ...}`: `count` registers, those of every
/// `period`th group of columns.
static void printRegisters(raw_ostream &os, int64_t first, int64_t count,
                           int64_t period = 1) {
  os << "{";
  llvm::interleave(
      llvm::seq<int64_t>(0, count), os,
      [&](int64_t index) {
        os << "$"
           << first + index / kGroupRegisters * kGroupRegisters * period +
                  index % kGroupRegisters;
      },
      ", ");
  os << "}";
}

/// Prints the computation of a descriptor from an address in units of 16 bytes,
/// inside the block of PTX and not before it, so that the descriptor does not
/// live in registers of its own.
static void printDescriptor(raw_ostream &os, StringRef name, unsigned address,
                            const WgmmaOperand &operand) {
  os << "cvt.u64.u32 " << name << ", $" << address << ";\n"
     << "or.b64 " << name << ", " << name << ", " << operand.getDescriptor()
     << ";\n";
}

/// Issues the instructions of one product as one group and returns the result's
/// registers, which must not be touched before a wait. `a` is the address of
/// the tile or the fragment, `acc` empty or the accumulator.
static SmallVector<Value> issue(OpBuilder &builder, Location loc,
                                const Product &product, ValueRange a, Value b,
                                ValueRange acc, Value warpGroup) {
  // Operands are in the order of the instructions' registers.
  SmallVector<Value> tied, inputs;
  for (int64_t index : product.registers)
    if (!acc.empty())
      tied.push_back(acc[index]);
  SmallVector<Type> outputs;
  if (acc.empty())
    outputs.append(product.registers.size(), builder.getF32Type());
  unsigned firstInput = getFirstInput(outputs.size(), tied.size());
  // `address` and so many parts of `bytes`.
  auto move = [&](Value address, Value number, int64_t bytes) -> Value {
    Value part = arith::ConstantIntOp::create(builder, loc, bytes, 32);
    Value offset = arith::MulIOp::create(builder, loc, number, part);
    return arith::AddIOp::create(builder, loc, address, offset);
  };
  Value rowGroup = warpGroup;
  if (product.columnGroups > 1) {
    Value groups =
        arith::ConstantIntOp::create(builder, loc, product.groups, 32);
    Value columnGroup = arith::DivUIOp::create(builder, loc, warpGroup, groups);
    rowGroup = arith::RemUIOp::create(builder, loc, warpGroup, groups);
    b = move(b, columnGroup, product.b->getStart(product.columns, 0));
  }
  // Shared memory has fewer than 2^18 bytes, the descriptor's 14 units. Higher
  // bits of an address are the number of the block in its cluster.
  bool isInCluster =
      fovea::tile::isInCluster(builder.getInsertionBlock()->getParentOp());
  auto getUnits = [&](Value address) -> Value {
    Value units =
        arith::ShRUIOp::create(builder, loc, address, getI32(builder, loc, 4));
    if (!isInCluster)
      return units;
    return arith::AndIOp::create(builder, loc, units,
                                 getI32(builder, loc, (1 << 14) - 1));
  };
  inputs.push_back(getUnits(b));
  if (product.a) {
    inputs.push_back(getUnits(
        move(a.front(), rowGroup, product.a->getStart(kGroupRows, 0))));
  } else {
    // A step of the inner dimension takes 8 elements of a thread.
    int64_t steps = product.b->getNumSteps();
    for (int64_t index = 0, e = product.aRegisters.size(); index < e;
         index += 2) {
      int64_t step = index / 8 % steps;
      if (step >= product.firstStep && step < product.endStep)
        inputs.push_back(packPair(builder, loc, a[product.aRegisters[index]],
                                  a[product.aRegisters[index + 1]]));
    }
  }

  std::string text;
  llvm::raw_string_ostream os(text);
  os << "{\n.reg .pred add;\n.reg .b64 a, b, x, y;\n";
  printDescriptor(os, "b", firstInput, *product.b);
  if (product.a)
    printDescriptor(os, "a", firstInput + 1, *product.a);
  os << "wgmma.fence.sync.aligned;\n";
  int64_t registers = product.getSequenceRegisters();
  int64_t steps = product.endStep - product.firstStep;
  int64_t parts = product.b->getNumInterleaved();
  for (int64_t sequence = 0; sequence < product.sequences; ++sequence) {
    for (int64_t part = 0; part < parts; ++part) {
      for (int64_t place = 0; place < steps; ++place) {
        int64_t step = product.firstStep + place;
        if (place < 2)
          os << "setp.ne.b32 add, " << int(place || !acc.empty()) << ", 0;\n";
        os << "add.s64 y, b, "
           << product.b->getStart(part * kGroupColumns, step) / 16 << ";\n";
        if (product.a)
          os << "add.s64 x, a, "
             << product.a->getStart(sequence * product.groups * kGroupRows,
                                    step) /
                    16
             << ";\n";
        os << "wgmma.mma_async.sync.aligned.m64n" << product.columns / parts
           << "k16.f32." << product.elementType << "." << product.elementType
           << " ";
        printRegisters(os, sequence * registers + part * kGroupRegisters,
                       registers / parts, parts);
        os << ", ";
        if (product.a)
          os << "x";
        else
          printRegisters(os, firstInput + 1 + (sequence * steps + place) * 4,
                         4);
        os << ", y, add, 1, 1, " << (product.a ? "0, " : "")
           << int(!product.b->isKMajor()) << ";\n";
      }
    }
  }
  os << "wgmma.commit_group.sync.aligned;\n}";
  SmallVector<Value> written =
      emitPtx(builder, loc, text, inputs, outputs, tied);
  SmallVector<Value> result(written.size());
  for (auto [index, value] : llvm::zip_equal(product.registers, written))
    result[index] = value;
  return result;
}

/// Waits for all but `pending` groups; `registers` can be read from then on.
static SmallVector<Value> wait(OpBuilder &builder, Location loc,
                               int64_t pending, ValueRange registers) {
  return emitPtx(builder, loc,
                 "wgmma.wait_group.sync.aligned " + Twine(pending) + ";",
                 /*inputs=*/{}, /*outputs=*/{}, registers);
}

/// Replaces by zeros what registers hold of the rows of a result from `rows`
/// on, if it is given, where these are such rows in all threads.
static void clearRows(OpBuilder &builder, Location loc, FragmentType type,
                      std::optional<int64_t> rows,
                      MutableArrayRef<Value> registers) {
  if (!rows)
    return;
  Value zero;
  for (auto [index, value] : llvm::enumerate(registers)) {
    int64_t row = type.getLayout().getRegisterOffset(index)[0];
    if (row < *rows)
      continue;
    if (!zero)
      zero = arith::ConstantOp::create(
          builder, loc, builder.getZeroAttr(type.getElementType()));
    value = zero;
  }
}

namespace {

template <typename Op>
class ProductPattern : public WarpPattern<Op> {
public:
  using WarpPattern<Op>::WarpPattern;

protected:
  FailureOr<SmallVector<Value>>
  issueOp(Op op, typename OpConversionPattern<Op>::OneToNOpAdaptor adaptor,
          FragmentType result, OpBuilder &builder) const {
    auto product = getProduct(op, result);
    if (failed(product))
      return failure();
    return issue(builder, op.getLoc(), *product, adaptor.getA(),
                 adaptor.getB().front(), adaptor.getAcc(),
                 this->warps.getGroup(builder, op));
  }
};

struct MmaLowering : ProductPattern<MmaOp> {
  using ProductPattern::ProductPattern;
  LogicalResult
  matchAndRewrite(MmaOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (op.getKind() != MmaKind::Wgmma)
      return failure();
    auto issued = issueOp(op, adaptor, op.getResult().getType(), rewriter);
    if (failed(issued))
      return failure();
    SmallVector<Value> result =
        wait(rewriter, op.getLoc(), /*pending=*/0, *issued);
    clearRows(rewriter, op.getLoc(), op.getResult().getType(), op.getRows(),
              result);
    rewriter.replaceOpWithMultiple(op, {ValueRange(result)});
    return success();
  }
};

struct MmaAsyncLowering : ProductPattern<MmaAsyncOp> {
  using ProductPattern::ProductPattern;
  LogicalResult
  matchAndRewrite(MmaAsyncOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto issued =
        issueOp(op, adaptor, op.getToken().getType().getFragment(), rewriter);
    if (failed(issued))
      return failure();
    rewriter.replaceOpWithMultiple(op, {ValueRange(*issued)});
    return success();
  }
};

struct WaitMmaLowering : OpConversionPattern<WaitMmaOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(WaitMmaOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    SmallVector<Value> result =
        wait(rewriter, op.getLoc(), op.getPending(), adaptor.getToken());
    if (auto product = op.getToken().getDefiningOp<MmaAsyncOp>())
      clearRows(rewriter, op.getLoc(), op.getResult().getType(),
                product.getRows(), result);
    rewriter.replaceOpWithMultiple(op, {ValueRange(result)});
    return success();
  }
};

} // namespace

void fovea::tile::populateWgmmaPatterns(const TileTypeConverter &converter,
                                        RewritePatternSet &patterns,
                                        const WarpNumbers &warps) {
  MLIRContext *context = patterns.getContext();
  patterns.add<MmaLowering, MmaAsyncLowering>(converter, context, warps);
  patterns.add<WaitMmaLowering>(converter, context);
}
