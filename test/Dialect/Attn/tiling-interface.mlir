// RUN: fovea-opt %s --transform-interpreter --canonicalize --cse --split-input-file | FileCheck %s

// The ops tile by any driver of MLIR's tiling interface. Two query heads read
// one KV head: tiles of four heads have two.

// CHECK-LABEL: func @heads_and_keys
// CHECK:       scf.for %[[H:.*]] = %c0 to %c8 step %c4{{ }}
// CHECK:         scf.for %[[J:.*]] = %c0 to %c32 step %c16{{ }}
// CHECK:           %[[KV:.*]] = affine.apply #{{.*}}(%[[H]])
// CHECK:           %[[QT:.*]] = tensor.extract_slice %{{.*}}[0, %[[H]], 0, 0] [2, 4, 16, 8]
// CHECK:           %[[KT:.*]] = tensor.extract_slice %{{.*}}[0, %[[KV]], %[[J]], 0] [2, 2, 16, 8]
// CHECK:           attn.online_attention {{.*}} ins(%[[QT]], %[[KT]], %[[KT]] :
// CHECK-SAME:        at[%c0, %[[H]], %c0, %[[J]]] whole[%c8, %c16] ->
module attributes {transform.with_named_sequence} {
  func.func @heads_and_keys(%q: tensor<2x8x16x8xf32>, %k: tensor<2x4x32x8xf32>, %acc: tensor<2x8x16x8xf32>, %max: tensor<2x8x16xf32>, %sum: tensor<2x8x16xf32>, %seed: i64) -> tensor<2x8x16x8xf32> {
    %r:3 = attn.online_attention scale(0.5) update(all) dropout(0.5, %seed, %seed)
      ins(%q, %k, %k : tensor<2x8x16x8xf32>, tensor<2x4x32x8xf32>, tensor<2x4x32x8xf32>)
      outs(%acc, %max, %sum : tensor<2x8x16x8xf32>, tensor<2x8x16xf32>, tensor<2x8x16xf32>)
      -> tensor<2x8x16x8xf32>, tensor<2x8x16xf32>, tensor<2x8x16xf32>
    return %r#0 : tensor<2x8x16x8xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["attn.online_attention"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loops:2 = transform.structured.tile_using_for %op tile_sizes [0, 4, 0, 16] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Tiled twice: coordinates add up, and the whole stays the whole.

// CHECK-LABEL: func @twice
// CHECK:       scf.for %[[I:.*]] = %c0 to %c16 step %c8{{ }}
// CHECK:         scf.for %[[L:.*]] = %c0 to %c8 step %c4{{ }}
// CHECK:           %[[ROW:.*]] = affine.apply #{{.*}}(%[[I]], %[[L]])
// CHECK:           attn.online_attention
// CHECK-SAME:        at[%c0, %c0, %[[ROW]], %c0] whole[%c8, %c16] ->
module attributes {transform.with_named_sequence} {
  func.func @twice(%q: tensor<2x8x16x8xf32>, %acc: tensor<2x8x16x8xf32>, %max: tensor<2x8x16xf32>, %sum: tensor<2x8x16xf32>, %seed: i64) -> tensor<2x8x16x8xf32> {
    %r:3 = attn.online_attention scale(0.5) update(all) dropout(0.5, %seed, %seed)
      ins(%q, %q, %q : tensor<2x8x16x8xf32>, tensor<2x8x16x8xf32>, tensor<2x8x16x8xf32>)
      outs(%acc, %max, %sum : tensor<2x8x16x8xf32>, tensor<2x8x16xf32>, tensor<2x8x16xf32>)
      -> tensor<2x8x16x8xf32>, tensor<2x8x16xf32>, tensor<2x8x16xf32>
    return %r#0 : tensor<2x8x16x8xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["attn.online_attention"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_for %op tile_sizes [0, 0, 8] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %again, %inner = transform.structured.tile_using_for %tiled tile_sizes [0, 0, 4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Ops on rows, in all dimensions but the last.

// CHECK-LABEL: func @norm
// CHECK:       scf.for %[[I:.*]] = %c0 to %c12 step %c4{{ }}
// CHECK:         %[[X:.*]] = tensor.extract_slice %{{.*}}[0, %[[I]], 0] [2, 4, 8]
// CHECK:         %[[Y:.*]] = attn.layer_norm %[[X]] weight(%{{.*}} : tensor<8xf32>) epsilon(1.000000e-05) : tensor<2x4x8xf32>
// CHECK:         tensor.insert_slice %[[Y]] into %{{.*}}[0, %[[I]], 0] [2, 4, 8]
module attributes {transform.with_named_sequence} {
  func.func @norm(%x: tensor<2x12x8xf32>, %w: tensor<8xf32>) -> tensor<2x12x8xf32> {
    %y = attn.layer_norm %x weight(%w : tensor<8xf32>) epsilon(1.0e-5) : tensor<2x12x8xf32>
    return %y : tensor<2x12x8xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["attn.layer_norm"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_for %op tile_sizes [0, 4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}
