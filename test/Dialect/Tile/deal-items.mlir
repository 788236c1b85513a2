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
// CHECK-NEXT:    %[[I0:.*]] = tile.read_numbers %[[T0]] : {{.*}} -> i32
// CHECK-NEXT:    tile.release %[[NUMBERS]][%c0
// CHECK-NEXT:    %[[N0:.*]] = arith.index_castui %[[I0]]
// CHECK:         scf.while (%[[R:.*]] = %c0{{.*}}, %[[N:.*]] = %[[N0]])
// CHECK:           %[[IS:.*]] = arith.cmpi slt, %[[N]], %[[ITEMS:.*]] : index
// CHECK:           scf.condition(%[[IS]]) %[[R]], %[[N]]
// CHECK:         ^bb0(%[[R:.*]]: index, %[[N:.*]]: index):
// CHECK:           tile.acquire %{{.*}}[%[[R]]]
// CHECK:           tile.load_async %{{.*}}[%[[N]], %
// CHECK:           %[[NEXT:.*]] = arith.addi %[[R]], %c1
// CHECK:           tile.wait %[[NUMBERS]][%[[NEXT]]]
// CHECK-NEXT:      %[[I1:.*]] = tile.read_numbers
// CHECK-NEXT:      tile.release %[[NUMBERS]][%[[NEXT]]]
// CHECK-NEXT:      %[[N1:.*]] = arith.index_castui %[[I1]]
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
// CHECK-NEXT:    %[[B0:.*]] = arith.index_castui %[[B]]
// CHECK:         tile.publish %[[B0]] into %[[S0]] signals %[[NUMBERS]][%c0{{.*}}, i32
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
// CHECK-NEXT:      %[[NARROW:.*]] = arith.index_castui %[[NUMBER]]
// CHECK-NEXT:      arith.cmpi slt, %[[NUMBER]], %[[ITEMS]]
// CHECK-NEXT:      tile.publish %[[NARROW]] into %[[S]] signals %[[NUMBERS]][%[[U]]]
// CHECK:       tile.role "compute" warps 1 {
// CHECK:         %[[I0:.*]] = tile.read_numbers
// CHECK:         %[[N0:.*]] = arith.index_castui %[[I0]]
// CHECK:         %[[ANY:.*]] = arith.cmpi slt, %[[N0]], %[[ITEMS]]
// CHECK:         scf.if %[[ANY]] {
// CHECK:           scf.while
// CHECK:             tile.release %{{.*}}[%{{.*}}] : !tile.ring<2 x !tile.shared<16x32xf32>>
// CHECK:             %[[I1:.*]] = tile.read_numbers
// CHECK:             %[[N1:.*]] = arith.index_castui %[[I1]]
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
!t = memref<?xi32, strided<[1], offset: ?>>
!tile = !tile.shared<16x32xf32>
!ring = !tile.ring<2 x !tile>

// The role that deals computes what follows from a number, but nothing behind the last
// program, and publishes what others need of it: not %c. A role keeps what it needs of its
// own program while it waits for the next one.

// CHECK-LABEL: func @numbers
// CHECK:       ^bb0(%[[B:.*]]: index, %[[T:.*]]: memref<?xi32{{.*}}, %{{.*}}: memref<?x?xf32
// CHECK:       %[[RING:.*]] = tile.ring : !tile.ring<1 x !tile.shared<1x8xi32>>
// CHECK:       tile.role "load" warps 1 single {
// CHECK:         %[[N0:.*]]:4 = tile.read_numbers %{{.*}} : !tile.shared<1x8xi32> -> i32, i64, i32, i32
// CHECK:         %[[A0:.*]] = arith.index_castui %[[N0]]#1 : i64 to index
// CHECK:         scf.while (%{{.*}} = %c0{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %[[A0]])
// CHECK:         ^bb0(%{{.*}}: index, %{{.*}}: index, %[[A:.*]]: index):
// CHECK:           tile.load_async %{{.*}}[%[[A]], %
// CHECK:           %[[N1:.*]]:4 = tile.read_numbers
// CHECK:           %[[A1:.*]] = arith.index_castui %[[N1]]#1 : i64 to index
// CHECK:           scf.yield %{{.*}}, %{{.*}}, %[[A1]]
// CHECK:       tile.role "deal" warps 1 single {
// CHECK:         %[[IS:.*]] = arith.cmpi slt, %[[B]], %[[ITEMS:.*]] : index
// CHECK:         %[[FOUND:.*]]:3 = scf.if %[[IS]]
// CHECK:           %[[PLACE:.*]] = arith.divui %[[B]], %
// CHECK:           %[[READ:.*]] = memref.load %[[T]][%[[PLACE]]]
// CHECK:           %[[ODD:.*]] = arith.cmpi
// CHECK:           %[[WIDE:.*]] = arith.index_castui %[[PLACE]] : index to i64
// CHECK:           %[[BIT:.*]] = arith.extui %[[ODD]] : i1 to i32
// CHECK:           scf.yield %[[WIDE]], %[[READ]], %[[BIT]] : i64, i32, i32
// CHECK:         } else {
// CHECK:           scf.yield %c0_i64{{.*}}, %c0_i32{{.*}}, %c0_i32{{.*}} : i64, i32, i32
// CHECK:         }
// CHECK:         tile.publish %{{.*}}, %[[FOUND]]#0, %[[FOUND]]#1, %[[FOUND]]#2 into %{{.*}} : !tile.ring<1 x !tile.shared<1x8xi32>>, i32, i64, i32, i32
// CHECK:         scf.while
// CHECK:           tile.claim
// CHECK:           scf.if
// CHECK:             memref.load %[[T]]
// CHECK:           tile.publish
// CHECK:       tile.role "compute" warps 1 {
// CHECK:         scf.while
// CHECK:           %[[N2:.*]]:4 = tile.read_numbers
// CHECK:           arith.trunci %[[N2]]#3 : i32 to i1
// CHECK-NOT:   tile.of_item
func.func @numbers(%t: !t, %o: !o, %p: !p, %n: index) {
  tile.launch grid(%n) warps 1 ins(%t : !t) outs(%o, %p : !o, !p) {
  ^bb0(%b: index, %T: !t, %O: !o, %P: !p):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %items = arith.muli %n, %n : index
    %rounds = tile.dealt_count %P of %items : !p
    %ring = tile.ring : !ring
    tile.roles {
      tile.role "load" warps 2 single {
        scf.for %r = %c0 to %rounds step %c1 {
          %i = tile.dealt %P[%r] of %items : !p
          %a, %c, %x, %is = tile.of_item %i {
          ^bb0(%number: index):
            %place = arith.divui %number, %n : index
            %read = memref.load %T[%place] : !t
            %odd = arith.cmpi slt, %place, %n : index
            tile.yield %place, %place, %read, %odd : index, index, i32, i1
          } : index, index, i32, i1
          %s = tile.acquire %ring[%r] : !ring
          tile.load_async %O[%a, %c0] dims [0, 1] into %s signals %ring[%r] : !o, !ring
        }
      }
      tile.role "compute" warps 1 {
        scf.for %r = %c0 to %rounds step %c1 {
          %after = arith.addi %r, %c1 : index
          %more = arith.cmpi slt, %after, %rounds : index
          %next = arith.select %more, %after, %r : index
          %i = tile.dealt %P[%next] of %items : !p
          %a, %c, %x, %is = tile.of_item %i {
          ^bb0(%number: index):
            %place = arith.divui %number, %n : index
            %read = memref.load %T[%place] : !t
            %odd = arith.cmpi slt, %place, %n : index
            tile.yield %place, %place, %read, %odd : index, index, i32, i1
          } : index, index, i32, i1
          %tile = tile.wait %ring[%r] : !ring
          %f = tile.from_shared %tile : !tile -> !tile.fragment<16x32xf32>
          tile.release %ring[%r] : !ring
          %column = arith.index_castui %x : i32 to index
          scf.if %is {
            tile.store %f, %O[%a, %column] dims [0, 1] : !tile.fragment<16x32xf32>, !o
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
!tile = !tile.shared<16x32xf32>
!ring = !tile.ring<2 x !tile>

// What a role computes from values of its own it computes itself.

// CHECK-LABEL: func @own
// CHECK:       tile.role "load" warps 1 single {
// CHECK:         tile.read_numbers %{{.*}} : !tile.shared<1x4xi32> -> i32
// CHECK:         %[[OWN:.*]] = arith.addi
// CHECK:         scf.while
// CHECK:         ^bb0(%{{.*}}: index, %[[N:.*]]: index):
// CHECK:           %[[A:.*]] = arith.divui %[[N]], %[[OWN]]
// CHECK:           tile.load_async %{{.*}}[%[[A]], %
// CHECK:       tile.publish %{{.*}} into %{{.*}} : !tile.ring<1 x !tile.shared<1x4xi32>>, i32
func.func @own(%o: !o, %p: !p, %n: index) {
  tile.launch grid(%n) warps 1 outs(%o, %p : !o, !p) {
  ^bb0(%b: index, %O: !o, %P: !p):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %rounds = tile.dealt_count %P of %n : !p
    %ring = tile.ring : !ring
    tile.roles {
      tile.role "load" warps 2 single {
        %own = arith.addi %n, %c1 : index
        scf.for %r = %c0 to %rounds step %c1 {
          %i = tile.dealt %P[%r] of %n : !p
          %a = tile.of_item %i {
          ^bb0(%number: index):
            %place = arith.divui %number, %own : index
            tile.yield %place : index
          } : index
          %s = tile.acquire %ring[%r] : !ring
          tile.load_async %O[%a, %c0] dims [0, 1] into %s signals %ring[%r] : !o, !ring
        }
      }
      tile.role "compute" warps 1 {
        scf.for %r = %c0 to %rounds step %c1 {
          %t = tile.wait %ring[%r] : !ring
          %f = tile.from_shared %t : !tile -> !tile.fragment<16x32xf32>
          tile.release %ring[%r] : !ring
        }
      }
    }
  }
  return
}

// -----

!o = memref<?x?xf32, strided<[?, 1], offset: ?>>
!p = memref<1xi32, strided<[1], offset: ?>>

// Without roles blocks have as many programs each, and compute what follows.

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
// CHECK-NEXT:      %[[A:.*]] = arith.divui %[[I]], %[[N]]
// CHECK:           tile.store %{{.*}}, %[[O]][%[[A]], %[[I]]]
func.func @static(%o: !o, %p: !p, %n: index) {
  tile.launch grid(%n) warps 1 outs(%o, %p : !o, !p) {
  ^bb0(%b: index, %O: !o, %P: !p):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %rounds = tile.dealt_count %P of %n : !p
    scf.for %r = %c0 to %rounds step %c1 {
      %i = tile.dealt %P[%r] of %n : !p
      %a, %same = tile.of_item %i {
      ^bb0(%number: index):
        %place = arith.divui %number, %n : index
        tile.yield %place, %number : index, index
      } : index, index
      %f = tile.fill %zero : !tile.fragment<16x32xf32>
      tile.store %f, %O[%a, %same] dims [0, 1] : !tile.fragment<16x32xf32>, !o
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
