// RUN: fovea-opt --fovea-gpu-pipeline=level=attn %s | FileCheck %s --check-prefix=ATTN
// RUN: fovea-opt --fovea-gpu-pipeline='level=fused strategy=unfused' %s | FileCheck %s --check-prefix=ATTN
// RUN: fovea-opt --fovea-gpu-pipeline=level=fused %s | FileCheck %s --check-prefix=FUSED
// RUN: fovea-opt --fovea-gpu-pipeline=level=gpu %s | FileCheck %s --check-prefix=GPU
// RUN: fovea-opt --fovea-gpu-pipeline='level=nvvm target=sm_80' %s | FileCheck %s --check-prefix=NVVM
// RUN: fovea-opt --fovea-gpu-pipeline=level=llvm %s | FileCheck %s --check-prefix=LLVM

// ATTN: machine.target = #machine.target<"sm_90a"
// ATTN: attn.scores
// ATTN: attn.softmax
// FUSED: attn.attention
// GPU: gpu.launch_func @kernels::@attend_0{{ }}
// GPU: gpu.module @kernels [#nvvm.target<O = 3, chip = "sm_90a"
// GPU: gpu.func @attend_0({{.*}}memref
// NVVM: func.func @attend
// NVVM: gpu.module @kernels [#nvvm.target<O = 3, chip = "sm_80"
// NVVM: llvm.func @attend_0{{[^0-9]}}
// NVVM-SAME: nvvm.kernel
// LLVM-NOT: memref
// LLVM-NOT: unrealized
// LLVM: llvm.func @_mlir_ciface_attend(
// LLVM: gpu.module @kernels
func.func @attend(%q: tensor<1x4x?x64xf16>, %k: tensor<1x2x?x64xf16>, %v: tensor<1x2x?x64xf16>) -> tensor<1x4x?x64xf16> {
  %s = attn.scores %q, %k : tensor<1x4x?x64xf16>, tensor<1x2x?x64xf16> -> tensor<1x4x?x?xf32>
  %t = attn.scale %s by 0.125 : tensor<1x4x?x?xf32>
  %p = attn.softmax %t : tensor<1x4x?x?xf32> -> tensor<1x4x?x?xf32>
  %o = attn.values %p, %v : tensor<1x4x?x?xf32>, tensor<1x2x?x64xf16> -> tensor<1x4x?x64xf16>
  return %o : tensor<1x4x?x64xf16>
}
