// RUN: fovea-opt %s --pass-pipeline='builtin.module(convert-tile-to-nvvm,gpu.module(canonicalize,cse))' | FileCheck %s

#acc = #tile.layout<16x8, registers = [2:1d1, 2:8d0], threads = [4:2d1, 8:1d0]>
#rows = #tile.layout<16, registers = [2:8d0], threads = [4:r, 8:1d0]>
!acc = !tile.fragment<16x8xf32, #acc>
!rows = !tile.fragment<16xf32, #rows>

gpu.module @kernels {
  // A multiply-add of a coordinate's float that may be reassociated, by a factor of
  // its row: a thread computes the first sum of each of its rows, 0 and 8, and adds a
  // multiple of the factor for the other columns.

  // CHECK-LABEL: gpu.func @products
  // CHECK-SAME:    %[[A:[^:]*]]: f32, %[[SLOPE:[^:]*]]: f32, %[[SHIFT:[^:]*]]: f32,
  // CHECK-DAG:     %[[EIGHT:.*]] = arith.constant 8.000000e+00 : f32
  // CHECK-DAG:     %[[THREE:.*]] = arith.constant 3.000000e+00 : f32
  // CHECK-DAG:     %[[TWICE:.*]] = arith.addf %[[SLOPE]], %[[SLOPE]]
  // CHECK-DAG:     %[[FIRST:.*]] = arith.sitofp
  // CHECK:         %[[SUM0:.*]] = math.fma %[[TWICE]], %[[FIRST]], %[[SHIFT]] : f32
  // CHECK:         arith.mulf %[[A]], %[[SUM0]]
  // CHECK:         %[[SUM1:.*]] = math.fma %[[TWICE]], %[[THREE]], %[[SUM0]] : f32
  // CHECK:         arith.mulf %[[A]], %[[SUM1]]
  // CHECK:         %[[FLOAT8:.*]] = arith.addf %[[FIRST]], %[[EIGHT]] : f32
  // CHECK:         %[[SUM8:.*]] = math.fma %[[TWICE]], %[[FLOAT8]], %[[SHIFT]] : f32
  // CHECK:         arith.mulf %[[A]], %[[SUM8]]
  // CHECK:         %[[SUM9:.*]] = math.fma %[[TWICE]], %[[THREE]], %[[SUM8]] : f32
  // CHECK:         arith.mulf %[[A]], %[[SUM9]]
  // CHECK-NOT:     math.fma
  // CHECK:         gpu.return
  gpu.func @products(%a: f32, %slope: f32, %shift: f32, %q: memref<16x8xf32, strided<[8, 1]>>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c3 = arith.constant 3 : index
    %x = tile.fill %a : !acc
    %slopes = tile.fill %slope : !rows
    %shifts = tile.fill %shift : !rows
    %p = tile.map ins(%x : !acc) rows(%slopes, %shifts : !rows, !rows) {
    ^bb0(%e: f32, %y: f32, %z: f32, %i: index, %j: index):
      %0 = arith.muli %j, %c3 : index
      %1 = arith.addi %0, %i : index
      %2 = arith.index_cast %1 : index to i64
      %3 = arith.sitofp %2 : i64 to f32
      %4 = arith.addf %y, %y : f32
      %5 = math.fma %3, %4, %z fastmath<reassoc> : f32
      %6 = arith.mulf %e, %5 : f32
      tile.yield %6 : f32
    } -> !acc
    tile.store %p, %q[%c0, %c0] dims [0, 1] : !acc, memref<16x8xf32, strided<[8, 1]>>
    gpu.return
  }

  // Without the flag, or with a factor or an addend of the column, the float of each
  // element is multiplied.

  // CHECK-LABEL: gpu.func @others
  // CHECK-DAG:     %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
  // CHECK-DAG:     %[[FIRST:.*]] = arith.sitofp
  // CHECK-COUNT-3: math.fma %[[FIRST]],
  // CHECK:         %[[FLOAT1:.*]] = arith.addf %[[FIRST]], %[[ONE]] : f32
  // CHECK-COUNT-3: math.fma %[[FLOAT1]],
  // CHECK:         gpu.return
  gpu.func @others(%a: f32, %slope: f32, %shift: f32, %q: memref<16x8xf32, strided<[8, 1]>>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %x = tile.fill %a : !acc
    %slopes = tile.fill %slope : !rows
    %shifts = tile.fill %shift : !rows
    %p = tile.map ins(%x : !acc) rows(%slopes, %shifts : !rows, !rows) {
    ^bb0(%e: f32, %y: f32, %z: f32, %i: index, %j: index):
      %0 = arith.index_cast %j : index to i64
      %1 = arith.sitofp %0 : i64 to f32
      %2 = math.fma %1, %y, %z : f32
      %3 = math.fma %1, %e, %z fastmath<reassoc> : f32
      %4 = arith.mulf %e, %2 : f32
      %5 = math.fma %1, %y, %4 fastmath<reassoc> : f32
      %6 = arith.mulf %3, %5 : f32
      tile.yield %6 : f32
    } -> !acc
    tile.store %p, %q[%c0, %c0] dims [0, 1] : !acc, memref<16x8xf32, strided<[8, 1]>>
    gpu.return
  }
}
