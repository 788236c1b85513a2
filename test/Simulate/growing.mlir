// Scores that grow along the keys, by a factor of 1.4 between steps: no step has as
// much as earlier ones, so that none would start again because of them, and weights
// of f16 would become infinite after 35.
//
// RUN: fovea-run %s --entry=growing --target=sm_90a --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %s --entry=alternating --target=sm_90a --simulate --random=2 --check | FileCheck %s
// RUN: fovea-run %s --entry=descending --target=sm_90a --simulate --random=3 --check | FileCheck %s
// RUN: fovea-run %s --entry=descending --target=sm_80 --simulate --random=4 --check | FileCheck %s
// Steps that start again from exponents, also where these are large: products of 60 and
// 4000 times the usual scale, and keys of equal scores, up to 6.4e6, behind keys of none.
// RUN: fovea-run %s --entry=scaled --target=sm_90a --simulate --random=5 --check | FileCheck %s
// RUN: sed s/60.0/4000.0/ %s > %t.mlir
// RUN: fovea-run %t.mlir --entry=scaled --target=sm_90a --simulate --random=5 --check | FileCheck %s
// RUN: fovea-run %s --entry=equal --target=sm_90a --simulate --random=6 --check | FileCheck %s
// RUN: sed s/100.0/100000.0/ %s > %t.mlir
// RUN: fovea-run %t.mlir --entry=equal --target=sm_90a --simulate --random=6 --check | FileCheck %s
// CHECK: check: result 0: max error

func.func @growing(%q: tensor<1x1x64x16xf16>, %k: tensor<1x1x1024x16xf16>, %v: tensor<1x1x1024x16xf16>) -> tensor<1x1x64x16xf16> {
  %o = attn.attention %q, %k, %v scale(0.01) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %slope = arith.constant 0.02103 : f32
    %n = arith.index_cast %j : index to i32
    %x = arith.sitofp %n : i32 to f32
    %g = arith.mulf %x, %slope : f32
    %r = arith.addf %s, %g : f32
    attn.yield %r : f32
  } {schedule = #attn.schedule<tile = 64x16, order = linear, warps = 4, stages = 2, maximum = stale>}
    : tensor<1x1x64x16xf16>, tensor<1x1x1024x16xf16>, tensor<1x1x1024x16xf16> -> tensor<1x1x64x16xf16>
  return %o : tensor<1x1x64x16xf16>
}

func.func @alternating(%q: tensor<1x1x64x16xf16>, %k: tensor<1x1x1024x16xf16>, %v: tensor<1x1x1024x16xf16>) -> tensor<1x1x64x16xf16> {
  %o = attn.attention %q, %k, %v scale(0.01) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %slope = arith.constant 0.02103 : f32
    %n = arith.index_cast %j : index to i32
    %x = arith.sitofp %n : i32 to f32
    %g = arith.mulf %x, %slope : f32
    %r = arith.addf %s, %g : f32
    attn.yield %r : f32
  } {schedule = #attn.schedule<tile = 64x16, order = linear, warps = 4, stages = 2, maximum = stale, products = alternating>}
    : tensor<1x1x64x16xf16>, tensor<1x1x1024x16xf16>, tensor<1x1x1024x16xf16> -> tensor<1x1x64x16xf16>
  return %o : tensor<1x1x64x16xf16>
}

func.func @descending(%q: tensor<1x1x64x16xf16>, %k: tensor<1x1x1024x16xf16>, %v: tensor<1x1x1024x16xf16>) -> tensor<1x1x64x16xf16> {
  %o = attn.attention %q, %k, %v scale(0.01) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %slope = arith.constant 0.02103 : f32
    %n = arith.index_cast %j : index to i32
    %x = arith.sitofp %n : i32 to f32
    %g = arith.mulf %x, %slope : f32
    %r = arith.addf %s, %g : f32
    attn.yield %r : f32
  } {schedule = #attn.schedule<tile = 64x16, order = linear, warps = 4, stages = 2, maximum = stale, keys = descending>}
    : tensor<1x1x64x16xf16>, tensor<1x1x1024x16xf16>, tensor<1x1x1024x16xf16> -> tensor<1x1x64x16xf16>
  return %o : tensor<1x1x64x16xf16>
}

func.func @scaled(%q: tensor<1x1x80x64xf16>, %k: tensor<1x1x200x64xf16>, %v: tensor<1x1x200x64xf16>) -> (tensor<1x1x80x64xf16>, tensor<1x1x80xf32>) {
  %o, %l = attn.attention %q, %k, %v scale(60.0) {schedule = #attn.schedule<tile = 64x16, order = linear, warps = 4, stages = 2, maximum = stale, products = alternating>}
    : tensor<1x1x80x64xf16>, tensor<1x1x200x64xf16>, tensor<1x1x200x64xf16> -> tensor<1x1x80x64xf16>, tensor<1x1x80xf32>
  return %o, %l : tensor<1x1x80x64xf16>, tensor<1x1x80xf32>
}

func.func @equal(%v: tensor<1x1x48x64xf16>) -> tensor<1x1x64x64xf16> {
  %q = arith.constant dense<1.0> : tensor<1x1x64x64xf16>
  %one = arith.constant dense<1.0> : tensor<1x1x48x64xf16>
  %zero = arith.constant dense<0.0> : tensor<1x1x16x64xf16>
  %k = tensor.insert_slice %zero into %one[0, 0, 0, 0] [1, 1, 16, 64] [1, 1, 1, 1] : tensor<1x1x16x64xf16> into tensor<1x1x48x64xf16>
  %o = attn.attention %q, %k, %v scale(100.0) {schedule = #attn.schedule<tile = 64x16, order = linear, warps = 4, stages = 2, maximum = stale, products = alternating>}
    : tensor<1x1x64x64xf16>, tensor<1x1x48x64xf16>, tensor<1x1x48x64xf16> -> tensor<1x1x64x64xf16>
  return %o : tensor<1x1x64x64xf16>
}
