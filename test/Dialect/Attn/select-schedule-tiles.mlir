// RUN: fovea-opt %s --attach-gpu-target=target=sm_90a --attn-select-schedule=tile-rows=64 | FileCheck %s --check-prefix=SMALL
// RUN: fovea-opt %s --attach-gpu-target=target=sm_90a --attn-select-schedule=tile-rows=128 | FileCheck %s --check-prefix=LARGE

// Code for few tiles: the smallest ones are a block each; larger ones are dealt
// where a mask makes them differ, up to two for each multiprocessor.

!t = tensor<?x16x?x64xbf16>

// SMALL-LABEL: @causal
// SMALL: #attn.schedule<tile = 64x128, order = longest_first, warps = 4, stages = 2>
// LARGE-LABEL: @causal
// LARGE: #attn.schedule<tile = 128x128, order = longest_first, warps = 8, {{.*}}maximum = stale, blocks = dealt, groups = in_turn>
func.func @causal(%q: !t, %k: !t, %v: !t) -> !t {
  %o = attn.attention %q, %k, %v scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } : !t, !t, !t -> !t
  return %o : !t
}

// SMALL-LABEL: @full
// SMALL: #attn.schedule<tile = 64x128, order = linear, warps = 4
// LARGE-LABEL: @full
// LARGE: #attn.schedule<tile = 128x128, order = linear, warps = 8
// LARGE-NOT: blocks
// LARGE: tensor<
func.func @full(%q: !t, %k: !t, %v: !t) -> !t {
  %o = attn.attention %q, %k, %v scale(0.125) : !t, !t, !t -> !t
  return %o : !t
}

// A schedule that is there stays.
// SMALL-LABEL: @given
// SMALL: #attn.schedule<tile = 192x64
func.func @given(%q: !t, %k: !t, %v: !t) -> !t {
  %o = attn.attention %q, %k, %v scale(0.125)
    {schedule = #attn.schedule<tile = 192x64, order = linear, warps = 12, stages = 2>}
    : !t, !t, !t -> !t
  return %o : !t
}
