// RUN: fovea-opt %s --tile-assign-layouts --split-input-file --verify-diagnostics

func.func @rows(%o: memref<?xf32>, %n: index, %x: f32) {
  tile.launch grid(%n) warps 8 outs(%o : memref<?xf32>) {
  ^bb0(%b: index, %O: memref<?xf32, strided<[1], offset: ?>>):
    // expected-error @below {{cannot lay out '!tile.fragment<64x40xf32>' over 4 by 2 warps: expected rows in multiples of 64 and columns in multiples of 16}}
    %t = tile.fill %x : !tile.fragment<64x40xf32>
  }
  return
}

// -----

func.func @features_of_bytes(%p: !tile.shared<16x64xf16>, %v: memref<64x96xi8>, %n: index) {
  %c0 = arith.constant 0 : index
  tile.launch grid(%n) warps 4 outs(%v : memref<64x96xi8>) {
  ^bb0(%b: index, %V: memref<64x96xi8, strided<[?, 1], offset: ?>>):
    %vs = tile.load %V[%c0, %c0] dims [0, 1] : memref<64x96xi8, strided<[?, 1], offset: ?>> -> !tile.shared<64x96xi8>
    // expected-error@+1 {{cannot lay out '!tile.fragment<16x96xf32>' over 1 by 4 warps, for products of bytes: expected rows in multiples of 16 and columns in multiples of 64}}
    %r = tile.mma %p, %vs from f8E4M3FN : !tile.shared<16x64xf16>, !tile.shared<64x96xi8> -> !tile.fragment<16x96xf32>
  }
  return
}
