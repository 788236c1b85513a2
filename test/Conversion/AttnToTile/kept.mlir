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

// What is no elementwise op, in a loop written by hand.

// REMARK: attention stays a loop over tiles: 'linalg.generic' of the output is no elementwise op
!t = tensor<1x1x128x16xf16>
!tile = tensor<1x1x64x16xf16>
!row = tensor<1x1x64xf32>
#id = affine_map<(b, h, i, d) -> (b, h, i, d)>
#rows = affine_map<(b, h, i, d) -> (b, h, i)>
#flip = affine_map<(b, h, i, d) -> (b, h, i, 15 - d)>

// CHECK-LABEL: func @sums
// CHECK-NOT:   tile.
func.func @sums(%q: !t) -> !t {
  %r = scf.forall (%i) = (0) to (128) step (64) shared_outs(%out = %q) -> (!t) {
    %qt = tensor.extract_slice %q[0, 0, %i, 0] [1, 1, 64, 16] [1, 1, 1, 1] : !t to !tile
    %zero = arith.constant 0.0 : f32
    %lowest = arith.constant 0xFF800000 : f32
    %ea = tensor.empty() : tensor<1x1x64x16xf32>
    %er = tensor.empty() : !row
    %acc = linalg.fill ins(%zero : f32) outs(%ea : tensor<1x1x64x16xf32>) -> tensor<1x1x64x16xf32>
    %max = linalg.fill ins(%lowest : f32) outs(%er : !row) -> !row
    %sum = linalg.fill ins(%zero : f32) outs(%er : !row) -> !row
    %kt = tensor.extract_slice %q[0, 0, 0, 0] [1, 1, 64, 16] [1, 1, 1, 1] : !t to !tile
    %p:3 = attn.online_attention scale(0.25) update(all) ins(%qt, %kt, %kt : !tile, !tile, !tile)
      outs(%acc, %max, %sum : tensor<1x1x64x16xf32>, !row, !row) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>}
      -> tensor<1x1x64x16xf32>, !row, !row
    %ot = tensor.extract_slice %out[0, 0, %i, 0] [1, 1, 64, 16] [1, 1, 1, 1] : !t to !tile
    %o = attn.finalize ins(%p#0, %p#1, %p#2 : tensor<1x1x64x16xf32>, !row, !row) outs(%ot : !tile) -> !tile
    %y = linalg.generic {indexing_maps = [#flip, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%o : !tile) outs(%ot : !tile) {
    ^bb0(%a: f16, %b: f16):
      linalg.yield %a : f16
    } -> !tile
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %out[0, 0, %i, 0] [1, 1, 64, 16] [1, 1, 1, 1] : !tile into !t
    }
  }
  return %r : !t
}

// -----

// Elements of other places, a part of a tile, strides, and another result.

// REMARK: attention stays a loop over tiles: an elementwise op reads elements of other places
!t = tensor<1x1x128x64xf16>
!tile = tensor<1x1x64x64xf16>
!row = tensor<1x1x64xf32>
#id = affine_map<(b, h, i, d) -> (b, h, i, d)>
#turned = affine_map<(b, h, i, d) -> (b, h, d, i)>

// CHECK-LABEL: func @turned
// CHECK-NOT:   tile.
func.func @turned(%q: !t) -> !t {
  %r = scf.forall (%i) = (0) to (128) step (64) shared_outs(%out = %q) -> (!t) {
    %qt = tensor.extract_slice %q[0, 0, %i, 0] [1, 1, 64, 64] [1, 1, 1, 1] : !t to !tile
    %zero = arith.constant 0.0 : f32
    %lowest = arith.constant 0xFF800000 : f32
    %ea = tensor.empty() : tensor<1x1x64x64xf32>
    %er = tensor.empty() : !row
    %acc = linalg.fill ins(%zero : f32) outs(%ea : tensor<1x1x64x64xf32>) -> tensor<1x1x64x64xf32>
    %max = linalg.fill ins(%lowest : f32) outs(%er : !row) -> !row
    %sum = linalg.fill ins(%zero : f32) outs(%er : !row) -> !row
    %kt = tensor.extract_slice %q[0, 0, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1] : !t to !tile
    %p:3 = attn.online_attention scale(0.25) update(all) ins(%qt, %kt, %kt : !tile, !tile, !tile)
      outs(%acc, %max, %sum : tensor<1x1x64x64xf32>, !row, !row) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>}
      -> tensor<1x1x64x64xf32>, !row, !row
    %ot = tensor.extract_slice %out[0, 0, %i, 0] [1, 1, 64, 64] [1, 1, 1, 1] : !t to !tile
    %o = attn.finalize ins(%p#0, %p#1, %p#2 : tensor<1x1x64x64xf32>, !row, !row) outs(%ot : !tile) -> !tile
    %y = linalg.generic {indexing_maps = [#id, #turned, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%o, %o : !tile, !tile) outs(%ot : !tile) {
    ^bb0(%a: f16, %b: f16, %c: f16):
      %s = arith.addf %a, %b : f16
      linalg.yield %s : f16
    } -> !tile
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %out[0, 0, %i, 0] [1, 1, 64, 64] [1, 1, 1, 1] : !tile into !t
    }
  }
  return %r : !t
}

// -----

// REMARK: attention stays a loop over tiles: an elementwise op reads a part of a tile, or one that no elementwise op makes
!t = tensor<1x1x128x16xf16>
!tile = tensor<1x1x64x16xf16>
!row = tensor<1x1x64xf32>
#id = affine_map<(b, h, i, d) -> (b, h, i, d)>
#first = affine_map<(b, h, i, d) -> (b, h, d)>

// CHECK-LABEL: func @part
// CHECK-NOT:   tile.
func.func @part(%q: !t) -> !t {
  %r = scf.forall (%i) = (0) to (128) step (64) shared_outs(%out = %q) -> (!t) {
    %qt = tensor.extract_slice %q[0, 0, %i, 0] [1, 1, 64, 16] [1, 1, 1, 1] : !t to !tile
    %zero = arith.constant 0.0 : f32
    %lowest = arith.constant 0xFF800000 : f32
    %ea = tensor.empty() : tensor<1x1x64x16xf32>
    %er = tensor.empty() : !row
    %acc = linalg.fill ins(%zero : f32) outs(%ea : tensor<1x1x64x16xf32>) -> tensor<1x1x64x16xf32>
    %max = linalg.fill ins(%lowest : f32) outs(%er : !row) -> !row
    %sum = linalg.fill ins(%zero : f32) outs(%er : !row) -> !row
    %kt = tensor.extract_slice %q[0, 0, 0, 0] [1, 1, 64, 16] [1, 1, 1, 1] : !t to !tile
    %p:3 = attn.online_attention scale(0.25) update(all) ins(%qt, %kt, %kt : !tile, !tile, !tile)
      outs(%acc, %max, %sum : tensor<1x1x64x16xf32>, !row, !row) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>}
      -> tensor<1x1x64x16xf32>, !row, !row
    %ot = tensor.extract_slice %out[0, 0, %i, 0] [1, 1, 64, 16] [1, 1, 1, 1] : !t to !tile
    %o = attn.finalize ins(%p#0, %p#1, %p#2 : tensor<1x1x64x16xf32>, !row, !row) outs(%ot : !tile) -> !tile
    %f = tensor.extract_slice %o[0, 0, 3, 0] [1, 1, 1, 16] [1, 1, 1, 1] : !tile to tensor<1x1x16xf16>
    %y = linalg.generic {indexing_maps = [#id, #first, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%o, %f : !tile, tensor<1x1x16xf16>) outs(%ot : !tile) {
    ^bb0(%a: f16, %b: f16, %c: f16):
      %s = arith.addf %a, %b : f16
      linalg.yield %s : f16
    } -> !tile
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %out[0, 0, %i, 0] [1, 1, 64, 16] [1, 1, 1, 1] : !tile into !t
    }
  }
  return %r : !t
}

// -----

// REMARK: attention stays a loop over tiles: an elementwise op reads a tile with strides
!t = tensor<1x1x128x16xf16>
!tile = tensor<1x1x64x16xf16>
!row = tensor<1x1x64xf32>

// CHECK-LABEL: func @strided
// CHECK-NOT:   tile.
func.func @strided(%q: !t, %g: tensor<1x1x128x32xf16>) -> !t {
  %r = scf.forall (%i) = (0) to (128) step (64) shared_outs(%out = %q) -> (!t) {
    %qt = tensor.extract_slice %q[0, 0, %i, 0] [1, 1, 64, 16] [1, 1, 1, 1] : !t to !tile
    %zero = arith.constant 0.0 : f32
    %lowest = arith.constant 0xFF800000 : f32
    %ea = tensor.empty() : tensor<1x1x64x16xf32>
    %er = tensor.empty() : !row
    %acc = linalg.fill ins(%zero : f32) outs(%ea : tensor<1x1x64x16xf32>) -> tensor<1x1x64x16xf32>
    %max = linalg.fill ins(%lowest : f32) outs(%er : !row) -> !row
    %sum = linalg.fill ins(%zero : f32) outs(%er : !row) -> !row
    %kt = tensor.extract_slice %q[0, 0, 0, 0] [1, 1, 64, 16] [1, 1, 1, 1] : !t to !tile
    %p:3 = attn.online_attention scale(0.25) update(all) ins(%qt, %kt, %kt : !tile, !tile, !tile)
      outs(%acc, %max, %sum : tensor<1x1x64x16xf32>, !row, !row) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>}
      -> tensor<1x1x64x16xf32>, !row, !row
    %ot = tensor.extract_slice %out[0, 0, %i, 0] [1, 1, 64, 16] [1, 1, 1, 1] : !t to !tile
    %o = attn.finalize ins(%p#0, %p#1, %p#2 : tensor<1x1x64x16xf32>, !row, !row) outs(%ot : !tile) -> !tile
    %f = tensor.extract_slice %g[0, 0, %i, 0] [1, 1, 64, 16] [1, 1, 1, 2] : tensor<1x1x128x32xf16> to !tile
    %y = linalg.add ins(%o, %f : !tile, !tile) outs(%ot : !tile) -> !tile
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %out[0, 0, %i, 0] [1, 1, 64, 16] [1, 1, 1, 1] : !tile into !t
    }
  }
  return %r : !t
}

// -----

// REMARK: attention stays a loop over tiles: a result of the loop is not made of the output
!t = tensor<1x1x128x16xf16>
!tile = tensor<1x1x64x16xf16>
!row = tensor<1x1x64xf32>

// CHECK-LABEL: func @unrelated
// CHECK-NOT:   tile.
func.func @unrelated(%q: !t) -> (!t, !t) {
  %r:2 = scf.forall (%i) = (0) to (128) step (64) shared_outs(%out = %q, %other = %q) -> (!t, !t) {
    %qt = tensor.extract_slice %q[0, 0, %i, 0] [1, 1, 64, 16] [1, 1, 1, 1] : !t to !tile
    %zero = arith.constant 0.0 : f32
    %lowest = arith.constant 0xFF800000 : f32
    %ea = tensor.empty() : tensor<1x1x64x16xf32>
    %er = tensor.empty() : !row
    %acc = linalg.fill ins(%zero : f32) outs(%ea : tensor<1x1x64x16xf32>) -> tensor<1x1x64x16xf32>
    %max = linalg.fill ins(%lowest : f32) outs(%er : !row) -> !row
    %sum = linalg.fill ins(%zero : f32) outs(%er : !row) -> !row
    %kt = tensor.extract_slice %q[0, 0, 0, 0] [1, 1, 64, 16] [1, 1, 1, 1] : !t to !tile
    %p:3 = attn.online_attention scale(0.25) update(all) ins(%qt, %kt, %kt : !tile, !tile, !tile)
      outs(%acc, %max, %sum : tensor<1x1x64x16xf32>, !row, !row) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>}
      -> tensor<1x1x64x16xf32>, !row, !row
    %ot = tensor.extract_slice %out[0, 0, %i, 0] [1, 1, 64, 16] [1, 1, 1, 1] : !t to !tile
    %o = attn.finalize ins(%p#0, %p#1, %p#2 : tensor<1x1x64x16xf32>, !row, !row) outs(%ot : !tile) -> !tile
    %yt = tensor.extract_slice %other[0, 0, %i, 0] [1, 1, 64, 16] [1, 1, 1, 1] : !t to !tile
    %y = linalg.exp ins(%qt : !tile) outs(%yt : !tile) -> !tile
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %o into %out[0, 0, %i, 0] [1, 1, 64, 16] [1, 1, 1, 1] : !tile into !t
      tensor.parallel_insert_slice %y into %other[0, 0, %i, 0] [1, 1, 64, 16] [1, 1, 1, 1] : !tile into !t
    }
  }
  return %r#0, %r#1 : !t, !t
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

// Some columns of a tile.

// REMARK: attention stays a loop over tiles: a result of the loop is not made of the output
!t = tensor<1x1x128x64xf16>
!tile = tensor<1x1x64x64xf16>
!row = tensor<1x1x64xf32>

// CHECK-LABEL: func @columns
// CHECK-NOT:   tile.
func.func @columns(%q: !t, %n: tensor<index>) -> !t {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %r = scf.forall (%i) = (0) to (128) step (64) shared_outs(%out = %q) -> (!t) {
    %qt = tensor.extract_slice %q[0, 0, %i, 0] [1, 1, 64, 64] [1, 1, 1, 1] : !t to !tile
    %zero = arith.constant 0.0 : f32
    %lowest = arith.constant 0xFF800000 : f32
    %ea = tensor.empty() : tensor<1x1x64x64xf32>
    %er = tensor.empty() : !row
    %acc = linalg.fill ins(%zero : f32) outs(%ea : tensor<1x1x64x64xf32>) -> tensor<1x1x64x64xf32>
    %max = linalg.fill ins(%lowest : f32) outs(%er : !row) -> !row
    %sum = linalg.fill ins(%zero : f32) outs(%er : !row) -> !row
    %kt = tensor.extract_slice %q[0, 0, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1] : !t to !tile
    %p:3 = attn.online_attention scale(0.25) update(all) ins(%qt, %kt, %kt : !tile, !tile, !tile)
      outs(%acc, %max, %sum : tensor<1x1x64x64xf32>, !row, !row) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>}
      -> tensor<1x1x64x64xf32>, !row, !row
    %ot = tensor.extract_slice %out[0, 0, %i, 0] [1, 1, 64, 64] [1, 1, 1, 1] : !t to !tile
    %o = attn.finalize ins(%p#0, %p#1, %p#2 : tensor<1x1x64x64xf32>, !row, !row) outs(%ot : !tile) -> !tile
    %some = tensor.extract_slice %o[0, 0, 0, 0] [1, 1, 64, 32] [1, 1, 1, 1] : !tile to tensor<1x1x64x32xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[0, 0, %i, 0] [1, 1, 64, 32] [1, 1, 1, 1] : tensor<1x1x64x32xf16> into !t
    }
  }
  return %r : !t
}

// -----

// Rows, or none, by what is known behind the output only.

// REMARK: attention stays a loop over tiles: what decides whether a result is stored is computed behind it
!t = tensor<1x1x128x64xf16>
!tile = tensor<1x1x64x64xf16>
!row = tensor<1x1x64xf32>

// CHECK-LABEL: func @late
// CHECK-NOT:   tile.
func.func @late(%q: !t, %n: tensor<index>) -> !t {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %r = scf.forall (%i) = (0) to (128) step (64) shared_outs(%out = %q) -> (!t) {
    %qt = tensor.extract_slice %q[0, 0, %i, 0] [1, 1, 64, 64] [1, 1, 1, 1] : !t to !tile
    %zero = arith.constant 0.0 : f32
    %lowest = arith.constant 0xFF800000 : f32
    %ea = tensor.empty() : tensor<1x1x64x64xf32>
    %er = tensor.empty() : !row
    %acc = linalg.fill ins(%zero : f32) outs(%ea : tensor<1x1x64x64xf32>) -> tensor<1x1x64x64xf32>
    %max = linalg.fill ins(%lowest : f32) outs(%er : !row) -> !row
    %sum = linalg.fill ins(%zero : f32) outs(%er : !row) -> !row
    %kt = tensor.extract_slice %q[0, 0, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1] : !t to !tile
    %p:3 = attn.online_attention scale(0.25) update(all) ins(%qt, %kt, %kt : !tile, !tile, !tile)
      outs(%acc, %max, %sum : tensor<1x1x64x64xf32>, !row, !row) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>}
      -> tensor<1x1x64x64xf32>, !row, !row
    %ot = tensor.extract_slice %out[0, 0, %i, 0] [1, 1, 64, 64] [1, 1, 1, 1] : !t to !tile
    %o = attn.finalize ins(%p#0, %p#1, %p#2 : tensor<1x1x64x64xf32>, !row, !row) outs(%ot : !tile) -> !tile
    %number = tensor.extract %n[] : tensor<index>
    %is = arith.cmpi eq, %number, %i : index
    %rows = arith.select %is, %c64, %c0 : index
    %some = tensor.extract_slice %o[0, 0, 0, 0] [1, 1, %rows, 64] [1, 1, 1, 1] : !tile to tensor<1x1x?x64xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[0, 0, %i, 0] [1, 1, %rows, 64] [1, 1, 1, 1] : tensor<1x1x?x64xf16> into !t
    }
  }
  return %r : !t
}

// -----

// Rows at a place that is known behind the output only.

// REMARK: attention stays a loop over tiles: what says where a result is stored is computed behind it
!t = tensor<1x1x128x64xf16>
!tile = tensor<1x1x64x64xf16>
!row = tensor<1x1x64xf32>

// CHECK-LABEL: func @late_place
// CHECK-NOT:   tile.
func.func @late_place(%q: !t, %n: tensor<index>) -> !t {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %r = scf.forall (%i) = (0) to (128) step (64) shared_outs(%out = %q) -> (!t) {
    %qt = tensor.extract_slice %q[0, 0, %i, 0] [1, 1, 64, 64] [1, 1, 1, 1] : !t to !tile
    %zero = arith.constant 0.0 : f32
    %lowest = arith.constant 0xFF800000 : f32
    %ea = tensor.empty() : tensor<1x1x64x64xf32>
    %er = tensor.empty() : !row
    %acc = linalg.fill ins(%zero : f32) outs(%ea : tensor<1x1x64x64xf32>) -> tensor<1x1x64x64xf32>
    %max = linalg.fill ins(%lowest : f32) outs(%er : !row) -> !row
    %sum = linalg.fill ins(%zero : f32) outs(%er : !row) -> !row
    %kt = tensor.extract_slice %q[0, 0, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1] : !t to !tile
    %p:3 = attn.online_attention scale(0.25) update(all) ins(%qt, %kt, %kt : !tile, !tile, !tile)
      outs(%acc, %max, %sum : tensor<1x1x64x64xf32>, !row, !row) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>}
      -> tensor<1x1x64x64xf32>, !row, !row
    %ot = tensor.extract_slice %out[0, 0, %i, 0] [1, 1, 64, 64] [1, 1, 1, 1] : !t to !tile
    %o = attn.finalize ins(%p#0, %p#1, %p#2 : tensor<1x1x64x64xf32>, !row, !row) outs(%ot : !tile) -> !tile
    %number = tensor.extract %n[] : tensor<index>
    %place = arith.addi %number, %i : index
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %o into %out[0, 0, %place, 0] [1, 1, 64, 64] [1, 1, 1, 1] : !tile into !t
    }
  }
  return %r : !t
}

// -----

// As many rows as is known behind the output only.

// REMARK: attention stays a loop over tiles: what says how much of a result is stored is computed behind it
!t = tensor<1x1x128x64xf16>
!tile = tensor<1x1x64x64xf16>
!row = tensor<1x1x64xf32>

// CHECK-LABEL: func @late_rows
// CHECK-NOT:   tile.
func.func @late_rows(%q: !t, %n: tensor<index>) -> !t {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %r = scf.forall (%i) = (0) to (128) step (64) shared_outs(%out = %q) -> (!t) {
    %qt = tensor.extract_slice %q[0, 0, %i, 0] [1, 1, 64, 64] [1, 1, 1, 1] : !t to !tile
    %zero = arith.constant 0.0 : f32
    %lowest = arith.constant 0xFF800000 : f32
    %ea = tensor.empty() : tensor<1x1x64x64xf32>
    %er = tensor.empty() : !row
    %acc = linalg.fill ins(%zero : f32) outs(%ea : tensor<1x1x64x64xf32>) -> tensor<1x1x64x64xf32>
    %max = linalg.fill ins(%lowest : f32) outs(%er : !row) -> !row
    %sum = linalg.fill ins(%zero : f32) outs(%er : !row) -> !row
    %kt = tensor.extract_slice %q[0, 0, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1] : !t to !tile
    %p:3 = attn.online_attention scale(0.25) update(all) ins(%qt, %kt, %kt : !tile, !tile, !tile)
      outs(%acc, %max, %sum : tensor<1x1x64x64xf32>, !row, !row) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>}
      -> tensor<1x1x64x64xf32>, !row, !row
    %ot = tensor.extract_slice %out[0, 0, %i, 0] [1, 1, 64, 64] [1, 1, 1, 1] : !t to !tile
    %o = attn.finalize ins(%p#0, %p#1, %p#2 : tensor<1x1x64x64xf32>, !row, !row) outs(%ot : !tile) -> !tile
    %number = tensor.extract %n[] : tensor<index>
    %rows = arith.minsi %number, %c64 : index
    %some = tensor.extract_slice %o[0, 0, 0, 0] [1, 1, %rows, 64] [1, 1, 1, 1] : !tile to tensor<1x1x?x64xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %out[0, 0, %i, 0] [1, 1, %rows, 64] [1, 1, 1, 1] : tensor<1x1x?x64xf16> into !t
    }
  }
  return %r : !t
}

// -----

// Columns that are two dimensions of a tensor: only rows may be.

// REMARK: attention stays a loop over tiles: an operand is no tile of a tensor
!t = tensor<1x1x128x64xf16>
!tile = tensor<1x1x64x64xf16>
!row = tensor<1x1x64xf32>

// CHECK-LABEL: func @two_of_columns
// CHECK-NOT:   tile.
func.func @two_of_columns(%q: !t, %x: tensor<1x1x64x4x16xf16>) -> !t {
  %r = scf.forall (%i) = (0) to (128) step (64) shared_outs(%out = %q) -> (!t) {
    %qt = tensor.collapse_shape %x [[0], [1], [2], [3, 4]] : tensor<1x1x64x4x16xf16> into !tile
    %zero = arith.constant 0.0 : f32
    %lowest = arith.constant 0xFF800000 : f32
    %ea = tensor.empty() : tensor<1x1x64x64xf32>
    %er = tensor.empty() : !row
    %acc = linalg.fill ins(%zero : f32) outs(%ea : tensor<1x1x64x64xf32>) -> tensor<1x1x64x64xf32>
    %max = linalg.fill ins(%lowest : f32) outs(%er : !row) -> !row
    %sum = linalg.fill ins(%zero : f32) outs(%er : !row) -> !row
    %kt = tensor.extract_slice %q[0, 0, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1] : !t to !tile
    %p:3 = attn.online_attention scale(0.25) update(all) ins(%qt, %kt, %kt : !tile, !tile, !tile)
      outs(%acc, %max, %sum : tensor<1x1x64x64xf32>, !row, !row) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>}
      -> tensor<1x1x64x64xf32>, !row, !row
    %ot = tensor.extract_slice %out[0, 0, %i, 0] [1, 1, 64, 64] [1, 1, 1, 1] : !t to !tile
    %o = attn.finalize ins(%p#0, %p#1, %p#2 : tensor<1x1x64x64xf32>, !row, !row) outs(%ot : !tile) -> !tile
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %o into %out[0, 0, %i, 0] [1, 1, 64, 64] [1, 1, 1, 1] : !tile into !t
    }
  }
  return %r : !t
}

// -----

// Rows that are two dimensions, of which one is two again.

// REMARK: attention stays a loop over tiles: an operand is no tile of a tensor
!t = tensor<1x1x128x64xf16>
!tile = tensor<1x1x64x64xf16>
!row = tensor<1x1x64xf32>

// CHECK-LABEL: func @two_pairs
// CHECK-NOT:   tile.
func.func @two_pairs(%q: !t, %x: tensor<1x1x8x2x4x64xf16>) -> !t {
  %r = scf.forall (%i) = (0) to (128) step (64) shared_outs(%out = %q) -> (!t) {
    %some = tensor.collapse_shape %x [[0], [1], [2, 3], [4], [5]] : tensor<1x1x8x2x4x64xf16> into tensor<1x1x16x4x64xf16>
    %qt = tensor.collapse_shape %some [[0], [1], [2, 3], [4]] : tensor<1x1x16x4x64xf16> into !tile
    %zero = arith.constant 0.0 : f32
    %lowest = arith.constant 0xFF800000 : f32
    %ea = tensor.empty() : tensor<1x1x64x64xf32>
    %er = tensor.empty() : !row
    %acc = linalg.fill ins(%zero : f32) outs(%ea : tensor<1x1x64x64xf32>) -> tensor<1x1x64x64xf32>
    %max = linalg.fill ins(%lowest : f32) outs(%er : !row) -> !row
    %sum = linalg.fill ins(%zero : f32) outs(%er : !row) -> !row
    %kt = tensor.extract_slice %q[0, 0, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1] : !t to !tile
    %p:3 = attn.online_attention scale(0.25) update(all) ins(%qt, %kt, %kt : !tile, !tile, !tile)
      outs(%acc, %max, %sum : tensor<1x1x64x64xf32>, !row, !row) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>}
      -> tensor<1x1x64x64xf32>, !row, !row
    %ot = tensor.extract_slice %out[0, 0, %i, 0] [1, 1, 64, 64] [1, 1, 1, 1] : !t to !tile
    %o = attn.finalize ins(%p#0, %p#1, %p#2 : tensor<1x1x64x64xf32>, !row, !row) outs(%ot : !tile) -> !tile
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %o into %out[0, 0, %i, 0] [1, 1, 64, 64] [1, 1, 1, 1] : !tile into !t
    }
  }
  return %r : !t
}

// -----

// Rows that are three dimensions of a tensor.

// REMARK: attention stays a loop over tiles: an operand is no tile of a tensor
!t = tensor<1x1x128x64xf16>
!tile = tensor<1x1x64x64xf16>
!row = tensor<1x1x64xf32>

// CHECK-LABEL: func @three
// CHECK-NOT:   tile.
func.func @three(%q: !t, %x: tensor<1x1x4x4x4x64xf16>) -> !t {
  %r = scf.forall (%i) = (0) to (128) step (64) shared_outs(%out = %q) -> (!t) {
    %qt = tensor.collapse_shape %x [[0], [1], [2, 3, 4], [5]] : tensor<1x1x4x4x4x64xf16> into !tile
    %zero = arith.constant 0.0 : f32
    %lowest = arith.constant 0xFF800000 : f32
    %ea = tensor.empty() : tensor<1x1x64x64xf32>
    %er = tensor.empty() : !row
    %acc = linalg.fill ins(%zero : f32) outs(%ea : tensor<1x1x64x64xf32>) -> tensor<1x1x64x64xf32>
    %max = linalg.fill ins(%lowest : f32) outs(%er : !row) -> !row
    %sum = linalg.fill ins(%zero : f32) outs(%er : !row) -> !row
    %kt = tensor.extract_slice %q[0, 0, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1] : !t to !tile
    %p:3 = attn.online_attention scale(0.25) update(all) ins(%qt, %kt, %kt : !tile, !tile, !tile)
      outs(%acc, %max, %sum : tensor<1x1x64x64xf32>, !row, !row) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>}
      -> tensor<1x1x64x64xf32>, !row, !row
    %ot = tensor.extract_slice %out[0, 0, %i, 0] [1, 1, 64, 64] [1, 1, 1, 1] : !t to !tile
    %o = attn.finalize ins(%p#0, %p#1, %p#2 : tensor<1x1x64x64xf32>, !row, !row) outs(%ot : !tile) -> !tile
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %o into %out[0, 0, %i, 0] [1, 1, 64, 64] [1, 1, 1, 1] : !tile into !t
    }
  }
  return %r : !t
}

// -----

// Rows whose places along the second dimension nobody knows.

// REMARK: attention stays a loop over tiles: an operand is no tile of a tensor
!t = tensor<1x1x128x64xf16>
!tile = tensor<1x1x64x64xf16>
!row = tensor<1x1x64xf32>

// CHECK-LABEL: func @dynamic_inner
// CHECK-NOT:   tile.
func.func @dynamic_inner(%q: !t, %x: tensor<1x1x?x?x64xf16>) -> !t {
  %r = scf.forall (%i) = (0) to (128) step (64) shared_outs(%out = %q) -> (!t) {
    %some = tensor.collapse_shape %x [[0], [1], [2, 3], [4]] : tensor<1x1x?x?x64xf16> into tensor<1x1x?x64xf16>
    %qt = tensor.cast %some : tensor<1x1x?x64xf16> to !tile
    %zero = arith.constant 0.0 : f32
    %lowest = arith.constant 0xFF800000 : f32
    %ea = tensor.empty() : tensor<1x1x64x64xf32>
    %er = tensor.empty() : !row
    %acc = linalg.fill ins(%zero : f32) outs(%ea : tensor<1x1x64x64xf32>) -> tensor<1x1x64x64xf32>
    %max = linalg.fill ins(%lowest : f32) outs(%er : !row) -> !row
    %sum = linalg.fill ins(%zero : f32) outs(%er : !row) -> !row
    %kt = tensor.extract_slice %q[0, 0, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1] : !t to !tile
    %p:3 = attn.online_attention scale(0.25) update(all) ins(%qt, %kt, %kt : !tile, !tile, !tile)
      outs(%acc, %max, %sum : tensor<1x1x64x64xf32>, !row, !row) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>}
      -> tensor<1x1x64x64xf32>, !row, !row
    %ot = tensor.extract_slice %out[0, 0, %i, 0] [1, 1, 64, 64] [1, 1, 1, 1] : !t to !tile
    %o = attn.finalize ins(%p#0, %p#1, %p#2 : tensor<1x1x64x64xf32>, !row, !row) outs(%ot : !tile) -> !tile
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %o into %out[0, 0, %i, 0] [1, 1, 64, 64] [1, 1, 1, 1] : !tile into !t
    }
  }
  return %r : !t
}

// -----

// A transposition whose result begins as the output, which it then writes over.

// REMARK: attention stays a loop over tiles: a result is not inserted into a result of the loop as it is
!t = tensor<1x1x128x64xf16>
!tile = tensor<1x1x64x64xf16>
!row = tensor<1x1x64xf32>

// CHECK-LABEL: func @written_over
// CHECK-NOT:   tile.
func.func @written_over(%q: !t) -> !t {
  %r = scf.forall (%i) = (0) to (128) step (64) shared_outs(%out = %q) -> (!t) {
    %qt = tensor.extract_slice %q[0, 0, %i, 0] [1, 1, 64, 64] [1, 1, 1, 1] : !t to !tile
    %zero = arith.constant 0.0 : f32
    %lowest = arith.constant 0xFF800000 : f32
    %ea = tensor.empty() : tensor<1x1x64x64xf32>
    %er = tensor.empty() : !row
    %acc = linalg.fill ins(%zero : f32) outs(%ea : tensor<1x1x64x64xf32>) -> tensor<1x1x64x64xf32>
    %max = linalg.fill ins(%lowest : f32) outs(%er : !row) -> !row
    %sum = linalg.fill ins(%zero : f32) outs(%er : !row) -> !row
    %kt = tensor.extract_slice %q[0, 0, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1] : !t to !tile
    %p:3 = attn.online_attention scale(0.25) update(all) ins(%qt, %kt, %kt : !tile, !tile, !tile)
      outs(%acc, %max, %sum : tensor<1x1x64x64xf32>, !row, !row) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>}
      -> tensor<1x1x64x64xf32>, !row, !row
    %ot = tensor.extract_slice %out[0, 0, %i, 0] [1, 1, 64, 64] [1, 1, 1, 1] : !t to !tile
    %o = attn.finalize ins(%p#0, %p#1, %p#2 : tensor<1x1x64x64xf32>, !row, !row) outs(%ot : !tile) -> !tile
    %t = linalg.transpose ins(%qt : !tile) outs(%o : !tile) permutation = [0, 1, 3, 2]
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %t into %out[0, 0, %i, 0] [1, 1, 64, 64] [1, 1, 1, 1] : !tile into !t
    }
  }
  return %r : !t
}
