// RUN: fovea-opt %s --fovea-gpu-pipeline='level=gpu target=sm_90a' | FileCheck %s

// LayerNorm, dropout and a residual add are one kernel, with a second one for
// rows that are not aligned. A row of 8192 is four vectors of eight in each of
// 256 threads, loaded first; then the next row is prefetched. Each vector is
// stored once. Random numbers take at most 20 products for four neighbours.
// CHECK:         gpu.launch_func @kernels::@block_0 {{.*}} threads in (%c256{{,}}
// CHECK:       } else {
// CHECK:         gpu.launch_func @kernels::@block_1{{ }}
// CHECK-NOT:     gpu.launch_func
// CHECK-LABEL: gpu.func @block_0{{[^0-9]}}
// CHECK-COUNT-8: vector.load {{.*}} {alignment = 16 : i64} {{.*}}, vector<8xbf16>
// CHECK-NOT:     vector.load
// CHECK-COUNT-8: memref.prefetch
// CHECK-NOT:     vector.load
// CHECK:         gpu.barrier
// CHECK:         gpu.barrier
// CHECK-COUNT-146: arith.mului_extended
// CHECK-NOT:     arith.mului_extended
// CHECK:         vector.store {{.*}} {alignment = 16 : i64} {{.*}}, vector<8xbf16>
// CHECK-NOT:     vector.store
// CHECK:         gpu.return
func.func @block(%x: tensor<?x8192xbf16>, %w: tensor<8192xbf16>, %b: tensor<8192xbf16>, %r: tensor<?x8192xbf16>, %seed: i64, %offset: i64) -> tensor<?x8192xbf16> {
  %n = attn.layer_norm %x weight(%w : tensor<8192xbf16>) bias(%b : tensor<8192xbf16>) epsilon(1.0e-5) : tensor<?x8192xbf16>
  %d = attn.dropout %n, 0.1 seed(%seed, %offset) : tensor<?x8192xbf16>
  %y = attn.residual_add %d, %r : tensor<?x8192xbf16>, tensor<?x8192xbf16>
  return %y : tensor<?x8192xbf16>
}
