// A program of clusters of two blocks that fill a ring together, correct as it
// stands; each block stores what it has read to rows of its own. Each fault that is
// planted in it is found.
//
// RUN: fovea-run %s --target=sm_90a --simulate --seeds=50 --random=1 --dims=i:128x128 | FileCheck %s
//
// RUN: sed 's/%I\[%row, %c0\]/%I[%own, %c0]/' %s > %t.mlir
// RUN: not fovea-run %t.mlir --target=sm_90a --simulate --seed=1 --random=1 --dims=i:128x128 2>&1 | FileCheck %s --check-prefix=OTHER-ROWS
// RUN: sed 's/= %c0 to %n step/= %own to %n step/' %s > %t.mlir
// RUN: not fovea-run %t.mlir --target=sm_90a --simulate --seed=2 --random=1 --dims=i:128x128 2>&1 | FileCheck %s --check-prefix=FEWER
// RUN: sed '/tile.release/d' %s > %t.mlir
// RUN: not fovea-run %t.mlir --target=sm_90a --simulate --seed=3 --random=1 --dims=i:128x128 2>&1 | FileCheck %s --check-prefix=NO-RELEASE
// RUN: sed 's/scf.for %j = %c0 to %n/scf.for %j = %c0 to %less/' %s > %t.mlir
// RUN: not fovea-run %t.mlir --target=sm_90a --simulate --seed=4 --random=1 --dims=i:128x128 2>&1 | FileCheck %s --check-prefix=UNREAD
// RUN: sed 's/= %c0 to %n step/= %c0 to %most step/' %s > %t.mlir
// RUN: not fovea-run %t.mlir --target=sm_90a --simulate --seed=5 --random=1 --dims=i:128x128 2>&1 | FileCheck %s --check-prefix=MORE
//
// CHECK: result 0: f32 64x128,
//
// OTHER-ROWS: error: 'tile.load_async' op copies from [{{.*}}] to use [[#]] of the ring, to which another block of the cluster has copied from [
// OTHER-ROWS: note: in block (0) rank {{[01]}} of this launch, role "load", seed 1
//
// The block of number 1 leaves out the first use.
// FEWER: error: 'tile.ring' op is filled by the cluster for use 3, which this block does not begin
//
// NO-RELEASE: error: 'tile.acquire' op waits for ever: for use 0 of its ring to be released, so that use 2 may begin
//
// UNREAD: error: 'tile.load_async' op fills use 3 of the ring, which role "compute" never waits for
//
// The block of number 1 has one use more.
// MORE: error: 'tile.load_async' op copies to block (0) rank 0 of its cluster, which has ended
#acc = #tile.layout<32x128, registers = [2:1d1, 2:8d0, 8:8d1], threads = [4:2d1, 8:1d0, 2:16d0, 2:64d1]>
!i = memref<?x128xf32, strided<[?, 1], offset: ?>>
!o = memref<64x128xf32, strided<[?, 1], offset: ?>>
!tile = !tile.shared<32x128xf32, swizzle = 128>
!ring = !tile.ring<2 x !tile>
!acc = !tile.fragment<32x128xf32, #acc>
func.func @sum(%i: tensor<?x128xf32>) -> tensor<64x128xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %i, %c0 : tensor<?x128xf32>
  %less = arith.subi %n, %c32 : index
  %e = tensor.empty() : tensor<64x128xf32>
  %r = tile.launch grid(%c1) cluster 2 warps 4 ins(%i : tensor<?x128xf32>) outs(%e : tensor<64x128xf32>) {
  ^bb0(%b: index, %I: !i, %O: !o):
    %ring = tile.ring cluster 2 : !ring
    %rank = tile.cluster_rank
    %own = arith.muli %rank, %c32 : index
    %most = arith.addi %n, %own : index
    tile.roles {
      tile.role "load" warps 4 registers 24 single {
        %l:2 = scf.for %step = %c0 to %n step %c32 iter_args(%row = %c0, %u = %c0) -> (index, index) {
          %slot = tile.acquire %ring[%u] : !ring
          tile.load_async %I[%row, %c0] dims [0, 1] into %slot signals %ring[%u] : !i, !ring
          %next_row = arith.addi %row, %c32 : index
          %next_use = arith.addi %u, %c1 : index
          scf.yield %next_row, %next_use : index, index
        }
      }
      tile.role "compute" warps 4 registers 160 {
        %acc0 = tile.fill %zero : !acc
        %s:2 = scf.for %j = %c0 to %n step %c32 iter_args(%acc = %acc0, %u = %c0) -> (!acc, index) {
          %k = tile.wait %ring[%u] : !ring
          %f = tile.from_shared %k : !tile -> !acc
          %sum = tile.map ins(%acc, %f : !acc, !acc) {
          ^bb0(%x: f32, %y: f32, %p: index, %q: index):
            %z = arith.addf %x, %y : f32
            tile.yield %z : f32
          } -> !acc
          tile.release %ring[%u] : !ring
          %next_use = arith.addi %u, %c1 : index
          scf.yield %sum, %next_use : !acc, index
        }
        tile.store %s#0, %O[%own, %c0] dims [0, 1] : !acc, !o
      }
    }
  } -> tensor<64x128xf32>
  return %r : tensor<64x128xf32>
}
