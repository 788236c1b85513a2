// RUN: fovea-opt %s --attn-online-softmax --attn-tile=fuse-producers=false --convert-attn-to-tile --canonicalize --cse --split-input-file | FileCheck %s

// A gate, and what makes it, are one map. It is loaded before the output is computed;
// what a second op reads is not. Only the last result is stored.

// CHECK-LABEL: func @gated
// CHECK:       tile.launch
// CHECK-NEXT:  ^bb0(%[[I:[^:]*]]: index, %[[H:[^:]*]]: index, %[[B:[^:]*]]: index, %{{[^:]*}}: memref<{{[^%]*}}, %[[G:[^:]*]]: memref<{{[^%]*}}, %[[R:[^:]*]]: memref<{{[^%]*}}, %[[OUT:[^:]*]]: memref<
// CHECK:         scf.for
// CHECK:         tile.mma {{.*}} into
// CHECK:         %[[GT:.*]] = tile.load %[[G]][%c0, %[[H]], %{{.*}}, %c0] dims [2, 3] : {{.*}} -> !tile.fragment<64x16xbf16>
// CHECK:         %[[O:.*]] = tile.map ins({{.*}}) rows(
// CHECK:           arith.truncf
// CHECK:         %[[Y:.*]] = tile.map exact ins(%[[O]], %[[GT]] : !tile.fragment<64x16xbf16>, !tile.fragment<64x16xbf16>) {
// CHECK-NEXT:    ^bb0(%[[X:[^:]*]]: bf16, %[[A:[^:]*]]: bf16, %{{.*}}: index, %{{.*}}: index):
// CHECK-NEXT:      %[[T:.*]] = math.tanh %[[A]] : bf16
// CHECK-NEXT:      %[[M:.*]] = arith.mulf %[[X]], %[[T]] : bf16
// CHECK-NEXT:      tile.yield %[[M]]
// CHECK:         %[[RT:.*]] = tile.load %[[R]][%c0, %{{.*}}, %[[H]], %c0] dims [1, 3] : {{.*}} -> !tile.fragment<64x16xbf16>
// CHECK:         %[[Z:.*]] = tile.map exact ins(%[[Y]], %[[RT]] :
// CHECK:           arith.addf
// CHECK-NOT:     tile.store
// CHECK:         tile.store %[[Z]], %[[OUT]][%c0, %{{.*}}, %[[H]], %c0] dims [1, 3]
// CHECK-NOT:     tile.store
func.func @gated(%x: tensor<1x2x128x16xbf16>, %g: tensor<1x2x128x16xbf16>, %r: tensor<1x128x2x16xbf16>) -> tensor<1x128x2x16xbf16> {
  %e = tensor.empty() : tensor<1x2x128x16xbf16>
  %o = attn.attention %x, %x, %x scale(0.25) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>}
    : tensor<1x2x128x16xbf16>, tensor<1x2x128x16xbf16>, tensor<1x2x128x16xbf16> -> tensor<1x2x128x16xbf16>
  %s = linalg.tanh ins(%g : tensor<1x2x128x16xbf16>) outs(%e : tensor<1x2x128x16xbf16>) -> tensor<1x2x128x16xbf16>
  %y = linalg.mul ins(%o, %s : tensor<1x2x128x16xbf16>, tensor<1x2x128x16xbf16>) outs(%e : tensor<1x2x128x16xbf16>) -> tensor<1x2x128x16xbf16>
  %f = tensor.empty() : tensor<1x128x2x16xbf16>
  %t = linalg.transpose ins(%y : tensor<1x2x128x16xbf16>) outs(%f : tensor<1x128x2x16xbf16>) permutation = [0, 2, 1, 3]
  %z = linalg.add ins(%t, %r : tensor<1x128x2x16xbf16>, tensor<1x128x2x16xbf16>) outs(%f : tensor<1x128x2x16xbf16>) -> tensor<1x128x2x16xbf16>
  return %z : tensor<1x128x2x16xbf16>
}

// -----

// Numbers of heads, rows and features are read by the map, and so are booleans; the
// last row of a tensor that ends within the tile is read again. An index is that of
// the whole, a scalar comes from outside, and a fill is its number. The log-sum-exp
// is one number for each row, its op a map of rows. The output is stored as well.

// CHECK-LABEL: func @broadcast
// CHECK-SAME:    %[[S:[^:]*]]: f32)
// CHECK:       %[[TWO:.*]] = arith.constant 2.000000e+00 : f32
// CHECK:       tile.launch
// CHECK-NEXT:  ^bb0(%[[I:[^:]*]]: index, %[[H:[^:]*]]: index, %[[B:[^:]*]]: index, %{{[^:]*}}: memref<{{[^%]*}}, %[[OFHEAD:[^:]*]]: memref<{{[^%]*}}, %[[OFROW:[^:]*]]: memref<{{[^%]*}}, %[[KEEP:[^:]*]]: memref<{{[^%]*}}, %[[OFFEATURE:[^:]*]]: memref<
// CHECK:         %[[R0:.*]] = arith.muli %[[I]], %c64
// CHECK:         scf.for
// CHECK:         tile.mma {{.*}} into
// CHECK:         %[[O:.*]] = tile.map ins({{.*}}) rows(
// CHECK:         tile.store %[[O]]
// CHECK:         %[[LSE:.*]] = tile.map ins(
// CHECK:         %[[Y:.*]] = tile.map exact ins(%[[O]] : !tile.fragment<64x32xbf16>) rows(%[[LSE]] : !tile.fragment<64xf32>) {
// CHECK-NEXT:    ^bb0(%[[A:[^:]*]]: bf16, %[[L:[^:]*]]: f32, %[[ROW:[^:]*]]: index, %[[COLUMN:[^:]*]]: index):
// CHECK:           %[[H0:.*]] = memref.load %[[OFHEAD]][%[[H]]]
// CHECK:           %[[AT:.*]] = arith.addi %{{.*}}, %[[ROW]]
// CHECK:           %[[LAST:.*]] = arith.minsi %[[AT]], %c99
// CHECK:           %[[H1:.*]] = memref.load %[[OFROW]][%c0, %[[H]], %[[LAST]]]
// CHECK:           %[[FEATURE:.*]] = arith.minsi %[[COLUMN]], %c23
// CHECK:           %[[H2:.*]] = memref.load %[[OFFEATURE]][%[[FEATURE]]]
// CHECK:           memref.load %[[KEEP]][%c0, %[[H]], %[[LAST]], %[[FEATURE]]]
// CHECK:           affine.apply {{.*}}[%[[ROW]]]
// CHECK:           arith.addf %{{.*}}, %[[TWO]]
// CHECK:           arith.addf %{{.*}}, %[[S]]
// CHECK:         tile.store %[[Y]], {{.*}} : !tile.fragment<64x32xf32>
// CHECK:         %[[E:.*]] = tile.map exact ins(%[[LSE]] : !tile.fragment<64xf32>) {
// CHECK:           math.exp
// CHECK:         tile.store %[[E]], {{.*}} dims [2]
#id = affine_map<(b, h, i, d) -> (b, h, i, d)>
#rows = affine_map<(b, h, i, d) -> (b, h, i)>
#head = affine_map<(b, h, i, d) -> (h)>
#features = affine_map<(b, h, i, d) -> (d)>
#none = affine_map<(b, h, i, d) -> ()>
!t = tensor<1x2x100x24xbf16>
!w = tensor<1x2x100x24xf32>
!l = tensor<1x2x100xf32>
func.func @broadcast(%q: !t, %h: tensor<2xf32>, %r: !l, %f: tensor<24xf32>, %m: tensor<1x2x100x24xi1>, %s: f32) -> (!w, !t, !l) {
  %two = arith.constant 2.0 : f32
  %o, %lse = attn.attention %q, %q, %q scale(0.25) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>} : !t, !t, !t -> !t, !l
  %e = tensor.empty() : !w
  %twos = linalg.fill ins(%two : f32) outs(%e : !w) -> !w
  %y = linalg.generic {indexing_maps = [#id, #rows, #head, #rows, #features, #id, #id, #none, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%o, %lse, %h, %r, %f, %m, %twos, %s : !t, !l, tensor<2xf32>, !l, tensor<24xf32>, tensor<1x2x100x24xi1>, !w, f32) outs(%e : !w) {
  ^bb0(%a: bf16, %b: f32, %ofHead: f32, %ofRow: f32, %ofFeature: f32, %keep: i1, %fill: f32, %scalar: f32, %out: f32):
    %i = linalg.index 2 : index
    %int = arith.index_cast %i : index to i32
    %place = arith.sitofp %int : i32 to f32
    %0 = arith.extf %a : bf16 to f32
    %1 = arith.addf %0, %b : f32
    %2 = arith.addf %1, %ofHead : f32
    %3 = arith.addf %2, %ofRow : f32
    %4 = arith.addf %3, %ofFeature : f32
    %5 = arith.select %keep, %4, %0 : f32
    %6 = arith.addf %5, %fill : f32
    %7 = arith.addf %6, %scalar : f32
    %8 = arith.addf %7, %place : f32
    linalg.yield %8 : f32
  } -> !w
  %g = tensor.empty() : !l
  %x = linalg.exp ins(%lse : !l) outs(%g : !l) -> !l
  return %y, %o, %x : !w, !t, !l
}
