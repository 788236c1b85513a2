// As packed-heads.mlir, with six heads on two, in code for short lengths: a query of a
// group of three has four rows, of which the last one has no head.
//
// REQUIRES: numpy
// RUN: rm -rf %t && mkdir %t && %python %S/Inputs/packed.py %t
//
// DEFINE: %{list} = some
// DEFINE: %{longest} = 131
// DEFINE: %{operands} = --input=%t/%{list}-starts.npy --input=%t/%{list}-lengths.npy --input=%{longest}
// DEFINE: %{run} = fovea-run %s --check --target=sm_90a --simulate --typical-length=1024 %{operands}
//
// RUN: fovea-compile %s --target=sm_90a --typical-length=1024 --emit=tile | FileCheck %s --check-prefix=TILE
// TILE: tile.load_async {{.*}} dims [2, 1, 3] inner 4 used 3
// TILE: tile.store_async {{.*}} dims [1, 2, 3] inner 4 used 3 valid
//
// RUN: %{run} --entry=wide --random=1 --dims=query:1x6x301x128 --dims=key:6x320x2x128 --dims=value:6x320x2x128 | FileCheck %s
// RUN: %{run} --entry=narrow --random=2 --dims=query:1x6x301x64 --dims=key:6x320x2x64 --dims=value:6x320x2x64 | FileCheck %s
// REDEFINE: %{list} = many
// REDEFINE: %{longest} = 1000
// RUN: %{run} --entry=wide --random=3 --dims=query:1x6x40x128 --dims=key:41x10x2x128 --dims=value:41x10x2x128 | FileCheck %s
// RUN: %{run} --entry=narrow --random=4 --dims=query:1x6x40x64 --dims=key:41x10x2x64 --dims=value:41x10x2x64 | FileCheck %s
//
// CHECK: check: result 0: max error
// CHECK-NOT: FAILED

!numbers = tensor<?xi32>
!q6x64 = tensor<?x6x?x64xbf16>
!q6x128 = tensor<?x6x?x128xbf16>
!k2x64 = tensor<?x2x?x64xbf16>
!k2x128 = tensor<?x2x?x128xbf16>
!cache2x64 = tensor<?x?x2x64xbf16>
!cache2x128 = tensor<?x?x2x128xbf16>
!o6x64 = tensor<?x?x6x64xbf16>
!o6x128 = tensor<?x?x6x128xbf16>
!l6 = tensor<?x6x?xf32>
module attributes {machine.target = #machine.target<"sm_90a", arch = "hopper", cores = 2, vector_bytes = 128, vector_registers = 2048, fast_memory = 232448, near_memory = 52428800, bandwidth = 4290000, peak = 66900, shared_memory = 233472, matrix_peak = 989000>} {
func.func @wide(%starts: !numbers, %lengths: !numbers, %longest: index, %query: !q6x128, %key: !cache2x128, %value: !cache2x128) -> !o6x128 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %bounds = tensor.dim %starts, %c0 : !numbers
  %batch = arith.subi %bounds, %c1 : index
  %length = tensor.dim %key, %c1 : !cache2x128
  %keys_room = tensor.empty(%batch, %length) : !k2x128
  %k = linalg.transpose ins(%key : !cache2x128) outs(%keys_room : !k2x128) permutation = [0, 2, 1, 3]
  %v = linalg.transpose ins(%value : !cache2x128) outs(%keys_room : !k2x128) permutation = [0, 2, 1, 3]
  %tokens = tensor.dim %query, %c2 : !q6x128
  %rows_low = arith.maxsi %longest, %c0 : index
  %rows = arith.minsi %rows_low, %tokens : index
  %queries_room = tensor.empty(%batch, %rows) : !q6x128
  %q = scf.forall (%b) in (%batch) shared_outs(%q_out = %queries_room) -> (!q6x128) {
    %next = arith.addi %b, %c1 : index
    %first32 = tensor.extract %starts[%b] : !numbers
    %first = arith.index_cast %first32 : i32 to index
    %end32 = tensor.extract %starts[%next] : !numbers
    %end = arith.index_cast %end32 : i32 to index
    %low = arith.maxsi %first, %c0 : index
    %start = arith.minsi %low, %tokens : index
    %stop = arith.minsi %end, %tokens : index
    %more = arith.subi %stop, %start : index
    %some = arith.maxsi %more, %c0 : index
    %count = arith.minsi %some, %rows : index
    %q_rows = tensor.extract_slice %query[0, 0, %start, 0] [1, 6, %count, 128] [1, 1, 1, 1] : !q6x128 to tensor<1x6x?x128xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %q_rows into %q_out[%b, 0, 0, 0] [1, 6, %count, 128] [1, 1, 1, 1] : tensor<1x6x?x128xbf16> into !q6x128
    }
  }
  %batch_o = attn.attention %q, %k, %v scale(0.08838834764831843)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %used32 = tensor.extract %lengths[%b] : !numbers
      %used = arith.index_cast %used32 : i32 to index
      %next = arith.addi %b, %c1 : index
      %first32 = tensor.extract %starts[%b] : !numbers
      %first = arith.index_cast %first32 : i32 to index
      %end32 = tensor.extract %starts[%next] : !numbers
      %end = arith.index_cast %end32 : i32 to index
      %own = arith.subi %end, %first : index
      %behind = arith.addi %i, %used : index
      %last = arith.subi %behind, %own : index
      %is = arith.cmpi slt, %j, %used : index
      %past = arith.cmpi sge, %last, %j : index
      %keep = arith.andi %is, %past : i1
      attn.yield %keep : i1
    } : !q6x128, !k2x128, !k2x128 -> !q6x128
  %o_room = tensor.empty(%c1, %tokens) : !q6x128
  %o = scf.forall (%b) in (%batch) shared_outs(%o_out = %o_room) -> (!q6x128) {
    %next = arith.addi %b, %c1 : index
    %first32 = tensor.extract %starts[%b] : !numbers
    %first = arith.index_cast %first32 : i32 to index
    %end32 = tensor.extract %starts[%next] : !numbers
    %end = arith.index_cast %end32 : i32 to index
    %low = arith.maxsi %first, %c0 : index
    %start = arith.minsi %low, %tokens : index
    %stop = arith.minsi %end, %tokens : index
    %more = arith.subi %stop, %start : index
    %some = arith.maxsi %more, %c0 : index
    %count = arith.minsi %some, %rows : index
    %o_rows = tensor.extract_slice %batch_o[%b, 0, 0, 0] [1, 6, %count, 128] [1, 1, 1, 1] : !q6x128 to tensor<1x6x?x128xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %o_rows into %o_out[0, 0, %start, 0] [1, 6, %count, 128] [1, 1, 1, 1] : tensor<1x6x?x128xbf16> into !q6x128
    }
  }
  %turned_room = tensor.empty(%c1, %tokens) : !o6x128
  %turned = linalg.transpose ins(%o : !q6x128) outs(%turned_room : !o6x128) permutation = [0, 2, 1, 3]
  return %turned : !o6x128
}
func.func @narrow(%starts: !numbers, %lengths: !numbers, %longest: index, %query: !q6x64, %key: !cache2x64, %value: !cache2x64) -> (!o6x64, !l6) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %bounds = tensor.dim %starts, %c0 : !numbers
  %batch = arith.subi %bounds, %c1 : index
  %length = tensor.dim %key, %c1 : !cache2x64
  %keys_room = tensor.empty(%batch, %length) : !k2x64
  %k = linalg.transpose ins(%key : !cache2x64) outs(%keys_room : !k2x64) permutation = [0, 2, 1, 3]
  %v = linalg.transpose ins(%value : !cache2x64) outs(%keys_room : !k2x64) permutation = [0, 2, 1, 3]
  %tokens = tensor.dim %query, %c2 : !q6x64
  %rows_low = arith.maxsi %longest, %c0 : index
  %rows = arith.minsi %rows_low, %tokens : index
  %queries_room = tensor.empty(%batch, %rows) : !q6x64
  %q = scf.forall (%b) in (%batch) shared_outs(%q_out = %queries_room) -> (!q6x64) {
    %next = arith.addi %b, %c1 : index
    %first32 = tensor.extract %starts[%b] : !numbers
    %first = arith.index_cast %first32 : i32 to index
    %end32 = tensor.extract %starts[%next] : !numbers
    %end = arith.index_cast %end32 : i32 to index
    %low = arith.maxsi %first, %c0 : index
    %start = arith.minsi %low, %tokens : index
    %stop = arith.minsi %end, %tokens : index
    %more = arith.subi %stop, %start : index
    %some = arith.maxsi %more, %c0 : index
    %count = arith.minsi %some, %rows : index
    %q_rows = tensor.extract_slice %query[0, 0, %start, 0] [1, 6, %count, 64] [1, 1, 1, 1] : !q6x64 to tensor<1x6x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %q_rows into %q_out[%b, 0, 0, 0] [1, 6, %count, 64] [1, 1, 1, 1] : tensor<1x6x?x64xbf16> into !q6x64
    }
  }
  %batch_o, %batch_lse = attn.attention %q, %k, %v scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %used32 = tensor.extract %lengths[%b] : !numbers
      %used = arith.index_cast %used32 : i32 to index
      %next = arith.addi %b, %c1 : index
      %first32 = tensor.extract %starts[%b] : !numbers
      %first = arith.index_cast %first32 : i32 to index
      %end32 = tensor.extract %starts[%next] : !numbers
      %end = arith.index_cast %end32 : i32 to index
      %own = arith.subi %end, %first : index
      %behind = arith.addi %i, %used : index
      %last = arith.subi %behind, %own : index
      %is = arith.cmpi slt, %j, %used : index
      %past = arith.cmpi sge, %last, %j : index
      %keep = arith.andi %is, %past : i1
      attn.yield %keep : i1
    } : !q6x64, !k2x64, !k2x64 -> !q6x64, !l6
  %o_room = tensor.empty(%c1, %tokens) : !q6x64
  %lse_room = tensor.empty(%c1, %tokens) : !l6
  %o, %lse = scf.forall (%b) in (%batch) shared_outs(%o_out = %o_room, %lse_out = %lse_room) -> (!q6x64, !l6) {
    %next = arith.addi %b, %c1 : index
    %first32 = tensor.extract %starts[%b] : !numbers
    %first = arith.index_cast %first32 : i32 to index
    %end32 = tensor.extract %starts[%next] : !numbers
    %end = arith.index_cast %end32 : i32 to index
    %low = arith.maxsi %first, %c0 : index
    %start = arith.minsi %low, %tokens : index
    %stop = arith.minsi %end, %tokens : index
    %more = arith.subi %stop, %start : index
    %some = arith.maxsi %more, %c0 : index
    %count = arith.minsi %some, %rows : index
    %o_rows = tensor.extract_slice %batch_o[%b, 0, 0, 0] [1, 6, %count, 64] [1, 1, 1, 1] : !q6x64 to tensor<1x6x?x64xbf16>
    %lse_rows = tensor.extract_slice %batch_lse[%b, 0, 0] [1, 6, %count] [1, 1, 1] : !l6 to tensor<1x6x?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %o_rows into %o_out[0, 0, %start, 0] [1, 6, %count, 64] [1, 1, 1, 1] : tensor<1x6x?x64xbf16> into !q6x64
      tensor.parallel_insert_slice %lse_rows into %lse_out[0, 0, %start] [1, 6, %count] [1, 1, 1] : tensor<1x6x?xf32> into !l6
    }
  }
  %turned_room = tensor.empty(%c1, %tokens) : !o6x64
  %turned = linalg.transpose ins(%o : !q6x64) outs(%turned_room : !o6x64) permutation = [0, 2, 1, 3]
  return %turned, %lse : !o6x64, !l6
}
}
