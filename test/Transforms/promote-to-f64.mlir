// RUN: fovea-opt --promote-to-f64 --split-input-file --mlir-print-local-scope %s \
// RUN:   | FileCheck %s

// Arguments keep their types and are extended on entry; results are f64.
// CHECK-LABEL: func.func @public(
// CHECK-SAME: %[[X:.*]]: tensor<4xf16>, %[[S:.*]]: f32, %[[I:.*]]: tensor<4xi32>)
// CHECK-SAME: -> (tensor<4xf64>, tensor<4xi32>)
func.func @public(%x: tensor<4xf16>, %s: f32, %i: tensor<4xi32>)
    -> (tensor<4xf32>, tensor<4xi32>) {
  // CHECK-DAG: arith.extf %[[S]] : f32 to f64
  // CHECK-DAG: %[[E:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<4xf16>)
  // CHECK: arith.constant dense<{{.*}}> : tensor<4xf64>
  %c = arith.constant dense<[1.0, 2.0, 3.0, 0xFF800000]> : tensor<4xf32>
  // Conversions between floats vanish.
  // CHECK-NOT: arith.extf
  // CHECK-NOT: arith.truncf
  // CHECK: arith.addf {{.*}} : tensor<4xf64>
  %w = arith.extf %x : tensor<4xf16> to tensor<4xf32>
  %y = arith.addf %w, %c : tensor<4xf32>
  return %y, %i : tensor<4xf32>, tensor<4xi32>
}

// -----

// Private functions, regions and attn ops are promoted as a whole.
// CHECK-LABEL: func.func private @callee(%{{.*}}: tensor<1x1x2x2xf64>)
// CHECK: attn.modify
// CHECK: ^bb0(%{{.*}}: f64,
// CHECK: arith.constant 5.000000e-01 : f64
func.func private @callee(%x: tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32> {
  %y = attn.modify %x {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %half = arith.constant 0.5 : f32
    %r = arith.mulf %s, %half : f32
    attn.yield %r : f32
  } : tensor<1x1x2x2xf32>
  return %y : tensor<1x1x2x2xf32>
}

// CHECK-LABEL: func.func @caller
// CHECK: call @callee(%{{.*}}) : (tensor<1x1x2x2xf64>) -> tensor<1x1x2x2xf64>
func.func @caller(%x: tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32> {
  %y = func.call @callee(%x) : (tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
  return %y : tensor<1x1x2x2xf32>
}

// -----

// What has no float, or only f64, stays.
// CHECK-LABEL: func.func @integers(
// CHECK-NEXT: arith.addi
// CHECK-NEXT: arith.negf {{.*}} : tensor<4xf64>
// CHECK-NEXT: return
func.func @integers(%x: tensor<4xi32>, %y: tensor<4xf64>)
    -> (tensor<4xi32>, tensor<4xf64>) {
  %z = arith.addi %x, %x : tensor<4xi32>
  %n = arith.negf %y : tensor<4xf64>
  return %z, %n : tensor<4xi32>, tensor<4xf64>
}

// -----

// Weights in the file's resources.
// CHECK-LABEL: func.func @resource
// CHECK: arith.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf64>
func.func @resource() -> tensor<2xf32> {
  %w = arith.constant dense_resource<weights> : tensor<2xf32>
  return %w : tensor<2xf32>
}

{-#
  dialect_resources: {
    builtin: {
      weights: "0x040000000000803F00000040"
    }
  }
#-}
