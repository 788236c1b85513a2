// RUN: fovea-opt %s --attn-online-softmax --attn-tile=fuse-producers=false --canonicalize --cse --split-input-file --mlir-print-local-scope | FileCheck %s
// RUN: fovea-opt %s --attn-online-softmax --attn-tile=fuse-producers=false --canonicalize --cse --split-input-file | fovea-opt --split-input-file --mlir-print-local-scope | FileCheck %s

// Blocks get tiles when they are free, so a loop in front lists the tiles that packed
// sequences have, and no block gets one without a row. The tiles of a sequence that are of
// one class by the keys that they see follow one another there.

// CHECK-LABEL: func @listed
// CHECK-SAME:    %[[QUERY:[^:]*]]: tensor<?x2x?x64xbf16>, %[[KEY:[^:]*]]: tensor<?x2x?x64xbf16>, %[[STARTS:[^:]*]]: tensor<?xi32>, %[[LENGTHS:[^:]*]]: tensor<?xi32>, %[[OUT:[^:]*]]: tensor<?x2x?x64xbf16>
// CHECK-DAG:   %[[ROWS:.*]] = tensor.dim %[[QUERY]], %c2
// CHECK-DAG:   %[[BATCH:.*]] = tensor.dim %[[QUERY]], %c0
// CHECK:       %[[MOST:.*]] = arith.ceildivsi %[[ROWS]], %c64
// There are no more tiles than the rows of the result fill, and the last one of each batch.
// CHECK-NEXT:  %[[OUTS:.*]] = tensor.dim %[[OUT]], %c0
// CHECK-NEXT:  %[[OUTROWS:.*]] = tensor.dim %[[OUT]], %c2
// CHECK-NEXT:  %[[ALLROWS:.*]] = arith.muli %[[OUTS]], %[[OUTROWS]]
// CHECK-NEXT:  %[[OFEACH:.*]] = arith.muli %[[BATCH]], %[[MOST]]
// CHECK-NEXT:  %[[FULLTILES:.*]] = arith.divsi %[[ALLROWS]], %c64
// CHECK-NEXT:  %[[SOMETILES:.*]] = arith.addi %[[FULLTILES]], %[[BATCH]]
// CHECK-NEXT:  %[[SIZE:.*]] = arith.minsi %[[OFEACH]], %[[SOMETILES]]
// Short are the tiles of a step, and of one more for each 4 tiles that the default machine's
// 2 cores get each, of both heads.
// CHECK-NEXT:  %[[TILESOFALL:.*]] = arith.muli %[[SIZE]], %c2
// CHECK-NEXT:  %[[ROUNDS:.*]] = arith.floordivsi %[[TILESOFALL]], %c8
// CHECK-NEXT:  %[[SHORTSTEPS:.*]] = arith.addi %[[ROUNDS]], %c1
// CHECK-NEXT:  %[[SHORT:.*]] = arith.muli %[[SHORTSTEPS]], %c32
// CHECK:       %[[SHORTDIGITS:.*]] = arith.index_castui %{{.*}} : i32 to index
// CHECK-NEXT:  %[[LEASTCLASS:.*]] = arith.addi %[[SHORTDIGITS]], %c-1
// A batch has as many owners as there may be classes of its tiles, in which the number of
// steps has as many digits.
// CHECK-NEXT:  %[[TWICE:.*]] = arith.muli %[[MOST]], %c128
// CHECK:       %[[DIGITS32:.*]] = arith.subi %c32_i32, %{{.*}} : i32
// CHECK-NEXT:  %[[DIGITS:.*]] = arith.index_castui %[[DIGITS32]]
// CHECK-NEXT:  %[[SEVERAL:.*]] = arith.cmpi sgt, %[[MOST]], %c1
// CHECK-NEXT:  %[[ONEDIGIT:.*]] = arith.maxsi %[[DIGITS]], %c1
// CHECK-NEXT:  %[[MORE2:.*]] = arith.addi %[[ONEDIGIT]], %c2
// CHECK-NEXT:  %[[CLASSES:.*]] = arith.select %[[SEVERAL]], %[[MORE2]], %c1
// CHECK-NEXT:  %[[HASANY:.*]] = arith.cmpi sgt, %[[SIZE]], %c0
// CHECK-NEXT:  %[[OFBATCHES:.*]] = arith.muli %[[BATCH]], %[[CLASSES]]
// CHECK-NEXT:  %[[MORE1:.*]] = arith.addi %[[OFBATCHES]], %c1
// CHECK-NEXT:  %[[OWNERS:.*]] = arith.select %[[HASANY]], %[[MORE1]], %c0
// CHECK:       %[[LIST:.*]]:3 = scf.forall (%[[W:.*]]) in (%[[OWNERS]]) shared_outs(%[[BOUT:.*]] = %{{.*}}, %[[TOUT:.*]] = %{{.*}}, %[[UOUT:.*]] = %{{.*}}) -> (tensor<?xi32>, tensor<?xi32>, tensor<1xi32>) {
// One more owns what is behind all tiles.
// CHECK-NEXT:    %[[ISEND:.*]] = arith.cmpi eq, %[[W]], %[[OFBATCHES]]
// CHECK-NEXT:    %[[ANYB:.*]] = arith.divsi %[[W]], %[[CLASSES]]
// CHECK-NEXT:    %[[LASTB:.*]] = arith.addi %[[BATCH]], %c-1
// CHECK-NEXT:    %[[B:.*]] = arith.minsi %[[ANYB]], %[[LASTB]]
// CHECK-NEXT:    %[[BEFORE:.*]] = arith.muli %[[B]], %[[CLASSES]]
// CHECK-NEXT:    %[[C:.*]] = arith.subi %[[W]], %[[BEFORE]]
// A sequence has tiles of its own number, none of fewer than no rows.
// CHECK:         %[[OWN:.*]] = arith.minsi %{{.*}}, %[[ROWS]]
// CHECK-NEXT:    %[[SOME:.*]] = arith.maxsi %[[OWN]], %c0
// CHECK-NEXT:    %[[NUMBER:.*]] = arith.ceildivsi %[[SOME]], %c64
// CHECK-NEXT:    %[[TILES:.*]] = arith.minsi %[[NUMBER]], %[[MOST]]
// The keys of the last tile are those that the loop over keys would end at, and earlier
// tiles see less by the queries that they are in front of it.
// CHECK-NEXT:    %[[LAST:.*]] = arith.addi %[[TILES]], %c-1
// CHECK-NEXT:    %[[ANY:.*]] = arith.maxsi %[[LAST]], %c0
// CHECK-NEXT:    %[[ROW:.*]] = arith.muli %[[ANY]], %c64
// CHECK:         tensor.extract %[[LENGTHS]][%[[B]]]
// CHECK:         %[[END:.*]] = arith.select %{{.*}}, %{{.*}}, %c0
// The class has as many digits less than that of the last tile; all that is short is one.
// CHECK-NEXT:    %[[ENDISSHORT:.*]] = arith.cmpi sle, %[[END]], %[[SHORT]]
// CHECK-NEXT:    %[[STEPS:.*]] = arith.ceildivsi %[[END]], %c32
// CHECK:         %[[ENDDIGITS:.*]] = arith.index_castui %{{.*}} : i32 to index
// CHECK-NEXT:    %[[ENDCLASS:.*]] = arith.select %[[ENDISSHORT]], %[[LEASTCLASS]], %[[ENDDIGITS]]
// CHECK-NEXT:    %[[CLASS:.*]] = arith.subi %[[ENDCLASS]], %[[C]]
// CHECK-NEXT:    %[[ISSHORT:.*]] = arith.cmpi eq, %[[CLASS]], %[[LEASTCLASS]]
// CHECK-NEXT:    %[[SHIFT:.*]] = arith.maxsi %[[CLASS]], %c0
// CHECK-NEXT:    %[[POWER:.*]] = arith.shli %c1, %[[SHIFT]]
// CHECK-NEXT:    %[[UPPER:.*]] = arith.muli %[[POWER]], %c32
// CHECK-NEXT:    %[[LOWER:.*]] = arith.divsi %[[UPPER]], %c2
// CHECK-NEXT:    %[[EXISTS:.*]] = arith.cmpi sle, %[[LEASTCLASS]], %[[CLASS]]
// CHECK-NEXT:    %[[ABOVE:.*]] = arith.maxsi %[[LOWER]], %[[SHORT]]
// CHECK-NEXT:    %[[LEAST:.*]] = arith.select %[[ISSHORT]], %c-2147483648, %[[ABOVE]]
// CHECK-NEXT:    %[[GREATEST:.*]] = arith.select %[[ISSHORT]], %[[SHORT]], %[[UPPER]]
// Its tiles are those that see more than the least, but not more than the most.
// CHECK-NEXT:    %[[OVER:.*]] = arith.subi %[[END]], %[[GREATEST]]
// CHECK-NEXT:    %[[OVERTILES:.*]] = arith.ceildivsi %[[OVER]], %c64
// CHECK-NEXT:    %[[OVERSOME:.*]] = arith.minsi %[[OVERTILES]], %[[TILES]]
// CHECK-NEXT:    %[[BEHIND:.*]] = arith.maxsi %[[OVERSOME]], %c0
// CHECK-NEXT:    %[[FROM:.*]] = arith.subi %[[END]], %[[LEAST]]
// CHECK-NEXT:    %[[FROMTILES:.*]] = arith.ceildivsi %[[FROM]], %c64
// CHECK-NEXT:    %[[FROMSOME:.*]] = arith.minsi %[[FROMTILES]], %[[TILES]]
// CHECK-NEXT:    %[[FROMALL:.*]] = arith.maxsi %[[FROMSOME]], %c0
// CHECK-NEXT:    %[[STOP:.*]] = arith.select %[[EXISTS]], %[[FROMALL]], %[[BEHIND]]
// Who has none sums nothing.
// CHECK-NEXT:    %[[HAS:.*]] = arith.cmpi slt, %[[BEHIND]], %[[STOP]]
// CHECK-NEXT:    %[[OWNS:.*]] = arith.ori %[[HAS]], %[[ISEND]]
// CHECK-NEXT:    %[[SUMMED:.*]] = arith.select %[[OWNS]], %[[BATCH]], %c0
// They are behind those of greater classes, and of this one if the sequence is in front.
// CHECK-NEXT:    %[[SUMS:.*]]:2 = scf.for %[[O:.*]] = %c0 to %[[SUMMED]] step %c1 iter_args(%[[SUM:.*]] = %c0, %[[USED:.*]] = %c0)
// CHECK:           %[[OTHERS:.*]] = arith.minsi %{{.*}}, %[[MOST]]
// CHECK:           %[[OTHEREND:.*]] = arith.select %{{.*}}, %{{.*}}, %c0
// CHECK-NEXT:      %[[FRONT:.*]] = arith.cmpi slt, %[[O]], %[[B]]
// CHECK-NEXT:      %[[LIMIT:.*]] = arith.select %[[FRONT]], %[[LEAST]], %[[GREATEST]]
// CHECK-NEXT:      %[[MORE:.*]] = arith.subi %[[OTHEREND]], %[[LIMIT]]
// CHECK-NEXT:      %[[SEE:.*]] = arith.ceildivsi %[[MORE]], %c64
// CHECK-NEXT:      %[[SEEN:.*]] = arith.minsi %[[SEE]], %[[OTHERS]]
// CHECK-NEXT:      %[[AHEAD:.*]] = arith.maxsi %[[SEEN]], %c0
// CHECK-NEXT:      %[[SUM1:.*]] = arith.addi %[[SUM]], %[[AHEAD]]
// CHECK-NEXT:      %[[USED1:.*]] = arith.addi %[[USED]], %[[OTHERS]]
// CHECK-NEXT:      scf.yield %[[SUM1]], %[[USED1]]
// What no tile is in owns the last one more: blocks ask there before they end. Nothing is
// written behind the list, whatever the tensors say.
// CHECK:         %[[COUNTED:.*]] = arith.subi %[[STOP]], %[[BEHIND]]
// CHECK-NEXT:    %[[FIRSTT:.*]] = arith.subi %[[LAST]], %[[BEHIND]]
// CHECK-NEXT:    %[[ALLUSED:.*]] = arith.minsi %[[SUMS]]#1, %[[SIZE]]
// CHECK-NEXT:    %[[FIRST:.*]] = arith.select %[[ISEND]], %[[ALLUSED]], %[[SUMS]]#0
// CHECK-NEXT:    %[[PLACE:.*]] = arith.minsi %[[FIRST]], %[[SIZE]]
// CHECK-NEXT:    %[[WANTED:.*]] = arith.select %[[ISEND]], %[[SIZE]], %[[COUNTED]]
// CHECK-NEXT:    %[[REST:.*]] = arith.subi %[[SIZE]], %[[PLACE]]
// CHECK-NEXT:    %[[OWNED:.*]] = arith.minsi %[[WANTED]], %[[REST]]
// CHECK-DAG:     %[[OWNSUSED:.*]] = arith.select %[[ISEND]], %c1, %c0
// CHECK-DAG:     %[[ITSB:.*]] = arith.select %[[ISEND]], %c0, %[[B]]
// CHECK-DAG:     %[[ITST:.*]] = arith.select %[[ISEND]], %c0, %[[FIRSTT]]
// CHECK:         %[[BOLD:.*]] = tensor.extract_slice %[[BOUT]][%[[PLACE]]] [%[[OWNED]]] [1]
// CHECK-NEXT:    %[[B32:.*]] = arith.index_castui %[[ITSB]] : index to i32
// CHECK-NEXT:    %[[BROW:.*]] = scf.for %[[E:.*]] = %c0 to %[[OWNED]] step %c1 iter_args(%[[BNEW:.*]] = %[[BOLD]])
// CHECK-NEXT:      tensor.insert %[[B32]] into %[[BNEW]][%[[E]]]
// Tiles come from the last one on.
// CHECK:         %[[TOLD:.*]] = tensor.extract_slice %[[TOUT]][%[[PLACE]]] [%[[OWNED]]] [1]
// CHECK-NEXT:    %[[TROW:.*]] = scf.for %[[F:.*]] = %c0 to %[[OWNED]] step %c1 iter_args(%[[TNEW:.*]] = %[[TOLD]])
// CHECK-NEXT:      %[[LESS:.*]] = arith.select %[[ISEND]], %c0, %[[F]]
// CHECK-NEXT:      %[[T:.*]] = arith.subi %[[ITST]], %[[LESS]]
// CHECK-NEXT:      %[[T32:.*]] = arith.index_castui %[[T]] : index to i32
// CHECK-NEXT:      tensor.insert %[[T32]] into %[[TNEW]][%[[F]]]
// CHECK:         %[[UOLD:.*]] = tensor.extract_slice %[[UOUT]][0] [%[[OWNSUSED]]] [1]
// CHECK-NEXT:    %[[U32:.*]] = arith.index_castui %[[ALLUSED]] : index to i32
// CHECK-NEXT:    %[[UROW:.*]] = scf.for %[[G:.*]] = %c0 to %[[OWNSUSED]] step %c1 iter_args(%[[UNEW:.*]] = %[[UOLD]])
// CHECK-NEXT:      tensor.insert %[[U32]] into %[[UNEW]][%[[G]]]
// CHECK:         scf.forall.in_parallel {
// CHECK-NEXT:      tensor.parallel_insert_slice %[[BROW]] into %[[BOUT]][%[[PLACE]]] [%[[OWNED]]] [1]
// CHECK-NEXT:      tensor.parallel_insert_slice %[[TROW]] into %[[TOUT]][%[[PLACE]]] [%[[OWNED]]] [1]
// CHECK-NEXT:      tensor.parallel_insert_slice %[[UROW]] into %[[UOUT]][0] [%[[OWNSUSED]]] [1]
// The loop over tiles ends behind those that there are, and has one batch.
// CHECK:       %[[ALL32:.*]] = tensor.extract %[[LIST]]#2[%c0]
// CHECK-NEXT:  %[[ALL:.*]] = arith.index_castui %[[ALL32]] : i32 to index
// CHECK-NEXT:  %[[COUNT:.*]] = arith.select %[[HASANY]], %[[ALL]], %c0
// CHECK-NEXT:  %[[UPPER:.*]] = arith.minsi %[[COUNT]], %[[SIZE]]
// CHECK-NEXT:  scf.forall (%[[H:.*]], %[[N:.*]]) in (2, %[[UPPER]])
// CHECK-NEXT:    %[[BATCH32:.*]] = tensor.extract %[[LIST]]#0[%[[N]]]
// CHECK-NEXT:    %[[OWNBATCH:.*]] = arith.index_castui %[[BATCH32]]
// CHECK-NEXT:    %[[TILE32:.*]] = tensor.extract %[[LIST]]#1[%[[N]]]
// CHECK-NEXT:    %[[TILE:.*]] = arith.index_castui %[[TILE32]]
// CHECK-NEXT:    %[[LASTTILE:.*]] = arith.addi %[[MOST]], %c-1
// CHECK-NEXT:    %[[LEASTTILE:.*]] = arith.minsi %[[TILE]], %[[LASTTILE]]
// CHECK-NEXT:    %[[I:.*]] = arith.muli %[[LEASTTILE]], %c64
// CHECK-NOT:     %[[N]]
// CHECK:         %[[OWNROWS:.*]] = affine.min {{.*}}(%[[I]])
// CHECK:         tensor.extract_slice %[[QUERY]][%[[OWNBATCH]], %[[H]], %[[I]], 0] [1, 1, %[[OWNROWS]], 64]
// Tiles are handed out in the list's order.
// CHECK:         attn.online_attention
// CHECK:         schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 2, blocks = dealt>
// CHECK:         tensor.parallel_insert_slice {{.*}}[0, %[[H]], %{{.*}}, 0] [1, 1, %[[OWNROWS]], 64]
// CHECK:       return
!all = tensor<?x2x?x64xbf16>
#gpu = #attn.schedule<tile = 64x32, order = longest_first, warps = 4, stages = 2, blocks = dealt>
func.func @listed(%q: !all, %k: !all, %starts: tensor<?xi32>, %lengths: tensor<?xi32>, %room: !all) -> !all {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %batch = tensor.dim %q, %c0 : !all
  %rows = tensor.dim %q, %c2 : !all
  %o = attn.attention %q, %k, %k scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %used32 = tensor.extract %lengths[%b] : tensor<?xi32>
      %used = arith.index_cast %used32 : i32 to index
      %last = arith.addi %i, %used : index
      %keep = arith.cmpi sge, %last, %j : index
      attn.yield %keep : i1
    } {schedule = #gpu} : !all, !all, !all -> !all
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

// Persistent blocks have items of known numbers, which they take in reversed order.

// CHECK-LABEL: func @persistent
// CHECK-NOT:   scf.forall (
// CHECK:       scf.forall (%{{.*}}, %{{.*}}, %[[I:.*]]) = (0, 0, 0) to (%{{.*}}, 2, %[[ROWS:.*]]) step (1, 1, 64)
// CHECK:         %[[TILE:.*]] = affine.apply affine_map<(d0)[s0] -> (-d0 + (s0 ceildiv 64) * 64 - 64)>(%[[I]])[%[[ROWS]]]
// CHECK:         order = longest_first
// CHECK-NOT:   scf.forall (
// CHECK:       return
!all = tensor<?x2x?x64xbf16>
#gpu = #attn.schedule<tile = 64x32, order = longest_first, warps = 4, stages = 2, blocks = persistent>
func.func @persistent(%q: !all, %k: !all, %starts: tensor<?xi32>, %lengths: tensor<?xi32>, %room: !all) -> !all {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %batch = tensor.dim %q, %c0 : !all
  %rows = tensor.dim %q, %c2 : !all
  %o = attn.attention %q, %k, %k scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %used32 = tensor.extract %lengths[%b] : tensor<?xi32>
      %used = arith.index_cast %used32 : i32 to index
      %last = arith.addi %i, %used : index
      %keep = arith.cmpi sge, %last, %j : index
      attn.yield %keep : i1
    } {schedule = #gpu} : !all, !all, !all -> !all
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

// A block of each tile needs none of the list.

// CHECK-LABEL: func @tiles
// CHECK-NOT:   scf.forall (
// CHECK:       scf.forall (%{{.*}}, %{{.*}}, %[[I:.*]]) = (0, 0, 0) to (%{{.*}}, 2, %[[ROWS:.*]]) step (1, 1, 64)
// CHECK:         %[[TILE:.*]] = affine.apply affine_map<(d0)[s0] -> (-d0 + (s0 ceildiv 64) * 64 - 64)>(%[[I]])[%[[ROWS]]]
// CHECK:         order = longest_first
// CHECK-NOT:   scf.forall (
// CHECK:       return
!all = tensor<?x2x?x64xbf16>
#gpu = #attn.schedule<tile = 64x32, order = longest_first, warps = 4, stages = 2>
func.func @tiles(%q: !all, %k: !all, %starts: tensor<?xi32>, %lengths: tensor<?xi32>, %room: !all) -> !all {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %batch = tensor.dim %q, %c0 : !all
  %rows = tensor.dim %q, %c2 : !all
  %o = attn.attention %q, %k, %k scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %used32 = tensor.extract %lengths[%b] : tensor<?xi32>
      %used = arith.index_cast %used32 : i32 to index
      %last = arith.addi %i, %used : index
      %keep = arith.cmpi sge, %last, %j : index
      attn.yield %keep : i1
    } {schedule = #gpu} : !all, !all, !all -> !all
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

// Sequences have rows of numbers that differ, but that no tensor decides.

// CHECK-LABEL: func @known
// CHECK-NOT:   scf.forall (
// CHECK:       scf.forall (%{{.*}}, %{{.*}}, %[[I:.*]]) = (0, 0, 0) to (%{{.*}}, 2, %[[ROWS:.*]]) step (1, 1, 64)
// CHECK:         %[[TILE:.*]] = affine.apply affine_map<(d0)[s0] -> (-d0 + (s0 ceildiv 64) * 64 - 64)>(%[[I]])[%[[ROWS]]]
// CHECK:         order = longest_first
// CHECK-NOT:   scf.forall (
// CHECK:       return
!all = tensor<?x2x?x64xbf16>
#gpu = #attn.schedule<tile = 64x32, order = longest_first, warps = 4, stages = 2, blocks = dealt>
func.func @known(%q: !all, %k: !all, %starts: tensor<?xi32>, %lengths: tensor<?xi32>, %room: !all, %most: index) -> !all {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %batch = tensor.dim %q, %c0 : !all
  %rows = tensor.dim %q, %c2 : !all
  %o = attn.attention %q, %k, %k scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %used32 = tensor.extract %lengths[%b] : tensor<?xi32>
      %used = arith.index_cast %used32 : i32 to index
      %last = arith.addi %i, %used : index
      %keep = arith.cmpi sge, %last, %j : index
      attn.yield %keep : i1
    } {schedule = #gpu} : !all, !all, !all -> !all
  %packed = scf.forall (%b) in (%batch) shared_outs(%out = %room) -> (!all) {
    %start = arith.muli %b, %rows : index
    %more = arith.muli %b, %most : index
    %count = arith.minsi %more, %rows : index
    %some = tensor.extract_slice %o[%b, 0, 0, 0] [1, 2, %count, 64] [1, 1, 1, 1] : !all to tensor<1x2x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[0, 0, %start, 0] [1, 2, %count, 64] [1, 1, 1, 1] : tensor<1x2x?x64xbf16> into !all
    }
  }
  return %packed : !all
}

// -----

// Sequences have as many rows each, of a number that a tensor decides.

// CHECK-LABEL: func @same
// CHECK-NOT:   scf.forall (
// CHECK:       scf.forall (%{{.*}}, %{{.*}}, %[[I:.*]]) = (0, 0, 0) to (%{{.*}}, 2, %[[ROWS:.*]]) step (1, 1, 64)
// CHECK:         %[[TILE:.*]] = affine.apply affine_map<(d0)[s0] -> (-d0 + (s0 ceildiv 64) * 64 - 64)>(%[[I]])[%[[ROWS]]]
// CHECK:         order = longest_first
// CHECK-NOT:   scf.forall (
// CHECK:       return
!all = tensor<?x2x?x64xbf16>
#gpu = #attn.schedule<tile = 64x32, order = longest_first, warps = 4, stages = 2, blocks = dealt>
func.func @same(%q: !all, %k: !all, %starts: tensor<?xi32>, %lengths: tensor<?xi32>, %room: !all) -> !all {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %batch = tensor.dim %q, %c0 : !all
  %rows = tensor.dim %q, %c2 : !all
  %o = attn.attention %q, %k, %k scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %used32 = tensor.extract %lengths[%b] : tensor<?xi32>
      %used = arith.index_cast %used32 : i32 to index
      %last = arith.addi %i, %used : index
      %keep = arith.cmpi sge, %last, %j : index
      attn.yield %keep : i1
    } {schedule = #gpu} : !all, !all, !all -> !all
  %packed = scf.forall (%b) in (%batch) shared_outs(%out = %room) -> (!all) {
    %start = arith.muli %b, %rows : index
    %most32 = tensor.extract %starts[%c0] : tensor<?xi32>
    %most = arith.index_cast %most32 : i32 to index
    %count = arith.minsi %most, %rows : index
    %some = tensor.extract_slice %o[%b, 0, 0, 0] [1, 2, %count, 64] [1, 1, 1, 1] : !all to tensor<1x2x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[0, 0, %start, 0] [1, 2, %count, 64] [1, 1, 1, 1] : tensor<1x2x?x64xbf16> into !all
    }
  }
  return %packed : !all
}

// -----

// Rows of a batch are all there: nothing is packed.

// CHECK-LABEL: func @whole
// CHECK-NOT:   scf.forall (
// CHECK:       scf.forall (%{{.*}}, %{{.*}}, %[[I:.*]]) = (0, 0, 0) to (%{{.*}}, 2, %[[ROWS:.*]]) step (1, 1, 64)
// CHECK:         %[[TILE:.*]] = affine.apply affine_map<(d0)[s0] -> (-d0 + (s0 ceildiv 64) * 64 - 64)>(%[[I]])[%[[ROWS]]]
// CHECK:         order = longest_first
// CHECK-NOT:   scf.forall (
// CHECK:       return
!all = tensor<?x2x?x64xbf16>
#gpu = #attn.schedule<tile = 64x32, order = longest_first, warps = 4, stages = 2, blocks = dealt>
func.func @whole(%q: !all, %k: !all, %starts: tensor<?xi32>, %lengths: tensor<?xi32>, %room: !all) -> !all {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %batch = tensor.dim %q, %c0 : !all
  %rows = tensor.dim %q, %c2 : !all
  %o = attn.attention %q, %k, %k scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %used32 = tensor.extract %lengths[%b] : tensor<?xi32>
      %used = arith.index_cast %used32 : i32 to index
      %last = arith.addi %i, %used : index
      %keep = arith.cmpi sge, %last, %j : index
      attn.yield %keep : i1
    } {schedule = #gpu} : !all, !all, !all -> !all
  return %o : !all
}
