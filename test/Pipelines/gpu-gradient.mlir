// RUN: fovea-opt %s --pass-pipeline="builtin.module(attach-gpu-target{target=sm_90a}, fovea-gradient-pipeline, fovea-gpu-pipeline{target=sm_90a level=tile})" \
// RUN:   | FileCheck %s --implicit-check-not=512x512
// RUN: fovea-opt %s --pass-pipeline="builtin.module(attach-gpu-target{target=sm_80}, fovea-gradient-pipeline, fovea-gpu-pipeline{target=sm_80 level=tile})" \
// RUN:   | FileCheck %s --implicit-check-not=512x512
// RUN: fovea-opt %s --pass-pipeline="builtin.module(attach-gpu-target{target=sm_90a}, fovea-gradient-pipeline, fovea-gpu-pipeline{target=sm_90a level=tile deterministic})" \
// RUN:   | FileCheck %s --check-prefix=ORDER --implicit-check-not=512x512
// RUN: fovea-opt %s --pass-pipeline="builtin.module(attach-gpu-target{target=sm_80}, fovea-gradient-pipeline, fovea-gpu-pipeline{target=sm_80 level=tile deterministic})" \
// RUN:   | FileCheck %s --check-prefix=ORDER --implicit-check-not=512x512
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
// TILED: attn.online_backward
// TILED: schedule = #attn.schedule<{{.*}} gradients = <parallel = [batch, head, key]>>
// TILED: scf.forall.in_parallel
// TILED-NEXT: attn.parallel_add_slice
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

// Nor does a tensor when a captured one has a gradient: blocks add to that of a
// table of distances, and the sum in f32 is the result.
// CHECK-LABEL: func.func @relative_gradient
// CHECK: memref.alloc() {{.*}}: memref<2x1023xf32>
// CHECK: tile.launch kernel "attention_backward"
// CHECK: memref.atomic_rmw addf
// CHECK-NOT: attn.
//
// In a fixed order, the sums are 19 integers for each element.
// ORDER-LABEL: func.func @relative_gradient
// ORDER: memref.alloc() {{.*}}: memref<19x2x1023xi64>
// ORDER: tile.launch kernel "attention_backward"
// ORDER: memref.atomic_rmw addi
// ORDER-NOT: attn.
func.func @relative(%q: tensor<1x2x512x64xbf16>, %k: tensor<1x2x512x64xbf16>, %v: tensor<1x2x512x64xbf16>, %table: tensor<2x1023xf32>, %seed: i64) -> tensor<1x2x512x64xbf16> {
  %s = attn.scores %q, %k : tensor<1x2x512x64xbf16>, tensor<1x2x512x64xbf16> -> tensor<1x2x512x512xf32>
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
  %o = attn.values %d, %v : tensor<1x2x512x512xf32>, tensor<1x2x512x64xbf16> -> tensor<1x2x512x64xbf16>
  return %o : tensor<1x2x512x64xbf16>
}

// A bias that batches share is as large as one batch's scores, and so is its
// gradient; in a fixed order nothing else is, and batches add to it in turn.
// CHECK-LABEL: func.func @bias(
// ORDER-LABEL: func.func @bias_gradient
// ORDER-COUNT-1: memref.alloc() {{.*}}: memref<2x640x640xf32>
// ORDER-NOT: memref.alloc() {{.*}}640x640x
// ORDER: scf.for
// ORDER: tile.launch kernel "attention_backward"
// ORDER: memref.atomic_rmw addf
// ORDER-NOT: memref.alloc() {{.*}}640x640x
// ORDER: return
func.func @bias(%q: tensor<3x2x640x64xbf16>, %k: tensor<3x2x640x64xbf16>, %v: tensor<3x2x640x64xbf16>, %bias: tensor<2x640x640xf32>) -> tensor<3x2x640x64xbf16> {
  %s = attn.scores %q, %k : tensor<3x2x640x64xbf16>, tensor<3x2x640x64xbf16> -> tensor<3x2x640x640xf32>
  %a = attn.modify %s {
  ^bb0(%score: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %bias[%h, %i, %j] : tensor<2x640x640xf32>
    %r = arith.addf %score, %x : f32
    attn.yield %r : f32
  } : tensor<3x2x640x640xf32>
  %p = attn.softmax %a : tensor<3x2x640x640xf32> -> tensor<3x2x640x640xf32>
  %o = attn.values %p, %v : tensor<3x2x640x640xf32>, tensor<3x2x640x64xbf16> -> tensor<3x2x640x64xbf16>
  return %o : tensor<3x2x640x64xbf16>
}

// Where all queries fit one tile there is no loop over them, and blocks of keys
// take turns all the same.
// CHECK-LABEL: func.func @one_tile_gradient
// CHECK: tile.launch kernel "attention_backward"
// ORDER-LABEL: func.func @one_tile_gradient
// ORDER: tile.launch kernel "attention_backward"
// ORDER-NOT: scf.for
// ORDER: tile.take_turn
// ORDER-NOT: scf.for
// ORDER: tile.pass_turn
func.func @one_tile(%q: tensor<1x1x64x128xbf16>, %k: tensor<1x1x640x128xbf16>, %v: tensor<1x1x640x128xbf16>) -> tensor<1x1x64x128xbf16> {
  %o = attn.attention %q, %k, %v scale(1.0) : tensor<1x1x64x128xbf16>, tensor<1x1x640x128xbf16>, tensor<1x1x640x128xbf16> -> tensor<1x1x64x128xbf16>
  return %o : tensor<1x1x64x128xbf16>
}
