//===- TileFragmentOps.td - Operations on fragments --------*- tablegen -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `TileOps.td`, which includes this, has the classes that these are made of.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DIALECT_TILE_IR_TILEFRAGMENTOPS_TD
#define FOVEA_DIALECT_TILE_IR_TILEFRAGMENTOPS_TD

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

#endif // FOVEA_DIALECT_TILE_IR_TILEFRAGMENTOPS_TD
