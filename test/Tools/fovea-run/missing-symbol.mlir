// RUN: not fovea-run %s --entry=calls --random=1 2>&1 | FileCheck %s
// CHECK-NOT: {{.}}
// CHECK: fovea-run: compiled code calls 'elsewhere', which the module does not define and Fovea's runtime has not
// CHECK-NOT: {{.}}

func.func private @elsewhere(tensor<4xf32>) -> tensor<4xf32>
func.func @calls(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = call @elsewhere(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
