// RUN: fovea-opt %s --pass-pipeline='builtin.module(convert-tile-to-nvvm,gpu.module(canonicalize,cse))' | FileCheck %s

#acc = #tile.layout<16x8, registers = [2:1d1, 2:8d0], threads = [4:2d1, 8:1d0]>
!acc = !tile.fragment<16x8xf32, #acc>

gpu.module @kernels {
  // A thread converts its first sum; its elements (0, 1), (8, 0) and (8, 1) add
  // constants.

  // CHECK-LABEL: gpu.func @distance
  // CHECK-SAME:    %[[A:[^:]*]]: f32, %[[ROW:[^:]*]]: index, %[[COLUMN:[^:]*]]: index
  // CHECK-DAG:     %[[SIX:.*]] = arith.constant -6.000000e+00 : f32
  // CHECK-DAG:     %[[EIGHT:.*]] = arith.constant -8.000000e+00 : f32
  // CHECK-DAG:     %[[TWO:.*]] = arith.constant 2.000000e+00 : f32
  // CHECK:         %[[TWICE:.*]] = arith.muli %[[COLUMN]], %c2 : index
  // CHECK:         %[[REST:.*]] = arith.subi %[[TWICE]], %[[ROW]] : index
  // CHECK:         %[[WITH:.*]] = arith.subi %[[REST]], %[[I:.*]] : index
  // CHECK:         %[[J:.*]] = arith.muli %{{.*}}, %c2 : index
  // CHECK:         %[[SUM:.*]] = arith.addi %[[WITH]], %[[J]] : index
  // CHECK:         %[[WIDE:.*]] = arith.index_cast %[[SUM]] : index to i64
  // CHECK:         %[[FIRST:.*]] = arith.sitofp %[[WIDE]] : i64 to f32
  // CHECK:         arith.addf %[[A]], %[[FIRST]]
  // CHECK-DAG:     arith.addf %[[FIRST]], %[[TWO]] : f32
  // CHECK-DAG:     arith.addf %[[FIRST]], %[[EIGHT]] : f32
  // CHECK-DAG:     arith.addf %[[FIRST]], %[[SIX]] : f32
  // CHECK-NOT:     arith.sitofp
  // CHECK:         gpu.return
  gpu.func @distance(%a: f32, %row: index, %column: index, %q: memref<16x8xf32, strided<[8, 1]>>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %x = tile.fill %a : !acc
    %p = tile.map ins(%x : !acc) {
    ^bb0(%e: f32, %i: index, %j: index):
      %0 = arith.addi %row, %i : index
      %1 = arith.addi %column, %j : index
      %2 = arith.muli %1, %c2 : index
      %3 = arith.subi %2, %0 : index
      %4 = arith.index_cast %3 : index to i64
      %5 = arith.sitofp %4 : i64 to f32
      %6 = arith.addf %e, %5 : f32
      tile.yield %6 : f32
    } -> !acc
    tile.store %p, %q[%c0, %c0] dims [0, 1] : !acc, memref<16x8xf32, strided<[8, 1]>>
    gpu.return
  }

  // Each element converts what is no such sum, or what was cut to fewer bits, and
  // what all elements share needs no addition. Differences of 2^24 are too large.

  // CHECK-LABEL: gpu.func @others
  // CHECK-SAME:    %{{[^:]*}}: f32, %[[ROW:[^:]*]]: index
  // The element (0, 0):
  // CHECK:         arith.sitofp %{{.*}} : i64 to f32
  // CHECK:         arith.sitofp %{{.*}} : i32 to f32
  // CHECK:         %[[SHARED:.*]] = arith.index_cast %[[ROW]] : index to i64
  // CHECK:         arith.sitofp %[[SHARED]] : i64 to f32
  // CHECK:         arith.sitofp %{{.*}} : i64 to f32
  // (0, 1):
  // CHECK:         arith.sitofp %{{.*}} : i64 to f32
  // CHECK:         arith.sitofp %{{.*}} : i64 to f32
  // (8, 0) and (8, 1):
  // CHECK:         arith.sitofp %{{.*}} : i64 to f32
  // CHECK:         arith.sitofp %{{.*}} : i32 to f32
  // CHECK:         arith.sitofp %{{.*}} : i64 to f32
  // CHECK-NOT:     arith.addf
  // CHECK:         gpu.return
  gpu.func @others(%a: f32, %row: index, %q: memref<16x8xf32, strided<[8, 1]>>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %far = arith.constant 2097152 : index
    %x = tile.fill %a : !acc
    %p = tile.map ins(%x : !acc) {
    ^bb0(%e: f32, %i: index, %j: index):
      %0 = arith.muli %i, %j : index
      %1 = arith.index_cast %0 : index to i64
      %2 = arith.sitofp %1 : i64 to f32
      %3 = arith.addi %row, %i : index
      %4 = arith.index_cast %3 : index to i32
      %5 = arith.sitofp %4 : i32 to f32
      %6 = arith.index_cast %row : index to i64
      %7 = arith.sitofp %6 : i64 to f32
      %8 = arith.muli %j, %far : index
      %9 = arith.index_cast %8 : index to i64
      %10 = arith.sitofp %9 : i64 to f32
      %11 = arith.mulf %2, %5 : f32
      %12 = arith.mulf %7, %10 : f32
      %13 = arith.mulf %11, %12 : f32
      tile.yield %13 : f32
    } -> !acc
    tile.store %p, %q[%c0, %c0] dims [0, 1] : !acc, memref<16x8xf32, strided<[8, 1]>>
    gpu.return
  }
}
