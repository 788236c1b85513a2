//===- Passes.td - Passes from attn and linalg to the machine -*- tablegen -*-//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_CONVERSION_PASSES_TD
#define FOVEA_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// attn-to-linalg
//===----------------------------------------------------------------------===//

def AttnToLinalg : Pass<"attn-to-linalg"> {
  let summary = "Writes the ops of the attention graph as linalg on tensors";
  let description = [{
    Every graph op becomes a few `linalg.generic`s that state its formula, with
    sums and norms in the accumulation type and one rounding at the end.
    `attn.attention` is decomposed to the graph ops that it stands for first.
    The ops that one graph op became carry the same number in the attribute
    `fovea.kernel`, so that the graph can be run kernel by kernel
    (`linalg-fuse-rows{scope=op}`).

    `attn.online_attention` and the ops around it stay. With
    `scope=elementwise`, so do all ops but those that become one elementwise
    `linalg.generic`: `attn.scale`, `attn.residual_add`, `attn.elementwise` and
    `attn.dropout`. So written, they can be reshaped, transposed and, dropout
    with the numbers of its elements, tiled.
  }];
  let dependentDialects = [
    "::fovea::attn::AttnDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
    "::mlir::tensor::TensorDialect"
  ];
  let options = [
    Option<"scope", "scope", "std::string", /*default=*/"\"graph\"",
           "Which ops: `graph` (all) or `elementwise`">
  ];
  let statistics = [
    Statistic<"numConverted", "num-converted", "Number of graph ops converted">
  ];
}

//===----------------------------------------------------------------------===//
// convert-attn-to-tile
//===----------------------------------------------------------------------===//

def AttnToTile : Pass<"convert-attn-to-tile"> {
  let summary = "Writes tiled attention as programs of thread blocks";
  let description = [{
    Each `scf.forall` that `attn-tile` makes becomes a `tile.launch` with one
    block for each iteration. Its program is plain, one op after another: it loads the tile of queries, and for each tile of
    keys loads the keys, multiplies, applies the score region and the mask,
    updates the running values, loads the values and multiplies again; in the
    end it divides by the sum and stores.

    - Tiles have static sizes, the bounds of the loop's tiles: padded to 16
      queries for each warp, 16 keys and 16 features. What lies beyond a tensor
      is loaded as zeros and not stored. Keys of a padded tile that do not exist
      are masked with those that the mask region excludes, under one branch.
    - Regions become `tile.map`s on coordinates of the whole attention. Captured
      tensors become operands of the launch and are read by `memref.load`, for
      elements beyond the last query or key at the coordinates of the last.
    - Without a score region, and with a positive scale, the scale is folded
      into the exponential.
    - Sizes of tensors are computed before the launch.

    `warps` and `stages` are those of `#attn.schedule`. All strategies of
    `attn-online-softmax` are converted.

    A scheduled `attn.attention_backward` becomes a `tile.launch` with one block
    for each tile of keys of a head. It loads its keys and values, and for each
    tile of queries of the heads of its group loads the queries and the output's
    gradients, computes scores and gradients of probabilities transposed, `keys x
    queries`, adds to the gradients of its keys and values, which stay in
    registers, and adds the gradients of the queries in memory
    (`tile.store add`), in f32.

    - The mask analysis bounds the loop over tiles of queries and tests tiles, as
      it does for keys in the forward pass.
    - In front, a kernel makes the statistics of rows ready: minus the
      log-sum-exp in base 2 and minus delta, up to whole tiles. Rows without a
      key, and those that do not exist, have a probability of 0 everywhere.
    - Behind, the queries' gradients are scaled and rounded.
    - Of captured tensors, elements that no query chooses (slopes, temperatures,
      numbers of keys) get from a block a sum for each of its keys, over its
      queries; those are summed in f64 behind. Where no two scores read the same
      element, each writes its gradient. Other elements are added to in memory
      (`memref.atomic_rmw addf`), in f32, or in f64 if operands are f32 or f64 and
      query and key do not both index a dimension; what is zero is not. Where
      the difference of query and key says where, and operands have 16 bits, a
      warp's sums along diagonals are added (`tile.sum_diagonals`).
    - Elements that query and key choose, and no score, are read before the
      products.
    - `deterministic`: what is added in memory has the same bits in every run,
      and a remark says by which of two ways. Either it is added up exactly, in
      64-bit integers (`memref.atomic_rmw addi`), some for each element: of f32
      19 up to 2^23 terms, 35 up to 2^31, at most 130; of f64 264. The sum is
      rounded once, behind. Or, where only batches or heads share elements, and
      integers would take more memory than the sums of the queries' gradients,
      a loop makes a launch for each of these, which add in their order.
      (`--tile-order-adds` orders what blocks add to queries' gradients.)

    A loop stays, with a missed remark that says why, if its schedule has no
    `warps`, if something else is computed in it (run `attn-tile` with
    `fuse-producers=false fuse-consumers=false`), if queries, keys and values
    differ in their element type, or if a head dim is dynamic or above 256. A
    backward pass stays if its operands differ in their element type, or if its
    score region has no derivative or reads a captured tensor with a gradient in
    a region of its own.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect",
    "::fovea::tile::TileDialect"
  ];
  let options = [
    Option<"deterministic", "deterministic", "bool", /*default=*/"false",
           "Whether sums of captured tensors' gradients do not depend on the "
           "order in which blocks add">
  ];
  let statistics = [
    Statistic<"numConverted", "num-converted",
              "Number of loops and backward passes converted">,
    Statistic<"numKept", "num-kept", "Number of those that stay">
  ];
}

//===----------------------------------------------------------------------===//
// convert-attn-to-vector
//===----------------------------------------------------------------------===//

def ConvertAttnToVector
    : Pass<"convert-attn-to-vector", "::mlir::ModuleOp"> {
  let summary = "Writes attn.online_attention on memrefs as loops over vectors";
  let description = [{
    `attn.online_attention`, `attn.online_backward`, `attn.finalize` and
    `attn.pack_query` on memrefs become scf loops over vector ops. Queries lie in
    the lanes, so that no step of the softmax needs a horizontal operation. For
    each block of keys:

    - scores `P[key][query]` in register tiles of keys times vectors of queries;
      with 64-byte vectors and 32 registers, 8 keys times 3 vectors;
    - the score region, and the mask region where `partial` holds, each in one
      loop over P. Of a region, what depends on the query or the score becomes
      vector ops, what depends on the key alone stays scalar, and what depends
      on neither is taken out of the loop. A region that is not elementwise is
      applied one score after another;
    - the softmax in one pass over P, with 2^x by a polynomial;
    - dropout;
    - `acc = acc * alpha + P^T V` in register tiles of queries times vectors of
      features (6 times 4).

    Within a block, keys that the mask's bounds (see MaskAnalysis.h) rule out for
    a register tile's queries are skipped.

    The backward pass has five products for each block of keys, all of single
    elements of one operand with vectors of the other: `P = K Q^T` and `S = V dO^T`
    with packed queries and gradients, and, after the probabilities and the scores'
    gradients have been taken in the lanes, `dV += P dO`, `dK += S Q` and
    `dQ += S^T K` in place. Register tiles are those that take the least time by a
    count of multiply-adds and loads; rows beyond the last one are the last one
    again.

    Keys and values of another element type, or without contiguous features, are
    converted block by block into scratch. Scratch of fixed size is on the stack of
    the enclosing parallel loop or function.

    An op that is not packed (`attn-pack-queries`) is packed in place, tile by
    tile, which costs copies of its running values.
  }];
  let options = [
    Option<"vectorBytes", "vector-bytes", "int64_t", "0",
           "Bytes of a vector register; 0: the target's, or 64">,
    Option<"vectorRegisters", "vector-registers", "int64_t", "0",
           "Number of vector registers; 0: the target's, or 32">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"
  ];
  let statistics = [
    Statistic<"numConverted", "num-converted", "Number of ops converted">,
    Statistic<"numUnpacked", "num-unpacked",
              "Number of ops that had to be packed in place">
  ];
}

//===----------------------------------------------------------------------===//
// reject-recursion
//===----------------------------------------------------------------------===//

def RejectRecursion : Pass<"reject-recursion", "::mlir::ModuleOp"> {
  let summary = "Refuses functions that call themselves";
  let description = [{
    Functions are inlined and bufferized callee first, which has no end, or no
    order, where one calls itself, through others or directly: an error at the
    function, with a note at the call.
  }];
}

//===----------------------------------------------------------------------===//
// expand-scalars
//===----------------------------------------------------------------------===//

def ExpandScalars : Pass<"expand-scalars"> {
  let summary = "Writes scalar ops by those that every pass and target has";
  let description = [{
    The first pass of every pipeline, so that fusion, mask analysis, derivatives,
    the interpreter and code generation know fewer ops. On numbers:

    - the ops of the `index` dialect become those of `arith`;
    - `math.isnan`, `isinf`, `isfinite` and `isnormal` become comparisons, as
      does `math.clampf`;
    - `math.ipowi` becomes multiplications: by squares, as many as the exponent's
      bits if it is a constant, and else its type's. 0 to a negative power, which
      has no value, is 0;
    - `math.sincos` becomes a sine and a cosine, and `arith.addui_extended`,
      `arith.mului_extended` and `arith.mulsi_extended` two ops or more, each
      with one result.

    On numbers, vectors and tensors, a cast of an index to fewer than 64 bits
    (`arith.index_cast`, `arith.index_castui`) becomes one to 64 bits and
    `arith.trunci`: MLIR's canonicalizer takes a cast to few bits and back for
    the identity.

    ```mlir
    %0 = arith.index_cast %j : index to i8
    // becomes
    %1 = arith.index_cast %j : index to i64
    %0 = arith.trunci %1 : i64 to i8
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"
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

    `math.clampf` becomes comparisons, and `math.fpowi` a `math.powf`.

    With `all`, for machines without a library, so do the other functions of
    `math` on floats, and `arith.remf`, computed in f64 for all types: sines and
    cosines of magnitudes up to 2^33; powers with a relative error of at most
    2^-51 times the binary logarithm of the result; remainders without an error,
    of quotients up to 2^312.
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
    What the later passes need not know: named linalg ops and arith and math ops
    on whole tensors become `linalg.generic`; `linalg.softmax` and the like,
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
    every op works on one row. What only the group uses never exists as a whole;
    what others use is written row by row. So LayerNorm, dropout and a residual
    add are one kernel that reads and writes memory once.

    A group is connected, no op outside of it lies between two of its ops, and a
    row has at most 65536 elements, as far as sizes are known. Contractions are
    in no group. Reshapes between the ops are moved out of the way first. Within
    a group elementwise ops are fused into their one consumer, and what is
    rounded to a narrower type and widened again in between no longer is.

    With `scope=op` only the ops that one graph op became (`fovea.kernel`) are
    fused: the unfused baseline, kernel by kernel.
  }];
  let options = [
    Option<"scope", "scope", "std::string", "\"graph\"",
           "What is fused: `graph`, or `op` for the ops of one graph op">
  ];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect"
  ];
  let statistics = [
    Statistic<"numGroups", "num-groups", "Number of kernels made by fusion">,
    Statistic<"numFused", "num-fused", "Number of ops fused into them">
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
    second before that is read. This pass, which runs before it, gives the second
    a tensor of its own: again filled, where the tensor is a fill, and a copy
    otherwise.
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

    - a tensor argument becomes a memref with any strides but the innermost,
      which is 1; it is never written;
    - a tensor result of a public function becomes a memref with the identity
      layout, allocated by the function; results alias neither arguments nor
      each other, which costs a copy where the graph returns an argument, a
      part of a tensor, or one tensor twice.
  }];
  let dependentDialects = [
    "::mlir::bufferization::BufferizationDialect",
    "::mlir::memref::MemRefDialect"
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
    The context is a struct on the caller's stack with what the body uses;
    constants are copied into the body.

    The loop's `fovea.grain` (an integer, default 1) says how many iterations
    one call does. Iterations are numbered with the last dimension fastest.
    Buffers of a size that is the same in all iterations are allocated once a
    call.
    Parallel loops within the body become sequential.
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
// convert-host-to-llvm
//===----------------------------------------------------------------------===//

def HostToLLVM : Pass<"convert-host-to-llvm", "::mlir::ModuleOp"> {
  let summary = "Finishes the conversion of host code to the LLVM dialect";
  let description = [{
    Converts func, memref, arith, cf, index and ub in one conversion. Buffers
    are allocated by MLIR's generic functions (`_mlir_memref_to_llvm_alloc` and
    so on), which the runtime defines. Public functions get a C interface.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
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

    What looks at the bits of a float (`arith.bitcast`) has no counterpart in
    f64 and is an error.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::tensor::TensorDialect"
  ];
}

//===----------------------------------------------------------------------===//
// convert-contraction-to-vector
//===----------------------------------------------------------------------===//

def ContractionToVector : Pass<"convert-contraction-to-vector"> {
  let summary = "Turns bufferised contractions into blocked vector kernels";
  let description = [{
    A `linalg.generic` on memrefs that sums the products of two operands (any
    matrix product, batched, transposed or grouped) becomes an `scf.forall` over
    blocks of the result. For each block of the summation, the operands' blocks
    are copied to the stack, converted to the type of the sum (at least f32),
    the right one in panels of two vectors; a tile of the result, 12 rows (6 if
    the target has fewer than 32 vector registers) times a panel, is summed in
    registers. The copies are `linalg.generic`s, for `convert-linalg-to-vector`.

    A `linalg.generic` that fills the result before is done block by block.
    Products of vectors, and those of integers, stay.
  }];
  let options = [
    Option<"vectorBytes", "vector-bytes", "int64_t", "0",
           "Bytes of a vector; 0: those of the module's machine.target, or 64">,
    Option<"vectorRegisters", "vector-registers", "int64_t", "0",
           "Number of vector registers; 0: those of the target, or 32">
  ];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"
  ];
  let statistics = [
    Statistic<"numConverted", "num-converted",
              "Number of contractions converted">
  ];
}

//===----------------------------------------------------------------------===//
// convert-linalg-to-vector
//===----------------------------------------------------------------------===//

def LinalgToVector : Pass<"convert-linalg-to-vector"> {
  let summary = "Turns bufferised linalg into parallel loops over vectors";
  let description = [{
    One loop nest for every linalg op on memrefs. One loop is cut into vectors:
    the one along which memory is contiguous, which may be a reduction; then the
    partial results are combined after the loop, so that a sum is not in the
    order of the indices. What is left of it runs as scalars. Loads that are not
    contiguous are gathered; an op that cannot be cut into vectors becomes
    scalar loops.

    An op outside of a parallel loop that does enough work gets one: its
    parallel loops become an `scf.forall` with a `fovea.grain` (see
    `outline-parallel`).

    `memref.copy` is converted as the `linalg.generic` that it is; from a buffer
    to itself it vanishes.
  }];
  let options = [
    Option<"vectorBytes", "vector-bytes", "int64_t", "0",
           "Bytes of a vector; 0: those of the module's machine.target, or 64; 1: "
           "scalars only">
  ];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"
  ];
  let statistics = [
    Statistic<"numVector", "num-vector", "Number of ops cut into vectors">,
    Statistic<"numScalar", "num-scalar", "Number of ops that became scalars">
  ];
}

//===----------------------------------------------------------------------===//
// outline-shape-checks
//===----------------------------------------------------------------------===//

def OutlineShapeChecks : Pass<"outline-shape-checks", "::mlir::ModuleOp"> {
  let summary = "Writes what ops demand of sizes as a function to call first";
  let description = [{
    Compiled code trusts sizes: where ops disagree about a dynamic one, it would
    read beyond a tensor. For each public function `@f` whose ops demand
    something of dynamic sizes, this pass adds `@f.shapes`, with the same
    operands, for the caller to call first. It returns the number of the first
    demand that is not met and the two sizes that are compared, or -1. The
    attribute `fovea.messages` has a message for each demand, in which `{0}` and
    `{1}` stand for the sizes and `$N` for operand N of the function.

    Demands are: equal sizes where an op relates two (keys and values, norms and
    their weights, operands of linalg ops), query heads that are a multiple of
    the heads of keys and values, sizes that a result's type states, slices and
    elements within their tensor, and results whose size fits 64 bits. Indices
    into captured tensors in score, mask and linalg regions are bounded by
    interval arithmetic over the region's coordinates: for every coordinate they
    must lie within the tensor, also where the score is masked afterwards.

    A demand that fails for all operands is an error, and so is a static size
    that does not fit. One that depends on data, or on control flow, is left
    out. The function itself does not change.
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::func::FuncDialect", "::mlir::tensor::TensorDialect"
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
    `memref.load` and `memref.store` is then one that the graph wrote, as
    `tensor.extract` or `tensor.insert`. In front of each there is, for each
    dimension, a call of the runtime with the index and the size, and in front
    of each integer division and remainder one with the dividend and the divisor.
    What is out of bounds, divides by 0 or overflows ends the call of the
    function with a message that names the op, its location and the numbers.

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
// convert-tile-launch-to-gpu
//===----------------------------------------------------------------------===//

def TileLaunchToGPU : Pass<"convert-tile-launch-to-gpu"> {
  let summary = "Turns programs of thread blocks into launches of kernels";
  let description = [{
    Every `tile.launch` on memrefs becomes a `gpu.launch` with one block for each
    point of the grid, along x alone, and one thread for each lane of its warps,
    or of its roles' warps. Nothing is launched for an empty grid.

    Tiles of `tile.load` in shared memory, rings and their mbarriers get their
    places in the block's dynamic shared memory: `tile.shared_offset` and
    `tile.barrier_offset` on the ops, and the launch's dynamic size. More than
    the shared memory of the module's `machine.target` is an error.

    For GPUs with bulk copies, a memref that `tile.load_async` copies from in a way that TMA
    can do is replaced by a descriptor, a `tile.tensor_map` before the launch.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::fovea::tile::TileDialect"
  ];
  let statistics = [
    Statistic<"numLaunches", "num-launches", "Number of launches converted">,
    Statistic<"numTensorMaps", "num-tensor-maps",
              "Number of TMA descriptors made">
  ];
}

//===----------------------------------------------------------------------===//
// convert-tile-to-nvvm
//===----------------------------------------------------------------------===//

def TileToNVVM : Pass<"convert-tile-to-nvvm", "::mlir::ModuleOp"> {
  let summary = "Turns tile ops in kernels into NVVM and LLVM ops";
  let description = [{
    A fragment becomes one scalar for each register of its layout, a tile in
    shared memory its address there. What is no tile op stays, but for types:
    scf, arith, math and memref ops are lowered later. The block's dynamic shared
    memory is the external array `@fovea_shared_memory`.

    A ring is slots and mbarriers in shared memory, a use of it a slot and the
    parity of a phase. Roles become branches on the warp. A product by `wgmma`
    is one block of inline assembly: fence, all steps along K, commit. A tensor
    map is passed to the kernel by value; on the host it is made by a call of
    the runtime (`Runtime/GpuRuntime.h`).
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::gpu::GPUDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::memref::MemRefDialect", "::mlir::NVVM::NVVMDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect",
    "::fovea::tile::TileDialect"
  ];
  let statistics = [
    Statistic<"numOps", "num-ops", "Number of tile ops converted">
  ];
}

//===----------------------------------------------------------------------===//
// attach-gpu-target
//===----------------------------------------------------------------------===//

def AttachGpuTarget : Pass<"attach-gpu-target", "::mlir::ModuleOp"> {
  let summary = "States the GPU that a module is compiled for";
  let description = [{
    Sets the module's `machine.target` to the model of the GPU that is typical of
    a name: an A100 for `sm_80`, an H200 for `sm_90a` (see the table in
    `lib/Dialect/Machine/IR/GpuArch.cpp`). A module that states a GPU of this
    name already keeps its numbers.
  }];
  let options = [
    Option<"target", "target", "std::string", "\"sm_90a\"",
           "The name of a GPU, such as `sm_80` or `sm_90a`">
  ];
  let dependentDialects = ["::fovea::machine::MachineDialect"];
}

//===----------------------------------------------------------------------===//
// convert-linalg-to-gpu
//===----------------------------------------------------------------------===//

def LinalgToGpu : Pass<"convert-linalg-to-gpu"> {
  let summary = "Turns bufferised linalg and parallel loops into GPU kernels";
  let description = [{
    Memrefs are in the GPU's memory; what the host executes may not touch them.
    So everything in a function that reads or writes memory becomes a
    `gpu.launch`:

    - a linalg op, and `memref.copy`, with one thread for each point of its
      parallel loops, neighbouring threads at neighbouring elements of the
      result; reductions are loops in each thread. An op that may write an
      element twice becomes one thread. Nothing is launched for no points. Where
      an op is elementwise or sums along rows of neighbouring elements, it
      becomes a loop over rows first;
    - an `scf.forall` with linalg in it, with a block for each iteration: all
      threads run the body, share the points of each op, or the terms of a sum
      of one element, and meet at a barrier behind it. Its buffers are in shared
      memory, large ones in memory;
    - any other `scf.forall`, with one thread for each iteration. Its buffers are
      each thread's own, in memory if they are larger than 512 bytes. One around
      kernels is a loop of the host, which starts them one after another;
    - a nest of `scf.for` that adds terms to elements at computed places, with one
      thread for each term, which adds atomically. With `deterministic`, numbers
      are added in integers, so that results do not depend on the order;
    - any other loop or condition of scalar ops on memory, with one thread;
    - a `memref.store` of a number, and a `memref.load`, whose value kernels then
      read again. What is computed from loaded values, and what reads constants
      in memory, moves into the kernels that use it.

    Where the host itself needs a value from memory (a size, the bound of a
    loop), it waits for the GPU and copies it (`gpu.memcpy`). Remarks say where
    one thread does more than a little, and where the host waits.

    A loop over rows, whose ops all work on rows of one dimension of the same
    length, element by element or by a sum, keeps rows in registers: what is read
    of a row is loaded once, by accesses of up to 16 bytes: what sums need, or two
    operands of the row if that is more, before the first op, so that much is
    under way; what all rows share, such as weights, where it is used. From sm_90
    on the row that a block begins next is brought into the L2 cache meanwhile;
    buffers become registers; sums are made by shuffles within warps
    and through shared memory between them, in an order that the length of the
    row alone decides. Rows of up to 128 vectors are each a warp's, or, without a
    sum, of less. Rows of
    dynamic length, or in memory that may not be aligned, get both kernels, and
    the host chooses. In random numbers that four neighbours share (Philox
    counters by place) work is shared.
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::gpu::GPUDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"
  ];
  let options = [
    Option<"deterministic", "deterministic", "bool", /*default=*/"false",
           "Whether what is added at computed places has the same bits in every "
           "run">
  ];
  let statistics = [
    Statistic<"numOps", "num-ops", "Number of linalg ops and copies converted">,
    Statistic<"numLoops", "num-loops", "Number of parallel loops converted">,
    Statistic<"numScalars", "num-scalars",
              "Number of loads and stores that became kernels">,
    Statistic<"numPrograms", "num-programs",
              "Number of loops and conditions of scalar ops converted">
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
    kernel. Constants, and sizes of memrefs that are passed anyhow, move into
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
    Programmatic dependent launch, from `sm_90` on: before it does anything else,
    a kernel waits for the one in front of it (`griddepcontrol.wait`, PTX ISA
    9.7.13.13), and then lets the one behind it start
    (`griddepcontrol.launch_dependents`), whose blocks take the places of those
    that end. In this order: when a kernel can start, all but the one right in
    front of it is complete. Kernels get the attribute `fovea.starts_early`, with
    which `convert-gpu-to-runtime` launches them so.
  }];
  let dependentDialects = [
    "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect"
  ];
  let statistics = [
    Statistic<"numKernels", "num-kernels", "Number of kernels">
  ];
}

//===----------------------------------------------------------------------===//
// convert-gpu-kernels-to-nvvm
//===----------------------------------------------------------------------===//

def GpuKernelsToNVVM
    : Pass<"convert-gpu-kernels-to-nvvm", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Converts kernels to the NVVM and LLVM dialects";
  let description = [{
    Converts gpu, memref, arith, math, vector, cf, func, index and ub in one
    conversion, with indices of 64 bits. A memref argument of a kernel becomes
    the parts of its descriptor: two pointers, offset, sizes, strides.

    No library is called: of `math`, only what the GPU has instructions for is
    converted (`expand-math` writes the rest as arithmetic); anything else is an
    error. `memref.prefetch` brings a line into the L2 cache. Pointers of a kernel
    with `fovea.distinct_memory` do not alias.

    Denormal numbers of f32 become 0, but in kernels that compute with numbers of
    f16: PTX is generated with one such rule for both types.
  }];
  let dependentDialects = [
    "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect"
  ];
}

//===----------------------------------------------------------------------===//
// convert-gpu-to-runtime
//===----------------------------------------------------------------------===//

def GpuToRuntime : Pass<"convert-gpu-to-runtime", "::mlir::ModuleOp"> {
  let summary = "Turns launches and buffers into calls of the GPU runtime";
  let description = [{
    For host code, before `convert-host-to-llvm`; the functions are described in
    `Runtime/GpuRuntime.h`:

    - `gpu.launch_func` of kernel k of `@kernels` becomes
      `fovea_gpu_launch(k, grid, block, sharedBytes, arguments)`. `arguments[i]`
      points to the value of the kernel's argument i; a memref is passed as the
      parts of its descriptor: two pointers, offset, sizes, strides. For an
      argument with `llvm.byval`, the operand is that pointer;
    - `memref.alloc` becomes `fovea_gpu_allocate(bytes)`, or, in a public
      function that returns the buffer as result i, `fovea_gpu_result(i, bytes)`;
    - `memref.dealloc` becomes `fovea_gpu_free(buffer)`;
    - `gpu.memcpy` of one element to the host becomes
      `fovea_gpu_read(target, source, bytes)`.

    `memref.alloca` stays in the host's memory.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::LLVM::LLVMDialect"
  ];
  let statistics = [
    Statistic<"numLaunches", "num-launches", "Number of launches">,
    Statistic<"numBuffers", "num-buffers", "Number of allocations">
  ];
}

#endif // FOVEA_CONVERSION_PASSES_TD
