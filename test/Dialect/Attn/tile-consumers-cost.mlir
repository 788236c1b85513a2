// RUN: fovea-opt %s --attn-online-softmax --attn-tile=fuse-producers=false --debug-only=attn-tile --split-input-file 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=LOG --input-file=%t --implicit-check-not="stays behind the loop"
// RUN: fovea-opt %s --attn-online-softmax --attn-tile="fuse-producers=false exact-functions" --debug-only=attn-tile --split-input-file 2>%t.exact | FileCheck %s --check-prefix=EXACT
// RUN: FileCheck %s --check-prefix=LOG-EXACT --input-file=%t.exact

// Elementwise readers of the output go into a GPU's program where that is faster than
// a kernel of their own. A sigmoid in bf16 may be approximate.

// CHECK-LABEL: func @gate
// CHECK:       scf.forall
// CHECK:         attn.finalize
// CHECK:         math.exp
// CHECK:         linalg.mul
// CHECK:         scf.forall.in_parallel
// CHECK-NOT:   linalg
// CHECK:       return

// LOG-EXACT: linalg.mul at {{.*}} stays behind the loop: its elements take longer than a kernel of their own
// EXACT-LABEL: func @gate
// EXACT:       math.exp
// EXACT:       scf.forall
// EXACT:         attn.finalize
// EXACT-NEXT:    scf.forall.in_parallel
// EXACT:       linalg.mul
#id = affine_map<(b, h, i, d) -> (b, h, i, d)>
!t = tensor<1x2x128x16xbf16>
func.func @gate(%q: !t, %g: !t) -> tensor<1x128x2x16xbf16> {
  %o = attn.attention %q, %q, %q scale(0.25) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>} : !t, !t, !t -> !t
  %e = tensor.empty() : !t
  %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%g : !t) outs(%e : !t) {
  ^bb0(%x: bf16, %out: bf16):
    %one = arith.constant 1.0 : f32
    %wide = arith.extf %x : bf16 to f32
    %n = arith.negf %wide : f32
    %exp = math.exp %n : f32
    %d = arith.addf %exp, %one : f32
    %r = arith.divf %one, %d : f32
    %narrow = arith.truncf %r : f32 to bf16
    linalg.yield %narrow : bf16
  } -> !t
  %y = linalg.mul ins(%o, %s : !t, !t) outs(%o : !t) -> !t
  %f = tensor.empty() : tensor<1x128x2x16xbf16>
  %z = linalg.transpose ins(%y : !t) outs(%f : tensor<1x128x2x16xbf16>) permutation = [0, 2, 1, 3]
  return %z : tensor<1x128x2x16xbf16>
}

// -----

// With more tensors than one neither op is moved: the second would read as much.

// CHECK-LABEL: func @two_tensors
// CHECK:       scf.forall
// CHECK:         attn.finalize
// CHECK-NEXT:    scf.forall.in_parallel
// CHECK:       linalg.mul
// CHECK:       linalg.add
// LOG: linalg.mul at {{.*}} stays behind the loop: with it more tensors are read than there are registers for
!t = tensor<1x2x128x16xbf16>
func.func @two_tensors(%q: !t, %g: !t, %r: !t) -> !t {
  %o = attn.attention %q, %q, %q scale(0.25) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>} : !t, !t, !t -> !t
  %e = tensor.empty() : !t
  %y = linalg.mul ins(%o, %g : !t, !t) outs(%e : !t) -> !t
  %z = linalg.add ins(%y, %r : !t, !t) outs(%y : !t) -> !t
  return %z : !t
}

// -----

// The same tensor twice, and numbers of features and rows, are no more of them.

// CHECK-LABEL: func @one_tensor
// CHECK:       scf.forall
// CHECK:         attn.finalize
// CHECK:         linalg.mul
// CHECK:         linalg.generic
// CHECK:         scf.forall.in_parallel
#id = affine_map<(b, h, i, d) -> (b, h, i, d)>
!t = tensor<1x2x128x16xbf16>
func.func @one_tensor(%q: !t, %g: !t, %rows: tensor<1x2x128xbf16>, %features: tensor<16xbf16>) -> !t {
  %o = attn.attention %q, %q, %q scale(0.25) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>} : !t, !t, !t -> !t
  %e = tensor.empty() : !t
  %y = linalg.mul ins(%o, %g : !t, !t) outs(%e : !t) -> !t
  %z = linalg.generic {indexing_maps = [#id, #id, affine_map<(b, h, i, d) -> (b, h, i)>, affine_map<(b, h, i, d) -> (d)>, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%y, %g, %rows, %features : !t, !t, tensor<1x2x128xbf16>, tensor<16xbf16>) outs(%e : !t) {
  ^bb0(%a: bf16, %b: bf16, %c: bf16, %d: bf16, %out: bf16):
    %0 = arith.addf %a, %b : bf16
    %1 = arith.addf %0, %c : bf16
    %2 = arith.addf %1, %d : bf16
    linalg.yield %2 : bf16
  } -> !t
  return %z : !t
}

// -----

// What others read, too, is stored all the same.

// CHECK-LABEL: func @returned
// CHECK:       scf.forall
// CHECK:         attn.finalize
// CHECK-NEXT:    scf.forall.in_parallel
// CHECK:       linalg.add
// LOG: linalg.add at {{.*}} stays behind the loop: what it reads is stored for others, too
!t = tensor<1x2x128x16xbf16>
func.func @returned(%q: !t, %r: !t) -> (!t, !t) {
  %o = attn.attention %q, %q, %q scale(0.25) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>} : !t, !t, !t -> !t
  %e = tensor.empty() : !t
  %y = linalg.add ins(%o, %r : !t, !t) outs(%e : !t) -> !t
  return %y, %o : !t, !t
}

// -----

// A kernel that sums over features reads the output or its gated form, either of which
// is one tensor; the same goes for a view of it, and for several readers.

// CHECK-LABEL: func @kernel_behind
// CHECK:       scf.forall
// CHECK:         attn.finalize
// CHECK-NEXT:    scf.forall.in_parallel
// CHECK:       linalg.add
// CHECK:       attn.rms_norm
// LOG: linalg.add at {{.*}} stays behind the loop: a kernel behind it reads what it makes
!t = tensor<1x2x128x16xbf16>
func.func @kernel_behind(%q: !t, %r: !t) -> !t {
  %o = attn.attention %q, %q, %q scale(0.25) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>} : !t, !t, !t -> !t
  %e = tensor.empty() : !t
  %y = linalg.add ins(%o, %r : !t, !t) outs(%e : !t) -> !t
  %n = attn.rms_norm %y epsilon(1.0e-6) : !t
  return %n : !t
}

// -----

// CHECK-LABEL: func @view_behind
// CHECK:       scf.forall
// CHECK:         attn.finalize
// CHECK-NEXT:    scf.forall.in_parallel
// LOG: linalg.add at {{.*}} stays behind the loop: a kernel behind it reads what it makes
!t = tensor<1x2x128x16xbf16>
!v = tensor<2x128x16xbf16>
func.func @view_behind(%q: !t, %r: !t) -> !v {
  %o = attn.attention %q, %q, %q scale(0.25) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>} : !t, !t, !t -> !t
  %e = tensor.empty() : !t
  %y = linalg.add ins(%o, %r : !t, !t) outs(%e : !t) -> !t
  %c = tensor.collapse_shape %y [[0, 1], [2], [3]] : !t into !v
  %n = attn.rms_norm %c epsilon(1.0e-6) : !v
  return %n : !v
}

// -----

// CHECK-LABEL: func @two_behind
// CHECK:       scf.forall
// CHECK:         attn.finalize
// CHECK-NEXT:    scf.forall.in_parallel
// LOG: linalg.add at {{.*}} stays behind the loop: a kernel behind it reads what it makes
!t = tensor<1x2x128x16xbf16>
func.func @two_behind(%q: !t, %r: !t) -> (!t, !t) {
  %o = attn.attention %q, %q, %q scale(0.25) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>} : !t, !t, !t -> !t
  %e = tensor.empty() : !t
  %y = linalg.add ins(%o, %r : !t, !t) outs(%e : !t) -> !t
  %x = linalg.abs ins(%y : !t) outs(%e : !t) -> !t
  %z = linalg.negf ins(%y : !t) outs(%e : !t) -> !t
  return %x, %z : !t, !t
}

// -----

// A projection reads memory, in which either is.

// CHECK-LABEL: func @projected
// CHECK:       scf.forall
// CHECK:         attn.finalize
// CHECK:         linalg.add
// CHECK:         scf.forall.in_parallel
// CHECK:       linalg.generic
// LOG: linalg.generic at {{.*}} stays behind the loop: it is no elementwise op
!t = tensor<1x2x128x16xbf16>
!p = tensor<1x128x32xbf16>
func.func @projected(%q: !t, %r: !t, %w: tensor<2x16x32xbf16>, %init: !p) -> !p {
  %o = attn.attention %q, %q, %q scale(0.25) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>} : !t, !t, !t -> !t
  %e = tensor.empty() : !t
  %y = linalg.add ins(%o, %r : !t, !t) outs(%e : !t) -> !t
  %p = linalg.generic {indexing_maps = [affine_map<(b, i, c, h, d) -> (b, h, i, d)>, affine_map<(b, i, c, h, d) -> (h, d, c)>, affine_map<(b, i, c, h, d) -> (b, i, c)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
    ins(%y, %w : !t, tensor<2x16x32xbf16>) outs(%init : !p) {
  ^bb0(%a: bf16, %b: bf16, %c: bf16):
    %m = arith.mulf %a, %b : bf16
    %s = arith.addf %m, %c : bf16
    linalg.yield %s : bf16
  } -> !p
  return %p : !p
}

// -----

// Results of f32 have exact functions, which take long. What only rows have costs
// nothing; repeated for all features it is a part of what reads it.

// CHECK-LABEL: func @sink
// CHECK:       scf.forall
// CHECK:         %[[O:.*]]:2 = attn.finalize
// CHECK-NOT:     linalg.broadcast
// CHECK:         linalg.exp ins(%[[O]]#1
// CHECK-NOT:     linalg
// CHECK:         scf.forall.in_parallel
// CHECK:       linalg.broadcast
// CHECK:       linalg.generic
// LOG-DAG: linalg.broadcast at {{.*}} stays behind the loop: its elements take longer than a kernel of their own
// LOG-DAG: linalg.generic at {{.*}} stays behind the loop: its elements take longer than a kernel of their own
#id = affine_map<(b, h, i, d) -> (b, h, i, d)>
!t = tensor<1x2x128x16xbf16>
!w = tensor<1x2x128x16xf32>
!l = tensor<1x2x128xf32>
func.func @sink(%q: !t) -> (!w, !l) {
  %o, %lse = attn.attention %q, %q, %q scale(0.25) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>} : !t, !t, !t -> !t, !l
  %e = tensor.empty() : !w
  %f = tensor.empty() : !l
  %x = linalg.exp ins(%lse : !l) outs(%f : !l) -> !l
  %l = linalg.broadcast ins(%lse : !l) outs(%e : !w) dimensions = [3]
  %y = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%o, %l : !t, !w) outs(%e : !w) {
  ^bb0(%a: bf16, %b: f32, %out: f32):
    %wide = arith.extf %a : bf16 to f32
    %s = math.exp %b : f32
    %m = arith.divf %wide, %s : f32
    linalg.yield %m : f32
  } -> !w
  return %y, %x : !w, !l
}

// -----

// Rounded to bf16 at last they are fast enough, and the repeated number is a part.

// CHECK-LABEL: func @rounded
// CHECK:       scf.forall
// CHECK:         attn.finalize
// CHECK:         linalg.broadcast
// CHECK:         linalg.generic
// CHECK:         linalg.generic
// CHECK:         scf.forall.in_parallel
#id = affine_map<(b, h, i, d) -> (b, h, i, d)>
!t = tensor<1x2x128x16xbf16>
!w = tensor<1x2x128x16xf32>
!l = tensor<1x2x128xf32>
func.func @rounded(%q: !t) -> !t {
  %o, %lse = attn.attention %q, %q, %q scale(0.25) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>} : !t, !t, !t -> !t, !l
  %e = tensor.empty() : !w
  %l = linalg.broadcast ins(%lse : !l) outs(%e : !w) dimensions = [3]
  %y = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%o, %l : !t, !w) outs(%e : !w) {
  ^bb0(%a: bf16, %b: f32, %out: f32):
    %wide = arith.extf %a : bf16 to f32
    %s = math.exp %b : f32
    %m = arith.divf %wide, %s : f32
    linalg.yield %m : f32
  } -> !w
  %f = tensor.empty() : !t
  %z = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%y : !w) outs(%f : !t) {
  ^bb0(%a: f32, %out: bf16):
    %0 = arith.truncf %a : f32 to bf16
    linalg.yield %0 : bf16
  } -> !t
  return %z : !t
}

// -----

// Repeated for memory alone, it stays a kernel of its own.

// CHECK-LABEL: func @repeated
// CHECK:       scf.forall
// CHECK-NOT:     linalg.broadcast
// CHECK:         scf.forall.in_parallel
// CHECK:       linalg.broadcast
// LOG: linalg.broadcast at {{.*}} stays behind the loop: only memory is to have its numbers of rows for all features
!t = tensor<1x2x128x16xbf16>
!w = tensor<1x2x128x16xf32>
!l = tensor<1x2x128xf32>
func.func @repeated(%q: !t) -> (!t, !w) {
  %o, %lse = attn.attention %q, %q, %q scale(0.25) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>} : !t, !t, !t -> !t, !l
  %e = tensor.empty() : !w
  %l = linalg.broadcast ins(%lse : !l) outs(%e : !w) dimensions = [3]
  return %o, %l : !t, !w
}

// -----

// A thread has 64 elements of the output in f64 and would have as many of the residual,
// 256 registers, for two queries as for 64. In f32 they are 128.

// CHECK-LABEL: func @wide
// CHECK:       scf.forall
// CHECK-NOT:     linalg.add
// CHECK:         scf.forall.in_parallel
// CHECK:       linalg.add
// LOG: linalg.add at {{.*}} stays behind the loop: a thread has no registers for its elements of what it reads
!t = tensor<1x2x2x128xf64>
func.func @wide(%q: !t, %r: !t) -> !t {
  %o = attn.attention %q, %q, %q scale(0.25) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>} : !t, !t, !t -> !t
  %e = tensor.empty() : !t
  %y = linalg.add ins(%o, %r : !t, !t) outs(%e : !t) -> !t
  return %y : !t
}

// -----

// CHECK-LABEL: func @narrow
// CHECK:       scf.forall
// CHECK:         linalg.add
// CHECK:         scf.forall.in_parallel
!t = tensor<1x2x128x128xf32>
func.func @narrow(%q: !t, %r: !t) -> !t {
  %o = attn.attention %q, %q, %q scale(0.25) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>} : !t, !t, !t -> !t
  %e = tensor.empty() : !t
  %y = linalg.add ins(%o, %r : !t, !t) outs(%e : !t) -> !t
  return %y : !t
}
