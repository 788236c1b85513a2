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

// Sums in AMX tiles that a loop carries.

// CHECK-LABEL: llvm.func @tiles
// CHECK: llvm.call_intrinsic "llvm.x86.tileloadd64.internal"
// CHECK: llvm.br ^[[LOOP:.*]]({{.*}} : i64, !llvm.x86_amx)
// CHECK: ^[[LOOP]]({{.*}}: i64, %[[SUM:.*]]: !llvm.x86_amx):
// CHECK: llvm.call_intrinsic "llvm.x86.tdpbf16ps.internal"({{.*}}%[[SUM]]
func.func @tiles(%a: memref<16x64xbf16>, %acc: memref<16x16xf32>) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %first = amx.tile_load %acc[%c0, %c0] : memref<16x16xf32> into !amx.tile<16x16xf32>
  cf.br ^loop(%c0, %first : index, !amx.tile<16x16xf32>)
^loop(%k: index, %sum: !amx.tile<16x16xf32>):
  %left = amx.tile_load %a[%c0, %k] : memref<16x64xbf16> into !amx.tile<16x32xbf16>
  %next = amx.tile_mulf %left, %left, %sum : !amx.tile<16x32xbf16>, !amx.tile<16x32xbf16>, !amx.tile<16x16xf32>
  %i = arith.addi %k, %c32 : index
  %more = arith.cmpi slt, %i, %c64 : index
  cf.cond_br %more, ^loop(%i, %next : index, !amx.tile<16x16xf32>), ^end
^end:
  amx.tile_store %acc[%c0, %c0], %next : memref<16x16xf32>, !amx.tile<16x16xf32>
  return
}
