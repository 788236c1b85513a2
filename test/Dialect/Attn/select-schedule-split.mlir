// RUN: fovea-opt %s --attn-select-schedule | FileCheck %s

module attributes {machine.target = #machine.target<"host", arch = "avx512", cores = 8, vector_bytes = 64, vector_registers = 32,
                   fast_memory = 49152, near_memory = 2097152, bandwidth = 16000, peak = 294>} {

// Two tiles of queries for eight cores: four parts of the keys each.
// CHECK-LABEL: func @two_of_eight
// CHECK: schedule = #attn.schedule<{{.*}} split = 4>
func.func @two_of_eight(%q: tensor<1x2x4x64xf16>, %k: tensor<1x2x4096x64xf16>) -> tensor<1x2x4x64xf16> {
  %o = attn.attention %q, %k, %k scale(0.125) : tensor<1x2x4x64xf16>, tensor<1x2x4096x64xf16>, tensor<1x2x4096x64xf16> -> tensor<1x2x4x64xf16>
  return %o : tensor<1x2x4x64xf16>
}

// A part has 128 keys or more.
// CHECK-LABEL: func @short
// CHECK: schedule = #attn.schedule<{{.*}} split = 2>
func.func @short(%q: tensor<1x2x4x64xf16>, %k: tensor<1x2x300x64xf16>) -> tensor<1x2x4x64xf16> {
  %o = attn.attention %q, %k, %k scale(0.125) : tensor<1x2x4x64xf16>, tensor<1x2x300x64xf16>, tensor<1x2x300x64xf16> -> tensor<1x2x4x64xf16>
  return %o : tensor<1x2x4x64xf16>
}

// A size that is asked for, in tiles that divide it, however few keys there are.
// CHECK-LABEL: func @fixed
// CHECK: schedule = #attn.schedule<tile = {{.*}}x64, {{.*}} split = fixed(192)>, split_size = 192
func.func @fixed(%q: tensor<1x2x4x64xf16>, %k: tensor<1x2x300x64xf16>) -> tensor<1x2x4x64xf16> {
  %o = attn.attention %q, %k, %k scale(0.125) {split_size = 192 : i64} : tensor<1x2x4x64xf16>, tensor<1x2x300x64xf16>, tensor<1x2x300x64xf16> -> tensor<1x2x4x64xf16>
  return %o : tensor<1x2x4x64xf16>
}

// Enough tiles of queries, by heads or by queries; too few keys.
// CHECK-LABEL: func @whole
// CHECK-NOT: split
// CHECK: return
func.func @whole(%q: tensor<1x8x1x64xf16>, %k: tensor<1x8x4096x64xf16>, %r: tensor<1x2x512x64xf16>, %l: tensor<1x2x255x64xf16>, %s: tensor<1x2x4x64xf16>)
    -> (tensor<1x8x1x64xf16>, tensor<1x2x512x64xf16>, tensor<1x2x4x64xf16>) {
  %o = attn.attention %q, %k, %k scale(0.125) : tensor<1x8x1x64xf16>, tensor<1x8x4096x64xf16>, tensor<1x8x4096x64xf16> -> tensor<1x8x1x64xf16>
  %p = attn.attention %r, %l, %l scale(0.125) : tensor<1x2x512x64xf16>, tensor<1x2x255x64xf16>, tensor<1x2x255x64xf16> -> tensor<1x2x512x64xf16>
  %u = attn.attention %s, %l, %l scale(0.125) : tensor<1x2x4x64xf16>, tensor<1x2x255x64xf16>, tensor<1x2x255x64xf16> -> tensor<1x2x4x64xf16>
  return %o, %p, %u : tensor<1x8x1x64xf16>, tensor<1x2x512x64xf16>, tensor<1x2x4x64xf16>
}

}
