// The plain program of attention's backward pass, written by hand, after every
// step on its way to roles and products in flight, against the op in f64.
//
// RUN: split-file %s %t
// RUN: fovea-run %t/program.mlir --reference=%t/graph.mlir --target=sm_90a --simulate \
// RUN:   --seeds=3 --random=1 --dims=200 --check | FileCheck %s
// RUN: fovea-opt %t/program.mlir --canonicalize --cse --tile-assign-layouts -o %t/layouts.mlir
// RUN: fovea-run %t/layouts.mlir --reference=%t/graph.mlir --target=sm_90a --simulate \
// RUN:   --seeds=3 --random=1 --dims=200 --check | FileCheck %s
// RUN: fovea-opt %t/layouts.mlir --tile-multibuffer -o %t/rings.mlir
// RUN: fovea-run %t/rings.mlir --reference=%t/graph.mlir --target=sm_90a --simulate \
// RUN:   --seeds=6 --random=1 --dims=200 --check | FileCheck %s
// RUN: fovea-opt %t/rings.mlir --tile-stage-stores -o %t/stores.mlir
// RUN: fovea-run %t/stores.mlir --reference=%t/graph.mlir --target=sm_90a --simulate \
// RUN:   --seeds=6 --random=1 --dims=200 --check | FileCheck %s
// RUN: fovea-opt %t/stores.mlir --tile-specialize-warps -o %t/roles.mlir
// RUN: fovea-run %t/roles.mlir --reference=%t/graph.mlir --target=sm_90a --simulate \
// RUN:   --seeds=6 --random=1 --dims=200 --check | FileCheck %s
// RUN: fovea-opt %t/roles.mlir --tile-schedule --tile-expand-pipeline -o %t/ordered.mlir
// RUN: fovea-run %t/ordered.mlir --reference=%t/graph.mlir --target=sm_90a --simulate \
// RUN:   --seeds=6 --random=1 --dims=200 --check | FileCheck %s
// RUN: FileCheck %s --check-prefix=ORDER --input-file=%t/ordered.mlir
//
// RUN: fovea-opt %t/rings.mlir --tile-schedule --tile-expand-pipeline -o %t/no-roles.mlir
// RUN: fovea-run %t/no-roles.mlir --reference=%t/graph.mlir --target=sm_90a --simulate \
// RUN:   --seeds=4 --random=1 --dims=200 --check | FileCheck %s
// RUN: fovea-opt %t/layouts.mlir --tile-stage-stores --tile-schedule -o %t/no-rings.mlir
// RUN: fovea-run %t/no-rings.mlir --reference=%t/graph.mlir --target=sm_90a --simulate \
// RUN:   --seeds=4 --random=1 --dims=200 --check | FileCheck %s
//
// Blocks that take turns, as they are and by all passes.
// RUN: fovea-opt %t/program.mlir --tile-order-adds -o %t/turns.mlir
// RUN: fovea-run %t/turns.mlir --reference=%t/graph.mlir --target=sm_90a --simulate \
// RUN:   --seeds=4 --random=1 --dims=300 --check | FileCheck %s
// RUN: fovea-run %t/program.mlir --reference=%t/graph.mlir --target=sm_90a --deterministic \
// RUN:   --simulate --seeds=6 --random=1 --dims=300 --check | FileCheck %s
// RUN: fovea-run %t/program.mlir --reference=%t/graph.mlir --target=sm_80 --deterministic \
// RUN:   --simulate --seeds=2 --random=1 --dims=300 --check | FileCheck %s
//
// RUN: fovea-opt %t/program.mlir --canonicalize --cse --attach-gpu-target=target=sm_80 --tile-assign-layouts \
// RUN:   -o %t/ampere.mlir
// RUN: fovea-run %t/ampere.mlir --reference=%t/graph.mlir --target=sm_80 --simulate \
// RUN:   --seeds=2 --random=1 --dims=200 --check | FileCheck %s
// RUN: fovea-opt %t/ampere.mlir --attach-gpu-target=target=sm_80 --tile-multibuffer \
// RUN:   --tile-prefetch -o %t/prefetched.mlir
// RUN: fovea-run %t/prefetched.mlir --reference=%t/graph.mlir --target=sm_80 --simulate \
// RUN:   --seeds=4 --random=1 --dims=200 --check | FileCheck %s
//
// CHECK: check: result 0: max error
// CHECK: check: result 1: max error
// CHECK: check: result 2: max error
// CHECK-NOT: FAILED
//
// Both products of scores first, behind the waits for their statistics, which
// there are no registers to read yet; then the probabilities under the second; a
// quarter of the values' gradient under the work on the scores' gradient, and the
// rest under the barrier after that; the queries' gradient before the keys', which
// runs while the former is written, for another role to store. Its slot is waited
// for when both are under way.
// ORDER: tile.role "compute"
// ORDER: scf.for
// ORDER: scf.for
// ORDER: tile.wait %{{.*}}x64xf16
// ORDER: %[[LSE:.*]] = tile.wait %{{.*}}<1x128xf32>
// ORDER: tile.mma_async wgmma %{{.*}}, %{{.*}} transpose_b
// ORDER: tile.wait %{{.*}}x64xf16
// ORDER: %[[DELTA:.*]] = tile.wait %{{.*}}<1x128xf32>
// ORDER: tile.mma_async wgmma %{{.*}}, %{{.*}} transpose_b
// ORDER: tile.wait_mma %{{.*}} pending 1{{ }}
// ORDER: tile.from_shared %[[LSE]]
// ORDER: math.exp2
// ORDER: %[[QUARTER:.*]] = tile.mma_async wgmma %{{.*}}, %[[DO:.*]] into %{{.*}} inner [0, 32]
// ORDER: tile.wait_mma %{{.*}} pending 1{{ }}
// ORDER: tile.from_shared %[[DELTA]]
// ORDER: arith.subf
// ORDER: tile.mma_async wgmma %{{.*}}, %[[DO]] into %[[QUARTER]] inner [32, 128]
// ORDER: tile.to_shared %{{.*}} transposed slot
// ORDER-NOT: tile.acquire
// ORDER: %[[DQ:.*]] = tile.mma_async
// ORDER-NOT: tile.acquire
// ORDER: tile.wait_mma %{{.*}} pending 1{{ }}
// ORDER: tile.release
// ORDER: %[[DK:.*]] = tile.mma_async wgmma %{{.*}}, %{{.*}} into
// ORDER: tile.acquire
// ORDER: tile.wait_mma %[[DQ]] pending 1{{ }}
// ORDER: tile.write
// ORDER: tile.wait_mma %[[DK]] :
// ORDER: tile.release

//--- graph.mlir
func.func @gradient(%q: tensor<1x2x?x64xf16>, %k: tensor<1x1x?x64xf16>, %v: tensor<1x1x?x64xf16>, %do: tensor<1x2x?x64xf16>, %lse: tensor<1x2x?xf32>, %delta: tensor<1x2x?xf32>) -> (tensor<1x2x?x64xf16>, tensor<1x1x?x64xf16>, tensor<1x1x?x64xf16>) {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %v, %do scale(0.125)
      statistics(%lse, %delta : tensor<1x2x?xf32>, tensor<1x2x?xf32>)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %keep = arith.cmpi sge, %i, %j : index
        attn.yield %keep : i1
      }
      : tensor<1x2x?x64xf16>, tensor<1x1x?x64xf16>, tensor<1x1x?x64xf16>, tensor<1x2x?x64xf16> -> tensor<1x2x?x64xf16>, tensor<1x1x?x64xf16>, tensor<1x1x?x64xf16>
  return %dq, %dk, %dv : tensor<1x2x?x64xf16>, tensor<1x1x?x64xf16>, tensor<1x1x?x64xf16>
}

//--- program.mlir
func.func @gradient(%q: tensor<1x2x?x64xf16>, %k: tensor<1x1x?x64xf16>, %v: tensor<1x1x?x64xf16>, %do: tensor<1x2x?x64xf16>, %lse: tensor<1x2x?xf32>, %delta: tensor<1x2x?xf32>) -> (tensor<1x2x?x64xf16>, tensor<1x1x?x64xf16>, tensor<1x1x?x64xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %cb = arith.constant 1 : index
  %ch = arith.constant 1 : index
  %cg = arith.constant 2 : index
  %ck = arith.constant 128 : index
  %cq = arith.constant 128 : index
  %zero = arith.constant 0.0 : f32
  %scale = arith.constant 0.125 : f32
  %ninf = arith.constant 0xFF800000 : f32
  %nq = tensor.dim %q, %c2 : tensor<1x2x?x64xf16>
  %nk = tensor.dim %k, %c2 : tensor<1x1x?x64xf16>
  %tiles = arith.ceildivui %nk, %ck : index
  %e0 = tensor.empty(%nq) : tensor<1x2x?x64xf32>
  %acc = linalg.fill ins(%zero : f32) outs(%e0 : tensor<1x2x?x64xf32>) -> tensor<1x2x?x64xf32>
  %ek = tensor.empty(%nk) : tensor<1x1x?x64xf16>
  %ev = tensor.empty(%nk) : tensor<1x1x?x64xf16>
  %r:3 = tile.launch kernel "backward" grid(%tiles, %ch, %cb) warps 8 stages 2
      ins(%q, %k, %v, %do, %lse, %delta : tensor<1x2x?x64xf16>, tensor<1x1x?x64xf16>, tensor<1x1x?x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?xf32>, tensor<1x2x?xf32>)
      outs(%acc, %ek, %ev : tensor<1x2x?x64xf32>, tensor<1x1x?x64xf16>, tensor<1x1x?x64xf16>) {
  ^bb0(%tile: index, %kh: index, %b: index, %Q: memref<1x2x?x64xf16, strided<[?, ?, ?, 1], offset: ?>>, %K: memref<1x1x?x64xf16, strided<[?, ?, ?, 1], offset: ?>>, %V: memref<1x1x?x64xf16, strided<[?, ?, ?, 1], offset: ?>>, %DO: memref<1x2x?x64xf16, strided<[?, ?, ?, 1], offset: ?>>, %L: memref<1x2x?xf32, strided<[?, ?, 1], offset: ?>>, %D: memref<1x2x?xf32, strided<[?, ?, 1], offset: ?>>, %DQ: memref<1x2x?x64xf32, strided<[?, ?, ?, 1], offset: ?>>, %DK: memref<1x1x?x64xf16, strided<[?, ?, ?, 1], offset: ?>>, %DV: memref<1x1x?x64xf16, strided<[?, ?, ?, 1], offset: ?>>):
    %key = arith.muli %tile, %ck : index
    %keyEnd = arith.addi %key, %ck : index
    %edge = arith.cmpi sgt, %keyEnd, %nk : index
    %kt = tile.load %K[%b, %kh, %key, %c0] dims [2, 3] : memref<1x1x?x64xf16, strided<[?, ?, ?, 1], offset: ?>> -> !tile.shared<128x64xf16>
    %vt = tile.load %V[%b, %kh, %key, %c0] dims [2, 3] : memref<1x1x?x64xf16, strided<[?, ?, ?, 1], offset: ?>> -> !tile.shared<128x64xf16>
    %dk0 = tile.fill %zero : !tile.fragment<128x64xf32>
    %dv0 = tile.fill %zero : !tile.fragment<128x64xf32>
    %first = arith.divui %key, %cq : index
    %low = arith.muli %first, %cq : index
    %ends:2 = scf.for %g = %c0 to %cg step %c1 iter_args(%dka = %dk0, %dva = %dv0) -> (!tile.fragment<128x64xf32>, !tile.fragment<128x64xf32>) {
      %hg = arith.muli %kh, %cg : index
      %h = arith.addi %hg, %g : index
      %end:2 = scf.for %i0 = %low to %nq step %cq iter_args(%dk = %dka, %dv = %dva) -> (!tile.fragment<128x64xf32>, !tile.fragment<128x64xf32>) {
        %qt = tile.load %Q[%b, %h, %i0, %c0] dims [2, 3] : memref<1x2x?x64xf16, strided<[?, ?, ?, 1], offset: ?>> -> !tile.shared<128x64xf16>
        %s0 = tile.mma %kt, %qt transpose_b : !tile.shared<128x64xf16>, !tile.shared<128x64xf16> -> !tile.fragment<128x128xf32>
        %l = tile.load %L[%b, %h, %i0] dims [2] : memref<1x2x?xf32, strided<[?, ?, 1], offset: ?>> -> !tile.fragment<128xf32>
        %crosses = arith.cmpi slt, %i0, %keyEnd : index
        %partial = arith.ori %crosses, %edge : i1
        %s = scf.if %partial -> (!tile.fragment<128x128xf32>) {
          %m = tile.map ins(%s0 : !tile.fragment<128x128xf32>) {
          ^bb0(%e: f32, %n: index, %i: index):
            %j = arith.addi %key, %n : index
            %ii = arith.addi %i0, %i : index
            %in = arith.cmpi slt, %j, %nk : index
            %keep = arith.cmpi sge, %ii, %j : index
            %both = arith.andi %in, %keep : i1
            %x = arith.select %both, %e, %ninf : f32
            tile.yield %x : f32
          } -> !tile.fragment<128x128xf32>
          scf.yield %m : !tile.fragment<128x128xf32>
        } else {
          scf.yield %s0 : !tile.fragment<128x128xf32>
        }
        %dot = tile.load %DO[%b, %h, %i0, %c0] dims [2, 3] : memref<1x2x?x64xf16, strided<[?, ?, ?, 1], offset: ?>> -> !tile.shared<128x64xf16>
        %dp = tile.mma %vt, %dot transpose_b : !tile.shared<128x64xf16>, !tile.shared<128x64xf16> -> !tile.fragment<128x128xf32>
        %p = tile.map ins(%s : !tile.fragment<128x128xf32>) columns(%l : !tile.fragment<128xf32>) {
        ^bb0(%e: f32, %ll: f32, %n: index, %i: index):
          %c = arith.constant 0.18033688011112042 : f32
          %l2 = arith.constant 1.4426950408889634 : f32
          %u = arith.mulf %e, %c : f32
          %w = arith.mulf %ll, %l2 : f32
          %x = arith.subf %u, %w : f32
          %y = math.exp2 %x : f32
          tile.yield %y : f32
        } -> !tile.fragment<128x128xf32>
        %pn = tile.map ins(%p : !tile.fragment<128x128xf32>) {
        ^bb0(%e: f32, %i: index, %n: index):
          %x = arith.truncf %e : f32 to f16
          tile.yield %x : f16
        } -> !tile.fragment<128x128xf16>
        %dv1 = tile.mma %pn, %dot into %dv : !tile.fragment<128x128xf16>, !tile.shared<128x64xf16>, !tile.fragment<128x64xf32> -> !tile.fragment<128x64xf32>
        %dl = tile.load %D[%b, %h, %i0] dims [2] : memref<1x2x?xf32, strided<[?, ?, 1], offset: ?>> -> !tile.fragment<128xf32>
        %ds = tile.map ins(%p, %dp : !tile.fragment<128x128xf32>, !tile.fragment<128x128xf32>) columns(%dl : !tile.fragment<128xf32>) {
        ^bb0(%pe: f32, %de: f32, %dd: f32, %n: index, %i: index):
          %x = arith.subf %de, %dd : f32
          %y = arith.mulf %pe, %x : f32
          tile.yield %y : f32
        } -> !tile.fragment<128x128xf32>
        %dsn = tile.map ins(%ds : !tile.fragment<128x128xf32>) {
        ^bb0(%e: f32, %i: index, %n: index):
          %x = arith.truncf %e : f32 to f16
          tile.yield %x : f16
        } -> !tile.fragment<128x128xf16>
        %dk1 = tile.mma %dsn, %qt into %dk : !tile.fragment<128x128xf16>, !tile.shared<128x64xf16>, !tile.fragment<128x64xf32> -> !tile.fragment<128x64xf32>
        %dst = tile.to_shared %dsn transposed : !tile.fragment<128x128xf16> -> !tile.shared<128x128xf16>
        %dq = tile.mma %dst, %kt : !tile.shared<128x128xf16>, !tile.shared<128x64xf16> -> !tile.fragment<128x64xf32>
        tile.store add %dq, %DQ[%b, %h, %i0, %c0] dims [2, 3] : !tile.fragment<128x64xf32>, memref<1x2x?x64xf32, strided<[?, ?, ?, 1], offset: ?>>
        scf.yield %dk1, %dv1 : !tile.fragment<128x64xf32>, !tile.fragment<128x64xf32>
      }
      scf.yield %end#0, %end#1 : !tile.fragment<128x64xf32>, !tile.fragment<128x64xf32>
    }
    %dkn = tile.map ins(%ends#0 : !tile.fragment<128x64xf32>) {
    ^bb0(%e: f32, %i: index, %n: index):
      %y = arith.mulf %e, %scale : f32
      %x = arith.truncf %y : f32 to f16
    tile.yield %x : f16
    } -> !tile.fragment<128x64xf16>
    %dvn = tile.map ins(%ends#1 : !tile.fragment<128x64xf32>) {
    ^bb0(%e: f32, %i: index, %n: index):
        %x = arith.truncf %e : f32 to f16
    tile.yield %x : f16
    } -> !tile.fragment<128x64xf16>
    tile.store %dkn, %DK[%b, %kh, %key, %c0] dims [2, 3] : !tile.fragment<128x64xf16>, memref<1x1x?x64xf16, strided<[?, ?, ?, 1], offset: ?>>
    tile.store %dvn, %DV[%b, %kh, %key, %c0] dims [2, 3] : !tile.fragment<128x64xf16>, memref<1x1x?x64xf16, strided<[?, ?, ?, 1], offset: ?>>
  } -> tensor<1x2x?x64xf32>, tensor<1x1x?x64xf16>, tensor<1x1x?x64xf16>
  %dqt = tensor.empty(%nq) : tensor<1x2x?x64xf16>
  %dq = linalg.generic {indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b, c, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%r#0 : tensor<1x2x?x64xf32>) outs(%dqt : tensor<1x2x?x64xf16>) {
  ^bb0(%x: f32, %y: f16):
    %s = arith.mulf %x, %scale : f32
    %n = arith.truncf %s : f32 to f16
    linalg.yield %n : f16
  } -> tensor<1x2x?x64xf16>
  return %dq, %r#1, %r#2 : tensor<1x2x?x64xf16>, tensor<1x1x?x64xf16>, tensor<1x1x?x64xf16>
}
