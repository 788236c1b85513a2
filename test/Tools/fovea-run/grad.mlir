// RUN: fovea-run %s --grad --random=1 --dims=40 --check | FileCheck %s
// RUN: fovea-run %s --grad --random=1 --dims=40 --check --recompute=always \
// RUN:   | FileCheck %s
// RUN: fovea-run %s --grad --random=1 --dims=40 --check --recompute=never \
// RUN:   | FileCheck %s
// RUN: fovea-run %s --grad --random=1 --dims=40 --check --strategy=unfused \
// RUN:   | FileCheck %s
// The cotangent has the shape of the result.
// RUN: fovea-run %s --grad --random=1 --dims=q:1x4x40x16,k:1x2x40x16,v:1x2x40x8 --check \
// RUN:   | FileCheck %s
// RUN: not fovea-run %s --grad --random=1 --dims=40 --recompute=sometimes 2>&1 \
// RUN:   | FileCheck %s --check-prefix=POLICY

// RUN: fovea-run %s --grad --random=1 --dims=64 --report | FileCheck %s --check-prefix=REPORT

// CHECK: result 0: f16 1x4x40x8, mean
// CHECK: result 1 (gradient of %q): f16 1x4x40x16, mean
// CHECK: result 2 (gradient of %k): f16 1x2x40x16, mean
// CHECK: result 3 (gradient of %v): f16 1x2x40x8, mean
// CHECK: result 4 (gradient of %slopes): f32 4, mean
// CHECK: check: result 0: max error {{.*}} (bound 0.004)
// CHECK-COUNT-4: check: result {{[1-4]}}: max error {{.*}} (bound 0.004){{$}}

// The derivative rules are checked by what has none.
// CHECK: check: gradient of operand 0 (%q) of @attend: 8 of 2560 elements by differences in f64, relative {{[^ ]+}} (bound 1e-05){{$}}
// CHECK: check: gradient of operand 1 (%k) of @attend: 8 of 1280 elements by
// CHECK: check: gradient of operand 2 (%v) of @attend: 8 of 640 elements by
// CHECK: check: gradient of operand 3 (%slopes) of @attend: 4 of 4 elements by

// Stored probabilities are read by several kernels; what recomputes them is one
// beside the forward pass, which also sums the rows.
// REPORT:      machine: {{.*}}, measured
// REPORT:        unfused stored recomputed
// REPORT-NEXT: kernels {{[0-9]+}} {{[4-9]|[0-9][0-9]}} 2{{$}}
// REPORT-NEXT: GFLOP
// REPORT-NEXT: MB moved
// REPORT-NEXT: FLOP per byte
// REPORT-NEXT: temporary memory, MB
// REPORT-NEXT: roofline bound, ms
// REPORT-NEXT: predicted, ms
// REPORT-NEXT: measured, ms
// REPORT-NEXT: measured, GFLOP/s
// REPORT:      recomputed against stored: {{.*}} x the FLOPs, {{[1-9].*}} times {{less|more}} traffic, {{[1-9].*}} times {{faster|slower}}

// POLICY: fovea-run: --recompute=sometimes: unknown policy of recomputation 'sometimes'; expected auto, always or never

func.func @attend(%q: tensor<1x4x?x16xf16>, %k: tensor<1x2x?x16xf16>,
                  %v: tensor<1x2x?x8xf16>, %slopes: tensor<4xf32>)
    -> tensor<1x4x?x8xf16> {
  %s = attn.scores %q, %k
      : tensor<1x4x?x16xf16>, tensor<1x2x?x16xf16> -> tensor<1x4x?x?xf32>
  %t = attn.scale %s by 0.25 : tensor<1x4x?x?xf32>
  %a = attn.modify %t {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %slope = tensor.extract %slopes[%h] : tensor<4xf32>
    %c = math.tanh %x : f32
    %r = arith.mulf %c, %slope : f32
    attn.yield %r : f32
  } : tensor<1x4x?x?xf32>
  %m = attn.mask %a {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } : tensor<1x4x?x?xf32>
  %p = attn.softmax %m : tensor<1x4x?x?xf32> -> tensor<1x4x?x?xf32>
  %o = attn.values %p, %v
      : tensor<1x4x?x?xf32>, tensor<1x2x?x8xf16> -> tensor<1x4x?x8xf16>
  return %o : tensor<1x4x?x8xf16>
}
