// RUN: fovea-opt %s --expand-math | FileCheck %s
// RUN: fovea-opt %s --expand-math=all=true | FileCheck %s --check-prefix=ALL

// CHECK-LABEL: func @vector
// CHECK-NOT: math.exp
// CHECK-COUNT-8: vector.fma {{.*}} : vector<16xf32>
// CHECK: return
func.func @vector(%x: vector<16xf32>) -> vector<16xf32> {
  %y = math.exp %x : vector<16xf32>
  return %y : vector<16xf32>
}

// A scalar has no vector.fma.

// CHECK-LABEL: func @scalar
// CHECK-NOT: math.log2
// CHECK: arith.divf {{.*}} : f64
// CHECK-NOT: vector.fma
// CHECK: return
func.func @scalar(%x: f64) -> f64 {
  %y = math.log2 %x : f64
  return %y : f64
}

// Narrow types are computed in f32.

// CHECK-LABEL: func @narrow
// CHECK: %[[X:.*]] = arith.extf %{{.*}} : vector<8xbf16> to vector<8xf32>
// CHECK-NOT: math.tanh
// CHECK: arith.divf {{.*}} : vector<8xf32>
// CHECK: arith.truncf %{{.*}} : vector<8xf32> to vector<8xbf16>
func.func @narrow(%x: vector<8xbf16>) -> vector<8xbf16> {
  %y = math.tanh %x : vector<8xbf16>
  return %y : vector<8xbf16>
}

// A function that may be approximate has a quotient that may be.

// CHECK-LABEL: func @approximate
// CHECK: arith.divf %{{.*}} fastmath<afn> : f32
// CHECK: arith.divf %{{[^ ]*}}, %{{[^ ]*}} : f32
func.func @approximate(%x: f32) -> (f32, f32) {
  %y = math.erf %x fastmath<afn> : f32
  %z = math.erf %x : f32
  return %y, %z : f32, f32
}

// Machines without a library have an instruction for an `exp2` that may be approximate,
// of f32.

// CHECK-LABEL: func @instruction
// CHECK-NOT: math.exp2
// CHECK: return
// ALL-LABEL: func @instruction
// ALL: math.exp2 %{{.*}} fastmath<afn> : f32
// ALL-NOT: math.exp2
// ALL: return
func.func @instruction(%x: f32, %w: f64) -> (f32, f32, f64) {
  %y = math.exp2 %x fastmath<afn> : f32
  %z = math.exp2 %x : f32
  %v = math.exp2 %w fastmath<afn> : f64
  return %y, %z, %v : f32, f32, f64
}

// Left alone: instructions of the machine, what has no expansion, other types.

// CHECK-LABEL: func @others
// CHECK-NEXT: math.sqrt
// CHECK-NEXT: math.atan2
// CHECK-NEXT: math.erf
// CHECK-NEXT: math.exp
// CHECK-NEXT: return
func.func @others(%x: f32, %d: f64, %t: tensor<4xf32>) -> (f32, f32, f64, tensor<4xf32>) {
  %a = math.sqrt %x : f32
  %b = math.atan2 %a, %x : f32
  %c = math.erf %d : f64
  %e = math.exp %t : tensor<4xf32>
  return %a, %b, %c, %e : f32, f32, f64, tensor<4xf32>
}

// With no library, everything is arithmetic, in f64.

// CHECK-LABEL: func @all
// CHECK: math.sincos
// CHECK: math.powf
// CHECK: arith.sitofp
// CHECK: math.powf
// ALL-LABEL: func @all
// ALL-NOT: math.{{(sincos|sin|cos|powf|fpowi|atan2|erfc)}}
// ALL: arith.extf %{{.*}} : f16 to f64
// ALL: arith.truncf %{{.*}} : f64 to f16
// ALL-NOT: math.{{(sincos|sin|cos|powf|fpowi|atan2|erfc)}}
// ALL: return
func.func @all(%x: f16, %y: f32, %v: vector<4xf64>, %n: i32) -> (f16, f32, vector<4xf64>) {
  %s, %c = math.sincos %x : f16
  %a = arith.addf %s, %c : f16
  %p = math.powf %y, %y : f32
  %q = math.fpowi %p, %n : f32, i32
  %t = math.atan2 %v, %v : vector<4xf64>
  %e = math.erfc %t : vector<4xf64>
  return %a, %q, %e : f16, f32, vector<4xf64>
}

// A clamp is two comparisons, which NaN passes.

// CHECK-LABEL: func @clamp
// CHECK-SAME: %[[X:.*]]: vector<4xf32>, %[[LOW:.*]]: vector<4xf32>, %[[HIGH:.*]]: vector<4xf32>
// CHECK: %[[BELOW:.*]] = arith.cmpf olt, %[[X]], %[[LOW]]
// CHECK: %[[RAISED:.*]] = arith.select %[[BELOW]], %[[LOW]], %[[X]]
// CHECK: %[[ABOVE:.*]] = arith.cmpf ogt, %[[RAISED]], %[[HIGH]]
// CHECK: arith.select %[[ABOVE]], %[[HIGH]], %[[RAISED]]
func.func @clamp(%x: vector<4xf32>, %low: vector<4xf32>, %high: vector<4xf32>) -> vector<4xf32> {
  %r = math.clampf %x to [%low, %high] : vector<4xf32>
  return %r : vector<4xf32>
}
