// RUN: fovea-opt %s --canonicalize | FileCheck %s

!s = !tile.fragment<8x4xf32>
!r = !tile.fragment<8xf32>
!c = !tile.fragment<4xf32>

// CHECK-LABEL: func @unused_operands
// CHECK-SAME: (%[[A:.*]]: !tile.fragment<8x4xf32>, %[[B:.*]]: !tile.fragment<8x4xf32>, %[[R:.*]]: !tile.fragment<8xf32>, %[[C:.*]]: !tile.fragment<4xf32>)
func.func @unused_operands(%a: !s, %b: !s, %r: !r, %c: !c) -> !s {
  // CHECK: tile.map ins(%[[B]] : !tile.fragment<8x4xf32>) columns(%[[C]] : !tile.fragment<4xf32>) {
  // CHECK-NEXT: ^bb0(%[[Y:.*]]: f32, %[[W:.*]]: f32, %{{.*}}: index, %{{.*}}: index):
  // CHECK-NEXT: arith.addf %[[Y]], %[[W]] : f32
  %0 = tile.map ins(%a, %b : !s, !s) rows(%r : !r) columns(%c : !c) {
  ^bb0(%x: f32, %y: f32, %z: f32, %w: f32, %i: index, %j: index):
    %d = arith.addf %y, %w : f32
    tile.yield %d : f32
  } -> !s
  return %0 : !s
}

// CHECK-LABEL: func @operand_twice
// CHECK-SAME: (%[[A:.*]]: !tile.fragment<8x8xf32>, %[[R:.*]]: !tile.fragment<8xf32>)
func.func @operand_twice(%a: !tile.fragment<8x8xf32>, %r: !r) -> !tile.fragment<8x8xf32> {
  // The same vector along rows and along columns is not the same element.
  // CHECK: tile.map ins(%[[A]] : !tile.fragment<8x8xf32>) rows(%[[R]] : !tile.fragment<8xf32>) columns(%[[R]] : !tile.fragment<8xf32>) {
  // CHECK-NEXT: ^bb0(%[[X:.*]]: f32, %[[Z:.*]]: f32, %[[W:.*]]: f32, %{{.*}}: index, %{{.*}}: index):
  // CHECK-NEXT: arith.mulf %[[X]], %[[X]] : f32
  %0 = tile.map ins(%a, %a : !tile.fragment<8x8xf32>, !tile.fragment<8x8xf32>) rows(%r : !r) columns(%r : !r) {
  ^bb0(%x: f32, %y: f32, %z: f32, %w: f32, %i: index, %j: index):
    %d = arith.mulf %x, %y : f32
    %e = arith.subf %d, %z : f32
    %f = arith.subf %e, %w : f32
    tile.yield %f : f32
  } -> !tile.fragment<8x8xf32>
  return %0 : !tile.fragment<8x8xf32>
}

// CHECK-LABEL: func @operand_fill
// CHECK-SAME: (%[[A:.*]]: !tile.fragment<8x4xf32>, %[[V:.*]]: f32)
func.func @operand_fill(%a: !s, %v: f32) -> !s {
  // CHECK-NOT: tile.fill
  // CHECK: tile.map ins(%[[A]] : !tile.fragment<8x4xf32>) {
  // CHECK-NEXT: ^bb0(%[[X:.*]]: f32, %{{.*}}: index, %{{.*}}: index):
  // CHECK-NEXT: arith.addf %[[X]], %[[V]] : f32
  %z = tile.fill %v : !r
  %0 = tile.map ins(%a : !s) rows(%z : !r) {
  ^bb0(%x: f32, %y: f32, %i: index, %j: index):
    %d = arith.addf %x, %y : f32
    tile.yield %d : f32
  } -> !s
  return %0 : !s
}

// CHECK-LABEL: func @map_of_fills
// CHECK-SAME: (%[[V:.*]]: f32)
func.func @map_of_fills(%v: f32) -> !s {
  // CHECK-NOT: tile.fill
  // CHECK: tile.map {
  // CHECK: %[[N:.*]] = arith.negf %[[V]] : f32
  // CHECK: tile.yield %[[N]]
  %z = tile.fill %v : !s
  %0 = tile.map ins(%z : !s) {
  ^bb0(%x: f32, %i: index, %j: index):
    %d = arith.negf %x : f32
    tile.yield %d : f32
  } -> !s
  return %0 : !s
}

// CHECK-LABEL: func @identity
// CHECK-SAME: (%[[A:.*]]: !tile.fragment<8x4xf32>)
// CHECK-NEXT: return %[[A]]
func.func @identity(%a: !s) -> !s {
  %0 = tile.map ins(%a : !s) {
  ^bb0(%x: f32, %i: index, %j: index):
    tile.yield %x : f32
  } -> !s
  return %0 : !s
}

// CHECK-LABEL: func @constant
// CHECK-SAME: (%[[V:.*]]: f32)
// CHECK-NEXT: %[[F:.*]] = tile.fill %[[V]]
// CHECK-NEXT: return %[[F]]
func.func @constant(%v: f32) -> !s {
  %0 = tile.map {
  ^bb0(%i: index, %j: index):
    tile.yield %v : f32
  } -> !s
  return %0 : !s
}

#by_row = #tile.layout<8x8, registers = [8:1d1], threads = [8:1d0]>
#turned = #tile.layout<8x8, registers = [2:4d1, 4:1d1], threads = [8:1d0]>

// Registers in another order: not the same fragment.
// CHECK-LABEL: func @layout
// CHECK: tile.map
func.func @layout(%a: !tile.fragment<8x8xf32, #by_row>) -> !tile.fragment<8x8xf32, #turned> {
  %0 = tile.map ins(%a : !tile.fragment<8x8xf32, #by_row>) {
  ^bb0(%x: f32, %i: index, %j: index):
    tile.yield %x : f32
  } -> !tile.fragment<8x8xf32, #turned>
  return %0 : !tile.fragment<8x8xf32, #turned>
}

// Rows spread along columns.
// CHECK-LABEL: func @broadcast
// CHECK: tile.map rows
func.func @broadcast(%r: !r) -> !s {
  %0 = tile.map rows(%r : !r) {
  ^bb0(%x: f32, %i: index, %j: index):
    tile.yield %x : f32
  } -> !s
  return %0 : !s
}

// -----

// What adds to memory is not what it yields.
// CHECK-LABEL: func @scatter
// CHECK:         tile.map
// CHECK:           memref.atomic_rmw addf
func.func @scatter(%x: !tile.fragment<16x16xf32>, %m: memref<31xf32>) {
  %y = tile.map ins(%x : !tile.fragment<16x16xf32>) {
  ^bb0(%a: f32, %i: index, %j: index):
    %k = arith.addi %i, %j : index
    %old = memref.atomic_rmw addf %a, %m[%k] : (f32, memref<31xf32>) -> f32
    tile.yield %a : f32
  } -> !tile.fragment<16x16xf32>
  return
}

// -----

// A test that is the same everywhere.
// CHECK-LABEL: func @any_of_fill
// CHECK-SAME:    (%[[C:.*]]: i1, %[[F:.*]]: !tile.fragment<16xi1>)
// CHECK:         %[[ANY:.*]] = tile.any %[[F]]
// CHECK:         return %[[C]], %[[ANY]]
func.func @any_of_fill(%c: i1, %f: !tile.fragment<16xi1>) -> (i1, i1) {
  %0 = tile.fill %c : !tile.fragment<16xi1>
  %1 = tile.any %0 : !tile.fragment<16xi1>
  %2 = tile.any %f : !tile.fragment<16xi1>
  return %1, %2 : i1, i1
}

// -----

// Both extremes of a number that is the same everywhere.
// CHECK-LABEL: func @extremes_of_fill
// CHECK-SAME:    (%[[N:.*]]: i32, %[[F:.*]]: !tile.fragment<16xi32>)
// CHECK:         %[[LEAST:.*]], %[[GREATEST:.*]] = tile.extremes %[[F]]
// CHECK:         return %[[N]], %[[N]], %[[LEAST]], %[[GREATEST]]
func.func @extremes_of_fill(%n: i32, %f: !tile.fragment<16xi32>) -> (i32, i32, i32, i32) {
  %0 = tile.fill %n : !tile.fragment<16xi32>
  %1, %2 = tile.extremes %0 : !tile.fragment<16xi32>
  %3, %4 = tile.extremes %f : !tile.fragment<16xi32>
  return %1, %2, %3, %4 : i32, i32, i32, i32
}

// -----

// Inputs that a program does not use are none of its launch, and what nothing else uses is
// not computed. Outputs stay, and inputs that are used in a region of an op.
// CHECK-LABEL: func @unused_inputs
// CHECK-SAME:    (%[[A:[^:]*]]: tensor<4xf32>, %[[B:[^:]*]]: tensor<5xf32>, %[[C:[^:]*]]: tensor<6xf32>, %[[O:[^:]*]]: tensor<7xf32>, %[[N:[^:]*]]: index)
// CHECK-NOT:     tensor.cast
// CHECK:         tile.launch grid(%[[N]], %[[N]]) warps 4 ins(%[[A]], %[[C]] : tensor<4xf32>, tensor<6xf32>) outs(%[[O]], %[[O]] : tensor<7xf32>, tensor<7xf32>) {
// CHECK-NEXT:    ^bb0(%[[I:[^:]*]]: index, %[[J:[^:]*]]: index, %[[MA:[^:]*]]: memref<4xf32, strided<[1], offset: ?>>, %[[MC:[^:]*]]: memref<6xf32, strided<[1], offset: ?>>, %[[MO:[^:]*]]: memref<7xf32, strided<[1], offset: ?>>, %{{[^:]*}}: memref<7xf32, strided<[1], offset: ?>>):
// CHECK-NEXT:      %[[X:.*]] = memref.load %[[MA]][%[[J]]]
// CHECK:           scf.if
// CHECK-NEXT:        memref.load %[[MC]][%[[I]]]
// CHECK:           memref.store %{{.*}}, %[[MO]][%[[I]]]
// CHECK:         } -> tensor<7xf32>, tensor<7xf32>
func.func @unused_inputs(%a: tensor<4xf32>, %b: tensor<5xf32>, %c: tensor<6xf32>, %o: tensor<7xf32>, %n: index) -> (tensor<7xf32>, tensor<7xf32>) {
  %d = tensor.cast %b : tensor<5xf32> to tensor<?xf32>
  %r:2 = tile.launch grid(%n, %n) warps 4 ins(%b, %a, %d, %c, %a : tensor<5xf32>, tensor<4xf32>, tensor<?xf32>, tensor<6xf32>, tensor<4xf32>) outs(%o, %o : tensor<7xf32>, tensor<7xf32>) {
  ^bb0(%i: index, %j: index, %B: memref<5xf32, strided<[1], offset: ?>>, %A: memref<4xf32, strided<[1], offset: ?>>, %D: memref<?xf32, strided<[1], offset: ?>>, %C: memref<6xf32, strided<[1], offset: ?>>, %E: memref<4xf32, strided<[1], offset: ?>>, %O: memref<7xf32, strided<[1], offset: ?>>, %P: memref<7xf32, strided<[1], offset: ?>>):
    %x = memref.load %A[%j] : memref<4xf32, strided<[1], offset: ?>>
    %is = arith.cmpi slt, %i, %j : index
    %y = scf.if %is -> (f32) {
      %z = memref.load %C[%i] : memref<6xf32, strided<[1], offset: ?>>
      scf.yield %z : f32
    } else {
      scf.yield %x : f32
    }
    memref.store %y, %O[%i] : memref<7xf32, strided<[1], offset: ?>>
  } -> tensor<7xf32>, tensor<7xf32>
  return %r#0, %r#1 : tensor<7xf32>, tensor<7xf32>
}

// -----

// Indices of the grid stay even if nothing uses them, and so does a launch of used inputs.
// CHECK-LABEL: func @used_inputs
// CHECK-SAME:    (%[[A:.*]]: memref<4xf32>, %[[O:.*]]: memref<4xf32>, %[[N:.*]]: index)
// CHECK:         tile.launch grid(%[[N]], %[[N]]) warps 4 ins(%[[A]] : memref<4xf32>) outs(%[[O]] : memref<4xf32>) {
// CHECK-NEXT:    ^bb0(%{{.*}}: index, %{{.*}}: index, %[[MA:[^:]*]]: memref<4xf32, {{[^>]*}}>>, %{{[^:]*}}: memref<4xf32, {{[^>]*}}>>):
// CHECK:           memref.load %[[MA]]
func.func @used_inputs(%a: memref<4xf32>, %o: memref<4xf32>, %n: index) {
  tile.launch grid(%n, %n) warps 4 ins(%a : memref<4xf32>) outs(%o : memref<4xf32>) {
  ^bb0(%i: index, %j: index, %A: memref<4xf32, strided<[1], offset: ?>>, %O: memref<4xf32, strided<[1], offset: ?>>):
    %c0 = arith.constant 0 : index
    %x = memref.load %A[%c0] : memref<4xf32, strided<[1], offset: ?>>
    memref.store %x, %O[%c0] : memref<4xf32, strided<[1], offset: ?>>
  }
  return
}

// -----

// A condition that is known is so in all iterations.
// CHECK-LABEL: func @first_only_of_constant
// CHECK-SAME:    (%[[C:.*]]: i1)
// CHECK:         %[[NO:.*]] = arith.constant false
// CHECK:         %[[FIRST:.*]] = tile.first_only %[[C]]
// CHECK:         return %[[NO]], %[[FIRST]]
func.func @first_only_of_constant(%c: i1) -> (i1, i1) {
  %no = arith.constant false
  %0 = tile.first_only %no
  %1 = tile.first_only %c
  return %0, %1 : i1, i1
}

// -----

// A number that is the same for all rows.
// CHECK-LABEL: func @of_same_rows
// CHECK-SAME:    (%[[N:.*]]: index)
// CHECK:         %[[OTHER:.*]] = tile.of_rows %[[N]] rows 64
// CHECK:         return %[[N]], %[[OTHER]]
func.func @of_same_rows(%n: index) -> (index, index) {
  %0 = tile.of_rows %n rows 64 {
  ^bb0(%first: index, %last: index):
    tile.yield %n : index
  } : index
  %1 = tile.of_rows %n rows 64 {
  ^bb0(%first: index, %last: index):
    tile.yield %last : index
  } : index
  return %0, %1 : index, index
}

// The number of a cluster, of the place of one of its blocks among all; not by
// another number of blocks, nor of a sum with something else.
// CHECK-LABEL: func @of_cluster
// CHECK:         ^bb0(%[[B:[^:]*]]: index
// CHECK:         %[[RANK:.*]] = tile.cluster_rank
// CHECK:         %[[PLACE:.*]] = arith.addi %{{.*}}, %[[RANK]]
// CHECK:         %[[OTHER:.*]] = arith.divsi %[[PLACE]], %c4
// CHECK:         %[[SUM:.*]] = arith.addi %{{.*}}, %{{.*}}
// CHECK:         %[[THIRD:.*]] = arith.divsi %[[SUM]], %c2
// CHECK:         memref.store %{{.*}}, %{{.*}}[%[[B]]]
// CHECK:         memref.store %{{.*}}, %{{.*}}[%[[OTHER]]]
// CHECK:         memref.store %{{.*}}, %{{.*}}[%[[THIRD]]]
func.func @of_cluster(%m: memref<?xf32>, %n: index) {
  tile.launch grid(%n) cluster 2 warps 4 outs(%m : memref<?xf32>) {
  ^bb0(%b: index, %M: memref<?xf32, strided<[1], offset: ?>>):
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %zero = arith.constant 0.0 : f32
    %rank = tile.cluster_rank
    %double = arith.muli %b, %c2 : index
    %place = arith.addi %double, %rank : index
    %number = arith.divsi %place, %c2 : index
    %other = arith.divsi %place, %c4 : index
    %sum = arith.addi %double, %place : index
    %third = arith.divsi %sum, %c2 : index
    memref.store %zero, %M[%number] : memref<?xf32, strided<[1], offset: ?>>
    memref.store %zero, %M[%other] : memref<?xf32, strided<[1], offset: ?>>
    memref.store %zero, %M[%third] : memref<?xf32, strided<[1], offset: ?>>
  }
  return
}

// All rows of a tile, or all that a memref has from its place on, need no number.
// CHECK-LABEL: func @valid
func.func @valid(%x: !s, %m: memref<23x4xf32>, %d: memref<?x4xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c5 = arith.constant 5 : index
  %c8 = arith.constant 8 : index
  %c18 = arith.constant 18 : index
  // CHECK: tile.store %{{.*}}, %{{.*}}[%{{.*}}, %c0] dims [0, 1] :
  tile.store %x, %d[%n, %c0] dims [0, 1] valid(%c8) : !s, memref<?x4xf32>
  // CHECK: tile.store %{{.*}}, %{{.*}}[%c18, %c0] dims [0, 1] :
  tile.store %x, %m[%c18, %c0] dims [0, 1] valid(%c5) : !s, memref<23x4xf32>
  // CHECK: tile.store %{{.*}}, %{{.*}}[%c8, %c0] dims [0, 1] valid(%c5) :
  tile.store %x, %m[%c8, %c0] dims [0, 1] valid(%c5) : !s, memref<23x4xf32>
  // CHECK: tile.store %{{.*}}, %{{.*}}[%c18, %c0] dims [0, 1] valid(%c5) :
  tile.store %x, %d[%c18, %c0] dims [0, 1] valid(%c5) : !s, memref<?x4xf32>
  // CHECK: tile.store %{{.*}}, %{{.*}}[%c18, %c0] dims [0, 1] valid(%{{.*}}) :
  tile.store %x, %m[%c18, %c0] dims [0, 1] valid(%n) : !s, memref<23x4xf32>
  return
}

// Rows along two dimensions fill places of the first: 32 rows are 8 of the 16 places,
// the last ones from 8 on. Without the second one 32 rows would reach behind its end
// from 0 on, too, and 28 from 8 on.
// CHECK-LABEL: func @valid_inner
func.func @valid_inner(%x: !tile.fragment<64x4xf32>, %m: memref<4x16x4xf32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c28 = arith.constant 28 : index
  %c32 = arith.constant 32 : index
  // CHECK: tile.store %{{.*}}, %{{.*}}[%c0, %c8, %c0] dims [1, 0, 2] inner 4 :
  tile.store %x, %m[%c0, %c8, %c0] dims [1, 0, 2] inner 4 valid(%c32) : !tile.fragment<64x4xf32>, memref<4x16x4xf32>
  // CHECK: tile.store %{{.*}}, %{{.*}}[%c0, %c8, %c0] dims [1, 0, 2] inner 4 valid(%c28) :
  tile.store %x, %m[%c0, %c8, %c0] dims [1, 0, 2] inner 4 valid(%c28) : !tile.fragment<64x4xf32>, memref<4x16x4xf32>
  // CHECK: tile.store %{{.*}}, %{{.*}}[%c0, %c0, %c0] dims [1, 0, 2] inner 4 valid(%c32) :
  tile.store %x, %m[%c0, %c0, %c0] dims [1, 0, 2] inner 4 valid(%c32) : !tile.fragment<64x4xf32>, memref<4x16x4xf32>
  return
}
