// A scale that is an operand, as a factor of the score region: of the unit of
// scores if it is clamped to usual numbers, and of each score otherwise, so that any
// number is right.
//
// DEFINE: %{run} = fovea-run %s --target=sm_90a --simulate --random=1 --check --dims=q:1x2x150x64 --dims=k:1x2x200x64 --dims=v:1x2x200x64
// RUN: %{run} --entry=plain --integers=1:8 --seeds=2 | FileCheck %s
// RUN: %{run} --entry=plain --integers=300:400 | FileCheck %s
// RUN: %{run} --entry=causal --integers=1:8 --seeds=2 | FileCheck %s
// RUN: %{run} --entry=causal --integers=300:400 | FileCheck %s
// RUN: %{run} --entry=wide --integers=1:8 | FileCheck %s
// RUN: %{run} --entry=any --integers=-8:-1 | FileCheck %s
// RUN: %{run} --entry=any --integers=0:0 | FileCheck %s
// CHECK: check: result 0: max error {{[0-9.e-]+}}, relative {{[0-9.e-]+}} (bound
// CHECK: check: result 1: max error {{[0-9.e-]+}}, relative {{[0-9.e-]+}} (bound

!h = tensor<?x2x?x64xf16>
!w = tensor<?x2x?x64xf32>
!lse = tensor<?x2x?xf64>
!lse32 = tensor<?x2x?xf32>

func.func private @usual(%n: i64) -> f32 {
  %eighth = arith.constant 0.125 : f32
  %least = arith.constant 1.0e-10 : f32
  %most = arith.constant 1.0e+10 : f32
  %x = arith.sitofp %n : i64 to f32
  %scale = arith.mulf %x, %eighth : f32
  %raised = arith.maxnumf %scale, %least : f32
  %usual = arith.minnumf %raised, %most : f32
  return %usual : f32
}

// The accumulator has a branch of its own; the log-sum-exp has the factor.
func.func @plain(%q: !h, %k: !h, %v: !h, %n: i64) -> (!h, !lse) {
  %scale = call @usual(%n) : (i64) -> f32
  %o, %l = attn.attention %q, %k, %v scale(1.0) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = arith.mulf %s, %scale : f32
    attn.yield %x : f32
  } : !h, !h, !h -> !h, !lse
  return %o, %l : !h, !lse
}

// Rows without a key, and sinks.
func.func @causal(%q: !h, %k: !h, %v: !h, %n: i64) -> (!h, !lse32) {
  %scale = call @usual(%n) : (i64) -> f32
  %sinks = arith.constant dense<[0.5, -2.0]> : tensor<2xf32>
  %o, %l = attn.attention %q, %k, %v scale(1.0) init(%sinks : tensor<2xf32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = arith.mulf %scale, %s : f32
    attn.yield %x : f32
  } mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %c10 = arith.constant 10 : index
    %last = arith.subi %i, %c10 : index
    %keep = arith.cmpi sge, %last, %j : index
    attn.yield %keep : i1
  } : !h, !h, !h -> !h, !lse32
  return %o, %l : !h, !lse32
}

func.func @wide(%q: !w, %k: !w, %v: !w, %n: i64) -> (!w, !lse) {
  %scale = call @usual(%n) : (i64) -> f32
  %o, %l = attn.attention %q, %k, %v scale(1.0) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = arith.mulf %s, %scale : f32
    attn.yield %x : f32
  } : !w, !w, !w -> !w, !lse
  return %o, %l : !w, !lse
}

func.func @any(%q: !h, %k: !h, %v: !h, %n: i64) -> (!h, !lse) {
  %eighth = arith.constant 0.125 : f32
  %m = arith.sitofp %n : i64 to f32
  %scale = arith.mulf %m, %eighth : f32
  %o, %l = attn.attention %q, %k, %v scale(1.0) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = arith.mulf %s, %scale : f32
    attn.yield %x : f32
  } : !h, !h, !h -> !h, !lse
  return %o, %l : !h, !lse
}
