// RUN: fovea-opt %s --attn-online-softmax --attn-tile=fuse-producers=false --canonicalize --cse --split-input-file --mlir-print-local-scope | FileCheck %s

// Tiles of packed sequences whose rows are the queries of a group's heads
// (attn-pack-groups): the rows of a tile are read and written where the heads of its
// queries lie, of which it has a fourth as many. They are transposed in the loop alone,
// which is a view.

// CHECK-LABEL: func @heads
// CHECK-SAME:    %[[QUERY:[^:]*]]: tensor<?x8x?x64xbf16>, %{{.*}}: tensor<?x2x?x64xbf16>, %[[STARTS:[^:]*]]: tensor<?xi32>, %[[ROWS:[^:]*]]: index
// CHECK-NOT:   linalg.transpose
// CHECK:       scf.forall (%[[B:.*]], %[[H:.*]], %[[I:.*]]) = (0, 0, 0) to (%{{.*}}, 2, %{{.*}}) step (1, 1, 128) shared_outs(%[[OUT:.*]] = %{{.*}}, %[[LOUT:.*]] = %{{.*}})
// CHECK:         %[[FIRST:.*]] = tensor.extract %[[STARTS]][%[[B]]]
// CHECK:         %[[START:.*]] = arith.index_cast %[[FIRST]]
// CHECK:         %[[ALL:.*]] = arith.muli %[[ROWS]], %c4
// CHECK:         %[[MOST:.*]] = arith.maxsi %[[ALL]], %[[I]]
// CHECK:         %[[COUNT:.*]] = affine.min {{.*}}[%[[MOST]], %[[I]], %[[ROWS]]]
// CHECK:         %[[HEAD:.*]] = arith.muli %[[H]], %c4
// CHECK:         %[[OFFSET:.*]] = arith.divsi %[[I]], %c4
// CHECK:         %[[PLACE:.*]] = arith.addi %[[START]], %[[OFFSET]]
// CHECK:         %[[QUERIES:.*]] = arith.divsi %[[COUNT]], %c4
// CHECK:         %[[S:.*]] = tensor.extract_slice %[[QUERY]][0, %[[HEAD]], %[[PLACE]], 0] [1, 4, %[[QUERIES]], 64]
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
// CHECK:           tensor.parallel_insert_slice %[[TO]] into %[[OUT]][0, %[[HEAD]], %[[PLACE]], 0] [1, 4, %[[QUERIES]], 64]
// CHECK:           tensor.parallel_insert_slice %[[TL]] into %[[LOUT]][0, %[[HEAD]], %[[PLACE]]] [1, 4, %[[QUERIES]]]
// CHECK-NOT:   scf.forall
// CHECK:       return
!all = tensor<?x8x?x64xbf16>
!keys = tensor<?x2x?x64xbf16>
!lse = tensor<?x8x?xf32>
func.func @heads(%query: !all, %key: !keys, %starts: tensor<?xi32>, %rows: index) -> (tensor<1x8x?x64xbf16>, tensor<1x8x?xf32>) {
  %c4 = arith.constant 4 : index
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %dim = tensor.dim %key, %c0 : !keys
  %dim_0 = tensor.dim %query, %c2 : !all
  %0 = tensor.empty(%dim, %rows) : !all
  %1 = scf.forall (%arg4) in (%dim) shared_outs(%arg5 = %0) -> (!all) {
    %extracted = tensor.extract %starts[%arg4] : tensor<?xi32>
    %8 = arith.index_cast %extracted : i32 to index
    %extracted_slice = tensor.extract_slice %query[0, 0, %8, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : !all to tensor<1x8x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %extracted_slice into %arg5[%arg4, 0, 0, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : tensor<1x8x?x64xbf16> into !all
    }
  }
  %expanded = tensor.expand_shape %1 [[0], [1, 2], [3], [4]] output_shape [%dim, 2, 4, %rows, 64] : !all into tensor<?x2x4x?x64xbf16>
  %2 = tensor.empty(%dim, %rows) : tensor<?x2x?x4x64xbf16>
  %transposed = linalg.transpose ins(%expanded : tensor<?x2x4x?x64xbf16>) outs(%2 : tensor<?x2x?x4x64xbf16>) permutation = [0, 1, 3, 2, 4] 
  %collapsed = tensor.collapse_shape %transposed [[0], [1], [2, 3], [4]] : tensor<?x2x?x4x64xbf16> into !keys
  %output, %lse = attn.attention %collapsed, %key, %key scale(1.250000e-01)  mask {
  ^bb0(%arg4: index, %arg5: index, %arg6: index, %arg7: index):
    %8 = arith.divui %arg6, %c4 : index
    %extracted = tensor.extract %starts[%arg4] : tensor<?xi32>
    %9 = arith.index_cast %extracted : i32 to index
    %10 = arith.addi %8, %9 : index
    %11 = arith.cmpi sge, %10, %arg7 : index
    attn.yield %11 : i1
  } {schedule = #attn.schedule<tile = 128x64, order = linear, warps = 4, stages = 2>} : !keys, !keys, !keys -> !keys, tensor<?x2x?xf32>
  %dim_1 = tensor.dim %output, %c0 : !keys
  %expanded_2 = tensor.expand_shape %output [[0], [1], [2, 3], [4]] output_shape [%dim_1, 2, %rows, 4, 64] : !keys into tensor<?x2x?x4x64xbf16>
  %3 = tensor.empty(%dim_1, %rows) : tensor<?x2x4x?x64xbf16>
  %transposed_3 = linalg.transpose ins(%expanded_2 : tensor<?x2x?x4x64xbf16>) outs(%3 : tensor<?x2x4x?x64xbf16>) permutation = [0, 1, 3, 2, 4] 
  %collapsed_4 = tensor.collapse_shape %transposed_3 [[0], [1, 2], [3], [4]] : tensor<?x2x4x?x64xbf16> into !all
  %dim_5 = tensor.dim %lse, %c0 : tensor<?x2x?xf32>
  %expanded_6 = tensor.expand_shape %lse [[0], [1], [2, 3]] output_shape [%dim_5, 2, %rows, 4] : tensor<?x2x?xf32> into tensor<?x2x?x4xf32>
  %4 = tensor.empty(%dim_5, %rows) : tensor<?x2x4x?xf32>
  %transposed_7 = linalg.transpose ins(%expanded_6 : tensor<?x2x?x4xf32>) outs(%4 : tensor<?x2x4x?xf32>) permutation = [0, 1, 3, 2] 
  %collapsed_8 = tensor.collapse_shape %transposed_7 [[0], [1, 2], [3]] : tensor<?x2x4x?xf32> into !lse
  %5 = tensor.empty(%dim_0) : tensor<1x8x?x64xbf16>
  %6 = tensor.empty(%dim_0) : tensor<1x8x?xf32>
  %7:2 = scf.forall (%arg4) in (%dim) shared_outs(%arg5 = %5, %arg6 = %6) -> (tensor<1x8x?x64xbf16>, tensor<1x8x?xf32>) {
    %extracted = tensor.extract %starts[%arg4] : tensor<?xi32>
    %8 = arith.index_cast %extracted : i32 to index
    %extracted_slice = tensor.extract_slice %collapsed_4[%arg4, 0, 0, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : !all to tensor<1x8x?x64xbf16>
    %extracted_slice_10 = tensor.extract_slice %collapsed_8[%arg4, 0, 0] [1, 8, %rows] [1, 1, 1] : !lse to tensor<1x8x?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %extracted_slice into %arg5[0, 0, %8, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : tensor<1x8x?x64xbf16> into tensor<1x8x?x64xbf16>
      tensor.parallel_insert_slice %extracted_slice_10 into %arg6[0, 0, %8] [1, 8, %rows] [1, 1, 1] : tensor<1x8x?xf32> into tensor<1x8x?xf32>
    }
  }
  return %7#0, %7#1 : tensor<1x8x?x64xbf16>, tensor<1x8x?xf32>
}

// -----

// A query of seven heads has eight rows, of which those with a head are read and written.
// CHECK-LABEL: func @places
// CHECK-SAME:    %[[QUERY:[^:]*]]: tensor<?x14x?x64xbf16>, %{{.*}}: tensor<?x2x?x64xbf16>, %[[STARTS:[^:]*]]: tensor<?xi32>, %[[ROWS:[^:]*]]: index
// CHECK-NOT:   linalg.transpose
// CHECK:       scf.forall (%[[B:.*]], %[[H:.*]], %[[I:.*]]) = (0, 0, 0) to (%{{.*}}, 2, %{{.*}}) step (1, 1, 128) shared_outs(%[[OUT:.*]] = %{{.*}}, %[[LOUT:.*]] = %{{.*}})
// CHECK:         %[[ALL:.*]] = arith.muli %[[ROWS]], %c8
// CHECK:         %[[COUNT:.*]] = affine.min
// CHECK:         %[[HEAD:.*]] = arith.muli %[[H]], %c7
// CHECK:         %[[OFFSET:.*]] = arith.divsi %[[I]], %c8
// CHECK:         %[[PLACE:.*]] = arith.addi %{{.*}}, %[[OFFSET]]
// CHECK:         %[[QUERIES:.*]] = arith.divsi %[[COUNT]], %c8
// CHECK:         %[[S:.*]] = tensor.extract_slice %[[QUERY]][0, %[[HEAD]], %[[PLACE]], 0] [1, 7, %[[QUERIES]], 64]
// CHECK:         %[[P:.*]] = tensor.insert_slice %[[S]] into %{{.*}}[0, 0, 0, 0] [1, 7, %[[QUERIES]], 64]
// CHECK:         linalg.transpose ins(%[[P]] : {{.*}} permutation = [0, 2, 1, 3]
// CHECK:         %[[SO:.*]] = tensor.extract_slice %{{.*}}[0, 0, 0, 0] [1, %[[QUERIES]], 7, 64]
// CHECK:         %[[TO:.*]] = linalg.transpose ins(%[[SO]] :
// CHECK:         %[[SL:.*]] = tensor.extract_slice %{{.*}}[0, 0, 0] [1, %[[QUERIES]], 7]
// CHECK:         %[[TL:.*]] = linalg.transpose ins(%[[SL]] :
// CHECK:           tensor.parallel_insert_slice %[[TO]] into %[[OUT]][0, %[[HEAD]], %[[PLACE]], 0] [1, 7, %[[QUERIES]], 64]
// CHECK:           tensor.parallel_insert_slice %[[TL]] into %[[LOUT]][0, %[[HEAD]], %[[PLACE]]] [1, 7, %[[QUERIES]]]
// CHECK-NOT:   scf.forall
// CHECK:       return
!all = tensor<?x14x?x64xbf16>
!keys = tensor<?x2x?x64xbf16>
!lse = tensor<?x14x?xf32>
func.func @places(%query: !all, %key: !keys, %starts: tensor<?xi32>, %rows: index) -> (tensor<1x14x?x64xbf16>, tensor<1x14x?xf32>) {
  %c8 = arith.constant 8 : index
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %dim = tensor.dim %key, %c0 : !keys
  %dim_0 = tensor.dim %query, %c2 : !all
  %0 = tensor.empty(%dim, %rows) : !all
  %1 = scf.forall (%arg4) in (%dim) shared_outs(%arg5 = %0) -> (!all) {
    %extracted = tensor.extract %starts[%arg4] : tensor<?xi32>
    %8 = arith.index_cast %extracted : i32 to index
    %extracted_slice = tensor.extract_slice %query[0, 0, %8, 0] [1, 14, %rows, 64] [1, 1, 1, 1] : !all to tensor<1x14x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %extracted_slice into %arg5[%arg4, 0, 0, 0] [1, 14, %rows, 64] [1, 1, 1, 1] : tensor<1x14x?x64xbf16> into !all
    }
  }
  %expanded = tensor.expand_shape %1 [[0], [1, 2], [3], [4]] output_shape [%dim, 2, 7, %rows, 64] : !all into tensor<?x2x7x?x64xbf16>
  %places_room = tensor.empty(%dim, %rows) : tensor<?x2x8x?x64xbf16>
  %places = tensor.insert_slice %expanded into %places_room[0, 0, 0, 0, 0] [%dim, 2, 7, %rows, 64] [1, 1, 1, 1, 1] : tensor<?x2x7x?x64xbf16> into tensor<?x2x8x?x64xbf16>
  %2 = tensor.empty(%dim, %rows) : tensor<?x2x?x8x64xbf16>
  %transposed = linalg.transpose ins(%places : tensor<?x2x8x?x64xbf16>) outs(%2 : tensor<?x2x?x8x64xbf16>) permutation = [0, 1, 3, 2, 4]
  %collapsed = tensor.collapse_shape %transposed [[0], [1], [2, 3], [4]] : tensor<?x2x?x8x64xbf16> into !keys
  %output, %lse = attn.attention %collapsed, %key, %key scale(1.250000e-01)  mask {
  ^bb0(%arg4: index, %arg5: index, %arg6: index, %arg7: index):
    %8 = arith.divui %arg6, %c8 : index
    %extracted = tensor.extract %starts[%arg4] : tensor<?xi32>
    %9 = arith.index_cast %extracted : i32 to index
    %10 = arith.addi %8, %9 : index
    %11 = arith.cmpi sge, %10, %arg7 : index
    attn.yield %11 : i1
  } {schedule = #attn.schedule<tile = 128x64, order = linear, warps = 4, stages = 2>} : !keys, !keys, !keys -> !keys, tensor<?x2x?xf32>
  %dim_1 = tensor.dim %output, %c0 : !keys
  %expanded_2 = tensor.expand_shape %output [[0], [1], [2, 3], [4]] output_shape [%dim_1, 2, %rows, 8, 64] : !keys into tensor<?x2x?x8x64xbf16>
  %3 = tensor.empty(%dim_1, %rows) : tensor<?x2x8x?x64xbf16>
  %transposed_3 = linalg.transpose ins(%expanded_2 : tensor<?x2x?x8x64xbf16>) outs(%3 : tensor<?x2x8x?x64xbf16>) permutation = [0, 1, 3, 2, 4]
  %some_3 = tensor.extract_slice %transposed_3[0, 0, 0, 0, 0] [%dim_1, 2, 7, %rows, 64] [1, 1, 1, 1, 1] : tensor<?x2x8x?x64xbf16> to tensor<?x2x7x?x64xbf16>
  %collapsed_4 = tensor.collapse_shape %some_3 [[0], [1, 2], [3], [4]] : tensor<?x2x7x?x64xbf16> into !all
  %dim_5 = tensor.dim %lse, %c0 : tensor<?x2x?xf32>
  %expanded_6 = tensor.expand_shape %lse [[0], [1], [2, 3]] output_shape [%dim_5, 2, %rows, 8] : tensor<?x2x?xf32> into tensor<?x2x?x8xf32>
  %4 = tensor.empty(%dim_5, %rows) : tensor<?x2x8x?xf32>
  %transposed_7 = linalg.transpose ins(%expanded_6 : tensor<?x2x?x8xf32>) outs(%4 : tensor<?x2x8x?xf32>) permutation = [0, 1, 3, 2]
  %some_7 = tensor.extract_slice %transposed_7[0, 0, 0, 0] [%dim_5, 2, 7, %rows] [1, 1, 1, 1] : tensor<?x2x8x?xf32> to tensor<?x2x7x?xf32>
  %collapsed_8 = tensor.collapse_shape %some_7 [[0], [1, 2], [3]] : tensor<?x2x7x?xf32> into !lse
  %5 = tensor.empty(%dim_0) : tensor<1x14x?x64xbf16>
  %6 = tensor.empty(%dim_0) : tensor<1x14x?xf32>
  %7:2 = scf.forall (%arg4) in (%dim) shared_outs(%arg5 = %5, %arg6 = %6) -> (tensor<1x14x?x64xbf16>, tensor<1x14x?xf32>) {
    %extracted = tensor.extract %starts[%arg4] : tensor<?xi32>
    %8 = arith.index_cast %extracted : i32 to index
    %extracted_slice = tensor.extract_slice %collapsed_4[%arg4, 0, 0, 0] [1, 14, %rows, 64] [1, 1, 1, 1] : !all to tensor<1x14x?x64xbf16>
    %extracted_slice_10 = tensor.extract_slice %collapsed_8[%arg4, 0, 0] [1, 14, %rows] [1, 1, 1] : !lse to tensor<1x14x?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %extracted_slice into %arg5[0, 0, %8, 0] [1, 14, %rows, 64] [1, 1, 1, 1] : tensor<1x14x?x64xbf16> into tensor<1x14x?x64xbf16>
      tensor.parallel_insert_slice %extracted_slice_10 into %arg6[0, 0, %8] [1, 14, %rows] [1, 1, 1] : tensor<1x14x?xf32> into tensor<1x14x?xf32>
    }
  }
  return %7#0, %7#1 : tensor<1x14x?x64xbf16>, tensor<1x14x?xf32>
}

// -----

// A result that is transposed has the heads of a query side by side, as the tile has them.
// CHECK-LABEL: func @transposed
// CHECK:       scf.forall (%{{.*}}, %{{.*}}, %{{.*}}) = {{.*}} shared_outs(%[[OUT:.*]] = %{{.*}}, %{{.*}} = %{{.*}}) -> (tensor<1x?x8x64xbf16>, tensor<1x8x?xf32>)
// CHECK:         %[[O:.*]]:2 = attn.finalize
// CHECK:         %[[CO:.*]] = tensor.collapse_shape %[[O]]#0
// CHECK-NEXT:    %[[XO:.*]] = tensor.expand_shape %[[CO]]
// CHECK:           tensor.parallel_insert_slice %[[XO]] into %[[OUT]][0, %[[PLACE:.*]], %[[HEAD:.*]], 0] [1, %{{.*}}, 4, 64]
// CHECK-NOT:   linalg.transpose
// CHECK:       return
!all = tensor<?x8x?x64xbf16>
!keys = tensor<?x2x?x64xbf16>
!lse = tensor<?x8x?xf32>
func.func @transposed(%query: !all, %key: !keys, %starts: tensor<?xi32>, %rows: index) -> (tensor<1x?x8x64xbf16>, tensor<1x8x?xf32>) {
  %c4 = arith.constant 4 : index
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %dim = tensor.dim %key, %c0 : !keys
  %dim_0 = tensor.dim %query, %c2 : !all
  %0 = tensor.empty(%dim, %rows) : !all
  %1 = scf.forall (%arg4) in (%dim) shared_outs(%arg5 = %0) -> (!all) {
    %extracted = tensor.extract %starts[%arg4] : tensor<?xi32>
    %8 = arith.index_cast %extracted : i32 to index
    %extracted_slice = tensor.extract_slice %query[0, 0, %8, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : !all to tensor<1x8x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %extracted_slice into %arg5[%arg4, 0, 0, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : tensor<1x8x?x64xbf16> into !all
    }
  }
  %expanded = tensor.expand_shape %1 [[0], [1, 2], [3], [4]] output_shape [%dim, 2, 4, %rows, 64] : !all into tensor<?x2x4x?x64xbf16>
  %2 = tensor.empty(%dim, %rows) : tensor<?x2x?x4x64xbf16>
  %transposed = linalg.transpose ins(%expanded : tensor<?x2x4x?x64xbf16>) outs(%2 : tensor<?x2x?x4x64xbf16>) permutation = [0, 1, 3, 2, 4] 
  %collapsed = tensor.collapse_shape %transposed [[0], [1], [2, 3], [4]] : tensor<?x2x?x4x64xbf16> into !keys
  %output, %lse = attn.attention %collapsed, %key, %key scale(1.250000e-01)  mask {
  ^bb0(%arg4: index, %arg5: index, %arg6: index, %arg7: index):
    %8 = arith.divui %arg6, %c4 : index
    %extracted = tensor.extract %starts[%arg4] : tensor<?xi32>
    %9 = arith.index_cast %extracted : i32 to index
    %10 = arith.addi %8, %9 : index
    %11 = arith.cmpi sge, %10, %arg7 : index
    attn.yield %11 : i1
  } {schedule = #attn.schedule<tile = 128x64, order = linear, warps = 4, stages = 2>} : !keys, !keys, !keys -> !keys, tensor<?x2x?xf32>
  %dim_1 = tensor.dim %output, %c0 : !keys
  %expanded_2 = tensor.expand_shape %output [[0], [1], [2, 3], [4]] output_shape [%dim_1, 2, %rows, 4, 64] : !keys into tensor<?x2x?x4x64xbf16>
  %3 = tensor.empty(%dim_1, %rows) : tensor<?x2x4x?x64xbf16>
  %transposed_3 = linalg.transpose ins(%expanded_2 : tensor<?x2x?x4x64xbf16>) outs(%3 : tensor<?x2x4x?x64xbf16>) permutation = [0, 1, 3, 2, 4] 
  %collapsed_4 = tensor.collapse_shape %transposed_3 [[0], [1, 2], [3], [4]] : tensor<?x2x4x?x64xbf16> into !all
  %dim_5 = tensor.dim %lse, %c0 : tensor<?x2x?xf32>
  %expanded_6 = tensor.expand_shape %lse [[0], [1], [2, 3]] output_shape [%dim_5, 2, %rows, 4] : tensor<?x2x?xf32> into tensor<?x2x?x4xf32>
  %4 = tensor.empty(%dim_5, %rows) : tensor<?x2x4x?xf32>
  %transposed_7 = linalg.transpose ins(%expanded_6 : tensor<?x2x?x4xf32>) outs(%4 : tensor<?x2x4x?xf32>) permutation = [0, 1, 3, 2] 
  %collapsed_8 = tensor.collapse_shape %transposed_7 [[0], [1, 2], [3]] : tensor<?x2x4x?xf32> into !lse
  %5 = tensor.empty(%dim_0) : tensor<1x8x?x64xbf16>
  %6 = tensor.empty(%dim_0) : tensor<1x8x?xf32>
  %7:2 = scf.forall (%arg4) in (%dim) shared_outs(%arg5 = %5, %arg6 = %6) -> (tensor<1x8x?x64xbf16>, tensor<1x8x?xf32>) {
    %extracted = tensor.extract %starts[%arg4] : tensor<?xi32>
    %8 = arith.index_cast %extracted : i32 to index
    %extracted_slice = tensor.extract_slice %collapsed_4[%arg4, 0, 0, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : !all to tensor<1x8x?x64xbf16>
    %extracted_slice_10 = tensor.extract_slice %collapsed_8[%arg4, 0, 0] [1, 8, %rows] [1, 1, 1] : !lse to tensor<1x8x?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %extracted_slice into %arg5[0, 0, %8, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : tensor<1x8x?x64xbf16> into tensor<1x8x?x64xbf16>
      tensor.parallel_insert_slice %extracted_slice_10 into %arg6[0, 0, %8] [1, 8, %rows] [1, 1, 1] : tensor<1x8x?xf32> into tensor<1x8x?xf32>
    }
  }
  %turned_room = tensor.empty(%dim_0) : tensor<1x?x8x64xbf16>
  %turned = linalg.transpose ins(%7#0 : tensor<1x8x?x64xbf16>) outs(%turned_room : tensor<1x?x8x64xbf16>) permutation = [0, 2, 1, 3]
  return %turned, %7#1 : tensor<1x?x8x64xbf16>, tensor<1x8x?xf32>
}

// -----

// What else reads rows reads them padded: loops copy results, and queries, whose heads
// tiles have still.
// CHECK-LABEL: func @read_by_rows
// CHECK:       %[[PADDED:.*]] = scf.forall (%{{[^,]*}}) in
// CHECK-NOT:   linalg.transpose
// CHECK:       scf.forall (%{{.*}}, %{{.*}}, %{{.*}}) =
// CHECK:         tensor.extract_slice %[[PADDED]][%{{.*}}, %{{.*}}, %{{.*}}, 0] [1, 4, %{{.*}}, 64]
// CHECK:         %[[O:.*]]:2 = attn.finalize
// CHECK:           tensor.parallel_insert_slice %[[O]]#0
// CHECK:       linalg.transpose
// CHECK:       scf.forall (%{{[^,]*}}) in
!all = tensor<?x8x?x64xbf16>
!keys = tensor<?x2x?x64xbf16>
!lse = tensor<?x8x?xf32>
func.func @read_by_rows(%query: !all, %key: !keys, %starts: tensor<?xi32>, %rows: index) -> (tensor<1x8x?x64xbf16>, tensor<1x8x?xf32>, !keys) {
  %c4 = arith.constant 4 : index
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %dim = tensor.dim %key, %c0 : !keys
  %dim_0 = tensor.dim %query, %c2 : !all
  %0 = tensor.empty(%dim, %rows) : !all
  %1 = scf.forall (%arg4) in (%dim) shared_outs(%arg5 = %0) -> (!all) {
    %extracted = tensor.extract %starts[%arg4] : tensor<?xi32>
    %8 = arith.index_cast %extracted : i32 to index
    %extracted_slice = tensor.extract_slice %query[0, 0, %8, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : !all to tensor<1x8x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %extracted_slice into %arg5[%arg4, 0, 0, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : tensor<1x8x?x64xbf16> into !all
    }
  }
  %expanded = tensor.expand_shape %1 [[0], [1, 2], [3], [4]] output_shape [%dim, 2, 4, %rows, 64] : !all into tensor<?x2x4x?x64xbf16>
  %2 = tensor.empty(%dim, %rows) : tensor<?x2x?x4x64xbf16>
  %transposed = linalg.transpose ins(%expanded : tensor<?x2x4x?x64xbf16>) outs(%2 : tensor<?x2x?x4x64xbf16>) permutation = [0, 1, 3, 2, 4] 
  %collapsed = tensor.collapse_shape %transposed [[0], [1], [2, 3], [4]] : tensor<?x2x?x4x64xbf16> into !keys
  %output, %lse = attn.attention %collapsed, %key, %key scale(1.250000e-01)  mask {
  ^bb0(%arg4: index, %arg5: index, %arg6: index, %arg7: index):
    %8 = arith.divui %arg6, %c4 : index
    %extracted = tensor.extract %starts[%arg4] : tensor<?xi32>
    %9 = arith.index_cast %extracted : i32 to index
    %10 = arith.addi %8, %9 : index
    %11 = arith.cmpi sge, %10, %arg7 : index
    attn.yield %11 : i1
  } {schedule = #attn.schedule<tile = 128x64, order = linear, warps = 4, stages = 2>} : !keys, !keys, !keys -> !keys, tensor<?x2x?xf32>
  %dim_1 = tensor.dim %output, %c0 : !keys
  %expanded_2 = tensor.expand_shape %output [[0], [1], [2, 3], [4]] output_shape [%dim_1, 2, %rows, 4, 64] : !keys into tensor<?x2x?x4x64xbf16>
  %3 = tensor.empty(%dim_1, %rows) : tensor<?x2x4x?x64xbf16>
  %transposed_3 = linalg.transpose ins(%expanded_2 : tensor<?x2x?x4x64xbf16>) outs(%3 : tensor<?x2x4x?x64xbf16>) permutation = [0, 1, 3, 2, 4] 
  %collapsed_4 = tensor.collapse_shape %transposed_3 [[0], [1, 2], [3], [4]] : tensor<?x2x4x?x64xbf16> into !all
  %dim_5 = tensor.dim %lse, %c0 : tensor<?x2x?xf32>
  %expanded_6 = tensor.expand_shape %lse [[0], [1], [2, 3]] output_shape [%dim_5, 2, %rows, 4] : tensor<?x2x?xf32> into tensor<?x2x?x4xf32>
  %4 = tensor.empty(%dim_5, %rows) : tensor<?x2x4x?xf32>
  %transposed_7 = linalg.transpose ins(%expanded_6 : tensor<?x2x?x4xf32>) outs(%4 : tensor<?x2x4x?xf32>) permutation = [0, 1, 3, 2] 
  %collapsed_8 = tensor.collapse_shape %transposed_7 [[0], [1, 2], [3]] : tensor<?x2x4x?xf32> into !lse
  %5 = tensor.empty(%dim_0) : tensor<1x8x?x64xbf16>
  %6 = tensor.empty(%dim_0) : tensor<1x8x?xf32>
  %7:2 = scf.forall (%arg4) in (%dim) shared_outs(%arg5 = %5, %arg6 = %6) -> (tensor<1x8x?x64xbf16>, tensor<1x8x?xf32>) {
    %extracted = tensor.extract %starts[%arg4] : tensor<?xi32>
    %8 = arith.index_cast %extracted : i32 to index
    %extracted_slice = tensor.extract_slice %collapsed_4[%arg4, 0, 0, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : !all to tensor<1x8x?x64xbf16>
    %extracted_slice_10 = tensor.extract_slice %collapsed_8[%arg4, 0, 0] [1, 8, %rows] [1, 1, 1] : !lse to tensor<1x8x?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %extracted_slice into %arg5[0, 0, %8, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : tensor<1x8x?x64xbf16> into tensor<1x8x?x64xbf16>
      tensor.parallel_insert_slice %extracted_slice_10 into %arg6[0, 0, %8] [1, 8, %rows] [1, 1, 1] : tensor<1x8x?xf32> into tensor<1x8x?xf32>
    }
  }
  return %7#0, %7#1, %output : tensor<1x8x?x64xbf16>, tensor<1x8x?xf32>, !keys
}

// -----

// What else reads the heads of a result reads them padded, too, as tiles write them.
// CHECK-LABEL: func @read_by_heads
// CHECK:       %[[HEADS:.*]]:2 = scf.forall (%{{.*}}, %{{.*}}, %{{.*}}) = {{.*}} -> (tensor<?x8x?x64xbf16>, tensor<?x8x?xf32>)
// CHECK:         tensor.parallel_insert_slice {{.*}} [1, 4, %{{.*}}, 64]
// CHECK-NOT:   linalg.transpose
// CHECK:       %[[COPIED:.*]]:2 = scf.forall (%{{[^,]*}}) in
// CHECK:       return %[[COPIED]]#0, %[[COPIED]]#1, %[[HEADS]]#0
!all = tensor<?x8x?x64xbf16>
!keys = tensor<?x2x?x64xbf16>
!lse = tensor<?x8x?xf32>
func.func @read_by_heads(%query: !all, %key: !keys, %starts: tensor<?xi32>, %rows: index) -> (tensor<1x8x?x64xbf16>, tensor<1x8x?xf32>, !all) {
  %c4 = arith.constant 4 : index
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %dim = tensor.dim %key, %c0 : !keys
  %dim_0 = tensor.dim %query, %c2 : !all
  %0 = tensor.empty(%dim, %rows) : !all
  %1 = scf.forall (%arg4) in (%dim) shared_outs(%arg5 = %0) -> (!all) {
    %extracted = tensor.extract %starts[%arg4] : tensor<?xi32>
    %8 = arith.index_cast %extracted : i32 to index
    %extracted_slice = tensor.extract_slice %query[0, 0, %8, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : !all to tensor<1x8x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %extracted_slice into %arg5[%arg4, 0, 0, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : tensor<1x8x?x64xbf16> into !all
    }
  }
  %expanded = tensor.expand_shape %1 [[0], [1, 2], [3], [4]] output_shape [%dim, 2, 4, %rows, 64] : !all into tensor<?x2x4x?x64xbf16>
  %2 = tensor.empty(%dim, %rows) : tensor<?x2x?x4x64xbf16>
  %transposed = linalg.transpose ins(%expanded : tensor<?x2x4x?x64xbf16>) outs(%2 : tensor<?x2x?x4x64xbf16>) permutation = [0, 1, 3, 2, 4]
  %collapsed = tensor.collapse_shape %transposed [[0], [1], [2, 3], [4]] : tensor<?x2x?x4x64xbf16> into !keys
  %output, %lse = attn.attention %collapsed, %key, %key scale(1.250000e-01)  mask {
  ^bb0(%arg4: index, %arg5: index, %arg6: index, %arg7: index):
    %8 = arith.divui %arg6, %c4 : index
    %extracted = tensor.extract %starts[%arg4] : tensor<?xi32>
    %9 = arith.index_cast %extracted : i32 to index
    %10 = arith.addi %8, %9 : index
    %11 = arith.cmpi sge, %10, %arg7 : index
    attn.yield %11 : i1
  } {schedule = #attn.schedule<tile = 128x64, order = linear, warps = 4, stages = 2>} : !keys, !keys, !keys -> !keys, tensor<?x2x?xf32>
  %dim_1 = tensor.dim %output, %c0 : !keys
  %expanded_2 = tensor.expand_shape %output [[0], [1], [2, 3], [4]] output_shape [%dim_1, 2, %rows, 4, 64] : !keys into tensor<?x2x?x4x64xbf16>
  %3 = tensor.empty(%dim_1, %rows) : tensor<?x2x4x?x64xbf16>
  %transposed_3 = linalg.transpose ins(%expanded_2 : tensor<?x2x?x4x64xbf16>) outs(%3 : tensor<?x2x4x?x64xbf16>) permutation = [0, 1, 3, 2, 4]
  %collapsed_4 = tensor.collapse_shape %transposed_3 [[0], [1, 2], [3], [4]] : tensor<?x2x4x?x64xbf16> into !all
  %dim_5 = tensor.dim %lse, %c0 : tensor<?x2x?xf32>
  %expanded_6 = tensor.expand_shape %lse [[0], [1], [2, 3]] output_shape [%dim_5, 2, %rows, 4] : tensor<?x2x?xf32> into tensor<?x2x?x4xf32>
  %4 = tensor.empty(%dim_5, %rows) : tensor<?x2x4x?xf32>
  %transposed_7 = linalg.transpose ins(%expanded_6 : tensor<?x2x?x4xf32>) outs(%4 : tensor<?x2x4x?xf32>) permutation = [0, 1, 3, 2]
  %collapsed_8 = tensor.collapse_shape %transposed_7 [[0], [1, 2], [3]] : tensor<?x2x4x?xf32> into !lse
  %5 = tensor.empty(%dim_0) : tensor<1x8x?x64xbf16>
  %6 = tensor.empty(%dim_0) : tensor<1x8x?xf32>
  %7:2 = scf.forall (%arg4) in (%dim) shared_outs(%arg5 = %5, %arg6 = %6) -> (tensor<1x8x?x64xbf16>, tensor<1x8x?xf32>) {
    %extracted = tensor.extract %starts[%arg4] : tensor<?xi32>
    %8 = arith.index_cast %extracted : i32 to index
    %extracted_slice = tensor.extract_slice %collapsed_4[%arg4, 0, 0, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : !all to tensor<1x8x?x64xbf16>
    %extracted_slice_10 = tensor.extract_slice %collapsed_8[%arg4, 0, 0] [1, 8, %rows] [1, 1, 1] : !lse to tensor<1x8x?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %extracted_slice into %arg5[0, 0, %8, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : tensor<1x8x?x64xbf16> into tensor<1x8x?x64xbf16>
      tensor.parallel_insert_slice %extracted_slice_10 into %arg6[0, 0, %8] [1, 8, %rows] [1, 1, 1] : tensor<1x8x?xf32> into tensor<1x8x?xf32>
    }
  }
  return %7#0, %7#1, %collapsed_4 : tensor<1x8x?x64xbf16>, tensor<1x8x?xf32>, !all
}

// -----

// Tiles that begin amid the heads of a query are read and written padded.
// CHECK-LABEL: func @uneven
// CHECK:       scf.forall (%{{[^,]*}}) in
// CHECK:       linalg.transpose
// CHECK:       scf.forall (%{{.*}}, %{{.*}}, %{{.*}}) = {{.*}} step (1, 1, 66)
// CHECK:       linalg.transpose
// CHECK:       scf.forall (%{{[^,]*}}) in
!all = tensor<?x8x?x64xbf16>
!keys = tensor<?x2x?x64xbf16>
!lse = tensor<?x8x?xf32>
func.func @uneven(%query: !all, %key: !keys, %starts: tensor<?xi32>, %rows: index) -> (tensor<1x8x?x64xbf16>, tensor<1x8x?xf32>) {
  %c4 = arith.constant 4 : index
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %dim = tensor.dim %key, %c0 : !keys
  %dim_0 = tensor.dim %query, %c2 : !all
  %0 = tensor.empty(%dim, %rows) : !all
  %1 = scf.forall (%arg4) in (%dim) shared_outs(%arg5 = %0) -> (!all) {
    %extracted = tensor.extract %starts[%arg4] : tensor<?xi32>
    %8 = arith.index_cast %extracted : i32 to index
    %extracted_slice = tensor.extract_slice %query[0, 0, %8, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : !all to tensor<1x8x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %extracted_slice into %arg5[%arg4, 0, 0, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : tensor<1x8x?x64xbf16> into !all
    }
  }
  %expanded = tensor.expand_shape %1 [[0], [1, 2], [3], [4]] output_shape [%dim, 2, 4, %rows, 64] : !all into tensor<?x2x4x?x64xbf16>
  %2 = tensor.empty(%dim, %rows) : tensor<?x2x?x4x64xbf16>
  %transposed = linalg.transpose ins(%expanded : tensor<?x2x4x?x64xbf16>) outs(%2 : tensor<?x2x?x4x64xbf16>) permutation = [0, 1, 3, 2, 4] 
  %collapsed = tensor.collapse_shape %transposed [[0], [1], [2, 3], [4]] : tensor<?x2x?x4x64xbf16> into !keys
  %output, %lse = attn.attention %collapsed, %key, %key scale(1.250000e-01)  mask {
  ^bb0(%arg4: index, %arg5: index, %arg6: index, %arg7: index):
    %8 = arith.divui %arg6, %c4 : index
    %extracted = tensor.extract %starts[%arg4] : tensor<?xi32>
    %9 = arith.index_cast %extracted : i32 to index
    %10 = arith.addi %8, %9 : index
    %11 = arith.cmpi sge, %10, %arg7 : index
    attn.yield %11 : i1
  } {schedule = #attn.schedule<tile = 66x64, order = linear>} : !keys, !keys, !keys -> !keys, tensor<?x2x?xf32>
  %dim_1 = tensor.dim %output, %c0 : !keys
  %expanded_2 = tensor.expand_shape %output [[0], [1], [2, 3], [4]] output_shape [%dim_1, 2, %rows, 4, 64] : !keys into tensor<?x2x?x4x64xbf16>
  %3 = tensor.empty(%dim_1, %rows) : tensor<?x2x4x?x64xbf16>
  %transposed_3 = linalg.transpose ins(%expanded_2 : tensor<?x2x?x4x64xbf16>) outs(%3 : tensor<?x2x4x?x64xbf16>) permutation = [0, 1, 3, 2, 4] 
  %collapsed_4 = tensor.collapse_shape %transposed_3 [[0], [1, 2], [3], [4]] : tensor<?x2x4x?x64xbf16> into !all
  %dim_5 = tensor.dim %lse, %c0 : tensor<?x2x?xf32>
  %expanded_6 = tensor.expand_shape %lse [[0], [1], [2, 3]] output_shape [%dim_5, 2, %rows, 4] : tensor<?x2x?xf32> into tensor<?x2x?x4xf32>
  %4 = tensor.empty(%dim_5, %rows) : tensor<?x2x4x?xf32>
  %transposed_7 = linalg.transpose ins(%expanded_6 : tensor<?x2x?x4xf32>) outs(%4 : tensor<?x2x4x?xf32>) permutation = [0, 1, 3, 2] 
  %collapsed_8 = tensor.collapse_shape %transposed_7 [[0], [1, 2], [3]] : tensor<?x2x4x?xf32> into !lse
  %5 = tensor.empty(%dim_0) : tensor<1x8x?x64xbf16>
  %6 = tensor.empty(%dim_0) : tensor<1x8x?xf32>
  %7:2 = scf.forall (%arg4) in (%dim) shared_outs(%arg5 = %5, %arg6 = %6) -> (tensor<1x8x?x64xbf16>, tensor<1x8x?xf32>) {
    %extracted = tensor.extract %starts[%arg4] : tensor<?xi32>
    %8 = arith.index_cast %extracted : i32 to index
    %extracted_slice = tensor.extract_slice %collapsed_4[%arg4, 0, 0, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : !all to tensor<1x8x?x64xbf16>
    %extracted_slice_10 = tensor.extract_slice %collapsed_8[%arg4, 0, 0] [1, 8, %rows] [1, 1, 1] : !lse to tensor<1x8x?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %extracted_slice into %arg5[0, 0, %8, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : tensor<1x8x?x64xbf16> into tensor<1x8x?x64xbf16>
      tensor.parallel_insert_slice %extracted_slice_10 into %arg6[0, 0, %8] [1, 8, %rows] [1, 1, 1] : tensor<1x8x?xf32> into tensor<1x8x?xf32>
    }
  }
  return %7#0, %7#1 : tensor<1x8x?x64xbf16>, tensor<1x8x?xf32>
}

// -----

// Rows that a transposition puts in another order, but joins to no heads.
// CHECK-LABEL: func @rows_of_heads
// CHECK:       scf.forall (%{{.*}}, %{{.*}}, %{{.*}}) =
// CHECK-NOT:     linalg.transpose
// CHECK:           tensor.parallel_insert_slice
// CHECK:       linalg.transpose
// CHECK:       scf.forall (%{{[^,]*}}) in
!keys = tensor<?x2x?x64xbf16>
func.func @rows_of_heads(%q: !keys, %key: !keys, %starts: tensor<?xi32>, %rows: index, %tokens: index) -> tensor<1x2x?x64xbf16> {
  %c0 = arith.constant 0 : index
  %batch = tensor.dim %q, %c0 : !keys
  %o = attn.attention %q, %key, %key scale(0.125) {schedule = #attn.schedule<tile = 128x64, order = linear, warps = 4, stages = 2>}
    : !keys, !keys, !keys -> !keys
  %split = tensor.expand_shape %o [[0], [1], [2, 3], [4]] output_shape [%batch, 2, %rows, 4, 64] : !keys into tensor<?x2x?x4x64xbf16>
  %empty = tensor.empty(%batch, %rows) : tensor<?x2x4x?x64xbf16>
  %turned = linalg.transpose ins(%split : tensor<?x2x?x4x64xbf16>) outs(%empty : tensor<?x2x4x?x64xbf16>) permutation = [0, 1, 3, 2, 4]
  %same = tensor.collapse_shape %turned [[0], [1], [2, 3], [4]] : tensor<?x2x4x?x64xbf16> into !keys
  %room = tensor.empty(%tokens) : tensor<1x2x?x64xbf16>
  %packed = scf.forall (%b) in (%batch) shared_outs(%out = %room) -> (tensor<1x2x?x64xbf16>) {
    %n = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %n : i32 to index
    %some = tensor.extract_slice %same[%b, 0, 0, 0] [1, 2, %rows, 64] [1, 1, 1, 1] : !keys to tensor<1x2x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[0, 0, %start, 0] [1, 2, %rows, 64] [1, 1, 1, 1] : tensor<1x2x?x64xbf16> into tensor<1x2x?x64xbf16>
    }
  }
  return %packed : tensor<1x2x?x64xbf16>
}

// -----

// Heads that are divided, not rows.
// CHECK-LABEL: func @heads_in_two
// CHECK:       scf.forall (%{{.*}}, %{{.*}}) in
// CHECK-NOT:     linalg.transpose
// CHECK:           tensor.parallel_insert_slice
// CHECK:       linalg.transpose
// CHECK:       scf.forall (%{{[^,]*}}) in
!keys = tensor<?x2x?x64xbf16>
!some = tensor<?x4x8x64xbf16>
func.func @heads_in_two(%q: !some, %key: !keys, %starts: tensor<?xi32>, %rows: index, %tokens: index) -> tensor<1x16x?x64xbf16> {
  %c0 = arith.constant 0 : index
  %batch = tensor.dim %q, %c0 : !some
  %o = attn.attention %q, %key, %key scale(0.125) {schedule = #attn.schedule<tile = 128x64, order = linear, warps = 4, stages = 2>}
    : !some, !keys, !keys -> !some
  %split = tensor.expand_shape %o [[0], [1, 2], [3], [4]] output_shape [%batch, 2, 2, 8, 64] : !some into tensor<?x2x2x8x64xbf16>
  %empty = tensor.empty(%batch) : tensor<?x2x8x2x64xbf16>
  %turned = linalg.transpose ins(%split : tensor<?x2x2x8x64xbf16>) outs(%empty : tensor<?x2x8x2x64xbf16>) permutation = [0, 1, 3, 2, 4]
  %joined = tensor.collapse_shape %turned [[0], [1, 2], [3], [4]] : tensor<?x2x8x2x64xbf16> into tensor<?x16x2x64xbf16>
  %room = tensor.empty(%tokens) : tensor<1x16x?x64xbf16>
  %packed = scf.forall (%b) in (%batch) shared_outs(%out = %room) -> (tensor<1x16x?x64xbf16>) {
    %n = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %n : i32 to index
    %some = tensor.extract_slice %joined[%b, 0, 0, 0] [1, 16, %rows, 64] [1, 1, 1, 1] : tensor<?x16x2x64xbf16> to tensor<1x16x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[0, 0, %start, 0] [1, 16, %rows, 64] [1, 1, 1, 1] : tensor<1x16x?x64xbf16> into tensor<1x16x?x64xbf16>
    }
  }
  return %packed : tensor<1x16x?x64xbf16>
}

// -----

// Queries, not the heads of one, that are joined to the heads.
// CHECK-LABEL: func @other_order
// CHECK:       scf.forall (%{{.*}}, %{{.*}}, %{{.*}}) =
// CHECK-NOT:     linalg.transpose
// CHECK:           tensor.parallel_insert_slice
// CHECK:       linalg.transpose
// CHECK:       scf.forall (%{{[^,]*}}) in
!keys = tensor<?x2x?x64xbf16>
!some = tensor<?x2x256x64xbf16>
func.func @other_order(%q: !some, %key: !keys, %starts: tensor<?xi32>, %rows: index, %tokens: index) -> tensor<1x128x?x64xbf16> {
  %c0 = arith.constant 0 : index
  %batch = tensor.dim %q, %c0 : !some
  %o = attn.attention %q, %key, %key scale(0.125) {schedule = #attn.schedule<tile = 128x64, order = linear, warps = 4, stages = 2>}
    : !some, !keys, !keys -> !some
  %split = tensor.expand_shape %o [[0], [1], [2, 3], [4]] output_shape [%batch, 2, 64, 4, 64] : !some into tensor<?x2x64x4x64xbf16>
  %empty = tensor.empty(%batch) : tensor<?x64x2x4x64xbf16>
  %turned = linalg.transpose ins(%split : tensor<?x2x64x4x64xbf16>) outs(%empty : tensor<?x64x2x4x64xbf16>) permutation = [0, 2, 1, 3, 4]
  %joined = tensor.collapse_shape %turned [[0], [1, 2], [3], [4]] : tensor<?x64x2x4x64xbf16> into tensor<?x128x4x64xbf16>
  %room = tensor.empty(%tokens) : tensor<1x128x?x64xbf16>
  %packed = scf.forall (%b) in (%batch) shared_outs(%out = %room) -> (tensor<1x128x?x64xbf16>) {
    %n = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %n : i32 to index
    %some = tensor.extract_slice %joined[%b, 0, 0, 0] [1, 128, %rows, 64] [1, 1, 1, 1] : tensor<?x128x4x64xbf16> to tensor<1x128x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[0, 0, %start, 0] [1, 128, %rows, 64] [1, 1, 1, 1] : tensor<1x128x?x64xbf16> into tensor<1x128x?x64xbf16>
    }
  }
  return %packed : tensor<1x128x?x64xbf16>
}

// -----

// Results that have the queries of two heads in one, whose rows lie elsewhere than those
// of queries, which have four.
// CHECK-LABEL: func @other_groups
// CHECK:       scf.forall (%{{[^,]*}}) in
// CHECK:       linalg.transpose
// CHECK:       scf.forall (%{{.*}}, %{{.*}}, %{{.*}}) = {{.*}} shared_outs(%[[OUT:.*]] = %{{.*}}) -> (tensor<1x4x?x64xbf16>)
// CHECK:           tensor.parallel_insert_slice %{{.*}} into %[[OUT]][0, %{{.*}}, %{{.*}}, 0] [1, 2, %{{.*}}, 64]
// CHECK-NOT:   scf.forall
// CHECK:       return
!all = tensor<?x8x?x64xbf16>
!keys = tensor<?x2x?x64xbf16>
func.func @other_groups(%query: !all, %key: !keys, %starts: tensor<?xi32>, %rows: index, %tokens: index) -> tensor<1x4x?x64xbf16> {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %batch = tensor.dim %key, %c0 : !keys
  %twice = arith.muli %rows, %c2 : index
  %queries_room = tensor.empty(%batch, %rows) : !all
  %copied = scf.forall (%b) in (%batch) shared_outs(%out = %queries_room) -> (!all) {
    %n = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %n : i32 to index
    %some = tensor.extract_slice %query[0, 0, %start, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : !all to tensor<1x8x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[%b, 0, 0, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : tensor<1x8x?x64xbf16> into !all
    }
  }
  %heads = tensor.expand_shape %copied [[0], [1, 2], [3], [4]] output_shape [%batch, 2, 4, %rows, 64] : !all into tensor<?x2x4x?x64xbf16>
  %queries_empty = tensor.empty(%batch, %rows) : tensor<?x2x?x4x64xbf16>
  %queries = linalg.transpose ins(%heads : tensor<?x2x4x?x64xbf16>) outs(%queries_empty : tensor<?x2x?x4x64xbf16>) permutation = [0, 1, 3, 2, 4]
  %q = tensor.collapse_shape %queries [[0], [1], [2, 3], [4]] : tensor<?x2x?x4x64xbf16> into !keys
  %o = attn.attention %q, %key, %key scale(0.125) {schedule = #attn.schedule<tile = 128x64, order = linear, warps = 4, stages = 2>}
    : !keys, !keys, !keys -> !keys
  %split = tensor.expand_shape %o [[0], [1], [2, 3], [4]] output_shape [%batch, 2, %twice, 2, 64] : !keys into tensor<?x2x?x2x64xbf16>
  %empty = tensor.empty(%batch, %twice) : tensor<?x2x2x?x64xbf16>
  %turned = linalg.transpose ins(%split : tensor<?x2x?x2x64xbf16>) outs(%empty : tensor<?x2x2x?x64xbf16>) permutation = [0, 1, 3, 2, 4]
  %joined = tensor.collapse_shape %turned [[0], [1, 2], [3], [4]] : tensor<?x2x2x?x64xbf16> into tensor<?x4x?x64xbf16>
  %room = tensor.empty(%tokens) : tensor<1x4x?x64xbf16>
  %packed = scf.forall (%b) in (%batch) shared_outs(%out = %room) -> (tensor<1x4x?x64xbf16>) {
    %n = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %n : i32 to index
    %some = tensor.extract_slice %joined[%b, 0, 0, 0] [1, 4, %rows, 64] [1, 1, 1, 1] : tensor<?x4x?x64xbf16> to tensor<1x4x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[0, 0, %start, 0] [1, 4, %rows, 64] [1, 1, 1, 1] : tensor<1x4x?x64xbf16> into tensor<1x4x?x64xbf16>
    }
  }
  return %packed : tensor<1x4x?x64xbf16>
}

// -----

// A log-sum-exp that has the queries of two heads in one, with an output that has four.
// CHECK-LABEL: func @other_lse
// CHECK:       scf.forall (%{{.*}}, %{{.*}}, %{{.*}}) =
// CHECK-NOT:     linalg.transpose
// CHECK:           tensor.parallel_insert_slice
// CHECK:       linalg.transpose
// CHECK:       scf.forall (%{{[^,]*}}) in
!all = tensor<?x8x?x64xbf16>
!keys = tensor<?x2x?x64xbf16>
!lse = tensor<?x2x?xf32>
func.func @other_lse(%q: !keys, %key: !keys, %starts: tensor<?xi32>, %rows: index, %tokens: index) -> (tensor<1x8x?x64xbf16>, tensor<1x4x?xf32>) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %batch = tensor.dim %q, %c0 : !keys
  %twice = arith.muli %rows, %c2 : index
  %o, %l = attn.attention %q, %key, %key scale(0.125) {schedule = #attn.schedule<tile = 128x64, order = linear, warps = 4, stages = 2>}
    : !keys, !keys, !keys -> !keys, !lse
  %split = tensor.expand_shape %o [[0], [1], [2, 3], [4]] output_shape [%batch, 2, %rows, 4, 64] : !keys into tensor<?x2x?x4x64xbf16>
  %empty = tensor.empty(%batch, %rows) : tensor<?x2x4x?x64xbf16>
  %turned = linalg.transpose ins(%split : tensor<?x2x?x4x64xbf16>) outs(%empty : tensor<?x2x4x?x64xbf16>) permutation = [0, 1, 3, 2, 4]
  %joined = tensor.collapse_shape %turned [[0], [1, 2], [3], [4]] : tensor<?x2x4x?x64xbf16> into !all
  %lse_split = tensor.expand_shape %l [[0], [1], [2, 3]] output_shape [%batch, 2, %twice, 2] : !lse into tensor<?x2x?x2xf32>
  %lse_empty = tensor.empty(%batch, %twice) : tensor<?x2x2x?xf32>
  %lse_turned = linalg.transpose ins(%lse_split : tensor<?x2x?x2xf32>) outs(%lse_empty : tensor<?x2x2x?xf32>) permutation = [0, 1, 3, 2]
  %lse_joined = tensor.collapse_shape %lse_turned [[0], [1, 2], [3]] : tensor<?x2x2x?xf32> into tensor<?x4x?xf32>
  %room = tensor.empty(%tokens) : tensor<1x8x?x64xbf16>
  %lse_room = tensor.empty(%tokens) : tensor<1x4x?xf32>
  %packed:2 = scf.forall (%b) in (%batch) shared_outs(%out = %room, %lse_out = %lse_room) -> (tensor<1x8x?x64xbf16>, tensor<1x4x?xf32>) {
    %n = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %n : i32 to index
    %some = tensor.extract_slice %joined[%b, 0, 0, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : !all to tensor<1x8x?x64xbf16>
    %lse_some = tensor.extract_slice %lse_joined[%b, 0, 0] [1, 4, %rows] [1, 1, 1] : tensor<?x4x?xf32> to tensor<1x4x?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[0, 0, %start, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : tensor<1x8x?x64xbf16> into tensor<1x8x?x64xbf16>
      tensor.parallel_insert_slice %lse_some into %lse_out[0, 0, %start] [1, 4, %rows] [1, 1, 1] : tensor<1x4x?xf32> into tensor<1x4x?xf32>
    }
  }
  return %packed#0, %packed#1 : tensor<1x8x?x64xbf16>, tensor<1x4x?xf32>
}

// -----

// A mask alone asks how many queries there are: passes without one are not told.
// CHECK-LABEL: func @unmasked
// CHECK-NOT:   scf.forall (%{{[^,]*}}) in
// CHECK:       scf.forall (%{{.*}}, %{{.*}}, %{{.*}}) =
// CHECK:         linalg.transpose
// CHECK:         attn.online_attention
// CHECK-NOT:     whole[
// CHECK:       return
!all = tensor<?x8x?x64xbf16>
!keys = tensor<?x2x?x64xbf16>
func.func @unmasked(%query: !all, %key: !keys, %starts: tensor<?xi32>, %rows: index, %tokens: index) -> tensor<1x8x?x64xbf16> {
  %c0 = arith.constant 0 : index
  %batch = tensor.dim %key, %c0 : !keys
  %queries_room = tensor.empty(%batch, %rows) : !all
  %copied = scf.forall (%b) in (%batch) shared_outs(%out = %queries_room) -> (!all) {
    %n = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %n : i32 to index
    %some = tensor.extract_slice %query[0, 0, %start, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : !all to tensor<1x8x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[%b, 0, 0, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : tensor<1x8x?x64xbf16> into !all
    }
  }
  %heads = tensor.expand_shape %copied [[0], [1, 2], [3], [4]] output_shape [%batch, 2, 4, %rows, 64] : !all into tensor<?x2x4x?x64xbf16>
  %queries_empty = tensor.empty(%batch, %rows) : tensor<?x2x?x4x64xbf16>
  %queries = linalg.transpose ins(%heads : tensor<?x2x4x?x64xbf16>) outs(%queries_empty : tensor<?x2x?x4x64xbf16>) permutation = [0, 1, 3, 2, 4]
  %q = tensor.collapse_shape %queries [[0], [1], [2, 3], [4]] : tensor<?x2x?x4x64xbf16> into !keys
  %o = attn.attention %q, %key, %key scale(0.125) {schedule = #attn.schedule<tile = 128x64, order = linear, warps = 4, stages = 2>}
    : !keys, !keys, !keys -> !keys
  %split = tensor.expand_shape %o [[0], [1], [2, 3], [4]] output_shape [%batch, 2, %rows, 4, 64] : !keys into tensor<?x2x?x4x64xbf16>
  %empty = tensor.empty(%batch, %rows) : tensor<?x2x4x?x64xbf16>
  %turned = linalg.transpose ins(%split : tensor<?x2x?x4x64xbf16>) outs(%empty : tensor<?x2x4x?x64xbf16>) permutation = [0, 1, 3, 2, 4]
  %joined = tensor.collapse_shape %turned [[0], [1, 2], [3], [4]] : tensor<?x2x4x?x64xbf16> into !all
  %room = tensor.empty(%tokens) : tensor<1x8x?x64xbf16>
  %packed = scf.forall (%b) in (%batch) shared_outs(%out = %room) -> (tensor<1x8x?x64xbf16>) {
    %n = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %n : i32 to index
    %some = tensor.extract_slice %joined[%b, 0, 0, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : !all to tensor<1x8x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[0, 0, %start, 0] [1, 8, %rows, 64] [1, 1, 1, 1] : tensor<1x8x?x64xbf16> into tensor<1x8x?x64xbf16>
    }
  }
  return %packed : tensor<1x8x?x64xbf16>
}
