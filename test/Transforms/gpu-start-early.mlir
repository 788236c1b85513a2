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

// -----

gpu.module @kernels {
  // What touches no memory of others comes before the wait, up to the last op that
  // prepares something.
  // CHECK-LABEL: gpu.func @prepared(
  // CHECK:         scf.if
  // CHECK:           mbarrier.init
  // CHECK:           prefetch.tensormap
  // CHECK:         nvvm.barrier
  // CHECK-NEXT:    griddepcontrol.wait;
  // CHECK-NEXT:    nvvm.griddepcontrol launch_dependents
  // CHECK-NEXT:    arith.constant 1 : index
  // CHECK-NOT:     griddepcontrol
  gpu.func @prepared(%x: memref<?xf32>, %barrier: i32, %map: i64) kernel {
    %i = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %is = arith.cmpi eq, %i, %c0 : index
    scf.if %is {
      llvm.inline_asm has_side_effects "mbarrier.init.shared::cta.b64 [$0], 1;", "r,~{memory}" %barrier : (i32) -> ()
      llvm.inline_asm has_side_effects "prefetch.tensormap [$0];", "l,~{memory}" %map : (i64) -> ()
    }
    nvvm.barrier
    %c1 = arith.constant 1 : index
    %a = memref.load %x[%c1] : memref<?xf32>
    nvvm.barrier
    memref.store %a, %x[%i] : memref<?xf32>
    gpu.return
  }

  // A read in a branch ends what may come before.
  // CHECK-LABEL: gpu.func @reads(
  // CHECK-NEXT:    griddepcontrol.wait;
  gpu.func @reads(%x: memref<?xf32>, %is: i1) kernel {
    %c0 = arith.constant 0 : index
    scf.if %is {
      %a = memref.load %x[%c0] : memref<?xf32>
      memref.store %a, %x[%c0] : memref<?xf32>
    }
    nvvm.barrier
    gpu.return
  }
}
