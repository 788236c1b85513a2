// RUN: fovea-opt %s --attn-online-softmax --attn-tile --canonicalize --cse --split-input-file --mlir-print-local-scope | FileCheck %s

// Tiles of queries begin where a query sees none of the keys of the one in front, here
// as `first` and `end` say: the last such query of each block of 64, or -1. A block has
// two tiles, one that goes on at a multiple of 64 from the last query that began a
// sequence in front of it, and one that begins a sequence. These numbers have 32 bits.

// CHECK-LABEL: func @sequences
// CHECK-SAME:    tensor<1x4x?x16xf16>, %[[FIRST:[^ ]*]]: tensor<?xi32>, %[[END:[^ ]*]]: tensor<?xi32>)
// CHECK:       %[[KEYS:.*]] = tensor.dim %{{.*}}, %c2
// CHECK:       %[[BLOCKS:.*]] = arith.maxsi %{{.*}}, %c1
// CHECK:       %[[BEGINS:.*]] = scf.forall (%[[B:.*]]) in (%[[BLOCKS]]) {{.*}} -> (tensor<?xi32>)
// CHECK:         %[[STEPS:.*]] = arith.select %{{.*}}, %c64, %c0
// CHECK:         scf.for %[[O:.*]] = %c0 to %[[STEPS]] step %c1 iter_args(%[[LAST:.*]] = %c-1_i32)
// CHECK:           %[[ROW:.*]] = arith.addi %{{.*}}, %[[O]]
// CHECK:           %[[I:.*]] = arith.minsi %[[ROW]], %
// CHECK:           tensor.extract %[[FIRST]][%[[I]]]
// CHECK:           tensor.extract %[[END]][%[[I]]]
// CHECK:           tensor.extract %[[FIRST]][%[[BEFORE:.*]]] :
// CHECK:           tensor.extract %[[END]][%[[BEFORE]]]
// CHECK:           %[[OWN:.*]] = arith.select %{{.*}}, %[[I]], %c-1
// CHECK:           %[[OWN32:.*]] = arith.index_cast %[[OWN]] : index to i32
// CHECK:           arith.maxsi %[[LAST]], %[[OWN32]] : i32
// CHECK:       %[[COUNT:.*]] = arith.muli %[[BLOCKS]], %c2
// CHECK:       %[[TILES:.*]]:2 = scf.forall (%[[T:.*]]) in (%[[COUNT]])
// CHECK:         tensor.extract %[[BEGINS]]
// CHECK:         scf.for %[[P:.*]] = %c0 to %{{.*}} iter_args(%[[LATEST:.*]] = %c0_i32)
// CHECK:           %[[OTHER:.*]] = tensor.extract %[[BEGINS]][%[[P]]]
// CHECK-NEXT:      arith.maxsi %[[LATEST]], %[[OTHER]] : i32
// The extremes of what the mask reads in each tile, by one loop; in an empty one of a
// query.
// CHECK:       %[[EXTREMES:.*]]:4 = scf.forall (%[[T:.*]]) in (%[[COUNT]]) {{.*}} -> (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>)
// CHECK:         tensor.extract %[[TILES]]#0[%[[T]]]
// CHECK:         tensor.extract %[[TILES]]#1[%[[T]]]
// CHECK:         %[[STEPS:.*]] = arith.select %{{.*}}, %c64, %c0
// CHECK:         scf.for %[[O:.*]] = %c0 to %[[STEPS]] step %c1
// CHECK:           arith.addi %{{.*}}, %[[O]]
// CHECK:           %[[I:.*]] = arith.minsi
// CHECK:           tensor.extract %[[FIRST]][%[[I]]]
// CHECK:           tensor.extract %[[END]][%[[I]]]
// CHECK:       scf.forall (%{{.*}}, %[[T:.*]]) in (4, %[[COUNT]])
// CHECK-NEXT:    %[[R32:.*]] = tensor.extract %[[TILES]]#0[%[[T]]]
// CHECK:         %[[R:.*]] = arith.index_castui %[[R32]]
// CHECK:         %[[ROWS:.*]] = affine.min
// CHECK:         tensor.extract_slice %{{.*}}[0, %{{.*}}, %[[R]], 0] [1, 1, %[[ROWS]], 16]
// CHECK:         %[[LOWEST32:.*]] = tensor.extract %[[EXTREMES]]#0[%[[T]]]
// CHECK:         %[[LOWEST:.*]] = arith.index_cast %[[LOWEST32]] : i32 to index
// CHECK:         tensor.extract %[[EXTREMES]]#1[%[[T]]]
// CHECK:         %[[NATURAL:.*]] = arith.maxsi %[[LOWEST]], %c0
// Tiles of keys begin there, not at a multiple of 32, if there is such a key.
// CHECK:         %[[BEGIN:.*]] = arith.minsi %[[NATURAL]], %[[KEYS]] : index
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

// A tile of 128 queries has two parts, whose own keys end sooner: a loop fills tables for
// both, and each pass knows their ends; those of a part without a query are none.

// CHECK-LABEL: func @parts
// CHECK:       %[[TILES:.*]]:2 = scf.forall
// CHECK:       %[[EXTREMES:.*]]:8 = scf.forall (%[[T:.*]]) in (%{{.*}})
// CHECK:         scf.for %[[O:.*]] = %c0 to %{{.*}} step %c1
// CHECK:           %[[OWN:.*]] = arith.addi %{{.*}}, %[[O]]
// CHECK:           %[[I:.*]] = arith.minsi %[[OWN]], %[[END:.*]] :
// CHECK:           %[[LATER:.*]] = arith.addi %{{.*}}, %c64
// CHECK:           %[[SECOND:.*]] = arith.addi %[[LATER]], %[[O]]
// CHECK:           %[[J:.*]] = arith.minsi %[[SECOND]], %[[END]]
// CHECK:           tensor.extract %{{.*}}[%[[I]]]
// CHECK:           tensor.extract %{{.*}}[%[[J]]]
// CHECK:       scf.forall (%{{.*}}, %[[T:.*]]) in (4, %{{.*}})
// CHECK:         %[[A32:.*]] = tensor.extract %[[EXTREMES]]#5[%[[T]]]
// CHECK:         %[[A:.*]] = arith.index_cast %[[A32]] : i32 to index
// CHECK:         %[[B32:.*]] = tensor.extract %[[EXTREMES]]#7[%[[T]]]
// CHECK:         %[[B:.*]] = arith.index_cast %[[B32]] : i32 to index
// CHECK:         arith.maxsi %[[A]], %[[B]]
// CHECK:         %[[IS0:.*]] = arith.cmpi sle, %[[R:.*]], %[[LAST:.*]] :
// CHECK:         arith.minsi %[[A]], %
// CHECK:         %[[E0:.*]] = arith.select %[[IS0]], %{{.*}}, %c0
// CHECK:         %[[R1:.*]] = arith.addi %[[R]], %c64
// CHECK:         %[[IS1:.*]] = arith.cmpi sle, %[[R1]], %[[LAST]]
// CHECK:         arith.minsi %[[B]], %
// CHECK:         %[[E1:.*]] = arith.select %[[IS1]], %{{.*}}, %c0
// CHECK:         scf.for
// CHECK:           attn.online_attention {{.*}} ends[%[[E0]], %[[E1]]] mask
func.func @parts(%q: tensor<1x4x?x16xf16>, %first: tensor<?xi32>, %end: tensor<?xi32>) -> tensor<1x4x?x16xf16> {
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
    } {schedule = #attn.schedule<tile = 128x64, order = longest_first, warps = 8, stages = 2, queries = sequences, blocks = dealt>}
    : tensor<1x4x?x16xf16>, tensor<1x4x?x16xf16>, tensor<1x4x?x16xf16> -> tensor<1x4x?x16xf16>
  return %o : tensor<1x4x?x16xf16>
}

// -----

// Where a step has more keys than the parts are apart, there are none.

// CHECK-LABEL: func @long_steps
// CHECK-NOT:   ends[
func.func @long_steps(%q: tensor<1x4x?x16xf16>, %end: tensor<?xi32>) -> tensor<1x4x?x16xf16> {
  %o = attn.attention %q, %q, %q scale(0.25)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %e = tensor.extract %end[%i] : tensor<?xi32>
      %n = arith.index_cast %e : i32 to index
      %keep = arith.cmpi slt, %j, %n : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 128x128, order = longest_first, warps = 8, stages = 2, queries = sequences, blocks = dealt>}
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
