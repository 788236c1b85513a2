// RUN: fovea-opt %s --instrument-accesses | FileCheck %s

// CHECK-DAG: llvm.mlir.global private constant @[[$SITE:fovea_site_[0-9]+]]("{{.*}}instrument-accesses.mlir:{{[0-9]+}}:{{[0-9]+}}: 'arith.remui'\00")
// CHECK-DAG: 'tensor.extract'\00
// CHECK-DAG: 'tensor.insert'\00

// CHECK-LABEL: func.func @accesses
// CHECK-SAME: %[[T:.*]]: memref<?x8xf32>, %[[I:.*]]: index
func.func @accesses(%t: memref<?x8xf32>, %i: index) {
  // CHECK: %[[I64:.*]] = arith.index_cast %[[I]] : index to i64
  // CHECK: %[[N:.*]] = arith.index_cast %{{.*}} : index to i64
  // CHECK: %[[D:.*]] = arith.constant 0 : i64
  // CHECK: call @fovea_check_index(%{{.*}}, %[[I64]], %[[N]], %[[D]]) : (!llvm.ptr, i64, i64, i64) -> ()
  // CHECK: %[[D:.*]] = arith.constant 1 : i64
  // CHECK: call @fovea_check_index(%{{.*}}, %{{.*}}, %{{.*}}, %[[D]])
  // CHECK-NEXT: memref.load
  %x = memref.load %t[%i, %i] : memref<?x8xf32>
  // A constant within a static size needs none.
  %c = arith.constant 7 : index
  // CHECK: call @fovea_check_index
  // CHECK-NOT: call @fovea_check_index
  // CHECK: memref.store
  memref.store %x, %t[%i, %c] : memref<?x8xf32>
  return
}

// CHECK-LABEL: func.func @beyond
func.func @beyond(%t: memref<8xf32>) -> f32 {
  // CHECK: call @fovea_check_index
  %c = arith.constant 8 : index
  %x = memref.load %t[%c] : memref<8xf32>
  return %x : f32
}

// CHECK-LABEL: func.func @divisions
// CHECK-SAME: %[[A:.*]]: i32, %[[B:.*]]: i32
func.func @divisions(%a: i32, %b: i32) -> (i32, i32, i32, i32) {
  // CHECK-DAG: %[[A64:.*]] = arith.extsi %[[A]] : i32 to i64
  // CHECK-DAG: %[[B64:.*]] = arith.extsi %[[B]] : i32 to i64
  // CHECK-DAG: %[[W:.*]] = arith.constant 32 : i64
  // CHECK: call @fovea_check_divisor(%{{.*}}, %[[A64]], %[[B64]], %[[W]]) : (!llvm.ptr, i64, i64, i64) -> ()
  // CHECK-NEXT: arith.divsi
  %x = arith.divsi %a, %b : i32
  // Without a sign there is no overflow.
  // CHECK: llvm.mlir.addressof @[[$SITE]]
  // CHECK: %[[W:.*]] = arith.constant 0 : i64
  // CHECK: call @fovea_check_divisor(%{{.*}}, %{{.*}}, %{{.*}}, %[[W]])
  // CHECK-NEXT: arith.remui
  %y = arith.remui %a, %b : i32
  // CHECK-NOT: call @fovea_check_divisor
  // CHECK: arith.divsi
  %c = arith.constant 3 : i32
  %z = arith.divsi %a, %c : i32
  // CHECK: call @fovea_check_divisor
  // CHECK-NEXT: arith.remsi
  %m = arith.constant -1 : i32
  %w = arith.remsi %a, %m : i32
  return %x, %y, %z, %w : i32, i32, i32, i32
}

// In the body of a loop that is still an op.
// CHECK-LABEL: func.func @body
func.func @body(%t: memref<8xf32>, %n: memref<4xindex>, %o: memref<4xf32>) {
  // CHECK: linalg.generic
  // CHECK: call @fovea_check_index
  // CHECK-NEXT: memref.load
  linalg.generic {
      indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>],
      iterator_types = ["parallel"]}
      ins(%n : memref<4xindex>) outs(%o : memref<4xf32>) {
  ^bb0(%i: index, %unused: f32):
    %x = memref.load %t[%i] : memref<8xf32>
    linalg.yield %x : f32
  }
  return
}

// CHECK-DAG: func.func private @fovea_check_index(!llvm.ptr, i64, i64, i64)
// CHECK-DAG: func.func private @fovea_check_divisor(!llvm.ptr, i64, i64, i64)
