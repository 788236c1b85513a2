// Operands and results of attention of different element types, and gradients
// of such, against float64.
//
// RUN: fovea-run %s --grad --entry=mixed --target=sm_80 --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %s --grad --entry=mixed --target=sm_90a --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %s --grad --entry=halves --target=sm_80 --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %s --grad --entry=halves --target=sm_90a --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %s --grad --entry=output --target=sm_80 --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %s --grad --entry=output --target=sm_90a --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %s --grad --entry=range --target=sm_80 --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %s --grad --entry=range --target=sm_90a --simulate --random=1 --check | FileCheck %s
//
// CHECK: check: result 0: max error
// CHECK-NOT: FAILED

func.func @mixed(%q: tensor<1x2x40x16xbf16>, %k: tensor<1x2x50x16xf32>, %v: tensor<1x2x50x16xbf16>, %t: tensor<90xf32>) -> tensor<1x2x40x16xbf16> {
  %o = attn.attention %q, %k, %v scale(0.25)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %d = arith.addi %i, %j : index
        %x = tensor.extract %t[%d] : tensor<90xf32>
        %r = arith.addf %s, %x : f32
        attn.yield %r : f32
      }
      : tensor<1x2x40x16xbf16>, tensor<1x2x50x16xf32>, tensor<1x2x50x16xbf16> -> tensor<1x2x40x16xbf16>
  return %o : tensor<1x2x40x16xbf16>
}

func.func @halves(%q: tensor<1x2x40x16xbf16>, %k: tensor<1x2x50x16xf16>, %v: tensor<1x2x50x16xf16>, %t: tensor<90xf32>) -> tensor<1x2x40x16xf16> {
  %o = attn.attention %q, %k, %v scale(0.25)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %d = arith.addi %i, %j : index
        %x = tensor.extract %t[%d] : tensor<90xf32>
        %r = arith.addf %s, %x : f32
        attn.yield %r : f32
      }
      : tensor<1x2x40x16xbf16>, tensor<1x2x50x16xf16>, tensor<1x2x50x16xf16> -> tensor<1x2x40x16xf16>
  return %o : tensor<1x2x40x16xf16>
}

func.func @output(%q: tensor<1x2x40x16xbf16>, %k: tensor<1x2x50x16xbf16>, %v: tensor<1x2x50x16xbf16>, %t: tensor<90xf32>) -> tensor<1x2x40x16xf32> {
  %o = attn.attention %q, %k, %v scale(0.25)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %d = arith.addi %i, %j : index
        %x = tensor.extract %t[%d] : tensor<90xf32>
        %r = arith.addf %s, %x : f32
        attn.yield %r : f32
      }
      : tensor<1x2x40x16xbf16>, tensor<1x2x50x16xbf16>, tensor<1x2x50x16xbf16> -> tensor<1x2x40x16xf32>
  return %o : tensor<1x2x40x16xf32>
}

func.func @range(%q: tensor<1x2x40x16xf16>, %k: tensor<1x2x50x16xf16>, %v: tensor<1x2x50x16xf16>, %t: tensor<90xf32>) -> tensor<1x2x40x16xf32> {
  %o = attn.attention %q, %k, %v scale(0.25)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %d = arith.addi %i, %j : index
        %x = tensor.extract %t[%d] : tensor<90xf32>
        %r = arith.addf %s, %x : f32
        attn.yield %r : f32
      }
      : tensor<1x2x40x16xf16>, tensor<1x2x50x16xf16>, tensor<1x2x50x16xf16> -> tensor<1x2x40x16xf32>
  return %o : tensor<1x2x40x16xf32>
}
