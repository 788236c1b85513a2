// Slots of warp groups, for queries and results, in blocks that compute several
// tiles on a machine of 2 multiprocessors with little memory: under a causal mask,
// with groups that take rows there and back, and without a mask; each also with the
// next tile's first product beside the last and with queries that the last step
// releases. The cache holds fewer heads than there are, so that groups of heads
// take turns.
//
// RUN: fovea-opt %s --attn-online-softmax --attn-tile=fuse-producers=false --convert-attn-to-tile --canonicalize --cse -o %t.plain
// RUN: fovea-opt %t.plain --tile-persist --canonicalize --tile-assign-layouts --tile-multibuffer --tile-stage-stores \
// RUN:   --tile-specialize-warps --tile-skip-rows --tile-swap-groups -o %t.shared
// RUN: fovea-opt %t.shared --tile-own-slots --canonicalize --cse -o %t.own
// RUN: FileCheck %s --check-prefix=OWN --input-file=%t.own
// RUN: fovea-opt %t.own --tile-schedule --tile-expand-pipeline --tile-overlap-items --canonicalize --cse -o %t.overlap
// RUN: fovea-opt %t.overlap --tile-release-early -o %t.early
// RUN: not diff -q %t.overlap %t.early
// RUN: fovea-run %t.shared --reference=%s --entry=causal --target=sm_90a --simulate --seeds=4 --random=1 --check | FileCheck %s
// RUN: fovea-run %t.own --reference=%s --entry=causal --target=sm_90a --simulate --seeds=8 --random=1 --check | FileCheck %s
// RUN: fovea-run %t.own --reference=%s --entry=full --target=sm_90a --simulate --seeds=8 --random=2 --check | FileCheck %s
// RUN: fovea-run %t.overlap --reference=%s --entry=causal --target=sm_90a --simulate --seeds=8 --random=1 --check | FileCheck %s
// RUN: fovea-run %t.overlap --reference=%s --entry=full --target=sm_90a --simulate --seeds=8 --random=2 --check | FileCheck %s
// RUN: fovea-run %t.early --reference=%s --entry=causal --target=sm_90a --simulate --seeds=8 --random=1 --check | FileCheck %s
// RUN: fovea-run %t.early --reference=%s --entry=full --target=sm_90a --simulate --seeds=8 --random=2 --check | FileCheck %s
// OWN-LABEL: @causal
// OWN-COUNT-2: tile.ring groups 2
// OWN-LABEL: @full
// OWN-COUNT-2: tile.ring groups 2
//
// Faults: rows of other groups; a group's slot that another one waits for, fills or
// releases; queries that are released in the first step.
// RUN: sed 's/\(tile.shift_rows %[^ ]* by\) %[^ ]*/\1 %c0/' %t.own > %t.unshifted
// RUN: not fovea-run %t.unshifted --reference=%s --entry=full --target=sm_90a --simulate --random=2 --check 2>&1 | FileCheck %s --check-prefix=UNSHIFTED
// UNSHIFTED: error: 'tile.shift_rows' op shifts rows 64 to 127 of 64 by 0; expected rows of the tile
// RUN: sed 's/= tile.shift_rows \(%[^ ]*\) by %[^ ]*/= tile.shift_rows \1 by %c-64/' %t.own > %t.first
// RUN: not fovea-run %t.first --reference=%s --entry=full --target=sm_90a --simulate --random=2 --check 2>&1 | FileCheck %s --check-prefix=FIRST
// FIRST: error: 'tile.shift_rows' op shifts rows 0 to 63 of 64 by -64
// RUN: sed 's/= tile.group/= arith.constant 0 : index/' %t.own > %t.other
// RUN: not fovea-run %t.other --reference=%s --entry=full --target=sm_90a --simulate --random=2 --check 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: error: {{.*}} of a tile of 64
// RUN: sed 's/tile.ring groups 2/tile.ring/' %t.own > %t.all
// RUN: not fovea-run %t.all --reference=%s --entry=full --target=sm_90a --simulate --random=2 --check 2>&1 | FileCheck %s --check-prefix=ALL
// ALL: error: 'tile.wait' op waits for use 1 of the ring, expected 0
// RUN: sed 's/arith.cmpi sge, \(%[^ ]*\), \(%[^ ]*\) : index/arith.cmpi sle, \1, \2 : index/' %t.early > %t.soon
// RUN: not fovea-run %t.soon --reference=%s --entry=full --target=sm_90a --simulate --random=2 --check 2>&1 | FileCheck %s --check-prefix=SOON
// SOON: error: {{.*}} use 0 of {{the|a}} ring
//
// CHECK: check: result 0: max error
// CHECK-NOT: FAILED

module attributes {machine.target = #machine.target<"sm_90a", arch = "hopper", cores = 2, vector_bytes = 128, vector_registers = 2048, fast_memory = 84000, near_memory = 262144, bandwidth = 4290000, peak = 66900, shared_memory = 233472, matrix_peak = 989000>} {
  func.func @causal(%q: tensor<1x5x300x128xbf16>, %k: tensor<1x5x300x128xbf16>) -> tensor<1x5x300x128xbf16> {
    %o = attn.attention %q, %k, %k scale(0.0883)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %keep = arith.cmpi sge, %i, %j : index
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 128x32, order = longest_first, warps = 8, stages = 2, maximum = stale, blocks = persistent>}
      : tensor<1x5x300x128xbf16>, tensor<1x5x300x128xbf16>, tensor<1x5x300x128xbf16> -> tensor<1x5x300x128xbf16>
    return %o : tensor<1x5x300x128xbf16>
  }

  func.func @full(%q: tensor<1x3x256x128xbf16>, %k: tensor<1x3x100x128xbf16>) -> tensor<1x3x256x128xbf16> {
    %o = attn.attention %q, %k, %k scale(0.0883) {schedule = #attn.schedule<tile = 128x32, order = linear, warps = 8, stages = 2, maximum = stale, blocks = persistent>}
      : tensor<1x3x256x128xbf16>, tensor<1x3x100x128xbf16>, tensor<1x3x100x128xbf16> -> tensor<1x3x256x128xbf16>
    return %o : tensor<1x3x256x128xbf16>
  }
}
