// What surrounds attention, computed on its tiles or not: the results are those
// of the graph, kernel by kernel.
// RUN: split-file %s %t
// RUN: fovea-run %t/gated.mlir --random=3 --check --dims=37
// RUN: fovea-run %t/gated.mlir --random=3 --check --dims=0
// RUN: fovea-run %t/gated.mlir --random=3 --check --dims=130 --strategy=two-pass
// RUN: fovea-run %t/heads_inside.mlir --random=3 --check --dims=61
// RUN: fovea-run %t/heads_inside.mlir --random=3 --check --dims=1
// RUN: fovea-run %t/dropped.mlir --random=3 --check --dims=100
// RUN: fovea-run %t/cast_and_scaled.mlir --random=3 --check --dims=50
// RUN: fovea-run %t/two_readers.mlir --random=3 --check --dims=70
// RUN: fovea-run %t/row_sums.mlir --random=3 --check --dims=70
// RUN: fovea-run %t/normed.mlir --random=3 --check --dims=49
// RUN: fovea-run %t/head_sum.mlir --random=3 --check --dims=40
// RUN: fovea-run %t/projected.mlir --random=3 --check --dims=40
// RUN: fovea-run %t/self_gated.mlir --random=3 --check --dims=40
// RUN: fovea-run %t/two_routes.mlir --random=3 --check
// RUN: fovea-run %t/decode.mlir --random=3 --check --dims=k:2x2x100x16 --dims=v:2x2x100x16 --dims=cos:100x8 --dims=sin:100x8
// RUN: fovea-run %t/decode.mlir --random=3 --check --dims=k:2x2x129x16 --dims=v:2x2x129x16 --dims=cos:129x8 --dims=sin:129x8 --strategy=two-pass
// RUN: fovea-run %t/decode.mlir --random=3 --check --dims=k:2x2x64x16 --dims=v:2x2x64x16 --dims=cos:64x8 --dims=sin:64x8 --strategy=three-pass
// RUN: fovea-run %t/quantised.mlir --random=3 --check --dims=300
// RUN: fovea-run %t/cached.mlir --random=3 --check --dims=33
// RUN: fovea-run %t/shared_memory.mlir --random=3 --check --dims=65
// RUN: fovea-run %t/masked_decode.mlir --random=3 --check --dims=200
// RUN: fovea-run %t/turned_prefix.mlir --random=3 --check
// RUN: fovea-run %t/wide_values.mlir --random=3 --check
// RUN: fovea-run %t/wide_values.mlir --random=3 --check --strategy=unfused

//--- gated.mlir
!t = tensor<2x4x?x16xbf16>
!s = tensor<2x4x?x?xf32>
func.func @gated(%q: !t, %k: !t, %v: !t, %x: !t, %r: tensor<2x4x?x16xf32>) -> !t {
  %s = attn.scores %q, %k : !t, !t -> !s
  %p = attn.softmax %s : !s -> !s
  %o = attn.values %p, %v : !s, !t -> !t
  // The gate is computed later than attention, and for its tiles.
  %g = attn.elementwise %x {
  ^bb0(%a: bf16):
    %one = arith.constant 1.0 : f32
    %w = arith.extf %a : bf16 to f32
    %n = arith.negf %w : f32
    %e = math.exp %n : f32
    %d = arith.addf %e, %one : f32
    %y = arith.divf %one, %d : f32
    %z = arith.truncf %y : f32 to bf16
    attn.yield %z : bf16
  } : (!t) -> !t
  %y = attn.elementwise %o, %g {
  ^bb0(%a: bf16, %b: bf16):
    %m = arith.mulf %a, %b : bf16
    attn.yield %m : bf16
  } : (!t, !t) -> !t
  %z = attn.residual_add %y, %r : !t, tensor<2x4x?x16xf32>
  return %z : !t
}

//--- heads_inside.mlir
#id3 = affine_map<(b, i, d) -> (b, i, d)>
#last3 = affine_map<(b, i, d) -> (d)>
!s = tensor<2x4x?x?xf32>
func.func @heads_inside(%q: tensor<2x?x4x16xf32>, %k: tensor<2x?x4x16xf32>, %v: tensor<2x?x4x16xf32>, %g: tensor<2x?x64xf32>, %b: tensor<64xf32>) -> tensor<2x?x64xf32> {
  %c1 = arith.constant 1 : index
  %n = tensor.dim %q, %c1 : tensor<2x?x4x16xf32>
  %e = tensor.empty(%n) : tensor<2x4x?x16xf32>
  %qt = linalg.transpose ins(%q : tensor<2x?x4x16xf32>) outs(%e : tensor<2x4x?x16xf32>) permutation = [0, 2, 1, 3]
  %kt = linalg.transpose ins(%k : tensor<2x?x4x16xf32>) outs(%e : tensor<2x4x?x16xf32>) permutation = [0, 2, 1, 3]
  %vt = linalg.transpose ins(%v : tensor<2x?x4x16xf32>) outs(%e : tensor<2x4x?x16xf32>) permutation = [0, 2, 1, 3]
  %s = attn.scores %qt, %kt : tensor<2x4x?x16xf32>, tensor<2x4x?x16xf32> -> !s
  %p = attn.softmax %s : !s -> !s
  %o = attn.values %p, %vt : !s, tensor<2x4x?x16xf32> -> tensor<2x4x?x16xf32>
  %f = tensor.empty(%n) : tensor<2x?x4x16xf32>
  %ot = linalg.transpose ins(%o : tensor<2x4x?x16xf32>) outs(%f : tensor<2x?x4x16xf32>) permutation = [0, 2, 1, 3]
  %flat = tensor.collapse_shape %ot [[0], [1], [2, 3]] : tensor<2x?x4x16xf32> into tensor<2x?x64xf32>
  %h = tensor.empty(%n) : tensor<2x?x64xf32>
  %y = linalg.generic {indexing_maps = [#id3, #id3, #last3, #id3], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%flat, %g, %b : tensor<2x?x64xf32>, tensor<2x?x64xf32>, tensor<64xf32>) outs(%h : tensor<2x?x64xf32>) {
  ^bb0(%a: f32, %c: f32, %d: f32, %out: f32):
    %m = arith.mulf %a, %c : f32
    %z = arith.addf %m, %d : f32
    linalg.yield %z : f32
  } -> tensor<2x?x64xf32>
  %z = attn.residual_add %y, %g : tensor<2x?x64xf32>, tensor<2x?x64xf32>
  return %z : tensor<2x?x64xf32>
}

//--- dropped.mlir
!s = tensor<2x4x?x?xf32>
!f = tensor<2x4x?x16xf32>
func.func @dropped(%q: !f, %k: !f, %v: !f, %x: !f, %seed: i64, %offset: i64) -> !f {
  %s = attn.scores %q, %k : !f, !f -> !s
  %p = attn.softmax %s : !s -> !s
  %o = attn.values %p, %v : !s, !f -> !f
  %d = attn.dropout %o, 0.25 seed(%seed, %offset) : !f
  %y = attn.residual_add %d, %x : !f, !f
  return %y : !f
}

//--- cast_and_scaled.mlir
!s = tensor<2x4x?x?xf32>
!f = tensor<2x4x?x16xf32>
func.func @cast_and_scaled(%q: !f, %k: !f, %v: !f) -> tensor<2x4x?x16xf16> {
  %s = attn.scores %q, %k : !f, !f -> !s
  %p = attn.softmax %s : !s -> !s
  %o = attn.values %p, %v : !s, !f -> !f
  %y = attn.scale %o by 0.5 : !f
  %a = math.absf %y : !f
  %z = arith.truncf %a : !f to tensor<2x4x?x16xf16>
  return %z : tensor<2x4x?x16xf16>
}

//--- two_readers.mlir
!s = tensor<2x4x?x?xf32>
!f = tensor<2x4x?x16xf32>
func.func @two_readers(%q: !f, %k: !f, %v: !f, %x: !f) -> (!f, !f) {
  %s = attn.scores %q, %k : !f, !f -> !s
  %p = attn.softmax %s : !s -> !s
  %o = attn.values %p, %v : !s, !f -> !f
  %y = attn.residual_add %o, %x : !f, !f
  return %y, %o : !f, !f
}

//--- row_sums.mlir
#id = affine_map<(b, h, i, d) -> (b, h, i, d)>
#row = affine_map<(b, h, i, d) -> (b, h, i)>
!s = tensor<2x4x?x?xf32>
!f = tensor<2x4x?x16xf32>
func.func @row_sums(%q: !f, %k: !f, %v: !f, %x: !f) -> (tensor<2x4x?xf32>, !f) {
  %s = attn.scores %q, %k : !f, !f -> !s
  %p = attn.softmax %s : !s -> !s
  %o = attn.values %p, %v : !s, !f -> !f
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %o, %c2 : !f
  %e = tensor.empty(%n) : tensor<2x4x?xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x?xf32>) -> tensor<2x4x?xf32>
  %y = linalg.generic {indexing_maps = [#id, #id, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
    ins(%o, %x : !f, !f) outs(%i : tensor<2x4x?xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %z = arith.addf %m, %c : f32
    linalg.yield %z : f32
  } -> tensor<2x4x?xf32>
  return %y, %o : tensor<2x4x?xf32>, !f
}

//--- normed.mlir
!s = tensor<2x4x?x?xf32>
!f = tensor<2x4x?x16xf32>
func.func @normed(%q: !f, %k: !f, %v: !f, %w: tensor<16xf32>, %x: !f) -> !f {
  %s = attn.scores %q, %k : !f, !f -> !s
  %p = attn.softmax %s : !s -> !s
  %o = attn.values %p, %v : !s, !f -> !f
  %n = attn.rms_norm %o weight(%w : tensor<16xf32>) epsilon(1.0e-6) : !f
  %y = attn.residual_add %n, %x : !f, !f
  %z = attn.layer_norm %y epsilon(1.0e-5) : !f
  return %z : !f
}

//--- head_sum.mlir
#id = affine_map<(b, h, i, d) -> (b, h, i, d)>
#no_head = affine_map<(b, h, i, d) -> (b, i, d)>
!s = tensor<2x4x?x?xf32>
!f = tensor<2x4x?x16xf32>
func.func @head_sum(%q: !f, %k: !f, %v: !f) -> tensor<2x?x16xf32> {
  %s = attn.scores %q, %k : !f, !f -> !s
  %p = attn.softmax %s : !s -> !s
  %o = attn.values %p, %v : !s, !f -> !f
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %o, %c2 : !f
  %e = tensor.empty(%n) : tensor<2x?x16xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<2x?x16xf32>) -> tensor<2x?x16xf32>
  %y = linalg.generic {indexing_maps = [#id, #no_head], iterator_types = ["parallel", "reduction", "parallel", "parallel"]}
    ins(%o : !f) outs(%i : tensor<2x?x16xf32>) {
  ^bb0(%a: f32, %c: f32):
    %z = arith.addf %a, %c : f32
    linalg.yield %z : f32
  } -> tensor<2x?x16xf32>
  return %y : tensor<2x?x16xf32>
}

//--- projected.mlir
!s = tensor<2x4x?x?xf32>
!f = tensor<2x4x?x16xf32>
func.func @projected(%q: !f, %k: !f, %v: !f, %w: tensor<4x16x32xf32>) -> tensor<2x?x32xf32> {
  %s = attn.scores %q, %k : !f, !f -> !s
  %p = attn.softmax %s : !s -> !s
  %o = attn.values %p, %v : !s, !f -> !f
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %o, %c2 : !f
  %e = tensor.empty(%n) : tensor<2x?x32xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<2x?x32xf32>) -> tensor<2x?x32xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(b, i, e, h, d) -> (b, h, i, d)>, affine_map<(b, i, e, h, d) -> (h, d, e)>, affine_map<(b, i, e, h, d) -> (b, i, e)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
    ins(%o, %w : !f, tensor<4x16x32xf32>) outs(%i : tensor<2x?x32xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %z = arith.addf %m, %c : f32
    linalg.yield %z : f32
  } -> tensor<2x?x32xf32>
  return %y : tensor<2x?x32xf32>
}

//--- self_gated.mlir
!s = tensor<2x4x?x?xf32>
!f = tensor<2x4x?x16xf32>
func.func @self_gated(%q: !f, %k: !f, %v: !f) -> !f {
  %s = attn.scores %q, %k : !f, !f -> !s
  %p = attn.softmax %s : !s -> !s
  %o = attn.values %p, %v : !s, !f -> !f
  %t = math.tanh %o : !f
  %y = arith.mulf %o, %t : !f
  return %y : !f
}

//--- two_routes.mlir
// A reader that depends on the output by another route, across tiles.
func.func @two_routes(%q: tensor<1x8x8x16xf32>, %k: tensor<1x8x8x16xf32>) -> tensor<1x8x8x16xf32> {
  %s = attn.scores %q, %k : tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32> -> tensor<1x8x8x8xf32>
  %p = attn.softmax %s : tensor<1x8x8x8xf32> -> tensor<1x8x8x8xf32>
  %o = attn.values %p, %k : tensor<1x8x8x8xf32>, tensor<1x8x8x16xf32> -> tensor<1x8x8x16xf32>
  %e = tensor.empty() : tensor<1x8x8x16xf32>
  %t = linalg.transpose ins(%o : tensor<1x8x8x16xf32>) outs(%e : tensor<1x8x8x16xf32>) permutation = [0, 2, 1, 3]
  %y = arith.addf %o, %t : tensor<1x8x8x16xf32>
  return %y : tensor<1x8x8x16xf32>
}

//--- decode.mlir
!kv = tensor<2x2x?x16xf16>
// One query: keys are normed and rotated, and values scaled, in the loads.
func.func @decode(%q: tensor<2x4x1x16xf16>, %k: !kv, %v: !kv, %w: tensor<16xf32>, %cos: tensor<?x8xf32>, %sin: tensor<?x8xf32>) -> tensor<2x4x1x16xf16> {
  %n = attn.rms_norm %k weight(%w : tensor<16xf32>) epsilon(1.0e-6) : !kv
  %r = attn.rope %n, %cos, %sin : !kv, tensor<?x8xf32>, tensor<?x8xf32>
  %u = attn.scale %v by 0.75 : !kv
  %s = attn.scores %q, %r : tensor<2x4x1x16xf16>, !kv -> tensor<2x4x1x?xf32>
  %p = attn.softmax %s : tensor<2x4x1x?xf32> -> tensor<2x4x1x?xf32>
  %o = attn.values %p, %u : tensor<2x4x1x?xf32>, !kv -> tensor<2x4x1x16xf16>
  return %o : tensor<2x4x1x16xf16>
}

//--- quantised.mlir
#id = affine_map<(b, h, i, d) -> (b, h, i, d)>
#row = affine_map<(b, h, i, d) -> (b, h, i)>
// Keys and values of 8 bits with a scale for each row.
func.func @quantised(%q: tensor<1x2x3x32xf32>, %k: tensor<1x2x?x32xi8>, %ks: tensor<1x2x?xf32>, %v: tensor<1x2x?x32xi8>, %vs: tensor<1x2x?xf32>) -> tensor<1x2x3x32xf32> {
  %c2 = arith.constant 2 : index
  %n = tensor.dim %k, %c2 : tensor<1x2x?x32xi8>
  %e = tensor.empty(%n) : tensor<1x2x?x32xf32>
  %kf = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%k, %ks : tensor<1x2x?x32xi8>, tensor<1x2x?xf32>) outs(%e : tensor<1x2x?x32xf32>) {
  ^bb0(%a: i8, %b: f32, %c: f32):
    %x = arith.sitofp %a : i8 to f32
    %small = arith.constant 0.01 : f32
    %y = arith.mulf %x, %small : f32
    %z = arith.mulf %y, %b : f32
    linalg.yield %z : f32
  } -> tensor<1x2x?x32xf32>
  %vf = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%v, %vs : tensor<1x2x?x32xi8>, tensor<1x2x?xf32>) outs(%e : tensor<1x2x?x32xf32>) {
  ^bb0(%a: i8, %b: f32, %c: f32):
    %x = arith.sitofp %a : i8 to f32
    %z = arith.mulf %x, %b : f32
    linalg.yield %z : f32
  } -> tensor<1x2x?x32xf32>
  %s = attn.scores %q, %kf : tensor<1x2x3x32xf32>, tensor<1x2x?x32xf32> -> tensor<1x2x3x?xf32>
  %p = attn.softmax %s : tensor<1x2x3x?xf32> -> tensor<1x2x3x?xf32>
  %o = attn.values %p, %vf : tensor<1x2x3x?xf32>, tensor<1x2x?x32xf32> -> tensor<1x2x3x32xf32>
  return %o : tensor<1x2x3x32xf32>
}

//--- cached.mlir
// The rotated keys are a result: they are computed once.
func.func @cached(%q: tensor<1x2x1x16xf32>, %k: tensor<1x2x?x16xf32>, %cos: tensor<?x8xf32>, %sin: tensor<?x8xf32>) -> (tensor<1x2x1x16xf32>, tensor<1x2x?x16xf32>) {
  %r = attn.rope %k, %cos, %sin interleaved : tensor<1x2x?x16xf32>, tensor<?x8xf32>, tensor<?x8xf32>
  %s = attn.scores %q, %r : tensor<1x2x1x16xf32>, tensor<1x2x?x16xf32> -> tensor<1x2x1x?xf32>
  %p = attn.softmax %s : tensor<1x2x1x?xf32> -> tensor<1x2x1x?xf32>
  %o = attn.values %p, %k : tensor<1x2x1x?xf32>, tensor<1x2x?x16xf32> -> tensor<1x2x1x16xf32>
  return %o, %r : tensor<1x2x1x16xf32>, tensor<1x2x?x16xf32>
}

//--- shared_memory.mlir
// Keys and values are one tensor.
func.func @shared_memory(%q: tensor<1x2x5x16xf32>, %k: tensor<1x2x?x16xf32>) -> tensor<1x2x5x16xf32> {
  %n = attn.layer_norm %k epsilon(1.0e-5) : tensor<1x2x?x16xf32>
  %s = attn.scores %q, %n : tensor<1x2x5x16xf32>, tensor<1x2x?x16xf32> -> tensor<1x2x5x?xf32>
  %p = attn.softmax %s : tensor<1x2x5x?xf32> -> tensor<1x2x5x?xf32>
  %o = attn.values %p, %n : tensor<1x2x5x?xf32>, tensor<1x2x?x16xf32> -> tensor<1x2x5x16xf32>
  return %o : tensor<1x2x5x16xf32>
}

//--- masked_decode.mlir
// Tiles of keys that the mask skips are not computed.
func.func @masked_decode(%q: tensor<1x2x4x16xf32>, %k: tensor<1x2x?x16xf32>, %len: tensor<1xi32>) -> tensor<1x2x4x16xf32> {
  %n = attn.rms_norm %k epsilon(1.0e-5) : tensor<1x2x?x16xf32>
  %s = attn.scores %q, %n : tensor<1x2x4x16xf32>, tensor<1x2x?x16xf32> -> tensor<1x2x4x?xf32>
  %m = attn.mask %s {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %l = tensor.extract %len[%b] : tensor<1xi32>
    %seven = arith.constant 127 : i32
    %length = arith.andi %l, %seven : i32
    %at = arith.index_cast %length : i32 to index
    %keep = arith.cmpi sle, %j, %at : index
    attn.yield %keep : i1
  } : tensor<1x2x4x?xf32>
  %p = attn.softmax %m : tensor<1x2x4x?xf32> -> tensor<1x2x4x?xf32>
  %o = attn.values %p, %n : tensor<1x2x4x?xf32>, tensor<1x2x?x16xf32> -> tensor<1x2x4x16xf32>
  return %o : tensor<1x2x4x16xf32>
}

//--- turned_prefix.mlir
// Turned keys, of which the mask keeps a constant number that no tile divides.
func.func @turned_prefix(%q: tensor<1x1x31x8xf32>, %k: tensor<1x1x128x8xf32>, %v: tensor<1x1x128x8xf32>, %c: tensor<128x4xf32>, %s: tensor<128x4xf32>) -> tensor<1x1x31x8xf32> {
  %c5 = arith.constant 5 : index
  %r = attn.rope %k, %c, %s : tensor<1x1x128x8xf32>, tensor<128x4xf32>, tensor<128x4xf32>
  %o = attn.attention %q, %r, %v scale(1.0) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %m = arith.cmpi slt, %j, %c5 : index
    attn.yield %m : i1
  } : tensor<1x1x31x8xf32>, tensor<1x1x128x8xf32>, tensor<1x1x128x8xf32> -> tensor<1x1x31x8xf32>
  return %o : tensor<1x1x31x8xf32>
}

//--- wide_values.mlir
// The accumulation type is f64 for the products of queries and keys as well.
func.func @wide_values(%q: tensor<1x1x33x64xf32>, %k: tensor<1x1x33x64xf32>, %v: tensor<1x1x33x64xf64>) -> tensor<1x1x33x64xf64> {
  %o = attn.attention %q, %k, %v scale(0.125) : tensor<1x1x33x64xf32>, tensor<1x1x33x64xf32>, tensor<1x1x33x64xf64> -> tensor<1x1x33x64xf64>
  return %o : tensor<1x1x33x64xf64>
}
