// RUN: fovea-opt %s --pass-pipeline='builtin.module(convert-tile-to-nvvm,gpu.module(canonicalize,cse))' | FileCheck %s

#acc = #tile.layout<16x16, registers = [2:1d1, 2:8d0, 2:8d1], threads = [4:2d1, 8:1d0]>
#acc8 = #tile.layout<16x8, registers = [2:1d1, 2:8d0], threads = [4:2d1, 8:1d0]>
!m = memref<?x64xbf16, strided<[?, 1], offset: ?>>

gpu.module @kernels {
  // ldmatrix reads 16 rows of A, and 16 columns of B, in one step of 16 along
  // K; rows of B are columns here. The second step flips bits of the address.

  // CHECK-LABEL: gpu.func @shared
  // CHECK:         %[[A0:.*]] = nvvm.ldmatrix %[[AT:.*]] {eltType = #nvvm.ld_st_matrix_elt_type<b16>, layout = #nvvm.mma_layout<row>, num = 4 : i32,
  // CHECK:         %[[A00:.*]] = llvm.extractvalue %[[A0]][0]
  // CHECK:         %[[A03:.*]] = llvm.extractvalue %[[A0]][3]
  // CHECK:         %[[B0:.*]] = nvvm.ldmatrix %{{.*}} {eltType = #nvvm.ld_st_matrix_elt_type<b16>, layout = #nvvm.mma_layout<row>, num = 4 : i32,
  // CHECK:         %[[B00:.*]] = llvm.extractvalue %[[B0]][0]
  // CHECK:         %[[B01:.*]] = llvm.extractvalue %[[B0]][1]
  // CHECK:         %[[B02:.*]] = llvm.extractvalue %[[B0]][2]
  // CHECK:         %[[B03:.*]] = llvm.extractvalue %[[B0]][3]
  // CHECK:         %[[C0:.*]] = nvvm.mma.sync A[%[[A00]], %{{.*}}, %{{.*}}, %[[A03]]] B[%[[B00]], %[[B01]]] C[%[[Z:[^,]*]], %[[Z]], %[[Z]], %[[Z]]] {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, multiplicandAPtxType = #nvvm.mma_type<bf16>, multiplicandBPtxType = #nvvm.mma_type<bf16>, shape = #nvvm.shape<m = 16, n = 8, k = 16>}
  // CHECK:         %[[C00:.*]] = llvm.extractvalue %[[C0]][0]
  // CHECK:         nvvm.mma.sync A[%[[A00]], {{.*}}] B[%[[B02]], %[[B03]]]
  // CHECK:         %[[FLIPPED:.*]] = arith.xori %{{.*}}, %c32_i32
  // CHECK:         nvvm.ldmatrix
  // CHECK:         nvvm.ldmatrix
  // CHECK:         nvvm.mma.sync {{.*}} C[%[[C00]],
  // CHECK:         nvvm.mma.sync
  // CHECK-NOT:     nvvm.mma.sync
  gpu.func @shared(%m: !m) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %a = tile.load %m[%c0, %c0] dims [0, 1] {tile.shared_offset = 0 : i64} : !m -> !tile.shared<16x32xbf16, swizzle = 64>
    %b = tile.load %m[%c0, %c0] dims [0, 1] {tile.shared_offset = 1024 : i64} : !m -> !tile.shared<16x32xbf16, swizzle = 64>
    %s = tile.mma mma_sync %a, %b transpose_b : !tile.shared<16x32xbf16, swizzle = 64>, !tile.shared<16x32xbf16, swizzle = 64> -> !tile.fragment<16x16xf32, #acc>
    %t = tile.map ins(%s : !tile.fragment<16x16xf32, #acc>) {
    ^bb0(%e: f32, %j: index, %k: index):
      %0 = arith.truncf %e : f32 to bf16
      tile.yield %0 : bf16
    } -> !tile.fragment<16x16xbf16, #acc>
    tile.store %t, %m[%c0, %c0] dims [0, 1] : !tile.fragment<16x16xbf16, #acc>, !m
    gpu.return
  }

  // A in registers is packed as it lies. B's rows run along K: transposed
  // matrices. Eight columns are two matrices.

  // CHECK-LABEL: gpu.func @registers
  // CHECK-SAME:    %{{[^:]*}}: memref<{{.*}}>, %[[X:[^:]*]]: f32
  // CHECK:         %[[V0:.*]] = llvm.insertelement %[[X]], %{{.*}}[%c0_i32 : i32] : vector<2xf32>
  // CHECK:         %[[V1:.*]] = llvm.insertelement %[[X]], %[[V0]][%c1_i32 : i32]
  // CHECK:         %[[PAIR:.*]] = arith.truncf %[[V1]] : vector<2xf32> to vector<2xf16>
  // CHECK:         %[[B:.*]] = nvvm.ldmatrix %{{.*}} {eltType = #nvvm.ld_st_matrix_elt_type<b16>, layout = #nvvm.mma_layout<col>, num = 2 : i32,
  // CHECK:         %[[B0:.*]] = llvm.bitcast %{{.*}} : i32 to vector<2xf16>
  // CHECK:         nvvm.mma.sync A[%[[PAIR]], %[[PAIR]], %[[PAIR]], %[[PAIR]]] B[%[[B0]], %{{.*}}] C[%[[X]], %[[X]], %[[X]], %[[X]]]
  gpu.func @registers(%m: memref<16x8xf16, strided<[8, 1]>>, %x: f32, %o: memref<16x8xf32, strided<[8, 1]>>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %s = tile.fill %x : !tile.fragment<16x16xf32, #acc>
    %a = tile.map ins(%s : !tile.fragment<16x16xf32, #acc>) {
    ^bb0(%e: f32, %j: index, %k: index):
      %0 = arith.truncf %e : f32 to f16
      tile.yield %0 : f16
    } -> !tile.fragment<16x16xf16, #acc>
    %b = tile.load %m[%c0, %c0] dims [0, 1] {tile.shared_offset = 0 : i64} : memref<16x8xf16, strided<[8, 1]>> -> !tile.shared<16x8xf16>
    %c = tile.fill %x : !tile.fragment<16x8xf32, #acc8>
    %d = tile.mma mma_sync %a, %b into %c : !tile.fragment<16x16xf16, #acc>, !tile.shared<16x8xf16>, !tile.fragment<16x8xf32, #acc8> -> !tile.fragment<16x8xf32, #acc8>
    tile.store %d, %o[%c0, %c0] dims [0, 1] : !tile.fragment<16x8xf32, #acc8>, memref<16x8xf32, strided<[8, 1]>>
    gpu.return
  }

  // By fma: a loop over K in steps of 16 bytes, a row of A and rows of B read
  // as vectors.

  // CHECK-LABEL: gpu.func @fma_shared
  // CHECK:         %[[L:.*]]:4 = scf.for %[[K:.*]] = %c0_i32 to %c32_i32 step %c4_i32 iter_args(%[[S:[^ ]*]] = %cst
  // CHECK:           %[[MOVED:.*]] = arith.muli %[[K]], %c4_i32
  // CHECK-COUNT-4:   llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
  // CHECK:           %[[F0:.*]] = llvm.intr.fma(%{{.*}}, %{{.*}}, %[[S]])
  // CHECK:           %[[F1:.*]] = llvm.intr.fma(%{{.*}}, %{{.*}}, %[[F0]])
  // CHECK-COUNT-14:  llvm.intr.fma
  // CHECK-NOT:       llvm.intr.fma
  gpu.func @fma_shared(%m: memref<?x32xf32, strided<[?, 1], offset: ?>>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %a = tile.load %m[%c0, %c0] dims [0, 1] {tile.shared_offset = 0 : i64} : memref<?x32xf32, strided<[?, 1], offset: ?>> -> !tile.shared<16x32xf32>
    %b = tile.load %m[%c0, %c0] dims [0, 1] {tile.shared_offset = 1024 : i64} : memref<?x32xf32, strided<[?, 1], offset: ?>> -> !tile.shared<8x32xf32>
    %s = tile.mma fma %a, %b transpose_b : !tile.shared<16x32xf32>, !tile.shared<8x32xf32> -> !tile.fragment<16x8xf32, #acc8>
    tile.store %s, %m[%c0, %c0] dims [0, 1] : !tile.fragment<16x8xf32, #acc8>, memref<?x32xf32, strided<[?, 1], offset: ?>>
    gpu.return
  }

  // Elements of A that another lane of the row holds come by shuffles: those of
  // column 2 * l + r from lane l of four, register r.

  // CHECK-LABEL: gpu.func @fma_registers
  // CHECK:         %[[LANE:.*]] = arith.andi %{{.*}}, %c31_i32
  // CHECK:         %[[FIRST:.*]] = arith.andi %[[LANE]], %c28_i32
  // CHECK:         nvvm.shfl.sync idx %{{.*}}, %{{.*}}, %[[FIRST]], %c31_i32
  // CHECK:         nvvm.shfl.sync idx %{{.*}}, %{{.*}}, %[[FIRST]], %c31_i32
  // CHECK:         llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xf32>
  // CHECK-COUNT-4: llvm.intr.fma
  // CHECK-COUNT-2: nvvm.shfl.sync idx %{{.*}}, %{{.*}}, %[[FIRST]], %c31_i32
  // CHECK:         %[[SECOND:.*]] = arith.ori %[[FIRST]], %c1_i32
  // CHECK:         nvvm.shfl.sync idx %{{.*}}, %{{.*}}, %[[SECOND]], %c31_i32
  gpu.func @fma_registers(%m: memref<8x8xf32, strided<[8, 1]>>, %o: memref<16x8xf32, strided<[8, 1]>>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %a = tile.load %o[%c0, %c0] dims [0, 1] : memref<16x8xf32, strided<[8, 1]>> -> !tile.fragment<16x8xf32, #acc8>
    %b = tile.load %m[%c0, %c0] dims [0, 1] {tile.shared_offset = 0 : i64} : memref<8x8xf32, strided<[8, 1]>> -> !tile.shared<8x8xf32>
    %s = tile.mma fma %a, %b : !tile.fragment<16x8xf32, #acc8>, !tile.shared<8x8xf32> -> !tile.fragment<16x8xf32, #acc8>
    tile.store %s, %o[%c0, %c0] dims [0, 1] : !tile.fragment<16x8xf32, #acc8>, memref<16x8xf32, strided<[8, 1]>>
    gpu.return
  }
}
