// AMX tiles multiply bf16, whatever the level of optimisation, and f16 in parts
// of bf16; for other machines vectors multiply, whatever this one has.

// RUN: fovea-compile %s --arch=amx --emit=asm | FileCheck %s
// RUN: fovea-compile %s --arch=amx --emit=asm --opt-level=0 | FileCheck %s
// RUN: fovea-compile %s --arch=amx --emit=asm --opt-level=3 | FileCheck %s
// RUN: fovea-compile %s --arch=amx --emit=asm --cpu=sapphirerapids | FileCheck %s
// RUN: fovea-compile %s --arch=avx512 --emit=asm | FileCheck %s --check-prefix=VECTORS
// RUN: fovea-compile %s --arch=native --cpu=skylake-avx512 --emit=asm | FileCheck %s --check-prefix=VECTORS
// RUN: sed s/bf16/f16/g %s | fovea-compile --arch=amx --emit=asm | FileCheck %s

// CHECK: callq fovea_use_matrix_tiles
// CHECK: ldtilecfg
// CHECK: tdpbf16ps
// CHECK: tilestored
// CHECK: tdpbf16ps
// CHECK: tilerelease
// VECTORS-NOT: fovea_use_matrix_tiles
// VECTORS-NOT: tdpbf16ps
// VECTORS: vfmadd
// VECTORS-NOT: fovea_use_matrix_tiles
// VECTORS-NOT: tdpbf16ps

func.func @attend(%q: tensor<1x2x64x64xbf16>, %k: tensor<1x2x64x64xbf16>) -> tensor<1x2x64x64xbf16> {
  %o = attn.attention %q, %k, %k scale(0.125) : tensor<1x2x64x64xbf16>, tensor<1x2x64x64xbf16>, tensor<1x2x64x64xbf16> -> tensor<1x2x64x64xbf16>
  return %o : tensor<1x2x64x64xbf16>
}
