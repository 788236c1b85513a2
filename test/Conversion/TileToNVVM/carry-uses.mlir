// RUN: fovea-opt %s --convert-tile-to-nvvm --canonicalize --cse | FileCheck %s

#acc = #tile.layout<64x64, registers = [2:1d1, 2:8d0, 8:8d1], threads = [4:2d1, 8:1d0, 4:16d0]>
!k = !tile.shared<64x64xbf16, swizzle = 128>
!ring = !tile.ring<4 x !k>
!s = !tile.fragment<64x64xf32, #acc>

gpu.module @kernels {
  // A loop carries, beside the number of a use, the barriers, the parity and the
  // descriptor that follow from it. An iteration computes them for the next one, out of
  // LLVM's sight.

  // CHECK-LABEL: gpu.func @carried
  // CHECK:       scf.for %{{.*}} iter_args(%[[USE:[^ ]*]] = %{{.*}}, %[[SLOT:[^ ]*]] = %{{.*}}, %[[FULL:[^ ]*]] = %{{.*}}, %[[PARITY:[^ ]*]] = %{{.*}}, %[[UNITS:[^ ]*]] = %{{.*}}, %[[EMPTY:[^ ]*]] = %{{.*}}) -> (index, i32, i32, i32, i32, i32)
  // CHECK-NEXT:    mbarrier.try_wait{{.*}} %[[FULL]], %[[PARITY]] :
  // CHECK-NOT:     remui
  // CHECK:         wgmma.mma_async{{.*}} %[[UNITS]],
  // CHECK:         mbarrier.arrive{{.*}} %[[EMPTY]],
  // CHECK:         %[[NEXT:.*]] = arith.addi %[[USE]], %c1
  // CHECK:         %[[NUMBER:.*]] = arith.index_cast %[[NEXT]]
  // CHECK:         %[[INDEX:.*]] = arith.remui %[[NUMBER]], %c4_i32
  // CHECK-COUNT-5: llvm.inline_asm "mov.b32 $0, $1;", "=r,r"
  // CHECK:         scf.yield %[[NEXT]],
  gpu.func @carried(%first: index, %n: index) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %ks = tile.ring {tile.shared_offset = 0 : i64, tile.barrier_offset = 32768 : i64} : !ring
    %end = scf.for %i = %c0 to %n step %c1 iter_args(%use = %first) -> (index) {
      %k = tile.wait %ks[%use] : !ring
      %t = tile.mma_async wgmma %k, %k transpose_b : !k, !k -> !tile.token<!s>
      %s = tile.wait_mma %t : !tile.token<!s>
      tile.release %ks[%use] : !ring
      %next = arith.addi %use, %c1 : index
      scf.yield %next : index
    }
    gpu.return
  }

  // In front of a branch behind the products, where it need not be waited for, also
  // where the next number of a use is computed behind it.

  // CHECK-LABEL: gpu.func @branch
  // CHECK:       scf.for %{{.*}} iter_args(%[[USE:[^ ]*]] = %{{[^ ]*}}, %
  // CHECK:         wgmma.mma_async
  // CHECK:         mbarrier.arrive
  // CHECK-NOT:     scf.if
  // CHECK:         %[[NEXT:.*]] = arith.addi %[[USE]], %c1
  // CHECK-COUNT-5: llvm.inline_asm "mov.b32 $0, $1;", "=r,r"
  // CHECK-NEXT:    scf.if
  // CHECK:         scf.yield %[[NEXT]],
  gpu.func @branch(%first: index, %n: index, %again: i1, %count: memref<i32>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %one = arith.constant 1 : i32
    %ks = tile.ring {tile.shared_offset = 0 : i64, tile.barrier_offset = 32768 : i64} : !ring
    %end = scf.for %i = %c0 to %n step %c1 iter_args(%use = %first) -> (index) {
      %k = tile.wait %ks[%use] : !ring
      %t = tile.mma_async wgmma %k, %k transpose_b : !k, !k -> !tile.token<!s>
      %s = tile.wait_mma %t : !tile.token<!s>
      tile.release %ks[%use] : !ring
      scf.if %again {
        memref.store %one, %count[] : memref<i32>
      }
      %next = arith.addi %use, %c1 : index
      scf.yield %next : index
    }
    gpu.return
  }

  // A number that the branch decides is known behind it only.

  // CHECK-LABEL: gpu.func @decided
  // CHECK:       scf.for
  // CHECK:         wgmma.mma_async
  // CHECK-NOT:     mov.b32
  // CHECK:         scf.if
  // CHECK:         scf.yield
  // CHECK:         scf.yield
  // CHECK-COUNT-5: llvm.inline_asm "mov.b32 $0, $1;", "=r,r"
  // CHECK-NEXT:    scf.yield
  gpu.func @decided(%first: index, %n: index, %again: i1, %size: memref<index>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %ks = tile.ring {tile.shared_offset = 0 : i64, tile.barrier_offset = 32768 : i64} : !ring
    %end = scf.for %i = %c0 to %n step %c1 iter_args(%use = %first) -> (index) {
      %k = tile.wait %ks[%use] : !ring
      %t = tile.mma_async wgmma %k, %k transpose_b : !k, !k -> !tile.token<!s>
      %s = tile.wait_mma %t : !tile.token<!s>
      tile.release %ks[%use] : !ring
      %by = scf.if %again -> (index) {
        %read = memref.load %size[] : memref<index>
        scf.yield %read : index
      } else {
        scf.yield %c1 : index
      }
      %next = arith.addi %use, %by : index
      scf.yield %next : index
    }
    gpu.return
  }

  // Where a product is waited for behind the branch, they are computed at the end.

  // CHECK-LABEL: gpu.func @beside
  // CHECK:       scf.for
  // CHECK:         wgmma.mma_async
  // CHECK:         scf.if
  // CHECK:         wgmma.wait_group
  // CHECK-NOT:     scf.yield
  // CHECK-COUNT-5: llvm.inline_asm "mov.b32 $0, $1;", "=r,r"
  // CHECK-NEXT:    scf.yield
  gpu.func @beside(%first: index, %n: index, %again: i1, %count: memref<i32>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %one = arith.constant 1 : i32
    %ks = tile.ring {tile.shared_offset = 0 : i64, tile.barrier_offset = 32768 : i64} : !ring
    %end = scf.for %i = %c0 to %n step %c1 iter_args(%use = %first) -> (index) {
      %k = tile.wait %ks[%use] : !ring
      %t = tile.mma_async wgmma %k, %k transpose_b : !k, !k -> !tile.token<!s>
      scf.if %again {
        memref.store %one, %count[] : memref<i32>
      }
      %s = tile.wait_mma %t : !tile.token<!s>
      tile.release %ks[%use] : !ring
      %next = arith.addi %use, %c1 : index
      scf.yield %next : index
    }
    gpu.return
  }

  // A loop without products stays as it is.
  // CHECK-LABEL: gpu.func @plain
  // CHECK:       scf.for %{{.*}} iter_args(%[[USE:[^ ]*]] = %{{[^ ]*}}) -> (index)
  // CHECK:         arith.index_cast %[[USE]]
  // CHECK:         mbarrier.try_wait
  // CHECK-NOT:     mov.b32
  gpu.func @plain(%first: index, %n: index) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %ks = tile.ring {tile.shared_offset = 0 : i64, tile.barrier_offset = 32768 : i64} : !ring
    %end = scf.for %i = %c0 to %n step %c1 iter_args(%use = %first) -> (index) {
      %k = tile.wait %ks[%use] : !ring
      tile.release %ks[%use] : !ring
      %next = arith.addi %use, %c1 : index
      scf.yield %next : index
    }
    gpu.return
  }
}
