// RUN: fovea-opt %s --attn-online-softmax --attn-tile --attn-list-tiles --attn-order-tiles --canonicalize --cse --split-input-file --mlir-print-local-scope | FileCheck %s

// The tiles of each batch, which the bounds of keys depend on, are sorted by pairs of
// their steps, for all heads: one comes behind those with more, and behind earlier ones
// with as many. These are counted in 32 bits, by which warps combine what threads count.
// CHECK-LABEL: func @sequences
// CHECK:       %[[TILES:.*]] = arith.ceildivsi %{{.*}}, %c64
// CHECK:       %[[STEPS:.*]] = scf.forall (%[[B:.*]], %[[T:.*]]) in (2, %[[TILES]]) shared_outs(%[[OUT:.*]] = %{{.*}}) -> (tensor<2x?xi32>) {
// CHECK:         %[[END32:.*]] = tensor.extract %{{.*}}#1[%[[B]], %{{.*}}] : tensor<2x?xi32>
// CHECK:         %[[END:.*]] = arith.index_cast %[[END32]] : i32 to index
// CHECK:         %[[KEYS:.*]] = arith.minsi %[[END]], %{{.*}}
// CHECK:         %[[SOME:.*]] = arith.maxsi %[[KEYS]], %c0
// CHECK:         %[[COUNT:.*]] = arith.ceildivsi %[[SOME]], %c64
// CHECK:         %[[COUNT32:.*]] = arith.index_castui %[[COUNT]] : index to i32
// CHECK:         %[[COUNTED:.*]] = tensor.insert %[[COUNT32]]
// CHECK:         tensor.parallel_insert_slice %[[COUNTED]] into %[[OUT]][%[[B]], %[[T]]]
// CHECK:       %[[ORDER:.*]] = scf.forall (%[[B:.*]], %[[T:.*]]) in (2, %[[TILES]]) shared_outs(%[[OUT:.*]] = %{{.*}}) -> (tensor<2x?xi32>) {
// CHECK:         tensor.extract %[[STEPS]][%[[B]], %[[T]]]
// CHECK:         %[[RANK32:.*]] = scf.for %[[O:.*]] = %c0 to %[[TILES]] step %c1 iter_args(%[[SUM:.*]] = %c0_i32)
// CHECK:           tensor.extract %[[STEPS]][%[[B]], %[[O]]]
// CHECK:           %[[MORE:.*]] = arith.cmpi slt
// CHECK:           %[[SAME:.*]] = arith.cmpi eq
// CHECK:           %[[FIRST:.*]] = arith.cmpi slt, %[[O]], %[[T]]
// CHECK:           %[[BOTH:.*]] = arith.andi %[[SAME]], %[[FIRST]]
// CHECK:           %[[FRONT:.*]] = arith.ori %[[MORE]], %[[BOTH]]
// CHECK-NEXT:      %[[TERM:.*]] = arith.extui %[[FRONT]] : i1 to i32
// CHECK-NEXT:      %[[NEXT:.*]] = arith.addi %[[SUM]], %[[TERM]] : i32
// CHECK-NEXT:      scf.yield %[[NEXT]]
// CHECK:         %[[RANK:.*]] = arith.index_castui %[[RANK32]] : i32 to index
// CHECK:         %[[TILE:.*]] = arith.index_castui %[[T]] : index to i32
// CHECK:         %[[SORTED:.*]] = tensor.insert %[[TILE]]
// CHECK:         tensor.parallel_insert_slice %[[SORTED]] into %[[OUT]][%[[B]], %[[RANK]]]
// CHECK:       scf.forall (%[[B:.*]], %{{.*}}, %[[I:.*]]) = (0, 0, 0)
// CHECK-NEXT:    %[[PLACE:.*]] = arith.divsi %[[I]], %c64
// CHECK-NEXT:    %[[OWN32:.*]] = tensor.extract %[[ORDER]][%[[B]], %[[PLACE]]]
// CHECK-NEXT:    %[[OWN:.*]] = arith.index_castui %[[OWN32]]
// CHECK-NEXT:    %[[ROW:.*]] = arith.muli %[[OWN]], %c64
// CHECK-NOT:     %[[I]]
// CHECK:         return
func.func @sequences(%q: tensor<2x4x?x16xf16>, %end: tensor<2x?xi32>) -> tensor<2x4x?x16xf16> {
  %o = attn.attention %q, %q, %q scale(0.25)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %e = tensor.extract %end[%b, %i] : tensor<2x?xi32>
      %n = arith.index_cast %e : i32 to index
      %keep = arith.cmpi slt, %j, %n : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 64x32, order = longest_first, warps = 4, stages = 2, blocks = persistent>}
    : tensor<2x4x?x16xf16>, tensor<2x4x?x16xf16>, tensor<2x4x?x16xf16> -> tensor<2x4x?x16xf16>
  return %o : tensor<2x4x?x16xf16>
}

// -----

// Of tiles in lists, their number.
// CHECK-LABEL: func @documents
// CHECK:       %[[LISTS:.*]]:2 = scf.forall (%{{.*}}, %{{.*}}) in (16, 32)
// CHECK:       %[[STEPS:.*]] = scf.forall (%{{.*}}) in (16)
// CHECK:         %[[N32:.*]] = tensor.extract %[[LISTS]]#1[%{{.*}}, %c31]
// CHECK:         %[[N:.*]] = arith.index_castui %[[N32]]
// CHECK:         %[[COUNT:.*]] = arith.maxsi %[[N]], %c0
// CHECK:       %[[ORDER:.*]] = scf.forall (%{{.*}}) in (16)
// CHECK:       scf.forall (%{{.*}}, %[[I:.*]]) = (0, 0)
// CHECK-NEXT:    %[[PLACE:.*]] = arith.divsi %[[I]], %c64
// CHECK-NEXT:    tensor.extract %[[ORDER]][%[[PLACE]]]
func.func @documents(%q: tensor<1x4x1024x16xf16>, %ids: tensor<1024xi32>) -> tensor<1x4x1024x16xf16> {
  %o = attn.attention %q, %q, %q scale(0.25)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %p = tensor.extract %ids[%i] : tensor<1024xi32>
      %r = tensor.extract %ids[%j] : tensor<1024xi32>
      %keep = arith.cmpi eq, %p, %r : i32
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 64x32, order = longest_first, warps = 4, stages = 2, blocks = persistent>}
    : tensor<1x4x1024x16xf16>, tensor<1x4x1024x16xf16>, tensor<1x4x1024x16xf16> -> tensor<1x4x1024x16xf16>
  return %o : tensor<1x4x1024x16xf16>
}

// -----

// No tensor decides where a causal mask ends, nor one of lengths of batches which
// tiles are long.
// CHECK-LABEL: func @known
// CHECK-COUNT-2: scf.forall (
// CHECK-NOT:     scf.forall (
func.func @known(%q: tensor<2x4x1024x16xf16>, %lengths: tensor<2xi32>) -> (tensor<2x4x1024x16xf16>, tensor<2x4x1024x16xf16>) {
  %o = attn.attention %q, %q, %q scale(0.25)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %keep = arith.cmpi sge, %i, %j : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 64x32, order = longest_first, warps = 4, stages = 2, blocks = persistent>}
    : tensor<2x4x1024x16xf16>, tensor<2x4x1024x16xf16>, tensor<2x4x1024x16xf16> -> tensor<2x4x1024x16xf16>
  %p = attn.attention %q, %q, %q scale(0.25)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %e = tensor.extract %lengths[%b] : tensor<2xi32>
      %n = arith.index_cast %e : i32 to index
      %keep = arith.cmpi slt, %j, %n : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 64x32, order = longest_first, warps = 4, stages = 2, blocks = persistent>}
    : tensor<2x4x1024x16xf16>, tensor<2x4x1024x16xf16>, tensor<2x4x1024x16xf16> -> tensor<2x4x1024x16xf16>
  return %o, %p : tensor<2x4x1024x16xf16>, tensor<2x4x1024x16xf16>
}

// -----

// Blocks that are no persistent ones get a tile when they are free. One loop is that
// of the table of extremes.
// CHECK-LABEL: func @tiles
// CHECK-COUNT-2: scf.forall (
// CHECK-NOT:     scf.forall (
func.func @tiles(%q: tensor<1x4x1024x16xf16>, %end: tensor<1024xi32>) -> tensor<1x4x1024x16xf16> {
  %o = attn.attention %q, %q, %q scale(0.25)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %e = tensor.extract %end[%i] : tensor<1024xi32>
      %n = arith.index_cast %e : i32 to index
      %keep = arith.cmpi slt, %j, %n : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 64x32, order = longest_first, warps = 4, stages = 2>}
    : tensor<1x4x1024x16xf16>, tensor<1x4x1024x16xf16>, tensor<1x4x1024x16xf16> -> tensor<1x4x1024x16xf16>
  return %o : tensor<1x4x1024x16xf16>
}

// -----

// Where blocks get tiles when they are free, the digits of the number of steps are enough,
// and tiles of one sequence stay together. Those without a query come last, and the loop
// ends in front of them.
// What the default machine's 2 cores take in any order, as each has four tiles for each
// step of it and one more, stays in the order of sequences.
// CHECK-LABEL: func @cut
// CHECK:       %[[COUNT:.*]] = arith.muli %{{.*}}, %c2
// CHECK:       %[[ROUNDS:.*]] = arith.floordivsi %{{.*}}, %c8
// CHECK-NEXT:  %[[MOST:.*]] = arith.addi %[[ROUNDS]], %c1
// CHECK:       %[[STEPS:.*]] = scf.forall (%[[T:.*]]) in (%[[COUNT]]) shared_outs(%[[OUT:.*]] = %{{.*}}) -> (tensor<?xi32>) {
// CHECK:         %[[ROWS:.*]] = affine.min
// CHECK:         %[[KEYS:.*]] = arith.maxsi %{{.*}}, %c0
// CHECK-NEXT:    %[[NUMBER:.*]] = arith.ceildivsi %[[KEYS]], %c32 : index
// CHECK-NEXT:    %[[SOME:.*]] = arith.maxsi %[[NUMBER]], %c1 : index
// CHECK-NEXT:    %[[LAST:.*]] = arith.addi %[[SOME]], %c-1 : index
// CHECK-NEXT:    %[[LAST32:.*]] = arith.index_castui %[[LAST]] : index to i32
// CHECK-NEXT:    %[[ZEROS:.*]] = math.ctlz %[[LAST32]] : i32
// CHECK-NEXT:    %[[DIGITS32:.*]] = arith.subi %c32_i32, %[[ZEROS]] : i32
// CHECK-NEXT:    %[[DIGITS:.*]] = arith.index_castui %[[DIGITS32]] : i32 to index
// CHECK:         %[[SHORT:.*]] = arith.muli %[[MOST]], %c32
// CHECK-NEXT:    %[[ISSHORT:.*]] = arith.cmpi sle, %[[KEYS]], %[[SHORT]]
// CHECK-NEXT:    %[[LENGTH:.*]] = arith.select %[[ISSHORT]], %c0, %[[DIGITS]]
// CHECK:         %[[USED:.*]] = arith.cmpi sgt, %[[ROWS]], %c0
// CHECK:         %[[MORE:.*]] = arith.addi %[[LENGTH]], %c1
// CHECK:         arith.select %[[USED]], %[[MORE]], %c0
// CHECK:       %[[ORDER:.*]]:2 = scf.forall (%[[T:.*]]) in (%[[COUNT]])
// CHECK:         %[[SUMS:.*]]:2 = scf.for {{.*}} iter_args(%{{.*}} = %c0_i32, %[[SUM:.*]] = %c0_i32)
// CHECK:           %[[OTHER:.*]] = arith.index_castui
// CHECK:           %[[ISUSED:.*]] = arith.cmpi sgt, %[[OTHER]], %c0
// CHECK:           %[[TERM:.*]] = arith.extui %[[ISUSED]] : i1 to i32
// CHECK-NEXT:      arith.addi %[[SUM]], %[[TERM]] : i32
// CHECK:         %[[RANK:.*]] = arith.index_castui %[[SUMS]]#0 : i32 to index
// CHECK:         tensor.insert %[[SUMS]]#1 into
// CHECK:         tensor.parallel_insert_slice %{{.*}} into %{{.*}}[%[[RANK]]]
// CHECK:         tensor.parallel_insert_slice %{{.*}} into %{{.*}}[%[[RANK]]]
// CHECK:       %[[USED32:.*]] = tensor.extract %[[ORDER]]#1[%c0]
// CHECK:       %[[USED:.*]] = arith.index_castui %[[USED32]]
// CHECK:       %[[END:.*]] = arith.minsi %[[USED]], %[[COUNT]]
// CHECK:       scf.forall (%{{.*}}, %[[N:.*]]) in (4, %[[END]])
// CHECK-NEXT:    tensor.extract %[[ORDER]]#0[%[[N]]]
func.func @cut(%q: tensor<1x4x?x16xf16>, %end: tensor<?xi32>) -> tensor<1x4x?x16xf16> {
  %o = attn.attention %q, %q, %q scale(0.25)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %e = tensor.extract %end[%i] : tensor<?xi32>
      %n = arith.index_cast %e : i32 to index
      %keep = arith.cmpi slt, %j, %n : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 64x32, order = longest_first, warps = 4, stages = 2, queries = sequences, blocks = dealt>}
    : tensor<1x4x?x16xf16>, tensor<1x4x?x16xf16>, tensor<1x4x?x16xf16> -> tensor<1x4x?x16xf16>
  return %o : tensor<1x4x?x16xf16>
}

// -----

// A length of the sequence is the same for all of its tiles: under a causal mask behind it
// they are in order as they are without one, and no table is made.
// CHECK-LABEL: func @lengths
// CHECK-NOT:   scf.forall (
// CHECK:       scf.forall (%[[B:.*]], %{{.*}}, %[[I:.*]]) = (0, 0, 0) to (2, 4, %[[ROWS:.*]]) step (1, 1, 64)
// CHECK-NEXT:    affine.apply affine_map<(d0)[s0] -> (-d0 + (s0 ceildiv 64) * 64 - 64)>(%[[I]])[%[[ROWS]]]
// CHECK:         tensor.extract %{{.*}}[%[[B]]] : tensor<2xi32>
// CHECK-NOT:   scf.forall (
// CHECK:       return
func.func @lengths(%q: tensor<2x4x?x16xf16>, %lengths: tensor<2xi32>) -> tensor<2x4x?x16xf16> {
  %o = attn.attention %q, %q, %q scale(0.25)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %e = tensor.extract %lengths[%b] : tensor<2xi32>
      %n = arith.index_cast %e : i32 to index
      %last = arith.addi %i, %n : index
      %keep = arith.cmpi sge, %last, %j : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 64x32, order = longest_first, warps = 4, stages = 2, blocks = persistent>}
    : tensor<2x4x?x16xf16>, tensor<2x4x?x16xf16>, tensor<2x4x?x16xf16> -> tensor<2x4x?x16xf16>
  return %o : tensor<2x4x?x16xf16>
}

// -----

// A length is read of a tile's own sequence, so tiles may differ, which tables know.
// CHECK-LABEL: func @indirect
// CHECK-COUNT-3: scf.forall (%{{[^,]*}}, %{{[^,]*}}) in (2, %{{.*}})
// CHECK:       scf.forall (%[[B:.*]], %{{.*}}, %[[I:.*]]) = (0, 0, 0)
// CHECK-NEXT:    arith.divsi %[[I]], %c64
func.func @indirect(%q: tensor<2x4x?x16xf16>, %ids: tensor<2x?xi32>, %lengths: tensor<2xi32>) -> tensor<2x4x?x16xf16> {
  %o = attn.attention %q, %q, %q scale(0.25)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %c64 = arith.constant 64 : index
      %tile = arith.divui %i, %c64 : index
      %id = tensor.extract %ids[%b, %tile] : tensor<2x?xi32>
      %own = arith.index_cast %id : i32 to index
      %e = tensor.extract %lengths[%own] : tensor<2xi32>
      %n = arith.index_cast %e : i32 to index
      %keep = arith.cmpi slt, %j, %n : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 64x32, order = longest_first, warps = 4, stages = 2, blocks = persistent>}
    : tensor<2x4x?x16xf16>, tensor<2x4x?x16xf16>, tensor<2x4x?x16xf16> -> tensor<2x4x?x16xf16>
  return %o : tensor<2x4x?x16xf16>
}
