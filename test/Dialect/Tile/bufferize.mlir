// RUN: fovea-opt %s --host-bufferize --canonicalize --split-input-file | FileCheck %s

// Arguments are read in place; the result is a new buffer; the region stays.

// CHECK-LABEL: func @in_place
// CHECK-SAME:    %[[X:[^:]*]]: memref<?x?xf32, strided<[?, 1], offset: ?>>
// CHECK:       %[[A:.*]] = memref.alloc
// CHECK:       %[[O:.*]] = memref.cast %[[A]] : memref<?x?xf32> to memref<?x?xf32, strided<[?, 1], offset: ?>>
// CHECK:       tile.launch grid(%{{.*}}) warps 4 stages 2 ins(%[[X]] : {{.*}}) outs(%[[O]] :
// CHECK-NEXT:  ^bb0(%[[I:[^:]*]]: index, %[[MX:[^:]*]]: memref<{{.*}}>, %[[MO:[^:]*]]: memref<{{.*}}>):
// CHECK:         tile.load %[[MX]][%[[I]],
// CHECK:         tile.store %{{.*}}, %[[MO]]
// CHECK-NOT:   memref.copy
// CHECK:       return %[[A]]
!m = memref<?x?xf32, strided<[?, 1], offset: ?>>
func.func @in_place(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %n = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m, %n) : tensor<?x?xf32>
  %r = tile.launch grid(%m) warps 4 stages 2 ins(%x : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) {
  ^bb0(%i: index, %X: !m, %O: !m):
    %t = tile.load %X[%i, %c0] dims [0, 1] : !m -> !tile.fragment<16x16xf32>
    tile.store %t, %O[%i, %c0] dims [0, 1] : !tile.fragment<16x16xf32>, !m
  } -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}

// -----

// What is read is not overwritten: outs that are ins, too, are copied.

// CHECK-LABEL: func @alias
// CHECK:       %[[A:.*]] = memref.alloc() {{.*}} : memref<16x16xf32>
// CHECK:       linalg.fill {{.*}} outs(%[[A]]
// CHECK:       %[[B:.*]] = memref.alloc
// CHECK:       memref.copy %[[A]], %[[B]]
// CHECK:       tile.launch
!m = memref<16x16xf32, strided<[?, 1], offset: ?>>
func.func @alias(%f: f32) -> tensor<16x16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<16x16xf32>
  %x = linalg.fill ins(%f : f32) outs(%e : tensor<16x16xf32>) -> tensor<16x16xf32>
  %r = tile.launch grid(%c1) warps 4 ins(%x : tensor<16x16xf32>) outs(%x : tensor<16x16xf32>) {
  ^bb0(%i: index, %X: !m, %O: !m):
    %t = tile.load %X[%i, %c0] dims [0, 1] : !m -> !tile.fragment<16x16xf32>
    tile.store %t, %O[%i, %c0] dims [0, 1] : !tile.fragment<16x16xf32>, !m
  } -> tensor<16x16xf32>
  return %r : tensor<16x16xf32>
}

// -----

// Elements that do not follow one another are packed.

// CHECK-LABEL: func @strided
// CHECK:       %[[S:.*]] = memref.subview
// CHECK:       %[[P:.*]] = memref.alloc() {{.*}} : memref<16x8xf32>
// CHECK:       memref.copy %[[S]], %[[P]]
// CHECK:       %[[C:.*]] = memref.cast %[[P]]
// CHECK:       tile.launch {{.*}} ins(%[[C]] :
!m = memref<16x8xf32, strided<[?, 1], offset: ?>>
func.func @strided(%x: tensor<16x16xf32>) -> tensor<16x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %s = tensor.extract_slice %x[0, 0] [16, 8] [1, 2] : tensor<16x16xf32> to tensor<16x8xf32>
  %e = tensor.empty() : tensor<16x8xf32>
  %r = tile.launch grid(%c1) warps 4 ins(%s : tensor<16x8xf32>) outs(%e : tensor<16x8xf32>) {
  ^bb0(%i: index, %X: !m, %O: !m):
    %t = tile.load %X[%i, %c0] dims [0, 1] : !m -> !tile.fragment<16x8xf32>
    tile.store %t, %O[%i, %c0] dims [0, 1] : !tile.fragment<16x8xf32>, !m
  } -> tensor<16x8xf32>
  return %r : tensor<16x8xf32>
}
