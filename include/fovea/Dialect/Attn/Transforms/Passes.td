//===- Passes.td - Passes on the attn dialect --------------*- tablegen -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DIALECT_ATTN_TRANSFORMS_PASSES_TD
#define FOVEA_DIALECT_ATTN_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def AttnFoldEmpty : Pass<"attn-fold-empty"> {
  let summary = "Replaces what is computed on tensors without elements";
  let description = [{
    Where a static size is 0, nothing is computed, and passes that tile or
    vectorise need not handle it. (A dynamic size of 0 needs no such treatment:
    its loops have no iteration.)

    - The result of a graph op becomes a `tensor.empty` if it has no element. If
      each of its elements is a sum over nothing, it is filled: with 0 (scores
      of no features, values of no keys, sums over no queries), or with minus
      infinity (the log-sum-exp of no keys).
    - `attn.attention` and `attn.attention_backward` on such tensors are written
      as graph ops first.
    - If an op of linalg on tensors has no iteration, its results are its
      destinations.
  }];
  let dependentDialects = [
    "::fovea::attn::AttnDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"
  ];
  let statistics = [
    Statistic<"numFolded", "num-folded", "Number of ops replaced">
  ];
}

def AttnFuse : Pass<"attn-fuse"> {
  let summary = "Turns unfused attention into attn.attention";
  let description = [{
    Finds attention by its structure: a softmax whose input is, elementwise, a
    function of one contraction of queries with keys, and whose result is, by
    casts, reshapes and dropout, the left side of one contraction with values.
    Attention may be written with the graph ops of `attn` or with
    linalg/tensor/arith/math, as importers leave it.

    - Constant factors on the products, or on either of their sides, become
      `scale`.
    - Masks (selections of minus infinity by a condition on positions and
      captured tensors) become the mask region.
    - All other elementwise work on the scores becomes the score region; tensors
      that it reads are captured.
    - A broadcast of KV heads is undone; transposes and reshapes of the operands
      are folded where they cancel.
    - The softmax may be one op or its steps, together or apart: the maximum, or
      no maximum, exponentials in base e or 2, the sum, and the division, before
      or after the values; zeros for rows without a key may be selected.
    - An `attn.log_sum_exp` of the input of an `attn.softmax` or
      `linalg.softmax` becomes attention's second result.

    - Sinks become `init`: written as one more column of scores of static sizes,
      which is dropped behind an `attn.softmax` or `linalg.softmax` and before
      `attn.values`, or as an output that is divided by `1 + exp(sink - lse)`,
      also behind attention that is fused already.

    A mask by a large finite constant becomes a mask only where every row is
    proven to keep a key: a row that is masked as a whole by such a constant
    averages its values, while the mask region gives zeros.

    Any other code stays unchanged. For each softmax, and each `attn.values` of
    scores without a softmax, that is not fused, a missed remark gives the
    reason (`--remarks-filter=attn-fuse`).

    Some things differ from the unfused graph. By the definition of
    `attn.attention`, a row in which every key is masked by minus infinity gives
    zeros, not NaN. Intermediate tensors are not rounded to narrow element
    types.
  }];
  let dependentDialects = [
    "::fovea::attn::AttnDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
    "::mlir::tensor::TensorDialect"
  ];
  let statistics = [
    Statistic<"numFused", "num-fused", "Number of attentions fused">,
    Statistic<"numRejected", "num-rejected",
              "Number of softmaxes that are not a fusable attention">,
    Statistic<"numSinks", "num-sinks", "Number of sinks that became init">
  ];
}

def AttnMatchOperands : Pass<"attn-match-operands"> {
  let summary = "Gives the operands of attention one element type, on a GPU";
  let description = [{
    A GPU's kernels use tensor cores to multiply queries, keys and values, which
    must have the same element type. Where the types of an `attn.attention` or
    an `attn.attention_backward` differ, the operands are converted to the
    narrowest type that represents all their numbers: f32 for f16 and bf16.
    Results keep their types.

    The output's gradient is converted to the same type, in which it is
    multiplied by values and probabilities: the gradient of an f32 output of
    bf16 operands is rounded to bf16, as probabilities are. With f16 operands
    all are converted to f32, for f16 lacks the range of gradients. The sums
    `delta` of the gradient's products with the output are then computed from
    the rounded gradient, so that a row's gradients of scores have the sum zero.

    A host's loops convert the elements that they read; for a host, nothing is
    changed.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let statistics = [
    Statistic<"numConverted", "num-converted", "Number of operands converted">
  ];
}

def AttnTabulateDistances : Pass<"attn-tabulate-distances"> {
  let summary = "Computes what scores need of distances once for each";
  let description = [{
    What a score region computes from the distance of query and key alone, and
    from batch and head, is the same for all scores of a diagonal: a number of a
    table that a clamped or a logarithmic distance indexes (Raffel et al., 2020),
    a function of the distance. If that reads a tensor, other than a part of a
    row that TMA copies as it is, or takes a function of `math`, a
    `linalg.generic` in front of the attention computes it for the `Sq + Sk - 1`
    distances, of each batch and head that it depends on, and the region reads
    the number at the distance, which is such a part of a row (`captures =
    tiled` of `#attn.schedule`).

    ```mlir
    // In the region: %x = tensor.extract %t[%h, max(%i - %j, 0)]
    %table = linalg.generic ... -> tensor<1x16x8191xf32>
    // In the region: %x = tensor.extract %table[0, %h, %i - %j + 4095]
    ```

    Attention of fewer queries than a tile has, whose scores are not much more
    than its distances, stays as it is, and so do numbers of 64 bits. So does
    `attn.attention_backward`, which adds the gradients of what regions read.
    The pass is for GPUs with TMA and does nothing for other targets.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect",
    "::mlir::tensor::TensorDialect"
  ];
  let statistics = [
    Statistic<"numTables", "num-tables", "Number of tables computed">
  ];
}

def AttnPackGroups : Pass<"attn-pack-groups"> {
  let summary = "Makes rows of one head of the queries that share keys";
  let description = [{
    A tile of queries of a GPU has at least 64 rows, of which one query, as in
    decoding, fills one. On a host it fills one lane of a vector. The pass makes
    the queries of all `G` heads that read the same head of keys the rows of one
    head: `[B, Hkv * G, Sq, D]` becomes `[B, Hkv, G * Sq, D]`, which is the same
    memory. Row `r` is query `r mod Sq` of head `g * G + r div Sq`, and regions
    see these coordinates. So each tile of keys is read once for all heads of
    its group, of any size, and no tensor core computes with empty rows instead.

    The pass changes each `attn.attention` without a schedule whose heads and
    queries are static in number and whose queries fill at most half of the
    `rows` of a tile.

    Of any number of queries, sequences that lie packed may still have one each:
    where a loop copies them to a padded batch, and loops copy results back
    (`attn-tile` reads and writes tiles where rows lie), and a GPU has TMA, the
    queries become `[B, Hkv, Sq * P, D]`, `P` the power of two from `G` on, up to 16. Row
    `r` is query `r div P` of head `g * G + r mod P`, so that the rows of a sequence are
    the first ones, and a tile is a box of memory in which heads lie between queries
    (`tile.load` with `inner`). The last `P - G` rows of a query have no head: what
    they hold is not defined (`tensor.empty`), and results drop them. Where these are
    more than an eighth, or `P` more than 16, shares of the group, the largest power of two that
    divides `G`, are rows instead, and the shares heads. This is not done where there are a dropout, which
    numbers rows, an initial log-sum-exp, parts of a given size, or a region that
    reads a tensor at a head or a query. A few queries that are no power of two get
    this order, too, where all of a group are at most 64, and the only reader of the
    results swaps heads and queries: of the other order there is no box then.

    So do batches that lie as they are read, operands and results or transpositions of
    these: of more queries, if tiles then have a tenth fewer rows, as of 64 or 160 of
    each head, and with `batches` of any number. Of a known number the whole group or
    shares are rows, whichever has fewer tiles; with `batches` the whole group, if `P`
    is at most 16, also of packed sequences.
  }];
  let options = [
    Option<"rows", "rows", "int64_t", "0",
           "Rows of a tile of queries; 0: the target's, which are 64 on a GPU and "
           "the lanes of a vector on a host">,
    Option<"batches", "batches", "bool", "false",
           "Change batches of any number of queries, too, and whole groups: for "
           "few queries of each sequence">
  ];
  let dependentDialects = [
    "::fovea::attn::AttnDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"
  ];
  let statistics = [
    Statistic<"numPacked", "num-packed", "Number of attentions packed">
  ];
}

def AttnDivideGroups : Pass<"attn-divide-groups"> {
  let summary = "Gives shares of a group's query heads work items of their own";
  let description = [{
    A block of a GPU adds up the gradients of a tile of keys over all query
    heads that read it. Where few heads have keys, there are few blocks, or
    unequal ones under a mask. In each `attn.attention_backward` whose schedule
    has `shares = P` (`#attn.gradients`), the pass repeats each head of keys and
    values `P` times, `[B, Hkv, Sk, D]` to `[B, Hkv * P, Sk, D]`, so that each
    copy has a share of the query heads, which keep their order. The gradients
    of keys and values are those of the copies, in the accumulation type, added
    up in the order of the shares: the same bits in every run. Regions see
    query heads, which stay what they were. An op with one share stays as it is.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::tensor::TensorDialect"
  ];
  let statistics = [
    Statistic<"numDivided", "num-divided", "Number of ops whose groups are divided">
  ];
}

def AttnApproximate : Pass<"attn-approximate"> {
  let summary = "Lets score regions use a GPU's approximate functions";
  let description = [{
    The pass gives the fastmath flag `afn` to `math.tanh` of f32 in the score
    regions of `attn.attention` and `attn.attention_backward` on a GPU whose
    products are of bf16. A GPU has an instruction for it (`tanh.approx.f32`)
    with a largest relative error of 2^-11, which takes a third of the time of
    the exact form. `convert-tile-to-nvvm` honours the flag; the interpreter
    rounds such a result to 11 bits.

    So a soft cap's score `s` is off by up to `|s| * 2^-11`, and a weight by that
    share of itself, which is less than its rounding to bf16 (2^-9) where
    `|s| < 4`; at a cap of 30 it is at most 1.5%, at 50 2.5%. The weights of a
    row are divided by their sum, so that an error that its large scores have in
    common has no effect. The derivative, `1 - tanh^2`, is off by up to 2^-10.
    f16 and f32, which round weights less, keep the exact form, and so does
    everything if the pass is left out (`exact-functions` of the pipeline).
  }];
  let statistics = [
    Statistic<"numApproximated", "num-approximated",
              "Number of functions that may be approximate">
  ];
  let dependentDialects = ["::mlir::math::MathDialect"];
}

def AttnSelectSchedule : Pass<"attn-select-schedule"> {
  let summary = "Attaches a schedule to every attention";
  let description = [{
    The pass gives a `#attn.schedule` to each `attn.attention` without one:
    among tiles whose working set fits the target's near memory, the one with
    the least time by the model in `Analysis/ScheduleModel.h` (vector operations
    of a tile, widening of 16-bit keys and values, ragged last tiles, an even
    share for every core). The target is the module's `machine.target`, or a
    common machine where there is none. The tiles of attention with a mask are
    handed out longest first.

    On a GPU the tile fits the shared memory and registers of a block, `warps`
    and `stages` are chosen with it, and the time is that of all waves of
    blocks: products by the tile's instruction, softmax, and the overlap between
    them. Head dims are multiples of 8 up to 256. Each of `passes` passes over
    the keys has its own tiles of them. Where tiles of queries leave
    multiprocessors idle, as in decoding, keys are split among as many blocks as
    run at once, if that saves more than merging the parts takes. Lengths that
    are not static are taken to be `typical-length`. Operands of f32 are split into parts
    for tensor cores (`parts` in `#attn.schedule`) where the model finds that
    faster, unless `exact-products` says that they are multiplied as they are.

    An `attn.attention_backward` with statistics also gets a schedule, with
    `gradients`. On a GPU its kernel adds up the gradients of a tile of keys in
    registers, so its tiles are smaller. Gradients of captured tensors take the
    registers of one more fragment of scores. On a host a tile has as many
    queries, up to 192, as stay in three quarters of a core's near memory with
    all that tiles of keys read again; `gradients` asks for two work items for
    each core, and makes items that share a gradient as large as the scores of a
    head one.

    With `deterministic`, a GPU's sums in memory have the same bits in every
    run, and a remark names which of two ways is used: either terms are added
    exactly, in several 64-bit integers for each element (for f32 19 up to 2^23
    terms, 35 up to 2^31, at most 130; for f64 264), or, where only batches or
    heads share elements and integers would take more memory than the sums of
    the queries' gradients, launches for each batch or head add in their order.
    (`tile-order-adds` orders the blocks' additions to queries' gradients.)

    An existing schedule, written by hand, stays, and so does one that the
    module's `attn.schedules` give, as an autotuner does (`fovea-run --tune`);
    both are completed by `gradients` if they lack them. It is an error if the
    indices of a captured tensor rule out how its gradients are added up, if
    warps cannot share it or if, where the module has a target, the target's
    memory or registers do not hold its tile. Where not even the smallest tile
    fits, as with head dims of many thousands, attention gets no schedule and a
    missed remark says so.
  }];
  let options = [
    Option<"queryTile", "query-tile", "int64_t", "0",
           "Queries of a tile; 0: the model chooses">,
    Option<"keyTile", "key-tile", "int64_t", "0",
           "Keys of a tile; 0: the model chooses">,
    Option<"passes", "passes", "int64_t", "1",
           "Passes over the keys that attention will be made of">,
    Option<"deterministic", "deterministic", "bool", /*default=*/"false",
           "Whether sums of captured tensors' gradients on a GPU do not depend "
           "on the order in which blocks add">,
    Option<"exactProducts", "exact-products", "bool", /*default=*/"false",
           "Whether products of f32 are those of FMA, never of parts in bf16">,
    Option<"typicalLength", "typical-length", "int64_t", /*default=*/"0",
           "Lengths that a GPU's dynamic ones are taken for; 0: 4096">,
    Option<"typicalRows", "typical-rows", "int64_t", /*default=*/"0",
           "Rows of a head of the only sequence that a GPU's dynamic batch is taken "
           "to have, of 8192 keys where their number is dynamic: queries, or "
           "those of a group's heads; 0: they are not few">,
    Option<"tileRows", "tile-rows", "int64_t", /*default=*/"0",
           "Rows of a GPU's tiles of queries, of which a dynamic batch is taken "
           "to have one or two for each multiprocessor; 0: any, of many">
  ];
  let statistics = [
    Statistic<"numSelected", "num-selected", "Number of schedules chosen">,
    Statistic<"numKept", "num-kept", "Number of schedules that were there">,
    Statistic<"numUnfit", "num-unfit", "Number of attentions that no tile fits">
  ];
}

def AttnOnlineSoftmax : Pass<"attn-online-softmax"> {
  let summary = "Turns attention and its gradients into running values";
  let description = [{
    The pass replaces the softmax of a whole row by the recurrence of
    `attn.online_attention`, which reads the keys in any order and in any
    pieces, and `attn.finalize`, which divides by the sum. The running values
    begin as `linalg.fill` of zero and of minus infinity. A state without an
    output that attention begins from, such as a sink, is added by
    `attn.finalize`; one with an output is merged by elementwise ops behind.

    `passes` is the number of times that the keys are read:

    - 1: maximum, sum and accumulator in one pass, the accumulator rescaled as
      the maximum grows (FlashAttention);
    - 2: maximum and sum together (Milakov and Gimelshein's online
      denominator), then the values;
    - 3: the textbook's maximum, sum, and values.

    Each pass over the keys gets the schedule; the pass that reads values gets
    the dropout.

    An `attn.attention_backward` with a schedule becomes an
    `attn.online_backward` whose sums begin as `linalg.fill` of zero. Sums of
    gradients of captured tensors are in f64, unless each score writes its own
    element or the rounding of operands outweighs that of a sum in f32.
  }];
  let dependentDialects = [
    "::fovea::attn::AttnDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
    "::mlir::tensor::TensorDialect"
  ];
  let options = [
    Option<"passes", "passes", "int", /*default=*/"1",
           "Passes over the keys: 1, 2 or 3">,
    Option<"scheduledOnly", "scheduled-only", "bool", /*default=*/"false",
           "Leave attention that has no schedule, which no tile of the target "
           "fits, to be written out">
  ];
  let statistics = [
    Statistic<"numRewritten", "num-rewritten",
              "Number of attentions turned into running values">
  ];
}

def AttnTile : Pass<"attn-tile"> {
  let summary = "Tiles attention over queries and keys";
  let description = [{
    From each `attn.finalize` on tensors, the pass makes these loops through
    MLIR's tiling interface:

    - an `scf.forall` over batches, query heads and tiles of queries, in which
      the passes over the keys, their initial values and elementwise or
      transposing producers of the queries are computed per tile. On a GPU a tile
      with all rows of a head, those of a group's heads (`attn-pack-groups`), is a
      slice of the queries of these heads, if neighbouring rows, those of a head or
      of a query, are a power of two;
    - in it an `scf.for` over tiles of keys for each pass, which carries the
      accumulator, the maximum and the sum.

    With `split` in the schedule, the parts of the keys are one more dimension of
    the `scf.forall`: each finds the mask's bounds for its tile of queries, and
    takes its share of the tiles of keys between them. A loop behind merges the
    parts of each row. Of the output's readers it takes over what swaps heads and
    rows, also behind the reshapes by which `attn-pack-groups` makes heads of rows
    again; no other one is in a loop. Where the number of batches is not static, and
    captured tensors that the mask reads at the batch bound the keys, items of a
    list of parts, which a loop in front writes, take the place of the batches. A
    part that is all of its batch writes the batch's results, of which the workspace
    then gets no row, and that row is not merged.

    Sequences that lie packed are a batch of the longest one's length: a loop over
    batches (`scf.forall`) in front copies the rows of each to its first ones, and a
    loop behind copies rows of results from there. Such a loop behind is no reader
    of results: tiles are written to what it copies to, with as many rows as it
    would copy of them, and those of queries are slices of what the loop in front
    copies from, if it copies as many. So are those of keys and values that loops in
    front copy, each its own, of which a batch then has no more than are copied. A
    loop over keys has no step for a tile without a row. Where `blocks = dealt`, an
    `scf.forall` in front lists the tiles that have a row, and the loop over tiles
    runs through the list: by the binary digits of the number of their steps, where
    these are not few, and then by batches. With `split` too, tiles that see
    more than their share of all keys are several items of the list, its first
    ones: each writes its sums to a workspace, and a loop behind merges them where
    the rows lie. If anything else is computed of the tiles, they are whole.

    Work around attention is also computed per tile, while the tile is near:

    - readers of the output that are elementwise (a residual, an output gate, a
      bias, a cast, dropout as linalg), or that norm or sum over the features,
      in the body of the `scf.forall`, through transposes and through collapsed
      heads. Where other ops also read the output, both tensors are written.
      Readers of several tiles, such as a projection, stay after the loop. A GPU's
      block, whose schedule has `warps`, has its tile in registers: the readers
      computed on it are elementwise linalg ops on the output or the log-sum-exp,
      whose results are floats with the rows and features of the tile, or its rows,
      and whose regions compute from elements and indices alone; with them go
      elementwise ops that make only their other operands. Tiles of one query or
      feature have no such readers. Nor are readers there that take longer than a
      kernel of their own, unless `all-consumers` says so: with more than one
      tensor of rows and features beside the output, with functions that
      `convert-attn-to-tile` has to keep exact, where others need what they read
      too, or where a kernel behind reads what they make.
      `--debug-only=attn-tile` says why others stay;
    - elementwise ops, norms, rope and casts that make the keys or values, where
      the key loop loads them. Each tile of queries and each head of a group
      computes them again, so `fuse-keys=auto` does this where
      `Analysis/ScheduleModel.h` finds it faster than a kernel that writes them
      to memory: for decoding, a few queries, quantised keys. A remark gives the
      choice and its reason.

    IR that is already tiled stays unchanged.

    An `attn.online_backward` becomes an `scf.forall` over work items, as
    `gradients` in its schedule says, and loops in it:

    - on a host, the items are batches, heads of keys and shares of the queries.
      An item loops over the query heads of its group, tiles of queries, and the
      tiles of keys that the mask keeps. Where several items add to a sum, each
      has its own, and these are added up in order after the loop;
    - on a GPU, the items are batches, heads of keys and tiles of keys. An item
      loops over the query heads of its group and the tiles of queries that the
      mask keeps. Where several items add to a sum, `attn.parallel_add_slice`
      adds to it. Gradients that one item has are rounded in the item.

    Tile sizes and the order in which tiles of queries are handed out come from
    the schedule of `attn.online_attention`, which must be there. A tile at the
    ragged end is smaller; sizes that are static and divide stay static.

    `Analysis/MaskAnalysis.h` finds the tiles that the mask keeps:

    - the key loop runs from the first to the last tile of keys of which the
      mask keeps something, for this tile of queries;
    - where tiles between these may be empty, each is tested, and an `scf.if`
      skips empty ones;
    - the mask is applied in tiles that it does not keep whole: `partial`. On a
      host, whose tiles may have any number of keys, those of a mask that keeps
      all keys between its bounds, as lengths do, need no mask;
    - captured tensors that are indexed by the query or the key, such as document
      ids or padding masks, get tables of their extremes by tile, filled by an
      `scf.forall` before the tiles of queries.
  }];
  let dependentDialects = [
    "::fovea::attn::AttnDialect", "::mlir::affine::AffineDialect",
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"
  ];
  let options = [
    Option<"fuseProducers", "fuse-producers", "bool", /*default=*/"true",
           "Compute elementwise producers of queries, keys and values per tile; "
           "transposes that are views of tiles vanish either way">,
    Option<"fuseKeys", "fuse-keys", "::fovea::attn::KeyFusion",
           /*default=*/"::fovea::attn::KeyFusion::Auto",
           "With fuse-producers, those of keys and values", [{
             ::llvm::cl::values(
               clEnumValN(::fovea::attn::KeyFusion::Auto, "auto",
                          "Where the model of the target finds it faster"),
               clEnumValN(::fovea::attn::KeyFusion::Always, "always",
                          "Wherever it is possible"),
               clEnumValN(::fovea::attn::KeyFusion::Never, "never",
                          "In kernels of their own"))
           }]>,
    Option<"fuseConsumers", "fuse-consumers", "bool", /*default=*/"true",
           "Compute elementwise readers of the output per tile">,
    Option<"allConsumers", "all-consumers", "bool", /*default=*/"false",
           "In a GPU's block also those that take longer there than in a kernel">,
    Option<"exactFunctions", "exact-functions", "bool", /*default=*/"false",
           "Functions are exact for floats of 16 bits, too, and cost as much">
  ];
  let statistics = [
    Statistic<"numTiled", "num-tiled", "Number of attentions tiled">,
    Statistic<"numConsumers", "num-consumers",
              "Number of readers of the output computed per tile">,
    Statistic<"numKeyProducers", "num-key-producers",
              "Number of producers of keys or values computed in the loads">,
    Statistic<"numExactBounds", "num-exact-bounds",
              "Number of masked key loops whose bounds leave no tile to skip">,
    Statistic<"numTileTests", "num-tile-tests",
              "Number of masked key loops that test each tile">,
    Statistic<"numTables", "num-tables",
              "Number of tables of captured tensors' extremes">
  ];
}

def AttnListTiles : Pass<"attn-list-tiles"> {
  let summary = "Makes lists of the tiles that a loop's test accepts";
  let description = [{
    The pass is for GPUs and runs after `attn-tile`. A loop over tiles that tests
    each of them, such as that of document ids, becomes a loop over a list of the
    tiles that pass the test:

    - an `scf.forall` before the parallel loop makes the lists, one for each item
      that the tests tell apart: places of tiles in the order of the loop, divided
      by the tiles' size if they are multiples of it, and their number. Booleans of the test that an accepted tile uses, as whether
      the mask keeps all of it, are the lowest bits of its entry. Another one in
      front counts the accepted tiles of each chunk of 32, if there may be several;
    - the loop counts through its list, and its body has no test. So the passes
      that follow let its copies and products run ahead as without a mask.

    A list has room for all tiles of the tensor that the loop steps through, in whole
    chunks. Lists
    are made in front of loops that repeat the parallel one.

    A loop stays as it is if its tests need values that the parallel loop
    computes, if they differ between its repetitions, if no tensor tells how many
    tiles there may be, or in clusters, whose blocks visit the same tiles. With
    `deterministic` loops of the backward pass stay, whose blocks add in turns
    (`--tile-order-adds`): each comes to all tiles.
  }];
  let options = [
    Option<"deterministic", "deterministic", "bool", /*default=*/"false",
           "Keep the loops of backward passes, whose blocks take turns">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect"
  ];
  let statistics = [
    Statistic<"numListed", "num-listed", "Number of loops over a list">
  ];
}

def AttnOrderTiles : Pass<"attn-order-tiles"> {
  let summary = "Hands out tiles from the one with the most keys, by tensors";
  let description = [{
    The pass is for GPUs and runs after `attn-list-tiles`. Persistent blocks take
    the tiles of queries from the longest to the shortest, there and back, so that
    all have as much to do. Under a causal mask the last tile is the longest.
    Where tensors decide how many tiles of keys a tile of queries sees, as the ids
    of documents or where the sequences of a ragged batch begin, blocks might get
    long tiles only. So an `scf.forall` in front counts the steps of each tile, a
    second one sorts the tiles by them, and the parallel loop takes its tile from
    that table. Pairs of steps are counted, so that tiles side by side, which read
    the same keys, often stay neighbours; where `blocks = dealt` their binary digits
    are, and those of few steps, beside the tiles that a block gets, stay in their
    order. Tiles without a query, of which there are
    some where tensors also decide where tiles begin and end, come last, and the
    parallel loop ends in front of them.

    It takes attention whose schedule has `order = longest_first` and `blocks =
    persistent`, or `dealt`, and the bounds of whose first loop over keys read tensors
    at the tile: by a number of its sequence alone, as a length, tiles are in order as
    by none. It stays as it is if these bounds need what the parallel loop computes,
    or differ between its repetitions.

    In the backward pass tiles of keys are sorted by the tiles of queries that see
    them, whatever blocks are, so that the last ones to begin are short. With
    `deterministic` they stay in order: blocks add in turns (`--tile-order-adds`),
    and would wait for some that have not begun.
  }];
  let options = [
    Option<"deterministic", "deterministic", "bool", /*default=*/"false",
           "Keep the order of backward passes, whose blocks take turns">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"
  ];
  let statistics = [
    Statistic<"numOrdered", "num-ordered", "Number of loops over sorted tiles">
  ];
}

def AttnJoinTables : Pass<"attn-join-tables"> {
  let summary = "Joins loops that fill tables with those that read them";
  let description = [{
    The pass is for GPUs and runs after `attn-order-tiles`. The tables in front of
    attention are filled by one `scf.forall` after another: where tiles begin, the
    extremes of what a mask reads in each, the number of its steps. Each would be a
    launch, which waits for the one in front. A loop that reads tables only at its
    own place joins the loop over the same places that fills them, and has the
    numbers instead of their elements.

    Loops stay apart where one reads more of a table than its place, where their
    bounds differ, or where others between them read the tables.
  }];
  let dependentDialects = ["::mlir::scf::SCFDialect"];
  let statistics = [
    Statistic<"numJoined", "num-joined", "Number of loops joined with another">
  ];
}

def AttnPackQueries : Pass<"attn-pack-queries"> {
  let summary = "Packs tiles of queries for a vector unit";
  let description = [{
    The pass is for hosts and runs after `attn-tile`. It packs the query of each
    `attn.online_attention` whose number of queries has a known bound of at most
    1024, by `attn.pack_query` in front of the loops over keys, one query per
    vector lane. The running values get that bound, rounded up to whole vectors,
    as a static number of rows, in all passes over the keys and in the loops and
    branches around them; `attn.finalize` reads the rows that exist.

    If the target multiplies pairs in bf16, by AMX tiles or by dot products of
    AVX512-BF16, queries, keys and values are bf16, and head dims are multiples of
    32 (values: 16), queries are packed in pairs of features, unscaled. By AMX
    tiles f16 is multiplied, too, as two parts in bf16, where the target's three
    products in bf16 take less time than one in f32.

    Queries and output's gradients of an `attn.online_backward` with such a
    bound, and with one of its keys, are packed as well, in groups of vectors
    that share the numbers they are multiplied by, and the op gets the
    derivative of its score region. Gradients of captured tensors are computed
    behind it, from blocks of its scores and their gradients. It is an error if
    the score region has no derivative. Where pairs of all operands can be
    multiplied, as in the forward pass, and head dims of values are multiples of
    32, too, both are packed in pairs of features, and the op reads the others as
    they are.

    An op stays unchanged if it has no such bound, is on memrefs, or is already
    packed.
  }];
  let options = [
    Option<"vectorBytes", "vector-bytes", "int64_t", "0",
           "Bytes of a vector register; 0: the target's, or 64">
  ];
  let dependentDialects = [
    "::fovea::attn::AttnDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"
  ];
  let statistics = [
    Statistic<"numPacked", "num-packed", "Number of passes over keys packed">,
    Statistic<"numUnbounded", "num-unbounded",
              "Number of passes without a bound on their queries">
  ];
}

#endif // FOVEA_DIALECT_ATTN_TRANSFORMS_PASSES_TD
