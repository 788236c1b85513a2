// RUN: fovea-opt --convert-attn-to-linalg --canonicalize --cse --split-input-file \
// RUN:   --mlir-print-local-scope %s | FileCheck %s

// A row that is all minus infinity subtracts 0 and divides by nothing.
// CHECK-LABEL: func.func @softmax
func.func @softmax(%x: tensor<3x?xf16>) -> tensor<3x?xf32> {
  // CHECK: linalg.fill {machine.kernel = 0 : i64} ins(%{{.*}} : f32)
  // CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]
  // CHECK:   arith.extf
  // CHECK:   arith.maxnumf
  // CHECK: linalg.generic {{.*}}iterator_types = ["parallel"]
  // CHECK:   arith.cmpf oeq
  // CHECK:   arith.select
  // CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel"]
  // CHECK:   arith.subf
  // CHECK:   math.exp
  // CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]
  // CHECK:   arith.addf
  // CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel"]
  // CHECK-SAME: machine.kernel = 0
  // CHECK:   arith.cmpf oeq
  // CHECK:   arith.divf
  // CHECK:   arith.select
  %p = attn.softmax %x : tensor<3x?xf16> -> tensor<3x?xf32>
  return %p : tensor<3x?xf32>
}

// -----

// Query heads of one KV head are a loop of their own; the product is summed in
// f32 and rounded once.
// CHECK-LABEL: func.func @grouped_scores
// CHECK-SAME: %[[Q:.*]]: tensor<2x8x?x64xf16>, %[[K:.*]]: tensor<2x2x?x64xf16>
func.func @grouped_scores(%q: tensor<2x8x?x64xf16>, %k: tensor<2x2x?x64xf16>)
    -> tensor<2x8x?x?xf16> {
  // CHECK: %[[E:.*]] = tensor.expand_shape %[[Q]] {{\[}}[0], [1, 2], [3], [4]]
  // CHECK: %[[S:.*]] = linalg.generic
  // CHECK-SAME: affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3, d5)>
  // CHECK-SAME: affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d4, d5)>
  // CHECK-SAME: affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3, d4)>
  // CHECK-SAME: ins(%[[E]], %[[K]]
  // CHECK: linalg.generic {{.*}} ins(%[[S]] : tensor<2x2x4x?x?xf32>)
  // CHECK:   arith.truncf %{{.*}} : f32 to f16
  // CHECK: tensor.collapse_shape
  %s = attn.scores %q, %k
      : tensor<2x8x?x64xf16>, tensor<2x2x?x64xf16> -> tensor<2x8x?x?xf16>
  return %s : tensor<2x8x?x?xf16>
}

// -----

// CHECK-LABEL: func.func @values
// CHECK-NOT: tensor.expand_shape
// CHECK: linalg.generic
// CHECK-SAME: affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)>
// CHECK-SAME: affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4, d3)>
// A key whose probability is 0 contributes nothing: its value may be NaN.
// CHECK: ^bb0(%[[P:.*]]: f32, %[[V:.*]]: f32, %[[OUT:.*]]: f32):
// CHECK:   %[[PRODUCT:.*]] = arith.mulf %[[P]], %[[V]]
// CHECK:   %[[ABSENT:.*]] = arith.cmpf oeq, %[[P]], %[[ZERO:.*]] : f32
// CHECK:   %[[TERM:.*]] = arith.select %[[ABSENT]], %[[ZERO]], %[[PRODUCT]]
// CHECK:   arith.addf %[[OUT]], %[[TERM]]
func.func @values(%p: tensor<1x2x3x5xf32>, %v: tensor<1x2x5x4xf32>)
    -> tensor<1x2x3x4xf32> {
  %o = attn.values %p, %v
      : tensor<1x2x3x5xf32>, tensor<1x2x5x4xf32> -> tensor<1x2x3x4xf32>
  return %o : tensor<1x2x3x4xf32>
}

// -----

// Each graph op is a kernel; regions see coordinates and captured tensors.
// CHECK-LABEL: func.func @regions
// CHECK-SAME: %{{[^:]*}}: tensor<1x4x8x8xf32>, %[[TABLE:.*]]: tensor<4xf32>
func.func @regions(%s: tensor<1x4x8x8xf32>, %table: tensor<4xf32>)
    -> tensor<1x4x8x8xf32> {
  // CHECK: linalg.generic
  // CHECK-SAME: machine.kernel = 0
  // CHECK:   %[[H:.*]] = linalg.index 1{{ }}
  // CHECK:   tensor.extract %[[TABLE]][%[[H]]]
  %a = attn.modify %s {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %t = tensor.extract %table[%h] : tensor<4xf32>
    %r = arith.addf %x, %t : f32
    attn.yield %r : f32
  } : tensor<1x4x8x8xf32>
  // CHECK: linalg.generic
  // CHECK-SAME: machine.kernel = 1
  // CHECK-DAG: %[[I:.*]] = linalg.index 2{{ }}
  // CHECK-DAG: %[[J:.*]] = linalg.index 3{{ }}
  // CHECK:   %[[KEEP:.*]] = arith.cmpi sge, %[[I]], %[[J]]
  // CHECK:   arith.select %[[KEEP]], %{{.*}}, %{{.*}} : f32
  %m = attn.mask %a {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } : tensor<1x4x8x8xf32>
  return %m : tensor<1x4x8x8xf32>
}

// -----

// Ten rounds of two products, keyed by place.
// CHECK-LABEL: func.func @dropout
// CHECK-COUNT-20: arith.mului_extended
// CHECK-NOT: arith.mului_extended
// CHECK: arith.cmpi uge
func.func @dropout(%x: tensor<2x?x64xf32>, %seed: i64, %offset: i64)
    -> tensor<2x?x64xf32> {
  %d = attn.dropout %x, 0.1 seed(%seed, %offset) : tensor<2x?x64xf32>
  return %d : tensor<2x?x64xf32>
}

// -----

// The pair's other member is at 1 - member: halves of the features, or
// neighbours.
// CHECK-LABEL: func.func @rope
func.func @rope(%x: tensor<1x2x?x8xf32>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>)
    -> (tensor<1x2x?x8xf32>, tensor<1x2x?x8xf32>) {
  // CHECK: tensor.expand_shape {{.*}} into tensor<1x2x?x2x4xf32>
  // CHECK: affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, -d3 + 1, d4)>
  %y = attn.rope %x, %c, %s
      : tensor<1x2x?x8xf32>, tensor<?x4xf32>, tensor<?x4xf32>
  // CHECK: tensor.expand_shape {{.*}} into tensor<1x2x?x4x2xf32>
  // CHECK: affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, -d4 + 1)>
  %z = attn.rope %x, %c, %s interleaved
      : tensor<1x2x?x8xf32>, tensor<?x4xf32>, tensor<?x4xf32>
  return %y, %z : tensor<1x2x?x8xf32>, tensor<1x2x?x8xf32>
}

// -----

// bf16 norms are computed in f32 and rounded at the end.
// CHECK-LABEL: func.func @norms
func.func @norms(%x: tensor<4x64xbf16>, %w: tensor<64xf32>, %r: tensor<4x64xf32>)
    -> tensor<4x64xbf16> {
  // CHECK-COUNT-2: iterator_types = ["parallel", "reduction"]
  // CHECK: math.sqrt
  // CHECK: arith.truncf %{{.*}} : f32 to bf16
  %y = attn.layer_norm %x weight(%w : tensor<64xf32>) epsilon(1.0e-5)
      : tensor<4x64xbf16>
  // CHECK: iterator_types = ["parallel", "reduction"]
  // CHECK: math.sqrt
  // CHECK: arith.truncf %{{.*}} : f32 to bf16
  %z = attn.rms_norm %y epsilon(1.0e-6) : tensor<4x64xbf16>
  // CHECK: arith.addf
  // CHECK: arith.truncf %{{.*}} : f32 to bf16
  %a = attn.residual_add %z, %r : tensor<4x64xbf16>, tensor<4x64xf32>
  return %a : tensor<4x64xbf16>
}

// -----

// CHECK-LABEL: func.func @attention
// CHECK-NOT: attn.
// CHECK: math.exp
// CHECK: math.exp
// CHECK: math.log
func.func @attention(%q: tensor<1x2x8x4xf32>, %k: tensor<1x2x8x4xf32>,
                     %v: tensor<1x2x8x4xf32>)
    -> (tensor<1x2x8x4xf32>, tensor<1x2x8xf32>) {
  %o, %l = attn.attention %q, %k, %v scale(0.5)
      : tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>
        -> tensor<1x2x8x4xf32>, tensor<1x2x8xf32>
  return %o, %l : tensor<1x2x8x4xf32>, tensor<1x2x8xf32>
}

// -----

// The online form and what is not attention stay.
// CHECK-LABEL: func.func @others
// CHECK: linalg.exp
// CHECK: attn.finalize
func.func @others(%x: tensor<1x1x4x4xf32>, %m: tensor<1x1x4xf32>,
                  %o: tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xf32> {
  %y = linalg.exp ins(%x : tensor<1x1x4x4xf32>) outs(%x : tensor<1x1x4x4xf32>)
      -> tensor<1x1x4x4xf32>
  %f = attn.finalize
      ins(%y, %m, %m : tensor<1x1x4x4xf32>, tensor<1x1x4xf32>, tensor<1x1x4xf32>)
      outs(%o : tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xf32>
  return %f : tensor<1x1x4x4xf32>
}

// -----

// Numbers of heads that nobody knows: every head gets a copy of its KV head.
// CHECK-LABEL: func.func @unknown_heads
// CHECK-SAME: %[[Q:[^:]*]]: tensor<1x?x8x4xf32>, %[[K:[^:]*]]: tensor<1x?x8x4xf32>
func.func @unknown_heads(%q: tensor<1x?x8x4xf32>, %k: tensor<1x?x8x4xf32>)
    -> tensor<1x?x8x8xf32> {
  // CHECK: %[[COPY:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<1x?x8x4xf32>)
  // CHECK:   arith.divui
  // CHECK:   tensor.extract %[[K]]
  // CHECK: linalg.generic {{.*}} ins(%[[Q]], %[[COPY]]
  %s = attn.scores %q, %k
      : tensor<1x?x8x4xf32>, tensor<1x?x8x4xf32> -> tensor<1x?x8x8xf32>
  return %s : tensor<1x?x8x8xf32>
}

// -----

// A log-sum-exp of a row that is all minus infinity is minus infinity.
// CHECK-LABEL: func.func @log_sum_exp
// CHECK: linalg.generic
// CHECK:   arith.maxnumf
// CHECK: linalg.generic
// CHECK:   math.exp
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel"]
// CHECK:   %[[EMPTY:.*]] = arith.cmpf oeq
// CHECK:   %[[LOG:.*]] = math.log
// CHECK:   %[[SUM:.*]] = arith.addf %[[LOG]]
// CHECK:   arith.select %[[EMPTY]], %{{.*}}, %[[SUM]]
func.func @log_sum_exp(%x: tensor<2x3x?xf32>) -> tensor<2x3xf32> {
  %l = attn.log_sum_exp %x : tensor<2x3x?xf32> -> tensor<2x3xf32>
  return %l : tensor<2x3xf32>
}

// -----

// CHECK-LABEL: func.func @softmax_backward
// CHECK-SAME: %[[P:.*]]: tensor<3x?xf32>, %[[G:.*]]: tensor<3x?xf16>
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]{{.*}} ins(%[[P]], %[[G]]
// CHECK:   %[[PG:.*]] = arith.mulf
// CHECK:   %[[NONE:.*]] = arith.cmpf oeq
// CHECK:   %[[TERM:.*]] = arith.select %[[NONE]], %{{.*}}, %[[PG]]
// CHECK:   arith.addf %{{.*}}, %[[TERM]]
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel"]{{.*}} ins(%[[P]], %[[G]], %[[SUM]]
// CHECK:   %[[D:.*]] = arith.subf
// CHECK:   %[[PD:.*]] = arith.mulf %{{.*}}, %[[D]]
// CHECK:   %[[NONE:.*]] = arith.cmpf oeq
// CHECK:   arith.select %[[NONE]], %{{.*}}, %[[PD]]
func.func @softmax_backward(%p: tensor<3x?xf32>, %g: tensor<3x?xf16>)
    -> tensor<3x?xf32> {
  %d = attn.softmax_backward %p, %g
      : tensor<3x?xf32>, tensor<3x?xf16> -> tensor<3x?xf32>
  return %d : tensor<3x?xf32>
}

// -----

// Query heads of one KV head are summed with the queries.
// CHECK-LABEL: func.func @sum_queries
// CHECK: linalg.generic
// CHECK-SAME: affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d4, d5, d2)>
// CHECK-SAME: affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d4, d5, d3)>
// CHECK-SAME: affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3)>
// CHECK-SAME: iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]
// CHECK: arith.truncf %{{.*}} : f32 to f16
func.func @sum_queries(%p: tensor<2x8x?x?xf32>, %x: tensor<2x8x?x64xf16>)
    -> tensor<2x2x?x64xf16> {
  %r = attn.sum_queries %p, %x
      : tensor<2x8x?x?xf32>, tensor<2x8x?x64xf16> -> tensor<2x2x?x64xf16>
  return %r : tensor<2x2x?x64xf16>
}

// -----

// Two unknown numbers of heads: for every head first.
// CHECK-LABEL: func.func @sum_queries_of_unknown_heads
// CHECK-SAME: %[[N:.*]]: index
// CHECK: arith.divui
// CHECK: %[[ALL:.*]] = linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]
// CHECK:   tensor.extract %[[ALL]]
func.func @sum_queries_of_unknown_heads(
    %p: tensor<2x?x?x?xf32>, %x: tensor<2x?x?x64xf32>, %n: index)
    -> tensor<2x?x?x64xf32> {
  %r = attn.sum_queries %p, %x heads(%n)
      : tensor<2x?x?x?xf32>, tensor<2x?x?x64xf32> -> tensor<2x?x?x64xf32>
  return %r : tensor<2x?x?x64xf32>
}

// -----

// A size that an operand's type does not have, but ops tell, becomes static.
// CHECK-LABEL: func.func @rope_known
// CHECK: tensor.expand_shape %{{.*}} : tensor<1x2x5x8xf32> into tensor<1x2x5x2x4xf32>
func.func @rope_known(%x: tensor<1x2x16x8xf32>, %c: tensor<5x4xf32>) -> tensor<1x2x?x8xf32> {
  %five = arith.constant 5 : index
  %p = tensor.extract_slice %x[0, 0, 0, 0] [1, 2, %five, 8] [1, 1, 1, 1] : tensor<1x2x16x8xf32> to tensor<1x2x?x8xf32>
  %y = attn.rope %p, %c, %c : tensor<1x2x?x8xf32>, tensor<5x4xf32>, tensor<5x4xf32>
  return %y : tensor<1x2x?x8xf32>
}

// -----

// A result in f64 is summed in f64.
// CHECK-LABEL: func.func @wide_scores
// CHECK: linalg.generic
// CHECK: ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32, %[[S:.*]]: f64):
// CHECK: %[[WA:.*]] = arith.extf %[[A]] : f32 to f64
// CHECK: %[[WB:.*]] = arith.extf %[[B]] : f32 to f64
// CHECK: arith.mulf %[[WA]], %[[WB]] : f64
// CHECK: arith.addf %[[S]], %{{.*}} : f64
func.func @wide_scores(%q: tensor<1x1x4x8xf32>, %k: tensor<1x1x4x8xf32>) -> tensor<1x1x4x4xf64> {
  %s = attn.scores %q, %k : tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32> -> tensor<1x1x4x4xf64>
  return %s : tensor<1x1x4x4xf64>
}

// -----

// A part weighs the exponential of its log-sum-exp less the largest one, taken in
// their type, over the sum of these. What weighs nothing adds nothing.
// CHECK-LABEL: func.func @merge
// CHECK-SAME: %[[P:.*]]: tensor<5x1x2x3x8xf32>, %[[L:.*]]: tensor<5x1x2x3xf64>
// CHECK-DAG: %[[LOW:.*]] = arith.constant 0xFFF0000000000000 : f64
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK: %[[M:.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d3, d0, d1, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>]
// CHECK-SAME: ins(%[[L]] : tensor<5x1x2x3xf64>)
// CHECK: arith.maxnumf
// CHECK: %[[S:.*]] = linalg.generic {{.*}} ins(%[[L]], %[[M]] : tensor<5x1x2x3xf64>, tensor<1x2x3xf64>)
// CHECK: ^bb0(%[[X:.*]]: f64, %[[Y:.*]]: f64, %[[SUM:.*]]: f32):
// CHECK: %[[D:.*]] = arith.subf %[[X]], %[[Y]] : f64
// CHECK: %[[N:.*]] = arith.truncf %[[D]] : f64 to f32
// CHECK: %[[E:.*]] = math.exp %[[N]] : f32
// CHECK: %[[EMPTY:.*]] = arith.cmpf oeq, %[[X]], %[[LOW]] : f64
// CHECK: %[[W:.*]] = arith.select %[[EMPTY]], %[[ZERO]], %[[E]] : f32
// CHECK: arith.addf %[[SUM]], %[[W]] : f32
// CHECK: %[[WS:.*]] = linalg.generic {{.*}} ins(%[[L]], %[[M]], %[[S]] :
// CHECK: arith.divf
// CHECK: %[[O:.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d3, d0, d1, d2, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "parallel"]} ins(%[[P]], %[[WS]] :
// CHECK: ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32, %[[C:.*]]: f32):
// CHECK: %[[T:.*]] = arith.mulf %[[B]], %[[A]] : f32
// CHECK: %[[U:.*]] = arith.cmpf oeq, %[[B]], %[[ZERO]] : f32
// CHECK: %[[V:.*]] = arith.select %[[U]], %[[ZERO]], %[[T]] : f32
// CHECK: arith.addf %[[C]], %[[V]] : f32
// CHECK: linalg.generic {{.*}} ins(%[[O]] : tensor<1x2x3x8xf32>)
// CHECK: arith.truncf %{{.*}} : f32 to bf16
// CHECK: linalg.generic {{.*}} ins(%[[S]], %[[M]] : tensor<1x2x3xf32>, tensor<1x2x3xf64>)
// CHECK: math.log
func.func @merge(%p: tensor<5x1x2x3x8xf32>, %l: tensor<5x1x2x3xf64>) -> (tensor<1x2x3x8xbf16>, tensor<1x2x3xf32>) {
  %o, %lse = attn.merge %p, %l : tensor<5x1x2x3x8xf32>, tensor<5x1x2x3xf64> -> tensor<1x2x3x8xbf16>, tensor<1x2x3xf32>
  return %o, %lse : tensor<1x2x3x8xbf16>, tensor<1x2x3xf32>
}
