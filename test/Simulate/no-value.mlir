// What has no value is no fault as long as nothing uses it: regions are evaluated
// for elements of padded tiles, and for scores that a select or the mask
// discards.
//
// RUN: fovea-run %s --entry=beyond --random=1 --dims=53 --target=sm_90a --simulate --check | FileCheck %s
// RUN: fovea-run %s --entry=beyond --random=1 --dims=53 --target=sm_80 --simulate --check | FileCheck %s
// RUN: fovea-run %s --entry=buckets --random=1 --dims=21 --target=sm_90a --simulate --check | FileCheck %s
// RUN: fovea-run %s --entry=masked --random=1 --dims=21 --target=sm_90a --simulate --check | FileCheck %s
//
// Of a score that is kept it is one.
// RUN: not fovea-run %s --entry=kept --random=1 --dims=21 --target=sm_90a --simulate 2>&1 | FileCheck %s --check-prefix=KEPT
//
// CHECK: check: result 0: max error
// CHECK-NOT: FAILED
//
// KEPT: no-value.mlir:[[#@LINE+79]]:{{[0-9]+}}: error: 'arith.fptosi' op converts INF, which 'i32' does not hold
// KEPT: note: in block
// KEPT: note: used here

// A remainder by the distance to the end, which is 0 one element beyond it.
func.func @beyond(%q: tensor<1x2x?x16xf32>, %k: tensor<1x2x?x16xf32>, %v: tensor<1x2x?x16xf32>) -> tensor<1x2x?x16xf32> {
  %c2 = arith.constant 2 : index
  %n = tensor.dim %q, %c2 : tensor<1x2x?x16xf32>
  %m = tensor.dim %k, %c2 : tensor<1x2x?x16xf32>
  %o = attn.attention %q, %k, %v scale(0.25) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %d = arith.subi %n, %i : index
    %r = arith.remsi %j, %d : index
    %d2 = arith.subi %m, %j : index
    %r2 = arith.remsi %i, %d2 : index
    %e = arith.cmpi sge, %r, %r2 : index
    attn.yield %e : i1
  } : tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32> -> tensor<1x2x?x16xf32>
  return %o : tensor<1x2x?x16xf32>
}

// Buckets of distances: the logarithm of 0 is no integer, and not chosen.
func.func @buckets(%q: tensor<1x2x?x16xf32>, %table: tensor<16x2xf32>) -> tensor<1x2x?x16xf32> {
  %c8 = arith.constant 8 : index
  %c15 = arith.constant 15 : index
  %f8 = arith.constant 8.0 : f32
  %o = attn.attention %q, %q, %q scale(0.25) score {
  ^bb0(%score: f32, %b: index, %h: index, %i: index, %j: index):
    %d = arith.subi %j, %i : index
    %n = math.absi %d : index
    %small = arith.cmpi slt, %n, %c8 : index
    %ni = arith.index_cast %n : index to i32
    %nf = arith.sitofp %ni : i32 to f32
    %ratio = arith.divf %nf, %f8 : f32
    %log = math.log %ratio : f32
    %li = arith.fptosi %log : f32 to i32
    %lx = arith.index_cast %li : i32 to index
    %l8 = arith.addi %lx, %c8 : index
    %lc = arith.minsi %l8, %c15 : index
    %bucket = arith.select %small, %n, %lc : index
    %bias = tensor.extract %table[%bucket, %h] : tensor<16x2xf32>
    %r = arith.addf %score, %bias : f32
    attn.yield %r : f32
  } : tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32> -> tensor<1x2x?x16xf32>
  return %o : tensor<1x2x?x16xf32>
}

// A score that has no value where the mask excludes it.
func.func @masked(%q: tensor<1x2x?x16xf32>) -> tensor<1x2x?x16xf32> {
  %huge = arith.constant 1.0e20 : f32
  %small = arith.constant 1.0e-2 : f32
  %o = attn.attention %q, %q, %q scale(0.25) score {
  ^bb0(%score: f32, %b: index, %h: index, %i: index, %j: index):
    %c0 = arith.constant 0 : index
    %d = arith.subi %j, %i : index
    %beyond = arith.maxsi %d, %c0 : index
    %n = arith.index_cast %beyond : index to i32
    %f = arith.sitofp %n : i32 to f32
    %g = arith.mulf %f, %huge : f32
    %t = arith.fptosi %g : f32 to i32
    %u = arith.addi %t, %n : i32
    %w = arith.sitofp %u : i32 to f32
    %z = arith.mulf %w, %small : f32
    %r = arith.addf %score, %z : f32
    attn.yield %r : f32
  } mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %e = arith.cmpi sge, %i, %j : index
    attn.yield %e : i1
  } : tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32> -> tensor<1x2x?x16xf32>
  return %o : tensor<1x2x?x16xf32>
}

func.func @kept(%q: tensor<1x2x?x16xf32>) -> tensor<1x2x?x16xf32> {
  %zero = arith.constant 0.0 : f32
  %o = attn.attention %q, %q, %q scale(0.25) score {
  ^bb0(%score: f32, %b: index, %h: index, %i: index, %j: index):
    %s = arith.mulf %score, %score : f32
    %inf = arith.divf %s, %zero : f32
    %t = arith.fptosi %inf : f32 to i32
    %r = arith.sitofp %t : i32 to f32
    attn.yield %r : f32
  } : tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32> -> tensor<1x2x?x16xf32>
  return %o : tensor<1x2x?x16xf32>
}
