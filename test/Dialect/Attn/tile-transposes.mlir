// RUN: fovea-opt %s --attn-online-softmax --attn-tile=fuse-keys=never --split-input-file | FileCheck %s

// Heads inside positions, on all sides: tiles are views, and nothing is
// transposed.

// CHECK-LABEL: func @positions_first
// CHECK-SAME:    %[[Q:[^:]*]]: tensor<2x96x4x16xf32>, %[[K:[^:]*]]: tensor<2x?x4x16xf32>
// CHECK-NOT:   linalg.transpose
// CHECK:       %[[EMPTY:.*]] = tensor.empty() : tensor<2x96x4x16xf32>
// CHECK:       %[[R:.*]] = scf.forall (%[[B:.*]], %[[H:.*]], %[[I:.*]]) = (0, 0, 0) to (2, 4, 96) step (1, 1, 48) shared_outs(%[[O:.*]] = %[[EMPTY]])
// CHECK:         %[[QT:.*]] = tensor.extract_slice %[[Q]][%[[B]], %[[I]], %[[H]], 0] [1, 48, 1, 16] [1, 1, 1, 1] : tensor<2x96x4x16xf32> to tensor<48x16xf32>
// CHECK:         tensor.expand_shape %[[QT]] {{\[\[}}0, 1, 2], [3]] output_shape [1, 1, 48, 16]
// CHECK:         scf.for %[[J:[^ ]*]] =
// CHECK:           tensor.extract_slice %[[K]][%[[B]], %[[J]], %[[H]], 0] [1, %{{.*}}, 1, 16] [1, 1, 1, 1] : tensor<2x?x4x16xf32> to tensor<?x16xf32>
// CHECK:           attn.online_attention
// CHECK:         %[[OT:.*]] = tensor.extract_slice %[[O]][%[[B]], %[[I]], %[[H]], 0] [1, 48, 1, 16]
// CHECK:         %[[OE:.*]] = tensor.expand_shape %[[OT]]
// CHECK:         %[[F:.*]] = attn.finalize {{.*}} outs(%[[OE]] :
// CHECK:         %[[C:.*]] = tensor.collapse_shape %[[F]]
// CHECK:         tensor.parallel_insert_slice %[[C]] into %[[O]][%[[B]], %[[I]], %[[H]], 0] [1, 48, 1, 16]
// CHECK:       return %[[R]]
#id = affine_map<(a, b, c, d) -> (a, b, c, d)>
#swap = affine_map<(a, b, c, d) -> (a, c, b, d)>
func.func @positions_first(%q: tensor<2x96x4x16xf32>, %k: tensor<2x?x4x16xf32>) -> tensor<2x96x4x16xf32> {
  %c1 = arith.constant 1 : index
  %n = tensor.dim %k, %c1 : tensor<2x?x4x16xf32>
  %e = tensor.empty() : tensor<2x4x96x16xf32>
  %f = tensor.empty(%n) : tensor<2x4x?x16xf32>
  %qt = linalg.transpose ins(%q : tensor<2x96x4x16xf32>) outs(%e : tensor<2x4x96x16xf32>) permutation = [0, 2, 1, 3]
  %kt = linalg.generic {indexing_maps = [#swap, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%k : tensor<2x?x4x16xf32>) outs(%f : tensor<2x4x?x16xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  } -> tensor<2x4x?x16xf32>
  %o = attn.attention %qt, %kt, %kt scale(0.25) {schedule = #attn.schedule<tile = 48x64, order = linear>}
    : tensor<2x4x96x16xf32>, tensor<2x4x?x16xf32>, tensor<2x4x?x16xf32> -> tensor<2x4x96x16xf32>
  %g = tensor.empty() : tensor<2x96x4x16xf32>
  %ot = linalg.transpose ins(%o : tensor<2x4x96x16xf32>) outs(%g : tensor<2x96x4x16xf32>) permutation = [0, 2, 1, 3]
  return %ot : tensor<2x96x4x16xf32>
}

// -----

// Features before positions: tiles do change their order. Keys are transposed
// once, before the loops, queries by tile.

// CHECK-LABEL: func @features_first
// CHECK:       %[[KT:.*]] = linalg.transpose
// CHECK:       scf.forall
// CHECK:         linalg.transpose {{.*}} outs(%{{.*}} : tensor<1x1x8x16xf32>)
// CHECK:         scf.for
// CHECK:           tensor.extract_slice %[[KT]]
func.func @features_first(%q: tensor<1x1x16x8xf32>, %k: tensor<1x1x16x8xf32>) -> tensor<1x1x8x16xf32> {
  %e = tensor.empty() : tensor<1x1x8x16xf32>
  %qt = linalg.transpose ins(%q : tensor<1x1x16x8xf32>) outs(%e : tensor<1x1x8x16xf32>) permutation = [0, 1, 3, 2]
  %kt = linalg.transpose ins(%k : tensor<1x1x16x8xf32>) outs(%e : tensor<1x1x8x16xf32>) permutation = [0, 1, 3, 2]
  %o = attn.attention %qt, %kt, %kt scale(0.25) {schedule = #attn.schedule<tile = 48x64, order = linear>}
    : tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32> -> tensor<1x1x8x16xf32>
  return %o : tensor<1x1x8x16xf32>
}

// -----

// The output is read twice: each tile is written both ways.

// CHECK-LABEL: func @two_readers
// CHECK:       %[[O:.*]]:2 = scf.forall {{.*}} -> (tensor<1x2x8x16xf32>, tensor<1x8x2x16xf32>)
// CHECK:         %[[F:.*]] = attn.finalize
// CHECK:         %[[T:.*]] = linalg.transpose ins(%[[F]] :
// CHECK:         scf.forall.in_parallel {
// CHECK-DAG:       tensor.parallel_insert_slice %[[F]]
// CHECK-DAG:       tensor.parallel_insert_slice %[[T]]
// CHECK:       return %[[O]]#0, %[[O]]#1
func.func @two_readers(%q: tensor<1x2x8x16xf32>) -> (tensor<1x2x8x16xf32>, tensor<1x8x2x16xf32>) {
  %o = attn.attention %q, %q, %q scale(0.25) {schedule = #attn.schedule<tile = 48x64, order = linear>}
    : tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x16xf32>
  %g = tensor.empty() : tensor<1x8x2x16xf32>
  %ot = linalg.transpose ins(%o : tensor<1x2x8x16xf32>) outs(%g : tensor<1x8x2x16xf32>) permutation = [0, 2, 1, 3]
  return %o, %ot : tensor<1x2x8x16xf32>, tensor<1x8x2x16xf32>
}

// -----

// An elementwise producer of the keys is not computed again by every tile of
// queries.

// CHECK-LABEL: func @scaled_keys
// CHECK:       linalg.generic
// CHECK:       scf.forall
// CHECK-NOT:     linalg.generic
// CHECK:         attn.online_attention
#id4 = affine_map<(b, h, i, d) -> (b, h, i, d)>
func.func @scaled_keys(%q: tensor<1x2x16x16xf32>, %k: tensor<1x2x16x16xf32>) -> tensor<1x2x16x16xf32> {
  %e = tensor.empty() : tensor<1x2x16x16xf32>
  %s = linalg.generic {indexing_maps = [#id4, #id4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%k : tensor<1x2x16x16xf32>) outs(%e : tensor<1x2x16x16xf32>) {
  ^bb0(%x: f32, %y: f32):
    %z = arith.mulf %x, %x : f32
    linalg.yield %z : f32
  } -> tensor<1x2x16x16xf32>
  %o = attn.attention %q, %s, %k scale(0.25) {schedule = #attn.schedule<tile = 8x8, order = linear>}
    : tensor<1x2x16x16xf32>, tensor<1x2x16x16xf32>, tensor<1x2x16x16xf32> -> tensor<1x2x16x16xf32>
  return %o : tensor<1x2x16x16xf32>
}
