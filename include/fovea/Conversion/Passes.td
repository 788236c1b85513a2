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
// convert-attn-to-linalg
//===----------------------------------------------------------------------===//

def AttnToLinalg : Pass<"convert-attn-to-linalg"> {
  let summary = "Writes the ops of the attention graph as linalg on tensors";
  let description = [{
    Every graph op becomes a few `linalg.generic`s that state its formula, with
    sums and norms in the accumulation type and one rounding at the end.
    `attn.attention` is decomposed to the graph ops that it stands for first.
    The ops that replace one graph op carry the same number in the attribute
    `machine.kernel`, so that the graph can be run kernel by kernel
    (`linalg-fuse-rows{scope=op}`).

    `attn.online_attention` and the ops around it stay. With
    `scope=elementwise`, all ops stay except those that become one elementwise
    `linalg.generic`: `attn.scale`, `attn.residual_add`, `attn.elementwise` and
    `attn.dropout`. In this form they can be reshaped, transposed and tiled
    (dropout with the numbers of its elements).
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
    block for each iteration. Its program is plain, one op after another: it
    loads the tile of queries, and for each tile of keys loads the keys, multiplies, applies the score region and the mask,
    updates the running values, loads the values and multiplies again; in the
    end it divides by the sum and stores. A result of which the loop inserts no
    row under a condition (an `arith.select` of the rows and zero) is stored in
    a branch, and what follows the first such store is in both of its regions.

    - Tiles have static sizes, the bounds of the loop's tiles: padded to 16
      queries for each warp, 16 keys and 16 features. Elements beyond a tensor
      are loaded as zeros and not stored. Keys of a padded tile that do not
      exist are masked with those that the mask region excludes, under one
      branch.
    - Regions become `tile.map`s on coordinates of the whole attention. Captured
      tensors become operands of the launch and are read by `memref.load`;
      elements beyond the last query or key read at the coordinates of the last
      one. Under `captures = tiled` the numbers of 16 or 32 bits, booleans and
      integers of 8 bits that query and key index, unchanged, are a `tile.load`
      of the tile's rows and columns and an operand of the map; those of scores
      whose last index is a sum of query, key, their negatives and numbers that
      are the same for a tile, as a distance is, one of a part of a row
      (`tile.from_shared` by steps).
    - Without a score region, and with a positive scale, the scale is folded
      into the exponential. So is a number by which a score region multiplies at
      last: a positive constant, or a scalar of the function that is clamped to
      what is neither tiny nor huge, `arith.minnumf` of `arith.maxnumf` with
      constants from 2^-96 to 2^96.
    - Under `maximum = stale`, with tiles of 16-bit floats, what a score region
      adds or subtracts at last is added in the exponent, if it is the float of a
      sum of coordinates that the key is one of, times numbers that do not depend
      on the key. These numbers are computed in front of the loop. The multiply-add
      of the position has the fastmath flag `reassoc`. Where it would be inexact,
      for slopes above 256 in base 2 across a tile's keys, a step starts again, with
      whole scores.
    - Sizes of tensors are computed before the launch.
    - Rows of queries, keys or values that a `linalg.generic` before the loop
      gathers, such as `tensor.extract %cache[%page, %slot, %h, %d]`, and only
      this loop reads, are loaded from where they lie: the load has a region that
      computes the place of a row, and `rows` up to the last key that is present.
      The generic must read whole rows: its column is the source's, and nothing
      else depends on it. Views of its result (reshapes, transposes, slices) may
      follow. Other ops that compute an operand run before the loop; a missed
      remark names those that gather.
    - Elementwise linalg ops of the loop that read the output or the log-sum-exp
      become exact `tile.map`s of their fragments, in the types that the ops have, and
      what makes their other operands there becomes a part of the maps' regions.
      Exponentials and quotients that are only wanted in f16 or bf16, and tanh in
      bf16, get the fastmath flag `afn`, unless `exact-functions` is given.
      Operands with rows and columns are loaded into registers (`tile.load`), the
      first of them before the output is computed; numbers of heads, rows or
      features, and booleans, are read by `memref.load` in the map. What is
      inserted into a result of the loop is stored, the output itself too.
    - With `widen` in the schedule, keys and values may also be widened there, or
      by ops in front of them, from bytes: where a scalar function of each `i8`
      gives the number that it is as an `f8E4M3FN`, and the head dim is a multiple
      of 32. The bytes are loaded, and `tile.widen` makes the tile of numbers.

    With `keys = descending` in the schedule a loop over keys visits its tiles from
    the last one: it counts as before, and the place of a step is the sum of the
    loop's ends less its count. Rows that need fewer keys then begin it later.

    `warps` and `stages` are those of `#attn.schedule`. All strategies of
    `attn-online-softmax` are converted.

    The loop of an `attn.online_backward` becomes a `tile.launch` with one block
    for each tile of keys of a head. It loads its keys and values, and for each
    tile of queries of the heads of its group loads the queries and the output's
    gradients, computes scores and gradients of probabilities transposed, `keys x
    queries`, adds to the gradients of its keys and values, which stay in
    registers, and adds the gradients of the queries in memory
    (`tile.store add`), in f32. Loops that only repeat this loop become loops of
    launches.

    - A kernel before it computes the statistics of rows: minus the log-sum-exp
      in base 2 and minus delta, up to whole tiles. Rows without a key, and
      those that do not exist, have a probability of 0 everywhere.
    - After the launch the queries' gradients are scaled.
    - Gradients of captured tensors are added up as `captures` of the schedule's
      `#attn.gradients` says: sums over queries, for each key, are summed in f64
      after the launch; scores write to elements of their own, or add to those
      that they share (`memref.atomic_rmw addf`), but do not add zero; sums along
      diagonals are those of a warp (`tile.sum_diagonals`); sums in 64-bit
      integers (`memref.atomic_rmw addi`) are rounded once, after the launch.
    - Elements that depend on query and key, but not on the score, are read
      before the products.

    A loop of attention stays, with a missed remark that says why, if its
    schedule has no `warps`, if other ops are computed in it (run `attn-tile`
    with `fuse-producers=false`), if queries, keys and
    values differ in their element type, or if a head dim is dynamic or above
    256. It is an error if a loop of the backward pass has operands of different
    element types, a dynamic head dim, no `warps`, or a score region without a
    derivative.
  }];
  let options = [
    Option<"exactFunctions", "exact-functions", "bool", "false",
           "Functions of elements of the output are exact, whatever their type">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect",
    "::fovea::tile::TileDialect"
  ];
  let statistics = [
    Statistic<"numConverted", "num-converted", "Number of loops converted">,
    Statistic<"numKept", "num-kept", "Number of loops that stay">
  ];
}

//===----------------------------------------------------------------------===//
// convert-attn-to-vector
//===----------------------------------------------------------------------===//

def AttnToVector : Pass<"convert-attn-to-vector", "::mlir::ModuleOp"> {
  let summary = "Writes attn.online_attention on memrefs as loops over vectors";
  let description = [{
    `attn.online_attention`, `attn.online_backward`, `attn.finalize` and
    `attn.pack_query` on memrefs become scf loops over vector ops. Queries lie in
    the lanes, so that no step of the softmax needs a horizontal operation. For
    each block of keys:

    - scores `P[key][query]` in register tiles of keys times vectors of queries;
      with 64-byte vectors and 32 registers, 8 keys times 3 vectors;
    - the score region, and the mask region where `partial` holds, each in one
      loop over P. Ops of a region that depend on the query or the score become
      vector ops, ops that depend on the key only stay scalar, and the others
      are moved out of the loop. A region that is not elementwise is applied one
      score after another;
    - the softmax in one pass over P, with 2^x by a polynomial, and in f32 by
      AVX-512's instructions on fractions and powers where the target has them;
    - dropout;
    - `acc = acc * alpha + P^T V` in register tiles of queries times vectors of
      features (6 times 4).

    Within a block, keys that the mask's bounds (see MaskAnalysis.h) rule out for
    a register tile's queries are skipped.

    Queries that fill at most half of a vector have features in lanes: each line
    of 64 bytes of a key, and of a value, is read once, widened in registers and
    used for all of them, and the line 16 kB behind is prefetched to the second
    cache. Where a `linalg.generic` in front of the op copies the rows, as those
    of a paged cache, to a buffer that nothing else reads, they are read where
    they lie: a list of their places takes the place of the copy. Without score
    and mask regions and dropout the softmax takes the scores of several keys in
    one vector, too.

    The backward pass has five products for each block of keys, each of which
    multiplies single elements of one operand with vectors of the other:
    `P = K Q^T` and `S = V dO^T` with packed queries and gradients, and, after
    the probabilities and the scores' gradients have been taken in the lanes,
    `dV += P dO`, `dK += S Q` and `dQ += S^T K` in place. Register tiles are
    those that take the least time by a count of multiply-adds and loads; rows
    beyond the last one repeat the last one.

    Where queries are packed in pairs, both products of the forward pass are by
    AMX tiles of 16 rows of 64 bytes: of keys times queries, and of queries times
    features. Keys in bf16 are read where they are, if their features are
    contiguous; a block's values are copied with pairs of keys next to each
    other, once for all queries. Then one group of queries after the other takes
    all steps: its weights are copied with a query's in a row, in bf16, and rows
    of its accumulator are rescaled where a maximum is new. Where only a mask
    changes scores of a positive scale, and head dims are at most 256, the scores
    of the next group are multiplied between the rows of a group's softmax. The
    function begins
    with a call of `fovea_use_matrix_tiles`. If the target's arch is
    `avx512_bf16`, dot products of vectors take the place of the tiles.

    Keys and values in f16, and weights for these, are copied as the sums of two
    numbers in bf16, and each product is three: all but that of the two lesser
    parts, which is below 2^-17 of the whole. Infinities become NaN.

    In the backward pass all five products are by tiles then. Queries and the
    output's gradients are copied with pairs of queries next to each other, once;
    a block's keys with pairs of keys. One group of queries after the other takes
    the steps up to the scores' gradients, which are rounded to bf16 with the
    probabilities; sums of a block's keys over all queries, and of the queries
    over the block's keys, stay in tiles until they are added. All copies have
    two parts where operands are in f16.

    Other keys and values of another element type, or without contiguous
    features, are converted block by block into scratch. Scratch of fixed size is on the stack of
    the enclosing parallel loop or function.

    An op that is not packed (`attn-pack-queries`) is packed in place, tile by
    tile, which costs copies of its running values.

    Powers of two in f32 are polynomials of degree 5, with a relative error of
    9.1e-8. Where weights are rounded for products of pairs, and the only results
    of a function's attentions are in f16, the degree is 4 (2.9e-6), in bf16 3
    (1.0e-4), and so it is for gradients where values are, unless those of
    captured tensors are wanted.
  }];
  let options = [
    Option<"exactFunctions", "exact-functions", "bool", "false",
           "Powers of two of degree 5 for results in f16 and bf16, too">,
    Option<"vectorBytes", "vector-bytes", "int64_t", "0",
           "Bytes of a vector register; 0: the target's, or 64">,
    Option<"vectorRegisters", "vector-registers", "int64_t", "0",
           "Number of vector registers; 0: the target's, or 32">
  ];
  let dependentDialects = [
    "::mlir::amx::AMXDialect", "::mlir::arith::ArithDialect",
    "::mlir::func::FuncDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect",
    "::mlir::x86vector::X86VectorDialect"
  ];
  let statistics = [
    Statistic<"numConverted", "num-converted", "Number of ops converted">,
    Statistic<"numUnpacked", "num-unpacked",
              "Number of ops that had to be packed in place">
  ];
}

//===----------------------------------------------------------------------===//
// convert-host-to-llvm
//===----------------------------------------------------------------------===//

def HostToLLVM : Pass<"convert-host-to-llvm", "::mlir::ModuleOp"> {
  let summary = "Finishes the conversion of host code to the LLVM dialect";
  let description = [{
    Converts func, memref, arith, cf, index, ub, amx and x86vector in one
    conversion. Buffers are allocated by MLIR's generic functions (`_mlir_memref_to_llvm_alloc` and
    so on), which the runtime defines. Public functions get a C interface.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
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

    A `linalg.generic` that fills the result before is executed block by block.
    Products of vectors and products of integers stay.
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
    Every linalg op on memrefs becomes a loop nest. One loop is cut into
    vectors: the one along which memory is contiguous, which may be a reduction;
    then the partial results are combined after the loop, so that a sum is not
    in the order of the indices. The rest of the loop runs as scalars. Loads
    that are not contiguous are gathered; an op that cannot be cut into vectors
    becomes scalar loops. What is the same along a vector loop that is no
    reduction, and has elements, is computed and loaded in front of it. Rows that
    lie where a table says are prefetched 8 KiB ahead.

    An op outside of a parallel loop that does enough work gets one: its
    parallel loops become an `scf.forall` with a `machine.grain` (see
    `outline-parallel`).

    `memref.copy` is converted as the equivalent `linalg.generic`; a copy from a
    buffer to itself is erased.
  }];
  let options = [
    Option<"vectorBytes", "vector-bytes", "int64_t", "0",
           "Bytes of a vector; 0: those of the module's machine.target, or 64; 1: "
           "scalars only">
  ];
  let dependentDialects = [
    "::fovea::machine::MachineDialect", "::mlir::affine::AffineDialect",
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"
  ];
  let statistics = [
    Statistic<"numVector", "num-vector", "Number of ops cut into vectors">,
    Statistic<"numScalar", "num-scalar", "Number of ops that became scalars">
  ];
}

//===----------------------------------------------------------------------===//
// convert-tile-launch-to-gpu
//===----------------------------------------------------------------------===//

def TileLaunchToGpu : Pass<"convert-tile-launch-to-gpu"> {
  let summary = "Turns programs of thread blocks into launches of kernels";
  let description = [{
    Every `tile.launch` on memrefs becomes a `gpu.launch` with one block for
    each point of the grid, along x only, and one thread for each lane of its
    warps, or of its roles' warps. Nothing is launched for an empty grid.

    Tiles of `tile.load` in shared memory, rings and their mbarriers get their
    places in the block's dynamic shared memory: `tile.shared_offset` and
    `tile.barrier_offset` on the ops, and the launch's dynamic size. More than
    the shared memory of the module's `machine.target` is an error.

    For GPUs with bulk copies, a memref that `tile.load_async` copies from in a
    way that TMA supports is replaced by a descriptor, a `tile.tensor_map`
    before the launch.
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
    shared memory its address there. Other ops stay, except that their types are
    converted: scf, arith, math and memref ops are lowered later. The block's
    dynamic shared memory is the external array `@fovea_shared_memory`.

    In a `tile.map` a thread converts a sum of coordinates to a float once; its
    other elements add constants to that. A `math.fma` with the flag `reassoc`, of
    such a float, a factor and an addend that are the same for a row, becomes one
    multiply-add for a thread's first element of the row, and another one, of the
    factor and a constant, for each other element.

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
// convert-linalg-to-gpu
//===----------------------------------------------------------------------===//

def LinalgToGpu : Pass<"convert-linalg-to-gpu"> {
  let summary = "Turns bufferised linalg and parallel loops into GPU kernels";
  let description = [{
    Memrefs are in the GPU's memory; ops that the host executes may not touch
    them. So everything in a function that reads or writes memory becomes a
    `gpu.launch`:

    - a linalg op, and `memref.copy`, with one thread for each point of its
      parallel loops, neighbouring threads at neighbouring elements of the
      result; reductions are loops in each thread. An op that may write an
      element twice becomes one thread. Nothing is launched if there are no
      points. Where an op is elementwise or sums along rows of neighbouring
      elements, it becomes a loop over rows first;
    - an `scf.forall` with linalg in it, with a block for each iteration: all
      threads run the body, share the points of each op, or the terms of a sum
      of one element, and meet at a barrier behind it. Its buffers are in shared
      memory, large ones in memory. Where a warp is enough for each of more
      iterations than the GPU has multiprocessors, a block has four, and a
      multiprocessor at most eight blocks of the grid. So is one whose loops of
      scalars add up what they read, unless at least a warp of neighbours read the
      same elements at a time, whose threads then need not wait for others;
    - any other `scf.forall`, with one thread for each iteration. Its buffers
      are each thread's own, in memory if they are larger than 512 bytes. An
      `scf.forall` around kernels becomes a loop on the host, which starts them
      one after another;
    - a nest of `scf.for` that adds terms to elements at computed places, with one
      thread for each term, which adds atomically. With `deterministic`, numbers
      are added in integers, so that results do not depend on the order;
    - any other loop or condition of scalar ops on memory, with one thread;
    - a `memref.store` of a number, and a `memref.load`, whose value kernels then
      read again. Computations on loaded values, and reads of constants in
      memory, move into the kernels that use them. A constant whose address the
      host hands over, such as one behind a tensor map, is copied to a buffer
      first, as its address on the host is not one of the GPU's memory.

    Where the host itself needs a value from memory (a size, the bound of a
    loop), it waits for the GPU and copies it (`gpu.memcpy`). Remarks say where
    one thread does more than a little, and where the host waits.

    A loop over rows, whose ops all work on rows of one dimension of the same
    length, element by element or by a sum, keeps rows in registers. Each
    operand's row is loaded once, by accesses of up to 16 bytes. The operands
    that sums need, or two operands of the row if that is more, are loaded
    before the first op, so that many loads are under way; data that all rows
    share, such as weights, is loaded where it is used. From sm_90 on the row
    that a block begins next is brought into the L2 cache meanwhile. Buffers
    become registers; sums are made by shuffles within warps and through shared
    memory between them, in an order that depends on the length of the row only.
    A row of up to 128 vectors is computed by a warp or, without a sum, by part
    of one. Rows of dynamic length, or in memory that may not be aligned, get
    both kernels, and the host chooses: of one elementwise op the other has a thread
    for each element of a row of dynamic length, as there may be few that are long.
    Neighbours share the work for random
    numbers that four of them have in common (Philox counters by place).
  }];
  let dependentDialects = [
    "::fovea::machine::MachineDialect", "::mlir::affine::AffineDialect",
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::memref::MemRefDialect",
    "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect",
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
              "Number of loops and conditions of scalar ops converted">,
    Statistic<"numConstants", "num-constants",
              "Number of constants copied to buffers">
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

    No library is called: only those `math` ops are converted for which the GPU
    has instructions (`expand-math` writes the rest as arithmetic); any other is
    an error. `memref.prefetch` brings a line into the L2 cache. Pointers of a
    kernel with `machine.distinct_memory` do not alias.

    Denormal f32 numbers become 0, except in kernels that compute with f16
    numbers: PTX is generated with one such rule for both types.
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
      argument with `llvm.byval`, the operand is that pointer. Kernels in the
      LLVM dialect lose the arguments that they do not use, which are not passed;
    - `memref.alloc` becomes `fovea_gpu_allocate(bytes)`, or, in a public
      function that returns the buffer as result i, `fovea_gpu_result(i, bytes)`;
    - `memref.dealloc` becomes `fovea_gpu_free(buffer)`;
    - `gpu.memcpy` of one element to the host becomes
      `fovea_gpu_read(target, source, bytes)`.

    `memref.alloca` stays in the host's memory, as `memref.get_global` does,
    whose result may only be loaded from.
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
