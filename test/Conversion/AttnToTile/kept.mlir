// RUN: fovea-opt %s --attn-online-softmax --attn-tile --convert-attn-to-tile \
// RUN:   --split-input-file --remarks-filter=convert-attn-to-tile 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t

// What is not converted stays as it was, with a reason.

// REMARK: attention stays a loop over tiles: its schedule has no warps
// CHECK-LABEL: func @host_schedule
// CHECK-NOT:   tile.launch
// CHECK:       scf.forall
// CHECK:         attn.online_attention
func.func @host_schedule(%q: tensor<1x2x64x16xf16>) -> tensor<1x2x64x16xf16> {
  %o = attn.attention %q, %q, %q scale(0.25) {schedule = #attn.schedule<tile = 64x64, order = linear>}
    : tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16> -> tensor<1x2x64x16xf16>
  return %o : tensor<1x2x64x16xf16>
}

// -----

// REMARK: attention stays a loop over tiles: 'attn.elementwise' is computed within the loop
// CHECK-LABEL: func @fused_producer
// CHECK-NOT:   tile.
// CHECK:       scf.forall
// CHECK:         attn.elementwise
func.func @fused_producer(%x: tensor<1x2x?x16xf32>, %k: tensor<1x2x?x16xf32>) -> tensor<1x2x?x16xf32> {
  %q = attn.elementwise %x {
  ^bb0(%a: f32):
    %r = arith.mulf %a, %a : f32
    attn.yield %r : f32
  } : (tensor<1x2x?x16xf32>) -> tensor<1x2x?x16xf32>
  %o = attn.attention %q, %k, %k scale(0.25) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>}
    : tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32> -> tensor<1x2x?x16xf32>
  return %o : tensor<1x2x?x16xf32>
}

// -----

// REMARK: attention stays a loop over tiles: queries, keys and values have different element types
// CHECK-LABEL: func @mixed
// CHECK-NOT:   tile.
func.func @mixed(%q: tensor<1x2x64x16xf32>, %k: tensor<1x2x64x16xf16>) -> tensor<1x2x64x16xf32> {
  %o = attn.attention %q, %k, %k scale(0.25) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>}
    : tensor<1x2x64x16xf32>, tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16> -> tensor<1x2x64x16xf32>
  return %o : tensor<1x2x64x16xf32>
}

// -----

// REMARK: attention stays a loop over tiles: a head dim is dynamic or above 256{{[^0-9]}}
// CHECK-LABEL: func @wide
// CHECK-NOT:   tile.
func.func @wide(%q: tensor<1x2x64x264xf16>) -> tensor<1x2x64x264xf16> {
  %o = attn.attention %q, %q, %q scale(0.25) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>}
    : tensor<1x2x64x264xf16>, tensor<1x2x64x264xf16>, tensor<1x2x64x264xf16> -> tensor<1x2x64x264xf16>
  return %o : tensor<1x2x64x264xf16>
}

// -----

// Loops without attention.

// CHECK-LABEL: func @other
// CHECK:       scf.forall
func.func @other(%x: tensor<8xf32>) -> tensor<8xf32> {
  %r = scf.forall (%i) in (8) shared_outs(%o = %x) -> (tensor<8xf32>) {
    %s = tensor.extract_slice %o[%i] [1] [1] : tensor<8xf32> to tensor<1xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %s into %o[%i] [1] [1] : tensor<1xf32> into tensor<8xf32>
    }
  }
  return %r : tensor<8xf32>
}

// -----

// REMARK: the backward pass is written out, kernel by kernel: a captured tensor with a gradient is read in a region within the score region
// CHECK-LABEL: func @captures
// CHECK-NOT:   tile.
// CHECK:       attn.attention_backward
func.func @captures(%q: tensor<1x2x64x16xf16>, %l: tensor<1x2x64xf32>, %slopes: tensor<64xf32>) -> tensor<64xf32> {
  %dq, %dk, %dv, %ds = attn.attention_backward %q, %q, %q, %q scale(0.25)
      statistics(%l, %l : tensor<1x2x64xf32>, tensor<1x2x64xf32>) captures(%slopes : tensor<64xf32>)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %c = arith.cmpi eq, %i, %j : index
        %r = scf.if %c -> f32 {
          %slope = tensor.extract %slopes[%j] : tensor<64xf32>
          scf.yield %slope : f32
        } else {
          scf.yield %s : f32
        }
        attn.yield %r : f32
      } {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>}
      : tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16> -> tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<64xf32>
  return %ds : tensor<64xf32>
}

// -----

// Two warps have the same keys, and half of the queries each.
// REMARK: the backward pass is written out, kernel by kernel: warps share the queries that gradients of captured tensors are summed over
// CHECK-LABEL: func @shared_queries
// CHECK-NOT:   tile.
// CHECK:       attn.attention_backward
func.func @shared_queries(%q: tensor<1x2x64x16xf16>, %l: tensor<1x2x64xf32>, %slopes: tensor<2xf32>) -> tensor<2xf32> {
  %dq, %dk, %dv, %ds = attn.attention_backward %q, %q, %q, %q scale(0.25)
      statistics(%l, %l : tensor<1x2x64xf32>, tensor<1x2x64xf32>) captures(%slopes : tensor<2xf32>)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %slope = tensor.extract %slopes[%h] : tensor<2xf32>
        %r = arith.mulf %s, %slope : f32
        attn.yield %r : f32
      } {schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 2>}
      : tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16> -> tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<2xf32>
  return %ds : tensor<2xf32>
}

// -----

// What has no derivative is reported where it is written out.
// REMARK: the backward pass is written out, kernel by kernel: its score region has no derivative
// CHECK-LABEL: func @no_derivative
// CHECK-NOT:   tile.
// CHECK:       attn.attention_backward
func.func @no_derivative(%q: tensor<1x2x64x16xf16>, %l: tensor<1x2x64xf32>) -> tensor<1x2x64x16xf16> {
  %dq, %dk, %dv = attn.attention_backward %q, %q, %q, %q scale(0.25)
      statistics(%l, %l : tensor<1x2x64xf32>, tensor<1x2x64xf32>)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %c = arith.cmpi eq, %i, %j : index
        %r = scf.if %c -> f32 {
          scf.yield %s : f32
        } else {
          %t = math.tanh %s : f32
          scf.yield %t : f32
        }
        attn.yield %r : f32
      } {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>}
      : tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16> -> tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>
  return %dq : tensor<1x2x64x16xf16>
}

// -----

// REMARK: the backward pass is written out, kernel by kernel: its operands have different element types
// CHECK-LABEL: func @mixed_gradient
// CHECK-NOT:   tile.
// CHECK:       attn.attention_backward
func.func @mixed_gradient(%q: tensor<1x2x64x16xf16>, %do: tensor<1x2x64x16xf32>, %l: tensor<1x2x64xf32>) -> tensor<1x2x64x16xf16> {
  %dq, %dk, %dv = attn.attention_backward %q, %q, %q, %do scale(0.25)
      statistics(%l, %l : tensor<1x2x64xf32>, tensor<1x2x64xf32>)
      {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>}
      : tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<1x2x64x16xf32> -> tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>
  return %dq : tensor<1x2x64x16xf16>
}
