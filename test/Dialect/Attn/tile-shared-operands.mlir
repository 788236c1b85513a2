// RUN: fovea-opt %s --attn-online-softmax --cse --attn-tile --split-input-file | FileCheck %s

// Queries of zeros stay what they are, and the loop over keys changes only the
// sums, which start as the same tensor.

// CHECK-LABEL: func @queries_of_zeros
// CHECK:         %[[ZEROS:.*]] = linalg.fill {{.*}} -> tensor<1x1x8x16xf32>
// CHECK:         scf.for {{.*}} iter_args(%[[ACC:.*]] = %[[ZEROS]],
// CHECK:           attn.online_attention {{.*}} ins(%[[ZEROS]], {{.*}}) outs(%[[ACC]],
func.func @queries_of_zeros(%k: tensor<1x1x?x16xf32>) -> tensor<1x1x8x16xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x1x8x16xf32>
  %q = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x1x8x16xf32>) -> tensor<1x1x8x16xf32>
  %o = attn.attention %q, %k, %k scale(0.25) {schedule = #attn.schedule<tile = 48x64, order = linear>}
    : tensor<1x1x8x16xf32>, tensor<1x1x?x16xf32>, tensor<1x1x?x16xf32> -> tensor<1x1x8x16xf32>
  return %o : tensor<1x1x8x16xf32>
}
