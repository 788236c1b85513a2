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

// Another type, or features that are no whole tiles.

// CHECK-LABEL: func @half
// CHECK: attn.pack_query by 0.1803368801{{.*}} outs({{.*}} : tensor<1x1x64x48xf32>)
func.func @half(%q: tensor<1x1x37x64xf16>, %k: tensor<1x1x?x64xf16>, %v: tensor<1x1x?x16xf16>,
                %a: tensor<1x1x37x16xf32>, %m: tensor<1x1x37xf32>) -> tensor<1x1x37x16xf32> {
  %r:3 = attn.online_attention scale(0.125) update(all)
      ins(%q, %k, %v : tensor<1x1x37x64xf16>, tensor<1x1x?x64xf16>, tensor<1x1x?x16xf16>)
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
