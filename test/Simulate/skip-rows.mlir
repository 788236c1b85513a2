// Warp groups that end a tile's loop as their own rows need it, in blocks that
// compute several tiles on a machine of 2 multiprocessors: under a causal mask
// and at the end of the queries, with as many slots as a group passes by and
// with fewer; with groups that take rows there and back; without and with the
// next tile's first product beside the last.
//
// RUN: fovea-opt %s --attn-online-softmax --attn-tile=fuse-producers=false --convert-attn-to-tile --canonicalize --cse -o %t.plain
// RUN: fovea-opt %t.plain --tile-persist --canonicalize --tile-assign-layouts --tile-multibuffer --tile-stage-stores \
// RUN:   --tile-specialize-warps --tile-skip-rows -o %t.skips
// RUN: fovea-opt %t.skips --tile-swap-groups -o %t.swaps
// RUN: fovea-opt %t.swaps --tile-schedule --tile-expand-pipeline -o %t.skewed
// RUN: fovea-opt %t.skewed --canonicalize --cse -o %t.roles
// RUN: fovea-opt %t.skewed --tile-overlap-items --canonicalize --cse -o %t.overlap
// RUN: fovea-run %t.plain --reference=%s --entry=causal --target=sm_90a --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %t.skips --reference=%s --entry=causal --target=sm_90a --simulate --seeds=4 --random=1 --check | FileCheck %s
// RUN: fovea-run %t.swaps --reference=%s --entry=causal --target=sm_90a --simulate --seeds=4 --random=1 --check | FileCheck %s
// RUN: fovea-run %t.roles --reference=%s --entry=causal --target=sm_90a --simulate --seeds=4 --random=1 --check | FileCheck %s
// RUN: fovea-run %t.overlap --reference=%s --entry=causal --target=sm_90a --simulate --seeds=8 --random=1 --check | FileCheck %s
// RUN: fovea-run %t.overlap --reference=%s --entry=few --target=sm_90a --simulate --seeds=8 --random=2 --check | FileCheck %s
// RUN: fovea-run %t.overlap --reference=%s --entry=full --target=sm_90a --simulate --seeds=4 --random=3 --check | FileCheck %s
//
// Groups that begin where their rows do as well: a window, with as many slots as a
// group passes by and with fewer.
// RUN: fovea-run %t.skips --reference=%s --entry=window --target=sm_90a --simulate --seeds=4 --random=1 --check | FileCheck %s
// RUN: fovea-run %t.roles --reference=%s --entry=window --target=sm_90a --simulate --seeds=4 --random=1 --check | FileCheck %s
// RUN: fovea-run %t.overlap --reference=%s --entry=window --target=sm_90a --simulate --seeds=8 --random=1 --check | FileCheck %s
// RUN: fovea-run %t.overlap --reference=%s --entry=narrow --target=sm_90a --simulate --seeds=8 --random=2 --check | FileCheck %s
//
// Faults: groups that all end with the first one's rows; slots that a group does
// not pass by.
// RUN: sed 's/= tile.group/= arith.constant 0 : index/' %t.skips > %t.early
// RUN: not fovea-run %t.early --reference=%s --entry=causal --target=sm_90a --simulate --random=1 --check 2>&1 | FileCheck %s --check-prefix=EARLY
// EARLY: FAILED
// RUN: fovea-opt %t.skips --canonicalize --cse -o %t.clean
// RUN: sed 's/\(scf.for %[^ ]* = %[^ ]*#[0-9]*\) to %[^ ]* step/\1 to %c0 step/' %t.clean > %t.kept
// RUN: not fovea-run %t.kept --reference=%s --entry=causal --target=sm_90a --simulate --random=1 --check 2>&1 | FileCheck %s --check-prefix=KEPT
// KEPT: error: 'tile.acquire' op waits for ever: for use {{[0-9]+}} of its ring to be released
// KEPT: note: role "compute" warp group 0 waits here
//
// Faults: coordinates of other rows than those that products read, and rows
// beyond the tile.
// RUN: sed 's/\(tile.shift_rows %[^ ]* by\) %[^ ]*/\1 %c0/' %t.swaps > %t.unshifted
// RUN: not fovea-run %t.unshifted --reference=%s --entry=causal --target=sm_90a --simulate --random=1 --check 2>&1 | FileCheck %s --check-prefix=EARLY
// RUN: sed 's/\(tile.shift_rows %[^ ]* by\) %[^ ]*/\1 %c64/' %t.swaps > %t.beyond
// RUN: not fovea-run %t.beyond --reference=%s --entry=causal --target=sm_90a --simulate --random=1 --check 2>&1 | FileCheck %s --check-prefix=BEYOND
// BEYOND: error: 'tile.shift_rows' op shifts rows 128 to 191 of 192 by 64; expected rows of the tile, and a multiple of 64
//
// CHECK: check: result 0: max error
// CHECK-NOT: FAILED

module attributes {machine.target = #machine.target<"sm_90a", arch = "hopper", cores = 2, vector_bytes = 128, vector_registers = 2048, fast_memory = 232448, near_memory = 52428800, bandwidth = 4290000, peak = 66900, shared_memory = 233472, matrix_peak = 989000>} {
  func.func @causal(%q: tensor<1x2x300x64xbf16>) -> (tensor<1x2x300x64xbf16>, tensor<1x2x300xf32>) {
    %o, %l = attn.attention %q, %q, %q scale(0.125)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %keep = arith.cmpi sge, %i, %j : index
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 192x32, order = longest_first, warps = 12, stages = 4, maximum = stale, blocks = persistent>}
      : tensor<1x2x300x64xbf16>, tensor<1x2x300x64xbf16>, tensor<1x2x300x64xbf16> -> tensor<1x2x300x64xbf16>, tensor<1x2x300xf32>
    return %o, %l : tensor<1x2x300x64xbf16>, tensor<1x2x300xf32>
  }

  // Groups pass by up to 4 slots of 2.
  func.func @few(%q: tensor<1x3x200x64xbf16>) -> tensor<1x3x200x64xbf16> {
    %o = attn.attention %q, %q, %q scale(0.125)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %keep = arith.cmpi sge, %i, %j : index
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 192x32, order = longest_first, warps = 12, stages = 2, blocks = persistent>}
      : tensor<1x3x200x64xbf16>, tensor<1x3x200x64xbf16>, tensor<1x3x200x64xbf16> -> tensor<1x3x200x64xbf16>
    return %o : tensor<1x3x200x64xbf16>
  }

  // The last tile has 8 of 128 rows.
  func.func @full(%q: tensor<1x3x136x64xbf16>, %k: tensor<1x3x100x64xbf16>) -> tensor<1x3x136x64xbf16> {
    %o = attn.attention %q, %k, %k scale(0.125) {schedule = #attn.schedule<tile = 128x32, order = linear, warps = 8, stages = 2, maximum = stale, blocks = persistent, products = alternating>}
      : tensor<1x3x136x64xbf16>, tensor<1x3x100x64xbf16>, tensor<1x3x100x64xbf16> -> tensor<1x3x136x64xbf16>
    return %o : tensor<1x3x136x64xbf16>
  }

  func.func @window(%q: tensor<1x2x500x64xbf16>) -> (tensor<1x2x500x64xbf16>, tensor<1x2x500xf32>) {
    %o, %l = attn.attention %q, %q, %q scale(0.125)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %span = arith.constant 130 : index
        %past = arith.cmpi sge, %i, %j : index
        %distance = arith.subi %i, %j : index
        %near = arith.cmpi sle, %distance, %span : index
        %keep = arith.andi %past, %near : i1
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 192x32, order = longest_first, warps = 12, stages = 4, maximum = stale, blocks = persistent>}
      : tensor<1x2x500x64xbf16>, tensor<1x2x500x64xbf16>, tensor<1x2x500x64xbf16> -> tensor<1x2x500x64xbf16>, tensor<1x2x500xf32>
    return %o, %l : tensor<1x2x500x64xbf16>, tensor<1x2x500xf32>
  }

  // Rows in the middle see keys that those of no other group do; the last ones none.
  func.func @narrow(%q: tensor<1x3x600x64xbf16>, %k: tensor<1x3x450x64xbf16>) -> tensor<1x3x600x64xbf16> {
    %o = attn.attention %q, %k, %k scale(0.125)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %span = arith.constant 20 : index
        %past = arith.cmpi sge, %i, %j : index
        %distance = arith.subi %i, %j : index
        %near = arith.cmpi sle, %distance, %span : index
        %keep = arith.andi %past, %near : i1
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 192x32, order = longest_first, warps = 12, stages = 2, blocks = persistent>}
      : tensor<1x3x600x64xbf16>, tensor<1x3x450x64xbf16>, tensor<1x3x450x64xbf16> -> tensor<1x3x600x64xbf16>
    return %o : tensor<1x3x600x64xbf16>
  }
}
