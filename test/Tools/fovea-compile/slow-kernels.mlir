// A kernel whose products ptxas serialises is right: a remark names it, and it is
// no error. This ptxas says so of one.

// RUN: env FOVEA_CACHE_DIR=%t.cache FOVEA_PTXAS=%S/../fovea-run/Inputs/slow-ptxas fovea-compile %s --target=sm_90a --emit=cubin -o %t 2>&1 | FileCheck %s
// RUN: head -c 4 %t | grep -q ELF

// CHECK-NOT: {{.}}
// CHECK: {{^}}fovea-compile: remark: kernel 'attend_3' is right, but slower than written: ptxas 13.0.88: C7510: Potential Performance Loss: wgmma.mma_async instructions are serialized due to a test in function 'attend_3'{{$}}
// CHECK-NOT: {{.}}

!t = tensor<2x4x128x64xf16>
!s = tensor<2x4x128x128xf32>

func.func @attend(%q: !t, %k: !t, %v: !t) -> !t {
  %s = attn.scores %q, %k : !t, !t -> !s
  %p = attn.softmax %s : !s -> !s
  %o = attn.values %p, %v : !s, !t -> !t
  return %o : !t
}
