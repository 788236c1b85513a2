// examples/causal_gqa.mlir with operands of f16, as a GPU's tensor cores take
// them; scores and sums stay in f32. With operands of f32 no tensor core is used.
//
//   fovea-compile examples/causal_gqa_f16.mlir --target=sm_90a --emit=ptx
//   fovea-run examples/causal_gqa_f16.mlir --target=gpu --random=1 --check --time

func.func @attend(%q: tensor<2x16x1024x64xf16>, %k: tensor<2x4x1024x64xf16>,
                  %v: tensor<2x4x1024x64xf16>) -> tensor<2x16x1024x64xf16> {
  %s = attn.scores %q, %k : tensor<2x16x1024x64xf16>, tensor<2x4x1024x64xf16> -> tensor<2x16x1024x1024xf32>
  %t = attn.scale %s by 0.125 : tensor<2x16x1024x1024xf32>
  %m = attn.mask %t {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } : tensor<2x16x1024x1024xf32>
  %p = attn.softmax %m : tensor<2x16x1024x1024xf32> -> tensor<2x16x1024x1024xf32>
  %o = attn.values %p, %v : tensor<2x16x1024x1024xf32>, tensor<2x4x1024x64xf16> -> tensor<2x16x1024x64xf16>
  return %o : tensor<2x16x1024x64xf16>
}
