// Terms in the key's position that are added in the exponent only: slopes from a
// tensor, computed, of rows, and so steep that every step starts again; infinite ones
// under a mask without the diagonal, where a masked key's score is no number; behind a
// soft cap; positions that count back, and by threes; one branch and two.
//
// RUN: fovea-run %s --entry=tensor --target=sm_90a --simulate --seeds=4 --random=1 --check | FileCheck %s
// RUN: fovea-run %s --entry=rows --dims=300 --target=sm_90a --simulate --random=2 --check | FileCheck %s
// RUN: fovea-run %s --entry=rows --dims=77 --target=sm_90a --simulate --random=2 --check | FileCheck %s
// RUN: fovea-run %s --entry=steep --target=sm_90a --simulate --random=3 --check | FileCheck %s
// RUN: fovea-run %s --entry=infinite --target=sm_90a --simulate --random=4 --check | FileCheck %s
// RUN: fovea-run %s --entry=cap --target=sm_90a --simulate --random=5 --check | FileCheck %s
// RUN: fovea-run %s --entry=threes --target=sm_90a --simulate --random=6 --check | FileCheck %s
//
// CHECK: check: result 0: max error
// CHECK-NOT: FAILED

func.func @tensor(%q: tensor<1x2x300x64xbf16>, %slopes: tensor<2xf32>) -> (tensor<1x2x300x64xbf16>, tensor<1x2x300xf32>) {
  %o, %l = attn.attention %q, %q, %q scale(0.125)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %slope = tensor.extract %slopes[%h] : tensor<2xf32>
      %d = arith.subi %j, %i : index
      %n = arith.index_cast %d : index to i32
      %x = arith.sitofp %n : i32 to f32
      %y = arith.mulf %x, %slope : f32
      %r = arith.addf %s, %y : f32
      attn.yield %r : f32
    } mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %keep = arith.cmpi sge, %i, %j : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 192x32, order = longest_first, warps = 12, stages = 4, maximum = stale, keys = descending, blocks = persistent>}
    : tensor<1x2x300x64xbf16>, tensor<1x2x300x64xbf16>, tensor<1x2x300x64xbf16> -> tensor<1x2x300x64xbf16>, tensor<1x2x300xf32>
  return %o, %l : tensor<1x2x300x64xbf16>, tensor<1x2x300xf32>
}

func.func @rows(%q: tensor<1x2x?x64xbf16>, %slopes: tensor<?xbf16>) -> (tensor<1x2x?x64xbf16>, tensor<1x2x?xf32>) {
  %o, %l = attn.attention %q, %q, %q scale(0.125)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %e = tensor.extract %slopes[%i] : tensor<?xbf16>
      %slope = arith.extf %e : bf16 to f32
      %d = arith.subi %i, %j : index
      %n = arith.index_cast %d : index to i32
      %x = arith.sitofp %n : i32 to f32
      %y = arith.mulf %slope, %x : f32
      %r = arith.subf %s, %y : f32
      attn.yield %r : f32
    } mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %keep = arith.cmpi sge, %i, %j : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 192x32, order = longest_first, warps = 12, stages = 4, maximum = stale, keys = descending, blocks = persistent>}
    : tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16> -> tensor<1x2x?x64xbf16>, tensor<1x2x?xf32>
  return %o, %l : tensor<1x2x?x64xbf16>, tensor<1x2x?xf32>
}

func.func @steep(%q: tensor<1x2x300x64xf16>, %slopes: tensor<2xf32>) -> (tensor<1x2x300x64xf16>, tensor<1x2x300xf32>) {
  %o, %l = attn.attention %q, %q, %q scale(0.125)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %large = arith.constant 3.0e+4 : f32
      %e = tensor.extract %slopes[%h] : tensor<2xf32>
      %slope = arith.mulf %e, %large : f32
      %d = arith.subi %j, %i : index
      %n = arith.index_cast %d : index to i32
      %x = arith.sitofp %n : i32 to f32
      %y = arith.mulf %x, %slope : f32
      %r = arith.addf %y, %s : f32
      attn.yield %r : f32
    } mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %keep = arith.cmpi sge, %i, %j : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 128x64, order = longest_first, warps = 8, stages = 2, maximum = stale, keys = descending>}
    : tensor<1x2x300x64xf16>, tensor<1x2x300x64xf16>, tensor<1x2x300x64xf16> -> tensor<1x2x300x64xf16>, tensor<1x2x300xf32>
  return %o, %l : tensor<1x2x300x64xf16>, tensor<1x2x300xf32>
}

func.func @infinite(%q: tensor<1x2x300x64xbf16>, %slopes: tensor<2xf32>) -> (tensor<1x2x300x64xbf16>, tensor<1x2x300xf32>) {
  %o, %l = attn.attention %q, %q, %q scale(0.125)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %infinity = arith.constant 0x7F800000 : f32
      %e = tensor.extract %slopes[%h] : tensor<2xf32>
      %slope = arith.mulf %e, %infinity : f32
      %d = arith.subi %j, %i : index
      %n = arith.index_cast %d : index to i32
      %x = arith.sitofp %n : i32 to f32
      %y = arith.mulf %x, %slope : f32
      %r = arith.addf %s, %y : f32
      attn.yield %r : f32
    } mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %keep = arith.cmpi sgt, %i, %j : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 128x64, order = longest_first, warps = 8, stages = 2, maximum = stale, keys = descending>}
    : tensor<1x2x300x64xbf16>, tensor<1x2x300x64xbf16>, tensor<1x2x300x64xbf16> -> tensor<1x2x300x64xbf16>, tensor<1x2x300xf32>
  return %o, %l : tensor<1x2x300x64xbf16>, tensor<1x2x300xf32>
}

func.func @cap(%q: tensor<1x2x300x64xbf16>, %slopes: tensor<2xf32>) -> (tensor<1x2x300x64xbf16>, tensor<1x2x300xf32>) {
  %o, %l = attn.attention %q, %q, %q scale(0.125)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %c = arith.constant 30.0 : f32
      %0 = arith.divf %s, %c : f32
      %1 = math.tanh %0 : f32
      %2 = arith.mulf %1, %c : f32
      %slope = tensor.extract %slopes[%h] : tensor<2xf32>
      %d = arith.subi %j, %i : index
      %n = arith.index_cast %d : index to i32
      %x = arith.sitofp %n : i32 to f32
      %y = arith.mulf %x, %slope : f32
      %r = arith.addf %2, %y : f32
      attn.yield %r : f32
    } mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %keep = arith.cmpi sge, %i, %j : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 128x32, order = longest_first, warps = 8, stages = 2, maximum = stale, keys = descending, blocks = persistent, products = alternating>}
    : tensor<1x2x300x64xbf16>, tensor<1x2x300x64xbf16>, tensor<1x2x300x64xbf16> -> tensor<1x2x300x64xbf16>, tensor<1x2x300xf32>
  return %o, %l : tensor<1x2x300x64xbf16>, tensor<1x2x300xf32>
}

func.func @threes(%q: tensor<1x2x300x64xf16>) -> (tensor<1x2x300x64xf16>, tensor<1x2x300xf32>) {
  %o, %l = attn.attention %q, %q, %q scale(0.125)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %three = arith.constant 3 : index
      %half = arith.constant 0.0625 : f32
      %k = arith.muli %j, %three : index
      %n = arith.index_cast %k : index to i64
      %x = arith.sitofp %n : i64 to f32
      %y = arith.mulf %x, %half : f32
      %z = arith.mulf %y, %half : f32
      %m = arith.negf %z : f32
      %r = arith.subf %s, %m : f32
      attn.yield %r : f32
    } mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %keep = arith.cmpi sge, %i, %j : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 128x32, order = longest_first, warps = 8, stages = 2, maximum = stale, keys = descending, blocks = persistent, products = alternating>}
    : tensor<1x2x300x64xf16>, tensor<1x2x300x64xf16>, tensor<1x2x300x64xf16> -> tensor<1x2x300x64xf16>, tensor<1x2x300xf32>
  return %o, %l : tensor<1x2x300x64xf16>, tensor<1x2x300xf32>
}
