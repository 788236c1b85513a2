// RUN: not fovea-opt --attn-differentiate=function=other %s 2>&1 | FileCheck %s

// CHECK: error: attn-differentiate: the module has no function @other
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
