// A text may be for a machine with tiles, or with some vectors, but then so must the
// code be.

// RUN: not fovea-compile %s --arch=avx512 --emit=asm 2>&1 | FileCheck %s
// CHECK: fovea-compile: the module's machine.target has AMX tiles, but the code is not for arch amx
// RUN: fovea-compile %s --arch=amx --emit=asm | FileCheck %s --check-prefix=FITS
// FITS: tdpbf16ps
// RUN: sed 's/"amx"/"avx512_bf16"/' %s | not fovea-compile --arch=amx --emit=asm 2>&1 | FileCheck %s --check-prefix=DOTS
// DOTS: fovea-compile: the module's machine.target has dot products of bf16, but the code is not for arch avx512_bf16
// RUN: sed 's/"amx"/"avx512"/; s/, matrix_peak = 4700//' %s > %t.avx512.mlir
// RUN: not fovea-compile %t.avx512.mlir --arch=avx2 --emit=asm 2>&1 | FileCheck %s --check-prefix=VECTORS
// RUN: not fovea-compile %t.avx512.mlir --arch=generic --emit=asm 2>&1 | FileCheck %s --check-prefix=VECTORS
// VECTORS: fovea-compile: the module's machine.target has vectors of AVX-512, but the code is not for arch avx512, avx512_bf16 or amx
// RUN: fovea-compile %t.avx512.mlir --arch=amx --emit=asm | FileCheck %s --check-prefix=WIDE
// RUN: fovea-compile %t.avx512.mlir --arch=avx512 --emit=asm | FileCheck %s --check-prefix=WIDE
// WIDE: zmm
// RUN: sed 's/"amx"/"avx2"/; s/, matrix_peak = 4700//' %s | not fovea-compile --arch=generic --emit=asm 2>&1 | FileCheck %s --check-prefix=AVX2
// AVX2: fovea-compile: the module's machine.target has vectors of AVX2, but the code is not for arch avx2 or above

#amx = #machine.target<"host", arch = "amx", cores = 2, vector_bytes = 64, vector_registers = 32, fast_memory = 49152, near_memory = 2097152, bandwidth = 12000, peak = 300, matrix_peak = 4700>
module attributes {machine.target = #amx} {
func.func @bfloat(%q: tensor<1x2x64x64xbf16>, %k: tensor<1x2x64x64xbf16>) -> tensor<1x2x64x64xbf16> {
  %o = attn.attention %q, %k, %k scale(0.125) : tensor<1x2x64x64xbf16>, tensor<1x2x64x64xbf16>, tensor<1x2x64x64xbf16> -> tensor<1x2x64x64xbf16>
  return %o : tensor<1x2x64x64xbf16>
}
}
