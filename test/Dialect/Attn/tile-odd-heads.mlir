// RUN: fovea-opt %s --attach-gpu-target=target=sm_90a --attn-pack-groups=batches --attn-select-schedule --attn-online-softmax --attn-tile=fuse-producers=false --canonicalize --cse --mlir-print-local-scope | FileCheck %s

// A query of seven heads has eight rows, of which the last one has no head: a tile has the
// places of an eighth as many queries, and reads and writes seven of eight.
!all = tensor<?x14x?x64xbf16>
!keys = tensor<?x2x?x64xbf16>
!lse = tensor<?x14x?xf32>
module attributes {attn.schedules = [#attn.schedule<tile = 128x64, order = linear, warps = 8, stages = 2>,
                                     #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, split = 4>,
                                     #attn.schedule<tile = 16x64, order = linear, warps = 1, stages = 2>]} {
// CHECK-LABEL: func @heads
// CHECK-SAME:    %[[QUERY:[^:]*]]: tensor<?x14x?x64xbf16>
// CHECK-NOT:   linalg.transpose
// CHECK:       scf.forall (%[[B:.*]], %[[H:.*]], %[[I:.*]]) = (0, 0, 0) to (%{{.*}}, 2, %{{.*}}) step (1, 1, 128) shared_outs(%[[OUT:.*]] = %{{.*}}, %[[LOUT:.*]] = %{{.*}}) -> (tensor<?x14x?x64xbf16>, tensor<?x14x?xf32>)
// CHECK-DAG:     %[[PLACE:.*]] = arith.divsi %[[I]], %c8
// CHECK-DAG:     %[[HEAD:.*]] = arith.muli %[[H]], %c7
// CHECK:         %[[COUNT:.*]] = affine.min affine_map<(d0)[s0] -> (-d0 + s0 * 8, 128)>
// CHECK:         %[[QUERIES:.*]] = arith.divsi %[[COUNT]], %c8
// CHECK:         %[[S:.*]] = tensor.extract_slice %[[QUERY]][%[[B]], %[[HEAD]], %[[PLACE]], 0] [1, 7, %[[QUERIES]], 64]
// CHECK:         %[[P:.*]] = tensor.insert_slice %[[S]] into %{{.*}}[0, 0, 0, 0] [1, 7, %[[QUERIES]], 64] [1, 1, 1, 1] : tensor<1x7x?x64xbf16> into tensor<1x8x?x64xbf16>
// CHECK:         %[[T:.*]] = linalg.transpose ins(%[[P]] : {{.*}} permutation = [0, 2, 1, 3]
// CHECK:         tensor.collapse_shape %[[T]] {{\[\[}}0], [1, 2], [3]]
// CHECK:         %[[XO:.*]] = tensor.expand_shape {{.*}} output_shape [1, %[[QUERIES]], 8, 64]
// CHECK:         %[[SO:.*]] = tensor.extract_slice %[[XO]][0, 0, 0, 0] [1, %[[QUERIES]], 7, 64]
// CHECK:         %[[TO:.*]] = linalg.transpose ins(%[[SO]] :
// CHECK:         %[[SL:.*]] = tensor.extract_slice %{{.*}}[0, 0, 0] [1, %[[QUERIES]], 7]
// CHECK:         %[[TL:.*]] = linalg.transpose ins(%[[SL]] :
// CHECK:           tensor.parallel_insert_slice %[[TO]] into %[[OUT]][%[[B]], %[[HEAD]], %[[PLACE]], 0] [1, 7, %[[QUERIES]], 64]
// CHECK:           tensor.parallel_insert_slice %[[TL]] into %[[LOUT]][%[[B]], %[[HEAD]], %[[PLACE]]] [1, 7, %[[QUERIES]]]
// CHECK-NOT:   linalg.transpose
// CHECK:       return
func.func @heads(%q: !all, %k: !keys) -> (!all, !lse) {
  %o, %l = attn.attention %q, %k, %k scale(0.125) : !all, !keys, !keys -> !all, !lse
  return %o, %l : !all, !lse
}

// Parts of keys are merged row by row, by iterations of rows that have a head alone.
// CHECK-LABEL: func @parts
// CHECK-SAME:    %[[QUERY:[^:]*]]: tensor<?x14x?x64xbf16>
// CHECK:       %[[ROWS:.*]] = affine.apply affine_map<()[s0] -> (s0 * 7)>()
// CHECK:       scf.forall (%[[B:.*]], %[[H:.*]], %[[I:.*]]) in (%{{.*}}, 2, %[[ROWS]]) shared_outs(%[[OUT:.*]] = %{{.*}}, %[[LOUT:.*]] = %{{.*}})
// CHECK-DAG:     %[[Q:.*]] = arith.divsi %[[I]], %c7
// CHECK-DAG:     %[[OTHERS:.*]] = arith.muli %[[Q]], %c7
// CHECK-DAG:     %[[M:.*]] = arith.subi %[[I]], %[[OTHERS]]
// CHECK-DAG:     %[[FIRST:.*]] = arith.muli %[[Q]], %c8
// CHECK:         %[[ROW:.*]] = arith.addi %[[FIRST]], %[[M]]
// CHECK-DAG:     %[[HEAD:.*]] = arith.muli %[[H]], %c7
// CHECK-DAG:     %[[QUERY_OF_ROW:.*]] = arith.divsi %[[ROW]], %c8
// CHECK:         %[[OWN:.*]] = arith.addi %[[HEAD]],
// CHECK:         tensor.extract_slice %{{.*}}[%{{.*}}, %[[H]], %[[ROW]], 0] [%{{.*}}, 1, 1, 64]
// CHECK:           tensor.parallel_insert_slice %{{.*}} into %[[OUT]][%[[B]], %[[OWN]], %[[QUERY_OF_ROW]], 0] [1, 1, 1, 64]
// CHECK:           tensor.parallel_insert_slice %{{.*}} into %[[LOUT]][%[[B]], %[[OWN]], %[[QUERY_OF_ROW]]] [1, 1, 1]
// CHECK-NOT:   linalg.transpose
// CHECK:       return
func.func @parts(%q: !all, %k: !keys) -> (!all, !lse) {
  %o, %l = attn.attention %q, %k, %k scale(0.125) : !all, !keys, !keys -> !all, !lse
  return %o, %l : !all, !lse
}

// A tile of one query has its rows along one dimension: those of fifteen heads are made
// rows in front of the loop, and heads again behind it.
// CHECK-LABEL: func @one
// CHECK:       %[[P:.*]] = tensor.insert_slice
// CHECK:       %[[T:.*]] = linalg.transpose ins(%[[P]] :
// CHECK:       %[[ROWS:.*]] = tensor.collapse_shape %[[T]]
// CHECK:       scf.forall
// CHECK:         tensor.extract_slice %[[ROWS]]
// CHECK:         tensor.parallel_insert_slice {{.*}} [1, 1, 16, 64]
// CHECK:       linalg.transpose
// CHECK:       tensor.extract_slice {{.*}} [1, 1, 15, 65, 64]
func.func @one(%q: tensor<1x15x65x64xbf16>, %k: tensor<1x1x?x64xbf16>) -> tensor<1x15x65x64xbf16> {
  %o = attn.attention %q, %k, %k scale(0.125)
    : tensor<1x15x65x64xbf16>, tensor<1x1x?x64xbf16>, tensor<1x1x?x64xbf16> -> tensor<1x15x65x64xbf16>
  return %o : tensor<1x15x65x64xbf16>
}
}
