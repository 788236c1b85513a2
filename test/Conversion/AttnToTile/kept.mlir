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
