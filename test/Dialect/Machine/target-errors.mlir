// RUN: fovea-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{unknown target "abacus"; expected host, sm_80, sm_86, sm_89, sm_90a or sm_120}}
#target = #machine.target<"abacus", arch = "avx2", cores = 2, vector_bytes = 32, vector_registers = 16, fast_memory = 32768, near_memory = 1048576, bandwidth = 12000, peak = 300>

// -----

// expected-error@+1 {{arch of "sm_90a" must be hopper, but is ampere}}
#target = #machine.target<"sm_90a", arch = "ampere", cores = 132, vector_bytes = 128, vector_registers = 2048, fast_memory = 232448, near_memory = 52428800, bandwidth = 4290000, peak = 66900, shared_memory = 233472, matrix_peak = 989000>

// -----

// expected-error@+1 {{matrix_peak must be at least 1, but is 0}}
#target = #machine.target<"sm_80", arch = "ampere", cores = 108, vector_bytes = 128, vector_registers = 2048, fast_memory = 166912, near_memory = 41943040, bandwidth = 1555000, peak = 19500, shared_memory = 167936>

// -----

// expected-error@+1 {{vector_bytes of a GPU must be 128, but is 64}}
#target = #machine.target<"sm_80", arch = "ampere", cores = 108, vector_bytes = 64, vector_registers = 2048, fast_memory = 166912, near_memory = 41943040, bandwidth = 1555000, peak = 19500, shared_memory = 167936, matrix_peak = 312000>

// -----

// expected-error@+1 {{shared_memory is of GPUs, but the target is "host"}}
#target = #machine.target<"host", arch = "avx2", cores = 2, vector_bytes = 32, vector_registers = 16, fast_memory = 32768, near_memory = 1048576, bandwidth = 12000, peak = 300, shared_memory = 233472>

// -----

// expected-error@+1 {{vector_bytes must be 16, 32 or 64, but is 48}}
#target = #machine.target<"host", arch = "avx2", cores = 2, vector_bytes = 48, vector_registers = 16, fast_memory = 32768, near_memory = 1048576, bandwidth = 12000, peak = 300>

// -----

// expected-error@+1 {{expects 'machine.target' to be a #machine.target, but it is 3 : i64}}
module attributes {machine.target = 3 : i64} {}

// -----

// expected-error@+1 {{unknown arch "mmx"; expected amx, avx512_bf16, avx512, avx2 or generic}}
#target = #machine.target<"host", arch = "mmx", cores = 2, vector_bytes = 32, vector_registers = 16, fast_memory = 32768, near_memory = 1048576, bandwidth = 12000, peak = 300>

// -----

// expected-error@+1 {{matrix_peak is of GPUs, amx and avx512_bf16, but the arch is avx512}}
#target = #machine.target<"host", arch = "avx512", cores = 2, vector_bytes = 64, vector_registers = 32, fast_memory = 32768, near_memory = 1048576, bandwidth = 12000, peak = 300, matrix_peak = 4700>

// -----

// expected-error@+1 {{matrix_peak must be at least 1, but is 0}}
#target = #machine.target<"host", arch = "amx", cores = 2, vector_bytes = 64, vector_registers = 32, fast_memory = 32768, near_memory = 1048576, bandwidth = 12000, peak = 300>

// -----

// expected-error@+1 {{vector_bytes of amx must be 64, but is 32}}
#target = #machine.target<"host", arch = "amx", cores = 2, vector_bytes = 32, vector_registers = 32, fast_memory = 32768, near_memory = 1048576, bandwidth = 12000, peak = 300, matrix_peak = 4700>

// -----

// expected-error@+1 {{vector_bytes of avx512_bf16 must be 64, but is 32}}
#target = #machine.target<"host", arch = "avx512_bf16", cores = 2, vector_bytes = 32, vector_registers = 32, fast_memory = 32768, near_memory = 1048576, bandwidth = 12000, peak = 300, matrix_peak = 600>
