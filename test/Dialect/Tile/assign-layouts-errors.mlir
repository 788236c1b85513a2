// RUN: fovea-opt %s --tile-assign-layouts --split-input-file --verify-diagnostics

func.func @rows(%o: memref<?xf32>, %n: index, %x: f32) {
  tile.launch grid(%n) warps 8 outs(%o : memref<?xf32>) {
  ^bb0(%b: index, %O: memref<?xf32, strided<[1], offset: ?>>):
    // expected-error @below {{cannot lay out '!tile.fragment<64x40xf32>' over 4 by 2 warps: expected rows in multiples of 64 and columns in multiples of 16}}
    %t = tile.fill %x : !tile.fragment<64x40xf32>
  }
  return
}
