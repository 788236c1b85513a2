// What makes code slower is said, by what compiles and by what runs from the disk
// cache, too.

// RUN: rm -rf %t && mkdir -p %t
// RUN: env FOVEA_CACHE_DIR=%t/cache fovea-run %s --random=1 --dims=16 2>&1 | FileCheck %s --check-prefix=RAN
// RUN: env FOVEA_CACHE_DIR=%t/cache fovea-run %s --random=1 --dims=16 2>&1 | FileCheck %s --check-prefix=RAN
// RUN: fovea-run %s --random=1 --dims=16 --grad 2>&1 | FileCheck %s --check-prefix=GRAD
// RUN: fovea-compile %s --emit=fused -o %t/out 2>&1 | FileCheck %s --check-prefix=COMPILE
// RUN: fovea-compile %s --emit=attn -o %t/out 2>&1 | count 0
// RUN: fovea-compile %s --target=sm_90a --emit=fused -o %t/out 2>&1 | FileCheck %s --check-prefix=GPU

// RAN: fovea-run: remark: line 26: softmax is not fused into attention: {{.+}}
// RAN-NEXT: result 0: f32 1x2x16x20,
// Of gradients nothing is said twice.
// GRAD: fovea-run: remark: line 26: softmax is not fused into attention: {{.+}}
// GRAD-NOT: softmax is not fused
// COMPILE: fovea-compile: remark: line 26: softmax is not fused into attention: {{.+}}
// COMPILE-NOT: remark
// GPU: fovea-compile: remark: line 26: softmax is not fused
// GPU: fovea-compile: remark: line 30: a head dim is no multiple of 8 up to 256; attention is written out, kernel by kernel

!t = tensor<1x2x?x20xf32>
!s = tensor<1x2x?x?xf32>
func.func @attend(%q: !t, %k: !t, %v: !t) -> (!t, !s) {
  %s = attn.scores %q, %k : !t, !t -> !s
  %p = attn.softmax %s : !s -> !s
  %o = attn.values %p, %v : !s, !t -> !t
  %u = attn.scores %o, %k : !t, !t -> !s
  %x = attn.softmax %u : !s -> !s
  %y = attn.values %x, %v : !s, !t -> !t
  return %y, %p : !t, !s
}
