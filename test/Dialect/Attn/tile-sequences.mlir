// RUN: fovea-opt %s --attn-online-softmax --attn-tile --canonicalize --cse --split-input-file --mlir-print-local-scope | FileCheck %s

// Tiles of queries begin where a query sees none of the keys of the one in front, here
// as `first` and `end` say: the last such query of each block of 64, or -1. A block has
// two tiles, one that goes on at a multiple of 64 from the last query that began a
// sequence in front of it, and one that begins a sequence.

// CHECK-LABEL: func @sequences
// CHECK-SAME:    tensor<1x4x?x16xf16>, %[[FIRST:[^ ]*]]: tensor<?xi32>, %[[END:[^ ]*]]: tensor<?xi32>)
// CHECK:       %[[BLOCKS:.*]] = arith.maxsi %{{.*}}, %c1
// CHECK:       %[[BEGINS:.*]] = scf.forall (%[[B:.*]]) in (%[[BLOCKS]])
// CHECK:         scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %c1 iter_args(%[[LAST:.*]] = %c-1)
// CHECK:           tensor.extract %[[FIRST]][%[[I]]]
// CHECK:           tensor.extract %[[END]][%[[I]]]
// CHECK:           tensor.extract %[[FIRST]][%[[BEFORE:.*]]] :
// CHECK:           tensor.extract %[[END]][%[[BEFORE]]]
// CHECK:           arith.select %{{.*}}, %[[I]], %c-1
// CHECK:           arith.maxsi %[[LAST]]
// CHECK:       %[[COUNT:.*]] = arith.muli %[[BLOCKS]], %c2
// CHECK:       %[[TILES:.*]]:2 = scf.forall (%[[T:.*]]) in (%[[COUNT]])
// CHECK:         tensor.extract %[[BEGINS]]
// CHECK:         scf.for %{{.*}} = %c0 to %{{.*}} iter_args(%{{.*}} = %c0)
// CHECK:           tensor.extract %[[BEGINS]]
// The extremes of what the mask reads in each tile; in an empty one of a query.
// CHECK:       %[[FIRSTS:.*]]:2 = scf.forall (%[[T:.*]]) in (%[[COUNT]])
// CHECK:         tensor.extract %[[TILES]]#0[%[[T]]]
// CHECK:         tensor.extract %[[TILES]]#1[%[[T]]]
// CHECK:         arith.maxsi
// CHECK:         scf.for
// CHECK:       %[[ENDS:.*]]:2 = scf.forall (%[[T:.*]]) in (%[[COUNT]])
// CHECK:       scf.forall (%{{.*}}, %[[T:.*]]) in (4, %[[COUNT]])
// CHECK-NEXT:    %[[R32:.*]] = tensor.extract %[[TILES]]#0[%[[T]]]
// CHECK:         %[[R:.*]] = arith.index_castui %[[R32]]
// CHECK:         %[[ROWS:.*]] = affine.min
// CHECK:         tensor.extract_slice %{{.*}}[0, %{{.*}}, %[[R]], 0] [1, 1, %[[ROWS]], 16]
// CHECK:         %[[LOWEST:.*]] = tensor.extract %[[FIRSTS]]#0[%[[T]]]
// CHECK:         tensor.extract %[[FIRSTS]]#1[%[[T]]]
// CHECK:         %[[BEGIN:.*]] = arith.maxsi %[[LOWEST]], %c0
// Tiles of keys begin there, not at a multiple of 32.
// CHECK:         scf.for %[[J:.*]] = %[[BEGIN]] to %{{.*}} step %c32
// CHECK:           tensor.extract_slice %{{.*}}[0, %{{.*}}, %[[J]], 0]
// CHECK:         tensor.parallel_insert_slice %{{.*}} into %{{.*}}[0, %{{.*}}, %[[R]], 0] [1, 1, %[[ROWS]], 16]
func.func @sequences(%q: tensor<1x4x?x16xf16>, %first: tensor<?xi32>, %end: tensor<?xi32>) -> tensor<1x4x?x16xf16> {
  %o = attn.attention %q, %q, %q scale(0.25)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %x = tensor.extract %first[%i] : tensor<?xi32>
      %m = arith.index_cast %x : i32 to index
      %e = tensor.extract %end[%i] : tensor<?xi32>
      %n = arith.index_cast %e : i32 to index
      %from = arith.cmpi sge, %j, %m : index
      %to = arith.cmpi slt, %j, %n : index
      %keep = arith.andi %from, %to : i1
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 64x32, order = longest_first, warps = 4, stages = 2, queries = sequences, blocks = dealt>}
    : tensor<1x4x?x16xf16>, tensor<1x4x?x16xf16>, tensor<1x4x?x16xf16> -> tensor<1x4x?x16xf16>
  return %o : tensor<1x4x?x16xf16>
}

// -----

// Where a mask reads tensors at the batch, or at the key, or none, tiles are at multiples
// of their size.

// CHECK-LABEL: func @batches
// CHECK-NOT:   iter_args(%{{.*}} = %c-1)
// CHECK:       scf.forall (%{{.*}}, %{{.*}}, %{{.*}}) = (0, 0, 0) to (2, 4, %{{.*}}) step (1, 1, 64)
func.func @batches(%q: tensor<2x4x?x16xf16>, %end: tensor<2x?xi32>) -> tensor<2x4x?x16xf16> {
  %o = attn.attention %q, %q, %q scale(0.25)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %e = tensor.extract %end[%b, %i] : tensor<2x?xi32>
      %n = arith.index_cast %e : i32 to index
      %keep = arith.cmpi slt, %j, %n : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 64x32, order = longest_first, warps = 4, stages = 2, queries = sequences, blocks = dealt>}
    : tensor<2x4x?x16xf16>, tensor<2x4x?x16xf16>, tensor<2x4x?x16xf16> -> tensor<2x4x?x16xf16>
  return %o : tensor<2x4x?x16xf16>
}

// -----

// CHECK-LABEL: func @documents
// CHECK-NOT:   iter_args(%{{.*}} = %c-1)
// CHECK:       scf.forall (%{{.*}}, %{{.*}}) = (0, 0) to (4, 256) step (1, 64)
func.func @documents(%q: tensor<1x4x256x16xf16>, %ids: tensor<256xi32>) -> tensor<1x4x256x16xf16> {
  %o = attn.attention %q, %q, %q scale(0.25)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %p = tensor.extract %ids[%i] : tensor<256xi32>
      %r = tensor.extract %ids[%j] : tensor<256xi32>
      %keep = arith.cmpi eq, %p, %r : i32
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 64x32, order = longest_first, warps = 4, stages = 2, queries = sequences, blocks = dealt>}
    : tensor<1x4x256x16xf16>, tensor<1x4x256x16xf16>, tensor<1x4x256x16xf16> -> tensor<1x4x256x16xf16>
  return %o : tensor<1x4x256x16xf16>
}

// -----

// CHECK-LABEL: func @causal
// CHECK:       scf.forall (%{{.*}}, %{{.*}}) = (0, 0) to (4, 256) step (1, 64)
func.func @causal(%q: tensor<1x4x256x16xf16>) -> tensor<1x4x256x16xf16> {
  %o = attn.attention %q, %q, %q scale(0.25)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %keep = arith.cmpi sge, %i, %j : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 64x32, order = longest_first, warps = 4, stages = 2, queries = sequences, blocks = dealt>}
    : tensor<1x4x256x16xf16>, tensor<1x4x256x16xf16>, tensor<1x4x256x16xf16> -> tensor<1x4x256x16xf16>
  return %o : tensor<1x4x256x16xf16>
}
