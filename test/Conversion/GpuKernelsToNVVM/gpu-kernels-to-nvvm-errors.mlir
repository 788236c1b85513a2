// RUN: fovea-opt --pass-pipeline='builtin.module(gpu.module(convert-gpu-kernels-to-nvvm))' --verify-diagnostics %s

gpu.module @kernels {
  gpu.func @kernel(%x: memref<f64>) kernel {
    %v = memref.load %x[] : memref<f64>
    // expected-error@+1 {{'math.atan' op on 'f64' is not available on a GPU}}
    %s = math.atan %v : f64
    memref.store %s, %x[] : memref<f64>
    gpu.return
  }
}
