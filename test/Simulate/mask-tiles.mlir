// Booleans and integers of 8 bits that masks and scores read, as tiles, against
// float64: of batches that heads share, with rows that keep no key, of lengths that
// no tile divides; beside a bias in f32; in a score region under a causal mask, with
// groups of warps that pass by others' slots and take rows there and back; without
// a second slot; with a tile of keys that has no swizzle, which threads copy; where a
// mask needs the tile in some steps only; in three passes; of one key; of dynamic
// sizes, none of them among these.
//
// RUN: fovea-opt %s --attn-online-softmax --attn-tile=fuse-producers=false --convert-attn-to-tile --canonicalize --cse -o %t.plain
// RUN: fovea-opt %t.plain --tile-persist --canonicalize --tile-assign-layouts --tile-multibuffer --tile-stage-stores \
// RUN:   --tile-specialize-warps --tile-skip-rows -o %t.skips
// RUN: fovea-opt %t.skips --tile-swap-groups --tile-schedule --tile-expand-pipeline --tile-overlap-items --canonicalize --cse -o %t.skewed
// RUN: fovea-run %t.plain --reference=%s --entry=mask --target=sm_90a --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %t.skips --reference=%s --entry=mask --target=sm_90a --simulate --seeds=4 --random=1 --check | FileCheck %s
// RUN: fovea-run %t.skewed --reference=%s --entry=mask --target=sm_90a --simulate --seeds=4 --random=1 --check | FileCheck %s
// RUN: fovea-run %t.skewed --reference=%s --entry=beside --target=sm_90a --simulate --seeds=4 --random=2 --check | FileCheck %s
// RUN: fovea-run %t.skewed --reference=%s --entry=select --target=sm_90a --simulate --seeds=4 --random=3 --check | FileCheck %s
// RUN: fovea-run %t.skewed --reference=%s --entry=copied --target=sm_90a --simulate --seeds=4 --random=3 --check | FileCheck %s
// RUN: fovea-run %t.skewed --reference=%s --entry=some --target=sm_90a --simulate --seeds=4 --random=4 --check | FileCheck %s
// RUN: fovea-run %s --entry=mask --strategy=three-pass --target=sm_90a --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %s --entry=mask --grad --target=sm_90a --simulate --random=5 --check | FileCheck %s
// RUN: fovea-run %s --entry=one --target=sm_90a --simulate --random=6 --check | FileCheck %s
// RUN: fovea-run %s --entry=sizes --dims=q:2x1x70x64 --dims=k:2x1x75x64 --dims=mask:2x70x75 --target=sm_90a --simulate --random=7 --check | FileCheck %s
// RUN: fovea-run %s --entry=sizes --dims=q:2x1x1x64 --dims=k:2x1x75x64 --dims=mask:2x1x75 --target=sm_90a --simulate --random=7 --check | FileCheck %s
// RUN: fovea-run %s --entry=sizes --dims=q:2x1x70x64 --dims=k:2x1x0x64 --dims=mask:2x70x0 --target=sm_90a --simulate --random=7 --check | FileCheck %s
// RUN: fovea-run %s --entry=sizes --dims=q:2x1x0x64 --dims=k:2x1x75x64 --dims=mask:2x0x75 --target=sm_90a --simulate --random=7 --check | FileCheck %s
// RUN: FileCheck %s --check-prefix=SKEWED --input-file=%t.skewed
//
// A fault: rows of a tile that belong to other groups.
// RUN: sed 's/\(tile.shift_rows %[^ ]* by\) %[^ ]* : !tile.shared<192x32xi1/\1 %c0 : !tile.shared<192x32xi1/' %t.skewed > %t.others
// RUN: not fovea-run %t.others --reference=%s --entry=select --target=sm_90a --simulate --random=3 --check 2>&1 | FileCheck %s --check-prefix=OTHERS
// OTHERS: FAILED
//
// CHECK: check: result 0: {{max error|no elements}}
// CHECK-NOT: FAILED
//
// SKEWED-LABEL: func.func @mask
// SKEWED:         tile.load_async {{.*}} : memref<2x1x300x304xi1, {{.*}}, !tile.ring<4 x !tile.shared<192x32xi1, swizzle = 32>>
// SKEWED:         tile.from_shared %{{.*}} -> !tile.fragment<192x32xi1
// SKEWED-LABEL: func.func @beside
// SKEWED-DAG:     tile.load_async {{.*}} : memref<136x112xi8, {{.*}}, !tile.ring<2 x !tile.shared<128x32xi8, swizzle = 32>>
// SKEWED-DAG:     tile.load_async {{.*}} : memref<2x136x100xf32, {{.*}}, !tile.ring<2 x !tile.shared<128x32xf32, swizzle = 128>>
// SKEWED-LABEL: func.func @select
// SKEWED:         tile.group
// SKEWED:         tile.shift_rows %{{.*}} : !tile.shared<192x32xi1
// SKEWED-LABEL: func.func @copied
// SKEWED-NOT:     tile.group
// SKEWED:         tile.load {{.*}} -> !tile.shared<192x48xi1>
// SKEWED-LABEL: func.func @some
// SKEWED:         tile.wait %{{.*}} : !tile.ring<1 x !tile.shared<64x64xi1
// SKEWED:         scf.if
// SKEWED:           tile.from_shared %{{.*}} -> !tile.fragment<64x64xi1

module attributes {machine.target = #machine.target<"sm_90a", arch = "hopper", cores = 2, vector_bytes = 128, vector_registers = 2048, fast_memory = 232448, near_memory = 52428800, bandwidth = 4290000, peak = 66900, shared_memory = 233472, matrix_peak = 989000>} {
  func.func @mask(%q: tensor<2x2x300x64xbf16>, %mask: tensor<2x1x300x304xi1>) -> tensor<2x2x300x64xbf16> {
    %o = attn.attention %q, %q, %q scale(0.125)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %c0 = arith.constant 0 : index
        %x = tensor.extract %mask[%b, %c0, %i, %j] : tensor<2x1x300x304xi1>
        // No key for row 7, and none in the last tiles for some.
        %c7 = arith.constant 7 : index
        %other = arith.cmpi ne, %i, %c7 : index
        %kept = arith.andi %x, %other : i1
        attn.yield %kept : i1
      } {schedule = #attn.schedule<tile = 192x32, order = longest_first, warps = 12, stages = 4, maximum = stale, blocks = persistent, captures = tiled>}
      : tensor<2x2x300x64xbf16>, tensor<2x2x300x64xbf16>, tensor<2x2x300x64xbf16> -> tensor<2x2x300x64xbf16>
    return %o : tensor<2x2x300x64xbf16>
  }

  func.func @beside(%q: tensor<2x2x136x64xf16>, %k: tensor<2x2x100x64xf16>, %bias: tensor<2x136x100xf32>, %mask: tensor<136x112xi8>) -> tensor<2x2x136x64xf16> {
    %o = attn.attention %q, %k, %k scale(0.125)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %bias[%h, %i, %j] : tensor<2x136x100xf32>
        %z = arith.addf %s, %x : f32
        attn.yield %z : f32
      } mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %mask[%i, %j] : tensor<136x112xi8>
        %c2 = arith.constant 2 : i8
        %keep = arith.cmpi sgt, %x, %c2 : i8
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 128x32, order = longest_first, warps = 8, stages = 2, maximum = stale, blocks = persistent, products = alternating, captures = tiled>}
      : tensor<2x2x136x64xf16>, tensor<2x2x100x64xf16>, tensor<2x2x100x64xf16> -> tensor<2x2x136x64xf16>
    return %o : tensor<2x2x136x64xf16>
  }

  func.func @select(%q: tensor<1x2x300x64xbf16>, %mask: tensor<300x304xi1>) -> tensor<1x2x300x64xbf16> {
    %o = attn.attention %q, %q, %q scale(0.125)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %mask[%i, %j] : tensor<300x304xi1>
        %low = arith.constant -3.0 : f32
        %z = arith.select %x, %s, %low : f32
        attn.yield %z : f32
      } mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %keep = arith.cmpi sge, %i, %j : index
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 192x32, order = longest_first, warps = 12, stages = 4, maximum = stale, blocks = persistent, captures = tiled>}
      : tensor<1x2x300x64xbf16>, tensor<1x2x300x64xbf16>, tensor<1x2x300x64xbf16> -> tensor<1x2x300x64xbf16>
    return %o : tensor<1x2x300x64xbf16>
  }

  func.func @copied(%q: tensor<1x2x300x64xbf16>, %mask: tensor<300x304xi1>) -> tensor<1x2x300x64xbf16> {
    %o = attn.attention %q, %q, %q scale(0.125)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %mask[%i, %j] : tensor<300x304xi1>
        %low = arith.constant -3.0 : f32
        %z = arith.select %x, %s, %low : f32
        attn.yield %z : f32
      } mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %keep = arith.cmpi sge, %i, %j : index
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 192x48, order = longest_first, warps = 12, stages = 2, maximum = stale, blocks = persistent, captures = tiled>}
      : tensor<1x2x300x64xbf16>, tensor<1x2x300x64xbf16>, tensor<1x2x300x64xbf16> -> tensor<1x2x300x64xbf16>
    return %o : tensor<1x2x300x64xbf16>
  }

  // Keys behind the query are kept, others where the tensor says so.
  func.func @some(%q: tensor<1x2x200x64xbf16>, %mask: tensor<200x208xi1>) -> tensor<1x2x200x64xbf16> {
    %o = attn.attention %q, %q, %q scale(0.125)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %mask[%i, %j] : tensor<200x208xi1>
        %before = arith.cmpi sge, %i, %j : index
        %keep = arith.ori %x, %before : i1
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 64x64, order = longest_first, warps = 4, stages = 1, captures = tiled>}
      : tensor<1x2x200x64xbf16>, tensor<1x2x200x64xbf16>, tensor<1x2x200x64xbf16> -> tensor<1x2x200x64xbf16>
    return %o : tensor<1x2x200x64xbf16>
  }

  func.func @one(%q: tensor<2x1x1x64xbf16>, %mask: tensor<2x1x16xi1>) -> tensor<2x1x1x64xbf16> {
    %o = attn.attention %q, %q, %q scale(0.125)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %mask[%b, %i, %j] : tensor<2x1x16xi1>
        attn.yield %x : i1
      } {schedule = #attn.schedule<tile = 64x32, order = longest_first, warps = 4, stages = 2, captures = tiled>}
      : tensor<2x1x1x64xbf16>, tensor<2x1x1x64xbf16>, tensor<2x1x1x64xbf16> -> tensor<2x1x1x64xbf16>
    return %o : tensor<2x1x1x64xbf16>
  }

  func.func @sizes(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %mask: tensor<?x?x?xi1>) -> tensor<?x?x?x64xbf16> {
    %o = attn.attention %q, %k, %k scale(0.125)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %mask[%b, %i, %j] : tensor<?x?x?xi1>
        attn.yield %x : i1
      } {schedule = #attn.schedule<tile = 64x32, order = longest_first, warps = 4, stages = 2, captures = tiled>}
      : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
    return %o : tensor<?x?x?x64xbf16>
  }
}
