// RUN: fovea-opt --inline --symbol-dce %s | FileCheck %s

// CHECK-LABEL: func.func @attend
// CHECK: attn.scale
// CHECK: attn.modify
// CHECK-NOT: call
func.func @attend(%x: tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xf32> {
  %y = call @cap(%x) : (tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xf32>
  return %y : tensor<1x1x4x4xf32>
}

func.func private @cap(%x: tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xf32> {
  %y = attn.scale %x by 0.5 : tensor<1x1x4x4xf32>
  %z = attn.modify %y {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %t = math.tanh %s : f32
    attn.yield %t : f32
  } : tensor<1x1x4x4xf32>
  return %z : tensor<1x1x4x4xf32>
}
