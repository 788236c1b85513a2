// RUN: fovea-opt --attn-differentiate --attn-insert-recomputation \
// RUN:   --remarks-filter=attn-insert-recomputation --split-input-file %s 2>&1 \
// RUN:   | FileCheck %s

// How the policy auto decides, and what it says.

module attributes {machine.target = #machine.target<"host", arch = "avx512", cores = 2,
    vector_bytes = 64, vector_registers = 32, fast_memory = 32768,
    near_memory = 1048576, bandwidth = 12000, peak = 300>} {
// Small ones, too.
// CHECK: probabilities are recomputed, because the model predicts {{[0-9.]+}} us where they are recomputed, and {{[0-9.]+}} ms where 512.0 KiB of them are saved
func.func @near(%q: tensor<1x2x256x64xf32>)
    -> tensor<1x2x256x64xf32> {
  %o = attn.attention %q, %q, %q scale(0.125)
      : tensor<1x2x256x64xf32>, tensor<1x2x256x64xf32>,
        tensor<1x2x256x64xf32> -> tensor<1x2x256x64xf32>
  return %o : tensor<1x2x256x64xf32>
}
// CHECK: probabilities are recomputed, because the model predicts {{[0-9.]+}} ms where they are recomputed, and {{[0-9.]+}} ms where 32.0 MiB of them are saved
func.func @far(%q: tensor<1x8x1024x64xf32>)
    -> tensor<1x8x1024x64xf32> {
  %o = attn.attention %q, %q, %q scale(0.125)
      : tensor<1x8x1024x64xf32>, tensor<1x8x1024x64xf32>,
        tensor<1x8x1024x64xf32> -> tensor<1x8x1024x64xf32>
  return %o : tensor<1x8x1024x64xf32>
}
// CHECK: probabilities are recomputed, because the number of scores is not known, and memory for them grows with queries times keys
func.func @unknown(%q: tensor<1x8x?x64xf32>)
    -> tensor<1x8x?x64xf32> {
  %o = attn.attention %q, %q, %q scale(0.125)
      : tensor<1x8x?x64xf32>, tensor<1x8x?x64xf32>,
        tensor<1x8x?x64xf32> -> tensor<1x8x?x64xf32>
  return %o : tensor<1x8x?x64xf32>
}
}

// -----

// A machine with much bandwidth for its arithmetic.

module attributes {machine.target = #machine.target<"host", arch = "avx512", cores = 2,
    vector_bytes = 64, vector_registers = 32, fast_memory = 32768,
    near_memory = 1048576, bandwidth = 400000, peak = 300>} {
// CHECK: probabilities are saved, because the model predicts {{[0-9.]+}} ms where they are recomputed, and {{[0-9.]+}} ms where 32.0 MiB of them are saved
func.func @bandwidth(%q: tensor<1x8x1024x64xf32>)
    -> tensor<1x8x1024x64xf32> {
  %o = attn.attention %q, %q, %q scale(0.125)
      : tensor<1x8x1024x64xf32>, tensor<1x8x1024x64xf32>,
        tensor<1x8x1024x64xf32> -> tensor<1x8x1024x64xf32>
  return %o : tensor<1x8x1024x64xf32>
}
}

// -----

// A GPU with a kernel for the backward pass, and without one for this head dim.

module attributes {machine.target = #machine.target<"sm_90a", arch = "hopper", cores = 132, vector_bytes = 128, vector_registers = 2048, fast_memory = 232448, near_memory = 52428800, bandwidth = 4290000, peak = 66900, shared_memory = 233472, matrix_peak = 989000>} {
// CHECK: probabilities are recomputed, because the backward pass has a kernel that keeps scores in registers
func.func @kernel(%q: tensor<1x2x256x64xbf16>) -> tensor<1x2x256x64xbf16> {
  %o = attn.attention %q, %q, %q scale(0.125)
      : tensor<1x2x256x64xbf16>, tensor<1x2x256x64xbf16>, tensor<1x2x256x64xbf16> -> tensor<1x2x256x64xbf16>
  return %o : tensor<1x2x256x64xbf16>
}
// CHECK: probabilities are saved, because no tile of the head dim fits the target
func.func @odd(%q: tensor<1x2x256x20xf32>) -> tensor<1x2x256x20xf32> {
  %o = attn.attention %q, %q, %q scale(0.125)
      : tensor<1x2x256x20xf32>, tensor<1x2x256x20xf32>, tensor<1x2x256x20xf32> -> tensor<1x2x256x20xf32>
  return %o : tensor<1x2x256x20xf32>
}
}
