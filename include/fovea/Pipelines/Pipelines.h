//===- Pipelines.h - From an attention graph to LLVM IR ---------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The named pipelines, for fovea-opt and for the compile driver. They run on a
// module of functions on tensors (attn, linalg, tensor, arith, math, scf,
// func).
//
// After level `llvm` the module is in the LLVM dialect. A public function
// `@f` has a C interface `_mlir_ciface_f` with these conventions:
//   - a tensor operand is a memref descriptor with any strides but the
//     innermost, which is 1; operands are never written;
//   - a tensor result is a memref descriptor with the identity layout, whose
//     buffer was allocated by the function and belongs to the caller; results
//     alias neither operands nor each other.
//
//
// For a GPU the conventions are the same, but memory is the GPU's: descriptors
// of operands and results point there, and the functions in
// `Runtime/GpuRuntime.h` must be called by a thread with a launch context. The
// code for the device is in `gpu.module @kernels` (`Transforms/GpuKernels.h`),
// in the LLVM dialect.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_PIPELINES_PIPELINES_H
#define FOVEA_PIPELINES_PIPELINES_H

#include "fovea/Dialect/Attn/Differentiate/Passes.h"
#include "fovea/Dialect/Attn/Transforms/Passes.h"
#include "fovea/Dialect/Machine/IR/GpuArch.h"
#include "fovea/Support/Choices.h"

#include "llvm/ADT/DenseSet.h"

namespace mlir {
class DialectRegistry;
class ModuleOp;
class Operation;
class OpPassManager;
} // namespace mlir

namespace fovea {

/// The ways to compute attention.
enum class Strategy {
  /// The graph as written, kernel by kernel; scores are in memory.
  Unfused,
  /// Fused, over the keys three times: maximum, sum, values.
  ThreePass,
  /// Fused, over the keys twice: online maximum and sum, values.
  TwoPass,
  /// Fused, over the keys once.
  Fused,
};

Choices<Strategy> getStrategyChoices();

/// Returns the number of passes of fused attention over the keys.
int getPasses(Strategy strategy);

/// The places where a pipeline stops.
enum class Level {
  /// The graph as it was written, private functions inlined.
  Attn,
  /// `attn.attention` with its schedule (or the graph, if the strategy is
  /// `Unfused`).
  Fused,
  /// Loops over tiles, on tensors.
  Tiled,
  /// GPUs: programs of thread blocks, on buffers.
  Tile,
  /// GPUs: kernels in the gpu dialect and their launches.
  Gpu,
  /// GPUs: kernels in the NVVM and LLVM dialects and their launches.
  NVVM,
  /// The LLVM dialect.
  LLVM,
};

/// Returns the levels of the pipeline for a GPU, or of that for the host.
Choices<Level> getLevelChoices(bool isGpu);

struct HostOptions {
  Strategy strategy = Strategy::Fused;
  Level level = Level::LLVM;
  /// True if powers of two are as exact for results in 16 bits as for f32.
  bool exactFunctions = false;
  /// False at level `Fused` to leave attention without its schedule.
  bool selectsSchedules = true;
};

/// Appends the passes that compile a module for the host. The module's
/// `machine.target`, if there is one, describes the machine.
void buildHostPipeline(mlir::OpPassManager &manager,
                       const HostOptions &options = {});

struct GpuOptions {
  Strategy strategy = Strategy::Fused;
  Level level = Level::LLVM;
  const machine::GpuArch *arch = machine::GpuArch::find("sm_90a");
  /// True if the order of all sums is fixed: results have the same bits in
  /// every run.
  bool deterministic = false;
  /// True if score regions never use the machine's approximate functions, and
  /// tensor cores never multiply parts of f32.
  bool exactFunctions = false;
  /// The lengths that dynamic ones are taken for where schedules are chosen; 0:
  /// what is usual.
  int64_t typicalLength = 0;
  /// The rows of a head of all sequences of a dynamic batch; 0: they are not
  /// few.
  int64_t typicalRows = 0;
  /// The rows of a tile of queries where there are few tiles; 0: any.
  int64_t tileRows = 0;
  /// True if code is for few queries of each sequence, so that the heads of a
  /// group are rows of any number of them (`attn-pack-groups=batches`).
  bool packsBatches = false;
  /// False at level `Fused` to leave attention without its schedule.
  bool selectsSchedules = true;
  /// True if functions are called only with operands that their `@f.aligned`
  /// approves of (`tile-pack-operands`).
  bool outlinesTests = false;
};

/// Appends the passes that compile a module for a GPU. The module's
/// `machine.target`, if it is of that arch, describes the machine.
void buildGpuPipeline(mlir::OpPassManager &manager,
                      const GpuOptions &options = {});

/// Appends the passes of `buildGpuPipeline` that kernels need. At level `llvm`
/// nothing refers to the kernels any more, and they can be taken out of the
/// module.
void buildGpuKernelPipeline(mlir::OpPassManager &manager,
                            const GpuOptions &options = {});

/// Appends the others, which compile the host's functions. They are faster
/// without the kernels, of which they would look at every op.
void buildGpuHostPipeline(mlir::OpPassManager &manager);

/// Appends the passes that prepare a module for the tile interpreter: programs
/// of thread blocks, and loops for the ops around them. If the module has
/// programs already, they are run as they are.
void buildSimulationPipeline(mlir::OpPassManager &manager,
                             const GpuOptions &options, bool hasPrograms);

struct ReferenceOptions {
  /// True if every value keeps its type; otherwise floating-point values are
  /// f64, results included, except operands.
  bool ownTypes = false;
  /// True if attention is recognised first and evaluated by its definition: a
  /// row without a key gives zeros, where steps of a softmax divide 0 by 0.
  bool fused = false;
};

/// Appends the passes that compile a module to its reference: the unfused
/// graph by scalar loops and libm.
void buildReferencePipeline(mlir::OpPassManager &manager,
                            const ReferenceOptions &options = {});

/// Appends the passes that compile a module to the code that `--check-bounds`
/// runs before it: the unfused graph in its own types, as scalar loops, with a
/// check of every index and divisor (`instrument-accesses`).
void buildCheckedPipeline(mlir::OpPassManager &manager);

/// Returns, for a module that is fused for the host, the ops beside attention
/// that are computed on its tiles: ops that compute its operands, and ops that
/// read its output.
llvm::DenseSet<mlir::Operation *> findTiledOps(mlir::ModuleOp module,
                                               Strategy strategy);

struct GradientOptions {
  /// The function to differentiate; all public ones if empty.
  std::string function;
  /// True to differentiate the graph op by op, as written: the textbook's
  /// backward pass, which reads saved probabilities. Otherwise attention is
  /// fused first.
  bool textbook = false;
  /// The policy for recomputing the probabilities of fused attention.
  attn::Recomputation recomputation = attn::Recomputation::Auto;
  /// True to split forward and backward pass into two functions.
  bool partition = false;
  /// The GPU that the module will be compiled for, if not the machine of the
  /// module's `machine.target`.
  const machine::GpuArch *gpu = nullptr;
};

/// Appends the passes that add gradients to a module of graphs, which is then
/// compiled as any other. For `@f` there is `@f_gradient`, see
/// `attn-differentiate`, or `@f_forward` and `@f_backward`, see
/// `attn-partition-gradient`.
void buildGradientPipeline(mlir::OpPassManager &manager,
                           const GradientOptions &options = {});

/// Registers the dialects, interface models and LLVM translations that the
/// pipelines need.
void registerAllDialects(mlir::DialectRegistry &registry);

/// Registers the passes of Fovea, the passes of MLIR that the pipelines consist
/// of, and the pipelines.
void registerFoveaPasses();

} // namespace fovea

#endif // FOVEA_PIPELINES_PIPELINES_H
