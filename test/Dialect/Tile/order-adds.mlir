// RUN: fovea-opt %s --tile-order-adds --split-input-file | FileCheck %s
// RUN: fovea-opt %s --tile-order-adds --tile-stage-stores --split-input-file | FileCheck %s --check-prefix=STAGED

!o = memref<?x?x?xf32, strided<[?, ?, 1], offset: ?>>

// Blocks of one head take turns, the last first, at a place that grows with the
// iterations of both loops.
// CHECK-LABEL: func @ordered
// CHECK-SAME:    %[[M:.*]]: tensor<?x?x?xf32>, %[[N:.*]]: index, %[[H:.*]]: index,
// CHECK:       %[[E:.*]] = tensor.empty(%[[H]], %[[N]]) : tensor<?x?x8xi32>
// CHECK:       %[[ZERO:.*]] = linalg.fill ins(%{{.*}} : i32) outs(%[[E]] : tensor<?x?x8xi32>)
// CHECK:       %[[R:.*]]:2 = tile.launch grid(%[[N]], %[[H]]) warps 8 outs(%[[M]], %[[ZERO]] : tensor<?x?x?xf32>, tensor<?x?x8xi32>) {
// CHECK-NEXT:  ^bb0(%[[X:.*]]: index, %[[Y:.*]]: index, %[[O:.*]]: memref<?x?x?xf32, {{.*}}>, %[[T:.*]]: memref<?x?x8xi32, {{.*}}>):
// CHECK:         %[[LAST:.*]] = arith.subi %[[N]], %{{.*}} : index
// CHECK:         %[[K:.*]] = arith.subi %[[LAST]], %[[X]] : index
// CHECK:         %[[LOW:.*]] = arith.muli %[[K]], %{{.*}} : index
// CHECK:         scf.for %[[G:.*]] =
// CHECK:           scf.for %[[I:.*]] = %[[LOW]] to
// CHECK:             %[[SIZE:.*]] = memref.dim %[[O]], %{{.*}}
// CHECK:             %[[P:.*]] = arith.muli %[[G]], %[[SIZE]] : index
// CHECK:             %[[AT:.*]] = arith.addi %[[P]], %[[I]] : index
// CHECK-NEXT:        tile.take_turn %[[T]][%[[Y]], %[[K]]] at %[[AT]] : memref<?x?x8xi32
// CHECK-NEXT:        tile.store add
// CHECK:         tile.take_turn %[[T]][%[[Y]], %[[K]]] : memref
// CHECK:       return %[[R]]#0

// The tile is written before the turn comes.
// STAGED-LABEL: func @ordered
// STAGED:       tile.wait_stores
// STAGED-NEXT:  tile.to_shared
// STAGED-NEXT:  tile.take_turn
// STAGED-NEXT:  tile.store_async add
func.func @ordered(%m: tensor<?x?x?xf32>, %n: index, %h: index, %x: f32) -> tensor<?x?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %r = tile.launch grid(%n, %h) warps 8 outs(%m : tensor<?x?x?xf32>) {
  ^bb0(%k: index, %y: index, %O: !o):
    %low = arith.muli %k, %c64 : index
    %end = memref.dim %O, %c1 : !o
    scf.for %g = %c0 to %c2 step %c1 {
      %head = arith.addi %y, %g : index
      scf.for %i = %low to %end step %c64 {
        %f = tile.fill %x : !tile.fragment<64x128xf32>
        tile.store add %f, %O[%head, %i, %c0] dims [1, 2] : !tile.fragment<64x128xf32>, !o
      }
    }
  } -> tensor<?x?x?xf32>
  return %r : tensor<?x?x?xf32>
}

// -----

!o = memref<?x?xf32, strided<[?, 1], offset: ?>>

// Places of its own, and one that is added to once, need no turns.
// CHECK-LABEL: func @own
// CHECK-NOT:   tile.take_turn
func.func @own(%m: tensor<?x?xf32>, %n: index, %x: f32) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %r = tile.launch grid(%n) warps 8 outs(%m : tensor<?x?xf32>) {
  ^bb0(%k: index, %O: !o):
    %f = tile.fill %x : !tile.fragment<64x128xf32>
    scf.for %i = %c0 to %n step %c64 {
      %row = arith.addi %k, %i : index
      tile.store add %f, %O[%row, %c0] dims [0, 1] : !tile.fragment<64x128xf32>, !o
    }
    tile.store add %f, %O[%c0, %c0] dims [0, 1] : !tile.fragment<64x128xf32>, !o
  } -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}
