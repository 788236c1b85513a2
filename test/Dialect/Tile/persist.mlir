// RUN: fovea-opt %s --tile-persist --split-input-file | FileCheck %s
// RUN: fovea-opt %s --tile-persist --canonicalize --split-input-file | FileCheck %s --check-prefix=STATIC

!x = memref<?x?x64xbf16, strided<[?, ?, 1], offset: ?>>

// A block for each multiprocessor, which runs every program whose number differs
// from its own by a multiple of the number of blocks.

// CHECK-LABEL: func @linear
// CHECK-SAME:    memref<{{[^)]*}}>>, %[[N:[^ ]*]]: index, %[[M:[^ ]*]]: index)
// CHECK:       %[[ITEMS:.*]] = arith.muli %[[N]], %[[M]]
// CHECK:       %[[CORES:.*]] = arith.constant 132 : index
// CHECK:       %[[BLOCKS:.*]] = arith.minui %[[ITEMS]], %[[CORES]]
// CHECK:       tile.launch kernel "k" grid(%[[BLOCKS]]) warps 8 stages 3 outs(
// CHECK:       ^bb0(%[[B:.*]]: index, %[[O:.*]]: memref
// CHECK:         scf.for %[[I:.*]] = %[[B]] to %[[ITEMS]] step %[[BLOCKS]] {
// 32 bits are enough for the number of a program.
// CHECK:           %[[I32:.*]] = arith.index_castui %[[I]] : index to i32
// CHECK:           %[[N32:.*]] = arith.index_castui %[[N]] : index to i32
// CHECK:           %[[Q:.*]] = arith.divui %[[I32]], %[[N32]] : i32
// CHECK:           %[[P:.*]] = arith.muli %[[Q]], %[[N32]] : i32
// CHECK:           %[[Y:.*]] = arith.index_castui %[[Q]] : i32 to index
// CHECK:           %[[R:.*]] = arith.subi %[[I32]], %[[P]] : i32
// CHECK:           %[[XID:.*]] = arith.index_castui %[[R]] : i32 to index
// CHECK:           tile.store %{{.*}}, %[[O]][%[[Y]], %[[XID]],
// CHECK:         }
func.func @linear(%o: !x, %n: index, %m: index) {
  tile.launch kernel "k" grid(%n, %m) persistent linear warps 8 stages 3 outs(%o : !x) {
  ^bb0(%i: index, %j: index, %O: !x):
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : bf16
    %f = tile.fill %zero : !tile.fragment<128x64xbf16>
    tile.store %f, %O[%j, %i, %c0] dims [1, 2] : !tile.fragment<128x64xbf16>, !x
  }
  return
}

// -----

!x = memref<?x?x64xbf16, strided<[?, ?, 1], offset: ?>>

// There and back, or in turns. With 132 blocks about four programs of each of 33 rows
// run at a time: of so many rows that the rounds are even, for which the number of programs
// of a row counts by what it has in common with two rounds, 264 = 8 * 3 * 11. The
// number of groups is rounded, and the last one has all rows that are left.

// CHECK-LABEL: func @snaked
// CHECK-SAME:    memref<{{[^)]*}}>>, %{{[^)]*}}>>, %[[N:[^ ]*]]: index, %[[M:[^ ]*]]: index)
// CHECK:       %[[ITEMS:.*]] = arith.muli %[[N]], %[[M]]
// CHECK:       %[[R2:.*]] = arith.remui %[[N]], %c2
// CHECK:       %[[IS2:.*]] = arith.cmpi eq, %[[R2]], %c0
// CHECK:       %[[F2:.*]] = arith.select %[[IS2]], %c2
// CHECK:       arith.remui %[[N]], %c4
// CHECK:       arith.remui %[[N]], %c8
// CHECK:       arith.remui %[[N]], %c3
// CHECK:       %[[R11:.*]] = arith.remui %[[N]], %c11
// CHECK:       %[[IS11:.*]] = arith.cmpi eq, %[[R11]], %c0
// CHECK:       %[[F11:.*]] = arith.select %[[IS11]], %c11
// CHECK:       %[[COMMON:.*]] = arith.muli %{{.*}}, %[[F11]]
// CHECK:       %[[LEAST:.*]] = arith.divui %c264{{.*}}, %[[COMMON]]
// CHECK:       %[[HALF:.*]] = arith.divui %[[LEAST]], %c2
// CHECK:       %[[SUM:.*]] = arith.addi %[[HALF]], %c33
// CHECK:       %[[TIMES:.*]] = arith.divui %[[SUM]], %[[LEAST]]
// CHECK:       %[[SAFE:.*]] = arith.maxui %[[TIMES]], %c1
// CHECK:       %[[GROUP:.*]] = arith.muli %[[LEAST]], %[[SAFE]]
// CHECK:       %[[HALFGROUP:.*]] = arith.divui %[[GROUP]], %c2
// CHECK:       %[[ROUNDED:.*]] = arith.addi %{{.*}}, %[[HALFGROUP]]
// CHECK:       %[[GROUPS:.*]] = arith.divui %[[ROUNDED]], %[[GROUP]]
// CHECK:       %[[SOME:.*]] = arith.maxui %[[GROUPS]], %c1
// CHECK:       %[[LASTGROUP:.*]] = arith.subi %[[SOME]], %c1
// What a row reads decides whether groups take turns, and how many of them.
// CHECK:       %[[ROWS:.*]] = arith.maxui %[[M]], %c1
// CHECK:       %[[BYTES:.*]] = arith.divui %{{.*}}, %[[ROWS]]
// CHECK:       %[[ALL:.*]] = arith.muli %[[M]], %[[BYTES]]
// CHECK:       %[[UP:.*]] = arith.addi %[[ALL]], %c52428799
// CHECK:       %[[BYCACHE:.*]] = arith.divui %[[UP]], %c52428800
// CHECK:       %[[BYROUNDS:.*]] = arith.divui %[[ITEMS]], %c396
// CHECK:       arith.minui %[[BYCACHE]], %[[BYROUNDS]]
// CHECK:       %[[BYROWS:.*]] = arith.divui %[[M]], %c2
// CHECK:       arith.minui %{{.*}}, %[[BYROWS]]
// CHECK:       arith.minui %{{.*}}, %c512
// CHECK:       %[[PAIRS:.*]] = arith.maxui %{{.*}}, %c1
// CHECK:       %[[TURNS:.*]] = arith.muli %[[PAIRS]], %c2
// CHECK:       %[[TOGETHER:.*]] = arith.minui %[[GROUP]], %[[M]]
// CHECK:       %[[READ:.*]] = arith.muli %[[TOGETHER]], %[[BYTES]]
// CHECK:       %[[TAKES:.*]] = arith.cmpi ugt, %[[READ]], %c65536000
// CHECK:       %[[BLOCKS:.*]] = arith.minui %[[ITEMS]], %c132
// CHECK:       tile.launch grid(%[[BLOCKS]]) warps 8 ins(
// CHECK:       ^bb0(%[[B:.*]]: index, %{{.*}}: memref
// The last round is a part of one.
// CHECK:         %[[FULL:.*]] = arith.index_castui %{{.*}} : i32 to index
// CHECK:         %[[REST:.*]] = arith.index_castui %{{.*}} : i32 to index
// CHECK:         %[[LAST:.*]] = arith.subi %[[BLOCKS]],
// CHECK:         %[[BACK:.*]] = arith.subi %[[LAST]], %[[B]]
// CHECK:         %[[PLACE:.*]] = arith.select %{{.*}}, %[[B]], %[[BACK]]
// CHECK:         %[[IN:.*]] = arith.cmpi ult, %[[PLACE]], %[[REST]]
// CHECK:         %[[MORE:.*]] = arith.select %[[IN]],
// CHECK:         %[[ROUNDS:.*]] = arith.addi %[[FULL]], %[[MORE]]
// CHECK:         scf.for %[[ROUND:.*]] = %{{.*}} to %[[ROUNDS]] step
// CHECK:           %[[FIRST:.*]] = arith.muli %[[ROUND]], %[[BLOCKS]]
// CHECK:           %[[ODD:.*]] = arith.andi %[[ROUND]],
// CHECK:           %[[EVEN:.*]] = arith.cmpi eq, %[[ODD]],
// CHECK:           %[[FORTH:.*]] = arith.ori %[[EVEN]], %[[TAKES]]
// CHECK:           %[[HERE:.*]] = arith.select %[[FORTH]], %[[B]],
// CHECK:           %[[ITEM:.*]] = arith.addi %[[FIRST]], %[[HERE]]
// There and back: the group's first row, and its rows.
// CHECK:           %[[OF:.*]] = arith.muli %[[GROUP]], %[[N]]
// CHECK:           arith.index_castui %[[ITEM]]
// CHECK:           %[[NUMBER:.*]] = arith.minui %{{.*}}, %[[LASTGROUP]]
// CHECK:           %[[GROUPROW:.*]] = arith.muli %[[NUMBER]], %[[GROUP]]
// CHECK:           %[[ISLAST:.*]] = arith.cmpi eq, %[[NUMBER]], %[[LASTGROUP]]
// CHECK:           %[[LEFT:.*]] = arith.subi %[[M]], %[[GROUPROW]]
// CHECK:           %[[MEMBERS:.*]] = arith.select %[[ISLAST]], %[[LEFT]], %[[GROUP]]
// In turns.
// CHECK:           %[[ROWOF:.*]] = arith.addi %{{.*}}, %c1
// CHECK:           %[[TIMES:.*]] = arith.muli %[[ROWOF]], %[[TURNS]]
// CHECK:           %[[LASTOF:.*]] = arith.subi %[[TIMES]], %c1
// CHECK:           arith.index_castui %[[LASTOF]]
// CHECK:           %[[TURN:.*]] = arith.index_castui %{{.*}} : i32 to index
// CHECK:           %[[TIMESROWS:.*]] = arith.muli %[[TURN]], %[[M]]
// CHECK:           %[[TURNROW:.*]] = arith.index_castui %{{.*}} : i32 to index
// CHECK:           %[[NEXT:.*]] = arith.addi %[[TURN]], %c1
// CHECK:           %[[NEXTROW:.*]] = arith.index_castui %{{.*}} : i32 to index
// CHECK:           %[[OFTURN:.*]] = arith.subi %[[NEXTROW]], %[[TURNROW]]
// CHECK:           %[[FIRSTROW:.*]] = arith.select %[[TAKES]], %[[TURNROW]], %[[GROUPROW]]
// CHECK:           %[[ROWSHERE:.*]] = arith.select %[[TAKES]], %[[OFTURN]], %[[MEMBERS]]
// CHECK:           %[[BEFORE:.*]] = arith.muli %[[FIRSTROW]], %[[N]]
// CHECK:           %[[INGROUP:.*]] = arith.subi %[[ITEM]], %[[BEFORE]]
// CHECK:           arith.index_castui %[[INGROUP]]
// CHECK:           arith.index_castui %[[ROWSHERE]]
// CHECK:           %[[XID:.*]] = arith.index_castui %{{.*}} : i32 to index
// CHECK:           %[[MEMBER:.*]] = arith.index_castui %{{.*}} : i32 to index
// CHECK:           %[[ODDTURN:.*]] = arith.andi %[[TURN]],
// CHECK:           %[[EVENTURN:.*]] = arith.cmpi eq, %[[ODDTURN]],
// CHECK:           %[[REVERSE:.*]] = arith.andi %[[EVENTURN]], %[[TAKES]]
// CHECK:           %[[END:.*]] = arith.subi %[[N]], %c1
// CHECK:           %[[FROMEND:.*]] = arith.subi %[[END]], %[[XID]]
// CHECK:           %[[X:.*]] = arith.select %[[REVERSE]], %[[FROMEND]], %[[XID]]
// CHECK:           %[[Y:.*]] = arith.addi %[[FIRSTROW]], %[[MEMBER]]
// CHECK:           tile.store %{{.*}}[%[[Y]], %[[X]], %c0{{.*}}]
func.func @snaked(%q: !x, %o: !x, %n: index, %m: index) {
  %c1 = arith.constant 1 : index
  tile.launch grid(%n, %m, %c1) persistent snaked warps 8 ins(%q : !x) outs(%o : !x) {
  ^bb0(%i: index, %j: index, %k: index, %Q: !x, %O: !x):
    %zero = arith.constant 0.0 : bf16
    %f = tile.fill %zero : !tile.fragment<128x64xbf16>
    tile.store %f, %O[%j, %i, %k] dims [1, 2] : !tile.fragment<128x64xbf16>, !x
  }
  return
}

// -----

// What 33 rows of programs read, 208 MB of f32, is more than the cache has: four
// turns of eight rows each, of which the first and the third begin with the last
// programs. Lists of numbers are not counted.
// STATIC-LABEL: func @turns
// STATIC:       scf.for %[[ROUND:.*]] = %c0 to
// STATIC-NEXT:    %[[FIRST:.*]] = arith.muli %[[ROUND]], %c132
// STATIC-NEXT:    %[[ITEM:.*]] = arith.addi %[[FIRST]], %{{.*}}
// STATIC:         %[[AFTER:.*]] = arith.addi %{{.*}}, %c1
// STATIC:         %[[TIMES:.*]] = arith.muli %[[AFTER]], %c4
// STATIC:         %[[LASTOF:.*]] = arith.subi %[[TIMES]], %c1
// STATIC:         arith.index_castui %[[LASTOF]]
// STATIC:         %[[TURN:.*]] = arith.index_castui %{{.*}} : i32 to index
// STATIC:         %[[ODD:.*]] = arith.andi %[[TURN]], %c1
// STATIC:         %[[REVERSE:.*]] = arith.cmpi eq, %[[ODD]], %c0
// STATIC:         %[[FROMEND:.*]] = arith.subi %c31, %[[XID:[^ ]*]] :
// STATIC:         %[[X:.*]] = arith.select %[[REVERSE]], %[[FROMEND]], %[[XID]]
// STATIC:         tile.store %{{.*}}[%{{.*}}, %[[X]], %c0]

// Less is read together, so that blocks go there and back.
// STATIC-LABEL: func @fits
// STATIC:       scf.for %[[ROUND:.*]] = %c0 to
// STATIC:         %[[ODD:.*]] = arith.andi %[[ROUND]], %c1
// STATIC:         %[[EVEN:.*]] = arith.cmpi eq, %[[ODD]], %c0
// STATIC:         arith.select %[[EVEN]], %{{.*}}, %{{.*}} : index
// STATIC-NOT:     arith.select
// STATIC:         tile.store
!in = memref<32x12800x128xf32>
!inside = memref<32x12800x128xf32, strided<[?, ?, 1], offset: ?>>
!list = memref<1048576xindex>
!listed = memref<1048576xindex, strided<[1], offset: ?>>
!out = memref<32x32x64xbf16>
!stored = memref<32x32x64xbf16, strided<[?, ?, 1], offset: ?>>
func.func @turns(%q: !in, %l: !list, %o: !out) {
  %c32 = arith.constant 32 : index
  tile.launch grid(%c32, %c32) persistent snaked warps 8 ins(%q, %l : !in, !list) outs(%o : !out) {
  ^bb0(%i: index, %j: index, %Q: !inside, %L: !listed, %O: !stored):
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : bf16
    %f = tile.fill %zero : !tile.fragment<128x64xbf16>
    tile.store %f, %O[%j, %i, %c0] dims [1, 2] : !tile.fragment<128x64xbf16>, !stored
  }
  return
}

func.func @fits(%l: !list, %o: !out) {
  %c32 = arith.constant 32 : index
  tile.launch grid(%c32, %c32) persistent snaked warps 8 ins(%l : !list) outs(%o : !out) {
  ^bb0(%i: index, %j: index, %L: !listed, %O: !stored):
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : bf16
    %f = tile.fill %zero : !tile.fragment<128x64xbf16>
    tile.store %f, %O[%j, %i, %c0] dims [1, 2] : !tile.fragment<128x64xbf16>, !stored
  }
  return
}

// -----

!x = memref<?x?x64xbf16, strided<[?, ?, 1], offset: ?>>

// CHECK-LABEL: func @others
// CHECK:       tile.launch grid(%{{.*}}, %{{.*}}) warps 8
// CHECK-NOT:   scf.for
func.func @others(%o: !x, %n: index, %m: index) {
  tile.launch grid(%n, %m) warps 8 outs(%o : !x) {
  ^bb0(%i: index, %j: index, %O: !x):
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : bf16
    %f = tile.fill %zero : !tile.fragment<128x64xbf16>
    tile.store %f, %O[%j, %i, %c0] dims [1, 2] : !tile.fragment<128x64xbf16>, !x
  }
  return
}

// -----

!x = memref<?x?x64xbf16, strided<[?, ?, 1], offset: ?>>

// 22 programs of a row: 12 rows make two rounds, and three times as many are
// nearest to 33.
// CHECK-LABEL: func @known
// CHECK:       tile.launch grid(%{{.*}}) warps 8
// CHECK:         %[[OF:.*]] = arith.constant 792 : index
func.func @known(%o: !x, %m: index) {
  %c22 = arith.constant 22 : index
  tile.launch grid(%c22, %m) persistent snaked warps 8 outs(%o : !x) {
  ^bb0(%i: index, %j: index, %O: !x):
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : bf16
    %f = tile.fill %zero : !tile.fragment<128x64xbf16>
    tile.store %f, %O[%j, %i, %c0] dims [1, 2] : !tile.fragment<128x64xbf16>, !x
  }
  return
}

// -----

!x = memref<?x64xbf16, strided<[?, 1], offset: ?>>

// Clusters of two blocks: half as many run at a time.

// CHECK-LABEL: func @cluster
// CHECK:       %[[CORES:.*]] = arith.constant 66 : index
// CHECK:       %[[CLUSTERS:.*]] = arith.minui %{{.*}}, %[[CORES]]
// CHECK:       tile.launch grid(%[[CLUSTERS]]) cluster 2 warps 4 outs(
// CHECK:         scf.for %{{.*}} to %{{.*}} step %[[CLUSTERS]]
// CHECK:           tile.cluster_rank
func.func @cluster(%o: !x, %n: index) {
  tile.launch grid(%n) cluster 2 persistent linear warps 4 outs(%o : !x) {
  ^bb0(%i: index, %O: !x):
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %zero = arith.constant 0.0 : bf16
    %f = tile.fill %zero : !tile.fragment<64x64xbf16>
    %rank = tile.cluster_rank
    %first = arith.muli %i, %c2 : index
    %row = arith.addi %first, %rank : index
    tile.store %f, %O[%row, %c0] dims [0, 1] : !tile.fragment<64x64xbf16>, !x
  }
  return
}

// -----

// Blocks are dealt programs, of groups of rows those that come first in their rows. An
// element of a tensor decides how many programs a row has, which blocks read; the host
// knows a bound. There are as many groups as let half of the L2 cache hold what each
// reads, which is nothing here, but of half of the bound each has five rounds of blocks;
// and the last programs of all rows, three rounds of blocks, but up to a third, come in
// the end.

// CHECK-LABEL: func @dealt
// CHECK-SAME:    tensor<?x?x64xbf16>, %[[COUNT:.*]]: tensor<?xi32>, %[[N:.*]]: index, %[[M:.*]]: index)
// CHECK:       %[[COUNTER:.*]] = linalg.fill ins(%c0_i32{{.*}} : i32) outs(%{{.*}} : tensor<1xi32>)
// CHECK:       %[[ALL:.*]] = arith.muli %[[N]], %[[M]]
// CHECK:       %[[BLOCKS:.*]] = arith.minui %[[ALL]], %c132
// CHECK:       %[[BYTES:.*]] = arith.muli %[[M]], %{{.*}}
// CHECK:       %[[CACHES:.*]] = arith.ceildivui %[[BYTES]], %c26214400
// CHECK:       %[[PROGRAMS:.*]] = arith.muli %[[M]], %[[N]]
// CHECK:       %[[MOST:.*]] = arith.divui %[[PROGRAMS]], %c1320
// CHECK:       %[[LESS:.*]] = arith.minui %[[MOST]], %c1024
// CHECK:       %[[SOME:.*]] = arith.minui %[[CACHES]], %[[LESS]]
// CHECK:       %[[GROUPS:.*]] = arith.maxui %[[SOME]], %c1
// CHECK:       %[[MOSTEND:.*]] = arith.ceildivui %c396{{.*}}, %{{.*}}
// CHECK:       tile.launch grid(%[[BLOCKS]]) warps 8 ins(%[[COUNT]] : tensor<?xi32>) outs(%{{.*}}, %[[COUNTER]] : tensor<?x?x64xbf16>, tensor<1xi32>)
// CHECK:       ^bb0(%{{.*}}: index, %[[C:.*]]: memref<?xi32, {{.*}}>, %{{.*}}: memref<?x?x64xbf16, {{.*}}>, %[[P:.*]]: memref<1xi32, {{.*}}>):
// CHECK:         %[[READ:.*]] = memref.load %[[C]][%c0]
// CHECK:         %[[CAST:.*]] = arith.index_castui %[[READ]]
// CHECK:         %[[LENGTH:.*]] = arith.minsi %[[CAST]], %[[N]]
// CHECK:         %[[ITEMS:.*]] = arith.muli %[[LENGTH]], %[[M]]
// CHECK:         %[[ROUNDS:.*]] = tile.dealt_count %[[P]] of %[[ITEMS]]
// CHECK:         scf.for %[[R:.*]] = %{{.*}} to %[[ROUNDS]] step
// CHECK:           %[[ITEM:.*]] = tile.dealt %[[P]][%[[R]]] of %[[ITEMS]]
// CHECK:           %[[LENGTH32:.*]] = arith.index_castui %[[LENGTH]] : index to i32
// CHECK:           %[[THIRD32:.*]] = arith.divui %[[LENGTH32]], %c3_i32 : i32
// CHECK:           %[[THIRD:.*]] = arith.index_castui %[[THIRD32]] : i32 to index
// CHECK:           %[[END:.*]] = arith.minui %[[MOSTEND]], %[[THIRD]]
// CHECK:           %[[LATER:.*]] = arith.subi %[[LENGTH]], %[[END]]
// CHECK:           %[[BEFOREEND:.*]] = arith.muli %[[LATER]], %[[M]]
// CHECK:           %[[ISEND:.*]] = arith.cmpi uge, %[[ITEM]], %[[BEFOREEND]]
// CHECK:           %[[BEFORE:.*]] = arith.select %[[ISEND]], %[[BEFOREEND]], %c0
// CHECK:           %[[NUMBER:.*]] = arith.subi %[[ITEM]], %[[BEFORE]]
// CHECK:           %[[OFROW:.*]] = arith.select %[[ISEND]], %[[END]], %[[LATER]]
// CHECK:           %[[HERE:.*]] = arith.select %[[ISEND]], %c1{{[_0-9]*}}, %[[GROUPS]]
// CHECK:           arith.index_castui %[[NUMBER]]
// CHECK:           arith.index_castui %[[OFROW]]
// CHECK:           %[[BEHIND:.*]] = arith.muli %{{.*}}, %[[HERE]]
// CHECK:           arith.subi %[[BEHIND]], %c1
// CHECK:           arith.divui
// CHECK:           arith.muli %{{.*}}, %[[M]]
// CHECK:           arith.divui
// CHECK:           %[[FIRST:.*]] = arith.index_castui
// CHECK:           arith.muli %{{.*}}, %[[M]]
// CHECK:           arith.divui
// CHECK:           %[[NEXT:.*]] = arith.index_castui
// CHECK:           arith.subi %[[NEXT]], %[[FIRST]]
// CHECK:           %[[FRONT:.*]] = arith.muli %[[FIRST]], %[[OFROW]]
// CHECK:           %[[PLACE:.*]] = arith.subi %[[NUMBER]], %[[FRONT]]
// CHECK:           arith.index_castui %[[PLACE]]
// CHECK:           %[[OWN32:.*]] = arith.divui
// CHECK:           %[[OWN:.*]] = arith.index_castui %[[OWN32]]
// CHECK:           %[[FIRSTX:.*]] = arith.select %[[ISEND]], %[[LATER]], %c0
// CHECK:           %[[X:.*]] = arith.addi %[[FIRSTX]], %[[OWN]]
// CHECK:           %[[ROW:.*]] = arith.addi %[[FIRST]]
// CHECK:           tile.store %{{.*}}, %{{.*}}[%[[ROW]], %[[X]],
func.func @dealt(%o: tensor<?x?x64xbf16>, %count: tensor<?xi32>, %n: index, %m: index) -> tensor<?x?x64xbf16> {
  %c0 = arith.constant 0 : index
  %read = tensor.extract %count[%c0] : tensor<?xi32>
  %cast = arith.index_castui %read : i32 to index
  %length = arith.minsi %cast, %n : index
  %r = tile.launch grid(%length, %m) persistent dealt warps 8 outs(%o : tensor<?x?x64xbf16>) {
  ^bb0(%i: index, %j: index, %O: memref<?x?x64xbf16, strided<[?, ?, 1], offset: ?>>):
    %z = arith.constant 0 : index
    %zero = arith.constant 0.0 : bf16
    %f = tile.fill %zero : !tile.fragment<128x64xbf16>
    tile.store %f, %O[%j, %i, %z] dims [1, 2] : !tile.fragment<128x64xbf16>, memref<?x?x64xbf16, strided<[?, ?, 1], offset: ?>>
  } -> tensor<?x?x64xbf16>
  return %r : tensor<?x?x64xbf16>
}

// -----

// Where sizes decide how many programs a row has, there are as many groups as let half of
// the L2 cache hold what each reads, of rows that a sixth of the blocks may share; and the
// last programs of all rows, three rounds of blocks, but up to a third, come in the end.
// Blocks with two programs at most take no numbers: then there is no counter.

// CHECK-LABEL: func @groups
// CHECK-SAME:    %[[N:[^ ]*]]: index, %[[M:[^ ]*]]: index)
// CHECK:       %[[ALL:.*]] = arith.muli %[[N]], %[[M]]
// CHECK:       %[[BLOCKS:.*]] = arith.minui %[[ALL]], %c132
// CHECK:       %[[TWO:.*]] = arith.muli %[[BLOCKS]], %c2
// CHECK:       %[[MORE:.*]] = arith.cmpi ugt, %[[ALL]], %[[TWO]]
// CHECK:       %[[ONE:.*]] = arith.select %[[MORE]], %c1{{[_0-9]*}}, %c0{{[_0-9]*}}
// CHECK:       %[[MEMORY:.*]] = bufferization.alloc_tensor(%[[ONE]]) : tensor<?xi32>
// CHECK:       %[[COUNTER:.*]] = linalg.fill ins(%c0_i32 : i32) outs(%[[MEMORY]] : tensor<?xi32>)
// CHECK:       %[[ROW:.*]] = arith.divui
// CHECK:       %[[BYTES:.*]] = arith.muli %[[M]], %[[ROW]]
// CHECK:       %[[CACHES:.*]] = arith.ceildivui %[[BYTES]], %c26214400
// CHECK:       %[[SHARING:.*]] = arith.muli %[[M]], %c24
// CHECK:       %[[MOST:.*]] = arith.divui %[[SHARING]], %c132
// CHECK:       %[[LESS:.*]] = arith.minui %[[MOST]], %c1024
// CHECK:       %[[SOME:.*]] = arith.minui %[[CACHES]], %[[LESS]]
// CHECK:       %[[GROUPS:.*]] = arith.maxui %[[SOME]], %c1
// CHECK:       %[[ROUNDS:.*]] = arith.ceildivui %c396{{.*}}, %{{.*}}
// CHECK:       tile.launch grid(%[[BLOCKS]]) {{.*}} outs(%{{.*}}, %[[COUNTER]]
// CHECK:         tile.dealt_count
// CHECK:           %[[ITEM:.*]] = tile.dealt
// CHECK:           %[[N32:.*]] = arith.index_castui %[[N]] : index to i32
// CHECK:           %[[THIRD32:.*]] = arith.divui %[[N32]], %c3_i32 : i32
// CHECK:           %[[THIRD:.*]] = arith.index_castui %[[THIRD32]] : i32 to index
// CHECK:           %[[END:.*]] = arith.minui %[[ROUNDS]], %[[THIRD]]
// CHECK:           %[[FRONT:.*]] = arith.subi %[[N]], %[[END]]
// CHECK:           %[[PROGRAMS:.*]] = arith.muli %[[FRONT]], %[[M]]
// CHECK:           %[[ISEND:.*]] = arith.cmpi uge, %[[ITEM]], %[[PROGRAMS]]
// CHECK:           %[[BEFORE:.*]] = arith.select %[[ISEND]], %[[PROGRAMS]], %c0
// CHECK:           arith.subi %[[ITEM]], %[[BEFORE]]
// CHECK:           arith.select %[[ISEND]], %[[END]], %[[FRONT]]
// CHECK:           %[[HERE:.*]] = arith.select %[[ISEND]], %c1{{.*}}, %[[GROUPS]]
// CHECK:           arith.muli %{{.*}}, %[[HERE]]
// CHECK:           %[[FIRSTX:.*]] = arith.select %[[ISEND]], %[[FRONT]], %c0
// CHECK:           %[[X:.*]] = arith.addi %[[FIRSTX]], %{{.*}}
// CHECK:           %[[MEMBER:.*]] = arith.addi
// CHECK:           tile.store %{{.*}}, %{{.*}}[%[[MEMBER]], %[[X]],
func.func @groups(%q: tensor<?x8192x64xbf16>, %o: tensor<?x?x64xbf16>, %n: index, %m: index) -> tensor<?x?x64xbf16> {
  %r = tile.launch grid(%n, %m) persistent dealt warps 8 ins(%q : tensor<?x8192x64xbf16>) outs(%o : tensor<?x?x64xbf16>) {
  ^bb0(%i: index, %j: index, %Q: memref<?x8192x64xbf16, strided<[?, ?, 1], offset: ?>>, %O: memref<?x?x64xbf16, strided<[?, ?, 1], offset: ?>>):
    %z = arith.constant 0 : index
    %zero = arith.constant 0.0 : bf16
    %f = tile.fill %zero : !tile.fragment<128x64xbf16>
    tile.store %f, %O[%j, %i, %z] dims [1, 2] : !tile.fragment<128x64xbf16>, memref<?x?x64xbf16, strided<[?, ?, 1], offset: ?>>
  } -> tensor<?x?x64xbf16>
  return %r : tensor<?x?x64xbf16>
}

// -----

// A launch of one dimension is one row.

// CHECK-LABEL: func @row
// CHECK-SAME:    %[[N:[^ ]*]]: index)
// CHECK:       %[[BLOCKS:.*]] = arith.minui %[[N]], %c132
// CHECK:       tile.launch grid(%[[BLOCKS]])
// CHECK:         %[[COUNT:.*]] = tile.dealt_count %{{.*}} of %[[N]]
// CHECK:         scf.for %[[R:.*]] = %{{.*}} to %[[COUNT]]
// CHECK:           tile.dealt %{{.*}}[%[[R]]] of %[[N]]
func.func @row(%o: tensor<?x64xbf16>, %n: index) -> tensor<?x64xbf16> {
  %r = tile.launch grid(%n) persistent dealt warps 8 outs(%o : tensor<?x64xbf16>) {
  ^bb0(%i: index, %O: memref<?x64xbf16, strided<[?, 1], offset: ?>>):
    %z = arith.constant 0 : index
    %zero = arith.constant 0.0 : bf16
    %f = tile.fill %zero : !tile.fragment<128x64xbf16>
    tile.store %f, %O[%i, %z] dims [0, 1] : !tile.fragment<128x64xbf16>, memref<?x64xbf16, strided<[?, 1], offset: ?>>
  } -> tensor<?x64xbf16>
  return %r : tensor<?x64xbf16>
}
