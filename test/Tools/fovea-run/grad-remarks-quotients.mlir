// A sink: the output is divided by a sum with an exponential, which in gradients
// looks like a softmax, but nobody wrote one that is not fused.

// RUN: fovea-run %s --grad --random=1 --recompute=always 2>&1 | FileCheck %s --implicit-check-not=remark
// CHECK: result 4 (gradient of %sink): f32 4, mean

func.func @sink(%q: tensor<1x4x20x64xf32>, %k: tensor<1x4x20x64xf32>, %v: tensor<1x4x20x64xf32>, %sink: tensor<4xf32>) -> tensor<1x4x20x64xf32> {
  %one = arith.constant 1.0 : f32
  %o, %l = attn.attention %q, %k, %v scale(0.125)
      : tensor<1x4x20x64xf32>, tensor<1x4x20x64xf32>, tensor<1x4x20x64xf32> -> tensor<1x4x20x64xf32>, tensor<1x4x20xf32>
  %e = tensor.empty() : tensor<1x4x20x64xf32>
  %r = linalg.generic {
      indexing_maps = [affine_map<(b, h, i, d) -> (b, h, i, d)>, affine_map<(b, h, i, d) -> (b, h, i)>,
                       affine_map<(b, h, i, d) -> (h)>, affine_map<(b, h, i, d) -> (b, h, i, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%o, %l, %sink : tensor<1x4x20x64xf32>, tensor<1x4x20xf32>, tensor<4xf32>) outs(%e : tensor<1x4x20x64xf32>) {
  ^bb0(%x: f32, %lse: f32, %s: f32, %out: f32):
    %d = arith.subf %s, %lse : f32
    %t = math.exp %d : f32
    %n = arith.addf %t, %one : f32
    %y = arith.divf %x, %n : f32
    linalg.yield %y : f32
  } -> tensor<1x4x20x64xf32>
  return %r : tensor<1x4x20x64xf32>
}
