// With AVX-512 powers of two in f32 are by instructions on fractions and exponents;
// other targets, and f64, have integer arithmetic for them.

// RUN: fovea-opt %s --convert-attn-to-vector | FileCheck %s
// RUN: sed 's/avx512/amx/; s/peak = 300/peak = 300, matrix_peak = 4000/' %s | fovea-opt --convert-attn-to-vector | FileCheck %s
// RUN: sed 's/avx512/avx2/; s/bytes = 64/bytes = 32/; s/registers = 32/registers = 16/' %s | fovea-opt --convert-attn-to-vector | FileCheck %s --check-prefix=OTHER
// RUN: sed 's/xf32>/xf64>/g' %s | fovea-opt --convert-attn-to-vector | FileCheck %s --check-prefix=OTHER

// CHECK-LABEL: func @block
// CHECK: %[[KEEP:.*]] = arith.cmpf uge, %[[X:.*]], {{.*}} : vector<16xf32>
// CHECK: %[[FRACTION:.*]] = llvm.call_intrinsic "llvm.x86.avx512.mask.reduce.ps.512"(%[[X]],
// CHECK-COUNT-5: vector.fma {{.*}}%[[FRACTION]], {{.*}} : vector<16xf32>
// CHECK: vector.bitcast %[[KEEP]] : vector<16xi1> to vector<1xi16>
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.mask.scalef.ps.512"({{.*}}, %[[X]], {{.*}})

// OTHER-LABEL: func @block
// OTHER-NOT: call_intrinsic
// OTHER: arith.shli
// OTHER-NOT: call_intrinsic

module attributes {machine.target = #machine.target<"host", arch = "avx512", cores = 2, vector_bytes = 64,
    vector_registers = 32, fast_memory = 32768, near_memory = 1048576, bandwidth = 16000, peak = 300>} {
func.func @block(%q: memref<1x1x64x48xf32>, %k: memref<1x1x64x64xf32>,
    %v: memref<1x1x64x64xf32>, %acc: memref<1x1x48x64xf32>,
    %max: memref<1x1x48xf32>, %sum: memref<1x1x48xf32>, %rows: index) {
  attn.online_attention scale(0.125) update(all)
      ins(%q, %k, %v : memref<1x1x64x48xf32>, memref<1x1x64x64xf32>, memref<1x1x64x64xf32>)
      outs(%acc, %max, %sum : memref<1x1x48x64xf32>, memref<1x1x48xf32>, memref<1x1x48xf32>)
      packed(%rows)
  return
}
}
