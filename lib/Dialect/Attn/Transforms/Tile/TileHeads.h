//===- TileHeads.h - Heads of a group from the rows of a tile ---*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The few queries of a group's heads are rows of one head
// (`attn-pack-groups`), one head after another, which is a view of memory of
// [B, H, S, D], or one query after another. Where heads of a query are
// neighbours, [B, S, H, D], no view of the rows is: a tile with all of them is
// read and written as a box, and the rows of parts that are merged, each by
// itself, anywhere.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILEHEADS_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILEHEADS_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"

namespace fovea::attn {

/// If the only reader of a result of `loop`, [B, Hkv, G * S, ...], makes [B, S,
/// Hkv * G, D] of it, or of rows by queries [B, Hkv * G, S, ...], lets the loop
/// write that, and the loop which has written it before, if there is one. An
/// iteration of each writes a row, or all of a head, or whole queries. Rows of
/// queries that have no head are not written. Returns true if the loop was
/// changed.
bool fuseHeadsOfResults(mlir::RewriterBase &rewriter, mlir::scf::ForallOp loop);

/// If a tile of `loop` is a slice of [B, Hkv, G * S, D], all rows of a head, or
/// whole queries, which are made of queries [B, Hkv * G, S, D], lets it be a
/// slice of these, with what is not defined as rows that have no head.
void fuseHeadsOfQueries(mlir::RewriterBase &rewriter, mlir::scf::ForallOp loop);

/// Tells masked passes over keys, whose queries are `rows`, how many heads and
/// queries `whole` has, of which these were rows.
void keepWhole(mlir::RewriterBase &rewriter, mlir::scf::ForallOp loop,
               mlir::Value rows, mlir::Value whole);

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILEHEADS_H
