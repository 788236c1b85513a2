//===- AttnOps.td - Operations of the attn dialect ---------*- tablegen -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DIALECT_ATTN_IR_ATTNOPS_TD
#define FOVEA_DIALECT_ATTN_IR_ATTNOPS_TD

include "fovea/Dialect/Attn/IR/AttnGraphOps.td"
include "fovea/Dialect/Attn/IR/AttnOnlineOps.td"

#endif // FOVEA_DIALECT_ATTN_IR_ATTNOPS_TD
