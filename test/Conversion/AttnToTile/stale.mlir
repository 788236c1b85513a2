// RUN: fovea-opt %s --attn-online-softmax --attn-tile --convert-attn-to-tile --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,ONE
// RUN: fovea-opt %s --attn-online-softmax=passes=2 --attn-tile --convert-attn-to-tile --canonicalize --cse | FileCheck %s --check-prefix=TWO
// RUN: fovea-opt %s --fovea-gpu-pipeline="target=sm_90a level=tile" | FileCheck %s --check-prefix=SKEWED

// Steps subtract the maximum so far. Where sums have grown too much, each thread
// finds the maxima of its own parts of rows. Where one is too much of its part,
// or sums or the maximum are too large, the step finds its rows' maxima; only
// then is anything rescaled: what the step has computed, too, or where that is
// out of range it starts again.

// CHECK-LABEL: func @plain
// CHECK-DAG:   %[[MINUS:.*]] = arith.constant -0.180336878 : f32
// CHECK-DAG:   %[[SCALE:.*]] = arith.constant 0.180336878 : f32
// CHECK-DAG:   %[[SHARE:.*]] = arith.constant 5.500000e-01 : f32
// CHECK-DAG:   %[[LOWEST:.*]] = arith.constant 0xFF800000 : f32
// CHECK-DAG:   %[[MOST:.*]] = arith.constant 3.276800e+04 : f32
// CHECK-DAG:   %[[DOUBLE:.*]] = arith.constant 2.000000e+00 : f32
// CHECK-DAG:   %[[UNIT:.*]] = arith.constant 1.000000e+00 : f32
// CHECK-DAG:   %[[LARGE:.*]] = arith.constant 1.024000e+03 : f32
// CHECK:       %[[L:.*]]:3 = scf.for %{{.*}} iter_args(%[[ACC:[^ ]*]] = %{{.*}}, %[[MAX:[^ ]*]] = %{{.*}}, %[[SUM:[^ ]*]] = %{{.*}})
// CHECK:         %[[S:.*]] = tile.mma {{.*}} transpose_b
// CHECK-NOT:     tile.reduce
// CHECK:         %[[SHIFT:.*]] = tile.map ins(%[[MAX]] :
// CHECK:           arith.mulf %{{.*}}, %[[MINUS]]
// CHECK:         %[[P:.*]] = tile.map ins(%[[S]] : {{.*}}) rows(%[[SHIFT]] :
// CHECK:           math.fma %{{.*}}, %[[SCALE]], %{{.*}} : f32
// CHECK:           math.exp2
// CHECK:         %[[SUMS:.*]] = tile.reduce add %[[P]], %[[SUM]] dim 1 : !tile.fragment<64x32xf32> -> !tile.fragment<64x8xf32>
// CHECK:         %[[TESTS:.*]] = tile.map ins(%[[SUMS]], %[[SUM]] : {{.*}}) rows(%[[SHIFT]] :
// CHECK:           ^bb0(%[[NEW:[^:]*]]: f32, %[[OLD:[^:]*]]: f32,
// CHECK:           %[[GROWN:.*]] = math.fma %[[OLD]], %[[DOUBLE]], %[[UNIT]]
// CHECK:           %[[BOUND:.*]] = arith.minimumf %[[GROWN]], %[[MOST]]
// CHECK-DAG:       %[[A:.*]] = arith.cmpf ugt, %[[NEW]], %[[BOUND]]
// CHECK-DAG:       %[[B:.*]] = arith.cmpf ugt, %{{.*}}, %[[LARGE]]
// CHECK:           arith.ori %[[A]], %[[B]]
// CHECK:         %[[ANY:.*]] = tile.any %[[TESTS]]
// CHECK:         %[[N:.*]]:4 = scf.if %[[ANY]] -> ({{.*}}) {
// CHECK:           %[[NONE:.*]] = tile.fill %[[LOWEST]] : !tile.fragment<64x8xf32>
// CHECK:           %[[PARTS:.*]] = tile.reduce max %[[S]], %[[NONE]] dim 1 : !tile.fragment<64x32xf32> -> !tile.fragment<64x8xf32>
// CHECK:           %[[SHARES:.*]] = tile.map ins(%[[PARTS]], %[[SUMS]] : {{.*}}) rows(%[[SHIFT]] :
// CHECK:             ^bb0(%[[PART:[^:]*]]: f32, %[[NEW:[^:]*]]: f32, %[[BY:[^:]*]]: f32,
// CHECK-DAG:         %[[LOG:.*]] = math.fma %[[PART]], %[[SCALE]], %[[BY]] : f32
// CHECK-DAG:         %[[ONE:.*]] = math.exp2 %[[LOG]]
// CHECK-DAG:         %[[MUCH:.*]] = arith.mulf %[[NEW]], %[[SHARE]]
// CHECK-DAG:         arith.cmpf ugt, %[[ONE]], %[[MUCH]]
// CHECK-DAG:         arith.cmpf ugt, %[[NEW]], %[[MOST]]
// CHECK-DAG:         arith.cmpf ugt, %{{.*}}, %[[LARGE]]
// CHECK:           %[[DOMINATED:.*]] = tile.any %[[SHARES]]
// CHECK:           %[[B:.*]]:4 = scf.if %[[DOMINATED]] -> ({{.*}}) {
// CHECK:           %[[MAX1:.*]] = tile.reduce max %[[PARTS]], %[[MAX]] dim 1 : !tile.fragment<64x8xf32> -> !tile.fragment<64xf32>
// CHECK:           %[[FINITE:.*]] = tile.map ins(%[[MAX1]] :
// CHECK:           %[[ALPHA:.*]] = tile.map ins(%[[MAX]], %[[FINITE]] :
// CHECK:           %[[RANGE:.*]] = tile.map ins(%[[SUMS]] : {{.*}}) rows(%[[SHIFT]] :
// CHECK-DAG:         arith.cmpf ugt, %{{.*}}, %[[MOST]]
// CHECK-DAG:         arith.cmpf ugt, %{{.*}}, %[[LARGE]]
// CHECK:           %[[AGAIN:.*]] = tile.any %[[RANGE]]
// CHECK:           %[[R:.*]]:2 = scf.if %[[AGAIN]]
// CHECK:             %[[P1:.*]] = tile.map ins(%[[S]] : {{.*}}) rows(%[[FINITE]] :
// CHECK:             %[[SUMA:.*]] = tile.map ins(%[[SUM]] : {{.*}}) rows(%[[ALPHA]] :
// CHECK:             %[[SUM1:.*]] = tile.reduce add %[[P1]], %[[SUMA]] dim 1{{ }}
// CHECK:             scf.yield %[[P1]], %[[SUM1]]
// CHECK:           } else {
// CHECK:             %[[P2:.*]] = tile.map ins(%[[P]] : {{.*}}) rows(%[[ALPHA]] :
// CHECK:             %[[SUM2:.*]] = tile.map ins(%[[SUMS]] : {{.*}}) rows(%[[ALPHA]] :
// CHECK:             scf.yield %[[P2]], %[[SUM2]]
// CHECK:           }
// CHECK-DAG:       %[[ACCA:.*]] = tile.map ins(%[[ACC]] : {{.*}}) rows(%[[ALPHA]] :
// CHECK-DAG:       %[[Q16:.*]] = tile.map ins(%[[R]]#0 :
// CHECK:           scf.yield %[[ACCA]], %[[MAX1]], %[[R]]#1, %[[Q16]]
// CHECK:           } else {
// CHECK:             %[[KEPT16:.*]] = tile.map ins(%[[P]] :
// CHECK:             scf.yield %[[ACC]], %[[MAX]], %[[SUMS]], %[[KEPT16]]
// CHECK:           }
// CHECK:           scf.yield %[[B]]#0, %[[B]]#1, %[[B]]#2, %[[B]]#3
// CHECK:         } else {
// CHECK:           %[[P16:.*]] = tile.map ins(%[[P]] :
// CHECK:             arith.truncf
// CHECK:           scf.yield %[[ACC]], %[[MAX]], %[[SUMS]], %[[P16]]
// CHECK:         }
// CHECK:         %[[ACC1:.*]] = tile.mma %[[N]]#3, %{{.*}} into %[[N]]#0
// CHECK:         scf.yield %[[ACC1]], %[[N]]#1, %[[N]]#2

// Two passes know the maximum.
// TWO-LABEL: func @plain
// TWO-NOT:   3.276800e+04
// TWO:       func @wide

// The first step of a skewed loop, in front of it, has no maximum to subtract,
// and no test of that.
// SKEWED-LABEL: func @plain
// SKEWED:       tile.role "compute"
// SKEWED-NOT:   tile.any
// SKEWED:       tile.reduce max
// SKEWED-NOT:   tile.any
// SKEWED:       scf.for
// SKEWED:         tile.any
// SKEWED:         scf.if
// SKEWED:           tile.reduce max
// SKEWED:         scf.yield
// SKEWED-NOT:   tile.any
// SKEWED:       func @wide
func.func @plain(%q: tensor<1x2x256x64xf16>) -> tensor<1x2x256x64xf16> {
  %o = attn.attention %q, %q, %q scale(0.125) {schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 2, maximum = stale>}
    : tensor<1x2x256x64xf16>, tensor<1x2x256x64xf16>, tensor<1x2x256x64xf16> -> tensor<1x2x256x64xf16>
  return %o : tensor<1x2x256x64xf16>
}

// Elements that FMAs multiply: a difference first, and sums of whole rows, which
// are too large or no numbers where the maximum is minus infinity.

// ONE-LABEL: func @wide
// ONE:       %{{.*}}:3 = scf.for %{{.*}} iter_args(%[[ACC:[^ ]*]] = %{{.*}}, %[[MAX:[^ ]*]] = %{{.*}}, %[[SUM:[^ ]*]] = %{{.*}})
// ONE:         %[[S:.*]] = tile.mma {{.*}} transpose_b
// ONE:         %[[P:.*]] = tile.map ins(%[[S]] : {{.*}}) rows(%[[MAX]] :
// ONE:         %[[SUMS:.*]] = tile.reduce add %[[P]], %[[SUM]] dim 1 : !tile.fragment<64x32xf32> -> !tile.fragment<64xf32>
// ONE:         tile.map ins(%[[SUMS]], %[[SUM]], %{{.*}} : !tile.fragment<64xf32>, !tile.fragment<64xf32>, !tile.fragment<64xf32>)
// ONE:         tile.any
// ONE:         scf.if
// ONE:           %[[MAX1:.*]] = tile.reduce max %[[S]], %[[MAX]] dim 1 : !tile.fragment<64x32xf32> -> !tile.fragment<64xf32>
// ONE:           tile.map ins(%[[MAX1]], %[[SUMS]],
// ONE:           tile.any
func.func @wide(%q: tensor<1x2x256x64xf32>) -> tensor<1x2x256x64xf32> {
  %o = attn.attention %q, %q, %q scale(0.125) {schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 2, maximum = stale>}
    : tensor<1x2x256x64xf32>, tensor<1x2x256x64xf32>, tensor<1x2x256x64xf32> -> tensor<1x2x256x64xf32>
  return %o : tensor<1x2x256x64xf32>
}
