// RUN: fovea-opt %s --attn-fuse --split-input-file \
// RUN:   --remarks-filter=attn-fuse 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t

// What looks like attention and is not, or must not be fused, stays, and a
// remark says why.

// CHECK-NOT: attn.attention

// The probabilities are returned as well.
// REMARK: [Missed] softmax | Category:attn-fuse | Function=another_use |
// REMARK-SAME: the scores or probabilities have another use, by 'func.return'
func.func @another_use(%q: tensor<1x2x8x16xf32>, %k: tensor<1x2x8x16xf32>, %v: tensor<1x2x8x16xf32>) -> (tensor<1x2x8x16xf32>, tensor<1x2x8x8xf32>) {
  %s = attn.scores %q, %k : tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x8xf32>
  %p = attn.softmax %s : tensor<1x2x8x8xf32> -> tensor<1x2x8x8xf32>
  %o = attn.values %p, %v : tensor<1x2x8x8xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x16xf32>
  return %o, %p : tensor<1x2x8x16xf32>, tensor<1x2x8x8xf32>
}

// -----

// The scaled scores are used by an op that stays.
// REMARK: [Missed] softmax | Category:attn-fuse | Function=scores_use |
// REMARK-SAME: the scores or probabilities have another use, by 'math.sin'
func.func @scores_use(%q: tensor<1x2x8x16xf32>, %k: tensor<1x2x8x16xf32>, %v: tensor<1x2x8x16xf32>) -> (tensor<1x2x8x16xf32>, tensor<1x2x8x8xf32>) {
  %s = attn.scores %q, %k : tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x8xf32>
  %t = attn.scale %s by 0.5 : tensor<1x2x8x8xf32>
  %p = attn.softmax %t : tensor<1x2x8x8xf32> -> tensor<1x2x8x8xf32>
  %o = attn.values %p, %v : tensor<1x2x8x8xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x16xf32>
  %u = math.sin %t : tensor<1x2x8x8xf32>
  return %o, %u : tensor<1x2x8x16xf32>, tensor<1x2x8x8xf32>
}

// -----

// A softmax over queries.
// REMARK: [Missed] softmax | Category:attn-fuse | Function=wrong_axis |
// REMARK-SAME: the softmax is not over the dimension that the contraction with values sums over
func.func @wrong_axis(%q: tensor<1x2x8x16xf32>, %k: tensor<1x2x8x16xf32>, %v: tensor<1x2x8x16xf32>) -> tensor<1x2x8x16xf32> {
  %s = attn.scores %q, %k : tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x8xf32>
  %e = tensor.empty() : tensor<1x2x8x8xf32>
  %p = linalg.softmax dimension(2) ins(%s : tensor<1x2x8x8xf32>) outs(%e : tensor<1x2x8x8xf32>) -> tensor<1x2x8x8xf32>
  %o = attn.values %p, %v : tensor<1x2x8x8xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x16xf32>
  return %o : tensor<1x2x8x16xf32>
}

// -----

// Heads are mixed between scores and softmax (talking heads).
// REMARK: [Missed] softmax | Category:attn-fuse | Function=talking |
// REMARK-SAME: the keys are not of the dimensions batch, head, position and feature that the others are of
func.func @talking(%q: tensor<1x4x8x16xf32>, %k: tensor<1x4x8x16xf32>, %v: tensor<1x4x8x16xf32>, %w: tensor<4x4xf32>) -> tensor<1x4x8x16xf32> {
  %s = attn.scores %q, %k : tensor<1x4x8x16xf32>, tensor<1x4x8x16xf32> -> tensor<1x4x8x8xf32>
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x4x8x8xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %t = linalg.contract indexing_maps = [affine_map<(b, g, i, j, h) -> (g, h)>, affine_map<(b, g, i, j, h) -> (b, h, i, j)>, affine_map<(b, g, i, j, h) -> (b, g, i, j)>] ins(%w, %s : tensor<4x4xf32>, tensor<1x4x8x8xf32>) outs(%f : tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %p = attn.softmax %t : tensor<1x4x8x8xf32> -> tensor<1x4x8x8xf32>
  %o = attn.values %p, %v : tensor<1x4x8x8xf32>, tensor<1x4x8x16xf32> -> tensor<1x4x8x16xf32>
  return %o : tensor<1x4x8x16xf32>
}

// -----

// Scores and their transpose.
// REMARK: [Missed] softmax | Category:attn-fuse | Function=symmetric |
// REMARK-SAME: the softmax's input depends on the product of queries and keys in a way that is not elementwise
func.func @symmetric(%q: tensor<1x2x8x16xf32>, %k: tensor<1x2x8x16xf32>, %v: tensor<1x2x8x16xf32>) -> tensor<1x2x8x16xf32> {
  %s = attn.scores %q, %k : tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x8xf32>
  %e = tensor.empty() : tensor<1x2x8x8xf32>
  %t = linalg.transpose ins(%s : tensor<1x2x8x8xf32>) outs(%e : tensor<1x2x8x8xf32>) permutation = [0, 1, 3, 2]
  %u = arith.addf %s, %t : tensor<1x2x8x8xf32>
  %p = attn.softmax %u : tensor<1x2x8x8xf32> -> tensor<1x2x8x8xf32>
  %o = attn.values %p, %v : tensor<1x2x8x8xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x16xf32>
  return %o : tensor<1x2x8x16xf32>
}

// -----

// Probabilities times a tensor.
// REMARK: [Missed] softmax | Category:attn-fuse | Function=mask_probs |
// REMARK-SAME: what is multiplied with the values is not a softmax, cast, reshaped, or dropped out, but something else
func.func @mask_probs(%q: tensor<1x2x8x16xf32>, %k: tensor<1x2x8x16xf32>, %v: tensor<1x2x8x16xf32>, %m: tensor<1x2x8x8xf32>) -> tensor<1x2x8x16xf32> {
  %s = attn.scores %q, %k : tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x8xf32>
  %p = attn.softmax %s : tensor<1x2x8x8xf32> -> tensor<1x2x8x8xf32>
  %d = arith.mulf %p, %m : tensor<1x2x8x8xf32>
  %o = attn.values %d, %v : tensor<1x2x8x8xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x16xf32>
  return %o : tensor<1x2x8x16xf32>
}

// -----

// A softmax that is no part of attention.
// REMARK: [Missed] softmax | Category:attn-fuse | Function=classify |
// REMARK-SAME: its result does not reach a contraction with values
func.func @classify(%x: tensor<4x10xf32>) -> tensor<4x10xf32> {
  %p = attn.softmax %x : tensor<4x10xf32> -> tensor<4x10xf32>
  return %p : tensor<4x10xf32>
}

// -----

// A sum of what is computed from exponentials is not a softmax's, and is not
// remarked on; gradients have such.
// REMARK-NOT: Function=weighted
func.func @weighted(%x: tensor<4x10xf32>, %w: tensor<4x10xf32>) -> tensor<4xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                       iterator_types = ["parallel", "reduction"]}
      ins(%x, %w : tensor<4x10xf32>, tensor<4x10xf32>) outs(%i : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = math.exp %a : f32
    %m = arith.mulf %p, %b : f32
    %r = arith.addf %c, %m : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  return %s : tensor<4xf32>
}

// -----

// A denominator that starts from one.
// REMARK: [Missed] softmax | Category:attn-fuse | Function=epsilon |
// REMARK-SAME: the denominator is not a sum along the keys
func.func @epsilon(%q: tensor<8x16xf32>, %k: tensor<8x16xf32>, %v: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %z = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<8x8xf32>
  %e1 = tensor.empty() : tensor<8xf32>
  %e2 = tensor.empty() : tensor<8x16xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %s = linalg.matmul indexing_maps = [affine_map<(i, j, d) -> (i, d)>, affine_map<(i, j, d) -> (j, d)>, affine_map<(i, j, d) -> (i, j)>] ins(%q, %k : tensor<8x16xf32>, tensor<8x16xf32>) outs(%f : tensor<8x8xf32>) -> tensor<8x8xf32>
  %x = math.exp %s : tensor<8x8xf32>
  %f1 = linalg.fill ins(%one : f32) outs(%e1 : tensor<8xf32>) -> tensor<8xf32>
  %l = linalg.reduce { arith.addf } ins(%x : tensor<8x8xf32>) outs(%f1 : tensor<8xf32>) dimensions = [1]
  %b = linalg.broadcast ins(%l : tensor<8xf32>) outs(%e : tensor<8x8xf32>) dimensions = [1]
  %p = arith.divf %x, %b : tensor<8x8xf32>
  %f2 = linalg.fill ins(%z : f32) outs(%e2 : tensor<8x16xf32>) -> tensor<8x16xf32>
  %o = linalg.matmul ins(%p, %v : tensor<8x8xf32>, tensor<8x16xf32>) outs(%f2 : tensor<8x16xf32>) -> tensor<8x16xf32>
  return %o : tensor<8x16xf32>
}

// -----

// Scores divided by the sum of their row.
// REMARK: [Missed] softmax | Category:attn-fuse | Function=cosine |
// REMARK-SAME: the softmax's input depends on the product of queries and keys in a way that is not elementwise
func.func @cosine(%q: tensor<8x16xf32>, %k: tensor<8x16xf32>, %v: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x8xf32>
  %e1 = tensor.empty() : tensor<8xf32>
  %e2 = tensor.empty() : tensor<8x16xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %s = linalg.matmul indexing_maps = [affine_map<(i, j, d) -> (i, d)>, affine_map<(i, j, d) -> (j, d)>, affine_map<(i, j, d) -> (i, j)>] ins(%q, %k : tensor<8x16xf32>, tensor<8x16xf32>) outs(%f : tensor<8x8xf32>) -> tensor<8x8xf32>
  %f1 = linalg.fill ins(%z : f32) outs(%e1 : tensor<8xf32>) -> tensor<8xf32>
  %l = linalg.reduce { arith.addf } ins(%s : tensor<8x8xf32>) outs(%f1 : tensor<8xf32>) dimensions = [1]
  %b = linalg.broadcast ins(%l : tensor<8xf32>) outs(%e : tensor<8x8xf32>) dimensions = [1]
  %t = arith.divf %s, %b : tensor<8x8xf32>
  %p = linalg.softmax dimension(1) ins(%t : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %f2 = linalg.fill ins(%z : f32) outs(%e2 : tensor<8x16xf32>) -> tensor<8x16xf32>
  %o = linalg.matmul ins(%p, %v : tensor<8x8xf32>, tensor<8x16xf32>) outs(%f2 : tensor<8x16xf32>) -> tensor<8x16xf32>
  return %o : tensor<8x16xf32>
}

// -----

// A part of the keys is a batch of the softmax.
// REMARK: [Missed] softmax | Category:attn-fuse | Function=mixed |
// REMARK-SAME: the values are not of the dimensions batch, head, position and feature that the others are of
func.func @mixed(%q: tensor<8x16xf32>, %k: tensor<8x16xf32>, %v: tensor<4x16xf32>) -> tensor<16x16xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x8xf32>
  %e2 = tensor.empty() : tensor<16x16xf32>
  %e3 = tensor.empty() : tensor<16x4xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %s = linalg.matmul indexing_maps = [affine_map<(i, j, d) -> (i, d)>, affine_map<(i, j, d) -> (j, d)>, affine_map<(i, j, d) -> (i, j)>] ins(%q, %k : tensor<8x16xf32>, tensor<8x16xf32>) outs(%f : tensor<8x8xf32>) -> tensor<8x8xf32>
  %x = tensor.expand_shape %s [[0], [1, 2]] output_shape [8, 2, 4] : tensor<8x8xf32> into tensor<8x2x4xf32>
  %c = tensor.collapse_shape %x [[0, 1], [2]] : tensor<8x2x4xf32> into tensor<16x4xf32>
  %p = linalg.softmax dimension(1) ins(%c : tensor<16x4xf32>) outs(%e3 : tensor<16x4xf32>) -> tensor<16x4xf32>
  %f2 = linalg.fill ins(%z : f32) outs(%e2 : tensor<16x16xf32>) -> tensor<16x16xf32>
  %o = linalg.matmul ins(%p, %v : tensor<16x4xf32>, tensor<4x16xf32>) outs(%f2 : tensor<16x16xf32>) -> tensor<16x16xf32>
  return %o : tensor<16x16xf32>
}

// -----

// Probabilities of scores that come from elsewhere.
// REMARK: [Missed] softmax | Category:attn-fuse | Function=no_product |
// REMARK-SAME: the softmax's input is not an elementwise function of a contraction of queries with keys
func.func @no_product(%x: tensor<8x8xf32>, %v: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x8xf32>
  %e2 = tensor.empty() : tensor<8x16xf32>
  %p = linalg.softmax dimension(1) ins(%x : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %f2 = linalg.fill ins(%z : f32) outs(%e2 : tensor<8x16xf32>) -> tensor<8x16xf32>
  %o = linalg.matmul ins(%p, %v : tensor<8x8xf32>, tensor<8x16xf32>) outs(%f2 : tensor<8x16xf32>) -> tensor<8x16xf32>
  return %o : tensor<8x16xf32>
}

// -----

// A payload that reads scores of other places.
// REMARK: [Missed] softmax | Category:attn-fuse | Function=gathered |
// REMARK-SAME: the softmax's input depends on the product of queries and keys in a way that is not elementwise
func.func @gathered(%q: tensor<8x16xf32>, %k: tensor<8x16xf32>, %v: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %z = arith.constant 0.0 : f32
  %c7 = arith.constant 7 : index
  %e = tensor.empty() : tensor<8x8xf32>
  %e2 = tensor.empty() : tensor<8x16xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %s = linalg.matmul indexing_maps = [affine_map<(i, j, d) -> (i, d)>, affine_map<(i, j, d) -> (j, d)>, affine_map<(i, j, d) -> (i, j)>] ins(%q, %k : tensor<8x16xf32>, tensor<8x16xf32>) outs(%f : tensor<8x8xf32>) -> tensor<8x8xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) {
  ^bb0(%a: f32, %b: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %r = arith.subi %c7, %j : index
    %x = tensor.extract %s[%i, %r] : tensor<8x8xf32>
    %y = arith.addf %a, %x : f32
    linalg.yield %y : f32
  } -> tensor<8x8xf32>
  %p = linalg.softmax dimension(1) ins(%t : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %f2 = linalg.fill ins(%z : f32) outs(%e2 : tensor<8x16xf32>) -> tensor<8x16xf32>
  %o = linalg.matmul ins(%p, %v : tensor<8x8xf32>, tensor<8x16xf32>) outs(%f2 : tensor<8x16xf32>) -> tensor<8x16xf32>
  return %o : tensor<8x16xf32>
}

// -----

// Dropout that numbers its rows in another order.
// REMARK: [Missed] softmax | Category:attn-fuse | Function=dropout_order |
// REMARK-SAME: the dropout's rows are not the rows of the scores in order of batch, head and query
func.func @dropout_order(%q: tensor<2x2x8x16xf32>, %k: tensor<2x2x8x16xf32>, %v: tensor<2x2x8x16xf32>, %seed: i64, %off: i64) -> tensor<2x2x8x16xf32> {
  %s = attn.scores %q, %k : tensor<2x2x8x16xf32>, tensor<2x2x8x16xf32> -> tensor<2x2x8x8xf32>
  %p = attn.softmax %s : tensor<2x2x8x8xf32> -> tensor<2x2x8x8xf32>
  %e = tensor.empty() : tensor<2x8x2x8xf32>
  %t = linalg.transpose ins(%p : tensor<2x2x8x8xf32>) outs(%e : tensor<2x8x2x8xf32>) permutation = [0, 2, 1, 3]
  %d = attn.dropout %t, 0.5 seed(%seed, %off) : tensor<2x8x2x8xf32>
  %e2 = tensor.empty() : tensor<2x2x8x8xf32>
  %u = linalg.transpose ins(%d : tensor<2x8x2x8xf32>) outs(%e2 : tensor<2x2x8x8xf32>) permutation = [0, 2, 1, 3]
  %o = attn.values %u, %v : tensor<2x2x8x8xf32>, tensor<2x2x8x16xf32> -> tensor<2x2x8x16xf32>
  return %o : tensor<2x2x8x16xf32>
}

// -----

// Values that are added to a tensor.
// REMARK: [Missed] softmax | Category:attn-fuse | Function=accumulates |
// REMARK-SAME: the contraction with values does not start from zero
func.func @accumulates(%q: tensor<8x16xf32>, %k: tensor<8x16xf32>, %v: tensor<8x16xf32>, %r: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x8xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %s = linalg.matmul indexing_maps = [affine_map<(i, j, d) -> (i, d)>, affine_map<(i, j, d) -> (j, d)>, affine_map<(i, j, d) -> (i, j)>] ins(%q, %k : tensor<8x16xf32>, tensor<8x16xf32>) outs(%f : tensor<8x8xf32>) -> tensor<8x8xf32>
  %p = linalg.softmax dimension(1) ins(%s : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %o = linalg.matmul ins(%p, %v : tensor<8x8xf32>, tensor<8x16xf32>) outs(%r : tensor<8x16xf32>) -> tensor<8x16xf32>
  return %o : tensor<8x16xf32>
}

// -----

// The logarithm of a sum over other scores than the softmax's, which stays.
// REMARK: [Missed] softmax | Category:attn-fuse | Function=other_sum |
// REMARK-SAME: the scores or probabilities have another use, by 'attn.log_sum_exp'
func.func @other_sum(%q: tensor<1x2x8x16xf32>, %k: tensor<1x2x8x16xf32>, %v: tensor<1x2x8x16xf32>) -> (tensor<1x2x8x16xf32>, tensor<1x2x8xf32>) {
  %s = attn.scores %q, %k : tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x8xf32>
  %t = attn.scale %s by 0.5 : tensor<1x2x8x8xf32>
  %u = attn.scale %t by 0.3 : tensor<1x2x8x8xf32>
  %p = attn.softmax %u : tensor<1x2x8x8xf32> -> tensor<1x2x8x8xf32>
  %o = attn.values %p, %v : tensor<1x2x8x8xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x16xf32>
  %l = attn.log_sum_exp %t : tensor<1x2x8x8xf32> -> tensor<1x2x8xf32>
  return %o, %l : tensor<1x2x8x16xf32>, tensor<1x2x8xf32>
}

// -----

// Sigmoids of scores instead of a softmax.
// REMARK: [Missed] values | Category:attn-fuse | Function=sigmoid |
// REMARK-SAME: values are not fused into attention: what they are multiplied with is no softmax of scores, but made from them by 'attn.modify'
func.func @sigmoid(%q: tensor<1x2x8x16xf32>, %k: tensor<1x2x8x16xf32>, %v: tensor<1x2x8x16xf32>) -> tensor<1x2x8x16xf32> {
  %s = attn.scores %q, %k : tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x8xf32>
  %p = attn.modify %s {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %one = arith.constant 1.0 : f32
    %n = arith.negf %x : f32
    %e = math.exp %n : f32
    %d = arith.addf %e, %one : f32
    %r = arith.divf %one, %d : f32
    attn.yield %r : f32
  } : tensor<1x2x8x8xf32>
  %o = attn.values %p, %v : tensor<1x2x8x8xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x16xf32>
  return %o : tensor<1x2x8x16xf32>
}

// -----

// A column of sinks in front of the others, cut off after the softmax.
// REMARK: [Missed] softmax | Category:attn-fuse | Function=sink |
// REMARK-SAME: its result does not reach a contraction with values, but 'tensor.extract_slice'
func.func @sink(%q: tensor<1x2x8x16xf32>, %k: tensor<1x2x8x16xf32>, %v: tensor<1x2x8x16xf32>, %sink: tensor<1x2x8x1xf32>) -> tensor<1x2x8x16xf32> {
  %s = attn.scores %q, %k : tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x8xf32>
  %c = tensor.concat dim(3) %sink, %s : (tensor<1x2x8x1xf32>, tensor<1x2x8x8xf32>) -> tensor<1x2x8x9xf32>
  %p = attn.softmax %c : tensor<1x2x8x9xf32> -> tensor<1x2x8x9xf32>
  %d = tensor.extract_slice %p[0, 0, 0, 1] [1, 2, 8, 8] [1, 1, 1, 1] : tensor<1x2x8x9xf32> to tensor<1x2x8x8xf32>
  %o = attn.values %d, %v : tensor<1x2x8x8xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x16xf32>
  return %o : tensor<1x2x8x16xf32>
}

// -----

// Control flow in a region of the graph.
// REMARK: [Missed] softmax | Category:attn-fuse | Function=loop_in_modify |
// REMARK-SAME: the softmax's input depends on 'scf.for' in 'attn.modify', and only regions of straight-line scalar ops are fused; attn.attention itself takes control flow
func.func @loop_in_modify(%q: tensor<1x2x8x16xf32>, %k: tensor<1x2x8x16xf32>, %v: tensor<1x2x8x16xf32>) -> tensor<1x2x8x16xf32> {
  %c1 = arith.constant 1 : index
  %s = attn.scores %q, %k : tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x8xf32>
  %t = attn.modify %s {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %r = scf.for %n = %i to %j step %c1 iter_args(%y = %x) -> f32 {
      %z = arith.addf %y, %x : f32
      scf.yield %z : f32
    }
    attn.yield %r : f32
  } : tensor<1x2x8x8xf32>
  %p = attn.softmax %t : tensor<1x2x8x8xf32> -> tensor<1x2x8x8xf32>
  %o = attn.values %p, %v : tensor<1x2x8x8xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x16xf32>
  return %o : tensor<1x2x8x16xf32>
}

// -----

// The same in a mask, behind a scale.
// REMARK: [Missed] softmax | Category:attn-fuse | Function=branch_in_mask |
// REMARK-SAME: the softmax's input depends on 'scf.if' in 'attn.mask'
func.func @branch_in_mask(%q: tensor<1x2x8x16xf32>, %k: tensor<1x2x8x16xf32>, %v: tensor<1x2x8x16xf32>, %t: tensor<8xi1>) -> tensor<1x2x8x16xf32> {
  %yes = arith.constant true
  %s = attn.scores %q, %k : tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x8xf32>
  %m = attn.mask %s {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %c = arith.cmpi slt, %i, %j : index
    %r = scf.if %c -> i1 {
      %e = tensor.extract %t[%j] : tensor<8xi1>
      scf.yield %e : i1
    } else {
      scf.yield %yes : i1
    }
    attn.yield %r : i1
  } : tensor<1x2x8x8xf32>
  %u = attn.scale %m by 0.5 : tensor<1x2x8x8xf32>
  %p = attn.softmax %u : tensor<1x2x8x8xf32> -> tensor<1x2x8x8xf32>
  %o = attn.values %p, %v : tensor<1x2x8x8xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x16xf32>
  return %o : tensor<1x2x8x16xf32>
}
