// RUN: fovea-opt %s --convert-tile-launch-to-gpu --verify-diagnostics --split-input-file

!m = memref<?x256xf32, strided<[?, 1], offset: ?>>
func.func @shared_memory(%k: !m, %n: index) {
  // expected-error@+1 {{needs 262144 bytes of shared memory, but a block has 232448}}
  tile.launch grid(%n) warps 8 outs(%k : !m) {
  ^bb0(%x: index, %K: !m):
    %a = tile.load %K[%x, %x] dims [0, 1] : !m -> !tile.shared<128x256xf32>
    %b = tile.load %K[%x, %x] dims [0, 1] : !m -> !tile.shared<128x256xf32>
  }
  return
}

// -----

func.func @warps(%o: memref<?xf32, strided<[1], offset: ?>>, %n: index) {
  // expected-error@+1 {{has 36 warps in all, but a block has at most 32}}
  tile.launch grid(%n) warps 8 outs(%o : memref<?xf32, strided<[1], offset: ?>>) {
  ^bb0(%x: index, %O: memref<?xf32, strided<[1], offset: ?>>):
    tile.roles {
      tile.role "load" warps 4 {
      }
      tile.role "compute" warps 32 {
      }
    }
  }
  return
}

// -----

func.func @tensors(%o: tensor<?xf32>, %n: index) {
  // expected-error@+1 {{expected memrefs, got 'tensor<?xf32>'; bufferize first}}
  %r = tile.launch grid(%n) warps 8 outs(%o : tensor<?xf32>) {
  ^bb0(%x: index, %O: memref<?xf32, strided<[1], offset: ?>>):
  } -> tensor<?xf32>
  return
}

// -----

func.func @stride(%o: memref<?xf32, strided<[2]>>, %n: index) {
  // expected-error@+1 {{expected an operand of innermost stride 1, got 'memref<?xf32, strided<[2]>>'}}
  tile.launch grid(%n) warps 8 outs(%o : memref<?xf32, strided<[2]>>) {
  ^bb0(%x: index, %O: memref<?xf32, strided<[1], offset: ?>>):
  }
  return
}
