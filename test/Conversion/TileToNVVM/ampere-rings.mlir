// RUN: fovea-opt %s --convert-tile-to-nvvm --canonicalize --cse | FileCheck %s

// Rings that all threads fill and read, for Ampere: a thread waits for its own
// copies and then for the others, and meets them again before it fills a slot
// that they may be reading. There are no mbarriers.

!m = memref<?x64xbf16, strided<[?, 1], offset: ?>>
!t = !tile.shared<32x64xbf16, swizzle = 128>
!r = !tile.ring<2 x !t>

module attributes {machine.target = #machine.target<"sm_80", arch = "ampere", cores = 108, vector_bytes = 128, vector_registers = 2048, fast_memory = 166912, near_memory = 41943040, bandwidth = 1555000, peak = 19500, shared_memory = 167936, matrix_peak = 312000>} {
  gpu.module @kernels {
    // CHECK-LABEL: gpu.func @copies
    // CHECK-NOT:     mbarrier
    // CHECK:         scf.for
    // CHECK:           nvvm.barrier
    // CHECK:           scf.if %{{.*}} {
    // CHECK-COUNT-2:     nvvm.cp.async.shared.global
    // CHECK-NEXT:      } else {
    // CHECK:             scf.for
    // CHECK:           nvvm.cp.async.commit.group
    // CHECK-NEXT:      nvvm.cp.async.wait.group 0{{$}}
    // CHECK-NEXT:      nvvm.barrier
    // CHECK:           nvvm.ldmatrix
    // CHECK-NOT:       mbarrier
    // CHECK-NOT:       nvvm.barrier
    // CHECK:         gpu.return
    gpu.func @copies(%m: !m, %n: index, %o: memref<64x32xf32, strided<[32, 1]>>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %ring = tile.ring {tile.shared_offset = 1024 : i64, tile.barrier_offset = 9216 : i64} : !r
      %x = arith.constant 1.0 : bf16
      scf.for %i = %c0 to %n step %c1 {
        %slot = tile.acquire %ring[%i] : !r
        tile.load_async %m[%i, %c0] dims [0, 1] into %slot signals %ring[%i] : !m, !r
        %b = tile.wait %ring[%i] : !r
        %a = tile.fill %x : !tile.fragment<64x64xbf16, #tile.layout<64x64, registers = [2:1d1, 2:8d0, 8:8d1], threads = [4:2d1, 8:1d0, 4:16d0]>>
        %s = tile.mma mma_sync %a, %b transpose_b : !tile.fragment<64x64xbf16, #tile.layout<64x64, registers = [2:1d1, 2:8d0, 8:8d1], threads = [4:2d1, 8:1d0, 4:16d0]>>, !t -> !tile.fragment<64x32xf32, #tile.layout<64x32, registers = [2:1d1, 2:8d0, 4:8d1], threads = [4:2d1, 8:1d0, 4:16d0]>>
        tile.release %ring[%i] : !r
        tile.store %s, %o[%c0, %c0] dims [0, 1] : !tile.fragment<64x32xf32, #tile.layout<64x32, registers = [2:1d1, 2:8d0, 4:8d1], threads = [4:2d1, 8:1d0, 4:16d0]>>, memref<64x32xf32, strided<[32, 1]>>
      }
      gpu.return
    }

    // Two waits that follow each other are one meeting, and so there is none
    // before the copies into slots that were released before it.
    // CHECK-LABEL: gpu.func @ahead
    // CHECK:         scf.for
    // CHECK:           nvvm.cp.async.wait.group 0{{$}}
    // CHECK-NEXT:      nvvm.barrier
    // CHECK-NOT:       nvvm.barrier
    // CHECK:           nvvm.cp.async.shared.global
    // CHECK-NOT:       nvvm.barrier
    // CHECK:           nvvm.ldmatrix
    // CHECK-NOT:       nvvm.barrier
    // CHECK:         gpu.return
    gpu.func @ahead(%m: !m, %n: index, %o: memref<64x32xf32, strided<[32, 1]>>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %k = tile.ring {tile.shared_offset = 1024 : i64, tile.barrier_offset = 17408 : i64} : !r
      %v = tile.ring {tile.shared_offset = 9216 : i64, tile.barrier_offset = 17440 : i64} : !r
      %x = arith.constant 1.0 : bf16
      scf.for %i = %c0 to %n step %c1 {
        %a = tile.wait %k[%i] : !r
        %b = tile.wait %v[%i] : !r
        %next = arith.addi %i, %c1 : index
        %exists = arith.cmpi slt, %next, %n : index
        scf.if %exists {
          %ks = tile.acquire %k[%next] : !r
          tile.load_async %m[%next, %c0] dims [0, 1] into %ks signals %k[%next] : !m, !r
          %vs = tile.acquire %v[%next] : !r
          tile.load_async %m[%next, %c0] dims [0, 1] into %vs signals %v[%next] : !m, !r
        }
        %q = tile.fill %x : !tile.fragment<64x64xbf16, #tile.layout<64x64, registers = [2:1d1, 2:8d0, 8:8d1], threads = [4:2d1, 8:1d0, 4:16d0]>>
        %s = tile.mma mma_sync %q, %a transpose_b : !tile.fragment<64x64xbf16, #tile.layout<64x64, registers = [2:1d1, 2:8d0, 8:8d1], threads = [4:2d1, 8:1d0, 4:16d0]>>, !t -> !tile.fragment<64x32xf32, #tile.layout<64x32, registers = [2:1d1, 2:8d0, 4:8d1], threads = [4:2d1, 8:1d0, 4:16d0]>>
        tile.release %k[%i] : !r
        tile.store %s, %o[%c0, %c0] dims [0, 1] : !tile.fragment<64x32xf32, #tile.layout<64x32, registers = [2:1d1, 2:8d0, 4:8d1], threads = [4:2d1, 8:1d0, 4:16d0]>>, memref<64x32xf32, strided<[32, 1]>>
        tile.release %v[%i] : !r
      }
      gpu.return
    }
  }
}
