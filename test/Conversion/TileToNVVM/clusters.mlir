// RUN: fovea-opt %s --convert-tile-to-nvvm --canonicalize --cse | FileCheck %s

// A ring that the blocks of a cluster fill together: each copies every other panel
// to both, at whose barriers the copy counts; each warp that has read a slot says
// so in both.

#acc = #tile.layout<64x64, registers = [2:1d1, 2:8d0, 8:8d1], threads = [4:2d1, 8:1d0, 4:16d0]>
!t = !tile.shared<64x128xbf16, swizzle = 128>
!ring = !tile.ring<2 x !t>
!map = !tile.tensor_map<3 x !t>
!wide = !tile.shared<64x160xbf16, swizzle = 32>
!wideRing = !tile.ring<1 x !wide>
!wideMap = !tile.tensor_map<3 x !wide>
!s = !tile.fragment<64x64xf32, #acc>

gpu.module @kernels {
  // CHECK-LABEL: gpu.func @cluster(
  // CHECK-SAME:  %[[MAP:[^:]*]]: !llvm.ptr
  // CHECK:       %[[BASE:.*]] = llvm.ptrtoint
  // Full by one thread of the block, empty by 4 warps of each of two blocks.
  // CHECK-COUNT-2: mbarrier.init{{.*}}, %c1_i32 :
  // CHECK-COUNT-2: mbarrier.init{{.*}}, %c8_i32 :
  // All blocks have barriers when the first one copies.
  // CHECK:       nvvm.cluster.arrive
  // CHECK-NEXT:  nvvm.cluster.wait
  // CHECK-NOT:   nvvm.barrier
  // The block itself waits for all of the tile.
  // CHECK:       mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;{{.*}}, %c16384_i32 :
  // CHECK:       %[[RANK:.*]] = nvvm.read.ptx.sreg.cluster.ctaid.x
  // CHECK:       %[[BYTE:.*]] = arith.muli %[[RANK]], %c8192_i32
  // CHECK:       %[[PANEL:.*]] = arith.addi %{{.*}}, %[[BYTE]]
  // CHECK:       %[[COLUMN:.*]] = arith.muli %[[RANK]], %c64_i32
  // CHECK:       "{\0A.reg .b16 all;\0Amov.b16 all, 3;\0Acp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [$0], [$1, {$3, $4, $5}], [$2], all;\0A}"
  // CHECK-SAME:  %[[PANEL]], %[[MAP]], %{{.*}}, %[[COLUMN]],
  // CHECK-NOT:   cp.async.bulk.tensor
  // Descriptors do not have the number of the block, which is part of addresses.
  // CHECK:       %[[UNITS:.*]] = arith.shrui %{{.*}}, %c4_i32
  // CHECK:       arith.andi %[[UNITS]], %c16383_i32
  // CHECK:       wgmma.mma_async
  // CHECK:       setp.lt.u32 member, $1, 2;\0A@member mapa.shared::cluster.u32 there, $0, $1;\0A@member mbarrier.arrive.shared::cluster.b64 _, [there];
  // A block does not end before others have arrived at its barriers.
  // CHECK:       nvvm.cluster.arrive
  // CHECK-NEXT:  nvvm.cluster.wait
  // CHECK-NEXT:  gpu.return
  gpu.func @cluster(%map: !map, %n: index) kernel attributes {known_block_size = array<i32: 256, 1, 1>, nvvm.cluster_dim = array<i32: 2, 1, 1>} {
    %c0 = arith.constant 0 : index
    %ring = tile.ring cluster 2 {tile.shared_offset = 0 : i64, tile.barrier_offset = 32768 : i64} : !ring
    tile.roles {
      tile.role "load" warps 4 registers 24 single {
        %slot = tile.acquire %ring[%n] : !ring
        tile.load_async %map[%n, %n, %c0] dims [1, 2] into %slot signals %ring[%n] : !map, !ring
      }
      tile.role "compute" warps 4 registers 240 {
        %x = tile.wait %ring[%n] : !ring
        %t = tile.mma_async wgmma %x, %x transpose_b : !t, !t -> !tile.token<!s>
        %s = tile.wait_mma %t : !tile.token<!s>
        tile.release %ring[%n] : !ring
      }
    }
    gpu.return
  }

  // One thread that reads a slot arrives in each block; of many panels a loop
  // copies every other one.
  // CHECK-LABEL: gpu.func @single(
  // CHECK:       add.s32 end, column, 160;\0ACOPY:{{.*}}multicast::cluster [address], [$1, {column, $4, $5}], [$2], all;\0A}\0Aadd.s32 address, address, 4096;\0Aadd.s32 column, column, 32;
  // CHECK:       mapa.shared::cluster.u32 there, $0, $1;{{.*}}, %c0_i32 :
  // CHECK:       mapa.shared::cluster.u32 there, $0, $1;{{.*}}, %c1_i32 :
  gpu.func @single(%map: !wideMap, %n: index) kernel attributes {known_block_size = array<i32: 256, 1, 1>, nvvm.cluster_dim = array<i32: 2, 1, 1>} {
    %c0 = arith.constant 0 : index
    %ring = tile.ring cluster 2 {tile.shared_offset = 0 : i64, tile.barrier_offset = 20480 : i64} : !wideRing
    tile.roles {
      tile.role "load" warps 4 registers 24 single {
        %slot = tile.acquire %ring[%n] : !wideRing
        tile.load_async %map[%n, %n, %c0] dims [1, 2] into %slot signals %ring[%n] : !wideMap, !wideRing
      }
      tile.role "store" warps 4 registers 24 single {
        %x = tile.wait %ring[%n] : !wideRing
        tile.release %ring[%n] : !wideRing
      }
    }
    gpu.return
  }
}
