// RUN: fovea-opt --gpu-outline-kernels --verify-diagnostics %s

module {
  module @inner {
    memref.global "private" constant @table : memref<2xf32> = dense<[1.0, 2.0]>
  }
  func.func @f(%x: memref<f32>) {
    %c1 = arith.constant 1 : index
    gpu.launch blocks(%a, %b, %c) in (%ga = %c1, %gb = %c1, %gc = %c1) threads(%d, %e, %f) in (%gd = %c1, %ge = %c1, %gf = %c1) {
      // expected-error@+1 {{'memref.get_global' op 'table' does not reference a valid global memref}}
      %table = memref.get_global @table : memref<2xf32>
      %v = memref.load %table[%c1] : memref<2xf32>
      memref.store %v, %x[] : memref<f32>
      gpu.terminator
    }
    return
  }
}
