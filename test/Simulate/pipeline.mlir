// A graph as the pipelines for GPUs compile it, by every strategy, against
// float64 in several orders of what is asynchronous.
//
// RUN: fovea-run %s --target=sm_80 --simulate --seeds=2 --random=1 --dims=100 --check | FileCheck %s
// RUN: fovea-run %s --target=sm_90a --simulate --seeds=5 --random=1 --dims=100 --check | FileCheck %s
// RUN: fovea-run %s --target=sm_90a --simulate --seeds=2 --random=1 --dims=70 --check --strategy=two-pass | FileCheck %s
// RUN: fovea-run %s --target=sm_90a --simulate --seeds=2 --random=1 --dims=70 --check --strategy=three-pass | FileCheck %s
// RUN: fovea-run %s --target=sm_90a --simulate --random=1 --dims=20 --check --strategy=unfused | FileCheck %s
// RUN: fovea-run %S/../Conversion/AttnToVector/run-attention.mlir --entry=captures \
// RUN:   --target=sm_90a --simulate --random=1 --check | FileCheck %s
//
// RUN: not fovea-run %s --simulate --random=1 --dims=20 2>&1 | FileCheck %s --check-prefix=HOST
// RUN: not fovea-run %s --target=sm_90a --simulate --time --random=1 --dims=20 2>&1 | FileCheck %s --check-prefix=TIME
// RUN: not fovea-run %s --target=sm_90a --simulate --seeds=0 --random=1 --dims=20 2>&1 | FileCheck %s --check-prefix=SEEDS
//
// CHECK: check: result 0: max error
// CHECK-NOT: FAILED
// HOST: --simulate is of a GPU; expected --target={{.*}}sm_80, {{.*}} or sm_120
// TIME: --simulate has no time to measure; expected no --time, no --report and no --tune
// SEEDS: --seeds=0: expected at least 1{{$}}
func.func @attend(%q: tensor<1x2x?x64xf16>, %k: tensor<1x1x?x64xf16>, %v: tensor<1x1x?x64xf16>) -> tensor<1x2x?x64xf16> {
  %s = attn.scores %q, %k : tensor<1x2x?x64xf16>, tensor<1x1x?x64xf16> -> tensor<1x2x?x?xf32>
  %t = attn.scale %s by 0.125 : tensor<1x2x?x?xf32>
  %m = attn.mask %t {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } : tensor<1x2x?x?xf32>
  %p = attn.softmax %m : tensor<1x2x?x?xf32> -> tensor<1x2x?x?xf32>
  %o = attn.values %p, %v : tensor<1x2x?x?xf32>, tensor<1x1x?x64xf16> -> tensor<1x2x?x64xf16>
  return %o : tensor<1x2x?x64xf16>
}
