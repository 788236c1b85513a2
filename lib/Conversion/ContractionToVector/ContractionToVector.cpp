//===- ContractionToVector.cpp - convert-contraction-to-vector ------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The blocking is that of Goto and van de Geijn, "Anatomy of high-performance
// matrix multiplication", ACM TOMS 34(3), 2008, one block of the result per
// work item.
//
//===----------------------------------------------------------------------===//

#include "fovea/Analysis/Formula.h"
#include "fovea/Analysis/Loops.h"
#include "fovea/Conversion/Passes.h"
#include "fovea/Dialect/Attn/IR/Attn.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace fovea {
#define GEN_PASS_DEF_CONTRACTIONTOVECTOR
#include "fovea/Conversion/Passes.h.inc"

/// Rows and columns of a block of the result, and bytes of a row of the left
/// operand's block.
static constexpr int64_t kBlockRows = 96;
static constexpr int64_t kBlockColumns = 256;
static constexpr int64_t kBlockDepthBytes = 512;
/// Vectors of a panel of the right operand.
static constexpr int64_t kPanelVectors = 2;

/// Returns `value` without the extension to a wider float.
static Value stripExtension(Value value) {
  if (auto extension = value.getDefiningOp<arith::ExtFOp>())
    return extension.getIn();
  return value;
}

namespace {
/// A contraction: its operands, and its loops by kind.
struct Contraction {
  linalg::GenericOp op;
  OpOperand *left, *right, *result;
  /// Loops of the result that are not in a block: batches, and all rows and
  /// columns except the innermost.
  SmallVector<unsigned> outer;
  /// Summations except the innermost.
  SmallVector<unsigned> outerSums;
  unsigned row, column, sum;
  /// The type in which products are summed.
  FloatType type;
  /// True if a left element that is 0 adds nothing, whatever it is multiplied
  /// by.
  bool skipsZeros = false;

  static std::optional<Contraction> match(linalg::GenericOp op);
};
} // namespace

std::optional<Contraction> Contraction::match(linalg::GenericOp op) {
  if (!op.hasPureBufferSemantics() || op.getNumDpsInputs() != 2 ||
      op.getNumDpsInits() != 1)
    return std::nullopt;
  // The body must be: yield out + left * right, in any order.
  Block *body = op.getBody();
  auto add =
      body->getTerminator()->getOperand(0).getDefiningOp<arith::AddFOp>();
  if (!add)
    return std::nullopt;
  Value running = body->getArgument(2);
  Value addend = add.getLhs() == running   ? add.getRhs()
                 : add.getRhs() == running ? add.getLhs()
                                           : Value();
  Value zeroTested;
  if (auto select = addend ? addend.getDefiningOp<arith::SelectOp>()
                           : arith::SelectOp()) {
    auto test = select.getCondition().getDefiningOp<arith::CmpFOp>();
    if (!test || test.getPredicate() != arith::CmpFPredicate::OEQ ||
        !matchPattern(test.getRhs(), m_AnyZeroFloat()) ||
        !matchPattern(select.getTrueValue(), m_PosZeroFloat()))
      return std::nullopt;
    zeroTested = stripExtension(test.getLhs());
    addend = select.getFalseValue();
  }
  auto product = addend ? addend.getDefiningOp<arith::MulFOp>() : nullptr;
  if (!product)
    return std::nullopt;
  Value factors[] = {stripExtension(product.getLhs()),
                     stripExtension(product.getRhs())};
  Value first = body->getArgument(0), second = body->getArgument(1);
  if (!(factors[0] == first && factors[1] == second) &&
      !(factors[0] == second && factors[1] == first))
    return std::nullopt;

  if (zeroTested && zeroTested != first)
    return std::nullopt;

  Contraction found;
  found.op = op;
  found.skipsZeros = bool(zeroTested);
  auto resultType = cast<FloatType>(running.getType());
  found.type = attn::getAccumulationType(resultType);
  for (Value argument : {first, second})
    if (!isa<FloatType>(argument.getType()) ||
        argument.getType().getIntOrFloatBitWidth() > found.type.getWidth())
      return std::nullopt;
  found.left = op.getDpsInputOperand(0);
  found.right = op.getDpsInputOperand(1);
  found.result = op.getDpsInitOperand(0);
  for (OpOperand *operand : {found.left, found.right, found.result})
    if (!op.getMatchingIndexingMap(operand).isProjectedPermutation())
      return std::nullopt;
  AffineMap leftMap = op.getMatchingIndexingMap(found.left);
  AffineMap rightMap = op.getMatchingIndexingMap(found.right);
  AffineMap resultMap = op.getMatchingIndexingMap(found.result);
  SmallVector<unsigned> rows, columns, sums;
  for (unsigned dim = 0, e = op.getNumLoops(); dim < e; ++dim) {
    bool inLeft = leftMap.isFunctionOfDim(dim);
    bool inRight = rightMap.isFunctionOfDim(dim);
    bool inResult = resultMap.isFunctionOfDim(dim);
    if (inLeft && inRight)
      (inResult ? found.outer : sums).push_back(dim);
    else if (inResult && inLeft)
      rows.push_back(dim);
    else if (inResult && inRight)
      columns.push_back(dim);
    else
      return std::nullopt;
  }
  // A product with a vector reads each element once: there is nothing to block.
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  auto isLong = [&](unsigned dim) { return sizes[dim] != 1; };
  if (llvm::none_of(rows, isLong) || llvm::none_of(columns, isLong) ||
      sums.empty())
    return std::nullopt;
  auto takeInner = [&](SmallVector<unsigned> &dims) {
    // Finds the innermost loop that is longer than one.
    unsigned *inner = dims.end() - 1;
    while (inner != dims.begin() && !isLong(*inner))
      --inner;
    unsigned dim = *inner;
    dims.erase(inner);
    return dim;
  };
  found.row = takeInner(rows);
  found.column = takeInner(columns);
  found.sum = takeInner(sums);
  llvm::append_range(found.outer, rows);
  llvm::append_range(found.outer, columns);
  found.outerSums = sums;
  return found;
}

/// Returns the generic that fills the result just before, if nothing else reads
/// or writes the result in between; or null.
static linalg::GenericOp findFill(Contraction contraction) {
  Value result = contraction.result->get();
  Operation *op = contraction.op;
  linalg::GenericOp fill;
  for (Operation *user : result.getUsers()) {
    Operation *top = op->getBlock()->findAncestorOpInBlock(*user);
    if (user == op || !top || !top->isBeforeInBlock(op))
      continue;
    auto generic = dyn_cast<linalg::GenericOp>(user);
    if (!generic || top != user || fill || generic.getNumDpsInits() != 1 ||
        generic.getNumDpsInputs() != 0)
      return nullptr;
    fill = generic;
  }
  if (!fill || !result.getDefiningOp<memref::AllocOp>())
    return nullptr;
  Attribute value;
  if (!matchPattern(fill.getBody()->getTerminator()->getOperand(0),
                    m_Constant(&value)))
    return nullptr;
  return fill;
}

namespace {
/// Emits the loops of one contraction.
class ContractionEmitter {
public:
  ContractionEmitter(Contraction contraction, int64_t vectorBytes,
                     int64_t vectorRegisters)
      : c(contraction), builder(contraction.op), loc(contraction.op.getLoc()),
        lanes(std::max<int64_t>(2, vectorBytes * 8 / c.type.getWidth())),
        tileRows(vectorRegisters >= 32 ? 12 : 6), panel(lanes * kPanelVectors),
        depth(kBlockDepthBytes * 8 / c.type.getWidth()) {
    auto linalgOp = cast<linalg::LinalgOp>(c.op.getOperation());
    for (Range range : linalgOp.createLoopRanges(builder, loc))
      sizes.push_back(range.size);
    ivs.resize(sizes.size());
    blockColumns = kBlockColumns;
    if (auto size = getConstantIntValue(sizes[c.column]))
      blockColumns = std::min<int64_t>(
          blockColumns, llvm::alignTo(std::max<int64_t>(*size, 1), panel));
  }

  void emit() {
    linalg::GenericOp fill = findFill(c);
    if (fill)
      matchPattern(fill.getBody()->getTerminator()->getOperand(0),
                   m_Constant(&fillValue));
    SmallVector<OpFoldResult> lower, upper, step;
    auto addLoop = [&](unsigned dim, int64_t size) {
      lower.push_back(builder.getIndexAttr(0));
      upper.push_back(sizes[dim]);
      step.push_back(builder.getIndexAttr(size));
    };
    for (unsigned dim : c.outer)
      addLoop(dim, 1);
    addLoop(c.row, kBlockRows);
    addLoop(c.column, blockColumns);
    // Within a parallel loop, outline-parallel makes this one sequential.
    auto forall = scf::ForallOp::create(builder, loc, lower, upper, step,
                                        ValueRange(), std::nullopt);
    builder.setInsertionPoint(forall.getBody()->getTerminator());
    for (auto [i, dim] : llvm::enumerate(c.outer))
      ivs[dim] = forall.getInductionVar(i);
    unsigned last = c.outer.size();
    emitBlock(forall.getInductionVar(last), forall.getInductionVar(last + 1));
    if (fill)
      fill.erase();
  }

private:
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }
  Value index(OpFoldResult value) {
    return getValueOrCreateConstantIndexOp(builder, loc, value);
  }

  /// Returns the rest of `size` from `begin` on, at most `most`.
  OpFoldResult getRest(OpFoldResult size, Value begin, int64_t most) {
    AffineExpr s, b;
    bindSymbols(builder.getContext(), s, b);
    auto map =
        AffineMap::get(0, 2, {s - b, builder.getAffineConstantExpr(most)},
                       builder.getContext());
    auto staticSize = getConstantIntValue(size);
    if (staticSize && *staticSize > 0 && *staticSize % most == 0)
      return builder.getIndexAttr(most);
    if (staticSize && *staticSize <= most)
      return builder.getIndexAttr(*staticSize);
    return affine::makeComposedFoldedAffineMin(builder, loc, map,
                                               {size, begin});
  }

  Value allocate(ArrayRef<int64_t> shape) {
    OpBuilder atStart = OpBuilder::atBlockBegin(
        getStackBlock(builder.getInsertionBlock()->getTerminator()));
    return memref::AllocaOp::create(atStart, loc,
                                    MemRefType::get(shape, c.type),
                                    builder.getI64IntegerAttr(64));
  }

  /// Emits a loop over [0, `size`) in steps.
  void inLoop(OpFoldResult size, int64_t step,
              llvm::function_ref<void(Value)> body) {
    if (auto count = getConstantIntValue(size);
        count && *count <= step && *count > 0) {
      body(constant(0));
      return;
    }
    auto loop = scf::ForOp::create(builder, loc, constant(0), index(size),
                                   constant(step));
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(loop.getBody()->getTerminator());
    body(loop.getInductionVar());
  }

  /// The loops of a two-dimensional part of an operand, each with its offset
  /// and size.
  struct Part {
    unsigned dim;
    Value offset;
    OpFoldResult size;
  };

  /// Returns the part of `operand` at the current outer indices, and the map
  /// from (`first`, `second`) to its dimensions.
  std::pair<Value, AffineMap> getPart(OpOperand &operand, Part first,
                                      Part second) {
    AffineMap map = c.op.getMatchingIndexingMap(&operand);
    auto type = cast<MemRefType>(operand.get().getType());
    SmallVector<OpFoldResult> offsets, extents,
        strides(type.getRank(), builder.getIndexAttr(1));
    SmallVector<int64_t> shape;
    SmallVector<AffineExpr> exprs;
    for (AffineExpr expr : map.getResults()) {
      unsigned dim = cast<AffineDimExpr>(expr).getPosition();
      const Part *part = dim == first.dim    ? &first
                         : dim == second.dim ? &second
                                             : nullptr;
      if (!part) {
        offsets.push_back(ivs[dim]);
        extents.push_back(builder.getIndexAttr(1));
        continue;
      }
      offsets.push_back(part->offset);
      extents.push_back(part->size);
      shape.push_back(
          getConstantIntValue(part->size).value_or(ShapedType::kDynamic));
      exprs.push_back(builder.getAffineDimExpr(part == &second));
    }
    auto reduced =
        cast<MemRefType>(memref::SubViewOp::inferRankReducedResultType(
            shape, type, offsets, extents, strides));
    Value part = memref::SubViewOp::create(builder, loc, reduced, operand.get(),
                                           offsets, extents, strides);
    return {part, AffineMap::get(2, 0, exprs, builder.getContext())};
  }

  /// Returns the leading `rows` times `columns` elements of row `first` on of a
  /// buffer on the stack; `leading` are indices before these two.
  Value getBufferPart(Value buffer, ArrayRef<OpFoldResult> leading, Value first,
                      OpFoldResult rows, OpFoldResult columns) {
    SmallVector<OpFoldResult> offsets(leading),
        extents(leading.size(), builder.getIndexAttr(1));
    offsets.append({OpFoldResult(first), builder.getIndexAttr(0)});
    extents.append({rows, columns});
    SmallVector<OpFoldResult> strides(offsets.size(), builder.getIndexAttr(1));
    SmallVector<int64_t> shape = {
        getConstantIntValue(rows).value_or(ShapedType::kDynamic),
        getConstantIntValue(columns).value_or(ShapedType::kDynamic)};
    auto type = cast<MemRefType>(memref::SubViewOp::inferRankReducedResultType(
        shape, cast<MemRefType>(buffer.getType()), offsets, extents, strides));
    return memref::SubViewOp::create(builder, loc, type, buffer, offsets,
                                     extents, strides);
  }

  using BodyFn = llvm::function_ref<Value(OpBuilder &, Location, ValueRange)>;

  /// Emits `to[map(x, y)] = body(from[map(x, y)], to)`.
  void emitMap(ValueRange from, Value to, ArrayRef<AffineMap> maps,
               BodyFn body) {
    SmallVector<utils::IteratorType> iterators(2,
                                               utils::IteratorType::parallel);
    linalg::GenericOp::create(builder, loc, TypeRange(), from, to, maps,
                              iterators,
                              [&](OpBuilder &b, Location l, ValueRange in) {
                                linalg::YieldOp::create(b, l, body(b, l, in));
                              });
  }

  AffineMap identity() { return builder.getMultiDimIdentityMap(2); }

  /// Emits the block of the result that begins at `rowBegin`, `columnBegin`.
  void emitBlock(Value rowBegin, Value columnBegin) {
    Value left = allocate({kBlockRows, depth});
    Value right = allocate({blockColumns / panel, depth, panel});
    Value tile = allocate({tileRows, panel});
    OpFoldResult rows = getRest(sizes[c.row], rowBegin, kBlockRows);
    OpFoldResult columns = getRest(sizes[c.column], columnBegin, blockColumns);

    if (fillValue) {
      auto [part, map] = getPart(*c.result, {c.row, rowBegin, rows},
                                 {c.column, columnBegin, columns});
      emitMap(
          {}, part, map, [&](OpBuilder &b, Location l, ValueRange) -> Value {
            return arith::ConstantOp::create(b, l, cast<TypedAttr>(fillValue));
          });
    }
    emitSums(0, [&] {
      inLoop(sizes[c.sum], depth, [&](Value sumBegin) {
        OpFoldResult sums = getRest(sizes[c.sum], sumBegin, depth);
        packLeft(left, rowBegin, rows, sumBegin, sums);
        packRight(right, columnBegin, columns, sumBegin, sums);
        inLoop(columns, panel, [&](Value column) {
          auto emitRows = [&](bool skipsZeros) {
            inLoop(rows, tileRows, [&](Value row) {
              emitTile(left, right, tile, row, column, sums, skipsZeros);
              addTile(tile, rowBegin, row, rows, columnBegin, column, columns);
            });
          };
          if (!c.skipsZeros)
            return emitRows(false);
          // Finite numbers times 0 add nothing: no test is needed.
          auto branch = scf::IfOp::create(builder, loc,
                                          hasNumbersOnly(right, column, sums),
                                          /*withElseRegion=*/true);
          OpBuilder::InsertionGuard guard(builder);
          builder.setInsertionPointToStart(branch.thenBlock());
          emitRows(false);
          builder.setInsertionPointToStart(branch.elseBlock());
          emitRows(true);
        });
      });
    });
  }

  /// Returns true, as a value, if a panel has no NaN and no infinity.
  Value hasNumbersOnly(Value right, Value column, OpFoldResult sums) {
    auto vectorType = VectorType::get(lanes, c.type);
    Value zero = arith::ConstantOp::create(builder, loc,
                                           builder.getZeroAttr(vectorType));
    Value rightPanel = index(getPanel(column));
    auto loop = scf::ForOp::create(builder, loc, constant(0), index(sums),
                                   constant(1), zero);
    {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToEnd(loop.getBody());
      Value sum = loop.getRegionIterArg(0);
      for (int64_t i = 0; i < kPanelVectors; ++i) {
        Value part = vector::LoadOp::create(builder, loc, vectorType, right,
                                            ValueRange{rightPanel,
                                                       loop.getInductionVar(),
                                                       constant(i * lanes)});
        sum = vector::FMAOp::create(builder, loc, part, zero, sum);
      }
      scf::YieldOp::create(builder, loc, sum);
    }
    Value total = vector::ReductionOp::create(
        builder, loc, vector::CombiningKind::ADD, loop.getResult(0));
    return arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::ORD, total,
                                 total);
  }

  void emitSums(unsigned position, llvm::function_ref<void()> body) {
    if (position == c.outerSums.size())
      return body();
    unsigned dim = c.outerSums[position];
    inLoop(sizes[dim], 1, [&](Value iv) {
      ivs[dim] = iv;
      emitSums(position + 1, body);
    });
  }

  void packLeft(Value buffer, Value rowBegin, OpFoldResult rows, Value sumBegin,
                OpFoldResult sums) {
    auto [part, map] =
        getPart(*c.left, {c.row, rowBegin, rows}, {c.sum, sumBegin, sums});
    Value packed = getBufferPart(buffer, {}, constant(0), rows, sums);
    emitMap(part, packed, {map, identity()},
            [&](OpBuilder &b, Location l, ValueRange in) {
              return convertFloats(b, l, in[0], c.type);
            });
  }

  void packRight(Value buffer, Value columnBegin, OpFoldResult columns,
                 Value sumBegin, OpFoldResult sums) {
    inLoop(columns, panel, [&](Value column) {
      Value begin = add(columnBegin, column);
      OpFoldResult width = getRest(columns, column, panel);
      auto [part, map] =
          getPart(*c.right, {c.sum, sumBegin, sums}, {c.column, begin, width});
      Value packed =
          getBufferPart(buffer, getPanel(column), constant(0), sums, width);
      emitMap(part, packed, {map, identity()},
              [&](OpBuilder &b, Location l, ValueRange in) {
                return convertFloats(b, l, in[0], c.type);
              });
    });
  }

  Value add(Value a, Value b) {
    if (matchPattern(b, m_Zero()))
      return a;
    return arith::AddIOp::create(builder, loc, a, b);
  }

  /// Returns the number of the panel that begins at `column` of the block.
  OpFoldResult getPanel(Value column) {
    AffineExpr expr = builder.getAffineSymbolExpr(0).floorDiv(panel);
    return affine::makeComposedFoldedAffineApply(
        builder, loc, AffineMap::get(0, 1, expr), OpFoldResult(column));
  }

  /// Emits the products of the left block's rows from `row` on with a panel,
  /// summed in registers, then in `tile`. Rows beyond the block's are of no
  /// use, but exist.
  void emitTile(Value left, Value right, Value tile, Value row, Value column,
                OpFoldResult sums, bool skipsZeros) {
    auto vectorType = VectorType::get(lanes, c.type);
    Value zero = arith::ConstantOp::create(builder, loc,
                                           builder.getZeroAttr(vectorType));
    Value rightPanel = index(getPanel(column));
    SmallVector<Value> columnOffsets;
    for (int64_t i = 0; i < kPanelVectors; ++i)
      columnOffsets.push_back(constant(i * lanes));
    // All rows use one address: that of the first row, plus constant distances.
    Value leftRows =
        getBufferPart(left, {}, row, builder.getIndexAttr(tileRows),
                      builder.getIndexAttr(depth));
    SmallVector<Value> rowNumbers;
    for (int64_t i = 0; i < tileRows; ++i)
      rowNumbers.push_back(constant(i));

    SmallVector<Value> sumsSoFar(tileRows * kPanelVectors, zero);
    auto loop = scf::ForOp::create(builder, loc, constant(0), index(sums),
                                   constant(1), sumsSoFar);
    {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToEnd(loop.getBody());
      Value k = loop.getInductionVar();
      SmallVector<Value> rightVectors, next;
      for (Value offset : columnOffsets)
        rightVectors.push_back(
            vector::LoadOp::create(builder, loc, vectorType, right,
                                   ValueRange{rightPanel, k, offset}));
      for (int64_t i = 0; i < tileRows; ++i) {
        Value element = memref::LoadOp::create(builder, loc, leftRows,
                                               ValueRange{rowNumbers[i], k});
        Value repeated =
            vector::BroadcastOp::create(builder, loc, vectorType, element);
        Value isZero;
        if (skipsZeros)
          isZero = arith::CmpFOp::create(
              builder, loc, arith::CmpFPredicate::OEQ, element,
              arith::ConstantOp::create(builder, loc,
                                        builder.getZeroAttr(c.type)));
        for (int64_t j = 0; j < kPanelVectors; ++j) {
          Value factor = rightVectors[j];
          if (isZero)
            factor =
                arith::SelectOp::create(builder, loc, isZero, zero, factor);
          next.push_back(vector::FMAOp::create(
              builder, loc, repeated, factor,
              loop.getRegionIterArgs()[i * kPanelVectors + j]));
        }
      }
      scf::YieldOp::create(builder, loc, next);
    }
    for (int64_t i = 0; i < tileRows; ++i)
      for (int64_t j = 0; j < kPanelVectors; ++j)
        vector::StoreOp::create(builder, loc,
                                loop.getResult(i * kPanelVectors + j), tile,
                                ValueRange{rowNumbers[i], columnOffsets[j]});
  }

  /// Adds the part of `tile` that exists to the result.
  void addTile(Value tile, Value rowBegin, Value row, OpFoldResult rows,
               Value columnBegin, Value column, OpFoldResult columns) {
    OpFoldResult height = getRest(rows, row, tileRows);
    OpFoldResult width = getRest(columns, column, panel);
    auto [part, map] = getPart(*c.result, {c.row, add(rowBegin, row), height},
                               {c.column, add(columnBegin, column), width});
    Value valid = getBufferPart(tile, {}, constant(0), height, width);
    Type element = getElementTypeOrSelf(part);
    emitMap(valid, part, {identity(), map},
            [&](OpBuilder &b, Location l, ValueRange in) {
              Value sum = arith::AddFOp::create(
                  b, l, in[0], convertFloats(b, l, in[1], c.type));
              return convertFloats(b, l, sum, element);
            });
  }

  Contraction c;
  OpBuilder builder;
  Location loc;
  /// Elements of a vector; rows of a tile in registers; columns of a panel;
  /// summands of a block.
  int64_t lanes, tileRows, panel, depth;
  int64_t blockColumns;
  SmallVector<OpFoldResult> sizes;
  /// The index of every loop that is not in a block.
  SmallVector<Value> ivs;
  /// The value that fills the result before, if that is known.
  Attribute fillValue;
};

struct ContractionToVector final
    : impl::ContractionToVectorBase<ContractionToVector> {
  using ContractionToVectorBase::ContractionToVectorBase;

  void runOnOperation() override {
    machine::TargetAttr target = machine::getTarget(getOperation());
    int64_t bytes = vectorBytes;
    if (bytes == 0)
      bytes = target ? target.getVectorBytes() : 64;
    int64_t registers = vectorRegisters;
    if (registers == 0)
      registers = target ? target.getVectorRegisters() : 32;
    SmallVector<Contraction> contractions;
    getOperation()->walk([&](linalg::GenericOp op) {
      if (std::optional<Contraction> found = Contraction::match(op))
        contractions.push_back(*found);
    });
    for (const Contraction &contraction : contractions) {
      ContractionEmitter(contraction, bytes, registers).emit();
      linalg::GenericOp op = contraction.op;
      op.erase();
      ++numConverted;
    }
  }
};
} // namespace
} // namespace fovea
