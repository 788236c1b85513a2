// Attention as an importer leaves it: linalg on [batch, length, heads, dim], a
// causal mask selected by minus infinity, the four steps of softmax. Fusion
// recognises its structure.
//
//   fovea-compile examples/linalg_import.mlir --emit=fused

#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#row = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#q = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d1, d4)>
#k = affine_map<(d0, d1, d2, d3, d4) -> (d0, d3, d1, d4)>
#s = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>
#p = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)>
#v = affine_map<(d0, d1, d2, d3, d4) -> (d0, d4, d1, d3)>
#o = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d1, d3)>
func.func @attend(%q: tensor<2x256x8x64xf32>, %k: tensor<2x256x8x64xf32>,
                  %v: tensor<2x256x8x64xf32>) -> tensor<2x256x8x64xf32> {
  %zero = arith.constant 0.0 : f32
  %scale = arith.constant 0.125 : f32
  %inf = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<2x8x256x256xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<2x8x256x256xf32>) -> tensor<2x8x256x256xf32>
  %s = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
    ins(%q, %k : tensor<2x256x8x64xf32>, tensor<2x256x8x64xf32>) outs(%z : tensor<2x8x256x256xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %r = arith.addf %c, %m : f32
    linalg.yield %r : f32
  } -> tensor<2x8x256x256xf32>
  %m = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%s : tensor<2x8x256x256xf32>) outs(%e : tensor<2x8x256x256xf32>) {
  ^bb0(%x: f32, %c: f32):
    %i = linalg.index 2 : index
    %j = linalg.index 3 : index
    %keep = arith.cmpi sle, %j, %i : index
    %t = arith.mulf %x, %scale : f32
    %r = arith.select %keep, %t, %inf : f32
    linalg.yield %r : f32
  } -> tensor<2x8x256x256xf32>
  %re = tensor.empty() : tensor<2x8x256xf32>
  %ri = linalg.fill ins(%inf : f32) outs(%re : tensor<2x8x256xf32>) -> tensor<2x8x256xf32>
  %max = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
    ins(%m : tensor<2x8x256x256xf32>) outs(%ri : tensor<2x8x256xf32>) {
  ^bb0(%x: f32, %c: f32):
    %r = arith.maximumf %x, %c : f32
    linalg.yield %r : f32
  } -> tensor<2x8x256xf32>
  %exp = linalg.generic {indexing_maps = [#map, #row, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%m, %max : tensor<2x8x256x256xf32>, tensor<2x8x256xf32>) outs(%e : tensor<2x8x256x256xf32>) {
  ^bb0(%x: f32, %y: f32, %c: f32):
    %d = arith.subf %x, %y : f32
    %r = math.exp %d : f32
    linalg.yield %r : f32
  } -> tensor<2x8x256x256xf32>
  %rz = linalg.fill ins(%zero : f32) outs(%re : tensor<2x8x256xf32>) -> tensor<2x8x256xf32>
  %sum = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
    ins(%exp : tensor<2x8x256x256xf32>) outs(%rz : tensor<2x8x256xf32>) {
  ^bb0(%x: f32, %c: f32):
    %r = arith.addf %x, %c : f32
    linalg.yield %r : f32
  } -> tensor<2x8x256xf32>
  %p = linalg.generic {indexing_maps = [#map, #row, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%exp, %sum : tensor<2x8x256x256xf32>, tensor<2x8x256xf32>) outs(%e : tensor<2x8x256x256xf32>) {
  ^bb0(%x: f32, %y: f32, %c: f32):
    %r = arith.divf %x, %y : f32
    linalg.yield %r : f32
  } -> tensor<2x8x256x256xf32>
  %oe = tensor.empty() : tensor<2x256x8x64xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x256x8x64xf32>) -> tensor<2x256x8x64xf32>
  %o = linalg.generic {indexing_maps = [#p, #v, #o], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
    ins(%p, %v : tensor<2x8x256x256xf32>, tensor<2x256x8x64xf32>) outs(%oz : tensor<2x256x8x64xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %x = arith.mulf %a, %b : f32
    %r = arith.addf %c, %x : f32
    linalg.yield %r : f32
  } -> tensor<2x256x8x64xf32>
  return %o : tensor<2x256x8x64xf32>
}
