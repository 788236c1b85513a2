// Parts of sequences of any length, from a list that is computed in front, against
// the graph in f64: one batch, which has none; few and many; no key at all; all of
// one length; one long among short ones. Blocks in other orders compute the same
// bits (--seeds).
//
// DEFINE: %{run} = fovea-run %s --random=1 --check
// DEFINE: %{hopper} = %{run} --target=sm_90a --simulate
// DEFINE: %{one} = --dims=q:1x2x1x16 --dims=k:1x2x200x16 --dims=len:1
// DEFINE: %{three} = --dims=q:3x2x1x16 --dims=k:3x2x200x16 --dims=len:3
// DEFINE: %{nine} = --dims=q:9x2x1x16 --dims=k:9x2x200x16 --dims=len:9
// DEFINE: %{many} = --dims=q:40x2x1x16 --dims=k:40x2x200x16 --dims=len:40
//
// RUN: %{hopper} --entry=lengths --integers=150:200 %{one} | FileCheck %s
// RUN: %{hopper} --entry=lengths --integers=0:200 %{three} --seeds=3 | FileCheck %s
// RUN: %{hopper} --entry=lengths --integers=0:200 %{nine} | FileCheck %s
// RUN: %{hopper} --entry=lengths --integers=0:200 %{many} | FileCheck %s
// RUN: %{hopper} --entry=lengths --integers=200:200 %{three} | FileCheck %s
// RUN: %{hopper} --entry=lengths --integers=1:1 %{nine} | FileCheck %s
// RUN: fovea-run %s --random=1 --target=sm_90a --simulate --entry=lengths --integers=0:0 %{three} | FileCheck %s --check-prefix=ZERO
// RUN: fovea-run %s --random=1 --target=sm_90a --simulate --entry=lengths --integers=0:0 %{one} | FileCheck %s --check-prefix=ZERO
// RUN: fovea-run %s --random=1 --target=sm_90a --simulate --entry=lengths --dims=q:0x2x1x16 --dims=k:0x2x200x16 --dims=len:0
// RUN: %{run} --target=sm_80 --simulate --entry=lengths --integers=0:200 %{nine} | FileCheck %s
// RUN: %{run} --entry=lengths --integers=0:200 %{nine} | FileCheck %s
// RUN: %{run} --entry=lengths --integers=0:200 %{many} | FileCheck %s
// RUN: %{run} --entry=lengths --integers=0:200 %{one} | FileCheck %s
// RUN: %{hopper} --entry=lengths --strategy=two-pass --integers=0:200 %{three} | FileCheck %s
//
// RUN: %{hopper} --entry=skewed --integers=0:1 %{nine} --seeds=2 | FileCheck %s
// RUN: %{run} --entry=skewed --integers=0:1 %{nine} | FileCheck %s
//
// Sinks are in the first part of each row, also of one without a key; several tiles
// of queries, whose own bounds are divided.
// RUN: %{hopper} --entry=sinks --integers=0:200 --dims=q:5x2x70x16 --dims=k:5x2x200x16 --dims=len:5 | FileCheck %s
// RUN: %{hopper} --entry=sinks --integers=0:200 --dims=q:1x2x70x16 --dims=k:1x2x200x16 --dims=len:1 | FileCheck %s
// RUN: %{run} --entry=sinks --integers=0:200 --dims=q:5x2x70x16 --dims=k:5x2x200x16 --dims=len:5 | FileCheck %s
//
// Parts of a size: those of a batch, and many without a key behind them; a window's,
// whose first is not that of the first key, of few and of many queries.
// RUN: %{hopper} --entry=fixed --integers=0:200 %{nine} --seeds=3 | FileCheck %s
// RUN: %{hopper} --entry=fixed --integers=150:200 %{one} | FileCheck %s
// RUN: %{hopper} --entry=fixed --integers=200:200 %{three} | FileCheck %s
// RUN: fovea-run %s --random=1 --target=sm_90a --simulate --entry=fixed --integers=0:0 %{three} | FileCheck %s --check-prefix=ZERO
// RUN: %{run} --target=sm_80 --simulate --entry=fixed --integers=0:200 %{nine} | FileCheck %s
// RUN: %{run} --entry=fixed --integers=0:200 %{many} | FileCheck %s
// RUN: %{hopper} --entry=fixed_window --integers=0:200 --dims=q:5x2x70x16 --dims=k:5x2x200x16 --dims=len:5 | FileCheck %s
// RUN: %{hopper} --entry=fixed_window --integers=0:200 --dims=q:1x2x3x16 --dims=k:1x2x200x16 --dims=len:1 | FileCheck %s
// RUN: %{run} --entry=fixed_window --integers=0:200 --dims=q:5x2x70x16 --dims=k:5x2x200x16 --dims=len:5 | FileCheck %s
//
// An infinite value, in a part that is read again for those that there are not.
// RUN: %{hopper} --entry=infinite --integers=1:200 %{one} | FileCheck %s --check-prefixes=CHECK,INFINITE
// RUN: %{hopper} --entry=infinite --integers=1:200 %{nine} | FileCheck %s --check-prefixes=CHECK,INFINITE
// RUN: %{run} --entry=infinite --integers=1:200 %{nine} | FileCheck %s --check-prefixes=CHECK,INFINITE
//
// INFINITE: result 0: {{.*}} max inf{{$}}
// CHECK: check: result 0: max error
// CHECK-NOT: FAILED
// ZERO: result 0: {{.*}} min 0, max 0{{$}}
// ZERO: result 1: {{.*}} min -inf, max -inf

func.func @lengths(%q: tensor<?x2x1x16xbf16>, %k: tensor<?x2x?x16xbf16>, %len: tensor<?xi32>) -> (tensor<?x2x1x16xbf16>, tensor<?x2x1xf32>) {
  %o, %l = attn.attention %q, %k, %k scale(0.25)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %len[%b] : tensor<?xi32>
        %n = arith.index_cast %x : i32 to index
        %keep = arith.cmpi slt, %j, %n : index
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 2, split = 8>}
      : tensor<?x2x1x16xbf16>, tensor<?x2x?x16xbf16>, tensor<?x2x?x16xbf16> -> tensor<?x2x1x16xbf16>, tensor<?x2x1xf32>
  return %o, %l : tensor<?x2x1x16xbf16>, tensor<?x2x1xf32>
}

// Of 3 or 193 keys.
func.func @skewed(%q: tensor<?x2x1x16xbf16>, %k: tensor<?x2x?x16xbf16>, %len: tensor<?xi32>) -> tensor<?x2x1x16xbf16> {
  %o = attn.attention %q, %k, %k scale(0.25)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %c3 = arith.constant 3 : index
        %c190 = arith.constant 190 : index
        %x = tensor.extract %len[%b] : tensor<?xi32>
        %isLong = arith.index_cast %x : i32 to index
        %more = arith.muli %isLong, %c190 : index
        %n = arith.addi %more, %c3 : index
        %keep = arith.cmpi slt, %j, %n : index
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 64x16, order = linear, warps = 4, stages = 2, split = 4>}
      : tensor<?x2x1x16xbf16>, tensor<?x2x?x16xbf16>, tensor<?x2x?x16xbf16> -> tensor<?x2x1x16xbf16>
  return %o : tensor<?x2x1x16xbf16>
}

func.func @sinks(%q: tensor<?x2x?x16xf16>, %k: tensor<?x2x?x16xf16>, %len: tensor<?xi32>, %sinks: tensor<2xf32>) -> (tensor<?x2x?x16xf16>, tensor<?x2x?xf32>) {
  %c2 = arith.constant 2 : index
  %rows = tensor.dim %q, %c2 : tensor<?x2x?x16xf16>
  %o, %l = attn.attention %q, %k, %k scale(0.25) init(%sinks : tensor<2xf32>)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %len[%b] : tensor<?xi32>
        %n = arith.index_cast %x : i32 to index
        %first = arith.subi %n, %rows : index
        %last = arith.addi %first, %i : index
        %past = arith.cmpi sle, %j, %last : index
        %held = arith.cmpi slt, %j, %n : index
        %keep = arith.andi %past, %held : i1
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 64x32, order = longest_first, warps = 4, stages = 2, maximum = stale, split = 3>}
      : tensor<?x2x?x16xf16>, tensor<?x2x?x16xf16>, tensor<?x2x?x16xf16> -> tensor<?x2x?x16xf16>, tensor<?x2x?xf32>
  return %o, %l : tensor<?x2x?x16xf16>, tensor<?x2x?xf32>
}

func.func @fixed(%q: tensor<?x2x1x16xbf16>, %k: tensor<?x2x?x16xbf16>, %len: tensor<?xi32>) -> (tensor<?x2x1x16xbf16>, tensor<?x2x1xf32>) {
  %o, %l = attn.attention %q, %k, %k scale(0.25)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %len[%b] : tensor<?xi32>
        %n = arith.index_cast %x : i32 to index
        %keep = arith.cmpi slt, %j, %n : index
        attn.yield %keep : i1
      } {split_size = 64 : i64, schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 2, split = fixed(64)>}
      : tensor<?x2x1x16xbf16>, tensor<?x2x?x16xbf16>, tensor<?x2x?x16xbf16> -> tensor<?x2x1x16xbf16>, tensor<?x2x1xf32>
  return %o, %l : tensor<?x2x1x16xbf16>, tensor<?x2x1xf32>
}

func.func @fixed_window(%q: tensor<?x2x?x16xf16>, %k: tensor<?x2x?x16xf16>, %len: tensor<?xi32>, %sinks: tensor<2xf32>) -> (tensor<?x2x?x16xf16>, tensor<?x2x?xf32>) {
  %c2 = arith.constant 2 : index
  %c50 = arith.constant 50 : index
  %rows = tensor.dim %q, %c2 : tensor<?x2x?x16xf16>
  %o, %l = attn.attention %q, %k, %k scale(0.25) init(%sinks : tensor<2xf32>)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %len[%b] : tensor<?xi32>
        %n = arith.index_cast %x : i32 to index
        %first = arith.subi %n, %rows : index
        %last = arith.addi %first, %i : index
        %past = arith.cmpi sle, %j, %last : index
        %distance = arith.subi %last, %j : index
        %near = arith.cmpi sle, %distance, %c50 : index
        %held = arith.cmpi slt, %j, %n : index
        %both = arith.andi %past, %held : i1
        %keep = arith.andi %both, %near : i1
        attn.yield %keep : i1
      } {split_size = 64 : i64}
      : tensor<?x2x?x16xf16>, tensor<?x2x?x16xf16>, tensor<?x2x?x16xf16> -> tensor<?x2x?x16xf16>, tensor<?x2x?xf32>
  return %o, %l : tensor<?x2x?x16xf16>, tensor<?x2x?xf32>
}

// The first key's value has an infinite feature.
#id = affine_map<(b, h, j, d) -> (b, h, j, d)>
func.func @infinite(%q: tensor<?x2x1x16xbf16>, %k: tensor<?x2x?x16xbf16>, %len: tensor<?xi32>) -> (tensor<?x2x1x16xbf16>, tensor<?x2x1xf32>) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %batches = tensor.dim %k, %c0 : tensor<?x2x?x16xbf16>
  %keys = tensor.dim %k, %c2 : tensor<?x2x?x16xbf16>
  %room = tensor.empty(%batches, %keys) : tensor<?x2x?x16xbf16>
  %v = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%k : tensor<?x2x?x16xbf16>) outs(%room : tensor<?x2x?x16xbf16>) {
  ^bb0(%x: bf16, %y: bf16):
    %j = linalg.index 2 : index
    %d = linalg.index 3 : index
    %z = arith.constant 0 : index
    %place = arith.addi %j, %d : index
    %isFirst = arith.cmpi eq, %place, %z : index
    %infinity = arith.constant 0x7F80 : bf16
    %value = arith.select %isFirst, %infinity, %x : bf16
    linalg.yield %value : bf16
  } -> tensor<?x2x?x16xbf16>
  %o, %l = attn.attention %q, %k, %v scale(0.25)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %len[%b] : tensor<?xi32>
        %n = arith.index_cast %x : i32 to index
        %keep = arith.cmpi slt, %j, %n : index
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 2, split = 16>}
      : tensor<?x2x1x16xbf16>, tensor<?x2x?x16xbf16>, tensor<?x2x?x16xbf16> -> tensor<?x2x1x16xbf16>, tensor<?x2x1xf32>
  return %o, %l : tensor<?x2x1x16xbf16>, tensor<?x2x1xf32>
}
