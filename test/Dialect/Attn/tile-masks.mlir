// RUN: fovea-opt %s --attn-online-softmax --attn-tile --split-input-file | FileCheck %s

// Causal: keys end at the last row, and only tiles that reach beyond the first
// row are masked. No tile is tested.

// CHECK-LABEL: func @causal
// CHECK-DAG:   %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG:   %[[C1:.*]] = arith.constant -1 : index
// CHECK-DAG:   %[[KEYS:.*]] = tensor.dim
// CHECK:       scf.forall (%{{.*}}, %{{.*}}, %[[I:.*]]) = (0, 0, 0)
// CHECK:         %[[ROWS:.*]] = affine.min
// CHECK:         %[[END:.*]] = arith.addi %[[I]], %[[ROWS]]
// CHECK:         %[[UPPER:.*]] = arith.minsi %[[END]], %[[KEYS]]
// CHECK:         scf.for %[[J:[^ ]*]] = %[[C0]] to %[[UPPER]]
// CHECK-NOT:       scf.if
// CHECK:           %[[SIZE:.*]] = affine.min #{{.*}}(%[[J]])[%[[UPPER]]]
// CHECK:           %[[TILE_END:.*]] = arith.addi %[[J]], %[[SIZE]]
// CHECK:           %[[LAST:.*]] = arith.addi %[[TILE_END]], %[[C1]]
// CHECK:           %[[PARTIAL:.*]] = arith.cmpi sgt, %[[LAST]], %[[I]]
// CHECK:           attn.online_attention {{.*}} partial(%[[PARTIAL]]) mask {
func.func @causal(%q: tensor<2x4x?x16xf32>) -> tensor<2x4x?x16xf32> {
  %o = attn.attention %q, %q, %q scale(0.25)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %keep = arith.cmpi sge, %i, %j : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 8x16, order = linear>}
    : tensor<2x4x?x16xf32>, tensor<2x4x?x16xf32>, tensor<2x4x?x16xf32> -> tensor<2x4x?x16xf32>
  return %o : tensor<2x4x?x16xf32>
}

// -----

// A window: the first tile of keys is the one that the first row's window
// begins in.

// CHECK-LABEL: func @window
// CHECK-DAG:   %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG:   %[[C39:.*]] = arith.constant -39 : index
// CHECK-DAG:   %[[C16:.*]] = arith.constant 16 : index
// CHECK:       scf.forall (%{{.*}}, %{{.*}}, %[[I:.*]]) = (0, 0, 0)
// CHECK:         %[[BEGIN:.*]] = arith.addi %[[I]], %[[C39]]
// CHECK:         %[[LOWER:.*]] = arith.maxsi %[[BEGIN]], %[[C0]]
// CHECK:         %[[UPPER:.*]] = arith.minsi
// CHECK:         %[[SOME:.*]] = arith.cmpi slt, %[[LOWER]], %[[UPPER]]
// CHECK:         %[[END:.*]] = arith.select %[[SOME]], %[[UPPER]], %[[C0]]
// CHECK:         %[[TILE:.*]] = arith.floordivsi %[[LOWER]], %[[C16]]
// CHECK:         %[[FIRST:.*]] = arith.muli %[[TILE]], %[[C16]]
// CHECK:         scf.for %{{.*}} = %[[FIRST]] to %[[END]] step %[[C16]]
// CHECK-NOT:       scf.if
// CHECK:           attn.online_attention {{.*}} partial(
func.func @window(%q: tensor<1x1x?x16xf32>) -> tensor<1x1x?x16xf32> {
  %o = attn.attention %q, %q, %q scale(0.25)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %d = arith.subi %i, %j : index
      %c40 = arith.constant 40 : index
      %near = arith.cmpi slt, %d, %c40 : index
      %causal = arith.cmpi sge, %i, %j : index
      %keep = arith.andi %near, %causal : i1
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 8x16, order = linear>}
    : tensor<1x1x?x16xf32>, tensor<1x1x?x16xf32>, tensor<1x1x?x16xf32> -> tensor<1x1x?x16xf32>
  return %o : tensor<1x1x?x16xf32>
}

// -----

// Lengths are read once for each tile of queries, and bound the keys.

// CHECK-LABEL: func @lengths
// CHECK-SAME:    %[[LENGTHS:[^:]*]]: tensor<2xi64>)
// CHECK:       scf.forall (%[[B:.*]], %{{.*}}, %{{.*}}) = (0, 0, 0)
// CHECK:         %[[N:.*]] = tensor.extract %[[LENGTHS]][%[[B]]]
// CHECK:         %[[LENGTH:.*]] = arith.index_cast %[[N]]
// CHECK:         %[[UPPER:.*]] = arith.minsi %[[LENGTH]], %{{.*}}
// CHECK:         scf.for %{{.*}} = %{{.*}} to %[[UPPER]]
// CHECK-NOT:       scf.if
// CHECK:           attn.online_attention
func.func @lengths(%q: tensor<2x1x?x16xf32>, %lengths: tensor<2xi64>) -> tensor<2x1x?x16xf32> {
  %o = attn.attention %q, %q, %q scale(0.25)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %n = tensor.extract %lengths[%b] : tensor<2xi64>
      %m = arith.index_cast %n : i64 to index
      %keep = arith.cmpi slt, %j, %m : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 8x16, order = linear>}
    : tensor<2x1x?x16xf32>, tensor<2x1x?x16xf32>, tensor<2x1x?x16xf32> -> tensor<2x1x?x16xf32>
  return %o : tensor<2x1x?x16xf32>
}

// -----

// Documents: tables of the ids by tile of queries and by tile of keys, filled
// before the loops, in the 32 bits that ids have. Tiles whose ids do not overlap are
// skipped.

// CHECK-LABEL: func @documents
// CHECK-SAME:    %[[IDS:[^:]*]]: tensor<2x?xi32>)
// CHECK-DAG:   %[[LEAST:.*]] = arith.constant -2147483648 : i32
// CHECK-DAG:   %[[GREATEST:.*]] = arith.constant 2147483647 : i32
// CHECK:       %[[ROWS:.*]]:2 = scf.forall (%[[TB:.*]], %{{.*}}) in (2, %{{.*}}) {{.*}} -> (tensor<2x?xi32>, tensor<2x?xi32>)
// CHECK:         scf.for %[[X:[^ ]*]] = {{.*}} iter_args(%[[MIN:[^ ,]*]] = %[[GREATEST]], %[[MAX:[^ ,]*]] = %[[LEAST]])
// CHECK:           %[[ID:.*]] = tensor.extract %[[IDS]][%[[TB]], %[[X]]]
// CHECK-NEXT:      arith.minsi %[[MIN]], %[[ID]] : i32
// CHECK-NEXT:      arith.maxsi %[[MAX]], %[[ID]] : i32
// CHECK:       %[[COLUMNS:.*]]:2 = scf.forall (%{{.*}}, %{{.*}}) in (2, %{{.*}}) {{.*}} -> (tensor<2x?xi32>, tensor<2x?xi32>)
// CHECK:       scf.forall (%[[B:.*]], %{{.*}}, %{{.*}}) = (0, 0, 0)
// CHECK:         %[[RMIN32:.*]] = tensor.extract %[[ROWS]]#0[%[[B]], %{{.*}}]
// CHECK:         %[[RMIN:.*]] = arith.index_cast %[[RMIN32]] : i32 to index
// CHECK:         %[[RMAX32:.*]] = tensor.extract %[[ROWS]]#1[%[[B]], %{{.*}}]
// CHECK:         %[[RMAX:.*]] = arith.index_cast %[[RMAX32]] : i32 to index
// CHECK:         scf.for
// CHECK:           %[[CMIN32:.*]] = tensor.extract %[[COLUMNS]]#0[%[[B]], %{{.*}}]
// CHECK:           %[[CMIN:.*]] = arith.index_cast %[[CMIN32]] : i32 to index
// CHECK:           %[[CMAX32:.*]] = tensor.extract %[[COLUMNS]]#1[%[[B]], %{{.*}}]
// CHECK:           %[[CMAX:.*]] = arith.index_cast %[[CMAX32]] : i32 to index
// CHECK:           %[[A:.*]] = arith.cmpi sle, %[[RMIN]], %[[CMAX]]
// CHECK:           %[[C:.*]] = arith.cmpi sle, %[[CMIN]], %[[RMAX]]
// CHECK:           %[[OVERLAP:.*]] = arith.andi %[[A]], %[[C]]
// CHECK:           %[[E:.*]] = arith.cmpi eq, %[[RMIN]], %[[CMAX]]
// CHECK:           %[[F:.*]] = arith.cmpi eq, %[[RMAX]], %[[CMIN]]
// CHECK:           %[[SAME:.*]] = arith.andi %[[E]], %[[F]]
// CHECK:           scf.if %[[OVERLAP]]
// CHECK:             %[[PARTIAL:.*]] = arith.xori %[[SAME]]
// CHECK:             attn.online_attention {{.*}} partial(%[[PARTIAL]]) mask {
func.func @documents(%q: tensor<2x4x?x16xf32>, %ids: tensor<2x?xi32>) -> tensor<2x4x?x16xf32> {
  %o = attn.attention %q, %q, %q scale(0.25)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %p = tensor.extract %ids[%b, %i] : tensor<2x?xi32>
      %r = tensor.extract %ids[%b, %j] : tensor<2x?xi32>
      %same = arith.cmpi eq, %p, %r : i32
      attn.yield %same : i1
    } {schedule = #attn.schedule<tile = 8x16, order = linear>}
    : tensor<2x4x?x16xf32>, tensor<2x4x?x16xf32>, tensor<2x4x?x16xf32> -> tensor<2x4x?x16xf32>
  return %o : tensor<2x4x?x16xf32>
}

// -----

// Ids of 64 bits have tables of indices; those of 8 bits, by their sign, of 32 bits.

// CHECK-LABEL: func @other_ids
// CHECK-SAME:    %[[WIDE:[^:]*]]: tensor<?xi64>, %[[SHORT:[^:]*]]: tensor<?xi8>)
// CHECK:       scf.forall {{.*}} -> (tensor<?xindex>, tensor<?xindex>)
// CHECK:         scf.for
// CHECK:           %[[X:.*]] = tensor.extract %[[WIDE]]
// CHECK-NEXT:      %[[CAST:.*]] = arith.index_cast %[[X]] : i64 to index
// CHECK-NEXT:      arith.minsi %{{.*}}, %[[CAST]] : index
// CHECK-NEXT:      arith.maxsi %{{.*}}, %[[CAST]] : index
// CHECK:       scf.forall {{.*}} -> (tensor<?xi32>, tensor<?xi32>)
// CHECK:         scf.for
// CHECK:           %[[Y:.*]] = tensor.extract %[[SHORT]]
// CHECK-NEXT:      %[[EXTENDED:.*]] = arith.extsi %[[Y]] : i8 to i32
// CHECK-NEXT:      arith.minsi %{{.*}}, %[[EXTENDED]] : i32
// CHECK-NEXT:      arith.maxsi %{{.*}}, %[[EXTENDED]] : i32
func.func @other_ids(%q: tensor<1x1x?x16xf32>, %wide: tensor<?xi64>, %short: tensor<?xi8>) -> tensor<1x1x?x16xf32> {
  %o = attn.attention %q, %q, %q scale(0.25)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %x = tensor.extract %wide[%i] : tensor<?xi64>
      %m = arith.index_cast %x : i64 to index
      %y = tensor.extract %short[%i] : tensor<?xi8>
      %n = arith.index_cast %y : i8 to index
      %from = arith.cmpi sge, %j, %m : index
      %to = arith.cmpi slt, %j, %n : index
      %keep = arith.andi %from, %to : i1
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 8x16, order = linear>}
    : tensor<1x1x?x16xf32>, tensor<1x1x?x16xf32>, tensor<1x1x?x16xf32> -> tensor<1x1x?x16xf32>
  return %o : tensor<1x1x?x16xf32>
}

// -----

// A padding mask has a table of conditions.

// CHECK-LABEL: func @padding
// CHECK:       %[[PAD:.*]]:2 = scf.forall {{.*}} -> (tensor<2x?xi1>, tensor<2x?xi1>)
// CHECK:       scf.forall
// CHECK:         scf.for
// CHECK:           %[[ALL:.*]] = tensor.extract %[[PAD]]#0
// CHECK:           %[[ANY:.*]] = tensor.extract %[[PAD]]#1
// CHECK:           scf.if %[[ANY]]
// CHECK:             %[[PARTIAL:.*]] = arith.xori %[[ALL]]
// CHECK:             attn.online_attention {{.*}} partial(%[[PARTIAL]]) mask {
func.func @padding(%q: tensor<2x1x?x16xf32>, %pad: tensor<2x?xi1>) -> tensor<2x1x?x16xf32> {
  %o = attn.attention %q, %q, %q scale(0.25)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %keep = tensor.extract %pad[%b, %j] : tensor<2x?xi1>
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 8x16, order = linear>}
    : tensor<2x1x?x16xf32>, tensor<2x1x?x16xf32>, tensor<2x1x?x16xf32> -> tensor<2x1x?x16xf32>
  return %o : tensor<2x1x?x16xf32>
}

// -----

// What cannot be decided is masked element by element, everywhere.

// CHECK-LABEL: func @dense
// CHECK:         scf.for
// CHECK-NOT:       scf.if
// CHECK:           attn.online_attention
// CHECK-NOT:       partial
// CHECK:           mask {
func.func @dense(%q: tensor<1x1x?x16xf32>, %dense: tensor<?x?xf32>) -> tensor<1x1x?x16xf32> {
  %o = attn.attention %q, %q, %q scale(0.25)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %x = tensor.extract %dense[%i, %j] : tensor<?x?xf32>
      %zero = arith.constant 0.0 : f32
      %keep = arith.cmpf oge, %x, %zero : f32
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 8x16, order = linear>}
    : tensor<1x1x?x16xf32>, tensor<1x1x?x16xf32>, tensor<1x1x?x16xf32> -> tensor<1x1x?x16xf32>
  return %o : tensor<1x1x?x16xf32>
}

// -----

// Positions, which are below 2^30, do not wrap in 32 bits: the bounds hold.

// CHECK-LABEL: func @narrow
// CHECK:       %[[KEYS:.*]] = tensor.dim
// CHECK:       scf.forall (%{{.*}}, %{{.*}}, %[[I:.*]]) =
// CHECK-NOT:     arith.cmpi
// CHECK-NOT:     arith.select
// CHECK:         %[[ROWS:.*]] = arith.addi %[[I]], %{{.*}} : index
// CHECK-NEXT:    %[[END:.*]] = arith.minsi %[[ROWS]], %[[KEYS]] : index
// CHECK-NEXT:    scf.for %{{.*}} = %{{.*}} to %[[END]] step
func.func @narrow(%q: tensor<1x1x?x16xf32>) -> tensor<1x1x?x16xf32> {
  %o = attn.attention %q, %q, %q scale(0.25)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %p = arith.index_cast %i : index to i32
      %r = arith.index_cast %j : index to i32
      %keep = arith.cmpi sge, %p, %r : i32
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 8x16, order = linear>}
    : tensor<1x1x?x16xf32>, tensor<1x1x?x16xf32>, tensor<1x1x?x16xf32> -> tensor<1x1x?x16xf32>
  return %o : tensor<1x1x?x16xf32>
}

// -----

// Positions in 16 bits: the bounds hold only where no position wraps.

// CHECK-LABEL: func @narrower
// CHECK-DAG:   %[[LARGEST:.*]] = arith.constant 32767 : index
// CHECK-DAG:   %[[KEYS:.*]] = tensor.dim
// CHECK:       scf.forall
// CHECK:         %[[FITS_KEY:.*]] = arith.cmpi sle, %{{.*}}, %[[LARGEST]]
// CHECK:         %[[FITS_ROW:.*]] = arith.cmpi sle, %{{.*}}, %[[LARGEST]]
// CHECK:         %[[SOUND:.*]] = arith.andi %[[FITS_KEY]], %[[FITS_ROW]]
// CHECK:         arith.select %[[SOUND]], %{{.*}}, %[[KEYS]]
func.func @narrower(%q: tensor<1x1x?x16xf32>) -> tensor<1x1x?x16xf32> {
  %o = attn.attention %q, %q, %q scale(0.25)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %p = arith.index_cast %i : index to i16
      %r = arith.index_cast %j : index to i16
      %keep = arith.cmpi sge, %p, %r : i16
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 8x16, order = linear>}
    : tensor<1x1x?x16xf32>, tensor<1x1x?x16xf32>, tensor<1x1x?x16xf32> -> tensor<1x1x?x16xf32>
  return %o : tensor<1x1x?x16xf32>
}

// -----

// All keys between the bounds of lengths are kept: a host's tiles end where
// they do, and have no mask.

// CHECK-LABEL: func @lengths
// CHECK:         %[[UPPER:.*]] = arith.minsi
// CHECK:         scf.for %[[J:[^ ]*]] = %{{.*}} to %[[UPPER]]
// CHECK-NOT:       scf.if
// CHECK:           %[[SIZE:.*]] = affine.min #{{.*}}(%[[J]])[%[[UPPER]]]
// CHECK:           tensor.extract_slice %{{.*}}[%{{.*}}, %[[J]], 0] [1, 1, %[[SIZE]], 16]
// CHECK:           attn.online_attention
// CHECK-NOT:       partial
// CHECK-NOT:       mask
// CHECK:         attn.finalize
func.func @lengths(%q: tensor<2x1x?x16xf32>, %lengths: tensor<2xi32>) -> tensor<2x1x?x16xf32> {
  %o = attn.attention %q, %q, %q scale(0.25)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %length = tensor.extract %lengths[%b] : tensor<2xi32>
      %end = arith.index_cast %length : i32 to index
      %keep = arith.cmpi slt, %j, %end : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 8x16, order = linear>}
    : tensor<2x1x?x16xf32>, tensor<2x1x?x16xf32>, tensor<2x1x?x16xf32> -> tensor<2x1x?x16xf32>
  return %o : tensor<2x1x?x16xf32>
}

// -----

// A window of one query: its first tile begins where the window does.

// CHECK-LABEL: func @window_of_one
// CHECK:         scf.for %[[J:[^ ]*]] =
// CHECK:           %[[SKIPPED:.*]] = affine.max #{{.*}}(%[[J]])[%[[LOWER:.*]]]
// CHECK:           %[[FIRST:.*]] = affine.apply #{{.*}}(%[[J]])[%[[SKIPPED]]]
// CHECK:           tensor.extract_slice %{{.*}}[%{{.*}}, %[[FIRST]], 0]
// CHECK:           attn.online_attention
// CHECK-NOT:       mask
// CHECK:         attn.finalize
func.func @window_of_one(%q: tensor<1x1x1x16xf32>, %k: tensor<1x1x?x16xf32>, %at: tensor<i32>) -> tensor<1x1x1x16xf32> {
  %o = attn.attention %q, %k, %k scale(0.25)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %position = tensor.extract %at[] : tensor<i32>
      %p = arith.index_cast %position : i32 to index
      %d = arith.subi %p, %j : index
      %c40 = arith.constant 40 : index
      %near = arith.cmpi slt, %d, %c40 : index
      %causal = arith.cmpi sge, %p, %j : index
      %keep = arith.andi %near, %causal : i1
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 8x16, order = linear>}
    : tensor<1x1x1x16xf32>, tensor<1x1x?x16xf32>, tensor<1x1x?x16xf32> -> tensor<1x1x1x16xf32>
  return %o : tensor<1x1x1x16xf32>
}

// -----

// A GPU's tiles are whole: keys behind the length are masked.

// CHECK-LABEL: func @lengths_on_a_gpu
// CHECK:           attn.online_attention {{.*}} partial(%{{.*}}) mask {
func.func @lengths_on_a_gpu(%q: tensor<2x1x?x16xf16>, %lengths: tensor<2xi32>) -> tensor<2x1x?x16xf16> {
  %o = attn.attention %q, %q, %q scale(0.25)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %length = tensor.extract %lengths[%b] : tensor<2xi32>
      %end = arith.index_cast %length : i32 to index
      %keep = arith.cmpi slt, %j, %end : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 16x16, order = linear, warps = 1, stages = 1>}
    : tensor<2x1x?x16xf16>, tensor<2x1x?x16xf16>, tensor<2x1x?x16xf16> -> tensor<2x1x?x16xf16>
  return %o : tensor<2x1x?x16xf16>
}
