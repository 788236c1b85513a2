// RUN: fovea-opt %s --convert-tile-to-nvvm --split-input-file --verify-diagnostics

#acc = #tile.layout<64x64, registers = [2:1d1, 2:8d0, 8:8d1], threads = [4:2d1, 8:1d0, 4:16d0]>
!t = !tile.shared<64x64xbf16>
!ring = !tile.ring<1 x !t>
gpu.module @kernels {
  gpu.func @swizzle() kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %r = tile.ring {tile.shared_offset = 0 : i64, tile.barrier_offset = 65536 : i64} : !ring
    %t = tile.wait %r[%c0] : !ring
    // expected-error@+2 {{by wgmma expected an operand with a swizzle, got '!tile.shared<64x64xbf16>'}}
    // expected-error@+1 {{failed to legalize}}
    %s = tile.mma wgmma %t, %t transpose_b : !t, !t -> !tile.fragment<64x64xf32, #acc>
    tile.release %r[%c0] : !ring
    gpu.return
  }
}

// -----

#acc = #tile.layout<64x64, registers = [2:1d1, 2:8d0, 8:8d1], threads = [4:2d1, 8:1d0, 4:16d0]>
!t = !tile.shared<64x72xbf16, swizzle = 128>
!ring = !tile.ring<1 x !t>
gpu.module @kernels {
  gpu.func @inner() kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %r = tile.ring {tile.shared_offset = 0 : i64, tile.barrier_offset = 65536 : i64} : !ring
    %t = tile.wait %r[%c0] : !ring
    // expected-error@+2 {{by wgmma expected an inner size that is a multiple of 16 and an outer one that is of 8, got 72 and 64 in '!tile.shared<64x72xbf16, swizzle = 128>'}}
    // expected-error@+1 {{failed to legalize}}
    %s = tile.mma wgmma %t, %t transpose_b : !t, !t -> !tile.fragment<64x64xf32, #acc>
    tile.release %r[%c0] : !ring
    gpu.return
  }
}

// -----

#acc = #tile.layout<64x64, registers = [2:1d1, 2:8d0, 8:8d1], threads = [4:2d1, 8:1d0, 4:16d0]>
!a = !tile.shared<64x128xbf16, swizzle = 128, runs = 16>
!b = !tile.shared<64x128xbf16, swizzle = 128>
gpu.module @kernels {
  gpu.func @left_runs(%a: !a, %b: !b) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    // expected-error@+2 {{by wgmma expected a left operand that is not in runs, got '!tile.shared<64x128xbf16, swizzle = 128, runs = 16>'}}
    // expected-error@+1 {{failed to legalize}}
    %s = tile.mma wgmma %a, %b transpose_b : !a, !b -> !tile.fragment<64x64xf32, #acc>
    gpu.return
  }
}

// -----

// Two warp groups share 192 columns, which are three runs.
!a = !tile.shared<64x128xbf16, swizzle = 128>
!c = !tile.shared<192x128xbf16, swizzle = 128, runs = 64>
gpu.module @kernels {
  gpu.func @part_of_a_run(%a: !a, %c: !c) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    // expected-error@+2 {{by wgmma expected warp groups to share whole runs of the right operand's rows, got 96 of '!tile.shared<192x128xbf16, swizzle = 128, runs = 64>' each}}
    // expected-error@+1 {{failed to legalize}}
    %s = tile.mma wgmma %a, %c transpose_b : !a, !c -> !tile.fragment<64x192xf32, #tile.layout<64x192, registers = [2:1d1, 2:8d0, 12:8d1], threads = [4:2d1, 8:1d0, 4:16d0, 2:96d1]>>
    gpu.return
  }
}

// -----

#acc = #tile.layout<64x64, registers = [2:1d1, 2:8d0, 8:8d1], threads = [4:2d1, 8:1d0, 4:16d0]>
!a = !tile.fragment<64x48xbf16, #tile.layout<64x48, registers = [2:1d1, 2:8d0, 6:8d1], threads = [4:2d1, 8:1d0, 4:16d0]>>
!b = !tile.shared<48x64xbf16, swizzle = 128, runs = 24>
gpu.module @kernels {
  gpu.func @steps_cross_runs(%a: !a, %b: !b) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    // expected-error@+2 {{by wgmma expected runs of 8 rows or of a multiple of 16, got '!tile.shared<48x64xbf16, swizzle = 128, runs = 24>'}}
    // expected-error@+1 {{failed to legalize}}
    %s = tile.mma wgmma %a, %b : !a, !b -> !tile.fragment<64x64xf32, #acc>
    gpu.return
  }
}

// -----

#wide = #tile.layout<64x320, registers = [2:1d1, 2:8d0, 40:8d1], threads = [4:2d1, 8:1d0, 4:16d0]>
!a = !tile.shared<64x64xbf16, swizzle = 128>
!t = !tile.shared<320x64xbf16, swizzle = 128>
!ring = !tile.ring<1 x !a>
!many = !tile.ring<1 x !t>
gpu.module @kernels {
  gpu.func @columns() kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %r = tile.ring {tile.shared_offset = 0 : i64, tile.barrier_offset = 65536 : i64} : !ring
    %m = tile.ring {tile.shared_offset = 8192 : i64, tile.barrier_offset = 65552 : i64} : !many
    %a = tile.wait %r[%c0] : !ring
    %t = tile.wait %m[%c0] : !many
    // expected-error@+2 {{by wgmma expected at most 256 columns, got 320}}
    // expected-error@+1 {{failed to legalize}}
    %s = tile.mma wgmma %a, %t transpose_b : !a, !t -> !tile.fragment<64x320xf32, #wide>
    tile.release %r[%c0] : !ring
    tile.release %m[%c0] : !many
    gpu.return
  }
}

// -----

#blocked = #tile.layout<64x64, registers = [8:1d1, 4:16d0], threads = [8:8d1, 16:1d0]>
!t = !tile.shared<64x64xbf16, swizzle = 128>
!ring = !tile.ring<1 x !t>
gpu.module @kernels {
  gpu.func @layout() kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %r = tile.ring {tile.shared_offset = 0 : i64, tile.barrier_offset = 65536 : i64} : !ring
    %t = tile.wait %r[%c0] : !ring
    // expected-error@+2 {{by wgmma expected a result of warp groups that own 64 rows each, got}}
    // expected-error@+1 {{failed to legalize}}
    %s = tile.mma wgmma %t, %t transpose_b : !t, !t -> !tile.fragment<64x64xf32, #blocked>
    tile.release %r[%c0] : !ring
    gpu.return
  }
}

// -----

!t = !tile.shared<64x64xbf16, swizzle = 128>
!ring = !tile.ring<1 x !t>
gpu.module @kernels {
  gpu.func @release() kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    // expected-error@+2 {{expected a role that releases its slots}}
    // expected-error@+1 {{failed to legalize}}
    %r = tile.ring {tile.shared_offset = 0 : i64, tile.barrier_offset = 65536 : i64} : !ring
    %c0 = arith.constant 0 : index
    %s = tile.acquire %r[%c0] : !ring
    gpu.return
  }
}

// -----

!t = !tile.shared<64x64xbf16, swizzle = 128>
!ring = !tile.ring<1 x !t>
gpu.module @kernels {
  gpu.func @memref(%m: memref<?x?xbf16>) kernel attributes {known_block_size = array<i32: 160, 1, 1>} {
    %c0 = arith.constant 0 : index
    %r = tile.ring {tile.shared_offset = 0 : i64, tile.barrier_offset = 65536 : i64} : !ring
    tile.roles {
      tile.role "load" warps 1 single {
        %t = tile.acquire %r[%c0] : !ring
        // expected-error@+2 {{by one thread expected a tensor map to copy by, got 'memref<?x?xbf16>'}}
        // expected-error@+1 {{failed to legalize}}
        tile.load_async %m[%c0, %c0] dims [0, 1] into %t signals %r[%c0] : memref<?x?xbf16>, !ring
      }
      tile.role "compute" warps 4 {
        tile.release %r[%c0] : !ring
      }
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @budget() kernel attributes {known_block_size = array<i32: 384, 1, 1>} {
    // expected-error@+1 {{expected register budgets of at most 65536 registers in all threads together, got 66560}}
    tile.roles {
      tile.role "load" warps 4 registers 40 single {
      }
      tile.role "compute" warps 8 registers 240 {
      }
    }
    gpu.return
  }
}

// -----

!map = !tile.tensor_map<2 x !tile.shared<64x64xi64, swizzle = 128>>
func.func @kind(%t: memref<?x?xi64>) {
  // expected-error@+1 {{expected elements of f16, bf16, f32, f64 or an integer of 1, 8, 16 or 32 bits, got 'i64'}}
  %map = tile.tensor_map %t dims [0, 1] : memref<?x?xi64> -> !map
  return
}

// -----

#acc = #tile.layout<64x64, registers = [2:1d1, 2:8d0, 8:8d1], threads = [4:2d1, 8:1d0, 4:16d0]>
gpu.module @kernels {
  gpu.func @to_memref(%m: memref<?x64xbf16>, %x: bf16, %i: index) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %v = tile.fill %x : !tile.fragment<64x64xbf16, #acc>
    %t = tile.to_shared %v {tile.shared_offset = 0 : i64} : !tile.fragment<64x64xbf16, #acc> -> !tile.shared<64x64xbf16>
    // expected-error@+2 {{expected a tensor map to copy by, got 'memref<?x64xbf16>'}}
    // expected-error@+1 {{failed to legalize operation 'tile.store_async' that was explicitly marked illegal}}
    tile.store_async %t, %m[%i, %i] dims [0, 1] : !tile.shared<64x64xbf16>, memref<?x64xbf16>
    gpu.return
  }
}

// -----

#acc = #tile.layout<64x64, registers = [2:1d1, 2:8d0, 8:8d1], threads = [4:2d1, 8:1d0, 4:16d0]>
gpu.module @kernels {
  gpu.func @no_place(%x: bf16) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %v = tile.fill %x : !tile.fragment<64x64xbf16, #acc>
    // expected-error@+1 {{has no place in shared memory; see convert-tile-launch-to-gpu}}
    %t = tile.to_shared %v : !tile.fragment<64x64xbf16, #acc> -> !tile.shared<64x64xbf16>
    gpu.return
  }
}
