// What each kernel needs, what it is for, how it is started and whether always.

// REQUIRES: ptxas
// RUN: fovea-compile %s --target=sm_90a --emit=cubin --print-resources -o %t 2>&1 | FileCheck %s
// RUN: fovea-compile %s --target=sm_90a --strategy=unfused --emit=cubin --print-resources -o %t 2>&1 | FileCheck %s --check-prefix=UNFUSED
// RUN: not fovea-compile %s --emit=asm --print-resources 2>&1 | FileCheck %s --check-prefix=HOST

// CHECK:      {{^}}attend_0: {{[0-9]+}} registers, 0 bytes of stack, 0 spilled, 0 of static shared memory, {{[0-9]+}} barriers{{$}}
// CHECK-NEXT: {{^}}  copies for attn.values of line [[#@LINE+17]]: {{[0-9]+}} blocks of 256 threads, 0 bytes of dynamic shared memory, if a condition holds{{$}}
// CHECK:      {{^}}  computes attn.values of line [[#@LINE+16]]: 8 blocks of {{[0-9]+}} threads, {{[1-9][0-9]+}} bytes of dynamic shared memory{{$}}
// CHECK:      {{^}}norm_0: {{[0-9]+}} registers
// CHECK-NEXT: {{^}}  computes attn.rms_norm of line [[#@LINE+19]]: (by the sizes) blocks of {{[0-9]+}} threads, {{[0-9]+}} bytes of dynamic shared memory

// UNFUSED:      {{^}}attend_0: {{[0-9]+}} registers
// UNFUSED-NEXT: {{^}}  {{fills for|computes}} attn.scores of line [[#@LINE+9]]: {{[0-9]+}} blocks
// UNFUSED:      {{^}}  computes attn.softmax of line [[#@LINE+9]]: {{[0-9]+}} blocks

// HOST: fovea-compile: --print-resources: the host has no kernels; expected --target=gpu, sm_80, {{.*}} or sm_120

!t = tensor<2x4x128x64xf16>
!s = tensor<2x4x128x128xf32>

func.func @attend(%q: !t, %k: !t, %v: !t) -> !t {
  %s = attn.scores %q, %k : !t, !t -> !s
  %p = attn.softmax %s : !s -> !s
  %o = attn.values %p, %v : !s, !t -> !t
  return %o : !t
}

func.func @norm(%x: tensor<?x256xf32>) -> tensor<?x256xf32> {
  %r = attn.rms_norm %x epsilon(1.0e-6) : tensor<?x256xf32>
  return %r : tensor<?x256xf32>
}
