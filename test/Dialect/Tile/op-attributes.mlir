// RUN: fovea-opt %s --split-input-file | fovea-opt --split-input-file | FileCheck %s

!tile = !tile.shared<8x8xf32>
!ring = !tile.ring<2 x !tile>
!m = memref<?x8xf32, strided<[?, 1], offset: ?>>

// CHECK-LABEL: func.func @places(
// CHECK: tile.ring {tile.barrier_offset = 4104 : i64, tile.shared_offset = 0 : i64}
// CHECK: tile.load {{.*}} {tile.shared_offset = 2048 : i64}
// CHECK: tile.to_shared {{.*}} {tile.shared_offset = 3072 : i64}
func.func @places(%m: memref<?x8xf32>) {
  %c1 = arith.constant 1 : index
  tile.launch grid(%c1) warps 4 outs(%m : memref<?x8xf32>) {
  ^bb0(%block: index, %M: !m):
    %c0 = arith.constant 0 : index
    %x = arith.constant 0.0 : f32
    %ring = tile.ring {tile.shared_offset = 0 : i64, tile.barrier_offset = 4104 : i64} : !ring
    %a = tile.load %M[%c0, %c0] dims [0, 1] {tile.shared_offset = 2048 : i64} : !m -> !tile
    %f = tile.fill %x : !tile.fragment<8x8xf32>
    %b = tile.to_shared %f {tile.shared_offset = 3072 : i64} : !tile.fragment<8x8xf32> -> !tile
  }
  return
}

// -----

// CHECK-LABEL: func.func @schedule(
// CHECK: arith.addi {{.*}} {tile.order = 7 : i64, tile.stage = 1 : i64}
func.func @schedule(%n: index) {
  %0 = arith.addi %n, %n {tile.stage = 1, tile.order = 7} : index
  return
}
