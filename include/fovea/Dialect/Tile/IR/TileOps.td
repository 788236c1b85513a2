//===- TileOps.td - Operations of the tile dialect ---------*- tablegen -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DIALECT_TILE_IR_TILEOPS_TD
#define FOVEA_DIALECT_TILE_IR_TILEOPS_TD

include "fovea/Dialect/Tile/IR/TileBase.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/CommonTypeConstraints.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Tile_Op<string mnemonic, list<Trait> traits = []>
    : Op<Tile_Dialect, mnemonic, traits>;

def Tile_AnyFragment : Type<CPred<"::llvm::isa<::fovea::tile::FragmentType>($_self)">,
    "fragment", "::fovea::tile::FragmentType">;
def Tile_AnyShared : Type<CPred<"::llvm::isa<::fovea::tile::SharedType>($_self)">,
    "tile in shared memory", "::fovea::tile::SharedType">;
def Tile_AnyRing : Type<CPred<"::llvm::isa<::fovea::tile::RingType>($_self)">,
    "ring", "::fovea::tile::RingType">;
def Tile_AnyToken : Type<CPred<"::llvm::isa<::fovea::tile::TokenType>($_self)">,
    "product in flight", "::fovea::tile::TokenType">;
def Tile_AnyTensorMap : Type<CPred<"::llvm::isa<::fovea::tile::TensorMapType>($_self)">,
    "tensor map", "::fovea::tile::TensorMapType">;
def Tile_Tile : AnyTypeOf<[Tile_AnyFragment, Tile_AnyShared]>;
def Tile_Global : AnyTypeOf<[AnyMemRef, Tile_AnyTensorMap]>;
// Of how many neighbouring rows of a tile, if any, the second dimension that rows
// run along has places.
def Tile_InnerRows : OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>;
def Tile_Scalar : AnyTypeOf<[AnyFloat, AnySignlessInteger, Index]>;

/// All threads of the role compute ops on fragments. Like ops on vectors, these
/// have no effects, except for the memory that a load or store accesses.
def Tile_SharedMemory : Resource<"::fovea::tile::SharedMemory">;

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

def LaunchOp : Tile_Op<"launch", [DestinationStyleOpInterface,
    AttrSizedOperandSegments, SingleBlock, RecursiveMemoryEffects,
    SingleBlockImplicitTerminator<"::fovea::tile::ReturnOp">]> {
  let summary = "Runs one program in every block of a grid";
  let description = [{
    The grid has up to three dimensions, `grid(x, y, z)`, `x` fastest. The
    region's arguments are the block's indices, then a memref for each operand
    of `ins` and `outs`, whose strides are dynamic except the last, which is 1.
    The operands are tensors, with a result for each of `outs`, or memrefs.
    Every element of a result is written by at most one block, or added to by
    any number of blocks (`tile.store add`); those that no block writes keep the
    value of `outs`.

    Scalars defined above are used implicitly; tensors and memrefs are not.

    `warps` is the number of warps that compute on fragments. `stages` is the
    number of slots that `--tile-multibuffer` gives to a load in a loop (2 if
    absent). `kernel` names the kernel that the launch becomes.

    With `persistent`, the programs of the grid may run in any order, one after
    another in fewer blocks (`--tile-persist`): `linear`; `snaked`, where
    programs along `x` take ever less time, so that all blocks have about as
    much to do; `dealt`, where programs along `x` take ever less time as well, but
    no one knows how much, so that a block gets the next program when it is free
    (`tile.dealt`); or `shared`, where programs take the same time, and blocks may
    run parts of the last ones (`--tile-share-items`, `tile.combine_parts`).

    With `cluster n`, the grid counts clusters of `n` blocks, which run at the
    same time (PTX ISA 2.2.1). All blocks of a cluster have its indices, and each
    has a number in it (`tile.cluster_rank`). Rings with the same attribute are
    filled by all of them together (`tile.ring`).

    With `alternating`, a warp waits for its products before it does other work
    (`--tile-schedule`); only products of other warps run beside it.

    With `in_turn`, the warp groups of a role issue the products of a step one
    after another (`--tile-take-turns`).

    With `parts n`, products of f32 are to be those of operands in `n` parts in
    bf16 (`--tile-split-products`).

    ```mlir
    %o = tile.launch grid(%rows, %heads, %batch) warps 8
        ins(%q, %k, %v : tensor<...>, ...) outs(%init : tensor<...>) {
    ^bb0(%r: index, %h: index, %b: index, %Q: memref<...>, ...):
      ...
    } -> tensor<...>
    ```
  }];
  let arguments = (ins Variadic<Index>:$grid,
                       Variadic<AnyTypeOf<[AnyRankedTensor, AnyMemRef]>>:$inputs,
                       Variadic<AnyTypeOf<[AnyRankedTensor, AnyMemRef]>>:$outputs,
                       ConfinedAttr<I64Attr, [IntPositive]>:$warps,
                       OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$stages,
                       OptionalAttr<StrAttr>:$kernel,
                       OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$cluster,
                       OptionalAttr<Tile_ItemOrderEnum>:$persistent,
                       UnitAttr:$alternating, UnitAttr:$in_turn,
                       OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$parts);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let builders = [
    OpBuilder<(ins "::mlir::TypeRange":$results, "::mlir::ValueRange":$grid,
        "::mlir::ValueRange":$inputs, "::mlir::ValueRange":$outputs,
        "::mlir::IntegerAttr":$warps, "::mlir::IntegerAttr":$stages,
        "::mlir::StringAttr":$kernel), [{
      build($_builder, $_state, results, grid, inputs, outputs, warps, stages,
            kernel, /*cluster=*/::mlir::IntegerAttr(),
            /*persistent=*/ItemOrderAttr(),
            /*alternating=*/::mlir::UnitAttr(), /*in_turn=*/::mlir::UnitAttr(),
            /*parts=*/::mlir::IntegerAttr());
    }]>];
  let assemblyFormat = [{
    (`kernel` $kernel^)? `grid` `(` $grid `)` (`cluster` $cluster^)?
    (`persistent` $persistent^)?
    `warps` $warps (`alternating` $alternating^)? (`in_turn` $in_turn^)?
    (`stages` $stages^)? (`parts` $parts^)?
    (`ins` `(` $inputs^ `:` qualified(type($inputs)) `)`)?
    `outs` `(` $outputs `:` qualified(type($outputs)) `)`
    attr-dict-with-keyword $body (`->` qualified(type($results))^)?
  }];
  let hasCanonicalizeMethod = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() {
      return getOutputsMutable();
    }
    ::mlir::Block::BlockArgListType getBlockIds() {
      return getBody().getArguments().take_front(getGrid().size());
    }
    /// Returns the number of blocks that one place of the grid stands for.
    int64_t getBlocksOfCluster() {
      return static_cast<int64_t>(getCluster().value_or(1));
    }
    /// Returns the memref in the region for an operand of `ins` or `outs`.
    ::mlir::BlockArgument getTiedArgument(::mlir::OpOperand &operand);
    /// Returns the operand for a memref argument of the region.
    ::mlir::OpOperand &getTiedOperand(::mlir::BlockArgument argument);
    /// Returns the type that a tensor or memref has in the region.
    static ::mlir::MemRefType getArgumentType(::mlir::ShapedType type);
    /// Creates the region's block, with an argument for each operand, and sets
    /// `builder` to insert in it.
    void createProgram(::mlir::OpBuilder &builder);
  }];
}

def ReturnOp : Tile_Op<"return", [Pure, Terminator,
    ParentOneOf<["LaunchOp", "RoleOp"]>]> {
  let summary = "Ends a program or a role";
  let assemblyFormat = "attr-dict";
}

class Tile_DealtOp<string mnemonic, dag more> : Tile_Op<mnemonic, [Pure]> {
  let arguments = !con((ins AnyMemRef:$counter), more);
  let results = (outs Index:$result);
}

def DealtCountOp : Tile_DealtOp<"dealt_count", (ins Index:$items)> {
  let summary = "The number of programs that a block is dealt";
  let description = [{
    Each of the programs 0 to below `items` of a launch is dealt to one block.
    `counter` is a memref of one number, 0 at the launch, which only these ops use,
    with as many items in all of them. It may have none where there are at most two
    items for each block. See `tile.dealt`.
  }];
  let assemblyFormat =
      "$counter `of` $items attr-dict `:` qualified(type($counter))";
}

def DealtOp : Tile_DealtOp<"dealt", (ins Index:$round, Index:$items)> {
  let summary = "One of the programs that a block is dealt";
  let description = [{
    Returns the number of the program that is the block's `round`th, counted from 0.
    Numbers increase with the round. Which a block gets is not known before it runs
    (`--tile-deal-items`); the same in all warps.

    ```mlir
    %rounds = tile.dealt_count %counter of %items : memref<1xi32, ...>
    scf.for %round = %c0 to %rounds step %c1 {
      %item = tile.dealt %counter[%round] of %items : memref<1xi32, ...>
    ```
  }];
  let assemblyFormat = [{
    $counter `[` $round `]` `of` $items attr-dict `:` qualified(type($counter))
  }];
}

def OfItemOp : Tile_Op<"of_item", [SingleBlock, RecursiveMemoryEffects,
    RecursivelySpeculatable]> {
  let summary = "Numbers that follow from that of a program";
  let description = [{
    The region computes numbers from that of a program that a block is dealt, and
    from what is the same for all programs of the launch: where its rows lie, say,
    from tables. So one thread can compute them for all others
    (`--tile-deal-items`), before they need them.

    ```mlir
    %item = tile.dealt %counter[%round] of %items : memref<1xi32, ...>
    %row, %end = tile.of_item %item {
    ^bb0(%number: index):
      %tile = arith.divui %number, %heads : index
      %row = memref.load %firsts[%tile] : memref<?xi32, ...>
      %end = memref.load %ends[%tile] : memref<?xi32, ...>
      tile.yield %row, %end : i32, i32
    } : i32, i32
    ```
  }];
  let arguments = (ins Index:$item);
  let results = (outs Variadic<AnyTypeOf<[Index, AnySignlessInteger]>>:$numbers);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $item attr-dict-with-keyword $body (`:` type($numbers)^)?
  }];
  let hasVerifier = 1;
}

def ClaimOp : Tile_Op<"claim", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Takes the next number";
  let description = [{
    Adds one to the only element of a memref and returns what it was, as one atomic
    operation among all blocks (`atom.relaxed.gpu.global.add`, PTX ISA 9.7.13.5).
    Each thread that runs the op takes a number.
  }];
  let arguments = (ins AnyMemRef:$counter);
  let results = (outs Index:$result);
  let assemblyFormat = "$counter attr-dict `:` qualified(type($counter))";
  let hasVerifier = 1;
}

def RolesOp : Tile_Op<"roles", [NoRegionArguments, SingleBlock,
    NoTerminator, RecursiveMemoryEffects]> {
  let summary = "Roles that run at the same time, each on its own warps";
  let description = [{
    The op contains only `tile.role` ops. Their warps follow one another in the
    block, in the order of the roles. The op ends when all roles have ended.
  }];
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

def RoleOp : Tile_Op<"role", [HasParent<"RolesOp">, NoRegionArguments,
    SingleBlock, RecursiveMemoryEffects,
    SingleBlockImplicitTerminator<"::fovea::tile::ReturnOp">]> {
  let summary = "What some warps of the block do";
  let description = [{
    The role's warps wait for each other by a named barrier of their own. (PTX
    ISA 9.7.13.1: a block has 16 barriers, of which 0 belongs to the whole
    block.)

    `registers`, where given, is the budget of one thread: the role's warp
    groups raise or lower their limit to it (`setmaxnreg`). Roles that share a
    warp group of 4 warps have one budget, and the last of them ends the group.
    `single`: one thread of the role runs it, the other threads wait.

    ```mlir
    tile.role "load" warps 4 registers 24 single { ... }
    ```
  }];
  let arguments = (ins StrAttr:$name, ConfinedAttr<I64Attr, [IntPositive]>:$warps,
                       OptionalAttr<I64Attr>:$registers, UnitAttr:$single);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $name `warps` $warps (`registers` $registers^)? (`single` $single^)?
    attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
}

def ClusterRankOp : Tile_Op<"cluster_rank", [Pure]> {
  let summary = "The number of the block in its cluster";
  let description = [{
    Counts from 0, in a launch with `cluster` (PTX ISA 10.17, `%cluster_ctarank`).

    ```mlir
    %rank = tile.cluster_rank
    ```

    In a launch with `cluster n` a place `(x * n + rank) / n` is canonicalized to
    `x`, which does not depend on the block.
  }];
  let results = (outs Index:$result);
  let assemblyFormat = "attr-dict";
  let hasCanonicalizer = 1;
  let hasVerifier = 1;
}

def GroupOp : Tile_Op<"group", [Pure]> {
  let summary = "The number of the warp group, of 4 warps, that runs this";
  let description = [{
    Counts from the first warp group of the role. What depends on the number,
    such as bounds of loops and branches, may differ between the role's groups,
    which then run apart: each owns an equal share of the rows of the role's
    fragments, in order, and computes those only. Such a role has nothing that
    needs the rows of other groups (`tile.to_shared`, or a `tile.from_shared` of
    a row), and every group goes through all uses of the role's rings.

    ```mlir
    %g = tile.group
    ```
  }];
  let results = (outs Index:$result);
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

def OfRowsOp : Tile_Op<"of_rows", [SingleBlock, RecursiveMemoryEffects,
    RecursivelySpeculatable,
    AllTypesMatch<["whole", "result"]>]> {
  let summary = "A number for a tile's rows, which less may do for some of them";
  let description = [{
    The result is `whole`, which holds for all rows of a tile. The region
    computes it for a part of the rows, from its first argument to its second,
    both included: the end of a loop whose iterations from there on leave these
    rows as they are, or the begin of one whose iterations up to there do, a
    multiple of the step behind the whole; or whether a branch must be taken for
    them. So a role
    whose warp groups own rows of the tile may let each of them go as far as its
    own rows need (`--tile-skip-rows`).

    ```mlir
    %end = tile.of_rows %n rows 128 {
    ^bb0(%first: index, %last: index):
      %row = arith.addi %row0, %last : index
      %end = arith.addi %row, %c1 : index   // a causal mask
      tile.yield %end : index
    } : index
    ```
  }];
  let arguments = (ins AnyTypeOf<[Index, I1]>:$whole,
                       ConfinedAttr<I64Attr, [IntPositive]>:$rows);
  let results = (outs AnyTypeOf<[Index, I1]>:$result);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $whole `rows` $rows attr-dict-with-keyword $body `:` type($whole)
  }];
  let hasFolder = 1;
  let hasVerifier = 1;
}

def CombinePartsOp : Tile_Op<"combine_parts", [RecursiveMemoryEffects,
    RecursivelySpeculatable, SingleBlock,
    AllTypesMatch<["values", "results"]>]> {
  let summary = "What a program's loop gives, of which blocks may give parts";
  let description = [{
    The operands are results of one loop of the program, whose iterations may
    be divided into two parts, each of which starts from the loop's initial
    values. The region says how the values of both parts become those of the
    whole: its arguments are those of the earlier iterations, then those of the
    later ones. In a program that runs all iterations the results are the
    operands.

    `--tile-share-items` lets two blocks each run a part; `--tile-persist`
    removes the op where they do not.

    ```mlir
    %sum = tile.combine_parts %loop : !tile.fragment<128xf32> {
    ^bb0(%a: !tile.fragment<128xf32>, %b: !tile.fragment<128xf32>):
      %both = tile.map ins(%a, %b : ...) {
        ...
      } -> !tile.fragment<128xf32>
      tile.yield %both : !tile.fragment<128xf32>
    }
    ```
  }];
  let arguments = (ins Variadic<Tile_AnyFragment>:$values);
  let results = (outs Variadic<Tile_AnyFragment>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $values `:` qualified(type($values)) attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
}

def YieldOp : Tile_Op<"yield", [Pure, Terminator,
    ParentOneOf<["MapOp", "LoadOp", "LoadAsyncOp", "OfRowsOp", "OfItemOp",
                 "CombinePartsOp"]>]> {
  let summary = "The element that a map computes, or numbers for rows or items";
  let description = [{
    In `tile.map`, the element. In a load whose rows are given by a region, the
    indices of a row's elements, one for each dimension of the source but the
    last. In `tile.of_rows`, the number for a part of the rows. In
    `tile.of_item`, the numbers of a program. In `tile.combine_parts`, the fragments
    of the whole.
  }];
  let arguments = (ins Variadic<AnyTypeOf<[Tile_Scalar, Tile_AnyFragment]>>:$values);
  let assemblyFormat = "$values attr-dict `:` qualified(type($values))";
  let extraClassDeclaration = [{
    /// Returns the only value, an element of a map.
    ::mlir::Value getValue() { return getValues().front(); }
  }];
}

//===----------------------------------------------------------------------===//
// Global memory
//===----------------------------------------------------------------------===//

def LoadOp : Tile_Op<"load", [AttrSizedOperandSegments, SingleBlock,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Reads a tile of global memory";
  let description = [{
    The tile starts at `indices`, one for each dimension of the memref; its
    dimension `n` runs along dimension `dims[n]` of the memref. Elements beyond
    the memref's sizes are zero; indices are not negative. The result is in
    shared memory or in registers; in shared memory it holds until the next
    execution of the same op. Warp groups that run apart (`tile.group`) may have
    indices of their own for a tile in registers, which may be negative if the
    rows that the group owns have no negative place. The last index of a tile of
    one row that becomes a copy by TMA (`--tile-multibuffer`) may be negative as
    well: elements in front of the memref are zero.

    With `aligned`, for a result in registers, each row of the tile begins at a
    multiple of 16 bytes, so that threads read vectors without asking.

    With `inner n`, allowed for shared memory only, `dims` has one dimension more,
    and the tile's rows run along its first two: row `r` is at `r / n` along
    `dims[0]` and at `r mod n` along `dims[1]`, whose `n` places exist. So
    rows of several heads are those of one tile. `n` is a power of two up to 64,
    which warp groups have rows of, and divides the number of rows. With `used m`,
    less than `n`, only the first `m` of the `n` places exist, and what rows at the others
    hold is not defined.

    ```mlir
    // 32 queries of 4 heads each, from head %h on.
    %q = tile.load %Q[%b, %h, %i, %c0] dims [2, 1, 3] inner 4
        : memref<?x?x?x64xbf16, ...> -> !tile.shared<128x64xbf16>
    ```

    With `rows(%first, %end)`, allowed for shared memory only, rows of the tile
    before `%first` and from `%end` on are also zero, whatever memory holds: a
    product that multiplies them by zero needs numbers there. The two bounds
    count from the tile's first row, and may lie outside of the tile.

    ```mlir
    %k = tile.load %K[%b, %h, %j, %c0] dims [2, 3]
        : memref<?x?x?x64xbf16, ...> -> !tile.shared<64x64xbf16>
    %v = tile.load %V[%b, %h, %j, %c0] dims [2, 3] rows(%c0, %left)
        : memref<?x?x?x64xbf16, ...> -> !tile.shared<64x64xbf16>
    ```

    With `runs n`, the rows of a tile in shared memory lie where a region says,
    and there are no indices. The region gets the number of a row and yields
    its place: the index in each dimension of the memref but the last, along
    which the columns run from 0 on. It is evaluated for every `n`th row, from 0
    on; the `n - 1` rows after it follow it along dimension `dims[0]`. With
    `runs 1` it is evaluated for each row. The region may read memory. It is not
    evaluated for a run all of whose rows `rows` leaves out, so that places of
    such rows need not exist. With `whole_runs` a run of which a row is left may be
    loaded as a whole: what rows that `rows` leaves out of it hold is then not
    defined.

    ```mlir
    // Keys in pages of 16 rows, whose numbers a table has.
    %k = tile.load %cache dims [1, 3] rows(%c0, %left) runs 16 {
    ^bb0(%r: index):
      %j = arith.addi %first, %r : index
      %n = arith.divui %j, %c16 : index
      %s = arith.remui %j, %c16 : index
      %p = memref.load %table[%b, %n] : memref<?x?xi32>
      %page = arith.index_cast %p : i32 to index
      tile.yield %page, %s, %h : index, index, index
    } : memref<?x16x8x64xbf16, ...> -> !tile.shared<64x64xbf16>
    ```
  }];
  let arguments = (ins AnyMemRef:$source, Variadic<Index>:$indices,
                       Variadic<Index>:$rows, DenseI64ArrayAttr:$dims,
                       UnitAttr:$aligned, UnitAttr:$whole_runs,
                       OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$runs,
                       Tile_InnerRows:$inner, Tile_InnerRows:$used);
  let results = (outs Tile_Tile:$result);
  let regions = (region AnyRegion:$place);
  let builders = [
    OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$source,
                   "::mlir::ValueRange":$indices,
                   "::llvm::ArrayRef<int64_t>":$dims,
                   CArg<"::mlir::ValueRange", "{}">:$rows), [{
      build($_builder, $_state, result, source, indices, rows, dims,
            /*aligned=*/false, /*whole_runs=*/false,
            /*runs=*/::mlir::IntegerAttr(), /*inner=*/::mlir::IntegerAttr(),
            /*used=*/::mlir::IntegerAttr());
    }]>
  ];
  let assemblyFormat = [{
    $source (`[` $indices^ `]`)? `dims` $dims (`inner` $inner^)? (`used` $used^)?
    (`aligned` $aligned^)? (`rows` `(` $rows^ `)`)? (`whole_runs` $whole_runs^)?
    (`runs` $runs^ $place)? attr-dict
    `:` qualified(type($source)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def PrefetchOp : Tile_Op<"prefetch", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Brings the start of a row of memory near";
  let description = [{
    Each thread asks for a line of 128 bytes of the elements along the last
    dimension of `source`, from 0 on, at `indices`, one for each other dimension,
    to be in the L2 cache (`prefetch.global.L2`, PTX ISA 9.7.9.16). Elements beyond
    the memref's sizes are not asked for, so that the row need not exist, nor is what
    lies behind the line of the last thread. The op is a hint: it changes nothing that
    other ops read.

    ```mlir
    // The pages of a sequence, which loads read when they know its length.
    tile.prefetch %table[%b] : memref<?x?xi32, ...>
    ```
  }];
  let arguments = (ins AnyMemRef:$source, Variadic<Index>:$indices);
  let assemblyFormat = [{
    $source `[` $indices `]` attr-dict `:` qualified(type($source))
  }];
  let hasVerifier = 1;
}

def StoreOp : Tile_Op<"store", [AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Writes a tile to global memory";
  let description = [{
    Stores like `tile.load` loads; elements beyond the memref's sizes are not
    written. With `aligned` each row of the tile begins at a multiple of 16
    bytes. As in loads to registers, warp groups that run apart may have indices
    of their own. Where `valid` is given, only the first `valid` elements of the
    tile's dimension 0 are written, a multiple of `inner` where that is given.
    Rows at places that are not `used` are not written.
    With `add`, floats are added to the elements in memory, each as one atomic
    operation, in any order, also by several blocks (`red.global.add`, PTX ISA
    9.7.13.6); the launch must not read or write such an element in any other way.
  }];
  let arguments = (ins Tile_AnyFragment:$value, AnyMemRef:$target,
                       Variadic<Index>:$indices, Optional<Index>:$valid,
                       DenseI64ArrayAttr:$dims, UnitAttr:$add,
                       UnitAttr:$aligned, Tile_InnerRows:$inner,
                       Tile_InnerRows:$used);
  let builders = [
    OpBuilder<(ins "::mlir::Value":$value, "::mlir::Value":$target,
                   "::mlir::ValueRange":$indices, "::mlir::Value":$valid,
                   "::llvm::ArrayRef<int64_t>":$dims, CArg<"bool", "false">:$add,
                   CArg<"bool", "false">:$aligned), [{
      build($_builder, $_state, value, target, indices, valid, dims, add,
            aligned, /*inner=*/::mlir::IntegerAttr(),
            /*used=*/::mlir::IntegerAttr());
    }]>
  ];
  let assemblyFormat = [{
    (`add` $add^)? $value `,` $target `[` $indices `]` `dims` $dims
    (`inner` $inner^)? (`used` $used^)? (`aligned` $aligned^)?
    (`valid` `(` $valid^ `)`)?
    attr-dict `:` qualified(type($value)) `,` qualified(type($target))
  }];
  let hasCanonicalizeMethod = 1;
  let extraClassDeclaration = [{
    /// Returns true if TMA needs a map that is clipped, to write valid rows
    /// alone: those of each place by itself are copied as far as they are.
    bool needsClippedMap() { return getValid() && !getUsed(); }
  }];
  let hasVerifier = 1;
}

def ToSharedOp : Tile_Op<"to_shared", [AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Writes a fragment to shared memory";
  let description = [{
    With `transposed`, row `i` of the tile is column `i` of the fragment
    (`stmatrix.trans`, PTX ISA 9.7.14.5.16; `movmatrix`, 9.7.14.5.17).

    The tile holds until the next execution of the same op. With `reuses`, its
    memory is that of the ring's slots, whose uses are all over: the ring must
    not be acquired again. All warps that run the op wait for each other, by
    their role's named barrier (`bar.sync`, PTX ISA 9.7.13.1), so that all of
    them, and products and `tile.store_async`, see the tile. In a loop the warps
    also wait for each other before they write, as some may still read the tile
    of the last execution.

    With `slot %use of n`, `n` at least 2, the op has memory for `n` tiles.
    `%use` counts its executions from 0; use `u` takes slot `u mod n`. Warps
    then wait for each other only once. All reads of a tile must be complete, on
    all warps, before the next execution of this op ends: products that read it
    are waited for before.

    ```mlir
    %tile = tile.to_shared %x reuses %ring
        : !tile.fragment<128x64xbf16>, !tile.ring<1 x !tile.shared<128x64xbf16>>
          -> !tile.shared<128x64xbf16>
    ```
  }];
  let arguments = (ins Tile_AnyFragment:$value, Optional<Tile_AnyRing>:$ring,
                       Optional<Index>:$use, UnitAttr:$transposed,
                       OptionalAttr<I64Attr>:$slots);
  let results = (outs Tile_AnyShared:$result);
  let builders = [
    OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$value,
                   CArg<"::mlir::Value", "{}">:$ring,
                   CArg<"bool", "false">:$transposed), [{
      build($_builder, $_state, result, value, ring, /*use=*/::mlir::Value(),
            transposed ? $_builder.getUnitAttr() : ::mlir::UnitAttr(),
            /*slots=*/::mlir::IntegerAttr());
    }]>
  ];
  let assemblyFormat = [{
    $value (`transposed` $transposed^)? (`reuses` $ring^)?
    (`slot` $use^ `of` $slots)? attr-dict `:` qualified(type($value))
    (`,` qualified(type($ring))^)? `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def FromSharedOp : Tile_Op<"from_shared", [
    MemoryEffects<[MemRead<Tile_SharedMemory>]>]> {
  let summary = "Reads a tile of shared memory into registers";
  let description = [{
    A fragment of rank 1 is the tile's only row. With `steps` [s, t] element
    (r, c) of a matrix is column `first + s * r + t * c` of that row, which has
    a number for each diagonal, or for each column; `first`, an index, may
    depend on the use of a slot.

    ```mlir
    %l = tile.from_shared %slot : !tile.shared<1x64xf32> -> !tile.fragment<64xf32>
    // A table of distances: row and column which are as far apart share a number.
    %d = tile.from_shared %slot[%c63] by [1, -1]
        : !tile.shared<1x192xf32> -> !tile.fragment<128x64xf32>
    ```
  }];
  let arguments = (ins Tile_AnyShared:$source, Optional<Index>:$first,
                       OptionalAttr<DenseI64ArrayAttr>:$steps);
  let results = (outs Tile_AnyFragment:$result);
  let builders = [
    OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$source), [{
      build($_builder, $_state, result, source, /*first=*/::mlir::Value(),
            /*steps=*/::mlir::DenseI64ArrayAttr());
    }]>
  ];
  let assemblyFormat = [{
    $source (`[` $first^ `]` `by` $steps)? attr-dict `:`
    qualified(type($source)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def ShiftRowsOp : Tile_Op<"shift_rows", [Pure,
    AllTypesMatch<["tile", "result"]>]> {
  let summary = "A tile in shared memory, as seen from other rows";
  let description = [{
    Row `r` of the result is row `r + by` of the tile, whose memory it is. The
    distance may differ between warp groups that run apart (`tile.group`): each
    reads and writes the rows that it owns of the result, all of which are rows
    of the tile, which is not in runs. The distance is a multiple of 64, so that
    instructions find rows in the order that they expect. A product, or
    `tile.write`, may thus read or write a tile of 64 rows that are a group's own.

    ```mlir
    // Of a tile of 128 rows, each of two groups takes the rows of the other.
    %g = tile.group
    %n = arith.muli %g, %c-128 : index
    %by = arith.addi %n, %c64 : index
    %other = tile.shift_rows %q by %by : !tile.shared<128x64xbf16>
    // Each group has its own tile of 64 rows.
    %back = arith.muli %g, %c-64 : index
    %own = tile.shift_rows %p by %back : !tile.shared<64x64xbf16>
    ```
  }];
  let arguments = (ins Tile_AnyShared:$tile, Index:$by);
  let results = (outs Tile_AnyShared:$result);
  let assemblyFormat = "$tile `by` $by attr-dict `:` qualified(type($tile))";
  let hasVerifier = 1;
}

def StoreAsyncOp : Tile_Op<"store_async", [AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Starts to copy a tile of shared memory to global memory";
  let description = [{
    Stores by TMA (`cp.async.bulk.tensor`, PTX ISA 9.7.9.27). The tile starts at
    `indices`, as in `tile.load`, also with `inner`, at a multiple of 16 bytes of
    the last dimension; elements beyond the memref's sizes are not written, and
    where `valid` is given, only the tile's first `valid` rows are, a multiple of
    `inner`, on a memref of at most four dimensions, which has these rows. With
    `used` rows of each place along `dims[0]` are a copy of their own, and the
    memref may have five dimensions. With `add`, elements of f16, bf16 or f32 are added to those in memory, each as one
    atomic operation, in any order (`cp.reduce.async.bulk.tensor`). On a tensor
    map the indices refer to the map's tensor. Only `tile.wait_stores` tells when
    the tile has been read.

    ```mlir
    tile.store_async %tile, %O[%b, %h, %i, %c0] dims [2, 3]
        : !tile.shared<128x64xbf16, swizzle = 128>, memref<?x?x?x64xbf16, ...>
    ```
  }];
  let arguments = (ins Tile_AnyShared:$source, Tile_Global:$target,
                       Variadic<Index>:$indices, Optional<Index>:$valid,
                       DenseI64ArrayAttr:$dims, UnitAttr:$add,
                       Tile_InnerRows:$inner, Tile_InnerRows:$used);
  let assemblyFormat = [{
    (`add` $add^)? $source `,` $target `[` $indices `]` `dims` $dims
    (`inner` $inner^)? (`used` $used^)? (`valid` `(` $valid^ `)`)? attr-dict
    `:` qualified(type($source)) `,` qualified(type($target))
  }];
  let extraClassDeclaration = [{
    /// Returns true if TMA needs a map that is clipped, to write valid rows
    /// alone: those of each place by itself are copied as far as they are.
    bool needsClippedMap() { return getValid() && !getUsed(); }
  }];
  let hasVerifier = 1;
}

def WaitStoresOp : Tile_Op<"wait_stores", [
    MemoryEffects<[MemRead<Tile_SharedMemory>, MemWrite<Tile_SharedMemory>]>]> {
  let summary = "Waits until stores have read their tiles";
  let description = [{
    Waits until at most the last `pending` of the `tile.store_async` that this
    role has run still read shared memory (`cp.async.bulk.wait_group.read`, PTX
    ISA 9.7.9.25). The data that they write is in memory when the kernel is
    complete.
  }];
  let arguments = (ins
      DefaultValuedAttr<ConfinedAttr<I64Attr, [IntNonNegative]>, "0">:$pending);
  let assemblyFormat = "(`pending` $pending^)? attr-dict";
}

class Tile_TurnOp<string mnemonic> : Tile_Op<mnemonic, [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let arguments = (ins AnyMemRef:$turns, Variadic<Index>:$indices,
      Index:$position,
      DefaultValuedAttr<ConfinedAttr<I64Attr, [IntPositive]>, "1">:$lanes);
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Returns the one of `lanes` that the op refers to; null where there is
    /// only one.
    ::mlir::Value getLane() {
      return getLanes() == 1 ? ::mlir::Value()
                             : ::mlir::Value(getIndices().drop_back().back());
    }
  }];
}

def TakeTurnOp : Tile_TurnOp<"take_turn"> {
  let summary = "Waits until the block before this one is past a position";
  let description = [{
    Blocks whose `indices` differ only in the last one add to the same memory in
    turn, lower indices first, so that sums are the same, bit by bit, in every
    run. A block announces its position by `tile.pass_turn`: all adds at lower
    positions, by it and by the blocks before it, are complete. This op waits
    until the block with the previous index, if there is one, has passed
    `position`. `turns`, of i32, has a number for each block, which is 0 before
    the launch.

    A block waits only for blocks of lower index, which must not be launched
    later.

    With `lanes`, a block has that many numbers, and the index before the last
    selects the lane of the op. Each memory location that is added to belongs to
    one lane. So turns of one lane can be taken while another role's adds in
    another lane are still in flight (`--tile-specialize-warps`).

    ```mlir
    tile.take_turn %turns[%b, %h, %n] at %i : memref<?x?x?xi32, ...>
    tile.store add %x, %O[%b, %h, %i, %c0] dims [2, 3] : ...
    tile.pass_turn %turns[%b, %h, %n] to %next : memref<?x?x?xi32, ...>
    ```
  }];
  let assemblyFormat = [{
    $turns `[` $indices `]` `at` $position (`lanes` $lanes^)? attr-dict
    `:` qualified(type($turns))
  }];
}

def PassTurnOp : Tile_TurnOp<"pass_turn"> {
  let summary = "Says to which position this block has come";
  let description = [{
    Waits until all adds of this program are complete; then announces that the
    block has come to `position`, which must not be lower than before. All adds
    of blocks of lower index at lower positions, of the same lane, must also be
    complete: so a block that skips a position must still take its turn there.
    See `tile.take_turn`.
  }];
  let assemblyFormat = [{
    $turns `[` $indices `]` `to` $position (`lanes` $lanes^)? attr-dict
    `:` qualified(type($turns))
  }];
}

class Tile_GroupTurnOp<string mnemonic> : Tile_Op<mnemonic, [
    MemoryEffects<[MemRead<Tile_SharedMemory>, MemWrite<Tile_SharedMemory>]>]> {
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

def TakeGroupTurnOp : Tile_GroupTurnOp<"take_group_turn"> {
  let summary = "Each warp group waits until the one before has passed its turn";
  let description = [{
    A role of several warp groups, of 4 warps each, has one turn, which goes
    round: group `g` of `n` has it when group `g - 1`, for the first group the
    last one, has passed it by `tile.pass_group_turn`. Every group takes and
    passes it equally often, but for the last group, which passes it once more:
    in front, so that the first group has it. So what stands between the two ops
    is done by one group after another (`bar.sync` and `bar.arrive` of named
    barriers, PTX ISA 9.7.13.1; "ping-pong scheduling" of FlashAttention-3, Shah
    et al., 2024, section 3.1). A role that has the ops runs its groups apart, as
    with `tile.group`.

    ```mlir
    tile.take_group_turn
    %s = tile.mma_async wgmma %q, %k transpose_b : ...
    tile.pass_group_turn
    ```
  }];
}

def PassGroupTurnOp : Tile_GroupTurnOp<"pass_group_turn"> {
  let summary = "Each warp group lets the next one have its turn";
  let description = [{
    The next group must have taken the turn that it was passed before. See
    `tile.take_group_turn`.
  }];
}

class Tile_SignalOp<string mnemonic> : Tile_Op<mnemonic, [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let arguments = (ins AnyMemRef:$flags, Variadic<Index>:$indices);
  let assemblyFormat = [{
    $flags `[` $indices `]` attr-dict `:` qualified(type($flags))
  }];
  let hasVerifier = 1;
}

def SignalOp : Tile_SignalOp<"signal"> {
  let summary = "Each warp says that what it has written is complete";
  let description = [{
    `flags`, of i32, has a number for each warp that computes, in its last
    dimension, at `indices`, one for each of the others. The numbers are 0
    before the launch; each warp sets its own to 1. What the warp's threads have
    written to memory before can then be read by a warp that has seen the number
    (`st.release.gpu`, PTX ISA 9.7.9.12). See `tile.await`.
  }];
}

def AwaitOp : Tile_SignalOp<"await"> {
  let summary = "Each warp waits for the warp of its number in another block";
  let description = [{
    Each warp waits until its number at `indices` has been set by `tile.signal`
    (`ld.acquire.gpu`, PTX ISA 9.7.9.8). It may then read what the warp of the
    same number has written, which are the elements that it has itself of
    fragments with the same layout; elements that other warps have written may
    not be there yet.

    A block waits only for blocks of lower number, which must not be launched
    later. So none waits forever, however few blocks run at a time.

    ```mlir
    tile.store %sum, %Parts[%b, %c0] dims [1] : ...
    tile.signal %flags[%b] : memref<132x8xi32, ...>

    tile.await %flags[%before] : memref<132x8xi32, ...>
    %other = tile.load %Parts[%before, %c0] dims [1] : ...
    ```
  }];
}

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

def FillOp : Tile_Op<"fill", [Pure,
    TypesMatchWith<"the value is an element of the result", "result", "value",
        "::llvm::cast<::fovea::tile::FragmentType>($_self).getElementType()">]> {
  let summary = "A fragment whose elements are all the same";
  let arguments = (ins Tile_Scalar:$value);
  let results = (outs Tile_AnyFragment:$result);
  let assemblyFormat = "$value attr-dict `:` qualified(type($result))";
}

def MapOp : Tile_Op<"map", [AttrSizedOperandSegments, SingleBlock,
    RecursiveMemoryEffects, RecursivelySpeculatable]> {
  let summary = "Computes every element of a fragment by a scalar region";
  let description = [{
    The region's arguments are one element of each operand, then the element's
    coordinates in the tile, one index for each dimension. Operands of `ins`
    have the result's shape. For a result of rank 2, operands of `rows` have one
    element for each of its rows, those of `columns` one for each column.

    Besides computing, the region may read memory, write it (`memref.store`) and
    add to it atomically (`memref.atomic_rmw` `addf` or `addi`, its result
    unused), at addresses that it computes. The region runs once for each
    element, in any order.

    With `exact` the functions of the region are as exact as elsewhere in a graph,
    besides those whose fastmath flag `afn` allows the machine's approximation,
    with the same special cases; without it quotients and functions of f32 may be
    approximations that are enough for scores.

    ```mlir
    %p = tile.map ins(%s : !tile.fragment<128x64xf32>)
                  rows(%m : !tile.fragment<128xf32>) {
    ^bb0(%x: f32, %y: f32, %i: index, %j: index):
      %d = arith.subf %x, %y : f32
      %e = math.exp2 %d : f32
      tile.yield %e : f32
    } -> !tile.fragment<128x64xf32>
    ```
  }];
  let arguments = (ins Variadic<Tile_AnyFragment>:$inputs,
                       Variadic<Tile_AnyFragment>:$rows,
                       Variadic<Tile_AnyFragment>:$columns, UnitAttr:$exact);
  let results = (outs Tile_AnyFragment:$result);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    (`exact` $exact^)? (`ins` `(` $inputs^ `:` qualified(type($inputs)) `)`)?
    (`rows` `(` $rows^ `:` qualified(type($rows)) `)`)?
    (`columns` `(` $columns^ `:` qualified(type($columns)) `)`)?
    attr-dict-with-keyword $body `->` qualified(type($result))
  }];
  let hasCanonicalizer = 1;
  let hasVerifier = 1;
}

def ReduceOp : Tile_Op<"reduce", [Pure, AllTypesMatch<["init", "result"]>]> {
  let summary = "Combines the elements of a fragment along one dimension";
  let description = [{
    `result[i] = init[i] op x[i, 0] op x[i, 1] ...` for `dim 1`. The order is
    fixed by the layout: the registers of a thread in ascending order, then
    threads by a butterfly, so the combined elements lie in one warp. `max` of
    NaN and a number is the number.

    A result of rank 2 is narrower than the operand along the dimension, whose
    elements it combines in part: those whose places differ by a multiple of the
    result's size. With the 8 columns of an accumulator (`#tile.layout`) threads
    exchange nothing. With `neighbors` it combines those that are beside one
    another instead: places that are the same divided by the factor of the sizes,
    of the threads of a warp that have some of them, too.

    ```mlir
    %m1 = tile.reduce max %s, %m0 dim 1
        : !tile.fragment<128x64xf32> -> !tile.fragment<128xf32>
    %l1 = tile.reduce add %p, %l0 dim 1
        : !tile.fragment<128x64xf32> -> !tile.fragment<128x8xf32>
    %n1 = tile.reduce add %l1, %n0 dim 1 neighbors
        : !tile.fragment<128x8xf32> -> !tile.fragment<128x4xf32>
    ```
  }];
  let arguments = (ins Tile_ReductionEnum:$kind, Tile_AnyFragment:$input,
                       Tile_AnyFragment:$init, I64Attr:$dim,
                       UnitAttr:$neighbors);
  let results = (outs Tile_AnyFragment:$result);
  let extraClassDeclaration = [{
    /// Returns, for each register of the operand, the register of the result, of
    /// rank 2, with which it is combined; nullopt if threads that do not have
    /// neighbours would have to exchange elements.
    std::optional<::llvm::SmallVector<int64_t>> getCombinedRegisters();
  }];
  let assemblyFormat = [{
    $kind $input `,` $init `dim` $dim (`neighbors` $neighbors^)? attr-dict
    `:` qualified(type($input)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def SumDiagonalsOp : Tile_Op<"sum_diagonals", [Pure,
    AllTypesMatch<["input", "result"]>]> {
  let summary = "Sums of elements whose row and column differ by the same";
  let description = [{
    Elements `x[i, j]` with the same `i - j` lie on a diagonal. Of the elements
    of a diagonal that lie in one warp, the result has the sum in one of them,
    and zeros in the others. So code that adds the elements of a diagonal to the
    same place adds fewer. The layout decides which elements have sums, and the
    order of each sum. Without a layout each element is its own sum.

    ```mlir
    %d = tile.sum_diagonals %g : !tile.fragment<128x64xf32>
    ```
  }];
  let arguments = (ins Tile_AnyFragment:$input);
  let results = (outs Tile_AnyFragment:$result);
  let assemblyFormat = "$input attr-dict `:` qualified(type($input))";
  let hasVerifier = 1;
}

def AnyOp : Tile_Op<"any", [Pure]> {
  let summary = "Whether an element of a fragment is true";
  let description = [{
    Chooses between two ways to compute the same result: each warp tests the
    elements that its threads hold, so that results may differ between warps. A
    branch on the result must not contain work that needs all warps, such as
    products.

    ```mlir
    %large = tile.any %tests : !tile.fragment<128xi1>
    ```
  }];
  let arguments = (ins Tile_AnyFragment:$input);
  let results = (outs I1:$result);
  let assemblyFormat = "$input attr-dict `:` qualified(type($input))";
  let hasFolder = 1;
  let hasVerifier = 1;
}

def ExtremesOp : Tile_Op<"extremes", [Pure]> {
  let summary = "The least and the greatest number of a fragment";
  let description = [{
    Bounds what all elements of a fragment are compared with: each warp compares
    the elements that its threads hold, as signed numbers, so that results may
    differ between warps. What is said of `tile.any` goes for branches on them.

    ```mlir
    %least, %greatest = tile.extremes %ends : !tile.fragment<128xi32>
    ```
  }];
  let arguments = (ins Tile_AnyFragment:$input);
  let results = (outs I32:$least, I32:$greatest);
  let assemblyFormat = "$input attr-dict `:` qualified(type($input))";
  let hasFolder = 1;
  let hasVerifier = 1;
}

def FirstOnlyOp : Tile_Op<"first_only", [Pure]> {
  let summary = "A condition that holds in a loop's first iteration only";
  let description = [{
    Returns `condition`, which is false in all iterations but the first one of the
    innermost loop around: where keys are visited from the last to the first, only
    the first tile may have less than all of a step's. A loop that is skewed has its
    first iteration in front, so that the others do without the condition
    (`--tile-expand-pipeline`).

    ```mlir
    %short = tile.first_only %less
    ```
  }];
  let arguments = (ins I1:$condition);
  let results = (outs I1:$result);
  let assemblyFormat = "$condition attr-dict";
  let hasFolder = 1;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

class Tile_ProductOp<string mnemonic, Type accType>
    : Tile_Op<mnemonic, [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let arguments = (ins Tile_Tile:$a, Tile_AnyShared:$b,
                       Optional<accType>:$acc, UnitAttr:$transpose_b,
                       OptionalAttr<Tile_MmaKindEnum>:$kind,
                       OptionalAttr<DenseI64ArrayAttr>:$inner,
                       OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$rows,
                       OptionalAttr<TypeAttr>:$from);
  let builders = [
    OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$a,
                   "::mlir::Value":$b, "::mlir::Value":$acc,
                   "::mlir::UnitAttr":$transposeB,
                   CArg<"::fovea::tile::MmaKindAttr", "{}">:$kind), [{
      build($_builder, $_state, result, a, b, acc, transposeB, kind,
            ::mlir::DenseI64ArrayAttr(), /*rows=*/::mlir::IntegerAttr(),
            /*from=*/::mlir::TypeAttr());
    }]>,
    OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$a,
                   "::mlir::Value":$b, "::mlir::Value":$acc, "bool":$transposeB,
                   "::fovea::tile::MmaKindAttr":$kind), [{
      build($_builder, $_state, result, a, b, acc,
            transposeB ? $_builder.getUnitAttr() : ::mlir::UnitAttr(), kind);
    }]>
  ];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Returns the inner indices that are multiplied: from the first to before
    /// the second.
    std::pair<int64_t, int64_t> getInnerRange() {
      if (auto inner = getInner())
        return {(*inner)[0], (*inner)[1]};
      ::llvm::ArrayRef<int64_t> shape = getB().getType().getShape();
      return {0, shape[getTransposeB() ? 1 : 0]};
    }
  }];
}

def MmaOp : Tile_ProductOp<"mma", Tile_AnyFragment> {
  let summary = "A matrix product";
  let description = [{
    `a: MxK` times `b: KxN` (`transpose_b`: `NxK`), added to `acc: MxN` or to
    zero. `a` is a fragment or in shared memory. Operands are f16, bf16, f32 or
    f64, both of the same type; the result is f64 for f64, else f32. `kind`, set
    by `--tile-assign-layouts`, is the instruction: `wgmma` (PTX ISA 9.7.15),
    `mma_sync` (9.7.14.5), or `fma`. K may be padded: where `a` and `b` in
    shared memory are wider than what was loaded, they hold zeros there. With
    `inner [i, j]` only inner indices from `i` to before `j`, multiples of 16,
    are multiplied: another product multiplies the rest.

    With `rows n`, and without `acc`, nothing needs the result's rows from `n` on,
    which may be zero: what is computed from registers of such rows folds away.

    With `from` the elements of `b` are `i8`, the bits of numbers of that type,
    `f8E4M3FN`, which the product widens, exactly, to the type of `a`, f16 or bf16,
    in registers: by `mma_sync` only.
  }];
  let results = (outs Tile_AnyFragment:$result);
  let assemblyFormat = [{
    ($kind^)? $a `,` $b (`from` $from^)? (`into` $acc^)? (`transpose_b` $transpose_b^)?
    (`inner` $inner^)? (`rows` $rows^)? attr-dict `:` qualified(type($a)) `,` qualified(type($b)) (`,` qualified(type($acc))^)? `->` qualified(type($result))
  }];
}

def MmaAsyncOp : Tile_ProductOp<"mma_async",
    AnyTypeOf<[Tile_AnyFragment, Tile_AnyToken]>> {
  let summary = "Issues a matrix product";
  let description = [{
    Like `tile.mma`, but the result comes from `tile.wait_mma`. Products
    complete in the order of their issue. Until then `acc` must not be read
    elsewhere (only the token can name it), and the operands' shared memory must
    not be overwritten. `acc` may be the token of a product in flight, to which
    this one adds; then only this one is waited for.
  }];
  let results = (outs Tile_AnyToken:$token);
  let assemblyFormat = [{
    ($kind^)? $a `,` $b (`into` $acc^)? (`transpose_b` $transpose_b^)?
    (`inner` $inner^)? (`rows` $rows^)? attr-dict `:` qualified(type($a)) `,` qualified(type($b)) (`,` qualified(type($acc))^)? `->` qualified(type($token))
  }];
}

def WaitMmaOp : Tile_Op<"wait_mma", [
    TypesMatchWith<"the result is the token's fragment", "token", "result",
                   "::llvm::cast<::fovea::tile::TokenType>($_self).getFragment()">,
    MemoryEffects<[MemRead<Tile_SharedMemory>, MemWrite<Tile_SharedMemory>]>]> {
  let summary = "Waits for a product";
  let description = [{
    Waits until at most `pending` of the products issued later, in this role,
    are in flight (`wgmma.wait_group`, PTX ISA 9.7.15.7.3), so that this product
    and all before it are complete, and returns its fragment.
  }];
  let arguments = (ins Tile_AnyToken:$token,
                       DefaultValuedAttr<I64Attr, "0">:$pending);
  let results = (outs Tile_AnyFragment:$result);
  let assemblyFormat = [{
    $token (`pending` $pending^)? attr-dict `:` qualified(type($token))
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Host side
//===----------------------------------------------------------------------===//

def TensorMapOp : Tile_Op<"tensor_map", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Makes a TMA descriptor of a tensor in global memory";
  let description = [{
    Runs on the host. Dimension `n` of the tile runs along dimension `dims[n]`
    of the memref, the last along its last, whose stride is 1; with `inner` rows run
    along two dimensions, as in `tile.load`. The base address and all other strides
    must be multiples of 16 bytes (CUDA driver API, `cuTensorMapEncodeTiled`).

    A `clipped` map has one more dimension, behind `dims[0]`, of as many elements as
    the tile has rows, `R`, or, with `inner`, places for these along `dims[0]`. It
    also runs along the memref's rows: element `[n, r]` is row `n + r - R`. So a
    tile at `[n, R - m]` has the `m` rows in front of row `n`, and its others are
    out of bounds, which TMA does not write. (The ragged descriptors of Triton,
    `triton/tools/ragged_tma.py`, do the same.)
  }];
  let arguments = (ins AnyMemRef:$source, UnitAttr:$clipped,
                       DenseI64ArrayAttr:$dims, Tile_InnerRows:$inner,
                       Tile_InnerRows:$used);
  let results = (outs Tile_AnyTensorMap:$result);
  let assemblyFormat = [{
    (`clipped` $clipped^)? $source `dims` $dims (`inner` $inner^)?
    (`used` $used^)? attr-dict
    `:` qualified(type($source)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

include "fovea/Dialect/Tile/IR/TileRingOps.td"

#endif // FOVEA_DIALECT_TILE_IR_TILEOPS_TD
