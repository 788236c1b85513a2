func.func @f(%x: tensor<4xbf16>) -> tensor<4xbf16> {
  %y = attn.scale %x by 2.0 : tensor<4xbf16>
  return %y : tensor<4xbf16>
}
