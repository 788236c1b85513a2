//===- Interpreter.h - Execution of tile programs on the host ---*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs a function whose `tile.launch` ops have memrefs, block by block, and the
// ops around them (func, scf, arith, math, affine, memref) unchanged. This
// needs no GPU: it tests programs on machines without one.
//
// The roles of a block take turns in an order that the seed chooses. The seed
// also chooses when copies and products complete, at the latest when nothing
// else can proceed: with seed 0 all of them complete as late as possible, and
// roles and blocks run in order. A violation of a program's rules is reported
// as an error at the op, with a note that names the block and the role. These
// are violations:
//
//   - a tile in shared memory read before its wait, after its release or after
//     it was loaded anew;
//   - a slot acquired, filled, waited for or released out of order, filled
//     twice, or never released;
//   - a slot released, or a tile loaded anew, while a product reads it; an
//     accumulator read while a product adds to it; a wait that does not cover
//     its product;
//   - roles that wait for each other;
//   - an element of global memory written by two blocks, or written by one and
//     read by another; an access out of bounds or after a deallocation;
//   - a layout that is not of the role's threads; more shared memory or
//     registers than there are.
//
// Floating-point operations are rounded to their type. Sums of products and of
// reductions are rounded once, at their end; transcendental functions are those
// of the host.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_INTERPRETER_INTERPRETER_H
#define FOVEA_INTERPRETER_INTERPRETER_H

#include "fovea/Dialect/Machine/IR/GpuArch.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Support/LLVM.h"

#include <vector>

namespace fovea {

struct SimulationOptions {
  uint64_t seed = 0;
  /// The GPU that limits a block's shared memory and registers.
  machine::GpuArch gpu = *machine::GpuArch::find("sm_90a");
  /// The most 32-bit registers that one thread may have.
  int64_t threadRegisters = machine::kLargestThread;
};

/// An operand of a function. A number has rank 0. Elements have the layout of
/// memory: i1 takes a byte, index 8.
struct SimulationOperand {
  const void *data;
  llvm::ArrayRef<int64_t> shape;
  /// Strides in elements.
  llvm::ArrayRef<int64_t> strides;
};

/// A result, in row-major order.
struct SimulationResult {
  llvm::SmallVector<int64_t> shape;
  std::vector<char> data;
};

/// Runs a function whose operands are memrefs and numbers and whose results are
/// memrefs. Operands are copied first. Errors are diagnostics of the context.
llvm::FailureOr<llvm::SmallVector<SimulationResult>>
simulate(mlir::func::FuncOp function,
         llvm::ArrayRef<SimulationOperand> operands,
         const SimulationOptions &options);

} // namespace fovea

#endif // FOVEA_INTERPRETER_INTERPRETER_H
