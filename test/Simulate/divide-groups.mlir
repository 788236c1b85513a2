// Gradients of grouped heads whose groups are divided into shares, against float64:
// both targets, a mask, a captured tensor, a fixed order, lengths that no tile divides,
// and of 0 and 1.
//
// RUN: fovea-opt %s --attn-differentiate --attn-insert-recomputation \
// RUN:   --attach-gpu-target=target=sm_90a --attn-select-schedule | FileCheck %s --check-prefix=SHARES
// RUN: fovea-run %s --entry=causal --grad --recompute=always --target=sm_90a --simulate --seeds=4 --random=1 --dims=q:2x8x70x16,k:2x1x130x16,v:2x1x130x8,cotangent0:2x8x70x8 --check | FileCheck %s
// RUN: fovea-run %s --entry=causal --grad --recompute=always --target=sm_80 --simulate --random=1 --dims=q:2x8x70x16,k:2x1x130x16,v:2x1x130x8,cotangent0:2x8x70x8 --check | FileCheck %s
// RUN: fovea-run %s --entry=causal --grad --recompute=always --deterministic --target=sm_90a --simulate --seeds=4 --random=1 --dims=q:2x8x70x16,k:2x1x130x16,v:2x1x130x8,cotangent0:2x8x70x8 --check | FileCheck %s
// RUN: fovea-run %s --entry=causal --grad --recompute=always --target=sm_90a --simulate --random=1 --dims=q:1x8x1x16,k:1x1x1x16,v:1x1x1x8,cotangent0:1x8x1x8 --check | FileCheck %s
// RUN: fovea-run %s --entry=causal --grad --recompute=always --target=sm_90a --simulate --random=1 --dims=q:1x8x0x16,k:1x1x20x16,v:1x1x20x8,cotangent0:1x8x0x8 --check | FileCheck %s
// RUN: fovea-run %s --entry=slopes --grad --recompute=always --target=sm_90a --simulate --seeds=4 --random=2 --dims=q:1x6x70x16,k:1x2x90x16,v:1x2x90x16,cotangent0:1x6x70x16 --check | FileCheck %s
// RUN: fovea-run %s --entry=slopes --grad --recompute=always --deterministic --target=sm_90a --simulate --seeds=4 --random=2 --dims=q:1x6x70x16,k:1x2x90x16,v:1x2x90x16,cotangent0:1x6x70x16 --check | FileCheck %s
//
// SHARES: attn.attention_backward
// SHARES-SAME: statistics
// SHARES: shares = 8
// SHARES: shares = 3
//
// CHECK: check: result 0: max error
// CHECK: check: result 3: max error
// CHECK-NOT: FAILED

func.func @causal(%q: tensor<?x8x?x16xbf16>, %k: tensor<?x1x?x16xbf16>, %v: tensor<?x1x?x8xbf16>) -> tensor<?x8x?x8xbf16> {
  %o = attn.attention %q, %k, %v scale(0.25) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } : tensor<?x8x?x16xbf16>, tensor<?x1x?x16xbf16>, tensor<?x1x?x8xbf16> -> tensor<?x8x?x8xbf16>
  return %o : tensor<?x8x?x8xbf16>
}

func.func @slopes(%q: tensor<?x6x?x16xf16>, %k: tensor<?x2x?x16xf16>, %v: tensor<?x2x?x16xf16>, %slopes: tensor<6xf32>) -> tensor<?x6x?x16xf16> {
  %o = attn.attention %q, %k, %v scale(0.25) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %slope = tensor.extract %slopes[%h] : tensor<6xf32>
    %r = arith.mulf %s, %slope : f32
    attn.yield %r : f32
  } : tensor<?x6x?x16xf16>, tensor<?x2x?x16xf16>, tensor<?x2x?x16xf16> -> tensor<?x6x?x16xf16>
  return %o : tensor<?x6x?x16xf16>
}
