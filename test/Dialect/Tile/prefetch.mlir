// RUN: fovea-opt %s --tile-multibuffer --tile-prefetch --split-input-file | FileCheck %s

!g = memref<?x64xbf16, strided<[?, 1], offset: ?>>
!t = !tile.shared<64x64xbf16, swizzle = 128>

// With three slots, copies run two iterations ahead; what their places depend
// on is computed for that iteration. An iteration waits for its own first.

// CHECK-LABEL: func @loads
func.func @loads(%a: memref<?x64xbf16>, %o: memref<?x?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  tile.launch grid(%n) warps 4 stages 3 ins(%a : memref<?x64xbf16>) outs(%o : memref<?x?xf32>) {
  ^bb0(%b: index, %A: !g, %O: memref<?x?xf32, strided<[?, 1], offset: ?>>):
    // The copies of the first iterations start before the wait for another.
    // CHECK:      %[[RING:.*]] = tile.ring : !tile.ring<3 x
    // CHECK:      tile.load_async
    // CHECK-NOT:  tile.wait
    // CHECK:      %[[FIRST:.*]] = arith.cmpi slt, %[[LOW:.*]], %[[HIGH:.*]] : index
    // CHECK-NEXT: scf.if %[[FIRST]] {
    // CHECK-NEXT:   %[[I0:.*]] = arith.addi %[[LOW]], %[[B:.*]] : index
    // CHECK-NEXT:   %[[S0:.*]] = tile.acquire %[[RING]][%[[U0:.*]]]
    // CHECK-NEXT:   tile.load_async %{{.*}}[%[[I0]], %{{.*}}] dims [0, 1] into %[[S0]] signals %[[RING]][%[[U0]]]
    // CHECK-NEXT: }
    // CHECK:      %[[J1:.*]] = arith.addi %[[LOW]], %[[WIDTH:.*]] : index
    // CHECK:      %[[U1:.*]] = arith.addi %[[U0]], %{{.*}} : index
    // CHECK:      %[[SECOND:.*]] = arith.cmpi slt, %[[J1]], %[[HIGH]] : index
    // CHECK-NEXT: scf.if %[[SECOND]] {
    // CHECK:        tile.acquire %[[RING]][%[[U1]]]
    // CHECK:      }
    // CHECK:      tile.wait
    %x = tile.load %A[%b, %c0] dims [0, 1] : !g -> !t
    // CHECK:      scf.for %[[J:.*]] = %[[LOW]] to %[[HIGH]] step %[[WIDTH]] iter_args(%[[USE:.*]] = %[[U0]])
    scf.for %j = %c0 to %n step %c64 {
      // CHECK-NEXT: tile.wait %[[RING]][%[[USE]]]
      %i = arith.addi %j, %b : index
      // CHECK:      %[[JA:.*]] = arith.addi %[[J]], %{{.*}} : index
      // CHECK:      %[[UA:.*]] = arith.addi %[[USE]], %{{.*}} : index
      // CHECK:      %[[AHEAD:.*]] = arith.cmpi slt, %[[JA]], %[[HIGH]] : index
      // CHECK-NEXT: scf.if %[[AHEAD]] {
      // CHECK-NEXT:   %[[IA:.*]] = arith.addi %[[JA]], %[[B]] : index
      // CHECK-NEXT:   %[[SA:.*]] = tile.acquire %[[RING]][%[[UA]]]
      // CHECK-NEXT:   tile.load_async %{{.*}}[%[[IA]], %{{.*}}] dims [0, 1] into %[[SA]] signals %[[RING]][%[[UA]]]
      // CHECK-NEXT: }
      // CHECK-NOT:  tile.load_async
      %y = tile.load %A[%i, %c0] dims [0, 1] : !g -> !t
      // CHECK:      tile.mma
      %p = tile.mma %x, %y transpose_b : !t, !t -> !tile.fragment<64x64xf32>
      // CHECK:      tile.release %[[RING]][%[[USE]]]
      tile.store %p, %O[%i, %c0] dims [0, 1] : !tile.fragment<64x64xf32>, memref<?x?xf32, strided<[?, 1], offset: ?>>
    }
  }
  return
}

// -----

!g = memref<?x64xbf16, strided<[?, 1], offset: ?>>
!t = !tile.shared<64x64xbf16, swizzle = 128>

// A copy from a place that is known in its iteration alone, and one with a
// single slot, stay.

// CHECK-LABEL: func @others
// CHECK-NOT:   scf.if
// CHECK:       scf.for
// CHECK-NOT:   scf.if
// CHECK:         tile.load_async
// CHECK:       return
func.func @others(%a: memref<?x64xbf16>, %o: memref<?x?xf32>, %p: memref<?xindex, strided<[1], offset: ?>>, %n: index) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  tile.launch grid(%n) warps 4 ins(%a, %p : memref<?x64xbf16>, memref<?xindex, strided<[1], offset: ?>>) outs(%o : memref<?x?xf32>) {
  ^bb0(%b: index, %A: !g, %P: memref<?xindex, strided<[1], offset: ?>>, %O: memref<?x?xf32, strided<[?, 1], offset: ?>>):
    scf.for %j = %c0 to %n step %c64 {
      %i = memref.load %P[%j] : memref<?xindex, strided<[1], offset: ?>>
      %y = tile.load %A[%i, %c0] dims [0, 1] : !g -> !t
      %s = tile.mma %y, %y transpose_b : !t, !t -> !tile.fragment<64x64xf32>
      tile.store %s, %O[%i, %c0] dims [0, 1] : !tile.fragment<64x64xf32>, memref<?x?xf32, strided<[?, 1], offset: ?>>
    }
  }
  return
}

// -----

!g = memref<?x64xbf16, strided<[?, 1], offset: ?>>
!t = !tile.shared<64x64xbf16, swizzle = 128>

// The rows that are left out are found for the iteration of the copy, too.

// CHECK-LABEL: func @rows
// CHECK-SAME:    %[[N:[^:]*]]: index)
// CHECK:       scf.for %[[J:[^ ]*]] =
// CHECK:         %[[JA:.*]] = arith.addi %[[J]], %{{.*}} : index
// CHECK:         scf.if
// CHECK-NEXT:      %[[LEFT:.*]] = arith.subi %[[N]], %[[JA]] : index
// CHECK-NEXT:      tile.acquire
// CHECK-NEXT:      tile.load_async %{{.*}}[%[[JA]], %{{.*}}] dims [0, 1] rows(%{{.*}}, %[[LEFT]]) into
func.func @rows(%a: memref<?x64xbf16>, %o: memref<?x?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  tile.launch grid(%n) warps 4 stages 2 ins(%a : memref<?x64xbf16>) outs(%o : memref<?x?xf32>) {
  ^bb0(%b: index, %A: !g, %O: memref<?x?xf32, strided<[?, 1], offset: ?>>):
    scf.for %j = %c0 to %n step %c64 {
      %left = arith.subi %n, %j : index
      %y = tile.load %A[%j, %c0] dims [0, 1] rows(%c0, %left) : !g -> !t
      %p = tile.mma %y, %y transpose_b : !t, !t -> !tile.fragment<64x64xf32>
      tile.store %p, %O[%j, %c0] dims [0, 1] : !tile.fragment<64x64xf32>, memref<?x?xf32, strided<[?, 1], offset: ?>>
    }
  }
  return
}

// -----

// Places of rows are those of the iteration that the copy is for.

!g = memref<?x64xbf16, strided<[?, 1], offset: ?>>
!t = !tile.shared<64x64xbf16, swizzle = 128>

// CHECK-LABEL: func @places
func.func @places(%a: memref<?x64xbf16>, %o: memref<?x?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  tile.launch grid(%n) warps 4 stages 2 ins(%a : memref<?x64xbf16>) outs(%o : memref<?x?xf32>) {
  ^bb0(%b: index, %A: !g, %O: memref<?x?xf32, strided<[?, 1], offset: ?>>):
    // CHECK: scf.for %[[J:.*]] = %{{.*}} to %{{.*}} step %[[WIDTH:.*]] iter_args
    scf.for %j = %c0 to %n step %c64 {
      %i = arith.addi %j, %b : index
      // CHECK-NEXT: tile.wait
      // CHECK:      %[[JA:.*]] = arith.addi %[[J]], %[[WIDTH]]
      // CHECK:      scf.if
      // CHECK-NEXT:   %[[IA:.*]] = arith.addi %[[JA]], %{{.*}} : index
      // CHECK-NEXT:   tile.acquire
      // CHECK-NEXT:   tile.load_async %{{.*}} dims [0, 1] runs 16 {
      // CHECK-NEXT:   ^bb0(%[[R:.*]]: index):
      // CHECK-NEXT:     arith.addi %[[IA]], %[[R]]
      %y = tile.load %A dims [0, 1] runs 16 {
      ^bb0(%r: index):
        %row = arith.addi %i, %r : index
        tile.yield %row : index
      } : !g -> !t
      // CHECK:      tile.mma
      %p = tile.mma %y, %y transpose_b : !t, !t -> !tile.fragment<64x64xf32>
      tile.store %p, %O[%i, %c0] dims [0, 1] : !tile.fragment<64x64xf32>, memref<?x?xf32, strided<[?, 1], offset: ?>>
    }
  }
  return
}
