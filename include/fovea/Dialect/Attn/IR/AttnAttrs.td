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

def Attn_ScheduleAttr : Attn_Attr<"Schedule", "schedule"> {
  let summary = "How one attention is cut into tiles and handed out";
  let description = [{
    Chosen by `--attn-select-schedule` from the model of the target, or written
    by hand; obeyed by all later passes.

    - `tile = QxK`: queries and keys of one tile;
    - `order`: `linear`, or `longest_first` where a mask gives the tiles of
      later queries more keys than those of earlier ones;
    - GPUs alone, both or none: `warps`, 1 to 32, that compute a tile, whose
      queries and keys are then multiples of 16; attention's warps have 16 of
      its queries each, those of the backward pass 16 of its keys, or a
      multiple; and `stages`, 1 to 8, the tiles of keys, or of queries, that are
      in shared memory at once.

    ```mlir
    #attn.schedule<tile = 48x64, order = longest_first>
    #attn.schedule<tile = 128x128, order = linear, warps = 8, stages = 2>
    ```
  }];
  let parameters = (ins
    "int64_t":$queryTile,
    "int64_t":$keyTile,
    EnumParameter<Attn_OrderEnum>:$order,
    DefaultValuedParameter<"int64_t", "0">:$warps,
    DefaultValuedParameter<"int64_t", "0">:$stages
  );
  let assemblyFormat = [{
    `<` `tile` `=` custom<TileShape>($queryTile, $keyTile)
    `,` `order` `=` $order
    (`,` `warps` `=` $warps^ `,` `stages` `=` $stages)? `>`
  }];
  let genVerifyDecl = 1;
}

def Attn_TargetAttr : Attn_Attr<"Target", "target"> {
  let summary = "The model of the machine that schedules are chosen for";
  let description = [{
    Attached to a module as `attn.target`. Sizes are in bytes, per core (on a
    GPU: per streaming multiprocessor); rates are of the whole device.

    - the name: `host`, or the GPU that code is for, `sm_80` or `sm_90a`;
    - `arch`: `avx512`, `avx2` or `generic` on a host, `ampere` (sm_80) or
      `hopper` (sm_90a) on a GPU;
    - `cores`: how many work items run at once (multiprocessors);
    - `vector_bytes`, `vector_registers`: the vector unit (the 32 lanes of a
      warp; registers of one multiprocessor, as such vectors);
    - `fast_memory`: the memory that a tile's inner loops run in (the L1 data
      cache; the shared memory that one block can have);
    - `near_memory`: the memory that keys and values of a head stay in (the L2
      cache; on a GPU that of the whole device);
    - `bandwidth`: main memory, in MB/s; `peak`: f32 multiply-adds, in GFLOP/s;
    - GPUs alone: `shared_memory`, the shared memory of a multiprocessor, of
      which every block on it takes 1024 bytes more than it asks for, and
      `matrix_peak`, the tensor cores' f16 and bf16 products, in GFLOP/s.

    ```mlir
    #attn.target<"host", arch = "avx512", cores = 2, vector_bytes = 64,
                 vector_registers = 32, fast_memory = 32768,
                 near_memory = 1048576, bandwidth = 12000, peak = 300>
    #attn.target<"sm_90a", arch = "hopper", cores = 132, vector_bytes = 128,
                 vector_registers = 2048, fast_memory = 232448,
                 near_memory = 52428800, bandwidth = 4290000, peak = 66900,
                 shared_memory = 233472, matrix_peak = 989000>
    ```
  }];
  let parameters = (ins
    StringRefParameter<>:$name,
    StringRefParameter<>:$arch,
    "int64_t":$cores,
    "int64_t":$vectorBytes,
    "int64_t":$vectorRegisters,
    "int64_t":$fastMemory,
    "int64_t":$nearMemory,
    "int64_t":$bandwidth,
    "int64_t":$peak,
    DefaultValuedParameter<"int64_t", "0">:$sharedMemory,
    DefaultValuedParameter<"int64_t", "0">:$matrixPeak
  );
  let assemblyFormat = [{
    `<` $name `,` `arch` `=` $arch `,` `cores` `=` $cores
    `,` `vector_bytes` `=` $vectorBytes
    `,` `vector_registers` `=` $vectorRegisters
    `,` `fast_memory` `=` $fastMemory `,` `near_memory` `=` $nearMemory
    `,` `bandwidth` `=` $bandwidth
    `,` `peak` `=` $peak
    (`,` `shared_memory` `=` $sharedMemory^)?
    (`,` `matrix_peak` `=` $matrixPeak^)? `>`
  }];
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// True for sm_80 and sm_90a.
    bool isGpu() const { return getName() != "host"; }
  }];
}

#endif // FOVEA_DIALECT_ATTN_IR_ATTNATTRS_TD
