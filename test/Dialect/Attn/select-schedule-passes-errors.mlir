// Each pass over the keys has tiles of its own, and all of them have to fit.
// RUN: fovea-opt %s --attn-select-schedule=passes=1 | FileCheck %s
// RUN: fovea-opt %s --attn-select-schedule=passes=3 --verify-diagnostics

#sm90 = #machine.target<"sm_90a", arch = "hopper", cores = 132, vector_bytes = 128, vector_registers = 2048, fast_memory = 232448, near_memory = 52428800, bandwidth = 4290000, peak = 66900, shared_memory = 233472, matrix_peak = 989000>
module attributes {machine.target = #sm90} {
  // CHECK-LABEL: func.func @passes
  // CHECK:         schedule = #attn.schedule<tile = 192x96, order = linear, warps = 12, stages = 4, maximum = stale>
  func.func @passes(%q: tensor<1x1x?x80xbf16>, %v: tensor<1x1x?x32xbf16>) -> tensor<1x1x?x32xbf16> {
    // expected-error@+1 {{has a schedule that does not fit the target: a tile of 192x96 by 12 warps in 4 stages of each of 3 passes needs 240640 bytes of shared memory}}
    %o = attn.attention %q, %q, %v scale(0.125) {schedule = #attn.schedule<tile = 192x96, order = linear, warps = 12, stages = 4, maximum = stale>}
      : tensor<1x1x?x80xbf16>, tensor<1x1x?x80xbf16>, tensor<1x1x?x32xbf16> -> tensor<1x1x?x32xbf16>
    return %o : tensor<1x1x?x32xbf16>
  }
}
