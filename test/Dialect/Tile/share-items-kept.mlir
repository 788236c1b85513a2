// What `tile-share-items` leaves alone, and `tile-persist` then runs in linear
// order: it removes what says how parts combine.
//
// RUN: fovea-opt %s --tile-share-items --split-input-file | FileCheck %s
// RUN: fovea-opt %s --tile-share-items --split-input-file --debug-only=tile-share-items -o /dev/null 2>&1 | FileCheck %s --check-prefix=LOG
// RUN: fovea-opt %s --tile-share-items --tile-persist --split-input-file | FileCheck %s --check-prefix=PERSIST

// CHECK-COUNT-7: persistent shared
// CHECK:         persistent linear
// CHECK-NOT:     tile.signal
// PERSIST-NOT:   persistent
// PERSIST-NOT:   tile.combine_parts

// LOG: its last programs are few, or short, or fill a round
// LOG: its last programs are few, or short, or fill a round
// LOG: its last programs are not shared, for it has programs of different lengths
// LOG: its last programs are not shared, for it uses what a part of its loop gives
// LOG: its last programs are not shared, for it writes memory elsewhere than at its end
// LOG: its last programs are not shared, for it does not say how parts combine
// LOG: its last programs are not shared, for it is on memrefs
// LOG-NOT: launch

// 132 programs: a round.
!f = !tile.fragment<64x64xf32>
!x = memref<?x64xf32, strided<[?, 1], offset: ?>>
func.func @whole(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %items = arith.constant 132 : index
  %n = arith.constant 1024 : index
  %r = tile.launch kernel "k" grid(%items) persistent shared warps 4 stages 2 outs(%x : tensor<?x64xf32>) {
  ^bb0(%i: index, %O: !x):
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %row = arith.muli %i, %c64 : index
    %none = tile.fill %zero : !f
    %sum = scf.for %j = %c0 to %n step %c16 iter_args(%a = %none) -> (!f) {
      scf.yield %a : !f
    }
    %all = tile.combine_parts %sum : !f {
    ^bb0(%a: !f, %b: !f):
      tile.yield %b : !f
    }
    tile.store %all, %O[%row, %c0] dims [0, 1] : !f, !x
  } -> tensor<?x64xf32>
  return %r : tensor<?x64xf32>
}

// -----

// 31 steps.
!f = !tile.fragment<64x64xf32>
!x = memref<?x64xf32, strided<[?, 1], offset: ?>>
func.func @short(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %items = arith.constant 200 : index
  %n = arith.constant 496 : index
  %r = tile.launch kernel "k" grid(%items) persistent shared warps 4 stages 2 outs(%x : tensor<?x64xf32>) {
  ^bb0(%i: index, %O: !x):
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %row = arith.muli %i, %c64 : index
    %none = tile.fill %zero : !f
    %sum = scf.for %j = %c0 to %n step %c16 iter_args(%a = %none) -> (!f) {
      scf.yield %a : !f
    }
    %all = tile.combine_parts %sum : !f {
    ^bb0(%a: !f, %b: !f):
      tile.yield %b : !f
    }
    tile.store %all, %O[%row, %c0] dims [0, 1] : !f, !x
  } -> tensor<?x64xf32>
  return %r : tensor<?x64xf32>
}

// -----

// The loop ends at the program's own row.
!f = !tile.fragment<64x64xf32>
!x = memref<?x64xf32, strided<[?, 1], offset: ?>>
func.func @lengths(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %items = arith.constant 200 : index
  %n = arith.constant 1024 : index
  %r = tile.launch kernel "k" grid(%items) persistent shared warps 4 stages 2 outs(%x : tensor<?x64xf32>) {
  ^bb0(%i: index, %O: !x):
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %row = arith.muli %i, %c64 : index
    %none = tile.fill %zero : !f
    %sum = scf.for %j = %c0 to %row step %c16 iter_args(%a = %none) -> (!f) {
      scf.yield %a : !f
    }
    %all = tile.combine_parts %sum : !f {
    ^bb0(%a: !f, %b: !f):
      tile.yield %b : !f
    }
    tile.store %all, %O[%row, %c0] dims [0, 1] : !f, !x
  } -> tensor<?x64xf32>
  return %r : tensor<?x64xf32>
}

// -----

// The sum is also used by itself.
!f = !tile.fragment<64x64xf32>
!x = memref<?x64xf32, strided<[?, 1], offset: ?>>
func.func @used(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %items = arith.constant 200 : index
  %n = arith.constant 1024 : index
  %r = tile.launch kernel "k" grid(%items) persistent shared warps 4 stages 2 outs(%x : tensor<?x64xf32>) {
  ^bb0(%i: index, %O: !x):
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %row = arith.muli %i, %c64 : index
    %none = tile.fill %zero : !f
    %sum = scf.for %j = %c0 to %n step %c16 iter_args(%a = %none) -> (!f) {
      scf.yield %a : !f
    }
    %all = tile.combine_parts %sum : !f {
    ^bb0(%a: !f, %b: !f):
      tile.yield %b : !f
    }
    tile.store %sum, %O[%c0, %c0] dims [0, 1] : !f, !x
    tile.store %all, %O[%row, %c0] dims [0, 1] : !f, !x
  } -> tensor<?x64xf32>
  return %r : tensor<?x64xf32>
}

// -----

// Each step stores.
!f = !tile.fragment<64x64xf32>
!x = memref<?x64xf32, strided<[?, 1], offset: ?>>
func.func @writes(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %items = arith.constant 200 : index
  %n = arith.constant 1024 : index
  %r = tile.launch kernel "k" grid(%items) persistent shared warps 4 stages 2 outs(%x : tensor<?x64xf32>) {
  ^bb0(%i: index, %O: !x):
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %row = arith.muli %i, %c64 : index
    %none = tile.fill %zero : !f
    %sum = scf.for %j = %c0 to %n step %c16 iter_args(%a = %none) -> (!f) {
      tile.store %a, %O[%j, %c0] dims [0, 1] : !f, !x
      scf.yield %a : !f
    }
    %all = tile.combine_parts %sum : !f {
    ^bb0(%a: !f, %b: !f):
      tile.yield %b : !f
    }
    tile.store %all, %O[%row, %c0] dims [0, 1] : !f, !x
  } -> tensor<?x64xf32>
  return %r : tensor<?x64xf32>
}

// -----

// Nothing is said of parts.
!f = !tile.fragment<64x64xf32>
!x = memref<?x64xf32, strided<[?, 1], offset: ?>>
func.func @nothing(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %items = arith.constant 200 : index
  %n = arith.constant 1024 : index
  %r = tile.launch kernel "k" grid(%items) persistent shared warps 4 stages 2 outs(%x : tensor<?x64xf32>) {
  ^bb0(%i: index, %O: !x):
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %row = arith.muli %i, %c64 : index
    %none = tile.fill %zero : !f
    %sum = scf.for %j = %c0 to %n step %c16 iter_args(%a = %none) -> (!f) {
      scf.yield %a : !f
    }
    tile.store %sum, %O[%row, %c0] dims [0, 1] : !f, !x
  } -> tensor<?x64xf32>
  return %r : tensor<?x64xf32>
}

// -----

// After bufferization.
!f = !tile.fragment<64x64xf32>
!x = memref<?x64xf32, strided<[?, 1], offset: ?>>
func.func @buffers(%x: !x)  {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %items = arith.constant 200 : index
  %n = arith.constant 1024 : index
  tile.launch kernel "k" grid(%items) persistent shared warps 4 stages 2 outs(%x : !x) {
  ^bb0(%i: index, %O: !x):
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %row = arith.muli %i, %c64 : index
    %none = tile.fill %zero : !f
    %sum = scf.for %j = %c0 to %n step %c16 iter_args(%a = %none) -> (!f) {
      scf.yield %a : !f
    }
    %all = tile.combine_parts %sum : !f {
    ^bb0(%a: !f, %b: !f):
      tile.yield %b : !f
    }
    tile.store %all, %O[%row, %c0] dims [0, 1] : !f, !x
  }
  return
}

// -----

// The order is linear.
!f = !tile.fragment<64x64xf32>
!x = memref<?x64xf32, strided<[?, 1], offset: ?>>
func.func @linear(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %items = arith.constant 200 : index
  %n = arith.constant 1024 : index
  %r = tile.launch kernel "k" grid(%items) persistent linear warps 4 stages 2 outs(%x : tensor<?x64xf32>) {
  ^bb0(%i: index, %O: !x):
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %row = arith.muli %i, %c64 : index
    %none = tile.fill %zero : !f
    %sum = scf.for %j = %c0 to %n step %c16 iter_args(%a = %none) -> (!f) {
      scf.yield %a : !f
    }
    %all = tile.combine_parts %sum : !f {
    ^bb0(%a: !f, %b: !f):
      tile.yield %b : !f
    }
    tile.store %all, %O[%row, %c0] dims [0, 1] : !f, !x
  } -> tensor<?x64xf32>
  return %r : tensor<?x64xf32>
}
