// A GPU is named, and what is missing for one is said in a line. The driver is
// one for tests, which runs no kernels.

// REQUIRES: fake-cuda
// RUN: rm -rf %t && mkdir -p %t
// RUN: export FOVEA_CACHE_DIR=%t/cache

// RUN: env FOVEA_CUDA_DRIVER=%t/none not fovea-run %s --target=gpu --random=1 --dims=20 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: env FOVEA_CUDA_DRIVER=%t/none not fovea-run %s --target=sm_80 --random=1 --dims=20 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: fovea-run: {{(--target=gpu: )?}}no NVIDIA driver: {{.*}}none: cannot open shared object file: No such file or directory{{$}}
// NONE-NOT: {{.}}
// RUN: env FOVEA_CUDA_DRIVER=%fake-cuda FAKE_CUDA=no-device not fovea-run %s --target=gpu --random=1 --dims=20 2>&1 | FileCheck %s --check-prefix=DEVICE
// DEVICE: fovea-run: --target=gpu: no GPU: cuInit: CUDA_ERROR_NO_DEVICE
// RUN: env FOVEA_CUDA_DRIVER=%fake-cuda FAKE_CUDA=old-driver not fovea-run %s --target=gpu --random=1 --dims=20 2>&1 | FileCheck %s --check-prefix=OLD
// OLD: fovea-run: --target=gpu: the NVIDIA driver is too old: it supports CUDA 11.4, and Fovea needs 12.0 or newer

// Without a ptxas that is fit the driver compiles.
// RUN: env FOVEA_CUDA_DRIVER=%fake-cuda FOVEA_PTXAS=%t/none fovea-run %s --target=gpu --random=1 --dims=20 2>&1 | FileCheck %s --check-prefix=PTXAS
// PTXAS: fovea-run: remark: the driver compiles the kernels: no ptxas is fit for sm_90a: {{.*}}none: No such file or directory
// PTXAS: device: Fake GPU (device 0, compute capability 9.0), driver for CUDA 13.0
// PTXAS-NEXT: result 0: f16 1x2x20x64,
// RUN: env FOVEA_CUDA_DRIVER=%fake-cuda FOVEA_PTXAS=%S/Inputs/old-ptxas fovea-run %s --target=gpu --random=1 --dims=20 2>&1 | FileCheck %s --check-prefix=MISCOMPILES
// MISCOMPILES: fovea-run: remark: the driver compiles the kernels: no ptxas is fit for sm_90a: {{.*}}old-ptxas (12.8.93): 12.8.0 up to 12.9.0 are known to miscompile code for sm_90a

// One that hangs is ended.
// RUN: env FOVEA_CUDA_DRIVER=%fake-cuda FOVEA_PTXAS=%S/Inputs/hanging-ptxas FOVEA_PTXAS_TIMEOUT=1 fovea-run %s --target=gpu --random=1 --dims=20 2>&1 | FileCheck %s --check-prefix=HANGS
// HANGS: fovea-run: remark: the driver compiles the kernels: no ptxas is fit for sm_90a: {{.*}}hanging-ptxas' has not ended after 1 seconds, and was ended
// HANGS: result 0: f16 1x2x20x64
// RUN: env FOVEA_CUDA_DRIVER=%fake-cuda FOVEA_PTXAS=%S/Inputs/hanging-ptxas FOVEA_PTXAS_TIMEOUT=soon fovea-run %s --target=gpu --random=1 --dims=20 2>&1 | FileCheck %s --check-prefix=SOON
// SOON: FOVEA_PTXAS_TIMEOUT=soon: expected a number of seconds from 1 on

// A kernel whose products ptxas serialises is right, and runs; each is named once,
// also when it comes from the cache.
// RUN: env FOVEA_CUDA_DRIVER=%fake-cuda FOVEA_PTXAS=%S/Inputs/slow-ptxas fovea-run %s --target=gpu --random=1 --dims=20 2>&1 | FileCheck %s --check-prefix=SLOW
// RUN: env FOVEA_CUDA_DRIVER=%fake-cuda FOVEA_PTXAS=%S/Inputs/slow-ptxas fovea-run %s --target=gpu --random=1 --dims=20 2>&1 | FileCheck %s --check-prefix=SLOW
// SLOW-NOT: {{due to another|compiles the kernels}}
// SLOW: fovea-run: remark: kernel 'attend_3' is right, but slower than written: ptxas 13.0.88: C7510: Potential Performance Loss: wgmma.mma_async instructions are serialized due to a test in function 'attend_3'{{$}}
// SLOW-NOT: {{due to another|compiles the kernels}}
// SLOW: result 0: f16 1x2x20x64

// RUN: env FOVEA_CUDA_DRIVER=%fake-cuda FOVEA_CACHE_DIR=%S/Inputs/old-ptxas/cache FOVEA_PTXAS=%t/none fovea-run %s --target=gpu --random=1 --dims=20 2>&1 | FileCheck %s --check-prefix=CACHE
// CACHE: fovea-run: remark: compiled code is not kept: cannot write to '{{.*}}old-ptxas/cache': Not a directory

// RUN: env FOVEA_CUDA_DRIVER=%fake-cuda FOVEA_PTXAS=%t/none not fovea-run %s --target=gpu --random=1 --dims=300000 2>&1 | FileCheck %s --check-prefix=MEMORY
// MEMORY: fovea-run: operand 0 (%q) of @attend: cannot allocate 76800000 bytes on Fake GPU (device 0, compute capability 9.0) ({{[0-9]+}} of 67108864 bytes are free): cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY

// The report is of the GPU: its rates, its memory, its clock (which says 1.5 ms).
// RUN: env FOVEA_CUDA_DRIVER=%fake-cuda FOVEA_PTXAS=%t/none fovea-run %s --target=sm_90a --random=1 --dims=150 --time --report 2>&1 | FileCheck %s --check-prefix=REPORT
// REPORT: time: median 1.500 ms of {{[0-9]+}} runs by the GPU's clock; {{.*}} GFLOP/s, {{.*}}% of the measured roofline
// REPORT: machine: Fake GPU (device 0, compute capability 9.0), {{.*}} GB/s and {{.*}} GFLOP/s (f32; f64 {{.*}}; products of f16 and bf16 {{.*}}), measured
// REPORT: unfused  three-pass    two-pass       fused
// REPORT-NEXT: kernels
// REPORT: temporary memory, MB      {{ *}}0.{{[0-9]+ +}}0{{ +}}0{{ +}}0
// REPORT-NEXT: roofline bound, ms
// REPORT-NEXT: predicted, ms
// REPORT-NEXT: measured, ms {{.*}} 1.5 {{.*}} 1.5

func.func @attend(%q: tensor<1x2x?x64xf16>, %k: tensor<1x2x?x64xf16>, %v: tensor<1x2x?x64xf16>) -> tensor<1x2x?x64xf16> {
  %s = attn.scores %q, %k : tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16> -> tensor<1x2x?x?xf32>
  %t = attn.scale %s by 0.125 : tensor<1x2x?x?xf32>
  %p = attn.softmax %t : tensor<1x2x?x?xf32> -> tensor<1x2x?x?xf32>
  %o = attn.values %p, %v : tensor<1x2x?x?xf32>, tensor<1x2x?x64xf16> -> tensor<1x2x?x64xf16>
  return %o : tensor<1x2x?x64xf16>
}
