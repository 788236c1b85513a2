// RUN: fovea-opt %s --attn-online-softmax --attn-tile --split-input-file | FileCheck %s
// RUN: fovea-opt %s --attn-online-softmax=passes=2 --attn-tile --split-input-file | FileCheck %s --check-prefix=TWO

// Parts of the keys are the last dimension of the loop. A part has whole tiles, one,
// of which the first part has one more; ragged keys are in the last. Its output is
// not rounded.
// CHECK-LABEL: func @split
// CHECK-SAME: %[[Q:[^:]*]]: tensor<1x2x?x64xf16>, %[[K:[^:]*]]: tensor<1x2x200x64xf16>, %[[V:[^:]*]]: tensor<1x2x200x32xf16>
// CHECK: %[[N:.*]] = tensor.dim %[[Q]], %{{.*}} : tensor<1x2x?x64xf16>
// CHECK: %[[PO:.*]] = tensor.empty(%{{.*}}) : tensor<3x2x?x32xf32>
// CHECK: %[[PL:.*]] = tensor.empty(%{{.*}}) : tensor<3x2x?xf32>
// CHECK: %[[WHOLE:.*]] = tensor.empty(%{{.*}}) : tensor<1x2x?x32xf16>
// CHECK: %[[R:.*]]:3 = scf.forall (%[[B:.*]], %[[H:.*]], %[[I:.*]], %[[P:.*]]) = (0, 0, 0, 0) to (1, 2, %{{.*}}, 3) step (1, 1, 48, 1) shared_outs(%[[OUT:.*]] = %[[PO]], %[[LSE:.*]] = %[[PL]], %[[REST:.*]] = %[[PL]])
// CHECK: %[[FIRST:.*]] = arith.muli %[[B]], %c3 : index
// CHECK: %[[W:.*]] = arith.addi %[[FIRST]], %[[P]] : index
// CHECK: %[[M0:.*]] = arith.minsi %[[P]], %c1 : index
// CHECK: %[[T0:.*]] = arith.addi %[[P]], %[[M0]] : index
// CHECK: %[[BEGIN:.*]] = arith.muli %[[T0]], %c64 : index
// CHECK: %[[P1:.*]] = arith.addi %[[P]], %c1 : index
// CHECK: %[[M1:.*]] = arith.minsi %[[P1]], %c1 : index
// CHECK: %[[T1:.*]] = arith.addi %[[P1]], %[[M1]] : index
// CHECK: %[[END:.*]] = arith.muli %[[T1]], %c64 : index
// CHECK: %[[S:.*]]:3 = scf.for %[[J:.*]] = %[[BEGIN]] to %[[END]] step %c64
// CHECK: affine.min {{.*}}(%[[J]])
// CHECK: %[[F:.*]]:3 = attn.finalize ins(%[[S]]#0, %[[S]]#1, %[[S]]#2 :
// CHECK-SAME: -> tensor<1x1x?x32xf32>, tensor<1x1x?xf32>, tensor<1x1x?xf32>
// CHECK: scf.forall.in_parallel {
// CHECK-NEXT: tensor.parallel_insert_slice %[[F]]#0 into %[[OUT]][%[[W]], %[[H]], %[[I]], 0] [1, 1, %{{.*}}, 32] [1, 1, 1, 1]
// CHECK-NEXT: tensor.parallel_insert_slice %[[F]]#1 into %[[LSE]][%[[W]], %[[H]], %[[I]]] [1, 1, %{{.*}}] [1, 1, 1]
// CHECK-NEXT: tensor.parallel_insert_slice %[[F]]#2 into %[[REST]][%[[W]], %[[H]], %[[I]]] [1, 1, %{{.*}}] [1, 1, 1]
// CHECK-NEXT: }
// Each row is merged: as there are several parts, none is a result.
// CHECK: %[[O:.*]] = scf.forall (%[[MB:.*]], %[[MH:.*]], %[[MI:.*]]) in (1, 2, %{{.*}}) shared_outs(%[[MERGED:.*]] = %[[WHOLE]])
// CHECK: %[[BEGIN:.*]] = arith.muli %[[MB]], %c3 : index
// CHECK-NOT: scf.if {{.*}} -> (tensor<
// CHECK-DAG: tensor.extract_slice %[[R]]#2[%[[BEGIN]], %[[MH]], %[[MI]]] [3, 1, 1]
// CHECK-DAG: tensor.extract_slice %[[R]]#1[%[[BEGIN]], %[[MH]], %[[MI]]] [3, 1, 1]
// CHECK-DAG: tensor.extract_slice %[[R]]#0[%[[BEGIN]], %[[MH]], %[[MI]], 0] [3, 1, 1, 32]
// CHECK: %[[ROW:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<32xf16>)
// CHECK: tensor.parallel_insert_slice %[[ROW]] into %[[MERGED]][%[[MB]], %[[MH]], %[[MI]], 0] [1, 1, 1, 32]
// The reader is behind the merge.
// CHECK: linalg.generic {{.*}} ins(%[[O]] :
//
// Each pass over the keys has the same part of them.
// TWO-LABEL: func @split
// TWO: scf.for %{{.*}} = %[[BEGIN:.*]] to %[[END:.*]] step
// TWO: update(max_sum)
// TWO: scf.for %{{.*}} = %[[BEGIN]] to %[[END]] step
// TWO: update(acc)
#id = affine_map<(a, b, c, d) -> (a, b, c, d)>
func.func @split(%q: tensor<1x2x?x64xf16>, %k: tensor<1x2x200x64xf16>, %v: tensor<1x2x200x32xf16>, %e: tensor<1x2x?x32xf16>) -> tensor<1x2x?x32xf16> {
  %o = attn.attention %q, %k, %v scale(0.125) {schedule = #attn.schedule<tile = 48x64, order = linear, split = 3>}
    : tensor<1x2x?x64xf16>, tensor<1x2x200x64xf16>, tensor<1x2x200x32xf16> -> tensor<1x2x?x32xf16>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%o : tensor<1x2x?x32xf16>) outs(%e : tensor<1x2x?x32xf16>) {
  ^bb0(%x: f16, %y: f16):
    %z = arith.addf %x, %x : f16
    linalg.yield %z : f16
  } -> tensor<1x2x?x32xf16>
  return %r : tensor<1x2x?x32xf16>
}

// -----

// The tiles that the mask keeps are divided, from the window's first on: as many for
// each part, and one more for as many parts as tiles are left.
// CHECK-LABEL: func @window
// CHECK: scf.forall (%{{.*}}, %{{.*}}, %{{.*}}, %[[P:.*]]) =
// CHECK: %[[END:.*]] = arith.minsi %{{.*}}, %c200 : index
// CHECK: %[[UPPER:.*]] = arith.select %{{.*}}, %[[END]], %c0 : index
// CHECK: %[[LOWER:.*]] = arith.muli %{{.*}}, %c16 : index
// CHECK: %[[KEYS:.*]] = arith.subi %[[UPPER]], %[[LOWER]] : index
// CHECK: %[[SOME:.*]] = arith.maxsi %[[KEYS]], %c0 : index
// CHECK: %[[TILES:.*]] = arith.ceildivsi %[[SOME]], %c16 : index
// CHECK: %[[EACH:.*]] = arith.divsi %[[TILES]], %c2 : index
// CHECK: %[[DIVIDED:.*]] = arith.muli %[[EACH]], %c2 : index
// CHECK: %[[LEFT:.*]] = arith.subi %[[TILES]], %[[DIVIDED]] : index
// CHECK: %[[BEFORE:.*]] = arith.muli %[[EACH]], %[[P]] : index
// CHECK: %[[MORE:.*]] = arith.minsi %[[P]], %[[LEFT]] : index
// CHECK: %[[D0:.*]] = arith.addi %[[BEFORE]], %[[MORE]] : index
// CHECK: %[[O0:.*]] = arith.muli %[[D0]], %c16 : index
// CHECK: %[[BEGIN:.*]] = arith.addi %[[LOWER]], %[[O0]] : index
// CHECK: scf.for %{{.*}} = %[[BEGIN]] to %{{.*}} step %c16
func.func @window(%q: tensor<1x1x200x64xf32>) -> (tensor<1x1x200x64xf32>, tensor<1x1x200xf32>) {
  %o, %l = attn.attention %q, %q, %q scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %c40 = arith.constant 40 : index
      %d = arith.subi %i, %j : index
      %past = arith.cmpi sle, %d, %c40 : index
      %causal = arith.cmpi sge, %i, %j : index
      %keep = arith.andi %past, %causal : i1
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 16x16, order = linear, split = 2>}
    : tensor<1x1x200x64xf32>, tensor<1x1x200x64xf32>, tensor<1x1x200x64xf32> -> tensor<1x1x200x64xf32>, tensor<1x1x200xf32>
  return %o, %l : tensor<1x1x200x64xf32>, tensor<1x1x200xf32>
}

// -----

// The parts of all batches, whose number is not static: at least one for each, which
// is the result where it is one. Then no row is merged. Tiles are divided among so
// many in 32 bits.
// CHECK-LABEL: func @batches
// CHECK: %[[B:.*]] = tensor.dim %{{.*}}, %c0 : tensor<?x2x1x64xf16>
// CHECK: %[[SOME:.*]] = arith.maxsi %[[B]], %c1
// CHECK: %[[EACH:.*]] = arith.divsi %c16, %[[SOME]]
// CHECK: %[[N:.*]] = arith.maxsi %[[EACH]], %c1
// CHECK: %[[W:.*]] = arith.muli %[[B]], %[[N]] : index
// CHECK: tensor.empty(%[[W]]) : tensor<?x2x1x64xf32>
// CHECK: %[[R:.*]]:4 = scf.forall (%[[AT:.*]], %[[H:.*]], %[[I:.*]], %[[P:.*]]) in (%[[B]], 2, 1, %[[N]])
// CHECK: %[[FIRST:.*]] = arith.muli %[[AT]], %[[N]] : index
// CHECK: %[[ITEM:.*]] = arith.addi %[[FIRST]], %[[P]] : index
// CHECK: %[[TILES:.*]] = arith.index_cast %{{.*}} : index to i32
// CHECK: %[[PARTS:.*]] = arith.index_cast %[[N]] : index to i32
// CHECK: arith.divui %[[TILES]], %[[PARTS]] : i32
// CHECK: %[[ONE:.*]] = arith.cmpi eq, %[[N]], %c1 : index
// CHECK: %[[NONE:.*]] = arith.select %[[ONE]], %c0, %c1
// CHECK: %[[ALL:.*]] = arith.select %[[ONE]], %c1, %c0
// CHECK: tensor.parallel_insert_slice %{{.*}} into %{{.*}}[%[[ITEM]], %[[H]], %[[I]], 0] [1, 1, %[[NONE]], 64]
// CHECK: tensor.parallel_insert_slice %{{.*}} into %{{.*}}[%[[AT]], %[[H]], %[[I]], 0] [1, 1, %[[ALL]], 64]
// CHECK: %[[ISWHOLE:.*]] = arith.cmpi eq, %[[N]], %c1 : index
// CHECK: %[[SEVERAL:.*]] = arith.select %[[ISWHOLE]], %c0, %[[B]] : index
// CHECK: scf.forall (%[[MB:.*]], %{{.*}}, %{{.*}}) in (%[[SEVERAL]], 2, 1) shared_outs(%{{.*}} = %[[R]]#3)
// CHECK: arith.muli %[[MB]], %[[N]] : index
// CHECK-NOT: scf.if {{.*}} -> (tensor<64xf16>)
func.func @batches(%q: tensor<?x2x1x64xf16>, %k: tensor<?x2x?x64xf16>) -> tensor<?x2x1x64xf16> {
  %o = attn.attention %q, %k, %k scale(0.125) {schedule = #attn.schedule<tile = 64x64, order = linear, split = 16>}
    : tensor<?x2x1x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16> -> tensor<?x2x1x64xf16>
  return %o : tensor<?x2x1x64xf16>
}

// -----

// Sequences of any length: items of work are the first dimension of the loop. How
// many there can be is known on the host, from the number of batches: less than
// one for each and as many more as the schedule has parts, or so.
// CHECK-LABEL: func @lengths
// CHECK-SAME: %[[Q:[^:]*]]: tensor<?x2x?x64xf16>, %[[K:[^:]*]]: tensor<?x2x?x64xf16>, %[[LEN:[^:]*]]: tensor<?xi32>
// CHECK-DAG: %[[LOG2E:.*]] = arith.constant 1.44269502 : f32
// CHECK-DAG: %[[LOWEST:.*]] = arith.constant -3.40282347E+38 : f32
// CHECK-DAG: %[[MINUSINF:.*]] = arith.constant 0xFF800000 : f32
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK: %[[B:.*]] = tensor.dim %[[Q]], %c0
// CHECK: %[[MOST:.*]] = arith.addi %{{.*}}, %c1 : index
// CHECK: %[[AVERAGE:.*]]:2 = scf.for %{{.*}} = %c1 to %[[MOST]] step %c1
// CHECK: scf.yield
// CHECK: %[[EXTRA:.*]] = arith.select %{{.*}}, %{{.*}}, %{{.*}} : index
// CHECK: %[[ALL:.*]] = arith.addi %[[B]], %[[EXTRA]] : index
// CHECK: %[[LESS:.*]] = arith.addi %[[ALL]], %c-1 : index
// CHECK: %[[W:.*]] = arith.maxsi %[[LESS]], %c0 : index
// CHECK: %[[ONE:.*]] = arith.cmpi eq, %[[B]], %c1 : index
// CHECK: %[[LISTED:.*]] = arith.select %[[ONE]], %c0, %[[B]] : index
// The first item of each batch, its parts, and the number of all; the batch of
// each item, and its part. They follow from the tiles that the mask keeps of each
// batch, which are added up.
// CHECK: %[[LIST:.*]]:5 = scf.forall (%[[B1:.*]]) in (%[[LISTED]])
// CHECK: scf.for %[[B0:.*]] = %c0 to %[[B]] step %c1 iter_args(%{{.*}} = %c0)
// CHECK: tensor.extract %[[LEN]][%[[B0]]]
// CHECK: %[[TILES:.*]] = arith.ceildivsi %{{.*}}, %c64 : index
// CHECK: arith.addi %{{.*}}, %[[TILES]] : index
// CHECK: tensor.extract %[[LEN]][%[[B1]]]
// CHECK: %[[SUMS:.*]]:2 = scf.for %{{.*}} = %c0 to %[[B]] step %c1 iter_args(%{{.*}} = %c0, %{{.*}} = %c0)
// CHECK: tensor.parallel_insert_slice %{{.*}} into %{{.*}}[%[[SUMS]]#0] [%{{.*}}] [1]
// CHECK: tensor.parallel_insert_slice %{{.*}} into %{{.*}}[%[[SUMS]]#0] [%{{.*}}] [1]
// CHECK: %[[PO:.*]] = tensor.empty(%[[W]], %{{.*}}) : tensor<?x2x?x64xf32>
// CHECK: %[[PL:.*]] = tensor.empty(%[[W]], %{{.*}}) : tensor<?x2x?xf32>
// CHECK: %[[WHOLE:.*]] = tensor.empty(%[[B]], %{{.*}}) : tensor<?x2x?x64xf16>
// CHECK: %[[R:.*]]:4 = scf.forall (%[[I:.*]], %[[H:.*]], %[[ROW:.*]]) = (0, 0, 0) to (%[[W]], 2, %{{.*}}) step (1, 1, 64) shared_outs(%[[OUT:.*]] = %[[PO]], %[[LSE:.*]] = %[[PL]], %[[REST:.*]] = %[[PL]], %[[DIRECT:.*]] = %[[WHOLE]])
// CHECK: %[[ITS:.*]]:3 = scf.if %[[ONE]] -> (index, index, index) {
// CHECK-NEXT: scf.yield %c0, %[[I]], %[[W]]
// CHECK: } else {
// CHECK: %[[USED:.*]] = tensor.extract %[[LIST]]#2[%c0]
// CHECK: %[[ISUSED:.*]] = arith.cmpi slt, %[[I]], %[[USED]] : index
// CHECK: %[[LISTEDBATCH:.*]] = tensor.extract %[[LIST]]#3[%[[I]]]
// CHECK: arith.select %[[ISUSED]], %[[LISTEDBATCH]], %c0 : index
// An item that there is not is the last of more parts than there are tiles.
// CHECK: arith.select %[[ISUSED]], %{{.*}}, %c2147483647 : index
// CHECK: arith.select %[[ISUSED]], %{{.*}}, %c2147483647 : index
// CHECK: tensor.extract_slice %[[Q]][%[[ITS]]#0, %[[H]], %{{.*}}, 0]
// CHECK: scf.for %[[J:.*]] = %{{.*}} to %{{.*}} step %c64
// CHECK: tensor.extract_slice %[[K]][%[[ITS]]#0, %[[H]], %[[J]], 0]
// CHECK: attn.online_attention {{.*}} at[%[[ITS]]#0, %[[H]], %{{.*}}, %[[J]]]
// The only part of a batch is its result, and no term of a sum.
// CHECK: %[[ONLY:.*]] = arith.cmpi eq, %[[ITS]]#2, %c1 : index
// CHECK: %[[NONE:.*]] = arith.select %[[ONLY]], %c0, %[[ROWS:.*]] : index
// CHECK: %[[ALLROWS:.*]] = arith.select %[[ONLY]], %[[ROWS]], %c0 : index
// CHECK: %[[F:.*]]:3 = attn.finalize
// CHECK-SAME: -> tensor<1x1x?x64xf32>, tensor<1x1x?xf32>, tensor<1x1x?xf32>
// CHECK-DAG: %[[SUM:.*]] = tensor.extract_slice %[[F]]#0[0, 0, 0, 0] [1, 1, %[[NONE]], 64]
// CHECK-DAG: %[[SUMLSE:.*]] = tensor.extract_slice %[[F]]#1[0, 0, 0] [1, 1, %[[NONE]]]
// CHECK-DAG: %[[SUMREST:.*]] = tensor.extract_slice %[[F]]#2[0, 0, 0] [1, 1, %[[NONE]]]
// CHECK-DAG: %[[ROUNDED:.*]] = linalg.generic {{.*}} ins(%[[F]]#0 : tensor<1x1x?x64xf32>)
// CHECK-DAG: %[[RESULT:.*]] = tensor.extract_slice %[[ROUNDED]][0, 0, 0, 0] [1, 1, %[[ALLROWS]], 64]
// CHECK: scf.forall.in_parallel {
// CHECK-NEXT: tensor.parallel_insert_slice %[[SUM]] into %[[OUT]][%[[I]], %[[H]], %{{.*}}, 0] [1, 1, %[[NONE]], 64]
// CHECK-NEXT: tensor.parallel_insert_slice %[[SUMLSE]] into %[[LSE]][%[[I]], %[[H]], %{{.*}}] [1, 1, %[[NONE]]]
// CHECK-NEXT: tensor.parallel_insert_slice %[[SUMREST]] into %[[REST]][%[[I]], %[[H]], %{{.*}}] [1, 1, %[[NONE]]]
// CHECK-NEXT: tensor.parallel_insert_slice %[[RESULT]] into %[[DIRECT]][%[[ITS]]#0, %[[H]], %{{.*}}, 0] [1, 1, %[[ALLROWS]], 64]
// The parts of a batch, which lie side by side, are merged one after the other, if
// there are several.
// CHECK: scf.forall (%[[AT:.*]], %[[MH:.*]], %[[MI:.*]]) in (%[[B]], 2, %{{.*}}) shared_outs(%[[SO:.*]] = %[[R]]#3)
// CHECK: %[[ROWSLICE:.*]] = tensor.extract_slice %[[SO]][%[[AT]], %[[MH]], %[[MI]], 0] [1, 1, 1, 64] [1, 1, 1, 1] : tensor<?x2x?x64xf16> to tensor<64xf16>
// CHECK: %[[ITEMS:.*]]:2 = scf.if %[[ONE]] -> (index, index) {
// CHECK-NEXT: scf.yield %c0, %[[W]]
// CHECK: %[[FROMITEM:.*]] = tensor.extract %[[LIST]]#0[%[[AT]]]
// CHECK: %[[N:.*]] = tensor.extract %[[LIST]]#1[%[[AT]]]
// CHECK: scf.yield %[[FROMITEM]], %[[N]]
// CHECK: %[[ISWHOLE:.*]] = arith.cmpi eq, %[[ITEMS]]#1, %c1 : index
// CHECK: %[[MERGED:.*]] = scf.if %[[ISWHOLE]] -> (tensor<64xf16>) {
// CHECK-NEXT: scf.yield %[[ROWSLICE]]
// CHECK-NEXT: } else {
// CHECK-DAG: %[[RESTS:.*]] = tensor.extract_slice %[[R]]#2[%[[ITEMS]]#0, %[[MH]], %[[MI]]] [%[[ITEMS]]#1, 1, 1]
// CHECK-DAG: %[[LSES:.*]] = tensor.extract_slice %[[R]]#1[%[[ITEMS]]#0, %[[MH]], %[[MI]]] [%[[ITEMS]]#1, 1, 1]
// CHECK-DAG: %[[OUTPUTS:.*]] = tensor.extract_slice %[[R]]#0[%[[ITEMS]]#0, %[[MH]], %[[MI]], 0] [%[[ITEMS]]#1, 1, 1, 64]
// Each feature adds its own numbers: no threads are known of.
// CHECK: %[[COUNT:.*]] = arith.index_cast %[[ITEMS]]#1 : index to i32
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}}iterator_types = ["parallel"]} outs(%[[ROWSLICE]] :
// CHECK: %[[FEATURE:.*]] = linalg.index 0
// CHECK: %[[AREFEW:.*]] = arith.cmpi sle, %[[COUNT]], %c4_i32 : i32
// CHECK: %[[SUMS:.*]]:4 = scf.if %[[AREFEW]] -> (f32, f32, f32, f32) {
// Up to four parts are read at once; those that there are not repeat the last, and
// count as parts without a key. Weights are relative to the largest log-sum-exp and
// what that is rounded by.
// CHECK: %[[LAST:.*]] = arith.subi %[[COUNT]], %c1_i32 : i32
// CHECK: %[[IS3:.*]] = arith.cmpi sgt, %[[COUNT]], %c3_i32 : i32
// CHECK: %[[P3:.*]] = arith.minsi %[[LAST]], %c3_i32 : i32
// CHECK: %[[AT3:.*]] = arith.index_cast %[[P3]] : i32 to index
// CHECK: %[[L3:.*]] = tensor.extract %[[LSES]][%[[AT3]]]
// CHECK: %[[OWN3:.*]] = arith.select %[[IS3]], %[[L3]], %[[MINUSINF]] : f32
// CHECK: %[[R3:.*]] = tensor.extract %[[RESTS]][%[[AT3]]]
// CHECK: %[[O3:.*]] = tensor.extract %[[OUTPUTS]][%[[AT3]], %[[FEATURE]]]
// CHECK: %[[OUT3:.*]] = arith.select %[[IS3]], %[[O3]], %[[ZERO]] : f32
// CHECK: %[[HAS:.*]] = arith.cmpf ogt, %{{.*}}, %[[LOWEST]] : f32
// CHECK: arith.select %[[HAS]], %{{.*}}, %[[LOWEST]] : f32
// CHECK: arith.select %[[HAS]], %{{.*}}, %[[ZERO]] : f32
// CHECK-COUNT-2: arith.cmpf ogt
// CHECK: %[[MORE:.*]] = arith.cmpf ogt, %[[OWN3]], %[[MAX012:.*]] : f32
// CHECK: %[[MAX:.*]] = arith.select %[[MORE]], %[[OWN3]], %[[MAX012]] : f32
// CHECK: %[[RESTOFMAX:.*]] = arith.select %[[MORE]], %[[R3]], %{{.*}} : f32
// CHECK-COUNT-3: math.exp2 %{{.*}} fastmath<afn>
// CHECK: %[[BELOW:.*]] = arith.subf %[[OWN3]], %[[MAX]] : f32
// CHECK: %[[BELOWREST:.*]] = arith.subf %[[R3]], %[[RESTOFMAX]] : f32
// CHECK: %[[EXPONENT:.*]] = arith.addf %[[BELOW]], %[[BELOWREST]] : f32
// CHECK: %[[BASE2:.*]] = arith.mulf %[[EXPONENT]], %[[LOG2E]] : f32
// CHECK: %[[W3:.*]] = math.exp2 %[[BASE2]] fastmath<afn>
// CHECK: arith.mulf %[[W3]], %[[OUT3]] : f32
// CHECK-NOT: math.exp2
// CHECK: } else {
// Sixteen of more, and then sixteen in each step, to which the sums so far are
// rescaled.
// CHECK-COUNT-16: math.exp2
// CHECK: scf.for %[[FROM:.*]] = %c16_i32 to %[[COUNT]] step %c16_i32 iter_args
// CHECK-COUNT-17: math.exp2
// CHECK-NOT: math.exp2
// CHECK: %[[ISNONE:.*]] = arith.cmpf oeq, %[[SUMS]]#2, %[[ZERO]] : f32
// CHECK: %[[QUOTIENT:.*]] = arith.divf %[[SUMS]]#3, %[[SUMS]]#2
// CHECK: %[[OUTPUT:.*]] = arith.select %[[ISNONE]], %[[ZERO]], %[[QUOTIENT]] : f32
// CHECK: arith.truncf %[[OUTPUT]] : f32 to f16
// CHECK: scf.yield %[[SUM]]
// CHECK: tensor.parallel_insert_slice %[[MERGED]] into %[[SO]][%[[AT]], %[[MH]], %[[MI]], 0]
func.func @lengths(%q: tensor<?x2x?x64xf16>, %k: tensor<?x2x?x64xf16>, %len: tensor<?xi32>) -> tensor<?x2x?x64xf16> {
  %o = attn.attention %q, %k, %k scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %x = tensor.extract %len[%b] : tensor<?xi32>
      %n = arith.index_cast %x : i32 to index
      %keep = arith.cmpi slt, %j, %n : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 64x64, order = linear, split = 16>}
    : tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16> -> tensor<?x2x?x64xf16>
  return %o : tensor<?x2x?x64xf16>
}

// -----

// As many parts of each batch, whatever the others are: the number of batches is
// static, or their masks are the same.
// CHECK-LABEL: func @each
// CHECK-NOT: tensor<?xindex>
// CHECK: scf.forall {{.*}} in (3, 2, 1, 16)
// CHECK-NOT: tensor<?xindex>
// CHECK: scf.forall {{.*}} in (%{{.*}}, 2, 1, %{{.*}})
// CHECK-NOT: tensor<?xindex>
// CHECK: return
func.func @each(%q: tensor<3x2x1x64xf16>, %k: tensor<3x2x?x64xf16>, %r: tensor<?x2x1x64xf16>, %l: tensor<?x2x?x64xf16>, %len: tensor<3xi32>) -> (tensor<3x2x1x64xf16>, tensor<?x2x1x64xf16>) {
  %o = attn.attention %q, %k, %k scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %x = tensor.extract %len[%b] : tensor<3xi32>
      %n = arith.index_cast %x : i32 to index
      %keep = arith.cmpi slt, %j, %n : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 64x64, order = linear, split = 16>}
    : tensor<3x2x1x64xf16>, tensor<3x2x?x64xf16>, tensor<3x2x?x64xf16> -> tensor<3x2x1x64xf16>
  %c0 = arith.constant 0 : index
  %p = attn.attention %r, %l, %l scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %x = tensor.extract %len[%c0] : tensor<3xi32>
      %n = arith.index_cast %x : i32 to index
      %keep = arith.cmpi slt, %j, %n : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 64x64, order = linear, split = 16>}
    : tensor<?x2x1x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16> -> tensor<?x2x1x64xf16>
  return %o, %p : tensor<3x2x1x64xf16>, tensor<?x2x1x64xf16>
}

// -----

// Parts of a size begin at its multiples, from that of the first key on, and have
// tiles between the mask's bounds only.
// CHECK-LABEL: func @fixed
// CHECK-SAME: %[[Q:[^:]*]]: tensor<1x2x?x64xf16>, %[[K:[^:]*]]: tensor<1x2x?x64xf16>)
// CHECK: %[[KEYS:.*]] = tensor.dim %[[K]], %c2
// CHECK: %[[PARTS:.*]] = arith.ceildivsi %[[KEYS]], %c128
// CHECK: %[[N:.*]] = arith.maxsi %[[PARTS]], %c1
// CHECK: scf.forall (%{{.*}}, %{{.*}}, %{{.*}}, %[[P:.*]]) = (0, 0, 0, 0) to (1, 2, %{{.*}}, %[[N]]) step (1, 1, 16, 1)
// CHECK: %[[LOWER:.*]] = arith.muli %{{.*}}, %c32
// CHECK: %[[BASE:.*]] = arith.floordivsi %[[LOWER]], %c128
// CHECK: %[[FIRST:.*]] = arith.muli %[[BASE]], %c128
// CHECK: %[[OWN:.*]] = arith.muli %[[P]], %c128
// CHECK: %[[PLACE:.*]] = arith.addi %[[FIRST]], %[[OWN]]
// CHECK: %[[BEGIN:.*]] = arith.maxsi %[[PLACE]], %[[LOWER]]
// CHECK: %[[NEXT:.*]] = arith.addi %[[PLACE]], %c128
// CHECK: %[[END:.*]] = arith.minsi %[[NEXT]], %{{.*}}
// CHECK: scf.for %{{.*}} = %[[BEGIN]] to %[[END]] step %c32
func.func @fixed(%q: tensor<1x2x?x64xf16>, %k: tensor<1x2x?x64xf16>) -> tensor<1x2x?x64xf16> {
  %o = attn.attention %q, %k, %k scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %c50 = arith.constant 50 : index
      %d = arith.subi %i, %j : index
      %near = arith.cmpi sle, %d, %c50 : index
      attn.yield %near : i1
    } {schedule = #attn.schedule<tile = 16x32, order = linear, split = fixed(128)>}
    : tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16> -> tensor<1x2x?x64xf16>
  return %o : tensor<1x2x?x64xf16>
}

// -----

// All keys in one part are not split.
// CHECK-LABEL: func @fixed_few
// CHECK: %[[R:.*]] = scf.forall {{.*}} in (2, 2, 1) shared_outs
// CHECK: tensor.parallel_insert_slice
// CHECK: return %[[R]]
func.func @fixed_few(%q: tensor<2x2x1x64xf16>, %k: tensor<2x2x100x64xf16>) -> tensor<2x2x1x64xf16> {
  %o = attn.attention %q, %k, %k scale(0.125) {schedule = #attn.schedule<tile = 16x32, order = linear, split = fixed(128)>}
    : tensor<2x2x1x64xf16>, tensor<2x2x100x64xf16>, tensor<2x2x100x64xf16> -> tensor<2x2x1x64xf16>
  return %o : tensor<2x2x1x64xf16>
}

// -----

// Batches have as many parts as their own keys need, in a list that has room for
// all; an item behind these has a part behind all keys.
// CHECK-LABEL: func @fixed_lengths
// CHECK: %[[MOST:.*]] = arith.maxsi %{{.*}}, %c1
// CHECK: %[[W:.*]] = arith.muli %[[B:.*]], %[[MOST]]
// CHECK: %[[LIST:.*]]:5 = scf.forall (%[[AT:.*]]) in (%{{.*}})
// CHECK-NOT: arith.sitofp
// CHECK: scf.forall (%[[I:.*]], %{{.*}}, %{{.*}}) = (0, 0, 0) to (%[[W]], 2, %{{.*}}) step (1, 1, 64)
// CHECK: %[[ITEM:.*]]:3 = scf.if
// CHECK: %[[IS:.*]] = arith.cmpi slt, %[[I]]
// CHECK: %[[NUMBER:.*]] = tensor.extract %[[LIST]]#4[%[[I]]]
// CHECK: arith.select %[[IS]], %[[NUMBER]], %[[MOST]]
func.func @fixed_lengths(%q: tensor<?x2x?x64xf16>, %k: tensor<?x2x?x64xf16>, %len: tensor<?xi32>) -> tensor<?x2x?x64xf16> {
  %o = attn.attention %q, %k, %k scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %x = tensor.extract %len[%b] : tensor<?xi32>
      %n = arith.index_cast %x : i32 to index
      %keep = arith.cmpi slt, %j, %n : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 64x64, order = linear, split = fixed(256)>}
    : tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16> -> tensor<?x2x?x64xf16>
  return %o : tensor<?x2x?x64xf16>
}

// -----

// Threads share the parts of a row: sixteen parts have four groups of threads, which
// have every fourth part each, so that a part's group does not depend on how many
// there are.
// CHECK-LABEL: func @groups
// CHECK-DAG: %[[LOG2E:.*]] = arith.constant 1.44269502 : f32
// CHECK-DAG: %[[LOWEST:.*]] = arith.constant -3.40282347E+38 : f32
// CHECK-DAG: %[[MINUSINF:.*]] = arith.constant 0xFF800000 : f32
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK: %[[R:.*]]:5 = scf.forall {{.*}} -> (tensor<?x2x?x128xf32>, tensor<?x2x?xf32>, tensor<?x2x?xf32>, tensor<?x2x?x128xf16>, tensor<?x2x?xf32>)
// CHECK: %[[ITEMS:.*]]:2 = scf.if %{{.*}} -> (index, index) {
// CHECK-DAG: %[[RESTS:.*]] = tensor.extract_slice %[[R]]#2[%[[ITEMS]]#0,
// CHECK-DAG: %[[LSES:.*]] = tensor.extract_slice %[[R]]#1[%[[ITEMS]]#0,
// CHECK-DAG: %[[OUTPUTS:.*]] = tensor.extract_slice %[[R]]#0[%[[ITEMS]]#0,
// CHECK: %[[COUNT:.*]] = arith.index_cast %[[ITEMS]]#1 : index to i32
// CHECK: %[[ROOM:.*]] = tensor.empty() : tensor<4x32xf32>
// CHECK: %[[G:.*]]:7 = linalg.generic {{.*}}iterator_types = ["parallel", "parallel"]} outs(%[[ROOM]], %[[ROOM]], %[[ROOM]], %[[ROOM]], %[[ROOM]], %[[ROOM]], %[[ROOM]] :
// CHECK: %[[INDEX:.*]] = linalg.index 0
// CHECK: %[[F0:.*]] = linalg.index 1
// CHECK: %[[GROUP:.*]] = arith.index_cast %[[INDEX]] : index to i32
// A thread has four features, each beside one of the next thread.
// CHECK: %[[F1:.*]] = arith.addi %[[F0]], %c32 : index
// CHECK: %[[F2:.*]] = arith.addi %[[F0]], %c64 : index
// CHECK: %[[F3:.*]] = arith.addi %[[F0]], %c96 : index
// CHECK: %[[AREFEW:.*]] = arith.cmpi sle, %[[COUNT]], %c16_i32 : i32
// CHECK: %[[S:.*]]:7 = scf.if %[[AREFEW]] -> (f32, f32, f32, f32, f32, f32, f32) {
// The last part is read again for those that there are not, and counts for nothing,
// whatever is read.
// CHECK: %[[LAST:.*]] = arith.subi %[[COUNT]], %c1_i32 : i32
// CHECK: %[[IS0:.*]] = arith.cmpi slt, %[[GROUP]], %[[COUNT]] : i32
// CHECK: %[[P0:.*]] = arith.minsi %[[GROUP]], %[[LAST]] : i32
// CHECK: %[[AT0:.*]] = arith.index_cast %[[P0]] : i32 to index
// CHECK: %[[LSE0:.*]] = tensor.extract %[[LSES]][%[[AT0]]]
// CHECK: %[[L0:.*]] = arith.select %[[IS0]], %[[LSE0]], %[[MINUSINF]] : f32
// CHECK: %[[REST0:.*]] = tensor.extract %[[RESTS]][%[[AT0]]]
// CHECK: %[[OUT00:.*]] = tensor.extract %[[OUTPUTS]][%[[AT0]], %[[F0]]]
// CHECK: %[[O00:.*]] = arith.select %[[IS0]], %[[OUT00]], %[[ZERO]] : f32
// CHECK: %[[OUT01:.*]] = tensor.extract %[[OUTPUTS]][%[[AT0]], %[[F1]]]
// CHECK: %[[O01:.*]] = arith.select %[[IS0]], %[[OUT01]], %[[ZERO]] : f32
// CHECK: %[[OUT02:.*]] = tensor.extract %[[OUTPUTS]][%[[AT0]], %[[F2]]]
// CHECK: %[[O02:.*]] = arith.select %[[IS0]], %[[OUT02]], %[[ZERO]] : f32
// CHECK: %[[OUT03:.*]] = tensor.extract %[[OUTPUTS]][%[[AT0]], %[[F3]]]
// CHECK: %[[O03:.*]] = arith.select %[[IS0]], %[[OUT03]], %[[ZERO]] : f32
// CHECK: %[[PLACE1:.*]] = arith.addi %[[GROUP]], %c4_i32 : i32
// CHECK: %[[IS1:.*]] = arith.cmpi slt, %[[PLACE1]], %[[COUNT]] : i32
// CHECK: %[[P1:.*]] = arith.minsi %[[PLACE1]], %[[LAST]] : i32
// CHECK: arith.select %[[IS1]], %{{.*}}, %[[MINUSINF]] : f32
// CHECK-COUNT-4: arith.select %[[IS1]], %{{.*}}, %[[ZERO]] : f32
// The maximum is finite, also of parts without a key.
// CHECK: %[[HAS0:.*]] = arith.cmpf ogt, %[[L0]], %[[LOWEST]] : f32
// CHECK: %[[MAX0:.*]] = arith.select %[[HAS0]], %[[L0]], %[[LOWEST]] : f32
// CHECK: %[[RESTMAX0:.*]] = arith.select %[[HAS0]], %[[REST0]], %[[ZERO]] : f32
// CHECK-NEXT: arith.cmpf ogt
// CHECK-NEXT: %[[MAX12:.*]] = arith.select
// CHECK-NEXT: %[[RESTMAX12:.*]] = arith.select
// CHECK: %[[ISMORE:.*]] = arith.cmpf ogt, %[[MAX12]], %[[MAX0]] : f32
// CHECK: %[[MAX012:.*]] = arith.select %[[ISMORE]], %[[MAX12]], %[[MAX0]] : f32
// CHECK: %[[RESTMAX012:.*]] = arith.select %[[ISMORE]], %[[RESTMAX12]], %[[RESTMAX0]] : f32
// CHECK: %[[MAX:.*]] = arith.select %{{.*}}, %{{.*}}, %[[MAX012]] : f32
// CHECK: %[[RESTMAX:.*]] = arith.select %{{.*}}, %{{.*}}, %[[RESTMAX012]] : f32
// CHECK: %[[BELOW:.*]] = arith.subf %[[L0]], %[[MAX]] : f32
// CHECK: %[[BELOWREST:.*]] = arith.subf %[[REST0]], %[[RESTMAX]] : f32
// CHECK: %[[EXPONENT:.*]] = arith.addf %[[BELOW]], %[[BELOWREST]] : f32
// CHECK: %[[BASE2:.*]] = arith.mulf %[[EXPONENT]], %[[LOG2E]] : f32
// CHECK: %[[W0:.*]] = math.exp2 %[[BASE2]] fastmath<afn> : f32
// CHECK-NEXT: arith.mulf %[[W0]], %[[O00]] : f32
// CHECK-NEXT: arith.mulf %[[W0]], %[[O01]] : f32
// CHECK-NEXT: arith.mulf %[[W0]], %[[O02]] : f32
// CHECK-NEXT: arith.mulf %[[W0]], %[[O03]] : f32
// CHECK-COUNT-3: math.exp2
// CHECK-NOT: math.exp2
// CHECK: } else {
// CHECK-COUNT-16: math.exp2
// CHECK: scf.for {{.*}} to %[[COUNT]] step %c64_i32 iter_args
// CHECK-COUNT-17: math.exp2
// CHECK-NOT: math.exp2
// CHECK: linalg.yield %[[S]]#0, %[[S]]#1, %[[S]]#2, %[[S]]#3, %[[S]]#4, %[[S]]#5, %[[S]]#6 : f32
//
// Each feature adds the sums of the groups, whose maxima are other ones.
// CHECK: %[[ALL:.*]]:2 = linalg.generic {{.*}}iterator_types = ["parallel"]} outs(%{{.*}}, %{{.*}} : tensor<128xf16>, tensor<128xf32>)
// CHECK: %[[F:.*]] = linalg.index 0
// CHECK: %[[T:.*]] = arith.remui %[[F]], %c32 : index
// CHECK: %[[G00:.*]] = tensor.extract %[[G]]#3[%c0, %[[T]]]
// CHECK: %[[G01:.*]] = tensor.extract %[[G]]#4[%c0, %[[T]]]
// CHECK: %[[IN0:.*]] = arith.cmpi ult, %[[F]], %c32 : index
// CHECK: %[[UPTO1:.*]] = arith.select %[[IN0]], %[[G00]], %[[G01]] : f32
// CHECK: %[[G02:.*]] = tensor.extract %[[G]]#5[%c0, %[[T]]]
// CHECK: %[[IN1:.*]] = arith.cmpi ult, %[[F]], %c64 : index
// CHECK: %[[UPTO2:.*]] = arith.select %[[IN1]], %[[UPTO1]], %[[G02]] : f32
// CHECK: %[[G03:.*]] = tensor.extract %[[G]]#6[%c0, %[[T]]]
// CHECK: %[[IN2:.*]] = arith.cmpi ult, %[[F]], %c96 : index
// CHECK: %[[GO0:.*]] = arith.select %[[IN2]], %[[UPTO2]], %[[G03]] : f32
// CHECK: %[[GM0:.*]] = tensor.extract %[[G]]#0[%c0, %[[T]]]
// CHECK: %[[GR0:.*]] = tensor.extract %[[G]]#1[%c0, %[[T]]]
// CHECK: %[[GS0:.*]] = tensor.extract %[[G]]#2[%c0, %[[T]]]
// CHECK: %[[GM1:.*]] = tensor.extract %[[G]]#0[%c1, %[[T]]]
// CHECK: %[[GM2:.*]] = tensor.extract %[[G]]#0[%c2, %[[T]]]
// CHECK: %[[GM3:.*]] = tensor.extract %[[G]]#0[%c3, %[[T]]]
// CHECK: %[[GR3:.*]] = tensor.extract %[[G]]#1[%c3, %[[T]]]
// CHECK: %[[GS3:.*]] = tensor.extract %[[G]]#2[%c3, %[[T]]]
// CHECK: arith.cmpf ogt, %[[GM0]], %[[LOWEST]] : f32
// CHECK: arith.cmpf ogt, %[[GM2]], %[[GM1]] : f32
// CHECK: %[[ISMORE3:.*]] = arith.cmpf ogt, %[[GM3]], %[[GMAX012:.*]] : f32
// CHECK-NEXT: %[[GMAX:.*]] = arith.select %[[ISMORE3]], %[[GM3]], %[[GMAX012]] : f32
// CHECK-NEXT: %[[GREST:.*]] = arith.select %[[ISMORE3]], %[[GR3]], %{{.*}} : f32
// CHECK-NEXT: %[[GBELOW0:.*]] = arith.subf %[[GM0]], %[[GMAX]] : f32
// CHECK-NEXT: %[[GBELOWREST0:.*]] = arith.subf %[[GR0]], %[[GREST]] : f32
// CHECK-NEXT: %[[GEXPONENT0:.*]] = arith.addf %[[GBELOW0]], %[[GBELOWREST0]] : f32
// CHECK-NEXT: %[[GBASE2:.*]] = arith.mulf %[[GEXPONENT0]], %[[LOG2E]] : f32
// CHECK-NEXT: %[[GW0:.*]] = math.exp2 %[[GBASE2]] fastmath<afn> : f32
// CHECK-NEXT: arith.mulf %[[GW0]], %[[GO0]] : f32
// CHECK-NEXT: arith.mulf %[[GW0]], %[[GS0]] : f32
// CHECK-COUNT-2: math.exp2
// CHECK: %[[GW3:.*]] = math.exp2
// CHECK-NEXT: %[[WEIGHTED:.*]] = arith.mulf %[[GW3]], %{{.*}} : f32
// CHECK-NEXT: %[[OUTPUT:.*]] = arith.addf %{{.*}}, %[[WEIGHTED]] : f32
// CHECK-NEXT: %[[SHARE:.*]] = arith.mulf %[[GW3]], %[[GS3]] : f32
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %{{.*}}, %[[SHARE]] : f32
// CHECK-NEXT: %[[ISNONE:.*]] = arith.cmpf oeq, %[[SUM]], %[[ZERO]] : f32
// CHECK-NEXT: %[[QUOTIENT:.*]] = arith.divf %[[OUTPUT]], %[[SUM]] : f32
// CHECK-NEXT: %[[RESULT:.*]] = arith.select %[[ISNONE]], %[[ZERO]], %[[QUOTIENT]] : f32
// CHECK-NEXT: %[[ROUNDED:.*]] = arith.truncf %[[RESULT]] : f32 to f16
// CHECK-NEXT: %[[LOG:.*]] = math.log %[[SUM]] : f32
// CHECK-NEXT: %[[REST:.*]] = arith.addf %[[GREST]], %[[LOG]] : f32
// CHECK-NEXT: %[[SOME:.*]] = arith.addf %[[GMAX]], %[[REST]] : f32
// CHECK-NEXT: %[[LSE:.*]] = arith.select %[[ISNONE]], %[[MINUSINF]], %[[SOME]] : f32
// CHECK-NEXT: linalg.yield %[[ROUNDED]], %[[LSE]] : f16, f32
// CHECK: tensor.extract %[[ALL]]#1[%c0]
func.func @groups(%q: tensor<?x2x?x128xf16>, %k: tensor<?x2x?x128xf16>, %len: tensor<?xi32>) -> (tensor<?x2x?x128xf16>, tensor<?x2x?xf32>) {
  %o, %l = attn.attention %q, %k, %k scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %x = tensor.extract %len[%b] : tensor<?xi32>
      %n = arith.index_cast %x : i32 to index
      %keep = arith.cmpi slt, %j, %n : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, split = 16>}
    : tensor<?x2x?x128xf16>, tensor<?x2x?x128xf16>, tensor<?x2x?x128xf16> -> tensor<?x2x?x128xf16>, tensor<?x2x?xf32>
  return %o, %l : tensor<?x2x?x128xf16>, tensor<?x2x?xf32>
}

// -----

// Sixty-four parts of as many features have eight groups, whose threads read eight
// parts at once, so as not to need more registers.
// CHECK-LABEL: func @many_groups
// CHECK: %[[G:.*]]:7 = linalg.generic {{.*}}iterator_types = ["parallel", "parallel"]} outs({{.*}} : tensor<8x32xf32>, tensor<8x32xf32>, tensor<8x32xf32>, tensor<8x32xf32>, tensor<8x32xf32>, tensor<8x32xf32>, tensor<8x32xf32>)
// CHECK: arith.cmpi sle, %{{.*}}, %c32_i32 : i32
// CHECK: scf.if
// CHECK-COUNT-4: math.exp2
// CHECK-NOT: math.exp2
// CHECK: } else {
// CHECK-COUNT-8: math.exp2
// CHECK: scf.for {{.*}} step %c64_i32 iter_args
// CHECK-COUNT-9: math.exp2
// CHECK-NOT: math.exp2
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel"]} outs(%{{.*}} : tensor<128xf16>)
// CHECK: tensor.extract %[[G]]#0[%c7, %{{.*}}]
// CHECK-COUNT-8: math.exp2
// CHECK-NOT: math.exp2
func.func @many_groups(%q: tensor<?x2x?x128xf16>, %k: tensor<?x2x?x128xf16>, %len: tensor<?xi32>) -> tensor<?x2x?x128xf16> {
  %o = attn.attention %q, %k, %k scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %x = tensor.extract %len[%b] : tensor<?xi32>
      %n = arith.index_cast %x : i32 to index
      %keep = arith.cmpi slt, %j, %n : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, split = 64>}
    : tensor<?x2x?x128xf16>, tensor<?x2x?x128xf16>, tensor<?x2x?x128xf16> -> tensor<?x2x?x128xf16>
  return %o : tensor<?x2x?x128xf16>
}

// -----

// A thread has two of six features. Of parts of a size, whose number is not known,
// there are groups as for sixteen.
// CHECK-LABEL: func @fixed_groups
// CHECK: %[[G:.*]]:5 = linalg.generic {{.*}}iterator_types = ["parallel", "parallel"]} outs({{.*}} : tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>)
// CHECK: %[[F0:.*]] = linalg.index 1
// CHECK: %[[F1:.*]] = arith.addi %[[F0]], %c3 : index
// CHECK: tensor.extract %{{.*}}[%{{.*}}, %[[F0]]] : tensor<?x6xf32>
// CHECK: tensor.extract %{{.*}}[%{{.*}}, %[[F1]]] : tensor<?x6xf32>
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel"]} outs(%{{.*}} : tensor<6xf16>)
// CHECK: %[[F:.*]] = linalg.index 0
// CHECK: %[[T:.*]] = arith.remui %[[F]], %c3 : index
// CHECK: %[[G0:.*]] = tensor.extract %[[G]]#3[%c0, %[[T]]]
// CHECK: %[[G1:.*]] = tensor.extract %[[G]]#4[%c0, %[[T]]]
// CHECK: %[[IN0:.*]] = arith.cmpi ult, %[[F]], %c3 : index
// CHECK: arith.select %[[IN0]], %[[G0]], %[[G1]] : f32
func.func @fixed_groups(%q: tensor<?x2x?x64xf16>, %k: tensor<?x2x?x64xf16>, %v: tensor<?x2x?x6xf16>, %len: tensor<?xi32>) -> tensor<?x2x?x6xf16> {
  %o = attn.attention %q, %k, %v scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %x = tensor.extract %len[%b] : tensor<?xi32>
      %n = arith.index_cast %x : i32 to index
      %keep = arith.cmpi slt, %j, %n : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, split = fixed(256)>}
    : tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x6xf16> -> tensor<?x2x?x6xf16>
  return %o : tensor<?x2x?x6xf16>
}

// -----

// A log-sum-exp of f64 is the sum of what a part leaves, where it is the only one.
// Of seven features, a thread has one; for three parts there are as many groups as a warp
// has room for.
// CHECK-LABEL: func @wide_lse
// CHECK: %[[R:.*]]:5 = scf.forall {{.*}}, %[[DIRECT:[^ ]*]] = %{{[^ ]*}}) -> (tensor<?x2x?x7xf32>, tensor<?x2x?xf32>, tensor<?x2x?xf32>, tensor<?x2x?x7xf32>, tensor<?x2x?xf64>)
// CHECK: %[[ONLY:.*]] = arith.cmpi eq, %{{.*}}, %c1 : index
// CHECK: %[[NONE:.*]] = arith.select %[[ONLY]], %c0, %[[ROWS:.*]] : index
// CHECK: %[[ALLROWS:.*]] = arith.select %[[ONLY]], %[[ROWS]], %c0 : index
// CHECK: %[[F:.*]]:3 = attn.finalize {{.*}} -> tensor<1x1x?x7xf32>, tensor<1x1x?xf32>, tensor<1x1x?xf32>
// CHECK: %[[WIDE:.*]] = linalg.generic {{.*}} ins(%[[F]]#1, %[[F]]#2 : tensor<1x1x?xf32>, tensor<1x1x?xf32>) outs(%{{.*}} : tensor<1x1x?xf64>) {
// CHECK-NEXT: ^bb0(%[[LSE:.*]]: f32, %[[REST:.*]]: f32, %{{.*}}: f64):
// CHECK-NEXT: %[[LSE64:.*]] = arith.extf %[[LSE]] : f32 to f64
// CHECK-NEXT: %[[REST64:.*]] = arith.extf %[[REST]] : f32 to f64
// CHECK-NEXT: %[[BOTH:.*]] = arith.addf %[[LSE64]], %[[REST64]] : f64
// CHECK-NEXT: linalg.yield %[[BOTH]] : f64
// CHECK: %[[RESULT:.*]] = tensor.extract_slice %[[WIDE]][0, 0, 0] [1, 1, %[[ALLROWS]]]
// CHECK: tensor.parallel_insert_slice %[[RESULT]] into %[[DIRECT]][
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel"]} outs({{.*}} : tensor<4x7xf32>, tensor<4x7xf32>, tensor<4x7xf32>, tensor<4x7xf32>)
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel"]} outs(%{{.*}}, %{{.*}} : tensor<7xf32>, tensor<7xf64>)
// CHECK-NOT: arith.truncf
// CHECK: %[[LOG:.*]] = math.log %{{.*}} : f32
// CHECK-NEXT: %[[MORE:.*]] = arith.addf %{{.*}}, %[[LOG]] : f32
// CHECK-NEXT: %[[MAX64:.*]] = arith.extf %{{.*}} : f32 to f64
// CHECK-NEXT: %[[MORE64:.*]] = arith.extf %[[MORE]] : f32 to f64
// CHECK-NEXT: %[[SOME:.*]] = arith.addf %[[MAX64]], %[[MORE64]] : f64
// CHECK: arith.select %{{.*}}, %{{.*}}, %[[SOME]] : f64
func.func @wide_lse(%q: tensor<?x2x?x64xf32>, %k: tensor<?x2x?x64xf32>, %v: tensor<?x2x?x7xf32>, %len: tensor<?xi32>) -> (tensor<?x2x?x7xf32>, tensor<?x2x?xf64>) {
  %o, %l = attn.attention %q, %k, %v scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %x = tensor.extract %len[%b] : tensor<?xi32>
      %n = arith.index_cast %x : i32 to index
      %keep = arith.cmpi slt, %j, %n : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 2, split = 3>}
    : tensor<?x2x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?x2x?x7xf32> -> tensor<?x2x?x7xf32>, tensor<?x2x?xf64>
  return %o, %l : tensor<?x2x?x7xf32>, tensor<?x2x?xf64>
}
