// RUN: fovea-opt --convert-host-to-llvm --reconcile-unrealized-casts %s | FileCheck %s

// CHECK-DAG: llvm.func @_mlir_memref_to_llvm_aligned_alloc
// CHECK-DAG: llvm.func @_mlir_memref_to_llvm_free

// Public functions have a C interface.
// CHECK-LABEL: llvm.func @twice
// CHECK: llvm.fadd
// CHECK: llvm.call @_mlir_memref_to_llvm_aligned_alloc
// CHECK: llvm.call @_mlir_memref_to_llvm_free
// CHECK: llvm.func @_mlir_ciface_twice
func.func @twice(%x: memref<4xf32>, %i: index) -> f32 {
  %v = memref.load %x[%i] : memref<4xf32>
  %s = arith.addf %v, %v : f32
  %t = memref.alloc() {alignment = 64 : i64} : memref<4xf32>
  memref.store %s, %t[%i] : memref<4xf32>
  memref.dealloc %t : memref<4xf32>
  return %s : f32
}

// CHECK-LABEL: llvm.func @hidden
// CHECK-NOT: _mlir_ciface_hidden
func.func private @hidden() {
  return
}
