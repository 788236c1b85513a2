// RUN: fovea-opt %s --tile-precompute-items --split-input-file | FileCheck %s

!o = memref<?x?xf32, strided<[?, 1], offset: ?>>
!p = memref<1xi32, strided<[1], offset: ?>>
!t = memref<?xi32, strided<[1], offset: ?>>

// What follows by divisions and reads of tables is collected, with what the loop computes
// for all programs alike; sums, casts and comparisons of that stay outside, and so do
// numbers that the round decides.

// CHECK-LABEL: func @chain
// CHECK:       ^bb0(%{{.*}}: index, %[[T:.*]]: memref<?xi32
// CHECK:         scf.for %[[R:.*]] = %
// CHECK-NEXT:      %[[I:.*]] = tile.dealt %
// CHECK:           %[[N:.*]]:2 = tile.of_item %[[I]] {
// CHECK-NEXT:      ^bb0(%[[X:.*]]: index):
// CHECK-NEXT:        %[[LESS:.*]] = arith.subi %{{.*}}, %{{.*}} : index
// CHECK-NEXT:        %[[ROW:.*]] = arith.divui %[[X]], %[[LESS]]
// CHECK-NEXT:        %[[BEFORE:.*]] = arith.muli %[[ROW]], %[[LESS]]
// CHECK-NEXT:        %[[PLACE:.*]] = arith.subi %[[X]], %[[BEFORE]]
// CHECK-NEXT:        %[[READ:.*]] = memref.load %[[T]][%[[PLACE]]]
// CHECK-NEXT:        tile.yield %[[ROW]], %[[READ]] : index, i32
// CHECK-NEXT:      } : index, i32
// CHECK-NEXT:      %[[FIRST:.*]] = arith.index_castui %[[N]]#1
// CHECK-NEXT:      %[[END:.*]] = arith.addi %[[FIRST]], %[[N]]#0
// CHECK-NEXT:      %[[IS:.*]] = arith.cmpi slt, %[[FIRST]], %[[END]]
// CHECK-NEXT:      %[[TURN:.*]] = arith.divui %[[R]], %
// CHECK:           scf.if %[[IS]]
// CHECK-NEXT:        tile.store %{{.*}}, %{{.*}}[%[[END]], %[[TURN]]]
// CHECK-NEXT:        tile.store %{{.*}}, %{{.*}}[%[[FIRST]], %[[N]]#0]
func.func @chain(%t: !t, %o: !o, %p: !p, %n: index) {
  tile.launch grid(%n) persistent dealt warps 1 ins(%t : !t) outs(%o, %p : !o, !p) {
  ^bb0(%b: index, %T: !t, %O: !o, %P: !p):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %rounds = tile.dealt_count %P of %n : !p
    scf.for %r = %c0 to %rounds step %c1 {
      %less = arith.subi %n, %c1 : index
      %i = tile.dealt %P[%r] of %n : !p
      %row = arith.divui %i, %less : index
      %before = arith.muli %row, %less : index
      %place = arith.subi %i, %before : index
      %read = memref.load %T[%place] : !t
      %first = arith.index_castui %read : i32 to index
      %end = arith.addi %first, %row : index
      %is = arith.cmpi slt, %first, %end : index
      %turn = arith.divui %r, %n : index
      %f = tile.fill %zero : !tile.fragment<16x32xf32>
      scf.if %is {
        tile.store %f, %O[%end, %turn] dims [0, 1] : !tile.fragment<16x32xf32>, !o
        tile.store %f, %O[%first, %row] dims [0, 1] : !tile.fragment<16x32xf32>, !o
      }
    }
  }
  return
}

// -----

!o = memref<?x?xf32, strided<[?, 1], offset: ?>>
!p = memref<1xi32, strided<[1], offset: ?>>
!t = memref<?xi32, strided<[1], offset: ?>>

// What stays: a table that the launch writes, sums, and a loop whose programs are not dealt.

// CHECK-LABEL: func @stays
// CHECK-NOT:     tile.of_item
// CHECK:         tile.dealt %
// CHECK-NEXT:    arith.addi
// CHECK-NEXT:    memref.load
// CHECK-NOT:     tile.of_item
func.func @stays(%t: !t, %o: !o, %p: !p, %n: index) {
  tile.launch grid(%n) persistent dealt warps 1 outs(%t, %o, %p : !t, !o, !p) {
  ^bb0(%b: index, %T: !t, %O: !o, %P: !p):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %rounds = tile.dealt_count %P of %n : !p
    scf.for %r = %c0 to %rounds step %c1 {
      %i = tile.dealt %P[%r] of %n : !p
      %place = arith.addi %i, %c1 : index
      %read = memref.load %T[%place] : !t
      memref.store %read, %T[%i] : !t
      %column = arith.index_castui %read : i32 to index
      %f = tile.fill %zero : !tile.fragment<16x32xf32>
      tile.store %f, %O[%place, %column] dims [0, 1] : !tile.fragment<16x32xf32>, !o
    }
    scf.for %r = %c0 to %n step %c1 {
      %row = arith.divui %r, %n : index
      %f = tile.fill %zero : !tile.fragment<16x32xf32>
      tile.store %f, %O[%row, %c0] dims [0, 1] : !tile.fragment<16x32xf32>, !o
    }
  }
  return
}
