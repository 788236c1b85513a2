// RUN: fovea-opt %s --attn-online-softmax --attn-tile='fuse-producers=false fuse-consumers=false' --convert-attn-to-tile --canonicalize --cse | FileCheck %s

// With `widen`, bytes are loaded and widened in the program; without it, ops in front
// write what they are widened to.

#each = {indexing_maps = [affine_map<(b, h, j, d) -> (b, h, j, d)>, affine_map<(b, h, j, d) -> (b, h, j, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}

// CHECK-LABEL: func @in_the_program
// CHECK-NOT:     linalg.generic
// CHECK:         tile.launch
// CHECK:           %[[KB:.*]] = tile.load {{.*}} runs 1 {
// CHECK:             tile.yield
// CHECK:           } : memref<2x2x256x64xi8, {{.*}}> -> !tile.shared<64x64xi8>
// CHECK:           %[[K:.*]] = tile.widen %[[KB]] from f8E4M3FN warps 8 : !tile.shared<64x64xi8> -> !tile.shared<64x64xf16>
// Of a tile of 64 rows 4 are queries.
// CHECK:           tile.mma %{{.*}}, %[[K]] transpose_b rows 4 :
// CHECK:           %[[VB:.*]] = tile.load {{.*}} runs 1 {
// CHECK:           } : memref<2x2x256x64xi8, {{.*}}> -> !tile.shared<64x64xi8>
// CHECK:           %[[V:.*]] = tile.widen %[[VB]] from f8E4M3FN warps 8
// CHECK:           tile.mma %{{.*}}, %[[V]] into %{{.*}} :
func.func @in_the_program(%q: tensor<2x2x4x64xf16>, %ks: tensor<2x2x256x64xi8>, %vs: tensor<2x2x256x64xi8>) -> tensor<2x2x4x64xf16> {
  %e = tensor.empty() : tensor<2x2x256x64xf16>
  %k = linalg.generic #each ins(%ks : tensor<2x2x256x64xi8>) outs(%e : tensor<2x2x256x64xf16>) {
  ^bb0(%bits: i8, %x: f16):
    %small = arith.bitcast %bits : i8 to f8E4M3FN
    %y = arith.extf %small : f8E4M3FN to f16
    linalg.yield %y : f16
  } -> tensor<2x2x256x64xf16>
  %v = linalg.generic #each ins(%vs : tensor<2x2x256x64xi8>) outs(%e : tensor<2x2x256x64xf16>) {
  ^bb0(%bits: i8, %x: f16):
    %small = arith.bitcast %bits : i8 to f8E4M3FN
    %y = arith.extf %small : f8E4M3FN to f16
    linalg.yield %y : f16
  } -> tensor<2x2x256x64xf16>
  %o = attn.attention %q, %k, %v scale(0.125) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, widen = 8>} : tensor<2x2x4x64xf16>, tensor<2x2x256x64xf16>, tensor<2x2x256x64xf16> -> tensor<2x2x4x64xf16>
  return %o : tensor<2x2x4x64xf16>
}

// With `widen = products` the products do. Warps share keys here: they exchange the
// maxima of their own, and, in the end, sums.
// CHECK-LABEL: func @in_products
// CHECK-NOT:     linalg.generic
// CHECK:         tile.launch
// CHECK:           %[[Q:.*]] = tile.from_shared
// CHECK:           scf.for
// CHECK:             %[[KB:.*]] = tile.load {{.*}} runs 1 {
// CHECK:             %[[S:.*]] = tile.mma %[[Q]], %[[KB]] from f8E4M3FN transpose_b rows 4 :
// CHECK:             %[[OWN:.*]] = tile.reduce max %{{.*}}, %{{.*}} dim 1 neighbors : !tile.fragment<16x64xf32> -> !tile.fragment<16x4xf32>
// CHECK:             %[[TILE:.*]] = tile.to_shared %[[OWN]]
// CHECK:             %[[ALL:.*]] = tile.from_shared %[[TILE]]
// CHECK:             tile.reduce max %[[ALL]], %{{.*}} dim 1 : !tile.fragment<16x4xf32> -> !tile.fragment<16xf32>
// CHECK:             tile.reduce add %{{.*}}, %{{.*}} dim 1 neighbors : !tile.fragment<16x64xf32> -> !tile.fragment<16x4xf32>
// CHECK:             %[[VB:.*]] = tile.load {{.*}} runs 1 {
// CHECK:             tile.mma %{{.*}}, %[[VB]] from f8E4M3FN into %{{.*}} :
// CHECK:           %[[SUMS:.*]] = tile.to_shared
// CHECK:           %[[ROW:.*]] = tile.from_shared %[[SUMS]]
// CHECK:           tile.reduce add %[[ROW]],
// CHECK-NOT:       tile.widen
func.func @in_products(%q: tensor<2x2x4x64xf16>, %ks: tensor<2x2x256x64xi8>, %vs: tensor<2x2x256x64xi8>) -> tensor<2x2x4x64xf16> {
  %e = tensor.empty() : tensor<2x2x256x64xf16>
  %k = linalg.generic #each ins(%ks : tensor<2x2x256x64xi8>) outs(%e : tensor<2x2x256x64xf16>) {
  ^bb0(%bits: i8, %x: f16):
    %small = arith.bitcast %bits : i8 to f8E4M3FN
    %y = arith.extf %small : f8E4M3FN to f16
    linalg.yield %y : f16
  } -> tensor<2x2x256x64xf16>
  %v = linalg.generic #each ins(%vs : tensor<2x2x256x64xi8>) outs(%e : tensor<2x2x256x64xf16>) {
  ^bb0(%bits: i8, %x: f16):
    %small = arith.bitcast %bits : i8 to f8E4M3FN
    %y = arith.extf %small : f8E4M3FN to f16
    linalg.yield %y : f16
  } -> tensor<2x2x256x64xf16>
  %o = attn.attention %q, %k, %v scale(0.125) {schedule = #attn.schedule<tile = 16x64, order = linear, warps = 4, stages = 2, widen = products>} : tensor<2x2x4x64xf16>, tensor<2x2x256x64xf16>, tensor<2x2x256x64xf16> -> tensor<2x2x4x64xf16>
  return %o : tensor<2x2x4x64xf16>
}

// CHECK-LABEL: func @in_front
// CHECK-COUNT-2: linalg.generic
// CHECK:         tile.launch
// CHECK-NOT:       tile.widen
func.func @in_front(%q: tensor<2x2x4x64xf16>, %ks: tensor<2x2x256x64xi8>, %vs: tensor<2x2x256x64xi8>) -> tensor<2x2x4x64xf16> {
  %e = tensor.empty() : tensor<2x2x256x64xf16>
  %k = linalg.generic #each ins(%ks : tensor<2x2x256x64xi8>) outs(%e : tensor<2x2x256x64xf16>) {
  ^bb0(%bits: i8, %x: f16):
    %small = arith.bitcast %bits : i8 to f8E4M3FN
    %y = arith.extf %small : f8E4M3FN to f16
    linalg.yield %y : f16
  } -> tensor<2x2x256x64xf16>
  %v = linalg.generic #each ins(%vs : tensor<2x2x256x64xi8>) outs(%e : tensor<2x2x256x64xf16>) {
  ^bb0(%bits: i8, %x: f16):
    %small = arith.bitcast %bits : i8 to f8E4M3FN
    %y = arith.extf %small : f8E4M3FN to f16
    linalg.yield %y : f16
  } -> tensor<2x2x256x64xf16>
  %o = attn.attention %q, %k, %v scale(0.125) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>} : tensor<2x2x4x64xf16>, tensor<2x2x256x64xf16>, tensor<2x2x256x64xf16> -> tensor<2x2x4x64xf16>
  return %o : tensor<2x2x4x64xf16>
}
