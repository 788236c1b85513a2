// RUN: fovea-opt --host-bufferize --canonicalize --split-input-file %s | FileCheck %s

// Arguments: any strides but the innermost, never written.
// CHECK-LABEL: func.func @arguments(
// CHECK-SAME: %[[X:.*]]: memref<?x8xf32, strided<[?, 1], offset: ?>>
// CHECK-SAME: %[[Y:.*]]: memref<f32, strided<[], offset: ?>>
// CHECK-SAME: -> memref<?x8xf32>
func.func @arguments(%x: tensor<?x8xf32>, %y: tensor<f32>) -> tensor<?x8xf32> {
  // CHECK: %[[NEW:.*]] = memref.alloc
  // CHECK: linalg.exp ins(%[[X]] {{.*}}) outs(%[[NEW]]
  // CHECK: return %[[NEW]]
  %e = linalg.exp ins(%x : tensor<?x8xf32>) outs(%x : tensor<?x8xf32>)
      -> tensor<?x8xf32>
  return %e : tensor<?x8xf32>
}

// -----

// Returning an argument, or one tensor twice, copies.
// CHECK-LABEL: func.func @aliases(
// CHECK-SAME: %[[X:.*]]: memref<4xf32,
// CHECK-SAME: -> (memref<4xf32>, memref<4xf32>, memref<4xf32>)
func.func @aliases(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  // CHECK: %[[E:.*]] = memref.alloc
  // CHECK: linalg.exp
  // CHECK: %[[A:.*]] = memref.alloc
  // CHECK: memref.copy %[[X]], %[[A]]
  // CHECK: %[[B:.*]] = memref.alloc
  // CHECK: memref.copy %[[E]], %[[B]]
  // CHECK: return %[[A]], %[[E]], %[[B]]
  %e = linalg.exp ins(%x : tensor<4xf32>) outs(%x : tensor<4xf32>) -> tensor<4xf32>
  return %x, %e, %e : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// A part of a tensor is copied, a reshaped one is not.
// CHECK-LABEL: func.func @views(
// CHECK-SAME: -> (memref<2x2xf32>, memref<6xf32>)
func.func @views(%x: tensor<2x3xf32>) -> (tensor<2x2xf32>, tensor<6xf32>) {
  // CHECK: %[[E:.*]] = memref.alloc
  // CHECK: %[[PART:.*]] = memref.subview
  // CHECK: %[[FLAT:.*]] = memref.collapse_shape %[[E]]
  // CHECK: %[[COPY:.*]] = memref.alloc
  // CHECK: memref.copy %[[PART]], %[[COPY]]
  // CHECK: return %[[COPY]], %[[FLAT]]
  %e = linalg.exp ins(%x : tensor<2x3xf32>) outs(%x : tensor<2x3xf32>)
      -> tensor<2x3xf32>
  %s = tensor.extract_slice %x[0, 1] [2, 2] [1, 1] : tensor<2x3xf32> to tensor<2x2xf32>
  %f = tensor.collapse_shape %e [[0, 1]] : tensor<2x3xf32> into tensor<6xf32>
  return %s, %f : tensor<2x2xf32>, tensor<6xf32>
}

// -----

// Not every second element of an argument's row: that is no argument layout.
// CHECK-LABEL: func.func @strided(
// CHECK: memref.copy
// CHECK: return %{{.*}} : memref<4x5xf32>
func.func @strided(%x: tensor<4x10xf32>) -> tensor<4x5xf32> {
  %s = tensor.extract_slice %x[0, 0] [4, 5] [1, 2] : tensor<4x10xf32> to tensor<4x5xf32>
  return %s : tensor<4x5xf32>
}

// -----

// What loops pass on from iteration to iteration is the buffer that they began
// with, and no copy of it.
// CHECK-LABEL: func.func @loops(
func.func @loops(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  // CHECK: %[[E:.*]] = memref.alloc
  // CHECK: linalg.exp ins(%{{.*}}) outs(%[[E]]
  // CHECK: scf.for
  // CHECK-NOT: memref.alloc
  // CHECK: return %[[E]]
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %e = linalg.exp ins(%x : tensor<4xf32>) outs(%x : tensor<4xf32>) -> tensor<4xf32>
  %r = scf.for %i = %zero to %n step %one iter_args(%s = %e) -> tensor<4xf32> {
    %t = scf.for %j = %zero to %n step %one iter_args(%u = %s) -> tensor<4xf32> {
      %old = tensor.extract %u[%j] : tensor<4xf32>
      %new = arith.addf %old, %old : f32
      %v = tensor.insert %new into %u[%j] : tensor<4xf32>
      scf.yield %v : tensor<4xf32>
    }
    scf.yield %t : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

// A loop that may end with another buffer is not looked through.
// CHECK-LABEL: func.func @swap(
func.func @swap(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  // CHECK: %[[LOOP:.*]]:2 = scf.for
  // CHECK: memref.copy %[[LOOP]]#0, %[[COPY:.*]] :
  // CHECK: return %[[COPY]]
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %e = linalg.exp ins(%x : tensor<4xf32>) outs(%x : tensor<4xf32>) -> tensor<4xf32>
  %f = linalg.exp ins(%e : tensor<4xf32>) outs(%x : tensor<4xf32>) -> tensor<4xf32>
  %r:2 = scf.for %i = %zero to %n step %one iter_args(%s = %e, %t = %f) -> (tensor<4xf32>, tensor<4xf32>) {
    scf.yield %t, %s : tensor<4xf32>, tensor<4xf32>
  }
  return %r#0 : tensor<4xf32>
}
