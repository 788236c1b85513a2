// RUN: fovea-opt %s --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" --canonicalize | FileCheck %s

// Running values are updated in place; regions move over and read captured
// tensors by memref.load.

// CHECK-LABEL: func @step
// CHECK-SAME: %[[Q:.*]]: memref<1x1x4x16xf32>, %[[K:.*]]: memref<1x1x?x4xf16>, %[[V:.*]]: memref<1x1x?x8xf16>, %[[SLOPES:.*]]: memref<2xf32>
// CHECK: %[[ACC:.*]] = memref.alloc() {{.*}} : memref<1x1x16x8xf32>
// CHECK-NOT: memref.copy
// CHECK: attn.online_attention {{.*}} dropout(1.000000e-01, {{.*}}) ins(%[[Q]], %[[K]], %[[V]] : {{.*}}) outs(%[[ACC]],
// CHECK:   memref.load %[[SLOPES]]
// CHECK: attn.finalize ins(%[[ACC]],
// CHECK-NOT: memref.copy
func.func @step(%q: tensor<1x1x4x16xf32>, %k: tensor<1x1x?x4xf16>,
    %v: tensor<1x1x?x8xf16>, %slopes: tensor<2xf32>, %rows: index, %seed: i64)
    -> tensor<1x1x16x8xf16> {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %a = tensor.empty() : tensor<1x1x16x8xf32>
  %s = tensor.empty() : tensor<1x1x16xf32>
  %t = tensor.empty() : tensor<1x1x16xf32>
  %acc = linalg.fill ins(%zero : f32) outs(%a : tensor<1x1x16x8xf32>) -> tensor<1x1x16x8xf32>
  %max = linalg.fill ins(%lowest : f32) outs(%s : tensor<1x1x16xf32>) -> tensor<1x1x16xf32>
  %sum = linalg.fill ins(%zero : f32) outs(%t : tensor<1x1x16xf32>) -> tensor<1x1x16xf32>
  %r:3 = attn.online_attention scale(0.125) update(all) dropout(0.1, %seed, %seed)
      ins(%q, %k, %v : tensor<1x1x4x16xf32>, tensor<1x1x?x4xf16>, tensor<1x1x?x8xf16>)
      outs(%acc, %max, %sum : tensor<1x1x16x8xf32>, tensor<1x1x16xf32>, tensor<1x1x16xf32>)
      packed(%rows)
      score {
      ^bb0(%score: f32, %b: index, %h: index, %i: index, %j: index):
        %slope = tensor.extract %slopes[%h] : tensor<2xf32>
        %m = arith.mulf %score, %slope : f32
        attn.yield %m : f32
      }
      -> tensor<1x1x16x8xf32>, tensor<1x1x16xf32>, tensor<1x1x16xf32>
  %e = tensor.empty() : tensor<1x1x16x8xf16>
  %o = attn.finalize ins(%r#0, %r#1, %r#2 : tensor<1x1x16x8xf32>, tensor<1x1x16xf32>, tensor<1x1x16xf32>)
      outs(%e : tensor<1x1x16x8xf16>) -> tensor<1x1x16x8xf16>
  return %o : tensor<1x1x16x8xf16>
}

// A value that is still read is copied, inputs never.

// CHECK-LABEL: func @pack
// CHECK-SAME: %[[Q:.*]]: memref<1x1x?x4xf16>
// CHECK: %[[P:.*]] = memref.alloc() {{.*}} : memref<1x1x4x16xf32>
// CHECK-NOT: memref.copy
// CHECK: attn.pack_query {{.*}} ins(%[[Q]] : {{.*}}) outs(%[[P]]
func.func @pack(%q: tensor<1x1x?x4xf16>) -> tensor<1x1x4x16xf32> {
  %e = tensor.empty() : tensor<1x1x4x16xf32>
  %p = attn.pack_query by 0.5 ins(%q : tensor<1x1x?x4xf16>) outs(%e : tensor<1x1x4x16xf32>) -> tensor<1x1x4x16xf32>
  return %p : tensor<1x1x4x16xf32>
}

// Every result of an op that ends rows has a destination of its own.

// CHECK-LABEL: func @finalize_rest
// CHECK-DAG: %[[O:.*]] = memref.alloc() {{.*}} : memref<1x1x16x8xf16>
// CHECK-DAG: %[[L:.*]] = memref.alloc() {{.*}} : memref<1x1x16xf32>
// CHECK-DAG: %[[R:.*]] = memref.alloc() {{.*}} : memref<1x1x16xf32>
// CHECK-NOT: memref.copy
// CHECK: attn.finalize ins({{.*}}) outs(%[[O]], %[[L]], %[[R]] : memref<1x1x16x8xf16>, memref<1x1x16xf32>, memref<1x1x16xf32>)
// CHECK-NOT: memref.copy
// CHECK: return %[[O]], %[[L]], %[[R]] :
func.func @finalize_rest(%acc: tensor<1x1x16x8xf32>, %max: tensor<1x1x16xf32>, %sum: tensor<1x1x16xf32>)
    -> (tensor<1x1x16x8xf16>, tensor<1x1x16xf32>, tensor<1x1x16xf32>) {
  %e = tensor.empty() : tensor<1x1x16x8xf16>
  %l = tensor.empty() : tensor<1x1x16xf32>
  %r = tensor.empty() : tensor<1x1x16xf32>
  %o:3 = attn.finalize ins(%acc, %max, %sum : tensor<1x1x16x8xf32>, tensor<1x1x16xf32>, tensor<1x1x16xf32>)
      outs(%e, %l, %r : tensor<1x1x16x8xf16>, tensor<1x1x16xf32>, tensor<1x1x16xf32>)
      -> tensor<1x1x16x8xf16>, tensor<1x1x16xf32>, tensor<1x1x16xf32>
  return %o#0, %o#1, %o#2 : tensor<1x1x16x8xf16>, tensor<1x1x16xf32>, tensor<1x1x16xf32>
}
