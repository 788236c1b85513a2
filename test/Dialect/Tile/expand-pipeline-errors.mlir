// RUN: fovea-opt %s --tile-expand-pipeline --split-input-file --verify-diagnostics

func.func @missing(%o: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  tile.launch grid(%n) warps 4 outs(%o : memref<?xf32>) {
  ^bb0(%b: index, %O: memref<?xf32, strided<[1], offset: ?>>):
    scf.for %j = %c0 to %n step %c1 {
      %x = arith.addi %j, %c1 {tile.stage = 0, tile.order = 0} : index
      // expected-error @below {{in a scheduled loop must have a tile.stage and a tile.order}}
      %y = arith.addi %x, %c1 : index
    }
  }
  return
}

// -----

func.func @backwards(%o: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  tile.launch grid(%n) warps 4 outs(%o : memref<?xf32>) {
  ^bb0(%b: index, %O: memref<?xf32, strided<[1], offset: ?>>):
    scf.for %j = %c0 to %n step %c1 {
      %x = arith.addi %j, %c1 {tile.stage = 1, tile.order = 0} : index
      // expected-error @below {{of stage 0 must not depend on stage 1 of the same iteration}}
      %y = arith.addi %x, %c1 {tile.stage = 0, tile.order = 1} : index
    }
  }
  return
}

// -----

func.func @order(%o: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  tile.launch grid(%n) warps 4 outs(%o : memref<?xf32>) {
  ^bb0(%b: index, %O: memref<?xf32, strided<[1], offset: ?>>):
    scf.for %j = %c0 to %n step %c1 {
      // expected-note @below {{this one}}
      %x = arith.addi %j, %c1 {tile.stage = 0, tile.order = 1} : index
      // expected-error @below {{is ordered before an op that it depends on}}
      %y = arith.addi %x, %c1 {tile.stage = 0, tile.order = 0} : index
    }
  }
  return
}

// -----

func.func @same(%o: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  tile.launch grid(%n) warps 4 outs(%o : memref<?xf32>) {
  ^bb0(%b: index, %O: memref<?xf32, strided<[1], offset: ?>>):
    scf.for %j = %c0 to %n step %c1 {
      %x = arith.addi %j, %c1 {tile.stage = 0, tile.order = 0} : index
      // expected-error @below {{has the tile.order 0 of another op}}
      %y = arith.addi %j, %c1 {tile.stage = 0, tile.order = 0} : index
    }
  }
  return
}

// -----

// The next iteration loads into the memory that stage 1 still reads.
!m = memref<?x8xf32, strided<[?, 1], offset: ?>>
func.func @tile_crosses(%k: memref<?x8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  tile.launch grid(%n) warps 4 outs(%k : memref<?x8xf32>) {
  ^bb0(%b: index, %K: !m):
    scf.for %j = %c0 to %n step %c1 {
      // expected-note @below {{has memory for one iteration's tile}}
      %t = tile.load %K[%j, %c0] dims [0, 1] {tile.stage = 0, tile.order = 0} : !m -> !tile.shared<8x8xf32>
      // expected-error @below {{of stage 1 needs a tile of stage 0 that the next iteration overwrites}}
      %x = tile.from_shared %t {tile.stage = 1, tile.order = 1} : !tile.shared<8x8xf32> -> !tile.fragment<8x8xf32>
    }
  }
  return
}

// -----

// So it is where the loop carries the tile.
!m = memref<?x8xf32, strided<[?, 1], offset: ?>>
!t = !tile.shared<8x8xf32>
func.func @carried_tile_crosses(%k: memref<?x8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  tile.launch grid(%n) warps 4 outs(%k : memref<?x8xf32>) {
  ^bb0(%b: index, %K: !m):
    %first = tile.load %K[%c0, %c0] dims [0, 1] : !m -> !t
    scf.for %j = %c0 to %n step %c1 iter_args(%before = %first) -> !t {
      // expected-error @below {{of stage 1 needs a tile of stage 0 that the next iteration overwrites}}
      %x = tile.from_shared %before {tile.stage = 1, tile.order = 1} : !t -> !tile.fragment<8x8xf32>
      // expected-note @below {{has memory for one iteration's tile}}
      %t = tile.load %K[%j, %c0] dims [0, 1] {tile.stage = 0, tile.order = 0} : !m -> !t
      scf.yield %t : !t
    }
  }
  return
}

// -----

// A product in flight still reads the tile.
!s = !tile.fragment<64x64xf32>
!half = !tile.shared<64x64xbf16>
func.func @product_crosses(%o: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  tile.launch grid(%n) warps 4 outs(%o : memref<?xf32>) {
  ^bb0(%b: index, %O: memref<?xf32, strided<[1], offset: ?>>):
    %zero = arith.constant 0.0 : bf16
    %p = tile.fill %zero : !tile.fragment<64x64xbf16>
    scf.for %j = %c0 to %n step %c1 {
      // expected-note @below {{has memory for one iteration's tile}}
      %t = tile.to_shared %p {tile.stage = 0, tile.order = 0} : !tile.fragment<64x64xbf16> -> !half
      %x = tile.mma_async wgmma %p, %t {tile.stage = 0, tile.order = 1} : !tile.fragment<64x64xbf16>, !half -> !tile.token<!s>
      %y = tile.mma_async wgmma %p, %t into %x {tile.stage = 0, tile.order = 2} : !tile.fragment<64x64xbf16>, !half, !tile.token<!s> -> !tile.token<!s>
      // expected-error @below {{of stage 1 needs a tile of stage 0 that the next iteration overwrites}}
      %z = tile.wait_mma %y {tile.stage = 1, tile.order = 3} : !tile.token<!s>
    }
  }
  return
}
