// As packed-parts.mlir, with fourteen heads on two: a query of a group of seven has eight
// rows, of which the last one has no head, and is not merged.
//
// REQUIRES: numpy
// RUN: rm -rf %t && mkdir %t && %python %S/Inputs/packed.py %t
//
// DEFINE: %{list} = long
// DEFINE: %{longest} = 40
// DEFINE: %{operands} = --input=%t/%{list}-starts.npy --input=%t/%{list}-lengths.npy --input=%{longest}
// DEFINE: %{run} = fovea-run %s --check --target=sm_90a --simulate %{operands}
//
// RUN: fovea-compile %s --target=sm_90a --emit=tile | FileCheck %s --check-prefix=TILE
// TILE: tile.store_async {{.*}} inner 8 used 7 valid
// TILE: tile.store {{.*}} aligned valid({{.*}}) : !tile.fragment<64x64xf32{{.*}}, memref<192x64x64xf32
//
// RUN: %{run} --entry=narrow --random=1 --dims=query:1x14x64x64 --dims=key:5x700x2x64 --dims=value:5x700x2x64 | FileCheck %s
// REDEFINE: %{list} = prompt
// RUN: %{run} --entry=narrow --random=2 --dims=query:1x14x40x64 --dims=key:1x700x2x64 --dims=value:1x700x2x64 | FileCheck %s
// REDEFINE: %{list} = many
// REDEFINE: %{longest} = 1000
// RUN: %{run} --entry=narrow --random=3 --dims=query:1x14x40x64 --dims=key:41x10x2x64 --dims=value:41x10x2x64 | FileCheck %s
// REDEFINE: %{list} = none
// RUN: %{run} --entry=narrow --random=4 --dims=query:1x14x0x64 --dims=key:0x10x2x64 --dims=value:0x10x2x64 | FileCheck %s
//
// CHECK: check: result 0: max error 0
// CHECK: check: result 1: max error
// CHECK-NOT: FAILED

!numbers = tensor<?xi32>
!q14x64 = tensor<?x14x?x64xbf16>
!k2x64 = tensor<?x2x?x64xbf16>
!cache2x64 = tensor<?x?x2x64xbf16>
!o14x64 = tensor<?x?x14x64xbf16>
!l14 = tensor<?x14x?xf32>
module attributes {attn.schedules = [#attn.schedule<tile = 64x32, order = longest_first, warps = 4, stages = 2, blocks = dealt, split = 16>], machine.target = #machine.target<"sm_90a", arch = "hopper", cores = 2, vector_bytes = 128, vector_registers = 2048, fast_memory = 232448, near_memory = 52428800, bandwidth = 4290000, peak = 66900, shared_memory = 233472, matrix_peak = 989000>} {
func.func @narrow(%starts: !numbers, %lengths: !numbers, %longest: index, %query: !q14x64, %key: !cache2x64, %value: !cache2x64) -> (!o14x64, !l14) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %bounds = tensor.dim %starts, %c0 : !numbers
  %batch = arith.subi %bounds, %c1 : index
  %length = tensor.dim %key, %c1 : !cache2x64
  %keys_room = tensor.empty(%batch, %length) : !k2x64
  %k = linalg.transpose ins(%key : !cache2x64) outs(%keys_room : !k2x64) permutation = [0, 2, 1, 3]
  %v = linalg.transpose ins(%value : !cache2x64) outs(%keys_room : !k2x64) permutation = [0, 2, 1, 3]
  %tokens = tensor.dim %query, %c2 : !q14x64
  %rows_low = arith.maxsi %longest, %c0 : index
  %rows = arith.minsi %rows_low, %tokens : index
  %queries_room = tensor.empty(%batch, %rows) : !q14x64
  %q = scf.forall (%b) in (%batch) shared_outs(%q_out = %queries_room) -> (!q14x64) {
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
    %q_rows = tensor.extract_slice %query[0, 0, %start, 0] [1, 14, %count, 64] [1, 1, 1, 1] : !q14x64 to tensor<1x14x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %q_rows into %q_out[%b, 0, 0, 0] [1, 14, %count, 64] [1, 1, 1, 1] : tensor<1x14x?x64xbf16> into !q14x64
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
    } : !q14x64, !k2x64, !k2x64 -> !q14x64, !l14
  %o_room = tensor.empty(%c1, %tokens) : !q14x64
  %lse_room = tensor.empty(%c1, %tokens) : !l14
  %o, %lse = scf.forall (%b) in (%batch) shared_outs(%o_out = %o_room, %lse_out = %lse_room) -> (!q14x64, !l14) {
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
    %o_rows = tensor.extract_slice %batch_o[%b, 0, 0, 0] [1, 14, %count, 64] [1, 1, 1, 1] : !q14x64 to tensor<1x14x?x64xbf16>
    %lse_rows = tensor.extract_slice %batch_lse[%b, 0, 0] [1, 14, %count] [1, 1, 1] : !l14 to tensor<1x14x?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %o_rows into %o_out[0, 0, %start, 0] [1, 14, %count, 64] [1, 1, 1, 1] : tensor<1x14x?x64xbf16> into !q14x64
      tensor.parallel_insert_slice %lse_rows into %lse_out[0, 0, %start] [1, 14, %count] [1, 1, 1] : tensor<1x14x?xf32> into !l14
    }
  }
  %turned_room = tensor.empty(%c1, %tokens) : !o14x64
  %turned = linalg.transpose ins(%o : !q14x64) outs(%turned_room : !o14x64) permutation = [0, 2, 1, 3]
  return %turned, %lse : !o14x64, !l14
}
}
