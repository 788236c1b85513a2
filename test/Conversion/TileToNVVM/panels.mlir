// RUN: fovea-opt %s --convert-tile-to-nvvm --canonicalize --cse | FileCheck %s

// Up to 8 panels are copied by as many instructions; more of them in a loop that
// ptxas does not unroll, which would take more registers than the role has.

!wide = !tile.shared<64x240xbf16, swizzle = 32>
!line = !tile.shared<1x384xf32>
!narrow = !tile.shared<64x80xbf16, swizzle = 32>
!wideRing = !tile.ring<1 x !wide>
!lineRing = !tile.ring<1 x !line>
!lineMap = !tile.tensor_map<2 x !line>
!narrowRing = !tile.ring<1 x !narrow>
!wideMap = !tile.tensor_map<3 x !wide>
!narrowMap = !tile.tensor_map<3 x !narrow>

gpu.module @kernels {
  // CHECK-LABEL: gpu.func @wide(
  // CHECK-SAME:  %[[MAP:[^:]*]]: !llvm.ptr
  // CHECK:       %[[BASE:.*]] = llvm.ptrtoint
  // CHECK:       mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;{{.*}} %[[FULL:.*]], %c30720_i32
  // CHECK-NEXT:  llvm.inline_asm
  // CHECK-SAME:  "{\0A.reg .pred more;\0A.reg .b32 address, column, end;\0Amov.b32 address, $0;\0Amov.b32 column, $3;\0Aadd.s32 end, column, 240;\0ACOPY:\0A.pragma \22nounroll\22;\0Acp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [address], [$1, {column, $4, $5}], [$2];\0Aadd.s32 address, address, 2048;\0Aadd.s32 column, column, 16;\0Asetp.lt.s32 more, column, end;\0A@more bra COPY;\0A}"
  // CHECK-SAME:  %[[BASE]], %[[MAP]], %[[FULL]], %c0_i32, %{{.*}}, %{{.*}} :
  // CHECK-NOT:   cp.async
  // CHECK:       COPY:\0A.pragma \22nounroll\22;\0Acp.async.bulk.tensor.3d.global.shared::cta.bulk_group [$1, {column, $3, $4}], [address];\0A
  // CHECK-NOT:   cp.async.bulk.tensor
  gpu.func @wide(%map: !wideMap, %i: index) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %ring = tile.ring {tile.shared_offset = 0 : i64, tile.barrier_offset = 30720 : i64} : !wideRing
    %slot = tile.acquire %ring[%c0] : !wideRing
    tile.load_async %map[%i, %i, %c0] dims [1, 2] into %slot signals %ring[%c0] : !wideMap, !wideRing
    %full = tile.wait %ring[%c0] : !wideRing
    tile.store_async %full, %map[%i, %i, %c0] dims [1, 2] : !wide, !wideMap
    tile.release %ring[%c0] : !wideRing
    gpu.return
  }

  // CHECK-LABEL:   gpu.func @narrow(
  // CHECK-NOT:     COPY
  // CHECK-COUNT-5: "cp.async.bulk.tensor.3d.shared::cluster
  // CHECK-NOT:     {{COPY|cp.async.bulk.tensor}}
  gpu.func @narrow(%map: !narrowMap, %i: index) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %ring = tile.ring {tile.shared_offset = 0 : i64, tile.barrier_offset = 10240 : i64} : !narrowRing
    %slot = tile.acquire %ring[%c0] : !narrowRing
    tile.load_async %map[%i, %i, %c0] dims [1, 2] into %slot signals %ring[%c0] : !narrowMap, !narrowRing
    %full = tile.wait %ring[%c0] : !narrowRing
    tile.release %ring[%c0] : !narrowRing
    gpu.return
  }

  // A row that is longer than 256 elements is copied in equal parts.
  // CHECK-LABEL:   gpu.func @line(
  // CHECK-SAME:    %{{[^:]*}}: !llvm.ptr{{.*}}, %[[I:[^:]*]]: index
  // CHECK:         %[[COLUMN:.*]] = arith.index_cast %[[I]]
  // CHECK:         "mbarrier.arrive.expect_tx{{.*}}, %c1536_i32
  // CHECK:         "cp.async.bulk.tensor.2d.shared::cluster{{.*}} %[[COLUMN]], %[[COLUMN]] :
  // CHECK:         %[[NEXT:.*]] = arith.addi %[[COLUMN]], %c192_i32
  // CHECK:         "cp.async.bulk.tensor.2d.shared::cluster{{.*}} %[[NEXT]], %[[COLUMN]] :
  // CHECK-NOT:     cp.async.bulk.tensor
  gpu.func @line(%map: !lineMap, %i: index) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %ring = tile.ring {tile.shared_offset = 0 : i64, tile.barrier_offset = 2048 : i64} : !lineRing
    %slot = tile.acquire %ring[%c0] : !lineRing
    tile.load_async %map[%i, %i] dims [0, 1] into %slot signals %ring[%c0] : !lineMap, !lineRing
    %full = tile.wait %ring[%c0] : !lineRing
    tile.release %ring[%c0] : !lineRing
    gpu.return
  }
}
