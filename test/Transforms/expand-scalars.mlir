// RUN: fovea-opt %s --expand-scalars | FileCheck %s
// Nothing that it makes is taken for the identity, or expanded again.
// RUN: fovea-opt %s --expand-scalars --canonicalize | FileCheck %s --check-prefix=CANON
// RUN: fovea-opt %s --expand-scalars --expand-scalars | FileCheck %s


// CHECK-LABEL: func.func @narrow
// CHECK-SAME: %[[X:.*]]: index
// CANON-LABEL: func.func @narrow
func.func @narrow(%x: index) -> (index, index) {
  // CHECK: %[[WIDE:.*]] = arith.index_cast %[[X]] : index to i64
  // CHECK: %[[BYTE:.*]] = arith.trunci %[[WIDE]] : i64 to i8
  // CHECK: arith.index_cast %[[BYTE]] : i8 to index
  // CANON: arith.trunci
  // CANON: arith.index_cast %{{.*}} : i8 to index
  %a = arith.index_cast %x : index to i8
  %b = arith.index_cast %a : i8 to index
  // CHECK: %[[WIDE:.*]] = arith.index_castui %[[X]] : index to i64
  // CHECK: %[[HALF:.*]] = arith.trunci %[[WIDE]] : i64 to i32
  // CHECK: arith.index_castui %[[HALF]] : i32 to index
  // CANON: arith.trunci
  // CANON: arith.index_castui %{{.*}} : i32 to index
  %c = arith.index_castui %x : index to i32
  %d = arith.index_castui %c : i32 to index
  return %b, %d : index, index
}

// CHECK-LABEL: func.func @narrow_wide_integer
func.func @narrow_wide_integer(%x: i128) -> index {
  // CHECK: %[[LOW:.*]] = arith.trunci %{{.*}} : i128 to i64
  // CHECK: arith.index_cast %[[LOW]] : i64 to index
  %a = arith.index_cast %x : i128 to index
  return %a : index
}

// CHECK-LABEL: func.func @narrow_tensor
func.func @narrow_tensor(%x: tensor<?xindex>) -> tensor<?xi16> {
  // CHECK: %[[WIDE:.*]] = arith.index_cast %{{.*}} : tensor<?xindex> to tensor<?xi64>
  // CHECK: arith.trunci %[[WIDE]] : tensor<?xi64> to tensor<?xi16>
  %a = arith.index_cast %x : tensor<?xindex> to tensor<?xi16>
  return %a : tensor<?xi16>
}

// CHECK-LABEL: func.func @stays
func.func @stays(%x: index, %y: i8, %z: i64) -> (i64, index, index) {
  // CHECK: arith.index_cast %{{.*}} : index to i64
  // CHECK-NEXT: arith.index_cast %{{.*}} : i8 to index
  // CHECK-NEXT: arith.index_castui %{{.*}} : i64 to index
  // CHECK-NEXT: return
  %a = arith.index_cast %x : index to i64
  %b = arith.index_cast %y : i8 to index
  %c = arith.index_castui %z : i64 to index
  return %a, %b, %c : i64, index, index
}

// CHECK-LABEL: func.func @index_dialect
func.func @index_dialect(%x: index, %y: index) -> (index, i1, i32, index) {
  // CHECK: %[[SUM:.*]] = arith.addi %{{.*}}, %{{.*}} : index
  %a = index.add %x, %y
  // CHECK: %[[Q:.*]] = arith.floordivsi %[[SUM]], %{{.*}} : index
  %b = index.floordivs %a, %y
  // CHECK: arith.cmpi ult, %[[Q]], %{{.*}} : index
  %c = index.cmp ult(%b, %y)
  // CHECK: %[[WIDE:.*]] = arith.index_cast %[[Q]] : index to i64
  // CHECK: arith.trunci %[[WIDE]] : i64 to i32
  %d = index.casts %b : index to i32
  // CHECK: arith.constant 64 : index
  %e = index.sizeof
  return %b, %c, %d, %e : index, i1, i32, index
}

// CHECK-LABEL: func.func @classes
// CHECK-SAME: %[[X:.*]]: f16
func.func @classes(%x: f16) -> (i1, i1, i1, i1) {
  // CHECK: arith.cmpf uno, %[[X]], %[[X]] : f16
  %a = math.isnan %x : f16
  // CHECK: %[[ABS:.*]] = math.absf %[[X]] : f16
  // CHECK: %[[INF:.*]] = arith.constant 0x7C00 : f16
  // CHECK: arith.cmpf oeq, %[[ABS]], %[[INF]] : f16
  %b = math.isinf %x : f16
  // CHECK: arith.cmpf olt
  %c = math.isfinite %x : f16
  // CHECK: %[[LEAST:.*]] = arith.constant 6.10{{.*}}e-05 : f16
  // CHECK: %[[ABS:.*]] = math.absf %[[X]] : f16
  // CHECK: %[[NORMAL:.*]] = arith.cmpf oge, %[[ABS]], %[[LEAST]] : f16
  // CHECK: %[[FINITE:.*]] = arith.cmpf olt, %[[ABS]], %{{.*}} : f16
  // CHECK: arith.andi %[[NORMAL]], %[[FINITE]] : i1
  %d = math.isnormal %x : f16
  return %a, %b, %c, %d : i1, i1, i1, i1
}

// CHECK-LABEL: func.func @functions
// CHECK-SAME: %[[X:.*]]: f32, %[[LOW:.*]]: f32, %[[HIGH:.*]]: f32
func.func @functions(%x: f32, %low: f32, %high: f32) -> (f32, f32, f32) {
  // CHECK: %[[BELOW:.*]] = arith.cmpf olt, %[[X]], %[[LOW]]
  // CHECK: %[[RAISED:.*]] = arith.select %[[BELOW]], %[[LOW]], %[[X]]
  // CHECK: %[[ABOVE:.*]] = arith.cmpf ogt, %[[RAISED]], %[[HIGH]]
  // CHECK: arith.select %[[ABOVE]], %[[HIGH]], %[[RAISED]]
  %a = math.clampf %x to [%low, %high] : f32
  // CHECK: math.sin %[[X]]
  // CHECK: math.cos %[[X]]
  %s, %c = math.sincos %x : f32
  return %a, %s, %c : f32, f32, f32
}

// CHECK-LABEL: func.func @extended
// CHECK-SAME: %[[X:.*]]: i32, %[[Y:.*]]: i32, %[[I:.*]]: index
func.func @extended(%x: i32, %y: i32, %i: index) -> (i32, i1, i32, i32, index) {
  // CHECK: %[[SUM:.*]] = arith.addi %[[X]], %[[Y]] : i32
  // CHECK: arith.cmpi ult, %[[SUM]], %[[X]] : i32
  %a:2 = arith.addui_extended %x, %y : i32, i1
  // CHECK: %[[X64:.*]] = arith.extsi %[[X]] : i32 to i64
  // CHECK: %[[Y64:.*]] = arith.extsi %[[Y]] : i32 to i64
  // CHECK: %[[XY:.*]] = arith.muli %[[X64]], %[[Y64]] : i64
  // CHECK: %[[HIGH:.*]] = arith.shrui %[[XY]], %{{.*}} : i64
  // CHECK: arith.trunci %[[XY]] : i64 to i32
  // CHECK: arith.trunci %[[HIGH]] : i64 to i32
  %b:2 = arith.mulsi_extended %x, %y : i32
  // CHECK-COUNT-5: arith.muli %{{.*}} : index
  // CHECK-NOT: arith.mulsi_extended
  %c:2 = arith.mulsi_extended %i, %i : index
  return %a#0, %a#1, %b#0, %b#1, %c#1 : i32, i1, i32, i32, index
}

// Where sizes are not known there is no constant; linalg bodies are of numbers.
// CHECK-LABEL: func.func @tensors
func.func @tensors(%x: tensor<?xf32>) -> tensor<?xi1> {
  // CHECK: math.isinf
  %a = math.isinf %x : tensor<?xf32>
  return %a : tensor<?xi1>
}

// By squares: x^2, x^4, x^8; of 13 the bits 1, 4 and 8.
// CHECK-LABEL: func.func @constant_power
// CHECK-SAME: %[[X:.*]]: i32
func.func @constant_power(%x: i32) -> i32 {
  // CHECK-COUNT-6: arith.muli
  // CHECK-NOT: arith.muli
  // CHECK-NOT: arith.select
  // CHECK: return
  %n = arith.constant 13 : i32
  %a = math.ipowi %x, %n : i32
  return %a : i32
}

// CHECK-LABEL: func.func @any_power
func.func @any_power(%x: i8, %n: i8) -> i8 {
  // Seven bits of a positive exponent, and what a negative one gives.
  // CHECK-COUNT-7: arith.andi
  // CHECK: arith.cmpi slt
  // CHECK: arith.select
  // CHECK-NEXT: return
  %a = math.ipowi %x, %n : i8
  return %a : i8
}

// A float of 8 bits is read by its bits, whose integer multiple of 2^-9 is exact.
// CHECK-LABEL: func.func @small_float
// CHECK-SAME: %[[X:.*]]: i8
func.func @small_float(%x: i8) -> (bf16, f64) {
  // CHECK-NOT: f8E4M3FN
  // CHECK: %[[BITS:.*]] = arith.extui %[[X]] : i8 to i32
  // CHECK: %[[HIGH:.*]] = arith.shrui %[[BITS]], %c3_i32
  // CHECK: %[[EXPONENT:.*]] = arith.andi %[[HIGH]], %c15_i32
  // CHECK: %[[MANTISSA:.*]] = arith.andi %[[BITS]], %c7_i32
  // CHECK: %[[NORMAL:.*]] = arith.cmpi ne, %[[EXPONENT]], %c0_i32
  // CHECK: %[[LEADING:.*]] = arith.ori %[[MANTISSA]], %c8_i32
  // CHECK: %[[SHIFT:.*]] = arith.subi
  // CHECK: %[[DIGITS:.*]] = arith.select %[[NORMAL]], %[[LEADING]], %[[MANTISSA]]
  // CHECK: %[[COUNT:.*]] = arith.shli %[[DIGITS]], %[[SHIFT]]
  // CHECK: %[[REAL:.*]] = arith.sitofp %[[COUNT]] : i32 to f32
  // CHECK: arith.mulf %[[REAL]], %cst{{.*}} : f32
  // CHECK: arith.negf
  // CHECK: arith.cmpi eq, %{{.*}}, %c127_i32
  // CHECK: %[[VALUE:.*]] = arith.select
  // CHECK: arith.truncf %[[VALUE]] : f32 to bf16
  // CHECK: arith.extf %{{.*}} : f32 to f64
  %a = arith.bitcast %x : i8 to f8E4M3FN
  %b = arith.extf %a : f8E4M3FN to bf16
  %c = arith.extf %a : f8E4M3FN to f64
  return %b, %c : bf16, f64
}

// CHECK-LABEL: func.func @small_floats
// CHECK-SAME: %[[X:.*]]: tensor<?x4xi8>
func.func @small_floats(%x: tensor<?x4xi8>) -> tensor<?x4xf16> {
  // CHECK-NOT: f8E4M3FN
  // CHECK: arith.extui %[[X]] : tensor<?x4xi8> to tensor<?x4xi32>
  // CHECK: tensor.splat %{{.*}} : tensor<?x4xi32>
  // CHECK: arith.truncf %{{.*}} : tensor<?x4xf32> to tensor<?x4xf16>
  %a = arith.bitcast %x : tensor<?x4xi8> to tensor<?x4xf8E4M3FN>
  %b = arith.extf %a : tensor<?x4xf8E4M3FN> to tensor<?x4xf16>
  return %b : tensor<?x4xf16>
}

// Other floats are left to targets.
// CHECK-LABEL: func.func @half
func.func @half(%x: f16) -> f32 {
  // CHECK-NEXT: arith.extf %{{.*}} : f16 to f32
  %a = arith.extf %x : f16 to f32
  return %a : f32
}
