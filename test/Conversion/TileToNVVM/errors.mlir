// RUN: fovea-opt %s --pass-pipeline='builtin.module(convert-tile-to-nvvm)' --verify-diagnostics --split-input-file

gpu.module @kernels {
  gpu.func @layout(%a: f32) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    // expected-error@+1 {{has a fragment without a layout, '!tile.fragment<16xf32>'; assign layouts first}}
    %z = tile.fill %a : !tile.fragment<16xf32>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @block(%a: f32) kernel {
    // expected-error@+1 {{stands in a kernel without a known block size}}
    %z = tile.fill %a : !tile.fragment<16xf32>
    gpu.return
  }
}

// -----

#row = #tile.layout<16, registers = [2:8d0], threads = [4:r, 8:1d0]>
gpu.module @kernels {
  gpu.func @threads(%a: f32) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    // expected-error@+1 {{has a fragment over 32 threads, but 64 run it}}
    %z = tile.fill %a : !tile.fragment<16xf32, #row>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @place(%m: memref<16x8xf32, strided<[8, 1]>>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    // expected-error@+1 {{has no place in shared memory; see convert-tile-launch-to-gpu}}
    %z = tile.load %m[%c0, %c0] dims [0, 1] : memref<16x8xf32, strided<[8, 1]>> -> !tile.shared<16x8xf32>
    gpu.return
  }
}

// -----

#acc = #tile.layout<16x8, registers = [2:1d1, 2:8d0], threads = [4:2d1, 8:1d0]>
gpu.module @kernels {
  gpu.func @inner(%m: memref<16x8xf16, strided<[8, 1]>>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %a = tile.load %m[%c0, %c0] dims [0, 1] {tile.shared_offset = 0 : i64} : memref<16x8xf16, strided<[8, 1]>> -> !tile.shared<16x8xf16>
    %b = tile.load %m[%c0, %c0] dims [0, 1] {tile.shared_offset = 1024 : i64} : memref<16x8xf16, strided<[8, 1]>> -> !tile.shared<8x8xf16>
    // expected-error@+2 {{by mma_sync expected multiples of 16 along the inner dimension, got 8}}
    // expected-error@+1 {{failed to legalize operation 'tile.mma' that was explicitly marked illegal}}
    %s = tile.mma mma_sync %a, %b : !tile.shared<16x8xf16>, !tile.shared<8x8xf16> -> !tile.fragment<16x8xf32, #acc>
    gpu.return
  }
}

// -----

#acc = #tile.layout<16x16, registers = [2:1d1, 2:8d0, 2:8d1], threads = [4:2d1, 8:1d0]>
gpu.module @kernels {
  gpu.func @left_of_bytes(%m: memref<16x16xf16, strided<[16, 1]>>, %k: memref<16x16xi8, strided<[16, 1]>>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %a = tile.load %m[%c0, %c0] dims [0, 1] {tile.shared_offset = 0 : i64} : memref<16x16xf16, strided<[16, 1]>> -> !tile.shared<16x16xf16>
    %b = tile.load %k[%c0, %c0] dims [0, 1] {tile.shared_offset = 1024 : i64} : memref<16x16xi8, strided<[16, 1]>> -> !tile.shared<16x16xi8>
    // expected-error@+2 {{by mma_sync expected a left operand in registers beside bytes along it, got}}
    // expected-error@+1 {{failed to legalize}}
    %s = tile.mma mma_sync %a, %b from f8E4M3FN transpose_b : !tile.shared<16x16xf16>, !tile.shared<16x16xi8> -> !tile.fragment<16x16xf32, #acc>
    gpu.return
  }
}

// -----

#acc = #tile.layout<16x8, registers = [2:1d1, 2:8d0], threads = [4:2d1, 8:1d0]>
gpu.module @kernels {
  gpu.func @columns_of_bytes(%m: memref<16x16xf16, strided<[16, 1]>>, %v: memref<16x16xi8, strided<[16, 1]>>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %a = tile.load %m[%c0, %c0] dims [0, 1] {tile.shared_offset = 0 : i64} : memref<16x16xf16, strided<[16, 1]>> -> !tile.shared<16x16xf16>
    %b = tile.load %v[%c0, %c0] dims [0, 1] {tile.shared_offset = 1024 : i64} : memref<16x16xi8, strided<[16, 1]>> -> !tile.shared<16x8xi8>
    // expected-error@+2 {{by mma_sync, of bytes, expected whole fragments of 16 rows and 16 columns a warp, got}}
    // expected-error@+1 {{failed to legalize}}
    %s = tile.mma mma_sync %a, %b from f8E4M3FN : !tile.shared<16x16xf16>, !tile.shared<16x8xi8> -> !tile.fragment<16x8xf32, #acc>
    gpu.return
  }
}

// -----

#other = #tile.layout<16x8, registers = [2:1d0, 2:4d1], threads = [4:1d1, 8:2d0]>
gpu.module @kernels {
  gpu.func @result(%m: memref<16x16xf16, strided<[16, 1]>>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %a = tile.load %m[%c0, %c0] dims [0, 1] {tile.shared_offset = 0 : i64} : memref<16x16xf16, strided<[16, 1]>> -> !tile.shared<16x16xf16>
    %b = tile.load %m[%c0, %c0] dims [0, 1] {tile.shared_offset = 1024 : i64} : memref<16x16xf16, strided<[16, 1]>> -> !tile.shared<16x8xf16>
    // expected-error@+2 {{by mma_sync expected a result in whole fragments of 16 rows and 8 columns a warp, got}}
    // expected-error@+1 {{failed to legalize operation 'tile.mma' that was explicitly marked illegal}}
    %s = tile.mma mma_sync %a, %b : !tile.shared<16x16xf16>, !tile.shared<16x8xf16> -> !tile.fragment<16x8xf32, #other>
    gpu.return
  }
}

// -----

#acc = #tile.layout<16x8, registers = [2:1d1, 2:8d0], threads = [4:2d1, 8:1d0]>
gpu.module @kernels {
  gpu.func @kind(%m: memref<16x16xf16, strided<[16, 1]>>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %a = tile.load %m[%c0, %c0] dims [0, 1] {tile.shared_offset = 0 : i64} : memref<16x16xf16, strided<[16, 1]>> -> !tile.shared<16x16xf16>
    %b = tile.load %m[%c0, %c0] dims [0, 1] {tile.shared_offset = 1024 : i64} : memref<16x16xf16, strided<[16, 1]>> -> !tile.shared<16x8xf16>
    // expected-error@+2 {{has no kind; assign layouts first}}
    // expected-error@+1 {{failed to legalize operation 'tile.mma' that was explicitly marked illegal}}
    %s = tile.mma %a, %b : !tile.shared<16x16xf16>, !tile.shared<16x8xf16> -> !tile.fragment<16x8xf32, #acc>
    gpu.return
  }
}

// -----

#wide = #tile.layout<32x3, registers = [], threads = [3:1d1, 32:1d0]>
#one = #tile.layout<32, registers = [], threads = [3:r, 32:1d0]>
gpu.module @kernels {
  gpu.func @three(%m: memref<32x3xf32, strided<[3, 1]>>, %x: f32) kernel attributes {known_block_size = array<i32: 96, 1, 1>} {
    %c0 = arith.constant 0 : index
    %a = tile.load %m[%c0, %c0] dims [0, 1] : memref<32x3xf32, strided<[3, 1]>> -> !tile.fragment<32x3xf32, #wide>
    %z = tile.fill %x : !tile.fragment<32xf32, #one>
    // expected-error@+2 {{expected the threads along dimension 1 to differ in bits of their number, got #tile.layout<32x3, registers = [], threads = [3:1d1, 32:1d0]>}}
    // expected-error@+1 {{failed to legalize operation 'tile.reduce' that was explicitly marked illegal}}
    %r = tile.reduce add %a, %z dim 1 : !tile.fragment<32x3xf32, #wide> -> !tile.fragment<32xf32, #one>
    gpu.return
  }
}

// -----

#by_row = #tile.layout<32x8, registers = [8:1d1], threads = [32:1d0]>
gpu.module @kernels {
  gpu.func @diagonals(%a: f32) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %x = tile.fill %a : !tile.fragment<32x8xf32, #by_row>
    // expected-error@+2 {{expected the layout of an accumulator, got #tile.layout<32x8, registers = [8:1d1], threads = [32:1d0]>}}
    // expected-error@+1 {{failed to legalize}}
    %d = tile.sum_diagonals %x : !tile.fragment<32x8xf32, #by_row>
    gpu.return
  }
}
