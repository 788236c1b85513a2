// Sums of a capture's gradient in f64 are in a fixed order only where heads follow
// one another, in a loop around the launch: what is done once behind all sums, such
// as scaling the queries' gradients, is not repeated by it. Documents, whose tiles
// are in lists or tested, and tests that differ between heads.
//
// RUN: fovea-run %s --entry=same --grad --deterministic --target=sm_90a --simulate --seeds=2 --random=1 --check | FileCheck %s
// RUN: fovea-run %s --entry=same --grad --target=sm_90a --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %s --entry=heads --grad --deterministic --target=sm_90a --simulate --seeds=2 --random=2 --check | FileCheck %s
//
// CHECK-COUNT-5: check: result {{[0-4]}}: max error
// CHECK-NOT: FAILED

func.func @same(%q: tensor<1x2x40x16xf64>, %k: tensor<1x2x77x16xf64>, %v: tensor<1x2x77x16xf64>, %bias: tensor<40x77xf64>, %a: tensor<40xi8>, %c: tensor<77xi8>) -> tensor<1x2x40x16xf64> {
  %o = attn.attention %q, %k, %v scale(0.125) score {
  ^bb0(%s: f64, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %bias[%i, %j] : tensor<40x77xf64>
    %t = arith.addf %s, %x : f64
    attn.yield %t : f64
  } mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %c6 = arith.constant 6 : i8
    %x = tensor.extract %a[%i] : tensor<40xi8>
    %y = tensor.extract %c[%j] : tensor<77xi8>
    %p = arith.shrui %x, %c6 : i8
    %r = arith.shrui %y, %c6 : i8
    %e = arith.cmpi eq, %p, %r : i8
    attn.yield %e : i1
  } : tensor<1x2x40x16xf64>, tensor<1x2x77x16xf64>, tensor<1x2x77x16xf64> -> tensor<1x2x40x16xf64>
  return %o : tensor<1x2x40x16xf64>
}

func.func @heads(%q: tensor<1x2x40x16xf64>, %k: tensor<1x2x77x16xf64>, %v: tensor<1x2x77x16xf64>, %bias: tensor<40x77xf64>, %a: tensor<2x40xi8>, %c: tensor<77xi8>) -> tensor<1x2x40x16xf64> {
  %o = attn.attention %q, %k, %v scale(0.125) score {
  ^bb0(%s: f64, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %bias[%i, %j] : tensor<40x77xf64>
    %t = arith.addf %s, %x : f64
    attn.yield %t : f64
  } mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %c6 = arith.constant 6 : i8
    %x = tensor.extract %a[%h, %i] : tensor<2x40xi8>
    %y = tensor.extract %c[%j] : tensor<77xi8>
    %p = arith.shrui %x, %c6 : i8
    %r = arith.shrui %y, %c6 : i8
    %e = arith.cmpi eq, %p, %r : i8
    attn.yield %e : i1
  } : tensor<1x2x40x16xf64>, tensor<1x2x77x16xf64>, tensor<1x2x77x16xf64> -> tensor<1x2x40x16xf64>
  return %o : tensor<1x2x40x16xf64>
}
