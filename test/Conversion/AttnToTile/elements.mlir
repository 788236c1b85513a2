// RUN: fovea-opt %s --attn-online-softmax --attn-tile="fuse-producers=false all-consumers" --convert-attn-to-tile --canonicalize --cse --split-input-file | FileCheck %s --check-prefixes=CHECK,APPROXIMATE
// RUN: fovea-opt %s --attn-online-softmax --attn-tile="fuse-producers=false all-consumers" --convert-attn-to-tile=exact-functions --canonicalize --cse --split-input-file | FileCheck %s --check-prefixes=CHECK,EXACT --implicit-check-not='fastmath<afn>'

// A gate, and what makes it, are one map. It is loaded before the output is computed;
// what a second op reads is not. Only the last result is stored. Of bf16, tanh may be
// the machine's.

// CHECK-LABEL: func @gated
// CHECK:       tile.launch
// CHECK-NEXT:  ^bb0(%[[I:[^:]*]]: index, %[[H:[^:]*]]: index, %[[B:[^:]*]]: index, %{{[^:]*}}: memref<{{[^%]*}}, %[[G:[^:]*]]: memref<{{[^%]*}}, %[[R:[^:]*]]: memref<{{[^%]*}}, %[[OUT:[^:]*]]: memref<
// CHECK:         scf.for
// CHECK:         tile.mma {{.*}} into
// CHECK:         %[[GT:.*]] = tile.load %[[G]][%c0, %[[H]], %{{.*}}, %c0] dims [2, 3] : {{.*}} -> !tile.fragment<64x16xbf16>
// CHECK:         %[[ACC:.*]] = scf.if
// CHECK:         } else {
// CHECK:         %[[O:.*]] = tile.map ins(%[[ACC]] : {{.*}}) rows(
// CHECK:           arith.truncf
// CHECK:         %[[Y:.*]] = tile.map exact ins(%[[O]], %[[GT]] : !tile.fragment<64x16xbf16>, !tile.fragment<64x16xbf16>) {
// CHECK-NEXT:    ^bb0(%[[X:[^:]*]]: bf16, %[[A:[^:]*]]: bf16, %{{.*}}: index, %{{.*}}: index):
// APPROXIMATE-NEXT: %[[T:.*]] = math.tanh %[[A]] fastmath<afn> : bf16
// EXACT-NEXT:      %[[T:.*]] = math.tanh %[[A]] : bf16
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
// CHECK:         %[[ACC:.*]] = scf.if
// CHECK:         } else {
// CHECK:         %[[O:.*]] = tile.map ins(%[[ACC]] : {{.*}}) rows(
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

// -----

// Functions may be the machine's where their results are rounded to 16 bits, by the op
// or by one that alone reads it, besides tanh where that is f16. They are exact where
// f32 is stored, and so are others.

// CHECK-LABEL: func @rounded
// CHECK:       tile.map exact ins(%{{.*}}, %{{.*}} : !tile.fragment<64x16xf16>
// APPROXIMATE:   math.exp %{{[^ ]*}} fastmath<afn> : f32
// APPROXIMATE:   arith.divf %{{[^ ]*}}, %{{[^ ]*}} fastmath<afn> : f32
// APPROXIMATE:   math.tanh %{{[^ ]*}} : f32
// APPROXIMATE:   math.log %{{[^ ]*}} : f32
// EXACT:         math.exp %{{[^ ]*}} : f32
// EXACT:         arith.divf %{{[^ ]*}}, %{{[^ ]*}} : f32
// CHECK:         tile.yield
// CHECK:       tile.map exact
// CHECK:         arith.truncf
// CHECK:       tile.store
#id = affine_map<(b, h, i, d) -> (b, h, i, d)>
!t = tensor<1x2x128x16xf16>
!w = tensor<1x2x128x16xf32>
func.func @rounded(%q: !t, %g: !t) -> !t {
  %o = attn.attention %q, %q, %q scale(0.25) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>} : !t, !t, !t -> !t
  %e = tensor.empty() : !w
  %y = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%o, %g : !t, !t) outs(%e : !w) {
  ^bb0(%a: f16, %b: f16, %out: f32):
    %0 = arith.extf %a : f16 to f32
    %1 = arith.extf %b : f16 to f32
    %2 = math.exp %1 : f32
    %3 = arith.divf %0, %2 : f32
    %4 = math.tanh %3 : f32
    %5 = math.log %4 : f32
    linalg.yield %5 : f32
  } -> !w
  %f = tensor.empty() : !t
  %z = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%y : !w) outs(%f : !t) {
  ^bb0(%a: f32, %out: f16):
    %0 = arith.truncf %a : f32 to f16
    linalg.yield %0 : f16
  } -> !t
  return %z : !t
}

// -----

// CHECK-LABEL: func @wide
// CHECK:       tile.map exact ins(%{{.*}}, %{{.*}} : !tile.fragment<64x16xbf16>
// CHECK:         math.exp %{{[^ ]*}} : f32
// CHECK:         arith.divf %{{[^ ]*}}, %{{[^ ]*}} : f32
// CHECK:         math.tanh %{{[^ ]*}} : f32
#id = affine_map<(b, h, i, d) -> (b, h, i, d)>
!t = tensor<1x2x128x16xbf16>
!w = tensor<1x2x128x16xf32>
func.func @wide(%q: !t, %g: !t) -> !w {
  %o = attn.attention %q, %q, %q scale(0.25) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>} : !t, !t, !t -> !t
  %e = tensor.empty() : !w
  %y = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%o, %g : !t, !t) outs(%e : !w) {
  ^bb0(%a: bf16, %b: bf16, %out: f32):
    %0 = arith.extf %a : bf16 to f32
    %1 = arith.extf %b : bf16 to f32
    %2 = math.exp %1 : f32
    %3 = arith.divf %0, %2 : f32
    %4 = math.tanh %3 : f32
    linalg.yield %4 : f32
  } -> !w
  return %y : !w
}

// -----

// The error of the machine's tanh is relative to it: it may be a factor, but what is
// left of it in a sum has to be right, too.

// CHECK-LABEL: func @factor
// CHECK:       tile.map exact ins(%{{.*}}, %{{.*}} : !tile.fragment<64x16xbf16>
// APPROXIMATE:   %[[T:.*]] = math.tanh %{{[^ ]*}} fastmath<afn> : f32
// EXACT:         %[[T:.*]] = math.tanh %{{[^ ]*}} : f32
// CHECK:         arith.mulf %{{.*}}, %[[T]]
// CHECK:         %[[U:.*]] = math.tanh %{{[^ ]*}} : f32
// CHECK:         arith.addf %[[U]]
#id = affine_map<(b, h, i, d) -> (b, h, i, d)>
!t = tensor<1x2x128x16xbf16>
func.func @factor(%q: !t, %g: !t) -> !t {
  %o = attn.attention %q, %q, %q scale(0.25) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>} : !t, !t, !t -> !t
  %e = tensor.empty() : !t
  %y = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%o, %g : !t, !t) outs(%e : !t) {
  ^bb0(%a: bf16, %b: bf16, %out: bf16):
    %one = arith.constant 1.0 : f32
    %0 = arith.extf %a : bf16 to f32
    %1 = arith.extf %b : bf16 to f32
    %2 = math.tanh %1 : f32
    %3 = arith.mulf %0, %2 : f32
    %4 = arith.truncf %3 : f32 to bf16
    %5 = math.tanh %0 : f32
    %6 = arith.addf %5, %one : f32
    %7 = arith.truncf %6 : f32 to bf16
    %8 = arith.mulf %4, %7 : bf16
    linalg.yield %8 : bf16
  } -> !t
  return %y : !t
}
