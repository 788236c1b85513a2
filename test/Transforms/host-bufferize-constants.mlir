// RUN: fovea-opt %s --host-bufferize | FileCheck %s

// Constants in memory have names and an order by their first uses, whatever the order
// in which functions became buffers, and no name that is another's.

// CHECK:      memref.global "private" constant @constant0 : memref<2xf32> = dense<[1.000000e+00, 2.000000e+00]>
// CHECK-NEXT: memref.global "private" constant @constant2 : memref<3xi32> = dense<[3, 4, 5]>
// CHECK-NEXT: memref.global "private" constant @constant3 : memref<2xf32> = dense<[6.000000e+00, 7.000000e+00]>
// CHECK-NEXT: memref.global "private" constant @constant4 : memref<4xf32> = dense<[8.000000e+00, 9.000000e+00, 1.000000e+01, 1.100000e+01]>

// CHECK-LABEL: func.func @first
// CHECK: memref.get_global @constant0
// CHECK: memref.get_global @constant2
func.func @first(%i: index) -> (f32, i32) {
  %a = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %b = arith.constant dense<[3, 4, 5]> : tensor<3xi32>
  %x = tensor.extract %a[%i] : tensor<2xf32>
  %y = tensor.extract %b[%i] : tensor<3xi32>
  return %x, %y : f32, i32
}

// CHECK-LABEL: func.func @second
// CHECK: memref.get_global @constant3
// CHECK: memref.get_global @constant0
func.func @second(%i: index) -> (f32, f32) {
  %a = arith.constant dense<[6.0, 7.0]> : tensor<2xf32>
  %b = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %x = tensor.extract %a[%i] : tensor<2xf32>
  %y = tensor.extract %b[%i] : tensor<2xf32>
  return %x, %y : f32, f32
}

// CHECK-LABEL: func.func @constant1
// CHECK: memref.get_global @constant4
func.func @constant1(%i: index) -> f32 {
  %a = arith.constant dense<[8.0, 9.0, 10.0, 11.0]> : tensor<4xf32>
  %x = tensor.extract %a[%i] : tensor<4xf32>
  return %x : f32
}

// Those that the program has keep theirs.
// CHECK: memref.global "private" constant @given : memref<2xi32> = dense<[1, 2]>
// CHECK-LABEL: func.func @known
// CHECK: memref.get_global @given
memref.global "private" constant @given : memref<2xi32> = dense<[1, 2]>
func.func @known(%i: index) -> i32 {
  %a = memref.get_global @given : memref<2xi32>
  %x = memref.load %a[%i] : memref<2xi32>
  return %x : i32
}
