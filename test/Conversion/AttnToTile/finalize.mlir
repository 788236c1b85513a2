// RUN: fovea-opt %s --attn-online-softmax --attn-tile --convert-attn-to-tile --canonicalize --cse --split-input-file | FileCheck %s

// A part leaves its log-sum-exp as two numbers, computed from the unit as two, since
// one would be rounded. The rest is 0 where that or the sum is infinite, as without
// keys.
// CHECK-LABEL: func @rest
// CHECK-DAG: %[[UNIT64:.*]] = arith.constant 3.000000e-01 : f64
// CHECK-DAG: %[[UNIT:.*]] = arith.constant 3.000000e-01 : f32
// CHECK-DAG: %[[LN2:.*]] = arith.constant 0.693147182 : f32
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-DAG: %[[INF:.*]] = arith.constant 0x7F800000 : f32
// CHECK-DAG: %[[MINUSINF:.*]] = arith.constant 0xFF800000 : f32
// CHECK: tile.launch
// CHECK: scf.if %{{[^ ]*}} {
// CHECK: } else {
// CHECK-NEXT: tile.store %{{.*}} : !tile.fragment<64x64xf32>
// CHECK-NEXT: %[[LSE:.*]] = tile.map ins(%[[MAX:.*]], %[[SUM:.*]] : !tile.fragment<64xf32>, !tile.fragment<64xf32>) {
// CHECK-NEXT: ^bb0(%[[M:[^:]*]]: f32, %[[S:[^:]*]]: f32, %{{[^:]*}}: index):
// CHECK-NEXT: %[[LOG2:.*]] = math.log2 %[[S]] : f32
// CHECK-NEXT: %[[LOG:.*]] = arith.mulf %[[LOG2]], %[[LN2]] : f32
// CHECK-NEXT: %[[SOME:.*]] = math.fma %[[M]], %[[UNIT]], %[[LOG]] : f32
// CHECK-NEXT: %[[ISNONE:.*]] = arith.cmpf oeq, %[[S]], %[[ZERO]] : f32
// CHECK-NEXT: %[[ALL:.*]] = arith.select %[[ISNONE]], %[[MINUSINF]], %[[SOME]] : f32
// CHECK-NEXT: tile.yield %[[ALL]] : f32
// CHECK: tile.store %[[LSE]], %{{.*}} : !tile.fragment<64xf32>
// CHECK-NEXT: %[[REST:.*]] = tile.map ins(%[[MAX]], %[[SUM]], %[[LSE]] :
// CHECK-NEXT: ^bb0(%[[M:[^:]*]]: f32, %[[S:[^:]*]]: f32, %[[L:[^:]*]]: f32, %{{[^:]*}}: index):
// CHECK-NEXT: %[[HIGH:.*]] = arith.truncf %[[UNIT64]] : f64 to f32
// CHECK-NEXT: %[[HIGH64:.*]] = arith.extf %[[HIGH]] : f32 to f64
// CHECK-NEXT: %[[LOW64:.*]] = arith.subf %[[UNIT64]], %[[HIGH64]] : f64
// CHECK-NEXT: %[[LOW:.*]] = arith.truncf %[[LOW64]] : f64 to f32
// CHECK-NEXT: %[[LOG2:.*]] = math.log2 %[[S]] : f32
// CHECK-NEXT: %[[LOG:.*]] = arith.mulf %[[LOG2]], %[[LN2]] : f32
// CHECK-NEXT: %[[MINUSL:.*]] = arith.negf %[[L]] : f32
// CHECK-NEXT: %[[OFHIGH:.*]] = math.fma %[[M]], %[[HIGH]], %[[MINUSL]] : f32
// CHECK-NEXT: %[[OFLOW:.*]] = math.fma %[[M]], %[[LOW]], %[[LOG]] : f32
// CHECK-NEXT: %[[BOTH:.*]] = arith.addf %[[OFHIGH]], %[[OFLOW]] : f32
// CHECK-NEXT: %[[ABSL:.*]] = math.absf %[[L]] : f32
// CHECK-NEXT: %[[ISLSEINF:.*]] = arith.cmpf oeq, %[[ABSL]], %[[INF]] : f32
// CHECK-NEXT: %[[FINITE:.*]] = arith.select %[[ISLSEINF]], %[[ZERO]], %[[BOTH]] : f32
// CHECK-NEXT: %[[ISINF:.*]] = arith.cmpf oeq, %[[S]], %[[INF]] : f32
// CHECK-NEXT: %[[RESULT:.*]] = arith.select %[[ISINF]], %[[ZERO]], %[[FINITE]] : f32
// CHECK-NEXT: tile.yield %[[RESULT]] : f32
// CHECK: tile.store %[[REST]], %{{.*}} : !tile.fragment<64xf32>
func.func @rest(%q: tensor<?x2x4x64xf16>, %k: tensor<?x2x?x64xf16>, %len: tensor<?xi32>) -> (tensor<?x2x4x64xf16>, tensor<?x2x4xf32>) {
  %o, %l = attn.attention %q, %k, %k scale(0.3)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %x = tensor.extract %len[%b] : tensor<?xi32>
      %n = arith.index_cast %x : i32 to index
      %keep = arith.cmpi slt, %j, %n : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, split = 16>}
    : tensor<?x2x4x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16> -> tensor<?x2x4x64xf16>, tensor<?x2x4xf32>
  return %o, %l : tensor<?x2x4x64xf16>, tensor<?x2x4xf32>
}

// -----

// The key that rows begin from is a term of the sum, which is infinite where that is
// far above the others, or there are none: the log-sum-exp is its score. Where it is
// minus infinity, it adds nothing, even to a row without keys.
// CHECK-LABEL: func @rest_init
// CHECK-DAG: %[[UNIT64:.*]] = arith.constant 3.000000e-01 : f64
// CHECK-DAG: %[[UNIT:.*]] = arith.constant 3.000000e-01 : f32
// CHECK-DAG: %[[LN2:.*]] = arith.constant 0.693147182 : f32
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-DAG: %[[INF:.*]] = arith.constant 0x7F800000 : f32
// CHECK-DAG: %[[MINUSINF:.*]] = arith.constant 0xFF800000 : f32
// CHECK-DAG: %[[LOG2E:.*]] = arith.constant 1.44269502 : f32
// CHECK: tile.launch
// CHECK: %[[SINK:.*]] = memref.load %{{.*}} : memref<2xf32,
// CHECK: %[[INIT:.*]] = arith.select %{{.*}}, %[[SINK]], %[[MINUSINF]] : f32
// CHECK: %[[STEPS:.*]] = tile.reduce add {{.*}} -> !tile.fragment<64xf32>
// CHECK-NEXT: %[[SUM:.*]] = tile.map ins(%[[STEPS]], %[[MAX:[^ ]*]] : !tile.fragment<64xf32>, !tile.fragment<64xf32>) {
// CHECK-NEXT: ^bb0(%[[S0:[^:]*]]: f32, %[[M0:[^:]*]]: f32, %{{[^:]*}}: index):
// CHECK-NEXT: %[[ISABSENT:.*]] = arith.cmpf oeq, %[[INIT]], %[[MINUSINF]] : f32
// CHECK-NEXT: %[[HIGH0:.*]] = arith.truncf %[[UNIT64]] : f64 to f32
// CHECK-NEXT: %[[HIGH064:.*]] = arith.extf %[[HIGH0]] : f32 to f64
// CHECK-NEXT: %[[LOW064:.*]] = arith.subf %[[UNIT64]], %[[HIGH064]] : f64
// CHECK-NEXT: %[[LOW0:.*]] = arith.truncf %[[LOW064]] : f64 to f32
// CHECK-NEXT: %[[MINUSMAX:.*]] = arith.negf %[[M0]] : f32
// CHECK-NEXT: %[[ROUNDED:.*]] = math.fma %[[MINUSMAX]], %[[HIGH0]], %[[INIT]] : f32
// CHECK-NEXT: %[[EXACT:.*]] = math.fma %[[MINUSMAX]], %[[LOW0]], %[[ROUNDED]] : f32
// CHECK-NEXT: %[[ABS:.*]] = math.absf %[[ROUNDED]] : f32
// CHECK-NEXT: %[[ISINFINITE:.*]] = arith.cmpf oeq, %[[ABS]], %[[INF]] : f32
// CHECK-NEXT: %[[DIFFERENCE:.*]] = arith.select %[[ISINFINITE]], %[[ROUNDED]], %[[EXACT]] : f32
// CHECK-NEXT: %[[BASE2:.*]] = arith.mulf %[[DIFFERENCE]], %[[LOG2E]] : f32
// CHECK-NEXT: %[[WEIGHT:.*]] = math.exp2 %[[BASE2]] : f32
// CHECK-NEXT: %[[TERM:.*]] = arith.select %[[ISABSENT]], %[[ZERO]], %[[WEIGHT]] : f32
// CHECK-NEXT: %[[TOTAL:.*]] = arith.addf %[[S0]], %[[TERM]] : f32
// CHECK-NEXT: tile.yield %[[TOTAL]] : f32
// The output is divided by the same sum.
// CHECK-NEXT: }
// CHECK-NEXT: %{{.*}} = tile.map ins(%[[SUM]] :
// CHECK-NEXT: ^bb0(%[[DIVISOR:[^:]*]]: f32,
// CHECK-NEXT: arith.divf %{{.*}}, %[[DIVISOR]] : f32
// CHECK: scf.if %{{[^ ]*}} {
// CHECK: } else {
// CHECK: tile.store %{{.*}} : !tile.fragment<64x64xf32>
// CHECK: %[[LSE:.*]] = tile.map ins(%[[MAX]], %[[SUM]] :
// CHECK-NEXT: ^bb0(%[[M:[^:]*]]: f32, %[[S:[^:]*]]: f32, %{{[^:]*}}: index):
// CHECK-NEXT: %[[LOG2:.*]] = math.log2 %[[S]] : f32
// CHECK-NEXT: %[[LOG:.*]] = arith.mulf %[[LOG2]], %[[LN2]] : f32
// CHECK-NEXT: %[[SOME:.*]] = math.fma %[[M]], %[[UNIT]], %[[LOG]] : f32
// CHECK-NEXT: %[[ISNONE:.*]] = arith.cmpf oeq, %[[S]], %[[ZERO]] : f32
// CHECK-NEXT: %[[ALL:.*]] = arith.select %[[ISNONE]], %[[MINUSINF]], %[[SOME]] : f32
// CHECK-NEXT: %[[ISINF:.*]] = arith.cmpf oeq, %[[S]], %[[INF]] : f32
// CHECK-NEXT: %[[WITHINIT:.*]] = arith.select %[[ISINF]], %[[INIT]], %[[ALL]] : f32
// CHECK-NEXT: tile.yield %[[WITHINIT]] : f32
// CHECK: tile.store %[[LSE]], %{{.*}} : !tile.fragment<64xf32>
// CHECK-NEXT: %[[REST:.*]] = tile.map ins(%[[MAX]], %[[SUM]], %[[LSE]] :
// CHECK-NEXT: ^bb0(%[[M:[^:]*]]: f32, %[[S:[^:]*]]: f32, %[[L:[^:]*]]: f32, %{{[^:]*}}: index):
// CHECK-NEXT: %[[HIGH:.*]] = arith.truncf %[[UNIT64]] : f64 to f32
// CHECK-NEXT: %[[HIGH64:.*]] = arith.extf %[[HIGH]] : f32 to f64
// CHECK-NEXT: %[[LOW64:.*]] = arith.subf %[[UNIT64]], %[[HIGH64]] : f64
// CHECK-NEXT: %[[LOW:.*]] = arith.truncf %[[LOW64]] : f64 to f32
// CHECK-NEXT: %[[LOG2:.*]] = math.log2 %[[S]] : f32
// CHECK-NEXT: %[[LOG:.*]] = arith.mulf %[[LOG2]], %[[LN2]] : f32
// CHECK-NEXT: %[[MINUSL:.*]] = arith.negf %[[L]] : f32
// CHECK-NEXT: %[[OFHIGH:.*]] = math.fma %[[M]], %[[HIGH]], %[[MINUSL]] : f32
// CHECK-NEXT: %[[OFLOW:.*]] = math.fma %[[M]], %[[LOW]], %[[LOG]] : f32
// CHECK-NEXT: %[[BOTH:.*]] = arith.addf %[[OFHIGH]], %[[OFLOW]] : f32
// CHECK-NEXT: %[[ABSL:.*]] = math.absf %[[L]] : f32
// CHECK-NEXT: %[[ISLSEINF:.*]] = arith.cmpf oeq, %[[ABSL]], %[[INF]] : f32
// CHECK-NEXT: %[[FINITE:.*]] = arith.select %[[ISLSEINF]], %[[ZERO]], %[[BOTH]] : f32
// CHECK-NEXT: %[[ISINF:.*]] = arith.cmpf oeq, %[[S]], %[[INF]] : f32
// CHECK-NEXT: %[[RESULT:.*]] = arith.select %[[ISINF]], %[[ZERO]], %[[FINITE]] : f32
// CHECK-NEXT: tile.yield %[[RESULT]] : f32
// CHECK: tile.store %[[REST]], %{{.*}} : !tile.fragment<64xf32>
func.func @rest_init(%q: tensor<?x2x4x64xf16>, %k: tensor<?x2x?x64xf16>, %len: tensor<?xi32>, %sinks: tensor<2xf32>) -> (tensor<?x2x4x64xf16>, tensor<?x2x4xf32>) {
  %o, %l = attn.attention %q, %k, %k scale(0.3) init(%sinks : tensor<2xf32>)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %x = tensor.extract %len[%b] : tensor<?xi32>
      %n = arith.index_cast %x : i32 to index
      %keep = arith.cmpi slt, %j, %n : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, split = 16>}
    : tensor<?x2x4x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16> -> tensor<?x2x4x64xf16>, tensor<?x2x4xf32>
  return %o, %l : tensor<?x2x4x64xf16>, tensor<?x2x4xf32>
}
