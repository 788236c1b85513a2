// Products of f32 become six of parts in bf16. The parts of a tensor are computed in
// front, once, and those of a fragment from its elements.

// RUN: fovea-opt %s --split-input-file --tile-split-products | FileCheck %s
// RUN: fovea-opt %s --split-input-file --tile-split-products --tile-assign-layouts \
// RUN:   | FileCheck %s --check-prefix=LAYOUTS
// RUN: fovea-opt %s --split-input-file --tile-split-products --tile-assign-layouts \
// RUN:   --tile-multibuffer --tile-schedule | FileCheck %s --check-prefix=CHAIN

!g = memref<64x64xf32, strided<[?, 1], offset: ?>>

// CHECK-LABEL: @products
// CHECK-SAME: (%[[Q:.*]]: tensor<64x64xf32>, %[[K:.*]]: tensor<64x64xf32>, %[[E:.*]]: tensor<64x64xf32>)
// CHECK: %[[PARTS:.*]]:3 = linalg.generic {{.*}} ins(%[[Q]] : tensor<64x64xf32>) outs({{.*}} : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>)
// CHECK: ^bb0(%[[X:.*]]: f32, {{.*}}):
// CHECK: math.absf %[[X]]
// CHECK: arith.minnumf
// CHECK: math.copysign
// CHECK: %[[FIRST:.*]] = arith.truncf {{.*}} : f32 to bf16
// CHECK: %[[WIDE:.*]] = arith.extf %[[FIRST]]
// CHECK: %[[REST:.*]] = arith.subf %[[X]], %[[WIDE]]
// CHECK: %[[SECOND:.*]] = arith.truncf %[[REST]]
// CHECK: %[[WIDE2:.*]] = arith.extf %[[SECOND]]
// CHECK: %[[REST2:.*]] = arith.subf %[[REST]], %[[WIDE2]]
// CHECK: %[[THIRD:.*]] = arith.truncf %[[REST2]]
// CHECK: arith.select {{.*}}, %[[FIRST]],
// CHECK: arith.select {{.*}}, %[[SECOND]],
// CHECK: arith.select {{.*}}, %[[THIRD]],
// CHECK: %[[OTHER:.*]]:3 = linalg.generic {{.*}} ins(%[[K]] :
// CHECK-NOT: linalg.generic
// CHECK: tile.launch grid({{.*}}) warps 4 ins(%[[Q]], %[[K]], %[[PARTS]]#0, %[[PARTS]]#1, %[[PARTS]]#2, %[[OTHER]]#0, %[[OTHER]]#1, %[[OTHER]]#2 :
// CHECK: ^bb0(%{{.*}}: index, %{{.*}}: memref<64x64xf32, {{.*}}>, %{{.*}}: memref<64x64xf32, {{.*}}>, %[[A1:.*]]: memref<64x64xbf16, {{.*}}>, %[[A2:.*]]: memref<{{.*}}>, %[[A3:.*]]: memref<{{.*}}>, %[[B1:.*]]: memref<{{.*}}>, %[[B2:.*]]: memref<{{.*}}>, %[[B3:.*]]: memref<{{.*}}>, %{{.*}}: memref<64x64xf32, {{.*}}>)
// CHECK: %[[a1:.*]] = tile.load %[[A1]]{{.*}} -> !tile.shared<64x64xbf16>
// CHECK: %[[a2:.*]] = tile.load %[[A2]]
// CHECK: %[[a3:.*]] = tile.load %[[A3]]
// CHECK: %[[b1:.*]] = tile.load %[[B1]]
// CHECK: %[[b2:.*]] = tile.load %[[B2]]
// CHECK: %[[b3:.*]] = tile.load %[[B3]]
// CHECK-NOT: tile.load
// The smallest first.
// CHECK: %[[S0:.*]] = tile.mma %[[a3]], %[[b1]] transpose_b
// CHECK: %[[S1:.*]] = tile.mma %[[a1]], %[[b3]] into %[[S0]] transpose_b
// CHECK: %[[S2:.*]] = tile.mma %[[a2]], %[[b2]] into %[[S1]] transpose_b
// CHECK: %[[S3:.*]] = tile.mma %[[a2]], %[[b1]] into %[[S2]] transpose_b
// CHECK: %[[S4:.*]] = tile.mma %[[a1]], %[[b2]] into %[[S3]] transpose_b
// CHECK: %[[S5:.*]] = tile.mma %[[a1]], %[[b1]] into %[[S4]] transpose_b
// CHECK: %[[p1:.*]] = tile.map ins(%[[S5]] :
// CHECK-NEXT: ^bb0(%[[P:.*]]: f32,
// CHECK-NEXT: %[[T:.*]] = arith.truncf %[[P]] : f32 to bf16
// CHECK-NEXT: tile.yield %[[T]] : bf16
// CHECK: %[[p2:.*]] = tile.map ins(%[[S5]] :
// CHECK: arith.subf
// CHECK: %[[p3:.*]] = tile.map ins(%[[S5]] :
// An accumulator of their own.
// CHECK: %[[V0:.*]] = tile.mma %[[p3]], %[[b1]] : !tile.fragment<64x64xbf16>
// CHECK: %[[V5:.*]] = tile.mma %[[p1]], %[[b1]] into
// CHECK: tile.map ins(%{{.*}}, %[[V5]] :
// CHECK: arith.addf

// LAYOUTS-LABEL: @products
// LAYOUTS-COUNT-12: tile.mma wgmma
// LAYOUTS-NOT: tile.mma
// LAYOUTS-LABEL: @others
// LAYOUTS: tile.mma fma

// Of six products in flight one is waited for, and slots are released behind it.
// CHAIN-LABEL: @products
// CHAIN: %[[T0:.*]] = tile.mma_async wgmma %{{.*}}, %{{.*}} transpose_b
// CHAIN: %[[T1:.*]] = tile.mma_async wgmma %{{.*}}, %{{.*}} into %[[T0]]
// CHAIN: %[[T2:.*]] = tile.mma_async wgmma %{{.*}}, %{{.*}} into %[[T1]]
// CHAIN: %[[T3:.*]] = tile.mma_async wgmma %{{.*}}, %{{.*}} into %[[T2]]
// CHAIN: %[[T4:.*]] = tile.mma_async wgmma %{{.*}}, %{{.*}} into %[[T3]]
// CHAIN-NOT: tile.wait_mma
// CHAIN-NOT: tile.release
// CHAIN: %[[T5:.*]] = tile.mma_async wgmma %{{.*}}, %{{.*}} into %[[T4]]
// CHAIN: tile.wait_mma %[[T5]]
func.func @products(%q: tensor<64x64xf32>, %k: tensor<64x64xf32>, %e: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %r = tile.launch grid(%c1) warps 4 parts 3 ins(%q, %k : tensor<64x64xf32>, tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) {
  ^bb0(%i: index, %Q: !g, %K: !g, %O: !g):
    %a = tile.load %Q[%c0, %c0] dims [0, 1] : !g -> !tile.shared<64x64xf32>
    %b = tile.load %K[%c0, %c0] dims [0, 1] : !g -> !tile.shared<64x64xf32>
    %s = tile.mma %a, %b transpose_b : !tile.shared<64x64xf32>, !tile.shared<64x64xf32> -> !tile.fragment<64x64xf32>
    %start = tile.fill %zero : !tile.fragment<64x64xf32>
    %o = tile.mma %s, %b into %start : !tile.fragment<64x64xf32>, !tile.shared<64x64xf32>, !tile.fragment<64x64xf32> -> !tile.fragment<64x64xf32>
    tile.store %o, %O[%c0, %c0] dims [0, 1] : !tile.fragment<64x64xf32>, !g
  } -> tensor<64x64xf32>
  return %r : tensor<64x64xf32>
}

// -----

// Without `parts`, and of other types, products stay.

!g = memref<64x64xf32, strided<[?, 1], offset: ?>>
!h = memref<64x64xf16, strided<[?, 1], offset: ?>>

// CHECK-LABEL: @others
// CHECK-NOT: linalg.generic
// CHECK: tile.mma {{.*}} : !tile.shared<64x64xf32>
// CHECK: tile.mma {{.*}} : !tile.shared<64x64xf16>
// CHECK-NOT: tile.mma
func.func @others(%q: tensor<64x64xf32>, %k: tensor<64x64xf16>, %e: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = tile.launch grid(%c1) warps 4 ins(%q : tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) {
  ^bb0(%i: index, %Q: !g, %O: !g):
    %a = tile.load %Q[%c0, %c0] dims [0, 1] : !g -> !tile.shared<64x64xf32>
    %s = tile.mma %a, %a transpose_b : !tile.shared<64x64xf32>, !tile.shared<64x64xf32> -> !tile.fragment<64x64xf32>
    tile.store %s, %O[%c0, %c0] dims [0, 1] : !tile.fragment<64x64xf32>, !g
  } -> tensor<64x64xf32>
  %t = tile.launch grid(%c1) warps 4 parts 3 ins(%k : tensor<64x64xf16>) outs(%e : tensor<64x64xf32>) {
  ^bb0(%i: index, %K: !h, %O: !g):
    %a = tile.load %K[%c0, %c0] dims [0, 1] : !h -> !tile.shared<64x64xf16>
    %s = tile.mma %a, %a transpose_b : !tile.shared<64x64xf16>, !tile.shared<64x64xf16> -> !tile.fragment<64x64xf32>
    tile.store %s, %O[%c0, %c0] dims [0, 1] : !tile.fragment<64x64xf32>, !g
  } -> tensor<64x64xf32>
  return %r, %t : tensor<64x64xf32>, tensor<64x64xf32>
}
