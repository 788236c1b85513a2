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
    The pass changes every `tile.launch` with `tile.store add` to addresses that
    do not depend on the first dimension of the grid. Blocks that differ only in
    that dimension take turns (`tile.take_turn`, `tile.pass_turn`), so that
    results are the same, bit by bit, in every run. A block takes and passes its
    turn in each iteration of the innermost loop, whether it adds or not; around
    that loop it takes the turns of positions before and after the loop's.
    Iterations alternate between two lanes, since a block needs longer to know
    that its adds are complete than to add. Outside of loops, a block has one
    turn. The launch gets the numbers of the turns, initially zero, as another
    operand of `outs`.

    Blocks wait for those that were launched earlier. The grid becomes
    one-dimensional. It launches the blocks of several rows (which differ in the
    other dimensions) together, turn by turn: blocks that run at the same time
    then wait for few others, and share the data in the L2 cache. If the outputs
    that eight rows add to take at most 16 MiB, eight rows are launched
    together, the last block of each first; else sixteen rows, the first block
    first.

    Runs on tensors. Adds stay unchanged where their addresses depend on all
    dimensions of the grid that have more than one block. An address that does
    not depend on a dimension other than the first is an error. Adds in
    different loops are also an error; so is a loop in a condition, and a loop
    whose end differs between blocks and whose induction variable is not an
    index of the address.
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

def TileGroupBlocks : Pass<"tile-group-blocks"> {
  let summary = "Starts unequal blocks of several heads side by side";
  let description = [{
    The blocks of a backward pass, which have a tile of keys each, are unequal
    under most masks: a causal one leaves the first keys the most queries. Where
    a head's blocks start one after another, those of the last heads, the longest
    included, start when there is little else left to do. The pass makes a grid
    of tiles, heads and batches one of the heads of a group, tiles, and groups, so
    that the first tiles of all heads of a group start together, which are the
    longest under a causal mask, and the next group's longest fill the gaps that
    short ones leave (longest processing time first: Graham, 1969).

    A group has as many heads as have their sums in a third of the L2 cache, which
    the launch computes, and divides their number; of a group of query heads a
    block adds to one at a time. The pass changes launches on tensors with
    `tile.store add` to addresses that depend on all dimensions of the grid but the
    first, in a loop whose bounds depend on that, if the number of heads is static.
    `tile-order-adds`, for a fixed order, has groups of its own.
  }];
  let dependentDialects = [
    "::fovea::machine::MachineDialect", "::fovea::tile::TileDialect",
    "::mlir::arith::ArithDialect", "::mlir::tensor::TensorDialect"
  ];
  let statistics = [
    Statistic<"numGrouped", "num-grouped", "Number of launches with groups">
  ];
}

def TileFormBoxes : Pass<"tile-form-boxes"> {
  let summary = "Finds runs among the rows of loads";
  let description = [{
    Where the rows of a `tile.load` lie where a region says (`runs 1`), the pass
    proves which neighbouring rows of the tile also are neighbours in memory: it
    sets `runs` to the largest number, a divisor of the tile's rows that is a
    multiple of 8, for which the region is known to step along one dimension
    within each run, and `dims` to that dimension. TMA then copies a run as one
    box; 8 rows is the period of the swizzle.

    The proof follows the row through sums, and through quotients and remainders
    by constants that the run's length divides, as of pages: a run neither
    begins nor ends within a page. It needs the tile's first row to be a known
    multiple of the run's length. Other operations on the row end the proof, and
    rows stay apart. Loads with indices, and runs that are longer than 1
    already, stay unchanged. A remark says why rows stay apart.
  }];
  let statistics = [
    Statistic<"numRuns", "num-runs", "Number of loads with longer runs">
  ];
}

def TileSplitColumns : Pass<"tile-split-columns"> {
  let summary = "Divides wide accumulators of products of parts by columns";
  let description = [{
    Products that `--tile-split-products` multiplies as parts have an accumulator
    of their own beside the running one. Of more than 128 columns both do not fit
    in registers. In a `tile.launch` with `parts` this pass divides such an
    accumulator into several, with half, a quarter and so on of its columns, and
    with it the ops that compute, carry and store it, and the tiles that products
    read: one part's products are done before the next one's begin, so that one
    narrow accumulator is enough beside the running ones.

    A launch one of whose ops needs all columns of a row, as sums over them, stays
    unchanged. Runs in front of `--tile-split-products`.
  }];
  let dependentDialects = [
    "::fovea::tile::TileDialect", "::mlir::arith::ArithDialect",
    "::mlir::scf::SCFDialect"
  ];
  let statistics = [
    Statistic<"numDivided", "num-divided", "Number of products divided">
  ];
}

def TileSplitProducts : Pass<"tile-split-products"> {
  let summary = "Multiplies f32 as parts in bf16";
  let description = [{
    In a `tile.launch` with `parts 3` every product of f32 becomes six of bf16, on
    tensor cores. An operand is the sum of three parts, each what is left of it
    rounded to bf16: 3 * 8 bits are the 24 of f32. Products of two parts are
    exact, and six of the nine are more than a rounding error of f32:

    ```
    a * b = a3 * b1 + a1 * b3 + a2 * b2 + a2 * b1 + a1 * b2 + a1 * b1
    ```

    They are summed in this order, the smallest first, in one accumulator. Sums
    of tensor cores are truncated, not rounded, so that those of thousands of
    keys would be too small: where a product is added to an accumulator, the six
    have one of their own, which is added to the other by an instruction that
    rounds.

    Parts of tensors are computed in front of the launch, by one op for each
    tensor, and loaded instead of it; those of a fragment in registers. The third
    part of an infinity or NaN is that number, its first is 1 with its sign, and
    its second 0: products then are infinite or NaN as those of f32 are. Numbers
    beyond the largest of bf16 have that as their first part. Numbers below 2^-110
    have parts that bf16 rounds to multiples of 2^-133.

    Runs on tensors, in front of the passes that choose layouts and make rings.
    Launches without `parts` stay unchanged. It is an error if an operand of a
    product in shared memory is no `tile.load` of an operand of the launch.
  }];
  let dependentDialects = [
    "::fovea::tile::TileDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
    "::mlir::tensor::TensorDialect"
  ];
  let statistics = [
    Statistic<"numSplit", "num-split", "Number of products that became six">
  ];
}

def TileShareItems : Pass<"tile-share-items"> {
  let summary = "Lets blocks share the programs of the last rounds";
  let description = [{
    A `tile.launch` with `persistent shared` becomes a launch of a block for each
    multiprocessor, like those of `--tile-persist`, in `linear` order but for the
    last programs. Where their number is no multiple of that of blocks, some
    blocks would run one program less than others, and wait. Instead, the steps
    of the last round's programs, and of those of the round before, are laid end
    to end and cut into equal shares (Stream-K: Osama et al., PPoPP 2023). A
    program that is cut has two parts: the block that runs its later steps, which
    are the first of its share, writes what they give to memory, and the block
    that runs the earlier ones, the last of its share, reads it and combines both
    (`tile.combine_parts`, `tile.signal`, `tile.await`). Nothing depends on which
    block is faster, so that results are the same in every run.

    Programs of fewer than 32 steps are not cut, nor those of a last round that
    is nearly full, which is known when the launch runs: then the order is
    `linear`.

    A launch whose programs need not have the same number of steps, or write
    memory before their end, stays as it is, and `--tile-persist` runs whole
    programs.
  }];
  let dependentDialects = [
    "::fovea::tile::TileDialect", "::mlir::arith::ArithDialect",
    "::mlir::bufferization::BufferizationDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect"
  ];
  let statistics = [
    Statistic<"numShared", "num-shared",
              "Number of launches whose last programs are shared">
  ];
}

def TilePersist : Pass<"tile-persist"> {
  let summary = "Lets each block run several programs, one after another";
  let description = [{
    A `tile.launch` with `persistent` becomes a launch of at most one block for
    each multiprocessor. In `linear` order a block runs every program whose
    number differs from its own by a multiple of the number of blocks, in a loop
    around the program. If the order is `snaked`, programs are numbered along `x`
    last, in groups of rows, and the blocks take them there and back: who had the
    first of a round has the last of the next. Where the L2 cache does not hold
    what such a group reads, there are smaller groups, an even number of them, in
    turns: every other one begins with its last programs. If the order is `dealt`,
    the loop asks for its programs (`tile.dealt`), which are numbered along `x` last
    in groups of rows that the L2 cache holds, so that the ones that take longest
    come first in each; but the last ones of all rows, which take the least time,
    come in the end, for blocks then end at about the same time. Later passes treat
    the loop like others: copies run ahead into the next program, and results go out
    while it runs.

    Where an element of a tensor decides how many programs there are along `x`,
    blocks read it, and the host takes a bound (`arith.minsi`) for it.

    What says how parts of programs combine (`tile.combine_parts`) goes, for each
    block runs whole programs: also of a launch that is `shared`, if
    `--tile-share-items` has left it, in linear order.

    Launches without `persistent` stay unchanged.
  }];
  let dependentDialects = [
    "::fovea::tile::TileDialect", "::mlir::arith::ArithDialect",
    "::mlir::bufferization::BufferizationDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"
  ];
  let statistics = [
    Statistic<"numPersistent", "num-persistent",
              "Number of launches that became persistent">
  ];
}

def TilePrecomputeItems : Pass<"tile-precompute-items"> {
  let summary = "Collects what follows from the number of a program";
  let description = [{
    Where a program's rows and keys lie follows from its number by divisions, and by
    reads of tables that the launch does not write. Behind each `tile.dealt` the pass
    collects these in a `tile.of_item`, which yields as few numbers as suffice for
    all ops that remain: what takes one short op, a cast, a sum or a comparison,
    is computed from them once more. `--tile-deal-items` lets the role that deals
    compute them, ahead of all others.

    A number from which nothing follows by a division or a read stays as it is.
  }];
  let dependentDialects = ["::fovea::tile::TileDialect"];
  let statistics = [
    Statistic<"numPrecomputed", "num-precomputed",
              "Number of loops over programs whose numbers were collected">
  ];
}

def TileAssignLayouts : Pass<"tile-assign-layouts"> {
  let summary = "Gives fragments, shared tiles and products their form";
  let description = [{
    The pass chooses the following in every `tile.launch`:

    - fragments of rank 2 get the layout in which a warp owns whole rows, 16 at
      a time. WGMMA and mma.sync accumulate in this layout and take it as a left
      operand, so that no product's result is shuffled to become the next one's
      operand. Where there are fewer than 16 rows for each warp, warps share
      columns, and a left operand goes through shared memory. What products of
      bytes (`from`) read and add to has four neighbours of a row in a thread, and
      numbers of the warps that share columns are each in its own, or, read from
      shared memory, in all;
    - fragments of rank 1 get the layout of a rank 2 fragment without its
      columns, or without its rows where they are used as `columns`;
    - shared tiles of elements of up to 16 bits, and those of any width that only
      `tile.from_shared` reads, get the widest swizzle of 128, 64 or 32 bytes
      that divides a row; other tiles get none. A tile that is loaded by runs of
      rows is stored in runs (`!tile.shared`), which TMA copies faster, if it has
      several panels and only products by `wgmma` read it as their right operand:
      as rows of K, or as columns of 64 rows of a result, of which an instruction
      still has 64;
    - products of f16 and bf16 are `wgmma` where the GPU has it (`machine.target`
      of the module; without one, a Hopper), if the warps are whole warp groups
      of 64 rows of a result, else `mma_sync`, as those of bytes; others are
      `fma`.

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
    start the copy, wait for it, and release the slot after the last op that
    reads the tile. The ring of a load in a loop gets the launch's `stages` (2
    if it has none) and counts its uses in a value that the loops carry and the
    branches yield; any other ring gets one stage. So does a load in a loop
    around loops with loads, or two if the memory that results take on their way
    out (`--tile-stage-stores`) leaves room for both. Loads stay unchanged if their
    tile leaves the block, if no tensor map can describe them, or if their
    columns are not known to begin at multiples of 16 bytes, unless a region
    gives the places of their rows: these may also be copied by threads.

    A tile in a loop that only `tile.from_shared` reads, such as a bias of
    scores, is as large as these: its ring has as many of the stages as there is
    memory for beside the other rings and the results.

    A `tile.load` of a fragment in a loop that maps use by columns also becomes
    a ring: the ring's tile is a row, which `tile.from_shared` reads. A
    `tile.to_shared` in a loop, for products of the same step, gets two slots if
    there is enough memory. So does a `tile.widen` whose source has become a ring:
    its result is a ring, too, of two slots (one where the source's has one),
    which `tile.widen_into` fills.

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

def TileHoistRows : Pass<"tile-hoist-rows"> {
  let summary = "Reads what a row has in front of the loop over its tiles";
  let description = [{
    A map over a tile, in a loop over tiles, that reads an element whose address
    depends on the row only, as a mask does that reads where a query's sequence
    begins, gets that element of each row as an operand. A map over the rows in
    front of the loop reads it, if the loop has a step and the memory an element, at
    the address's nearest one in bounds: the loop may skip the read of a row that it
    does not have. So a step that applies the mask does not wait for memory.

    The memory must be an operand of the launch that no op of the launch writes, the
    element an integer or float of at most 32 bits, and the read one that the map
    makes for each element. Of more than two such reads those stay in the loop of
    which more than `tile.extremes` matter: each takes registers in all steps.

    A map in the loop that reads what the program has read in front of it, from
    memory that is not written, as the length of its sequence, takes that.

    Maps over rows that are the same in all steps then, their extremes, and
    `tile.any` of what does not change move in front of the loop, too.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect"
  ];
  let statistics = [
    Statistic<"numHoisted", "num-hoisted", "Number of reads of rows">
  ];
}

def TileOverlapItems : Pass<"tile-overlap-items"> {
  let summary = "Runs the first product of an item beside the last one before";
  let description = [{
    A persistent block computes one item after another. After
    `--tile-expand-pipeline` an item is a first product, whose result its steps
    begin with, a loop over these, and a last product, which the item's results
    wait for; so tensor cores have nothing to do between two items. In a role
    with a loop over such items, the pass moves the first product of the next
    item next to the last one of the item before: both are issued, and while
    results are written, the next item's scores are computed. Waits for the tile
    that all products of an item read move with the first product. So do those
    for slots that a warp group passes by in front of its steps, as far as they
    are not those of the last product's ring, which come after it. The loop
    carries the numbers that the next item's start needs, its place and bounds.

    An item may have no steps, and the last one has none after it: under a
    branch for these the same ops run one after another.

    Other loops stay unchanged.
  }];
  let dependentDialects = [
    "::fovea::tile::TileDialect", "::mlir::arith::ArithDialect",
    "::mlir::scf::SCFDialect"
  ];
  let statistics = [
    Statistic<"numOverlapped", "num-overlapped",
              "Number of loops over items that overlap">
  ];
}

def TilePrefetch : Pass<"tile-prefetch"> {
  let summary = "Starts copies in a loop some iterations ahead";
  let description = [{
    The pass changes a launch without roles, whose warps copy and compute. An
    iteration of a loop starts a copy into a ring of n slots, as
    `--tile-multibuffer` writes it. That copy is now started n - 1 iterations
    earlier, and the copies of the first n - 1 iterations start before the loop.
    So a copy runs while the iterations between compute. An iteration first
    waits for its own copies, then starts the later ones.

    A copy stays where it is if its address depends on more than the loop's
    induction variable and values from outside the loop.
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
    A `tile.store` of rank 2 in no loop of a launch becomes a `tile.to_shared`
    into the memory of a ring whose uses are over, or are in the other region of
    a branch, a `tile.store_async` and its wait, if TMA can address the target,
    and the column is known to be a multiple of 16 bytes: threads write four
    bytes at a time in different rows, TMA writes whole rows. What registers have is computed and
    stored before the wait.

    A `tile.store add` of f32 is changed in the same way, anywhere in a launch,
    but through memory of its own, and so is any `tile.store` in a loop. In
    loops that is a ring of one slot: acquire a slot, write the fragment (`tile.write`), wait for it, store it, and
    release it when TMA has read it.

    Stores of a part of a tile (`valid`), and stores for which there is not
    enough memory, stay unchanged. Runs after `--tile-multibuffer`.
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
    cheap scalars are computed in all roles. `load_item`, another thread, does so
    for copies in a loop around others whose ring has one slot. `store`, one thread of the same
    warp group, waits for slots that fragments are written to (`tile.write`),
    stores and releases them, and takes turns with other blocks. Where turns
    have two lanes, there are `store0` and `store1`, one for each lane. There is
    no such role where threads also add to memory in turn. `widen`, of as many
    warps as its ops say, waits for slots of bytes, widens them into slots of
    other rings (`tile.widen_into`) and releases them. `compute` does the
    rest. Scalars and rings before the first op that only one role needs stay
    outside.

    A role that copies runs of rows has a thread for each run: all threads of its
    warps run it, and other copies are started by the first of them.

    Registers move from that warp group to `compute` (`setmaxnreg`): the block
    divides the 64 Ki registers of a multiprocessor equally among its threads;
    the other threads then keep 24 each, and compute threads get the rest, at
    most 240. Where a role widens, its threads have 80 to 128 of them. Threads that
    compute the places of runs need 32 at least: each
    compute thread leaves them 8. A single compute warp group has enough registers
    without this.

    Launches without rings, or with roles, stay unchanged.
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

def TileSkipRows : Pass<"tile-skip-rows"> {
  let summary = "Lets warp groups do only what their own rows need";
  let description = [{
    Under a causal mask the first rows of a tile need fewer keys than the last,
    and each of them the mask for one tile of keys only; a tile at the end of the
    queries has rows that do not exist. Where `tile.of_rows` says so in a role of
    several warp groups, each group ends a loop, or begins one that goes from the
    last keys to the first, as its own rows need it, and takes a branch only if
    these need it (`tile.group`). Of the slots that only
    other groups read, a group waits for each and releases it. Tensor cores then
    have more time for the other groups.

    This holds in a role whose products are `wgmma` by 16 rows a warp, so that a
    group owns rows one after another, and which exchanges no rows through
    shared memory. A loop's steps must not be longer than the distance of the
    first group's rows from the last's, and each slot that it waits for must be
    released in the same iteration, uses being counted by a number that it
    carries. Everywhere else `tile.of_rows` becomes the number for all rows.
  }];
  let dependentDialects = [
    "::fovea::tile::TileDialect", "::mlir::arith::ArithDialect",
    "::mlir::scf::SCFDialect"
  ];
  let statistics = [
    Statistic<"numSplit", "num-split",
              "Number of loops that warp groups end on their own">
  ];
}

def TileSwapGroups : Pass<"tile-swap-groups"> {
  let summary = "Deals a tile's rows to warp groups there and back";
  let description = [{
    Where warp groups end a tile's loop as their own rows need it
    (`--tile-skip-rows`), it is always the first group that has less to do under
    a causal mask: it runs ahead of the others as far as the slots of its rings
    let it, and waits for them then. In a role that computes one tile after
    another, in rounds of blocks, the pass gives group `g` of `n` the rows of
    group `n - 1 - g` in every other round, so that after two rounds all have
    had as much to do.

    Fragments stay where they are; what they hold is from other rows of the
    tile: those that products read in shared memory, and those that results go
    to (`tile.shift_rows`), the rows of coordinates, of loads into registers and
    of stores, and the numbers that depend on a group's own rows.

    A role stays unchanged if its groups do not run apart, if it has no loop in
    steps of one around the loops with its products, or if it loads numbers of
    rows or columns, or tiles in shared memory, by itself.
  }];
  let dependentDialects = [
    "::fovea::tile::TileDialect", "::mlir::arith::ArithDialect"
  ];
  let statistics = [
    Statistic<"numSwapped", "num-swapped",
              "Number of roles whose groups take rows there and back">
  ];
}

def TileOwnSlots : Pass<"tile-own-slots"> {
  let summary = "Gives each warp group slots of its own";
  let description = [{
    In a ring of one slot, a tile of the queries of all warp groups, none of them
    has its next rows before all have read the last ones; and where results leave
    through such a slot in parts, none writes its next part before all have
    written the last one. So a group that needs fewer steps, as under a causal mask, waits
    for the others. The pass makes a slot of 64 rows for each group of it
    (`tile.ring groups`), in the same memory. Roles of one thread copy, or store,
    the rows of each group by themselves, those of the group that ends first
    before the others.

    Groups then run apart (`tile.group`). A ring stays unchanged if it has several
    slots, or is written once for an item, for then groups wait for each other
    less; if its role is in no loop over items; or if it has other uses than the
    left operands of `wgmma` and results.
  }];
  let dependentDialects = [
    "::fovea::tile::TileDialect", "::mlir::arith::ArithDialect",
    "::mlir::scf::SCFDialect"
  ];
  let statistics = [
    Statistic<"numSplit", "num-split", "Number of rings that were split">
  ];
}

def TileSchedule : Pass<"tile-schedule"> {
  let summary = "Chooses how products and other work of a loop overlap";
  let description = [{
    The pass makes all `wgmma` products asynchronous: a `tile.mma` becomes a
    `tile.mma_async` and, right behind it, a `tile.wait_mma`. Of products that
    add to each other's results, which nothing else reads, only the last is
    waited for; they count as one, and slots that they read are released behind
    that wait. It then chooses a stage and a place in the step for each op of every innermost `scf.for` with
    such products, and writes them down: `tile.stage`, 0 or 1, and `tile.order`.
    The ops stay where they are; `--tile-expand-pipeline` moves them. Both
    attributes can also be written by hand.

    A product that depends on another product of the same iteration moves one
    iteration later, together with the ops that only it needs or that depend on
    it. In a step of the loop, the tensor cores then work on the next scores and
    on the last values while the softmax is computed (FlashAttention-3, arXiv
    2407.08608, section 3.2). The order of such a step is: issue the products of
    stage 0, then those of stage 1; then the ops that need only the first; then
    the wait for the second and the rest. Of several products of stage 1 each is
    issued when the one before it is over, so that their results take registers
    one after another. In a launch that is `alternating`, the
    products of stage 1 come first, and the step waits for both before anything
    else: no operand or result of a product is then needed beside the values of
    the softmax, and products of other warps run beside that.

    A loop with several products that depend on no other product of the
    iteration has enough work for the tensor cores in one step, but not enough
    registers for more: nothing moves later. Its order is: first the ops that
    lead to a result that the step itself uses, as early as possible; then
    products that add to values that the loop carries; then the wait for the
    oldest product, and the ops that can run after it. What an issue or a wait
    goes with is read from shared memory in front of it, as far as there are
    registers; else only the wait for it is in front. An issue does not wait for
    the slot that its result will go to. A product that adds to such a value
    from registers can become two, over the first quarter of the inner dimension
    and the rest, so that there is work for the tensor cores at two places.

    Tiles that a step writes to memory of an op's own (`tile.to_shared`, and a
    `tile.load` that is not a ring) are gone in the next step, and the first
    step, in front of the loop, would need such memory once more. Therefore
    nothing in a loop with such ops moves later; the loop is ordered in the same
    way.

    A role that copies, or widens, fills slots in the order in which products take
    them: where values are those of the iteration before, its loop gets two stages
    as well, the second for the rings of values. A slot of keys that is empty so
    does not wait for one of values that is needed later.

    Loops without such a dependence keep one stage. Launches whose products are
    already asynchronous stay unchanged.
  }];
  let dependentDialects = ["::fovea::tile::TileDialect"];
}

def TileExpandPipeline : Pass<"tile-expand-pipeline"> {
  let summary = "Skews loops as scheduled";
  let description = [{
    A loop whose body has `tile.stage` and `tile.order` runs stage 1 of an
    iteration together with stage 0 of the next one, in the given order; the
    first stage 0 and the last stage 1 are peeled copies, under a branch that
    skips everything for a loop without iterations. A loop without stage 1 is
    only reordered. The `pending` of each `tile.wait_mma` is set to the number
    of products issued between the product and the wait. A `tile.first_only` of
    stage 0 is its condition in the copy in front, and false in the loop.

    It is an error if the order puts an op before one that it depends on, if a
    stage 0 op depends on stage 1 of the same iteration, or if a stage 1 op
    needs a tile of `tile.load` or `tile.to_shared` of stage 0: stage 0 of the
    next iteration overwrites it. An op needs a tile that it reads, or that a
    product reads whose end it waits for.
  }];
  let dependentDialects = [
    "::fovea::tile::TileDialect", "::mlir::arith::ArithDialect",
    "::mlir::scf::SCFDialect"
  ];
}

def TileReleaseEarly : Pass<"tile-release-early"> {
  let summary = "Releases what a loop reads in its last iteration";
  let description = [{
    A tile that all iterations of a loop read, such as queries, is released after
    the loop. Where a group of warps has one slot for it, the next tile is copied
    from then on only. The pass moves the release into the loop's last iteration,
    behind the wait for the product that reads the tile: the copy then runs
    beside what is left of the iteration, and the last product of the item.

    Releases of rings with several slots stay, as do those of tiles that other
    ops than one product of the loop read.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"
  ];
  let statistics = [
    Statistic<"numMoved", "num-moved", "Number of releases that were moved">
  ];
}

def TileShareFences : Pass<"tile-share-fences"> {
  let summary = "Releases what threads read behind a fence that is there";
  let description = [{
    Threads that read a slot themselves fence before they release it, as bulk
    copies write it through another proxy (PTX ISA, "Proxies"). The fence waits
    for all that a thread has read, from global memory too. A step that writes a
    tile for WGMMA or a bulk copy has a fence behind it: the pass moves releases
    in front of that one behind it, and behind the product that reads the tile,
    which is to be issued first.

    Releases stay where the step has no such fence, or first waits for another
    role or takes a ring's memory, and those of slots that only WGMMA and bulk
    copies read.
  }];
  let statistics = [
    Statistic<"numMoved", "num-moved", "Number of releases that were moved">
  ];
}

def TileCarryValues : Pass<"tile-carry-values"> {
  let summary = "Carries what follows from numbers of rows that seldom change";
  let description = [{
    Where a loop carries one number for each row, such as a maximum, which stays
    the same unless a branch is taken, the pass finds what each iteration
    computes of these numbers and of what the loop does not change: their
    products with constants, and whether any of them is large. The loop then
    carries that, too: it is computed in front of the loop, and in the branch
    that changes the numbers (predictive commoning).

    Only values that are no larger than the rows are carried, for they take
    registers. A loop stays unchanged if it computes its numbers anew in each
    iteration, as with the exact maximum.
  }];
  let dependentDialects = ["::mlir::scf::SCFDialect"];
  let statistics = [
    Statistic<"numCarried", "num-carried", "Number of values carried">
  ];
}

def TileTakeTurns : Pass<"tile-take-turns"> {
  let summary = "Lets warp groups issue the products of a step in turn";
  let description = [{
    Warp groups whose products meet on the tensor cores share them, and then
    compute their softmax at the same time, while no product runs. In a launch
    that is `in_turn`, the groups of a role issue the products of a step, those
    of a block that are in flight together, one after another: each waits for
    its turn in front of the first product (`tile.take_group_turn`), and passes
    it behind the last one. The first group has it first.

    Every group has to take its turn equally often. So products stay as they are
    where the number of a group (`tile.group`), or the vote of a warp
    (`tile.any`), decides whether they are issued, or how often, and where a
    group needs rows of others, which then cannot run apart.

    Runs behind the passes that move products, such as `--tile-overlap-items`.
  }];
  let dependentDialects = [
    "::fovea::tile::TileDialect", "::mlir::arith::ArithDialect",
    "::mlir::scf::SCFDialect"
  ];
  let statistics = [
    Statistic<"numSteps", "num-steps", "Number of steps that are issued in turn">
  ];
}

def TileMulticast : Pass<"tile-multicast"> {
  let summary = "Lets the blocks of a cluster share what they copy";
  let description = [{
    In a launch of clusters (`cluster n`), the pass finds rings whose blocks all
    copy the same tiles at the same uses: where no index of a copy, no use, and
    nothing that decides whether a copy is made follows from the block's number
    in its cluster (`tile.cluster_rank`). Such a ring gets `cluster n`: each block
    then copies some panels of a tile to all blocks, which the L2 cache delivers
    once instead of `n` times. Other rings stay as they are, such as those of
    queries, and rings whose tiles have a number of panels that `n` does not
    divide, which threads fill, whose copies leave out rows, or whose slots are
    shared.

    Runs when all other passes on rings have run.
  }];
  let statistics = [
    Statistic<"numShared", "num-shared", "Number of rings that clusters share">
  ];
}

def TileDealItems : Pass<"tile-deal-items"> {
  let summary = "Deals programs to blocks that are free";
  let description = [{
    Takes launches whose blocks ask which programs they are dealt (`tile.dealt`). A
    role of its own (`deal`) takes a number that no other block has (`tile.claim`),
    computes what follows from it (`tile.of_item`), as far as that is the same for
    all roles, and publishes both in a ring; the loops of the other roles, over a number of rounds
    that is not known, become `scf.while`, which ends at a number behind the last
    program. Block `b` of `n` begins with programs `b` and `2 * n - 1 - b`, so that
    few programs are divided there and back, and has the next one ahead. So which
    programs a block runs depends on how long others take, as with one block for
    each; results do not, for each program writes its own.

    In a launch without roles, or without room for the ring, block `b` of `n` gets
    programs `b`, `b + n` and so on.
  }];
  let dependentDialects = [
    "::fovea::tile::TileDialect", "::mlir::arith::ArithDialect",
    "::mlir::scf::SCFDialect"
  ];
  let statistics = [
    Statistic<"numDealt", "num-dealt", "Number of launches with a role that deals">
  ];
}

def TilePrefetchTables : Pass<"tile-prefetch-tables"> {
  let summary = "Asks for tables of places before they are read";
  let description = [{
    Loads whose rows a region places (`runs` of `tile.load`, `tile.load_async`) read
    a table, such as the numbers of a sequence's pages, when they know which rows
    they copy: often behind the sequence's length, which comes from memory, too, and
    then in each step of a loop. The pass asks for the row of the table that a loop
    reads as soon as its number is known (`tile.prefetch`), so that these reads find
    it in the L2 cache.

    That needs memory that no op of the launch writes, of two dimensions or more, and
    a read whose last index follows from the row of the tile, and the others do not.
    A row that is another one in each step of the loop is not asked for.
  }];
  let dependentDialects = ["::fovea::tile::TileDialect"];
  let statistics = [
    Statistic<"numPrefetched", "num-prefetched", "Number of rows asked for">
  ];
}

def TileNarrowPositions : Pass<"tile-narrow-positions"> {
  let summary = "Computes positions in 32 bits";
  let description = [{
    Sizes of the tensors of which programs copy tiles are at most 2^30, so that
    positions of queries and keys fit in 32 bits, which a register of a GPU has. The
    pass lets the loops over tiles of a launch, those whose constant step is more
    than one, count in 32 bits, and computes what else fits as
    `arith-int-range-narrowing` does: if bounds and steps of all these loops fit, by
    MLIR's analysis of integer ranges. Numbers of such a launch that a role publishes
    for others in 64 bits are published in 32 where they fit. What maps compute of
    coordinates stays as it is. `affine.min` and `affine.max` are expanded.

    It runs last of the passes on programs: others look for the forms that loops
    over items and keys have before.
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::scf::SCFDialect"
  ];
  let statistics = [
    Statistic<"numNarrowed", "num-narrowed", "Number of loops that count in 32 bits">
  ];
}

def TilePackOperands : Pass<"tile-pack-operands", "::mlir::ModuleOp"> {
  let summary = "Copies operands that TMA cannot address";
  let description = [{
    The pass handles every memref operand of a launch that a `tile.load_async`
    reads, or a `tile.store_async` writes, in a way that TMA supports. The host
    tests its address and strides before the launch. Where one is not a multiple
    of 16 bytes, or a stride is negative, a packed copy whose rows are
    multiples of 16 bytes replaces the operand. The copy is freed after the
    launch, and copied back if the operand is an output. Buffers that the
    function allocates with such rows need no test. Runs on memrefs, before
    `convert-tile-launch-to-gpu`.

    Kernels that copy take time to compile, and are rarely needed for rows that
    are multiples of 16 bytes themselves. With `outline-tests` such operands of a
    public function `@f` are left as they are where their tests depend on its
    operands only. The function `@f.aligned`, with the same operands, returns 1 if
    all of these tests hold, and else 0: then `@f` must not be called.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"
  ];
  let options = [
    Option<"outlineTests", "outline-tests", "bool", /*default=*/"false",
           "Let the caller test operands that rarely need a copy">
  ];
  let statistics = [
    Statistic<"numChecked", "num-checked", "Number of operands to test">
  ];
}

#endif // FOVEA_DIALECT_TILE_TRANSFORMS_PASSES_TD
