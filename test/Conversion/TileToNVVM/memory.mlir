// RUN: fovea-opt %s --pass-pipeline='builtin.module(convert-tile-to-nvvm,gpu.module(canonicalize,cse))' | FileCheck %s

#acc = #tile.layout<16x8, registers = [2:1d1, 2:8d0], threads = [4:2d1, 8:1d0]>
#row = #tile.layout<16, registers = [2:8d0], threads = [4:r, 8:1d0]>
!m = memref<?x64xbf16, strided<[?, 1], offset: ?>>

// CHECK-LABEL: gpu.module @kernels
gpu.module @kernels {
  // CHECK: llvm.mlir.global external @fovea_shared_memory() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>

  // By cp.async where rows are aligned, beyond the last one with zeros. Unit u
  // of row i stands at u xor i mod 8; a thread copies units of one column. Else
  // element by element.

  // CHECK-LABEL: gpu.func @swizzled
  // CHECK-SAME:    %[[M:[^:]*]]: memref<?x64xbf16, {{.*}}>, %[[I:[^:]*]]: index
  // CHECK:         llvm.mlir.addressof @fovea_shared_memory
  // CHECK:         %{{.*}}, %[[OFFSET:.*]], %[[SIZES:.*]]:2, %[[STRIDES:.*]]:2 = memref.extract_strided_metadata %[[M]]
  // CHECK:         %[[LEFT:.*]] = arith.subi %[[SIZES]]#0, %[[I]]
  // CHECK:         arith.maxsi %[[LEFT]], %c0{{ }}
  // CHECK:         %[[CLAMPED:.*]] = arith.minsi
  // CHECK:         %[[ROWS:.*]] = arith.index_cast %[[CLAMPED]] : index to i32
  // CHECK:         arith.addi %{{.*}}, %c2048_i32
  // CHECK:         %[[ALIGNED:.*]] = arith.cmpi eq, %{{.*}}, %c0_i64
  // CHECK:         scf.if %[[ALIGNED]] {
  // CHECK:           %[[ROW:.*]] = arith.divui %[[TID:.*]], %c8_i32
  // CHECK:           %[[UNIT:.*]] = arith.remui %[[TID]], %c8_i32
  // CHECK:           %[[COLUMN:.*]] = arith.muli %[[UNIT]], %c8_i32
  // CHECK:           %[[XOR:.*]] = arith.xori
  // CHECK:           %[[AT:.*]] = arith.addi %{{.*}}, %[[XOR]]
  // CHECK:           %[[TO:.*]] = llvm.inttoptr %[[AT]] : i32 to !llvm.ptr<3>
  // CHECK:           %[[IN0:.*]] = arith.cmpi slt, %[[ROW]], %[[ROWS]]
  // CHECK:           %[[BYTES0:.*]] = arith.select %[[IN0]], %c16_i32, %c0_i32
  // CHECK:           nvvm.cp.async.shared.global %[[TO]], %{{.*}}, 16, cache = cg, %[[BYTES0]]
  // CHECK:           %[[ROW1:.*]] = arith.addi %[[ROW]], %c16_i32
  // CHECK:           %[[TO1:.*]] = llvm.getelementptr %[[TO]][2048]
  // CHECK:           arith.cmpi slt, %[[ROW1]], %[[ROWS]]
  // CHECK:           nvvm.cp.async.shared.global %[[TO1]],
  // CHECK-NOT:       nvvm.cp.async.shared.global
  // CHECK:         } else {
  // CHECK:           scf.for %[[E:.*]] = %[[TID]] to %c2048_i32 step %c128_i32
  // CHECK:             arith.divui %[[E]], %c64_i32
  // CHECK:             %[[VALUE:.*]] = scf.if %{{.*}} -> (bf16) {
  // CHECK:             llvm.store %[[VALUE]], %{{.*}} : bf16, !llvm.ptr<3>
  // CHECK:         nvvm.cp.async.commit.group
  // CHECK-NEXT:    nvvm.cp.async.wait.group 0{{$}}
  // CHECK-NEXT:    nvvm.barrier
  gpu.func @swizzled(%m: !m, %i: index) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %t = tile.load %m[%i, %c0] dims [0, 1] {tile.shared_offset = 2048 : i64} : !m -> !tile.shared<32x64xbf16, swizzle = 128>
    gpu.return
  }

  // In a loop what was there is read by all before it is overwritten.

  // CHECK-LABEL: gpu.func @loop
  // CHECK:         scf.for
  // CHECK:           nvvm.barrier
  // CHECK:           nvvm.cp.async.shared.global
  // CHECK:           nvvm.cp.async.wait.group 0{{$}}
  // CHECK-NEXT:      nvvm.barrier
  gpu.func @loop(%m: !m, %n: index) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %i = %c0 to %n step %c1 {
      %t = tile.load %m[%i, %c0] dims [0, 1] {tile.shared_offset = 0 : i64} : !m -> !tile.shared<32x64xbf16, swizzle = 128>
    }
    gpu.return
  }

  // A role's threads count from its first warp, and wait for each other alone.

  // CHECK-LABEL: gpu.func @role
  // CHECK:         %[[TID:.*]] = nvvm.read.ptx.sreg.tid.x
  // CHECK:         } else {
  // CHECK:           arith.subi %[[TID]], %c32_i32
  // CHECK:           nvvm.barrier id = %c2_i32 number_of_threads = %c64_i32
  gpu.func @role(%m: !m) kernel attributes {known_block_size = array<i32: 96, 1, 1>} {
    tile.roles {
      tile.role "a" warps 1 {
      }
      tile.role "b" warps 2 {
        %c0 = arith.constant 0 : index
        %t = tile.load %m[%c0, %c0] dims [0, 1] {tile.shared_offset = 0 : i64} : !m -> !tile.shared<32x64xbf16, swizzle = 128>
      }
    }
    gpu.return
  }

  // Rows of 6 bytes, and rows along another dimension than the last, are read
  // element by element.

  // CHECK-LABEL: gpu.func @elements
  // CHECK-NOT:     nvvm.cp.async.shared.global
  // CHECK:         gpu.return
  gpu.func @elements(%m: !m, %n: memref<3x8xbf16, strided<[8, 1]>>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %t = tile.load %m[%c0, %c0] dims [1, 0] {tile.shared_offset = 0 : i64} : !m -> !tile.shared<32x64xbf16>
    %u = tile.load %n[%c0, %c0] dims [0, 1] {tile.shared_offset = 0 : i64} : memref<3x8xbf16, strided<[8, 1]>> -> !tile.shared<3x3xbf16>
    gpu.return
  }

  // Pairs, rounded together, where the whole tile is within the memref and
  // aligned, else each element that is within it.

  // CHECK-LABEL: gpu.func @pairs
  // CHECK:         scf.if %{{.*}} {
  // CHECK:           %[[P0:.*]] = arith.truncf %{{.*}} : vector<2xf32> to vector<2xbf16>
  // CHECK-NEXT:      llvm.store %[[P0]], %{{.*}} {alignment = 4 : i64} : vector<2xbf16>, !llvm.ptr<1>
  // CHECK:           llvm.store %[[P0]], %{{.*}} {alignment = 4 : i64}
  // CHECK:         } else {
  // CHECK-COUNT-4:   scf.if %{{.*}} {
  // CHECK:         }
  gpu.func @pairs(%m: !m, %i: index, %n: index, %a: f32) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %x = tile.fill %a : !tile.fragment<16x8xf32, #acc>
    %t = tile.map ins(%x : !tile.fragment<16x8xf32, #acc>) {
    ^bb0(%e: f32, %j: index, %k: index):
      %0 = arith.truncf %e : f32 to bf16
      tile.yield %0 : bf16
    } -> !tile.fragment<16x8xbf16, #acc>
    tile.store %t, %m[%i, %c0] dims [0, 1] valid(%n) : !tile.fragment<16x8xbf16, #acc>, !m
    gpu.return
  }

  // One of the threads that hold the same writes it.

  // CHECK-LABEL: gpu.func @replicated
  // CHECK:         %[[PLACE:.*]] = arith.remui %{{.*}}, %c4_i32
  // CHECK:         %[[FIRST:.*]] = arith.cmpi eq, %[[PLACE]], %c0_i32
  // CHECK:         scf.if %[[FIRST]] {
  // CHECK-NEXT:      llvm.store
  // CHECK:         scf.if %[[FIRST]] {
  // CHECK-NEXT:      llvm.store
  gpu.func @replicated(%m: memref<16xf32, strided<[1]>>, %a: f32) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %x = tile.fill %a : !tile.fragment<16xf32, #row>
    tile.store %x, %m[%c0] dims [0] : !tile.fragment<16xf32, #row>, memref<16xf32, strided<[1]>>
    gpu.return
  }
}
