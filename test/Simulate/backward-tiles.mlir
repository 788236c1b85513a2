// The backward pass with what scores and masks read of captured tensors as tiles,
// whose rows are columns of its scores: biases of 16 and 32 bits, in one slot or
// two, of lengths that no tile divides; numbers of distances under a mask;
// booleans of a mask, beside a number of each query; a bias with a gradient;
// operands of f32; and lengths that are not known, also of none, and of rows that
// TMA cannot copy, for which there is a copy.
//
// RUN: fovea-run %s --entry=bias --target=sm_90a --simulate --seeds=3 --random=1 --check | FileCheck %s
// RUN: fovea-run %s --entry=bias --target=sm_80 --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %s --entry=large --target=sm_90a --simulate --random=2 --check | FileCheck %s
// RUN: fovea-run %s --entry=factors --target=sm_90a --simulate --seeds=3 --random=3 --check | FileCheck %s
// RUN: fovea-run %s --entry=factors --target=sm_80 --simulate --random=3 --check | FileCheck %s
// RUN: fovea-run %s --entry=distances --target=sm_90a --simulate --seeds=3 --random=4 --check | FileCheck %s
// RUN: fovea-run %s --entry=masked --target=sm_90a --simulate --seeds=3 --random=5 --integers=0:209 --check | FileCheck %s
// RUN: fovea-run %s --entry=gradient --target=sm_90a --simulate --seeds=3 --random=6 --check | FileCheck %s --check-prefixes=CHECK,FOUR
// RUN: fovea-run %s --entry=exact --target=sm_90a --simulate --random=7 --check | FileCheck %s
// RUN: fovea-run %s --entry=dynamic --target=sm_90a --simulate --random=8 --dims=q:1x2x140x64,k:1x1x131x64,v:1x1x131x64,do:1x2x140x64,lse:1x2x140,delta:1x2x140,c:2x140x131,m:140x131 --check | FileCheck %s
// RUN: fovea-run %s --entry=dynamic --target=sm_90a --simulate --random=8 --dims=q:1x2x0x64,k:1x1x8x64,v:1x1x8x64,do:1x2x0x64,lse:1x2x0,delta:1x2x0,c:2x0x8,m:0x8 --check | FileCheck %s
// RUN: fovea-run %s --entry=dynamic --target=sm_90a --simulate --random=8 --dims=q:1x2x8x64,k:1x1x0x64,v:1x1x0x64,do:1x2x8x64,lse:1x2x8,delta:1x2x8,c:2x8x0,m:8x0 --check | FileCheck %s
//
// CHECK:      check: result 0: max error
// CHECK-NEXT: check: result 1: max error
// CHECK-NEXT: check: result 2: max error
// FOUR-NEXT:  check: result 3: max error
// CHECK-NOT:  FAILED

func.func @bias(%q: tensor<1x2x136x64xbf16>, %k: tensor<1x1x200x64xbf16>, %v: tensor<1x1x200x64xbf16>, %do: tensor<1x2x136x64xbf16>, %lse: tensor<1x2x136xf64>, %delta: tensor<1x2x136xf32>, %c: tensor<2x136x200xbf16>) -> (tensor<1x2x136x64xbf16>, tensor<1x1x200x64xbf16>, tensor<1x1x200x64xbf16>) {
  %r:3 = attn.attention_backward %q, %k, %v, %do scale(0.125) statistics(%lse, %delta : tensor<1x2x136xf64>, tensor<1x2x136xf32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %c[%h, %i, %j] : tensor<2x136x200xbf16>
    %w = arith.extf %x : bf16 to f32
    %t = arith.addf %s, %w : f32
    attn.yield %t : f32
  }
    {schedule = #attn.schedule<tile = 64x128, order = linear, warps = 8, stages = 2, captures = tiled, gradients = <parallel = [batch, head, key]>>}
    : tensor<1x2x136x64xbf16>, tensor<1x1x200x64xbf16>, tensor<1x1x200x64xbf16>, tensor<1x2x136x64xbf16> -> tensor<1x2x136x64xbf16>, tensor<1x1x200x64xbf16>, tensor<1x1x200x64xbf16>
  return %r#0, %r#1, %r#2 : tensor<1x2x136x64xbf16>, tensor<1x1x200x64xbf16>, tensor<1x1x200x64xbf16>
}

func.func @large(%q: tensor<1x2x140x32xf16>, %k: tensor<1x1x264x32xf16>, %v: tensor<1x1x264x32xf16>, %do: tensor<1x2x140x32xf16>, %lse: tensor<1x2x140xf64>, %delta: tensor<1x2x140xf32>, %c: tensor<2x140x264xf16>) -> (tensor<1x2x140x32xf16>, tensor<1x1x264x32xf16>, tensor<1x1x264x32xf16>) {
  %r:3 = attn.attention_backward %q, %k, %v, %do scale(0.125) statistics(%lse, %delta : tensor<1x2x140xf64>, tensor<1x2x140xf32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %c[%h, %i, %j] : tensor<2x140x264xf16>
    %w = arith.extf %x : f16 to f32
    %t = arith.addf %s, %w : f32
    attn.yield %t : f32
  }
    {schedule = #attn.schedule<tile = 128x128, order = linear, warps = 8, stages = 2, captures = tiled, gradients = <parallel = [batch, head, key]>>}
    : tensor<1x2x140x32xf16>, tensor<1x1x264x32xf16>, tensor<1x1x264x32xf16>, tensor<1x2x140x32xf16> -> tensor<1x2x140x32xf16>, tensor<1x1x264x32xf16>, tensor<1x1x264x32xf16>
  return %r#0, %r#1, %r#2 : tensor<1x2x140x32xf16>, tensor<1x1x264x32xf16>, tensor<1x1x264x32xf16>
}

func.func @factors(%q: tensor<1x2x70x32xbf16>, %k: tensor<1x1x132x32xbf16>, %v: tensor<1x1x132x32xbf16>, %do: tensor<1x2x70x32xbf16>, %lse: tensor<1x2x70xf64>, %delta: tensor<1x2x70xf32>, %c: tensor<2x70x132xf32>) -> (tensor<1x2x70x32xbf16>, tensor<1x1x132x32xbf16>, tensor<1x1x132x32xbf16>) {
  %r:3 = attn.attention_backward %q, %k, %v, %do scale(0.125) statistics(%lse, %delta : tensor<1x2x70xf64>, tensor<1x2x70xf32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %c[%h, %i, %j] : tensor<2x70x132xf32>
    %t = arith.mulf %s, %x : f32
    attn.yield %t : f32
  }
    {schedule = #attn.schedule<tile = 32x64, order = linear, warps = 4, stages = 1, captures = tiled, gradients = <parallel = [batch, head, key]>>}
    : tensor<1x2x70x32xbf16>, tensor<1x1x132x32xbf16>, tensor<1x1x132x32xbf16>, tensor<1x2x70x32xbf16> -> tensor<1x2x70x32xbf16>, tensor<1x1x132x32xbf16>, tensor<1x1x132x32xbf16>
  return %r#0, %r#1, %r#2 : tensor<1x2x70x32xbf16>, tensor<1x1x132x32xbf16>, tensor<1x1x132x32xbf16>
}

func.func @distances(%q: tensor<1x2x70x32xbf16>, %k: tensor<1x1x136x32xbf16>, %v: tensor<1x1x136x32xbf16>, %do: tensor<1x2x70x32xbf16>, %lse: tensor<1x2x70xf64>, %delta: tensor<1x2x70xf32>, %c: tensor<2x206xf32>) -> (tensor<1x2x70x32xbf16>, tensor<1x1x136x32xbf16>, tensor<1x1x136x32xbf16>) {
  %r:3 = attn.attention_backward %q, %k, %v, %do scale(0.125) statistics(%lse, %delta : tensor<1x2x70xf64>, tensor<1x2x70xf32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %c135 = arith.constant 135 : index
    %d = arith.subi %i, %j : index
    %p = arith.addi %d, %c135 : index
    %x = tensor.extract %c[%h, %p] : tensor<2x206xf32>
    %t = arith.addf %s, %x : f32
    attn.yield %t : f32
  } mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %kept = arith.cmpi sge, %i, %j : index
    attn.yield %kept : i1
  }
    {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, captures = tiled, gradients = <parallel = [batch, head, key]>>}
    : tensor<1x2x70x32xbf16>, tensor<1x1x136x32xbf16>, tensor<1x1x136x32xbf16>, tensor<1x2x70x32xbf16> -> tensor<1x2x70x32xbf16>, tensor<1x1x136x32xbf16>, tensor<1x1x136x32xbf16>
  return %r#0, %r#1, %r#2 : tensor<1x2x70x32xbf16>, tensor<1x1x136x32xbf16>, tensor<1x1x136x32xbf16>
}

func.func @masked(%q: tensor<1x2x136x32xbf16>, %k: tensor<1x1x208x32xbf16>, %v: tensor<1x1x208x32xbf16>, %do: tensor<1x2x136x32xbf16>, %lse: tensor<1x2x136xf64>, %delta: tensor<1x2x136xf32>, %m: tensor<2x136x208xi1>, %n: tensor<136xi32>) -> (tensor<1x2x136x32xbf16>, tensor<1x1x208x32xbf16>, tensor<1x1x208x32xbf16>) {
  %r:3 = attn.attention_backward %q, %k, %v, %do scale(0.125) statistics(%lse, %delta : tensor<1x2x136xf64>, tensor<1x2x136xf32>) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %m[%h, %i, %j] : tensor<2x136x208xi1>
    %y = tensor.extract %n[%i] : tensor<136xi32>
    %end = arith.index_cast %y : i32 to index
    %e = arith.cmpi slt, %j, %end : index
    %kept = arith.andi %x, %e : i1
    attn.yield %kept : i1
  }
    {schedule = #attn.schedule<tile = 64x128, order = linear, warps = 8, stages = 2, captures = tiled, gradients = <parallel = [batch, head, key]>>}
    : tensor<1x2x136x32xbf16>, tensor<1x1x208x32xbf16>, tensor<1x1x208x32xbf16>, tensor<1x2x136x32xbf16> -> tensor<1x2x136x32xbf16>, tensor<1x1x208x32xbf16>, tensor<1x1x208x32xbf16>
  return %r#0, %r#1, %r#2 : tensor<1x2x136x32xbf16>, tensor<1x1x208x32xbf16>, tensor<1x1x208x32xbf16>
}

func.func @gradient(%q: tensor<1x2x70x32xbf16>, %k: tensor<1x1x136x32xbf16>, %v: tensor<1x1x136x32xbf16>, %do: tensor<1x2x70x32xbf16>, %lse: tensor<1x2x70xf64>, %delta: tensor<1x2x70xf32>, %c: tensor<2x70x136xbf16>) -> (tensor<1x2x70x32xbf16>, tensor<1x1x136x32xbf16>, tensor<1x1x136x32xbf16>, tensor<2x70x136xbf16>) {
  %r:4 = attn.attention_backward %q, %k, %v, %do scale(0.125) statistics(%lse, %delta : tensor<1x2x70xf64>, tensor<1x2x70xf32>) captures(%c : tensor<2x70x136xbf16>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %c[%h, %i, %j] : tensor<2x70x136xbf16>
    %w = arith.extf %x : bf16 to f32
    %t = arith.addf %s, %w : f32
    attn.yield %t : f32
  }
    {schedule = #attn.schedule<tile = 32x128, order = linear, warps = 8, stages = 2, captures = tiled, gradients = <parallel = [batch, head, key], captures = [own]>>}
    : tensor<1x2x70x32xbf16>, tensor<1x1x136x32xbf16>, tensor<1x1x136x32xbf16>, tensor<1x2x70x32xbf16> -> tensor<1x2x70x32xbf16>, tensor<1x1x136x32xbf16>, tensor<1x1x136x32xbf16>, tensor<2x70x136xbf16>
  return %r#0, %r#1, %r#2, %r#3 : tensor<1x2x70x32xbf16>, tensor<1x1x136x32xbf16>, tensor<1x1x136x32xbf16>, tensor<2x70x136xbf16>
}

func.func @exact(%q: tensor<1x2x40x16xf32>, %k: tensor<1x1x72x16xf32>, %v: tensor<1x1x72x16xf32>, %do: tensor<1x2x40x16xf32>, %lse: tensor<1x2x40xf64>, %delta: tensor<1x2x40xf32>, %c: tensor<2x40x72xf32>) -> (tensor<1x2x40x16xf32>, tensor<1x1x72x16xf32>, tensor<1x1x72x16xf32>) {
  %r:3 = attn.attention_backward %q, %k, %v, %do scale(0.125) statistics(%lse, %delta : tensor<1x2x40xf64>, tensor<1x2x40xf32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %c[%h, %i, %j] : tensor<2x40x72xf32>
    %t = arith.addf %s, %x : f32
    attn.yield %t : f32
  }
    {schedule = #attn.schedule<tile = 32x32, order = linear, warps = 4, stages = 2, captures = tiled, gradients = <parallel = [batch, head, key]>>}
    : tensor<1x2x40x16xf32>, tensor<1x1x72x16xf32>, tensor<1x1x72x16xf32>, tensor<1x2x40x16xf32> -> tensor<1x2x40x16xf32>, tensor<1x1x72x16xf32>, tensor<1x1x72x16xf32>
  return %r#0, %r#1, %r#2 : tensor<1x2x40x16xf32>, tensor<1x1x72x16xf32>, tensor<1x1x72x16xf32>
}

func.func @dynamic(%q: tensor<1x2x?x64xbf16>, %k: tensor<1x1x?x64xbf16>, %v: tensor<1x1x?x64xbf16>, %do: tensor<1x2x?x64xbf16>, %lse: tensor<1x2x?xf64>, %delta: tensor<1x2x?xf32>, %c: tensor<2x?x?xbf16>, %m: tensor<?x?xi1>) -> (tensor<1x2x?x64xbf16>, tensor<1x1x?x64xbf16>, tensor<1x1x?x64xbf16>) {
  %r:3 = attn.attention_backward %q, %k, %v, %do scale(0.125) statistics(%lse, %delta : tensor<1x2x?xf64>, tensor<1x2x?xf32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %c[%h, %i, %j] : tensor<2x?x?xbf16>
    %w = arith.extf %x : bf16 to f32
    %t = arith.addf %s, %w : f32
    attn.yield %t : f32
  } mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %m[%i, %j] : tensor<?x?xi1>
    attn.yield %x : i1
  } : tensor<1x2x?x64xbf16>, tensor<1x1x?x64xbf16>, tensor<1x1x?x64xbf16>, tensor<1x2x?x64xbf16> -> tensor<1x2x?x64xbf16>, tensor<1x1x?x64xbf16>, tensor<1x1x?x64xbf16>
  return %r#0, %r#1, %r#2 : tensor<1x2x?x64xbf16>, tensor<1x1x?x64xbf16>, tensor<1x1x?x64xbf16>
}
