//===- CallFrame.h - The arguments of a compiled function -------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DRIVER_CALLFRAME_H
#define FOVEA_LIB_DRIVER_CALLFRAME_H

#include "ProgramState.h"

namespace fovea {

/// Returns an error whose code says that the operands are to blame.
llvm::Error rejectOperands(const llvm::Twine &message);

/// Copies a tensor of any strides to row-major order.
llvm::Expected<Tensor> pack(const TensorView &view);

/// Copies elements in row-major order to where `view` has them.
void unpack(const Tensor &tensor, const TensorView &view);

/// Memref descriptors of a function's results and operands, and the addresses
/// of all arguments, in the form that the function's packed entry takes. Makes
/// no allocation for functions of usual size.
class CallFrame {
public:
  explicit CallFrame(const Signature &function);

  /// Checks an operand against the function's type: dtype, rank, static sizes.
  llvm::Error check(size_t index, const TensorView &view) const;

  /// Adds the next operand, whose elements lie next to each other along the
  /// last dimension. A number is given by the address of its value.
  void add(const TensorView &view);

  /// Runs the function's checks of sizes that must agree, if it has any.
  llvm::Error checkShapes(const Executable::State::Entry &entry);

  /// Returns true if the function can use the operands where they are.
  bool areAligned(const Executable::State::Entry &entry);

  void **getSlots() { return slots.data(); }

  /// A result as the function wrote it.
  struct Result {
    /// The memory that was allocated, and the address of the first element.
    void *buffer;
    char *data;
    llvm::ArrayRef<int64_t> shape;
  };

  /// Calls `visit` with the index of each result and the result.
  void
  visitResults(llvm::function_ref<void(size_t, const Result &)> visit) const;

private:
  /// Calls a function that has the same operands and returns numbers.
  void callCheck(HostJIT::PackedFunction check, int64_t *outcome);

  const Signature &function;
  llvm::SmallVector<int64_t, 96> words;
  int64_t *next;
  llvm::SmallVector<void *, 12> slots;
};

} // namespace fovea

#endif // FOVEA_LIB_DRIVER_CALLFRAME_H
