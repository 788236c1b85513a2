// RUN: fovea-opt %s --attn-online-softmax --attn-tile --canonicalize --cse --split-input-file --mlir-print-local-scope | FileCheck %s

// What transposes a result of parts is done where these are merged, a row of it at a
// time, and where the only part of a sequence has written rows before.

// CHECK-LABEL: func @transposed
// CHECK-NOT:   linalg.transpose
// CHECK:       %[[ROOM:.*]] = tensor.empty(%{{.*}}, %{{.*}}) : tensor<?x?x4x64xbf16>
// CHECK:       %[[PARTS:.*]]:4 = scf.forall (%{{.*}}, %[[H:.*]], %[[I:.*]]) = {{.*}} shared_outs(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %[[WHOLE:.*]] = %[[ROOM]])
// CHECK:         tensor.parallel_insert_slice %{{.*}} into %[[WHOLE]][%{{.*}}, %[[I]], %[[H]], 0] [1, %{{.*}}, 1, 64] [1, 1, 1, 1] : tensor<?x64xbf16> into tensor<?x?x4x64xbf16>
// CHECK:       %[[MERGED:.*]] = scf.forall (%[[MB:.*]], %[[MH:.*]], %[[MI:.*]]) in (%{{.*}}, 4, %{{.*}}) shared_outs(%[[OUT:.*]] = %[[PARTS]]#3)
// CHECK:         %[[ROW:.*]] = tensor.extract_slice %[[OUT]][%[[MB]], %[[MI]], %[[MH]], 0] [1, 1, 1, 64] [1, 1, 1, 1] : tensor<?x?x4x64xbf16> to tensor<64xbf16>
// CHECK:         %[[NEW:.*]] = scf.if %{{.*}} -> (tensor<64xbf16>) {
// CHECK-NEXT:      scf.yield %[[ROW]]
// CHECK:         tensor.parallel_insert_slice %[[NEW]] into %[[OUT]][%[[MB]], %[[MI]], %[[MH]], 0] [1, 1, 1, 64] [1, 1, 1, 1] : tensor<64xbf16> into tensor<?x?x4x64xbf16>
// CHECK:       return %[[MERGED]]
!all = tensor<?x4x?x64xbf16>
!keys = tensor<?x4x?x64xbf16>
!turned = tensor<?x?x4x64xbf16>
#gpu = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, split = 4>
func.func @transposed(%q: !all, %k: !keys, %lengths: tensor<?xi32>) -> !turned {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %o = attn.attention %q, %k, %k scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %used32 = tensor.extract %lengths[%b] : tensor<?xi32>
      %used = arith.index_cast %used32 : i32 to index
      %keep = arith.cmpi slt, %j, %used : index
      attn.yield %keep : i1
    } {schedule = #gpu} : !all, !keys, !keys -> !all
  %batch = tensor.dim %q, %c0 : !all
  %rows = tensor.dim %q, %c2 : !all
  %room = tensor.empty(%batch, %rows) : !turned
  %t = linalg.transpose ins(%o : !all) outs(%room : !turned) permutation = [0, 2, 1, 3]
  return %t : !turned
}

// -----

// Batches of a static number have no list, and so no part is all: there is one loop to
// change.

// CHECK-LABEL: func @transposed_parts
// CHECK-NOT:   linalg.transpose
// CHECK:       %[[ROOM:.*]] = tensor.empty(%{{.*}}) : tensor<1x?x4x64xbf16>
// CHECK:       scf.forall (%[[H:.*]], %[[I:.*]]) in (4, %{{.*}}) shared_outs(%[[OUT:.*]] = %[[ROOM]])
// CHECK:         tensor.parallel_insert_slice %{{.*}} into %[[OUT]][0, %[[I]], %[[H]], 0] [1, 1, 1, 64]
!all = tensor<1x4x?x64xbf16>
!turned = tensor<1x?x4x64xbf16>
#gpu = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, split = 4>
func.func @transposed_parts(%q: !all, %k: !all) -> !turned {
  %c2 = arith.constant 2 : index
  %o = attn.attention %q, %k, %k scale(0.125) {schedule = #gpu} : !all, !all, !all -> !all
  %rows = tensor.dim %q, %c2 : !all
  %room = tensor.empty(%rows) : !turned
  %t = linalg.transpose ins(%o : !all) outs(%room : !turned) permutation = [0, 2, 1, 3]
  return %t : !turned
}

// -----

// Rows of the heads of a group, each of 4 queries, become heads of queries: row r is
// query r mod 4 of head r / 4 of the group. All rows of a head are a tile, which is
// written as 2 heads of 4 queries each, if it is all of a sequence.

// CHECK-LABEL: func @heads
// CHECK-NOT:   tensor.expand_shape
// CHECK:       %[[ROOM:.*]] = tensor.empty(%{{.*}}) : tensor<?x4x8x64xbf16>
// CHECK:       %[[PARTS:.*]]:4 = scf.forall (%{{.*}}, %[[H:.*]]) in (%{{.*}}, 4) shared_outs(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %[[WHOLE:.*]] = %[[ROOM]])
// CHECK:         %[[HEAD:.*]] = arith.muli %[[H]], %c2
// CHECK:         %[[ISALL:.*]] = arith.cmpi eq, %{{.*}}, %c1
// CHECK:         %[[COUNT:.*]] = arith.select %[[ISALL]], %c2, %c0
// CHECK:         %[[SPLIT:.*]] = tensor.expand_shape %{{.*}} output_shape [1, %[[COUNT]], 4, 64]
// CHECK:         %[[TURNED:.*]] = linalg.transpose ins(%[[SPLIT]] : {{.*}} permutation = [0, 2, 1, 3]
// CHECK:         tensor.parallel_insert_slice %[[TURNED]] into %[[WHOLE]][%{{.*}}, 0, %[[HEAD]], 0] [1, 4, %[[COUNT]], 64]
// CHECK:       %[[MERGED:.*]] = scf.forall (%[[MB:.*]], %[[MH:.*]], %[[MR:.*]]) in (%{{.*}}, 4, 8) shared_outs(%[[OUT:.*]] = %[[PARTS]]#3)
// CHECK-DAG:     %[[FIRST:.*]] = arith.muli %[[MH]], %c2
// CHECK-DAG:     %[[OF:.*]] = arith.divsi %[[MR]], %c4
// CHECK-DAG:     %[[OWNHEAD:.*]] = arith.addi %[[FIRST]], %[[OF]]
// CHECK-DAG:     %[[ROWS:.*]] = arith.muli %[[OF]], %c4
// CHECK-DAG:     %[[QUERY:.*]] = arith.subi %[[MR]], %[[ROWS]]
// CHECK:         tensor.extract_slice %[[OUT]][%[[MB]], %[[QUERY]], %[[OWNHEAD]], 0] [1, 1, 1, 64]
// CHECK:         tensor.parallel_insert_slice %{{.*}} into %[[OUT]][%[[MB]], %[[QUERY]], %[[OWNHEAD]], 0] [1, 1, 1, 64]
// CHECK:       return %[[MERGED]]
!rows = tensor<?x4x8x64xbf16>
!keys = tensor<?x4x?x64xbf16>
!heads = tensor<?x8x4x64xbf16>
!turned = tensor<?x4x8x64xbf16>
#gpu = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, split = 4>
func.func @heads(%q: !rows, %k: !keys, %lengths: tensor<?xi32>) -> !turned {
  %c0 = arith.constant 0 : index
  %o = attn.attention %q, %k, %k scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %used32 = tensor.extract %lengths[%b] : tensor<?xi32>
      %used = arith.index_cast %used32 : i32 to index
      %keep = arith.cmpi slt, %j, %used : index
      attn.yield %keep : i1
    } {schedule = #gpu} : !rows, !keys, !keys -> !rows
  %batch = tensor.dim %q, %c0 : !rows
  %split = tensor.expand_shape %o [[0], [1], [2, 3], [4]] output_shape [%batch, 4, 2, 4, 64] : !rows into tensor<?x4x2x4x64xbf16>
  %heads = tensor.collapse_shape %split [[0], [1, 2], [3], [4]] : tensor<?x4x2x4x64xbf16> into !heads
  %room = tensor.empty(%batch) : !turned
  %t = linalg.transpose ins(%heads : !heads) outs(%room : !turned) permutation = [0, 2, 1, 3]
  return %t : !turned
}

// -----

// A tile's box has a power of two of queries. Rows that are merged lie anywhere.

// CHECK-LABEL: func @three_queries
// CHECK:       linalg.transpose ins(%{{.*}} : tensor<?x8x3x64xbf16>)
// CHECK-LABEL: func @three_of_parts
// CHECK-NOT:   linalg.transpose
// CHECK:       scf.forall (%[[H:.*]], %[[R:.*]]) in (4, 6)
// CHECK:         %[[OF:.*]] = arith.divsi %[[R]], %c3
!rows = tensor<?x4x6x64xbf16>
!keys = tensor<?x4x?x64xbf16>
!heads = tensor<?x8x3x64xbf16>
!turned = tensor<?x3x8x64xbf16>
!onerows = tensor<1x4x6x64xbf16>
!onekeys = tensor<1x4x?x64xbf16>
#gpu = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, split = 4>
func.func @three_queries(%q: !rows, %k: !keys, %lengths: tensor<?xi32>) -> !turned {
  %c0 = arith.constant 0 : index
  %o = attn.attention %q, %k, %k scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %used32 = tensor.extract %lengths[%b] : tensor<?xi32>
      %used = arith.index_cast %used32 : i32 to index
      %keep = arith.cmpi slt, %j, %used : index
      attn.yield %keep : i1
    } {schedule = #gpu} : !rows, !keys, !keys -> !rows
  %batch = tensor.dim %q, %c0 : !rows
  %split = tensor.expand_shape %o [[0], [1], [2, 3], [4]] output_shape [%batch, 4, 2, 3, 64] : !rows into tensor<?x4x2x3x64xbf16>
  %heads = tensor.collapse_shape %split [[0], [1, 2], [3], [4]] : tensor<?x4x2x3x64xbf16> into !heads
  %room = tensor.empty(%batch) : !turned
  %t = linalg.transpose ins(%heads : !heads) outs(%room : !turned) permutation = [0, 2, 1, 3]
  return %t : !turned
}

func.func @three_of_parts(%q: !onerows, %k: !onekeys) -> tensor<1x3x8x64xbf16> {
  %o = attn.attention %q, %k, %k scale(0.125) {schedule = #gpu} : !onerows, !onekeys, !onekeys -> !onerows
  %split = tensor.expand_shape %o [[0], [1], [2, 3], [4]] output_shape [1, 4, 2, 3, 64] : !onerows into tensor<1x4x2x3x64xbf16>
  %heads = tensor.collapse_shape %split [[0], [1, 2], [3], [4]] : tensor<1x4x2x3x64xbf16> into tensor<1x8x3x64xbf16>
  %room = tensor.empty() : tensor<1x3x8x64xbf16>
  %t = linalg.transpose ins(%heads : tensor<1x8x3x64xbf16>) outs(%room : tensor<1x3x8x64xbf16>) permutation = [0, 2, 1, 3]
  return %t : tensor<1x3x8x64xbf16>
}

// -----

// Rows that another reader has too stay where they are, as those do of which other
// dimensions are swapped, or of more than a tile.

// CHECK-LABEL: func @heads_stay
// CHECK:       linalg.transpose ins(%{{.*}} : tensor<?x8x3x64xbf16>) {{.*}} permutation = [0, 2, 1, 3]
// CHECK:       linalg.transpose ins(%{{.*}} : tensor<?x8x3x64xbf16>) {{.*}} permutation = [0, 1, 3, 2]
!rows = tensor<?x4x6x64xbf16>
!keys = tensor<?x4x?x64xbf16>
!heads = tensor<?x8x3x64xbf16>
!turned = tensor<?x3x8x64xbf16>
!back = tensor<?x8x64x3xbf16>
#gpu = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, split = 4>
func.func @heads_stay(%q: !rows, %k: !keys) -> (!turned, !rows, !back) {
  %c0 = arith.constant 0 : index
  %o = attn.attention %q, %k, %k scale(0.125) {schedule = #gpu} : !rows, !keys, !keys -> !rows
  %own = arith.negf %o : !rows
  %batch = tensor.dim %q, %c0 : !rows
  %split = tensor.expand_shape %o [[0], [1], [2, 3], [4]] output_shape [%batch, 4, 2, 3, 64] : !rows into tensor<?x4x2x3x64xbf16>
  %heads = tensor.collapse_shape %split [[0], [1, 2], [3], [4]] : tensor<?x4x2x3x64xbf16> into !heads
  %room = tensor.empty(%batch) : !turned
  %t = linalg.transpose ins(%heads : !heads) outs(%room : !turned) permutation = [0, 2, 1, 3]
  %other = attn.attention %q, %k, %k scale(0.25) {schedule = #gpu} : !rows, !keys, !keys -> !rows
  %otherSplit = tensor.expand_shape %other [[0], [1], [2, 3], [4]] output_shape [%batch, 4, 2, 3, 64] : !rows into tensor<?x4x2x3x64xbf16>
  %otherHeads = tensor.collapse_shape %otherSplit [[0], [1, 2], [3], [4]] : tensor<?x4x2x3x64xbf16> into !heads
  %back_room = tensor.empty(%batch) : !back
  %b = linalg.transpose ins(%otherHeads : !heads) outs(%back_room : !back) permutation = [0, 1, 3, 2]
  return %t, %own, %b : !turned, !rows, !back
}

// -----

// CHECK-LABEL: func @heads_of_tiles
// CHECK:       linalg.transpose ins(%{{.*}} : tensor<?x8x48x64xbf16>)
!rows = tensor<?x4x96x64xbf16>
!keys = tensor<?x4x?x64xbf16>
!heads = tensor<?x8x48x64xbf16>
!turned = tensor<?x48x8x64xbf16>
#gpu = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, split = 4>
func.func @heads_of_tiles(%q: !rows, %k: !keys, %lengths: tensor<?xi32>) -> !turned {
  %c0 = arith.constant 0 : index
  %o = attn.attention %q, %k, %k scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %used32 = tensor.extract %lengths[%b] : tensor<?xi32>
      %used = arith.index_cast %used32 : i32 to index
      %keep = arith.cmpi slt, %j, %used : index
      attn.yield %keep : i1
    } {schedule = #gpu} : !rows, !keys, !keys -> !rows
  %batch = tensor.dim %q, %c0 : !rows
  %split = tensor.expand_shape %o [[0], [1], [2, 3], [4]] output_shape [%batch, 4, 2, 48, 64] : !rows into tensor<?x4x2x48x64xbf16>
  %heads = tensor.collapse_shape %split [[0], [1, 2], [3], [4]] : tensor<?x4x2x48x64xbf16> into !heads
  %room = tensor.empty(%batch) : !turned
  %t = linalg.transpose ins(%heads : !heads) outs(%room : !turned) permutation = [0, 2, 1, 3]
  return %t : !turned
}

// -----

// Of a number of queries that is not static a schedule splits keys for one tile: of
// more, so many times fewer parts share the machine.

// CHECK-LABEL: func @many_tiles
// CHECK:       %[[TILES:.*]] = arith.ceildivsi %{{.*}}, %c64
// CHECK-NEXT:  %[[SOME:.*]] = arith.maxsi %[[TILES]], %c1
// CHECK-NEXT:  %[[SPLIT:.*]] = arith.divsi %c4, %[[SOME]]
// CHECK-NEXT:  %[[EACH:.*]] = arith.maxsi %[[SPLIT]], %c1
// CHECK:       %[[PARTS:.*]] = arith.divsi %[[EACH]], %{{.*}}
// CHECK-NEXT:  %[[ATLEAST:.*]] = arith.maxsi %[[PARTS]], %c1
// CHECK:       scf.forall {{.*}} to (%{{.*}}, 4, %{{.*}}, %[[ATLEAST]])
!all = tensor<?x4x?x64xbf16>
#gpu = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, split = 4>
func.func @many_tiles(%q: !all, %k: !all) -> !all {
  %o = attn.attention %q, %k, %k scale(0.125) {schedule = #gpu} : !all, !all, !all -> !all
  return %o : !all
}

// -----

// A tile of all rows of a head is a slice of the queries that they are made of, and the
// mask still knows how many rows a head has. Three queries are no power of two, and 48
// more than a tile.

// CHECK-LABEL: func @queries
// CHECK-SAME:    %[[Q:[^:]*]]: tensor<?x8x4x64xbf16>
// CHECK-NOT:   tensor.collapse_shape
// CHECK:       scf.forall (%[[B:.*]], %[[H:.*]]) in (%{{.*}}, 4)
// CHECK:         %[[HEAD:.*]] = arith.muli %[[H]], %c2
// CHECK-NEXT:    %[[OWN:.*]] = tensor.extract_slice %[[Q]][%[[B]], %[[HEAD]], 0, 0] [1, 2, 4, 64]
// CHECK-NEXT:    %[[FLAT:.*]] = tensor.collapse_shape %[[OWN]] {{\[\[}}0], [1, 2], [3]]
// CHECK-NEXT:    %[[ROWS:.*]] = tensor.expand_shape %[[FLAT]] {{\[\[}}0, 1], [2], [3]] output_shape [1, 1, 8, 64]
// CHECK:         attn.online_attention {{.*}} ins(%[[ROWS]], {{.*}} whole[%c4, %c8]
// CHECK-LABEL: func @three_queries_read
// CHECK:       tensor.collapse_shape %{{.*}} : tensor<?x4x2x3x64xbf16> into tensor<?x4x6x64xbf16>
// CHECK:       scf.forall
// CHECK-LABEL: func @many_queries_read
// CHECK:       tensor.collapse_shape %{{.*}} : tensor<?x4x2x48x64xbf16> into tensor<?x4x96x64xbf16>
// CHECK:       scf.forall
!keys = tensor<?x4x?x64xbf16>
#gpu = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>
func.func @queries(%q: tensor<?x8x4x64xbf16>, %k: !keys) -> tensor<?x4x8x64xbf16> {
  %c0 = arith.constant 0 : index
  %batch = tensor.dim %q, %c0 : tensor<?x8x4x64xbf16>
  %split = tensor.expand_shape %q [[0], [1, 2], [3], [4]] output_shape [%batch, 4, 2, 4, 64] : tensor<?x8x4x64xbf16> into tensor<?x4x2x4x64xbf16>
  %rows = tensor.collapse_shape %split [[0], [1], [2, 3], [4]] : tensor<?x4x2x4x64xbf16> into tensor<?x4x8x64xbf16>
  %o = attn.attention %rows, %k, %k scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %keep = arith.cmpi sge, %i, %j : index
      attn.yield %keep : i1
    } {schedule = #gpu} : tensor<?x4x8x64xbf16>, !keys, !keys -> tensor<?x4x8x64xbf16>
  return %o : tensor<?x4x8x64xbf16>
}

func.func @three_queries_read(%q: tensor<?x8x3x64xbf16>, %k: !keys) -> tensor<?x4x6x64xbf16> {
  %c0 = arith.constant 0 : index
  %batch = tensor.dim %q, %c0 : tensor<?x8x3x64xbf16>
  %split = tensor.expand_shape %q [[0], [1, 2], [3], [4]] output_shape [%batch, 4, 2, 3, 64] : tensor<?x8x3x64xbf16> into tensor<?x4x2x3x64xbf16>
  %rows = tensor.collapse_shape %split [[0], [1], [2, 3], [4]] : tensor<?x4x2x3x64xbf16> into tensor<?x4x6x64xbf16>
  %o = attn.attention %rows, %k, %k scale(0.125) {schedule = #gpu} : tensor<?x4x6x64xbf16>, !keys, !keys -> tensor<?x4x6x64xbf16>
  return %o : tensor<?x4x6x64xbf16>
}

func.func @many_queries_read(%q: tensor<?x8x48x64xbf16>, %k: !keys) -> tensor<?x4x96x64xbf16> {
  %c0 = arith.constant 0 : index
  %batch = tensor.dim %q, %c0 : tensor<?x8x48x64xbf16>
  %split = tensor.expand_shape %q [[0], [1, 2], [3], [4]] output_shape [%batch, 4, 2, 48, 64] : tensor<?x8x48x64xbf16> into tensor<?x4x2x48x64xbf16>
  %rows = tensor.collapse_shape %split [[0], [1], [2, 3], [4]] : tensor<?x4x2x48x64xbf16> into tensor<?x4x96x64xbf16>
  %o = attn.attention %rows, %k, %k scale(0.125) {schedule = #gpu} : tensor<?x4x96x64xbf16>, !keys, !keys -> tensor<?x4x96x64xbf16>
  return %o : tensor<?x4x96x64xbf16>
}

// -----

// Rows in the order of queries, whose heads are neighbours: a box of three queries, in which
// heads are a power of two, and rows of parts, each where its head is.

// CHECK-LABEL: func @by_queries
// CHECK-SAME:    %[[Q:[^:]*]]: tensor<?x8x3x64xbf16>
// CHECK:       scf.forall (%[[B:.*]], %[[H:.*]]) {{.*}} shared_outs(%[[OUT:.*]] = %{{.*}}) -> (tensor<?x3x8x64xbf16>)
// CHECK:         %[[FIRST:.*]] = arith.muli %[[H]], %c2
// CHECK:         %[[PART:.*]] = tensor.extract_slice %[[Q]][%[[B]], %[[FIRST]], 0, 0] [1, 2, 3, 64]
// CHECK:         linalg.transpose ins(%[[PART]]
// CHECK:         scf.forall.in_parallel
// CHECK-NEXT:      tensor.parallel_insert_slice %{{.*}} into %[[OUT]][%[[B]], 0, %{{.*}}, 0] [1, 3, 2, 64]
// CHECK-NOT:   linalg.transpose
// CHECK-LABEL: func @by_queries_of_parts
// CHECK:       scf.forall (%[[H:.*]], %[[R:.*]]) in (4, 6) {{.*}} -> (tensor<1x3x8x64xbf16>)
// CHECK:         %[[QUERY:.*]] = arith.divsi %[[R]], %c2
// CHECK:         tensor.parallel_insert_slice %{{.*}} into %{{.*}}[0, %[[QUERY]], %{{.*}}, 0] [1, 1, 1, 64]
// CHECK-NOT:   linalg.transpose
!rows = tensor<?x4x6x64xbf16>
!keys = tensor<?x4x?x64xbf16>
#gpu = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>
#parts = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, split = 4>
func.func @by_queries(%q: tensor<?x8x3x64xbf16>, %k: !keys) -> tensor<?x3x8x64xbf16> {
  %c0 = arith.constant 0 : index
  %batch = tensor.dim %q, %c0 : tensor<?x8x3x64xbf16>
  %split = tensor.expand_shape %q [[0], [1, 2], [3], [4]] output_shape [%batch, 4, 2, 3, 64] : tensor<?x8x3x64xbf16> into tensor<?x4x2x3x64xbf16>
  %five = tensor.empty(%batch) : tensor<?x4x3x2x64xbf16>
  %swapped = linalg.transpose ins(%split : tensor<?x4x2x3x64xbf16>) outs(%five : tensor<?x4x3x2x64xbf16>) permutation = [0, 1, 3, 2, 4]
  %rows = tensor.collapse_shape %swapped [[0], [1], [2, 3], [4]] : tensor<?x4x3x2x64xbf16> into !rows
  %o = attn.attention %rows, %k, %k scale(0.125) {schedule = #gpu} : !rows, !keys, !keys -> !rows
  %back = tensor.expand_shape %o [[0], [1], [2, 3], [4]] output_shape [%batch, 4, 3, 2, 64] : !rows into tensor<?x4x3x2x64xbf16>
  %other = tensor.empty(%batch) : tensor<?x4x2x3x64xbf16>
  %first = linalg.transpose ins(%back : tensor<?x4x3x2x64xbf16>) outs(%other : tensor<?x4x2x3x64xbf16>) permutation = [0, 1, 3, 2, 4]
  %heads = tensor.collapse_shape %first [[0], [1, 2], [3], [4]] : tensor<?x4x2x3x64xbf16> into tensor<?x8x3x64xbf16>
  %room = tensor.empty(%batch) : tensor<?x3x8x64xbf16>
  %t = linalg.transpose ins(%heads : tensor<?x8x3x64xbf16>) outs(%room : tensor<?x3x8x64xbf16>) permutation = [0, 2, 1, 3]
  return %t : tensor<?x3x8x64xbf16>
}

func.func @by_queries_of_parts(%rows: tensor<1x4x6x64xbf16>, %k: tensor<1x4x?x64xbf16>) -> tensor<1x3x8x64xbf16> {
  %o = attn.attention %rows, %k, %k scale(0.125) {schedule = #parts} : tensor<1x4x6x64xbf16>, tensor<1x4x?x64xbf16>, tensor<1x4x?x64xbf16> -> tensor<1x4x6x64xbf16>
  %back = tensor.expand_shape %o [[0], [1], [2, 3], [4]] output_shape [1, 4, 3, 2, 64] : tensor<1x4x6x64xbf16> into tensor<1x4x3x2x64xbf16>
  %other = tensor.empty() : tensor<1x4x2x3x64xbf16>
  %first = linalg.transpose ins(%back : tensor<1x4x3x2x64xbf16>) outs(%other : tensor<1x4x2x3x64xbf16>) permutation = [0, 1, 3, 2, 4]
  %heads = tensor.collapse_shape %first [[0], [1, 2], [3], [4]] : tensor<1x4x2x3x64xbf16> into tensor<1x8x3x64xbf16>
  %room = tensor.empty() : tensor<1x3x8x64xbf16>
  %t = linalg.transpose ins(%heads : tensor<1x8x3x64xbf16>) outs(%room : tensor<1x3x8x64xbf16>) permutation = [0, 2, 1, 3]
  return %t : tensor<1x3x8x64xbf16>
}

// -----

// Heads and features of any number, on a host; keys that are made like queries of a group
// stay what they are.

// CHECK-LABEL: func @any_number
// CHECK:       %[[HEADS:.*]] = arith.muli %{{.*}}, %c2
// CHECK:       %[[ROOM:.*]] = tensor.empty(%{{.*}}, %[[HEADS]], %{{.*}}) : tensor<?x4x?x?xf32>
// CHECK:       scf.forall {{.*}} shared_outs({{.*}} = %[[ROOM]]
// CHECK-LABEL: func @keys_of_pages
// CHECK-SAME:    , %[[K:[^:]*]]: tensor<1x8x8x64xf32>
// CHECK:       %[[SPLIT:.*]] = tensor.expand_shape %[[K]]
// CHECK:       %[[KEYS:.*]] = tensor.collapse_shape %[[SPLIT]]
// CHECK:       scf.forall
// CHECK:         tensor.extract_slice %[[KEYS]]
// CHECK:         attn.online_attention
!any = tensor<?x?x8x?xf32>
#host = #attn.schedule<tile = 8x32, order = linear, split = 4>
#whole = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 2>
func.func @any_number(%q: !any, %k: tensor<?x?x?x?xf32>, %batch: index, %groups: index, %heads: index, %features: index) -> tensor<?x4x?x?xf32> {
  %o = attn.attention %q, %k, %k scale(0.125) {schedule = #host} : !any, tensor<?x?x?x?xf32>, tensor<?x?x?x?xf32> -> !any
  %split = tensor.expand_shape %o [[0], [1], [2, 3], [4]] output_shape [%batch, %groups, 2, 4, %features] : !any into tensor<?x?x2x4x?xf32>
  %of = tensor.collapse_shape %split [[0], [1, 2], [3], [4]] : tensor<?x?x2x4x?xf32> into tensor<?x?x4x?xf32>
  %room = tensor.empty(%batch, %heads, %features) : tensor<?x4x?x?xf32>
  %t = linalg.transpose ins(%of : tensor<?x?x4x?xf32>) outs(%room : tensor<?x4x?x?xf32>) permutation = [0, 2, 1, 3]
  return %t : tensor<?x4x?x?xf32>
}

func.func @keys_of_pages(%q: tensor<1x2x70x64xf32>, %k: tensor<1x8x8x64xf32>) -> tensor<1x2x70x64xf32> {
  %split = tensor.expand_shape %k [[0], [1, 2], [3], [4]] output_shape [1, 2, 4, 8, 64] : tensor<1x8x8x64xf32> into tensor<1x2x4x8x64xf32>
  %keys = tensor.collapse_shape %split [[0], [1], [2, 3], [4]] : tensor<1x2x4x8x64xf32> into tensor<1x2x32x64xf32>
  %o = attn.attention %q, %keys, %keys scale(0.125) {schedule = #whole} : tensor<1x2x70x64xf32>, tensor<1x2x32x64xf32>, tensor<1x2x32x64xf32> -> tensor<1x2x70x64xf32>
  return %o : tensor<1x2x70x64xf32>
}
