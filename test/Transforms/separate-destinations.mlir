// RUN: fovea-opt --separate-destinations --split-input-file %s | FileCheck %s
// RUN: fovea-opt --separate-destinations --eliminate-empty-tensors --host-bufferize \
// RUN:   --split-input-file %s | FileCheck %s --check-prefix=BUFFER

// Parts of one tensor of zeros go to two destinations, of which the second gets
// zeros of its own: in its own memory, without a copy.
// CHECK-LABEL: func.func @zeros
// CHECK: scf.forall {{.*}} shared_outs(%[[O1:.*]] = {{.*}}, %[[O2:.*]] =
// CHECK: %[[E1:.*]] = tensor.empty() : tensor<5xf32>
// CHECK: %[[F1:.*]] = linalg.fill {{.*}} outs(%[[E1]]
// CHECK: %[[E2:.*]] = tensor.empty() : tensor<5xf32>
// CHECK: %[[F2:.*]] = linalg.fill {{.*}} outs(%[[E2]]
// CHECK: %[[P:.*]] = tensor.insert_slice %{{.*}} into %[[F1]]
// CHECK: %[[Q:.*]] = tensor.insert_slice %{{.*}} into %[[F2]]
// CHECK: tensor.parallel_insert_slice %[[P]] into %[[O1]]
// CHECK: tensor.parallel_insert_slice %[[Q]] into %[[O2]]
// BUFFER-LABEL: func.func @zeros
// BUFFER: %[[O1:.*]] = memref.alloc() {{.*}} : memref<2x5xf32>
// BUFFER: %[[O2:.*]] = memref.alloc() {{.*}} : memref<2x5xf32>
// BUFFER: scf.forall
// BUFFER-NOT: memref.alloc
// BUFFER-DAG: %[[P1:.*]] = memref.subview %[[O1]]
// BUFFER-DAG: %[[P2:.*]] = memref.subview %[[O2]]
// BUFFER-DAG: linalg.fill {{.*}} outs(%[[P1]]
// BUFFER-DAG: linalg.fill {{.*}} outs(%[[P2]]
// BUFFER: return
func.func @zeros(%x: tensor<4xf32>, %y: tensor<4xf32>)
    -> (tensor<2x5xf32>, tensor<2x5xf32>) {
  %zero = arith.constant 0.0 : f32
  %o = tensor.empty() : tensor<2x5xf32>
  %r:2 = scf.forall (%i) in (2) shared_outs(%o1 = %o, %o2 = %o) -> (tensor<2x5xf32>, tensor<2x5xf32>) {
    %e = tensor.empty() : tensor<5xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<5xf32>) -> tensor<5xf32>
    %p = tensor.insert_slice %x into %f[0] [4] [1] : tensor<4xf32> into tensor<5xf32>
    %q = tensor.insert_slice %y into %f[0] [4] [1] : tensor<4xf32> into tensor<5xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %p into %o1[%i, 0] [1, 5] [1, 1] : tensor<5xf32> into tensor<2x5xf32>
      tensor.parallel_insert_slice %q into %o2[%i, 0] [1, 5] [1, 1] : tensor<5xf32> into tensor<2x5xf32>
    }
  }
  return %r#0, %r#1 : tensor<2x5xf32>, tensor<2x5xf32>
}

// -----

// What two loops start from is one tensor for each.
// CHECK-LABEL: func.func @loops
// CHECK: %[[F1:.*]] = linalg.fill
// CHECK: %[[F2:.*]] = linalg.fill
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[F1]], %{{.*}} = %[[F2]])
func.func @loops(%x: tensor<4xf32>, %n: index)
    -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %o = tensor.empty() : tensor<2x4xf32>
  %r:2 = scf.forall (%i) in (2) shared_outs(%o1 = %o, %o2 = %o) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
    %e = tensor.empty() : tensor<4xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    %l:2 = scf.for %j = %c0 to %n step %c1 iter_args(%a = %f, %b = %f) -> (tensor<4xf32>, tensor<4xf32>) {
      %p = linalg.exp ins(%x : tensor<4xf32>) outs(%a : tensor<4xf32>) -> tensor<4xf32>
      %q = linalg.log ins(%x : tensor<4xf32>) outs(%b : tensor<4xf32>) -> tensor<4xf32>
      scf.yield %p, %q : tensor<4xf32>, tensor<4xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %l#0 into %o1[%i, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<2x4xf32>
      tensor.parallel_insert_slice %l#1 into %o2[%i, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<2x4xf32>
    }
  }
  return %r#0, %r#1 : tensor<2x4xf32>, tensor<2x4xf32>
}

// -----

// What is computed is copied, where it is computed: one destination gets it as
// it was, the other with a part replaced.
// CHECK-LABEL: func.func @computed
// CHECK: %[[F:.*]] = linalg.exp
// CHECK-NEXT: %[[C:.*]] = bufferization.alloc_tensor() copy(%[[F]])
// CHECK: %[[P:.*]] = tensor.insert_slice %{{.*}} into %[[F]]
// CHECK: tensor.parallel_insert_slice %[[P]] into
// CHECK: tensor.parallel_insert_slice %[[C]] into
func.func @computed(%x: tensor<4xf32>, %y: tensor<5xf32>)
    -> (tensor<2x5xf32>, tensor<2x5xf32>) {
  %o = tensor.empty() : tensor<2x5xf32>
  %r:2 = scf.forall (%i) in (2) shared_outs(%o1 = %o, %o2 = %o) -> (tensor<2x5xf32>, tensor<2x5xf32>) {
    %e = tensor.empty() : tensor<5xf32>
    %f = linalg.exp ins(%y : tensor<5xf32>) outs(%e : tensor<5xf32>) -> tensor<5xf32>
    %p = tensor.insert_slice %x into %f[0] [4] [1] : tensor<4xf32> into tensor<5xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %p into %o1[%i, 0] [1, 5] [1, 1] : tensor<5xf32> into tensor<2x5xf32>
      tensor.parallel_insert_slice %f into %o2[%i, 0] [1, 5] [1, 1] : tensor<5xf32> into tensor<2x5xf32>
    }
  }
  return %r#0, %r#1 : tensor<2x5xf32>, tensor<2x5xf32>
}

// -----

// Nothing to do: one value for two destinations, tensors from outside, which
// the loop does not write, and values of their own.
// CHECK-LABEL: func.func @apart
// CHECK-COUNT-2: tensor.empty() : tensor<4xf32>
// CHECK-NOT: tensor.empty() : tensor<4xf32>
// CHECK-NOT: alloc_tensor
func.func @apart(%x: tensor<4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) {
  %o = tensor.empty() : tensor<2x4xf32>
  %r:4 = scf.forall (%i) in (2) shared_outs(%o1 = %o, %o2 = %o, %o3 = %o, %o4 = %o) -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) {
    %e = tensor.empty() : tensor<4xf32>
    %e2 = tensor.empty() : tensor<4xf32>
    %f = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    %g = linalg.log ins(%f : tensor<4xf32>) outs(%e2 : tensor<4xf32>) -> tensor<4xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %f into %o1[%i, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<2x4xf32>
      tensor.parallel_insert_slice %f into %o2[%i, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<2x4xf32>
      tensor.parallel_insert_slice %g into %o3[%i, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<2x4xf32>
      tensor.parallel_insert_slice %x into %o4[%i, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<2x4xf32>
    }
  }
  return %r#0, %r#1, %r#2, %r#3 : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>
}
