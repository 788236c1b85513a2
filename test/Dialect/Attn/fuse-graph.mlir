// RUN: fovea-opt %s --attn-fuse --split-input-file | FileCheck %s
// RUN: fovea-opt %s --attn-fuse --split-input-file --remarks-filter=attn-fuse \
// RUN:   2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// Attention in the graph ops of attn.

// CHECK-LABEL: @attend
// CHECK-SAME: %[[Q:[^:]*]]: tensor<2x16x?x64xf16>, %[[K:[^:]*]]: tensor<2x4x?x64xf16>, %[[V:[^:]*]]: tensor<2x4x?x64xf16>, %[[SLOPES:[^:]*]]: tensor<16xf32>
// CHECK-NEXT: attn.attention %[[Q]], %[[K]], %[[V]] scale(1.250000e-01) score {
// CHECK-NEXT: ^bb0(%[[S:[^:]*]]: f32, %{{[^:]*}}: index, %[[H:[^:]*]]: index, %[[I:[^:]*]]: index, %[[J:[^:]*]]: index):
// CHECK-NEXT: tensor.extract %[[SLOPES]][%[[H]]]
// CHECK-NEXT: arith.subi %[[J]], %[[I]]
// CHECK: arith.addf %[[S]],
// CHECK: } mask {
// CHECK-NEXT: ^bb0(%{{[^:]*}}: index, %{{[^:]*}}: index, %[[I2:[^:]*]]: index, %[[J2:[^:]*]]: index):
// CHECK-NEXT: %[[KEEP:.*]] = arith.cmpi sge, %[[I2]], %[[J2]]
// CHECK-NEXT: attn.yield %[[KEEP]]
// CHECK-NOT: attn.softmax

// REMARK: remark: [Passed] softmax | Category:attn-fuse | Function=attend | Remark="fused into attn.attention"
func.func @attend(%q: tensor<2x16x?x64xf16>, %k: tensor<2x4x?x64xf16>, %v: tensor<2x4x?x64xf16>, %slopes: tensor<16xf32>) -> tensor<2x16x?x64xf16> {
  %s = attn.scores %q, %k : tensor<2x16x?x64xf16>, tensor<2x4x?x64xf16> -> tensor<2x16x?x?xf32>
  %t = attn.scale %s by 0.125 : tensor<2x16x?x?xf32>
  %a = attn.modify %t {
  ^bb0(%score: f32, %b: index, %h: index, %i: index, %j: index):
    %slope = tensor.extract %slopes[%h] : tensor<16xf32>
    %d = arith.subi %j, %i : index
    %n = arith.index_cast %d : index to i32
    %f = arith.sitofp %n : i32 to f32
    %bias = arith.mulf %slope, %f : f32
    %r = arith.addf %score, %bias : f32
    attn.yield %r : f32
  } : tensor<2x16x?x?xf32>
  %m = attn.mask %a {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } : tensor<2x16x?x?xf32>
  %p = attn.softmax %m : tensor<2x16x?x?xf32> -> tensor<2x16x?x?xf32>
  %o = attn.values %p, %v : tensor<2x16x?x?xf32>, tensor<2x4x?x64xf16> -> tensor<2x16x?x64xf16>
  return %o : tensor<2x16x?x64xf16>
}
// -----

// The number of query heads per KV head may be known at run time only.
// CHECK-LABEL: @heads
// CHECK-SAME: %[[Q:[^:]*]]: tensor<2x?x?x64xf16>, %[[K:[^:]*]]: tensor<2x?x?x64xf16>, %[[V:[^:]*]]: tensor<2x?x?x64xf16>
// CHECK-NEXT: attn.attention %[[Q]], %[[K]], %[[V]] scale(1.000000e+00) :
func.func @heads(%q: tensor<2x?x?x64xf16>, %k: tensor<2x?x?x64xf16>, %v: tensor<2x?x?x64xf16>) -> tensor<2x?x?x64xf16> {
  %s = attn.scores %q, %k : tensor<2x?x?x64xf16>, tensor<2x?x?x64xf16> -> tensor<2x?x?x?xf32>
  %p = attn.softmax %s : tensor<2x?x?x?xf32> -> tensor<2x?x?x?xf32>
  %o = attn.values %p, %v : tensor<2x?x?x?xf32>, tensor<2x?x?x64xf16> -> tensor<2x?x?x64xf16>
  return %o : tensor<2x?x?x64xf16>
}

// -----

// A narrowing in another block is not the attention's; a product outside of a
// loop stays outside.
// CHECK-LABEL: @branch
// CHECK: attn.attention {{.*}} -> tensor<1x2x8x16xf32>
// CHECK: scf.if
// CHECK: arith.truncf
func.func @branch(%c: i1, %q: tensor<1x2x8x16xf32>, %k: tensor<1x2x8x16xf32>, %v: tensor<1x2x8x16xf32>, %d: tensor<1x2x8x16xf16>) -> tensor<1x2x8x16xf16> {
  %s = attn.scores %q, %k : tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x8xf32>
  %p = attn.softmax %s : tensor<1x2x8x8xf32> -> tensor<1x2x8x8xf32>
  %o = attn.values %p, %v : tensor<1x2x8x8xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x16xf32>
  %r = scf.if %c -> tensor<1x2x8x16xf16> {
    %t = arith.truncf %o : tensor<1x2x8x16xf32> to tensor<1x2x8x16xf16>
    scf.yield %t : tensor<1x2x8x16xf16>
  } else {
    scf.yield %d : tensor<1x2x8x16xf16>
  }
  return %r : tensor<1x2x8x16xf16>
}

// CHECK-LABEL: @loop
// CHECK: attn.scores
// CHECK: scf.for
// CHECK: attn.attention
// CHECK: attn.softmax
func.func @loop(%n: index, %q: tensor<1x2x8x16xf32>, %k: tensor<1x2x8x16xf32>, %v: tensor<1x2x8x16xf32>) -> tensor<1x2x8x16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %s0 = attn.scores %q, %k : tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x8xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %q) -> tensor<1x2x8x16xf32> {
    %s = attn.scores %x, %k : tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x8xf32>
    %p = attn.softmax %s : tensor<1x2x8x8xf32> -> tensor<1x2x8x8xf32>
    %o = attn.values %p, %v : tensor<1x2x8x8xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x16xf32>
    %p0 = attn.softmax %s0 : tensor<1x2x8x8xf32> -> tensor<1x2x8x8xf32>
    %o0 = attn.values %p0, %v : tensor<1x2x8x8xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x16xf32>
    %y = arith.addf %o, %o0 : tensor<1x2x8x16xf32>
    scf.yield %y : tensor<1x2x8x16xf32>
  }
  return %r : tensor<1x2x8x16xf32>
}
