// RUN: fovea-opt %s --convert-attn-to-tile=deterministic --canonicalize --cse --remarks-filter=convert-attn-to-tile 2>%t \
// RUN:   | FileCheck %s --implicit-check-not=atomic_rmw
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t

// A score that has an element of its own writes it, in any order.
// CHECK-LABEL: func @own_elements
// CHECK:       tile.launch kernel "attention_backward"
// CHECK:         memref.store
// CHECK:       return
func.func @own_elements(%q: tensor<1x2x?x16xf16>, %lse: tensor<1x2x?xf32>, %bias: tensor<2x?x?xf32>) -> (tensor<1x2x?x16xf16>, tensor<2x?x?xf32>) {
  %dq, %dk, %dv, %db = attn.attention_backward %q, %q, %q, %q scale(0.25)
      statistics(%lse, %lse : tensor<1x2x?xf32>, tensor<1x2x?xf32>) captures(%bias : tensor<2x?x?xf32>)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %bias[%h, %i, %j] : tensor<2x?x?xf32>
        %r = arith.addf %s, %x : f32
        attn.yield %r : f32
      } {schedule = #attn.schedule<tile = 64x128, order = linear, warps = 8, stages = 2>}
      : tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16> -> tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16>, tensor<2x?x?xf32>
  return %dq, %db : tensor<1x2x?x16xf16>, tensor<2x?x?xf32>
}

// Those that share one would add to it in any order.
// REMARK: the backward pass is written out, kernel by kernel: in a fixed order, scores cannot add to elements of a captured tensor that they share
// CHECK-LABEL: func @shared_elements
// CHECK-NOT:   tile.launch
// CHECK:       attn.attention_backward
func.func @shared_elements(%q: tensor<2x2x?x16xf16>, %lse: tensor<2x2x?xf32>, %bias: tensor<2x?x?xf32>) -> tensor<2x?x?xf32> {
  %dq, %dk, %dv, %db = attn.attention_backward %q, %q, %q, %q scale(0.25)
      statistics(%lse, %lse : tensor<2x2x?xf32>, tensor<2x2x?xf32>) captures(%bias : tensor<2x?x?xf32>)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %bias[%h, %i, %j] : tensor<2x?x?xf32>
        %r = arith.addf %s, %x : f32
        attn.yield %r : f32
      } {schedule = #attn.schedule<tile = 64x128, order = linear, warps = 8, stages = 2>}
      : tensor<2x2x?x16xf16>, tensor<2x2x?x16xf16>, tensor<2x2x?x16xf16>, tensor<2x2x?x16xf16> -> tensor<2x2x?x16xf16>, tensor<2x2x?x16xf16>, tensor<2x2x?x16xf16>, tensor<2x?x?xf32>
  return %db : tensor<2x?x?xf32>
}
