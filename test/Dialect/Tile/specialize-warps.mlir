// RUN: fovea-opt %s --tile-specialize-warps --split-input-file | FileCheck %s
// RUN: fovea-opt %s --tile-specialize-warps --cse --canonicalize --split-input-file | FileCheck %s --check-prefix=LANES

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
    // CHECK: tile.role "compute" warps 12 registers 160{{ }}
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
    // CHECK: tile.role "compute" warps 8 registers 240{{ }}
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
    %t = tile.to_shared %f : !f -> !t
    tile.store_async %t, %O[%b, %c0] dims [0, 1] : !t, !o
    tile.wait_stores
  }
  return
}

// -----

// Turns of two lanes are taken by two roles. Each sends what is of its lane, and
// goes through the ring with the other.
// LANES-LABEL: func @lanes
// LANES:       tile.role "load" warps 1 registers 24 single
// LANES:       tile.role "store0" warps 1 registers 24 single
// LANES:         %[[IS0:.*]] = arith.cmpi eq, %[[L0:.*]], %c0{{ }}
// LANES-NEXT:    scf.if %[[IS0]] {
// LANES-NEXT:      tile.take_turn %{{.*}}[%[[L0]], %{{.*}}] at
// LANES-NEXT:    }
// LANES-NEXT:    %[[W0:.*]] = tile.wait %[[RING:.*]][%{{.*}}]
// LANES-NEXT:    scf.if %[[IS0]] {
// LANES-NEXT:      tile.store_async add %[[W0]]
// LANES-NEXT:      tile.wait_stores
// LANES-NEXT:    }
// LANES-NEXT:    tile.release %[[RING]]
// LANES:         scf.if %[[IS0]] {
// LANES-NEXT:      tile.pass_turn %{{.*}}[%[[L0]], %{{.*}}] to
// LANES:         tile.take_turn %{{.*}}[%c0, %{{.*}}] at
// LANES-NEXT:    tile.pass_turn %{{.*}}[%c0, %{{.*}}] to
// LANES-NEXT:  }
// LANES:       tile.role "store1" warps 2 registers 24 single
// LANES:         arith.cmpi eq, %{{.*}}, %c1{{ }}
// LANES:         tile.take_turn
// LANES:         tile.wait %[[RING]]
// LANES:         tile.store_async add
// LANES:         tile.release %[[RING]]
// LANES:         tile.pass_turn
// LANES:         tile.take_turn %{{.*}}[%c1, %{{.*}}] at
// LANES-NEXT:    tile.pass_turn %{{.*}}[%c1, %{{.*}}] to
// LANES-NEXT:  }
// LANES:       tile.role "compute"
// LANES-NOT:   _turn
!f = !tile.fragment<64x64xf32>
!t = !tile.shared<64x64xf32, swizzle = 128>
!r = !tile.ring<1 x !t>
!o = memref<?x64xf32, strided<[?, 1], offset: ?>>
!n = memref<2x?xi32, strided<[?, 1], offset: ?>>
func.func @lanes(%x: memref<?x64xf32>, %o: memref<?x64xf32>, %turns: memref<2x?xi32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  tile.launch grid(%n) warps 8 ins(%x : memref<?x64xf32>) outs(%o, %turns : memref<?x64xf32>, memref<2x?xi32>) {
  ^bb0(%b: index, %X: !o, %O: !o, %T: !n):
    %in = tile.ring : !r
    %ring = tile.ring : !r
    scf.for %i = %c0 to %n step %c1 {
      %free = tile.acquire %in[%i] : !r
      tile.load_async %X[%i, %c0] dims [0, 1] into %free signals %in[%i] : !o, !r
      %s = tile.wait %in[%i] : !r
      %f = tile.from_shared %s : !t -> !f
      tile.release %in[%i] : !r
      %lane = arith.remui %i, %c2 : index
      tile.take_turn %T[%lane, %b] at %i lanes 2 : !n
      %slot = tile.acquire %ring[%i] : !r
      tile.write %f into %slot signals %ring[%i] : !f, !r
      %w = tile.wait %ring[%i] : !r
      tile.store_async add %w, %O[%i, %c0] dims [0, 1] : !t, !o
      tile.wait_stores
      tile.release %ring[%i] : !r
      %next = arith.addi %i, %c1 : index
      tile.pass_turn %T[%lane, %b] to %next lanes 2 : !n
    }
    tile.take_turn %T[%c0, %b] at %n lanes 2 : !n
    tile.pass_turn %T[%c0, %b] to %n lanes 2 : !n
    tile.take_turn %T[%c1, %b] at %n lanes 2 : !n
    tile.pass_turn %T[%c1, %b] to %n lanes 2 : !n
  }
  return
}

// -----

// Where threads add, too, they take the turns for all.
// CHECK-LABEL: func @threads_add
// LANES-LABEL: func @threads_add
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

// -----

// Copies of runs of rows: all threads of the role's warps run it, with what the
// regions use, and with registers for places that each warp group leaves.

!g = memref<?x64xbf16, strided<[?, 1], offset: ?>>
!t = !tile.shared<64x64xbf16>
!r = !tile.ring<2 x !t>

// CHECK-LABEL: func @runs
// CHECK:         tile.role "load" warps 4 registers 40 {
// CHECK-NEXT:      scf.for %[[J:.*]] = %{{.*}} iter_args(%[[USE:.*]] = %{{.*}}) -> (index)
// CHECK-NEXT:        %[[FIRST:.*]] = arith.muli %[[J]]
// CHECK-NEXT:        tile.acquire %{{.*}}[%[[USE]]]
// CHECK-NEXT:        tile.load_async %{{.*}} dims [0, 1] runs 16 {
// CHECK-NEXT:        ^bb0(%[[R:.*]]: index):
// CHECK-NEXT:          arith.addi %[[FIRST]], %[[R]]
// CHECK:         tile.role "compute" warps 8 registers 232{{ }}
func.func @runs(%a: memref<?x64xbf16>, %o: memref<?x?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  tile.launch grid(%n) warps 8 ins(%a : memref<?x64xbf16>) outs(%o : memref<?x?xf32>) {
  ^bb0(%b: index, %A: !g, %O: memref<?x?xf32, strided<[?, 1], offset: ?>>):
    %ring = tile.ring : !r
    %uses = scf.for %j = %c0 to %n step %c1 iter_args(%use = %c0) -> (index) {
      %first = arith.muli %j, %c64 : index
      %slot = tile.acquire %ring[%use] : !r
      tile.load_async %A dims [0, 1] runs 16 {
      ^bb0(%r: index):
        %row = arith.addi %first, %r : index
        tile.yield %row : index
      } into %slot signals %ring[%use] : !g, !r
      %k = tile.wait %ring[%use] : !r
      %z = tile.mma %k, %k transpose_b : !t, !t -> !tile.fragment<64x64xf32>
      tile.store %z, %O[%j, %c0] dims [0, 1] : !tile.fragment<64x64xf32>, memref<?x?xf32, strided<[?, 1], offset: ?>>
      tile.release %ring[%use] : !r
      %next = arith.addi %use, %c1 : index
      scf.yield %next : index
    }
  }
  return
}

// -----

!g = memref<?x64xi8, strided<[?, 1], offset: ?>>
!b = !tile.shared<64x64xi8, swizzle = 64>
!w = !tile.shared<64x64xbf16, swizzle = 128>
!n = !tile.ring<3 x !b>
!r = !tile.ring<2 x !w>
!f = !tile.fragment<64x64xf32>

// A warp group of its own widens what one thread copies. The three groups divide the
// registers: each thread starts with 168.
// CHECK-LABEL: func @widen
func.func @widen(%a: memref<?x64xi8>, %o: memref<?x?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  tile.launch grid(%n) warps 4 ins(%a : memref<?x64xi8>) outs(%o : memref<?x?xf32>) {
  ^bb0(%b: index, %A: !g, %O: memref<?x?xf32, strided<[?, 1], offset: ?>>):
    // CHECK: %[[BYTES:.*]] = tile.ring : !tile.ring<3
    // CHECK: %[[WIDE:.*]] = tile.ring : !tile.ring<2
    %bytes = tile.ring : !n
    %wide = tile.ring : !r
    %acc = tile.fill %zero : !f
    // CHECK: tile.role "load" warps 4 registers 136 single
    // CHECK: tile.acquire %[[BYTES]]
    // CHECK: tile.load_async
    // CHECK-NOT: tile.wait
    // CHECK: tile.role "widen" warps 4 registers 128{{ }}
    // CHECK: scf.for
    // CHECK-NOT: tile.load_async
    // CHECK: %[[FULL:.*]] = tile.wait %[[BYTES]]
    // CHECK: %[[SLOT:.*]] = tile.acquire %[[WIDE]]
    // CHECK: tile.widen_into %[[FULL]] from f8E4M3FN warps 4 into %[[SLOT]] signals %[[WIDE]]
    // CHECK: tile.release %[[BYTES]]
    // CHECK-NOT: tile.wait
    // CHECK: tile.role "compute" warps 4 registers 240{{ }}
    // CHECK-NOT: %[[BYTES]]
    // CHECK: tile.wait %[[WIDE]]
    // CHECK: tile.mma
    // CHECK: tile.release %[[WIDE]]
    // CHECK: tile.store
    %s:2 = scf.for %j = %c0 to %n step %c64 iter_args(%x = %acc, %use = %c0) -> (!f, index) {
      %empty = tile.acquire %bytes[%use] : !n
      tile.load_async %A[%j, %c0] dims [0, 1] into %empty signals %bytes[%use] : !g, !n
      %full = tile.wait %bytes[%use] : !n
      %slot = tile.acquire %wide[%use] : !r
      tile.widen_into %full from f8E4M3FN warps 4 into %slot signals %wide[%use] : !b, !r
      tile.release %bytes[%use] : !n
      %k = tile.wait %wide[%use] : !r
      %z = tile.mma %k, %k into %x transpose_b : !w, !w, !f -> !f
      tile.release %wide[%use] : !r
      %next = arith.addi %use, %c1 : index
      scf.yield %z, %next : !f, index
    }
    tile.store %s#0, %O[%b, %c0] dims [0, 1] : !f, memref<?x?xf32, strided<[?, 1], offset: ?>>
  }
  return
}

// -----

!g = memref<?x64xbf16, strided<[?, 1], offset: ?>>
!t = !tile.shared<64x64xbf16>
!f = !tile.fragment<64x64xf32>

// Copies for an item have a thread of their own where there is one slot: it waits
// until all steps have read the slot. With two slots `load` makes them.
// CHECK-LABEL: func @items
func.func @items(%a: memref<?x64xbf16>, %o: memref<?x?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  tile.launch grid(%n) warps 4 ins(%a : memref<?x64xbf16>) outs(%o : memref<?x?xf32>) {
  ^bb0(%b: index, %A: !g, %O: memref<?x?xf32, strided<[?, 1], offset: ?>>):
    // CHECK: %[[QS:.*]] = tile.ring : !tile.ring<1
    // CHECK: %[[TWO:.*]] = tile.ring : !tile.ring<2
    // CHECK: %[[KS:.*]] = tile.ring : !tile.ring<2
    %qs = tile.ring : !tile.ring<1 x !t>
    %two = tile.ring : !tile.ring<2 x !t>
    %ks = tile.ring : !tile.ring<2 x !t>
    // CHECK: tile.role "load" warps 2 single
    // CHECK-NOT: %[[QS]]
    // CHECK: tile.acquire %[[TWO]]
    // CHECK-NOT: %[[QS]]
    // CHECK: tile.acquire %[[KS]]
    // CHECK-NOT: %[[QS]]
    // CHECK: tile.role "load_item" warps 2 single
    // CHECK: scf.for
    // CHECK: tile.acquire %[[QS]]
    // CHECK-NEXT: tile.load_async {{.*}} signals %[[QS]]
    // CHECK-NOT: tile.acquire
    // CHECK: tile.role "compute"
    // CHECK-NOT: tile.acquire
    // CHECK: tile.wait %[[QS]]
    scf.for %i = %c0 to %n step %c1 {
      %q0 = tile.acquire %qs[%i] : !tile.ring<1 x !t>
      tile.load_async %A[%i, %c0] dims [0, 1] into %q0 signals %qs[%i] : !g, !tile.ring<1 x !t>
      %r0 = tile.acquire %two[%i] : !tile.ring<2 x !t>
      tile.load_async %A[%i, %c0] dims [0, 1] into %r0 signals %two[%i] : !g, !tile.ring<2 x !t>
      %q = tile.wait %qs[%i] : !tile.ring<1 x !t>
      %r = tile.wait %two[%i] : !tile.ring<2 x !t>
      %acc = tile.fill %zero : !f
      %s:2 = scf.for %j = %c0 to %n step %c64 iter_args(%x = %acc, %use = %c0) -> (!f, index) {
        %slot = tile.acquire %ks[%use] : !tile.ring<2 x !t>
        tile.load_async %A[%j, %c0] dims [0, 1] into %slot signals %ks[%use] : !g, !tile.ring<2 x !t>
        %k = tile.wait %ks[%use] : !tile.ring<2 x !t>
        %y = tile.mma %q, %k into %x transpose_b : !t, !t, !f -> !f
        %z = tile.mma %r, %k into %y transpose_b : !t, !t, !f -> !f
        tile.release %ks[%use] : !tile.ring<2 x !t>
        %next = arith.addi %use, %c1 : index
        scf.yield %z, %next : !f, index
      }
      tile.release %qs[%i] : !tile.ring<1 x !t>
      tile.release %two[%i] : !tile.ring<2 x !t>
      tile.store %s#0, %O[%i, %c0] dims [0, 1] : !f, memref<?x?xf32, strided<[?, 1], offset: ?>>
    }
  }
  return
}
