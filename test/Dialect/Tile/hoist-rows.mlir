// RUN: fovea-opt %s --tile-hoist-rows --cse | FileCheck %s

!g = memref<?x64xbf16, strided<[?, 1], offset: ?>>
!o = memref<?x64xf32, strided<[?, 1], offset: ?>>
!n = memref<?xi32, strided<[1], offset: ?>>
!w = memref<?xi64, strided<[1], offset: ?>>
!t = !tile.shared<64x64xbf16>
!s = !tile.fragment<64x64xf32>

// What each row has is read once, in front of the loop, if this has a step; what each
// column has stays. A row that the loop would not read may be behind the last element,
// of which there may be none.
// CHECK-LABEL: func.func @row(
// CHECK:         ^bb0(%{{[^:]*}}: index, %{{[^:]*}}: memref<?x64xbf16, {{[^>]*>>}}, %[[FIRST:[^:]*]]: memref<?xi32
// CHECK:         %[[STEPS:.*]] = arith.cmpi slt, %[[BEGIN:.*]], %[[END:.*]] : index
// CHECK:         %[[SIZE:.*]] = memref.dim %[[FIRST]], %c0
// CHECK-NEXT:    %[[LAST:.*]] = arith.subi %[[SIZE]], %c1 : index
// CHECK-NEXT:    %[[ROOM:.*]] = arith.cmpi sgt, %[[SIZE]], %c0 : index
// CHECK-NEXT:    %[[ANY:.*]] = arith.andi %[[STEPS]], %[[ROOM]] : i1
// CHECK-NEXT:    %[[ROWS:.*]] = tile.map {
// CHECK-NEXT:    ^bb0(%[[R:.*]]: index):
// CHECK-NEXT:      %[[ROW:.*]] = arith.addi %{{.*}}, %[[R]] : index
// CHECK-NEXT:      %[[LEAST:.*]] = arith.maxsi %[[ROW]], %c0 : index
// CHECK-NEXT:      %[[AT:.*]] = arith.minsi %[[LEAST]], %[[LAST]] : index
// CHECK-NEXT:      %[[X:.*]] = scf.if %[[ANY]] -> (i32) {
// CHECK-NEXT:        %[[READ:.*]] = memref.load %[[FIRST]][%[[AT]]]
// CHECK-NEXT:        scf.yield %[[READ]] : i32
// CHECK-NEXT:      } else {
// CHECK:             scf.yield %c0_i32 : i32
// CHECK:           tile.yield %[[X]] : i32
// CHECK-NEXT:    } -> !tile.fragment<64xi32>
// CHECK:         scf.for %[[J:[^ ]*]] = %[[BEGIN]] to %[[END]]
// CHECK:           tile.map ins(%{{.*}} : !tile.fragment<64x64xf32>) rows(%[[ROWS]] : !tile.fragment<64xi32>) {
// CHECK-NEXT:      ^bb0(%{{.*}}: f32, %[[OWN:[^:]*]]: i32, %{{.*}}: index, %{{.*}}: index):
// CHECK:             %[[COLUMN:.*]] = memref.load %[[FIRST]]
// CHECK-NOT:         memref.load
// CHECK:             arith.cmpi eq, %[[OWN]], %[[COLUMN]] : i32
func.func @row(%q: memref<?x64xbf16>, %first: memref<?xi32>, %out: memref<?x64xf32>, %n: index, %begin: index, %end: index) {
  tile.launch grid(%n) warps 4 stages 2 ins(%q, %first : memref<?x64xbf16>, memref<?xi32>) outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %F: !n, %O: !o):
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %i = arith.muli %block, %c64 : index
    %qt = tile.load %Q[%i, %c0] dims [0, 1] : !g -> !t
    %acc0 = tile.fill %zero : !s
    %sum = scf.for %j = %begin to %end step %c64 iter_args(%acc = %acc0) -> (!s) {
      %kt = tile.load %Q[%j, %c0] dims [0, 1] : !g -> !t
      %x = tile.mma %qt, %kt into %acc transpose_b : !t, !t, !s -> !s
      %m = tile.map ins(%x : !s) {
      ^bb0(%a: f32, %r: index, %c: index):
        %row = arith.addi %i, %r : index
        %column = arith.addi %j, %c : index
        %own = memref.load %F[%row] : !n
        %other = memref.load %F[%column] : !n
        %same = arith.cmpi eq, %own, %other : i32
        %y = arith.select %same, %a, %zero : f32
        tile.yield %y : f32
      } -> !s
      scf.yield %m : !s
    }
    tile.store %sum, %O[%i, %c0] dims [0, 1] : !s, !o
  }
  return
}

// What two maps read of a row is read once, also for a map over rows, which is the same in
// all steps then, and moves in front of the loop, as does whether it holds for any; where the loop ends for some of the rows
// does not matter.
// CHECK-LABEL: func.func @shared(
// CHECK:         %[[OWN:.*]] = tile.of_rows %[[END:.*]] rows 64 {
// CHECK:         %[[STEPS:.*]] = arith.cmpi slt, %c0, %[[END]] : index
// CHECK:         %[[ROWS:.*]] = tile.map {
// CHECK:           memref.load
// CHECK-NOT:     memref.load
// CHECK:         %[[TESTS:.*]] = tile.map ins(%[[ROWS]] : !tile.fragment<64xi32>) {
// CHECK-NEXT:    ^bb0(%[[X:.*]]: i32, %{{.*}}: index):
// CHECK-NEXT:      arith.cmpi sge, %[[X]], %
// CHECK-NOT:     memref.load
// CHECK:         %[[ANY:.*]] = tile.any %[[TESTS]] : !tile.fragment<64xi1>
// CHECK-NOT:     memref.load
// CHECK:         scf.for %{{.*}} = %c0 to %[[OWN]]
// CHECK:           scf.if %[[ANY]]
// CHECK-NEXT:        tile.map ins(%{{.*}} : !tile.fragment<64x64xf32>) rows(%[[ROWS]] : !tile.fragment<64xi32>) {
func.func @shared(%q: memref<?x64xbf16>, %first: memref<?xi32>, %out: memref<?x64xf32>, %n: index, %end: index, %least: i32) {
  tile.launch grid(%n) warps 4 stages 2 ins(%q, %first : memref<?x64xbf16>, memref<?xi32>) outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %F: !n, %O: !o):
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %i = arith.muli %block, %c64 : index
    %qt = tile.load %Q[%i, %c0] dims [0, 1] : !g -> !t
    %acc0 = tile.fill %zero : !s
    %own_end = tile.of_rows %end rows 64 {
    ^bb0(%from: index, %to: index):
      tile.yield %to : index
    } : index
    %sum = scf.for %j = %c0 to %own_end step %c64 iter_args(%acc = %acc0) -> (!s) {
      %kt = tile.load %Q[%j, %c0] dims [0, 1] : !g -> !t
      %x = tile.mma %qt, %kt into %acc transpose_b : !t, !t, !s -> !s
      %tests = tile.map {
      ^bb0(%r: index):
        %row = arith.addi %i, %r : index
        %own = memref.load %F[%row] : !n
        %is = arith.cmpi sge, %own, %least : i32
        tile.yield %is : i1
      } -> !tile.fragment<64xi1>
      %any = tile.any %tests : !tile.fragment<64xi1>
      %m = scf.if %any -> (!s) {
        %y = tile.map ins(%x : !s) {
        ^bb0(%a: f32, %r: index, %c: index):
          %row = arith.addi %i, %r : index
          %own = memref.load %F[%row] : !n
          %column = arith.index_cast %c : index to i32
          %past = arith.cmpi sge, %own, %column : i32
          %z = arith.select %past, %a, %zero : f32
          tile.yield %z : f32
        } -> !s
        scf.yield %y : !s
      } else {
        scf.yield %x : !s
      }
      scf.yield %m : !s
    }
    tile.store %sum, %O[%i, %c0] dims [0, 1] : !s, !o
  }
  return
}

// A row that is computed from values which are each used twice is followed once, not
// once for each of the ways to it.
// CHECK-LABEL: func.func @doubled(
// CHECK:         %[[ROWS:.*]] = tile.map {
// CHECK:           memref.load
// CHECK-NOT:     memref.load
// CHECK:         scf.for
// CHECK:           tile.map ins(%{{.*}} : !tile.fragment<64x64xf32>) rows(%[[ROWS]] : !tile.fragment<64xi32>) {
// CHECK:           tile.map ins(%{{.*}} : !tile.fragment<64x64xf32>) rows(%[[ROWS]] : !tile.fragment<64xi32>) {
func.func @doubled(%q: memref<?x64xbf16>, %first: memref<?xi32>, %out: memref<?x64xf32>, %n: index, %end: index) {
  tile.launch grid(%n) warps 4 stages 2 ins(%q, %first : memref<?x64xbf16>, memref<?xi32>) outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %F: !n, %O: !o):
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %i = arith.muli %block, %c64 : index
    %qt = tile.load %Q[%i, %c0] dims [0, 1] : !g -> !t
    %acc0 = tile.fill %zero : !s
    %sum = scf.for %j = %c0 to %end step %c64 iter_args(%acc = %acc0) -> (!s) {
      %kt = tile.load %Q[%j, %c0] dims [0, 1] : !g -> !t
      %x = tile.mma %qt, %kt into %acc transpose_b : !t, !t, !s -> !s
      %y = tile.map ins(%x : !s) {
      ^bb0(%a: f32, %r: index, %c: index):
        %r0 = arith.addi %i, %r : index
        %r1 = arith.addi %r0, %r0 : index
        %r2 = arith.addi %r1, %r1 : index
        %r3 = arith.addi %r2, %r2 : index
        %r4 = arith.addi %r3, %r3 : index
        %r5 = arith.addi %r4, %r4 : index
        %r6 = arith.addi %r5, %r5 : index
        %r7 = arith.addi %r6, %r6 : index
        %r8 = arith.addi %r7, %r7 : index
        %r9 = arith.addi %r8, %r8 : index
        %r10 = arith.addi %r9, %r9 : index
        %r11 = arith.addi %r10, %r10 : index
        %r12 = arith.addi %r11, %r11 : index
        %r13 = arith.addi %r12, %r12 : index
        %r14 = arith.addi %r13, %r13 : index
        %r15 = arith.addi %r14, %r14 : index
        %r16 = arith.addi %r15, %r15 : index
        %r17 = arith.addi %r16, %r16 : index
        %r18 = arith.addi %r17, %r17 : index
        %r19 = arith.addi %r18, %r18 : index
        %r20 = arith.addi %r19, %r19 : index
        %r21 = arith.addi %r20, %r20 : index
        %r22 = arith.addi %r21, %r21 : index
        %r23 = arith.addi %r22, %r22 : index
        %r24 = arith.addi %r23, %r23 : index
        %r25 = arith.addi %r24, %r24 : index
        %r26 = arith.addi %r25, %r25 : index
        %r27 = arith.addi %r26, %r26 : index
        %r28 = arith.addi %r27, %r27 : index
        %r29 = arith.addi %r28, %r28 : index
        %r30 = arith.addi %r29, %r29 : index
        %r31 = arith.addi %r30, %r30 : index
        %r32 = arith.addi %r31, %r31 : index
        %r33 = arith.addi %r32, %r32 : index
        %r34 = arith.addi %r33, %r33 : index
        %r35 = arith.addi %r34, %r34 : index
        %r36 = arith.addi %r35, %r35 : index
        %own = memref.load %F[%r36] : !n
        %column = arith.index_cast %c : index to i32
        %is = arith.cmpi sge, %own, %column : i32
        %b = arith.select %is, %a, %zero : f32
        tile.yield %b : f32
      } -> !s
      %z = tile.map ins(%y : !s) {
      ^bb0(%a: f32, %r: index, %c: index):
        %r0 = arith.addi %i, %r : index
        %r1 = arith.addi %r0, %r0 : index
        %r2 = arith.addi %r1, %r1 : index
        %r3 = arith.addi %r2, %r2 : index
        %r4 = arith.addi %r3, %r3 : index
        %r5 = arith.addi %r4, %r4 : index
        %r6 = arith.addi %r5, %r5 : index
        %r7 = arith.addi %r6, %r6 : index
        %r8 = arith.addi %r7, %r7 : index
        %r9 = arith.addi %r8, %r8 : index
        %r10 = arith.addi %r9, %r9 : index
        %r11 = arith.addi %r10, %r10 : index
        %r12 = arith.addi %r11, %r11 : index
        %r13 = arith.addi %r12, %r12 : index
        %r14 = arith.addi %r13, %r13 : index
        %r15 = arith.addi %r14, %r14 : index
        %r16 = arith.addi %r15, %r15 : index
        %r17 = arith.addi %r16, %r16 : index
        %r18 = arith.addi %r17, %r17 : index
        %r19 = arith.addi %r18, %r18 : index
        %r20 = arith.addi %r19, %r19 : index
        %r21 = arith.addi %r20, %r20 : index
        %r22 = arith.addi %r21, %r21 : index
        %r23 = arith.addi %r22, %r22 : index
        %r24 = arith.addi %r23, %r23 : index
        %r25 = arith.addi %r24, %r24 : index
        %r26 = arith.addi %r25, %r25 : index
        %r27 = arith.addi %r26, %r26 : index
        %r28 = arith.addi %r27, %r27 : index
        %r29 = arith.addi %r28, %r28 : index
        %r30 = arith.addi %r29, %r29 : index
        %r31 = arith.addi %r30, %r30 : index
        %r32 = arith.addi %r31, %r31 : index
        %r33 = arith.addi %r32, %r32 : index
        %r34 = arith.addi %r33, %r33 : index
        %r35 = arith.addi %r34, %r34 : index
        %r36 = arith.addi %r35, %r35 : index
        %own = memref.load %F[%r36] : !n
        %column = arith.index_cast %c : index to i32
        %is = arith.cmpi sle, %own, %column : i32
        %b = arith.select %is, %a, %zero : f32
        tile.yield %b : f32
      } -> !s
      scf.yield %z : !s
    }
    tile.store %sum, %O[%i, %c0] dims [0, 1] : !s, !o
  }
  return
}

// Extremes of what rows have are found once, too, from what else the loop reads of them.
// CHECK-LABEL: func.func @extremes(
// CHECK:         %[[ROWS:.*]] = tile.map {
// CHECK:           memref.load
// CHECK-NOT:     memref.load
// CHECK:         %[[OWN:.*]] = tile.map ins(%[[ROWS]] : !tile.fragment<64xi32>) {
// CHECK:         %[[LEAST:.*]], %{{.*}} = tile.extremes %[[OWN]] : !tile.fragment<64xi32>
// CHECK:         scf.for %[[J:[^ ]*]] =
// CHECK-NOT:       tile.extremes
// CHECK-NOT:       memref.load
// CHECK:           %[[KEY:.*]] = arith.index_cast %[[J]] : index to i32
// CHECK:           arith.cmpi sge, %[[KEY]], %[[LEAST]] : i32
// CHECK:           tile.map ins(%{{.*}} : !tile.fragment<64x64xf32>) rows(%[[ROWS]] : !tile.fragment<64xi32>) {
// CHECK-NOT:       memref.load
// CHECK:         tile.store
func.func @extremes(%q: memref<?x64xbf16>, %first: memref<?xi32>, %out: memref<?x64xf32>, %n: index, %end: index) {
  tile.launch grid(%n) warps 4 stages 2 ins(%q, %first : memref<?x64xbf16>, memref<?xi32>) outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %F: !n, %O: !o):
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %two = arith.constant 2 : i32
    %i = arith.muli %block, %c64 : index
    %qt = tile.load %Q[%i, %c0] dims [0, 1] : !g -> !t
    %acc0 = tile.fill %zero : !s
    %sum = scf.for %j = %c0 to %end step %c64 iter_args(%acc = %acc0) -> (!s) {
      %kt = tile.load %Q[%j, %c0] dims [0, 1] : !g -> !t
      %x = tile.mma %qt, %kt into %acc transpose_b : !t, !t, !s -> !s
      %rows = tile.map {
      ^bb0(%r: index):
        %row = arith.addi %i, %r : index
        %own = memref.load %F[%row] : !n
        %double = arith.muli %own, %two : i32
        tile.yield %double : i32
      } -> !tile.fragment<64xi32>
      %least, %greatest = tile.extremes %rows : !tile.fragment<64xi32>
      %key = arith.index_cast %j : index to i32
      %is = arith.cmpi sge, %key, %least : i32
      %m = scf.if %is -> (!s) {
        %y = tile.map ins(%x : !s) {
        ^bb0(%a: f32, %r: index, %c: index):
          %row = arith.addi %i, %r : index
          %own = memref.load %F[%row] : !n
          %column = arith.index_cast %c : index to i32
          %past = arith.cmpi sge, %own, %column : i32
          %z = arith.select %past, %a, %zero : f32
          tile.yield %z : f32
        } -> !s
        scf.yield %y : !s
      } else {
        scf.yield %x : !s
      }
      scf.yield %m : !s
    }
    tile.store %sum, %O[%i, %c0] dims [0, 1] : !s, !o
  }
  return
}

// Numbers of 64 bits, one that is the same for all rows, one that the launch may
// write, and one that is read under a condition.
// CHECK-LABEL: func.func @kept(
// CHECK-NOT:     tile.map {
// CHECK-NOT:     rows(
// CHECK:         tile.store
func.func @kept(%q: memref<?x64xbf16>, %wide: memref<?xi64>, %first: memref<?xi32>, %out: memref<?x64xf32>, %n: index, %end: index) {
  tile.launch grid(%n) warps 4 stages 2 ins(%q, %wide, %first : memref<?x64xbf16>, memref<?xi64>, memref<?xi32>) outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %W: !w, %F: !n, %O: !o):
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %none = arith.constant 0 : i32
    %i = arith.muli %block, %c64 : index
    %qt = tile.load %Q[%i, %c0] dims [0, 1] : !g -> !t
    %acc0 = tile.fill %zero : !s
    %sum = scf.for %j = %c0 to %end step %c64 iter_args(%acc = %acc0) -> (!s) {
      %kt = tile.load %Q[%j, %c0] dims [0, 1] : !g -> !t
      %x = tile.mma %qt, %kt into %acc transpose_b : !t, !t, !s -> !s
      %m = tile.map ins(%x : !s) {
      ^bb0(%a: f32, %r: index, %c: index):
        %row = arith.addi %i, %r : index
        %long = memref.load %W[%row] : !w
        %same = memref.load %F[%block] : !n
        %written = memref.load %O[%row, %c0] : !o
        %isPast = arith.cmpi sge, %r, %c : index
        %some = scf.if %isPast -> (i32) {
          %own = memref.load %F[%row] : !n
          scf.yield %own : i32
        } else {
          scf.yield %none : i32
        }
        %short = arith.trunci %long : i64 to i32
        %u = arith.addi %short, %same : i32
        %v = arith.addi %u, %some : i32
        %f = arith.sitofp %v : i32 to f32
        %y = arith.addf %f, %written : f32
        tile.yield %y : f32
      } -> !s
      scf.yield %m : !s
    }
    tile.store %sum, %O[%i, %c0] dims [0, 1] : !s, !o
  }
  return
}

// More than two reads would take too many registers.
// CHECK-LABEL: func.func @many(
// CHECK-NOT:     tile.map {
// CHECK-NOT:     rows(
// CHECK:         tile.store
func.func @many(%q: memref<?x64xbf16>, %first: memref<?xi32>, %out: memref<?x64xf32>, %n: index, %end: index) {
  tile.launch grid(%n) warps 4 stages 2 ins(%q, %first : memref<?x64xbf16>, memref<?xi32>) outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %F: !n, %O: !o):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %i = arith.muli %block, %c64 : index
    %qt = tile.load %Q[%i, %c0] dims [0, 1] : !g -> !t
    %acc0 = tile.fill %zero : !s
    %sum = scf.for %j = %c0 to %end step %c64 iter_args(%acc = %acc0) -> (!s) {
      %kt = tile.load %Q[%j, %c0] dims [0, 1] : !g -> !t
      %x = tile.mma %qt, %kt into %acc transpose_b : !t, !t, !s -> !s
      %m = tile.map ins(%x : !s) {
      ^bb0(%a: f32, %r: index, %c: index):
        %r1 = arith.addi %r, %c1 : index
        %r2 = arith.addi %r, %c2 : index
        %x0 = memref.load %F[%r] : !n
        %x1 = memref.load %F[%r1] : !n
        %x2 = memref.load %F[%r2] : !n
        %u = arith.addi %x0, %x1 : i32
        %v = arith.addi %u, %x2 : i32
        %f = arith.sitofp %v : i32 to f32
        tile.yield %f : f32
      } -> !s
      scf.yield %m : !s
    }
    tile.store %sum, %O[%i, %c0] dims [0, 1] : !s, !o
  }
  return
}

// Of more than two reads those of which only extremes matter take no registers in the loop,
// also where another map there makes the same read.
// CHECK-LABEL: func.func @many_extremes(
// CHECK:         %[[ROWS0:.*]] = tile.map {
// CHECK:           memref.load
// CHECK:         %[[ROWS2:.*]] = tile.map {
// CHECK:           memref.load
// CHECK-NOT:     memref.load
// CHECK:         %[[OWN0:.*]] = tile.map ins(%[[ROWS0]] :
// CHECK:         %[[LEAST:.*]], %{{.*}} = tile.extremes %[[OWN0]]
// CHECK:         %[[OWN2:.*]] = tile.map ins(%[[ROWS2]] :
// CHECK:         %{{.*}}, %[[GREATEST:.*]] = tile.extremes %[[OWN2]]
// CHECK:         scf.for
// CHECK-NOT:       tile.extremes
// CHECK:           arith.cmpi sge, %[[LEAST]], %[[GREATEST]] : i32
// CHECK:           tile.map ins(%{{.*}} : !tile.fragment<64x64xf32>) {
// CHECK-COUNT-2:     memref.load
// CHECK-NOT:         memref.load
// CHECK:         tile.store
func.func @many_extremes(%q: memref<?x64xbf16>, %first: memref<?xi32>, %out: memref<?x64xf32>, %n: index, %end: index) {
  tile.launch grid(%n) warps 4 stages 2 ins(%q, %first : memref<?x64xbf16>, memref<?xi32>) outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %F: !n, %O: !o):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %i = arith.muli %block, %c64 : index
    %qt = tile.load %Q[%i, %c0] dims [0, 1] : !g -> !t
    %acc0 = tile.fill %zero : !s
    %sum = scf.for %j = %c0 to %end step %c64 iter_args(%acc = %acc0) -> (!s) {
      %kt = tile.load %Q[%j, %c0] dims [0, 1] : !g -> !t
      %x = tile.mma %qt, %kt into %acc transpose_b : !t, !t, !s -> !s
      %rows0 = tile.map {
      ^bb0(%r: index):
        %own = memref.load %F[%r] : !n
        tile.yield %own : i32
      } -> !tile.fragment<64xi32>
      %least, %greatest0 = tile.extremes %rows0 : !tile.fragment<64xi32>
      %rows2 = tile.map {
      ^bb0(%r: index):
        %r2 = arith.addi %r, %c2 : index
        %own = memref.load %F[%r2] : !n
        tile.yield %own : i32
      } -> !tile.fragment<64xi32>
      %least2, %greatest = tile.extremes %rows2 : !tile.fragment<64xi32>
      %is = arith.cmpi sge, %least, %greatest : i32
      %m = tile.map ins(%x : !s) {
      ^bb0(%a: f32, %r: index, %c: index):
        %r1 = arith.addi %r, %c1 : index
        %x0 = memref.load %F[%r] : !n
        %x1 = memref.load %F[%r1] : !n
        %u = arith.addi %x0, %x1 : i32
        %f = arith.sitofp %u : i32 to f32
        %y = arith.select %is, %f, %a : f32
        tile.yield %y : f32
      } -> !s
      scf.yield %m : !s
    }
    tile.store %sum, %O[%i, %c0] dims [0, 1] : !s, !o
  }
  return
}

// What the program has read in front of the loop, a map in the loop takes, where it computes
// the place in the same way, and where a condition holds, too: the sequence of a block, and
// the first key of that. Other reads stay.
// CHECK-LABEL: func.func @read_before(
// CHECK:         ^bb0(%[[BLOCK:[^:]*]]: index, %{{[^:]*}}: memref<?x64xbf16, {{[^>]*>>}}, %[[FIRST:[^:]*]]: memref<?xi32
// CHECK:         %[[NEXT:.*]] = arith.addi %[[BLOCK]], %c1 : index
// CHECK-NEXT:    %[[ID:.*]] = memref.load %[[FIRST]][%[[NEXT]]]
// CHECK-NEXT:    %[[PLACE:.*]] = arith.index_cast %[[ID]] : i32 to index
// CHECK-NEXT:    %[[KEY:.*]] = memref.load %[[FIRST]][%[[PLACE]]]
// CHECK:         scf.for
// CHECK:           tile.map
// CHECK-NOT:         memref.load
// CHECK:             scf.if
// CHECK-NEXT:          %[[OTHER:.*]] = memref.load %[[FIRST]][%[[BLOCK]]]
// CHECK-NEXT:          arith.addi %[[KEY]], %[[OTHER]] : i32
// CHECK-NOT:         memref.load
// CHECK:         tile.store
func.func @read_before(%q: memref<?x64xbf16>, %first: memref<?xi32>, %out: memref<?x64xf32>, %n: index, %end: index) {
  tile.launch grid(%n) warps 4 stages 2 ins(%q, %first : memref<?x64xbf16>, memref<?xi32>) outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %F: !n, %O: !o):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %next = arith.addi %block, %c1 : index
    %id = memref.load %F[%next] : !n
    %place = arith.index_cast %id : i32 to index
    %key = memref.load %F[%place] : !n
    %acc0 = tile.fill %zero : !s
    %sum = scf.for %j = %c0 to %end step %c64 iter_args(%acc = %acc0) -> (!s) {
      %m = tile.map ins(%acc : !s) {
      ^bb0(%a: f32, %r: index, %c: index):
        %again = arith.addi %block, %c1 : index
        %own_id = memref.load %F[%again] : !n
        %own_place = arith.index_cast %own_id : i32 to index
        %own = memref.load %F[%own_place] : !n
        %past = arith.cmpi sge, %r, %c : index
        %z = scf.if %past -> (i32) {
          %other = memref.load %F[%block] : !n
          %both = arith.addi %own, %other : i32
          scf.yield %both : i32
        } else {
          scf.yield %own : i32
        }
        %y = arith.sitofp %z : i32 to f32
        tile.yield %y : f32
      } -> !s
      scf.yield %m : !s
    }
    tile.store %sum, %O[%c0, %c0] dims [0, 1] : !s, !o
  }
  return
}

// Of another place, or computed by another op, is another number.
// CHECK-LABEL: func.func @other_places(
// CHECK:         ^bb0(%[[BLOCK:[^:]*]]: index, %{{[^:]*}}: memref<?x64xbf16, {{[^>]*>>}}, %[[FIRST:[^:]*]]: memref<?xi32
// CHECK:         memref.load %[[FIRST]]
// CHECK:         scf.for
// CHECK:           tile.map
// CHECK:             %[[LESS:.*]] = arith.subi %[[BLOCK]], %c1 : index
// CHECK-NEXT:        %[[X:.*]] = memref.load %[[FIRST]][%[[LESS]]]
// CHECK-NEXT:        %[[MORE:.*]] = arith.addi %[[BLOCK]], %c64 : index
// CHECK-NEXT:        %[[Y:.*]] = memref.load %[[FIRST]][%[[MORE]]]
// CHECK-NEXT:        arith.addi %[[X]], %[[Y]] : i32
func.func @other_places(%q: memref<?x64xbf16>, %first: memref<?xi32>, %out: memref<?x64xf32>, %n: index, %end: index) {
  tile.launch grid(%n) warps 4 stages 2 ins(%q, %first : memref<?x64xbf16>, memref<?xi32>) outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %F: !n, %O: !o):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %next = arith.addi %block, %c1 : index
    %id = memref.load %F[%next] : !n
    %acc0 = tile.fill %zero : !s
    %sum = scf.for %j = %c0 to %end step %c64 iter_args(%acc = %acc0) -> (!s) {
      %m = tile.map ins(%acc : !s) {
      ^bb0(%a: f32, %r: index, %c: index):
        %less = arith.subi %block, %c1 : index
        %x = memref.load %F[%less] : !n
        %more = arith.addi %block, %c64 : index
        %w = memref.load %F[%more] : !n
        %z = arith.addi %x, %w : i32
        %v = arith.addi %z, %id : i32
        %y = arith.sitofp %v : i32 to f32
        tile.yield %y : f32
      } -> !s
      scf.yield %m : !s
    }
    tile.store %sum, %O[%c0, %c0] dims [0, 1] : !s, !o
  }
  return
}

// What the launch writes may be another number by then.
// CHECK-LABEL: func.func @written(
// CHECK:         ^bb0(%[[BLOCK:[^:]*]]: index, {{.*}}, %[[OUT:[^:]*]]: memref<?x64xf32, {{[^>]*>}}>):
// CHECK:         memref.load %[[OUT]][%[[BLOCK]], %c0]
// CHECK:         scf.for
// CHECK:           tile.map
// CHECK:             memref.load %[[OUT]][%[[BLOCK]], %c0]
func.func @written(%q: memref<?x64xbf16>, %first: memref<?xi32>, %out: memref<?x64xf32>, %n: index, %end: index) {
  tile.launch grid(%n) warps 4 stages 2 ins(%q, %first : memref<?x64xbf16>, memref<?xi32>) outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %F: !n, %O: !o):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %id = memref.load %O[%block, %c0] : !o
    %acc0 = tile.fill %zero : !s
    %sum = scf.for %j = %c0 to %end step %c64 iter_args(%acc = %acc0) -> (!s) {
      %m = tile.map ins(%acc : !s) {
      ^bb0(%a: f32, %r: index, %c: index):
        %x = memref.load %O[%block, %c0] : !o
        %y = arith.addf %x, %id : f32
        tile.yield %y : f32
      } -> !s
      scf.yield %m : !s
    }
    tile.store %sum, %O[%c0, %c0] dims [0, 1] : !s, !o
  }
  return
}

// A place that is read from what the launch writes may be another one by then, of a row,
// and of what was read in front of the loop.
// CHECK-LABEL: func.func @written_places(
// CHECK:         ^bb0(%{{[^:]*}}: index, %{{[^:]*}}: memref<?x64xbf16, {{[^>]*>>}}, %[[FIRST:[^:]*]]: memref<?xi32, {{[^>]*>>}}, %[[OUT:[^:]*]]: memref<?x64xf32
// CHECK-NOT:     tile.map
// CHECK:         scf.for
// CHECK:           tile.map ins(%{{.*}} : !tile.fragment<64x64xf32>) {
// CHECK:             %[[F:.*]] = memref.load %[[OUT]]
// CHECK-NEXT:        %[[I:.*]] = arith.fptosi %[[F]]
// CHECK-NEXT:        %[[AT:.*]] = arith.index_cast %[[I]]
// CHECK-NEXT:        memref.load %[[FIRST]][%[[AT]]]
// CHECK:             %[[G:.*]] = memref.load %[[OUT]]
// CHECK-NEXT:        %[[J:.*]] = arith.fptosi %[[G]]
// CHECK-NEXT:        %[[SAME:.*]] = arith.index_cast %[[J]]
// CHECK-NEXT:        memref.load %[[FIRST]][%[[SAME]]]
func.func @written_places(%q: memref<?x64xbf16>, %first: memref<?xi32>, %out: memref<?x64xf32>, %n: index, %end: index) {
  tile.launch grid(%n) warps 4 stages 2 ins(%q, %first : memref<?x64xbf16>, memref<?xi32>) outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %F: !n, %O: !o):
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %i = arith.muli %block, %c64 : index
    %early = memref.load %O[%block, %c0] : !o
    %early_number = arith.fptosi %early : f32 to i32
    %early_place = arith.index_cast %early_number : i32 to index
    %id = memref.load %F[%early_place] : !n
    %acc0 = tile.fill %zero : !s
    %sum = scf.for %j = %c0 to %end step %c64 iter_args(%acc = %acc0) -> (!s) {
      %m = tile.map ins(%acc : !s) {
      ^bb0(%a: f32, %r: index, %c: index):
        %row = arith.addi %i, %r : index
        %f = memref.load %O[%row, %c0] : !o
        %number = arith.fptosi %f : f32 to i32
        %at = arith.index_cast %number : i32 to index
        %own = memref.load %F[%at] : !n
        %g = memref.load %O[%block, %c0] : !o
        %same_number = arith.fptosi %g : f32 to i32
        %same_place = arith.index_cast %same_number : i32 to index
        %same = memref.load %F[%same_place] : !n
        %x = arith.addi %own, %same : i32
        %z = arith.addi %x, %id : i32
        %y = arith.sitofp %z : i32 to f32
        tile.yield %y : f32
      } -> !s
      scf.yield %m : !s
    }
    tile.store %sum, %O[%c0, %c0] dims [0, 1] : !s, !o
  }
  return
}

// What is read behind the loop is not known in it.
// CHECK-LABEL: func.func @read_behind(
// CHECK:         ^bb0(%[[BLOCK:[^:]*]]: index, %{{[^:]*}}: memref<?x64xbf16, {{[^>]*>>}}, %[[FIRST:[^:]*]]: memref<?xi32
// CHECK:         scf.for
// CHECK:           tile.map
// CHECK:             %[[X:.*]] = memref.load %[[FIRST]][%[[BLOCK]]]
// CHECK-NEXT:        arith.sitofp %[[X]]
// CHECK:         %[[LATE:.*]] = memref.load %[[FIRST]][%[[BLOCK]]]
// CHECK-NEXT:    %[[PLACE:.*]] = arith.index_cast %[[LATE]]
// CHECK-NEXT:    tile.store %{{.*}}[%[[PLACE]], %c0]
func.func @read_behind(%q: memref<?x64xbf16>, %first: memref<?xi32>, %out: memref<?x64xf32>, %n: index, %end: index) {
  tile.launch grid(%n) warps 4 stages 2 ins(%q, %first : memref<?x64xbf16>, memref<?xi32>) outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %F: !n, %O: !o):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %acc0 = tile.fill %zero : !s
    %sum = scf.for %j = %c0 to %end step %c64 iter_args(%acc = %acc0) -> (!s) {
      %m = tile.map ins(%acc : !s) {
      ^bb0(%a: f32, %r: index, %c: index):
        %x = memref.load %F[%block] : !n
        %y = arith.sitofp %x : i32 to f32
        tile.yield %y : f32
      } -> !s
      scf.yield %m : !s
    }
    %late = memref.load %F[%block] : !n
    %place = arith.index_cast %late : i32 to index
    tile.store %sum, %O[%place, %c0] dims [0, 1] : !s, !o
  }
  return
}

// A place that changes with the loop is not the one in front.
// CHECK-LABEL: func.func @moving(
// CHECK:         scf.for %[[J:[^ ]*]] =
// CHECK:           tile.map
// CHECK:             %[[PLACE:.*]] = arith.addi %[[J]], %c1 : index
// CHECK-NEXT:        memref.load %{{.*}}[%[[PLACE]]]
func.func @moving(%q: memref<?x64xbf16>, %first: memref<?xi32>, %out: memref<?x64xf32>, %n: index, %end: index) {
  tile.launch grid(%n) warps 4 stages 2 ins(%q, %first : memref<?x64xbf16>, memref<?xi32>) outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %F: !n, %O: !o):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %place = arith.addi %c0, %c1 : index
    %id = memref.load %F[%place] : !n
    %acc0 = tile.fill %zero : !s
    %sum = scf.for %j = %c0 to %end step %c64 iter_args(%acc = %acc0) -> (!s) {
      %m = tile.map ins(%acc : !s) {
      ^bb0(%a: f32, %r: index, %c: index):
        %next = arith.addi %j, %c1 : index
        %x = memref.load %F[%next] : !n
        %z = arith.addi %x, %id : i32
        %y = arith.sitofp %z : i32 to f32
        tile.yield %y : f32
      } -> !s
      scf.yield %m : !s
    }
    tile.store %sum, %O[%c0, %c0] dims [0, 1] : !s, !o
  }
  return
}

// The least and the greatest of the same numbers are two places.
// CHECK-LABEL: func.func @other_extreme(
// CHECK:         %[[LEAST:.*]], %[[GREATEST:.*]] = tile.extremes
// CHECK:         %[[AT:.*]] = arith.index_cast %[[LEAST]]
// CHECK:         %[[OTHER:.*]] = arith.index_cast %[[GREATEST]]
// CHECK:         %[[EARLY:.*]] = memref.load %{{.*}}[%[[AT]]]
// CHECK:         %[[OWN:.*]] = memref.load %{{.*}}[%[[OTHER]]]
// CHECK-NEXT:    arith.addi %[[OWN]], %[[EARLY]] : i32
func.func @other_extreme(%first: memref<?xi32>, %out: memref<?x64xf32>, %n: index, %end: index) {
  tile.launch grid(%n) warps 4 stages 2 ins(%first : memref<?xi32>) outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %F: !n, %O: !o):
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %tests = tile.map {
    ^bb0(%r: index):
      %own = memref.load %F[%r] : !n
      tile.yield %own : i32
    } -> !tile.fragment<64xi32>
    %least, %greatest = tile.extremes %tests : !tile.fragment<64xi32>
    %li = arith.index_cast %least : i32 to index
    %gi = arith.index_cast %greatest : i32 to index
    %early = memref.load %F[%li] : !n
    %acc0 = tile.fill %zero : !s
    %sum = scf.for %j = %c0 to %end step %c64 iter_args(%acc = %acc0) -> (!s) {
      %m = tile.map ins(%acc : !s) {
      ^bb0(%a: f32, %r: index, %c: index):
        %own = memref.load %F[%gi] : !n
        %x = arith.addi %own, %early : i32
        %f = arith.sitofp %x : i32 to f32
        tile.yield %f : f32
      } -> !s
      scf.yield %m : !s
    }
    tile.store %sum, %O[%c0, %c0] dims [0, 1] : !s, !o
  }
  return
}
