// RUN: fovea-opt %s --attn-fuse --split-input-file | FileCheck %s

// Attention as importers leave it.

#id4 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#keep = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
// torch-mlir: f16, batch_matmul on collapsed heads, a softmax of four steps in
// f32 that keep dimensions, the maximum with its index, a causal mask from
// linalg.index.
// CHECK-LABEL: @torch_causal
// CHECK-SAME: %[[Q:[^:]*]]: tensor<2x8x128x64xf16>, %[[K:[^:]*]]: tensor<2x8x128x64xf16>, %[[V:[^:]*]]: tensor<2x8x128x64xf16>
// CHECK-NEXT: %[[O:.*]] = attn.attention %[[Q]], %[[K]], %[[V]] scale(1.250000e-01) mask {
// CHECK-NEXT: ^bb0(%{{[^:]*}}: index, %{{[^:]*}}: index, %[[I:[^:]*]]: index, %[[J:[^:]*]]: index):
// CHECK-DAG: %[[IC:.*]] = arith.index_cast %[[I]] : index to i64
// CHECK-DAG: %[[JC:.*]] = arith.index_cast %[[J]] : index to i64
// CHECK: %[[KEEP:.*]] = arith.cmpi sle, %[[JC]], %[[IC]] : i64
// CHECK-NEXT: attn.yield %[[KEEP]]
// CHECK: return %[[O]] : tensor<2x8x128x64xf16>
func.func @torch_causal(%q: tensor<2x8x128x64xf16>, %k: tensor<2x8x128x64xf16>, %v: tensor<2x8x128x64xf16>) -> tensor<2x8x128x64xf16> {
  %cst = arith.constant 0.000000e+00 : f16
  %ninf = arith.constant 0xFC00 : f16
  %scale = arith.constant 1.250000e-01 : f16
  %c0f = arith.constant 0.0 : f32
  %ninf32 = arith.constant 0xFF800000 : f32
  %e0 = tensor.empty() : tensor<2x8x64x128xf16>
  %kt = linalg.transpose ins(%k : tensor<2x8x128x64xf16>) outs(%e0 : tensor<2x8x64x128xf16>) permutation = [0, 1, 3, 2]
  %qc = tensor.collapse_shape %q [[0, 1], [2], [3]] : tensor<2x8x128x64xf16> into tensor<16x128x64xf16>
  %kc = tensor.collapse_shape %kt [[0, 1], [2], [3]] : tensor<2x8x64x128xf16> into tensor<16x64x128xf16>
  %e1 = tensor.empty() : tensor<16x128x128xf16>
  %f1 = linalg.fill ins(%cst : f16) outs(%e1 : tensor<16x128x128xf16>) -> tensor<16x128x128xf16>
  %s = linalg.batch_matmul ins(%qc, %kc : tensor<16x128x64xf16>, tensor<16x64x128xf16>) outs(%f1 : tensor<16x128x128xf16>) -> tensor<16x128x128xf16>
  %s4 = tensor.expand_shape %s [[0, 1], [2], [3]] output_shape [2, 8, 128, 128] : tensor<16x128x128xf16> into tensor<2x8x128x128xf16>
  %e2 = tensor.empty() : tensor<2x8x128x128xf16>
  %sc = linalg.generic {indexing_maps = [#id4, #id4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s4 : tensor<2x8x128x128xf16>) outs(%e2 : tensor<2x8x128x128xf16>) {
  ^bb0(%in: f16, %out: f16):
    %m = arith.mulf %in, %scale : f16
    linalg.yield %m : f16
  } -> tensor<2x8x128x128xf16>
  %em = tensor.empty() : tensor<128x128xi1>
  %mask = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} outs(%em : tensor<128x128xi1>) {
  ^bb0(%out: i1):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %ii = arith.index_cast %i : index to i64
    %jj = arith.index_cast %j : index to i64
    %c = arith.cmpi sle, %jj, %ii : i64
    linalg.yield %c : i1
  } -> tensor<128x128xi1>
  %masked = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d2, d3)>, #id4, #id4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%mask, %sc : tensor<128x128xi1>, tensor<2x8x128x128xf16>) outs(%e2 : tensor<2x8x128x128xf16>) {
  ^bb0(%m: i1, %in: f16, %out: f16):
    %r = arith.select %m, %in, %ninf : f16
    linalg.yield %r : f16
  } -> tensor<2x8x128x128xf16>
  %e3 = tensor.empty() : tensor<2x8x128x128xf32>
  %up = linalg.generic {indexing_maps = [#id4, #id4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%masked : tensor<2x8x128x128xf16>) outs(%e3 : tensor<2x8x128x128xf32>) {
  ^bb0(%in: f16, %out: f32):
    %m = arith.extf %in : f16 to f32
    linalg.yield %m : f32
  } -> tensor<2x8x128x128xf32>
  %er = tensor.empty() : tensor<2x8x128x1xf32>
  %ei = tensor.empty() : tensor<2x8x128x1xi64>
  %c0i = arith.constant 0 : i64
  %fi = linalg.fill ins(%c0i : i64) outs(%ei : tensor<2x8x128x1xi64>) -> tensor<2x8x128x1xi64>
  %fm = linalg.fill ins(%ninf32 : f32) outs(%er : tensor<2x8x128x1xf32>) -> tensor<2x8x128x1xf32>
  %mx:2 = linalg.generic {indexing_maps = [#id4, #keep, #keep], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%up : tensor<2x8x128x128xf32>) outs(%fm, %fi : tensor<2x8x128x1xf32>, tensor<2x8x128x1xi64>) {
  ^bb0(%in: f32, %out: f32, %oi: i64):
    %ix = linalg.index 3 : index
    %ixx = arith.index_cast %ix : index to i64
    %m = arith.maximumf %in, %out : f32
    %c = arith.cmpf ogt, %in, %out : f32
    %sel = arith.select %c, %ixx, %oi : i64
    linalg.yield %m, %sel : f32, i64
  } -> (tensor<2x8x128x1xf32>, tensor<2x8x128x1xi64>)
  %sub = linalg.generic {indexing_maps = [#id4, #keep, #id4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%up, %mx#0 : tensor<2x8x128x128xf32>, tensor<2x8x128x1xf32>) outs(%e3 : tensor<2x8x128x128xf32>) {
  ^bb0(%in: f32, %m: f32, %out: f32):
    %r = arith.subf %in, %m : f32
    linalg.yield %r : f32
  } -> tensor<2x8x128x128xf32>
  %exp = linalg.generic {indexing_maps = [#id4, #id4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%sub : tensor<2x8x128x128xf32>) outs(%e3 : tensor<2x8x128x128xf32>) {
  ^bb0(%in: f32, %out: f32):
    %r = math.exp %in : f32
    linalg.yield %r : f32
  } -> tensor<2x8x128x128xf32>
  %fz = linalg.fill ins(%c0f : f32) outs(%er : tensor<2x8x128x1xf32>) -> tensor<2x8x128x1xf32>
  %sum = linalg.generic {indexing_maps = [#id4, #keep], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%exp : tensor<2x8x128x128xf32>) outs(%fz : tensor<2x8x128x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %r = arith.addf %in, %out : f32
    linalg.yield %r : f32
  } -> tensor<2x8x128x1xf32>
  %div = linalg.generic {indexing_maps = [#id4, #keep, #id4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%exp, %sum : tensor<2x8x128x128xf32>, tensor<2x8x128x1xf32>) outs(%e3 : tensor<2x8x128x128xf32>) {
  ^bb0(%in: f32, %m: f32, %out: f32):
    %r = arith.divf %in, %m : f32
    linalg.yield %r : f32
  } -> tensor<2x8x128x128xf32>
  %down = linalg.generic {indexing_maps = [#id4, #id4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%div : tensor<2x8x128x128xf32>) outs(%e2 : tensor<2x8x128x128xf16>) {
  ^bb0(%in: f32, %out: f16):
    %m = arith.truncf %in : f32 to f16
    linalg.yield %m : f16
  } -> tensor<2x8x128x128xf16>
  %pc = tensor.collapse_shape %down [[0, 1], [2], [3]] : tensor<2x8x128x128xf16> into tensor<16x128x128xf16>
  %vc = tensor.collapse_shape %v [[0, 1], [2], [3]] : tensor<2x8x128x64xf16> into tensor<16x128x64xf16>
  %eo = tensor.empty() : tensor<16x128x64xf16>
  %fo = linalg.fill ins(%cst : f16) outs(%eo : tensor<16x128x64xf16>) -> tensor<16x128x64xf16>
  %o = linalg.batch_matmul ins(%pc, %vc : tensor<16x128x128xf16>, tensor<16x128x64xf16>) outs(%fo : tensor<16x128x64xf16>) -> tensor<16x128x64xf16>
  %o4 = tensor.expand_shape %o [[0, 1], [2], [3]] output_shape [2, 8, 128, 64] : tensor<16x128x64xf16> into tensor<2x8x128x64xf16>
  return %o4 : tensor<2x8x128x64xf16>
}

// -----

#id4 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#sc = affine_map<(d0, d1, d2, d3) -> ()>
// Grouped heads by broadcast and collapse, heads merged with features outside,
// the result transposed by the contraction.
// CHECK-LABEL: @gqa
// CHECK-DAG: %[[Q:.*]] = linalg.transpose ins(%{{.*}} : tensor<2x?x8x64xf32>)
// CHECK-DAG: linalg.transpose ins(%{{.*}} : tensor<2x?x2x64xf32>)
// CHECK-NOT: linalg.broadcast
// CHECK: %[[O:.*]] = attn.attention %[[Q]], {{.*}} scale(1.250000e-01) : tensor<2x8x?x64xf32>, tensor<2x2x?x64xf32>, tensor<2x2x?x64xf32> -> tensor<2x8x?x64xf32>
// CHECK: linalg.transpose
// CHECK: tensor.collapse_shape
// CHECK-NOT: linalg.softmax
func.func @gqa(%q: tensor<2x?x512xf32>, %k: tensor<2x?x128xf32>, %v: tensor<2x?x128xf32>) -> tensor<2x?x512xf32> {
  %c1 = arith.constant 1 : index
  %z = arith.constant 0.0 : f32
  %sq = tensor.dim %q, %c1 : tensor<2x?x512xf32>
  %sk = tensor.dim %k, %c1 : tensor<2x?x128xf32>
  %q4 = tensor.expand_shape %q [[0], [1], [2, 3]] output_shape [2, %sq, 8, 64] : tensor<2x?x512xf32> into tensor<2x?x8x64xf32>
  %k4 = tensor.expand_shape %k [[0], [1], [2, 3]] output_shape [2, %sk, 2, 64] : tensor<2x?x128xf32> into tensor<2x?x2x64xf32>
  %v4 = tensor.expand_shape %v [[0], [1], [2, 3]] output_shape [2, %sk, 2, 64] : tensor<2x?x128xf32> into tensor<2x?x2x64xf32>
  %eq = tensor.empty(%sq) : tensor<2x8x?x64xf32>
  %qt = linalg.transpose ins(%q4 : tensor<2x?x8x64xf32>) outs(%eq : tensor<2x8x?x64xf32>) permutation = [0, 2, 1, 3]
  %ek = tensor.empty(%sk) : tensor<2x2x?x64xf32>
  %kt = linalg.transpose ins(%k4 : tensor<2x?x2x64xf32>) outs(%ek : tensor<2x2x?x64xf32>) permutation = [0, 2, 1, 3]
  %vt = linalg.transpose ins(%v4 : tensor<2x?x2x64xf32>) outs(%ek : tensor<2x2x?x64xf32>) permutation = [0, 2, 1, 3]
  %ekb = tensor.empty(%sk) : tensor<2x2x4x?x64xf32>
  %kb = linalg.broadcast ins(%kt : tensor<2x2x?x64xf32>) outs(%ekb : tensor<2x2x4x?x64xf32>) dimensions = [2]
  %vb = linalg.broadcast ins(%vt : tensor<2x2x?x64xf32>) outs(%ekb : tensor<2x2x4x?x64xf32>) dimensions = [2]
  %kr = tensor.collapse_shape %kb [[0], [1, 2], [3], [4]] : tensor<2x2x4x?x64xf32> into tensor<2x8x?x64xf32>
  %vr = tensor.collapse_shape %vb [[0], [1, 2], [3], [4]] : tensor<2x2x4x?x64xf32> into tensor<2x8x?x64xf32>
  %es = tensor.empty(%sq, %sk) : tensor<2x8x?x?xf32>
  %fs = linalg.fill ins(%z : f32) outs(%es : tensor<2x8x?x?xf32>) -> tensor<2x8x?x?xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(b, h, i, j, d) -> (b, h, i, d)>, affine_map<(b, h, i, j, d) -> (b, h, j, d)>, affine_map<(b, h, i, j, d) -> (b, h, i, j)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%qt, %kr : tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>) outs(%fs : tensor<2x8x?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %r = arith.addf %c, %m : f32
    linalg.yield %r : f32
  } -> tensor<2x8x?x?xf32>
  %cs = arith.constant dense<8.0> : tensor<f32>
  %sc = linalg.generic {indexing_maps = [#id4, #sc, #id4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s, %cs : tensor<2x8x?x?xf32>, tensor<f32>) outs(%es : tensor<2x8x?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.divf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<2x8x?x?xf32>
  %p = linalg.softmax dimension(3) ins(%sc : tensor<2x8x?x?xf32>) outs(%es : tensor<2x8x?x?xf32>) -> tensor<2x8x?x?xf32>
  %eo = tensor.empty(%sq) : tensor<2x?x8x64xf32>
  %fo = linalg.fill ins(%z : f32) outs(%eo : tensor<2x?x8x64xf32>) -> tensor<2x?x8x64xf32>
  %o = linalg.generic {indexing_maps = [affine_map<(b, h, i, d, j) -> (b, h, i, j)>, affine_map<(b, h, i, d, j) -> (b, h, j, d)>, affine_map<(b, h, i, d, j) -> (b, i, h, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%p, %vr : tensor<2x8x?x?xf32>, tensor<2x8x?x64xf32>) outs(%fo : tensor<2x?x8x64xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %r = arith.addf %c, %m : f32
    linalg.yield %r : f32
  } -> tensor<2x?x8x64xf32>
  %oc = tensor.collapse_shape %o [[0], [1], [2, 3]] : tensor<2x?x8x64xf32> into tensor<2x?x512xf32>
  return %oc : tensor<2x?x512xf32>
}

// -----

// One head of two dimensions, arith on tensors, named reductions, division by a
// reciprocal.
// CHECK-LABEL: @two_d
// CHECK-SAME: %[[BIAS:[^:]*]]: tensor<37x53xf32>)
// CHECK: attn.attention {{.*}} scale(1.250000e-01) score {
// CHECK-NEXT: ^bb0(%[[S:[^:]*]]: f32, %{{[^:]*}}: index, %{{[^:]*}}: index, %[[I:[^:]*]]: index, %[[J:[^:]*]]: index):
// CHECK-NEXT: %[[E:.*]] = tensor.extract %[[BIAS]][%[[I]], %[[J]]]
// CHECK-NEXT: %[[R:.*]] = arith.addf %[[S]], %[[E]] : f32
// CHECK-NEXT: attn.yield %[[R]]
// CHECK: tensor<1x1x37x64xf32>, tensor<1x1x53x64xf32>, tensor<1x1x53x32xf32> -> tensor<1x1x37x32xf32>
func.func @two_d(%q: tensor<37x64xf32>, %k: tensor<53x64xf32>, %v: tensor<53x32xf32>, %bias: tensor<37x53xf32>) -> tensor<37x32xf32> {
  %z = arith.constant 0.0 : f32
  %ekt = tensor.empty() : tensor<64x53xf32>
  %kt = linalg.transpose ins(%k : tensor<53x64xf32>) outs(%ekt : tensor<64x53xf32>) permutation = [1, 0]
  %es = tensor.empty() : tensor<37x53xf32>
  %fs = linalg.fill ins(%z : f32) outs(%es : tensor<37x53xf32>) -> tensor<37x53xf32>
  %s = linalg.matmul ins(%q, %kt : tensor<37x64xf32>, tensor<64x53xf32>) outs(%fs : tensor<37x53xf32>) -> tensor<37x53xf32>
  %c = arith.constant dense<0.125> : tensor<37x53xf32>
  %sc = arith.mulf %s, %c : tensor<37x53xf32>
  %sb = arith.addf %sc, %bias : tensor<37x53xf32>
  %em = tensor.empty() : tensor<37xf32>
  %ninf = arith.constant 0xFF800000 : f32
  %fm = linalg.fill ins(%ninf : f32) outs(%em : tensor<37xf32>) -> tensor<37xf32>
  %mx = linalg.reduce ins(%sb : tensor<37x53xf32>) outs(%fm : tensor<37xf32>) dimensions = [1] (%in: f32, %acc: f32) {
    %r = arith.maximumf %in, %acc : f32
    linalg.yield %r : f32
  }
  %bm = linalg.broadcast ins(%mx : tensor<37xf32>) outs(%es : tensor<37x53xf32>) dimensions = [1]
  %d = arith.subf %sb, %bm : tensor<37x53xf32>
  %e = math.exp %d : tensor<37x53xf32>
  %fz = linalg.fill ins(%z : f32) outs(%em : tensor<37xf32>) -> tensor<37xf32>
  %sm = linalg.reduce { arith.addf } ins(%e : tensor<37x53xf32>) outs(%fz : tensor<37xf32>) dimensions = [1]
  %one = arith.constant dense<1.0> : tensor<37xf32>
  %rc = arith.divf %one, %sm : tensor<37xf32>
  %bs = linalg.broadcast ins(%rc : tensor<37xf32>) outs(%es : tensor<37x53xf32>) dimensions = [1]
  %p = arith.mulf %e, %bs : tensor<37x53xf32>
  %eo = tensor.empty() : tensor<37x32xf32>
  %fo = linalg.fill ins(%z : f32) outs(%eo : tensor<37x32xf32>) -> tensor<37x32xf32>
  %o = linalg.matmul ins(%p, %v : tensor<37x53xf32>, tensor<53x32xf32>) outs(%fo : tensor<37x32xf32>) -> tensor<37x32xf32>
  return %o : tensor<37x32xf32>
}
