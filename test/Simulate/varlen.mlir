// Packed sequences as flash_attn_varlen_func writes them on a GPU: keys are gathered from
// where they lie, no one says how long the longest sequence is, and rows of no sequence are
// those of two more, without keys: the rows in front of all others, and those behind.
//
// REQUIRES: numpy
// RUN: rm -rf %t && mkdir %t && %python %S/Inputs/packed.py %t
//
// DEFINE: %{list} = gaps
// DEFINE: %{rows} = 160
// DEFINE: %{keys} = 180
// DEFINE: %{operands} = --input=%t/%{list}-starts.npy --input=%t/%{list}-keys.npy --dims=query:1x2x%{rows}x128 --dims=key:1x1x%{keys}x128 --dims=value:1x1x%{keys}x128
// DEFINE: %{run} = fovea-run %s --check --target=sm_90a --simulate --seeds=2 --random=1 %{operands}
//
// RUN: %{run} | FileCheck %s
// Nothing is copied: the loops are those of the list, and of its tiles.
// RUN: fovea-compile %s --target=sm_90a --emit=tiled | FileCheck %s --check-prefix=TILED
// TILED-COUNT-2: scf.forall (
// TILED-NOT:     scf.forall (
// All rows are of a sequence.
// REDEFINE: %{list} = some
// REDEFINE: %{rows} = 301
// REDEFINE: %{keys} = 620
// RUN: %{run} | FileCheck %s
// No sequence has a row, and then there is no sequence.
// REDEFINE: %{list} = empty
// REDEFINE: %{rows} = 130
// REDEFINE: %{keys} = 22
// RUN: %{run} | FileCheck %s
// REDEFINE: %{list} = none
// RUN: %{run} | FileCheck %s
//
// CHECK: check: result 0: max error
// CHECK-NOT: FAILED
// CHECK: check: result 1: max error
// CHECK-NOT: FAILED

!query = tensor<?x2x?x128xbf16>
!key = tensor<?x1x?x128xbf16>
!value = tensor<?x1x?x128xbf16>
!cu_seqlens_q = tensor<?xi32>
!cu_seqlens_k = tensor<?xi32>
!keys = tensor<?x1x?x128xbf16>
!values = tensor<?x1x?x128xbf16>
!output = tensor<?x2x?x128xbf16>
!padded_output = tensor<?x2x?x128xbf16>
!lse = tensor<?x2x?xf32>
!padded_lse = tensor<?x2x?xf32>
!queries = tensor<?x2x?x128xbf16>
module attributes {machine.target = #machine.target<"sm_90a", arch = "hopper", cores = 2, vector_bytes = 128, vector_registers = 2048, fast_memory = 232448, near_memory = 52428800, bandwidth = 4290000, peak = 66900, shared_memory = 233472, matrix_peak = 989000>} {
func.func @attention(%cu_seqlens_q: !cu_seqlens_q, %cu_seqlens_k: !cu_seqlens_k, %query: !query, %key: !key, %value: !value) -> (!output, !lse) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %bounds = tensor.dim %cu_seqlens_q, %c0 : !cu_seqlens_q
  %sequences = arith.subi %bounds, %c1 : index
  %batch = arith.addi %bounds, %c1 : index
  %length = tensor.dim %key, %c2 : !key
  %keys_room = tensor.empty(%batch, %length) : !keys
  %keys = scf.forall (%b) in (%batch) shared_outs(%keys_copied = %keys_room) -> (!keys) {
    %next = arith.addi %b, %c1 : index
    %first_at = arith.minsi %b, %sequences : index
    %end_at = arith.minsi %next, %sequences : index
    %first_number = tensor.extract %cu_seqlens_k[%first_at] : !cu_seqlens_k
    %first = arith.index_cast %first_number : i32 to index
    %end_number = tensor.extract %cu_seqlens_k[%end_at] : !cu_seqlens_k
    %end = arith.index_cast %end_number : i32 to index
    %start_low = arith.maxsi %first, %c0 : index
    %start = arith.minsi %start_low, %length : index
    %stop = arith.minsi %end, %length : index
    %more = arith.subi %stop, %start : index
    %count_low = arith.maxsi %more, %c0 : index
    %count = arith.minsi %count_low, %length : index
    %keys_rows = tensor.extract_slice %key[0, 0, %start, 0] [1, 1, %count, 128] [1, 1, 1, 1] : !key to tensor<1x1x?x128xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %keys_rows into %keys_copied[%b, 0, 0, 0] [1, 1, %count, 128] [1, 1, 1, 1] : tensor<1x1x?x128xbf16> into !keys
    }
  }
  %values_room = tensor.empty(%batch, %length) : !values
  %values = scf.forall (%b) in (%batch) shared_outs(%values_copied = %values_room) -> (!values) {
    %next = arith.addi %b, %c1 : index
    %first_at = arith.minsi %b, %sequences : index
    %end_at = arith.minsi %next, %sequences : index
    %first_number = tensor.extract %cu_seqlens_k[%first_at] : !cu_seqlens_k
    %first = arith.index_cast %first_number : i32 to index
    %end_number = tensor.extract %cu_seqlens_k[%end_at] : !cu_seqlens_k
    %end = arith.index_cast %end_number : i32 to index
    %start_low = arith.maxsi %first, %c0 : index
    %start = arith.minsi %start_low, %length : index
    %stop = arith.minsi %end, %length : index
    %more = arith.subi %stop, %start : index
    %count_low = arith.maxsi %more, %c0 : index
    %count = arith.minsi %count_low, %length : index
    %values_rows = tensor.extract_slice %value[0, 0, %start, 0] [1, 1, %count, 128] [1, 1, 1, 1] : !value to tensor<1x1x?x128xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %values_rows into %values_copied[%b, 0, 0, 0] [1, 1, %count, 128] [1, 1, 1, 1] : tensor<1x1x?x128xbf16> into !values
    }
  }
  %tokens = tensor.dim %query, %c2 : !query
  %queries_room = tensor.empty(%batch, %tokens) : !queries
  %queries = scf.forall (%b) in (%batch) shared_outs(%queries_copied = %queries_room) -> (!queries) {
    %next = arith.addi %b, %c1 : index
    %first_at = arith.minsi %b, %sequences : index
    %is_front = arith.cmpi eq, %b, %sequences : index
    %is_behind = arith.cmpi sgt, %b, %sequences : index
    %end_at_most = arith.minsi %next, %sequences : index
    %end_at = arith.select %is_front, %c0, %end_at_most : index
    %first_of_number = tensor.extract %cu_seqlens_q[%first_at] : !cu_seqlens_q
    %first_of = arith.index_cast %first_of_number : i32 to index
    %end_of_number = tensor.extract %cu_seqlens_q[%end_at] : !cu_seqlens_q
    %end_of = arith.index_cast %end_of_number : i32 to index
    %first = arith.select %is_front, %c0, %first_of : index
    %end = arith.select %is_behind, %tokens, %end_of : index
    %start_low = arith.maxsi %first, %c0 : index
    %start = arith.minsi %start_low, %tokens : index
    %stop = arith.minsi %end, %tokens : index
    %more = arith.subi %stop, %start : index
    %count_low = arith.maxsi %more, %c0 : index
    %count = arith.minsi %count_low, %tokens : index
    %queries_rows = tensor.extract_slice %query[0, 0, %start, 0] [1, 2, %count, 128] [1, 1, 1, 1] : !query to tensor<1x2x?x128xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %queries_rows into %queries_copied[%b, 0, 0, 0] [1, 2, %count, 128] [1, 1, 1, 1] : tensor<1x2x?x128xbf16> into !queries
    }
  }
  %padded_output, %padded_lse = attn.attention %queries, %keys, %values scale(0.08838834764831843)
    mask {
    ^bb0(%b: index, %h: index, %q: index, %kv: index):
      %0 = arith.constant true
      %1 = arith.constant 1 : index
      %2 = arith.addi %b, %1 : index
      %3 = index.constant 0
      %4 = tensor.dim %cu_seqlens_k, %3 : !cu_seqlens_k
      %5 = arith.subi %4, %1 : index
      %6 = arith.minui %2, %5 : index
      %7 = tensor.extract %cu_seqlens_k[%6] : !cu_seqlens_k
      %8 = arith.index_cast %7 : i32 to index
      %9 = arith.minui %b, %5 : index
      %10 = tensor.extract %cu_seqlens_k[%9] : !cu_seqlens_k
      %11 = arith.index_cast %10 : i32 to index
      %12 = arith.subi %8, %11 : index
      %13 = arith.cmpi slt, %kv, %12 : index
      %14 = arith.addi %q, %12 : index
      %15 = tensor.dim %cu_seqlens_q, %3 : !cu_seqlens_q
      %16 = arith.subi %15, %1 : index
      %17 = arith.minui %2, %16 : index
      %18 = tensor.extract %cu_seqlens_q[%17] : !cu_seqlens_q
      %19 = arith.index_cast %18 : i32 to index
      %20 = arith.minui %b, %16 : index
      %21 = tensor.extract %cu_seqlens_q[%20] : !cu_seqlens_q
      %22 = arith.index_cast %21 : i32 to index
      %23 = arith.subi %19, %22 : index
      %24 = arith.subi %14, %23 : index
      %25 = arith.cmpi sge, %24, %kv : index
      %26 = arith.andi %13, %25 : i1
      attn.yield %26 : i1
    }
    : !queries, !keys, !values -> !padded_output, !padded_lse
  %output_room = tensor.empty(%c1, %tokens) : !output
  %lse_room = tensor.empty(%c1, %tokens) : !lse
  %output, %lse = scf.forall (%b) in (%batch) shared_outs(%output_copied = %output_room, %lse_copied = %lse_room) -> (!output, !lse) {
    %next = arith.addi %b, %c1 : index
    %first_at = arith.minsi %b, %sequences : index
    %is_front = arith.cmpi eq, %b, %sequences : index
    %is_behind = arith.cmpi sgt, %b, %sequences : index
    %end_at_most = arith.minsi %next, %sequences : index
    %end_at = arith.select %is_front, %c0, %end_at_most : index
    %first_of_number = tensor.extract %cu_seqlens_q[%first_at] : !cu_seqlens_q
    %first_of = arith.index_cast %first_of_number : i32 to index
    %end_of_number = tensor.extract %cu_seqlens_q[%end_at] : !cu_seqlens_q
    %end_of = arith.index_cast %end_of_number : i32 to index
    %first = arith.select %is_front, %c0, %first_of : index
    %end = arith.select %is_behind, %tokens, %end_of : index
    %start_low = arith.maxsi %first, %c0 : index
    %start = arith.minsi %start_low, %tokens : index
    %stop = arith.minsi %end, %tokens : index
    %more = arith.subi %stop, %start : index
    %count_low = arith.maxsi %more, %c0 : index
    %count = arith.minsi %count_low, %tokens : index
    %output_rows = tensor.extract_slice %padded_output[%b, 0, 0, 0] [1, 2, %count, 128] [1, 1, 1, 1] : !padded_output to tensor<1x2x?x128xbf16>
    %lse_rows = tensor.extract_slice %padded_lse[%b, 0, 0] [1, 2, %count] [1, 1, 1] : !padded_lse to tensor<1x2x?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %output_rows into %output_copied[0, 0, %start, 0] [1, 2, %count, 128] [1, 1, 1, 1] : tensor<1x2x?x128xbf16> into !output
      tensor.parallel_insert_slice %lse_rows into %lse_copied[0, 0, %start] [1, 2, %count] [1, 1, 1] : tensor<1x2x?xf32> into !lse
    }
  }
  return %output, %lse : !output, !lse
}
}
