// RUN: fovea-opt --attn-partition-gradient --canonicalize --split-input-file \
// RUN:   --mlir-use-nameloc-as-prefix %s | FileCheck %s

// What the backward pass reads of the rest: one input, one result, one tensor
// that is neither; sizes and constants are computed again.
// CHECK-NOT: @f_gradient
// CHECK-LABEL: func.func @f_forward(
// CHECK-SAME: %[[X:.*]]: tensor<?xf32>, %{{.*}}: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>)
// CHECK: %[[A:.*]] = math.exp %[[X]]
// CHECK: %[[R:.*]] = math.tanh %[[A]]
// CHECK: return %[[R]], %[[A]]
// CHECK-LABEL: func.func @f_backward(
// CHECK-SAME: %arg1: tensor<?xf32>, %result0: tensor<?xf32>, %saved0: tensor<?xf32>, %{{.*}}: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>)
// CHECK: arith.mulf %{{.*}}, %result0
// CHECK: arith.mulf %{{.*}}, %saved0
// CHECK: tensor.dim %arg1
// CHECK: linalg.fill
func.func @f_gradient(%x: tensor<?xf32>, %y: tensor<?xf32>, %d: tensor<?xf32>)
    -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>)
    attributes {attn.joint = array<i64: 2, 1>} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %a = math.exp %x : tensor<?xf32>
  %r = math.tanh %a : tensor<?xf32>
  %g = arith.mulf %d, %r : tensor<?xf32>
  %h = arith.mulf %g, %a : tensor<?xf32>
  %n = tensor.dim %y, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  return %r, %h, %z : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
}

// -----

// Other functions stay.
// CHECK-LABEL: func.func @other
func.func @other(%x: tensor<?xf32>) -> tensor<?xf32> {
  return %x : tensor<?xf32>
}
