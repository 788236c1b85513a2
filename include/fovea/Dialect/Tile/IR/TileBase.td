//===- TileBase.td - The tile dialect, its attributes and types -*- tablegen -*-//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DIALECT_TILE_IR_TILEBASE_TD
#define FOVEA_DIALECT_TILE_IR_TILEBASE_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def Tile_Dialect : Dialect {
  let name = "tile";
  let cppNamespace = "::fovea::tile";
  let summary = "One GPU thread block's program on tiles";
  let description = [{
    A `tile.launch` runs one program per thread block. The program computes on
    *fragments*, tiles in the registers of its threads, and on tiles in *shared*
    memory, and reads and writes global memory through memrefs.

    The program is first written in a plain form: loads, products, elementwise
    work and stores one after another, with synchronous meaning. Passes then
    assign register layouts (`--tile-assign-layouts`), put tiles that pass from
    copies to products into rings (`--tile-multibuffer`), store results by TMA
    (`--tile-stage-stores`), split the program into roles of warps
    (`--tile-specialize-warps`), let warp groups end their loops early
    (`--tile-skip-rows`), and make products asynchronous
    (`--tile-schedule`, `--tile-expand-pipeline`). The program can be printed,
    run in the tile interpreter and lowered after each step: leaving out a pass
    costs speed but does not change the meaning.

    An asynchronous result cannot be read before its wait, because the wait
    returns it.

    Constraints that hold for every program:

    1. Control flow around ops on fragments, rings and shared tiles is uniform:
       all threads of a role, or of a warp group where it depends on
       `tile.group`, take the same path.
    2. A fragment is reduced along a dimension that lies within warps
       (`#tile.layout`), so that reductions need no shared memory.
    3. In one role every `tile.wait` on a slot is followed by one
       `tile.release`, and slots of a ring are used in order: 0, 1, 2, ...
    4. A slot's tile is read only between its wait and its release, and written
       only between its acquire and the next wait.
    5. An asynchronous product's operands in shared memory are not released, and
       its accumulator is not read, before a wait that covers it.
    6. The memory that `tile.store_async` reads is not overwritten before a
       `tile.wait_stores` that covers it, and one follows every store.

    Passes hand results to later passes in these attributes of ops:

    - `tile.stage` and `tile.order`, i64s on an op of a loop's body, are the
      number of iterations by which the op runs late, 0 or 1, and its position
      in a step of the loop (`--tile-schedule`, `--tile-expand-pipeline`).
    - `tile.shared_offset`, an i64 on a `tile.load` into shared memory, a
      `tile.to_shared` with memory of its own or a `tile.ring`, is the place of
      its tile or first slot, in bytes from the start of the block's dynamic
      shared memory, a multiple of 1024 (`--convert-tile-launch-to-gpu`).
    - `tile.barrier_offset`, an i64 on a `tile.ring` with a place, is that of
      its mbarriers of 8 bytes each: one for each slot that signals that the
      slot is full, then one for each slot that signals that it is empty.
  }];
  let dependentDialects = ["::fovea::machine::MachineDialect"];
  let hasOperationAttrVerify = 1;
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
    void registerTypes();
  }];
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

class Tile_Attr<string className, string attrMnemonic>
    : AttrDef<Tile_Dialect, className> {
  let mnemonic = attrMnemonic;
}

def Tile_LayoutAttr : Tile_Attr<"Layout", "layout"> {
  let summary = "Which thread holds which element in which register";
  let description = [{
    A bijection from (register, thread) to the elements of a tile, up to
    replication. Both numbers are written in mixed radix, least significant
    digit first. A digit `4:2d1` has four values and moves the element by 2
    along dimension 1 for each; a digit `4:r` replicates: its value does not
    matter. The element's coordinates are the sum of the contributions of all
    digits: a base that depends on the thread plus a constant for the register.

    Thread numbers count the threads that run the program: lane, then warp.
    Registers hold one element each; the lowering decides how to pack narrow
    elements.

    The accumulator of WGMMA m64nNk16 (PTX ISA 9.7.15, figure of the D fragment)
    with N = 128 over two warp groups, and the same for mma.sync m16n8 by warps:

    ```mlir
    #tile.layout<128x128, registers = [2:1d1, 2:8d0, 16:8d1],
                 threads = [4:2d1, 8:1d0, 8:16d0]>
    ```
  }];
  let parameters = (ins
    ArrayRefParameter<"int64_t">:$shape,
    ArrayRefParameter<"::fovea::tile::Digit">:$registers,
    ArrayRefParameter<"::fovea::tile::Digit">:$threads
  );
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getNumRegisters() const;
    int64_t getNumThreads() const;
    /// Returns the contribution of register `index` to the coordinates of its
    /// element.
    ::llvm::SmallVector<int64_t> getRegisterOffset(int64_t index) const;
    /// Returns the contribution of thread `index` to the coordinates of its
    /// elements.
    ::llvm::SmallVector<int64_t> getThreadOffset(int64_t index) const;
    /// Returns the layout of a reduction along `dim`: register digits along it
    /// are gone, thread digits along it replicate.
    LayoutAttr dropDim(int64_t dim) const;
    /// Returns, for each register, the register that holds its element's
    /// reduction along `dim`, in the layout `dropDim(dim)`.
    ::llvm::SmallVector<int64_t> getReducedRegisters(int64_t dim) const;
    /// Returns, for each register, the register of `to` in which every thread
    /// holds the element at the same place modulo the shape of `to`; nullopt if
    /// threads would have to exchange elements.
    std::optional<::llvm::SmallVector<int64_t>>
    getWrappedRegisters(LayoutAttr to) const;
    /// Returns the same for the place divided by the factor between the shapes.
    std::optional<::llvm::SmallVector<int64_t>>
    getJoinedRegisters(LayoutAttr to) const;
    /// Returns, for each register of this layout, the register of `from` in
    /// which every thread holds the same element; nullopt if there is no such
    /// permutation.
    std::optional<::llvm::SmallVector<int64_t>>
    getPermutationFrom(LayoutAttr from) const;
    /// Returns the accumulator of `warps` warps that own 16 rows each, with
    /// columns in groups of 8: that of WGMMA by warp groups and of mma.sync
    /// m16n8 by warps. For elements of 16 bits it is also the A operand of
    /// both. Rows beyond 16 * warps take further registers.
    static LayoutAttr getRowOwned(::mlir::MLIRContext *context, int64_t rows,
                                  int64_t columns, int64_t warps);
    /// Returns the same for a result of few rows: warp `r + rowWarps * c` has
    /// 16 rows from `16 * r`, and `columns / columnWarps` consecutive columns.
    static LayoutAttr getAccumulator(::mlir::MLIRContext *context, int64_t rows,
                                     int64_t columns, int64_t rowWarps,
                                     int64_t columnWarps);
    /// Returns the layout of a number for each of the four threads that hold a
    /// row of the accumulator of `warps` warps.
    static LayoutAttr getRowThreads(::mlir::MLIRContext *context, int64_t rows,
                                    int64_t warps);
    /// Returns the accumulator's layout with four neighbours of a row in each
    /// thread instead of two: that of what products by `mma.sync` add to whose right
    /// operand they widen from bytes, or, where each of the `columnWarps` has all
    /// columns (`isWhole`), of their left operand.
    static LayoutAttr getQuads(::mlir::MLIRContext *context, int64_t rows,
                               int64_t columns, int64_t rowWarps,
                               int64_t columnWarps, bool isWhole);
    /// Returns the layout of a number for each row and each of the `columnWarps`
    /// that share it, all of a row in every thread that has a part of it, or, if
    /// not `isWhole`, that of its own warp.
    static LayoutAttr getWarpColumns(::mlir::MLIRContext *context, int64_t rows,
                                     int64_t rowWarps, int64_t columnWarps,
                                     bool isWhole);
    /// Returns the `columnWarps` for which this is the accumulator, up to a
    /// permutation of registers, which is also returned; nullopt if there is
    /// none.
    std::optional<int64_t>
    getColumnWarps(::llvm::SmallVectorImpl<int64_t> &permutation) const;
    /// Returns true if this is the accumulator of warps that own whole rows.
    bool hasWholeRows() const;
    /// Returns the layout of a tile of any shape whose elements are dealt
    /// row-major to `threads` threads, `vector` neighbours at a time.
    static LayoutAttr getBlocked(::mlir::MLIRContext *context,
                                 ::llvm::ArrayRef<int64_t> shape,
                                 int64_t threads, int64_t vector);
  }];
}

def Tile_MmaKindEnum : I32EnumAttr<"MmaKind", "The instruction of a product", [
      I32EnumAttrCase<"Wgmma", 0, "wgmma">,
      I32EnumAttrCase<"MmaSync", 1, "mma_sync">,
      I32EnumAttrCase<"Fma", 2, "fma">
    ]> {
  let cppNamespace = "::fovea::tile";
}

def Tile_ItemOrderEnum : I32EnumAttr<"ItemOrder",
    "The order in which a persistent block runs programs", [
      I32EnumAttrCase<"Linear", 0, "linear">,
      I32EnumAttrCase<"Snaked", 1, "snaked">,
      I32EnumAttrCase<"Shared", 2, "shared">,
      I32EnumAttrCase<"Dealt", 3, "dealt">
    ]> {
  let cppNamespace = "::fovea::tile";
}

def Tile_ReductionEnum : I32EnumAttr<"Reduction", "What a reduction combines by", [
      I32EnumAttrCase<"Add", 0, "add">,
      I32EnumAttrCase<"Max", 1, "max">
    ]> {
  let cppNamespace = "::fovea::tile";
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

class Tile_Type<string className, string typeMnemonic>
    : TypeDef<Tile_Dialect, className> {
  let mnemonic = typeMnemonic;
}

def Tile_FragmentType : Tile_Type<"Fragment", "fragment"> {
  let summary = "A tile in the registers of the threads that run the program";
  let description = [{
    Without a layout `!tile.fragment<128x64xf32>`, with one
    `!tile.fragment<128xf32, #tile.layout<...>>`.
  }];
  let parameters = (ins
    ArrayRefParameter<"int64_t">:$shape,
    "::mlir::Type":$elementType,
    OptionalParameter<"::fovea::tile::LayoutAttr">:$layout
  );
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getRank() const { return getShape().size(); }
    /// Returns the same type with another layout, or with none if null.
    FragmentType cloneWith(LayoutAttr layout) const;
    FragmentType cloneWith(::mlir::Type elementType) const;
  }];
}

def Tile_SharedType : Tile_Type<"Shared", "shared"> {
  let summary = "A tile in shared memory";
  let description = [{
    A matrix of `rows x columns` elements. With `swizzle = S` (32, 64 or 128
    bytes) the tile is stored as panels of S bytes of columns, panel after
    panel; in a panel row `i` takes S bytes at `i * S`, and the 16-byte unit `u`
    of row `i` stands at unit `u xor (i * S / 128 mod S / 16)`, as TMA and WGMMA
    have it (PTX ISA, tensor swizzling modes; matrix descriptors). Columns are
    padded to whole panels, and rows come in groups of 8, so that the pattern is
    that of the address. Without a swizzle rows follow one another; a
    single row that is longer than what TMA copies at once, 256 elements, has
    equal panels.

    With `runs = R`, a multiple of 8, each run of `R` rows is stored as a tile of
    its own, run after run: then one TMA instruction copies all panels of a run,
    or of the tile if it is one run.
  }];
  let parameters = (ins
    ArrayRefParameter<"int64_t">:$shape,
    "::mlir::Type":$elementType,
    DefaultValuedParameter<"int64_t", "0">:$swizzle,
    DefaultValuedParameter<"int64_t", "0">:$runs
  );
  let builders = [
    TypeBuilder<(ins "::llvm::ArrayRef<int64_t>":$shape,
                     "::mlir::Type":$elementType, "int64_t":$swizzle), [{
      return $_get($_ctxt, shape, elementType, swizzle, /*runs=*/0);
    }]>
  ];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getElementBytes() const;
    /// Returns the columns of one panel; without a swizzle all columns, or an
    /// equal part of a long row's.
    int64_t getPanelColumns() const;
    int64_t getNumPanels() const;
    /// Returns the rows of a run; without runs all rows.
    int64_t getRunRows() const {
      return getRuns() ? getRuns() : getShape().front();
    }
    bool isOneRun() const { return getRunRows() == getShape().front(); }
    int64_t getRowBytes() const { return getPanelColumns() * getElementBytes(); }
    /// Returns the distance of a row in one panel from that in the next.
    int64_t getPanelBytes() const { return getRunRows() * getRowBytes(); }
    int64_t getRunBytes() const { return getNumPanels() * getPanelBytes(); }
    int64_t getSizeInBytes() const;
    /// Returns the offset of element (row, column), in bytes from the tile's
    /// start.
    int64_t getByteOffset(int64_t row, int64_t column) const;
    SharedType cloneWith(int64_t swizzle) const;
    SharedType cloneWithRuns(int64_t runs) const;
    /// Returns the widest swizzle that divides a row; 0 if none does.
    int64_t getWidestSwizzle() const;
  }];
}

def Tile_RingType : Tile_Type<"Ring", "ring"> {
  let summary = "Slots of shared memory that copies fill and products drain";
  let description = [{
    `!tile.ring<2 x !tile.shared<128x64xbf16>>` has two slots. Use `n` of a
    ring, counted from 0 in each role, takes slot `n mod stages`.
  }];
  let parameters = (ins "int64_t":$stages, "::fovea::tile::SharedType":$tile);
  let assemblyFormat = "`<` $stages `x` qualified($tile) `>`";
  let genVerifyDecl = 1;
}

def Tile_TokenType : Tile_Type<"Token", "token"> {
  let summary = "A product in flight, whose wait returns the fragment";
  let parameters = (ins "::fovea::tile::FragmentType":$fragment);
  let assemblyFormat = "`<` qualified($fragment) `>`";
}

def Tile_TensorMapType : Tile_Type<"TensorMap", "tensor_map"> {
  let summary = "A TMA descriptor: how tiles of a tensor are copied";
  let description = [{
    `!tile.tensor_map<4 x !tile.shared<128x64xbf16, swizzle = 128>>` describes
    tiles of this type in a tensor of rank 4. One descriptor copies one panel.

    Of a tile that is one run, `!tile.shared<16x128xbf16, swizzle = 128, runs =
    16>`, it copies all panels. The map's tensor then has one more dimension in
    front, from panel to panel, and so a rank one higher.
  }];
  let parameters = (ins "int64_t":$rank, "::fovea::tile::SharedType":$tile);
  let assemblyFormat = "`<` $rank `x` qualified($tile) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Returns the dimensions but the one from panel to panel.
    int64_t getNumIndices() const {
      return getRank() - (getTile().getRuns() ? 1 : 0);
    }
  }];
}

#endif // FOVEA_DIALECT_TILE_IR_TILEBASE_TD
