// RUN: fovea-opt %s --attn-fuse --split-input-file \
// RUN:   --remarks-filter-missed=attn-fuse 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t --allow-empty

// Which part of a score becomes the scale, the mask region, the score region.

#id = affine_map<(b, h, i, j) -> (b, h, i, j)>

// A mask that is added: minus infinity becomes the mask, zero nothing.
// CHECK-LABEL: @added
// CHECK: attn.attention {{.*}} scale(5.000000e-01) mask {
// CHECK-NEXT: ^bb0(%{{[^:]*}}: index, %{{[^:]*}}: index, %[[I:[^:]*]]: index, %[[J:[^:]*]]: index):
// CHECK-NEXT: %[[C:.*]] = arith.cmpi sge, %[[I]], %[[J]] : index
// CHECK-NEXT: attn.yield %[[C]]
// CHECK-NOT: linalg
func.func @added(%q: tensor<1x2x8x16xf32>, %k: tensor<1x2x8x16xf32>, %v: tensor<1x2x8x16xf32>) -> tensor<1x2x8x16xf32> {
  %ninf = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %e2 = tensor.empty() : tensor<8x8xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%e2 : tensor<8x8xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %c = arith.cmpi sge, %i, %j : index
    %r = arith.select %c, %zero, %ninf : f32
    linalg.yield %r : f32
  } -> tensor<8x8xf32>
  %e = tensor.empty() : tensor<1x2x8x8xf32>
  %mb = linalg.broadcast ins(%m : tensor<8x8xf32>) outs(%e : tensor<1x2x8x8xf32>) dimensions = [0, 1]
  %s = attn.scores %q, %k : tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x8xf32>
  %t = attn.scale %s by 0.5 : tensor<1x2x8x8xf32>
  %a = arith.addf %mb, %t : tensor<1x2x8x8xf32>
  %p = attn.softmax %a : tensor<1x2x8x8xf32> -> tensor<1x2x8x8xf32>
  %o = attn.values %p, %v : tensor<1x2x8x8xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x16xf32>
  return %o : tensor<1x2x8x16xf32>
}

// -----

// A bias that is minus infinity in places: mask and bias.
// CHECK-LABEL: @bias_with_mask
// CHECK-SAME: %[[BIAS:[^:]*]]: tensor<8x8xf32>, %[[KEEP:[^:]*]]: tensor<8x8xi1>)
// CHECK: scale(1.000000e+00) score {
// CHECK: tensor.extract %[[BIAS]]
// CHECK: arith.addf
// CHECK: mask {
// CHECK: %[[M:.*]] = tensor.extract %[[KEEP]]
// CHECK-NEXT: attn.yield %[[M]] : i1
func.func @bias_with_mask(%q: tensor<1x2x8x16xf32>, %k: tensor<1x2x8x16xf32>, %v: tensor<1x2x8x16xf32>, %bias: tensor<8x8xf32>, %keep: tensor<8x8xi1>) -> tensor<1x2x8x16xf32> {
  %ninf = arith.constant dense<0xFF800000> : tensor<8x8xf32>
  %m = arith.select %keep, %bias, %ninf : tensor<8x8xi1>, tensor<8x8xf32>
  %e = tensor.empty() : tensor<1x2x8x8xf32>
  %mb = linalg.broadcast ins(%m : tensor<8x8xf32>) outs(%e : tensor<1x2x8x8xf32>) dimensions = [0, 1]
  %s = attn.scores %q, %k : tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x8xf32>
  %a = arith.addf %s, %mb : tensor<1x2x8x8xf32>
  %p = attn.softmax %a : tensor<1x2x8x8xf32> -> tensor<1x2x8x8xf32>
  %o = attn.values %p, %v : tensor<1x2x8x8xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x16xf32>
  return %o : tensor<1x2x8x16xf32>
}

// -----

// A mask below a scale and a soft cap above it: the mask passes a positive
// factor, but no tanh.
// CHECK-LABEL: @mask_below
// CHECK: scale(1.000000e+00) score {
// CHECK-NEXT: ^bb0(%[[S:[^:]*]]: f32,
// CHECK: %[[X:.*]] = arith.select %{{.*}}, %[[S]], %{{.*}} : f32
// CHECK: math.tanh %[[X]]
// CHECK-NOT: mask {
// CHECK: return
// CHECK-LABEL: @mask_scaled
// CHECK: scale(2.500000e-01) mask {
// CHECK: arith.cmpi slt
#id = affine_map<(b, h, i, j) -> (b, h, i, j)>
func.func @mask_below(%q: tensor<1x2x8x16xf32>, %k: tensor<1x2x8x16xf32>, %v: tensor<1x2x8x16xf32>) -> tensor<1x2x8x16xf32> {
  %s = attn.scores %q, %k : tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x8xf32>
  %m = attn.mask %s {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } : tensor<1x2x8x8xf32>
  %a = math.tanh %m : tensor<1x2x8x8xf32>
  %p = attn.softmax %a : tensor<1x2x8x8xf32> -> tensor<1x2x8x8xf32>
  %o = attn.values %p, %v : tensor<1x2x8x8xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x16xf32>
  return %o : tensor<1x2x8x16xf32>
}
func.func @mask_scaled(%q: tensor<1x2x8x16xf32>, %k: tensor<1x2x8x16xf32>, %v: tensor<1x2x8x16xf32>) -> tensor<1x2x8x16xf32> {
  %ninf = arith.constant 0xFF800000 : f32
  %four = arith.constant 4.0 : f32
  %s = attn.scores %q, %k : tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x8xf32>
  %e = tensor.empty() : tensor<1x2x8x8xf32>
  %m = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s : tensor<1x2x8x8xf32>) outs(%e : tensor<1x2x8x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %i = linalg.index 2 : index
    %j = linalg.index 3 : index
    %drop = arith.cmpi sge, %i, %j : index
    %r = arith.select %drop, %ninf, %in : f32
    %t = arith.divf %r, %four : f32
    linalg.yield %t : f32
  } -> tensor<1x2x8x8xf32>
  %p = attn.softmax %m : tensor<1x2x8x8xf32> -> tensor<1x2x8x8xf32>
  %o = attn.values %p, %v : tensor<1x2x8x8xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x16xf32>
  return %o : tensor<1x2x8x16xf32>
}

// -----

// A finite mask is a mask only where every row keeps a key: the first key of a
// causal mask, the own key of a window; not under a tensor of conditions. What
// is near the end of f32 is kept off it.
// REMARK: Function=finite_unknown | Remark="a mask by a finite constant stays in the score region
// REMARK-NOT: Function=finite
#id = affine_map<(b, h, i, j) -> (b, h, i, j)>
// CHECK-LABEL: @finite_causal
// CHECK: scale(1.000000e+00) mask {
// CHECK: arith.cmpi sge
func.func @finite_causal(%q: tensor<1x2x9x16xf32>, %k: tensor<1x2x8x16xf32>, %v: tensor<1x2x8x16xf32>) -> tensor<1x2x9x16xf32> {
  %min = arith.constant -1.0e9 : f32
  %s = attn.scores %q, %k : tensor<1x2x9x16xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x9x8xf32>
  %m = attn.modify %s {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    %r = arith.select %keep, %x, %min : f32
    attn.yield %r : f32
  } : tensor<1x2x9x8xf32>
  %p = attn.softmax %m : tensor<1x2x9x8xf32> -> tensor<1x2x9x8xf32>
  %o = attn.values %p, %v : tensor<1x2x9x8xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x9x16xf32>
  return %o : tensor<1x2x9x16xf32>
}
// CHECK-LABEL: @finite_window
// CHECK: scale(1.000000e+00) mask {
// CHECK: arith.andi
func.func @finite_window(%q: tensor<1x2x8x16xf32>, %k: tensor<1x2x8x16xf32>, %v: tensor<1x2x8x16xf32>) -> tensor<1x2x8x16xf32> {
  %min = arith.constant -1.0e9 : f32
  %w = arith.constant 3 : index
  %s = attn.scores %q, %k : tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x8xf32>
  %m = attn.modify %s {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %d = arith.subi %i, %j : index
    %near = arith.cmpi slt, %d, %w : index
    %past = arith.cmpi sge, %i, %j : index
    %keep = arith.andi %near, %past : i1
    %r = arith.select %keep, %x, %min : f32
    attn.yield %r : f32
  } : tensor<1x2x8x8xf32>
  %p = attn.softmax %m : tensor<1x2x8x8xf32> -> tensor<1x2x8x8xf32>
  %o = attn.values %p, %v : tensor<1x2x8x8xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x16xf32>
  return %o : tensor<1x2x8x16xf32>
}
// CHECK-LABEL: @finite_unknown
// CHECK: score {
// CHECK: %[[MIN:.*]] = arith.constant -3.40282347E+38 : f32
// CHECK: arith.select %{{.*}}, %{{.*}}, %[[MIN]]
// CHECK-NOT: mask {
// CHECK: return
func.func @finite_unknown(%q: tensor<1x2x8x16xf32>, %k: tensor<1x2x8x16xf32>, %v: tensor<1x2x8x16xf32>, %keep: tensor<1x2x8x8xi1>) -> tensor<1x2x8x16xf32> {
  %min = arith.constant dense<-3.40282347E+38> : tensor<1x2x8x8xf32>
  %s = attn.scores %q, %k : tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x8xf32>
  %m = arith.select %keep, %s, %min : tensor<1x2x8x8xi1>, tensor<1x2x8x8xf32>
  %p = attn.softmax %m : tensor<1x2x8x8xf32> -> tensor<1x2x8x8xf32>
  %o = attn.values %p, %v : tensor<1x2x8x8xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x16xf32>
  return %o : tensor<1x2x8x16xf32>
}

// -----

// Factors of both sides and of the product are one scale; what they multiply is
// read in its own type. A factor that is not constant is the score region's.
// CHECK-LABEL: @scales
// CHECK-SAME: %[[Q:[^:]*]]: tensor<1x2x8x16xf16>, %[[K:[^:]*]]: tensor<1x2x8x16xf16>
// CHECK: attn.attention %[[Q]], %[[K]], %{{.*}} scale(-3.750000e-01) score {
// CHECK-NEXT: ^bb0(%[[S:[^:]*]]: f32,
// CHECK-NEXT: %[[F:.*]] = tensor.extract %{{.*}}[] : tensor<f32>
// CHECK-NEXT: arith.mulf %[[S]], %[[F]]
func.func @scales(%q: tensor<1x2x8x16xf16>, %k: tensor<1x2x8x16xf16>, %v: tensor<1x2x8x16xf16>, %temperature: tensor<f32>) -> tensor<1x2x8x16xf16> {
  %half = arith.constant dense<0.5> : tensor<1x2x8x16xf32>
  %four = arith.constant dense<4.0> : tensor<1x2x8x16xf16>
  %qw = arith.extf %q : tensor<1x2x8x16xf16> to tensor<1x2x8x16xf32>
  %qs = arith.mulf %half, %qw : tensor<1x2x8x16xf32>
  %kd = arith.divf %k, %four : tensor<1x2x8x16xf16>
  %kn = arith.negf %kd : tensor<1x2x8x16xf16>
  %kw = arith.extf %kn : tensor<1x2x8x16xf16> to tensor<1x2x8x16xf32>
  %s = attn.scores %qs, %kw : tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x8xf32>
  %t = attn.scale %s by 3.0 : tensor<1x2x8x8xf32>
  %e = tensor.empty() : tensor<1x2x8x8xf32>
  %tb = linalg.broadcast ins(%temperature : tensor<f32>) outs(%e : tensor<1x2x8x8xf32>) dimensions = [0, 1, 2, 3]
  %u = arith.mulf %t, %tb : tensor<1x2x8x8xf32>
  %p = attn.softmax %u : tensor<1x2x8x8xf32> -> tensor<1x2x8x8xf32>
  %vw = arith.extf %v : tensor<1x2x8x16xf16> to tensor<1x2x8x16xf32>
  %o = attn.values %p, %vw : tensor<1x2x8x8xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x16xf32>
  %r = arith.truncf %o : tensor<1x2x8x16xf32> to tensor<1x2x8x16xf16>
  return %r : tensor<1x2x8x16xf16>
}

// -----

// Dropout belongs to the attention.
// CHECK-LABEL: @dropout
// CHECK: attn.attention {{.*}} scale(1.000000e+00) dropout(1.000000e-01, %{{.*}}, %{{.*}}) :
func.func @dropout(%q: tensor<2x2x8x16xf32>, %k: tensor<2x2x8x16xf32>, %v: tensor<2x2x8x16xf32>, %seed: i64, %offset: i64) -> tensor<2x2x8x16xf32> {
  %s = attn.scores %q, %k : tensor<2x2x8x16xf32>, tensor<2x2x8x16xf32> -> tensor<2x2x8x8xf32>
  %p = attn.softmax %s : tensor<2x2x8x8xf32> -> tensor<2x2x8x8xf32>
  %d = attn.dropout %p, 0.1 seed(%seed, %offset) : tensor<2x2x8x8xf32>
  %o = attn.values %d, %v : tensor<2x2x8x8xf32>, tensor<2x2x8x16xf32> -> tensor<2x2x8x16xf32>
  return %o : tensor<2x2x8x16xf32>
}

// -----

// An exponential of a slope is read, not computed for every score.
// CHECK-LABEL: @slopes
// CHECK: %[[T:.*]] = math.exp2 %{{.*}} : tensor<4xf32>
// CHECK: score {
// CHECK-NEXT: ^bb0(%[[S:[^:]*]]: f32, %{{[^:]*}}: index, %[[H:[^:]*]]: index,
// CHECK-NEXT: %[[X:.*]] = tensor.extract %[[T]][%[[H]]]
func.func @slopes(%q: tensor<1x4x8x16xf32>, %k: tensor<1x4x8x16xf32>, %v: tensor<1x4x8x16xf32>, %w: tensor<4xf32>) -> tensor<1x4x8x16xf32> {
  %x = math.exp2 %w : tensor<4xf32>
  %s = attn.scores %q, %k : tensor<1x4x8x16xf32>, tensor<1x4x8x16xf32> -> tensor<1x4x8x8xf32>
  %e = tensor.empty() : tensor<1x4x8x8xf32>
  %xb = linalg.broadcast ins(%x : tensor<4xf32>) outs(%e : tensor<1x4x8x8xf32>) dimensions = [0, 2, 3]
  %t = arith.addf %s, %xb : tensor<1x4x8x8xf32>
  %p = attn.softmax %t : tensor<1x4x8x8xf32> -> tensor<1x4x8x8xf32>
  %o = attn.values %p, %v : tensor<1x4x8x8xf32>, tensor<1x4x8x16xf32> -> tensor<1x4x8x16xf32>
  return %o : tensor<1x4x8x16xf32>
}
