// RUN: fovea-opt %s --convert-tile-to-nvvm --canonicalize --cse | FileCheck %s

#acc = #tile.layout<128x64, registers = [2:1d1, 2:8d0, 8:8d1], threads = [4:2d1, 8:1d0, 8:16d0]>
#wide = #tile.layout<128x128, registers = [2:1d1, 2:8d0, 16:8d1], threads = [4:2d1, 8:1d0, 8:16d0]>
#row = #tile.layout<64, registers = [2:1d0, 8:8d0], threads = [4:2d0, 8:r, 8:r]>
!row = !tile.shared<1x64xf32>
!rows = !tile.ring<2 x !row>
!rowMap = !tile.tensor_map<2 x !row>
!rowMemory = memref<?x?xf32, strided<[?, 1], offset: ?>>
!k = !tile.shared<64x128xbf16, swizzle = 128>
!keys = !tile.ring<2 x !k>
!keyMap = !tile.tensor_map<2 x !k>
!out = !tile.shared<128x64xf32, swizzle = 128>
!outs = !tile.ring<1 x !out>
!p = !tile.fragment<128x128xbf16, #wide>
!s = !tile.fragment<128x64xf32, #acc>

gpu.module @kernels {
  // Bulk copies may write a slot as soon as it is released, through another
  // proxy than that of threads' reads. One fence is enough for two releases.
  // CHECK-LABEL: gpu.func @reads
  // CHECK:       nvvm.setmaxregister increase
  // CHECK:       scf.for
  // CHECK:         mbarrier.try_wait
  // A row's numbers are read where the program says, not sooner.
  // CHECK:         nvvm.bar.warp.sync
  // CHECK-COUNT-8: llvm.load {{.*}} : !llvm.ptr<3> -> vector<2xf32>
  // CHECK:         mbarrier.try_wait
  // CHECK:         nvvm.bar.warp.sync
  // CHECK-COUNT-8: llvm.load {{.*}} : !llvm.ptr<3> -> vector<2xf32>
  // CHECK-NOT:     fence
  // CHECK:         fence.proxy.async.shared::cta;
  // CHECK-NEXT:    nvvm.bar.warp.sync
  // CHECK:         @first mbarrier.arrive
  // CHECK-NOT:     fence.proxy
  // CHECK:         @first mbarrier.arrive
  // CHECK-NOT:     fence.proxy
  // CHECK:       gpu.return
  gpu.func @reads(%A: !rowMap, %B: !rowMap, %O: !rowMemory, %n: index) kernel attributes {known_block_size = array<i32: 384, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %as = tile.ring {tile.shared_offset = 0 : i64, tile.barrier_offset = 4096 : i64} : !rows
    %bs = tile.ring {tile.shared_offset = 2048 : i64, tile.barrier_offset = 4128 : i64} : !rows
    tile.roles {
      tile.role "load" warps 4 registers 24 single {
        scf.for %i = %c0 to %n step %c1 {
          %a = tile.acquire %as[%i] : !rows
          tile.load_async %A[%i, %c0] dims [0, 1] into %a signals %as[%i] : !rowMap, !rows
          %b = tile.acquire %bs[%i] : !rows
          tile.load_async %B[%i, %c0] dims [0, 1] into %b signals %bs[%i] : !rowMap, !rows
        }
      }
      tile.role "compute" warps 8 registers 240 {
        scf.for %i = %c0 to %n step %c1 {
          %a = tile.wait %as[%i] : !rows
          %x = tile.from_shared %a : !row -> !tile.fragment<64xf32, #row>
          %b = tile.wait %bs[%i] : !rows
          %y = tile.from_shared %b : !row -> !tile.fragment<64xf32, #row>
          tile.release %as[%i] : !rows
          tile.release %bs[%i] : !rows
          tile.store %x, %O[%i, %c0] dims [1] : !tile.fragment<64xf32, #row>, !rowMemory
          tile.store %y, %O[%i, %c0] dims [1] : !tile.fragment<64xf32, #row>, !rowMemory
        }
      }
    }
    gpu.return
  }

  // A slot that is read behind the fence of the release before has one of its own;
  // the fence behind a write is enough.
  // CHECK-LABEL: gpu.func @since
  // CHECK:       nvvm.setmaxregister increase
  // CHECK:         fence.proxy.async.shared::cta;
  // CHECK:         @first mbarrier.arrive
  // CHECK-COUNT-8: llvm.load {{.*}} : !llvm.ptr<3> -> vector<2xf32>
  // CHECK:         fence.proxy.async.shared::cta;
  // CHECK:         @first mbarrier.arrive
  // CHECK-COUNT-8: llvm.load {{.*}} : !llvm.ptr<3> -> vector<2xf32>
  // CHECK:         llvm.store
  // CHECK:         fence.proxy.async.shared::cta;
  // CHECK-NEXT:    llvm.inline_asm {{.*}}"mbarrier.arrive
  // CHECK-NOT:     fence.proxy
  // CHECK:         @first mbarrier.arrive
  // CHECK-NOT:     fence.proxy
  // CHECK:       gpu.return
  gpu.func @since(%A: !rowMap, %O: !rowMemory, %x: f32, %n: index) kernel attributes {known_block_size = array<i32: 384, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %as = tile.ring {tile.shared_offset = 0 : i64, tile.barrier_offset = 65536 : i64} : !rows
    %bs = tile.ring {tile.shared_offset = 2048 : i64, tile.barrier_offset = 65568 : i64} : !rows
    %cs = tile.ring {tile.shared_offset = 4096 : i64, tile.barrier_offset = 65600 : i64} : !rows
    %os = tile.ring {tile.shared_offset = 8192 : i64, tile.barrier_offset = 65632 : i64} : !outs
    tile.roles {
      tile.role "load" warps 2 registers 24 single {
        scf.for %i = %c0 to %n step %c1 {
          %a = tile.acquire %as[%i] : !rows
          tile.load_async %A[%i, %c0] dims [0, 1] into %a signals %as[%i] : !rowMap, !rows
          %b = tile.acquire %bs[%i] : !rows
          tile.load_async %A[%i, %c0] dims [0, 1] into %b signals %bs[%i] : !rowMap, !rows
          %c = tile.acquire %cs[%i] : !rows
          tile.load_async %A[%i, %c0] dims [0, 1] into %c signals %cs[%i] : !rowMap, !rows
        }
      }
      tile.role "store" warps 2 registers 24 single {
        scf.for %i = %c0 to %n step %c1 {
          %o = tile.wait %os[%i] : !outs
          tile.release %os[%i] : !outs
        }
      }
      tile.role "compute" warps 8 registers 240 {
        scf.for %i = %c0 to %n step %c1 {
          %a = tile.wait %as[%i] : !rows
          %u = tile.from_shared %a : !row -> !tile.fragment<64xf32, #row>
          tile.release %as[%i] : !rows
          %b = tile.wait %bs[%i] : !rows
          %v = tile.from_shared %b : !row -> !tile.fragment<64xf32, #row>
          tile.release %bs[%i] : !rows
          %c = tile.wait %cs[%i] : !rows
          %w = tile.from_shared %c : !row -> !tile.fragment<64xf32, #row>
          %f = tile.fill %x : !s
          %o = tile.acquire %os[%i] : !outs
          tile.write %f into %o signals %os[%i] : !s, !outs
          tile.release %cs[%i] : !rows
          tile.store %u, %O[%i, %c0] dims [1] : !tile.fragment<64xf32, #row>, !rowMemory
          tile.store %v, %O[%i, %c0] dims [1] : !tile.fragment<64xf32, #row>, !rowMemory
          tile.store %w, %O[%i, %c0] dims [1] : !tile.fragment<64xf32, #row>, !rowMemory
        }
      }
    }
    gpu.return
  }

  // Copies by threads write through the proxy of reads, and WGMMA reads through
  // that of bulk copies.
  // CHECK-LABEL: gpu.func @same_proxy
  // CHECK:       nvvm.setmaxregister increase
  // CHECK:       scf.for
  // The copies' own fence, for products.
  // CHECK:         fence.proxy.async.shared::cta;
  // CHECK-COUNT-8: llvm.load {{.*}} : !llvm.ptr<3> -> vector<2xf32>
  // CHECK-NOT:     fence.proxy
  // CHECK:       gpu.return
  gpu.func @same_proxy(%A: !rowMemory, %O: !rowMemory, %K: !keyMap, %n: index) kernel attributes {known_block_size = array<i32: 384, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : bf16
    %as = tile.ring {tile.shared_offset = 0 : i64, tile.barrier_offset = 65536 : i64} : !rows
    %ks = tile.ring {tile.shared_offset = 2048 : i64, tile.barrier_offset = 65568 : i64} : !keys
    tile.roles {
      tile.role "load" warps 4 registers 24 {
        scf.for %i = %c0 to %n step %c1 {
          %a = tile.acquire %as[%i] : !rows
          tile.load_async %A[%i, %c0] dims [0, 1] into %a signals %as[%i] : !rowMemory, !rows
          %k = tile.acquire %ks[%i] : !keys
          tile.load_async %K[%i, %c0] dims [0, 1] into %k signals %ks[%i] : !keyMap, !keys
        }
      }
      tile.role "compute" warps 8 registers 240 {
        scf.for %i = %c0 to %n step %c1 {
          %a = tile.wait %as[%i] : !rows
          %u = tile.from_shared %a : !row -> !tile.fragment<64xf32, #row>
          tile.release %as[%i] : !rows
          %k = tile.wait %ks[%i] : !keys
          %p = tile.fill %zero : !p
          %t = tile.mma_async wgmma %p, %k transpose_b : !p, !k -> !tile.token<!s>
          %s = tile.wait_mma %t : !tile.token<!s>
          tile.release %ks[%i] : !keys
          tile.store %u, %O[%i, %c0] dims [1] : !tile.fragment<64xf32, #row>, !rowMemory
        }
      }
    }
    gpu.return
  }
}
