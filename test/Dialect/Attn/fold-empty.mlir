// RUN: fovea-opt --attn-fold-empty --split-input-file %s | FileCheck %s

// A result without elements is computed from nothing; sizes that only operands
// tell are theirs.
// CHECK-LABEL: func.func @results
// CHECK-SAME: %[[X:.*]]: tensor<?x0xf32>
// CHECK: %[[C0:.*]] = arith.constant 0 : index
// CHECK: %[[N:.*]] = tensor.dim %[[X]], %[[C0]]
// CHECK: %[[P:.*]] = tensor.empty(%[[N]]) : tensor<?x0xf32>
// CHECK: return %[[P]]
func.func @results(%x: tensor<?x0xf32>) -> tensor<?x0xf32> {
  %p = attn.softmax %x : tensor<?x0xf32> -> tensor<?x0xf32>
  return %p : tensor<?x0xf32>
}

// -----

// Sums over nothing.
// CHECK-LABEL: func.func @sums
// CHECK-NOT: attn.
// CHECK: %[[Z0:.*]] = arith.constant 0.000000e+00 : f32
// CHECK: %[[S:.*]] = linalg.fill ins(%[[Z0]] : f32) outs(%{{.*}} : tensor<1x2x3x4xf32>)
// CHECK: %[[Z1:.*]] = arith.constant 0.000000e+00 : f16
// CHECK: %[[O:.*]] = linalg.fill ins(%[[Z1]] : f16) outs(%{{.*}} : tensor<1x2x3x5xf16>)
// CHECK: %[[L:.*]] = arith.constant 0xFF800000 : f32
// CHECK: %[[E:.*]] = linalg.fill ins(%[[L]] : f32) outs(%{{.*}} : tensor<1x2x3xf32>)
// CHECK: %[[Z2:.*]] = arith.constant 0.000000e+00 : f32
// CHECK: %[[G:.*]] = linalg.fill ins(%[[Z2]] : f32) outs(%{{.*}} : tensor<1x1x4x5xf32>)
// CHECK: return %[[S]], %[[O]], %[[E]], %[[G]]
func.func @sums(%q: tensor<1x2x3x0xf32>, %k: tensor<1x1x4x0xf32>,
                %p: tensor<1x2x3x0xf32>, %v: tensor<1x1x0x5xf16>,
                %w: tensor<1x2x0x4xf32>, %x: tensor<1x2x0x5xf32>)
    -> (tensor<1x2x3x4xf32>, tensor<1x2x3x5xf16>, tensor<1x2x3xf32>, tensor<1x1x4x5xf32>) {
  %s = attn.scores %q, %k : tensor<1x2x3x0xf32>, tensor<1x1x4x0xf32> -> tensor<1x2x3x4xf32>
  %o = attn.values %p, %v : tensor<1x2x3x0xf32>, tensor<1x1x0x5xf16> -> tensor<1x2x3x5xf16>
  %e = attn.log_sum_exp %p : tensor<1x2x3x0xf32> -> tensor<1x2x3xf32>
  %g = attn.sum_queries %w, %x : tensor<1x2x0x4xf32>, tensor<1x2x0x5xf32> -> tensor<1x1x4x5xf32>
  return %s, %o, %e, %g : tensor<1x2x3x4xf32>, tensor<1x2x3x5xf16>, tensor<1x2x3xf32>, tensor<1x1x4x5xf32>
}

// -----

// Attention without keys gives zeros and a log-sum-exp of minus infinity.
// CHECK-LABEL: func.func @attention
// CHECK-NOT: attn.
// CHECK: %[[O:.*]] = linalg.fill {{.*}} outs(%{{.*}} : tensor<1x2x3x8xf32>)
// CHECK: %[[E:.*]] = linalg.fill {{.*}} outs(%{{.*}} : tensor<1x2x3xf32>)
// CHECK: return %[[O]], %[[E]]
func.func @attention(%q: tensor<1x2x3x8xf32>, %k: tensor<1x1x0x8xf32>) -> (tensor<1x2x3x8xf32>, tensor<1x2x3xf32>) {
  %o, %l = attn.attention %q, %k, %k scale(1.0) : tensor<1x2x3x8xf32>, tensor<1x1x0x8xf32>, tensor<1x1x0x8xf32> -> tensor<1x2x3x8xf32>, tensor<1x2x3xf32>
  return %o, %l : tensor<1x2x3x8xf32>, tensor<1x2x3xf32>
}

// -----

// Values without features: the output is empty, and the log-sum-exp is not.
// CHECK-LABEL: func.func @features
// CHECK-NOT: attn.attention
// CHECK: attn.scores
// CHECK-NOT: attn.values
// CHECK: %[[E:.*]] = attn.log_sum_exp
// CHECK: return %{{.*}}, %[[E]]
func.func @features(%q: tensor<1x2x3x8xf32>, %k: tensor<1x1x4x8xf32>, %v: tensor<1x1x4x0xf32>) -> (tensor<1x2x3x0xf32>, tensor<1x2x3xf32>) {
  %o, %l = attn.attention %q, %k, %v scale(1.0) : tensor<1x2x3x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x0xf32> -> tensor<1x2x3x0xf32>, tensor<1x2x3xf32>
  return %o, %l : tensor<1x2x3x0xf32>, tensor<1x2x3xf32>
}

// -----

// CHECK-LABEL: func.func @backward
// CHECK-NOT: attn.
// CHECK: return
func.func @backward(%q: tensor<1x2x0x8xf32>, %k: tensor<1x1x4x8xf32>, %d: tensor<1x2x0x8xf32>, %l: tensor<1x2x0xf32>) -> (tensor<1x2x0x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %k, %d scale(1.0) statistics(%l, %l : tensor<1x2x0xf32>, tensor<1x2x0xf32>) : tensor<1x2x0x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x2x0x8xf32> -> tensor<1x2x0x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>
  return %dq, %dk, %dv : tensor<1x2x0x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>
}

// -----

// A loop of linalg without iterations leaves what it would write into.
// CHECK-LABEL: func.func @loop
// CHECK-SAME: %{{.*}}: tensor<0x4xf32>, %[[Y:.*]]: tensor<4xf32>
// CHECK-NEXT: return %[[Y]]
func.func @loop(%x: tensor<0x4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %r = linalg.reduce { arith.addf } ins(%x : tensor<0x4xf32>) outs(%y : tensor<4xf32>) dimensions = [0]
  return %r : tensor<4xf32>
}

// -----

// What has elements, or may have, stays.
// CHECK-LABEL: func.func @others
// CHECK: attn.scores
// CHECK: attn.softmax
// CHECK: attn.attention
// CHECK: linalg.exp
func.func @others(%q: tensor<1x1x?x8xf32>, %k: tensor<1x1x?x8xf32>) -> (tensor<1x1x?x?xf32>, tensor<1x1x?x8xf32>, tensor<1x1x?x8xf32>) {
  %s = attn.scores %q, %k : tensor<1x1x?x8xf32>, tensor<1x1x?x8xf32> -> tensor<1x1x?x?xf32>
  %p = attn.softmax %s : tensor<1x1x?x?xf32> -> tensor<1x1x?x?xf32>
  %o = attn.attention %q, %k, %k scale(1.0) : tensor<1x1x?x8xf32>, tensor<1x1x?x8xf32>, tensor<1x1x?x8xf32> -> tensor<1x1x?x8xf32>
  %e = linalg.exp ins(%q : tensor<1x1x?x8xf32>) outs(%q : tensor<1x1x?x8xf32>) -> tensor<1x1x?x8xf32>
  return %p, %o, %e : tensor<1x1x?x?xf32>, tensor<1x1x?x8xf32>, tensor<1x1x?x8xf32>
}

// -----

// No part has a key.
// CHECK-LABEL: func.func @no_parts
// CHECK-SAME: %[[X:.*]]: tensor<0x1x?x3x8xf32>
// CHECK-NOT: attn.
// CHECK: %[[N:.*]] = tensor.dim %[[X]], %c2
// CHECK: %[[Z:.*]] = arith.constant 0.000000e+00 : bf16
// CHECK: %[[O:.*]] = linalg.fill ins(%[[Z]] : bf16) outs(%{{.*}} : tensor<1x?x3x8xbf16>)
// CHECK: %[[I:.*]] = arith.constant 0xFF800000 : f32
// CHECK: %[[E:.*]] = linalg.fill ins(%[[I]] : f32) outs(%{{.*}} : tensor<1x?x3xf32>)
// CHECK: return %[[O]], %[[E]]
func.func @no_parts(%p: tensor<0x1x?x3x8xf32>, %l: tensor<0x1x?x3xf32>) -> (tensor<1x?x3x8xbf16>, tensor<1x?x3xf32>) {
  %o, %lse = attn.merge %p, %l : tensor<0x1x?x3x8xf32>, tensor<0x1x?x3xf32> -> tensor<1x?x3x8xbf16>, tensor<1x?x3xf32>
  return %o, %lse : tensor<1x?x3x8xbf16>, tensor<1x?x3xf32>
}
