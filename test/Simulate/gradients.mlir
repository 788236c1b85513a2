// Gradients of attention on a GPU, forward and backward pass, against float64:
// both targets, orders of what is asynchronous, masks, score regions with
// derivatives and captured tensors, dropout, grouped heads, unequal dims, rows without a key, lengths
// that no tile divides, head dims whose accumulators two warps share, the log-sum-exp's gradient.
//
// RUN: fovea-run %s --grad --entry=window --target=sm_80 --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %s --grad --entry=window --target=sm_90a --simulate --seeds=4 --random=1 --check | FileCheck %s
// RUN: fovea-run %s --grad --entry=documents --target=sm_80 --simulate --random=2 --dims=70 --check | FileCheck %s
// RUN: fovea-run %s --grad --entry=documents --target=sm_90a --simulate --seeds=4 --random=2 --dims=70 --check | FileCheck %s
// RUN: fovea-run %s --grad --entry=documents --target=sm_90a --simulate --seeds=2 --random=2 --dims=1 --check | FileCheck %s
// RUN: fovea-run %s --grad --entry=soft_cap --target=sm_80 --simulate --random=3 --dims=70 --check | FileCheck %s
// RUN: fovea-run %s --grad --entry=soft_cap --target=sm_90a --simulate --seeds=4 --random=3 --dims=70 --check | FileCheck %s
// RUN: fovea-run %s --grad --entry=single --target=sm_80 --simulate --random=4 --input=7 --dims=45 --check | FileCheck %s
// RUN: fovea-run %s --grad --entry=single --target=sm_90a --simulate --seeds=4 --random=4 --input=7 --dims=45 --check | FileCheck %s
// RUN: fovea-run %s --grad --entry=groups --target=sm_80 --simulate --random=5 --dims=q:1x4x70x128,k:1x2x130x128,v:1x2x130x128,cotangent0:1x4x70x128 --check | FileCheck %s
// RUN: fovea-run %s --grad --entry=groups --target=sm_90a --simulate --seeds=4 --random=5 --dims=q:1x4x70x128,k:1x2x130x128,v:1x2x130x128,cotangent0:1x4x70x128 --check | FileCheck %s
// RUN: fovea-run %s --grad --entry=groups --target=sm_90a --simulate --random=5 --dims=q:1x4x0x128,k:1x2x20x128,v:1x2x20x128,cotangent0:1x4x0x128 --check | FileCheck %s
// RUN: fovea-run %s --grad --entry=nothing --target=sm_80 --simulate --random=6 --check | FileCheck %s --check-prefix=ZERO
// RUN: fovea-run %s --grad --entry=nothing --target=sm_90a --simulate --seeds=4 --random=6 --check | FileCheck %s --check-prefix=ZERO
// RUN: fovea-run %s --grad --entry=slopes --target=sm_80 --simulate --random=7 --dims=q:1x4x70x16,k:1x2x90x16,v:1x2x90x16,cotangent0:1x4x70x16 --check | FileCheck %s
// RUN: fovea-run %s --grad --entry=slopes --target=sm_90a --simulate --seeds=4 --random=7 --dims=q:1x4x70x16,k:1x2x90x16,v:1x2x90x16,cotangent0:1x4x70x16 --check | FileCheck %s
// RUN: fovea-run %s --grad --deterministic --entry=slopes --target=sm_90a --simulate --seeds=4 --random=7 --dims=q:1x4x70x16,k:1x2x90x16,v:1x2x90x16,cotangent0:1x4x70x16 --check | FileCheck %s
// RUN: fovea-run %s --grad --entry=wide --target=sm_80 --simulate --random=8 --dims=70 --check | FileCheck %s
// RUN: fovea-run %s --grad --entry=wide --target=sm_90a --simulate --seeds=4 --random=8 --dims=70 --check | FileCheck %s
//
// A gradient that is rounded twice, to the type of keys and to that of what they are
// made of.
// RUN: fovea-run %s --grad --entry=rounded --target=sm_80 --simulate --random=9 --check | FileCheck %s
// RUN: fovea-run %s --grad --entry=rounded --target=sm_90a --simulate --seeds=4 --random=9 --check | FileCheck %s
//
// Without sums between blocks: the same bits in any order of what is asynchronous.
// RUN: fovea-run %s --grad --deterministic --entry=window --target=sm_80 --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %s --grad --deterministic --entry=window --target=sm_90a --simulate --seeds=4 --random=1 --check | FileCheck %s
// RUN: fovea-run %s --grad --deterministic --entry=documents --target=sm_90a --simulate --seeds=4 --random=2 --dims=70 --check | FileCheck %s
// RUN: fovea-run %s --grad --deterministic --entry=soft_cap --target=sm_90a --simulate --seeds=4 --random=3 --dims=70 --check | FileCheck %s
// RUN: fovea-run %s --grad --deterministic --entry=single --target=sm_80 --simulate --random=4 --input=7 --dims=45 --check | FileCheck %s
// RUN: fovea-run %s --grad --deterministic --entry=groups --target=sm_90a --simulate --seeds=4 --random=5 --dims=q:1x4x70x128,k:1x2x130x128,v:1x2x130x128,cotangent0:1x4x70x128 --check | FileCheck %s
// RUN: fovea-run %s --grad --deterministic --entry=nothing --target=sm_90a --simulate --seeds=4 --random=6 --check | FileCheck %s --check-prefix=ZERO
//
// CHECK: check: result 0: max error
// CHECK-NOT: FAILED
// ZERO: result 2 (gradient of %q): {{.*}} min 0, max 0{{$}}
// ZERO: result 3 (gradient of %k): {{.*}} min 0, max 0{{$}}
// ZERO: result 4 (gradient of %v): {{.*}} min 0, max 0{{$}}

func.func @window(%q: tensor<2x4x37x24xbf16>, %k: tensor<2x2x71x24xbf16>, %v: tensor<2x2x71x40xbf16>) -> tensor<2x4x37x40xbf16> {
  %c20 = arith.constant 20 : index
  %o = attn.attention %q, %k, %v scale(0.2)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %d = arith.subi %i, %j : index
        %a = math.absi %d : index
        %keep = arith.cmpi sle, %a, %c20 : index
        attn.yield %keep : i1
      } : tensor<2x4x37x24xbf16>, tensor<2x2x71x24xbf16>, tensor<2x2x71x40xbf16> -> tensor<2x4x37x40xbf16>
  return %o : tensor<2x4x37x40xbf16>
}
func.func @documents(%q: tensor<1x2x?x16xf16>, %k: tensor<1x2x?x16xf16>, %v: tensor<1x2x?x16xf16>, %ids: tensor<?xi32>) -> tensor<1x2x?x16xf16> {
  %seed = arith.constant 1234567890123 : i64
  %offset = arith.constant 4294967295 : i64
  %o = attn.attention %q, %k, %v scale(0.25) dropout(0.3, %seed, %offset)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %c = arith.constant 3.0 : f32
        %1 = arith.divf %s, %c : f32
        %2 = math.tanh %1 : f32
        %3 = arith.mulf %2, %c : f32
        attn.yield %3 : f32
      }
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %ids[%i] : tensor<?xi32>
        %y = tensor.extract %ids[%j] : tensor<?xi32>
        %same = arith.cmpi eq, %x, %y : i32
        attn.yield %same : i1
      } 
      : tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16> -> tensor<1x2x?x16xf16>
  return %o : tensor<1x2x?x16xf16>
}
func.func @soft_cap(%q: tensor<1x2x?x64xbf16>, %k: tensor<1x2x?x64xbf16>, %v: tensor<1x2x?x64xbf16>) -> (tensor<1x2x?x64xbf16>, tensor<1x2x?xf32>) {
  %o, %l = attn.attention %q, %k, %v scale(0.125) 
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %c = arith.constant 3.0 : f32
        %1 = arith.divf %s, %c : f32
        %2 = math.tanh %1 : f32
        %3 = arith.mulf %2, %c : f32
        attn.yield %3 : f32
      }
      : tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16> -> tensor<1x2x?x64xbf16>, tensor<1x2x?xf32>
  return %o, %l : tensor<1x2x?x64xbf16>, tensor<1x2x?xf32>
}
func.func @single(%a: i64, %q: tensor<1x2x?x16xf32>, %k: tensor<1x1x?x16xf32>, %v: tensor<1x1x?x24xf32>) -> (tensor<1x2x?x24xf32>, tensor<1x2x?xf32>) {
  %o, %l = attn.attention %q, %k, %v scale(-0.3) dropout(0.1, %a, %a)
      : tensor<1x2x?x16xf32>, tensor<1x1x?x16xf32>, tensor<1x1x?x24xf32> -> tensor<1x2x?x24xf32>, tensor<1x2x?xf32>
  return %o, %l : tensor<1x2x?x24xf32>, tensor<1x2x?xf32>
}
func.func @wide(%q: tensor<1x1x?x256xbf16>, %k: tensor<1x1x?x256xbf16>, %v: tensor<1x1x?x256xbf16>) -> tensor<1x1x?x256xbf16> {
  %o = attn.attention %q, %k, %v scale(0.0625) : tensor<1x1x?x256xbf16>, tensor<1x1x?x256xbf16>, tensor<1x1x?x256xbf16> -> tensor<1x1x?x256xbf16>
  return %o : tensor<1x1x?x256xbf16>
}
func.func @groups(%q: tensor<1x4x?x128xf16>, %k: tensor<1x?x?x128xf16>, %v: tensor<1x?x?x128xf16>) -> tensor<1x4x?x128xf16> {
  %o = attn.attention %q, %k, %v scale(0.1)
      : tensor<1x4x?x128xf16>, tensor<1x?x?x128xf16>, tensor<1x?x?x128xf16> -> tensor<1x4x?x128xf16>
  return %o : tensor<1x4x?x128xf16>
}
func.func @nothing(%q: tensor<1x1x5x16xf16>, %k: tensor<1x1x40x16xf16>, %v: tensor<1x1x40x16xf16>, %none: tensor<40xi1>) -> (tensor<1x1x5x16xf16>, tensor<1x1x5xf32>) {
  %o, %l = attn.attention %q, %k, %v scale(0.25)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %1 = tensor.extract %none[%j] : tensor<40xi1>
        %true = arith.constant true
        %2 = arith.xori %1, %true : i1
        %3 = arith.andi %1, %2 : i1
        attn.yield %3 : i1
      } 
      : tensor<1x1x5x16xf16>, tensor<1x1x40x16xf16>, tensor<1x1x40x16xf16> -> tensor<1x1x5x16xf16>, tensor<1x1x5xf32>
  return %o, %l : tensor<1x1x5x16xf16>, tensor<1x1x5xf32>
}

// A slope of each head and a temperature have gradients.
func.func @slopes(%q: tensor<1x4x?x16xf16>, %k: tensor<1x2x?x16xf16>, %v: tensor<1x2x?x16xf16>, %slopes: tensor<4xf32>, %one: tensor<f32>) -> tensor<1x4x?x16xf16> {
  %seed = arith.constant 5 : i64
  %o = attn.attention %q, %k, %v scale(0.25) dropout(0.2, %seed, %seed)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %slope = tensor.extract %slopes[%h] : tensor<4xf32>
        %t = tensor.extract %one[] : tensor<f32>
        %d = arith.subi %j, %i : index
        %n = arith.index_cast %d : index to i32
        %x = arith.sitofp %n : i32 to f32
        %w = arith.constant 0.02 : f32
        %y = arith.mulf %x, %w : f32
        %1 = arith.mulf %s, %t : f32
        %2 = math.tanh %1 : f32
        %3 = arith.mulf %y, %slope : f32
        %4 = arith.addf %2, %3 : f32
        attn.yield %4 : f32
      }
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %keep = arith.cmpi sge, %i, %j : index
        attn.yield %keep : i1
      }
      : tensor<1x4x?x16xf16>, tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16> -> tensor<1x4x?x16xf16>
  return %o : tensor<1x4x?x16xf16>
}

func.func @rounded(%q: tensor<1x1x20x8xf16>, %k: tensor<1x1x33x8xf16>, %v: tensor<1x1x33x8xf64>) -> tensor<1x1x20x8xf16> {
  %wide = attn.elementwise %k {
  ^bb0(%x: f16):
    %y = arith.extf %x : f16 to f32
    attn.yield %y : f32
  } : (tensor<1x1x33x8xf16>) -> tensor<1x1x33x8xf32>
  %o = attn.attention %q, %wide, %v scale(0.35)
      : tensor<1x1x20x8xf16>, tensor<1x1x33x8xf32>, tensor<1x1x33x8xf64> -> tensor<1x1x20x8xf16>
  return %o : tensor<1x1x20x8xf16>
}
