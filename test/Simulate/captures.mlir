// Gradients of captured tensors of which queries or keys choose elements, on a
// GPU, against float64: biases of every broadcast form, numbers of rows and of
// keys, places that are computed; under a mask with rows that keep no key,
// dropout, grouped heads, lengths that no tile divides.
//
// RUN: fovea-run %s --grad --entry=bias --target=sm_80 --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %s --grad --entry=bias --target=sm_90a --simulate --seeds=2 --random=1 --check | FileCheck %s
// RUN: fovea-run %s --grad --entry=batches --target=sm_80 --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %s --grad --entry=batches --target=sm_90a --simulate --seeds=2 --random=1 --check | FileCheck %s
// RUN: fovea-run %s --grad --entry=own --target=sm_80 --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %s --grad --entry=own --target=sm_90a --simulate --seeds=2 --random=1 --check | FileCheck %s
// RUN: fovea-run %s --grad --entry=one_head --target=sm_80 --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %s --grad --entry=one_head --target=sm_90a --simulate --seeds=2 --random=1 --check | FileCheck %s
// RUN: fovea-run %s --grad --entry=transposed --target=sm_80 --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %s --grad --entry=transposed --target=sm_90a --simulate --seeds=2 --random=1 --check | FileCheck %s
// RUN: fovea-run %s --grad --entry=rows --target=sm_80 --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %s --grad --entry=rows --target=sm_90a --simulate --seeds=2 --random=1 --check | FileCheck %s
// RUN: fovea-run %s --grad --entry=keys --target=sm_80 --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %s --grad --entry=keys --target=sm_90a --simulate --seeds=2 --random=1 --check | FileCheck %s
// RUN: fovea-run %s --grad --entry=strided --target=sm_80 --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %s --grad --entry=strided --target=sm_90a --simulate --seeds=2 --random=1 --check | FileCheck %s
// RUN: fovea-run %s --grad --entry=relative --target=sm_80 --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %s --grad --entry=relative --target=sm_90a --simulate --seeds=2 --random=1 --check | FileCheck %s
//
// In a fixed order: where every score has an element of its own, of what keys
// choose, by launches in turn for batches, for heads and for both, in integers.
// RUN: fovea-run %s --grad --deterministic --entry=own --target=sm_90a --simulate --seeds=2 --random=1 --check | FileCheck %s
// RUN: fovea-run %s --grad --deterministic --entry=keys --target=sm_80 --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %s --grad --deterministic --entry=bias --target=sm_90a --simulate --seeds=2 --random=1 --check | FileCheck %s
// RUN: fovea-run %s --grad --deterministic --entry=bias --target=sm_80 --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %s --grad --deterministic --entry=one_head --target=sm_90a --simulate --seeds=2 --random=1 --check | FileCheck %s
// RUN: fovea-run %s --grad --deterministic --entry=one_head --target=sm_80 --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %s --grad --deterministic --entry=all --target=sm_90a --simulate --seeds=2 --random=1 --check | FileCheck %s
// RUN: fovea-run %s --grad --deterministic --entry=all --target=sm_80 --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %s --grad --deterministic --entry=windows --target=sm_90a --simulate --seeds=2 --random=1 --check | FileCheck %s
// RUN: fovea-run %s --grad --deterministic --entry=windows --target=sm_80 --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %s --grad --deterministic --entry=rows --target=sm_90a --simulate --seeds=2 --random=1 --check | FileCheck %s
// RUN: fovea-run %s --grad --deterministic --entry=rows --target=sm_80 --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %s --grad --deterministic --entry=relative --target=sm_90a --simulate --seeds=2 --random=1 --check | FileCheck %s
// RUN: fovea-run %s --grad --deterministic --entry=relative --target=sm_80 --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %s --grad --deterministic --entry=single --target=sm_90a --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %s --grad --deterministic --entry=wide --target=sm_80 --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %s --grad --deterministic --entry=wide --target=sm_90a --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %s --grad --deterministic --entry=doubles --target=sm_80 --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %s --grad --deterministic --entry=several --target=sm_90a --simulate --random=2 --dims=q:1x2x140x64,k:1x2x200x64,v:1x2x200x64,bias:2x140x200,cotangent0:1x2x140x64 --check | FileCheck %s
// RUN: fovea-run %s --grad --deterministic --entry=several --target=sm_90a --simulate --random=2 --dims=q:1x2x0x64,k:1x2x8x64,v:1x2x8x64,bias:2x0x8,cotangent0:1x2x0x64 --check | FileCheck %s
// RUN: fovea-run %s --grad --deterministic --entry=several --target=sm_90a --simulate --random=2 --dims=q:1x2x8x64,k:1x2x0x64,v:1x2x0x64,bias:2x8x0,cotangent0:1x2x8x64 --check | FileCheck %s
// RUN: fovea-run %s --grad --deterministic --entry=distances --target=sm_90a --simulate --random=2 --dims=q:1x2x140x64,k:1x2x200x64,v:1x2x200x64,t:340,cotangent0:1x2x140x64 --check | FileCheck %s
// RUN: fovea-run %s --grad --deterministic --entry=distances --target=sm_90a --simulate --random=2 --dims=q:1x2x0x64,k:1x2x8x64,v:1x2x8x64,t:8,cotangent0:1x2x0x64 --check | FileCheck %s
// RUN: fovea-run %s --grad --deterministic --entry=distances --target=sm_90a --simulate --random=2 --dims=q:1x2x8x64,k:1x2x0x64,v:1x2x0x64,t:8,cotangent0:1x2x8x64 --check | FileCheck %s
//
// Several tiles, lengths 0 and 1; scalar products; a bias of the operands' type.
// RUN: fovea-run %s --grad --entry=several --target=sm_90a --simulate --random=2 --dims=q:1x2x140x64,k:1x2x200x64,v:1x2x200x64,bias:2x140x200,cotangent0:1x2x140x64 --check | FileCheck %s
// RUN: fovea-run %s --grad --entry=several --target=sm_90a --simulate --random=2 --dims=q:1x2x1x64,k:1x2x1x64,v:1x2x1x64,bias:2x1x1,cotangent0:1x2x1x64 --check | FileCheck %s
// RUN: fovea-run %s --grad --entry=several --target=sm_90a --simulate --random=2 --dims=q:1x2x0x64,k:1x2x8x64,v:1x2x8x64,bias:2x0x8,cotangent0:1x2x0x64 --check | FileCheck %s
// RUN: fovea-run %s --grad --entry=several --target=sm_90a --simulate --random=2 --dims=q:1x2x8x64,k:1x2x0x64,v:1x2x0x64,bias:2x8x0,cotangent0:1x2x8x64 --check | FileCheck %s
// RUN: fovea-run %s --grad --entry=single --target=sm_90a --simulate --random=3 --check | FileCheck %s
// RUN: fovea-run %s --grad --entry=single --target=sm_80 --simulate --random=3 --check | FileCheck %s
//
// A dimension of unknown size, in which a captured number chooses: no loop goes
// along it, and a tile of the gradient has all of it.
// RUN: fovea-run %s --grad --entry=chosen --target=sm_80 --simulate --random=1 --dims=q:1x2x70x16,k:1x2x90x16,v:1x2x90x16,t:2x4x70,cotangent0:1x2x70x16 --check | FileCheck %s
// RUN: fovea-run %s --grad --entry=chosen --target=sm_90a --simulate --seeds=2 --random=1 --dims=q:1x2x140x16,k:1x2x90x16,v:1x2x90x16,t:2x4x140,cotangent0:1x2x140x16 --check | FileCheck %s
//
// All in f64, by scalar products.
// RUN: fovea-run %s --grad --entry=wide --target=sm_80 --simulate --random=4 --check | FileCheck %s
// RUN: fovea-run %s --grad --entry=wide --target=sm_90a --simulate --random=4 --check | FileCheck %s
//
// CHECK: check: result 0: max error
// CHECK-NOT: FAILED

func.func @bias(%q: tensor<2x4x70x16xf16>, %k: tensor<2x2x90x16xf16>, %v: tensor<2x2x90x16xf16>, %t: tensor<4x70x90xf32>) -> tensor<2x4x70x16xf16> {
  %seed = arith.constant 5 : i64
  %o = attn.attention %q, %k, %v scale(0.25) dropout(0.2, %seed, %seed)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %t[%h, %i, %j] : tensor<4x70x90xf32>
        %r = arith.addf %s, %x : f32
        attn.yield %r : f32
      }
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %first = arith.constant 7 : index
        %past = arith.addi %j, %first : index
        %keep = arith.cmpi sge, %i, %past : index
        attn.yield %keep : i1
      }
      : tensor<2x4x70x16xf16>, tensor<2x2x90x16xf16>, tensor<2x2x90x16xf16> -> tensor<2x4x70x16xf16>
  return %o : tensor<2x4x70x16xf16>
}

func.func @batches(%q: tensor<2x4x70x16xf16>, %k: tensor<2x2x90x16xf16>, %v: tensor<2x2x90x16xf16>, %t: tensor<2x70x90xf32>) -> tensor<2x4x70x16xf16> {
  %seed = arith.constant 5 : i64
  %o = attn.attention %q, %k, %v scale(0.25) dropout(0.2, %seed, %seed)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %t[%b, %i, %j] : tensor<2x70x90xf32>
        %r = arith.mulf %s, %x : f32
        attn.yield %r : f32
      }
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %first = arith.constant 7 : index
        %past = arith.addi %j, %first : index
        %keep = arith.cmpi sge, %i, %past : index
        attn.yield %keep : i1
      }
      : tensor<2x4x70x16xf16>, tensor<2x2x90x16xf16>, tensor<2x2x90x16xf16> -> tensor<2x4x70x16xf16>
  return %o : tensor<2x4x70x16xf16>
}

func.func @own(%q: tensor<2x4x70x16xf16>, %k: tensor<2x2x90x16xf16>, %v: tensor<2x2x90x16xf16>, %t: tensor<2x4x70x90xf32>) -> tensor<2x4x70x16xf16> {
  %seed = arith.constant 5 : i64
  %o = attn.attention %q, %k, %v scale(0.25) dropout(0.2, %seed, %seed)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %t[%b, %h, %i, %j] : tensor<2x4x70x90xf32>
        %r = arith.addf %s, %x : f32
        attn.yield %r : f32
      }
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %first = arith.constant 7 : index
        %past = arith.addi %j, %first : index
        %keep = arith.cmpi sge, %i, %past : index
        attn.yield %keep : i1
      }
      : tensor<2x4x70x16xf16>, tensor<2x2x90x16xf16>, tensor<2x2x90x16xf16> -> tensor<2x4x70x16xf16>
  return %o : tensor<2x4x70x16xf16>
}

func.func @one_head(%q: tensor<2x4x70x16xf16>, %k: tensor<2x2x90x16xf16>, %v: tensor<2x2x90x16xf16>, %t: tensor<2x1x70x90xf32>) -> tensor<2x4x70x16xf16> {
  %seed = arith.constant 5 : i64
  %o = attn.attention %q, %k, %v scale(0.25) dropout(0.2, %seed, %seed)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %zero = arith.constant 0 : index
        %x = tensor.extract %t[%b, %zero, %i, %j] : tensor<2x1x70x90xf32>
        %r = arith.addf %s, %x : f32
        attn.yield %r : f32
      }
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %first = arith.constant 7 : index
        %past = arith.addi %j, %first : index
        %keep = arith.cmpi sge, %i, %past : index
        attn.yield %keep : i1
      }
      : tensor<2x4x70x16xf16>, tensor<2x2x90x16xf16>, tensor<2x2x90x16xf16> -> tensor<2x4x70x16xf16>
  return %o : tensor<2x4x70x16xf16>
}

func.func @transposed(%q: tensor<2x4x70x16xf16>, %k: tensor<2x2x90x16xf16>, %v: tensor<2x2x90x16xf16>, %t: tensor<90x70x4xf32>) -> tensor<2x4x70x16xf16> {
  %seed = arith.constant 5 : i64
  %o = attn.attention %q, %k, %v scale(0.25) dropout(0.2, %seed, %seed)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %t[%j, %i, %h] : tensor<90x70x4xf32>
        %r = arith.addf %s, %x : f32
        attn.yield %r : f32
      }
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %first = arith.constant 7 : index
        %past = arith.addi %j, %first : index
        %keep = arith.cmpi sge, %i, %past : index
        attn.yield %keep : i1
      }
      : tensor<2x4x70x16xf16>, tensor<2x2x90x16xf16>, tensor<2x2x90x16xf16> -> tensor<2x4x70x16xf16>
  return %o : tensor<2x4x70x16xf16>
}

func.func @rows(%q: tensor<2x4x70x16xf16>, %k: tensor<2x2x90x16xf16>, %v: tensor<2x2x90x16xf16>, %t: tensor<2x70xf32>) -> tensor<2x4x70x16xf16> {
  %seed = arith.constant 5 : i64
  %o = attn.attention %q, %k, %v scale(0.25) dropout(0.2, %seed, %seed)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %t[%b, %i] : tensor<2x70xf32>
        %r = arith.mulf %s, %x : f32
        attn.yield %r : f32
      }
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %first = arith.constant 7 : index
        %past = arith.addi %j, %first : index
        %keep = arith.cmpi sge, %i, %past : index
        attn.yield %keep : i1
      }
      : tensor<2x4x70x16xf16>, tensor<2x2x90x16xf16>, tensor<2x2x90x16xf16> -> tensor<2x4x70x16xf16>
  return %o : tensor<2x4x70x16xf16>
}

func.func @chosen(%q: tensor<?x2x?x16xbf16>, %k: tensor<?x2x?x16xbf16>, %v: tensor<?x2x?x16xbf16>, %t: tensor<2x?x?xbf16>, %which: tensor<i64>) -> tensor<?x2x?x16xbf16> {
  %o = attn.attention %q, %k, %v scale(0.25)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %c1 = arith.constant 1 : index
        %rows = tensor.dim %t, %c1 : tensor<2x?x?xbf16>
        %last = arith.subi %rows, %c1 : index
        %number = tensor.extract %which[] : tensor<i64>
        %index = arith.index_cast %number : i64 to index
        %row = arith.minui %index, %last : index
        %e = tensor.extract %t[%h, %row, %i] : tensor<2x?x?xbf16>
        %x = arith.extf %e : bf16 to f32
        %r = arith.mulf %s, %x : f32
        attn.yield %r : f32
      }
      : tensor<?x2x?x16xbf16>, tensor<?x2x?x16xbf16>, tensor<?x2x?x16xbf16> -> tensor<?x2x?x16xbf16>
  return %o : tensor<?x2x?x16xbf16>
}

func.func @keys(%q: tensor<2x4x70x16xf16>, %k: tensor<2x2x90x16xf16>, %v: tensor<2x2x90x16xf16>, %t: tensor<4x90xf32>) -> tensor<2x4x70x16xf16> {
  %seed = arith.constant 5 : i64
  %o = attn.attention %q, %k, %v scale(0.25) dropout(0.2, %seed, %seed)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %t[%h, %j] : tensor<4x90xf32>
        %r = arith.addf %s, %x : f32
        attn.yield %r : f32
      }
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %first = arith.constant 7 : index
        %past = arith.addi %j, %first : index
        %keep = arith.cmpi sge, %i, %past : index
        attn.yield %keep : i1
      }
      : tensor<2x4x70x16xf16>, tensor<2x2x90x16xf16>, tensor<2x2x90x16xf16> -> tensor<2x4x70x16xf16>
  return %o : tensor<2x4x70x16xf16>
}

func.func @strided(%q: tensor<2x4x70x16xf16>, %k: tensor<2x2x90x16xf16>, %v: tensor<2x2x90x16xf16>, %t: tensor<200xf32>) -> tensor<2x4x70x16xf16> {
  %seed = arith.constant 5 : i64
  %o = attn.attention %q, %k, %v scale(0.25) dropout(0.2, %seed, %seed)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %c2 = arith.constant 2 : index
        %double = arith.muli %j, %c2 : index
        %half = arith.shrui %i, %c2 : index
        %twice = arith.addi %double, %half : index
        %x = tensor.extract %t[%twice] : tensor<200xf32>
        %r = arith.addf %s, %x : f32
        attn.yield %r : f32
      }
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %first = arith.constant 7 : index
        %past = arith.addi %j, %first : index
        %keep = arith.cmpi sge, %i, %past : index
        attn.yield %keep : i1
      }
      : tensor<2x4x70x16xf16>, tensor<2x2x90x16xf16>, tensor<2x2x90x16xf16> -> tensor<2x4x70x16xf16>
  return %o : tensor<2x4x70x16xf16>
}

func.func @relative(%q: tensor<2x4x70x16xf16>, %k: tensor<2x2x90x16xf16>, %v: tensor<2x2x90x16xf16>, %t: tensor<4x159xf32>) -> tensor<2x4x70x16xf16> {
  %seed = arith.constant 5 : i64
  %o = attn.attention %q, %k, %v scale(0.25) dropout(0.2, %seed, %seed)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %last = arith.constant 69 : index
        %d = arith.subi %j, %i : index
        %distance = arith.addi %d, %last : index
        %x = tensor.extract %t[%h, %distance] : tensor<4x159xf32>
        %r = arith.mulf %s, %x : f32
        attn.yield %r : f32
      }
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %first = arith.constant 7 : index
        %past = arith.addi %j, %first : index
        %keep = arith.cmpi sge, %i, %past : index
        attn.yield %keep : i1
      }
      : tensor<2x4x70x16xf16>, tensor<2x2x90x16xf16>, tensor<2x2x90x16xf16> -> tensor<2x4x70x16xf16>
  return %o : tensor<2x4x70x16xf16>
}

func.func @several(%q: tensor<1x2x?x64xbf16>, %k: tensor<1x2x?x64xbf16>, %v: tensor<1x2x?x64xbf16>, %bias: tensor<2x?x?xbf16>) -> tensor<1x2x?x64xbf16> {
  %o = attn.attention %q, %k, %v scale(0.125)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %bias[%h, %i, %j] : tensor<2x?x?xbf16>
        %y = arith.extf %x : bf16 to f32
        %r = arith.addf %s, %y : f32
        attn.yield %r : f32
      }
      : tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16> -> tensor<1x2x?x64xbf16>
  return %o : tensor<1x2x?x64xbf16>
}

// Two reads of one tensor, one of them by query and key, and one by head.
func.func @single(%q: tensor<1x2x45x16xf32>, %k: tensor<1x2x40x16xf32>, %v: tensor<1x2x40x24xf32>, %t: tensor<45x40xf32>) -> tensor<1x2x45x24xf32> {
  %o = attn.attention %q, %k, %v scale(0.25)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %t[%i, %j] : tensor<45x40xf32>
        %y = tensor.extract %t[%b, %h] : tensor<45x40xf32>
        %1 = arith.addf %s, %x : f32
        %2 = arith.mulf %1, %y : f32
        %r = math.tanh %2 : f32
        attn.yield %r : f32
      }
      : tensor<1x2x45x16xf32>, tensor<1x2x40x16xf32>, tensor<1x2x40x24xf32> -> tensor<1x2x45x24xf32>
  return %o : tensor<1x2x45x24xf32>
}

func.func @wide(%q: tensor<1x4x45x32xf64>, %k: tensor<1x2x70x32xf64>, %v: tensor<1x2x70x24xf64>, %slopes: tensor<4xf64>, %bias: tensor<45x70xf32>) -> (tensor<1x4x45x24xf64>, tensor<1x4x45xf64>) {
  %seed = arith.constant 5 : i64
  %o, %l = attn.attention %q, %k, %v scale(0.25) dropout(0.1, %seed, %seed)
      score {
      ^bb0(%s: f64, %b: index, %h: index, %i: index, %j: index):
        %slope = tensor.extract %slopes[%h] : tensor<4xf64>
        %y = tensor.extract %bias[%i, %j] : tensor<45x70xf32>
        %x = arith.extf %y : f32 to f64
        %1 = arith.mulf %s, %slope : f64
        %2 = arith.addf %1, %x : f64
        %3 = math.tanh %2 : f64
        attn.yield %3 : f64
      }
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %keep = arith.cmpi sge, %i, %j : index
        attn.yield %keep : i1
      }
      : tensor<1x4x45x32xf64>, tensor<1x2x70x32xf64>, tensor<1x2x70x24xf64> -> tensor<1x4x45x24xf64>, tensor<1x4x45xf64>
  return %o, %l : tensor<1x4x45x24xf64>, tensor<1x4x45xf64>
}

func.func @all(%q: tensor<2x4x70x16xf16>, %k: tensor<2x2x90x16xf16>, %v: tensor<2x2x90x16xf16>, %t: tensor<70x90xf32>) -> tensor<2x4x70x16xf16> {
  %o = attn.attention %q, %k, %v scale(0.25)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %t[%i, %j] : tensor<70x90xf32>
        %r = arith.addf %s, %x : f32
        attn.yield %r : f32
      }
      : tensor<2x4x70x16xf16>, tensor<2x2x90x16xf16>, tensor<2x2x90x16xf16> -> tensor<2x4x70x16xf16>
  return %o : tensor<2x4x70x16xf16>
}

// Many small scores.
func.func @windows(%q: tensor<8x2x10x64xbf16>, %k: tensor<8x2x10x64xbf16>, %v: tensor<8x2x10x64xbf16>, %t: tensor<10x10xf32>) -> tensor<8x2x10x64xbf16> {
  %o = attn.attention %q, %k, %v scale(0.25)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %t[%i, %j] : tensor<10x10xf32>
        %r = arith.addf %s, %x : f32
        attn.yield %r : f32
      }
      : tensor<8x2x10x64xbf16>, tensor<8x2x10x64xbf16>, tensor<8x2x10x64xbf16> -> tensor<8x2x10x64xbf16>
  return %o : tensor<8x2x10x64xbf16>
}

func.func @doubles(%q: tensor<1x2x40x16xf64>, %k: tensor<1x1x50x16xf64>, %v: tensor<1x1x50x16xf64>, %t: tensor<90xf64>) -> tensor<1x2x40x16xf64> {
  %o = attn.attention %q, %k, %v scale(0.25)
      score {
      ^bb0(%s: f64, %b: index, %h: index, %i: index, %j: index):
        %d = arith.addi %i, %j : index
        %x = tensor.extract %t[%d] : tensor<90xf64>
        %r = arith.mulf %s, %x : f64
        attn.yield %r : f64
      }
      : tensor<1x2x40x16xf64>, tensor<1x1x50x16xf64>, tensor<1x1x50x16xf64> -> tensor<1x2x40x16xf64>
  return %o : tensor<1x2x40x16xf64>
}

// How many terms a sum has is found at run time.
func.func @distances(%q: tensor<1x2x?x64xbf16>, %k: tensor<1x2x?x64xbf16>, %v: tensor<1x2x?x64xbf16>, %t: tensor<?xf32>) -> tensor<1x2x?x64xbf16> {
  %o = attn.attention %q, %k, %v scale(0.25)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %d = arith.addi %i, %j : index
        %x = tensor.extract %t[%d] : tensor<?xf32>
        %r = arith.mulf %s, %x : f32
        attn.yield %r : f32
      }
      : tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16> -> tensor<1x2x?x64xbf16>
  return %o : tensor<1x2x?x64xbf16>
}
