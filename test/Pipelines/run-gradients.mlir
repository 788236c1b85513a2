// Gradients against the float64 reference.
// RUN: fovea-run %s --entry=one_tile --grad --recompute=always --random=1 --check | FileCheck %s
// RUN: fovea-run %s --entry=one_tile --grad --recompute=always --random=1 --check --target=sm_90a --simulate | FileCheck %s
// RUN: fovea-run %s --entry=one_tile --grad --recompute=never --random=1 --check | FileCheck %s
// RUN: fovea-run %s --entry=unread --grad --recompute=always --random=1 --check | FileCheck %s --check-prefixes=CHECK,UNREAD
// RUN: fovea-run %s --entry=unread --grad --recompute=never --random=1 --check | FileCheck %s --check-prefixes=CHECK,UNREAD
// RUN: fovea-run %s --entry=unread --grad --recompute=never --random=1 --check --target=sm_90a --simulate | FileCheck %s --check-prefixes=CHECK,UNREAD
// RUN: fovea-run %s --entry=turn --grad --dims=72 --random=1 --check | FileCheck %s
// RUN: fovea-run %s --entry=turn --grad --dims=72 --random=1 --check --target=sm_90a --simulate | FileCheck %s
// RUN: fovea-run %s --entry=wide_values --grad --recompute=always --random=1 --check | FileCheck %s
// RUN: fovea-run %s --entry=wide_values --grad --recompute=never --random=1 --check | FileCheck %s
// RUN: fovea-run %s --entry=any_heads --grad --recompute=always --dims=q:2x4x8x4 --dims=k:2x2x9x4 --dims=v:2x2x9x4 --dims=bias:2x8x9 --random=1 --check | FileCheck %s
//
// UNREAD: result 1 (gradient of %q): f32 1x1x4x8, mean 0, min 0, max 0
// UNREAD: result 2 (gradient of %k): f32 1x1x4x8, mean 0, min 0, max 0
// CHECK: check: result 1: max error
// CHECK-NOT: FAILED

// Keys and values of one shape that fit one tile, of which the mask keeps a part:
// their gradients start from one tensor of zeros.
func.func @one_tile(%q: tensor<1x2x4x8xf32>, %k: tensor<1x2x5x8xf32>, %v: tensor<1x2x5x8xf32>) -> tensor<1x2x4x8xf32> {
  %o = attn.attention %q, %k, %v scale(1.0) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %m = arith.cmpi sge, %i, %j : index
    attn.yield %m : i1
  } : tensor<1x2x4x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32> -> tensor<1x2x4x8xf32>
  return %o : tensor<1x2x4x8xf32>
}

func.func @unread(%q: tensor<1x1x4x8xf32>, %k: tensor<1x1x4x8xf32>, %v: tensor<1x1x4x8xf32>, %bias: tensor<4x4xf32>) -> tensor<1x1x4x8xf32> {
  %o = attn.attention %q, %k, %v scale(1.0) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %bias[%i, %j] : tensor<4x4xf32>
    attn.yield %x : f32
  } : tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32> -> tensor<1x1x4x8xf32>
  return %o : tensor<1x1x4x8xf32>
}

func.func @turn(%q: tensor<1x1x4x?xf32>, %c: tensor<4x36xf32>) -> tensor<1x1x4x?xf32> {
  %r = attn.rope %q, %c, %c : tensor<1x1x4x?xf32>, tensor<4x36xf32>, tensor<4x36xf32>
  return %r : tensor<1x1x4x?xf32>
}

func.func @wide_values(%q: tensor<1x1x33x64xf32>, %k: tensor<1x1x33x64xf32>, %v: tensor<1x1x33x64xf64>) -> tensor<1x1x33x64xf64> {
  %o = attn.attention %q, %k, %v scale(0.125) : tensor<1x1x33x64xf32>, tensor<1x1x33x64xf32>, tensor<1x1x33x64xf64> -> tensor<1x1x33x64xf64>
  return %o : tensor<1x1x33x64xf64>
}

// The heads of a group are a number that nobody knows, and one item has all of
// them: a bias has none.
func.func @any_heads(%q: tensor<?x?x?x4xf64>, %k: tensor<?x?x9x4xf64>, %v: tensor<?x?x9x4xf64>, %bias: tensor<?x?x9xf64>) -> tensor<?x?x?x4xf64> {
  %o = attn.attention %q, %k, %v scale(0.5) score {
  ^bb0(%s: f64, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %bias[%b, %i, %j] : tensor<?x?x9xf64>
    %y = arith.addf %s, %x : f64
    attn.yield %y : f64
  } : tensor<?x?x?x4xf64>, tensor<?x?x9x4xf64>, tensor<?x?x9x4xf64> -> tensor<?x?x?x4xf64>
  return %o : tensor<?x?x?x4xf64>
}
