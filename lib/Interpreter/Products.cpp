//===- Products.cpp - Products of the interpreter -------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ThreadBlock.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::interpreter;

/// Adds `a: MxK` times `b: KxN`, or `NxK`, to `accumulator`, in `rows`.
static void multiply(ArrayRef<Scalar> a, ArrayRef<Scalar> b, bool transposeB,
                     std::pair<int64_t, int64_t> range, RowRange rows,
                     const Fragment *accumulator, Fragment &result) {
  int64_t columns = result.shape[1];
  int64_t inner = a.size() / result.shape[0];
  std::vector<double> sums(columns);
  for (int64_t row = rows.first; row < rows.end; ++row) {
    for (int64_t column = 0; column < columns; ++column)
      sums[column] =
          accumulator ? accumulator->elements[row * columns + column].f : 0;
    for (int64_t k = range.first; k < range.second; ++k) {
      double left = a[row * inner + k].f;
      if (transposeB)
        for (int64_t column = 0; column < columns; ++column)
          sums[column] += left * b[column * inner + k].f;
      else
        for (int64_t column = 0; column < columns; ++column)
          sums[column] += left * b[k * columns + column].f;
    }
    for (int64_t column = 0; column < columns; ++column)
      result.elements[row * columns + column].f =
          result.format.round(sums[column]);
  }
}

Status interpreter::compute(Fiber &fiber, Product &product) {
  product.isDone = true;
  std::vector<Scalar> a, b;
  ArrayRef<Scalar> left;
  if (auto *fragment = dynamic_cast<Fragment *>(product.a.get())) {
    left = fragment->elements;
  } else {
    if (readTile(fiber, product.op, static_cast<const SharedTile &>(*product.a),
                 a, product.result->shape[0]) != Status::Next)
      return Status::Failed;
    left = a;
  }
  if (readTile(fiber, product.op, *product.b, b) != Status::Next)
    return Status::Failed;
  if (product.op->hasAttr("from"))
    widenBytes(b);
  RowRange rows = fiber.role->getOwnRows(product.result->shape[0]);
  if (auto needed = product.op->getAttrOfType<IntegerAttr>("rows"))
    rows.end = std::min(rows.end, needed.getInt());
  multiply(left, b, product.op->hasAttr("transpose_b"), product.inner, rows,
           product.accumulator.get(), *product.result);
  return Status::Next;
}

std::shared_ptr<Fragment>
interpreter::readFragment(Fiber &fiber, const Instruction &op, size_t index) {
  auto fragment = fiber.share<Fragment>(op, index);
  // A map passes on elements without a value.
  if (!isa<tile::MapOp>(op.op))
    for (const Poison *poison : fragment->poison)
      if (poison) {
        fiber.reportPoison(*poison, op.op);
        return nullptr;
      }
  if (!fragment->product)
    return fragment;
  fiber.emitError(op.op)
          .append("reads an accumulator while a product adds to it")
          .attachNote(fragment->product->getLoc())
      << "this product, which no wait covers yet";
  return nullptr;
}

std::shared_ptr<Fragment> interpreter::makeFragment(tile::FragmentType type) {
  return std::make_shared<Fragment>(type.getShape(), Format::get(type));
}

/// Reads the operands of a product.
template <typename Op>
static std::optional<Product> readProduct(Fiber &fiber, const Instruction &op,
                                          tile::FragmentType type) {
  auto mma = cast<Op>(op.op);
  Product product;
  product.op = op.op;
  product.a = fiber.operand(op, 0).object;
  if (isa<tile::FragmentType>(mma.getA().getType())) {
    product.a = readFragment(fiber, op, 0);
    if (!product.a)
      return std::nullopt;
  }
  product.b = fiber.share<SharedTile>(op, 1);
  product.inner = mma.getInnerRange();
  if (mma.getAcc() && isa<tile::TokenType>(mma.getAcc().getType())) {
    product.accumulator = fiber.get<Token>(op, 2).fragment;
  } else if (mma.getAcc()) {
    product.accumulator = readFragment(fiber, op, 2);
    if (!product.accumulator)
      return std::nullopt;
  }
  product.result = makeFragment(type);
  return product;
}

static Status mma(Fiber &fiber, const Instruction &op) {
  auto product = readProduct<tile::MmaOp>(
      fiber, op, cast<tile::MmaOp>(op.op).getResult().getType());
  if (!product || compute(fiber, *product) != Status::Next)
    return Status::Failed;
  return fiber.setObject(op, product->result);
}

static Status mmaAsync(Fiber &fiber, const Instruction &op) {
  auto product = readProduct<tile::MmaAsyncOp>(
      fiber, op,
      cast<tile::MmaAsyncOp>(op.op).getToken().getType().getFragment());
  if (!product)
    return Status::Failed;
  // The operands must be there when the product is issued; they are read later.
  auto *a = dynamic_cast<const SharedTile *>(product->a.get());
  if ((a && checkTile(fiber, op.op, *a) != Status::Next) ||
      checkTile(fiber, op.op, *product->b) != Status::Next)
    return Status::Failed;
  if (product->accumulator && !product->accumulator->isFill)
    product->accumulator->product = op.op;
  auto token = std::make_shared<Token>();
  token->fragment = product->result;
  token->number = fiber.role->numIssued++;
  fiber.role->products.push_back(std::move(*product));
  return fiber.setObject(op, token);
}

static Status waitMma(Fiber &fiber, const Instruction &op) {
  auto &token = fiber.get<Token>(op, 0);
  Role &role = *fiber.role;
  int64_t pending = cast<tile::WaitMmaOp>(op.op).getPending();
  int64_t later = role.numIssued - 1 - token.number;
  if (token.number >= role.getFirstNumber() && pending > later) {
    fiber.emitError(op.op)
        << "leaves " << pending << " products in flight, but only " << later
        << " were issued after the one that it is for, which so may be among "
           "them";
    return Status::Failed;
  }
  while (int64_t(role.products.size()) > pending) {
    Product &product = role.products.front();
    if (!product.isDone && compute(fiber, product) != Status::Next)
      return Status::Failed;
    if (product.accumulator)
      product.accumulator->product = nullptr;
    role.products.pop_front();
  }
  return fiber.setObject(op, token.fragment);
}

void interpreter::addProductHandlers(llvm::StringMap<Handler> &handlers) {
  handlers["tile.mma"] = inLaunch<mma>;
  handlers["tile.mma_async"] = inLaunch<mmaAsync>;
  handlers["tile.wait_mma"] = inLaunch<waitMma>;
}
