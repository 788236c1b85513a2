// NaNs of many bits in f16, which the rounding of a number to two parts in bf16 must
// not make zeros: rows of queries whose features are such NaNs are NaN.
//
// REQUIRES: fake-amx, avx512
// RUN: env LD_PRELOAD=%fake-amx fovea-run %s --arch=amx --random=1 --check | FileCheck %s
// RUN: sed s/0x7FFF/0xFFFF/ %s > %t.mlir
// RUN: env LD_PRELOAD=%fake-amx fovea-run %t.mlir --arch=amx --random=1 --check | FileCheck %s
//
// CHECK: result 0: f16 1x1x40x32, mean {{-?}}nan
// CHECK: check: result 0: max error
// CHECK-NOT: error:

func.func @main(%q: tensor<1x1x40x32xf16>, %k: tensor<1x1x40x32xf16>) -> tensor<1x1x40x32xf16> {
  %nan = arith.constant dense<0x7FFF> : tensor<1x1x1x32xf16>
  %n = tensor.insert_slice %nan into %q[0, 0, 5, 0] [1, 1, 1, 32] [1, 1, 1, 1] : tensor<1x1x1x32xf16> into tensor<1x1x40x32xf16>
  %o = attn.attention %n, %k, %k scale(0.125) : tensor<1x1x40x32xf16>, tensor<1x1x40x32xf16>, tensor<1x1x40x32xf16> -> tensor<1x1x40x32xf16>
  return %o : tensor<1x1x40x32xf16>
}
