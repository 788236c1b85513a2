// An accumulator of products of parts that is wider than 128 columns becomes
// several, and what computes, carries, reads and writes it works on each.

// RUN: fovea-opt %s --split-input-file --tile-split-columns | FileCheck %s
// RUN: fovea-opt %s --split-input-file --tile-split-columns --debug-only=tile-split-columns -o /dev/null 2>&1 | FileCheck %s --check-prefix=LOG

!g = memref<?x192xf32, strided<[?, 1], offset: ?>>
!p = memref<?x64xf32, strided<[?, 1], offset: ?>>

// LOG: of 192 columns are 2 of 96
// CHECK-LABEL: @divided
// CHECK: ^bb0(%{{.*}}: index, %[[P:.*]]: memref<?x64xf32, {{.*}}>, %[[V:.*]]: memref<?x192xf32, {{.*}}>, %[[O:.*]]: memref<?x192xf32, {{.*}}>):
// CHECK: %[[C0:.*]] = arith.constant 0 : index
// CHECK: %[[A:.*]] = tile.fill {{.*}} : !tile.fragment<64x96xf32>
// CHECK: %[[B:.*]] = tile.fill {{.*}} : !tile.fragment<64x96xf32>
// CHECK: %[[LOOP:.*]]:2 = scf.for %[[J:.*]] = {{.*}} iter_args(%[[A0:.*]] = %[[A]], %[[B0:.*]] = %[[B]]) -> (!tile.fragment<64x96xf32>, !tile.fragment<64x96xf32>) {
// CHECK:   %[[P1:.*]] = tile.load %[[P]][{{.*}}] dims [0, 1] : {{.*}} -> !tile.fragment<64x64xf32>
// CHECK:   %[[V0:.*]] = tile.load %[[V]][%[[J]], %[[C0]]] dims [0, 1] {{.*}} -> !tile.shared<64x96xf32>
// CHECK:   %[[C96:.*]] = arith.constant 96 : index
// CHECK:   %[[AT:.*]] = arith.addi %[[C0]], %[[C96]]
// CHECK:   %[[V1:.*]] = tile.load %[[V]][%[[J]], %[[AT]]] dims [0, 1] {{.*}} -> !tile.shared<64x96xf32>
// CHECK-NOT: tile.load
// CHECK:   %[[A1:.*]] = tile.mma %[[P1]], %[[V0]] into %[[A0]] :
// CHECK:   %[[B1:.*]] = tile.mma %[[P1]], %[[V1]] into %[[B0]] :
// CHECK:   scf.yield %[[A1]], %[[B1]]
// CHECK: %[[IF:.*]]:2 = scf.if {{.*}} -> (!tile.fragment<64x96xf32>, !tile.fragment<64x96xf32>) {
// CHECK:   tile.load %[[O]][%{{.*}}, %[[C0]]] dims [0, 1] aligned : {{.*}} -> !tile.fragment<64x96xf32>
// CHECK:   tile.load %[[O]][%{{.*}}, %{{.*}}] dims [0, 1] aligned : {{.*}} -> !tile.fragment<64x96xf32>
// CHECK:   scf.yield
// CHECK: } else {
// CHECK:   scf.yield %[[LOOP]]#0, %[[LOOP]]#1
// The element's column is that of the tile.
// CHECK: tile.map exact ins(%[[IF]]#0 : {{.*}}) rows(%[[ROWS:.*]] : !tile.fragment<64xf32>) {
// CHECK-NEXT: ^bb0({{.*}}, %[[COLUMN:.*]]: index):
// CHECK-NEXT:   arith.index_cast %[[COLUMN]]
// CHECK: tile.map exact ins(%[[IF]]#1 : {{.*}}) rows(%[[ROWS]] : !tile.fragment<64xf32>) {
// CHECK-NEXT: ^bb0({{.*}}, %[[COLUMN:.*]]: index):
// CHECK-NEXT:   arith.constant 96 : index
// CHECK-NEXT:   %[[MOVED:.*]] = arith.addi %[[COLUMN]]
// CHECK-NEXT:   arith.index_cast %[[MOVED]]
// CHECK: tile.store %{{.*}}, %[[O]][%{{.*}}, %[[C0]]] dims [0, 1] valid(%{{.*}}) : !tile.fragment<64x96xf32>
// CHECK: tile.store %{{.*}}, %[[O]][%{{.*}}, %{{.*}}] dims [0, 1] valid(%{{.*}}) : !tile.fragment<64x96xf32>

func.func @divided(%p: tensor<?x64xf32>, %v: tensor<?x192xf32>, %o: tensor<?x192xf32>, %some: i1, %n: index) -> tensor<?x192xf32> {
  %c1 = arith.constant 1 : index
  %r = tile.launch grid(%c1) warps 4 stages 2 parts 3
      ins(%p, %v : tensor<?x64xf32>, tensor<?x192xf32>) outs(%o : tensor<?x192xf32>) {
  ^bb0(%b: index, %P: !p, %V: !g, %O: !g):
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %c512 = arith.constant 512 : index
    %zero = arith.constant 0.0 : f32
    %acc0 = tile.fill %zero : !tile.fragment<64x192xf32>
    %rows = tile.fill %zero : !tile.fragment<64xf32>
    %acc = scf.for %j = %c0 to %c512 step %c64 iter_args(%a = %acc0) -> (!tile.fragment<64x192xf32>) {
      %pt = tile.load %P[%c0, %c0] dims [0, 1] : !p -> !tile.fragment<64x64xf32>
      %vt = tile.load %V[%j, %c0] dims [0, 1] : !g -> !tile.shared<64x192xf32>
      %next = tile.mma %pt, %vt into %a : !tile.fragment<64x64xf32>, !tile.shared<64x192xf32>, !tile.fragment<64x192xf32> -> !tile.fragment<64x192xf32>
      scf.yield %next : !tile.fragment<64x192xf32>
    }
    %chosen = scf.if %some -> (!tile.fragment<64x192xf32>) {
      %other = tile.load %O[%b, %c0] dims [0, 1] aligned : !g -> !tile.fragment<64x192xf32>
      scf.yield %other : !tile.fragment<64x192xf32>
    } else {
      scf.yield %acc : !tile.fragment<64x192xf32>
    }
    %scaled = tile.map exact ins(%chosen : !tile.fragment<64x192xf32>) rows(%rows : !tile.fragment<64xf32>) {
    ^bb0(%x: f32, %y: f32, %i: index, %j: index):
      %k = arith.index_cast %j : index to i32
      %f = arith.sitofp %k : i32 to f32
      %s = arith.mulf %x, %y : f32
      %t = arith.addf %s, %f : f32
      tile.yield %t : f32
    } -> !tile.fragment<64x192xf32>
    tile.store %scaled, %O[%b, %c0] dims [0, 1] valid(%n) : !tile.fragment<64x192xf32>, !g
  } -> tensor<?x192xf32>
  return %r : tensor<?x192xf32>
}

// -----

!g = memref<?x256xf32, strided<[?, 1], offset: ?>>
!h = memref<?x128xf32, strided<[?, 1], offset: ?>>
!p = memref<?x64xf32, strided<[?, 1], offset: ?>>

// Left alone: launches without parts, accumulators of 128 columns, and those of
// which an op needs a whole row.

// LOG-NOT: divided
// LOG: accumulators at {{.*}} are not divided: tile.reduce needs whole rows
// LOG: accumulators at {{.*}} are not divided: tile.map needs whole rows
// LOG: accumulators at {{.*}} are not divided: tile.mma needs whole rows
// LOG-NOT: columns
// CHECK-LABEL: @whole
// CHECK-NOT: x64xf32>, !tile.fragment<64x64xf32> ->
// CHECK: tile.mma {{.*}} -> !tile.fragment<64x256xf32>
// CHECK: tile.mma {{.*}} -> !tile.fragment<64x128xf32>
// CHECK: tile.mma {{.*}} -> !tile.fragment<64x256xf32>
// CHECK: tile.reduce
// CHECK: tile.mma {{.*}} -> !tile.fragment<64x256xf32>
// CHECK: tile.map {{.*}} columns(
// CHECK: tile.mma {{.*}} transpose_b {{.*}} -> !tile.fragment<64x256xf32>
func.func @whole(%p: memref<?x64xf32>, %v: memref<?x256xf32>, %w: memref<?x128xf32>, %o: memref<?x256xf32>) {
  %c1 = arith.constant 1 : index
  tile.launch grid(%c1) warps 4 ins(%p, %v : memref<?x64xf32>, memref<?x256xf32>) outs(%o : memref<?x256xf32>) {
  ^bb0(%b: index, %P: !p, %V: !g, %O: !g):
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %acc = tile.fill %zero : !tile.fragment<64x256xf32>
    %pt = tile.load %P[%c0, %c0] dims [0, 1] : !p -> !tile.fragment<64x64xf32>
    %vt = tile.load %V[%c0, %c0] dims [0, 1] : !g -> !tile.shared<64x256xf32>
    %x = tile.mma %pt, %vt into %acc : !tile.fragment<64x64xf32>, !tile.shared<64x256xf32>, !tile.fragment<64x256xf32> -> !tile.fragment<64x256xf32>
    tile.store %x, %O[%b, %c0] dims [0, 1] : !tile.fragment<64x256xf32>, !g
  }
  tile.launch grid(%c1) warps 4 parts 3 ins(%p, %w : memref<?x64xf32>, memref<?x128xf32>) outs(%w : memref<?x128xf32>) {
  ^bb0(%b: index, %P: !p, %V: !h, %O: !h):
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %acc = tile.fill %zero : !tile.fragment<64x128xf32>
    %pt = tile.load %P[%c0, %c0] dims [0, 1] : !p -> !tile.fragment<64x64xf32>
    %vt = tile.load %V[%c0, %c0] dims [0, 1] : !h -> !tile.shared<64x128xf32>
    %x = tile.mma %pt, %vt into %acc : !tile.fragment<64x64xf32>, !tile.shared<64x128xf32>, !tile.fragment<64x128xf32> -> !tile.fragment<64x128xf32>
    tile.store %x, %O[%b, %c0] dims [0, 1] : !tile.fragment<64x128xf32>, !h
  }
  tile.launch grid(%c1) warps 4 parts 3 ins(%p, %v : memref<?x64xf32>, memref<?x256xf32>) outs(%o : memref<?x256xf32>) {
  ^bb0(%b: index, %P: !p, %V: !g, %O: !g):
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %acc = tile.fill %zero : !tile.fragment<64x256xf32>
    %sums = tile.fill %zero : !tile.fragment<64xf32>
    %pt = tile.load %P[%c0, %c0] dims [0, 1] : !p -> !tile.fragment<64x64xf32>
    %vt = tile.load %V[%c0, %c0] dims [0, 1] : !g -> !tile.shared<64x256xf32>
    %x = tile.mma %pt, %vt into %acc : !tile.fragment<64x64xf32>, !tile.shared<64x256xf32>, !tile.fragment<64x256xf32> -> !tile.fragment<64x256xf32>
    %y = tile.reduce add %x, %sums dim 1 : !tile.fragment<64x256xf32> -> !tile.fragment<64xf32>
    tile.store %y, %O[%b, %c0] dims [0] : !tile.fragment<64xf32>, !g
  }
  tile.launch grid(%c1) warps 4 parts 3 ins(%p, %v : memref<?x64xf32>, memref<?x256xf32>) outs(%o : memref<?x256xf32>) {
  ^bb0(%b: index, %P: !p, %V: !g, %O: !g):
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %acc = tile.fill %zero : !tile.fragment<64x256xf32>
    %weights = tile.fill %zero : !tile.fragment<256xf32>
    %pt = tile.load %P[%c0, %c0] dims [0, 1] : !p -> !tile.fragment<64x64xf32>
    %vt = tile.load %V[%c0, %c0] dims [0, 1] : !g -> !tile.shared<64x256xf32>
    %x = tile.mma %pt, %vt into %acc : !tile.fragment<64x64xf32>, !tile.shared<64x256xf32>, !tile.fragment<64x256xf32> -> !tile.fragment<64x256xf32>
    %y = tile.map ins(%x : !tile.fragment<64x256xf32>) columns(%weights : !tile.fragment<256xf32>) {
    ^bb0(%e: f32, %f: f32, %i: index, %j: index):
      %s = arith.mulf %e, %f : f32
      tile.yield %s : f32
    } -> !tile.fragment<64x256xf32>
    tile.store %y, %O[%b, %c0] dims [0, 1] : !tile.fragment<64x256xf32>, !g
  }
  tile.launch grid(%c1) warps 4 parts 3 ins(%p, %v : memref<?x64xf32>, memref<?x256xf32>) outs(%o : memref<?x256xf32>) {
  ^bb0(%b: index, %P: !p, %V: !g, %O: !g):
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %acc = tile.fill %zero : !tile.fragment<64x256xf32>
    %pt = tile.load %P[%c0, %c0] dims [0, 1] : !p -> !tile.fragment<64x64xf32>
    %vt = tile.load %P[%c0, %c0] dims [0, 1] : !p -> !tile.shared<256x64xf32>
    %x = tile.mma %pt, %vt into %acc transpose_b : !tile.fragment<64x64xf32>, !tile.shared<256x64xf32>, !tile.fragment<64x256xf32> -> !tile.fragment<64x256xf32>
    tile.store %x, %O[%b, %c0] dims [0, 1] : !tile.fragment<64x256xf32>, !g
  }
  return
}
