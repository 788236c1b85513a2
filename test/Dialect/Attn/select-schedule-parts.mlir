// Where there is enough to multiply, operands of f32 are parts in bf16 on a GPU with
// WGMMA. The passes in front of a few queries would take longer than what they save,
// as would those of a cache of which a gather reads a part; head dims may leave no
// registers; other types have no parts; and `exact-products` asks for FMA.

// RUN: fovea-opt %s --attach-gpu-target=target=sm_90a --attn-select-schedule | FileCheck %s
// RUN: fovea-opt %s --attach-gpu-target=target=sm_90a --attn-select-schedule=exact-products | FileCheck %s --check-prefix=FMA
// RUN: fovea-opt %s --attach-gpu-target=target=sm_90a --attn-select-schedule=passes=2 | FileCheck %s --check-prefix=FMA
// RUN: fovea-opt %s --attach-gpu-target=target=sm_80 --attn-select-schedule | FileCheck %s --check-prefix=FMA
// RUN: fovea-opt %s --attach-gpu-target=target=sm_90a --attn-select-schedule --debug-only=attn-select-schedule -o /dev/null 2>&1 | FileCheck %s --check-prefix=LOG

// FMA-NOT: parts

// LOG: [attn-select-schedule]   #attn.schedule<{{.*}}, parts = 3>: [[#]].[[#]] us
// LOG: [attn-select-schedule]   #attn.schedule<{{.*}}, parts = 3> has parts without WGMMA

// CHECK-LABEL: @narrow
// CHECK: schedule = #attn.schedule<tile = 128x64, order = linear, warps = 8, stages = 2, parts = 3>
func.func @narrow(%q: tensor<2x16x4096x64xf32>) -> tensor<2x16x4096x64xf32> {
  %o = attn.attention %q, %q, %q scale(0.125) : tensor<2x16x4096x64xf32>, tensor<2x16x4096x64xf32>, tensor<2x16x4096x64xf32> -> tensor<2x16x4096x64xf32>
  return %o : tensor<2x16x4096x64xf32>
}

// CHECK-LABEL: @wide
// CHECK: schedule = #attn.schedule<tile = 128x32, order = longest_first, warps = 8, stages = 2, parts = 3>
func.func @wide(%q: tensor<2x8x?x128xf32>) -> tensor<2x8x?x128xf32> {
  %o = attn.attention %q, %q, %q scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } : tensor<2x8x?x128xf32>, tensor<2x8x?x128xf32>, tensor<2x8x?x128xf32> -> tensor<2x8x?x128xf32>
  return %o : tensor<2x8x?x128xf32>
}

// Of wide values an accumulator has a part of the columns beside the running one;
// one slot of keys and values is enough where steps take long.
// CHECK-LABEL: @wider
// CHECK: schedule = #attn.schedule<tile = 128x32, order = linear, warps = 8, stages = 1, parts = 3>
func.func @wider(%q: tensor<2x8x4096x192xf32>) -> tensor<2x8x4096x192xf32> {
  %o = attn.attention %q, %q, %q scale(0.125) : tensor<2x8x4096x192xf32>, tensor<2x8x4096x192xf32>, tensor<2x8x4096x192xf32> -> tensor<2x8x4096x192xf32>
  return %o : tensor<2x8x4096x192xf32>
}

// Columns that are no multiple of 32 are not divided.
// CHECK-LABEL: @undivided
// CHECK-NOT: parts
func.func @undivided(%q: tensor<2x8x4096x208xf32>) -> tensor<2x8x4096x208xf32> {
  %o = attn.attention %q, %q, %q scale(0.125) : tensor<2x8x4096x208xf32>, tensor<2x8x4096x208xf32>, tensor<2x8x4096x208xf32> -> tensor<2x8x4096x208xf32>
  return %o : tensor<2x8x4096x208xf32>
}

// CHECK-LABEL: @widest
// CHECK: schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 1, parts = 3>
func.func @widest(%q: tensor<2x4x4096x256xf32>) -> tensor<2x4x4096x256xf32> {
  %o = attn.attention %q, %q, %q scale(0.125) : tensor<2x4x4096x256xf32>, tensor<2x4x4096x256xf32>, tensor<2x4x4096x256xf32> -> tensor<2x4x4096x256xf32>
  return %o : tensor<2x4x4096x256xf32>
}

// CHECK-LABEL: @decode
// CHECK-NOT: parts
func.func @decode(%q: tensor<8x16x1x128xf32>, %k: tensor<8x16x4096x128xf32>) -> tensor<8x16x1x128xf32> {
  %o = attn.attention %q, %k, %k scale(0.125) : tensor<8x16x1x128xf32>, tensor<8x16x4096x128xf32>, tensor<8x16x4096x128xf32> -> tensor<8x16x1x128xf32>
  return %o : tensor<8x16x1x128xf32>
}

// CHECK-LABEL: @gathered
// CHECK-NOT: parts
#id = affine_map<(b, h, j, d) -> (b, h, j, d)>
func.func @gathered(%q: tensor<2x16x4096x64xf32>, %cache: tensor<100000x16x64xf32>, %rows: tensor<2x4096xindex>) -> tensor<2x16x4096x64xf32> {
  %e = tensor.empty() : tensor<2x16x4096x64xf32>
  %k = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%e : tensor<2x16x4096x64xf32>) {
  ^bb0(%x: f32):
    %b = linalg.index 0 : index
    %h = linalg.index 1 : index
    %j = linalg.index 2 : index
    %d = linalg.index 3 : index
    %row = tensor.extract %rows[%b, %j] : tensor<2x4096xindex>
    %y = tensor.extract %cache[%row, %h, %d] : tensor<100000x16x64xf32>
    linalg.yield %y : f32
  } -> tensor<2x16x4096x64xf32>
  %o = attn.attention %q, %k, %k scale(0.125) : tensor<2x16x4096x64xf32>, tensor<2x16x4096x64xf32>, tensor<2x16x4096x64xf32> -> tensor<2x16x4096x64xf32>
  return %o : tensor<2x16x4096x64xf32>
}

// CHECK-LABEL: @f64
// CHECK-NOT: parts
func.func @f64(%q: tensor<2x16x4096x64xf64>) -> tensor<2x16x4096x64xf64> {
  %o = attn.attention %q, %q, %q scale(0.125) : tensor<2x16x4096x64xf64>, tensor<2x16x4096x64xf64>, tensor<2x16x4096x64xf64> -> tensor<2x16x4096x64xf64>
  return %o : tensor<2x16x4096x64xf64>
}
