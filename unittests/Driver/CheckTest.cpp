//===- CheckTest.cpp - Checks that pass, and checks that fail -------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Driver/Check.h"
#include "fovea/Driver/Inputs.h"

#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"

#include <deque>
#include <limits>

using namespace fovea;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Tensor makeTensor(DType type, std::vector<double> values,
                  llvm::SmallVector<int64_t> shape = {}) {
  if (shape.empty())
    shape = {int64_t(values.size())};
  Tensor tensor(type, shape, int64_t(values.size()));
  for (auto [index, value] : llvm::enumerate(values))
    writeElement(tensor.getData(), type, int64_t(index), value);
  return tensor;
}

TEST(Compare, MeasuresAgainstTheLargestMagnitude) {
  Comparison comparison =
      compare(makeTensor(DType::F32, {1, 2, 4.00004}),
              makeTensor(DType::F64, {1, 2, 4}), getErrorBound(DType::F32));
  EXPECT_NEAR(comparison.maxError, 4e-5, 1e-6);
  EXPECT_NEAR(comparison.relativeError, 1e-5, 1e-6);
  EXPECT_TRUE(comparison.passes());
  EXPECT_FALSE(compare(makeTensor(DType::F32, {1.001}),
                       makeTensor(DType::F64, {1}), 2e-5)
                   .passes());
}

TEST(Compare, WantsInfinitiesAndNaNsAtTheirPlaces) {
  EXPECT_TRUE(compare(makeTensor(DType::F16, {-kInf, kNaN, 1}),
                      makeTensor(DType::F64, {-kInf, kNaN, 1}), 4e-3)
                  .passes());
  for (double wrong : {kInf, kNaN, 0.0}) {
    Comparison comparison = compare(makeTensor(DType::F32, {wrong, 1}),
                                    makeTensor(DType::F64, {-kInf, 1}), 2e-5);
    EXPECT_EQ(comparison.mismatches, 1);
    EXPECT_FALSE(comparison.passes());
  }
  // Zero is no excuse for NaN.
  EXPECT_FALSE(compare(makeTensor(DType::F32, {0, 1}),
                       makeTensor(DType::F64, {kNaN, 1}), 2e-5)
                   .passes());
  EXPECT_FALSE(
      compare(makeTensor(DType::I32, {3}), makeTensor(DType::I32, {4}), 0)
          .passes());
}

TEST(CompareRounded, AllowsWhatItsRowMoves) {
  Rounded rounded;
  rounded.graph = makeTensor(DType::F32, {1, 2, 3, 4}, {2, 2});
  auto passes = [&](std::vector<double> values) {
    return compareRounded(makeTensor(DType::F32, std::move(values), {2, 2}),
                          rounded, 2e-5)
        .passes();
  };
  rounded.summed.push_back(makeTensor(DType::F32, {1, 2.01, 3, 4}, {2, 2}));
  EXPECT_TRUE(passes({1.015, 2, 3, 4}));
  EXPECT_FALSE(passes({1.03, 2, 3, 4}));
  EXPECT_FALSE(passes({1, 2, 3.015, 4}));
  EXPECT_FALSE(passes({kNaN, 2, 3, 4}));
  rounded.all.push_back(makeTensor(DType::F32, {1, 2, 3.1, 4}, {2, 2}));
  EXPECT_TRUE(passes({1, 2, 3, 4.1}));
  // A change of everything excuses nothing.
  rounded.all.push_back(makeTensor(DType::F32, {1, 2, 3.5, 4}, {2, 2}));
  EXPECT_FALSE(passes({1, 2, 3, 4.1}));
}

/// A function with operands and the host's results.
struct Case {
  std::unique_ptr<Program> program;
  /// Views refer to their shapes, so that these must not move.
  std::deque<Tensor> tensors;
  llvm::SmallVector<TensorView> operands;
  llvm::SmallVector<Tensor, 0> results;

  void add(Tensor tensor) {
    tensors.push_back(std::move(tensor));
    operands.push_back(tensors.back().getView());
  }

  void addRandom(size_t count) {
    for (const ValueType &type :
         llvm::ArrayRef(program->getFunctions()[0].operands).take_front(count))
      add(cantFail(makeRandom(type.type, type.shape, 1, tensors.size(), {})));
  }

  void run() {
    auto executable = cantFail(program->compile({}));
    ASSERT_FALSE(bool(executable->call(0, operands, results)));
  }

  std::string check() {
    std::string text;
    llvm::raw_string_ostream stream(text);
    llvm::Error error = checkResults(*program, 0, /*gradients=*/false, operands,
                                     results, stream);
    return text + llvm::toString(std::move(error));
  }
};

Case parse(llvm::StringRef text) {
  Case made;
  made.program = cantFail(Program::parse(text, "test"));
  return made;
}

constexpr llvm::StringLiteral kBiased = R"(
!t = tensor<1x1x40x16xf32>
!s = tensor<1x1x40x40xf32>
func.func @f(%q: !t, %k: !t, %v: !t, %bias: tensor<40x40xf32>) -> !t {
  %s = attn.scores %q, %k : !t, !t -> !s
  %a = attn.modify %s {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %e = tensor.extract %bias[%i, %j] : tensor<40x40xf32>
    %r = arith.addf %x, %e : f32
    attn.yield %r : f32
  } : !s
  %p = attn.softmax %a : !s -> !s
  %o = attn.values %p, %v : !s, !t -> !t
  return %o : !t
})";

/// The first ten rows are masked by adding `masked`.
Case makeBiased(double masked) {
  Case made = parse(kBiased);
  made.addRandom(3);
  std::vector<double> bias(1600, 0.0);
  std::fill(bias.begin(), bias.begin() + 400, masked);
  made.add(makeTensor(DType::F32, std::move(bias), {40, 40}));
  made.run();
  return made;
}

TEST(CheckResults, TakesTheGraphInItsOwnTypesWhereThatIsFarOff) {
  for (double masked : {-1e4, -1e9, -1e10}) {
    Case made = makeBiased(masked);
    std::string text = made.check();
    EXPECT_NE(text.find("is as far off"), std::string::npos) << text;
    EXPECT_NE(text.find("ill-conditioned in its types\n"), std::string::npos);
    EXPECT_TRUE(llvm::StringRef(text).ends_with("\n")) << text;
  }
}

TEST(CheckResults, ExcusesNoWrongKernel) {
  // One element is in a row whose f64 value is also far off, and one in a row
  // where it is not.
  for (int64_t element : {int64_t(5), int64_t(20 * 16)})
    for (double masked : {-1e4, -1e9}) {
      Case made = makeBiased(masked);
      Tensor &result = made.results.front();
      writeElement(result.getData(), DType::F32, element,
                   result.read(element) + 0.01);
      std::string text = made.check();
      EXPECT_NE(text.find("FAILED\ncheck: result 0: its relative error"),
                std::string::npos)
          << text;
    }
}

TEST(CheckResults, TakesNoZerosForNaN) {
  Case made = parse(R"(
!t = tensor<1x1x4x16xf32>
func.func @f(%q: !t, %k: !t, %v: !t) -> !t {
  %s = attn.scores %q, %k : !t, !t -> tensor<1x1x4x4xf32>
  %p = attn.softmax %s : tensor<1x1x4x4xf32> -> tensor<1x1x4x4xf32>
  %o = attn.values %p, %v : tensor<1x1x4x4xf32>, !t -> !t
  return %o : !t
})");
  made.addRandom(3);
  writeElement(made.tensors[0].getData(), DType::F32, 2 * 16, kNaN);
  made.run();
  Tensor &result = made.results.front();
  for (double value : {kNaN, 0.0}) {
    for (int64_t i = 2 * 16; i < 3 * 16; ++i)
      writeElement(result.getData(), DType::F32, i, value);
    std::string text = made.check();
    EXPECT_EQ(text.find("16 of 64 elements differ in infinity, NaN") !=
                  std::string::npos,
              value == 0)
        << text;
  }
}

/// Checks gradients after `change` has altered them.
std::string checkGradients(llvm::StringRef text, Case &made,
                           llvm::function_ref<void(Tensor &)> change) {
  GradientOptions textbook;
  textbook.textbook = true;
  auto joint = cantFail(Program::parse(
      cantFail(made.program->differentiate(0, textbook)), "joint"));
  llvm::SmallVector<TensorView> operands(made.operands);
  Tensor cotangent = cantFail(makeRandom(
      DType::F32, joint->getFunctions()[0].operands.back().shape, 1, 9, {}));
  operands.push_back(cotangent.getView());
  llvm::SmallVector<Tensor, 0> results;
  auto reference = cantFail(joint->compileReference());
  llvm::cantFail(reference->call(0, operands, results));
  change(results[1]);
  std::string printed;
  llvm::raw_string_ostream stream(printed);
  llvm::Error error = fovea::checkGradients(
      *made.program, 0, made.operands, cotangent.getView(),
      llvm::ArrayRef(results).drop_front(), stream);
  return printed + llvm::toString(std::move(error));
}

TEST(CheckGradients, SharesNoRuleWithThem) {
  Case made = makeBiased(0);
  std::string right = checkGradients(kBiased, made, [](Tensor &) {});
  EXPECT_EQ(llvm::StringRef(right).count(" by differences in f64, relative "),
            4u)
      << right;
  EXPECT_NE(right.find("operand 3 (%bias) of @f: 8 of 1600 elements"),
            std::string::npos)
      << right;
  EXPECT_TRUE(llvm::StringRef(right).ends_with("(bound 1e-05)\n")) << right;
  std::string wrong = checkGradients(kBiased, made, [](Tensor &gradient) {
    for (int64_t i = 0; i < gradient.getNumElements(); ++i)
      writeElement(gradient.getData(), DType::F64, i, gradient.read(i) * 1.001);
  });
  EXPECT_NE(wrong.find("(bound 1e-05): FAILED\n"), std::string::npos) << wrong;
  EXPECT_NE(wrong.find("check: gradient of operand 0 (%q) of @f: a step along "
                       "8 elements changes"),
            std::string::npos)
      << wrong;
}

constexpr llvm::StringLiteral kKinked = R"(
func.func @f(%x: tensor<1000xf32>) -> tensor<1000xf32> {
  %y = attn.elementwise %x {
  ^bb0(%a: f32):
    %zero = arith.constant 0.0 : f32
    %half = arith.constant 0.25 : f32
    %p = arith.cmpf ogt, %a, %zero : f32
    %c = arith.select %p, %a, %zero : f32
    %d = arith.mulf %a, %half : f32
    %r = arith.addf %c, %d : f32
    attn.yield %r : f32
  } : (tensor<1000xf32>) -> tensor<1000xf32>
  return %y : tensor<1000xf32>
})";

TEST(CheckGradients, PassesOverWhatIsNotSmooth) {
  // At 0 every step sees a kink in the middle; near 0 some steps see one.
  for (double near : {0.0, 2e-6, 4e-6}) {
    Case made = parse(kKinked);
    std::vector<double> values(1000, near);
    values[0] = 30;
    made.add(makeTensor(DType::F32, values));
    std::string text = checkGradients(kKinked, made, [](Tensor &) {});
    EXPECT_EQ(text,
              "check: gradient of operand 0 (%x) of @f: not compared with "
              "differences: the function is not smooth, or not finite, at 11 "
              "sampled elements\n");
  }
  Case made = parse(kKinked);
  made.addRandom(1);
  std::string text = checkGradients(kKinked, made, [](Tensor &) {});
  EXPECT_NE(text.find("8 of 1000 elements by differences"), std::string::npos)
      << text;
}

} // namespace
