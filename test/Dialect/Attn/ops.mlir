// RUN: fovea-opt %s --verify-roundtrip | FileCheck %s
// RUN: fovea-opt %s --mlir-print-op-generic | fovea-opt | FileCheck %s

// CHECK-LABEL: func @graph
func.func @graph(%q: tensor<2x16x?x64xf16>, %k: tensor<2x4x?x64xf16>,
                 %v: tensor<2x4x?x32xf16>, %slopes: tensor<16xf32>,
                 %seed: i64, %offset: i64) -> tensor<2x16x?x32xf16> {
  // CHECK: attn.scores %{{.*}}, %{{.*}} : tensor<2x16x?x64xf16>, tensor<2x4x?x64xf16> -> tensor<2x16x?x?xf32>
  %s = attn.scores %q, %k : tensor<2x16x?x64xf16>, tensor<2x4x?x64xf16> -> tensor<2x16x?x?xf32>
  // CHECK: attn.scale %{{.*}} by 1.250000e-01 : tensor<2x16x?x?xf32>
  %t = attn.scale %s by 0.125 : tensor<2x16x?x?xf32>
  // CHECK: attn.modify %{{.*}} {
  // CHECK-NEXT: ^bb0(%[[S:.*]]: f32, %{{.*}}: index, %[[H:.*]]: index, %{{.*}}: index, %{{.*}}: index):
  // CHECK-NEXT: tensor.extract %{{.*}}[%[[H]]]
  %a = attn.modify %t {
  ^bb0(%score: f32, %b: index, %h: index, %i: index, %j: index):
    %slope = tensor.extract %slopes[%h] : tensor<16xf32>
    %r = arith.mulf %score, %slope : f32
    attn.yield %r : f32
  } : tensor<2x16x?x?xf32>
  // CHECK: attn.mask %{{.*}} {
  // CHECK: attn.yield %{{.*}} : i1
  // CHECK: } : tensor<2x16x?x?xf32>
  %m = attn.mask %a {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } : tensor<2x16x?x?xf32>
  // CHECK: attn.softmax %{{.*}} : tensor<2x16x?x?xf32> -> tensor<2x16x?x?xf16>
  %p = attn.softmax %m : tensor<2x16x?x?xf32> -> tensor<2x16x?x?xf16>
  // CHECK: attn.dropout %{{.*}}, 1.000000e-01 seed(%{{.*}}, %{{.*}}) : tensor<2x16x?x?xf16>
  %d = attn.dropout %p, 0.1 seed(%seed, %offset) : tensor<2x16x?x?xf16>
  // CHECK: attn.values %{{.*}}, %{{.*}} : tensor<2x16x?x?xf16>, tensor<2x4x?x32xf16> -> tensor<2x16x?x32xf16>
  %o = attn.values %d, %v : tensor<2x16x?x?xf16>, tensor<2x4x?x32xf16> -> tensor<2x16x?x32xf16>
  return %o : tensor<2x16x?x32xf16>
}

// CHECK-LABEL: func @around
func.func @around(%x: tensor<2x?x512xbf16>, %r: tensor<2x?x512xf32>, %w: tensor<512xf32>,
                  %h: tensor<2x8x?x64xf32>, %cos: tensor<?x32xf32>, %sin: tensor<?x32xf32>)
    -> (tensor<2x?x512xf32>, tensor<2x8x?x64xf32>) {
  // CHECK: attn.layer_norm %{{.*}} weight(%{{.*}} : tensor<512xf32>) bias(%{{.*}} : tensor<512xf32>) epsilon(1.000000e-05) : tensor<2x?x512xbf16>
  %a = attn.layer_norm %x weight(%w : tensor<512xf32>) bias(%w : tensor<512xf32>) epsilon(1.0e-5) : tensor<2x?x512xbf16>
  // CHECK: attn.layer_norm %{{.*}} bias(%{{.*}} : tensor<512xf32>) epsilon
  %b = attn.layer_norm %a bias(%w : tensor<512xf32>) epsilon(0.0) : tensor<2x?x512xbf16>
  // CHECK: attn.rms_norm %{{.*}} epsilon(1.000000e-03) : tensor<2x?x512xbf16>
  %c = attn.rms_norm %b epsilon(0.001) : tensor<2x?x512xbf16>
  // CHECK: attn.residual_add %{{.*}}, %{{.*}} : tensor<2x?x512xbf16>, tensor<2x?x512xf32>
  %d = attn.residual_add %c, %r : tensor<2x?x512xbf16>, tensor<2x?x512xf32>
  // CHECK: attn.elementwise %{{.*}}, %{{.*}} {
  %e = attn.elementwise %d, %r {
  ^bb0(%p: bf16, %q: f32):
    %z = arith.extf %p : bf16 to f32
    %y = arith.mulf %z, %q : f32
    attn.yield %y : f32
  } : (tensor<2x?x512xbf16>, tensor<2x?x512xf32>) -> tensor<2x?x512xf32>
  // CHECK: attn.rope %{{.*}}, %{{.*}}, %{{.*}} : tensor<2x8x?x64xf32>, tensor<?x32xf32>, tensor<?x32xf32>
  %f = attn.rope %h, %cos, %sin : tensor<2x8x?x64xf32>, tensor<?x32xf32>, tensor<?x32xf32>
  // CHECK: attn.rope %{{.*}}, %{{.*}}, %{{.*}} interleaved :
  %g = attn.rope %f, %cos, %sin interleaved : tensor<2x8x?x64xf32>, tensor<?x32xf32>, tensor<?x32xf32>
  return %e, %g : tensor<2x?x512xf32>, tensor<2x8x?x64xf32>
}

// CHECK-LABEL: func @fused
func.func @fused(%q: tensor<2x16x?x64xf16>, %k: tensor<2x4x?x64xf16>, %v: tensor<2x4x?x64xf16>,
                 %seed: i64, %offset: i64) -> (tensor<2x16x?x64xf16>, tensor<2x16x?xf32>) {
  // CHECK: attn.attention %{{.*}}, %{{.*}}, %{{.*}} scale(1.250000e-01) dropout(1.000000e-01, %{{.*}}, %{{.*}}) score {
  // CHECK: ^bb0(%{{.*}}: f32, %{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %{{.*}}: index):
  // CHECK: } mask {
  // CHECK: schedule = #attn.schedule<tile = 48x64, order = longest_first>
  // CHECK: -> tensor<2x16x?x64xf16>, tensor<2x16x?xf32>
  %o, %lse = attn.attention %q, %k, %v scale(0.125) dropout(0.1, %seed, %offset)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %r = math.tanh %s : f32
      attn.yield %r : f32
    }
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %keep = arith.cmpi sge, %i, %j : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 48x64, order = longest_first>}
    : tensor<2x16x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16> -> tensor<2x16x?x64xf16>, tensor<2x16x?xf32>
  // CHECK: attn.attention %{{.*}}, %{{.*}}, %{{.*}} scale(1.000000e+00) : tensor
  %p = attn.attention %q, %k, %v scale(1.0)
    : tensor<2x16x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16> -> tensor<2x16x?x64xf16>
  // Defaults are not written.
  // CHECK: schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>
  %e = attn.attention %q, %k, %v scale(1.0) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, maximum = exact, blocks = tiles>}
    : tensor<2x16x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16> -> tensor<2x16x?x64xf16>
  // CHECK: schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, maximum = stale>
  %s = attn.attention %q, %k, %v scale(1.0) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, maximum = stale>}
    : tensor<2x16x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16> -> tensor<2x16x?x64xf16>
  // CHECK: schedule = #attn.schedule<tile = 64x64, order = longest_first, warps = 4, stages = 2, queries = sequences, blocks = dealt>
  %cut = attn.attention %q, %k, %v scale(1.0) {schedule = #attn.schedule<tile = 64x64, order = longest_first, warps = 4, stages = 2, blocks = dealt, queries = sequences>}
    : tensor<2x16x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16> -> tensor<2x16x?x64xf16>
  // CHECK: schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, maximum = stale, keys = descending, blocks = persistent>
  %last = attn.attention %q, %k, %v scale(1.0) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, keys = descending, maximum = stale, blocks = persistent>}
    : tensor<2x16x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16> -> tensor<2x16x?x64xf16>
  // CHECK: schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>
  %first = attn.attention %q, %k, %v scale(1.0) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, keys = ascending>}
    : tensor<2x16x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16> -> tensor<2x16x?x64xf16>
  // CHECK: schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, captures = tiled>
  %tiles = attn.attention %q, %k, %v scale(1.0) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, captures = tiled>}
    : tensor<2x16x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16> -> tensor<2x16x?x64xf16>
  // CHECK: schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, blocks = persistent>
  %n = attn.attention %q, %k, %v scale(1.0) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, blocks = persistent>}
    : tensor<2x16x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16> -> tensor<2x16x?x64xf16>
  // CHECK: schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, blocks = shared>
  %shared = attn.attention %q, %k, %v scale(1.0) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, blocks = shared>}
    : tensor<2x16x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16> -> tensor<2x16x?x64xf16>
  // CHECK: schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, maximum = stale, blocks = persistent>
  %b = attn.attention %q, %k, %v scale(1.0) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, blocks = persistent, maximum = stale>}
    : tensor<2x16x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16> -> tensor<2x16x?x64xf16>
  // CHECK: schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, maximum = stale, products = alternating>
  %a = attn.attention %q, %k, %v scale(1.0) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, products = alternating, maximum = stale>}
    : tensor<2x16x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16> -> tensor<2x16x?x64xf16>
  // CHECK: schedule = #attn.schedule<tile = 128x64, order = linear, warps = 8, stages = 2, maximum = stale, groups = in_turn>
  %turns = attn.attention %q, %k, %v scale(1.0) {schedule = #attn.schedule<tile = 128x64, order = linear, warps = 8, stages = 2, groups = in_turn, maximum = stale>}
    : tensor<2x16x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16> -> tensor<2x16x?x64xf16>
  // CHECK: schedule = #attn.schedule<tile = 48x64, order = linear, split = 3>
  %y = attn.attention %q, %k, %v scale(1.0) {schedule = #attn.schedule<tile = 48x64, order = linear, split = 3>}
    : tensor<2x16x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16> -> tensor<2x16x?x64xf16>
  // CHECK: schedule = #attn.schedule<tile = 48x64, order = linear, split = fixed(1024)>, split_size = 1024 : i64
  %w = attn.attention %q, %k, %v scale(1.0) {split_size = 1024 : i64, schedule = #attn.schedule<tile = 48x64, order = linear, split = fixed(1024)>}
    : tensor<2x16x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16> -> tensor<2x16x?x64xf16>
  // CHECK: schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, maximum = stale, split = 128>
  %z = attn.attention %q, %k, %v scale(1.0) {schedule = #attn.schedule<tile = 64x64, order = linear, split = 128, warps = 4, stages = 2, maximum = stale>}
    : tensor<2x16x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16> -> tensor<2x16x?x64xf16>
  // CHECK: schedule = #attn.schedule<tile = 64x64, order = longest_first, warps = 4, stages = 2, blocks = dealt, split = 16>
  %items = attn.attention %q, %k, %v scale(1.0) {schedule = #attn.schedule<tile = 64x64, order = longest_first, split = 16, warps = 4, stages = 2, blocks = dealt>}
    : tensor<2x16x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16> -> tensor<2x16x?x64xf16>
  // CHECK: schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>
  %x = attn.attention %q, %k, %v scale(1.0) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, split = 1>}
    : tensor<2x16x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16> -> tensor<2x16x?x64xf16>
  return %p, %lse : tensor<2x16x?x64xf16>, tensor<2x16x?xf32>
}

// CHECK-LABEL: func @online
func.func @online(%q: tensor<1x1x48x64xf16>, %k: tensor<1x1x?x64xf16>, %v: tensor<1x1x?x64xf16>,
                  %acc: tensor<1x1x48x64xf32>, %max: tensor<1x1x48xf32>, %sum: tensor<1x1x48xf32>,
                  %qt: tensor<1x1x64x48xf32>, %o: tensor<1x1x48x64xf16>,
                  %b: index, %h: index, %i: index, %j: index, %p: i1)
    -> (tensor<1x1x48x64xf16>, tensor<1x1x48xf32>, tensor<1x1x48xf32>) {
  // CHECK: attn.online_attention scale(1.250000e-01) update(all) ins(
  // CHECK-SAME: at[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] whole[%{{.*}}, %{{.*}}] partial(%{{.*}}) ends[%{{.*}}, %{{.*}}] mask {
  %0:3 = attn.online_attention scale(0.125) update(all)
    ins(%q, %k, %v : tensor<1x1x48x64xf16>, tensor<1x1x?x64xf16>, tensor<1x1x?x64xf16>)
    outs(%acc, %max, %sum : tensor<1x1x48x64xf32>, tensor<1x1x48xf32>, tensor<1x1x48xf32>)
    at [%b, %h, %i, %j] whole [%h, %i] partial(%p) ends [%i, %j]
    mask {
    ^bb0(%b_: index, %h_: index, %i_: index, %j_: index):
      %keep = arith.cmpi sge, %i_, %j_ : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 128x64, order = linear, warps = 8, stages = 2>} -> tensor<1x1x48x64xf32>, tensor<1x1x48xf32>, tensor<1x1x48xf32>
  // CHECK: attn.pack_query by 1.250000e-01 ins(%{{.*}} : tensor<1x1x48x64xf16>) outs(%{{.*}} : tensor<1x1x64x48xf32>) -> tensor<1x1x64x48xf32>
  %pq = attn.pack_query by 0.125 ins(%q : tensor<1x1x48x64xf16>) outs(%qt : tensor<1x1x64x48xf32>) -> tensor<1x1x64x48xf32>
  // CHECK: attn.online_attention scale(1.250000e-01) update(acc)
  // CHECK-SAME: packed(%{{.*}}) ->
  %1:3 = attn.online_attention scale(0.125) update(acc)
    ins(%pq, %k, %v : tensor<1x1x64x48xf32>, tensor<1x1x?x64xf16>, tensor<1x1x?x64xf16>)
    outs(%0#0, %0#1, %0#2 : tensor<1x1x48x64xf32>, tensor<1x1x48xf32>, tensor<1x1x48xf32>)
    packed(%i) -> tensor<1x1x48x64xf32>, tensor<1x1x48xf32>, tensor<1x1x48xf32>
  // CHECK: attn.finalize ins({{.*}}) outs(%{{.*}}, %{{.*}} : tensor<1x1x48x64xf16>, tensor<1x1x48xf32>) -> tensor<1x1x48x64xf16>, tensor<1x1x48xf32>
  %2:2 = attn.finalize ins(%1#0, %1#1, %1#2 : tensor<1x1x48x64xf32>, tensor<1x1x48xf32>, tensor<1x1x48xf32>)
    outs(%o, %max : tensor<1x1x48x64xf16>, tensor<1x1x48xf32>) -> tensor<1x1x48x64xf16>, tensor<1x1x48xf32>
  return %2#0, %2#1, %1#2 : tensor<1x1x48x64xf16>, tensor<1x1x48xf32>, tensor<1x1x48xf32>
}

// Queries in pairs of features.
// CHECK-LABEL: func @pairs
func.func @pairs(%q: tensor<1x1x48x64xbf16>, %k: tensor<1x1x?x64xbf16>, %qt: tensor<1x1x32x96xbf16>,
                 %acc: tensor<1x1x48x64xf32>, %max: tensor<1x1x48xf32>, %rows: index) -> tensor<1x1x48x64xf32> {
  // CHECK: attn.pack_query by 1.000000e+00 ins(%{{.*}} : tensor<1x1x48x64xbf16>) outs(%{{.*}} : tensor<1x1x32x96xbf16>) -> tensor<1x1x32x96xbf16>
  %p = attn.pack_query by 1.0 ins(%q : tensor<1x1x48x64xbf16>) outs(%qt : tensor<1x1x32x96xbf16>) -> tensor<1x1x32x96xbf16>
  // CHECK: attn.online_attention scale(1.250000e-01) update(all) ins(%{{.*}} : tensor<1x1x32x96xbf16>, {{.*}} packed(%{{.*}})
  %r:3 = attn.online_attention scale(0.125) update(all)
    ins(%p, %k, %k : tensor<1x1x32x96xbf16>, tensor<1x1x?x64xbf16>, tensor<1x1x?x64xbf16>)
    outs(%acc, %max, %max : tensor<1x1x48x64xf32>, tensor<1x1x48xf32>, tensor<1x1x48xf32>)
    packed(%rows) -> tensor<1x1x48x64xf32>, tensor<1x1x48xf32>, tensor<1x1x48xf32>
  return %r#0 : tensor<1x1x48x64xf32>
}

// CHECK-LABEL: func @backward_pairs
func.func @backward_pairs(%q: tensor<1x1x?x64xbf16>, %do: tensor<1x1x?x32xbf16>, %v: tensor<1x1x?x32xbf16>,
                          %pq: tensor<1x3x32x128xbf16>, %pdo: tensor<1x3x16x128xbf16>, %l: tensor<1x1x?xf32>,
                          %dq: tensor<1x1x?x64xf32>, %dv: tensor<1x1x?x32xf32>) -> tensor<1x1x?x64xf32> {
  // CHECK: attn.online_backward scale(1.250000e-01) packed(%{{.*}}, %{{.*}} : tensor<1x3x32x128xbf16>, tensor<1x3x16x128xbf16>) ins(
  %r:3 = attn.online_backward scale(0.125) packed(%pq, %pdo : tensor<1x3x32x128xbf16>, tensor<1x3x16x128xbf16>)
    ins(%q, %do, %q, %v, %l, %l : tensor<1x1x?x64xbf16>, tensor<1x1x?x32xbf16>, tensor<1x1x?x64xbf16>, tensor<1x1x?x32xbf16>, tensor<1x1x?xf32>, tensor<1x1x?xf32>)
    outs(%dq, %dq, %dv : tensor<1x1x?x64xf32>, tensor<1x1x?x64xf32>, tensor<1x1x?x32xf32>)
    -> tensor<1x1x?x64xf32>, tensor<1x1x?x64xf32>, tensor<1x1x?x32xf32>
  return %r#0 : tensor<1x1x?x64xf32>
}

// CHECK-LABEL: func @backward
func.func @backward(%p: tensor<2x16x?x?xf32>, %g: tensor<2x16x?x?xf16>, %x: tensor<2x16x?x64xf16>,
                    %a: tensor<2x?x?x?xf32>, %b: tensor<2x?x?x64xf16>, %n: index)
    -> (tensor<2x16x?xf32>, tensor<2x16x?x?xf32>, tensor<2x4x?x64xf16>, tensor<2x?x?x64xf16>) {
  // CHECK: attn.log_sum_exp %{{.*}} : tensor<2x16x?x?xf32> -> tensor<2x16x?xf32>
  %0 = attn.log_sum_exp %p : tensor<2x16x?x?xf32> -> tensor<2x16x?xf32>
  // CHECK: attn.softmax_backward %{{.*}}, %{{.*}} : tensor<2x16x?x?xf32>, tensor<2x16x?x?xf16> -> tensor<2x16x?x?xf32>
  %1 = attn.softmax_backward %p, %g : tensor<2x16x?x?xf32>, tensor<2x16x?x?xf16> -> tensor<2x16x?x?xf32>
  // CHECK: attn.sum_queries %{{.*}}, %{{.*}} : tensor<2x16x?x?xf32>, tensor<2x16x?x64xf16> -> tensor<2x4x?x64xf16>
  %2 = attn.sum_queries %p, %x : tensor<2x16x?x?xf32>, tensor<2x16x?x64xf16> -> tensor<2x4x?x64xf16>
  // CHECK: attn.sum_queries %{{.*}}, %{{.*}} heads(%{{.*}}) : tensor<2x?x?x?xf32>, tensor<2x?x?x64xf16> -> tensor<2x?x?x64xf16>
  %3 = attn.sum_queries %a, %b heads(%n) : tensor<2x?x?x?xf32>, tensor<2x?x?x64xf16> -> tensor<2x?x?x64xf16>
  return %0, %1, %2, %3 : tensor<2x16x?xf32>, tensor<2x16x?x?xf32>, tensor<2x4x?x64xf16>, tensor<2x?x?x64xf16>
}

// CHECK-LABEL: func @attention_backward
func.func @attention_backward(%q: tensor<2x16x?x64xf16>, %k: tensor<2x4x?x64xf16>, %v: tensor<2x4x?x32xf16>, %do: tensor<2x16x?x32xf16>,
                              %p: tensor<2x16x?x?xf32>, %l: tensor<2x16x?xf32>, %slopes: tensor<16xf32>, %seed: i64)
    -> (tensor<2x16x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x32xf16>, tensor<16xf32>) {
  // CHECK: attn.attention_backward %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} scale(1.250000e-01) probabilities(%{{.*}} : tensor<2x16x?x?xf32>) lse_gradient(%{{.*}} : tensor<2x16x?xf32>) : tensor<2x16x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x32xf16>, tensor<2x16x?x32xf16> -> tensor<2x16x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x32xf16>{{$}}
  %0:3 = attn.attention_backward %q, %k, %v, %do scale(0.125) probabilities(%p : tensor<2x16x?x?xf32>) lse_gradient(%l : tensor<2x16x?xf32>)
    : tensor<2x16x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x32xf16>, tensor<2x16x?x32xf16>
    -> tensor<2x16x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x32xf16>
  // CHECK: attn.attention_backward {{.*}} statistics(%{{.*}}, %{{.*}} : tensor<2x16x?xf32>, tensor<2x16x?xf32>) captures(%{{.*}} : tensor<16xf32>) dropout(1.000000e-01, %{{.*}}, %{{.*}}) score {
  // CHECK: } mask {
  // CHECK: -> tensor<2x16x?x64xf32>, tensor<2x4x?x64xf16>, tensor<2x4x?x32xf16>, tensor<16xf32>
  %1:4 = attn.attention_backward %q, %k, %v, %do scale(0.125) statistics(%l, %l : tensor<2x16x?xf32>, tensor<2x16x?xf32>)
    captures(%slopes : tensor<16xf32>) dropout(0.1, %seed, %seed)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %ii: index, %j: index):
      %slope = tensor.extract %slopes[%h] : tensor<16xf32>
      %r = arith.mulf %s, %slope : f32
      attn.yield %r : f32
    }
    mask {
    ^bb0(%b: index, %h: index, %ii: index, %j: index):
      %keep = arith.cmpi sge, %ii, %j : index
      attn.yield %keep : i1
    }
    : tensor<2x16x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x32xf16>, tensor<2x16x?x32xf16>
    -> tensor<2x16x?x64xf32>, tensor<2x4x?x64xf16>, tensor<2x4x?x32xf16>, tensor<16xf32>
  return %0#0, %0#1, %0#2, %1#3 : tensor<2x16x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x32xf16>, tensor<16xf32>
}

// CHECK-LABEL: func @online_memref
func.func @online_memref(%q: memref<1x1x48x64xf16>, %k: memref<1x1x?x64xf16, strided<[?, ?, ?, 1], offset: ?>>, %v: memref<1x1x?x64xf16>,
                         %acc: memref<1x1x48x64xf32>, %max: memref<1x1x48xf32>, %sum: memref<1x1x48xf32>, %o: memref<1x1x48x64xf16>) {
  // CHECK: attn.online_attention scale(1.250000e-01) update(all) ins({{.*}}) outs({{.*}} : {{.*}}){{$}}
  attn.online_attention scale(0.125) update(all)
    ins(%q, %k, %v : memref<1x1x48x64xf16>, memref<1x1x?x64xf16, strided<[?, ?, ?, 1], offset: ?>>, memref<1x1x?x64xf16>)
    outs(%acc, %max, %sum : memref<1x1x48x64xf32>, memref<1x1x48xf32>, memref<1x1x48xf32>)
  // CHECK: attn.finalize ins({{.*}}) outs(%{{.*}} : memref<1x1x48x64xf16>){{$}}
  attn.finalize ins(%acc, %max, %sum : memref<1x1x48x64xf32>, memref<1x1x48xf32>, memref<1x1x48xf32>) outs(%o : memref<1x1x48x64xf16>)
  return
}

// A log-sum-exp of f64 beside sums of f32; a maximum of what a region yields.
// CHECK-LABEL: func @wide_lse
func.func @wide_lse(%x: tensor<1x1x8x16xf32>, %acc: memref<1x1x8x16xf32>, %row: memref<1x1x8xf32>, %lse: memref<1x1x8xf64>) -> tensor<1x1x8xf64> {
  // CHECK: attn.finalize natural ins({{.*}}) outs(%{{.*}}, %{{.*}} : memref<1x1x8x16xf32>, memref<1x1x8xf64>)
  attn.finalize natural ins(%acc, %row, %row : memref<1x1x8x16xf32>, memref<1x1x8xf32>, memref<1x1x8xf32>) outs(%acc, %lse : memref<1x1x8x16xf32>, memref<1x1x8xf64>)
  // CHECK: attn.attention {{.*}} -> tensor<1x1x8x16xf32>, tensor<1x1x8xf64>
  %o, %l = attn.attention %x, %x, %x scale(1.0) : tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32> -> tensor<1x1x8x16xf32>, tensor<1x1x8xf64>
  return %l : tensor<1x1x8xf64>
}

// What the log-sum-exp is rounded by, beside it.
// CHECK-LABEL: func @finalize_rest
func.func @finalize_rest(%acc: tensor<1x1x48x64xf32>, %row: tensor<1x1x48xf32>, %init: tensor<1xf32>, %when: i1, %o: tensor<1x1x48x64xf16>,
                         %macc: memref<1x1x8x16xf64>, %mrow: memref<1x1x8xf64>, %mlse: memref<1x1x8xf64>) -> (tensor<1x1x48xf32>, tensor<1x1x48xf32>) {
  // CHECK: attn.finalize ins({{.*}}) init(%{{.*}} : tensor<1xf32>) when(%{{.*}}) outs(%[[O:.*]], %[[L:.*]], %[[R:.*]] : tensor<1x1x48x64xf16>, tensor<1x1x48xf32>, tensor<1x1x48xf32>) -> tensor<1x1x48x64xf16>, tensor<1x1x48xf32>, tensor<1x1x48xf32>
  %0:3 = attn.finalize ins(%acc, %row, %row : tensor<1x1x48x64xf32>, tensor<1x1x48xf32>, tensor<1x1x48xf32>)
    init(%init : tensor<1xf32>) when(%when)
    outs(%o, %row, %row : tensor<1x1x48x64xf16>, tensor<1x1x48xf32>, tensor<1x1x48xf32>) -> tensor<1x1x48x64xf16>, tensor<1x1x48xf32>, tensor<1x1x48xf32>
  // CHECK: attn.finalize natural ins({{.*}}) outs(%{{.*}}, %{{.*}}, %{{.*}} : memref<1x1x8x16xf64>, memref<1x1x8xf64>, memref<1x1x8xf64>){{$}}
  attn.finalize natural ins(%macc, %mrow, %mrow : memref<1x1x8x16xf64>, memref<1x1x8xf64>, memref<1x1x8xf64>) outs(%macc, %mlse, %mlse : memref<1x1x8x16xf64>, memref<1x1x8xf64>, memref<1x1x8xf64>)
  return %0#1, %0#2 : tensor<1x1x48xf32>, tensor<1x1x48xf32>
}

// Grouped heads, and a captured tensor with a gradient.
// CHECK-LABEL: func @online_backward_heads
func.func @online_backward_heads(%q: tensor<2x4x?x64xf16>, %k: tensor<2x2x?x64xf16>, %l: tensor<2x4x?xf32>, %dq: tensor<2x4x?x64xf32>, %dk: tensor<2x2x?x64xf32>,
                                 %t: tensor<4xf16>, %dt: tensor<4xf64>) -> tensor<4xf64> {
  // CHECK: attn.online_backward scale(1.250000e-01) ins({{.*}}) outs({{.*}}) captures(%{{.*}} : tensor<4xf16>) sums(%{{.*}} : tensor<4xf64>) score {
  // CHECK: {schedule = #attn.schedule<tile = 64x128, order = linear, warps = 8, stages = 2, gradients = <parallel = [batch, head, key], captures = [over_queries]>>} ->
  %0:4 = attn.online_backward scale(0.125)
    ins(%q, %q, %k, %k, %l, %l : tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x2x?x64xf16>, tensor<2x2x?x64xf16>, tensor<2x4x?xf32>, tensor<2x4x?xf32>)
    outs(%dq, %dk, %dk : tensor<2x4x?x64xf32>, tensor<2x2x?x64xf32>, tensor<2x2x?x64xf32>)
    captures(%t : tensor<4xf16>) sums(%dt : tensor<4xf64>)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %x = tensor.extract %t[%h] : tensor<4xf16>
      %y = arith.extf %x : f16 to f32
      %r = arith.mulf %s, %y : f32
      attn.yield %r : f32
    } {schedule = #attn.schedule<tile = 64x128, order = linear, warps = 8, stages = 2, gradients = <parallel = [batch, head, key], captures = [over_queries]>>}
    -> tensor<2x4x?x64xf32>, tensor<2x2x?x64xf32>, tensor<2x2x?x64xf32>, tensor<4xf64>
  return %0#3 : tensor<4xf64>
}

// CHECK-LABEL: func @parallel_add_slice
func.func @parallel_add_slice(%s: tensor<1x?xf32>, %x: tensor<8x?xf32>, %n: index) -> tensor<8x?xf32> {
  %r = scf.forall (%i) in (8) shared_outs(%o = %x) -> (tensor<8x?xf32>) {
    scf.forall.in_parallel {
      // CHECK: attn.parallel_add_slice %{{.*}} into %{{.*}}[%{{.*}}, 0] [1, %{{.*}}] : tensor<1x?xf32> into tensor<8x?xf32>
      attn.parallel_add_slice %s into %o[%i, 0] [1, %n] : tensor<1x?xf32> into tensor<8x?xf32>
    }
  }
  return %r : tensor<8x?xf32>
}

// A host's work items.
// CHECK-LABEL: func @shares
// CHECK: gradients = <parallel = [batch, head, key], shares = 2>>
func.func @shares(%q: tensor<1x4x8x16xf16>, %k: tensor<1x1x8x16xf16>, %l: tensor<1x4x8xf32>) -> tensor<1x4x8x16xf16> {
  %0:3 = attn.attention_backward %q, %k, %k, %q scale(1.0) statistics(%l, %l : tensor<1x4x8xf32>, tensor<1x4x8xf32>)
    {schedule = #attn.schedule<tile = 64x128, order = linear, warps = 8, stages = 2, gradients = <parallel = [batch, head, key], shares = 2>>}
    : tensor<1x4x8x16xf16>, tensor<1x1x8x16xf16>, tensor<1x1x8x16xf16>, tensor<1x4x8x16xf16> -> tensor<1x4x8x16xf16>, tensor<1x1x8x16xf16>, tensor<1x1x8x16xf16>
  return %0#0 : tensor<1x4x8x16xf16>
}

// CHECK: schedule = #attn.schedule<tile = 96x192, order = linear, gradients = <parallel = [batch, head], items = 4>>
func.func @host_gradients(%q: tensor<1x1x8x16xf32>, %l: tensor<1x1x8xf32>) -> tensor<1x1x8x16xf32> {
  %0:3 = attn.attention_backward %q, %q, %q, %q scale(0.25)
      statistics(%l, %l : tensor<1x1x8xf32>, tensor<1x1x8xf32>)
      {schedule = #attn.schedule<tile = 96x192, order = linear, gradients = <parallel = [batch, head], items = 4>>}
      : tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>
        -> tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>
  return %0#0 : tensor<1x1x8x16xf32>
}

// CHECK-LABEL: func @online_backward
func.func @online_backward(%pq: tensor<1x1x64x96xf32>, %pdo: tensor<1x1x32x96xf32>, %q: tensor<1x1x?x64xf32>, %do: tensor<1x1x?x32xf16>,
                           %k: tensor<1x1x?x64xf16>, %v: tensor<1x1x?x32xf16>, %l: tensor<1x1x?xf32>, %dq: tensor<1x1x?x64xf32>,
                           %dk: tensor<1x1x?x64xf32>, %dv: tensor<1x1x?x32xf32>, %x: tensor<1x1x?x96xf32>, %i: index, %p: i1, %seed: i64)
    -> (tensor<1x1x?x64xf32>, tensor<1x1x?x96xf32>) {
  // CHECK: attn.online_backward scale(1.250000e-01) packed(%{{.*}}, %{{.*}} : tensor<1x1x64x96xf32>, tensor<1x1x32x96xf32>) ins({{.*}}) outs({{.*}} : tensor<1x1x?x64xf32>, tensor<1x1x?x64xf32>, tensor<1x1x?x32xf32>) -> tensor<1x1x?x64xf32>, tensor<1x1x?x64xf32>, tensor<1x1x?x32xf32>
  %0:3 = attn.online_backward scale(0.125) packed(%pq, %pdo : tensor<1x1x64x96xf32>, tensor<1x1x32x96xf32>)
    ins(%q, %do, %k, %v, %l, %l : tensor<1x1x?x64xf32>, tensor<1x1x?x32xf16>, tensor<1x1x?x64xf16>, tensor<1x1x?x32xf16>, tensor<1x1x?xf32>, tensor<1x1x?xf32>)
    outs(%dq, %dk, %dv : tensor<1x1x?x64xf32>, tensor<1x1x?x64xf32>, tensor<1x1x?x32xf32>)
    -> tensor<1x1x?x64xf32>, tensor<1x1x?x64xf32>, tensor<1x1x?x32xf32>
  // CHECK: attn.online_backward scale(1.250000e-01) dropout(1.000000e-01, %{{.*}}, %{{.*}}) {{.*}} scores(%{{.*}}, %{{.*}} : tensor<1x1x?x96xf32>, tensor<1x1x?x96xf32>) at[{{.*}}] whole[{{.*}}] partial(%{{.*}}) score {
  // CHECK: } derivative {
  // CHECK: } mask {
  %1:5 = attn.online_backward scale(0.125) dropout(0.1, %seed, %seed) packed(%pq, %pdo : tensor<1x1x64x96xf32>, tensor<1x1x32x96xf32>)
    ins(%q, %do, %k, %v, %l, %l : tensor<1x1x?x64xf32>, tensor<1x1x?x32xf16>, tensor<1x1x?x64xf16>, tensor<1x1x?x32xf16>, tensor<1x1x?xf32>, tensor<1x1x?xf32>)
    outs(%dq, %dk, %dv : tensor<1x1x?x64xf32>, tensor<1x1x?x64xf32>, tensor<1x1x?x32xf32>)
    scores(%x, %x : tensor<1x1x?x96xf32>, tensor<1x1x?x96xf32>) at [%i, %i, %i, %i] whole [%i, %i] partial(%p)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %ii: index, %j: index):
      %r = arith.mulf %s, %s : f32
      attn.yield %r : f32
    }
    derivative {
    ^bb0(%s: f32, %b: index, %h: index, %ii: index, %j: index):
      %r = arith.addf %s, %s : f32
      attn.yield %r : f32
    }
    mask {
    ^bb0(%b: index, %h: index, %ii: index, %j: index):
      %keep = arith.cmpi sge, %ii, %j : index
      attn.yield %keep : i1
    }
    -> tensor<1x1x?x64xf32>, tensor<1x1x?x64xf32>, tensor<1x1x?x32xf32>, tensor<1x1x?x96xf32>, tensor<1x1x?x96xf32>
  return %0#0, %1#3 : tensor<1x1x?x64xf32>, tensor<1x1x?x96xf32>
}

// CHECK-LABEL: func @merge
func.func @merge(%p: tensor<8x2x16x?x64xf32>, %l: tensor<8x2x16x?xf32>, %m: tensor<?x1x2x3x4xf16>, %n: tensor<?x1x2x3xf64>)
    -> (tensor<2x16x?x64xbf16>, tensor<2x16x?xf64>, tensor<1x2x3x4xf16>) {
  // CHECK: attn.merge %{{.*}}, %{{.*}} : tensor<8x2x16x?x64xf32>, tensor<8x2x16x?xf32> -> tensor<2x16x?x64xbf16>, tensor<2x16x?xf64>
  %o, %lse = attn.merge %p, %l : tensor<8x2x16x?x64xf32>, tensor<8x2x16x?xf32> -> tensor<2x16x?x64xbf16>, tensor<2x16x?xf64>
  // CHECK: attn.merge %{{.*}}, %{{.*}} : tensor<?x1x2x3x4xf16>, tensor<?x1x2x3xf64> -> tensor<1x2x3x4xf16>{{$}}
  %r = attn.merge %m, %n : tensor<?x1x2x3x4xf16>, tensor<?x1x2x3xf64> -> tensor<1x2x3x4xf16>
  return %o, %lse, %r : tensor<2x16x?x64xbf16>, tensor<2x16x?xf64>, tensor<1x2x3x4xf16>
}
