// Score regions as their fast forms, against the graph in f64: a soft cap by the
// machine's tanh, and exact, whose constant is the unit of scores; positions as
// floats, cut to 32 bits and not, signed and unsigned; forward and backward.
//
// RUN: fovea-run %s --entry=cap --target=sm_90a --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %s --entry=cap --target=sm_90a --exact-functions --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %s --entry=small --target=sm_90a --simulate --random=1 --check | FileCheck %s
// RUN: sed 's/bf16/f16/' %s > %t.mlir
// RUN: fovea-run %t.mlir --entry=small --target=sm_90a --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %t.mlir --entry=cap --target=sm_90a --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %s --entry=sinks --target=sm_90a --simulate --random=1 --check | FileCheck %s --check-prefixes=CHECK,LSE
// RUN: fovea-run %s --entry=distances --target=sm_90a --simulate --random=2 --check | FileCheck %s
// RUN: fovea-run %s --entry=cap --target=sm_90a --simulate --random=3 --grad --check | FileCheck %s --check-prefixes=CHECK,GRAD
// RUN: fovea-run %s --entry=distances --target=sm_90a --simulate --random=4 --grad --check | FileCheck %s --check-prefixes=CHECK,GRAD
//
// CHECK: check: result 0: max error
// LSE:   check: result 1: max error
// GRAD:  check: result 3: max error
// CHECK-NOT: FAILED

!t = tensor<1x2x96x32xbf16>

func.func @cap(%q: !t, %k: !t, %v: !t) -> !t {
  %o = attn.attention %q, %k, %v scale(0.5) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %cap = arith.constant 2.0 : f32
    %0 = arith.divf %s, %cap : f32
    %1 = math.tanh %0 : f32
    %2 = arith.mulf %1, %cap : f32
    attn.yield %2 : f32
  } mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %0 = arith.cmpi sge, %i, %j : index
    attn.yield %0 : i1
  } : !t, !t, !t -> !t
  return %o : !t
}

// Scores below the cap.
func.func @small(%q: !t, %k: !t, %v: !t) -> !t {
  %o = attn.attention %q, %k, %v scale(0.125) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %cap = arith.constant 4.0 : f32
    %0 = arith.divf %s, %cap : f32
    %1 = math.tanh %0 : f32
    %2 = arith.mulf %1, %cap : f32
    attn.yield %2 : f32
  } : !t, !t, !t -> !t
  return %o : !t
}

// The log-sum-exp is of scores, whatever their unit.
func.func @sinks(%q: !t, %k: !t, %v: !t) -> (!t, tensor<1x2x96xf32>) {
  %o, %lse = attn.attention %q, %k, %v scale(0.5) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %cap = arith.constant 2.0 : f32
    %0 = math.tanh %s : f32
    %1 = arith.mulf %cap, %0 : f32
    attn.yield %1 : f32
  } : !t, !t, !t -> !t, tensor<1x2x96xf32>
  return %o, %lse : !t, tensor<1x2x96xf32>
}

func.func @distances(%q: !t, %k: !t, %v: !t) -> !t {
  %o = attn.attention %q, %k, %v scale(0.25) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %d = arith.subi %j, %i : index
    %d64 = arith.index_cast %d : index to i64
    %d32 = arith.trunci %d64 : i64 to i32
    %x = arith.sitofp %d32 : i32 to f32
    %c3 = arith.constant 3 : index
    %j3 = arith.muli %j, %c3 : index
    %j64 = arith.index_cast %j3 : index to i64
    %y = arith.uitofp %j64 : i64 to f32
    %h64 = arith.index_cast %h : index to i64
    %z = arith.sitofp %h64 : i64 to f32
    %slope = arith.constant 0.03125 : f32
    %small = arith.constant 0.0078125 : f32
    %0 = arith.mulf %x, %slope : f32
    %1 = arith.mulf %y, %small : f32
    %2 = arith.mulf %1, %z : f32
    %3 = arith.addf %s, %0 : f32
    %4 = arith.addf %3, %2 : f32
    attn.yield %4 : f32
  } : !t, !t, !t -> !t
  return %o : !t
}
