//===- BackwardBuilder.h - Attention's backward pass as a launch -*- C++
//-*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_ATTNTOTILE_BACKWARDBUILDER_H
#define FOVEA_LIB_CONVERSION_ATTNTOTILE_BACKWARDBUILDER_H

#include "BackwardStep.h"

#include "fovea/Analysis/MaskAnalysis.h"
#include "fovea/Analysis/MaskTables.h"

#include "mlir/IR/PatternMatch.h"

namespace fovea {

/// Rewrites one scheduled `attn.attention_backward` to statistics of its rows,
/// a `tile.launch` and the rounding of the queries' gradients.
class BackwardBuilder {
public:
  BackwardBuilder(mlir::RewriterBase &rewriter, attn::AttentionBackwardOp op)
      : rewriter(rewriter), op(op), loc(op.getLoc()) {}

  /// Replaces the op. On failure the IR is as it was and `getReason` says why.
  mlir::LogicalResult run();
  llvm::StringRef getReason() const { return reason; }

private:
  /// A tile of keys: what one block adds up.
  struct KeyBlock;

  mlir::LogicalResult fail(const llvm::Twine &why);
  mlir::LogicalResult checkSizes();
  void createStatistics();
  void createLaunch();
  mlir::LogicalResult emitBlock();
  mlir::LogicalResult readInLaunch();
  mlir::Value roundQueryGradient(mlir::Value sums);

  /// The loops over heads of the group and over tiles of queries, and one tile.
  mlir::FailureOr<mlir::SmallVector<mlir::Value>>
  emitHeads(KeyBlock &block, mlir::ValueRange sums);
  mlir::FailureOr<mlir::SmallVector<mlir::Value>>
  emitQueries(KeyBlock &block, mlir::Value head, mlir::ValueRange sums);
  mlir::FailureOr<mlir::SmallVector<mlir::Value>>
  emitTile(KeyBlock &block, mlir::Value head, mlir::Value row,
           const Truth &truth, mlir::ValueRange sums);

  mlir::Value getMemRef(mlir::Value tensor) { return memrefs.lookup(tensor); }
  mlir::Value load(mlir::Value tensor, mlir::ValueRange indices, int64_t rows,
                   int64_t columns);
  mlir::Value loadStatistic(mlir::Value tensor, mlir::ValueRange indices);
  void store(mlir::Value sum, mlir::OpOperand &output, double factor,
             mlir::ValueRange indices);

  mlir::RewriterBase &rewriter;
  attn::AttentionBackwardOp op;
  mlir::Location loc;
  std::string reason;

  TileSizes sizes;
  mlir::SmallVector<mlir::OpFoldResult> querySizes, keySizes;
  mlir::OpFoldResult group;
  mlir::Value shift, negatedDelta;
  MaskTables tables;
  tile::LaunchOp launch;
  llvm::DenseMap<mlir::Value, mlir::Value> memrefs;
};

} // namespace fovea

#endif // FOVEA_LIB_CONVERSION_ATTNTOTILE_BACKWARDBUILDER_H
