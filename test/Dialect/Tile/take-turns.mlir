// RUN: fovea-opt %s --tile-take-turns --split-input-file | FileCheck %s

!t = !tile.shared<64x64xbf16, swizzle = 128>
!ring = !tile.ring<2 x !t>
!p = !tile.fragment<128x64xbf16>
!s = !tile.fragment<128x64xf32>

// The last group passes the turn to the first. In the steps, and where the product of the
// next item runs beside the last one, products are issued in turn; a product that is alone
// is not. What a vote decides, such as whether a maximum is new, does not matter.
// CHECK-LABEL: func.func @steps(
// CHECK:         tile.role "compute" warps 8 {
// CHECK-NEXT:      %[[G:.*]] = tile.group
// CHECK-NEXT:      %[[LAST:.*]] = arith.constant 1 : index
// CHECK-NEXT:      %[[IS_LAST:.*]] = arith.cmpi eq, %[[G]], %[[LAST]] : index
// CHECK-NEXT:      scf.if %[[IS_LAST]] {
// CHECK-NEXT:        tile.pass_group_turn
// CHECK-NEXT:      }
// CHECK:           tile.wait %{{.*}}[%c0] : !tile.ring<2
// CHECK-NEXT:      tile.mma_async
// CHECK-NEXT:      tile.wait_mma
// CHECK:           scf.for
// CHECK-NEXT:        tile.wait
// CHECK-NEXT:        tile.take_group_turn
// CHECK-NEXT:        tile.mma_async
// CHECK-NEXT:        tile.wait
// CHECK-NEXT:        tile.mma_async
// CHECK-NEXT:        tile.pass_group_turn
// CHECK-NEXT:        tile.wait_mma
// CHECK:           scf.if %arg1 {
// CHECK-NEXT:        tile.take_group_turn
// CHECK-NEXT:        tile.mma_async
// CHECK-NEXT:        tile.mma_async
// CHECK-NEXT:        tile.pass_group_turn
// CHECK-NEXT:        tile.wait_mma
// CHECK-NOT:     group_turn
// CHECK:       return
func.func @steps(%n: index, %some: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0.0 : bf16
  %memory = memref.alloc() : memref<1xf32>
  tile.launch grid(%n) warps 8 in_turn outs(%memory : memref<1xf32>) {
  ^bb0(%b: index, %O: memref<1xf32, strided<[1], offset: ?>>):
    %qs = tile.ring : !tile.ring<1 x !tile.shared<128x64xbf16, swizzle = 128>>
    %ks = tile.ring : !ring
    tile.roles {
      tile.role "compute" warps 8 {
        %x = tile.wait %qs[%c0] : !tile.ring<1 x !tile.shared<128x64xbf16, swizzle = 128>>
        %k = tile.wait %ks[%c0] : !ring
        %first = tile.mma_async %x, %k : !tile.shared<128x64xbf16, swizzle = 128>, !t -> !tile.token<!s>
        %begin = tile.wait_mma %first : !tile.token<!s>
        %p = tile.fill %none : !p
        %flags = tile.fill %some : !tile.fragment<128xi1>
        %is = tile.any %flags : !tile.fragment<128xi1>
        %sum:2 = scf.for %j = %c1 to %n step %c1 iter_args(%o = %begin, %new = %is) -> (!s, i1) {
          %a = tile.wait %ks[%j] : !ring
          %score = tile.mma_async %x, %a transpose_b : !tile.shared<128x64xbf16, swizzle = 128>, !t -> !tile.token<!s>
          %c = tile.wait %ks[%j] : !ring
          %out = tile.mma_async %p, %c into %o : !p, !t, !s -> !tile.token<!s>
          %y = tile.wait_mma %score pending 1 : !tile.token<!s>
          %z = scf.if %new -> (!s) {
            scf.yield %y : !s
          } else {
            scf.yield %o : !s
          }
          %w = tile.wait_mma %out : !tile.token<!s>
          scf.yield %z, %new : !s, i1
        }
        scf.if %some {
          %u = tile.mma_async %x, %k : !tile.shared<128x64xbf16, swizzle = 128>, !t -> !tile.token<!s>
          %v = tile.mma_async %p, %k into %sum#0 : !p, !t, !s -> !tile.token<!s>
          %w = tile.wait_mma %u pending 1 : !tile.token<!s>
          %y = tile.wait_mma %v : !tile.token<!s>
        }
      }
    }
  }
  return
}

// -----

!t = !tile.shared<64x64xbf16, swizzle = 128>
!ring = !tile.ring<2 x !t>
!p = !tile.fragment<128x64xbf16>
!s = !tile.fragment<128x64xf32>

// Steps that groups have differently many of, by their number or by a vote, and those of
// launches that are not in turn, stay as they are.
// CHECK-LABEL: func.func @apart(
// CHECK-NOT:     group_turn
// CHECK:       return
func.func @apart(%n: index, %some: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0.0 : bf16
  %memory = memref.alloc() : memref<1xf32>
  tile.launch grid(%n) warps 8 in_turn outs(%memory : memref<1xf32>) {
  ^bb0(%b: index, %O: memref<1xf32, strided<[1], offset: ?>>):
    %ks = tile.ring : !ring
    tile.roles {
      tile.role "compute" warps 8 {
        %g = tile.group
        %p = tile.fill %none : !p
        %begin = tile.fill %zero : !s
        %end = arith.addi %n, %g : index
        scf.for %j = %c0 to %end step %c1 {
          %a = tile.wait %ks[%j] : !ring
          %x = tile.mma_async %p, %a : !p, !t -> !tile.token<!s>
          %y = tile.mma_async %p, %a into %begin : !p, !t, !s -> !tile.token<!s>
          %z = tile.wait_mma %x pending 1 : !tile.token<!s>
          %w = tile.wait_mma %y : !tile.token<!s>
        }
        %flags = tile.fill %some : !tile.fragment<128xi1>
        %is = tile.any %flags : !tile.fragment<128xi1>
        scf.if %is {
          %a = tile.wait %ks[%c0] : !ring
          %x = tile.mma_async %p, %a : !p, !t -> !tile.token<!s>
          %y = tile.mma_async %p, %a into %begin : !p, !t, !s -> !tile.token<!s>
          %z = tile.wait_mma %x pending 1 : !tile.token<!s>
          %w = tile.wait_mma %y : !tile.token<!s>
        }
      }
    }
  }
  tile.launch grid(%n) warps 8 outs(%memory : memref<1xf32>) {
  ^bb0(%b: index, %O: memref<1xf32, strided<[1], offset: ?>>):
    %ks = tile.ring : !ring
    tile.roles {
      tile.role "compute" warps 8 {
        %p = tile.fill %none : !p
        %begin = tile.fill %zero : !s
        scf.for %j = %c0 to %n step %c1 {
          %a = tile.wait %ks[%j] : !ring
          %x = tile.mma_async %p, %a : !p, !t -> !tile.token<!s>
          %y = tile.mma_async %p, %a into %begin : !p, !t, !s -> !tile.token<!s>
          %z = tile.wait_mma %x pending 1 : !tile.token<!s>
          %w = tile.wait_mma %y : !tile.token<!s>
        }
      }
    }
  }
  return
}

// -----

!t = !tile.shared<64x64xbf16, swizzle = 128>
!ring = !tile.ring<2 x !t>
!p = !tile.fragment<64x64xbf16>
!s = !tile.fragment<64x64xf32>

// One group has no other to wait for.
// CHECK-LABEL: func.func @one_group(
// CHECK-NOT:     group_turn
// CHECK:       return
func.func @one_group(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0.0 : bf16
  %memory = memref.alloc() : memref<1xf32>
  tile.launch grid(%n) warps 4 in_turn outs(%memory : memref<1xf32>) {
  ^bb0(%b: index, %O: memref<1xf32, strided<[1], offset: ?>>):
    %ks = tile.ring : !ring
    tile.roles {
      tile.role "compute" warps 4 {
        %p = tile.fill %none : !p
        %begin = tile.fill %zero : !s
        scf.for %j = %c0 to %n step %c1 {
          %a = tile.wait %ks[%j] : !ring
          %x = tile.mma_async %p, %a : !p, !t -> !tile.token<!s>
          %y = tile.mma_async %p, %a into %begin : !p, !t, !s -> !tile.token<!s>
          %z = tile.wait_mma %x pending 1 : !tile.token<!s>
          %w = tile.wait_mma %y : !tile.token<!s>
        }
      }
    }
  }
  return
}

// -----

!t = !tile.shared<64x64xbf16, swizzle = 128>
!ring = !tile.ring<2 x !t>
!p = !tile.fragment<128x64xbf16>
!s = !tile.fragment<128x64xf32>

// Groups that need rows of others do not run apart.
// CHECK-LABEL: func.func @exchanging(
// CHECK-NOT:     group_turn
// CHECK:       return
func.func @exchanging(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0.0 : bf16
  %memory = memref.alloc() : memref<1xf32>
  tile.launch grid(%n) warps 8 in_turn outs(%memory : memref<1xf32>) {
  ^bb0(%b: index, %O: memref<1xf32, strided<[1], offset: ?>>):
    %ks = tile.ring : !ring
    tile.roles {
      tile.role "compute" warps 8 {
        %p = tile.fill %none : !p
        %begin = tile.fill %zero : !s
        scf.for %j = %c0 to %n step %c1 {
          %a = tile.wait %ks[%j] : !ring
          %x = tile.mma_async %p, %a : !p, !t -> !tile.token<!s>
          %y = tile.mma_async %p, %a into %begin : !p, !t, !s -> !tile.token<!s>
          %z = tile.wait_mma %x pending 1 : !tile.token<!s>
          %w = tile.wait_mma %y : !tile.token<!s>
        }
        %all = tile.to_shared %p : !p -> !tile.shared<128x64xbf16>
      }
    }
  }
  return
}
