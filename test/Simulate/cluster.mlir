// Clusters of two blocks, of tiles of queries side by side, on a machine of 6
// multiprocessors: both copy halves of the same keys and values to both, in every
// order of what blocks do; blocks that share the programs of the last rounds, that
// take one after another, and that have one each; an odd number of tiles, whose last
// cluster has a block without a query; keys that do not fill their last tile, few
// queries and keys, and groups of heads; masks, by which blocks need different keys.
//
// RUN: fovea-opt %s --attn-online-softmax --attn-tile=fuse-producers=false --convert-attn-to-tile --canonicalize --cse -o %t.plain
// RUN: fovea-opt %t.plain --tile-share-items --tile-persist --canonicalize -o %t.loops
// RUN: fovea-opt %t.loops --tile-assign-layouts --tile-multibuffer --tile-stage-stores \
// RUN:   --tile-specialize-warps --tile-skip-rows --tile-swap-groups --tile-own-slots --tile-schedule --tile-expand-pipeline \
// RUN:   --canonicalize --cse --tile-overlap-items --tile-release-early --tile-carry-values --tile-multicast --canonicalize --cse -o %t.roles
// RUN: FileCheck %s --check-prefix=ROLES --input-file=%t.roles
// RUN: fovea-run %t.plain --reference=%s --entry=tiles --target=sm_90a --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %t.loops --reference=%s --entry=shared --target=sm_90a --simulate --random=2 --check | FileCheck %s
// RUN: fovea-run %t.roles --reference=%s --entry=tiles --target=sm_90a --simulate --seeds=4 --random=1 --check | FileCheck %s
// RUN: fovea-run %t.roles --reference=%s --entry=shared --target=sm_90a --simulate --seeds=4 --random=2 --check | FileCheck %s
// RUN: fovea-run %t.roles --reference=%s --entry=persistent --target=sm_90a --simulate --seeds=4 --random=3 --check | FileCheck %s
// RUN: fovea-run %t.roles --reference=%s --entry=any --dims=300,530 --target=sm_90a --simulate --seeds=2 --random=4 --check | FileCheck %s
// RUN: fovea-run %t.roles --reference=%s --entry=any --dims=1,1 --target=sm_90a --simulate --random=4 --check | FileCheck %s
// RUN: fovea-run %t.roles --reference=%s --entry=any --dims=64,0 --target=sm_90a --simulate --random=4 --check | FileCheck %s
// RUN: fovea-run %t.roles --reference=%s --entry=any --dims=0,64 --target=sm_90a --simulate --random=4 --check | FileCheck %s
// RUN: fovea-run %t.roles --reference=%s --entry=descending --dims=300,530 --target=sm_90a --simulate --seeds=2 --random=5 --check | FileCheck %s
// RUN: fovea-run %t.roles --reference=%s --entry=descending --dims=64,0 --target=sm_90a --simulate --random=5 --check | FileCheck %s
// RUN: fovea-run %t.roles --reference=%s --entry=causal --dims=700,700 --target=sm_90a --simulate --seeds=4 --random=7 --check | FileCheck %s
// RUN: fovea-run %t.roles --reference=%s --entry=causal --dims=530,300 --target=sm_90a --simulate --seeds=2 --random=8 --check | FileCheck %s
// RUN: fovea-run %t.roles --reference=%s --entry=causal --dims=1,300 --target=sm_90a --simulate --random=8 --check | FileCheck %s
// RUN: fovea-run %t.roles --reference=%s --entry=window --dims=330,250 --target=sm_90a --simulate --seeds=4 --random=9 --check | FileCheck %s
// RUN: fovea-run %t.roles --reference=%s --entry=window --dims=64,0 --target=sm_90a --simulate --random=9 --check | FileCheck %s
// RUN: fovea-run %s --entry=one_tile --target=sm_90a --simulate --seeds=4 --random=6 --check | FileCheck %s
//
// ROLES-LABEL: func.func @tiles
// ROLES:       tile.launch {{.*}} cluster 2 warps
// ROLES-COUNT-2: tile.ring cluster 2 :
// ROLES-LABEL: func.func @shared
// ROLES-COUNT-2: tile.ring cluster 2 :
// ROLES-LABEL: func.func @persistent
// ROLES-COUNT-2: tile.ring cluster 2 :
// ROLES-LABEL: func.func @causal
// ROLES-COUNT-2: tile.ring cluster 2 :
// ROLES-LABEL: func.func @window
// ROLES-COUNT-2: tile.ring cluster 2 :
// ROLES-LABEL: func.func @any
// ROLES-COUNT-2: tile.ring cluster 2 :
//
// CHECK: check: result 0: max error
// CHECK-NOT: FAILED

module attributes {machine.target = #machine.target<"sm_90a", arch = "hopper", cores = 6, vector_bytes = 128, vector_registers = 2048, fast_memory = 232448, near_memory = 52428800, bandwidth = 4290000, peak = 66900, shared_memory = 233472, matrix_peak = 989000>} {
  // 5 tiles in 3 clusters.
  func.func @tiles(%q: tensor<1x1x290x128xbf16>, %k: tensor<1x1x150x128xbf16>) -> (tensor<1x1x290x128xbf16>, tensor<1x1x290xf32>) {
    %o, %l = attn.attention %q, %k, %k scale(0.125) {schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 2, cluster = 2>}
      : tensor<1x1x290x128xbf16>, tensor<1x1x150x128xbf16>, tensor<1x1x150x128xbf16> -> tensor<1x1x290x128xbf16>, tensor<1x1x290xf32>
    return %o, %l : tensor<1x1x290x128xbf16>, tensor<1x1x290xf32>
  }
  // 4 clusters of programs of 33 steps, for 3 at a time.
  func.func @shared(%q: tensor<1x2x250x128xbf16>, %k: tensor<1x1x520x128xbf16>) -> (tensor<1x2x250x128xbf16>, tensor<1x2x250xf32>) {
    %o, %l = attn.attention %q, %k, %k scale(0.125) {schedule = #attn.schedule<tile = 64x16, order = linear, warps = 4, stages = 2, maximum = stale, blocks = shared, cluster = 2>}
      : tensor<1x2x250x128xbf16>, tensor<1x1x520x128xbf16>, tensor<1x1x520x128xbf16> -> tensor<1x2x250x128xbf16>, tensor<1x2x250xf32>
    return %o, %l : tensor<1x2x250x128xbf16>, tensor<1x2x250xf32>
  }
  // Two groups of warps, which own slots.
  func.func @persistent(%q: tensor<2x4x200x128xf16>, %k: tensor<2x2x100x128xf16>) -> tensor<2x4x200x128xf16> {
    %o = attn.attention %q, %k, %k scale(0.125) {schedule = #attn.schedule<tile = 128x32, order = linear, warps = 8, stages = 2, maximum = stale, blocks = persistent, cluster = 2>}
      : tensor<2x4x200x128xf16>, tensor<2x2x100x128xf16>, tensor<2x2x100x128xf16> -> tensor<2x4x200x128xf16>
    return %o : tensor<2x4x200x128xf16>
  }
  func.func @one_tile(%q: tensor<1x2x20x128xbf16>, %k: tensor<1x2x50x128xbf16>) -> tensor<1x2x20x128xbf16> {
    %o = attn.attention %q, %k, %k scale(0.125) {schedule = #attn.schedule<tile = 64x16, order = linear, warps = 4, stages = 2, maximum = stale, blocks = persistent, cluster = 2>}
      : tensor<1x2x20x128xbf16>, tensor<1x2x50x128xbf16>, tensor<1x2x50x128xbf16> -> tensor<1x2x20x128xbf16>
    return %o : tensor<1x2x20x128xbf16>
  }
  // The tile of keys that is cut comes first.
  func.func @descending(%q: tensor<1x2x?x128xbf16>, %k: tensor<1x2x?x128xbf16>) -> tensor<1x2x?x128xbf16> {
    %o = attn.attention %q, %k, %k scale(0.125) {schedule = #attn.schedule<tile = 64x16, order = linear, warps = 4, stages = 2, maximum = stale, keys = descending, blocks = shared, cluster = 2>}
      : tensor<1x2x?x128xbf16>, tensor<1x2x?x128xbf16>, tensor<1x2x?x128xbf16> -> tensor<1x2x?x128xbf16>
    return %o : tensor<1x2x?x128xbf16>
  }
  // Under a mask blocks visit the keys of either, and groups of warps pass by those
  // that their own queries do not see: the longest first, in pairs of rounds, and by
  // a window of one tile a block.
  func.func @causal(%q: tensor<1x3x?x128xbf16>, %k: tensor<1x3x?x128xbf16>) -> tensor<1x3x?x128xbf16> {
    %o = attn.attention %q, %k, %k scale(0.125) mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %keep = arith.cmpi sge, %i, %j : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 128x32, order = longest_first, warps = 8, stages = 2, maximum = stale, blocks = persistent, cluster = 2>}
      : tensor<1x3x?x128xbf16>, tensor<1x3x?x128xbf16>, tensor<1x3x?x128xbf16> -> tensor<1x3x?x128xbf16>
    return %o : tensor<1x3x?x128xbf16>
  }
  func.func @window(%q: tensor<1x2x?x128xbf16>, %k: tensor<1x2x?x128xbf16>) -> tensor<1x2x?x128xbf16> {
    %o = attn.attention %q, %k, %k scale(0.125) mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %c100 = arith.constant 100 : index
      %distance = arith.subi %i, %j : index
      %near = arith.cmpi slt, %distance, %c100 : index
      %seen = arith.cmpi sge, %i, %j : index
      %keep = arith.andi %near, %seen : i1
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 64x16, order = linear, warps = 4, stages = 2, maximum = stale, cluster = 2>}
      : tensor<1x2x?x128xbf16>, tensor<1x2x?x128xbf16>, tensor<1x2x?x128xbf16> -> tensor<1x2x?x128xbf16>
    return %o : tensor<1x2x?x128xbf16>
  }
  func.func @any(%q: tensor<1x2x?x128xbf16>, %k: tensor<1x2x?x128xbf16>) -> tensor<1x2x?x128xbf16> {
    %o = attn.attention %q, %k, %k scale(0.125) {schedule = #attn.schedule<tile = 64x16, order = linear, warps = 4, stages = 2, maximum = stale, blocks = shared, cluster = 2>}
      : tensor<1x2x?x128xbf16>, tensor<1x2x?x128xbf16>, tensor<1x2x?x128xbf16> -> tensor<1x2x?x128xbf16>
    return %o : tensor<1x2x?x128xbf16>
  }
}
