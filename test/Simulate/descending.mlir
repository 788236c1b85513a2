// Keys from the last tile to the first, under maxima of earlier steps: scores that
// grow along the keys; rows that the first steps have no key for, and rows without
// any; lengths that are no multiple of a tile; queries longer than keys; windows;
// tiles in a list; parts of the keys. In blocks that compute one tile and several, on
// a machine of 2 multiprocessors, whose warp groups begin a tile's loop as their own
// rows need it, with as many slots as a group passes by and with fewer.
//
// RUN: fovea-opt %s --attn-online-softmax --attn-tile=fuse-producers=false --attn-list-tiles --convert-attn-to-tile --canonicalize --cse -o %t.plain
// RUN: fovea-opt %t.plain --tile-persist --canonicalize --tile-assign-layouts --tile-multibuffer --tile-stage-stores \
// RUN:   --tile-specialize-warps --tile-skip-rows -o %t.skips
// RUN: fovea-opt %t.skips --tile-swap-groups --tile-schedule --tile-expand-pipeline -o %t.skewed
// RUN: fovea-opt %t.skewed --canonicalize --cse -o %t.roles
// RUN: fovea-opt %t.skewed --tile-overlap-items --canonicalize --cse -o %t.overlap
// RUN: fovea-run %t.plain --reference=%s --entry=alibi --target=sm_90a --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %t.skips --reference=%s --entry=alibi --target=sm_90a --simulate --seeds=4 --random=1 --check | FileCheck %s
// RUN: fovea-run %t.roles --reference=%s --entry=alibi --target=sm_90a --simulate --seeds=4 --random=1 --check | FileCheck %s
// RUN: fovea-run %t.overlap --reference=%s --entry=alibi --target=sm_90a --simulate --seeds=8 --random=1 --check | FileCheck %s
// RUN: fovea-run %t.overlap --reference=%s --entry=few --target=sm_90a --simulate --seeds=8 --random=2 --check | FileCheck %s
// RUN: fovea-run %t.overlap --reference=%s --entry=full --target=sm_90a --simulate --seeds=8 --random=3 --check | FileCheck %s
// RUN: fovea-run %s --entry=alibi --target=sm_90a --simulate --random=4 --check | FileCheck %s
// RUN: fovea-run %s --entry=few --target=sm_90a --simulate --random=5 --check | FileCheck %s
// RUN: fovea-run %s --entry=empty --target=sm_90a --simulate --random=6 --check | FileCheck %s
// RUN: fovea-run %s --entry=empty_items --target=sm_90a --simulate --random=6 --seeds=4 --check | FileCheck %s
// RUN: fovea-run %s --entry=window --target=sm_90a --simulate --random=7 --check | FileCheck %s
// RUN: fovea-run %s --entry=long --target=sm_90a --simulate --random=8 --check | FileCheck %s
// RUN: fovea-run %s --entry=any --dims=1,1 --target=sm_90a --simulate --random=9 --check | FileCheck %s
// RUN: fovea-run %s --entry=any --dims=0,5 --target=sm_90a --simulate --random=9 --check
// RUN: fovea-run %s --entry=any --dims=77,0 --target=sm_90a --simulate --random=9 --check | FileCheck %s
// RUN: fovea-run %s --entry=any --dims=200,333 --target=sm_90a --simulate --random=9 --check | FileCheck %s
// RUN: fovea-run %s --entry=any --dims=333,200 --target=sm_90a --simulate --random=9 --check | FileCheck %s
// RUN: fovea-run %s --entry=turns --dims=300,333 --target=sm_90a --simulate --seeds=4 --random=9 --check | FileCheck %s
// RUN: fovea-run %s --entry=turns --dims=1,64 --target=sm_90a --simulate --seeds=4 --random=9 --check | FileCheck %s
// RUN: fovea-run %s --entry=turns --dims=130,2200 --target=sm_90a --simulate --seeds=4 --random=9 --check | FileCheck %s
// RUN: fovea-run %s --entry=documents --target=sm_90a --simulate --random=10 --check | FileCheck %s
// RUN: fovea-run %s --entry=padded --target=sm_90a --simulate --random=10 --check | FileCheck %s
// RUN: fovea-run %s --entry=parts --target=sm_90a --simulate --random=11 --check | FileCheck %s
// RUN: fovea-run %s --entry=passes --strategy=two-pass --target=sm_90a --simulate --random=13 --check | FileCheck %s
//
// Faults: groups that all begin with the last one's rows; slots that a group does not
// pass by.
// RUN: sed 's/= tile.group/= arith.constant 0 : index/' %t.skips > %t.late
// RUN: not fovea-run %t.late --reference=%s --entry=alibi --target=sm_90a --simulate --random=1 --check 2>&1 | FileCheck %s --check-prefix=LATE
// LATE: FAILED
// RUN: sed 's/\(scf.for %[^ ]* = %[^ ]* to\) %[^ ]* \(step %[^ ]* {\)/\1 %c0 \2/' %t.skips > %t.kept
// RUN: not fovea-run %t.kept --reference=%s --entry=alibi --target=sm_90a --simulate --random=1 --check 2>&1 | FileCheck %s --check-prefix=KEPT
// KEPT: error: 'tile.wait' op waits for use 2 of the ring, expected 0: uses count from 0
// KEPT: note: in block (0) of this launch, role "compute", warp group 0
//
// CHECK: check: result 0: max error
// CHECK-NOT: FAILED

module attributes {machine.target = #machine.target<"sm_90a", arch = "hopper", cores = 2, vector_bytes = 128, vector_registers = 2048, fast_memory = 232448, near_memory = 52428800, bandwidth = 4290000, peak = 66900, shared_memory = 233472, matrix_peak = 989000>} {
  func.func @alibi(%q: tensor<1x2x300x64xbf16>) -> (tensor<1x2x300x64xbf16>, tensor<1x2x300xf32>) {
    %o, %l = attn.attention %q, %q, %q scale(0.125)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %d = arith.subi %j, %i : index
        %n = arith.index_cast %d : index to i32
        %x = arith.sitofp %n : i32 to f32
        %slope = arith.constant 0.25 : f32
        %y = arith.mulf %x, %slope : f32
        %r = arith.addf %s, %y : f32
        attn.yield %r : f32
      } mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %keep = arith.cmpi sge, %i, %j : index
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 192x32, order = longest_first, warps = 12, stages = 4, maximum = stale, keys = descending, blocks = persistent>}
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
      } {schedule = #attn.schedule<tile = 192x32, order = longest_first, warps = 12, stages = 2, keys = descending, blocks = persistent>}
      : tensor<1x3x200x64xbf16>, tensor<1x3x200x64xbf16>, tensor<1x3x200x64xbf16> -> tensor<1x3x200x64xbf16>
    return %o : tensor<1x3x200x64xbf16>
  }

  // Blocks share tiles, and so their loops over keys.
  func.func @turns(%q: tensor<1x2x?x64xbf16>, %k: tensor<1x2x?x64xbf16>) -> tensor<1x2x?x64xbf16> {
    %o = attn.attention %q, %k, %k scale(0.125) {schedule = #attn.schedule<tile = 128x64, order = linear, warps = 8, stages = 4, maximum = stale, keys = descending, blocks = shared, products = alternating, groups = in_turn>}
      : tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16> -> tensor<1x2x?x64xbf16>
    return %o : tensor<1x2x?x64xbf16>
  }

  // The last tile has 8 of 128 rows.
  func.func @full(%q: tensor<1x3x136x64xbf16>, %k: tensor<1x3x100x64xbf16>) -> tensor<1x3x136x64xbf16> {
    %o = attn.attention %q, %k, %k scale(0.125) {schedule = #attn.schedule<tile = 128x32, order = linear, warps = 8, stages = 2, maximum = stale, keys = descending, blocks = persistent, products = alternating>}
      : tensor<1x3x136x64xbf16>, tensor<1x3x100x64xbf16>, tensor<1x3x100x64xbf16> -> tensor<1x3x136x64xbf16>
    return %o : tensor<1x3x136x64xbf16>
  }

  // Rows before 90 have no key; the first steps of later tiles have keys for their
  // last rows only.
  func.func @empty(%q: tensor<1x1x300x64xf16>) -> (tensor<1x1x300x64xf16>, tensor<1x1x300xf32>) {
    %o, %l = attn.attention %q, %q, %q scale(1.0)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %c90 = arith.constant 90 : index
        %last = arith.subi %i, %c90 : index
        %keep = arith.cmpi sge, %last, %j : index
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 128x128, order = longest_first, warps = 8, stages = 2, maximum = stale, keys = descending>}
      : tensor<1x1x300x64xf16>, tensor<1x1x300x64xf16>, tensor<1x1x300x64xf16> -> tensor<1x1x300x64xf16>, tensor<1x1x300xf32>
    return %o, %l : tensor<1x1x300x64xf16>, tensor<1x1x300xf32>
  }

  func.func @empty_items(%q: tensor<1x3x300x64xf16>) -> tensor<1x3x300x64xf16> {
    %o = attn.attention %q, %q, %q scale(1.0)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %c150 = arith.constant 150 : index
        %last = arith.subi %i, %c150 : index
        %keep = arith.cmpi sge, %last, %j : index
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 128x32, order = longest_first, warps = 8, stages = 2, maximum = stale, keys = descending, blocks = persistent>}
      : tensor<1x3x300x64xf16>, tensor<1x3x300x64xf16>, tensor<1x3x300x64xf16> -> tensor<1x3x300x64xf16>
    return %o : tensor<1x3x300x64xf16>
  }

  // The first step of a tile's last rows, and the last of its first, are partial.
  func.func @window(%q: tensor<1x2x300x64xbf16>) -> tensor<1x2x300x64xbf16> {
    %o = attn.attention %q, %q, %q scale(0.125)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %c50 = arith.constant 50 : index
        %d = arith.subi %i, %j : index
        %near = arith.cmpi slt, %d, %c50 : index
        %causal = arith.cmpi sge, %i, %j : index
        %keep = arith.andi %near, %causal : i1
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 256x64, order = linear, warps = 16, stages = 4, maximum = stale, keys = descending, blocks = persistent, products = alternating>}
      : tensor<1x2x300x64xbf16>, tensor<1x2x300x64xbf16>, tensor<1x2x300x64xbf16> -> tensor<1x2x300x64xbf16>
    return %o : tensor<1x2x300x64xbf16>
  }

  // Scores that shrink along the keys: the first step has the least of them, by a
  // factor that f16 does not have room for.
  func.func @long(%q: tensor<1x1x64x16xf16>, %k: tensor<1x1x1000x16xf16>, %v: tensor<1x1x1000x16xf16>) -> tensor<1x1x64x16xf16> {
    %o = attn.attention %q, %k, %v scale(0.01)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %slope = arith.constant -0.02103 : f32
        %n = arith.index_cast %j : index to i32
        %x = arith.sitofp %n : i32 to f32
        %g = arith.mulf %x, %slope : f32
        %r = arith.addf %s, %g : f32
        attn.yield %r : f32
      } {schedule = #attn.schedule<tile = 64x16, order = linear, warps = 4, stages = 2, maximum = stale, keys = descending>}
      : tensor<1x1x64x16xf16>, tensor<1x1x1000x16xf16>, tensor<1x1x1000x16xf16> -> tensor<1x1x64x16xf16>
    return %o : tensor<1x1x64x16xf16>
  }

  func.func @any(%q: tensor<1x1x?x64xbf16>, %k: tensor<1x1x?x64xbf16>) -> tensor<1x1x?x64xbf16> {
    %o = attn.attention %q, %k, %k scale(0.125)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %keep = arith.cmpi sge, %i, %j : index
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 192x64, order = longest_first, warps = 12, stages = 2, maximum = stale, keys = descending>}
      : tensor<1x1x?x64xbf16>, tensor<1x1x?x64xbf16>, tensor<1x1x?x64xbf16> -> tensor<1x1x?x64xbf16>
    return %o : tensor<1x1x?x64xbf16>
  }

  func.func @documents(%q: tensor<1x1x300x64xbf16>) -> tensor<1x1x300x64xbf16> {
    %o = attn.attention %q, %q, %q scale(0.125)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %c70 = arith.constant 70 : index
        %a = arith.divui %i, %c70 : index
        %c = arith.divui %j, %c70 : index
        %keep = arith.cmpi eq, %a, %c : index
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 128x32, order = linear, warps = 8, stages = 2, maximum = stale, keys = descending, blocks = persistent>}
      : tensor<1x1x300x64xbf16>, tensor<1x1x300x64xbf16>, tensor<1x1x300x64xbf16> -> tensor<1x1x300x64xbf16>
    return %o : tensor<1x1x300x64xbf16>
  }

  // The first tile of keys, which is the last one visited, begins at key 37.
  func.func @padded(%q: tensor<1x1x300x64xbf16>) -> tensor<1x1x300x64xbf16> {
    %o = attn.attention %q, %q, %q scale(0.125)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %c37 = arith.constant 37 : index
        %keep = arith.cmpi sge, %j, %c37 : index
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 128x32, order = linear, warps = 8, stages = 2, maximum = stale, keys = descending, blocks = persistent>}
      : tensor<1x1x300x64xbf16>, tensor<1x1x300x64xbf16>, tensor<1x1x300x64xbf16> -> tensor<1x1x300x64xbf16>
    return %o : tensor<1x1x300x64xbf16>
  }

  func.func @parts(%q: tensor<1x2x8x64xbf16>, %k: tensor<1x2x300x64xbf16>) -> tensor<1x2x8x64xbf16> {
    %o = attn.attention %q, %k, %k scale(0.125) {schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 2, maximum = stale, keys = descending, split = 3>}
      : tensor<1x2x8x64xbf16>, tensor<1x2x300x64xbf16>, tensor<1x2x300x64xbf16> -> tensor<1x2x8x64xbf16>
    return %o : tensor<1x2x8x64xbf16>
  }

  func.func @passes(%q: tensor<1x2x150x64xbf16>, %k: tensor<1x2x100x64xbf16>) -> tensor<1x2x150x64xbf16> {
    %o = attn.attention %q, %k, %k scale(0.125) {schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 2, keys = descending>}
      : tensor<1x2x150x64xbf16>, tensor<1x2x100x64xbf16>, tensor<1x2x100x64xbf16> -> tensor<1x2x150x64xbf16>
    return %o : tensor<1x2x150x64xbf16>
  }
}
