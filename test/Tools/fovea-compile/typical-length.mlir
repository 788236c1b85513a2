// Code for dynamic lengths is made for those of some 4096, unless the option says
// which others are usual; static ones are what they are.
//
// RUN: fovea-compile %s --target=sm_90a --emit=fused | FileCheck %s --check-prefixes=CHECK,USUAL
// RUN: fovea-compile %s --target=sm_90a --typical-length=16384 --emit=fused | FileCheck %s --check-prefixes=CHECK,USUAL
// RUN: fovea-compile %s --target=sm_90a --typical-length=1024 --emit=fused | FileCheck %s --check-prefixes=CHECK,SHORT
// RUN: not fovea-compile %s --target=sm_90a --typical-length=0 --emit=fused 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not fovea-compile %s --target=sm_90a --typical-length=-1 --emit=fused 2>&1 | FileCheck %s --check-prefix=NEGATIVE
//
// ZERO: fovea-compile: --typical-length=0: expected 1 or more
// NEGATIVE: fovea-compile: --typical-length=-1: expected 1 or more
//
// CHECK-LABEL: func.func @dynamic
// USUAL:         tile = 192x64,
// SHORT:         tile = 128x128,
// CHECK-LABEL: func.func @static
// CHECK:         tile = 192x64,

func.func @dynamic(%q: tensor<?x16x?x128xbf16>) -> tensor<?x16x?x128xbf16> {
  %o = attn.attention %q, %q, %q scale(0.125)
    : tensor<?x16x?x128xbf16>, tensor<?x16x?x128xbf16>, tensor<?x16x?x128xbf16> -> tensor<?x16x?x128xbf16>
  return %o : tensor<?x16x?x128xbf16>
}

func.func @static(%q: tensor<4x16x4096x128xbf16>) -> tensor<4x16x4096x128xbf16> {
  %o = attn.attention %q, %q, %q scale(0.125)
    : tensor<4x16x4096x128xbf16>, tensor<4x16x4096x128xbf16>, tensor<4x16x4096x128xbf16> -> tensor<4x16x4096x128xbf16>
  return %o : tensor<4x16x4096x128xbf16>
}
