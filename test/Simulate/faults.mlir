// A program of two roles, correct as it stands. Each fault that is planted in it
// is found, whatever the order of what happens, and named with its place.
//
// RUN: fovea-run %s --target=sm_90a --simulate --seeds=50 --random=1 --dims=i:128x16 | FileCheck %s
//
// RUN: sed 's/tile.wait %ring\[%u\]/tile.acquire %ring[%u]/' %s > %t.mlir
// RUN: not fovea-run %t.mlir --target=sm_90a --simulate --random=1 --dims=i:128x16 2>&1 | FileCheck %s --check-prefix=NO-WAIT
// RUN: sed '/PRODUCT/d; s/RELEASE.*/RELEASE/; s/^ *\/\/ LATE //' %s > %t.mlir
// RUN: not fovea-run %t.mlir --target=sm_90a --simulate --seed=1 --random=1 --dims=i:128x16 2>&1 | FileCheck %s --check-prefix=LATE
// RUN: sed '/tile.release/d' %s > %t.mlir
// RUN: not fovea-run %t.mlir --target=sm_90a --simulate --seed=2 --random=1 --dims=i:128x16 2>&1 | FileCheck %s --check-prefix=NO-RELEASE
// RUN: sed 's/%next_use = arith.addi %u, %c1/%next_use = arith.addi %u, %c2/' %s > %t.mlir
// RUN: not fovea-run %t.mlir --target=sm_90a --simulate --seed=3 --random=1 --dims=i:128x16 2>&1 | FileCheck %s --check-prefix=WRONG-USE
// RUN: sed 's/pending 0/pending 1/' %s > %t.mlir
// RUN: not fovea-run %t.mlir --target=sm_90a --simulate --seed=4 --random=1 --dims=i:128x16 2>&1 | FileCheck %s --check-prefix=PENDING
// RUN: sed '/tile.load_async/d' %s > %t.mlir
// RUN: not fovea-run %t.mlir --target=sm_90a --simulate --seed=5 --random=1 --dims=i:128x16 2>&1 | FileCheck %s --check-prefix=DEADLOCK
// RUN: sed 's/tile.load_async %I.%row, %c0/tile.load_async %I[%row, %c1/' %s > %t.mlir
// RUN: not fovea-run %t.mlir --target=sm_90a --simulate --random=1 --dims=i:128x16 2>&1 | FileCheck %s --check-prefix=COLUMN
// RUN: sed 's/!tile.ring<2 x/!tile.ring<512 x/' %s > %t.mlir
// RUN: not fovea-run %t.mlir --target=sm_80 --simulate --random=1 --dims=i:128x16 2>&1 | FileCheck %s --check-prefix=SHARED
//
// CHECK: result 0: f32 64x16,
//
// NO-WAIT: faults.mlir.tmp.mlir:[[#]]:{{[0-9]+}}: error: 'tile.acquire' op acquires a slot of a ring that another role fills
// NO-WAIT: note: in block (0) of this launch, role "compute"
// NO-WAIT: note: this ring
//
// LATE: error: 'tile.mma_async' op reads use 0 of a ring after its release
// LATE: note: in block (0) of this launch, role "compute", seed 1{{$}}
//
// NO-RELEASE: error: 'tile.acquire' op waits for ever: for use 0 of its ring to be released, so that use 2 may begin
// NO-RELEASE: note: in block (0) of this launch, role "load", seed 2{{$}}
// NO-RELEASE: note: role "compute" waits here: for use 2 of its ring to be full
//
// WRONG-USE: error: 'tile.{{acquire|wait}}' op {{acquires|waits for}} use 2 of the ring, expected 1: uses count from 0{{$}}
//
// PENDING: error: 'tile.wait_mma' op leaves 1 products in flight, but only 0 were issued after the one that it is for, which so may be among them
//
// DEADLOCK: error: 'tile.{{acquire|wait}}' op waits for ever
//
// COLUMN: error: 'tile.load_async' op copies from column 1 of elements of 2 bytes on, but expected a multiple of 16 bytes
//
// SHARED: error: 'tile.launch' op needs 532480 bytes of shared memory a block, of at most 166912{{$}}
#acc = #tile.layout<64x16, registers = [2:1d1, 2:8d0, 2:8d1], threads = [4:2d1, 8:1d0, 4:16d0]>
!i = memref<?x16xf16, strided<[?, 1], offset: ?>>
!o = memref<64x16xf32, strided<[?, 1], offset: ?>>
!tile = !tile.shared<16x16xf16, swizzle = 32>
!ring = !tile.ring<2 x !tile>
!acc = !tile.fragment<64x16xf32, #acc>
!a = !tile.fragment<64x16xf16, #acc>
func.func @sum(%i: tensor<?x16xf16>) -> tensor<64x16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f16
  %n = tensor.dim %i, %c0 : tensor<?x16xf16>
  %e = tensor.empty() : tensor<64x16xf32>
  %r = tile.launch grid(%c1) warps 4 ins(%i : tensor<?x16xf16>) outs(%e : tensor<64x16xf32>) {
  ^bb0(%b: index, %I: !i, %O: !o):
    %ring = tile.ring : !ring
    tile.roles {
      tile.role "load" warps 4 registers 24 single {
        scf.for %row = %c0 to %n step %c16 iter_args(%u = %c0) -> index {
          %slot = tile.acquire %ring[%u] : !ring
          tile.load_async %I[%row, %c0] dims [0, 1] into %slot signals %ring[%u] : !i, !ring
          %next_use = arith.addi %u, %c1 : index
          scf.yield %next_use : index
        }
      }
      tile.role "compute" warps 4 registers 160 {
        %ones = tile.fill %one : !a
        %acc0 = tile.fill %zero : !acc
        %s:2 = scf.for %row = %c0 to %n step %c16 iter_args(%acc = %acc0, %u = %c0) -> (!acc, index) {
          %k = tile.wait %ring[%u] : !ring
          %t = tile.mma_async wgmma %ones, %k into %acc : !a, !tile, !acc -> !tile.token<!acc> // PRODUCT
          %w = tile.wait_mma %t pending 0 : !tile.token<!acc> // PRODUCT
          tile.release %ring[%u] : !ring
          // LATE %t = tile.mma_async wgmma %ones, %k into %acc : !a, !tile, !acc -> !tile.token<!acc>
          // LATE %w = tile.wait_mma %t : !tile.token<!acc>
          %next_use = arith.addi %u, %c1 : index
          scf.yield %w, %next_use : !acc, index
        }
        tile.store %s#0, %O[%c0, %c0] dims [0, 1] : !acc, !o
      }
    }
  } -> tensor<64x16xf32>
  return %r : tensor<64x16xf32>
}
