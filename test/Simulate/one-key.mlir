// With one key a probability is 1, whatever the score: queries and keys have
// gradients of zero, up to rounding in f32, where the output's gradient is rounded
// to the type of the operands before it is multiplied.
//
// RUN: fovea-run %s --grad --target=sm_90a --simulate --random=1 | FileCheck %s
// RUN: fovea-run %s --grad --target=sm_80 --simulate --random=1 | FileCheck %s
// RUN: fovea-run %s --grad --random=1 | FileCheck %s
//
// CHECK: result 1 (gradient of %q): bf16 1x1x16x64, mean {{[^ ]+}}, min {{0|-[0-9.]+e-0[5-9]}}, max {{0$|[0-9.]+e-0[5-9]$}}
// CHECK: result 2 (gradient of %k): bf16 1x1x1x64, mean {{[^ ]+}}, min {{0|-[0-9.]+e-0[5-9]}}, max {{0$|[0-9.]+e-0[5-9]$}}
// CHECK: result 3 (gradient of %v): bf16 1x1x1x64, mean {{[^ ]+}}, min -9.3125, max 8.6875
func.func @one_key(%q: tensor<1x1x16x64xbf16>, %k: tensor<1x1x1x64xbf16>, %v: tensor<1x1x1x64xbf16>) -> tensor<1x1x16x64xf32> {
  %o = attn.attention %q, %k, %v scale(1.0) : tensor<1x1x16x64xbf16>, tensor<1x1x1x64xbf16>, tensor<1x1x1x64xbf16> -> tensor<1x1x16x64xf32>
  return %o : tensor<1x1x16x64xf32>
}
