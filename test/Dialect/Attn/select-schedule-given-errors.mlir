// RUN: fovea-opt %s --split-input-file --verify-diagnostics --attn-select-schedule

!t = tensor<1x2x64x16xf32>
// expected-error@+1 {{attn-select-schedule: expects 'attn.schedules' to have a schedule for each of 1 attentions that have none, but it has 2}}
module attributes {attn.schedules = [unit, unit]} {
  func.func @f(%q: !t, %k: !t, %v: !t) -> !t {
    %o = attn.attention %q, %k, %v scale(1.0) : !t, !t, !t -> !t
    return %o : !t
  }
}

// -----

!t = tensor<1x2x64x16xf32>
module attributes {attn.schedules = [#attn.schedule<tile = 4000000x64, order = linear>], machine.target = #machine.target<"host", arch = "avx512", cores = 2, vector_bytes = 64, vector_registers = 32, fast_memory = 32768, near_memory = 1048576, bandwidth = 10000, peak = 100>} {
  func.func @f(%q: !t, %k: !t, %v: !t) -> !t {
    // expected-error@+1 {{has a schedule that does not fit the target: a tile of 4000000x64 needs 1568008192 bytes, but a core of "host" has 1048576}}
    %o = attn.attention %q, %k, %v scale(1.0) : !t, !t, !t -> !t
    return %o : !t
  }
}

// -----

// expected-error@+1 {{expects 'attn.schedules' to be an array of #attn.schedule or unit, but it is [1]}}
module attributes {attn.schedules = [1]} {}

// -----

// expected-error@+1 {{expects 'attn.schedules' to be an array of #attn.schedule or unit, but it is unit}}
module attributes {attn.schedules} {}

// -----

// expected-error@+1 {{expects 'attn.schedules' only on a module}}
func.func private @f() attributes {attn.schedules = [unit]}
