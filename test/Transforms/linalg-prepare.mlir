// RUN: fovea-opt --linalg-prepare --split-input-file --mlir-print-local-scope %s \
// RUN:   | FileCheck %s

// CHECK-LABEL: func.func @named
func.func @named(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // CHECK: linalg.generic
  // CHECK:   arith.addf
  %a = arith.addf %x, %y : tensor<4x8xf32>
  // CHECK: linalg.generic
  // CHECK:   math.exp
  %b = linalg.exp ins(%a : tensor<4x8xf32>) outs(%x : tensor<4x8xf32>)
      -> tensor<4x8xf32>
  return %b : tensor<4x8xf32>
}

// -----

// CHECK-LABEL: func.func @decomposed
// CHECK-NOT: linalg.softmax
// CHECK-NOT: tensor.concat
// CHECK-NOT: tensor.pad
// CHECK: math.exp
// CHECK: tensor.insert_slice
func.func @decomposed(%x: tensor<4x8xf32>, %y: tensor<4x2xf32>) -> tensor<5x10xf32> {
  %s = linalg.softmax dimension(1) ins(%x : tensor<4x8xf32>)
      outs(%x : tensor<4x8xf32>) -> tensor<4x8xf32>
  %c = tensor.concat dim(1) %s, %y
      : (tensor<4x8xf32>, tensor<4x2xf32>) -> tensor<4x10xf32>
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %c low[0, 0] high[1, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<4x10xf32> to tensor<5x10xf32>
  return %p : tensor<5x10xf32>
}

// -----

// A constant that is the same everywhere is not read from memory.
// CHECK-LABEL: func.func @splat
// CHECK-SAME: %[[X:.*]]: tensor<4xf32>
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[X]] : tensor<4xf32>)
func.func @splat(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = arith.constant dense<2.0> : tensor<4xf32>
  %y = linalg.generic {
      indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>,
                       affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]}
      ins(%x, %c : tensor<4xf32>, tensor<4xf32>) outs(%x : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// Views and attn ops stay.
// CHECK-LABEL: func.func @others
// CHECK: tensor.expand_shape
// CHECK: attn.softmax
func.func @others(%x: tensor<12xf32>) -> tensor<3x4xf32> {
  %e = tensor.expand_shape %x [[0, 1]] output_shape [3, 4]
      : tensor<12xf32> into tensor<3x4xf32>
  %s = attn.softmax %e : tensor<3x4xf32> -> tensor<3x4xf32>
  return %s : tensor<3x4xf32>
}
