// RUN: fovea-opt %s --tile-release-early --split-input-file | FileCheck %s

!g = memref<?x64xbf16, strided<[?, 1], offset: ?>>
!t = !tile.shared<64x64xbf16, swizzle = 128>
!s = !tile.fragment<64x64xf32>

// Queries are released in the last step of an item, behind the wait for the product
// that reads them, or before the loop if it has no step, or where an item has none.
// What counts the use is computed before.
// CHECK-LABEL: func.func @items(
// CHECK:         scf.for %[[I:.*]] = %c0 to %{{.*}} step %c1 {
// CHECK-NEXT:      %[[USE:.*]] = arith.addi %[[I]], %c0
// CHECK:           %[[Q:.*]] = tile.wait %[[QS:[0-9]+]][
// CHECK:           scf.if %{{.*}} -> (!tile.fragment
// CHECK:             %[[NONE:.*]] = arith.cmpi sge, %c1, %[[END:.*]] : index
// CHECK-NEXT:        scf.if %[[NONE]] {
// CHECK-NEXT:          tile.release %[[QS]][%[[USE]]]
// CHECK-NEXT:        }
// CHECK-NEXT:        scf.for %[[J:.*]] = %c1 to %[[END]] step %c1
// CHECK:               %[[TOKEN:.*]] = tile.mma_async %[[Q]], %{{.*}} transpose_b
// CHECK-NEXT:          %{{.*}} = tile.wait_mma %[[TOKEN]]
// CHECK-NEXT:          %[[NEXT:.*]] = arith.addi %[[J]], %c1
// CHECK-NEXT:          %[[LAST:.*]] = arith.cmpi sge, %[[NEXT]], %[[END]]
// CHECK-NEXT:          scf.if %[[LAST]] {
// CHECK-NEXT:            tile.release %[[QS]][%[[USE]]]
// CHECK-NEXT:          }
// CHECK-NEXT:          tile.release %[[KS:.*]][
// CHECK:           } else {
// CHECK-NEXT:        tile.release %[[QS]][%[[USE]]]
// CHECK:           tile.store
// CHECK-NOT:       tile.release
// CHECK:       return
func.func @items(%a: memref<?x64xbf16>, %o: memref<?x?xf32>, %items: index, %end: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  tile.launch grid(%c1) warps 4 ins(%a : memref<?x64xbf16>) outs(%o : memref<?x?xf32>) {
  ^bb0(%b: index, %A: !g, %O: memref<?x?xf32, strided<[?, 1], offset: ?>>):
    %qs = tile.ring : !tile.ring<1 x !t>
    %ks = tile.ring : !tile.ring<2 x !t>
    tile.roles {
      tile.role "compute" warps 4 {
        scf.for %i = %c0 to %items step %c1 {
          %use = arith.addi %i, %c0 : index
          %q = tile.wait %qs[%use] : !tile.ring<1 x !t>
          %some = arith.cmpi sgt, %end, %c0 : index
          %none = tile.fill %zero : !s
          %r = scf.if %some -> (!s) {
            %sum = scf.for %j = %c1 to %end step %c1 iter_args(%x = %none) -> (!s) {
              %k = tile.wait %ks[%j] : !tile.ring<2 x !t>
              %p = tile.mma_async %q, %k transpose_b : !t, !t -> !tile.token<!s>
              %y = tile.wait_mma %p : !tile.token<!s>
              tile.release %ks[%j] : !tile.ring<2 x !t>
              scf.yield %y : !s
            }
            scf.yield %sum : !s
          } else {
            scf.yield %none : !s
          }
          %same = arith.addi %i, %c0 : index
          tile.release %qs[%same] : !tile.ring<1 x !t>
          tile.store %r, %O[%c0, %c0] dims [0, 1] : !s, memref<?x?xf32, strided<[?, 1], offset: ?>>
        }
      }
    }
  }
  return
}

// -----

!g = memref<?x64xbf16, strided<[?, 1], offset: ?>>
!t = !tile.shared<64x64xbf16, swizzle = 128>
!s = !tile.fragment<64x64xf32>

// Releases that stay: of several slots; of a tile beside which the loop reads
// another one from outside; of one that is read behind the loop; and where the loop
// itself counts the use.
// CHECK-LABEL: func.func @stay(
// CHECK:       scf.for
// CHECK-NOT:     tile.release
// CHECK:         scf.yield
// CHECK:       tile.release %{{.*}}[%c0] : !tile.ring<2 x
// CHECK:       scf.for
// CHECK-NOT:     tile.release
// CHECK:         scf.yield
// CHECK:       tile.release
// CHECK:       tile.release
// CHECK:       scf.for
// CHECK-NOT:     tile.release
// CHECK:         scf.yield
// CHECK:       tile.mma
// CHECK:       tile.release
// CHECK:       scf.for
// CHECK-NOT:     tile.release
// CHECK:         scf.yield
// CHECK:       tile.release
// CHECK:       return
func.func @stay(%a: memref<?x64xbf16>, %o: memref<?x?xf32>, %end: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  tile.launch grid(%c1) warps 4 ins(%a : memref<?x64xbf16>) outs(%o : memref<?x?xf32>) {
  ^bb0(%b: index, %A: !g, %O: memref<?x?xf32, strided<[?, 1], offset: ?>>):
    %several = tile.ring : !tile.ring<2 x !t>
    %one = tile.ring : !tile.ring<1 x !t>
    %other = tile.ring : !tile.ring<1 x !t>
    tile.roles {
      tile.role "compute" warps 4 {
        %none = tile.fill %zero : !s
        %q = tile.wait %several[%c0] : !tile.ring<2 x !t>
        %p = tile.wait %one[%c0] : !tile.ring<1 x !t>
        %first = scf.for %j = %c0 to %end step %c1 iter_args(%x = %none) -> (!s) {
          %k = tile.to_shared %x : !s -> !tile.shared<64x64xf32>
          %f = tile.from_shared %k : !tile.shared<64x64xf32> -> !s
          %t = tile.mma_async %q, %p transpose_b : !t, !t -> !tile.token<!s>
          %y = tile.wait_mma %t : !tile.token<!s>
          scf.yield %y : !s
        }
        tile.release %several[%c0] : !tile.ring<2 x !t>
        %second = scf.for %j = %c0 to %end step %c1 iter_args(%x = %first) -> (!s) {
          %t = tile.mma_async %p, %q transpose_b : !t, !t -> !tile.token<!s>
          %y = tile.wait_mma %t : !tile.token<!s>
          scf.yield %y : !s
        }
        tile.release %one[%c0] : !tile.ring<1 x !t>
        %r = tile.wait %other[%c0] : !tile.ring<1 x !t>
        %l = tile.wait %several[%c1] : !tile.ring<2 x !t>
        tile.release %several[%c1] : !tile.ring<2 x !t>
        %third = scf.for %j = %c0 to %end step %c1 iter_args(%x = %second) -> (!s) {
          %w = tile.wait %one[%c1] : !tile.ring<1 x !t>
          %t = tile.mma_async %r, %w transpose_b : !t, !t -> !tile.token<!s>
          %y = tile.wait_mma %t : !tile.token<!s>
          scf.yield %y : !s
        }
        %after = tile.mma %r, %r transpose_b : !t, !t -> !s
        tile.release %other[%c0] : !tile.ring<1 x !t>
        %u = tile.wait %other[%c1] : !tile.ring<1 x !t>
        %fourth:2 = scf.for %j = %c0 to %end step %c1 iter_args(%x = %after, %n = %c0) -> (!s, index) {
          %w = tile.wait %one[%c1] : !tile.ring<1 x !t>
          %t = tile.mma_async %u, %w transpose_b : !t, !t -> !tile.token<!s>
          %y = tile.wait_mma %t : !tile.token<!s>
          %m = arith.addi %n, %c1 : index
          scf.yield %y, %m : !s, index
        }
        tile.release %other[%fourth#1] : !tile.ring<1 x !t>
        tile.store %fourth#0, %O[%c0, %c0] dims [0, 1] : !s, memref<?x?xf32, strided<[?, 1], offset: ?>>
      }
    }
  }
  return
}
