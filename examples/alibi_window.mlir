// Attention with ALiBi slopes (Press et al., arXiv 2108.12409), a soft cap and a
// sliding window, on any lengths: nothing of it needs a new kernel.
//
//   fovea-run examples/alibi_window.mlir --dims=300 --random=1 --check

func.func @attend(%q: tensor<2x8x?x64xf32>, %k: tensor<2x8x?x64xf32>,
                  %v: tensor<2x8x?x64xf32>, %slopes: tensor<8xf32>) -> tensor<2x8x?x64xf32> {
  %cap = arith.constant 30.0 : f32
  %window = arith.constant 128 : index
  %s = attn.scores %q, %k : tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32> -> tensor<2x8x?x?xf32>
  %t = attn.scale %s by 0.125 : tensor<2x8x?x?xf32>
  %a = attn.modify %t {
  ^bb0(%score: f32, %b: index, %h: index, %i: index, %j: index):
    %r = arith.divf %score, %cap : f32
    %c = math.tanh %r : f32
    %capped = arith.mulf %c, %cap : f32
    %slope = tensor.extract %slopes[%h] : tensor<8xf32>
    %d = arith.subi %j, %i : index
    %n = arith.index_cast %d : index to i32
    %f = arith.sitofp %n : i32 to f32
    %bias = arith.mulf %slope, %f : f32
    %biased = arith.addf %capped, %bias : f32
    attn.yield %biased : f32
  } : tensor<2x8x?x?xf32>
  %m = attn.mask %a {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %causal = arith.cmpi sge, %i, %j : index
    %d = arith.subi %i, %j : index
    %near = arith.cmpi slt, %d, %window : index
    %keep = arith.andi %causal, %near : i1
    attn.yield %keep : i1
  } : tensor<2x8x?x?xf32>
  %p = attn.softmax %m : tensor<2x8x?x?xf32> -> tensor<2x8x?x?xf32>
  %o = attn.values %p, %v : tensor<2x8x?x?xf32>, tensor<2x8x?x64xf32> -> tensor<2x8x?x64xf32>
  return %o : tensor<2x8x?x64xf32>
}
