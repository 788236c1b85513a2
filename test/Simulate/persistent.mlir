// Blocks that compute several tiles of queries, on a machine of 3 multiprocessors,
// while copies run ahead into the next tile and results go out: in linear order,
// and there and back, with tiles and rows without a key; with the exact maximum
// and an earlier one, and a score region that depends on the head; then with the first product of a tile beside the last one of
// the tile before.
//
// RUN: fovea-opt %s --attn-online-softmax --attn-tile=fuse-producers=false --convert-attn-to-tile --canonicalize --cse -o %t.plain
// RUN: fovea-opt %t.plain --tile-persist --canonicalize -o %t.loops
// RUN: fovea-opt %t.loops --tile-assign-layouts --tile-multibuffer --tile-stage-stores \
// RUN:   --tile-specialize-warps --tile-schedule --tile-expand-pipeline -o %t.skewed
// RUN: fovea-opt %t.skewed --canonicalize --cse -o %t.roles
// RUN: fovea-opt %t.skewed --tile-overlap-items --canonicalize --cse -o %t.overlap
// RUN: FileCheck %s --check-prefix=ROLES --input-file=%t.roles
// RUN: fovea-run %t.loops --reference=%s --entry=linear --target=sm_90a --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %t.loops --reference=%s --entry=rest --target=sm_90a --simulate --random=5 --check | FileCheck %s
// RUN: fovea-run %t.roles --reference=%s --entry=linear --target=sm_90a --simulate --seeds=6 --random=1 --check | FileCheck %s
// RUN: fovea-run %t.roles --reference=%s --entry=snaked --target=sm_90a --simulate --seeds=6 --random=2 --check | FileCheck %s
// RUN: fovea-run %t.roles --reference=%s --entry=single --target=sm_90a --simulate --seeds=6 --random=3 --check | FileCheck %s
// RUN: fovea-run %t.roles --reference=%s --entry=scores --target=sm_90a --simulate --seeds=6 --random=4 --check | FileCheck %s
// RUN: fovea-run %t.overlap --reference=%s --entry=linear --target=sm_90a --simulate --seeds=6 --random=1 --check | FileCheck %s
// RUN: fovea-run %t.overlap --reference=%s --entry=snaked --target=sm_90a --simulate --seeds=6 --random=2 --check | FileCheck %s
// RUN: fovea-run %t.overlap --reference=%s --entry=single --target=sm_90a --simulate --seeds=6 --random=3 --check | FileCheck %s
// RUN: fovea-run %t.overlap --reference=%s --entry=scores --target=sm_90a --simulate --seeds=6 --random=4 --check | FileCheck %s
// RUN: fovea-run %s --entry=one_step --target=sm_90a --simulate --seeds=6 --random=6 --check | FileCheck %s
// RUN: fovea-run %s --entry=one_step_in_turn --target=sm_90a --simulate --seeds=6 --random=7 --check | FileCheck %s
// RUN: fovea-opt %t.overlap --tile-carry-values --canonicalize -o %t.carried
// RUN: not diff -q %t.overlap %t.carried
// RUN: fovea-run %t.carried --reference=%s --entry=snaked --target=sm_90a --simulate --seeds=6 --random=2 --check | FileCheck %s
//
// Faults: a result that the next one overwrites while it is stored, and queries
// whose slot the next tile's never get.
// RUN: sed '/tile.wait_stores/d' %t.roles > %t.unread
// RUN: not fovea-run %t.unread --reference=%s --entry=linear --target=sm_90a --simulate --random=1 --check 2>&1 | FileCheck %s --check-prefix=UNREAD
// UNREAD: error: 'tile.release' op releases use 0 of the ring while it is read
// RUN: sed '/tile.release .*ring<2 x !tile.shared<64x64/d' %t.roles > %t.kept
// RUN: not fovea-run %t.kept --reference=%s --entry=linear --target=sm_90a --simulate --random=1 --check 2>&1 | FileCheck %s --check-prefix=KEPT
// KEPT: error: 'tile.acquire' op waits for ever: for use 0 of its ring to be released, so that use 2 may begin
//
// CHECK: check: result 0: max error
// CHECK-NOT: FAILED
//
// ROLES-LABEL: func @linear
// ROLES:         tile.role "compute"
// ROLES:           scf.for
// ROLES:             scf.for
// ROLES:             tile.write
// ROLES:         tile.role "load"
// ROLES:           scf.for
// ROLES:             tile.acquire
// ROLES:             scf.for
// ROLES:         tile.role "store"
// ROLES:           scf.for
// ROLES:             tile.wait
// ROLES-NEXT:        tile.store_async
// ROLES-NEXT:        tile.wait_stores
// ROLES-NEXT:        tile.release

module attributes {machine.target = #machine.target<"sm_90a", arch = "hopper", cores = 3, vector_bytes = 128, vector_registers = 2048, fast_memory = 232448, near_memory = 52428800, bandwidth = 4290000, peak = 66900, shared_memory = 233472, matrix_peak = 989000>} {
  func.func @linear(%q: tensor<2x2x150x64xbf16>, %k: tensor<2x2x100x64xbf16>) -> (tensor<2x2x150x64xbf16>, tensor<2x2x150xf32>) {
    %o, %l = attn.attention %q, %k, %k scale(0.125) {schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 2, blocks = persistent>}
      : tensor<2x2x150x64xbf16>, tensor<2x2x100x64xbf16>, tensor<2x2x100x64xbf16> -> tensor<2x2x150x64xbf16>, tensor<2x2x150xf32>
    return %o, %l : tensor<2x2x150x64xbf16>, tensor<2x2x150xf32>
  }

  func.func @snaked(%q: tensor<1x3x150x64xbf16>, %k: tensor<1x3x90x64xbf16>) -> tensor<1x3x150x64xbf16> {
    %o = attn.attention %q, %k, %k scale(0.125)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %c20 = arith.constant 20 : index
        %last = arith.subi %i, %c20 : index
        %keep = arith.cmpi sge, %last, %j : index
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 64x32, order = longest_first, warps = 4, stages = 2, maximum = stale, blocks = persistent>}
      : tensor<1x3x150x64xbf16>, tensor<1x3x90x64xbf16>, tensor<1x3x90x64xbf16> -> tensor<1x3x150x64xbf16>
    return %o : tensor<1x3x150x64xbf16>
  }

  // Three heads make a group: the fourth joins it.
  func.func @rest(%q: tensor<1x4x100x64xbf16>) -> tensor<1x4x100x64xbf16> {
    %o = attn.attention %q, %q, %q scale(0.125)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %keep = arith.cmpi sge, %i, %j : index
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 64x32, order = longest_first, warps = 4, stages = 2, blocks = persistent>}
      : tensor<1x4x100x64xbf16>, tensor<1x4x100x64xbf16>, tensor<1x4x100x64xbf16> -> tensor<1x4x100x64xbf16>
    return %o : tensor<1x4x100x64xbf16>
  }

  // Each tile has the slope and the gate of its own head.
  func.func @scores(%q: tensor<1x3x150x64xbf16>, %k: tensor<1x3x90x64xbf16>, %gates: tensor<3xf32>) -> tensor<1x3x150x64xbf16> {
    %o = attn.attention %q, %k, %k scale(0.125)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %distance = arith.subi %j, %i : index
        %d = arith.index_cast %distance : index to i64
        %x = arith.sitofp %d : i64 to f32
        %head = arith.index_cast %h : index to i64
        %n = arith.sitofp %head : i64 to f32
        %slope = arith.constant 0.125 : f32
        %m = arith.mulf %n, %slope : f32
        %y = arith.mulf %x, %m : f32
        %gate = tensor.extract %gates[%h] : tensor<3xf32>
        %z = arith.mulf %s, %gate : f32
        %r = arith.addf %z, %y : f32
        attn.yield %r : f32
      } mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %keep = arith.cmpi sge, %i, %j : index
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 64x32, order = longest_first, warps = 4, stages = 2, blocks = persistent>}
      : tensor<1x3x150x64xbf16>, tensor<1x3x90x64xbf16>, tensor<1x3x90x64xbf16> -> tensor<1x3x150x64xbf16>
    return %o : tensor<1x3x150x64xbf16>
  }

  // The keys are one tile, so that the loop over tiles of queries is the one that is
  // skewed: a result's slot, of which there is one, is taken behind the result before.
  func.func @one_step(%q: tensor<1x9x100x64xbf16>, %k: tensor<1x9x64x64xbf16>) -> tensor<1x9x100x64xbf16> {
    %o = attn.attention %q, %k, %k scale(0.125) {schedule = #attn.schedule<tile = 128x64, order = linear, warps = 8, stages = 2, maximum = stale, blocks = persistent>}
      : tensor<1x9x100x64xbf16>, tensor<1x9x64x64xbf16>, tensor<1x9x64x64xbf16> -> tensor<1x9x100x64xbf16>
    return %o : tensor<1x9x100x64xbf16>
  }
  func.func @one_step_in_turn(%q: tensor<1x9x128x64xbf16>) -> tensor<1x9x128x64xbf16> {
    %o = attn.attention %q, %q, %q scale(0.125) {schedule = #attn.schedule<tile = 128x128, order = linear, warps = 8, stages = 2, maximum = stale, blocks = persistent, groups = in_turn>}
      : tensor<1x9x128x64xbf16>, tensor<1x9x128x64xbf16>, tensor<1x9x128x64xbf16> -> tensor<1x9x128x64xbf16>
    return %o : tensor<1x9x128x64xbf16>
  }

  // Fewer tiles than multiprocessors.
  func.func @single(%q: tensor<1x1x64x64xbf16>) -> tensor<1x1x64x64xbf16> {
    %o = attn.attention %q, %q, %q scale(0.125) {schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 2, blocks = persistent>}
      : tensor<1x1x64x64xbf16>, tensor<1x1x64x64xbf16>, tensor<1x1x64x64xbf16> -> tensor<1x1x64x64xbf16>
    return %o : tensor<1x1x64x64xbf16>
  }
}
