// A step's tiles that ops have memory of their own for are gone when the next
// step writes them: nothing of such a loop runs a step later. Its ops are put in
// another order within the step.
// RUN: fovea-opt %s --tile-assign-layouts --tile-multibuffer --tile-specialize-warps --tile-schedule | FileCheck %s
// RUN: fovea-opt %s --tile-assign-layouts --tile-multibuffer --tile-specialize-warps --tile-schedule | FileCheck %s --check-prefix=ORDER
// RUN: fovea-opt %s --tile-assign-layouts --tile-multibuffer --tile-specialize-warps --tile-schedule --tile-expand-pipeline | FileCheck %s --check-prefix=EXPAND

!g = memref<?x64xbf16, strided<[?, 1], offset: ?>>
!columns = memref<?x64x1xbf16, strided<[?, ?, 1], offset: ?>>
!s = !tile.fragment<64x64xf32>

// What is written is read by a product that needs another one of the step.
// CHECK-LABEL: func.func @written(
// CHECK: tile.role "compute"
// CHECK-NOT: tile.stage = 1
// CHECK: tile.mma_async wgmma {{.*}} transpose_b {{.*}}tile.stage = 0
// CHECK-NOT: tile.stage = 1
// CHECK: tile.to_shared {{.*}}tile.stage = 0
// CHECK-NOT: tile.stage = 1
// CHECK: tile.mma_async wgmma {{.*}} into {{.*}}tile.stage = 0
// CHECK-NOT: tile.stage = 1
// CHECK: tile.store

// The ops stay in the program's order, although the step has another one: the
// slot of the values is waited for third. Only --tile-expand-pipeline moves them.
// ORDER-LABEL: func.func @written(
// ORDER: tile.role "compute"
// ORDER: scf.for
// ORDER-NEXT: tile.wait %{{.*}}tile.order = 0 : i64
// ORDER-NEXT: tile.mma_async wgmma %{{.*}}tile.order = 1 : i64
// ORDER-NEXT: tile.wait_mma %{{.*}}tile.order = 3 : i64
// ORDER-NEXT: tile.release %{{.*}}tile.order = 4 : i64
// ORDER-NEXT: tile.map {{.*}}tile.order = 5 : i64
// ORDER: tile.to_shared %{{.*}}tile.order = 6 : i64
// ORDER-NEXT: tile.wait %{{.*}}tile.order = 2 : i64
// ORDER-NEXT: tile.mma_async wgmma %{{.*}}tile.order = 7 : i64
// ORDER-NEXT: tile.wait_mma %{{.*}}tile.order = 8 : i64

// One op writes the tile: no copy of it before the loop has memory of its own.
// EXPAND-LABEL: func.func @written(
// EXPAND: tile.role "compute"
// EXPAND-NOT: tile.to_shared
// EXPAND: scf.for
// EXPAND: %[[S:.*]] = tile.mma_async wgmma {{.*}} transpose_b
// EXPAND: tile.wait_mma %[[S]]
// EXPAND: %[[P:.*]] = tile.to_shared
// EXPAND: %[[O:.*]] = tile.mma_async wgmma %[[P]], {{.*}} into
// EXPAND: tile.wait_mma %[[O]] :
// EXPAND: scf.yield
// EXPAND-NOT: tile.to_shared
// EXPAND: tile.store
func.func @written(%q: memref<?x64xbf16>, %k: memref<?x64xbf16>, %v: memref<?x64xbf16>, %out: memref<?x64xf32>, %keys: index) {
  %c1 = arith.constant 1 : index
  tile.launch grid(%c1) warps 4 stages 2
      ins(%q, %k, %v : memref<?x64xbf16>, memref<?x64xbf16>, memref<?x64xbf16>)
      outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %K: !g, %V: !g, %O: memref<?x64xf32, strided<[?, 1], offset: ?>>):
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %qt = tile.load %Q[%c0, %c0] dims [0, 1] : !g -> !tile.shared<64x64xbf16>
    %acc0 = tile.fill %zero : !s
    %end = scf.for %j = %c0 to %keys step %c64 iter_args(%acc = %acc0) -> (!s) {
      %kt = tile.load %K[%j, %c0] dims [0, 1] : !g -> !tile.shared<64x64xbf16>
      %vt = tile.load %V[%j, %c0] dims [0, 1] : !g -> !tile.shared<64x64xbf16>
      %x = tile.mma %qt, %kt transpose_b : !tile.shared<64x64xbf16>, !tile.shared<64x64xbf16> -> !s
      %narrow = tile.map ins(%x : !s) {
      ^bb0(%a: f32, %i: index, %n: index):
        %t = arith.truncf %a : f32 to bf16
        tile.yield %t : bf16
      } -> !tile.fragment<64x64xbf16>
      %p = tile.to_shared %narrow transposed : !tile.fragment<64x64xbf16> -> !tile.shared<64x64xbf16>
      %acc1 = tile.mma %p, %vt into %acc : !tile.shared<64x64xbf16>, !tile.shared<64x64xbf16>, !s -> !s
      scf.yield %acc1 : !s
    }
    tile.store %end, %O[%c0, %c0] dims [0, 1] : !s, memref<?x64xf32, strided<[?, 1], offset: ?>>
  }
  return
}

// Values that TMA cannot copy are loaded by all threads.
// CHECK-LABEL: func.func @loaded(
// CHECK: tile.role "compute"
// CHECK-NOT: tile.stage = 1
// CHECK: tile.load %{{.*}}tile.stage = 0
// CHECK-NOT: tile.stage = 1
// CHECK: tile.store

// EXPAND-LABEL: func.func @loaded(
// EXPAND: tile.role "compute"
// EXPAND-NOT: tile.load %
// EXPAND: scf.for
// EXPAND: tile.load %
// EXPAND: scf.yield
// EXPAND-NOT: tile.load %
// EXPAND: tile.store
func.func @loaded(%q: memref<?x64xbf16>, %k: memref<?x64xbf16>, %v: memref<?x64x1xbf16>, %out: memref<?x64xf32>, %keys: index) {
  %c1 = arith.constant 1 : index
  tile.launch grid(%c1) warps 4 stages 2
      ins(%q, %k, %v : memref<?x64xbf16>, memref<?x64xbf16>, memref<?x64x1xbf16>)
      outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %K: !g, %V: !columns, %O: memref<?x64xf32, strided<[?, 1], offset: ?>>):
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %qt = tile.load %Q[%c0, %c0] dims [0, 1] : !g -> !tile.shared<64x64xbf16>
    %acc0 = tile.fill %zero : !s
    %end = scf.for %j = %c0 to %keys step %c64 iter_args(%acc = %acc0) -> (!s) {
      %kt = tile.load %K[%j, %c0] dims [0, 1] : !g -> !tile.shared<64x64xbf16>
      %vt = tile.load %V[%j, %c0, %c0] dims [0, 1] : !columns -> !tile.shared<64x64xbf16>
      %x = tile.mma %qt, %kt transpose_b : !tile.shared<64x64xbf16>, !tile.shared<64x64xbf16> -> !s
      %narrow = tile.map ins(%x : !s) {
      ^bb0(%a: f32, %i: index, %n: index):
        %t = arith.truncf %a : f32 to bf16
        tile.yield %t : bf16
      } -> !tile.fragment<64x64xbf16>
      %acc1 = tile.mma %narrow, %vt into %acc : !tile.fragment<64x64xbf16>, !tile.shared<64x64xbf16>, !s -> !s
      scf.yield %acc1 : !s
    }
    tile.store %end, %O[%c0, %c0] dims [0, 1] : !s, memref<?x64xf32, strided<[?, 1], offset: ?>>
  }
  return
}

// The role that copies goes the way of the role that computes, which takes values a
// step after keys.
// CHECK-LABEL: func.func @filled(
// CHECK: tile.role "load"
// CHECK: scf.for %[[J:[a-z0-9]+]] = {{.*}} iter_args(%[[N:[a-z0-9]+]] =
// CHECK-NEXT: %[[KSLOT:.*]] = tile.acquire %[[K:[0-9]+]][%[[N]]] {tile.order = 0 : i64, tile.stage = 0 : i64}
// CHECK-NEXT: tile.load_async {{.*}} into %[[KSLOT]] signals %[[K]][%[[N]]] {tile.order = 1 : i64, tile.stage = 0 : i64}
// CHECK-NEXT: %[[LEFT:.*]] = arith.subi %{{.*}}, %[[J]] {tile.order = 4 : i64, tile.stage = 1 : i64}
// CHECK-NEXT: %[[VSLOT:.*]] = tile.acquire %[[V:[0-9]+]][%[[N]]] {tile.order = 5 : i64, tile.stage = 1 : i64}
// CHECK-NEXT: tile.load_async {{.*}} rows({{.*}}, %[[LEFT]]) into %[[VSLOT]] signals %[[V]][%[[N]]] {tile.order = 6 : i64, tile.stage = 1 : i64}
// CHECK: %[[NEXT:.*]] = arith.addi %[[N]], {{.*}} {tile.order = 3 : i64, tile.stage = 0 : i64}
// CHECK-NEXT: scf.yield %[[NEXT]]

// EXPAND-LABEL: func.func @filled(
// EXPAND: tile.role "load"
// EXPAND: scf.if
// EXPAND-NEXT: %[[K0:.*]] = tile.acquire %[[K:[0-9]+]][%{{.*}}]
// EXPAND-NEXT: tile.load_async {{.*}} into %[[K0]]
// EXPAND: scf.for %[[NEXT:[a-z0-9]+]] = %{{.*}} iter_args(%[[N:[a-z0-9]+]] = %{{.*}}, %[[J:[a-z0-9]+]] = %{{.*}}, %[[LAST:[a-z0-9]+]] =
// EXPAND-NEXT: %[[KN:.*]] = tile.acquire %[[K]][%[[N]]]
// EXPAND-NEXT: tile.load_async %{{[a-z0-9]+}}[%[[NEXT]], {{.*}} into %[[KN]]
// EXPAND: %[[VN:.*]] = tile.acquire %[[V:[0-9]+]][%[[LAST]]]
// EXPAND-NEXT: tile.load_async %{{[a-z0-9]+}}[%[[J]], {{.*}} into %[[VN]]
// EXPAND: scf.yield
// EXPAND: %[[VE:.*]] = tile.acquire %[[V]]
// EXPAND-NEXT: tile.load_async {{.*}} into %[[VE]]
// EXPAND-NOT: tile.acquire
// EXPAND: tile.role "compute"
func.func @filled(%q: memref<?x64xbf16>, %k: memref<?x64xbf16>, %v: memref<?x64xbf16>, %out: memref<?x64xf32>, %keys: index) {
  %c1 = arith.constant 1 : index
  tile.launch grid(%c1) warps 4 stages 2
      ins(%q, %k, %v : memref<?x64xbf16>, memref<?x64xbf16>, memref<?x64xbf16>)
      outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %K: !g, %V: !g, %O: memref<?x64xf32, strided<[?, 1], offset: ?>>):
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %qt = tile.load %Q[%c0, %c0] dims [0, 1] : !g -> !tile.shared<64x64xbf16>
    %acc0 = tile.fill %zero : !s
    %end = scf.for %j = %c0 to %keys step %c64 iter_args(%acc = %acc0) -> (!s) {
      %kt = tile.load %K[%j, %c0] dims [0, 1] : !g -> !tile.shared<64x64xbf16>
      %left = arith.subi %keys, %j : index
      %vt = tile.load %V[%j, %c0] dims [0, 1] rows(%c0, %left) : !g -> !tile.shared<64x64xbf16>
      %x = tile.mma %qt, %kt transpose_b : !tile.shared<64x64xbf16>, !tile.shared<64x64xbf16> -> !s
      %narrow = tile.map ins(%x : !s) {
      ^bb0(%a: f32, %i: index, %n: index):
        %t = arith.truncf %a : f32 to bf16
        tile.yield %t : bf16
      } -> !tile.fragment<64x64xbf16>
      %acc1 = tile.mma %narrow, %vt into %acc : !tile.fragment<64x64xbf16>, !tile.shared<64x64xbf16>, !s -> !s
      scf.yield %acc1 : !s
    }
    tile.store %end, %O[%c0, %c0] dims [0, 1] : !s, memref<?x64xf32, strided<[?, 1], offset: ?>>
  }
  return
}

!b = memref<?x64xi8, strided<[?, 1], offset: ?>>

// The role that widens does, too, and the one that copies bytes for it.
// CHECK-LABEL: func.func @widened(
// CHECK: tile.role "load"
// CHECK: scf.for
// CHECK: tile.acquire {{.*}}tile.stage = 0 {{.*}}xi8
// CHECK: tile.acquire {{.*}}tile.stage = 1 {{.*}}xi8
// CHECK: tile.role "widen"
// CHECK: scf.for
// CHECK-NEXT: tile.wait {{.*}}tile.stage = 0
// CHECK-NEXT: tile.acquire {{.*}}tile.stage = 0
// CHECK-NEXT: tile.widen_into {{.*}}tile.stage = 0
// CHECK-NEXT: tile.release {{.*}}tile.stage = 0
// CHECK-NEXT: tile.wait {{.*}}tile.stage = 1
// CHECK-NEXT: tile.acquire {{.*}}tile.stage = 1
// CHECK-NEXT: tile.widen_into {{.*}}tile.stage = 1
// CHECK-NEXT: tile.release {{.*}}tile.stage = 1
func.func @widened(%q: memref<?x64xbf16>, %k: memref<?x64xi8>, %v: memref<?x64xi8>, %out: memref<?x64xf32>, %keys: index) {
  %c1 = arith.constant 1 : index
  tile.launch grid(%c1) warps 4 stages 2
      ins(%q, %k, %v : memref<?x64xbf16>, memref<?x64xi8>, memref<?x64xi8>)
      outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %K: !b, %V: !b, %O: memref<?x64xf32, strided<[?, 1], offset: ?>>):
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %qt = tile.load %Q[%c0, %c0] dims [0, 1] : !g -> !tile.shared<64x64xbf16>
    %acc0 = tile.fill %zero : !s
    %end = scf.for %j = %c0 to %keys step %c64 iter_args(%acc = %acc0) -> (!s) {
      %kb = tile.load %K[%j, %c0] dims [0, 1] : !b -> !tile.shared<64x64xi8>
      %kt = tile.widen %kb from f8E4M3FN warps 4 : !tile.shared<64x64xi8> -> !tile.shared<64x64xbf16>
      %vb = tile.load %V[%j, %c0] dims [0, 1] : !b -> !tile.shared<64x64xi8>
      %vt = tile.widen %vb from f8E4M3FN warps 4 : !tile.shared<64x64xi8> -> !tile.shared<64x64xbf16>
      %x = tile.mma %qt, %kt transpose_b : !tile.shared<64x64xbf16>, !tile.shared<64x64xbf16> -> !s
      %narrow = tile.map ins(%x : !s) {
      ^bb0(%a: f32, %i: index, %n: index):
        %t = arith.truncf %a : f32 to bf16
        tile.yield %t : bf16
      } -> !tile.fragment<64x64xbf16>
      %acc1 = tile.mma %narrow, %vt into %acc : !tile.fragment<64x64xbf16>, !tile.shared<64x64xbf16>, !s -> !s
      scf.yield %acc1 : !s
    }
    tile.store %end, %O[%c0, %c0] dims [0, 1] : !s, memref<?x64xf32, strided<[?, 1], offset: ?>>
  }
  return
}

// Where a branch copies, the order stays.
// CHECK-LABEL: func.func @branch(
// CHECK: tile.role "load"
// CHECK-NOT: tile.stage
// CHECK: tile.role "compute"
// CHECK: tile.stage = 1
func.func @branch(%q: memref<?x64xbf16>, %k: memref<?x64xbf16>, %v: memref<?x64xbf16>, %out: memref<?x64xf32>, %keys: index, %more: i1) {
  %c1 = arith.constant 1 : index
  tile.launch grid(%c1) warps 4 stages 2
      ins(%q, %k, %v : memref<?x64xbf16>, memref<?x64xbf16>, memref<?x64xbf16>)
      outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %K: !g, %V: !g, %O: memref<?x64xf32, strided<[?, 1], offset: ?>>):
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %qt = tile.load %Q[%c0, %c0] dims [0, 1] : !g -> !tile.shared<64x64xbf16>
    %acc0 = tile.fill %zero : !s
    %end = scf.for %j = %c0 to %keys step %c64 iter_args(%acc = %acc0) -> (!s) {
      %kt = tile.load %K[%j, %c0] dims [0, 1] : !g -> !tile.shared<64x64xbf16>
      %vt = tile.load %V[%j, %c0] dims [0, 1] : !g -> !tile.shared<64x64xbf16>
      %x = tile.mma %qt, %kt transpose_b : !tile.shared<64x64xbf16>, !tile.shared<64x64xbf16> -> !s
      %y = scf.if %more -> (!s) {
        %again = tile.load %K[%j, %c0] dims [0, 1] : !g -> !tile.shared<64x64xbf16>
        %a = tile.from_shared %again : !tile.shared<64x64xbf16> -> !tile.fragment<64x64xbf16>
        %z = tile.map ins(%x, %a : !s, !tile.fragment<64x64xbf16>) {
        ^bb0(%e: f32, %f: bf16, %i: index, %n: index):
          %g = arith.extf %f : bf16 to f32
          %t = arith.addf %e, %g : f32
          tile.yield %t : f32
        } -> !s
        scf.yield %z : !s
      } else {
        scf.yield %x : !s
      }
      %narrow = tile.map ins(%y : !s) {
      ^bb0(%a: f32, %i: index, %n: index):
        %t = arith.truncf %a : f32 to bf16
        tile.yield %t : bf16
      } -> !tile.fragment<64x64xbf16>
      %acc1 = tile.mma %narrow, %vt into %acc : !tile.fragment<64x64xbf16>, !tile.shared<64x64xbf16>, !s -> !s
      scf.yield %acc1 : !s
    }
    tile.store %end, %O[%c0, %c0] dims [0, 1] : !s, memref<?x64xf32, strided<[?, 1], offset: ?>>
  }
  return
}
