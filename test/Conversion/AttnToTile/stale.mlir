// RUN: fovea-opt %s --attn-online-softmax --attn-tile --convert-attn-to-tile --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,ONE
// RUN: fovea-opt %s --attn-online-softmax=passes=2 --attn-tile --convert-attn-to-tile --canonicalize --cse | FileCheck %s --check-prefix=TWO
// RUN: fovea-opt %s --fovea-gpu-pipeline="target=sm_90a level=tile" | FileCheck %s --check-prefix=SKEWED

// Steps subtract the maximum so far. Where a part of the step's sum, of eight keys,
// exceeds 6 and half of that of earlier steps, or 2^15, or the maximum is too large,
// the step is relative to its own maximum; only then is anything rescaled, the
// accumulator under a branch of its own, behind the one for the step.

// CHECK-LABEL: func @plain
// CHECK-DAG:   %[[UNIT:.*]] = arith.constant 1.000000e+00 : f32
// CHECK-DAG:   %[[LARGE:.*]] = arith.constant 1.024000e+03 : f32
// CHECK-DAG:   %[[MOST:.*]] = arith.constant 6.000000e+00 : f32
// CHECK-DAG:   %[[HALF:.*]] = arith.constant 5.000000e-01 : f32
// CHECK-DAG:   %[[LIMIT:.*]] = arith.constant 3.276800e+04 : f32
// CHECK-DAG:   %[[ZERO:.*]] = arith.constant -0.000000e+00 : f32
// CHECK-DAG:   %[[SCALE:.*]] = arith.constant 0.180336878 : f32
// CHECK-DAG:   %[[MINUS:.*]] = arith.constant -0.180336878 : f32
// CHECK:       %[[L:.*]]:3 = scf.for %{{.*}} iter_args(%[[ACC:[^ ]*]] = %{{.*}}, %[[MAX:[^ ]*]] = %{{.*}}, %[[SUM:[^ ]*]] = %{{.*}})
// CHECK:         %[[S:.*]] = tile.mma {{.*}} transpose_b
// CHECK-NOT:     tile.reduce
// CHECK:         %[[SHIFT:.*]] = tile.map ins(%[[MAX]] :
// CHECK:           arith.mulf %{{.*}}, %[[MINUS]]
// CHECK:         %[[TESTS:.*]] = tile.map ins(%[[SHIFT]] :
// CHECK:           arith.cmpf ugt, %{{.*}}, %[[LARGE]]
// CHECK:         %[[HUGE:.*]] = tile.any %[[TESTS]]
// CHECK:         %[[P:.*]] = tile.map ins(%[[S]] : {{.*}}) rows(%[[SHIFT]] :
// CHECK:           math.fma %{{.*}}, %[[SCALE]], %{{.*}} : f32
// CHECK:           math.exp2
// CHECK:         %[[NONE:.*]] = tile.fill %[[ZERO]]
// CHECK:         %[[NONE8:.*]] = tile.fill %[[ZERO]]
// CHECK:         %[[PARTS:.*]] = tile.reduce add %[[P]], %[[NONE8]] dim 1 : !tile.fragment<64x32xf32> -> !tile.fragment<64x8xf32>
// CHECK:         %[[STEP:.*]] = tile.reduce add %[[PARTS]], %[[NONE]] dim 1 neighbors : !tile.fragment<64x8xf32> -> !tile.fragment<64x4xf32>
// CHECK:         %[[SUMS:.*]] = tile.map ins(%[[SUM]], %[[STEP]] :
// CHECK:           arith.addf
// CHECK:         %[[TESTS:.*]] = tile.map ins(%[[STEP]], %[[SUM]] :
// CHECK-NEXT:    ^bb0(%[[S1:[^:]*]]: f32, %[[L:[^:]*]]: f32,
// CHECK-NEXT:      %[[GROWN:.*]] = math.fma %[[L]], %[[HALF]], %[[MOST]]
// CHECK-NEXT:      %[[ISMOST:.*]] = arith.cmpf olt, %[[GROWN]], %[[LIMIT]]
// CHECK-NEXT:      %[[BOUND:.*]] = arith.select %[[ISMOST]], %[[GROWN]], %[[LIMIT]]
// CHECK-NEXT:      arith.cmpf ugt, %[[S1]], %[[BOUND]]
// CHECK:         %[[GROWN:.*]] = tile.any %[[TESTS]]
// CHECK:         %[[ANY:.*]] = arith.ori %[[HUGE]], %[[GROWN]]
// CHECK:         %[[N:.*]]:4 = scf.if %[[ANY]] -> ({{.*}}) {
// CHECK:           %[[MAX1:.*]] = tile.reduce max %[[S]], %[[MAX]] dim 1 : !tile.fragment<64x32xf32> -> !tile.fragment<64xf32>
// CHECK:           %[[FINITE:.*]] = tile.map ins(%[[MAX1]] :
// CHECK:           %[[SHRUNK:.*]] = tile.map ins(%[[MAX]], %[[FINITE]] :
// CHECK:             math.exp2
// CHECK:           %[[ALPHA:.*]] = tile.map ins(%[[MAX]], %[[SHRUNK]] :
// CHECK:             arith.select
// CHECK:           %[[P1:.*]] = tile.map ins(%[[S]] : {{.*}}) rows(%[[FINITE]] :
// CHECK:             %[[BY:.*]] = math.fma
// CHECK:             %[[X:.*]] = arith.mulf %[[BY]], %[[SCALE]]
// CHECK:             math.exp2 %[[X]]
// CHECK:           %[[SUMA:.*]] = tile.map ins(%[[SUM]] : {{.*}}) rows(%[[ALPHA]] :
// CHECK:           %[[PARTS1:.*]] = tile.reduce add %[[P1]], %{{.*}} dim 1{{ }}
// CHECK:           %[[SUM1:.*]] = tile.reduce add %[[PARTS1]], %[[SUMA]] dim 1 neighbors{{ }}
// CHECK:           scf.yield %[[P1]], %[[SUM1]], %[[MAX1]], %[[ALPHA]]
// CHECK:         } else {
// CHECK:           %[[ONE:.*]] = tile.fill %[[UNIT]]
// CHECK:           scf.yield %[[P]], %[[SUMS]], %[[MAX]], %[[ONE]]
// CHECK:         }
// CHECK:         %[[P16:.*]] = tile.map ins(%[[N]]#0 :
// CHECK:           arith.truncf
// CHECK:         %[[A:.*]] = scf.if %[[ANY]] -> ({{.*}}) {
// CHECK:           %[[ACCA:.*]] = tile.map ins(%[[ACC]] : {{.*}}) rows(%[[N]]#3 :
// CHECK:           scf.yield %[[ACCA]]
// CHECK:         } else {
// CHECK:           scf.yield %[[ACC]]
// CHECK:         }
// CHECK:         %[[ACC1:.*]] = tile.mma %[[P16]], %{{.*}} into %[[A]]
// CHECK:         scf.yield %[[ACC1]], %[[N]]#2, %[[N]]#1

// Two passes know the maximum.
// TWO-LABEL: func @plain
// TWO-NOT:   arith.ori
// TWO:       func @alternating

// The first step of a skewed loop, in front of it, has no maximum to subtract,
// and no test of that. Whether its own is too large the loop carries.
// SKEWED-LABEL: func @plain
// SKEWED:       tile.role "compute"
// SKEWED-NOT:   tile.any
// SKEWED:       tile.reduce max
// SKEWED:       %[[LARGE:.*]] = tile.any
// SKEWED-NOT:   tile.any
// SKEWED:       scf.for {{.*}} = %[[LARGE]])
// SKEWED:         %[[GROWN:.*]] = tile.any
// SKEWED:         %[[ANY:.*]] = arith.ori %{{.*}}, %[[GROWN]]
// SKEWED-NOT:     tile.any
// SKEWED:         scf.if %[[ANY]]
// SKEWED:           tile.reduce max
// SKEWED:           tile.any
// SKEWED-NOT:       tile.any
// SKEWED:         scf.yield {{.*}}, i1
// SKEWED:       arith.divf
// SKEWED:       tile.any
// SKEWED-NOT:   tile.any
// SKEWED:       func @alternating
func.func @plain(%q: tensor<1x2x256x64xf16>) -> tensor<1x2x256x64xf16> {
  %o = attn.attention %q, %q, %q scale(0.125) {schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 2, maximum = stale>}
    : tensor<1x2x256x64xf16>, tensor<1x2x256x64xf16>, tensor<1x2x256x64xf16> -> tensor<1x2x256x64xf16>
  return %o : tensor<1x2x256x64xf16>
}

// Groups that alternate keep exponents, not scores, for a step that starts again: a
// multiply-add of scores, by 1 and without a shift where the maximum is too large. What
// exponents exceed 0 by is added to the maximum.

// ONE-LABEL: func @alternating
// ONE-DAG:   %[[UNIT:.*]] = arith.constant 1.000000e+00 : f32
// ONE-DAG:   %[[NONE:.*]] = arith.constant -0.000000e+00 : f32
// ONE-DAG:   %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// ONE-DAG:   %[[SCALE:.*]] = arith.constant 0.180336878 : f32
// ONE-DAG:   %[[INVERSE:.*]] = arith.constant 5.54517746 : f32
// ONE:       scf.for {{.*}} iter_args(%{{[^ ]*}} = %{{.*}}, %[[MAX:[^ ]*]] = %{{.*}}, %{{[^ ]*}} = %{{.*}})
// ONE:         %[[S:.*]] = tile.mma {{.*}} transpose_b
// ONE:         %[[LARGE:.*]] = tile.any
// ONE:         %[[FACTOR:.*]] = arith.select %[[LARGE]], %[[UNIT]], %[[SCALE]]
// ONE:         %[[SHIFT:.*]] = tile.map
// ONE:           arith.select %[[LARGE]], %[[NONE]], %{{.*}}
// ONE:         %[[E:.*]] = tile.map ins(%[[S]] : {{.*}}) rows(%[[SHIFT]] :
// ONE:           %[[X:.*]] = math.fma %{{.*}}, %[[FACTOR]], %{{.*}} : f32
// ONE-NEXT:      tile.yield %[[X]]
// ONE-NOT:     %[[S]]
// ONE:         %[[P:.*]] = tile.map ins(%[[E]] :
// ONE:           math.exp2
// ONE:         %[[GROWN:.*]] = tile.any
// ONE:         %[[ANY:.*]] = arith.ori %[[LARGE]], %[[GROWN]]
// ONE:         scf.if %[[ANY]]
// ONE:           %[[LEAST:.*]] = tile.map ins(%[[MAX]] :
// ONE:             arith.select %[[LARGE]], %{{.*}}, %[[ZERO]]
// ONE:           %[[MOST:.*]] = tile.reduce max %[[E]], %[[LEAST]] dim 1
// ONE:           %[[MAX1:.*]] = tile.map ins(%[[MOST]], %[[MAX]] :
// ONE-NEXT:      ^bb0(%[[Y:[^:]*]]: f32, %[[M:[^:]*]]: f32,
// ONE-NEXT:        %[[SUM:.*]] = math.fma %[[Y]], %[[INVERSE]], %[[M]]
// ONE-NEXT:        arith.select %[[LARGE]], %[[Y]], %[[SUM]]
// ONE:           %[[FINITE:.*]] = tile.map ins(%[[MAX1]] :
// ONE:           %[[SHIFT1:.*]] = tile.map ins(%[[FINITE]], %[[MAX]] :
// ONE-NEXT:      ^bb0(%[[F:[^:]*]]: f32, %[[M:[^:]*]]: f32,
// ONE-NEXT:        %[[BY:.*]] = arith.subf %[[F]], %[[M]]
// ONE-NEXT:        %[[GROWTH:.*]] = arith.mulf %[[BY]], %[[SCALE]]
// ONE-NEXT:        arith.select %[[LARGE]], %[[F]], %[[GROWTH]]
// ONE:           %[[FACTOR1:.*]] = arith.select %[[LARGE]], %[[SCALE]], %[[UNIT]]
// ONE:           %[[ADDED:.*]] = tile.map ins(%[[SHIFT1]] :
// ONE:             %[[NEGATIVE:.*]] = arith.negf
// ONE:             arith.mulf %[[NEGATIVE]], %[[FACTOR1]]
// ONE:           %[[X:.*]]:2 = scf.if
// ONE:             %[[LESS:.*]] = tile.map ins(%[[E]] : {{.*}}) rows(%[[SHIFT1]] :
// ONE:             scf.yield %[[LESS]],
// ONE:             scf.yield %[[E]], %[[ADDED]]
// ONE:           tile.map ins(%[[X]]#0 : {{.*}}) rows(%[[X]]#1 :
// ONE:             %[[F:.*]] = math.fma %{{.*}}, %[[FACTOR1]], %{{.*}} : f32
// ONE-NEXT:        math.exp2 %[[F]]
// ONE-NOT:     %[[S]]
// ONE:         } else {
func.func @alternating(%q: tensor<1x2x256x64xf16>) -> tensor<1x2x256x64xf16> {
  %o = attn.attention %q, %q, %q scale(0.125) {schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 2, maximum = stale, products = alternating>}
    : tensor<1x2x256x64xf16>, tensor<1x2x256x64xf16>, tensor<1x2x256x64xf16> -> tensor<1x2x256x64xf16>
  return %o : tensor<1x2x256x64xf16>
}

// Nor does a mask change that.

// ONE-LABEL: func @masked
// ONE:         %[[STEP:.*]] = tile.reduce add {{.*}} neighbors
// ONE:         tile.map ins(%[[STEP]], %{{.*}} :
// ONE:           arith.cmpf ugt
// ONE:         %[[GROWN:.*]] = tile.any
// ONE:         %[[ANY:.*]] = arith.ori %{{.*}}, %[[GROWN]]
// ONE:         scf.if %[[ANY]]
// ONE:           tile.reduce max
// ONE:         scf.if %[[ANY]]
// ONE-NOT:       tile.reduce
// ONE:         tile.mma {{.*}} into
func.func @masked(%q: tensor<1x2x256x64xf16>) -> tensor<1x2x256x64xf16> {
  %o = attn.attention %q, %q, %q scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %keep = arith.cmpi sge, %i, %j : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 64x32, order = longest_first, warps = 4, stages = 2, maximum = stale>}
    : tensor<1x2x256x64xf16>, tensor<1x2x256x64xf16>, tensor<1x2x256x64xf16> -> tensor<1x2x256x64xf16>
  return %o : tensor<1x2x256x64xf16>
}

// Elements that FMAs multiply: a difference first, and sums of whole rows, which
// are too large or no numbers where the maximum is minus infinity.

// ONE-LABEL: func @wide
// ONE-DAG:   %[[MOST:.*]] = arith.constant 1.200000e+01 : f32
// ONE:       %{{.*}}:3 = scf.for %{{.*}} iter_args(%[[ACC:[^ ]*]] = %{{.*}}, %[[MAX:[^ ]*]] = %{{.*}}, %[[SUM:[^ ]*]] = %{{.*}})
// ONE:         %[[S:.*]] = tile.mma {{.*}} transpose_b
// ONE:         %[[P:.*]] = tile.map ins(%[[S]] : {{.*}}) rows(%[[MAX]] :
// ONE:         %[[STEP:.*]] = tile.reduce add %[[P]], %{{.*}} dim 1 : !tile.fragment<64x32xf32> -> !tile.fragment<64xf32>
// ONE:         tile.map ins(%[[STEP]], %[[SUM]] :
// ONE:           math.fma %{{.*}}, %{{.*}}, %[[MOST]]
// ONE:         tile.any
// ONE:         scf.if
// ONE:           tile.reduce max %[[S]], %[[MAX]] dim 1 : !tile.fragment<64x32xf32> -> !tile.fragment<64xf32>
func.func @wide(%q: tensor<1x2x256x64xf32>) -> tensor<1x2x256x64xf32> {
  %o = attn.attention %q, %q, %q scale(0.125) {schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 2, maximum = stale>}
    : tensor<1x2x256x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x64xf32> -> tensor<1x2x256x64xf32>
  return %o : tensor<1x2x256x64xf32>
}
