// RUN: fovea-opt %s --tile-assign-layouts --tile-multibuffer --tile-specialize-warps -o %t.roles
// RUN: fovea-opt %t.roles --tile-skip-rows --canonicalize --cse | FileCheck %s
// RUN: fovea-opt %t.roles --tile-skip-rows --tile-schedule --tile-expand-pipeline --canonicalize --cse | FileCheck %s --check-prefix=SKEWED
// RUN: fovea-opt %s --tile-skip-rows | FileCheck %s --check-prefix=PLAIN

!g = memref<?x64xbf16, strided<[?, 1], offset: ?>>
!o = memref<?x64xf32, strided<[?, 1], offset: ?>>
!k = !tile.shared<64x64xbf16>
!s = !tile.fragment<128x64xf32>

// Who copies does so for all rows. Each of the two warp groups ends its loop, and
// takes the branch, by its own 64 rows, and passes by the slots up to the end of
// all. A map may read memory, under a condition, too.
// CHECK-LABEL: func.func @split(
// CHECK-SAME:    %[[KEYS:[^ ]*]]: index, %[[ROW:[^ ]*]]: index)
// CHECK:       tile.role "load"
// CHECK-NOT:     tile.group
// CHECK:         scf.for %{{.*}} = %c0 to %[[KEYS]] step %c64
// CHECK:       tile.role "compute"
// CHECK-NEXT:    %[[GROUP:.*]] = tile.group
// CHECK-NEXT:    %[[FIRST:.*]] = arith.muli %[[GROUP]], %c64
// CHECK-NEXT:    %[[LAST:.*]] = arith.addi %[[FIRST]], %c63
// CHECK:         %[[SOMEEND:.*]] = arith.addi %[[ROW]], %[[LAST]]
// CHECK:         %[[END:.*]] = arith.minsi %[[SOMEEND]], %[[KEYS]]
// CHECK:         %[[LOOP:.*]]:2 = scf.for %[[J:.*]] = %c0 to %[[END]] step %c64 iter_args(%{{.*}} = %{{.*}}, %[[USE:.*]] = %c0)
// CHECK:           tile.wait %[[KS:.*]][%[[USE]]]
// CHECK:           %[[OWN:.*]] = arith.addi %[[ROW]], %[[FIRST]]
// CHECK:           %[[MASKED:.*]] = arith.cmpi sgt, %[[J]], %[[OWN]]
// CHECK:           scf.if %[[MASKED]]
// CHECK:           tile.wait %[[VS:.*]][%[[USE]]]
// 32 bits hold the number of iterations of all groups.
// CHECK:         %[[SOME:.*]] = arith.maxsi %[[KEYS]], %c0
// CHECK:         %[[UP:.*]] = arith.addi %[[SOME]], %c63
// CHECK:         %[[UP32:.*]] = arith.index_castui %[[UP]] : index to i32
// CHECK:         %[[N32:.*]] = arith.divui %[[UP32]], %c64_i32
// CHECK:         %[[N:.*]] = arith.index_castui %[[N32]] : i32 to index
// CHECK:         scf.for %[[SKIPPED:.*]] = %[[LOOP]]#1 to %[[N]] step %c1 {
// CHECK-NEXT:      tile.wait %[[KS]][%[[SKIPPED]]]
// CHECK-NEXT:      tile.release %[[KS]][%[[SKIPPED]]]
// CHECK-NEXT:      tile.wait %[[VS]][%[[SKIPPED]]]
// CHECK-NEXT:      tile.release %[[VS]][%[[SKIPPED]]]
// CHECK-NEXT:    }
// CHECK:         tile.store %[[LOOP]]#0
//
// The skewed loop is still one, and slots are passed by after its last product.
// SKEWED-LABEL: func.func @split(
// SKEWED:       tile.role "compute"
// SKEWED:         scf.for {{.*}} iter_args(
// SKEWED:         tile.mma_async {{.*}} into
// SKEWED:         scf.for
// SKEWED-NEXT:      tile.wait
// SKEWED-NEXT:      tile.release
//
// In one program for all threads the numbers are those for all rows.
// PLAIN-LABEL: func.func @split(
// PLAIN-NOT:     tile.of_rows
// PLAIN:         scf.for %{{.*}} = %c0 to %{{.*}} step
// PLAIN:           scf.if %{{.*}} ->
// PLAIN-NOT:     tile.group
func.func @split(%q: memref<?x64xbf16>, %k: memref<?x64xbf16>, %out: memref<?x64xf32>, %n: index, %keys: index, %row: index) {
  tile.launch grid(%n) warps 8 stages 2 ins(%q, %k : memref<?x64xbf16>, memref<?x64xbf16>) outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %K: !g, %O: !o):
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %qt = tile.load %Q[%row, %c0] dims [0, 1] : !g -> !tile.shared<128x64xbf16>
    %acc0 = tile.fill %zero : !s
    %to = tile.of_rows %keys rows 128 {
    ^bb0(%first: index, %last: index):
      %own = arith.addi %row, %last : index
      tile.yield %own : index
    } : index
    %end = scf.for %j = %c0 to %to step %c64 iter_args(%acc = %acc0) -> (!s) {
      %kt = tile.load %K[%j, %c0] dims [0, 1] : !g -> !k
      %x = tile.mma %qt, %kt transpose_b : !tile.shared<128x64xbf16>, !k -> !s
      %any = arith.cmpi sgt, %j, %row : index
      %partial = tile.of_rows %any rows 128 {
      ^bb0(%first: index, %last: index):
        %own = arith.addi %row, %first : index
        %some = arith.cmpi sgt, %j, %own : index
        tile.yield %some : i1
      } : i1
      %masked = scf.if %partial -> (!s) {
        %f = tile.fill %zero : !s
        scf.yield %f : !s
      } else {
        scf.yield %x : !s
      }
      %p = tile.map ins(%masked : !s) {
      ^bb0(%a: f32, %m: index, %l: index):
        %t = arith.truncf %a : f32 to bf16
        %read = scf.if %any -> (bf16) {
          %element = memref.load %Q[%m, %l] : !g
          scf.yield %element : bf16
        } else {
          scf.yield %t : bf16
        }
        tile.yield %read : bf16
      } -> !tile.fragment<128x64xbf16>
      %vt = tile.load %K[%j, %c0] dims [0, 1] : !g -> !k
      %acc1 = tile.mma %p, %vt into %acc : !tile.fragment<128x64xbf16>, !k, !s -> !s
      scf.yield %acc1 : !s
    }
    tile.store %end, %O[%row, %c0] dims [0, 1] : !s, !o
  }
  return
}

// Each group passes by the slots from the begin of all to its own, and then begins
// the loop.
// CHECK-LABEL: func.func @begin(
// CHECK-SAME:    %[[KEYS:[^ ]*]]: index, %[[ROW:[^ ]*]]: index)
// CHECK:       tile.role "load"
// CHECK-NOT:     tile.group
// CHECK:         scf.for %{{.*}} = %c0 to %[[KEYS]] step %c64
// CHECK:       tile.role "compute"
// CHECK-NEXT:    %[[GROUP:.*]] = tile.group
// CHECK-NEXT:    %[[FIRST:.*]] = arith.muli %[[GROUP]], %c64
// CHECK-NEXT:    %[[LAST:.*]] = arith.addi %[[FIRST]], %c63
// CHECK:         %[[OWN:.*]] = arith.subi %[[ROW]], %[[LAST]]
// CHECK-NEXT:    %[[FROM:.*]] = arith.maxsi %[[OWN]], %c0
// CHECK-NEXT:    %[[BEGIN:.*]] = arith.minsi %[[FROM]], %[[KEYS]]
// CHECK:         %[[SPAN:.*]] = arith.maxsi %[[BEGIN]], %c0
// CHECK:         %[[UP:.*]] = arith.addi %[[SPAN]], %c63
// CHECK:         arith.divui
// CHECK:         %[[N:.*]] = arith.index_castui %{{.*}} : i32 to index
// CHECK-NEXT:    scf.for %[[SKIPPED:.*]] = %c0 to %[[N]] step %c1 {
// CHECK-NEXT:      tile.wait %[[KS:.*]][%[[SKIPPED]]]
// CHECK-NEXT:      tile.release %[[KS]][%[[SKIPPED]]]
// CHECK-NEXT:      tile.wait %[[VS:.*]][%[[SKIPPED]]]
// CHECK-NEXT:      tile.release %[[VS]][%[[SKIPPED]]]
// CHECK-NEXT:    }
// CHECK-NEXT:    %[[LOOP:.*]]:2 = scf.for %{{.*}} = %[[BEGIN]] to %[[KEYS]] step %c64 iter_args(%{{.*}} = %{{.*}}, %[[USE:.*]] = %[[N]])
// CHECK:           tile.wait %[[KS]][%[[USE]]]
// CHECK:           tile.wait %[[VS]][%[[USE]]]
// CHECK-NOT:     scf.for
// CHECK:         tile.store %[[LOOP]]#0
//
// PLAIN-LABEL: func.func @begin(
// PLAIN-NOT:     tile.of_rows
// PLAIN:         scf.for %{{.*}} = %c0 to %{{.*}} step
// PLAIN-NOT:     tile.group
func.func @begin(%q: memref<?x64xbf16>, %k: memref<?x64xbf16>, %out: memref<?x64xf32>, %blocks: index, %keys: index, %row: index) {
  tile.launch grid(%blocks) warps 8 stages 2 ins(%q, %k : memref<?x64xbf16>, memref<?x64xbf16>) outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %K: !g, %O: !o):
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %qt = tile.load %Q[%row, %c0] dims [0, 1] : !g -> !tile.shared<128x64xbf16>
    %acc0 = tile.fill %zero : !s
    %from = tile.of_rows %c0 rows 128 {
    ^bb0(%first: index, %last: index):
      %own = arith.subi %row, %last : index
      tile.yield %own : index
    } : index
    %end = scf.for %n = %from to %keys step %c64 iter_args(%acc = %acc0) -> (!s) {
      %j = arith.subi %keys, %n : index
      %kt = tile.load %K[%j, %c0] dims [0, 1] : !g -> !k
      %x = tile.mma %qt, %kt transpose_b : !tile.shared<128x64xbf16>, !k -> !s
      %any = arith.cmpi sgt, %j, %row : index
      %partial = tile.of_rows %any rows 128 {
      ^bb0(%first: index, %last: index):
        %own = arith.addi %row, %first : index
        %some = arith.cmpi sgt, %j, %own : index
        tile.yield %some : i1
      } : i1
      %masked = scf.if %partial -> (!s) {
        %f = tile.fill %zero : !s
        scf.yield %f : !s
      } else {
        scf.yield %x : !s
      }
      %p = tile.map ins(%masked : !s) {
      ^bb0(%a: f32, %m: index, %l: index):
        %t = arith.truncf %a : f32 to bf16
        tile.yield %t : bf16
      } -> !tile.fragment<128x64xbf16>
      %vt = tile.load %K[%j, %c0] dims [0, 1] : !g -> !k
      %acc1 = tile.mma %p, %vt into %acc : !tile.fragment<128x64xbf16>, !k, !s -> !s
      scf.yield %acc1 : !s
    }
    tile.store %end, %O[%row, %c0] dims [0, 1] : !s, !o
  }
  return
}

// Rows that begin and end apart: a group passes by slots in front of its loop, which
// are part of those that it passes by up to the end of all behind it.
// CHECK-LABEL: func.func @both(
// CHECK-SAME:    %[[KEYS:[^ ]*]]: index, %[[ROW:[^ ]*]]: index)
// CHECK:       tile.role "load"
// CHECK-NOT:     tile.group
// CHECK:         scf.for %{{.*}} = %c0 to %[[KEYS]] step %c64
// CHECK:       tile.role "compute"
// CHECK-NEXT:    %[[GROUP:.*]] = tile.group
// CHECK-NEXT:    %[[FIRST:.*]] = arith.muli %[[GROUP]], %c64
// CHECK-NEXT:    %[[LAST:.*]] = arith.addi %[[FIRST]], %c63
// CHECK:         %[[SOMEEND:.*]] = arith.addi %[[ROW]], %[[LAST]]
// CHECK:         %[[END:.*]] = arith.minsi %[[SOMEEND]], %[[KEYS]]
// CHECK:         %[[FROM:.*]] = arith.maxsi %[[FIRST]], %c0
// CHECK:         %[[BEGIN:.*]] = arith.minsi %[[FROM]], %[[KEYS]]
// CHECK:         %[[N:.*]] = arith.index_castui %{{.*}} : i32 to index
// CHECK-NEXT:    scf.for %{{.*}} = %c0 to %[[N]] step %c1 {
// CHECK:         %[[LOOP:.*]]:2 = scf.for %{{.*}} = %[[BEGIN]] to %[[END]] step %c64 iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %[[N]])
// CHECK:         %[[REST:.*]] = arith.subi %[[KEYS]], %[[BEGIN]]
// CHECK:         %[[MORE:.*]] = arith.index_castui %{{.*}} : i32 to index
// CHECK:         %[[ALL:.*]] = arith.addi %[[N]], %[[MORE]]
// CHECK:         scf.for %{{.*}} = %[[LOOP]]#1 to %[[ALL]] step %c1 {
func.func @both(%q: memref<?x64xbf16>, %k: memref<?x64xbf16>, %out: memref<?x64xf32>, %n: index, %keys: index, %row: index) {
  tile.launch grid(%n) warps 8 stages 2 ins(%q, %k : memref<?x64xbf16>, memref<?x64xbf16>) outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %K: !g, %O: !o):
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %qt = tile.load %Q[%row, %c0] dims [0, 1] : !g -> !tile.shared<128x64xbf16>
    %acc0 = tile.fill %zero : !s
    %to = tile.of_rows %keys rows 128 {
    ^bb0(%first: index, %last: index):
      %own = arith.addi %row, %last : index
      tile.yield %own : index
    } : index
    %from = tile.of_rows %c0 rows 128 {
    ^bb0(%first: index, %last: index):
      tile.yield %first : index
    } : index
    %end = scf.for %j = %from to %to step %c64 iter_args(%acc = %acc0) -> (!s) {
      %kt = tile.load %K[%j, %c0] dims [0, 1] : !g -> !k
      %x = tile.mma %qt, %kt into %acc transpose_b : !tile.shared<128x64xbf16>, !k, !s -> !s
      scf.yield %x : !s
    }
    tile.store %end, %O[%row, %c0] dims [0, 1] : !s, !o
  }
  return
}

// One warp group.
// CHECK-LABEL: func.func @one_group(
// CHECK-NOT:     tile.group
func.func @one_group(%q: memref<?x64xbf16>, %out: memref<?x64xf32>, %n: index, %keys: index) {
  tile.launch grid(%n) warps 4 stages 2 ins(%q : memref<?x64xbf16>) outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %O: !o):
    %c0 = arith.constant 0 : index
    %c32 = arith.constant 32 : index
    %zero = arith.constant 0.0 : f32
    %acc0 = tile.fill %zero : !tile.fragment<64x64xf32>
    // CHECK: scf.for %{{.*}} = %c0 to %arg3
    %to = tile.of_rows %keys rows 64 {
    ^bb0(%first: index, %last: index):
      tile.yield %last : index
    } : index
    %end = scf.for %j = %c0 to %to step %c32 iter_args(%acc = %acc0) -> (!tile.fragment<64x64xf32>) {
      %kt = tile.load %Q[%j, %c0] dims [0, 1] : !g -> !k
      %x = tile.mma %kt, %kt into %acc transpose_b : !k, !k, !tile.fragment<64x64xf32> -> !tile.fragment<64x64xf32>
      scf.yield %x : !tile.fragment<64x64xf32>
    }
    tile.store %end, %O[%c0, %c0] dims [0, 1] : !tile.fragment<64x64xf32>, !o
  }
  return
}

// Steps as long as the groups are apart from each other and longer: the loop
// stays.
// CHECK-LABEL: func.func @long_steps(
// CHECK-NOT:     tile.group
func.func @long_steps(%q: memref<?x64xbf16>, %out: memref<?x64xf32>, %n: index, %keys: index) {
  tile.launch grid(%n) warps 8 stages 2 ins(%q : memref<?x64xbf16>) outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %O: !o):
    %c0 = arith.constant 0 : index
    %c80 = arith.constant 80 : index
    %zero = arith.constant 0.0 : f32
    %qt = tile.load %Q[%c0, %c0] dims [0, 1] : !g -> !tile.shared<128x64xbf16>
    %acc0 = tile.fill %zero : !s
    // CHECK: tile.role "compute"
    // CHECK: scf.for %{{.*}} = %c0 to %arg3
    %to = tile.of_rows %keys rows 128 {
    ^bb0(%first: index, %last: index):
      tile.yield %last : index
    } : index
    %end = scf.for %j = %c0 to %to step %c80 iter_args(%acc = %acc0) -> (!s) {
      %kt = tile.load %Q[%j, %c0] dims [0, 1] : !g -> !k
      %x = tile.mma %qt, %kt into %acc transpose_b : !tile.shared<128x64xbf16>, !k, !s -> !s
      scf.yield %x : !s
    }
    tile.store %end, %O[%c0, %c0] dims [0, 1] : !s, !o
  }
  return
}

// Rows that groups exchange through shared memory.
// CHECK-LABEL: func.func @exchange(
// CHECK-NOT:     tile.group
func.func @exchange(%q: memref<?x64xbf16>, %out: memref<?x64xf32>, %n: index, %keys: index) {
  tile.launch grid(%n) warps 8 stages 2 ins(%q : memref<?x64xbf16>) outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %O: !o):
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %qt = tile.load %Q[%c0, %c0] dims [0, 1] : !g -> !tile.shared<128x64xbf16>
    %acc0 = tile.fill %zero : !s
    // CHECK: tile.role "compute"
    // CHECK: scf.for %{{.*}} = %c0 to %arg3
    %to = tile.of_rows %keys rows 128 {
    ^bb0(%first: index, %last: index):
      tile.yield %last : index
    } : index
    %end = scf.for %j = %c0 to %to step %c64 iter_args(%acc = %acc0) -> (!s) {
      %kt = tile.load %Q[%j, %c0] dims [0, 1] : !g -> !k
      %x = tile.mma %qt, %kt into %acc transpose_b : !tile.shared<128x64xbf16>, !k, !s -> !s
      scf.yield %x : !s
    }
    %t = tile.to_shared %end : !s -> !tile.shared<128x64xf32>
    tile.store_async %t, %O[%c0, %c0] dims [0, 1] : !tile.shared<128x64xf32>, !o
    tile.wait_stores
  }
  return
}

// A number for fewer rows than the role's tile has.
// CHECK-LABEL: func.func @other_rows(
// CHECK-NOT:     tile.group
func.func @other_rows(%q: memref<?x64xbf16>, %out: memref<?x64xf32>, %n: index, %keys: index) {
  tile.launch grid(%n) warps 8 stages 2 ins(%q : memref<?x64xbf16>) outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %O: !o):
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %qt = tile.load %Q[%c0, %c0] dims [0, 1] : !g -> !tile.shared<128x64xbf16>
    %acc0 = tile.fill %zero : !s
    // CHECK: tile.role "compute"
    // CHECK: scf.for %{{.*}} = %c0 to %arg3
    %to = tile.of_rows %keys rows 128 {
    ^bb0(%first: index, %last: index):
      tile.yield %last : index
    } : index
    %end = scf.for %j = %c0 to %to step %c64 iter_args(%acc = %acc0) -> (!s) {
      %any = arith.cmpi sgt, %j, %c64 : index
      %other = tile.of_rows %any rows 64 {
      ^bb0(%first: index, %last: index):
        %some = arith.cmpi sgt, %j, %first : index
        tile.yield %some : i1
      } : i1
      %begin = scf.if %other -> (!s) {
        scf.yield %acc0 : !s
      } else {
        scf.yield %acc : !s
      }
      %kt = tile.load %Q[%j, %c0] dims [0, 1] : !g -> !k
      %x = tile.mma %qt, %kt into %begin transpose_b : !tile.shared<128x64xbf16>, !k, !s -> !s
      scf.yield %x : !s
    }
    tile.store %end, %O[%c0, %c0] dims [0, 1] : !s, !o
  }
  return
}

// A tile without a ring, which all threads copy: the loop stays.
// CHECK-LABEL: func.func @copied_tile(
// CHECK-NOT:     tile.group
func.func @copied_tile(%q: memref<?x64xbf16>, %mask: memref<?x?xi1, strided<[?, 1], offset: ?>>, %out: memref<?x64xf32>, %n: index, %keys: index) {
  tile.launch grid(%n) warps 8 stages 2 ins(%q, %mask : memref<?x64xbf16>, memref<?x?xi1, strided<[?, 1], offset: ?>>) outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %M: memref<?x?xi1, strided<[?, 1], offset: ?>>, %O: !o):
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %zero = arith.constant 0.0 : f32
    %qt = tile.load %Q[%c0, %c0] dims [0, 1] : !g -> !tile.shared<128x64xbf16>
    %acc0 = tile.fill %zero : !tile.fragment<128x16xf32>
    // CHECK: tile.role "compute"
    // CHECK: scf.for %{{.*}} = %c0 to %arg4
    // CHECK:   tile.load {{.*}} -> !tile.shared<128x16xi1>
    %to = tile.of_rows %keys rows 128 {
    ^bb0(%first: index, %last: index):
      tile.yield %last : index
    } : index
    %end = scf.for %j = %c0 to %to step %c16 iter_args(%acc = %acc0) -> (!tile.fragment<128x16xf32>) {
      %kt = tile.load %Q[%j, %c0] dims [0, 1] : !g -> !tile.shared<16x64xbf16>
      %mt = tile.load %M[%c0, %j] dims [0, 1] : memref<?x?xi1, strided<[?, 1], offset: ?>> -> !tile.shared<128x16xi1>
      %m = tile.from_shared %mt : !tile.shared<128x16xi1> -> !tile.fragment<128x16xi1>
      %x = tile.mma %qt, %kt into %acc transpose_b : !tile.shared<128x64xbf16>, !tile.shared<16x64xbf16>, !tile.fragment<128x16xf32> -> !tile.fragment<128x16xf32>
      %y = tile.map ins(%x, %m : !tile.fragment<128x16xf32>, !tile.fragment<128x16xi1>) {
      ^bb0(%e: f32, %keep: i1, %r: index, %c: index):
        %z = arith.select %keep, %e, %zero : f32
        tile.yield %z : f32
      } -> !tile.fragment<128x16xf32>
      scf.yield %y : !tile.fragment<128x16xf32>
    }
    tile.store %end, %O[%c0, %c0] dims [0, 1] : !tile.fragment<128x16xf32>, !o
  }
  return
}
