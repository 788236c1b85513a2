//===- TileProducers.h - Producers of operands, per tile --------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILEPRODUCERS_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILEPRODUCERS_H

#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Dialect/Attn/Transforms/Passes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

namespace fovea::attn {

/// Computes the producers of `slices` in `loop`, and their producers in turn,
/// where they need not stand before the loop. Different iterations of the loop
/// must read different parts: an op whose only readers are among the slices is
/// then not computed twice. Computes only the producers that fill a tensor, or
/// that `isWanted` accepts.
void fuseProducersOf(mlir::RewriterBase &rewriter,
                     mlir::ArrayRef<mlir::tensor::ExtractSliceOp> slices,
                     mlir::scf::ForallOp loop,
                     llvm::function_ref<bool(mlir::Operation *)> isWanted);

/// Returns how often each key is read by the loop over tiles of queries that
/// `pass`, which is not tiled yet, becomes.
double countKeyReads(OnlineAttentionOp pass, int64_t queryTile);

/// Computes the producers of the keys and values that the passes in `loop` read
/// where tiles of them are loaded, if `fusion` says so, or if it is `Auto` and
/// the model of `target` does; `reads` is the result of `countKeyReads`. A
/// remark gives the choice. Returns the number of ops that were moved.
unsigned fuseKeyProducers(mlir::RewriterBase &rewriter,
                          mlir::scf::ForallOp loop, double reads,
                          KeyFusion fusion, machine::TargetAttr target);

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILEPRODUCERS_H
