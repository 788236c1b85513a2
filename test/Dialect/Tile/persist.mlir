// RUN: fovea-opt %s --tile-persist --split-input-file | FileCheck %s

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

// Pairs: the first with the last. The one in the middle is alone. A dimension of
// size one has no number.

// CHECK-LABEL: func @paired
// CHECK-SAME:    memref<{{[^)]*}}>>, %[[N:[^ ]*]]: index, %[[M:[^ ]*]]: index)
// CHECK:       %[[LAST:.*]] = arith.subi %[[N]], %{{.*}}
// CHECK:       %[[HALF:.*]] = arith.ceildivui %[[N]], %{{.*}}
// CHECK:       %[[ITEMS:.*]] = arith.muli %[[HALF]], %[[M]]
// CHECK:       %[[BLOCKS:.*]] = arith.minui %[[ITEMS]], %{{.*}}
// CHECK:       tile.launch grid(%[[BLOCKS]]) warps 8 outs(
// CHECK:         scf.for %[[I:.*]] = %{{.*}} to %[[ITEMS]] step %[[BLOCKS]] {
// CHECK:           arith.index_castui %[[HALF]]
// CHECK:           arith.divui
// CHECK:           %[[Y:.*]] = arith.index_castui %{{.*}} : i32 to index
// CHECK:           %[[FIRST:.*]] = arith.index_castui %{{.*}} : i32 to index
// CHECK:           %[[SECOND:.*]] = arith.subi %[[LAST]], %[[FIRST]]
// CHECK:           %[[MIDDLE:.*]] = arith.cmpi eq, %[[FIRST]], %[[SECOND]]
// CHECK:           %[[COUNT:.*]] = arith.select %[[MIDDLE]], %c1{{.*}}, %c2
// CHECK:           scf.for %[[K:.*]] = %[[ZERO:.*]] to %[[COUNT]] step %
// CHECK:             %[[IS:.*]] = arith.cmpi eq, %[[K]], %[[ZERO]]
// CHECK:             %[[XID:.*]] = arith.select %[[IS]], %[[FIRST]], %[[SECOND]]
// CHECK:             tile.store %{{.*}}[%[[Y]], %[[XID]], %c0{{.*}}]
func.func @paired(%o: !x, %n: index, %m: index) {
  %c1 = arith.constant 1 : index
  tile.launch grid(%n, %m, %c1) persistent paired warps 8 outs(%o : !x) {
  ^bb0(%i: index, %j: index, %k: index, %O: !x):
    %zero = arith.constant 0.0 : bf16
    %f = tile.fill %zero : !tile.fragment<128x64xbf16>
    tile.store %f, %O[%j, %i, %k] dims [1, 2] : !tile.fragment<128x64xbf16>, !x
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
