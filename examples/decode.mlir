// One step of decoding with a cache of keys and values: of each sequence one new
// query, at the position that %position says, and the keys up to it. What is
// behind is not read, so that one kernel serves all steps.
//
//   fovea-run examples/decode.mlir --dims=300 --random=1 --integers=0:299 --check

func.func @decode(%q: tensor<4x8x1x64xf16>, %keys: tensor<4x2x?x64xf16>,
                  %values: tensor<4x2x?x64xf16>, %position: tensor<4xi32>) -> tensor<4x8x1x64xf16> {
  %s = attn.scores %q, %keys : tensor<4x8x1x64xf16>, tensor<4x2x?x64xf16> -> tensor<4x8x1x?xf32>
  %t = attn.scale %s by 0.125 : tensor<4x8x1x?xf32>
  %m = attn.mask %t {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %start = tensor.extract %position[%b] : tensor<4xi32>
    %first = arith.index_cast %start : i32 to index
    %place = arith.addi %i, %first : index
    %keep = arith.cmpi sge, %place, %j : index
    attn.yield %keep : i1
  } : tensor<4x8x1x?xf32>
  %p = attn.softmax %m : tensor<4x8x1x?xf32> -> tensor<4x8x1x?xf32>
  %o = attn.values %p, %values : tensor<4x8x1x?xf32>, tensor<4x2x?x64xf16> -> tensor<4x8x1x64xf16>
  return %o : tensor<4x8x1x64xf16>
}
