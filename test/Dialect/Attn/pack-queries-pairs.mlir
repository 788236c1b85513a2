// RUN: fovea-opt %s --attn-pack-queries --split-input-file | FileCheck %s

// AMX tiles multiply bf16: the queries are packed in pairs of features, without
// the scale. 37 queries take 48 lanes.

// CHECK-LABEL: func @pairs
// CHECK: %[[P:.*]] = attn.pack_query by 1.000000e+00 ins({{.*}} : tensor<1x1x37x64xbf16>) outs({{.*}} : tensor<1x1x32x96xbf16>)
// CHECK: attn.online_attention scale(1.250000e-01) {{.*}} ins(%[[P]], {{.*}} outs({{.*}} : tensor<1x1x48x16xf32>, tensor<1x1x48xf32>, tensor<1x1x48xf32>) packed(
#amx = #machine.target<"host", arch = "amx", cores = 2, vector_bytes = 64, vector_registers = 32, fast_memory = 49152, near_memory = 2097152, bandwidth = 12000, peak = 300, matrix_peak = 4700>
module attributes {machine.target = #amx} {
func.func @pairs(%q: tensor<1x1x37x64xbf16>, %k: tensor<1x1x?x64xbf16>, %v: tensor<1x1x?x16xbf16>,
                 %a: tensor<1x1x37x16xf32>, %m: tensor<1x1x37xf32>) -> tensor<1x1x37x16xf32> {
  %r:3 = attn.online_attention scale(0.125) update(all)
      ins(%q, %k, %v : tensor<1x1x37x64xbf16>, tensor<1x1x?x64xbf16>, tensor<1x1x?x16xbf16>)
      outs(%a, %m, %m : tensor<1x1x37x16xf32>, tensor<1x1x37xf32>, tensor<1x1x37xf32>)
      -> tensor<1x1x37x16xf32>, tensor<1x1x37xf32>, tensor<1x1x37xf32>
  return %r#0 : tensor<1x1x37x16xf32>
}

// f16 is packed in two parts.

// CHECK-LABEL: func @half
// CHECK: attn.pack_query by 1.000000e+00 ins({{.*}} : tensor<1x1x37x64xf16>) outs({{.*}} : tensor<1x1x64x96xbf16>)
func.func @half(%q: tensor<1x1x37x64xf16>, %k: tensor<1x1x?x64xf16>, %v: tensor<1x1x?x16xf16>,
                %a: tensor<1x1x37x16xf32>, %m: tensor<1x1x37xf32>) -> tensor<1x1x37x16xf32> {
  %r:3 = attn.online_attention scale(0.125) update(all)
      ins(%q, %k, %v : tensor<1x1x37x64xf16>, tensor<1x1x?x64xf16>, tensor<1x1x?x16xf16>)
      outs(%a, %m, %m : tensor<1x1x37x16xf32>, tensor<1x1x37xf32>, tensor<1x1x37xf32>)
      -> tensor<1x1x37x16xf32>, tensor<1x1x37xf32>, tensor<1x1x37xf32>
  return %r#0 : tensor<1x1x37x16xf32>
}

// Several types, or features that are no whole tiles.

// CHECK-LABEL: func @mixed
// CHECK: attn.pack_query by 0.1803368801{{.*}} outs({{.*}} : tensor<1x1x64x48xf32>)
func.func @mixed(%q: tensor<1x1x37x64xf16>, %k: tensor<1x1x?x64xf16>, %v: tensor<1x1x?x16xbf16>,
                 %a: tensor<1x1x37x16xf32>, %m: tensor<1x1x37xf32>) -> tensor<1x1x37x16xf32> {
  %r:3 = attn.online_attention scale(0.125) update(all)
      ins(%q, %k, %v : tensor<1x1x37x64xf16>, tensor<1x1x?x64xf16>, tensor<1x1x?x16xbf16>)
      outs(%a, %m, %m : tensor<1x1x37x16xf32>, tensor<1x1x37xf32>, tensor<1x1x37xf32>)
      -> tensor<1x1x37x16xf32>, tensor<1x1x37xf32>, tensor<1x1x37xf32>
  return %r#0 : tensor<1x1x37x16xf32>
}

// CHECK-LABEL: func @features
// CHECK: attn.pack_query by 0.1803368801{{.*}} outs({{.*}} : tensor<1x1x48x48xf32>)
func.func @features(%q: tensor<1x1x37x48xbf16>, %k: tensor<1x1x?x48xbf16>, %v: tensor<1x1x?x16xbf16>,
                    %a: tensor<1x1x37x16xf32>, %m: tensor<1x1x37xf32>) -> tensor<1x1x37x16xf32> {
  %r:3 = attn.online_attention scale(0.125) update(all)
      ins(%q, %k, %v : tensor<1x1x37x48xbf16>, tensor<1x1x?x48xbf16>, tensor<1x1x?x16xbf16>)
      outs(%a, %m, %m : tensor<1x1x37x16xf32>, tensor<1x1x37xf32>, tensor<1x1x37xf32>)
      -> tensor<1x1x37x16xf32>, tensor<1x1x37xf32>, tensor<1x1x37xf32>
  return %r#0 : tensor<1x1x37x16xf32>
}

// CHECK-LABEL: func @value_features
// CHECK: attn.pack_query by 0.1803368801{{.*}} outs({{.*}} : tensor<1x1x64x48xf32>)
func.func @value_features(%q: tensor<1x1x37x64xbf16>, %k: tensor<1x1x?x64xbf16>, %v: tensor<1x1x?x8xbf16>,
                          %a: tensor<1x1x37x8xf32>, %m: tensor<1x1x37xf32>) -> tensor<1x1x37x8xf32> {
  %r:3 = attn.online_attention scale(0.125) update(all)
      ins(%q, %k, %v : tensor<1x1x37x64xbf16>, tensor<1x1x?x64xbf16>, tensor<1x1x?x8xbf16>)
      outs(%a, %m, %m : tensor<1x1x37x8xf32>, tensor<1x1x37xf32>, tensor<1x1x37xf32>)
      -> tensor<1x1x37x8xf32>, tensor<1x1x37xf32>, tensor<1x1x37xf32>
  return %r#0 : tensor<1x1x37x8xf32>
}

// Queries and gradients of the backward pass, 100 of them in two groups of 64;
// both stay in bf16.

// CHECK-LABEL: func @backward(
// CHECK-SAME: %[[Q:[a-z0-9]*]]: tensor<1x1x100x64xbf16>, %[[DO:[a-z0-9]*]]: tensor<1x1x100x32xbf16>
// CHECK-NOT: arith.extf
// CHECK: attn.pack_query by 1.000000e+00 ins({{.*}} : tensor<1x1x?x64xbf16>) outs({{.*}} : tensor<1x1x32x128xbf16>)
// CHECK: attn.pack_query by 1.000000e+00 ins({{.*}} : tensor<1x1x?x32xbf16>) outs({{.*}} : tensor<1x1x16x128xbf16>)
// CHECK: attn.online_backward {{.*}} packed({{.*}} : tensor<1x2x32x128xbf16>, tensor<1x2x16x128xbf16>) ins(%[[Q]], %[[DO]],
func.func @backward(%q: tensor<1x1x100x64xbf16>, %do: tensor<1x1x100x32xbf16>, %k: tensor<1x1x70x64xbf16>, %v: tensor<1x1x70x32xbf16>,
    %l: tensor<1x1x100xf32>, %dq: tensor<1x1x100x64xf32>, %dk: tensor<1x1x70x64xf32>, %dv: tensor<1x1x70x32xf32>) -> tensor<1x1x100x64xf32> {
  %r:3 = attn.online_backward scale(0.125)
      ins(%q, %do, %k, %v, %l, %l : tensor<1x1x100x64xbf16>, tensor<1x1x100x32xbf16>, tensor<1x1x70x64xbf16>, tensor<1x1x70x32xbf16>, tensor<1x1x100xf32>, tensor<1x1x100xf32>)
      outs(%dq, %dk, %dv : tensor<1x1x100x64xf32>, tensor<1x1x70x64xf32>, tensor<1x1x70x32xf32>)
      -> tensor<1x1x100x64xf32>, tensor<1x1x70x64xf32>, tensor<1x1x70x32xf32>
  return %r#0 : tensor<1x1x100x64xf32>
}

// Those in f16 are packed in two parts.

// CHECK-LABEL: func @backward_half
// CHECK-SAME: %[[Q:[a-z0-9]*]]: tensor<1x1x100x64xf16>, %[[DO:[a-z0-9]*]]: tensor<1x1x100x32xf16>
// CHECK-NOT: arith.extf
// CHECK: attn.pack_query by 1.000000e+00 ins({{.*}} : tensor<1x1x?x64xf16>) outs({{.*}} : tensor<1x1x64x128xbf16>)
// CHECK: attn.pack_query by 1.000000e+00 ins({{.*}} : tensor<1x1x?x32xf16>) outs({{.*}} : tensor<1x1x32x128xbf16>)
// CHECK: attn.online_backward {{.*}} packed({{.*}} : tensor<1x2x64x128xbf16>, tensor<1x2x32x128xbf16>) ins(%[[Q]], %[[DO]],
func.func @backward_half(%q: tensor<1x1x100x64xf16>, %do: tensor<1x1x100x32xf16>, %k: tensor<1x1x70x64xf16>, %v: tensor<1x1x70x32xf16>,
    %l: tensor<1x1x100xf32>, %dq: tensor<1x1x100x64xf32>, %dk: tensor<1x1x70x64xf32>, %dv: tensor<1x1x70x32xf32>) -> tensor<1x1x100x64xf32> {
  %r:3 = attn.online_backward scale(0.125)
      ins(%q, %do, %k, %v, %l, %l : tensor<1x1x100x64xf16>, tensor<1x1x100x32xf16>, tensor<1x1x70x64xf16>, tensor<1x1x70x32xf16>, tensor<1x1x100xf32>, tensor<1x1x100xf32>)
      outs(%dq, %dk, %dv : tensor<1x1x100x64xf32>, tensor<1x1x70x64xf32>, tensor<1x1x70x32xf32>)
      -> tensor<1x1x100x64xf32>, tensor<1x1x70x64xf32>, tensor<1x1x70x32xf32>
  return %r#0 : tensor<1x1x100x64xf32>
}

// Gradients in another type than the queries' stay in vectors.

// CHECK-LABEL: func @backward_mixed
// CHECK: attn.online_backward {{.*}} packed({{.*}} : tensor<1x7x64x16xf32>, tensor<1x7x32x16xf32>)
func.func @backward_mixed(%q: tensor<1x1x100x64xf16>, %do: tensor<1x1x100x32xbf16>, %k: tensor<1x1x70x64xf16>, %v: tensor<1x1x70x32xf16>,
    %l: tensor<1x1x100xf32>, %dq: tensor<1x1x100x64xf32>, %dk: tensor<1x1x70x64xf32>, %dv: tensor<1x1x70x32xf32>) -> tensor<1x1x100x64xf32> {
  %r:3 = attn.online_backward scale(0.125)
      ins(%q, %do, %k, %v, %l, %l : tensor<1x1x100x64xf16>, tensor<1x1x100x32xbf16>, tensor<1x1x70x64xf16>, tensor<1x1x70x32xf16>, tensor<1x1x100xf32>, tensor<1x1x100xf32>)
      outs(%dq, %dk, %dv : tensor<1x1x100x64xf32>, tensor<1x1x70x64xf32>, tensor<1x1x70x32xf32>)
      -> tensor<1x1x100x64xf32>, tensor<1x1x70x64xf32>, tensor<1x1x70x32xf32>
  return %r#0 : tensor<1x1x100x64xf32>
}

// Values of 48 features are no whole tiles of the product with gradients.

// CHECK-LABEL: func @backward_values
// CHECK: attn.online_backward {{.*}} packed({{.*}} : tensor<1x7x64x16xf32>, tensor<1x7x48x16xf32>)
func.func @backward_values(%q: tensor<1x1x100x64xbf16>, %do: tensor<1x1x100x48xbf16>, %k: tensor<1x1x70x64xbf16>, %v: tensor<1x1x70x48xbf16>,
    %l: tensor<1x1x100xf32>, %dq: tensor<1x1x100x64xf32>, %dk: tensor<1x1x70x64xf32>, %dv: tensor<1x1x70x48xf32>) -> tensor<1x1x100x64xf32> {
  %r:3 = attn.online_backward scale(0.125)
      ins(%q, %do, %k, %v, %l, %l : tensor<1x1x100x64xbf16>, tensor<1x1x100x48xbf16>, tensor<1x1x70x64xbf16>, tensor<1x1x70x48xbf16>, tensor<1x1x100xf32>, tensor<1x1x100xf32>)
      outs(%dq, %dk, %dv : tensor<1x1x100x64xf32>, tensor<1x1x70x64xf32>, tensor<1x1x70x48xf32>)
      -> tensor<1x1x100x64xf32>, tensor<1x1x70x64xf32>, tensor<1x1x70x48xf32>
  return %r#0 : tensor<1x1x100x64xf32>
}
}

// -----

// No tiles.

// CHECK-LABEL: func @vectors
// CHECK: attn.pack_query by 0.1803368801{{.*}} outs({{.*}} : tensor<1x1x64x48xf32>)
func.func @vectors(%q: tensor<1x1x37x64xbf16>, %k: tensor<1x1x?x64xbf16>, %v: tensor<1x1x?x16xbf16>,
                   %a: tensor<1x1x37x16xf32>, %m: tensor<1x1x37xf32>) -> tensor<1x1x37x16xf32> {
  %r:3 = attn.online_attention scale(0.125) update(all)
      ins(%q, %k, %v : tensor<1x1x37x64xbf16>, tensor<1x1x?x64xbf16>, tensor<1x1x?x16xbf16>)
      outs(%a, %m, %m : tensor<1x1x37x16xf32>, tensor<1x1x37xf32>, tensor<1x1x37xf32>)
      -> tensor<1x1x37x16xf32>, tensor<1x1x37xf32>, tensor<1x1x37xf32>
  return %r#0 : tensor<1x1x37x16xf32>
}

// -----

// Three products of tiles would take longer than one of vectors.

// CHECK-LABEL: func @slow_half
// CHECK: attn.pack_query by 0.1803368801{{.*}} outs({{.*}} : tensor<1x1x64x48xf32>)
#slow = #machine.target<"host", arch = "amx", cores = 2, vector_bytes = 64, vector_registers = 32, fast_memory = 49152, near_memory = 2097152, bandwidth = 12000, peak = 300, matrix_peak = 900>
module attributes {machine.target = #slow} {
func.func @slow_half(%q: tensor<1x1x37x64xf16>, %k: tensor<1x1x?x64xf16>, %v: tensor<1x1x?x16xf16>,
                     %a: tensor<1x1x37x16xf32>, %m: tensor<1x1x37xf32>) -> tensor<1x1x37x16xf32> {
  %r:3 = attn.online_attention scale(0.125) update(all)
      ins(%q, %k, %v : tensor<1x1x37x64xf16>, tensor<1x1x?x64xf16>, tensor<1x1x?x16xf16>)
      outs(%a, %m, %m : tensor<1x1x37x16xf32>, tensor<1x1x37xf32>, tensor<1x1x37xf32>)
      -> tensor<1x1x37x16xf32>, tensor<1x1x37xf32>, tensor<1x1x37xf32>
  return %r#0 : tensor<1x1x37x16xf32>
}
}

// -----

// Dot products of vectors multiply pairs in bf16, forward and backward; parts of
// f16 would take them longer than f32 does.

// CHECK-LABEL: func @dots
// CHECK: attn.pack_query by 1.000000e+00 ins({{.*}} : tensor<1x1x37x64xbf16>) outs({{.*}} : tensor<1x1x32x96xbf16>)
// CHECK-LABEL: func @dots_half
// CHECK: attn.pack_query by 0.1803368801{{.*}} outs({{.*}} : tensor<1x1x64x48xf32>)
#bf16 = #machine.target<"host", arch = "avx512_bf16", cores = 2, vector_bytes = 64, vector_registers = 32, fast_memory = 49152, near_memory = 2097152, bandwidth = 12000, peak = 300, matrix_peak = 600>
module attributes {machine.target = #bf16} {
func.func @dots(%q: tensor<1x1x37x64xbf16>, %k: tensor<1x1x?x64xbf16>, %v: tensor<1x1x?x16xbf16>,
                %a: tensor<1x1x37x16xf32>, %m: tensor<1x1x37xf32>) -> tensor<1x1x37x16xf32> {
  %r:3 = attn.online_attention scale(0.125) update(all)
      ins(%q, %k, %v : tensor<1x1x37x64xbf16>, tensor<1x1x?x64xbf16>, tensor<1x1x?x16xbf16>)
      outs(%a, %m, %m : tensor<1x1x37x16xf32>, tensor<1x1x37xf32>, tensor<1x1x37xf32>)
      -> tensor<1x1x37x16xf32>, tensor<1x1x37xf32>, tensor<1x1x37xf32>
  return %r#0 : tensor<1x1x37x16xf32>
}
func.func @dots_half(%q: tensor<1x1x37x64xf16>, %k: tensor<1x1x?x64xf16>, %v: tensor<1x1x?x16xf16>,
                     %a: tensor<1x1x37x16xf32>, %m: tensor<1x1x37xf32>) -> tensor<1x1x37x16xf32> {
  %r:3 = attn.online_attention scale(0.125) update(all)
      ins(%q, %k, %v : tensor<1x1x37x64xf16>, tensor<1x1x?x64xf16>, tensor<1x1x?x16xf16>)
      outs(%a, %m, %m : tensor<1x1x37x16xf32>, tensor<1x1x37xf32>, tensor<1x1x37xf32>)
      -> tensor<1x1x37x16xf32>, tensor<1x1x37xf32>, tensor<1x1x37xf32>
  return %r#0 : tensor<1x1x37x16xf32>
}
}
