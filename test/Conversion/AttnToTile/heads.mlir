// RUN: fovea-opt %s --attn-online-softmax --convert-elementwise-to-linalg --attn-tile --canonicalize --cse --convert-attn-to-tile --canonicalize --cse --split-input-file | FileCheck %s

// Rows that are the queries of a group's heads: a tile of them is loaded and stored where
// the heads of its queries lie, four neighbours along the heads. As many queries are
// stored as the sequence has, and so many rows.

// CHECK-LABEL: func @heads
// CHECK:       tile.launch
// CHECK:         %[[COUNT:.*]] = affine.min
// CHECK-DAG:     %[[HEAD:.*]] = arith.muli %{{.*}}, %c4
// CHECK-DAG:     %[[QUERIES:.*]] = arith.divsi %[[COUNT]], %c4
// CHECK:         tile.load %{{.*}}[%c0, %[[HEAD]], %[[PLACE:.*]], %c0] dims [2, 1, 3] inner 4 : memref<?x8x?x64xbf16
// CHECK:         scf.for
// CHECK-NOT:       inner
// CHECK:         %[[VALID:.*]] = arith.muli %[[QUERIES]], %c4
// CHECK:         tile.store %{{.*}}, %{{.*}}[%c0, %[[HEAD]], %[[PLACE]], %c0] dims [2, 1, 3] inner 4 valid(%[[VALID]]) : !tile.fragment<128x64xbf16>
// CHECK:         tile.store %{{.*}}, %{{.*}}[%c0, %[[HEAD]], %[[PLACE]]] dims [2, 1] inner 4 valid(%[[VALID]]) : !tile.fragment<128xf32>
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

// CHECK-LABEL: func @transposed
// CHECK:         tile.load %{{.*}}[%c0, %[[HEAD:.*]], %[[PLACE:.*]], %c0] dims [2, 1, 3] inner 4 :
// CHECK:         tile.store %{{.*}}, %{{.*}}[%c0, %[[PLACE]], %[[HEAD]], %c0] dims [1, 2, 3] inner 4 valid(
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
