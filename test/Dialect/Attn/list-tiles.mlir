// RUN: fovea-opt %s --attn-online-softmax --attn-tile --attn-list-tiles --canonicalize --cse --split-input-file --mlir-print-local-scope | FileCheck %s

// Lists are for batches and tiles of queries, which the test depends on, and not
// for heads. The accepted tiles of each chunk of 32 are counted, and a tile adds the
// counts of those in front of its own chunk to the accepted ones before it there.

// CHECK-LABEL: func @documents
// CHECK:       %[[ROWS:.*]]:2 = scf.forall
// CHECK:       %[[KEYS:.*]]:2 = scf.forall
// CHECK:       %[[TILES:.*]] = arith.ceildivsi %[[SIZE:.*]], %c16
// CHECK:       %[[SOME:.*]] = arith.ceildivsi %[[TILES]], %c32
// CHECK:       %[[CHUNKS:.*]] = arith.maxsi %[[SOME]], %c1
// CHECK:       %[[ROOM:.*]] = arith.muli %[[CHUNKS]], %c32
// CHECK:       %[[SUMS:.*]] = scf.forall (%[[B:.*]], %[[T:.*]], %[[C:.*]]) in (2, %{{.*}}, %[[CHUNKS]]) shared_outs(%[[OUT:.*]] = %{{.*}}) -> (tensor<2x?x?xi32>) {
// CHECK-DAG:     %[[FIRST:.*]] = arith.muli %[[C]], %c32
// CHECK-DAG:     %[[OTHERS:.*]] = arith.subi %[[TILES]], %[[FIRST]]
// CHECK:         %[[END:.*]] = affine.min affine_map<(d0) -> (32, d0)>(%[[OTHERS]])
// CHECK:         %[[SUM:.*]] = scf.for %[[E:.*]] = %c0 to %[[END]] step %c1 iter_args(%[[SO_FAR:.*]] = %c0_i32)
// CHECK:           %[[NUMBER:.*]] = arith.addi %[[FIRST]], %[[E]]
// CHECK:           arith.muli %[[NUMBER]], %c16
// CHECK:           %[[PASSES:.*]] = arith.andi
// CHECK:           %[[ONE:.*]] = arith.extui %[[PASSES]] : i1 to i32
// CHECK:           %[[NEXT:.*]] = arith.addi %[[SO_FAR]], %[[ONE]]
// CHECK:           scf.yield %[[NEXT]]
// CHECK:         tensor.insert %[[SUM]] into
// CHECK:         tensor.parallel_insert_slice %{{.*}} into %[[OUT]][%[[B]], %[[T]], %[[C]]]
// CHECK:       %[[LISTS:.*]]:2 = scf.forall (%[[B:.*]], %[[T:.*]], %[[C:.*]], %[[O:.*]]) in (2, %{{.*}}, %[[CHUNKS]], 32) shared_outs(%[[LIST:.*]] = %{{.*}}, %[[COUNTS:.*]] = %{{.*}}) -> (tensor<2x?x?xi32>, tensor<2x?x?xi32>) {
// CHECK-DAG:     tensor.extract %[[ROWS]]#0[%[[B]], %{{.*}}]
// CHECK-DAG:     tensor.extract %[[ROWS]]#1[%[[B]], %{{.*}}]
// CHECK-DAG:     %[[FIRST:.*]] = arith.muli %[[C]], %c32
// CHECK-DAG:     %[[OTHERS:.*]] = arith.subi %[[TILES]], %[[FIRST]]
// CHECK:         %[[END:.*]] = affine.min affine_map<(d0, d1) -> (d1, d0)>(%[[OTHERS]], %[[O]])
// CHECK:         %[[INSIDE:.*]] = scf.for %{{.*}} = %c0 to %[[END]] step %c1
// CHECK:         %[[BEFORE:.*]] = scf.for %[[F:.*]] = %c0 to %[[C]] step %c1
// CHECK:           tensor.extract %[[SUMS]][%[[B]], %[[T]], %[[F]]]
// CHECK:         %[[RANK32:.*]] = arith.addi %[[INSIDE]], %[[BEFORE]]
// CHECK:         %[[RANK:.*]] = arith.index_castui %[[RANK32]]
// CHECK:         %[[N:.*]] = arith.addi %[[FIRST]], %[[O]]
// CHECK:         %[[PLACE:.*]] = arith.muli %[[N]], %c16
// CHECK:         %[[EXISTS:.*]] = arith.cmpi slt, %[[PLACE]], %[[SIZE]]
// CHECK:         %[[TESTS:.*]]:2 = scf.if %[[EXISTS]] -> (i1, i1)
// CHECK:         } else {
// CHECK:           scf.yield %false, %false
// CHECK:         %[[REJECTED:.*]] = arith.subi %[[N]], %[[RANK]]
// CHECK:         %[[FROM_END:.*]] = arith.addi %[[REJECTED]], %c1
// CHECK:         %[[LAST:.*]] = arith.subi %[[ROOM]], %[[FROM_END]]
// CHECK:         %[[SLOT:.*]] = arith.select %[[TESTS]]#0, %[[RANK]], %[[LAST]]
// CHECK:         %[[AFTER:.*]] = arith.addi %[[RANK]], %c1
// CHECK:         %[[COUNT:.*]] = arith.select %[[TESTS]]#0, %[[AFTER]], %[[RANK]]
// CHECK:         %[[SHIFTED:.*]] = arith.muli %[[N]], %c2
// CHECK:         %[[BIT:.*]] = arith.select %[[TESTS]]#1, %c1, %c0
// CHECK:         %[[ENTRY:.*]] = arith.addi %[[SHIFTED]], %[[BIT]]
// CHECK:         %[[ENTRY32:.*]] = arith.index_castui %[[ENTRY]] : index to i32
// CHECK:         tensor.insert %[[ENTRY32]] into
// CHECK:         %[[COUNT32:.*]] = arith.index_castui %[[COUNT]] : index to i32
// CHECK:         tensor.insert %[[COUNT32]] into
// CHECK:         tensor.parallel_insert_slice %{{.*}} into %[[LIST]][%[[B]], %[[T]], %[[SLOT]]]
// CHECK:         tensor.parallel_insert_slice %{{.*}} into %[[COUNTS]][%[[B]], %[[T]], %[[N]]]
// CHECK:       scf.forall (%[[MB:.*]], %[[MH:.*]], %[[MI:.*]]) = (0, 0, 0)
// CHECK-DAG:     %[[MT:.*]] = arith.divsi %[[MI]], %c8
// CHECK-DAG:     %[[TOTAL:.*]] = arith.addi %[[ROOM]], %c-1
// CHECK:         %[[END32:.*]] = tensor.extract %[[LISTS]]#1[%[[MB]], %[[MT]], %[[TOTAL]]]
// CHECK:         %[[END:.*]] = arith.index_castui %[[END32]] : i32 to index
// CHECK:         scf.for %[[K:.*]] = %c0 to %[[END]] step %c1{{ }}
// CHECK-NOT:       scf.if
// CHECK:           %[[E32:.*]] = tensor.extract %[[LISTS]]#0[%[[MB]], %[[MT]], %[[K]]]
// CHECK:           %[[E:.*]] = arith.index_castui %[[E32]] : i32 to index
// CHECK:           %[[UNITS:.*]] = arith.shrui %[[E]], %c1
// CHECK:           %[[J:.*]] = arith.muli %[[UNITS]], %c16
// CHECK:           %[[SET:.*]] = arith.andi %[[E]], %c1
// CHECK:           tensor.extract_slice %arg0[%[[MB]], %[[MH]], %[[J]], 0]
// CHECK:           %[[PARTIAL:.*]] = arith.cmpi ne, %[[SET]], %c1
// CHECK:           attn.online_attention {{.*}} at[%[[MB]], %[[MH]], %[[MI]], %[[J]]] partial(%[[PARTIAL]])
func.func @documents(%q: tensor<2x4x?x16xf32>, %ids: tensor<2x?xi32>) -> tensor<2x4x?x16xf32> {
  %o = attn.attention %q, %q, %q scale(0.25)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %p = tensor.extract %ids[%b, %i] : tensor<2x?xi32>
      %r = tensor.extract %ids[%b, %j] : tensor<2x?xi32>
      %keep = arith.cmpi eq, %p, %r : i32
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 8x16, order = linear>}
    : tensor<2x4x?x16xf32>, tensor<2x4x?x16xf32>, tensor<2x4x?x16xf32> -> tensor<2x4x?x16xf32>
  return %o : tensor<2x4x?x16xf32>
}

// -----

// A test without tables, of a window and keys at the beginning. What an accepted
// tile computes from its place is computed from the list's, but whether the mask
// keeps all of it is in the list.

// CHECK-LABEL: func @first_keys
// CHECK:       %[[LISTS:.*]]:2 = scf.forall (%{{.*}}, %{{.*}}) in (%{{.*}}, %{{.*}}) shared_outs({{.*}}) -> (tensor<?x?xi32>, tensor<?x?xi32>) {
// CHECK:       scf.forall (%{{.*}}, %{{.*}}, %[[I:.*]]) = (0, 0, 0)
// CHECK:         scf.for %[[K:.*]] = %c0 to %{{.*}} step %c1{{ }}
// CHECK-NOT:       scf.if
// CHECK:           %[[E32:.*]] = tensor.extract %[[LISTS]]#0[%{{.*}}, %[[K]]]
// CHECK:           %[[E:.*]] = arith.index_castui %[[E32]] : i32 to index
// CHECK:           %[[UNITS:.*]] = arith.shrui %[[E]], %c1
// CHECK:           %[[J:.*]] = arith.muli %[[UNITS]], %c16
// CHECK:           %[[SET:.*]] = arith.andi %[[E]], %c1
// CHECK:           affine.min {{.*}}(%[[J]])
// CHECK:           %[[PARTIAL:.*]] = arith.cmpi ne, %[[SET]], %c1
// CHECK:           attn.online_attention {{.*}} partial(%[[PARTIAL]])
func.func @first_keys(%q: tensor<2x4x?x16xf32>) -> tensor<2x4x?x16xf32> {
  %o = attn.attention %q, %q, %q scale(0.25)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %d = arith.subi %i, %j : index
      %c64 = arith.constant 64 : index
      %c4 = arith.constant 4 : index
      %near = arith.cmpi slt, %d, %c64 : index
      %first = arith.cmpi slt, %j, %c4 : index
      %seen = arith.cmpi sge, %i, %j : index
      %any = arith.ori %near, %first : i1
      %keep = arith.andi %any, %seen : i1
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 8x16, order = linear>}
    : tensor<2x4x?x16xf32>, tensor<2x4x?x16xf32>, tensor<2x4x?x16xf32> -> tensor<2x4x?x16xf32>
  return %o : tensor<2x4x?x16xf32>
}

// -----

// Without a test the loop stays.

// CHECK-LABEL: func @causal
// CHECK-COUNT-1: scf.forall
// CHECK:         scf.for %{{.*}} = %c0 to %{{.*}} step %c16{{ }}
// CHECK:           attn.online_attention
// CHECK-NOT:   tensor.extract %
func.func @causal(%q: tensor<2x4x?x16xf32>) -> tensor<2x4x?x16xf32> {
  %o = attn.attention %q, %q, %q scale(0.25)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %keep = arith.cmpi sge, %i, %j : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 8x16, order = linear>}
    : tensor<2x4x?x16xf32>, tensor<2x4x?x16xf32>, tensor<2x4x?x16xf32> -> tensor<2x4x?x16xf32>
  return %o : tensor<2x4x?x16xf32>
}

// -----

// Left alone: in clusters, of which a block may have no tile of queries.

// CHECK-LABEL: func @clusters
// CHECK:       scf.forall (
// CHECK-NOT:   scf.forall (
// CHECK:         scf.for %
// CHECK:           scf.if
// CHECK-NOT:   scf.forall (
// CHECK:             attn.online_attention
// CHECK-NOT:   scf.forall (
// CHECK:       return
func.func @clusters(%q: tensor<1x2x?x128xbf16>) -> tensor<1x2x?x128xbf16> {
  %o = attn.attention %q, %q, %q scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %c7 = arith.constant 7 : index
    %odd = arith.andi %j, %c7 : index
    %keep = arith.cmpi sge, %odd, %i : index
    attn.yield %keep : i1
  } {schedule = #attn.schedule<tile = 64x16, order = linear, warps = 4, stages = 2, cluster = 2>}
    : tensor<1x2x?x128xbf16>, tensor<1x2x?x128xbf16>, tensor<1x2x?x128xbf16> -> tensor<1x2x?x128xbf16>
  return %o : tensor<1x2x?x128xbf16>
}
