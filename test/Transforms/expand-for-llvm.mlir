// RUN: fovea-opt --expand-for-llvm --split-input-file %s | FileCheck %s

// CHECK-LABEL: func.func @rounded(
// CHECK-NOT:     arith.ceildivsi
// CHECK:         arith.divsi
// CHECK-NOT:     arith.cmpf
// CHECK:         arith.maximumf
func.func @rounded(%a: index, %b: index, %x: f32, %y: f32) -> (index, f32) {
  %0 = arith.ceildivsi %a, %b : index
  %1 = arith.maximumf %x, %y : f32
  return %0, %1 : index, f32
}

// -----

// A view of a view has one place, by one affine map.
// CHECK-LABEL: func.func @views(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: memref<64x32xf32>, %[[I:[a-z0-9]+]]: index
// CHECK-NOT:     memref.subview
// CHECK-NOT:     affine.
// CHECK:         %[[ROW:.*]] = arith.muli %[[I]], %{{.*}} overflow<nsw> : index
// CHECK:         %[[PLACE:.*]] = arith.addi %[[ROW]], %{{.*}} : index
// CHECK:         memref.reinterpret_cast %{{.*}} to offset: [%[[PLACE]]], sizes: [4, 4], strides: [32, 1]
func.func @views(%x: memref<64x32xf32>, %i: index) -> memref<4x4xf32, strided<[32, 1], offset: ?>> {
  %rows = memref.subview %x[%i, 0] [8, 32] [1, 1]
      : memref<64x32xf32> to memref<8x32xf32, strided<[32, 1], offset: ?>>
  %part = memref.subview %rows[2, 8] [4, 4] [1, 1]
      : memref<8x32xf32, strided<[32, 1], offset: ?>> to memref<4x4xf32, strided<[32, 1], offset: ?>>
  return %part : memref<4x4xf32, strided<[32, 1], offset: ?>>
}

// -----

// The minimum of a map stays a minimum.
// CHECK-LABEL: func.func @maps(
// CHECK-NOT:     affine.
// CHECK-NOT:     arith.select
// CHECK:         arith.minsi
func.func @maps(%i: index, %n: index) -> index {
  %0 = affine.apply affine_map<(d0) -> (d0 * 64)>(%i)
  %1 = affine.min affine_map<(d0)[s0] -> (s0 - d0, 64)>(%0)[%n]
  return %1 : index
}

// -----

// Affine loads of vectors become loads of vectors.
// CHECK-LABEL: func.func @vectors(
// CHECK-NOT:     affine.
// CHECK:         %[[PLACE:.*]] = arith.addi %{{.*}}, %{{.*}} : index
// CHECK:         vector.load %{{.*}}[%[[PLACE]]] : memref<64xf32>, vector<4xf32>
func.func @vectors(%x: memref<64xf32>) -> vector<4xf32> {
  %sum = arith.constant dense<0.0> : vector<4xf32>
  %result = affine.for %i = 0 to 8 iter_args(%carried = %sum) -> vector<4xf32> {
    %loaded = affine.vector_load %x[%i + 8] : memref<64xf32>, vector<4xf32>
    %next = arith.addf %carried, %loaded : vector<4xf32>
    affine.yield %next : vector<4xf32>
  }
  return %result : vector<4xf32>
}

// -----

// Ops without a pattern are neither folded nor removed.
// CHECK-LABEL: func.func @others(
// CHECK:         %[[ZERO:.*]] = arith.constant 0
// CHECK:         arith.muli
// CHECK:         %[[SUM:.*]] = arith.addi %{{.*}}, %[[ZERO]]
// CHECK:         return %[[SUM]]
func.func @others(%i: i32) -> i32 {
  %zero = arith.constant 0 : i32
  %unused = arith.muli %i, %i : i32
  %sum = arith.addi %i, %zero : i32
  return %sum : i32
}
