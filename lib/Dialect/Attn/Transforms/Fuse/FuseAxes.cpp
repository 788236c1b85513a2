//===- FuseAxes.cpp - Iteration spaces as products of axes ----------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FuseAxes.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace fovea::attn::fuse {

Axis AxisTable::create(int64_t size) {
  entries.push_back({size});
  return entries.size() - 1;
}

Axis AxisTable::getLoop(Operation *op, unsigned loop, int64_t size) {
  auto [it, isNew] = loopAxes.try_emplace({op, loop}, 0);
  if (isNew)
    it->second = create(size);
  return it->second;
}

Axis AxisTable::getKVHead(Axis head) {
  auto [it, isNew] = kvHeads.try_emplace(head, 0);
  if (isNew)
    it->second = create(ShapedType::kDynamic);
  return it->second;
}

std::optional<Axis> AxisTable::lookupKVHead(Axis head) const {
  auto it = kvHeads.find(head);
  if (it == kvHeads.end())
    return std::nullopt;
  return it->second;
}

int64_t AxisTable::size(ArrayRef<Axis> axes) const {
  int64_t product = 1;
  for (Axis axis : axes) {
    if (ShapedType::isDynamic(size(axis)))
      return ShapedType::kDynamic;
    product *= size(axis);
  }
  return product;
}

void AxisTable::learn(ArrayRef<Axis> axes, int64_t size) {
  if (ShapedType::isDynamic(size))
    return;
  Entry *unknown = nullptr;
  for (Axis axis : flatten(axes)) {
    Entry &entry = entries[axis];
    if (ShapedType::isDynamic(entry.size)) {
      if (unknown)
        return;
      unknown = &entry;
    } else if (entry.size == 0 || size % entry.size != 0) {
      return;
    } else {
      size /= entry.size;
    }
  }
  if (!unknown)
    return;
  unknown->size = size;
  changed = true;
}

void AxisTable::learn(RankedTensorType type, const Access &access) {
  for (auto [axes, size] : llvm::zip_equal(access, type.getShape()))
    learn(axes, size);
}

void AxisTable::flattenInto(Axis axis, Axes &result) const {
  const Entry &entry = entries[axis];
  if (entry.parts) {
    flattenInto(entry.parts->first, result);
    flattenInto(entry.parts->second, result);
  } else if (entry.size != 1 || entry.isKept) {
    result.push_back(axis);
  }
}

void AxisTable::keep(ArrayRef<Axis> axes) {
  for (Axis axis : axes)
    entries[axis].isKept = true;
}

Axes AxisTable::flatten(ArrayRef<Axis> axes) const {
  Axes result;
  for (Axis axis : axes)
    flattenInto(axis, result);
  return result;
}

Access AxisTable::flatten(const Access &access) const {
  return llvm::map_to_vector<4>(
      access, [&](const Axes &axes) { return flatten(axes); });
}

std::pair<Axis, Axis> AxisTable::split(Axis axis, int64_t outer,
                                       int64_t inner) {
  std::pair<Axis, Axis> parts = {create(outer), create(inner)};
  entries[axis].parts = parts;
  changed = true;
  return parts;
}

std::optional<SmallVector<Axes>> AxisTable::cut(ArrayRef<Axis> axes,
                                                ArrayRef<int64_t> sizes) {
  SmallVector<Axes> pieces(sizes.size());
  Axes rest = flatten(axes);
  if (llvm::is_contained(sizes, 0) ||
      llvm::any_of(rest, [&](Axis axis) { return size(axis) == 0; }))
    return std::nullopt;
  // Pieces [first, last) have no axes yet. They get axes from the innermost
  // outwards as long as sizes are static.
  unsigned first = 0, last = sizes.size();
  for (; last > 0 && !ShapedType::isDynamic(sizes[last - 1]); --last) {
    Axes &piece = pieces[last - 1];
    if (sizes[last - 1] == 1 && !rest.empty() && size(rest.back()) == 1)
      piece.push_back(rest.pop_back_val());
    for (int64_t left = sizes[last - 1]; left != 1;) {
      if (rest.empty())
        return std::nullopt;
      Axis axis = rest.pop_back_val();
      int64_t count = size(axis);
      if (ShapedType::isDynamic(count)) {
        // As the whole product is the same on both sides, the outermost axis is
        // divisible by the remaining size.
        if (!rest.empty())
          return std::nullopt;
        bool whole = llvm::all_of(sizes.take_front(last - 1),
                                  [](int64_t size) { return size == 1; });
        if (whole) {
          entries[axis].size = left;
          changed = true;
        } else {
          auto [outer, inner] = split(axis, ShapedType::kDynamic, left);
          rest.push_back(outer);
          axis = inner;
        }
        left = 1;
      } else if (left % count == 0) {
        left /= count;
      } else if (count % left == 0) {
        auto [outer, inner] = split(axis, count / left, left);
        rest.push_back(outer);
        axis = inner;
        left = 1;
      } else {
        return std::nullopt;
      }
      piece.insert(piece.begin(), axis);
    }
  }
  // Then from the outermost inwards.
  std::reverse(rest.begin(), rest.end());
  for (; first < last && !ShapedType::isDynamic(sizes[first]); ++first) {
    for (int64_t left = sizes[first]; left != 1;) {
      if (rest.empty() || ShapedType::isDynamic(size(rest.back())))
        return std::nullopt;
      Axis axis = rest.pop_back_val();
      int64_t count = size(axis);
      if (left % count == 0) {
        left /= count;
      } else if (count % left == 0) {
        auto [outer, inner] = split(axis, left, count / left);
        rest.push_back(inner);
        axis = outer;
        left = 1;
      } else {
        return std::nullopt;
      }
      pieces[first].push_back(axis);
    }
  }
  std::reverse(rest.begin(), rest.end());
  if (last - first > 1)
    return std::nullopt;
  if (last - first == 1)
    pieces[first] = rest;
  else if (!rest.empty())
    return std::nullopt;
  return pieces;
}

std::optional<Axes> AxisTable::apply(AffineExpr expr, const Loops &loops) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return loops[dim.getPosition()];
  if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
    if (constant.getValue() == 0)
      return Axes();
    return std::nullopt;
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return std::nullopt;
  if (expr.getKind() == AffineExprKind::Add)
    return applySum(binary, loops);
  auto part = dyn_cast<AffineConstantExpr>(binary.getRHS());
  bool isRemainder = expr.getKind() == AffineExprKind::Mod;
  if (!part || part.getValue() <= 0 ||
      (!isRemainder && expr.getKind() != AffineExprKind::FloorDiv))
    return std::nullopt;
  std::optional<Axes> whole = apply(binary.getLHS(), loops);
  if (!whole)
    return std::nullopt;
  // An unknown size need not be a multiple of the factor.
  int64_t size = this->size(flatten(*whole));
  if (ShapedType::isDynamic(size) || size % part.getValue() != 0)
    return std::nullopt;
  std::optional<SmallVector<Axes>> parts =
      cut(*whole, {size / part.getValue(), part.getValue()});
  if (!parts)
    return std::nullopt;
  return (*parts)[isRemainder];
}

std::optional<Axes> AxisTable::applySum(AffineBinaryOpExpr sum,
                                        const Loops &loops) {
  auto scaled = dyn_cast<AffineBinaryOpExpr>(sum.getLHS());
  if (!scaled || scaled.getKind() != AffineExprKind::Mul)
    return std::nullopt;
  auto stride = dyn_cast<AffineConstantExpr>(scaled.getRHS());
  std::optional<Axes> outer = apply(scaled.getLHS(), loops);
  std::optional<Axes> inner = apply(sum.getRHS(), loops);
  if (!stride || !outer || !inner || stride.getValue() != size(flatten(*inner)))
    return std::nullopt;
  outer->append(*inner);
  return outer;
}

std::optional<Access> AxisTable::apply(AffineMap map, const Loops &loops) {
  Access access;
  for (AffineExpr expr : map.getResults()) {
    std::optional<Axes> axes = apply(expr, loops);
    if (!axes)
      return std::nullopt;
    access.push_back(*axes);
  }
  return access;
}

} // namespace fovea::attn::fuse
