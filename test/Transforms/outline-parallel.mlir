// RUN: fovea-opt --outline-parallel --split-input-file %s | FileCheck %s

// CHECK: func.func private @fovea_parallel_for(!llvm.ptr, !llvm.ptr, i64)

// CHECK-LABEL: func.func @fill
// CHECK-SAME: %[[X:.*]]: memref<?x8xf32>, %[[N:.*]]: index
// CHECK: %[[CONTEXT:.*]] = llvm.alloca %{{.*}} x !llvm.struct<
// CHECK: %[[ROWS:.*]] = arith.maxsi %[[N]], %{{.*}}
// CHECK: llvm.store
// CHECK: %[[BODY:.*]] = constant @fill_parallel : (!llvm.ptr, i64) -> ()
// CHECK: call @fovea_parallel_for(%{{.*}}, %[[CONTEXT]], %{{.*}})
// CHECK-NOT: scf.forall
// CHECK: return

// Constants are not passed; the last dimension is the fastest.
// CHECK-LABEL: func.func private @fill_parallel
// CHECK-SAME: (%[[C:.*]]: !llvm.ptr, %[[CALL:.*]]: i64)
// CHECK: arith.constant 1.500000e+00 : f32
// CHECK: llvm.load
// CHECK: arith.index_cast %[[CALL]] : i64 to index
// CHECK: arith.remui
// CHECK: arith.divui
// CHECK: memref.store
func.func @fill(%x: memref<?x8xf32>, %n: index) {
  %one = arith.constant 1.5 : f32
  scf.forall (%i, %j) in (%n, 8) {
    memref.store %one, %x[%i, %j] : memref<?x8xf32>
  }
  return
}

// -----

// A call does `machine.grain` iterations; buffers of static size are the call's.
// CHECK-LABEL: func.func private @grain_parallel
// CHECK: memref.alloca() : memref<4xf32>
// CHECK: scf.for
// CHECK-NOT: memref.alloca
// CHECK: return
func.func @grain(%n: index, %x: f32) {
  %c0 = arith.constant 0 : index
  scf.forall (%i) in (%n) {
    %t = memref.alloca() : memref<4xf32>
    memref.store %x, %t[%c0] : memref<4xf32>
  } {machine.grain = 16 : i64}
  return
}

// -----

// Nested parallelism is sequential; each outer loop has a body of its own.
// CHECK-LABEL: func.func @nested
// CHECK-COUNT-2: call @fovea_parallel_for
// CHECK-DAG: func.func private @nested_parallel(
// CHECK-DAG: func.func private @nested_parallel_0(
// CHECK-NOT: scf.forall
func.func @nested(%x: memref<?x?xf32>, %n: index, %f: f32) {
  scf.forall (%i) = (2) to (%n) step (3) {
    scf.forall (%j) in (%n) {
      memref.store %f, %x[%i, %j] : memref<?x?xf32>
    }
  }
  scf.forall (%i) in (%n) {
    memref.store %f, %x[%i, %i] : memref<?x?xf32>
  }
  return
}

// -----

// A buffer of unknown size is allocated once a call, if it is freed in it.
// CHECK-LABEL: func.func private @heap_parallel
// CHECK: memref.alloc(
// CHECK: scf.for
// CHECK-NOT: memref.alloc
// CHECK: }
// CHECK: memref.dealloc
func.func @heap(%n: index, %x: f32) {
  %c0 = arith.constant 0 : index
  scf.forall (%i) in (%n) {
    %t = memref.alloc(%n) : memref<?xf32>
    memref.store %x, %t[%c0] : memref<?xf32>
    memref.dealloc %t : memref<?xf32>
  } {machine.grain = 16 : i64}
  return
}

// -----

// CHECK-LABEL: func.func @sequential
// CHECK-NEXT: scf.for
// CHECK-NOT: fovea_parallel_for
func.func @sequential(%a: index, %b: index, %c: index) {
  scf.for %i = %a to %b step %c {
  }
  return
}
