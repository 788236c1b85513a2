//===- AttnAttrs.td - Attributes of the attn dialect -------*- tablegen -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DIALECT_ATTN_IR_ATTNATTRS_TD
#define FOVEA_DIALECT_ATTN_IR_ATTNATTRS_TD

include "fovea/Dialect/Attn/IR/AttnBase.td"

class Attn_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Attn_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

def Attn_UpdateEnum : I32EnumAttr<"Update",
    "Which running values a pass over the keys updates", [
      I32EnumAttrCase<"All", 0, "all">,
      I32EnumAttrCase<"Max", 1, "max">,
      I32EnumAttrCase<"Sum", 2, "sum">,
      I32EnumAttrCase<"MaxSum", 3, "max_sum">,
      I32EnumAttrCase<"Acc", 4, "acc">
    ]> {
  let cppNamespace = "::fovea::attn";
  let genSpecializedAttr = 0;
}

def Attn_UpdateAttr : EnumAttr<Attn_Dialect, Attn_UpdateEnum, "update"> {
  let assemblyFormat = "`<` $value `>`";
}

def Attn_OrderEnum : I32EnumAttr<"WorkOrder",
    "In which order the tiles of queries are handed out", [
      I32EnumAttrCase<"Linear", 0, "linear">,
      I32EnumAttrCase<"LongestFirst", 1, "longest_first">
    ]> {
  let cppNamespace = "::fovea::attn";
  let genSpecializedAttr = 0;
}

def Attn_CoordinateEnum : I32EnumAttr<"Coordinate",
    "A coordinate of a score, in the order of a region's arguments", [
      I32EnumAttrCase<"Batch", 0, "batch">,
      I32EnumAttrCase<"Head", 1, "head">,
      I32EnumAttrCase<"Row", 2, "row">,
      I32EnumAttrCase<"Key", 3, "key">
    ]> {
  let cppNamespace = "::fovea::attn";
  let genSpecializedAttr = 0;
}

def Attn_MaximumEnum : I32EnumAttr<"Maximum",
    "The maximum that a step on a tile of keys subtracts from its scores", [
      I32EnumAttrCase<"Exact", 0, "exact">,
      I32EnumAttrCase<"Stale", 1, "stale">
    ]> {
  let cppNamespace = "::fovea::attn";
  let genSpecializedAttr = 0;
}

def Attn_KeyOrderEnum : I32EnumAttr<"KeyOrder",
    "In which order a block visits the tiles of keys", [
      I32EnumAttrCase<"Ascending", 0, "ascending">,
      I32EnumAttrCase<"Descending", 1, "descending">
    ]> {
  let cppNamespace = "::fovea::attn";
  let genSpecializedAttr = 0;
}

def Attn_QueryTilesEnum : I32EnumAttr<"QueryTiles",
    "Where tiles of queries begin", [
      I32EnumAttrCase<"Aligned", 0, "aligned">,
      I32EnumAttrCase<"Sequences", 1, "sequences">
    ]> {
  let cppNamespace = "::fovea::attn";
  let genSpecializedAttr = 0;
}

def Attn_BlocksEnum : I32EnumAttr<"Blocks",
    "How the tiles of queries are dealt to blocks", [
      I32EnumAttrCase<"Tiles", 0, "tiles">,
      I32EnumAttrCase<"Persistent", 1, "persistent">,
      I32EnumAttrCase<"Shared", 2, "shared">,
      I32EnumAttrCase<"Dealt", 3, "dealt">
    ]> {
  let cppNamespace = "::fovea::attn";
  let genSpecializedAttr = 0;
}

def Attn_ProductsEnum : I32EnumAttr<"Products",
    "What matrix products run beside", [
      I32EnumAttrCase<"Overlapped", 0, "overlapped">,
      I32EnumAttrCase<"Alternating", 1, "alternating">
    ]> {
  let cppNamespace = "::fovea::attn";
  let genSpecializedAttr = 0;
}

def Attn_WarpGroupsEnum : I32EnumAttr<"WarpGroups",
    "When warp groups issue the products of a step", [
      I32EnumAttrCase<"Free", 0, "free">,
      I32EnumAttrCase<"InTurn", 1, "in_turn">
    ]> {
  let cppNamespace = "::fovea::attn";
  let genSpecializedAttr = 0;
}

def Attn_CapturesEnum : I32EnumAttr<"Captures",
    "How regions get the elements of captured tensors", [
      I32EnumAttrCase<"Gathered", 0, "gathered">,
      I32EnumAttrCase<"Tiled", 1, "tiled">
    ]> {
  let cppNamespace = "::fovea::attn";
  let genSpecializedAttr = 0;
}

def DefaultValuedCaptures : EnumParameter<Attn_CapturesEnum> {
  let defaultValue = "::fovea::attn::Captures::Gathered";
}

def DefaultValuedProducts : EnumParameter<Attn_ProductsEnum> {
  let defaultValue = "::fovea::attn::Products::Overlapped";
}

def DefaultValuedWarpGroups : EnumParameter<Attn_WarpGroupsEnum> {
  let defaultValue = "::fovea::attn::WarpGroups::Free";
}

def DefaultValuedBlocks : EnumParameter<Attn_BlocksEnum> {
  let defaultValue = "::fovea::attn::Blocks::Tiles";
}

def DefaultValuedQueryTiles : EnumParameter<Attn_QueryTilesEnum> {
  let defaultValue = "::fovea::attn::QueryTiles::Aligned";
}

def DefaultValuedMaximum : EnumParameter<Attn_MaximumEnum> {
  let defaultValue = "::fovea::attn::Maximum::Exact";
}

def DefaultValuedKeyOrder : EnumParameter<Attn_KeyOrderEnum> {
  let defaultValue = "::fovea::attn::KeyOrder::Ascending";
}

def Attn_CaptureSumEnum : I32EnumAttr<"CaptureSum",
    "How the gradients of the values that one op reads are added up", [
      I32EnumAttrCase<"ByTile", 0, "by_tile">,
      I32EnumAttrCase<"OverQueries", 1, "over_queries">,
      I32EnumAttrCase<"Own", 2, "own">,
      I32EnumAttrCase<"InMemory", 3, "in_memory">,
      I32EnumAttrCase<"Diagonals", 4, "diagonals">,
      I32EnumAttrCase<"Integers", 5, "integers">,
      I32EnumAttrCase<"DiagonalIntegers", 6, "diagonal_integers">
    ]> {
  let cppNamespace = "::fovea::attn";
  let genSpecializedAttr = 0;
}

def Attn_GradientsAttr : Attn_Attr<"Gradients", "gradients"> {
  let summary = "How the sums of one backward pass are divided";
  let description = [{
    A part of the schedule of `attn.attention_backward`.

    - `parallel`: the coordinates along which work items that run side by side
      are cut: `batch`, `head` (of keys, with its group of query heads), `key`
      (tiles of keys; GPUs only, and there always). The others are looped over:
      on a host in a work item, on a GPU by launches one after another.
    - `items`: on a host, the wanted number of work items. Where `parallel`
      makes fewer, the queries of a head are cut into shares.
    - `shares`, GPUs only: the number of shares into which `attn-divide-groups`
      divides the query heads that read one head of keys, where `parallel` makes
      few work items, or unequal ones. It divides the number of these heads.
      Each share has gradients of keys and values of its own, which a kernel
      behind the launch adds up in their order.
    - `captures`: for each read of a captured tensor that has a gradient, in the
      order of the score region, how the gradients of the values that it reads
      are added up. On a host, `by_tile`: from the scores of a tile, which adds
      to its part of the tensor. On a GPU:
      - `over_queries`: the query does not affect which element is read. A block
        has a sum for each of its keys; later kernels add these up;
      - `own`: each score has an element of its own, and writes to it;
      - `in_memory`: each score adds to its element, atomically;
      - `diagonals`: the same, after a warp has added up scores at the same
        distance of query and key, which decides the element;
      - `integers` and `diagonal_integers`: the same as `in_memory` and
        `diagonals`, in integers, whose sums do not depend on the order.

    ```mlir
    #attn.gradients<parallel = [batch, head], items = 8>
    #attn.gradients<parallel = [batch, head, key], captures = [in_memory]>
    #attn.gradients<parallel = [batch, head, key], shares = 8>
    ```
  }];
  let parameters = (ins
    ArrayRefParameter<"Coordinate">:$parallel,
    DefaultValuedParameter<"int64_t", "1">:$items,
    DefaultValuedParameter<"int64_t", "1">:$shares,
    OptionalArrayRefParameter<"CaptureSum">:$captures
  );
  let assemblyFormat = [{
    `<` `parallel` `=` custom<EnumList>($parallel) ``
    custom<Sums>($items, $shares, $captures) `>`
  }];
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    bool isParallel(Coordinate coordinate) const {
      return ::llvm::is_contained(getParallel(), coordinate);
    }
    GradientsAttr withShares(int64_t shares) const {
      return get(getContext(), getParallel(), getItems(), shares,
                 getCaptures());
    }
  }];
}

def Attn_ScheduleAttr : Attn_Attr<"Schedule", "schedule"> {
  let summary = "How one attention is cut into tiles and handed out";
  let description = [{
    `--attn-select-schedule` chooses the schedule from the model of the target,
    or a person writes it by hand; all later passes obey it.

    - `tile = QxK`: queries and keys of one tile;
    - `order`: `linear`, or `longest_first` where a mask gives the tiles of
      later queries more keys than those of earlier ones;
    - GPUs only, both or none: `warps`, 1 to 32, that compute a tile, whose
      queries and keys are then multiples of 16. Attention's warps have 16 of
      its queries each; those of the backward pass have 16 of its keys, or a
      multiple. `stages`, 1 to 8, is the number of tiles of keys, or of queries,
      that are in shared memory at once;
    - `maximum`, GPUs only: `exact` (the default), or `stale`, with which a step
      on a tile of keys subtracts the maximum of earlier steps from its scores.
      Its sums or probabilities show where scores have grown so much that the
      step has to find their maximum and start again. Results differ in
      rounding only. Strategies that visit the keys more than once know the
      maximum;
    - `keys`, GPUs only, forward pass only: `ascending` (the default), or
      `descending`, where a block visits the tiles of keys from the last that the
      mask keeps to the first. Scores that grow along the keys, as with ALiBi
      under a causal mask, then have their maximum in the first step, so that
      steps with an earlier maximum do not start again. With all other parts of
      a schedule;
    - `queries`, GPUs only, forward pass only: `aligned` (the default), where tiles
      of queries begin at multiples of their size, or `sequences`, with blocks that
      are `dealt` tiles only: a tile also begins, and the one in front ends, where
      the keys that a query sees have none in common with those of the query in
      front, as where sequences are packed one after another. Tiles of keys then
      begin at the first key of each tile of queries. Loops in front find the tiles,
      of which there are at most twice as many. Only for masks that read tensors at
      the query, whatever the batch and the head, and at nothing else; others have
      aligned tiles;
    - `blocks`, GPUs only: `tiles` (the default), where each tile of queries is
      a block's; `persistent`, where there is a block for each multiprocessor,
      which computes one tile after another: copies run ahead into the next
      tile. With `longest_first` blocks take tiles from the longest to the
      shortest, there and back, so that all have as much to do; `dealt`, forward
      pass only: as `persistent`, but a block gets the next tile when it is free
      (`--tile-deal-items`), in the order of a list where that is `linear`; or
      `shared`, forward pass in
      `linear` order only: as `persistent`, but the keys of the last tiles are
      divided among the blocks, so that none waits while others compute the last
      round (`--tile-share-items`). A row's bits then depend on the place of its
      tile;
    - `products`, GPUs only: `overlapped` (the default), where a warp group's
      products run beside its own softmax, or `alternating`, where it waits for
      them before: the groups only overlap each other, and each thread needs
      fewer registers, so that there can be more groups;
    - `groups`, GPUs with WGMMA only, forward pass only: `free` (the default), or
      `in_turn`, where the warp groups of a block issue the products of a step
      one after another, always in the same order (`--tile-take-turns`), so that
      one computes its softmax while another has the tensor cores: "ping-pong
      scheduling" of FlashAttention-3 (Shah et al., 2024, 3.1). Where groups
      have steps of their own, as under a mask whose edge crosses a tile, they
      stay free;
    - `captures`, GPUs only: `gathered` (the default), where a thread reads the
      elements of captured tensors that its scores need one by one, or `tiled`,
      where tensors of numbers of 16 or 32 bits, booleans and integers of 8 bits
      whose last two dimensions query and key index, unchanged, such as a bias
      or a mask, are loaded as tiles like keys and values; and so are, of the
      scores, parts of rows whose last index is a position of query or key,
      their difference or their sum, up to a number that is the same for all
      scores of a tile. Other reads are gathered, and those of tiles where tables
      say which keys are the first, so that tiles may begin at any;
    - `split = n`, 1 (the default) to 128, forward pass only and not with
      blocks that are persistent or share tiles: the tiles of keys that the
      mask keeps of a tile of queries are divided into `n` parts, as even as
      possible, which are computed side by side. A part may be empty. Each
      writes its output, in the accumulation type, and its log-sum-exp, in f64,
      and `attn.merge` puts them together. So a few queries, as in decoding,
      keep all cores of a machine busy. Where the number of batches, `B`, is
      not static, the `n` parts are those of all of them: `n / B` of each, but
      at least one; and where the number of queries is not static either, so
      that there may be `t` tiles of them, `n / t` take the place of `n`. If
      the mask also reads captured tensors at the batch, as lengths, a batch
      has parts by its share of all tiles of keys, and those of batches with
      more tiles come first: loops in front make the list of them, of less than
      `2 * B + 17 * n` parts. Only where `B` is static do the bits of a batch
      not depend on the others. Dealt blocks have parts of those tiles of
      packed sequences that see more keys than an `n`-th of what all see, or,
      where there are fewer tiles than `n`, than keeps `n` items busy; tiles
      that no loop lists are not split;
    - `split = fixed(n)`, forward pass only, without persistent blocks and with the
      exact maximum: the tiles of keys are divided at all multiples of `n` keys, a
      multiple of those of a tile, whatever the machine and the other batches. Parts
      are merged in the order of their keys, so that a row's bits depend on nothing
      but the row. There are at most as many parts as a batch's keys may have;
    - `widen = n`, GPUs with bulk copies only, forward pass: keys and values whose
      graph widens them from 8 bits (`f8E4M3FN`) are copied as bytes, `stages`
      tiles of them, and `n` more warps of each block, 4 or 8, widen them into two
      tiles that products read. With `widen = products` the warps that compute
      widen them in registers, for products by `mma.sync`; a tile may then have
      less than 16 queries for each warp, which share its keys and the features of
      values, in multiples of 16. Without it (0, the default) a kernel in front
      writes what they are widened to;
    - `parts = 3`, GPUs with WGMMA only, forward pass of f32 operands: each operand
      is the sum of three parts in bf16, of whose products tensor cores compute the
      six that f32 can tell from zero (`tile-split-products`). With 0 (the default)
      operands of f32 are multiplied by FMA;
    - `cluster = n`, 1 (the default), 2 or 4, GPUs with clusters only, forward pass
      without a split and without a mask that reads tensors: `n` blocks, of tiles of
      queries side by side, read keys and values at the same time. Each copies a
      share of every tile of them to all (`tile-multicast`), so that the L2 cache
      delivers an `n`th of the bytes. Under a mask all visit the keys that it keeps
      of any of their queries;
    - `gradients`: backward pass only, see `#attn.gradients`. If a schedule that
      is written by hand leaves it out, `--attn-select-schedule` adds it.

    ```mlir
    #attn.schedule<tile = 48x64, order = longest_first>
    #attn.schedule<tile = 128x128, order = linear, warps = 8, stages = 2>
    #attn.schedule<tile = 128x128, order = linear, warps = 8, stages = 2,
                   maximum = stale, blocks = persistent>
    #attn.schedule<tile = 128x128, order = longest_first, warps = 8, stages = 2,
                   queries = sequences, blocks = dealt>
    #attn.schedule<tile = 128x128, order = longest_first, warps = 8, stages = 2,
                   maximum = stale, keys = descending>
    #attn.schedule<tile = 64x128, order = linear, warps = 4, stages = 4,
                   split = 16>
    #attn.schedule<tile = 64x128, order = linear, warps = 4, stages = 2,
                   split = fixed(2048)>
    #attn.schedule<tile = 256x64, order = linear, warps = 16, stages = 4,
                   maximum = stale, products = alternating, groups = in_turn>
    #attn.schedule<tile = 64x128, order = linear, warps = 4, stages = 3,
                   widen = 4>
    #attn.schedule<tile = 16x256, order = linear, warps = 4, stages = 2,
                   split = 16, widen = products>
    #attn.schedule<tile = 192x64, order = linear, warps = 12, stages = 2,
                   captures = tiled>
    #attn.schedule<tile = 128x64, order = linear, warps = 8, stages = 2,
                   parts = 3>
    #attn.schedule<tile = 128x64, order = linear, warps = 8, stages = 2,
                   maximum = stale, blocks = shared, cluster = 2>
    ```
  }];
  let parameters = (ins
    "int64_t":$queryTile,
    "int64_t":$keyTile,
    EnumParameter<Attn_OrderEnum>:$order,
    DefaultValuedParameter<"int64_t", "0">:$warps,
    DefaultValuedParameter<"int64_t", "0">:$stages,
    DefaultValuedMaximum:$maximum,
    DefaultValuedKeyOrder:$keys,
    DefaultValuedQueryTiles:$queries,
    DefaultValuedBlocks:$blocks,
    DefaultValuedProducts:$products,
    DefaultValuedWarpGroups:$groups,
    DefaultValuedCaptures:$captures,
    DefaultValuedParameter<"int64_t", "1">:$split,
    DefaultValuedParameter<"int64_t", "0">:$splitSize,
    DefaultValuedParameter<"int64_t", "0">:$widen,
    DefaultValuedParameter<"int64_t", "0">:$parts,
    DefaultValuedParameter<"int64_t", "1">:$cluster,
    OptionalParameter<"GradientsAttr">:$gradients
  );
  let builders = [AttrBuilder<(ins "int64_t":$queryTile, "int64_t":$keyTile,
      "::fovea::attn::WorkOrder":$order, CArg<"int64_t", "0">:$warps,
      CArg<"int64_t", "0">:$stages,
      CArg<"::fovea::attn::Maximum", "::fovea::attn::Maximum::Exact">:$maximum,
      CArg<"::fovea::attn::KeyOrder",
           "::fovea::attn::KeyOrder::Ascending">:$keys,
      CArg<"::fovea::attn::QueryTiles",
           "::fovea::attn::QueryTiles::Aligned">:$queries,
      CArg<"::fovea::attn::Blocks", "::fovea::attn::Blocks::Tiles">:$blocks,
      CArg<"::fovea::attn::Products",
           "::fovea::attn::Products::Overlapped">:$products,
      CArg<"::fovea::attn::WarpGroups",
           "::fovea::attn::WarpGroups::Free">:$groups,
      CArg<"::fovea::attn::Captures",
           "::fovea::attn::Captures::Gathered">:$captures,
      CArg<"int64_t", "1">:$split, CArg<"int64_t", "0">:$splitSize,
      CArg<"int64_t", "0">:$widen,
      CArg<"int64_t", "0">:$parts, CArg<"int64_t", "1">:$cluster,
      CArg<"::fovea::attn::GradientsAttr", "{}">:$gradients),
      [{
        return $_get($_ctxt, queryTile, keyTile, order, warps, stages, maximum,
                     keys, queries, blocks, products, groups, captures,
                     split, splitSize, widen, parts, cluster, gradients);
      }]>];
  let skipDefaultBuilders = 1;
  let assemblyFormat = [{
    `<` `tile` `=` custom<TileShape>($queryTile, $keyTile)
    `,` `order` `=` $order ``
    custom<Parts>($warps, $stages, $maximum, $keys, $queries, $blocks,
                  $products, $groups, $captures, $split, $splitSize, $widen,
                  $parts, $cluster, $gradients) `>`
  }];
  let extraClassDeclaration = [{
    struct Changes {
      std::optional<WorkOrder> order = {};
      std::optional<Maximum> maximum = {};
      std::optional<KeyOrder> keys = {};
      std::optional<QueryTiles> queries = {};
      std::optional<Blocks> blocks = {};
      std::optional<Products> products = {};
      std::optional<WarpGroups> groups = {};
      std::optional<Captures> captures = {};
      std::optional<int64_t> split = {};
      std::optional<int64_t> splitSize = {};
      std::optional<int64_t> widen = {};
      std::optional<int64_t> cluster = {};
      GradientsAttr gradients = {};
    };
    /// The `widen` of products that widen bytes themselves.
    static constexpr int64_t kInProducts = -1;
    bool widensInProducts() const { return getWiden() == kInProducts; }
    /// Returns the warps of a block that only widen.
    int64_t getWideners() const {
      return widensInProducts() ? 0 : getWiden();
    }
    /// Returns true if the keys of each tile of queries are in several parts,
    /// and not of some alone that a list gives dealt blocks.
    bool isSplit() const {
      return getSplitSize() || (getSplit() > 1 && getBlocks() != Blocks::Dealt);
    }
    /// Returns the parts that `keys` are divided into, at least one.
    int64_t countParts(int64_t keys) const;
    /// Returns the schedule with the parts of `changes` that are given.
    ScheduleAttr with(const Changes &changes) const;
  }];
  let genVerifyDecl = 1;
}

#endif // FOVEA_DIALECT_ATTN_IR_ATTNATTRS_TD
