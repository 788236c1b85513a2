func.func @decode(%q: tensor<1x32x1x128xbf16>, %k: tensor<1x8x8192x128xbf16>,
                  %v: tensor<1x8x8192x128xbf16>) -> tensor<1x32x1x128xbf16> {
  %o = attn.attention %q, %k, %v scale(0.0883883476) : tensor<1x32x1x128xbf16>, tensor<1x8x8192x128xbf16>, tensor<1x8x8192x128xbf16> -> tensor<1x32x1x128xbf16>
  return %o : tensor<1x32x1x128xbf16>
}
