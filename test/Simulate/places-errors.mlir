// Uses of a ring that shares another's slots, where that one's tile is needed.
//
// RUN: not fovea-run %s --entry=unread --target=sm_90a --simulate --random=1 2>&1 | FileCheck %s --check-prefix=UNREAD
// RUN: not fovea-run %s --entry=in_flight --target=sm_90a --simulate --random=1 2>&1 | FileCheck %s --check-prefix=FLIGHT
// RUN: not fovea-run %s --entry=other_reader --target=sm_90a --simulate --random=1 2>&1 | FileCheck %s --check-prefix=OTHER

!x = memref<64x64xbf16, strided<[?, 1], offset: ?>>
!t = !tile.shared<64x64xbf16, swizzle = 128>
!r = !tile.ring<2 x !t>
!f = !tile.fragment<64x64xf32>

// UNREAD: error: 'tile.acquire' op acquires use 0 of a ring that shares slots, before the role has waited for that use of the other ring
func.func @unread(%x: tensor<64x64xbf16>) -> tensor<64x64xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<64x64xbf16>
  %out = tile.launch grid(%c1) warps 4 ins(%x : tensor<64x64xbf16>) outs(%e : tensor<64x64xbf16>) {
  ^bb0(%b: index, %X: !x, %O: !x):
    %q = tile.ring : !r
    %o = tile.ring shares %q : !r, !r
    tile.roles {
      tile.role "load" warps 1 single {
        %slot = tile.acquire %q[%c0] : !r
        tile.load_async %X[%c0, %c0] dims [0, 1] into %slot signals %q[%c0] : !x, !r
      }
      tile.role "compute" warps 4 {
        %slot = tile.acquire %o[%c0] : !r
        %t = tile.wait %q[%c0] : !r
        tile.release %q[%c0] : !r
      }
    }
  } -> tensor<64x64xbf16>
  return %out : tensor<64x64xbf16>
}

// FLIGHT: error: 'tile.acquire' op acquires use 0 of a ring that shares slots, while the other ring's is read
// FLIGHT: note: by this, which no wait covers yet
func.func @in_flight(%x: tensor<64x64xbf16>) -> tensor<64x64xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<64x64xbf16>
  %out = tile.launch grid(%c1) warps 4 ins(%x : tensor<64x64xbf16>) outs(%e : tensor<64x64xbf16>) {
  ^bb0(%b: index, %X: !x, %O: !x):
    %q = tile.ring : !r
    %o = tile.ring shares %q : !r, !r
    tile.roles {
      tile.role "load" warps 1 single {
        %slot = tile.acquire %q[%c0] : !r
        tile.load_async %X[%c0, %c0] dims [0, 1] into %slot signals %q[%c0] : !x, !r
      }
      tile.role "compute" warps 4 {
        %t = tile.wait %q[%c0] : !r
        %p = tile.mma_async %t, %t transpose_b : !t, !t -> !tile.token<!f>
        %slot = tile.acquire %o[%c0] : !r
        %s = tile.wait_mma %p : !tile.token<!f>
        tile.release %q[%c0] : !r
      }
    }
  } -> tensor<64x64xbf16>
  return %out : tensor<64x64xbf16>
}

// OTHER: error: 'tile.acquire' op acquires use 0 of a ring that shares slots, which another role reads in the other ring
func.func @other_reader(%x: tensor<64x64xbf16>) -> tensor<64x64xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<64x64xbf16>
  %out = tile.launch grid(%c1) warps 4 ins(%x : tensor<64x64xbf16>) outs(%e : tensor<64x64xbf16>) {
  ^bb0(%b: index, %X: !x, %O: !x):
    %q = tile.ring : !r
    %o = tile.ring shares %q : !r, !r
    tile.roles {
      tile.role "load" warps 1 single {
        %slot = tile.acquire %q[%c0] : !r
        tile.load_async %X[%c0, %c0] dims [0, 1] into %slot signals %q[%c0] : !x, !r
      }
      tile.role "other" warps 1 single {
        %t = tile.wait %q[%c0] : !r
        tile.release %q[%c0] : !r
      }
      tile.role "compute" warps 4 {
        %t = tile.wait %q[%c0] : !r
        tile.release %q[%c0] : !r
        %slot = tile.acquire %o[%c0] : !r
      }
    }
  } -> tensor<64x64xbf16>
  return %out : tensor<64x64xbf16>
}
