//===- TileRingOps.td - Operations on rings of slots -------*- tablegen -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `TileOps.td`, which includes this, has the classes that these are made of.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DIALECT_TILE_IR_TILERINGOPS_TD
#define FOVEA_DIALECT_TILE_IR_TILERINGOPS_TD

//===----------------------------------------------------------------------===//
// Rings
//===----------------------------------------------------------------------===//

def RingOp : Tile_Op<"ring", [
    MemoryEffects<[MemAlloc<Tile_SharedMemory>]>]> {
  let summary = "A ring of tiles in shared memory, with its barriers";
  let description = [{
    A ring stands in a launch before its roles. All slots are free at first.
    Each slot has a barrier that signals when it is full and one that signals
    when it is empty (mbarrier objects, PTX ISA 9.7.13.15).

    With `shares`, slot `n` lies in slot `n` of another ring: what is written
    there takes the place of a tile that was read. Uses of both rings go
    together: use `n` of this ring begins when the role that fills it no longer
    reads that of the other, which no other role reads, and whose slot is free
    again when both uses are released.

    With `groups n`, each of the `n` warp groups of a role, which run apart
    (`tile.group`), has slots of its own: use `u` is that of group `u mod n`,
    which alone waits for it and releases it, or fills it. So no group waits
    until another one has read a slot, or filled it. Other roles go through all
    uses, those of each group in order. The number of slots is a multiple of `n`.

    With `cluster n`, the `n` blocks of a cluster fill each use together, with the
    same tile in all of them: block `r` copies panels `r`, `r + n`, ... of the
    tile to its own slot and to that of each other block. So a copy waits until the
    slot is free in all of them, and each use of such a ring is a use in all of
    them. Only `tile.load_async` without rows and runs fills it.

    ```mlir
    %q = tile.ring : !tile.ring<2 x !tile.shared<128x64xbf16, swizzle = 128>>
    %o = tile.ring shares %q
        : !tile.ring<2 x !tile.shared<128x64xbf16, swizzle = 128>>,
          !tile.ring<2 x !tile.shared<128x64xbf16, swizzle = 128>>
    %p = tile.ring groups 2
        : !tile.ring<2 x !tile.shared<64x64xbf16, swizzle = 128>>
    %k = tile.ring cluster 2
        : !tile.ring<2 x !tile.shared<64x256xbf16, swizzle = 128>>
    ```
  }];
  let arguments = (ins Optional<Tile_AnyRing>:$base,
                       OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$groups,
                       OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$cluster);
  let results = (outs Tile_AnyRing:$ring);
  let builders = [
    OpBuilder<(ins "::fovea::tile::RingType":$ring,
                   CArg<"::mlir::Value", "{}">:$base), [{
      build($_builder, $_state, ring, base, /*groups=*/::mlir::IntegerAttr(),
            /*cluster=*/::mlir::IntegerAttr());
    }]>
  ];
  let assemblyFormat = [{
    (`shares` $base^)? (`groups` $groups^)? (`cluster` $cluster^)? attr-dict `:`
    qualified(type($ring))
    (`,` qualified(type($base))^)?
  }];
  let extraClassDeclaration = [{
    /// Returns the number of warp groups that have slots of their own, or 1.
    int64_t getNumGroups() {
      return static_cast<int64_t>(getGroups().value_or(1));
    }
    /// Returns the number of blocks that fill slots together, or 1.
    int64_t getBlocksOfCluster() {
      return static_cast<int64_t>(getCluster().value_or(1));
    }
  }];
  let hasVerifier = 1;
}

class Tile_SlotOp<string mnemonic, list<Trait> traits = []>
    : Tile_Op<mnemonic, !listconcat(traits, [
        MemoryEffects<[MemRead<Tile_SharedMemory>,
                       MemWrite<Tile_SharedMemory>]>])>;

def AcquireOp : Tile_SlotOp<"acquire", [
    TypesMatchWith<"the result is the ring's tile", "ring", "result",
                   "::llvm::cast<::fovea::tile::RingType>($_self).getTile()">]> {
  let summary = "Waits until a slot is free";
  let description = [{
    `%use` counts the ring's uses from 0; the slot is `%use mod stages`. The
    slot is free at first, and again when all warps that wait on the ring have
    released its previous use. A copy (`tile.load_async`) or a fragment
    (`tile.write`) then fills it.
  }];
  let arguments = (ins Tile_AnyRing:$ring, Index:$use);
  let results = (outs Tile_AnyShared:$result);
  let assemblyFormat = "$ring `[` $use `]` attr-dict `:` qualified(type($ring))";
}

def LoadAsyncOp : Tile_Op<"load_async", [
    AttrSizedOperandSegments, SingleBlock,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    TypesMatchWith<"the slot is of the ring's type", "ring", "slot",
                   "::llvm::cast<::fovea::tile::RingType>($_self).getTile()">]> {
  let summary = "Starts to copy a tile of global memory into an acquired slot";
  let description = [{
    Loads like `tile.load`. The slot of `%use` becomes full when the copy is
    complete. On a tensor map the indices refer to the map's tensor. The tile
    begins at a multiple of 16 bytes of the last dimension.

    TMA does not support `rows`. Where `rows` leaves out some rows of a tile,
    the thread that started the copy waits for it, and then starts copies of
    zeros (`cp.async.bulk`, PTX ISA 9.7.9.25), which make the slot full. All
    other tiles are copied as without `rows`; a tile of which no row is left is
    copied from outside of the tensor.

    With `runs n`, each run is a copy of its own, of `n` rows, which one of the
    threads that run the op starts. A tensor map is then of tiles of `n` rows.
    Where `rows` cuts a run, and without `whole_runs`, the first of these threads
    waits, all of them write the zeros, and then it makes the slot full. Where
    no tensor map can describe runs, all threads that run the op copy units of
    16 bytes. A slot in runs (`!tile.shared`) has those of its copy: then one
    instruction copies all panels of a run.
  }];
  let arguments = (ins Tile_Global:$source, Variadic<Index>:$indices,
                       Tile_AnyShared:$slot, Tile_AnyRing:$ring, Index:$use,
                       Variadic<Index>:$rows, DenseI64ArrayAttr:$dims,
                       UnitAttr:$whole_runs,
                       OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$runs,
                       Tile_InnerRows:$inner, Tile_InnerRows:$used);
  let regions = (region AnyRegion:$place);
  let builders = [
    OpBuilder<(ins "::mlir::Value":$source, "::mlir::ValueRange":$indices,
                   "::mlir::Value":$slot, "::mlir::Value":$ring,
                   "::mlir::Value":$use, "::llvm::ArrayRef<int64_t>":$dims,
                   CArg<"::mlir::ValueRange", "{}">:$rows), [{
      build($_builder, $_state, source, indices, slot, ring, use, rows, dims,
            /*whole_runs=*/false, /*runs=*/::mlir::IntegerAttr(),
            /*inner=*/::mlir::IntegerAttr(), /*used=*/::mlir::IntegerAttr());
    }]>
  ];
  let assemblyFormat = [{
    $source (`[` $indices^ `]`)? `dims` $dims (`inner` $inner^)? (`used` $used^)?
    (`rows` `(` $rows^ `)`)? (`whole_runs` $whole_runs^)? (`runs` $runs^ $place)?
    `into` $slot
    `signals` $ring `[` $use `]` attr-dict `:` qualified(type($source)) `,`
    qualified(type($ring))
  }];
  let extraClassDeclaration = [{
    /// Returns the type of the tile that one copy by a tensor map fills: the
    /// slot's, or a run of its rows; null if a swizzle allows no such copy.
    SharedType getCopiedTile();
  }];
  let hasVerifier = 1;
}

def WriteOp : Tile_SlotOp<"write", [
    TypesMatchWith<"the slot is of the ring's type", "ring", "slot",
                   "::llvm::cast<::fovea::tile::RingType>($_self).getTile()">]> {
  let summary = "Writes a fragment to an acquired slot";
  let description = [{
    The slot of `%use` becomes full when all warps of the role have written.
    Another role may wait for the slot and store it. With `column c` the slot
    takes some columns of the fragment, those from `c` on, a multiple of the
    slot's columns; warps then own whole rows.

    ```mlir
    %slot = tile.acquire %ring[%use] : !tile.ring<1 x !tile.shared<64x64xf32>>
    tile.write %x column 64 into %slot signals %ring[%use]
        : !tile.fragment<64x128xf32>, !tile.ring<1 x !tile.shared<64x64xf32>>
    ```
  }];
  let arguments = (ins Tile_AnyFragment:$value, Tile_AnyShared:$slot,
                       Tile_AnyRing:$ring, Index:$use,
                       OptionalAttr<I64Attr>:$column);
  let builders = [
    OpBuilder<(ins "::mlir::Value":$value, "::mlir::Value":$slot,
                   "::mlir::Value":$ring, "::mlir::Value":$use), [{
      build($_builder, $_state, value, slot, ring, use,
            /*column=*/::mlir::IntegerAttr());
    }]>
  ];
  let assemblyFormat = [{
    $value (`column` $column^)? `into` $slot `signals` $ring `[` $use `]`
    attr-dict `:` qualified(type($value)) `,` qualified(type($ring))
  }];
  let hasVerifier = 1;
}

def PublishOp : Tile_SlotOp<"publish", [
    TypesMatchWith<"the slot is of the ring's type", "ring", "slot",
                   "::llvm::cast<::fovea::tile::RingType>($_self).getTile()">]> {
  let summary = "Writes numbers to an acquired slot";
  let description = [{
    One thread writes the numbers to the slot of `%use`, one behind the other, each
    at a multiple of its own size; the slot becomes full. The slot is of a row of
    i32 that has room for them.

    ```mlir
    tile.publish %number, %row into %slot signals %ring[%use]
        : !tile.ring<2 x !tile.shared<1x4xi32>>, i32, i64
    ```
  }];
  let arguments = (ins Variadic<AnyTypeOf<[I32, I64]>>:$numbers,
                       Tile_AnyShared:$slot, Tile_AnyRing:$ring, Index:$use);
  let assemblyFormat = [{
    $numbers `into` $slot `signals` $ring `[` $use `]` attr-dict `:`
    qualified(type($ring)) `,` type($numbers)
  }];
  let hasVerifier = 1;
}

def ReadNumbersOp : Tile_Op<"read_numbers", [
    MemoryEffects<[MemRead<Tile_SharedMemory>]>]> {
  let summary = "Reads the numbers that were published in a slot";
  let arguments = (ins Tile_AnyShared:$source);
  let results = (outs Variadic<AnyTypeOf<[I32, I64]>>:$numbers);
  let assemblyFormat = [{
    $source attr-dict `:` qualified(type($source)) `->` type($numbers)
  }];
  let hasVerifier = 1;
}

def WaitOp : Tile_SlotOp<"wait", [
    TypesMatchWith<"the result is the ring's tile", "ring", "result",
                   "::llvm::cast<::fovea::tile::RingType>($_self).getTile()">]> {
  let summary = "Waits until a slot is full";
  let arguments = (ins Tile_AnyRing:$ring, Index:$use);
  let results = (outs Tile_AnyShared:$result);
  let assemblyFormat = "$ring `[` $use `]` attr-dict `:` qualified(type($ring))";
}

def ReleaseOp : Tile_SlotOp<"release"> {
  let summary = "Says that this warp has read a slot";
  let arguments = (ins Tile_AnyRing:$ring, Index:$use);
  let assemblyFormat = "$ring `[` $use `]` attr-dict `:` qualified(type($ring))";
}

//===----------------------------------------------------------------------===//
// Tiles that are widened
//===----------------------------------------------------------------------===//

class Tile_WidenOp<string mnemonic, dag more, list<Trait> traits = []>
    : Tile_Op<mnemonic, !listconcat(traits, [
        MemoryEffects<[MemRead<Tile_SharedMemory>,
                       MemWrite<Tile_SharedMemory>]>])> {
  let arguments = !con((ins Tile_AnyShared:$source, TypeAttr:$from,
                            ConfinedAttr<I64Attr, [IntPositive]>:$warps),
                       more);
  let hasVerifier = 1;
}

def WidenOp : Tile_WidenOp<"widen", (ins)> {
  let summary = "Widens the floats of 8 bits of a tile in shared memory";
  let description = [{
    The source's elements are `i8`, the bits of numbers of the type `from`,
    `f8E4M3FN`. The result has the same numbers, which f16 and bf16 both hold:
    nothing is rounded, and NaN stays NaN. It holds until the next execution of
    the same op. Warps that run the op wait for each other, as in
    `tile.to_shared`.

    `warps`, a multiple of 4, is the number of warps that do this where roles are
    made (`--tile-specialize-warps`): they read bytes as these come, and write
    what the warps that compute wait for.

    ```mlir
    %k = tile.widen %bytes from f8E4M3FN warps 4
        : !tile.shared<128x64xi8, swizzle = 64>
          -> !tile.shared<128x64xbf16, swizzle = 128>
    ```
  }];
  let results = (outs Tile_AnyShared:$result);
  let assemblyFormat = [{
    $source `from` $from `warps` $warps attr-dict `:` qualified(type($source))
    `->` qualified(type($result))
  }];
}

def WidenIntoOp : Tile_WidenOp<"widen_into",
    (ins Tile_AnyShared:$slot, Tile_AnyRing:$ring, Index:$use), [
    TypesMatchWith<"the slot is of the ring's type", "ring", "slot",
                   "::llvm::cast<::fovea::tile::RingType>($_self).getTile()">]> {
  let summary = "Widens a tile into an acquired slot";
  let description = [{
    Widens like `tile.widen`. The slot of `%use` becomes full when all warps of
    the role have written.

    ```mlir
    %bytes = tile.wait %narrow[%use]
        : !tile.ring<3 x !tile.shared<128x64xi8, swizzle = 64>>
    %slot = tile.acquire %wide[%use]
        : !tile.ring<2 x !tile.shared<128x64xbf16, swizzle = 128>>
    tile.widen_into %bytes from f8E4M3FN warps 4 into %slot signals %wide[%use]
        : !tile.shared<128x64xi8, swizzle = 64>,
          !tile.ring<2 x !tile.shared<128x64xbf16, swizzle = 128>>
    tile.release %narrow[%use]
        : !tile.ring<3 x !tile.shared<128x64xi8, swizzle = 64>>
    ```
  }];
  let assemblyFormat = [{
    $source `from` $from `warps` $warps `into` $slot `signals` $ring
    `[` $use `]` attr-dict `:` qualified(type($source)) `,`
    qualified(type($ring))
  }];
}

#endif // FOVEA_DIALECT_TILE_IR_TILERINGOPS_TD
