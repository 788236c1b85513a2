// RUN: fovea-opt %s --convert-tile-to-nvvm --canonicalize --cse --split-input-file | FileCheck %s

#acc = #tile.layout<128x64, registers = [2:1d1, 2:8d0, 8:8d1], threads = [4:2d1, 8:1d0, 8:16d0]>
#out = #tile.layout<128x128, registers = [2:1d1, 2:8d0, 16:8d1], threads = [4:2d1, 8:1d0, 8:16d0]>
!q = !tile.shared<128x128xbf16, swizzle = 128>
!k = !tile.shared<64x128xbf16, swizzle = 128>
!one = !tile.ring<1 x !q>
!ring = !tile.ring<3 x !k>
!qmap = !tile.tensor_map<3 x !q>
!kmap = !tile.tensor_map<3 x !k>
!s = !tile.fragment<128x64xf32, #acc>
!p = !tile.fragment<128x64xbf16, #acc>
!o = !tile.fragment<128x128xf32, #out>

gpu.module @kernels {
  // CHECK-LABEL: gpu.func @roles(
  // CHECK-SAME: %[[Q:.*]]: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>}, %[[K:[a-z0-9]*]]: !llvm.ptr {{.*}}, %[[B:.*]]: index, %[[N:.*]]: index)
  // CHECK-SAME: nvvm.minctasm = 1 : i32
  // CHECK: %[[WARP:.*]] = nvvm.shfl.sync  idx
  // CHECK: %[[BASE:.*]] = llvm.ptrtoint

  // One thread makes the barriers: full by one arrival, empty by one of each of
  // the 8 warps that release. One fence and one barrier follow.
  // CHECK: %[[QFULL:.*]] = arith.addi %[[BASE]], %c81920_i32
  // CHECK: scf.if
  // CHECK: "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}" %[[QFULL]], %c1_i32
  // CHECK: mbarrier.init{{.*}}, %c8_i32
  // CHECK-NOT: fence
  // CHECK: %[[KSLOTS:.*]] = arith.addi %[[BASE]], %c32768_i32
  // CHECK: %[[KFULL:.*]] = arith.addi %[[BASE]], %c81936_i32
  // CHECK: scf.if
  // CHECK-COUNT-3: mbarrier.init{{.*}}, %c1_i32 :
  // CHECK-COUNT-3: mbarrier.init{{.*}}, %c8_i32 :
  // CHECK: fence.mbarrier_init.release.cluster;
  // CHECK: nvvm.barrier

  // CHECK: %[[LOADS:.*]] = arith.cmpi ult, %[[WARP]], %c4_i32
  // CHECK: scf.if %[[LOADS]]
  // CHECK-NEXT: nvvm.setmaxregister decrease 24{{$}}
  // CHECK: scf.if
  // The slot is free at first: the phase before the first is complete.
  // CHECK: mbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1;{{.*}} %{{.*}}, %c1_i32
  // CHECK: mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;{{.*}} %[[QFULL]], %c32768_i32
  // The innermost coordinate comes first; panels of 64 columns.
  // CHECK: cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1, {$3, $4, $5}], [$2];{{.*}} %[[BASE]], %[[Q]], %[[QFULL]], %c0_i32, %c0_i32, %[[HEAD:.*]] :
  // CHECK: %[[PANEL:.*]] = arith.addi %[[BASE]], %c16384_i32
  // CHECK: cp.async.bulk.tensor.3d{{.*}} %[[PANEL]], %[[Q]], %[[QFULL]], %c64_i32, %c0_i32, %[[HEAD]] :
  // CHECK: scf.for %[[I:.*]] =
  // CHECK: %[[USE:.*]] = arith.index_cast %[[I]]
  // CHECK: %[[SLOT:.*]] = arith.remui %[[USE]], %c3_i32
  // CHECK: %[[ROUND:.*]] = arith.divui %[[USE]], %c3_i32
  // CHECK: arith.muli %[[SLOT]], %c16384_i32
  // CHECK: %[[PARITY:.*]] = arith.andi %[[ROUND]], %c1_i32
  // CHECK: %[[BEFORE:.*]] = arith.xori %[[PARITY]], %c1_i32
  // CHECK: mbarrier.try_wait{{.*}}, %[[BEFORE]] :

  // CHECK: } else {
  // CHECK-NEXT: nvvm.setmaxregister increase 240{{$}}
  // CHECK: mbarrier.try_wait{{.*}} %[[QFULL]], %c0_i32
  // CHECK: scf.for
  // CHECK: mbarrier.try_wait
  // Warp groups are counted from the role's first warp and own 64 rows of 128
  // bytes.
  // CHECK: %[[FIRST:.*]] = arith.subi %[[WARP]], %c4_i32
  // CHECK: %[[GROUP:.*]] = arith.shrui %[[FIRST]], %c2_i32
  // CHECK: %[[ROWS:.*]] = arith.muli %[[GROUP]], %c8192_i32
  // CHECK: %[[BYTES:.*]] = arith.addi %[[BASE]], %[[ROWS]]
  // CHECK: %[[A:.*]] = arith.shrui %[[BYTES]], %c4_i32
  // CHECK: wgmma.fence.sync.aligned;{{.*}}setp.ne.b32 add, 0, 0;{{.*}}wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {$0, {{.*}}$31}, x, y, add, 1, 1, 0, 0;{{.*}}setp.ne.b32 add, 1, 0;{{.*}}wgmma.commit_group.sync.aligned;{{.*}}=f,r,r,~{memory}" %{{.*}}, %[[A]] :
  // CHECK: wgmma.wait_group.sync.aligned 0;{{.*}}=f,0,1,2
  // CHECK: setp.eq.u32 first, $1, 0;{{.*}}@first mbarrier.arrive.shared::cta.b64 _, [$0];
  gpu.func @roles(%Q: !qmap, %K: !kmap, %b: index, %n: index) kernel attributes {known_block_size = array<i32: 384, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %qs = tile.ring {tile.shared_offset = 0 : i64, tile.barrier_offset = 81920 : i64} : !one
    %ks = tile.ring {tile.shared_offset = 32768 : i64, tile.barrier_offset = 81936 : i64} : !ring
    tile.roles {
      tile.role "load" warps 4 registers 24 single {
        %qSlot = tile.acquire %qs[%c0] : !one
        tile.load_async %Q[%b, %c0, %c0] dims [1, 2] into %qSlot signals %qs[%c0] : !qmap, !one
        scf.for %i = %c0 to %n step %c1 {
          %slot = tile.acquire %ks[%i] : !ring
          tile.load_async %K[%b, %i, %c0] dims [1, 2] into %slot signals %ks[%i] : !kmap, !ring
        }
      }
      tile.role "compute" warps 8 registers 240 {
        %q = tile.wait %qs[%c0] : !one
        scf.for %i = %c0 to %n step %c1 {
          %k = tile.wait %ks[%i] : !ring
          %t = tile.mma_async wgmma %q, %k transpose_b : !q, !k -> !tile.token<!s>
          %s = tile.wait_mma %t : !tile.token<!s>
          tile.release %ks[%i] : !ring
        }
        tile.release %qs[%c0] : !one
      }
    }
    gpu.return
  }
}

// -----

#acc = #tile.layout<64x64, registers = [2:1d1, 2:8d0, 8:8d1], threads = [4:2d1, 8:1d0, 4:16d0]>
#two = #tile.layout<128x64, registers = [2:1d1, 2:8d0, 8:8d1, 2:64d0], threads = [4:2d1, 8:1d0, 4:16d0]>
!v = !tile.shared<64x64xf16, swizzle = 128>
!narrow = !tile.shared<64x64xf16, swizzle = 32>
!q = !tile.shared<128x64xf16, swizzle = 128>
!p = !tile.fragment<64x64xf16, #acc>
!o = !tile.fragment<64x64xf32, #acc>
!token = !tile.token<!o>
!ring = !tile.ring<1 x !v>
!rest = !tile.ring<1 x !narrow>
!queries = !tile.ring<1 x !q>

gpu.module @kernels {
  // The left operand in registers, pairs rounded by one instruction and carried
  // as such; the right one by its rows. The accumulator is read and written.
  // CHECK-LABEL: gpu.func @registers
  // CHECK: arith.truncf %{{.*}} : vector<2xf32> to vector<2xf16>
  // CHECK: scf.for {{.*}}f32, vector<2xf16>, {{.*}}vector<2xf16>)
  // CHECK: wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {$0, {{.*}}$31}, {$65, $66, $67, $68}, y, add, 1, 1, 1;
  // The next 16 rows are 2048 bytes further.
  // CHECK-SAME: add.s64 y, b, 128;
  // CHECK-SAME: =f,0,1,2,{{.*}},31,r,r,
  // CHECK: wgmma.wait_group.sync.aligned 0;
  // CHECK: %[[PAIR:.*]] = vector.from_elements %{{.*}}, %{{.*}} : vector<2xf32>
  // CHECK: arith.truncf %[[PAIR]] : vector<2xf32> to vector<2xf16>
  // CHECK: scf.yield
  gpu.func @registers(%x: f32, %n: index) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %vs = tile.ring {tile.shared_offset = 0 : i64, tile.barrier_offset = 8192 : i64} : !ring
    %acc0 = tile.fill %x : !o
    %p0 = tile.map ins(%acc0 : !o) {
    ^bb0(%y: f32, %i: index, %j: index):
      %z = arith.truncf %y : f32 to f16
      tile.yield %z : f16
    } -> !p
    %v = tile.wait %vs[%c0] : !ring
    %end:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %acc0, %p = %p0) -> (!o, !p) {
      %t = tile.mma_async wgmma %p, %v into %acc : !p, !v, !o -> !token
      %s = tile.wait_mma %t : !token
      %next = tile.map ins(%s : !o) {
      ^bb0(%y: f32, %row: index, %column: index):
        %z = arith.truncf %y : f32 to f16
        tile.yield %z : f16
      } -> !p
      scf.yield %s, %next : !o, !p
    }
    tile.release %vs[%c0] : !ring
    gpu.return
  }

  // Branches yield pairs as such, too.
  // CHECK-LABEL: gpu.func @branches
  // CHECK: scf.if %{{.*}} -> ({{.*}}vector<2xf16>, {{.*}}vector<2xf16>) {
  // CHECK:   arith.truncf %{{.*}} : vector<2xf32> to vector<2xf16>
  // CHECK: } else {
  // CHECK:   arith.truncf %{{.*}} : vector<2xf32> to vector<2xf16>
  // CHECK: }
  // CHECK-NOT: vector.from_elements
  // CHECK: wgmma.mma_async
  gpu.func @branches(%x: f32, %c: i1) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %vs = tile.ring {tile.shared_offset = 0 : i64, tile.barrier_offset = 8192 : i64} : !ring
    %acc = tile.fill %x : !o
    %v = tile.wait %vs[%c0] : !ring
    %p = scf.if %c -> (!p) {
      %p0 = tile.map ins(%acc : !o) {
      ^bb0(%y: f32, %i: index, %j: index):
        %z = arith.truncf %y : f32 to f16
        tile.yield %z : f16
      } -> !p
      scf.yield %p0 : !p
    } else {
      %p1 = tile.map ins(%acc : !o) {
      ^bb0(%y: f32, %i: index, %j: index):
        %n = arith.negf %y : f32
        %z = arith.truncf %n : f32 to f16
        tile.yield %z : f16
      } -> !p
      scf.yield %p1 : !p
    }
    %t = tile.mma_async wgmma %p, %v into %acc : !p, !v, !o -> !token
    %s = tile.wait_mma %t : !token
    tile.release %vs[%c0] : !ring
    gpu.return
  }

  // What the program rounds before a branch is rounded there, where LLVM leaves
  // it, and once, also if two branches give it.
  // CHECK-LABEL: gpu.func @early
  // CHECK-COUNT-16: llvm.inline_asm has_side_effects {{.*}}"cvt.rn.f16x2.f32 $0, $1, $2;", "=r,f,f
  // CHECK-NOT: cvt.rn
  // CHECK:     scf.if
  // CHECK:       arith.truncf %{{.*}} : vector<2xf32> to vector<2xf16>
  // CHECK:     } else {
  // CHECK-NOT:   cvt.rn
  // CHECK-NOT:   arith.truncf
  // CHECK:     wgmma.mma_async
  gpu.func @early(%x: f32, %c: i1, %d: i1) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %vs = tile.ring {tile.shared_offset = 0 : i64, tile.barrier_offset = 8192 : i64} : !ring
    %acc = tile.fill %x : !o
    %v = tile.wait %vs[%c0] : !ring
    %p0 = tile.map ins(%acc : !o) {
    ^bb0(%y: f32, %i: index, %j: index):
      %z = arith.truncf %y : f32 to f16
      tile.yield %z : f16
    } -> !p
    %p = scf.if %c -> (!p) {
      %inner = scf.if %d -> (!p) {
        %p1 = tile.map ins(%acc : !o) {
        ^bb0(%y: f32, %i: index, %j: index):
          %n = arith.negf %y : f32
          %z = arith.truncf %n : f32 to f16
          tile.yield %z : f16
        } -> !p
        scf.yield %p1 : !p
      } else {
        scf.yield %p0 : !p
      }
      scf.yield %inner : !p
    } else {
      scf.yield %p0 : !p
    }
    %t = tile.mma_async wgmma %p, %v into %acc : !p, !v, !o -> !token
    %s = tile.wait_mma %t : !token
    tile.release %vs[%c0] : !ring
    gpu.return
  }

  // Pairs that a loop carries leave the branch around it as such.
  // CHECK-LABEL: gpu.func @nested
  // CHECK: %[[P:.*]]:{{.*}} = scf.if %{{.*}} -> ({{.*}}vector<2xf16>, {{.*}}vector<2xf16>) {
  // CHECK:   scf.for {{.*}}vector<2xf16>, {{.*}}vector<2xf16>)
  // CHECK:     wgmma.mma_async
  // CHECK: } else {
  // CHECK-NOT: vector.from_elements %[[P]]
  // CHECK: wgmma.mma_async
  gpu.func @nested(%x: f32, %c: i1, %n: index) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f16
    %vs = tile.ring {tile.shared_offset = 0 : i64, tile.barrier_offset = 8192 : i64} : !ring
    %acc = tile.fill %x : !o
    %v = tile.wait %vs[%c0] : !ring
    %none = tile.fill %zero : !p
    %p = scf.if %c -> (!p) {
      %end:2 = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %acc, %q = %none) -> (!o, !p) {
        %t = tile.mma_async wgmma %q, %v into %sum : !p, !v, !o -> !token
        %s = tile.wait_mma %t : !token
        %next = tile.map ins(%s : !o) {
        ^bb0(%y: f32, %row: index, %column: index):
          %z = arith.truncf %y : f32 to f16
          tile.yield %z : f16
        } -> !p
        scf.yield %s, %next : !o, !p
      }
      scf.yield %end#1 : !p
    } else {
      scf.yield %none : !p
    }
    %t = tile.mma_async wgmma %p, %v into %acc : !p, !v, !o -> !token
    %s = tile.wait_mma %t : !token
    tile.release %vs[%c0] : !ring
    gpu.return
  }

  // Two sequences for 128 rows of one warp group, in one group of instructions;
  // a swizzle of 32 bytes has 16 columns a panel, here 2048 bytes apart. What is
  // no product reads the slot, so the warp's lanes wait for each other.
  // CHECK-LABEL: gpu.func @rows
  // CHECK: wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {$0,
  // CHECK-SAME: add.s64 y, b, 128;
  // CHECK-SAME: add.s64 x, a, 512;
  // CHECK-SAME: m64n64k16.f32.f16.f16 {$32, {{.*}}$63}, x, y, add, 1, 1, 0, 0;
  // CHECK: wgmma.wait_group.sync.aligned 0;
  gpu.func @rows() kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %qs = tile.ring {tile.shared_offset = 0 : i64, tile.barrier_offset = 65536 : i64} : !queries
    %ks = tile.ring {tile.shared_offset = 16384 : i64, tile.barrier_offset = 65552 : i64} : !rest
    %q = tile.wait %qs[%c0] : !queries
    %k = tile.wait %ks[%c0] : !rest
    %s = tile.mma wgmma %q, %k transpose_b : !q, !narrow -> !tile.fragment<128x64xf32, #two>
    tile.release %qs[%c0] : !queries
    tile.release %ks[%c0] : !rest
    gpu.return
  }
}

// -----

// A map on the host: sizes, strides in bytes and the box from the innermost
// dimension on. The kernel gets the descriptor's address.
// CHECK-LABEL: func @host(
// CHECK-SAME: %[[T:.*]]: memref
// CHECK: %[[MAP:.*]] = llvm.alloca %{{.*}} x !llvm.array<128 x i8> {alignment = 64 : i64}
// CHECK: memref.extract_strided_metadata %[[T]]
// CHECK: llvm.inttoptr
// CHECK: call @fovea_gpu_tensor_map(%[[MAP]], %{{.*}}, %c1_i64, %c3_i64, %{{.*}}, %{{.*}}, %{{.*}}, %c128_i64)
// CHECK: gpu.launch_func @kernels::@copy {{.*}} args(%[[MAP]] : !llvm.ptr)
// CHECK: gpu.func @copy(%{{.*}}: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>})
!tile = !tile.shared<64x64xbf16, swizzle = 128>
!map = !tile.tensor_map<3 x !tile>
module attributes {gpu.container_module} {
  func.func @host(%t: memref<?x?x64xbf16, strided<[?, ?, 1], offset: ?>>) {
    %c1 = arith.constant 1 : index
    %c128 = arith.constant 128 : index
    %map = tile.tensor_map %t dims [0, 2] : memref<?x?x64xbf16, strided<[?, ?, 1], offset: ?>> -> !map
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c128, %c1, %c1) args(%map : !map)
    return
  }
  gpu.module @kernels {
    gpu.func @copy(%map: !map) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      gpu.return
    }
  }
}

// -----

// A map of runs has a dimension from panel to panel, of the three that the memref has,
// and the box's two.
// CHECK-LABEL: func @runs(
// CHECK-SAME: %[[T:.*]]: memref
// CHECK: %{{.*}}, %{{.*}}, %[[S:.*]]:3, %[[STRIDES:.*]]:3 = memref.extract_strided_metadata %[[T]]
// CHECK: %[[S1:.*]] = arith.index_cast %[[S]]#1
// CHECK: llvm.inttoptr
// CHECK: llvm.store %c64_i64
// CHECK: llvm.store %[[S1]]
// CHECK: llvm.store %{{.*}}
// CHECK: llvm.store %c3_i64
// CHECK: llvm.store %{{.*}}
// CHECK: llvm.store %{{.*}}
// CHECK: llvm.store %c128_i64
// CHECK: llvm.store %c64_i64
// CHECK: llvm.store %c16_i64
// CHECK: llvm.store %c1_i64
// CHECK: llvm.store %c2_i64
// CHECK: call @fovea_gpu_tensor_map(%{{.*}}, %{{.*}}, %c1_i64, %c4_i64,
!tile = !tile.shared<16x128xbf16, swizzle = 128, runs = 16>
!map = !tile.tensor_map<4 x !tile>
module attributes {gpu.container_module} {
  func.func @runs(%t: memref<?x?x192xbf16, strided<[?, ?, 1], offset: ?>>) {
    %c1 = arith.constant 1 : index
    %c128 = arith.constant 128 : index
    %map = tile.tensor_map %t dims [1, 2] : memref<?x?x192xbf16, strided<[?, ?, 1], offset: ?>> -> !map
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c128, %c1, %c1) args(%map : !map)
    return
  }
  gpu.module @kernels {
    gpu.func @copy(%map: !map) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      gpu.return
    }
  }
}

// -----

// A clipped map has 64 rows more, in front of the memref, and a dimension of 64 beside
// them, by the same stride, which has the box's rows.
// CHECK-LABEL: func @clipped(
// CHECK-SAME: %[[T:.*]]: memref
// CHECK-DAG: %[[SIZES:.*]] = llvm.alloca %{{.*}} x i64
// CHECK: %{{.*}}, %[[OFFSET:.*]], %[[S:.*]]:3, %[[STRIDES:.*]]:3 = memref.extract_strided_metadata %[[T]]
// CHECK: %[[BASE:.*]] = arith.addi
// CHECK: %[[STRIDE:.*]] = arith.index_cast %[[STRIDES]]#1
// CHECK: %[[BYTES:.*]] = arith.muli %[[STRIDE]], %c2_i64
// CHECK: %[[BACK:.*]] = arith.muli %[[STRIDE]], %c128_i64
// CHECK: %[[FIRST:.*]] = arith.subi %[[BASE]], %[[BACK]]
// CHECK: %[[ROWS:.*]] = arith.addi %{{.*}}, %c64_i64
// CHECK: %[[POINTER:.*]] = llvm.inttoptr %[[FIRST]]
// CHECK: llvm.store %c64_i64
// CHECK: llvm.store %c64_i64
// CHECK: llvm.store %[[ROWS]]
// CHECK: llvm.store %[[BYTES]]
// CHECK: llvm.store %[[BYTES]]
// CHECK: llvm.store %c64_i64
// CHECK: llvm.store %c64_i64
// CHECK: llvm.store %c1_i64
// CHECK: llvm.store %c1_i64
// CHECK: call @fovea_gpu_tensor_map(%{{.*}}, %[[POINTER]], %c1_i64, %c4_i64,
!tile = !tile.shared<64x64xbf16, swizzle = 128>
!map = !tile.tensor_map<4 x !tile>
module attributes {gpu.container_module} {
  func.func @clipped(%t: memref<?x?x64xbf16, strided<[?, ?, 1], offset: ?>>) {
    %c1 = arith.constant 1 : index
    %c128 = arith.constant 128 : index
    %map = tile.tensor_map clipped %t dims [1, 2] : memref<?x?x64xbf16, strided<[?, ?, 1], offset: ?>> -> !map
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c128, %c1, %c1) args(%map : !map)
    return
  }
  gpu.module @kernels {
    gpu.func @copy(%map: !map) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      gpu.return
    }
  }
}

// -----

// A number is taken by an atomic addition, published with others by stores and an arrival
// at the slot's full barrier, which expects one, and read by a role's thread, and by the
// thread of each warp that will arrive, for all of the warp, if it is needed.
// CHECK-LABEL: gpu.module @dealer
// CHECK: mbarrier.init{{.*}} [$0], $1;{{.*}}%c1_i32
// CHECK: llvm.atomicrmw add %{{.*}}, %{{.*}} syncscope("device") monotonic : !llvm.ptr<1>, i32
// CHECK: st.shared.b32 [$0 + 0], $1;
// CHECK: st.shared.b64 [$0 + 8], $1;
// CHECK: mbarrier.arrive.shared::cta.b64 _, [$0];
// CHECK: mbarrier.try_wait
// CHECK: ld.shared.b32 $0, [$1 + 0];", {{.*}} -> i32
// CHECK: ld.shared.b64 $0, [$1 + 8];", {{.*}} -> i64
// CHECK: mbarrier.arrive.shared::cta.b64 _, [$0];
// CHECK: mbarrier.try_wait
// CHECK: %[[LANE:.*]] = llvm.inline_asm {{.*}}setp.eq.u32 first, $2, 0;{{.*}}@first ld.shared.b32 number, [$1 + 0];
// CHECK: nvvm.shfl.sync {{ *}}idx %{{.*}}, %[[LANE]], %c0_i32, %c31_i32
// CHECK-NOT: ld.shared
// CHECK: @first mbarrier.arrive.shared::cta.b64 _, [$0];
!slot = !tile.shared<1x4xi32>
!ring = !tile.ring<1 x !slot>
gpu.module @dealer {
  gpu.func @deal(%p: memref<1xi32, strided<[1], offset: ?>>) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : index
    %r = tile.ring {tile.shared_offset = 0 : i64, tile.barrier_offset = 1024 : i64} : !ring
    tile.roles {
      tile.role "deal" warps 3 single {
        %s = tile.acquire %r[%c0] : !ring
        %n = tile.claim %p : memref<1xi32, strided<[1], offset: ?>>
        %i = arith.index_cast %n : index to i32
        %j = arith.index_cast %n : index to i64
        tile.publish %i, %j into %s signals %r[%c0] : !ring, i32, i64
      }
      tile.role "store" warps 1 single {
        %t = tile.wait %r[%c0] : !ring
        %n, %m = tile.read_numbers %t : !slot -> i32, i64
        tile.release %r[%c0] : !ring
        %k = arith.trunci %m : i64 to i32
        %i = arith.addi %n, %k : i32
        memref.store %i, %p[%c0] : memref<1xi32, strided<[1], offset: ?>>
      }
      tile.role "compute" warps 4 {
        %t = tile.wait %r[%c0] : !ring
        %n, %m = tile.read_numbers %t : !slot -> i32, i64
        tile.release %r[%c0] : !ring
        memref.store %n, %p[%c0] : memref<1xi32, strided<[1], offset: ?>>
      }
    }
    gpu.return
  }
}

// -----

// Booleans are copied as bytes, and other integers as what they are.
// CHECK-LABEL: func @integers(
// CHECK: call @fovea_gpu_tensor_map(%{{.*}}, %{{.*}}, %c5_i64, %c2_i64, %{{.*}}, %{{.*}}, %{{.*}}, %c64_i64)
// CHECK: call @fovea_gpu_tensor_map(%{{.*}}, %{{.*}}, %c6_i64, %c2_i64, %{{.*}}, %{{.*}}, %{{.*}}, %c128_i64)
// CHECK: call @fovea_gpu_tensor_map(%{{.*}}, %{{.*}}, %c7_i64, %c2_i64, %{{.*}}, %{{.*}}, %{{.*}}, %c128_i64)
!one = !tile.tensor_map<2 x !tile.shared<64x64xi1, swizzle = 64>>
!two = !tile.tensor_map<2 x !tile.shared<64x64xi16, swizzle = 128>>
!four = !tile.tensor_map<2 x !tile.shared<64x64xi32, swizzle = 128>>
module attributes {gpu.container_module} {
  func.func @integers(%a: memref<?x?xi1, strided<[?, 1], offset: ?>>, %b: memref<?x?xi16, strided<[?, 1], offset: ?>>, %c: memref<?x?xi32, strided<[?, 1], offset: ?>>) {
    %c1 = arith.constant 1 : index
    %c128 = arith.constant 128 : index
    %one = tile.tensor_map %a dims [0, 1] : memref<?x?xi1, strided<[?, 1], offset: ?>> -> !one
    %two = tile.tensor_map %b dims [0, 1] : memref<?x?xi16, strided<[?, 1], offset: ?>> -> !two
    %four = tile.tensor_map %c dims [0, 1] : memref<?x?xi32, strided<[?, 1], offset: ?>> -> !four
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c128, %c1, %c1) args(%one : !one, %two : !two, %four : !four)
    return
  }
  gpu.module @kernels {
    gpu.func @copy(%one: !one, %two: !two, %four: !four) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      gpu.return
    }
  }
}

// -----

// A ring of which no slot is taken, since a mask keeps no key, lends its memory.
#acc = #tile.layout<64x64, registers = [2:1d1, 2:8d0, 8:8d1], threads = [4:2d1, 8:1d0, 4:16d0]>
!tile = !tile.shared<64x64xbf16, swizzle = 128>
!ring = !tile.ring<1 x !tile>
gpu.module @kernels {
  // CHECK-LABEL: gpu.func @lends(
  // CHECK-COUNT-2: mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}" %{{.*}}, %c1_i32
  // CHECK:       nvvm.stmatrix
  gpu.func @lends(%x: bf16, %out: !tile.tensor_map<2 x !tile>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %ring = tile.ring {tile.shared_offset = 0 : i64, tile.barrier_offset = 16384 : i64} : !ring
    %v = tile.fill %x : !tile.fragment<64x64xbf16, #acc>
    %t = tile.to_shared %v reuses %ring : !tile.fragment<64x64xbf16, #acc>, !ring -> !tile
    tile.store_async %t, %out[%c0, %c0] dims [0, 1] : !tile, !tile.tensor_map<2 x !tile>
    tile.wait_stores
    gpu.return
  }
}

// -----

// A result goes to the slots of a ring, four matrices at a time, and by one
// thread on to global memory, a panel at a time. A lane has the address of a row of
// a matrix: of both halves of a warp's rows, and of two groups of columns.
#acc = #tile.layout<64x128, registers = [2:1d1, 2:8d0, 16:8d1], threads = [4:2d1, 8:1d0, 4:16d0]>
!tile = !tile.shared<64x128xbf16, swizzle = 128>
!ring = !tile.ring<1 x !tile>
!map = !tile.tensor_map<3 x !tile>
gpu.module @kernels {
  // CHECK-LABEL: gpu.func @stores(
  // CHECK-SAME:  %[[MAP:[^:]*]]: !llvm.ptr
  // CHECK:       %[[BASE:.*]] = llvm.ptrtoint
  // CHECK:       nvvm.barrier
  // CHECK:       %[[INMATRIX:.*]] = arith.andi %{{.*}}, %c7_i32
  // CHECK:       %[[FROM3:.*]] = arith.shrui %{{.*}}, %c3_i32
  // CHECK:       %[[BIT3:.*]] = arith.andi %[[FROM3]], %c1_i32
  // CHECK:       %[[HALF:.*]] = arith.muli %[[BIT3]], %c8_i32
  // CHECK:       %[[FROM4:.*]] = arith.shrui %{{.*}}, %c4_i32
  // CHECK:       %[[BIT4:.*]] = arith.andi %[[FROM4]], %c1_i32
  // CHECK:       %[[NEXT:.*]] = arith.muli %[[BIT4]], %c8_i32
  // CHECK:       %[[FIRST:.*]] = arith.muli %{{.*}}, %c16_i32
  // CHECK:       %[[ROW:.*]] = arith.addi %[[FIRST]], %[[HALF]]
  // CHECK:       arith.addi %[[ROW]], %[[INMATRIX]]
  // CHECK-COUNT-8: nvvm.stmatrix %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {eltType = #nvvm.ld_st_matrix_elt_type<b16>, layout = #nvvm.mma_layout<row>
  // CHECK-NOT:   nvvm.stmatrix
  // CHECK-NOT:   llvm.store
  // CHECK:       fence.proxy.async.shared::cta;
  // CHECK:       nvvm.barrier
  // CHECK:       scf.if
  // CHECK:         "cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [$1, {$2, $3, $4}], [$0];", "r,l,r,r,r,~{memory}" %[[BASE]], %[[MAP]], %c0_i32,
  // CHECK:         %[[NEXT:.*]] = arith.addi %[[BASE]], %c8192_i32
  // CHECK:         "cp.async.bulk.tensor.3d.{{.*}} %[[NEXT]], %[[MAP]], %c64_i32,
  // CHECK:         cp.async.bulk.commit_group;
  // CHECK:         "cp.reduce.async.bulk.tensor.3d.global.shared::cta.add.tile.bulk_group [$1, {$2, $3, $4}], [$0];"
  // CHECK:         cp.async.bulk.wait_group.read 1;
  gpu.func @stores(%map: !map, %x: bf16, %i: index) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %ring = tile.ring {tile.shared_offset = 0 : i64, tile.barrier_offset = 16384 : i64} : !ring
    %full = tile.wait %ring[%c0] : !ring
    tile.release %ring[%c0] : !ring
    %v = tile.fill %x : !tile.fragment<64x128xbf16, #acc>
    %t = tile.to_shared %v reuses %ring : !tile.fragment<64x128xbf16, #acc>, !ring -> !tile
    tile.store_async %t, %map[%i, %i, %c0] dims [1, 2] : !tile, !map
    tile.store_async add %t, %map[%i, %i, %c0] dims [1, 2] : !tile, !map
    tile.wait_stores pending 1
    gpu.return
  }
}

// -----

#acc = #tile.layout<128x64, registers = [2:1d1, 2:8d0, 8:8d1], threads = [4:2d1, 8:1d0, 8:16d0]>
!q = !tile.shared<128x128xbf16, swizzle = 128>
!k = !tile.shared<64x128xbf16, swizzle = 128>
!one = !tile.ring<1 x !q>
!ring = !tile.ring<3 x !k>
!qmap = !tile.tensor_map<3 x !q>
!kmap = !tile.tensor_map<3 x !k>
!s = !tile.fragment<128x64xf32, #acc>

gpu.module @groups {
  // A group counts from the role's first warp. Threads of a warp that pass by a
  // slot meet before one of them releases it: nothing else makes them wait for
  // each other. A number for rows is the one for all of them. A view begins at
  // other rows, of 128 bytes in a panel, and is read as the slot is.
  // CHECK-LABEL: gpu.func @groups
  // CHECK-SAME:    %{{[^:]*}}: index, %[[N:[^:]*]]: index
  // CHECK: %[[WARP:.*]] = nvvm.shfl.sync
  // CHECK: nvvm.setmaxregister increase 240
  // CHECK: %[[FIRST:.*]] = arith.subi %[[WARP]], %c4_i32
  // CHECK: %[[GROUP32:.*]] = arith.shrui %[[FIRST]], %c2_i32
  // CHECK: %[[GROUP:.*]] = arith.index_cast %[[GROUP32]] : i32 to index
  // CHECK: %[[BY:.*]] = arith.muli %[[GROUP]], %c64
  // CHECK: %[[BY32:.*]] = arith.index_cast %[[BY]] : index to i32
  // CHECK: %[[BYTES:.*]] = arith.muli %[[BY32]], %c128_i32
  // CHECK: %[[VIEW:.*]] = arith.addi %{{.*}}, %[[BYTES]] : i32
  // CHECK: scf.for %{{.*}} = %c0 to %[[GROUP]]
  // CHECK:   %[[MOVED:.*]] = arith.addi %[[VIEW]], %{{.*}} : i32
  // CHECK:   %[[ROWS:.*]] = arith.shrui %[[MOVED]], %c4_i32
  // CHECK:   wgmma.mma_async{{.*}} %[[ROWS]]
  // CHECK-NOT: nvvm.bar.warp.sync
  // CHECK:   mbarrier.arrive
  // CHECK: scf.for %{{.*}} = %[[GROUP]] to %[[N]]
  // CHECK:   mbarrier.try_wait
  // CHECK:   nvvm.bar.warp.sync
  // CHECK:   mbarrier.arrive
  // CHECK-NOT: nvvm.bar.warp.sync
  // CHECK: mbarrier.arrive
  gpu.func @groups(%Q: !qmap, %K: !kmap, %b: index, %n: index) kernel attributes {known_block_size = array<i32: 384, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %qs = tile.ring {tile.shared_offset = 0 : i64, tile.barrier_offset = 81920 : i64} : !one
    %ks = tile.ring {tile.shared_offset = 32768 : i64, tile.barrier_offset = 81936 : i64} : !ring
    tile.roles {
      tile.role "load" warps 4 registers 24 single {
        %qSlot = tile.acquire %qs[%c0] : !one
        tile.load_async %Q[%b, %c0, %c0] dims [1, 2] into %qSlot signals %qs[%c0] : !qmap, !one
        scf.for %i = %c0 to %n step %c1 {
          %slot = tile.acquire %ks[%i] : !ring
          tile.load_async %K[%b, %i, %c0] dims [1, 2] into %slot signals %ks[%i] : !kmap, !ring
        }
      }
      tile.role "compute" warps 8 registers 240 {
        %q = tile.wait %qs[%c0] : !one
        %group = tile.group
        %by = arith.muli %group, %c64 : index
        %view = tile.shift_rows %q by %by : !q
        %all = tile.of_rows %n rows 128 {
        ^bb0(%first: index, %last: index):
          tile.yield %last : index
        } : index
        scf.for %i = %c0 to %group step %c1 {
          %k = tile.wait %ks[%i] : !ring
          %t = tile.mma_async wgmma %view, %k transpose_b : !q, !k -> !tile.token<!s>
          %s = tile.wait_mma %t : !tile.token<!s>
          tile.release %ks[%i] : !ring
        }
        scf.for %i = %group to %all step %c1 {
          %k = tile.wait %ks[%i] : !ring
          tile.release %ks[%i] : !ring
        }
        tile.release %qs[%c0] : !one
      }
    }
    gpu.return
  }
}

// -----

!a = !tile.shared<64x64xf16, swizzle = 128>
!ring = !tile.ring<1 x !a>
!s = !tile.fragment<64x64xf32, #tile.layout<64x64, registers = [2:1d1, 2:8d0, 8:8d1], threads = [4:2d1, 8:1d0, 4:16d0]>>

gpu.module @kernels {
  // Of the first 4 rows, half of a thread's 32 registers hold one, in some thread.
  // What the others hold is the same everywhere.
  // CHECK-LABEL:   gpu.func @few_rows
  // CHECK:           wgmma.wait_group.sync.aligned 0;
  // CHECK-COUNT-16:  arith.mulf
  // CHECK-NOT:       arith.mulf
  gpu.func @few_rows(%o: memref<64x64xf32>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %ks = tile.ring {tile.shared_offset = 0 : i64, tile.barrier_offset = 8192 : i64} : !ring
    %k = tile.wait %ks[%c0] : !ring
    %t = tile.mma_async wgmma %k, %k transpose_b rows 4 : !a, !a -> !tile.token<!s>
    %s = tile.wait_mma %t : !tile.token<!s>
    tile.release %ks[%c0] : !ring
    %x = tile.map ins(%s : !s) {
    ^bb0(%y: f32, %i: index, %j: index):
      %two = arith.constant 2.0 : f32
      %z = arith.mulf %y, %two : f32
      tile.yield %z : f32
    } -> !s
    tile.store %x, %o[%c0, %c0] dims [0, 1] : !s, memref<64x64xf32>
    gpu.return
  }
}

// -----

#acc = #tile.layout<128x64, registers = [2:1d1, 2:8d0, 8:8d1], threads = [4:2d1, 8:1d0, 8:16d0]>
!t = !tile.shared<64x64xbf16, swizzle = 128>
!ring = !tile.ring<2 x !t>
!map = !tile.tensor_map<2 x !t>

gpu.module @kernels {
  // Slots of groups: the 4 warps of one read a slot, or its 128 threads fill it.
  // CHECK-LABEL: gpu.func @groups(
  // CHECK-COUNT-2: mbarrier.init{{.*}}, %c1_i32 :
  // CHECK-COUNT-2: mbarrier.init{{.*}}, %c4_i32 :
  // CHECK-COUNT-2: mbarrier.init{{.*}}, %c128_i32 :
  // CHECK-COUNT-2: mbarrier.init{{.*}}, %c1_i32 :
  // CHECK-NOT:     mbarrier.init
  // Slot and parity are those of the group's use, and the tile's rows those before
  // its own by 64 for each group before it.
  // CHECK:         %[[GROUP:.*]] = arith.divui
  // CHECK:         %[[SLOT:.*]] = arith.remui %{{.*}}, %c2_i32
  // CHECK:         mbarrier.try_wait
  // CHECK:         wgmma.mma_async
  gpu.func @groups(%q: !map, %o: !map) kernel attributes {known_block_size = array<i32: 384, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c-64 = arith.constant -64 : index
    %qs = tile.ring groups 2 {tile.shared_offset = 0 : i64, tile.barrier_offset = 32768 : i64} : !ring
    %os = tile.ring groups 2 {tile.shared_offset = 16384 : i64, tile.barrier_offset = 32800 : i64} : !ring
    tile.roles {
      tile.role "load" warps 2 single {
        scf.for %n = %c0 to %c2 step %c1 {
          %s = tile.acquire %qs[%n] : !ring
          tile.load_async %q[%c0, %c0] dims [0, 1] into %s signals %qs[%n] : !map, !ring
        }
      }
      tile.role "store" warps 2 single {
        scf.for %n = %c0 to %c2 step %c1 {
          %s = tile.wait %os[%n] : !ring
          tile.store_async %s, %o[%c0, %c0] dims [0, 1] : !t, !map
          tile.wait_stores
          tile.release %os[%n] : !ring
        }
      }
      tile.role "compute" warps 8 {
        %g = tile.group
        %by = arith.muli %g, %c-64 : index
        %s = tile.wait %qs[%g] : !ring
        %v = tile.shift_rows %s by %by : !t
        %x = tile.mma wgmma %v, %s : !t, !t -> !tile.fragment<128x64xf32, #acc>
        tile.release %qs[%g] : !ring
        %y = tile.map ins(%x : !tile.fragment<128x64xf32, #acc>) {
        ^bb0(%e: f32, %i: index, %j: index):
          %h = arith.truncf %e : f32 to bf16
          tile.yield %h : bf16
        } -> !tile.fragment<128x64xbf16, #acc>
        %d = tile.acquire %os[%g] : !ring
        %w = tile.shift_rows %d by %by : !t
        tile.write %y into %w signals %os[%g] : !tile.fragment<128x64xbf16, #acc>, !ring
      }
    }
    gpu.return
  }
}

// -----

gpu.module @turns {
  // A turn goes from one group to the next by the named barrier of that group: the last
  // ones, for the first are of roles. Two groups meet at each. The role's own groups count
  // from its first warp.
  // CHECK-LABEL: gpu.func @turns(
  gpu.func @turns() kernel attributes {known_block_size = array<i32: 512, 1, 1>} {
    tile.roles {
      // CHECK: %[[WARP:.*]] = nvvm.shfl.sync  idx
      tile.role "load" warps 4 {
      }
      tile.role "compute" warps 12 {
        // CHECK-DAG:  %[[ROLE_WARP:.*]] = arith.subi %[[WARP]], %c4_i32
        // CHECK-DAG:  %[[GROUP:.*]] = arith.shrui %{{.*}}, %c2_i32
        // CHECK:      %[[OWN:.*]] = arith.addi %[[GROUP]], %c13_i32
        // CHECK-NEXT: nvvm.barrier id = %[[OWN]] number_of_threads = %c256_i32
        tile.take_group_turn
        // CHECK-NEXT: %[[IS_LAST:.*]] = arith.cmpi eq, %[[GROUP]], %c2_i32
        // CHECK-NEXT: %[[BEHIND:.*]] = arith.addi %[[GROUP]], %c14_i32
        // CHECK-NEXT: %[[NEXT:.*]] = arith.select %[[IS_LAST]], %c13_i32, %[[BEHIND]]
        // CHECK-NEXT: llvm.inline_asm has_side_effects {{.*}}"bar.arrive $0, $1;", "r,r,~{memory}" %[[NEXT]], %c256_i32
        tile.pass_group_turn
      }
    }
    gpu.return
  }
}

// -----

// Where some neighbours are no rows, the box is that of one place, 3 of 4.
// CHECK-LABEL: func @inner_used(
// CHECK: llvm.inttoptr
// CHECK: llvm.store %c64_i64
// CHECK: llvm.store %c8_i64
// CHECK: llvm.store
// CHECK: llvm.store %c1_i64
// CHECK: llvm.store
// CHECK: llvm.store
// CHECK: llvm.store
// CHECK: llvm.store %c64_i64
// CHECK: llvm.store %c3_i64
// CHECK: llvm.store %c1_i64
// CHECK: llvm.store %c1_i64
// CHECK: call @fovea_gpu_tensor_map(
//
// Of rows that run along two dimensions the neighbours, 4 of 8 heads, come behind the
// columns, whatever the order of memory, so that a box has the tile's rows as they are:
// 16 places of 4.
// CHECK-LABEL: func @inner_rows(
// CHECK-SAME: %[[T:.*]]: memref
// CHECK: %{{.*}}, %{{.*}}, %[[S:.*]]:4, %[[STRIDES:.*]]:4 = memref.extract_strided_metadata %[[T]]
// CHECK-DAG: %[[HEAD:.*]] = arith.index_cast %[[STRIDES]]#2
// CHECK-DAG: %[[HEAD_BYTES:.*]] = arith.muli %[[HEAD]], %c2_i64
// CHECK-DAG: %[[TIMES:.*]] = arith.index_cast %[[S]]#1
// CHECK-DAG: %[[TIME:.*]] = arith.index_cast %[[STRIDES]]#1
// CHECK-DAG: %[[TIME_BYTES:.*]] = arith.muli %[[TIME]], %c2_i64
// CHECK-DAG: %[[BATCH:.*]] = arith.index_cast %[[STRIDES]]#0
// CHECK-DAG: %[[BATCH_BYTES:.*]] = arith.muli %[[BATCH]], %c2_i64
// CHECK: llvm.inttoptr
// CHECK: llvm.store %c64_i64
// CHECK: llvm.store %c8_i64
// CHECK: llvm.store %[[TIMES]]
// CHECK: llvm.store %c1_i64
// CHECK: llvm.store %[[HEAD_BYTES]]
// CHECK: llvm.store %[[TIME_BYTES]]
// CHECK: llvm.store %[[BATCH_BYTES]]
// CHECK: llvm.store %c64_i64
// CHECK: llvm.store %c4_i64
// CHECK: llvm.store %c16_i64
// CHECK: llvm.store %c1_i64
// CHECK: call @fovea_gpu_tensor_map(%{{.*}}, %{{.*}}, %c1_i64, %c4_i64,
//
// CHECK-LABEL: func @inner_heads(
// CHECK-SAME: %[[T:.*]]: memref
// CHECK: %{{.*}}, %{{.*}}, %[[S:.*]]:4, %[[STRIDES:.*]]:4 = memref.extract_strided_metadata %[[T]]
// CHECK-DAG: %[[HEAD:.*]] = arith.index_cast %[[STRIDES]]#1
// CHECK-DAG: %[[HEAD_BYTES:.*]] = arith.muli %[[HEAD]], %c2_i64
// CHECK-DAG: %[[TIMES:.*]] = arith.index_cast %[[S]]#2
// CHECK-DAG: %[[TIME:.*]] = arith.index_cast %[[STRIDES]]#2
// CHECK-DAG: %[[TIME_BYTES:.*]] = arith.muli %[[TIME]], %c2_i64
// CHECK-DAG: %[[BATCH:.*]] = arith.index_cast %[[STRIDES]]#0
// CHECK-DAG: %[[BATCH_BYTES:.*]] = arith.muli %[[BATCH]], %c2_i64
// CHECK: llvm.inttoptr
// CHECK: llvm.store %c64_i64
// CHECK: llvm.store %c8_i64
// CHECK: llvm.store %[[TIMES]]
// CHECK: llvm.store %c1_i64
// CHECK: llvm.store %[[HEAD_BYTES]]
// CHECK: llvm.store %[[TIME_BYTES]]
// CHECK: llvm.store %[[BATCH_BYTES]]
// CHECK: llvm.store %c64_i64
// CHECK: llvm.store %c4_i64
// CHECK: llvm.store %c16_i64
// CHECK: llvm.store %c1_i64
// CHECK: call @fovea_gpu_tensor_map(%{{.*}}, %{{.*}}, %c1_i64, %c4_i64,
//
// A clipped map has 16 places more, in front of the memref, not 64 rows.
// CHECK-LABEL: func @inner_clipped(
// CHECK-SAME: %[[T:.*]]: memref
// CHECK: %{{.*}}, %{{.*}}, %[[S:.*]]:4, %[[STRIDES:.*]]:4 = memref.extract_strided_metadata %[[T]]
// CHECK: %[[BASE:.*]] = arith.addi
// CHECK: %[[HEAD:.*]] = arith.index_cast %[[STRIDES]]#1
// CHECK: %[[HEAD_BYTES:.*]] = arith.muli %[[HEAD]], %c2_i64
// CHECK: %[[TIMES:.*]] = arith.index_cast %[[S]]#2
// CHECK: %[[TIME:.*]] = arith.index_cast %[[STRIDES]]#2
// CHECK: %[[TIME_BYTES:.*]] = arith.muli %[[TIME]], %c2_i64
// CHECK: %[[BACK:.*]] = arith.muli %[[TIME]], %c32_i64
// CHECK: %[[FIRST:.*]] = arith.subi %[[BASE]], %[[BACK]]
// CHECK: %[[PLACES:.*]] = arith.addi %[[TIMES]], %c16_i64
// CHECK: %[[POINTER:.*]] = llvm.inttoptr %[[FIRST]]
// CHECK: llvm.store %c64_i64
// CHECK: llvm.store %c8_i64
// CHECK: llvm.store %c16_i64
// CHECK: llvm.store %[[PLACES]]
// CHECK: llvm.store %c1_i64
// CHECK: llvm.store %[[HEAD_BYTES]]
// CHECK: llvm.store %[[TIME_BYTES]]
// CHECK: llvm.store %[[TIME_BYTES]]
// CHECK: llvm.store
// CHECK: llvm.store %c64_i64
// CHECK: llvm.store %c4_i64
// CHECK: llvm.store %c16_i64
// CHECK: llvm.store %c1_i64
// CHECK: llvm.store %c1_i64
// CHECK: call @fovea_gpu_tensor_map(%{{.*}}, %[[POINTER]], %c1_i64, %c5_i64,
!tile = !tile.shared<64x64xbf16, swizzle = 128>
!map = !tile.tensor_map<4 x !tile>
!clipped = !tile.tensor_map<5 x !tile>
module attributes {gpu.container_module} {
  func.func @inner_used(%t: memref<1x8x?x64xbf16, strided<[?, ?, ?, 1], offset: ?>>) {
    %c1 = arith.constant 1 : index
    %c128 = arith.constant 128 : index
    %map = tile.tensor_map %t dims [2, 1, 3] inner 4 used 3 : memref<1x8x?x64xbf16, strided<[?, ?, ?, 1], offset: ?>> -> !map
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c128, %c1, %c1) args(%map : !map)
    return
  }
  func.func @inner_rows(%t: memref<1x?x8x64xbf16, strided<[?, ?, ?, 1], offset: ?>>) {
    %c1 = arith.constant 1 : index
    %c128 = arith.constant 128 : index
    %map = tile.tensor_map %t dims [1, 2, 3] inner 4 : memref<1x?x8x64xbf16, strided<[?, ?, ?, 1], offset: ?>> -> !map
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c128, %c1, %c1) args(%map : !map)
    return
  }
  func.func @inner_heads(%t: memref<1x8x?x64xbf16, strided<[?, ?, ?, 1], offset: ?>>) {
    %c1 = arith.constant 1 : index
    %c128 = arith.constant 128 : index
    %map = tile.tensor_map %t dims [2, 1, 3] inner 4 : memref<1x8x?x64xbf16, strided<[?, ?, ?, 1], offset: ?>> -> !map
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c128, %c1, %c1) args(%map : !map)
    return
  }
  func.func @inner_clipped(%t: memref<1x8x?x64xbf16, strided<[?, ?, ?, 1], offset: ?>>) {
    %c1 = arith.constant 1 : index
    %c128 = arith.constant 128 : index
    %map = tile.tensor_map clipped %t dims [2, 1, 3] inner 4 : memref<1x8x?x64xbf16, strided<[?, ?, ?, 1], offset: ?>> -> !clipped
    gpu.launch_func @kernels::@store blocks in (%c1, %c1, %c1) threads in (%c128, %c1, %c1) args(%map : !clipped)
    return
  }
  gpu.module @kernels {
    gpu.func @copy(%map: !map) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      gpu.return
    }
    gpu.func @store(%map: !clipped) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      gpu.return
    }
  }
}

// -----

// The coordinates of a copy have the order of the descriptor's dimensions.
// CHECK-LABEL: gpu.func @inner_rows(
// CHECK-SAME: index, %[[T:[^:]*]]: index, %[[H:[^:]*]]: index)
// CHECK-DAG: %[[HEAD:.*]] = arith.index_cast %[[H]] : index to i32
// CHECK-DAG: %[[TIME:.*]] = arith.index_cast %[[T]] : index to i32
// CHECK: cp.async.bulk.tensor.4d.shared::cluster.global{{.*}} [$0], [$1, {$3, $4, $5, $6}], [$2];{{.*}} %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %c0_i32, %[[HEAD]], %[[TIME]], %{{[^,]*}} :
// CHECK: cp.async.bulk.tensor.4d.global.shared::cta{{.*}} [$1, {$2, $3, $4, $5}], [$0];{{.*}} %{{[^,]*}}, %{{[^,]*}}, %c0_i32, %[[HEAD]], %[[TIME]], %{{[^,]*}} :
//
// CHECK-LABEL: gpu.func @inner_heads(
// CHECK-SAME: index, %[[T:[^:]*]]: index, %[[H:[^:]*]]: index)
// CHECK-DAG: %[[HEAD:.*]] = arith.index_cast %[[H]] : index to i32
// CHECK-DAG: %[[TIME:.*]] = arith.index_cast %[[T]] : index to i32
// CHECK: cp.async.bulk.tensor.4d.shared::cluster.global{{.*}} [$0], [$1, {$3, $4, $5, $6}], [$2];{{.*}} %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %c0_i32, %[[HEAD]], %[[TIME]], %{{[^,]*}} :
// CHECK: cp.async.bulk.tensor.4d.global.shared::cta{{.*}} [$1, {$2, $3, $4, $5}], [$0];{{.*}} %{{[^,]*}}, %{{[^,]*}}, %c0_i32, %[[HEAD]], %[[TIME]], %{{[^,]*}} :
//
// The rows of each of 16 places, of which so many are valid, are a copy.
// CHECK-LABEL: gpu.func @inner_used(
// CHECK-SAME: index, %[[T:[^:]*]]: index, %[[H:[^:]*]]: index, %[[N:[^:]*]]: index)
// CHECK-DAG: %[[HEAD:.*]] = arith.index_cast %[[H]] : index to i32
// CHECK-DAG: %[[TIME:.*]] = arith.index_cast %[[T]] : index to i32
// CHECK: %[[ROWS:.*]] = arith.index_cast %[[N]] : index to i32
// CHECK: %[[PLACES:.*]] = arith.divsi %[[ROWS]], %c4_i32
// CHECK: %[[END:.*]] = arith.minsi %[[PLACES]], %c16_i32
// CHECK: scf.for %[[P:.*]] = %c0_i32 to %[[END]] step %c1_i32
// CHECK-DAG: %[[BYTES:.*]] = arith.muli %[[P]], %c512_i32
// CHECK-DAG: %[[OWN:.*]] = arith.addi %[[TIME]], %[[P]]
// CHECK: %[[FROM:.*]] = arith.addi %{{.*}}, %[[BYTES]]
// CHECK: cp.async.bulk.tensor.4d.global.shared::cta{{.*}} [$1, {$2, $3, $4, $5}], [$0];{{.*}} %[[FROM]], %{{[^,]*}}, %c0_i32, %[[HEAD]], %[[OWN]], %{{[^,]*}} :
// CHECK: cp.async.bulk.commit_group
!tile = !tile.shared<64x64xbf16, swizzle = 128>
!ring = !tile.ring<1 x !tile>
!map = !tile.tensor_map<4 x !tile>
gpu.module @kernels {
  gpu.func @inner_rows(%K: !map, %b: index, %t: index, %h: index) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %ks = tile.ring {tile.shared_offset = 0 : i64, tile.barrier_offset = 8192 : i64} : !ring
    %slot = tile.acquire %ks[%c0] : !ring
    tile.load_async %K[%b, %t, %h, %c0] dims [1, 2, 3] inner 4 into %slot signals %ks[%c0] : !map, !ring
    %k = tile.wait %ks[%c0] : !ring
    tile.store_async %k, %K[%b, %t, %h, %c0] dims [1, 2, 3] inner 4 : !tile, !map
    tile.wait_stores
    tile.release %ks[%c0] : !ring
    gpu.return
  }
  gpu.func @inner_heads(%K: !map, %b: index, %t: index, %h: index) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %ks = tile.ring {tile.shared_offset = 0 : i64, tile.barrier_offset = 8192 : i64} : !ring
    %slot = tile.acquire %ks[%c0] : !ring
    tile.load_async %K[%b, %h, %t, %c0] dims [2, 1, 3] inner 4 into %slot signals %ks[%c0] : !map, !ring
    %k = tile.wait %ks[%c0] : !ring
    tile.store_async %k, %K[%b, %h, %t, %c0] dims [2, 1, 3] inner 4 : !tile, !map
    tile.wait_stores
    tile.release %ks[%c0] : !ring
    gpu.return
  }
  gpu.func @inner_used(%K: !map, %b: index, %t: index, %h: index, %n: index) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %ks = tile.ring {tile.shared_offset = 0 : i64, tile.barrier_offset = 8192 : i64} : !ring
    %k = tile.wait %ks[%c0] : !ring
    tile.store_async %k, %K[%b, %h, %t, %c0] dims [2, 1, 3] inner 4 used 3 valid(%n) : !tile, !map
    tile.wait_stores
    tile.release %ks[%c0] : !ring
    gpu.return
  }
}
