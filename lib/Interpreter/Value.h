//===- Value.h - What the interpreter computes on ---------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_INTERPRETER_VALUE_H
#define FOVEA_LIB_INTERPRETER_VALUE_H

#include "mlir/IR/Types.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <memory>
#include <string>
#include <vector>

namespace fovea::interpreter {

/// A number: a float of any width as f64, an integer or index of any width
/// with its sign extended to 64 bits.
union Scalar {
  double f;
  int64_t i;
};

/// How a scalar type is stored and rounded.
struct Format {
  enum Kind { None, F16, BF16, F32, F64, Integer };

  Kind kind = None;
  unsigned width = 0;

  /// Of a float, integer or index, or of the elements of a shaped type or
  /// fragment; `None` for other types.
  static Format get(mlir::Type type);

  bool isFloat() const { return kind != None && kind != Integer; }
  int64_t getBytes() const { return (width + 7) / 8; }
  /// A value as the type has it.
  double round(double value) const;
  int64_t wrap(int64_t value) const;
  uint64_t getUnsigned(int64_t value) const;
  Scalar read(const char *data) const;
  void write(char *data, Scalar value) const;
};

/// What is not a number: shared by the values that name it.
struct Object {
  virtual ~Object() = default;
};

/// Why a number has no value.
struct Poison {
  /// What could not compute it.
  mlir::Operation *op;
  std::string reason;
};

struct Datum {
  Scalar scalar;
  std::shared_ptr<Object> object;
  /// Set for a number without a value, which may be passed on and discarded,
  /// but not be used.
  const Poison *poison = nullptr;
};

/// Memory that was allocated at once.
struct Storage {
  explicit Storage(int64_t bytes);

  char *data() { return bytes.data() + start; }
  /// In bytes.
  int64_t size() const { return numBytes; }

  /// The blocks of a launch that wrote an element, that read it, and that added
  /// to it.
  struct Access {
    static constexpr int32_t kNone = -1, kSeveral = -2;
    int32_t writer = kNone, reader = kNone, adder = kNone;
  };
  /// By the element's number of bytes from the start.
  std::vector<Access> accesses;
  /// The launch that `accesses` is of.
  int64_t launch = 0;
  bool isFreed = false;

private:
  std::vector<char> bytes;
  int64_t numBytes, start;
};

struct MemRef : Object {
  std::shared_ptr<Storage> storage;
  Format format;
  /// Elements from the storage's start.
  int64_t offset = 0;
  llvm::SmallVector<int64_t, 5> sizes, strides;

  int64_t getIndex(llvm::ArrayRef<int64_t> indices) const;
  char *getElement(int64_t index) const {
    return storage->data() + index * format.getBytes();
  }
  int64_t getNumElements() const;
};

/// A new tensor in row-major order; its floats are NaN.
std::shared_ptr<MemRef> allocate(Format format, llvm::ArrayRef<int64_t> sizes);

/// Calls `visit` with every index of a shape, the last dimension fastest, until
/// it returns false. Returns whether it never did.
bool forEachIndex(llvm::ArrayRef<int64_t> sizes,
                  llvm::function_ref<bool(llvm::ArrayRef<int64_t>)> visit);

/// The elements of a tile in registers, row-major.
struct Fragment : Object {
  Fragment(llvm::ArrayRef<int64_t> shape, Format format);

  llvm::SmallVector<int64_t, 2> shape;
  Format format;
  std::vector<Scalar> elements;
  /// Of each element, see `Datum`; empty where all have values.
  std::vector<const Poison *> poison;
  /// The product that adds to these registers now.
  mlir::Operation *product = nullptr;
  /// All elements are one value, so that registers are made as needed.
  bool isFill = false;
};

} // namespace fovea::interpreter

#endif // FOVEA_LIB_INTERPRETER_VALUE_H
