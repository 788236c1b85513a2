// RUN: fovea-opt --fovea-host-pipeline="level=attn" %s | FileCheck %s --check-prefix=ATTN
// RUN: fovea-opt --fovea-host-pipeline="level=fused" %s | FileCheck %s --check-prefix=FUSED
// RUN: fovea-opt --fovea-host-pipeline="level=tiled" %s | FileCheck %s --check-prefix=TILED
// RUN: fovea-opt --fovea-host-pipeline="level=llvm" %s | FileCheck %s --check-prefix=LLVM
// RUN: fovea-opt --fovea-host-pipeline="level=tiled strategy=three-pass" %s \
// RUN:   | FileCheck %s --check-prefix=THREE
// RUN: fovea-opt --fovea-host-pipeline="level=fused strategy=unfused" %s \
// RUN:   | FileCheck %s --check-prefix=UNFUSED
// RUN: fovea-opt --fovea-host-pipeline="level=tiled strategy=unfused" %s \
// RUN:   | FileCheck %s --check-prefix=KERNELS
// RUN: fovea-opt --fovea-reference-pipeline %s | FileCheck %s --check-prefix=REFERENCE

// ATTN: attn.scores
// ATTN: attn.softmax
// ATTN: attn.values
// FUSED: attn.attention
// FUSED-SAME: schedule = #attn.schedule<
// TILED: scf.forall
// TILED: attn.online_attention
// TILED-SAME: update(all)
// LLVM-NOT: func.func
// LLVM: llvm.func @fovea_parallel_for(!llvm.ptr, !llvm.ptr, i64)
// LLVM: llvm.func @_mlir_ciface_attend
// LLVM-NOT: unrealized_conversion_cast
// THREE: update(max)
// THREE: update(sum)
// THREE: update(acc)
// UNFUSED: attn.scores
// UNFUSED: attn.softmax
// KERNELS-NOT: attn.
// KERNELS: scf.forall
// REFERENCE: llvm.func @attend
// REFERENCE-NOT: vector<
func.func @attend(%q: tensor<1x2x64x32xf32>, %k: tensor<1x2x64x32xf32>,
                  %v: tensor<1x2x64x32xf32>) -> tensor<1x2x64x32xf32> {
  %s = attn.scores %q, %k
      : tensor<1x2x64x32xf32>, tensor<1x2x64x32xf32> -> tensor<1x2x64x64xf32>
  %p = attn.softmax %s : tensor<1x2x64x64xf32> -> tensor<1x2x64x64xf32>
  %o = attn.values %p, %v
      : tensor<1x2x64x64xf32>, tensor<1x2x64x32xf32> -> tensor<1x2x64x32xf32>
  return %o : tensor<1x2x64x32xf32>
}
