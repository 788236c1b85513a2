// RUN: fovea-opt --convert-contraction-to-vector --split-input-file \
// RUN:   --mlir-print-local-scope %s | FileCheck %s
// RUN: fovea-opt --convert-contraction-to-vector="vector-bytes=32 vector-registers=16" \
// RUN:   --split-input-file --mlir-print-local-scope %s | FileCheck %s --check-prefix=AVX2

// Blocks of the result in parallel; 12 rows times 2 vectors in registers.
// CHECK-LABEL: func.func @product
// CHECK-SAME: %[[A:.*]]: memref<?x?xf16>, %[[B:.*]]: memref<?x64xf32>, %[[C:.*]]: memref<?x64xf32>
// CHECK: scf.forall (%{{.*}}, %{{.*}}) = (0, 0) to (%{{.*}}, 64) step (96, 64)
// CHECK:   memref.alloca() {alignment = 64 : i64} : memref<12x32xf32>
// CHECK:   memref.alloca() {alignment = 64 : i64} : memref<2x128x32xf32>
// CHECK:   memref.alloca() {alignment = 64 : i64} : memref<96x128xf32>
// CHECK:   linalg.generic
// CHECK:     arith.extf %{{.*}} : f16 to f32
// CHECK-COUNT-24: vector.fma {{.*}} : vector<16xf32>
// CHECK-NOT: vector.fma
// CHECK: return
// AVX2-LABEL: func.func @product
// AVX2-COUNT-12: vector.fma {{.*}} : vector<8xf32>
// AVX2-NOT: vector.fma
// AVX2: return
func.func @product(%a: memref<?x?xf16>, %b: memref<?x64xf32>, %c: memref<?x64xf32>) {
  linalg.generic {
      indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>,
                       affine_map<(i, j, k) -> (i, j)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<?x?xf16>, memref<?x64xf32>) outs(%c : memref<?x64xf32>) {
  ^bb0(%x: f16, %y: f32, %o: f32):
    %w = arith.extf %x : f16 to f32
    %m = arith.mulf %w, %y : f32
    %s = arith.addf %m, %o : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// What the result is filled with before is done in blocks.
// CHECK-LABEL: func.func @filled
// CHECK: memref.alloc()
// CHECK-NOT: linalg.generic
// CHECK: scf.forall
func.func @filled(%a: memref<8x128xf64>, %b: memref<8x128xf64>) -> memref<8x8xf64> {
  %c = memref.alloc() : memref<8x8xf64>
  %zero = arith.constant 0.0 : f64
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>],
                  iterator_types = ["parallel", "parallel"]}
      outs(%c : memref<8x8xf64>) {
  ^bb0(%o: f64):
    linalg.yield %zero : f64
  }
  linalg.generic {
      indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>,
                       affine_map<(i, j, k) -> (i, j)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<8x128xf64>, memref<8x128xf64>) outs(%c : memref<8x8xf64>) {
  ^bb0(%x: f64, %y: f64, %o: f64):
    %m = arith.mulf %x, %y : f64
    %s = arith.addf %o, %m : f64
    linalg.yield %s : f64
  }
  return %c : memref<8x8xf64>
}

// -----

// Products with a vector, of integers, and sums of other things stay.
// CHECK-LABEL: func.func @others
// CHECK-NOT: scf.forall
// CHECK: return
func.func @others(%a: memref<8x64xf32>, %b: memref<64x1xf32>, %c: memref<8x1xf32>,
                  %i: memref<8x64xi32>, %j: memref<64x8xi32>, %k: memref<8x8xi32>) {
  linalg.generic {
      indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>,
                       affine_map<(i, j, k) -> (i, j)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<8x64xf32>, memref<64x1xf32>) outs(%c : memref<8x1xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %m = arith.mulf %x, %y : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  }
  linalg.generic {
      indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>,
                       affine_map<(i, j, k) -> (i, j)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%i, %j : memref<8x64xi32>, memref<64x8xi32>) outs(%k : memref<8x8xi32>) {
  ^bb0(%x: i32, %y: i32, %o: i32):
    %m = arith.muli %x, %y : i32
    %s = arith.addi %o, %m : i32
    linalg.yield %s : i32
  }
  return
}

// -----

// Where a left element of 0 adds nothing, only panels with a NaN or an infinity
// ask for it: a sum of all elements times 0 tells.
// CHECK-LABEL: func.func @skips_zeros
// CHECK:   %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<16xf32>
// CHECK:   scf.for {{.*}} iter_args(%[[SUM:.*]] = %[[ZERO]]) -> (vector<16xf32>)
// CHECK:     %[[X:.*]] = vector.fma %{{.*}}, %[[ZERO]], %[[SUM]]
// CHECK:     vector.fma %{{.*}}, %[[ZERO]], %[[X]]
// CHECK:   %[[TOTAL:.*]] = vector.reduction <add>
// CHECK:   %[[NUMBERS:.*]] = arith.cmpf ord, %[[TOTAL]], %[[TOTAL]]
// CHECK:   scf.if %[[NUMBERS]] {
// CHECK-NOT: arith.select
// CHECK-COUNT-24: vector.fma
// CHECK-NOT: vector.fma
// CHECK:   } else {
// CHECK:     %[[W:.*]] = vector.broadcast %[[E:.*]] : f32 to vector<16xf32>
// CHECK:     %[[ISZERO:.*]] = arith.cmpf oeq, %[[E]], %{{.*}} : f32
// CHECK:     %[[V:.*]] = arith.select %[[ISZERO]], %{{.*}}, %{{.*}} : vector<16xf32>
// CHECK:     vector.fma %[[W]], %[[V]],
// CHECK-COUNT-23: vector.fma
// CHECK-NOT: vector.fma
// CHECK:   return
func.func @skips_zeros(%a: memref<?x?xf16>, %b: memref<?x64xf32>, %c: memref<?x64xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.generic {
      indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>,
                       affine_map<(i, j, k) -> (i, j)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<?x?xf16>, memref<?x64xf32>) outs(%c : memref<?x64xf32>) {
  ^bb0(%x: f16, %y: f32, %o: f32):
    %w = arith.extf %x : f16 to f32
    %m = arith.mulf %w, %y : f32
    %none = arith.cmpf oeq, %w, %zero : f32
    %t = arith.select %none, %zero, %m : f32
    %s = arith.addf %t, %o : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// Another select is no contraction.
// CHECK-LABEL: func.func @skips_others
// CHECK-NOT: vector
// CHECK: return
func.func @skips_others(%a: memref<?x?xf32>, %b: memref<?x64xf32>, %c: memref<?x64xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.generic {
      indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>,
                       affine_map<(i, j, k) -> (i, j)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<?x?xf32>, memref<?x64xf32>) outs(%c : memref<?x64xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %m = arith.mulf %x, %y : f32
    %none = arith.cmpf oeq, %y, %zero : f32
    %t = arith.select %none, %zero, %m : f32
    %s = arith.addf %t, %o : f32
    linalg.yield %s : f32
  }
  return
}
