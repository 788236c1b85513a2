// A gate, a residual and the output in blocks that compute several tiles on a machine
// of 2 multiprocessors: with groups that end as their own rows need it and take rows
// there and back, and with the next tile's first product beside the last; at the end
// of the queries, where a group has none of them.
//
// RUN: fovea-opt %s --attn-online-softmax --attn-tile="fuse-producers=false all-consumers" --convert-attn-to-tile --canonicalize --cse -o %t.plain
// RUN: fovea-opt %t.plain --tile-persist --canonicalize --tile-assign-layouts --tile-multibuffer --tile-stage-stores \
// RUN:   --tile-specialize-warps --tile-skip-rows -o %t.skips
// RUN: fovea-opt %t.skips --tile-swap-groups -o %t.swaps
// RUN: fovea-opt %t.swaps --tile-own-slots --tile-schedule --tile-expand-pipeline --tile-overlap-items --tile-release-early --tile-carry-values --canonicalize --cse -o %t.overlap
// RUN: grep -c 'tile.load .*tile.fragment' %t.overlap | FileCheck %s --check-prefix=LOADS
// RUN: fovea-run %t.plain --reference=%s --entry=causal --target=sm_90a --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %t.skips --reference=%s --entry=causal --target=sm_90a --simulate --seeds=4 --random=1 --check | FileCheck %s
// RUN: fovea-run %t.swaps --reference=%s --entry=causal --target=sm_90a --simulate --seeds=4 --random=1 --check | FileCheck %s
// RUN: fovea-run %t.overlap --reference=%s --entry=causal --target=sm_90a --simulate --seeds=8 --random=1 --check | FileCheck %s
// RUN: fovea-run %t.overlap --reference=%s --entry=full --target=sm_90a --simulate --seeds=4 --random=2 --check | FileCheck %s
//
// LOADS: {{[1-9]}}
//
// Fault: what is loaded belongs to other rows than what is computed.
// RUN: sed 's/\(tile.load %[^ ]*\[%[^ ]*, %[^ ]*, \)%[^ ]*\(, .*tile.fragment\)/\1%c0\2/' %t.swaps > %t.others
// RUN: not fovea-run %t.others --reference=%s --entry=causal --target=sm_90a --simulate --random=1 --check 2>&1 | FileCheck %s --check-prefix=OTHERS
// OTHERS: FAILED
//
// CHECK: check: result 0: max error
// CHECK: check: result 1: max error
// CHECK-NOT: FAILED

!t = tensor<1x2x300x64xbf16>
!u = tensor<1x3x136x64xbf16>
module attributes {machine.target = #machine.target<"sm_90a", arch = "hopper", cores = 2, vector_bytes = 128, vector_registers = 2048, fast_memory = 232448, near_memory = 52428800, bandwidth = 4290000, peak = 66900, shared_memory = 233472, matrix_peak = 989000>} {
  func.func @causal(%q: !t, %g: !t, %r: !t) -> (!t, !t) {
    %o = attn.attention %q, %q, %q scale(0.125)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %keep = arith.cmpi sge, %i, %j : index
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 192x32, order = longest_first, warps = 12, stages = 4, maximum = stale, blocks = persistent>}
      : !t, !t, !t -> !t
    %e = tensor.empty() : !t
    %s = linalg.tanh ins(%g : !t) outs(%e : !t) -> !t
    %y = linalg.mul ins(%o, %s : !t, !t) outs(%e : !t) -> !t
    %z = linalg.add ins(%y, %r : !t, !t) outs(%e : !t) -> !t
    return %z, %o : !t, !t
  }

  // The last tile has 8 of 128 rows.
  func.func @full(%q: !u, %k: tensor<1x3x100x64xbf16>, %r: !u) -> (!u, tensor<1x3x136xf32>) {
    %o, %l = attn.attention %q, %k, %k scale(0.125) {schedule = #attn.schedule<tile = 128x32, order = linear, warps = 8, stages = 2, maximum = stale, blocks = persistent, products = alternating>}
      : !u, tensor<1x3x100x64xbf16>, tensor<1x3x100x64xbf16> -> !u, tensor<1x3x136xf32>
    %e = tensor.empty() : !u
    %z = linalg.add ins(%o, %r : !u, !u) outs(%e : !u) -> !u
    return %z, %l : !u, tensor<1x3x136xf32>
  }
}
