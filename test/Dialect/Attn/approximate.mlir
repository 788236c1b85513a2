// RUN: fovea-opt %s --attach-gpu-target=target=sm_90a --attn-approximate | FileCheck %s
// RUN: fovea-opt %s --attn-approximate | FileCheck %s --check-prefix=HOST --implicit-check-not=fastmath
// RUN: fovea-opt %s --fovea-gpu-pipeline='level=fused' | FileCheck %s
// RUN: fovea-opt %s --fovea-gpu-pipeline='level=fused exact-functions' | FileCheck %s --check-prefix=HOST --implicit-check-not=fastmath

// HOST: math.tanh

!b = tensor<1x2x256x64xbf16>
!h = tensor<1x2x256x64xf16>
!f = tensor<1x2x256x64xf32>

// Flags that are there stay.
// CHECK-LABEL: func @brain(
// CHECK:       score
// CHECK:       math.tanh %{{.*}} fastmath<afn> : f32
// CHECK:       math.exp2 %{{[^ ]*}} : f32
func.func @brain(%q: !b, %k: !b, %v: !b) -> !b {
  %o = attn.attention %q, %k, %v scale(0.125) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %0 = math.tanh %s : f32
    %1 = math.exp2 %0 : f32
    attn.yield %1 : f32
  } : !b, !b, !b -> !b
  return %o : !b
}

// Types that round weights less keep the exact form.
// CHECK-LABEL: func @half(
// CHECK:       math.tanh %{{[^ ]*}} : f32
func.func @half(%q: !h, %k: !h, %v: !h) -> !h {
  %o = attn.attention %q, %k, %v scale(0.125) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %0 = math.tanh %s : f32
    attn.yield %0 : f32
  } : !h, !h, !h -> !h
  return %o : !h
}

// CHECK-LABEL: func @single(
// CHECK:       math.tanh %{{[^ ]*}} : f32
func.func @single(%q: !f, %k: !f, %v: !f) -> !f {
  %o = attn.attention %q, %k, %v scale(0.125) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %0 = math.tanh %s : f32
    attn.yield %0 : f32
  } : !f, !f, !f -> !f
  return %o : !f
}
