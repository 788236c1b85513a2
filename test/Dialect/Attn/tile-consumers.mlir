// RUN: fovea-opt %s --attn-online-softmax --attn-tile --split-input-file | FileCheck %s
// RUN: fovea-opt %s --attn-online-softmax --attn-tile=fuse-consumers=false --split-input-file | FileCheck %s --check-prefix=OFF

// A gate and a residual are computed on each tile, and so is what makes the
// gate; the output itself is not written.

// CHECK-LABEL: func @gated
// CHECK-SAME:    %[[Q:[^:]*]]: tensor<1x2x16x16xf32>, %[[X:[^:]*]]: tensor<1x2x16x16xf32>, %[[R:[^:]*]]: tensor<1x2x16x16xf32>
// CHECK-NOT:   attn.elementwise
// CHECK:       %[[ALL:.*]] = scf.forall (%[[B:.*]], %[[H:.*]], %[[I:.*]]) = {{.*}} shared_outs(%[[OUT:.*]] = %{{.*}})
// CHECK:         %[[O:.*]] = attn.finalize
// CHECK:         %[[XT:.*]] = tensor.extract_slice %[[X]][%[[B]], %[[H]], %[[I]], 0] [1, 1, 8, 16]
// CHECK:         %[[G:.*]] = attn.elementwise %[[XT]]
// CHECK:         %[[Y:.*]] = attn.elementwise %[[O]], %[[G]]
// CHECK:         %[[RT:.*]] = tensor.extract_slice %[[R]][%[[B]], %[[H]], %[[I]], 0] [1, 1, 8, 16]
// CHECK:         %[[Z:.*]] = attn.residual_add %[[Y]], %[[RT]]
// CHECK:         scf.forall.in_parallel {
// CHECK-NEXT:      tensor.parallel_insert_slice %[[Z]] into %[[OUT]][%[[B]], %[[H]], %[[I]], 0] [1, 1, 8, 16]
// CHECK-NEXT:    }
// CHECK:       return %[[ALL]]

// OFF-LABEL: func @gated
// OFF:         scf.forall
// OFF:         attn.residual_add
// OFF-NEXT:    return
func.func @gated(%q: tensor<1x2x16x16xf32>, %x: tensor<1x2x16x16xf32>, %r: tensor<1x2x16x16xf32>) -> tensor<1x2x16x16xf32> {
  %o = attn.attention %q, %q, %q scale(0.25) {schedule = #attn.schedule<tile = 8x8, order = linear>}
    : tensor<1x2x16x16xf32>, tensor<1x2x16x16xf32>, tensor<1x2x16x16xf32> -> tensor<1x2x16x16xf32>
  %g = attn.elementwise %x {
  ^bb0(%a: f32):
    %t = math.tanh %a : f32
    attn.yield %t : f32
  } : (tensor<1x2x16x16xf32>) -> tensor<1x2x16x16xf32>
  %y = attn.elementwise %o, %g {
  ^bb0(%a: f32, %b: f32):
    %m = arith.mulf %a, %b : f32
    attn.yield %m : f32
  } : (tensor<1x2x16x16xf32>, tensor<1x2x16x16xf32>) -> tensor<1x2x16x16xf32>
  %z = attn.residual_add %y, %r : tensor<1x2x16x16xf32>, tensor<1x2x16x16xf32>
  return %z : tensor<1x2x16x16xf32>
}

// -----

// Through a transpose and collapsed heads: a tile stays a view of both.

// CHECK-LABEL: func @collapsed
// CHECK-SAME:    %[[Q:[^:]*]]: tensor<1x4x?x16xf32>, %[[G:[^:]*]]: tensor<1x?x64xf32>, %[[BIAS:[^:]*]]: tensor<64xf32>
// CHECK-DAG:   %[[G4:.*]] = tensor.expand_shape %[[G]] {{.*}} into tensor<1x?x4x16xf32>
// CHECK-DAG:   %[[BIAS4:.*]] = tensor.expand_shape %[[BIAS]] {{.*}} into tensor<4x16xf32>
// CHECK-NOT:   linalg.transpose
// CHECK:       %[[ALL:.*]] = scf.forall (%[[B:.*]], %[[H:.*]], %[[I:.*]]) = {{.*}} shared_outs(%[[OUT:.*]] = %{{.*}}) -> (tensor<1x?x4x16xf32>)
// CHECK:         %[[ROWS:.*]] = affine.min
// CHECK:         attn.finalize
// CHECK-DAG:     %[[GT:.*]] = tensor.extract_slice %[[G4]][%[[B]], %[[I]], %[[H]], 0] [1, %[[ROWS]], 1, 16]
// CHECK-DAG:     %[[BT:.*]] = tensor.extract_slice %[[BIAS4]][%[[H]], 0] [1, 16]
// CHECK:         %[[Y:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %[[GT]], %[[BT]] : tensor<1x?x1x16xf32>, tensor<1x?x1x16xf32>, tensor<1x16xf32>)
// CHECK:         tensor.parallel_insert_slice %[[Y]] into %[[OUT]][%[[B]], %[[I]], %[[H]], 0] [1, %[[ROWS]], 1, 16]
// CHECK:       %[[FLAT:.*]] = tensor.collapse_shape %[[ALL]]
// CHECK:       return %[[FLAT]]
#id3 = affine_map<(b, i, d) -> (b, i, d)>
#last3 = affine_map<(b, i, d) -> (d)>
func.func @collapsed(%q: tensor<1x4x?x16xf32>, %g: tensor<1x?x64xf32>, %bias: tensor<64xf32>) -> tensor<1x?x64xf32> {
  %c1 = arith.constant 1 : index
  %n = tensor.dim %g, %c1 : tensor<1x?x64xf32>
  %o = attn.attention %q, %q, %q scale(0.25) {schedule = #attn.schedule<tile = 8x8, order = linear>}
    : tensor<1x4x?x16xf32>, tensor<1x4x?x16xf32>, tensor<1x4x?x16xf32> -> tensor<1x4x?x16xf32>
  %e = tensor.empty(%n) : tensor<1x?x4x16xf32>
  %t = linalg.transpose ins(%o : tensor<1x4x?x16xf32>) outs(%e : tensor<1x?x4x16xf32>) permutation = [0, 2, 1, 3]
  %flat = tensor.collapse_shape %t [[0], [1], [2, 3]] : tensor<1x?x4x16xf32> into tensor<1x?x64xf32>
  %f = tensor.empty(%n) : tensor<1x?x64xf32>
  %y = linalg.generic {indexing_maps = [#id3, #id3, #last3, #id3], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%flat, %g, %bias : tensor<1x?x64xf32>, tensor<1x?x64xf32>, tensor<64xf32>) outs(%f : tensor<1x?x64xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %out: f32):
    %m = arith.mulf %a, %b : f32
    %z = arith.addf %m, %c : f32
    linalg.yield %z : f32
  } -> tensor<1x?x64xf32>
  return %y : tensor<1x?x64xf32>
}

// -----

// Indices, as dropout's, go on being those of the whole.

// CHECK-LABEL: func @indices
// CHECK:       scf.forall (%[[B:.*]], %[[H:.*]], %[[I:.*]]) =
// CHECK:         attn.finalize
// CHECK:         linalg.generic
// CHECK:           %[[ROW:.*]] = linalg.index 2{{ }}
// CHECK:           affine.apply #{{.*}}(%[[I]])[%[[ROW]]]
#id = affine_map<(b, h, i, d) -> (b, h, i, d)>
func.func @indices(%q: tensor<1x2x16x16xf32>) -> tensor<1x2x16x16xf32> {
  %o = attn.attention %q, %q, %q scale(0.25) {schedule = #attn.schedule<tile = 8x8, order = linear>}
    : tensor<1x2x16x16xf32>, tensor<1x2x16x16xf32>, tensor<1x2x16x16xf32> -> tensor<1x2x16x16xf32>
  // The output is also what is written to: only its shape matters.
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%o : tensor<1x2x16x16xf32>) outs(%o : tensor<1x2x16x16xf32>) {
  ^bb0(%a: f32, %out: f32):
    %i = linalg.index 2 : index
    %n = arith.index_cast %i : index to i32
    %f = arith.sitofp %n : i32 to f32
    %m = arith.mulf %a, %f : f32
    linalg.yield %m : f32
  } -> tensor<1x2x16x16xf32>
  return %y : tensor<1x2x16x16xf32>
}

// -----

// Norms and sums over the features have all they need in a tile. The output is
// read by others too, and is written as well.

// CHECK-LABEL: func @rows
// CHECK-NOT:   attn.rms_norm
// CHECK:       %[[ALL:.*]]:3 = scf.forall {{.*}} -> (tensor<1x2x16x16xf32>, tensor<1x2x16xf32>, tensor<1x2x16x16xf32>)
// CHECK:         %[[O:.*]] = attn.finalize
// CHECK-DAG:     %[[SUM:.*]] = linalg.generic {{.*}} ins(%[[O]] : tensor<1x1x8x16xf32>) outs(%{{.*}} : tensor<1x1x8xf32>)
// CHECK-DAG:     %[[N:.*]] = attn.rms_norm %[[O]]
// CHECK:         scf.forall.in_parallel {
// CHECK-DAG:       tensor.parallel_insert_slice %[[O]]
// CHECK-DAG:       tensor.parallel_insert_slice %[[SUM]]
// CHECK-DAG:       tensor.parallel_insert_slice %[[N]]
// CHECK:       return %[[ALL]]#0
#id = affine_map<(b, h, i, d) -> (b, h, i, d)>
#row = affine_map<(b, h, i, d) -> (b, h, i)>
func.func @rows(%q: tensor<1x2x16x16xf32>) -> (tensor<1x2x16x16xf32>, tensor<1x2x16x16xf32>, tensor<1x2x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %o = attn.attention %q, %q, %q scale(0.25) {schedule = #attn.schedule<tile = 8x8, order = linear>}
    : tensor<1x2x16x16xf32>, tensor<1x2x16x16xf32>, tensor<1x2x16x16xf32> -> tensor<1x2x16x16xf32>
  %n = attn.rms_norm %o epsilon(1.0e-6) : tensor<1x2x16x16xf32>
  %e = tensor.empty() : tensor<1x2x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x2x16xf32>) -> tensor<1x2x16xf32>
  %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
    ins(%o : tensor<1x2x16x16xf32>) outs(%f : tensor<1x2x16xf32>) {
  ^bb0(%a: f32, %c: f32):
    %z = arith.addf %a, %c : f32
    linalg.yield %z : f32
  } -> tensor<1x2x16xf32>
  return %o, %n, %s : tensor<1x2x16x16xf32>, tensor<1x2x16x16xf32>, tensor<1x2x16xf32>
}

// -----

// What sums over heads or queries, contracts, or depends on the output by
// another way than tile by tile, stays behind the loop.

// CHECK-LABEL: func @left_alone
// CHECK:       %[[O:.*]] = scf.forall
// CHECK:         attn.finalize
// CHECK-NEXT:    scf.forall.in_parallel
// CHECK:       linalg.generic {{.*}} ins(%[[O]] :
// CHECK:       linalg.generic {{.*}} ins(%[[O]] :
// CHECK:       linalg.generic {{.*}} ins(%[[O]], %{{.*}} :
// CHECK:       tensor.extract_slice %[[O]]
#id = affine_map<(b, h, i, d) -> (b, h, i, d)>
#no_head = affine_map<(b, h, i, d) -> (b, i, d)>
#no_query = affine_map<(b, h, i, d) -> (b, h, d)>
#left = affine_map<(b, h, i, e, d) -> (b, h, i, d)>
#right = affine_map<(b, h, i, e, d) -> (d, e)>
#product = affine_map<(b, h, i, e, d) -> (b, h, i, e)>
func.func @left_alone(%q: tensor<1x16x16x16xf32>, %w: tensor<16x16xf32>, %h: tensor<1x16x16xf32>, %r: tensor<1x16x16xf32>, %p: tensor<1x16x16x16xf32>)
    -> (tensor<1x16x16xf32>, tensor<1x16x16xf32>, tensor<1x16x16x16xf32>, tensor<1x16x1x16xf32>) {
  %o = attn.attention %q, %q, %q scale(0.25) {schedule = #attn.schedule<tile = 8x8, order = linear>}
    : tensor<1x16x16x16xf32>, tensor<1x16x16x16xf32>, tensor<1x16x16x16xf32> -> tensor<1x16x16x16xf32>
  %heads = linalg.generic {indexing_maps = [#id, #no_head], iterator_types = ["parallel", "reduction", "parallel", "parallel"]}
    ins(%o : tensor<1x16x16x16xf32>) outs(%h : tensor<1x16x16xf32>) {
  ^bb0(%a: f32, %c: f32):
    %z = arith.addf %a, %c : f32
    linalg.yield %z : f32
  } -> tensor<1x16x16xf32>
  %queries = linalg.generic {indexing_maps = [#id, #no_query], iterator_types = ["parallel", "parallel", "reduction", "parallel"]}
    ins(%o : tensor<1x16x16x16xf32>) outs(%r : tensor<1x16x16xf32>) {
  ^bb0(%a: f32, %c: f32):
    %z = arith.addf %a, %c : f32
    linalg.yield %z : f32
  } -> tensor<1x16x16xf32>
  %projected = linalg.generic {indexing_maps = [#left, #right, #product], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
    ins(%o, %w : tensor<1x16x16x16xf32>, tensor<16x16xf32>) outs(%p : tensor<1x16x16x16xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %z = arith.addf %m, %c : f32
    linalg.yield %z : f32
  } -> tensor<1x16x16x16xf32>
  %one = tensor.extract_slice %o[0, 0, 3, 0] [1, 16, 1, 16] [1, 1, 1, 1] : tensor<1x16x16x16xf32> to tensor<1x16x1x16xf32>
  return %heads, %queries, %projected, %one : tensor<1x16x16xf32>, tensor<1x16x16xf32>, tensor<1x16x16x16xf32>, tensor<1x16x1x16xf32>
}

// -----

// CHECK-LABEL: func @another_way
// CHECK:       %[[O:.*]] = scf.forall
// CHECK:         attn.finalize
// CHECK-NEXT:    scf.forall.in_parallel
// CHECK:       %[[ROW:.*]] = tensor.extract_slice %[[O]]
// CHECK:       linalg.generic {{.*}} ins(%[[O]], %[[ROW]] :
#id = affine_map<(b, h, i, d) -> (b, h, i, d)>
#first = affine_map<(b, h, i, d) -> (b, h, d)>
func.func @another_way(%q: tensor<1x2x16x16xf32>) -> tensor<1x2x16x16xf32> {
  %o = attn.attention %q, %q, %q scale(0.25) {schedule = #attn.schedule<tile = 8x8, order = linear>}
    : tensor<1x2x16x16xf32>, tensor<1x2x16x16xf32>, tensor<1x2x16x16xf32> -> tensor<1x2x16x16xf32>
  %row = tensor.extract_slice %o[0, 0, 3, 0] [1, 2, 1, 16] [1, 1, 1, 1] : tensor<1x2x16x16xf32> to tensor<1x2x16xf32>
  %e = tensor.empty() : tensor<1x2x16x16xf32>
  %y = linalg.generic {indexing_maps = [#id, #first, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%o, %row : tensor<1x2x16x16xf32>, tensor<1x2x16xf32>) outs(%e : tensor<1x2x16x16xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %z = arith.subf %a, %b : f32
    linalg.yield %z : f32
  } -> tensor<1x2x16x16xf32>
  return %y : tensor<1x2x16x16xf32>
}

// -----

// Features and positions exchanged: each tile is transposed.

// CHECK-LABEL: func @features_last
// CHECK:       scf.forall (%[[B:.*]], %[[H:.*]], %[[I:.*]]) = {{.*}} shared_outs(%[[OUT:.*]] = %{{.*}}) -> (tensor<1x2x16x24xf32>)
// CHECK:         %[[O:.*]] = attn.finalize
// CHECK:         %[[T:.*]] = linalg.transpose ins(%[[O]] : tensor<1x1x8x16xf32>) {{.*}} permutation = [0, 1, 3, 2]
// CHECK:         tensor.parallel_insert_slice %[[T]] into %[[OUT]][%[[B]], %[[H]], 0, %[[I]]] [1, 1, 16, 8]
func.func @features_last(%q: tensor<1x2x24x16xf32>) -> tensor<1x2x16x24xf32> {
  %o = attn.attention %q, %q, %q scale(0.25) {schedule = #attn.schedule<tile = 8x8, order = linear>}
    : tensor<1x2x24x16xf32>, tensor<1x2x24x16xf32>, tensor<1x2x24x16xf32> -> tensor<1x2x24x16xf32>
  %e = tensor.empty() : tensor<1x2x16x24xf32>
  %t = linalg.transpose ins(%o : tensor<1x2x24x16xf32>) outs(%e : tensor<1x2x16x24xf32>) permutation = [0, 1, 3, 2]
  return %t : tensor<1x2x16x24xf32>
}

// -----

// A transposition that is not its own inverse: the inverse says where the
// output goes.

// CHECK-LABEL: func @rotated
// CHECK:       scf.forall (%[[B:.*]], %[[H:.*]], %[[I:.*]]) = {{.*}} shared_outs(%[[OUT:.*]] = %{{.*}}) -> (tensor<24x2x3x16xf32>)
// CHECK-NOT:     linalg.transpose
// CHECK:         tensor.parallel_insert_slice %{{.*}} into %[[OUT]][%[[I]], %[[B]], %[[H]], 0] [8, 1, 1, 16]
func.func @rotated(%q: tensor<2x3x24x16xf32>) -> tensor<24x2x3x16xf32> {
  %o = attn.attention %q, %q, %q scale(0.25) {schedule = #attn.schedule<tile = 8x8, order = linear>}
    : tensor<2x3x24x16xf32>, tensor<2x3x24x16xf32>, tensor<2x3x24x16xf32> -> tensor<2x3x24x16xf32>
  %e = tensor.empty() : tensor<24x2x3x16xf32>
  %t = linalg.transpose ins(%o : tensor<2x3x24x16xf32>) outs(%e : tensor<24x2x3x16xf32>) permutation = [2, 0, 1, 3]
  return %t : tensor<24x2x3x16xf32>
}

// -----

// What is tiled already stays as it is.

// CHECK-LABEL: func @tiled
// CHECK:       scf.forall
// CHECK-NOT:   scf.for{{ |all }}
// CHECK:       return
#size = affine_map<(d0) -> (-d0 + 100, 8)>
func.func @tiled(%q: tensor<1x1x100x16xf32>, %k: tensor<1x1x8x16xf32>, %a: tensor<1x1x100x16xf32>, %m: tensor<1x1x100xf32>) -> tensor<1x1x100x16xf32> {
  %o = tensor.empty() : tensor<1x1x100x16xf32>
  %r = scf.forall (%i) = (0) to (100) step (8) shared_outs(%out = %o) -> (tensor<1x1x100x16xf32>) {
    %n = affine.min #size(%i)
    %qt = tensor.extract_slice %q[0, 0, %i, 0] [1, 1, %n, 16] [1, 1, 1, 1] : tensor<1x1x100x16xf32> to tensor<1x1x?x16xf32>
    %at = tensor.extract_slice %a[0, 0, %i, 0] [1, 1, %n, 16] [1, 1, 1, 1] : tensor<1x1x100x16xf32> to tensor<1x1x?x16xf32>
    %mt = tensor.extract_slice %m[0, 0, %i] [1, 1, %n] [1, 1, 1] : tensor<1x1x100xf32> to tensor<1x1x?xf32>
    %p:3 = attn.online_attention scale(0.25) update(all) ins(%qt, %k, %k : tensor<1x1x?x16xf32>, tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>)
      outs(%at, %mt, %mt : tensor<1x1x?x16xf32>, tensor<1x1x?xf32>, tensor<1x1x?xf32>) {schedule = #attn.schedule<tile = 8x8, order = linear>}
      -> tensor<1x1x?x16xf32>, tensor<1x1x?xf32>, tensor<1x1x?xf32>
    %ot = tensor.extract_slice %out[0, 0, %i, 0] [1, 1, %n, 16] [1, 1, 1, 1] : tensor<1x1x100x16xf32> to tensor<1x1x?x16xf32>
    %f = attn.finalize ins(%p#0, %p#1, %p#2 : tensor<1x1x?x16xf32>, tensor<1x1x?xf32>, tensor<1x1x?xf32>) outs(%ot : tensor<1x1x?x16xf32>) -> tensor<1x1x?x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %f into %out[0, 0, %i, 0] [1, 1, %n, 16] [1, 1, 1, 1] : tensor<1x1x?x16xf32> into tensor<1x1x100x16xf32>
    }
  }
  return %r : tensor<1x1x100x16xf32>
}
