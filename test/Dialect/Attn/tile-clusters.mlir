// RUN: fovea-opt %s --attn-online-softmax --attn-tile | FileCheck %s
// RUN: fovea-opt %s --attn-online-softmax --attn-tile=fuse-producers=false --convert-attn-to-tile --canonicalize | FileCheck %s --check-prefix=TILE

// Blocks of a cluster have tiles of queries side by side. Under a mask both visit
// the keys that it keeps of either's queries, and mask those of their own: the
// bounds of the loop follow from the first query of the cluster, which is the same
// for both, as `convert-attn-to-tile` sees.

// CHECK-LABEL: func @window
// CHECK:       scf.forall (%{{.*}}, %{{.*}}, %[[I:.*]]) = (0, 0, 0) to (1, 2, 1000) step (1, 1, 128)
// CHECK:         %[[NUMBER:.*]] = arith.divsi %[[I]], %c128
// CHECK:         %[[CLUSTER:.*]] = arith.divsi %[[NUMBER]], %c2
// CHECK:         %[[FIRST:.*]] = arith.muli %[[CLUSTER]], %c256
// CHECK:         %[[LOW:.*]] = arith.addi %[[FIRST]], %c-99
// CHECK:         %[[HIGH:.*]] = arith.addi %[[FIRST]], %c256
// CHECK:         %[[BEGIN:.*]] = arith.maxsi %[[LOW]], %c0
// CHECK:         %[[END:.*]] = arith.minsi %[[HIGH]], %c1000
// CHECK:         %[[UPPER:.*]] = arith.select %{{.*}}, %[[END]], %c0
// CHECK:         scf.for {{.*}} to %[[UPPER]] step
// The tile is masked where its own queries need it.
// CHECK:           arith.cmpi sle, %{{.*}}, %[[I]]
// CHECK:           attn.online_attention {{.*}} partial(

// TILE-LABEL: func @window
// TILE:       tile.launch {{.*}} grid(%c4, {{.*}}) cluster 2
// TILE:       ^bb0(%[[B:[^:]*]]: index,
// TILE:         %[[RANK:.*]] = tile.cluster_rank
// TILE:         %[[TWICE:.*]] = arith.muli %[[B]], %c2
// TILE:         %[[PLACE:.*]] = arith.addi %[[TWICE]], %[[RANK]]
// TILE:         %[[OWN:.*]] = arith.muli %[[PLACE]], %c128
// TILE-NOT:     arith.divsi
// TILE:         %[[ALL:.*]] = arith.muli %[[B]], %c256
// TILE-NOT:     arith.divsi
// TILE:         arith.addi %[[ALL]], %c-99
// TILE:         tile.load {{.*}}[{{.*}}, %[[OWN]], {{.*}}]
// TILE:         scf.for
func.func @window(%q: tensor<1x2x1000x128xbf16>) -> tensor<1x2x1000x128xbf16> {
  %o = attn.attention %q, %q, %q scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %c100 = arith.constant 100 : index
    %distance = arith.subi %i, %j : index
    %near = arith.cmpi slt, %distance, %c100 : index
    %seen = arith.cmpi sge, %i, %j : index
    %keep = arith.andi %near, %seen : i1
    attn.yield %keep : i1
  } {schedule = #attn.schedule<tile = 128x32, order = linear, warps = 8, stages = 2, cluster = 2>}
    : tensor<1x2x1000x128xbf16>, tensor<1x2x1000x128xbf16>, tensor<1x2x1000x128xbf16> -> tensor<1x2x1000x128xbf16>
  return %o : tensor<1x2x1000x128xbf16>
}

// The longest first: clusters from the last one, tiles of each in order. Of 5 tiles
// the first cluster has one behind the last query.
// CHECK-LABEL: func @causal
// CHECK:       scf.forall (%{{.*}}, %{{.*}}, %[[I:.*]]) = (0, 0, 0) to (1, 2, 600) step (1, 1, 128)
// CHECK:         %[[AT:.*]] = arith.muli %{{.*}}, %c256
// CHECK:         %[[FIRST:.*]] = arith.subi %c512, %[[AT]]
// CHECK:         %[[PLACE:.*]] = arith.subi %[[I]], %[[AT]]
// CHECK:         %[[OWN:.*]] = arith.addi %[[FIRST]], %[[PLACE]]
// CHECK:         tensor.extract_slice %{{.*}}[%{{.*}}, %{{.*}}, %[[OWN]], 0]
// CHECK:         %[[HIGH:.*]] = arith.addi %[[FIRST]], %c256
// CHECK:         %[[END:.*]] = arith.minsi %[[HIGH]], %c600
// CHECK:         scf.for {{.*}} = %c0 to %[[END]] step
// CHECK:           arith.cmpi sgt, %{{.*}}, %[[OWN]]
// CHECK-NOT:     %[[I]]
// CHECK:         return
func.func @causal(%q: tensor<1x2x600x128xbf16>) -> tensor<1x2x600x128xbf16> {
  %o = attn.attention %q, %q, %q scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } {schedule = #attn.schedule<tile = 128x32, order = longest_first, warps = 8, stages = 2, cluster = 2>}
    : tensor<1x2x600x128xbf16>, tensor<1x2x600x128xbf16>, tensor<1x2x600x128xbf16> -> tensor<1x2x600x128xbf16>
  return %o : tensor<1x2x600x128xbf16>
}

// Without a mask all blocks visit all keys anyway.
// CHECK-LABEL: func @full
// CHECK-NOT:   divsi
// CHECK:       return
func.func @full(%q: tensor<1x2x600x128xbf16>) -> tensor<1x2x600x128xbf16> {
  %o = attn.attention %q, %q, %q scale(0.125) {schedule = #attn.schedule<tile = 128x32, order = linear, warps = 8, stages = 2, cluster = 2>}
    : tensor<1x2x600x128xbf16>, tensor<1x2x600x128xbf16>, tensor<1x2x600x128xbf16> -> tensor<1x2x600x128xbf16>
  return %o : tensor<1x2x600x128xbf16>
}

// Values of the block's own queries that tiles of keys share are computed in front
// of the loop.
// CHECK-LABEL: func @shifted
// CHECK:       scf.forall {{.*}}, %[[I:.*]]) = (0, 0, 0) to (1, 2, 600)
// CHECK:         %[[SHIFTED:.*]] = arith.addi %[[I]], %c10
// CHECK:         scf.for
// CHECK:           arith.cmpi sgt, %{{.*}}, %[[SHIFTED]]
func.func @shifted(%q: tensor<1x2x600x128xbf16>) -> tensor<1x2x600x128xbf16> {
  %o = attn.attention %q, %q, %q scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %c10 = arith.constant 10 : index
    %place = arith.addi %i, %c10 : index
    %keep = arith.cmpi sge, %place, %j : index
    attn.yield %keep : i1
  } {schedule = #attn.schedule<tile = 128x32, order = linear, warps = 8, stages = 2, cluster = 2>}
    : tensor<1x2x600x128xbf16>, tensor<1x2x600x128xbf16>, tensor<1x2x600x128xbf16> -> tensor<1x2x600x128xbf16>
  return %o : tensor<1x2x600x128xbf16>
}

// Without a mask, too, no tile begins in front of the first query.
// CHECK-LABEL: func @no_mask
// CHECK:       scf.forall (%{{.*}}, %{{.*}}, %[[I:.*]]) = (0, 0, 0) to (1, 2, 600) step (1, 1, 128)
// CHECK:         %[[AT:.*]] = arith.muli %{{.*}}, %c256
// CHECK:         %[[FIRST:.*]] = arith.subi %c512, %[[AT]]
// CHECK:         %[[PLACE:.*]] = arith.subi %[[I]], %[[AT]]
// CHECK:         %[[OWN:.*]] = arith.addi %[[FIRST]], %[[PLACE]]
// CHECK:         tensor.extract_slice %{{.*}}[%{{.*}}, %{{.*}}, %[[OWN]], 0]
// CHECK:         scf.for {{.*}} to %c600
func.func @no_mask(%q: tensor<1x2x600x128xbf16>) -> tensor<1x2x600x128xbf16> {
  %o = attn.attention %q, %q, %q scale(0.125)
    {schedule = #attn.schedule<tile = 128x32, order = longest_first, warps = 8, stages = 2, cluster = 2>}
    : tensor<1x2x600x128xbf16>, tensor<1x2x600x128xbf16>, tensor<1x2x600x128xbf16> -> tensor<1x2x600x128xbf16>
  return %o : tensor<1x2x600x128xbf16>
}
