// RUN: fovea-opt %s --tile-pack-operands --split-input-file | FileCheck %s

// An operand that TMA reads is tested on the host, and replaced by a copy whose
// rows are whole units of 16 bytes: 72 columns of 20 would be 40 bytes.

// CHECK-LABEL: func @tested
// CHECK-SAME:    %[[X:[^:]*]]: memref<?x?x20xbf16, strided<[?, ?, 1], offset: ?>>
// CHECK:       %{{.*}}, %[[OFFSET:.*]], %[[SIZES:.*]]:3, %[[STRIDES:.*]]:3 = memref.extract_strided_metadata %[[X]]
// CHECK:       %[[BASE:.*]] = memref.extract_aligned_pointer_as_index %[[X]]
// CHECK:       %[[SKIP:.*]] = arith.muli %[[OFFSET]], %c2{{ }}
// CHECK:       %[[ADDRESS:.*]] = arith.addi %[[BASE]], %[[SKIP]]
// CHECK:       %[[BYTES:.*]] = arith.muli %[[STRIDES]]#0, %c2{{[^0-9]}}
// CHECK:       %[[SOME:.*]] = arith.ori %[[ADDRESS]], %[[BYTES]]
// CHECK:       %[[BYTES1:.*]] = arith.muli %[[STRIDES]]#1, %c2{{[^0-9]}}
// CHECK:       %[[BITS:.*]] = arith.ori %[[SOME]], %[[BYTES1]]
// CHECK-NOT:   %[[STRIDES]]#2
// CHECK:       arith.cmpi sge, %[[BITS]], %c0{{ }}
// CHECK:       arith.andi %[[BITS]], %c15{{ }}
// CHECK:       %[[SUITS:.*]] = arith.andi
// CHECK:       %[[P:.*]] = scf.if %[[SUITS]] -> (memref<?x?x20xbf16, strided<[?, ?, 1], offset: ?>>) {
// CHECK-NEXT:    scf.yield %[[X]]
// CHECK-NEXT:  } else {
// CHECK-NEXT:    %[[A:.*]] = memref.alloc(%[[SIZES]]#0, %[[SIZES]]#1) : memref<?x?x24xbf16>
// CHECK-NEXT:    %[[V:.*]] = memref.subview %[[A]][0, 0, 0] [%[[SIZES]]#0, %[[SIZES]]#1, 20] [1, 1, 1]
// CHECK-NEXT:    memref.copy %[[X]], %[[V]]
// CHECK-NEXT:    %[[C:.*]] = memref.cast %[[V]]
// CHECK-NEXT:    scf.yield %[[C]]
// CHECK:       tile.launch {{.*}} ins(%[[P]] :
// CHECK:       %[[COPIED:.*]] = arith.xori %[[SUITS]], %true
// CHECK:       scf.if %[[COPIED]] {
// CHECK-NEXT:    memref.dealloc %[[P]]
!x = memref<?x?x20xbf16, strided<[?, ?, 1], offset: ?>>
!o = memref<?x20xf32, strided<[?, 1], offset: ?>>
!tile = !tile.shared<64x32xbf16, swizzle = 64>
func.func @tested(%x: !x, %o: !o, %n: index) {
  tile.launch grid(%n) warps 4 ins(%x : !x) outs(%o : !o) {
  ^bb0(%i: index, %X: !x, %O: !o):
    %c0 = arith.constant 0 : index
    %ring = tile.ring : !tile.ring<2 x !tile>
    %slot = tile.acquire %ring[%c0] : !tile.ring<2 x !tile>
    tile.load_async %X[%i, %c0, %c0] dims [1, 2] into %slot signals %ring[%c0] : !x, !tile.ring<2 x !tile>
  }
  return
}

// -----

// What needs no test: buffers of the function itself, and operands that are not
// read by descriptors.

// CHECK-LABEL: func @untested
// CHECK-NOT:   scf.if
// CHECK:       return
!x = memref<64x64xbf16, strided<[?, 1], offset: ?>>
!o = memref<64x64xbf16, strided<[?, 1], offset: ?>>
!tile = !tile.shared<64x64xbf16, swizzle = 128>
!rows = !tile.shared<64x64xbf16>
func.func @untested(%y: !x, %z: !x, %o: !o, %n: index) {
  %a = memref.alloc() : memref<64x64xbf16>
  %x = memref.cast %a : memref<64x64xbf16> to !x
  %table = memref.alloc() : memref<4x4xindex>
  tile.launch grid(%n) warps 4 ins(%x, %y, %z, %table : !x, !x, !x, memref<4x4xindex>) outs(%o : !o) {
  ^bb0(%i: index, %X: !x, %Y: !x, %Z: !x, %T: memref<4x4xindex, strided<[?, 1], offset: ?>>, %O: !o):
    %c0 = arith.constant 0 : index
    %ring = tile.ring : !tile.ring<2 x !tile>
    %slot = tile.acquire %ring[%c0] : !tile.ring<2 x !tile>
    tile.load_async %X[%i, %c0] dims [0, 1] into %slot signals %ring[%c0] : !x, !tile.ring<2 x !tile>
    %plain = tile.load %Y[%i, %c0] dims [0, 1] : !x -> !tile
    // Without a swizzle it is copied otherwise.
    %other = tile.ring : !tile.ring<2 x !rows>
    %place = tile.acquire %other[%c0] : !tile.ring<2 x !rows>
    tile.load_async %Z[%i, %c0] dims [0, 1] into %place signals %other[%c0] : !x, !tile.ring<2 x !rows>
  }
  memref.dealloc %a : memref<64x64xbf16>
  memref.dealloc %table : memref<4x4xindex>
  return
}

// -----

// What has no elements is not read.

// CHECK-LABEL: func @empty
// CHECK-NOT:   scf.if
// CHECK:       return
!x = memref<2x0x20xbf16, strided<[?, ?, 1], offset: ?>>
!o = memref<?x20xf32, strided<[?, 1], offset: ?>>
!tile = !tile.shared<64x32xbf16, swizzle = 64>
func.func @empty(%x: !x, %o: !o, %n: index) {
  tile.launch grid(%n) warps 4 ins(%x : !x) outs(%o : !o) {
  ^bb0(%i: index, %X: !x, %O: !o):
    %c0 = arith.constant 0 : index
    %ring = tile.ring : !tile.ring<2 x !tile>
    %slot = tile.acquire %ring[%c0] : !tile.ring<2 x !tile>
    tile.load_async %X[%i, %c0, %c0] dims [1, 2] into %slot signals %ring[%c0] : !x, !tile.ring<2 x !tile>
  }
  return
}

// -----

// The copy of an output goes back.

// CHECK-LABEL: func @output
// CHECK:       %[[P:.*]] = scf.if %[[SUITS:.*]] -> (memref<?x?x64xbf16, strided<[?, ?, 1], offset: ?>>) {
// CHECK:         memref.copy %arg0
// CHECK:       tile.launch {{.*}} outs(%[[P]] :
// CHECK:       scf.if
// CHECK-NEXT:    memref.copy %[[P]], %arg0
// CHECK-NEXT:    memref.dealloc %[[P]]
!o = memref<?x?x64xbf16, strided<[?, ?, 1], offset: ?>>
!tile = !tile.shared<64x64xbf16, swizzle = 128>
func.func @output(%o: !o, %n: index) {
  tile.launch grid(%n) warps 4 outs(%o : !o) {
  ^bb0(%i: index, %O: !o):
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : bf16
    %f = tile.fill %zero : !tile.fragment<64x64xbf16>
    %t = tile.to_shared %f : !tile.fragment<64x64xbf16> -> !tile
    tile.store_async %t, %O[%i, %c0, %c0] dims [1, 2] : !tile, !o
    tile.wait_stores
  }
  return
}

// -----

// Runs of rows that a descriptor copies need its alignment; rows that threads
// copy do not.

// CHECK-LABEL: func @runs
// CHECK:       %[[P:.*]] = scf.if %{{.*}} -> (memref<?x64xbf16, strided<[?, 1], offset: ?>>) {
// CHECK:         memref.copy %arg0
// CHECK-NOT:   memref.copy
// CHECK:       tile.launch {{.*}} ins(%[[P]], %arg1 :
!x = memref<?x64xbf16, strided<[?, 1], offset: ?>>
!tile = !tile.shared<64x64xbf16, swizzle = 128>
func.func @runs(%x: !x, %y: !x, %o: !x, %n: index) {
  tile.launch grid(%n) warps 4 ins(%x, %y : !x, !x) outs(%o : !x) {
  ^bb0(%i: index, %X: !x, %Y: !x, %O: !x):
    %c0 = arith.constant 0 : index
    %ring = tile.ring : !tile.ring<2 x !tile>
    %slot = tile.acquire %ring[%c0] : !tile.ring<2 x !tile>
    tile.load_async %X dims [0, 1] runs 16 {
    ^bb0(%r: index):
      tile.yield %r : index
    } into %slot signals %ring[%c0] : !x, !tile.ring<2 x !tile>
    tile.load_async %Y dims [0, 1] runs 1 {
    ^bb0(%r: index):
      tile.yield %r : index
    } into %slot signals %ring[%c0] : !x, !tile.ring<2 x !tile>
  }
  return
}
