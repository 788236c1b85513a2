// Results that leave through the slots of the queries, and results that leave in
// parts, on a machine of 3 multiprocessors with little shared memory.
//
// RUN: fovea-opt %s --attn-online-softmax --attn-tile=fuse-producers=false --convert-attn-to-tile --canonicalize --cse \
// RUN:   --tile-persist --canonicalize --tile-assign-layouts --tile-multibuffer --tile-stage-stores -o %t.staged
// RUN: fovea-opt %t.staged --tile-specialize-warps --tile-schedule --tile-expand-pipeline -o %t.skewed
// RUN: fovea-opt %t.skewed --canonicalize --cse -o %t.roles
// RUN: fovea-opt %t.skewed --tile-overlap-items --canonicalize --cse -o %t.overlap
// RUN: FileCheck %s --check-prefix=STAGED --input-file=%t.staged
// RUN: fovea-run %t.staged --reference=%s --entry=place --target=sm_90a --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %t.staged --reference=%s --entry=parts --target=sm_90a --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %t.roles --reference=%s --entry=place --target=sm_90a --simulate --seeds=6 --random=1 --check | FileCheck %s
// RUN: fovea-run %t.roles --reference=%s --entry=parts --target=sm_90a --simulate --seeds=6 --random=2 --check | FileCheck %s
// RUN: fovea-run %t.overlap --reference=%s --entry=place --target=sm_90a --simulate --seeds=6 --random=1 --check | FileCheck %s
// RUN: fovea-run %t.overlap --reference=%s --entry=parts --target=sm_90a --simulate --seeds=6 --random=2 --check | FileCheck %s
//
// Faults: a result that the next queries overwrite while it is stored, a slot that
// is never free for them, and a part that overwrites the one before.
// RUN: sed '/tile.wait_stores/d' %t.roles > %t.unread
// RUN: not fovea-run %t.unread --reference=%s --entry=place --target=sm_90a --simulate --random=1 --check 2>&1 | FileCheck %s --check-prefix=UNREAD
// RUN: not fovea-run %t.unread --reference=%s --entry=parts --target=sm_90a --simulate --random=1 --check 2>&1 | FileCheck %s --check-prefix=UNREAD
// UNREAD: error: 'tile.release' op releases use 0 of the ring while it is read
// RUN: sed '/role "store"/,/role "compute"/{/tile.release/d}' %t.roles > %t.kept
// RUN: not fovea-run %t.kept --reference=%s --entry=place --target=sm_90a --simulate --random=1 --check 2>&1 | FileCheck %s --check-prefix=KEPT
// RUN: not fovea-run %t.kept --reference=%s --entry=parts --target=sm_90a --simulate --random=1 --check 2>&1 | FileCheck %s --check-prefix=PART
// KEPT: error: 'tile.acquire' op waits for ever: for use 0 of its ring to be released, so that use 2 may begin
// PART: note: role "compute" waits here: for use 0 of its ring to be released, so that use 1 may begin
//
// CHECK: check: result 0: max error
// CHECK-NOT: FAILED
//
// STAGED-LABEL: func @place
// STAGED:         tile.ring shares
// STAGED:         tile.write
// STAGED-LABEL: func @parts
// STAGED-NOT:     shares
// STAGED:         tile.write %{{.*}} column 0
// STAGED:         tile.write %{{.*}} column 64

module attributes {machine.target = #machine.target<"sm_90a", arch = "hopper", cores = 3, vector_bytes = 128, vector_registers = 2048, fast_memory = 36000, near_memory = 52428800, bandwidth = 4290000, peak = 66900, shared_memory = 233472, matrix_peak = 989000>} {
  // Tiles without a key among them.
  func.func @place(%q: tensor<1x4x150x64xbf16>, %k: tensor<1x4x90x64xbf16>) -> tensor<1x4x150x64xbf16> {
    %o = attn.attention %q, %k, %k scale(0.125)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %c70 = arith.constant 70 : index
        %last = arith.subi %i, %c70 : index
        %keep = arith.cmpi sge, %last, %j : index
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 64x32, order = longest_first, warps = 4, stages = 2, maximum = stale, blocks = persistent>}
      : tensor<1x4x150x64xbf16>, tensor<1x4x90x64xbf16>, tensor<1x4x90x64xbf16> -> tensor<1x4x150x64xbf16>
    return %o : tensor<1x4x150x64xbf16>
  }

  func.func @parts(%q: tensor<1x4x150x128xbf16>, %k: tensor<1x4x90x128xbf16>) -> tensor<1x4x150x128xbf16> {
    %o = attn.attention %q, %k, %k scale(0.125) {schedule = #attn.schedule<tile = 64x16, order = linear, warps = 4, stages = 1, maximum = stale, blocks = persistent>}
      : tensor<1x4x150x128xbf16>, tensor<1x4x90x128xbf16>, tensor<1x4x90x128xbf16> -> tensor<1x4x150x128xbf16>
    return %o : tensor<1x4x150x128xbf16>
  }
}
