// RUN: fovea-opt %s --convert-tile-to-nvvm --canonicalize --cse --split-input-file | FileCheck %s

!k = !tile.shared<64x128xbf16, swizzle = 128>
!ring = !tile.ring<3 x !k>
!plain = !tile.ring<1 x !k>
!kmap = !tile.tensor_map<3 x !k>

// A copy by TMA that leaves out rows. Only where it leaves out some of the tile,
// it completes at a barrier of its own, where the thread that started it waits
// for it; then zeros are copied to the rows in front and behind, of both panels,
// and the slot's barrier waits for their bytes instead. Other rings are as they
// were.

// CHECK: llvm.mlir.global internal constant @fovea_zeros_8192(dense<0> : tensor<8192xi8>) {addr_space = 1 : i32, alignment = 16 : i64} : !llvm.array<8192 x i8>
gpu.module @kernels {
  // CHECK-LABEL: gpu.func @rows(
  // CHECK-SAME: %[[K:[a-z0-9]*]]: !llvm.ptr {{.*}}, %[[B:.*]]: index, %[[N:.*]]: index)
  // CHECK: %[[ZEROS:.*]] = llvm.mlir.addressof @fovea_zeros_8192
  // CHECK: %[[BASE:.*]] = llvm.ptrtoint
  // CHECK: %[[FULL:.*]] = arith.addi %[[BASE]], %c65536_i32
  // CHECK: scf.if
  // CHECK-COUNT-3: mbarrier.init{{.*}}, %c1_i32 :
  // CHECK-COUNT-3: mbarrier.init{{.*}}, %c8_i32 :
  // CHECK: %[[INIT:.*]] = arith.addi %[[BASE]], %c65584_i32
  // CHECK: mbarrier.init.shared::cta.b64 [$0], $1;{{.*}} %[[INIT]], %c1_i32 :
  // CHECK: scf.if
  // CHECK-COUNT-2: mbarrier.init
  // CHECK-NOT: mbarrier.init

  // The copy of the other ring.
  // CHECK: mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;
  // CHECK-COUNT-2: cp.async.bulk.tensor.3d
  // CHECK: scf.for %[[I:.*]] =
  // CHECK: %[[OWN:.*]] = arith.addi %[[FULL]],
  // CHECK: mbarrier.try_wait.parity
  // CHECK: %[[LOW:.*]] = arith.maxsi %[[B]], %c0
  // CHECK: %[[FIRST_:.*]] = arith.minsi %[[LOW]], %c64
  // CHECK: %[[FIRST:.*]] = arith.index_cast %[[FIRST_]]
  // CHECK: %[[END:.*]] = arith.index_cast
  // CHECK: %[[ISEMPTY:.*]] = arith.cmpi sle, %[[END]], %[[FIRST]]
  // CHECK: %[[LEFT:.*]] = arith.subi %[[END]], %[[FIRST]]
  // CHECK: %[[ISPART:.*]] = arith.cmpi ne, %[[LEFT]], %c64_i32
  // CHECK: %[[ISCUT:.*]] = arith.select %[[ISEMPTY]], %false, %[[ISPART]]
  // A tile of which no row is left is copied from before the tensor.
  // CHECK: %[[ROW:.*]] = arith.select %[[ISEMPTY]], %c-64_i32, %{{.*}} : i32
  // CHECK: %[[CUT:.*]] = arith.addi %[[BASE]], %c65584_i32
  // CHECK: %[[BARRIER:.*]] = arith.select %[[ISCUT]], %[[CUT]], %[[OWN]]
  // CHECK: %[[STATE:.*]] = {{.*}} "mbarrier.arrive.expect_tx.shared::cta.b64 $0, [$1], $2;", "=l,r,r,~{memory}" %[[BARRIER]], %c16384_i32
  // CHECK: cp.async.bulk.tensor.3d{{.*}} %[[SLOT:.*]], %[[K]], %[[BARRIER]], %c0_i32, %[[ROW]],
  // CHECK: cp.async.bulk.tensor.3d{{.*}} %[[SECOND:[0-9]*]], %[[K]], %[[BARRIER]], %c64_i32, %[[ROW]],
  // CHECK: scf.if %[[ISCUT]] {
  // CHECK:   mbarrier.try_wait.shared::cta.b64 done, [$0], $1;{{.*}} %[[BARRIER]], %[[STATE]]
  // CHECK:   %[[OTHERS:.*]] = arith.subi %c64_i32, %[[LEFT]]
  // CHECK:   %[[ALL:.*]] = arith.muli %[[OTHERS]], %c256_i32
  // CHECK:   "mbarrier.arrive.expect_tx.shared::cta.b64 $0, [$1], $2;"{{.*}} %[[OWN]], %[[ALL]]
  // CHECK:   %[[BEFORE:.*]] = arith.muli %[[FIRST]], %c128_i32
  // CHECK:   @any cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1], $2, [$3];{{.*}} %[[SLOT]], %[[ZEROS]], %[[BEFORE]], %[[OWN]]
  // CHECK:   cp.async.bulk.shared::cluster.global{{.*}} %[[SECOND]], %[[ZEROS]], %[[BEFORE]], %[[OWN]]
  // CHECK-DAG: %[[BEHIND:.*]] = arith.subi %c64_i32, %[[END]]
  // CHECK-DAG: %[[BYTES:.*]] = arith.muli %[[BEHIND]], %c128_i32
  // CHECK-DAG: %[[OFFSET:.*]] = arith.muli %[[END]], %c128_i32
  // CHECK-DAG: %[[PLACE:.*]] = arith.addi %[[SLOT]], %[[OFFSET]]
  // CHECK:   cp.async.bulk.shared::cluster.global{{.*}} %[[PLACE]], %[[ZEROS]], %[[BYTES]], %[[OWN]]
  // CHECK:   %[[NEXT:.*]] = arith.addi %[[PLACE]], %c8192_i32
  // CHECK:   cp.async.bulk.shared::cluster.global{{.*}} %[[NEXT]], %[[ZEROS]], %[[BYTES]], %[[OWN]]
  // CHECK-NOT: mbarrier.arrive
  // CHECK: }
  gpu.func @rows(%K: !kmap, %b: index, %n: index) kernel attributes {known_block_size = array<i32: 384, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %ks = tile.ring {tile.shared_offset = 0 : i64, tile.barrier_offset = 65536 : i64} : !ring
    %once = tile.ring {tile.shared_offset = 49152 : i64, tile.barrier_offset = 65592 : i64} : !plain
    tile.roles {
      tile.role "load" warps 4 registers 24 single {
        %slot = tile.acquire %once[%c0] : !plain
        tile.load_async %K[%b, %c0, %c0] dims [1, 2] into %slot signals %once[%c0] : !kmap, !plain
        scf.for %i = %c0 to %n step %c1 {
          %place = tile.acquire %ks[%i] : !ring
          %end = arith.subi %n, %i : index
          tile.load_async %K[%b, %i, %c0] dims [1, 2] rows(%b, %end) into %place signals %ks[%i] : !kmap, !ring
        }
      }
      tile.role "compute" warps 8 registers 240 {
        %x = tile.wait %once[%c0] : !plain
        scf.for %i = %c0 to %n step %c1 {
          %k = tile.wait %ks[%i] : !ring
          tile.release %ks[%i] : !ring
        }
        tile.release %once[%c0] : !plain
      }
    }
    gpu.return
  }
}

// -----

!m = memref<?x64xbf16, strided<[?, 1], offset: ?>>
!t = !tile.shared<32x64xbf16, swizzle = 128>

// Copies by threads leave out what is not within both bounds, by zeros.

// CHECK-LABEL: gpu.func @threads
// CHECK-SAME:    %[[N:[^:]*]]: index, %[[F:[^:]*]]: index)
// CHECK-DAG:   %[[LOW:.*]] = arith.maxsi %[[F]], %c0
// CHECK-DAG:   %[[FIRST_:.*]] = arith.minsi %[[LOW]], %c32
// CHECK-DAG:   %[[FIRST:.*]] = arith.index_cast %[[FIRST_]] : index to i32
// CHECK:       %[[BEFORE:.*]] = arith.cmpi slt, %[[ROW:.*]], %[[END:.*]] : i32
// CHECK:       %[[FROM:.*]] = arith.cmpi sge, %[[ROW]], %[[FIRST]] : i32
// CHECK:       %[[WITHIN:.*]] = arith.andi %[[BEFORE]], %[[FROM]]
// CHECK:       %[[BYTES:.*]] = arith.select %[[WITHIN]], %c16_i32, %c0_i32
// CHECK:       nvvm.cp.async.shared.global {{.*}} %[[BYTES]]
gpu.module @kernels {
  gpu.func @threads(%m: !m, %n: index, %f: index) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %t = tile.load %m[%c0, %c0] dims [0, 1] rows(%f, %n) {tile.shared_offset = 0 : i64} : !m -> !t
    gpu.return
  }
}
