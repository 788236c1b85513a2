//===- StepScores.h - The scores of a step ----------------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tile ops that compute the scores of one tile of keys, as fragments: products,
// score and mask regions, and what these read of captured tensors.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_ATTNTOTILE_STEPSCORES_H
#define FOVEA_LIB_CONVERSION_ATTNTOTILE_STEPSCORES_H

#include "FragmentMath.h"
#include "KeyBounds.h"
#include "PositionTerm.h"
#include "ScoreTile.h"

#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

namespace fovea {

/// Rows and columns of the tiles that products take are multiples of this
/// number.
inline constexpr int64_t kProductMultiple = 16;

/// The sizes of the tiles of an attention program, padded to what products
/// take.
struct TileSizes {
  int64_t queries;
  int64_t keys;
  int64_t headDim;
  int64_t valueDim;
  /// Element types of the operands of products, and of the running values.
  mlir::FloatType element;
  mlir::FloatType accumulation;
  /// The warps that share the keys of a row of scores.
  int64_t keyWarps = 1;

  bool usesTensorCores() const { return element.getIntOrFloatBitWidth() == 16; }
  tile::FragmentType getScores() const;
  /// Probabilities as the left operand of the product with values.
  tile::FragmentType getWeights() const;
  tile::FragmentType getOutput() const;
  tile::FragmentType getRows() const;
  /// Sums of rows; for tensor cores, which leave no time to exchange them in
  /// each step, in four parts, of the columns that a thread has: their numbers
  /// divided by two are equal modulo four. Warps that share keys have a sum
  /// each.
  tile::FragmentType getSums() const;
};

/// The unit of the numbers `x` that fragments hold for scores: a score is `unit
/// * factor * x`.
struct ScoreUnit {
  /// Returns the unit for attention with this factor; `score` may be empty.
  /// Without a region, products stay as they are if the factor is positive and
  /// neither tiny nor huge.
  static ScoreUnit get(const llvm::APFloat &scale, mlir::Region &score);
  /// Returns the unit for `op`: also the number by which its score region
  /// multiplies at last, which then costs nothing. It is a constant, as in a
  /// soft cap, or a scalar from outside of the region, as a scale that is an
  /// operand, which is clamped to positive numbers neither tiny nor huge.
  static ScoreUnit get(attn::OnlineAttentionOp op);

  double unit;
  /// True if the factor has yet to be multiplied: products are `x`.
  bool isRaw;
  /// Null: 1.
  mlir::Value factor = {};

  /// Returns the unit in base 2, without the factor.
  double getBase2() const;
  /// Returns `number * factor` as a number of type `type`.
  mlir::Value emitProduct(mlir::OpBuilder &builder, mlir::Location loc,
                          mlir::FloatType type, double number) const;
};

/// One tile of keys, in the values of the program.
struct KeyStep {
  attn::OnlineAttentionOp op;
  ScoreTile tile;
  /// A factor of the products with keys for each row; null: none.
  mlir::Value factors;
  /// The type of the numbers whose bits keys or values are, where products
  /// widen them.
  mlir::FloatType from;
  /// Functions that load the tile of keys and of values.
  std::function<mlir::Value(mlir::OpBuilder &)> loadKeys, loadValues;
  /// The function that loads what a region reads of a captured tensor for the
  /// whole tile.
  std::function<CapturedTile(mlir::OpBuilder &, const TileRead &)> loadCapture;
  /// The function that asks whether the mask may remove keys for a row of the
  /// warp, where what it reads of rows says so; else null.
  std::function<mlir::OpFoldResult(mlir::OpBuilder &)> arePartial;
  /// True if the loop visits the last keys first, of which a tile may be short.
  bool isLastFirst = false;
};

/// Returns `scores`, or where `isNeeded` what `map` emits to mask them by a
/// tile: by `tile`, whose clamps, and test of keys that exist, only a tile that
/// `isShort` of keys needs, or by the same without them.
mlir::Value
chooseMasked(FragmentMath &math, const ScoreTile &tile, mlir::Region &mask,
             mlir::Value scores, mlir::OpFoldResult isNeeded,
             mlir::OpFoldResult isShort,
             llvm::function_ref<mlir::Value(const ScoreTile &tile)> map);

/// Emits the scores of a step. A term in the key's position may be left out of
/// them, for the exponent to add.
class StepScores {
public:
  StepScores(mlir::OpBuilder &builder, const TileSizes &sizes,
             const KeyStep &step);

protected:
  /// Returns the scores of the tile `query`, as fragments hold them: without
  /// the term, where there is one.
  mlir::Value scores(mlir::Value query);
  /// Returns `a` times `b`, keys or values.
  tile::MmaOp multiply(tile::FragmentType type, mlir::Value a, mlir::Value b,
                       mlir::Value acc, bool transposeB);
  /// Returns what the score region yields for the numbers that are held.
  mlir::Value whole(mlir::Value scores);
  /// Emits a value of the score region for the score at `coordinates` of
  /// `tile`.
  mlir::Value emitScore(mlir::OpBuilder &body, const ScoreTile &tile,
                        mlir::Value scaled, mlir::ValueRange coordinates,
                        mlir::Value value, const mlir::IRMapping &known = {});
  /// Tensor cores leave time for one instruction a score.
  bool isFused() const { return sizes.usesTensorCores(); }
  /// Returns true if a step subtracts the maximum of earlier ones.
  bool isStale();
  mlir::Value constant(mlir::OpBuilder &body, double value) {
    return mlir::arith::ConstantOp::create(
        body, loc, body.getFloatAttr(sizes.accumulation, value));
  }
  /// Returns what turns fragments' numbers into scores to the base 2.
  mlir::Value base2(mlir::OpBuilder &body, double sign = 1.0) {
    return unit.emitProduct(body, loc, sizes.accumulation,
                            sign * unit.getBase2());
  }

  mlir::OpBuilder &builder;
  attn::OnlineAttentionOp op;
  mlir::Location loc;
  FragmentMath math;
  const TileSizes &sizes;
  const KeyStep &step;
  ScoreUnit unit;
  /// The term that is added to scores in the exponent only.
  std::optional<PositionTerm> term;
  /// What the term's position is multiplied by in each row.
  mlir::Value slopes;
  /// The unit of the numbers that fragments of scores hold: without a term,
  /// that of maxima.
  ScoreUnit heldUnit;

private:
  mlir::Value modified(mlir::Value products);
  mlir::Value masked(mlir::Value scores);
  /// Returns, for each row of a tile, how many keys there are from its first
  /// one to the last that the mask keeps by `bounds`, and, where these have a
  /// first one, how many lie in front of it: 32 bits each.
  llvm::SmallVector<mlir::Value> emitLimits(const ScoreTile &tile,
                                            const KeyBounds &bounds);
  /// Returns true if an element is kept whose row has these limits.
  mlir::OpFoldResult isKept(mlir::OpBuilder &body, const ScoreTile &tile,
                            mlir::ValueRange coordinates,
                            const KeyBounds &bounds, mlir::ValueRange limits,
                            mlir::ValueRange read);
  mlir::Value cleared(mlir::Value scores, int64_t queries);
  void separateTerm();
  mlir::Value getSlopes();
  std::optional<llvm::SmallVector<CapturedTile>>
  loadCaptures(mlir::Region &region);
  llvm::SmallVector<mlir::Value>
  readCaptures(llvm::ArrayRef<CapturedTile> tiles);

  /// The value of the score region that fragments of scores hold: without a
  /// term, what the region yields.
  mlir::Value held;
};

} // namespace fovea

#endif // FOVEA_LIB_CONVERSION_ATTNTOTILE_STEPSCORES_H
