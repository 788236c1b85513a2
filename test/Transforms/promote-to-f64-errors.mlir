// RUN: fovea-opt --promote-to-f64 --split-input-file --verify-diagnostics %s

func.func @bits(%x: tensor<4xf32>) -> tensor<4xi32> {
  // expected-error@+1 {{'arith.bitcast' op has no counterpart in f64: it reads the bits of 'f32' as 'i32'}}
  %y = arith.bitcast %x : tensor<4xf32> to tensor<4xi32>
  return %y : tensor<4xi32>
}

// -----

// expected-error@+1 {{'func.func' op is declared but not defined; a reference can only be computed of functions with a body}}
func.func private @elsewhere(tensor<4xf32>) -> tensor<4xf32>

// -----

func.func @buffers(%x: memref<4xf32>, %i: index) -> f32 {
  // expected-error@+1 {{'memref.load' op works on 'memref<4xf32>'; a reference can only be computed of functions on tensors and scalars}}
  %y = memref.load %x[%i] : memref<4xf32>
  return %y : f32
}
