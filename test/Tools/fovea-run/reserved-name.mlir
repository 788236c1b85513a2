// A function may not take the place of one that compiled code calls.
// RUN: not fovea-run %s --random=1 2>&1 | FileCheck %s
// CHECK: reserved-name.mlir:5:1: error: the name @exp2 is that of a function which compiled code calls; expected another name

func.func @exp2(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = math.exp2 %x : tensor<4xf32>
  return %y : tensor<4xf32>
}
