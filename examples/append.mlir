// New keys and values for a cache in pages, and attention to all that it has then:
// the cache is updated in place, by a loop that places each new row; on a GPU by one
// launch in front of attention. Sequence b has %length[b] keys before the call, and
// one more after it.
//
//   fovea-run examples/append.mlir --random=1 --integers=1:31 --check

#all = affine_map<(b, h, j, d) -> (b, h, j, d)>
#row = affine_map<(n, d) -> (n, d)>
!cache = tensor<32x16x4x64xbf16>
!new = tensor<2x4x64xbf16>
!keys = tensor<2x4x128x64xbf16>
!row = tensor<?x64xbf16>
func.func @append(%q: tensor<2x16x1x64xbf16>,
                  %keys: !cache {bufferization.writable = true},
                  %values: !cache {bufferization.writable = true},
                  %k: !new, %v: !new, %table: tensor<2x8xi32>,
                  %length: tensor<2xi32>) -> tensor<2x16x1x64xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %pages = arith.constant 32 : index
  %page = arith.constant 16 : index
  // A row whose page is none of the cache has no place: %n is 0.
  %all_keys, %all_values = scf.forall (%b, %h) in (2, 4)
      shared_outs(%ko = %keys, %vo = %values) -> (!cache, !cache) {
    %end = tensor.extract %length[%b] : tensor<2xi32>
    %j = arith.index_cast %end : i32 to index
    %column = arith.divui %j, %page : index
    %place = arith.remui %j, %page : index
    %number = tensor.extract %table[%b, %column] : tensor<2x8xi32>
    %which = arith.index_cast %number : i32 to index
    %exists = arith.cmpi ult, %which, %pages : index
    %at = arith.select %exists, %which, %c0 : index
    %n = arith.select %exists, %c1, %c0 : index
    %kr = tensor.extract_slice %ko[%at, %place, %h, 0] [%n, 1, 1, 64] [1, 1, 1, 1] : !cache to !row
    %vr = tensor.extract_slice %vo[%at, %place, %h, 0] [%n, 1, 1, 64] [1, 1, 1, 1] : !cache to !row
    %kn, %vn = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel"]}
        outs(%kr, %vr : !row, !row) {
    ^bb0(%old_k: bf16, %old_v: bf16):
      %d = linalg.index 1 : index
      %x = tensor.extract %k[%b, %h, %d] : !new
      %y = tensor.extract %v[%b, %h, %d] : !new
      linalg.yield %x, %y : bf16, bf16
    } -> (!row, !row)
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %kn into %ko[%at, %place, %h, 0] [%n, 1, 1, 64] [1, 1, 1, 1] : !row into !cache
      tensor.parallel_insert_slice %vn into %vo[%at, %place, %h, 0] [%n, 1, 1, 64] [1, 1, 1, 1] : !row into !cache
    }
  }
  %e = tensor.empty() : !keys
  %gk = linalg.generic {indexing_maps = [#all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    outs(%e : !keys) {
  ^bb0(%out: bf16):
    %b = linalg.index 0 : index
    %h = linalg.index 1 : index
    %j = linalg.index 2 : index
    %d = linalg.index 3 : index
    %column = arith.divui %j, %page : index
    %place = arith.remui %j, %page : index
    %number = tensor.extract %table[%b, %column] : tensor<2x8xi32>
    %which = arith.index_cast %number : i32 to index
    %x = tensor.extract %all_keys[%which, %place, %h, %d] : !cache
    linalg.yield %x : bf16
  } -> !keys
  %gv = linalg.generic {indexing_maps = [#all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    outs(%e : !keys) {
  ^bb0(%out: bf16):
    %b = linalg.index 0 : index
    %h = linalg.index 1 : index
    %j = linalg.index 2 : index
    %d = linalg.index 3 : index
    %column = arith.divui %j, %page : index
    %place = arith.remui %j, %page : index
    %number = tensor.extract %table[%b, %column] : tensor<2x8xi32>
    %which = arith.index_cast %number : i32 to index
    %x = tensor.extract %all_values[%which, %place, %h, %d] : !cache
    linalg.yield %x : bf16
  } -> !keys
  %o = attn.attention %q, %gk, %gv scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %end = tensor.extract %length[%b] : tensor<2xi32>
    %last = arith.index_cast %end : i32 to index
    %keep = arith.cmpi sle, %j, %last : index
    attn.yield %keep : i1
  } : tensor<2x16x1x64xbf16>, !keys, !keys -> tensor<2x16x1x64xbf16>
  return %o : tensor<2x16x1x64xbf16>
}
