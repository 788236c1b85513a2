// What --check lets pass, and what it does not.

// Steps of a softmax divide 0 by 0 in a row without a key; attention gives 0.
// RUN: fovea-run %s --entry=steps --random=1 --check | FileCheck %s --check-prefix=STEPS
// STEPS: check: result 0: max error {{.*}} (bound 2e-05); 16 elements by rows without a key, which are 0 and not NaN{{$}}
// STEPS-NOT: FAILED
// RUN: fovea-run %s --entry=steps --random=1 --check --strategy=unfused | FileCheck %s --check-prefix=NAN
// NAN: check: result 0: max error {{.*}} (bound 2e-05){{$}}

// A bucket by logarithm is another one in f64: the graph in its own types is as
// far off, and the result is near that.
// RUN: fovea-run %s --entry=buckets --random=1 --check | FileCheck %s --check-prefix=BUCKETS
// BUCKETS: check: result 0: max error {{.*}}, relative 0.{{.*}} (bound 2e-05){{$}}
// BUCKETS-NEXT: check: result 0: the unfused graph in its own types is as far off (relative 0.{{.*}}); the result is within relative {{.*}}e-0{{[678]}} of it (bound {{[2-4].*}}e-05): the graph is ill-conditioned in its types{{$}}
// BUCKETS-NOT: FAILED

// A wrong result is near neither.
// RUN: not fovea-run %s --entry=buckets --reference=%S/Inputs/other-buckets.mlir --random=1 --check > %t.out 2> %t.err
// RUN: FileCheck %s --check-prefix=WRONG < %t.out
// RUN: FileCheck %s --check-prefix=ERROR < %t.err
// WRONG: check: result 0: the unfused graph in its own types is as far off
// WRONG-NEXT: check: result 0: FAILED
// ERROR: fovea-run: check: result 0: its relative error {{.*}} is above 2.{{0*}}e-05

// Sums of 16-bit numbers are in f32, whatever the type of the result.
// RUN: fovea-run %s --entry=sums --random=1 --check | FileCheck %s --check-prefix=SUMS
// SUMS: result 0: f64
// SUMS: check: result 0: max error {{.*}} (bound 2e-05){{$}}

// Powers by integers that are data, and their derivatives.
// RUN: fovea-run %s --entry=powers --random=1 --integers=-3:3 --grad --check | FileCheck %s --check-prefix=POWERS
// POWERS: check: result 1: max error {{.*}} (bound 2e-05){{$}}
// POWERS-NEXT: check: gradient of operand 0 (%x) of @powers: 8 of 60 elements by differences

#map = affine_map<(b, h, i, j) -> (b, h, i, j)>
#row = affine_map<(b, h, i, j) -> (b, h, i)>
!s = tensor<1x1x20x20xf32>
!r = tensor<1x1x20xf32>
!t = tensor<1x1x20x16xf32>

// The first query has no key before it.
func.func @steps(%q: !t, %k: !t, %v: !t) -> !t {
  %zero = arith.constant 0.0 : f32
  %inf = arith.constant 0xFF800000 : f32
  %s = attn.scores %q, %k : !t, !t -> !s
  %e = tensor.empty() : !s
  %m = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%s : !s) outs(%e : !s) {
  ^bb0(%x: f32, %c: f32):
    %i = linalg.index 2 : index
    %j = linalg.index 3 : index
    %keep = arith.cmpi slt, %j, %i : index
    %y = arith.select %keep, %x, %inf : f32
    linalg.yield %y : f32
  } -> !s
  %re = tensor.empty() : !r
  %ri = linalg.fill ins(%inf : f32) outs(%re : !r) -> !r
  %max = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%m : !s) outs(%ri : !r) {
  ^bb0(%x: f32, %c: f32):
    %y = arith.maximumf %x, %c : f32
    linalg.yield %y : f32
  } -> !r
  %exp = linalg.generic {indexing_maps = [#map, #row, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%m, %max : !s, !r) outs(%e : !s) {
  ^bb0(%x: f32, %y: f32, %c: f32):
    %d = arith.subf %x, %y : f32
    %z = math.exp %d : f32
    linalg.yield %z : f32
  } -> !s
  %rz = linalg.fill ins(%zero : f32) outs(%re : !r) -> !r
  %sum = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%exp : !s) outs(%rz : !r) {
  ^bb0(%x: f32, %c: f32):
    %y = arith.addf %x, %c : f32
    linalg.yield %y : f32
  } -> !r
  %p = linalg.generic {indexing_maps = [#map, #row, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%exp, %sum : !s, !r) outs(%e : !s) {
  ^bb0(%x: f32, %y: f32, %c: f32):
    %z = arith.divf %x, %y : f32
    linalg.yield %z : f32
  } -> !s
  %o = attn.values %p, %v : !s, !t -> !t
  return %o : !t
}

func.func @buckets(%q: !t, %k: !t, %v: !t, %table: tensor<32xf32>) -> !t {
  %c8 = arith.constant 8 : index
  %c31 = arith.constant 31 : index
  %f8 = arith.constant 8.0 : f32
  %factor = arith.constant 2.8853900817779268 : f32
  %s = attn.scores %q, %k : !t, !t -> !s
  %a = attn.modify %s {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %d = arith.subi %j, %i : index
    %e = arith.subi %i, %j : index
    %n = arith.maxsi %d, %e : index
    %m = arith.maxsi %n, %c8 : index
    %mi = arith.index_cast %m : index to i32
    %f = arith.sitofp %mi : i32 to f32
    %ratio = arith.divf %f, %f8 : f32
    %log = math.log %ratio : f32
    %scaled = arith.mulf %log, %factor : f32
    %li = arith.fptosi %scaled : f32 to i32
    %l = arith.index_cast %li : i32 to index
    %l8 = arith.addi %l, %c8 : index
    %lc = arith.minsi %l8, %c31 : index
    %near = arith.cmpi slt, %n, %c8 : index
    %bucket = arith.select %near, %n, %lc : index
    %bias = tensor.extract %table[%bucket] : tensor<32xf32>
    %y = arith.addf %x, %bias : f32
    attn.yield %y : f32
  } : !s
  %p = attn.softmax %a : !s -> !s
  %o = attn.values %p, %v : !s, !t -> !t
  return %o : !t
}

func.func @sums(%q: tensor<1x1x4x8xbf16>, %k: tensor<1x1x4x8xf16>) -> tensor<1x1x4x4xf64> {
  %s = attn.scores %q, %k : tensor<1x1x4x8xbf16>, tensor<1x1x4x8xf16> -> tensor<1x1x4x4xf64>
  return %s : tensor<1x1x4x4xf64>
}

func.func @powers(%x: tensor<60xf32>, %n: tensor<60xi32>) -> tensor<60xf32> {
  %y = attn.elementwise %x, %n {
  ^bb0(%a: f32, %b: i32):
    %c = math.absf %a : f32
    %one = arith.constant 1.0 : f32
    %d = arith.addf %c, %one : f32
    %p = math.fpowi %d, %b : f32, i32
    attn.yield %p : f32
  } : (tensor<60xf32>, tensor<60xi32>) -> tensor<60xf32>
  return %y : tensor<60xf32>
}
