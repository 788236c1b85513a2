//===- Attn.h - The attn dialect --------------------------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DIALECT_ATTN_IR_ATTN_H
#define FOVEA_DIALECT_ATTN_IR_ATTN_H

#include "fovea/Dialect/Machine/IR/Machine.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/ParallelCombiningOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/TilingInterface.h"

#include "fovea/Dialect/Attn/IR/AttnDialect.h.inc"
#include "fovea/Dialect/Attn/IR/AttnEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "fovea/Dialect/Attn/IR/AttnAttrs.h.inc"
#define GET_OP_CLASSES
#include "fovea/Dialect/Attn/IR/AttnOps.h.inc"

namespace fovea::attn {

/// The names of the dialect's attributes of functions and modules, which its
/// description explains.
inline constexpr llvm::StringLiteral kJointAttrName = "attn.joint",
                                     kSchedulesAttrName = "attn.schedules";

/// Returns the type in which values of element type `type` are accumulated.
mlir::FloatType getAccumulationType(mlir::Type type);

/// Returns the values defined above `op` that its regions use, in order of
/// first use.
llvm::SmallVector<mlir::Value> getCaptures(mlir::Operation *op);

/// Erases `op` if nothing uses it, and then the ops that only it needed.
void eraseUnused(mlir::Operation *op);

/// Returns true if two sizes are known to be equal: constants, values,
/// dimensions of one tensor or memref, or the same arithmetic on such.
bool isSameSize(mlir::OpFoldResult a, mlir::OpFoldResult b);

/// Returns a tensor of the sizes of `tensor` that need not be computed: what an
/// op writes has those of its destination.
mlir::Value getShaped(mlir::Value tensor);

/// Returns the number of query heads that read one KV head; 1 if there are no
/// heads.
mlir::OpFoldResult getHeadsPerKVHead(mlir::OpBuilder &builder,
                                     mlir::Location loc,
                                     mlir::OpFoldResult heads,
                                     mlir::OpFoldResult kvHeads);

/// Returns the factor of packed queries: the scale and, without a score region,
/// log2(e), for exponentials in base 2.
double getPackingFactor(mlir::FloatAttr scale, mlir::Region &score);

/// Returns how many numbers in bf16 have each finite number of type `element`
/// as their sum: one for bf16, two for f16; 0 for other types.
int64_t countPairParts(mlir::Type element);

/// Returns the parts of tensors of these types, `[.., D]`, if a unit that
/// multiplies pairs in bf16 can multiply them, or else 0: they are of one type,
/// and features are whole tiles.
int64_t countPairParts(mlir::Type query, mlir::Type key, mlir::Type value);

/// Expands each dimension of `tensor` into one of `groups` of dimensions of
/// `sizes`. Constants in `sizes` become static sizes, even where the type of
/// `tensor` is dynamic.
mlir::Value expandShape(mlir::OpBuilder &builder, mlir::Location loc,
                        mlir::Value tensor,
                        llvm::ArrayRef<mlir::ReassociationIndices> groups,
                        llvm::ArrayRef<mlir::OpFoldResult> sizes);

/// Returns the dimensions of `[B, H, Sq]` that those of an initial log-sum-exp
/// of this rank stand for.
llvm::ArrayRef<int64_t> getInitDims(int64_t rank);

/// What attention to some keys contributes: an output, null for zeros, and a
/// log-sum-exp.
struct State {
  mlir::Value output, lse;
};

/// Returns the output of both states' keys and, if `lseType` is not null, their
/// log-sum-exp. `state` has an output in the accumulation type and `[B, H,
/// Sq]` log-sum-exps; `init` is as `attn.attention` takes it.
llvm::SmallVector<mlir::Value> mergeStates(mlir::OpBuilder &builder,
                                           mlir::Location loc, State state,
                                           State init,
                                           mlir::RankedTensorType outputType,
                                           mlir::RankedTensorType lseType);

} // namespace fovea::attn

#endif // FOVEA_DIALECT_ATTN_IR_ATTN_H
