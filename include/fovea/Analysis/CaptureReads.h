//===- CaptureReads.h - Where gradients of captures are sent ----*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A score region reads elements of captured tensors at places that it computes
// from the coordinates of a score. The gradient of such a tensor is the sum of
// what all scores send to its elements; how a GPU's kernel adds that up depends
// on which scores share one.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_ANALYSIS_CAPTUREREADS_H
#define FOVEA_ANALYSIS_CAPTUREREADS_H

#include "fovea/Dialect/Attn/IR/Attn.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include "llvm/ADT/DenseSet.h"

#include <optional>

namespace fovea {

enum class CaptureSum {
  /// No query chooses the element: a block has a sum over queries for each of
  /// its keys, and these are added up by kernels behind.
  OverQueries,
  /// Every score has an element of its own, to which it is written.
  None,
  /// Scores of several blocks add to the same elements in memory.
  InMemory
};

/// A read of a captured tensor that has a gradient.
struct CaptureRead {
  mlir::tensor::ExtractOp op;
  CaptureSum sum;
  /// Whether queries and keys that differ by the same read the same element.
  bool isByDistance;
};

/// The reads of the captures of `op`, which has a gradient for each; nothing if
/// one is in a region within the score region.
std::optional<llvm::SmallVector<CaptureRead>>
findCaptureReads(attn::AttentionBackwardOp op);

/// Whether blocks under `schedule` can sum up what `op` needs sums over queries
/// of: a warp has all queries of a key in a tile, so has 16 keys.
bool canSumCaptures(attn::AttentionBackwardOp op, attn::ScheduleAttr schedule);

/// The coordinates that index the dimensions of a captured tensor, numbered as
/// a score's dimensions, if each dimension is indexed by another coordinate as
/// it is.
std::optional<llvm::SmallVector<unsigned>>
getIndexingCoordinates(mlir::tensor::ExtractOp read);

/// The coordinates, numbered as a score's dimensions, that scores which read
/// the same element by `read` may differ in: those of which there are several,
/// and that do not index a dimension as they are.
llvm::SmallVector<unsigned> getSharingCoordinates(attn::AttentionBackwardOp op,
                                                  mlir::tensor::ExtractOp read);

/// `seeds` and what is computed from them in the block of a region.
llvm::SmallDenseSet<mlir::Value> getDependents(mlir::Block &body,
                                               mlir::ValueRange seeds);

} // namespace fovea

#endif // FOVEA_ANALYSIS_CAPTUREREADS_H
