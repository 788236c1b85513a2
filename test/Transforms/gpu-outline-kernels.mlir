// RUN: fovea-opt --gpu-outline-kernels --split-input-file %s | FileCheck %s

// Launches with equal bodies share a kernel. Sizes and constants move into it.
module attributes {machine.target = #machine.target<"sm_80", arch = "ampere", cores = 108, vector_bytes = 128, vector_registers = 2048, fast_memory = 166912, near_memory = 41943040, bandwidth = 1555000, peak = 19500, shared_memory = 167936, matrix_peak = 312000>} {
  // CHECK: memref.global "private" constant @table
  memref.global "private" constant @table : memref<2xf32> = dense<[1.0, 2.0]>

  // CHECK-LABEL: func.func @f.g(
  // CHECK-SAME:    %[[X:.*]]: memref<?xf32>, %[[Y:.*]]: memref<?xf32>)
  // CHECK:         gpu.launch_func @kernels::@f_g_0 blocks in (%{{.*}}, %{{.*}}, %{{.*}}) threads in (%{{.*}}, %{{.*}}, %{{.*}}) args(%[[X]] : memref<?xf32>)
  // CHECK:         gpu.launch_func @kernels::@f_g_0 {{.*}} args(%[[Y]] : memref<?xf32>)
  // CHECK:         gpu.launch_func @kernels::@f_g_2
  // CHECK-NOT:     gpu.launch
  func.func @f.g(%x: memref<?xf32>, %y: memref<?xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %n = memref.dim %x, %c0 : memref<?xf32>
    %m = memref.dim %y, %c0 : memref<?xf32>
    %z = arith.constant 0.0 : f32
    gpu.launch blocks(%a, %b, %c) in (%ga = %n, %gb = %c1, %gc = %c1) threads(%d, %e, %f) in (%gd = %c64, %ge = %c1, %gf = %c1) {
      %last = arith.subi %n, %c1 : index
      memref.store %z, %x[%last] : memref<?xf32>
      gpu.terminator
    }
    gpu.launch blocks(%a, %b, %c) in (%ga = %m, %gb = %c1, %gc = %c1) threads(%d, %e, %f) in (%gd = %c64, %ge = %c1, %gf = %c1) {
      %last = arith.subi %m, %c1 : index
      memref.store %z, %y[%last] : memref<?xf32>
      gpu.terminator
    }
    gpu.launch blocks(%a, %b, %c) in (%ga = %c1, %gb = %c1, %gc = %c1) threads(%d, %e, %f) in (%gd = %c1, %ge = %c1, %gf = %c1) {
      %table = memref.get_global @table : memref<2xf32>
      %v = memref.load %table[%c1] : memref<2xf32>
      memref.store %v, %x[%c0] : memref<?xf32>
      gpu.terminator
    }
    return
  }
  // CHECK:       gpu.module @kernels [#nvvm.target<O = 3, chip = "sm_80", features = "+ptx80">]
  // CHECK-SAME:    llvm.data_layout = "{{[^"]+}}", llvm.target_triple = "nvptx64-nvidia-cuda"
  // CHECK:         gpu.func @f_g_0(%[[M:.*]]: memref<?xf32>) kernel attributes {known_block_size = array<i32: 64, 1, 1>}
  // CHECK:           %[[N:.*]] = memref.dim %[[M]]
  // CHECK:           arith.subi %[[N]]
  // CHECK-NOT:     @f_g_1
  // CHECK:         memref.global "private" constant @table
  // CHECK:         gpu.func @f_g_2(
  // CHECK:           memref.get_global @table
}

// -----

// Without launches nothing changes.
// CHECK:     module {
// CHECK-NOT: gpu
module {
  func.func @none(%x: memref<4xf32>) {
    return
  }
}
