// RUN: fovea-opt %s --tile-deal-items --split-input-file | FileCheck %s

!o = memref<?x?xf32, strided<[?, 1], offset: ?>>
!p = memref<1xi32, strided<[1], offset: ?>>
!tile = !tile.shared<16x32xf32>
!ring = !tile.ring<2 x !tile>

// A role takes numbers and publishes them, but the first two, which each block knows, and
// none where there are no more; others read the next one where they need it, or
// behind all else if they fill slots, and end at a number behind the last program.

// CHECK-LABEL: func @dealt
// CHECK:       ^bb0(%[[B:.*]]: index, %{{.*}}: memref<?x?xf32{{.*}}, %[[P:.*]]: memref<1xi32
// CHECK-NOT:   tile.dealt
// CHECK:       %[[NUMBERS:.*]] = tile.ring : !tile.ring<1 x !tile.shared<1x4xi32>>
// CHECK:       tile.role "load" warps 1 single {
// CHECK:         %[[T0:.*]] = tile.wait %[[NUMBERS]][%c0
// CHECK-NEXT:    %[[N0:.*]] = tile.read_number %[[T0]]
// CHECK-NEXT:    tile.release %[[NUMBERS]][%c0
// CHECK:         scf.while (%[[R:.*]] = %c0{{.*}}, %[[N:.*]] = %[[N0]])
// CHECK:           %[[IS:.*]] = arith.cmpi slt, %[[N]], %[[ITEMS:.*]] : index
// CHECK:           scf.condition(%[[IS]]) %[[R]], %[[N]]
// CHECK:         ^bb0(%[[R:.*]]: index, %[[N:.*]]: index):
// CHECK:           tile.acquire %{{.*}}[%[[R]]]
// CHECK:           tile.load_async %{{.*}}[%[[N]], %
// CHECK:           %[[NEXT:.*]] = arith.addi %[[R]], %c1
// CHECK:           tile.wait %[[NUMBERS]][%[[NEXT]]]
// CHECK-NEXT:      %[[N1:.*]] = tile.read_number
// CHECK-NEXT:      tile.release %[[NUMBERS]][%[[NEXT]]]
// CHECK:           scf.yield %[[NEXT]], %[[N1]]
// CHECK:       tile.role "store" warps 1 single {
// CHECK:         scf.while
// CHECK:         ^bb0(%[[R:.*]]: index, %[[N:.*]]: index):
// CHECK-NEXT:      arith.constant
// CHECK-NEXT:      %[[NEXT:.*]] = arith.addi %[[R]]
// CHECK-NEXT:      tile.wait %[[NUMBERS]][%[[NEXT]]]
// CHECK:           tile.store_async %{{.*}}, %{{.*}}[%[[N]], %
// CHECK:       tile.role "deal" warps 1 single {
// CHECK:         %[[S0:.*]] = tile.acquire %[[NUMBERS]][%c0
// CHECK-NEXT:    tile.publish %[[B]] into %[[S0]] signals %[[NUMBERS]][%c0
// CHECK:         %[[TWO:.*]] = arith.muli %[[BLOCKS:.*]], %c2
// CHECK:         %[[LAST:.*]] = arith.subi %[[TWO]], %c1
// CHECK:         %[[SECOND:.*]] = arith.subi %[[LAST]], %[[B]]
// CHECK:         %[[ARE:.*]] = arith.cmpi slt, %[[TWO]], %[[ITEMS]]
// CHECK:         scf.while (%[[U:.*]] = %c1{{.*}}, %[[MORE:.*]] = %{{.*}})
// CHECK:           scf.condition(%[[MORE]]) %[[U]]
// CHECK:         ^bb0(%[[U:.*]]: index):
// CHECK:           %[[IS:.*]] = arith.cmpi eq, %[[U]], %c1
// CHECK:           %[[TAKES:.*]] = arith.select %[[IS]], %false, %[[ARE]]
// CHECK-NEXT:      %[[S:.*]] = tile.acquire %[[NUMBERS]][%[[U]]]
// CHECK-NEXT:      %[[NUMBER:.*]] = scf.if %[[TAKES]]
// CHECK-NEXT:        %[[TAKEN:.*]] = tile.claim %[[P]]
// CHECK-NEXT:        %[[OTHER:.*]] = arith.addi %[[TAKEN]], %[[TWO]]
// CHECK-NEXT:        scf.yield %[[OTHER]]
// CHECK-NEXT:      } else {
// CHECK-NEXT:        %[[KNOWN:.*]] = arith.select %[[IS]], %[[SECOND]], %[[TWO]]
// CHECK-NEXT:        scf.yield %[[KNOWN]]
// CHECK-NEXT:      }
// CHECK-NEXT:      tile.publish %[[NUMBER]] into %[[S]] signals %[[NUMBERS]][%[[U]]]
// CHECK-NEXT:      arith.cmpi slt, %[[NUMBER]], %[[ITEMS]]
// CHECK:       tile.role "compute" warps 1 {
// CHECK:         %[[N0:.*]] = tile.read_number
// CHECK:         %[[ANY:.*]] = arith.cmpi slt, %[[N0]], %[[ITEMS]]
// CHECK:         scf.if %[[ANY]] {
// CHECK:           scf.while
// CHECK:             tile.release %{{.*}}[%{{.*}}] : !tile.ring<2 x !tile.shared<16x32xf32>>
// CHECK:             %[[N1:.*]] = tile.read_number
// CHECK:             arith.cmpi slt, %[[N1]], %[[ITEMS]]
// CHECK-NOT:   tile.dealt
func.func @dealt(%o: !o, %p: !p, %n: index) {
  tile.launch grid(%n) warps 1 outs(%o, %p : !o, !p) {
  ^bb0(%b: index, %O: !o, %P: !p):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %items = arith.muli %n, %n : index
    %rounds = tile.dealt_count %P of %items : !p
    %ring = tile.ring : !ring
    %out = tile.ring : !ring
    tile.roles {
      tile.role "load" warps 1 single {
        scf.for %r = %c0 to %rounds step %c1 {
          %i = tile.dealt %P[%r] of %items : !p
          %s = tile.acquire %ring[%r] : !ring
          tile.load_async %O[%i, %c0] dims [0, 1] into %s signals %ring[%r] : !o, !ring
        }
      }
      tile.role "store" warps 2 single {
        scf.for %r = %c0 to %rounds step %c1 {
          %i = tile.dealt %P[%r] of %items : !p
          %t = tile.wait %out[%r] : !ring
          tile.store_async %t, %O[%i, %c0] dims [0, 1] : !tile, !o
          tile.wait_stores
          tile.release %out[%r] : !ring
        }
      }
      tile.role "compute" warps 1 {
        %any = arith.cmpi slt, %c0, %rounds : index
        scf.if %any {
          scf.for %r = %c0 to %rounds step %c1 {
            %after = arith.addi %r, %c1 : index
            %more = arith.cmpi slt, %after, %rounds : index
            %t = tile.wait %ring[%r] : !ring
            %x = tile.from_shared %t : !tile -> !tile.fragment<16x32xf32>
            tile.release %ring[%r] : !ring
            scf.if %more {
              %s = tile.acquire %out[%r] : !ring
              tile.write %x into %s signals %out[%r] : !tile.fragment<16x32xf32>, !ring
            }
          }
        }
      }
    }
  }
  return
}

// -----

!o = memref<?x?xf32, strided<[?, 1], offset: ?>>
!p = memref<1xi32, strided<[1], offset: ?>>

// Without roles blocks have as many programs each.

// CHECK-LABEL: func @static
// CHECK-SAME:    %[[N:[^ ]*]]: index)
// CHECK:       ^bb0(%[[B:.*]]: index, %[[O:.*]]: memref<?x?xf32
// CHECK:         %[[ALL:.*]] = arith.addi %[[N]], %[[N]]
// CHECK:         %[[OWN:.*]] = arith.addi %[[B]], %c1
// CHECK:         %[[LEFT:.*]] = arith.subi %[[ALL]], %[[OWN]]
// CHECK:         %[[ROUNDS:.*]] = arith.divui %[[LEFT]], %[[N]]
// CHECK:         scf.for %[[R:.*]] = %c0 to %[[ROUNDS]] step %c1
// CHECK-NEXT:      %[[BEFORE:.*]] = arith.muli %[[R]], %[[N]]
// CHECK-NEXT:      %[[I:.*]] = arith.addi %[[BEFORE]], %[[B]]
// CHECK:           tile.store %{{.*}}, %[[O]][%[[I]], %c0]
func.func @static(%o: !o, %p: !p, %n: index) {
  tile.launch grid(%n) warps 1 outs(%o, %p : !o, !p) {
  ^bb0(%b: index, %O: !o, %P: !p):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %rounds = tile.dealt_count %P of %n : !p
    scf.for %r = %c0 to %rounds step %c1 {
      %i = tile.dealt %P[%r] of %n : !p
      %f = tile.fill %zero : !tile.fragment<16x32xf32>
      tile.store %f, %O[%i, %c0] dims [0, 1] : !tile.fragment<16x32xf32>, !o
    }
  }
  return
}

// -----

!o = memref<?x?xf32, strided<[?, 1], offset: ?>>
!p = memref<1xi32, strided<[1], offset: ?>>

// What stays: a launch whose programs are not dealt.

// CHECK-LABEL: func @other
// CHECK:         scf.for
// CHECK-NEXT:      tile.fill
// CHECK-NOT:     tile.ring
func.func @other(%o: !o, %p: !p, %n: index) {
  tile.launch grid(%n) warps 1 outs(%o : !o) {
  ^bb0(%b: index, %O: !o):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    scf.for %r = %c0 to %n step %c1 {
      %f = tile.fill %zero : !tile.fragment<16x32xf32>
      tile.store %f, %O[%r, %c0] dims [0, 1] : !tile.fragment<16x32xf32>, !o
    }
  }
  return
}
