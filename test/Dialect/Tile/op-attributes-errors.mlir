// RUN: fovea-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{has the attribute "tile.stages", which the tile dialect does not know}}
module attributes {tile.stages = 1} {}

// -----

func.func @late(%n: index) {
  // expected-error@+1 {{expects 'tile.stage' to be an i64 of at least 0 and below 2, but it is 2 : i64}}
  %0 = arith.addi %n, %n {tile.stage = 2, tile.order = 0} : index
  return
}

// -----

func.func @early(%n: index) {
  // expected-error@+1 {{expects 'tile.order' to be an i64 of at least 0, but it is -1 : i64}}
  %0 = arith.addi %n, %n {tile.stage = 0, tile.order = -1} : index
  return
}

// -----

func.func @no_order(%n: index) {
  // expected-error@+1 {{has 'tile.stage', so it needs 'tile.order'}}
  %0 = arith.addi %n, %n {tile.stage = 0} : index
  return
}

// -----

func.func @no_stage(%n: index) {
  // expected-error@+1 {{has 'tile.order', so it needs 'tile.stage'}}
  %0 = arith.addi %n, %n {tile.order = 0} : index
  return
}

// -----

func.func @unaligned(%o: memref<8x8xf32>) {
  %c1 = arith.constant 1 : index
  tile.launch grid(%c1) warps 4 outs(%o : memref<8x8xf32>) {
  ^bb0(%block: index, %O: memref<8x8xf32, strided<[?, 1], offset: ?>>):
    // expected-error@+1 {{expects 'tile.shared_offset' to be an i64 of at least 0, a multiple of 1024, but it is 512 : i64}}
    %ring = tile.ring {tile.shared_offset = 512, tile.barrier_offset = 4096} : !tile.ring<2 x !tile.shared<8x8xf32>>
  }
  return
}

// -----

func.func @no_barriers(%o: memref<8x8xf32>) {
  %c1 = arith.constant 1 : index
  tile.launch grid(%c1) warps 4 outs(%o : memref<8x8xf32>) {
  ^bb0(%block: index, %O: memref<8x8xf32, strided<[?, 1], offset: ?>>):
    // expected-error@+1 {{has 'tile.shared_offset', so it needs 'tile.barrier_offset'}}
    %ring = tile.ring {tile.shared_offset = 0} : !tile.ring<2 x !tile.shared<8x8xf32>>
  }
  return
}

// -----

func.func @no_slots(%o: memref<8x8xf32>) {
  %c1 = arith.constant 1 : index
  tile.launch grid(%c1) warps 4 outs(%o : memref<8x8xf32>) {
  ^bb0(%block: index, %O: memref<8x8xf32, strided<[?, 1], offset: ?>>):
    // expected-error@+1 {{has 'tile.barrier_offset', so it needs 'tile.shared_offset'}}
    %ring = tile.ring {tile.barrier_offset = 4096} : !tile.ring<2 x !tile.shared<8x8xf32>>
  }
  return
}

// -----

func.func @half_a_barrier(%o: memref<8x8xf32>) {
  %c1 = arith.constant 1 : index
  tile.launch grid(%c1) warps 4 outs(%o : memref<8x8xf32>) {
  ^bb0(%block: index, %O: memref<8x8xf32, strided<[?, 1], offset: ?>>):
    // expected-error@+1 {{expects 'tile.barrier_offset' to be an i64 of at least 0, a multiple of 8, but it is 4100 : i64}}
    %ring = tile.ring {tile.barrier_offset = 4100, tile.shared_offset = 0} : !tile.ring<2 x !tile.shared<8x8xf32>>
  }
  return
}

// -----

// A tile that reuses a ring's memory has no place of its own.
func.func @reuses(%o: memref<8x8xf32>) {
  %c1 = arith.constant 1 : index
  tile.launch grid(%c1) warps 4 outs(%o : memref<8x8xf32>) {
  ^bb0(%block: index, %O: memref<8x8xf32, strided<[?, 1], offset: ?>>):
    %x = arith.constant 0.0 : f32
    %ring = tile.ring : !tile.ring<2 x !tile.shared<8x8xf32>>
    %f = tile.fill %x : !tile.fragment<8x8xf32>
    // expected-error@+1 {{'tile.to_shared' op expects 'tile.shared_offset' only on an op with a place for tiles}}
    %t = tile.to_shared %f reuses %ring {tile.shared_offset = 0} : !tile.fragment<8x8xf32>, !tile.ring<2 x !tile.shared<8x8xf32>> -> !tile.shared<8x8xf32>
  }
  return
}

// -----

func.func @barriers(%n: index) {
  // expected-error@+1 {{'arith.addi' op expects 'tile.barrier_offset' only on a tile.ring}}
  %0 = arith.addi %n, %n {tile.barrier_offset = 0} : index
  return
}
