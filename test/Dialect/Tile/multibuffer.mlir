// RUN: fovea-opt %s --tile-multibuffer --split-input-file | FileCheck %s
// RUN: fovea-opt %s --tile-multibuffer=min-stages=4 --split-input-file | FileCheck %s --check-prefix=FEW

// FEW-NOT: tile.ring

!g = memref<?x64xbf16, strided<[?, 1], offset: ?>>
!t = !tile.shared<64x64xbf16, swizzle = 128>

// CHECK-LABEL: func @loads
func.func @loads(%a: memref<?x64xbf16>, %o: memref<?x?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  tile.launch grid(%n) warps 4 stages 3 ins(%a : memref<?x64xbf16>) outs(%o : memref<?x?xf32>) {
  ^bb0(%b: index, %A: !g, %O: memref<?x?xf32, strided<[?, 1], offset: ?>>):
    // CHECK: %[[LOOP:.*]] = tile.ring : !tile.ring<3 x !tile.shared<64x64xbf16, swizzle = 128>>
    // CHECK: %[[ONCE:.*]] = tile.ring : !tile.ring<1 x !tile.shared<64x64xbf16, swizzle = 128>>
    // CHECK: %[[ZERO:.*]] = arith.constant 0 : index
    // CHECK: %[[SLOT:.*]] = tile.acquire %[[ONCE]][%[[ZERO]]]
    // CHECK: tile.load_async %{{.*}}[%{{.*}}] dims [0, 1] into %[[SLOT]] signals %[[ONCE]][%[[ZERO]]]
    %x = tile.load %A[%b, %c0] dims [0, 1] : !g -> !t
    // CHECK: %[[X:.*]] = tile.wait %[[ONCE]][%[[ZERO]]]
    // CHECK: scf.for {{.*}} iter_args(%[[USE:.*]] = %{{.*}}) -> (index)
    scf.for %j = %c0 to %n step %c64 {
      // CHECK: tile.acquire %[[LOOP]][%[[USE]]]
      %y = tile.load %A[%j, %c0] dims [0, 1] : !g -> !t
      // The wait stands before the first use, the release after the last.
      // CHECK: tile.load_async
      // CHECK: arith.addi
      %i = arith.addi %j, %b : index
      // CHECK: %[[Y:.*]] = tile.wait %[[LOOP]][%[[USE]]]
      // CHECK: tile.mma %[[X]], %[[Y]]
      %p = tile.mma %x, %y transpose_b : !t, !t -> !tile.fragment<64x64xf32>
      // CHECK: tile.release %[[LOOP]][%[[USE]]]
      // CHECK: tile.store
      tile.store %p, %O[%i, %c0] dims [0, 1] : !tile.fragment<64x64xf32>, memref<?x?xf32, strided<[?, 1], offset: ?>>
      // CHECK: %[[NEXT:.*]] = arith.addi %[[USE]], %{{.*}}
      // CHECK: scf.yield %[[NEXT]]
    }
    // CHECK: tile.release %[[ONCE]][%[[ZERO]]]
  }
  return
}

// -----

!g = memref<?x64xbf16, strided<[?, 1], offset: ?>>
!t = !tile.shared<64x64xbf16, swizzle = 128>

// A branch in a loop counts how often it was taken, one without an else region
// too.
// CHECK-LABEL: func @guarded
// CHECK:       %[[ELSE:.*]] = tile.ring
// CHECK:       %[[THEN:.*]] = tile.ring
// CHECK:       scf.for {{.*}} iter_args(%[[A:.*]] = %{{.*}}, %[[B:.*]] = %{{.*}}) -> (index, index) {
// CHECK:         %[[TAKEN:.*]] = scf.if %{{.*}} -> (index) {
// CHECK:           tile.acquire %[[THEN]][%[[A]]]
// CHECK:           tile.wait %[[THEN]][%[[A]]]
// CHECK:           tile.release %[[THEN]][%[[A]]]
// CHECK:           %[[NEXT:.*]] = arith.addi %[[A]], %{{.*}}
// CHECK:           scf.yield %[[NEXT]]
// CHECK:         } else {
// CHECK:           scf.yield %[[A]]
// CHECK:         }
// CHECK:         %[[R:.*]]:2 = scf.if %{{.*}} -> (index, index) {
// CHECK:           scf.yield %{{.*}}, %[[B]]
// CHECK:         } else {
// CHECK:           tile.acquire %[[ELSE]][%[[B]]]
// CHECK:           %[[SUM:.*]] = arith.addi %[[B]], %{{.*}}
// CHECK:           scf.yield %{{.*}}, %[[SUM]]
// CHECK:         }
// CHECK:         arith.addi %[[R]]#0
// CHECK:         scf.yield %[[TAKEN]], %[[R]]#1
func.func @guarded(%a: memref<?x64xbf16>, %o: memref<?x?xf32>, %n: index, %p: i1) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  tile.launch grid(%n) warps 4 ins(%a : memref<?x64xbf16>) outs(%o : memref<?x?xf32>) {
  ^bb0(%b: index, %A: !g, %O: memref<?x?xf32, strided<[?, 1], offset: ?>>):
    scf.for %j = %c0 to %n step %c64 {
      scf.if %p {
        %y = tile.load %A[%j, %c0] dims [0, 1] : !g -> !t
        %s = tile.mma %y, %y transpose_b : !t, !t -> !tile.fragment<64x64xf32>
        tile.store %s, %O[%j, %c0] dims [0, 1] : !tile.fragment<64x64xf32>, memref<?x?xf32, strided<[?, 1], offset: ?>>
      }
      %i = scf.if %p -> index {
        scf.yield %c64 : index
      } else {
        %y = tile.load %A[%b, %c0] dims [0, 1] : !g -> !t
        %s = tile.mma %y, %y transpose_b : !t, !t -> !tile.fragment<64x64xf32>
        tile.store %s, %O[%j, %c0] dims [0, 1] : !tile.fragment<64x64xf32>, memref<?x?xf32, strided<[?, 1], offset: ?>>
        scf.yield %c0 : index
      }
      %k = arith.addi %i, %i : index
    }
  }
  return
}

// -----

!g = memref<?x64xbf16, strided<[?, 1], offset: ?>>
!t = !tile.shared<64x64xbf16, swizzle = 128>

// A tile that a branch loads, one in registers, one that leaves its block.
// CHECK-LABEL: func @others
// CHECK-NOT: tile.ring
// CHECK-COUNT-3: tile.load %
func.func @others(%a: memref<?x64xbf16>, %n: index, %p: i1) {
  %c0 = arith.constant 0 : index
  tile.launch grid(%n) warps 4 outs(%a : memref<?x64xbf16>) {
  ^bb0(%b: index, %A: !g):
    %f = tile.load %A[%b, %c0] dims [0, 1] : !g -> !tile.fragment<64x64xbf16>
    tile.store %f, %A[%n, %c0] dims [0, 1] : !tile.fragment<64x64xbf16>, !g
    %t = scf.if %p -> !t {
      %y = tile.load %A[%b, %c0] dims [0, 1] : !g -> !t
      scf.yield %y : !t
    } else {
      %y = tile.load %A[%n, %c0] dims [0, 1] : !g -> !t
      scf.yield %y : !t
    }
  }
  return
}

// -----

!g = memref<?x64xbf16, strided<[?, 1], offset: ?>>
!v = memref<?x?xf32, strided<[?, 1], offset: ?>>
!s = !tile.fragment<128x64xf32>
!p = !tile.fragment<128x64xbf16>

// A count goes on from one run of a loop to the next. Numbers for the columns of
// a tile come by a ring of rows; others, and those outside of loops, do not. What
// products of the same step read has two slots.
// CHECK-LABEL: func @nested
// CHECK:       %[[ROWS:.*]] = tile.ring : !tile.ring<2 x !tile.shared<1x64xf32>>
// CHECK:       %[[TILES:.*]] = tile.ring : !tile.ring<2 x !tile.shared<64x64xbf16, swizzle = 128>>
// CHECK:       tile.load {{.*}} -> !tile.fragment<64xf32>
// CHECK:       scf.for {{.*}} iter_args(%[[N0:.*]] = %{{.*}}) -> (index) {
// CHECK:         %[[END:.*]] = scf.for {{.*}} iter_args(%[[N:.*]] = %[[N0]]) -> (index) {
// CHECK:           tile.acquire %[[TILES]][%[[N]]]
// CHECK:           tile.acquire %[[ROWS]][%[[N]]]
// CHECK:           tile.load_async %{{.*}}[%{{.*}}, %{{.*}}] dims [0, 1] into %{{.*}} signals %[[ROWS]][%[[N]]]
// CHECK:           %[[ROW:.*]] = tile.wait %[[ROWS]][%[[N]]]
// CHECK-NEXT:      %[[X:.*]] = tile.from_shared %[[ROW]] : !tile.shared<1x64xf32> -> !tile.fragment<64xf32>
// CHECK-NEXT:      tile.release %[[ROWS]][%[[N]]]
// CHECK:           tile.map {{.*}} columns(%[[X]], %{{.*}} :
// CHECK:           tile.to_shared %{{.*}} transposed slot %[[N]] of 2{{ }}
// CHECK:           tile.to_shared %{{.*}} : !tile.fragment<128x64xbf16> -> !tile.shared<128x64xbf16>
// CHECK:           %[[N1:.*]] = arith.addi %[[N]], %{{.*}}
// CHECK:           scf.yield %[[N1]]
// CHECK:         scf.yield %[[END]]
func.func @nested(%q: memref<?x64xbf16>, %l: memref<?x?xf32>, %o: memref<?x64xbf16>, %n: index, %x: bf16, %y: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  tile.launch grid(%n) warps 8 ins(%q, %l : memref<?x64xbf16>, memref<?x?xf32>) outs(%o : memref<?x64xbf16>) {
  ^bb0(%b: index, %Q: !g, %L: !v, %O: !g):
    %once = tile.load %L[%b, %c0] dims [1] : !v -> !tile.fragment<64xf32>
    scf.for %h = %c0 to %n step %c1 {
      scf.for %i = %c0 to %n step %c64 {
        %t = tile.load %Q[%i, %c0] dims [0, 1] : !g -> !tile.shared<64x64xbf16, swizzle = 128>
        %r = tile.load %L[%h, %i] dims [1] : !v -> !tile.fragment<64xf32>
        %f = tile.fill %y : !s
        %m = tile.map ins(%f : !s) columns(%r, %once : !tile.fragment<64xf32>, !tile.fragment<64xf32>) {
        ^bb1(%e: f32, %c: f32, %d: f32, %row: index, %column: index):
          %z = arith.addf %c, %d : f32
          %w = arith.mulf %e, %z : f32
          %v = arith.truncf %w : f32 to bf16
          tile.yield %v : bf16
        } -> !p
        %s = tile.to_shared %m transposed : !p -> !tile.shared<64x128xbf16, swizzle = 128>
        %a = tile.mma %t, %s : !tile.shared<64x64xbf16, swizzle = 128>, !tile.shared<64x128xbf16, swizzle = 128> -> !tile.fragment<64x128xf32>
        %u = tile.to_shared %m : !p -> !tile.shared<128x64xbf16>
        tile.store_async %u, %O[%i, %c0] dims [0, 1] : !tile.shared<128x64xbf16>, !g
      }
    }
  }
  return
}

// -----

!g = memref<?x64xbf16, strided<[?, 1], offset: ?>>
!t = !tile.shared<64x64xbf16, swizzle = 128>

// What nothing reads is not loaded.
// CHECK-LABEL: func @unread
// CHECK:       tile.launch
// CHECK-NOT:   tile.
// CHECK:       return
func.func @unread(%a: memref<?x64xbf16>, %n: index) {
  %c0 = arith.constant 0 : index
  tile.launch grid(%n) warps 4 outs(%a : memref<?x64xbf16>) {
  ^bb0(%b: index, %A: !g):
    %t = tile.load %A[%b, %c0] dims [0, 1] : !g -> !t
  }
  return
}

// -----

!g = memref<?x64xbf16, strided<[?, 1], offset: ?>>
!t = !tile.shared<64x64xbf16, swizzle = 128>

// Rows that a load leaves out, its copies leave out.
// CHECK-LABEL: func @rows
func.func @rows(%a: memref<?x64xbf16>, %o: memref<?x?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  tile.launch grid(%n) warps 4 stages 3 ins(%a : memref<?x64xbf16>) outs(%o : memref<?x?xf32>) {
  ^bb0(%b: index, %A: !g, %O: memref<?x?xf32, strided<[?, 1], offset: ?>>):
    // CHECK: tile.load_async %{{.*}}[%{{.*}}] dims [0, 1] rows(%{{.*}}, %[[END:.*]]) into
    %x = tile.load %A[%b, %c0] dims [0, 1] rows(%c0, %b) : !g -> !t
    scf.for %j = %c0 to %n step %c64 {
      // CHECK: %[[LEFT:.*]] = arith.subi
      %left = arith.subi %n, %j : index
      // CHECK: tile.load_async %{{.*}}[%{{.*}}] dims [0, 1] rows(%{{.*}}, %[[LEFT]]) into
      %y = tile.load %A[%j, %c0] dims [0, 1] rows(%c0, %left) : !g -> !t
      %p = tile.mma %x, %y transpose_b : !t, !t -> !tile.fragment<64x64xf32>
      tile.store %p, %O[%j, %c0] dims [0, 1] : !tile.fragment<64x64xf32>, memref<?x?xf32, strided<[?, 1], offset: ?>>
    }
  }
  return
}

// -----

#o = #tile.layout<256x128, registers = [2:1d1, 2:8d0, 16:8d1], threads = [4:2d1, 8:1d0, 16:16d0]>

// A load in a loop around a loop with loads: two slots, if there is memory for
// them beside what the program stores, or a part of it.

!x = memref<?x?x128xbf16, strided<[?, ?, 1], offset: ?>>

// CHECK-LABEL: func @outer_load
// CHECK:       tile.ring : !tile.ring<2 x !tile.shared<128x128xbf16, swizzle = 128>>
// CHECK:       tile.ring : !tile.ring<3 x !tile.shared<64x128xbf16, swizzle = 128>>
// CHECK-LABEL: func @outer_load_wide
// CHECK:       tile.ring : !tile.ring<1 x !tile.shared<256x128xbf16, swizzle = 128>>
// CHECK:       tile.ring : !tile.ring<3 x !tile.shared<128x128xbf16, swizzle = 128>>
// CHECK-LABEL: func @outer_load_part
// CHECK:       tile.ring : !tile.ring<2 x !tile.shared<256x128xbf16, swizzle = 128>>
// CHECK:       tile.ring : !tile.ring<3 x !tile.shared<64x128xbf16, swizzle = 128>>
// CHECK-LABEL: func @outer_load_place
// CHECK:       tile.ring : !tile.ring<2 x !tile.shared<256x128xbf16, swizzle = 128>>
// CHECK:       tile.ring : !tile.ring<3 x !tile.shared<128x128xbf16, swizzle = 128>>
func.func @outer_load(%x: !x, %o: !x, %n: index) {
  tile.launch grid(%n) warps 8 stages 3 ins(%x : !x) outs(%o : !x) {
  ^bb0(%b: index, %X: !x, %O: !x):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : bf16
    scf.for %i = %b to %n step %c1 {
      %q = tile.load %X[%b, %i, %c0] dims [1, 2] : !x -> !tile.shared<128x128xbf16, swizzle = 128>
      scf.for %j = %c0 to %n step %c1 {
        %k = tile.load %X[%b, %j, %c0] dims [1, 2] : !x -> !tile.shared<64x128xbf16, swizzle = 128>
        %s = tile.mma %q, %k transpose_b : !tile.shared<128x128xbf16, swizzle = 128>, !tile.shared<64x128xbf16, swizzle = 128> -> !tile.fragment<128x64xf32>
      }
      %f = tile.fill %zero : !tile.fragment<128x128xbf16>
      tile.store %f, %O[%b, %i, %c0] dims [1, 2] : !tile.fragment<128x128xbf16>, !x
    }
  }
  return
}

func.func @outer_load_wide(%x: !x, %o: !x, %n: index) {
  tile.launch grid(%n) warps 16 stages 3 ins(%x : !x) outs(%o : !x) {
  ^bb0(%b: index, %X: !x, %O: !x):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : bf16
    scf.for %i = %b to %n step %c1 {
      %q = tile.load %X[%b, %i, %c0] dims [1, 2] : !x -> !tile.shared<256x128xbf16, swizzle = 128>
      scf.for %j = %c0 to %n step %c1 {
        %k = tile.load %X[%b, %j, %c0] dims [1, 2] : !x -> !tile.shared<128x128xbf16, swizzle = 128>
        %s = tile.mma %q, %k transpose_b : !tile.shared<256x128xbf16, swizzle = 128>, !tile.shared<128x128xbf16, swizzle = 128> -> !tile.fragment<256x128xf32>
      }
      %f = tile.fill %zero : !tile.fragment<256x128xbf16>
      tile.store %f, %O[%b, %i, %c0] dims [1, 2] : !tile.fragment<256x128xbf16>, !x
    }
  }
  return
}

func.func @outer_load_part(%x: !x, %o: !x, %n: index) {
  tile.launch grid(%n) warps 16 stages 3 ins(%x : !x) outs(%o : !x) {
  ^bb0(%b: index, %X: !x, %O: !x):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : bf16
    scf.for %i = %b to %n step %c1 {
      %q = tile.load %X[%b, %i, %c0] dims [1, 2] : !x -> !tile.shared<256x128xbf16, swizzle = 128>
      scf.for %j = %c0 to %n step %c1 {
        %k = tile.load %X[%b, %j, %c0] dims [1, 2] : !x -> !tile.shared<64x128xbf16, swizzle = 128>
        %s = tile.mma %q, %k transpose_b : !tile.shared<256x128xbf16, swizzle = 128>, !tile.shared<64x128xbf16, swizzle = 128> -> !tile.fragment<256x64xf32>
      }
      %f = tile.fill %zero : !tile.fragment<256x128xbf16>
      tile.store %f, %O[%b, %i, %c0] dims [1, 2] : !tile.fragment<256x128xbf16>, !x
    }
  }
  return
}

// The result takes the place of the queries, which only products read.
func.func @outer_load_place(%x: !x, %o: !x, %n: index) {
  tile.launch grid(%n) warps 16 stages 3 ins(%x : !x) outs(%o : !x) {
  ^bb0(%b: index, %X: !x, %O: !x):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : bf16
    scf.for %i = %b to %n step %c1 {
      %q = tile.load %X[%b, %i, %c0] dims [1, 2] : !x -> !tile.shared<256x128xbf16, swizzle = 128>
      scf.for %j = %c0 to %n step %c1 {
        %k = tile.load %X[%b, %j, %c0] dims [1, 2] : !x -> !tile.shared<128x128xbf16, swizzle = 128>
        %s = tile.mma wgmma %q, %k transpose_b : !tile.shared<256x128xbf16, swizzle = 128>, !tile.shared<128x128xbf16, swizzle = 128> -> !tile.fragment<256x128xf32, #o>
      }
      %f = tile.fill %zero : !tile.fragment<256x128xbf16, #o>
      tile.store %f, %O[%b, %i, %c0] dims [1, 2] : !tile.fragment<256x128xbf16, #o>, !x
    }
  }
  return
}

// -----

// A load whose rows a region places, though no tensor map can describe rows that
// lie apart: threads copy them. The region goes with the copy.

!g = memref<?x4x64xbf16, strided<[?, ?, 1], offset: ?>>
!t = !tile.shared<64x64xbf16, swizzle = 128>

// CHECK-LABEL: func @places
func.func @places(%a: memref<?x4x64xbf16>, %table: memref<?xindex>, %n: index) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  tile.launch grid(%n) warps 4 stages 3 ins(%a, %table : memref<?x4x64xbf16>, memref<?xindex>) outs(%table : memref<?xindex>) {
  ^bb0(%b: index, %A: !g, %T: memref<?xindex, strided<[1], offset: ?>>, %O: memref<?xindex, strided<[1], offset: ?>>):
    // CHECK: %[[RING:.*]] = tile.ring : !tile.ring<3 x
    // CHECK: scf.for %[[J:.*]] = %{{.*}} iter_args(%[[USE:.*]] = %{{.*}}) -> (index)
    scf.for %j = %c0 to %n step %c64 {
      // CHECK:      %[[SLOT:.*]] = tile.acquire %[[RING]][%[[USE]]]
      // CHECK-NEXT: tile.load_async %{{.*}} dims [1, 2] rows(%{{.*}}, %{{.*}}) whole_runs runs 1 {
      // CHECK-NEXT: ^bb0(%[[R:.*]]: index):
      // CHECK-NEXT:   %[[ROW:.*]] = arith.addi %[[J]], %[[R]]
      // CHECK-NEXT:   %[[PLACE:.*]] = memref.load %{{.*}}[%[[ROW]]]
      // CHECK-NEXT:   tile.yield %[[PLACE]], %{{.*}} : index, index
      // CHECK-NEXT: } into %[[SLOT]] signals %[[RING]][%[[USE]]]
      // CHECK-NEXT: tile.wait %[[RING]][%[[USE]]]
      %y = tile.load %A dims [1, 2] rows(%c0, %n) whole_runs runs 1 {
      ^bb0(%r: index):
        %row = arith.addi %j, %r : index
        %place = memref.load %T[%row] : memref<?xindex, strided<[1], offset: ?>>
        tile.yield %place, %b : index, index
      } : !g -> !t
      %p = tile.mma %y, %y transpose_b : !t, !t -> !tile.fragment<64x64xf32>
    }
  }
  return
}

// -----

!g = memref<?x64xi8, strided<[?, 1], offset: ?>>
!b = !tile.shared<64x64xi8, swizzle = 64>
!w = !tile.shared<64x64xbf16, swizzle = 128>

// What bytes are widened to has two slots, where they have more.
// CHECK-LABEL: func @widened
func.func @widened(%a: memref<?x64xi8>, %o: memref<?x?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  tile.launch grid(%n) warps 4 stages 3 ins(%a : memref<?x64xi8>) outs(%o : memref<?x?xf32>) {
  ^bb0(%r: index, %A: !g, %O: memref<?x?xf32, strided<[?, 1], offset: ?>>):
    // CHECK-DAG: %[[WIDE:.*]] = tile.ring : !tile.ring<2 x !tile.shared<64x64xbf16, swizzle = 128>>
    // CHECK-DAG: %[[BYTES:.*]] = tile.ring : !tile.ring<3 x !tile.shared<64x64xi8, swizzle = 64>>
    // CHECK-DAG: %[[ONE:.*]] = tile.ring : !tile.ring<1 x !tile.shared<64x64xbf16, swizzle = 128>>
    // CHECK-DAG: tile.ring : !tile.ring<1 x !tile.shared<64x64xi8, swizzle = 64>>
    %q = tile.load %A[%r, %c0] dims [0, 1] : !g -> !b
    // CHECK: %[[QSLOT:.*]] = tile.acquire %[[ONE]]
    // CHECK: tile.widen_into %{{.*}} from f8E4M3FN warps 4 into %[[QSLOT]] signals %[[ONE]]
    %x = tile.widen %q from f8E4M3FN warps 4 : !b -> !w
    // CHECK: scf.for {{.*}} iter_args(%[[USE:.*]] = %{{.*}}) -> (index)
    scf.for %j = %c0 to %n step %c64 {
      // CHECK: tile.load_async {{.*}} signals %[[BYTES]][%[[USE]]]
      // CHECK: %[[FULL:.*]] = tile.wait %[[BYTES]][%[[USE]]]
      // CHECK: %[[SLOT:.*]] = tile.acquire %[[WIDE]][%[[USE]]]
      // CHECK: tile.widen_into %[[FULL]] from f8E4M3FN warps 4 into %[[SLOT]] signals %[[WIDE]][%[[USE]]]
      // CHECK: tile.release %[[BYTES]][%[[USE]]]
      // CHECK: %[[Y:.*]] = tile.wait %[[WIDE]][%[[USE]]]
      // CHECK: tile.mma %{{.*}}, %[[Y]]
      // CHECK: tile.release %[[WIDE]][%[[USE]]]
      %k = tile.load %A[%j, %c0] dims [0, 1] : !g -> !b
      %y = tile.widen %k from f8E4M3FN warps 4 : !b -> !w
      %p = tile.mma %x, %y transpose_b : !w, !w -> !tile.fragment<64x64xf32>
      tile.store %p, %O[%j, %c0] dims [0, 1] : !tile.fragment<64x64xf32>, memref<?x?xf32, strided<[?, 1], offset: ?>>
    }
  }
  return
}

// -----

!g = memref<?x128xbf16, strided<[?, 1], offset: ?>>
!t = !tile.shared<256x64xbf16, swizzle = 128>
!k = !tile.shared<192x128xbf16, swizzle = 128>

// A tile that no product reads gets as many slots as there is memory for beside
// those of products: 2 of 32 KiB, of 227.
// CHECK-LABEL: func @elementwise
// CHECK-DAG:   %[[KEYS:.*]] = tile.ring : !tile.ring<3 x !tile.shared<192x128xbf16, swizzle = 128>>
// CHECK-DAG:   %[[BIAS:.*]] = tile.ring : !tile.ring<2 x !tile.shared<256x64xbf16, swizzle = 128>>
// CHECK:       scf.for
// CHECK:         tile.acquire %[[BIAS]]
// CHECK:         tile.acquire %[[KEYS]]
// CHECK:         tile.wait %[[BIAS]]
// CHECK-NEXT:    tile.from_shared
// CHECK-NEXT:    tile.release %[[BIAS]]
func.func @elementwise(%a: memref<?x128xbf16>, %o: memref<?x?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c256 = arith.constant 256 : index
  tile.launch grid(%n) warps 16 stages 3 ins(%a : memref<?x128xbf16>) outs(%o : memref<?x?xf32>) {
  ^bb0(%b: index, %A: !g, %O: memref<?x?xf32, strided<[?, 1], offset: ?>>):
    scf.for %j = %c0 to %n step %c256 {
      %x = tile.load %A[%j, %c0] dims [0, 1] : !g -> !t
      %y = tile.load %A[%j, %c0] dims [0, 1] : !g -> !k
      %f = tile.from_shared %x : !t -> !tile.fragment<256x64xbf16>
      %s = tile.map ins(%f : !tile.fragment<256x64xbf16>) {
      ^bb0(%e: bf16, %r: index, %c: index):
        %w = arith.extf %e : bf16 to f32
        tile.yield %w : f32
      } -> !tile.fragment<256x64xf32>
      %p = tile.mma %y, %y transpose_b : !k, !k -> !tile.fragment<192x192xf32>
    }
  }
  return
}

// -----

#sum = #tile.layout<64x128, registers = [2:1d1, 2:8d0, 8:8d1], threads = [4:2d1, 8:1d0, 4:16d0, 2:64d1]>
!r = memref<?x128xbf16, strided<[?, 1], offset: ?>>
!w = memref<?x128xf32, strided<[?, 1], offset: ?>>
!t = !tile.shared<64x128xbf16, swizzle = 128>
!k = !tile.shared<128x128xbf16, swizzle = 128>

// Where a step writes a tile for a product, and adds its result by TMA, these
// have memory first: 16 KiB for a second slot, and 32 for the sums.
// CHECK-LABEL: func @elementwise_beside_sums
// CHECK-DAG:   %[[BIAS:.*]] = tile.ring : !tile.ring<1 x !tile.shared<64x128xbf16, swizzle = 128>>
// CHECK-DAG:   tile.ring : !tile.ring<2 x !tile.shared<128x128xbf16, swizzle = 128>>
// CHECK:       tile.wait %[[BIAS]]
// CHECK-NEXT:  tile.from_shared %{{.*}} transposed
// CHECK-NEXT:  tile.release %[[BIAS]]
// CHECK:       tile.to_shared %{{.*}} transposed slot %{{.*}} of 2
//
// A second slot leaves memory for the sums.
// CHECK-LABEL: func @sums
// CHECK:       tile.ring : !tile.ring<3 x !tile.shared<128x128xbf16, swizzle = 128>>
// CHECK:       tile.to_shared %{{.*}} transposed :
func.func @elementwise_beside_sums(%a: memref<?x128xbf16>, %o: memref<?x128xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  tile.launch grid(%n) warps 8 stages 2 ins(%a : memref<?x128xbf16>) outs(%o : memref<?x128xf32>) {
  ^bb0(%b: index, %A: !r, %O: !w):
    %v = tile.load %A[%c0, %c0] dims [0, 1] : !r -> !k
    %u = tile.load %A[%n, %c0] dims [0, 1] : !r -> !k
    %z = tile.load %A[%n, %c0] dims [0, 1] : !r -> !t
    %x = tile.mma %z, %u transpose_b : !t, !k -> !tile.fragment<64x128xf32>
    scf.for %j = %c0 to %n step %c64 {
      %y = tile.load %A[%j, %c0] dims [0, 1] : !r -> !k
      %s = tile.mma %y, %v transpose_b : !k, !k -> !tile.fragment<128x128xf32>
      %t = tile.load %A[%j, %c0] dims [0, 1] : !r -> !t
      %f = tile.from_shared %t transposed : !t -> !tile.fragment<128x64xbf16>
      %p = tile.to_shared %f transposed : !tile.fragment<128x64xbf16> -> !t
      %d = tile.mma %p, %v : !t, !k -> !tile.fragment<64x128xf32, #sum>
      tile.store add %d, %O[%j, %c0] dims [0, 1] : !tile.fragment<64x128xf32, #sum>, !w
    }
  }
  return
}

func.func @sums(%a: memref<?x128xbf16>, %o: memref<?x128xf32>, %f: !tile.fragment<128x64xbf16>, %n: index) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  tile.launch grid(%n) warps 8 stages 3 ins(%a : memref<?x128xbf16>) outs(%o : memref<?x128xf32>) {
  ^bb0(%b: index, %A: !r, %O: !w):
    %v = tile.load %A[%c0, %c0] dims [0, 1] : !r -> !k
    %u = tile.load %A[%n, %c0] dims [0, 1] : !r -> !k
    %z = tile.load %A[%n, %c0] dims [0, 1] : !r -> !t
    %x = tile.mma %z, %u transpose_b : !t, !k -> !tile.fragment<64x128xf32>
    scf.for %j = %c0 to %n step %c64 {
      %y = tile.load %A[%j, %c0] dims [0, 1] : !r -> !k
      %s = tile.mma %y, %v transpose_b : !k, !k -> !tile.fragment<128x128xf32>
      %p = tile.to_shared %f transposed : !tile.fragment<128x64xbf16> -> !t
      %d = tile.mma %p, %v : !t, !k -> !tile.fragment<64x128xf32, #sum>
      tile.store add %d, %O[%j, %c0] dims [0, 1] : !tile.fragment<64x128xf32, #sum>, !w
    }
  }
  return
}

// -----

// TMA copies from multiples of 16 bytes on: 8 elements here. So may a loop's places
// be, or the begin of a loop for some rows; others stay.

!w = memref<?x?xbf16, strided<[?, 1], offset: ?>>
!t = !tile.shared<64x64xbf16, swizzle = 128>

// CHECK-LABEL: func @columns
// CHECK-COUNT-3: = tile.ring
// CHECK-NOT:     = tile.ring
// CHECK:         scf.for %[[J:.*]] = %{{.*}} to
// CHECK:           tile.load_async %{{.*}}[%{{.*}}, %[[J]]] dims
// CHECK:           %[[EIGHT:.*]] = arith.addi %[[J]], %c8
// CHECK:           tile.load_async %{{.*}}[%{{.*}}, %[[EIGHT]]] dims
// CHECK:           %[[FOUR:.*]] = arith.addi %[[J]], %c4
// CHECK:           tile.load %{{.*}}[%{{.*}}, %[[FOUR]]] dims
// CHECK:         scf.for %[[K:.*]] = %{{.*}} to
// CHECK:           tile.load %{{.*}}[%{{.*}}, %[[K]]] dims
// CHECK:         scf.for %[[L:.*]] = %{{.*}} to
// CHECK:           tile.load_async %{{.*}}[%{{.*}}, %[[L]]] dims
func.func @columns(%a: memref<?x?xbf16>, %o: memref<?x?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  tile.launch grid(%n) warps 4 stages 1 ins(%a : memref<?x?xbf16>) outs(%o : memref<?x?xf32>) {
  ^bb0(%b: index, %A: !w, %O: memref<?x?xf32, strided<[?, 1], offset: ?>>):
    %first = arith.muli %b, %c8 : index
    scf.for %j = %first to %n step %c64 {
      %x = tile.load %A[%b, %j] dims [0, 1] : !w -> !t
      %eight = arith.addi %j, %c8 : index
      %y = tile.load %A[%b, %eight] dims [0, 1] : !w -> !t
      %four = arith.addi %j, %c4 : index
      %z = tile.load %A[%b, %four] dims [0, 1] : !w -> !t
      %s = tile.mma %x, %y transpose_b : !t, !t -> !tile.fragment<64x64xf32>
      %r = tile.mma %z, %y into %s : !t, !t, !tile.fragment<64x64xf32> -> !tile.fragment<64x64xf32>
      tile.store %r, %O[%b, %c0] dims [0, 1] : !tile.fragment<64x64xf32>, memref<?x?xf32, strided<[?, 1], offset: ?>>
    }
    scf.for %k = %b to %n step %c64 {
      %x = tile.load %A[%b, %k] dims [0, 1] : !w -> !t
      %s = tile.mma %x, %x transpose_b : !t, !t -> !tile.fragment<64x64xf32>
      tile.store %s, %O[%b, %c0] dims [0, 1] : !tile.fragment<64x64xf32>, memref<?x?xf32, strided<[?, 1], offset: ?>>
    }
    %begin = tile.of_rows %first rows 64 {
    ^bb0(%low: index, %high: index):
      %tiles = arith.divui %low, %c64 : index
      %own = arith.muli %tiles, %c64 : index
      tile.yield %own : index
    } : index
    scf.for %l = %begin to %n step %c64 {
      %x = tile.load %A[%b, %l] dims [0, 1] : !w -> !t
      %s = tile.mma %x, %x transpose_b : !t, !t -> !tile.fragment<64x64xf32>
      tile.store %s, %O[%b, %c0] dims [0, 1] : !tile.fragment<64x64xf32>, memref<?x?xf32, strided<[?, 1], offset: ?>>
    }
  }
  return
}

// -----

!g = memref<4x?x64xbf16, strided<[?, ?, 1], offset: ?>>
!t = !tile.shared<64x64xbf16, swizzle = 128>

// Rows that run along two dimensions do so in the copy, too.
// CHECK-LABEL: func @inner
// CHECK:       tile.load_async %{{.*}}[%c0, %{{.*}}, %c0] dims [1, 0, 2] inner 4 into
// CHECK-NOT:   tile.load %
func.func @inner(%a: memref<4x?x64xbf16>, %o: memref<?x?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  tile.launch grid(%n) warps 4 stages 3 ins(%a : memref<4x?x64xbf16>) outs(%o : memref<?x?xf32>) {
  ^bb0(%b: index, %A: !g, %O: memref<?x?xf32, strided<[?, 1], offset: ?>>):
    scf.for %j = %c0 to %n step %c16 {
      %x = tile.load %A[%c0, %j, %c0] dims [1, 0, 2] inner 4 : !g -> !t
      %p = tile.mma %x, %x transpose_b : !t, !t -> !tile.fragment<64x64xf32>
      tile.store %p, %O[%j, %c0] dims [0, 1] : !tile.fragment<64x64xf32>, memref<?x?xf32, strided<[?, 1], offset: ?>>
    }
  }
  return
}
