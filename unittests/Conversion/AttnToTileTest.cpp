//===- AttnToTileTest.cpp - Programs of attention against its formula -----===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiles attention to programs of thread blocks, runs them in the interpreter
// and compares with the formula in double.
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Tile/IR/Tile.h"
#include "fovea/Interpreter/Interpreter.h"
#include "fovea/Pipelines/Pipelines.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/Support/FormatVariadic.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>

using namespace mlir;
using namespace fovea;

namespace {

/// Coordinates of a score.
struct Place {
  int64_t batch, head, query, key;
};

/// One attention on random data: sizes, and its regions, as text and as
/// functions.
struct Attention {
  std::string name;
  std::string element = "f16";
  int64_t batch = 1, heads = 2, kvHeads = 2;
  int64_t queries = 100, keys = 100, headDim = 32, valueDim = 32;
  double scale = 0.25;
  std::string tile = "64x32";
  int warps = 4;
  /// Heads inside positions on both sides.
  bool positionsFirst = false;
  bool dynamic = true;
  int passes = 1;
  /// Bodies of regions on %s, %b, %h, %i, %j that define %r. `%bias` is a
  /// captured [heads, queries, keys] tensor of f32, `%ids` one of [batch, keys]
  /// of i32; queries are the last keys.
  std::string score = {}, mask = {};
  std::function<double(double, Place, double bias)> scoreOf = {};
  std::function<bool(Place, ArrayRef<int32_t> ids)> maskOf = {};
  double dropout = 0.0;
};

constexpr uint64_t kSeed = 0x123456789abcdef0, kOffset = 77;

/// Word `column mod 4` of Philox-4x32-10, as the dialect numbers elements.
uint32_t getRandomWord(uint64_t row, uint64_t column) {
  std::array<uint32_t, 4> counter = {uint32_t(column / 4), uint32_t(row),
                                     uint32_t(kOffset + (row >> 32)),
                                     uint32_t((kOffset + (row >> 32)) >> 32)};
  uint32_t key[2] = {uint32_t(kSeed), uint32_t(kSeed >> 32)};
  for (int round = 0; round < 10; ++round) {
    uint64_t first = uint64_t(0xD2511F53) * counter[0];
    uint64_t second = uint64_t(0xCD9E8D57) * counter[2];
    counter = {uint32_t(second >> 32) ^ counter[1] ^ key[0], uint32_t(second),
               uint32_t(first >> 32) ^ counter[3] ^ key[1], uint32_t(first)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter[column % 4];
}

/// Floats of a narrow type, as bytes.
class Elements {
public:
  explicit Elements(StringRef type)
      : semantics(type == "f16"    ? APFloat::IEEEhalf()
                  : type == "bf16" ? APFloat::BFloat()
                  : type == "f32"  ? APFloat::IEEEsingle()
                                   : APFloat::IEEEdouble()),
        bytes(APFloat::getSizeInBits(semantics) / 8) {}

  double round(double value) const {
    APFloat number(value);
    bool losesInfo;
    number.convert(semantics, APFloat::rmNearestTiesToEven, &losesInfo);
    number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                   &losesInfo);
    return number.convertToDouble();
  }
  std::vector<char> store(ArrayRef<double> values) const {
    std::vector<char> data(values.size() * bytes);
    for (auto [index, value] : llvm::enumerate(values)) {
      APFloat number(value);
      bool losesInfo;
      number.convert(semantics, APFloat::rmNearestTiesToEven, &losesInfo);
      uint64_t bits = number.bitcastToAPInt().getZExtValue();
      std::memcpy(&data[index * bytes], &bits, bytes);
    }
    return data;
  }
  std::vector<double> load(ArrayRef<char> data) const {
    std::vector<double> values(data.size() / bytes);
    for (auto [index, value] : llvm::enumerate(values)) {
      uint64_t bits = 0;
      std::memcpy(&bits, &data[index * bytes], bytes);
      APFloat number(semantics, APInt(bytes * 8, bits));
      bool losesInfo;
      number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                     &losesInfo);
      value = number.convertToDouble();
    }
    return values;
  }

  /// Returns the relative rounding error of one operation.
  double epsilon() const {
    return std::ldexp(1.0, -int(APFloat::semanticsPrecision(semantics)));
  }

private:
  const llvm::fltSemantics &semantics;
  size_t bytes;
};

/// A tensor of four dimensions in memory, with these sizes in this order.
struct Tensor {
  SmallVector<int64_t> shape;
  std::vector<double> values;

  double at(int64_t a, int64_t b, int64_t c, int64_t d) const {
    return values[((a * shape[1] + b) * shape[2] + c) * shape[3] + d];
  }
};

class AttnToTile : public ::testing::TestWithParam<Attention> {
protected:
  AttnToTile() {
    static bool isRegistered = [] {
      registerFoveaPasses();
      registerTransformsPasses();
      return true;
    }();
    (void)isRegistered;
    DialectRegistry registry;
    registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  static std::string getText(const Attention &attention);
  void check(const Attention &attention, StringRef tilePasses,
             uint64_t seed = 0);

  MLIRContext context;
};

std::string AttnToTile::getText(const Attention &a) {
  auto type = [&](int64_t heads, int64_t length, int64_t dim, bool inMemory) {
    std::string size = a.dynamic ? "?" : std::to_string(length);
    std::string order = inMemory && a.positionsFirst
                            ? llvm::formatv("{0}x{1}", size, heads).str()
                            : llvm::formatv("{0}x{1}", heads, size).str();
    return llvm::formatv("tensor<{0}x{1}x{2}x{3}>", a.batch, order, dim,
                         a.element)
        .str();
  };
  std::string q = type(a.heads, a.queries, a.headDim, true);
  std::string k = type(a.kvHeads, a.keys, a.headDim, true);
  std::string v = type(a.kvHeads, a.keys, a.valueDim, true);
  std::string o = type(a.heads, a.queries, a.valueDim, true);
  std::string sum = a.element == "f64" ? "f64" : "f32";
  std::string l =
      llvm::formatv("tensor<{0}x{1}x{2}x{3}>", a.batch, a.heads,
                    a.dynamic ? "?" : std::to_string(a.queries), sum);
  std::string text = llvm::formatv(
      "func.func @f(%q: {0}, %k: {1}, %v: {2}, %bias: tensor<{3}x?x?x{4}>, "
      "%ids: tensor<{5}x?xi32>, %seed: i64, %offset: i64) -> ({6}, {7}) {{\n",
      q, k, v, a.heads, sum, a.batch, o, l);
  // The positions of the outputs are those of the queries.
  auto transpose = [&](StringRef name, StringRef from, StringRef to,
                       StringRef sizeOf, StringRef sizeType) {
    text += llvm::formatv(
        "%{0}c = arith.constant 1 : index\n"
        "%{0}n = tensor.dim %{4}, %{0}c : {5}\n"
        "%{0}e = tensor.empty({3}) : {2}\n"
        "%{0}t = linalg.transpose ins(%{0} : {1}) outs(%{0}e : {2}) "
        "permutation = [0, 2, 1, 3]\n",
        name, from, to, a.dynamic ? ("%" + name + "n").str() : "", sizeOf,
        sizeType);
  };
  std::string qt = type(a.heads, a.queries, a.headDim, false);
  std::string kt = type(a.kvHeads, a.keys, a.headDim, false);
  std::string vt = type(a.kvHeads, a.keys, a.valueDim, false);
  std::string ot = type(a.heads, a.queries, a.valueDim, false);
  StringRef suffix = a.positionsFirst ? "t" : "";
  if (a.positionsFirst) {
    transpose("q", q, qt, "q", q);
    transpose("k", k, kt, "k", k);
    transpose("v", v, vt, "v", v);
  }
  std::string regions;
  if (!a.score.empty())
    regions += llvm::formatv("score {{\n^bb0(%s: {0}, %b: index, %h: index, "
                             "%i: index, %j: index):\n{1}\nattn.yield %r : "
                             "{0}\n}\n",
                             sum, a.score);
  if (!a.mask.empty())
    regions += llvm::formatv("mask {{\n^bb0(%b: index, %h: index, %i: index, "
                             "%j: index):\n{0}\nattn.yield %r : i1\n}\n",
                             a.mask);
  text += llvm::formatv(
      "%o, %l = attn.attention %q{0}, %k{0}, %v{0} scale({1:E}) {11} {2} "
      "{{schedule = #attn.schedule<tile = {3}, order = {4}, warps = {5}, "
      "stages = 2>} : {6}, {7}, {8} -> {9}, {10}\n",
      suffix, a.scale, regions, a.tile,
      a.mask.empty() ? "linear" : "longest_first", a.warps, qt, kt, vt, ot, l,
      a.dropout
          ? llvm::formatv("dropout({0:E}, %seed, %offset)", a.dropout).str()
          : "");
  if (a.positionsFirst)
    transpose("o", ot, o, "q", q);
  text += llvm::formatv("return %o{0}, %l : {1}, {2}\n}\n", suffix, o, l);
  return text;
}

void AttnToTile::check(const Attention &a, StringRef tilePasses,
                       uint64_t seed) {
  std::string text = getText(a);
  auto module = parseSourceString<ModuleOp>(text, &context);
  ASSERT_TRUE(module) << text;
  std::string pipeline =
      llvm::formatv("canonicalize,attn-online-softmax{{passes={0}},"
                    "attn-tile{{fuse-producers=false},cse,"
                    "convert-attn-to-tile,canonicalize,cse,{1}"
                    "host-bufferize,canonicalize,cse",
                    a.passes, tilePasses);
  PassManager manager(&context);
  ASSERT_TRUE(succeeded(parsePassPipeline(pipeline, manager)));
  ASSERT_TRUE(succeeded(manager.run(*module))) << text;
  auto function = *module->getOps<func::FuncOp>().begin();
  int64_t launches = 0;
  function.walk([&](tile::LaunchOp) { ++launches; });
  ASSERT_EQ(launches, 1) << text;

  // Random data, in the order of memory.
  std::mt19937 random(17);
  std::normal_distribution<double> normal;
  Elements elements(a.element), sums(a.element == "f64" ? "f64" : "f32"),
      integers("f32");
  auto make = [&](int64_t heads, int64_t length, int64_t dim) {
    Tensor tensor{a.positionsFirst
                      ? SmallVector<int64_t>{a.batch, length, heads, dim}
                      : SmallVector<int64_t>{a.batch, heads, length, dim},
                  {}};
    tensor.values.resize(a.batch * heads * length * dim);
    for (double &value : tensor.values)
      value = elements.round(normal(random));
    return tensor;
  };
  Tensor q = make(a.heads, a.queries, a.headDim);
  Tensor k = make(a.kvHeads, a.keys, a.headDim);
  Tensor v = make(a.kvHeads, a.keys, a.valueDim);
  Tensor bias{{a.heads, a.queries, a.keys}, {}};
  bias.values.resize(a.heads * a.queries * a.keys);
  for (double &value : bias.values)
    value = sums.round(normal(random));
  std::vector<int32_t> ids(a.batch * a.keys);
  for (auto [index, id] : llvm::enumerate(ids))
    id = index % a.keys / 23;

  std::vector<char> data[] = {
      elements.store(q.values), elements.store(k.values),
      elements.store(v.values), sums.store(bias.values)};
  SmallVector<int64_t> idShape{a.batch, a.keys};
  SmallVector<SmallVector<int64_t>> strides;
  SmallVector<SimulationOperand> operands;
  ArrayRef<int64_t> shapes[] = {q.shape, k.shape, v.shape, bias.shape, idShape};
  for (ArrayRef<int64_t> shape : shapes) {
    SmallVector<int64_t> steps(shape.size(), 1);
    for (size_t dim = steps.size(); dim-- > 1;)
      steps[dim - 1] = steps[dim] * shape[dim];
    strides.push_back(steps);
  }
  for (int index = 0; index < 5; ++index)
    operands.push_back(
        {index < 4 ? static_cast<void *>(data[index].data()) : ids.data(),
         shapes[index], strides[index]});
  operands.push_back({&kSeed, {}, {}});
  operands.push_back({&kOffset, {}, {}});
  SimulationOptions options;
  options.seed = seed;
  // Accumulators of f64 in small blocks take many registers.
  options.threadRegisters = 1024;
  auto results = simulate(function, operands, options);
  ASSERT_TRUE(succeeded(results)) << text;
  ASSERT_EQ(results->size(), 2u);
  std::vector<double> output = elements.load((*results)[0].data);
  std::vector<double> lse = sums.load((*results)[1].data);

  auto at = [&](const Tensor &tensor, int64_t b, int64_t h, int64_t s,
                int64_t d) {
    return a.positionsFirst ? tensor.at(b, s, h, d) : tensor.at(b, h, s, d);
  };
  double tolerance = 4 * std::max(elements.epsilon(), 1e-6);
  if (a.element == "f64")
    tolerance = 1e-12;
  for (int64_t b = 0; b < a.batch; ++b)
    for (int64_t h = 0; h < a.heads; ++h)
      for (int64_t i = 0; i < a.queries; ++i) {
        int64_t kvHead = h / (a.heads / a.kvHeads);
        std::vector<double> scores(a.keys);
        double largest = -INFINITY;
        for (int64_t j = 0; j < a.keys; ++j) {
          double score = 0;
          for (int64_t d = 0; d < a.headDim; ++d)
            score += at(q, b, h, i, d) * at(k, b, kvHead, j, d);
          score *= a.scale;
          Place place{b, h, i, j};
          if (a.scoreOf)
            score = a.scoreOf(score, place,
                              bias.values[(h * a.queries + i) * a.keys + j]);
          if (a.maskOf &&
              !a.maskOf(place, ArrayRef(ids).slice(b * a.keys, a.keys)))
            score = -INFINITY;
          scores[j] = score;
          largest = std::max(largest, score);
        }
        double sum = 0;
        for (double score : scores)
          sum += largest == -INFINITY ? 0 : std::exp(score - largest);
        double actual = lse[(b * a.heads + h) * a.queries + i];
        if (sum == 0)
          EXPECT_EQ(actual, -INFINITY) << a.name << " lse of row " << i;
        else
          EXPECT_NEAR(actual, largest + std::log(sum),
                      4 * sums.epsilon() * (8 + std::abs(actual)))
              << a.name << " lse of row " << i;
        for (int64_t d = 0; d < a.valueDim; ++d) {
          double expected = 0;
          for (int64_t j = 0; j < a.keys && sum != 0; ++j) {
            uint64_t row = (b * a.heads + h) * a.queries + i;
            if (a.dropout &&
                getRandomWord(row, j) < std::floor(std::ldexp(a.dropout, 32)))
              continue;
            expected += std::exp(scores[j] - largest) / sum / (1 - a.dropout) *
                        at(v, b, kvHead, j, d);
          }
          int64_t row = a.positionsFirst ? (b * a.queries + i) * a.heads + h
                                         : (b * a.heads + h) * a.queries + i;
          double value = output[row * a.valueDim + d];
          ASSERT_NEAR(value, expected, tolerance)
              << a.name << " at " << b << ", " << h << ", " << i << ", " << d;
        }
      }
}

constexpr StringLiteral kRoles =
    "tile-assign-layouts,tile-multibuffer,tile-specialize-warps,tile-schedule,"
    "tile-expand-pipeline,canonicalize,cse,";

TEST_P(AttnToTile, PlainProgram) { check(GetParam(), ""); }

TEST_P(AttnToTile, ProgramOfRoles) {
  check(GetParam(), kRoles);
  check(GetParam(), kRoles, /*seed=*/1);
}

std::vector<Attention> getCases() {
  auto causal = [](Place place, ArrayRef<int32_t>) {
    return place.query >= place.key;
  };
  std::string causalText = "%r = arith.cmpi sge, %i, %j : index";
  std::vector<Attention> cases;
  cases.push_back({.name = "plain"});
  cases.push_back({.name = "bfloat", .element = "bf16"});
  cases.push_back({.name = "single", .element = "f32"});
  cases.push_back({.name = "double", .element = "f64"});
  cases.push_back(
      {.name = "static_whole", .queries = 128, .keys = 128, .dynamic = false});
  cases.push_back({.name = "grouped",
                   .batch = 2,
                   .heads = 6,
                   .kvHeads = 2,
                   .queries = 40,
                   .keys = 70,
                   .positionsFirst = true});
  cases.push_back({.name = "odd_head_dims",
                   .queries = 65,
                   .keys = 33,
                   .headDim = 24,
                   .valueDim = 40});
  cases.push_back({.name = "one_query",
                   .queries = 1,
                   .keys = 77,
                   .positionsFirst = true,
                   .dynamic = false});
  cases.push_back({.name = "causal",
                   .queries = 150,
                   .keys = 150,
                   .tile = "128x64",
                   .warps = 8,
                   .mask = causalText,
                   .maskOf = causal});
  cases.push_back({.name = "causal_more_queries",
                   .queries = 90,
                   .keys = 40,
                   .dynamic = false,
                   .mask = causalText,
                   .maskOf = causal});
  cases.push_back({.name = "window",
                   .queries = 130,
                   .keys = 130,
                   .mask = "%n = arith.subi %i, %j : index\n"
                           "%c20 = arith.constant 20 : index\n"
                           "%c0 = arith.constant 0 : index\n"
                           "%x = arith.cmpi sle, %n, %c20 : index\n"
                           "%y = arith.cmpi sge, %n, %c0 : index\n"
                           "%r = arith.andi %x, %y : i1",
                   .maskOf = [](Place place, ArrayRef<int32_t>) {
                     int64_t n = place.query - place.key;
                     return n >= 0 && n <= 20;
                   }});
  cases.push_back({.name = "rows_without_keys",
                   .mask = "%c50 = arith.constant 50 : index\n"
                           "%x = arith.cmpi sge, %i, %c50 : index\n"
                           "%y = arith.cmpi sge, %j, %i : index\n"
                           "%r = arith.andi %x, %y : i1",
                   .maskOf = [](Place place, ArrayRef<int32_t>) {
                     return place.query >= 50 && place.key >= place.query;
                   }});
  cases.push_back({.name = "documents",
                   .batch = 2,
                   .mask = "%x = tensor.extract %ids[%b, %i] : "
                           "tensor<2x?xi32>\n"
                           "%y = tensor.extract %ids[%b, %j] : "
                           "tensor<2x?xi32>\n"
                           "%r = arith.cmpi eq, %x, %y : i32",
                   .maskOf = [](Place place, ArrayRef<int32_t> ids) {
                     return ids[place.query] == ids[place.key];
                   }});
  cases.push_back({.name = "bias",
                   .queries = 70,
                   .keys = 90,
                   .score = "%x = tensor.extract %bias[%h, %i, %j] : "
                            "tensor<2x?x?xf32>\n"
                            "%r = arith.addf %s, %x : f32",
                   .scoreOf = [](double score, Place, double bias) {
                     return score + bias;
                   }});
  cases.push_back({.name = "soft_cap_causal",
                   .score = "%c = arith.constant 5.0 : f32\n"
                            "%x = arith.divf %s, %c : f32\n"
                            "%y = math.tanh %x : f32\n"
                            "%r = arith.mulf %y, %c : f32",
                   .mask = causalText,
                   .scoreOf = [](double score, Place,
                                 double) { return 5 * std::tanh(score / 5); },
                   .maskOf = causal});
  cases.push_back({.name = "dropout", .batch = 2, .dropout = 0.3});
  cases.push_back({.name = "negative_scale", .scale = -0.5});
  cases.push_back({.name = "zero_scale", .scale = 0.0});
  cases.push_back({.name = "large_scores", .scale = 30.0});
  cases.push_back({.name = "two_passes",
                   .passes = 2,
                   .mask = causalText,
                   .maskOf = causal});
  cases.push_back({.name = "three_passes",
                   .passes = 3,
                   .mask = causalText,
                   .maskOf = causal});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Kinds, AttnToTile, ::testing::ValuesIn(getCases()),
                         [](const ::testing::TestParamInfo<Attention> &info) {
                           return info.param.name;
                         });

} // namespace
