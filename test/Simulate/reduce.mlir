// Sums in part: of columns whose numbers are equal modulo eight, and of neighbours
// among these.
//
// RUN: fovea-run %s --entry=parts --target=sm_90a --simulate | FileCheck %s --check-prefix=PARTS
// RUN: fovea-run %s --entry=neighbors --target=sm_90a --simulate | FileCheck %s --check-prefix=NEIGHBORS
//
// Column j of 64x32 is j. Parts are 4j + 48: from 48 to 76. Neighbours of these are
// 100, 116, 132, 148.
// PARTS: result 0: f32 64x8, mean 62, min 48, max 76{{$}}
// NEIGHBORS: result 0: f32 64x4, mean 124, min 100, max 148{{$}}

!s = !tile.fragment<64x32xf32>
!p = !tile.fragment<64x8xf32>
!n = !tile.fragment<64x4xf32>

func.func @parts() -> tensor<64x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<64x8xf32>
  %r = tile.launch grid(%c1) warps 4 outs(%e : tensor<64x8xf32>) {
  ^bb0(%b: index, %O: memref<64x8xf32, strided<[?, 1], offset: ?>>):
    %zero = arith.constant 0.0 : f32
    %z = tile.fill %zero : !s
    %s = tile.map ins(%z : !s) {
    ^bb1(%x: f32, %i: index, %j: index):
      %n = arith.index_cast %j : index to i32
      %y = arith.sitofp %n : i32 to f32
      tile.yield %y : f32
    } -> !s
    %none = tile.fill %zero : !p
    %p = tile.reduce add %s, %none dim 1 : !s -> !p
    tile.store %p, %O[%c0, %c0] dims [0, 1] : !p, memref<64x8xf32, strided<[?, 1], offset: ?>>
  } -> tensor<64x8xf32>
  return %r : tensor<64x8xf32>
}

func.func @neighbors() -> tensor<64x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<64x4xf32>
  %r = tile.launch grid(%c1) warps 4 outs(%e : tensor<64x4xf32>) {
  ^bb0(%b: index, %O: memref<64x4xf32, strided<[?, 1], offset: ?>>):
    %zero = arith.constant 0.0 : f32
    %z = tile.fill %zero : !s
    %s = tile.map ins(%z : !s) {
    ^bb1(%x: f32, %i: index, %j: index):
      %n = arith.index_cast %j : index to i32
      %y = arith.sitofp %n : i32 to f32
      tile.yield %y : f32
    } -> !s
    %none = tile.fill %zero : !p
    %p = tile.reduce add %s, %none dim 1 : !s -> !p
    %nothing = tile.fill %zero : !n
    %n = tile.reduce add %p, %nothing dim 1 neighbors : !p -> !n
    tile.store %n, %O[%c0, %c0] dims [0, 1] : !n, memref<64x4xf32, strided<[?, 1], offset: ?>>
  } -> tensor<64x4xf32>
  return %r : tensor<64x4xf32>
}
