// RUN: fovea-opt --convert-attn-to-linalg=scope=elementwise %s | FileCheck %s
// RUN: not fovea-opt --convert-attn-to-linalg=scope=all %s 2>&1 | FileCheck %s --check-prefix=ERROR

// ERROR: error: convert-attn-to-linalg: scope is `all`, expected `graph` or `elementwise`

// What becomes one elementwise op is converted, all else stays.

// CHECK-LABEL: func @mixed
// CHECK:       attn.rms_norm
// CHECK:       attn.softmax
// CHECK:       linalg.generic {{.*}} {machine.kernel = 0 : i64}
// CHECK:         arith.mulf
// CHECK:       linalg.generic {{.*}} {machine.kernel = 1 : i64}
// CHECK:         linalg.index 0{{ }}
// CHECK:       linalg.generic {{.*}} {machine.kernel = 2 : i64}
// CHECK:         arith.addf
// CHECK:       linalg.generic {{.*}} {machine.kernel = 3 : i64}
// CHECK:         math.tanh
// CHECK-NOT:   linalg.generic
func.func @mixed(%x: tensor<8x16xf32>, %seed: i64, %offset: i64) -> tensor<8x16xf32> {
  %n = attn.rms_norm %x epsilon(1.0e-6) : tensor<8x16xf32>
  %p = attn.softmax %n : tensor<8x16xf32> -> tensor<8x16xf32>
  %s = attn.scale %p by 0.5 : tensor<8x16xf32>
  %d = attn.dropout %s, 0.1 seed(%seed, %offset) : tensor<8x16xf32>
  %r = attn.residual_add %d, %x : tensor<8x16xf32>, tensor<8x16xf32>
  %y = attn.elementwise %r {
  ^bb0(%a: f32):
    %t = math.tanh %a : f32
    attn.yield %t : f32
  } : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}
