//===- FusePlan.h - One attention to be fused -------------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_FUSE_FUSEPLAN_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_FUSE_FUSEPLAN_H

#include "FuseRegions.h"
#include "FuseSoftmax.h"

#include <memory>

namespace fovea::attn::fuse {

/// The facts about an attention whose values one op contracts. They are found
/// without changing the IR; then the attention is built at once.
class Plan {
public:
  /// Plans for the contraction with values `op`, whose input number
  /// `probabilities` is the result of a softmax. Null if that is not attention
  /// that can be fused; `why` then gives the reason.
  static std::unique_ptr<Plan> create(mlir::Operation *op,
                                      unsigned probabilities, std::string &why);

  /// Builds the attention in place of the last op of the graph and erases all
  /// ops that have no use left. Adds the addresses of erased ops to `erased`,
  /// and ops that a canonicalization could simplify to `created`.
  void build(llvm::SmallVectorImpl<mlir::Operation *> &erased,
             llvm::SmallVectorImpl<mlir::Operation *> &created);

  /// Returns true if a selection of a large negative constant could not become
  /// a mask.
  bool hasFiniteMask() const { return score.hasFiniteMask; }

private:
  Plan(mlir::Operation *op, unsigned probabilities)
      : valuesOp(op), probabilities(probabilities) {}

  bool analyse(std::string &why);
  bool matchValues(std::string &why);
  bool matchDivisionAfter(mlir::Value p, std::string &why);
  bool matchProduct(std::string &why);
  bool assignRoles(std::string &why);
  bool chooseSources(std::string &why);
  bool checkScore(std::string &why);
  bool checkDropout(std::string &why);
  bool checkDependences(std::string &why);
  void findLogSums();
  bool checkUses(std::string &why);
  bool passesOn(mlir::Value scalar) const;
  void findResult();
  Layout scoreLayout() const;

  mlir::Operation *valuesOp;
  unsigned probabilities;
  AxisTable axes;
  std::unique_ptr<ScalarGraph> graph;

  Contraction values, product;
  Softmax softmax;
  mlir::Value productScalar;
  unsigned keyInput = 0;
  llvm::SmallVector<Source> querySources, keySources, valueSources;
  Axes batch, kvHeads, heads, rows, keys, features, valueFeatures;
  Source query, key, value;
  Score score;
  /// The value that the attention's output replaces: the contraction's result,
  /// or a narrowing of it.
  mlir::Value result;
  Access resultAccess;
  /// Logarithms of the softmax's sums, which attention returns as a result, and
  /// where they are read.
  llvm::SmallVector<LogSumExpOp> logSums;
  Access logSumAccess;
  llvm::SetVector<mlir::Operation *> dead;
};

} // namespace fovea::attn::fuse

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_FUSE_FUSEPLAN_H
