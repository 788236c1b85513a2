// RUN: fovea-opt --place-buffers --split-input-file %s | FileCheck %s
// RUN: fovea-opt --place-buffers=free-escaping=false --split-input-file %s | FileCheck %s --check-prefix=ESCAPE
// RUN: fovea-opt --place-buffers=stack-limit=0 --split-input-file %s \
// RUN:   | FileCheck %s --check-prefix=HEAP

// A small buffer is on the stack, at the start of the body of the outermost
// parallel loop.
// CHECK-LABEL: func.func @tiles
// CHECK: scf.forall
// CHECK-NEXT: %[[TILE:.*]] = memref.alloca() {alignment = 64 : i64} : memref<64xf32>
// CHECK: scf.for
// CHECK-NOT: memref.alloc(
// HEAP-LABEL: func.func @tiles
// HEAP: scf.forall
// HEAP-NEXT: scf.for
// HEAP-NEXT: %[[TILE:.*]] = memref.alloc()
// HEAP: memref.store
// HEAP-NEXT: memref.dealloc %[[TILE]]
func.func @tiles(%n: index, %x: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.forall (%i) in (%n) {
    scf.for %j = %c0 to %n step %c1 {
      %tile = memref.alloc() {alignment = 64 : i64} : memref<64xf32>
      memref.store %x, %tile[%c0] : memref<64xf32>
    }
  }
  return
}

// -----

// Others die after the last use of them or of a view, not at the end; what is
// returned stays.
// CHECK-LABEL: func.func @last_use
// CHECK: %[[A:.*]] = memref.alloc(
// CHECK: %[[B:.*]] = memref.alloc(
// CHECK: %[[VIEW:.*]] = memref.subview %[[A]]
// CHECK: linalg.exp ins(%[[VIEW]]
// CHECK-NEXT: memref.dealloc %[[A]]
// CHECK: linalg.exp
// CHECK-NOT: memref.dealloc
// CHECK: return %[[B]]
func.func @last_use(%n: index, %x: f32) -> memref<?xf32> {
  %a = memref.alloc(%n) : memref<?xf32>
  linalg.fill ins(%x : f32) outs(%a : memref<?xf32>)
  %b = memref.alloc(%n) : memref<?xf32>
  %view = memref.subview %a[0] [%n] [1] : memref<?xf32> to memref<?xf32, strided<[1]>>
  linalg.exp ins(%view : memref<?xf32, strided<[1]>>) outs(%b : memref<?xf32>)
  linalg.exp ins(%b : memref<?xf32>) outs(%b : memref<?xf32>)
  return %b : memref<?xf32>
}

// -----

// A buffer that a branch yields needs to be owned, or is left to the runtime.
// CHECK-LABEL: func.func @branches
// CHECK: scf.if
// CHECK: memref.dealloc
// ESCAPE-LABEL: func.func @branches
// ESCAPE-NOT: memref.dealloc
func.func @branches(%n: index, %c: i1, %y: memref<?xf32>) {
  %r = scf.if %c -> memref<?xf32> {
    %a = memref.alloc(%n) : memref<?xf32>
    linalg.exp ins(%y : memref<?xf32>) outs(%a : memref<?xf32>)
    scf.yield %a : memref<?xf32>
  } else {
    scf.yield %y : memref<?xf32>
  }
  linalg.exp ins(%r : memref<?xf32>) outs(%y : memref<?xf32>)
  return
}
