// RUN: fovea-opt %s --convert-tile-to-nvvm --canonicalize --cse | FileCheck %s

// Rings that all threads fill, for Ampere: a slot is full when each thread's
// copies are complete, which cp.async says to the mbarrier by itself.

!m = memref<?x64xbf16, strided<[?, 1], offset: ?>>
!t = !tile.shared<32x64xbf16, swizzle = 128>
!r = !tile.ring<2 x !t>

module attributes {attn.target = #attn.target<"sm_80", arch = "ampere", cores = 108, vector_bytes = 128, vector_registers = 2048, fast_memory = 166912, near_memory = 41943040, bandwidth = 1555000, peak = 19500, shared_memory = 167936, matrix_peak = 312000>} {
  gpu.module @kernels {
    // CHECK-LABEL: gpu.func @copies
    // CHECK-DAG:     %[[SLOTS:.*]] = arith.addi %{{.*}}, %c1024_i32
    // CHECK-DAG:     %[[FULL:.*]] = arith.addi %{{.*}}, %c9216_i32
    // CHECK:         scf.if
    // CHECK-COUNT-2:   "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}" %{{.*}}, %c128_i32
    // CHECK-COUNT-2:   "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}" %{{.*}}, %c4_i32
    // CHECK-NOT:       fence
    // CHECK:         nvvm.barrier
    // CHECK:         scf.for
    // CHECK:           mbarrier.test_wait.parity.shared::cta.b64
    // CHECK:           scf.if %{{.*}} {
    // CHECK-COUNT-2:     nvvm.cp.async.shared.global
    // CHECK:             nvvm.cp.async.mbarrier.arrive %{{.*}} {noinc = true} : !llvm.ptr<3>
    // CHECK:           } else {
    // CHECK:             scf.for
    // CHECK:             llvm.inline_asm has_side_effects "mbarrier.arrive.shared::cta.b64 _, [$0];"
    // CHECK:           mbarrier.test_wait.parity.shared::cta.b64
    // CHECK-NOT:       nvvm.cp.async.wait
    // CHECK:           nvvm.ldmatrix
    // CHECK:           nvvm.bar.warp.sync
    // CHECK:           mbarrier.arrive.shared::cta.b64
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
  }
}
