// RUN: fovea-opt %s --attn-online-softmax --attn-tile --convert-attn-to-tile --canonicalize --cse --split-input-file | FileCheck %s

// Causal: the mask is applied under one branch, with the keys that do not exist if
// some do not, and the last tiles of queries go first. A part of a tile's rows needs
// the keys up to its last row, none if there is no such row, and the mask from its
// first row on.

// CHECK-LABEL: func @causal
// CHECK:       tile.launch
// CHECK:         %[[I:.*]] = affine.apply
// CHECK:         %[[COUNT:.*]] = affine.min
// CHECK:         %[[LESS:.*]] = arith.minsi
// CHECK-NEXT:    %[[ALL:.*]] = arith.maxsi %[[LESS]], %c0 : index
// CHECK-NEXT:    %[[END:.*]] = tile.of_rows %[[ALL]] rows 128 {
// CHECK-NEXT:    ^bb0(%[[FIRST:.*]]: index, %[[LAST:.*]]: index):
// CHECK:           %[[LASTHERE:.*]] = arith.minsi %[[LAST]],
// CHECK:           %[[LASTROW:.*]] = arith.addi %[[I]], %[[LASTHERE]]
// CHECK:           %[[ISHERE:.*]] = arith.cmpi slt, %[[FIRST]], %[[COUNT]]
// CHECK:           arith.select %[[ISHERE]], %{{.*}}, %c0
// CHECK:         scf.for %[[J:[^ ]*]] = %c0 to %[[END]] step %c64
// CHECK:           %[[N:.*]] = affine.min
// CHECK:           %[[ANY:.*]] = arith.cmpi sgt, %[[LASTKEY:.*]], %[[I]]
// CHECK:           %[[PARTIAL:.*]] = tile.of_rows %[[ANY]] rows 128 {
// CHECK-NEXT:      ^bb0(%[[FIRST2:.*]]: index, %{{.*}}: index):
// CHECK:             %[[FIRSTROW:.*]] = arith.addi %[[I]], %[[FIRST2]]
// CHECK:             arith.cmpi sgt, %[[LASTKEY]], %[[FIRSTROW]]
// CHECK:           %[[S:.*]] = tile.mma
// CHECK:           %[[SHORT:.*]] = arith.cmpi slt, %[[N]], %c64{{ }}
// CHECK:           %[[MASK:.*]] = arith.ori %[[PARTIAL]], %[[SHORT]]
// CHECK:           scf.if %[[MASK]]
// CHECK-NEXT:        scf.if %[[SHORT]]
// CHECK-NEXT:          tile.map ins(%[[S]] :
// CHECK-NEXT:          ^bb0(%{{.*}}: f32, %[[R:[^:]*]]: index, %[[C:[^:]*]]: index):
// CHECK-NEXT:            %[[EXISTS:.*]] = arith.cmpi slt, %[[C]], %[[N]]
// CHECK-NEXT:            %[[ROW:.*]] = arith.addi %[[I]], %[[R]]
// CHECK-NEXT:            %[[KEY:.*]] = arith.addi %[[J]], %[[C]]
// CHECK-NEXT:            %[[SEEN:.*]] = arith.cmpi sge, %[[ROW]], %[[KEY]]
// CHECK-NEXT:            %[[KEEP:.*]] = arith.andi %[[EXISTS]], %[[SEEN]]
// CHECK-NEXT:            arith.select %[[KEEP]]
// CHECK:             } else {
// CHECK-NEXT:          tile.map ins(%[[S]] :
// CHECK-NEXT:          ^bb0(%{{.*}}: f32, %[[R:[^:]*]]: index, %[[C:[^:]*]]: index):
// CHECK-NEXT:            %[[ROW:.*]] = arith.addi %[[I]], %[[R]]
// CHECK-NEXT:            %[[KEY:.*]] = arith.addi %[[J]], %[[C]]
// CHECK-NEXT:            %[[SEEN:.*]] = arith.cmpi sge, %[[ROW]], %[[KEY]]
// CHECK-NEXT:            arith.select %[[SEEN]]
// CHECK:           } else {
// CHECK-NEXT:        scf.yield %[[S]]
func.func @causal(%q: tensor<2x4x?x64xf16>) -> tensor<2x4x?x64xf16> {
  %o = attn.attention %q, %q, %q scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } {schedule = #attn.schedule<tile = 128x64, order = longest_first, warps = 8, stages = 2>}
    : tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16> -> tensor<2x4x?x64xf16>
  return %o : tensor<2x4x?x64xf16>
}

// -----

// A captured bias is an operand of the launch, read at the coordinates of
// elements that exist; the log-sum-exp is a second output. The score region
// works on the scaled score. What it yields is left as it is: the maximum is
// subtracted, and the difference is multiplied by log2(e).

// CHECK-LABEL: func @bias
// CHECK-SAME:    %[[Q:[^:]*]]: tensor<1x4x?x32xf32>, %[[B:[^:]*]]: tensor<4x?x?xf32>
// CHECK-DAG:   %[[SCALE:.*]] = arith.constant 5.000000e-01 : f32
// CHECK-DAG:   %[[LOG2E:.*]] = arith.constant 1.44269502 : f32
// CHECK-DAG:   %[[LN2:.*]] = arith.constant 0.693147182 : f32
// CHECK-DAG:   %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
// CHECK-DAG:   %[[MINUS:.*]] = arith.constant -1.000000e+00 : f32
// CHECK:       tile.launch {{.*}} ins(%[[Q]], %[[B]] : {{.*}}) outs(%{{.*}}, %{{.*}} :
// CHECK:       ^bb0(%{{[^:]*}}: index, %{{[^:]*}}: index, %{{[^:]*}}: index, %{{[^:]*}}: memref<{{[^>]*>}}>, %[[MB:[^:]*]]: memref<4x?x?xf32,
// CHECK:         %[[ROWS:.*]] = affine.min
// CHECK:         scf.for %[[J:[^ ]*]] =
// CHECK:           %[[N:.*]] = affine.min
// CHECK:           %[[S:.*]] = tile.mma
// CHECK:           tile.map ins(%[[S]] :
// CHECK-NEXT:      ^bb0(%[[X:[^:]*]]: f32, %[[R:[^:]*]]: index, %[[C:[^:]*]]: index):
// CHECK:             %[[T:.*]] = arith.mulf %[[X]], %[[SCALE]]
// CHECK:             %[[LASTROW:.*]] = arith.addi %[[ROWS]], %c-1
// CHECK:             %[[LASTROW32:.*]] = arith.index_cast %[[LASTROW]] : index to i32
// CHECK:             %[[R32:.*]] = arith.index_cast %[[R]] : index to i32
// CHECK:             %[[ROW:.*]] = arith.minsi %[[R32]], %[[LASTROW32]] : i32
// CHECK:             %[[I32:.*]] = arith.addi %{{.*}}, %[[ROW]] : i32
// CHECK:             %[[I:.*]] = arith.index_castui %[[I32]] : i32 to index
// CHECK:             %[[LASTKEY:.*]] = arith.addi %[[N]], %c-1
// CHECK:             %[[LASTKEY32:.*]] = arith.index_cast %[[LASTKEY]] : index to i32
// CHECK:             %[[C32:.*]] = arith.index_cast %[[C]] : index to i32
// CHECK:             %[[COLUMN:.*]] = arith.minsi %[[C32]], %[[LASTKEY32]] : i32
// CHECK:             %[[J32:.*]] = arith.index_cast %[[J]] : index to i32
// CHECK:             %[[KEY32:.*]] = arith.addi %[[J32]], %[[COLUMN]] : i32
// CHECK:             %[[KEY:.*]] = arith.index_castui %[[KEY32]] : i32 to index
// CHECK:             %[[BIAS:.*]] = memref.load %[[MB]][%{{.*}}, %[[I]], %[[KEY]]]
// CHECK:             %[[SUM:.*]] = arith.addf %[[T]], %[[BIAS]]
// CHECK-NEXT:        tile.yield %[[SUM]]
// CHECK:           tile.reduce max
// CHECK-NOT:       tile.any
// CHECK:           tile.map ins(%{{.*}}) rows(
// CHECK:             %[[D:.*]] = math.fma %{{.*}}, %[[MINUS]], %{{.*}}
// CHECK:             %[[E:.*]] = arith.mulf %[[D]], %[[LOG2E]]
// CHECK:             math.exp2 %[[E]]
// CHECK:         tile.store
// CHECK:         %[[LOG2:.*]] = math.log2
// CHECK:         %[[LOG:.*]] = arith.mulf %[[LOG2]], %[[LN2]]
// CHECK:         math.fma %{{.*}}, %[[ONE]], %[[LOG]]
// CHECK:         tile.store {{.*}} dims [2] : !tile.fragment<64xf32>
func.func @bias(%q: tensor<1x4x?x32xf32>, %bias: tensor<4x?x?xf32>) -> (tensor<1x4x?x32xf32>, tensor<1x4x?xf32>) {
  %o, %l = attn.attention %q, %q, %q scale(0.5) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %bias[%h, %i, %j] : tensor<4x?x?xf32>
    %y = arith.addf %s, %x : f32
    attn.yield %y : f32
  } {schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 2>}
    : tensor<1x4x?x32xf32>, tensor<1x4x?x32xf32>, tensor<1x4x?x32xf32> -> tensor<1x4x?x32xf32>, tensor<1x4x?xf32>
  return %o, %l : tensor<1x4x?x32xf32>, tensor<1x4x?xf32>
}

// -----

// A log-sum-exp of f64 is put together in f64: nothing of it is lost beside a
// large maximum.

// CHECK-LABEL: func @wide_lse
// CHECK-DAG:   %[[SCALE:.*]] = arith.constant 5.000000e-01 : f64
// CHECK-DAG:   %[[LN2:.*]] = arith.constant 0.69314718055994529 : f64
// CHECK:         tile.store
// CHECK:         ^bb0(%[[LARGEST:[^:]*]]: f32, %[[SUM:[^:]*]]: f32,
// CHECK:         %[[LOG2:.*]] = math.log2 %[[SUM]] : f32
// CHECK-DAG:     %[[MAX:.*]] = arith.extf %[[LARGEST]] : f32 to f64
// CHECK-DAG:     %[[EXT:.*]] = arith.extf %[[LOG2]] : f32 to f64
// CHECK:         %[[LOG:.*]] = arith.mulf %[[EXT]], %[[LN2]] : f64
// CHECK:         math.fma %[[MAX]], %[[SCALE]], %[[LOG]] : f64
// CHECK:         tile.store {{.*}} dims [2] {{.*}}: !tile.fragment<64xf64>
func.func @wide_lse(%q: tensor<1x4x?x32xbf16>) -> (tensor<1x4x?x32xbf16>, tensor<1x4x?xf64>) {
  %o, %l = attn.attention %q, %q, %q scale(0.5) {schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 2>}
    : tensor<1x4x?x32xbf16>, tensor<1x4x?x32xbf16>, tensor<1x4x?x32xbf16> -> tensor<1x4x?x32xbf16>, tensor<1x4x?xf64>
  return %o, %l : tensor<1x4x?x32xbf16>, tensor<1x4x?xf64>
}

// -----

// Document ids: tables of their extremes decide whether a tile is skipped, as a
// whole, loads and all. Sizes in regions are computed on the host.

// CHECK-LABEL: func @documents
// CHECK-SAME:    %[[Q:[^:]*]]: tensor<2x4x?x64xf16>, %[[IDS:[^:]*]]: tensor<2x?xi32>
// CHECK-COUNT-2: scf.forall
// CHECK:       %[[LENGTH:.*]] = tensor.dim %[[IDS]], %c1{{ }}
// CHECK:       tile.launch {{.*}} ins(%[[Q]], %{{.*}}#0, %{{.*}}#1, %{{.*}}#0, %{{.*}}#1, %[[IDS]] :
// CHECK:       ^bb0(%{{[^:]*}}: index, %{{[^:]*}}: index, %{{[^:]*}}: index, %{{[^:]*}}: memref<{{[^>]*>}}>, %[[LEASTROW:[^:]*]]: memref<2x?xi32, {{[^>]*>}}>, %[[GREATESTROW:[^:]*]]: memref<2x?xi32, {{[^>]*>}}>, %[[LEASTKEY:[^:]*]]: memref<2x?xi32, {{[^>]*>}}>, %[[GREATESTKEY:[^:]*]]: memref<2x?xi32, {{[^>]*>}}>, %[[OWN:[^:]*]]: memref<2x?xi32,
// CHECK:         memref.load %[[LEASTROW]][
// CHECK:         memref.load %[[GREATESTROW]][
// CHECK:         scf.for
// CHECK:           memref.load %[[LEASTKEY]][
// CHECK:           memref.load %[[GREATESTKEY]][
// CHECK:           scf.if %{{.*}} -> (!tile.fragment<128x64xf32>, !tile.fragment<128xf32>, !tile.fragment<128x4xf32>) {
// CHECK:             tile.load
// CHECK:             scf.if
// CHECK-NEXT:          scf.if
// CHECK-NEXT:            tile.map
// CHECK:                   memref.load %[[OWN]][
// CHECK-NEXT:              memref.load %[[OWN]][
// CHECK:                   arith.cmpi slt, %{{.*}}, %[[LENGTH]]
// CHECK:               } else {
// CHECK-NEXT:            tile.map
// CHECK:                   memref.load %[[OWN]][
// CHECK-NEXT:              memref.load %[[OWN]][
// CHECK:                   arith.cmpi slt, %{{.*}}, %[[LENGTH]]
// CHECK:             tile.mma {{.*}} into
// CHECK:           } else {
// CHECK-NOT:     tensor.
// CHECK:       return
func.func @documents(%q: tensor<2x4x?x64xf16>, %ids: tensor<2x?xi32>) -> tensor<2x4x?x64xf16> {
  %o = attn.attention %q, %q, %q scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %ids[%b, %i] : tensor<2x?xi32>
    %y = tensor.extract %ids[%b, %j] : tensor<2x?xi32>
    %e = arith.cmpi eq, %x, %y : i32
    %c1 = arith.constant 1 : index
    %n = tensor.dim %ids, %c1 : tensor<2x?xi32>
    %w = arith.cmpi slt, %j, %n : index
    %keep = arith.andi %e, %w : i1
    attn.yield %keep : i1
  } {schedule = #attn.schedule<tile = 128x64, order = linear, warps = 8, stages = 2>}
    : tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16> -> tensor<2x4x?x64xf16>
  return %o : tensor<2x4x?x64xf16>
}

// -----

// Dropout acts on what is multiplied with values, not on the sum.

// CHECK-LABEL: func @dropout
// CHECK:       tile.any
// CHECK:       %[[P:.*]] = tile.map ins(%{{.*}}#0 : {{.*}}) rows(%{{.*}}#1
// CHECK:       tile.reduce add %[[P]]
// CHECK:       %[[D:.*]] = tile.map ins(%[[P]] :
// CHECK:         arith.mului_extended
// CHECK:         %[[KEEP:.*]] = arith.cmpi uge, %{{.*}}, %c429496729_i32
// CHECK:         %[[SCALED:.*]] = arith.mulf %{{.*}}, %{{.*}} : f32
// CHECK:         %[[X:.*]] = arith.select %[[KEEP]], %[[SCALED]], %{{.*}} : f32
// CHECK:         arith.truncf %[[X]]
// CHECK:       tile.mma %[[D]]
func.func @dropout(%q: tensor<1x2x64x16xf16>, %seed: i64, %offset: i64) -> tensor<1x2x64x16xf16> {
  %o = attn.attention %q, %q, %q scale(0.25) dropout(0.1, %seed, %offset) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>}
    : tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16> -> tensor<1x2x64x16xf16>
  return %o : tensor<1x2x64x16xf16>
}
