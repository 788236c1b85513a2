//===- MachineAttrs.td - The machine that code is for ------*- tablegen -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DIALECT_MACHINE_IR_MACHINEATTRS_TD
#define FOVEA_DIALECT_MACHINE_IR_MACHINEATTRS_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"

def Machine_Dialect : Dialect {
  let name = "machine";
  let cppNamespace = "::fovea::machine";
  let summary = "The machine that code is for";
  let description = [{
    The dialect has no ops. Its `#machine.target` is the model of a machine.
    Passes that choose between alternatives read its sizes and rates. Passes
    that may use an instruction query it for that instruction. No pass compares
    names of machines.

    These attributes of ops tell later passes what the machine is to run:

    - `machine.target`, a `#machine.target` on a module, is the machine that its
      code is for.
    - `machine.kernel`, an i64 on ops with destinations, is the number of the
      kernel that computes the op if each op of the graph has its own
      (`--convert-attn-to-linalg`, `--linalg-fuse-rows`).
    - `machine.grain`, an i64 on a parallel loop of the host, is the number of
      iterations that one call executes (`--outline-parallel`).
    - `machine.distinct_memory`, a unit on a launch or kernel, says that a
      memref operand that is written shares no memory with the others
      (`--convert-gpu-kernels-to-nvvm`).
    - `machine.starts_early`, a unit on a kernel, says that its threads wait for
      earlier kernels, so that its blocks may start before these end
      (`--gpu-start-early`, `--convert-gpu-to-runtime`).
    - `machine.messages`, an array of strings on a function, holds a message for
      each number that the function may return (`--outline-shape-checks`).

    The GPUs that code can be made for are the entries of one table
    (`lib/Dialect/Machine/IR/GpuArch.cpp`): the features of their instruction
    sets, their sizes, and the rates of a typical device. A GPU whose
    instructions another GPU also has needs only a new entry.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
}

def Machine_TargetAttr : AttrDef<Machine_Dialect, "Target"> {
  let mnemonic = "target";
  let summary = "The model of the machine that code is for";
  let description = [{
    The attribute is attached to a module as `machine.target`. Sizes are in
    bytes, per core (on a GPU: per streaming multiprocessor); rates are those of
    the whole device.

    - the name: `host`, or the GPU that code is for, such as `sm_80` or `sm_90a`;
    - `arch`: `amx`, `avx512_bf16`, `avx512`, `avx2` or `generic` on a host; on a
      GPU its family, which the name implies, such as `ampere` or `hopper`;
    - `cores`: the number of work items that run at once (multiprocessors);
    - `vector_bytes`, `vector_registers`: the vector unit (the 32 lanes of a
      warp; registers of one multiprocessor, as such vectors);
    - `fast_memory`: the memory that a tile's inner loops run in (the L1 data
      cache; the shared memory that one block can have);
    - `near_memory`: the memory that keys and values of a head stay in (the L2
      cache; on a GPU that of the whole device);
    - `bandwidth`: main memory, in MB/s; `peak`: f32 multiply-adds, in GFLOP/s;
    - GPUs only: `shared_memory`, the shared memory of a multiprocessor, of
      which every block on it takes 1024 bytes more than it asks for;
    - GPUs, `amx` and `avx512_bf16` only: `matrix_peak`, products by the units for
      matrices, in GFLOP/s: f16 and bf16 by tensor cores, bf16 by AMX tiles or
      by dot products.

    ```mlir
    #machine.target<"host", arch = "avx512", cores = 2, vector_bytes = 64,
                    vector_registers = 32, fast_memory = 32768,
                    near_memory = 1048576, bandwidth = 12000, peak = 300>
    #machine.target<"sm_90a", arch = "hopper", cores = 132, vector_bytes = 128,
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
    `,` `peak` `=` $peak `` custom<Units>($sharedMemory, $matrixPeak) `` `>`
  }];
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    bool isGpu() const { return getName() != "host"; }

    /// Returns true if a host has AMX tiles, which multiply bf16 matrices.
    bool hasMatrixTiles() const { return getArch() == "amx"; }
    /// Returns true if a host multiplies pairs of numbers in bf16 by vectors.
    bool hasDotProducts() const { return getArch() == "avx512_bf16"; }
    /// Returns true if a host multiplies pairs of numbers in bf16.
    bool multipliesPairs() const { return hasMatrixTiles() || hasDotProducts(); }
    /// Returns true if a host has the instructions of AVX-512.
    bool hasAVX512() const {
      return getArch() == "avx512" || multipliesPairs();
    }

    /// Returns the features of the GPU's instruction set. Valid for GPUs only.
    const GpuArch &getGpuArch() const;

    /// Returns the 32-bit registers of a multiprocessor. Valid for GPUs only.
    int64_t getRegistersPerCore() const {
      return getVectorRegisters() * getVectorBytes() / 4;
    }
  }];
}

#endif // FOVEA_DIALECT_MACHINE_IR_MACHINEATTRS_TD
