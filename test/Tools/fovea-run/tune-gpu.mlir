// Schedules for a GPU are tried and kept for that GPU. The driver is one for tests,
// which runs no kernels, and whose clock says of each that it is faster than the one
// before.

// REQUIRES: fake-cuda, numpy
// RUN: rm -rf %t && mkdir -p %t
// RUN: export FOVEA_CACHE_DIR=%t/cache
// RUN: export FOVEA_PTXAS=%t/none
// RUN: env FOVEA_CUDA_DRIVER=%fake-cuda FAKE_CUDA=faster fovea-run %s --target=gpu --random=1 --dims=64 --tune --candidates=3 > %t/out
// RUN: env FOVEA_CUDA_DRIVER=%fake-cuda fovea-compile %s --target=sm_90a --emit=fused >> %t/out
// RUN: env FOVEA_CUDA_DRIVER=%fake-cuda PYTHONPATH=%source/python %python %S/Inputs/fused.py %s sm_90a >> %t/out
// RUN: FileCheck %s --input-file=%t/out

// CHECK: attention of line [[#]]: 3 of [[#]] schedules
// CHECK-NEXT: predicted, us  measured, us  to the model's  schedule
// CHECK-NEXT: 1.000  #attn.schedule<{{.*}}>, the model's choice{{$}}
// CHECK-NEXT: {{0\.[0-9]+}}  #attn.schedule<{{.*}}>{{$}}
// CHECK-NEXT: {{0\.[0-9]+}}  [[BEST:#attn.schedule<.*>]], the best{{$}}
// CHECK-NEXT: tune: later compilations of this text take the best; kept in '{{.*}}/cache'
// The tool, and Python.
// CHECK: schedule = [[BEST]]
// CHECK: schedule = [[BEST]]

// Nothing is known of another GPU, or without one.
// RUN: env FOVEA_CUDA_DRIVER=%fake-cuda fovea-compile %s --target=sm_90a --emit=fused --debug-only=attn-select-schedule -o /dev/null 2>&1 | FileCheck %s --check-prefix=GIVEN
// GIVEN: is given
// RUN: env FOVEA_CUDA_DRIVER=%fake-cuda FAKE_CUDA=less-memory fovea-compile %s --target=sm_90a --emit=fused --debug-only=attn-select-schedule -o /dev/null 2>&1 | FileCheck %s --check-prefix=MODEL
// RUN: env FOVEA_CUDA_DRIVER=%t/none fovea-compile %s --target=sm_90a --emit=fused --debug-only=attn-select-schedule -o /dev/null 2>&1 | FileCheck %s --check-prefix=MODEL
// RUN: env FOVEA_CUDA_DRIVER=%fake-cuda fovea-compile %s --target=sm_80 --emit=fused --debug-only=attn-select-schedule -o /dev/null 2>&1 | FileCheck %s --check-prefix=MODEL
// MODEL-NOT: is given
// MODEL: on a GPU

// Another GPU has an entry of its own, beside the first.
// RUN: env FOVEA_CUDA_DRIVER=%fake-cuda FAKE_CUDA=less-memory fovea-run %s --target=gpu --random=1 --dims=64 --tune --candidates=1 | FileCheck %s --check-prefix=ONE
// ONE: the model's choice, the best
// RUN: env FOVEA_CUDA_DRIVER=%fake-cuda fovea-compile %s --target=sm_90a --emit=fused > %t/again
// RUN: cat %t/out %t/again | FileCheck %s --check-prefix=BESIDE
// BESIDE: {{0\.[0-9]+}}  [[BEST:#attn.schedule<.*>]], the best{{$}}
// BESIDE-COUNT-3: schedule = [[BEST]]

// RUN: env FOVEA_CUDA_DRIVER=%t/none not fovea-run %s --target=sm_90a --random=1 --dims=64 --tune 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: fovea-run: {{.*}}no NVIDIA driver

func.func @attend(%q: tensor<1x2x?x64xf16>, %k: tensor<1x2x?x64xf16>, %v: tensor<1x2x?x64xf16>) -> tensor<1x2x?x64xf16> {
  %s = attn.scores %q, %k : tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16> -> tensor<1x2x?x?xf32>
  %p = attn.softmax %s : tensor<1x2x?x?xf32> -> tensor<1x2x?x?xf32>
  %o = attn.values %p, %v : tensor<1x2x?x?xf32>, tensor<1x2x?x64xf16> -> tensor<1x2x?x64xf16>
  return %o : tensor<1x2x?x64xf16>
}
