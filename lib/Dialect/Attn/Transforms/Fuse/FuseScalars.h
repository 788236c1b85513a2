//===- FuseScalars.h - Elements of tensors as scalar graphs -----*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// attn-fuse builds the expression of one element of a tensor. This is a graph
// of scalar ops in a scratch block, in which equal values are one value: every
// elementwise op on the way, of whatever dialect, contributes its payload, and
// views only change the place to read.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_FUSE_FUSESCALARS_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_FUSE_FUSESCALARS_H

#include "FuseAxes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

namespace fovea::attn::fuse {

/// An element of a tensor that the graph does not look into.
struct Leaf {
  mlir::Value tensor;
  Access access;
  /// True if the tensor is a contraction whose initial value is not counted.
  bool productOnly = false;
};

class ScalarGraph {
public:
  ScalarGraph(AxisTable &axes, mlir::MLIRContext *context);

  AxisTable &getAxes() { return axes; }
  mlir::Block &getBlock() { return scratch; }

  /// Returns the element of `tensor` at `access`, expanded as deep as possible.
  mlir::Value read(mlir::Value tensor, const Access &access);

  /// Returns the element expanded through one op only, or null where that op is
  /// opaque.
  mlir::Value readOnce(mlir::Value tensor, const Access &access);

  /// Returns the element as a leaf.
  mlir::Value getLeaf(const Leaf &leaf);

  /// Returns the index that `axes` make.
  mlir::Value getIndex(llvm::ArrayRef<Axis> axes);

  /// Returns a tensor of which `scalar`, the result of an op, is an element;
  /// null if there is none.
  const Leaf *lookupOrigin(mlir::Value scalar) const;

  /// Returns the op, in the body of the op that makes `tensor`, that ended the
  /// expansion because it is not a scalar op; null if there is none.
  mlir::Operation *lookupObstacle(mlir::Value tensor) const;

  /// Returns the leaf that an argument of the scratch block stands for.
  const Leaf *lookupLeaf(mlir::Value scalar) const;
  const Axes *lookupIndex(mlir::Value scalar) const;

  /// Returns the value `value` of `op`'s payload in the loops `loops`;
  /// `argument` gives the payload's arguments. Null where the payload is not
  /// scalar arithmetic.
  mlir::Value
  readPayload(mlir::linalg::LinalgOp op, mlir::Value value, const Loops &loops,
              llvm::function_ref<mlir::Value(mlir::BlockArgument)> argument);

  /// Returns the value of `argument`, an input's element in `op`'s payload.
  mlir::Value readArgument(mlir::linalg::LinalgOp op,
                           mlir::BlockArgument argument, const Loops &loops);

  /// Returns a scalar op, folded, or the equal op that exists already.
  template <typename OpT, typename... Args>
  mlir::Value create(mlir::Location loc, Args &&...args) {
    return intern(
        OpT::create(builder, loc, std::forward<Args>(args)...).getOperation());
  }
  mlir::Value createConstant(mlir::Location loc, mlir::TypedAttr value);
  mlir::Value createFloat(mlir::Location loc, mlir::Type type, double value);
  /// Returns a copy of `op` with other operands and, for a float op whose types
  /// must follow those, another result type.
  mlir::Value createLike(mlir::Operation *op, mlir::ValueRange operands,
                         mlir::Type result);

  /// Returns all scalars that depend on a scratch argument for which `isSource`
  /// holds.
  llvm::DenseSet<mlir::Value>
  dependents(llvm::function_ref<bool(mlir::BlockArgument)> isSource);

  /// Returns all scalars that vary along one of `along`.
  llvm::DenseSet<mlir::Value> varying(llvm::ArrayRef<Axis> along);

private:
  using Reader =
      llvm::function_ref<mlir::Value(mlir::Value tensor, const Access &access)>;

  mlir::Value expand(mlir::Value tensor, const Access &access, Reader read);
  mlir::Value expandLinalg(mlir::linalg::LinalgOp op, unsigned result,
                           const Access &access, Reader read);
  mlir::Value expandElementwise(mlir::Operation *op, const Access &access,
                                Reader read);
  mlir::Value expandAttn(mlir::Operation *op, const Access &access,
                         Reader read);
  mlir::Value cloneBody(mlir::Block &body, mlir::Value value,
                        mlir::IRMapping &mapping,
                        llvm::function_ref<mlir::Value(mlir::Value)> missing);
  mlir::Value readArgument(mlir::linalg::LinalgOp op,
                           mlir::BlockArgument argument, const Loops &loops,
                           Reader read);
  mlir::Value intern(mlir::Operation *op);
  mlir::Value getOutside(mlir::Value scalar);
  mlir::Value cast(mlir::Location loc, mlir::Value scalar, mlir::Type type);

  AxisTable &axes;
  mlir::Block scratch;
  mlir::OpBuilder builder;
  llvm::DenseMap<mlir::Value, Leaf> leaves;
  llvm::DenseMap<mlir::Value, Leaf> origins;
  llvm::DenseMap<mlir::Value, Axes> indices;
  llvm::DenseMap<mlir::Value,
                 llvm::SmallVector<std::pair<Access, mlir::Value>, 1>>
      known;
  llvm::DenseMap<size_t, llvm::SmallVector<mlir::Operation *, 1>> interned;
  llvm::SetVector<mlir::Operation *> obstacles;
  unsigned depth = 0;
};

/// Returns the loops that reading a result at `access` fixes, through the map
/// of that result; others have no axes. Returns nullopt where the map is not a
/// projected permutation.
std::optional<Loops> bindLoops(AxisTable &axes, mlir::linalg::LinalgOp op,
                               mlir::AffineMap resultMap, const Access &access);

/// Returns the value of a scalar constant that is a float.
std::optional<double> getConstantFloat(mlir::Value scalar);

/// Returns `scalar` before casts between float types.
mlir::Value stripCasts(mlir::Value scalar);

} // namespace fovea::attn::fuse

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_FUSE_FUSESCALARS_H
