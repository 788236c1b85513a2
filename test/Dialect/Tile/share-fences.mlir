// RUN: fovea-opt %s --tile-share-fences | FileCheck %s

!row = !tile.shared<1x64xf32>
!rows = !tile.ring<2 x !row>
!k = !tile.shared<64x128xbf16, swizzle = 128>
!keys = !tile.ring<2 x !k>
!t = !tile.shared<64x64xbf16, swizzle = 128>
!out = !tile.ring<1 x !tile.shared<64x64xf32, swizzle = 128>>
!r = !tile.fragment<64xf32>
!s = !tile.fragment<64x64xf32>
!p = !tile.fragment<64x64xbf16>

// A slot that threads read is released behind the fence of a written tile, and
// behind the product that reads the tile; one that products read stays.
// CHECK-LABEL: func.func @step(
// CHECK:         tile.role "compute"
// CHECK:           %[[K:.*]] = tile.wait %[[KS:.*]][
// CHECK-NEXT:      %[[A:.*]] = tile.wait %[[AS:.*]][
// CHECK-NEXT:      tile.from_shared %[[A]]
// CHECK-NEXT:      %[[FIRST:.*]] = tile.mma_async %[[K]]
// CHECK-NEXT:      tile.wait_mma %[[FIRST]]
// CHECK-NEXT:      tile.release %[[KS]]
// CHECK:           %[[T:.*]] = tile.to_shared
// CHECK-NEXT:      %[[SECOND:.*]] = tile.mma_async %[[T]]
// CHECK-NEXT:      tile.release %[[AS]]
// CHECK-NEXT:      tile.wait_mma %[[SECOND]]
func.func @step(%n: index, %x: bf16, %m: memref<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  tile.launch grid(%c1) warps 4 outs(%m : memref<?x?xf32>) {
  ^bb0(%b: index, %M: memref<?x?xf32, strided<[?, 1], offset: ?>>):
    %as = tile.ring : !rows
    %ks = tile.ring : !keys
    tile.roles {
      tile.role "compute" warps 4 {
        scf.for %i = %c0 to %n step %c1 {
          %k = tile.wait %ks[%i] : !keys
          %a = tile.wait %as[%i] : !rows
          %u = tile.from_shared %a : !row -> !r
          %first = tile.mma_async %k, %k transpose_b : !k, !k -> !tile.token<!s>
          tile.release %as[%i] : !rows
          %s = tile.wait_mma %first : !tile.token<!s>
          tile.release %ks[%i] : !keys
          %p = tile.fill %x : !p
          %t = tile.to_shared %p : !p -> !t
          %second = tile.mma_async %t, %t : !t, !t -> !tile.token<!s>
          %y = tile.wait_mma %second : !tile.token<!s>
        }
      }
    }
  }
  return
}

// Behind a write whose reader another role is.
// CHECK-LABEL: func.func @write(
// CHECK:         tile.role "compute"
// CHECK:           %[[A:.*]] = tile.wait %[[AS:.*]][
// CHECK-NEXT:      tile.from_shared %[[A]]
// CHECK-NEXT:      tile.write
// CHECK-NEXT:      tile.release %[[AS]]
func.func @write(%n: index, %x: f32, %m: memref<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  tile.launch grid(%c1) warps 8 outs(%m : memref<?x?xf32>) {
  ^bb0(%b: index, %M: memref<?x?xf32, strided<[?, 1], offset: ?>>):
    %as = tile.ring : !rows
    %os = tile.ring : !out
    tile.roles {
      tile.role "store" warps 4 single {
        scf.for %i = %c0 to %n step %c1 {
          %o = tile.wait %os[%i] : !out
          tile.release %os[%i] : !out
        }
      }
      tile.role "compute" warps 4 {
        scf.for %i = %c0 to %n step %c1 {
          %f = tile.fill %x : !s
          %o = tile.acquire %os[%i] : !out
          %a = tile.wait %as[%i] : !rows
          %u = tile.from_shared %a : !row -> !r
          tile.release %as[%i] : !rows
          tile.write %f into %o signals %os[%i] : !s, !out
        }
      }
    }
  }
  return
}

// No release passes a wait for another role, which may wait for the slot.
// CHECK-LABEL: func.func @waits(
// CHECK:         tile.role "compute"
// CHECK:           tile.from_shared
// CHECK-NEXT:      tile.release
// CHECK-NEXT:      tile.acquire
// CHECK-NEXT:      tile.write
func.func @waits(%n: index, %x: f32, %m: memref<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  tile.launch grid(%c1) warps 8 outs(%m : memref<?x?xf32>) {
  ^bb0(%b: index, %M: memref<?x?xf32, strided<[?, 1], offset: ?>>):
    %as = tile.ring : !rows
    %os = tile.ring : !out
    tile.roles {
      tile.role "store" warps 4 single {
        scf.for %i = %c0 to %n step %c1 {
          %o = tile.wait %os[%i] : !out
          tile.release %os[%i] : !out
        }
      }
      tile.role "compute" warps 4 {
        scf.for %i = %c0 to %n step %c1 {
          %f = tile.fill %x : !s
          %a = tile.wait %as[%i] : !rows
          %u = tile.from_shared %a : !row -> !r
          tile.release %as[%i] : !rows
          %o = tile.acquire %os[%i] : !out
          tile.write %f into %o signals %os[%i] : !s, !out
        }
      }
    }
  }
  return
}

// Nor one that takes a ring's memory.
// CHECK-LABEL: func.func @reuses(
// CHECK:           tile.from_shared
// CHECK-NEXT:      tile.release
// CHECK-NEXT:      tile.fill
// CHECK-NEXT:      tile.to_shared
func.func @reuses(%n: index, %x: bf16, %m: memref<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  tile.launch grid(%c1) warps 4 outs(%m : memref<?x?xf32>) {
  ^bb0(%b: index, %M: memref<?x?xf32, strided<[?, 1], offset: ?>>):
    %as = tile.ring : !tile.ring<1 x !t>
    tile.roles {
      tile.role "compute" warps 4 {
        %a = tile.wait %as[%c0] : !tile.ring<1 x !t>
        %u = tile.from_shared %a : !t -> !p
        tile.release %as[%c0] : !tile.ring<1 x !t>
        %p = tile.fill %x : !p
        %t = tile.to_shared %p reuses %as : !p, !tile.ring<1 x !t> -> !t
        %second = tile.mma_async %t, %t : !t, !t -> !tile.token<!s>
        %y = tile.wait_mma %second : !tile.token<!s>
      }
    }
  }
  return
}

// A tile that threads' products alone read has no fence behind it.
// CHECK-LABEL: func.func @no_fence(
// CHECK:           tile.from_shared
// CHECK-NEXT:      tile.release
// CHECK-NEXT:      tile.fill
// CHECK-NEXT:      tile.to_shared
// CHECK-NEXT:      tile.mma
func.func @no_fence(%n: index, %x: bf16, %m: memref<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  tile.launch grid(%c1) warps 4 outs(%m : memref<?x?xf32>) {
  ^bb0(%b: index, %M: memref<?x?xf32, strided<[?, 1], offset: ?>>):
    %as = tile.ring : !rows
    tile.roles {
      tile.role "compute" warps 4 {
        scf.for %i = %c0 to %n step %c1 {
          %a = tile.wait %as[%i] : !rows
          %u = tile.from_shared %a : !row -> !r
          tile.release %as[%i] : !rows
          %p = tile.fill %x : !p
          %t = tile.to_shared %p : !p -> !t
          %y = tile.mma mma_sync %t, %t : !t, !t -> !s
        }
      }
    }
  }
  return
}
