// Sequences of several lengths that lie packed, one behind the other, on caches of keys with
// lengths, in blocks of a machine of 2 multiprocessors that get tiles when they are free.
// Tiles are read and written where rows lie, and listed on the GPU: sequences without a row,
// of one row, of no multiple of a tile, with more rows than keys; a single one, none, and
// as many as rows. Results are transposed, and have log-sum-exps; or they are written to
// what is given, of which rows of no sequence stay, and those behind the most rows that a
// call says a sequence has.
//
// REQUIRES: numpy
// RUN: rm -rf %t && mkdir %t && %python %S/Inputs/packed.py %t
//
// DEFINE: %{options} = --target=sm_90a --simulate --seeds=2
// DEFINE: %{list} = some
// DEFINE: %{longest} = 131
// DEFINE: %{operands} = --input=%t/%{list}-starts.npy --input=%t/%{list}-lengths.npy --input=%{longest}
// DEFINE: %{run} = fovea-run %s --check %{options} %{operands}
//
// RUN: %{run} --entry=wide --random=1 --dims=query:1x2x301x128 --dims=key:6x320x1x128 --dims=value:6x320x1x128 | FileCheck %s
// RUN: %{run} --entry=narrow --random=2 --dims=query:1x2x301x64 --dims=key:6x320x1x64 --dims=value:6x320x1x64 | FileCheck %s
// RUN: %{run} --entry=pages --input=%t/table.npy --random=4 --dims=query:1x1x301x64 --dims=key:40x16x1x64 --dims=value:40x16x1x64 | FileCheck %s
//
// Rows of no sequence in front, between, and behind, and a sequence of more rows than the
// call says.
// REDEFINE: %{list} = gaps
// REDEFINE: %{longest} = 100
// RUN: %{run} --entry=narrow_given --random=6 --dims=query:1x1x160x64 --dims=key:4x150x1x64 --dims=value:4x150x1x64 --dims=room:1x1x160x64 | FileCheck %s
// REDEFINE: %{longest} = 0
// RUN: %{run} --entry=narrow_given --random=5 --dims=query:1x1x160x64 --dims=key:4x150x1x64 --dims=value:4x150x1x64 --dims=room:1x1x160x64 | FileCheck %s
//
// As many sequences as rows, every other one of none.
// REDEFINE: %{list} = many
// REDEFINE: %{longest} = 1000
// REDEFINE: %{options} = --target=sm_90a --simulate
// RUN: %{run} --entry=wide --random=7 --dims=query:1x2x40x128 --dims=key:41x10x1x128 --dims=value:41x10x1x128 | FileCheck %s
//
// One sequence, one without a row, and none.
// REDEFINE: %{list} = one
// RUN: %{run} --entry=narrow --random=8 --dims=query:1x2x300x64 --dims=key:1x320x1x64 --dims=value:1x320x1x64 | FileCheck %s
// REDEFINE: %{list} = empty
// RUN: %{run} --entry=narrow_given --random=9 --dims=query:1x1x20x64 --dims=key:1x20x1x64 --dims=value:1x20x1x64 --dims=room:1x1x20x64 | FileCheck %s
// REDEFINE: %{list} = none
// RUN: %{run} --entry=narrow_given --random=9 --dims=query:1x1x20x64 --dims=key:0x20x1x64 --dims=value:0x20x1x64 --dims=room:1x1x20x64 | FileCheck %s
//
// CHECK: check: result 0: max error
// CHECK-NOT: FAILED

#all = affine_map<(b, h, i, d) -> (b, h, i, d)>
!numbers = tensor<?xi32>
!q1x64 = tensor<?x1x?x64xbf16>
!q2x64 = tensor<?x2x?x64xbf16>
!q2x128 = tensor<?x2x?x128xbf16>
!k1x64 = tensor<?x1x?x64xbf16>
!k1x128 = tensor<?x1x?x128xbf16>
!cache1x64 = tensor<?x?x1x64xbf16>
!cache1x128 = tensor<?x?x1x128xbf16>
!o1x64 = tensor<?x?x1x64xbf16>
!o2x64 = tensor<?x?x2x64xbf16>
!o2x128 = tensor<?x?x2x128xbf16>
!l2 = tensor<?x2x?xf32>
module attributes {machine.target = #machine.target<"sm_90a", arch = "hopper", cores = 2, vector_bytes = 128, vector_registers = 2048, fast_memory = 232448, near_memory = 52428800, bandwidth = 4290000, peak = 66900, shared_memory = 233472, matrix_peak = 989000>} {
func.func @wide(%starts: !numbers, %lengths: !numbers, %longest: index, %query: !q2x128, %key: !cache1x128, %value: !cache1x128) -> !o2x128 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %bounds = tensor.dim %starts, %c0 : !numbers
  %batch = arith.subi %bounds, %c1 : index
  %length = tensor.dim %key, %c1 : !cache1x128
  %keys_room = tensor.empty(%batch, %length) : !k1x128
  %k = linalg.transpose ins(%key : !cache1x128) outs(%keys_room : !k1x128) permutation = [0, 2, 1, 3]
  %v = linalg.transpose ins(%value : !cache1x128) outs(%keys_room : !k1x128) permutation = [0, 2, 1, 3]
  %tokens = tensor.dim %query, %c2 : !q2x128
  %rows_low = arith.maxsi %longest, %c0 : index
  %rows = arith.minsi %rows_low, %tokens : index
  %queries_room = tensor.empty(%batch, %rows) : !q2x128
  %q = scf.forall (%b) in (%batch) shared_outs(%q_out = %queries_room) -> (!q2x128) {
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
    %q_rows = tensor.extract_slice %query[0, 0, %start, 0] [1, 2, %count, 128] [1, 1, 1, 1] : !q2x128 to tensor<1x2x?x128xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %q_rows into %q_out[%b, 0, 0, 0] [1, 2, %count, 128] [1, 1, 1, 1] : tensor<1x2x?x128xbf16> into !q2x128
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
    } {schedule = #attn.schedule<tile = 128x128, order = longest_first, warps = 8, stages = 2, maximum = stale, blocks = dealt, groups = in_turn>} : !q2x128, !k1x128, !k1x128 -> !q2x128
  %o_room = tensor.empty(%c1, %tokens) : !q2x128
  %o = scf.forall (%b) in (%batch) shared_outs(%o_out = %o_room) -> (!q2x128) {
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
    %o_rows = tensor.extract_slice %batch_o[%b, 0, 0, 0] [1, 2, %count, 128] [1, 1, 1, 1] : !q2x128 to tensor<1x2x?x128xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %o_rows into %o_out[0, 0, %start, 0] [1, 2, %count, 128] [1, 1, 1, 1] : tensor<1x2x?x128xbf16> into !q2x128
    }
  }
  %turned_room = tensor.empty(%c1, %tokens) : !o2x128
  %turned = linalg.transpose ins(%o : !q2x128) outs(%turned_room : !o2x128) permutation = [0, 2, 1, 3]
  return %turned : !o2x128
}
func.func @narrow(%starts: !numbers, %lengths: !numbers, %longest: index, %query: !q2x64, %key: !cache1x64, %value: !cache1x64) -> (!o2x64, !l2) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %bounds = tensor.dim %starts, %c0 : !numbers
  %batch = arith.subi %bounds, %c1 : index
  %length = tensor.dim %key, %c1 : !cache1x64
  %keys_room = tensor.empty(%batch, %length) : !k1x64
  %k = linalg.transpose ins(%key : !cache1x64) outs(%keys_room : !k1x64) permutation = [0, 2, 1, 3]
  %v = linalg.transpose ins(%value : !cache1x64) outs(%keys_room : !k1x64) permutation = [0, 2, 1, 3]
  %tokens = tensor.dim %query, %c2 : !q2x64
  %rows_low = arith.maxsi %longest, %c0 : index
  %rows = arith.minsi %rows_low, %tokens : index
  %queries_room = tensor.empty(%batch, %rows) : !q2x64
  %q = scf.forall (%b) in (%batch) shared_outs(%q_out = %queries_room) -> (!q2x64) {
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
    %q_rows = tensor.extract_slice %query[0, 0, %start, 0] [1, 2, %count, 64] [1, 1, 1, 1] : !q2x64 to tensor<1x2x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %q_rows into %q_out[%b, 0, 0, 0] [1, 2, %count, 64] [1, 1, 1, 1] : tensor<1x2x?x64xbf16> into !q2x64
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
    } {schedule = #attn.schedule<tile = 256x64, order = longest_first, warps = 16, stages = 4, maximum = stale, blocks = dealt, products = alternating>} : !q2x64, !k1x64, !k1x64 -> !q2x64, !l2
  %o_room = tensor.empty(%c1, %tokens) : !q2x64
  %lse_room = tensor.empty(%c1, %tokens) : !l2
  %o, %lse = scf.forall (%b) in (%batch) shared_outs(%o_out = %o_room, %lse_out = %lse_room) -> (!q2x64, !l2) {
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
    %o_rows = tensor.extract_slice %batch_o[%b, 0, 0, 0] [1, 2, %count, 64] [1, 1, 1, 1] : !q2x64 to tensor<1x2x?x64xbf16>
    %lse_rows = tensor.extract_slice %batch_lse[%b, 0, 0] [1, 2, %count] [1, 1, 1] : !l2 to tensor<1x2x?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %o_rows into %o_out[0, 0, %start, 0] [1, 2, %count, 64] [1, 1, 1, 1] : tensor<1x2x?x64xbf16> into !q2x64
      tensor.parallel_insert_slice %lse_rows into %lse_out[0, 0, %start] [1, 2, %count] [1, 1, 1] : tensor<1x2x?xf32> into !l2
    }
  }
  %turned_room = tensor.empty(%c1, %tokens) : !o2x64
  %turned = linalg.transpose ins(%o : !q2x64) outs(%turned_room : !o2x64) permutation = [0, 2, 1, 3]
  return %turned, %lse : !o2x64, !l2
}
func.func @narrow_given(%starts: !numbers, %lengths: !numbers, %longest: index, %query: !q1x64, %key: !cache1x64, %value: !cache1x64, %room: !q1x64) -> !q1x64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %bounds = tensor.dim %starts, %c0 : !numbers
  %batch = arith.subi %bounds, %c1 : index
  %length = tensor.dim %key, %c1 : !cache1x64
  %keys_room = tensor.empty(%batch, %length) : !k1x64
  %k = linalg.transpose ins(%key : !cache1x64) outs(%keys_room : !k1x64) permutation = [0, 2, 1, 3]
  %v = linalg.transpose ins(%value : !cache1x64) outs(%keys_room : !k1x64) permutation = [0, 2, 1, 3]
  %tokens = tensor.dim %query, %c2 : !q1x64
  %rows_low = arith.maxsi %longest, %c0 : index
  %rows = arith.minsi %rows_low, %tokens : index
  %queries_room = tensor.empty(%batch, %rows) : !q1x64
  %q = scf.forall (%b) in (%batch) shared_outs(%q_out = %queries_room) -> (!q1x64) {
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
    %q_rows = tensor.extract_slice %query[0, 0, %start, 0] [1, 1, %count, 64] [1, 1, 1, 1] : !q1x64 to tensor<1x1x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %q_rows into %q_out[%b, 0, 0, 0] [1, 1, %count, 64] [1, 1, 1, 1] : tensor<1x1x?x64xbf16> into !q1x64
    }
  }
  %batch_o = attn.attention %q, %k, %v scale(0.125)
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
    } {schedule = #attn.schedule<tile = 256x64, order = longest_first, warps = 16, stages = 4, maximum = stale, blocks = dealt, products = alternating>} : !q1x64, !k1x64, !k1x64 -> !q1x64
  %o = scf.forall (%b) in (%batch) shared_outs(%o_out = %room) -> (!q1x64) {
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
    %o_rows = tensor.extract_slice %batch_o[%b, 0, 0, 0] [1, 1, %count, 64] [1, 1, 1, 1] : !q1x64 to tensor<1x1x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %o_rows into %o_out[0, 0, %start, 0] [1, 1, %count, 64] [1, 1, 1, 1] : tensor<1x1x?x64xbf16> into !q1x64
    }
  }
  return %o : !q1x64
}
func.func @pages(%starts: !numbers, %lengths: !numbers, %longest: index, %table: tensor<?x?xi32>, %query: !q1x64, %key: !cache1x64, %value: !cache1x64) -> !o1x64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %bounds = tensor.dim %starts, %c0 : !numbers
  %batch = arith.subi %bounds, %c1 : index
  %c16 = arith.constant 16 : index
  %columns = tensor.dim %table, %c1 : tensor<?x?xi32>
  %length = arith.muli %columns, %c16 : index
  %keys_room = tensor.empty(%batch, %length) : !k1x64
  %k = linalg.generic {indexing_maps = [#all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%keys_room : !k1x64) {
  ^bb0(%unused: bf16):
    %b = linalg.index 0 : index
    %h = linalg.index 1 : index
    %j = linalg.index 2 : index
    %d = linalg.index 3 : index
    %column = arith.divui %j, %c16 : index
    %place = arith.remui %j, %c16 : index
    %page32 = tensor.extract %table[%b, %column] : tensor<?x?xi32>
    %page = arith.index_cast %page32 : i32 to index
    %x = tensor.extract %key[%page, %place, %h, %d] : !cache1x64
    linalg.yield %x : bf16
  } -> !k1x64
  %v = linalg.generic {indexing_maps = [#all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%keys_room : !k1x64) {
  ^bb0(%unused: bf16):
    %b = linalg.index 0 : index
    %h = linalg.index 1 : index
    %j = linalg.index 2 : index
    %d = linalg.index 3 : index
    %column = arith.divui %j, %c16 : index
    %place = arith.remui %j, %c16 : index
    %page32 = tensor.extract %table[%b, %column] : tensor<?x?xi32>
    %page = arith.index_cast %page32 : i32 to index
    %x = tensor.extract %value[%page, %place, %h, %d] : !cache1x64
    linalg.yield %x : bf16
  } -> !k1x64
  %tokens = tensor.dim %query, %c2 : !q1x64
  %rows_low = arith.maxsi %longest, %c0 : index
  %rows = arith.minsi %rows_low, %tokens : index
  %queries_room = tensor.empty(%batch, %rows) : !q1x64
  %q = scf.forall (%b) in (%batch) shared_outs(%q_out = %queries_room) -> (!q1x64) {
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
    %q_rows = tensor.extract_slice %query[0, 0, %start, 0] [1, 1, %count, 64] [1, 1, 1, 1] : !q1x64 to tensor<1x1x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %q_rows into %q_out[%b, 0, 0, 0] [1, 1, %count, 64] [1, 1, 1, 1] : tensor<1x1x?x64xbf16> into !q1x64
    }
  }
  %batch_o = attn.attention %q, %k, %v scale(0.125)
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
    } {schedule = #attn.schedule<tile = 128x128, order = longest_first, warps = 8, stages = 2, maximum = stale, blocks = dealt, groups = in_turn>} : !q1x64, !k1x64, !k1x64 -> !q1x64
  %o_room = tensor.empty(%c1, %tokens) : !q1x64
  %o = scf.forall (%b) in (%batch) shared_outs(%o_out = %o_room) -> (!q1x64) {
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
    %o_rows = tensor.extract_slice %batch_o[%b, 0, 0, 0] [1, 1, %count, 64] [1, 1, 1, 1] : !q1x64 to tensor<1x1x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %o_rows into %o_out[0, 0, %start, 0] [1, 1, %count, 64] [1, 1, 1, 1] : tensor<1x1x?x64xbf16> into !q1x64
    }
  }
  %turned_room = tensor.empty(%c1, %tokens) : !o1x64
  %turned = linalg.transpose ins(%o : !q1x64) outs(%turned_room : !o1x64) permutation = [0, 2, 1, 3]
  return %turned : !o1x64
}
}
