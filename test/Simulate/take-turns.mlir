// Warp groups that issue products in turn: four that alternate, two whose products run
// beside their softmax, whose blocks share tiles, under a causal mask and on packed
// sequences, and three with a soft cap, of any number of rows and of keys.
//
// DEFINE: %{run} = fovea-run %s --target=sm_90a --simulate --check --seeds=4
// RUN: %{run} --entry=four --random=1 --dims=513 | FileCheck %s
// RUN: %{run} --entry=four --random=2 --dims=1 | FileCheck %s
// RUN: %{run} --entry=four --random=3 --dims=q:1x2x300x64 --dims=k:1x2x0x64 | FileCheck %s
// RUN: %{run} --entry=two --random=4 --dims=700 | FileCheck %s
// RUN: %{run} --entry=two --random=5 --dims=0 | FileCheck %s
// RUN: %{run} --entry=shared --random=6 --dims=q:1x3x390x64 --dims=k:1x3x1100x64 | FileCheck %s
// RUN: %{run} --entry=sequences --random=7 | FileCheck %s
// RUN: %{run} --entry=cap --random=8 --dims=450 | FileCheck %s
//
// CHECK: check: result 0: max error
// CHECK-NOT: FAILED
//
// Faults, found whatever the order of roles: no group has the turn first; the first has
// one that it never takes; a turn that is not passed; and one that only some groups take.
// RUN: fovea-opt %s --attn-online-softmax --attn-tile=fuse-producers=false --convert-attn-to-tile --canonicalize \
// RUN:   --cse --tile-persist --tile-assign-layouts --tile-multibuffer --tile-stage-stores \
// RUN:   --tile-specialize-warps --tile-skip-rows --tile-schedule --tile-expand-pipeline --tile-take-turns -o %t.turns
// DEFINE: %{again} = --reference=%s --target=sm_90a --simulate --check --entry=plain --random=1 --seed=3
// RUN: fovea-run %t.turns %{again} | FileCheck %s
// RUN: sed '/scf.if .* {$/{n;/pass_group_turn/d}' %t.turns > %t.none
// RUN: not fovea-run %t.none %{again} 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: sed 's/^\( *\)tile.take_group_turn/\1tile.pass_group_turn/' %t.turns > %t.twice
// RUN: not fovea-run %t.twice %{again} 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: sed '/tile.mma_async/{n;/pass_group_turn/d}' %t.turns > %t.kept
// RUN: not fovea-run %t.kept %{again} 2>&1 | FileCheck %s --check-prefix=NONE
//
// NONE: role "compute" warp group 0 waits here: for the warp group before to pass its turn
// TWICE: error: 'tile.pass_group_turn' op passes a turn to warp group [[#]], which has not taken the one before

!x = tensor<1x2x?x64xf16>
!y = tensor<1x3x?x64xf16>
!z = tensor<1x1x230x64xf16>
!p = tensor<1x1x384x64xf16>
module attributes {machine.target = #machine.target<"sm_90a", arch = "hopper", cores = 2, vector_bytes = 128, vector_registers = 2048, fast_memory = 232448, near_memory = 52428800, bandwidth = 4290000, peak = 66900, shared_memory = 233472, matrix_peak = 989000>} {
func.func @four(%q: !x, %k: !x) -> !x {
  %o = attn.attention %q, %k, %k scale(0.125)
    {schedule = #attn.schedule<tile = 256x64, order = linear, warps = 16, stages = 2, maximum = stale, blocks = persistent, products = alternating, groups = in_turn>}
    : !x, !x, !x -> !x
  return %o : !x
}
func.func @two(%q: !x) -> !x {
  %o = attn.attention %q, %q, %q scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %keep = arith.cmpi sge, %i, %j : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 128x128, order = longest_first, warps = 8, stages = 2, maximum = stale, blocks = dealt, groups = in_turn>}
    : !x, !x, !x -> !x
  return %o : !x
}
func.func @shared(%q: !y, %k: !y) -> !y {
  %o = attn.attention %q, %k, %k scale(0.125)
    {schedule = #attn.schedule<tile = 128x64, order = linear, warps = 8, stages = 2, maximum = stale, blocks = shared, groups = in_turn>}
    : !y, !y, !y -> !y
  return %o : !y
}
func.func @cap(%q: !x) -> !x {
  %o = attn.attention %q, %q, %q scale(0.125)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %cap = arith.constant 3.0 : f32
      %x = arith.divf %s, %cap : f32
      %t = math.tanh %x : f32
      %y = arith.mulf %t, %cap : f32
      attn.yield %y : f32
    } {schedule = #attn.schedule<tile = 192x64, order = linear, warps = 12, stages = 2, maximum = stale, blocks = shared, products = alternating, groups = in_turn>}
    : !x, !x, !x -> !x
  return %o : !x
}
func.func @sequences(%q: !z, %first: tensor<230xi32>, %end: tensor<230xi32>) -> !z {
  %o = attn.attention %q, %q, %q scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %f = tensor.extract %first[%i] : tensor<230xi32>
      %fi = arith.index_cast %f : i32 to index
      %e = tensor.extract %end[%i] : tensor<230xi32>
      %ei = arith.index_cast %e : i32 to index
      %x = arith.cmpi sge, %j, %fi : index
      %y = arith.cmpi slt, %j, %ei : index
      %keep = arith.andi %x, %y : i1
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 128x128, order = longest_first, warps = 8, stages = 2, maximum = stale, queries = sequences, blocks = dealt, groups = in_turn>}
    : !z, !z, !z -> !z
  return %o : !z
}
func.func @plain(%q: !p, %k: tensor<1x1x320x64xf16>) -> !p {
  %o = attn.attention %q, %k, %k scale(0.125)
    {schedule = #attn.schedule<tile = 128x64, order = linear, warps = 8, stages = 2, maximum = stale, blocks = persistent, groups = in_turn>}
    : !p, tensor<1x1x320x64xf16>, tensor<1x1x320x64xf16> -> !p
  return %o : !p
}
}
