// The plain attention program becomes the pipelined one in steps.
// RUN: fovea-opt %s --tile-assign-layouts --tile-multibuffer --tile-specialize-warps --tile-schedule | FileCheck %s --check-prefix=SCHEDULE
// RUN: fovea-opt %s --tile-assign-layouts --tile-multibuffer --tile-specialize-warps --tile-schedule --tile-expand-pipeline --canonicalize --cse | FileCheck %s --check-prefix=EXPAND

// The value product depends on the score product: it runs a step later, and is
// issued before the scores are waited for.
// SCHEDULE: tile.role "compute"
// SCHEDULE: scf.for
// SCHEDULE: tile.wait {{.*}}tile.order = 0 : i64, tile.stage = 0
// SCHEDULE: tile.mma_async wgmma {{.*}}transpose_b {tile.order = 1 : i64, tile.stage = 0
// SCHEDULE: tile.wait_mma {{.*}}tile.order = 4 : i64, tile.stage = 0
// SCHEDULE: tile.release {{.*}}tile.order = 5 : i64, tile.stage = 0
// SCHEDULE: tile.wait {{.*}}tile.order = 2 : i64, tile.stage = 1
// SCHEDULE: tile.mma_async wgmma {{.*}} into {{.*}}tile.order = 3 : i64, tile.stage = 1
// SCHEDULE: tile.wait_mma {{.*}}tile.order = 14 : i64, tile.stage = 1

// EXPAND-LABEL: tile.role "compute" warps 8 registers 240{{ }}
// EXPAND: %[[Q:.*]] = tile.wait
// EXPAND: scf.if
// The first scores stand alone.
// EXPAND: tile.mma_async wgmma %[[Q]], {{.*}} transpose_b
// EXPAND-NEXT: tile.wait_mma %{{.*}} : !tile.token
// EXPAND: scf.for
// EXPAND: tile.wait
// EXPAND: %[[S:.*]] = tile.mma_async wgmma %[[Q]], {{.*}} transpose_b
// EXPAND: tile.wait
// EXPAND: %[[O:.*]] = tile.mma_async wgmma %{{.*}}, %{{.*}} into
// EXPAND: tile.wait_mma %[[S]] pending 1{{ }}
// EXPAND: tile.release
// EXPAND: tile.reduce max
// EXPAND: tile.reduce add
// EXPAND: tile.wait_mma %[[O]] : !tile.token
// EXPAND-NEXT: tile.release
// The accumulator is rescaled after its product.
// EXPAND-NEXT: tile.map
// EXPAND: scf.yield
// The last values.
// EXPAND: tile.mma_async wgmma %{{.*}}, %{{.*}} into
// EXPAND-NEXT: tile.wait_mma

!g = memref<?x64xbf16, strided<[?, 1], offset: ?>>
!o = memref<?x64xf32, strided<[?, 1], offset: ?>>
!s = !tile.fragment<128x64xf32>
!r = !tile.fragment<128xf32>

func.func @attention(%q: memref<?x64xbf16>, %k: memref<?x64xbf16>, %v: memref<?x64xbf16>, %out: memref<?x64xf32>, %rows: index, %keys: index) {
  tile.launch grid(%rows) warps 8 stages 3
      ins(%q, %k, %v : memref<?x64xbf16>, memref<?x64xbf16>, memref<?x64xbf16>)
      outs(%out : memref<?x64xf32>) {
  ^bb0(%block: index, %Q: !g, %K: !g, %V: !g, %O: !o):
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %zero = arith.constant 0.0 : f32
    %low = arith.constant 0xFF800000 : f32
    %row = arith.muli %block, %c128 : index
    %qt = tile.load %Q[%row, %c0] dims [0, 1] : !g -> !tile.shared<128x64xbf16>
    %acc0 = tile.fill %zero : !s
    %max0 = tile.fill %low : !r
    %sum0 = tile.fill %zero : !r
    %end:3 = scf.for %j = %c0 to %keys step %c64 iter_args(%acc = %acc0, %max = %max0, %sum = %sum0) -> (!s, !r, !r) {
      %kt = tile.load %K[%j, %c0] dims [0, 1] : !g -> !tile.shared<64x64xbf16>
      %vt = tile.load %V[%j, %c0] dims [0, 1] : !g -> !tile.shared<64x64xbf16>
      %x = tile.mma %qt, %kt transpose_b : !tile.shared<128x64xbf16>, !tile.shared<64x64xbf16> -> !s
      %max1 = tile.reduce max %x, %max dim 1 : !s -> !r
      %alpha = tile.map ins(%max, %max1 : !r, !r) {
      ^bb0(%a: f32, %b: f32, %i: index):
        %d = arith.subf %a, %b : f32
        %e = math.exp2 %d : f32
        tile.yield %e : f32
      } -> !r
      %p = tile.map ins(%x : !s) rows(%max1 : !r) {
      ^bb0(%a: f32, %b: f32, %i: index, %n: index):
        %d = arith.subf %a, %b : f32
        %e = math.exp2 %d : f32
        tile.yield %e : f32
      } -> !s
      %scaled = tile.map ins(%sum, %alpha : !r, !r) {
      ^bb0(%a: f32, %b: f32, %i: index):
        %d = arith.mulf %a, %b : f32
        tile.yield %d : f32
      } -> !r
      %sum1 = tile.reduce add %p, %scaled dim 1 : !s -> !r
      %narrow = tile.map ins(%p : !s) {
      ^bb0(%a: f32, %i: index, %n: index):
        %t = arith.truncf %a : f32 to bf16
        tile.yield %t : bf16
      } -> !tile.fragment<128x64xbf16>
      %acc1 = tile.map ins(%acc : !s) rows(%alpha : !r) {
      ^bb0(%a: f32, %b: f32, %i: index, %n: index):
        %d = arith.mulf %a, %b : f32
        tile.yield %d : f32
      } -> !s
      %acc2 = tile.mma %narrow, %vt into %acc1 : !tile.fragment<128x64xbf16>, !tile.shared<64x64xbf16>, !s -> !s
      scf.yield %acc2, %max1, %sum1 : !s, !r, !r
    }
    %o = tile.map ins(%end#0 : !s) rows(%end#2 : !r) {
    ^bb0(%a: f32, %b: f32, %i: index, %n: index):
      %d = arith.divf %a, %b : f32
      tile.yield %d : f32
    } -> !s
    tile.store %o, %O[%row, %c0] dims [0, 1] : !s, !o
  }
  return
}
