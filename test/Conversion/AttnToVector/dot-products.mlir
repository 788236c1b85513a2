// RUN: fovea-opt %s --convert-attn-to-vector --canonicalize --cse | FileCheck %s
// RUN: fovea-opt %s --convert-attn-to-vector --canonicalize --cse --lower-affine --convert-scf-to-cf --convert-vector-to-llvm --convert-host-to-llvm | FileCheck %s --check-prefix=LLVM

// With AVX512-BF16 a tile of sums is 16 vectors, to which the dot products of two
// numbers of a row with 16 pairs are added. Keys are copied, to rows a constant
// number of bytes apart; the runtime is not asked for tiles.

// CHECK-LABEL: func @block
// CHECK-SAME: %[[Q:.*]]: memref<1x1x16x64xbf16>, %[[K:.*]]: memref<1x1x64x32xbf16>
// CHECK-NOT: fovea_use_matrix_tiles
// CHECK-DAG: %[[P:.*]] = memref.alloca() {alignment = 64 : i64} : memref<64x32xf32>
// CHECK-DAG: %[[KEYS:.*]] = memref.alloca() {alignment = 64 : i64} : memref<64x32xbf16>
// CHECK-DAG: %[[WEIGHTS:.*]] = memref.alloca() {alignment = 64 : i64} : memref<32x64xbf16>
// CHECK: vector.load %[[K]]
// CHECK: vector.store {{.*}}, %[[KEYS]]
// CHECK: %[[PAIRS:.*]] = vector.load %[[Q]]{{.*}} vector<32xbf16>
// CHECK: %[[PAIR:.*]] = vector.load %[[KEYS]]{{.*}} vector<2xbf16>
// CHECK: %[[WORD:.*]] = vector.bitcast %[[PAIR]] : vector<2xbf16> to vector<1xi32>
// CHECK: %[[BOTH:.*]] = vector.bitcast %{{.*}} : vector<16xi32> to vector<32xbf16>
// CHECK: x86vector.avx512.dot %{{.*}}, %[[BOTH]], %[[PAIRS]] : vector<32xbf16> -> vector<16xf32>
// CHECK-COUNT-15: x86vector.avx512.dot
// CHECK-NOT: x86vector.avx512.dot
// CHECK-COUNT-16: vector.store {{.*}}, %[[P]]
// CHECK: vector.load %[[WEIGHTS]]{{.*}} vector<2xbf16>
// CHECK: x86vector.avx512.dot
// CHECK-NOT: amx
// CHECK-NOT: fovea_use_matrix_tiles

// LLVM: llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
// LLVM-NOT: x86vector
#bf16 = #machine.target<"host", arch = "avx512_bf16", cores = 2, vector_bytes = 64, vector_registers = 32, fast_memory = 49152, near_memory = 2097152, bandwidth = 12000, peak = 300, matrix_peak = 600>
module attributes {machine.target = #bf16} {
func.func @block(%q: memref<1x1x16x64xbf16>, %k: memref<1x1x64x32xbf16>,
    %v: memref<1x1x64x16xbf16>, %acc: memref<1x1x32x16xf32>,
    %max: memref<1x1x32xf32>, %sum: memref<1x1x32xf32>, %rows: index) {
  attn.online_attention scale(0.125) update(all)
      ins(%q, %k, %v : memref<1x1x16x64xbf16>, memref<1x1x64x32xbf16>, memref<1x1x64x16xbf16>)
      outs(%acc, %max, %sum : memref<1x1x32x16xf32>, memref<1x1x32xf32>, memref<1x1x32xf32>)
      packed(%rows)
  return
}
}
