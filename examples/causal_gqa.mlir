// Causal attention of 16 query heads on 4 key/value heads, as a textbook writes
// it: scores, scale, mask, softmax, values.
//
//   fovea-run examples/causal_gqa.mlir --random=1 --check --time

func.func @attend(%q: tensor<2x16x1024x64xf32>, %k: tensor<2x4x1024x64xf32>,
                  %v: tensor<2x4x1024x64xf32>) -> tensor<2x16x1024x64xf32> {
  %s = attn.scores %q, %k : tensor<2x16x1024x64xf32>, tensor<2x4x1024x64xf32> -> tensor<2x16x1024x1024xf32>
  %t = attn.scale %s by 0.125 : tensor<2x16x1024x1024xf32>
  %m = attn.mask %t {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } : tensor<2x16x1024x1024xf32>
  %p = attn.softmax %m : tensor<2x16x1024x1024xf32> -> tensor<2x16x1024x1024xf32>
  %o = attn.values %p, %v : tensor<2x16x1024x1024xf32>, tensor<2x4x1024x64xf32> -> tensor<2x16x1024x64xf32>
  return %o : tensor<2x16x1024x64xf32>
}
