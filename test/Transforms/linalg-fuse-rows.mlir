// RUN: fovea-opt --convert-attn-to-linalg --linalg-prepare --canonicalize --cse \
// RUN:   --linalg-fuse-rows --canonicalize --cse --split-input-file \
// RUN:   --mlir-print-local-scope %s | FileCheck %s
// RUN: fovea-opt --convert-attn-to-linalg --linalg-prepare --canonicalize --cse \
// RUN:   --linalg-fuse-rows=scope=op --canonicalize --cse --split-input-file \
// RUN:   --mlir-print-local-scope %s | FileCheck %s --check-prefix=OP

// The textbook case: one loop over rows, one row in, one row out, no tensor in
// between. Unfused, norm is one kernel and the others are single ops.
// CHECK-LABEL: func.func @layer_norm_dropout_add
// CHECK-SAME: %[[X:.*]]: tensor<2x?x512xf32>, %[[R:.*]]: tensor<2x?x512xf32>
// CHECK: scf.forall (%[[I:.*]], %[[J:.*]]) in (2, %{{[^)]*}})
// CHECK-SAME: -> (tensor<2x?x512xf32>)
// CHECK: tensor.extract_slice %[[X]][%[[I]], %[[J]], 0] [1, 1, 512]
// CHECK-COUNT-2: "reduction"
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "parallel"]
// CHECK:   arith.mului_extended
// CHECK:   arith.addf
// CHECK: tensor.parallel_insert_slice
// CHECK: machine.grain = 32
// CHECK-NOT: linalg.generic
// CHECK: return
// OP-LABEL: func.func @layer_norm_dropout_add
// OP: scf.forall
// OP: tensor.parallel_insert_slice
// OP: linalg.generic
// OP: arith.mului_extended
// OP: linalg.generic
// OP: return
func.func @layer_norm_dropout_add(%x: tensor<2x?x512xf32>, %r: tensor<2x?x512xf32>,
                                  %seed: i64, %offset: i64) -> tensor<2x?x512xf32> {
  %y = attn.layer_norm %x epsilon(1.0e-5) : tensor<2x?x512xf32>
  %d = attn.dropout %y, 0.1 seed(%seed, %offset) : tensor<2x?x512xf32>
  %z = attn.residual_add %d, %r : tensor<2x?x512xf32>, tensor<2x?x512xf32>
  return %z : tensor<2x?x512xf32>
}

// -----

// What others use is written row by row as well.
// CHECK-LABEL: func.func @add_norm
// CHECK: %[[F:.*]]:2 = scf.forall
// CHECK-SAME: -> (tensor<8x64xf32>, tensor<8x64xf32>)
// CHECK-COUNT-2: tensor.parallel_insert_slice
// CHECK: return %[[F]]#{{[01]}}, %[[F]]#{{[01]}}
func.func @add_norm(%x: tensor<8x64xf32>, %r: tensor<8x64xf32>)
    -> (tensor<8x64xf32>, tensor<8x64xf32>) {
  %h = attn.residual_add %x, %r : tensor<8x64xf32>, tensor<8x64xf32>
  %y = attn.rms_norm %h epsilon(1.0e-6) : tensor<8x64xf32>
  return %h, %y : tensor<8x64xf32>, tensor<8x64xf32>
}

// -----

// Norm and rotary embedding: the reshape between them is moved away.
// CHECK-LABEL: func.func @norm_rope
// CHECK: scf.forall
// CHECK: "reduction"
// CHECK: affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, -d3 + 1, d4)>
// CHECK-NOT: linalg.generic
// CHECK: tensor.parallel_insert_slice
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @norm_rope(%x: tensor<1x4x?x64xf32>, %c: tensor<?x32xf32>,
                     %s: tensor<?x32xf32>) -> tensor<1x4x?x64xf32> {
  %n = attn.rms_norm %x epsilon(1.0e-6) : tensor<1x4x?x64xf32>
  %y = attn.rope %n, %c, %s
      : tensor<1x4x?x64xf32>, tensor<?x32xf32>, tensor<?x32xf32>
  return %y : tensor<1x4x?x64xf32>
}

// -----

// A contraction is in no group, and no group reaches around it.
// CHECK-LABEL: func.func @around_product
// CHECK: %[[N:.*]] = scf.forall
// CHECK: %[[P:.*]] = linalg.generic {{.*}} ins(%[[N]], %{{.*}} : tensor<8x64xf32>, tensor<64x64xf32>)
// CHECK: scf.forall
// CHECK: return
func.func @around_product(%x: tensor<8x64xf32>, %w: tensor<64x64xf32>)
    -> tensor<8x64xf32> {
  %n = attn.rms_norm %x epsilon(1.0e-6) : tensor<8x64xf32>
  %e = tensor.empty() : tensor<8x64xf32>
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x64xf32>) -> tensor<8x64xf32>
  %p = linalg.matmul ins(%n, %w : tensor<8x64xf32>, tensor<64x64xf32>)
      outs(%f : tensor<8x64xf32>) -> tensor<8x64xf32>
  %h = attn.residual_add %p, %n : tensor<8x64xf32>, tensor<8x64xf32>
  %y = attn.rms_norm %h epsilon(1.0e-6) : tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

// -----

// A tensor of bf16 between two ops is not rounded where both become one, as it
// would be in registers. The rounding that a body asks for itself stays.
// CHECK-LABEL: func.func @rounding
// CHECK: linalg.generic
// CHECK:   %[[E:.*]] = math.exp %{{.*}} : f32
// CHECK-NEXT: %[[OWN:.*]] = arith.truncf %[[E]] : f32 to f16
// CHECK-NEXT: %[[WIDE:.*]] = arith.extf %[[OWN]] : f16 to f32
// CHECK-NEXT: %[[HALF:.*]] = arith.mulf %[[WIDE]], %{{.*}} : f32
// CHECK-NEXT: arith.addf %[[HALF]], %{{.*}} : f32
// CHECK-NEXT: linalg.yield
// CHECK-NOT: machine.rounds
func.func @rounding(%x: tensor<8x64xf32>, %r: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %half = arith.constant 0.5 : f32
  %b = tensor.empty() : tensor<8x64xbf16>
  %between = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x64xf32>) outs(%b : tensor<8x64xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %e = math.exp %in : f32
    %own = arith.truncf %e : f32 to f16
    %wide = arith.extf %own : f16 to f32
    %h = arith.mulf %wide, %half : f32
    %narrow = arith.truncf %h : f32 to bf16
    linalg.yield %narrow : bf16
  } -> tensor<8x64xbf16>
  %f = tensor.empty() : tensor<8x64xf32>
  %sum = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>,
                       affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%between, %r : tensor<8x64xbf16>, tensor<8x64xf32>) outs(%f : tensor<8x64xf32>) {
  ^bb0(%in: bf16, %other: f32, %out: f32):
    %w = arith.extf %in : bf16 to f32
    %s = arith.addf %w, %other : f32
    linalg.yield %s : f32
  } -> tensor<8x64xf32>
  return %sum : tensor<8x64xf32>
}

// -----

// One op, and rows in another order, stay as they are.
// CHECK-LABEL: func.func @apart
// CHECK-NOT: scf.forall
// CHECK: return
func.func @apart(%x: tensor<8x64xf32>) -> tensor<64x8xf32> {
  %y = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x64xf32>) outs(%x : tensor<8x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %e = math.exp %a : f32
    linalg.yield %e : f32
  } -> tensor<8x64xf32>
  %t = tensor.empty() : tensor<64x8xf32>
  %z = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%y : tensor<8x64xf32>) outs(%t : tensor<64x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %e = math.exp %a : f32
    linalg.yield %e : f32
  } -> tensor<64x8xf32>
  return %z : tensor<64x8xf32>
}

// -----

// Of two groups only one may wait for the other: b2 and c become one loop, a1
// and a2 the next; b1, which waits for a1, is not part of b2's loop.
// CHECK-LABEL: func.func @waits
// CHECK: %[[B:.*]]:2 = scf.forall
// CHECK:   math.exp
// CHECK:   math.sin
// CHECK: %[[A:.*]]:2 = scf.forall
// CHECK:   math.sqrt
// CHECK:   arith.subf
// CHECK: linalg.generic
// CHECK:   arith.addf
// CHECK: return
func.func @waits(%x: tensor<8x8xf32>, %y: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %a1 = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x8xf32>) outs(%x : tensor<8x8xf32>) {
  ^bb0(%e: f32, %o: f32):
    %r = math.sqrt %e : f32
    linalg.yield %r : f32
  } -> tensor<8x8xf32>
  %c = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%y : tensor<8x8xf32>) outs(%y : tensor<8x8xf32>) {
  ^bb0(%e: f32, %o: f32):
    %r = math.exp %e : f32
    linalg.yield %r : f32
  } -> tensor<8x8xf32>
  %b1 = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%c, %a1 : tensor<8x8xf32>, tensor<8x8xf32>) outs(%y : tensor<8x8xf32>) {
  ^bb0(%e: f32, %f: f32, %o: f32):
    %r = arith.addf %e, %f : f32
    linalg.yield %r : f32
  } -> tensor<8x8xf32>
  %b2 = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%c : tensor<8x8xf32>) outs(%y : tensor<8x8xf32>) {
  ^bb0(%e: f32, %o: f32):
    %r = math.sin %e : f32
    linalg.yield %r : f32
  } -> tensor<8x8xf32>
  %a2 = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%a1, %b2 : tensor<8x8xf32>, tensor<8x8xf32>) outs(%x : tensor<8x8xf32>) {
  ^bb0(%e: f32, %f: f32, %o: f32):
    %r = arith.subf %e, %f : f32
    linalg.yield %r : f32
  } -> tensor<8x8xf32>
  return %a2, %b1 : tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

// A tensor whose readers all have a reshaped result belongs to the same rows.
// CHECK-LABEL: func.func @reshaped
// CHECK: = scf.forall
// CHECK-NOT: = scf.forall
// CHECK: return
func.func @reshaped(%x: tensor<8x4x32xf32>, %m: tensor<8x4xf32>, %s: tensor<8x4xf32>, %o: tensor<8x4x32xf32>) -> tensor<8x2x2x32xf32> {
  %max = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : tensor<8x4x32xf32>) outs(%m : tensor<8x4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %r = arith.maxnumf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<8x4xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b)>, affine_map<(a, b, c) -> (a, b)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %max : tensor<8x4x32xf32>, tensor<8x4xf32>) outs(%s : tensor<8x4xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.subf %a, %b : f32
    %r = arith.addf %c, %d : f32
    linalg.yield %r : f32
  } -> tensor<8x4xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b)>, affine_map<(a, b, c) -> (a, b)>, affine_map<(a, b, c) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %max, %sum : tensor<8x4x32xf32>, tensor<8x4xf32>, tensor<8x4xf32>) outs(%o : tensor<8x4x32xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %z: f32):
    %d = arith.subf %a, %b : f32
    %r = arith.divf %d, %c : f32
    linalg.yield %r : f32
  } -> tensor<8x4x32xf32>
  %e = tensor.expand_shape %y [[0], [1, 2], [3]] output_shape [8, 2, 2, 32] : tensor<8x4x32xf32> into tensor<8x2x2x32xf32>
  return %e : tensor<8x2x2x32xf32>
}

// -----

// Rows that a transposition puts elsewhere are written there.
// CHECK-LABEL: func.func @transposed_rows
// CHECK:       %[[ROWS:.*]] = scf.forall (%[[B:.*]], %[[H:.*]], %[[S:.*]]) in (2, 4, %{{.*}}) shared_outs(%[[OUT:.*]] = %{{.*}}) -> (tensor<2x?x4x64xbf16>)
// CHECK:         %[[X:.*]] = tensor.extract_slice %arg0[%[[B]], %[[H]], %[[S]], 0] [1, 1, 1, 64]
// CHECK:         %[[ROW:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<1x1x1x64xf32>) outs(%{{.*}} : tensor<1x1x1x64xbf16>)
// CHECK:           arith.mulf
// CHECK:           arith.truncf
// CHECK:         tensor.parallel_insert_slice %[[ROW]] into %[[OUT]][%[[B]], %[[S]], %[[H]], 0] [1, 1, 1, 64]
// CHECK-NOT:   linalg.generic
// CHECK:       return %[[ROWS]]
// OP-LABEL:    func.func @transposed_rows
// OP-NOT:      scf.forall
// OP:          affine_map<(d0, d1, d2, d3) -> (d0, d2, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
func.func @transposed_rows(%x: tensor<2x4x?x64xf32>) -> tensor<2x?x4x64xbf16> {
  %c2 = arith.constant 2 : index
  %n = tensor.dim %x, %c2 : tensor<2x4x?x64xf32>
  %wide = tensor.empty(%n) : tensor<2x4x?x64xf32>
  %scaled = linalg.generic {indexing_maps = [affine_map<(b, h, s, d) -> (b, h, s, d)>, affine_map<(b, h, s, d) -> (b, h, s, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x : tensor<2x4x?x64xf32>) outs(%wide : tensor<2x4x?x64xf32>) {
  ^bb0(%e: f32, %o: f32):
    %half = arith.constant 0.5 : f32
    %r = arith.mulf %e, %half : f32
    linalg.yield %r : f32
  } -> tensor<2x4x?x64xf32>
  %narrow = tensor.empty(%n) : tensor<2x4x?x64xbf16>
  %rounded = linalg.generic {indexing_maps = [affine_map<(b, h, s, d) -> (b, h, s, d)>, affine_map<(b, h, s, d) -> (b, h, s, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%scaled : tensor<2x4x?x64xf32>) outs(%narrow : tensor<2x4x?x64xbf16>) {
  ^bb0(%e: f32, %o: bf16):
    %r = arith.truncf %e : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<2x4x?x64xbf16>
  %out = tensor.empty(%n) : tensor<2x?x4x64xbf16>
  %t = linalg.transpose ins(%rounded : tensor<2x4x?x64xbf16>) outs(%out : tensor<2x?x4x64xbf16>) permutation = [0, 2, 1, 3]
  return %t : tensor<2x?x4x64xbf16>
}

// -----

// Left alone: neighbours would be written far apart.
// CHECK-LABEL: func.func @transposed_neighbours
// CHECK-NOT:   scf.forall
// CHECK:       math.exp
// CHECK-NOT:   scf.forall
// CHECK:       return
func.func @transposed_neighbours(%x: tensor<8x64xf32>, %y: tensor<8x64xf32>, %z: tensor<64x8xf32>) -> tensor<64x8xf32> {
  %e = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x64xf32>) outs(%y : tensor<8x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = math.exp %a : f32
    linalg.yield %r : f32
  } -> tensor<8x64xf32>
  %t = linalg.transpose ins(%e : tensor<8x64xf32>) outs(%z : tensor<64x8xf32>) permutation = [1, 0]
  return %t : tensor<64x8xf32>
}

// -----

// An op that reads transposed rows, which are others, is not one of the same rows.
// CHECK-LABEL: func.func @read_after_transposition
// CHECK:       %[[BOTH:.*]]:2 = scf.forall (%[[I:.*]], %[[J:.*]]) in (4, 8) shared_outs(%[[OUT:.*]] = %{{.*}}, %[[MOVED:.*]] = %{{.*}}) ->
// CHECK-NOT:     math.cos
// CHECK:         tensor.parallel_insert_slice %{{.*}} into %[[OUT]][%[[I]], %[[J]], 0]
// CHECK:         tensor.parallel_insert_slice %{{.*}} into %[[MOVED]][%[[J]], %[[I]], 0]
// CHECK:       linalg.generic {{.*}} ins(%[[BOTH]]#1 : tensor<8x4x32xf32>)
// CHECK:         math.cos
func.func @read_after_transposition(%x: tensor<4x8x32xf32>, %y: tensor<8x4x32xf32>) -> (tensor<4x8x32xf32>, tensor<8x4x32xf32>, tensor<8x4x32xf32>) {
  %e = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<4x8x32xf32>) outs(%x : tensor<4x8x32xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = math.exp %a : f32
    linalg.yield %r : f32
  } -> tensor<4x8x32xf32>
  %f = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%e : tensor<4x8x32xf32>) outs(%x : tensor<4x8x32xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = math.sin %a : f32
    linalg.yield %r : f32
  } -> tensor<4x8x32xf32>
  %t = linalg.transpose ins(%f : tensor<4x8x32xf32>) outs(%y : tensor<8x4x32xf32>) permutation = [1, 0, 2]
  %g = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%t : tensor<8x4x32xf32>) outs(%y : tensor<8x4x32xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = math.cos %a : f32
    linalg.yield %r : f32
  } -> tensor<8x4x32xf32>
  return %f, %t, %g : tensor<4x8x32xf32>, tensor<8x4x32xf32>, tensor<8x4x32xf32>
}
