// RUN: not fovea-opt --fovea-host-pipeline %s 2>&1 | FileCheck %s

// CHECK: error: op was not bufferized
func.func @gather(%x: tensor<4x4xf32>, %i: tensor<2x1xindex>) -> tensor<2x1x4xf32> {
  %y = tensor.gather %x[%i] gather_dims([0])
      : (tensor<4x4xf32>, tensor<2x1xindex>) -> tensor<2x1x4xf32>
  return %y : tensor<2x1x4xf32>
}
