// RUN: fovea-opt --convert-gpu-to-runtime --verify-diagnostics --split-input-file %s

func.func @operand(%x: memref<4xf32>) -> memref<4xf32> {
  // expected-error@+1 {{'func.return' op returns as result 0 a buffer that is not its own allocation; expected one `memref.alloc` in this block for each result}}
  return %x : memref<4xf32>
}

// -----

func.func @twice() -> (memref<4xf32>, memref<4xf32>) {
  %x = memref.alloc() : memref<4xf32>
  // expected-error@+1 {{'func.return' op returns as result 1 a buffer that is not its own allocation}}
  return %x, %x : memref<4xf32>, memref<4xf32>
}

// -----

func.func @layout() {
  // expected-error@+1 {{'memref.alloc' op makes a buffer of type 'memref<4x4xf32, strided<[8, 1]>>', expected one with the identity layout}}
  %x = memref.alloc() : memref<4x4xf32, strided<[8, 1]>>
  return
}

// -----

module attributes {gpu.container_module} {
  gpu.module @others {
    gpu.func @kernel() kernel {
      gpu.return
    }
  }
  func.func @f() {
    %c1 = arith.constant 1 : index
    // expected-error@+1 {{'gpu.launch_func' op launches @others::@kernel, which is no kernel of @kernels}}
    gpu.launch_func @others::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @kernels {
    llvm.func @kernel(%v: f32) attributes {gpu.kernel, nvvm.kernel} {
      llvm.return
    }
  }
  func.func @f(%x: memref<4xf32>) {
    %c1 = arith.constant 1 : index
    // expected-error@+1 {{'gpu.launch_func' op passes 5 values to @kernels::@kernel, which has 1 arguments}}
    gpu.launch_func @kernels::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<4xf32>)
    return
  }
}

// -----

func.func @many(%x: memref<4xf32>) {
  %y = memref.alloca() : memref<4xf32>
  // expected-error@+1 {{'gpu.memcpy' op expected to copy one element to a `memref.alloca` of the host, in the order of the program}}
  gpu.memcpy %y, %x : memref<4xf32>, memref<4xf32>
  return
}

// -----

module attributes {gpu.container_module} {
  memref.global "private" constant @table : memref<4xf32> = dense<1.0>
  gpu.module @kernels {
    gpu.func @kernel(%x: memref<4xf32>) kernel {
      gpu.return
    }
  }
  func.func @constant() {
    %c1 = arith.constant 1 : index
    // expected-error@+1 {{'memref.get_global' op is in the host's memory, expected a copy in the GPU's where it is more than loaded}}
    %x = memref.get_global @table : memref<4xf32>
    // expected-note@+1 {{used here}}
    gpu.launch_func @kernels::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<4xf32>)
    return
  }
}
