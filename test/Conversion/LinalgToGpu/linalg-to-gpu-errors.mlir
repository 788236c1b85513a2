// RUN: fovea-opt --convert-linalg-to-gpu --verify-diagnostics --split-input-file %s

func.func @tensors(%x: tensor<4xf32>) -> tensor<4xf32> {
  %z = arith.constant 0.0 : f32
  // expected-error@+1 {{'linalg.fill' op has operands that are tensors, expected memrefs: run bufferization first}}
  %y = linalg.fill ins(%z : f32) outs(%x : tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @loop_on_tensors(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{'scf.forall' op has results that are tensors, expected memrefs: run bufferization first}}
  %y = scf.forall (%i) in (4) shared_outs(%o = %x) -> tensor<4xf32> {
    scf.forall.in_parallel {}
  }
  return %y : tensor<4xf32>
}

// -----

func.func @unbounded(%x: memref<?xindex>) {
  scf.forall (%i) in (4) {
    %n = memref.load %x[%i] : memref<?xindex>
    // expected-error@+1 {{'memref.alloc' op in a parallel loop has no bound on its size in dimension 0 that is known before the loop, which a GPU needs}}
    %m = memref.alloc(%n) : memref<?xf32>
    memref.dealloc %m : memref<?xf32>
  }
  return
}
