// RUN: fovea-opt %s --pass-pipeline='builtin.module(convert-tile-to-nvvm,gpu.module(canonicalize,cse))' | FileCheck %s

gpu.module @kernels {
  // Each of 128 threads asks for 32 elements of 4 bytes from the row's first on, if there
  // is the row, and has the first of them.

  // CHECK-LABEL: gpu.func @row(
  // CHECK-SAME:    %[[T:[^:]*]]: memref<?x?xi32, {{.*}}>, %[[B:[^:]*]]: index)
  // CHECK-DAG:     %{{.*}}, %{{.*}}, %[[SIZES:.*]]:2, %[[STRIDES:.*]]:2 = memref.extract_strided_metadata %[[T]]
  // CHECK-DAG:     %[[WIDE:.*]] = arith.index_cast %[[STRIDES]]#0 : index to i64
  // CHECK:         %[[STRIDE:.*]] = arith.muli %[[WIDE]], %c4_i64
  // CHECK:         %[[NUMBER:.*]] = arith.index_cast %[[B]] : index to i64
  // CHECK:         %[[OFFSET:.*]] = arith.muli %[[NUMBER]], %[[STRIDE]]
  // CHECK:         %[[ROW:.*]] = arith.addi %{{.*}}, %[[OFFSET]]
  // CHECK:         %[[LOW:.*]] = arith.maxsi %[[SIZES]]#1, %c0{{ }}
  // CHECK:         %[[SOME:.*]] = arith.minsi %[[LOW]], %c4096{{ }}
  // CHECK:         %[[LEFT:.*]] = arith.index_cast %[[SOME]] : index to i32
  // CHECK:         %[[TID:.*]] = nvvm.read.ptx.sreg.tid.x
  // CHECK:         %[[FIRST:.*]] = arith.muli %[[TID]], %c32_i32
  // CHECK:         %[[IN:.*]] = arith.cmpi slt, %[[FIRST]], %[[LEFT]] : i32
  // CHECK:         %[[ROWS:.*]] = memref.dim %[[T]], %c0
  // CHECK:         %[[EXISTS:.*]] = arith.cmpi ult, %[[B]], %[[ROWS]] : index
  // CHECK:         %[[BOTH:.*]] = arith.andi %[[IN]], %[[EXISTS]] : i1
  // CHECK:         scf.if %[[BOTH]] {
  // CHECK:           %[[PLACE:.*]] = arith.extui %[[FIRST]] : i32 to i64
  // CHECK:           %[[BYTES:.*]] = arith.muli %[[PLACE]], %c4_i64
  // CHECK:           %[[AT:.*]] = arith.addi %[[ROW]], %[[BYTES]]
  // CHECK:           %[[POINTER:.*]] = llvm.inttoptr %[[AT]] : i64 to !llvm.ptr<1>
  // CHECK:           %[[LINE:.*]] = llvm.ptrtoint %[[POINTER]]
  // CHECK-NEXT:      llvm.inline_asm has_side_effects "prefetch.global.L2 [$0];", "l,~{memory}" %[[LINE]] :
  // CHECK-NEXT:    }
  // CHECK-NEXT:    gpu.return
  gpu.func @row(%t: memref<?x?xi32, strided<[?, 1], offset: ?>>, %b: index) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    tile.prefetch %t[%b] : memref<?x?xi32, strided<[?, 1], offset: ?>>
    gpu.return
  }

  // The threads of a role ask, from its first on: 64.

  // CHECK-LABEL: gpu.func @role(
  // CHECK:         %[[TID:.*]] = nvvm.read.ptx.sreg.tid.x
  // CHECK:         arith.minsi %{{.*}}, %c2048{{ }}
  // CHECK:         %[[THREAD:.*]] = arith.subi %[[TID]], %c32_i32
  // CHECK:         %[[FIRST:.*]] = arith.muli %[[THREAD]], %c32_i32
  // CHECK:         %[[IN:.*]] = arith.cmpi slt, %[[FIRST]], %{{.*}} : i32
  // CHECK:         arith.andi %[[IN]], %{{.*}} : i1
  // CHECK-NEXT:    scf.if
  // CHECK:           prefetch.global.L2
  // CHECK-NOT:     prefetch.global.L2
  gpu.func @role(%t: memref<?x?xi32, strided<[?, 1], offset: ?>>, %b: index) kernel attributes {known_block_size = array<i32: 96, 1, 1>} {
    tile.roles {
      tile.role "a" warps 1 {
      }
      tile.role "b" warps 2 {
        tile.prefetch %t[%b] : memref<?x?xi32, strided<[?, 1], offset: ?>>
      }
    }
    gpu.return
  }

  // A line has 128 elements of one byte, and 16 of 8.

  // CHECK-LABEL: gpu.func @bytes(
  // CHECK:         arith.minsi %{{.*}}, %c4096{{ }}
  // CHECK:         arith.muli %{{.*}}, %c128_i32
  // CHECK:         scf.if
  // CHECK:           prefetch.global.L2
  gpu.func @bytes(%t: memref<?x?xi8, strided<[?, 1], offset: ?>>, %b: index) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    tile.prefetch %t[%b] : memref<?x?xi8, strided<[?, 1], offset: ?>>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @words(
  // CHECK:         arith.minsi %{{.*}}, %c512{{ }}
  // CHECK:         arith.muli %{{.*}}, %c16_i32
  // CHECK:         scf.if
  // CHECK:           arith.muli %{{.*}}, %c8_i64
  // CHECK:           prefetch.global.L2
  gpu.func @words(%t: memref<?x?xi64, strided<[?, 1], offset: ?>>, %b: index) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    tile.prefetch %t[%b] : memref<?x?xi64, strided<[?, 1], offset: ?>>
    gpu.return
  }

  // An index has 8 bytes, and a bit one in memory.

  // CHECK-LABEL: gpu.func @others(
  // CHECK:         arith.minsi %{{.*}}, %c512{{ }}
  // CHECK:         prefetch.global.L2
  // CHECK:         arith.minsi %{{.*}}, %c4096{{ }}
  // CHECK:         arith.muli %{{.*}}, %c128_i32
  // CHECK:         prefetch.global.L2
  gpu.func @others(%t: memref<?x?xindex, strided<[?, 1], offset: ?>>, %u: memref<?x?xi1, strided<[?, 1], offset: ?>>, %b: index) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    tile.prefetch %t[%b] : memref<?x?xindex, strided<[?, 1], offset: ?>>
    tile.prefetch %u[%b] : memref<?x?xi1, strided<[?, 1], offset: ?>>
    gpu.return
  }

  // Rows that are known to have what all threads ask for, and rows that are not; and the
  // only row of memory of one dimension.

  // CHECK-LABEL: gpu.func @sizes(
  // CHECK-NOT:     arith.cmpi slt
  // CHECK:         %[[EXISTS:.*]] = arith.cmpi ult
  // CHECK-NEXT:    scf.if %[[EXISTS]] {
  // CHECK:           prefetch.global.L2
  // CHECK:         %[[IN:.*]] = arith.cmpi slt, %{{.*}}, %c1023_i32
  // CHECK:         arith.andi %[[IN]], %{{.*}} : i1
  // CHECK-NEXT:    scf.if
  // CHECK:           prefetch.global.L2{{.*}} : (i64) -> ()
  // CHECK-NEXT:    }
  // CHECK:         %[[SOME:.*]] = arith.minsi %{{.*}}, %c1024{{ }}
  // CHECK:         %[[LEFT:.*]] = arith.index_cast %[[SOME]] : index to i32
  // CHECK:         %[[IN:.*]] = arith.cmpi slt, %{{.*}}, %[[LEFT]]
  // CHECK-NEXT:    scf.if %[[IN]] {
  // CHECK:           prefetch.global.L2
  gpu.func @sizes(%t: memref<?x1024xi32>, %u: memref<?x1023xi32>, %v: memref<?xi32>, %b: index) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    tile.prefetch %t[%b] : memref<?x1024xi32>
    tile.prefetch %u[%b] : memref<?x1023xi32>
    tile.prefetch %v[] : memref<?xi32>
    gpu.return
  }
}
