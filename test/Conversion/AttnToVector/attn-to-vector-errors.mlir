// RUN: fovea-opt %s --convert-attn-to-vector --verify-diagnostics --split-input-file

func.func @tensors(%q: tensor<1x1x?x4xf16>, %p: tensor<1x1x4x16xf32>) -> tensor<1x1x4x16xf32> {
  // expected-error @+1 {{'attn.pack_query' op operand #0 must be a memref, but is 'tensor<1x1x?x4xf16>'; bufferize first}}
  %r = attn.pack_query by 0.5 ins(%q : tensor<1x1x?x4xf16>) outs(%p : tensor<1x1x4x16xf32>) -> tensor<1x1x4x16xf32>
  return %r : tensor<1x1x4x16xf32>
}

// -----

func.func @strided(%q: memref<1x1x4x16xf32>, %k: memref<1x1x?x4xf32>, %v: memref<1x1x?x8xf32>,
    %acc: memref<1x1x16x8xf32>, %max: memref<1x1x16xf32, strided<[64, 64, 2]>>, %sum: memref<1x1x16xf32>, %rows: index) {
  // expected-error @+1 {{'attn.online_attention' op the maximum must have a last stride of 1, but is 'memref<1x1x16xf32, strided<[64, 64, 2]>>'}}
  attn.online_attention scale(0.125) update(all)
      ins(%q, %k, %v : memref<1x1x4x16xf32>, memref<1x1x?x4xf32>, memref<1x1x?x8xf32>)
      outs(%acc, %max, %sum : memref<1x1x16x8xf32>, memref<1x1x16xf32, strided<[64, 64, 2]>>, memref<1x1x16xf32>)
      packed(%rows)
  return
}

// -----

func.func @strided_gradient(%p: memref<1x1x4x16xf32>, %q: memref<1x1x8x4xf32>, %l: memref<1x1x8xf32>,
    %d: memref<1x1x8x4xf32, strided<[64, 64, 8, 2]>>) {
  // expected-error @+1 {{'attn.online_backward' op the key's gradient must have a last stride of 1, but is 'memref<1x1x8x4xf32, strided<[64, 64, 8, 2]>>'}}
  attn.online_backward scale(0.125) packed(%p, %p : memref<1x1x4x16xf32>, memref<1x1x4x16xf32>)
      ins(%q, %q, %q, %q, %l, %l : memref<1x1x8x4xf32>, memref<1x1x8x4xf32>, memref<1x1x8x4xf32>, memref<1x1x8x4xf32>, memref<1x1x8xf32>, memref<1x1x8xf32>)
      outs(%q, %d, %d : memref<1x1x8x4xf32>, memref<1x1x8x4xf32, strided<[64, 64, 8, 2]>>, memref<1x1x8x4xf32, strided<[64, 64, 8, 2]>>)
  return
}
