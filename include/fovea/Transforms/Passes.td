//===- Passes.td - Passes within the levels of the IR ------*- tablegen -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TRANSFORMS_PASSES_TD
#define FOVEA_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// reject-recursion
//===----------------------------------------------------------------------===//

def RejectRecursion : Pass<"reject-recursion", "::mlir::ModuleOp"> {
  let summary = "Refuses functions that call themselves";
  let description = [{
    Functions are inlined and bufferized callee first. If a function calls
    itself, directly or through others, inlining has no end and bufferization no
    order: this is an error at the function, with a note at the call.
  }];
}

//===----------------------------------------------------------------------===//
// expand-scalars
//===----------------------------------------------------------------------===//

def ExpandScalars : Pass<"expand-scalars"> {
  let summary = "Writes scalar ops by those that every pass and target has";
  let description = [{
    This is the first pass of every pipeline, so that fusion, mask analysis,
    derivatives, the interpreter and code generation have fewer ops to support.
    On numbers:

    - the ops of the `index` dialect become those of `arith`;
    - `math.isnan`, `isinf`, `isfinite` and `isnormal` become comparisons, as
      does `math.clampf`;
    - `math.ipowi` becomes multiplications: by squares, as many as the exponent
      has bits if it is a constant, else as many as its type has. 0 to a
      negative power, which has no value, is 0;
    - `math.sincos` becomes a sine and a cosine, and `arith.addui_extended`,
      `arith.mului_extended` and `arith.mulsi_extended` two ops or more, each
      with one result.

    On numbers, vectors and tensors, `arith.extf` of an `f8E4M3FN` becomes
    arithmetic on its bits, read as an integer: graphs have tensors of such floats
    as `i8`, and `arith.bitcast` in front of the extension.

    On numbers, vectors and tensors, a cast of an index to fewer than 64 bits
    (`arith.index_cast`, `arith.index_castui`) becomes one to 64 bits and
    `arith.trunci`: MLIR's canonicalizer treats a cast to few bits and back as
    the identity.

    ```mlir
    %0 = arith.index_cast %j : index to i8
    // becomes
    %1 = arith.index_cast %j : index to i64
    %0 = arith.trunci %1 : i64 to i8
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::tensor::TensorDialect"
  ];
  let statistics = [
    Statistic<"numExpanded", "num-expanded", "Number of ops expanded">
  ];
}

//===----------------------------------------------------------------------===//
// canonicalize-kernels
//===----------------------------------------------------------------------===//

def CanonicalizeKernels
    : Pass<"canonicalize-kernels", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Canonicalizes kernels that have an op for each element";
  let description = [{
    Runs the canonicalization patterns that `canonicalize` runs, first on ops
    without regions, then on those with regions, such as loops. `canonicalize`
    also looks at all loops around an op whenever the op changes, and to see
    whether a loop is needed at all, at the ops in it. In a kernel whose loops hold
    thousands of ops this takes five times as long, and finds nothing more.

    Loops keep the values that they carry, also those that are the same or that
    nothing uses. LLVM removes them; to find them here, each change of a loop
    would take the comparison of all such values.
  }];
}

//===----------------------------------------------------------------------===//
// expand-for-llvm
//===----------------------------------------------------------------------===//

def ExpandForLLVM : Pass<"expand-for-llvm"> {
  let summary = "Writes views, affine maps and some arithmetic by ops that LLVM has";
  let description = [{
    Runs the patterns of `arith-expand`, `expand-strided-metadata` and
    `lower-affine`, in this order. These passes look at all ops, and the second
    one folds them. This one looks only at ops that have a pattern, which are few
    in a kernel that has an op for each element of a tile. Minima and maxima of
    floats, which `arith-expand` writes as comparisons, stay: LLVM has them.
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"
  ];
  let statistics = [
    Statistic<"numExpanded", "num-expanded", "Number of ops expanded">
  ];
}

//===----------------------------------------------------------------------===//
// expand-math
//===----------------------------------------------------------------------===//

def ExpandMath : Pass<"expand-math"> {
  let summary = "Writes elementary functions as arithmetic that vectorises";
  let description = [{
    `math.exp`, `exp2`, `log`, `log2`, `log10`, `log1p`, `tanh` and `erf` on f32
    and f64, scalars and vectors, become arithmetic: the machine's library would
    be called element by element. f16 and bf16 are computed in f32; `erf` on f64
    is left to the library.

    Largest errors, in units in the last place, measured against long double:
    `exp`, `log` 1; `exp2` 1.5; `log2`, `log1p` 2; `log10` 2.5; `tanh` 6 (f64:
    1.5); `erf` 6.5. Arguments of all magnitudes, infinities and NaN are right;
    results go to subnormal numbers and to infinity where they should.

    A function with the fastmath flag `afn` gives it to its quotients. With `all`,
    `exp2` on f32 with that flag is left: GPUs have an instruction, with an error
    of 2^-22 (PTX ISA, `ex2.approx`).

    `math.clampf` becomes comparisons, and `math.fpowi` a `math.powf`.

    With `all`, for machines without a library, the other functions of `math` on
    floats and `arith.remf` also become arithmetic, computed in f64 for all
    types: sines and cosines of magnitudes up to 2^33; powers with a relative
    error of at most 2^-51 times the binary logarithm of the result; remainders
    without an error, of quotients up to 2^312.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::vector::VectorDialect"
  ];
  let options = [
    Option<"all", "all", "bool", "false",
           "Expand also what is best left to a library">
  ];
  let statistics = [
    Statistic<"numExpanded", "num-expanded", "Number of functions expanded">
  ];
}

//===----------------------------------------------------------------------===//
// linalg-prepare
//===----------------------------------------------------------------------===//

def LinalgPrepare : Pass<"linalg-prepare"> {
  let summary = "Writes all work on tensors as linalg.generic";
  let description = [{
    Later passes need not support these ops: named linalg ops and arith and math
    ops on whole tensors become `linalg.generic`; `linalg.softmax` and the like,
    `linalg.pack` and `linalg.unpack`, `tensor.pad` and `tensor.concat` are
    decomposed; operands that are splat constants move into bodies.
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"
  ];
}

//===----------------------------------------------------------------------===//
// linalg-fuse-rows
//===----------------------------------------------------------------------===//

def LinalgFuseRows : Pass<"linalg-fuse-rows"> {
  let summary = "Fuses elementwise ops and norms into one pass over rows";
  let description = [{
    Ops that agree in their leading, parallel loops (the rows) and read each
    other's results row by row become one `scf.forall` over the rows, in which
    every op works on one row. Tensors that only the group uses never exist as a
    whole; tensors that other ops use are written row by row. So LayerNorm,
    dropout and a residual add are one kernel that reads and writes memory once.

    A group is connected, no op outside of it lies between two of its ops, and a
    row has at most 65536 elements, as far as sizes are known. Contractions are
    in no group. Reshapes between the ops are moved out of the way first. An op may
    write a row elsewhere than the rows are, as a transposition behind them does, if
    no other op of the group reads it. Within
    a group elementwise ops are fused into their one consumer, and values that
    are rounded to a narrower type and widened again between two of them no longer
    are; what one op rounds and widens itself stays rounded.

    With `scope=op` only ops that replace the same graph op (`machine.kernel`) are
    fused: the unfused baseline, kernel by kernel.
  }];
  let options = [
    Option<"scope", "scope", "std::string", "\"graph\"",
           "What is fused: `graph`, or `op` for the ops of one graph op">
  ];
  let dependentDialects = [
    "::fovea::machine::MachineDialect", "::mlir::affine::AffineDialect",
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"
  ];
  let statistics = [
    Statistic<"numGroups", "num-groups", "Number of kernels made by fusion">,
    Statistic<"numFused", "num-fused", "Number of ops fused into them">
  ];
}

//===----------------------------------------------------------------------===//
// linalg-split-sums
//===----------------------------------------------------------------------===//

def LinalgSplitSums : Pass<"linalg-split-sums"> {
  let summary = "Divides sums with few results among all threads of a GPU";
  let description = [{
    A sum over the rows of a matrix, as the gradient of a norm's weights is one,
    has a result for each column. A thread for each of these leaves most of a GPU
    idle, and threads that share the terms of one read far apart. The pass divides
    such a sum into parts, and its results among blocks of neighbours: an
    `scf.forall` has an item for each part of some 256 results, and the parts are
    added up behind it in an order that sizes decide, so that results have the same
    bits in every run.

    It divides ops on tensors whose results are static in number and leave three of
    four threads idle, of which one operand has an element for each term, and whose
    terms are not neighbours in that operand: rows whose terms are have a block
    each, and stay as they are. All operands are indexed by loops alone.
  }];
  let dependentDialects = [
    "::fovea::machine::MachineDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect"
  ];
  let statistics = [
    Statistic<"numSplit", "num-split", "Number of sums that are divided">
  ];
}

//===----------------------------------------------------------------------===//
// separate-destinations
//===----------------------------------------------------------------------===//

def SeparateDestinations : Pass<"separate-destinations"> {
  let summary = "Gives each result of a parallel loop memory of its own";
  let description = [{
    An `scf.forall` inserts one value into each of its destinations. Where two
    of these values are computed from one tensor, such as from zeros that were
    two tensors until `cse` made them one, one-shot bufferization may put that
    tensor into the first destination, and insert the first value over the
    second before the second is read. This pass, which runs before it, gives the
    second value a tensor of its own: another fill, where the tensor is a fill,
    and a copy otherwise.
  }];
  let dependentDialects = [
    "::mlir::bufferization::BufferizationDialect"
  ];
  let statistics = [
    Statistic<"numSeparated", "num-separated",
              "Number of tensors that were made separate">
  ];
}

//===----------------------------------------------------------------------===//
// host-bufferize
//===----------------------------------------------------------------------===//

def HostBufferize : Pass<"host-bufferize", "::mlir::ModuleOp"> {
  let summary = "Bufferizes a module with the host's function boundaries";
  let description = [{
    One-shot bufferization with these function boundaries:

    - a tensor argument becomes a memref with any strides, except that the
      innermost is 1; it is written only if it is marked as
      `{bufferization.writable = true}`: then each update of it takes place in
      its memory, where the caller finds what it holds at the end, and it is an
      error if the graph still reads elements from before an update. An update
      that no result depends on is not made;
    - a tensor result of a public function becomes a memref with the identity
      layout, allocated by the function; results alias neither arguments nor
      each other, which costs a copy where the graph returns an argument, a
      part of a tensor, or one tensor twice;
    - constants in memory are named and sorted by their first uses.
  }];
  let dependentDialects = [
    "::mlir::bufferization::BufferizationDialect",
    "::mlir::memref::MemRefDialect"
  ];
  let options = [
    Option<"inPlace", "in-place", "bool", /*default=*/"true",
           "Update writable arguments in place; else no argument is written">
  ];
  let statistics = [
    Statistic<"numResultCopies", "num-result-copies",
              "Number of results that had to be copied">
  ];
}

//===----------------------------------------------------------------------===//
// place-buffers
//===----------------------------------------------------------------------===//

def PlaceBuffers : Pass<"place-buffers", "::mlir::ModuleOp"> {
  let summary = "Puts small buffers on the stack, frees others after last use";
  let description = [{
    Buffers of static size of at most `stack-limit` bytes become
    `memref.alloca` at the start of the enclosing function, or of the body of
    the enclosing outermost parallel loop; all in one such place take at most
    `stack-total` bytes. Other buffers are deallocated after their last use.

    A function in which a buffer leaves its block by a loop or branch falls back
    to MLIR's ownership-based deallocation; or, without `free-escaping`, such a
    buffer is left to the runtime, which frees it at the end of the call.
  }];
  let options = [
    Option<"stackLimit", "stack-limit", "int64_t", "65536",
           "Bytes of the largest buffer on the stack">,
    Option<"stackTotal", "stack-total", "int64_t", "262144",
           "Bytes of all buffers on the stack in one place">,
    Option<"freeEscaping", "free-escaping", "bool", "true",
           "Free buffers that leave their block">
  ];
  let dependentDialects = [
    "::mlir::bufferization::BufferizationDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"
  ];
  let statistics = [
    Statistic<"numStack", "num-stack", "Number of buffers put on the stack">,
    Statistic<"numFreed", "num-freed", "Number of buffers freed">
  ];
}

//===----------------------------------------------------------------------===//
// outline-parallel
//===----------------------------------------------------------------------===//

def OutlineParallel : Pass<"outline-parallel", "::mlir::ModuleOp"> {
  let summary = "Turns parallel loops into calls of the runtime's thread pool";
  let description = [{
    The body of every outermost, bufferised `scf.forall` becomes a private
    function of a context and a call number,

        void body(void *context, int64_t call);

    and the loop a call of `fovea_parallel_for(body, context, calls)`, which
    runs the calls in any order on any threads and returns when all are done.
    The context is a struct on the caller's stack with the values that the body
    uses; constants are copied into the body.

    The loop's `machine.grain` (an integer, default 1) is the number of
    iterations that one call executes. Iterations are numbered with the last dimension
    fastest. Buffers of a size that is the same in all iterations are allocated
    once a call. Parallel loops within the body become sequential.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::scf::SCFDialect"
  ];
  let statistics = [
    Statistic<"numOutlined", "num-outlined", "Number of loops outlined">
  ];
}

//===----------------------------------------------------------------------===//
// promote-to-f64
//===----------------------------------------------------------------------===//

def PromoteToF64 : Pass<"promote-to-f64", "::mlir::ModuleOp"> {
  let summary = "Computes everything that is floating-point in f64";
  let description = [{
    Makes the reference that results are checked against: every floating-point
    type, constant and dense attribute becomes f64, and conversions between
    floating-point types vanish, so that nothing is rounded in between. The
    arguments of public functions keep their types and are extended on entry;
    their results become f64.

    An op that uses the bits of a float (`arith.bitcast`) has no counterpart in
    f64 and is an error.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::tensor::TensorDialect"
  ];
}

//===----------------------------------------------------------------------===//
// outline-shape-checks
//===----------------------------------------------------------------------===//

def OutlineShapeChecks : Pass<"outline-shape-checks", "::mlir::ModuleOp"> {
  let summary = "Writes what ops demand of sizes as a function to call first";
  let description = [{
    Compiled code trusts sizes: where ops disagree about a dynamic size, it
    would read beyond a tensor. For each public function `@f` whose ops demand
    something of dynamic sizes, this pass adds `@f.shapes`, with the same
    operands, for the caller to call first. It returns the number of the first
    demand that is not met and the two sizes that are compared, or -1. The
    attribute `machine.messages` has a message for each demand, in which `{0}` and
    `{1}` stand for the sizes and `$N` for operand N of the function.

    Demands are: equal sizes where an op relates two (keys and values, norms and
    their weights, operands of linalg ops), query heads that are a multiple of
    the heads of keys and values, sizes that a result's type states, slices and
    elements within their tensor, and results whose size fits 64 bits. Indices
    into captured tensors in score, mask and linalg regions are bounded by
    interval arithmetic over the region's coordinates: for every coordinate
    these must lie within the tensor, also where the score is masked afterwards.

    A demand that fails for all operands is an error, and so is a static size
    that does not fit. A demand that depends on data, or on control flow, is
    left out. The function itself does not change.
  }];
  let dependentDialects = [
    "::fovea::machine::MachineDialect", "::mlir::affine::AffineDialect",
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::tensor::TensorDialect"
  ];
  let statistics = [
    Statistic<"numChecks", "num-checks", "Number of demands to check">
  ];
}

//===----------------------------------------------------------------------===//
// instrument-accesses
//===----------------------------------------------------------------------===//

def InstrumentAccesses : Pass<"instrument-accesses", "::mlir::ModuleOp"> {
  let summary = "Adds checks of indices and divisors that data decides";
  let description = [{
    Runs on buffers, while loops over them are still linalg ops: every
    `memref.load` and `memref.store` then comes from a `tensor.extract` or
    `tensor.insert` of the graph. In front of each, the pass inserts for each
    dimension a call of the runtime with the index and the size, and in front of
    each integer division and remainder a call with the dividend and the
    divisor. An access out of bounds, a division by 0 or an overflow ends the
    call of the function with a message that names the op, its location and the
    numbers.

    Constant divisors other than 0 and -1, and constant indices within a static
    size, are not checked.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::memref::MemRefDialect"
  ];
  let statistics = [
    Statistic<"numChecks", "num-checks", "Number of checks added">
  ];
}

//===----------------------------------------------------------------------===//
// attach-gpu-target
//===----------------------------------------------------------------------===//

def AttachGpuTarget : Pass<"attach-gpu-target", "::mlir::ModuleOp"> {
  let summary = "States the GPU that a module is compiled for";
  let description = [{
    Sets the module's `machine.target` to the model of the GPU that is typical
    of a name: an A100 for `sm_80`, an H200 for `sm_90a` (see the table in
    `lib/Dialect/Machine/IR/GpuArch.cpp`). A module that already states a GPU of
    this name keeps its numbers.
  }];
  let options = [
    Option<"target", "target", "std::string", "\"sm_90a\"",
           "The name of a GPU, such as `sm_80` or `sm_90a`">
  ];
  let dependentDialects = ["::fovea::machine::MachineDialect"];
}

//===----------------------------------------------------------------------===//
// gpu-join-launches
//===----------------------------------------------------------------------===//

def GpuJoinLaunches : Pass<"gpu-join-launches", "::mlir::ModuleOp"> {
  let summary = "Joins launches that are independent of each other into one";
  let description = [{
    Of two launches of a block of the host's code, of which neither writes what
    the other accesses, the earlier one moves to the later one if nothing
    between them needs what it writes or changes what it reads. The grid of the
    joined launch has the blocks of both, those of the earlier one first, and
    its blocks have as many threads as the larger of the two had. Only launches
    along x with next to no shared memory are joined, those with barriers only
    if all threads of a block take part, and no programs of tiles: loops over
    elements and lists, which take little longer than a launch itself where they
    are small. That a launch has no work, as the `scf.if` around it says, leaves
    it no blocks. A multiprocessor has room for as many threads of the joined
    launch as it shall have for either (`nvvm.minctasm`), and the memory of both
    is distinct if that of either was (`machine.distinct_memory`), else they
    stay apart, as do launches with other attributes.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect"
  ];
  let statistics = [
    Statistic<"numJoined", "num-joined", "Number of launches that joined others">
  ];
}

//===----------------------------------------------------------------------===//
// gpu-outline-kernels
//===----------------------------------------------------------------------===//

def GpuOutlineKernels : Pass<"gpu-outline-kernels", "::mlir::ModuleOp"> {
  let summary = "Moves the bodies of launches into one module of kernels";
  let description = [{
    Every `gpu.launch` becomes a `gpu.launch_func` of a kernel in
    `gpu.module @kernels`, which gets the NVVM target, the triple and the data
    layout of the module's `machine.target`, if that is a GPU. The kernel of the
    n-th launch of function `@f` is `@f_n`; launches with equal bodies share a
    kernel. Constants, and sizes of memrefs that are passed anyway, move into
    the kernels, and constants in memory are copied into `@kernels`.
  }];
  let dependentDialects = [
    "::mlir::gpu::GPUDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::NVVM::NVVMDialect"
  ];
  let statistics = [
    Statistic<"numKernels", "num-kernels", "Number of kernels">,
    Statistic<"numShared", "num-shared",
              "Number of launches of a kernel that was there">
  ];
}

//===----------------------------------------------------------------------===//
// gpu-start-early
//===----------------------------------------------------------------------===//

def GpuStartEarly : Pass<"gpu-start-early", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Lets kernels start while those in front of them end";
  let description = [{
    Programmatic dependent launch, from `sm_90` on: before it does anything
    but to prepare itself (barriers in its shared memory, prefetches of descriptors),
    a kernel waits for the one in front of it (`griddepcontrol.wait`, PTX
    ISA 9.7.13.13), and then lets the next kernel start
    (`griddepcontrol.launch_dependents`), whose blocks take the places of those
    that end. The order matters: when a kernel can start, all kernels are
    complete except the one right in front of it. Kernels get the attribute
    `machine.starts_early`, which tells `convert-gpu-to-runtime` to launch them
    in this way.
  }];
  let dependentDialects = [
    "::fovea::machine::MachineDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::NVVM::NVVMDialect"
  ];
  let statistics = [
    Statistic<"numKernels", "num-kernels", "Number of kernels">
  ];
}

#endif // FOVEA_TRANSFORMS_PASSES_TD
