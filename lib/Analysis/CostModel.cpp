//===- CostModel.cpp - FLOPs, traffic and time of a graph -----------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Analysis/CostModel.h"

#include "fovea/Analysis/ScheduleModel.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/TypeSwitch.h"

#include <numeric>

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

double Cost::flops() const {
  return std::accumulate(
      kernels.begin(), kernels.end(), 0.0,
      [](double sum, const KernelCost &kernel) { return sum + kernel.flops; });
}

double Cost::bytes() const {
  return std::accumulate(
      kernels.begin(), kernels.end(), 0.0,
      [](double sum, const KernelCost &kernel) { return sum + kernel.bytes; });
}

double Cost::seconds() const {
  return std::accumulate(kernels.begin(), kernels.end(), 0.0,
                         [](double sum, const KernelCost &kernel) {
                           return sum + kernel.seconds;
                         });
}

double Cost::intensity() const { return bytes() ? flops() / bytes() : 0.0; }

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

namespace {
/// Evaluates the sizes of tensors from those of a function's operands. Asks ops
/// for the shapes of their results, which adds IR to the function.
class SizeEvaluator {
public:
  SizeEvaluator(func::FuncOp function, ArrayRef<SmallVector<int64_t>> shapes)
      : function(function), shapes(shapes) {}

  std::optional<int64_t> size(Value value, int64_t dim);
  std::optional<SmallVector<int64_t>> shape(Value value);

private:
  std::optional<int64_t> evaluate(OpFoldResult value);
  std::optional<int64_t> evaluateOp(Operation *op);

  func::FuncOp function;
  ArrayRef<SmallVector<int64_t>> shapes;
  DenseMap<Value, SmallVector<OpFoldResult>> reified;
};
} // namespace

std::optional<int64_t> SizeEvaluator::size(Value value, int64_t dim) {
  auto type = cast<ShapedType>(value.getType());
  if (!type.isDynamicDim(dim))
    return type.getDimSize(dim);
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (argument.getOwner() != &function.front())
      return std::nullopt;
    return shapes[argument.getArgNumber()][dim];
  }
  auto result = cast<OpResult>(value);
  if (auto init = dyn_cast<DestinationStyleOpInterface>(result.getOwner()))
    return size(init.getTiedOpOperand(result)->get(), dim);
  if (auto cast = dyn_cast<tensor::CastOp>(result.getOwner()))
    return size(cast.getSource(), dim);
  auto it = reified.find(value);
  if (it == reified.end()) {
    OpBuilder builder(result.getOwner());
    ReifiedRankedShapedTypeDims dims;
    if (failed(reifyResultShapes(builder, result.getOwner(), dims)))
      return std::nullopt;
    for (auto [other, sizes] : llvm::zip(result.getOwner()->getResults(), dims))
      reified[other] = sizes;
    it = reified.find(value);
  }
  OpFoldResult folded = it->second[dim];
  return evaluate(folded);
}

std::optional<SmallVector<int64_t>> SizeEvaluator::shape(Value value) {
  SmallVector<int64_t> sizes;
  for (int64_t dim : llvm::seq(cast<ShapedType>(value.getType()).getRank())) {
    std::optional<int64_t> evaluated = size(value, dim);
    if (!evaluated)
      return std::nullopt;
    sizes.push_back(*evaluated);
  }
  return sizes;
}

std::optional<int64_t> SizeEvaluator::evaluate(OpFoldResult value) {
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return constant;
  auto variable = dyn_cast<Value>(value);
  if (!variable || !variable.getDefiningOp())
    return std::nullopt;
  return evaluateOp(variable.getDefiningOp());
}

std::optional<int64_t> SizeEvaluator::evaluateOp(Operation *op) {
  if (auto dim = dyn_cast<tensor::DimOp>(op)) {
    std::optional<int64_t> index = dim.getConstantIndex();
    return index ? size(dim.getSource(), *index) : std::nullopt;
  }
  // Every other op on sizes folds once its operands are known.
  SmallVector<Attribute> operands;
  for (Value operand : op->getOperands()) {
    std::optional<int64_t> evaluated = evaluate(operand);
    if (!evaluated)
      return std::nullopt;
    operands.push_back(IntegerAttr::get(operand.getType(), *evaluated));
  }
  SmallVector<OpFoldResult> results;
  if (!isMemoryEffectFree(op) || failed(op->fold(operands, results)) ||
      results.size() != 1)
    return std::nullopt;
  return getConstantIntValue(results.front());
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

static double product(ArrayRef<int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), 1.0,
                         std::multiplies<double>());
}

double fovea::countFlops(Region &region) {
  double count = 0;
  region.walk([&](Operation *op) {
    bool counts =
        isa<math::MathDialect>(op->getDialect()) ||
        isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp,
            arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp,
            arith::MinNumFOp, arith::CmpFOp, arith::NegFOp, arith::RemFOp>(op);
    count += counts && llvm::any_of(op->getOperandTypes(), [](Type type) {
               return isa<FloatType>(getElementTypeOrSelf(type));
             });
  });
  return count;
}

/// Returns how many products of a unit for matrices compute each product of
/// keys and values of `shape` on `target`: one of tensor cores, or those of a
/// host's pairs; 0 where there is no such unit.
static int64_t countUnitProducts(const AttentionShape &shape,
                                 machine::TargetAttr target) {
  if (target.isGpu())
    return shape.elementBytes == 2 ? 1 : 0;
  return countPairProducts(shape.pairParts, target);
}

/// Returns true if `op` is a product of matrices whose elements have 16 bits.
static bool isMatrixProduct(Operation *op) {
  auto isSmall = [](Value value) {
    Type type = getElementTypeOrSelf(value);
    return type.isF16() || type.isBF16();
  };
  return TypeSwitch<Operation *, bool>(op)
      .Case([&](ScoresOp scores) { return isSmall(scores.getKey()); })
      .Case([&](ValuesOp values) { return isSmall(values.getValue()); })
      .Case([&](SumQueriesOp sum) { return isSmall(sum.getInput()); })
      .Case([&](linalg::LinalgOp linalgOp) {
        return linalg::isaContractionOpInterface(linalgOp) &&
               llvm::all_of(linalgOp.getDpsInputs(), isSmall);
      })
      .Default([](Operation *) { return false; });
}

/// Returns true for an op that works on rows, so that a chain of such ops can
/// pass its result on.
static bool isRowOp(Operation *op) {
  return isa<LayerNormOp, RMSNormOp, RopeOp, ResidualAddOp, ElementwiseOp,
             DropoutOp, ScaleOp, ModifyOp, MaskOp, SoftmaxOp,
             SoftmaxBackwardOp>(op);
}

/// Returns the values that `op` reads.
static SmallVector<Value> getInputs(Operation *op) {
  SmallVector<Value> inputs(op->getOperands());
  if (auto destination = dyn_cast<DestinationStyleOpInterface>(op))
    inputs = destination.getDpsInputs();
  llvm::append_range(inputs, getCaptures(op));
  return inputs;
}

namespace {
class CostEstimator {
public:
  CostEstimator(func::FuncOp function, ArrayRef<SmallVector<int64_t>> shapes,
                machine::TargetAttr target, KernelForm form, int64_t passes,
                const llvm::DenseSet<Operation *> &tiled)
      : function(function), sizes(function, shapes), target(target), form(form),
        passes(passes), tiled(tiled) {}

  FailureOr<Cost> run();

private:
  LogicalResult visit(Operation *op);
  FailureOr<double> bytesOf(Value value);
  FailureOr<double> flopsOf(Operation *op);
  LogicalResult visitAttention(AttentionOp op);
  LogicalResult addProducers(Value value, KernelCost &cost);
  LogicalResult addConsumers(Value value, KernelCost &cost);
  LogicalResult visitWrittenOut(AttentionOp op, const AttentionShape &shape);
  double roofline(double flops, double bytes) const;

  func::FuncOp function;
  SizeEvaluator sizes;
  machine::TargetAttr target;
  KernelForm form;
  int64_t passes;
  /// The ops that are computed on the tiles of attention.
  const llvm::DenseSet<Operation *> &tiled;
  /// The ops of `tiled` that are part of an attention's cost.
  llvm::DenseSet<Operation *> counted;
  /// Results that stay within a chain of row ops.
  llvm::SmallDenseSet<Value> passedOn;
  Cost cost;
};
} // namespace

double fovea::predictKernel(double flops, double bytes,
                            machine::TargetAttr target) {
  constexpr double kUsualShareOfPeak = 0.4;
  double compute = flops / (double(target.getPeak()) * 1e9 * kUsualShareOfPeak);
  double memory = bytes / (double(target.getBandwidth()) * 1e6);
  return std::max(compute, memory);
}

double CostEstimator::roofline(double flops, double bytes) const {
  return predictKernel(flops, bytes, target);
}

FailureOr<double> CostEstimator::bytesOf(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type)
    return 0.0;
  std::optional<SmallVector<int64_t>> shape = sizes.shape(value);
  if (!shape)
    return emitError(value.getLoc(),
                     "cannot estimate the cost: a size depends on data");
  Type element = type.getElementType();
  double bytes = element.isIntOrFloat()
                     ? std::ceil(element.getIntOrFloatBitWidth() / 8.0)
                     : 8.0;
  return product(*shape) * bytes;
}

FailureOr<double> CostEstimator::flopsOf(Operation *op) {
  auto elements = [&](Value value) -> FailureOr<double> {
    std::optional<SmallVector<int64_t>> shape = sizes.shape(value);
    if (!shape)
      return op->emitError("cannot estimate the cost: a size depends on data");
    return product(*shape);
  };
  auto each = [&](Value value, double flops) -> FailureOr<double> {
    FailureOr<double> count = elements(value);
    return failed(count) ? count : FailureOr<double>(*count * flops);
  };
  return TypeSwitch<Operation *, FailureOr<double>>(op)
      .Case([&](ScoresOp scores) {
        std::optional<int64_t> depth = sizes.size(scores.getKey(), 3);
        return each(scores.getResult(), 2.0 * double(depth.value_or(0)));
      })
      // Scores, gradients of probabilities, and one product for each result;
      // exponential, two differences and a product.
      .Case([&](AttentionBackwardOp backward) -> FailureOr<double> {
        auto query = sizes.shape(backward.getQuery()),
             key = sizes.shape(backward.getKey()),
             value = sizes.shape(backward.getValue());
        if (!query || !key || !value)
          return op->emitError(
              "cannot estimate the cost: a size depends on data");
        double visible =
            estimateVisible(backward.getMask(), (*query)[2], (*key)[2]);
        double scores =
            visible * product(ArrayRef(*query).drop_back()) * double((*key)[2]);
        return scores * (6.0 * double((*query)[3]) + 4.0 * double((*value)[3]) +
                         4.0 + 2.0 * countFlops(backward.getScore()));
      })
      .Case([&](ValuesOp values) {
        std::optional<int64_t> depth = sizes.size(values.getValue(), 2);
        return each(values.getResult(), 2.0 * double(depth.value_or(0)));
      })
      .Case([&](SumQueriesOp sum) {
        std::optional<int64_t> depth = sizes.size(sum.getInput(), 3);
        return each(sum.getWeights(), 2.0 * double(depth.value_or(0)));
      })
      .Case<ScaleOp, ResidualAddOp>(
          [&](Operation *) { return each(op->getResult(0), 1); })
      .Case<ModifyOp, ElementwiseOp>([&](Operation *) {
        return each(op->getResult(0), countFlops(op->getRegion(0)));
      })
      // Maximum, difference, exponential, sum, quotient.
      .Case([&](SoftmaxOp) { return each(op->getResult(0), 5); })
      // Maximum, difference, exponential, sum.
      .Case([&](LogSumExpOp sum) { return each(sum.getInput(), 4); })
      // Product and sum; difference, exponential and sum of a part's weight.
      .Case([&](MergeOp merge) -> FailureOr<double> {
        FailureOr<double> sums = each(merge.getParts(), 2),
                          weights = each(merge.getPartLse(), 3);
        if (failed(sums) || failed(weights))
          return failure();
        return *sums + *weights;
      })
      // Product, its sum, difference, product.
      .Case([&](SoftmaxBackwardOp) { return each(op->getResult(0), 4); })
      .Case([&](DropoutOp) { return each(op->getResult(0), 1); })
      // Two sums of differences, their square, normalise, weight, bias.
      .Case([&](LayerNormOp) { return each(op->getResult(0), 8); })
      .Case([&](RMSNormOp) { return each(op->getResult(0), 4); })
      .Case([&](RopeOp) { return each(op->getResult(0), 3); })
      .Case([&](linalg::LinalgOp linalgOp) -> FailureOr<double> {
        SmallVector<double> loops(linalgOp.getNumLoops(), 0.0);
        for (OpOperand &operand : linalgOp->getOpOperands()) {
          auto type = dyn_cast<RankedTensorType>(operand.get().getType());
          if (!type)
            continue;
          AffineMap map = linalgOp.getMatchingIndexingMap(&operand);
          std::optional<SmallVector<int64_t>> shape =
              sizes.shape(operand.get());
          if (!shape)
            return op->emitError(
                "cannot estimate the cost: a size depends on data");
          for (auto [result, size] : llvm::zip(map.getResults(), *shape))
            if (auto dim = dyn_cast<AffineDimExpr>(result))
              loops[dim.getPosition()] = double(size);
        }
        double iterations = 1;
        for (double size : loops)
          iterations *= size;
        return iterations * countFlops(op->getRegion(0));
      })
      .Default([&](Operation *) -> FailureOr<double> {
        return op->getNumResults() == 1 &&
                       isa<TensorType>(op->getResultTypes()[0])
                   ? each(op->getResult(0),
                          OpTrait::hasElementwiseMappableTraits(op) ? 1 : 0)
                   : FailureOr<double>(0.0);
      });
}

/// Visits attention for which no tile fits. GPUs compute it with its scores in
/// memory.
LogicalResult CostEstimator::visitWrittenOut(AttentionOp op,
                                             const AttentionShape &shape) {
  double count = double(shape.batch * shape.heads) * double(shape.queries) *
                 double(shape.keys);
  double scoreBytes = count * double(shape.accumulationBytes);
  auto add = [&](StringRef name, double products, double others, double bytes,
                 ArrayRef<Value> moved) -> LogicalResult {
    KernelCost kernel;
    kernel.name = name.str();
    kernel.flops = count * (products + others);
    // The backward pass on hosts multiplies no parts of f16.
    kernel.matrixFlops =
        countUnitProducts(shape, target) == 1 ? count * products : 0;
    kernel.bytes = bytes;
    for (Value value : moved) {
      FailureOr<double> size = bytesOf(value);
      if (failed(size))
        return failure();
      kernel.bytes += *size;
    }
    kernel.seconds = roofline(kernel.flops, kernel.bytes);
    cost.kernels.push_back(kernel);
    return success();
  };
  double modified =
      1.0 + (op.getScore().empty() ? 0.0 : countFlops(op.getScore()));
  SmallVector<Value> read = {op.getQuery(), op.getKey()};
  llvm::append_range(read, getCaptures(op));
  if (failed(add("attention: scores", 2.0 * double(shape.headDim), modified,
                 scoreBytes, read)) ||
      failed(add("attention: softmax", 0.0, 5.0, 2.0 * scoreBytes, {})))
    return failure();
  return add("attention: values", 2.0 * double(shape.valueDim), 0.0, scoreBytes,
             {op.getValue(), op.getOutput()});
}

LogicalResult CostEstimator::visitAttention(AttentionOp op) {
  AttentionShape shape = AttentionShape::get(op);
  auto query = sizes.shape(op.getQuery()), key = sizes.shape(op.getKey()),
       value = sizes.shape(op.getValue());
  if (!query || !key || !value)
    return op->emitError("cannot estimate the cost: a size depends on data");
  shape.batch = (*query)[0];
  shape.heads = (*query)[1];
  shape.queries = (*query)[2];
  shape.headDim = (*query)[3];
  shape.keys = (*key)[2];
  shape.valueDim = (*value)[3];
  shape.visible = estimateVisible(op.getMask(), shape.queries, shape.keys);
  ScheduleAttr schedule = op.getScheduleAttr();
  if (!schedule)
    schedule = selectSchedule(op, target, {.passes = passes});
  if (!schedule && target.isGpu())
    return visitWrittenOut(op, shape);
  if (!schedule)
    return op->emitError(
        "cannot estimate the cost: no tile of this head dim fits the target");

  double scores = shape.visible * double(shape.batch * shape.heads) *
                  double(shape.queries) * double(shape.keys);
  double keyTiles = std::ceil(shape.visible * double(shape.keys) /
                              double(schedule.getKeyTile()));
  double outputs = double(shape.batch * shape.heads) * double(shape.queries) *
                   double(shape.valueDim);
  double perScore = 2.0 * double(shape.headDim) + 1.0;
  if (!op.getScore().empty())
    perScore += countFlops(op.getScore());

  KernelCost kernel;
  kernel.name = "attention";
  // Scores in every pass; maximum, difference, exponential and sum once;
  // values; for each tile of keys a factor, applied to sum and accumulator; the
  // final quotient.
  double rows = double(shape.batch * shape.heads) * double(shape.queries);
  kernel.flops =
      scores *
          (double(passes) * perScore + 4.0 + 2.0 * double(shape.valueDim)) +
      (passes == 1 ? keyTiles * (outputs + 3.0 * rows) : 0.0) + outputs;
  constexpr int64_t kPartProducts = 6;
  int64_t unitProducts =
      schedule.getParts() ? kPartProducts : countUnitProducts(shape, target);
  if (unitProducts) {
    kernel.matrixFlops =
        scores * 2.0 *
        (double(passes) * double(shape.headDim) + double(shape.valueDim));
    kernel.matrixProducts = double(unitProducts);
  }
  KernelCost around, keys, values;
  if (failed(addProducers(op.getQuery(), around)) ||
      failed(addConsumers(op.getOutput(), around)) ||
      failed(addProducers(op.getKey(), keys)) ||
      failed(addProducers(op.getValue(), values)))
    return failure();
  for (Value capture : getCaptures(op)) {
    FailureOr<double> bytes = bytesOf(capture);
    if (failed(bytes))
      return failure();
    kernel.bytes += *bytes;
  }
  double heads = double((*key)[0] * (*key)[1]);
  double headBytes = heads ? (keys.bytes + values.bytes) / heads : 0.0;
  // The number of times that a tile of keys is loaded.
  double loads = std::max(
      1.0, double(llvm::divideCeil(shape.queries, schedule.getQueryTile())) *
               double(shape.heads) / double((*key)[1]) * shape.visible);
  double reads = headBytes > double(target.getNearMemory()) ? loads : 1.0;
  kernel.name += around.name + keys.name + values.name;
  kernel.bytes +=
      around.bytes + reads * (double(passes) * keys.bytes + values.bytes);
  double beside =
      around.flops + loads * (double(passes) * keys.flops + values.flops);
  kernel.flops += beside;
  kernel.seconds =
      std::max(predictSeconds(shape, target, schedule) *
                       (1.0 + 0.5 * double(passes - 1)) +
                   roofline(beside, 0.0),
               kernel.bytes / (double(target.getBandwidth()) * 1e6));
  if (schedule.isSplit()) {
    // Outputs and f64 log-sum-exps of parts are written, and merged.
    auto parts = double(schedule.countParts(shape.keys));
    KernelCost merge;
    merge.name = "attention: merge";
    merge.flops = parts * (2.0 * outputs + 3.0 * rows);
    merge.bytes = parts * (outputs * double(shape.accumulationBytes) +
                           rows * double(sizeof(double)));
    merge.seconds = roofline(merge.flops, merge.bytes);
    kernel.bytes += merge.bytes;
    cost.kernels.push_back(kernel);
    cost.kernels.push_back(merge);
    return success();
  }
  cost.kernels.push_back(kernel);
  return success();
}

/// Adds the cost of reading `value`: its bytes, or the ops that make it on a
/// tile.
LogicalResult CostEstimator::addProducers(Value value, KernelCost &kernel) {
  Operation *op = value.getDefiningOp();
  bool isView = op && isa<tensor::TensorDialect>(op->getDialect()) &&
                op->getNumOperands() &&
                isa<RankedTensorType>(op->getOperand(0).getType());
  bool isTiled = op && tiled.contains(op);
  if (isView && !isTiled) {
    // Views of a tensor that is made on a tile.
    Operation *source = op->getOperand(0).getDefiningOp();
    if (source && tiled.contains(source))
      return addProducers(op->getOperand(0), kernel);
  }
  if (!isTiled) {
    FailureOr<double> bytes = bytesOf(value);
    if (failed(bytes))
      return failure();
    kernel.bytes += *bytes;
    return success();
  }
  FailureOr<double> flops = flopsOf(op);
  if (failed(flops))
    return failure();
  counted.insert(op);
  kernel.flops += *flops;
  kernel.name += "+" + op->getName().getStringRef().str();
  for (Value input : getInputs(op))
    if (failed(addProducers(input, kernel)))
      return failure();
  return success();
}

/// Adds the cost of writing `value`: its bytes, or the ops that read it on a
/// tile.
LogicalResult CostEstimator::addConsumers(Value value, KernelCost &kernel) {
  SmallVector<Value> results = {value};
  llvm::SmallPtrSet<Operation *, 4> seen;
  while (!results.empty()) {
    Value result = results.pop_back_val();
    bool isWritten = result.use_empty();
    for (Operation *user : result.getUsers()) {
      bool isView = isa<tensor::TensorDialect>(user->getDialect()) &&
                    !isa<tensor::DimOp>(user);
      if (tiled.contains(user) || isView) {
        if (!seen.insert(user).second)
          continue;
        llvm::append_range(results, user->getResults());
        if (isView)
          continue;
        FailureOr<double> flops = flopsOf(user);
        if (failed(flops))
          return failure();
        counted.insert(user);
        kernel.flops += *flops;
        kernel.name += "+" + user->getName().getStringRef().str();
        for (Value input : getInputs(user)) {
          Operation *maker = input.getDefiningOp();
          if (input != result && !(maker && seen.contains(maker)) &&
              failed(addProducers(input, kernel)))
            return failure();
        }
      } else if (!isa<tensor::DimOp>(user)) {
        isWritten = true;
      }
    }
    if (!isWritten)
      continue;
    FailureOr<double> bytes = bytesOf(result);
    if (failed(bytes))
      return failure();
    kernel.bytes += *bytes;
  }
  return success();
}

LogicalResult CostEstimator::visit(Operation *op) {
  if (counted.contains(op))
    return success();
  if (auto attention = dyn_cast<AttentionOp>(op))
    return visitAttention(attention);
  // Views, constants and destinations move nothing.
  if (isa<tensor::TensorDialect>(op->getDialect()) &&
      !isa<tensor::PadOp, tensor::ConcatOp>(op))
    return success();
  if (isa<linalg::FillOp>(op) || op->hasTrait<OpTrait::ConstantLike>() ||
      op->hasTrait<OpTrait::IsTerminator>() ||
      llvm::none_of(op->getResultTypes(), llvm::IsaPred<RankedTensorType>))
    return success();

  KernelCost kernel;
  kernel.name = op->getName().getStringRef().str();
  FailureOr<double> flops = flopsOf(op);
  if (failed(flops))
    return failure();
  kernel.flops = *flops;
  if (target.isGpu() && isMatrixProduct(op))
    kernel.matrixFlops = *flops;
  bool continues = false;
  for (Value input : getInputs(op)) {
    if (passedOn.contains(input)) {
      continues = true;
      continue;
    }
    FailureOr<double> bytes = bytesOf(input);
    if (failed(bytes))
      return failure();
    kernel.bytes += *bytes;
  }
  for (Value result : op->getResults()) {
    if (passedOn.contains(result))
      continue;
    FailureOr<double> bytes = bytesOf(result);
    if (failed(bytes))
      return failure();
    kernel.bytes += *bytes;
  }
  if (continues && !cost.kernels.empty()) {
    KernelCost &chain = cost.kernels.back();
    chain.name += "+" + kernel.name;
    chain.flops += kernel.flops;
    chain.bytes += kernel.bytes;
    chain.seconds = roofline(chain.flops, chain.bytes);
    return success();
  }
  kernel.seconds = roofline(kernel.flops, kernel.bytes);
  cost.kernels.push_back(kernel);
  return success();
}

FailureOr<Cost> CostEstimator::run() {
  // This comes before sizes are computed, which adds ops and uses.
  SmallVector<Operation *> ops;
  for (Operation &op : function.front())
    ops.push_back(&op);
  for (Operation *op : ops) {
    auto attention = dyn_cast<AttentionOp>(op);
    if (!attention || tiled.empty())
      continue;
    KernelCost ignored;
    for (Value operand :
         {attention.getQuery(), attention.getKey(), attention.getValue()})
      if (failed(addProducers(operand, ignored)))
        return failure();
    if (failed(addConsumers(attention.getOutput(), ignored)))
      return failure();
  }
  for (Operation *op : ops) {
    if (form == KernelForm::Unfused || !isRowOp(op) || counted.contains(op))
      continue;
    Value result = op->getResult(0);
    if (result.hasOneUse() && isRowOp(*result.getUsers().begin()) &&
        !counted.contains(*result.getUsers().begin()))
      passedOn.insert(result);
  }
  for (Operation *op : ops)
    if (failed(visit(op)))
      return failure();
  return cost;
}

FailureOr<Cost> fovea::estimateCost(func::FuncOp function,
                                    ArrayRef<SmallVector<int64_t>> shapes,
                                    machine::TargetAttr target, KernelForm form,
                                    int64_t passes,
                                    const llvm::DenseSet<Operation *> &tiled) {
  // Sizes are evaluated on a copy, since computing them adds IR.
  IRMapping mapping;
  OwningOpRef<func::FuncOp> copy = function.clone(mapping);
  llvm::DenseSet<Operation *> copied;
  for (Operation *op : tiled)
    if (Operation *twin = mapping.lookupOrNull(op))
      copied.insert(twin);
  return CostEstimator(*copy, shapes, target, form, passes, copied).run();
}

SmallVector<std::optional<SmallVector<int64_t>>>
fovea::evaluateResultShapes(func::FuncOp function,
                            ArrayRef<SmallVector<int64_t>> shapes) {
  OwningOpRef<func::FuncOp> copy = function.clone();
  SizeEvaluator evaluator(*copy, shapes);
  SmallVector<std::optional<SmallVector<int64_t>>> results;
  for (Value result : copy->getBody().back().getTerminator()->getOperands())
    results.push_back(evaluator.shape(result));
  return results;
}
