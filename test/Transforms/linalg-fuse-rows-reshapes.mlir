// RUN: fovea-opt %s --convert-attn-to-linalg --linalg-prepare --canonicalize --cse --linalg-fuse-rows | FileCheck %s

// The heads of the queries are expanded in front of both layer norms, whose ops
// the expansion passes one by one: they are one loop.

// CHECK-LABEL: func @norms
// CHECK: %[[Q:.+]] = tensor.expand_shape %arg0 {{.*}} : tensor<1x16x?x2xf16> into tensor<1x2x8x?x2xf16>
// CHECK: scf.forall
// CHECK: tensor.extract_slice %[[Q]]
// CHECK: math.sqrt
// CHECK-NOT: scf.forall.in_parallel
// CHECK: math.sqrt
// CHECK: scf.forall.in_parallel
func.func @norms(%q: tensor<1x16x?x2xf16>, %k: tensor<1x2x?x2xf16>,
                 %weight: tensor<2xf32>, %bias: tensor<2xf32>)
    -> tensor<1x16x?x?xf32> {
  %0 = attn.layer_norm %q weight(%weight : tensor<2xf32>) bias(%bias : tensor<2xf32>) epsilon(1.0e-05) : tensor<1x16x?x2xf16>
  %1 = attn.layer_norm %0 weight(%weight : tensor<2xf32>) epsilon(1.0e-05) : tensor<1x16x?x2xf16>
  %2 = attn.scores %1, %k : tensor<1x16x?x2xf16>, tensor<1x2x?x2xf16> -> tensor<1x16x?x?xf32>
  return %2 : tensor<1x16x?x?xf32>
}
