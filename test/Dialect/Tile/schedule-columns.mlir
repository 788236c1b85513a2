// Of several products that need another one of the step each is issued when the one
// before it is over: their results take the same registers.
// RUN: fovea-opt %s --tile-split-columns --tile-split-products --tile-assign-layouts \
// RUN:   --tile-multibuffer --tile-schedule --tile-expand-pipeline | FileCheck %s

!g = memref<?x192xf32, strided<[?, 1], offset: ?>>
!p = memref<?x64xf32, strided<[?, 1], offset: ?>>

// CHECK-LABEL: @attend
// CHECK: scf.for
// The scores of this step, and the first half of the values of the last one.
// CHECK-COUNT-12: tile.mma_async
// CHECK: tile.wait_mma {{.*}}<64x64xf32
// CHECK-NOT: tile.mma_async
// CHECK: tile.wait_mma {{.*}}<64x96xf32
// CHECK: arith.addf
// CHECK-COUNT-6: tile.mma_async
// CHECK-NOT: tile.mma_async
// CHECK: tile.wait_mma {{.*}}<64x96xf32
// CHECK: arith.addf
// CHECK: scf.yield
func.func @attend(%q: tensor<?x64xf32>, %k: tensor<?x64xf32>, %v: tensor<?x192xf32>, %o: tensor<?x192xf32>) -> tensor<?x192xf32> {
  %c1 = arith.constant 1 : index
  %r = tile.launch grid(%c1) warps 4 stages 2 parts 3
      ins(%q, %k, %v : tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x192xf32>) outs(%o : tensor<?x192xf32>) {
  ^bb0(%b: index, %Q: !p, %K: !p, %V: !g, %O: !g):
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %c512 = arith.constant 512 : index
    %zero = arith.constant 0.0 : f32
    %qt = tile.load %Q[%c0, %c0] dims [0, 1] : !p -> !tile.shared<64x64xf32>
    %acc0 = tile.fill %zero : !tile.fragment<64x192xf32>
    %acc = scf.for %j = %c0 to %c512 step %c64 iter_args(%a = %acc0) -> (!tile.fragment<64x192xf32>) {
      %kt = tile.load %K[%j, %c0] dims [0, 1] : !p -> !tile.shared<64x64xf32>
      %vt = tile.load %V[%j, %c0] dims [0, 1] : !g -> !tile.shared<64x192xf32>
      %s = tile.mma %qt, %kt transpose_b : !tile.shared<64x64xf32>, !tile.shared<64x64xf32> -> !tile.fragment<64x64xf32>
      %next = tile.mma %s, %vt into %a : !tile.fragment<64x64xf32>, !tile.shared<64x192xf32>, !tile.fragment<64x192xf32> -> !tile.fragment<64x192xf32>
      scf.yield %next : !tile.fragment<64x192xf32>
    }
    tile.store %acc, %O[%b, %c0] dims [0, 1] : !tile.fragment<64x192xf32>, !g
  } -> tensor<?x192xf32>
  return %r : tensor<?x192xf32>
}
