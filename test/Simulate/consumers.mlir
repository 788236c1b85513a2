// DEFINE: %{all} = --attn-online-softmax --convert-attn-to-linalg=scope=elementwise --convert-elementwise-to-linalg \
// DEFINE:   --canonicalize --cse --attn-tile="fuse-producers=false all-consumers" --convert-attn-to-tile --canonicalize --cse
//
// Readers of attention's output in its kernel, on both kinds of GPU, against the
// graph in f64: gates, residuals, sinks by the log-sum-exp, broadcast operands, what
// makes the operands, positions, other layouts; odd lengths, lengths that are no
// multiples of tiles, rows without a key, and results that are returned as well.
//
// RUN: fovea-run %s --entry=gate --target=sm_90a --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %s --entry=gate --target=sm_80 --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %s --entry=collapsed --target=sm_90a --simulate --dims=77 --random=2 --check | FileCheck %s
// RUN: fovea-run %s --entry=collapsed --target=sm_80 --simulate --dims=77 --random=2 --check | FileCheck %s
// RUN: fovea-run %s --entry=tanh_gate --target=sm_90a --simulate --random=1 --check | FileCheck %s
// RUN: fovea-run %s --entry=tanh_gate --target=sm_90a --exact-functions --simulate --random=1 --check | FileCheck %s
// RUN: fovea-opt %s --fovea-gpu-pipeline='target=sm_90a level=tile' --debug-only=attn-tile 2>&1 | FileCheck %s --check-prefix=MACHINE
// RUN: fovea-opt %s --fovea-gpu-pipeline='target=sm_90a level=tile exact-functions' --debug-only=attn-tile 2>&1 | FileCheck %s --check-prefix=EXACT --implicit-check-not='fastmath<afn>'
//
// Those that a kernel of their own is faster for are computed there, and here with the
// others:
// RUN: fovea-run %s --entry=residual --target=sm_90a --simulate --dims=131 --random=3 --check | FileCheck %s --check-prefixes=CHECK,TWO
// RUN: fovea-run %s --entry=sink --target=sm_90a --simulate --random=4 --check | FileCheck %s --check-prefixes=CHECK,TWO,THREE
// RUN: fovea-run %s --entry=broadcast --target=sm_90a --simulate --random=5 --check | FileCheck %s
// RUN: fovea-opt %s --fovea-gpu-pipeline='target=sm_90a level=fused' | fovea-opt %{all} -o %t.90
// RUN: fovea-opt %s --fovea-gpu-pipeline='target=sm_80 level=fused' | fovea-opt %{all} -o %t.80
// RUN: fovea-run %t.90 --reference=%s --entry=residual --target=sm_90a --simulate --dims=131 --random=3 --check | FileCheck %s --check-prefixes=CHECK,TWO
// RUN: fovea-run %t.80 --reference=%s --entry=residual --target=sm_80 --simulate --dims=131 --random=3 --check | FileCheck %s --check-prefixes=CHECK,TWO
// RUN: fovea-run %t.90 --reference=%s --entry=residual --target=sm_90a --simulate --dims=1 --random=3 --check | FileCheck %s --check-prefixes=CHECK,TWO
// RUN: fovea-run %t.90 --reference=%s --entry=residual --target=sm_90a --simulate --dims=0 --random=3 --check | FileCheck %s --check-prefixes=CHECK,TWO
// RUN: fovea-run %t.90 --reference=%s --entry=sink --target=sm_90a --simulate --random=4 --check | FileCheck %s --check-prefixes=CHECK,TWO,THREE
// RUN: fovea-run %t.80 --reference=%s --entry=sink --target=sm_80 --simulate --random=4 --check | FileCheck %s --check-prefixes=CHECK,TWO,THREE
// RUN: fovea-run %t.90 --reference=%s --entry=broadcast --target=sm_90a --simulate --random=5 --check | FileCheck %s
// RUN: fovea-run %t.80 --reference=%s --entry=broadcast --target=sm_80 --simulate --random=5 --check | FileCheck %s
// RUN: fovea-run %s --entry=single --target=sm_90a --simulate --random=6 --check | FileCheck %s
// RUN: fovea-run %s --entry=single --target=sm_80 --simulate --random=6 --check | FileCheck %s
//
// MACHINE-LABEL: func.func @gate
// MACHINE:       math.exp %{{[^ ]*}} fastmath<afn> : f32
// MACHINE-LABEL: func.func @tanh_gate
// MACHINE:       math.tanh %{{[^ ]*}} fastmath<afn> : f32
// EXACT:         linalg.generic at {{.*}} stays behind the loop: its elements take longer
// EXACT-LABEL:   func.func @gate
// EXACT:         tile.launch
// EXACT:         linalg.generic
// EXACT-LABEL:   func.func @tanh_gate
// EXACT:         tile.map exact
// EXACT:         math.tanh %{{[^ ]*}} : f32
//
// CHECK: check: result 0: max error
// TWO:   check: result 1: max error
// THREE: check: result 2: max error
// CHECK-NOT: FAILED

#id = affine_map<(b, h, i, d) -> (b, h, i, d)>
#rows = affine_map<(b, h, i, d) -> (b, h, i)>
#head = affine_map<(b, h, i, d) -> (h)>
#features = affine_map<(b, h, i, d) -> (d)>
#swapped = affine_map<(b, h, i, d) -> (b, d, h, i)>

!t = tensor<2x3x200x64xbf16>

// A causal mask: groups of warps take rows there and back, and items overlap.
func.func @gate(%q: !t, %k: !t, %v: !t, %g: !t) -> !t {
  %o = attn.attention %q, %k, %v scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } {schedule = #attn.schedule<tile = 128x64, order = longest_first, warps = 8, stages = 2, blocks = persistent>} : !t, !t, !t -> !t
  %s = attn.elementwise %g {
  ^bb0(%x: bf16):
    %one = arith.constant 1.0 : f32
    %wide = arith.extf %x : bf16 to f32
    %n = arith.negf %wide : f32
    %e = math.exp %n : f32
    %d = arith.addf %e, %one : f32
    %r = arith.divf %one, %d : f32
    %narrow = arith.truncf %r : f32 to bf16
    attn.yield %narrow : bf16
  } : (!t) -> !t
  %y = attn.elementwise %o, %s {
  ^bb0(%a: bf16, %c: bf16):
    %m = arith.mulf %a, %c : bf16
    attn.yield %m : bf16
  } : (!t, !t) -> !t
  return %y : !t
}

// The machine's tanh, which rounds more than the exact one.
func.func @tanh_gate(%q: !t, %k: !t, %v: !t, %g: !t) -> !t {
  %o = attn.attention %q, %k, %v scale(0.125) : !t, !t, !t -> !t
  %y = attn.elementwise %o, %g {
  ^bb0(%a: bf16, %x: bf16):
    %wide = arith.extf %x : bf16 to f32
    %o32 = arith.extf %a : bf16 to f32
    %t = math.tanh %wide : f32
    %m = arith.mulf %o32, %t : f32
    %narrow = arith.truncf %m : f32 to bf16
    attn.yield %narrow : bf16
  } : (!t, !t) -> !t
  return %y : !t
}

// Heads beside features, as a model's projections have them; a head dim that is no
// multiple of a product's.
!n = tensor<2x3x?x72xf16>
!split = tensor<2x?x3x72xf16>
!flat = tensor<2x?x216xf16>
#flat = affine_map<(b, i, c) -> (b, i, c)>
#last = affine_map<(b, i, c) -> (c)>
func.func @collapsed(%q: !n, %k: !n, %v: !n, %g: !flat, %w: tensor<216xf32>) -> !flat {
  %c1 = arith.constant 1 : index
  %n = tensor.dim %g, %c1 : !flat
  %o = attn.attention %q, %k, %v scale(0.125) : !n, !n, !n -> !n
  %e = tensor.empty(%n) : !split
  %t = linalg.transpose ins(%o : !n) outs(%e : !split) permutation = [0, 2, 1, 3]
  %f = tensor.collapse_shape %t [[0], [1], [2, 3]] : !split into !flat
  %u = tensor.empty(%n) : !flat
  %y = linalg.generic {indexing_maps = [#flat, #flat, #last, #flat], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%f, %g, %w : !flat, !flat, tensor<216xf32>) outs(%u : !flat) {
  ^bb0(%a: f16, %b: f16, %c: f32, %out: f16):
    %x = arith.extf %a : f16 to f32
    %z = arith.extf %b : f16 to f32
    %m = arith.mulf %x, %z : f32
    %s = arith.addf %m, %c : f32
    %r = arith.truncf %s : f32 to f16
    linalg.yield %r : f16
  } -> !flat
  return %y : !flat
}

// The output too; the residual is the queries.
!d = tensor<1x2x?x64xbf16>
func.func @residual(%q: !d, %k: !d, %v: !d) -> (!d, !d) {
  %o = attn.attention %q, %k, %v scale(0.125) : !d, !d, !d -> !d
  %y = attn.residual_add %o, %q : !d, !d
  return %y, %o : !d, !d
}

// A sink, which the log-sum-exp tells the share of; rows without a key; a cast.
!w = tensor<2x3x200x64xf32>
func.func @sink(%q: !t, %k: !t, %v: !t, %sinks: tensor<3xf32>) -> (!w, tensor<2x3x200xf32>, tensor<2x3x200xf32>) {
  %o, %lse = attn.attention %q, %k, %v scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %c9 = arith.constant 9 : index
    %c150 = arith.constant 150 : index
    %some = arith.cmpi uge, %i, %c9 : index
    %near = arith.cmpi ult, %j, %c150 : index
    %keep = arith.andi %some, %near : i1
    attn.yield %keep : i1
  } : !t, !t, !t -> !t, tensor<2x3x200xf32>
  %e = tensor.empty() : !w
  %y = linalg.generic {indexing_maps = [#id, #rows, #head, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%o, %lse, %sinks : !t, tensor<2x3x200xf32>, tensor<3xf32>) outs(%e : !w) {
  ^bb0(%a: bf16, %l: f32, %s: f32, %out: f32):
    %one = arith.constant 1.0 : f32
    %d = arith.subf %s, %l : f32
    %x = math.exp %d : f32
    %z = arith.addf %x, %one : f32
    %wide = arith.extf %a : bf16 to f32
    %r = arith.divf %wide, %z : f32
    linalg.yield %r : f32
  } -> !w
  %f = tensor.empty() : tensor<2x3x200xf32>
  %share = linalg.generic {indexing_maps = [affine_map<(b, h, i) -> (b, h, i)>, affine_map<(b, h, i) -> (h)>, affine_map<(b, h, i) -> (b, h, i)>], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%lse, %sinks : tensor<2x3x200xf32>, tensor<3xf32>) outs(%f : tensor<2x3x200xf32>) {
  ^bb0(%l: f32, %s: f32, %out: f32):
    %one = arith.constant 1.0 : f32
    %d = arith.subf %s, %l : f32
    %x = math.exp %d : f32
    %z = arith.addf %x, %one : f32
    %r = arith.divf %one, %z : f32
    linalg.yield %r : f32
  } -> tensor<2x3x200xf32>
  return %y, %lse, %share : !w, tensor<2x3x200xf32>, tensor<2x3x200xf32>
}

// A number for each head, row or feature, booleans, a transposed tensor, a scalar,
// positions, and a log-sum-exp that is repeated for all features first.
func.func @broadcast(%q: !t, %k: !t, %v: !t, %h: tensor<3xf32>, %r: tensor<2x3x200xf32>, %f: tensor<64xf32>, %m: tensor<2x3x200x64xi1>, %x: tensor<2x64x3x200xbf16>, %s: f32) -> !w {
  %o, %lse = attn.attention %q, %k, %v scale(0.125) : !t, !t, !t -> !t, tensor<2x3x200xf32>
  %e = tensor.empty() : !w
  %l = linalg.broadcast ins(%lse : tensor<2x3x200xf32>) outs(%e : !w) dimensions = [3]
  %y = linalg.generic {indexing_maps = [#id, #id, #head, #rows, #features, #id, #swapped, affine_map<(b, h, i, d) -> ()>, #id],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%o, %l, %h, %r, %f, %m, %x, %s : !t, !w, tensor<3xf32>, tensor<2x3x200xf32>, tensor<64xf32>, tensor<2x3x200x64xi1>, tensor<2x64x3x200xbf16>, f32) outs(%e : !w) {
  ^bb0(%a: bf16, %lsum: f32, %ofHead: f32, %ofRow: f32, %ofFeature: f32, %keep: i1, %swapped: bf16, %scalar: f32, %out: f32):
    %i = linalg.index 2 : index
    %d = linalg.index 3 : index
    %id = arith.addi %i, %d : index
    %int = arith.index_cast %id : index to i32
    %place = arith.sitofp %int : i32 to f32
    %wide = arith.extf %a : bf16 to f32
    %other = arith.extf %swapped : bf16 to f32
    %0 = arith.mulf %wide, %ofHead : f32
    %1 = arith.addf %0, %ofRow : f32
    %2 = arith.mulf %1, %ofFeature : f32
    %3 = arith.select %keep, %2, %wide : f32
    %4 = arith.addf %3, %other : f32
    %5 = arith.mulf %4, %scalar : f32
    %6 = arith.addf %5, %place : f32
    %7 = arith.subf %6, %lsum : f32
    linalg.yield %7 : f32
  } -> !w
  return %y : !w
}

// f32, whose queries are also a residual.
func.func @single(%q: tensor<1x2x70x32xf32>, %k: tensor<1x2x70x32xf32>, %v: tensor<1x2x70x32xf32>) -> tensor<1x2x70x32xf32> {
  %o = attn.attention %q, %k, %v scale(0.125) : tensor<1x2x70x32xf32>, tensor<1x2x70x32xf32>, tensor<1x2x70x32xf32> -> tensor<1x2x70x32xf32>
  %two = attn.scale %o by 2.0 : tensor<1x2x70x32xf32>
  %y = arith.addf %two, %q : tensor<1x2x70x32xf32>
  return %y : tensor<1x2x70x32xf32>
}
