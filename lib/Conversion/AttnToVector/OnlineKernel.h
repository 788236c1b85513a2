//===- OnlineKernel.h - Parts of the online attention kernel ----*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One `attn.online_attention` on memrefs becomes, for each block of keys:
//
//   score product   P[key][query] = K * Q^T, and the maximum of each query
//   score region    P = score(P, b, h, i, j)
//   mask region     P = mask(b, h, i, j) ? P : -infinity, where partial
//   softmax         max', alpha = exp2(c * (max - max')),
//                   P = exp2(c * (P - max')), sum'
//   dropout         P = keep(b, h, i, j) ? P / (1 - p) : 0
//   value product   acc = acc * alpha + P^T * V
//
// where c is log2(e) behind a score region and else 1: without a region the
// packed queries have that factor, or, where they are packed in pairs, c is it.
// Differences come before it: the numbers that a region yields may be
// arbitrarily low, and stay finite. Queries lie in the lanes: a query's maximum
// and sum are one lane of a vector each, and no step needs a horizontal
// operation.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_ATTNTOVECTOR_ONLINEKERNEL_H
#define FOVEA_LIB_CONVERSION_ATTNTOVECTOR_ONLINEKERNEL_H

#include "ScoreBlock.h"
#include "VectorUnit.h"

#include "fovea/Dialect/Attn/IR/Attn.h"

#include "llvm/Support/MathExtras.h"

namespace fovea::attn {

/// The register tiles that one op's work is cut into.
struct TileShape {
  int64_t lanes;        ///< elements of one vector; divides `queries`
  int64_t queries;      ///< rows of the packed tile
  int64_t groupVectors; ///< vectors of queries that the score tile holds
  int64_t groups;       ///< groups in `queries`
  int64_t tileKeys;     ///< keys that the score tile holds
  int64_t blockKeys;    ///< keys of one block, at most
  int64_t tileRows;     ///< queries that the value tile holds
  int64_t valueVectors; ///< vectors of features that the value tile holds
  /// Queries whose scores have features in lanes; 0: queries are in lanes.
  int64_t fewQueries;

  int64_t groupQueries() const { return groupVectors * lanes; }
  /// Returns the lanes from a key's first score to the next one's, where scores
  /// of few queries lie in the lanes of one vector.
  int64_t fewStride() const { return llvm::PowerOf2Ceil(fewQueries); }

  static TileShape get(OnlineAttentionOp op, const VectorUnit &unit);
};

/// The memory of a `[B, H, S, D]` operand.
struct OperandRows {
  mlir::Value memory;
  /// [S]: what takes the place of a row's number; null where rows lie in order.
  mlir::Value rows = {};
};

/// The op at hand, its place, and its scratch memory.
struct OnlineKernel : ScoreBlock {
  OnlineAttentionOp op;
  TileShape shape;
  /// What few queries read.
  OperandRows key = {}, value = {};

  // The head at hand, as indices in the operands.
  mlir::Value batch = {}, head = {}, kvHead = {};
  mlir::Value firstKey = {}; ///< the block's place in the key operand
  mlir::Value firstQuery =
      {}; ///< the place of query 0 of the scores in the tile

  /// The number of the group at hand in the tile, and the tile's queries; null
  /// where groups do not overlap.
  mlir::Value group = {}, tileRows = {};

  /// What the softmax has yet to multiply scores with; null where they have the
  /// factor.
  mlir::Value factor = {};
  mlir::Value weights = {}; ///< [query][key] in bf16, for matrix tiles
  mlir::Value alpha = {};   ///< [query]: factor that rescales the accumulator
  /// True if the scores of few queries are `[1][key * fewStride + query]`.
  bool hasFlatScores = false;
  mlir::Value queryRows = {}; ///< [fewQueries][D]: queries as rows, or null
  mlir::Value keyBlock = {};  ///< [keys][D]: copied or converted keys, or null
  /// [blockKeys][features of a tile]: converted values, or null; for matrix
  /// tiles [blockKeys / 2][2 * Dv], pairs of keys.
  mlir::Value valueBlock = {};
};

/// Creates the memory of a kernel's scratch: static sizes on the stack of the
/// work item, large or dynamic ones on the heap around `op`.
mlir::Value allocateScratch(KernelBuilder &b, mlir::Operation *op,
                            llvm::ArrayRef<int64_t> shape, mlir::Type element,
                            mlir::ValueRange dynamicSizes = {});

/// Returns true if code that computes in `type` can read rows of a `[B, H, S,
/// D]` operand as they are: element type `type`, contiguous features.
bool isReadableAs(mlir::Value operand, mlir::Type type);

/// `vectors` vectors of a matrix's columns from `column` on; `mask`, if any,
/// says which lanes of the last one exist.
struct Columns {
  mlir::Value column;
  int64_t vectors;
  mlir::Value mask;

  /// Returns the mask of vector `v`, or null.
  mlir::Value maskOf(int64_t v) const {
    return v == vectors - 1 ? mask : mlir::Value();
  }
};

/// Builds `body` for `count` columns, at most `vectors` vectors at a time.
void forColumns(KernelBuilder &b, int64_t lanes, mlir::Value count,
                int64_t vectors, llvm::function_ref<void(Columns)> body);

/// Returns cycles and loads of one product in a row's `vectors` vectors of
/// columns, by register tiles of `rows` times `width` and one for the
/// remainder: two multiply-adds or loads a cycle, and four cycles until a sum
/// can be added to again.
std::pair<double, double> getProductCost(int64_t rows, int64_t width,
                                         int64_t vectors);

/// Loads a vector at `indices`; lanes outside of `mask`, if there is one, are
/// not accessed.
mlir::Value loadColumns(KernelBuilder &b, mlir::VectorType type,
                        mlir::Value memref, mlir::ValueRange indices,
                        mlir::Value mask);
void storeColumns(KernelBuilder &b, mlir::Value vector, mlir::Value memref,
                  mlir::ValueRange indices, mlir::Value mask);

/// Copies `count` features from `first` on of row `row` of head `(batch, head)`
/// to `target[targetRow, 0...]`, converted to the target's element type.
void emitCopyRow(KernelBuilder &b, int64_t lanes, mlir::Value source,
                 mlir::ValueRange row, mlir::Value first, mlir::Value count,
                 mlir::Value target, mlir::Value targetRow);

/// Allocates what products by matrix tiles need, and emits them: queries packed
/// in pairs, and keys, weights and values in bf16.
void allocateMatrixScratch(OnlineKernel &kernel);
/// Emits the packing of a block, and `emitGroup` for each group of queries as
/// if it were the tile.
void emitMatrixBlock(OnlineKernel &kernel,
                     llvm::function_ref<void()> emitGroup);
void emitMatrixScoreProduct(OnlineKernel &kernel);
void emitMatrixSoftmax(OnlineKernel &kernel);
void emitMatrixValueProduct(OnlineKernel &kernel);

/// Transposes a square of lanes.
llvm::SmallVector<mlir::Value>
emitTranspose(KernelBuilder &b, llvm::SmallVector<mlir::Value> rows);

/// Returns the number of queries of `op` if they are so few, at most half of
/// the lanes of the one vector that they are padded to, that features are in
/// lanes instead; else 0.
int64_t getFewQueries(OnlineAttentionOp op, int64_t lanes);

/// Emits the transpose of few queries to rows, in the order of vectors of keys.
void emitQueryRows(OnlineKernel &kernel);

/// Emits the scores of few queries with the `tileKeys` keys of the block from
/// `tile` on: for each key a vector, whose lanes are queries.
llvm::SmallVector<mlir::Value> emitFewScores(OnlineKernel &kernel,
                                             mlir::Value tile);

/// Returns true if keys are in lanes, too, from scores to weights: nothing but
/// the softmax changes them.
bool hasFlatScores(OnlineAttentionOp op, const TileShape &shape);
/// Emits the flat scores of few queries, and their maxima.
void emitFlatScores(OnlineKernel &kernel);
void emitFlatSoftmax(OnlineKernel &kernel);

/// The rows of an operand that a few queries read once, a line at a time: the
/// lines that rows are whole ones of, or single vectors.
struct LineReader {
  /// `vector` is the type that numbers are widened to.
  LineReader(KernelBuilder &b, const OperandRows &operand,
             mlir::VectorType vector);

  /// A row, and one that is asked for when it is read.
  struct Row {
    llvm::SmallVector<mlir::Value> place, ahead;
  };
  /// Returns row `key` of head `(batch, head)`.
  Row find(mlir::Value batch, mlir::Value head, mlir::Value key);
  /// Returns the vectors of the line of `row` at `feature`. If `isSplit`, even
  /// numbers are one vector and odd ones another.
  llvm::SmallVector<mlir::Value> load(const Row &row, mlir::Value feature);

  KernelBuilder &b;
  OperandRows operand;
  mlir::VectorType vector;
  /// True for bf16: a vector of pairs widens by one instruction for each half
  /// of them, without a permutation.
  bool isSplit;
  int64_t vectors; ///< of a line
  /// The rows that lie between a line that is read and one that is asked for:
  /// processors follow rows only within a page, and not from keys to values.
  int64_t rowsAhead;
};

/// The softmax of one group of queries: sets its maxima, and turns scores into
/// weights, row by row.
class GroupSoftmax {
public:
  using Value = mlir::Value;

  GroupSoftmax(OnlineKernel &kernel, Value column);

  /// Returns true if anything but maxima is wanted.
  bool needsWeights();
  /// Returns the weights of `scores`, less `shift`.
  Value emitWeights(Value scores, Value shift);
  /// Returns what weights of the group's vector `v` are less.
  Value getShift(int64_t v) { return shift[v]; }
  /// Returns the sums of weights so far, rescaled, that rows are added to.
  mlir::ValueRange getSums() { return sums; }
  /// Emits the weights of row `key`, and returns the sums with these.
  llvm::SmallVector<Value> emitRow(Value key, mlir::ValueRange carried);
  void storeSums(mlir::ValueRange sums);

private:
  llvm::SmallVector<Value> stateAt(int64_t v);

  OnlineKernel &kernel;
  Value column;
  bool isBase2;
  llvm::SmallVector<Value> shift, sums;
};

void emitScoreProduct(OnlineKernel &kernel);
void emitSoftmax(OnlineKernel &kernel);
void emitValueProduct(OnlineKernel &kernel);

/// Builds the whole op in front of it. The op must be packed.
void emitOnlineAttention(KernelBuilder &b, OnlineAttentionOp op,
                         const VectorUnit &unit);
/// Wraps an op that is not packed into a loop over tiles of `queries` rows,
/// each packed and worked on by an op of its own; returns that op.
OnlineAttentionOp packOperands(KernelBuilder &b, OnlineAttentionOp op,
                               int64_t queries);
void emitOnlineBackward(KernelBuilder &b, OnlineBackwardOp op,
                        const VectorUnit &unit);
void emitFinalize(KernelBuilder &b, FinalizeOp op, const VectorUnit &unit);
void emitPackQuery(KernelBuilder &b, PackQueryOp op, const VectorUnit &unit);

} // namespace fovea::attn

#endif // FOVEA_LIB_CONVERSION_ATTNTOVECTOR_ONLINEKERNEL_H
