// RUN: fovea-opt %s --attn-select-schedule --attn-online-softmax --convert-elementwise-to-linalg --attn-tile --convert-attn-to-tile --canonicalize --cse --split-input-file | FileCheck %s

// Which keys are present: values that a masked probability is multiplied by are
// loaded as zeros. Keys are loaded as they are: their scores are not selected.

// A length is compared with the number of keys once: behind them are zeros.
// CHECK-LABEL: func @lengths
// CHECK-SAME:    %{{.*}}: tensor<2x4x?x64xf16>, %[[K:[^:]*]]: tensor<2x4x?x64xf16>
// CHECK:       %[[KEYS:.*]] = tensor.dim %[[K]], %c2
// CHECK:       tile.launch
// CHECK:         %[[LENGTH:.*]] = memref.load
// CHECK:         %[[ISCUT:.*]] = arith.cmpi slt, %[[LENGTH]], %[[KEYS]]
// CHECK:         %[[END:.*]] = arith.select %[[ISCUT]], %[[LENGTH]], %{{.*}}
// CHECK:         scf.for %[[J:[^ ]*]] =
// CHECK-DAG:       %[[LEFT:.*]] = arith.subi %[[END]], %[[J]]
// CHECK:           tile.load %{{.*}}[%{{.*}}, %{{.*}}, %[[J]], %{{.*}}] dims [2, 3] : memref
// CHECK:           tile.load %{{.*}}[%{{.*}}, %{{.*}}, %[[J]], %{{.*}}] dims [2, 3] rows(%c0, %[[LEFT]]) :
func.func @lengths(%q: tensor<2x4x?x64xf16>, %k: tensor<2x4x?x64xf16>, %n: tensor<2xindex>) -> tensor<2x4x?x64xf16> {
  %o = attn.attention %q, %k, %k scale(0.25)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %length = tensor.extract %n[%b] : tensor<2xindex>
      %causal = arith.cmpi sge, %i, %j : index
      %before = arith.cmpi slt, %j, %length : index
      %keep = arith.andi %causal, %before : i1
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>}
    : tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16> -> tensor<2x4x?x64xf16>
  return %o : tensor<2x4x?x64xf16>
}

// -----

// A position bounds the keys of all queries: those that the last one sees.
// CHECK-LABEL: func @positions
// CHECK-SAME:    %[[Q:[^:]*]]: tensor<2x4x?x64xf16>
// CHECK:       %[[QUERIES:.*]] = tensor.dim %[[Q]], %c2
// CHECK:       tile.launch
// CHECK:         %[[POSITION:.*]] = memref.load
// CHECK:         arith.addi {{.*}}%[[POSITION]]
// CHECK:         scf.for
// CHECK:           tile.load {{.*}} dims [2, 3] : memref
// CHECK:           tile.load {{.*}} dims [2, 3] rows(%c0, %{{.*}}) :
func.func @positions(%q: tensor<2x4x?x64xf16>, %k: tensor<2x4x?x64xf16>, %n: tensor<2xindex>) -> tensor<2x4x?x64xf16> {
  %o = attn.attention %q, %k, %k scale(0.25)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %position = tensor.extract %n[%b] : tensor<2xindex>
      %last = arith.addi %i, %position : index
      %keep = arith.cmpi sge, %last, %j : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>}
    : tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16> -> tensor<2x4x?x64xf16>
  return %o : tensor<2x4x?x64xf16>
}

// -----

// Positions of each query: a tile's keys end where the table says that its last
// one does.
// CHECK-LABEL: func @positions_of_queries
// CHECK-SAME:    %{{.*}}: tensor<2x4x?x64xf16>, %[[K:[^:]*]]: tensor<2x4x?x64xf16>
// CHECK:       %[[KEYS:.*]] = tensor.dim %[[K]], %c2
// CHECK:       tile.launch
// CHECK:         scf.for %[[J:[^ ]*]] =
// CHECK:           %[[COUNT:.*]] = affine.min
// CHECK-DAG:       %[[LAST:.*]] = arith.addi %[[J]], %[[COUNT]]
// CHECK-DAG:       %[[ISCUT:.*]] = arith.cmpi slt, %[[LAST]], %[[KEYS]]
// CHECK-DAG:       %[[END:.*]] = arith.select %[[ISCUT]], %[[LAST]], %{{.*}}
// CHECK-DAG:       %[[LEFT:.*]] = arith.subi %[[END]], %[[J]]
// CHECK:           tile.load %{{.*}} dims [2, 3] : memref
// CHECK:           tile.load %{{.*}} dims [2, 3] rows(%c0, %[[LEFT]]) :
func.func @positions_of_queries(%q: tensor<2x4x?x64xf16>, %k: tensor<2x4x?x64xf16>, %n: tensor<2x?xindex>) -> tensor<2x4x?x64xf16> {
  %o = attn.attention %q, %k, %k scale(0.25)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %last = tensor.extract %n[%b, %i] : tensor<2x?xindex>
      %keep = arith.cmpi sge, %last, %j : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>}
    : tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16> -> tensor<2x4x?x64xf16>
  return %o : tensor<2x4x?x64xf16>
}

// -----

// Padding to the left: the first tile begins at the first key.
// CHECK-LABEL: func @starts
// CHECK:       tile.launch
// CHECK:         %[[START:.*]] = memref.load
// CHECK:         scf.for %[[J:[^ ]*]] =
// CHECK:           %[[SKIPPED:.*]] = affine.max #{{.*}}(%[[J]])[%[[START]]]
// CHECK:           %[[FIRST:.*]] = affine.apply #{{.*}}(%[[J]])[%[[SKIPPED]]]
// CHECK:           %[[ROW:.*]] = arith.subi %[[START]], %[[FIRST]]
// CHECK:           tile.load %{{.*}}[%{{.*}}, %{{.*}}, %[[FIRST]], %{{.*}}] dims [2, 3] : memref
// CHECK:           tile.load %{{.*}}[%{{.*}}, %{{.*}}, %[[FIRST]], %{{.*}}] dims [2, 3] rows(%[[ROW]], %c64) :
func.func @starts(%q: tensor<2x4x?x64xf16>, %k: tensor<2x4x?x64xf16>, %n: tensor<2xindex>) -> tensor<2x4x?x64xf16> {
  %o = attn.attention %q, %k, %k scale(0.25)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %start = tensor.extract %n[%b] : tensor<2xindex>
      %keep = arith.cmpi sge, %j, %start : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>}
    : tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16> -> tensor<2x4x?x64xf16>
  return %o : tensor<2x4x?x64xf16>
}

// -----

// A diagonal that follows from sizes, a window, what is joined by `or`, and a
// tensor of booleans bound nothing.
// CHECK-LABEL: func @others
// CHECK-NOT:   rows(%{{.*}},
// CHECK:       return
func.func @others(%q: tensor<2x4x?x64xf16>, %k: tensor<2x4x?x64xf16>, %n: tensor<2xindex>, %t: tensor<2x?xi1>) -> tensor<2x4x?x64xf16> {
  %c2 = arith.constant 2 : index
  %queries = tensor.dim %q, %c2 : tensor<2x4x?x64xf16>
  %keys = tensor.dim %k, %c2 : tensor<2x4x?x64xf16>
  %extra = arith.subi %keys, %queries : index
  %o = attn.attention %q, %k, %k scale(0.25)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %last = arith.addi %i, %extra : index
      %causal = arith.cmpi sge, %last, %j : index
      %distance = arith.subi %i, %j : index
      %c100 = arith.constant 100 : index
      %near = arith.cmpi slt, %distance, %c100 : index
      %window = arith.andi %causal, %near : i1
      %length = tensor.extract %n[%b] : tensor<2xindex>
      %before = arith.cmpi slt, %j, %length : index
      %first = arith.cmpi slt, %i, %j : index
      %either = arith.ori %before, %first : i1
      %both = arith.andi %window, %either : i1
      %real = tensor.extract %t[%b, %j] : tensor<2x?xi1>
      %keep = arith.andi %both, %real : i1
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>}
    : tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16> -> tensor<2x4x?x64xf16>
  return %o : tensor<2x4x?x64xf16>
}

// -----

// Gradients multiply keys by zeros, too. Keys that are also the values are
// loaded once.
// CHECK-LABEL: func @gradients
// CHECK:       tile.launch kernel "attention_backward"
// CHECK:         %[[FIRST:.*]] = arith.muli %{{.*}}, %c64
// CHECK:         %[[LENGTH:.*]] = memref.load
// CHECK:         %[[END:.*]] = arith.select %{{.*}}, %[[LENGTH]], %{{.*}}
// CHECK:         %[[LEFT:.*]] = arith.subi %[[END]], %[[FIRST]]
// CHECK:         tile.load %{{.*}}[%{{.*}}, %{{.*}}, %[[FIRST]], %{{.*}}] dims [2, 3] rows(%c0, %[[LEFT]]) :
// CHECK:         scf.for
// CHECK-NOT:     rows(
// CHECK:       return
func.func @gradients(%q: tensor<2x4x?x64xf16>, %k: tensor<2x4x?x64xf16>, %do: tensor<2x4x?x64xf16>, %lse: tensor<2x4x?xf32>, %delta: tensor<2x4x?xf32>, %n: tensor<2xindex>) -> tensor<2x4x?x64xf16> {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %k, %do scale(0.25)
    statistics(%lse, %delta : tensor<2x4x?xf32>, tensor<2x4x?xf32>)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %length = tensor.extract %n[%b] : tensor<2xindex>
      %keep = arith.cmpi slt, %j, %length : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>}
    : tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16>
      -> tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16>
  return %dq : tensor<2x4x?x64xf16>
}

// -----

// Packed queries: keys are absent that no query of the padded batch sees, not those that
// a tile's do not.
// CHECK-LABEL: func @packed
// CHECK-SAME:    %[[ROWS:[^:]*]]: index)
// CHECK:       tile.launch
// CHECK:         %[[BEHIND:.*]] = arith.subi %c1, %[[ROWS]]
// CHECK:         %[[LAST:.*]] = arith.subi %{{.*}}, %[[BEHIND]]
// CHECK:         %[[SEEN:.*]] = arith.addi %[[LAST]], %c1
// CHECK:         %[[ISCUT:.*]] = arith.cmpi slt, %[[SEEN]], %
// CHECK:         %[[END:.*]] = arith.select %[[ISCUT]], %[[SEEN]], %
// CHECK:         scf.for %[[J:[^ ]*]] =
// CHECK:           %[[LEFT:.*]] = arith.subi %[[END]], %[[J]]
// CHECK:           tile.load {{.*}} rows(%c0, %[[LEFT]]) :
!all = tensor<?x2x?x64xbf16>
!packed = tensor<1x2x?x64xbf16>
#gpu = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>
func.func @packed(%query: !all, %key: !all, %starts: tensor<?xi32>, %rows: index) -> !packed {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %bounds = tensor.dim %starts, %c0 : tensor<?xi32>
  %batch = arith.subi %bounds, %c1 : index
  %tokens = tensor.dim %query, %c2 : !all
  %queries_room = tensor.empty(%batch, %rows) : !all
  %q = scf.forall (%b) in (%batch) shared_outs(%out = %queries_room) -> (!all) {
    %next = arith.addi %b, %c1 : index
    %first = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %first : i32 to index
    %last = tensor.extract %starts[%next] : tensor<?xi32>
    %end = arith.index_cast %last : i32 to index
    %more = arith.subi %end, %start : index
    %count = arith.minsi %more, %rows : index
    %some = tensor.extract_slice %query[0, 0, %start, 0] [1, 2, %count, 64] [1, 1, 1, 1] : !all to tensor<1x2x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[%b, 0, 0, 0] [1, 2, %count, 64] [1, 1, 1, 1] : tensor<1x2x?x64xbf16> into !all
    }
  }
  %o = attn.attention %q, %key, %key scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %first = tensor.extract %starts[%b] : tensor<?xi32>
      %start = arith.index_cast %first : i32 to index
      %last = arith.addi %i, %start : index
      %keep = arith.cmpi sge, %last, %j : index
      attn.yield %keep : i1
    } {schedule = #gpu} : !all, !all, !all -> !all
  %room = tensor.empty(%tokens) : !packed
  %packed = scf.forall (%b) in (%batch) shared_outs(%out = %room) -> (!packed) {
    %next = arith.addi %b, %c1 : index
    %first = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %first : i32 to index
    %last = tensor.extract %starts[%next] : tensor<?xi32>
    %end = arith.index_cast %last : i32 to index
    %more = arith.subi %end, %start : index
    %count = arith.minsi %more, %rows : index
    %some = tensor.extract_slice %o[%b, 0, 0, 0] [1, 2, %count, 64] [1, 1, 1, 1] : !all to tensor<1x2x?x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[0, 0, %start, 0] [1, 2, %count, 64] [1, 1, 1, 1] : tensor<1x2x?x64xbf16> into !packed
    }
  }
  return %packed : !packed
}
