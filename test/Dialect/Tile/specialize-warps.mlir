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

!f = !tile.fragment<64x64xf32>
!t = !tile.shared<64x64xf32, swizzle = 128>
!r = !tile.ring<1 x !t>
!o = memref<?x64xf32, strided<[?, 1], offset: ?>>
!n = memref<?xi32, strided<[1], offset: ?>>

// Stores of what is written to a ring have a role, which takes the turns, too;
// it shares a warp group with copies, if there are any. What else is stored
// stays.
// CHECK-LABEL: func @send
func.func @send(%o: memref<?x64xf32>, %turns: memref<?xi32>, %n: index, %x: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  tile.launch grid(%n) warps 8 outs(%o, %turns : memref<?x64xf32>, memref<?xi32>) {
  ^bb0(%b: index, %O: !o, %T: !n):
    // CHECK: %[[RING:.*]] = tile.ring
    %ring = tile.ring : !r
    // CHECK-NOT: tile.role "load"
    // CHECK: tile.role "store" warps 4 registers 24 single
    // CHECK-NEXT: scf.for %[[I:.*]] = {{.*}} iter_args(%[[U:.*]] = %{{.*}}) -> (index)
    // CHECK-NEXT: %[[W:.*]] = tile.wait %[[RING]][%[[U]]]
    // CHECK-NEXT: tile.take_turn %{{.*}} at %[[I]]
    // CHECK-NEXT: tile.store_async add %[[W]]
    // CHECK-NEXT: tile.wait_stores
    // CHECK-NEXT: tile.release %[[RING]][%[[U]]]
    // CHECK-NEXT: arith.addi %[[U]]
    // CHECK-NEXT: tile.pass_turn
    // CHECK: tile.pass_turn
    // CHECK: tile.role "compute" warps 8 registers 240
    // CHECK: scf.for
    // CHECK: %[[S:.*]] = tile.acquire %[[RING]]
    // CHECK-NEXT: tile.write %{{.*}} into %[[S]]
    // CHECK-NOT: tile.wait %
    // CHECK-NOT: _turn
    // CHECK: %[[T:.*]] = tile.to_shared
    // CHECK-NEXT: tile.store_async %[[T]]
    // CHECK-NEXT: tile.wait_stores
    %f = tile.fill %x : !f
    %end = scf.for %i = %c0 to %n step %c1 iter_args(%use = %c0) -> (index) {
      %slot = tile.acquire %ring[%use] : !r
      tile.write %f into %slot signals %ring[%use] : !f, !r
      %w = tile.wait %ring[%use] : !r
      tile.take_turn %T[%b] at %i : !n
      tile.store_async add %w, %O[%i, %c0] dims [0, 1] : !t, !o
      tile.wait_stores
      tile.release %ring[%use] : !r
      %next = arith.addi %use, %c1 : index
      tile.pass_turn %T[%b] to %next : !n
      scf.yield %next : index
    }
    tile.pass_turn %T[%b] : !n
    %t = tile.to_shared %f : !f -> !t
    tile.store_async %t, %O[%b, %c0] dims [0, 1] : !t, !o
    tile.wait_stores
  }
  return
}

// -----

// Where threads add, too, they take the turns for all.
// CHECK-LABEL: func @threads_add
// CHECK-NOT: tile.role "store"
!f = !tile.fragment<64x64xf32>
!t = !tile.shared<64x64xf32, swizzle = 128>
!r = !tile.ring<1 x !t>
!o = memref<?x64xf32, strided<[?, 1], offset: ?>>
!n = memref<?xi32, strided<[1], offset: ?>>
func.func @threads_add(%o: memref<?x64xf32>, %turns: memref<?xi32>, %n: index, %x: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  tile.launch grid(%n) warps 8 outs(%o, %turns : memref<?x64xf32>, memref<?xi32>) {
  ^bb0(%b: index, %O: !o, %T: !n):
    %ring = tile.ring : !r
    %f = tile.fill %x : !f
    scf.for %i = %c0 to %n step %c1 {
      %slot = tile.acquire %ring[%i] : !r
      tile.write %f into %slot signals %ring[%i] : !f, !r
      %w = tile.wait %ring[%i] : !r
      tile.take_turn %T[%b] at %i : !n
      tile.store_async add %w, %O[%i, %c0] dims [0, 1] : !t, !o
      tile.wait_stores
      tile.release %ring[%i] : !r
      tile.store add %f, %O[%i, %c0] dims [0, 1] : !f, !o
      tile.pass_turn %T[%b] to %i : !n
    }
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
