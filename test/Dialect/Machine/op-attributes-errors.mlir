// RUN: fovea-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{'func.func' op expects 'machine.target' only on a module}}
func.func private @f() attributes {machine.target = #machine.target<"host", arch = "avx2", cores = 2, vector_bytes = 32, vector_registers = 16, fast_memory = 32768, near_memory = 1048576, bandwidth = 12000, peak = 300>}

// -----

// expected-error@+1 {{has the attribute "machine.grains", which the machine dialect does not know}}
module attributes {machine.grains = 16 : i64} {}

// -----

func.func @negative(%x: f32, %init: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{expects 'machine.kernel' to be an i64 of at least 0, but it is -1 : i64}}
  %0 = linalg.fill {machine.kernel = -1 : i64} ins(%x : f32) outs(%init : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// expected-error@+1 {{'func.func' op expects 'machine.kernel' only on an op with destinations}}
func.func private @f() attributes {machine.kernel = 1 : i64}

// -----

func.func @none(%n: index) {
  // expected-error@+1 {{expects 'machine.grain' to be an i64 of at least 1, but it is 0 : i64}}
  scf.forall (%i) in (%n) {
  } {machine.grain = 0 : i64}
  return
}

// -----

func.func @narrow(%n: index) {
  // expected-error@+1 {{expects 'machine.grain' to be an i64 of at least 1, but it is 4 : i32}}
  scf.forall (%i) in (%n) {
  } {machine.grain = 4 : i32}
  return
}

// -----

// expected-error@+1 {{'func.func' op expects 'machine.grain' only on a loop}}
func.func private @f() attributes {machine.grain = 1 : i64}

// -----

gpu.module @kernels {
  // expected-error@+1 {{expects 'machine.distinct_memory' to be a unit, but it is true}}
  gpu.func @k() kernel attributes {machine.distinct_memory = true} {
    gpu.return
  }
}

// -----

// expected-error@+1 {{'builtin.module' op expects 'machine.distinct_memory' only on a launch or a function}}
module attributes {machine.distinct_memory} {}

// -----

gpu.module @kernels {
  // expected-error@+1 {{expects 'machine.starts_early' to be a unit, but it is "yes"}}
  gpu.func @k() kernel attributes {machine.starts_early = "yes"} {
    gpu.return
  }
}

// -----

// expected-error@+1 {{'builtin.module' op expects 'machine.starts_early' only on a function}}
module attributes {machine.starts_early} {}

// -----

// expected-error@+1 {{expects 'machine.messages' to be an array of strings, but it is ["a", 1]}}
func.func private @f.shapes() attributes {machine.messages = ["a", 1]}

// -----

// expected-error@+1 {{'builtin.module' op expects 'machine.messages' only on a function}}
module attributes {machine.messages = ["a"]} {}
