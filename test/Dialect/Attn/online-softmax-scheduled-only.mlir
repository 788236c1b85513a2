// RUN: fovea-opt %s --attn-online-softmax="scheduled-only" | FileCheck %s

// CHECK-LABEL: func @f
// CHECK: attn.attention %{{.*}} scale(2.500000e-01)
// CHECK: attn.online_attention scale(5.000000e-01)
func.func @f(%q: tensor<1x1x8x64xf32>) -> (tensor<1x1x8x64xf32>, tensor<1x1x8x64xf32>) {
  %0 = attn.attention %q, %q, %q scale(0.25) : tensor<1x1x8x64xf32>, tensor<1x1x8x64xf32>, tensor<1x1x8x64xf32> -> tensor<1x1x8x64xf32>
  %1 = attn.attention %q, %q, %q scale(0.5) {schedule = #attn.schedule<tile = 8x8, order = linear>} : tensor<1x1x8x64xf32>, tensor<1x1x8x64xf32>, tensor<1x1x8x64xf32> -> tensor<1x1x8x64xf32>
  return %0, %1 : tensor<1x1x8x64xf32>, tensor<1x1x8x64xf32>
}
