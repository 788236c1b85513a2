//===- PackedQueries.h - Queries of sequences that lie packed ---*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_ANALYSIS_PACKEDQUERIES_H
#define FOVEA_ANALYSIS_PACKEDQUERIES_H

#include "fovea/Dialect/Attn/IR/Attn.h"

namespace fovea {

/// Returns how many rows each query of a dynamic number of them has: those of
/// the heads of its group, where these are rows of one, and some without a head
/// (`attn-pack-groups`).
int64_t countRowsOfQuery(attn::AttentionOp op);

/// Returns the queries of `op`, [B, heads, queries, features], before those of
/// the heads of a group may have become rows of one.
mlir::Value getQueriesOfHeads(attn::AttentionOp op);

/// Returns the queries of sequences that lie packed, [1, heads, queries,
/// features], of which a loop over batches copies those of `op`, before they
/// may have become rows of others; null if there is none.
mlir::Value getPackedQueries(attn::AttentionOp op);

} // namespace fovea

#endif // FOVEA_ANALYSIS_PACKEDQUERIES_H
