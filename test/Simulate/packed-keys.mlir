// Sequences of several lengths whose keys lie packed, too: a graph copies them to the first
// rows of a batch each, and tiles are read where they lie instead. Sequences without a key,
// with fewer keys than queries, of no multiple of a tile, and keys of no sequence; one whose
// keys end behind the last one that there is. Values of others are behind a sequence's last
// key in its tile.
//
// REQUIRES: numpy
// RUN: rm -rf %t && mkdir %t && %python %S/Inputs/packed.py %t
//
// DEFINE: %{options} = --target=sm_90a --simulate --seeds=2
// DEFINE: %{list} = some
// DEFINE: %{longest} = 131
// DEFINE: %{operands} = --input=%t/%{list}-starts.npy --input=%t/%{list}-keys.npy --input=%{longest}
// DEFINE: %{run} = fovea-run %s --check %{options} %{operands}
//
// RUN: %{run} --entry=wide --random=1 --dims=query:1x2x301x128 --dims=key:1x1x620x128 --dims=value:1x1x620x128 | FileCheck %s
// RUN: %{run} --entry=narrow --random=2 --dims=query:1x2x301x64 --dims=key:1x2x620x64 --dims=value:1x2x620x64 | FileCheck %s
// The last sequence has 30 keys, of which 10 are there.
// RUN: %{run} --entry=narrow --random=3 --dims=query:1x2x301x64 --dims=key:1x2x588x64 --dims=value:1x2x588x64 | FileCheck %s
// REDEFINE: %{list} = many
// REDEFINE: %{longest} = 1000
// RUN: %{run} --entry=wide --random=4 --dims=query:1x2x40x128 --dims=key:1x1x200x128 --dims=value:1x1x200x128 | FileCheck %s
// REDEFINE: %{list} = one
// RUN: %{run} --entry=narrow --random=5 --dims=query:1x2x300x64 --dims=key:1x2x330x64 --dims=value:1x2x330x64 | FileCheck %s
//
// CHECK: check: result 0: max error
// CHECK-NOT: FAILED

!numbers = tensor<?xi32>
!q64 = tensor<?x2x?x64xbf16>
!k64 = tensor<?x2x?x64xbf16>
!q128 = tensor<?x2x?x128xbf16>
!k128 = tensor<?x1x?x128xbf16>
module attributes {machine.target = #machine.target<"sm_90a", arch = "hopper", cores = 2, vector_bytes = 128, vector_registers = 2048, fast_memory = 232448, near_memory = 52428800, bandwidth = 4290000, peak = 66900, shared_memory = 233472, matrix_peak = 989000>} {
func.func @wide(%starts: !numbers, %key_starts: !numbers, %longest: index, %query: !q128, %key: !k128, %value: !k128) -> !q128 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %bounds = tensor.dim %starts, %c0 : !numbers
  %batch = arith.subi %bounds, %c1 : index
  %keys = tensor.dim %key, %c2 : !k128
  %k_room = tensor.empty(%batch, %keys) : !k128
  %k = scf.forall (%b) in (%batch) shared_outs(%out = %k_room) -> (!k128) {
    %next = arith.addi %b, %c1 : index
    %first32 = tensor.extract %key_starts[%b] : !numbers
    %first = arith.index_cast %first32 : i32 to index
    %end32 = tensor.extract %key_starts[%next] : !numbers
    %end = arith.index_cast %end32 : i32 to index
    %low = arith.maxsi %first, %c0 : index
    %start = arith.minsi %low, %keys : index
    %stop = arith.minsi %end, %keys : index
    %more = arith.subi %stop, %start : index
    %some = arith.maxsi %more, %c0 : index
    %count = arith.minsi %some, %keys : index
    %own = tensor.extract_slice %key[0, 0, %start, 0] [1, 1, %count, 128] [1, 1, 1, 1] : !k128 to tensor<1x1x?x128xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %own into %out[%b, 0, 0, 0] [1, 1, %count, 128] [1, 1, 1, 1] : tensor<1x1x?x128xbf16> into !k128
    }
  }
  %v_room = tensor.empty(%batch, %keys) : !k128
  %v = scf.forall (%b) in (%batch) shared_outs(%out = %v_room) -> (!k128) {
    %next = arith.addi %b, %c1 : index
    %first32 = tensor.extract %key_starts[%b] : !numbers
    %first = arith.index_cast %first32 : i32 to index
    %end32 = tensor.extract %key_starts[%next] : !numbers
    %end = arith.index_cast %end32 : i32 to index
    %low = arith.maxsi %first, %c0 : index
    %start = arith.minsi %low, %keys : index
    %stop = arith.minsi %end, %keys : index
    %more = arith.subi %stop, %start : index
    %some = arith.maxsi %more, %c0 : index
    %count = arith.minsi %some, %keys : index
    %own = tensor.extract_slice %value[0, 0, %start, 0] [1, 1, %count, 128] [1, 1, 1, 1] : !k128 to tensor<1x1x?x128xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %own into %out[%b, 0, 0, 0] [1, 1, %count, 128] [1, 1, 1, 1] : tensor<1x1x?x128xbf16> into !k128
    }
  }
  %tokens = tensor.dim %query, %c2 : !q128
  %rows_low = arith.maxsi %longest, %c0 : index
  %rows = arith.minsi %rows_low, %tokens : index
  %q_room = tensor.empty(%batch, %rows) : !q128
  %q = scf.forall (%b) in (%batch) shared_outs(%out = %q_room) -> (!q128) {
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
    %own = tensor.extract_slice %query[0, 0, %start, 0] [1, 2, %count, 128] [1, 1, 1, 1] : !q128 to tensor<1x2x?x128xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %own into %out[%b, 0, 0, 0] [1, 2, %count, 128] [1, 1, 1, 1] : tensor<1x2x?x128xbf16> into !q128
    }
  }
  %batch_o = attn.attention %q, %k, %v scale(0.08838834764831845)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %next = arith.addi %b, %c1 : index
      %key32 = tensor.extract %key_starts[%b] : !numbers
      %first_key = arith.index_cast %key32 : i32 to index
      %key_end32 = tensor.extract %key_starts[%next] : !numbers
      %key_end = arith.index_cast %key_end32 : i32 to index
      %stop = arith.minsi %key_end, %keys : index
      %used = arith.subi %stop, %first_key : index
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
    } {schedule = #attn.schedule<tile = 128x128, order = longest_first, warps = 8, stages = 2, maximum = stale, blocks = dealt, groups = in_turn>} : !q128, !k128, !k128 -> !q128
  %o_room = tensor.empty(%c1, %tokens) : !q128
  %o = scf.forall (%b) in (%batch) shared_outs(%out = %o_room) -> (!q128) {
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
    %own = tensor.extract_slice %batch_o[%b, 0, 0, 0] [1, 2, %count, 128] [1, 1, 1, 1] : !q128 to tensor<1x2x?x128xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %own into %out[0, 0, %start, 0] [1, 2, %count, 128] [1, 1, 1, 1] : tensor<1x2x?x128xbf16> into !q128
    }
  }
  return %o : !q128
}
func.func @narrow(%starts: !numbers, %key_starts: !numbers, %longest: index, %query: !q64, %key: !k64, %value: !k64) -> !q64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %bounds = tensor.dim %starts, %c0 : !numbers
  %batch = arith.subi %bounds, %c1 : index
  %keys = tensor.dim %key, %c2 : !k64
  %k_room = tensor.empty(%batch, %keys) : !k64
  %k = scf.forall (%b) in (%batch) shared_outs(%out = %k_room) -> (!k64) {
    %next = arith.addi %b, %c1 : index
    %first32 = tensor.extract %key_starts[%b] : !numbers
    %first = arith.index_cast %first32 : i32 to index
    %end32 = tensor.extract %key_starts[%next] : !numbers
    %end = arith.index_cast %end32 : i32 to index
    %low = arith.maxsi %first, %c0 : index
    %start = arith.minsi %low, %keys : index
    %stop = arith.minsi %end, %keys : index
    %more = arith.subi %stop, %start : index
    %some = arith.maxsi %more, %c0 : index
    %count = arith.minsi %some, %keys : index
    %own = tensor.extract_slice %key[0, 0, %start, 0] [1, 2, %count, 64] [1, 1, 1, 1] : !k64 to tensor<1x2x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %own into %out[%b, 0, 0, 0] [1, 2, %count, 64] [1, 1, 1, 1] : tensor<1x2x?x64xbf16> into !k64
    }
  }
  %v_room = tensor.empty(%batch, %keys) : !k64
  %v = scf.forall (%b) in (%batch) shared_outs(%out = %v_room) -> (!k64) {
    %next = arith.addi %b, %c1 : index
    %first32 = tensor.extract %key_starts[%b] : !numbers
    %first = arith.index_cast %first32 : i32 to index
    %end32 = tensor.extract %key_starts[%next] : !numbers
    %end = arith.index_cast %end32 : i32 to index
    %low = arith.maxsi %first, %c0 : index
    %start = arith.minsi %low, %keys : index
    %stop = arith.minsi %end, %keys : index
    %more = arith.subi %stop, %start : index
    %some = arith.maxsi %more, %c0 : index
    %count = arith.minsi %some, %keys : index
    %own = tensor.extract_slice %value[0, 0, %start, 0] [1, 2, %count, 64] [1, 1, 1, 1] : !k64 to tensor<1x2x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %own into %out[%b, 0, 0, 0] [1, 2, %count, 64] [1, 1, 1, 1] : tensor<1x2x?x64xbf16> into !k64
    }
  }
  %tokens = tensor.dim %query, %c2 : !q64
  %rows_low = arith.maxsi %longest, %c0 : index
  %rows = arith.minsi %rows_low, %tokens : index
  %q_room = tensor.empty(%batch, %rows) : !q64
  %q = scf.forall (%b) in (%batch) shared_outs(%out = %q_room) -> (!q64) {
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
    %own = tensor.extract_slice %query[0, 0, %start, 0] [1, 2, %count, 64] [1, 1, 1, 1] : !q64 to tensor<1x2x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %own into %out[%b, 0, 0, 0] [1, 2, %count, 64] [1, 1, 1, 1] : tensor<1x2x?x64xbf16> into !q64
    }
  }
  %batch_o = attn.attention %q, %k, %v scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %next = arith.addi %b, %c1 : index
      %key32 = tensor.extract %key_starts[%b] : !numbers
      %first_key = arith.index_cast %key32 : i32 to index
      %key_end32 = tensor.extract %key_starts[%next] : !numbers
      %key_end = arith.index_cast %key_end32 : i32 to index
      %stop = arith.minsi %key_end, %keys : index
      %used = arith.subi %stop, %first_key : index
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
    } {schedule = #attn.schedule<tile = 256x64, order = longest_first, warps = 16, stages = 4, maximum = stale, blocks = dealt, products = alternating>} : !q64, !k64, !k64 -> !q64
  %o_room = tensor.empty(%c1, %tokens) : !q64
  %o = scf.forall (%b) in (%batch) shared_outs(%out = %o_room) -> (!q64) {
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
    %own = tensor.extract_slice %batch_o[%b, 0, 0, 0] [1, 2, %count, 64] [1, 1, 1, 1] : !q64 to tensor<1x2x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %own into %out[0, 0, %start, 0] [1, 2, %count, 64] [1, 1, 1, 1] : tensor<1x2x?x64xbf16> into !q64
    }
  }
  return %o : !q64
}
}
