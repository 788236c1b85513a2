// RUN: fovea-opt %s --pass-pipeline="builtin.module(fovea-gradient-pipeline{recompute=always partition=true}, fovea-host-pipeline{level=tiled})" \
// RUN:   | FileCheck %s --implicit-check-not=512x512

// Neither a dropout nor a captured tensor's gradient makes a tensor of all
// scores.
// CHECK-LABEL: func.func @attend_backward
// CHECK: attn.online_backward {{.*}} dropout(
func.func @attend(%q: tensor<1x2x512x64xf32>, %k: tensor<1x2x512x64xf32>,
                  %v: tensor<1x2x512x64xf32>, %table: tensor<2x1023xf32>,
                  %seed: i64) -> tensor<1x2x512x64xf32> {
  %s = attn.scores %q, %k
      : tensor<1x2x512x64xf32>, tensor<1x2x512x64xf32> -> tensor<1x2x512x512xf32>
  %a = attn.modify %s {
  ^bb0(%score: f32, %b: index, %h: index, %i: index, %j: index):
    %c511 = arith.constant 511 : index
    %distance = arith.subi %j, %i : index
    %at = arith.addi %distance, %c511 : index
    %bias = tensor.extract %table[%h, %at] : tensor<2x1023xf32>
    %r = arith.addf %score, %bias : f32
    attn.yield %r : f32
  } : tensor<1x2x512x512xf32>
  %p = attn.softmax %a : tensor<1x2x512x512xf32> -> tensor<1x2x512x512xf32>
  %d = attn.dropout %p, 0.1 seed(%seed, %seed) : tensor<1x2x512x512xf32>
  %o = attn.values %d, %v
      : tensor<1x2x512x512xf32>, tensor<1x2x512x64xf32> -> tensor<1x2x512x64xf32>
  return %o : tensor<1x2x512x64xf32>
}
