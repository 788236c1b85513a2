// RUN: fovea-opt %s --tile-carry-values --canonicalize -o %t.a
// RUN: FileCheck %s < %t.a
// RUN: fovea-opt %t.a --tile-carry-values --canonicalize | diff %t.a -

!g = memref<?xf32, strided<[1], offset: ?>>
!r = !tile.fragment<64xf32>
!b = !tile.fragment<64xi1>
!s = !tile.fragment<64x32xf32>

// A maximum that changes under a branch, what is subtracted for it, and whether that
// is large: in front of the loop and in the branch.
// CHECK-LABEL: func.func @carried(
// CHECK:         %[[M0:.*]] = tile.load
// CHECK:         %[[SHIFT0:.*]] = tile.map ins(%[[M0]] :
// CHECK:           arith.mulf
// CHECK:         tile.map ins(%[[SHIFT0]] :
// CHECK:           arith.cmpf ugt
// CHECK:         %[[ANY0:.*]] = tile.any
// CHECK:         %[[L:.*]]:4 = scf.for {{.*}} iter_args(%[[M:[^ ]*]] = %[[M0]], %[[S:[^ ]*]] = %{{[^ ]*}}, %[[SHIFT:[^ ]*]] = %[[SHIFT0]], %[[ANY:[^ ]*]] = %[[ANY0]])
// CHECK-NOT:       tile.any
// CHECK:           %[[P:.*]] = tile.map ins(%[[S]] : {{.*}}) rows(%[[SHIFT]] :
// CHECK:           %[[AGAIN:.*]] = arith.ori %[[ANY]],
// CHECK:           %[[N:.*]]:3 = scf.if %[[AGAIN]] -> (!tile.fragment<64xf32>, !tile.fragment<64xf32>, i1) {
// CHECK:             %[[M1:.*]] = tile.reduce max %[[P]], %[[M]]
// CHECK:             %[[SHIFT1:.*]] = tile.map ins(%[[M1]] :
// CHECK:               arith.mulf
// CHECK:             tile.map ins(%[[SHIFT1]] :
// CHECK:             %[[ANY1:.*]] = tile.any
// CHECK:             scf.yield %[[M1]], %[[SHIFT1]], %[[ANY1]]
// CHECK:           } else {
// CHECK:             scf.yield %[[M]], %[[SHIFT]], %[[ANY]]
// CHECK:           }
// CHECK:           scf.yield %[[N]]#0, %[[P]], %[[N]]#1, %[[N]]#2
func.func @carried(%out: memref<?xf32>, %n: index) {
  tile.launch grid(%n) warps 4 alternating outs(%out : memref<?xf32>) {
  ^bb0(%block: index, %O: !g):
    %c0 = arith.constant 0 : index
    %c32 = arith.constant 32 : index
    %c256 = arith.constant 256 : index
    %zero = arith.constant 0.0 : f32
    %scale = arith.constant -0.5 : f32
    %most = arith.constant 64.0 : f32
    %m0 = tile.load %O[%c0] dims [0] : !g -> !r
    %s0 = tile.fill %zero : !s
    %l:2 = scf.for %i = %c0 to %c256 step %c32 iter_args(%m = %m0, %s = %s0) -> (!r, !s) {
      %shift = tile.map ins(%m : !r) {
      ^bb0(%x: f32, %row: index):
        %y = arith.mulf %x, %scale : f32
        tile.yield %y : f32
      } -> !r
      %p = tile.map ins(%s : !s) rows(%shift : !r) {
      ^bb0(%x: f32, %by: f32, %row: index, %column: index):
        %y = arith.addf %x, %by : f32
        tile.yield %y : f32
      } -> !s
      %tests = tile.map ins(%shift : !r) {
      ^bb0(%x: f32, %row: index):
        %y = arith.cmpf ugt, %x, %most : f32
        tile.yield %y : i1
      } -> !b
      %any = tile.any %tests : !b
      %late = arith.cmpi slt, %block, %i : index
      %again = arith.ori %any, %late : i1
      %next = scf.if %again -> (!r) {
        %raised = tile.reduce max %p, %m dim 1 : !s -> !r
        scf.yield %raised : !r
      } else {
        scf.yield %m : !r
      }
      scf.yield %next, %p : !r, !s
    }
    tile.store %l#0, %O[%c0] dims [0] : !r, !g
  }
  return
}

// A branch may be in another one, whose other side has other rows.
// CHECK-LABEL: func.func @nested(
// CHECK:         %[[M0:.*]] = tile.load
// CHECK:         %[[SHIFT0:.*]] = tile.map ins(%[[M0]] :
// CHECK:         %[[ANY0:.*]] = tile.any
// CHECK:         scf.for {{.*}} iter_args(%[[M:[^ ]*]] = %{{[^ ]*}}, %[[S:[^ ]*]] = %{{[^ ]*}}, %[[SHIFT:[^ ]*]] = %[[SHIFT0]], %[[ANY:[^ ]*]] = %[[ANY0]])
// CHECK:           tile.map ins(%[[S]] : {{.*}}) rows(%[[SHIFT]] :
// CHECK-NOT:       tile.any
// CHECK:           %[[N:.*]]:3 = scf.if %{{.*}} -> (!tile.fragment<64xf32>, !tile.fragment<64xf32>, i1) {
// CHECK:             %[[AGAIN:.*]] = arith.ori %[[ANY]],
// CHECK:             %[[I:.*]]:3 = scf.if %[[AGAIN]] -> (!tile.fragment<64xf32>, !tile.fragment<64xf32>, i1) {
// CHECK:               %[[ANY1:.*]] = tile.any
// CHECK:               scf.yield %{{.*}}, %{{.*}}, %[[ANY1]]
// CHECK:             } else {
// CHECK:               scf.yield %[[M]], %[[SHIFT]], %[[ANY]]
// CHECK:             }
// CHECK:             scf.yield %[[I]]#0, %[[I]]#1, %[[I]]#2
// CHECK:           } else {
// CHECK:             %[[SHIFT2:.*]] = tile.map ins(%[[M0]] :
// CHECK:             %[[ANY2:.*]] = tile.any
// CHECK:             scf.yield %[[M0]], %[[SHIFT2]], %[[ANY2]]
// CHECK:           }
func.func @nested(%out: memref<?xf32>, %n: index) {
  tile.launch grid(%n) warps 4 outs(%out : memref<?xf32>) {
  ^bb0(%block: index, %O: !g):
    %c0 = arith.constant 0 : index
    %c32 = arith.constant 32 : index
    %c256 = arith.constant 256 : index
    %zero = arith.constant 0.0 : f32
    %scale = arith.constant -0.5 : f32
    %most = arith.constant 64.0 : f32
    %m0 = tile.load %O[%c0] dims [0] : !g -> !r
    %s0 = tile.fill %zero : !s
    %l:2 = scf.for %i = %c0 to %c256 step %c32 iter_args(%m = %m0, %s = %s0) -> (!r, !s) {
      %shift = tile.map ins(%m : !r) {
      ^bb0(%x: f32, %row: index):
        %y = arith.mulf %x, %scale : f32
        tile.yield %y : f32
      } -> !r
      %p = tile.map ins(%s : !s) rows(%shift : !r) {
      ^bb0(%x: f32, %by: f32, %row: index, %column: index):
        %y = arith.addf %x, %by : f32
        tile.yield %y : f32
      } -> !s
      %tests = tile.map ins(%shift : !r) {
      ^bb0(%x: f32, %row: index):
        %y = arith.cmpf ugt, %x, %most : f32
        tile.yield %y : i1
      } -> !b
      %any = tile.any %tests : !b
      %inside = arith.cmpi slt, %i, %block : index
      %next = scf.if %inside -> (!r) {
        %late = arith.cmpi slt, %n, %i : index
        %again = arith.ori %any, %late : i1
        %inner = scf.if %again -> (!r) {
          %raised = tile.reduce max %p, %m dim 1 : !s -> !r
          scf.yield %raised : !r
        } else {
          scf.yield %m : !r
        }
        scf.yield %inner : !r
      } else {
        scf.yield %m0 : !r
      }
      scf.yield %next, %p : !r, !s
    }
    tile.store %l#0, %O[%c0] dims [0] : !r, !g
  }
  return
}

// A maximum of each step; a number that the step multiplies, which changes; and a
// number for each score.
// CHECK-LABEL: func.func @computed(
// CHECK:         scf.for {{.*}} iter_args(%[[M:[^ ]*]] = %{{[^ ]*}}, %[[K:[^ ]*]] = %{{[^ ]*}}, %[[S:[^ ]*]] = %{{[^ ]*}}) ->
// CHECK:           tile.map ins(%[[M]] :
// CHECK:           tile.any
// CHECK:           tile.map ins(%[[K]] :
// CHECK:           tile.any
// CHECK:           tile.map rows(%[[K]] :
func.func @computed(%out: memref<?xf32>, %n: index) {
  tile.launch grid(%n) warps 4 alternating outs(%out : memref<?xf32>) {
  ^bb0(%block: index, %O: !g):
    %c0 = arith.constant 0 : index
    %c32 = arith.constant 32 : index
    %c256 = arith.constant 256 : index
    %zero = arith.constant 0.0 : f32
    %most = arith.constant 64.0 : f32
    %m0 = tile.fill %zero : !r
    %s0 = tile.fill %zero : !s
    %l:3 = scf.for %i = %c0 to %c256 step %c32 iter_args(%m = %m0, %k = %m0, %s = %s0) -> (!r, !r, !s) {
      %large = tile.map ins(%m : !r) {
      ^bb0(%x: f32, %row: index):
        %y = arith.cmpf ugt, %x, %most : f32
        tile.yield %y : i1
      } -> !b
      %any = tile.any %large : !b
      %factor = arith.index_cast %i : index to i32
      %number = arith.sitofp %factor : i32 to f32
      %products = tile.map ins(%k : !r) {
      ^bb0(%x: f32, %row: index):
        %z = arith.mulf %x, %number : f32
        %y = arith.cmpf ugt, %z, %most : f32
        tile.yield %y : i1
      } -> !b
      %some = tile.any %products : !b
      %wide = tile.map rows(%k : !r) {
      ^bb0(%x: f32, %row: index, %column: index):
        tile.yield %x : f32
      } -> !s
      %either = arith.ori %any, %some : i1
      %max = tile.reduce max %wide, %m dim 1 : !s -> !r
      %next = scf.if %either -> (!r) {
        %raised = tile.reduce max %s, %k dim 1 : !s -> !r
        scf.yield %raised : !r
      } else {
        scf.yield %k : !r
      }
      scf.yield %max, %next, %wide : !r, !r, !s
    }
    tile.store %l#0, %O[%c0] dims [0] : !r, !g
    tile.store %l#1, %O[%c0] dims [0] : !r, !g
  }
  return
}
