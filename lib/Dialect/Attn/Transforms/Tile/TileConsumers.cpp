//===- TileConsumers.cpp - Consumers of attention, per tile ---------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileConsumers.h"
#include "ReaderCost.h"
#include "TilePacked.h"
#include "TileTransposes.h"

#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Support/DebugLog.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/TilingInterface.h"
#include "mlir/Transforms/RegionUtils.h"

#define DEBUG_TYPE "attn-tile"

using namespace mlir;
using namespace fovea::attn;
using Fold = OpFoldResult;

//===----------------------------------------------------------------------===//
// Loops with other results
//===----------------------------------------------------------------------===//

tensor::ParallelInsertSliceOp fovea::attn::insertionOf(scf::ForallOp loop,
                                                       unsigned number) {
  tensor::ParallelInsertSliceOp found;
  for (Operation *user : loop.getRegionIterArgs()[number].getUsers())
    if (auto insertion = dyn_cast<tensor::ParallelInsertSliceOp>(user)) {
      if (found)
        return nullptr;
      found = insertion;
    }
  return found;
}

/// Replaces `loop` by one with the results `kept` and further results, whose
/// initial values are `added`.
static scf::ForallOp withResults(RewriterBase &rewriter, scf::ForallOp loop,
                                 ArrayRef<unsigned> kept, ValueRange added) {
  SmallVector<Value> inits;
  for (unsigned number : kept)
    inits.push_back(loop.getOutputs()[number]);
  llvm::append_range(inits, added);
  rewriter.setInsertionPoint(loop);
  auto replacement = scf::ForallOp::create(
      rewriter, loop.getLoc(), loop.getMixedLowerBound(),
      loop.getMixedUpperBound(), loop.getMixedStep(), inits, loop.getMapping());
  replacement->setDiscardableAttrs(loop->getDiscardableAttrDictionary());

  SmallVector<Value> arguments(replacement.getInductionVars());
  arguments.append(loop.getOutputs().begin(), loop.getOutputs().end());
  for (auto [place, number] : llvm::enumerate(kept)) {
    arguments[loop.getRank() + number] = replacement.getRegionIterArgs()[place];
    rewriter.replaceAllUsesWith(loop.getResult(number),
                                replacement.getResult(place));
  }
  for (unsigned number : llvm::seq(loop.getNumResults()))
    if (!llvm::is_contained(kept, number))
      rewriter.eraseOp(insertionOf(loop, number));
  rewriter.eraseOp(replacement.getTerminator());
  rewriter.mergeBlocks(loop.getBody(), replacement.getBody(), arguments);
  rewriter.eraseOp(loop);
  return replacement;
}

/// Replaces sizes of the loop's results by those of its destinations.
static void replaceSizes(RewriterBase &rewriter, scf::ForallOp loop) {
  for (auto [result, init] :
       llvm::zip_equal(loop.getResults(), loop.getOutputs()))
    for (Operation *user : llvm::make_early_inc_range(result.getUsers()))
      if (isa<tensor::DimOp>(user))
        rewriter.modifyOpInPlace(user, [&] { user->setOperand(0, init); });
}

//===----------------------------------------------------------------------===//
// Choice of ops to compute per tile
//===----------------------------------------------------------------------===//

bool fovea::attn::isElementwiseOrRowSum(linalg::LinalgOp op) {
  if (!op.hasPureTensorSemantics())
    return false;
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  bool coversAll = false;
  for (OpOperand &operand : op->getOpOperands()) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    coversAll |=
        map.isProjectedPermutation() && map.getNumResults() == op.getNumLoops();
    if (!op.isDpsInit(&operand))
      continue;
    for (auto [loop, iterator] : llvm::enumerate(iterators))
      if (!map.isProjectedPermutation() ||
          map.isFunctionOfDim(loop) != linalg::isParallelIterator(iterator))
        return false;
  }
  return coversAll;
}

/// Returns true for a type whose elements registers hold.
static bool isRegisterType(Type type) {
  return isa<IntegerType, Float16Type, BFloat16Type, Float32Type, Float64Type>(
      getElementTypeOrSelf(type));
}

std::optional<StringRef>
fovea::attn::findRegisterObjection(Operation *op,
                                   function_ref<bool(Value)> isReplaced) {
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  if (!linalgOp || !isElementwiseOrRowSum(linalgOp))
    return "it is no elementwise op";
  if (linalgOp.getNumReductionLoops())
    return "it sums over what several threads have";
  for (OpOperand &operand : op->getOpOperands()) {
    if (!linalgOp.getMatchingIndexingMap(&operand).isProjectedPermutation())
      return "it reads elements at other places";
    if (!isRegisterType(operand.get().getType()))
      return "it has a type of elements that programs of blocks do not have";
    if (!linalgOp.isDpsInit(&operand))
      continue;
    if (linalgOp.payloadUsesValueFromOperand(&operand))
      return "it reads what it writes to";
    // A launch keeps what it does not write, for which there would be a copy.
    Value init = operand.get();
    if (isReplaced && isReplaced(init))
      continue;
    while (auto cast = init.getDefiningOp<tensor::CastOp>())
      init = cast.getSource();
    if (!init.getDefiningOp<tensor::EmptyOp>())
      return "it writes to a tensor that has elements";
  }
  for (Type type : op->getResultTypes())
    if (!isa<FloatType>(getElementTypeOrSelf(type)))
      return "it makes other numbers than floats";
  // What reads a tensor at places that it computes needs places that exist.
  for (Operation &nested : *linalgOp.getBlock())
    if (nested.getNumRegions() || !isMemoryEffectFree(&nested) ||
        isa<tensor::ExtractOp>(nested))
      return "its region does more than compute from elements and indices";
  return std::nullopt;
}

namespace {
/// An op that reads tiles of a loop's results.
class Consumer {
public:
  Consumer(scf::ForallOp loop, Operation *op, const ConsumerFilter &filter)
      : loop(loop), op(dyn_cast<TilingInterface>(op)), filter(filter) {}

  /// Returns true if it can be computed per tile. May add IR that is not used.
  bool prepare(RewriterBase &rewriter);
  /// Computes it per tile; returns the new loop. Appends slices of further
  /// operands.
  scf::ForallOp fuse(RewriterBase &rewriter,
                     SmallVectorImpl<tensor::ExtractSliceOp> &slices);

private:
  bool freeDestinations(RewriterBase &rewriter);
  bool moveOperands(RewriterBase &rewriter);
  bool findTile(RewriterBase &rewriter);
  bool hasTilesInRegisters() const;
  bool isOfEachTile(unsigned operand) const;

  scf::ForallOp loop;
  TilingInterface op;
  const ConsumerFilter &filter;
  /// The op on the initial values of the loop's results, before the loop.
  TilingInterface whole;
  /// The operands that are results of the loop, and their tiles.
  SmallVector<unsigned> operands;
  SmallVector<Value> tiles;
  /// The tile of its iteration domain, and the positions of its results' tiles.
  SmallVector<Fold> offsets, sizes;
};
} // namespace

/// Returns the reason for which `reader` of results of `loop` is not computed
/// on its tiles in registers, or nullopt if it may be.
static std::optional<StringRef> findObjection(scf::ForallOp loop,
                                              Operation *reader,
                                              const ConsumerFilter &filter) {
  if (!filter.registerFeatures)
    return std::nullopt;
  if (auto objection = findRegisterObjection(reader))
    return objection;
  if (filter.all)
    return std::nullopt;
  return findCostObjection(loop, cast<linalg::LinalgOp>(reader),
                           filter.threadTile, filter.exactFunctions);
}

bool Consumer::prepare(RewriterBase &rewriter) {
  if (!op || op->getBlock() != loop->getBlock() ||
      !llvm::all_of(op->getResultTypes(), llvm::IsaPred<RankedTensorType>))
    return false;
  bool isRowOp = isa<ScaleOp, LayerNormOp, RMSNormOp, RopeOp, ResidualAddOp,
                     ElementwiseOp>(op);
  auto linalgOp = dyn_cast<linalg::LinalgOp>(*op);
  if (!isRowOp && !(linalgOp && isElementwiseOrRowSum(linalgOp)))
    return false;
  return freeDestinations(rewriter) && !findObjection(loop, op, filter) &&
         moveOperands(rewriter) && findTile(rewriter);
}

/// Writes to a new tensor instead of a result of the loop of which only the
/// shape matters.
bool Consumer::freeDestinations(RewriterBase &rewriter) {
  auto linalgOp = dyn_cast<linalg::LinalgOp>(*op);
  if (!linalgOp)
    return true;
  for (OpOperand &init : linalgOp.getDpsInitsMutable()) {
    auto result = dyn_cast<OpResult>(init.get());
    if (!result || result.getOwner() != loop)
      continue;
    if (linalgOp.payloadUsesValueFromOperand(&init))
      return false;
    rewriter.setInsertionPoint(loop);
    Value empty = tensor::EmptyOp::create(
        rewriter, op.getLoc(),
        tensor::getMixedSizes(rewriter, op.getLoc(),
                              loop.getOutputs()[result.getResultNumber()]),
        getElementTypeOrSelf(result));
    if (empty.getType() != result.getType())
      empty = tensor::CastOp::create(rewriter, op.getLoc(), result.getType(),
                                     empty);
    rewriter.modifyOpInPlace(op, [&] { init.set(empty); });
  }
  return true;
}

/// Computes all other operands of the op before the loop.
bool Consumer::moveOperands(RewriterBase &rewriter) {
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  SmallVector<Value> values = captured.takeVector();
  auto isOfLoop = [&](Value value) { return value.getDefiningOp() == loop; };
  if (llvm::any_of(values, isOfLoop))
    return false;
  for (OpOperand &operand : op->getOpOperands()) {
    if (isOfLoop(operand.get()))
      operands.push_back(operand.getOperandNumber());
    else
      values.push_back(operand.get());
  }
  return succeeded(moveValueDefinitions(rewriter, values, loop));
}

bool Consumer::findTile(RewriterBase &rewriter) {
  SmallVector<SmallVector<Fold>> allOffsets, allSizes;
  IRMapping mapping;
  for (unsigned operand : operands) {
    auto result = cast<OpResult>(op->getOperand(operand));
    unsigned number = result.getResultNumber();
    tensor::ParallelInsertSliceOp insertion = insertionOf(loop, number);
    rewriter.setInsertionPoint(loop.getTerminator());
    Value tile = insertion ? getWholeTile(rewriter, insertion) : Value();
    if (!tile || !insertion.hasUnitStride())
      return false;
    tiles.push_back(tile);
    allOffsets.push_back(insertion.getMixedOffsets());
    allSizes.push_back(insertion.getMixedSizes());
    mapping.map(result, loop.getOutputs()[number]);
  }
  rewriter.setInsertionPoint(loop.getTerminator());
  whole = cast<TilingInterface>(rewriter.clone(*op, mapping));
  if (succeeded(whole.getIterationDomainTileFromOperandTiles(
          rewriter, operands, allOffsets, allSizes, offsets, sizes)) &&
      llvm::all_of(llvm::zip_equal(whole.getLoopIteratorTypes(), offsets),
                   [](auto loop) {
                     auto [iterator, offset] = loop;
                     return iterator == utils::IteratorType::parallel ||
                            isZeroInteger(offset);
                   }) &&
      (!filter.registerFeatures || hasTilesInRegisters()))
    return true;
  rewriter.eraseOp(whole);
  return false;
}

/// Returns true if tiles of the op have the rows, or the rows and features, of
/// the tiles that it reads, in that order, or repeat a number of each row for
/// all features.
bool Consumer::hasTilesInRegisters() const {
  auto linalgOp = cast<linalg::LinalgOp>(*op);
  // The long loops of the operand with the most of them.
  SmallVector<unsigned> known;
  for (unsigned number : operands) {
    AffineMap map = linalgOp.getMatchingIndexingMap(&op->getOpOperand(number));
    SmallVector<unsigned> ofOperand;
    for (AffineExpr expr : map.getResults())
      if (unsigned loop = cast<AffineDimExpr>(expr).getPosition();
          !isOneInteger(sizes[loop]))
        ofOperand.push_back(loop);
    if (ofOperand.size() > known.size())
      known = ofOperand;
  }
  for (auto [loop, size] : llvm::enumerate(sizes)) {
    if (isOneInteger(size) || llvm::is_contained(known, loop))
      continue;
    if (known.size() != 1 ||
        getConstantIntValue(size) != filter.registerFeatures)
      return false;
    known.push_back(loop);
  }
  return llvm::all_of(linalgOp.getDpsInitsMutable(), [&](OpOperand &init) {
    SmallVector<unsigned> ofResult;
    for (AffineExpr expr : linalgOp.getMatchingIndexingMap(&init).getResults())
      if (unsigned loop = cast<AffineDimExpr>(expr).getPosition();
          llvm::is_contained(known, loop))
        ofResult.push_back(loop);
    return ofResult == known;
  });
}

/// Returns true if each tile reads another part of an operand.
bool Consumer::isOfEachTile(unsigned operand) const {
  auto linalgOp = dyn_cast<linalg::LinalgOp>(*op);
  if (!linalgOp)
    return cast<RankedTensorType>(op->getOperand(operand).getType())
               .getRank() ==
           cast<RankedTensorType>(op->getResult(0).getType()).getRank();
  AffineMap map = linalgOp.getMatchingIndexingMap(&op->getOpOperand(operand));
  for (auto [loop, offset] : llvm::enumerate(offsets))
    if (!isZeroInteger(offset) && !map.isFunctionOfDim(loop))
      return false;
  return true;
}

scf::ForallOp Consumer::fuse(RewriterBase &rewriter,
                             SmallVectorImpl<tensor::ExtractSliceOp> &slices) {
  Location loc = op.getLoc();
  // The tensors that the results are written to.
  auto destination = dyn_cast<DestinationStyleOpInterface>(*op);
  SmallVector<Value> inits;
  rewriter.setInsertionPoint(loop);
  if (destination)
    llvm::append_range(inits, destination.getDpsInits());
  else
    inits.push_back(tensor::EmptyOp::create(
        rewriter, loc,
        tensor::getMixedSizes(rewriter, loc,
                              whole->getOperand(operands.front())),
        getElementTypeOrSelf(op->getResult(0))));

  rewriter.setInsertionPoint(whole);
  FailureOr<TilingResult> tiled =
      whole.getTiledImplementation(rewriter, offsets, sizes);
  assert(succeeded(tiled) && tiled->tiledOps.size() == 1 &&
         "ops on rows and linalg ops are tiled to one op");
  Operation *tile = tiled->tiledOps.front();
  for (auto [operand, value] : llvm::zip_equal(operands, tiles)) {
    Type type = tile->getOperand(operand).getType();
    rewriter.setInsertionPoint(tile);
    if (value.getType() != type)
      value = tensor::CastOp::create(rewriter, loc, type, value);
    tile->setOperand(operand, value);
  }

  for (OpOperand &operand : tile->getOpOperands()) {
    unsigned number = operand.getOperandNumber();
    auto slice = operand.get().getDefiningOp<tensor::ExtractSliceOp>();
    bool isInit =
        destination && number >= tile->getNumOperands() - inits.size();
    if (slice && !isInit && isOfEachTile(number))
      slices.push_back(slice);
  }

  SmallVector<tensor::ParallelInsertSliceOp> insertions;
  // For now, insert into the tensors that the results are written to.
  for (auto [place, value, init] : llvm::enumerate(tiled->tiledValues, inits)) {
    SmallVector<Fold> at, extent;
    rewriter.setInsertionPoint(loop.getTerminator());
    LogicalResult hasPlace = whole.getResultTilePosition(
        rewriter, place, offsets, sizes, at, extent);
    assert(succeeded(hasPlace) && "linalg and row ops know their places");
    (void)hasPlace;
    SmallVector<Fold> ones(at.size(), rewriter.getIndexAttr(1));
    rewriter.setInsertionPointToEnd(loop.getTerminator().getBody());
    insertions.push_back(tensor::ParallelInsertSliceOp::create(
        rewriter, loc, value, init, at, extent, ones));
  }

  unsigned first = loop.getNumResults();
  loop = withResults(rewriter, loop, llvm::to_vector(llvm::seq(first)), inits);
  for (auto [place, insertion] : llvm::enumerate(insertions)) {
    Value output = loop.getRegionIterArgs()[first + place];
    if (destination) {
      OpOperand *init =
          cast<DestinationStyleOpInterface>(tile).getDpsInitOperand(place);
      if (auto slice = init->get().getDefiningOp<tensor::ExtractSliceOp>())
        slice.getSourceMutable().assign(output);
    }
    insertion.getDestMutable().assign(output);
    rewriter.replaceAllUsesWith(op->getResult(place),
                                loop.getResult(first + place));
  }
  rewriter.eraseOp(whole);
  rewriter.eraseOp(op);
  return loop;
}

//===----------------------------------------------------------------------===//
// All of them
//===----------------------------------------------------------------------===//

/// Moves one reader of a result into the loop, if any can be moved.
static bool fuseOne(RewriterBase &rewriter, FusedConsumers &fused,
                    const ConsumerFilter &filter) {
  replaceSizes(rewriter, fused.loop);
  if (fuseScatter(rewriter, fused.loop)) {
    ++fused.count;
    return true;
  }
  for (OpResult result : fused.loop.getResults()) {
    if (fuseTransposeOfResult(rewriter, fused.loop, result.getResultNumber()))
      return true;
    for (Operation *user : result.getUsers()) {
      if (filter.isWanted && !filter.isWanted(user))
        continue;
      Consumer consumer(fused.loop, user, filter);
      if (!consumer.prepare(rewriter))
        continue;
      fused.loop = consumer.fuse(rewriter, fused.slices);
      ++fused.count;
      return true;
    }
  }
  return false;
}

/// Says why ops that read the results of `loop` read them behind it.
static void logReaders(scf::ForallOp loop, const ConsumerFilter &filter) {
  for (Operation *reader : loop->getUsers()) {
    if (reader->hasTrait<OpTrait::IsTerminator>() || isa<tensor::DimOp>(reader))
      continue;
    std::optional<StringRef> objection = findObjection(loop, reader, filter);
    LDBG() << "  " << reader->getName() << " at " << reader->getLoc()
           << " stays behind the loop: "
           << objection.value_or("its tiles are not those of what it reads");
  }
}

FusedConsumers fovea::attn::fuseConsumers(RewriterBase &rewriter,
                                          scf::ForallOp loop,
                                          const ConsumerFilter &filter) {
  FusedConsumers fused{loop, 0, {}};
  while (fuseOne(rewriter, fused, filter))
    ;
  logReaders(fused.loop, filter);
  SmallVector<unsigned> kept;
  for (OpResult result : fused.loop.getResults())
    if (!result.use_empty() ||
        !insertionOf(fused.loop, result.getResultNumber()))
      kept.push_back(result.getResultNumber());
  if (!kept.empty() && kept.size() < fused.loop.getNumResults())
    fused.loop = withResults(rewriter, fused.loop, kept, {});
  return fused;
}

/// Returns true if `value` is attention's output, or computed from it element
/// by element.
static bool isOfOutput(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || isa<FinalizeOp>(op))
    return op;
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  return linalgOp && linalgOp.getNumReductionLoops() == 0 &&
         llvm::any_of(linalgOp.getDpsInputs(), isOfOutput);
}

void fovea::attn::populateCollapseOfOutputPatterns(
    RewritePatternSet &patterns) {
  linalg::populateFoldReshapeOpsByExpansionPatterns(
      patterns, [](OpOperand *operand) {
        auto collapse = operand->get().getDefiningOp<tensor::CollapseShapeOp>();
        auto consumer = dyn_cast<linalg::LinalgOp>(operand->getOwner());
        return collapse && consumer && consumer.getNumReductionLoops() == 0 &&
               isOfOutput(collapse.getSrc());
      });
}
