// RUN: fovea-opt %s --tile-group-blocks --verify-diagnostics

!m = memref<2x6x128x64xf32>
!o = memref<2x6x128x64xf32, strided<[?, ?, ?, 1], offset: ?>>

func.func @buffers(%m: !m, %t: index, %b: index, %n: index, %x: f32) {
  %c0 = arith.constant 0 : index
  %c6 = arith.constant 6 : index
  %c64 = arith.constant 64 : index
  // expected-error@+1 {{expected tensors: tile-group-blocks runs before bufferization}}
  tile.launch grid(%t, %c6, %b) warps 8 outs(%m : !m) {
  ^bb0(%k: index, %h: index, %s: index, %O: !o):
    %f = tile.fill %x : !tile.fragment<64x64xf32>
    scf.for %i = %k to %n step %c64 {
      tile.store add %f, %O[%s, %h, %i, %c0] dims [2, 3] : !tile.fragment<64x64xf32>, !o
    }
  }
  return
}
