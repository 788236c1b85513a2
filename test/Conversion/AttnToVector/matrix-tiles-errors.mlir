// RUN: fovea-opt %s --convert-attn-to-vector=vector-bytes=32 --split-input-file --verify-diagnostics

func.func @narrow(%q: memref<1x1x16x96xbf16>, %k: memref<1x1x64x32xbf16>,
    %acc: memref<1x1x48x32xf32>, %max: memref<1x1x48xf32>, %rows: index) {
  // expected-error @+1 {{'attn.online_attention' op has queries packed in pairs, which need vectors of 64 bytes, but vectors have 32}}
  attn.online_attention scale(0.125) update(all)
      ins(%q, %k, %k : memref<1x1x16x96xbf16>, memref<1x1x64x32xbf16>, memref<1x1x64x32xbf16>)
      outs(%acc, %max, %max : memref<1x1x48x32xf32>, memref<1x1x48xf32>, memref<1x1x48xf32>)
      packed(%rows)
  return
}

// -----

func.func @narrow_backward(%q: memref<1x1x32x32xbf16>, %l: memref<1x1x32xf32>,
    %pq: memref<1x1x16x64xbf16>, %dq: memref<1x1x32x32xf32>) {
  // expected-error @+1 {{'attn.online_backward' op has queries packed in pairs, which need vectors of 64 bytes, but vectors have 32}}
  attn.online_backward scale(0.125)
      packed(%pq, %pq : memref<1x1x16x64xbf16>, memref<1x1x16x64xbf16>)
      ins(%q, %q, %q, %q, %l, %l
          : memref<1x1x32x32xbf16>, memref<1x1x32x32xbf16>, memref<1x1x32x32xbf16>,
            memref<1x1x32x32xbf16>, memref<1x1x32xf32>, memref<1x1x32xf32>)
      outs(%dq, %dq, %dq : memref<1x1x32x32xf32>, memref<1x1x32x32xf32>, memref<1x1x32x32xf32>)
  return
}
