// A schedule that is written by hand.
// RUN: fovea-opt %s --tile-expand-pipeline --split-input-file | FileCheck %s

// The tile stays within stage 0, and the fragment that is read from it crosses:
// the loads of the first step and of the loop have memory of their own each.
// CHECK-LABEL: func.func @fragment_crosses(
// CHECK: %[[SUM0:.*]] = tile.fill
// CHECK: scf.if
// CHECK:   %[[T0:.*]] = tile.load %{{.*}}[%c0{{.*}}, %c0{{.*}}]
// CHECK:   %[[X0:.*]] = tile.from_shared %[[T0]]
// CHECK:   %[[LOOP:.*]]:2 = scf.for %[[J:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[SUM:.*]] = %[[SUM0]], %[[X:.*]] = %[[X0]])
// CHECK:     %[[T1:.*]] = tile.load %{{.*}}[%[[J]], %c0{{.*}}]
// CHECK:     %[[NEXT:.*]] = tile.map ins(%[[SUM]], %[[X]] :
// CHECK:     %[[X1:.*]] = tile.from_shared %[[T1]]
// CHECK:     scf.yield %[[NEXT]], %[[X1]]
// CHECK:   %[[LAST:.*]] = tile.map ins(%[[LOOP]]#0, %[[LOOP]]#1 :
// CHECK:   scf.yield %[[LAST]]
// CHECK-NOT: tile.stage
!m = memref<?x8xf32, strided<[?, 1], offset: ?>>
!f = !tile.fragment<8x8xf32>
func.func @fragment_crosses(%k: memref<?x8xf32>, %o: memref<?x8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  tile.launch grid(%n) warps 4 ins(%k : memref<?x8xf32>) outs(%o : memref<?x8xf32>) {
  ^bb0(%b: index, %K: !m, %O: !m):
    %zero = arith.constant 0.0 : f32
    %none = tile.fill %zero : !f
    %all = scf.for %j = %c0 to %n step %c8 iter_args(%sum = %none) -> !f {
      %t = tile.load %K[%j, %c0] dims [0, 1] {tile.stage = 0, tile.order = 0} : !m -> !tile.shared<8x8xf32>
      %x = tile.from_shared %t {tile.stage = 0, tile.order = 2} : !tile.shared<8x8xf32> -> !f
      %next = tile.map ins(%sum, %x : !f, !f) attributes {tile.stage = 1, tile.order = 1} {
      ^bb0(%a: f32, %c: f32, %row: index, %column: index):
        %d = arith.addf %a, %c : f32
        tile.yield %d : f32
      } -> !f
      scf.yield %next : !f
    }
    tile.store %all, %O[%c0, %c0] dims [0, 1] : !f, !m
  }
  return
}

// -----

// What holds in the first iteration only: the condition itself in front of the loop,
// false in stage 0 of others, in branches as well; stage 1 may be the first one's, but
// not behind the loop, unless it is the only one's.
// CHECK-LABEL: func.func @first_only(
// CHECK:       scf.if
// CHECK-NEXT:    %[[LESS0:.*]] = arith.cmpi
// CHECK-NOT:   tile.first_only
// CHECK:       scf.if %[[LESS0]]
// CHECK:       scf.for %[[J:.*]] = %{{.*}} iter_args({{.*}}%[[LAST:[^ ,]*]] = %[[LESS0]],
// CHECK:         %[[NOW:.*]] = tile.first_only %[[LAST]]
// CHECK:         %[[LESS:.*]] = arith.cmpi slt, %[[J]]
// CHECK-NOT:     tile.first_only
// CHECK:         %[[NO:.*]] = arith.constant false
// CHECK:         scf.if %[[NO]]
// CHECK:         scf.if %[[NOW]]
// CHECK:         scf.yield %{{.*}}, %[[LESS]],
// CHECK-NOT:   tile.first_only
!m = memref<?x8xf32, strided<[?, 1], offset: ?>>
!f = !tile.fragment<8x8xf32>
func.func @first_only(%k: memref<?x8xf32>, %o: memref<?x8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  tile.launch grid(%n) warps 4 ins(%k : memref<?x8xf32>) outs(%o : memref<?x8xf32>) {
  ^bb0(%b: index, %K: !m, %O: !m):
    %zero = arith.constant 0.0 : f32
    %none = tile.fill %zero : !f
    %all = scf.for %j = %c0 to %n step %c8 iter_args(%sum = %none) -> !f {
      %less = arith.cmpi slt, %j, %c8 {tile.stage = 0, tile.order = 1} : index
      %first = tile.first_only %less {tile.stage = 0, tile.order = 2}
      %t = tile.load %K[%j, %c0] dims [0, 1] {tile.stage = 0, tile.order = 3} : !m -> !f
      %x = scf.if %first -> !f {
        scf.yield %none : !f
      } else {
        scf.yield %t : !f
      } {tile.stage = 0, tile.order = 4}
      %late = tile.first_only %less {tile.stage = 1, tile.order = 0}
      %next = scf.if %late -> !f {
        scf.yield %x : !f
      } else {
        scf.yield %sum : !f
      } {tile.stage = 1, tile.order = 5}
      scf.yield %next : !f
    }
    tile.store %all, %O[%c0, %c0] dims [0, 1] : !f, !m
  }
  return
}

// -----

// A loop without stages stays as it is.
// CHECK-LABEL: func.func @unscheduled(
// CHECK: scf.for
// CHECK-NEXT: tile.load
// CHECK-NEXT: tile.store
// CHECK-NEXT: }
!m = memref<?x8xf32, strided<[?, 1], offset: ?>>
!f = !tile.fragment<8x8xf32>
func.func @unscheduled(%k: memref<?x8xf32>, %o: memref<?x8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  tile.launch grid(%n) warps 4 ins(%k : memref<?x8xf32>) outs(%o : memref<?x8xf32>) {
  ^bb0(%b: index, %K: !m, %O: !m):
    scf.for %j = %c0 to %n step %c8 {
      %x = tile.load %K[%j, %c0] dims [0, 1] : !m -> !f
      tile.store %x, %O[%j, %c0] dims [0, 1] : !f, !m
    }
  }
  return
}
