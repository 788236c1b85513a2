// Numbers of distances, keys and queries that come as parts of rows, in blocks that
// compute several tiles of queries on a machine of 2 multiprocessors: of lengths
// that no tile divides, from in front of the row's first and beyond its last; under
// a causal mask with groups of warps that take rows there and back; beside a tile,
// and against the distance; more than one copy of TMA takes; from a place that only
// memory tells, and behind keys that are absent.
//
// RUN: fovea-opt %s --attn-online-softmax --attn-tile=fuse-producers=false --convert-attn-to-tile --canonicalize --cse -o %t.plain
// RUN: fovea-opt %t.plain --tile-persist --canonicalize --tile-assign-layouts --tile-multibuffer --tile-stage-stores \
// RUN:   --tile-specialize-warps --tile-skip-rows -o %t.skips
// RUN: fovea-opt %t.skips --tile-swap-groups --tile-schedule --tile-expand-pipeline --tile-overlap-items --canonicalize --cse -o %t.skewed
// RUN: fovea-run %t.plain --reference=%s --entry=causal --target=sm_90a --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %t.skips --reference=%s --entry=causal --target=sm_90a --simulate --seeds=4 --random=1 --check | FileCheck %s
// RUN: fovea-run %t.skewed --reference=%s --entry=causal --target=sm_90a --simulate --seeds=4 --random=1 --check | FileCheck %s
// RUN: fovea-run %t.skewed --reference=%s --entry=three --target=sm_90a --simulate --seeds=4 --random=2 --check | FileCheck %s
// RUN: fovea-run %t.skewed --reference=%s --entry=long --target=sm_90a --simulate --seeds=4 --random=3 --check | FileCheck %s
// RUN: fovea-run %t.skewed --reference=%s --entry=places --target=sm_90a --simulate --seeds=4 --random=4 --integers=0:71 --check | FileCheck %s
// RUN: fovea-run %s --entry=places --grad --target=sm_90a --simulate --random=4 --integers=0:71 --check | FileCheck %s
// RUN: fovea-run %s --entry=single --target=sm_90a --simulate --random=5 --check | FileCheck %s
// RUN: FileCheck %s --check-prefix=SKEWED --input-file=%t.skewed
// RUN: fovea-run %s --entry=dealt --target=sm_90a --simulate --seeds=4 --random=6 --check | FileCheck %s
// RUN: fovea-compile %s --target=sm_90a --emit=tile | FileCheck %s --check-prefix=COPIED
//
// Blocks that are dealt tiles have their places from memory; all parts are copied
// by TMA still.
// COPIED-NOT: tile.load %
// COPIED-LABEL: func.func @dealt
// COPIED-NOT: tile.load %
// COPIED:     tile.read_numbers
// COPIED-NOT: tile.load %
// COPIED:     tile.load_async %{{.*}} : memref<2x600xf32, {{.*}}, !tile.ring<4 x !tile.shared<1x320xf32>>
// COPIED-NOT: tile.load %
//
// Faults: a part that groups which have taken rows of others read from their own
// on, from behind its last, and that is copied from any place on.
// RUN: sed '/func.func @causal/,/func.func @dealt/s/\(tile.from_shared %[^[]*\)\[%[^]]*\] by \[1, -1\]/\1[%c31] by [1, -1]/' %t.skewed > %t.others
// RUN: not fovea-run %t.others --reference=%s --entry=causal --target=sm_90a --simulate --random=1 --check 2>&1 | FileCheck %s --check-prefix=OTHERS
// OTHERS: FAILED
// RUN: sed '/func.func @causal/,/func.func @dealt/s/\(tile.from_shared %[^[]*\)\[%[^]]*\] by \[0, 1\]/\1[%c31] by [0, 1]/' %t.skewed > %t.behind
// RUN: not fovea-run %t.behind --reference=%s --entry=causal --target=sm_90a --simulate --random=1 --check 2>&1 | FileCheck %s --check-prefix=BEHIND
// BEHIND: error: 'tile.from_shared' op reads column 32 of a row of 32
// RUN: sed 's/arith.andi %\([^,]*\), %c-8 : index/arith.addi %\1, %c0 : index/' %t.skewed > %t.unaligned
// RUN: not fovea-run %t.unaligned --reference=%s --entry=places --target=sm_90a --simulate --random=4 --integers=33:34 --check 2>&1 | FileCheck %s --check-prefix=UNALIGNED
// UNALIGNED: error: 'tile.load_async' op copies from column {{[0-9]+}} of elements of 2 bytes on, but expected a multiple of 16 bytes
//
// CHECK: check: result 0: max error
// CHECK-NOT: FAILED
//
// SKEWED-LABEL: func.func @causal
// SKEWED:         tile.load_async %{{.*}} : memref<2x599xf32, {{.*}}, !tile.ring<{{[0-9]}} x !tile.shared<1x224xf32>>
// SKEWED:         tile.role "compute"
// SKEWED:           tile.group
// SKEWED:           %[[FIRST:.*]] = arith.addi %{{.*}}, %c31 : index
// SKEWED:           tile.from_shared %{{.*}}[%[[FIRST]]] by [1, -1] : !tile.shared<1x224xf32> -> !tile.fragment<192x32xf32
// SKEWED:           tile.from_shared %{{.*}}[%c0] by [0, 1] : !tile.shared<1x32xbf16> -> !tile.fragment<192x32xbf16
//
// SKEWED-LABEL: func.func @three
// SKEWED:         tile.from_shared %{{.*}} by [-1, 1] : !tile.shared<1x160xf32> -> !tile.fragment<128x32xf32
// SKEWED:         tile.from_shared %{{.*}} : !tile.shared<128x32xf16, swizzle = 64> -> !tile.fragment<128x32xf16
// SKEWED:         tile.from_shared %{{.*}}[%c0] by [1, 0] : !tile.shared<1x128xbf16> -> !tile.fragment<128x32xbf16
//
// SKEWED-LABEL: func.func @long
// SKEWED:         !tile.ring<{{[0-9]}} x !tile.shared<1x320xf32>>
//
// SKEWED-LABEL: func.func @places
// SKEWED:         tile.load_async %{{.*}} : memref<2x300xbf16, {{.*}}, !tile.ring<2 x !tile.shared<1x136xbf16>>
// SKEWED:         tile.load_async %{{.*}} : memref<2x150xbf16, {{.*}}, !tile.ring<2 x !tile.shared<1x64xbf16>>

module attributes {machine.target = #machine.target<"sm_90a", arch = "hopper", cores = 2, vector_bytes = 128, vector_registers = 2048, fast_memory = 232448, near_memory = 52428800, bandwidth = 4290000, peak = 66900, shared_memory = 233472, matrix_peak = 989000>} {
  func.func @causal(%q: tensor<1x2x300x64xbf16>, %table: tensor<2x599xf32>, %keys: tensor<2x300xbf16>) -> tensor<1x2x300x64xbf16> {
    %o = attn.attention %q, %q, %q scale(0.125)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %last = arith.constant 299 : index
        %d = arith.subi %i, %j : index
        %n = arith.addi %d, %last : index
        %x = tensor.extract %table[%h, %n] : tensor<2x599xf32>
        %y = arith.addf %s, %x : f32
        %k = tensor.extract %keys[%h, %j] : tensor<2x300xbf16>
        %l = arith.extf %k : bf16 to f32
        %z = arith.addf %y, %l : f32
        attn.yield %z : f32
      } mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %keep = arith.cmpi sge, %i, %j : index
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 192x32, order = longest_first, warps = 12, stages = 4, maximum = stale, blocks = persistent, captures = tiled>}
      : tensor<1x2x300x64xbf16>, tensor<1x2x300x64xbf16>, tensor<1x2x300x64xbf16> -> tensor<1x2x300x64xbf16>
    return %o : tensor<1x2x300x64xbf16>
  }

  func.func @dealt(%q: tensor<1x2x300x64xbf16>, %table: tensor<2x600xf32>) -> tensor<1x2x300x64xbf16> {
    %o = attn.attention %q, %q, %q scale(0.125)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %last = arith.constant 299 : index
        %d = arith.subi %i, %j : index
        %n = arith.addi %d, %last : index
        %x = tensor.extract %table[%h, %n] : tensor<2x600xf32>
        %y = arith.addf %s, %x : f32
        attn.yield %y : f32
      } mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %keep = arith.cmpi sge, %i, %j : index
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 256x64, order = longest_first, warps = 16, stages = 4, maximum = stale, blocks = dealt, products = alternating, captures = tiled>}
      : tensor<1x2x300x64xbf16>, tensor<1x2x300x64xbf16>, tensor<1x2x300x64xbf16> -> tensor<1x2x300x64xbf16>
    return %o : tensor<1x2x300x64xbf16>
  }

  func.func @three(%q: tensor<2x2x136x64xf16>, %k: tensor<2x2x100x64xf16>, %table: tensor<2x2x235xf32>, %bias: tensor<136x104xf16>, %queries: tensor<1x136xbf16>) -> tensor<2x2x136x64xf16> {
    %o = attn.attention %q, %k, %k scale(0.125)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %c0 = arith.constant 0 : index
        %last = arith.constant 135 : index
        %d = arith.subi %j, %i : index
        %n = arith.addi %d, %last : index
        %x = tensor.extract %table[%b, %h, %n] : tensor<2x2x235xf32>
        %y = arith.addf %s, %x : f32
        %u = tensor.extract %bias[%i, %j] : tensor<136x104xf16>
        %v = arith.extf %u : f16 to f32
        %z = arith.addf %y, %v : f32
        %own = tensor.extract %queries[%c0, %i] : tensor<1x136xbf16>
        %factor = arith.extf %own : bf16 to f32
        %w = arith.mulf %z, %factor : f32
        attn.yield %w : f32
      } {schedule = #attn.schedule<tile = 128x32, order = linear, warps = 8, stages = 2, maximum = stale, blocks = persistent, products = alternating, captures = tiled>}
      : tensor<2x2x136x64xf16>, tensor<2x2x100x64xf16>, tensor<2x2x100x64xf16> -> tensor<2x2x136x64xf16>
    return %o : tensor<2x2x136x64xf16>
  }

  func.func @long(%q: tensor<1x1x300x64xbf16>, %table: tensor<1x600xf32>) -> tensor<1x1x300x64xbf16> {
    %o = attn.attention %q, %q, %q scale(0.125)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %last = arith.constant 300 : index
        %d = arith.subi %i, %j : index
        %n = arith.addi %d, %last : index
        %x = tensor.extract %table[%h, %n] : tensor<1x600xf32>
        %y = arith.addf %s, %x : f32
        attn.yield %y : f32
      } {schedule = #attn.schedule<tile = 256x64, order = linear, warps = 16, stages = 2, maximum = stale, blocks = persistent, products = alternating, groups = in_turn, captures = tiled>}
      : tensor<1x1x300x64xbf16>, tensor<1x1x300x64xbf16>, tensor<1x1x300x64xbf16> -> tensor<1x1x300x64xbf16>
    return %o : tensor<1x1x300x64xbf16>
  }

  // Keys in front of the first are absent.
  func.func @places(%q: tensor<2x2x70x64xbf16>, %k: tensor<2x2x150x64xbf16>, %table: tensor<2x300xbf16>, %keys: tensor<2x150xbf16>, %starts: tensor<2xi32>) -> tensor<2x2x70x64xbf16> {
    %o = attn.attention %q, %k, %k scale(0.125)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %last = arith.constant 149 : i32
        %place = tensor.extract %starts[%b] : tensor<2xi32>
        %row = arith.index_cast %i : index to i32
        %key = arith.index_cast %j : index to i32
        %d = arith.subi %row, %key : i32
        %e = arith.addi %d, %place : i32
        %f = arith.addi %e, %last : i32
        %n = arith.index_cast %f : i32 to index
        %x = tensor.extract %table[%h, %n] : tensor<2x300xbf16>
        %y = arith.extf %x : bf16 to f32
        %z = arith.addf %s, %y : f32
        %u = tensor.extract %keys[%b, %j] : tensor<2x150xbf16>
        %v = arith.extf %u : bf16 to f32
        %w = arith.addf %z, %v : f32
        attn.yield %w : f32
      } mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %starts[%b] : tensor<2xi32>
        %start = arith.index_cast %x : i32 to index
        %keep = arith.cmpi sge, %j, %start : index
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 64x64, order = longest_first, warps = 4, stages = 2, captures = tiled>}
      : tensor<2x2x70x64xbf16>, tensor<2x2x150x64xbf16>, tensor<2x2x150x64xbf16> -> tensor<2x2x70x64xbf16>
    return %o : tensor<2x2x70x64xbf16>
  }

  func.func @single(%q: tensor<1x3x1x64xbf16>, %k: tensor<1x3x1x64xbf16>, %table: tensor<3x1xi8>) -> tensor<1x3x1x64xbf16> {
    %o = attn.attention %q, %k, %k scale(0.125)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %d = arith.subi %i, %j : index
        %x = tensor.extract %table[%h, %d] : tensor<3x1xi8>
        %y = arith.sitofp %x : i8 to f32
        %z = arith.addf %s, %y : f32
        attn.yield %z : f32
      } {schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 1, captures = tiled>}
      : tensor<1x3x1x64xbf16>, tensor<1x3x1x64xbf16>, tensor<1x3x1x64xbf16> -> tensor<1x3x1x64xbf16>
    return %o : tensor<1x3x1x64xbf16>
  }
}
