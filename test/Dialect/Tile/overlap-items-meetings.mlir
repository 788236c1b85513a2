// While warps wait for another block no product is in flight: an item that waits is
// not overlapped, and where both are the branch is not there.
// RUN: fovea-opt %s --tile-persist --tile-assign-layouts --tile-multibuffer --tile-specialize-warps --tile-skip-rows --tile-schedule --tile-expand-pipeline --tile-overlap-items --canonicalize --cse | FileCheck %s

!g = memref<?x64xbf16, strided<[?, 1], offset: ?>>
!o = memref<?x64xf32, strided<[?, 1], offset: ?>>
!f = memref<?x4xi32, strided<[?, 1], offset: ?>>
!s = !tile.fragment<64x64xf32>

// CHECK-LABEL: func.func @meets(
// CHECK:       tile.role "compute"
// CHECK:         scf.for %[[BLOCK:[^ ]*]] = {{.*}} iter_args(
// CHECK:           %[[MEETS:.*]] = arith.cmpi eq, %[[BLOCK]], %c3
// CHECK:           %[[STEPPED:.*]] = arith.andi
// CHECK:           %[[BOTH:.*]] = arith.andi %[[STEPPED]],
// CHECK:           %[[CAN:.*]] = arith.select %[[MEETS]], %false, %[[BOTH]] : i1
// CHECK:           scf.if %[[CAN]]
// CHECK:             tile.wait_mma %{{.*}} pending 1
// CHECK-NOT:         tile.await
// CHECK:             tile.store
// CHECK:           } else {
// CHECK:             tile.wait_mma
// CHECK:             scf.if %[[MEETS]]
// CHECK:               tile.await
// CHECK:             tile.store
func.func @meets(%q: memref<?x64xbf16>, %k: memref<?x64xbf16>, %out: memref<?x64xf32>, %flags: memref<?x4xi32>, %keys: index, %tiles: index) {
  tile.launch grid(%tiles) persistent linear warps 4 stages 2
      ins(%q, %k : memref<?x64xbf16>, memref<?x64xbf16>)
      outs(%out, %flags : memref<?x64xf32>, memref<?x4xi32>) {
  ^bb0(%block: index, %Q: !g, %K: !g, %O: !o, %F: !f):
    %c0 = arith.constant 0 : index
    %c3 = arith.constant 3 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %i = arith.muli %block, %c64 : index
    %meets = arith.cmpi eq, %block, %c3 : index
    %qt = tile.load %Q[%i, %c0] dims [0, 1] : !g -> !tile.shared<64x64xbf16>
    %acc0 = tile.fill %zero : !s
    %end = scf.for %j = %c0 to %keys step %c64 iter_args(%acc = %acc0) -> (!s) {
      %kt = tile.load %K[%j, %c0] dims [0, 1] : !g -> !tile.shared<64x64xbf16>
      %vt = tile.load %K[%j, %c0] dims [0, 1] : !g -> !tile.shared<64x64xbf16>
      %x = tile.mma %qt, %kt transpose_b : !tile.shared<64x64xbf16>, !tile.shared<64x64xbf16> -> !s
      %p = tile.map ins(%x : !s) {
      ^bb0(%a: f32, %m: index, %n: index):
        %t = arith.truncf %a : f32 to bf16
        tile.yield %t : bf16
      } -> !tile.fragment<64x64xbf16>
      %acc1 = tile.mma %p, %vt into %acc : !tile.fragment<64x64xbf16>, !tile.shared<64x64xbf16>, !s -> !s
      scf.yield %acc1 : !s
    }
    %sum = scf.if %meets -> (!s) {
      tile.await %F[%c0] : !f
      %other = tile.load %O[%c0, %c0] dims [0, 1] : !o -> !s
      scf.yield %other : !s
    } else {
      scf.yield %end : !s
    }
    tile.store %sum, %O[%i, %c0] dims [0, 1] : !s, !o
  }
  return
}
