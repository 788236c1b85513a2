// RUN: fovea-opt %s --attach-gpu-target=target=sm_90a --convert-tile-to-nvvm --canonicalize --cse | FileCheck %s

#halves = #tile.layout<64x128, registers = [2:1d1, 2:8d0, 8:8d1], threads = [4:2d1, 8:1d0, 4:16d0, 2:64d1]>
#rows = #tile.layout<128x64, registers = [2:1d1, 2:8d0, 8:8d1], threads = [4:2d1, 8:1d0, 8:16d0]>
#wide = #tile.layout<128x128, registers = [2:1d1, 2:8d0, 16:8d1], threads = [4:2d1, 8:1d0, 8:16d0]>
#narrow = #tile.layout<128x32, registers = [2:1d1, 2:8d0, 4:8d1], threads = [4:2d1, 8:1d0, 8:16d0]>
#column = #tile.layout<64, registers = [2:1d0, 8:8d0], threads = [4:2d0, 8:r, 8:r]>

gpu.module @kernels {
  // Each thread that writes a slot says so; one thread has all panels added, and gives the slot back when they are read. Threads of odd rows
  // exchange columns 16 apart, so that no two meet in a bank.
  // CHECK-LABEL: gpu.func @ring
  // CHECK:       llvm.inline_asm {{.*}}mbarrier.init.shared::cta.b64 {{.*}}, %c256_i32
  // CHECK:       llvm.inline_asm {{.*}}mbarrier.init.shared::cta.b64 {{.*}}, %c1_i32
  // CHECK:       nvvm.setmaxregister decrease 24{{$}}
  // CHECK-NOT:   nvvm.setmaxregister
  // CHECK:         mbarrier.try_wait.parity
  // CHECK-COUNT-4: cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group
  // CHECK:         cp.async.bulk.commit_group
  // CHECK:         cp.async.bulk.wait_group.read 0{{[^0-9]}}
  // CHECK:         mbarrier.arrive.shared::cta.b64
  // CHECK:       nvvm.setmaxregister increase 240{{$}}
  // CHECK:         mbarrier.try_wait.parity
  // CHECK-COUNT-32: arith.select
  // CHECK:         llvm.store {{.*}} {alignment = 8 : i64} : vector<2xf32>, !llvm.ptr<3>
  // CHECK:         fence.proxy.async.shared::cta
  // CHECK-NEXT:    llvm.inline_asm has_side_effects "mbarrier.arrive.shared::cta.b64 _, [$0];"
  gpu.func @ring(%map: !tile.tensor_map<2 x !tile.shared<64x128xf32, swizzle = 128>>, %n: index, %f: !tile.fragment<64x128xf32, #halves>) kernel attributes {known_block_size = array<i32: 384, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %ring = tile.ring {tile.shared_offset = 0 : i64, tile.barrier_offset = 32768 : i64} : !tile.ring<1 x !tile.shared<64x128xf32, swizzle = 128>>
    tile.roles {
      tile.role "load" warps 2 registers 24 single {
      }
      tile.role "store" warps 2 registers 24 single {
        scf.for %i = %c0 to %n step %c1 {
          %t = tile.wait %ring[%i] : !tile.ring<1 x !tile.shared<64x128xf32, swizzle = 128>>
          tile.store_async add %t, %map[%i, %c0] dims [0, 1] : !tile.shared<64x128xf32, swizzle = 128>, !tile.tensor_map<2 x !tile.shared<64x128xf32, swizzle = 128>>
          tile.wait_stores
          tile.release %ring[%i] : !tile.ring<1 x !tile.shared<64x128xf32, swizzle = 128>>
        }
      }
      tile.role "compute" warps 8 registers 240 {
        scf.for %i = %c0 to %n step %c1 {
          %s = tile.acquire %ring[%i] : !tile.ring<1 x !tile.shared<64x128xf32, swizzle = 128>>
          tile.write %f into %s signals %ring[%i] : !tile.fragment<64x128xf32, #halves>, !tile.ring<1 x !tile.shared<64x128xf32, swizzle = 128>>
        }
      }
    }
    gpu.return
  }

  // A slot that two rings share is empty when both say so, and begins where that of the
  // larger tiles does; a part of a fragment is in the registers of its columns.
  // CHECK-LABEL: gpu.func @place
  // CHECK:       nvvm.setmaxregister decrease 24{{$}}
  // CHECK:         %[[INDEX:.*]] = arith.muli %{{.*}}, %c8_i32
  // CHECK:         %[[PARITY:.*]] = arith.xori
  // CHECK:         llvm.inline_asm {{.*}}mbarrier.try_wait.parity{{.*}} %{{.*}}, %[[PARITY]]
  // CHECK:         %[[FIRST:.*]] = arith.addi %{{.*}}, %c65584_i32
  // CHECK:         %[[EMPTY:.*]] = arith.addi %[[FIRST]], %[[INDEX]]
  // CHECK:         llvm.inline_asm {{.*}}mbarrier.try_wait.parity{{.*}} %[[EMPTY]], %[[PARITY]]
  // CHECK:         cp.async.bulk.tensor
  // CHECK:         %[[READ:.*]] = arith.muli %{{.*}}, %c32768_i32
  // CHECK-NEXT:    %[[STORED:.*]] = arith.addi %{{.*}}, %[[READ]]
  // CHECK:         cp.async.bulk.tensor{{.*}} %[[STORED]],
  // CHECK:       nvvm.setmaxregister increase 240{{$}}
  // CHECK:         %[[WRITTEN:.*]] = arith.muli %{{.*}}, %c32768_i32
  // CHECK-NEXT:    arith.addi %{{.*}}, %[[WRITTEN]]
  // CHECK:         vector.from_elements %arg35, %arg36 : vector<2xbf16>
  // CHECK-COUNT-4: nvvm.stmatrix {{.*}}layout = #nvvm.mma_layout<row>
  // CHECK-NOT:     nvvm.stmatrix
  // CHECK:       gpu.return
  gpu.func @place(%in: !tile.tensor_map<2 x !tile.shared<128x128xbf16, swizzle = 128>>, %out: !tile.tensor_map<2 x !tile.shared<128x64xbf16, swizzle = 128>>, %n: index, %f: !tile.fragment<128x128xbf16, #wide>) kernel attributes {known_block_size = array<i32: 384, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %q = tile.ring {tile.shared_offset = 0 : i64, tile.barrier_offset = 65536 : i64} : !tile.ring<2 x !tile.shared<128x128xbf16, swizzle = 128>>
    %o = tile.ring shares %q {tile.shared_offset = 0 : i64, tile.barrier_offset = 65568 : i64} : !tile.ring<2 x !tile.shared<128x64xbf16, swizzle = 128>>, !tile.ring<2 x !tile.shared<128x128xbf16, swizzle = 128>>
    tile.roles {
      tile.role "load" warps 2 registers 24 single {
        scf.for %i = %c0 to %n step %c1 {
          %s = tile.acquire %q[%i] : !tile.ring<2 x !tile.shared<128x128xbf16, swizzle = 128>>
          tile.load_async %in[%i, %c0] dims [0, 1] into %s signals %q[%i] : !tile.tensor_map<2 x !tile.shared<128x128xbf16, swizzle = 128>>, !tile.ring<2 x !tile.shared<128x128xbf16, swizzle = 128>>
        }
      }
      tile.role "store" warps 2 registers 24 single {
        scf.for %i = %c0 to %n step %c1 {
          %t = tile.wait %o[%i] : !tile.ring<2 x !tile.shared<128x64xbf16, swizzle = 128>>
          tile.store_async %t, %out[%i, %c0] dims [0, 1] : !tile.shared<128x64xbf16, swizzle = 128>, !tile.tensor_map<2 x !tile.shared<128x64xbf16, swizzle = 128>>
          tile.wait_stores
          tile.release %o[%i] : !tile.ring<2 x !tile.shared<128x64xbf16, swizzle = 128>>
        }
      }
      tile.role "compute" warps 8 registers 240 {
        scf.for %i = %c0 to %n step %c1 {
          %t = tile.wait %q[%i] : !tile.ring<2 x !tile.shared<128x128xbf16, swizzle = 128>>
          tile.release %q[%i] : !tile.ring<2 x !tile.shared<128x128xbf16, swizzle = 128>>
          %s = tile.acquire %o[%i] : !tile.ring<2 x !tile.shared<128x64xbf16, swizzle = 128>>
          tile.write %f column 64 into %s signals %o[%i] : !tile.fragment<128x128xbf16, #wide>, !tile.ring<2 x !tile.shared<128x64xbf16, swizzle = 128>>
        }
      }
    }
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

  // One thread waits for the block of the index before, and says how far this
  // one is when what it stored is there.
  // CHECK-LABEL: gpu.func @turns
  // CHECK:       %[[EXISTS:.*]] = arith.cmpi sgt, %{{.*}}, %c0{{ }}
  // CHECK:       scf.if %[[EXISTS]]
  // CHECK:         ld.acquire.gpu.global.s32
  // CHECK:         fence.proxy.async.global;
  // CHECK-NOT:   nvvm.barrier
  // CHECK:       cp.reduce.async.bulk.tensor
  // CHECK:       cp.async.bulk.wait_group 0;
  // CHECK:       st.release.gpu.global.s32
  gpu.func @turns(%map: !tile.tensor_map<2 x !tile.shared<128x64xf32, swizzle = 128>>, %n: index, %turns: memref<?xi32>) kernel attributes {known_block_size = array<i32: 384, 1, 1>} {
    %c0 = arith.constant 0 : index
    %ring = tile.ring {tile.shared_offset = 0 : i64, tile.barrier_offset = 32768 : i64} : !tile.ring<1 x !tile.shared<128x64xf32, swizzle = 128>>
    tile.roles {
      tile.role "store" warps 4 single {
        %t = tile.wait %ring[%c0] : !tile.ring<1 x !tile.shared<128x64xf32, swizzle = 128>>
        tile.take_turn %turns[%n] at %n : memref<?xi32>
        tile.store_async add %t, %map[%n, %c0] dims [0, 1] : !tile.shared<128x64xf32, swizzle = 128>, !tile.tensor_map<2 x !tile.shared<128x64xf32, swizzle = 128>>
        tile.wait_stores
        tile.release %ring[%c0] : !tile.ring<1 x !tile.shared<128x64xf32, swizzle = 128>>
        tile.pass_turn %turns[%n] to %n : memref<?xi32>
      }
      tile.role "compute" warps 8 {
      }
    }
    gpu.return
  }

  // A warp says that its threads have written, in one of them; all ask whether
  // those of another block have, and vote, so that the loop is the warp's. Rows
  // that are aligned are written and read as pairs without a question.
  // CHECK-LABEL: gpu.func @meet
  // CHECK-NOT:   scf.if
  // CHECK-COUNT-16: llvm.store {{.*}} : vector<2xf32>, !llvm.ptr<1>
  // CHECK:       nvvm.bar.warp.sync
  // CHECK:       scf.if
  // CHECK:         st.release.gpu.global.s32
  // CHECK:       }
  // CHECK:       ld.acquire.gpu.global.s32
  // CHECK-SAME:  vote.sync.any.pred
  // CHECK-NOT:   scf.if
  // CHECK-COUNT-16: llvm.load {{.*}} : !llvm.ptr<1> -> vector<2xf32>
  gpu.func @meet(%o: memref<132x128x64xf32, strided<[?, ?, 1], offset: ?>>, %n: index, %f: !tile.fragment<128x64xf32, #rows>, %flags: memref<?x8xi32>) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : index
    tile.store %f, %o[%n, %c0, %c0] dims [1, 2] aligned : !tile.fragment<128x64xf32, #rows>, memref<132x128x64xf32, strided<[?, ?, 1], offset: ?>>
    tile.signal %flags[%n] : memref<?x8xi32>
    tile.await %flags[%c0] : memref<?x8xi32>
    %other = tile.load %o[%c0, %c0, %c0] dims [1, 2] aligned : memref<132x128x64xf32, strided<[?, ?, 1], offset: ?>> -> !tile.fragment<128x64xf32, #rows>
    tile.store %other, %o[%n, %c0, %c0] dims [1, 2] aligned : !tile.fragment<128x64xf32, #rows>, memref<132x128x64xf32, strided<[?, ?, 1], offset: ?>>
    gpu.return
  }

  // Threads that add by themselves meet when one of them has waited, and before
  // it says what they have added.
  // CHECK-LABEL: gpu.func @turns_of_threads
  // CHECK:       ld.acquire.gpu.global.s32
  // CHECK:       nvvm.barrier
  // CHECK:       llvm.atomicrmw fadd
  // CHECK:       nvvm.barrier
  // CHECK:       st.release.gpu.global.s32
  gpu.func @turns_of_threads(%o: memref<?x?xf32, strided<[?, 1], offset: ?>>, %n: index, %f: !tile.fragment<128x64xf32, #rows>, %turns: memref<?xi32>) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    tile.take_turn %turns[%n] at %n : memref<?xi32>
    tile.store add %f, %o[%n, %n] dims [0, 1] : !tile.fragment<128x64xf32, #rows>, memref<?x?xf32, strided<[?, 1], offset: ?>>
    tile.pass_turn %turns[%n] to %n : memref<?xi32>
    gpu.return
  }

  // Pairs of f32 are read as they are written: threads of odd rows read the
  // columns 16 further on first. Pairs of 16 bits meet in no bank.
  // CHECK-LABEL: gpu.func @crossed
  // CHECK:       %[[ODD:.*]] = arith.cmpi ne, %{{.*}}, %c0_i32
  // CHECK:       %[[FIRST:.*]] = arith.muli %{{.*}}, %c16_i32
  // CHECK:       arith.subi %c16_i32, %[[FIRST]]
  // CHECK:       %[[A:.*]] = llvm.load {{.*}} {alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xf32>
  // CHECK:       %[[A0:.*]] = llvm.extractelement %[[A]][%c0_i32
  // CHECK:       %[[B:.*]] = llvm.load {{.*}} {alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xf32>
  // CHECK:       %[[B0:.*]] = llvm.extractelement %[[B]][%c0_i32
  // CHECK:       arith.select %[[ODD]], %[[B0]], %[[A0]]
  // CHECK:       arith.select %[[ODD]], %[[A0]], %[[B0]]
  // CHECK:       gpu.return
  gpu.func @crossed(%n: index, %o: memref<?x?xf32, strided<[?, 1], offset: ?>>) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : index
    %x = tile.load %o[%n, %c0] dims [0, 1] {tile.shared_offset = 0 : i64} : memref<?x?xf32, strided<[?, 1], offset: ?>> -> !tile.shared<128x32xf32, swizzle = 128>
    %f = tile.from_shared %x : !tile.shared<128x32xf32, swizzle = 128> -> !tile.fragment<128x32xf32, #narrow>
    tile.store %f, %o[%c0, %c0] dims [0, 1] : !tile.fragment<128x32xf32, #narrow>, memref<?x?xf32, strided<[?, 1], offset: ?>>
    gpu.return
  }

  // Of 32 scores of a thread 18 have another distance; numbers of keys are read
  // in pairs, unless they begin anywhere, or at an odd number, and those of queries
  // once.
  // CHECK-LABEL: gpu.func @lines
  // CHECK-COUNT-18: llvm.load {{.*}} : !llvm.ptr<3> -> f32
  // CHECK-NOT:   llvm.load
  // CHECK:       llvm.store
  // CHECK-COUNT-8: llvm.load {{.*}} {alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xf32>
  // CHECK-NOT:   llvm.load
  // CHECK:       llvm.store
  // CHECK-COUNT-16: llvm.load {{.*}} : !llvm.ptr<3> -> f32
  // CHECK-NOT:   llvm.load
  // CHECK:       llvm.store
  // CHECK-COUNT-16: llvm.load {{.*}} : !llvm.ptr<3> -> f32
  // CHECK-NOT:   llvm.load
  // CHECK:       llvm.store
  // CHECK-COUNT-2: llvm.load {{.*}} : !llvm.ptr<3> -> f32
  // CHECK-NOT:   llvm.load
  // CHECK:       llvm.store
  gpu.func @lines(%n: index, %o: memref<?x?xf32, strided<[?, 1], offset: ?>>) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c63 = arith.constant 63 : index
    %ring = tile.ring {tile.shared_offset = 0 : i64, tile.barrier_offset = 1024 : i64} : !tile.ring<1 x !tile.shared<1x192xf32>>
    %x = tile.wait %ring[%c0] : !tile.ring<1 x !tile.shared<1x192xf32>>
    %d = tile.from_shared %x[%c63] by [1, -1] : !tile.shared<1x192xf32> -> !tile.fragment<128x64xf32, #rows>
    tile.store %d, %o[%c0, %c0] dims [0, 1] aligned : !tile.fragment<128x64xf32, #rows>, memref<?x?xf32, strided<[?, 1], offset: ?>>
    %k = tile.from_shared %x[%c2] by [0, 1] : !tile.shared<1x192xf32> -> !tile.fragment<128x64xf32, #rows>
    tile.store %k, %o[%c0, %c0] dims [0, 1] aligned : !tile.fragment<128x64xf32, #rows>, memref<?x?xf32, strided<[?, 1], offset: ?>>
    %a = tile.from_shared %x[%n] by [0, 1] : !tile.shared<1x192xf32> -> !tile.fragment<128x64xf32, #rows>
    tile.store %a, %o[%c0, %c0] dims [0, 1] aligned : !tile.fragment<128x64xf32, #rows>, memref<?x?xf32, strided<[?, 1], offset: ?>>
    %odd = tile.from_shared %x[%c63] by [0, 1] : !tile.shared<1x192xf32> -> !tile.fragment<128x64xf32, #rows>
    tile.store %odd, %o[%c0, %c0] dims [0, 1] aligned : !tile.fragment<128x64xf32, #rows>, memref<?x?xf32, strided<[?, 1], offset: ?>>
    %q = tile.from_shared %x[%n] by [-1, 0] : !tile.shared<1x192xf32> -> !tile.fragment<128x64xf32, #rows>
    tile.store %q, %o[%c0, %c0] dims [0, 1] aligned : !tile.fragment<128x64xf32, #rows>, memref<?x?xf32, strided<[?, 1], offset: ?>>
    tile.release %ring[%c0] : !tile.ring<1 x !tile.shared<1x192xf32>>
    gpu.return
  }

  // Booleans lie in bytes: a thread reads two at once, and tests each.
  // CHECK-LABEL: gpu.func @booleans
  // CHECK-DAG:   %[[LOW:.*]] = arith.constant 255 : i16
  // CHECK-DAG:   %[[HIGH:.*]] = arith.constant -256 : i16
  // CHECK-DAG:   %[[ZERO:.*]] = arith.constant 0 : i16
  // CHECK:       %[[PAIR:.*]] = llvm.load {{.*}} {alignment = 2 : i64} : !llvm.ptr<3> -> i16
  // CHECK:       %[[A:.*]] = arith.andi %[[PAIR]], %[[LOW]]
  // CHECK:       arith.cmpi ne, %[[A]], %[[ZERO]]
  // CHECK:       %[[B:.*]] = arith.andi %[[PAIR]], %[[HIGH]]
  // CHECK:       arith.cmpi ne, %[[B]], %[[ZERO]]
  gpu.func @booleans(%n: index, %m: memref<?x?xi1, strided<[?, 1], offset: ?>>, %f: !tile.fragment<128x32xf32, #narrow>, %o: memref<?x?xf32, strided<[?, 1], offset: ?>>) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %x = tile.load %m[%n, %c0] dims [0, 1] {tile.shared_offset = 0 : i64} : memref<?x?xi1, strided<[?, 1], offset: ?>> -> !tile.shared<128x32xi1, swizzle = 32>
    %k = tile.from_shared %x : !tile.shared<128x32xi1, swizzle = 32> -> !tile.fragment<128x32xi1, #narrow>
    %s = tile.map ins(%f, %k : !tile.fragment<128x32xf32, #narrow>, !tile.fragment<128x32xi1, #narrow>) {
    ^bb0(%e: f32, %keep: i1, %i: index, %j: index):
      %z = arith.select %keep, %e, %zero : f32
      tile.yield %z : f32
    } -> !tile.fragment<128x32xf32, #narrow>
    tile.store %s, %o[%c0, %c0] dims [0, 1] : !tile.fragment<128x32xf32, #narrow>, memref<?x?xf32, strided<[?, 1], offset: ?>>
    gpu.return
  }
}
