// RUN: fovea-opt %s --tile-narrow-positions | FileCheck %s

!g = memref<?x64xbf16, strided<[?, 1], offset: ?>>
!n = memref<?xi32, strided<[1], offset: ?>>
!w = memref<?xi64, strided<[1], offset: ?>>
!o = memref<?x64xf32, strided<[?, 1], offset: ?>>
!t = !tile.shared<64x64xbf16>
!s = !tile.fragment<64x64xf32>
!ring = !tile.ring<2 x !tile.shared<1x4xi32>>

// The size of a memref bounds what the loop counts, and what is computed of it has 32 bits,
// a minimum too; what a map computes of coordinates stays as it is.
// CHECK-LABEL: func.func @size(
// CHECK:         %[[KEYS:.*]] = memref.dim
// CHECK:         %[[LEAST:.*]] = memref.load
// CHECK:         %[[END:.*]] = arith.index_cast %[[KEYS]] : index to i32
// CHECK:         scf.for %[[J32:[^ ]*]] = %c0_i32 to %[[END]] step %c64_i32 {{.*}} : i32 {
// CHECK-NEXT:      %[[J:.*]] = arith.index_cast %[[J32]] : i32 to index
// CHECK-NOT:       affine.min
// CHECK:           %[[LEFT:.*]] = arith.addi %{{.*}}, %{{.*}} : i32
// CHECK:           %[[COUNT:.*]] = arith.minsi %[[LEFT]], %{{.*}} : i32
// CHECK:           %[[OWN:.*]] = arith.index_castui %[[J]] : index to i32
// CHECK:           %[[LAST:.*]] = arith.addi %[[OWN]], %c63_i32 : i32
// CHECK:           arith.cmpi sge, %[[LAST]], %[[LEAST]] : i32
// CHECK:           arith.cmpi slt, %[[COUNT]], %{{.*}} : i32
// CHECK:           tile.map
// CHECK-NEXT:      ^bb0(%{{.*}}: f32, %{{.*}}: index, %[[C:.*]]: index):
// CHECK-NEXT:        %[[KEY:.*]] = arith.addi %[[J]], %[[C]] : index
// CHECK-NEXT:        arith.cmpi slt, %[[KEY]], %[[KEYS]] : index
func.func @size(%q: memref<?x64xbf16>, %ends: memref<?xi32>, %out: memref<?x64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %keys = memref.dim %out, %c0 : memref<?x64xf32>
  tile.launch grid(%n) warps 4 stages 2 ins(%q, %ends : memref<?x64xbf16>, memref<?xi32>) outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %E: !n, %O: !o):
    %c64 = arith.constant 64 : index
    %c63 = arith.constant 63 : index
    %zero = arith.constant 0.0 : f32
    %own = memref.load %E[%block] : !n
    %least = arith.index_cast %own : i32 to index
    %acc0 = tile.fill %zero : !s
    %sum = scf.for %j = %c0 to %keys step %c64 iter_args(%acc = %acc0) -> (!s) {
      %count = affine.min affine_map<(d0)[s0] -> (-d0 + s0, 64)>(%j)[%keys]
      %last = arith.addi %j, %c63 : index
      %partial = arith.cmpi sge, %last, %least : index
      %short = arith.cmpi slt, %count, %c64 : index
      %is = arith.ori %partial, %short : i1
      %m = scf.if %is -> (!s) {
        %y = tile.map ins(%acc : !s) {
        ^bb0(%a: f32, %r: index, %c: index):
          %key = arith.addi %j, %c : index
          %past = arith.cmpi slt, %key, %keys : index
          %z = arith.select %past, %a, %zero : f32
          tile.yield %z : f32
        } -> !s
        scf.yield %y : !s
      } else {
        scf.yield %acc : !s
      }
      scf.yield %m : !s
    }
    tile.store %sum, %O[%c0, %c0] dims [0, 1] : !s, !o
  }
  return
}

// A number that passes through a ring is as small as the one that the other role publishes,
// and has 32 bits there.
// CHECK-LABEL: func.func @published(
// CHECK:         tile.role "deal"
// CHECK:           %[[SMALL:.*]] = arith.minsi %{{.*}}, %{{.*}} : i32
// CHECK-NEXT:      %[[INDEX:.*]] = arith.index_castui %[[SMALL]] : i32 to index
// CHECK-NEXT:      %[[WIDE:.*]] = arith.index_cast %[[INDEX]] : index to i64
// CHECK:           %[[HALF:.*]] = arith.trunci %[[WIDE]] : i64 to i32
// CHECK-NEXT:      tile.publish %[[HALF]] into %{{.*}}, i32
// CHECK:         tile.role "compute"
// CHECK:           %[[READ:.*]] = tile.read_numbers %{{.*}} -> i32
// CHECK-NEXT:      %[[NUMBER:.*]] = arith.extsi %[[READ]] : i32 to i64
// CHECK:           %[[TO:.*]] = arith.index_cast %[[NUMBER]] : i64 to index
// CHECK:           %[[END:.*]] = arith.index_cast %[[TO]] : index to i32
// CHECK:           scf.for %{{.*}} = %c0_i32 to %[[END]] step %c64_i32 {{.*}} : i32 {
func.func @published(%q: memref<?x64xbf16>, %ends: memref<?xi32>, %out: memref<?x64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %keys = memref.dim %out, %c0 : memref<?x64xf32>
  tile.launch grid(%n) warps 4 ins(%q, %ends : memref<?x64xbf16>, memref<?xi32>) outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %E: !n, %O: !o):
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %ring = tile.ring : !ring
    tile.roles {
      tile.role "deal" warps 1 single {
        %own = memref.load %E[%block] : !n
        %end = arith.index_cast %own : i32 to index
        %some = arith.maxsi %end, %c0 : index
        %less = arith.minsi %some, %keys : index
        %wide = arith.index_cast %less : index to i64
        %slot = tile.acquire %ring[%block] : !ring
        tile.publish %wide into %slot signals %ring[%block] : !ring, i64
      }
      tile.role "compute" warps 4 {
        %tile = tile.wait %ring[%block] : !ring
        %number = tile.read_numbers %tile : !tile.shared<1x4xi32> -> i64
        tile.release %ring[%block] : !ring
        %to = arith.index_cast %number : i64 to index
        %acc0 = tile.fill %zero : !s
        %sum = scf.for %j = %c0 to %to step %c64 iter_args(%acc = %acc0) -> (!s) {
          %x = tile.load %O[%j, %c0] dims [0, 1] : !o -> !s
          scf.yield %x : !s
        }
        tile.store %sum, %O[%c0, %c0] dims [0, 1] : !s, !o
      }
    }
  }
  return
}

// Of two ops that publish to a ring one may publish any number, so that the loop stays.
// CHECK-LABEL: func.func @published_twice(
// CHECK:         tile.role "compute"
// CHECK:           scf.for %{{.*}} = %c0 to %{{.*}} step %c64 {{.*}} -> (!tile.fragment<64x64xf32>) {
func.func @published_twice(%q: memref<?x64xbf16>, %ends: memref<?xi32>, %out: memref<?x64xf32>, %n: index, %any: i64) {
  %c0 = arith.constant 0 : index
  %keys = memref.dim %out, %c0 : memref<?x64xf32>
  tile.launch grid(%n) warps 4 ins(%q, %ends : memref<?x64xbf16>, memref<?xi32>) outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %E: !n, %O: !o):
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %ring = tile.ring : !ring
    tile.roles {
      tile.role "deal" warps 1 single {
        %own = memref.load %E[%block] : !n
        %end = arith.index_cast %own : i32 to index
        %some = arith.maxsi %end, %c0 : index
        %less = arith.minsi %some, %keys : index
        %wide = arith.index_cast %less : index to i64
        %slot = tile.acquire %ring[%block] : !ring
        tile.publish %wide into %slot signals %ring[%block] : !ring, i64
        %other = tile.acquire %ring[%n] : !ring
        tile.publish %any into %other signals %ring[%n] : !ring, i64
      }
      tile.role "compute" warps 4 {
        %tile = tile.wait %ring[%block] : !ring
        %number = tile.read_numbers %tile : !tile.shared<1x4xi32> -> i64
        tile.release %ring[%block] : !ring
        %to = arith.index_cast %number : i64 to index
        %acc0 = tile.fill %zero : !s
        %sum = scf.for %j = %c0 to %to step %c64 iter_args(%acc = %acc0) -> (!s) {
          %x = tile.load %O[%j, %c0] dims [0, 1] : !o -> !s
          scf.yield %x : !s
        }
        tile.store %sum, %O[%c0, %c0] dims [0, 1] : !s, !o
      }
    }
  }
  return
}

// An operand of the function may be any number: nothing is narrow.
// CHECK-LABEL: func.func @operand(
// CHECK-NOT:     i32
// CHECK:         scf.for %[[J:[^ ]*]] = %c0 to %{{.*}} step %c64 {{.*}} -> (!tile.fragment<64x64xf32>) {
// CHECK-NEXT:      arith.addi %[[J]], %c64 : index
// CHECK-NOT:     i32
// CHECK:         return
func.func @operand(%q: memref<?x64xbf16>, %ends: memref<?xi64>, %out: memref<?x64xf32>, %n: index, %end: index) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %keys = memref.dim %out, %c0 : memref<?x64xf32>
  tile.launch grid(%n) warps 4 stages 2 ins(%q, %ends : memref<?x64xbf16>, memref<?xi64>) outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %E: !w, %O: !o):
    %zero = arith.constant 0.0 : f32
    %acc0 = tile.fill %zero : !s
    %sum = scf.for %j = %c0 to %end step %c64 iter_args(%acc = %acc0) -> (!s) {
      %next = arith.addi %j, %c64 : index
      %x = tile.load %O[%next, %c0] dims [0, 1] : !o -> !s
      scf.yield %x : !s
    }
    tile.store %sum, %O[%c0, %c0] dims [0, 1] : !s, !o
  }
  return
}

// A number of 64 bits in memory may be any number, too.
// CHECK-LABEL: func.func @wide_load(
// CHECK-NOT:     i32
// CHECK:         scf.for %[[J:[^ ]*]] = %c0 to %{{.*}} step %c64 {{.*}} -> (!tile.fragment<64x64xf32>) {
// CHECK-NEXT:      arith.addi %[[J]], %c64 : index
// CHECK-NOT:     i32
// CHECK:         return
func.func @wide_load(%q: memref<?x64xbf16>, %ends: memref<?xi64>, %out: memref<?x64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %keys = memref.dim %out, %c0 : memref<?x64xf32>
  tile.launch grid(%n) warps 4 stages 2 ins(%q, %ends : memref<?x64xbf16>, memref<?xi64>) outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %E: !w, %O: !o):
    %zero = arith.constant 0.0 : f32
    %acc0 = tile.fill %zero : !s
    %own = memref.load %E[%block] : !w
    %end = arith.index_cast %own : i64 to index
    %sum = scf.for %j = %c0 to %end step %c64 iter_args(%acc = %acc0) -> (!s) {
      %next = arith.addi %j, %c64 : index
      %x = tile.load %O[%next, %c0] dims [0, 1] : !o -> !s
      scf.yield %x : !s
    }
    tile.store %sum, %O[%c0, %c0] dims [0, 1] : !s, !o
  }
  return
}

// A loop that counts by one has no tiles: a launch without others stays.
// CHECK-LABEL: func.func @step_of_one(
// CHECK-NOT:     i32
// CHECK:         scf.for %[[J:[^ ]*]] = %c0 to %{{.*}} step %c1 {{.*}} -> (!tile.fragment<64x64xf32>) {
// CHECK-NEXT:      arith.addi %[[J]], %c64 : index
// CHECK-NOT:     i32
// CHECK:         tile.store
func.func @step_of_one(%q: memref<?x64xbf16>, %ends: memref<?xi64>, %out: memref<?x64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %keys = memref.dim %out, %c0 : memref<?x64xf32>
  tile.launch grid(%n) warps 4 stages 2 ins(%q, %ends : memref<?x64xbf16>, memref<?xi64>) outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %E: !w, %O: !o):
    %zero = arith.constant 0.0 : f32
    %acc0 = tile.fill %zero : !s
    %c1 = arith.constant 1 : index
    %sum = scf.for %j = %c0 to %keys step %c1 iter_args(%acc = %acc0) -> (!s) {
      %next = arith.addi %j, %c64 : index
      %x = tile.load %O[%next, %c0] dims [0, 1] : !o -> !s
      scf.yield %x : !s
    }
    tile.store %sum, %O[%c0, %c0] dims [0, 1] : !s, !o
  }
  return
}

// Where a loop counts in 64 bits all the same, the others of its launch do, too.
// CHECK-LABEL: func.func @one_of_two(
// CHECK-NOT:     i32
// CHECK:         %[[KEYS:.*]] = memref.dim
// CHECK-NOT:     i32
// CHECK:         scf.for %[[J:[^ ]*]] = %c0 to %[[KEYS]] step %c64 {{.*}} -> (!tile.fragment<64x64xf32>) {
// CHECK-NEXT:      arith.addi %[[J]], %c64 : index
// CHECK-NOT:     i32
// CHECK:         scf.for %[[K:[^ ]*]] = %c0 to %{{.*}} step %c64 {{.*}} -> (!tile.fragment<64x64xf32>) {
// CHECK-NEXT:      arith.addi %[[K]], %c64 : index
// CHECK-NOT:     i32
// CHECK:         return
func.func @one_of_two(%q: memref<?x64xbf16>, %ends: memref<?xi64>, %out: memref<?x64xf32>, %n: index, %end: index) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %keys = memref.dim %out, %c0 : memref<?x64xf32>
  tile.launch grid(%n) warps 4 stages 2 ins(%q, %ends : memref<?x64xbf16>, memref<?xi64>) outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %E: !w, %O: !o):
    %zero = arith.constant 0.0 : f32
    %acc0 = tile.fill %zero : !s
    %first = scf.for %j = %c0 to %keys step %c64 iter_args(%acc = %acc0) -> (!s) {
      %next = arith.addi %j, %c64 : index
      %x = tile.load %O[%next, %c0] dims [0, 1] : !o -> !s
      scf.yield %x : !s
    }
    %sum = scf.for %j = %c0 to %end step %c64 iter_args(%acc = %first) -> (!s) {
      %next = arith.addi %j, %c64 : index
      %x = tile.load %O[%next, %c0] dims [0, 1] : !o -> !s
      scf.yield %x : !s
    }
    tile.store %sum, %O[%c0, %c0] dims [0, 1] : !s, !o
  }
  return
}

// The end fits in 32 bits, but not the number that the loop compares with it last.
// CHECK-LABEL: func.func @largest(
// CHECK-NOT:     i32
// CHECK:         scf.for %[[J:[^ ]*]] = %c0 to %c2147483647 step %c64 {{.*}} -> (!tile.fragment<64x64xf32>) {
// CHECK-NEXT:      arith.addi %[[J]], %c64 : index
// CHECK-NOT:     i32
// CHECK:         return
func.func @largest(%q: memref<?x64xbf16>, %ends: memref<?xi64>, %out: memref<?x64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %keys = memref.dim %out, %c0 : memref<?x64xf32>
  tile.launch grid(%n) warps 4 stages 2 ins(%q, %ends : memref<?x64xbf16>, memref<?xi64>) outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %E: !w, %O: !o):
    %zero = arith.constant 0.0 : f32
    %acc0 = tile.fill %zero : !s
    %end = arith.constant 2147483647 : index
    %sum = scf.for %j = %c0 to %end step %c64 iter_args(%acc = %acc0) -> (!s) {
      %next = arith.addi %j, %c64 : index
      %x = tile.load %O[%next, %c0] dims [0, 1] : !o -> !s
      scf.yield %x : !s
    }
    tile.store %sum, %O[%c0, %c0] dims [0, 1] : !s, !o
  }
  return
}

// The largest end to which the step can be added in 32 bits.
// CHECK-LABEL: func.func @last_that_fits(
// CHECK:         scf.for %{{.*}} = %c0_i32 to %c2147483583_i32 step %c64_i32 {{.*}} : i32 {
func.func @last_that_fits(%q: memref<?x64xbf16>, %ends: memref<?xi64>, %out: memref<?x64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %keys = memref.dim %out, %c0 : memref<?x64xf32>
  tile.launch grid(%n) warps 4 stages 2 ins(%q, %ends : memref<?x64xbf16>, memref<?xi64>) outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %E: !w, %O: !o):
    %zero = arith.constant 0.0 : f32
    %acc0 = tile.fill %zero : !s
    %end = arith.constant 2147483583 : index
    %sum = scf.for %j = %c0 to %end step %c64 iter_args(%acc = %acc0) -> (!s) {
      %next = arith.addi %j, %c64 : index
      %x = tile.load %O[%next, %c0] dims [0, 1] : !o -> !s
      scf.yield %x : !s
    }
    tile.store %sum, %O[%c0, %c0] dims [0, 1] : !s, !o
  }
  return
}

// A loop that counts in 32 bits stays as it is.
// CHECK-LABEL: func.func @counter(
// CHECK-NOT:     arith.index_cast
// CHECK:         scf.for %[[K:[^ ]*]] = %c0_i32 to %c1024_i32 step %c64_i32 {{.*}} : i32 {
// CHECK-NEXT:      %[[J:.*]] = arith.index_cast %[[K]] : i32 to index
// CHECK-NEXT:      tile.load %{{.*}}[%[[J]], %c0]
// CHECK-NEXT:      scf.yield
func.func @counter(%q: memref<?x64xbf16>, %ends: memref<?xi64>, %out: memref<?x64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %keys = memref.dim %out, %c0 : memref<?x64xf32>
  tile.launch grid(%n) warps 4 stages 2 ins(%q, %ends : memref<?x64xbf16>, memref<?xi64>) outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %E: !w, %O: !o):
    %zero = arith.constant 0.0 : f32
    %acc0 = tile.fill %zero : !s
    %zero32 = arith.constant 0 : i32
    %end = arith.constant 1024 : i32
    %step = arith.constant 64 : i32
    %sum = scf.for %k = %zero32 to %end step %step iter_args(%acc = %acc0) -> (!s) : i32 {
      %j = arith.index_cast %k : i32 to index
      %x = tile.load %O[%j, %c0] dims [0, 1] : !o -> !s
      scf.yield %x : !s
    }
    tile.store %sum, %O[%c0, %c0] dims [0, 1] : !s, !o
  }
  return
}

// Of nested loops both count in 32 bits, the inner one from what the outer one counts.
// CHECK-LABEL: func.func @nested(
// CHECK:         scf.for %[[I32:[^ ]*]] = %c0_i32 to %{{.*}} step %c128_i32 {{.*}} : i32 {
// CHECK-NEXT:      %[[I:.*]] = arith.index_cast %[[I32]] : i32 to index
// CHECK-NEXT:      %[[OWN:.*]] = arith.index_castui %[[I]] : index to i32
// CHECK:           %[[SUM:.*]] = arith.addi %[[OWN]], %{{.*}} : i32
// CHECK-NEXT:      %[[END:.*]] = arith.index_castui %[[SUM]] : i32 to index
// CHECK-DAG:       %[[FROM:.*]] = arith.index_cast %[[I]] : index to i32
// CHECK-DAG:       %[[TO:.*]] = arith.index_cast %[[END]] : index to i32
// CHECK:           scf.for %[[J32:[^ ]*]] = %[[FROM]] to %[[TO]] step %c64_i32 {{.*}} : i32 {
// CHECK-NEXT:        %[[J:.*]] = arith.index_cast %[[J32]] : i32 to index
// CHECK:             arith.addi %{{.*}}, %{{.*}} : i32
func.func @nested(%q: memref<?x64xbf16>, %ends: memref<?xi64>, %out: memref<?x64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %keys = memref.dim %out, %c0 : memref<?x64xf32>
  tile.launch grid(%n) warps 4 stages 2 ins(%q, %ends : memref<?x64xbf16>, memref<?xi64>) outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %E: !w, %O: !o):
    %zero = arith.constant 0.0 : f32
    %acc0 = tile.fill %zero : !s
    %c128 = arith.constant 128 : index
    %sum = scf.for %i = %c0 to %keys step %c128 iter_args(%acc = %acc0) -> (!s) {
      %end = arith.addi %i, %c128 : index
      %inner = scf.for %j = %i to %end step %c64 iter_args(%own = %acc) -> (!s) {
        %row = arith.addi %j, %c64 : index
        %x = tile.load %O[%row, %c0] dims [0, 1] : !o -> !s
        scf.yield %x : !s
      }
      scf.yield %inner : !s
    }
    tile.store %sum, %O[%c0, %c0] dims [0, 1] : !s, !o
  }
  return
}

// Which ring a slot is of is not known where it is chosen: its number may be any.
// CHECK-LABEL: func.func @chosen_slot(
// CHECK:         tile.role "compute"
// CHECK:           scf.for %{{.*}} = %c0 to %{{.*}} step %c64 {{.*}} -> (!tile.fragment<64x64xf32>) {
func.func @chosen_slot(%out: memref<?x64xf32>, %n: index, %big: i64, %is: i1) {
  %c0 = arith.constant 0 : index
  tile.launch grid(%n) warps 4 outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %O: !o):
    %c64 = arith.constant 64 : index
    %c1 = arith.constant 1 : index
    %i0 = arith.constant 0 : i64
    %zero = arith.constant 0.0 : f32
    %ring = tile.ring : !ring
    tile.roles {
      tile.role "deal" warps 1 single {
        %slot = tile.acquire %ring[%block] : !ring
        tile.publish %big into %slot signals %ring[%block] : !ring, i64
      }
      tile.role "compute" warps 4 {
        %t0 = tile.wait %ring[%block] : !ring
        %t1 = tile.wait %ring[%c1] : !ring
        %tile = arith.select %is, %t0, %t1 : !tile.shared<1x4xi32>
        %acc0 = tile.fill %zero : !s
        %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%e = %i0, %acc = %acc0) -> (i64, !s) {
          %to = arith.index_cast %e : i64 to index
          %sum = scf.for %j = %c0 to %to step %c64 iter_args(%a = %acc) -> (!s) {
            %x = tile.load %O[%j, %c0] dims [0, 1] : !o -> !s
            scf.yield %x : !s
          }
          %number = tile.read_numbers %tile : !tile.shared<1x4xi32> -> i64
          scf.yield %number, %sum : i64, !s
        }
        tile.store %r#1, %O[%c0, %c0] dims [0, 1] : !s, !o
      }
    }
  }
  return
}

// The size of a table, of which no tile is copied, may be any.
// CHECK-LABEL: func.func @table(
// CHECK-NOT:     i32
// CHECK:         scf.for %{{.*}} = %c0 to %{{.*}} step %c64 {{.*}} -> (!tile.fragment<64x64xf32>) {
func.func @table(%numbers: memref<?xi64>, %out: memref<?x64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %keys = memref.dim %numbers, %c0 : memref<?xi64>
  tile.launch grid(%n) warps 4 stages 2 ins(%numbers : memref<?xi64>) outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %N: !w, %O: !o):
    %zero = arith.constant 0.0 : f32
    %acc0 = tile.fill %zero : !s
    %sum = scf.for %j = %c0 to %keys step %c64 iter_args(%acc = %acc0) -> (!s) {
      %x = tile.load %O[%j, %c0] dims [0, 1] : !o -> !s
      scf.yield %x : !s
    }
    tile.store %sum, %O[%c0, %c0] dims [0, 1] : !s, !o
  }
  return
}

!wide_ring = !tile.ring<2 x !tile.shared<1x8xi32>>

// Numbers of 64 bits that fit in 32 are published in these, negative ones too, and each role
// that reads them widens them again; one that may be any number stays, and so does one of
// 32 bits.
// CHECK-LABEL: func.func @numbers(
// CHECK-SAME:    %[[ANY:[^:]*]]: i64) {
// CHECK:         tile.role "deal"
// CHECK:           %[[OWN:.*]] = memref.load
// CHECK:           %[[WIDE:.*]] = arith.index_cast %{{.*}} : index to i64
// CHECK:           %[[SMALL:.*]] = arith.trunci %[[WIDE]] : i64 to i32
// CHECK:           tile.publish %[[SMALL]], %[[ANY]], %[[OWN]] into %{{.*}} : !tile.ring<2 x !tile.shared<1x8xi32>>, i32, i64, i32
// CHECK:         tile.role "compute"
// CHECK:           %[[READ:.*]]:3 = tile.read_numbers %{{.*}} -> i32, i64, i32
// CHECK-NEXT:      %[[FROM:.*]] = arith.extsi %[[READ]]#0 : i32 to i64
// CHECK:           arith.index_cast %[[FROM]] : i64 to index
// CHECK:         tile.role "load"
// CHECK:           %[[READ:.*]]:3 = tile.read_numbers %{{.*}} -> i32, i64, i32
// CHECK-NEXT:      %[[FROM:.*]] = arith.extsi %[[READ]]#0 : i32 to i64
// CHECK-NEXT:      arith.addi %[[FROM]], %[[READ]]#1 : i64
func.func @numbers(%ends: memref<?xi32>, %out: memref<?x64xf32>, %n: index, %any: i64) {
  %c0 = arith.constant 0 : index
  %keys = memref.dim %out, %c0 : memref<?x64xf32>
  tile.launch grid(%n) warps 4 ins(%ends : memref<?xi32>) outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %E: !n, %O: !o):
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %ring = tile.ring : !wide_ring
    %other_ring = tile.ring : !wide_ring
    tile.roles {
      tile.role "deal" warps 1 single {
        %own = memref.load %E[%block] : !n
        %end = arith.index_cast %own : i32 to index
        %less = arith.minsi %end, %keys : index
        %small = arith.index_cast %less : index to i64
        %slot = tile.acquire %ring[%block] : !wide_ring
        tile.publish %small, %any, %own into %slot signals %ring[%block] : !wide_ring, i64, i64, i32
      }
      tile.role "compute" warps 4 {
        %tile = tile.wait %ring[%block] : !wide_ring
        %from, %other, %number = tile.read_numbers %tile : !tile.shared<1x8xi32> -> i64, i64, i32
        tile.release %ring[%block] : !wide_ring
        %first = arith.index_cast %from : i64 to index
        %acc0 = tile.fill %zero : !s
        %sum = scf.for %j = %c0 to %keys step %c64 iter_args(%acc = %acc0) -> (!s) {
          %x = tile.load %O[%j, %c0] dims [0, 1] : !o -> !s
          scf.yield %x : !s
        }
        tile.store %sum, %O[%first, %c0] dims [0, 1] : !s, !o
      }
      tile.role "load" warps 1 single {
        %tile = tile.wait %ring[%block] : !wide_ring
        %from, %other, %number = tile.read_numbers %tile : !tile.shared<1x8xi32> -> i64, i64, i32
        %both = arith.addi %from, %other : i64
        tile.release %ring[%block] : !wide_ring
        %place = arith.index_cast %both : i64 to index
        %line = memref.load %E[%place] : !n
        %slot = tile.acquire %other_ring[%block] : !wide_ring
        tile.publish %both, %line into %slot signals %other_ring[%block] : !wide_ring, i64, i32
      }
    }
  }
  return
}

// Of two ops that publish to a ring one may publish any first number, and the other one any
// second one, so that only the third ones have 32 bits, in both.
// CHECK-LABEL: func.func @one_number(
// CHECK-SAME:    %[[ANY:[^:]*]]: i64) {
// CHECK:         %[[WIDE:.*]] = arith.index_cast %{{.*}} : index to i64
// CHECK:         %[[SMALL:.*]] = arith.trunci %[[WIDE]] : i64 to i32
// CHECK:         tile.publish %[[WIDE]], %[[ANY]], %[[SMALL]] into %{{.*}}, i64, i64, i32
// CHECK:         %[[OTHER:.*]] = arith.trunci %[[WIDE]] : i64 to i32
// CHECK:         tile.publish %[[ANY]], %[[WIDE]], %[[OTHER]] into %{{.*}}, i64, i64, i32
// CHECK:         %[[READ:.*]]:3 = tile.read_numbers %{{.*}} -> i64, i64, i32
// CHECK-NEXT:    %[[THIRD:.*]] = arith.extsi %[[READ]]#2 : i32 to i64
// CHECK:         %[[BOTH:.*]] = arith.addi %[[READ]]#0, %[[READ]]#1 : i64
// CHECK:         arith.addi %[[BOTH]], %[[THIRD]] : i64
func.func @one_number(%ends: memref<?xi32>, %out: memref<?x64xf32>, %n: index, %any: i64) {
  %c0 = arith.constant 0 : index
  %keys = memref.dim %out, %c0 : memref<?x64xf32>
  tile.launch grid(%n) warps 4 ins(%ends : memref<?xi32>) outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %E: !n, %O: !o):
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %ring = tile.ring : !wide_ring
    tile.roles {
      tile.role "deal" warps 1 single {
        %own = memref.load %E[%block] : !n
        %end = arith.index_cast %own : i32 to index
        %less = arith.minsi %end, %keys : index
        %small = arith.index_cast %less : index to i64
        %slot = tile.acquire %ring[%block] : !wide_ring
        tile.publish %small, %any, %small into %slot signals %ring[%block] : !wide_ring, i64, i64, i64
        %other_slot = tile.acquire %ring[%n] : !wide_ring
        tile.publish %any, %small, %small into %other_slot signals %ring[%n] : !wide_ring, i64, i64, i64
      }
      tile.role "compute" warps 4 {
        %tile = tile.wait %ring[%block] : !wide_ring
        %one, %two, %three = tile.read_numbers %tile : !tile.shared<1x8xi32> -> i64, i64, i64
        %both = arith.addi %one, %two : i64
        %from = arith.addi %both, %three : i64
        tile.release %ring[%block] : !wide_ring
        %first = arith.index_cast %from : i64 to index
        %acc0 = tile.fill %zero : !s
        %sum = scf.for %j = %c0 to %keys step %c64 iter_args(%acc = %acc0) -> (!s) {
          %x = tile.load %O[%j, %c0] dims [0, 1] : !o -> !s
          scf.yield %x : !s
        }
        tile.store %sum, %O[%first, %c0] dims [0, 1] : !s, !o
      }
    }
  }
  return
}

// Where a loop over tiles counts in 64 bits, numbers stay, too.
// CHECK-LABEL: func.func @wide_loop(
// CHECK-NOT:     arith.trunci
// CHECK:         tile.publish %{{.*}} into %{{.*}}, i64
// CHECK:         tile.read_numbers %{{.*}} -> i64
// CHECK:         scf.for %{{.*}} = %c0 to %{{.*}} step %c64 {{.*}} -> (!tile.fragment<64x64xf32>) {
func.func @wide_loop(%ends: memref<?xi32>, %out: memref<?x64xf32>, %n: index, %any: i64) {
  %c0 = arith.constant 0 : index
  %keys = memref.dim %out, %c0 : memref<?x64xf32>
  tile.launch grid(%n) warps 4 ins(%ends : memref<?xi32>) outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %E: !n, %O: !o):
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %ring = tile.ring : !wide_ring
    tile.roles {
      tile.role "deal" warps 1 single {
        %own = memref.load %E[%block] : !n
        %end = arith.index_cast %own : i32 to index
        %less = arith.minsi %end, %keys : index
        %small = arith.index_cast %less : index to i64
        %slot = tile.acquire %ring[%block] : !wide_ring
        tile.publish %small into %slot signals %ring[%block] : !wide_ring, i64
      }
      tile.role "compute" warps 4 {
        %tile = tile.wait %ring[%block] : !wide_ring
        %from = tile.read_numbers %tile : !tile.shared<1x8xi32> -> i64
        tile.release %ring[%block] : !wide_ring
        %first = arith.index_cast %from : i64 to index
        %to = arith.index_cast %any : i64 to index
        %acc0 = tile.fill %zero : !s
        %sum = scf.for %j = %c0 to %to step %c64 iter_args(%acc = %acc0) -> (!s) {
          %x = tile.load %O[%j, %c0] dims [0, 1] : !o -> !s
          scf.yield %x : !s
        }
        tile.store %sum, %O[%first, %c0] dims [0, 1] : !s, !o
      }
    }
  }
  return
}

// Numbers stay wide in a ring of which a read is not known, as it may be of one slot or
// another,
// CHECK-LABEL: func.func @either_slot(
// CHECK:         tile.publish %{{.*}} into %{{.*}}, i64
!wide_slot = !tile.ring<2 x !tile.shared<1x4xi32>>
func.func @either_slot(%ends: memref<?xi32>, %out: memref<?x64xf32>, %n: index, %is: i1) {
  %c0 = arith.constant 0 : index
  %keys = memref.dim %out, %c0 : memref<?x64xf32>
  tile.launch grid(%n) warps 4 ins(%ends : memref<?xi32>) outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %E: !n, %O: !o):
    %c64 = arith.constant 64 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %ring = tile.ring : !wide_slot
    tile.roles {
      tile.role "deal" warps 1 single {
        %own = memref.load %E[%block] : !n
        %end = arith.index_cast %own : i32 to index
        %some = arith.maxsi %end, %c0 : index
        %wide = arith.index_cast %some : index to i64
        %slot = tile.acquire %ring[%block] : !wide_slot
        tile.publish %wide into %slot signals %ring[%block] : !wide_slot, i64
      }
      tile.role "compute" warps 4 {
        %t0 = tile.wait %ring[%block] : !wide_slot
        %t1 = tile.wait %ring[%c1] : !wide_slot
        %tile = arith.select %is, %t0, %t1 : !tile.shared<1x4xi32>
        %other = tile.read_numbers %tile : !tile.shared<1x4xi32> -> i64
        %number = tile.read_numbers %t0 : !tile.shared<1x4xi32> -> i64
        tile.release %ring[%block] : !wide_slot
        %both = arith.addi %other, %number : i64
        %x = arith.trunci %both : i64 to i32
        %f = arith.sitofp %x : i32 to f32
        %acc0 = tile.fill %f : !s
        %sum = scf.for %j = %c0 to %keys step %c64 iter_args(%acc = %acc0) -> (!s) {
          %y = tile.load %O[%j, %c0] dims [0, 1] : !o -> !s
          scf.yield %y : !s
        }
        tile.store %sum, %O[%c0, %c0] dims [0, 1] : !s, !o
      }
    }
  }
  return
}

// or reads other numbers than there are.
// CHECK-LABEL: func.func @fewer_read(
// CHECK:         tile.publish %{{.*}} into %{{.*}}, i64, i64
func.func @fewer_read(%ends: memref<?xi32>, %out: memref<?x64xf32>, %n: index, %is: i1) {
  %c0 = arith.constant 0 : index
  %keys = memref.dim %out, %c0 : memref<?x64xf32>
  tile.launch grid(%n) warps 4 ins(%ends : memref<?xi32>) outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %E: !n, %O: !o):
    %c64 = arith.constant 64 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %ring = tile.ring : !wide_slot
    tile.roles {
      tile.role "deal" warps 1 single {
        %own = memref.load %E[%block] : !n
        %end = arith.index_cast %own : i32 to index
        %some = arith.maxsi %end, %c0 : index
        %wide = arith.index_cast %some : index to i64
        %slot = tile.acquire %ring[%block] : !wide_slot
        tile.publish %wide, %wide into %slot signals %ring[%block] : !wide_slot, i64, i64
      }
      tile.role "compute" warps 4 {
        %t0 = tile.wait %ring[%block] : !wide_slot
        %other, %o2 = tile.read_numbers %t0 : !tile.shared<1x4xi32> -> i64, i64
        %number = tile.read_numbers %t0 : !tile.shared<1x4xi32> -> i64
        tile.release %ring[%block] : !wide_slot
        %both = arith.addi %other, %number : i64
        %x = arith.trunci %both : i64 to i32
        %f = arith.sitofp %x : i32 to f32
        %acc0 = tile.fill %f : !s
        %sum = scf.for %j = %c0 to %keys step %c64 iter_args(%acc = %acc0) -> (!s) {
          %y = tile.load %O[%j, %c0] dims [0, 1] : !o -> !s
          scf.yield %y : !s
        }
        tile.store %sum, %O[%c0, %c0] dims [0, 1] : !s, !o
      }
    }
  }
  return
}
