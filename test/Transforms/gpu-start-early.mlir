// RUN: fovea-opt --gpu-start-early --split-input-file %s | FileCheck %s
// RUN: fovea-opt --gpu-start-early --gpu-start-early --split-input-file %s | FileCheck %s

gpu.module @kernels {
  // Before anything else, so that nothing is read or written too early. The next
  // kernel comes when this one no longer waits.
  // CHECK-LABEL: gpu.func @scale(
  // CHECK-SAME:    kernel attributes {machine.starts_early}
  // CHECK-NEXT:    llvm.inline_asm has_side_effects "griddepcontrol.wait;", "~{memory}" : () -> ()
  // CHECK-NEXT:    nvvm.griddepcontrol launch_dependents
  // CHECK-NEXT:    gpu.thread_id
  // CHECK-NOT:     griddepcontrol
  gpu.func @scale(%x: memref<?xf32>) kernel {
    %i = gpu.thread_id x
    %a = memref.load %x[%i] : memref<?xf32>
    %b = arith.addf %a, %a : f32
    memref.store %b, %x[%i] : memref<?xf32>
    gpu.return
  }

  // A function that kernels call is left as it is.
  // CHECK-LABEL: gpu.func @helper(
  // CHECK-NOT:     griddepcontrol
  gpu.func @helper(%a: f32) -> f32 {
    gpu.return %a : f32
  }
}
