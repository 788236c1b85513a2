// RUN: fovea-opt %s --attn-online-softmax --attn-tile=fuse-producers=false --canonicalize --cse --split-input-file --mlir-print-local-scope | FileCheck %s
// RUN: fovea-opt %s --attn-online-softmax --attn-tile="fuse-producers=false fuse-consumers=false" --canonicalize --cse --split-input-file --mlir-print-local-scope | FileCheck %s --check-prefix=OFF

// Tiles of sequences are read and written where their rows lie packed, of the output and
// of the log-sum-exp at once: both loops that copy rows are gone. A tile has no more
// rows than its sequence has behind the tile's first one, and none where that is behind
// them all; its loop has no step then.

// CHECK-LABEL: func @both
// CHECK-SAME:    %[[QUERY:[^:]*]]: tensor<?x2x?x64xbf16>, %[[KEY:[^:]*]]: tensor<?x2x?x64xbf16>, %[[STARTS:[^:]*]]: tensor<?xi32>, %[[ROWS:[^:]*]]: index
// CHECK-NOT:   scf.forall
// CHECK:       %[[BATCH:.*]] = arith.subi %{{.*}}, %c1
// CHECK:       %[[TOKENS:.*]] = tensor.dim %[[QUERY]], %c2
// CHECK-DAG:   %[[ROOM:.*]] = tensor.empty(%[[TOKENS]]) : tensor<1x2x?x64xbf16>
// CHECK-DAG:   %[[LROOM:.*]] = tensor.empty(%[[TOKENS]]) : tensor<1x2x?xf32>
// CHECK-NOT:   scf.forall
// CHECK:       %[[ALL:.*]]:2 = scf.forall (%[[B:.*]], %[[H:.*]], %[[I:.*]]) = (0, 0, 0) to (%[[BATCH]], 2, %[[ROWS]]) step (1, 1, 64) shared_outs(%[[OUT:.*]] = %[[ROOM]], %[[LOUT:.*]] = %[[LROOM]])
// CHECK-DAG:     %[[NEXT:.*]] = arith.addi %[[B]], %c1 : index
// CHECK-DAG:     %[[FIRST:.*]] = tensor.extract %[[STARTS]][%[[B]]]
// CHECK-DAG:     %[[START:.*]] = arith.index_cast %[[FIRST]] : i32 to index
// CHECK-DAG:     %[[LAST:.*]] = tensor.extract %[[STARTS]][%[[NEXT]]]
// CHECK-DAG:     %[[END:.*]] = arith.index_cast %[[LAST]] : i32 to index
// CHECK-DAG:     %[[MORE:.*]] = arith.subi %[[END]], %[[START]]
// CHECK:         %[[OWN:.*]] = arith.minsi %[[MORE]], %[[ROWS]]
// CHECK-NEXT:    %[[SOME:.*]] = arith.maxsi %[[OWN]], %[[I]]
// CHECK-NEXT:    %[[COUNT:.*]] = affine.min affine_map<(d0)[s0, s1, s2] -> (-d0 + s2, 64, s0 - s1)>(%[[I]])[%[[SOME]], %[[I]], %[[ROWS]]]
// CHECK-NEXT:    %[[ROW:.*]] = arith.addi %[[START]], %[[I]]
// CHECK-NEXT:    %[[ANY:.*]] = arith.cmpi sgt, %[[COUNT]], %c0
// What says where rows are is computed once, also for queries.
// CHECK-NOT:     tensor.extract %
// CHECK:         %[[KEYS:.*]] = tensor.dim %[[KEY]], %c2
// CHECK:         %[[Q:.*]] = tensor.extract_slice %[[QUERY]][0, %[[H]], %[[ROW]], 0] [1, 1, %[[COUNT]], 64]
// CHECK:         %[[STEPS:.*]] = arith.select %[[ANY]], %[[KEYS]], %c0
// CHECK:         scf.for %[[J:[^ ]*]] = %c0 to %[[STEPS]] step %c64
// CHECK:           tensor.extract_slice %[[KEY]][%[[B]], %[[H]], %[[J]], 0]
// CHECK:           attn.online_attention {{.*}} ins(%[[Q]], %
// CHECK-DAG:     %[[OROOM:.*]] = tensor.empty(%[[COUNT]]) : tensor<1x1x?x64xbf16>
// CHECK:         %[[O:.*]]:2 = attn.finalize {{.*}} outs(%[[OROOM]], %{{.*}} :
// CHECK:         scf.forall.in_parallel {
// CHECK-NEXT:      tensor.parallel_insert_slice %[[O]]#0 into %[[OUT]][0, %[[H]], %[[ROW]], 0] [1, 1, %[[COUNT]], 64] [1, 1, 1, 1]
// CHECK-NEXT:      tensor.parallel_insert_slice %[[O]]#1 into %[[LOUT]][0, %[[H]], %[[ROW]]] [1, 1, %[[COUNT]]] [1, 1, 1]
// CHECK-NEXT:    }
// CHECK-NOT:   scf.forall
// CHECK:       %[[CAST:.*]] = tensor.cast %[[ALL]]#0
// CHECK:       %[[LCAST:.*]] = tensor.cast %[[ALL]]#1
// CHECK:       return %[[CAST]], %[[LCAST]]

// OFF-LABEL: func @both
// OFF:         scf.forall (%{{[^,]*}}) in
// OFF:         scf.forall (%{{.*}}, %{{.*}}, %{{.*}}) =
// OFF:           attn.finalize
// OFF:         scf.forall (%{{[^,]*}}) in
!all = tensor<?x2x?x64xbf16>
!lse = tensor<?x2x?xf32>
#gpu = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>
func.func @both(%query: !all, %key: !all, %starts: tensor<?xi32>, %rows: index) -> (!all, !lse) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %bounds = tensor.dim %starts, %c0 : tensor<?xi32>
  %batch = arith.subi %bounds, %c1 : index
  %tokens = tensor.dim %query, %c2 : !all
  %queries_room = tensor.empty(%batch, %rows) : !all
  %q = scf.forall (%b) in (%batch) shared_outs(%out = %queries_room) -> (!all) {
    %next = arith.addi %b, %c1 : index
    %first = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %first : i32 to index
    %last = tensor.extract %starts[%next] : tensor<?xi32>
    %end = arith.index_cast %last : i32 to index
    %more = arith.subi %end, %start : index
    %count = arith.minsi %more, %rows : index
    %some = tensor.extract_slice %query[0, 0, %start, 0] [1, 2, %count, 64] [1, 1, 1, 1] : !all to tensor<1x2x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[%b, 0, 0, 0] [1, 2, %count, 64] [1, 1, 1, 1] : tensor<1x2x?x64xbf16> into !all
    }
  }
  %o, %l = attn.attention %q, %key, %key scale(0.125) {schedule = #gpu} : !all, !all, !all -> !all, !lse
  %room = tensor.empty(%c1, %tokens) : !all
  %lse_room = tensor.empty(%c1, %tokens) : !lse
  %packed:2 = scf.forall (%b) in (%batch) shared_outs(%out = %room, %lse_out = %lse_room) -> (!all, !lse) {
    %next = arith.addi %b, %c1 : index
    %first = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %first : i32 to index
    %last = tensor.extract %starts[%next] : tensor<?xi32>
    %end = arith.index_cast %last : i32 to index
    %more = arith.subi %end, %start : index
    %count = arith.minsi %more, %rows : index
    %some = tensor.extract_slice %o[%b, 0, 0, 0] [1, 2, %count, 64] [1, 1, 1, 1] : !all to tensor<1x2x?x64xbf16>
    %lse_some = tensor.extract_slice %l[%b, 0, 0] [1, 2, %count] [1, 1, 1] : !lse to tensor<1x2x?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[0, 0, %start, 0] [1, 2, %count, 64] [1, 1, 1, 1] : tensor<1x2x?x64xbf16> into !all
      tensor.parallel_insert_slice %lse_some into %lse_out[0, 0, %start] [1, 2, %count] [1, 1, 1] : tensor<1x2x?xf32> into !lse
    }
  }
  return %packed#0, %packed#1 : !all, !lse
}

// -----

// Where a mask says which keys there are, the pass is told of how many queries: those of
// the padded batch, of which the packed ones say nothing.

// CHECK-LABEL: func @masked
// CHECK-SAME:    %[[QUERY:[^:]*]]: tensor<?x2x?x64xbf16>, %{{.*}}: tensor<?x2x?x64xbf16>, %{{.*}}: tensor<?xi32>, %[[ROWS:[^:]*]]: index
// CHECK:       scf.forall
// CHECK:         %[[Q:.*]] = tensor.extract_slice %[[QUERY]]
// CHECK:         attn.online_attention {{.*}} ins(%[[Q]], {{.*}} at[{{.*}}] whole[%c2, %[[ROWS]]] partial
!all = tensor<?x2x?x64xbf16>
#gpu = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>
func.func @masked(%query: !all, %key: !all, %starts: tensor<?xi32>, %rows: index) -> !all {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %bounds = tensor.dim %starts, %c0 : tensor<?xi32>
  %batch = arith.subi %bounds, %c1 : index
  %tokens = tensor.dim %query, %c2 : !all
  %queries_room = tensor.empty(%batch, %rows) : !all
  %q = scf.forall (%b) in (%batch) shared_outs(%out = %queries_room) -> (!all) {
    %next = arith.addi %b, %c1 : index
    %first = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %first : i32 to index
    %last = tensor.extract %starts[%next] : tensor<?xi32>
    %end = arith.index_cast %last : i32 to index
    %more = arith.subi %end, %start : index
    %count = arith.minsi %more, %rows : index
    %some = tensor.extract_slice %query[0, 0, %start, 0] [1, 2, %count, 64] [1, 1, 1, 1] : !all to tensor<1x2x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[%b, 0, 0, 0] [1, 2, %count, 64] [1, 1, 1, 1] : tensor<1x2x?x64xbf16> into !all
    }
  }
  %o = attn.attention %q, %key, %key scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %first = tensor.extract %starts[%b] : tensor<?xi32>
      %start = arith.index_cast %first : i32 to index
      %last = arith.addi %i, %start : index
      %keep = arith.cmpi sge, %last, %j : index
      attn.yield %keep : i1
    } {schedule = #gpu} : !all, !all, !all -> !all
  %room = tensor.empty(%c1, %tokens) : !all
  %packed = scf.forall (%b) in (%batch) shared_outs(%out = %room) -> (!all) {
    %next = arith.addi %b, %c1 : index
    %first = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %first : i32 to index
    %last = tensor.extract %starts[%next] : tensor<?xi32>
    %end = arith.index_cast %last : i32 to index
    %more = arith.subi %end, %start : index
    %count = arith.minsi %more, %rows : index
    %some = tensor.extract_slice %o[%b, 0, 0, 0] [1, 2, %count, 64] [1, 1, 1, 1] : !all to tensor<1x2x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[0, 0, %start, 0] [1, 2, %count, 64] [1, 1, 1, 1] : tensor<1x2x?x64xbf16> into !all
    }
  }
  return %packed : !all
}

// -----

// A tile is also written where its rows are in a transposed result. Tiles of a static
// number of queries are whole ones, so a tile writes the first of the rows that it
// computes. The packed tensor has other heads in front. Queries that no loop copies are
// those of the batch.

// CHECK-LABEL: func @transposed
// CHECK-SAME:    %[[Q:[^:]*]]: tensor<3x2x128x16xf16>, %[[STARTS:[^:]*]]: tensor<4xi32>
// CHECK:       %[[TURNED:.*]] = tensor.empty() : tensor<1x300x4x16xf16>
// CHECK-NOT:   linalg.transpose
// CHECK:       %[[ALL:.*]] = scf.forall (%[[B:.*]], %[[H:.*]], %[[I:.*]]) = (0, 0, 0) to (3, 2, 128) step (1, 1, 64) shared_outs(%[[OUT:.*]] = %[[TURNED]]) -> (tensor<1x300x4x16xf16>)
// CHECK:         %[[FIRST:.*]] = tensor.extract %[[STARTS]][%[[B]]]
// CHECK:         %[[START:.*]] = arith.index_cast %[[FIRST]]
// CHECK:         %[[OWN:.*]] = arith.subi %{{.*}}, %[[START]]
// CHECK-NEXT:    %[[SOME:.*]] = arith.maxsi %[[OWN]], %[[I]]
// CHECK-NEXT:    %[[COUNT:.*]] = affine.min affine_map<()[s0, s1] -> (64, s0 - s1)>()[%[[SOME]], %[[I]]]
// CHECK-DAG:     %[[HEAD:.*]] = arith.addi %[[H]], %c2
// CHECK-DAG:     %[[ROW:.*]] = arith.addi %[[START]], %[[I]]
// CHECK-DAG:     %[[ANY:.*]] = arith.cmpi sgt, %[[COUNT]], %c0
// CHECK:         tensor.extract_slice %[[Q]][%[[B]], %[[H]], %[[I]], 0] [1, 1, 64, 16]
// CHECK:         %[[STEPS:.*]] = arith.select %[[ANY]], %c128, %c0
// CHECK:         scf.for %{{.*}} = %c0 to %[[STEPS]] step %c64
// CHECK:         %[[O:.*]] = attn.finalize {{.*}} -> tensor<1x1x64x16xf16>
// CHECK:         %[[ROWS:.*]] = tensor.extract_slice %[[O]][0, 0, 0, 0] [1, 1, %[[COUNT]], 16]
// CHECK:         tensor.parallel_insert_slice %{{.*}} into %[[OUT]][0, %[[ROW]], %[[HEAD]], 0] [1, %[[COUNT]], 1, 16]
// CHECK-NOT:   scf.forall
// CHECK-NOT:   linalg.transpose
// CHECK:       return %[[ALL]]
!x = tensor<3x2x128x16xf16>
#gpu = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>
func.func @transposed(%q: !x, %starts: tensor<4xi32>) -> tensor<1x300x4x16xf16> {
  %c1 = arith.constant 1 : index
  %o = attn.attention %q, %q, %q scale(0.25) {schedule = #gpu} : !x, !x, !x -> !x
  %room = tensor.empty() : tensor<1x4x300x16xf16>
  %packed = scf.forall (%b) in (3) shared_outs(%out = %room) -> (tensor<1x4x300x16xf16>) {
    %next = arith.addi %b, %c1 : index
    %first = tensor.extract %starts[%b] : tensor<4xi32>
    %start = arith.index_cast %first : i32 to index
    %last = tensor.extract %starts[%next] : tensor<4xi32>
    %end = arith.index_cast %last : i32 to index
    %count = arith.subi %end, %start : index
    %some = tensor.extract_slice %o[%b, 0, 0, 0] [1, 2, %count, 16] [1, 1, 1, 1] : !x to tensor<1x2x?x16xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[0, 2, %start, 0] [1, 2, %count, 16] [1, 1, 1, 1] : tensor<1x2x?x16xf16> into tensor<1x4x300x16xf16>
    }
  }
  %turned_room = tensor.empty() : tensor<1x300x4x16xf16>
  %turned = linalg.transpose ins(%packed : tensor<1x4x300x16xf16>) outs(%turned_room : tensor<1x300x4x16xf16>) permutation = [0, 2, 1, 3]
  return %turned : tensor<1x300x4x16xf16>
}

// -----

// Rows are written to what a function is given, and keep what is there where they are of
// no sequence. A batch may have a known number of rows.

// CHECK-LABEL: func @given
// CHECK-SAME:    %[[ROOM:[^:]*]]: tensor<1x2x300x16xf16>
// CHECK:       %[[ALL:.*]] = scf.forall (%[[B:.*]], %[[H:.*]], %[[I:.*]]) = {{.*}} shared_outs(%[[OUT:.*]] = %[[ROOM]])
// CHECK:         %[[START:.*]] = arith.muli %[[B]], %c100
// CHECK:         %[[SOME:.*]] = arith.maxsi %[[I]], %c100
// CHECK-NEXT:    %[[COUNT:.*]] = affine.min affine_map<()[s0, s1] -> (64, s0 - s1)>()[%[[SOME]], %[[I]]]
// CHECK:         tensor.parallel_insert_slice %{{.*}} into %[[OUT]][0, %[[H]], %{{.*}}, 0] [1, 1, %[[COUNT]], 16]
// CHECK-NOT:   scf.forall (
// CHECK:       return %[[ALL]]
!x = tensor<3x2x128x16xf16>
!p = tensor<1x2x300x16xf16>
#gpu = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>
func.func @given(%q: !x, %room: !p) -> !p {
  %c100 = arith.constant 100 : index
  %o = attn.attention %q, %q, %q scale(0.25) {schedule = #gpu} : !x, !x, !x -> !x
  %packed = scf.forall (%b) in (3) shared_outs(%out = %room) -> (!p) {
    %start = arith.muli %b, %c100 : index
    %some = tensor.extract_slice %o[%b, 0, 0, 0] [1, 2, 100, 16] [1, 1, 1, 1] : !x to tensor<1x2x100x16xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[0, 0, %start, 0] [1, 2, 100, 16] [1, 1, 1, 1] : tensor<1x2x100x16xf16> into !p
    }
  }
  return %packed : !p
}

// -----

// The batch itself is returned, so it is written, and its rows are copied.

// CHECK-LABEL: func @read
// CHECK:       %[[O:.*]] = scf.forall (%[[B:.*]], %[[H:.*]], %[[I:.*]]) =
// CHECK:         tensor.parallel_insert_slice %{{.*}} into %{{.*}}[%[[B]], %[[H]], %[[I]], 0] [1, 1, 64, 16]
// CHECK:       %[[P:.*]] = scf.forall (%{{[^,]*}}) in (3)
// CHECK:         tensor.extract_slice %[[O]]
// CHECK:       return %[[P]], %[[O]]
!x = tensor<3x2x128x16xf16>
!p = tensor<1x2x300x16xf16>
#gpu = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>
func.func @read(%q: !x, %room: !p) -> (!p, !x) {
  %c100 = arith.constant 100 : index
  %o = attn.attention %q, %q, %q scale(0.25) {schedule = #gpu} : !x, !x, !x -> !x
  %packed = scf.forall (%b) in (3) shared_outs(%out = %room) -> (!p) {
    %start = arith.muli %b, %c100 : index
    %some = tensor.extract_slice %o[%b, 0, 0, 0] [1, 2, 100, 16] [1, 1, 1, 1] : !x to tensor<1x2x100x16xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[0, 0, %start, 0] [1, 2, 100, 16] [1, 1, 1, 1] : tensor<1x2x100x16xf16> into !p
    }
  }
  return %packed, %o : !p, !x
}

// -----

// Rows of the last batch are not copied: they would be written to the packed tensor.

// CHECK-LABEL: func @fewer_batches
// CHECK:       %[[O:.*]] = scf.forall (%{{.*}}, %{{.*}}, %{{.*}}) =
// CHECK:       scf.forall (%{{[^,]*}}) in (2)
// CHECK:         tensor.extract_slice %[[O]]
!x = tensor<3x2x128x16xf16>
!p = tensor<1x2x300x16xf16>
#gpu = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>
func.func @fewer_batches(%q: !x, %room: !p) -> !p {
  %c100 = arith.constant 100 : index
  %o = attn.attention %q, %q, %q scale(0.25) {schedule = #gpu} : !x, !x, !x -> !x
  %packed = scf.forall (%b) in (2) shared_outs(%out = %room) -> (!p) {
    %start = arith.muli %b, %c100 : index
    %some = tensor.extract_slice %o[%b, 0, 0, 0] [1, 2, 100, 16] [1, 1, 1, 1] : !x to tensor<1x2x100x16xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[0, 0, %start, 0] [1, 2, 100, 16] [1, 1, 1, 1] : tensor<1x2x100x16xf16> into !p
    }
  }
  return %packed : !p
}

// -----

// The number of batches that are copied is not known to be that of all.

// CHECK-LABEL: func @some_batches
// CHECK:       %[[O:.*]] = scf.forall (%{{.*}}, %{{.*}}, %{{.*}}) =
// CHECK:       scf.forall (%{{[^,]*}}) in (%{{.*}})
// CHECK:         tensor.extract_slice %[[O]]
!x = tensor<?x2x128x16xf16>
!p = tensor<1x2x300x16xf16>
#gpu = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>
func.func @some_batches(%q: !x, %room: !p, %count: index) -> !p {
  %c100 = arith.constant 100 : index
  %o = attn.attention %q, %q, %q scale(0.25) {schedule = #gpu} : !x, !x, !x -> !x
  %packed = scf.forall (%b) in (%count) shared_outs(%out = %room) -> (!p) {
    %start = arith.muli %b, %c100 : index
    %some = tensor.extract_slice %o[%b, 0, 0, 0] [1, 2, 100, 16] [1, 1, 1, 1] : !x to tensor<1x2x100x16xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[0, 0, %start, 0] [1, 2, 100, 16] [1, 1, 1, 1] : tensor<1x2x100x16xf16> into !p
    }
  }
  return %packed : !p
}

// -----

// Another batch's rows are copied to each place.

// CHECK-LABEL: func @other_batch
// CHECK:       %[[O:.*]] = scf.forall (%{{.*}}, %{{.*}}, %{{.*}}) =
// CHECK:       scf.forall (%{{[^,]*}}) in (3)
// CHECK:         tensor.extract_slice %[[O]]
!x = tensor<3x2x128x16xf16>
!p = tensor<1x2x300x16xf16>
#gpu = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>
func.func @other_batch(%q: !x, %room: !p) -> !p {
  %c2 = arith.constant 2 : index
  %c100 = arith.constant 100 : index
  %o = attn.attention %q, %q, %q scale(0.25) {schedule = #gpu} : !x, !x, !x -> !x
  %packed = scf.forall (%b) in (3) shared_outs(%out = %room) -> (!p) {
    %start = arith.muli %b, %c100 : index
    %other = arith.subi %c2, %b : index
    %some = tensor.extract_slice %o[%other, 0, 0, 0] [1, 2, 100, 16] [1, 1, 1, 1] : !x to tensor<1x2x100x16xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[0, 0, %start, 0] [1, 2, 100, 16] [1, 1, 1, 1] : tensor<1x2x100x16xf16> into !p
    }
  }
  return %packed : !p
}

// -----

// The rows that are copied do not begin with the first one.

// CHECK-LABEL: func @later_rows
// CHECK:       %[[O:.*]] = scf.forall (%{{.*}}, %{{.*}}, %{{.*}}) =
// CHECK:       scf.forall (%{{[^,]*}}) in (3)
// CHECK:         tensor.extract_slice %[[O]][%{{.*}}, 0, 1, 0]
!x = tensor<3x2x128x16xf16>
!p = tensor<1x2x300x16xf16>
#gpu = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>
func.func @later_rows(%q: !x, %room: !p) -> !p {
  %c100 = arith.constant 100 : index
  %o = attn.attention %q, %q, %q scale(0.25) {schedule = #gpu} : !x, !x, !x -> !x
  %packed = scf.forall (%b) in (3) shared_outs(%out = %room) -> (!p) {
    %start = arith.muli %b, %c100 : index
    %some = tensor.extract_slice %o[%b, 0, 1, 0] [1, 2, 100, 16] [1, 1, 1, 1] : !x to tensor<1x2x100x16xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[0, 0, %start, 0] [1, 2, 100, 16] [1, 1, 1, 1] : tensor<1x2x100x16xf16> into !p
    }
  }
  return %packed : !p
}

// -----

// Only one of two heads is copied, or half of the features.

// CHECK-LABEL: func @half
// CHECK:       %[[O:.*]] = scf.forall (%{{.*}}, %{{.*}}, %{{.*}}) =
// CHECK:       scf.forall (%{{[^,]*}}) in (3)
// CHECK:         tensor.extract_slice %[[O]][%{{.*}}, 0, 0, 0] [1, 1, 100, 16]
// CHECK:       %[[P:.*]] = scf.forall (%{{.*}}, %{{.*}}, %{{.*}}) =
// CHECK:       scf.forall (%{{[^,]*}}) in (3)
// CHECK:         tensor.extract_slice %[[P]][%{{.*}}, 0, 0, 0] [1, 2, 100, 8]
!x = tensor<3x2x128x16xf16>
!h = tensor<1x1x300x16xf16>
!d = tensor<1x2x300x8xf16>
#gpu = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>
func.func @half(%q: !x, %r: !x, %room: !h, %other_room: !d) -> (!h, !d) {
  %c100 = arith.constant 100 : index
  %o = attn.attention %q, %q, %q scale(0.25) {schedule = #gpu} : !x, !x, !x -> !x
  %heads = scf.forall (%b) in (3) shared_outs(%out = %room) -> (!h) {
    %start = arith.muli %b, %c100 : index
    %some = tensor.extract_slice %o[%b, 0, 0, 0] [1, 1, 100, 16] [1, 1, 1, 1] : !x to tensor<1x1x100x16xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[0, 0, %start, 0] [1, 1, 100, 16] [1, 1, 1, 1] : tensor<1x1x100x16xf16> into !h
    }
  }
  %p = attn.attention %r, %r, %r scale(0.25) {schedule = #gpu} : !x, !x, !x -> !x
  %features = scf.forall (%b) in (3) shared_outs(%out = %other_room) -> (!d) {
    %start = arith.muli %b, %c100 : index
    %some = tensor.extract_slice %p[%b, 0, 0, 0] [1, 2, 100, 8] [1, 1, 1, 1] : !x to tensor<1x2x100x8xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[0, 0, %start, 0] [1, 2, 100, 8] [1, 1, 1, 1] : tensor<1x2x100x8xf16> into !d
    }
  }
  return %heads, %features : !h, !d
}

// -----

// The output has other rows than the log-sum-exp.

// CHECK-LABEL: func @other_counts
// CHECK:       %[[O:.*]]:2 = scf.forall (%{{.*}}, %{{.*}}, %{{.*}}) =
// CHECK:       scf.forall (%{{[^,]*}}) in (3)
// CHECK-DAG:     tensor.extract_slice %[[O]]#0
// CHECK-DAG:     tensor.extract_slice %[[O]]#1
!x = tensor<3x2x128x16xf16>
!l = tensor<3x2x128xf32>
!p = tensor<1x2x300x16xf16>
!pl = tensor<1x2x300xf32>
#gpu = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>
func.func @other_counts(%q: !x, %room: !p, %lse_room: !pl) -> (!p, !pl) {
  %c100 = arith.constant 100 : index
  %o, %l = attn.attention %q, %q, %q scale(0.25) {schedule = #gpu} : !x, !x, !x -> !x, !l
  %packed:2 = scf.forall (%b) in (3) shared_outs(%out = %room, %lse_out = %lse_room) -> (!p, !pl) {
    %start = arith.muli %b, %c100 : index
    %some = tensor.extract_slice %o[%b, 0, 0, 0] [1, 2, 100, 16] [1, 1, 1, 1] : !x to tensor<1x2x100x16xf16>
    %lse_some = tensor.extract_slice %l[%b, 0, 0] [1, 2, 90] [1, 1, 1] : !l to tensor<1x2x90xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[0, 0, %start, 0] [1, 2, 100, 16] [1, 1, 1, 1] : tensor<1x2x100x16xf16> into !p
      tensor.parallel_insert_slice %lse_some into %lse_out[0, 0, %start] [1, 2, 90] [1, 1, 1] : tensor<1x2x90xf32> into !pl
    }
  }
  return %packed#0, %packed#1 : !p, !pl
}

// -----

// Where rows are written is known behind attention alone.

// CHECK-LABEL: func @late
// CHECK:       %[[O:.*]] = scf.forall (%{{.*}}, %{{.*}}, %{{.*}}) =
// CHECK:       %[[ROOM:.*]] = call @make
// CHECK:       scf.forall (%{{[^,]*}}) in (3) shared_outs(%{{.*}} = %[[ROOM]])
// CHECK:         tensor.extract_slice %[[O]]
!x = tensor<3x2x128x16xf16>
!p = tensor<1x2x300x16xf16>
#gpu = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>
func.func private @make() -> !p
func.func @late(%q: !x) -> !p {
  %c100 = arith.constant 100 : index
  %o = attn.attention %q, %q, %q scale(0.25) {schedule = #gpu} : !x, !x, !x -> !x
  %room = func.call @make() : () -> !p
  %packed = scf.forall (%b) in (3) shared_outs(%out = %room) -> (!p) {
    %start = arith.muli %b, %c100 : index
    %some = tensor.extract_slice %o[%b, 0, 0, 0] [1, 2, 100, 16] [1, 1, 1, 1] : !x to tensor<1x2x100x16xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[0, 0, %start, 0] [1, 2, 100, 16] [1, 1, 1, 1] : tensor<1x2x100x16xf16> into !p
    }
  }
  return %packed : !p
}

// -----

// Queries lie elsewhere than results, and their batch is also read by the second
// attention, so the copy stays for that one.

// CHECK-LABEL: func @elsewhere
// CHECK-SAME:    %[[QUERY:[^:]*]]: tensor<?x2x?x64xbf16>
// CHECK:       %[[Q:.*]] = scf.forall (%{{[^,]*}}) in (%{{.*}})
// CHECK:       scf.forall (%{{.*}}, %[[H:.*]], %[[I:.*]]) =
// CHECK:         %[[START:.*]] = arith.index_cast
// CHECK:         %[[COUNT:.*]] = affine.min
// CHECK:         %[[PLACE:.*]] = arith.addi %[[START]], %[[I]]
// CHECK:         %[[OTHER:.*]] = arith.addi %[[START]], %c7
// CHECK-NEXT:    %[[ROW:.*]] = arith.addi %[[OTHER]], %[[I]]
// CHECK-NEXT:    tensor.extract_slice %[[QUERY]][0, %[[H]], %[[ROW]], 0] [1, 1, %[[COUNT]], 64]
// CHECK:         tensor.parallel_insert_slice %{{.*}} into %{{.*}}[0, %[[H]], %[[PLACE]], 0] [1, 1, %[[COUNT]], 64]
// CHECK:       scf.forall (%[[B:.*]], %[[H:.*]], %[[I:.*]]) =
// CHECK:         tensor.extract_slice %[[Q]][%[[B]], %[[H]], %[[I]], 0]
!all = tensor<?x2x?x64xbf16>
#gpu = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>
func.func @elsewhere(%query: !all, %key: !all, %starts: tensor<?xi32>, %rows: index) -> (!all, !all) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %bounds = tensor.dim %starts, %c0 : tensor<?xi32>
  %batch = arith.subi %bounds, %c1 : index
  %tokens = tensor.dim %query, %c2 : !all
  %queries_room = tensor.empty(%batch, %rows) : !all
  %c7 = arith.constant 7 : index
  %q = scf.forall (%b) in (%batch) shared_outs(%out = %queries_room) -> (!all) {
    %next = arith.addi %b, %c1 : index
    %first = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %first : i32 to index
    %last = tensor.extract %starts[%next] : tensor<?xi32>
    %end = arith.index_cast %last : i32 to index
    %more = arith.subi %end, %start : index
    %count = arith.minsi %more, %rows : index
    %row = arith.addi %start, %c7 : index
    %some = tensor.extract_slice %query[0, 0, %row, 0] [1, 2, %count, 64] [1, 1, 1, 1] : !all to tensor<1x2x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[%b, 0, 0, 0] [1, 2, %count, 64] [1, 1, 1, 1] : tensor<1x2x?x64xbf16> into !all
    }
  }
  %o = attn.attention %q, %key, %key scale(0.125) {schedule = #gpu} : !all, !all, !all -> !all
  %room = tensor.empty(%c1, %tokens) : !all
  %packed = scf.forall (%b) in (%batch) shared_outs(%out = %room) -> (!all) {
    %next = arith.addi %b, %c1 : index
    %first = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %first : i32 to index
    %last = tensor.extract %starts[%next] : tensor<?xi32>
    %end = arith.index_cast %last : i32 to index
    %more = arith.subi %end, %start : index
    %count = arith.minsi %more, %rows : index
    %some = tensor.extract_slice %o[%b, 0, 0, 0] [1, 2, %count, 64] [1, 1, 1, 1] : !all to tensor<1x2x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[0, 0, %start, 0] [1, 2, %count, 64] [1, 1, 1, 1] : tensor<1x2x?x64xbf16> into !all
    }
  }
  %whole = attn.attention %q, %key, %key scale(0.125) {schedule = #gpu} : !all, !all, !all -> !all
  return %packed, %whole : !all, !all
}

// -----

// A reader of the output is computed on its tile first, which then is what is written where
// rows lie packed. Its other operand is read where its rows lie packed, too.

// CHECK-LABEL: func @gated
// CHECK-SAME:    %[[QUERY:[^:]*]]: tensor<?x2x?x64xbf16>, %[[GATE:[^:]*]]: tensor<?x2x?x64xbf16>
// CHECK-NOT:   scf.forall (
// CHECK:       %[[ALL:.*]] = scf.forall (%{{.*}}, %[[H:.*]], %[[I:.*]]) =
// CHECK:         %[[COUNT:.*]] = affine.min
// CHECK:         %[[ROW:.*]] = arith.addi %{{.*}}, %[[I]]
// CHECK:         tensor.extract_slice %[[QUERY]][0, %[[H]], %[[ROW]], 0] [1, 1, %[[COUNT]], 64]
// CHECK:         %[[O:.*]] = attn.finalize
// CHECK:         %[[G:.*]] = tensor.extract_slice %[[GATE]][0, %[[H]], %[[ROW]], 0] [1, 1, %[[COUNT]], 64]
// CHECK:         %[[Y:.*]] = linalg.mul ins(%[[O]], %[[G]] :
// CHECK:         tensor.parallel_insert_slice %[[Y]] into %{{.*}}[0, %[[H]], %[[ROW]], 0] [1, 1, %[[COUNT]], 64]
// CHECK-NOT:   scf.forall (
// CHECK-NOT:   linalg.mul
// CHECK:       %[[CAST:.*]] = tensor.cast %[[ALL]]
// CHECK:       return %[[CAST]]
!all = tensor<?x2x?x64xbf16>
#gpu = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>
func.func @gated(%query: !all, %gate: !all, %key: !all, %starts: tensor<?xi32>, %rows: index) -> !all {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %bounds = tensor.dim %starts, %c0 : tensor<?xi32>
  %batch = arith.subi %bounds, %c1 : index
  %tokens = tensor.dim %query, %c2 : !all
  %queries_room = tensor.empty(%batch, %rows) : !all
  %q = scf.forall (%b) in (%batch) shared_outs(%out = %queries_room) -> (!all) {
    %next = arith.addi %b, %c1 : index
    %first = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %first : i32 to index
    %last = tensor.extract %starts[%next] : tensor<?xi32>
    %end = arith.index_cast %last : i32 to index
    %more = arith.subi %end, %start : index
    %count = arith.minsi %more, %rows : index
    %some = tensor.extract_slice %query[0, 0, %start, 0] [1, 2, %count, 64] [1, 1, 1, 1] : !all to tensor<1x2x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[%b, 0, 0, 0] [1, 2, %count, 64] [1, 1, 1, 1] : tensor<1x2x?x64xbf16> into !all
    }
  }
  %g = scf.forall (%b) in (%batch) shared_outs(%out = %queries_room) -> (!all) {
    %next = arith.addi %b, %c1 : index
    %first = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %first : i32 to index
    %last = tensor.extract %starts[%next] : tensor<?xi32>
    %end = arith.index_cast %last : i32 to index
    %more = arith.subi %end, %start : index
    %count = arith.minsi %more, %rows : index
    %some = tensor.extract_slice %gate[0, 0, %start, 0] [1, 2, %count, 64] [1, 1, 1, 1] : !all to tensor<1x2x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[%b, 0, 0, 0] [1, 2, %count, 64] [1, 1, 1, 1] : tensor<1x2x?x64xbf16> into !all
    }
  }
  %o = attn.attention %q, %key, %key scale(0.125) {schedule = #gpu} : !all, !all, !all -> !all
  %m = linalg.mul ins(%o, %g : !all, !all) outs(%queries_room : !all) -> !all
  %room = tensor.empty(%c1, %tokens) : !all
  %packed = scf.forall (%b) in (%batch) shared_outs(%out = %room) -> (!all) {
    %next = arith.addi %b, %c1 : index
    %first = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %first : i32 to index
    %last = tensor.extract %starts[%next] : tensor<?xi32>
    %end = arith.index_cast %last : i32 to index
    %more = arith.subi %end, %start : index
    %count = arith.minsi %more, %rows : index
    %some = tensor.extract_slice %m[%b, 0, 0, 0] [1, 2, %count, 64] [1, 1, 1, 1] : !all to tensor<1x2x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[0, 0, %start, 0] [1, 2, %count, 64] [1, 1, 1, 1] : tensor<1x2x?x64xbf16> into !all
    }
  }
  return %packed : !all
}

// -----

// Queries are copied by another number than results: a tile may have rows that are not
// copied, which the batch's tensor has. So the copy stays in front, though results are
// written where they lie packed.

// CHECK-LABEL: func @other_queries
// CHECK:       %[[Q:.*]] = scf.forall (%{{[^,]*}}) in (%{{.*}})
// CHECK:       scf.forall (%[[B:.*]], %[[H:.*]], %[[I:.*]]) =
// CHECK:         %[[COUNT:.*]] = affine.min
// CHECK:         tensor.extract_slice %[[Q]][%[[B]], %[[H]], %[[I]], 0] [1, 1, %[[COUNT]], 64]
// CHECK:         tensor.parallel_insert_slice %{{.*}} into %{{.*}}[0, %[[H]], %{{.*}}, 0] [1, 1, %[[COUNT]], 64]
// CHECK-NOT:   scf.forall (
// CHECK:       return
!all = tensor<?x2x?x64xbf16>
#gpu = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>
func.func @other_queries(%query: !all, %key: !all, %starts: tensor<?xi32>, %rows: index, %fewer: index) -> !all {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %bounds = tensor.dim %starts, %c0 : tensor<?xi32>
  %batch = arith.subi %bounds, %c1 : index
  %tokens = tensor.dim %query, %c2 : !all
  %queries_room = tensor.empty(%batch, %rows) : !all
  %q = scf.forall (%b) in (%batch) shared_outs(%out = %queries_room) -> (!all) {
    %next = arith.addi %b, %c1 : index
    %first = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %first : i32 to index
    %last = tensor.extract %starts[%next] : tensor<?xi32>
    %end = arith.index_cast %last : i32 to index
    %more = arith.subi %end, %start : index
    %count = arith.minsi %more, %fewer : index
    %some = tensor.extract_slice %query[0, 0, %start, 0] [1, 2, %count, 64] [1, 1, 1, 1] : !all to tensor<1x2x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[%b, 0, 0, 0] [1, 2, %count, 64] [1, 1, 1, 1] : tensor<1x2x?x64xbf16> into !all
    }
  }
  %o = attn.attention %q, %key, %key scale(0.125) {schedule = #gpu} : !all, !all, !all -> !all
  %room = tensor.empty(%c1, %tokens) : !all
  %packed = scf.forall (%b) in (%batch) shared_outs(%out = %room) -> (!all) {
    %next = arith.addi %b, %c1 : index
    %first = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %first : i32 to index
    %last = tensor.extract %starts[%next] : tensor<?xi32>
    %end = arith.index_cast %last : i32 to index
    %more = arith.subi %end, %start : index
    %count = arith.minsi %more, %rows : index
    %some = tensor.extract_slice %o[%b, 0, 0, 0] [1, 2, %count, 64] [1, 1, 1, 1] : !all to tensor<1x2x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[0, 0, %start, 0] [1, 2, %count, 64] [1, 1, 1, 1] : tensor<1x2x?x64xbf16> into !all
    }
  }
  return %packed : !all
}

// -----

// Results stay a batch, whose rows are all computed, so queries are one, too.

// CHECK-LABEL: func @queries_only
// CHECK:       %[[Q:.*]] = scf.forall (%{{[^,]*}}) in (%{{.*}})
// CHECK:       scf.forall (%[[B:.*]], %[[H:.*]], %[[I:.*]]) =
// CHECK:         tensor.extract_slice %[[Q]][%[[B]], %[[H]], %[[I]], 0]
!all = tensor<?x2x?x64xbf16>
#gpu = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>
func.func @queries_only(%query: !all, %key: !all, %starts: tensor<?xi32>, %rows: index) -> !all {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %bounds = tensor.dim %starts, %c0 : tensor<?xi32>
  %batch = arith.subi %bounds, %c1 : index
  %tokens = tensor.dim %query, %c2 : !all
  %queries_room = tensor.empty(%batch, %rows) : !all
  %q = scf.forall (%b) in (%batch) shared_outs(%out = %queries_room) -> (!all) {
    %next = arith.addi %b, %c1 : index
    %first = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %first : i32 to index
    %last = tensor.extract %starts[%next] : tensor<?xi32>
    %end = arith.index_cast %last : i32 to index
    %more = arith.subi %end, %start : index
    %count = arith.minsi %more, %rows : index
    %some = tensor.extract_slice %query[0, 0, %start, 0] [1, 2, %count, 64] [1, 1, 1, 1] : !all to tensor<1x2x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[%b, 0, 0, 0] [1, 2, %count, 64] [1, 1, 1, 1] : tensor<1x2x?x64xbf16> into !all
    }
  }
  %o = attn.attention %q, %key, %key scale(0.125) {schedule = #gpu} : !all, !all, !all -> !all
  return %o : !all
}

// -----

// Parts of the keys have results of their own, which a loop merges before their rows are
// copied. Queries are copied in front.

// CHECK-LABEL: func @parts
// CHECK:       %[[Q:.*]] = scf.forall (%{{[^,]*}}) in (%{{.*}})
// CHECK:       %[[PARTS:.*]]:{{.*}} = scf.forall (%{{.*}}, %{{.*}}, %{{.*}}) =
// CHECK:         tensor.extract_slice %[[Q]]
// CHECK:         attn.online_attention
// CHECK:       %[[O:.*]] = scf.forall (%{{.*}}, %{{.*}}, %{{.*}})
// CHECK:       %[[PACKED:.*]] = scf.forall (%{{[^,]*}}) in (%{{.*}})
// CHECK:         tensor.extract_slice %[[O]]
// CHECK:       %[[CAST:.*]] = tensor.cast %[[PACKED]]
// CHECK:       return %[[CAST]]
!all = tensor<?x2x?x64xbf16>
#gpu = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, split = 4>
func.func @parts(%query: !all, %key: !all, %starts: tensor<?xi32>, %rows: index) -> !all {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %bounds = tensor.dim %starts, %c0 : tensor<?xi32>
  %batch = arith.subi %bounds, %c1 : index
  %tokens = tensor.dim %query, %c2 : !all
  %queries_room = tensor.empty(%batch, %rows) : !all
  %q = scf.forall (%b) in (%batch) shared_outs(%out = %queries_room) -> (!all) {
    %next = arith.addi %b, %c1 : index
    %first = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %first : i32 to index
    %last = tensor.extract %starts[%next] : tensor<?xi32>
    %end = arith.index_cast %last : i32 to index
    %more = arith.subi %end, %start : index
    %count = arith.minsi %more, %rows : index
    %some = tensor.extract_slice %query[0, 0, %start, 0] [1, 2, %count, 64] [1, 1, 1, 1] : !all to tensor<1x2x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[%b, 0, 0, 0] [1, 2, %count, 64] [1, 1, 1, 1] : tensor<1x2x?x64xbf16> into !all
    }
  }
  %o = attn.attention %q, %key, %key scale(0.125) {schedule = #gpu} : !all, !all, !all -> !all
  %room = tensor.empty(%c1, %tokens) : !all
  %packed = scf.forall (%b) in (%batch) shared_outs(%out = %room) -> (!all) {
    %next = arith.addi %b, %c1 : index
    %first = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %first : i32 to index
    %last = tensor.extract %starts[%next] : tensor<?xi32>
    %end = arith.index_cast %last : i32 to index
    %more = arith.subi %end, %start : index
    %count = arith.minsi %more, %rows : index
    %some = tensor.extract_slice %o[%b, 0, 0, 0] [1, 2, %count, 64] [1, 1, 1, 1] : !all to tensor<1x2x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[0, 0, %start, 0] [1, 2, %count, 64] [1, 1, 1, 1] : tensor<1x2x?x64xbf16> into !all
    }
  }
  return %packed : !all
}

// -----

// All rows of the log-sum-exp are read, so that a tile has them all.
// CHECK-LABEL: func @padded_lse
// CHECK:       scf.forall
// CHECK:         scf.forall.in_parallel
// CHECK:       scf.forall
!all = tensor<2x1x128x64xf16>
!packed = tensor<1x1x?x64xf16>
!lse = tensor<2x1x128xf32>
func.func @padded_lse(%starts: tensor<?xi32>, %q: !all, %k: !all, %room: !packed) -> (!packed, !lse) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c128 = arith.constant 128 : index
  %o, %l = attn.attention %q, %k, %k scale(0.125) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>} : !all, !all, !all -> !all, !lse
  %po = scf.forall (%b) in (2) shared_outs(%out = %room) -> (!packed) {
    %next = arith.addi %b, %c1 : index
    %first = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %first : i32 to index
    %last = tensor.extract %starts[%next] : tensor<?xi32>
    %end = arith.index_cast %last : i32 to index
    %more = arith.subi %end, %start : index
    %count = arith.minsi %more, %c128 : index
    %some = tensor.extract_slice %o[%b, 0, 0, 0] [1, 1, %count, 64] [1, 1, 1, 1] : !all to tensor<1x1x?x64xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[0, 0, %start, 0] [1, 1, %count, 64] [1, 1, 1, 1] : tensor<1x1x?x64xf16> into !packed
    }
  }
  return %po, %l : !packed, !lse
}

// -----

// Keys and values that are copied from where they lie packed are read there, too: no more
// than a sequence has, from its first one on.

// CHECK-LABEL: func @keys
// CHECK-SAME:    %[[QUERY:[^:]*]]: tensor<?x4x?x64xbf16>, %[[KEY:[^:]*]]: tensor<?x2x?x64xbf16>, %[[VALUE:[^:]*]]: tensor<?x2x?x64xbf16>, %[[STARTS:[^:]*]]: tensor<?xi32>
// CHECK-NOT:   scf.forall (%{{[^,]*}}) in
// CHECK:       scf.forall (%[[B:.*]], %[[H:.*]], %{{.*}}) =
// CHECK:         %[[NEXT:.*]] = arith.addi %[[B]], %c1
// CHECK-NEXT:    %[[FIRST:.*]] = tensor.extract %[[STARTS]][%[[B]]]
// CHECK-NEXT:    %[[START:.*]] = arith.index_cast %[[FIRST]]
// CHECK-NEXT:    %[[LAST:.*]] = tensor.extract %[[STARTS]][%[[NEXT]]]
// CHECK-NEXT:    %[[END:.*]] = arith.index_cast %[[LAST]]
// CHECK-NEXT:    %[[COUNT:.*]] = arith.subi %[[END]], %[[START]]
// CHECK-NOT:     tensor.extract %
// CHECK:         scf.for %[[J:[^ ]*]] = %c0 to %[[COUNT]] step %c64
// CHECK-NEXT:      %[[SIZE:.*]] = affine.min affine_map<(d0)[s0] -> (-d0 + s0, 64)>(%[[J]])[%[[COUNT]]]
// CHECK-NEXT:      %[[KVHEAD:.*]] = affine.apply affine_map<(d0) -> (d0 floordiv 2)>(%[[H]])
// CHECK-NEXT:      %[[ROW:.*]] = affine.apply affine_map<()[s0, s1] -> (s0 + s1)>()[%[[J]], %[[START]]]
// CHECK-NEXT:      tensor.extract_slice %[[KEY]][0, %[[KVHEAD]], %[[ROW]], 0] [1, 1, %[[SIZE]], 64]
// CHECK-NEXT:      tensor.extract_slice %[[VALUE]][0, %[[KVHEAD]], %[[ROW]], 0] [1, 1, %[[SIZE]], 64]
// CHECK-NOT:   scf.forall (
// CHECK:       return
!wide = tensor<?x4x?x64xbf16>
!keys = tensor<?x2x?x64xbf16>
func.func @keys(%query: !wide, %key: !keys, %value: !keys, %starts: tensor<?xi32>) -> !wide {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %batch = tensor.dim %query, %c0 : !wide
  %tokens = tensor.dim %key, %c2 : !keys
  %room = tensor.empty(%batch, %tokens) : !keys
  %k = scf.forall (%b) in (%batch) shared_outs(%out = %room) -> (!keys) {
    %next = arith.addi %b, %c1 : index
    %first = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %first : i32 to index
    %last = tensor.extract %starts[%next] : tensor<?xi32>
    %end = arith.index_cast %last : i32 to index
    %count = arith.subi %end, %start : index
    %some = tensor.extract_slice %key[0, 0, %start, 0] [1, 2, %count, 64] [1, 1, 1, 1] : !keys to tensor<1x2x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[%b, 0, 0, 0] [1, 2, %count, 64] [1, 1, 1, 1] : tensor<1x2x?x64xbf16> into !keys
    }
  }
  %v = scf.forall (%b) in (%batch) shared_outs(%out = %room) -> (!keys) {
    %next = arith.addi %b, %c1 : index
    %first = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %first : i32 to index
    %last = tensor.extract %starts[%next] : tensor<?xi32>
    %end = arith.index_cast %last : i32 to index
    %count = arith.subi %end, %start : index
    %some = tensor.extract_slice %value[0, 0, %start, 0] [1, 2, %count, 64] [1, 1, 1, 1] : !keys to tensor<1x2x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[%b, 0, 0, 0] [1, 2, %count, 64] [1, 1, 1, 1] : tensor<1x2x?x64xbf16> into !keys
    }
  }
  %o = attn.attention %query, %k, %v scale(0.125) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>} : !wide, !keys, !keys -> !wide
  return %o : !wide
}

// -----

// A loop that copies both, or rows to others than the first ones, stays, and one over fewer
// batches, which says nothing of the others.

// CHECK-LABEL: func @not_keys
// CHECK-SAME:    %{{[^:]*}}: tensor<?x2x?x64xbf16>, %[[KEY:[^:]*]]: tensor
// CHECK:       %[[BOTH:.*]]:2 = scf.forall (%{{[^,]*}}) in
// CHECK:       %[[BEHIND:.*]] = scf.forall (%{{[^,]*}}) in
// CHECK:       %[[FEWER:.*]] = scf.forall (%{{[^,]*}}) in
// CHECK:         scf.for {{.*}} = %c0 to
// CHECK:           tensor.extract_slice %[[BOTH]]#0
// CHECK:           tensor.extract_slice %[[BOTH]]#1
// CHECK:         scf.for {{.*}} = %c0 to
// CHECK:           tensor.extract_slice %[[BEHIND]]
// CHECK:         scf.for {{.*}} = %c0 to
// CHECK:           tensor.extract_slice %[[FEWER]]
!all = tensor<?x2x?x64xbf16>
func.func @not_keys(%query: !all, %key: !all, %starts: tensor<?xi32>, %rows: index) -> (!all, !all, !all) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %batch = tensor.dim %query, %c0 : !all
  %few = arith.subi %batch, %c1 : index
  %room = tensor.empty(%batch, %rows) : !all
  %k, %v = scf.forall (%b) in (%batch) shared_outs(%k_out = %room, %v_out = %room) -> (!all, !all) {
    %first = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %first : i32 to index
    %some = tensor.extract_slice %key[0, 0, %start, 0] [1, 2, %rows, 64] [1, 1, 1, 1] : !all to tensor<1x2x?x64xbf16>
    %others = tensor.extract_slice %key[0, 0, 0, 0] [1, 2, %rows, 64] [1, 1, 1, 1] : !all to tensor<1x2x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %k_out[%b, 0, 0, 0] [1, 2, %rows, 64] [1, 1, 1, 1] : tensor<1x2x?x64xbf16> into !all
      tensor.parallel_insert_slice %others into %v_out[%b, 0, 0, 0] [1, 2, %rows, 64] [1, 1, 1, 1] : tensor<1x2x?x64xbf16> into !all
    }
  }
  %behind = scf.forall (%b) in (%batch) shared_outs(%out = %room) -> (!all) {
    %first = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %first : i32 to index
    %less = arith.subi %rows, %c1 : index
    %some = tensor.extract_slice %key[0, 0, %start, 0] [1, 2, %less, 64] [1, 1, 1, 1] : !all to tensor<1x2x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[%b, 0, 1, 0] [1, 2, %less, 64] [1, 1, 1, 1] : tensor<1x2x?x64xbf16> into !all
    }
  }
  %fewer = scf.forall (%b) in (%few) shared_outs(%out = %room) -> (!all) {
    %first = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %first : i32 to index
    %some = tensor.extract_slice %key[0, 0, %start, 0] [1, 2, %rows, 64] [1, 1, 1, 1] : !all to tensor<1x2x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[%b, 0, 0, 0] [1, 2, %rows, 64] [1, 1, 1, 1] : tensor<1x2x?x64xbf16> into !all
    }
  }
  %o = attn.attention %query, %k, %v scale(0.125) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>} : !all, !all, !all -> !all
  %p = attn.attention %query, %behind, %behind scale(0.125) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>} : !all, !all, !all -> !all
  %r = attn.attention %query, %fewer, %fewer scale(0.125) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>} : !all, !all, !all -> !all
  return %o, %p, %r : !all, !all, !all
}
