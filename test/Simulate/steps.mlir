// Attention after every step on its way to roles and products in flight, in many
// orders of what may happen in any order, against the graph in f64. Then the
// same with steps left out.
//
// RUN: fovea-opt %s --attn-online-softmax --attn-tile --convert-attn-to-tile -o %t.plain
// RUN: fovea-run %t.plain --reference=%s --target=sm_90a --simulate --seeds=3 \
// RUN:   --random=1 --dims=100 --check | FileCheck %s
// RUN: fovea-opt %t.plain --canonicalize --cse --tile-assign-layouts -o %t.layouts
// RUN: fovea-run %t.layouts --reference=%s --target=sm_90a --simulate --seeds=3 \
// RUN:   --random=1 --dims=100 --check | FileCheck %s
// RUN: fovea-opt %t.layouts --tile-multibuffer -o %t.rings
// RUN: fovea-run %t.rings --reference=%s --target=sm_90a --simulate --seeds=8 \
// RUN:   --random=1 --dims=100 --check | FileCheck %s
// RUN: fovea-opt %t.rings --tile-stage-stores -o %t.stores
// RUN: FileCheck %s --check-prefix=STORES --input-file=%t.stores
// RUN: fovea-run %t.stores --reference=%s --target=sm_90a --simulate --seeds=8 \
// RUN:   --random=1 --dims=100 --check | FileCheck %s
// RUN: fovea-opt %t.stores --tile-specialize-warps -o %t.roles
// RUN: fovea-run %t.roles --reference=%s --target=sm_90a --simulate --seeds=8 \
// RUN:   --random=1 --dims=100 --check | FileCheck %s
// RUN: fovea-opt %t.roles --tile-schedule --tile-expand-pipeline -o %t.skewed
// RUN: fovea-run %t.skewed --reference=%s --target=sm_90a --simulate --seeds=8 \
// RUN:   --random=1 --dims=100 --check | FileCheck %s
//
// RUN: fovea-opt %t.rings --tile-schedule --tile-expand-pipeline -o %t.no-roles
// RUN: fovea-run %t.no-roles --reference=%s --target=sm_90a --simulate --seeds=8 \
// RUN:   --random=1 --dims=100 --check | FileCheck %s
// RUN: fovea-opt %t.layouts --tile-schedule -o %t.no-rings
// RUN: fovea-run %t.no-rings --reference=%s --target=sm_90a --simulate --seeds=8 \
// RUN:   --random=1 --dims=100 --check | FileCheck %s
//
// RUN: fovea-opt %t.rings --tile-specialize-warps --tile-schedule --tile-expand-pipeline -o %t.no-stores
// RUN: fovea-run %t.no-stores --reference=%s --target=sm_90a --simulate --seeds=8 \
// RUN:   --random=1 --dims=100 --check | FileCheck %s
//
// STORES: tile.store_async
// CHECK: check: result 0: max error
// CHECK-NOT: FAILED
func.func @attend(%q: tensor<1x2x?x40xf16>, %k: tensor<1x1x?x40xf16>, %v: tensor<1x1x?x24xf16>) -> (tensor<1x2x?x24xf16>, tensor<1x2x?xf32>) {
  %o, %l = attn.attention %q, %k, %v scale(0.15)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %keep = arith.cmpi sge, %i, %j : index
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 3>}
      : tensor<1x2x?x40xf16>, tensor<1x1x?x40xf16>, tensor<1x1x?x24xf16> -> tensor<1x2x?x24xf16>, tensor<1x2x?xf32>
  return %o, %l : tensor<1x2x?x24xf16>, tensor<1x2x?xf32>
}
