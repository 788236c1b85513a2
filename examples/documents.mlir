// Causal attention within documents packed into one sequence: a query sees the
// keys of its own document. Blocks of other documents are never visited.
//
//   fovea-run examples/documents.mlir --random=1 --check

func.func @attend(%q: tensor<1x8x512x64xf32>, %k: tensor<1x8x512x64xf32>,
                  %v: tensor<1x8x512x64xf32>, %ids: tensor<1x512xi32>) -> tensor<1x8x512x64xf32> {
  %s = attn.scores %q, %k : tensor<1x8x512x64xf32>, tensor<1x8x512x64xf32> -> tensor<1x8x512x512xf32>
  %t = attn.scale %s by 0.125 : tensor<1x8x512x512xf32>
  %m = attn.mask %t {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %di = tensor.extract %ids[%b, %i] : tensor<1x512xi32>
    %dj = tensor.extract %ids[%b, %j] : tensor<1x512xi32>
    %same = arith.cmpi eq, %di, %dj : i32
    %causal = arith.cmpi sge, %i, %j : index
    %keep = arith.andi %same, %causal : i1
    attn.yield %keep : i1
  } : tensor<1x8x512x512xf32>
  %p = attn.softmax %m : tensor<1x8x512x512xf32> -> tensor<1x8x512x512xf32>
  %o = attn.values %p, %v : tensor<1x8x512x512xf32>, tensor<1x8x512x64xf32> -> tensor<1x8x512x64xf32>
  return %o : tensor<1x8x512x64xf32>
}
