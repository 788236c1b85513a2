// RUN: fovea-opt --attach-gpu-target --split-input-file %s | FileCheck %s
// RUN: fovea-opt --attach-gpu-target=target=sm_80 --split-input-file %s | FileCheck %s --check-prefix=AMPERE

// CHECK: module attributes {machine.target = #machine.target<"sm_90a", arch = "hopper", cores = 132,
// CHECK-SAME: shared_memory = 233472, matrix_peak = 989000>}
// AMPERE: #machine.target<"sm_80", arch = "ampere", cores = 108,
module {}

// -----

// A module that names the GPU keeps its numbers.
// CHECK: cores = 114,
// AMPERE: cores = 108,
module attributes {machine.target = #machine.target<"sm_90a", arch = "hopper", cores = 114, vector_bytes = 128, vector_registers = 2048, fast_memory = 232448, near_memory = 52428800, bandwidth = 2000000, peak = 51000, shared_memory = 233472, matrix_peak = 756000>} {}
