// Tiles under a causal mask that blocks of a machine of 2 multiprocessors get when they are
// free: none, one for a block, two, which need no counter, and more, the last ones of all
// heads in the end; groups of warps that pass by what their rows do not need, and four of
// them, which alternate; ids of documents, whose tiles are sorted on the GPU.
//
// DEFINE: %{run} = fovea-run %s --target=sm_90a --simulate --check --seeds=4
// RUN: %{run} --entry=three --random=1 --dims=700 | FileCheck %s
// RUN: %{run} --entry=three --random=9 --dims=0 | FileCheck %s
// RUN: %{run} --entry=three --random=2 --dims=1 | FileCheck %s
// RUN: %{run} --entry=three --random=3 --dims=193 | FileCheck %s
// RUN: %{run} --entry=three --random=4 --dims=385 | FileCheck %s
// RUN: %{run} --entry=four --random=5 --dims=640 | FileCheck %s
// RUN: %{run} --entry=documents --random=6 --integers=0:3 | FileCheck %s
// RUN: %{run} --entry=few --random=8 | FileCheck %s
// RUN: fovea-run %s --target=sm_80 --simulate --check --entry=documents --random=7 --integers=0:3 | FileCheck %s
//
// CHECK: check: result 0: max error
// CHECK-NOT: FAILED
//
// Fault: a number that is taken where the counter has none.
// RUN: fovea-opt %s --attn-online-softmax --attn-tile=fuse-producers=false --attn-list-tiles --attn-order-tiles \
// RUN:   --convert-attn-to-tile --canonicalize --cse --tile-persist --tile-assign-layouts --tile-multibuffer \
// RUN:   --tile-stage-stores --tile-specialize-warps --tile-skip-rows --tile-swap-groups --tile-schedule \
// RUN:   --tile-expand-pipeline --tile-deal-items -o %t.dealt
// RUN: fovea-run %t.dealt --reference=%s --target=sm_90a --simulate --check --entry=three --random=3 --dims=193 | FileCheck %s
// RUN: sed '/role "deal"/,/role "compute"/s/select %\([0-9]*\), %false[_0-9]*, %[0-9]* : i1/select %\1, %\1, %\1 : i1/' %t.dealt > %t.taken
// RUN: not fovea-run %t.taken --reference=%s --target=sm_90a --simulate --check --entry=three --random=3 --dims=193 2>&1 | FileCheck %s --check-prefix=TAKEN
// TAKEN: 'tile.claim' op takes a number of a counter without elements

!x = tensor<1x2x?x128xbf16>
!y = tensor<1x3x?x64xf16>
!z = tensor<1x3x400x64xbf16>
module attributes {machine.target = #machine.target<"sm_90a", arch = "hopper", cores = 2, vector_bytes = 128, vector_registers = 2048, fast_memory = 232448, near_memory = 52428800, bandwidth = 4290000, peak = 66900, shared_memory = 233472, matrix_peak = 989000>} {
func.func @three(%q: !x, %k: !x, %v: !x) -> !x {
  %o = attn.attention %q, %k, %v scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %keep = arith.cmpi sge, %i, %j : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 192x64, order = longest_first, warps = 12, stages = 2, maximum = stale, blocks = dealt>}
    : !x, !x, !x -> !x
  return %o : !x
}
func.func @four(%q: !y, %k: !y, %v: !y) -> !y {
  %o = attn.attention %q, %k, %v scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %keep = arith.cmpi sge, %i, %j : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 256x64, order = longest_first, warps = 16, stages = 2, maximum = stale, blocks = dealt, products = alternating>}
    : !y, !y, !y -> !y
  return %o : !y
}
func.func @few(%q: tensor<1x2x200x64xf16>) -> tensor<1x2x200x64xf16> {
  %o = attn.attention %q, %q, %q scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %keep = arith.cmpi sge, %i, %j : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 128x64, order = longest_first, warps = 8, stages = 2, maximum = stale, blocks = dealt>}
    : tensor<1x2x200x64xf16>, tensor<1x2x200x64xf16>, tensor<1x2x200x64xf16> -> tensor<1x2x200x64xf16>
  return %o : tensor<1x2x200x64xf16>
}
func.func @documents(%q: !z, %ids: tensor<400xi32>) -> !z {
  %o = attn.attention %q, %q, %q scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %x = tensor.extract %ids[%i] : tensor<400xi32>
      %y = tensor.extract %ids[%j] : tensor<400xi32>
      %same = arith.cmpi eq, %x, %y : i32
      %past = arith.cmpi sge, %i, %j : index
      %keep = arith.andi %past, %same : i1
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 64x32, order = longest_first, warps = 4, stages = 2, maximum = exact, blocks = dealt>}
    : !z, !z, !z -> !z
  return %o : !z
}
}
