//===- TileMemoryOps.td - Operations on memory -------------*- tablegen -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `TileOps.td`, which includes this, has the classes that these are made of.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DIALECT_TILE_IR_TILEMEMORYOPS_TD
#define FOVEA_DIALECT_TILE_IR_TILEMEMORYOPS_TD

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

defvar Tile_needsClippedMap = [{
    /// Returns true if TMA needs a map that is clipped, to write valid rows
    /// alone: those of each place by itself are copied as far as they are.
    bool needsClippedMap() { return getValid() && !getUsed(); }
  }];

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
  let extraClassDeclaration = Tile_needsClippedMap;
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
    A fragment of rank 1 is the tile's only row. With `transposed` element
    (r, c) of a matrix is element (c, r) of the tile (`ldmatrix` with `.trans`
    for 16 bits, PTX ISA 9.7.14.5.15). With `steps` [s, t] element
    (r, c) of a matrix is column `first + s * r + t * c` of that row, which has
    a number for each diagonal, or for each column; `first`, an index, may
    depend on the use of a slot.

    ```mlir
    %l = tile.from_shared %slot : !tile.shared<1x64xf32> -> !tile.fragment<64xf32>
    // A table of distances: row and column which are as far apart share a number.
    %d = tile.from_shared %slot[%c63] by [1, -1]
        : !tile.shared<1x192xf32> -> !tile.fragment<128x64xf32>
    // A bias of queries and keys beside scores of keys and queries.
    %t = tile.from_shared %tile transposed
        : !tile.shared<64x128xbf16> -> !tile.fragment<128x64xbf16>
    ```
  }];
  let arguments = (ins Tile_AnyShared:$source, Optional<Index>:$first,
                       OptionalAttr<DenseI64ArrayAttr>:$steps,
                       UnitAttr:$transposed);
  let results = (outs Tile_AnyFragment:$result);
  let builders = [
    OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$source,
                   CArg<"bool", "false">:$transposed), [{
      build($_builder, $_state, result, source, /*first=*/::mlir::Value(),
            /*steps=*/::mlir::DenseI64ArrayAttr(),
            transposed ? $_builder.getUnitAttr() : ::mlir::UnitAttr());
    }]>
  ];
  let assemblyFormat = [{
    $source (`transposed` $transposed^)? (`[` $first^ `]` `by` $steps)?
    attr-dict `:` qualified(type($source)) `->` qualified(type($result))
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
  let extraClassDeclaration = Tile_needsClippedMap;
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

#endif // FOVEA_DIALECT_TILE_IR_TILEMEMORYOPS_TD
