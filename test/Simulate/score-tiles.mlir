// Biases and integers of 16 and 32 bits that come as tiles, in blocks that compute several tiles of
// queries on a machine of 2 multiprocessors: of heads, of batches and heads, of
// lengths that no tile divides; two biases, with a table that one of them points
// into; under a causal mask with groups of warps that pass by others' slots and
// take rows there and back; without a second slot; in parts of the keys; from the
// first present key on, which is no multiple of 16 bytes, where TMA copies from a
// multiple in front of it, or threads read where a table says which it is.
//
// RUN: fovea-opt %s --attn-online-softmax --attn-tile=fuse-producers=false --convert-attn-to-tile --canonicalize --cse -o %t.plain
// RUN: fovea-opt %t.plain --tile-persist --canonicalize --tile-assign-layouts --tile-multibuffer --tile-stage-stores \
// RUN:   --tile-specialize-warps --tile-skip-rows -o %t.skips
// RUN: fovea-opt %t.skips --tile-swap-groups --tile-schedule --tile-expand-pipeline --tile-overlap-items --canonicalize --cse -o %t.skewed
// RUN: fovea-run %t.plain --reference=%s --entry=causal --target=sm_90a --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %t.skips --reference=%s --entry=causal --target=sm_90a --simulate --seeds=4 --random=1 --check | FileCheck %s
// RUN: fovea-run %t.skewed --reference=%s --entry=causal --target=sm_90a --simulate --seeds=4 --random=1 --check | FileCheck %s
// RUN: fovea-run %t.skewed --reference=%s --entry=two --target=sm_90a --simulate --seeds=4 --random=2 --check | FileCheck %s
// RUN: fovea-run %t.skewed --reference=%s --entry=single --target=sm_90a --simulate --seeds=4 --random=3 --check | FileCheck %s
// RUN: fovea-run %t.skips --reference=%s --entry=wide --target=sm_90a --simulate --seeds=4 --random=5 --check | FileCheck %s
// RUN: fovea-run %t.skewed --reference=%s --entry=wide --target=sm_90a --simulate --seeds=4 --random=5 --check | FileCheck %s
// RUN: fovea-run %t.skewed --reference=%s --entry=exact --target=sm_90a --simulate --seeds=4 --random=6 --check | FileCheck %s
// RUN: fovea-run %t.skewed --reference=%s --entry=one --target=sm_90a --simulate --random=7 --check | FileCheck %s
// RUN: fovea-run %s --entry=wide --grad --target=sm_90a --simulate --random=8 --check | FileCheck %s
// RUN: fovea-run %s --entry=parts --target=sm_90a --simulate --random=4 --check | FileCheck %s
// RUN: fovea-run %s --entry=parts --grad --target=sm_90a --simulate --random=4 --check | FileCheck %s
// RUN: fovea-run %t.skewed --reference=%s --entry=starts --target=sm_90a --simulate --seeds=4 --random=9 --integers=0:151 --check | FileCheck %s
// RUN: fovea-run %s --entry=rows --target=sm_90a --simulate --random=10 --integers=0:150 --check | FileCheck %s
// RUN: FileCheck %s --check-prefix=SKEWED --input-file=%t.skewed
//
// Faults: a tile that is never given back, rows of a tile that belong to other
// groups, and a tile from the first present key on.
// RUN: sed '/tile.release .*x !tile.shared<192x32/d' %t.skewed > %t.kept
// RUN: not fovea-run %t.kept --reference=%s --entry=causal --target=sm_90a --simulate --random=1 --check 2>&1 | FileCheck %s --check-prefix=KEPT
// RUN: sed 's/\(tile.shift_rows %[^ ]* by\) %[^ ]* : !tile.shared<192x32/\1 %c0 : !tile.shared<192x32/' %t.skewed > %t.others
// RUN: not fovea-run %t.others --reference=%s --entry=causal --target=sm_90a --simulate --random=1 --check 2>&1 | FileCheck %s --check-prefix=OTHERS
// OTHERS: FAILED
// RUN: sed '/func.func @starts/,$s/arith.muli %\([^,]*\), %c16 : index/arith.addi %\1, %c0 : index/' %t.skewed > %t.unaligned
// RUN: not fovea-run %t.unaligned --reference=%s --entry=starts --target=sm_90a --simulate --random=9 --integers=33:34 --check 2>&1 | FileCheck %s --check-prefix=UNALIGNED
// UNALIGNED: error: 'tile.load_async' op copies from column {{[0-9]+}} of elements of 2 bytes on, but expected a multiple of 16 bytes
// KEPT: error: 'tile.acquire' op waits for ever: for use {{[0-9]+}} of its ring to be released
//
// CHECK: check: result 0: max error
// CHECK-NOT: FAILED
//
// SKEWED-LABEL: func.func @causal
// SKEWED:         tile.role "compute"
// SKEWED:           tile.group
// SKEWED:           tile.shift_rows %{{.*}} : !tile.shared<192x32xbf16
// SKEWED:           tile.from_shared %{{.*}} -> !tile.fragment<192x32xbf16
//
// SKEWED-LABEL: func.func @wide
// SKEWED:         tile.load_async %{{.*}} : memref<1x2x300x300xf32, {{.*}}, !tile.ring<2 x !tile.shared<192x48xf32, swizzle = 64>>
// SKEWED-LABEL: func.func @exact
// SKEWED-DAG:     tile.load_async %{{.*}} : memref<70x92xf32, {{.*}}, !tile.ring<2 x !tile.shared<64x32xf32, swizzle = 128>>
// SKEWED-DAG:     tile.load_async %{{.*}} : memref<70x96xi16, {{.*}}, !tile.ring<2 x !tile.shared<64x32xi16, swizzle = 64>>
// SKEWED-DAG:     tile.load_async %{{.*}} : memref<70x92xi32, {{.*}}, !tile.ring<2 x !tile.shared<64x32xi32, swizzle = 128>>
// SKEWED-LABEL: func.func @starts
// SKEWED:         tile.load_async %{{.*}} : memref<2x2x70x152xbf16, {{.*}}, !tile.ring<2 x !tile.shared<64x64xbf16, swizzle = 128>>
// SKEWED-LABEL: func.func @rows
// SKEWED-NOT:     tile.load_async {{.*}} : memref<70x152xbf16

module attributes {machine.target = #machine.target<"sm_90a", arch = "hopper", cores = 2, vector_bytes = 128, vector_registers = 2048, fast_memory = 232448, near_memory = 52428800, bandwidth = 4290000, peak = 66900, shared_memory = 233472, matrix_peak = 989000>} {
  func.func @causal(%q: tensor<1x2x300x64xbf16>, %bias: tensor<2x300x304xbf16>) -> tensor<1x2x300x64xbf16> {
    %o = attn.attention %q, %q, %q scale(0.125)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %bias[%h, %i, %j] : tensor<2x300x304xbf16>
        %y = arith.extf %x : bf16 to f32
        %z = arith.addf %s, %y : f32
        attn.yield %z : f32
      } mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %keep = arith.cmpi sge, %i, %j : index
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 192x32, order = longest_first, warps = 12, stages = 4, maximum = stale, blocks = persistent, captures = tiled>}
      : tensor<1x2x300x64xbf16>, tensor<1x2x300x64xbf16>, tensor<1x2x300x64xbf16> -> tensor<1x2x300x64xbf16>
    return %o : tensor<1x2x300x64xbf16>
  }

  // Rows of 100 keys, of which the last tile has 4.
  func.func @two(%q: tensor<2x2x136x64xf16>, %k: tensor<2x2x100x64xf16>, %a: tensor<2x2x136x104xbf16>, %c: tensor<136x104xf16>, %table: tensor<8xf32>) -> tensor<2x2x136x64xf16> {
    %o = attn.attention %q, %k, %k scale(0.125)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %a[%b, %h, %i, %j] : tensor<2x2x136x104xbf16>
        %y = arith.extf %x : bf16 to f32
        %z = arith.addf %s, %y : f32
        %u = tensor.extract %c[%i, %j] : tensor<136x104xf16>
        %positive = arith.constant 0.0 : f16
        %large = arith.cmpf ogt, %u, %positive : f16
        %at = arith.index_castui %large : i1 to index
        %v = tensor.extract %table[%at] : tensor<8xf32>
        %w = arith.mulf %z, %v : f32
        attn.yield %w : f32
      } {schedule = #attn.schedule<tile = 128x32, order = linear, warps = 8, stages = 2, maximum = stale, blocks = persistent, products = alternating, captures = tiled>}
      : tensor<2x2x136x64xf16>, tensor<2x2x100x64xf16>, tensor<2x2x100x64xf16> -> tensor<2x2x136x64xf16>
    return %o : tensor<2x2x136x64xf16>
  }

  func.func @single(%q: tensor<1x3x70x64xbf16>, %k: tensor<1x3x90x64xbf16>, %bias: tensor<3x70x96xf16>) -> tensor<1x3x70x64xbf16> {
    %o = attn.attention %q, %k, %k scale(0.125)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %bias[%h, %i, %j] : tensor<3x70x96xf16>
        %y = arith.extf %x : f16 to f32
        %z = arith.addf %s, %y : f32
        attn.yield %z : f32
      } {schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 1, captures = tiled>}
      : tensor<1x3x70x64xbf16>, tensor<1x3x90x64xbf16>, tensor<1x3x90x64xbf16> -> tensor<1x3x70x64xbf16>
    return %o : tensor<1x3x70x64xbf16>
  }

  // Rows of 75 units of 16 bytes, and a panel and a half of keys.
  func.func @wide(%q: tensor<1x2x300x64xbf16>, %bias: tensor<1x2x300x300xf32>) -> tensor<1x2x300x64xbf16> {
    %o = attn.attention %q, %q, %q scale(0.125)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %c0 = arith.constant 0 : index
        %x = tensor.extract %bias[%c0, %h, %i, %j] : tensor<1x2x300x300xf32>
        %z = arith.addf %s, %x : f32
        attn.yield %z : f32
      } mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %keep = arith.cmpi sge, %i, %j : index
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 192x48, order = longest_first, warps = 12, stages = 2, maximum = stale, blocks = persistent, captures = tiled>}
      : tensor<1x2x300x64xbf16>, tensor<1x2x300x64xbf16>, tensor<1x2x300x64xbf16> -> tensor<1x2x300x64xbf16>
    return %o : tensor<1x2x300x64xbf16>
  }

  func.func @exact(%q: tensor<2x1x70x24xf32>, %k: tensor<2x1x90x24xf32>, %bias: tensor<70x92xf32>, %numbers: tensor<70x96xi16>, %wide: tensor<70x92xi32>) -> tensor<2x1x70x24xf32> {
    %o = attn.attention %q, %k, %k scale(0.125)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %bias[%i, %j] : tensor<70x92xf32>
        %n = tensor.extract %numbers[%i, %j] : tensor<70x96xi16>
        %w = tensor.extract %wide[%i, %j] : tensor<70x92xi32>
        %t = arith.extsi %n : i16 to i32
        %sum = arith.addi %t, %w : i32
        %f = arith.sitofp %sum : i32 to f32
        %y = arith.addf %s, %f : f32
        %z = arith.addf %y, %x : f32
        attn.yield %z : f32
      } {schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 2, captures = tiled>}
      : tensor<2x1x70x24xf32>, tensor<2x1x90x24xf32>, tensor<2x1x90x24xf32> -> tensor<2x1x70x24xf32>
    return %o : tensor<2x1x70x24xf32>
  }

  func.func @one(%q: tensor<2x1x1x64xbf16>, %bias: tensor<2x1x4xf32>) -> tensor<2x1x1x64xbf16> {
    %o = attn.attention %q, %q, %q scale(0.125)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %bias[%b, %i, %j] : tensor<2x1x4xf32>
        %z = arith.addf %s, %x : f32
        attn.yield %z : f32
      } {schedule = #attn.schedule<tile = 64x16, order = linear, warps = 4, stages = 2, captures = tiled>}
      : tensor<2x1x1x64xbf16>, tensor<2x1x1x64xbf16>, tensor<2x1x1x64xbf16> -> tensor<2x1x1x64xbf16>
    return %o : tensor<2x1x1x64xbf16>
  }

  func.func @parts(%q: tensor<1x2x2x64xbf16>, %k: tensor<1x2x200x64xbf16>, %bias: tensor<2x2x200xbf16>) -> tensor<1x2x2x64xbf16> {
    %o = attn.attention %q, %k, %k scale(0.125)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %bias[%h, %i, %j] : tensor<2x2x200xbf16>
        %y = arith.extf %x : bf16 to f32
        %z = arith.addf %s, %y : f32
        attn.yield %z : f32
      } {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, split = 2, captures = tiled>}
      : tensor<1x2x2x64xbf16>, tensor<1x2x200x64xbf16>, tensor<1x2x200x64xbf16> -> tensor<1x2x2x64xbf16>
    return %o : tensor<1x2x2x64xbf16>
  }

  // Keys in front of the first are absent.
  func.func @starts(%q: tensor<2x2x70x64xbf16>, %k: tensor<2x2x150x64xbf16>, %bias: tensor<2x2x70x152xbf16>, %starts: tensor<2xi32>) -> tensor<2x2x70x64xbf16> {
    %o = attn.attention %q, %k, %k scale(0.125)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %bias[%b, %h, %i, %j] : tensor<2x2x70x152xbf16>
        %y = arith.extf %x : bf16 to f32
        %z = arith.addf %s, %y : f32
        attn.yield %z : f32
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

  func.func @rows(%q: tensor<1x2x70x64xbf16>, %k: tensor<1x2x150x64xbf16>, %bias: tensor<70x152xbf16>, %starts: tensor<70xi32>) -> tensor<1x2x70x64xbf16> {
    %o = attn.attention %q, %k, %k scale(0.125)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %bias[%i, %j] : tensor<70x152xbf16>
        %y = arith.extf %x : bf16 to f32
        %z = arith.addf %s, %y : f32
        attn.yield %z : f32
      } mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %starts[%i] : tensor<70xi32>
        %start = arith.index_cast %x : i32 to index
        %keep = arith.cmpi sge, %j, %start : index
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 64x64, order = longest_first, warps = 4, stages = 2, captures = tiled>}
      : tensor<1x2x70x64xbf16>, tensor<1x2x150x64xbf16>, tensor<1x2x150x64xbf16> -> tensor<1x2x70x64xbf16>
    return %o : tensor<1x2x70x64xbf16>
  }
}
