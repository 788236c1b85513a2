// Blocks that share the programs of the last rounds, on a machine of 3
// multiprocessors: parts of one program are combined, in every order of what
// blocks do; with a log-sum-exp, with scores that differ so much between parts
// that one of them has no weight, with rows behind the last query, keys that do
// not fill their last tile, and blocks that run whole programs before.
//
// RUN: fovea-opt %s --attn-online-softmax --attn-tile=fuse-producers=false --convert-attn-to-tile --canonicalize --cse -o %t.plain
// RUN: FileCheck %s --check-prefix=PLAIN --input-file=%t.plain
// RUN: fovea-opt %t.plain --tile-share-items --canonicalize -o %t.loops
// RUN: fovea-opt %t.loops --tile-assign-layouts --tile-multibuffer --tile-stage-stores \
// RUN:   --tile-specialize-warps --tile-schedule --tile-expand-pipeline -o %t.skewed
// RUN: fovea-opt %t.skewed --canonicalize --cse -o %t.roles
// RUN: fovea-opt %t.skewed --tile-overlap-items --canonicalize --cse -o %t.overlap
// RUN: fovea-run %t.plain --reference=%s --entry=few --target=sm_90a --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %t.loops --reference=%s --entry=few --target=sm_90a --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %t.loops --reference=%s --entry=scores --target=sm_90a --simulate --random=2 --check | FileCheck %s
// RUN: fovea-run %t.loops --reference=%s --entry=rounds --target=sm_90a --simulate --random=3 --check | FileCheck %s
// RUN: fovea-run %t.loops --reference=%s --entry=wide --target=sm_90a --simulate --random=4 --check | FileCheck %s
// RUN: fovea-run %t.roles --reference=%s --entry=few --target=sm_90a --simulate --seeds=3 --random=1 --check | FileCheck %s
// RUN: fovea-run %t.roles --reference=%s --entry=rounds --target=sm_90a --simulate --seeds=2 --random=3 --check | FileCheck %s
// RUN: fovea-run %t.overlap --reference=%s --entry=few --target=sm_90a --simulate --seeds=3 --random=1 --check | FileCheck %s
// RUN: fovea-run %t.overlap --reference=%s --entry=scores --target=sm_90a --simulate --seeds=2 --random=2 --check | FileCheck %s
// RUN: fovea-run %t.overlap --reference=%s --entry=rounds --target=sm_90a --simulate --seeds=2 --random=3 --check | FileCheck %s
// RUN: fovea-run %t.overlap --reference=%s --entry=readers --target=sm_90a --simulate --seeds=3 --random=6 --check | FileCheck %s
//
// Any number of queries and keys: whether programs are shared is known when the
// launch runs.
// RUN: fovea-run %t.overlap --reference=%s --entry=any --dims=250,530 --target=sm_90a --simulate --random=5 --check | FileCheck %s
// RUN: fovea-run %t.overlap --reference=%s --entry=any --dims=180,530 --target=sm_90a --simulate --random=5 --check | FileCheck %s
// RUN: fovea-run %t.overlap --reference=%s --entry=any --dims=250,100 --target=sm_90a --simulate --random=5 --check | FileCheck %s
// RUN: fovea-run %t.overlap --reference=%s --entry=any --dims=10,600 --target=sm_90a --simulate --random=5 --check | FileCheck %s
// RUN: fovea-run %t.overlap --reference=%s --entry=any --dims=250,0 --target=sm_90a --simulate --random=5 --check | FileCheck %s
// RUN: fovea-run %t.overlap --reference=%s --entry=any --dims=0,530 --target=sm_90a --simulate --random=5 --check | FileCheck %s
//
// Faults: a block that does not wait for the other's part, one that never gives
// it, and one that gives it before it is written.
// RUN: sed '/tile.await/d' %t.loops > %t.early
// RUN: not fovea-run %t.early --reference=%s --entry=few --target=sm_90a --simulate --random=1 --check 2>&1 | FileCheck %s --check-prefix=EARLY
// EARLY: error: 'tile.load' op reads an element of global memory that block (0) of the same launch wrote
// RUN: sed '/tile.signal/d' %t.loops > %t.silent
// RUN: not fovea-run %t.silent --reference=%s --entry=few --target=sm_90a --simulate --random=1 --check 2>&1 | FileCheck %s --check-prefix=SILENT
// SILENT: error: 'tile.await' op waits for ever: for the warps of another block to signal
//
// PLAIN: tile.launch {{.*}}persistent shared
// PLAIN: tile.combine_parts
// CHECK: check: result 0: max error
// CHECK-NOT: FAILED

module attributes {machine.target = #machine.target<"sm_90a", arch = "hopper", cores = 3, vector_bytes = 128, vector_registers = 2048, fast_memory = 232448, near_memory = 52428800, bandwidth = 4290000, peak = 66900, shared_memory = 233472, matrix_peak = 989000>} {
  // 4 programs of 33 steps.
  func.func @few(%q: tensor<1x1x250x64xbf16>, %k: tensor<1x1x528x64xbf16>) -> (tensor<1x1x250x64xbf16>, tensor<1x1x250xf32>) {
    %o, %l = attn.attention %q, %k, %k scale(0.125) {schedule = #attn.schedule<tile = 64x16, order = linear, warps = 4, stages = 2, blocks = shared>}
      : tensor<1x1x250x64xbf16>, tensor<1x1x528x64xbf16>, tensor<1x1x528x64xbf16> -> tensor<1x1x250x64xbf16>, tensor<1x1x250xf32>
    return %o, %l : tensor<1x1x250x64xbf16>, tensor<1x1x250xf32>
  }
  // Later keys are all that counts for some rows, earlier ones for others.
  func.func @scores(%q: tensor<1x1x250x64xbf16>, %k: tensor<1x1x528x64xbf16>) -> (tensor<1x1x250x64xbf16>, tensor<1x1x250xf32>) {
    %o, %l = attn.attention %q, %k, %k scale(0.125) score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %c200 = arith.constant 200 : index
      %d = arith.subi %i, %c200 : index
      %p = arith.muli %d, %j : index
      %n = arith.index_cast %p : index to i64
      %f = arith.sitofp %n : i64 to f32
      %t = arith.addf %s, %f : f32
      attn.yield %t : f32
    } {schedule = #attn.schedule<tile = 64x16, order = linear, warps = 4, stages = 2, maximum = stale, blocks = shared>}
      : tensor<1x1x250x64xbf16>, tensor<1x1x528x64xbf16>, tensor<1x1x528x64xbf16> -> tensor<1x1x250x64xbf16>, tensor<1x1x250xf32>
    return %o, %l : tensor<1x1x250x64xbf16>, tensor<1x1x250xf32>
  }
  // 14 programs: whole rounds, and shares of 5.
  func.func @rounds(%q: tensor<1x7x120x64xbf16>, %k: tensor<1x7x520x64xbf16>) -> tensor<1x7x120x64xbf16> {
    %o = attn.attention %q, %k, %k scale(0.125) {schedule = #attn.schedule<tile = 64x16, order = linear, warps = 4, stages = 3, maximum = stale, blocks = shared>}
      : tensor<1x7x120x64xbf16>, tensor<1x7x520x64xbf16>, tensor<1x7x520x64xbf16> -> tensor<1x7x120x64xbf16>
    return %o : tensor<1x7x120x64xbf16>
  }
  // f32, whose sums are not in parts.
  func.func @wide(%q: tensor<1x2x120x64xf32>, %k: tensor<1x2x520x64xf32>) -> tensor<1x2x120x64xf32> {
    %o = attn.attention %q, %k, %k scale(0.125) {schedule = #attn.schedule<tile = 64x16, order = linear, warps = 4, stages = 2, blocks = shared>}
      : tensor<1x2x120x64xf32>, tensor<1x2x520x64xf32>, tensor<1x2x520x64xf32> -> tensor<1x2x120x64xf32>
    return %o : tensor<1x2x120x64xf32>
  }
  func.func @readers(%q: tensor<1x1x250x64xbf16>, %k: tensor<1x1x528x64xbf16>, %r: tensor<1x1x250x64xbf16>) -> tensor<1x1x250x64xbf16> {
    %o = attn.attention %q, %k, %k scale(0.125) {schedule = #attn.schedule<tile = 64x16, order = linear, warps = 4, stages = 2, blocks = shared>}
      : tensor<1x1x250x64xbf16>, tensor<1x1x528x64xbf16>, tensor<1x1x528x64xbf16> -> tensor<1x1x250x64xbf16>
    %c = tensor.empty() : tensor<1x1x250x64xbf16>
    %s = linalg.add ins(%o, %r : tensor<1x1x250x64xbf16>, tensor<1x1x250x64xbf16>) outs(%c : tensor<1x1x250x64xbf16>) -> tensor<1x1x250x64xbf16>
    return %s : tensor<1x1x250x64xbf16>
  }
  func.func @any(%q: tensor<1x1x?x64xbf16>, %k: tensor<1x1x?x64xbf16>) -> tensor<1x1x?x64xbf16> {
    %o = attn.attention %q, %k, %k scale(0.125) {schedule = #attn.schedule<tile = 64x16, order = linear, warps = 4, stages = 2, maximum = stale, blocks = shared>}
      : tensor<1x1x?x64xbf16>, tensor<1x1x?x64xbf16>, tensor<1x1x?x64xbf16> -> tensor<1x1x?x64xbf16>
    return %o : tensor<1x1x?x64xbf16>
  }
}
