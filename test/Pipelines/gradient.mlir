// RUN: fovea-opt %s --pass-pipeline="builtin.module(fovea-gradient-pipeline{recompute=always partition=true}, fovea-host-pipeline{level=tiled})" \
// RUN:   | FileCheck %s --implicit-check-not=512x512
// RUN: fovea-opt %s --pass-pipeline="builtin.module(fovea-gradient-pipeline{textbook=true})" \
// RUN:   | FileCheck %s --check-prefix=TEXTBOOK
// RUN: fovea-opt %s --pass-pipeline="builtin.module(fovea-gradient-pipeline{recompute=never})" \
// RUN:   | FileCheck %s --check-prefix=NEVER

// From a graph to tiles of both passes, in which no tensor grows with queries
// times keys.
// CHECK-LABEL: func.func @attend_forward
// CHECK: attn.finalize
// CHECK-LABEL: func.func @attend_backward
// CHECK: scf.forall
// CHECK: attn.online_backward

// TEXTBOOK-LABEL: func.func @attend_gradient
// TEXTBOOK: attn.softmax_backward
// NEVER-LABEL: func.func @attend_gradient
// NEVER: attn.attention_backward {{.*}} probabilities(
func.func @attend(%q: tensor<1x2x512x64xf32>, %k: tensor<1x2x512x64xf32>,
                  %v: tensor<1x2x512x64xf32>) -> tensor<1x2x512x64xf32> {
  %s = call @scores(%q, %k)
      : (tensor<1x2x512x64xf32>, tensor<1x2x512x64xf32>) -> tensor<1x2x512x512xf32>
  %m = attn.mask %s {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } : tensor<1x2x512x512xf32>
  %p = attn.softmax %m : tensor<1x2x512x512xf32> -> tensor<1x2x512x512xf32>
  %o = attn.values %p, %v
      : tensor<1x2x512x512xf32>, tensor<1x2x512x64xf32> -> tensor<1x2x512x64xf32>
  return %o : tensor<1x2x512x64xf32>
}

func.func private @scores(%q: tensor<1x2x512x64xf32>, %k: tensor<1x2x512x64xf32>)
    -> tensor<1x2x512x512xf32> {
  %s = attn.scores %q, %k
      : tensor<1x2x512x64xf32>, tensor<1x2x512x64xf32> -> tensor<1x2x512x512xf32>
  %t = attn.scale %s by 0.125 : tensor<1x2x512x512xf32>
  return %t : tensor<1x2x512x512xf32>
}
