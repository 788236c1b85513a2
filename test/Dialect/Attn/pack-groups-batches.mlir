// RUN: fovea-opt %s --attach-gpu-target=target=sm_90a --attn-pack-groups=batches --split-input-file | FileCheck %s
// RUN: fovea-opt %s --attach-gpu-target=target=sm_90a --attn-pack-groups --split-input-file | FileCheck %s --check-prefix=USUAL
// RUN: fovea-opt %s --attach-gpu-target=target=sm_80 --attn-pack-groups=batches --split-input-file | FileCheck %s --check-prefix=USUAL
// RUN: fovea-opt %s --attn-pack-groups=batches --split-input-file | FileCheck %s --check-prefix=USUAL

// In code for few, the heads of a group are rows of batches of any number of queries, by
// queries. Other code has them as heads, and so have targets without TMA.
// CHECK-LABEL: func @batch
// CHECK-SAME: %[[Q:[^:]*]]: tensor<?x8x?x64xbf16>, %[[K:[^:]*]]:
// CHECK: %[[X:.*]] = tensor.expand_shape %[[Q]] {{\[\[}}0], [1, 2], [3], [4]] {{.*}} into tensor<?x2x4x?x64xbf16>
// CHECK: %[[T:.*]] = linalg.transpose ins(%[[X]] : {{.*}} permutation = [0, 1, 3, 2, 4]
// CHECK: %[[R:.*]] = tensor.collapse_shape %[[T]] {{\[\[}}0], [1], [2, 3], [4]] : tensor<?x2x?x4x64xbf16> into tensor<?x2x?x64xbf16>
// CHECK: %[[O:.*]], %[[L:.*]] = attn.attention %[[R]], %[[K]], %[[K]]
// CHECK: ^bb0(%[[B:.*]]: index, %[[H:.*]]: index, %[[I:.*]]: index, %[[J:.*]]: index):
// CHECK: %[[I4:.*]] = arith.divui %[[I]], %c4
// CHECK: arith.cmpi sge, %[[I4]], %[[J]]
// CHECK: -> tensor<?x2x?x64xbf16>, tensor<?x2x?xf32>
// CHECK: %[[XO:.*]] = tensor.expand_shape %[[O]] {{.*}} into tensor<?x2x?x4x64xbf16>
// CHECK: %[[TO:.*]] = linalg.transpose ins(%[[XO]] : {{.*}} permutation = [0, 1, 3, 2, 4]
// CHECK: tensor.collapse_shape %[[TO]] {{\[\[}}0], [1, 2], [3], [4]] : tensor<?x2x4x?x64xbf16> into tensor<?x8x?x64xbf16>
// CHECK: %[[XL:.*]] = tensor.expand_shape %[[L]] {{.*}} into tensor<?x2x?x4xf32>
// CHECK: linalg.transpose ins(%[[XL]] : {{.*}} permutation = [0, 1, 3, 2]
// USUAL-LABEL: func @batch
// USUAL-NOT: expand_shape
// USUAL: return
!all = tensor<?x8x?x64xbf16>
!keys = tensor<?x2x?x64xbf16>
!lse = tensor<?x8x?xf32>
func.func @batch(%q: !all, %k: !keys) -> (!all, !lse) {
  %o, %l = attn.attention %q, %k, %k scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %keep = arith.cmpi sge, %i, %j : index
      attn.yield %keep : i1
    } : !all, !keys, !keys -> !all, !lse
  return %o, %l : !all, !lse
}

// -----

// Operands and results that are transposed alone are still operands and results.
// CHECK-LABEL: func @transposed
// CHECK: attn.attention {{.*}} : tensor<?x2x?x64xbf16>, tensor<?x2x?x64xbf16>, tensor<?x2x?x64xbf16>
!all = tensor<?x8x?x64xbf16>
!rows = tensor<?x?x8x64xbf16>
!keys = tensor<?x2x?x64xbf16>
func.func @transposed(%rows: !rows, %k: !keys, %room: !all, %out: !rows) -> !rows {
  %q = linalg.transpose ins(%rows : !rows) outs(%room : !all) permutation = [0, 2, 1, 3]
  %o = attn.attention %q, %k, %k scale(0.125) : !all, !keys, !keys -> !all
  %result = linalg.transpose ins(%o : !all) outs(%out : !rows) permutation = [0, 2, 1, 3]
  return %result : !rows
}

// -----

// A query of a group that is no power of two has as many rows as the next one. What those
// without a head hold is not defined, and they are dropped of the results.
// CHECK-LABEL: func @six
// CHECK: %[[X:.*]] = tensor.expand_shape {{.*}} into tensor<?x2x6x?x64xbf16>
// CHECK: %[[ROOM:.*]] = tensor.empty({{.*}}) : tensor<?x2x8x?x64xbf16>
// CHECK: %[[I:.*]] = tensor.insert_slice %[[X]] into %[[ROOM]][0, 0, 0, 0, 0] [%{{.*}}, 2, 6, %{{.*}}, 64] [1, 1, 1, 1, 1]
// CHECK: %[[T:.*]] = linalg.transpose ins(%[[I]] : {{.*}} permutation = [0, 1, 3, 2, 4]
// CHECK: %[[R:.*]] = tensor.collapse_shape %[[T]] {{\[\[}}0], [1], [2, 3], [4]] : tensor<?x2x?x8x64xbf16> into tensor<?x2x?x64xbf16>
// CHECK: %[[O:.*]], %[[L:.*]] = attn.attention %[[R]]
// CHECK: %[[XO:.*]] = tensor.expand_shape %[[O]] {{.*}} into tensor<?x2x?x8x64xbf16>
// CHECK: %[[TO:.*]] = linalg.transpose ins(%[[XO]] : {{.*}} permutation = [0, 1, 3, 2, 4]
// CHECK: %[[SO:.*]] = tensor.extract_slice %[[TO]][0, 0, 0, 0, 0] [%{{.*}}, 2, 6, %{{.*}}, 64] [1, 1, 1, 1, 1]
// CHECK: tensor.collapse_shape %[[SO]] {{\[\[}}0], [1, 2], [3], [4]] : tensor<?x2x6x?x64xbf16> into tensor<?x12x?x64xbf16>
// CHECK: tensor.extract_slice {{.*}}[0, 0, 0, 0] [%{{.*}}, 2, 6, %{{.*}}] [1, 1, 1, 1]
// USUAL-LABEL: func @six
// USUAL-NOT: expand_shape
// USUAL: return
!all = tensor<?x12x?x64xbf16>
!keys = tensor<?x2x?x64xbf16>
!lse = tensor<?x12x?xf32>
func.func @six(%q: !all, %k: !keys) -> (!all, !lse) {
  %o, %l = attn.attention %q, %k, %k scale(0.125) : !all, !keys, !keys -> !all, !lse
  return %o, %l : !all, !lse
}

// -----

// A group of which a tile would have few queries has shares, powers of two.
// CHECK-LABEL: func @shares
// CHECK-NOT: insert_slice
// CHECK: attn.attention {{.*}} : tensor<?x6x?x64xbf16>, tensor<?x2x?x64xbf16>, tensor<?x2x?x64xbf16> -> tensor<?x6x?x64xbf16>
!all = tensor<?x48x?x64xbf16>
!keys = tensor<?x2x?x64xbf16>
func.func @shares(%q: !all, %k: !keys) -> !all {
  %o = attn.attention %q, %k, %k scale(0.125) : !all, !keys, !keys -> !all
  return %o : !all
}

// -----

// Left alone: a group that is too large, and has no shares.
// CHECK-LABEL: func @seventeen
// CHECK-NOT: expand_shape
!all = tensor<?x17x?x64xbf16>
!keys = tensor<?x1x?x64xbf16>
func.func @seventeen(%q: !all, %k: !keys) -> !all {
  %o = attn.attention %q, %k, %k scale(0.125) : !all, !keys, !keys -> !all
  return %o : !all
}

// -----

// Scores that read a number of a head.
// CHECK-LABEL: func @slopes
// CHECK-NOT: expand_shape
!all = tensor<?x8x?x64xbf16>
!keys = tensor<?x2x?x64xbf16>
func.func @slopes(%q: !all, %k: !keys, %slopes: tensor<8xf32>) -> !all {
  %o = attn.attention %q, %k, %k scale(0.125)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %slope = tensor.extract %slopes[%h] : tensor<8xf32>
      %x = arith.mulf %s, %slope : f32
      attn.yield %x : f32
    } : !all, !keys, !keys -> !all
  return %o : !all
}

// -----

// Parts of a fixed size, whose rows have the same bits whatever the code.
// CHECK-LABEL: func @parts_of_size
// CHECK-NOT: expand_shape
!all = tensor<?x8x?x64xbf16>
!keys = tensor<?x2x?x64xbf16>
func.func @parts_of_size(%q: !all, %k: !keys) -> !all {
  %o = attn.attention %q, %k, %k scale(0.125) {split_size = 512 : i64} : !all, !keys, !keys -> !all
  return %o : !all
}

// -----

// Queries that are computed, tiles of which would be where they are read.
// CHECK-LABEL: func @computed
// CHECK-NOT: expand_shape
!all = tensor<?x8x?x64xbf16>
!keys = tensor<?x2x?x64xbf16>
func.func @computed(%x: !all, %k: !keys) -> !all {
  %q = arith.negf %x : !all
  %o = attn.attention %q, %k, %k scale(0.125) : !all, !keys, !keys -> !all
  return %o : !all
}

// -----

// A result that something computes with.
// CHECK-LABEL: func @read
// CHECK-NOT: expand_shape
!all = tensor<?x8x?x64xbf16>
!keys = tensor<?x2x?x64xbf16>
func.func @read(%q: !all, %k: !keys) -> !all {
  %o = attn.attention %q, %k, %k scale(0.125) : !all, !keys, !keys -> !all
  %result = arith.negf %o : !all
  return %result : !all
}

// -----

// A result whose dimensions are in another order, in which no box of a tile is written.
// CHECK-LABEL: func @turned
// CHECK-NOT: expand_shape
!all = tensor<?x8x?x64xbf16>
!turned = tensor<?x?x8x64xbf16>
!keys = tensor<?x2x?x64xbf16>
func.func @turned(%q: !all, %k: !keys, %room: !turned) -> !turned {
  %o = attn.attention %q, %k, %k scale(0.125) : !all, !keys, !keys -> !all
  %result = linalg.transpose ins(%o : !all) outs(%room : !turned) permutation = [2, 0, 1, 3]
  return %result : !turned
}
