// RUN: fovea-opt %s --tile-order-adds --verify-diagnostics --split-input-file

!o = memref<?x?xf32, strided<[?, 1], offset: ?>>

func.func @two_loops(%m: tensor<?x?xf32>, %n: index, %x: f32) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %r = tile.launch grid(%n) warps 8 outs(%m : tensor<?x?xf32>) {
  ^bb0(%k: index, %O: !o):
    %f = tile.fill %x : !tile.fragment<64x128xf32>
    scf.for %i = %c0 to %n step %c64 {
      // expected-note@+1 {{it adds here, too}}
      tile.store add %f, %O[%i, %c0] dims [0, 1] : !tile.fragment<64x128xf32>, !o
    }
    scf.for %i = %c0 to %n step %c64 {
      // expected-error@+1 {{expected all that a block adds at in the same loops, so that it can take turns}}
      tile.store add %f, %O[%i, %c0] dims [0, 1] : !tile.fragment<64x128xf32>, !o
    }
  } -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}

// -----

!o = memref<?x?xf32, strided<[?, 1], offset: ?>>

func.func @own_end(%m: tensor<?x?xf32>, %n: index, %x: f32) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %r = tile.launch grid(%n) warps 8 outs(%m : tensor<?x?xf32>) {
  ^bb0(%k: index, %O: !o):
    %f = tile.fill %x : !tile.fragment<64x128xf32>
    // expected-note@+1 {{not by this one}}
    scf.for %i = %c0 to %k step %c1 {
      %row = arith.muli %i, %c64 : index
      // expected-error@+1 {{expected its indices to run along a dimension by each loop around it whose end is not the same for all blocks}}
      tile.store add %f, %O[%row, %c0] dims [0, 1] : !tile.fragment<64x128xf32>, !o
    }
  } -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}

// -----

!o = memref<?x?xf32, strided<[?, 1], offset: ?>>

func.func @skipped(%m: tensor<?x?xf32>, %n: index, %x: f32) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %r = tile.launch grid(%n) warps 8 outs(%m : tensor<?x?xf32>) {
  ^bb0(%k: index, %O: !o):
    %f = tile.fill %x : !tile.fragment<64x128xf32>
    %adds = arith.cmpi ne, %k, %c0 : index
    // expected-note@+1 {{one is in this}}
    scf.if %adds {
      scf.for %i = %c0 to %n step %c64 {
        // expected-error@+1 {{expected the loops around it in no condition, for blocks would wait for those that skip them}}
        tile.store add %f, %O[%i, %c0] dims [0, 1] : !tile.fragment<64x128xf32>, !o
      }
    }
  } -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}

// -----

!o = memref<?x?xf32, strided<[?, 1], offset: ?>>

func.func @other_dimension(%m: tensor<?x?xf32>, %n: index, %x: f32) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %r = tile.launch grid(%n, %n) warps 8 outs(%m : tensor<?x?xf32>) {
  ^bb0(%k: index, %h: index, %O: !o):
    %f = tile.fill %x : !tile.fragment<64x128xf32>
    // expected-error@+1 {{expected blocks that differ in dimension 1 of the grid at other places, for turns are of those that differ in dimension 0}}
    tile.store add %f, %O[%k, %c0] dims [0, 1] : !tile.fragment<64x128xf32>, !o
  } -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}

// -----

!o = memref<?x?xf32, strided<[?, 1], offset: ?>>

func.func @bufferized(%m: !o, %n: index, %x: f32) {
  %c0 = arith.constant 0 : index
  tile.launch grid(%n) warps 8 outs(%m : !o) {
  ^bb0(%k: index, %O: !o):
    %f = tile.fill %x : !tile.fragment<64x128xf32>
    // expected-error@+1 {{expected the launch to be on tensors, to which turns can be added: run this pass before bufferization}}
    tile.store add %f, %O[%c0, %c0] dims [0, 1] : !tile.fragment<64x128xf32>, !o
  }
  return
}
