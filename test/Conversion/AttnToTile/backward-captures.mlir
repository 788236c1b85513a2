// RUN: fovea-opt %s --attn-select-schedule --attn-online-softmax --convert-elementwise-to-linalg \
// RUN:   --attn-tile --convert-attn-to-tile --canonicalize --cse --split-input-file | FileCheck %s

// Gradients of captured tensors of which queries or keys choose elements.

// A bias that batches share: they add to its gradient, which is the sum itself.
// What is zero, as where a key is masked, adds nothing.

// CHECK-LABEL: func @shared_bias
// CHECK:       %[[ZEROS:.*]] = linalg.fill {{.*}} -> tensor<4x?x?xf32>
// CHECK:       %[[R:.*]]:2 = tile.launch kernel "attention_backward"
// CHECK-SAME:    outs({{.*}}, %[[ZEROS]]
// CHECK:       ^bb0({{.*}}, %[[BATCH:.*]]: index, %{{[^:]*}}: memref<2x4x?x16xbf16{{.*}}, %[[SUM:[^:]*]]: memref<4x?x?xf32, {{[^)]*}}):
// CHECK:         scf.for
// What is read of it comes before the products, and not again.
// CHECK:           %[[READ:.*]] = tile.map {
// CHECK:             memref.load {{.*}} : memref<4x?x?xf32
// CHECK:           %[[S:.*]] = tile.mma
// CHECK:           tile.map ins(%[[S]], %[[READ]]
// CHECK-NOT:       memref.load
// CHECK:           tile.to_shared
// CHECK:           %[[DQ:.*]] = tile.mma
// CHECK:           tile.map ins(%{{.*}}, %{{.*}} : {{.*}}) columns(
// CHECK:           ^bb0(%[[P:.*]]: f32, %[[DP:.*]]: f32, %[[DELTA:.*]]: f32, %[[KEY:.*]]: index, %[[QUERY:.*]]: index):
// CHECK:             %[[DIFFERENCE:.*]] = arith.addf %[[DP]], %[[DELTA]]
// CHECK:             %[[G:.*]] = arith.mulf %[[P]], %[[DIFFERENCE]]
// CHECK:             %[[MATTERS:.*]] = arith.cmpf une, %[[G]], %{{.*}}
// CHECK:             scf.if %[[MATTERS]] {
// CHECK:               memref.atomic_rmw addf %[[G]], %[[SUM]][%{{.*}}, %{{.*}}, %{{.*}}] : (f32, memref<4x?x?xf32
// CHECK:           tile.store add %[[DQ]]
// CHECK:       return %[[R]]#1
func.func @shared_bias(%q: tensor<2x4x?x16xbf16>, %lse: tensor<2x4x?xf32>, %bias: tensor<4x?x?xf32>) -> tensor<4x?x?xf32> {
  %dq, %dk, %dv, %db = attn.attention_backward %q, %q, %q, %q scale(0.25)
      statistics(%lse, %lse : tensor<2x4x?xf32>, tensor<2x4x?xf32>) captures(%bias : tensor<4x?x?xf32>)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %bias[%h, %i, %j] : tensor<4x?x?xf32>
        %r = arith.addf %s, %x : f32
        attn.yield %r : f32
      }
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %keep = arith.cmpi sge, %i, %j : index
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 64x128, order = linear, warps = 8, stages = 2>}
      : tensor<2x4x?x16xbf16>, tensor<2x4x?x16xbf16>, tensor<2x4x?x16xbf16>, tensor<2x4x?x16xbf16> -> tensor<2x4x?x16xbf16>, tensor<2x4x?x16xbf16>, tensor<2x4x?x16xbf16>, tensor<4x?x?xf32>
  return %db : tensor<4x?x?xf32>
}

// -----

// Every score has its own element of this bias, and writes it, rounded, once:
// nothing is zeroed before or rounded behind. Fragments are read with the axes
// that the index has.

// CHECK-LABEL: func @own_bias
// CHECK:       %[[EMPTY:.*]] = tensor.empty() : tensor<256x4x128xbf16>
// CHECK:       %[[R:.*]]:2 = tile.launch
// CHECK-SAME:    %[[EMPTY]]
// CHECK:           tile.to_shared
// CHECK:           tile.map
// CHECK:             %[[G:.*]] = arith.truncf %{{.*}} : f32 to bf16
// CHECK-NEXT:        memref.store %[[G]], %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] : memref<256x4x128xbf16
// CHECK:       return %[[R]]#1
func.func @own_bias(%q: tensor<1x4x256x16xbf16>, %k: tensor<1x2x128x16xbf16>, %lse: tensor<1x4x256xf32>, %bias: tensor<256x4x128xbf16>) -> tensor<256x4x128xbf16> {
  %dq, %dk, %dv, %db = attn.attention_backward %q, %k, %k, %q scale(0.25)
      statistics(%lse, %lse : tensor<1x4x256xf32>, tensor<1x4x256xf32>) captures(%bias : tensor<256x4x128xbf16>)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %bias[%i, %h, %j] : tensor<256x4x128xbf16>
        %y = arith.extf %x : bf16 to f32
        %r = arith.addf %s, %y : f32
        attn.yield %r : f32
      } {schedule = #attn.schedule<tile = 64x128, order = linear, warps = 8, stages = 2>}
      : tensor<1x4x256x16xbf16>, tensor<1x2x128x16xbf16>, tensor<1x2x128x16xbf16>, tensor<1x4x256x16xbf16> -> tensor<1x4x256x16xbf16>, tensor<1x2x128x16xbf16>, tensor<1x2x128x16xbf16>, tensor<256x4x128xbf16>
  return %db : tensor<256x4x128xbf16>
}

// -----

// With unknown sizes, the tensor may have more elements than there are scores;
// those at edges of tiles may not exist.

// CHECK-LABEL: func @own_padded
// CHECK:       linalg.fill {{.*}} -> tensor<2x2x?x?xf32>
// CHECK:       tile.launch
// CHECK:         arith.cmpf une
// CHECK:         scf.if
// CHECK:           memref.store
// CHECK-LABEL: func @own_odd
// CHECK-NOT:   linalg.fill {{.*}} -> tensor<2x2x70x90xf32>
// CHECK:       tile.launch
// CHECK:         tile.to_shared
// CHECK:         arith.addf
// CHECK-NEXT:    %[[G:.*]] = arith.mulf
// CHECK:         %[[IN:.*]] = arith.andi
// CHECK-NOT:     cmpf
// CHECK:         scf.if %[[IN]]
// CHECK-NEXT:      memref.store %[[G]]
func.func @own_padded(%q: tensor<2x2x?x16xf16>, %lse: tensor<2x2x?xf32>, %bias: tensor<2x2x?x?xf32>) -> tensor<2x2x?x?xf32> {
  %dq, %dk, %dv, %db = attn.attention_backward %q, %q, %q, %q scale(0.25)
      statistics(%lse, %lse : tensor<2x2x?xf32>, tensor<2x2x?xf32>) captures(%bias : tensor<2x2x?x?xf32>)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %bias[%b, %h, %i, %j] : tensor<2x2x?x?xf32>
        %r = arith.addf %s, %x : f32
        attn.yield %r : f32
      } {schedule = #attn.schedule<tile = 64x128, order = linear, warps = 8, stages = 2>}
      : tensor<2x2x?x16xf16>, tensor<2x2x?x16xf16>, tensor<2x2x?x16xf16>, tensor<2x2x?x16xf16> -> tensor<2x2x?x16xf16>, tensor<2x2x?x16xf16>, tensor<2x2x?x16xf16>, tensor<2x2x?x?xf32>
  return %db : tensor<2x2x?x?xf32>
}
func.func @own_odd(%q: tensor<2x2x70x16xf16>, %k: tensor<2x2x90x16xf16>, %lse: tensor<2x2x70xf32>, %bias: tensor<2x2x70x90xf32>) -> tensor<2x2x70x90xf32> {
  %dq, %dk, %dv, %db = attn.attention_backward %q, %k, %k, %q scale(0.25)
      statistics(%lse, %lse : tensor<2x2x70xf32>, tensor<2x2x70xf32>) captures(%bias : tensor<2x2x70x90xf32>)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %bias[%b, %h, %i, %j] : tensor<2x2x70x90xf32>
        %r = arith.addf %s, %x : f32
        attn.yield %r : f32
      } {schedule = #attn.schedule<tile = 64x128, order = linear, warps = 8, stages = 2>}
      : tensor<2x2x70x16xf16>, tensor<2x2x90x16xf16>, tensor<2x2x90x16xf16>, tensor<2x2x70x16xf16> -> tensor<2x2x70x16xf16>, tensor<2x2x90x16xf16>, tensor<2x2x90x16xf16>, tensor<2x2x70x90xf32>
  return %db : tensor<2x2x70x90xf32>
}

// -----

// Long sums of exact operands are in f64.

// CHECK-LABEL: func @relative
// CHECK:       linalg.fill {{.*}} -> tensor<?xf64>
// CHECK:       %[[R:.*]]:2 = tile.launch
// CHECK:         %[[G:.*]] = arith.extf %{{.*}} : f32 to f64
// CHECK-NEXT:    memref.atomic_rmw addf %[[G]]
// CHECK:       arith.truncf
func.func @relative(%q: tensor<1x2x?x16xf32>, %lse: tensor<1x2x?xf32>, %table: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = tensor.dim %q, %c2 : tensor<1x2x?x16xf32>
  %last = arith.subi %n, %c1 : index
  %dq, %dk, %dv, %db = attn.attention_backward %q, %q, %q, %q scale(0.25)
      statistics(%lse, %lse : tensor<1x2x?xf32>, tensor<1x2x?xf32>) captures(%table : tensor<?xf32>)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %d = arith.subi %j, %i : index
        %at = arith.addi %d, %last : index
        %x = tensor.extract %table[%at] : tensor<?xf32>
        %r = arith.mulf %s, %x : f32
        attn.yield %r : f32
      } {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>}
      : tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32> -> tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<?xf32>
  return %db : tensor<?xf32>
}

// -----

// Of what keys choose, blocks have sums over queries; others are behind, in f64,
// and no atomic addition. Two reads of a tensor are two sums.

// CHECK-LABEL: func @keys
// CHECK:       %[[R:.*]]:3 = tile.launch
// CHECK:         scf.for
// CHECK:           tile.reduce add
// CHECK:         tile.store
// CHECK-NOT:   atomic_rmw
// CHECK:       %[[KEYS:.*]] = tensor.extract_slice %[[R]]#{{.*}} : tensor<2x4x128xf32> to tensor<2x4x90xf32>
// CHECK:       linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction"]{{.*}} ins(%[[KEYS]]
// CHECK:       linalg.generic
func.func @keys(%q: tensor<2x4x70x16xf16>, %k: tensor<2x2x90x16xf16>, %lse: tensor<2x4x70xf32>, %bias: tensor<4x90xf32>, %gain: tensor<2xf32>) -> (tensor<4x90xf32>, tensor<2xf32>) {
  %dq, %dk, %dv, %db, %dg = attn.attention_backward %q, %k, %k, %q scale(0.25)
      statistics(%lse, %lse : tensor<2x4x70xf32>, tensor<2x4x70xf32>) captures(%bias, %gain : tensor<4x90xf32>, tensor<2xf32>)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %bias[%h, %j] : tensor<4x90xf32>
        %y = tensor.extract %gain[%b] : tensor<2xf32>
        %t = arith.mulf %s, %y : f32
        %r = arith.addf %t, %x : f32
        attn.yield %r : f32
      } {schedule = #attn.schedule<tile = 64x128, order = linear, warps = 8, stages = 2>}
      : tensor<2x4x70x16xf16>, tensor<2x2x90x16xf16>, tensor<2x2x90x16xf16>, tensor<2x4x70x16xf16> -> tensor<2x4x70x16xf16>, tensor<2x2x90x16xf16>, tensor<2x2x90x16xf16>, tensor<4x90xf32>, tensor<2xf32>
  return %db, %dg : tensor<4x90xf32>, tensor<2xf32>
}

// -----

// Where the difference of query and key says where, a warp's diagonals are summed
// before they are added. What does not exist counts as 0; the place of a sum is
// that of its element, which may be beyond the last query. One tile has all keys.

// CHECK-LABEL: func @distances
// CHECK:       %[[ROWS:.*]] = tile.map {{.*}} columns(
// CHECK:         arith.select %{{.*}}, %{{.*}}, %{{.*}} : f32
// CHECK:       tile.sum_diagonals
// CHECK:       tile.map ins(
// CHECK-NEXT:  ^bb0(%[[SUM:.*]]: f32, %[[KEY:.*]]: index, %[[QUERY:.*]]: index):
// CHECK-NEXT:    %[[I:.*]] = arith.addi %{{.*}}, %[[QUERY]]
// CHECK-NEXT:    arith.cmpf une, %[[SUM]]
// CHECK-NEXT:    scf.if
// CHECK-NEXT:      %[[D:.*]] = arith.subi %[[KEY]], %[[I]]
// CHECK-NEXT:      %[[AT:.*]] = arith.addi %[[D]], %c69{{ }}
// CHECK-NEXT:      memref.atomic_rmw addf %[[SUM]], %{{.*}}[%{{.*}}, %[[AT]]]
func.func @distances(%q: tensor<1x2x70x16xbf16>, %lse: tensor<1x2x70xf32>, %table: tensor<2x200xf32>) -> tensor<2x200xf32> {
  %dq, %dk, %dv, %db = attn.attention_backward %q, %q, %q, %q scale(0.25)
      statistics(%lse, %lse : tensor<1x2x70xf32>, tensor<1x2x70xf32>) captures(%table : tensor<2x200xf32>)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %c69 = arith.constant 69 : index
        %d = arith.subi %j, %i : index
        %at = arith.addi %d, %c69 : index
        %x = tensor.extract %table[%h, %at] : tensor<2x200xf32>
        %r = arith.addf %s, %x : f32
        attn.yield %r : f32
      } {schedule = #attn.schedule<tile = 64x128, order = linear, warps = 8, stages = 2>}
      : tensor<1x2x70x16xbf16>, tensor<1x2x70x16xbf16>, tensor<1x2x70x16xbf16>, tensor<1x2x70x16xbf16> -> tensor<1x2x70x16xbf16>, tensor<1x2x70x16xbf16>, tensor<1x2x70x16xbf16>, tensor<2x200xf32>
  return %db : tensor<2x200xf32>
}

// -----

// A function of it is one, too, as buckets of distances are.

// CHECK-LABEL: func @buckets
// CHECK:       tile.sum_diagonals
// CHECK:       memref.atomic_rmw addf
func.func @buckets(%q: tensor<1x2x70x16xbf16>, %lse: tensor<1x2x70xf32>, %table: tensor<2x200xf32>) -> tensor<2x200xf32> {
  %dq, %dk, %dv, %db = attn.attention_backward %q, %q, %q, %q scale(0.25)
      statistics(%lse, %lse : tensor<1x2x70xf32>, tensor<1x2x70xf32>) captures(%table : tensor<2x200xf32>)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %c5 = arith.constant 5 : index
        %c199 = arith.constant 199 : index
        %far = arith.addi %j, %c199 : index
        %d = arith.subi %far, %i : index
        %k = arith.index_cast %d : index to i32
        %m = arith.index_cast %k : i32 to index
        %at = arith.shrui %m, %c5 : index
        %x = tensor.extract %table[%h, %at] : tensor<2x200xf32>
        %r = arith.addf %s, %x : f32
        attn.yield %r : f32
      } {schedule = #attn.schedule<tile = 64x128, order = linear, warps = 8, stages = 2>}
      : tensor<1x2x70x16xbf16>, tensor<1x2x70x16xbf16>, tensor<1x2x70x16xbf16>, tensor<1x2x70x16xbf16> -> tensor<1x2x70x16xbf16>, tensor<1x2x70x16xbf16>, tensor<1x2x70x16xbf16>, tensor<2x200xf32>
  return %db : tensor<2x200xf32>
}

// -----

// Sums of query and key are not.

// CHECK-LABEL: func @sums_of_places
// CHECK-NOT:   tile.sum_diagonals
// CHECK:       memref.atomic_rmw addf
// CHECK-NOT:   tile.sum_diagonals
// CHECK:       return
func.func @sums_of_places(%q: tensor<1x2x70x16xbf16>, %lse: tensor<1x2x70xf32>, %table: tensor<2x200xf32>) -> tensor<2x200xf32> {
  %dq, %dk, %dv, %db = attn.attention_backward %q, %q, %q, %q scale(0.25)
      statistics(%lse, %lse : tensor<1x2x70xf32>, tensor<1x2x70xf32>) captures(%table : tensor<2x200xf32>)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %at = arith.addi %i, %j : index
        %x = tensor.extract %table[%h, %at] : tensor<2x200xf32>
        %r = arith.addf %s, %x : f32
        attn.yield %r : f32
      } {schedule = #attn.schedule<tile = 64x128, order = linear, warps = 8, stages = 2>}
      : tensor<1x2x70x16xbf16>, tensor<1x2x70x16xbf16>, tensor<1x2x70x16xbf16>, tensor<1x2x70x16xbf16> -> tensor<1x2x70x16xbf16>, tensor<1x2x70x16xbf16>, tensor<1x2x70x16xbf16>, tensor<2x200xf32>
  return %db : tensor<2x200xf32>
}

// -----

// Nor does twice the key less the query, or what a function makes of both.

// CHECK-LABEL: func @multiples
// CHECK-NOT:   tile.sum_diagonals
// CHECK:       memref.atomic_rmw addf
// CHECK-NOT:   tile.sum_diagonals
// CHECK:       return
func.func @multiples(%q: tensor<1x2x70x16xbf16>, %lse: tensor<1x2x70xf32>, %table: tensor<2x200xf32>) -> tensor<2x200xf32> {
  %dq, %dk, %dv, %db = attn.attention_backward %q, %q, %q, %q scale(0.25)
      statistics(%lse, %lse : tensor<1x2x70xf32>, tensor<1x2x70xf32>) captures(%table : tensor<2x200xf32>)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %e = arith.addi %j, %j : index
        %d = arith.subi %e, %i : index
        %c1 = arith.constant 1 : index
        %at = arith.shrui %d, %c1 : index
        %x = tensor.extract %table[%h, %at] : tensor<2x200xf32>
        %r = arith.addf %s, %x : f32
        attn.yield %r : f32
      } {schedule = #attn.schedule<tile = 64x128, order = linear, warps = 8, stages = 2>}
      : tensor<1x2x70x16xbf16>, tensor<1x2x70x16xbf16>, tensor<1x2x70x16xbf16>, tensor<1x2x70x16xbf16> -> tensor<1x2x70x16xbf16>, tensor<1x2x70x16xbf16>, tensor<1x2x70x16xbf16>, tensor<2x200xf32>
  return %db : tensor<2x200xf32>
}

// -----

// What is narrower than f64 operands has a gradient of terms in f64: those of
// keys, and those of a table, are rounded once they are summed.

// CHECK-LABEL: func @narrow_reads
// CHECK:       %[[R:.*]]:3 = tile.launch
// CHECK-NOT:     arith.truncf
// CHECK:         memref.atomic_rmw addf %{{.*}} : (f64, memref<4x
// CHECK-NOT:     arith.truncf
// CHECK:       arith.truncf
// CHECK:       return
func.func @narrow_reads(%q: tensor<1x2x70x16xf64>, %lse: tensor<1x2x70xf64>, %ofKeys: tensor<2x70xf32>, %table: tensor<4xf32>) -> (tensor<2x70xf32>, tensor<4xf32>) {
  %dq, %dk, %dv, %db, %dt = attn.attention_backward %q, %q, %q, %q scale(0.25)
      statistics(%lse, %lse : tensor<1x2x70xf64>, tensor<1x2x70xf64>) captures(%ofKeys, %table : tensor<2x70xf32>, tensor<4xf32>)
      score {
      ^bb0(%s: f64, %b: index, %h: index, %i: index, %j: index):
        %c4 = arith.constant 4 : index
        %at = arith.remui %i, %c4 : index
        %x = tensor.extract %ofKeys[%h, %j] : tensor<2x70xf32>
        %y = tensor.extract %table[%at] : tensor<4xf32>
        %xw = arith.extf %x : f32 to f64
        %yw = arith.extf %y : f32 to f64
        %r = arith.addf %s, %xw : f64
        %t = arith.mulf %r, %yw : f64
        attn.yield %t : f64
      } {schedule = #attn.schedule<tile = 32x64, order = linear, warps = 4, stages = 1>}
      : tensor<1x2x70x16xf64>, tensor<1x2x70x16xf64>, tensor<1x2x70x16xf64>, tensor<1x2x70x16xf64> -> tensor<1x2x70x16xf64>, tensor<1x2x70x16xf64>, tensor<1x2x70x16xf64>, tensor<2x70xf32>, tensor<4xf32>
  return %db, %dt : tensor<2x70xf32>, tensor<4xf32>
}
