// RUN: fovea-opt %s --tile-expand-pipeline --split-input-file --verify-diagnostics

func.func @missing(%o: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  tile.launch grid(%n) warps 4 outs(%o : memref<?xf32>) {
  ^bb0(%b: index, %O: memref<?xf32, strided<[1], offset: ?>>):
    scf.for %j = %c0 to %n step %c1 {
      %x = arith.addi %j, %c1 {tile.stage = 0, tile.order = 0} : index
      // expected-error @below {{in a scheduled loop must have a tile.stage of 0 or 1 and a tile.order}}
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
