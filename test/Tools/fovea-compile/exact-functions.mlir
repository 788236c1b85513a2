// The machine's tanh in the kernels of bf16, forward and backward, unless
// everything is to be exact; in those of f16 never.
//
// RUN: fovea-compile %s --target=sm_90a --emit=ptx | FileCheck %s
// RUN: fovea-compile %s --target=sm_90a --exact-functions --emit=ptx | FileCheck %s --check-prefix=EXACT
// RUN: sed 's/bf16/f16/g' %s | fovea-compile - --target=sm_90a --emit=ptx | FileCheck %s --check-prefix=EXACT
// RUN: fovea-opt %s --fovea-gradient-pipeline -o %t.mlir
// RUN: fovea-compile %t.mlir --target=sm_90a --emit=ptx | FileCheck %s --check-prefix=GRADIENT
// RUN: fovea-compile %t.mlir --target=sm_90a --exact-functions --emit=ptx | FileCheck %s --check-prefix=EXACT
//
// CHECK-NOT: rcp.approx
// CHECK:     wgmma
// CHECK:     tanh.approx.f32
//
// EXACT-NOT: tanh.approx
// EXACT:     ex2.approx
// EXACT:     rcp.approx
// EXACT-NOT: tanh.approx
//
// GRADIENT:       tanh.approx.f32
// GRADIENT:       .entry
// GRADIENT:       tanh.approx.f32

!t = tensor<1x2x256x64xbf16>

func.func @cap(%q: !t, %k: !t, %v: !t) -> !t {
  %o = attn.attention %q, %k, %v scale(0.125) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %cap = arith.constant 30.0 : f32
    %0 = arith.divf %s, %cap : f32
    %1 = math.tanh %0 : f32
    %2 = arith.mulf %1, %cap : f32
    attn.yield %2 : f32
  } : !t, !t, !t -> !t
  return %o : !t
}
