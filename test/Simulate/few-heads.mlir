// A few queries of each head of a group are rows of one head (attn-pack-groups). Results
// in which the heads of a query are neighbours get them from where parts of the keys are
// merged, and from a tile that has all of a sequence (attn-tile): sequences without keys,
// of one part, and of several. Rows are in the order of heads, or, of three and of five
// queries, of which no box is, of queries.
//
// REQUIRES: numpy
// RUN: rm -rf %t && mkdir %t && %python -c "import numpy as np; \
// RUN:   np.save('%t/some.npy', np.array([0, 7, 200, 31, 33, 150], np.int32)); \
// RUN:   np.save('%t/one.npy', np.array([190], np.int32)); \
// RUN:   np.save('%t/many.npy', np.arange(0, 200, 13).astype(np.int32))"
//
// DEFINE: %{list} = some
// DEFINE: %{arch} = sm_90a
// DEFINE: %{run} = fovea-run %s --check --target=%{arch} --simulate --input=%t/%{list}.npy
//
// RUN: fovea-compile %s --target=sm_90a --emit=tile | FileCheck %s --check-prefix=TILE
// TILE-LABEL: func @heads
// TILE: tile.store_async {{.*}} dims [2, 1, 3] inner 4 valid(%c16) : {{.*}}, memref<?x4x8x64xbf16
// TILE-NOT: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel", "parallel"]
// TILE-LABEL: func @three
// TILE: tile.load_async {{.*}} dims [2, 1, 3] inner 4 into
// TILE: tile.store_async {{.*}} dims [1, 2, 3] inner 4 : {{.*}}, memref<?x3x8x64xbf16
// TILE-NOT: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel", "parallel"]
// TILE-LABEL: func @five
// TILE: tile.load_async {{.*}} dims [2, 1, 3] inner 4 into
// TILE: tile.store_async {{.*}} dims [1, 2, 3] inner 4 : {{.*}}, memref<?x5x8x64xbf16
//
// RUN: %{run} --entry=heads --random=1 --dims=query:6x8x4x64 --dims=key:6x2x200x64 --dims=value:6x2x200x64 | FileCheck %s
// REDEFINE: %{arch} = sm_80
// RUN: %{run} --entry=heads --random=1 --dims=query:6x8x4x64 --dims=key:6x2x200x64 --dims=value:6x2x200x64 | FileCheck %s
// REDEFINE: %{arch} = sm_90a
// REDEFINE: %{list} = one
// RUN: %{run} --entry=heads --random=2 --dims=query:1x8x4x64 --dims=key:1x2x200x64 --dims=value:1x2x200x64 | FileCheck %s
// REDEFINE: %{list} = many
// RUN: %{run} --entry=heads --random=3 --dims=query:16x8x4x64 --dims=key:16x2x200x64 --dims=value:16x2x200x64 | FileCheck %s
// RUN: %{run} --entry=three --random=7 --dims=query:16x8x3x64 --dims=key:16x2x200x64 --dims=value:16x2x200x64 | FileCheck %s
// REDEFINE: %{list} = one
// RUN: %{run} --entry=three --random=8 --dims=query:1x8x3x64 --dims=key:1x2x200x64 --dims=value:1x2x200x64 | FileCheck %s
// REDEFINE: %{list} = some
// RUN: %{run} --entry=three --random=9 --dims=query:6x8x3x64 --dims=key:6x2x200x64 --dims=value:6x2x200x64 | FileCheck %s
// RUN: %{run} --entry=five --random=10 --dims=query:6x8x5x64 --dims=key:6x2x200x64 --dims=value:6x2x200x64 | FileCheck %s
// REDEFINE: %{arch} = sm_80
// RUN: %{run} --entry=three --random=9 --dims=query:6x8x3x64 --dims=key:6x2x200x64 --dims=value:6x2x200x64 | FileCheck %s
// REDEFINE: %{arch} = sm_90a
// RUN: %{run} --entry=turned --random=4 --dims=query:6x2x70x64 --dims=key:6x2x200x64 --dims=value:6x2x200x64 | FileCheck %s
// REDEFINE: %{list} = one
// RUN: %{run} --entry=turned --random=5 --dims=query:1x2x130x64 --dims=key:1x2x200x64 --dims=value:1x2x200x64 | FileCheck %s
//
// REDEFINE: %{list} = some
// RUN: %{run} --entry=wide --random=6 --dims=query:6x1x70x128 --dims=key:6x1x200x128 --dims=value:6x1x200x128 | FileCheck %s
//
// CHECK: check: result 0: max error {{[0-9.e-]+}}, relative {{[0-9.e-]+}} (bound
// CHECK-NOT: FAILED

!few = tensor<?x8x4x64xbf16>
!keys = tensor<?x2x?x64xbf16>
!out = tensor<?x4x8x64xbf16>
!turned = tensor<?x?x2x64xbf16>
module attributes {attn.schedules = [#attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 2, split = 4>, #attn.schedule<tile = 64x32, order = longest_first, warps = 4, stages = 2, split = 4>, #attn.schedule<tile = 64x32, order = longest_first, warps = 4, stages = 2>, #attn.schedule<tile = 64x32, order = longest_first, warps = 4, stages = 2, split = 4>, #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 2, split = 4>]} {
func.func @heads(%lengths: tensor<?xi32>, %query: !few, %key: !keys, %value: !keys) -> !out {
  %c0 = arith.constant 0 : index
  %o = attn.attention %query, %key, %value scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %used32 = tensor.extract %lengths[%b] : tensor<?xi32>
      %used = arith.index_cast %used32 : i32 to index
      %keep = arith.cmpi slt, %j, %used : index
      attn.yield %keep : i1
    } : !few, !keys, !keys -> !few
  %batch = tensor.dim %query, %c0 : !few
  %room = tensor.empty(%batch) : !out
  %t = linalg.transpose ins(%o : !few) outs(%room : !out) permutation = [0, 2, 1, 3]
  return %t : !out
}

func.func @three(%lengths: tensor<?xi32>, %query: tensor<?x8x3x64xbf16>, %key: !keys, %value: !keys) -> tensor<?x3x8x64xbf16> {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %o = attn.attention %query, %key, %value scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %used32 = tensor.extract %lengths[%b] : tensor<?xi32>
      %used = arith.index_cast %used32 : i32 to index
      %before = arith.subi %used, %c3 : index
      %last = arith.addi %i, %before : index
      %keep = arith.cmpi sge, %last, %j : index
      attn.yield %keep : i1
    } : tensor<?x8x3x64xbf16>, !keys, !keys -> tensor<?x8x3x64xbf16>
  %batch = tensor.dim %query, %c0 : tensor<?x8x3x64xbf16>
  %room = tensor.empty(%batch) : tensor<?x3x8x64xbf16>
  %t = linalg.transpose ins(%o : tensor<?x8x3x64xbf16>) outs(%room : tensor<?x3x8x64xbf16>) permutation = [0, 2, 1, 3]
  return %t : tensor<?x3x8x64xbf16>
}

func.func @five(%lengths: tensor<?xi32>, %query: tensor<?x8x5x64xbf16>, %key: !keys, %value: !keys) -> tensor<?x5x8x64xbf16> {
  %c0 = arith.constant 0 : index
  %c5 = arith.constant 5 : index
  %o = attn.attention %query, %key, %value scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %used32 = tensor.extract %lengths[%b] : tensor<?xi32>
      %used = arith.index_cast %used32 : i32 to index
      %before = arith.subi %used, %c5 : index
      %last = arith.addi %i, %before : index
      %keep = arith.cmpi sge, %last, %j : index
      attn.yield %keep : i1
    } : tensor<?x8x5x64xbf16>, !keys, !keys -> tensor<?x8x5x64xbf16>
  %batch = tensor.dim %query, %c0 : tensor<?x8x5x64xbf16>
  %room = tensor.empty(%batch) : tensor<?x5x8x64xbf16>
  %t = linalg.transpose ins(%o : tensor<?x8x5x64xbf16>) outs(%room : tensor<?x5x8x64xbf16>) permutation = [0, 2, 1, 3]
  return %t : tensor<?x5x8x64xbf16>
}

func.func @turned(%lengths: tensor<?xi32>, %query: !keys, %key: !keys, %value: !keys) -> !turned {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %rows = tensor.dim %query, %c2 : !keys
  %o = attn.attention %query, %key, %value scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %used32 = tensor.extract %lengths[%b] : tensor<?xi32>
      %used = arith.index_cast %used32 : i32 to index
      %before = arith.subi %used, %rows : index
      %last = arith.addi %i, %before : index
      %keep = arith.cmpi sge, %last, %j : index
      attn.yield %keep : i1
    } : !keys, !keys, !keys -> !keys
  %batch = tensor.dim %query, %c0 : !keys
  %room = tensor.empty(%batch, %rows) : !turned
  %t = linalg.transpose ins(%o : !keys) outs(%room : !turned) permutation = [0, 2, 1, 3]
  return %t : !turned
}

// A warp has a row of 128 features.
func.func @wide(%lengths: tensor<?xi32>, %query: tensor<?x1x?x128xbf16>, %key: tensor<?x1x?x128xbf16>, %value: tensor<?x1x?x128xbf16>) -> (tensor<?x1x?x128xbf16>, tensor<?x1x?xf32>) {
  %o, %l = attn.attention %query, %key, %value scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %used32 = tensor.extract %lengths[%b] : tensor<?xi32>
      %used = arith.index_cast %used32 : i32 to index
      %keep = arith.cmpi slt, %j, %used : index
      attn.yield %keep : i1
    } : tensor<?x1x?x128xbf16>, tensor<?x1x?x128xbf16>, tensor<?x1x?x128xbf16> -> tensor<?x1x?x128xbf16>, tensor<?x1x?xf32>
  return %o, %l : tensor<?x1x?x128xbf16>, tensor<?x1x?xf32>
}
}
