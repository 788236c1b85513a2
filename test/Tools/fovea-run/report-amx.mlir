// The roofline of bf16 counts products at the measured rate of AMX tiles, where
// the code has them.

// REQUIRES: fake-amx, avx512
// RUN: env LD_PRELOAD=%fake-amx fovea-run %s --arch=amx --random=1 --report | FileCheck %s
// CHECK: machine: {{[0-9]+}} threads, {{.*}} GB/s and {{.*}} GFLOP/s (f32; f64 {{.*}}; products of bf16 {{[0-9.]+}}), measured

func.func @attend(%q: tensor<1x1x32x32xbf16>, %k: tensor<1x1x32x32xbf16>) -> tensor<1x1x32x32xbf16> {
  %o = attn.attention %q, %k, %k scale(0.125) : tensor<1x1x32x32xbf16>, tensor<1x1x32x32xbf16>, tensor<1x1x32x32xbf16> -> tensor<1x1x32x32xbf16>
  return %o : tensor<1x1x32x32xbf16>
}
