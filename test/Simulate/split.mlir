// Keys split among blocks, and merged: sizes that no tile divides, masks that
// leave parts without a tile and rows without a key, lengths, dropout, a score
// region, and every strategy, against the graph in f64. Blocks in other orders
// compute the same bits (--seeds).
//
// RUN: fovea-run %s --entry=plain --target=sm_90a --simulate --seeds=3 --random=1 --check | FileCheck %s
// RUN: fovea-run %s --entry=plain --target=sm_80 --simulate --seeds=3 --random=1 --check | FileCheck %s
// RUN: fovea-run %s --entry=plain --random=1 --check | FileCheck %s
// RUN: fovea-run %s --entry=plain --target=sm_90a --strategy=two-pass --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %s --entry=plain --target=sm_90a --strategy=three-pass --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %s --entry=plain --strategy=three-pass --random=1 --check | FileCheck %s
//
// Results of a part leave by TMA, up to the end of the queries of its head.
// RUN: fovea-compile %s --target=sm_90a --emit=tile | FileCheck %s --check-prefix=TILE
// RUN: fovea-run %s --entry=staged --target=sm_90a --simulate --seeds=3 --random=1 --check | FileCheck %s
//
// No key; one; fewer tiles than parts; a tile more or less; as many in each part.
// RUN: fovea-run %s --entry=stale --target=sm_90a --simulate --random=1 --dims=k:2x1x0x32 --dims=v:2x1x0x16 | FileCheck %s --check-prefix=ZERO
// RUN: fovea-run %s --entry=stale --random=1 --dims=k:2x1x0x32 --dims=v:2x1x0x16 | FileCheck %s --check-prefix=ZERO
// RUN: fovea-run %s --entry=stale --target=sm_90a --simulate --random=1 --dims=k:2x1x1x32 --dims=v:2x1x1x16 --check | FileCheck %s
// RUN: fovea-run %s --entry=stale --target=sm_90a --simulate --random=1 --dims=k:2x1x33x32 --dims=v:2x1x33x16 --check | FileCheck %s
// RUN: fovea-run %s --entry=stale --target=sm_90a --simulate --random=1 --dims=k:2x1x95x32 --dims=v:2x1x95x16 --check | FileCheck %s
// RUN: fovea-run %s --entry=stale --target=sm_90a --simulate --random=1 --dims=k:2x1x97x32 --dims=v:2x1x97x16 --check | FileCheck %s
// RUN: fovea-run %s --entry=stale --target=sm_90a --simulate --random=1 --dims=k:2x1x192x32 --dims=v:2x1x192x16 --check | FileCheck %s
// RUN: fovea-run %s --entry=stale --target=sm_80 --simulate --random=1 --dims=k:2x1x97x32 --dims=v:2x1x97x16 --check | FileCheck %s
//
// RUN: fovea-run %s --entry=causal --target=sm_90a --simulate --seeds=2 --random=1 --dims=200 --check | FileCheck %s
// RUN: fovea-run %s --entry=causal --target=sm_90a --simulate --random=1 --dims=20 --check | FileCheck %s
// RUN: fovea-run %s --entry=causal --target=sm_80 --simulate --random=1 --dims=200 --check | FileCheck %s
// RUN: fovea-run %s --entry=causal --random=1 --dims=20 --check | FileCheck %s
// RUN: fovea-run %s --entry=lengths --target=sm_90a --simulate --seeds=2 --random=1 --integers=0:200 --check | FileCheck %s
// RUN: fovea-run %s --entry=lengths --target=sm_90a --simulate --random=1 --integers=0:0 | FileCheck %s --check-prefix=ZERO
// RUN: fovea-run %s --entry=lengths --target=sm_90a --simulate --random=1 --integers=32:33 --check | FileCheck %s
// RUN: fovea-run %s --entry=lengths --target=sm_80 --simulate --random=1 --integers=0:200 --check | FileCheck %s
// RUN: fovea-run %s --entry=lengths --random=1 --integers=0:200 --check | FileCheck %s
// RUN: fovea-run %s --entry=window --target=sm_90a --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %s --entry=window --target=sm_80 --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %s --entry=window --random=1 --check | FileCheck %s
//
// As many parts as batches leave of those that the schedule has: 6, 2 and 1.
// RUN: fovea-run %s --entry=batches --target=sm_90a --simulate --seeds=2 --random=1 --dims=q:1x2x1x32 --dims=k:1x2x300x32 --check | FileCheck %s
// RUN: fovea-run %s --entry=batches --target=sm_90a --simulate --random=1 --dims=q:3x2x1x32 --dims=k:3x2x300x32 --check | FileCheck %s
// RUN: fovea-run %s --entry=batches --target=sm_90a --simulate --random=1 --dims=q:7x2x1x32 --dims=k:7x2x300x32 --check | FileCheck %s
// RUN: fovea-run %s --entry=batches --target=sm_90a --simulate --random=1 --dims=q:0x2x1x32 --dims=k:0x2x300x32
// RUN: fovea-run %s --entry=batches --target=sm_80 --simulate --random=1 --dims=q:3x2x1x32 --dims=k:3x2x300x32 --check | FileCheck %s
// RUN: fovea-run %s --entry=batches --random=1 --dims=q:3x2x1x32 --dims=k:3x2x300x32 --check | FileCheck %s
//
// Chosen by the model, with the queries of a group in one head, whose dropout and
// score region see the graph's heads.
// RUN: fovea-compile %s --target=sm_90a --emit=fused | FileCheck %s --check-prefix=CHOSEN
// RUN: fovea-run %s --entry=packed --target=sm_90a --simulate --seeds=2 --random=1 --integers=0:490 --check | FileCheck %s
// RUN: fovea-run %s --entry=packed --target=sm_80 --simulate --random=1 --integers=0:490 --check | FileCheck %s
//
// CHECK: check: result 0: max error
// CHECK-NOT: FAILED
// ZERO: result 0: {{.*}} min 0, max 0{{$}}
// ZERO: result 1: {{.*}} min -inf, max -inf

func.func @plain(%q: tensor<2x4x37x24xbf16>, %k: tensor<2x2x200x24xbf16>, %v: tensor<2x2x200x40xbf16>) -> (tensor<2x4x37x40xbf16>, tensor<2x4x37xf32>) {
  %o, %l = attn.attention %q, %k, %v scale(0.2)
      {schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 2, split = 3>}
      : tensor<2x4x37x24xbf16>, tensor<2x2x200x24xbf16>, tensor<2x2x200x40xbf16> -> tensor<2x4x37x40xbf16>, tensor<2x4x37xf32>
  return %o, %l : tensor<2x4x37x40xbf16>, tensor<2x4x37xf32>
}

func.func @stale(%q: tensor<2x1x5x32xf16>, %k: tensor<2x1x?x32xf16>, %v: tensor<2x1x?x16xf16>) -> (tensor<2x1x5x16xf16>, tensor<2x1x5xf64>) {
  %o, %l = attn.attention %q, %k, %v scale(0.2)
      {schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 2, maximum = stale, split = 3>}
      : tensor<2x1x5x32xf16>, tensor<2x1x?x32xf16>, tensor<2x1x?x16xf16> -> tensor<2x1x5x16xf16>, tensor<2x1x5xf64>
  return %o, %l : tensor<2x1x5x16xf16>, tensor<2x1x5xf64>
}

// To the bottom right: with fewer keys than queries, the first rows have none.
func.func @causal(%q: tensor<1x2x70x16xf16>, %k: tensor<1x2x?x16xf16>, %seed: i64) -> (tensor<1x2x70x16xf16>, tensor<1x2x70xf32>) {
  %c2 = arith.constant 2 : index
  %c70 = arith.constant 70 : index
  %n = tensor.dim %k, %c2 : tensor<1x2x?x16xf16>
  %d = arith.subi %n, %c70 : index
  %o, %l = attn.attention %q, %k, %k scale(0.25) dropout(0.3, %seed, %seed)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %t = math.tanh %s : f32
        attn.yield %t : f32
      }
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %last = arith.addi %i, %d : index
        %keep = arith.cmpi sge, %last, %j : index
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 64x16, order = longest_first, warps = 4, stages = 2, split = 4>}
      : tensor<1x2x70x16xf16>, tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16> -> tensor<1x2x70x16xf16>, tensor<1x2x70xf32>
  return %o, %l : tensor<1x2x70x16xf16>, tensor<1x2x70xf32>
}

func.func @lengths(%q: tensor<4x2x1x16xbf16>, %k: tensor<4x2x200x16xbf16>, %v: tensor<4x2x200x16xbf16>, %len: tensor<4xi32>) -> (tensor<4x2x1x16xbf16>, tensor<4x2x1xf32>) {
  %o, %l = attn.attention %q, %k, %v scale(0.25)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %len[%b] : tensor<4xi32>
        %n = arith.index_cast %x : i32 to index
        %keep = arith.cmpi slt, %j, %n : index
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 2, split = 3>}
      : tensor<4x2x1x16xbf16>, tensor<4x2x200x16xbf16>, tensor<4x2x200x16xbf16> -> tensor<4x2x1x16xbf16>, tensor<4x2x1xf32>
  return %o, %l : tensor<4x2x1x16xbf16>, tensor<4x2x1xf32>
}

// Tiles of which some are tested: documents, within a window.
func.func @window(%q: tensor<1x2x70x16xf16>, %k: tensor<1x2x200x16xf16>, %ids: tensor<200xi32>) -> tensor<1x2x70x16xf16> {
  %o = attn.attention %q, %k, %k scale(0.25)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %c100 = arith.constant 100 : index
        %c60 = arith.constant 60 : index
        %at = arith.addi %i, %c100 : index
        %d = arith.subi %at, %j : index
        %near = arith.cmpi ult, %d, %c60 : index
        %x = tensor.extract %ids[%at] : tensor<200xi32>
        %y = tensor.extract %ids[%j] : tensor<200xi32>
        %same = arith.cmpi eq, %x, %y : i32
        %keep = arith.andi %near, %same : i1
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 64x16, order = linear, warps = 4, stages = 2, split = 2>}
      : tensor<1x2x70x16xf16>, tensor<1x2x200x16xf16>, tensor<1x2x200x16xf16> -> tensor<1x2x70x16xf16>
  return %o : tensor<1x2x70x16xf16>
}

// CHOSEN-LABEL: func.func @packed
// CHOSEN: attn.attention
// CHOSEN: split = {{[2-9]}}>} : tensor<2x2x6x64xbf16>,
func.func @packed(%q: tensor<2x6x2x64xbf16>, %k: tensor<2x2x500x64xbf16>, %v: tensor<2x2x500x64xbf16>, %len: tensor<2xi32>, %slopes: tensor<6xf32>, %seed: i64) -> (tensor<2x6x2x64xbf16>, tensor<2x6x2xf32>) {
  %o, %l = attn.attention %q, %k, %v scale(0.125) dropout(0.2, %seed, %seed)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %slope = tensor.extract %slopes[%h] : tensor<6xf32>
        %d = arith.subi %j, %i : index
        %n = arith.index_cast %d : index to i32
        %f = arith.sitofp %n : i32 to f32
        %bias = arith.mulf %slope, %f : f32
        %r = arith.addf %s, %bias : f32
        attn.yield %r : f32
      }
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %len[%b] : tensor<2xi32>
        %n = arith.index_cast %x : i32 to index
        %last = arith.addi %n, %i : index
        %keep = arith.cmpi sle, %j, %last : index
        attn.yield %keep : i1
      } : tensor<2x6x2x64xbf16>, tensor<2x2x500x64xbf16>, tensor<2x2x500x64xbf16> -> tensor<2x6x2x64xbf16>, tensor<2x6x2xf32>
  return %o, %l : tensor<2x6x2x64xbf16>, tensor<2x6x2xf32>
}

// TILE-LABEL: func.func @staged
// TILE: tile.store_async %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}, %c0] dims [2, 3] : {{.*}}, memref<6x2x100x64xf32
func.func @staged(%q: tensor<2x2x100x64xbf16>, %k: tensor<2x2x200x64xbf16>, %v: tensor<2x2x200x64xbf16>) -> tensor<2x2x100x64xbf16> {
  %o = attn.attention %q, %k, %v scale(0.2)
      {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, split = 3>}
      : tensor<2x2x100x64xbf16>, tensor<2x2x200x64xbf16>, tensor<2x2x200x64xbf16> -> tensor<2x2x100x64xbf16>
  return %o : tensor<2x2x100x64xbf16>
}

func.func @batches(%q: tensor<?x2x1x32xf16>, %k: tensor<?x2x?x32xf16>) -> (tensor<?x2x1x32xf16>, tensor<?x2x1xf32>) {
  %o, %l = attn.attention %q, %k, %k scale(0.2)
      {schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 2, split = 6>}
      : tensor<?x2x1x32xf16>, tensor<?x2x?x32xf16>, tensor<?x2x?x32xf16> -> tensor<?x2x1x32xf16>, tensor<?x2x1xf32>
  return %o, %l : tensor<?x2x1x32xf16>, tensor<?x2x1xf32>
}
