// RUN: fovea-opt --outline-parallel --split-input-file --verify-diagnostics %s

func.func @tensors(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{'scf.forall' op must be bufferised before it is outlined: it has 1 tensor results}}
  %y = scf.forall (%i) in (4) shared_outs(%o = %x) -> (tensor<4xf32>) {
    %s = tensor.extract_slice %x[%i] [1] [1] : tensor<4xf32> to tensor<1xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %s into %o[%i] [1] [1]
          : tensor<1xf32> into tensor<4xf32>
    }
  }
  return %y : tensor<4xf32>
}

// -----

func.func @captures_tensor(%x: tensor<4xf32>, %m: memref<4xf32>) {
  // expected-error@+1 {{'scf.forall' op uses a value of type 'tensor<4xf32>', which has no place in memory}}
  scf.forall (%i) in (4) {
    %v = tensor.extract %x[%i] : tensor<4xf32>
    memref.store %v, %m[%i] : memref<4xf32>
  }
  return
}
