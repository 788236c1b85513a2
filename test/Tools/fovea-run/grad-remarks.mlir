// What is decided about gradients is said of the user's lines, once, and only
// where it is not what was asked for.

// RUN: fovea-run %s --grad --random=1 2>&1 | FileCheck %s
// RUN: fovea-run %s --grad --random=1 --recompute=never 2>&1 | FileCheck %s --check-prefix=ASKED
// RUN: fovea-run %s --grad --random=1 --recompute=always 2>&1 | FileCheck %s --check-prefix=ASKED
// RUN: not fovea-run %s --grad --random=1 --dims=8 2>&1 | FileCheck %s --check-prefix=DIMS

// CHECK-NOT: remark
// CHECK: fovea-run: remark: line [[#@LINE+17]]: probabilities are saved, because the model predicts {{[0-9.]+}} us where they are recomputed, and {{[0-9.]+}} us where 64.0 KiB of them are saved{{$}}
// CHECK-NOT: remark
// CHECK: result 0: f32 1x1x128x64
// ASKED-NOT: remark
// ASKED: result 3 (gradient of %v): f32 1x1x128x64
// DIMS: fovea-run: --dims=8: no random operand

!t = tensor<1x1x128x64xf32>
!s = tensor<1x1x128x128xf32>

// A machine with all the bandwidth that it can use.
module attributes {machine.target = #machine.target<"host", arch = "generic", cores = 2,
    vector_bytes = 16, vector_registers = 16, fast_memory = 32768,
    near_memory = 1048576, bandwidth = 40000000, peak = 300>} {
func.func @attend(%q: !t, %k: !t, %v: !t) -> !t {
  %s = attn.scores %q, %k : !t, !t -> !s
  %p = attn.softmax %s : !s -> !s
  %o = attn.values %p, %v : !s, !t -> !t
  return %o : !t
}
}
