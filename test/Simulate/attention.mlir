// Every kind of attention as programs of thread blocks, plain for sm_80, in
// roles and skewed for sm_90a, against the graph in f64: masks, score regions
// with captured tensors, dropout, rows without a key, sizes that no tile
// divides, every strategy.
//
// RUN: fovea-opt %s --attn-online-softmax --attn-tile=fuse-producers=false \
// RUN:   --convert-attn-to-tile --canonicalize --cse -o %t.plain
// RUN: fovea-opt %t.plain --attach-gpu-target=target=sm_80 --tile-assign-layouts -o %t.80
// RUN: fovea-opt %t.plain --tile-assign-layouts --tile-multibuffer \
// RUN:   --tile-specialize-warps --tile-schedule --tile-expand-pipeline -o %t.90
// RUN: fovea-run %t.80 --reference=%s --entry=grouped --target=sm_80 --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %t.90 --reference=%s --entry=grouped --target=sm_90a --simulate --seeds=4 --random=1 --check | FileCheck %s
// RUN: fovea-run %t.80 --reference=%s --entry=captures --target=sm_80 --simulate --random=2 --check | FileCheck %s
// RUN: fovea-run %t.90 --reference=%s --entry=captures --target=sm_90a --simulate --seeds=4 --random=2 --check | FileCheck %s
// RUN: fovea-run %t.80 --reference=%s --entry=single --target=sm_80 --simulate --random=3 --check | FileCheck %s
// RUN: fovea-run %t.90 --reference=%s --entry=single --target=sm_90a --simulate --seeds=4 --random=3 --check | FileCheck %s
// RUN: fovea-run %t.90 --reference=%s --entry=groups --target=sm_90a --simulate --seeds=4 --random=4 --dims=70 --check | FileCheck %s
// RUN: fovea-run %t.90 --reference=%s --entry=nothing --target=sm_90a --simulate --seeds=4 --random=5 --check | FileCheck %s --check-prefix=ZERO
//
// RUN: fovea-opt %s --attn-online-softmax=passes=2 --attn-tile --convert-attn-to-tile --canonicalize --cse \
// RUN:   --tile-assign-layouts --tile-multibuffer --tile-specialize-warps --tile-schedule --tile-expand-pipeline -o %t.two
// RUN: fovea-run %t.two --reference=%s --entry=grouped --target=sm_90a --simulate --seeds=4 --random=1 --check | FileCheck %s
// RUN: fovea-opt %s --attn-online-softmax=passes=3 --attn-tile --convert-attn-to-tile --canonicalize --cse \
// RUN:   --tile-assign-layouts --tile-multibuffer --tile-specialize-warps --tile-schedule --tile-expand-pipeline -o %t.three
// RUN: fovea-run %t.three --reference=%s --entry=grouped --target=sm_90a --simulate --seeds=4 --random=1 --check | FileCheck %s
//
// CHECK: check: result 0: max error
// CHECK-NOT: FAILED
// ZERO: result 0: {{.*}} min 0, max 0{{$}}
// ZERO: result 1: {{.*}} min -inf, max -inf

func.func @grouped(%q: tensor<2x4x37x24xbf16>, %k: tensor<2x2x71x24xbf16>, %v: tensor<2x2x71x40xbf16>) -> tensor<2x4x37x40xbf16> {
  %o = attn.attention %q, %k, %v scale(0.2)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %keep = arith.cmpi sge, %i, %j : index
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 64x32, order = longest_first, warps = 4, stages = 2>}
      : tensor<2x4x37x24xbf16>, tensor<2x2x71x24xbf16>, tensor<2x2x71x40xbf16> -> tensor<2x4x37x40xbf16>
  return %o : tensor<2x4x37x40xbf16>
}

func.func @captures(%q: tensor<1x2x70x16xf16>, %k: tensor<1x2x70x16xf16>, %v: tensor<1x2x70x16xf16>,
    %slopes: tensor<2xf32>, %ids: tensor<70xi32>, %bias: tensor<70x70xf32>) -> tensor<1x2x70x16xf16> {
  %seed = arith.constant 1234567890123 : i64
  %offset = arith.constant 4294967295 : i64
  %o = attn.attention %q, %k, %v scale(0.25) dropout(0.3, %seed, %offset)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %slope = tensor.extract %slopes[%h] : tensor<2xf32>
        %x = tensor.extract %bias[%i, %j] : tensor<70x70xf32>
        %1 = arith.mulf %s, %slope : f32
        %2 = arith.addf %1, %x : f32
        attn.yield %2 : f32
      }
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %ids[%i] : tensor<70xi32>
        %y = tensor.extract %ids[%j] : tensor<70xi32>
        %same = arith.cmpi eq, %x, %y : i32
        attn.yield %same : i1
      } {schedule = #attn.schedule<tile = 64x16, order = linear, warps = 4, stages = 3>}
      : tensor<1x2x70x16xf16>, tensor<1x2x70x16xf16>, tensor<1x2x70x16xf16> -> tensor<1x2x70x16xf16>
  return %o : tensor<1x2x70x16xf16>
}

// No tensor cores.
func.func @single(%q: tensor<1x2x50x12xf32>, %k: tensor<1x2x40x12xf32>, %v: tensor<1x2x40x20xf32>) -> (tensor<1x2x50x20xf32>, tensor<1x2x50xf32>) {
  %o, %l = attn.attention %q, %k, %v scale(0.3)
      {schedule = #attn.schedule<tile = 32x16, order = linear, warps = 2, stages = 2>}
      : tensor<1x2x50x12xf32>, tensor<1x2x40x12xf32>, tensor<1x2x40x20xf32> -> tensor<1x2x50x20xf32>, tensor<1x2x50xf32>
  return %o, %l : tensor<1x2x50x20xf32>, tensor<1x2x50xf32>
}

// Two warp groups, which give registers to one another.
func.func @groups(%q: tensor<1x1x?x128xf16>, %k: tensor<1x1x?x128xf16>, %v: tensor<1x1x?x128xf16>) -> tensor<1x1x?x128xf16> {
  %o = attn.attention %q, %k, %v scale(0.1)
      {schedule = #attn.schedule<tile = 128x64, order = linear, warps = 8, stages = 2>}
      : tensor<1x1x?x128xf16>, tensor<1x1x?x128xf16>, tensor<1x1x?x128xf16> -> tensor<1x1x?x128xf16>
  return %o : tensor<1x1x?x128xf16>
}

// No key is kept: zeros, and the logarithm of 0.
func.func @nothing(%q: tensor<1x1x5x16xf16>, %k: tensor<1x1x40x16xf16>, %v: tensor<1x1x40x16xf16>, %none: tensor<40xi1>) -> (tensor<1x1x5x16xf16>, tensor<1x1x5xf32>) {
  %o, %l = attn.attention %q, %k, %v scale(0.25)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %1 = tensor.extract %none[%j] : tensor<40xi1>
        %true = arith.constant true
        %2 = arith.xori %1, %true : i1
        %3 = arith.andi %1, %2 : i1
        attn.yield %3 : i1
      } {schedule = #attn.schedule<tile = 64x16, order = linear, warps = 4, stages = 2>}
      : tensor<1x1x5x16xf16>, tensor<1x1x40x16xf16>, tensor<1x1x40x16xf16> -> tensor<1x1x5x16xf16>, tensor<1x1x5xf32>
  return %o, %l : tensor<1x1x5x16xf16>, tensor<1x1x5xf32>
}
