// RUN: fovea-opt %s --tile-form-boxes --split-input-file --remarks-filter=tile-form-boxes 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t

!m = memref<?x16x8x64xbf16, strided<[?, ?, ?, 1], offset: ?>>
!t = memref<?x?xi32, strided<[?, 1], offset: ?>>
!tile = !tile.shared<112x64xbf16>

// Pages of 16 rows: a run neither begins nor ends within one. Any op on numbers
// that are the same in a run may follow.

// CHECK-LABEL: func @pages
// CHECK:         tile.load %{{.*}} dims [1, 3] rows(%{{.*}}, %{{.*}}) runs 16 {
func.func @pages(%m: !m, %table: !t, %n: index, %h: index) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c112 = arith.constant 112 : index
  %last = arith.constant 1000 : i32
  scf.for %j = %c0 to %n step %c112 {
    %k = tile.load %m dims [2, 3] rows(%c0, %n) runs 1 {
    ^bb0(%r: index):
      %row = arith.addi %j, %r : index
      %page = arith.divui %row, %c16 : index
      %slot = arith.remui %row, %c16 : index
      %p = memref.load %table[%h, %page] : !t
      %q = arith.minsi %p, %last : i32
      %i = arith.index_cast %q : i32 to index
      tile.yield %i, %slot, %h : index, index, index
    } : !m -> !tile
  }
  return
}

// -----

// The same by shifts and bits, by affine maps, and of rows counted in i32.

!m = memref<?x32x64xbf16, strided<[?, ?, 1], offset: ?>>
!tile = !tile.shared<64x64xbf16>

// CHECK-LABEL: func @spellings
// CHECK-COUNT-3: tile.load %{{.*}} dims [1, 2] runs 32 {
func.func @spellings(%m: !m, %b: index) {
  %c5 = arith.constant 5 : index
  %c31 = arith.constant 31 : index
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : index
  %first = arith.muli %b, %c64 : index
  %0 = tile.load %m dims [1, 2] runs 1 {
  ^bb0(%r: index):
    %row = arith.addi %first, %r : index
    %page = arith.shrui %row, %c5 : index
    %slot = arith.andi %row, %c31 : index
    tile.yield %page, %slot : index, index
  } : !m -> !tile
  %1 = tile.load %m dims [1, 2] runs 1 {
  ^bb0(%r: index):
    %page = affine.apply affine_map<(d0)[s0] -> ((d0 + s0 * 64) floordiv 32)>(%r)[%b]
    %slot = affine.apply affine_map<(d0)[s0] -> ((d0 + s0 * 64) mod 32)>(%r)[%b]
    tile.yield %page, %slot : index, index
  } : !m -> !tile
  %2 = tile.load %m dims [1, 2] runs 1 {
  ^bb0(%r: index):
    %row = arith.addi %first, %r : index
    %i = arith.index_cast %row : index to i32
    %page = arith.divui %i, %c32 : i32
    %slot = arith.remui %i, %c32 : i32
    %x = arith.index_cast %page : i32 to index
    %y = arith.index_cast %slot : i32 to index
    tile.yield %x, %y : index, index
  } : !m -> !tile
  return
}

// -----

// A sequence that begins anywhere: all rows are one run. Runs have 8 rows or
// more, and at most 256.

!m = memref<?x8x64xbf16, strided<[?, ?, 1], offset: ?>>

// CHECK-LABEL: func @sequence
// CHECK:         tile.load %{{.*}} dims [0, 2] runs 80 {
// CHECK:         tile.load %{{.*}} dims [0, 2] runs 192 {
// CHECK:         tile.load %{{.*}} dims [0, 2] runs 8 {
func.func @sequence(%m: !m, %first: index, %h: index) {
  %0 = tile.load %m dims [1, 2] runs 1 {
  ^bb0(%r: index):
    %row = arith.addi %first, %r : index
    tile.yield %row, %h : index, index
  } : !m -> !tile.shared<80x64xbf16>
  %1 = tile.load %m dims [1, 2] runs 1 {
  ^bb0(%r: index):
    %row = arith.subi %r, %first : index
    tile.yield %row, %h : index, index
  } : !m -> !tile.shared<384x64xbf16>
  %2 = tile.load %m dims [1, 2] runs 1 {
  ^bb0(%r: index):
    tile.yield %r, %h : index, index
  } : !m -> !tile.shared<8x64xbf16>
  return
}

// -----

// Rows that stay apart: pages of 5 and of 4, a page that is no constant, a first
// row that may be within a page, rows that step by two, backwards, or along two
// dimensions, places that a table gives; and signed quotients, which are not
// rounded down.

!m = memref<?x?x64xbf16, strided<[?, ?, 1], offset: ?>>
!tile = !tile.shared<64x64xbf16>

// REMARK-COUNT-9: rows are copied one by one: no 8 rows are known to follow one another in memory
// CHECK-LABEL: func @apart
// CHECK-COUNT-9: tile.load %{{.*}} dims [0, 2] runs 1 {
func.func @apart(%m: !m, %n: index, %b: index, %table: memref<?xindex>) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %first = arith.muli %b, %c64 : index
  %0 = tile.load %m dims [0, 2] runs 1 {
  ^bb0(%r: index):
    %page = arith.divui %r, %c5 : index
    %slot = arith.remui %r, %c5 : index
    tile.yield %page, %slot : index, index
  } : !m -> !tile
  %1 = tile.load %m dims [0, 2] runs 1 {
  ^bb0(%r: index):
    %page = arith.divui %r, %c4 : index
    %slot = arith.remui %r, %c4 : index
    tile.yield %page, %slot : index, index
  } : !m -> !tile
  %2 = tile.load %m dims [0, 2] runs 1 {
  ^bb0(%r: index):
    %page = arith.divui %r, %n : index
    %slot = arith.remui %r, %n : index
    tile.yield %page, %slot : index, index
  } : !m -> !tile
  %3 = tile.load %m dims [0, 2] runs 1 {
  ^bb0(%r: index):
    %row = arith.addi %r, %b : index
    %page = arith.divui %row, %c16 : index
    %slot = arith.remui %row, %c16 : index
    tile.yield %page, %slot : index, index
  } : !m -> !tile
  %4 = tile.load %m dims [0, 2] runs 1 {
  ^bb0(%r: index):
    %row = arith.addi %r, %r : index
    tile.yield %row, %b : index, index
  } : !m -> !tile
  %5 = tile.load %m dims [0, 2] runs 1 {
  ^bb0(%r: index):
    %row = arith.subi %n, %r : index
    tile.yield %row, %b : index, index
  } : !m -> !tile
  %6 = tile.load %m dims [0, 2] runs 1 {
  ^bb0(%r: index):
    tile.yield %r, %r : index, index
  } : !m -> !tile
  %7 = tile.load %m dims [0, 2] runs 1 {
  ^bb0(%r: index):
    %row = memref.load %table[%r] : memref<?xindex>
    tile.yield %row, %b : index, index
  } : !m -> !tile
  %8 = tile.load %m dims [0, 2] runs 1 {
  ^bb0(%r: index):
    %row = arith.addi %first, %r : index
    %page = arith.divsi %row, %c16 : index
    tile.yield %page, %b : index, index
  } : !m -> !tile
  return
}

// -----

// Loads with indices, and runs that are known, stay.

!m = memref<?x64xbf16, strided<[?, 1], offset: ?>>
!tile = !tile.shared<64x64xbf16>

// CHECK-LABEL: func @others
// CHECK:         tile.load %{{.*}}[%{{.*}}, %{{.*}}] dims [0, 1] : memref
// CHECK:         tile.load %{{.*}} dims [0, 1] runs 16 {
func.func @others(%m: !m, %i: index) {
  %0 = tile.load %m[%i, %i] dims [0, 1] : !m -> !tile
  %1 = tile.load %m dims [0, 1] runs 16 {
  ^bb0(%r: index):
    tile.yield %r : index
  } : !m -> !tile
  return
}
