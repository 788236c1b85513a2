// RUN: fovea-opt --attn-differentiate --canonicalize --cse --split-input-file \
// RUN:   --mlir-print-local-scope %s | FileCheck %s

// The textbook's backward pass, which reads the saved probabilities.
// CHECK-LABEL: func.func @attend_gradient(
// CHECK-SAME: %[[Q:.*]]: tensor<2x4x?x64xf16>, %[[K:.*]]: tensor<2x2x?x64xf16>, %[[V:.*]]: tensor<2x2x?x32xf16>,
// CHECK-SAME: %[[SEED:.*]]: i64, %[[OFFSET:.*]]: i64, %[[DO:.*]]: tensor<2x4x?x32xf16>)
// CHECK-SAME: -> (tensor<2x4x?x32xf16>, tensor<2x4x?x64xf16>, tensor<2x2x?x64xf16>, tensor<2x2x?x32xf16>)
// CHECK: %[[S:.*]] = attn.scores %[[Q]], %[[K]]
// CHECK: %[[T:.*]] = attn.scale %[[S]] by 1.250000e-01
// CHECK: %[[P:.*]] = attn.softmax %[[T]]
// CHECK: %[[D:.*]] = attn.dropout %[[P]], 1.000000e-01 seed(%[[SEED]], %[[OFFSET]])
// CHECK: %[[O:.*]] = attn.values %[[D]], %[[V]]
// CHECK: %[[DD:.*]] = attn.scores %[[DO]], %[[V]]
// CHECK: %[[DV:.*]] = attn.sum_queries %[[D]], %[[DO]]
// CHECK: %[[DP:.*]] = attn.dropout %[[DD]], 1.000000e-01 seed(%[[SEED]], %[[OFFSET]])
// CHECK: %[[DT:.*]] = attn.softmax_backward %[[P]], %[[DP]]
// CHECK: %[[DS:.*]] = attn.scale %[[DT]] by 1.250000e-01
// CHECK: %[[DQ:.*]] = attn.values %[[DS]], %[[K]]
// CHECK: %[[DK:.*]] = attn.sum_queries %[[DS]], %[[Q]]
// CHECK: return %[[O]], %[[DQ]], %[[DK]], %[[DV]]
func.func @attend(%q: tensor<2x4x?x64xf16>, %k: tensor<2x2x?x64xf16>,
                  %v: tensor<2x2x?x32xf16>, %seed: i64, %offset: i64)
    -> tensor<2x4x?x32xf16> {
  %s = attn.scores %q, %k
      : tensor<2x4x?x64xf16>, tensor<2x2x?x64xf16> -> tensor<2x4x?x?xf32>
  %t = attn.scale %s by 0.125 : tensor<2x4x?x?xf32>
  %p = attn.softmax %t : tensor<2x4x?x?xf32> -> tensor<2x4x?x?xf32>
  %d = attn.dropout %p, 0.1 seed(%seed, %offset) : tensor<2x4x?x?xf32>
  %o = attn.values %d, %v
      : tensor<2x4x?x?xf32>, tensor<2x2x?x32xf16> -> tensor<2x4x?x32xf16>
  return %o : tensor<2x4x?x32xf16>
}

// -----

// What is fused becomes a graph, whose probabilities are saved for its backward
// pass. The log-sum-exp sends a gradient of its own; of what the score region
// captures, tensors that operands determine have one.
// CHECK-LABEL: func.func @fused_gradient(
// CHECK-SAME: %[[Q:.*]]: tensor<1x2x8x16xf32>, %[[K:.*]]: tensor<1x2x8x16xf32>, %[[V:.*]]: tensor<1x2x8x16xf32>, %[[SLOPES:.*]]: tensor<2xf32>, %[[DO:[a-z0-9]*]]: tensor<1x2x8x16xf32>, %[[DL:[a-z0-9]*]]: tensor<1x2x8xf32>)
// CHECK-SAME: attributes {attn.joint = array<i64: 4, 2>}
// CHECK: %[[S:.*]] = attn.scores %[[Q]], %[[K]]
// CHECK: %[[T:.*]] = attn.scale %[[S]] by 5.000000e-01
// CHECK: %[[M:.*]] = attn.modify %[[T]]
// CHECK: %[[P:.*]] = attn.softmax %[[M]]
// CHECK: %[[O:.*]] = attn.values %[[P]], %[[V]]
// CHECK: %[[L:.*]] = attn.log_sum_exp %[[M]]
// CHECK: %[[DQ:.*]], %[[DK:.*]], %[[DV:.*]], %[[DS:.*]] = attn.attention_backward %[[Q]], %[[K]], %[[V]], %[[DO]] scale(5.000000e-01)
// CHECK-SAME: probabilities(%[[P]] : tensor<1x2x8x8xf32>)
// CHECK-SAME: lse_gradient(%[[DL]] : tensor<1x2x8xf32>)
// CHECK-SAME: captures(%[[SLOPES]] : tensor<2xf32>)
// CHECK-SAME: score {
// CHECK: return %[[O]], %[[L]], %[[DQ]], %[[DK]], %[[DV]], %[[DS]]
func.func @fused(%q: tensor<1x2x8x16xf32>, %k: tensor<1x2x8x16xf32>,
                 %v: tensor<1x2x8x16xf32>, %slopes: tensor<2xf32>)
    -> (tensor<1x2x8x16xf32>, tensor<1x2x8xf32>) {
  %constants = arith.constant dense<2.0> : tensor<2xf32>
  %o, %l = attn.attention %q, %k, %v scale(0.5)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %slope = tensor.extract %slopes[%h] : tensor<2xf32>
        %constant = tensor.extract %constants[%h] : tensor<2xf32>
        %t = arith.mulf %s, %slope : f32
        %r = arith.addf %t, %constant : f32
        attn.yield %r : f32
      }
      : tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>
        -> tensor<1x2x8x16xf32>, tensor<1x2x8xf32>
  return %o, %l : tensor<1x2x8x16xf32>, tensor<1x2x8xf32>
}

// -----

// The score region is differentiated as a scalar program; a captured tensor
// gets a sum over the dimensions that do not index it, in zeros of its own size
// where that may be another.
// CHECK-LABEL: func.func @regions_gradient(
// CHECK-SAME: %{{.*}}: tensor<2x4x8x6xf32>, %[[SLOPES:.*]]: tensor<4xf32>, %[[BIAS:.*]]: tensor<1x?x?xf32>, %[[D:.*]]: tensor<2x4x8x6xf32>)
// CHECK: linalg.generic
// CHECK-SAME: iterator_types = ["parallel", "parallel", "parallel", "parallel"]
// CHECK:   %[[KEEP:.*]] = arith.cmpi sge
// CHECK:   arith.select %[[KEEP]], %{{.*}}, %{{.*}} : f32
// The score's gradient is the cotangent times the slope.
// CHECK: linalg.generic
// CHECK:   %[[SLOPE:.*]] = tensor.extract %[[SLOPES]]
// CHECK:   %[[DX:.*]] = arith.mulf %[[DY:.*]], %[[SLOPE]] : f32
// A masked score has none, even if its derivative is NaN.
// CHECK:   %[[MASKED:.*]] = arith.cmpf oeq, %[[DY]], %[[NONE:.*]] : f32
// CHECK:   %[[KEPT:.*]] = arith.select %[[MASKED]], %[[NONE]], %[[DX]]
// CHECK:   linalg.yield %[[KEPT]]
// The slopes'.
// CHECK: linalg.generic
// CHECK-SAME: affine_map<(d0, d1, d2, d3) -> (d1, d0, d2, d3)>
// CHECK-SAME: affine_map<(d0, d1, d2, d3) -> (d0)>
// CHECK-SAME: iterator_types = ["parallel", "reduction", "reduction", "reduction"]
// CHECK: arith.truncf %{{.*}} : tensor<4xf64> to tensor<4xf32>
// The bias', at its constant index.
// CHECK: %[[SUM:.*]] = linalg.generic
// CHECK-SAME: iterator_types = ["parallel", "parallel", "reduction", "reduction"]
// CHECK: tensor.insert_slice %[[SUM]] into %{{.*}}[0, 0, 0] [1, 8, 6] [1, 1, 1] : tensor<8x6xf64> into tensor<1x?x?xf64>
func.func @regions(%x: tensor<2x4x8x6xf32>, %slopes: tensor<4xf32>,
                   %bias: tensor<1x?x?xf32>) -> tensor<2x4x8x6xf32> {
  %c0 = arith.constant 0 : index
  %y = attn.modify %x {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %slope = tensor.extract %slopes[%h] : tensor<4xf32>
    %e = tensor.extract %bias[%c0, %i, %j] : tensor<1x?x?xf32>
    %t = arith.mulf %s, %slope : f32
    %r = arith.addf %t, %e : f32
    attn.yield %r : f32
  } : tensor<2x4x8x6xf32>
  %z = attn.mask %y {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } : tensor<2x4x8x6xf32>
  return %z : tensor<2x4x8x6xf32>
}

// -----

// Where an index is computed, contributions are added one by one, in f64: there
// are many, of both signs.
// CHECK-LABEL: func.func @relative_gradient(
// CHECK: %[[ZEROS:.*]] = linalg.fill
// CHECK-COUNT-4: scf.for
// CHECK: %[[OLD:.*]] = tensor.extract %[[SUMS:.*]][%[[AT:.*]]] : tensor<?xf64>
// CHECK: %[[NEW:.*]] = arith.addf %[[OLD]]
// CHECK: tensor.insert %[[NEW]] into %[[SUMS]][%[[AT]]]
// CHECK: arith.truncf %{{.*}} : tensor<?xf64> to tensor<?xf16>
func.func @relative(%x: tensor<2x4x8x8xf32>, %table: tensor<?xf16>)
    -> tensor<2x4x8x8xf32> {
  %c7 = arith.constant 7 : index
  %y = attn.modify %x {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %d = arith.subi %j, %i : index
    %at = arith.addi %d, %c7 : index
    %e = tensor.extract %table[%at] : tensor<?xf16>
    %f = arith.extf %e : f16 to f32
    %r = arith.addf %s, %f : f32
    attn.yield %r : f32
  } : tensor<2x4x8x8xf32>
  return %y : tensor<2x4x8x8xf32>
}

// -----

// Any op of linalg that is a sum of products: here a product of matrices, then
// a row that is added to every row.
// CHECK-LABEL: func.func @project_gradient(
// CHECK-SAME: %[[X:.*]]: tensor<?x8xbf16>, %[[W:.*]]: tensor<8x4xbf16>, %[[C:.*]]: tensor<4xbf16>, %[[D:.*]]: tensor<?x4xf32>)
// CHECK: linalg.matmul
// The row's gradient, summed in f64 and rounded once.
// CHECK: linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0)>]
// CHECK-SAME: iterator_types = ["parallel", "reduction"]
// CHECK-SAME: ins(%[[D]]
// CHECK: arith.truncf %{{.*}} : tensor<4xf64> to tensor<4xbf16>
// CHECK: %[[DX:.*]] = linalg.generic
// CHECK-SAME: affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-SAME: iterator_types = ["parallel", "parallel", "reduction"]
// CHECK-SAME: ins(%[[W]], %[[D]]
// CHECK: %[[DW:.*]] = linalg.generic
// CHECK-SAME: ins(%[[X]], %[[D]]
func.func @project(%x: tensor<?x8xbf16>, %w: tensor<8x4xbf16>,
                   %c: tensor<4xbf16>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x8xbf16>
  %empty = tensor.empty(%n) : tensor<?x4xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x4xf32>)
      -> tensor<?x4xf32>
  %y = linalg.matmul ins(%x, %w : tensor<?x8xbf16>, tensor<8x4xbf16>)
                     outs(%zeros : tensor<?x4xf32>) -> tensor<?x4xf32>
  %z = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>,
                       affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%y, %c : tensor<?x4xf32>, tensor<4xbf16>)
      outs(%empty : tensor<?x4xf32>) {
  ^bb0(%a: f32, %b: bf16, %out: f32):
    %e = arith.extf %b : bf16 to f32
    %r = arith.addf %a, %e : f32
    linalg.yield %r : f32
  } -> tensor<?x4xf32>
  return %z : tensor<?x4xf32>
}

// -----

// A maximum that is attained more than once shares its gradient.
// CHECK-LABEL: func.func @maximum_gradient(
// CHECK: %[[MAX:.*]] = linalg.reduce
// CHECK: %[[COUNT:.*]] = linalg.generic
// CHECK:   arith.cmpf oeq
// CHECK:   arith.addf
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}}, %[[MAX]], %[[COUNT]]
// CHECK:   arith.divf
// CHECK:   arith.select
func.func @maximum(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %lowest = arith.constant 0xFF800000 : f32
  %empty = tensor.empty() : tensor<4xf32>
  %init = linalg.fill ins(%lowest : f32) outs(%empty : tensor<4xf32>)
      -> tensor<4xf32>
  %y = linalg.reduce { arith.maximumf } ins(%x : tensor<4x8xf32>)
      outs(%init : tensor<4xf32>) dimensions = [1]
  return %y : tensor<4xf32>
}

// -----

// Integers, numbers and results that are not floats have no gradient; a
// function of floats that does not matter gets zeros.
// CHECK-LABEL: func.func @constants_gradient(
// CHECK-SAME: %{{.*}}: tensor<4xf32>, %{{.*}}: tensor<4xi32>, %{{.*}}: f32, %[[U:.*]]: tensor<4xf32>, %[[D:.*]]: tensor<4xf32>)
// CHECK-SAME: -> (tensor<4xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4xf32>)
// CHECK-DAG: %[[Z:.*]] = linalg.fill
// CHECK-DAG: %[[DX:.*]] = linalg.generic {{.*}}ins(%[[D]]
// CHECK: return %{{.*}}, %{{.*}}, %[[DX]], %[[Z]]
func.func @constants(%x: tensor<4xf32>, %n: tensor<4xi32>, %a: f32,
                     %unused: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<4xi32>) {
  %empty = tensor.empty() : tensor<4xf32>
  %y = linalg.generic {
      indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>,
                       affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]}
      ins(%x, %n : tensor<4xf32>, tensor<4xi32>) outs(%empty : tensor<4xf32>) {
  ^bb0(%e: f32, %i: i32, %out: f32):
    %f = arith.sitofp %i : i32 to f32
    %p = arith.mulf %e, %a : f32
    %r = arith.addf %p, %f : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  return %y, %n : tensor<4xf32>, tensor<4xi32>
}

// -----

// Two uses: gradients are added. Views and slices go back as they came.
// CHECK-LABEL: func.func @views_gradient(
// CHECK-SAME: %{{.*}}: tensor<6x8xf32>, %[[D:.*]]: tensor<2x3x8xf32>, %[[E:.*]]: tensor<2x8xf32>)
// CHECK: %[[P:.*]] = tensor.insert_slice %[[E]] into %{{.*}}[1, 0] [2, 8] [1, 1]
// CHECK: %[[C:.*]] = tensor.collapse_shape %[[D]] {{\[}}[0, 1], [2]]
// CHECK: %[[S:.*]] = arith.addf %[[P]], %[[C]]
// CHECK: return %{{.*}}, %{{.*}}, %[[S]]
func.func @views(%x: tensor<6x8xf32>) -> (tensor<2x3x8xf32>, tensor<2x8xf32>) {
  %y = tensor.expand_shape %x [[0, 1], [2]] output_shape [2, 3, 8]
      : tensor<6x8xf32> into tensor<2x3x8xf32>
  %z = tensor.extract_slice %x[1, 0] [2, 8] [1, 1]
      : tensor<6x8xf32> to tensor<2x8xf32>
  return %y, %z : tensor<2x3x8xf32>, tensor<2x8xf32>
}

// -----

// A rotation goes back by the negative angle.
// CHECK-LABEL: func.func @rotate_gradient(
// CHECK-SAME: %[[X:.*]]: tensor<1x2x3x8xf32>, %[[COS:.*]]: tensor<3x4xf32>, %[[SIN:.*]]: tensor<3x4xf32>, %[[D:.*]]: tensor<1x2x3x8xf32>)
// CHECK: %[[N:.*]] = arith.negf %[[SIN]]
// CHECK: attn.rope %[[D]], %[[COS]], %[[N]]
// CHECK-COUNT-2: linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "reduction", "reduction", "reduction"]
func.func @rotate(%x: tensor<1x2x3x8xf32>, %cos: tensor<3x4xf32>,
                  %sin: tensor<3x4xf32>) -> tensor<1x2x3x8xf32> {
  %y = attn.rope %x, %cos, %sin
      : tensor<1x2x3x8xf32>, tensor<3x4xf32>, tensor<3x4xf32>
  return %y : tensor<1x2x3x8xf32>
}

// -----

// CHECK-LABEL: func.func @log_sum_exp_gradient(
// CHECK-SAME: %[[X:.*]]: tensor<2x8xf32>, %[[D:.*]]: tensor<2xf32>)
// CHECK: %[[L:.*]] = attn.log_sum_exp %[[X]]
// CHECK: linalg.generic {{.*}} ins(%[[X]], %[[L]], %[[D]]
// CHECK:   arith.cmpf oeq
// CHECK:   math.exp
func.func @log_sum_exp(%x: tensor<2x8xf32>) -> tensor<2xf32> {
  %l = attn.log_sum_exp %x : tensor<2x8xf32> -> tensor<2xf32>
  return %l : tensor<2xf32>
}

// -----

// n * x^(n - 1), and nothing for n = 0; a clamp passes on between its bounds.
// CHECK-LABEL: func.func @powers_gradient(
// CHECK: linalg.generic
// CHECK:   arith.cmpf olt
// CHECK:   arith.cmpf ogt
// CHECK:   %[[LESS:.*]] = arith.subi %[[N:.*]], %{{.*}} : i32
// CHECK:   %[[F:.*]] = arith.sitofp %[[N]] : i32 to f32
// CHECK:   %[[P:.*]] = math.fpowi %{{.*}}, %[[LESS]]
// CHECK:   arith.mulf %[[F]], %[[P]]
// CHECK:   arith.cmpi eq, %[[N]]
func.func @powers(%x: tensor<4xf32>, %n: tensor<4xi32>) -> tensor<4xf32> {
  %y = attn.elementwise %x, %n {
  ^bb0(%a: f32, %i: i32):
    %zero = arith.constant 0.0 : f32
    %two = arith.constant 2.0 : f32
    %p = math.fpowi %a, %i : f32, i32
    %r = math.clampf %p to [%zero, %two] : f32
    attn.yield %r : f32
  } : (tensor<4xf32>, tensor<4xi32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// Cosines and sines tell the size of the features.
// CHECK-LABEL: func.func @turn_known_gradient(
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor<1x1x4x?xf32>
// CHECK: tensor.cast %[[X]] : tensor<1x1x4x?xf32> to tensor<1x1x4x72xf32>
func.func @turn_known(%x: tensor<1x1x4x?xf32>, %c: tensor<4x36xf32>) -> tensor<1x1x4x?xf32> {
  %y = attn.rope %x, %c, %c : tensor<1x1x4x?xf32>, tensor<4x36xf32>, tensor<4x36xf32>
  return %y : tensor<1x1x4x?xf32>
}

// -----

// In an f64 graph, the gradient of narrower weights is summed in f64 from terms
// that are not rounded; so is that of a bias over all rows in an f32 graph. A
// product of matrices is in f32.
// CHECK-LABEL: func.func @sums_gradient(
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]
// CHECK-NOT: arith.truncf
// CHECK: arith.addf %{{.*}} : f64
// CHECK: arith.truncf %{{.*}} : tensor<7xf64> to tensor<7xf32>
func.func @sums(%x: tensor<20x7xf64>, %w: tensor<7xf32>) -> tensor<20x7xf64> {
  %y = attn.rms_norm %x weight(%w : tensor<7xf32>) epsilon(1.0e-6) : tensor<20x7xf64>
  return %y : tensor<20x7xf64>
}

// -----

// CHECK-LABEL: func.func @scale_gradient(
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]
// CHECK-NOT: arith.truncf
// CHECK: arith.addf %{{.*}} : f64
// CHECK: arith.truncf %{{.*}} : tensor<7xf64> to tensor<7xf32>
#all = affine_map<(r, c) -> (r, c)>
func.func @scale(%x: tensor<20x7xf64>, %w: tensor<7xf32>) -> tensor<20x7xf64> {
  %e = tensor.empty() : tensor<20x7xf64>
  %y = linalg.generic {indexing_maps = [#all, affine_map<(r, c) -> (c)>, #all], iterator_types = ["parallel", "parallel"]}
    ins(%x, %w : tensor<20x7xf64>, tensor<7xf32>) outs(%e : tensor<20x7xf64>) {
  ^bb0(%a: f64, %b: f32, %o: f64):
    %n = arith.extf %b : f32 to f64
    %m = arith.mulf %a, %n : f64
    linalg.yield %m : f64
  } -> tensor<20x7xf64>
  return %y : tensor<20x7xf64>
}

// -----

// CHECK-LABEL: func.func @bias_gradient(
// CHECK-SAME: %[[B:[a-z0-9]*]]: tensor<7xf32>, %[[W:[a-z0-9]*]]: tensor<6x7xf32>
// CHECK-DAG: arith.addf %{{.*}} : f64
// CHECK-DAG: linalg.generic {{.*}} outs(%{{.*}} : tensor<6x7xf32>)
#row = affine_map<(r, c) -> (c)>
#result = affine_map<(r, c) -> (r, c)>
func.func @bias(%x: tensor<20x6xf32>, %b: tensor<7xf32>, %w: tensor<6x7xf32>) -> tensor<20x7xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<20x7xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<20x7xf32>) -> tensor<20x7xf32>
  %p = linalg.matmul ins(%x, %w : tensor<20x6xf32>, tensor<6x7xf32>) outs(%f : tensor<20x7xf32>) -> tensor<20x7xf32>
  %y = linalg.generic {indexing_maps = [#result, #row, #result], iterator_types = ["parallel", "parallel"]}
    ins(%p, %b : tensor<20x7xf32>, tensor<7xf32>) outs(%e : tensor<20x7xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %s = arith.addf %a, %c : f32
    linalg.yield %s : f32
  } -> tensor<20x7xf32>
  return %y : tensor<20x7xf32>
}
