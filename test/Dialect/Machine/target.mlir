// RUN: fovea-opt %s --split-input-file | fovea-opt --split-input-file | FileCheck %s

// CHECK: module attributes {machine.target = #machine.target<"host", arch = "avx512", cores = 2, vector_bytes = 64, vector_registers = 32, fast_memory = 32768, near_memory = 1048576, bandwidth = 12000, peak = 300>}
module attributes {machine.target = #machine.target<"host", arch = "avx512", cores = 2, vector_bytes = 64, vector_registers = 32, fast_memory = 32768, near_memory = 1048576, bandwidth = 12000, peak = 300>} {}

// -----

// CHECK: module attributes {machine.target = #machine.target<"sm_120", arch = "blackwell", cores = 84, vector_bytes = 128, vector_registers = 2048, fast_memory = 101376, near_memory = 67108864, bandwidth = 960000, peak = 56000, shared_memory = 102400, matrix_peak = 112000>}
module attributes {machine.target = #machine.target<"sm_120", arch = "blackwell", cores = 84, vector_bytes = 128, vector_registers = 2048, fast_memory = 101376, near_memory = 67108864, bandwidth = 960000, peak = 56000, shared_memory = 102400, matrix_peak = 112000>} {}

// -----

// CHECK: module attributes {machine.target = #machine.target<"host", arch = "amx", cores = 2, vector_bytes = 64, vector_registers = 32, fast_memory = 49152, near_memory = 2097152, bandwidth = 12000, peak = 300, matrix_peak = 4700>}
module attributes {machine.target = #machine.target<"host", arch = "amx", cores = 2, vector_bytes = 64, vector_registers = 32, fast_memory = 49152, near_memory = 2097152, bandwidth = 12000, peak = 300, matrix_peak = 4700>} {}

// -----

// CHECK: module attributes {machine.target = #machine.target<"host", arch = "avx512_bf16", cores = 2, vector_bytes = 64, vector_registers = 32, fast_memory = 49152, near_memory = 2097152, bandwidth = 12000, peak = 300, matrix_peak = 600>}
module attributes {machine.target = #machine.target<"host", arch = "avx512_bf16", cores = 2, vector_bytes = 64, vector_registers = 32, fast_memory = 49152, near_memory = 2097152, bandwidth = 12000, peak = 300, matrix_peak = 600>} {}
