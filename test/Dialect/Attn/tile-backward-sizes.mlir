// RUN: fovea-opt --attn-select-schedule --attn-online-softmax --attn-tile --canonicalize --cse \
// RUN:   --attn-pack-queries --canonicalize --cse --split-input-file \
// RUN:   --mlir-print-local-scope %s | FileCheck %s

// Queries of a tile: as many as leave a quarter of a core's near memory to the
// keys that pass by. They are packed in groups of three vectors.
// CHECK-LABEL: func.func @short_rows
// CHECK: scf.for %{{.*}} = %c0 to %{{.*}} step %c192{{ }}
// CHECK:   tensor.empty() : tensor<1x4x64x48xf32>
// CHECK:   scf.for %[[GROUP:.*]] = %c0 to %{{.*}} step %c1{{ }}
// CHECK:     %[[PART:.*]] = tensor.extract_slice %{{.*}}[0, %[[GROUP]], 0, 0] [1, 1, 64, 48]
// CHECK:     attn.pack_query {{.*}} outs(%[[PART]]
// CHECK:   scf.for %{{.*}} = %c0 to %{{.*}} step %c192{{ }}
// CHECK:     attn.online_backward
func.func @short_rows(%q: tensor<1x4x?x64xf32>, %l: tensor<1x4x?xf32>) -> tensor<1x4x?x64xf32> {
  %dq, %dk, %dv = attn.attention_backward %q, %q, %q, %q scale(0.25)
      statistics(%l, %l : tensor<1x4x?xf32>, tensor<1x4x?xf32>)
      : tensor<1x4x?x64xf32>, tensor<1x4x?x64xf32>, tensor<1x4x?x64xf32>,
        tensor<1x4x?x64xf32>
        -> tensor<1x4x?x64xf32>, tensor<1x4x?x64xf32>, tensor<1x4x?x64xf32>
  return %dq : tensor<1x4x?x64xf32>
}

// -----

// CHECK-LABEL: func.func @long_rows
// CHECK: scf.for %{{.*}} = %c0 to %{{.*}} step %c96{{ }}
// CHECK:   tensor.empty() : tensor<1x2x256x48xf32>
// CHECK:   scf.for %{{.*}} = %c0 to %{{.*}} step %c192{{ }}
func.func @long_rows(%q: tensor<1x4x?x256xf32>, %l: tensor<1x4x?xf32>) -> tensor<1x4x?x256xf32> {
  %dq, %dk, %dv = attn.attention_backward %q, %q, %q, %q scale(0.25)
      statistics(%l, %l : tensor<1x4x?xf32>, tensor<1x4x?xf32>)
      : tensor<1x4x?x256xf32>, tensor<1x4x?x256xf32>, tensor<1x4x?x256xf32>,
        tensor<1x4x?x256xf32>
        -> tensor<1x4x?x256xf32>, tensor<1x4x?x256xf32>, tensor<1x4x?x256xf32>
  return %dq : tensor<1x4x?x256xf32>
}

// -----

// A tile of no more queries than a vector has lanes is one
// group.
// CHECK-LABEL: func.func @few_queries
// CHECK: attn.online_backward {{.*}} tensor<1x1x64x16xf32>
func.func @few_queries(%q: tensor<1x4x5x64xf32>, %l: tensor<1x4x5xf32>) -> tensor<1x4x5x64xf32> {
  %dq, %dk, %dv = attn.attention_backward %q, %q, %q, %q scale(0.25)
      statistics(%l, %l : tensor<1x4x5xf32>, tensor<1x4x5xf32>)
      : tensor<1x4x5x64xf32>, tensor<1x4x5x64xf32>, tensor<1x4x5x64xf32>,
        tensor<1x4x5x64xf32>
        -> tensor<1x4x5x64xf32>, tensor<1x4x5x64xf32>, tensor<1x4x5x64xf32>
  return %dq : tensor<1x4x5x64xf32>
}
