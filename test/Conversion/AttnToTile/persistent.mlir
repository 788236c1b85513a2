// RUN: fovea-opt %s --attn-online-softmax --attn-tile --convert-attn-to-tile | FileCheck %s

// Persistent blocks take tiles in linear order, or, where later ones have more
// keys, from the longest to the shortest, there and back. Products alternate with
// other work where the schedule says so; probabilities are then rounded before it
// is known that they are right.

// CHECK-LABEL: func @full
// CHECK:       tile.launch kernel "attention" grid({{.*}}) persistent linear warps 4 stages 2{{ }}
func.func @full(%q: tensor<1x2x256x64xf16>) -> tensor<1x2x256x64xf16> {
  %o = attn.attention %q, %q, %q scale(0.125) {schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 2, blocks = persistent>}
    : tensor<1x2x256x64xf16>, tensor<1x2x256x64xf16>, tensor<1x2x256x64xf16> -> tensor<1x2x256x64xf16>
  return %o : tensor<1x2x256x64xf16>
}

// CHECK-LABEL: func @causal
// CHECK:       tile.launch kernel "attention" grid({{.*}}) persistent snaked warps 4 stages 2{{ }}
func.func @causal(%q: tensor<1x2x256x64xf16>) -> tensor<1x2x256x64xf16> {
  %o = attn.attention %q, %q, %q scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %keep = arith.cmpi sge, %i, %j : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 64x32, order = longest_first, warps = 4, stages = 2, blocks = persistent>}
    : tensor<1x2x256x64xf16>, tensor<1x2x256x64xf16>, tensor<1x2x256x64xf16> -> tensor<1x2x256x64xf16>
  return %o : tensor<1x2x256x64xf16>
}

// CHECK-LABEL: func @alternating
// CHECK:       tile.launch kernel "attention" grid({{.*}}) warps 4 alternating stages 2{{ }}
// CHECK:         %[[SUM:.*]] = tile.reduce add {{.*}} neighbors
// CHECK:         %[[LEFT:.*]] = tile.map ins(
// CHECK:           arith.truncf
// CHECK:         tile.map ins(%[[SUM]], %[[BEFORE:.*]] : !tile.fragment<64x4xf32>,
// CHECK:         %[[LARGE:.*]] = tile.any
// CHECK:         %[[TEST:.*]] = arith.ori %{{.*}}, %[[LARGE]]
// CHECK:         %[[N:.*]]:5 = scf.if %[[TEST]]
// CHECK:           arith.truncf
// CHECK:         } else {
// CHECK-NEXT:      scf.yield %{{.*}}, %{{.*}}, %[[BEFORE]], %[[SUM]], %[[LEFT]] :
// CHECK:         tile.map ins(%[[N]]#2, %[[N]]#3 :
// CHECK-NEXT:    ^bb0
// CHECK-NEXT:      arith.addf
func.func @alternating(%q: tensor<1x2x256x64xf16>) -> tensor<1x2x256x64xf16> {
  %o = attn.attention %q, %q, %q scale(0.125) {schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 2, maximum = stale, products = alternating>}
    : tensor<1x2x256x64xf16>, tensor<1x2x256x64xf16>, tensor<1x2x256x64xf16> -> tensor<1x2x256x64xf16>
  return %o : tensor<1x2x256x64xf16>
}

// CHECK-LABEL: func @overlapped
// CHECK:       tile.launch kernel "attention" grid({{.*}}) warps 4 stages 2{{ }}
// CHECK:         %[[TEST:.*]] = arith.ori
// CHECK:         scf.if %[[TEST]]
// CHECK-NOT:       arith.truncf
// CHECK:         } else {
// CHECK-NOT:       arith.truncf
// CHECK:         tile.map
// CHECK:           arith.truncf
// CHECK:         scf.if %[[TEST]]
func.func @overlapped(%q: tensor<1x2x256x64xf16>) -> tensor<1x2x256x64xf16> {
  %o = attn.attention %q, %q, %q scale(0.125) {schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 2, maximum = stale>}
    : tensor<1x2x256x64xf16>, tensor<1x2x256x64xf16>, tensor<1x2x256x64xf16> -> tensor<1x2x256x64xf16>
  return %o : tensor<1x2x256x64xf16>
}

// Clusters of blocks, whose tiles of queries are side by side: the grid has half of
// the 9 tiles of a head, rounded up.
// CHECK-LABEL: func @cluster
// CHECK:       %[[HALF:.*]] = arith.constant 5 : index
// CHECK:       tile.launch kernel "attention" grid(%[[HALF]], %{{.*}}, %{{.*}}) cluster 2 persistent shared warps 4
// CHECK-NEXT:  ^bb0(%[[X:[^:]*]]: index,
// CHECK:         %[[RANK:.*]] = tile.cluster_rank
// CHECK:         %[[FIRST:.*]] = arith.muli %[[X]], %c2
// CHECK:         arith.addi %[[FIRST]], %[[RANK]]
func.func @cluster(%q: tensor<1x2x570x128xf16>) -> tensor<1x2x570x128xf16> {
  %o = attn.attention %q, %q, %q scale(0.125) {schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 2, blocks = shared, cluster = 2>}
    : tensor<1x2x570x128xf16>, tensor<1x2x570x128xf16>, tensor<1x2x570x128xf16> -> tensor<1x2x570x128xf16>
  return %o : tensor<1x2x570x128xf16>
}

// The only tile is as small as its rows: a block behind it would begin among them.
// CHECK-LABEL: func @no_neighbour
// CHECK:       tile.launch kernel "attention" grid(%c1{{.*}}, %{{.*}}, %{{.*}}) warps 4
// CHECK-NOT:   tile.cluster_rank
// CHECK:       return
func.func @no_neighbour(%q: tensor<1x2x20x128xf16>) -> tensor<1x2x20x128xf16> {
  %o = attn.attention %q, %q, %q scale(0.125) {schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 2, cluster = 2>}
    : tensor<1x2x20x128xf16>, tensor<1x2x20x128xf16>, tensor<1x2x20x128xf16> -> tensor<1x2x20x128xf16>
  return %o : tensor<1x2x20x128xf16>
}

// Rows behind the last one end the loop early; where blocks share programs, which take
// the same time, they do not.
// CHECK-LABEL: func @no_rows
// CHECK:       tile.launch kernel "attention" grid({{.*}}) persistent linear warps 8 alternating in_turn stages 2{{ }}
// CHECK:         tile.of_rows
// CHECK:       tile.launch kernel "attention" grid({{.*}}) persistent shared warps 8 stages 2{{ }}
// CHECK-NOT:     tile.of_rows
// CHECK:       return
func.func @no_rows(%q: tensor<1x2x300x64xf16>) -> (tensor<1x2x300x64xf16>, tensor<1x2x300x64xf16>) {
  %o = attn.attention %q, %q, %q scale(0.125)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %x = math.tanh %s : f32
      attn.yield %x : f32
    } {schedule = #attn.schedule<tile = 128x32, order = linear, warps = 8, stages = 2, blocks = persistent, products = alternating, groups = in_turn>}
    : tensor<1x2x300x64xf16>, tensor<1x2x300x64xf16>, tensor<1x2x300x64xf16> -> tensor<1x2x300x64xf16>
  %p = attn.attention %q, %q, %q scale(0.125)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %x = math.tanh %s : f32
      attn.yield %x : f32
    } {schedule = #attn.schedule<tile = 128x32, order = linear, warps = 8, stages = 2, blocks = shared>}
    : tensor<1x2x300x64xf16>, tensor<1x2x300x64xf16>, tensor<1x2x300x64xf16> -> tensor<1x2x300x64xf16>
  return %o, %p : tensor<1x2x300x64xf16>, tensor<1x2x300x64xf16>
}
