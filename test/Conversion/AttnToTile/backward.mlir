// RUN: fovea-opt %s --attn-select-schedule --attn-online-softmax \
// RUN:   --convert-elementwise-to-linalg --attn-tile --convert-attn-to-tile --canonicalize --cse --split-input-file \
// RUN:   --mlir-print-local-scope | FileCheck %s

// The plain program of the backward pass: a block adds up the gradients of a
// tile of keys, over the tiles of queries that the mask keeps.

// CHECK-LABEL: func @causal
// CHECK-SAME:    %[[Q:.*]]: tensor<1x2x?x64xbf16>, %[[K:.*]]: tensor<1x2x?x64xbf16>, %[[V:.*]]: tensor<1x2x?x32xbf16>, %[[DO:.*]]: tensor<1x2x?x32xbf16>, %[[LSE:.*]]: tensor<1x2x?xf32>, %[[DELTA:.*]]: tensor<1x2x?xf32>
// CHECK-DAG:   %[[LOG2E:.*]] = arith.constant -1.44269504088896{{.*}} : f64
// CHECK-DAG:   %[[LOWEST:.*]] = arith.constant 0xFF800000 : f32
// CHECK-DAG:   %[[EMPTY:.*]] = arith.constant 0xFFF0000000000000 : f64
// CHECK-DAG:   %[[C64:.*]] = arith.constant 64 : index
// Queries' gradients are added to in f32, from zeros on.
// CHECK:       %[[ZEROS:.*]] = linalg.fill {{.*}} -> tensor<1x2x?x64xf32>
// Statistics up to whole tiles of queries.
// CHECK:       %[[STAT:.*]]:2 = linalg.generic
// CHECK:         %[[L32:.*]] = tensor.extract %[[LSE]]
// CHECK:         %[[L:.*]] = arith.extf %[[L32]] : f32 to f64
// CHECK:         %[[D:.*]] = tensor.extract %[[DELTA]]
// CHECK:         arith.cmpf une, %[[L]], %[[EMPTY]]
// CHECK:         arith.mulf %[[L]], %[[LOG2E]]
// CHECK:         arith.negf %[[D]]
// CHECK:       %[[R:.*]]:3 = tile.launch kernel "attention_backward" grid(%{{.*}}, %{{.*}}, %{{.*}}) warps 8 stages 2{{ }}
// CHECK-SAME:    ins(%[[Q]], %[[K]], %[[V]], %[[DO]], %[[STAT]]#0, %[[STAT]]#1
// CHECK-SAME:    outs(%[[ZEROS]],
// CHECK:       ^bb0(%[[TILE:.*]]: index, %[[HEAD:.*]]: index, %{{.*}}: index, %[[MQ:[^:]*]]: memref<1x2x?x64xbf16, {{.*}}>, %[[MK:[^:]*]]: memref{{.*}}, %[[MV:[^:]*]]: memref<1x2x?x32{{.*}}>, %[[MDO:[^:]*]]: memref<1x2x?x32{{.*}}>, %[[MSHIFT:[^:]*]]: memref<1x2x?xf32{{.*}}>, %[[MDELTA:[^:]*]]: memref<1x2x?xf32{{.*}}>, %[[MDQ:[^:]*]]: memref<1x2x?x64xf32{{.*}}>, %[[MDK:[^:]*]]: memref{{.*}}, %[[MDV:[^:]*]]: memref
// CHECK:         %[[J:.*]] = arith.muli %[[TILE]], %{{.*}}
// No query before the tile's first key keeps any.
// CHECK:         %[[LOWER:.*]] = arith.muli %{{.*}}, %[[C64]]
// CHECK:         %[[KEY:.*]] = tile.load %[[MK]][%c0, %[[HEAD]], %[[J]], %{{.*}}] {{.*}} -> !tile.shared<128x64xbf16>
// CHECK:         %[[VALUE:.*]] = tile.load %[[MV]]{{.*}} -> !tile.shared<128x32xbf16>
// CHECK:         %[[SUMS:.*]]:2 = scf.for %[[I:.*]] = %[[LOWER]] to %{{.*}} step %[[C64]] iter_args(%[[DK:.*]] = %{{.*}}, %[[DV:.*]] = %{{.*}}) -> (!tile.fragment<128x64xf32>, !tile.fragment<128x32xf32>)
// CHECK:           %[[QUERY:.*]] = tile.load %[[MQ]][%c0, %[[HEAD]], %[[I]]
// CHECK:           %[[GRADIENT:.*]] = tile.load %[[MDO]][%c0, %[[HEAD]], %[[I]]
// CHECK:           %[[SHIFT:.*]] = tile.load %[[MSHIFT]]{{.*}} -> !tile.fragment<64xf32>
// CHECK:           %[[S:.*]] = tile.mma %[[KEY]], %[[QUERY]] transpose_b
// CHECK:           %[[DP:.*]] = tile.mma %[[VALUE]], %[[GRADIENT]] transpose_b
// CHECK:           %[[MASKED:.*]] = scf.if
// CHECK:           %[[P:.*]] = tile.map ins(%[[MASKED]] {{.*}}columns(%[[SHIFT]]
// CHECK:             math.fma
// CHECK:             math.exp2
// CHECK:           %[[W:.*]] = tile.map ins(%[[P]]
// CHECK:             arith.truncf
// CHECK:           %[[DV1:.*]] = tile.mma %[[W]], %[[GRADIENT]] into %[[DV]]
// CHECK:           %[[NEGATED:.*]] = tile.load %[[MDELTA]]{{.*}} -> !tile.fragment<64xf32>
// CHECK-NEXT:      %[[DS:.*]] = tile.map ins(%[[P]], %[[DP]] {{.*}}columns(%[[NEGATED]]
// CHECK:             arith.addf
// CHECK:             arith.mulf
// CHECK:           %[[LEFT:.*]] = tile.map ins(%[[DS]]
// CHECK:           %[[DK1:.*]] = tile.mma %[[LEFT]], %[[QUERY]] into %[[DK]]
// CHECK:           %[[T:.*]] = tile.to_shared %[[LEFT]] transposed : !tile.fragment<128x64xbf16> -> !tile.shared<64x128xbf16>
// CHECK:           %[[DQ:.*]] = tile.mma %[[T]], %[[KEY]]
// CHECK:           tile.store add %[[DQ]], %[[MDQ]][%c0, %[[HEAD]], %[[I]]
// CHECK:           scf.yield %[[DK1]], %[[DV1]]
// CHECK:         arith.mulf
// CHECK:         tile.store %{{.*}}, %[[MDK]]
// CHECK:         tile.store %{{.*}}, %[[MDV]]
// CHECK:       linalg.generic {{.*}} ins(%[[R]]#0 : tensor<1x2x?x64xf32>)
// CHECK:         arith.mulf
// CHECK:       linalg.generic
// CHECK:         arith.truncf
func.func @causal(%q: tensor<1x2x?x64xbf16>, %k: tensor<1x2x?x64xbf16>, %v: tensor<1x2x?x32xbf16>, %do: tensor<1x2x?x32xbf16>, %lse: tensor<1x2x?xf32>, %delta: tensor<1x2x?xf32>) -> (tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16>, tensor<1x2x?x32xbf16>) {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %v, %do scale(0.125)
      statistics(%lse, %delta : tensor<1x2x?xf32>, tensor<1x2x?xf32>)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %keep = arith.cmpi sge, %i, %j : index
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 64x128, order = linear, warps = 8, stages = 2>}
      : tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16>, tensor<1x2x?x32xbf16>, tensor<1x2x?x32xbf16> -> tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16>, tensor<1x2x?x32xbf16>
  return %dq, %dk, %dv : tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16>, tensor<1x2x?x32xbf16>
}

// -----

// A captured tensor that has no gradient is read by the regions and their
// derivative; documents by tables of the analysis. Heads of a group follow one
// another. The log-sum-exp is two numbers, for a region's scores may be large: one
// is subtracted, the other is what its rounding left, in base 2. What the mask reads
// for each query is beside them, where there are keys, and is read from shared
// memory where scores are masked; of a key it is read as it is.

// CHECK-LABEL: func @regions
// CHECK-SAME:    %[[SLOPES:[^:]*]]: tensor<4xf32>, %[[IDS:[^:]*]]: tensor<?xi32>
// CHECK-DAG:   %[[LOG2E:.*]] = arith.constant 1.44269502 : f32
// CHECK-DAG:   %[[LOG2E64:.*]] = arith.constant 1.44269504088896{{.*}} : f64
// CHECK-DAG:   %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
// CHECK:       scf.forall
// CHECK:       %[[NONE:.*]] = arith.cmpi eq, %{{.*}}, %c0
// CHECK:       %[[PADDED:.*]] = arith.select %[[NONE]], %c0, %{{.*}}
// CHECK:       tensor.empty(%[[PADDED]]) : tensor<1x4x?xi32>
// CHECK:       %[[STAT:.*]]:4 = linalg.generic
// CHECK:         %[[ROUNDED:.*]] = arith.truncf %[[LSE:.*]] : f64 to f32
// CHECK:         arith.select %{{.*}}, %[[ROUNDED]], %{{.*}} : f32
// CHECK:         %[[BACK:.*]] = arith.extf %[[ROUNDED]] : f32 to f64
// CHECK:         %[[LEFT:.*]] = arith.subf %[[LSE]], %[[BACK]] : f64
// CHECK:         arith.mulf %[[LEFT]], %[[LOG2E64]] : f64
// CHECK:         tensor.extract %[[IDS]][
// CHECK:       tile.launch kernel "attention_backward"
// CHECK-SAME:    %[[STAT]]#0, %[[STAT]]#1, %[[STAT]]#2, %[[STAT]]#3
// CHECK-SAME:    tensor<4xf32>
// CHECK:         scf.for %{{.*}} = %c0 to %c2 step %c1 iter_args
// CHECK:           scf.for
// CHECK:             scf.if
// CHECK:               %[[NUMBERS:.*]] = tile.load %{{.*}} dims [1, 2] : memref<1x4x?xi32{{.*}} -> !tile.shared<1x32xi32>
// CHECK:               tile.mma
// CHECK:               tile.map
// CHECK:                 memref.load {{.*}} : memref<4xf32
// CHECK:                 math.tanh
// CHECK:               scf.if
// CHECK:                 %[[OF_QUERIES:.*]] = tile.from_shared %[[NUMBERS]] : !tile.shared<1x32xi32> -> !tile.fragment<32xi32>
// CHECK:                 tile.map ins(%{{.*}}) columns(%[[OF_QUERIES]] :
// CHECK:                   memref.load {{.*}} : memref<?xi32
// CHECK-NOT:               memref.load
// CHECK:                   arith.cmpi eq
// CHECK:               tile.map ins(%{{.*}}) columns(%{{.*}}, %{{.*}} : !tile.fragment<32xf32>, !tile.fragment<32xf32>)
// CHECK-NEXT:          ^bb0(%[[X:[^:]*]]: f32, %[[HIGH:[^:]*]]: f32, %[[LOW:[^:]*]]: f32,
// CHECK:                 %[[D:.*]] = math.fma %[[HIGH]], %[[ONE]], %[[X]]
// CHECK:                 %[[E:.*]] = math.fma %[[D]], %[[LOG2E]], %[[LOW]]
// CHECK:                 math.exp2 %[[E]]
// CHECK-NOT:         tensor.extract
// CHECK:             tile.store add
func.func @regions(%q: tensor<1x4x?x16xf16>, %k: tensor<1x2x?x16xf16>, %do: tensor<1x4x?x16xf16>, %lse: tensor<1x4x?xf64>, %delta: tensor<1x4x?xf32>, %slopes: tensor<4xf32>, %ids: tensor<?xi32>) -> (tensor<1x4x?x16xf16>, tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16>) {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %k, %do scale(0.25)
      statistics(%lse, %delta : tensor<1x4x?xf64>, tensor<1x4x?xf32>)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %slope = tensor.extract %slopes[%h] : tensor<4xf32>
        %t = math.tanh %s : f32
        %r = arith.mulf %t, %slope : f32
        attn.yield %r : f32
      }
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %ids[%i] : tensor<?xi32>
        %y = tensor.extract %ids[%j] : tensor<?xi32>
        %same = arith.cmpi eq, %x, %y : i32
        attn.yield %same : i1
      } {schedule = #attn.schedule<tile = 32x64, order = linear, warps = 4, stages = 2>}
      : tensor<1x4x?x16xf16>, tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16>, tensor<1x4x?x16xf16> -> tensor<1x4x?x16xf16>, tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16>
  return %dq, %dk, %dv : tensor<1x4x?x16xf16>, tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16>
}

// -----

// Integers of 64 bits come as two words. Left in memory: what a mask reads of keys.

// CHECK-LABEL: func @words
// CHECK:       %[[STAT:.*]]:4 = linalg.generic {{.*}} outs(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<1x4x?xf32>, tensor<1x4x?xf32>, tensor<1x4x?xi32>, tensor<1x4x?xi32>)
// CHECK:         %[[ID:.*]] = tensor.extract %{{.*}} : tensor<?xi64>
// CHECK-DAG:     %[[LOW:.*]] = arith.trunci %[[ID]] : i64 to i32
// CHECK-DAG:     %[[SHIFTED:.*]] = arith.shrui %[[ID]], %c32_i64
// CHECK:         %[[HIGH:.*]] = arith.trunci %[[SHIFTED]] : i64 to i32
// CHECK:         linalg.yield %{{.*}}, %{{.*}}, %[[LOW]], %[[HIGH]]
// CHECK:       tile.launch kernel "attention_backward"
// CHECK:         tile.map ins(%{{.*}}) columns(%{{.*}}, %{{.*}} : !tile.fragment<32xi32>, !tile.fragment<32xi32>) {
// CHECK-NEXT:    ^bb0(%{{.*}}: f32, %[[L:[^:]*]]: i32, %[[H:[^:]*]]: i32,
// CHECK-NOT:       memref.load {{.*}} : memref<?xi64
// CHECK-DAG:       %[[WIDE_L:.*]] = arith.extui %[[L]]
// CHECK-DAG:       %[[WIDE_H:.*]] = arith.extui %[[H]]
// CHECK-DAG:       %[[UP:.*]] = arith.shli %[[WIDE_H]], %c32_i64
// CHECK:           arith.ori %[[UP]], %[[WIDE_L]]
// CHECK-NOT:       memref.load {{.*}} : memref<?xi64
// CHECK:           memref.load {{.*}} : memref<?xi32
func.func @words(%q: tensor<1x4x?x16xf16>, %lse: tensor<1x4x?xf64>, %delta: tensor<1x4x?xf32>, %ids: tensor<?xi64>, %ends: tensor<?xi32>) -> tensor<1x4x?x16xf16> {
  %dq, %dk, %dv = attn.attention_backward %q, %q, %q, %q scale(0.25)
      statistics(%lse, %delta : tensor<1x4x?xf64>, tensor<1x4x?xf32>)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %ids[%i] : tensor<?xi64>
        %y = tensor.extract %ends[%j] : tensor<?xi32>
        %z = arith.extsi %y : i32 to i64
        %same = arith.cmpi eq, %x, %z : i64
        attn.yield %same : i1
      } {schedule = #attn.schedule<tile = 32x64, order = linear, warps = 4, stages = 2>}
      : tensor<1x4x?x16xf16>, tensor<1x4x?x16xf16>, tensor<1x4x?x16xf16>, tensor<1x4x?x16xf16> -> tensor<1x4x?x16xf16>, tensor<1x4x?x16xf16>, tensor<1x4x?x16xf16>
  return %dq : tensor<1x4x?x16xf16>
}
