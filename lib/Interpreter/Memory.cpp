//===- Memory.cpp - Global memory of the interpreter ----------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ThreadBlock.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include "llvm/Support/MathExtras.h"

#include <cstring>
#include <numeric>

using namespace mlir;
using namespace fovea;
using namespace fovea::interpreter;

Status interpreter::checkGlobalAccess(Fiber &fiber, Operation *op,
                                      const MemRef &memref, int64_t index,
                                      AccessKind kind) {
  Storage &storage = *memref.storage;
  if (storage.isFreed) {
    fiber.emitError(op) << "accesses memory that was deallocated";
    return Status::Failed;
  }
  if (!fiber.block)
    return Status::Next;
  if (storage.launch != fiber.machine.launch) {
    storage.launch = fiber.machine.launch;
    storage.accesses.assign(storage.size(), {});
  }
  using Access = Storage::Access;
  Access &access = storage.accesses[index * memref.format.getBytes()];
  int32_t block = fiber.block->getNumber();
  bool isRead = kind == AccessKind::Read, isAdd = kind == AccessKind::Add;
  // Additions happen at an unknown time, so the block's own other accesses must
  // not touch the same element either.
  auto isFault = [&](int32_t number, bool isOfAdder) {
    return number != Access::kNone && (number != block || isAdd || isOfAdder);
  };
  auto report = [&](int32_t other, StringRef did) {
    fiber.emitError(op) << (isAdd    ? "adds to"
                            : isRead ? "reads"
                                     : "writes")
                        << " an element of global memory that "
                        << (other == Access::kSeveral
                                ? "several blocks"
                                : "block " + fiber.block->formatIndex(other))
                        << " of the same launch " << did;
    return Status::Failed;
  };
  bool isSeen = isRead && fiber.block->sees(access.writer, access.signals);
  if (!isSeen && isFault(access.writer, /*isOfAdder=*/false))
    return report(access.writer, "wrote");
  if (!isRead && isFault(access.reader, /*isOfAdder=*/false))
    return report(access.reader, "read");
  if (!isAdd && isFault(access.adder, /*isOfAdder=*/true))
    return report(access.adder, "added to");
  int32_t &user = isRead ? access.reader : isAdd ? access.adder : access.writer;
  user = user == Access::kNone || user == block ? block : Access::kSeveral;
  if (!isRead && !isAdd)
    access.signals = fiber.block->getSignals();
  return Status::Next;
}

static std::shared_ptr<MemRef> copyDescriptor(Fiber &fiber,
                                              const Instruction &op) {
  return std::make_shared<MemRef>(fiber.get<MemRef>(op, 0));
}

/// Returns sizes, offsets or strides: those that are not static are operands,
/// the first of them number `next`.
static SmallVector<int64_t, 5> resolve(Fiber &fiber, const Instruction &op,
                                       ArrayRef<int64_t> statics,
                                       size_t &next) {
  SmallVector<int64_t, 5> values;
  for (int64_t value : statics)
    values.push_back(ShapedType::isDynamic(value) ? fiber.getInt(op, next++)
                                                  : value);
  return values;
}

/// Returns the element at the indices from operand `first` on, or nullopt where
/// it is out of bounds.
static std::optional<int64_t> locate(Fiber &fiber, const Instruction &op,
                                     const MemRef &memref, size_t first) {
  SmallVector<int64_t, 5> indices;
  for (auto [dim, size] : llvm::enumerate(memref.sizes)) {
    indices.push_back(fiber.getInt(op, first + dim));
    if (indices.back() >= 0 && indices.back() < size)
      continue;
    fiber.emitError(op.op) << "is out of bounds: index " << indices.back()
                           << " of dimension " << dim << " of size " << size;
    return std::nullopt;
  }
  return memref.getIndex(indices);
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

static Status load(Fiber &fiber, const Instruction &op) {
  auto &memref = fiber.get<MemRef>(op, 0);
  std::optional<int64_t> index = locate(fiber, op, memref, 1);
  if (!index || checkGlobalAccess(fiber, op.op, memref, *index,
                                  AccessKind::Read) != Status::Next)
    return Status::Failed;
  fiber.result(op).scalar = memref.format.read(memref.getElement(*index));
  return Status::Next;
}

static Status store(Fiber &fiber, const Instruction &op) {
  auto &memref = fiber.get<MemRef>(op, 1);
  std::optional<int64_t> index = locate(fiber, op, memref, 2);
  if (!index || checkGlobalAccess(fiber, op.op, memref, *index,
                                  AccessKind::Write) != Status::Next)
    return Status::Failed;
  memref.format.write(memref.getElement(*index), fiber.operand(op, 0).scalar);
  return Status::Next;
}

static Status add(Fiber &fiber, const Instruction &op) {
  auto addition = cast<memref::AtomicRMWOp>(op.op);
  bool adds = addition.getKind() == arith::AtomicRMWKind::addf ||
              addition.getKind() == arith::AtomicRMWKind::addi;
  if (!adds || !addition.getResult().use_empty()) {
    fiber.emitError(op.op) << "expected `addf` or `addi` whose result is not "
                              "used, got "
                           << stringifyAtomicRMWKind(addition.getKind());
    return Status::Failed;
  }
  auto &memref = fiber.get<MemRef>(op, 1);
  std::optional<int64_t> index = locate(fiber, op, memref, 2);
  if (!index || checkGlobalAccess(fiber, op.op, memref, *index,
                                  AccessKind::Add) != Status::Next)
    return Status::Failed;
  fiber.machine.additions[fiber.block->getNumber()].push_back(
      {memref, *index, fiber.operand(op, 0).scalar});
  return Status::Next;
}

static Status copy(Fiber &fiber, const Instruction &op) {
  auto &source = fiber.get<MemRef>(op, 0);
  auto &target = fiber.get<MemRef>(op, 1);
  if (source.sizes != target.sizes) {
    fiber.emitError(op.op) << "copies a memref of sizes " << source.sizes
                           << " to one of " << target.sizes;
    return Status::Failed;
  }
  bool done = forEachIndex(source.sizes, [&](ArrayRef<int64_t> indices) {
    int64_t from = source.getIndex(indices), to = target.getIndex(indices);
    if (checkGlobalAccess(fiber, op.op, source, from, AccessKind::Read) !=
            Status::Next ||
        checkGlobalAccess(fiber, op.op, target, to, AccessKind::Write) !=
            Status::Next)
      return false;
    std::memcpy(target.getElement(to), source.getElement(from),
                source.format.getBytes());
    return true;
  });
  return done ? Status::Next : Status::Failed;
}

//===----------------------------------------------------------------------===//
// Allocations
//===----------------------------------------------------------------------===//

static Status alloc(Fiber &fiber, const Instruction &op) {
  auto type = cast<MemRefType>(op.op->getResult(0).getType());
  size_t next = 0;
  SmallVector<int64_t, 5> sizes = resolve(fiber, op, type.getShape(), next);
  // The most memory that a simulation can reasonably use.
  constexpr int64_t kMostBytes = int64_t(1) << 34;
  int64_t bytes = op.format.getBytes();
  for (int64_t size : sizes) {
    if (size < 0) {
      fiber.emitError(op.op) << "has a size of " << size;
      return Status::Failed;
    }
    if (llvm::MulOverflow(bytes, size, bytes) || bytes > kMostBytes) {
      fiber.emitError(op.op)
          << "is of sizes " << sizes << ", too large to simulate";
      return Status::Failed;
    }
  }
  return fiber.setObject(op, allocate(op.format, sizes));
}

static Status dealloc(Fiber &fiber, const Instruction &op) {
  bool &isFreed = fiber.get<MemRef>(op, 0).storage->isFreed;
  if (isFreed) {
    fiber.emitError(op.op) << "frees memory that was deallocated";
    return Status::Failed;
  }
  isFreed = true;
  return Status::Next;
}

static Status getGlobal(Fiber &fiber, const Instruction &op) {
  auto getOp = cast<memref::GetGlobalOp>(op.op);
  auto global = SymbolTable::lookupNearestSymbolFrom<memref::GlobalOp>(
      getOp, getOp.getNameAttr());
  std::shared_ptr<MemRef> &memref = fiber.machine.globals[global];
  if (!memref) {
    auto elements = dyn_cast_or_null<DenseElementsAttr>(
        global.getInitialValue().value_or(Attribute()));
    if (!elements) {
      fiber.emitError(op.op) << "is of a global without dense elements";
      return Status::Failed;
    }
    memref = allocate(op.format, global.getType().getShape());
    int64_t index = 0;
    if (op.format.isFloat())
      for (const APFloat &element : elements.getValues<APFloat>())
        op.format.write(memref->getElement(index++),
                        {.f = element.convertToDouble()});
    else
      for (const APInt &element : elements.getValues<APInt>())
        op.format.write(memref->getElement(index++),
                        {.i = element.getSExtValue()});
  }
  return fiber.setObject(op, memref);
}

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

static Status passThrough(Fiber &fiber, const Instruction &op) {
  return fiber.setObject(op, fiber.operand(op, 0).object);
}

static Status castMemRef(Fiber &fiber, const Instruction &op) {
  auto type = dyn_cast<MemRefType>(op.op->getResult(0).getType());
  auto &memref = fiber.get<MemRef>(op, 0);
  if (type)
    for (auto [dim, size] : llvm::enumerate(type.getShape()))
      if (!ShapedType::isDynamic(size) && size != memref.sizes[dim]) {
        fiber.emitError(op.op) << "casts to size " << size << " of dimension "
                               << dim << ", which has " << memref.sizes[dim];
        return Status::Failed;
      }
  return passThrough(fiber, op);
}

static Status subview(Fiber &fiber, const Instruction &op) {
  auto view = cast<memref::SubViewOp>(op.op);
  auto &source = fiber.get<MemRef>(op, 0);
  size_t next = 1;
  auto offsets = resolve(fiber, op, view.getStaticOffsets(), next);
  auto sizes = resolve(fiber, op, view.getStaticSizes(), next);
  auto steps = resolve(fiber, op, view.getStaticStrides(), next);
  llvm::SmallBitVector dropped = view.getDroppedDims();
  auto result = copyDescriptor(fiber, op);
  result->offset = source.getIndex(offsets);
  result->sizes.clear();
  result->strides.clear();
  for (auto [dim, size] : llvm::enumerate(sizes)) {
    int64_t last = offsets[dim] + (size - 1) * steps[dim];
    if (offsets[dim] < 0 || size < 0 ||
        (size > 0 && (last < 0 || last >= source.sizes[dim]))) {
      fiber.emitError(op.op)
          << "is out of bounds: " << size << " from " << offsets[dim]
          << " of dimension " << dim << " of size " << source.sizes[dim];
      return Status::Failed;
    }
    if (dropped.test(dim))
      continue;
    result->sizes.push_back(size);
    result->strides.push_back(source.strides[dim] * steps[dim]);
  }
  return fiber.setObject(op, result);
}

static Status reinterpretCast(Fiber &fiber, const Instruction &op) {
  auto view = cast<memref::ReinterpretCastOp>(op.op);
  size_t next = 1;
  auto result = copyDescriptor(fiber, op);
  result->offset = resolve(fiber, op, view.getStaticOffsets(), next).front();
  result->sizes = resolve(fiber, op, view.getStaticSizes(), next);
  result->strides = resolve(fiber, op, view.getStaticStrides(), next);
  return fiber.setObject(op, result);
}

static Status expandShape(Fiber &fiber, const Instruction &op) {
  auto view = cast<memref::ExpandShapeOp>(op.op);
  auto &source = fiber.get<MemRef>(op, 0);
  size_t next = 1;
  auto result = copyDescriptor(fiber, op);
  result->sizes = resolve(fiber, op, view.getStaticOutputShape(), next);
  result->strides.resize(result->sizes.size());
  for (auto [dim, group] : llvm::enumerate(view.getReassociationIndices())) {
    int64_t stride = source.strides[dim], count = 1;
    for (int64_t part : llvm::reverse(group)) {
      result->strides[part] = stride;
      stride *= result->sizes[part];
      count *= result->sizes[part];
    }
    if (count == source.sizes[dim])
      continue;
    fiber.emitError(op.op) << "expands dimension " << dim << " of size "
                           << source.sizes[dim] << " to " << count
                           << " elements";
    return Status::Failed;
  }
  return fiber.setObject(op, result);
}

static Status collapseShape(Fiber &fiber, const Instruction &op) {
  auto view = cast<memref::CollapseShapeOp>(op.op);
  auto &source = fiber.get<MemRef>(op, 0);
  auto result = copyDescriptor(fiber, op);
  result->sizes.clear();
  result->strides.clear();
  for (ArrayRef<int64_t> group : view.getReassociationIndices()) {
    int64_t size = 1, stride = 1;
    for (int64_t dim : llvm::reverse(group)) {
      if (source.sizes[dim] == 1)
        continue;
      if (size == 1)
        stride = source.strides[dim];
      else if (source.strides[dim] != stride * size && size) {
        fiber.emitError(op.op) << "collapses dimension " << dim
                               << ", whose elements do not follow one another";
        return Status::Failed;
      }
      size *= source.sizes[dim];
    }
    result->sizes.push_back(size);
    result->strides.push_back(stride);
  }
  return fiber.setObject(op, result);
}

static Status transpose(Fiber &fiber, const Instruction &op) {
  auto &source = fiber.get<MemRef>(op, 0);
  AffineMap map = cast<memref::TransposeOp>(op.op).getPermutation();
  auto result = copyDescriptor(fiber, op);
  for (unsigned dim = 0; dim < map.getNumResults(); ++dim) {
    result->sizes[dim] = source.sizes[map.getDimPosition(dim)];
    result->strides[dim] = source.strides[map.getDimPosition(dim)];
  }
  return fiber.setObject(op, result);
}

static Status dim(Fiber &fiber, const Instruction &op) {
  auto &memref = fiber.get<MemRef>(op, 0);
  int64_t index = fiber.getInt(op, 1);
  if (index < 0 || index >= int64_t(memref.sizes.size())) {
    fiber.emitError(op.op) << "asks for dimension " << index << " of "
                           << memref.sizes.size();
    return Status::Failed;
  }
  return fiber.setInt(op, memref.sizes[index]);
}

static Status extractMetadata(Fiber &fiber, const Instruction &op) {
  auto &source = fiber.get<MemRef>(op, 0);
  auto base = copyDescriptor(fiber, op);
  base->offset = 0;
  base->sizes.clear();
  base->strides.clear();
  fiber.setObject(op, base);
  fiber.setInt(op, source.offset, 1);
  size_t rank = source.sizes.size();
  for (size_t index = 0; index < rank; ++index) {
    fiber.setInt(op, source.sizes[index], 2 + index);
    fiber.setInt(op, source.strides[index], 2 + rank + index);
  }
  return Status::Next;
}

static Status extractPointer(Fiber &fiber, const Instruction &op) {
  return fiber.setInt(
      op, reinterpret_cast<intptr_t>(fiber.get<MemRef>(op, 0).storage->data()));
}

void interpreter::addMemoryHandlers(llvm::StringMap<Handler> &handlers) {
  handlers["memref.load"] = load;
  handlers["memref.store"] = store;
  handlers["memref.atomic_rmw"] = add;
  handlers["memref.copy"] = copy;
  handlers["memref.alloc"] = alloc;
  handlers["memref.alloca"] = alloc;
  handlers["memref.dealloc"] = dealloc;
  handlers["memref.get_global"] = getGlobal;
  handlers["memref.assume_alignment"] = passThrough;
  handlers["memref.memory_space_cast"] = passThrough;
  handlers["memref.cast"] = castMemRef;
  handlers["memref.subview"] = subview;
  handlers["memref.reinterpret_cast"] = reinterpretCast;
  handlers["memref.expand_shape"] = expandShape;
  handlers["memref.collapse_shape"] = collapseShape;
  handlers["memref.transpose"] = transpose;
  handlers["memref.dim"] = dim;
  handlers["memref.extract_strided_metadata"] = extractMetadata;
  handlers["memref.extract_aligned_pointer_as_index"] = extractPointer;
}
