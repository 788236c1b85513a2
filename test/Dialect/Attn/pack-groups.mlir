// RUN: fovea-opt %s --attach-gpu-target=target=sm_90a --attn-pack-groups --split-input-file | FileCheck %s
// RUN: fovea-opt %s --attn-pack-groups --split-input-file | FileCheck %s --check-prefix=HOST
// RUN: fovea-opt %s --attach-gpu-target=target=sm_80 --attn-pack-groups --split-input-file | FileCheck %s --check-prefix=AMPERE
// RUN: fovea-opt %s --attn-pack-groups=rows=8 --split-input-file | FileCheck %s --check-prefix=ROWS

// The queries of a group of three heads in one; regions see the heads and queries
// of the graph.
// CHECK-LABEL: func @regions
// CHECK-SAME: %[[Q:[^:]*]]: tensor<?x6x5x64xf16>
// CHECK: %[[X:.*]] = tensor.expand_shape %[[Q]] {{\[\[}}0], [1, 2], [3], [4]] {{.*}} into tensor<?x2x3x5x64xf16>
// CHECK: %[[P:.*]] = tensor.collapse_shape %[[X]] {{\[\[}}0], [1], [2, 3], [4]] : tensor<?x2x3x5x64xf16> into tensor<?x2x15x64xf16>
// CHECK: %[[O:.*]], %[[L:.*]] = attn.attention %[[P]], %{{.*}}, %{{.*}} scale(1.250000e-01) dropout
// CHECK: score {
// CHECK: ^bb0(%[[S:.*]]: f32, %[[B:.*]]: index, %[[H:.*]]: index, %[[R:.*]]: index, %[[J:.*]]: index):
// CHECK: %[[FIVE:.*]] = arith.constant 5 : index
// CHECK: %[[M:.*]] = arith.divui %[[R]], %[[FIVE]]
// CHECK: arith.remui %[[R]], %[[FIVE]]
// CHECK: %[[F:.*]] = arith.muli %[[H]], %{{.*}} : index
// CHECK: %[[HEAD:.*]] = arith.addi %[[F]], %[[M]]
// CHECK: tensor.extract %{{.*}}[%[[HEAD]]] : tensor<6xf32>
// CHECK: mask {
// CHECK: ^bb0(%{{.*}}: index, %{{.*}}: index, %[[R2:.*]]: index, %[[J2:.*]]: index):
// CHECK: %[[I2:.*]] = arith.remui %[[R2]], %{{.*}}
// CHECK: arith.cmpi sge, %[[I2]], %[[J2]]
// CHECK: -> tensor<?x2x15x32xf16>, tensor<?x2x15xf32>
// CHECK: %[[XO:.*]] = tensor.expand_shape %[[O]] {{.*}} into tensor<?x2x3x5x32xf16>
// CHECK: tensor.collapse_shape %[[XO]] {{\[\[}}0], [1, 2], [3], [4]] : tensor<?x2x3x5x32xf16> into tensor<?x6x5x32xf16>
// CHECK: %[[XL:.*]] = tensor.expand_shape %[[L]] {{.*}} into tensor<?x2x3x5xf32>
// CHECK: tensor.collapse_shape %[[XL]] {{\[\[}}0], [1, 2], [3]] : tensor<?x2x3x5xf32> into tensor<?x6x5xf32>
// HOST-LABEL: func @regions
// HOST: attn.attention {{.*}} dropout
// HOST: -> tensor<?x2x15x32xf16>, tensor<?x2x15xf32>
// ROWS-LABEL: func @regions
// ROWS-NOT: expand_shape
// ROWS: attn.attention
func.func @regions(%q: tensor<?x6x5x64xf16>, %k: tensor<?x2x?x64xf16>, %v: tensor<?x2x?x32xf16>, %slopes: tensor<6xf32>, %seed: i64)
    -> (tensor<?x6x5x32xf16>, tensor<?x6x5xf32>) {
  %o, %l = attn.attention %q, %k, %v scale(0.125) dropout(0.1, %seed, %seed)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %x = tensor.extract %slopes[%h] : tensor<6xf32>
      %r = arith.mulf %s, %x : f32
      attn.yield %r : f32
    }
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %keep = arith.cmpi sge, %i, %j : index
      attn.yield %keep : i1
    } : tensor<?x6x5x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x32xf16> -> tensor<?x6x5x32xf16>, tensor<?x6x5xf32>
  return %o, %l : tensor<?x6x5x32xf16>, tensor<?x6x5xf32>
}

// -----

// One query of any number of heads: all in one, a view of operands of any strides,
// which dimensions that are joined would not be.
// CHECK-LABEL: func @decode
// CHECK-SAME: %[[Q:[^:]*]]: tensor<2x77x1x64xf16>
// CHECK-NEXT: %[[HEADS:.*]] = tensor.extract_slice %[[Q]][0, 0, 0, 0] [2, 77, 1, 64] [1, 1, 1, 1] : tensor<2x77x1x64xf16> to tensor<2x77x64xf16>
// CHECK-NEXT: %[[P:.*]] = tensor.expand_shape %[[HEADS]] {{\[\[}}0], [1, 2], [3]] output_shape [2, 1, 77, 64]
// CHECK: attn.attention %[[P]], {{.*}} : tensor<2x1x77x64xf16>, {{.*}} -> tensor<2x1x77x64xf16>
// ROWS-LABEL: func @decode
// ROWS: attn.attention {{.*}} : tensor<2x1x77x64xf16>,
func.func @decode(%q: tensor<2x77x1x64xf16>, %k: tensor<2x1x?x64xf16>) -> tensor<2x77x1x64xf16> {
  %o = attn.attention %q, %k, %k scale(0.125) : tensor<2x77x1x64xf16>, tensor<2x1x?x64xf16>, tensor<2x1x?x64xf16> -> tensor<2x77x1x64xf16>
  return %o : tensor<2x77x1x64xf16>
}

// -----

// One sequence, whose dimension goes first: which of two dimensions of size one a
// slice drops would be lost.
// CHECK-LABEL: func @one_sequence
// CHECK-SAME: %[[Q:[^:]*]]: tensor<1x8x1x64xf16>
// CHECK: %[[S:.*]] = tensor.collapse_shape %[[Q]] {{\[\[}}0, 1], [2], [3]] : tensor<1x8x1x64xf16> into tensor<8x1x64xf16>
// CHECK: %[[HEADS:.*]] = tensor.extract_slice %[[S]][0, 0, 0] [8, 1, 64] [1, 1, 1] : tensor<8x1x64xf16> to tensor<8x64xf16>
// CHECK: %[[P:.*]] = tensor.expand_shape %[[HEADS]] {{\[\[}}0, 1, 2], [3]] output_shape [1, 2, 4, 64]
// CHECK: %[[LSLICE:.*]] = tensor.extract_slice %{{.*}}[0, 0] [8, 1] [1, 1] : tensor<8x1xf32> to tensor<8xf32>
// CHECK: %[[L:.*]] = tensor.expand_shape %[[LSLICE]] {{\[\[}}0, 1, 2]] output_shape [1, 2, 4]
// CHECK: attn.attention %[[P]], %{{.*}}, %{{.*}} scale(1.250000e-01) init(%{{.*}}, %[[L]] :
func.func @one_sequence(%q: tensor<1x8x1x64xf16>, %k: tensor<1x2x?x64xf16>, %s: tensor<1x8x1x64xf16>, %l: tensor<1x8x1xf32>) -> tensor<1x8x1x64xf16> {
  %o = attn.attention %q, %k, %k scale(0.125) init(%s, %l : tensor<1x8x1x64xf16>, tensor<1x8x1xf32>) : tensor<1x8x1x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16> -> tensor<1x8x1x64xf16>
  return %o : tensor<1x8x1x64xf16>
}

// -----

// Features of size one are left where they are.
// CHECK-LABEL: func @one_feature
// CHECK-NOT: extract_slice
// CHECK: tensor.collapse_shape {{.*}} : tensor<1x2x4x1x1xf16> into tensor<1x2x4x1xf16>
// CHECK: attn.attention
func.func @one_feature(%q: tensor<1x8x1x1xf16>, %k: tensor<1x2x?x1xf16>) -> tensor<1x8x1x1xf16> {
  %o = attn.attention %q, %k, %k scale(1.0) : tensor<1x8x1x1xf16>, tensor<1x2x?x1xf16>, tensor<1x2x?x1xf16> -> tensor<1x8x1x1xf16>
  return %o : tensor<1x8x1x1xf16>
}

// -----

// Queries that fill most of a tile.
// CHECK-LABEL: func @many
// CHECK-NOT: expand_shape
// CHECK: return
func.func @many(%q: tensor<2x8x100x64xf16>, %k: tensor<2x2x?x64xf16>) -> tensor<2x8x100x64xf16> {
  %o = attn.attention %q, %k, %k scale(0.125) : tensor<2x8x100x64xf16>, tensor<2x2x?x64xf16>, tensor<2x2x?x64xf16> -> tensor<2x8x100x64xf16>
  return %o : tensor<2x8x100x64xf16>
}

// -----

// Queries that fill little of one by heads, and more of two by queries, where TMA has boxes.
// CHECK-LABEL: func @some
// CHECK: linalg.transpose {{.*}} permutation = [0, 1, 3, 2, 4]
// CHECK: attn.attention {{.*}} : tensor<2x2x132x64xf16>, tensor<2x2x?x64xf16>, tensor<2x2x?x64xf16> -> tensor<2x2x132x64xf16>
// AMPERE-LABEL: func @some
// AMPERE-NOT: expand_shape
// AMPERE: return
func.func @some(%q: tensor<2x8x33x64xf16>, %k: tensor<2x2x?x64xf16>) -> tensor<2x8x33x64xf16> {
  %o = attn.attention %q, %k, %k scale(0.125) : tensor<2x8x33x64xf16>, tensor<2x2x?x64xf16>, tensor<2x2x?x64xf16> -> tensor<2x8x33x64xf16>
  return %o : tensor<2x8x33x64xf16>
}

// -----

// A few queries that are no power of two, whose results get the heads of a query as
// neighbours: these are neighbouring rows, too, where TMA has boxes.
// CHECK-LABEL: func @by_queries
// CHECK-SAME: %[[Q:[^:]*]]: tensor<?x8x3x64xf16>
// CHECK: %[[X:.*]] = tensor.expand_shape %[[Q]] {{\[\[}}0], [1, 2], [3], [4]] {{.*}} into tensor<?x2x4x3x64xf16>
// CHECK: %[[T:.*]] = linalg.transpose ins(%[[X]] : {{.*}} permutation = [0, 1, 3, 2, 4]
// CHECK: %[[P:.*]] = tensor.collapse_shape %[[T]] {{\[\[}}0], [1], [2, 3], [4]] : tensor<?x2x3x4x64xf16> into tensor<?x2x12x64xf16>
// CHECK: %[[O:.*]] = attn.attention %[[P]],
// CHECK: ^bb0(%{{.*}}: index, %{{.*}}: index, %[[R:.*]]: index, %[[J:.*]]: index):
// CHECK: %[[I:.*]] = arith.divui %[[R]], %c4
// CHECK: arith.cmpi sge, %[[I]], %[[J]]
// CHECK: %[[XO:.*]] = tensor.expand_shape %[[O]] {{\[\[}}0], [1], [2, 3], [4]] {{.*}} into tensor<?x2x3x4x64xf16>
// CHECK: %[[TO:.*]] = linalg.transpose ins(%[[XO]] : {{.*}} permutation = [0, 1, 3, 2, 4]
// CHECK: tensor.collapse_shape %[[TO]] {{\[\[}}0], [1, 2], [3], [4]] : tensor<?x2x4x3x64xf16> into tensor<?x8x3x64xf16>
// AMPERE-LABEL: func @by_queries
// AMPERE-NOT: linalg.transpose {{.*}} permutation = [0, 1, 3, 2, 4]
// AMPERE: attn.attention {{.*}} : tensor<?x2x12x64xf16>
func.func @by_queries(%q: tensor<?x8x3x64xf16>, %k: tensor<?x2x?x64xf16>, %room: tensor<?x3x8x64xf16>) -> tensor<?x3x8x64xf16> {
  %o = attn.attention %q, %k, %k scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %keep = arith.cmpi sge, %i, %j : index
      attn.yield %keep : i1
    } : tensor<?x8x3x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16> -> tensor<?x8x3x64xf16>
  %t = linalg.transpose ins(%o : tensor<?x8x3x64xf16>) outs(%room : tensor<?x3x8x64xf16>) permutation = [0, 2, 1, 3]
  return %t : tensor<?x3x8x64xf16>
}

// -----

// The queries of a head stay neighbours where they are a power of two; where heads are not;
// where the rows are more than a tile's; and where results are read otherwise, as another
// tensor, with log-sum-exps, or by two.
// CHECK-LABEL: func @by_heads
// CHECK-NOT: linalg.transpose {{.*}} permutation = [0, 1, 3, 2, 4]
// CHECK: return
!four = tensor<?x8x4x64xf16>
!three = tensor<?x8x3x64xf16>
!six = tensor<?x6x3x64xf16>
!seventeen = tensor<?x8x17x64xf16>
!keys = tensor<?x2x?x64xf16>
func.func @by_heads(%four: !four, %three: !three, %six: !six, %seventeen: !seventeen, %k: !keys, %t4: tensor<?x4x8x64xf16>,
    %t3: tensor<?x3x8x64xf16>, %t6: tensor<?x3x6x64xf16>, %t17: tensor<?x17x8x64xf16>, %b3: tensor<?x8x64x3xf16>)
    -> (tensor<?x4x8x64xf16>, tensor<?x3x6x64xf16>, tensor<?x17x8x64xf16>, tensor<?x8x64x3xf16>, tensor<?x3x8x64xf16>,
        tensor<?x8x3xf32>, tensor<?x3x8x64xf16>, !three, !three) {
  %o4 = attn.attention %four, %k, %k scale(0.125) : !four, !keys, !keys -> !four
  %r4 = linalg.transpose ins(%o4 : !four) outs(%t4 : tensor<?x4x8x64xf16>) permutation = [0, 2, 1, 3]
  %o6 = attn.attention %six, %k, %k scale(0.125) : !six, !keys, !keys -> !six
  %r6 = linalg.transpose ins(%o6 : !six) outs(%t6 : tensor<?x3x6x64xf16>) permutation = [0, 2, 1, 3]
  %o17 = attn.attention %seventeen, %k, %k scale(0.125) : !seventeen, !keys, !keys -> !seventeen
  %r17 = linalg.transpose ins(%o17 : !seventeen) outs(%t17 : tensor<?x17x8x64xf16>) permutation = [0, 2, 1, 3]
  %ob = attn.attention %three, %k, %k scale(0.125) : !three, !keys, !keys -> !three
  %rb = linalg.transpose ins(%ob : !three) outs(%b3 : tensor<?x8x64x3xf16>) permutation = [0, 1, 3, 2]
  %ol, %l = attn.attention %three, %k, %k scale(0.125) : !three, !keys, !keys -> !three, tensor<?x8x3xf32>
  %rl = linalg.transpose ins(%ol : !three) outs(%t3 : tensor<?x3x8x64xf16>) permutation = [0, 2, 1, 3]
  %ot = attn.attention %three, %k, %k scale(0.25) : !three, !keys, !keys -> !three
  %rt = linalg.transpose ins(%ot : !three) outs(%t3 : tensor<?x3x8x64xf16>) permutation = [0, 2, 1, 3]
  %or = attn.attention %three, %k, %k scale(0.5) : !three, !keys, !keys -> !three
  return %r4, %r6, %r17, %rb, %rl, %l, %rt, %ot, %or : tensor<?x4x8x64xf16>, tensor<?x3x6x64xf16>, tensor<?x17x8x64xf16>,
    tensor<?x8x64x3xf16>, tensor<?x3x8x64xf16>, tensor<?x8x3xf32>, tensor<?x3x8x64xf16>, !three, !three
}

// -----

// On a host, those that fill more than half of a vector.
// CHECK-LABEL: func @vector
// CHECK: attn.attention {{.*}} : tensor<2x2x36x64xf16>,
// HOST-LABEL: func @vector
// HOST-NOT: expand_shape
// HOST: return
func.func @vector(%q: tensor<2x8x9x64xf16>, %k: tensor<2x2x?x64xf16>) -> tensor<2x8x9x64xf16> {
  %o = attn.attention %q, %k, %k scale(0.125) : tensor<2x8x9x64xf16>, tensor<2x2x?x64xf16>, tensor<2x2x?x64xf16> -> tensor<2x8x9x64xf16>
  return %o : tensor<2x8x9x64xf16>
}

// -----

// Heads that share nothing; sizes that are not known; a schedule, which is for
// the queries as they are.
// CHECK-LABEL: func @others
// CHECK-NOT: expand_shape
// CHECK: return
func.func @others(%q: tensor<2x8x1x64xf16>, %k: tensor<2x8x?x64xf16>, %p: tensor<2x8x?x64xf16>, %g: tensor<2x2x?x64xf16>)
    -> (tensor<2x8x1x64xf16>, tensor<2x8x?x64xf16>, tensor<2x8x1x64xf16>) {
  %o = attn.attention %q, %k, %k scale(0.125) : tensor<2x8x1x64xf16>, tensor<2x8x?x64xf16>, tensor<2x8x?x64xf16> -> tensor<2x8x1x64xf16>
  %u = attn.attention %p, %g, %g scale(0.125) : tensor<2x8x?x64xf16>, tensor<2x2x?x64xf16>, tensor<2x2x?x64xf16> -> tensor<2x8x?x64xf16>
  %s = attn.attention %q, %g, %g scale(0.125) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>}
    : tensor<2x8x1x64xf16>, tensor<2x2x?x64xf16>, tensor<2x2x?x64xf16> -> tensor<2x8x1x64xf16>
  return %o, %u, %s : tensor<2x8x1x64xf16>, tensor<2x8x?x64xf16>, tensor<2x8x1x64xf16>
}

// -----

// Any number of queries of sequences that lie packed: the heads of one query are neighbours,
// so that a sequence of few queries fills the first rows of a tile, and no head has tiles
// of its own. Regions see the heads and queries of the graph.
// CHECK-LABEL: func @sequences
// CHECK: %[[COPIED:.*]] = scf.forall
// CHECK: %[[ALL:.*]] = tensor.dim %[[COPIED]], %c2
// CHECK: %[[X:.*]] = tensor.expand_shape %[[COPIED]] {{\[\[}}0], [1, 2], [3], [4]] {{.*}} : tensor<?x8x?x64xbf16> into tensor<?x2x4x?x64xbf16>
// CHECK: %[[T:.*]] = linalg.transpose ins(%[[X]] : {{.*}} permutation = [0, 1, 3, 2, 4]
// CHECK: %[[P:.*]] = tensor.collapse_shape %[[T]] {{\[\[}}0], [1], [2, 3], [4]] : tensor<?x2x?x4x64xbf16> into tensor<?x2x?x64xbf16>
// CHECK: %[[O:.*]], %[[L:.*]] = attn.attention %[[P]],
// CHECK: ^bb0(%{{.*}}: index, %[[H:.*]]: index, %[[R:.*]]: index, %[[J:.*]]: index):
// CHECK-DAG: %[[I:.*]] = arith.divui %[[R]], %[[FOUR:.*]] : index
// CHECK-DAG: %[[M:.*]] = arith.remui %[[R]], %[[FOUR]] : index
// CHECK-DAG: %[[F:.*]] = arith.muli %[[H]], %{{.*}} : index
// CHECK: %[[HEAD:.*]] = arith.addi %[[F]], %[[M]]
// CHECK: arith.addi %[[I]], %[[HEAD]]
// CHECK: -> tensor<?x2x?x64xbf16>, tensor<?x2x?xf32>
// CHECK: %[[XO:.*]] = tensor.expand_shape %[[O]] {{\[\[}}0], [1], [2, 3], [4]] output_shape [%{{.*}}, 2, %{{.*}}, 4, 64]
// CHECK: %[[TO:.*]] = linalg.transpose ins(%[[XO]] : {{.*}} permutation = [0, 1, 3, 2, 4]
// CHECK: %[[OUT:.*]] = tensor.collapse_shape %[[TO]] {{\[\[}}0], [1, 2], [3], [4]] : tensor<?x2x4x?x64xbf16> into tensor<?x8x?x64xbf16>
// CHECK: %[[XL:.*]] = tensor.expand_shape %[[L]] {{\[\[}}0], [1], [2, 3]] output_shape [%{{.*}}, 2, %{{.*}}, 4]
// CHECK: %[[TL:.*]] = linalg.transpose ins(%[[XL]] : {{.*}} permutation = [0, 1, 3, 2]
// CHECK: %[[LOUT:.*]] = tensor.collapse_shape %[[TL]] {{\[\[}}0], [1, 2], [3]] : tensor<?x2x4x?xf32> into tensor<?x8x?xf32>
// CHECK: scf.forall
// CHECK-DAG: tensor.extract_slice %[[OUT]]
// CHECK-DAG: tensor.extract_slice %[[LOUT]]
// HOST-LABEL: func @sequences
// HOST-NOT: linalg.transpose
// AMPERE-LABEL: func @sequences
// AMPERE-NOT: linalg.transpose
!all = tensor<?x8x?x64xbf16>
!keys = tensor<?x2x?x64xbf16>
!lse = tensor<?x8x?xf32>
func.func @sequences(%query: !all, %key: !keys, %starts: tensor<?xi32>, %rows: index) -> (!all, !lse) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %batch = tensor.dim %key, %c0 : !keys
  %tokens = tensor.dim %query, %c2 : !all
  %queries_room = tensor.empty(%batch, %rows) : !all
  %q = scf.forall (%b) in (%batch) shared_outs(%out = %queries_room) -> (!all) {
    %n = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %n : i32 to index
    %some = tensor.extract_slice %query[0, 0, %start, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : !all to tensor<1x8x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[%b, 0, 0, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : tensor<1x8x?x64xbf16> into !all
    }
  }
  %o, %l = attn.attention %q, %key, %key scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %n = tensor.extract %starts[%b] : tensor<?xi32>
      %first = arith.index_cast %n : i32 to index
      %sum = arith.addi %i, %h : index
      %last = arith.addi %sum, %first : index
      %keep = arith.cmpi sge, %last, %j : index
      attn.yield %keep : i1
    } : !all, !keys, !keys -> !all, !lse
  %room = tensor.empty(%c1, %tokens) : !all
  %lse_room = tensor.empty(%c1, %tokens) : !lse
  %packed:2 = scf.forall (%b) in (%batch) shared_outs(%out = %room, %lse_out = %lse_room) -> (!all, !lse) {
    %n = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %n : i32 to index
    %some = tensor.extract_slice %o[%b, 0, 0, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : !all to tensor<1x8x?x64xbf16>
    %lse_some = tensor.extract_slice %l[%b, 0, 0] [1, 8, %rows] [1, 1, 1] : !lse to tensor<1x8x?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[0, 0, %start, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : tensor<1x8x?x64xbf16> into !all
      tensor.parallel_insert_slice %lse_some into %lse_out[0, 0, %start] [1, 8, %rows] [1, 1, 1] : tensor<1x8x?xf32> into !lse
    }
  }
  return %packed#0, %packed#1 : !all, !lse
}

// -----

// Groups of six heads, which do not divide the rows of a tile, have shares of two.
// CHECK-LABEL: func @six
// CHECK: tensor.expand_shape {{.*}} into tensor<?x6x2x?x64xbf16>
// CHECK: attn.attention {{.*}}, %[[K:.*]], %[[K]]
// CHECK: ^bb0(%{{.*}}: index, %[[H:.*]]: index, %[[R:.*]]: index, %{{.*}}: index):
// CHECK: %[[I:.*]] = arith.divui %[[R]], %c2
// CHECK: %[[M:.*]] = arith.remui %[[R]], %c2
// CHECK: %[[F:.*]] = arith.muli %[[H]], %c2
// CHECK: %[[HEAD:.*]] = arith.addi %[[F]], %[[M]]
// CHECK: arith.addi %[[I]], %[[HEAD]]
// CHECK: : tensor<?x6x?x64xbf16>, tensor<?x2x?x64xbf16>, tensor<?x2x?x64xbf16> -> tensor<?x6x?x64xbf16>, tensor<?x6x?xf32>
!all = tensor<?x12x?x64xbf16>
!keys = tensor<?x2x?x64xbf16>
!lse = tensor<?x12x?xf32>
func.func @six(%query: !all, %key: !keys, %starts: tensor<?xi32>, %rows: index) -> (!all, !lse) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %batch = tensor.dim %key, %c0 : !keys
  %tokens = tensor.dim %query, %c2 : !all
  %queries_room = tensor.empty(%batch, %rows) : !all
  %q = scf.forall (%b) in (%batch) shared_outs(%out = %queries_room) -> (!all) {
    %n = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %n : i32 to index
    %some = tensor.extract_slice %query[0, 0, %start, 0] [1, 12, %rows, 64] [1, 1, 1, 1] : !all to tensor<1x12x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[%b, 0, 0, 0] [1, 12, %rows, 64] [1, 1, 1, 1] : tensor<1x12x?x64xbf16> into !all
    }
  }
  %o, %l = attn.attention %q, %key, %key scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %n = tensor.extract %starts[%b] : tensor<?xi32>
      %first = arith.index_cast %n : i32 to index
      %sum = arith.addi %i, %h : index
      %last = arith.addi %sum, %first : index
      %keep = arith.cmpi sge, %last, %j : index
      attn.yield %keep : i1
    } : !all, !keys, !keys -> !all, !lse
  %room = tensor.empty(%c1, %tokens) : !all
  %lse_room = tensor.empty(%c1, %tokens) : !lse
  %packed:2 = scf.forall (%b) in (%batch) shared_outs(%out = %room, %lse_out = %lse_room) -> (!all, !lse) {
    %n = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %n : i32 to index
    %some = tensor.extract_slice %o[%b, 0, 0, 0] [1, 12, %rows, 64] [1, 1, 1, 1] : !all to tensor<1x12x?x64xbf16>
    %lse_some = tensor.extract_slice %l[%b, 0, 0] [1, 12, %rows] [1, 1, 1] : !lse to tensor<1x12x?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[0, 0, %start, 0] [1, 12, %rows, 64] [1, 1, 1, 1] : tensor<1x12x?x64xbf16> into !all
      tensor.parallel_insert_slice %lse_some into %lse_out[0, 0, %start] [1, 12, %rows] [1, 1, 1] : tensor<1x12x?xf32> into !lse
    }
  }
  return %packed#0, %packed#1 : !all, !lse
}

// -----

// Those of seven, nearly as many as a power of two, are rows of a query with that many.
// CHECK-LABEL: func @seven
// CHECK: tensor.insert_slice {{.*}} : tensor<?x2x7x?x64xbf16> into tensor<?x2x8x?x64xbf16>
// CHECK: attn.attention {{.*}}, %[[K:.*]], %[[K]]
// CHECK: ^bb0(%{{.*}}: index, %[[H:.*]]: index, %[[R:.*]]: index, %{{.*}}: index):
// CHECK: %[[I:.*]] = arith.divui %[[R]], %c8
// CHECK: %[[M:.*]] = arith.remui %[[R]], %c8
// CHECK: %[[MEMBER:.*]] = arith.minsi %[[M]], %c6
// CHECK: %[[F:.*]] = arith.muli %[[H]], %c7
// CHECK: %[[HEAD:.*]] = arith.addi %[[F]], %[[MEMBER]]
// CHECK: arith.addi %[[I]], %[[HEAD]]
// CHECK: : tensor<?x2x?x64xbf16>, tensor<?x2x?x64xbf16>, tensor<?x2x?x64xbf16> -> tensor<?x2x?x64xbf16>, tensor<?x2x?xf32>
// CHECK: tensor.extract_slice {{.*}} : tensor<?x2x8x?x64xbf16> to tensor<?x2x7x?x64xbf16>
!all = tensor<?x14x?x64xbf16>
!keys = tensor<?x2x?x64xbf16>
!lse = tensor<?x14x?xf32>
func.func @seven(%query: !all, %key: !keys, %starts: tensor<?xi32>, %rows: index) -> (!all, !lse) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %batch = tensor.dim %key, %c0 : !keys
  %tokens = tensor.dim %query, %c2 : !all
  %queries_room = tensor.empty(%batch, %rows) : !all
  %q = scf.forall (%b) in (%batch) shared_outs(%out = %queries_room) -> (!all) {
    %n = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %n : i32 to index
    %some = tensor.extract_slice %query[0, 0, %start, 0] [1, 14, %rows, 64] [1, 1, 1, 1] : !all to tensor<1x14x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[%b, 0, 0, 0] [1, 14, %rows, 64] [1, 1, 1, 1] : tensor<1x14x?x64xbf16> into !all
    }
  }
  %o, %l = attn.attention %q, %key, %key scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %n = tensor.extract %starts[%b] : tensor<?xi32>
      %first = arith.index_cast %n : i32 to index
      %sum = arith.addi %i, %h : index
      %last = arith.addi %sum, %first : index
      %keep = arith.cmpi sge, %last, %j : index
      attn.yield %keep : i1
    } : !all, !keys, !keys -> !all, !lse
  %room = tensor.empty(%c1, %tokens) : !all
  %lse_room = tensor.empty(%c1, %tokens) : !lse
  %packed:2 = scf.forall (%b) in (%batch) shared_outs(%out = %room, %lse_out = %lse_room) -> (!all, !lse) {
    %n = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %n : i32 to index
    %some = tensor.extract_slice %o[%b, 0, 0, 0] [1, 14, %rows, 64] [1, 1, 1, 1] : !all to tensor<1x14x?x64xbf16>
    %lse_some = tensor.extract_slice %l[%b, 0, 0] [1, 14, %rows] [1, 1, 1] : !lse to tensor<1x14x?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[0, 0, %start, 0] [1, 14, %rows, 64] [1, 1, 1, 1] : tensor<1x14x?x64xbf16> into !all
      tensor.parallel_insert_slice %lse_some into %lse_out[0, 0, %start] [1, 14, %rows] [1, 1, 1] : tensor<1x14x?xf32> into !lse
    }
  }
  return %packed#0, %packed#1 : !all, !lse
}

// -----

// A group of 32, which would leave a tile few queries, has shares of 16.
// CHECK-LABEL: func @many_heads
// CHECK: attn.attention
// CHECK: : tensor<?x4x?x64xbf16>, tensor<?x2x?x64xbf16>, tensor<?x2x?x64xbf16> -> tensor<?x4x?x64xbf16>
!all = tensor<?x64x?x64xbf16>
!keys = tensor<?x2x?x64xbf16>
!lse = tensor<?x64x?xf32>
func.func @many_heads(%query: !all, %key: !keys, %starts: tensor<?xi32>, %rows: index) -> (!all, !lse) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %batch = tensor.dim %key, %c0 : !keys
  %tokens = tensor.dim %query, %c2 : !all
  %queries_room = tensor.empty(%batch, %rows) : !all
  %q = scf.forall (%b) in (%batch) shared_outs(%out = %queries_room) -> (!all) {
    %n = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %n : i32 to index
    %some = tensor.extract_slice %query[0, 0, %start, 0] [1, 64, %rows, 64] [1, 1, 1, 1] : !all to tensor<1x64x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[%b, 0, 0, 0] [1, 64, %rows, 64] [1, 1, 1, 1] : tensor<1x64x?x64xbf16> into !all
    }
  }
  %o, %l = attn.attention %q, %key, %key scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %n = tensor.extract %starts[%b] : tensor<?xi32>
      %first = arith.index_cast %n : i32 to index
      %sum = arith.addi %i, %h : index
      %last = arith.addi %sum, %first : index
      %keep = arith.cmpi sge, %last, %j : index
      attn.yield %keep : i1
    } : !all, !keys, !keys -> !all, !lse
  %room = tensor.empty(%c1, %tokens) : !all
  %lse_room = tensor.empty(%c1, %tokens) : !lse
  %packed:2 = scf.forall (%b) in (%batch) shared_outs(%out = %room, %lse_out = %lse_room) -> (!all, !lse) {
    %n = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %n : i32 to index
    %some = tensor.extract_slice %o[%b, 0, 0, 0] [1, 64, %rows, 64] [1, 1, 1, 1] : !all to tensor<1x64x?x64xbf16>
    %lse_some = tensor.extract_slice %l[%b, 0, 0] [1, 64, %rows] [1, 1, 1] : !lse to tensor<1x64x?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[0, 0, %start, 0] [1, 64, %rows, 64] [1, 1, 1, 1] : tensor<1x64x?x64xbf16> into !all
      tensor.parallel_insert_slice %lse_some into %lse_out[0, 0, %start] [1, 64, %rows] [1, 1, 1] : tensor<1x64x?xf32> into !lse
    }
  }
  return %packed#0, %packed#1 : !all, !lse
}

// -----

// Dropout numbers rows as the graph has them.
// CHECK-LABEL: func @dropped
// CHECK-NOT: linalg.transpose
!all = tensor<?x8x?x64xbf16>
!keys = tensor<?x2x?x64xbf16>
!lse = tensor<?x8x?xf32>
func.func @dropped(%query: !all, %key: !keys, %starts: tensor<?xi32>, %rows: index, %seed: i64) -> (!all, !lse) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %batch = tensor.dim %key, %c0 : !keys
  %tokens = tensor.dim %query, %c2 : !all
  %queries_room = tensor.empty(%batch, %rows) : !all
  %q = scf.forall (%b) in (%batch) shared_outs(%out = %queries_room) -> (!all) {
    %n = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %n : i32 to index
    %some = tensor.extract_slice %query[0, 0, %start, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : !all to tensor<1x8x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[%b, 0, 0, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : tensor<1x8x?x64xbf16> into !all
    }
  }
  %o, %l = attn.attention %q, %key, %key scale(0.125) dropout(0.1, %seed, %seed)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %n = tensor.extract %starts[%b] : tensor<?xi32>
      %first = arith.index_cast %n : i32 to index
      %sum = arith.addi %i, %h : index
      %last = arith.addi %sum, %first : index
      %keep = arith.cmpi sge, %last, %j : index
      attn.yield %keep : i1
    } : !all, !keys, !keys -> !all, !lse
  %room = tensor.empty(%c1, %tokens) : !all
  %lse_room = tensor.empty(%c1, %tokens) : !lse
  %packed:2 = scf.forall (%b) in (%batch) shared_outs(%out = %room, %lse_out = %lse_room) -> (!all, !lse) {
    %n = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %n : i32 to index
    %some = tensor.extract_slice %o[%b, 0, 0, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : !all to tensor<1x8x?x64xbf16>
    %lse_some = tensor.extract_slice %l[%b, 0, 0] [1, 8, %rows] [1, 1, 1] : !lse to tensor<1x8x?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[0, 0, %start, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : tensor<1x8x?x64xbf16> into !all
      tensor.parallel_insert_slice %lse_some into %lse_out[0, 0, %start] [1, 8, %rows] [1, 1, 1] : tensor<1x8x?xf32> into !lse
    }
  }
  return %packed#0, %packed#1 : !all, !lse
}

// -----

// Parts of a given size are merged, and no tile is written where its rows lie.
// CHECK-LABEL: func @parts_of_size
// CHECK-NOT: linalg.transpose
!all = tensor<?x8x?x64xbf16>
!keys = tensor<?x2x?x64xbf16>
!lse = tensor<?x8x?xf32>
func.func @parts_of_size(%query: !all, %key: !keys, %starts: tensor<?xi32>, %rows: index) -> (!all, !lse) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %batch = tensor.dim %key, %c0 : !keys
  %tokens = tensor.dim %query, %c2 : !all
  %queries_room = tensor.empty(%batch, %rows) : !all
  %q = scf.forall (%b) in (%batch) shared_outs(%out = %queries_room) -> (!all) {
    %n = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %n : i32 to index
    %some = tensor.extract_slice %query[0, 0, %start, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : !all to tensor<1x8x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[%b, 0, 0, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : tensor<1x8x?x64xbf16> into !all
    }
  }
  %o, %l = attn.attention %q, %key, %key scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %n = tensor.extract %starts[%b] : tensor<?xi32>
      %first = arith.index_cast %n : i32 to index
      %sum = arith.addi %i, %h : index
      %last = arith.addi %sum, %first : index
      %keep = arith.cmpi sge, %last, %j : index
      attn.yield %keep : i1
    } {split_size = 128 : i64} : !all, !keys, !keys -> !all, !lse
  %room = tensor.empty(%c1, %tokens) : !all
  %lse_room = tensor.empty(%c1, %tokens) : !lse
  %packed:2 = scf.forall (%b) in (%batch) shared_outs(%out = %room, %lse_out = %lse_room) -> (!all, !lse) {
    %n = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %n : i32 to index
    %some = tensor.extract_slice %o[%b, 0, 0, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : !all to tensor<1x8x?x64xbf16>
    %lse_some = tensor.extract_slice %l[%b, 0, 0] [1, 8, %rows] [1, 1, 1] : !lse to tensor<1x8x?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[0, 0, %start, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : tensor<1x8x?x64xbf16> into !all
      tensor.parallel_insert_slice %lse_some into %lse_out[0, 0, %start] [1, 8, %rows] [1, 1, 1] : tensor<1x8x?xf32> into !lse
    }
  }
  return %packed#0, %packed#1 : !all, !lse
}

// -----

// A region that reads a tensor at a head reads it once for a tile of one head.
// CHECK-LABEL: func @slopes
// CHECK-NOT: linalg.transpose
!all = tensor<?x8x?x64xbf16>
!keys = tensor<?x2x?x64xbf16>
!lse = tensor<?x8x?xf32>
func.func @slopes(%query: !all, %key: !keys, %starts: tensor<?xi32>, %rows: index, %slopes: tensor<?xf32>) -> (!all, !lse) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %batch = tensor.dim %key, %c0 : !keys
  %tokens = tensor.dim %query, %c2 : !all
  %queries_room = tensor.empty(%batch, %rows) : !all
  %q = scf.forall (%b) in (%batch) shared_outs(%out = %queries_room) -> (!all) {
    %n = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %n : i32 to index
    %some = tensor.extract_slice %query[0, 0, %start, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : !all to tensor<1x8x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[%b, 0, 0, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : tensor<1x8x?x64xbf16> into !all
    }
  }
  %o, %l = attn.attention %q, %key, %key scale(0.125)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %next = arith.addi %h, %c1 : index
      %x = tensor.extract %slopes[%next] : tensor<?xf32>
      %r = arith.mulf %s, %x : f32
      attn.yield %r : f32
    } : !all, !keys, !keys -> !all, !lse
  %room = tensor.empty(%c1, %tokens) : !all
  %lse_room = tensor.empty(%c1, %tokens) : !lse
  %packed:2 = scf.forall (%b) in (%batch) shared_outs(%out = %room, %lse_out = %lse_room) -> (!all, !lse) {
    %n = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %n : i32 to index
    %some = tensor.extract_slice %o[%b, 0, 0, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : !all to tensor<1x8x?x64xbf16>
    %lse_some = tensor.extract_slice %l[%b, 0, 0] [1, 8, %rows] [1, 1, 1] : !lse to tensor<1x8x?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[0, 0, %start, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : tensor<1x8x?x64xbf16> into !all
      tensor.parallel_insert_slice %lse_some into %lse_out[0, 0, %start] [1, 8, %rows] [1, 1, 1] : tensor<1x8x?xf32> into !lse
    }
  }
  return %packed#0, %packed#1 : !all, !lse
}

// -----

// What else reads a result reads it padded.
// CHECK-LABEL: func @read_padded
// CHECK-NOT: linalg.transpose
!all = tensor<?x8x?x64xbf16>
!keys = tensor<?x2x?x64xbf16>
!lse = tensor<?x8x?xf32>
func.func @read_padded(%query: !all, %key: !keys, %starts: tensor<?xi32>, %rows: index) -> (!all, !lse) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %batch = tensor.dim %key, %c0 : !keys
  %tokens = tensor.dim %query, %c2 : !all
  %queries_room = tensor.empty(%batch, %rows) : !all
  %q = scf.forall (%b) in (%batch) shared_outs(%out = %queries_room) -> (!all) {
    %n = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %n : i32 to index
    %some = tensor.extract_slice %query[0, 0, %start, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : !all to tensor<1x8x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[%b, 0, 0, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : tensor<1x8x?x64xbf16> into !all
    }
  }
  %o, %l = attn.attention %q, %key, %key scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %n = tensor.extract %starts[%b] : tensor<?xi32>
      %first = arith.index_cast %n : i32 to index
      %sum = arith.addi %i, %h : index
      %last = arith.addi %sum, %first : index
      %keep = arith.cmpi sge, %last, %j : index
      attn.yield %keep : i1
    } : !all, !keys, !keys -> !all, !lse
  %room = tensor.empty(%c1, %tokens) : !all
  %lse_room = tensor.empty(%c1, %tokens) : !lse
  %packed:2 = scf.forall (%b) in (%batch) shared_outs(%out = %room, %lse_out = %lse_room) -> (!all, !lse) {
    %n = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %n : i32 to index
    %some = tensor.extract_slice %o[%b, 0, 0, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : !all to tensor<1x8x?x64xbf16>
    %lse_some = tensor.extract_slice %l[%b, 0, 0] [1, 8, %rows] [1, 1, 1] : !lse to tensor<1x8x?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[0, 0, %start, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : tensor<1x8x?x64xbf16> into !all
      tensor.parallel_insert_slice %lse_some into %lse_out[0, 0, %start] [1, 8, %rows] [1, 1, 1] : tensor<1x8x?xf32> into !lse
    }
  }
  return %packed#0, %l : !all, !lse
}

// -----

// So does a mask.
// CHECK-LABEL: func @windows
// CHECK-NOT: linalg.transpose
!all = tensor<?x8x?x64xbf16>
!keys = tensor<?x2x?x64xbf16>
func.func @windows(%query: !all, %key: !keys, %starts: tensor<?xi32>, %rows: index, %windows: tensor<?xi32>) -> !all {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %batch = tensor.dim %key, %c0 : !keys
  %tokens = tensor.dim %query, %c2 : !all
  %queries_room = tensor.empty(%batch, %rows) : !all
  %q = scf.forall (%b) in (%batch) shared_outs(%out = %queries_room) -> (!all) {
    %n = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %n : i32 to index
    %some = tensor.extract_slice %query[0, 0, %start, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : !all to tensor<1x8x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[%b, 0, 0, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : tensor<1x8x?x64xbf16> into !all
    }
  }
  %o = attn.attention %q, %key, %key scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %n = tensor.extract %windows[%h] : tensor<?xi32>
      %window = arith.index_cast %n : i32 to index
      %last = arith.addi %i, %window : index
      %keep = arith.cmpi sge, %last, %j : index
      attn.yield %keep : i1
    } : !all, !keys, !keys -> !all
  %room = tensor.empty(%c1, %tokens) : !all
  %packed = scf.forall (%b) in (%batch) shared_outs(%out = %room) -> (!all) {
    %n = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %n : i32 to index
    %some = tensor.extract_slice %o[%b, 0, 0, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : !all to tensor<1x8x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[0, 0, %start, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : tensor<1x8x?x64xbf16> into !all
    }
  }
  return %packed : !all
}

// -----

// Queries that no loop copies are read where they lie.
// CHECK-LABEL: func @own_queries
// CHECK-NOT: linalg.transpose
!all = tensor<?x8x?x64xbf16>
!keys = tensor<?x2x?x64xbf16>
func.func @own_queries(%query: !all, %key: !keys, %starts: tensor<?xi32>, %rows: index, %tokens: index) -> !all {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %batch = tensor.dim %key, %c0 : !keys
  %o = attn.attention %query, %key, %key scale(0.125) : !all, !keys, !keys -> !all
  %room = tensor.empty(%c1, %tokens) : !all
  %packed = scf.forall (%b) in (%batch) shared_outs(%out = %room) -> (!all) {
    %n = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %n : i32 to index
    %some = tensor.extract_slice %o[%b, 0, 0, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : !all to tensor<1x8x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[0, 0, %start, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : tensor<1x8x?x64xbf16> into !all
    }
  }
  return %packed : !all
}

// -----

// What else reads the queries reads them padded.
// CHECK-LABEL: func @queries_read_padded
// CHECK-NOT: linalg.transpose
!all = tensor<?x8x?x64xbf16>
!keys = tensor<?x2x?x64xbf16>
func.func @queries_read_padded(%query: !all, %key: !keys, %starts: tensor<?xi32>, %rows: index) -> (!all, !all) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %batch = tensor.dim %key, %c0 : !keys
  %tokens = tensor.dim %query, %c2 : !all
  %queries_room = tensor.empty(%batch, %rows) : !all
  %q = scf.forall (%b) in (%batch) shared_outs(%out = %queries_room) -> (!all) {
    %n = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %n : i32 to index
    %some = tensor.extract_slice %query[0, 0, %start, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : !all to tensor<1x8x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[%b, 0, 0, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : tensor<1x8x?x64xbf16> into !all
    }
  }
  %o = attn.attention %q, %key, %key scale(0.125) : !all, !keys, !keys -> !all
  %room = tensor.empty(%c1, %tokens) : !all
  %packed = scf.forall (%b) in (%batch) shared_outs(%out = %room) -> (!all) {
    %n = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %n : i32 to index
    %some = tensor.extract_slice %o[%b, 0, 0, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : !all to tensor<1x8x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[0, 0, %start, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : tensor<1x8x?x64xbf16> into !all
    }
  }
  return %packed, %q : !all, !all
}

// -----

// A tile is written to one place, but two loops copy its rows to two.
// CHECK-LABEL: func @copied_twice
// CHECK-NOT: linalg.transpose
!all = tensor<?x8x?x64xbf16>
!keys = tensor<?x2x?x64xbf16>
func.func @copied_twice(%query: !all, %key: !keys, %starts: tensor<?xi32>, %rows: index) -> (!all, !all) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %batch = tensor.dim %key, %c0 : !keys
  %tokens = tensor.dim %query, %c2 : !all
  %queries_room = tensor.empty(%batch, %rows) : !all
  %q = scf.forall (%b) in (%batch) shared_outs(%out = %queries_room) -> (!all) {
    %n = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %n : i32 to index
    %some = tensor.extract_slice %query[0, 0, %start, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : !all to tensor<1x8x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[%b, 0, 0, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : tensor<1x8x?x64xbf16> into !all
    }
  }
  %o = attn.attention %q, %key, %key scale(0.125) : !all, !keys, !keys -> !all
  %room = tensor.empty(%c1, %tokens) : !all
  %packed = scf.forall (%b) in (%batch) shared_outs(%out = %room) -> (!all) {
    %n = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %n : i32 to index
    %some = tensor.extract_slice %o[%b, 0, 0, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : !all to tensor<1x8x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[0, 0, %start, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : tensor<1x8x?x64xbf16> into !all
    }
  }
  %other = scf.forall (%b) in (%batch) shared_outs(%out = %room) -> (!all) {
    %n = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %n : i32 to index
    %some = tensor.extract_slice %o[%b, 0, 0, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : !all to tensor<1x8x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[0, 0, %start, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : tensor<1x8x?x64xbf16> into !all
    }
  }
  return %packed, %other : !all, !all
}

// -----

// Tiles are written where one loop copies all results, but here each has its own.
// CHECK-LABEL: func @copied_apart
// CHECK-NOT: linalg.transpose
!all = tensor<?x8x?x64xbf16>
!keys = tensor<?x2x?x64xbf16>
!lse = tensor<?x8x?xf32>
func.func @copied_apart(%query: !all, %key: !keys, %starts: tensor<?xi32>, %rows: index) -> (!all, !lse) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %batch = tensor.dim %key, %c0 : !keys
  %tokens = tensor.dim %query, %c2 : !all
  %queries_room = tensor.empty(%batch, %rows) : !all
  %q = scf.forall (%b) in (%batch) shared_outs(%out = %queries_room) -> (!all) {
    %n = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %n : i32 to index
    %some = tensor.extract_slice %query[0, 0, %start, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : !all to tensor<1x8x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[%b, 0, 0, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : tensor<1x8x?x64xbf16> into !all
    }
  }
  %o, %l = attn.attention %q, %key, %key scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %n = tensor.extract %starts[%b] : tensor<?xi32>
      %first = arith.index_cast %n : i32 to index
      %sum = arith.addi %i, %h : index
      %last = arith.addi %sum, %first : index
      %keep = arith.cmpi sge, %last, %j : index
      attn.yield %keep : i1
    } : !all, !keys, !keys -> !all, !lse
  %room = tensor.empty(%c1, %tokens) : !all
  %lse_room = tensor.empty(%c1, %tokens) : !lse
  %packed = scf.forall (%b) in (%batch) shared_outs(%out = %room) -> (!all) {
    %n = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %n : i32 to index
    %some = tensor.extract_slice %o[%b, 0, 0, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : !all to tensor<1x8x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[0, 0, %start, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : tensor<1x8x?x64xbf16> into !all
    }
  }
  %lse_packed = scf.forall (%b) in (%batch) shared_outs(%out = %lse_room) -> (!lse) {
    %n = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %n : i32 to index
    %some = tensor.extract_slice %l[%b, 0, 0] [1, 8, %rows] [1, 1, 1] : !lse to tensor<1x8x?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[0, 0, %start] [1, 8, %rows] [1, 1, 1] : tensor<1x8x?xf32> into !lse
    }
  }
  return %packed, %lse_packed : !all, !lse
}
