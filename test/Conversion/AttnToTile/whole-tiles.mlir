// RUN: fovea-opt %s --attn-online-softmax --attn-tile --convert-attn-to-tile --canonicalize --cse | FileCheck %s

// A tile of keys is whole where the loop's step divides its ends: those that follow
// from a causal mask are sums and minima of multiples of the tile's queries and of
// the lengths. A step has the mask then, and no test whether its keys exist.

// CHECK-LABEL: func @divided
// CHECK:       tile.mma {{.*}} transpose_b
// CHECK:       scf.if
// CHECK:         tile.map
// CHECK-NOT:       arith.cmpi slt
// CHECK:           arith.cmpi sge
// CHECK-NEXT:      arith.select
func.func @divided(%q: tensor<1x2x256x64xf16>) -> tensor<1x2x256x64xf16> {
  %o = attn.attention %q, %q, %q scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %keep = arith.cmpi sge, %i, %j : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 64x32, order = longest_first, warps = 4, stages = 2>}
    : tensor<1x2x256x64xf16>, tensor<1x2x256x64xf16>, tensor<1x2x256x64xf16> -> tensor<1x2x256x64xf16>
  return %o : tensor<1x2x256x64xf16>
}

// A step of 48 divides neither the last query of a tile nor the length.

// CHECK-LABEL: func @rest
// CHECK:       tile.mma {{.*}} transpose_b
// CHECK:         tile.map
// CHECK:           %[[EXISTS:.*]] = arith.cmpi slt
// CHECK:           %[[KEPT:.*]] = arith.cmpi sge
// CHECK:           arith.andi %[[EXISTS]], %[[KEPT]]
func.func @rest(%q: tensor<1x2x256x64xf16>) -> tensor<1x2x256x64xf16> {
  %o = attn.attention %q, %q, %q scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %keep = arith.cmpi sge, %i, %j : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 64x48, order = longest_first, warps = 4, stages = 2>}
    : tensor<1x2x256x64xf16>, tensor<1x2x256x64xf16>, tensor<1x2x256x64xf16> -> tensor<1x2x256x64xf16>
  return %o : tensor<1x2x256x64xf16>
}

// The same with a length that is not known.

// CHECK-LABEL: func @dynamic
// CHECK:       tile.mma {{.*}} transpose_b
// CHECK:         tile.map
// CHECK:           arith.cmpi slt
// CHECK:           arith.cmpi sge
func.func @dynamic(%q: tensor<1x2x?x64xf16>) -> tensor<1x2x?x64xf16> {
  %o = attn.attention %q, %q, %q scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %keep = arith.cmpi sge, %i, %j : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 64x32, order = longest_first, warps = 4, stages = 2>}
    : tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16> -> tensor<1x2x?x64xf16>
  return %o : tensor<1x2x?x64xf16>
}
