// RUN: fovea-opt %s --tile-persist --tile-assign-layouts --tile-multibuffer --tile-stage-stores --tile-specialize-warps --tile-skip-rows -o %t.skips
// RUN: fovea-opt %t.skips --tile-swap-groups --canonicalize --cse | FileCheck %s
// RUN: fovea-opt %t.skips --tile-swap-groups --mlir-print-op-generic -o %t.a
// RUN: fovea-opt %t.a --tile-swap-groups --mlir-print-op-generic -o %t.b
// RUN: diff %t.a %t.b

!g = memref<?x64xbf16, strided<[?, 1], offset: ?>>
!o = memref<?x64xf32, strided<[?, 1], offset: ?>>
!l = memref<?xf32, strided<[1], offset: ?>>
!k = !tile.shared<64x64xbf16>
!s = !tile.fragment<128x64xf32>
!r = !tile.fragment<128xf32>

// In every other round each of two groups has the rows of the other: products read
// them, coordinates and numbers are theirs, and results go to them. Who copies and
// who stores does so for whole tiles.
// CHECK-LABEL: func.func @back(
// CHECK:       tile.role "load"
// CHECK-NOT:     tile.shift_rows
// CHECK:       tile.role "store"
// CHECK-NOT:     tile.shift_rows
// CHECK:       tile.role "compute"
// CHECK:         %[[GROUP:.*]] = tile.group
// CHECK:         scf.for %[[ROUND:.*]] = %c0 to %{{.*}} step %c1
// CHECK:           %[[ODD:.*]] = arith.andi %[[ROUND]], %c1
// CHECK:           %[[BACK:.*]] = arith.cmpi ne, %[[ODD]], %c0
// CHECK:           %[[OTHER:.*]] = arith.subi %c1, %[[GROUP]]
// CHECK:           %[[APART:.*]] = arith.subi %[[OTHER]], %[[GROUP]]
// CHECK:           %[[ROWS:.*]] = arith.muli %[[APART]], %c64
// CHECK:           %[[BY:.*]] = arith.select %[[BACK]], %[[ROWS]], %c0
// CHECK:           %[[NUMBER:.*]] = arith.select %[[BACK]], %[[OTHER]], %[[GROUP]]
// CHECK:           %[[FIRST:.*]] = arith.muli %[[NUMBER]], %c64
// CHECK:           %[[LAST:.*]] = arith.addi %[[FIRST]], %c63
// CHECK:           %[[OWN:.*]] = arith.addi %[[R0:.*]], %[[LAST]]
// CHECK:           %[[END:.*]] = arith.minsi %[[OWN]], %{{.*}}
// CHECK:           %[[TILE:.*]] = tile.wait %[[QS:.*]][
// CHECK:           %[[Q:.*]] = tile.shift_rows %[[TILE]] by %[[BY]] : !tile.shared<128x64xbf16, swizzle = 128>
// CHECK:           scf.for %{{.*}} = %c0 to %[[END]] step %c64
// CHECK:             tile.mma wgmma %[[Q]], %{{.*}} transpose_b
// CHECK:             tile.map ins
// CHECK-NEXT:        ^bb0(%{{[^:]*}}: f32, %[[ROW:[^:]*]]: index, %[[KEY:[^:]*]]: index):
// CHECK-NEXT:          %[[SHIFTED:.*]] = arith.addi %[[ROW]], %[[BY]]
// CHECK-NEXT:          arith.cmpi sge, %[[SHIFTED]], %[[KEY]]
// Rows that a body does not name stay as they are.
// CHECK:             tile.map ins
// CHECK-NEXT:        ^bb0
// CHECK-NEXT:          arith.truncf
// CHECK:           %[[PLACE:.*]] = arith.addi %[[R0]], %[[BY]]
// CHECK:           %[[LEFT:.*]] = arith.subi %{{.*}}, %[[BY]]
// CHECK:           tile.store %{{.*}}, %{{.*}}[%[[PLACE]]] dims [0] valid(%[[LEFT]])
// CHECK:           %[[SLOT:.*]] = tile.acquire
// CHECK:           %[[VIEW:.*]] = tile.shift_rows %[[SLOT]] by %[[BY]]
// CHECK:           tile.write %{{.*}} into %[[VIEW]] signals
func.func @back(%q: memref<?x64xbf16>, %k: memref<?x64xbf16>, %out: memref<?x64xf32>, %sums: memref<?xf32>, %keys: index, %tiles: index, %left: index) {
  tile.launch grid(%tiles) persistent snaked warps 8 stages 2
      ins(%q, %k : memref<?x64xbf16>, memref<?x64xbf16>)
      outs(%out, %sums : memref<?x64xf32>, memref<?xf32>) {
  ^bb0(%block: index, %Q: !g, %K: !g, %O: !o, %L: !l):
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %zero = arith.constant 0.0 : f32
    %i = arith.muli %block, %c128 : index
    %qt = tile.load %Q[%i, %c0] dims [0, 1] : !g -> !tile.shared<128x64xbf16>
    %acc0 = tile.fill %zero : !s
    %sum0 = tile.fill %zero : !r
    %to = tile.of_rows %keys rows 128 {
    ^bb0(%first: index, %last: index):
      %own = arith.addi %i, %last : index
      tile.yield %own : index
    } : index
    %end:2 = scf.for %j = %c0 to %to step %c64 iter_args(%acc = %acc0, %sum = %sum0) -> (!s, !r) {
      %kt = tile.load %K[%j, %c0] dims [0, 1] : !g -> !k
      %x = tile.mma %qt, %kt transpose_b : !tile.shared<128x64xbf16>, !k -> !s
      %masked = tile.map ins(%x : !s) {
      ^bb0(%a: f32, %m: index, %n: index):
        %kept = arith.cmpi sge, %m, %n : index
        %y = arith.select %kept, %a, %zero : f32
        tile.yield %y : f32
      } -> !s
      %sum1 = tile.reduce add %masked, %sum dim 1 : !s -> !r
      %p = tile.map ins(%masked : !s) {
      ^bb0(%a: f32, %m: index, %n: index):
        %t = arith.truncf %a : f32 to bf16
        tile.yield %t : bf16
      } -> !tile.fragment<128x64xbf16>
      %vt = tile.load %K[%j, %c0] dims [0, 1] : !g -> !k
      %acc1 = tile.mma %p, %vt into %acc : !tile.fragment<128x64xbf16>, !k, !s -> !s
      scf.yield %acc1, %sum1 : !s, !r
    }
    tile.store %end#1, %L[%i] dims [0] valid(%left) : !r, !l
    tile.store %end#0, %O[%i, %c0] dims [0, 1] : !s, !o
  }
  return
}

// Groups that begin and end where their rows do have as much to do, one after
// another.
// CHECK-LABEL: func.func @in_line(
// CHECK:       tile.role "compute"
// CHECK:         tile.group
// CHECK-NOT:     tile.shift_rows
func.func @in_line(%q: memref<?x64xbf16>, %out: memref<?x64xf32>, %keys: index, %tiles: index, %heads: index) {
  tile.launch grid(%tiles, %heads) persistent snaked warps 8 stages 2
      ins(%q : memref<?x64xbf16>) outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %head: index, %Q: !g, %O: !o):
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %zero = arith.constant 0.0 : f32
    %i = arith.muli %block, %c128 : index
    %qt = tile.load %Q[%i, %c0] dims [0, 1] : !g -> !tile.shared<128x64xbf16>
    %acc0 = tile.fill %zero : !s
    %to = tile.of_rows %keys rows 128 {
    ^bb0(%first: index, %last: index):
      tile.yield %last : index
    } : index
    %from = tile.of_rows %c0 rows 128 {
    ^bb0(%first: index, %last: index):
      tile.yield %first : index
    } : index
    %end = scf.for %j = %from to %to step %c64 iter_args(%acc = %acc0) -> (!s) {
      %kt = tile.load %Q[%j, %c0] dims [0, 1] : !g -> !k
      %x = tile.mma %qt, %kt into %acc transpose_b : !tile.shared<128x64xbf16>, !k, !s -> !s
      scf.yield %x : !s
    }
    tile.store %end, %O[%i, %c0] dims [0, 1] : !s, !o
  }
  return
}

// Programs in linear order, of which each is the only one of its row.
// CHECK-LABEL: func.func @linear(
// CHECK:       tile.role "compute"
// CHECK:         tile.group
// CHECK-NOT:     tile.shift_rows
func.func @linear(%q: memref<?x64xbf16>, %out: memref<?x64xf32>, %keys: index, %tiles: index) {
  tile.launch grid(%tiles) persistent linear warps 8 stages 2
      ins(%q : memref<?x64xbf16>) outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %O: !o):
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %zero = arith.constant 0.0 : f32
    %i = arith.muli %block, %c128 : index
    %qt = tile.load %Q[%i, %c0] dims [0, 1] : !g -> !tile.shared<128x64xbf16>
    %acc0 = tile.fill %zero : !s
    %to = tile.of_rows %keys rows 128 {
    ^bb0(%first: index, %last: index):
      tile.yield %last : index
    } : index
    %end = scf.for %j = %c0 to %to step %c64 iter_args(%acc = %acc0) -> (!s) {
      %kt = tile.load %Q[%j, %c0] dims [0, 1] : !g -> !k
      %x = tile.mma %qt, %kt into %acc transpose_b : !tile.shared<128x64xbf16>, !k, !s -> !s
      scf.yield %x : !s
    }
    tile.store %end, %O[%i, %c0] dims [0, 1] : !s, !o
  }
  return
}

// One program a block: the loop is that over keys.
// CHECK-LABEL: func.func @one_tile(
// CHECK:       tile.role "compute"
// CHECK:         tile.group
// CHECK-NOT:     tile.shift_rows
func.func @one_tile(%q: memref<?x64xbf16>, %out: memref<?x64xf32>, %keys: index, %tiles: index) {
  tile.launch grid(%tiles) warps 8 stages 2
      ins(%q : memref<?x64xbf16>) outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %O: !o):
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %qt = tile.load %Q[%c0, %c0] dims [0, 1] : !g -> !tile.shared<128x64xbf16>
    %acc0 = tile.fill %zero : !s
    %to = tile.of_rows %keys rows 128 {
    ^bb0(%first: index, %last: index):
      tile.yield %last : index
    } : index
    %end = scf.for %j = %c0 to %to step %c64 iter_args(%acc = %acc0) -> (!s) {
      %kt = tile.load %Q[%j, %c0] dims [0, 1] : !g -> !k
      %x = tile.mma %qt, %kt into %acc transpose_b : !tile.shared<128x64xbf16>, !k, !s -> !s
      scf.yield %x : !s
    }
    tile.store %end, %O[%c0, %c0] dims [0, 1] : !s, !o
  }
  return
}

// Groups that do not run apart.
// CHECK-LABEL: func.func @together(
// CHECK:       tile.role "compute"
// CHECK-NOT:     tile.shift_rows
func.func @together(%q: memref<?x64xbf16>, %out: memref<?x64xf32>, %keys: index, %tiles: index) {
  tile.launch grid(%tiles) persistent snaked warps 8 stages 2
      ins(%q : memref<?x64xbf16>) outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %O: !o):
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %zero = arith.constant 0.0 : f32
    %i = arith.muli %block, %c128 : index
    %qt = tile.load %Q[%i, %c0] dims [0, 1] : !g -> !tile.shared<128x64xbf16>
    %acc0 = tile.fill %zero : !s
    %end = scf.for %j = %c0 to %keys step %c64 iter_args(%acc = %acc0) -> (!s) {
      %kt = tile.load %Q[%j, %c0] dims [0, 1] : !g -> !k
      %x = tile.mma %qt, %kt into %acc transpose_b : !tile.shared<128x64xbf16>, !k, !s -> !s
      scf.yield %x : !s
    }
    tile.store %end, %O[%i, %c0] dims [0, 1] : !s, !o
  }
  return
}

// Rows that come straight from memory into registers are the group's.
// CHECK-LABEL: func.func @loaded(
// CHECK:       tile.role "compute"
// CHECK:         %[[BY:.*]] = arith.select %{{.*}}, %{{.*}}, %c0
// CHECK:         %[[PLACE:.*]] = arith.addi %{{.*}}, %[[BY]]
// CHECK:         tile.load %{{.*}}[%[[PLACE]], %c0] dims [0, 1] : {{.*}} -> !tile.fragment<128x64xf32
// CHECK:         tile.shift_rows %{{.*}} by %[[BY]]
func.func @loaded(%q: memref<?x64xbf16>, %init: memref<?x64xf32>, %out: memref<?x64xf32>, %keys: index, %tiles: index) {
  tile.launch grid(%tiles) persistent snaked warps 8 stages 2
      ins(%q, %init : memref<?x64xbf16>, memref<?x64xf32>) outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %I: !o, %O: !o):
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %i = arith.muli %block, %c128 : index
    %qt = tile.load %Q[%i, %c0] dims [0, 1] : !g -> !tile.shared<128x64xbf16>
    %acc0 = tile.load %I[%i, %c0] dims [0, 1] : !o -> !s
    %to = tile.of_rows %keys rows 128 {
    ^bb0(%first: index, %last: index):
      tile.yield %last : index
    } : index
    %end = scf.for %j = %c0 to %to step %c64 iter_args(%acc = %acc0) -> (!s) {
      %kt = tile.load %Q[%j, %c0] dims [0, 1] : !g -> !k
      %x = tile.mma %qt, %kt into %acc transpose_b : !tile.shared<128x64xbf16>, !k, !s -> !s
      scf.yield %x : !s
    }
    tile.store %end, %O[%i, %c0] dims [0, 1] : !s, !o
  }
  return
}

// A load of one number for each row, or each column.
// CHECK-LABEL: func.func @numbers(
// CHECK:       tile.role "compute"
// CHECK:         tile.group
// CHECK-NOT:     tile.shift_rows
func.func @numbers(%q: memref<?x64xbf16>, %init: memref<?xf32>, %out: memref<?x64xf32>, %keys: index, %tiles: index) {
  tile.launch grid(%tiles) persistent snaked warps 8 stages 2
      ins(%q, %init : memref<?x64xbf16>, memref<?xf32>) outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %I: !l, %O: !o):
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %zero = arith.constant 0.0 : f32
    %i = arith.muli %block, %c128 : index
    %qt = tile.load %Q[%i, %c0] dims [0, 1] : !g -> !tile.shared<128x64xbf16>
    %acc0 = tile.fill %zero : !s
    %to = tile.of_rows %keys rows 128 {
    ^bb0(%first: index, %last: index):
      tile.yield %last : index
    } : index
    %end = scf.for %j = %c0 to %to step %c64 iter_args(%acc = %acc0) -> (!s) {
      %kt = tile.load %Q[%j, %c0] dims [0, 1] : !g -> !k
      %x = tile.mma %qt, %kt into %acc transpose_b : !tile.shared<128x64xbf16>, !k, !s -> !s
      scf.yield %x : !s
    }
    %factors = tile.load %I[%i] dims [0] : !l -> !r
    %scaled = tile.map ins(%end : !s) rows(%factors : !r) {
    ^bb0(%a: f32, %b: f32, %m: index, %n: index):
      %y = arith.mulf %a, %b : f32
      tile.yield %y : f32
    } -> !s
    tile.store %scaled, %O[%i, %c0] dims [0, 1] : !s, !o
  }
  return
}

// Of rows that run along two dimensions 64 are 16 places of the first one, of which each
// has 4. The number of valid rows is one of rows.
// CHECK-LABEL: func.func @inner(
// CHECK:       tile.role "compute"
// CHECK:         scf.for
// CHECK:           %[[BY:.*]] = arith.select %{{.*}}, %{{.*}}, %c0
// CHECK:           tile.shift_rows %{{.*}} by %[[BY]]
// CHECK:           %[[PLACES:.*]] = arith.divsi %[[BY]], %c4
// CHECK:           %[[PLACE:.*]] = arith.addi %{{.*}}, %[[PLACES]]
// CHECK:           %[[LEFT:.*]] = arith.subi %{{.*}}, %[[BY]]
// CHECK:           tile.store %{{.*}}, %{{.*}}[%c0, %[[PLACE]]] dims [1, 0] inner 4 valid(%[[LEFT]])
func.func @inner(%q: memref<4x?x64xbf16>, %k: memref<?x64xbf16>, %sums: memref<4x?xf32>, %keys: index, %tiles: index, %left: index) {
  tile.launch grid(%tiles) persistent snaked warps 8 stages 2
      ins(%q, %k : memref<4x?x64xbf16>, memref<?x64xbf16>) outs(%sums : memref<4x?xf32>) {
  ^bb0(%block: index, %Q: memref<4x?x64xbf16, strided<[?, ?, 1], offset: ?>>, %K: !g, %L: memref<4x?xf32, strided<[?, 1], offset: ?>>):
    %c0 = arith.constant 0 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %i = arith.muli %block, %c32 : index
    %qt = tile.load %Q[%c0, %i, %c0] dims [1, 0, 2] inner 4 : memref<4x?x64xbf16, strided<[?, ?, 1], offset: ?>> -> !tile.shared<128x64xbf16>
    %sum0 = tile.fill %zero : !r
    %to = tile.of_rows %keys rows 128 {
    ^bb0(%first: index, %last: index):
      tile.yield %last : index
    } : index
    %end = scf.for %j = %c0 to %to step %c64 iter_args(%sum = %sum0) -> (!r) {
      %kt = tile.load %K[%j, %c0] dims [0, 1] : !g -> !k
      %x = tile.mma %qt, %kt transpose_b : !tile.shared<128x64xbf16>, !k -> !s
      %sum1 = tile.reduce add %x, %sum dim 1 : !s -> !r
      scf.yield %sum1 : !r
    }
    tile.store %end, %L[%c0, %i] dims [1, 0] inner 4 valid(%left) : !r, memref<4x?xf32, strided<[?, 1], offset: ?>>
  }
  return
}
