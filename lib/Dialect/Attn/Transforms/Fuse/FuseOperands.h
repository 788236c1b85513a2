//===- FuseOperands.h - Operands in attention's layout ----------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_FUSE_FUSEOPERANDS_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_FUSE_FUSEOPERANDS_H

#include "FuseScalars.h"

#include <array>

namespace fovea::attn::fuse {

/// The axes of `[batch, head, position, feature]`.
using Layout = std::array<Axes, 4>;

/// A tensor of which a contraction's operand is a view, a broadcast, a widening
/// or a constant multiple.
struct Source {
  mlir::Value tensor;
  Access access;
  double factor = 1.0;
  /// The number of passes over memory that make `tensor` from the last of all
  /// sources.
  unsigned passes = 0;
};

/// Returns all tensors that operand `operand`, read at `access`, comes from,
/// itself first. Looks through constant factors only if `allowFactor`.
llvm::SmallVector<Source> getSources(ScalarGraph &graph, mlir::Value operand,
                                     const Access &access, bool allowFactor);

/// Returns true if `access` has `axis`.
bool hasAxis(const Access &access, Axis axis);

/// Returns the one of `sources` that is cheapest to bring to `layout`, without
/// axes that the layout lacks. `sizes` are tensors that give sizes of axes at
/// run time, for axes that must be broadcast, if that is allowed. Returns
/// nullopt if none can be brought to the layout.
std::optional<Source> chooseSource(AxisTable &axes,
                                   llvm::ArrayRef<Source> sources,
                                   const Layout &layout,
                                   llvm::ArrayRef<Source> sizes,
                                   bool mayBroadcast);

/// Returns `source` as a 4-D tensor of layout `layout`.
mlir::Value buildOperand(mlir::OpBuilder &builder, mlir::Location loc,
                         AxisTable &axes, const Source &source,
                         const Layout &layout, llvm::ArrayRef<Source> sizes);

/// Returns true if a result with dimensions `layout` can be brought to
/// `access`.
bool canBuildResult(AxisTable &axes, llvm::ArrayRef<Axes> layout,
                    const Access &access);

/// Returns `result` with dimensions `layout`, read at `access` and of type
/// `type`.
mlir::Value buildResult(mlir::OpBuilder &builder, mlir::Location loc,
                        AxisTable &axes, mlir::Value result,
                        llvm::ArrayRef<Axes> layout, const Access &access,
                        mlir::RankedTensorType type);

} // namespace fovea::attn::fuse

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_FUSE_FUSEOPERANDS_H
