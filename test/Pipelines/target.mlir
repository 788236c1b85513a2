// RUN: fovea-opt --fovea-host-pipeline %s | FileCheck %s

// The width of vectors is the target's.
module attributes {machine.target = #machine.target<"host", arch = "avx2", cores = 4,
    vector_bytes = 32, vector_registers = 16, fast_memory = 32768,
    near_memory = 524288, bandwidth = 20, peak = 400>} {
  // CHECK-NOT: vector<16xf32>
  // CHECK: vector<8xf32>
  // CHECK-NOT: vector<16xf32>
  func.func @norm(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
    %y = attn.rms_norm %x epsilon(1.0e-6) : tensor<64x64xf32>
    return %y : tensor<64x64xf32>
  }
}
