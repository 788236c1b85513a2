// RUN: fovea-opt %s --attn-online-softmax --attn-tile=fuse-producers=false --canonicalize --cse --split-input-file --mlir-print-local-scope | FileCheck %s
// RUN: fovea-opt %s --attn-online-softmax --attn-tile=fuse-producers=false --canonicalize --cse --split-input-file | fovea-opt --split-input-file --mlir-print-local-scope | FileCheck %s

// With a split the list of the tiles that packed sequences have (tile-list.mlir) has
// parts of those that see more keys than others. Such tiles of a sequence have an owner of
// their own, which has their items in the list: their batches, tiles, numbers, and how many
// they are of each; the numbers of all items and of tiles with several are known everywhere,
// and of such a tile its first item, how many there are, its batch and which tile of it it
// is.

// CHECK-LABEL: func @parts
// CHECK-SAME:    %[[QUERY:[^:]*]]: tensor<?x2x?x64xbf16>, %[[KEY:[^:]*]]: tensor<?x2x?x64xbf16>, %[[STARTS:[^:]*]]: tensor<?xi32>, %[[LENGTHS:[^:]*]]: tensor<?xi32>, %[[ROOM:[^:]*]]:
// CHECK:       %[[MOST:.*]] = arith.ceildivsi
// CHECK:       %[[SIZE:.*]] = arith.minsi
// 8 items are busy at once, of each head.
// CHECK:       %[[ISANY:.*]] = arith.cmpi sgt, %[[SIZE]], %c0
// CHECK-NEXT:  %[[SOMEITEMS:.*]] = arith.addi %[[SIZE]], %c48
// CHECK-NEXT:  %[[ITEMS:.*]] = arith.select %[[ISANY]], %[[SOMEITEMS]], %c0
// CHECK:       %[[CLASSES:.*]] = arith.select %{{.*}}, %{{.*}}, %c1
// CHECK-NEXT:  %[[ANDPARTED:.*]] = arith.addi %[[CLASSES]], %c1
// CHECK-NEXT:  %[[OFBATCHES:.*]] = arith.muli %{{.*}}, %[[ANDPARTED]]
// CHECK-NEXT:  %[[ANDEND:.*]] = arith.addi %[[OFBATCHES]], %c1
// CHECK-NEXT:  %[[OWNERS:.*]] = arith.select %[[ISANY]], %[[ANDEND]], %c0
// CHECK:       %[[LIST:.*]]:10 = scf.forall (%[[OWNER:.*]]) in (%[[OWNERS]]) shared_outs({{.*}}) -> (tensor<?xi32>, tensor<?xi32>, tensor<1xi32>, tensor<?xi32>, tensor<?xi32>, tensor<1xi32>, tensor<8xi32>, tensor<8xi32>, tensor<8xi32>, tensor<8xi32>) {
// The last owner of a batch has its tiles with several parts, of which nothing is known yet.
// CHECK-NEXT:    %[[ISEND:.*]] = arith.cmpi eq, %[[OWNER]], %[[OFBATCHES]]
// CHECK:         %[[NUMBEROF:.*]] = arith.subi %[[OWNER]], %{{.*}}
// CHECK:         %[[LASTTILE:.*]] = arith.addi %[[OWNTILES:.*]], %c-1
// CHECK:         %[[HASTILES:.*]] = arith.cmpi slt, %[[FROM:.*]], %[[STOP:.*]] : index
// CHECK-NEXT:    %[[ISLASTOWNER:.*]] = arith.cmpi eq, %[[NUMBEROF]], %[[CLASSES]]
// CHECK-NEXT:    %[[ANYTILES:.*]] = arith.cmpi sgt, %[[OWNTILES]], %c0
// CHECK-NEXT:    %[[ISPARTED:.*]] = arith.andi %[[ISLASTOWNER]], %[[ANYTILES]]
// CHECK-NEXT:    %[[OWNSTILES:.*]] = arith.ori %[[HASTILES]], %[[ISPARTED]]
// CHECK-NEXT:    %[[OWNS:.*]] = arith.ori %[[OWNSTILES]], %[[ISEND]]
// CHECK-NEXT:    %[[SUMMED:.*]] = arith.select %[[OWNS]], %{{.*}}, %c0
// The tiles with keys, and the sum of these: the mean of the last tile's and the first's.
// CHECK-NEXT:    %[[ALL:.*]]:2 = scf.for {{.*}} = %c0 to %[[SUMMED]] step %c1 iter_args(%[[N:.*]] = %c0, %[[T:.*]] = %c0)
// CHECK:           %[[END:.*]] = arith.select %{{.*}}, %{{.*}}, %c0
// CHECK-NEXT:      %[[KEYS:.*]] = arith.maxsi %[[END]], %c0
// CHECK-NEXT:      %[[SEE:.*]] = arith.ceildivsi %[[END]], %c64
// CHECK-NEXT:      %[[FEW:.*]] = arith.minsi %[[SEE]], %{{.*}}
// CHECK-NEXT:      %[[COUNT:.*]] = arith.maxsi %[[FEW]], %c0
// CHECK-NEXT:      %[[BEHIND:.*]] = arith.addi %[[COUNT]], %c-1
// CHECK-NEXT:      %[[SOME:.*]] = arith.maxsi %[[BEHIND]], %c0
// CHECK-NEXT:      %[[LESS:.*]] = arith.muli %[[SOME]], %c64
// CHECK-NEXT:      %[[HALF:.*]] = arith.divsi %[[LESS]], %c2
// CHECK-NEXT:      %[[MEAN:.*]] = arith.subi %[[END]], %[[HALF]]
// CHECK-NEXT:      %[[EACH:.*]] = arith.minsi %[[MEAN]], %[[KEYS]]
// CHECK-NEXT:      %[[OFBATCH:.*]] = arith.muli %[[COUNT]], %[[EACH]]
// CHECK-NEXT:      %[[N1:.*]] = arith.addi %[[N]], %[[COUNT]]
// CHECK-NEXT:      %[[T1:.*]] = arith.addi %[[T]], %[[OFBATCH]]
// CHECK-NEXT:      scf.yield %[[N1]], %[[T1]]
// As many parts of each as are one item for each of the 8, or two if that is better.
// CHECK:         %[[TILES:.*]] = arith.maxsi %[[ALL]]#0, %c1
// CHECK:         arith.divui %c8_i32, %{{.*}} : i32
// CHECK-NEXT:    %[[ONCE:.*]] = arith.index_castui
// CHECK-NEXT:    arith.divui %c16_i32, %{{.*}} : i32
// CHECK-NEXT:    %[[TWICE:.*]] = arith.index_castui
// CHECK-NEXT:    %[[MORE:.*]] = arith.addi %[[TWICE]], %c32
// CHECK-NEXT:    %[[A:.*]] = arith.muli %[[ONCE]], %[[MORE]]
// CHECK-NEXT:    %[[B:.*]] = arith.muli %[[TWICE]], %c16
// CHECK-NEXT:    %[[BETTER:.*]] = arith.cmpi slt, %[[A]], %[[B]]
// CHECK-NEXT:    %[[PARTSOFEACH:.*]] = arith.select %[[BETTER]], %[[TWICE]], %[[ONCE]]
// CHECK-NEXT:    %[[ISMANY:.*]] = arith.cmpi sgt, %[[PARTSOFEACH]], %c1
// CHECK-NEXT:    %[[MANY:.*]] = arith.muli %[[TILES]], %[[PARTSOFEACH]]
// CHECK-NEXT:    %[[ATMOST:.*]] = arith.minsi %[[TILES]], %c8
// CHECK-NEXT:    %[[SHARES:.*]] = arith.select %[[ISMANY]], %[[MANY]], %[[ATMOST]]
// CHECK-NEXT:    %[[SHARE:.*]] = arith.ceildivsi %[[ALL]]#1, %[[SHARES]]
// CHECK-NEXT:    %[[TARGET:.*]] = arith.maxsi %[[SHARE]], %c512
// The tiles that are in front of one, those with several parts first.
// CHECK:         %[[SUMS:.*]]:6 = scf.for
// CHECK:           %[[ISFRONT:.*]] = arith.cmpi slt
// CHECK:           %[[BEFORE:.*]] = arith.maxsi %{{.*}}, %c0
// CHECK-NEXT:      %[[EIGHTH:.*]] = arith.divsi %[[TARGET]], %c8
// CHECK-NEXT:      %[[LIMIT:.*]] = arith.addi %[[TARGET]], %[[EIGHTH]]
// CHECK:           %[[HAS:.*]] = arith.cmpi slt, %[[LIMIT]], %[[OTHERKEYS:.*]] : index
// CHECK-NEXT:      %[[OVER:.*]] = arith.subi %{{.*}}, %[[LIMIT]]
// CHECK:           %[[SEVERAL:.*]] = arith.select %[[HAS]], %{{.*}}, %c0
// CHECK:           arith.divui %{{.*}}, %{{.*}} : i32
// CHECK-NEXT:      %[[PARTS:.*]] = arith.index_castui
// CHECK-NEXT:      %[[THEIRS:.*]] = arith.muli %[[SEVERAL]], %[[PARTS]]
// CHECK-NEXT:      %[[ALONE:.*]] = arith.subi %[[BEFORE]], %[[SEVERAL]]
// CHECK-NEXT:      %[[OTHERS:.*]] = arith.maxsi %[[ALONE]], %c0
// CHECK-NEXT:      %[[SEVERALBEFORE:.*]] = arith.select %[[ISFRONT]], %[[SEVERAL]], %c0
// CHECK-NEXT:      %[[THEIRSBEFORE:.*]] = arith.select %[[ISFRONT]], %[[THEIRS]], %c0
// CHECK:           %[[SEVERAL1:.*]] = arith.addi %{{.*}}, %[[SEVERAL]]
// CHECK-NEXT:      %[[SEVERALBEFORE1:.*]] = arith.addi %{{.*}}, %[[SEVERALBEFORE]]
// CHECK-NEXT:      %[[THEIRS1:.*]] = arith.addi %{{.*}}, %[[THEIRS]]
// CHECK-NEXT:      %[[THEIRSBEFORE1:.*]] = arith.addi %{{.*}}, %[[THEIRSBEFORE]]
// CHECK-NEXT:      scf.yield %{{.*}}, %{{.*}}, %[[SEVERAL1]], %[[SEVERALBEFORE1]], %[[THEIRS1]], %[[THEIRSBEFORE1]]
// An item that is a tile's only one is behind all parts.
// CHECK:         %[[OWNSEVERAL:.*]] = arith.select %{{.*}}, %{{.*}}, %c0
// CHECK:         arith.divui
// CHECK-NEXT:    %[[OWNPARTS:.*]] = arith.index_castui
// CHECK-NEXT:    %[[PARTSOF:.*]] = arith.select %[[ISPARTED]], %[[OWNPARTS]], %c1
// CHECK-NEXT:    %[[FROMWHOLE:.*]] = arith.maxsi %[[FROM]], %[[OWNSEVERAL]]
// CHECK-NEXT:    %[[BEHIND:.*]] = arith.select %[[ISPARTED]], %c0, %[[FROMWHOLE]]
// CHECK-NEXT:    %[[OWNITEMS:.*]] = arith.muli %[[OWNSEVERAL]], %[[OWNPARTS]]
// CHECK-NEXT:    %[[LEFTTILES:.*]] = arith.subi %[[STOP]], %[[BEHIND]]
// CHECK-NEXT:    %[[WHOLETILES:.*]] = arith.maxsi %[[LEFTTILES]], %c0
// CHECK-NEXT:    %[[OWNED:.*]] = arith.select %[[ISPARTED]], %[[OWNITEMS]], %[[WHOLETILES]]
// CHECK-NEXT:    %[[ONLY:.*]] = arith.addi %[[SUMS]]#4, %[[SUMS]]#0
// CHECK-NEXT:    %[[AT:.*]] = arith.select %[[ISPARTED]], %[[SUMS]]#5, %[[ONLY]]
// CHECK-NEXT:    %[[WHOLES:.*]] = arith.subi %[[SUMS]]#1, %[[SUMS]]#2
// CHECK-NEXT:    %[[SUMOFALL:.*]] = arith.addi %[[WHOLES]], %[[SUMS]]#4
// CHECK-NEXT:    %[[FIRSTTILE:.*]] = arith.subi %[[LASTTILE]], %[[BEHIND]]
// CHECK-NEXT:    %[[USED:.*]] = arith.minsi %[[SUMOFALL]], %[[ITEMS]]
// CHECK-NEXT:    %[[ANYPLACE:.*]] = arith.select %[[ISEND]], %[[USED]], %[[AT]]
// CHECK-NEXT:    %[[PLACE:.*]] = arith.minsi %[[ANYPLACE]], %[[ITEMS]]
// CHECK-NEXT:    %[[WANTED:.*]] = arith.select %[[ISEND]], %[[ITEMS]], %[[OWNED]]
// CHECK-NEXT:    %[[REST:.*]] = arith.subi %[[ITEMS]], %[[PLACE]]
// CHECK-NEXT:    %[[COUNTOF:.*]] = arith.minsi %[[WANTED]], %[[REST]]
// CHECK:         %[[PARTEDPLACE:.*]] = arith.select %[[ISPARTED]], %[[SUMS]]#3, %c0
// CHECK-NEXT:    %[[PARTEDCOUNT:.*]] = arith.select %[[ISPARTED]], %[[OWNSEVERAL]], %c0
// Items of one tile follow one another, from the last tile on: an item is a part of the one
// that the quotient says, of the number that is left.
// CHECK:         scf.for %{{.*}} = %c0 to %[[COUNTOF]]
// CHECK:         scf.for %[[ITEM:.*]] = %c0 to %[[COUNTOF]]
// CHECK-NEXT:      %[[ITEM32:.*]] = arith.index_cast %[[ITEM]]
// CHECK-NEXT:      %[[PARTSOF32:.*]] = arith.index_cast %[[PARTSOF]]
// CHECK-NEXT:      %[[TILE32:.*]] = arith.divui %[[ITEM32]], %[[PARTSOF32]]
// CHECK-NEXT:      %[[TILE:.*]] = arith.index_castui %[[TILE32]]
// CHECK-NEXT:      %[[LESSTILES:.*]] = arith.select %[[ISEND]], %c0, %[[TILE]]
// CHECK-NEXT:      arith.subi %{{.*}}, %[[LESSTILES]]
// CHECK:         scf.for %[[PARTITEM:.*]] = %c0 to %[[COUNTOF]]
// CHECK:           %[[LESSPARTS:.*]] = arith.muli %{{.*}}, %[[PARTSOF]]
// CHECK-NEXT:      arith.subi %[[PARTITEM]], %[[LESSPARTS]]
// CHECK:         scf.for %[[PARTEDTILE:.*]] = %c0 to %[[PARTEDCOUNT]]
// CHECK-NEXT:      %[[ITEMSBEFORE:.*]] = arith.muli %[[PARTEDTILE]], %[[PARTSOF]]
// CHECK-NEXT:      arith.addi %[[PLACE]], %[[ITEMSBEFORE]]
// CHECK-COUNT-2: scf.for %{{.*}} = %c0 to %[[PARTEDCOUNT]]
// CHECK:         scf.for %[[ANYTILE:.*]] = %c0 to %[[PARTEDCOUNT]]
// CHECK-NEXT:      arith.subi %[[FIRSTTILE]], %[[ANYTILE]]
// CHECK:         scf.forall.in_parallel {
// CHECK-COUNT-2:   tensor.parallel_insert_slice %{{.*}} into %{{.*}}[%[[PLACE]]] [%[[COUNTOF]]] [1]
// CHECK-NEXT:      tensor.parallel_insert_slice %{{.*}} into %{{.*}}[0] [%[[ENDCOUNT:.*]]] [1] : tensor<?xi32> into tensor<1xi32>
// CHECK-COUNT-2:   tensor.parallel_insert_slice %{{.*}} into %{{.*}}[%[[PLACE]]] [%[[COUNTOF]]] [1]
// CHECK-NEXT:      tensor.parallel_insert_slice %{{.*}} into %{{.*}}[0] [%[[ENDCOUNT]]] [1] : tensor<?xi32> into tensor<1xi32>
// CHECK-COUNT-4:   tensor.parallel_insert_slice %{{.*}} into %{{.*}}[%[[PARTEDPLACE]]] [%[[PARTEDCOUNT]]] [1]

// The workspace has the results of both heads of 48 parts.
// CHECK:       %[[NUMITEMS32:.*]] = tensor.extract %[[LIST]]#2[%c0]
// CHECK-NEXT:  %[[NUMITEMS:.*]] = arith.index_castui %[[NUMITEMS32]]
// CHECK-NEXT:  %[[COUNTED:.*]] = arith.select %[[ISANY]], %[[NUMITEMS]], %c0
// CHECK-NEXT:  %[[UPPER:.*]] = arith.minsi %[[COUNTED]], %[[ITEMS]]
// CHECK-NEXT:  %[[OUTPUTS:.*]] = tensor.empty() : tensor<96x64x64xf32>
// CHECK-NEXT:  %[[NUMBERS:.*]] = tensor.empty() : tensor<96x64xf32>
// CHECK-NEXT:  %[[DONE:.*]]:4 = scf.forall (%[[H:.*]], %[[W:.*]]) in (2, %[[UPPER]]) shared_outs(%[[OUT:.*]] = %[[ROOM]], %[[PO:.*]] = %[[OUTPUTS]], %[[PL:.*]] = %[[NUMBERS]], %[[PR:.*]] = %[[NUMBERS]])
// CHECK:         %[[P32:.*]] = tensor.extract %[[LIST]]#3[%[[W]]]
// CHECK-NEXT:    %[[P:.*]] = arith.index_castui %[[P32]]
// CHECK-NEXT:    %[[C32:.*]] = tensor.extract %[[LIST]]#4[%[[W]]]
// CHECK-NEXT:    %[[C:.*]] = arith.index_castui %[[C32]]
// CHECK:         %[[ROWS:.*]] = affine.min
// A part has as many steps as the others, the first ones one more.
// CHECK:         %[[STEPS:.*]] = arith.ceildivsi %{{.*}}, %c32
// CHECK:         arith.divui %{{.*}}, %{{.*}} : i32
// CHECK-NEXT:    %[[OFEACH:.*]] = arith.index_castui
// CHECK-NEXT:    %[[EVEN:.*]] = arith.muli %[[OFEACH]], %[[C]]
// CHECK-NEXT:    %[[LEFT:.*]] = arith.subi %[[STEPS]], %[[EVEN]]
// CHECK-NEXT:    %[[BEFOREP:.*]] = arith.muli %[[OFEACH]], %[[P]]
// CHECK-NEXT:    %[[ONES:.*]] = arith.minsi %[[P]], %[[LEFT]]
// CHECK-NEXT:    %[[STEP:.*]] = arith.addi %[[BEFOREP]], %[[ONES]]
// CHECK-NEXT:    %[[LOWER:.*]] = arith.muli %[[STEP]], %c32
// CHECK:         scf.for %{{.*}} = %[[LOWER]] to %{{.*}} step %c32
// Rows are written to the result if the part is all, and else to the workspace, whose
// places are those of items and heads.
// CHECK:         %[[ISALL:.*]] = arith.cmpi eq, %[[C]], %c1
// CHECK-NEXT:    %[[ANY:.*]] = arith.select %[[ISALL]], %c64, %c0
// CHECK-NEXT:    %[[WHOLEROWS:.*]] = arith.minsi %[[ROWS]], %[[ANY]]
// CHECK-NEXT:    %[[PARTROWS:.*]] = arith.select %[[ISALL]], %c0, %[[ROWS]]
// CHECK-NEXT:    %[[OFITEM:.*]] = arith.muli %[[W]], %c2
// CHECK-NEXT:    %[[OFHEAD:.*]] = arith.addi %[[OFITEM]], %[[H]]
// CHECK-NEXT:    %[[IN:.*]] = arith.minsi %[[OFHEAD]], %c95
// CHECK-NEXT:    %[[SUM:.*]]:3 = attn.finalize
// CHECK:         %[[ROUNDED:.*]] = linalg.generic {{.*}} ins(%[[SUM]]#0 :
// CHECK:         %[[WHOLE:.*]] = tensor.extract_slice %[[ROUNDED]][0, 0, 0, 0] [1, 1, %[[WHOLEROWS]], 64]
// CHECK:         scf.forall.in_parallel {
// CHECK-NEXT:      tensor.parallel_insert_slice %[[WHOLE]] into %[[OUT]][0, %[[H]], %{{.*}}, 0] [1, 1, %[[WHOLEROWS]], 64]
// CHECK-NEXT:      tensor.parallel_insert_slice %{{.*}} into %[[PO]][%[[IN]], 0, 0] [1, %[[PARTROWS]], 64]
// CHECK-NEXT:      tensor.parallel_insert_slice %{{.*}} into %[[PL]][%[[IN]], 0] [1, %[[PARTROWS]]]
// CHECK-NEXT:      tensor.parallel_insert_slice %{{.*}} into %[[PR]][%[[IN]], 0] [1, %[[PARTROWS]]]

// An iteration of the loop behind merges a row of a tile, where it is in the result. There
// may be fewer tiles than 8.
// CHECK:       %[[ATMOSTPARTED:.*]] = arith.minsi %[[SIZE]], %c8
// CHECK-NEXT:  %[[MERGED:.*]] = scf.forall (%[[S:.*]], %[[MH:.*]], %[[F:.*]]) in (%[[ATMOSTPARTED]], 2, 64) shared_outs(%[[MOUT:.*]] = %[[DONE]]#0)
// CHECK-NEXT:    %[[NUM32:.*]] = tensor.extract %[[LIST]]#5[%c0]
// CHECK-NEXT:    %[[NUM:.*]] = arith.index_castui %[[NUM32]]
// CHECK-NEXT:    %[[EXISTS:.*]] = arith.cmpi slt, %[[S]], %[[NUM]]
// The list is read at once, also of what there is not.
// CHECK-NEXT:    %[[W32:.*]] = tensor.extract %[[LIST]]#6[%[[S]]]
// CHECK-NEXT:    %[[ANYW:.*]] = arith.index_castui %[[W32]]
// CHECK-NEXT:    %[[MW:.*]] = arith.select %[[EXISTS]], %[[ANYW]], %c0
// CHECK-NEXT:    %[[MC32:.*]] = tensor.extract %[[LIST]]#7[%[[S]]]
// CHECK-NEXT:    %[[ANYC:.*]] = arith.index_castui %[[MC32]]
// CHECK-NEXT:    %[[MC:.*]] = arith.select %[[EXISTS]], %[[ANYC]], %c0
// CHECK-NEXT:    %[[MB32:.*]] = tensor.extract %[[LIST]]#8[%[[S]]]
// CHECK-NEXT:    %[[ANYB:.*]] = arith.index_castui %[[MB32]]
// CHECK-NEXT:    %[[MB:.*]] = arith.select %[[EXISTS]], %[[ANYB]], %c0
// CHECK-NEXT:    %[[MT32:.*]] = tensor.extract %[[LIST]]#9[%[[S]]]
// CHECK:         %[[OWN:.*]]:2 = scf.if %[[EXISTS]] -> (index, index) {
// CHECK-NEXT:      tensor.extract %[[STARTS]][%[[MB]]]
// CHECK:           %[[MROWS:.*]] = affine.min
// CHECK-NEXT:      %[[ISROW:.*]] = arith.cmpi slt, %[[F]], %[[MROWS]]
// CHECK-NEXT:      %[[ONE:.*]] = arith.select %[[ISROW]], %c1, %c0
// CHECK-NEXT:      %[[MROW:.*]] = arith.addi %{{.*}}, %[[F]]
// CHECK-NEXT:      %[[MPLACE:.*]] = arith.select %[[ISROW]], %[[MROW]], %c0
// CHECK-NEXT:      scf.yield %[[ONE]], %[[MPLACE]]
// CHECK-NEXT:    } else {
// CHECK-NEXT:      scf.yield %c0, %c0
// CHECK-NEXT:    }
// CHECK-NEXT:    %[[MINE:.*]] = tensor.extract_slice %[[MOUT]][0, %[[OF:.*]], %[[OWN]]#1, 0] [1, 1, %[[OWN]]#0, 64] [1, 1, 1, 1]
// CHECK-NEXT:    %[[ROWSDONE:.*]] = scf.for %[[Q:.*]] = %c0 to %[[OWN]]#0 step %c1 iter_args(%[[CARRIED:.*]] = %[[MINE]])
// CHECK-NEXT:      %[[FIRSTITEM:.*]] = arith.muli %[[MW]], %c2
// CHECK-NEXT:      %[[FIRSTPLACE:.*]] = arith.addi %[[FIRSTITEM]], %[[MH]]
// CHECK-NEXT:      tensor.extract_slice %[[DONE]]#1[%[[FIRSTPLACE]], %[[F]], 0] [%[[MC]], 1, 64] [2, 1, 1]
// CHECK-NEXT:      tensor.extract_slice %[[DONE]]#2[%[[FIRSTPLACE]], %[[F]]] [%[[MC]], 1] [2, 1]
// CHECK-NEXT:      tensor.extract_slice %[[DONE]]#3[%[[FIRSTPLACE]], %[[F]]] [%[[MC]], 1] [2, 1]
// Tiles of 64 rows are few, and have as many parts as there may be: two groups of threads
// share the 8 of a row.
// CHECK:           tensor.empty() : tensor<2x16xf32>
// CHECK:           %[[NEW:.*]] = tensor.insert_slice %{{.*}} into %[[CARRIED]][%[[Q]], 0] [1, 64]
// CHECK-NEXT:      scf.yield %[[NEW]]
// CHECK:         tensor.parallel_insert_slice %[[ROWSDONE]] into %[[MOUT]][0, %[[OF]], %[[OWN]]#1, 0] [1, 1, %[[OWN]]#0, 64] [1, 1, 1, 1]
// CHECK:       return %[[MERGED]]
!all = tensor<?x2x?x64xbf16>
#gpu = #attn.schedule<tile = 64x32, order = longest_first, warps = 4, stages = 2, blocks = dealt, split = 8>
func.func @parts(%q: !all, %k: !all, %starts: tensor<?xi32>, %lengths: tensor<?xi32>, %room: !all) -> !all {
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

// A query's rows are those of the heads of its group. Tiles see fewer keys than the last
// one by a fourth of their rows.

// CHECK-LABEL: func @groups
// CHECK:         %[[SEE:.*]] = arith.ceildivsi %{{.*}}, %c32
// CHECK:       %[[DONE:.*]]:5 = scf.forall (%[[H:.*]], %[[W:.*]]) in (2, %{{.*}}) {{.*}} -> (tensor<1x8x?x64xbf16>, tensor<1x8x?xf32>, tensor<96x128x64xf32>, tensor<96x128xf32>, tensor<96x128xf32>)
// CHECK:         %[[ROWS:.*]] = affine.min
// CHECK:         %[[QUERIES:.*]] = arith.divsi %[[ROWS]], %c4
// CHECK:         %[[ISALL:.*]] = arith.cmpi eq, %{{.*}}, %c1
// CHECK-NEXT:    %[[ANYROW:.*]] = arith.select %[[ISALL]], %c128, %c0
// CHECK-NEXT:    %[[WHOLEROWS:.*]] = arith.minsi %[[ROWS]], %[[ANYROW]]
// CHECK-NEXT:    %[[ANYQUERY:.*]] = arith.select %[[ISALL]], %c32, %c0
// CHECK-NEXT:    %[[WHOLEQUERIES:.*]] = arith.minsi %[[QUERIES]], %[[ANYQUERY]]
// CHECK:         tensor.expand_shape {{.*}} output_shape [1, %[[WHOLEQUERIES]], 4, 64]
// CHECK:         tensor.parallel_insert_slice %{{.*}} [1, 4, %[[WHOLEQUERIES]], 64]
// CHECK:         tensor.parallel_insert_slice %{{.*}} [1, 4, %[[WHOLEQUERIES]]]
// CHECK:       scf.forall (%{{.*}}, %[[MH:.*]], %[[F:.*]], %[[MEMBER:.*]]) in (%{{.*}}, 2, 32, 4) shared_outs(%[[OUT:.*]] = %[[DONE]]#0, %[[LOUT:.*]] = %[[DONE]]#1)
// CHECK:         %[[OWN:.*]]:3 = scf.if
// CHECK-NEXT:      %[[MHEAD:.*]] = arith.muli %[[MH]], %c4
// CHECK:           %[[OFMEMBER:.*]] = arith.addi %[[MHEAD]], %[[MEMBER]]
// CHECK:           scf.yield %{{.*}}, %[[OFMEMBER]], %{{.*}} : index, index, index
// CHECK:         %[[FIRST:.*]] = arith.muli %[[F]], %c4
// CHECK-NEXT:    %[[ROW:.*]] = arith.addi %[[FIRST]], %[[MEMBER]]
// CHECK-NEXT:    %[[MINE:.*]] = tensor.extract_slice %[[OUT]][0, %[[OWN]]#1, %[[OWN]]#2, 0] [1, 1, %[[OWN]]#0, 64]
// CHECK-NEXT:    %[[LMINE:.*]] = tensor.extract_slice %[[LOUT]][0, %[[OWN]]#1, %[[OWN]]#2] [1, 1, %[[OWN]]#0]
// CHECK-NEXT:    scf.for %[[Q:.*]] = %c0 to %[[OWN]]#0 step %c1 iter_args(%[[NEW:.*]] = %[[MINE]], %[[LNEW:.*]] = %[[LMINE]])
// CHECK:           tensor.extract_slice %[[DONE]]#2[%{{.*}}, %[[ROW]], 0] [%{{.*}}, 1, 64] [2, 1, 1]
// CHECK:           %[[LROW:.*]] = tensor.extract_slice %[[LNEW]][%[[Q]]] [1] [1] : tensor<?xf32> to tensor<f32>
// CHECK:           tensor.insert_slice %{{.*}} into %[[NEW]][%[[Q]], 0] [1, 64]
// The log-sum-exp of a row was computed for each of its features.
// CHECK:           %[[LSE:.*]] = tensor.extract %{{.*}}[%c0] : tensor<64xf32>
// CHECK-NEXT:      %[[LDONE:.*]] = tensor.insert %[[LSE]] into %[[LROW]][]
// CHECK-NEXT:      tensor.insert_slice %[[LDONE]] into %[[LNEW]][%[[Q]]] [1]
!all = tensor<?x8x?x64xbf16>
!keys = tensor<?x2x?x64xbf16>
!rows = tensor<?x2x?x4x64xbf16>
!lse = tensor<?x8x?xf32>
!one = tensor<1x8x?x64xbf16>
!onelse = tensor<1x8x?xf32>
#gpu = #attn.schedule<tile = 128x64, order = longest_first, warps = 4, stages = 2, blocks = dealt, split = 8>
func.func @groups(%query: !all, %key: !keys, %starts: tensor<?xi32>, %longest: index) -> (!one, !onelse) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %batch = tensor.dim %key, %c0 : !keys
  %tokens = tensor.dim %query, %c2 : !all
  %room = tensor.empty(%batch, %longest) : !all
  %copied = scf.forall (%b) in (%batch) shared_outs(%out = %room) -> (!all) {
    %next = arith.addi %b, %c1 : index
    %first32 = tensor.extract %starts[%b] : tensor<?xi32>
    %first = arith.index_cast %first32 : i32 to index
    %end32 = tensor.extract %starts[%next] : tensor<?xi32>
    %end = arith.index_cast %end32 : i32 to index
    %own = arith.subi %end, %first : index
    %count = arith.minsi %own, %longest : index
    %some = tensor.extract_slice %query[0, 0, %first, 0] [1, 8, %count, 64] [1, 1, 1, 1] : !all to !one
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[%b, 0, 0, 0] [1, 8, %count, 64] [1, 1, 1, 1] : !one into !all
    }
  }
  %split = tensor.expand_shape %copied [[0], [1, 2], [3], [4]] output_shape [%batch, 2, 4, %longest, 64] : !all into tensor<?x2x4x?x64xbf16>
  %empty = tensor.empty(%batch, %longest) : !rows
  %turned = linalg.transpose ins(%split : tensor<?x2x4x?x64xbf16>) outs(%empty : !rows) permutation = [0, 1, 3, 2, 4]
  %q = tensor.collapse_shape %turned [[0], [1], [2, 3], [4]] : !rows into !keys
  %o, %l = attn.attention %q, %key, %key scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %query_of = arith.divui %i, %c4 : index
    %first32 = tensor.extract %starts[%b] : tensor<?xi32>
    %first = arith.index_cast %first32 : i32 to index
    %last = arith.addi %query_of, %first : index
    %keep = arith.cmpi sge, %last, %j : index
    attn.yield %keep : i1
  } {schedule = #gpu} : !keys, !keys, !keys -> !keys, tensor<?x2x?xf32>
  %o_split = tensor.expand_shape %o [[0], [1], [2, 3], [4]] output_shape [%batch, 2, %longest, 4, 64] : !keys into !rows
  %o_empty = tensor.empty(%batch, %longest) : tensor<?x2x4x?x64xbf16>
  %o_turned = linalg.transpose ins(%o_split : !rows) outs(%o_empty : tensor<?x2x4x?x64xbf16>) permutation = [0, 1, 3, 2, 4]
  %o_heads = tensor.collapse_shape %o_turned [[0], [1, 2], [3], [4]] : tensor<?x2x4x?x64xbf16> into !all
  %l_split = tensor.expand_shape %l [[0], [1], [2, 3]] output_shape [%batch, 2, %longest, 4] : tensor<?x2x?xf32> into tensor<?x2x?x4xf32>
  %l_empty = tensor.empty(%batch, %longest) : tensor<?x2x4x?xf32>
  %l_turned = linalg.transpose ins(%l_split : tensor<?x2x?x4xf32>) outs(%l_empty : tensor<?x2x4x?xf32>) permutation = [0, 1, 3, 2]
  %l_heads = tensor.collapse_shape %l_turned [[0], [1, 2], [3]] : tensor<?x2x4x?xf32> into !lse
  %o_room = tensor.empty(%tokens) : !one
  %l_room = tensor.empty(%tokens) : !onelse
  %packed:2 = scf.forall (%b) in (%batch) shared_outs(%o_out = %o_room, %l_out = %l_room) -> (!one, !onelse) {
    %next = arith.addi %b, %c1 : index
    %first32 = tensor.extract %starts[%b] : tensor<?xi32>
    %first = arith.index_cast %first32 : i32 to index
    %end32 = tensor.extract %starts[%next] : tensor<?xi32>
    %end = arith.index_cast %end32 : i32 to index
    %own = arith.subi %end, %first : index
    %count = arith.minsi %own, %longest : index
    %o_some = tensor.extract_slice %o_heads[%b, 0, 0, 0] [1, 8, %count, 64] [1, 1, 1, 1] : !all to !one
    %l_some = tensor.extract_slice %l_heads[%b, 0, 0] [1, 8, %count] [1, 1, 1] : !lse to !onelse
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %o_some into %o_out[0, 0, %first, 0] [1, 8, %count, 64] [1, 1, 1, 1] : !one into !one
      tensor.parallel_insert_slice %l_some into %l_out[0, 0, %first] [1, 8, %count] [1, 1, 1] : !onelse into !onelse
    }
  }
  return %packed#0, %packed#1 : !one, !onelse
}

// -----

// What else is computed of a tile is no sum of parts: tiles are whole.

// CHECK-LABEL: func @consumed
// CHECK:       %[[LIST:.*]]:3 = scf.forall
// CHECK-NOT:   scf.forall (
// CHECK:       scf.forall (%{{.*}}, %{{.*}}) in (2, %{{.*}}) shared_outs(%{{[^,]*}}) -> (tensor<?x2x?x64xbf16>)
// CHECK-NOT:   scf.forall (
// CHECK:       return
!all = tensor<?x2x?x64xbf16>
#gpu = #attn.schedule<tile = 64x32, order = longest_first, warps = 4, stages = 2, blocks = dealt, split = 8>
func.func @consumed(%q: !all, %k: !all, %starts: tensor<?xi32>, %lengths: tensor<?xi32>, %room: !all) -> !all {
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
  %empty = tensor.empty(%batch, %rows) : !all
  %twice = linalg.add ins(%packed, %packed : !all, !all) outs(%empty : !all) -> !all
  return %twice : !all
}
