// RUN: fovea-opt %s --tile-share-items --canonicalize --split-input-file | FileCheck %s
// RUN: fovea-opt %s --tile-share-items --tile-persist --canonicalize --split-input-file | FileCheck %s --check-prefix=PERSIST
// RUN: fovea-opt %s --tile-share-items --split-input-file --debug-only=tile-share-items -o /dev/null 2>&1 | FileCheck %s --check-prefix=LOG

!f = !tile.fragment<64x64xf32>
!x = memref<1024x64xf32, strided<[?, 1], offset: ?>>
!o = memref<320x64xf32, strided<[?, 1], offset: ?>>

// 5 programs of 64 steps by 3 blocks: no whole round, and shares of 106 or 107
// steps. The first block has the last share, for it gives to the one behind it.

// LOG: blocks share its last programs

// CHECK-LABEL: func @shared
// Memory for the parts, of which two have the same type, and flags.
// CHECK-DAG:   %[[PARTS:.*]] = bufferization.alloc_tensor() : tensor<3x64x64xf32>
// CHECK-DAG:   %[[SUMS:.*]] = bufferization.alloc_tensor() : tensor<3x64x64xf32>
// CHECK-DAG:   %[[FLAGS:.*]] = bufferization.alloc_tensor() : tensor<3x4xi32>
// CHECK:       %[[UNSET:.*]] = linalg.fill ins(%{{.*}} : i32) outs(%[[FLAGS]]
// CHECK:       tile.launch kernel "k" grid(%c3) warps 4 stages 2 ins(%{{[^)]*}}) outs(%{{.*}}, %{{.*}}, %{{.*}}, %[[UNSET]] :
// CHECK:       ^bb0(%[[BLOCK:.*]]: index, %[[X:.*]]: memref<1024x64xf32, {{.*}}>, %[[O:.*]]: memref<320x64xf32, {{.*}}>, %[[P:.*]]: memref<3x64x64xf32, {{.*}}>, %[[S:.*]]: memref<3x64x64xf32, {{.*}}>, %[[F:.*]]: memref<3x4xi32, {{.*}}>):
// CHECK:         %[[B:.*]] = arith.index_castui %[[BLOCK]] : index to i32
// CHECK:         %[[PLACE:.*]] = arith.subi %c2_i32, %[[B]] : i32
// CHECK:         %[[ALL:.*]] = arith.muli %[[PLACE]], %c320_i32 : i32
// CHECK:         %[[CUT:.*]] = arith.divui %[[ALL]], %c3_i32 : i32
// CHECK:         arith.divui %[[CUT]], %c64_i32 : i32
// Cuts near the end of a program are there.
// CHECK:         arith.cmpi ult, %{{.*}}, %c4_i32 : i32
// CHECK:         scf.for %[[TURN:.*]] = %c0_i32 to %[[COUNT:.*]] step %c1_i32
// CHECK:           %[[IS_FIRST:.*]] = arith.cmpi eq, %[[TURN]], %c0_i32 : i32
// CHECK:           %[[NEXT:.*]] = arith.addi %[[TURN]], %c1_i32 : i32
// CHECK:           %[[IS_LAST:.*]] = arith.cmpi eq, %[[NEXT]], %[[COUNT]] : i32
// CHECK:           %[[FIRST:.*]] = arith.select %[[IS_FIRST]], %{{.*}}, %c0_i32 : i32
// CHECK:           %[[OF_LAST:.*]] = arith.select %[[IS_LAST]], %{{.*}}, %c64_i32 : i32
// CHECK:           %[[STEPS:.*]] = arith.select %[[IS_FIRST]], %{{.*}}, %[[OF_LAST]] : i32
// CHECK:           %[[IS_PART:.*]] = arith.cmpi ne, %[[STEPS]], %c64_i32 : i32
// CHECK:           %[[IS_LATE:.*]] = arith.andi %[[IS_PART]], %[[IS_FIRST]] : i1
// CHECK:           %[[LOOP:.*]]:2 = scf.for %[[STEP:.*]] = %c0_i32 to %[[STEPS]] step %c1_i32
// CHECK:             %[[OWN:.*]] = arith.addi %[[FIRST]], %[[STEP]] : i32
// CHECK:             %[[AT:.*]] = arith.index_castui %[[OWN]] : i32 to index
// CHECK:             arith.muli %[[AT]], %c16 : index
// CHECK:           %[[BEFORE:.*]] = arith.subi %[[BLOCK]], %c1 : index
// CHECK:           %[[WHOLE:.*]] = scf.if %[[IS_PART]]
// CHECK:             scf.if %[[IS_LATE]]
// CHECK:               tile.store %[[LOOP]]#0, %[[P]][%[[BLOCK]], %c0, %c0] dims [1, 2] aligned
// CHECK:               tile.store %[[LOOP]]#1, %[[S]][%[[BLOCK]], %c0, %c0] dims [1, 2] aligned
// CHECK:               tile.signal %[[F]][%[[BLOCK]]]
// CHECK:             } else {
// CHECK:               tile.await %[[F]][%[[BEFORE]]]
// CHECK:               %[[OTHER:.*]] = tile.load %[[P]][%[[BEFORE]], %c0, %c0] dims [1, 2] aligned
// The earlier steps are the block's own.
// CHECK:               tile.map ins(%[[LOOP]]#0, %[[OTHER]] :
// CHECK-NOT:       tile.combine_parts
// A part that is given away is not stored.
// CHECK:           %[[ROW:.*]] = arith.select %[[IS_LATE]], %c320, %{{.*}} : index
// CHECK:           tile.store %[[WHOLE]], %[[O]][%[[ROW]], %c0] dims [0, 1]
// PERSIST-LABEL: func @shared
// PERSIST:       scf.if
module attributes {machine.target = #machine.target<"sm_90a", arch = "hopper", cores = 3, vector_bytes = 128, vector_registers = 2048, fast_memory = 232448, near_memory = 52428800, bandwidth = 4290000, peak = 66900, shared_memory = 233472, matrix_peak = 989000>} {
  func.func @shared(%x: tensor<1024x64xf32>, %o: tensor<320x64xf32>) -> tensor<320x64xf32> {
    %c5 = arith.constant 5 : index
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c1024 = arith.constant 1024 : index
    %r = tile.launch kernel "k" grid(%c5) persistent shared warps 4 stages 2 ins(%x : tensor<1024x64xf32>) outs(%o : tensor<320x64xf32>) {
    ^bb0(%i: index, %X: !x, %O: !o):
      %c64 = arith.constant 64 : index
      %zero = arith.constant 0.0 : f32
      %row = arith.muli %i, %c64 : index
      %none = tile.fill %zero : !f
      %sums:2 = scf.for %j = %c0 to %c1024 step %c16 iter_args(%a = %none, %b = %none) -> (!f, !f) {
        %t = tile.load %X[%j, %c0] dims [0, 1] : !x -> !f
        %s = tile.map ins(%a, %t : !f, !f) {
        ^bb0(%u: f32, %v: f32, %p: index, %q: index):
          %w = arith.addf %u, %v : f32
          tile.yield %w : f32
        } -> !f
        scf.yield %s, %t : !f, !f
      }
      %all, %last = tile.combine_parts %sums#0, %sums#1 : !f, !f {
      ^bb0(%a: !f, %b: !f, %c: !f, %d: !f):
        %s = tile.map ins(%a, %c : !f, !f) {
        ^bb0(%u: f32, %v: f32, %p: index, %q: index):
          %w = arith.addf %u, %v : f32
          tile.yield %w : f32
        } -> !f
        tile.yield %s, %d : !f, !f
      }
      tile.store %all, %O[%row, %c0] dims [0, 1] : !f, !o
    } -> tensor<320x64xf32>
    return %r : tensor<320x64xf32>
  }
}

// -----

!f = !tile.fragment<64x64xf32>
!x = memref<?x64xf32, strided<[?, 1], offset: ?>>

// Whether anything is shared is known when the launch runs: without, there is no
// memory, and the rest of the programs are dealt whole.

// LOG: blocks share its last programs

// CHECK-LABEL: func @dynamic
// CHECK-SAME:    %[[X:[^ ]*]]: tensor<?x64xf32>, %[[N:[^ ]*]]: index)
// CHECK-DAG:   %[[ITEMS:.*]] = arith.index_castui %[[N]] : index to i32
// CHECK-DAG:   %[[FULL:.*]] = arith.divui %[[ITEMS]], %{{.*}} : i32
// CHECK:       %[[LONG:.*]] = arith.cmpi uge, %{{.*}}, %c32_i32 : i32
// CHECK:       %[[SHORT:.*]] = arith.cmpi ule, %{{.*}}, %c32768_i32 : i32
// CHECK:       %[[STEPS:.*]] = arith.andi %[[LONG]], %[[SHORT]] : i1
// CHECK:       %[[SHARED:.*]] = arith.andi %{{.*}}, %[[STEPS]] : i1
// CHECK:       %[[FEWER:.*]] = arith.subi %[[FULL]], %c1_i32 : i32
// CHECK:       arith.select %[[SHARED]], %[[FEWER]], %[[FULL]] : i32
// CHECK:       %[[BLOCKS:.*]] = arith.select %[[SHARED]], %c132, %c0 : index
// CHECK:       bufferization.alloc_tensor(%[[BLOCKS]]) : tensor<?x64x64xf32>
// CHECK:       bufferization.alloc_tensor(%[[BLOCKS]]) : tensor<?x4xi32>
// CHECK:       tile.launch
// CHECK:         arith.minui
// CHECK:         arith.select %[[SHARED]]
func.func @dynamic(%x: tensor<?x64xf32>, %n: index) -> tensor<?x64xf32> {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %keys = tensor.dim %x, %c0 : tensor<?x64xf32>
  %r = tile.launch kernel "k" grid(%n) persistent shared warps 4 stages 2 outs(%x : tensor<?x64xf32>) {
  ^bb0(%i: index, %O: !x):
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %row = arith.muli %i, %c64 : index
    %none = tile.fill %zero : !f
    %sum = scf.for %j = %c0 to %keys step %c16 iter_args(%a = %none) -> (!f) {
      scf.yield %a : !f
    }
    %all = tile.combine_parts %sum : !f {
    ^bb0(%a: !f, %b: !f):
      tile.yield %b : !f
    }
    tile.store %all, %O[%row, %c0] dims [0, 1] : !f, !x
  } -> tensor<?x64xf32>
  return %r : tensor<?x64xf32>
}

// -----

!f = !tile.fragment<64x64xf32>
!o = memref<640x64xf32, strided<[?, 1], offset: ?>>

// Clusters of two blocks, of which 3 run at a time, share 5 programs; a block
// combines its part with that of the block of its number in the cluster before.

// LOG: blocks share its last programs

// CHECK-LABEL: func @cluster
// CHECK:       bufferization.alloc_tensor() : tensor<6x64x64xf32>
// CHECK:       bufferization.alloc_tensor() : tensor<6x4xi32>
// CHECK:       tile.launch kernel "k" grid(%c3) cluster 2 warps 4
// CHECK:       ^bb0(%[[CLUSTER:.*]]: index, %{{.*}}: memref<640x64xf32, {{.*}}>, %[[P:.*]]: memref<6x64x64xf32, {{.*}}>, %[[F:.*]]: memref<6x4xi32,
// CHECK:         %[[FIRST:.*]] = arith.muli %[[CLUSTER]], %c2 : index
// CHECK:         %[[PLACE:.*]] = arith.addi %[[FIRST]], %{{.*}} : index
// CHECK:         %[[BEFORE:.*]] = arith.subi %[[PLACE]], %c2 : index
// CHECK:           tile.store %{{.*}}, %[[P]][%[[PLACE]], %c0, %c0]
// CHECK:           tile.signal %[[F]][%[[PLACE]]]
// CHECK:           tile.await %[[F]][%[[BEFORE]]]
// CHECK:           tile.load %[[P]][%[[BEFORE]], %c0, %c0]
module attributes {machine.target = #machine.target<"sm_90a", arch = "hopper", cores = 6, vector_bytes = 128, vector_registers = 2048, fast_memory = 232448, near_memory = 52428800, bandwidth = 4290000, peak = 66900, shared_memory = 233472, matrix_peak = 989000>} {
  func.func @cluster(%o: tensor<640x64xf32>) -> tensor<640x64xf32> {
    %c5 = arith.constant 5 : index
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c1024 = arith.constant 1024 : index
    %r = tile.launch kernel "k" grid(%c5) cluster 2 persistent shared warps 4 stages 2 outs(%o : tensor<640x64xf32>) {
    ^bb0(%i: index, %O: !o):
      %c2 = arith.constant 2 : index
      %c64 = arith.constant 64 : index
      %zero = arith.constant 0.0 : f32
      %rank = tile.cluster_rank
      %pair = arith.muli %i, %c2 : index
      %number = arith.addi %pair, %rank : index
      %row = arith.muli %number, %c64 : index
      %none = tile.fill %zero : !f
      %sum = scf.for %j = %c0 to %c1024 step %c16 iter_args(%a = %none) -> (!f) {
        scf.yield %a : !f
      }
      %all = tile.combine_parts %sum : !f {
      ^bb0(%a: !f, %b: !f):
        tile.yield %b : !f
      }
      tile.store %all, %O[%row, %c0] dims [0, 1] : !f, !o
    } -> tensor<640x64xf32>
    return %r : tensor<640x64xf32>
  }
}
