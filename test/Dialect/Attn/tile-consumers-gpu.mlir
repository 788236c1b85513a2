// RUN: fovea-opt %s --attn-online-softmax --attn-tile="fuse-producers=false all-consumers" --debug-only=attn-tile --split-input-file 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=LOG --input-file=%t
// RUN: fovea-opt %s --attn-online-softmax --attn-tile="fuse-producers=false fuse-consumers=false" --split-input-file | FileCheck %s --check-prefix=OFF

// In a GPU's block, whose schedule has warps, the tile of the output is in registers:
// elementwise linalg ops are computed on it, and elementwise ops that make only
// their operands. The producers of queries stay. All of them here, whatever they cost.

// CHECK-LABEL: func @gated
// CHECK-SAME:    %[[X:[^:]*]]: tensor<1x2x128x16xbf16>, %[[G:[^:]*]]: tensor<1x2x128x16xbf16>, %[[R:[^:]*]]: tensor<1x128x2x16xbf16>
// CHECK:       %[[Q:.*]] = linalg.exp ins(%[[X]] :
// CHECK:       %[[ALL:.*]] = scf.forall (%[[B:.*]], %[[H:.*]], %[[I:.*]]) = {{.*}} shared_outs(%[[OUT:.*]] = %{{.*}}) -> (tensor<1x128x2x16xbf16>)
// CHECK:         tensor.extract_slice %[[Q]][%[[B]], %[[H]], %[[I]], 0]
// CHECK:         %[[O:.*]] = attn.finalize
// CHECK-DAG:     %[[GT:.*]] = tensor.extract_slice %[[G]][%[[B]], %[[H]], %[[I]], 0] [1, 1, 64, 16]
// CHECK-DAG:     %[[S:.*]] = linalg.tanh ins(%[[GT]] :
// CHECK:         %[[Y:.*]] = linalg.mul ins(%[[O]], %[[S]] :
// CHECK-DAG:     %[[RT:.*]] = tensor.extract_slice %[[R]][%[[B]], %[[I]], %[[H]], 0] [1, 64, 1, 16]
// CHECK-DAG:     %[[YT:.*]] = tensor.expand_shape
// CHECK:         %[[Z:.*]] = linalg.add ins(%[[YT]], %[[RT]] :
// CHECK:         scf.forall.in_parallel {
// CHECK-NEXT:      tensor.parallel_insert_slice %[[Z]] into %[[OUT]][%[[B]], %[[I]], %[[H]], 0] [1, 64, 1, 16]
// CHECK-NEXT:    }
// CHECK:       return %[[ALL]]

// OFF-LABEL: func @gated
// OFF:         scf.forall
// OFF:         linalg.mul
// OFF:         linalg.add
func.func @gated(%x: tensor<1x2x128x16xbf16>, %g: tensor<1x2x128x16xbf16>, %r: tensor<1x128x2x16xbf16>) -> tensor<1x128x2x16xbf16> {
  %e = tensor.empty() : tensor<1x2x128x16xbf16>
  %q = linalg.exp ins(%x : tensor<1x2x128x16xbf16>) outs(%e : tensor<1x2x128x16xbf16>) -> tensor<1x2x128x16xbf16>
  %o = attn.attention %q, %x, %x scale(0.25) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>}
    : tensor<1x2x128x16xbf16>, tensor<1x2x128x16xbf16>, tensor<1x2x128x16xbf16> -> tensor<1x2x128x16xbf16>
  %s = linalg.tanh ins(%g : tensor<1x2x128x16xbf16>) outs(%e : tensor<1x2x128x16xbf16>) -> tensor<1x2x128x16xbf16>
  %y = linalg.mul ins(%o, %s : tensor<1x2x128x16xbf16>, tensor<1x2x128x16xbf16>) outs(%e : tensor<1x2x128x16xbf16>) -> tensor<1x2x128x16xbf16>
  %f = tensor.empty() : tensor<1x128x2x16xbf16>
  %t = linalg.transpose ins(%y : tensor<1x2x128x16xbf16>) outs(%f : tensor<1x128x2x16xbf16>) permutation = [0, 2, 1, 3]
  %z = linalg.add ins(%t, %r : tensor<1x128x2x16xbf16>, tensor<1x128x2x16xbf16>) outs(%f : tensor<1x128x2x16xbf16>) -> tensor<1x128x2x16xbf16>
  return %z : tensor<1x128x2x16xbf16>
}

// -----

// The log-sum-exp, repeated for all features. The output and it are returned too,
// and written.

// CHECK-LABEL: func @sink
// CHECK:       %[[ALL:.*]]:3 = scf.forall {{.*}} -> (tensor<1x2x128x16xbf16>, tensor<1x2x128xf32>, tensor<1x2x128x16xf32>)
// CHECK:         %[[O:.*]]:2 = attn.finalize
// CHECK:         %[[L:.*]] = linalg.broadcast ins(%[[O]]#1 : tensor<1x1x64xf32>) outs(%{{.*}} : tensor<1x1x64x16xf32>) dimensions = [3]
// CHECK:         %[[Y:.*]] = linalg.generic {{.*}} ins(%[[O]]#0, %[[L]] :
// CHECK:         scf.forall.in_parallel {
// CHECK-DAG:       tensor.parallel_insert_slice %[[O]]#0
// CHECK-DAG:       tensor.parallel_insert_slice %[[O]]#1
// CHECK-DAG:       tensor.parallel_insert_slice %[[Y]]
#id = affine_map<(b, h, i, d) -> (b, h, i, d)>
func.func @sink(%q: tensor<1x2x128x16xbf16>) -> (tensor<1x2x128x16xf32>, tensor<1x2x128x16xbf16>, tensor<1x2x128xf32>) {
  %o, %lse = attn.attention %q, %q, %q scale(0.25) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>}
    : tensor<1x2x128x16xbf16>, tensor<1x2x128x16xbf16>, tensor<1x2x128x16xbf16> -> tensor<1x2x128x16xbf16>, tensor<1x2x128xf32>
  %e = tensor.empty() : tensor<1x2x128x16xf32>
  %l = linalg.broadcast ins(%lse : tensor<1x2x128xf32>) outs(%e : tensor<1x2x128x16xf32>) dimensions = [3]
  %y = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%o, %l : tensor<1x2x128x16xbf16>, tensor<1x2x128x16xf32>) outs(%e : tensor<1x2x128x16xf32>) {
  ^bb0(%a: bf16, %b: f32, %out: f32):
    %w = arith.extf %a : bf16 to f32
    %m = arith.mulf %w, %b : f32
    linalg.yield %m : f32
  } -> tensor<1x2x128x16xf32>
  return %y, %o, %lse : tensor<1x2x128x16xf32>, tensor<1x2x128x16xbf16>, tensor<1x2x128xf32>
}

// -----

// What stays behind the loop, and why: sums over features, norms, results that are
// no floats, reads at places that are computed, what is added to, a tensor that is
// given to write to, other places, and more dimensions than a tile has. So does what
// a gate is made of, if it is also returned.

// CHECK-LABEL: func @left_alone
// CHECK:       %[[S:.*]] = linalg.tanh
// CHECK:       %[[O:.*]]:2 = scf.forall
// CHECK:         attn.finalize
// CHECK-NEXT:    {{.*}}tensor.extract_slice %[[S]]
// CHECK-NEXT:    {{.*}}tensor.extract_slice
// CHECK-NEXT:    linalg.mul
// CHECK-NEXT:    scf.forall.in_parallel
// CHECK:       linalg.generic
// CHECK:       attn.rms_norm
// CHECK:       linalg.generic
// CHECK:       linalg.generic
// CHECK:       linalg.generic
// CHECK:       linalg.generic
// CHECK-DAG:   linalg.exp ins(%[[O]]
// CHECK-DAG:   linalg.broadcast
// LOG-DAG: attn.rms_norm at {{.*}} stays behind the loop: it is no elementwise op
// LOG-DAG: linalg.generic at {{.*}} stays behind the loop: it sums over what several threads have
// LOG-DAG: linalg.generic at {{.*}} stays behind the loop: it makes other numbers than floats
// LOG-DAG: linalg.generic at {{.*}} stays behind the loop: its region does more than compute from elements and indices
// LOG-DAG: linalg.generic at {{.*}} stays behind the loop: it reads what it writes to
// LOG-DAG: linalg.exp at {{.*}} stays behind the loop: it writes to a tensor that has elements
// LOG-DAG: linalg.generic at {{.*}} stays behind the loop: its tiles are not those of what it reads
// LOG-DAG: linalg.broadcast at {{.*}} stays behind the loop: its tiles are not those of what it reads
#id = affine_map<(b, h, i, d) -> (b, h, i, d)>
#row = affine_map<(b, h, i, d) -> (b, h, i)>
#turned = affine_map<(b, h, i, d) -> (b, h, d, i)>
!t = tensor<1x2x128x16xbf16>
!r = tensor<1x2x128xbf16>
!i = tensor<1x2x128x16xi1>
func.func @left_alone(%q: !t, %g: !t, %sums: !r, %table: tensor<16xbf16>, %acc: !t)
    -> (!t, !t, !r, !t, !i, !t, !t, !t, tensor<1x2x16x128xbf16>, tensor<1x2x128x16x3xbf16>) {
  %o = attn.attention %q, %q, %q scale(0.25) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>} : !t, !t, !t -> !t
  %e = tensor.empty() : !t
  %s = linalg.tanh ins(%g : !t) outs(%e : !t) -> !t
  %gated = linalg.mul ins(%o, %s : !t, !t) outs(%e : !t) -> !t
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
    ins(%o : !t) outs(%sums : !r) {
  ^bb0(%a: bf16, %c: bf16):
    %z = arith.addf %a, %c : bf16
    linalg.yield %z : bf16
  } -> !r
  %n = attn.rms_norm %o epsilon(1.0e-6) : !t
  %ei = tensor.empty() : !i
  %i = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%o : !t) outs(%ei : !i) {
  ^bb0(%a: bf16, %out: i1):
    %zero = arith.constant 0.0 : bf16
    %z = arith.cmpf ogt, %a, %zero : bf16
    linalg.yield %z : i1
  } -> !i
  %x = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%o : !t) outs(%e : !t) {
  ^bb0(%a: bf16, %out: bf16):
    %d = linalg.index 3 : index
    %w = tensor.extract %table[%d] : tensor<16xbf16>
    %z = arith.mulf %a, %w : bf16
    linalg.yield %z : bf16
  } -> !t
  %added = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%o : !t) outs(%acc : !t) {
  ^bb0(%a: bf16, %out: bf16):
    %z = arith.addf %a, %out : bf16
    linalg.yield %z : bf16
  } -> !t
  %eturned = tensor.empty() : tensor<1x2x16x128xbf16>
  %turned = linalg.generic {indexing_maps = [#id, #turned], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%o : !t) outs(%eturned : tensor<1x2x16x128xbf16>) {
  ^bb0(%a: bf16, %out: bf16):
    %z = arith.negf %a : bf16
    linalg.yield %z : bf16
  } -> tensor<1x2x16x128xbf16>
  %more = tensor.empty() : tensor<1x2x128x16x3xbf16>
  %repeated = linalg.broadcast ins(%o : !t) outs(%more : tensor<1x2x128x16x3xbf16>) dimensions = [4]
  %given = linalg.exp ins(%o : !t) outs(%acc : !t) -> !t
  return %gated, %s, %sum, %n, %i, %x, %added, %given, %turned, %repeated : !t, !t, !r, !t, !i, !t, !t, !t, tensor<1x2x16x128xbf16>, tensor<1x2x128x16x3xbf16>
}

// -----

// Tiles of one query have no rows, and parts of the keys are merged before anyone
// reads the output.

// CHECK-LABEL: func @one_query
// CHECK:       %[[O:.*]] = scf.forall
// CHECK:       linalg.exp ins(%[[O]] :
func.func @one_query(%q: tensor<1x2x1x16xbf16>, %k: tensor<1x2x128x16xbf16>) -> tensor<1x2x1x16xbf16> {
  %o = attn.attention %q, %k, %k scale(0.25) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>}
    : tensor<1x2x1x16xbf16>, tensor<1x2x128x16xbf16>, tensor<1x2x128x16xbf16> -> tensor<1x2x1x16xbf16>
  %e = tensor.empty() : tensor<1x2x1x16xbf16>
  %y = linalg.exp ins(%o : tensor<1x2x1x16xbf16>) outs(%e : tensor<1x2x1x16xbf16>) -> tensor<1x2x1x16xbf16>
  return %y : tensor<1x2x1x16xbf16>
}

// -----

// CHECK-LABEL: func @parts
// CHECK:       scf.forall {{.*}} to (1, 2, 64, 4)
// CHECK:       %[[O:.*]] = scf.forall {{.*}} in (1, 2, 64)
// CHECK:       linalg.exp ins(%[[O]] :
func.func @parts(%q: tensor<1x2x64x16xbf16>, %k: tensor<1x2x512x16xbf16>) -> tensor<1x2x64x16xbf16> {
  %o = attn.attention %q, %k, %k scale(0.25) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, split = 4>}
    : tensor<1x2x64x16xbf16>, tensor<1x2x512x16xbf16>, tensor<1x2x512x16xbf16> -> tensor<1x2x64x16xbf16>
  %e = tensor.empty() : tensor<1x2x64x16xbf16>
  %y = linalg.exp ins(%o : tensor<1x2x64x16xbf16>) outs(%e : tensor<1x2x64x16xbf16>) -> tensor<1x2x64x16xbf16>
  return %y : tensor<1x2x64x16xbf16>
}
