// Few queries of bf16 beside keys and values of 8 bits: products are those of f16,
// for which rows of queries are multiplied by powers of two. Rows of any size are as
// exact as with bf16, in one tile: huge ones beside tiny ones, and a row of zeros.
//
// DEFINE: %{run} = fovea-run %s --target=sm_90a --simulate --random=1 --check --integers=20:64 --dims=q:2x4x1x64 --dims=k:2x2x300x64 --dims=v:2x2x300x64
// RUN: %{run} --entry=plain --seeds=2 | FileCheck %s
// RUN: %{run} --entry=sized | FileCheck %s
// RUN: fovea-run %s --target=sm_90a --simulate --random=1 --check --integers=20:64 --dims=q:2x2x2x64 --dims=k:2x2x300x64 --dims=v:2x2x300x64 --entry=role | FileCheck %s
// CHECK: check: result 0: max error {{[0-9.e-]+}}, relative {{0.00[0-9]+}} (bound
//
// Products take queries from registers, and keys as f16.
// RUN: fovea-compile %s --target=sm_90a --emit=tile | FileCheck %s --check-prefix=TILE
// TILE-LABEL: func.func @plain(
// TILE: %[[Q:.*]] = tile.from_shared
// TILE-NEXT: tile.release
// TILE: %[[LARGEST:.*]] = tile.reduce max
// TILE: %[[POWERS:.*]] = tile.map ins(%[[LARGEST]] :
// TILE: %[[LEFT:.*]] = tile.map ins(%[[Q]] : {{.*}}) rows(%[[POWERS]] :
// TILE: arith.truncf {{.*}} : f32 to f16
// TILE: %[[BACK:.*]] = tile.map ins(%[[LARGEST]] :
// TILE: %[[S:.*]] = tile.mma mma_sync %[[LEFT]], %{{.*}} from f8E4M3FN transpose_b rows 2 :
// TILE: tile.map ins(%[[S]] : {{.*}}) rows(%[[BACK]] :
// TILE: tile.mma mma_sync %{{.*}}, %{{.*}} from f8E4M3FN into {{.*}}xf16
//
// TILE-LABEL: func.func @role(
// TILE: %[[Q:.*]] = tile.from_shared
// TILE-NEXT: tile.release
// TILE: %[[LARGEST:.*]] = tile.reduce max
// TILE: %[[POWERS:.*]] = tile.map ins(%[[LARGEST]] :
// TILE: %[[LEFT:.*]] = tile.map ins(%[[Q]] : {{.*}}) rows(%[[POWERS]] :
// TILE: arith.truncf {{.*}} : f32 to f16
// TILE: %[[BACK:.*]] = tile.map ins(%[[LARGEST]] :
// TILE: tile.mma_async wgmma %[[LEFT]], %{{.*}} transpose_b rows 2 :
// TILE: %[[S:.*]] = tile.wait_mma
// TILE: tile.map ins(%[[S]] : {{.*}}) rows(%[[BACK]] :
// TILE: tile.mma_async wgmma %{{.*}}, %{{.*}} into {{.*}}xf16
//
// Many queries leave no registers for that: their products are those of bf16.
// TILE-LABEL: func.func @many(
// TILE-NOT: tile.from_shared
// TILE-NOT: xf16
// TILE: return

#all = affine_map<(b, h, j, d) -> (b, h, j, d)>
!bytes = tensor<?x2x?x64xi8>
!wide = tensor<?x2x?x64xbf16>

func.func private @widen(%bytes: !bytes) -> !wide {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %batch = tensor.dim %bytes, %c0 : !bytes
  %length = tensor.dim %bytes, %c2 : !bytes
  %room = tensor.empty(%batch, %length) : !wide
  %wide = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%bytes : !bytes) outs(%room : !wide) {
  ^bb0(%byte: i8, %unused: bf16):
    %small = arith.bitcast %byte : i8 to f8E4M3FN
    %x = arith.extf %small : f8E4M3FN to bf16
    linalg.yield %x : bf16
  } -> !wide
  return %wide : !wide
}

func.func @plain(%q: tensor<?x4x1x64xbf16>, %k: !bytes, %v: !bytes) -> tensor<?x4x1x64xbf16> {
  %keys = func.call @widen(%k) : (!bytes) -> !wide
  %values = func.call @widen(%v) : (!bytes) -> !wide
  %o = attn.attention %q, %keys, %values scale(0.125) : tensor<?x4x1x64xbf16>, !wide, !wide -> tensor<?x4x1x64xbf16>
  return %o : tensor<?x4x1x64xbf16>
}

// Widened by a role.
func.func @role(%q: tensor<?x2x2x64xbf16>, %k: !bytes, %v: !bytes) -> tensor<?x2x2x64xbf16> {
  %keys = func.call @widen(%k) : (!bytes) -> !wide
  %values = func.call @widen(%v) : (!bytes) -> !wide
  %o = attn.attention %q, %keys, %values scale(0.125)
      {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 3, widen = 4>} : tensor<?x2x2x64xbf16>, !wide, !wide -> tensor<?x2x2x64xbf16>
  return %o : tensor<?x2x2x64xbf16>
}

// Queries of head 0 times 2^90, of head 1 times 2^-90, of head 2 times 0; scores
// as without.
func.func @sized(%q: tensor<?x4x1x64xbf16>, %k: !bytes, %v: !bytes) -> tensor<?x4x1x64xbf16> {
  %c0 = arith.constant 0 : index
  %keys = func.call @widen(%k) : (!bytes) -> !wide
  %values = func.call @widen(%v) : (!bytes) -> !wide
  %batch = tensor.dim %q, %c0 : tensor<?x4x1x64xbf16>
  %room = tensor.empty(%batch) : tensor<?x4x1x64xbf16>
  %factors = arith.constant dense<[1.2379400392853803e+27, 8.0779356694631609e-28, 0.0, 1.2379400392853803e+27]> : tensor<4xbf16>
  %sized = linalg.generic {indexing_maps = [#all, affine_map<(b, h, j, d) -> (h)>, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%q, %factors : tensor<?x4x1x64xbf16>, tensor<4xbf16>) outs(%room : tensor<?x4x1x64xbf16>) {
  ^bb0(%x: bf16, %factor: bf16, %unused: bf16):
    %y = arith.mulf %x, %factor : bf16
    linalg.yield %y : bf16
  } -> tensor<?x4x1x64xbf16>
  %backs = arith.constant dense<[8.0779356694631609e-28, 1.2379400392853803e+27, 1.0, 8.0779356694631609e-28]> : tensor<4xf32>
  %o = attn.attention %sized, %keys, %values scale(0.125)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %back = tensor.extract %backs[%h] : tensor<4xf32>
        %t = arith.mulf %s, %back : f32
        attn.yield %t : f32
      } : tensor<?x4x1x64xbf16>, !wide, !wide -> tensor<?x4x1x64xbf16>
  return %o : tensor<?x4x1x64xbf16>
}

func.func @many(%q: tensor<?x4x64x64xbf16>, %k: !bytes, %v: !bytes) -> tensor<?x4x64x64xbf16> {
  %keys = func.call @widen(%k) : (!bytes) -> !wide
  %values = func.call @widen(%v) : (!bytes) -> !wide
  %o = attn.attention %q, %keys, %values scale(0.125) : tensor<?x4x64x64xbf16>, !wide, !wide -> tensor<?x4x64x64xbf16>
  return %o : tensor<?x4x64x64xbf16>
}
