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

include "fovea/Dialect/Tile/IR/TileMemoryOps.td"
include "fovea/Dialect/Tile/IR/TileFragmentOps.td"

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
