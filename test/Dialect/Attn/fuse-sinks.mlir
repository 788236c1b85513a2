// RUN: fovea-opt %s --attn-fuse --canonicalize --split-input-file | FileCheck %s
// RUN: fovea-run %s --entry=column --random=1 --check | FileCheck %s --check-prefix=VALUE
// RUN: fovea-run %s --entry=tensor --random=1 --check | FileCheck %s --check-prefix=VALUE
// RUN: fovea-run %s --entry=factor --random=1 --check | FileCheck %s --check-prefix=VALUE
// RUN: fovea-run %s --entry=steps --random=1 --check | FileCheck %s --check-prefix=VALUE
// RUN: fovea-run %s --entry=both --random=1 --check | FileCheck %s --check-prefix=VALUE
// RUN: fovea-run %s --entry=column --random=1 --check --grad | FileCheck %s --check-prefix=VALUE
// RUN: fovea-run %s --entry=column --random=1 --check --target=sm_90a --simulate | FileCheck %s --check-prefix=VALUE
// VALUE: check: result 0: max error
// VALUE-NOT: FAILED

// As models write it: one more column of scores, dropped behind the softmax.
// CHECK-LABEL: func @column
// CHECK-SAME: %[[S:[^:]*]]: tensor<4xf32>
// CHECK: %[[O:.*]] = attn.attention {{.*}} init(%[[S]] : tensor<4xf32>) mask {
// CHECK: return %[[O]]
#all = affine_map<(b, h, i, j) -> (b, h, i, j)>
#head = affine_map<(b, h, i, j) -> (h)>
#row = affine_map<(b, h, i, j) -> (b, h, i)>
func.func @column(%sinks: tensor<4xf32>, %q: tensor<1x4x5x16xf16>, %k: tensor<1x2x9x16xf16>, %v: tensor<1x2x9x32xf16>) -> tensor<1x4x5x32xf16> {
  %s = attn.scores %q, %k : tensor<1x4x5x16xf16>, tensor<1x2x9x16xf16> -> tensor<1x4x5x9xf32>
  %t = attn.scale %s by 0.25 : tensor<1x4x5x9xf32>
  %m = attn.mask %t {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %c4 = arith.constant 4 : index
    %place = arith.addi %i, %c4 : index
    %keep = arith.cmpi sge, %place, %j : index
    attn.yield %keep : i1
  } : tensor<1x4x5x9xf32>
  %e = tensor.empty() : tensor<1x4x5x1xf32>
  %column = linalg.generic {indexing_maps = [#head, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%sinks : tensor<4xf32>) outs(%e : tensor<1x4x5x1xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  } -> tensor<1x4x5x1xf32>
  %c = tensor.concat dim(3) %m, %column : (tensor<1x4x5x9xf32>, tensor<1x4x5x1xf32>) -> tensor<1x4x5x10xf32>
  %p = attn.softmax %c : tensor<1x4x5x10xf32> -> tensor<1x4x5x10xf32>
  %d = tensor.extract_slice %p[0, 0, 0, 0] [1, 4, 5, 9] [1, 1, 1, 1] : tensor<1x4x5x10xf32> to tensor<1x4x5x9xf32>
  %o = attn.values %d, %v : tensor<1x4x5x9xf32>, tensor<1x2x9x32xf16> -> tensor<1x4x5x32xf16>
  return %o : tensor<1x4x5x32xf16>
}

// A column that is a tensor of its own.
// CHECK-LABEL: func @tensor
// CHECK-SAME: %[[S:[^:]*]]: tensor<1x4x5x1xf32>
// CHECK: %[[R:.*]] = tensor.collapse_shape %[[S]] {{\[\[}}0, 1], [2, 3]] : tensor<1x4x5x1xf32> into tensor<4x5xf32>
// CHECK: attn.attention {{.*}} init(%[[R]] : tensor<4x5xf32>)
// CHECK-NEXT: return
func.func @tensor(%sinks: tensor<1x4x5x1xf32>, %s: tensor<1x4x5x16xf32>, %k: tensor<1x4x9x16xf32>) -> tensor<1x4x5x16xf32> {
  %m = attn.scores %s, %k : tensor<1x4x5x16xf32>, tensor<1x4x9x16xf32> -> tensor<1x4x5x9xf32>
  %c = tensor.concat dim(3) %m, %sinks : (tensor<1x4x5x9xf32>, tensor<1x4x5x1xf32>) -> tensor<1x4x5x10xf32>
  %e = tensor.empty() : tensor<1x4x5x10xf32>
  %p = linalg.softmax dimension(3) ins(%c : tensor<1x4x5x10xf32>) outs(%e : tensor<1x4x5x10xf32>) -> tensor<1x4x5x10xf32>
  %d = tensor.extract_slice %p[0, 0, 0, 0] [1, 4, 5, 9] [1, 1, 1, 1] : tensor<1x4x5x10xf32> to tensor<1x4x5x9xf32>
  %o = attn.values %d, %k : tensor<1x4x5x9xf32>, tensor<1x4x9x16xf32> -> tensor<1x4x5x16xf32>
  return %o : tensor<1x4x5x16xf32>
}

// As a factor of the output, in one op.
// CHECK-LABEL: func @factor
// CHECK-SAME: %[[S:[^:]*]]: tensor<4xbf16>
// CHECK: %[[W:.*]] = arith.extf %[[S]] : tensor<4xbf16> to tensor<4xf32>
// CHECK: attn.attention {{.*}} init(%[[W]] : tensor<4xf32>) : {{.*}} -> tensor<1x4x5x32xbf16>
// CHECK-NEXT: return
func.func @factor(%sinks: tensor<4xbf16>, %q: tensor<1x4x5x16xf16>, %k: tensor<1x2x9x16xf16>, %v: tensor<1x2x9x32xf16>) -> tensor<1x4x5x32xbf16> {
  %o, %lse = attn.attention %q, %k, %v scale(0.25) : tensor<1x4x5x16xf16>, tensor<1x2x9x16xf16>, tensor<1x2x9x32xf16> -> tensor<1x4x5x32xf32>, tensor<1x4x5xf32>
  %e = tensor.empty() : tensor<1x4x5x32xbf16>
  %r = linalg.generic {indexing_maps = [#all, #row, #head, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%o, %lse, %sinks : tensor<1x4x5x32xf32>, tensor<1x4x5xf32>, tensor<4xbf16>) outs(%e : tensor<1x4x5x32xbf16>) {
  ^bb0(%x: f32, %l: f32, %s: bf16, %y: bf16):
    %w = arith.extf %s : bf16 to f32
    %one = arith.constant 1.0 : f32
    %d = arith.subf %l, %w : f32
    %n = arith.negf %d : f32
    %exp = math.exp %n : f32
    %sum = arith.addf %exp, %one : f32
    %share = arith.divf %one, %sum : f32
    %z = arith.mulf %share, %x : f32
    %t = arith.truncf %z : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<1x4x5x32xbf16>
  return %r : tensor<1x4x5x32xbf16>
}

// In steps, with a sink for each row, behind attention that is written out.
// CHECK-LABEL: func @steps
// CHECK-SAME: %[[S:[^:]*]]: tensor<1x4x5xf32>
// CHECK: attn.attention {{.*}} init(%[[S]] : tensor<1x4x5xf32>)
// CHECK-NEXT: return
func.func @steps(%sinks: tensor<1x4x5xf32>, %q: tensor<1x4x5x16xf32>, %k: tensor<1x4x9x16xf32>) -> tensor<1x4x5x16xf32> {
  %s = attn.scores %q, %k : tensor<1x4x5x16xf32>, tensor<1x4x9x16xf32> -> tensor<1x4x5x9xf32>
  %p = attn.softmax %s : tensor<1x4x5x9xf32> -> tensor<1x4x5x9xf32>
  %l = attn.log_sum_exp %s : tensor<1x4x5x9xf32> -> tensor<1x4x5xf32>
  %o = attn.values %p, %k : tensor<1x4x5x9xf32>, tensor<1x4x9x16xf32> -> tensor<1x4x5x16xf32>
  %one = arith.constant dense<1.0> : tensor<1x4x5xf32>
  %d = arith.subf %sinks, %l : tensor<1x4x5xf32>
  %x = math.exp %d : tensor<1x4x5xf32>
  %sum = arith.addf %one, %x : tensor<1x4x5xf32>
  %e = tensor.empty() : tensor<1x4x5x16xf32>
  %r = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%o, %sum : tensor<1x4x5x16xf32>, tensor<1x4x5xf32>) outs(%e : tensor<1x4x5x16xf32>) {
  ^bb0(%a: f32, %b: f32, %y: f32):
    %z = arith.divf %a, %b : f32
    linalg.yield %z : f32
  } -> tensor<1x4x5x16xf32>
  return %r : tensor<1x4x5x16xf32>
}

// The log-sum-exp without sinks has another reader; another factor.
// CHECK-LABEL: func @both
// CHECK-NOT: init
// CHECK: return
func.func @both(%sinks: tensor<4xf32>, %q: tensor<1x4x5x16xf32>, %k: tensor<1x4x9x16xf32>) -> (tensor<1x4x5x16xf32>, tensor<1x4x5xf32>, tensor<1x4x5x16xf32>) {
  %o, %lse = attn.attention %q, %k, %k scale(0.25) : tensor<1x4x5x16xf32>, tensor<1x4x9x16xf32>, tensor<1x4x9x16xf32> -> tensor<1x4x5x16xf32>, tensor<1x4x5xf32>
  %p, %l = attn.attention %q, %k, %k scale(0.5) : tensor<1x4x5x16xf32>, tensor<1x4x9x16xf32>, tensor<1x4x9x16xf32> -> tensor<1x4x5x16xf32>, tensor<1x4x5xf32>
  %e = tensor.empty() : tensor<1x4x5x16xf32>
  %r:2 = linalg.generic {indexing_maps = [#all, #row, #head, #all, #row, #all, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%o, %lse, %sinks, %p, %l : tensor<1x4x5x16xf32>, tensor<1x4x5xf32>, tensor<4xf32>, tensor<1x4x5x16xf32>, tensor<1x4x5xf32>)
      outs(%e, %e : tensor<1x4x5x16xf32>, tensor<1x4x5x16xf32>) {
  ^bb0(%x: f32, %m: f32, %s: f32, %u: f32, %n: f32, %y: f32, %w: f32):
    %one = arith.constant 1.0 : f32
    %two = arith.constant 2.0 : f32
    %d = arith.subf %s, %m : f32
    %exp = math.exp %d : f32
    %sum = arith.addf %one, %exp : f32
    %z = arith.divf %x, %sum : f32
    %f = arith.subf %s, %n : f32
    %g = math.exp %f : f32
    %h = arith.addf %two, %g : f32
    %i = arith.divf %u, %h : f32
    linalg.yield %z, %i : f32, f32
  } -> (tensor<1x4x5x16xf32>, tensor<1x4x5x16xf32>)
  return %r#0, %lse, %r#1 : tensor<1x4x5x16xf32>, tensor<1x4x5xf32>, tensor<1x4x5x16xf32>
}
