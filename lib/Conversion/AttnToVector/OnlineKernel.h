//===- OnlineKernel.h - The parts of the online attention kernel -*- C++
//-*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One `attn.online_attention` on memrefs becomes, for each block of keys:
//
//   score product   P[key][query] = K * Q^T, and the maximum of each query
//   score region    P = log2(e) * score(P, b, h, i, j)
//   mask region     P = mask(b, h, i, j) ? P : -infinity, where partial
//   softmax         max', alpha = exp2(max - max'), P = exp2(P - max'), sum'
//   dropout         P = keep(b, h, i, j) ? P / (1 - p) : 0
//   value product   acc = acc * alpha + P^T * V
//
// Queries lie in the lanes: a query's maximum and sum are one lane of a vector
// each, and no step needs a horizontal operation. Queries are taken in groups
// of as many vectors as the score product keeps in registers.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_ATTNTOVECTOR_ONLINEKERNEL_H
#define FOVEA_LIB_CONVERSION_ATTNTOVECTOR_ONLINEKERNEL_H

#include "KernelBuilder.h"
#include "VectorUnit.h"

#include "fovea/Dialect/Attn/IR/Attn.h"

namespace fovea::attn {

/// How one op's work is cut into register tiles.
struct TileShape {
  int64_t lanes;        ///< elements of one vector; divides `queries`
  int64_t queries;      ///< rows of the packed tile
  int64_t groupVectors; ///< vectors of queries that the score tile holds
  int64_t groups;       ///< groups in `queries`
  int64_t tileKeys;     ///< keys that the score tile holds
  int64_t blockKeys;    ///< keys of one block, at most
  int64_t tileRows;     ///< queries that the value tile holds
  int64_t valueVectors; ///< vectors of features that the value tile holds

  int64_t groupQueries() const { return groupVectors * lanes; }

  static TileShape get(OnlineAttentionOp op, const VectorUnit &unit);
};

/// The op at hand, its place, and its scratch memory.
struct OnlineKernel {
  KernelBuilder &b;
  OnlineAttentionOp op;
  TileShape shape;
  mlir::VectorType vector; ///< `lanes` of the accumulation type

  mlir::Value rows = {};       ///< queries that exist, at least 1
  mlir::Value usedGroups = {}; ///< groups that hold them

  // The head at hand: indices in the operands.
  mlir::Value batch = {}, head = {}, kvHead = {};
  // The block of keys at hand: its place in the key operand, and its size.
  mlir::Value firstKey = {}, keys = {};
  // Coordinates (b, h, i, j) of the first query and the block's first key.
  llvm::SmallVector<mlir::Value, 4> at = {};

  mlir::Value scores = {};   ///< [key][query]: scores, then probabilities
  mlir::Value blockMax = {}; ///< [query]: maximum of the block's scores
  mlir::Value alpha = {};    ///< [query]: factor that rescales the accumulator
  mlir::Value keyBlock = {}; ///< [blockKeys][D]: converted keys, or null
  mlir::Value valueBlock = {}; ///< [blockKeys][features of a tile]: likewise

  /// Keys of the block from `first` to below `end`.
  struct Keys {
    mlir::Value first, end;
  };

  /// The keys that some of the queries `row ... row + count - 1` may keep: all,
  /// or what the mask's bounds leave.
  Keys getKeys(mlir::Value row, int64_t count);

  /// Builds `body(column of the group's first query, keys the group may keep)`
  /// for all groups in use.
  void forGroups(llvm::function_ref<void(mlir::Value column, Keys keys)> body);

  /// The group's vectors of row `row` of `memref: [rows][query]`, or of a
  /// memref of queries alone where `row` is null.
  llvm::SmallVector<mlir::Value> loadGroup(mlir::Value memref, mlir::Value row,
                                           mlir::Value column);
  void storeGroup(mlir::ValueRange vectors, mlir::Value memref, mlir::Value row,
                  mlir::Value column);
};

/// Creates the memory of a kernel's scratch: static sizes on the stack of the
/// work item, large or dynamic ones on the heap around `op`.
mlir::Value allocateScratch(KernelBuilder &b, mlir::Operation *op,
                            llvm::ArrayRef<int64_t> shape, mlir::Type element,
                            mlir::ValueRange dynamicSizes = {});

/// Whether rows of a `[B, H, S, D]` operand can be read as they are by code
/// that computes in `type`: element type `type`, contiguous features.
bool isReadableAs(mlir::Value operand, mlir::Type type);

/// Copies `count` features from `first` on of row `row` of head `(batch, head)`
/// to `target[targetRow, 0...]`, converted to the target's element type.
void emitCopyRow(KernelBuilder &b, int64_t lanes, mlir::Value source,
                 mlir::ValueRange row, mlir::Value first, mlir::Value count,
                 mlir::Value target, mlir::Value targetRow);

/// `2^x` for `x <= 0`, as the softmax needs it: 0 below -100 (f64: -1000), NaN
/// for NaN. Relative error 7.5e-8 (f64: 1e-16) besides rounding.
mlir::Value emitExp2OfNonPositive(KernelBuilder &b, mlir::Value x);

void emitScoreProduct(OnlineKernel &kernel);
void emitScoreRegion(OnlineKernel &kernel);
void emitMaskRegion(OnlineKernel &kernel);
void emitSoftmax(OnlineKernel &kernel);
void emitDropout(OnlineKernel &kernel);
void emitValueProduct(OnlineKernel &kernel);

/// Builds the whole op in front of it. It must be packed.
void emitOnlineAttention(KernelBuilder &b, OnlineAttentionOp op,
                         const VectorUnit &unit);
/// Wraps an op that is not packed into a loop over tiles of `queries` rows,
/// each packed and worked on by an op of its own; returns that op.
OnlineAttentionOp packOperands(KernelBuilder &b, OnlineAttentionOp op,
                               int64_t queries);
void emitFinalize(KernelBuilder &b, FinalizeOp op, const VectorUnit &unit);
void emitPackQuery(KernelBuilder &b, PackQueryOp op, const VectorUnit &unit);

} // namespace fovea::attn

#endif // FOVEA_LIB_CONVERSION_ATTNTOVECTOR_ONLINEKERNEL_H
