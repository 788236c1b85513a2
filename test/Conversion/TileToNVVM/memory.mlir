// RUN: fovea-opt %s --pass-pipeline='builtin.module(convert-tile-to-nvvm,gpu.module(canonicalize,cse))' | FileCheck %s

#acc = #tile.layout<16x8, registers = [2:1d1, 2:8d0], threads = [4:2d1, 8:1d0]>
#twice = #tile.layout<8x8, registers = [2:1d1], threads = [4:2d1, 8:1d0, 2:r]>
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
  // CHECK:         %[[ALIGNED:.*]] = arith.cmpi eq, %{{.*}}, %c0_i64
  // CHECK:         %[[WHOLE:.*]] = arith.cmpi eq, %{{.*}}, %c16_i32
  // CHECK:         %[[BOTH:.*]] = arith.andi %[[ALIGNED]], %[[WHOLE]]
  // CHECK:         scf.if %[[BOTH]] {
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

  // Where rows are known to be aligned, each pair of a row that is within the memref,
  // and valid; nothing is tested but that.

  // CHECK-LABEL: gpu.func @aligned_pairs
  // CHECK-SAME:    index, %[[N:[^:]*]]: index
  // CHECK-NOT:     scf.if
  // CHECK:         arith.maxsi %[[N]], %c0{{ }}
  // CHECK-NOT:     scf.if
  // CHECK:         %[[ROWS:.*]] = arith.minsi %{{.*}} : i32
  // CHECK-NOT:     scf.if
  // CHECK:         %[[ROW:.*]] = arith.divui %{{.*}}, %c4_i32
  // CHECK-NOT:     scf.if
  // CHECK:         %[[TO:.*]] = llvm.inttoptr
  // CHECK-NOT:     scf.if
  // CHECK:         %[[IN:.*]] = arith.cmpi slt, %[[ROW]], %[[ROWS]]
  // CHECK-NEXT:    scf.if %[[IN]] {
  // CHECK-NEXT:      llvm.store %{{.*}}, %[[TO]] {alignment = 4 : i64} : vector<2xbf16>, !llvm.ptr<1>
  // CHECK-NEXT:    }
  // CHECK:         %[[TO1:.*]] = llvm.getelementptr %[[TO]]
  // CHECK:         %[[ROW1:.*]] = arith.addi %[[ROW]], %c8_i32
  // CHECK-NEXT:    %[[IN1:.*]] = arith.cmpi slt, %[[ROW1]], %[[ROWS]]
  // CHECK-NEXT:    scf.if %[[IN1]] {
  // CHECK-NEXT:      llvm.store %{{.*}}, %[[TO1]] {alignment = 4 : i64} : vector<2xbf16>, !llvm.ptr<1>
  // CHECK-NEXT:    }
  // CHECK-NEXT:    gpu.return
  gpu.func @aligned_pairs(%m: !m, %i: index, %n: index, %a: bf16) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %t = tile.fill %a : !tile.fragment<16x8xbf16, #acc>
    tile.store %t, %m[%i, %c0] dims [0, 1] aligned valid(%n) : !tile.fragment<16x8xbf16, #acc>, !m
    gpu.return
  }

  // All rows are within the memref, and all valid.

  // CHECK-LABEL: gpu.func @aligned_whole
  // CHECK-NOT:     scf.if
  // CHECK-COUNT-2: llvm.store %{{.*}} {alignment = 4 : i64} : vector<2xbf16>
  // CHECK-NOT:     scf.if
  // CHECK-NOT:     llvm.store
  // CHECK:         gpu.return
  gpu.func @aligned_whole(%m: memref<32x64xbf16, strided<[64, 1]>>, %a: bf16) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %t = tile.fill %a : !tile.fragment<16x8xbf16, #acc>
    tile.store %t, %m[%c0, %c0] dims [0, 1] aligned : !tile.fragment<16x8xbf16, #acc>, memref<32x64xbf16, strided<[64, 1]>>
    gpu.return
  }

  // A row that ends in a pair has it element by element.

  // CHECK-LABEL: gpu.func @aligned_columns
  // CHECK:         %[[WHOLE:.*]] = arith.cmpi eq, %{{.*}}, %c8_i32
  // CHECK-NEXT:    scf.if %[[WHOLE]] {
  // CHECK-COUNT-2:   llvm.store %{{.*}} : vector<2xbf16>
  // CHECK:         } else {
  // CHECK-COUNT-4:   llvm.store %{{.*}} : bf16
  // CHECK-NOT:     llvm.store
  // CHECK:         gpu.return
  gpu.func @aligned_columns(%m: memref<16x?xbf16, strided<[?, 1], offset: ?>>, %a: bf16) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %t = tile.fill %a : !tile.fragment<16x8xbf16, #acc>
    tile.store %t, %m[%c0, %c0] dims [0, 1] aligned : !tile.fragment<16x8xbf16, #acc>, memref<16x?xbf16, strided<[?, 1], offset: ?>>
    gpu.return
  }

  // One of the threads that hold the same writes it, of pairs too.

  // CHECK-LABEL: gpu.func @aligned_replicated
  // CHECK:         %[[FIRST:.*]] = arith.cmpi eq, %{{.*}}, %c0_i32
  // CHECK:         %[[IN:.*]] = arith.cmpi slt
  // CHECK-NEXT:    %[[MAY:.*]] = arith.andi %[[FIRST]], %[[IN]]
  // CHECK-NEXT:    scf.if %[[MAY]] {
  // CHECK-NEXT:      llvm.store %{{.*}} : vector<2xbf16>
  // CHECK-NEXT:    }
  // CHECK-NEXT:    gpu.return
  gpu.func @aligned_replicated(%m: !m, %n: index, %a: bf16) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %c0 = arith.constant 0 : index
    %t = tile.fill %a : !tile.fragment<8x8xbf16, #twice>
    tile.store %t, %m[%c0, %c0] dims [0, 1] aligned valid(%n) : !tile.fragment<8x8xbf16, #twice>, !m
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

  // Rows along two dimensions: row r is at r / 4 along the second dimension and at r mod
  // 4 along the first. The second one alone may end before the tile does. Both strides
  // say whether rows are aligned. 16 rows further on are 4 places.

  // CHECK-LABEL: gpu.func @inner_load
  // CHECK-SAME:    %{{[^:]*}}: memref<4x?x64xbf16, {{.*}}>, %[[I:[^:]*]]: index
  // CHECK:         %{{.*}}, %{{.*}}, %[[SIZES:.*]]:3, %[[STRIDES:.*]]:3 = memref.extract_strided_metadata
  // CHECK:         %[[INNER:.*]] = arith.index_cast %[[STRIDES]]#0
  // CHECK:         %[[INNER_BYTES:.*]] = arith.muli %[[INNER]], %c2_i64
  // CHECK:         %[[OUTER:.*]] = arith.index_cast %[[STRIDES]]#1
  // CHECK:         %[[OUTER_BYTES:.*]] = arith.muli %[[OUTER]], %c2_i64
  // CHECK:         %[[BEGIN:.*]] = arith.addi
  // CHECK:         %[[PLACES:.*]] = arith.subi %[[SIZES]]#1, %[[I]]
  // CHECK:         %[[LEFT:.*]] = arith.muli %[[PLACES]], %c4
  // CHECK:         %[[SOME:.*]] = arith.maxsi %[[LEFT]], %c0{{ }}
  // CHECK:         %[[CLAMPED:.*]] = arith.minsi %[[SOME]], %c32
  // CHECK:         %[[ROWS:.*]] = arith.index_cast %[[CLAMPED]] : index to i32
  // CHECK:         %[[ALL:.*]] = arith.ori %[[BEGIN]], %[[OUTER_BYTES]]
  // CHECK:         arith.ori %[[ALL]], %[[INNER_BYTES]]
  // CHECK:         scf.if
  // CHECK:           %[[ROW:.*]] = arith.divui %{{.*}}, %c8_i32
  // CHECK:           %[[DIV:.*]] = arith.divui %[[ROW]], %c4_i32
  // CHECK:           %[[WIDE:.*]] = arith.extui %[[DIV]]
  // CHECK:           %[[BY:.*]] = arith.muli %[[WIDE]], %[[OUTER_BYTES]]
  // CHECK:           %[[AT:.*]] = arith.addi %[[BEGIN]], %[[BY]]
  // CHECK:           %[[REM:.*]] = arith.remui %[[ROW]], %c4_i32
  // CHECK:           %[[WIDE:.*]] = arith.extui %[[REM]]
  // CHECK:           %[[BY:.*]] = arith.muli %[[WIDE]], %[[INNER_BYTES]]
  // CHECK:           arith.addi %[[AT]], %[[BY]]
  // CHECK:           %[[FROM:.*]] = llvm.inttoptr %{{.*}} : i64 to !llvm.ptr<1>
  // CHECK:           arith.cmpi slt, %[[ROW]], %[[ROWS]]
  // CHECK:           nvvm.cp.async.shared.global %{{.*}}, %[[FROM]], 16
  // CHECK:           %[[NEXT:.*]] = arith.addi %[[ROW]], %c16_i32
  // CHECK:           %[[FURTHER:.*]] = arith.muli %[[OUTER]], %c8_i64
  // CHECK:           %[[FROM1:.*]] = llvm.getelementptr %[[FROM]][%[[FURTHER]]]
  // CHECK:           arith.cmpi slt, %[[NEXT]], %[[ROWS]]
  // CHECK:           nvvm.cp.async.shared.global %{{.*}}, %[[FROM1]], 16
  // CHECK:         } else {
  // CHECK:           %[[ROW:.*]] = arith.divui %{{.*}}, %c64_i32
  // CHECK:           %[[DIV:.*]] = arith.divui %[[ROW]], %c4_i32
  // CHECK:           %[[WIDE:.*]] = arith.extui %[[DIV]]
  // CHECK:           arith.muli %[[WIDE]], %[[OUTER_BYTES]]
  // CHECK:           %[[REM:.*]] = arith.remui %[[ROW]], %c4_i32
  // CHECK:           %[[WIDE:.*]] = arith.extui %[[REM]]
  // CHECK:           arith.muli %[[WIDE]], %[[INNER_BYTES]]
  gpu.func @inner_load(%m: memref<4x?x64xbf16, strided<[?, ?, 1]>>, %i: index) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %t = tile.load %m[%c0, %i, %c0] dims [1, 0, 2] inner 4 {tile.shared_offset = 0 : i64} : memref<4x?x64xbf16, strided<[?, ?, 1]>> -> !tile.shared<32x64xbf16, swizzle = 128>
    gpu.return
  }

  // So are those of a fragment, of which a thread has one row and that 8 further on, at 2
  // places more; the valid ones are counted in rows.

  // CHECK-LABEL: gpu.func @inner_store
  // CHECK-SAME:    index, %[[N:[^:]*]]: index
  // CHECK:         %{{.*}}, %{{.*}}, %[[SIZES:.*]]:3, %[[STRIDES:.*]]:3 = memref.extract_strided_metadata
  // CHECK:         %[[INNER:.*]] = arith.index_cast %[[STRIDES]]#0
  // CHECK:         %[[INNER_BYTES:.*]] = arith.muli %[[INNER]], %c2_i64
  // CHECK:         %[[OUTER:.*]] = arith.index_cast %[[STRIDES]]#1
  // CHECK:         %[[OUTER_BYTES:.*]] = arith.muli %[[OUTER]], %c2_i64
  // CHECK:         %[[BEGIN:.*]] = arith.addi
  // CHECK:         %[[PLACES:.*]] = arith.subi %[[SIZES]]#1
  // CHECK:         arith.muli %[[PLACES]], %c4
  // CHECK:         arith.maxsi %[[N]], %c0{{ }}
  // CHECK:         %[[ROWS:.*]] = arith.minsi %{{.*}} : i32
  // CHECK:         %[[ROW:.*]] = arith.divui %{{.*}}, %c4_i32
  // CHECK:         scf.if
  // CHECK:           %[[DIV:.*]] = arith.divui %[[ROW]], %c4_i32
  // CHECK:           %[[WIDE:.*]] = arith.extui %[[DIV]]
  // CHECK:           %[[BY:.*]] = arith.muli %[[WIDE]], %[[OUTER_BYTES]]
  // CHECK:           %[[AT:.*]] = arith.addi %[[BEGIN]], %[[BY]]
  // CHECK:           %[[REM:.*]] = arith.remui %[[ROW]], %c4_i32
  // CHECK:           %[[WIDE:.*]] = arith.extui %[[REM]]
  // CHECK:           %[[BY:.*]] = arith.muli %[[WIDE]], %[[INNER_BYTES]]
  // CHECK:           arith.addi %[[AT]], %[[BY]]
  // CHECK:           %[[TO:.*]] = llvm.inttoptr
  // CHECK:           llvm.store %{{.*}}, %[[TO]] {alignment = 4 : i64} : vector<2xbf16>
  // CHECK:           %[[FURTHER:.*]] = arith.muli %[[OUTER]], %c4_i64
  // CHECK:           %[[TO1:.*]] = llvm.getelementptr %[[TO]][%[[FURTHER]]]
  // CHECK:           llvm.store %{{.*}}, %[[TO1]] {alignment = 4 : i64} : vector<2xbf16>
  // CHECK:         } else {
  // CHECK:           %[[IN:.*]] = arith.cmpi slt, %[[ROW]], %[[ROWS]]
  // CHECK:           scf.if %[[IN]] {
  gpu.func @inner_store(%m: memref<4x?x64xbf16, strided<[?, ?, 1]>>, %i: index, %n: index, %a: bf16) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %t = tile.fill %a : !tile.fragment<16x8xbf16, #acc>
    tile.store %t, %m[%c0, %i, %c0] dims [1, 0, 2] inner 4 valid(%n) : !tile.fragment<16x8xbf16, #acc>, memref<4x?x64xbf16, strided<[?, ?, 1]>>
    gpu.return
  }

  // Rows at places that are not used are not written, wherever the tensor ends.

  // CHECK-LABEL: gpu.func @used_store
  // CHECK:         %[[ROW:.*]] = arith.divui %{{.*}}, %c4_i32
  // CHECK:         %[[REM:.*]] = arith.remui %[[ROW]], %c4_i32
  // CHECK:         %[[USED:.*]] = arith.cmpi ult, %[[REM]], %c3_i32
  // CHECK:         %[[MAY:.*]] = arith.andi %{{.*}}, %[[USED]]
  // CHECK:         scf.if %[[MAY]] {
  // CHECK:           llvm.store
  // CHECK:         %[[NEXT:.*]] = arith.addi %[[ROW]], %c8_i32
  // CHECK:         %[[REM:.*]] = arith.remui %[[NEXT]], %c4_i32
  // CHECK:         %[[USED:.*]] = arith.cmpi ult, %[[REM]], %c3_i32
  // CHECK:         %[[MAY:.*]] = arith.andi %{{.*}}, %[[USED]]
  // CHECK:         scf.if %[[MAY]] {
  gpu.func @used_store(%m: memref<16x20xf32, strided<[20, 1]>>, %a: f32) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %x = tile.fill %a : !tile.fragment<16xf32, #row>
    tile.store %x, %m[%c0, %c0] dims [1, 0] inner 4 used 3 : !tile.fragment<16xf32, #row>, memref<16x20xf32, strided<[20, 1]>>
    gpu.return
  }

  // And one number for each row, at places 4 bytes apart of neighbours 80 bytes apart. The
  // row 8 further on is 2 places further on, or with 16 neighbours another one of them.

  // CHECK-LABEL: gpu.func @inner_numbers
  // CHECK:         %[[ROW:.*]] = arith.divui %{{.*}}, %c4_i32
  // CHECK:         %[[DIV:.*]] = arith.divui %[[ROW]], %c4_i32
  // CHECK:         %[[WIDE:.*]] = arith.extui %[[DIV]]
  // CHECK:         arith.muli %[[WIDE]], %c4_i64
  // CHECK:         %[[REM:.*]] = arith.remui %[[ROW]], %c4_i32
  // CHECK:         %[[WIDE:.*]] = arith.extui %[[REM]]
  // CHECK:         arith.muli %[[WIDE]], %c80_i64
  // CHECK:         %[[TO:.*]] = llvm.inttoptr
  // CHECK:         llvm.store %{{.*}}, %[[TO]] : f32
  // CHECK:         llvm.getelementptr %[[TO]][8]
  // CHECK:         llvm.store
  // CHECK:         %[[DIV:.*]] = arith.divui %[[ROW]], %c16_i32
  // CHECK:         %[[WIDE:.*]] = arith.extui %[[DIV]]
  // CHECK:         arith.muli %[[WIDE]], %c4_i64
  // CHECK:         %[[REM:.*]] = arith.remui %[[ROW]], %c16_i32
  // CHECK:         %[[WIDE:.*]] = arith.extui %[[REM]]
  // CHECK:         arith.muli %[[WIDE]], %c80_i64
  // CHECK:         %[[TO:.*]] = llvm.inttoptr
  // CHECK:         llvm.store %{{.*}}, %[[TO]] : f32
  // CHECK:         llvm.getelementptr %[[TO]][640]
  // CHECK:         llvm.store
  gpu.func @inner_numbers(%m: memref<16x20xf32, strided<[20, 1]>>, %a: f32) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %x = tile.fill %a : !tile.fragment<16xf32, #row>
    tile.store %x, %m[%c0, %c0] dims [1, 0] inner 4 : !tile.fragment<16xf32, #row>, memref<16x20xf32, strided<[20, 1]>>
    tile.store %x, %m[%c0, %c0] dims [1, 0] inner 16 : !tile.fragment<16xf32, #row>, memref<16x20xf32, strided<[20, 1]>>
    gpu.return
  }

  // Where threads step by a number of rows that neither divides the neighbours nor is a
  // multiple of them, each unit finds its row anew: places are not equally far apart.
  // CHECK-LABEL: gpu.func @inner_uneven
  // CHECK-NOT:   llvm.getelementptr %{{.*}} -> !llvm.ptr<1>
  // CHECK:       nvvm.cp.async.wait.group
  gpu.func @inner_uneven(%m: memref<16x?x128xbf16, strided<[10000, 128, 1]>>) kernel attributes {known_block_size = array<i32: 384, 1, 1>} {
    %c0 = arith.constant 0 : index
    %t = tile.load %m[%c0, %c0, %c0] dims [1, 0, 2] inner 16 {tile.shared_offset = 0 : i64} : memref<16x?x128xbf16, strided<[10000, 128, 1]>> -> !tile.shared<192x128xbf16, swizzle = 128>
    gpu.return
  }

  // Neighbouring rows of a fragment of rank 1 are no vector in memory, although places are.
  // CHECK-LABEL: gpu.func @inner_vector
  // CHECK-NOT:   vector<2xf32>
  // CHECK:       gpu.return
  gpu.func @inner_vector(%m: memref<4x?xf32, strided<[?, 1]>>, %i: index, %x: !tile.fragment<16xf32, #tile.layout<16, registers = [2:1d0], threads = [8:2d0, 4:r]>>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    tile.store %x, %m[%c0, %i] dims [1, 0] inner 4 : !tile.fragment<16xf32, #tile.layout<16, registers = [2:1d0], threads = [8:2d0, 4:r]>>, memref<4x?xf32, strided<[?, 1]>>
    gpu.return
  }
}
