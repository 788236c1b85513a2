// The degree of powers of two is less where weights are rounded for products of
// pairs and no result has more than 16 bits, unless functions are to be exact.

// RUN: fovea-opt %s --convert-attn-to-vector --split-input-file | FileCheck %s --check-prefixes=CHECK,SHORT
// RUN: fovea-opt %s --convert-attn-to-vector=exact-functions --split-input-file | FileCheck %s --check-prefixes=CHECK,EXACT

#host = #machine.target<"host", arch = "amx", cores = 2, vector_bytes = 64, vector_registers = 32, fast_memory = 32768, near_memory = 1048576, bandwidth = 16000, peak = 300, matrix_peak = 4000>
module attributes {machine.target = #host} {
// CHECK-LABEL: func @bf16
// CHECK: "llvm.x86.avx512.mask.reduce.ps.512"
// SHORT-COUNT-3: vector.fma
// EXACT-COUNT-5: vector.fma
// CHECK-NOT: vector.fma
// CHECK: "llvm.x86.avx512.mask.scalef.ps.512"
func.func @bf16(%q: memref<1x1x32x96xbf16>, %k: memref<1x1x64x64xbf16>, %v: memref<1x1x64x64xbf16>, %acc: memref<1x1x48x64xf32>,
    %max: memref<1x1x48xf32>, %sum: memref<1x1x48xf32>, %rows: index, %out: memref<1x1x?x64xbf16>) {
  attn.online_attention scale(0.125) update(all)
      ins(%q, %k, %v : memref<1x1x32x96xbf16>, memref<1x1x64x64xbf16>, memref<1x1x64x64xbf16>)
      outs(%acc, %max, %sum : memref<1x1x48x64xf32>, memref<1x1x48xf32>, memref<1x1x48xf32>) packed(%rows)
  attn.finalize ins(%acc, %max, %sum : memref<1x1x48x64xf32>, memref<1x1x48xf32>, memref<1x1x48xf32>)
      outs(%out : memref<1x1x?x64xbf16>)
  return
}

// CHECK-LABEL: func @f16
// CHECK: "llvm.x86.avx512.mask.reduce.ps.512"
// SHORT-COUNT-4: vector.fma
// EXACT-COUNT-5: vector.fma
// CHECK-NOT: vector.fma
// CHECK: "llvm.x86.avx512.mask.scalef.ps.512"
func.func @f16(%q: memref<1x1x64x96xbf16>, %k: memref<1x1x64x64xf16>, %v: memref<1x1x64x64xf16>, %acc: memref<1x1x48x64xf32>,
    %max: memref<1x1x48xf32>, %sum: memref<1x1x48xf32>, %rows: index, %out: memref<1x1x?x64xf16>) {
  attn.online_attention scale(0.125) update(all)
      ins(%q, %k, %v : memref<1x1x64x96xbf16>, memref<1x1x64x64xf16>, memref<1x1x64x64xf16>)
      outs(%acc, %max, %sum : memref<1x1x48x64xf32>, memref<1x1x48xf32>, memref<1x1x48xf32>) packed(%rows)
  attn.finalize ins(%acc, %max, %sum : memref<1x1x48x64xf32>, memref<1x1x48xf32>, memref<1x1x48xf32>)
      outs(%out : memref<1x1x?x64xf16>)
  return
}

// Weights that are not rounded are as exact as f32.

// CHECK-LABEL: func @unrounded
// CHECK: "llvm.x86.avx512.mask.reduce.ps.512"
// CHECK-COUNT-5: vector.fma
// CHECK-NOT: vector.fma
// CHECK: "llvm.x86.avx512.mask.scalef.ps.512"
func.func @unrounded(%q: memref<1x1x64x48xf32>, %k: memref<1x1x64x64xbf16>, %v: memref<1x1x64x64xbf16>, %acc: memref<1x1x48x64xf32>,
    %max: memref<1x1x48xf32>, %sum: memref<1x1x48xf32>, %rows: index, %out: memref<1x1x?x64xbf16>) {
  attn.online_attention scale(0.125) update(all)
      ins(%q, %k, %v : memref<1x1x64x48xf32>, memref<1x1x64x64xbf16>, memref<1x1x64x64xbf16>)
      outs(%acc, %max, %sum : memref<1x1x48x64xf32>, memref<1x1x48xf32>, memref<1x1x48xf32>) packed(%rows)
  attn.finalize ins(%acc, %max, %sum : memref<1x1x48x64xf32>, memref<1x1x48xf32>, memref<1x1x48xf32>)
      outs(%out : memref<1x1x?x64xbf16>)
  return
}

// A log-sum-exp in f32 is as exact as f32 is.

// CHECK-LABEL: func @lse
// CHECK: "llvm.x86.avx512.mask.reduce.ps.512"
// CHECK-COUNT-5: vector.fma
// CHECK-NOT: vector.fma
// CHECK: "llvm.x86.avx512.mask.scalef.ps.512"
func.func @lse(%q: memref<1x1x32x96xbf16>, %k: memref<1x1x64x64xbf16>, %v: memref<1x1x64x64xbf16>, %acc: memref<1x1x48x64xf32>,
    %max: memref<1x1x48xf32>, %sum: memref<1x1x48xf32>, %rows: index, %out: memref<1x1x?x64xbf16>, %lse: memref<1x1x?xf32>) {
  attn.online_attention scale(0.125) update(all)
      ins(%q, %k, %v : memref<1x1x32x96xbf16>, memref<1x1x64x64xbf16>, memref<1x1x64x64xbf16>)
      outs(%acc, %max, %sum : memref<1x1x48x64xf32>, memref<1x1x48xf32>, memref<1x1x48xf32>) packed(%rows)
  attn.finalize ins(%acc, %max, %sum : memref<1x1x48x64xf32>, memref<1x1x48xf32>, memref<1x1x48xf32>)
      outs(%out, %lse : memref<1x1x?x64xbf16>, memref<1x1x?xf32>)
  return
}

// Gradients are in the type of values.

// CHECK-LABEL: func @backward
// CHECK: "llvm.x86.avx512.mask.reduce.ps.512"
// SHORT-COUNT-3: vector.fma
// EXACT-COUNT-5: vector.fma
// CHECK-NOT: vector.fma
// CHECK: "llvm.x86.avx512.mask.scalef.ps.512"
func.func @backward(%q: memref<1x1x64x32xbf16>, %k: memref<1x1x64x32xbf16>, %l: memref<1x1x64xf32>,
                    %pq: memref<1x1x16x128xbf16>, %dq: memref<1x1x64x32xf32>) {
  attn.online_backward scale(0.125)
      packed(%pq, %pq : memref<1x1x16x128xbf16>, memref<1x1x16x128xbf16>)
      ins(%q, %q, %k, %q, %l, %l
          : memref<1x1x64x32xbf16>, memref<1x1x64x32xbf16>, memref<1x1x64x32xbf16>,
            memref<1x1x64x32xbf16>, memref<1x1x64xf32>, memref<1x1x64xf32>)
      outs(%dq, %dq, %dq : memref<1x1x64x32xf32>, memref<1x1x64x32xf32>, memref<1x1x64x32xf32>)
  return
}

// Queries of f32 have gradients of f32, whatever values are.

// CHECK-LABEL: func @unrounded_backward
// CHECK: "llvm.x86.avx512.mask.reduce.ps.512"
// CHECK-COUNT-5: vector.fma
// CHECK-NOT: vector.fma
// CHECK: "llvm.x86.avx512.mask.scalef.ps.512"
func.func @unrounded_backward(%pq: memref<1x1x64x16xf32>, %q: memref<1x1x16x64xf32>, %k: memref<1x1x8x64xbf16>, %l: memref<1x1x16xf32>,
                    %dq: memref<1x1x16x64xf32>, %dk: memref<1x1x8x64xf32>) {
  attn.online_backward scale(1.0) packed(%pq, %pq : memref<1x1x64x16xf32>, memref<1x1x64x16xf32>)
    ins(%q, %q, %k, %k, %l, %l : memref<1x1x16x64xf32>, memref<1x1x16x64xf32>, memref<1x1x8x64xbf16>, memref<1x1x8x64xbf16>, memref<1x1x16xf32>, memref<1x1x16xf32>)
    outs(%dq, %dk, %dk : memref<1x1x16x64xf32>, memref<1x1x8x64xf32>, memref<1x1x8x64xf32>)
  return
}
}
