// A key that bounds remove for all queries contributes nothing, whatever its key
// and value hold: results and gradients are, bit by bit, those of zeros there.
//
// REQUIRES: numpy
// RUN: rm -rf %t && mkdir %t && %python %S/Inputs/absent.py write %t
//
// DEFINE: %{target} = sm_90a
// DEFINE: %{mask} = lengths
// DEFINE: %{kind} = float16
// DEFINE: %{entry} = %{mask}_%{kind}
// DEFINE: %{run} = fovea-run %s --target=%{target} --simulate --entry=%{entry} --input=%t/%{kind}-q.npy
// DEFINE: %{forward} = \
// DEFINE:   %{run} --input=%t/%{kind}-%{mask}-clean-k.npy --input=%t/%{kind}-%{mask}-clean-v.npy --input=%t/bounds.npy --output=%t/clean.npy --check | FileCheck %s && \
// DEFINE:   %{run} --input=%t/%{kind}-%{mask}-nan-k.npy --input=%t/%{kind}-%{mask}-nan-v.npy --input=%t/bounds.npy --output=%t/nan.npy && \
// DEFINE:   %{run} --input=%t/%{kind}-%{mask}-inf-k.npy --input=%t/%{kind}-%{mask}-inf-v.npy --input=%t/bounds.npy --output=%t/inf.npy && \
// DEFINE:   %python %S/Inputs/absent.py compare %t/clean.npy %t/nan.npy %t/inf.npy
// DEFINE: %{gradients} = \
// DEFINE:   %{run} --grad --input=%t/%{kind}-%{mask}-clean-k.npy --input=%t/%{kind}-%{mask}-clean-v.npy --input=%t/bounds.npy --input=%t/%{kind}-g.npy --output=%t/o0.npy --output=%t/q0.npy --output=%t/k0.npy --output=%t/v0.npy --check | FileCheck %s && \
// DEFINE:   %{run} --grad --input=%t/%{kind}-%{mask}-nan-k.npy --input=%t/%{kind}-%{mask}-nan-v.npy --input=%t/bounds.npy --input=%t/%{kind}-g.npy --output=%t/o1.npy --output=%t/q1.npy --output=%t/k1.npy --output=%t/v1.npy && \
// DEFINE:   %python %S/Inputs/absent.py compare %t/o0.npy %t/o1.npy && \
// DEFINE:   %python %S/Inputs/absent.py compare %t/q0.npy %t/q1.npy && \
// DEFINE:   %python %S/Inputs/absent.py compare %t/k0.npy %t/k1.npy && \
// DEFINE:   %python %S/Inputs/absent.py compare %t/v0.npy %t/v1.npy
//
// RUN: %{forward}
// REDEFINE: %{mask} = starts
// RUN: %{forward}
// REDEFINE: %{mask} = positions
// RUN: %{forward}
// RUN: %{gradients}
// REDEFINE: %{mask} = starts
// RUN: %{gradients}
// REDEFINE: %{target} = sm_80
// RUN: %{forward}
// RUN: %{gradients}
// REDEFINE: %{mask} = lengths
// RUN: %{forward}
// RUN: %{gradients}
// REDEFINE: %{kind} = float32
// RUN: %{forward}
// REDEFINE: %{target} = sm_90a
// RUN: %{gradients}
//
// Parts of the keys, each of which may begin or end among absent ones.
// REDEFINE: %{kind} = float16
// REDEFINE: %{entry} = split_%{mask}
// RUN: %{forward}
// REDEFINE: %{mask} = starts
// RUN: %{forward}
// REDEFINE: %{target} = sm_80
// RUN: %{forward}
//
// A bias of which tiles come from a multiple of 16 bytes in front of the first key.
// REDEFINE: %{target} = sm_90a
// REDEFINE: %{entry} = biased_%{mask}
// RUN: %{forward}
//
// Positions that are read at the query, which tables bound.
// REDEFINE: %{target} = sm_80
// REDEFINE: %{entry} = read_%{mask}
// REDEFINE: %{mask} = positions
// RUN: %{forward}
// REDEFINE: %{target} = sm_90a
// RUN: %{forward}
//
// CHECK: check: result 0: max error
// CHECK-NOT: FAILED

func.func @lengths_float16(%q: tensor<3x4x?x64xf16>, %k: tensor<3x2x?x64xf16>, %v: tensor<3x2x?x64xf16>, %n: tensor<3xi32>) -> tensor<3x4x?x64xf16> {
  %s = attn.scores %q, %k : tensor<3x4x?x64xf16>, tensor<3x2x?x64xf16> -> tensor<3x4x?x?xf32>
  %m = attn.mask %s {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %n[%b] : tensor<3xi32>
    %length = arith.index_cast %x : i32 to index
    %m = arith.cmpi slt, %j, %length : index
    attn.yield %m : i1
  } : tensor<3x4x?x?xf32>
  %p = attn.softmax %m : tensor<3x4x?x?xf32> -> tensor<3x4x?x?xf32>
  %o = attn.values %p, %v : tensor<3x4x?x?xf32>, tensor<3x2x?x64xf16> -> tensor<3x4x?x64xf16>
  return %o : tensor<3x4x?x64xf16>
}

func.func @starts_float16(%q: tensor<3x4x?x64xf16>, %k: tensor<3x2x?x64xf16>, %v: tensor<3x2x?x64xf16>, %n: tensor<3xi32>) -> tensor<3x4x?x64xf16> {
  %o = attn.attention %q, %k, %v scale(0.125)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %r = math.tanh %s : f32
        attn.yield %r : f32
      }
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %n[%b] : tensor<3xi32>
        %place = arith.index_cast %j : index to i32
        %started = arith.cmpi sge, %place, %x : i32
        %c100 = arith.constant 100 : index
        %last = arith.addi %i, %c100 : index
        %causal = arith.cmpi sge, %last, %j : index
        %m = arith.andi %causal, %started : i1
        attn.yield %m : i1
      }
      : tensor<3x4x?x64xf16>, tensor<3x2x?x64xf16>, tensor<3x2x?x64xf16> -> tensor<3x4x?x64xf16>
  return %o : tensor<3x4x?x64xf16>
}

func.func @biased_starts(%q: tensor<3x4x40x64xf16>, %k: tensor<3x2x150x64xf16>, %v: tensor<3x2x150x64xf16>, %n: tensor<3xi32>) -> tensor<3x4x40x64xf16> {
  %bias = arith.constant dense<0.5> : tensor<40x152xf16>
  %o = attn.attention %q, %k, %v scale(0.125)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %bias[%i, %j] : tensor<40x152xf16>
        %y = arith.extf %x : f16 to f32
        %z = arith.addf %s, %y : f32
        attn.yield %z : f32
      }
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %n[%b] : tensor<3xi32>
        %start = arith.index_cast %x : i32 to index
        %m = arith.cmpi sge, %j, %start : index
        attn.yield %m : i1
      } {schedule = #attn.schedule<tile = 64x32, order = longest_first, warps = 4, stages = 2, captures = tiled>}
      : tensor<3x4x40x64xf16>, tensor<3x2x150x64xf16>, tensor<3x2x150x64xf16> -> tensor<3x4x40x64xf16>
  return %o : tensor<3x4x40x64xf16>
}

func.func @positions_float16(%q: tensor<3x4x?x64xf16>, %k: tensor<3x2x?x64xf16>, %v: tensor<3x2x?x64xf16>, %n: tensor<3xi32>) -> tensor<3x4x?x64xf16> {
  %o = attn.attention %q, %k, %v scale(0.125)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %n[%b] : tensor<3xi32>
        %position = arith.index_cast %x : i32 to index
        %last = arith.addi %i, %position : index
        %m = arith.cmpi sge, %last, %j : index
        attn.yield %m : i1
      }
      : tensor<3x4x?x64xf16>, tensor<3x2x?x64xf16>, tensor<3x2x?x64xf16> -> tensor<3x4x?x64xf16>
  return %o : tensor<3x4x?x64xf16>
}

func.func @lengths_float32(%q: tensor<3x4x?x64xf32>, %k: tensor<3x2x?x64xf32>, %v: tensor<3x2x?x64xf32>, %n: tensor<3xi32>) -> tensor<3x4x?x64xf32> {
  %o = attn.attention %q, %k, %v scale(0.125)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %n[%b] : tensor<3xi32>
        %length = arith.index_cast %x : i32 to index
        %m = arith.cmpi slt, %j, %length : index
        attn.yield %m : i1
      }
      : tensor<3x4x?x64xf32>, tensor<3x2x?x64xf32>, tensor<3x2x?x64xf32> -> tensor<3x4x?x64xf32>
  return %o : tensor<3x4x?x64xf32>
}

func.func @split_lengths(%q: tensor<3x4x40x64xf16>, %k: tensor<3x2x150x64xf16>, %v: tensor<3x2x150x64xf16>, %n: tensor<3xi32>) -> tensor<3x4x40x64xf16> {
  %o = attn.attention %q, %k, %v scale(0.125)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %n[%b] : tensor<3xi32>
        %length = arith.index_cast %x : i32 to index
        %m = arith.cmpi slt, %j, %length : index
        attn.yield %m : i1
      } {schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 2, maximum = stale, split = 3>}
      : tensor<3x4x40x64xf16>, tensor<3x2x150x64xf16>, tensor<3x2x150x64xf16> -> tensor<3x4x40x64xf16>
  return %o : tensor<3x4x40x64xf16>
}

func.func @split_starts(%q: tensor<3x4x40x64xf16>, %k: tensor<3x2x150x64xf16>, %v: tensor<3x2x150x64xf16>, %n: tensor<3xi32>) -> tensor<3x4x40x64xf16> {
  %o = attn.attention %q, %k, %v scale(0.125)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %n[%b] : tensor<3xi32>
        %place = arith.index_cast %j : index to i32
        %m = arith.cmpi sge, %place, %x : i32
        attn.yield %m : i1
      } {schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 2, split = 3>}
      : tensor<3x4x40x64xf16>, tensor<3x2x150x64xf16>, tensor<3x2x150x64xf16> -> tensor<3x4x40x64xf16>
  return %o : tensor<3x4x40x64xf16>
}

func.func @read_positions(%q: tensor<3x4x?x64xf16>, %k: tensor<3x2x?x64xf16>, %v: tensor<3x2x?x64xf16>, %n: tensor<3xi32>) -> tensor<3x4x?x64xf16> {
  %o = attn.attention %q, %k, %v scale(0.125)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %c40 = arith.constant 40 : index
        %first = arith.divui %i, %c40 : index
        %at = arith.addi %b, %first : index
        %x = tensor.extract %n[%at] : tensor<3xi32>
        %position = arith.index_cast %x : i32 to index
        %last = arith.addi %i, %position : index
        %m = arith.cmpi sge, %last, %j : index
        attn.yield %m : i1
      }
      : tensor<3x4x?x64xf16>, tensor<3x2x?x64xf16>, tensor<3x2x?x64xf16> -> tensor<3x4x?x64xf16>
  return %o : tensor<3x4x?x64xf16>
}
