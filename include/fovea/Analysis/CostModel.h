//===- CostModel.h - FLOPs, traffic and time of a graph ---------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Counts the operations and memory traffic of a function on tensors, for given
// sizes of its operands, kernel by kernel, and bounds its time by the roofline
// (Williams et al., CACM 2009).
//
// Conventions:
//   - a floating-point addition, multiplication, comparison, division or
//     elementary function is one FLOP;
//   - a kernel of the unfused graph reads its operands from memory once and
//     writes its result once;
//   - a fused chain of normalisations and elementwise operations is one kernel:
//     values that it passes on internally move no bytes;
//   - fused attention reads the queries and writes the outputs once; it reads
//     the keys and values of a head once where they fit the target's near
//     memory, else once for every tile of queries. It skips what its mask
//     leaves out, as far as that follows from positions alone;
//   - its backward pass is one kernel, which reads its operands and writes the
//     gradients once.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_ANALYSIS_COSTMODEL_H
#define FOVEA_ANALYSIS_COSTMODEL_H

#include "fovea/Dialect/Attn/IR/Attn.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"

#include <optional>
#include <string>
#include <vector>

namespace fovea {

/// The cost of one pass over memory.
struct KernelCost {
  std::string name;
  double flops = 0;
  /// The FLOPs among `flops` that are products of f16 or bf16 elements by
  /// tensor cores, or by a host's unit for pairs in bf16.
  double matrixFlops = 0;
  /// How many products that unit computes for each.
  double matrixProducts = 1;
  double bytes = 0;
  /// Predicted seconds on all cores of the target together.
  double seconds = 0;
};

struct Cost {
  std::vector<KernelCost> kernels;

  double flops() const;
  double bytes() const;
  double seconds() const;
  /// FLOPs per byte.
  double intensity() const;
};

/// Ways to form the kernels of a function.
enum class KernelForm {
  /// One kernel for each operation.
  Unfused,
  /// Chains of row operations are one kernel.
  Fused,
};

/// The cost of `function`, whose tensor operands have the sizes `shapes` (one
/// entry for each operand, empty for scalars), on `target`. Attention that is
/// fused in the IR passes over the keys `passes` times. The ops of `tiled` are
/// part of the attention next to them: the values that they pass on move no
/// bytes, and the ops that make its keys or values run again for every tile of
/// queries. Fails with an error on the function where a size depends on data.
mlir::FailureOr<Cost>
estimateCost(mlir::func::FuncOp function,
             mlir::ArrayRef<mlir::SmallVector<int64_t>> shapes,
             machine::TargetAttr target, KernelForm form, int64_t passes = 1,
             const llvm::DenseSet<mlir::Operation *> &tiled = {});

/// Returns the floating-point operations of one evaluation of `region`.
double countFlops(mlir::Region &region);

/// Returns the seconds of a kernel at the rates of the target, scaled by the
/// share of the peak that kernels without register blocking reach in practice.
double predictKernel(double flops, double bytes, machine::TargetAttr target);

/// Returns the sizes of the results of `function` for given sizes of its
/// operands, in the form that `estimateCost` takes; nullopt for a result with a
/// size that depends on data.
mlir::SmallVector<std::optional<mlir::SmallVector<int64_t>>>
evaluateResultShapes(mlir::func::FuncOp function,
                     mlir::ArrayRef<mlir::SmallVector<int64_t>> shapes);

} // namespace fovea

#endif // FOVEA_ANALYSIS_COSTMODEL_H
