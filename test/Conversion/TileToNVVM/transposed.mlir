// RUN: fovea-opt %s --attach-gpu-target=target=sm_90a --convert-tile-to-nvvm | FileCheck %s
// RUN: fovea-opt %s --attach-gpu-target=target=sm_80 --convert-tile-to-nvvm | FileCheck %s --check-prefix=SM80

#acc = #tile.layout<64x32, registers = [2:1d1, 2:8d0, 4:8d1], threads = [4:2d1, 8:1d0, 4:16d0]>
#odd = #tile.layout<64x24, registers = [2:1d1, 2:8d0, 3:8d1], threads = [4:2d1, 8:1d0, 4:16d0]>
!m = memref<?x?xf32, strided<[?, 1], offset: ?>>

gpu.module @kernels {
  // Four matrices at a time on Hopper, of two groups of columns; else each goes
  // through the warp's registers.
  // CHECK-LABEL: gpu.func @narrow
  // CHECK-COUNT-2: nvvm.stmatrix {{.*}} {eltType = #nvvm.ld_st_matrix_elt_type<b16>, layout = #nvvm.mma_layout<col>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>} : !llvm.ptr<3>, i32, i32, i32, i32
  // CHECK-NOT: nvvm.stmatrix
  // CHECK: nvvm.barrier
  // SM80-LABEL: gpu.func @narrow
  // SM80-COUNT-8: movmatrix.sync.aligned.m8n8.trans.b16
  // SM80-NOT: movmatrix
  gpu.func @narrow(%x: !tile.fragment<64x32xbf16, #acc>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %t = tile.to_shared %x transposed {tile.shared_offset = 0 : i64} : !tile.fragment<64x32xbf16, #acc> -> !tile.shared<32x64xbf16, swizzle = 128>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @wide
  // CHECK-COUNT-16: llvm.store {{.*}} : f32, !llvm.ptr<3>
  gpu.func @wide(%x: !tile.fragment<64x32xf32, #acc>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %t = tile.to_shared %x transposed {tile.shared_offset = 0 : i64} : !tile.fragment<64x32xf32, #acc> -> !tile.shared<32x64xf32>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @add
  // CHECK-COUNT-16: llvm.atomicrmw fadd %{{.*}}, %{{.*}} syncscope("device") monotonic : !llvm.ptr<1>, f32
  gpu.func @add(%x: !tile.fragment<64x32xf32, #acc>, %o: !m, %i: index) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    tile.store add %x, %o[%i, %i] dims [0, 1] : !tile.fragment<64x32xf32, #acc>, !m
    gpu.return
  }

  // Of elements of 16 bits four matrices at a time, too; others are read one by
  // one, at the places that `tile.to_shared` writes.
  // CHECK-LABEL: gpu.func @read_narrow
  // CHECK-COUNT-2: nvvm.ldmatrix {{.*}} {eltType = #nvvm.ld_st_matrix_elt_type<b16>, layout = #nvvm.mma_layout<col>, num = 4 : i32, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>}
  // CHECK-NOT: nvvm.ldmatrix
  // CHECK: gpu.return
  // SM80-LABEL: gpu.func @read_narrow
  // SM80-COUNT-2: nvvm.ldmatrix
  // SM80-NOT: nvvm.ldmatrix
  // SM80: gpu.return
  gpu.func @read_narrow(%t: !tile.shared<32x64xbf16, swizzle = 128>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %x = tile.from_shared %t transposed : !tile.shared<32x64xbf16, swizzle = 128> -> !tile.fragment<64x32xbf16, #acc>
    %u = tile.to_shared %x {tile.shared_offset = 4096 : i64} : !tile.fragment<64x32xbf16, #acc> -> !tile.shared<64x32xbf16, swizzle = 64>
    gpu.return
  }

  // A last group of columns has two matrices.
  // CHECK-LABEL: gpu.func @read_odd
  // CHECK: nvvm.ldmatrix {{.*}} num = 4 : i32
  // CHECK: nvvm.ldmatrix {{.*}} num = 2 : i32
  // CHECK-NOT: nvvm.ldmatrix
  // CHECK: gpu.return
  gpu.func @read_odd(%t: !tile.shared<24x64xbf16, swizzle = 128>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %x = tile.from_shared %t transposed : !tile.shared<24x64xbf16, swizzle = 128> -> !tile.fragment<64x24xbf16, #odd>
    %u = tile.to_shared %x {tile.shared_offset = 4096 : i64} : !tile.fragment<64x24xbf16, #odd> -> !tile.shared<64x24xbf16>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @read_wide
  // CHECK-NOT: nvvm.ldmatrix
  // CHECK-COUNT-16: llvm.load {{.*}} : !llvm.ptr<3> -> f32
  gpu.func @read_wide(%t: !tile.shared<32x64xf32>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %x = tile.from_shared %t transposed : !tile.shared<32x64xf32> -> !tile.fragment<64x32xf32, #acc>
    %u = tile.to_shared %x {tile.shared_offset = 8192 : i64} : !tile.fragment<64x32xf32, #acc> -> !tile.shared<64x32xf32>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @read_booleans
  // CHECK-COUNT-16: llvm.load {{.*}} : !llvm.ptr<3> -> i8
  gpu.func @read_booleans(%t: !tile.shared<32x64xi1>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %x = tile.from_shared %t transposed : !tile.shared<32x64xi1> -> !tile.fragment<64x32xi1, #acc>
    %u = tile.to_shared %x {tile.shared_offset = 8192 : i64} : !tile.fragment<64x32xi1, #acc> -> !tile.shared<64x32xi1>
    gpu.return
  }
}
