// What was compiled once is taken from the disk cache, and made again where the
// cache is damaged; without a cache nothing is kept, and nothing else changes.

// RUN: rm -rf %t && mkdir -p %t
// RUN: env FOVEA_CACHE_DIR=%t/cache fovea-run %s --random=1 > %t/first 2>&1
// RUN: ls -i %t/cache > %t/files
// RUN: env FOVEA_CACHE_DIR=%t/cache fovea-run %s --random=1 > %t/second 2>&1
// RUN: diff %t/first %t/second
// RUN: ls -i %t/cache | diff %t/files -
// RUN: ls %t/cache/llvmcache-* | grep -v timestamp | count 1

// Another strategy is another entry.
// RUN: env FOVEA_CACHE_DIR=%t/cache fovea-run %s --random=1 --strategy=unfused
// RUN: ls %t/cache/llvmcache-* | grep -v timestamp | count 2

// RUN: %python %S/Inputs/damage.py %t/cache
// RUN: env FOVEA_CACHE_DIR=%t/cache fovea-run %s --random=1 2>&1 | FileCheck %s --check-prefix=DAMAGED
// DAMAGED: fovea-run: remark: '{{.*}}/cache/llvmcache-{{.*}}' is damaged: what it kept is compiled again
// DAMAGED-NEXT: result 0: f32 1x1x8x8,
// RUN: env FOVEA_CACHE_DIR=%t/cache fovea-run %s --random=1 2>&1 | diff %t/first -

// RUN: env FOVEA_CACHE_DIR=%t/first/cache fovea-run %s --random=1 2>&1 | FileCheck %s --check-prefix=UNWRITABLE
// UNWRITABLE: fovea-run: remark: compiled code is not kept: cannot write to '{{.*}}/first/cache': Not a directory
// UNWRITABLE-NEXT: result 0: f32 1x1x8x8,
// RUN: env FOVEA_CACHE_DIR= fovea-run %s --random=1 2>&1 | diff %t/first -

func.func @attend(%q: tensor<1x1x8x8xf32>, %k: tensor<1x1x8x8xf32>, %v: tensor<1x1x8x8xf32>) -> tensor<1x1x8x8xf32> {
  %s = attn.scores %q, %k : tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32> -> tensor<1x1x8x8xf32>
  %p = attn.softmax %s : tensor<1x1x8x8xf32> -> tensor<1x1x8x8xf32>
  %o = attn.values %p, %v : tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32> -> tensor<1x1x8x8xf32>
  return %o : tensor<1x1x8x8xf32>
}
