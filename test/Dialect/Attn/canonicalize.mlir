// RUN: fovea-opt %s --canonicalize --split-input-file | FileCheck %s

// CHECK-LABEL: func @scale
// CHECK-NEXT: %[[T:.*]] = attn.scale %arg0 by 6.000000e+00
// CHECK-NEXT: return %[[T]]
func.func @scale(%s: tensor<1x1x8x8xf32>) -> tensor<1x1x8x8xf32> {
  %a = attn.scale %s by 2.0 : tensor<1x1x8x8xf32>
  %b = attn.scale %a by 1.0 : tensor<1x1x8x8xf32>
  %c = attn.scale %b by 3.0 : tensor<1x1x8x8xf32>
  return %c : tensor<1x1x8x8xf32>
}

// -----

// The product would overflow: two steps stay.
// CHECK-LABEL: func @scale_overflow
// CHECK-COUNT-2: attn.scale
func.func @scale_overflow(%s: tensor<1x1x8x8xf64>) -> tensor<1x1x8x8xf64> {
  %a = attn.scale %s by 1.0e200 : tensor<1x1x8x8xf64>
  %b = attn.scale %a by 1.0e200 : tensor<1x1x8x8xf64>
  return %b : tensor<1x1x8x8xf64>
}

// -----

// A 16-bit result is rounded between the steps.
// CHECK-LABEL: func @scale_rounded
// CHECK-COUNT-2: attn.scale
func.func @scale_rounded(%s: tensor<1x1x8x8xf16>) -> tensor<1x1x8x8xf16> {
  %a = attn.scale %s by 0.3 : tensor<1x1x8x8xf16>
  %b = attn.scale %a by 0.7 : tensor<1x1x8x8xf16>
  return %b : tensor<1x1x8x8xf16>
}

// -----

// CHECK-LABEL: func @nothing_to_do
// CHECK-NEXT: return %arg0
func.func @nothing_to_do(%s: tensor<1x1x8x8xf32>, %seed: i64) -> tensor<1x1x8x8xf32> {
  %a = attn.modify %s {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    attn.yield %x : f32
  } : tensor<1x1x8x8xf32>
  %true = arith.constant true
  %m = attn.mask %a {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    attn.yield %true : i1
  } : tensor<1x1x8x8xf32>
  %d = attn.dropout %m, 0.0 seed(%seed, %seed) : tensor<1x1x8x8xf32>
  return %d : tensor<1x1x8x8xf32>
}

// -----

// CHECK-LABEL: func @something_to_do
// CHECK: attn.modify
// CHECK: attn.mask
// CHECK: attn.dropout
func.func @something_to_do(%s: tensor<1x1x8x8xf32>, %seed: i64) -> tensor<1x1x8x8xf32> {
  %a = attn.modify %s {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %y = math.tanh %x : f32
    attn.yield %y : f32
  } : tensor<1x1x8x8xf32>
  %m = attn.mask %a {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi ne, %i, %j : index
    attn.yield %keep : i1
  } : tensor<1x1x8x8xf32>
  %d = attn.dropout %m, 0.5 seed(%seed, %seed) : tensor<1x1x8x8xf32>
  return %d : tensor<1x1x8x8xf32>
}

// -----

// CHECK-LABEL: func @attention
// CHECK-NEXT: %[[O:.*]] = attn.attention %arg0, %arg0, %arg0 scale(1.000000e+00) : tensor<1x2x8x64xf32>, tensor<1x2x8x64xf32>, tensor<1x2x8x64xf32> -> tensor<1x2x8x64xf32>
// CHECK-NEXT: return %[[O]]
func.func @attention(%q: tensor<1x2x8x64xf32>, %seed: i64) -> tensor<1x2x8x64xf32> {
  %true = arith.constant true
  %o, %l = attn.attention %q, %q, %q scale(1.0) dropout(0.0, %seed, %seed)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      attn.yield %s : f32
    }
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      attn.yield %true : i1
    } : tensor<1x2x8x64xf32>, tensor<1x2x8x64xf32>, tensor<1x2x8x64xf32> -> tensor<1x2x8x64xf32>, tensor<1x2x8xf32>
  return %o : tensor<1x2x8x64xf32>
}

// -----

// CHECK-LABEL: func @attention_lse
// CHECK: %{{.*}}, %{{.*}} = attn.attention
func.func @attention_lse(%q: tensor<1x2x8x64xf32>) -> tensor<1x2x8xf32> {
  %o, %l = attn.attention %q, %q, %q scale(1.0) : tensor<1x2x8x64xf32>, tensor<1x2x8x64xf32>, tensor<1x2x8x64xf32> -> tensor<1x2x8x64xf32>, tensor<1x2x8xf32>
  return %l : tensor<1x2x8xf32>
}

// -----

// A value that a pass does not update comes back as it went in.
// CHECK-LABEL: func @online_update
// CHECK-SAME: (%[[Q:.*]]: tensor<1x1x8x64xf32>, %[[M:.*]]: tensor<1x1x8xf32>)
// CHECK: %[[R:.*]]:3 = attn.online_attention
// CHECK: return %[[Q]], %[[R]]#1, %[[M]]
func.func @online_update(%q: tensor<1x1x8x64xf32>, %m: tensor<1x1x8xf32>) -> (tensor<1x1x8x64xf32>, tensor<1x1x8xf32>, tensor<1x1x8xf32>) {
  %r:3 = attn.online_attention scale(1.0) update(max)
    ins(%q, %q, %q : tensor<1x1x8x64xf32>, tensor<1x1x8x64xf32>, tensor<1x1x8x64xf32>)
    outs(%q, %m, %m : tensor<1x1x8x64xf32>, tensor<1x1x8xf32>, tensor<1x1x8xf32>)
    -> tensor<1x1x8x64xf32>, tensor<1x1x8xf32>, tensor<1x1x8xf32>
  return %r#0, %r#1, %r#2 : tensor<1x1x8x64xf32>, tensor<1x1x8xf32>, tensor<1x1x8xf32>
}

// -----

// CHECK-LABEL: func @online_unmasked
// CHECK-NOT: ends
// CHECK-NOT: mask
// CHECK: return
func.func @online_unmasked(%q: memref<1x1x8x64xf32>, %m: memref<1x1x8xf32>, %i: index) {
  attn.online_attention scale(1.0) update(all)
    ins(%q, %q, %q : memref<1x1x8x64xf32>, memref<1x1x8x64xf32>, memref<1x1x8x64xf32>)
    outs(%q, %m, %m : memref<1x1x8x64xf32>, memref<1x1x8xf32>, memref<1x1x8xf32>) ends [%i, %i]
    mask {
    ^bb0(%b: index, %h: index, %r: index, %j: index):
      %keep = arith.constant true
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 128x64, order = linear, warps = 8, stages = 2>}
  return
}

// CHECK-LABEL: func @online_never_partial
// CHECK-NOT: mask
// CHECK: attn.online_attention
// CHECK-NOT: partial
// CHECK-LABEL: func @online_always_partial
// CHECK: attn.online_attention
// CHECK-NOT: partial
// CHECK-SAME: mask
func.func @online_never_partial(%q: memref<1x1x8x64xf32>, %m: memref<1x1x8xf32>) {
  %p = arith.constant false
  attn.online_attention scale(1.0) update(all)
    ins(%q, %q, %q : memref<1x1x8x64xf32>, memref<1x1x8x64xf32>, memref<1x1x8x64xf32>)
    outs(%q, %m, %m : memref<1x1x8x64xf32>, memref<1x1x8xf32>, memref<1x1x8xf32>) partial(%p)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %keep = arith.cmpi sge, %i, %j : index
      attn.yield %keep : i1
    }
  return
}
func.func @online_always_partial(%q: memref<1x1x8x64xf32>, %m: memref<1x1x8xf32>) {
  %p = arith.constant true
  attn.online_attention scale(1.0) update(all)
    ins(%q, %q, %q : memref<1x1x8x64xf32>, memref<1x1x8x64xf32>, memref<1x1x8x64xf32>)
    outs(%q, %m, %m : memref<1x1x8x64xf32>, memref<1x1x8xf32>, memref<1x1x8xf32>) partial(%p)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %keep = arith.cmpi sge, %i, %j : index
      attn.yield %keep : i1
    }
  return
}

// -----

// Casts of operands and destinations are read through, regions present or not.
// CHECK-LABEL: @fold_casts
// CHECK-SAME: %[[Q:[^:]*]]: tensor<1x1x8x64xf32>, %[[K:[^:]*]]: tensor<1x1x7x64xf32>
// CHECK: %[[R:.*]]:3 = attn.online_attention
// CHECK-SAME: ins(%[[Q]], %[[K]], %[[K]] : tensor<1x1x8x64xf32>, tensor<1x1x7x64xf32>, tensor<1x1x7x64xf32>)
// CHECK: } -> tensor<1x1x8x64xf32>, tensor<1x1x8xf32>, tensor<1x1x8xf32>
// CHECK: tensor.cast %[[R]]#0 : tensor<1x1x8x64xf32> to tensor<1x1x?x64xf32>
func.func @fold_casts(%q: tensor<1x1x8x64xf32>, %k: tensor<1x1x7x64xf32>, %acc: tensor<1x1x8x64xf32>, %max: tensor<1x1x8xf32>, %sum: tensor<1x1x8xf32>) -> tensor<1x1x?x64xf32> {
  %kc = tensor.cast %k : tensor<1x1x7x64xf32> to tensor<1x1x?x64xf32>
  %ac = tensor.cast %acc : tensor<1x1x8x64xf32> to tensor<1x1x?x64xf32>
  %r:3 = attn.online_attention scale(0.125) update(all)
      ins(%q, %kc, %kc : tensor<1x1x8x64xf32>, tensor<1x1x?x64xf32>, tensor<1x1x?x64xf32>)
      outs(%ac, %max, %sum : tensor<1x1x?x64xf32>, tensor<1x1x8xf32>, tensor<1x1x8xf32>)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %keep = arith.cmpi sge, %i, %j : index
        attn.yield %keep : i1
      }
      -> tensor<1x1x?x64xf32>, tensor<1x1x8xf32>, tensor<1x1x8xf32>
  return %r#0 : tensor<1x1x?x64xf32>
}

// -----

// CHECK-LABEL: func @no_keys
// CHECK-SAME:    %[[Q:[^:]*]]: tensor<1x4x?x16xf16>
// CHECK-DAG:   %[[INFINITY:.*]] = arith.constant 0xFF800000 : f32
// CHECK-DAG:   %[[ZERO:.*]] = arith.constant 0.000000e+00 : f16
// CHECK:       %[[N:.*]] = tensor.dim %[[Q]], %c2{{ }}
// CHECK:       %[[O:.*]] = tensor.splat %[[ZERO]][%[[N]]] : tensor<1x4x?x16xf16>
// CHECK:       %[[LSE:.*]] = tensor.splat %[[INFINITY]][%{{.*}}] : tensor<1x4x?xf32>
// CHECK:       return %[[O]], %[[LSE]]
func.func @no_keys(%q: tensor<1x4x?x16xf16>, %k: tensor<1x2x0x16xf16>)
    -> (tensor<1x4x?x16xf16>, tensor<1x4x?xf32>) {
  %o, %lse = attn.attention %q, %k, %k scale(1.0)
      : tensor<1x4x?x16xf16>, tensor<1x2x0x16xf16>, tensor<1x2x0x16xf16>
        -> tensor<1x4x?x16xf16>, tensor<1x4x?xf32>
  return %o, %lse : tensor<1x4x?x16xf16>, tensor<1x4x?xf32>
}

// -----

// CHECK-LABEL: func @no_queries
// CHECK: attn.attention
func.func @no_queries(%q: tensor<1x4x0x16xf16>, %k: tensor<1x2x?x16xf16>) -> tensor<1x4x0x16xf16> {
  %o = attn.attention %q, %k, %k scale(1.0)
      : tensor<1x4x0x16xf16>, tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16>
        -> tensor<1x4x0x16xf16>
  return %o : tensor<1x4x0x16xf16>
}

// -----

// The residual's type is its own, so that the operands stay where they are.
// CHECK-LABEL: func @residual_of_input
// CHECK: attn.residual_add %cst, %{{.*}} : tensor<1x8xbf16>, tensor<1x8xf32>
func.func @residual_of_input(%r: tensor<1x8xf32>) -> tensor<1x8xbf16> {
  %x = arith.constant dense<1.0> : tensor<1x8xbf16>
  %y = attn.residual_add %x, %r : tensor<1x8xbf16>, tensor<1x8xf32>
  return %y : tensor<1x8xbf16>
}

// -----

// A log-sum-exp of all parts that nothing reads is not computed.
// CHECK-LABEL: func @merge_unused_lse
// CHECK-NEXT: %[[O:.*]] = attn.merge %arg0, %arg1 : tensor<3x1x2x8x16xf32>, tensor<3x1x2x8xf32> -> tensor<1x2x8x16xf16>{{$}}
// CHECK-NEXT: return %[[O]]
func.func @merge_unused_lse(%p: tensor<3x1x2x8x16xf32>, %l: tensor<3x1x2x8xf32>) -> tensor<1x2x8x16xf16> {
  %o, %lse = attn.merge %p, %l : tensor<3x1x2x8x16xf32>, tensor<3x1x2x8xf32> -> tensor<1x2x8x16xf16>, tensor<1x2x8xf32>
  return %o : tensor<1x2x8x16xf16>
}

// -----

// CHECK-LABEL: func @merge_used_lse
// CHECK-NEXT: attn.merge {{.*}} -> tensor<1x2x8x16xf16>, tensor<1x2x8xf32>
func.func @merge_used_lse(%p: tensor<3x1x2x8x16xf32>, %l: tensor<3x1x2x8xf32>) -> tensor<1x2x8xf32> {
  %o, %lse = attn.merge %p, %l : tensor<3x1x2x8x16xf32>, tensor<3x1x2x8xf32> -> tensor<1x2x8x16xf16>, tensor<1x2x8xf32>
  return %lse : tensor<1x2x8xf32>
}
