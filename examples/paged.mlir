// Attention on a paged cache: page %table[b, n] of the pools has the keys and
// values 16 n to 16 n + 15 of sequence b, of which there are %length[b]. The
// gathers are linalg. On a GPU attention loads pages from where they lie; on a
// host gathers are computed where attention loads a tile of keys, if the model of
// the machine says that this is faster.
//
//   fovea-run examples/paged.mlir --random=1 --integers=1:31 --check

#all = affine_map<(b, h, j, d) -> (b, h, j, d)>
func.func @paged(%q: tensor<2x8x8x64xf16>, %keys: tensor<32x16x4x64xf16>,
                 %values: tensor<32x16x4x64xf16>, %table: tensor<2x8xi32>,
                 %length: tensor<2xi32>) -> tensor<2x8x8x64xf16> {
  %page = arith.constant 16 : index
  %e = tensor.empty() : tensor<2x4x128x64xf16>
  %k = linalg.generic {indexing_maps = [#all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    outs(%e : tensor<2x4x128x64xf16>) {
  ^bb0(%out: f16):
    %b = linalg.index 0 : index
    %h = linalg.index 1 : index
    %j = linalg.index 2 : index
    %d = linalg.index 3 : index
    %n = arith.divui %j, %page : index
    %place = arith.remui %j, %page : index
    %number = tensor.extract %table[%b, %n] : tensor<2x8xi32>
    %which = arith.index_cast %number : i32 to index
    %x = tensor.extract %keys[%which, %place, %h, %d] : tensor<32x16x4x64xf16>
    linalg.yield %x : f16
  } -> tensor<2x4x128x64xf16>
  %v = linalg.generic {indexing_maps = [#all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    outs(%e : tensor<2x4x128x64xf16>) {
  ^bb0(%out: f16):
    %b = linalg.index 0 : index
    %h = linalg.index 1 : index
    %j = linalg.index 2 : index
    %d = linalg.index 3 : index
    %n = arith.divui %j, %page : index
    %place = arith.remui %j, %page : index
    %number = tensor.extract %table[%b, %n] : tensor<2x8xi32>
    %which = arith.index_cast %number : i32 to index
    %x = tensor.extract %values[%which, %place, %h, %d] : tensor<32x16x4x64xf16>
    linalg.yield %x : f16
  } -> tensor<2x4x128x64xf16>
  %s = attn.scores %q, %k : tensor<2x8x8x64xf16>, tensor<2x4x128x64xf16> -> tensor<2x8x8x128xf32>
  %t = attn.scale %s by 0.125 : tensor<2x8x8x128xf32>
  %m = attn.mask %t {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %number = tensor.extract %length[%b] : tensor<2xi32>
    %end = arith.index_cast %number : i32 to index
    %keep = arith.cmpi slt, %j, %end : index
    attn.yield %keep : i1
  } : tensor<2x8x8x128xf32>
  %p = attn.softmax %m : tensor<2x8x8x128xf32> -> tensor<2x8x8x128xf32>
  %o = attn.values %p, %v : tensor<2x8x8x128xf32>, tensor<2x4x128x64xf16> -> tensor<2x8x8x64xf16>
  return %o : tensor<2x8x8x64xf16>
}
