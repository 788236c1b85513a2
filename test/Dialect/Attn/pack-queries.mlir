// RUN: fovea-opt %s --attn-pack-queries --split-input-file | FileCheck %s
// RUN: fovea-opt %s --attn-pack-queries=vector-bytes=32 --split-input-file | FileCheck %s --check-prefix=AVX2

// The running values get 48 rows in the loop; the finalize reads those that
// exist. log2(e) is in the factor, for there is no score region.

// CHECK-LABEL: func @loop
// CHECK-SAME: %[[Q:[a-z0-9]*]]: tensor<1x1x?x64xf16>
// CHECK: %[[ROWS:.*]] = affine.min
// CHECK: %[[SLICE:.*]] = tensor.extract_slice %[[Q]]
// CHECK-DAG: %[[ACC:.*]] = linalg.fill {{.*}} -> tensor<1x1x48x64xf32>
// CHECK-DAG: %[[MAX:.*]] = linalg.fill {{.*}} -> tensor<1x1x48xf32>
// CHECK: %[[PACKED:.*]] = attn.pack_query by 0.1803368801{{[0-9]*}} ins(%[[SLICE]] : tensor<1x1x?x64xf16>) outs({{.*}} : tensor<1x1x64x48xf32>)
// CHECK: %[[R:.*]]:3 = scf.for {{.*}} iter_args(%[[A:.*]] = %[[ACC]], %[[M:.*]] = %[[MAX]], {{.*}}) -> (tensor<1x1x48x64xf32>, tensor<1x1x48xf32>, tensor<1x1x48xf32>)
// CHECK:   scf.if
// CHECK:     attn.online_attention {{.*}} ins(%[[PACKED]], {{.*}} outs(%[[A]], %[[M]], {{.*}} packed(%[[ROWS]])
// CHECK:   } else {
// CHECK-NEXT: scf.yield %[[A]], %[[M]], {{.*}} : tensor<1x1x48x64xf32>, tensor<1x1x48xf32>, tensor<1x1x48xf32>
// CHECK: %[[OUT:.*]] = tensor.extract_slice %[[R]]#0[0, 0, 0, 0] [1, 1, %[[ROWS]], 64]
// CHECK: attn.finalize ins(%[[OUT]],
func.func @loop(%q: tensor<1x1x?x64xf16>, %k: tensor<1x1x64x64xf16>,
                %v: tensor<1x1x64x64xf16>, %out: tensor<1x1x?x64xf16>,
                %i: index, %n: index, %some: i1) -> tensor<1x1x?x64xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %rows = affine.min affine_map<(d0)[s0] -> (48, s0 - d0)>(%i)[%n]
  %slice = tensor.extract_slice %q[0, 0, %i, 0] [1, 1, %rows, 64] [1, 1, 1, 1] : tensor<1x1x?x64xf16> to tensor<1x1x?x64xf16>
  %a = tensor.empty(%rows) : tensor<1x1x?x64xf32>
  %s = tensor.empty(%rows) : tensor<1x1x?xf32>
  %acc = linalg.fill ins(%zero : f32) outs(%a : tensor<1x1x?x64xf32>) -> tensor<1x1x?x64xf32>
  %max = linalg.fill ins(%lowest : f32) outs(%s : tensor<1x1x?xf32>) -> tensor<1x1x?xf32>
  %sum = linalg.fill ins(%zero : f32) outs(%s : tensor<1x1x?xf32>) -> tensor<1x1x?xf32>
  %r:3 = scf.for %j = %c0 to %n step %c1 iter_args(%x = %acc, %y = %max, %z = %sum)
      -> (tensor<1x1x?x64xf32>, tensor<1x1x?xf32>, tensor<1x1x?xf32>) {
    %t:3 = scf.if %some -> (tensor<1x1x?x64xf32>, tensor<1x1x?xf32>, tensor<1x1x?xf32>) {
      %u:3 = attn.online_attention scale(0.125) update(all)
          ins(%slice, %k, %v : tensor<1x1x?x64xf16>, tensor<1x1x64x64xf16>, tensor<1x1x64x64xf16>)
          outs(%x, %y, %z : tensor<1x1x?x64xf32>, tensor<1x1x?xf32>, tensor<1x1x?xf32>)
          -> tensor<1x1x?x64xf32>, tensor<1x1x?xf32>, tensor<1x1x?xf32>
      scf.yield %u#0, %u#1, %u#2 : tensor<1x1x?x64xf32>, tensor<1x1x?xf32>, tensor<1x1x?xf32>
    } else {
      scf.yield %x, %y, %z : tensor<1x1x?x64xf32>, tensor<1x1x?xf32>, tensor<1x1x?xf32>
    }
    scf.yield %t#0, %t#1, %t#2 : tensor<1x1x?x64xf32>, tensor<1x1x?xf32>, tensor<1x1x?xf32>
  }
  %o = attn.finalize ins(%r#0, %r#1, %r#2 : tensor<1x1x?x64xf32>, tensor<1x1x?xf32>, tensor<1x1x?xf32>)
      outs(%out : tensor<1x1x?x64xf16>) -> tensor<1x1x?x64xf16>
  return %o : tensor<1x1x?x64xf16>
}

// -----

// Two passes share the packed rows. Values that come from elsewhere are padded.
// A row count is rounded up to whole vectors: 16 lanes of 64 bytes, or 8.

// CHECK-LABEL: func @passes
// CHECK-SAME: %[[ACC:[a-z0-9]*]]: tensor<1x2x9x8xf32>, %[[MAX:[a-z0-9]*]]: tensor<1x2x9xf32>
// AVX2-LABEL: func @passes
// CHECK-DAG: tensor.insert_slice %[[ACC]] into %{{.*}}[0, 0, 0, 0] [1, 2, 9, 8] [1, 1, 1, 1] : tensor<1x2x9x8xf32> into tensor<1x2x16x8xf32>
// CHECK-DAG: tensor.insert_slice %[[MAX]] into %{{.*}} : tensor<1x2x9xf32> into tensor<1x2x16xf32>
// CHECK: attn.pack_query by 1.250000e-01 {{.*}} outs({{.*}} : tensor<1x2x4x16xf32>)
// CHECK: attn.online_attention {{.*}} update(max_sum) {{.*}} packed(%c9)
// CHECK: attn.pack_query by 1.250000e-01
// CHECK: attn.online_attention {{.*}} update(acc) {{.*}} packed(%c9)
// CHECK: return %{{.*}}, %{{.*}} : tensor<1x2x9x8xf32>, tensor<1x2x9xf32>
// AVX2: attn.online_attention {{.*}} outs({{.*}} : tensor<1x2x16x8xf32>
func.func @passes(%q: tensor<1x2x9x4xf32>, %k: tensor<1x2x?x4xf32>,
    %v: tensor<1x2x?x8xf32>, %acc: tensor<1x2x9x8xf32>,
    %max: tensor<1x2x9xf32>, %sum: tensor<1x2x9xf32>)
    -> (tensor<1x2x9x8xf32>, tensor<1x2x9xf32>) {
  %a:3 = attn.online_attention scale(0.125) update(max_sum)
      ins(%q, %k, %v : tensor<1x2x9x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x8xf32>)
      outs(%acc, %max, %sum : tensor<1x2x9x8xf32>, tensor<1x2x9xf32>, tensor<1x2x9xf32>)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %n = arith.negf %s : f32
        attn.yield %n : f32
      }
      -> tensor<1x2x9x8xf32>, tensor<1x2x9xf32>, tensor<1x2x9xf32>
  %b:3 = attn.online_attention scale(0.125) update(acc)
      ins(%q, %k, %v : tensor<1x2x9x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x8xf32>)
      outs(%a#0, %a#1, %a#2 : tensor<1x2x9x8xf32>, tensor<1x2x9xf32>, tensor<1x2x9xf32>)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %n = arith.negf %s : f32
        attn.yield %n : f32
      }
      -> tensor<1x2x9x8xf32>, tensor<1x2x9xf32>, tensor<1x2x9xf32>
  return %b#0, %a#1 : tensor<1x2x9x8xf32>, tensor<1x2x9xf32>
}

// -----

// Left alone: no bound on the queries.

// CHECK-LABEL: func @unbounded
// CHECK-NOT: attn.pack_query
// CHECK: attn.online_attention
// CHECK-NOT: packed
func.func @unbounded(%q: tensor<1x1x?x4xf32>, %k: tensor<1x1x?x4xf32>,
    %v: tensor<1x1x?x8xf32>, %acc: tensor<1x1x?x8xf32>, %max: tensor<1x1x?xf32>,
    %sum: tensor<1x1x?xf32>) -> tensor<1x1x?x8xf32> {
  %a:3 = attn.online_attention scale(0.125) update(all)
      ins(%q, %k, %v : tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>, tensor<1x1x?x8xf32>)
      outs(%acc, %max, %sum : tensor<1x1x?x8xf32>, tensor<1x1x?xf32>, tensor<1x1x?xf32>)
      -> tensor<1x1x?x8xf32>, tensor<1x1x?xf32>, tensor<1x1x?xf32>
  return %a#0 : tensor<1x1x?x8xf32>
}

// -----

// Left alone: on memrefs.

// CHECK-LABEL: func @memrefs
// CHECK-NOT: packed
func.func @memrefs(%q: memref<1x1x8x4xf32>, %k: memref<1x1x?x4xf32>,
    %v: memref<1x1x?x8xf32>, %acc: memref<1x1x8x8xf32>, %max: memref<1x1x8xf32>,
    %sum: memref<1x1x8xf32>) {
  attn.online_attention scale(0.125) update(all)
      ins(%q, %k, %v : memref<1x1x8x4xf32>, memref<1x1x?x4xf32>, memref<1x1x?x8xf32>)
      outs(%acc, %max, %sum : memref<1x1x8x8xf32>, memref<1x1x8xf32>, memref<1x1x8xf32>)
  return
}
