// RUN: fovea-opt --host-bufferize --canonicalize --split-input-file %s | FileCheck %s
// RUN: fovea-opt --host-bufferize=in-place=false --canonicalize --split-input-file %s | FileCheck %s --check-prefix=KEPT

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

// -----

// A writable argument is updated where it is, and read there afterwards; of the
// others none is written.
// CHECK-LABEL: func.func @writable(
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<?x8xf32, strided<[?, 1], offset: ?>>
// CHECK-SAME: %[[Y:[a-z0-9]+]]: memref<?x8xf32, strided<[?, 1], offset: ?>>
// KEPT-LABEL: func.func @writable(
func.func @writable(%x: tensor<?x8xf32> {bufferization.writable = true}, %y: tensor<?x8xf32>, %n: index) -> (f32, f32) {
  // CHECK-NOT: memref.alloc
  // CHECK: scf.forall (%[[I:.*]]) in (4)
  // CHECK: %[[ROW:.*]] = memref.subview %[[X]][%[[I]], 0]
  // CHECK: linalg.fill ins(%{{.*}}) outs(%[[ROW]]
  // CHECK: memref.load %[[X]]
  // CHECK: %[[NEW:.*]] = memref.alloc
  // CHECK: linalg.fill ins(%{{.*}}) outs(%[[NEW]]
  // KEPT: %[[OWN:.*]] = memref.alloc
  // KEPT: memref.copy %{{.*}}, %[[OWN]]
  // KEPT: scf.forall
  // KEPT: memref.subview %[[OWN]]
  %z = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  %u = scf.forall (%i) in (4) shared_outs(%o = %x) -> tensor<?x8xf32> {
    %s = tensor.extract_slice %o[%i, 0] [1, 8] [1, 1] : tensor<?x8xf32> to tensor<1x8xf32>
    %f = linalg.fill ins(%z : f32) outs(%s : tensor<1x8xf32>) -> tensor<1x8xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %f into %o[%i, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<?x8xf32>
    }
  }
  %e = tensor.extract %u[%c1, %c1] : tensor<?x8xf32>
  %w = linalg.fill ins(%e : f32) outs(%y : tensor<?x8xf32>) -> tensor<?x8xf32>
  %g = tensor.extract %w[%n, %c1] : tensor<?x8xf32>
  return %e, %g : f32, f32
}
