// RUN: fovea-opt %s --attn-online-softmax | FileCheck %s --check-prefixes=CHECK,ONE
// RUN: fovea-opt %s --attn-online-softmax=passes=2 | FileCheck %s --check-prefix=TWO
// RUN: fovea-opt %s --attn-online-softmax=passes=3 | FileCheck %s --check-prefix=THREE

// One pass: everything starts empty, dynamic sizes come from the operands.

// CHECK-LABEL: func @dynamic
// CHECK-SAME:    %[[Q:[^:]*]]: tensor<2x16x?x64xf16>, %[[K:[^:]*]]: tensor<2x4x?x64xf16>, %[[V:[^:]*]]: tensor<2x4x?x64xf16>
// ONE:         %[[SQ:.*]] = tensor.dim %[[Q]]
// ONE:         %[[ACC0:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<2x16x?x64xf32>)
// ONE:         %[[INF:.*]] = arith.constant 0xFF800000 : f32
// ONE:         %[[MAX0:.*]] = linalg.fill ins(%[[INF]] : f32) outs(%{{.*}} : tensor<2x16x?xf32>)
// ONE:         %[[SUM0:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<2x16x?xf32>)
// ONE:         %[[R:.*]]:3 = attn.online_attention scale(1.250000e-01) update(all) ins(%[[Q]], %[[K]], %[[V]] :
// ONE-SAME:      outs(%[[ACC0]], %[[MAX0]], %[[SUM0]] :
// ONE-SAME:      mask {
// ONE:           arith.cmpi sge
// ONE:         } {schedule = #attn.schedule<tile = 48x64, order = longest_first>}
// ONE:         %[[O0:.*]] = tensor.empty({{.*}}) : tensor<2x16x?x64xf16>
// ONE:         %[[L0:.*]] = tensor.empty({{.*}}) : tensor<2x16x?xf32>
// ONE:         %[[O:.*]]:2 = attn.finalize ins(%[[R]]#0, %[[R]]#1, %[[R]]#2 :
// ONE-SAME:      outs(%[[O0]], %[[L0]] :
// ONE:         return %[[O]]#0, %[[O]]#1

// TWO-LABEL: func @dynamic
// TWO:         %[[ACC0:.*]] = linalg.fill
// TWO:         %[[MAX0:.*]] = linalg.fill
// TWO:         %[[SUM0:.*]] = linalg.fill
// TWO:         %[[A:.*]]:3 = attn.online_attention scale(1.250000e-01) update(max_sum)
// TWO-SAME:      outs(%[[ACC0]], %[[MAX0]], %[[SUM0]] :
// TWO-SAME:      mask {
// TWO:         %[[B:.*]]:3 = attn.online_attention scale(1.250000e-01) update(acc)
// TWO-SAME:      outs(%[[ACC0]], %[[A]]#1, %[[A]]#2 :
// TWO-SAME:      mask {
// TWO:         attn.finalize ins(%[[B]]#0, %[[A]]#1, %[[A]]#2 :

// THREE-LABEL: func @dynamic
// THREE:       %[[ACC0:.*]] = linalg.fill
// THREE:       %[[MAX0:.*]] = linalg.fill
// THREE:       %[[SUM0:.*]] = linalg.fill
// THREE:       %[[A:.*]]:3 = attn.online_attention scale(1.250000e-01) update(max)
// THREE-SAME:    outs(%[[ACC0]], %[[MAX0]], %[[SUM0]] :
// THREE:       %[[B:.*]]:3 = attn.online_attention scale(1.250000e-01) update(sum)
// THREE-SAME:    outs(%[[ACC0]], %[[A]]#1, %[[SUM0]] :
// THREE:       %[[C:.*]]:3 = attn.online_attention scale(1.250000e-01) update(acc)
// THREE-SAME:    outs(%[[ACC0]], %[[A]]#1, %[[B]]#2 :
// THREE:       attn.finalize ins(%[[C]]#0, %[[A]]#1, %[[B]]#2 :
func.func @dynamic(%q: tensor<2x16x?x64xf16>, %k: tensor<2x4x?x64xf16>, %v: tensor<2x4x?x64xf16>) -> (tensor<2x16x?x64xf16>, tensor<2x16x?xf32>) {
  %o, %l = attn.attention %q, %k, %v scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %keep = arith.cmpi sge, %i, %j : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 48x64, order = longest_first>}
    : tensor<2x16x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16> -> tensor<2x16x?x64xf16>, tensor<2x16x?xf32>
  return %o, %l : tensor<2x16x?x64xf16>, tensor<2x16x?xf32>
}

// f64 accumulates in f64; the output's static sizes are kept where the operands
// do not know them.

// CHECK-LABEL: func @double
// ONE:         linalg.fill ins(%{{.*}} : f64) outs(%{{.*}} : tensor<1x2x8x4xf64>)
// ONE:         linalg.fill ins(%{{.*}} : f64) outs(%{{.*}} : tensor<1x2x8xf64>)
// ONE:         attn.finalize {{.*}} -> tensor<1x2x8x4xf64>
func.func @double(%q: tensor<?x2x?x4xf64>, %k: tensor<1x2x8x4xf64>, %v: tensor<1x2x8x4xf64>) -> tensor<1x2x8x4xf64> {
  %o = attn.attention %q, %k, %v scale(0.5)
    : tensor<?x2x?x4xf64>, tensor<1x2x8x4xf64>, tensor<1x2x8x4xf64> -> tensor<1x2x8x4xf64>
  return %o : tensor<1x2x8x4xf64>
}

// Dropout goes to the pass that reads the values.

// TWO-LABEL: func @dropout
// TWO:         attn.online_attention scale({{.*}}) update(max_sum) ins
// TWO-SAME:      score {
// TWO:         attn.online_attention scale({{.*}}) update(acc) dropout(1.000000e-01, %{{.*}}, %{{.*}}) ins
// TWO-SAME:      score {
func.func @dropout(%q: tensor<1x1x8x4xf32>, %seed: i64, %offset: i64) -> tensor<1x1x8x4xf32> {
  %o = attn.attention %q, %q, %q scale(0.5) dropout(0.1, %seed, %offset)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %r = math.tanh %s : f32
      attn.yield %r : f32
    }
    : tensor<1x1x8x4xf32>, tensor<1x1x8x4xf32>, tensor<1x1x8x4xf32> -> tensor<1x1x8x4xf32>
  return %o : tensor<1x1x8x4xf32>
}

// The graph is left alone.

// CHECK-LABEL: func @graph
// ONE:         attn.softmax
// ONE-NOT:     attn.online_attention
func.func @graph(%s: tensor<1x1x8x8xf32>) -> tensor<1x1x8x8xf32> {
  %p = attn.softmax %s : tensor<1x1x8x8xf32> -> tensor<1x1x8x8xf32>
  return %p : tensor<1x1x8x8xf32>
}
