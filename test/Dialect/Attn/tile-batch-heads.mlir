// RUN: fovea-opt %s --attn-online-softmax --attn-tile=fuse-producers=false --canonicalize --cse --split-input-file --mlir-print-local-scope | FileCheck %s

// Tiles of batches whose rows are the queries of a group's heads, by queries
// (attn-pack-groups=batches): a tile has the heads of a fourth as many queries, and is read
// and written where these lie.

// CHECK-LABEL: func @heads
// CHECK-SAME:    %[[QUERY:[^:]*]]: tensor<?x8x?x64xbf16>
// CHECK-NOT:   linalg.transpose
// CHECK:       %[[L:.*]] = tensor.dim %[[QUERY]], %c2
// CHECK:       %[[ROOM:.*]] = tensor.empty(%{{.*}}, %[[L]]) : tensor<?x8x?x64xbf16>
// CHECK:       scf.forall (%[[B:.*]], %[[H:.*]], %[[I:.*]]) = (0, 0, 0) to (%{{.*}}, 2, %{{.*}}) step (1, 1, 128) shared_outs(%[[OUT:.*]] = %[[ROOM]], %[[LOUT:.*]] = %{{.*}}) -> (tensor<?x8x?x64xbf16>, tensor<?x8x?xf32>)
// CHECK-DAG:     %[[HEAD:.*]] = arith.muli %[[H]], %c4
// CHECK-DAG:     %[[PLACE:.*]] = arith.divsi %[[I]], %c4
// CHECK:         %[[COUNT:.*]] = affine.min
// CHECK:         %[[QUERIES:.*]] = arith.divsi %[[COUNT]], %c4
// CHECK:         %[[S:.*]] = tensor.extract_slice %[[QUERY]][%[[B]], %[[HEAD]], %[[PLACE]], 0] [1, 4, %[[QUERIES]], 64]
// CHECK:         %[[T:.*]] = linalg.transpose ins(%[[S]] : {{.*}} permutation = [0, 2, 1, 3]
// CHECK:         %[[C:.*]] = tensor.collapse_shape %[[T]] {{\[\[}}0], [1, 2], [3]]
// CHECK:         %[[Q:.*]] = tensor.expand_shape %[[C]] {{\[\[}}0, 1], [2], [3]] output_shape [1, 1, %[[COUNT]], 64]
// CHECK:         attn.online_attention {{.*}} ins(%[[Q]], {{.*}} whole[%c2, %{{.*}}]
// CHECK:         %[[O:.*]]:2 = attn.finalize
// CHECK:         %[[CO:.*]] = tensor.collapse_shape %[[O]]#0
// CHECK:         %[[XO:.*]] = tensor.expand_shape %[[CO]] {{\[\[}}0], [1, 2], [3]] output_shape [1, %[[QUERIES]], 4, 64]
// CHECK:         %[[TO:.*]] = linalg.transpose ins(%[[XO]] :
// CHECK:         %[[CL:.*]] = tensor.collapse_shape %[[O]]#1
// CHECK:         %[[XL:.*]] = tensor.expand_shape %[[CL]] {{\[\[}}0], [1, 2]] output_shape [1, %[[QUERIES]], 4]
// CHECK:         %[[TL:.*]] = linalg.transpose ins(%[[XL]] :
// CHECK:           tensor.parallel_insert_slice %[[TO]] into %[[OUT]][%[[B]], %[[HEAD]], %[[PLACE]], 0] [1, 4, %[[QUERIES]], 64]
// CHECK:           tensor.parallel_insert_slice %[[TL]] into %[[LOUT]][%[[B]], %[[HEAD]], %[[PLACE]]] [1, 4, %[[QUERIES]]]
// CHECK-NOT:   linalg.transpose
// CHECK:       return
!all = tensor<?x8x?x64xbf16>
!keys = tensor<?x2x?x64xbf16>
!lse = tensor<?x8x?xf32>
func.func @heads(%query: !all, %key: !keys) -> (!all, !lse) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %batch = tensor.dim %query, %c0 : !all
  %length = tensor.dim %query, %c2 : !all
  %expanded = tensor.expand_shape %query [[0], [1, 2], [3], [4]] output_shape [%batch, 2, 4, %length, 64] : !all into tensor<?x2x4x?x64xbf16>
  %0 = tensor.empty(%batch, %length) : tensor<?x2x?x4x64xbf16>
  %1 = linalg.transpose ins(%expanded : tensor<?x2x4x?x64xbf16>) outs(%0 : tensor<?x2x?x4x64xbf16>) permutation = [0, 1, 3, 2, 4]
  %rows = tensor.collapse_shape %1 [[0], [1], [2, 3], [4]] : tensor<?x2x?x4x64xbf16> into !keys
  %output, %lse = attn.attention %rows, %key, %key scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %x = arith.divui %i, %c4 : index
      %keep = arith.cmpi sge, %x, %j : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 128x64, order = linear, warps = 4, stages = 2>} : !keys, !keys, !keys -> !keys, tensor<?x2x?xf32>
  %2 = tensor.expand_shape %output [[0], [1], [2, 3], [4]] output_shape [%batch, 2, %length, 4, 64] : !keys into tensor<?x2x?x4x64xbf16>
  %3 = tensor.empty(%batch, %length) : tensor<?x2x4x?x64xbf16>
  %4 = linalg.transpose ins(%2 : tensor<?x2x?x4x64xbf16>) outs(%3 : tensor<?x2x4x?x64xbf16>) permutation = [0, 1, 3, 2, 4]
  %5 = tensor.collapse_shape %4 [[0], [1, 2], [3], [4]] : tensor<?x2x4x?x64xbf16> into !all
  %6 = tensor.expand_shape %lse [[0], [1], [2, 3]] output_shape [%batch, 2, %length, 4] : tensor<?x2x?xf32> into tensor<?x2x?x4xf32>
  %7 = tensor.empty(%batch, %length) : tensor<?x2x4x?xf32>
  %8 = linalg.transpose ins(%6 : tensor<?x2x?x4xf32>) outs(%7 : tensor<?x2x4x?xf32>) permutation = [0, 1, 3, 2]
  %9 = tensor.collapse_shape %8 [[0], [1, 2], [3]] : tensor<?x2x4x?xf32> into !lse
  return %5, %9 : !all, !lse
}

// -----

// Where the heads of a query are neighbours as they come, and as they go, nothing is
// transposed.
// CHECK-LABEL: func @neighbours
// CHECK-SAME:    %[[QUERY:[^:]*]]: tensor<?x?x8x64xbf16>
// CHECK-NOT:   linalg.transpose
// CHECK:       scf.forall {{.*}} shared_outs(%[[OUT:.*]] = %{{.*}}) -> (tensor<?x?x8x64xbf16>)
// CHECK:         %[[S:.*]] = tensor.extract_slice %[[QUERY]][%[[B:.*]], %[[PLACE:.*]], %[[HEAD:.*]], 0] [1, %[[QUERIES:.*]], 4, 64]
// CHECK-NEXT:    tensor.collapse_shape %[[S]]
// CHECK:         %[[O:.*]] = attn.finalize
// CHECK-NEXT:    %[[CO:.*]] = tensor.collapse_shape %[[O]]
// CHECK-NEXT:    %[[XO:.*]] = tensor.expand_shape %[[CO]]
// CHECK:           tensor.parallel_insert_slice %[[XO]] into %[[OUT]][%[[B]], %[[PLACE]], %[[HEAD]], 0] [1, %[[QUERIES]], 4, 64]
// CHECK-NOT:   linalg.transpose
// CHECK:       return
!all = tensor<?x8x?x64xbf16>
!neighbours = tensor<?x?x8x64xbf16>
!keys = tensor<?x2x?x64xbf16>
func.func @neighbours(%query: !neighbours, %key: !keys) -> !neighbours {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %batch = tensor.dim %query, %c0 : !neighbours
  %length = tensor.dim %query, %c1 : !neighbours
  %heads_room = tensor.empty(%batch, %length) : !all
  %heads = linalg.transpose ins(%query : !neighbours) outs(%heads_room : !all) permutation = [0, 2, 1, 3]
  %expanded = tensor.expand_shape %heads [[0], [1, 2], [3], [4]] output_shape [%batch, 2, 4, %length, 64] : !all into tensor<?x2x4x?x64xbf16>
  %0 = tensor.empty(%batch, %length) : tensor<?x2x?x4x64xbf16>
  %1 = linalg.transpose ins(%expanded : tensor<?x2x4x?x64xbf16>) outs(%0 : tensor<?x2x?x4x64xbf16>) permutation = [0, 1, 3, 2, 4]
  %rows = tensor.collapse_shape %1 [[0], [1], [2, 3], [4]] : tensor<?x2x?x4x64xbf16> into !keys
  %output = attn.attention %rows, %key, %key scale(0.125) {schedule = #attn.schedule<tile = 128x64, order = linear, warps = 4, stages = 2>} : !keys, !keys, !keys -> !keys
  %2 = tensor.expand_shape %output [[0], [1], [2, 3], [4]] output_shape [%batch, 2, %length, 4, 64] : !keys into tensor<?x2x?x4x64xbf16>
  %3 = tensor.empty(%batch, %length) : tensor<?x2x4x?x64xbf16>
  %4 = linalg.transpose ins(%2 : tensor<?x2x?x4x64xbf16>) outs(%3 : tensor<?x2x4x?x64xbf16>) permutation = [0, 1, 3, 2, 4]
  %5 = tensor.collapse_shape %4 [[0], [1, 2], [3], [4]] : tensor<?x2x4x?x64xbf16> into !all
  %room = tensor.empty(%batch, %length) : !neighbours
  %result = linalg.transpose ins(%5 : !all) outs(%room : !neighbours) permutation = [0, 2, 1, 3]
  return %result : !neighbours
}

// -----

// Heads that are no power of two are no box: they are made rows, and heads again, in
// kernels of their own.
// CHECK-LABEL: func @three
// CHECK:       %[[ROWS:.*]] = tensor.collapse_shape
// CHECK:       scf.forall
// CHECK:         tensor.extract_slice %[[ROWS]]
// CHECK:         tensor.parallel_insert_slice {{.*}} [1, 1, %{{.*}}, 64]
// CHECK:       linalg.transpose
!all = tensor<?x3x?x64xbf16>
!keys = tensor<?x1x?x64xbf16>
func.func @three(%query: !all, %key: !keys) -> !all {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %batch = tensor.dim %query, %c0 : !all
  %length = tensor.dim %query, %c2 : !all
  %expanded = tensor.expand_shape %query [[0], [1, 2], [3], [4]] output_shape [%batch, 1, 3, %length, 64] : !all into tensor<?x1x3x?x64xbf16>
  %0 = tensor.empty(%batch, %length) : tensor<?x1x?x3x64xbf16>
  %1 = linalg.transpose ins(%expanded : tensor<?x1x3x?x64xbf16>) outs(%0 : tensor<?x1x?x3x64xbf16>) permutation = [0, 1, 3, 2, 4]
  %rows = tensor.collapse_shape %1 [[0], [1], [2, 3], [4]] : tensor<?x1x?x3x64xbf16> into !keys
  %output = attn.attention %rows, %key, %key scale(0.125) {schedule = #attn.schedule<tile = 192x64, order = linear, warps = 4, stages = 2>} : !keys, !keys, !keys -> !keys
  %2 = tensor.expand_shape %output [[0], [1], [2, 3], [4]] output_shape [%batch, 1, %length, 3, 64] : !keys into tensor<?x1x?x3x64xbf16>
  %3 = tensor.empty(%batch, %length) : tensor<?x1x3x?x64xbf16>
  %4 = linalg.transpose ins(%2 : tensor<?x1x?x3x64xbf16>) outs(%3 : tensor<?x1x3x?x64xbf16>) permutation = [0, 1, 3, 2, 4]
  %5 = tensor.collapse_shape %4 [[0], [1, 2], [3], [4]] : tensor<?x1x3x?x64xbf16> into !all
  return %5 : !all
}
