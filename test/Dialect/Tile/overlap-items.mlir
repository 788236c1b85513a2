// The first product of the next item runs beside the last one of this, where both
// have steps; else one after another.
// RUN: fovea-opt %s --tile-persist --tile-assign-layouts --tile-multibuffer --tile-specialize-warps --tile-skip-rows --tile-schedule --tile-expand-pipeline -o %t.skewed
// RUN: fovea-opt %t.skewed --tile-overlap-items --canonicalize --cse | FileCheck %s
// RUN: fovea-opt %t.skewed --tile-overlap-items --mlir-print-op-generic -o %t.a
// RUN: fovea-opt %t.a --tile-overlap-items --mlir-print-op-generic -o %t.b
// RUN: diff %t.a %t.b

!g = memref<?x64xbf16, strided<[?, 1], offset: ?>>
!o = memref<?x64xf32, strided<[?, 1], offset: ?>>
!s = !tile.fragment<64x64xf32>

// CHECK-LABEL: func.func @items(
// CHECK:       tile.role "compute"
// The first item's start, if there is an item, and if it has steps.
// CHECK:         scf.if
// CHECK:           %[[Q0:.*]] = tile.wait %[[QS:.*]][%c0] :
// CHECK:           %[[S0:.*]] = scf.if %[[ANY:.*]] ->
// CHECK:             %[[K0:.*]] = tile.wait %[[KS:.*]][%c0] :
// CHECK:             tile.mma_async wgmma %[[Q0]], %[[K0]] transpose_b
// CHECK:             tile.wait_mma
// CHECK:             tile.release %[[KS]][%c0]
// CHECK:           scf.for {{.*}} iter_args({{.*}}%[[S:[^ ,]*]] = %[[S0]], %[[Q:[^ ,]*]] = %[[Q0]])
// CHECK:             %[[MORE:.*]] = arith.cmpi slt
// Its steps begin with scores that are there.
// CHECK:             %[[STEPS:.*]]:4 = scf.if %[[ANY]] ->
// CHECK-NEXT:          tile.map ins(%[[S]] :
// CHECK:               scf.for
// CHECK:                 tile.mma_async wgmma %[[Q]],
// CHECK:             tile.release %[[QS]][
// CHECK:             %[[STEPPED:.*]] = arith.andi %[[ANY]], %[[ANY]]
// CHECK:             %[[BOTH:.*]] = arith.andi %[[STEPPED]], %[[MORE]]
// CHECK:             scf.if %[[BOTH]]
// Both products, then what needs the first of them, then the second.
// CHECK:               %[[O:.*]] = tile.mma_async wgmma {{.*}} into
// CHECK:               %[[NQ:.*]] = tile.wait %[[QS]][
// CHECK:               %[[NK:.*]] = tile.wait %[[KS]][
// CHECK:               %[[NS:.*]] = tile.mma_async wgmma %[[NQ]], %[[NK]] transpose_b
// CHECK:               %[[SUM:.*]] = tile.wait_mma %[[O]] pending 1
// CHECK:               %[[LAST:.*]] = arith.select %{{.*}}, %{{.*}}, %[[SUM]]
// CHECK:               tile.store %[[LAST]]
// CHECK:               %[[N:.*]] = tile.wait_mma %[[NS]] :
// CHECK:               tile.release %[[KS]][
// CHECK:               scf.yield %[[N]], %[[NQ]]
// CHECK:             } else {
// CHECK:               scf.if %[[ANY]]
// CHECK:                 %[[O2:.*]] = tile.mma_async wgmma {{.*}} into
// CHECK-NEXT:            tile.wait_mma %[[O2]] :
// The accumulator of an item without steps is zero as it is.
// CHECK:               } else {
// CHECK-NEXT:            scf.yield %[[STEPS]]#
// CHECK:               tile.store
// CHECK:               scf.if %[[MORE]]
// CHECK:                 %[[NQ2:.*]] = tile.wait %[[QS]][
// CHECK:                 scf.if %[[ANY]]
// CHECK:                   tile.mma_async wgmma %[[NQ2]], {{.*}} transpose_b
// CHECK-NEXT:              tile.wait_mma
// CHECK:                 scf.yield %{{.*}}, %[[NQ2]]
// CHECK-NEXT:          } else {
// CHECK-NEXT:            scf.yield %{{.*}}, %[[Q]]
func.func @items(%q: memref<?x64xbf16>, %k: memref<?x64xbf16>, %out: memref<?x64xf32>, %keys: index, %tiles: index, %clears: i1) {
  tile.launch grid(%tiles) persistent linear warps 4 stages 2
      ins(%q, %k : memref<?x64xbf16>, memref<?x64xbf16>)
      outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %K: !g, %O: !o):
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %i = arith.muli %block, %c64 : index
    %qt = tile.load %Q[%i, %c0] dims [0, 1] : !g -> !tile.shared<64x64xbf16>
    %acc0 = tile.fill %zero : !s
    %end = scf.for %j = %c0 to %keys step %c64 iter_args(%acc = %acc0) -> (!s) {
      %kt = tile.load %K[%j, %c0] dims [0, 1] : !g -> !tile.shared<64x64xbf16>
      %vt = tile.load %K[%j, %c0] dims [0, 1] : !g -> !tile.shared<64x64xbf16>
      %x = tile.mma %qt, %kt transpose_b : !tile.shared<64x64xbf16>, !tile.shared<64x64xbf16> -> !s
      %p = tile.map ins(%x : !s) {
      ^bb0(%a: f32, %m: index, %n: index):
        %t = arith.truncf %a : f32 to bf16
        tile.yield %t : bf16
      } -> !tile.fragment<64x64xbf16>
      %acc1 = tile.mma %p, %vt into %acc : !tile.fragment<64x64xbf16>, !tile.shared<64x64xbf16>, !s -> !s
      scf.yield %acc1 : !s
    }
    %last = scf.if %clears -> (!s) {
      scf.yield %acc0 : !s
    } else {
      scf.yield %end : !s
    }
    tile.store %last, %O[%i, %c0] dims [0, 1] : !s, !o
  }
  return
}

// Slots that a warp group passes by: those of keys before the last product, those
// of values after it, since that product's own slot is released first; all in turn
// where they are not fewer than the slots, or where products do not overlap.
// The next item's place and end are carried to it; whether it has steps, a
// condition of these, is asked again.
// CHECK-LABEL: func.func @passed_by(
// CHECK:       tile.role "compute"
// CHECK:           %[[I0:.*]] = arith.muli %{{.*}}, %c128
// CHECK:           %[[END0:.*]] = arith.minsi
// CHECK:           %[[ANY0:.*]] = arith.cmpi sgt, %[[END0]], %c0
// CHECK:           scf.for %{{.*}} iter_args(%[[USES:[^ ,]*]] = %c0, {{.*}}, %[[I:[^ ,]*]] = %[[I0]], %[[END:[^ ,]*]] = %[[END0]])
// CHECK:             %[[ANY:.*]] = arith.cmpi sgt, %[[END]], %c0
// CHECK-NOT:         arith.muli
// CHECK:             %[[STEPS:.*]]:4 = scf.if %[[ANY]]
// CHECK:               scf.for %{{.*}} = %c64 to %[[END]]
// CHECK:             arith.divui
// CHECK:             %[[ALL:.*]] = arith.addi %[[USES]], %
// CHECK:             %[[NEXTI:.*]] = arith.muli
// CHECK:             %[[NEXTEND:.*]] = arith.minsi
// CHECK:             %[[NEXTANY:.*]] = arith.cmpi sgt, %[[NEXTEND]], %c0
// CHECK:             %[[COUNT:.*]] = arith.subi %[[ALL]], %[[STEPS]]#0
// CHECK:             %[[FEW:.*]] = arith.cmpi slt, %[[COUNT]], %c2
// CHECK:             %[[BOTH:.*]] = arith.andi %{{.*}}, %[[FEW]]
// CHECK:             scf.if %[[BOTH]]
// CHECK-NEXT:          scf.for %[[U:.*]] = %[[STEPS]]#0 to %[[ALL]] step %c1 {
// CHECK-NEXT:            tile.wait %[[KS:.*]][%[[U]]]
// CHECK-NEXT:            tile.release %[[KS]][%[[U]]]
// CHECK-NEXT:          }
// CHECK:               %[[LAST:.*]] = tile.mma_async wgmma {{.*}} into
// CHECK:               tile.wait %[[KS]][%[[ALL]]]
// CHECK:               tile.wait_mma %[[LAST]] pending 1
// CHECK-NEXT:          tile.release %[[VS:.*]][
// CHECK-NEXT:          scf.for %[[V:.*]] = %[[STEPS]]#0 to %[[ALL]] step %c1 {
// CHECK-NEXT:            tile.wait %[[VS]][%[[V]]]
// CHECK-NEXT:            tile.release %[[VS]][%[[V]]]
// CHECK-NEXT:          }
// CHECK:               tile.store %{{.*}}[%[[I]], %c0]
// CHECK:             } else {
// CHECK:               tile.wait_mma
// CHECK:               scf.for %[[W:.*]] = %[[STEPS]]#0 to %[[ALL]] step %c1 {
// CHECK-NEXT:            tile.wait %[[KS]][%[[W]]]
// CHECK-NEXT:            tile.release %[[KS]][%[[W]]]
// CHECK-NEXT:            tile.wait %[[VS]][%[[W]]]
// CHECK-NEXT:            tile.release %[[VS]][%[[W]]]
// CHECK-NEXT:          }
// CHECK:               tile.store %{{.*}}[%[[I]], %c0]
// CHECK:             scf.yield {{.*}}, %[[NEXTI]], %[[NEXTEND]] :
func.func @passed_by(%q: memref<?x64xbf16>, %k: memref<?x64xbf16>, %out: memref<?x64xf32>, %keys: index, %tiles: index) {
  tile.launch grid(%tiles) persistent linear warps 8 stages 2
      ins(%q, %k : memref<?x64xbf16>, memref<?x64xbf16>)
      outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %K: !g, %O: !o):
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %zero = arith.constant 0.0 : f32
    %i = arith.muli %block, %c128 : index
    %qt = tile.load %Q[%i, %c0] dims [0, 1] : !g -> !tile.shared<128x64xbf16>
    %acc0 = tile.fill %zero : !tile.fragment<128x64xf32>
    %to = tile.of_rows %keys rows 128 {
    ^bb0(%first: index, %last: index):
      %own = arith.addi %i, %last : index
      tile.yield %own : index
    } : index
    %end = scf.for %j = %c0 to %to step %c64 iter_args(%acc = %acc0) -> (!tile.fragment<128x64xf32>) {
      %kt = tile.load %K[%j, %c0] dims [0, 1] : !g -> !tile.shared<64x64xbf16>
      %vt = tile.load %K[%j, %c0] dims [0, 1] : !g -> !tile.shared<64x64xbf16>
      %x = tile.mma %qt, %kt transpose_b : !tile.shared<128x64xbf16>, !tile.shared<64x64xbf16> -> !tile.fragment<128x64xf32>
      %p = tile.map ins(%x : !tile.fragment<128x64xf32>) {
      ^bb0(%a: f32, %m: index, %n: index):
        %t = arith.truncf %a : f32 to bf16
        tile.yield %t : bf16
      } -> !tile.fragment<128x64xbf16>
      %acc1 = tile.mma %p, %vt into %acc : !tile.fragment<128x64xbf16>, !tile.shared<64x64xbf16>, !tile.fragment<128x64xf32> -> !tile.fragment<128x64xf32>
      scf.yield %acc1 : !tile.fragment<128x64xf32>
    }
    tile.store %end, %O[%i, %c0] dims [0, 1] : !tile.fragment<128x64xf32>, !o
  }
  return
}

// Slots that a warp group passes by in front of an item's steps: in front of the
// loop for the first item, and likewise in turn where products do not overlap; else
// those of keys before both products, those of values after the last one's release.
// CHECK-LABEL: func.func @passed_by_first(
// CHECK:       tile.role "compute"
// CHECK:         scf.if
// CHECK:           %[[N0:.*]] = arith.index_castui %{{.*}} : i32 to index
// CHECK:           tile.wait %[[QS:.*]][%c0]
// CHECK-NEXT:      scf.for %[[U0:.*]] = %c0 to %[[N0]] step %c1 {
// CHECK-NEXT:        tile.wait %[[KS:.*]][%[[U0]]]
// CHECK-NEXT:        tile.release %[[KS]][%[[U0]]]
// CHECK-NEXT:        tile.wait %[[VS:.*]][%[[U0]]]
// CHECK-NEXT:        tile.release %[[VS]][%[[U0]]]
// CHECK-NEXT:      }
// CHECK-NEXT:      scf.if
// CHECK-NEXT:        tile.wait %[[KS]][%[[N0]]]
// CHECK:           scf.for
// CHECK-NOT:         tile.wait %[[QS]]
// CHECK:             %[[STEPS:.*]]:4 = scf.if
// CHECK:             tile.release %[[QS]][
// CHECK:             %[[COUNT:.*]] = arith.index_castui %{{.*}} : i32 to index
// CHECK-NEXT:        %[[FIRST:.*]] = arith.addi %[[STEPS]]#0, %[[COUNT]]
// CHECK:             %[[FEW:.*]] = arith.cmpi slt, %[[COUNT]], %c2
// CHECK:             %[[BOTH:.*]] = arith.andi %{{.*}}, %[[FEW]]
// CHECK:             scf.if %[[BOTH]]
// CHECK-NEXT:          scf.for %[[U:.*]] = %[[STEPS]]#0 to %[[FIRST]] step %c1 {
// CHECK-NEXT:            tile.wait %[[KS]][%[[U]]]
// CHECK-NEXT:            tile.release %[[KS]][%[[U]]]
// CHECK-NEXT:          }
// CHECK:               %[[LAST:.*]] = tile.mma_async wgmma {{.*}} into
// CHECK:               tile.wait %[[KS]][%[[FIRST]]]
// CHECK:               tile.wait_mma %[[LAST]] pending 1
// CHECK-NEXT:          tile.release %[[VS]][
// CHECK-NEXT:          scf.for %[[V:.*]] = %[[STEPS]]#0 to %[[FIRST]] step %c1 {
// CHECK-NEXT:            tile.wait %[[VS]][%[[V]]]
// CHECK-NEXT:            tile.release %[[VS]][%[[V]]]
// CHECK-NEXT:          }
// CHECK:             } else {
// CHECK:               tile.store
// CHECK:                 tile.wait %[[QS]][
// CHECK-NEXT:            scf.for %[[W:.*]] = %[[STEPS]]#0 to %[[FIRST]] step %c1 {
// CHECK-NEXT:              tile.wait %[[KS]][%[[W]]]
// CHECK-NEXT:              tile.release %[[KS]][%[[W]]]
// CHECK-NEXT:              tile.wait %[[VS]][%[[W]]]
// CHECK-NEXT:              tile.release %[[VS]][%[[W]]]
// CHECK-NEXT:            }
func.func @passed_by_first(%q: memref<?x64xbf16>, %k: memref<?x64xbf16>, %out: memref<?x64xf32>, %keys: index, %tiles: index) {
  tile.launch grid(%tiles) persistent linear warps 8 stages 2
      ins(%q, %k : memref<?x64xbf16>, memref<?x64xbf16>)
      outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %K: !g, %O: !o):
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %zero = arith.constant 0.0 : f32
    %i = arith.muli %block, %c128 : index
    %qt = tile.load %Q[%i, %c0] dims [0, 1] : !g -> !tile.shared<128x64xbf16>
    %acc0 = tile.fill %zero : !tile.fragment<128x64xf32>
    %from = tile.of_rows %c0 rows 128 {
    ^bb0(%first: index, %last: index):
      %own = arith.subi %i, %last : index
      tile.yield %own : index
    } : index
    %end = scf.for %j = %from to %keys step %c64 iter_args(%acc = %acc0) -> (!tile.fragment<128x64xf32>) {
      %kt = tile.load %K[%j, %c0] dims [0, 1] : !g -> !tile.shared<64x64xbf16>
      %vt = tile.load %K[%j, %c0] dims [0, 1] : !g -> !tile.shared<64x64xbf16>
      %x = tile.mma %qt, %kt transpose_b : !tile.shared<128x64xbf16>, !tile.shared<64x64xbf16> -> !tile.fragment<128x64xf32>
      %p = tile.map ins(%x : !tile.fragment<128x64xf32>) {
      ^bb0(%a: f32, %m: index, %n: index):
        %t = arith.truncf %a : f32 to bf16
        tile.yield %t : bf16
      } -> !tile.fragment<128x64xbf16>
      %acc1 = tile.mma %p, %vt into %acc : !tile.fragment<128x64xbf16>, !tile.shared<64x64xbf16>, !tile.fragment<128x64xf32> -> !tile.fragment<128x64xf32>
      scf.yield %acc1 : !tile.fragment<128x64xf32>
    }
    tile.store %end, %O[%i, %c0] dims [0, 1] : !tile.fragment<128x64xf32>, !o
  }
  return
}

// The next item's end is read from a table that the launch does not write.
// CHECK-LABEL: func.func @table(
// CHECK:       tile.role "compute"
// CHECK:         scf.for {{.*}} iter_args(
// CHECK:           %[[STEPS:.*]]:4 = scf.if
// CHECK:           memref.load
// CHECK:           tile.mma_async wgmma {{.*}} into
// CHECK:           tile.mma_async wgmma {{.*}} transpose_b
// CHECK:           tile.wait_mma %{{.*}} pending 1
// CHECK:           tile.store
func.func @table(%q: memref<?x64xbf16>, %k: memref<?x64xbf16>, %ends: memref<?x64xf32>, %out: memref<?x64xf32>, %tiles: index) {
  tile.launch grid(%tiles) persistent linear warps 4 stages 2
      ins(%q, %k, %ends : memref<?x64xbf16>, memref<?x64xbf16>, memref<?x64xf32>)
      outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %K: !g, %E: !o, %O: !o):
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %i = arith.muli %block, %c64 : index
    %number = memref.load %E[%i, %c0] : !o
    %integer = arith.fptosi %number : f32 to i64
    %keys = arith.index_cast %integer : i64 to index
    %qt = tile.load %Q[%i, %c0] dims [0, 1] : !g -> !tile.shared<64x64xbf16>
    %acc0 = tile.fill %zero : !s
    %end = scf.for %j = %c0 to %keys step %c64 iter_args(%acc = %acc0) -> (!s) {
      %kt = tile.load %K[%j, %c0] dims [0, 1] : !g -> !tile.shared<64x64xbf16>
      %vt = tile.load %K[%j, %c0] dims [0, 1] : !g -> !tile.shared<64x64xbf16>
      %x = tile.mma %qt, %kt transpose_b : !tile.shared<64x64xbf16>, !tile.shared<64x64xbf16> -> !s
      %p = tile.map ins(%x : !s) {
      ^bb0(%a: f32, %m: index, %n: index):
        %t = arith.truncf %a : f32 to bf16
        tile.yield %t : bf16
      } -> !tile.fragment<64x64xbf16>
      %acc1 = tile.mma %p, %vt into %acc : !tile.fragment<64x64xbf16>, !tile.shared<64x64xbf16>, !s -> !s
      scf.yield %acc1 : !s
    }
    tile.store %end, %O[%i, %c0] dims [0, 1] : !s, !o
  }
  return
}

// What memory has for the rows of an item is read with the next item's end, in front of
// both products, and carried to it; what else is found of these rows is found again.
// CHECK-LABEL: func.func @rows(
// CHECK:       ^bb0({{.*}}, %[[FIRST:[^:]*]]: memref<?xi32, {{[^>]*>}}>, %{{[^:]*}}: memref<?x64xf32, {{[^>]*>}}>):
// CHECK:       tile.role "compute"
// CHECK:         scf.if
// CHECK:           %[[ROWS0:.*]] = tile.map {
// CHECK:             memref.load %[[FIRST]]
// CHECK:           tile.mma_async wgmma {{.*}} transpose_b
// CHECK:           scf.for {{.*}} iter_args({{.*}}, %[[ROWS:[^ ,]*]] = %[[ROWS0]])
// CHECK-NOT:         memref.load
// CHECK:             %{{.*}}, %[[GREATEST:.*]] = tile.extremes %[[ROWS]]
// CHECK-NOT:         memref.load
// CHECK:             %[[STEPS:.*]]:4 = scf.if
// CHECK:               arith.cmpi sgt, %[[GREATEST]], %c0_i32
// CHECK:               tile.map ins(%{{.*}}) rows(%[[ROWS]] :
// CHECK-NOT:         memref.load
// CHECK:             %[[PLACE:.*]] = arith.muli %{{.*}}, %c64
// CHECK-NEXT:        %[[NEXTROWS:.*]] = tile.map {
// CHECK-NEXT:        ^bb0(%[[R:.*]]: index):
// CHECK-NEXT:          %[[ROW:.*]] = arith.addi %[[PLACE]], %[[R]] : index
// CHECK-NEXT:          memref.load %[[FIRST]][%[[ROW]]]
// CHECK-NOT:         memref.load
// CHECK:             tile.mma_async wgmma {{.*}} into
// CHECK-NOT:         memref.load
// CHECK:             tile.mma_async wgmma {{.*}} transpose_b
// CHECK:             tile.store
// CHECK:             scf.yield {{.*}}, %[[NEXTROWS]] :
// CHECK-NOT:         memref.load
func.func @rows(%q: memref<?x64xbf16>, %k: memref<?x64xbf16>, %first: memref<?xi32>, %out: memref<?x64xf32>, %keys: index, %tiles: index) {
  tile.launch grid(%tiles) persistent linear warps 4 stages 2
      ins(%q, %k, %first : memref<?x64xbf16>, memref<?x64xbf16>, memref<?xi32>)
      outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %K: !g, %F: memref<?xi32, strided<[1], offset: ?>>, %O: !o):
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %i = arith.muli %block, %c64 : index
    %qt = tile.load %Q[%i, %c0] dims [0, 1] : !g -> !tile.shared<64x64xbf16>
    %acc0 = tile.fill %zero : !s
    %rows = tile.map {
    ^bb0(%r: index):
      %row = arith.addi %i, %r : index
      %own = memref.load %F[%row] : memref<?xi32, strided<[1], offset: ?>>
      tile.yield %own : i32
    } -> !tile.fragment<64xi32>
    %least, %greatest = tile.extremes %rows : !tile.fragment<64xi32>
    %end = scf.for %j = %c0 to %keys step %c64 iter_args(%acc = %acc0) -> (!s) {
      %kt = tile.load %K[%j, %c0] dims [0, 1] : !g -> !tile.shared<64x64xbf16>
      %vt = tile.load %K[%j, %c0] dims [0, 1] : !g -> !tile.shared<64x64xbf16>
      %x = tile.mma %qt, %kt transpose_b : !tile.shared<64x64xbf16>, !tile.shared<64x64xbf16> -> !s
      %key = arith.index_cast %j : index to i32
      %is = arith.cmpi slt, %key, %greatest : i32
      %m = scf.if %is -> (!s) {
        %y = tile.map ins(%x : !s) rows(%rows : !tile.fragment<64xi32>) {
        ^bb0(%a: f32, %own: i32, %r: index, %c: index):
          %past = arith.cmpi sge, %key, %own : i32
          %z = arith.select %past, %a, %zero : f32
          tile.yield %z : f32
        } -> !s
        scf.yield %y : !s
      } else {
        scf.yield %x : !s
      }
      %p = tile.map ins(%m : !s) {
      ^bb0(%a: f32, %r: index, %c: index):
        %t = arith.truncf %a : f32 to bf16
        tile.yield %t : bf16
      } -> !tile.fragment<64x64xbf16>
      %acc1 = tile.mma %p, %vt into %acc : !tile.fragment<64x64xbf16>, !tile.shared<64x64xbf16>, !s -> !s
      scf.yield %acc1 : !s
    }
    tile.store %end, %O[%i, %c0] dims [0, 1] : !s, !o
  }
  return
}

// Groups that take turns have no registers for what the next item reads: each item reads it.
// CHECK-LABEL: func.func @rows_in_turn(
// CHECK:       ^bb0({{.*}}, %[[FIRST:[^:]*]]: memref<?xi32, {{[^>]*>}}>, %{{[^:]*}}: memref<?x64xf32, {{[^>]*>}}>):
// CHECK:       tile.role "compute"
// CHECK:         tile.mma_async wgmma {{.*}} transpose_b
// CHECK:           scf.for
// CHECK:             %[[ROWS:.*]] = tile.map {
// CHECK:               memref.load %[[FIRST]]
// CHECK:             tile.extremes %[[ROWS]]
// CHECK:             tile.mma_async wgmma {{.*}} into
// CHECK-NOT:         memref.load
// CHECK:             tile.mma_async wgmma {{.*}} transpose_b
// CHECK-NOT:         memref.load
// CHECK:             tile.store
func.func @rows_in_turn(%q: memref<?x64xbf16>, %k: memref<?x64xbf16>, %first: memref<?xi32>, %out: memref<?x64xf32>, %keys: index, %tiles: index) {
  tile.launch grid(%tiles) persistent linear warps 4 in_turn stages 2
      ins(%q, %k, %first : memref<?x64xbf16>, memref<?x64xbf16>, memref<?xi32>)
      outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %K: !g, %F: memref<?xi32, strided<[1], offset: ?>>, %O: !o):
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %i = arith.muli %block, %c64 : index
    %qt = tile.load %Q[%i, %c0] dims [0, 1] : !g -> !tile.shared<64x64xbf16>
    %acc0 = tile.fill %zero : !s
    %rows = tile.map {
    ^bb0(%r: index):
      %row = arith.addi %i, %r : index
      %own = memref.load %F[%row] : memref<?xi32, strided<[1], offset: ?>>
      tile.yield %own : i32
    } -> !tile.fragment<64xi32>
    %least, %greatest = tile.extremes %rows : !tile.fragment<64xi32>
    %end = scf.for %j = %c0 to %keys step %c64 iter_args(%acc = %acc0) -> (!s) {
      %kt = tile.load %K[%j, %c0] dims [0, 1] : !g -> !tile.shared<64x64xbf16>
      %vt = tile.load %K[%j, %c0] dims [0, 1] : !g -> !tile.shared<64x64xbf16>
      %x = tile.mma %qt, %kt transpose_b : !tile.shared<64x64xbf16>, !tile.shared<64x64xbf16> -> !s
      %key = arith.index_cast %j : index to i32
      %is = arith.cmpi slt, %key, %greatest : i32
      %m = scf.if %is -> (!s) {
        %y = tile.map ins(%x : !s) rows(%rows : !tile.fragment<64xi32>) {
        ^bb0(%a: f32, %own: i32, %r: index, %c: index):
          %past = arith.cmpi sge, %key, %own : i32
          %z = arith.select %past, %a, %zero : f32
          tile.yield %z : f32
        } -> !s
        scf.yield %y : !s
      } else {
        scf.yield %x : !s
      }
      %p = tile.map ins(%m : !s) {
      ^bb0(%a: f32, %r: index, %c: index):
        %t = arith.truncf %a : f32 to bf16
        tile.yield %t : bf16
      } -> !tile.fragment<64x64xbf16>
      %acc1 = tile.mma %p, %vt into %acc : !tile.fragment<64x64xbf16>, !tile.shared<64x64xbf16>, !s -> !s
      scf.yield %acc1 : !s
    }
    tile.store %end, %O[%i, %c0] dims [0, 1] : !s, !o
  }
  return
}

// What the launch writes may change in between.
// CHECK-LABEL: func.func @written(
// CHECK:       tile.role "compute"
// CHECK:         tile.mma_async wgmma {{.*}} into
// CHECK:         tile.mma_async wgmma {{.*}} into
// CHECK-NOT:     transpose_b
// CHECK:         tile.store
func.func @written(%q: memref<?x64xbf16>, %k: memref<?x64xbf16>, %ends: memref<?x64xf32>, %out: memref<?x64xf32>, %tiles: index) {
  tile.launch grid(%tiles) persistent linear warps 4 stages 2
      ins(%q, %k, %ends : memref<?x64xbf16>, memref<?x64xbf16>, memref<?x64xf32>)
      outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %K: !g, %E: !o, %O: !o):
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %i = arith.muli %block, %c64 : index
    %number = memref.load %O[%i, %c0] : !o
    %integer = arith.fptosi %number : f32 to i64
    %keys = arith.index_cast %integer : i64 to index
    %qt = tile.load %Q[%i, %c0] dims [0, 1] : !g -> !tile.shared<64x64xbf16>
    %acc0 = tile.fill %zero : !s
    %end = scf.for %j = %c0 to %keys step %c64 iter_args(%acc = %acc0) -> (!s) {
      %kt = tile.load %K[%j, %c0] dims [0, 1] : !g -> !tile.shared<64x64xbf16>
      %vt = tile.load %K[%j, %c0] dims [0, 1] : !g -> !tile.shared<64x64xbf16>
      %x = tile.mma %qt, %kt transpose_b : !tile.shared<64x64xbf16>, !tile.shared<64x64xbf16> -> !s
      %p = tile.map ins(%x : !s) {
      ^bb0(%a: f32, %m: index, %n: index):
        %t = arith.truncf %a : f32 to bf16
        tile.yield %t : bf16
      } -> !tile.fragment<64x64xbf16>
      %acc1 = tile.mma %p, %vt into %acc : !tile.fragment<64x64xbf16>, !tile.shared<64x64xbf16>, !s -> !s
      scf.yield %acc1 : !s
    }
    tile.store %end, %O[%i, %c0] dims [0, 1] : !s, !o
  }
  return
}

// A block with one item, items of a single product, and items whose last product
// reads the tile that the first one reads: its slot is not free before.
// CHECK-LABEL: func.func @one(
// CHECK-NOT:     pending 1
// CHECK:       func.func @products(
// CHECK-NOT:     pending 1
// CHECK:       func.func @last_reads_queries(
// CHECK-NOT:     -> ({{.*}}!tile.shared
func.func @one(%q: memref<?x64xbf16>, %k: memref<?x64xbf16>, %out: memref<?x64xf32>, %keys: index, %tiles: index) {
  tile.launch grid(%tiles) warps 4 stages 2
      ins(%q, %k : memref<?x64xbf16>, memref<?x64xbf16>)
      outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %K: !g, %O: !o):
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %qt = tile.load %Q[%c0, %c0] dims [0, 1] : !g -> !tile.shared<64x64xbf16>
    %x = tile.mma %qt, %qt transpose_b : !tile.shared<64x64xbf16>, !tile.shared<64x64xbf16> -> !s
    tile.store %x, %O[%c0, %c0] dims [0, 1] : !s, !o
  }
  return
}

func.func @products(%q: memref<?x64xbf16>, %k: memref<?x64xbf16>, %out: memref<?x64xf32>, %keys: index, %tiles: index) {
  tile.launch grid(%tiles) persistent linear warps 4 stages 2
      ins(%q, %k : memref<?x64xbf16>, memref<?x64xbf16>)
      outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %K: !g, %O: !o):
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %i = arith.muli %block, %c64 : index
    %qt = tile.load %Q[%i, %c0] dims [0, 1] : !g -> !tile.shared<64x64xbf16>
    %acc0 = tile.fill %zero : !s
    %end = scf.for %j = %c0 to %keys step %c64 iter_args(%acc = %acc0) -> (!s) {
      %kt = tile.load %K[%j, %c0] dims [0, 1] : !g -> !tile.shared<64x64xbf16>
      %x = tile.mma %qt, %kt into %acc transpose_b : !tile.shared<64x64xbf16>, !tile.shared<64x64xbf16>, !s -> !s
      scf.yield %x : !s
    }
    tile.store %end, %O[%i, %c0] dims [0, 1] : !s, !o
  }
  return
}

func.func @last_reads_queries(%q: memref<?x64xbf16>, %k: memref<?x64xbf16>, %out: memref<?x64xf32>, %keys: index, %tiles: index) {
  tile.launch grid(%tiles) persistent linear warps 4 stages 2
      ins(%q, %k : memref<?x64xbf16>, memref<?x64xbf16>)
      outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %K: !g, %O: !o):
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %i = arith.muli %block, %c64 : index
    %qt = tile.load %Q[%i, %c0] dims [0, 1] : !g -> !tile.shared<64x64xbf16>
    %acc0 = tile.fill %zero : !s
    %end = scf.for %j = %c0 to %keys step %c64 iter_args(%acc = %acc0) -> (!s) {
      %kt = tile.load %K[%j, %c0] dims [0, 1] : !g -> !tile.shared<64x64xbf16>
      %x = tile.mma %qt, %kt transpose_b : !tile.shared<64x64xbf16>, !tile.shared<64x64xbf16> -> !s
      %p = tile.map ins(%x : !s) {
      ^bb0(%a: f32, %m: index, %n: index):
        %t = arith.truncf %a : f32 to bf16
        tile.yield %t : bf16
      } -> !tile.fragment<64x64xbf16>
      %acc1 = tile.mma %p, %qt into %acc : !tile.fragment<64x64xbf16>, !tile.shared<64x64xbf16>, !s -> !s
      scf.yield %acc1 : !s
    }
    tile.store %end, %O[%i, %c0] dims [0, 1] : !s, !o
  }
  return
}
