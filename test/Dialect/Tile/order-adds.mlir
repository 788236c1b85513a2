// RUN: fovea-opt %s --tile-order-adds --canonicalize --cse --split-input-file | FileCheck %s
// RUN: fovea-opt %s --tile-order-adds --tile-stage-stores --split-input-file | FileCheck %s --check-prefix=STAGED

!o = memref<?x?x?xf32, strided<[?, ?, 1], offset: ?>>

// Blocks of one head take turns, at a place that grows with the iterations of
// both loops, in two lanes; those of several heads are launched together, and if
// what these add to is small, the last block of each first.
// CHECK-LABEL: func @ordered
// CHECK-SAME:    %[[M:.*]]: tensor<?x?x?xf32>, %[[N:.*]]: index, %[[H:.*]]: index,
// CHECK:       %[[BLOCKS:.*]] = arith.muli %[[H]], %[[N]] : index
// CHECK-COUNT-3: tensor.dim %[[M]]
// CHECK:       %[[MOST:.*]] = arith.muli %[[H]], %c16777216 : index
// CHECK:       %[[NEAR:.*]] = arith.cmpi ule, %{{.*}}, %[[MOST]] : index
// CHECK:       %[[GROUP:.*]] = arith.select %[[NEAR]], %c8, %c16 : index
// CHECK:       %[[PART:.*]] = arith.muli %[[GROUP]], %[[N]] : index
// CHECK:       %[[E:.*]] = tensor.empty(%[[H]], %[[N]]) : tensor<?x2x?xi32>
// CHECK:       %[[ZERO:.*]] = linalg.fill ins(%{{.*}} : i32) outs(%[[E]] : tensor<?x2x?xi32>)
// CHECK:       %[[R:.*]]:2 = tile.launch grid(%[[BLOCKS]]) warps 8 outs(%[[M]], %[[ZERO]] : tensor<?x?x?xf32>, tensor<?x2x?xi32>) {
// CHECK-NEXT:  ^bb0(%[[B:.*]]: index, %[[O:.*]]: memref<?x?x?xf32, {{.*}}>, %[[T:.*]]: memref<?x2x?xi32, {{.*}}>):
// CHECK:         %[[NUMBER:.*]] = arith.divui %[[B]], %[[PART]] : index
// CHECK:         %[[FIRST:.*]] = arith.muli %[[NUMBER]], %[[GROUP]] : index
// CHECK:         %[[IN:.*]] = arith.remui %[[B]], %[[PART]] : index
// CHECK:         %[[LEFT:.*]] = arith.subi %[[H]], %[[FIRST]] : index
// CHECK:         %[[MEMBERS:.*]] = arith.minui %[[GROUP]], %[[LEFT]] : index
// CHECK:         %[[K:.*]] = arith.divui %[[IN]], %[[MEMBERS]] : index
// CHECK:         %[[MEMBER:.*]] = arith.remui %[[IN]], %[[MEMBERS]] : index
// CHECK:         %[[Y:.*]] = arith.addi %[[FIRST]], %[[MEMBER]] : index
// CHECK:         %[[LAST:.*]] = arith.subi %[[N]], %c1 : index
// CHECK:         %[[REVERSED:.*]] = arith.subi %[[LAST]], %[[K]] : index
// CHECK:         %[[X:.*]] = arith.select %[[NEAR]], %[[REVERSED]], %[[K]] : index
// CHECK:         %[[LOW:.*]] = arith.muli %[[X]], %c64 : index
// CHECK:         %[[END:.*]] = memref.dim %[[O]], %c1{{ }}
// CHECK:         scf.for %[[G:.*]] =
// CHECK:           %[[AHEAD:.*]] = arith.minsi %[[LOW]], %[[END]]
// CHECK:           %[[HEAD:.*]] = arith.muli %[[G]], %[[END]] : index
// CHECK:           %[[START:.*]] = arith.addi %[[HEAD]], %[[AHEAD]] : index
// CHECK:           %[[BEFORE:.*]] = arith.subi %[[START]], %c1 : index
// CHECK-NEXT:      tile.take_turn %[[T]][%[[Y]], %c0, %[[K]]] at %[[BEFORE]] lanes 2 : memref<?x2x?xi32
// CHECK-NEXT:      tile.pass_turn %[[T]][%[[Y]], %c0, %[[K]]] to %[[START]] lanes 2 : memref<?x2x?xi32
// CHECK-NEXT:      tile.take_turn %[[T]][%[[Y]], %c1, %[[K]]] at %[[BEFORE]] lanes 2 : memref<?x2x?xi32
// CHECK-NEXT:      tile.pass_turn %[[T]][%[[Y]], %c1, %[[K]]] to %[[START]] lanes 2 : memref<?x2x?xi32
// CHECK:           scf.for %[[I:.*]] = %[[LOW]] to %[[END]]
// CHECK:             %[[NUMBER:.*]] = arith.divui %[[I]], %c64 : index
// CHECK:             %[[LANE:.*]] = arith.remui %[[NUMBER]], %c2 : index
// CHECK:             %[[NEXT:.*]] = arith.addi %[[I]], %c1 : index
// CHECK:             %[[PAST:.*]] = arith.addi %[[HEAD]], %[[NEXT]] : index
// CHECK:             %[[AT:.*]] = arith.subi %[[PAST]], %c1 : index
// CHECK-NEXT:        tile.take_turn %[[T]][%[[Y]], %[[LANE]], %[[K]]] at %[[AT]] lanes 2 : memref<?x2x?xi32
// CHECK-NEXT:        tile.store add
// CHECK-NEXT:        tile.pass_turn %[[T]][%[[Y]], %[[LANE]], %[[K]]] to %[[PAST]] lanes 2 : memref<?x2x?xi32
// CHECK:           %[[WHOLE:.*]] = arith.addi %[[HEAD]], %[[END]] : index
// CHECK:           tile.take_turn %[[T]][%[[Y]], %c0, %[[K]]]
// CHECK-NEXT:      tile.pass_turn %[[T]][%[[Y]], %c0, %[[K]]] to %[[WHOLE]]
// CHECK-NEXT:      tile.take_turn %[[T]][%[[Y]], %c1, %[[K]]]
// CHECK-NEXT:      tile.pass_turn %[[T]][%[[Y]], %c1, %[[K]]] to %[[WHOLE]]
// CHECK-NEXT:    }
// CHECK:       return %[[R]]#0

// The tile is stored by a role, which takes the turn before it waits for it, and
// releases it before the turn is passed.
// STAGED-LABEL: func @ordered
// STAGED:       scf.for
// STAGED:       scf.for
// STAGED:       tile.take_turn
// STAGED:       tile.acquire
// STAGED-NEXT:  tile.write
// STAGED-NEXT:  tile.wait
// STAGED-NEXT:  tile.store_async add
// STAGED-NEXT:  tile.wait_stores
// STAGED-NEXT:  tile.release
// STAGED:       tile.pass_turn
func.func @ordered(%m: tensor<?x?x?xf32>, %n: index, %h: index, %x: f32) -> tensor<?x?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %r = tile.launch grid(%n, %h) warps 8 outs(%m : tensor<?x?x?xf32>) {
  ^bb0(%k: index, %y: index, %O: !o):
    %low = arith.muli %k, %c64 : index
    %end = memref.dim %O, %c1 : !o
    scf.for %g = %c0 to %c2 step %c1 {
      %head = arith.addi %y, %g : index
      scf.for %i = %low to %end step %c64 {
        %f = tile.fill %x : !tile.fragment<64x128xf32>
        tile.store add %f, %O[%head, %i, %c0] dims [1, 2] : !tile.fragment<64x128xf32>, !o
      }
    }
  } -> tensor<?x?x?xf32>
  return %r : tensor<?x?x?xf32>
}

// -----

!o = memref<?x?xf32, strided<[?, 1], offset: ?>>

// Places of its own, and those of one block alone, need no turns.
// CHECK-LABEL: func @own
// CHECK-NOT:   _turn
func.func @own(%m: tensor<?x?xf32>, %n: index, %x: f32) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %r = tile.launch grid(%n) warps 8 outs(%m : tensor<?x?xf32>) {
  ^bb0(%k: index, %O: !o):
    %f = tile.fill %x : !tile.fragment<64x128xf32>
    scf.for %i = %c0 to %n step %c64 {
      %row = arith.addi %k, %i : index
      tile.store add %f, %O[%row, %c0] dims [0, 1] : !tile.fragment<64x128xf32>, !o
    }
  } -> tensor<?x?xf32>
  %c1 = arith.constant 1 : index
  %s = tile.launch grid(%c1) warps 8 outs(%r : tensor<?x?xf32>) {
  ^bb0(%k: index, %O: !o):
    %f = tile.fill %x : !tile.fragment<64x128xf32>
    tile.store add %f, %O[%c0, %c0] dims [0, 1] : !tile.fragment<64x128xf32>, !o
  } -> tensor<?x?xf32>
  return %s : tensor<?x?xf32>
}

// -----

!o = memref<?x?xf32, strided<[?, 1], offset: ?>>

// Outside of loops each block has one turn, at what it adds there.
// CHECK-LABEL: func @once
// CHECK:       tile.launch
// CHECK:         tile.fill
// CHECK-NEXT:    tile.take_turn %[[T:.*]][%c0, %[[K:.*]]] at %c0 lanes 2
// CHECK-NEXT:    scf.if
// CHECK-NEXT:      tile.store add
// CHECK-NEXT:    }
// CHECK-NEXT:    tile.store add
// CHECK-NEXT:    tile.pass_turn %[[T]][%c0, %[[K]]] to %c1 lanes 2
// CHECK-NEXT:    tile.fill
// CHECK-NOT:     _turn
func.func @once(%m: tensor<?x?xf32>, %n: index, %x: f32, %adds: i1) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %r = tile.launch grid(%n) warps 8 outs(%m : tensor<?x?xf32>) {
  ^bb0(%k: index, %O: !o):
    %f = tile.fill %x : !tile.fragment<64x128xf32>
    scf.if %adds {
      tile.store add %f, %O[%c0, %c0] dims [0, 1] : !tile.fragment<64x128xf32>, !o
    }
    tile.store add %f, %O[%c64, %c0] dims [0, 1] : !tile.fragment<64x128xf32>, !o
    %g = tile.fill %x : !tile.fragment<32x128xf32>
    %row = arith.muli %k, %c64 : index
    tile.store %g, %O[%row, %c0] dims [0, 1] : !tile.fragment<32x128xf32>, !o
  } -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}

// -----

!o = memref<?x?xf32, strided<[?, 1], offset: ?>>

// Where a block adds under a condition, it takes its turn all the same.
// CHECK-LABEL: func @conditional
// CHECK:       scf.for
// CHECK:         tile.take_turn
// CHECK-NEXT:    scf.if
// CHECK-NEXT:      tile.store add
// CHECK-NEXT:    }
// CHECK-NEXT:    tile.pass_turn
func.func @conditional(%m: tensor<?x?xf32>, %n: index, %x: f32) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %r = tile.launch grid(%n) warps 8 outs(%m : tensor<?x?xf32>) {
  ^bb0(%k: index, %O: !o):
    %f = tile.fill %x : !tile.fragment<64x128xf32>
    scf.for %i = %c0 to %n step %c64 {
      %adds = arith.cmpi ugt, %i, %k : index
      scf.if %adds {
        tile.store add %f, %O[%i, %c0] dims [0, 1] : !tile.fragment<64x128xf32>, !o
      }
    }
  } -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}
