// RUN: fovea-opt %s --split-input-file | fovea-opt --split-input-file | FileCheck %s
// RUN: fovea-opt %s --attn-online-softmax --split-input-file | FileCheck %s --check-prefix=ONLINE
// RUN: fovea-opt %s --attn-select-schedule --attn-online-softmax --attn-tile --split-input-file | FileCheck %s --check-prefix=TILE
// RUN: fovea-opt %s --attach-gpu-target=target=sm_90a --attn-pack-groups --split-input-file | FileCheck %s --check-prefix=PACK
// RUN: fovea-opt %s --convert-attn-to-linalg --split-input-file | FileCheck %s --check-prefix=GRAPH

// A sink for each head is added where the running values end: by the first part
// of the keys, if there are several.
// CHECK-LABEL: func @sinks
// CHECK: attn.attention %{{.*}}, %{{.*}}, %{{.*}} scale(1.250000e-01)
// CHECK-SAME: init(%{{.*}} : tensor<8xf32>) mask {
// ONLINE-LABEL: func @sinks
// ONLINE-SAME: %[[S:[^:]*]]: tensor<8xf32>
// ONLINE: linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<1x8x1xf32>)
// ONLINE: attn.finalize ins({{.*}}) init(%[[S]] : tensor<8xf32>) outs(
// TILE-LABEL: func @sinks
// TILE-SAME: %[[S:[^:]*]]: tensor<8xf32>
// TILE: scf.forall (%{{.*}}, %[[H:.*]], %{{.*}}, %[[P:.*]]) in (1, 8, 1, 3)
// TILE: %[[W:.*]] = arith.cmpi slt, %[[P]], %c1
// TILE: %[[T:.*]] = tensor.extract_slice %[[S]][%[[H]]] [1] [1] : tensor<8xf32> to tensor<1xf32>
// TILE: attn.finalize ins({{.*}}) init(%[[T]] : tensor<1xf32>) when(%[[W]]) outs(
// PACK-LABEL: func @sinks
// The schedule is written by hand.
// PACK: init(%{{.*}} : tensor<8xf32>)
// GRAPH-LABEL: func @sinks
// GRAPH: math.exp
// GRAPH: linalg.generic {{.*}} ins(%{{.*}}, %[[S:.*]], %{{.*}} : tensor<1x8x1xf32>, tensor<8xf32>, tensor<1x8x1x64xf32>)
func.func @sinks(%sinks: tensor<8xf32>, %q: tensor<1x8x1x64xf16>, %k: tensor<1x2x200x64xf16>) -> tensor<1x8x1x64xf16> {
  %o = attn.attention %q, %k, %k scale(0.125) init(%sinks : tensor<8xf32>)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %keep = arith.cmpi sge, %i, %j : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 48x64, order = linear, split = 3>}
    : tensor<1x8x1x64xf16>, tensor<1x2x200x64xf16>, tensor<1x2x200x64xf16> -> tensor<1x8x1x64xf16>
  return %o : tensor<1x8x1x64xf16>
}

// -----

// A state with an output is merged behind; the output is rounded there.
// CHECK-LABEL: func @state
// CHECK: init(%{{.*}}, %{{.*}} : tensor<2x8x?x32xbf16>, tensor<2x8x?xf64>)
// ONLINE-LABEL: func @state
// ONLINE: %[[F:.*]]:2 = attn.finalize ins
// ONLINE-NOT: init
// ONLINE-SAME: -> tensor<2x8x?x32xf32>, tensor<2x8x?xf64>
// ONLINE: linalg.generic {{.*}} ins(%[[F]]#1, %{{.*}}, %[[F]]#0, %{{.*}} : tensor<2x8x?xf64>, tensor<2x8x?xf64>, tensor<2x8x?x32xf32>, tensor<2x8x?x32xbf16>)
// ONLINE: linalg.generic {{.*}} ins(%[[F]]#1, %{{.*}} : tensor<2x8x?xf64>, tensor<2x8x?xf64>)
// TILE-LABEL: func @state
// PACK-LABEL: func @state
// PACK: init(%{{.*}}, %{{.*}} : tensor<2x8x?x32xbf16>, tensor<2x8x?xf64>)
// GRAPH-LABEL: func @state
func.func @state(%q: tensor<2x8x?x64xbf16>, %k: tensor<2x2x?x64xbf16>, %v: tensor<2x2x?x32xbf16>,
                 %o0: tensor<2x8x?x32xbf16>, %l0: tensor<2x8x?xf64>) -> (tensor<2x8x?x32xbf16>, tensor<2x8x?xf64>) {
  %o, %l = attn.attention %q, %k, %v scale(0.125)
    init(%o0, %l0 : tensor<2x8x?x32xbf16>, tensor<2x8x?xf64>) {schedule = #attn.schedule<tile = 48x64, order = linear>}
    : tensor<2x8x?x64xbf16>, tensor<2x2x?x64xbf16>, tensor<2x2x?x32xbf16> -> tensor<2x8x?x32xbf16>, tensor<2x8x?xf64>
  return %o, %l : tensor<2x8x?x32xbf16>, tensor<2x8x?xf64>
}

// -----

// Where the queries of a group are packed, a sink becomes one for each row; of one
// query the same memory.
// CHECK-LABEL: func @one_query
// ONLINE-LABEL: func @one_query
// TILE-LABEL: func @one_query
// GRAPH-LABEL: func @one_query
// PACK-LABEL: func @one_query
// PACK-NOT: linalg
// PACK: %[[S:.*]] = tensor.expand_shape %{{.*}} {{\[\[}}0, 1]] output_shape [2, 4] : tensor<8xf32> into tensor<2x4xf32>
// PACK: init(%[[S]] : tensor<2x4xf32>)
func.func @one_query(%sinks: tensor<8xf32>, %q: tensor<1x8x1x64xf16>, %k: tensor<1x2x?x64xf16>) -> tensor<1x8x1x64xf16> {
  %o = attn.attention %q, %k, %k scale(0.125) init(%sinks : tensor<8xf32>)
    : tensor<1x8x1x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16> -> tensor<1x8x1x64xf16>
  return %o : tensor<1x8x1x64xf16>
}

// -----

// CHECK-LABEL: func @queries
// ONLINE-LABEL: func @queries
// TILE-LABEL: func @queries
// GRAPH-LABEL: func @queries
// PACK-LABEL: func @queries
// PACK: %[[W:.*]] = linalg.broadcast ins(%{{.*}} : tensor<8xf32>) outs(%{{.*}} : tensor<8x3xf32>) dimensions = [1]
// PACK: %[[E:.*]] = tensor.expand_shape %[[W]] {{\[\[}}0, 1], [2]] output_shape [2, 4, 3] : tensor<8x3xf32> into tensor<2x4x3xf32>
// PACK: %[[S:.*]] = tensor.collapse_shape %[[E]] {{\[\[}}0], [1, 2]] : tensor<2x4x3xf32> into tensor<2x12xf32>
// PACK: init(%[[S]] : tensor<2x12xf32>)
// PACK: %[[P:.*]] = tensor.collapse_shape {{.*}} into tensor<1x2x12xf64>
// PACK: init(%{{.*}}, %[[P]] : tensor<1x2x12x64xf32>, tensor<1x2x12xf64>)
func.func @queries(%sinks: tensor<8xf32>, %o0: tensor<1x8x3x64xf32>, %l0: tensor<1x8x3xf64>, %q: tensor<1x8x3x64xf16>,
                   %k: tensor<1x2x?x64xf16>) -> (tensor<1x8x3x64xf16>, tensor<1x8x3x64xf16>) {
  %o = attn.attention %q, %k, %k scale(0.125) init(%sinks : tensor<8xf32>)
    : tensor<1x8x3x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16> -> tensor<1x8x3x64xf16>
  %p = attn.attention %q, %k, %k scale(0.125) init(%o0, %l0 : tensor<1x8x3x64xf32>, tensor<1x8x3xf64>)
    : tensor<1x8x3x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16> -> tensor<1x8x3x64xf16>
  return %o, %p : tensor<1x8x3x64xf16>, tensor<1x8x3x64xf16>
}
