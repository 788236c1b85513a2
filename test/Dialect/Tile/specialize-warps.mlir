// RUN: fovea-opt %s --tile-specialize-warps --split-input-file | FileCheck %s

!g = memref<?x64xbf16, strided<[?, 1], offset: ?>>
!t = !tile.shared<64x64xbf16>
!r = !tile.ring<2 x !t>
!f = !tile.fragment<64x64xf32>

// What only one role needs is in it alone; scalars that steer copies are in
// both; what does not depend on either stays outside.
// CHECK-LABEL: func @split
func.func @split(%a: memref<?x64xbf16>, %lengths: memref<?xindex>, %o: memref<?x?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  tile.launch grid(%n) warps 12 ins(%a, %lengths : memref<?x64xbf16>, memref<?xindex>) outs(%o : memref<?x?xf32>) {
  ^bb0(%b: index, %A: !g, %L: memref<?xindex, strided<[1], offset: ?>>, %O: memref<?x?xf32, strided<[?, 1], offset: ?>>):
    // CHECK: tile.ring
    %ring = tile.ring : !r
    // CHECK: memref.load
    %end = memref.load %L[%b] : memref<?xindex, strided<[1], offset: ?>>
    %acc = tile.fill %zero : !f
    // CHECK: tile.roles
    // CHECK-NEXT: tile.role "load" warps 4 registers 32 single
    // CHECK-NEXT: scf.for {{.*}} iter_args(%[[USE:.*]] = %{{.*}}) -> (index)
    // CHECK-NEXT: %[[ROW:.*]] = arith.addi
    // CHECK-NEXT: %[[SKIP:.*]] = arith.cmpi
    // CHECK-NEXT: scf.if %[[SKIP]] -> (index)
    // CHECK: tile.acquire %{{.*}}[%[[USE]]]
    // CHECK: tile.load_async %{{.*}}[%[[ROW]], %{{.*}}]
    // CHECK-NOT: tile.wait
    // CHECK: arith.addi %[[USE]]
    // CHECK: tile.role "compute" warps 12 registers 160
    // CHECK: tile.fill
    // CHECK: scf.for
    // CHECK-NOT: tile.acquire
    // CHECK: tile.wait
    // CHECK-NOT: tile.load_async
    // CHECK: tile.release
    // CHECK: tile.store
    %s:2 = scf.for %j = %c0 to %end step %c64 iter_args(%x = %acc, %use = %c0) -> (!f, index) {
      %row = arith.addi %j, %b : index
      %p = arith.cmpi slt, %row, %n : index
      %y:2 = scf.if %p -> (!f, index) {
        %slot = tile.acquire %ring[%use] : !r
        tile.load_async %A[%row, %c0] dims [0, 1] into %slot signals %ring[%use] : !g, !r
        %k = tile.wait %ring[%use] : !r
        %z = tile.mma %k, %k into %x transpose_b : !t, !t, !f -> !f
        tile.release %ring[%use] : !r
        %next = arith.addi %use, %c1 : index
        scf.yield %z, %next : !f, index
      } else {
        scf.yield %x, %use : !f, index
      }
      scf.yield %y#0, %y#1 : !f, index
    }
    tile.store %s#0, %O[%b, %c0] dims [0, 1] : !f, memref<?x?xf32, strided<[?, 1], offset: ?>>
  }
  return
}

// -----

// No rings: nothing to split.
// CHECK-LABEL: func @plain
// CHECK-NOT: tile.roles
func.func @plain(%o: memref<?x?xf32>, %n: index, %x: f32) {
  %c0 = arith.constant 0 : index
  tile.launch grid(%n) warps 4 outs(%o : memref<?x?xf32>) {
  ^bb0(%b: index, %O: memref<?x?xf32, strided<[?, 1], offset: ?>>):
    %f = tile.fill %x : !tile.fragment<64x64xf32>
    tile.store %f, %O[%b, %c0] dims [0, 1] : !tile.fragment<64x64xf32>, memref<?x?xf32, strided<[?, 1], offset: ?>>
  }
  return
}
