// Every level of the road, on standard output and in a file.

// RUN: fovea-compile %s --emit=attn | FileCheck %s --check-prefix=ATTN
// RUN: fovea-compile %s --emit=fused | FileCheck %s --check-prefix=FUSED
// RUN: fovea-compile %s --emit=tiled | FileCheck %s --check-prefix=TILED
// RUN: fovea-compile %s --emit=tiled --strategy=three-pass | FileCheck %s --check-prefix=THREE
// RUN: fovea-compile %s | FileCheck %s --check-prefix=LLVM
// RUN: fovea-compile %s --emit=asm --arch=generic | FileCheck %s --check-prefix=ASM
// RUN: fovea-compile %s --emit=obj --opt-level=0 -o %t.o
// RUN: llvm-nm %t.o | FileCheck %s --check-prefix=OBJ
// RUN: fovea-compile --emit=fused --strategy=unfused - < %s | FileCheck %s --check-prefix=GRAPH

// A level that was printed is an input.
// RUN: fovea-compile %s --emit=tiled -o %t.mlir
// RUN: fovea-compile %t.mlir --emit=tiled | FileCheck %s --check-prefix=TILED

// ATTN:      machine.target = #machine.target<"host"
// ATTN:      attn.scores
// ATTN:      attn.softmax
// GRAPH:     attn.scores
// GRAPH:     attn.softmax
// FUSED:     attn.attention
// FUSED:     #attn.schedule
// TILED:     scf.forall
// TILED:     scf.for
// TILED:     update(all)
// THREE:     update(max)
// THREE:     update(sum)
// THREE:     update(acc)
// LLVM:      llvm.func @attend
// LLVM:      llvm.func @_mlir_ciface_attend
// ASM:       _fovea_packed_attend:
// OBJ-DAG:   T _fovea_packed_attend
// OBJ-DAG:   T _mlir_ciface_attend
// OBJ-DAG:   U fovea_parallel_for

func.func @attend(%q: tensor<2x4x400x32xf32>, %k: tensor<2x4x400x32xf32>, %v: tensor<2x4x400x32xf32>) -> tensor<2x4x400x32xf32> {
  %s = attn.scores %q, %k : tensor<2x4x400x32xf32>, tensor<2x4x400x32xf32> -> tensor<2x4x400x400xf32>
  %t = attn.scale %s by 0.125 : tensor<2x4x400x400xf32>
  %p = attn.softmax %t : tensor<2x4x400x400xf32> -> tensor<2x4x400x400xf32>
  %o = attn.values %p, %v : tensor<2x4x400x400xf32>, tensor<2x4x400x32xf32> -> tensor<2x4x400x32xf32>
  return %o : tensor<2x4x400x32xf32>
}

// And it runs; only the graph can be checked.
// RUN: fovea-run %t.mlir --random=1 | FileCheck %s --check-prefix=RAN
// RUN: not fovea-run %t.mlir --random=1 --check 2>&1 | FileCheck %s --check-prefix=REFERENCE
// RAN: result 0: f32 2x4x400x32,
// REFERENCE: fovea-run: there is no reference to check against: the module is no longer a graph
