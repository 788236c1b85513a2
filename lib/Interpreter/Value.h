//===- Value.h - Values of the interpreter ----------------------*- C++ -*-===//
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

/// The storage and rounding of a scalar type.
struct Format {
  enum Kind { None, F16, BF16, F32, F64, Integer };

  Kind kind = None;
  unsigned width = 0;

  /// Returns the format of a float, integer or index, or of the elements of a
  /// shaped type or fragment; `None` for other types.
  static Format get(mlir::Type type);

  bool isFloat() const { return kind != None && kind != Integer; }
  int64_t getBytes() const { return (width + 7) / 8; }
  /// Returns a value rounded to the type.
  double round(double value) const;
  int64_t wrap(int64_t value) const;
  uint64_t getUnsigned(int64_t value) const;
  Scalar read(const char *data) const;
  void write(char *data, Scalar value) const;
};

/// A value that is not a number; the values that name it share it.
struct Object {
  virtual ~Object() = default;
};

/// The reason that a number has no value.
struct Poison {
  /// The op that could not compute it.
  mlir::Operation *op;
  std::string reason;
};

struct Datum {
  Scalar scalar;
  std::shared_ptr<Object> object;
  /// Set for a number without a value, which may be passed on and discarded,
  /// but not used.
  const Poison *poison = nullptr;
};

/// Memory from one allocation.
struct Storage {
  explicit Storage(int64_t bytes);

  char *data() { return bytes.data() + start; }
  /// The size in bytes.
  int64_t size() const { return numBytes; }

  /// The blocks of a launch that wrote an element, that read it, and that added
  /// to it.
  struct Access {
    static constexpr int32_t kNone = -1, kSeveral = -2;
    int32_t writer = kNone, reader = kNone, adder = kNone;
    /// How often the writer had signalled other blocks before it wrote.
    int32_t signals = 0;
  };
  /// Accesses by the element's offset in bytes from the start.
  std::vector<Access> accesses;
  /// The launch that `accesses` belong to.
  int64_t launch = 0;
  bool isFreed = false;

private:
  std::vector<char> bytes;
  int64_t numBytes, start;
};

struct MemRef : Object {
  std::shared_ptr<Storage> storage;
  Format format;
  /// Offset in elements from the storage's start.
  int64_t offset = 0;
  llvm::SmallVector<int64_t, 5> sizes, strides;

  int64_t getIndex(llvm::ArrayRef<int64_t> indices) const;
  char *getElement(int64_t index) const {
    return storage->data() + index * format.getBytes();
  }
  int64_t getNumElements() const;
};

/// Returns a new tensor in row-major order; its floats are NaN.
std::shared_ptr<MemRef> allocate(Format format, llvm::ArrayRef<int64_t> sizes);

/// Calls `visit` with every index of a shape, the last dimension fastest, until
/// it returns false. Returns true if it never did.
bool forEachIndex(llvm::ArrayRef<int64_t> sizes,
                  llvm::function_ref<bool(llvm::ArrayRef<int64_t>)> visit);

/// The elements of a tile in registers, row-major.
struct Fragment : Object {
  Fragment(llvm::ArrayRef<int64_t> shape, Format format);

  llvm::SmallVector<int64_t, 2> shape;
  Format format;
  std::vector<Scalar> elements;
  /// The poison of each element, see `Datum`; empty where all have values.
  std::vector<const Poison *> poison;
  /// The product that adds to these registers now.
  mlir::Operation *product = nullptr;
  /// True if all elements have one value, so that registers are made as needed.
  bool isFill = false;
};

} // namespace fovea::interpreter

#endif // FOVEA_LIB_INTERPRETER_VALUE_H
