// RUN: fovea-opt %s --attach-gpu-target=target=sm_90a --convert-tile-to-nvvm --canonicalize --cse | FileCheck %s

#halves = #tile.layout<64x128, registers = [2:1d1, 2:8d0, 8:8d1], threads = [4:2d1, 8:1d0, 4:16d0, 2:64d1]>
#rows = #tile.layout<128x64, registers = [2:1d1, 2:8d0, 8:8d1], threads = [4:2d1, 8:1d0, 8:16d0]>
#column = #tile.layout<64, registers = [2:1d0, 8:8d0], threads = [4:2d0, 8:r, 8:r]>

gpu.module @kernels {
  // Two warp groups share the columns of a tile that is added to memory: each
  // waits for its own first warp, and its first thread has its two panels added.
  // Threads of odd rows exchange columns 16 apart, so that no two meet in a bank.
  // CHECK-LABEL: gpu.func @columns
  // CHECK-SAME:  %[[MAP:[^:]*]]: !llvm.ptr
  // CHECK:       scf.for
  // CHECK:         %[[TID:.*]] = nvvm.read.ptx.sreg.tid.x
  // CHECK:         arith.andi %[[TID]], %c127_i32
  // CHECK:         scf.if
  // CHECK-NEXT:      llvm.inline_asm {{.*}}cp.async.bulk.wait_group.read 0;
  // CHECK:         %[[GROUP:.*]] = arith.divui %[[TID]], %c128_i32
  // CHECK:         @first bar.arrive $0, 128;\0A@!first bar.sync $0, 128;
  // CHECK-COUNT-32: arith.select
  // CHECK:         llvm.store {{.*}} {alignment = 8 : i64} : vector<2xf32>, !llvm.ptr<3>
  // CHECK:         fence.proxy.async.shared::cta
  // CHECK:         @!first bar.arrive $0, 128;\0A@first bar.sync $0, 128;
  // CHECK:         %[[OFFSET:.*]] = arith.muli %[[GROUP]], %c16384_i32
  // CHECK:         scf.if
  // CHECK-COUNT-2:   cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group
  // CHECK-NOT:       cp.reduce
  // CHECK:           cp.async.bulk.commit_group
  gpu.func @columns(%map: !tile.tensor_map<2 x !tile.shared<64x128xf32, swizzle = 128>>, %n: index, %f: !tile.fragment<64x128xf32, #halves>) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    scf.for %i = %c0 to %n step %c64 {
      tile.wait_stores
      %t = tile.to_shared %f {tile.shared_offset = 0 : i64} : !tile.fragment<64x128xf32, #halves> -> !tile.shared<64x128xf32, swizzle = 128>
      tile.store_async add %t, %map[%i, %c0] dims [0, 1] : !tile.shared<64x128xf32, swizzle = 128>, !tile.tensor_map<2 x !tile.shared<64x128xf32, swizzle = 128>>
    }
    tile.wait_stores
    gpu.return
  }

  // By rows the descriptor is of one group's.
  // CHECK-LABEL: gpu.func @rows
  // CHECK:       %[[GROUP:.*]] = arith.divui %{{.*}}, %c128_i32
  // CHECK:       %[[PART:.*]] = arith.remui %[[GROUP]], %c2_i32
  // CHECK:       arith.muli %[[PART]], %c64_i32
  // CHECK:       arith.muli %[[PART]], %c8192_i32
  // CHECK-COUNT-2: cp.reduce.async.bulk.tensor.2d
  gpu.func @rows(%map: !tile.tensor_map<2 x !tile.shared<64x64xf32, swizzle = 128>>, %n: index, %f: !tile.fragment<128x64xf32, #rows>) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : index
    %t = tile.to_shared %f {tile.shared_offset = 0 : i64} : !tile.fragment<128x64xf32, #rows> -> !tile.shared<128x64xf32, swizzle = 128>
    tile.store_async add %t, %map[%n, %c0] dims [0, 1] : !tile.shared<128x64xf32, swizzle = 128>, !tile.tensor_map<2 x !tile.shared<64x64xf32, swizzle = 128>>
    tile.wait_stores
    gpu.return
  }

  // Two slots: one barrier. A row is read in pairs.
  // CHECK-LABEL: gpu.func @slots
  // CHECK:       scf.for
  // CHECK-NOT:     nvvm.barrier
  // CHECK:         %[[SLOT:.*]] = arith.remui %{{.*}}, %c2_i32
  // CHECK:         arith.muli %[[SLOT]], %c16384_i32
  // CHECK:         nvvm.stmatrix
  // CHECK:         nvvm.barrier
  // CHECK-COUNT-8: llvm.load {{.*}} {alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xf32>
  gpu.func @slots(%n: index, %x: bf16, %o: memref<?x?xf32, strided<[?, 1], offset: ?>>) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %ring = tile.ring {tile.shared_offset = 32768 : i64, tile.barrier_offset = 40960 : i64} : !tile.ring<2 x !tile.shared<1x64xf32>>
    scf.for %i = %c0 to %n step %c1 {
      %f = tile.fill %x : !tile.fragment<128x64xbf16, #rows>
      %t = tile.to_shared %f transposed slot %i of 2 {tile.shared_offset = 0 : i64} : !tile.fragment<128x64xbf16, #rows> -> !tile.shared<64x128xbf16, swizzle = 128>
      %a = tile.acquire %ring[%i] : !tile.ring<2 x !tile.shared<1x64xf32>>
      tile.load_async %o[%i, %c0] dims [0, 1] into %a signals %ring[%i] : memref<?x?xf32, strided<[?, 1], offset: ?>>, !tile.ring<2 x !tile.shared<1x64xf32>>
      %w = tile.wait %ring[%i] : !tile.ring<2 x !tile.shared<1x64xf32>>
      %r = tile.from_shared %w : !tile.shared<1x64xf32> -> !tile.fragment<64xf32, #column>
      tile.release %ring[%i] : !tile.ring<2 x !tile.shared<1x64xf32>>
      tile.store %r, %o[%i, %c0] dims [1] : !tile.fragment<64xf32, #column>, memref<?x?xf32, strided<[?, 1], offset: ?>>
    }
    gpu.return
  }

  // A turn is taken by whoever stores: here the first thread of each warp group,
  // which waits for the same group's number of the next block, until what it
  // stored before is there, and says so.
  // CHECK-LABEL: gpu.func @turns
  // CHECK:       %[[GROUP:.*]] = arith.divui %{{.*}}, %c128_i32
  // CHECK:       scf.if
  // CHECK:         %[[EXISTS:.*]] = arith.cmpi slt, %{{.*}}, %{{.*}} : index
  // CHECK:         scf.if %[[EXISTS]]
  // CHECK:           ld.acquire.gpu.global.s32
  // CHECK:         cp.async.bulk.wait_group 0;\0Afence.proxy.async.global;
  // CHECK:         st.release.gpu.global.s32
  // CHECK-NOT:   nvvm.barrier
  // CHECK:       cp.reduce.async.bulk.tensor
  gpu.func @turns(%map: !tile.tensor_map<2 x !tile.shared<64x64xf32, swizzle = 128>>, %n: index, %f: !tile.fragment<128x64xf32, #rows>, %turns: memref<?x8xi32, strided<[8, 1]>>) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : index
    %t = tile.to_shared %f {tile.shared_offset = 0 : i64} : !tile.fragment<128x64xf32, #rows> -> !tile.shared<128x64xf32, swizzle = 128>
    tile.take_turn %turns[%n] at %n : memref<?x8xi32, strided<[8, 1]>>
    tile.store_async add %t, %map[%n, %c0] dims [0, 1] : !tile.shared<128x64xf32, swizzle = 128>, !tile.tensor_map<2 x !tile.shared<64x64xf32, swizzle = 128>>
    tile.wait_stores
    gpu.return
  }

  // Threads that add by themselves meet before and after.
  // CHECK-LABEL: gpu.func @turns_of_threads
  // CHECK:       nvvm.memory.barrier
  // CHECK:       nvvm.barrier
  // CHECK:       ld.acquire.gpu.global.s32
  // CHECK:       st.release.gpu.global.s32
  // CHECK:       nvvm.barrier
  // CHECK:       llvm.atomicrmw fadd
  gpu.func @turns_of_threads(%o: memref<?x?xf32, strided<[?, 1], offset: ?>>, %n: index, %f: !tile.fragment<128x64xf32, #rows>, %turns: memref<?x8xi32, strided<[8, 1]>>) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    tile.take_turn %turns[%n] : memref<?x8xi32, strided<[8, 1]>>
    tile.store add %f, %o[%n, %n] dims [0, 1] : !tile.fragment<128x64xf32, #rows>, memref<?x?xf32, strided<[?, 1], offset: ?>>
    gpu.return
  }
}
