// Attention in forms that importers leave, fused and checked against the graph.
// RUN: fovea-run %s --entry=maps --random=2 --check
// RUN: fovea-run %s --entry=transposed --random=2 --check
// RUN: fovea-run %s --entry=affine_and_two --random=2 --check
// RUN: fovea-run %s --entry=latents --random=2 --check --dims=3
// RUN: fovea-run %s --entry=vector_query --random=2 --check
// RUN: fovea-run %s --entry=baddbmm --random=2 --check
// RUN: fovea-run %s --entry=dyn --random=2 --check --dims=q:2x9x256 --dims=k:2x11x256 --dims=v:2x11x256 --dims=mask:2x1x9x11
// RUN: fovea-run %s --entry=unit --random=2 --check
// RUN: fovea-opt %s --attn-fuse | FileCheck %s

#id = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#keep = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
#map2 = affine_map<(d0) -> (d0 + 3)>

// linalg.map, linalg.elementwise, linalg.reciprocal.
// CHECK-LABEL: @maps(
// CHECK-NOT: linalg.{{softmax|batch_matmul|matmul|contract|reduce}}
// CHECK: attn.attention {{.*}} scale(2.500000e-01) :
// CHECK-NOT: linalg.{{softmax|batch_matmul|matmul|contract|reduce}}
// CHECK: return
func.func @maps(%q: tensor<9x16xf32>, %k: tensor<11x16xf32>, %v: tensor<11x8xf32>) -> tensor<9x8xf32> {
  %z = arith.constant 0.0 : f32
  %ninf = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<9x11xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<9x11xf32>) -> tensor<9x11xf32>
  %s = linalg.matmul indexing_maps = [affine_map<(i, j, d) -> (i, d)>, affine_map<(i, j, d) -> (j, d)>, affine_map<(i, j, d) -> (i, j)>] ins(%q, %k : tensor<9x16xf32>, tensor<11x16xf32>) outs(%f : tensor<9x11xf32>) -> tensor<9x11xf32>
  %c = arith.constant 0.25 : f32
  %sc = linalg.map ins(%s : tensor<9x11xf32>) outs(%e : tensor<9x11xf32>) (%x: f32, %out: f32) {
    %r = arith.mulf %x, %c : f32
    linalg.yield %r : f32
  }
  %er = tensor.empty() : tensor<9xf32>
  %fr = linalg.fill ins(%ninf : f32) outs(%er : tensor<9xf32>) -> tensor<9xf32>
  %m = linalg.reduce { arith.maximumf } ins(%sc : tensor<9x11xf32>) outs(%fr : tensor<9xf32>) dimensions = [1]
  %mb = linalg.broadcast ins(%m : tensor<9xf32>) outs(%e : tensor<9x11xf32>) dimensions = [1]
  %d = linalg.elementwise kind=#linalg.elementwise_kind<sub> ins(%sc, %mb : tensor<9x11xf32>, tensor<9x11xf32>) outs(%e : tensor<9x11xf32>) -> tensor<9x11xf32>
  %x = linalg.elementwise kind=#linalg.elementwise_kind<exp> ins(%d : tensor<9x11xf32>) outs(%e : tensor<9x11xf32>) -> tensor<9x11xf32>
  %fz = linalg.fill ins(%z : f32) outs(%er : tensor<9xf32>) -> tensor<9xf32>
  %l = linalg.reduce { arith.addf } ins(%x : tensor<9x11xf32>) outs(%fz : tensor<9xf32>) dimensions = [1]
  %rl = linalg.reciprocal ins(%l : tensor<9xf32>) outs(%er : tensor<9xf32>) -> tensor<9xf32>
  %rb = linalg.broadcast ins(%rl : tensor<9xf32>) outs(%e : tensor<9x11xf32>) dimensions = [1]
  %p = linalg.mul ins(%x, %rb : tensor<9x11xf32>, tensor<9x11xf32>) outs(%e : tensor<9x11xf32>) -> tensor<9x11xf32>
  %e2 = tensor.empty() : tensor<9x8xf32>
  %f2 = linalg.fill ins(%z : f32) outs(%e2 : tensor<9x8xf32>) -> tensor<9x8xf32>
  %o = linalg.matmul ins(%p, %v : tensor<9x11xf32>, tensor<11x8xf32>) outs(%f2 : tensor<9x8xf32>) -> tensor<9x8xf32>
  return %o : tensor<9x8xf32>
}

// Scores with keys first, softmax over their first dimension, a constant mask,
// values and result with features first.
// CHECK-LABEL: @transposed(
// CHECK-NOT: linalg.{{softmax|batch_matmul|matmul|contract|reduce}}
// CHECK: attn.attention {{.*}} score {
// CHECK: tensor.extract
// CHECK-NOT: linalg.{{softmax|batch_matmul|matmul|contract|reduce}}
// CHECK: return
func.func @transposed(%q: tensor<2x4x16xf32>, %k: tensor<2x4x16xf32>, %v: tensor<2x8x4xf32>) -> tensor<2x8x4xf32> {
  %z = arith.constant 0.0 : f32
  %mask = arith.constant dense<[[0.0, 0.0, 0.0, 0.0], [0xFF800000, 0.0, 0.0, 0.0], [0xFF800000, 0xFF800000, 0.0, 0.0], [0xFF800000, 0xFF800000, 0xFF800000, 0.0]]> : tensor<4x4xf32>
  %e = tensor.empty() : tensor<2x4x4xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
  %s = linalg.contract indexing_maps = [affine_map<(b, j, i, d) -> (b, j, d)>, affine_map<(b, j, i, d) -> (b, i, d)>, affine_map<(b, j, i, d) -> (b, j, i)>] ins(%k, %q : tensor<2x4x16xf32>, tensor<2x4x16xf32>) outs(%f : tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
  %mb = linalg.broadcast ins(%mask : tensor<4x4xf32>) outs(%e : tensor<2x4x4xf32>) dimensions = [0]
  %t = arith.addf %s, %mb : tensor<2x4x4xf32>
  %p = linalg.softmax dimension(1) ins(%t : tensor<2x4x4xf32>) outs(%e : tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
  %e2 = tensor.empty() : tensor<2x8x4xf32>
  %f2 = linalg.fill ins(%z : f32) outs(%e2 : tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
  %o = linalg.batch_matmul ins(%v, %p : tensor<2x8x4xf32>, tensor<2x4x4xf32>) outs(%f2 : tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
  return %o : tensor<2x8x4xf32>
}

// The product read twice, affine.apply, and a second attention on the result of
// the first.
// CHECK-LABEL: @affine_and_two(
// CHECK-NOT: linalg.{{softmax|batch_matmul|matmul|contract|reduce}}
// CHECK: %[[O:.*]] = attn.attention
// CHECK: attn.attention %[[O]]
// CHECK-NOT: linalg.{{softmax|batch_matmul|matmul|contract|reduce}}
// CHECK: return
func.func @affine_and_two(%q: tensor<1x2x8x16xf32>, %k: tensor<1x2x8x16xf32>, %v: tensor<1x2x8x16xf32>) -> tensor<1x2x8x16xf32> {
  %ninf = arith.constant 0xFF800000 : f32
  %c2 = arith.constant 2 : index
  %s = attn.scores %q, %k : tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x8xf32>
  %m = attn.modify %s {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %d = affine.apply #map2(%i)
    %keep = arith.cmpi sge, %d, %j : index
    %r = arith.select %keep, %x, %ninf : f32
    attn.yield %r : f32
  } : tensor<1x2x8x8xf32>
  %n = attn.elementwise %m, %s {
  ^bb0(%a: f32, %g: f32):
    %t = math.tanh %g : f32
    %r = arith.addf %a, %t : f32
    attn.yield %r : f32
  } : (tensor<1x2x8x8xf32>, tensor<1x2x8x8xf32>) -> tensor<1x2x8x8xf32>
  %p = attn.softmax %n : tensor<1x2x8x8xf32> -> tensor<1x2x8x8xf32>
  %o = attn.values %p, %v : tensor<1x2x8x8xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x16xf32>
  %s2 = attn.scores %o, %k : tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x8xf32>
  %p2 = attn.softmax %s2 : tensor<1x2x8x8xf32> -> tensor<1x2x8x8xf32>
  %o2 = attn.values %p2, %v : tensor<1x2x8x8xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x16xf32>
  return %o2 : tensor<1x2x8x16xf32>
}

// Queries that the whole batch shares.
// CHECK-LABEL: @latents(
// CHECK-NOT: linalg.{{softmax|batch_matmul|matmul|contract|reduce}}
// CHECK: %[[Q:.*]] = linalg.broadcast
// CHECK: attn.attention %[[Q]], %arg1, %arg2
// CHECK-NOT: linalg.{{softmax|batch_matmul|matmul|contract|reduce}}
// CHECK: return
func.func @latents(%q: tensor<4x5x16xf32>, %k: tensor<?x4x7x16xf32>, %v: tensor<?x4x7x16xf32>) -> tensor<?x4x5x16xf32> {
  %z = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %b = tensor.dim %k, %c0 : tensor<?x4x7x16xf32>
  %e = tensor.empty(%b) : tensor<?x4x5x7xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<?x4x5x7xf32>) -> tensor<?x4x5x7xf32>
  %s = linalg.contract indexing_maps = [affine_map<(b, h, i, j, d) -> (h, i, d)>, affine_map<(b, h, i, j, d) -> (b, h, j, d)>, affine_map<(b, h, i, j, d) -> (b, h, i, j)>] ins(%q, %k : tensor<4x5x16xf32>, tensor<?x4x7x16xf32>) outs(%f : tensor<?x4x5x7xf32>) -> tensor<?x4x5x7xf32>
  %p = linalg.softmax dimension(3) ins(%s : tensor<?x4x5x7xf32>) outs(%e : tensor<?x4x5x7xf32>) -> tensor<?x4x5x7xf32>
  %e2 = tensor.empty(%b) : tensor<?x4x5x16xf32>
  %f2 = linalg.fill ins(%z : f32) outs(%e2 : tensor<?x4x5x16xf32>) -> tensor<?x4x5x16xf32>
  %o = linalg.contract indexing_maps = [affine_map<(b, h, i, d, j) -> (b, h, i, j)>, affine_map<(b, h, i, d, j) -> (b, h, j, d)>, affine_map<(b, h, i, d, j) -> (b, h, i, d)>] ins(%p, %v : tensor<?x4x5x7xf32>, tensor<?x4x7x16xf32>) outs(%f2 : tensor<?x4x5x16xf32>) -> tensor<?x4x5x16xf32>
  return %o : tensor<?x4x5x16xf32>
}

// One query, without a dimension for it.
// CHECK-LABEL: @vector_query(
// CHECK-NOT: linalg.{{softmax|batch_matmul|matmul|contract|reduce}}
// CHECK: attn.attention {{.*}} : tensor<2x4x1x16xf32>, tensor<2x4x7x16xf32>
// CHECK-NOT: linalg.{{softmax|batch_matmul|matmul|contract|reduce}}
// CHECK: return
func.func @vector_query(%q: tensor<2x4x16xf32>, %k: tensor<2x4x7x16xf32>, %v: tensor<2x4x7x16xf32>) -> tensor<2x4x16xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x7xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<2x4x7xf32>) -> tensor<2x4x7xf32>
  %s = linalg.contract indexing_maps = [affine_map<(b, h, j, d) -> (b, h, d)>, affine_map<(b, h, j, d) -> (b, h, j, d)>, affine_map<(b, h, j, d) -> (b, h, j)>] ins(%q, %k : tensor<2x4x16xf32>, tensor<2x4x7x16xf32>) outs(%f : tensor<2x4x7xf32>) -> tensor<2x4x7xf32>
  %p = linalg.softmax dimension(2) ins(%s : tensor<2x4x7xf32>) outs(%e : tensor<2x4x7xf32>) -> tensor<2x4x7xf32>
  %e2 = tensor.empty() : tensor<2x4x16xf32>
  %f2 = linalg.fill ins(%z : f32) outs(%e2 : tensor<2x4x16xf32>) -> tensor<2x4x16xf32>
  %o = linalg.contract indexing_maps = [affine_map<(b, h, d, j) -> (b, h, j)>, affine_map<(b, h, d, j) -> (b, h, j, d)>, affine_map<(b, h, d, j) -> (b, h, d)>] ins(%p, %v : tensor<2x4x7xf32>, tensor<2x4x7x16xf32>) outs(%f2 : tensor<2x4x16xf32>) -> tensor<2x4x16xf32>
  return %o : tensor<2x4x16xf32>
}

// A product that starts from the mask; KV heads read by floordiv.
// CHECK-LABEL: @baddbmm(
// CHECK-NOT: linalg.{{softmax|batch_matmul|matmul|contract|reduce}}
// CHECK: attn.attention {{.*}} score {
// CHECK: : tensor<2x4x5x16xf32>, tensor<2x2x7x16xf32>, tensor<2x2x7x16xf32>
// CHECK-NOT: linalg.{{softmax|batch_matmul|matmul|contract|reduce}}
// CHECK: return
func.func @baddbmm(%q: tensor<2x4x5x16xf32>, %k: tensor<2x2x7x16xf32>, %v: tensor<2x2x7x16xf32>, %m: tensor<2x4x5x7xf32>) -> tensor<2x4x5x16xf32> {
  %z = arith.constant 0.0 : f32
  %ke = tensor.empty() : tensor<2x4x7x16xf32>
  %kr = linalg.generic {indexing_maps = [affine_map<(b, h, j, d) -> (b, h floordiv 2, j, d)>, affine_map<(b, h, j, d) -> (b, h, j, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%k : tensor<2x2x7x16xf32>) outs(%ke : tensor<2x4x7x16xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<2x4x7x16xf32>
  %vr = linalg.generic {indexing_maps = [affine_map<(b, h, j, d) -> (b, h floordiv 2, j, d)>, affine_map<(b, h, j, d) -> (b, h, j, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v : tensor<2x2x7x16xf32>) outs(%ke : tensor<2x4x7x16xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<2x4x7x16xf32>
  %s = linalg.contract indexing_maps = [affine_map<(b, h, i, j, d) -> (b, h, i, d)>, affine_map<(b, h, i, j, d) -> (b, h, j, d)>, affine_map<(b, h, i, j, d) -> (b, h, i, j)>] ins(%q, %kr : tensor<2x4x5x16xf32>, tensor<2x4x7x16xf32>) outs(%m : tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %e = tensor.empty() : tensor<2x4x5x7xf32>
  %p = linalg.softmax dimension(3) ins(%s : tensor<2x4x5x7xf32>) outs(%e : tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %e2 = tensor.empty() : tensor<2x4x5x16xf32>
  %f2 = linalg.fill ins(%z : f32) outs(%e2 : tensor<2x4x5x16xf32>) -> tensor<2x4x5x16xf32>
  %o = linalg.contract indexing_maps = [affine_map<(b, h, i, d, j) -> (b, h, i, j)>, affine_map<(b, h, i, d, j) -> (b, h, j, d)>, affine_map<(b, h, i, d, j) -> (b, h, i, d)>] ins(%p, %vr : tensor<2x4x5x7xf32>, tensor<2x4x7x16xf32>) outs(%f2 : tensor<2x4x5x16xf32>) -> tensor<2x4x5x16xf32>
  return %o : tensor<2x4x5x16xf32>
}

// torch-mlir with dynamic batch and lengths, heads collapsed for batch_matmul,
// sizes taken from intermediate results, a mask of each batch that is added.
// CHECK-LABEL: @dyn(
// CHECK-NOT: linalg.{{softmax|batch_matmul|matmul|contract|reduce}}
// CHECK: attn.attention {{.*}} scale(1.250000e-01) score {
// CHECK: tensor.extract %arg3[%{{.*}}, %c0{{.*}}, %{{.*}}, %{{.*}}]
// CHECK-NOT: linalg.{{softmax|batch_matmul|matmul|contract|reduce}}
// CHECK: return
func.func @dyn(%q: tensor<?x?x256xf32>, %k: tensor<?x?x256xf32>, %v: tensor<?x?x256xf32>, %mask: tensor<?x1x?x?xf32>) -> tensor<?x?x256xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %z = arith.constant 0.0 : f32
  %ninf = arith.constant 0xFF800000 : f32
  %b = tensor.dim %q, %c0 : tensor<?x?x256xf32>
  %sq = tensor.dim %q, %c1 : tensor<?x?x256xf32>
  %sk = tensor.dim %k, %c1 : tensor<?x?x256xf32>
  %q4 = tensor.expand_shape %q [[0], [1], [2, 3]] output_shape [%b, %sq, 4, 64] : tensor<?x?x256xf32> into tensor<?x?x4x64xf32>
  %k4 = tensor.expand_shape %k [[0], [1], [2, 3]] output_shape [%b, %sk, 4, 64] : tensor<?x?x256xf32> into tensor<?x?x4x64xf32>
  %v4 = tensor.expand_shape %v [[0], [1], [2, 3]] output_shape [%b, %sk, 4, 64] : tensor<?x?x256xf32> into tensor<?x?x4x64xf32>
  %eq = tensor.empty(%b, %sq) : tensor<?x4x?x64xf32>
  %qt = linalg.transpose ins(%q4 : tensor<?x?x4x64xf32>) outs(%eq : tensor<?x4x?x64xf32>) permutation = [0, 2, 1, 3]
  %ek = tensor.empty(%b, %sk) : tensor<?x4x64x?xf32>
  %kt = linalg.transpose ins(%k4 : tensor<?x?x4x64xf32>) outs(%ek : tensor<?x4x64x?xf32>) permutation = [0, 2, 3, 1]
  %ev = tensor.empty(%b, %sk) : tensor<?x4x?x64xf32>
  %vt = linalg.transpose ins(%v4 : tensor<?x?x4x64xf32>) outs(%ev : tensor<?x4x?x64xf32>) permutation = [0, 2, 1, 3]
  %qc = tensor.collapse_shape %qt [[0, 1], [2], [3]] : tensor<?x4x?x64xf32> into tensor<?x?x64xf32>
  %kc = tensor.collapse_shape %kt [[0, 1], [2], [3]] : tensor<?x4x64x?xf32> into tensor<?x64x?xf32>
  %vc = tensor.collapse_shape %vt [[0, 1], [2], [3]] : tensor<?x4x?x64xf32> into tensor<?x?x64xf32>
  %bh = tensor.dim %qc, %c0 : tensor<?x?x64xf32>
  %es = tensor.empty(%bh, %sq, %sk) : tensor<?x?x?xf32>
  %fs = linalg.fill ins(%z : f32) outs(%es : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  %s = linalg.batch_matmul ins(%qc, %kc : tensor<?x?x64xf32>, tensor<?x64x?xf32>) outs(%fs : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  %b2 = arith.divsi %bh, %c4 : index
  %d1 = tensor.dim %s, %c1 : tensor<?x?x?xf32>
  %d2 = tensor.dim %s, %c2 : tensor<?x?x?xf32>
  %s4 = tensor.expand_shape %s [[0, 1], [2], [3]] output_shape [%b2, 4, %d1, %d2] : tensor<?x?x?xf32> into tensor<?x4x?x?xf32>
  %e4 = tensor.empty(%b2, %d1, %d2) : tensor<?x4x?x?xf32>
  %c8 = arith.constant 8.0 : f32
  %sc = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s4 : tensor<?x4x?x?xf32>) outs(%e4 : tensor<?x4x?x?xf32>) {
  ^bb0(%in: f32, %out: f32):
    %m = arith.divf %in, %c8 : f32
    linalg.yield %m : f32
  } -> tensor<?x4x?x?xf32>
  %sm = linalg.generic {indexing_maps = [#id, affine_map<(d0, d1, d2, d3) -> (d0, 0, d2, d3)>, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%sc, %mask : tensor<?x4x?x?xf32>, tensor<?x1x?x?xf32>) outs(%e4 : tensor<?x4x?x?xf32>) {
  ^bb0(%in: f32, %m: f32, %out: f32):
    %r = arith.addf %in, %m : f32
    linalg.yield %r : f32
  } -> tensor<?x4x?x?xf32>
  %er = tensor.empty(%b2, %d1) : tensor<?x4x?x1xf32>
  %fm = linalg.fill ins(%ninf : f32) outs(%er : tensor<?x4x?x1xf32>) -> tensor<?x4x?x1xf32>
  %mx = linalg.generic {indexing_maps = [#id, #keep], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%sm : tensor<?x4x?x?xf32>) outs(%fm : tensor<?x4x?x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %m = arith.maximumf %in, %out : f32
    linalg.yield %m : f32
  } -> tensor<?x4x?x1xf32>
  %ex = linalg.generic {indexing_maps = [#id, #keep, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%sm, %mx : tensor<?x4x?x?xf32>, tensor<?x4x?x1xf32>) outs(%e4 : tensor<?x4x?x?xf32>) {
  ^bb0(%in: f32, %m: f32, %out: f32):
    %r = arith.subf %in, %m : f32
    %x = math.exp %r : f32
    linalg.yield %x : f32
  } -> tensor<?x4x?x?xf32>
  %fz = linalg.fill ins(%z : f32) outs(%er : tensor<?x4x?x1xf32>) -> tensor<?x4x?x1xf32>
  %su = linalg.generic {indexing_maps = [#id, #keep], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%ex : tensor<?x4x?x?xf32>) outs(%fz : tensor<?x4x?x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %m = arith.addf %in, %out : f32
    linalg.yield %m : f32
  } -> tensor<?x4x?x1xf32>
  %dd = tensor.dim %ex, %c0 : tensor<?x4x?x?xf32>
  %e5 = tensor.empty(%dd, %d1, %d2) : tensor<?x4x?x?xf32>
  %p = linalg.generic {indexing_maps = [#id, #keep, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%ex, %su : tensor<?x4x?x?xf32>, tensor<?x4x?x1xf32>) outs(%e5 : tensor<?x4x?x?xf32>) {
  ^bb0(%in: f32, %m: f32, %out: f32):
    %r = arith.divf %in, %m : f32
    linalg.yield %r : f32
  } -> tensor<?x4x?x?xf32>
  %pc = tensor.collapse_shape %p [[0, 1], [2], [3]] : tensor<?x4x?x?xf32> into tensor<?x?x?xf32>
  %p0 = tensor.dim %pc, %c0 : tensor<?x?x?xf32>
  %eo = tensor.empty(%p0, %sq) : tensor<?x?x64xf32>
  %fo = linalg.fill ins(%z : f32) outs(%eo : tensor<?x?x64xf32>) -> tensor<?x?x64xf32>
  %o = linalg.batch_matmul ins(%pc, %vc : tensor<?x?x?xf32>, tensor<?x?x64xf32>) outs(%fo : tensor<?x?x64xf32>) -> tensor<?x?x64xf32>
  %o4 = tensor.expand_shape %o [[0, 1], [2], [3]] output_shape [%b, 4, %sq, 64] : tensor<?x?x64xf32> into tensor<?x4x?x64xf32>
  %et = tensor.empty(%b, %sq) : tensor<?x?x4x64xf32>
  %ot = linalg.transpose ins(%o4 : tensor<?x4x?x64xf32>) outs(%et : tensor<?x?x4x64xf32>) permutation = [0, 2, 1, 3]
  %oc = tensor.collapse_shape %ot [[0], [1], [2, 3]] : tensor<?x?x4x64xf32> into tensor<?x?x256xf32>
  return %oc : tensor<?x?x256xf32>
}

// A batch of one that is collapsed with the heads, f16 with scores in f32, a
// mask by f32's lowest value from positions and a padding mask.
// CHECK-LABEL: @unit(
// CHECK: %[[O:.*]] = attn.attention %arg0, %arg1, %arg2 scale(2.500000e-01) score {
// CHECK: } : tensor<1x4x9x16xf16>, tensor<1x4x9x16xf16>, tensor<1x4x9x16xf16> -> tensor<1x4x9x16xf16>
// CHECK: return
func.func @unit(%q: tensor<1x4x9x16xf16>, %k: tensor<1x4x9x16xf16>, %v: tensor<1x4x9x16xf16>, %am: tensor<1x9xi64>) -> tensor<1x9x64xf16> {
  %z = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : i64
  %zh = arith.constant 0.0 : f16
  %low = arith.constant -3.40282347E+38 : f32
  %sc = arith.constant 0.25 : f32
  %q3 = tensor.collapse_shape %q [[0, 1], [2], [3]] : tensor<1x4x9x16xf16> into tensor<4x9x16xf16>
  %k3 = tensor.collapse_shape %k [[0, 1], [2], [3]] : tensor<1x4x9x16xf16> into tensor<4x9x16xf16>
  %v3 = tensor.collapse_shape %v [[0, 1], [2], [3]] : tensor<1x4x9x16xf16> into tensor<4x9x16xf16>
  %e = tensor.empty() : tensor<4x9x9xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<4x9x9xf32>) -> tensor<4x9x9xf32>
  %s = linalg.batch_matmul indexing_maps = [affine_map<(b, i, j, d) -> (b, i, d)>, affine_map<(b, i, j, d) -> (b, j, d)>, affine_map<(b, i, j, d) -> (b, i, j)>] ins(%q3, %k3 : tensor<4x9x16xf16>, tensor<4x9x16xf16>) outs(%f : tensor<4x9x9xf32>) -> tensor<4x9x9xf32>
  %s4 = tensor.expand_shape %s [[0, 1], [2], [3]] output_shape [1, 4, 9, 9] : tensor<4x9x9xf32> into tensor<1x4x9x9xf32>
  %e4 = tensor.empty() : tensor<1x4x9x9xf32>
  %ie = tensor.empty() : tensor<9xi64>
  %iota = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%ie : tensor<9xi64>) {
  ^bb0(%o: i64):
    %i = linalg.index 0 : index
    %r = arith.index_cast %i : index to i64
    linalg.yield %r : i64
  } -> tensor<9xi64>
  %ir = tensor.expand_shape %iota [[0, 1]] output_shape [9, 1] : tensor<9xi64> into tensor<9x1xi64>
  %ic = tensor.expand_shape %iota [[0, 1]] output_shape [1, 9] : tensor<9xi64> into tensor<1x9xi64>
  %be = tensor.empty() : tensor<1x1x9x9xi1>
  %m = linalg.generic {indexing_maps = [affine_map<(a, b, i, j) -> (i, 0)>, affine_map<(a, b, i, j) -> (0, j)>, affine_map<(a, b, i, j) -> (a, j)>, affine_map<(a, b, i, j) -> (a, b, i, j)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%ir, %ic, %am : tensor<9x1xi64>, tensor<1x9xi64>, tensor<1x9xi64>) outs(%be : tensor<1x1x9x9xi1>) {
  ^bb0(%r: i64, %c: i64, %p: i64, %o: i1):
    %g = arith.cmpi sgt, %c, %r : i64
    %d = arith.cmpi eq, %p, %c0 : i64
    %x = arith.ori %g, %d : i1
    linalg.yield %x : i1
  } -> tensor<1x1x9x9xi1>
  %fe = tensor.empty() : tensor<1x1x9x9xf32>
  %fm = linalg.generic {indexing_maps = [affine_map<(a, b, i, j) -> (a, b, i, j)>, affine_map<(a, b, i, j) -> (a, b, i, j)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%m : tensor<1x1x9x9xi1>) outs(%fe : tensor<1x1x9x9xf32>) {
  ^bb0(%x: i1, %o: f32):
    %r = arith.select %x, %low, %z : f32
    linalg.yield %r : f32
  } -> tensor<1x1x9x9xf32>
  %sm = linalg.generic {indexing_maps = [affine_map<(a, b, i, j) -> (0, b, i, j)>, affine_map<(a, b, i, j) -> (0, 0, i, j)>, affine_map<(a, b, i, j) -> (a, b, i, j)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s4, %fm : tensor<1x4x9x9xf32>, tensor<1x1x9x9xf32>) outs(%e4 : tensor<1x4x9x9xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %a = arith.mulf %x, %sc : f32
    %r = arith.addf %a, %y : f32
    linalg.yield %r : f32
  } -> tensor<1x4x9x9xf32>
  %p = linalg.softmax dimension(3) ins(%sm : tensor<1x4x9x9xf32>) outs(%e4 : tensor<1x4x9x9xf32>) -> tensor<1x4x9x9xf32>
  %ph = arith.truncf %p : tensor<1x4x9x9xf32> to tensor<1x4x9x9xf16>
  %p3 = tensor.collapse_shape %ph [[0, 1], [2], [3]] : tensor<1x4x9x9xf16> into tensor<4x9x9xf16>
  %oe = tensor.empty() : tensor<4x9x16xf16>
  %of = linalg.fill ins(%zh : f16) outs(%oe : tensor<4x9x16xf16>) -> tensor<4x9x16xf16>
  %o3 = linalg.batch_matmul ins(%p3, %v3 : tensor<4x9x9xf16>, tensor<4x9x16xf16>) outs(%of : tensor<4x9x16xf16>) -> tensor<4x9x16xf16>
  %te = tensor.empty() : tensor<9x4x16xf16>
  %t = linalg.transpose ins(%o3 : tensor<4x9x16xf16>) outs(%te : tensor<9x4x16xf16>) permutation = [1, 0, 2]
  %oc = tensor.collapse_shape %t [[0], [1, 2]] : tensor<9x4x16xf16> into tensor<9x64xf16>
  %r = tensor.expand_shape %oc [[0, 1], [2]] output_shape [1, 9, 64] : tensor<9x64xf16> into tensor<1x9x64xf16>
  return %r : tensor<1x9x64xf16>
}
