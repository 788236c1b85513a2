//===- BackwardBuilder.h - The backward pass as one launch ------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_ATTNTOTILE_BACKWARDBUILDER_H
#define FOVEA_LIB_CONVERSION_ATTNTOTILE_BACKWARDBUILDER_H

#include "BackwardStep.h"
#include "LaunchBuilder.h"

namespace fovea {

/// Rewrites a loop over tiles of keys of the backward pass to statistics of the
/// rows, a launch whose blocks sum the gradients of their keys and values in
/// registers and add the other gradients in memory, and what makes results of
/// the latter: scaling, and sums of captured tensors' gradients. Loops that
/// only repeat the loop become loops of launches.
class BackwardBuilder final : public LaunchBuilder {
public:
  BackwardBuilder(mlir::RewriterBase &rewriter, mlir::scf::ForallOp forall,
                  attn::OnlineBackwardOp op)
      : LaunchBuilder(rewriter, forall), op(op) {}

  mlir::LogicalResult run() override;

private:
  using Values = mlir::SmallVector<mlir::Value>;
  /// A result of the loop; if it is inserted, the place of a block's part.
  struct Output {
    unsigned result;
    std::optional<TileView> view;
  };

  mlir::LogicalResult findLoops();
  mlir::LogicalResult findOperands();
  mlir::LogicalResult findOutputs();
  mlir::Block *getBlockOfStep(mlir::scf::IfOp branch);
  std::optional<unsigned> getSum(mlir::Value value);
  void followSums();
  void findPresentKeys();
  void findMaskReads();

  void createStatistics();
  Values createOutputs();
  mlir::FailureOr<Values> emit();
  Values finish(mlir::ValueRange results);
  mlir::Value scaleQueryGradient(mlir::Value sums);

  mlir::LogicalResult emitLaunch(mlir::ValueRange running);
  mlir::LogicalResult readInLaunch();
  mlir::LogicalResult convertOp(mlir::Operation &op) override;
  mlir::LogicalResult convertFor(mlir::scf::ForOp loop);
  mlir::LogicalResult convertIf(mlir::scf::IfOp branch);
  mlir::LogicalResult convertStep();
  mlir::Value getSumSoFar(unsigned number);
  Values getSums(llvm::ArrayRef<unsigned> numbers, bool withReads);
  void setSums(llvm::ArrayRef<unsigned> numbers, mlir::ValueRange values);
  void storeReads();
  mlir::Value getCoordinate(attn::Coordinate coordinate);
  mlir::Value getOutput(unsigned place) {
    return launch.getTiedArgument(launch.getOutputsMutable()[place]);
  }
  mlir::Value loadStatistic(mlir::Value tensor, mlir::ValueRange indices);
  mlir::Value fill(mlir::ArrayRef<int64_t> shape);
  void store(mlir::Value sum, mlir::Value memref, double factor,
             const TileView &view);

  // Gradients of captured tensors, implemented in BackwardCaptures.cpp.
  mlir::LogicalResult findReads();
  bool visitsAll();
  void planIntegers();
  mlir::OpFoldResult getNumTerms(mlir::Value capture);
  mlir::FloatType getSumType(mlir::Value capture);
  void createScatteredSums(Values &outputs,
                           llvm::function_ref<mlir::Value(size_t)> getInit);
  void tieScatteredSums();
  mlir::Value sumKeys(mlir::tensor::ExtractOp read, mlir::Value sums);
  mlir::Value roundSums(mlir::Value capture, mlir::Value sums,
                        const ReproducibleSum &integers);
  mlir::Value sumReads(mlir::Value capture, mlir::ValueRange sums,
                       mlir::Type type);

  attn::OnlineBackwardOp op;
  /// Loops around the parallel loop that only repeat it, innermost first.
  mlir::SmallVector<mlir::scf::ForOp> outer;
  /// The results of the parallel loop, by the op's destinations.
  mlir::SmallVector<std::optional<Output>> outputs;
  /// The numbers of destinations that results of loops and branches stand for.
  llvm::DenseMap<mlir::Value, unsigned> carried;
  /// Batches, heads, queries and keys of the whole.
  mlir::SmallVector<mlir::OpFoldResult> scoreSizes;
  /// The log-sum-exp and delta.
  mlir::SmallVector<TileView> statisticViews;
  PresentKeys present;

  /// Reads of captured tensors that have gradients: first the reads whose
  /// gradients a block sums, then those whose gradients go to memory, by
  /// captured tensor.
  mlir::SmallVector<mlir::tensor::ExtractOp> reads;
  mlir::SmallVector<ScatteredRead> scattered;
  llvm::SmallSetVector<mlir::Value, 4> integerCaptures;

  /// Reads of the mask that are made once for each query of a tile.
  mlir::SmallVector<mlir::tensor::ExtractOp> maskReads;

  /// As in `BackwardStep`, for all queries.
  mlir::Value shift, rest, negatedDelta;
  Values maskWords;
  /// The places of the first destinations among the launch's results, and of
  /// the first read's sums.
  mlir::SmallVector<unsigned> places;
  unsigned firstRead = 0;
  /// Sums in registers so far.
  std::array<mlir::Value, 3> sums;
  Values readSums;
};

} // namespace fovea

#endif // FOVEA_LIB_CONVERSION_ATTNTOTILE_BACKWARDBUILDER_H
