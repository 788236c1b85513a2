// RUN: fovea-opt %s --convert-attn-to-vector=vector-bytes=32 --verify-diagnostics

func.func @narrow(%q: memref<1x1x16x96xbf16>, %k: memref<1x1x64x32xbf16>,
    %acc: memref<1x1x48x32xf32>, %max: memref<1x1x48xf32>, %rows: index) {
  // expected-error @+1 {{'attn.online_attention' op has queries packed in pairs, which need vectors of 64 bytes, but vectors have 32}}
  attn.online_attention scale(0.125) update(all)
      ins(%q, %k, %k : memref<1x1x16x96xbf16>, memref<1x1x64x32xbf16>, memref<1x1x64x32xbf16>)
      outs(%acc, %max, %max : memref<1x1x48x32xf32>, memref<1x1x48xf32>, memref<1x1x48xf32>)
      packed(%rows)
  return
}
