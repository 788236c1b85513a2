// RUN: fovea-opt %s --attn-online-softmax --attn-tile --convert-attn-to-tile --canonicalize --cse --split-input-file | FileCheck %s

// One block for each tile of queries of each head, the tiles fastest.

// CHECK-LABEL: func @plain
// CHECK-SAME:    %[[Q:[^:]*]]: tensor<?x16x?x64xf16>, %[[K:[^:]*]]: tensor<?x4x?x64xf16>, %[[V:[^:]*]]: tensor<?x4x?x64xf16>
// CHECK-DAG:   %[[BATCHES:.*]] = tensor.dim %[[Q]], %c0{{ }}
// CHECK-DAG:   %[[QUERIES:.*]] = tensor.dim %[[Q]], %c2{{ }}
// CHECK-DAG:   %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-DAG:   %[[LOWEST:.*]] = arith.constant 0xFF800000 : f32
// CHECK-DAG:   %[[SCALE:.*]] = arith.constant 0.180336878 : f32
// CHECK-DAG:   %[[MINUS:.*]] = arith.constant -0.180336878 : f32
// CHECK-DAG:   %[[NEGATIVE:.*]] = arith.constant -1.000000e+00 : f32
// CHECK-DAG:   %[[LARGE:.*]] = arith.constant 1.024000e+03 : f32
// CHECK:       %[[EMPTY:.*]] = tensor.empty
// CHECK:       %[[TILES:.*]] = arith.ceildivsi %[[QUERIES]], %c128{{ }}
// CHECK:       %[[KEYS:.*]] = tensor.dim %[[K]], %c2{{ }}
// CHECK:       %[[R:.*]] = tile.launch kernel "attention" grid(%[[TILES]], %c16, %[[BATCHES]]) warps 8 stages 2{{ }}
// CHECK-SAME:    ins(%[[Q]], %[[K]], %[[V]] : {{.*}}) outs(%[[EMPTY]] :
// CHECK:       ^bb0(%[[X:[^:]*]]: index, %[[H:[^:]*]]: index, %[[B:[^:]*]]: index, %[[MQ:[^:]*]]: memref<{{.*}}>, %[[MK:[^:]*]]: memref<{{.*}}>, %[[MV:[^:]*]]: memref<{{.*}}>, %[[MO:[^:]*]]: memref<?x16x?x64xf16, strided<[?, ?, ?, 1], offset: ?>>):
// CHECK:         %[[I:.*]] = arith.muli %[[X]], %c128{{ }}
// CHECK-DAG:     %[[ACC0:.*]] = tile.fill %[[ZERO]] : !tile.fragment<128x64xf32>
// CHECK-DAG:     %[[MAX0:.*]] = tile.fill %[[LOWEST]] : !tile.fragment<128xf32>
// CHECK-DAG:     %[[SUM0:.*]] = tile.fill %[[ZERO]] : !tile.fragment<128x4xf32>
// CHECK:         %[[QT:.*]] = tile.load %[[MQ]][%[[B]], %[[H]], %[[I]], %c0] dims [2, 3] {{.*}} -> !tile.shared<128x64xf16>
// CHECK:         %[[L:.*]]:3 = scf.for %[[J:[^ ]*]] = %c0 to %[[KEYS]] step %c64 iter_args(%[[ACC:[^ ]*]] = %[[ACC0]], %[[MAX:[^ ]*]] = %[[MAX0]], %[[SUM:[^ ]*]] = %[[SUM0]])
// CHECK:           %[[N:.*]] = affine.min #{{.*}}(%[[J]])[%[[KEYS]]]
// CHECK:           %[[KH:.*]] = affine.apply #{{.*}}(%[[H]])
// CHECK:           %[[KT:.*]] = tile.load %[[MK]][%[[B]], %[[KH]], %[[J]], %c0] dims [2, 3] {{.*}} -> !tile.shared<64x64xf16>
// CHECK:           %[[S:.*]] = tile.mma %[[QT]], %[[KT]] transpose_b
// Keys beyond the last one, in the last tile.
// CHECK:           %[[SHORT:.*]] = arith.cmpi slt, %[[N]], %c64{{ }}
// CHECK:           %[[Z:.*]] = scf.if %[[SHORT]] -> (!tile.fragment<128x64xf32>) {
// CHECK:             tile.map ins(%[[S]] :
// CHECK-NEXT:        ^bb0(%[[E:[^:]*]]: f32, %{{.*}}: index, %[[C:[^:]*]]: index):
// CHECK-NEXT:          %[[KEEP:.*]] = arith.cmpi slt, %[[C]], %[[N]]
// CHECK-NEXT:          arith.select %[[KEEP]], %[[E]], %[[LOWEST]]
// CHECK:           } else {
// CHECK-NEXT:        scf.yield %[[S]]
// CHECK:           %[[MAX1:.*]] = tile.reduce max %[[Z]], %[[MAX]] dim 1{{ }}
// CHECK:           %[[FINITE:.*]] = tile.map ins(%[[MAX1]] :
// CHECK:             arith.cmpf oeq, %{{.*}}, %[[LOWEST]]
// CHECK:           %[[SHIFT:.*]] = tile.map ins(%[[FINITE]] :
// CHECK:             arith.mulf %{{.*}}, %[[MINUS]]
// Warps that have large maxima subtract these before anything is rounded.
// CHECK:           %[[TESTS:.*]] = tile.map ins(%[[SHIFT]] :
// CHECK:             math.absf
// CHECK:             arith.cmpf ugt, %{{.*}}, %[[LARGE]]
// CHECK:           %[[ISLARGE:.*]] = tile.any %[[TESTS]] : !tile.fragment<128xi1>
// CHECK:           %[[BOTH:.*]]:2 = scf.if %[[ISLARGE]] -> (!tile.fragment<128x64xf32>, !tile.fragment<128xf32>) {
// CHECK:             %[[LESS:.*]] = tile.map ins(%[[Z]] : {{.*}}) rows(%[[FINITE]] :
// CHECK:               math.fma %{{.*}}, %[[NEGATIVE]], %{{.*}} : f32
// CHECK:             scf.yield %[[LESS]], %{{.*}} :
// CHECK:           } else {
// CHECK-NEXT:        scf.yield %[[Z]], %[[SHIFT]]
// CHECK:           %[[P:.*]] = tile.map ins(%[[BOTH]]#0 : {{.*}}) rows(%[[BOTH]]#1 :
// CHECK:             %[[POWER:.*]] = math.fma %{{.*}}, %[[SCALE]], %{{.*}} : f32
// CHECK:             math.exp2 %[[POWER]]
// CHECK:           %[[ALPHA:.*]] = tile.map ins(%[[MAX]], %[[FINITE]] :
// CHECK:             arith.subf
// CHECK:             arith.mulf %{{.*}}, %[[SCALE]]
// CHECK:             math.exp2
// A thread adds up its own columns, in two parts; they are exchanged at the end.
// CHECK:           %[[SUMA:.*]] = tile.map ins(%[[SUM]] : {{.*}}) rows(%[[ALPHA]] :
// CHECK:           %[[PARTS:.*]] = tile.reduce add %[[P]], %{{.*}} dim 1 : !tile.fragment<128x64xf32> -> !tile.fragment<128x8xf32>
// CHECK:           %[[SUM1:.*]] = tile.reduce add %[[PARTS]], %[[SUMA]] dim 1 neighbors : !tile.fragment<128x8xf32> -> !tile.fragment<128x4xf32>
// CHECK:           %[[ACCA:.*]] = tile.map ins(%[[ACC]] : {{.*}}) rows(%[[ALPHA]] :
// CHECK:           %[[P16:.*]] = tile.map ins(%[[P]] :
// CHECK:             arith.truncf
// CHECK:           %[[VT:.*]] = tile.load %[[MV]]
// CHECK:           %[[ACC1:.*]] = tile.mma %[[P16]], %[[VT]] into %[[ACCA]] :
// CHECK:           scf.yield %[[ACC1]], %[[MAX1]], %[[SUM1]]
// A sum of 0 alone says that a row has no key; a warp that has such a row clears
// its accumulator, which may be NaN.
// CHECK:         %[[TOTAL:.*]] = tile.reduce add %[[L]]#2, %{{.*}} dim 1 : !tile.fragment<128x4xf32> -> !tile.fragment<128xf32>
// CHECK:         %[[INV:.*]] = tile.map ins(%[[TOTAL]] :
// CHECK-NOT:       %[[LOWEST]]
// CHECK:           arith.divf
// CHECK:         %[[NONE:.*]] = tile.map ins(%[[INV]] :
// CHECK:           arith.cmpf oeq, %{{.*}}, %{{.*}} : f32
// CHECK:         %[[ANY:.*]] = tile.any %[[NONE]]
// CHECK:         %[[LAST:.*]] = scf.if %[[ANY]] -> ({{.*}}) {
// CHECK:           %[[CLEARED:.*]] = tile.map ins(%[[L]]#0 : {{.*}}) rows(%[[INV]] :
// CHECK:             arith.select
// CHECK:           scf.yield %[[CLEARED]]
// CHECK:         } else {
// CHECK:           scf.yield %[[L]]#0
// CHECK:         }
// CHECK:         %[[O:.*]] = tile.map ins(%[[LAST]] : {{.*}}) rows(%[[INV]] :
// CHECK-NOT:       arith.select
// CHECK:           arith.truncf
// CHECK:         tile.store %[[O]], %[[MO]][%[[B]], %[[H]], %[[I]], %c0] dims [2, 3] :
// CHECK:       return %[[R]]
func.func @plain(%q: tensor<?x16x?x64xf16>, %k: tensor<?x4x?x64xf16>, %v: tensor<?x4x?x64xf16>) -> tensor<?x16x?x64xf16> {
  %o = attn.attention %q, %k, %v scale(0.125) {schedule = #attn.schedule<tile = 128x64, order = linear, warps = 8, stages = 2>}
    : tensor<?x16x?x64xf16>, tensor<?x4x?x64xf16>, tensor<?x4x?x64xf16> -> tensor<?x16x?x64xf16>
  return %o : tensor<?x16x?x64xf16>
}

// -----

// Whole tiles of static tensors: nothing is masked, no row is left out. In f32
// probabilities need no conversion, and maxima are subtracted before anything is
// rounded.

// CHECK-LABEL: func @whole
// CHECK-DAG:   %[[MINUS:.*]] = arith.constant -1.000000e+00 : f32
// CHECK-DAG:   %[[SCALE:.*]] = arith.constant 0.360673755 : f32
// CHECK:       tile.launch {{.*}} grid(%c2, %c4, %c2) warps 4 stages 1{{ }}
// CHECK-NOT:     scf.if
// CHECK:         tile.map ins(%{{.*}}) rows(
// CHECK-NEXT:    ^bb0(%[[X:[^:]*]]: f32, %[[M:[^:]*]]: f32,
// CHECK-NEXT:      %[[D:.*]] = math.fma %[[M]], %[[MINUS]], %[[X]] : f32
// CHECK-NEXT:      %[[E:.*]] = arith.mulf %[[D]], %[[SCALE]] : f32
// CHECK-NEXT:      math.exp2 %[[E]]
// CHECK-NOT:     truncf
// CHECK:         tile.mma %{{.*}}, %{{.*}} into %{{.*}} : !tile.fragment<64x32xf32>, !tile.shared<32x16xf32>, !tile.fragment<64x16xf32>
// CHECK:         tile.store
// CHECK-NOT:     valid
// CHECK:       return
func.func @whole(%q: tensor<2x4x128x16xf32>) -> tensor<2x4x128x16xf32> {
  %o = attn.attention %q, %q, %q scale(0.25) {schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 1>}
    : tensor<2x4x128x16xf32>, tensor<2x4x128x16xf32>, tensor<2x4x128x16xf32> -> tensor<2x4x128x16xf32>
  return %o : tensor<2x4x128x16xf32>
}

// -----

// Small static sizes and odd head dims: tiles are padded, the sizes that exist
// are constants.

// CHECK-LABEL: func @padded
// CHECK:       tile.launch {{.*}} grid(%c1, %c3, %c1) warps 4{{ }}
// CHECK:         tile.load {{.*}} -> !tile.shared<64x80xbf16>
// CHECK:         tile.load {{.*}} -> !tile.shared<48x80xbf16>
// CHECK-NOT:     scf.if
// CHECK:         tile.map ins(%{{.*}} : !tile.fragment<64x48xf32>)
// CHECK-NEXT:    ^bb0(%{{.*}}: f32, %{{.*}}: index, %[[C:[^:]*]]: index):
// CHECK-NEXT:      arith.cmpi slt, %[[C]], %c40{{ }}
// CHECK:         tile.load {{.*}} -> !tile.shared<48x32xbf16>
// CHECK:         tile.store {{.*}} dims [2, 3] : !tile.fragment<64x32xbf16>, memref<1x3x10x24xbf16,
func.func @padded(%q: tensor<1x3x10x72xbf16>, %k: tensor<1x3x40x72xbf16>, %v: tensor<1x3x40x24xbf16>) -> tensor<1x3x10x24xbf16> {
  %o = attn.attention %q, %k, %v scale(0.25) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>}
    : tensor<1x3x10x72xbf16>, tensor<1x3x40x72xbf16>, tensor<1x3x40x24xbf16> -> tensor<1x3x10x24xbf16>
  return %o : tensor<1x3x10x24xbf16>
}

// -----

// Heads inside positions: tiles run along the memref's dimensions 1 and 3.

// CHECK-LABEL: func @positions_first
// CHECK-NOT:   linalg.transpose
// CHECK:       tile.launch {{.*}} outs(%{{.*}} : tensor<2x?x4x16xf16>)
// CHECK-COUNT-3: tile.load {{.*}} dims [1, 3]
// CHECK:         tile.store {{.*}} dims [1, 3] :
#id = affine_map<(a, b, c, d) -> (a, b, c, d)>
#swap = affine_map<(a, b, c, d) -> (a, c, b, d)>
func.func @positions_first(%q: tensor<2x?x4x16xf16>) -> tensor<2x?x4x16xf16> {
  %c1 = arith.constant 1 : index
  %n = tensor.dim %q, %c1 : tensor<2x?x4x16xf16>
  %e = tensor.empty(%n) : tensor<2x4x?x16xf16>
  %qt = linalg.transpose ins(%q : tensor<2x?x4x16xf16>) outs(%e : tensor<2x4x?x16xf16>) permutation = [0, 2, 1, 3]
  %o = attn.attention %qt, %qt, %qt scale(0.25) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>}
    : tensor<2x4x?x16xf16>, tensor<2x4x?x16xf16>, tensor<2x4x?x16xf16> -> tensor<2x4x?x16xf16>
  %g = tensor.empty(%n) : tensor<2x?x4x16xf16>
  %ot = linalg.transpose ins(%o : tensor<2x4x?x16xf16>) outs(%g : tensor<2x?x4x16xf16>) permutation = [0, 2, 1, 3]
  return %ot : tensor<2x?x4x16xf16>
}

// -----

// One query, transposed: its tile runs along a dimension of size one.

// CHECK-LABEL: func @one_query
// CHECK:       tile.load {{.*}} dims [1, 3]
// CHECK:       tile.store {{.*}} dims [1, 3] :
func.func @one_query(%q: tensor<2x1x4x16xf16>, %k: tensor<2x4x?x16xf16>) -> tensor<2x1x4x16xf16> {
  %e = tensor.empty() : tensor<2x4x1x16xf16>
  %qt = linalg.transpose ins(%q : tensor<2x1x4x16xf16>) outs(%e : tensor<2x4x1x16xf16>) permutation = [0, 2, 1, 3]
  %o = attn.attention %qt, %k, %k scale(0.25) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>}
    : tensor<2x4x1x16xf16>, tensor<2x4x?x16xf16>, tensor<2x4x?x16xf16> -> tensor<2x4x1x16xf16>
  %g = tensor.empty() : tensor<2x1x4x16xf16>
  %ot = linalg.transpose ins(%o : tensor<2x4x1x16xf16>) outs(%g : tensor<2x1x4x16xf16>) permutation = [0, 2, 1, 3]
  return %ot : tensor<2x1x4x16xf16>
}

// -----

// A scale that does not keep the order of products is applied to all of them.

// CHECK-LABEL: func @negative_scale
// CHECK:       %[[S:.*]] = tile.mma
// CHECK:       %[[Z:.*]] = tile.map ins(%[[S]] :
// CHECK:         arith.mulf
// CHECK:       tile.reduce max %[[Z]], %{{.*}} dim 1{{ }}
func.func @negative_scale(%q: tensor<1x1x64x16xf16>) -> tensor<1x1x64x16xf16> {
  %o = attn.attention %q, %q, %q scale(-0.25) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>}
    : tensor<1x1x64x16xf16>, tensor<1x1x64x16xf16>, tensor<1x1x64x16xf16> -> tensor<1x1x64x16xf16>
  return %o : tensor<1x1x64x16xf16>
}
