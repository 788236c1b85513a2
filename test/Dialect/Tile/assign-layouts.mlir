// RUN: fovea-opt %s --tile-assign-layouts --split-input-file | FileCheck %s
// RUN: fovea-opt %s --attach-gpu-target=target=sm_80 --tile-assign-layouts --split-input-file | FileCheck %s --check-prefix=SM80

// CHECK-DAG: #[[$TILE:.*]] = #tile.layout<128x96, registers = [2:1d1, 2:8d0, 12:8d1], threads = [4:2d1, 8:1d0, 8:16d0]>
// CHECK-DAG: #[[$ROW:.*]] = #tile.layout<128, registers = [2:8d0], threads = [4:r, 8:1d0, 8:16d0]>
// CHECK-DAG: #[[$QUAD:.*]] = #tile.layout<128x4, registers = [2:8d0], threads = [4:1d1, 8:1d0, 8:16d0]>
// CHECK-DAG: #[[$COLUMN:.*]] = #tile.layout<96, registers = [2:1d0, 12:8d0], threads = [4:2d0, 8:r, 8:r]>
// CHECK-LABEL: func @sides
func.func @sides(%o: memref<?xf32>, %n: index, %x: f32) {
  tile.launch grid(%n) warps 8 outs(%o : memref<?xf32>) {
  ^bb0(%b: index, %O: memref<?xf32, strided<[1], offset: ?>>):
    // CHECK: tile.fill %{{.*}} : !tile.fragment<128x96xf32, #[[$TILE]]>
    %t = tile.fill %x : !tile.fragment<128x96xf32>
    // CHECK: tile.fill %{{.*}} : !tile.fragment<96xf32, #[[$COLUMN]]>
    %c = tile.fill %x : !tile.fragment<96xf32>
    // CHECK: tile.fill %{{.*}} : !tile.fragment<128xf32, #[[$ROW]]>
    %r = tile.fill %x : !tile.fragment<128xf32>
    // A number for each thread of a row.
    // CHECK: tile.fill %{{.*}} : !tile.fragment<128x4xf32, #[[$QUAD]]>
    %q = tile.fill %x : !tile.fragment<128x4xf32>
    %s = tile.map ins(%t : !tile.fragment<128x96xf32>) rows(%r : !tile.fragment<128xf32>) columns(%c : !tile.fragment<96xf32>) {
    ^bb1(%e: f32, %re: f32, %ce: f32, %i: index, %j: index):
      %d = arith.subf %re, %ce : f32
      tile.yield %d : f32
    } -> !tile.fragment<128x96xf32>
    tile.store %c, %O[%b] dims [0] : !tile.fragment<96xf32>, memref<?xf32, strided<[1], offset: ?>>
  }
  return
}

// -----

!g = memref<?x?xbf16, strided<[?, 1], offset: ?>>
!w = memref<?x?xf32, strided<[?, 1], offset: ?>>

// Swizzles by the bytes of a row, instructions by type and target.
// CHECK-LABEL: func @products
// SM80-LABEL: func @products
func.func @products(%a: memref<?x?xbf16>, %f: memref<?x?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  tile.launch grid(%n) warps 4 ins(%a : memref<?x?xbf16>) outs(%f : memref<?x?xf32>) {
  ^bb0(%b: index, %A: !g, %F: !w):
    // CHECK: -> !tile.shared<64x96xbf16, swizzle = 64>
    %x = tile.load %A[%b, %c0] dims [0, 1] : !g -> !tile.shared<64x96xbf16>
    // CHECK: -> !tile.shared<64x128xbf16, swizzle = 128>
    %y = tile.load %A[%b, %c0] dims [0, 1] : !g -> !tile.shared<64x128xbf16>
    // CHECK: -> !tile.shared<32x16xf32>
    %z = tile.load %F[%b, %c0] dims [0, 1] : !w -> !tile.shared<32x16xf32>
    // CHECK: -> !tile.shared<64x16xf32>
    %l = tile.load %F[%b, %c0] dims [0, 1] : !w -> !tile.shared<64x16xf32>
    // CHECK: tile.mma wgmma
    // SM80: tile.mma mma_sync
    %p = tile.mma %x, %x transpose_b : !tile.shared<64x96xbf16>, !tile.shared<64x96xbf16> -> !tile.fragment<64x64xf32>
    // CHECK: tile.mma fma
    // SM80: tile.mma fma
    %q = tile.mma %l, %z transpose_b : !tile.shared<64x16xf32>, !tile.shared<32x16xf32> -> !tile.fragment<64x32xf32>
    // A kind that is given stays.
    // CHECK: tile.mma mma_sync
    %r = tile.mma mma_sync %x, %x transpose_b : !tile.shared<64x96xbf16>, !tile.shared<64x96xbf16> -> !tile.fragment<64x64xf32>
  }
  return
}

// -----

// Few rows: two warp groups share the columns, by whole panels, else warps do.
// A column lies as in the tile that it is of.
// CHECK-DAG: #[[$HALVES:.*]] = #tile.layout<64x128, registers = [2:1d1, 2:8d0, 8:8d1], threads = [4:2d1, 8:1d0, 4:16d0, 2:64d1]>
// CHECK-DAG: #[[$PART:.*]] = #tile.layout<128, registers = [2:1d0, 8:8d0], threads = [4:2d0, 8:r, 4:r, 2:64d0]>
// CHECK-DAG: #[[$THIRDS:.*]] = #tile.layout<64x96, registers = [2:1d1, 2:8d0, 6:8d1], threads = [4:2d1, 8:1d0, 4:16d0, 2:48d1]>
// CHECK-LABEL: func @shared_columns
// SM80-LABEL: func @shared_columns
func.func @shared_columns(%o: memref<?x?xf32>, %n: index, %x: bf16, %y: f32) {
  tile.launch grid(%n) warps 8 outs(%o : memref<?x?xf32>) {
  ^bb0(%b: index, %O: memref<?x?xf32, strided<[?, 1], offset: ?>>):
    %f = tile.fill %x : !tile.fragment<128x64xbf16>
    // CHECK: tile.to_shared %{{.*}} transposed {{.*}} -> !tile.shared<64x128xbf16, swizzle = 128>
    %a = tile.to_shared %f transposed : !tile.fragment<128x64xbf16> -> !tile.shared<64x128xbf16>
    %g = tile.fill %x : !tile.fragment<128x128xbf16>
    %h = tile.to_shared %g : !tile.fragment<128x128xbf16> -> !tile.shared<128x128xbf16>
    // CHECK: tile.mma wgmma {{.*}} -> !tile.fragment<64x128xf32, #[[$HALVES]]>
    // SM80: tile.mma mma_sync
    %p = tile.mma %a, %h : !tile.shared<64x128xbf16>, !tile.shared<128x128xbf16> -> !tile.fragment<64x128xf32>
    %w = tile.fill %x : !tile.fragment<128x96xbf16>
    %v = tile.to_shared %w : !tile.fragment<128x96xbf16> -> !tile.shared<128x96xbf16>
    // CHECK: tile.mma mma_sync {{.*}} -> !tile.fragment<64x96xf32, #[[$THIRDS]]>
    %t = tile.mma %a, %v : !tile.shared<64x128xbf16>, !tile.shared<128x96xbf16> -> !tile.fragment<64x96xf32>
    // CHECK: %[[LEFT:.*]] = tile.to_shared %{{.*}} : !tile.fragment<64x128xbf16, #[[$HALVES]]> -> !tile.shared<64x128xbf16, swizzle = 128>
    // CHECK: tile.mma wgmma %[[LEFT]], %{{.*}} -> !tile.fragment<64x128xf32, #[[$HALVES]]>
    %l = tile.fill %x : !tile.fragment<64x128xbf16>
    %m = tile.mma %l, %h : !tile.fragment<64x128xbf16>, !tile.shared<128x128xbf16> -> !tile.fragment<64x128xf32>
    // CHECK: tile.fill %{{.*}} : !tile.fragment<128xf32, #[[$PART]]>
    %c = tile.fill %y : !tile.fragment<128xf32>
    %s = tile.map ins(%p : !tile.fragment<64x128xf32>) columns(%c : !tile.fragment<128xf32>) {
    ^bb1(%e: f32, %ce: f32, %i: index, %j: index):
      %d = arith.subf %e, %ce : f32
      tile.yield %d : f32
    } -> !tile.fragment<64x128xf32>
  }
  return
}

// -----

// Bytes that are widened, and what they are widened to, each have the widest swizzle
// of their rows.
// CHECK-LABEL: func @widened
// CHECK: tile.load {{.*}} -> !tile.shared<64x64xi8, swizzle = 64>
// CHECK: tile.widen {{.*}} : !tile.shared<64x64xi8, swizzle = 64> -> !tile.shared<64x64xf16, swizzle = 128>
func.func @widened(%a: memref<?x64xi8>, %n: index) {
  %c0 = arith.constant 0 : index
  tile.launch grid(%n) warps 4 outs(%a : memref<?x64xi8>) {
  ^bb0(%b: index, %A: memref<?x64xi8, strided<[?, 1], offset: ?>>):
    %k = tile.load %A[%b, %c0] dims [0, 1] : memref<?x64xi8, strided<[?, 1], offset: ?>> -> !tile.shared<64x64xi8>
    %w = tile.widen %k from f8E4M3FN warps 4 : !tile.shared<64x64xi8> -> !tile.shared<64x64xf16>
  }
  return
}

// -----

!w = memref<?x?xf32, strided<[?, 1], offset: ?>>
!n = memref<?x?xi8, strided<[?, 1], offset: ?>>

// What only threads read, element by element, is swizzled whatever its width,
// if its rows are; what products read is as they need it.
// CHECK-LABEL: func @elementwise
func.func @elementwise(%f: memref<?x?xf32>, %c: memref<?x?xi8>, %n: index) {
  %c0 = arith.constant 0 : index
  tile.launch grid(%n) warps 4 outs(%f, %c : memref<?x?xf32>, memref<?x?xi8>) {
  ^bb0(%b: index, %F: !w, %C: !n):
    // CHECK: tile.load {{.*}} -> !tile.shared<64x48xf32, swizzle = 64>
    %x = tile.load %F[%c0, %c0] dims [0, 1] : !w -> !tile.shared<64x48xf32>
    %xf = tile.from_shared %x : !tile.shared<64x48xf32> -> !tile.fragment<64x48xf32>
    // CHECK: tile.load {{.*}} -> !tile.shared<64x64xi8, swizzle = 64>
    %y = tile.load %C[%c0, %c0] dims [0, 1] : !n -> !tile.shared<64x64xi8>
    %yf = tile.from_shared %y : !tile.shared<64x64xi8> -> !tile.fragment<64x64xi8>
    // CHECK: tile.load {{.*}} -> !tile.shared<64x64xf32>
    %z = tile.load %F[%c0, %c0] dims [0, 1] : !w -> !tile.shared<64x64xf32>
    %p = tile.mma %z, %z transpose_b : !tile.shared<64x64xf32>, !tile.shared<64x64xf32> -> !tile.fragment<64x64xf32>
    // CHECK: tile.load {{.*}} -> !tile.shared<1x64xf32>
    %r = tile.load %F[%c0, %c0] dims [0, 1] : !w -> !tile.shared<1x64xf32>
    %rf = tile.from_shared %r : !tile.shared<1x64xf32> -> !tile.fragment<64xf32>
  }
  return
}

// -----

// Warps share the keys of 16 queries: each has all of these in fours of neighbours, keys
// of its own, its maximum, all maxima when it reads them, and features of its own, in
// fours, for which it needs all probabilities.
// CHECK-DAG: #[[$QUERY:.*]] = #tile.layout<16x64, registers = [4:1d1, 2:8d0, 4:16d1], threads = [4:4d1, 8:1d0, 4:r]>
// CHECK-DAG: #[[$SCORES:.*]] = #tile.layout<16x128, registers = [2:1d1, 2:8d0, 4:8d1], threads = [4:2d1, 8:1d0, 4:32d1]>
// CHECK-DAG: #[[$OWN:.*]] = #tile.layout<16x4, registers = [2:8d0], threads = [4:r, 8:1d0, 4:1d1]>
// CHECK-DAG: #[[$ALL:.*]] = #tile.layout<16x4, registers = [4:1d1, 2:8d0], threads = [4:r, 8:1d0, 4:r]>
// CHECK-DAG: #[[$SUMS:.*]] = #tile.layout<16x128, registers = [4:1d1, 2:8d0, 2:16d1], threads = [4:4d1, 8:1d0, 4:32d1]>
// CHECK-LABEL: func @shared_keys
func.func @shared_keys(%q: memref<16x64xf16>, %k: memref<128x64xi8>, %v: memref<128x128xi8>, %o: memref<16x128xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  tile.launch grid(%n) warps 4 ins(%q, %k, %v : memref<16x64xf16>, memref<128x64xi8>, memref<128x128xi8>) outs(%o : memref<16x128xf32>) {
  ^bb0(%b: index, %Q: memref<16x64xf16, strided<[?, 1], offset: ?>>, %K: memref<128x64xi8, strided<[?, 1], offset: ?>>, %V: memref<128x128xi8, strided<[?, 1], offset: ?>>, %O: memref<16x128xf32, strided<[?, 1], offset: ?>>):
    %qs = tile.load %Q[%c0, %c0] dims [0, 1] : memref<16x64xf16, strided<[?, 1], offset: ?>> -> !tile.shared<16x64xf16>
    // CHECK: %[[Q:.*]] = tile.from_shared {{.*}} -> !tile.fragment<16x64xf16, #[[$QUERY]]>
    %qf = tile.from_shared %qs : !tile.shared<16x64xf16> -> !tile.fragment<16x64xf16>
    %ks = tile.load %K[%c0, %c0] dims [0, 1] : memref<128x64xi8, strided<[?, 1], offset: ?>> -> !tile.shared<128x64xi8>
    // CHECK: tile.mma mma_sync %[[Q]], {{.*}} from f8E4M3FN transpose_b : {{.*}} -> !tile.fragment<16x128xf32, #[[$SCORES]]>
    %s = tile.mma %qf, %ks from f8E4M3FN transpose_b : !tile.fragment<16x64xf16>, !tile.shared<128x64xi8> -> !tile.fragment<16x128xf32>
    %least = tile.fill %low : !tile.fragment<16x4xf32>
    // CHECK: %[[PARTS:.*]] = tile.reduce max {{.*}} neighbors : {{.*}} -> !tile.fragment<16x4xf32, #[[$OWN]]>
    %parts = tile.reduce max %s, %least dim 1 neighbors : !tile.fragment<16x128xf32> -> !tile.fragment<16x4xf32>
    // CHECK: tile.to_shared %[[PARTS]]
    %ps = tile.to_shared %parts : !tile.fragment<16x4xf32> -> !tile.shared<16x4xf32>
    // CHECK: tile.from_shared {{.*}} -> !tile.fragment<16x4xf32, #[[$ALL]]>
    %all = tile.from_shared %ps : !tile.shared<16x4xf32> -> !tile.fragment<16x4xf32>
    %row = tile.fill %low : !tile.fragment<16xf32>
    %m = tile.reduce max %all, %row dim 1 : !tile.fragment<16x4xf32> -> !tile.fragment<16xf32>
    %p = tile.map ins(%s : !tile.fragment<16x128xf32>) rows(%m : !tile.fragment<16xf32>) {
    ^bb0(%x: f32, %y: f32, %i: index, %j: index):
      %d = arith.subf %x, %y : f32
      %h = arith.truncf %d : f32 to f16
      tile.yield %h : f16
    } -> !tile.fragment<16x128xf16>
    %vs = tile.load %V[%c0, %c0] dims [0, 1] : memref<128x128xi8, strided<[?, 1], offset: ?>> -> !tile.shared<128x128xi8>
    // CHECK: tile.fill {{.*}} #[[$SUMS]]>
    %none = tile.fill %zero : !tile.fragment<16x128xf32>
    // CHECK: %[[P:.*]] = tile.to_shared {{.*}} -> !tile.shared<16x128xf16, swizzle = 128>
    // CHECK: tile.mma mma_sync %[[P]], {{.*}} from f8E4M3FN into {{.*}} -> !tile.fragment<16x128xf32, #[[$SUMS]]>
    %r = tile.mma %p, %vs from f8E4M3FN into %none : !tile.fragment<16x128xf16>, !tile.shared<128x128xi8>, !tile.fragment<16x128xf32> -> !tile.fragment<16x128xf32>
    tile.store %r, %O[%c0, %c0] dims [0, 1] : !tile.fragment<16x128xf32>, memref<16x128xf32, strided<[?, 1], offset: ?>>
  }
  return
}

// -----

!pages = memref<?x?x8x128xbf16, strided<[?, ?, ?, 1], offset: ?>>

// Rows of two panels come in runs, so that one instruction of TMA copies both: those of
// a product's inner dimension, and its columns if an instruction still has 64.
// CHECK-LABEL: func @runs
// SM80-LABEL: func @runs
// SM80-NOT: runs = 
func.func @runs(%p: !pages, %q: !tile.shared<64x128xbf16>, %e: !tile.fragment<64x128xbf16>, %n: index) {
  %c0 = arith.constant 0 : index
  tile.launch grid(%n) warps 4 outs(%p : !pages) {
  ^bb0(%b: index, %P: !pages):
    // CHECK: tile.load {{.*}} runs 16 {
    // CHECK: -> !tile.shared<128x128xbf16, swizzle = 128, runs = 16>
    %k = tile.load %P dims [1, 3] runs 16 {
    ^bb1(%i: index):
      tile.yield %b, %i, %c0 : index, index, index
    } : !pages -> !tile.shared<128x128xbf16>
    %s = tile.mma %q, %k transpose_b : !tile.shared<64x128xbf16>, !tile.shared<128x128xbf16> -> !tile.fragment<64x128xf32>
    // CHECK: -> !tile.shared<128x128xbf16, swizzle = 128, runs = 32>
    %v = tile.load %P dims [1, 3] runs 32 {
    ^bb1(%i: index):
      tile.yield %b, %i, %c0 : index, index, index
    } : !pages -> !tile.shared<128x128xbf16>
    %o = tile.mma %e, %v : !tile.fragment<64x128xbf16>, !tile.shared<128x128xbf16> -> !tile.fragment<64x128xf32>
    // CHECK: -> !tile.shared<128x128xbf16, swizzle = 128, runs = 128>
    %w = tile.load %P dims [1, 3] runs 128 {
    ^bb1(%i: index):
      tile.yield %b, %i, %c0 : index, index, index
    } : !pages -> !tile.shared<128x128xbf16>
    %t = tile.mma %q, %w transpose_b : !tile.shared<64x128xbf16>, !tile.shared<128x128xbf16> -> !tile.fragment<64x128xf32>
  }
  return
}

// -----

!pages = memref<?x?x8x128xbf16, strided<[?, ?, ?, 1], offset: ?>>
!wide = memref<?x?x8x8x128xbf16, strided<[?, ?, ?, ?, 1], offset: ?>>
!narrow = memref<?x?x8x120xbf16, strided<[?, ?, ?, 1], offset: ?>>

// Not in runs: columns of which an instruction would have 32; of a product of more
// rows, which has no time to read its left operand twice; steps of the inner dimension
// that cross runs; tiles of one panel; what threads read, too; the left operand; memory
// of too many dimensions, or whose columns are not whole panels.
// CHECK-LABEL: func @not_in_runs
// CHECK-NOT: runs = 
func.func @not_in_runs(%p: !pages, %x: !wide, %y: !narrow, %q: !tile.shared<64x128xbf16>, %many: !tile.shared<128x128xbf16>, %e: !tile.fragment<64x96xbf16>, %z: !tile.fragment<64x128xbf16>, %n: index) {
  %c0 = arith.constant 0 : index
  tile.launch grid(%n) warps 4 outs(%p, %x, %y : !pages, !wide, !narrow) {
  ^bb0(%b: index, %P: !pages, %X: !wide, %Y: !narrow):
    %k = tile.load %P dims [1, 3] runs 32 {
    ^bb1(%i: index):
      tile.yield %b, %i, %c0 : index, index, index
    } : !pages -> !tile.shared<128x128xbf16>
    %0 = tile.mma %q, %k transpose_b : !tile.shared<64x128xbf16>, !tile.shared<128x128xbf16> -> !tile.fragment<64x128xf32>
    %l = tile.load %P dims [1, 3] runs 16 {
    ^bb1(%i: index):
      tile.yield %b, %i, %c0 : index, index, index
    } : !pages -> !tile.shared<128x128xbf16>
    %1 = tile.mma %many, %l transpose_b : !tile.shared<128x128xbf16>, !tile.shared<128x128xbf16> -> !tile.fragment<128x128xf32>
    %v = tile.load %P dims [1, 3] runs 24 {
    ^bb1(%i: index):
      tile.yield %b, %i, %c0 : index, index, index
    } : !pages -> !tile.shared<96x128xbf16>
    %2 = tile.mma %e, %v : !tile.fragment<64x96xbf16>, !tile.shared<96x128xbf16> -> !tile.fragment<64x128xf32>
    %h = tile.load %P dims [1, 3] runs 16 {
    ^bb1(%i: index):
      tile.yield %b, %i, %c0 : index, index, index
    } : !pages -> !tile.shared<128x64xbf16>
    %3 = tile.mma %z, %h : !tile.fragment<64x128xbf16>, !tile.shared<128x64xbf16> -> !tile.fragment<64x64xf32>
    %r = tile.load %P dims [1, 3] runs 16 {
    ^bb1(%i: index):
      tile.yield %b, %i, %c0 : index, index, index
    } : !pages -> !tile.shared<128x128xbf16>
    %4 = tile.mma %z, %r : !tile.fragment<64x128xbf16>, !tile.shared<128x128xbf16> -> !tile.fragment<64x128xf32>
    %5 = tile.from_shared %r : !tile.shared<128x128xbf16> -> !tile.fragment<128x128xbf16>
    %a = tile.load %P dims [1, 3] runs 16 {
    ^bb1(%i: index):
      tile.yield %b, %i, %c0 : index, index, index
    } : !pages -> !tile.shared<64x128xbf16>
    %6 = tile.mma %a, %many transpose_b : !tile.shared<64x128xbf16>, !tile.shared<128x128xbf16> -> !tile.fragment<64x128xf32>
    %w = tile.load %X dims [1, 4] runs 16 {
    ^bb1(%i: index):
      tile.yield %b, %i, %c0, %c0 : index, index, index, index
    } : !wide -> !tile.shared<128x128xbf16>
    %7 = tile.mma %z, %w : !tile.fragment<64x128xbf16>, !tile.shared<128x128xbf16> -> !tile.fragment<64x128xf32>
    %m = tile.load %Y dims [1, 3] runs 16 {
    ^bb1(%i: index):
      tile.yield %b, %i, %c0 : index, index, index
    } : !narrow -> !tile.shared<128x128xbf16>
    %8 = tile.mma %z, %m : !tile.fragment<64x128xbf16>, !tile.shared<128x128xbf16> -> !tile.fragment<64x128xf32>
  }
  return
}
