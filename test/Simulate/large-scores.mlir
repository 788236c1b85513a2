// Parts of rows with large scores, whose log-sum-exps are near each other. In f32
// they are multiples of 2^-7: a merge of them would err by 2^-8 in outputs and sums.
// Scores are exact in f32, so that the graph in f64 has the same ones.
//
// DEFINE: %{run} = fovea-run %s --random=1 --check
// DEFINE: %{hopper} = %{run} --target=sm_90a --simulate
// DEFINE: %{one} = --dims=q:1x2x1x16 --dims=k:1x2x200x16 --dims=len:1
// DEFINE: %{three} = --dims=q:3x2x1x16 --dims=k:3x2x200x16 --dims=len:3
// DEFINE: %{nine} = --dims=q:9x2x1x16 --dims=k:9x2x200x16 --dims=len:9
//
// Groups of threads have two parts, one, or none. Of nine batches, some have one
// part, whose log-sum-exp is the sum of two numbers in f64.
// RUN: %{hopper} --entry=lengths --integers=150:200 %{one} --seeds=2 | FileCheck %s
// RUN: %{hopper} --entry=lengths --integers=0:200 %{three} | FileCheck %s
// RUN: %{hopper} --entry=lengths --integers=1:200 %{nine} | FileCheck %s
// RUN: %{run} --target=sm_80 --simulate --entry=lengths --integers=0:200 %{three} | FileCheck %s
// RUN: %{hopper} --entry=lengths --strategy=two-pass --integers=0:200 %{three} | FileCheck %s
// RUN: %{run} --entry=lengths --integers=150:200 %{one} | FileCheck %s
// RUN: %{run} --entry=lengths --integers=1:200 %{nine} | FileCheck %s
//
// Groups of eighteen or nineteen parts, more than the sixteen that are read at once.
// RUN: %{hopper} --entry=many --integers=1150:1200 --dims=q:2x1x1x16 --dims=k:2x1x1200x16 --dims=len:2 | FileCheck %s
// RUN: %{run} --entry=many --integers=1150:1200 --dims=q:2x1x1x16 --dims=k:2x1x1200x16 --dims=len:2 | FileCheck %s
//
// Sinks, one as high as scores, and one so far above that nothing else counts.
// RUN: %{hopper} --entry=sinks --integers=0:200 %{three} | FileCheck %s
// RUN: %{hopper} --entry=sinks --integers=150:200 %{one} | FileCheck %s
// RUN: %{hopper} --entry=sinks --integers=0:0 %{three} | FileCheck %s
// RUN: %{run} --target=sm_80 --simulate --entry=sinks --integers=0:200 %{three} | FileCheck %s
// RUN: %{run} --entry=sinks --integers=0:200 %{three} | FileCheck %s
//
// A scale that no f32 is. Hosts multiply queries by it and round them, as the graph
// does in f32.
// RUN: %{hopper} --entry=scale --integers=150:200 %{one} | FileCheck %s
// RUN: %{hopper} --entry=scale --integers=1:200 %{three} | FileCheck %s
// RUN: %{run} --target=sm_80 --simulate --entry=scale --integers=1:200 %{three} | FileCheck %s
// RUN: %{hopper} --entry=scaled_sinks --integers=0:200 %{three} | FileCheck %s
// RUN: %{hopper} --entry=whole_sinks --integers=0:200 %{three} | FileCheck %s
// RUN: %{run} --target=sm_80 --simulate --entry=scaled_sinks --integers=0:200 %{three} | FileCheck %s
//
// CHECK: check: result 0: max error {{[0-9.e-]+}}, relative {{[0-9.e-]+}} (bound 2e-05)
// CHECK-NEXT: check: result 1: max error {{0|[0-9.]+e-0[6-9]|[0-9.]+e-1[0-9]}}, relative {{[0-9.e-]+}} (bound 2e-05)

!q = tensor<?x2x1x16xf32>
!k = tensor<?x2x?x16xf32>
!lse = tensor<?x2x1xf64>
!q1 = tensor<?x1x1x16xf32>
!k1 = tensor<?x1x?x16xf32>
!lse1 = tensor<?x1x1xf64>

#id = affine_map<(b, h, i, d) -> (b, h, i, d)>

// Scores are 2^16 and up to six sixteenths.
func.func @lengths(%q: !q, %k: !k, %len: tensor<?xi32>) -> (!q, !lse) {
  %o, %l = attn.attention %q, %k, %k scale(0.25)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %c7 = arith.constant 7 : index
        %unit = arith.constant 0.0625 : f32
        %least = arith.constant 65536.0 : f32
        %m = arith.remui %j, %c7 : index
        %n = arith.index_cast %m : index to i32
        %x = arith.sitofp %n : i32 to f32
        %more = arith.mulf %x, %unit : f32
        %r = arith.addf %more, %least : f32
        attn.yield %r : f32
      }
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %len[%b] : tensor<?xi32>
        %n = arith.index_cast %x : i32 to index
        %keep = arith.cmpi slt, %j, %n : index
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 2, split = 16>}
      : !q, !k, !k -> !q, !lse
  return %o, %l : !q, !lse
}

func.func @many(%q: !q1, %k: !k1, %len: tensor<?xi32>) -> (!q1, !lse1) {
  %o, %l = attn.attention %q, %k, %k scale(0.25)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %c7 = arith.constant 7 : index
        %unit = arith.constant 0.0625 : f32
        %least = arith.constant 65536.0 : f32
        %m = arith.remui %j, %c7 : index
        %n = arith.index_cast %m : index to i32
        %x = arith.sitofp %n : i32 to f32
        %more = arith.mulf %x, %unit : f32
        %r = arith.addf %more, %least : f32
        attn.yield %r : f32
      }
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %len[%b] : tensor<?xi32>
        %n = arith.index_cast %x : i32 to index
        %keep = arith.cmpi slt, %j, %n : index
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 64x16, order = linear, warps = 4, stages = 2, split = fixed(16)>}
      : !q1, !k1, !k1 -> !q1, !lse1
  return %o, %l : !q1, !lse1
}

func.func @sinks(%q: !q, %k: !k, %len: tensor<?xi32>) -> (!q, !lse) {
  %sinks = arith.constant dense<[65541.0, 70000.0]> : tensor<2xf32>
  %o, %l = attn.attention %q, %k, %k scale(0.25) init(%sinks : tensor<2xf32>)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %c7 = arith.constant 7 : index
        %unit = arith.constant 0.0625 : f32
        %least = arith.constant 65536.0 : f32
        %m = arith.remui %j, %c7 : index
        %n = arith.index_cast %m : index to i32
        %x = arith.sitofp %n : i32 to f32
        %more = arith.mulf %x, %unit : f32
        %r = arith.addf %more, %least : f32
        attn.yield %r : f32
      }
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %len[%b] : tensor<?xi32>
        %n = arith.index_cast %x : i32 to index
        %keep = arith.cmpi slt, %j, %n : index
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 2, split = 16>}
      : !q, !k, !k -> !q, !lse
  return %o, %l : !q, !lse
}

// Products of these are 2^18 and up to 11.
func.func private @operands(%batches: index, %keys: index) -> (!q, !k) {
  %roomQ = tensor.empty(%batches) : !q
  %roomK = tensor.empty(%batches, %keys) : !k
  %exactQ = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%roomQ : !q) {
  ^bb0(%x: f32):
    %d = linalg.index 3 : index
    %z = arith.constant 0 : index
    %isFirst = arith.cmpi eq, %d, %z : index
    %first = arith.constant 512.0 : f32
    %other = arith.constant 1.0 : f32
    %y = arith.select %isFirst, %first, %other : f32
    linalg.yield %y : f32
  } -> !q
  %exactK = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%roomK : !k) {
  ^bb0(%x: f32):
    %j = linalg.index 2 : index
    %d = linalg.index 3 : index
    %z = arith.constant 0 : index
    %c7 = arith.constant 7 : index
    %eighth = arith.constant 0.125 : f32
    %isFirst = arith.cmpi eq, %d, %z : index
    %first = arith.constant 512.0 : f32
    %product = arith.muli %j, %d : index
    %m = arith.remui %product, %c7 : index
    %i = arith.index_cast %m : index to i32
    %f = arith.sitofp %i : i32 to f32
    %other = arith.mulf %f, %eighth : f32
    %y = arith.select %isFirst, %first, %other : f32
    linalg.yield %y : f32
  } -> !k
  return %exactQ, %exactK : !q, !k
}

func.func @scale(%q: !q, %k: !k, %len: tensor<?xi32>) -> (!q, !lse) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %batches = tensor.dim %k, %c0 : !k
  %keys = tensor.dim %k, %c2 : !k
  %exactQ, %exactK = func.call @operands(%batches, %keys) : (index, index) -> (!q, !k)
  %o, %l = attn.attention %exactQ, %exactK, %k scale(0.3)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %len[%b] : tensor<?xi32>
        %n = arith.index_cast %x : i32 to index
        %keep = arith.cmpi slt, %j, %n : index
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 2, split = 16>}
      : !q, !k, !k -> !q, !lse
  return %o, %l : !q, !lse
}

// Sinks, which no f32 is either, beside scores of 0.3 times products.
func.func @scaled_sinks(%q: !q, %k: !k, %len: tensor<?xi32>) -> (!q, !lse) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %batches = tensor.dim %k, %c0 : !k
  %keys = tensor.dim %k, %c2 : !k
  %exactQ, %exactK = func.call @operands(%batches, %keys) : (index, index) -> (!q, !k)
  %sinks = arith.constant dense<[78643.503, 78646.001]> : tensor<2xf64>
  %o, %l = attn.attention %exactQ, %exactK, %k scale(0.3) init(%sinks : tensor<2xf64>)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %len[%b] : tensor<?xi32>
        %n = arith.index_cast %x : i32 to index
        %keep = arith.cmpi slt, %j, %n : index
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 2, split = 16>}
      : !q, !k, !k -> !q, !lse
  return %o, %l : !q, !lse
}

func.func @whole_sinks(%q: !q, %k: !k, %len: tensor<?xi32>) -> (!q, !lse) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %batches = tensor.dim %k, %c0 : !k
  %keys = tensor.dim %k, %c2 : !k
  %exactQ, %exactK = func.call @operands(%batches, %keys) : (index, index) -> (!q, !k)
  %sinks = arith.constant dense<[78643.503, 78646.001]> : tensor<2xf64>
  %o, %l = attn.attention %exactQ, %exactK, %k scale(0.3) init(%sinks : tensor<2xf64>)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %len[%b] : tensor<?xi32>
        %n = arith.index_cast %x : i32 to index
        %keep = arith.cmpi slt, %j, %n : index
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 2>}
      : !q, !k, !k -> !q, !lse
  return %o, %l : !q, !lse
}
