//===- Access.h - Elements of tiles in memory -------------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_TILETONVVM_ACCESS_H
#define FOVEA_LIB_CONVERSION_TILETONVVM_ACCESS_H

#include "Patterns.h"

namespace fovea::tile {

/// Bytes that one instruction copies at most.
inline constexpr int64_t kCopyBytes = 16;

/// Returns the number of elements that one instruction takes from neighbouring
/// registers, where neighbours along the last dimension are neighbours in
/// memory.
int64_t getVectorWidth(LayoutAttr layout, int64_t elementBytes);

/// The part of a column that depends on the thread: an i32, and the bits of it
/// that may be set.
struct ThreadPart {
  mlir::Value value;
  uint64_t bits;
};

/// Returns the number that the executing thread adds to coordinate `dim` of its
/// elements.
ThreadPart getThreadPart(mlir::OpBuilder &builder, mlir::Operation *op,
                         LayoutAttr layout, int64_t dim);

/// Access to a tile in shared memory by elements whose coordinates are one part
/// that depends on the thread plus a constant.
class SharedAccess {
public:
  SharedAccess(mlir::OpBuilder &builder, mlir::Location loc, SharedType type,
               mlir::Value address, mlir::Value row, ThreadPart column);

  /// A pointer to the element whose coordinates have these constants.
  mlir::Value getPointer(int64_t row, int64_t column);

private:
  /// Returns the address of the element at any two coordinates.
  mlir::Value getAddress(mlir::Value row, mlir::Value column);

  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value addConstant(mlir::Value a, int64_t b);
  mlir::Value scale(mlir::Value a, int64_t factor);
  mlir::Value divide(mlir::Value a, int64_t b);
  mlir::Value remainder(mlir::Value a, int64_t b);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  SharedType type;
  mlir::Value address;
  mlir::Value row;
  ThreadPart column;
  /// The address of the element at the thread's coordinates.
  mlir::Value first;
  llvm::DenseMap<int64_t, mlir::Value> units;
};

/// Returns the bytes of an element of a memref.
int64_t getElementBytes(mlir::MemRefType type);

/// A tile of a memref in global memory that begins at `indices` and whose
/// dimension n runs along dimension `dims[n]`; with `inner`, a power of two,
/// that many neighbouring rows run along `dims[1]`, of which only the first
/// `used` exist, and other dimensions along the one behind.
class GlobalAccess {
public:
  GlobalAccess(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value memref,
               mlir::ValueRange indices, llvm::ArrayRef<int64_t> dims,
               llvm::ArrayRef<int64_t> shape, int64_t inner = 0,
               int64_t used = 0);

  int64_t getElementBytes() const { return elementBytes; }

  /// Returns true if dimension `dim` of every such tile lies within the memref.
  bool isWhole(int64_t dim) const {
    return !left[dim] && (dim > 0 || !hasUnusedRows());
  }

  /// Returns true if there are rows at places that do not exist.
  bool hasUnusedRows() const { return used < inner; }

  /// Returns the number of elements of dimension `dim` that lie within the
  /// memref, an i32 from 0 to the tile's size.
  mlir::Value getLeft(int64_t dim);

  /// Limits dimension `dim` to `count` elements, an index.
  void limit(int64_t dim, mlir::Value count);

  /// Limits the rows to those from `rows[0]` to below `rows[1]`, indices; no
  /// limit if `rows` is empty.
  void limitRows(mlir::ValueRange rows);

  /// Returns true if coordinate `place`, an i32, of dimension `dim` is within
  /// the memref and the limits; null: it always is.
  mlir::Value isWithin(int64_t dim, mlir::Value place);

  /// Returns true if the tile's last dimension is contiguous.
  bool isContiguous() const {
    return strides.back() == nullptr && (!inner || strides.size() > 1);
  }

  /// Returns true if rows that are `step` apart are as far apart in memory
  /// wherever they begin at a multiple of it.
  bool isEven(int64_t step) const {
    return !inner || step % inner == 0 || inner % step == 0;
  }

  /// Returns true, as an i1, if every row of the tile begins at a multiple of
  /// `bytes`.
  mlir::Value isAligned(int64_t bytes);

  /// A pointer to the element of these coordinates, i32s.
  mlir::Value getPointer(mlir::ValueRange coordinates);

  /// A pointer `offsets` elements, along each dimension, from `pointer`. Of
  /// rows that run along two dimensions the sum of the coordinate of `pointer`
  /// and the offset carries nothing from the places of the second to the first.
  mlir::Value move(mlir::Value pointer, llvm::ArrayRef<int64_t> offsets);

private:
  mlir::Value toI64(mlir::Value value);
  mlir::Value getI64(int64_t value);
  mlir::Value moveBytes(mlir::Value pointer, mlir::Value bytes);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  int64_t elementBytes;
  /// The tile's first element, an i64.
  mlir::Value address;
  /// Bytes from one element to the next, i64; null: the size of an element.
  llvm::SmallVector<mlir::Value> strides;
  /// The same of the rows along a second dimension, how many these are, and how
  /// many of them exist; 0: there is none.
  mlir::Value innerStride;
  int64_t inner, used;
  /// The elements within the memref in each dimension; null: all.
  llvm::SmallVector<mlir::Value> left;
  /// The first row, an i32; null: 0.
  mlir::Value firstRow;
  llvm::SmallVector<int64_t> shape;
};

} // namespace fovea::tile

#endif // FOVEA_LIB_CONVERSION_TILETONVVM_ACCESS_H
