// Blocks that add to the same memory in turn, by a role that stores: the same
// bits in any order of what happens. Each fault that is planted is found.
//
// RUN: split-file %s %t
// RUN: fovea-run %t/adds.mlir --target=sm_90a --deterministic --simulate --seeds=30 --random=1 | FileCheck %s
// RUN: fovea-run %t/adds.mlir --target=sm_80 --deterministic --simulate --seeds=5 --random=1 | FileCheck %s
// RUN: fovea-opt %t/adds.mlir --tile-order-adds --tile-assign-layouts --tile-stage-stores \
// RUN:   --tile-specialize-warps --canonicalize -o %t/roles.mlir
// RUN: FileCheck %s --check-prefix=ROLES --input-file=%t/roles.mlir
// RUN: fovea-run %t/roles.mlir --target=sm_90a --simulate --seeds=30 --random=1 | FileCheck %s
//
// Blocks that skip places, each others, keep the order of those around them.
// RUN: fovea-run %t/skips.mlir --target=sm_90a --deterministic --simulate --seeds=30 --random=1 | FileCheck %s
// RUN: fovea-opt %t/skips.mlir --tile-order-adds -o %t/skips-in-turn.mlir
// RUN: fovea-run %t/skips-in-turn.mlir --target=sm_90a --simulate --seeds=60 --random=1 | FileCheck %s
// RUN: fovea-run %t/skips.mlir --target=sm_80 --deterministic --simulate --seeds=10 --random=1 | FileCheck %s
//
// RUN: sed '/tile.take_turn/d' %t/roles.mlir > %t/untaken.mlir
// RUN: not fovea-run %t/untaken.mlir --target=sm_90a --simulate --seeds=30 --random=1 2>&1 | FileCheck %s --check-prefix=UNTAKEN
// RUN: sed '/tile.pass_turn/d' %t/roles.mlir > %t/never.mlir
// RUN: not fovea-run %t/never.mlir --target=sm_90a --simulate --random=1 2>&1 | FileCheck %s --check-prefix=NEVER
// RUN: sed 's/\(tile.take_turn.*\) at %[^ ]* /\1 at %c0 /' %t/roles.mlir > %t/late.mlir
// RUN: not fovea-run %t/late.mlir --target=sm_90a --simulate --random=1 2>&1 | FileCheck %s --check-prefix=LATE
// RUN: sed '/tile.write/d' %t/roles.mlir > %t/no-write.mlir
// RUN: not fovea-run %t/no-write.mlir --target=sm_90a --simulate --random=1 2>&1 | FileCheck %s --check-prefix=NO-WRITE
// RUN: sed 's/\(tile.write .*\)/\1\n\1/' %t/roles.mlir > %t/twice.mlir
// RUN: not fovea-run %t/twice.mlir --target=sm_90a --simulate --random=1 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: sed '/tile.wait_stores/d' %t/roles.mlir > %t/no-wait.mlir
// RUN: not fovea-run %t/no-wait.mlir --target=sm_90a --simulate --random=1 2>&1 | FileCheck %s --check-prefix=NO-WAIT
//
// CHECK: result 0: f32 150x32,
//
// ROLES: tile.role "store0"
// ROLES: tile.take_turn
// ROLES: tile.role "store1"
// ROLES: tile.take_turn
// ROLES: tile.role "compute"
// ROLES: tile.write
//
// UNTAKEN: error: 'tile.pass_turn' op comes to position {{[0-9]+}}, but the block before only to {{[0-9]+}}
// NEVER: error: 'tile.take_turn' op waits for ever: for the block of the index before to be past its position
// LATE: error: 'tile.take_turn' op is at position 0, but its block has come to 1
// NO-WRITE: error: 'tile.wait' op waits for ever: for use 0 of its ring to be full
// TWICE: error: 'tile.write' op fills use 0 of the ring, which is filled already
// NO-WAIT: error: 'tile.release' op releases use 0 of the ring while it is read

//--- adds.mlir
!x = memref<6x150x32xf32, strided<[?, ?, 1], offset: ?>>
!o = memref<150x32xf32, strided<[?, 1], offset: ?>>
func.func @sum(%x: tensor<6x150x32xf32>, %o: tensor<150x32xf32>) -> tensor<150x32xf32> {
  %c0 = arith.constant 0 : index
  %c6 = arith.constant 6 : index
  %c64 = arith.constant 64 : index
  %c150 = arith.constant 150 : index
  %r = tile.launch grid(%c6) warps 8 ins(%x : tensor<6x150x32xf32>) outs(%o : tensor<150x32xf32>) {
  ^bb0(%n: index, %X: !x, %O: !o):
    scf.for %i = %c0 to %c150 step %c64 {
      %f = tile.load %X[%n, %i, %c0] dims [1, 2] : !x -> !tile.fragment<64x32xf32>
      tile.store add %f, %O[%i, %c0] dims [0, 1] : !tile.fragment<64x32xf32>, !o
    }
  } -> tensor<150x32xf32>
  return %r : tensor<150x32xf32>
}

//--- skips.mlir
!x = memref<6x150x32xf32, strided<[?, ?, 1], offset: ?>>
!o = memref<150x32xf32, strided<[?, 1], offset: ?>>
func.func @sum(%x: tensor<6x150x32xf32>, %o: tensor<150x32xf32>) -> tensor<150x32xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c6 = arith.constant 6 : index
  %c64 = arith.constant 64 : index
  %c150 = arith.constant 150 : index
  %r = tile.launch grid(%c6) warps 8 ins(%x : tensor<6x150x32xf32>) outs(%o : tensor<150x32xf32>) {
  ^bb0(%n: index, %X: !x, %O: !o):
    %late = arith.remui %n, %c2 : index
    %low = arith.muli %late, %c64 : index
    scf.for %i = %low to %c150 step %c64 {
      %tile = arith.divui %i, %c64 : index
      %sum = arith.addi %tile, %n : index
      %rest = arith.remui %sum, %c3 : index
      %adds = arith.cmpi ne, %rest, %c1 : index
      scf.if %adds {
        %f = tile.load %X[%n, %i, %c0] dims [1, 2] : !x -> !tile.fragment<64x32xf32>
        tile.store add %f, %O[%i, %c0] dims [0, 1] : !tile.fragment<64x32xf32>, !o
      }
    }
  } -> tensor<150x32xf32>
  return %r : tensor<150x32xf32>
}
