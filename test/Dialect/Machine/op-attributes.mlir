// RUN: fovea-opt %s --split-input-file | fovea-opt --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @kernel(
// CHECK: linalg.fill {machine.kernel = 3 : i64}
func.func @kernel(%x: f32, %init: tensor<4xf32>) -> tensor<4xf32> {
  %0 = linalg.fill {machine.kernel = 3 : i64} ins(%x : f32) outs(%init : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @grain(
// CHECK: {machine.grain = 16 : i64}
func.func @grain(%n: index) {
  scf.forall (%i) in (%n) {
  } {machine.grain = 16 : i64}
  return
}

// -----

// CHECK-LABEL: func.func @launch(
// CHECK: {machine.distinct_memory}
func.func @launch(%n: index) {
  gpu.launch blocks(%a, %b, %c) in (%d = %n, %e = %n, %f = %n)
             threads(%g, %h, %i) in (%j = %n, %k = %n, %l = %n) {
    gpu.terminator
  } {machine.distinct_memory}
  return
}

// -----

// CHECK-LABEL: gpu.module @kernels
// CHECK: gpu.func @k() kernel attributes {machine.distinct_memory, machine.starts_early}
gpu.module @kernels {
  gpu.func @k() kernel attributes {machine.distinct_memory, machine.starts_early} {
    gpu.return
  }
}

// -----

// CHECK: func.func private @f.shapes() attributes {machine.messages = ["a", "b"]}
func.func private @f.shapes() attributes {machine.messages = ["a", "b"]}
