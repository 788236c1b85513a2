// RUN: fovea-opt %s --attn-select-schedule --split-input-file | FileCheck %s
// RUN: fovea-opt %s --attn-select-schedule="query-tile=32 key-tile=16" --split-input-file | FileCheck %s --check-prefix=HAND

// Queries fill vectors of 16 lanes; a linear order where there is no mask.
// CHECK-LABEL: func @full
// CHECK: attn.attention
// CHECK-SAME: schedule = #attn.schedule<tile = 48x64, order = linear>
// HAND-LABEL: func @full
// HAND: schedule = #attn.schedule<tile = 32x16, order = linear>
func.func @full(%q: tensor<2x16x1024x64xf32>) -> tensor<2x16x1024x64xf32> {
  %o = attn.attention %q, %q, %q scale(0.125) : tensor<2x16x1024x64xf32>, tensor<2x16x1024x64xf32>, tensor<2x16x1024x64xf32> -> tensor<2x16x1024x64xf32>
  return %o : tensor<2x16x1024x64xf32>
}

// -----

// Wider blocks of queries share the widening of 16-bit keys and values.
// CHECK-LABEL: func @narrow
// CHECK: schedule = #attn.schedule<tile = 96x64, order = linear>
func.func @narrow(%q: tensor<2x16x?x64xbf16>) -> tensor<2x16x?x64xbf16> {
  %o = attn.attention %q, %q, %q scale(0.125) : tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16> -> tensor<2x16x?x64xbf16>
  return %o : tensor<2x16x?x64xbf16>
}

// -----

// One query needs one vector, and f64 has half the lanes.
// CHECK-LABEL: func @decode
// CHECK: schedule = #attn.schedule<tile = 8x
func.func @decode(%q: tensor<2x16x1x64xf64>, %k: tensor<2x16x?x64xf64>) -> tensor<2x16x1x64xf64> {
  %o = attn.attention %q, %k, %k scale(0.125) : tensor<2x16x1x64xf64>, tensor<2x16x?x64xf64>, tensor<2x16x?x64xf64> -> tensor<2x16x1x64xf64>
  return %o : tensor<2x16x1x64xf64>
}

// -----

// A few queries read each row once, and ask for those ahead in their tile: it is long,
// for values that are read in place, too. More queries would read them again.
// CHECK-LABEL: func @few
// CHECK: schedule = #attn.schedule<tile = 16x512,
// CHECK-LABEL: func @more
// CHECK: schedule = #attn.schedule<tile = 16x64,
module attributes {machine.target = #machine.target<"host", arch = "avx512", cores = 2, vector_bytes = 64, vector_registers = 32, fast_memory = 49152, near_memory = 1048576, bandwidth = 16000, peak = 332>} {
  func.func @few(%q: tensor<1x8x8x128xf32>, %k: tensor<1x8x?x128xf32>) -> tensor<1x8x8x128xf32> {
    %o = attn.attention %q, %k, %k scale(0.125) : tensor<1x8x8x128xf32>, tensor<1x8x?x128xf32>, tensor<1x8x?x128xf32> -> tensor<1x8x8x128xf32>
    return %o : tensor<1x8x8x128xf32>
  }
  func.func @more(%q: tensor<1x8x9x128xf32>, %k: tensor<1x8x?x128xf32>) -> tensor<1x8x9x128xf32> {
    %o = attn.attention %q, %k, %k scale(0.125) : tensor<1x8x9x128xf32>, tensor<1x8x?x128xf32>, tensor<1x8x?x128xf32> -> tensor<1x8x9x128xf32>
    return %o : tensor<1x8x9x128xf32>
  }
}

// -----

// A mask gives tiles different lengths.
// CHECK-LABEL: func @masked
// CHECK: order = longest_first
func.func @masked(%q: tensor<2x16x?x64xf32>) -> tensor<2x16x?x64xf32> {
  %o = attn.attention %q, %q, %q scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } : tensor<2x16x?x64xf32>, tensor<2x16x?x64xf32>, tensor<2x16x?x64xf32> -> tensor<2x16x?x64xf32>
  return %o : tensor<2x16x?x64xf32>
}

// -----

// What a person wrote stays.
// CHECK-LABEL: func @by_hand
// CHECK: schedule = #attn.schedule<tile = 8x8, order = linear>
// HAND-LABEL: func @by_hand
// HAND: schedule = #attn.schedule<tile = 8x8, order = linear>
func.func @by_hand(%q: tensor<2x16x?x64xf32>) -> tensor<2x16x?x64xf32> {
  %o = attn.attention %q, %q, %q scale(0.125) {schedule = #attn.schedule<tile = 8x8, order = linear>} : tensor<2x16x?x64xf32>, tensor<2x16x?x64xf32>, tensor<2x16x?x64xf32> -> tensor<2x16x?x64xf32>
  return %o : tensor<2x16x?x64xf32>
}

// -----

// AVX2 has 8 lanes.
// CHECK-LABEL: func @avx2
// CHECK: schedule = #attn.schedule<tile = 24x64, order = linear>
module attributes {machine.target = #machine.target<"host", arch = "avx2", cores = 4, vector_bytes = 32, vector_registers = 16, fast_memory = 32768, near_memory = 262144, bandwidth = 12000, peak = 300>} {
  func.func @avx2(%q: tensor<2x16x1024x64xf32>) -> tensor<2x16x1024x64xf32> {
    %o = attn.attention %q, %q, %q scale(0.125) : tensor<2x16x1024x64xf32>, tensor<2x16x1024x64xf32>, tensor<2x16x1024x64xf32> -> tensor<2x16x1024x64xf32>
    return %o : tensor<2x16x1024x64xf32>
  }
}

// -----

// No tile of such a head dim fits; it is left to be written out.
// CHECK-LABEL: func @unfit
// CHECK-NOT: schedule
func.func @unfit(%q: tensor<1x1x8x100000xf32>) -> tensor<1x1x8x100000xf32> {
  %o = attn.attention %q, %q, %q scale(0.125) : tensor<1x1x8x100000xf32>, tensor<1x1x8x100000xf32>, tensor<1x1x8x100000xf32> -> tensor<1x1x8x100000xf32>
  return %o : tensor<1x1x8x100000xf32>
}

// -----

// Where AMX tiles make products of bf16 cheap, larger tiles save what each block of
// keys costs besides; so for f16, which takes three products.
// CHECK-LABEL: func @tiles
// CHECK: schedule = #attn.schedule<tile = 384x256, order = linear>
// CHECK-LABEL: func @half
// CHECK: schedule = #attn.schedule<tile = 384x256, order = linear>
#amx = #machine.target<"host", arch = "amx", cores = 2, vector_bytes = 64, vector_registers = 32, fast_memory = 49152, near_memory = 2097152, bandwidth = 12000, peak = 300, matrix_peak = 4700>
module attributes {machine.target = #amx} {
func.func @tiles(%q: tensor<2x16x?x64xbf16>) -> tensor<2x16x?x64xbf16> {
  %o = attn.attention %q, %q, %q scale(0.125) : tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16> -> tensor<2x16x?x64xbf16>
  return %o : tensor<2x16x?x64xbf16>
}
func.func @half(%q: tensor<2x16x?x64xf16>) -> tensor<2x16x?x64xf16> {
  %o = attn.attention %q, %q, %q scale(0.125) : tensor<2x16x?x64xf16>, tensor<2x16x?x64xf16>, tensor<2x16x?x64xf16> -> tensor<2x16x?x64xf16>
  return %o : tensor<2x16x?x64xf16>
}
}
