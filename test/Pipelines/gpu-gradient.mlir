// RUN: fovea-opt %s --pass-pipeline="builtin.module(attach-gpu-target{target=sm_90a}, fovea-gradient-pipeline, fovea-gpu-pipeline{target=sm_90a level=tile})" \
// RUN:   | FileCheck %s --implicit-check-not=512x512
// RUN: fovea-opt %s --pass-pipeline="builtin.module(attach-gpu-target{target=sm_80}, fovea-gradient-pipeline, fovea-gpu-pipeline{target=sm_80 level=tile})" \
// RUN:   | FileCheck %s --implicit-check-not=512x512
// RUN: fovea-opt %s --pass-pipeline="builtin.module(attach-gpu-target{target=sm_90a}, fovea-gradient-pipeline, fovea-gpu-pipeline{target=sm_90a level=tiled})" \
// RUN:   | FileCheck %s --check-prefix=TILED

// Both passes of attention are programs of thread blocks. Beside results, what
// is allocated are statistics of rows and the sums of the queries' gradients in
// f32: nothing grows with queries times keys.
// CHECK-LABEL: func.func @attend_gradient
// CHECK: tile.launch kernel "attention"
// CHECK: tile.launch kernel "attention_backward"
// CHECK-NOT: attn.

// TILED-LABEL: func.func @attend_gradient
// TILED: attn.attention_backward {{.*}} statistics(
// TILED: schedule = #attn.schedule<
func.func @attend(%q: tensor<1x2x512x64xbf16>, %k: tensor<1x2x512x64xbf16>, %v: tensor<1x2x512x64xbf16>) -> tensor<1x2x512x64xbf16> {
  %s = attn.scores %q, %k : tensor<1x2x512x64xbf16>, tensor<1x2x512x64xbf16> -> tensor<1x2x512x512xf32>
  %t = attn.scale %s by 0.125 : tensor<1x2x512x512xf32>
  %m = attn.mask %t {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } : tensor<1x2x512x512xf32>
  %p = attn.softmax %m : tensor<1x2x512x512xf32> -> tensor<1x2x512x512xf32>
  %o = attn.values %p, %v : tensor<1x2x512x512xf32>, tensor<1x2x512x64xbf16> -> tensor<1x2x512x64xbf16>
  return %o : tensor<1x2x512x64xbf16>
}
