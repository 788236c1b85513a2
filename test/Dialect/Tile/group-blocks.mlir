// RUN: fovea-opt %s --tile-group-blocks --canonicalize --cse --split-input-file | FileCheck %s

!o = memref<?x6x?x64xf32, strided<[?, ?, ?, 1], offset: ?>>

// Later tiles have fewer steps. Six heads have the divisors 1, 2, 3 and 6; their sums
// have a third of the cache of 50 MiB. Heads of a group come first in the grid, then
// tiles; groups of all batches are last.
// CHECK-LABEL: func @later
// CHECK-SAME:    %[[M:[^:]*]]: tensor<?x6x?x64xf32>, %[[T:[^:]*]]: index, %[[B:[^:]*]]: index,
// CHECK-DAG:     %[[C1:.*]] = arith.constant 1 : index
// CHECK-DAG:     %[[C2:.*]] = arith.constant 2 : index
// CHECK-DAG:     %[[C3:.*]] = arith.constant 3 : index
// CHECK-DAG:     %[[C6:.*]] = arith.constant 6 : index
// CHECK-DAG:     %[[BYTES:.*]] = arith.constant 256 : index
// CHECK-DAG:     %[[HALF:.*]] = arith.constant 8738133 : index
// CHECK-DAG:     %[[THIRD:.*]] = arith.constant 5825422 : index
// CHECK-DAG:     %[[SIXTH:.*]] = arith.constant 2912711 : index
// CHECK:         %[[ROWS:.*]] = tensor.dim %[[M]], %[[C2]]
// CHECK:         %[[SUMS:.*]] = arith.muli %[[ROWS]], %[[BYTES]]
// CHECK:         %[[TWO:.*]] = arith.cmpi ule, %[[SUMS]], %[[HALF]]
// CHECK:         %[[G2:.*]] = arith.select %[[TWO]], %[[C2]], %[[C1]]
// CHECK:         %[[THREE:.*]] = arith.cmpi ule, %[[SUMS]], %[[THIRD]]
// CHECK:         %[[G3:.*]] = arith.select %[[THREE]], %[[C3]], %[[G2]]
// CHECK:         %[[SIX:.*]] = arith.cmpi ule, %[[SUMS]], %[[SIXTH]]
// CHECK:         %[[G:.*]] = arith.select %[[SIX]], %[[C6]], %[[G3]]
// CHECK:         %[[GROUPS:.*]] = arith.divui %[[C6]], %[[G]]
// CHECK:         %[[ALL:.*]] = arith.muli %[[B]], %[[GROUPS]]
// CHECK:         tile.launch grid(%[[G]], %[[T]], %[[ALL]])
// CHECK-NEXT:    ^bb0(%[[X:.*]]: index, %[[Y:.*]]: index, %[[Z:.*]]: index, %[[O:.*]]: memref
// CHECK:           %[[GROUP:.*]] = arith.remui %[[Z]], %[[GROUPS]]
// CHECK:           %[[FIRST:.*]] = arith.muli %[[GROUP]], %[[G]]
// CHECK:           %[[HEAD:.*]] = arith.addi %[[FIRST]], %[[X]]
// CHECK:           %[[BATCH:.*]] = arith.divui %[[Z]], %[[GROUPS]]
// CHECK:           %[[LOW:.*]] = arith.muli %[[Y]],
// CHECK:           scf.for %[[I:.*]] = %[[LOW]] to
// CHECK:             tile.store add %{{.*}}, %[[O]][%[[BATCH]], %[[HEAD]], %[[I]],
func.func @later(%m: tensor<?x6x?x64xf32>, %t: index, %b: index, %n: index, %x: f32) -> tensor<?x6x?x64xf32> {
  %c0 = arith.constant 0 : index
  %c6 = arith.constant 6 : index
  %c64 = arith.constant 64 : index
  %r = tile.launch grid(%t, %c6, %b) warps 8 outs(%m : tensor<?x6x?x64xf32>) {
  ^bb0(%k: index, %h: index, %s: index, %O: !o):
    %f = tile.fill %x : !tile.fragment<64x64xf32>
    %low = arith.muli %k, %c64 : index
    scf.for %i = %low to %n step %c64 {
      tile.store add %f, %O[%s, %h, %i, %c0] dims [2, 3] : !tile.fragment<64x64xf32>, !o
    }
  } -> tensor<?x6x?x64xf32>
  return %r : tensor<?x6x?x64xf32>
}

// -----

!o = memref<?x6x?x64xf32, strided<[?, ?, ?, 1], offset: ?>>

// Left alone: equal blocks, a number of heads that is not known, blocks that share
// nothing, and two dimensions.
// CHECK-LABEL: func @kept
// CHECK: tile.launch grid(%{{.*}}, %[[SIX:c6.*]], %{{.*}})
// CHECK: tile.launch grid(%[[T:.*]], %[[T]], %[[T]])
// CHECK: tile.launch grid(%[[T]], %[[SIX]], %[[T]])
// CHECK: tile.launch grid(%[[T]], %[[SIX]])
func.func @kept(%m: tensor<?x6x?x64xf32>, %t: index, %n: index, %x: f32) -> tensor<?x6x?x64xf32> {
  %c0 = arith.constant 0 : index
  %c6 = arith.constant 6 : index
  %c64 = arith.constant 64 : index
  %0 = tile.launch grid(%t, %c6, %t) warps 8 outs(%m : tensor<?x6x?x64xf32>) {
  ^bb0(%k: index, %h: index, %s: index, %O: !o):
    %f = tile.fill %x : !tile.fragment<64x64xf32>
    scf.for %i = %c0 to %n step %c64 {
      tile.store add %f, %O[%s, %h, %i, %c0] dims [2, 3] : !tile.fragment<64x64xf32>, !o
    }
  } -> tensor<?x6x?x64xf32>
  %1 = tile.launch grid(%t, %t, %t) warps 8 outs(%0 : tensor<?x6x?x64xf32>) {
  ^bb0(%k: index, %h: index, %s: index, %O: !o):
    %f = tile.fill %x : !tile.fragment<64x64xf32>
    scf.for %i = %k to %n step %c64 {
      tile.store add %f, %O[%s, %h, %i, %c0] dims [2, 3] : !tile.fragment<64x64xf32>, !o
    }
  } -> tensor<?x6x?x64xf32>
  %2 = tile.launch grid(%t, %c6, %t) warps 8 outs(%1 : tensor<?x6x?x64xf32>) {
  ^bb0(%k: index, %h: index, %s: index, %O: !o):
    %f = tile.fill %x : !tile.fragment<64x64xf32>
    %low = arith.muli %k, %c64 : index
    scf.for %i = %k to %n step %c64 {
      tile.store add %f, %O[%s, %h, %low, %c0] dims [2, 3] : !tile.fragment<64x64xf32>, !o
    }
  } -> tensor<?x6x?x64xf32>
  %3 = tile.launch grid(%t, %c6) warps 8 outs(%2 : tensor<?x6x?x64xf32>) {
  ^bb0(%k: index, %h: index, %O: !o):
    %f = tile.fill %x : !tile.fragment<64x64xf32>
    scf.for %i = %k to %n step %c64 {
      tile.store add %f, %O[%c0, %h, %i, %c0] dims [2, 3] : !tile.fragment<64x64xf32>, !o
    }
  } -> tensor<?x6x?x64xf32>
  return %3 : tensor<?x6x?x64xf32>
}
