// As batch-heads.mlir, with fourteen heads on two: a query of a group of seven has eight
// rows, of which the last one has no head, so that no tile may write it.
//
// REQUIRES: numpy
// RUN: rm -rf %t && mkdir %t && %python -c "import numpy as np; \
// RUN:   np.save('%t/some.npy', np.array([0, 70, 131, 5], np.int32))"
//
// DEFINE: %{run} = fovea-run %s --check --target=sm_90a --simulate --typical-length=1024
//
// RUN: fovea-compile %s --target=sm_90a --typical-length=1024 --emit=tile | FileCheck %s --check-prefix=TILE
// TILE-LABEL: func @plain
// TILE: tile.load_async {{.*}} dims [2, 1, 3] inner 8 used 7 into
// TILE: tile.store_async {{.*}} dims [2, 1, 3] inner 8 used 7 valid
// TILE-LABEL: func @swapped
// TILE: tile.load_async {{.*}} dims [1, 2, 3] inner 8 used 7 into
// TILE: tile.store_async {{.*}} dims [1, 2, 3] inner 8 used 7 valid
// TILE: tile.store {{.*}} dims [2, 1] inner 8 used 7 valid
// TILE-NOT: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel", "parallel"
// TILE-LABEL: func @swapped_parts
// TILE: tile.store_async {{.*}} dims [1, 2, 3] inner 8 used 7 valid
// TILE-NOT: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel", "parallel"
//
// RUN: %{run} --entry=plain --random=1 --input=%t/some.npy --dims=query:4x14x1x64 --dims=key:4x2x140x64 --dims=value:4x2x140x64 | FileCheck %s
// RUN: %{run} --entry=plain_parts --random=2 --input=%t/some.npy --dims=query:4x14x1x64 --dims=key:4x2x140x64 --dims=value:4x2x140x64 | FileCheck %s
// RUN: %{run} --entry=plain --random=3 --input=%t/some.npy --dims=query:4x14x33x64 --dims=key:4x2x140x64 --dims=value:4x2x140x64 | FileCheck %s
// RUN: %{run} --entry=plain_parts --random=4 --input=%t/some.npy --dims=query:4x14x33x64 --dims=key:4x2x140x64 --dims=value:4x2x140x64 | FileCheck %s
// RUN: %{run} --entry=plain --random=5 --input=%t/some.npy --dims=query:4x14x131x64 --dims=key:4x2x140x64 --dims=value:4x2x140x64 | FileCheck %s
// RUN: %{run} --entry=plain_parts --random=6 --input=%t/some.npy --dims=query:4x14x131x64 --dims=key:4x2x140x64 --dims=value:4x2x140x64 | FileCheck %s
// RUN: %{run} --entry=swapped --random=7 --input=%t/some.npy --dims=rows:4x0x14x64 --dims=key:4x2x140x64 --dims=value:4x2x140x64 | FileCheck %s
// RUN: %{run} --entry=swapped_parts --random=8 --input=%t/some.npy --dims=rows:4x0x14x64 --dims=key:4x2x140x64 --dims=value:4x2x140x64 | FileCheck %s
// RUN: %{run} --entry=swapped --random=9 --input=%t/some.npy --dims=rows:4x17x14x64 --dims=key:4x2x140x64 --dims=value:4x2x140x64 | FileCheck %s
// RUN: %{run} --entry=swapped_parts --random=10 --input=%t/some.npy --dims=rows:4x17x14x64 --dims=key:4x2x140x64 --dims=value:4x2x140x64 | FileCheck %s
// RUN: %{run} --entry=swapped --random=11 --input=%t/some.npy --dims=rows:4x70x14x64 --dims=key:4x2x140x64 --dims=value:4x2x140x64 | FileCheck %s
// RUN: %{run} --entry=swapped_parts --random=12 --input=%t/some.npy --dims=rows:4x70x14x64 --dims=key:4x2x140x64 --dims=value:4x2x140x64 | FileCheck %s
// RUN: %{run} --entry=full --random=13 --dims=query:2x14x40x64 --dims=key:2x2x140x64 --dims=value:2x2x140x64 | FileCheck %s
// RUN: %{run} --entry=full_parts --random=14 --dims=query:2x14x40x64 --dims=key:2x2x140x64 --dims=value:2x2x140x64 | FileCheck %s
//
// CHECK: check: result 0: max error {{[0-9.e-]+}}, relative {{[0-9.e-]+}} (bound
// CHECK-NOT: FAILED

!query = tensor<?x14x?x64xbf16>
!rows = tensor<?x?x14x64xbf16>
!key = tensor<?x2x?x64xbf16>
!lens = tensor<?xi32>
!lse = tensor<?x14x?xf32>
module attributes {attn.schedules = [#attn.schedule<tile = 64x32, order = longest_first, warps = 4, stages = 2>,
    #attn.schedule<tile = 64x32, order = longest_first, warps = 4, stages = 2>,
    #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 2>,
    #attn.schedule<tile = 64x32, order = longest_first, warps = 4, stages = 2, split = 16>,
    #attn.schedule<tile = 64x32, order = longest_first, warps = 4, stages = 2, split = 16>,
    #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 2, split = 16>],
  machine.target = #machine.target<"sm_90a", arch = "hopper", cores = 24, vector_bytes = 128, vector_registers = 2048, fast_memory = 232448, near_memory = 52428800, bandwidth = 4290000, peak = 66900, shared_memory = 233472, matrix_peak = 989000>} {
func.func @plain(%lens: !lens, %query: !query, %key: !key, %value: !key) -> !query {
  %c2 = arith.constant 2 : index
  %n = tensor.dim %query, %c2 : !query
  %output = attn.attention %query, %key, %value scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %q: index, %kv: index):
      %1 = tensor.extract %lens[%b] : !lens
      %2 = arith.index_cast %1 : i32 to index
      %3 = arith.cmpi slt, %kv, %2 : index
      %4 = arith.subi %2, %n : index
      %5 = arith.addi %q, %4 : index
      %6 = arith.cmpi sge, %5, %kv : index
      %7 = arith.andi %3, %6 : i1
      attn.yield %7 : i1
    }
    : !query, !key, !key -> !query
  return %output : !query
}
func.func @swapped(%lens: !lens, %rows: !rows, %key: !key, %value: !key) -> (!rows, !lse) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %b = tensor.dim %rows, %c0 : !rows
  %n = tensor.dim %rows, %c1 : !rows
  %e = tensor.empty(%b, %n) : !query
  %query = linalg.transpose ins(%rows : !rows) outs(%e : !query) permutation = [0, 2, 1, 3]
  %output, %lse = attn.attention %query, %key, %value scale(0.125)
    mask {
    ^bb0(%bb: index, %h: index, %q: index, %kv: index):
      %1 = tensor.extract %lens[%bb] : !lens
      %2 = arith.index_cast %1 : i32 to index
      %3 = arith.cmpi slt, %kv, %2 : index
      %4 = arith.subi %2, %n : index
      %5 = arith.addi %q, %4 : index
      %6 = arith.cmpi sge, %5, %kv : index
      %7 = arith.andi %3, %6 : i1
      attn.yield %7 : i1
    }
    : !query, !key, !key -> !query, !lse
  %f = tensor.empty(%b, %n) : !rows
  %out = linalg.transpose ins(%output : !query) outs(%f : !rows) permutation = [0, 2, 1, 3]
  return %out, %lse : !rows, !lse
}
func.func @full(%query: !query, %key: !key, %value: !key) -> !query {
  %output = attn.attention %query, %key, %value scale(0.125) : !query, !key, !key -> !query
  return %output : !query
}
func.func @plain_parts(%lens: !lens, %query: !query, %key: !key, %value: !key) -> !query {
  %c2 = arith.constant 2 : index
  %n = tensor.dim %query, %c2 : !query
  %output = attn.attention %query, %key, %value scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %q: index, %kv: index):
      %1 = tensor.extract %lens[%b] : !lens
      %2 = arith.index_cast %1 : i32 to index
      %3 = arith.cmpi slt, %kv, %2 : index
      %4 = arith.subi %2, %n : index
      %5 = arith.addi %q, %4 : index
      %6 = arith.cmpi sge, %5, %kv : index
      %7 = arith.andi %3, %6 : i1
      attn.yield %7 : i1
    }
    : !query, !key, !key -> !query
  return %output : !query
}
func.func @swapped_parts(%lens: !lens, %rows: !rows, %key: !key, %value: !key) -> (!rows, !lse) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %b = tensor.dim %rows, %c0 : !rows
  %n = tensor.dim %rows, %c1 : !rows
  %e = tensor.empty(%b, %n) : !query
  %query = linalg.transpose ins(%rows : !rows) outs(%e : !query) permutation = [0, 2, 1, 3]
  %output, %lse = attn.attention %query, %key, %value scale(0.125)
    mask {
    ^bb0(%bb: index, %h: index, %q: index, %kv: index):
      %1 = tensor.extract %lens[%bb] : !lens
      %2 = arith.index_cast %1 : i32 to index
      %3 = arith.cmpi slt, %kv, %2 : index
      %4 = arith.subi %2, %n : index
      %5 = arith.addi %q, %4 : index
      %6 = arith.cmpi sge, %5, %kv : index
      %7 = arith.andi %3, %6 : i1
      attn.yield %7 : i1
    }
    : !query, !key, !key -> !query, !lse
  %f = tensor.empty(%b, %n) : !rows
  %out = linalg.transpose ins(%output : !query) outs(%f : !rows) permutation = [0, 2, 1, 3]
  return %out, %lse : !rows, !lse
}
func.func @full_parts(%query: !query, %key: !key, %value: !key) -> !query {
  %output = attn.attention %query, %key, %value scale(0.125) : !query, !key, !key -> !query
  return %output : !query
}
}
