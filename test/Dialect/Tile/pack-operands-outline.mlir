// RUN: fovea-opt %s --tile-pack-operands=outline-tests --split-input-file | FileCheck %s
// RUN: fovea-opt %s --tile-pack-operands=outline-tests --split-input-file --debug-only=tile-pack-operands -o /dev/null 2>&1 | FileCheck %s --check-prefix=LOG

// Rows of 128 bytes are rarely misaligned: another function tests an operand, a
// view of one, and an output, and nothing is copied here.

// LOG:         operand 1, memref<?x64xbf16, strided<[?, 1], offset: ?>>: the caller tests its strides
// LOG-NEXT:    operand 2, memref<?x64xbf16, strided<[?, 1], offset: ?>>: the caller tests its strides
// CHECK-LABEL: func @tested
// CHECK-NOT:   scf.if
// CHECK:       %[[VIEW:.*]] = memref.subview %arg0
// CHECK-NOT:   scf.if
// CHECK:       tile.launch {{.*}} ins(%[[VIEW]] : {{.*}}) outs(%arg1 :
// CHECK-LABEL: func @tested.aligned
// CHECK-SAME:    (%[[X:.*]]: memref<?x128xbf16, strided<[?, 1], offset: ?>>, %[[O:[^:]*]]: memref<{{.*}}>, %[[N:.*]]: index) -> index {
// CHECK:       %[[PART:.*]] = memref.subview %[[X]][0, 64] [%[[N]], 64] [1, 1]
// CHECK:       memref.extract_aligned_pointer_as_index %[[PART]]
// CHECK:       arith.cmpi sge
// CHECK:       arith.cmpi eq
// CHECK:       %[[FIRST:.*]] = arith.andi {{.*}} : i1
// CHECK:       memref.extract_aligned_pointer_as_index %[[O]]
// CHECK:       %[[SECOND:.*]] = arith.andi {{.*}} : i1
// CHECK:       %[[ALL:.*]] = arith.andi %[[FIRST]], %[[SECOND]] : i1
// CHECK-NEXT:  %[[RESULT:.*]] = arith.index_castui %[[ALL]] : i1 to index
// CHECK-NEXT:  return %[[RESULT]]
!w = memref<?x128xbf16, strided<[?, 1], offset: ?>>
!x = memref<?x64xbf16, strided<[?, 1], offset: ?>>
!tile = !tile.shared<64x64xbf16, swizzle = 128>
func.func @tested(%w: !w, %o: !x, %n: index) {
  %x = memref.subview %w[0, 64] [%n, 64] [1, 1] : !w to !x
  tile.launch grid(%n) warps 4 ins(%x : !x) outs(%o : !x) {
  ^bb0(%i: index, %X: !x, %O: !x):
    %c0 = arith.constant 0 : index
    %ring = tile.ring : !tile.ring<2 x !tile>
    %slot = tile.acquire %ring[%c0] : !tile.ring<2 x !tile>
    tile.load_async %X[%i, %c0] dims [0, 1] into %slot signals %ring[%c0] : !x, !tile.ring<2 x !tile>
    %zero = arith.constant 0.0 : bf16
    %f = tile.fill %zero : !tile.fragment<64x64xbf16>
    %t = tile.to_shared %f : !tile.fragment<64x64xbf16> -> !tile
    tile.store_async %t, %O[%i, %c0] dims [0, 1] : !tile, !x
  }
  return
}

// -----

// Copied here: rows that are no multiple of 16 bytes, which most tensors with
// such rows are not aligned to; views whose place lies in memory, or depends on
// what happens before; constants, which are in the device's memory only while the
// function runs; operands of a private function, which no caller tests.

// LOG-COUNT-6: copied where a descriptor does not suit its strides
// LOG-NOT:     operand
// CHECK-NOT:   .aligned
!x = memref<?x20xbf16, strided<[?, 1], offset: ?>>
!y = memref<?x64xbf16, strided<[?, 1], offset: ?>>
!z = memref<?x?xbf16, strided<[?, 1], offset: ?>>
!t = memref<1xindex>
memref.global "private" constant @numbers : memref<64x64xbf16> = dense<1.0>
!few = !tile.shared<64x32xbf16, swizzle = 64>
!tile = !tile.shared<64x64xbf16, swizzle = 128>
func.func @copied(%x: !x, %z: !z, %w: !y, %t: !t, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %first = memref.load %t[%c0] : !t
  %numbers = memref.get_global @numbers : memref<64x64xbf16>
  %n0 = memref.cast %numbers : memref<64x64xbf16> to !y
  %y = memref.subview %w[%first, 0] [%n, 64] [1, 1] : !y to !y
  scf.for %row = %c0 to %n step %c1 {
    %u = memref.subview %w[%row, 0] [%n, 64] [1, 1] : !y to !y
    tile.launch grid(%n) warps 4 ins(%x, %y, %z, %u, %n0 : !x, !y, !z, !y, !y) outs(%w : !y) {
    ^bb0(%i: index, %X: !x, %Y: !y, %Z: !z, %U: !y, %N: !y, %W: !y):
      %0 = arith.constant 0 : index
      %few = tile.ring : !tile.ring<2 x !few>
      %a = tile.acquire %few[%0] : !tile.ring<2 x !few>
      tile.load_async %X[%i, %0] dims [0, 1] into %a signals %few[%0] : !x, !tile.ring<2 x !few>
      %ring = tile.ring : !tile.ring<2 x !tile>
      %b = tile.acquire %ring[%0] : !tile.ring<2 x !tile>
      tile.load_async %Y[%i, %0] dims [0, 1] into %b signals %ring[%0] : !y, !tile.ring<2 x !tile>
      tile.load_async %Z[%i, %0] dims [0, 1] into %b signals %ring[%0] : !z, !tile.ring<2 x !tile>
      tile.load_async %U[%i, %0] dims [0, 1] into %b signals %ring[%0] : !y, !tile.ring<2 x !tile>
      tile.load_async %N[%i, %0] dims [0, 1] into %b signals %ring[%0] : !y, !tile.ring<2 x !tile>
    }
  }
  return
}

func.func private @hidden(%y: !y, %o: !y, %n: index) {
  tile.launch grid(%n) warps 4 ins(%y : !y) outs(%o : !y) {
  ^bb0(%i: index, %Y: !y, %O: !y):
    %0 = arith.constant 0 : index
    %ring = tile.ring : !tile.ring<2 x !tile>
    %b = tile.acquire %ring[%0] : !tile.ring<2 x !tile>
    tile.load_async %Y[%i, %0] dims [0, 1] into %b signals %ring[%0] : !y, !tile.ring<2 x !tile>
  }
  return
}
