// RUN: fovea-opt %s --pass-pipeline='builtin.module(convert-tile-to-nvvm,gpu.module(canonicalize,cse))' | FileCheck %s

#acc = #tile.layout<16x8, registers = [2:1d1, 2:8d0], threads = [4:2d1, 8:1d0]>
#groups = #tile.layout<128x8, registers = [2:1d1, 2:8d0], threads = [4:2d1, 8:1d0, 8:16d0]>
!acc = !tile.fragment<16x8xf32, #acc>
#rows = #tile.layout<16, registers = [2:8d0], threads = [4:r, 8:1d0]>
!limits = !tile.fragment<16xi32, #rows>
!groups = !tile.fragment<128x8xf32, #groups>

gpu.module @kernels {
  // All elements compare one difference of 32 bits, each with a number of its own:
  // those at (0, 0), (0, 1), (8, 0) and (8, 1) of a thread. What overflows is far
  // apart, and so is what does not fit 32 bits.

  // CHECK-LABEL: gpu.func @causal
  // CHECK-SAME:    %[[A:[^:]*]]: f32, %[[ROW:[^:]*]]: index, %[[COLUMN:[^:]*]]: index
  // CHECK-DAG:     %[[LEFT:.*]] = arith.index_cast %[[ROW]] : index to i64
  // CHECK-DAG:     %[[RIGHT:.*]] = arith.index_cast %[[COLUMN]] : index to i64
  // CHECK:         %[[FAR:.*]] = llvm.intr.ssub.sat(%[[LEFT]], %[[RIGHT]])
  // CHECK:         %[[BELOW:.*]] = arith.minsi %[[FAR]], %c536870912_i64
  // CHECK:         %[[BOTH:.*]] = arith.maxsi %[[BELOW]], %c-536870912_i64
  // CHECK:         %[[SHORT:.*]] = arith.trunci %[[BOTH]] : i64 to i32
  // CHECK:         %[[SUM:.*]] = arith.addi %[[SHORT]], %{{.*}} : i32
  // CHECK:         %[[MINUS:.*]] = arith.muli %{{.*}}, %c-2_i32 : i32
  // CHECK:         %[[DIFFERENCE:.*]] = arith.addi %[[SUM]], %[[MINUS]] : i32
  // CHECK-NOT:     index
  // CHECK:         arith.cmpi sge, %[[DIFFERENCE]], %c0_i32 : i32
  // CHECK:         arith.cmpi sge, %[[DIFFERENCE]], %c1_i32 : i32
  // CHECK:         arith.cmpi sge, %[[DIFFERENCE]], %c-8_i32 : i32
  // CHECK:         arith.cmpi sge, %[[DIFFERENCE]], %c-7_i32 : i32
  // CHECK-NOT:     arith.cmpi sge
  gpu.func @causal(%a: f32, %row: index, %column: index, %q: memref<16x8xf32, strided<[8, 1]>>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %x = tile.fill %a : !acc
    %p = tile.map ins(%x : !acc) {
    ^bb0(%e: f32, %i: index, %j: index):
      %zero = arith.constant 0.0 : f32
      %0 = arith.addi %row, %i : index
      %1 = arith.addi %column, %j : index
      %2 = arith.cmpi sge, %0, %1 : index
      %3 = arith.select %2, %e, %zero : f32
      tile.yield %3 : f32
    } -> !acc
    tile.store %p, %q[%c0, %c0] dims [0, 1] : !acc, memref<16x8xf32, strided<[8, 1]>>
    gpu.return
  }

  // A difference has coefficients of both sides, and what all elements share may
  // be computed in the body.

  // CHECK-LABEL: gpu.func @window
  // CHECK-SAME:    %[[A:[^:]*]]: f32, %[[ROW:[^:]*]]: index, %[[WIDTH:[^:]*]]: index
  // CHECK:         %[[TWICE:.*]] = arith.muli %[[WIDTH]], %c2 : index
  // CHECK:         %[[RIGHT:.*]] = arith.index_cast %[[TWICE]] : index to i64
  // CHECK:         llvm.intr.ssub.sat(%{{.*}}, %[[RIGHT]])
  // CHECK:         arith.cmpi slt, %[[DIFFERENCE:.*]], %c0_i32 : i32
  // CHECK:         arith.cmpi slt, %[[DIFFERENCE]], %c1_i32 : i32
  // CHECK:         arith.cmpi slt, %[[DIFFERENCE]], %c-8_i32 : i32
  // CHECK:         arith.cmpi slt, %[[DIFFERENCE]], %c-7_i32 : i32
  gpu.func @window(%a: f32, %row: index, %width: index, %q: memref<16x8xf32, strided<[8, 1]>>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %x = tile.fill %a : !acc
    %p = tile.map ins(%x : !acc) {
    ^bb0(%e: f32, %i: index, %j: index):
      %zero = arith.constant 0.0 : f32
      %two = arith.constant 2 : index
      %0 = arith.addi %row, %i : index
      %1 = arith.subi %0, %j : index
      %2 = arith.muli %width, %two : index
      %3 = arith.cmpi slt, %1, %2 : index
      %4 = arith.select %3, %e, %zero : f32
      tile.yield %4 : f32
    } -> !acc
    tile.store %p, %q[%c0, %c0] dims [0, 1] : !acc, memref<16x8xf32, strided<[8, 1]>>
    gpu.return
  }

  // Rows that depend on the number of the warp group, which is small.

  // CHECK-LABEL: gpu.func @groups
  // CHECK-SAME:    %[[A:[^:]*]]: f32, %[[ROW:[^:]*]]: index, %[[COLUMN:[^:]*]]: index
  // CHECK:         %[[BY:.*]] = arith.muli %{{.*}}, %c64 : index
  // CHECK:         %[[FIRST:.*]] = arith.addi %[[ROW]], %[[BY]] : index
  // CHECK-DAG:     %[[LEFT:.*]] = arith.index_cast %[[FIRST]] : index to i64
  // CHECK-DAG:     %[[RIGHT:.*]] = arith.index_cast %[[COLUMN]] : index to i64
  // CHECK:         llvm.intr.ssub.sat(%[[LEFT]], %[[RIGHT]])
  // CHECK:         arith.cmpi sge, %[[DIFFERENCE:.*]], %c0_i32 : i32
  // CHECK:         arith.cmpi sge, %[[DIFFERENCE]], %c-7_i32 : i32
  gpu.func @groups(%a: f32, %row: index, %column: index, %q: memref<128x8xf32, strided<[8, 1]>>) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    tile.roles {
      tile.role "compute" warps 8 {
        %group = tile.group
        %by = arith.muli %group, %c64 : index
        %x = tile.fill %a : !groups
        %p = tile.map ins(%x : !groups) {
        ^bb0(%e: f32, %i: index, %j: index):
          %zero = arith.constant 0.0 : f32
          %other = arith.addi %i, %by : index
          %0 = arith.addi %row, %other : index
          %1 = arith.addi %column, %j : index
          %2 = arith.cmpi sge, %0, %1 : index
          %3 = arith.select %2, %e, %zero : f32
          tile.yield %3 : f32
        } -> !groups
        tile.store %p, %q[%c0, %c0] dims [0, 1] : !groups, memref<128x8xf32, strided<[8, 1]>>
      }
    }
    gpu.return
  }

  // What is unsigned, of another type, no sum, or the same for all stays.

  // CHECK-LABEL: gpu.func @others
  // CHECK-NOT:     ssub.sat
  // CHECK-COUNT-2: arith.cmpi ult, %{{.*}} : index
  // CHECK-NOT:     ssub.sat
  // CHECK:         gpu.return
  gpu.func @others(%a: f32, %row: index, %wide: i64, %q: memref<16x8xf32, strided<[8, 1]>>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %x = tile.fill %a : !acc
    %p = tile.map ins(%x : !acc) {
    ^bb0(%e: f32, %i: index, %j: index):
      %zero = arith.constant 0.0 : f32
      %0 = arith.cmpi ult, %i, %row : index
      %1 = arith.index_cast %j : index to i64
      %2 = arith.cmpi slt, %1, %wide : i64
      %3 = arith.muli %i, %j : index
      %4 = arith.cmpi slt, %3, %row : index
      %5 = arith.addi %i, %row : index
      %6 = arith.cmpi sge, %5, %i : index
      %7 = arith.andi %0, %2 : i1
      %8 = arith.andi %4, %6 : i1
      %9 = arith.andi %7, %8 : i1
      %10 = arith.select %9, %e, %zero : f32
      tile.yield %10 : f32
    } -> !acc
    tile.store %p, %q[%c0, %c0] dims [0, 1] : !acc, memref<16x8xf32, strided<[8, 1]>>
    gpu.return
  }

  // So does a sum that coordinates could make wrap: of a number near the largest,
  // or of one of 64 bits. One of 32 bits is no such number, and a side without
  // coordinates may be any.

  // CHECK-LABEL: gpu.func @large
  // CHECK-COUNT-2: llvm.intr.ssub.sat
  // CHECK-NOT:     ssub.sat
  // CHECK-COUNT-2: arith.cmpi sge, %{{.*}} : index
  // CHECK:         gpu.return
  gpu.func @large(%a: f32, %wide: i64, %short: i32, %q: memref<16x8xf32, strided<[8, 1]>>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %most = arith.constant 9223372036854775807 : index
    %start = arith.index_cast %wide : i64 to index
    %near = arith.index_cast %short : i32 to index
    %x = tile.fill %a : !acc
    %p = tile.map ins(%x : !acc) {
    ^bb0(%e: f32, %i: index, %j: index):
      %zero = arith.constant 0.0 : f32
      %0 = arith.addi %i, %most : index
      %1 = arith.cmpi sge, %0, %j : index
      %2 = arith.addi %j, %start : index
      %3 = arith.cmpi sge, %i, %2 : index
      %4 = arith.addi %j, %near : index
      %5 = arith.cmpi sge, %i, %4 : index
      %6 = arith.cmpi sge, %i, %start : index
      %7 = arith.andi %1, %3 : i1
      %8 = arith.andi %5, %6 : i1
      %9 = arith.andi %7, %8 : i1
      %10 = arith.select %9, %e, %zero : f32
      tile.yield %10 : f32
    } -> !acc
    tile.store %p, %q[%c0, %c0] dims [0, 1] : !acc, memref<16x8xf32, strided<[8, 1]>>
    gpu.return
  }

  // The place of a tile, in units of tiles, times the tile's size is no larger
  // than the place was, and a negated number no larger than the number. Places
  // in lists have 32 bits.

  // CHECK-LABEL: gpu.func @places
  // CHECK-COUNT-3: llvm.intr.ssub.sat
  // CHECK-NOT:     arith.cmpi {{.*}} : index
  // CHECK:         gpu.return
  gpu.func @places(%a: f32, %rows: memref<?xf32>, %list: memref<?xi32>, %q: memref<16x8xf32, strided<[8, 1]>>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c128 = arith.constant 128 : index
    %c256 = arith.constant 256 : index
    %c1 = arith.constant 1 : index
    %size = memref.dim %rows, %c0 : memref<?xf32>
    %large = arith.muli %size, %c256 : index
    %number = arith.floordivsi %large, %c128 : index
    %row = arith.muli %number, %c128 : index
    %entry = memref.load %list[%c0] : memref<?xi32>
    %wide = arith.index_castui %entry : i32 to index
    %column = arith.shrui %wide, %c1 : index
    %x = tile.fill %a : !acc
    %p = tile.map ins(%x : !acc) {
    ^bb0(%e: f32, %i: index, %j: index):
      %zero = arith.constant 0.0 : f32
      %0 = arith.addi %row, %i : index
      %1 = arith.addi %column, %j : index
      %2 = arith.subi %0, %1 : index
      %3 = arith.subi %c0, %2 : index
      %4 = arith.cmpi sge, %0, %1 : index
      %5 = arith.cmpi sle, %2, %c128 : index
      %6 = arith.cmpi sle, %3, %c128 : index
      %7 = arith.andi %4, %5 : i1
      %8 = arith.andi %6, %7 : i1
      %9 = arith.select %8, %e, %zero : f32
      tile.yield %9 : f32
    } -> !acc
    tile.store %p, %q[%c0, %c0] dims [0, 1] : !acc, memref<16x8xf32, strided<[8, 1]>>
    gpu.return
  }

  // A number that is read for all elements is read once.

  // CHECK-LABEL: gpu.func @length
  // CHECK:         memref.load
  // CHECK:         llvm.intr.ssub.sat
  // CHECK-NOT:     memref.load
  // CHECK-NOT:     arith.cmpi {{.*}} : index
  // CHECK:         gpu.return
  gpu.func @length(%a: f32, %lengths: memref<?xi64>, %q: memref<16x8xf32, strided<[8, 1]>>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %x = tile.fill %a : !acc
    %p = tile.map ins(%x : !acc) {
    ^bb0(%e: f32, %i: index, %j: index):
      %zero = arith.constant 0.0 : f32
      %0 = memref.load %lengths[%c0] : memref<?xi64>
      %1 = arith.index_cast %0 : i64 to index
      %2 = arith.cmpi slt, %j, %1 : index
      %3 = arith.select %2, %e, %zero : f32
      tile.yield %3 : f32
    } -> !acc
    tile.store %p, %q[%c0, %c0] dims [0, 1] : !acc, memref<16x8xf32, strided<[8, 1]>>
    gpu.return
  }

  // What a map only reads is read before what follows, as by waits for products.

  // CHECK-LABEL: gpu.func @read
  // CHECK-COUNT-4: memref.load
  // CHECK-NOT:     memref.load
  // CHECK:         nvvm.bar.warp.sync
  // CHECK:         arith.addf
  gpu.func @read(%a: f32, %m: memref<16x8xf32>, %q: memref<16x8xf32, strided<[8, 1]>>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %x = tile.fill %a : !acc
    %r = tile.map {
    ^bb0(%i: index, %j: index):
      %0 = memref.load %m[%i, %j] : memref<16x8xf32>
      tile.yield %0 : f32
    } -> !acc
    %p = tile.map ins(%x, %r : !acc, !acc) {
    ^bb0(%e: f32, %f: f32, %i: index, %j: index):
      %0 = arith.addf %e, %f : f32
      tile.yield %0 : f32
    } -> !acc
    tile.store %p, %q[%c0, %c0] dims [0, 1] : !acc, memref<16x8xf32, strided<[8, 1]>>
    gpu.return
  }

  // The column, in 32 bits, is compared with what its row has: elements of a row compare
  // one difference with constants. It is as far as it gets where it overflows.

  // CHECK-LABEL: gpu.func @limits
  // CHECK-SAME:    %{{[^:]*}}: f32, %[[LIMIT:[^:]*]]: i32
  // CHECK:         %[[FIRST:.*]] = arith.muli %{{.*}}, %c2_i32 : i32
  // CHECK:         %[[LEFT:.*]] = llvm.intr.ssub.sat(%[[LIMIT]], %{{.*}}) : (i32, i32) -> i32
  // CHECK:         arith.cmpi sgt, %[[LEFT]], %c0_i32 : i32
  // CHECK:         arith.cmpi sgt, %[[LEFT]], %c1_i32 : i32
  // CHECK-NOT:     ssub.sat
  // CHECK:         gpu.return
  gpu.func @limits(%a: f32, %limit: i32, %q: memref<16x8xf32, strided<[8, 1]>>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %x = tile.fill %a : !acc
    %limits = tile.fill %limit : !limits
    %p = tile.map ins(%x : !acc) rows(%limits : !limits) {
    ^bb0(%e: f32, %l: i32, %i: index, %j: index):
      %zero = arith.constant 0.0 : f32
      %0 = arith.index_cast %j : index to i32
      %1 = arith.cmpi slt, %0, %l : i32
      %2 = arith.select %1, %e, %zero : f32
      tile.yield %2 : f32
    } -> !acc
    tile.store %p, %q[%c0, %c0] dims [0, 1] : !acc, memref<16x8xf32, strided<[8, 1]>>
    gpu.return
  }

  // Not so the row, nor a column with what all elements have.

  // CHECK-LABEL: gpu.func @no_limits
  // CHECK-NOT:     ssub.sat
  // CHECK:         gpu.return
  gpu.func @no_limits(%a: f32, %limit: i32, %other: i32, %q: memref<16x8xf32, strided<[8, 1]>>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %x = tile.fill %a : !acc
    %limits = tile.fill %limit : !limits
    %p = tile.map ins(%x : !acc) rows(%limits : !limits) {
    ^bb0(%e: f32, %l: i32, %i: index, %j: index):
      %zero = arith.constant 0.0 : f32
      %0 = arith.index_cast %i : index to i32
      %1 = arith.cmpi slt, %0, %l : i32
      %2 = arith.index_cast %j : index to i32
      %3 = arith.cmpi slt, %2, %other : i32
      %4 = arith.andi %1, %3 : i1
      %5 = arith.select %4, %e, %zero : f32
      tile.yield %5 : f32
    } -> !acc
    tile.store %p, %q[%c0, %c0] dims [0, 1] : !acc, memref<16x8xf32, strided<[8, 1]>>
    gpu.return
  }
}
