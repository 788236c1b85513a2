// Sequences of several lengths that lie packed, one behind the other, on caches of keys with
// lengths: a host reads and writes tiles where rows lie, too. Some have no row, one row, or
// more rows than keys. What is given keeps its rows of no sequence, and those behind the
// most rows that a call says a sequence has.
//
// DEFINE: %{strategy} = fused
// DEFINE: %{run} = fovea-run %s --check --strategy=%{strategy}
// DEFINE: %{all} = \
// DEFINE:   %{run} --entry=small --input=131 --random=1 --dims=query:1x2x301x16 --dims=key:6x320x1x16 --dims=value:6x320x1x16 && \
// DEFINE:   %{run} --entry=given --input=100 --random=2 --dims=query:1x1x320x16 --dims=key:6x320x1x16 --dims=value:6x320x1x16 --dims=room:1x1x320x16 && \
// DEFINE:   %{run} --entry=given --input=0 --random=3 --dims=query:1x1x320x16 --dims=key:6x320x1x16 --dims=value:6x320x1x16 --dims=room:1x1x320x16
//
// RUN: %{all}
// REDEFINE: %{strategy} = unfused
// RUN: %{all}
// REDEFINE: %{strategy} = three-pass
// RUN: %{all}

!q1x16 = tensor<?x1x?x16xf32>
!q2x16 = tensor<?x2x?x16xf32>
!k1x16 = tensor<?x1x?x16xf32>
!cache1x16 = tensor<?x?x1x16xf32>
!o2x16 = tensor<?x?x2x16xf32>
!l2 = tensor<?x2x?xf32>
func.func @small(%longest: index, %query: !q2x16, %key: !cache1x16, %value: !cache1x16) -> (!o2x16, !l2) {
  %starts = arith.constant dense<[0, 0, 1, 131, 260, 260, 301]> : tensor<7xi32>
  %lengths = arith.constant dense<[7, 140, 300, 129, 0, 30]> : tensor<6xi32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %bounds = tensor.dim %starts, %c0 : tensor<7xi32>
  %batch = arith.subi %bounds, %c1 : index
  %length = tensor.dim %key, %c1 : !cache1x16
  %keys_room = tensor.empty(%batch, %length) : !k1x16
  %k = linalg.transpose ins(%key : !cache1x16) outs(%keys_room : !k1x16) permutation = [0, 2, 1, 3]
  %v = linalg.transpose ins(%value : !cache1x16) outs(%keys_room : !k1x16) permutation = [0, 2, 1, 3]
  %tokens = tensor.dim %query, %c2 : !q2x16
  %rows_low = arith.maxsi %longest, %c0 : index
  %rows = arith.minsi %rows_low, %tokens : index
  %queries_room = tensor.empty(%batch, %rows) : !q2x16
  %q = scf.forall (%b) in (%batch) shared_outs(%q_out = %queries_room) -> (!q2x16) {
    %next = arith.addi %b, %c1 : index
    %first32 = tensor.extract %starts[%b] : tensor<7xi32>
    %first = arith.index_cast %first32 : i32 to index
    %end32 = tensor.extract %starts[%next] : tensor<7xi32>
    %end = arith.index_cast %end32 : i32 to index
    %low = arith.maxsi %first, %c0 : index
    %start = arith.minsi %low, %tokens : index
    %stop = arith.minsi %end, %tokens : index
    %more = arith.subi %stop, %start : index
    %some = arith.maxsi %more, %c0 : index
    %count = arith.minsi %some, %rows : index
    %q_rows = tensor.extract_slice %query[0, 0, %start, 0] [1, 2, %count, 16] [1, 1, 1, 1] : !q2x16 to tensor<1x2x?x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %q_rows into %q_out[%b, 0, 0, 0] [1, 2, %count, 16] [1, 1, 1, 1] : tensor<1x2x?x16xf32> into !q2x16
    }
  }
  %batch_o, %batch_lse = attn.attention %q, %k, %v scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %used32 = tensor.extract %lengths[%b] : tensor<6xi32>
      %used = arith.index_cast %used32 : i32 to index
      %next = arith.addi %b, %c1 : index
      %first32 = tensor.extract %starts[%b] : tensor<7xi32>
      %first = arith.index_cast %first32 : i32 to index
      %end32 = tensor.extract %starts[%next] : tensor<7xi32>
      %end = arith.index_cast %end32 : i32 to index
      %own = arith.subi %end, %first : index
      %behind = arith.addi %i, %used : index
      %last = arith.subi %behind, %own : index
      %is = arith.cmpi slt, %j, %used : index
      %past = arith.cmpi sge, %last, %j : index
      %keep = arith.andi %is, %past : i1
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 32x16, order = longest_first>} : !q2x16, !k1x16, !k1x16 -> !q2x16, !l2
  %o_room = tensor.empty(%c1, %tokens) : !q2x16
  %lse_room = tensor.empty(%c1, %tokens) : !l2
  %o, %lse = scf.forall (%b) in (%batch) shared_outs(%o_out = %o_room, %lse_out = %lse_room) -> (!q2x16, !l2) {
    %next = arith.addi %b, %c1 : index
    %first32 = tensor.extract %starts[%b] : tensor<7xi32>
    %first = arith.index_cast %first32 : i32 to index
    %end32 = tensor.extract %starts[%next] : tensor<7xi32>
    %end = arith.index_cast %end32 : i32 to index
    %low = arith.maxsi %first, %c0 : index
    %start = arith.minsi %low, %tokens : index
    %stop = arith.minsi %end, %tokens : index
    %more = arith.subi %stop, %start : index
    %some = arith.maxsi %more, %c0 : index
    %count = arith.minsi %some, %rows : index
    %o_rows = tensor.extract_slice %batch_o[%b, 0, 0, 0] [1, 2, %count, 16] [1, 1, 1, 1] : !q2x16 to tensor<1x2x?x16xf32>
    %lse_rows = tensor.extract_slice %batch_lse[%b, 0, 0] [1, 2, %count] [1, 1, 1] : !l2 to tensor<1x2x?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %o_rows into %o_out[0, 0, %start, 0] [1, 2, %count, 16] [1, 1, 1, 1] : tensor<1x2x?x16xf32> into !q2x16
      tensor.parallel_insert_slice %lse_rows into %lse_out[0, 0, %start] [1, 2, %count] [1, 1, 1] : tensor<1x2x?xf32> into !l2
    }
  }
  %turned_room = tensor.empty(%c1, %tokens) : !o2x16
  %turned = linalg.transpose ins(%o : !q2x16) outs(%turned_room : !o2x16) permutation = [0, 2, 1, 3]
  return %turned, %lse : !o2x16, !l2
}
func.func @given(%longest: index, %query: !q1x16, %key: !cache1x16, %value: !cache1x16, %room: !q1x16) -> !q1x16 {
  %starts = arith.constant dense<[0, 0, 1, 131, 260, 260, 301]> : tensor<7xi32>
  %lengths = arith.constant dense<[7, 140, 300, 129, 0, 30]> : tensor<6xi32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %bounds = tensor.dim %starts, %c0 : tensor<7xi32>
  %batch = arith.subi %bounds, %c1 : index
  %length = tensor.dim %key, %c1 : !cache1x16
  %keys_room = tensor.empty(%batch, %length) : !k1x16
  %k = linalg.transpose ins(%key : !cache1x16) outs(%keys_room : !k1x16) permutation = [0, 2, 1, 3]
  %v = linalg.transpose ins(%value : !cache1x16) outs(%keys_room : !k1x16) permutation = [0, 2, 1, 3]
  %tokens = tensor.dim %query, %c2 : !q1x16
  %rows_low = arith.maxsi %longest, %c0 : index
  %rows = arith.minsi %rows_low, %tokens : index
  %queries_room = tensor.empty(%batch, %rows) : !q1x16
  %q = scf.forall (%b) in (%batch) shared_outs(%q_out = %queries_room) -> (!q1x16) {
    %next = arith.addi %b, %c1 : index
    %first32 = tensor.extract %starts[%b] : tensor<7xi32>
    %first = arith.index_cast %first32 : i32 to index
    %end32 = tensor.extract %starts[%next] : tensor<7xi32>
    %end = arith.index_cast %end32 : i32 to index
    %low = arith.maxsi %first, %c0 : index
    %start = arith.minsi %low, %tokens : index
    %stop = arith.minsi %end, %tokens : index
    %more = arith.subi %stop, %start : index
    %some = arith.maxsi %more, %c0 : index
    %count = arith.minsi %some, %rows : index
    %q_rows = tensor.extract_slice %query[0, 0, %start, 0] [1, 1, %count, 16] [1, 1, 1, 1] : !q1x16 to tensor<1x1x?x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %q_rows into %q_out[%b, 0, 0, 0] [1, 1, %count, 16] [1, 1, 1, 1] : tensor<1x1x?x16xf32> into !q1x16
    }
  }
  %batch_o = attn.attention %q, %k, %v scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %used32 = tensor.extract %lengths[%b] : tensor<6xi32>
      %used = arith.index_cast %used32 : i32 to index
      %next = arith.addi %b, %c1 : index
      %first32 = tensor.extract %starts[%b] : tensor<7xi32>
      %first = arith.index_cast %first32 : i32 to index
      %end32 = tensor.extract %starts[%next] : tensor<7xi32>
      %end = arith.index_cast %end32 : i32 to index
      %own = arith.subi %end, %first : index
      %behind = arith.addi %i, %used : index
      %last = arith.subi %behind, %own : index
      %is = arith.cmpi slt, %j, %used : index
      %past = arith.cmpi sge, %last, %j : index
      %keep = arith.andi %is, %past : i1
      attn.yield %keep : i1
    } : !q1x16, !k1x16, !k1x16 -> !q1x16
  %o = scf.forall (%b) in (%batch) shared_outs(%o_out = %room) -> (!q1x16) {
    %next = arith.addi %b, %c1 : index
    %first32 = tensor.extract %starts[%b] : tensor<7xi32>
    %first = arith.index_cast %first32 : i32 to index
    %end32 = tensor.extract %starts[%next] : tensor<7xi32>
    %end = arith.index_cast %end32 : i32 to index
    %low = arith.maxsi %first, %c0 : index
    %start = arith.minsi %low, %tokens : index
    %stop = arith.minsi %end, %tokens : index
    %more = arith.subi %stop, %start : index
    %some = arith.maxsi %more, %c0 : index
    %count = arith.minsi %some, %rows : index
    %o_rows = tensor.extract_slice %batch_o[%b, 0, 0, 0] [1, 1, %count, 16] [1, 1, 1, 1] : !q1x16 to tensor<1x1x?x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %o_rows into %o_out[0, 0, %start, 0] [1, 1, %count, 16] [1, 1, 1, 1] : tensor<1x1x?x16xf32> into !q1x16
    }
  }
  return %o : !q1x16
}
