// RUN: fovea-opt %s --convert-tile-to-nvvm --canonicalize --cse --split-input-file | FileCheck %s

!k = !tile.shared<64x128xbf16, swizzle = 128>
!ring = !tile.ring<3 x !k>
!runs = !tile.tensor_map<3 x !tile.shared<16x128xbf16, swizzle = 128>>

// The first thread of each of the role's four warps copies a run of 16 rows, as one
// box for each panel, and that of the first arrives at the slot's barrier for all
// bytes: runs are dealt to warps, then to their threads. The other warps arrive,
// too: none may still wait for the slot when it is full. A run of which no row is left is copied from before the tensor, and its place is
// not computed. Places are known before the threads wait for the slot. `whole_runs`
// needs no barrier of its own.
gpu.module @kernels {
  // CHECK-LABEL: gpu.func @boxes(
  // CHECK-SAME:    %[[K:[a-z0-9]*]]: !llvm.ptr {{[^,]*}}, {{.*}}>}, %[[TABLE:.*]]: memref<?xindex>, %[[B:.*]]: index, %[[N:.*]]: index)
  // CHECK:         %[[WARP:.*]] = arith.divui %{{.*}}, %c32_i32
  // CHECK:         %[[BASE:.*]] = llvm.ptrtoint
  // CHECK:         %[[FULL:.*]] = arith.addi %[[BASE]], %c65536_i32
  // CHECK:         %[[ISFIRST:.*]] = arith.cmpi eq, %[[THREAD:.*]], %c0_i32
  // CHECK-COUNT-6: mbarrier.init{{.*}}, %c4_i32
  // CHECK-NOT:     mbarrier.init
  // CHECK-NOT:     mbarrier.try_wait.parity
  // CHECK:         %[[LOW:.*]] = arith.maxsi %[[N]], %c0
  // CHECK:         %[[HIGH:.*]] = arith.minsi %[[LOW]], %c64
  // CHECK:         %[[END:.*]] = arith.index_cast %[[HIGH]]
  // CHECK:         %[[LANE:.*]] = arith.remui %[[THREAD]], %c32_i32
  // CHECK:         %[[DEALT:.*]] = arith.muli %[[LANE]], %c4_i32
  // CHECK:         %[[NUMBER0:.*]] = arith.addi %[[DEALT]], %[[WARP]]
  // CHECK:         %[[EXISTS:.*]] = arith.cmpi ult, %[[NUMBER0]], %c4_i32
  // CHECK:         %[[PLACE:.*]]:2 = scf.if %[[EXISTS]] -> (i32, i32) {
  // CHECK:           %[[ROW:.*]] = arith.muli %[[NUMBER0]], %c16_i32
  // CHECK:           %[[BEHIND:.*]] = arith.addi %[[ROW]], %c16_i32
  // CHECK-DAG:       %[[FROM:.*]] = arith.maxsi %[[ROW]], %c0_i32
  // CHECK-DAG:       %[[TO:.*]] = arith.minsi %[[BEHIND]], %[[END]]
  // CHECK:           %[[ISLEFT:.*]] = arith.cmpi slt, %[[FROM]], %[[TO]]
  // CHECK:           scf.if %[[ISLEFT]] -> (i32, i32) {
  // CHECK:             %[[INDEX:.*]] = arith.index_castui %[[ROW]]
  // CHECK:             %[[I:.*]] = arith.divui %[[INDEX]], %c16
  // CHECK:             memref.load %[[TABLE]][%[[I]]]
  // CHECK:           } else {
  // CHECK-NEXT:        scf.yield %c0_i32, %c-16_i32 : i32, i32
  // CHECK-NOT:     cp.async
  // CHECK:         mbarrier.try_wait.parity
  // CHECK-NEXT:    scf.if %[[EXISTS]] {
  // CHECK:           %[[OFFSET:.*]] = arith.muli %[[NUMBER0]], %c2048_i32
  // CHECK:           %[[TO0:.*]] = arith.addi %[[BASE]], %[[OFFSET]]
  // CHECK:           cp.async.bulk.tensor.3d{{.*}} %[[TO0]], %[[K]], %[[FULL]], %c0_i32, %[[PLACE]]#1, %[[PLACE]]#0
  // CHECK:           %[[TO1:.*]] = arith.addi %[[TO0]], %c8192_i32
  // CHECK:           cp.async.bulk.tensor.3d{{.*}} %[[TO1]], %[[K]], %[[FULL]], %c64_i32, %[[PLACE]]#1, %[[PLACE]]#0
  // CHECK:         }
  // CHECK-NEXT:    scf.if %[[ISFIRST]] {
  // CHECK-NEXT:      {{.*}}mbarrier.arrive.expect_tx.shared::cta.b64 $0, [$1], $2;{{.*}} %[[FULL]], %c16384_i32
  // CHECK-NEXT:    }
  // CHECK-NEXT:    nvvm.bar.warp.sync %c-1_i32
  // CHECK-NEXT:    %[[OWN:.*]] = arith.andi %[[THREAD]], %c31_i32
  // CHECK-NEXT:    {{.*}}@beside mbarrier.arrive.shared::cta.b64 _, [$0];{{.*}} %[[FULL]], %[[OWN]], %[[THREAD]]
  // CHECK-NEXT:  } else {
  gpu.func @boxes(%K: !runs, %table: memref<?xindex>, %b: index, %n: index) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %ks = tile.ring {tile.shared_offset = 0 : i64, tile.barrier_offset = 65536 : i64} : !ring
    tile.roles {
      tile.role "load" warps 4 {
        %slot = tile.acquire %ks[%c0] : !ring
        tile.load_async %K dims [1, 2] rows(%c0, %n) whole_runs runs 16 {
        ^bb0(%r: index):
          %i = arith.divui %r, %c16 : index
          %page = memref.load %table[%i] : memref<?xindex>
          tile.yield %page, %b : index, index
        } into %slot signals %ks[%c0] : !runs, !ring
      }
      tile.role "compute" warps 4 {
        %k = tile.wait %ks[%c0] : !ring
        tile.release %ks[%c0] : !ring
      }
    }
    gpu.return
  }
}

// -----

!k = !tile.shared<64x128xbf16, swizzle = 128, runs = 16>
!ring = !tile.ring<3 x !k>
!runs = !tile.tensor_map<4 x !tile.shared<16x128xbf16, swizzle = 128, runs = 16>>

// Of a tile in runs one instruction copies both panels of a run, which is 4096 bytes.
// Zeros of a run that is cut lie in its panels, 2048 bytes apart. A product's columns
// are two sets of groups of 8, whose runs are 4096 bytes apart: those of the first have
// every other group of the result's registers. Steps of its inner dimension are runs.
gpu.module @kernels {
  // CHECK-LABEL: gpu.func @panels(
  // CHECK-SAME:    %[[K:[a-z0-9]*]]: !llvm.ptr
  // CHECK:         %[[PLACE:.*]]:2 = scf.if %[[EXISTS:.*]] -> (i32, i32) {
  // CHECK:         scf.if %[[EXISTS]] {
  // CHECK:           %[[NTH:.*]] = arith.divui %{{.*}}, %c16_i32
  // CHECK:           %[[IN:.*]] = arith.remui %{{.*}}, %c16_i32
  // CHECK-DAG:       %[[RUNBYTES:.*]] = arith.muli %[[NTH]], %c4096_i32
  // CHECK-DAG:       %[[INBYTES:.*]] = arith.muli %[[IN]], %c128_i32
  // CHECK:           %[[OFFSET:.*]] = arith.addi %[[RUNBYTES]], %[[INBYTES]]
  // CHECK:           %[[TO:.*]] = arith.addi %{{.*}}, %[[OFFSET]]
  // CHECK-NEXT:      cp.async.bulk.tensor.4d{{.*}}{$3, $4, $5, $6}{{.*}} %[[TO]], %[[K]], %{{.*}}, %c0_i32, %[[PLACE]]#1, %[[PLACE]]#0, %c0_i32
  // CHECK-NOT:     cp.async.bulk.tensor
  // CHECK:         scf.for
  // CHECK:         scf.for %[[ROW:.*]] = %{{.*}} to %{{.*}} step %c128_i32
  // CHECK:           arith.divui %[[ROW]], %c16_i32
  // CHECK:           arith.muli %{{.*}}, %c4096_i32
  // CHECK:           llvm.getelementptr %{{.*}}[2048]
  // The descriptor has swizzle 1, a stride of 4096 bytes and a leading distance that is not read.
  // CHECK:         or.b64 b, b, 4611687117939081216;
  // CHECK-SAME:    add.s64 y, b, 0;
  // CHECK-SAME:    wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {$0, $1, $2, $3, $8, $9, $10, $11, $16, $17, $18, $19, $24, $25, $26, $27}
  // The second panel is 2048 bytes behind, 128 units.
  // CHECK-SAME:    add.s64 y, b, 128;
  // CHECK-SAME:    add.s64 y, b, 64;
  // CHECK-SAME:    wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {$4, $5, $6, $7, $12, $13, $14, $15, $20, $21, $22, $23, $28, $29, $30, $31}
  // Groups of 8 rows are 1024 bytes apart, panels 2048, steps of 16 rows 4096.
  // CHECK:         or.b64 b, b, 4611686293313683456;
  // CHECK-SAME:    add.s64 y, b, 256;
  // CHECK-SAME:    wgmma.mma_async.sync.aligned.m64n128k16
  gpu.func @panels(%K: !runs, %b: index, %n: index, %q: !tile.shared<64x128xbf16, swizzle = 128>, %p: !tile.shared<64x64xbf16, swizzle = 128>) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : index
    %ks = tile.ring {tile.shared_offset = 0 : i64, tile.barrier_offset = 65536 : i64} : !ring
    tile.roles {
      tile.role "load" warps 4 {
        %slot = tile.acquire %ks[%c0] : !ring
        tile.load_async %K dims [1, 2] rows(%c0, %n) runs 16 {
        ^bb0(%r: index):
          tile.yield %b, %r : index, index
        } into %slot signals %ks[%c0] : !runs, !ring
      }
      tile.role "compute" warps 4 {
        %k = tile.wait %ks[%c0] : !ring
        %s = tile.mma wgmma %q, %k transpose_b : !tile.shared<64x128xbf16, swizzle = 128>, !k -> !tile.fragment<64x64xf32, #tile.layout<64x64, registers = [2:1d1, 2:8d0, 8:8d1], threads = [4:2d1, 8:1d0, 4:16d0]>>
        %o = tile.mma wgmma %p, %k : !tile.shared<64x64xbf16, swizzle = 128>, !k -> !tile.fragment<64x128xf32, #tile.layout<64x128, registers = [2:1d1, 2:8d0, 16:8d1], threads = [4:2d1, 8:1d0, 4:16d0]>>
        tile.release %ks[%c0] : !ring
      }
    }
    gpu.return
  }
}

// -----

#layout = #tile.layout<64x128, registers = [2:1d1, 2:8d0, 16:8d1], threads = [4:2d1, 8:1d0, 4:16d0]>
!k = !tile.shared<64x128xbf16, swizzle = 128, runs = 32>

// Threads find the rows of a tile in runs, too: run after run of 8192 bytes, whose second
// panel is 4096 bytes behind the first.
gpu.module @kernels {
  // CHECK-LABEL: gpu.func @threads(
  // CHECK-SAME:    %[[BASE:[a-z0-9]*]]: i32
  // CHECK:         arith.remui %{{.*}}, %c4_i32
  // CHECK:         %[[RUN0:.*]] = arith.divui %[[ROW:.*]], %c32_i32
  // CHECK:         %[[BYTES0:.*]] = arith.muli %[[RUN0]], %c8192_i32
  // CHECK:         %[[START0:.*]] = arith.addi %{{.*}}, %[[BYTES0]]
  // CHECK:         %[[IN0:.*]] = arith.remui %[[ROW]], %c32_i32
  // CHECK:         %[[INBYTES0:.*]] = arith.muli %[[IN0]], %c128_i32
  // CHECK:         arith.addi %[[START0]], %[[INBYTES0]]
  // CHECK:         arith.muli %{{.*}}, %c4096_i32
  // The row 8 further on may be in another run.
  // CHECK:         %[[ROW8:.*]] = arith.addi %[[ROW]], %c8_i32
  // CHECK-NEXT:    arith.divui %[[ROW8]], %c32_i32
  gpu.func @threads(%k: !k, %column: index) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %f = tile.from_shared %k : !k -> !tile.fragment<64x128xbf16, #layout>
    %t = tile.to_shared %f {tile.shared_offset = 0 : i64} : !tile.fragment<64x128xbf16, #layout> -> !tile.shared<64x128xbf16>
    gpu.return
  }
}

// -----

!k = !tile.shared<64x128xbf16, swizzle = 128>
!ring = !tile.ring<3 x !k>
!runs = !tile.tensor_map<3 x !tile.shared<16x128xbf16, swizzle = 128>>

// Without it, a run that `rows` cuts completes at a barrier of its own, where the
// first thread waits; all threads of the role write the zeros, of this run only,
// and meet before the first one arrives at the slot's barrier.
gpu.module @kernels {
  // CHECK-LABEL: gpu.func @cut(
  // CHECK:         %[[FULL:.*]] = arith.addi %{{.*}}, %c65536_i32
  // CHECK:         %[[ISFIRST:.*]] = arith.cmpi eq, %[[THREAD:.*]], %c0_i32
  // CHECK-COUNT-6: mbarrier.init{{.*}}, %c4_i32
  // CHECK:         mbarrier.init{{.*}}, %c1_i32
  // CHECK-NOT:     mbarrier.init
  // CHECK:         %[[END:.*]] = arith.index_cast %{{.*}} : index to i32
  // CHECK:         %[[ISEMPTY:.*]] = arith.cmpi sle, %[[END]], %c0_i32
  // CHECK:         %[[ISPART:.*]] = arith.cmpi ne, %[[END]], %c64_i32
  // CHECK:         %[[ISSOME:.*]] = arith.select %[[ISEMPTY]], %false, %[[ISPART]]
  // CHECK:         %[[REST:.*]] = arith.remui %[[END]], %c16_i32
  // CHECK:         %[[ISWITHIN:.*]] = arith.cmpi ne, %[[REST]], %c0_i32
  // CHECK:         %[[ISCUT:.*]] = arith.andi %[[ISSOME]], %[[ISWITHIN]]
  // CHECK:         %[[OWN:.*]] = arith.addi %{{.*}}, %c65584_i32
  // CHECK:         %[[BARRIER:.*]] = arith.select %[[ISCUT]], %[[OWN]], %[[FULL]]
  // CHECK:         mbarrier.try_wait.parity
  // CHECK-COUNT-2: cp.async.bulk.tensor.3d{{.*}}, %[[BARRIER]],
  // CHECK:         scf.if %[[ISFIRST]] {
  // CHECK-NEXT:      %[[STATE:.*]] = {{.*}}mbarrier.arrive.expect_tx.shared::cta.b64 $0, [$1], $2;{{.*}} %[[BARRIER]], %c16384_i32
  // CHECK-NEXT:      scf.if %[[ISCUT]] {
  // CHECK-NEXT:        {{.*}}mbarrier.try_wait.shared::cta.b64 done, [$0], $1;{{.*}} %[[BARRIER]], %[[STATE]]
  // CHECK:         @beside mbarrier.arrive.shared::cta.b64 _, [$0];{{.*}} %[[FULL]],
  // CHECK-NEXT:    scf.if %[[ISCUT]] {
  // CHECK-NEXT:      nvvm.bar.warp.sync %c-1_i32
  // CHECK-NEXT:      nvvm.barrier id = %c1_i32 number_of_threads = %c128_i32
  // CHECK:           scf.for
  // CHECK:           %[[FIRST:.*]] = arith.addi %[[END]], %[[THREAD]]
  // CHECK:           scf.for %{{.*}} = %[[FIRST]] to %{{.*}} step %c128_i32
  // CHECK-COUNT-16:    llvm.store
  // CHECK:           fence.proxy.async.shared::cta;
  // CHECK-NEXT:      nvvm.bar.warp.sync %c-1_i32
  // CHECK-NEXT:      nvvm.barrier id = %c1_i32 number_of_threads = %c128_i32
  // CHECK-NEXT:      scf.if %[[ISFIRST]] {
  // CHECK-NEXT:        {{.*}}mbarrier.arrive.shared::cta.b64 _, [$0];{{.*}} %[[FULL]]
  gpu.func @cut(%K: !runs, %table: memref<?xindex>, %b: index, %n: index) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %ks = tile.ring {tile.shared_offset = 0 : i64, tile.barrier_offset = 65536 : i64} : !ring
    tile.roles {
      tile.role "load" warps 4 {
        %slot = tile.acquire %ks[%c0] : !ring
        tile.load_async %K dims [1, 2] rows(%c0, %n) runs 16 {
        ^bb0(%r: index):
          %i = arith.divui %r, %c16 : index
          %page = memref.load %table[%i] : memref<?xindex>
          tile.yield %page, %b : index, index
        } into %slot signals %ks[%c0] : !runs, !ring
      }
      tile.role "compute" warps 4 {
        %k = tile.wait %ks[%c0] : !ring
        tile.release %ks[%c0] : !ring
      }
    }
    gpu.return
  }
}

// -----

!k = !tile.shared<64x128xbf16, swizzle = 128>
!ring = !tile.ring<3 x !k>
!map = !tile.tensor_map<3 x !k>

// One thread of the role copies a whole tile, beside loads of runs by all: the
// other warps, which waited for the slot, too, arrive without a copy.
gpu.module @kernels {
  // CHECK-LABEL: gpu.func @whole(
  // CHECK:         %[[FULL:.*]] = arith.addi %{{.*}}, %c65536_i32
  // CHECK-COUNT-3: mbarrier.init{{.*}}, %c4_i32
  // CHECK-COUNT-3: mbarrier.init{{.*}}, %c1_i32
  // CHECK:         mbarrier.try_wait.parity
  // CHECK:         scf.if %{{.*}} {
  // CHECK:           mbarrier.arrive.expect_tx
  // CHECK-COUNT-2:   cp.async.bulk.tensor.3d
  // CHECK:         nvvm.bar.warp.sync %c-1_i32
  // CHECK:         {{.*}}@beside mbarrier.arrive.shared::cta.b64 _, [$0];{{.*}} %[[FULL]],
  // CHECK-NEXT:  } else {
  gpu.func @whole(%K: !map, %i: index) kernel attributes {known_block_size = array<i32: 160, 1, 1>} {
    %c0 = arith.constant 0 : index
    %ks = tile.ring {tile.shared_offset = 0 : i64, tile.barrier_offset = 65536 : i64} : !ring
    tile.roles {
      tile.role "load" warps 4 {
        %slot = tile.acquire %ks[%c0] : !ring
        tile.load_async %K[%i, %c0, %c0] dims [1, 2] into %slot signals %ks[%c0] : !map, !ring
      }
      tile.role "store" warps 1 single {
        %k = tile.wait %ks[%c0] : !ring
        tile.release %ks[%c0] : !ring
      }
    }
    gpu.return
  }
}

// -----

!k = !tile.shared<64x128xbf16, swizzle = 128>
!ring = !tile.ring<3 x !k>
!m = memref<?x4x128xbf16, strided<[?, ?, 1], offset: ?>>

// Rows that lie apart: all threads of the role copy units of 16 bytes, and each
// arrives when its own are complete. Each of the role's four warps copies 16 rows. A
// lane finds the place of one, of another row for one that is left out, then waits for
// the slot, and asks the lanes that know the rows of its units. Where
// rows are not aligned, threads copy elements. Products read the slot through
// another proxy: who waits for it fences.
gpu.module @kernels {
  // CHECK-LABEL: gpu.func @threads(
  // CHECK-SAME:    %{{.*}}, %[[TABLE:.*]]: memref<?xindex>, %{{.*}}: index, %{{.*}}: index)
  // CHECK:         %[[FULL:.*]] = arith.addi %{{.*}}, %c65536_i32
  // CHECK-COUNT-3: mbarrier.init{{.*}}, %c128_i32 :
  // CHECK-COUNT-3: mbarrier.init{{.*}}, %c4_i32 :
  // CHECK:         %[[END:.*]] = arith.index_cast %{{.*}} : index to i32
  // CHECK:         %[[ISEMPTY:.*]] = arith.cmpi sle, %[[END]], %c0_i32
  // CHECK:         %[[ISALIGNED:.*]] = arith.cmpi eq, %{{.*}}, %c0_i64
  // CHECK:         scf.if %[[ISALIGNED]] {
  // CHECK:           %[[LANE:.*]] = arith.remui %{{.*}}, %c32_i32
  // CHECK:           %[[FIRST:.*]] = arith.muli %{{.*}}, %c16_i32
  // CHECK:           %[[MEMBER:.*]] = arith.minsi %[[LANE]], %c15_i32
  // CHECK:           %[[ROW:.*]] = arith.addi %[[FIRST]], %[[MEMBER]]
  // CHECK:           %[[PLACE:.*]] = scf.if %[[ISEMPTY]] -> (i64) {
  // CHECK:           } else {
  // CHECK:             %[[LAST:.*]] = arith.subi %[[END]], %c1_i32
  // CHECK:             arith.minsi %{{.*}}, %[[LAST]]
  // CHECK:             memref.load %[[TABLE]]
  // CHECK-NOT:         memref.load
  // CHECK:           mbarrier.try_wait.parity
  // CHECK-NEXT:      %[[BY:.*]] = arith.divui %[[LANE]], %c16_i32
  // CHECK-NEXT:      %[[OWN:.*]] = arith.addi %[[FIRST]], %[[BY]]
  // CHECK-NEXT:      arith.remui %[[LANE]], %c16_i32
  // CHECK:           %[[WORDS:.*]] = llvm.bitcast %[[PLACE]] : i64 to vector<2xi32>
  // CHECK-COUNT-2:   nvvm.shfl.sync idx %c-1_i32, %{{.*}}, %[[BY]], %c31_i32
  // CHECK:           %[[THEIR:.*]] = llvm.bitcast %{{.*}} : vector<2xi32> to i64
  // CHECK:           %[[BELOW:.*]] = arith.cmpi slt, %[[OWN]], %[[END]]
  // CHECK:           %[[ISLEFT:.*]] = arith.andi %{{.*}}, %[[BELOW]]
  // CHECK:           %[[BYTES:.*]] = arith.select %[[ISLEFT]], %c16_i32, %c0_i32
  // CHECK:           arith.xori
  // CHECK:           %[[FROM:.*]] = arith.addi %[[THEIR]],
  // CHECK:           %[[SOURCE:.*]] = llvm.inttoptr %[[FROM]]
  // CHECK:           nvvm.cp.async.shared.global %{{.*}}, %[[SOURCE]], 16, cache = cg, %[[BYTES]]
  // CHECK:           %[[SECOND:.*]] = arith.addi %[[LANE]], %c32_i32
  // CHECK:           arith.divui %[[SECOND]], %c16_i32
  // CHECK-COUNT-7:   nvvm.cp.async.shared.global
  // CHECK-NOT:       nvvm.cp.async.shared.global
  // CHECK:           %[[POINTER:.*]] = llvm.inttoptr %[[FULL]]
  // CHECK-NEXT:      nvvm.cp.async.mbarrier.arrive %[[POINTER]] {noinc = true}
  // CHECK-NEXT:    } else {
  // CHECK:           mbarrier.try_wait.parity
  // CHECK:           scf.for
  // CHECK:             memref.load %[[TABLE]]
  // CHECK:             llvm.load
  // CHECK:             llvm.store
  // CHECK:           mbarrier.arrive.shared::cta.b64 _, [$0];{{.*}} %[[FULL]]
  // CHECK:         mbarrier.try_wait.parity{{.*}} %[[FULL]]
  // CHECK-NEXT:    {{.*}}fence.proxy.async.shared::cta;
  gpu.func @threads(%K: !m, %table: memref<?xindex>, %b: index, %n: index) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : index
    %ks = tile.ring {tile.shared_offset = 0 : i64, tile.barrier_offset = 65536 : i64} : !ring
    tile.roles {
      tile.role "load" warps 4 registers 40 {
        %slot = tile.acquire %ks[%c0] : !ring
        tile.load_async %K dims [1, 2] rows(%c0, %n) runs 1 {
        ^bb0(%r: index):
          %row = memref.load %table[%r] : memref<?xindex>
          tile.yield %row, %b : index, index
        } into %slot signals %ks[%c0] : !m, !ring
      }
      tile.role "compute" warps 4 registers 232 {
        %k = tile.wait %ks[%c0] : !ring
        tile.release %ks[%c0] : !ring
      }
    }
    gpu.return
  }
}

// -----

!k = !tile.shared<80x320xbf16>
!ring = !tile.ring<1 x !k>
!m = memref<?x320xbf16, strided<[?, 1], offset: ?>>

// 40 rows of a warp, of 40 units each: the lanes find the places of 32 and of 8. More
// than 16 units of a thread are a loop, whose end has units that do not exist.
gpu.module @kernels {
  // CHECK-LABEL: gpu.func @many(
  // CHECK:         %[[FIRST:.*]] = arith.muli %{{.*}}, %c40_i32
  // CHECK:         arith.addi %{{.*}}, %c32_i32
  // CHECK:         arith.minsi %{{.*}}, %c39_i32
  // CHECK-COUNT-2: memref.load
  // CHECK-NOT:     memref.load
  // CHECK:         mbarrier.try_wait.parity
  // CHECK:         scf.for %[[UNIT:.*]] = %c0_i32 to %c1280_i32 step %c512_i32
  // CHECK:           %[[NUMBER:.*]] = arith.addi %[[UNIT]], %{{.*}}
  // CHECK:           %[[ROW:.*]] = arith.divui %[[NUMBER]], %c40_i32
  // CHECK:           nvvm.shfl.sync {{.*}}, %[[ROW]],
  // CHECK:           %[[EXISTS:.*]] = arith.cmpi ult, %[[NUMBER]], %c1280_i32
  // CHECK:           scf.if %[[EXISTS]] {
  // CHECK:             nvvm.cp.async.shared.global
  // CHECK-COUNT-15:    nvvm.cp.async.shared.global
  // CHECK-NOT:         nvvm.cp.async.shared.global
  // CHECK:         %[[NEXT:.*]] = arith.addi %[[FIRST]], %c32_i32
  // CHECK-COUNT-10: nvvm.cp.async.shared.global
  // CHECK-NOT:     nvvm.cp.async.shared.global
  // CHECK:         nvvm.cp.async.mbarrier.arrive
  gpu.func @many(%K: !m, %table: memref<?xindex>) kernel attributes {known_block_size = array<i32: 192, 1, 1>} {
    %c0 = arith.constant 0 : index
    %ks = tile.ring {tile.shared_offset = 0 : i64, tile.barrier_offset = 65536 : i64} : !ring
    tile.roles {
      tile.role "load" warps 2 {
        %slot = tile.acquire %ks[%c0] : !ring
        tile.load_async %K dims [0, 1] runs 1 {
        ^bb0(%r: index):
          %row = memref.load %table[%r] : memref<?xindex>
          tile.yield %row : index
        } into %slot signals %ks[%c0] : !m, !ring
      }
      tile.role "compute" warps 4 {
        %k = tile.wait %ks[%c0] : !ring
        tile.release %ks[%c0] : !ring
      }
    }
    gpu.return
  }
}

// -----

!k = !tile.shared<64x128xbf16, swizzle = 128>
!ring = !tile.ring<3 x !k>
!m = memref<?x128xbf16, strided<[?, 1], offset: ?>>

// A warp that has fewer rows than the others. What stands between an acquire and
// the load may need the slot: the acquire waits by itself.
gpu.module @kernels {
  // CHECK-LABEL: gpu.func @few(
  // CHECK:         mbarrier.try_wait.parity
  // CHECK:         memref.load
  // CHECK-NOT:     mbarrier.try_wait.parity
  // CHECK:         %[[LANE:.*]] = arith.remui %{{.*}}, %c32_i32
  // CHECK:         %[[FIRST:.*]] = arith.muli %{{.*}}, %c22_i32
  // CHECK:         %[[MEMBER:.*]] = arith.minsi %[[LANE]], %c21_i32
  // CHECK:         %[[ROW:.*]] = arith.addi %[[FIRST]], %[[MEMBER]]
  // CHECK:         arith.minsi %[[ROW]], %c63_i32
  // CHECK:         memref.load
  // CHECK-NOT:     memref.load
  // CHECK:         %[[OWN:.*]] = arith.addi %[[FIRST]], %{{.*}}
  // CHECK:         %[[EXISTS:.*]] = arith.cmpi ult, %[[OWN]], %c64_i32
  // CHECK:         scf.if %[[EXISTS]] {
  // CHECK:           nvvm.cp.async.shared.global
  gpu.func @few(%K: !m, %table: memref<?xindex>) kernel attributes {known_block_size = array<i32: 224, 1, 1>} {
    %c0 = arith.constant 0 : index
    %ks = tile.ring {tile.shared_offset = 0 : i64, tile.barrier_offset = 65536 : i64} : !ring
    tile.roles {
      tile.role "load" warps 3 {
        %slot = tile.acquire %ks[%c0] : !ring
        %base = memref.load %table[%c0] : memref<?xindex>
        tile.load_async %K dims [0, 1] runs 1 {
        ^bb0(%r: index):
          %row = memref.load %table[%r] : memref<?xindex>
          %place = arith.addi %base, %row : index
          tile.yield %place : index
        } into %slot signals %ks[%c0] : !m, !ring
      }
      tile.role "compute" warps 4 {
        %k = tile.wait %ks[%c0] : !ring
        tile.release %ks[%c0] : !ring
      }
    }
    gpu.return
  }
}
