// The kernels of convert-attn-to-vector against the unfused graph in f64: sizes
// that no tile divides, every way a region reads its captures, dropout.
//
// RUN: fovea-run %s --entry=odd --random=1 --check | FileCheck %s
// RUN: fovea-run %s --entry=odd --random=1 --check --arch=avx2 | FileCheck %s
// RUN: fovea-run %s --entry=odd --random=1 --check --arch=generic | FileCheck %s
// RUN: fovea-run %s --entry=odd --random=1 --check --strategy=three-pass | FileCheck %s
// RUN: fovea-run %s --entry=double --random=2 --check | FileCheck %s
// RUN: fovea-run %s --entry=dynamic --random=3 --dims=21 --check | FileCheck %s
// RUN: fovea-run %s --entry=captures --random=4 --check | FileCheck %s
// RUN: fovea-run %s --entry=branch --random=5 --check | FileCheck %s
// RUN: fovea-run %s --entry=dropped --random=6 --check | FileCheck %s
// RUN: fovea-run %s --entry=dropped --random=6 --check --strategy=two-pass | FileCheck %s
// RUN: fovea-run %s --entry=nothing --random=7 --check | FileCheck %s --check-prefix=ZERO
// RUN: fovea-run %s --entry=faint --random=8 | FileCheck %s --check-prefix=FAINT
// RUN: fovea-run %s --entry=faint --random=8 --strategy=three-pass | FileCheck %s --check-prefix=FAINT
//
// CHECK: check: result 0: max error
// ZERO: result 0: {{.*}} min 0, max 0{{$}}
// FAINT: result 0: {{.*}} min 1.804{{[0-9]*}}e-35, max 1.804{{[0-9]*}}e-35{{$}}
// FAINT: result 1: {{.*}} min 9.859{{[0-9]*}}e-305, max 9.859{{[0-9]*}}e-305{{$}}

// Grouped heads; 37 queries, 71 keys; 20 features, 27 of the values; half.
func.func @odd(%q: tensor<2x6x37x20xf16>, %k: tensor<2x2x71x20xf16>, %v: tensor<2x2x71x27xf16>) -> tensor<2x6x37x27xf16> {
  %o = attn.attention %q, %k, %v scale(0.25)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %keep = arith.cmpi sge, %i, %j : index
        attn.yield %keep : i1
      } : tensor<2x6x37x20xf16>, tensor<2x2x71x20xf16>, tensor<2x2x71x27xf16> -> tensor<2x6x37x27xf16>
  return %o : tensor<2x6x37x27xf16>
}

func.func @double(%q: tensor<1x2x50x33xf64>, %k: tensor<1x2x130x33xf64>, %v: tensor<1x2x130x9xf64>) -> (tensor<1x2x50x9xf64>, tensor<1x2x50xf64>) {
  %o, %l = attn.attention %q, %k, %v scale(0.2)
      : tensor<1x2x50x33xf64>, tensor<1x2x130x33xf64>, tensor<1x2x130x9xf64> -> tensor<1x2x50x9xf64>, tensor<1x2x50xf64>
  return %o, %l : tensor<1x2x50x9xf64>, tensor<1x2x50xf64>
}

// Every size, the features' too, is known at run time alone.
func.func @dynamic(%q: tensor<?x?x?x?xbf16>, %k: tensor<?x?x?x?xbf16>, %v: tensor<?x?x?x?xbf16>) -> tensor<?x?x?x?xbf16> {
  %o = attn.attention %q, %k, %v scale(0.25)
      : tensor<?x?x?x?xbf16>, tensor<?x?x?x?xbf16>, tensor<?x?x?x?xbf16> -> tensor<?x?x?x?xbf16>
  return %o : tensor<?x?x?x?xbf16>
}

// A scalar load, consecutive ones, distant ones, booleans, half.
func.func @captures(%q: tensor<1x2x70x16xf32>, %k: tensor<1x2x70x16xf32>, %v: tensor<1x2x70x16xf32>,
    %slopes: tensor<2xf32>, %ids: tensor<70xi32>, %bias: tensor<70x70xf32>, %allowed: tensor<70x70xi1>, %distances: tensor<139xf16>) -> tensor<1x2x70x16xf32> {
  %o = attn.attention %q, %k, %v scale(0.25)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %c69 = arith.constant 69 : index
        %slope = tensor.extract %slopes[%h] : tensor<2xf32>
        %x = tensor.extract %bias[%i, %j] : tensor<70x70xf32>
        %d = arith.subi %j, %i : index
        %place = arith.addi %d, %c69 : index
        %y = tensor.extract %distances[%place] : tensor<139xf16>
        %z = arith.extf %y : f16 to f32
        %1 = arith.mulf %s, %slope : f32
        %2 = arith.addf %1, %x : f32
        %3 = arith.addf %2, %z : f32
        attn.yield %3 : f32
      }
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %ids[%i] : tensor<70xi32>
        %y = tensor.extract %ids[%j] : tensor<70xi32>
        %same = arith.cmpi eq, %x, %y : i32
        %a = tensor.extract %allowed[%i, %j] : tensor<70x70xi1>
        %keep = arith.ori %same, %a : i1
        attn.yield %keep : i1
      } : tensor<1x2x70x16xf32>, tensor<1x2x70x16xf32>, tensor<1x2x70x16xf32> -> tensor<1x2x70x16xf32>
  return %o : tensor<1x2x70x16xf32>
}

// A region that cannot be computed lane by lane.
func.func @branch(%q: tensor<1x2x53x16xf32>, %k: tensor<1x2x40x16xf32>, %v: tensor<1x2x40x16xf32>) -> tensor<1x2x53x16xf32> {
  %o = attn.attention %q, %k, %v scale(0.25)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %near = arith.cmpi slt, %i, %j : index
        %r = scf.if %near -> f32 {
          %n = arith.negf %s : f32
          scf.yield %n : f32
        } else {
          scf.yield %s : f32
        }
        attn.yield %r : f32
      } : tensor<1x2x53x16xf32>, tensor<1x2x40x16xf32>, tensor<1x2x40x16xf32> -> tensor<1x2x53x16xf32>
  return %o : tensor<1x2x53x16xf32>
}

func.func @dropped(%q: tensor<2x3x61x16xf32>, %k: tensor<2x3x67x16xf32>, %v: tensor<2x3x67x16xf32>) -> tensor<2x3x61x16xf32> {
  %seed = arith.constant 1234567890123 : i64
  %offset = arith.constant 4294967295 : i64
  %o = attn.attention %q, %k, %v scale(0.25) dropout(0.3, %seed, %offset)
      : tensor<2x3x61x16xf32>, tensor<2x3x67x16xf32>, tensor<2x3x67x16xf32> -> tensor<2x3x61x16xf32>
  return %o : tensor<2x3x61x16xf32>
}

// No key is kept: zeros.
func.func @nothing(%q: tensor<1x2x5x16xf32>, %k: tensor<1x2x40x16xf32>, %v: tensor<1x2x40x16xf32>, %none: tensor<40xi1>) -> tensor<1x2x5x16xf32> {
  %o = attn.attention %q, %k, %v scale(0.25)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %1 = tensor.extract %none[%j] : tensor<40xi1>
        %true = arith.constant true
        %2 = arith.xori %1, %true : i1
        %3 = arith.andi %1, %2 : i1
        attn.yield %3 : i1
      } : tensor<1x2x5x16xf32>, tensor<1x2x40x16xf32>, tensor<1x2x40x16xf32> -> tensor<1x2x5x16xf32>
  return %o : tensor<1x2x5x16xf32>
}

// exp(-80) = 2^-115 and, in f64, exp(-700) = 2^-1010: faint, but normal numbers.
func.func @faint(%q: tensor<1x2x5x3xf32>, %k: tensor<1x2x2x3xf32>, %qd: tensor<1x2x5x3xf64>, %kd: tensor<1x2x2x3xf64>) -> (tensor<1x2x5x1xf32>, tensor<1x2x5x1xf64>) {
  %v = arith.constant dense<[[[[0.0], [1.0]], [[0.0], [1.0]]]]> : tensor<1x2x2x1xf32>
  %vd = arith.constant dense<[[[[0.0], [1.0]], [[0.0], [1.0]]]]> : tensor<1x2x2x1xf64>
  %o = attn.attention %q, %k, %v scale(0.25)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %slope = arith.constant -80.0 : f32
        %1 = arith.index_cast %j : index to i32
        %2 = arith.sitofp %1 : i32 to f32
        %3 = arith.mulf %2, %slope : f32
        attn.yield %3 : f32
      } : tensor<1x2x5x3xf32>, tensor<1x2x2x3xf32>, tensor<1x2x2x1xf32> -> tensor<1x2x5x1xf32>
  %p = attn.attention %qd, %kd, %vd scale(0.25)
      score {
      ^bb0(%s: f64, %b: index, %h: index, %i: index, %j: index):
        %slope = arith.constant -700.0 : f64
        %1 = arith.index_cast %j : index to i32
        %2 = arith.sitofp %1 : i32 to f64
        %3 = arith.mulf %2, %slope : f64
        attn.yield %3 : f64
      } : tensor<1x2x5x3xf64>, tensor<1x2x2x3xf64>, tensor<1x2x2x1xf64> -> tensor<1x2x5x1xf64>
  return %o, %p : tensor<1x2x5x1xf32>, tensor<1x2x5x1xf64>
}
