// RUN: fovea-opt %s --attach-gpu-target=target=sm_90a --convert-tile-to-nvvm --canonicalize --cse | FileCheck %s

gpu.module @kernels {
  // A thread has 8 bytes of every eighth row: rows of one phase of the swizzle, so
  // that one address serves all. It reads the first eight units, and the other eight
  // before it writes the first. Every warp makes the slot full, and, when it has read
  // them, the bytes' slot empty.
  // CHECK-LABEL: gpu.func @into
  // CHECK:       mbarrier.init.shared::cta.b64 {{.*}}, %c1_i32
  // CHECK:       mbarrier.init.shared::cta.b64 {{.*}}, %c4_i32
  // CHECK:       mbarrier.init.shared::cta.b64 {{.*}}, %c4_i32
  // CHECK:       prefetch.tensormap
  // CHECK:       nvvm.setmaxregister decrease 128{{$}}
  // CHECK:         mbarrier.try_wait.parity
  // CHECK:         mbarrier.try_wait.parity
  // CHECK-COUNT-16: llvm.load {{.*}} {alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xi32>
  // CHECK-NOT:     llvm.load
  // CHECK:         cvt.rn.f16x2.e4m3x2 first, low{{.*}}cvt.f32.f16 p, a{{.*}}cvt.rn.bf16x2.f32 $0, q, p
  // CHECK:         llvm.store {{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
  // CHECK-COUNT-15: llvm.store {{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
  // CHECK-NOT:     llvm.store
  // CHECK:         fence.proxy.async.shared::cta
  // CHECK:         nvvm.bar.warp.sync
  // CHECK:         @first mbarrier.arrive.shared::cta.b64
  // CHECK:         nvvm.bar.warp.sync
  // CHECK:         @first mbarrier.arrive.shared::cta.b64
  gpu.func @into(%map: !tile.tensor_map<2 x !tile.shared<128x128xi8, swizzle = 128>>, %n: index) kernel attributes {known_block_size = array<i32: 384, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %bytes = tile.ring {tile.shared_offset = 0 : i64, tile.barrier_offset = 49152 : i64} : !tile.ring<1 x !tile.shared<128x128xi8, swizzle = 128>>
    %wide = tile.ring {tile.shared_offset = 16384 : i64, tile.barrier_offset = 49168 : i64} : !tile.ring<1 x !tile.shared<128x128xbf16, swizzle = 128>>
    tile.roles {
      tile.role "load" warps 4 registers 136 single {
        %s = tile.acquire %bytes[%n] : !tile.ring<1 x !tile.shared<128x128xi8, swizzle = 128>>
        tile.load_async %map[%c0, %c0] dims [0, 1] into %s signals %bytes[%n] : !tile.tensor_map<2 x !tile.shared<128x128xi8, swizzle = 128>>, !tile.ring<1 x !tile.shared<128x128xi8, swizzle = 128>>
      }
      tile.role "widen" warps 4 registers 128 {
        %full = tile.wait %bytes[%n] : !tile.ring<1 x !tile.shared<128x128xi8, swizzle = 128>>
        %slot = tile.acquire %wide[%n] : !tile.ring<1 x !tile.shared<128x128xbf16, swizzle = 128>>
        tile.widen_into %full from f8E4M3FN warps 4 into %slot signals %wide[%n] : !tile.shared<128x128xi8, swizzle = 128>, !tile.ring<1 x !tile.shared<128x128xbf16, swizzle = 128>>
        tile.release %bytes[%n] : !tile.ring<1 x !tile.shared<128x128xi8, swizzle = 128>>
      }
      tile.role "compute" warps 4 registers 240 {
        %k = tile.wait %wide[%n] : !tile.ring<1 x !tile.shared<128x128xbf16, swizzle = 128>>
        tile.release %wide[%n] : !tile.ring<1 x !tile.shared<128x128xbf16, swizzle = 128>>
      }
    }
    gpu.return
  }

  // In a tile of the op's own, to f16 by one instruction for two: 12 units of a row
  // do not divide 128 threads, of which 120 have units; the last row of 41 is that of
  // the first 12.
  // CHECK-LABEL: gpu.func @own
  // CHECK:         %[[HAS:.*]] = arith.cmpi ult, %{{.*}}, %c120_i32
  // CHECK:         scf.if %[[HAS]]
  // CHECK-COUNT-4:   cvt.rn.f16x2.e4m3x2 $0, low
  // CHECK:           %[[LAST:.*]] = arith.cmpi ult, %{{.*}}, %c8_i32
  // CHECK:           scf.if %[[LAST]]
  // CHECK:             cvt.rn.f16x2.e4m3x2 $0, low
  // CHECK:         fence.proxy.async.shared::cta
  // CHECK:         nvvm.barrier
  gpu.func @own(%n: index) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %bytes = tile.ring {tile.shared_offset = 0 : i64, tile.barrier_offset = 32768 : i64} : !tile.ring<1 x !tile.shared<48x96xi8, swizzle = 32>>
    %full = tile.wait %bytes[%n] : !tile.ring<1 x !tile.shared<48x96xi8, swizzle = 32>>
    %w = tile.widen %full from f8E4M3FN warps 4 {tile.shared_offset = 8192 : i64} : !tile.shared<48x96xi8, swizzle = 32> -> !tile.shared<48x96xf16, swizzle = 64>
    tile.release %bytes[%n] : !tile.ring<1 x !tile.shared<48x96xi8, swizzle = 32>>
    gpu.return
  }

  // Products that widen. Where K runs along the bytes a matrix of ldmatrix has both
  // operands of a step for 8 columns: four matrices are 32 columns. Of A a thread has
  // four neighbours, the first two of which are the first operand of its row.
  // CHECK-LABEL: gpu.func @keys
  // CHECK:         %[[A:.*]]:2 = scf.if %{{.*}} -> (vector<4xf16>, vector<4xf16>)
  // CHECK:         %[[A2:.*]] = llvm.extractelement %[[A]]#0[%c2_i32
  // CHECK:         %[[A4:.*]] = llvm.extractelement %[[A]]#1[%c0_i32
  // CHECK:         %[[HALF1:.*]] = llvm.insertelement %[[A4]],
  // CHECK:         %[[SECOND:.*]] = llvm.insertelement %{{.*}}, %[[HALF1]][
  // CHECK:         %[[HALF2:.*]] = llvm.insertelement %[[A2]],
  // CHECK:         %[[THIRD:.*]] = llvm.insertelement %{{.*}}, %[[HALF2]][
  // CHECK:         nvvm.ldmatrix %{{.*}} {eltType = #nvvm.ld_st_matrix_elt_type<b16>, layout = #nvvm.mma_layout<row>, num = 4 : i32
  // CHECK:         %[[W0:.*]] = llvm.inline_asm has_side_effects "{{.*}}mov.b32 bytes, $2;{{.*}}cvt.rn.f16x2.e4m3x2 $0, low;{{.*}}cvt.rn.f16x2.e4m3x2 $1, high;
  // CHECK:         %[[B0:.*]] = llvm.extractvalue %[[W0]][0]
  // CHECK:         %[[B1:.*]] = llvm.extractvalue %[[W0]][1]
  // CHECK-COUNT-3: mov.b32 bytes, $2;
  // CHECK:         %[[P0:.*]] = llvm.bitcast %[[B0]] : i32 to vector<2xf16>
  // CHECK:         %[[P1:.*]] = llvm.bitcast %[[B1]] : i32 to vector<2xf16>
  // CHECK:         nvvm.mma.sync A[%{{.*}}, %[[SECOND]], %[[THIRD]], %{{.*}}] B[%[[P0]], %[[P1]]]
  // CHECK-COUNT-3: nvvm.mma.sync
  // CHECK-NOT:     nvvm.mma.sync
  // CHECK-NOT:     nvvm.ldmatrix
  gpu.func @keys(%m: memref<16x16xf16, strided<[16, 1]>>, %n: index, %o: memref<16x32xf32, strided<[32, 1]>>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %bytes = tile.ring {tile.shared_offset = 0 : i64, tile.barrier_offset = 32768 : i64} : !tile.ring<1 x !tile.shared<32x16xi8>>
    %q = tile.load %m[%c0, %c0] dims [0, 1] : memref<16x16xf16, strided<[16, 1]>> -> !tile.fragment<16x16xf16, #tile.layout<16x16, registers = [4:1d1, 2:8d0], threads = [4:4d1, 8:1d0]>>
    %k = tile.wait %bytes[%n] : !tile.ring<1 x !tile.shared<32x16xi8>>
    %s = tile.mma mma_sync %q, %k from f8E4M3FN transpose_b : !tile.fragment<16x16xf16, #tile.layout<16x16, registers = [4:1d1, 2:8d0], threads = [4:4d1, 8:1d0]>>, !tile.shared<32x16xi8> -> !tile.fragment<16x32xf32, #tile.layout<16x32, registers = [2:1d1, 2:8d0, 4:8d1], threads = [4:2d1, 8:1d0]>>
    tile.store %s, %o[%c0, %c0] dims [0, 1] : !tile.fragment<16x32xf32, #tile.layout<16x32, registers = [2:1d1, 2:8d0, 4:8d1], threads = [4:2d1, 8:1d0]>>, memref<16x32xf32, strided<[32, 1]>>
    tile.release %bytes[%n] : !tile.ring<1 x !tile.shared<32x16xi8>>
    gpu.return
  }

  // Where columns do, a matrix has one operand of 16 of them: bytes 0 and 2 of a word
  // are the pair of an even column, 1 and 3 of the odd one behind it, and so lie the
  // sums. The second warp begins 16 columns further on. To bf16 through f32.
  // CHECK-LABEL: gpu.func @values
  // CHECK:         nvvm.ldmatrix {{.*}} {eltType = #nvvm.ld_st_matrix_elt_type<b16>, layout = #nvvm.mma_layout<row>, num = 4 : i32
  // CHECK:         nvvm.ldmatrix {{.*}} {eltType = #nvvm.ld_st_matrix_elt_type<b16>, layout = #nvvm.mma_layout<col>, num = 2 : i32
  // CHECK:         %[[W0:.*]] = llvm.inline_asm has_side_effects "{{.*}}prmt.b32 bytes, $2, 0, 0x3120;{{.*}}cvt.rn.bf16x2.f32 $0, q, p
  // CHECK:         %[[EVEN0:.*]] = llvm.extractvalue %[[W0]][0]
  // CHECK:         %[[ODD0:.*]] = llvm.extractvalue %[[W0]][1]
  // CHECK:         %[[W1:.*]] = llvm.inline_asm has_side_effects "{{.*}}prmt.b32 bytes, $2, 0, 0x3120;
  // CHECK:         %[[EVEN1:.*]] = llvm.extractvalue %[[W1]][0]
  // CHECK:         %[[ODD1:.*]] = llvm.extractvalue %[[W1]][1]
  // CHECK:         nvvm.mma.sync {{.*}} B[%[[EVEN0]], %[[EVEN1]]] C[%[[C:.*]]#0, %[[C]]#2, %[[C]]#4, %[[C]]#6]
  // CHECK:         nvvm.mma.sync {{.*}} B[%[[ODD0]], %[[ODD1]]] C[%[[C]]#1, %[[C]]#3, %[[C]]#5, %[[C]]#7]
  // CHECK-NOT:     nvvm.mma.sync
  gpu.func @values(%n: index, %m: memref<16x16xbf16, strided<[16, 1]>>, %o: memref<16x32xf32, strided<[32, 1]>>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %c0 = arith.constant 0 : index
    %bytes = tile.ring {tile.shared_offset = 0 : i64, tile.barrier_offset = 32768 : i64} : !tile.ring<1 x !tile.shared<16x32xi8>>
    %a = tile.load %o[%c0, %c0] dims [0, 1] : memref<16x32xf32, strided<[32, 1]>> -> !tile.fragment<16x32xf32, #tile.layout<16x32, registers = [4:1d1, 2:8d0], threads = [4:4d1, 8:1d0, 2:16d1]>>
    %v = tile.wait %bytes[%n] : !tile.ring<1 x !tile.shared<16x32xi8>>
    %p = tile.load %m[%c0, %c0] dims [0, 1] {tile.shared_offset = 8192 : i64} : memref<16x16xbf16, strided<[16, 1]>> -> !tile.shared<16x16xbf16>
    %s = tile.mma mma_sync %p, %v from f8E4M3FN into %a : !tile.shared<16x16xbf16>, !tile.shared<16x32xi8>, !tile.fragment<16x32xf32, #tile.layout<16x32, registers = [4:1d1, 2:8d0], threads = [4:4d1, 8:1d0, 2:16d1]>> -> !tile.fragment<16x32xf32, #tile.layout<16x32, registers = [4:1d1, 2:8d0], threads = [4:4d1, 8:1d0, 2:16d1]>>
    tile.store %s, %o[%c0, %c0] dims [0, 1] : !tile.fragment<16x32xf32, #tile.layout<16x32, registers = [4:1d1, 2:8d0], threads = [4:4d1, 8:1d0, 2:16d1]>>, memref<16x32xf32, strided<[32, 1]>>
    tile.release %bytes[%n] : !tile.ring<1 x !tile.shared<16x32xi8>>
    gpu.return
  }
}
