//===- WidenBytes.cpp - Bytes in registers as numbers of 16 bits ----------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WidenBytes.h"

#include "InlinePtx.h"

using namespace mlir;
using namespace fovea::tile;

/// Puts the second of four bytes, $2, behind the third (`prmt`, PTX ISA
/// 9.7.9.7).
static constexpr StringLiteral kOrder = "{\n.reg .b32 bytes;\n"
                                        "prmt.b32 bytes, $2, 0, 0x3120;\n";
static constexpr StringLiteral kKeep = "{\n.reg .b32 bytes;\n"
                                       "mov.b32 bytes, $2;\n";
static constexpr StringLiteral kToHalves = ".reg .b16 low, high;\n"
                                           "mov.b32 {low, high}, bytes;\n"
                                           "cvt.rn.f16x2.e4m3x2 $0, low;\n"
                                           "cvt.rn.f16x2.e4m3x2 $1, high;\n}";
static constexpr StringLiteral kToBfloats =
    ".reg .b16 low, high, a, b, c, d;\n"
    ".reg .b32 first, second;\n"
    ".reg .f32 p, q, r, s;\n"
    "mov.b32 {low, high}, bytes;\n"
    "cvt.rn.f16x2.e4m3x2 first, low;\n"
    "cvt.rn.f16x2.e4m3x2 second, high;\n"
    "mov.b32 {a, b}, first;\n"
    "mov.b32 {c, d}, second;\n"
    "cvt.f32.f16 p, a;\n"
    "cvt.f32.f16 q, b;\n"
    "cvt.f32.f16 r, c;\n"
    "cvt.f32.f16 s, d;\n"
    "cvt.rn.bf16x2.f32 $0, q, p;\n"
    "cvt.rn.bf16x2.f32 $1, s, r;\n}";

std::pair<Value, Value> fovea::tile::widenBytes(OpBuilder &builder,
                                                Location loc, Value bytes,
                                                Type type, bool everyOther) {
  Type word = builder.getI32Type();
  SmallVector<Value> pairs =
      emitPtx(builder, loc,
              Twine(everyOther ? kOrder : kKeep) +
                  (type.isF16() ? kToHalves : kToBfloats),
              bytes, {word, word});
  return {pairs[0], pairs[1]};
}
