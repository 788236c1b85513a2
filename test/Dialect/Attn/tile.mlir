// RUN: fovea-opt %s --attn-online-softmax --attn-tile=fuse-keys=never --split-input-file | FileCheck %s

// Sizes that divide stay static; all of the key loop's state is carried.

// CHECK-LABEL: func @static
// CHECK-SAME:    %[[Q:[^:]*]]: tensor<2x4x96x64xf32>, %[[K:[^:]*]]: tensor<2x2x128x64xf32>, %[[V:[^:]*]]: tensor<2x2x128x64xf32>
// CHECK-DAG:   %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG:   %[[C64:.*]] = arith.constant 64 : index
// CHECK-DAG:   %[[C128:.*]] = arith.constant 128 : index
// CHECK:       %[[EMPTY:.*]] = tensor.empty() : tensor<2x4x96x64xf32>
// CHECK:       %[[OUT:.*]] = scf.forall (%[[B:.*]], %[[H:.*]], %[[I:.*]]) = (0, 0, 0) to (2, 4, 96) step (1, 1, 48) shared_outs(%[[O:.*]] = %[[EMPTY]])
// CHECK:         %[[QT:.*]] = tensor.extract_slice %[[Q]][%[[B]], %[[H]], %[[I]], 0] [1, 1, 48, 64]
// CHECK:         %[[ACC:.*]] = linalg.fill {{.*}} -> tensor<1x1x48x64xf32>
// CHECK:         %[[MAX:.*]] = linalg.fill {{.*}} -> tensor<1x1x48xf32>
// CHECK:         %[[SUM:.*]] = linalg.fill {{.*}} -> tensor<1x1x48xf32>
// CHECK:         %[[R:.*]]:3 = scf.for %[[J:[^ ]*]] = %[[C0]] to %[[C128]] step %[[C64]] iter_args(%[[A:.*]] = %[[ACC]], %[[M:.*]] = %[[MAX]], %[[S:.*]] = %[[SUM]])
// CHECK:           %[[KV:.*]] = affine.apply #{{.*}}(%[[H]])
// CHECK:           %[[KT:.*]] = tensor.extract_slice %[[K]][%[[B]], %[[KV]], %[[J]], 0] [1, 1, 64, 64]
// CHECK:           %[[VT:.*]] = tensor.extract_slice %[[V]][%[[B]], %[[KV]], %[[J]], 0] [1, 1, 64, 64]
// CHECK:           %[[T:.*]]:3 = attn.online_attention scale(1.250000e-01) update(all)
// CHECK-SAME:        ins(%[[QT]], %[[KT]], %[[VT]] :
// CHECK-SAME:        outs(%[[A]], %[[M]], %[[S]] :
// CHECK-NOT:         at[
// CHECK:           scf.yield %[[T]]#0, %[[T]]#1, %[[T]]#2
// CHECK:         %[[OT:.*]] = tensor.extract_slice %[[O]][%[[B]], %[[H]], %[[I]], 0] [1, 1, 48, 64]
// CHECK:         %[[F:.*]] = attn.finalize ins(%[[R]]#0, %[[R]]#1, %[[R]]#2 : {{.*}}) outs(%[[OT]] :
// CHECK:         scf.forall.in_parallel {
// CHECK:           tensor.parallel_insert_slice %[[F]] into %[[O]][%[[B]], %[[H]], %[[I]], 0] [1, 1, 48, 64]
// CHECK:       return %[[OUT]]
func.func @static(%q: tensor<2x4x96x64xf32>, %k: tensor<2x2x128x64xf32>, %v: tensor<2x2x128x64xf32>) -> tensor<2x4x96x64xf32> {
  %o = attn.attention %q, %k, %v scale(0.125) {schedule = #attn.schedule<tile = 48x64, order = linear>}
    : tensor<2x4x96x64xf32>, tensor<2x2x128x64xf32>, tensor<2x2x128x64xf32> -> tensor<2x4x96x64xf32>
  return %o : tensor<2x4x96x64xf32>
}

// -----

// A tile larger than a static size is cut to it, and is static.

// CHECK-LABEL: func @short
// CHECK:       scf.forall {{.*}} to (1, 1, 37) step (1, 1, 37)
// CHECK:         attn.online_attention {{.*}} ins({{.*}} : tensor<1x1x37x16xf32>, tensor<1x1x5x16xf32>, tensor<1x1x5x16xf32>)
func.func @short(%q: tensor<1x1x37x16xf32>, %k: tensor<1x1x5x16xf32>) -> tensor<1x1x37x16xf32> {
  %o = attn.attention %q, %k, %k scale(0.25) {schedule = #attn.schedule<tile = 48x64, order = linear>}
    : tensor<1x1x37x16xf32>, tensor<1x1x5x16xf32>, tensor<1x1x5x16xf32> -> tensor<1x1x37x16xf32>
  return %o : tensor<1x1x37x16xf32>
}

// -----

// No queries: no tiles. No keys: no passes of the key loop.

// CHECK-LABEL: func @nothing
// CHECK:       scf.forall {{.*}} to (1, 1, 0) step (1, 1, 48)
// CHECK:         scf.for
// CHECK-LABEL: func @no_keys
// CHECK:         scf.for %{{.*}} = %[[C0:.*]] to %[[C0]] step
func.func @nothing(%q: tensor<1x1x0x16xf32>, %k: tensor<1x1x5x16xf32>) -> tensor<1x1x0x16xf32> {
  %o = attn.attention %q, %k, %k scale(0.25) {schedule = #attn.schedule<tile = 48x64, order = linear>}
    : tensor<1x1x0x16xf32>, tensor<1x1x5x16xf32>, tensor<1x1x5x16xf32> -> tensor<1x1x0x16xf32>
  return %o : tensor<1x1x0x16xf32>
}
func.func @no_keys(%q: tensor<1x1x5x16xf32>, %k: tensor<1x1x0x16xf32>) -> tensor<1x1x5x16xf32> {
  %o = attn.attention %q, %k, %k scale(0.25) {schedule = #attn.schedule<tile = 48x64, order = linear>}
    : tensor<1x1x5x16xf32>, tensor<1x1x0x16xf32>, tensor<1x1x0x16xf32> -> tensor<1x1x5x16xf32>
  return %o : tensor<1x1x5x16xf32>
}

// -----

// Ragged and dynamic sizes; dropout goes on numbering the rows of the whole.

// CHECK-DAG:   #[[$ROWS:.*]] = affine_map<(d0)[s0] -> (-d0 + s0, 48)>
// CHECK-LABEL: func @dropout
// CHECK-SAME:    %[[Q:[^:]*]]: tensor<?x4x?x16xbf16>
// CHECK-DAG:   %[[C4:.*]] = arith.constant 4 : index
// CHECK-DAG:   %[[SB:.*]] = tensor.dim %[[Q]], %c0{{ }}
// CHECK-DAG:   %[[SQ:.*]] = tensor.dim %[[Q]], %c2{{ }}
// CHECK:       scf.forall (%[[B:.*]], %[[H:.*]], %[[I:.*]]) = (0, 0, 0) to (%[[SB]], 4, %[[SQ]]) step (1, 1, 48)
// CHECK:         affine.min #[[$ROWS]](%[[I]])[%[[SQ]]]
// CHECK:         scf.for %[[J:[^ ]*]] =
// CHECK:           attn.online_attention {{.*}} dropout
// CHECK-SAME:        at[%[[B]], %[[H]], %[[I]], %[[J]]] whole[%[[C4]], %[[SQ]]]
func.func @dropout(%q: tensor<?x4x?x16xbf16>, %k: tensor<?x4x?x16xbf16>, %seed: i64, %offset: i64) -> tensor<?x4x?x16xbf16> {
  %o = attn.attention %q, %k, %k scale(0.25) dropout(0.5, %seed, %offset) {schedule = #attn.schedule<tile = 48x64, order = linear>}
    : tensor<?x4x?x16xbf16>, tensor<?x4x?x16xbf16>, tensor<?x4x?x16xbf16> -> tensor<?x4x?x16xbf16>
  return %o : tensor<?x4x?x16xbf16>
}

// -----

// Tiles of queries handed out from the last, which may be a smaller one.

// CHECK-DAG:   #[[$LAST:.*]] = affine_map<(d0) -> (-d0 + 96)>
// CHECK-DAG:   #[[$SIZE:.*]] = affine_map<(d0) -> (48, d0 + 4)>
// CHECK-LABEL: func @longest_first
// CHECK:       scf.forall (%{{.*}}, %{{.*}}, %[[T:.*]]) = (0, 0, 0) to (1, 1, 100) step (1, 1, 48)
// CHECK:         %[[I:.*]] = affine.apply #[[$LAST]](%[[T]])
// CHECK:         %[[ROWS:.*]] = affine.min #[[$SIZE]](%[[T]])
// CHECK:         tensor.parallel_insert_slice %{{.*}} into %{{.*}}[%{{.*}}, %{{.*}}, %[[I]], 0] [1, 1, %[[ROWS]], 16]
func.func @longest_first(%q: tensor<1x1x100x16xf32>) -> tensor<1x1x100x16xf32> {
  %o = attn.attention %q, %q, %q scale(0.25) {schedule = #attn.schedule<tile = 48x64, order = longest_first>}
    : tensor<1x1x100x16xf32>, tensor<1x1x100x16xf32>, tensor<1x1x100x16xf32> -> tensor<1x1x100x16xf32>
  return %o : tensor<1x1x100x16xf32>
}

// -----

// A group of heads of unknown size is divided by at run time.

// CHECK-LABEL: func @dynamic_heads
// CHECK-SAME:    %[[Q:[^:]*]]: tensor<1x?x8x16xf32>, %[[K:[^:]*]]: tensor<1x?x8x16xf32>
// CHECK-DAG:   %[[HEADS:.*]] = tensor.dim %[[Q]], %c1{{ }}
// CHECK:       scf.forall (%{{.*}}, %[[H:.*]], %{{.*}}) =
// CHECK:         %[[KV:.*]] = tensor.dim %[[K]], %c1{{ }}
// CHECK:         %[[DIVISOR:.*]] = arith.maxsi %[[KV]], %c1
// CHECK:         %[[GROUP:.*]] = arith.divui %[[HEADS]], %[[DIVISOR]]
// CHECK:         arith.divui %[[H]], %[[GROUP]]
func.func @dynamic_heads(%q: tensor<1x?x8x16xf32>, %k: tensor<1x?x8x16xf32>) -> tensor<1x?x8x16xf32> {
  %o = attn.attention %q, %k, %k scale(0.25) {schedule = #attn.schedule<tile = 8x8, order = linear>}
    : tensor<1x?x8x16xf32>, tensor<1x?x8x16xf32>, tensor<1x?x8x16xf32> -> tensor<1x?x8x16xf32>
  return %o : tensor<1x?x8x16xf32>
}

// -----

// An elementwise producer of the queries is computed per tile.

// CHECK-LABEL: func @scaled_queries
// CHECK-NOT:   linalg.generic
// CHECK:       scf.forall
// CHECK:         linalg.generic {{.*}} outs(%{{.*}} : tensor<1x1x8x16xf32>)
// CHECK:         scf.for
#id = affine_map<(b, h, i, d) -> (b, h, i, d)>
func.func @scaled_queries(%q: tensor<1x2x16x16xf32>, %k: tensor<1x2x16x16xf32>) -> tensor<1x2x16x16xf32> {
  %e = tensor.empty() : tensor<1x2x16x16xf32>
  %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%q : tensor<1x2x16x16xf32>) outs(%e : tensor<1x2x16x16xf32>) {
  ^bb0(%x: f32, %y: f32):
    %z = arith.mulf %x, %x : f32
    linalg.yield %z : f32
  } -> tensor<1x2x16x16xf32>
  %o = attn.attention %s, %k, %k scale(0.25) {schedule = #attn.schedule<tile = 8x8, order = linear>}
    : tensor<1x2x16x16xf32>, tensor<1x2x16x16xf32>, tensor<1x2x16x16xf32> -> tensor<1x2x16x16xf32>
  return %o : tensor<1x2x16x16xf32>
}

// -----

// So are norms and rope, with the rows of the tables that the tile needs; those
// of the keys, which many tiles read, are not.

// CHECK-LABEL: func @rope
// CHECK-SAME:    %[[Q:[^:]*]]: tensor<1x2x16x16xf32>, %[[K:[^:]*]]: tensor<1x2x16x16xf32>, %[[COS:[^:]*]]: tensor<16x8xf32>, %[[SIN:[^:]*]]: tensor<16x8xf32>
// CHECK:       %[[KR:.*]] = attn.rope %[[K]], %[[COS]], %[[SIN]]
// CHECK:       scf.forall (%[[B:.*]], %[[H:.*]], %[[I:.*]]) =
// CHECK:         %[[QT:.*]] = tensor.extract_slice %[[Q]][%[[B]], %[[H]], %[[I]], 0]
// CHECK:         %[[N:.*]] = attn.rms_norm %[[QT]] epsilon
// CHECK-DAG:     %[[COST:.*]] = tensor.extract_slice %[[COS]][%[[I]], 0] [8, 8] [1, 1]
// CHECK-DAG:     %[[SINT:.*]] = tensor.extract_slice %[[SIN]][%[[I]], 0] [8, 8] [1, 1]
// CHECK:         %[[R:.*]] = attn.rope %[[N]], %[[COST]], %[[SINT]] : tensor<1x1x8x16xf32>
// CHECK:         scf.for
// CHECK:           attn.online_attention {{.*}} ins(%[[R]],
func.func @rope(%q: tensor<1x2x16x16xf32>, %k: tensor<1x2x16x16xf32>, %cos: tensor<16x8xf32>, %sin: tensor<16x8xf32>) -> tensor<1x2x16x16xf32> {
  %n = attn.rms_norm %q epsilon(1.0e-6) : tensor<1x2x16x16xf32>
  %r = attn.rope %n, %cos, %sin : tensor<1x2x16x16xf32>, tensor<16x8xf32>, tensor<16x8xf32>
  %s = attn.rope %k, %cos, %sin : tensor<1x2x16x16xf32>, tensor<16x8xf32>, tensor<16x8xf32>
  %o = attn.attention %r, %s, %k scale(0.25) {schedule = #attn.schedule<tile = 8x8, order = linear>}
    : tensor<1x2x16x16xf32>, tensor<1x2x16x16xf32>, tensor<1x2x16x16xf32> -> tensor<1x2x16x16xf32>
  return %o : tensor<1x2x16x16xf32>
}

// -----

// What a graph takes in steps is a tensor of its own, whose tiles have none.
// Other slices are merged.

// CHECK-LABEL: func @steps
// CHECK-SAME:    %[[X:[^:]*]]: tensor<1x6x140x16xf32>
// CHECK:       %[[Q:.*]] = tensor.extract_slice %[[X]][0, 0, 1, 0] [1, 2, 70, 16] [1, 1, 2, 1]
// CHECK:       scf.forall (%[[B:.*]], %[[H:.*]], %[[I:.*]]) =
// CHECK:         tensor.extract_slice %[[Q]][%[[B]], %[[H]], %[[I]], 0] [1, 1, %{{.*}}, 16] [1, 1, 1, 1]
// CHECK:         scf.for
// CHECK:           tensor.extract_slice %[[X]][%[[B]], %{{.*}}, %{{.*}}, 0] [1, 1, %{{.*}}, 16] [1, 1, 1, 1]
func.func @steps(%x: tensor<1x6x140x16xf32>) -> tensor<1x2x70x16xf32> {
  %q = tensor.extract_slice %x[0, 0, 1, 0] [1, 2, 70, 16] [1, 1, 2, 1] : tensor<1x6x140x16xf32> to tensor<1x2x70x16xf32>
  %k = tensor.extract_slice %x[0, 2, 70, 0] [1, 2, 70, 16] [1, 1, 1, 1] : tensor<1x6x140x16xf32> to tensor<1x2x70x16xf32>
  %o = attn.attention %q, %k, %k scale(0.25) {schedule = #attn.schedule<tile = 48x64, order = linear>}
    : tensor<1x2x70x16xf32>, tensor<1x2x70x16xf32>, tensor<1x2x70x16xf32> -> tensor<1x2x70x16xf32>
  return %o : tensor<1x2x70x16xf32>
}
