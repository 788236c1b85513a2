// RUN: fovea-opt %s --split-input-file --verify-diagnostics --tile-split-products

!g = memref<64x64xf32, strided<[?, 1], offset: ?>>
func.func @computed(%e: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %r = tile.launch grid(%c1) warps 4 parts 3 outs(%e : tensor<64x64xf32>) {
  ^bb0(%i: index, %O: !g):
    %f = tile.fill %zero : !tile.fragment<64x64xf32>
    %a = tile.to_shared %f : !tile.fragment<64x64xf32> -> !tile.shared<64x64xf32>
    // expected-error@+1 {{'tile.mma' op expected an operand in shared memory to be a tile.load of an operand of the launch, whose parts can be computed in front of it}}
    %s = tile.mma %f, %a : !tile.fragment<64x64xf32>, !tile.shared<64x64xf32> -> !tile.fragment<64x64xf32>
    tile.store %s, %O[%c0, %c0] dims [0, 1] : !tile.fragment<64x64xf32>, !g
  } -> tensor<64x64xf32>
  return %r : tensor<64x64xf32>
}

// -----

!g = memref<64x64xf32, strided<[?, 1], offset: ?>>
func.func @buffers(%q: memref<64x64xf32>, %e: memref<64x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  tile.launch grid(%c1) warps 4 parts 3 ins(%q : memref<64x64xf32>) outs(%e : memref<64x64xf32>) {
  ^bb0(%i: index, %Q: !g, %O: !g):
    %a = tile.load %Q[%c0, %c0] dims [0, 1] : !g -> !tile.shared<64x64xf32>
    // expected-error@+1 {{'tile.mma' op expected the launch to be on tensors, of which parts can be computed: run this pass before bufferization}}
    %s = tile.mma %a, %a transpose_b : !tile.shared<64x64xf32>, !tile.shared<64x64xf32> -> !tile.fragment<64x64xf32>
    tile.store %s, %O[%c0, %c0] dims [0, 1] : !tile.fragment<64x64xf32>, !g
  }
  return
}
