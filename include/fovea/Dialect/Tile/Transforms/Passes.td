//===- Passes.td - Passes on the tile dialect --------------*- tablegen -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DIALECT_TILE_TRANSFORMS_PASSES_TD
#define FOVEA_DIALECT_TILE_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def TileOrderAdds : Pass<"tile-order-adds"> {
  let summary = "Lets blocks add to the same memory in a fixed order";
  let description = [{
    In every `tile.launch` with `tile.store add` to places that do not depend on
    the first dimension of the grid: blocks that differ in it alone take turns
    (`tile.take_turn`, `tile.pass_turn`), so that results are the same, bit by
    bit, in every run. A block takes and passes its turn in each iteration of the
    innermost loop, whether it adds or not, and around that loop the turns of
    places before and behind it. Iterations are of two lanes by turns: it takes a
    block longer to know that what it has added is complete than to add it. Outside
    of loops, a block has one turn. The launch gets numbers to say so, zero at
    first, as a further operand of `outs`.

    Blocks wait for those that were launched earlier. The grid becomes one of one
    dimension, in which the blocks of several rows, that differ in the other
    dimensions, are launched together, turn by turn: those that run at the same
    time then wait for few others, and share what is in the L2 cache. If what
    eight rows add to has up to 16 MiB, that is eight rows, the last block of each
    first; else sixteen, the first block first.

    Runs on tensors. Adds whose places depend on all dimensions of the grid of
    more than one block stay. Where a place does not depend on another dimension
    than the first, that is an error. Adds in different loops are one, too; so is a
    loop in a condition, and one that ends elsewhere in each block and whose count
    is no index of the place.
  }];
  let dependentDialects = [
    "::fovea::tile::TileDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::memref::MemRefDialect",
    "::mlir::tensor::TensorDialect"
  ];
  let statistics = [
    Statistic<"numOrdered", "num-ordered", "Number of launches with turns">
  ];
}

def TileAssignLayouts : Pass<"tile-assign-layouts"> {
  let summary = "Gives fragments, shared tiles and products their form";
  let description = [{
    In every `tile.launch`:

    - fragments of rank 2 get the layout in which a warp owns whole rows, 16 at
      a time: what WGMMA and mma.sync accumulate in and take as a left operand,
      so that no product's result is shuffled to become the next one's operand.
      Where there are fewer than 16 rows for each warp, warps share columns, and
      a left operand goes through shared memory;
    - fragments of rank 1 get the layout of a rank 2 fragment without its
      columns, or without its rows where they are used as `columns`;
    - shared tiles of 16-bit elements get the widest swizzle of 128, 64 or 32
      bytes that divides a row, others none;
    - products of f16 and bf16 are `wgmma` where the GPU has it (`machine.target`
      of the module; without one, a Hopper), if the warps are whole warp groups
      of 64 rows of a result, else `mma_sync`; others are `fma`.

    Types that have a layout or a swizzle, and products that have a kind, keep
    them. A fragment that does not divide among the warps is an error.
  }];
  let dependentDialects = ["::fovea::tile::TileDialect"];
}

def TileMultibuffer : Pass<"tile-multibuffer"> {
  let summary = "Turns loads into shared memory into rings";
  let description = [{
    Every `tile.load` into shared memory that stands in a launch, or in loops
    (`scf.for`) and branches (`scf.if`) in it, becomes a ring: acquire a slot,
    start the copy, wait for it, and release it after the last op that reads the
    tile. A load in a loop gets the launch's `stages` (2 if it has none) and
    counts its uses in a value that the loops carry, and that the branches give;
    another gets one stage. Loads whose tile leaves the block or that no tensor
    map can describe stay.

    So does a `tile.load` of a fragment in a loop that maps use by columns: the
    ring's tile is a row, which `tile.from_shared` reads. A `tile.to_shared` in a
    loop, for products of the same step, gets two slots, if there is memory.

    The program still runs one copy at a time; `--tile-specialize-warps` and
    `--tile-prefetch` let copies run ahead.
  }];
  let options = [
    Option<"minStages", "min-stages", "int64_t", "1",
           "Launches with fewer stages stay as they are">
  ];
  let dependentDialects = [
    "::fovea::tile::TileDialect", "::mlir::arith::ArithDialect",
    "::mlir::scf::SCFDialect"
  ];
  let statistics = [
    Statistic<"numRings", "num-rings", "Number of loads turned into rings">,
    Statistic<"numSlots", "num-slots", "Number of writes with two slots">
  ];
}

def TilePrefetch : Pass<"tile-prefetch"> {
  let summary = "Starts copies in a loop some iterations ahead";
  let description = [{
    In a launch without roles, whose warps copy and compute: the copy that an
    iteration of a loop starts into a ring of n slots, as `--tile-multibuffer`
    writes it, is started n - 1 iterations earlier, and those of the first n - 1
    iterations before the loop. So it runs while the iterations between compute.
    An iteration first waits for its own copies, then starts the later ones.

    A copy whose place depends on more than the loop's induction variable and
    what is outside the loop stays where it is.
  }];
  let dependentDialects = [
    "::fovea::tile::TileDialect", "::mlir::arith::ArithDialect",
    "::mlir::scf::SCFDialect"
  ];
  let statistics = [
    Statistic<"numPrefetched", "num-prefetched", "Number of copies moved">
  ];
}

def TileStageStores : Pass<"tile-stage-stores"> {
  let summary = "Stores results by TMA, through shared memory";
  let description = [{
    A `tile.store` of rank 2 that stands in a launch itself becomes a
    `tile.to_shared` into the memory of a ring whose uses are over, a
    `tile.store_async` and its wait, if TMA can address what is stored: threads
    write four bytes here and there, TMA writes whole rows.

    So does a `tile.store add` of f32 wherever it stands, through memory of its
    own. In loops that is a ring of one slot: acquire
    a slot, write the fragment (`tile.write`), wait for it, store it, and release
    it when TMA has read it.

    Stores of a part of a tile (`valid`), and those for which there is not
    memory enough, stay. Runs after `--tile-multibuffer`.
  }];
  let dependentDialects = ["::fovea::tile::TileDialect"];
  let statistics = [
    Statistic<"numStaged", "num-staged", "Number of stores by TMA">
  ];
}

def TileSpecializeWarps : Pass<"tile-specialize-warps"> {
  let summary = "Splits a program into roles that copy, store and compute";
  let description = [{
    A launch with rings becomes several roles. `load`, one thread, acquires
    slots and starts copies, with the control flow and scalars that they need;
    what is cheap is computed in all. `store`, one thread of the same warp group,
    waits for slots that fragments are written to (`tile.write`), stores and
    releases them, and takes turns with other blocks: `store0` and `store1`, where
    turns have two lanes, each in one of them. It is left out where threads add to
    memory in turn, too. `compute` does the rest. Scalars and rings before the
    first op that only one role needs stay outside.

    Registers move from that warp group to `compute` (`setmaxnreg`): of the
    64 Ki registers of a multiprocessor the block gets an equal share for each
    thread; compute threads get what is left by 24 a thread for the others, at
    most 240. One compute warp group has enough without.

    Launches without rings, or with roles, stay.
  }];
  let dependentDialects = [
    "::fovea::tile::TileDialect", "::mlir::arith::ArithDialect",
    "::mlir::scf::SCFDialect"
  ];
  let statistics = [
    Statistic<"numSpecialized", "num-specialized",
              "Number of launches split into roles">
  ];
}

def TileSchedule : Pass<"tile-schedule"> {
  let summary = "Chooses how products and other work of a loop overlap";
  let description = [{
    In every innermost `scf.for` with `wgmma` products, which become
    asynchronous (`tile.mma_async` and `tile.wait_mma`). A product that depends
    on another product of the same iteration, with the ops that only it needs or
    that depend on it, is put one iteration later. In a step of the loop, the
    tensor cores then work on the next scores and on the last values while the
    softmax is computed (FlashAttention-3, arXiv 2407.08608, section 3.2).

    A loop with several products that depend on no other of the iteration has
    work for the tensor cores in one step, and registers enough for no more:
    nothing is put later. Its order: what leads to a result that the step itself
    uses comes first, as soon as it can; then products that add to what the loop
    carries; then the wait for the oldest product, and what that allows.

    Changes nothing but attributes of the loop body's ops: `tile.stage`, 0 or 1,
    and `tile.order`, the place in a step. `--tile-expand-pipeline` obeys them;
    they can be written by hand. The order of two stages: products of stage 0 are issued
    first, then those of stage 1; then comes what needs the first alone; then
    the wait for the second and the rest.

    Tiles that a step writes to memory of an op's own (`tile.to_shared`, and a
    `tile.load` that is no ring) are gone in the next step, and the first step, in
    front of the loop, would need such memory once more. Nothing of a loop with
    such ops is put later: it is ordered in the same way.

    Loops without such a dependence keep one stage, and launches whose products
    are asynchronous already stay as they are.
  }];
  let dependentDialects = ["::fovea::tile::TileDialect"];
}

def TileExpandPipeline : Pass<"tile-expand-pipeline"> {
  let summary = "Skews loops as scheduled";
  let description = [{
    A loop whose body has `tile.stage` and `tile.order` runs stage 1 of an
    iteration together with stage 0 of the next one, in the given order; the
    first stage 0 and the last stage 1 are peeled copies, under a branch that
    skips all for a loop without iterations. A loop without stage 1 is put in
    order. The `pending` of each
    `tile.wait_mma` is set to the number of products issued between the product
    and the wait.

    An order in which an op stands before one that it depends on, and a stage 0
    op that depends on stage 1 of the same iteration, are errors.
  }];
  let dependentDialects = [
    "::fovea::tile::TileDialect", "::mlir::arith::ArithDialect",
    "::mlir::scf::SCFDialect"
  ];
}

def TilePackOperands : Pass<"tile-pack-operands"> {
  let summary = "Copies operands that TMA cannot address";
  let description = [{
    For every memref operand of a launch that a `tile.load_async` reads, or a
    `tile.store_async` writes, as TMA could: on the host, before the launch, its
    address and strides are tested. Where one is no multiple of 16 bytes, or a
    stride is not positive, a packed copy takes the operand's place, with rows
    of whole 16 bytes, which is freed after the launch, and copied back if the
    operand is an output. Buffers that are allocated in the function with such
    rows need no test. Runs on memrefs, before `convert-tile-launch-to-gpu`.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect"
  ];
  let statistics = [
    Statistic<"numChecked", "num-checked", "Number of operands to test">
  ];
}

#endif // FOVEA_DIALECT_TILE_TRANSFORMS_PASSES_TD
